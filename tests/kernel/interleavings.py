"""Every point at which an interrupt may strike, one after the other.

A scenario is a kernel that is set up, a snapshot of it, and an interrupt: a call of one of the kernel's functions. For each
point the snapshot is put back, the kernel runs until nothing is left to do, the interrupt strikes once at that point, and
what must hold is looked at. The points are

* on the checked engine the lines of the kernel's own code (with `opcodes`: CPython's instructions, so also the middle of a
  statement), outside critical sections;
* on the emulated core the instructions of the compiled kernel, outside critical sections.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from kernels import World
from synapticos.kernel.job import JobState
from synapticos.kernel.kernel import Kernel
from synapticos.kernel.order import FEW_JOBS
from synapticos.kernel.sched import Poll

FREE, QUEUED, RUNNING, SUSPENDED, DONE, ERROR, CANCELLED, CLAIMED, WAITING = (int(s) for s in JobState)
BEGUN, ENDED = (RUNNING, SUSPENDED, WAITING), (DONE, ERROR, CANCELLED)


@dataclass
class Run:
    """One run with an interrupt."""

    point: Any  # where it struck
    poll: int  # in which poll, from 0
    answer: Any  # what the interrupt's call returned
    ran: list[int] = field(default_factory=list)  # the job of each poll


class Watcher:
    """Reads a kernel's jobs out of its bytes, faster than field by field."""

    def __init__(self, w: World) -> None:
        kinds = w.e.type(Kernel)
        self.jobs, self.frames = kinds.by_name["jobs"], kinds.by_name["frames"]
        self.fields = {f.name: f for f in self.jobs.type.element.fields}
        self.size = self.jobs.type.element.size
        self.words = {n: kinds.by_name[n].offset for n in ("free", "posted", "current", "unfinished")}
        self.slots = self.jobs.type.count
        self.queued = self.slots > FEW_JOBS  # fewer are looked for in their slots

    def job(self, data: bytes, slot: int, name: str) -> int:
        found = self.fields[name]
        at = self.jobs.offset + slot * self.size + found.offset
        return int.from_bytes(data[at : at + found.type.size], "little")

    def word(self, data: bytes, name: str) -> int:
        return int.from_bytes(data[self.words[name] :][:4], "little")

    def check(self, w: World) -> None:
        """What holds between any two polls."""
        data = bytes(w.kernel)
        owners = [frame.owner for frame in w.kernel.frames]
        free, current = self.word(data, "free"), self.word(data, "current")
        begun: dict[int, list[int]] = {}
        for slot in range(self.slots):
            state, frame = self.job(data, slot, "state"), self.job(data, slot, "frame")
            assert (state == FREE) == bool(free >> slot & 1), (slot, state, free)
            assert state != CLAIMED, "nobody fills a slot between polls"
            if state in BEGUN:
                begun.setdefault(frame, []).append(slot)
                assert owners[frame] == slot + 1, (slot, frame, owners)
            if state == RUNNING:
                assert current == slot + 1
        if self.queued:
            self.check_queues(w, data)
        assert all(len(slots) == 1 for slots in begun.values()), begun
        for frame, owner in enumerate(owners):
            assert owner == 0 or begun.get(frame) == [owner - 1], (frame, owner, begun)

    def check_queues(self, w: World, data: bytes) -> None:
        """Each job that has not begun is once in its frame's queue, or posted; in order of urgency, linked both ways."""
        there: set[int] = set()
        posted = self.word(data, "posted")
        for frame, order in enumerate(w.kernel.queues.items):
            before, at = 0, int(order.first)
            while at != 0:
                job = {n: self.job(data, at - 1, n) for n in ("state", "frame", "before", "behind", "priority", "deadline", "sequence")}
                assert at - 1 not in there and (job["state"], job["frame"], job["before"]) == (QUEUED, frame, before), (frame, at, job)
                if before != 0:
                    last = {n: self.job(data, before - 1, n) for n in ("priority", "deadline", "sequence")}
                    assert (-last["priority"], last["deadline"], last["sequence"]) < (-job["priority"], job["deadline"], job["sequence"])
                there.add(at - 1)
                before, at = at, job["behind"]
            assert int(order.last) == before, (frame, order.last, before)
        for slot in range(self.slots):
            if self.job(data, slot, "state") == QUEUED:
                assert slot in there or posted >> slot & 1, (slot, there, posted)

    def check_idle(self, w: World) -> None:
        """What holds when nothing is left to do."""
        self.check(w)
        data = bytes(w.kernel)
        assert [self.word(data, n) for n in ("posted", "current", "unfinished")] == [0, 0, 0]
        assert all(frame.owner == 0 for frame in w.kernel.frames) and int(w.kernel.inside) == 0
        assert all(p.jobs == 0 for p in w.kernel.pipelines.items)
        stats = w.kernel.stats
        assert stats.submitted == stats.done + stats.errors + stats.cancelled


class Player:
    """Plays one scenario on one engine, once for each point. `interrupt` is a kernel function and its arguments."""

    def __init__(self, w: World, polls: int = 60) -> None:
        self.w, self.polls, self.points = w, polls, 0
        self.watcher = Watcher(w)
        self.save()

    def save(self) -> None:
        """What each run begins with is as it is now."""
        w = self.w
        self.saved = [(thing, bytes(thing)) for thing in (w.kernel, w.memory, *w.kept)]
        self.now = w.e.board.now

    def restore(self) -> None:
        for thing, data in self.saved:
            self.w.e.write(thing._address, data)
        self.w.e.board.now = self.now

    def drain(self, run: Run) -> None:
        """Poll until there is nothing to do."""
        for _ in range(self.polls):
            answer, id = self.w("kernel_poll")
            if answer in (Poll.IDLE, Poll.HOST):
                return
            run.ran.append(int(id))
            self.watcher.check(self.w)
        raise AssertionError(f"still at it after {self.polls} polls")

    def runs(self, interrupt: Sequence[Any], stride: int = 1, opcodes: bool = False) -> Iterator[Run]:
        """A run for each point, or for each `stride`-th. The kernel is idle then, and may be looked at."""
        play = self._checked if self.w.e.name == "checked" else self._core
        yield from play(interrupt, stride, opcodes)

    # The checked engine

    @contextmanager
    def _traced(self, opcodes: bool, strike: Callable[[str], None]) -> Iterator[None]:
        """Call `strike` before each line (or opcode) of the kernel outside critical sections."""
        board, files = self.w.e.board, {f.file for f in self.w.e.program.functions}
        enter, leave, depth, wanted = board.critical_enter, board.critical_exit, [0], "opcode" if opcodes else "line"

        def entered(number: int) -> int:
            depth[0] += 1
            return enter(number)

        def left(number: int, state: int) -> None:
            leave(number, state)
            depth[0] -= 1

        def trace(frame: Any, event: str, argument: Any) -> Any:
            if frame.f_code.co_filename not in files:
                return None
            frame.f_trace_opcodes = opcodes
            if event == wanted and depth[0] == 0:
                strike(f"{frame.f_code.co_filename}:{frame.f_lineno}")
            return trace

        board.critical_enter, board.critical_exit = entered, left
        before = sys.gettrace()
        sys.settrace(trace)
        try:
            yield
        finally:
            sys.settrace(before)
            board.critical_enter, board.critical_exit = enter, leave

    def _checked(self, interrupt: Sequence[Any], stride: int, opcodes: bool) -> Iterator[Run]:
        e, counted, places = self.w.e, [0], []

        def count(place: str) -> None:
            counted[0] += 1
            places.append(place)

        self.restore()
        with self._traced(opcodes, count):
            self.drain(Run(None, 0, None))
        for point in range(0, counted[0], stride):
            run = Run(places[point], 0, None)
            left = [point]

            def strike(place: str, left: list[int] = left, run: Run = run) -> None:
                left[0] -= 1
                if left[0] == -1:
                    run.poll = len(run.ran)
                    run.answer = e(*interrupt)

            self.restore()
            with self._traced(opcodes, strike):
                self.drain(run)
            self.drain(run)
            self.points += 1
            yield run

    # The emulated core

    def _core(self, interrupt: Sequence[Any], stride: int, opcodes: bool) -> Iterator[Run]:
        w, e = self.w, self.w.e
        core, poll = e.core, w.names["kernel_poll"]
        made, data = e.block(poll, (w.kernel,))
        block, cell = e.allocate(made.size, 16, "poll")
        its, its_data = e.block(interrupt[0], tuple(interrupt[1:]))
        its_block, its_cell = e.allocate(its.size, 16, "interrupt")
        sections = core.watch("hal_critical_enter", "hal_critical_exit")
        self.restore()
        before = Run(None, 0, None)
        for number in range(self.polls):
            # How this poll goes without an interrupt: how long, and where none may come in.
            sections.clear()
            core.write(block, bytes(data))
            state = [(thing, bytes(thing)) for thing, _ in self.saved]
            total = core.call(made.symbol, block)
            masked, begun, depth = set(), 0, 0
            for name, at in sections:
                depth += 1 if name == "hal_critical_enter" else -1
                if depth == 1 and name == "hal_critical_enter":
                    begun = at
                if depth == 0:
                    masked.update(range(begun, at + 1))
            after = [(thing, bytes(thing)) for thing, _ in self.saved]
            answer, id = e.results(made, core.read(block, made.size))
            last = -1
            for point in range(2, total, stride):
                if point in masked or point <= last:
                    continue
                self._put(state)
                core.write(block, bytes(data))
                core.write(its_block, bytes(its_data))
                held = core.begin(made.symbol, block, point)
                if held is None:
                    break
                last = held
                run = Run((number, held), number, None, list(before.ran))
                if held in masked:  # the end of an IT block
                    core.resume()
                    continue
                core.call(its.symbol, its_block)
                core.resume()
                run.answer = e.results(its, core.read(its_block, its.size))
                ran, job = e.results(made, core.read(block, made.size))
                if ran == Poll.RAN:
                    run.ran.append(int(job))
                self.watcher.check(w)
                self.drain(run)
                self.points += 1
                yield run
            self._put(after)
            if answer != Poll.RAN:
                return
            before.ran.append(int(id))

    def _put(self, state: list[tuple[Any, bytes]]) -> None:
        for thing, data in state:
            self.w.e.write(thing._address, data)


def ended_once(w: World, id: int) -> int:
    """The state that a job has ended in. Its callback was called once, or not at all if it was cancelled."""
    state = int(w("infer_state", id))
    calls = sum(event[0] == id for event in w.events())
    assert state in ENDED, (id, state)
    assert calls == (0 if state == CANCELLED else 1), (id, state, calls)
    return state


__all__ = ["CANCELLED", "DONE", "ERROR", "Player", "Run", "ended_once"]
