"""Guard: code of a stage or layer runs so that what it does wrong ends its own job and nothing else.

Only the call itself is guarded: the kernel's own work around it is not, nothing is half written when it begins, and a
fault in the kernel stops the board as it always does. The board says what went wrong, and forgets the call: its stack,
the registers, and a critical section that it was in. A build without GUARD calls directly.
"""

from synapticos.lang import *
from synapticos.kernel import hal
from synapticos.kernel.capacity import WATCHDOG_US, WATCHDOGS
from synapticos.kernel.container import ModelMemory
from synapticos.kernel.job import Fault, FaultKind, Job
from synapticos.kernel.kernel import Kernel
from synapticos.kernel.npu import BACKEND_RUN
from synapticos.kernel.stages.tables import BUILTINS
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import StageCall, StageFn

APP_STAGES = table(StageFn, [], open=True)  # an app's own


@struct
class StageWork:
    """A stage about to run."""

    call: StageCall
    number: u32
    status: Status
    app: bool  # in APP_STAGES, not in BUILTINS
    reserved: Shaped[Array[u8], 11]  # 128 bytes with one input: a board copies 32 at once


@struct
class LayerWork:
    """Rows of a model's step about to run."""

    memory: ModelMemory
    backend: u32
    step: u32
    row: u32
    row_end: u32
    status: Status
    reserved: Shaped[Array[u32], 6]  # 96 bytes


@fn
def run_stage_work(block: Ptr[u8]) -> None:
    """What the board calls for a stage: `block` is a StageWork."""
    work = view(StageWork, block)
    if work.app:
        work.status = APP_STAGES[work.number](work.call)
    else:
        work.status = BUILTINS[work.number](work.call)


@fn
def run_layer_work(block: Ptr[u8]) -> None:
    """What the board calls for a layer: `block` is a LayerWork."""
    work = view(LayerWork, block)
    work.status = BACKEND_RUN[work.backend](work.memory, work.step, work.row, work.row_end)


@fn(inline=True)
def watchdog(kernel: Kernel, job: Job) -> u32:
    """How long the job's stage, or rows of its layer, may take, in microseconds; 0: any time."""
    limit: u32 = WATCHDOG_US
    for i in range(WATCHDOGS):
        limit = kernel.pipelines.items[job.pipeline].stages[job.stage].watchdog_us[i]
    return limit


@fn(inline=True)
def open_call(kernel: Kernel, call: StageCall) -> None:
    """What a stage or handler may write and read of its own: its state, then its inputs and its configuration."""
    state = call.state
    if state is not None:
        hal.guard_open(kernel.board, state, call.state_bytes, True)
    for i in range(call.inputs):
        hal.guard_open(kernel.board, call.x_data[i], call.x[i].size, False)
    config = call.config
    if config is not None:
        hal.guard_open(kernel.board, config, call.config_bytes, False)


@fn(inline=False)
def guard_stage(kernel: Kernel, job: Job, work: StageWork) -> Status:
    """Run a stage: its status (`answered`), or that of its fault. It may write its result's room, its state, scratch and the call, and read
    its inputs and its configuration."""
    call = work.call
    hal.guard_open(kernel.board, call.y_data, call.y.size, True)
    scratch = call.scratch
    if scratch is not None:
        hal.guard_open(kernel.board, scratch, call.scratch_bytes, True)
    open_call(kernel, call)
    limit_us = watchdog(kernel, job)
    fault = view(Fault, job.x[0])
    kind = hal.guard_run(kernel.board, run_stage_work, view(u8, work), sizeof(StageWork), limit_us, view(u32, fault))
    if kind == u32(FaultKind.NONE):
        return answered(work.status)
    return guard_broken(kernel, job, kind)


@fn(inline=False)
def guard_layer(kernel: Kernel, job: Job, work: LayerWork) -> Status:
    """Run rows of a layer: its status (`answered`), or that of its fault. It may write its model's frame and state, and scratch."""
    m = work.memory
    hal.guard_open(kernel.board, m.frame, m.frame_bytes, True)
    if m.scratch_bytes != 0:
        hal.guard_open(kernel.board, m.scratch, m.scratch_bytes, True)
    if m.persistent_bytes != 0:
        hal.guard_open(kernel.board, m.persistent, m.persistent_bytes, True)
    hal.guard_open(kernel.board, m.input, m.input_bytes, False)
    hal.guard_open(kernel.board, m.container, m.container_bytes, False)
    limit_us = watchdog(kernel, job)
    fault = view(Fault, job.x[0])
    kind = hal.guard_run(kernel.board, run_layer_work, view(u8, work), sizeof(LayerWork), limit_us, view(u32, fault))
    if kind == u32(FaultKind.NONE):
        return answered(work.status)
    return guard_broken(kernel, job, kind)


@fn(inline=False)
def refused(status: Status) -> Status:
    """What a stage or layer says that has not ended well, as its job's status.

    IO for what would say something else of the job than that it failed (no such job, cancelled, late, still going on), and
    for a number that is no status: an overrun call may leave any.
    """
    if i32(status) > 0 or i32(status) < i32(Status.CANCELED):
        return Status.IO
    if status == Status.NOENT or status == Status.CANCELED or status == Status.TIMEDOUT or status == Status.INPROGRESS:
        return Status.IO
    return status


@fn(inline=True)
def answered(status: Status) -> Status:
    """What a guarded call left as its status: OK, or as `refused` says."""
    if status == Status.OK:
        return status
    return refused(status)


@fn(inline=True)
def count_broken(kernel: Kernel, kind: u32) -> Status:
    """A guarded call did not return: count it. Returns TIMEDOUT if it took longer than it may; else ACCES."""
    late = kind == u32(FaultKind.LATE)
    for guard in kernel.guards:
        if late:
            guard.watchdogs = wrap(u32, guard.watchdogs + 1)
        else:
            guard.faults = wrap(u32, guard.faults + 1)
    if late:
        return Status.TIMEDOUT
    return Status.ACCES


@fn(inline=False)
def guard_broken(kernel: Kernel, job: Job, kind: u32) -> Status:
    """`count_broken` of a stage or layer. The job's Fault lies where its first tensor was, which is lost with it."""
    job.faulted = True
    return count_broken(kernel, kind)
