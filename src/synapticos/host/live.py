"""Jobs that the kernel begins, in this process: sources are pushed, results come to callbacks.

    with syn.Runtime(app) as rt:
        rt.on("heard", lambda done: print(done.arrays))
        rt.start()                      # a thread polls by the clock until the runtime is closed
        rt.push("mic", samples)

An exception in a callback is that job's error: it is kept, counted, and shown by `counters`; the kernel goes on.
"""

from __future__ import annotations

import struct
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from synapticos import lang
from synapticos.app import calls
from synapticos.app.declare import JobDecl, Pipeline
from synapticos.app.image import PipelineImage
from synapticos.app.spec import DTYPES
from synapticos.errors import KernelError, UserError
from synapticos.host.blame import Failure
from synapticos.kernel import due, feed, sched
from synapticos.kernel.release import FeedCounts, JobCounts
from synapticos.kernel.sched import Poll
from synapticos.kernel.status import Status

if TYPE_CHECKING:
    from synapticos.host.runtime import Runtime

NEVER = (1 << 64) - 1
JOB_COUNTS, FEED_COUNTS = ([name for name, _, _ in lang.layout(kind)] for kind in (JobCounts, FeedCounts))

ENDED = struct.Struct("<QQIIIi4B4x4I")  # calls.Ended
assert ENDED.size == lang.sizeof(calls.Ended)


class Told(NamedTuple):
    """calls.Ended in Python."""

    release: int
    finish: int
    id: int
    number: int
    user: int
    status: int
    missed: int
    faulted: int
    more: int
    outputs: int
    size_0: int
    size_1: int
    size_2: int
    size_3: int


@dataclass(repr=False)
class Done:
    """One job that has ended."""

    job: JobDecl
    status: Status
    arrays: list[np.ndarray]  # its result; empty unless it ended well
    release_us: int  # after the start, nominal
    finish_us: int
    item: int  # which box of a cascade
    missed: bool  # its deadline
    error: Exception | None = None
    failure: Failure | None = None  # where and why, if it ended with an error
    times: dict[str, Any] = field(default_factory=dict)

    @property
    def pipeline(self) -> str:
        """Its name."""
        return self.job.pipeline.name

    @property
    def response_us(self) -> int:
        """From its release to its end."""
        return self.finish_us - self.release_us

    def __repr__(self) -> str:
        """`Done(heard, OK, float32 1 x 2, released at 3.750 s, after 4.1 ms)`, and what went wrong."""
        words = [self.pipeline + (f" box {self.item}" if self.job.cascade is not None else ""), self.status.name]
        words += [f"{a.dtype if not a.dtype.names else 'score'} {' x '.join(map(str, a.shape)) or 1}" for a in self.arrays]
        words += [f"released at {self.release_us / 1e6:.3f} s", f"after {self.response_us / 1e3:.1f} ms"]
        words += ["deadline missed"] if self.missed else []
        return f"Done({', '.join(words)}{f': {self.failure}' if self.failure is not None else ''})"


class Live:
    """The releases of one runtime."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        if not runtime.image.clocked:
            raise UserError(f"{runtime.app.name}: no job is released by a clock or a source; app.job(pipeline, every= or on=)")
        self.kernel, self.e = runtime.kernel, runtime._engine
        self.callbacks: dict[str, list[Callable[[Done], Any]]] = {p.name: list(p.callbacks) for p in runtime.app.pipelines.values()}
        self.errors: dict[str, list[Exception]] = {}
        self._feeds = {one.source.name: one for one in runtime.image.feeds}
        self._ended = 0
        self._thread: threading.Thread | None = None
        self._ending = False
        self._counts: dict[str, dict[str, dict[str, int]]] = {}  # as the runtime was closed
        self._rate = int(self.kernel.clock.rate)
        self._told = self.e.new(calls.Ended)
        room = max(sum((s.bytes + 15) & -16 for s in p.outputs) for p in runtime.image.pipelines)
        self._outputs = self.e.array(lang.u8, max(room, 1))
        self._take = self.e.prepare(calls.ended_take, self.kernel, self._told, self._outputs, room)
        self.origin = 0

    def start(self, span_us: int = 0) -> None:
        """Releases begin now; by the clock for `span_us` microseconds, or for good."""
        for i, job in enumerate(self.runtime.image.jobs):
            self.kernel.releases.items[i].collect = job.pipeline.ends_in_feed is None
        with self.runtime._turn(), self.runtime._calls:
            if self.runtime._closed:
                self.runtime._over()
            self.e(due.releases_start, self.kernel, span_us)
        self.origin = int(self.kernel.releases.origin_us)

    def _image_of(self, wanted: str | Pipeline) -> PipelineImage:
        name = wanted.name if isinstance(wanted, Pipeline) else wanted
        found = next((p for p in self.runtime.image.pipelines if p.name == name), None)
        if found is None:
            self.runtime._unknown(wanted)
        return found

    # Virtual time

    @property
    def now_us(self) -> int:
        """After the start; of virtual time, whose tick is a microsecond."""
        return int(self.e.board.now) - self.origin

    def idle(self, number: int) -> bool:
        """Whether nobody works on what feed `number` gave, and nothing of it waits."""
        releases = self.kernel.releases
        rows = [releases.items[i] for i in range(releases.count)]
        return releases.fed == 0 and all(r.job == 0 and r.waiting == 0 for r in rows if r.feed == number + 1)

    def sleep(self, moments: list[int]) -> bool:
        """Virtual time goes on to the next of `moments` (after the start) or what the kernel waits for. False if there is none."""
        with self.runtime._calls:
            wanted = int(self.e(due.kernel_due, self.kernel))
        next_us = min([self.origin + at for at in moments] + ([wanted] if wanted != NEVER else []), default=None)
        if next_us is None:
            return False
        self.e.board.now = max(next_us, int(self.e.board.now))
        return True

    # What goes on

    def push(self, source: str, data: Any) -> bool:
        """Hand in what a source gives, in pieces of any size. False if some of it was lost, which is counted."""
        found = self._feeds.get(source)
        if found is None:
            there = ", ".join(name for name in self._feeds) or "none"
            raise UserError(f'{self.runtime.app.name}: no source "{source}" releases or feeds a job; there is {there}')
        if isinstance(data, bytes | bytearray | memoryview):
            raw = bytes(data)
        else:
            array = np.asarray(data)
            wanted = DTYPES[found.source.spec.dtype]
            if array.dtype != wanted:
                raise UserError(f'source "{source}": gives {found.source.spec}, the array is {array.dtype}')
            raw = np.ascontiguousarray(array).tobytes()
        if not raw:
            return True
        with self.runtime._open():
            buffer = self.e.array(lang.u8, raw)
            status = Status(int(self.e(feed.source_push, self.kernel, found.number, buffer, len(raw))))
        if status == Status.BUSY:
            raise KernelError(f'source "{source}": another thread pushes to it now; one at a time', int(status))
        return status == Status.OK

    def step(self) -> Poll:
        """Run one step of whatever is most urgent."""
        runtime = self.runtime
        with runtime._turn(), runtime._calls:
            if runtime._closed:
                return Poll.IDLE
            try:
                answer, number = self.e(sched.kernel_poll, self.kernel)
                if answer == Poll.HOST:
                    runtime._host_stage(number)
            except BaseException:
                runtime._closed = True  # in the middle of a step: it is not used again
                raise
        return Poll(int(answer))

    def take(self) -> list[Done]:
        """The jobs that have ended since the last time, each once."""
        runtime, ended = self.runtime, 0
        if not runtime._native:  # compiled code looks faster than Python counts
            stats = self.kernel.stats
            ended = int(stats.done) + int(stats.errors) + int(stats.cancelled)
            if ended == self._ended:
                return []
        found = []
        while True:
            with runtime._taking:
                runtime._check(self._take(), runtime.app.name)
                told = Told._make(ENDED.unpack(bytes(self._told)))
                if not told.id:
                    break
                found.append(self._look(runtime.image.jobs[told.number], told))
                runtime._free(told.id)
        # One that another thread ends at this moment is not told yet: the next look finds it.
        if not told.more:
            self._ended = ended
        return found

    def _look(self, job: JobDecl, told: Told) -> Done:
        """By who holds `_taking`: what has become of a job."""
        runtime, number = self.runtime, told.id
        status = Status(told.status)
        done = Done(job, status, [], self._since(told.release), self._since(told.finish), told.user, bool(told.missed))
        if runtime.profile:
            done.times = runtime._times(number)
        if status == Status.OK:
            raw, at = bytes(self._outputs), 0
            for size, spec in zip(told[-4:][: told.outputs], job.pipeline.specs):
                at = (at + 15) & -16
                flat = np.frombuffer(raw[at : at + size], DTYPES[spec.dtype])
                done.arrays.append(flat.reshape(-1, *spec.shape[1:]) if spec.rows else flat.reshape(spec.shape))
                at += size
        else:
            image = self._image_of(job.pipeline)
            done.failure = runtime._blame(image, number, status)
            words = f"its deadline ended it before {done.failure.step}" if status == Status.TIMEDOUT and not told.faulted else str(done.failure)
            done.error = KernelError(f'{runtime.app.name}: pipeline "{image.name}": {words}', int(status))
        return done

    def _since(self, ticks: int) -> int:
        return max(0, ticks * 1_000_000 // self._rate - self.origin)

    def counters(self) -> dict[str, dict[str, dict[str, int]]]:
        """Of each job and each source, what became of it since boot."""
        jobs, sources = {}, {}
        with self.runtime._taking:
            if self._counts:
                return self._counts  # the kernel's memory is given back, or will be
            of_job, of_source = self.e.new(JobCounts), self.e.new(FeedCounts)
            for i, job in enumerate(self.runtime.image.jobs):
                self.e(due.job_counts, self.kernel, i, of_job)
                raised = {"callback_errors": len(self.errors.get(job.pipeline.name, []))}
                jobs[job.pipeline.name] = {name: int(getattr(of_job, name)) for name in JOB_COUNTS} | raised
            for name, one in self._feeds.items():
                self.e(due.source_counts, self.kernel, one.number, of_source)
                sources[name] = {field: int(getattr(of_source, field)) for field in FEED_COUNTS}
        return {"jobs": jobs, "sources": sources}

    # A thread of its own

    def on(self, pipeline: str | Pipeline, callback: Callable[[Done], Any]) -> None:
        """Call `callback(done)` for each job of a pipeline that ends."""
        name = self._image_of(pipeline).name
        self.callbacks[name].append(callback)

    def enable(self, pipeline: str | Pipeline, on: bool = True) -> None:
        """Let a pipeline's jobs be released, or not from now on."""
        name = self._image_of(pipeline).name
        number = next((i for i, job in enumerate(self.runtime.image.jobs) if job.pipeline.name == name), None)
        if number is None:
            raise UserError(f'{self.runtime.app.name}: pipeline "{name}" has no job')
        with self.runtime._open():
            self.e(due.job_enable, self.kernel, number, on)

    def deliver(self) -> None:
        """Give what has ended to the callbacks. An error of theirs is their job's, and ends nothing else."""
        for done in self.take():
            self.tell(done)

    def tell(self, done: Done) -> None:
        """Give one that has ended to the callbacks of its pipeline."""
        for callback in self.callbacks[done.pipeline]:
            try:
                callback(done)
            except Exception as error:
                self.errors.setdefault(done.pipeline, []).append(error)

    def run_thread(self) -> None:
        """Poll by the clock in a thread, until the runtime is closed."""
        if self._thread is not None:
            raise UserError(f"{self.runtime.app.name}: is started already")
        self.start()
        self._thread = threading.Thread(target=self._run, name=f"{self.runtime.app.name} kernel", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        runtime = self.runtime
        # The native engine sleeps without the interpreter's lock, and a push, a submission or who wants its turn wakes it.
        # An interpreted one lets nobody call in meanwhile.
        span = runtime._slice if runtime._sleeps else runtime._ticks(0.001)
        try:
            call = self.e.prepare(calls.take_turn, self.kernel, runtime._turns, 0, span)
            while not (self._ending or runtime._closed):
                runtime._serve(call)
                runtime._collect()
                self.deliver()
                runtime._tell_news()
                if runtime.image.handles:
                    sys.stdout.write(runtime.said())
        finally:
            runtime._tell()

    def stop(self) -> None:
        """End the thread, if there is one."""
        self._ending = True
        thread, self._thread = self._thread, None
        if thread is not None and thread is not threading.current_thread():
            self.runtime._ask(1)
            thread.join(5)
            self.runtime._ask(0)
        self._counts = self.counters()
