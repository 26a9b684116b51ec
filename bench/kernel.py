"""The kernel's own work in instructions of a Cortex-M33: exact, from the in-process emulator.

The thunk that carries a call's arguments is measured with a function that does nothing and taken off.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from pathlib import Path
from typing import Any

from unicorn import UC_HOOK_CODE

from synapticos.boards.host import HostExit
from synapticos.engine import Build
from synapticos.host.firmware import LEFT_OUT, MAIN_POLLS
from synapticos.kernel import hal
from synapticos.kernel.arena import Arena
from synapticos.kernel.compose import pipeline_add_model, pipeline_add_preprocess, pipeline_build, pipeline_create
from synapticos.kernel.advance import CALLBACKS, end_job
from synapticos.kernel.backend import Need, StepRows
from synapticos.kernel.container import ModelMemory, Quant
from synapticos.kernel.job import JobDone, JobParams
from synapticos.kernel.kernel import Kernel, kernel_boot
from synapticos.kernel.model import ModelInfo, ModelState
from synapticos.kernel.models import model_register, model_set_payload
from synapticos.kernel.npu import BACKEND_NEED, BACKEND_OUTPUT, BACKEND_RUN, BACKEND_STEP, npu_load_model
from synapticos.kernel.pipeline import APP_STAGE
from synapticos.kernel.region import REGION_MODEL, Regions
from synapticos.kernel.run import APP_STAGES
from synapticos.kernel.runtime import kernel_init
from synapticos.kernel.sched import infer_cancel, infer_get_result, infer_post, infer_wait, kernel_poll, pick
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import DType, Lifetime, StageCall, Tensor
from synapticos.lang import *

ARENA = 16384
SINE = Path(__file__).resolve().parents[1] / "examples" / "hello_world" / "sine.tflite"


@fn
def bench_stage(call: StageCall) -> Status:
    """Four bytes of nothing: a stage that costs as little as one can."""
    call.y.size = 48
    call.y.ndim = 1
    call.y.shape[0] = 48
    call.y.dtype = call.x[0].dtype
    return Status.OK


@fn
def bench_first(call: StageCall) -> Status:
    """Stops the processor at once: what ran until here is the way to a stage."""
    hal.exit(0, 0)
    return Status.OK


@fn
def bench_empty(kernel: Kernel) -> Status:
    return Status.OK


@fn
def bench_empty_post(
    kernel: Kernel, pipe: u32, input: Tensor | None, data: Ptr[u8] | None, out: Ptr[u8] | None, out_bytes: u32, params: JobParams | None
) -> tuple[Status, u32]:
    return Status.OK, 0


@fn
def bench_stage_alone(call: StageCall) -> Status:
    return bench_stage(call)


@fn
def bench_first_alone(call: StageCall) -> Status:
    return bench_first(call)


@fn
def bench_callback(kernel: Kernel, done: JobDone) -> None:
    pass


@fn
def bench_pick(kernel: Kernel) -> u32:
    return pick(kernel)


# A backend of one layer that does nothing, so that what is counted is the kernel's.
BENCH_FRAME: Final[u32] = 64


@fn
def bench_need(m: ModelMemory, need: Need) -> None:
    need.frame_bytes = BENCH_FRAME
    need.steps = 1
    need.outputs = 1


@fn
def bench_step(m: ModelMemory, step: u32, rows: StepRows) -> None:
    rows.row_end = 1


@fn(inline=False)
def bench_run(m: ModelMemory, step: u32, row: u32, row_end: u32) -> Status:
    fill(m.frame, 0, 8)
    return Status.OK


@fn
def bench_output(m: ModelMemory, i: u32, y: Tensor, quant: Quant) -> Status:
    y.offset = 0
    y.size = 8
    y.dtype = DType.INT8
    y.ndim = 1
    y.shape[0] = 8
    quant.scale = 0.5
    quant.zero = 1
    return Status.OK


ROOTS = [Arena.tensor, Arena.reset, Regions.set, kernel_boot, kernel_init, model_register, npu_load_model, model_set_payload, pipeline_create,
         pipeline_add_preprocess, pipeline_add_model, pipeline_build, infer_post, kernel_poll, infer_get_result, infer_cancel, infer_wait, end_job,
         bench_pick, bench_empty, bench_empty_post, bench_stage_alone, bench_first_alone]  # fmt: skip
BACKEND = {BACKEND_NEED: [bench_need], BACKEND_STEP: [bench_step], BACKEND_RUN: [bench_run], BACKEND_OUTPUT: [bench_output]}

# As `firmware_parameters` has it for a small app: one source and one tensor a step, no deadlines, no times of stages.
SMALL = {
    **LEFT_OUT, **MAIN_POLLS, "MAX_JOBS": 1, "STAGE_INPUTS": 1, "MAX_PIPELINES": 3, "MAX_MODELS": 1, "NPU_INPUT_BYTES": 4, "NPU_OUTPUT_BYTES": 4,
    "PIPELINE_CONFIG_BYTES": 4, "SCRATCH_DEPTH": 1, "PARTS": 0, "FRONT_ENDS": 0, "MODEL_STATE": 0, "DEADLINES": 0, "LATE_POLICIES": 0,
    "PROFILING": 0, "NOTES": 0, "NOTE_ARGS": 1, "LOG_LEVEL": 0, "LOG_RECORDS": 1, "LAYER_TIMES": 1,
}  # fmt: skip


class Bench:
    """A kernel with a model. `app`: in a small app's build, with planned frames."""

    def __init__(self, app: bool = False, **params: int) -> None:
        most = {**(SMALL if app else {}), **params}
        self.app = app
        tables = {APP_STAGES: [bench_stage, bench_first], CALLBACKS: [bench_callback], **BACKEND}
        self.e: Any = Build(ROOTS, tables=tables, MAX_PIPELINE_STAGES=8, **most).engine("cortex-m")
        e = self.e
        self.kernel = e.new(Kernel)
        self.memory = e.array(u8, ARENA)
        self.none = 0
        e(bench_empty, self.kernel)
        self.none = e.instructions
        self("boot", kernel_boot, self.kernel, 0)
        self("init", kernel_init, self.kernel, self.memory, ARENA, 1024)
        info = e.new(ModelInfo, name=b"bench", input_size=48, output_size=8, sram_required=0)
        _, self.handle = e(model_register, self.kernel, info)
        self.payload = e.array(u8, 64)
        e(Regions.set, self.kernel.regions, REGION_MODEL, self.payload, 64)
        assert e(model_set_payload, self.kernel, self.handle, REGION_MODEL, 0, 64, 0) == Status.OK
        model = self.kernel.models.items[0]
        model.state, model.exclusive, model.frame_bytes, model.steps, model.outputs = ModelState.LOADED, False, BENCH_FRAME, 1, 1
        self.input = e.array(u8, bytes(48))
        self.descriptor = e.new(Tensor, size=48, ndim=1, shape=[48], region=0, dtype=0)
        self.params = e.new(JobParams, priority=1)

    def __call__(self, name: str, function: Any, *arguments: Any) -> Any:
        out = self.e(function, *arguments)
        self.last = self.e.instructions - self.none
        return out

    def pipeline(self, stages: int, function: int = 0) -> int:
        e = self.e
        pipe = e(pipeline_create, self.kernel, None)
        for _ in range(stages):
            assert e(pipeline_add_preprocess, self.kernel, pipe, APP_STAGE + function, None, 0) == Status.OK
        assert e(pipeline_add_model, self.kernel, pipe, self.handle) == Status.OK
        assert e(pipeline_build, self.kernel, pipe) == Status.OK
        if self.app:  # as boot leaves it
            planned = self.kernel.pipelines.items[(pipe & 0xFF) - 1]
            planned.planned = True
            for i in range(stages + 1):
                planned.stages[i].capacity = 64
            planned.plan = 128
            for i in range(3):
                self.kernel.frames[i].at = 1024 + 128 * i
                self.kernel.frames[i].bytes = 128
        return int(pipe)

    def submit(self, pipe: int, out: Any = None) -> int:
        arguments = (self.kernel, pipe, self.descriptor, self.input, out, 0 if out is None else len(out), self.params)
        self.e(bench_empty_post, *arguments)
        none = self.e.instructions
        status, job = self.e(infer_post, *arguments)
        self.last = self.e.instructions - none
        assert status == Status.OK
        return int(job)

    def polls(self) -> list[int]:
        """Instructions of each poll until there is nothing to do."""
        out = []
        for _ in range(64):
            answer, _job = self("poll", kernel_poll, self.kernel)
            out.append(self.last)
            if int(answer) in (0, 2):
                return out
        raise AssertionError("the kernel never rests")


def to_first_step(app: bool) -> tuple[int, int]:
    """Submitting, and what passes from there to the first instruction of the job's first stage."""
    b = Bench(app)

    def until_exit(function: Any, *arguments: Any) -> int:
        before = b.e.core.instructions
        try:
            b.e(function, *arguments)
        except HostExit:
            return int(b.e.core.instructions - before)
        raise AssertionError("the stage was not reached")

    call = b.e.new(StageCall)
    alone = until_exit(bench_first_alone, call) - b.none  # the stage's own way to its end, and the thunk
    b.submit(b.pipeline(1, 1))
    submit = b.last
    return submit, until_exit(kernel_poll, b.kernel) - b.none - alone


def guard() -> dict[str, int]:
    """What it costs that a stage or layer runs behind memory protection, in firmware with GUARD, on each board."""
    import synapticos as syn
    from synapticos.boards import BOARDS
    from synapticos.emulator import Machine
    from synapticos.host.firmware import build_firmware

    out = {}
    for name in sorted(BOARDS, reverse=True):
        app = syn.App("guarded")
        model = app.model(SINE, outputs=("y",))
        app.job(app.pipeline("wave", app.frames("angle", (1, 1), "int8")).model(model).dequantize())
        built = build_firmware(app, name, profile=False, settings={"GUARD": 1})
        machine = Machine(built.elf, built.board, files={"in0": b"\0"})
        names = {n.partition(".")[0]: n for n in machine.image.symbols}  # gcc calls its variants of f f.constprop.0...
        counts = machine.count(*(names[n] for n in ("guard_stage", "run_stage_work", "guard_layer", "run_layer_work")))
        machine.run()
        for what in ("stage", "layer"):
            whole, work = (counts[names[n]] for n in (f"guard_{what}", f"run_{what}_work"))
            out[f"guarded {what} on {name}, less the {what}"] = whole[0] - work[0]
    return out


def suspend_and_resume() -> int:
    """What a job that is set aside once, and the one before it, take more together than each alone."""

    def spent(*, both: bool, which: int = 1) -> int:
        b = Bench(True, MAX_JOBS=2)
        pipe, total = b.pipeline(2), 0
        b.params.preemptible = True
        b.params.priority = which
        b.submit(pipe)
        b("poll", kernel_poll, b.kernel)
        total += b.last
        if both:
            b.params.priority = 2
            b.submit(pipe)
        total += sum(b.polls()[:-1])
        assert b.kernel.stats.preemptions == both
        return total

    return spent(both=True) - spent(both=False) - spent(both=False, which=2)


def queued(n: int) -> tuple[int, int]:
    """Picking among `n` queued jobs, and giving the last of them its place before all others, in a build of 64 slots."""
    b = Bench(MAX_JOBS=64)
    pipe = b.pipeline(1)
    b.kernel.hold = True

    def place(us: int) -> int:
        b.params.deadline_us = us
        b.submit(pipe)
        b("poll", kernel_poll, b.kernel)
        return b.last

    b("poll", kernel_poll, b.kernel)
    idle = b.last
    for i in range(n):
        placed = place(100_000 - 1000 * i)
    b.kernel.hold = False
    b("pick", bench_pick, b.kernel)
    return b.last, placed - idle


class Counted:
    """The instructions that pass while it is entered, by function."""

    def __init__(self, b: Bench) -> None:
        self.core = b.e.core
        self.starts = sorted((at & ~1, name) for name, at in self.core.symbols.items())
        self.count: Counter[str] = Counter()

    def __enter__(self) -> Counted:
        at = [start for start, _ in self.starts]

        def hook(uc: object, address: int, size: int, data: object) -> None:
            self.count[self.starts[bisect_right(at, address) - 1][1].partition(".")[0]] += 1

        self.hook = self.core.cpu.uc.hook_add(UC_HOOK_CODE, hook)
        return self

    def __exit__(self, *_: object) -> None:
        self.core.cpu.uc.hook_del(self.hook)

    def beside(self, *work: str) -> int:
        """All of them but those of these functions and of the way in."""
        return sum(n for name, n in self.count.items() if name not in work and not name.endswith("_thunk"))


def request(app: bool, stages: int = 1) -> int:
    """Submit with a callback and a buffer for the result, wait, read: less what stages and model take themselves."""
    b = Bench(app)
    pipe = b.pipeline(stages)
    b.params.callback = 1
    out, result = b.e.array(u8, 16), b.e.new(Tensor)
    job = b.submit(pipe, out)
    total = b.last
    with Counted(b) as counted:
        assert b.e(infer_wait, b.kernel, job, 10) == Status.OK
        assert b.e(infer_get_result, b.kernel, job, result) == Status.OK
    return total + counted.beside("bench_stage", "bench_run", "bench_callback")


def ending() -> int:
    """A job that has begun ends, and whoever waits for it is woken."""
    b = Bench()
    b.submit(b.pipeline(2))
    b("poll", kernel_poll, b.kernel)
    b("end", end_job, b.kernel, 0, Status.OK)
    return int(b.last)


def figures() -> dict[str, int]:
    """Name -> instructions."""
    b = Bench()
    e, out = b.e, {}
    arena = e.new(Arena)
    e.fill = 0
    arena = b.kernel.arena
    b("tensor", Arena.tensor, arena, 300, Lifetime.EPHEMERAL)
    out["one tensor allocation (300 bytes)"] = b.last
    b("tensor", Arena.tensor, arena, 30, Lifetime.EPHEMERAL)
    out["one tensor allocation (30 bytes)"] = b.last
    b("reset", Arena.reset, arena, 0)
    out["arena reset"] = b.last
    out["poll with nothing to do"] = b.polls()[-1]
    job = b.submit(b.pipeline(1))
    assert b("cancel", infer_cancel, b.kernel, job) == Status.OK
    out["cancel of a queued job"] = b.last
    b("boot", kernel_boot, b.kernel, 0)
    out["boot (every field of the kernel)"] = b.last
    for app, title in ((False, "composed at run time, defaults"), (True, "small app, planned")):
        b = Bench(app)
        job = b.submit(b.pipeline(1))
        out[f"{title}: submit"], result = b.last, b.e.new(Tensor)
        b.polls()
        assert b("result", infer_get_result, b.kernel, job, result) == Status.OK
        out[f"{title}: reading the result"] = b.last
        out[f"{title}: submit to the first instruction of the stage"] = sum(to_first_step(app))
        one, two, three = (request(app, n) for n in (1, 2, 3))
        assert three - two == two - one
        out[f"{title}: stage boundary (what one more stage adds, less the stage)"] = two - one
        out[f"{title}: whole request, with callback, waiter and result copy, less its stage and layer"] = one
    out["two slots, planned: suspend and resume, over both jobs alone"] = suspend_and_resume()
    out["composed at run time, defaults: complete and wake"] = ending()
    for n in (1, 4, 16, 64):
        out[f"64 slots: pick among {n} queued"], out[f"64 slots: give a job with a deadline its place before {n - 1} others"] = queued(n)
    return out | guard()
