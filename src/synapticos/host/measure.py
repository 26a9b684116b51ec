"""What each step of an app's jobs costs on a board's core: counted in the in-process emulator, poll by poll.

The firmware is the app's own with a main program that runs every job alone over inputs of several kinds, then all at
once, then one in the middle of another (`measure_program`). A poll is what the scheduler cannot interrupt, so a poll's
cost is all of it: choosing, dispatching, the step, handing on, ending the job. What may happen in any poll beside its step
(a release, a deadline that passes, what a source has given) is counted by itself, in a poll that runs nothing.

Of a model on the accelerator the polls that begin and take up are counted like all others, and what the device is told
says how long it works (`accelerated`). It is held until the processor sleeps, so that the end of its work, its interrupt
and `npu_look`, is counted by itself: any poll may meet one, as two begin with a poll between them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from synapticos import boards, lang, toolchain
from synapticos.analysis.cycles import EXCEPTION, Costs, Timing
from synapticos.analysis.paths import Code, Longest, NoBound
from synapticos.analysis.stack import read_nodes, resolve
from synapticos.app.declare import App, JobDecl
from synapticos.app.image import Image, compile_app, run_rows, tensor_fields
from synapticos.app.spec import DTYPES, Spec
from synapticos.app.steps import Step
from synapticos.emulator.devices import NEVER
from synapticos.emulator.meter import MOST_ROOTS, Detail, Meter
from synapticos.errors import UserError
from synapticos.host import measure_program as board_side
from synapticos.host.accelerated import LOAD, Device, offloaded, on_npu
from synapticos.host.firmware import firmware_parameters, link_program, with_accelerator
from synapticos.host.loops import LoopSource
from synapticos.kernel.layers.tables import RUN
from synapticos.kernel.run import APP_STAGES
from synapticos.kernel.sim import sim_work
from synapticos.kernel.stages.tables import BUILTINS
from synapticos.kernel.status import Status

ALONE, TOGETHER, NOTHING = (int(n) for n in (board_side.ALONE, board_side.TOGETHER, board_side.NOTHING))
INTERRUPT = 3  # the kind of a piece: the accelerator's
LOOK_ROOT = 0  # of the roots, where an app has an accelerator: npu_look
HEAVY = 30_000_000  # multiply-accumulates of a model for which three inputs must do
KINDS = ("lowest", "highest", "noise", "zeros", "more noise")


@dataclass
class StepCost:
    """One step of a job: what each of its inputs took."""

    stage: int
    layer: int | None
    row: int
    name: str
    cycles: list[int] = field(default_factory=list)
    instructions: list[int] = field(default_factory=list)
    calls: list[Detail | None] = field(default_factory=list)  # what the step called, beside the kernel
    handled: list[Detail | None] = field(default_factory=list)  # and the handler of what it left
    bound: int | None = None  # cycles that no input takes more than
    why: str = ""  # there is no such bound
    npu_ns: int = 0  # the accelerator works so long, and the processor not at all
    own: bool = False  # code of the app's, its handler's too: a branch that no input of ours takes may be in it

    @property
    def most(self) -> int:
        return max(self.cycles)

    @property
    def exact(self) -> bool:
        """No input made a difference, and none could."""
        return len(set(self.instructions)) == 1 and (not self.own or self.bound == self.most)


@dataclass
class Events:
    """What one job, or what a source gives, adds to polls beside steps, in cycles; in instructions too, for who compares.

    A release by the clock is one poll's `due` and one's `begun`; so a release that waits, or that finds the queue full, is
    paid for, and so is the look at all releases as its job ends. One by a source or by a detector's boxes is one's `begun`.
    """

    due: int = 0
    begun: int = 0
    late: int = 0  # the deadline passes: the look at all, and the end if that is the policy
    boxes: int = 0  # what the job leaves releases others
    arrived: int = 0  # of a source: an entry is whole
    pushed: int = 0  # of a source: its driver hands one in


@dataclass
class Costed:
    """All that was counted, in cycles without a margin."""

    timing: Timing
    steps: dict[str, list[StepCost]]  # of each pipeline, in order
    post: int  # who submits a job
    idle: int  # a poll that finds nothing
    crowd: int  # that a full table adds to a step at most
    resume: int  # that a job set aside adds to it at most, once each time
    inputs: int  # frames of each job
    instructions: int  # of all that ran
    jobs: list[Events] = field(default_factory=list)  # of each of the app's jobs
    feeds: list[Events] = field(default_factory=list)  # of each of its sources that keep what arrives
    stirred: int = 0  # that a look at all releases adds to a poll
    rest: int = 0  # to go to sleep
    tick: int = 0  # the board's clock interrupt, where it has one
    doze: int = 0  # from an interrupt that ends a sleep to the kernel
    look: int = 0  # that looking how the accelerator goes adds to any poll
    npu_interrupt: int = 0  # by which the accelerator says that it is through
    notes: list[str] = field(default_factory=list)


def patterns(spec: Spec, count: int) -> list[np.ndarray]:
    """Inputs that are far apart: all lowest, all highest, noise, zeros, other noise."""
    dtype = DTYPES[spec.dtype]
    out = []
    for kind in KINDS[:count]:
        if dtype.kind == "f":
            rng = np.random.default_rng(KINDS.index(kind))
            made = {"lowest": -1.0, "highest": 1.0, "zeros": 0.0}.get(kind)
            out.append(np.full(spec.shape, made, dtype) if made is not None else rng.uniform(-1, 1, spec.shape).astype(dtype))
        else:
            low, high = (int(v) for v in (np.iinfo(dtype).min, np.iinfo(dtype).max))
            rng = np.random.default_rng(KINDS.index(kind))
            made = {"lowest": low, "highest": high, "zeros": 0}.get(kind)
            out.append(np.full(spec.shape, made, dtype) if made is not None else rng.integers(low, high + 1, spec.shape).astype(dtype))
    return out


def measure(
    app: App, timing: Timing, board_name: str, *, files: dict[str, Path] | None = None, crop: bool = True, profile: bool = False,
    compiler: str | None = None, advance: Callable[[], None] = lambda: None,
) -> tuple[Image, Costed]:  # fmt: skip
    """Build, run and count. Raises UserError for all that cannot be built, and for a job that ends with an error on all inputs."""
    from synapticos.compiler import Program
    from synapticos.emulator import Machine

    board = boards.find(board_name)
    image = compile_app(app, slots=max(len(app.jobs), 1), enforce=False)
    if image.host_stages:
        numpy = ", ".join(stage.__name__ for stage, _ in image.host_stages)
        raise UserError(f'app "{app.name}": {numpy} is a stage of the host (NumPy) and cannot run on {board.name}; write it with @syn.stage')
    if not app.jobs:
        raise UserError(f'app "{app.name}": has no job; app.job(pipeline) makes one')
    chain = toolchain.find(board.target, compiler)
    rows, inputs, frames = b"", 0, 0
    fed: dict[str, bytes] = {}
    notes: list[str] = []
    for j, job in enumerate(image.jobs):
        spec = job.pipeline.source.spec
        heavy = sum(step.model.compiled.info.macs for step in job.pipeline.steps if step.model is not None) > HEAVY
        given = patterns(spec, 3 if heavy else len(KINDS))
        given += _own_frames(job.pipeline.source, (files or {}).get(job.pipeline.source.name), crop, 1 if heavy else 2)
        frames = max(frames, len(given))
        number = [p.name for p in image.pipelines].index(job.pipeline.name)
        tensor = tensor_fields(spec)
        rows += lang.pack(
            board_side.MeasureRow, pipeline=number, input_at=inputs, priority=job.priority, deadline=job.deadline,
            released=int(job.released or job.cascade is not None), boxes=most_boxes(app, job), tensor=tensor,
        )  # fmt: skip
        inputs = _up(inputs + spec.bytes)
        fed[f"in{j}"] = b"".join(np.ascontiguousarray(f).tobytes() for f in given)
    from synapticos.app import clock, program

    blobs = {program.TABLES: image.tables, program.CONTAINERS: image.containers, program.RUNS: run_rows(image)[0], board_side.MEASURES: rows}
    parameters = firmware_parameters(image, max([inputs, 16, *(_up(feed.source.hop_bytes) for feed in image.feeds)]), profile)
    parameters |= {"WATCHDOG_US": 0, "WATCHDOGS": 0}  # what takes too long is to be seen
    if parameters.get("GUARD"):
        board = board.guarded()
    entry: Any = board_side.main
    beside: list[Any] = []
    if image.offloads:
        board, beside = with_accelerator(app, board), [program.npu_interrupt, sim_work]
    # The firmware's own main program is there too, though nothing calls it: whoever has fewer callers is compiled otherwise.
    beside.append(clock.run_all_by_clock if image.clocked else program.run_all)
    made = Program.of([entry, *beside], parameters, 4, image.lean_tables, blobs)
    elf, _ = link_program(made, entry, board, chain, beside)
    advance()
    machine = Machine(elf, board, files=fed)
    begins = [_symbol(machine.image, name)[0] for name in ("measured_post", "measured_poll", "measured_work", *(["board_interrupt"] if image.offloads else []))]
    inside = [_symbol(machine.image, name) for name in ("measure_post", "measure_poll", "measure_work", *(["measure_go"] if image.offloads else []))]
    costs = Costs(machine.image, timing)
    names, roots, members = _roots(made, image, elf, machine.image)
    meter = Meter(machine.cpu, costs, begins=begins, inside=inside, roots=roots, members=members)
    machine.npu.held = True
    machine.control.systick.due = lambda: NEVER  # type: ignore[method-assign] # exceptions come between pieces only
    machine.slice = 1 << 40  # each record is a pause anyway, and a block cut in two would count twice
    done = machine.run()
    if done.code != 0:
        from synapticos.boards.faults import explain

        told = explain(elf, done.text, dict(enumerate(made.files))).strip().splitlines()
        raise UserError(f"{app.name} on {board.name}: {done.reason or (told[-1] if told else f'ended with {done.code}')}")
    advance()
    costed_extra = (EXCEPTION + costs.straight("board_tick"), EXCEPTION + costs.straight("hal_idle") + costs.straight("board_tick"))
    looks = {d.piece: d.cycles for d in meter.details() if image.offloads and d.root == LOOK_ROOT}
    details: dict[int, Detail] = {}
    handled: dict[int, Detail] = {}
    own_roots = {names.index(p.handler.adapter.c_name) for p in image.pipelines if p.handler is not None and p.handler.adapter.c_name in names}
    for detail in meter.details():
        if not image.offloads or detail.root != LOOK_ROOT:
            (handled if detail.root in own_roots else details)[detail.piece] = detail
    worked = [end - start for start, end in zip(machine.npu.started, machine.npu.ended, strict=True)]
    costed = _collect(image, timing, done.files.get("steps", b""), meter.pieces(), details, handled, frames, notes, looks, worked)
    code, loops = Code(machine.image, costs), LoopSource(app)
    for job in image.jobs:
        steps, handler = costed.steps[job.pipeline.name], job.pipeline.handler
        for step in steps:
            step.own = job.pipeline.steps[step.stage].kind == "stage"
            if handler is not None and step is steps[-1]:
                own = names.index(handler.adapter.c_name) if handler.adapter.c_name in names else len(names)
                _with_handler(code, step, roots, own, _limit(job.pipeline.steps[step.stage]), loops)
                step.own = True
            elif step.own or not step.exact:
                _bound(code, step, roots, _limit(job.pipeline.steps[step.stage]), loops)
    costed.tick, costed.doze = costed_extra
    costed.instructions = done.instructions
    return image, costed


def most_boxes(app: App, job: JobDecl) -> int:
    """Of what a job leaves, as many boxes release others at most."""
    return max((cascade.most for cascade in app.cascades.values() if cascade.detector is job.pipeline), default=0)


def _own_frames(source: Any, file: Path | None, crop: bool, most: int) -> list[np.ndarray]:
    """The first frames of a source's own file; of one that has none, none."""
    if file is None and source.file is None:
        return []
    out = []
    for frame in source.read(file, crop=crop):
        out.append(frame)
        if len(out) == most:
            break
    return out


def _collect(image: Image, timing: Timing, data: bytes, pieces: list[tuple[int, int, int]], details: dict[int, Detail],
             handled: dict[int, Detail], frames: int, notes: list[str], looks: dict[int, int], worked: list[int]) -> Costed:  # fmt: skip
    size = lang.sizeof(board_side.MeasureRecord)
    records = [lang.unpack(board_side.MeasureRecord, data, at) for at in range(0, len(data), size)]
    called = [(i, piece) for i, piece in enumerate(pieces) if piece[0] != INTERRUPT]
    if len(records) != len(called):
        raise RuntimeError(f"{len(records)} records of {len(called)} pieces")
    found: dict[str, dict[tuple[int, ...], StepCost]] = {p.name: {} for p in image.pipelines}
    first: dict[tuple[int, ...], int] = {}  # cycles of the first frame alone
    out = Costed(timing, {}, 0, 0, 0, 0, frames, 0, [Events() for _ in image.jobs], [Events() for _ in image.feeds], notes=notes)
    out.look = max(looks.values(), default=0)
    out.npu_interrupt = max((EXCEPTION + cycles for kind, _, cycles in pieces if kind == INTERRUPT), default=0)
    device, begun = Device(), iter(worked)
    failed: dict[tuple[int, int], Status] = {}
    aside: dict[int, int] = {}
    first_poll = True
    nothing = 0  # the last poll that found that
    for record, (piece, (kind, instructions, cycles)) in zip(records, called, strict=True):
        cycles -= looks.get(piece, 0)
        if kind != record["kind"]:
            raise RuntimeError("the records are out of step with the pieces")
        job = record["job"]
        if kind == board_side.KIND_POST:
            out.post = max(out.post, cycles)
            aside, first_poll = {}, True
            continue
        if record["phase"] == NOTHING:
            out.idle = max(out.idle, cycles)
            nothing = cycles
            continue
        if record["phase"] > NOTHING:
            _event(out, record["phase"], job, cycles if kind == board_side.KIND_WORK else max(cycles - nothing, 0))
            continue
        if job == board_side.NOBODY:
            out.idle = max(out.idle, cycles)
            continue
        cursor: tuple[int, ...] = (record["stage"], record["step"], record["row"])
        name = image.jobs[job].pipeline.name
        away = on_npu(image.jobs[job])
        if away is not None and away[0] == record["stage"]:
            if record["began"]:
                layer = None if record["began"] == LOAD else record["step"] + record["taken"]
                device.tell(away[1], layer, next(begun))
            cursor = (*cursor, record["taken"], record["began"])
        status = Status(int(record["status"]))
        if record["phase"] == ALONE:
            if status not in (Status.INPROGRESS, Status.OK):
                failed[job, record["frame"]] = status
                # Of an app's own stage it is one of the ways that it may take, and other jobs wait for it.
                if image.jobs[job].pipeline.steps[record["stage"]].kind != "stage":
                    continue
            step = found[name].setdefault(cursor, _step(image, job, (record["stage"], record["step"], record["row"])))
            step.cycles.append(cycles)
            step.instructions.append(instructions)
            step.calls.append(details.get(piece))
            step.handled.append(handled.get(piece))
            if record["frame"] == 0 or (job, *cursor) not in first:
                first[job, *cursor] = cycles
        elif (job, *cursor) in first:
            more = cycles - first[job, *cursor]
            if record["phase"] == TOGETHER:
                if not first_poll:  # which gives all jobs their places
                    out.crowd = max(out.crowd, more)
            else:
                aside[job] = aside.get(job, 0) + max(more, 0)
                out.resume = max(out.resume, aside[job])
        first_poll = False
    for j, job in enumerate(image.jobs):
        ended = [status for (number, _), status in failed.items() if number == j]
        if not found[job.pipeline.name] or len(ended) >= frames:
            raise UserError(f'pipeline "{job.pipeline.name}": ended with {ended[0].name if ended else "nothing"} on each of {frames} inputs')
        if ended:
            notes.append(f"{job.pipeline.name}: {len(ended)} of {frames} inputs ended with {ended[0].name}, and are not counted")
    out.steps = {name: [steps[key] for key in sorted(steps)] for name, steps in found.items()}
    brings = [step.most for steps in found.values() for key, step in steps.items() if key[3:] == (0, LOAD)]
    for job in image.jobs:
        away = on_npu(job)
        if away is not None:
            _put_off(image, job, away[0], found[job.pipeline.name], device, max(brings), out)
    return out


def _event(out: Costed, phase: int, number: int, cycles: int) -> None:
    """What one record of an event says."""
    if phase == board_side.REST:
        out.rest = max(out.rest, cycles)
        return
    if phase == board_side.STIRRED:
        out.stirred = max(out.stirred, cycles)
        return
    names = {board_side.DUE: "due", board_side.BEGUN: "begun", board_side.LATE: "late", board_side.BOXES: "boxes"}
    names |= {board_side.ARRIVED: "arrived", board_side.PUSHED: "pushed"}
    name = names[phase]
    events = (out.feeds if name in ("arrived", "pushed") else out.jobs)[number]
    setattr(events, name, max(getattr(events, name), cycles))


def _put_off(image: Image, job: Any, stage: int, found: dict[tuple[int, ...], StepCost], device: Device, bring: int, out: Costed) -> None:
    """In place of the polls that were seen of a model on the accelerator, the steps of its longest way."""
    polled = {(key[1], bool(key[3]), key[4]): step.most for key, step in found.items() if key[0] == stage}
    steps = [
        StepCost(stage, piece.layer, 0, piece.name, [piece.cycles], [1], npu_ns=piece.ns)
        for piece in offloaded(image, job, polled, device, bring)
    ]
    before = [found[key] for key in sorted(found) if key[0] < stage]
    after = [found[key] for key in sorted(found) if key[0] > stage]
    out.steps[job.pipeline.name] = [*before, *steps, *after]


def _roots(made: Any, image: Image, elf: bytes, found: Any) -> tuple[list[str], list[int], list[list[tuple[int, int]]]]:
    """What a poll calls beside the kernel, layers' functions, built-ins, the app's stages and handlers: names, places, and
    the code of each."""
    nodes = read_nodes(elf)
    resolve(nodes, made)
    names: dict[str, None] = {}
    if image.offloads:
        names[next(n for n in nodes if n == "npu_look" or n.startswith("npu_look."))] = None  # LOOK_ROOT
    for table in image.lean_tables:
        if table in (RUN, BUILTINS, APP_STAGES):
            names |= dict.fromkeys(entry.c_name for entry in made.entries(table) if entry.c_name in nodes)
    roots, members = [], []
    for name in list(names)[:MOST_ROOTS]:
        reached, work = {name}, [name]
        while work:
            more = nodes[work.pop()].calls - reached
            reached |= more
            work += [n for n in more if n in nodes]
        roots.append(found.symbols[name] & ~1)
        members.append([(found.symbols[n] & ~1, (found.symbols[n] & ~1) + found.sizes[n]) for n in reached if n in found.symbols])
    return list(names)[:MOST_ROOTS], roots, members


def _limit(step: Step) -> int | None:
    """How often a loop of a built-in that sorts goes round at most, each time that it is entered: once a box, and never
    less often than a box has numbers; once a score. None: not known, or it does not depend on the data."""
    if step.kind == "builtin" and step.name in ("nms", "suppress"):
        return max(step.inputs[0].shape[0], step.inputs[0].shape[-1])
    if step.kind == "builtin" and step.name in ("argmax", "top_k"):
        return prod(step.inputs[0].shape)
    return None


def _bound(code: Code, step: StepCost, roots: list[int], limit: int | None, loops: LoopSource) -> None:
    """Of a step that took more or less by its data: its longest way, if its loops do not depend on that."""
    if len(step.calls) != len(step.cycles) or any(call is None for call in step.calls):
        step.why = "what it calls was not seen"
        return
    calls = [call for call in step.calls if call is not None]
    if len({call.root for call in calls}) != 1:
        step.why = "it calls one thing or another"
        return
    counts = []
    for call in calls:
        ran = [0] * (len(code.costs.count) + 1)
        for half, times in call.ran:
            ran[half] = times
        counts.append(ran)
    try:
        longest = Longest(code, counts, limit, loops).bound(roots[calls[0].root])
    except NoBound as reason:
        step.why = str(reason)
        return
    rest = max(cycles - call.cycles for cycles, call in zip(step.cycles, calls, strict=True))
    step.bound = rest + longest


def _with_handler(code: Code, step: StepCost, roots: list[int], own: int, limit: int | None, loops: LoopSource) -> None:
    """Of a job's last step, in whose poll its handler runs: the bounds of both, each without the other."""
    ran = [call.cycles if call is not None else 0 for call in step.handled]
    alone = replace(step, cycles=[cycles - one for cycles, one in zip(step.cycles, ran, strict=True)], instructions=[])
    if len(set(alone.cycles)) == 1 and not step.own:
        alone.bound = alone.most
    else:
        _bound(code, alone, roots, limit, loops)
    handler = StepCost(step.stage, None, 0, "handler", [one for one in ran if one], [], [call for call in step.handled if call is not None])
    if not handler.cycles:
        handler.bound, handler.why = None, "its handler was not seen"
    elif own < len(roots):
        _bound(code, handler, roots, None, loops)
    if alone.bound is not None and handler.bound is not None:
        step.bound = alone.bound + handler.bound
    else:
        step.why = alone.why if alone.bound is None else f"its handler: {handler.why}"


def _step(image: Image, job: int, cursor: tuple[int, int, int]) -> StepCost:
    stage, layer, row = cursor
    step = image.jobs[job].pipeline.steps[stage]
    if step.model is None:
        return StepCost(stage, None, row, f"{step.kind} {step.name}")
    info = step.model.compiled.info.layers[layer]
    rows = f" rows {row}.." if row else ""
    return StepCost(stage, layer, row, f"{step.name} layer {layer} {info.operator}{rows}")


def _symbol(image: Any, name: str) -> tuple[int, int]:
    """(begin, end) of a function, whatever gcc has appended to its name."""
    for symbol, at in image.symbols.items():
        if symbol == name or symbol.startswith((f"{name}.constprop", f"{name}.isra")):
            return at & ~1, (at & ~1) + image.sizes[symbol]
    raise RuntimeError(f"{name} is not in the firmware")


def _up(n: int) -> int:
    return -(-n // 16) * 16
