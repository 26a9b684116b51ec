"""A whole kernel for tests: the stages and callbacks that they use, and a handle on it on any engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from synapticos.kernel import api
from synapticos.kernel.arena import Arena
from synapticos.kernel.backend import Need
from synapticos.kernel.container import ModelMemory, Quant
from synapticos.kernel.cpu_backend import CPU_BACKEND
from synapticos.kernel.due import releases_start
from synapticos.kernel.job import JobDone, JobParams
from synapticos.kernel.kernel import Kernel, kernel_boot, kernel_time
from synapticos.kernel.layers import variants
from synapticos.kernel.layers.tables import RUN, VALIDATE, run_functions, validate_functions
from synapticos.kernel.memory import mem_init_pool
from synapticos.kernel.model import ModelInfo
from synapticos.kernel.models import model_set_payload
from synapticos.kernel.npu import BACKEND_CAPS, BACKEND_CLEAR, BACKEND_LOAD, BACKEND_NEED, BACKEND_OUTPUT, BACKEND_RUN, BACKEND_STEP
from synapticos.kernel.pipeline import APP_STAGE, HOST_STAGE
from synapticos.kernel.region import REGION_ARENA, Regions
from synapticos.kernel.run import APP_STAGES
from synapticos.kernel.runtime import prof_get_layer_ticks, prof_get_stage
from synapticos.kernel.sched import CALLBACKS, infer_cancel, infer_error_at, infer_get_result, infer_post, infer_submit, sched_quiesce
from synapticos.kernel.stages.tables import stage_tables
from synapticos.kernel.status import Status
from synapticos.kernel.stub import stub_caps, stub_load, stub_need, stub_run, stub_step
from synapticos.kernel.stub import stub_output as stub_output_of
from synapticos.kernel.tensor import StageCall, Tensor
from synapticos.lang import *

ARENA, SCRATCH = 8192, 1024
INT8, UINT8, INT16, FLOAT16, FLOAT32 = range(5)
PERSISTENT, EPHEMERAL, SHARED = range(3)
BEST_EFFORT, NORMAL, REALTIME = range(3)


@fn
def pass_through(call: StageCall) -> Status:
    if call.y.size < call.x[0].size:
        return Status.NOMEM
    move(call.y_data, call.x_data[0], call.x[0].size)
    copy(call.y, call.x[0])
    return Status.OK


@fn
def failing(call: StageCall) -> Status:
    return Status.IO


@fn
def boasting(call: StageCall) -> Status:
    """Says that it wrote one byte more than it had room for."""
    call.y.size += 1
    call.y.ndim = 1
    call.y.shape[0] = call.y.size
    return Status.OK


@fn
def misshapen(call: StageCall) -> Status:
    """A shape that promises more than the size."""
    call.y.size = 4
    call.y.ndim = 2
    call.y.shape[0] = 65536
    call.y.shape[1] = 65536
    return Status.OK


@fn
def halving(call: StageCall) -> Status:
    """Leaves the first half of what it is given."""
    n = call.x[0].size // 2
    move(call.y_data, call.x_data[0], n)
    call.y.size = n
    call.y.dtype = call.x[0].dtype
    call.y.ndim = 1
    call.y.shape[0] = n
    return Status.OK


@fn
def dirty(call: StageCall) -> Status:
    """Fills all its room with 0x55, then leaves 16 of it."""
    fill(call.y_data, 0x55, call.y.size)
    call.y.size = 16
    call.y.dtype = call.x[0].dtype
    call.y.ndim = 1
    call.y.shape[0] = 16
    return Status.OK


@fn
def counting(call: StageCall) -> Status:
    """Counts its runs in its state, and leaves 48 times the count."""
    state = call.state
    if state is None or call.state_bytes != 4:
        return Status.INVAL
    count = view(u32, state)
    count[0] += 1
    fill(call.y_data, u8(count[0]), 48)
    call.y.size = 48
    call.y.dtype = call.x[0].dtype
    call.y.ndim = 1
    call.y.shape[0] = 48
    return Status.OK


PASS, FAIL, BOAST, MISSHAPE, HALVE, DIRTY, COUNT = (APP_STAGE + i for i in range(7))
ON_HOST = HOST_STAGE + 7


@fn
def note_done(kernel: Kernel, done: JobDone) -> None:
    """Keep what a callback is told: in the log, where every engine's test can read it."""
    kernel.log.write(2, done.job, 4, done.user, wrap(u64, i64(i32(done.status))), done.outputs, done.output.size)


@fn
def read_and_resubmit(kernel: Kernel, done: JobDone) -> None:
    """Read the job's result in its callback and submit the next one into the slot, once for each `user` left."""
    kernel.log.write(1, done.job, 2, done.user, wrap(u64, i64(i32(done.status))), 0, 0)
    result = local(Tensor)
    ignore(infer_get_result(kernel, done.job, result))
    if done.user != 0:
        x = local(Tensor)
        x.region = u8(REGION_ARENA)
        x.size = 48
        x.ndim = 1
        x.shape[0] = 48
        params = local(JobParams)
        params.priority = 1
        params.callback = 2
        params.user = done.user - 1
        id = infer_submit(kernel, done.pipeline + 1, x, params)
        kernel.log.write(2, id, 0, 0, 0, 0, 0)


@fn
def post_at(kernel: Kernel, pipe: u32, x: Tensor, data: Ptr[u8], at: u32, out: Ptr[u8], out_at: u32) -> Status:
    """Memory of the caller's from byte `at` and `out_at` on; what is taken is withdrawn."""
    status, id = infer_post(kernel, pipe, x, data[at:], out[out_at:], 48, None)
    if status == Status.OK:
        return infer_cancel(kernel, id)
    return status


@fn
def odd_need(m: ModelMemory, need: Need) -> None:
    stub_need(m, need)
    need.frame_bytes = 64
    need.persistent_bytes = 64
    need.input_bytes = 48
    need.raw = False


@fn
def odd_output(m: ModelMemory, i: u32, y: Tensor, quant: Quant) -> Status:
    """Ten bytes; how many dimensions it says, and how large the first, are the payload's first two bytes."""
    check(stub_output_of(m, i, y, quant))
    y.ndim = m.container[0]
    y.shape[0] = m.container[1]
    return Status.OK


@fn
def odd_clear(m: ModelMemory) -> Status:
    """Fails if the payload's third byte is not 0."""
    if m.container[2] != 0:
        return Status.IO
    return Status.OK


ODD = 2  # a backend that remembers, and states what it likes
NOTE_DONE, RESUBMIT = 1, 2
BACKENDS = {
    BACKEND_CAPS: stub_caps, BACKEND_LOAD: stub_load, BACKEND_NEED: odd_need, BACKEND_STEP: stub_step, BACKEND_RUN: stub_run,
    BACKEND_OUTPUT: odd_output, BACKEND_CLEAR: odd_clear,
}  # fmt: skip
# Those of the networks that these tests run; that all others compute right is shown where they are alone, and each build
# of a kernel with all of them takes three times as long.
LAYERS = {variants.DENSE_I8, variants.CONV_I8, variants.CONV_1X1_I8, variants.DEPTHWISE_3X3_I8, variants.ADD_I8, variants.AVERAGE_POOL_I8, variants.CONCAT_I8}
PROCESSORS = {"resize", "normalize", "quantize", "softmax", "argmax"}
TABLES = {
    APP_STAGES: [pass_through, failing, boasting, misshapen, halving, dirty, counting], CALLBACKS: [note_done, read_and_resubmit],
    **{t: [*CPU_BACKEND[t], row] for t, row in BACKENDS.items()}, **stage_tables(PROCESSORS), VALIDATE: validate_functions(LAYERS), RUN: run_functions(LAYERS),
}  # fmt: skip
ROOTS = (
    *dict.fromkeys([
        *api.EXPORTS.values(), *Arena.__kernel_methods__.values(), Regions.set, mem_init_pool, model_set_payload, prof_get_stage,
        prof_get_layer_ticks, infer_error_at, sched_quiesce, kernel_boot, kernel_time, releases_start, post_at,
    ]),
)  # fmt: skip
OPTIONS: dict[str, Any] = dict(MAX_JOBS=4, SCRATCH_POOL_SIZE=SCRATCH, LOG_RECORDS=128, tables=TABLES)
TIMED = {**OPTIONS, "RELEASES": 3, "FEEDS": 2, "FEED_ENTRIES": 4, "MAX_WAITING": 4}  # with releases and feeds


ONLY_CHECKED = 'interrupts between two lines are played on checked Python: mark the test only("checked")'


class World:
    """One kernel on an engine (or on all three at once): `w("infer_wait", id, 5)` calls by the function's name."""

    names = {f.c_name: f for f in ROOTS}

    def __init__(self, engine: Any, arena: int = ARENA, scratch: int = SCRATCH, up: bool = True) -> None:
        self.e = engine
        self.kept: list[Any] = []  # memory that the kernel was told of
        self.kernel = engine.new(Kernel)
        self.memory = engine.array(u8, arena)
        for one in getattr(engine, "each", [engine]):
            one.board.now = 0  # engines are shared by tests: what another did to the clock is not this one's
        self.board = getattr(getattr(engine, "board", None), "number", 0)
        engine(kernel_boot, self.kernel, self.board)
        if up:
            assert self("kernel_init", self.memory, arena, scratch) == Status.OK

    def __call__(self, name: str, *arguments: Any) -> Any:
        return self.e(self.names[name], self.kernel, *arguments)

    @contextmanager
    def interrupted(self, act: Callable[[], None]) -> Iterator[None]:
        """`act()` before and after each critical section, as an interrupt or another thread would."""
        assert self.e.name == "checked", ONLY_CHECKED
        board, within = self.e.board, []
        enter, leave = board.critical_enter, board.critical_exit

        def interrupt() -> None:
            if not within:
                within.append(True)
                act()
                within.clear()

        def entered(number: int) -> int:
            interrupt()
            within.append(True)
            return enter(number)

        def left(number: int, state: int) -> None:
            leave(number, state)
            within.pop()
            interrupt()

        board.critical_enter, board.critical_exit = entered, left
        try:
            yield
        finally:
            board.critical_enter, board.critical_exit = enter, leave

    @contextmanager
    def counter_read(self, act: Callable[[], None]) -> Iterator[None]:
        """`act()` a microsecond after the counter is read for the first time, as an interrupt or another thread would."""
        assert self.e.name == "checked", ONLY_CHECKED
        board, todo = self.e.board, [act]
        ticks = board.ticks

        def read(number: int) -> int:
            value = ticks(number)
            if todo:
                one = todo.pop()
                self.advance_us(1)
                one()
            return value

        board.ticks = read
        try:
            yield
        finally:
            board.ticks = ticks

    # Memory

    def tensor(self, shape: list[int], dtype: int = INT8, lifetime: int = EPHEMERAL, data: Any = None) -> Any:
        """A tensor in the arena, filled with `data`; None if it is refused."""
        t = self("mem_tensor_alloc", self.e.array(u32, shape), len(shape), dtype, lifetime)
        if t is not None and data is not None:
            self.write(t.offset, bytes(data))
        return t

    def write(self, at: int, data: bytes) -> None:
        for i, byte in enumerate(data):
            self.memory[at + i] = byte

    def read(self, at: int, n: int) -> bytes:
        return bytes(self.memory)[at : at + n]

    def data(self, t: Any) -> bytes:
        assert t.region == int(REGION_ARENA)
        return self.read(t.offset, t.size)

    def stats(self) -> Any:
        from synapticos.kernel.memory import MemStats

        out = self.e.new(MemStats)
        assert self("mem_get_stats", out) == Status.OK
        return out

    # Models and pipelines

    def model(self, name: str = "pipe_test", input: int = 48, output: int = 10, sram: int = 256, **fields: Any) -> int:
        info = self.e.new(ModelInfo, name=name.encode(), input_size=input, output_size=output, sram_required=sram, **fields)
        handle = self.e.array(u32, 1)
        assert self("api_model_register", info, handle) == Status.OK
        return int(handle[0])

    def hand_model(self, n: int = 64) -> None:
        """Load `n` bytes of model by hand."""
        assert self("npu_load_model", self.keep(self.e.array(u8, n)), n) == Status.OK

    def keep(self, buffer: Any) -> Any:
        self.kept.append(buffer)
        return buffer

    def pipeline(self, model: int, pre: tuple[int, ...] = (), post: tuple[int, ...] = ()) -> int:
        pipe = self("pipeline_create", None)
        assert pipe != 0
        for stage in pre:
            assert self("pipeline_add_preprocess", pipe, stage, None, 0) == Status.OK
        assert self("pipeline_add_model", pipe, model) == Status.OK
        for stage in post:
            assert self("pipeline_add_postprocess", pipe, stage, None, 0) == Status.OK
        assert self("pipeline_build", pipe) == Status.OK
        return int(pipe)

    def simple(self) -> int:
        """A model loaded by hand, and a pipeline of nothing else."""
        self.hand_model()
        return self.pipeline(self.model())

    # Jobs

    def descriptor(self, size: int, region: int = 0, at: int = 0, dtype: int = INT8) -> Any:
        return self.e.new(Tensor, size=size, ndim=1, shape=[size], region=region, offset=at, dtype=dtype)

    def submit(self, pipe: int, data: bytes, priority: int | None = None, callback: int = 0, user: int = 0, deadline: int = 0,
               preemptible: bool = False, out: Any = None, late: int = 0, flags: int = 0, release: int = 0) -> int:  # fmt: skip
        """The job's id, its input in memory of the caller's; 0 if it is refused."""
        params = None
        if priority is not None:
            params = self.e.new(JobParams, priority=priority, callback=callback, user=user, deadline_us=deadline, preemptible=preemptible,
                                late=late, flags=flags, release_us=release)  # fmt: skip
        buffer = self.keep(self.e.array(u8, data))
        status, id = self("infer_post", pipe, self.descriptor(len(data)), buffer, out, 0 if out is None else len(out), params)
        self.status = status
        return int(id)

    def advance_us(self, us: int) -> None:
        for one in getattr(self.e, "each", [self.e]):
            rate = int(self.kernel.clock.rate)
            assert us * rate % 10**6 == 0
            one.board.advance(us * rate // 10**6)

    def frames_for(self, pipe: int) -> None:
        """Let a pipeline run in planned frames of 1 KB, one a class, as an app's do."""
        p = self.kernel.pipelines.items[(pipe & 0xFF) - 1]
        p.planned = True
        for i in range(p.count):
            p.stages[i].capacity = 192
        for c in range(3):
            self.kernel.frames[c].at, self.kernel.frames[c].bytes = 2048 + 1024 * c, 1024

    def run(self, most: int = 1000) -> list[tuple[int, int]]:
        """Poll until there is nothing to do; the answers but the last."""
        out = []
        for _ in range(most):
            answer, id = self("kernel_poll")
            if answer in (0, 2):
                return out
            out.append((int(answer), int(id)))
        raise AssertionError(f"still at it after {most} polls")

    def result(self, id: int) -> bytes:
        """The bytes of a job's first output; the slot is free afterwards."""
        t = self.e.new(Tensor)
        data = self.e.array(u8, 4096)
        status, n = self("infer_read", id, 0, data, 4096)
        assert status == Status.OK
        assert self("infer_get_result", id, t) == Status.OK
        return bytes(data)[:n]

    def events(self) -> list[tuple[int, ...]]:
        """What `note_done` kept, oldest first: (job, user, status, outputs)."""
        out = []
        log = self.kernel.log
        for i in range(log.written):
            record = log.records[i]
            if record.level == 2 and record.count == 4:
                status = int(record.args[1])
                out.append((int(record.text), int(record.args[0]), status - (1 << 64) if status >> 63 else status, int(record.args[2])))
        return out


def stub_output(data: bytes) -> bytes:
    """What the stub answers, in Python."""
    out = bytearray(10)
    out[sum(data) % 10] = 127
    return bytes(out)
