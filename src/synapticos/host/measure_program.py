"""The program that runs an app's jobs step by step on a board, so that each poll of the kernel can be measured.

It is built like the app's firmware, with this `main`. For each job, frame after frame of the file `in<job>`: post it,
then poll until it has ended. Then all jobs at once, which shows what looking through a full table costs; then, of each
pair of a job and one of a higher class, the first until it is half done, the second to its end and the first again.
Each call of `measured_post` and `measured_poll` leaves a MeasureRecord in the file `steps`, in order. While nothing can
run but an accelerator works, it sleeps.
"""

from synapticos.app.program import ARENA_BYTES, ARENA_SCRATCH, CONTAINERS, INPUT_BYTES, TABLES, app_start
from synapticos.kernel import hal
from synapticos.kernel.backend import NpuWork
from synapticos.kernel.capacity import MAX_JOBS, OFFLOAD
from synapticos.kernel.job import HostWork, JobState
from synapticos.kernel.kernel import Kernel
from synapticos.kernel.offload import npu_done
from synapticos.kernel.sched import Poll, find_slot, infer_detach, infer_post, kernel_poll
from synapticos.kernel.sim import sim_status
from synapticos.kernel.status import Status
from synapticos.kernel.tables import app_pipeline
from synapticos.kernel.tensor import Tensor
from synapticos.lang import (
    Array,
    Final,
    Ptr,
    Shaped,
    blob,
    console,
    fn,
    i32,
    ignore,
    local,
    rom,
    sizeof,
    static,
    struct,
    u8,
    u32,
    view,
)

MEASURES = blob()  # MeasureRow, one a job
MEASURE_KERNEL = static(Kernel)
MEASURE_ARENA = static(u8, ARENA_BYTES, align=16)
MEASURE_INPUTS = static(u8, INPUT_BYTES, align=16)
STEPS_FILE = rom(b"steps")
KIND_POST: Final[u32] = 0
KIND_POLL: Final[u32] = 1
NOBODY: Final[u32] = 0xFFFF


@struct
class MeasureRow:
    """How one job is fed."""

    pipeline: u32
    input_at: u32  # bytes; a multiple of 16
    priority: u32
    reserved: u32
    tensor: Tensor


@struct
class MeasureRecord:
    """One call: what ran in it, and where the job's cursor stood before."""

    kind: u32
    phase: u32  # 0 alone, 1 all at once, 2 set aside and resumed
    job: u32  # number of its row; NOBODY: the poll found nothing
    frame: u32
    stage: u32
    step: u32  # layer
    row: u32
    status: i32  # of the job once it has ended; what posting said
    taken: u32  # the accelerator had done a step of this job, which was taken up
    began: u32  # NpuWork that the accelerator was told to begin


@struct
class Measured:
    """What the program keeps: which job each row has now, and where the file ends."""

    at: u32  # bytes written
    phase: u32
    frame: u32
    reserved: u32
    ids: Shaped[Array[u32], MAX_JOBS]


MEASURE_STATE = static(Measured)
MEASURE_ROW_BYTES = sizeof(MeasureRow)
MEASURE_RECORD_BYTES = sizeof(MeasureRecord)


@fn(inline=False)
def measured_poll(kernel: Kernel) -> tuple[Poll, u32]:
    answer, job = kernel_poll(kernel)
    return answer, job


@fn(inline=False)
def measured_post(kernel: Kernel, pipe: u32, input: Tensor, data: Ptr[u8]) -> tuple[Status, u32]:
    status, job = infer_post(kernel, pipe, input, data, None, 0, None)
    return status, job


@fn(inline=False)
def measure_write(state: Measured, record: MeasureRecord) -> bool:
    done = hal.file_write(0, STEPS_FILE, state.at, view(u8, record), MEASURE_RECORD_BYTES)
    state.at += MEASURE_RECORD_BYTES
    return done == i32(MEASURE_RECORD_BYTES)


@fn(inline=False)
def measure_read(number: u32, at: u32, data: Ptr[u8], n: u32) -> bool:
    """`n` bytes at byte `at` of the file `in<number>`."""
    name = local(u8, 8)
    name[0] = 105
    name[1] = 110
    if number >= 10:
        name[2] = u8(48 + number // 10)
        name[3] = u8(48 + number % 10)
    else:
        name[2] = u8(48 + number)
    got = hal.file_read(0, name, at, data, n)
    return got == i32(n)


@fn(inline=False)
def measure_post(kernel: Kernel, state: Measured, number: u32) -> bool:
    """Post a frame of job `number`, from the file at the frame that the state says. False if there is none or it is refused."""
    row = view(MeasureRow, MEASURES[number * MEASURE_ROW_BYTES :])
    input = MEASURE_INPUTS[row.input_at : row.input_at + row.tensor.size]
    read = measure_read(number, state.frame * row.tensor.size, input, row.tensor.size)
    if not read:
        return False
    pipe = app_pipeline(kernel, row.pipeline)
    record = local(MeasureRecord)
    status, id = measured_post(kernel, pipe, row.tensor, input)
    record.kind = KIND_POST
    record.phase = state.phase
    record.job = number
    record.frame = state.frame
    record.status = i32(status)
    state.ids[number] = id
    written = measure_write(state, record)
    return written and status == Status.OK


@fn(pure=True)
def loading(kernel: Kernel, slot: u32) -> bool:
    """Does the accelerator take in a model for the job of this slot, or has it just done so?"""
    return kernel.npu.owner == slot + 1 and kernel.npu.work == NpuWork.LOAD


@fn
def npu_interrupt(ticket: u32, status: i32) -> None:
    """As `app.program` has it."""
    ignore(npu_done(MEASURE_KERNEL, ticket, sim_status(status)))


@fn(inline=False)
def measure_poll(kernel: Kernel, state: Measured) -> bool:
    """One poll and its record. False if nothing ran."""
    cursors = local(u32, 3 * MAX_JOBS)
    back = local(u32, MAX_JOBS)
    for i in range(MAX_JOBS):
        job = kernel.jobs[i]
        cursors[3 * i] = u32(job.stage)
        cursors[3 * i + 1] = job.step
        cursors[3 * i + 2] = job.row
        if OFFLOAD != 0 and job.state != JobState.FREE and not loading(kernel, i):
            back[i] = 1 if job.host == HostWork.BACK or job.host == HostWork.AWAY else 0
    record = local(MeasureRecord)
    ticket = kernel.npu.ticket
    answer, id = measured_poll(kernel)
    record.kind = KIND_POLL
    record.phase = state.phase
    record.frame = state.frame
    record.job = NOBODY
    if id != 0:
        for j in range(MAX_JOBS):
            if state.ids[j] == id:
                record.job = j
    slot = find_slot(kernel, id)
    if slot != MAX_JOBS and record.job != NOBODY:
        record.stage = cursors[3 * slot]
        record.step = cursors[3 * slot + 1]
        record.row = cursors[3 * slot + 2]
        record.taken = back[slot]
        if OFFLOAD != 0 and kernel.npu.ticket != ticket:
            record.began = u32(kernel.npu.work)
        job = kernel.jobs[slot]
        record.status = i32(Status.INPROGRESS)
        if job.state == JobState.DONE or job.state == JobState.ERROR:
            record.status = i32(job.status)
            state.ids[record.job] = 0
            ignore(infer_detach(kernel, id))
    written = measure_write(state, record)
    return written and answer == Poll.RAN


@fn(inline=False)
def measure_go(kernel: Kernel, state: Measured) -> bool:
    """One poll, and sleep if only the accelerator has something to do. False if nothing has."""
    ran = measure_poll(kernel, state)
    if OFFLOAD != 0 and not ran and kernel.npu.work != NpuWork.NOTHING:
        hal.idle(kernel.board)
        return True
    return ran


@fn
def measure_all(kernel: Kernel, state: Measured, count: u32) -> None:
    """Every phase."""
    for j in range(count):
        state.frame = 0
        more = measure_post(kernel, state, j)
        while more:
            while measure_go(kernel, state):
                pass
            state.frame += 1
            more = measure_post(kernel, state, j)
    state.frame = 0
    state.phase = 1
    for j in range(count):
        ignore_post = measure_post(kernel, state, j)
        assert ignore_post, "a job that ran alone is refused"
    while measure_go(kernel, state):
        pass
    state.phase = 2
    for low in range(count):
        for high in range(count):
            a = view(MeasureRow, MEASURES[low * MEASURE_ROW_BYTES :])
            b = view(MeasureRow, MEASURES[high * MEASURE_ROW_BYTES :])
            if a.priority < b.priority:
                first = measure_post(kernel, state, low)
                begun = measure_poll(kernel, state)
                second = measure_post(kernel, state, high)
                assert first and begun and second, "a job that ran alone is refused"
                while measure_go(kernel, state):
                    pass


@fn
def main() -> i32:
    status = app_start(
        MEASURE_KERNEL, 0, MEASURE_ARENA, ARENA_BYTES, ARENA_SCRATCH, TABLES, len(TABLES), CONTAINERS, len(CONTAINERS)
    )
    if status != Status.OK:
        console.print(f"the app does not start: {status}")
        return 1
    measure_all(MEASURE_KERNEL, MEASURE_STATE, len(MEASURES) // MEASURE_ROW_BYTES)
    return 0
