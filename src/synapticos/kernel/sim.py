"""A simulated accelerator: a backend that works beside the processor and gives the cpu backend's bytes.

It holds RESIDENT_MODELS models at once and takes, in microseconds, each part rounded up:

    a step    SIM_START_US + operations / SIM_OPERATIONS   (a step's operations: multiply-accumulates, or elements)
    a load    SIM_LOAD_US + container bytes / SIM_BYTES

What does the work is the board's: a device that keeps the time and, as that is over, calls `sim_work` on a core of its
own; or one that keeps the time only (`hal.npu_counts`), and then the driver does the work as the step is taken up.
Either way nothing is written to the job's frame before the time is over.

A step, or a load, that takes more than eight times as long, and 10 ms, is given up.
"""

from synapticos.lang import *
from synapticos.kernel import hal
from synapticos.kernel.backend import LOADING, Caps, StepRows
from synapticos.kernel.capacity import RESIDENT_MODELS
from synapticos.kernel.clock import MICROSECONDS
from synapticos.kernel.container import ModelMemory
from synapticos.kernel.cpu import cpu_clear, cpu_load, cpu_output, cpu_rows, cpu_run, model_step
from synapticos.kernel.cpu_backend import CPU_BACKEND, cpu_caps, cpu_need
from synapticos.kernel.divide import divide
from synapticos.kernel.npu import BACKEND_CAPS, BACKEND_CLEAR, BACKEND_LOAD, BACKEND_NEED, BACKEND_OUTPUT, BACKEND_RUN, BACKEND_STEP
from synapticos.kernel.offload import BACKEND_BRING, BACKEND_FINISH, BACKEND_LIMIT, BACKEND_LOOK, BACKEND_RESET, BACKEND_START
from synapticos.kernel.status import Status

SIM_START_US = param(u32, 20, max=1000000)  # to tell it of a step, and to hear that it is done
SIM_OPERATIONS = param(u32, 100, min=1, max=1000000)  # a microsecond
SIM_LOAD_US = param(u32, 100, max=1000000)
SIM_BYTES = param(u32, 64, min=1, max=1000000)  # of a model, a microsecond
SIM_GRACE_US: Final[u32] = 10000
SIM_NAME = rom(b"sim")
SIM_NAME_BYTES: Final[u32] = 3
BACKEND_SIM: Final[u32] = 2


@struct
class SimWork:
    """What the device is told: which rows of which step, and where all lies."""

    m: ModelMemory
    step: u32  # LOADING: only that the model is taken in
    row: u32
    row_end: u32
    reserved: u32


@fn
def sim_caps(caps: Caps) -> None:
    cpu_caps(caps)
    for i in range(SIM_NAME_BYTES):
        caps.name[i] = SIM_NAME[i]
    caps.asynchronous = True
    caps.exclusive = True
    caps.models = u16(RESIDENT_MODELS)


@fn
def sim_step(m: ModelMemory, step: u32, rows: StepRows) -> None:
    """A whole layer at once: nothing waits for the processor meanwhile."""
    rows.row = 0
    rows.row_end = cpu_rows(m, step)
    rows.tile = 0


@fn
def sim_us(m: ModelMemory, step: u32) -> u32:
    """Microseconds that a step takes, or loading the model."""
    if step == LOADING:
        return SIM_LOAD_US + (m.container_bytes + (SIM_BYTES - 1)) // SIM_BYTES
    record = model_step(m, step)
    return SIM_START_US + sat(u32, divide(u64(record.cost) + (SIM_OPERATIONS - 1), SIM_OPERATIONS))


@fn
def sim_limit(board: u32, m: ModelMemory, step: u32) -> u32:
    us = sim_us(m, step)
    return sat(u32, u64(us) * 8 + SIM_GRACE_US)


@fn
def sim_begin(board: u32, ticket: u32, m: ModelMemory, step: u32, row: u32, row_end: u32) -> Status:
    """Tell the device. Returns INPROGRESS; what the device says."""
    work = local(SimWork)
    copy(work.m, m)
    work.step = step
    work.row = row
    work.row_end = row_end
    us = sim_us(m, step)
    rate = hal.tick_rate(board)
    ticks = sat(u32, divide(u64(us) * rate + (MICROSECONDS - 1), u32(MICROSECONDS)))
    answer = hal.npu_start(board, ticket, min(ticks, 0x7FFFFFFF), view(u8, work), sizeof(SimWork))
    if answer == 0:
        return Status.INPROGRESS
    return sim_status(answer)


@fn(pure=True)
def sim_status(answer: i32) -> Status:
    """What the device says: OK, INPROGRESS, and for everything else IO."""
    if answer == 0:
        return Status.OK
    if answer == i32(Status.INPROGRESS):
        return Status.INPROGRESS
    return Status.IO


@fn
def sim_bring(board: u32, ticket: u32, m: ModelMemory, place: u32) -> Status:
    return sim_begin(board, ticket, m, LOADING, 0, 0)


@fn
def sim_look(board: u32, ticket: u32) -> Status:
    answer = hal.npu_status(board, ticket)
    return sim_status(answer)


@fn
def sim_finish(board: u32, m: ModelMemory, step: u32, row: u32, row_end: u32) -> Status:
    if hal.npu_counts(board):
        return cpu_run(m, step, row, row_end)
    return Status.OK


@fn
def sim_reset(board: u32) -> None:
    hal.npu_reset(board)


@fn
def sim_work(work: SimWork) -> Status:
    """What the device does, once its time is over."""
    if work.step == LOADING:
        return Status.OK
    return cpu_run(work.m, work.step, work.row, work.row_end)


SIM_BACKEND = {  # all rows of the backend tables in a build that has it
    BACKEND_CAPS: [*CPU_BACKEND[BACKEND_CAPS], sim_caps],
    BACKEND_LOAD: [*CPU_BACKEND[BACKEND_LOAD], cpu_load],
    BACKEND_NEED: [*CPU_BACKEND[BACKEND_NEED], cpu_need],
    BACKEND_STEP: [*CPU_BACKEND[BACKEND_STEP], sim_step],
    BACKEND_RUN: [*CPU_BACKEND[BACKEND_RUN], cpu_run],
    BACKEND_OUTPUT: [*CPU_BACKEND[BACKEND_OUTPUT], cpu_output],
    BACKEND_CLEAR: [*CPU_BACKEND[BACKEND_CLEAR], cpu_clear],
    BACKEND_BRING: [sim_bring] * 3,
    BACKEND_START: [sim_begin] * 3,
    BACKEND_LIMIT: [sim_limit] * 3,
    BACKEND_LOOK: [sim_look] * 3,
    BACKEND_FINISH: [sim_finish] * 3,
    BACKEND_RESET: [sim_reset] * 3,
}
