"""The kernel's side of an app: boot on any engine, and the main program of its firmware.

`main` reads each job's frames from the file `in0`, `in1`... (the job's number), runs them through the kernel in rounds
of one frame a job, and writes what came out to `out0`, `out1`...: for each frame a FrameRecord, then its outputs, one
after the other, then the ticks of its stages and layers. At the end `handled` has a Handled for each pipeline, where any
has a handler. On an emulated board these are files of the host.
"""

from synapticos.kernel import hal
from synapticos.kernel.capacity import GUARD, HANDLERS, LAYER_TIMES, MAX_JOBS, MAX_PIPELINES, PROFILING
from synapticos.kernel.job import Fault
from synapticos.kernel.kernel import Kernel, kernel_boot
from synapticos.kernel.offload import npu_done
from synapticos.kernel.pipeline import Handled
from synapticos.kernel.region import REGION_CONTAINERS, REGION_TABLES
from synapticos.kernel.runtime import kernel_init
from synapticos.kernel.sched import (
    Poll,
    find_slot,
    infer_detach,
    infer_fault,
    infer_output,
    infer_post,
    kernel_poll,
    outcome,
)
from synapticos.kernel.sim import sim_status
from synapticos.kernel.status import Status
from synapticos.kernel.tables import app_boot, app_pipeline
from synapticos.kernel.tensor import MAX_STAGE_INPUTS, Tensor
from synapticos.lang import (
    Array,
    Final,
    Ptr,
    Shaped,
    blob,
    check,
    console,
    fn,
    i32,
    ignore,
    local,
    param,
    rom,
    sizeof,
    static,
    struct,
    u8,
    u32,
    view,
)

ARENA_BYTES = param(u32, 4096)  # scratch included; a multiple of 16
ARENA_SCRATCH = param(u32, 0)
INPUT_BYTES = param(u32, 16)  # room for one frame of each job
ALL: Final[u32] = 0xFFFFFFFF


@struct
class RunRow:
    """How `main` feeds one job."""

    pipeline: u32
    input_at: u32  # in the input memory, bytes; a multiple of 16
    tensor: Tensor  # what its source gives


@struct
class FrameRecord:
    """What a frame became. The outputs follow, then `stages` and `layers` ticks of 32 bits."""

    status: Status
    error_at: u32  # stage << 16 | layer
    outputs: u32
    size: Shaped[Array[u32], MAX_STAGE_INPUTS]  # of each output, bytes; of a job that a fault ended, of its Fault, which follows
    total: u32  # ticks
    frame: u32  # bytes of the arena that it used
    stages: u32
    layers: u32


@fn
def app_start(
    kernel: Kernel,
    board: u32,
    memory: Ptr[u8],
    memory_bytes: u32,
    scratch: u32,
    tables: Ptr[u8],
    tables_bytes: u32,
    containers: Ptr[u8],
    containers_bytes: u32,
) -> Status:
    """Boot a kernel over `memory` with the app that tables and containers describe. All three are 16-aligned.

    Returns what `kernel_init` and `app_boot` do.
    """
    kernel_boot(kernel, board)
    check(kernel_init(kernel, memory, memory_bytes, scratch))
    kernel.regions.set(REGION_TABLES, tables, tables_bytes)
    kernel.regions.set(REGION_CONTAINERS, containers, containers_bytes)
    return app_boot(kernel)


TABLES = blob()
CONTAINERS = blob()
RUNS = blob()  # RunRow, one a job
KERNEL = static(Kernel)
ARENA = static(u8, ARENA_BYTES, align=32)  # the grain of memory protection
INPUTS = static(u8, INPUT_BYTES, align=16)

RUN_ROW_BYTES = sizeof(RunRow)
RECORD_BYTES = sizeof(FrameRecord)


@fn
def file_name(name: Ptr[u8], base: u32, number: u32) -> None:
    """`in` (base 0) or `out` and a job's number below 100, ended by a 0."""
    at: u32 = 2
    name[0] = 105
    name[1] = 110
    if base != 0:
        name[0] = 111
        name[1] = 117
        name[2] = 116
        at = 3
    if number >= 10:
        name[at] = u8(48 + number // 10)
        at += 1
    name[at] = u8(48 + number % 10)
    name[at + 1] = 0


@fn
def put(name: Ptr[u8], at: u32, data: Ptr[u8], n: u32) -> bool:
    """Write `n` bytes at byte `at` of a file. False if that failed."""
    if n == 0:
        return True
    written = hal.file_write(0, name, at, data, n)
    return written == i32(n)


@fn
def write_frame(kernel: Kernel, job: u32, status: Status, name: Ptr[u8], start: u32) -> tuple[bool, u32]:
    """Write what a job became behind byte `start` of its file: the second result is where the file ends now."""
    record = local(FrameRecord)
    record.status = status
    slot = find_slot(kernel, job)
    if slot == MAX_JOBS:
        return False, start
    times = kernel.jobs[slot].times
    record.error_at = kernel.jobs[slot].error_at
    if PROFILING != 0:
        record.total = times.total
        record.frame = times.frame
        record.stages = times.stages
        if kernel.profile.layer_job == job:
            record.layers = min(kernel.profile.layers, LAYER_TIMES)
    y = local(Tensor)
    if status == Status.OK:
        record.outputs = u32(kernel.jobs[slot].inputs)
        for i in range(record.outputs):
            ignore(infer_output(kernel, job, i, y))
            record.size[i] = y.size
    fault = local(Fault, zero=False)
    if GUARD != 0:
        found = infer_fault(kernel, job, fault)
        if found == Status.OK:
            record.size[0] = sizeof(Fault)
    # In this order, for a write at byte 0 begins the file anew.
    good = put(name, start, view(u8, record), RECORD_BYTES)
    at = start + RECORD_BYTES
    if GUARD != 0 and status != Status.OK and good:
        good = put(name, at, view(u8, fault), record.size[0])
        at += record.size[0]
    for i in range(record.outputs):
        ignore(infer_output(kernel, job, i, y))
        data = kernel.regions.get(y.region, y.offset, y.size)
        if not good or data is None:
            return False, at
        good = put(name, at, data, y.size)
        at += y.size
    if PROFILING == 0:
        return good, at
    stages = put(name, at, view(u8, times.stage), record.stages * 4)
    at += record.stages * 4
    layers = put(name, at, view(u8, kernel.profile.layer), record.layers * 4)
    at += record.layers * 4
    return good and stages and layers, at


@fn
def run_job(kernel: Kernel, job: u32) -> Status:
    """Run the kernel until a job has ended: its status."""
    over, status = outcome(kernel, job)
    while not over:
        answer, _ = kernel_poll(kernel)
        over, status = outcome(kernel, job)
        if answer == Poll.IDLE and not over:
            hal.idle(0)
    return status


@fn
def run_app(kernel: Kernel) -> Status:
    """Every frame of every job. Returns OK; IO if a file cannot be written; what submitting says."""
    name = local(u8, 8)
    jobs = local(u32, MAX_JOBS)
    ends = local(u32, MAX_JOBS)
    count: u32 = len(RUNS) // RUN_ROW_BYTES
    frame: u32 = 0
    more = True
    while more:
        more = False
        for j in range(count):
            row = view(RunRow, RUNS[j * RUN_ROW_BYTES :])
            input = INPUTS[row.input_at : row.input_at + row.tensor.size]
            file_name(name, 0, j)
            got = hal.file_read(0, name, frame * row.tensor.size, input, row.tensor.size)
            jobs[j] = 0
            if got == i32(row.tensor.size):
                pipe = app_pipeline(kernel, row.pipeline)
                status, job = infer_post(kernel, pipe, row.tensor, input, None, 0, None)
                if status != Status.OK:
                    return status
                jobs[j] = job
                more = True
        for j in range(count):
            if jobs[j] != 0:
                ended = run_job(kernel, jobs[j])
                file_name(name, 1, j)
                fine, end = write_frame(kernel, jobs[j], ended, name, ends[j])
                if not fine:
                    return Status.IO
                ends[j] = end
                console.print(f"job {j} frame {frame}: {ended}")
                ignore(infer_detach(kernel, jobs[j]))
        frame += 1
    return Status.OK


@fn
def program_start(kernel: Kernel) -> bool:
    """Boot a program's kernel over its own memory and tables. False, and the console says why, if it does not start."""
    status = app_start(kernel, 0, ARENA, ARENA_BYTES, ARENA_SCRATCH, TABLES, len(TABLES), CONTAINERS, len(CONTAINERS))
    if status != Status.OK:
        console.print(f"the app does not start: {status}")
    return status == Status.OK


HANDLED_NAME = rom(b"handled")
HANDLED_BYTES = sizeof(Handled)


@fn
def write_handled(kernel: Kernel) -> None:
    """What became of each pipeline's handler; nobody may want to know."""
    at: u32 = 0
    for i in range(MAX_PIPELINES):
        for handled in kernel.pipelines.items[i].handled:
            good = put(HANDLED_NAME, at, view(u8, handled), HANDLED_BYTES)
            if not good:
                return
            at += HANDLED_BYTES


@fn
def program_end(kernel: Kernel, status: Status) -> i32:
    """What a program says at its end: its exit code."""
    if status != Status.OK:
        console.print(f"stopped: {status}")
        return 1
    if HANDLERS != 0:
        write_handled(kernel)
    used: u32 = 0
    for frame in kernel.frames:
        used += frame.used
    console.print(f"frames: {used} bytes used of an arena of {ARENA_BYTES}")
    return 0


@fn
def run_all(kernel: Kernel) -> i32:
    """The whole program, in a kernel of its own: its exit code."""
    started = program_start(kernel)
    if not started:
        return 1
    kernel.profile.trace = True
    status = run_app(kernel)
    return program_end(kernel, status)


@fn
def npu_interrupt(ticket: u32, status: i32) -> None:
    """The board calls it as the accelerator has ended the work of a ticket, where a build has one."""
    ignore(npu_done(KERNEL, ticket, sim_status(status)))


@fn
def main() -> i32:
    return run_all(KERNEL)
