"""Timed: a backend and a stage that compute nothing and let the time pass that a table of costs states.

The kernel, the tables of an app, its frames and its schedule stay what they are; only time is virtual. In place of a
model's container lies a TimedModel: what the model needs of memory, a TimedStep for each of its steps, a cost for each
call of the backend, and the tensors that the model leaves. A TimedStage lies where a stage's configuration would.

A model of row 2 works beside the processor: a step has three costs, to begin it, of the accelerator, and to take it up, and
its model is always there. When the work ends lies in the first bytes of the model's frame, for who lets time pass.

Outputs hold whatever lay in their memory before. Costs are in ticks of the board's counter and cover the whole
`kernel_poll` in which the step runs, so that what the kernel itself needs is not forgotten.
"""

from synapticos.lang import *
from synapticos.kernel import hal
from synapticos.kernel.backend import Caps, Need, StepRows
from synapticos.kernel.container import MAGIC, ModelMemory, Quant
from synapticos.kernel.model import NAME_BYTES
from synapticos.kernel.offload import BACKEND_BRING, BACKEND_FINISH, BACKEND_LIMIT, BACKEND_LOOK, BACKEND_RESET, BACKEND_START
from synapticos.kernel.npu import BACKEND_CAPS, BACKEND_CLEAR, BACKEND_LOAD, BACKEND_NEED, BACKEND_OUTPUT, BACKEND_RUN, BACKEND_STEP
from synapticos.kernel.capacity import RESIDENT_MODELS
from synapticos.kernel.sim import sim_look, sim_reset, sim_status
from synapticos.kernel.status import Status
from synapticos.kernel.stub import stub_caps, stub_clear, stub_load, stub_need, stub_output, stub_run, stub_step
from synapticos.kernel.tensor import StageCall, Tensor

TIMED_VERSION: Final[u32] = 0x314D4954  # "TIM1": no version that a container can have
TIMED_NAME = rom(b"timed")
TIMED_NAME_BYTES: Final[u32] = 5


@struct
class TimedModel:
    """80 bytes, then `steps` TimedStep, `costs` ticks of 32 bits, `outputs` TimedOutput at `outputs_at`."""

    magic: u32  # that of a container, and its name where a container has it
    version: u32
    name: Shaped[Array[u8], NAME_BYTES]
    frame_bytes: u32
    scratch_bytes: u32
    persistent_bytes: u32
    input_bytes: u32
    steps: u32
    costs: u32
    costs_at: u32  # from the start, a multiple of 4
    outputs: u32
    outputs_at: u32  # a multiple of 4
    reserved: u32


@struct
class TimedStep:
    """One step of a model: `rows` rows, at most `tile` of them a call."""

    first: u32  # in the costs: of the call from row 0 on; the next tile's follows
    rows: u16
    tile: u16  # 0: all in one call


@struct
class TimedOutput:
    """What the model leaves: offsets are from its frame's start."""

    tensor: Tensor
    quant: Quant


@struct
class TimedStage:
    """A stage that takes `ticks` and leaves a tensor like `y`: its size, type and shape."""

    ticks: u32
    y: Tensor


MODEL_BYTES = sizeof(TimedModel)
STEP_BYTES = sizeof(TimedStep)
OUTPUT_BYTES = sizeof(TimedOutput)
STAGE_BYTES = sizeof(TimedStage)


@fn
def timed_caps(caps: Caps) -> None:
    for i in range(TIMED_NAME_BYTES):
        caps.name[i] = TIMED_NAME[i]
    caps.dtypes = 0x3F
    caps.asynchronous = False
    caps.exclusive = False


@fn
def timed_load(m: ModelMemory) -> Status:
    """Returns OK; INVAL for what is no TimedModel, or has parts outside itself."""
    if m.container_bytes < MODEL_BYTES:
        return Status.INVAL
    head = view(TimedModel, m.container)
    if head.magic != MAGIC or head.version != TIMED_VERSION or head.costs_at % 4 != 0 or head.outputs_at % 4 != 0:
        return Status.INVAL
    size = u64(m.container_bytes)
    if MODEL_BYTES + u64(head.steps) * STEP_BYTES > size or head.costs_at + u64(head.costs) * 4 > size:
        return Status.INVAL
    if head.outputs_at + u64(head.outputs) * OUTPUT_BYTES > size:
        return Status.INVAL
    for i in range(head.steps):
        step = view(TimedStep, m.container[MODEL_BYTES + i * STEP_BYTES :])
        calls: u32 = 1
        if step.tile != 0:
            calls = (u32(step.rows) + step.tile - 1) // step.tile
        if step.rows == 0 or u64(step.first) + calls > head.costs:
            return Status.INVAL
    return Status.OK


@fn
def timed_need(m: ModelMemory, need: Need) -> None:
    head = view(TimedModel, m.container)
    need.frame_bytes = head.frame_bytes
    need.scratch_bytes = head.scratch_bytes
    need.persistent_bytes = head.persistent_bytes
    need.input_bytes = head.input_bytes
    need.steps = head.steps
    need.outputs = head.outputs
    need.raw = False


@fn
def timed_step(m: ModelMemory, step: u32, rows: StepRows) -> None:
    record = view(TimedStep, m.container[MODEL_BYTES + step * STEP_BYTES :])
    rows.row = 0
    rows.row_end = u32(record.rows)
    rows.tile = u32(record.tile)


@fn
def timed_run(m: ModelMemory, step: u32, row: u32, row_end: u32) -> Status:
    """Let the time pass that the rows take: the tile's that begins at `row`."""
    head = view(TimedModel, m.container)
    record = view(TimedStep, m.container[MODEL_BYTES + step * STEP_BYTES :])
    tile: u32 = 0
    if record.tile != 0:
        tile = row // record.tile
    costs = view(u32, m.container[head.costs_at :])
    hal.spend(0, costs[record.first + tile])
    return Status.OK


@fn
def timed_output(m: ModelMemory, i: u32, y: Tensor, quant: Quant) -> Status:
    head = view(TimedModel, m.container)
    output = view(TimedOutput, m.container[head.outputs_at + i * OUTPUT_BYTES :])
    copy(y, output.tensor)
    copy(quant, output.quant)
    return Status.OK


@fn
def timed_clear(m: ModelMemory) -> Status:
    fill(m.persistent, 0, m.persistent_bytes)
    return Status.OK


@fn
def timed_stage(call: StageCall) -> Status:
    """Returns OK; INVAL if its configuration is no TimedStage."""
    config = call.config
    if config is None or call.config_bytes != STAGE_BYTES:
        return Status.INVAL
    cost = view(TimedStage, config)
    hal.spend(0, cost.ticks)
    y = call.y
    y.size = cost.y.size
    y.dtype = cost.y.dtype
    y.ndim = cost.y.ndim
    copy(y.shape, cost.y.shape)
    return Status.OK


@fn
def beside_caps(caps: Caps) -> None:
    timed_caps(caps)
    caps.asynchronous = True
    caps.exclusive = True
    caps.models = u16(RESIDENT_MODELS)


@fn
def beside_cost(m: ModelMemory, step: u32, part: u32) -> u32:
    """Ticks: to begin a step (0), of the accelerator (1), to take it up (2)."""
    head = view(TimedModel, m.container)
    record = view(TimedStep, m.container[MODEL_BYTES + step * STEP_BYTES :])
    costs = view(u32, m.container[head.costs_at :])
    return costs[record.first + part]


@fn
def beside_load(m: ModelMemory) -> Status:
    """Returns OK; INVAL for what `timed_load` refuses, a step without three costs, or no room in the frame for when it ends."""
    check(timed_load(m))
    head = view(TimedModel, m.container)
    for i in range(head.steps):
        step = view(TimedStep, m.container[MODEL_BYTES + i * STEP_BYTES :])
        if u64(step.first) + 3 > head.costs:
            return Status.INVAL
    if head.frame_bytes < 4:
        return Status.INVAL
    return Status.OK


@fn
def beside_bring(board: u32, ticket: u32, m: ModelMemory, place: u32) -> Status:
    return Status.OK


@fn
def beside_start(board: u32, ticket: u32, m: ModelMemory, step: u32, row: u32, row_end: u32) -> Status:
    begin = beside_cost(m, step, 0)
    hal.spend(board, begin)
    ticks = beside_cost(m, step, 1)
    now = hal.ticks(board)
    ends = view(u32, m.frame)
    ends[0] = wrap(u32, now + ticks)
    answer = hal.npu_start(board, ticket, ticks, m.container, 0)
    if answer == 0:
        return Status.INPROGRESS
    return sim_status(answer)


@fn
def beside_limit(board: u32, m: ModelMemory, step: u32) -> u32:
    return 0


@fn
def beside_finish(board: u32, m: ModelMemory, step: u32, row: u32, row_end: u32) -> Status:
    ticks = beside_cost(m, step, 2)
    hal.spend(board, ticks)
    return Status.OK


BESIDE: Final[u32] = 2  # the number of the row that works beside the processor

TIMED_BACKEND = {  # the backends' rows in a build whose time is virtual: the timed one has the number of the cpu's
    BACKEND_CAPS: [stub_caps, timed_caps],
    BACKEND_LOAD: [stub_load, timed_load],
    BACKEND_NEED: [stub_need, timed_need],
    BACKEND_STEP: [stub_step, timed_step],
    BACKEND_RUN: [stub_run, timed_run],
    BACKEND_OUTPUT: [stub_output, timed_output],
    BACKEND_CLEAR: [stub_clear, timed_clear],
}


BESIDE_BACKEND = {  # and with OFFLOAD the one that works beside the processor
    **{table: [*rows] for table, rows in TIMED_BACKEND.items()},
    BACKEND_CAPS: [stub_caps, timed_caps, beside_caps],
    BACKEND_LOAD: [stub_load, timed_load, beside_load],
    BACKEND_NEED: [stub_need, timed_need, timed_need],
    BACKEND_STEP: [stub_step, timed_step, timed_step],
    BACKEND_RUN: [stub_run, timed_run, timed_run],
    BACKEND_OUTPUT: [stub_output, timed_output, timed_output],
    BACKEND_CLEAR: [stub_clear, timed_clear, timed_clear],
    BACKEND_BRING: [beside_bring] * 3,
    BACKEND_START: [beside_start] * 3,
    BACKEND_LIMIT: [beside_limit] * 3,
    BACKEND_LOOK: [sim_look] * 3,
    BACKEND_FINISH: [beside_finish] * 3,
    BACKEND_RESET: [sim_reset] * 3,
}


def timed_model(
    steps: list[tuple[int, int, list[int]]], outputs: list[dict] | None = None, quants: list[dict] | None = None, name: str = "",
    beside: bool = False, **needs: int
) -> bytes:
    """A TimedModel for the host to write: steps are (rows, tile, ticks of each call); `needs` are the fields in bytes.

    With `beside`, for row BESIDE, a step has three: to begin, of the accelerator, to take up. Without outputs the model leaves
    one byte.
    """
    from synapticos.lang import pack

    outputs = outputs or [{"size": 1, "ndim": 1, "shape": [1, 0, 0, 0]}]
    quants = quants or [{}] * len(outputs)
    needs.setdefault("frame_bytes", 16)
    records, costs = b"", b""
    for rows, tile, ticks in steps:
        assert len(ticks) == (3 if beside else -(-rows // tile) if tile else 1), "a cost for each call"
        records += pack(TimedStep, first=len(costs) // 4, rows=rows, tile=tile)
        costs += b"".join(t.to_bytes(4, "little") for t in ticks)
    costs_at = sizeof(TimedModel) + len(records)
    head = pack(
        TimedModel, magic=MAGIC, version=TIMED_VERSION, name=name.encode()[: NAME_BYTES - 1], steps=len(steps), costs=len(costs) // 4, costs_at=costs_at, outputs=len(outputs),
        outputs_at=costs_at + len(costs), **needs,
    )  # fmt: skip
    tail = b"".join(pack(TimedOutput, tensor=pack(Tensor, **y), quant=pack(Quant, **q)) for y, q in zip(outputs, quants, strict=True))
    return bytes(head + records + costs + tail)
