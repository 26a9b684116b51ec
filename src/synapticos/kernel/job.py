"""Jobs: a slot each, from submission until somebody has read the result.

    FREE -> CLAIMED -> QUEUED -> RUNNING <-> SUSPENDED, WAITING -> DONE, ERROR or CANCELLED -> FREE

A job is a cursor (stage, step, row) and the tensors that the step before handed on; suspending one saves nothing.
A slot's id changes with each job, and everything outside names jobs by id: what was meant for one job never reaches
the next in the same slot.
"""

from synapticos.lang import *
from synapticos.kernel.container import Quant
from synapticos.kernel.capacity import GUARD, LATE_POLICIES, RELEASES
from synapticos.kernel.clock import NEVER  # noqa: F401
from synapticos.kernel.profile import JobTimes
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import STAGE_INPUTS, Tensor

BEST_EFFORT: Final[u32] = 0
NORMAL: Final[u32] = 1
REALTIME: Final[u32] = 2
CLASSES: Final[u32] = 3
FREE_FRAME: Final[u32] = 3  # the frame of jobs that are not planned


class JobState(u8, Enum):
    FREE = 0
    QUEUED = 1
    RUNNING = 2
    SUSPENDED = 3  # begun, and a more urgent one runs
    DONE = 4
    ERROR = 5
    CANCELLED = 6
    CLAIMED = 7  # being filled by whoever submits
    WAITING = 8  # begun, and somebody outside the kernel works for it


class HostWork(u8, Enum):
    """Who works for a job beside the kernel: the host, or an accelerator."""

    NONE = 0
    WANTED = 1  # poll has said so, or will
    TAKEN = 2  # the host has the operands
    DONE = 3  # and posted the result
    LINE = 4  # the accelerator works for another job
    AWAY = 5  # the accelerator works for this one, and may write to its frame
    BACK = 6  # and is done; the job's next step takes up what it left


class FaultKind(u32, Enum):
    """Why a guarded call did not return."""

    NONE = 0  # it did
    PROCESSOR = 1  # the processor did not allow what it did
    CHECK = 2  # a check of the program's own failed
    LATE = 3  # it took longer than it may


@struct
class Fault:
    """What went wrong in a stage or layer, as the board saw it. A place is the processor's, or a file and line."""

    kind: FaultKind
    pc: u32  # address of the instruction; 0: not known
    caller: u32  # where the function would have returned to; 0: not known
    causes: u32  # the processor's own word for it (CFSR); 0: none
    address: u32  # of the access; 0: none, or not known
    file: u32  # of a failed check: number of the Python file
    line: u32  # 0: not known


class Timed(u8, Enum):
    """What a job's `release` is."""

    COUNTER = 0  # the counter at its submission
    GIVEN = 1  # microseconds since boot
    KNOWN = 2  # ticks since boot, and `deadline` is worked out


class Late(u8, Enum):
    """What becomes of a job whose deadline passes, besides being counted."""

    FINISH = 0  # nothing: it runs on
    ABORT = 1  # it ends before its next step with TIMEDOUT
    SKIP = 2  # it ends with TIMEDOUT if it has not begun, or cannot make it as it would begin; else it runs on


RECLAIMABLE: Final[u32] = 2  # a flag of a job: once it has ended, its slot may go to another if no slot is free
TELL_LATE: Final[u32] = 1  # a flag of a job: its callback is also called at the miss, with INPROGRESS


@struct
class JobParams:
    """How a job is to run. Without them: NORMAL, no deadline, not pre-emptible, or what its pipeline says."""

    deadline_us: u32  # from the release; 0: none
    callback: u32  # in CALLBACKS, from 1; 0: none
    user: u32  # for the callback
    priority: u8
    preemptible: bool
    late: u8  # a Late
    flags: u8  # TELL_LATE, RECLAIMABLE
    release_us: u64  # microseconds since boot; 0: its submission


@struct
class JobDone:
    """What a callback is told; it holds nothing of the job's slot."""

    job: u32
    user: u32
    status: Status  # INPROGRESS: it goes on, and has just missed its deadline
    pipeline: u32  # slot of the pipeline
    outputs: u32  # 0 unless status is OK
    missed: bool  # its deadline
    reserved: Shaped[Array[u8], 3]
    output: Tensor  # the first


@struct
class Job:
    times: JobTimes
    deadline: u64  # ticks since boot; NEVER: none
    release: u64  # as `timed` says
    began: u64  # ticks since boot: its first step, and once it has ended its end
    id: u32
    sequence: u32  # of submission; wraps
    user: u32
    deadline_in: u32  # microseconds from the release; 0: none
    status: Status  # once it has ended; before, what the host posted of its stage
    y_at: u32  # in the arena: what the stage that runs is given room for
    y_room: u32
    frame_at: u32  # of the running model, from the arena's start
    steps: u32  # of the model that runs, 0 before it begins
    step: u32
    row: u32
    buffer: u32  # bytes of the buffer that x[0] lies in; 0: in none of ours
    used: u32  # bytes of its frame
    mark: u32  # a reset of the arena must not go below
    error_at: u32  # what ended it, or what its deadline kept it from: stage << 16 | layer
    frame_bytes: u32  # of the running model; 0: none runs
    state: JobState
    priority: u8
    pipeline: u8  # slot
    frame: u8  # which: a class's, or FREE_FRAME
    inputs: u8  # tensors in `x`
    preemptible: bool
    callback: u16
    late: Late
    flags: u8
    timed: Timed
    missed: bool  # its deadline has passed, and is counted
    releaser: u8  # release that began it, + 1; 0: it was submitted
    entry: u8  # of that release's feed, + 1: its input; 0: none
    faulted: bool  # a stage or layer of it did not return: x[0] holds its Fault
    expired: bool  # its late policy ends it
    collector: u8  # release + 1 whose reader takes its result; 0: none does
    handed: bool  # its result goes, or has gone, to a feed or to those that look at its boxes: nobody aborts it any more
    before: u8  # in its queue, slot + 1; 0: none
    behind: u8
    stage: u8
    host: HostWork
    turn: u8  # which end of a planned frame the next buffer takes
    holds_npu: bool  # the accelerator is its own
    detached: bool  # nobody will read it: free the slot when it ends
    abort: bool  # end it before its next step
    announced: bool  # its callback has returned
    into: bool  # the caller brought a buffer for the result
    x: Shaped[Array[Tensor], STAGE_INPUTS]  # what the step before left; at first the input, at last the result, or a Fault
    quant: Shaped[Array[Quant], STAGE_INPUTS]


@fn(pure=True)
def job_finished(job: Job) -> bool:
    return job.state == JobState.DONE or job.state == JobState.ERROR or job.state == JobState.CANCELLED


@fn(pure=True)
def job_begun(job: Job) -> bool:
    """Half done: it owns its frame."""
    return job.state == JobState.RUNNING or job.state == JobState.SUSPENDED or job.state == JobState.WAITING


@fn(inline=True)
def job_clear(job: Job) -> None:
    """What must not be left of the slot's last job. In the order of the fields, which makes words of it."""
    job.steps = 0
    job.step = 0
    job.row = 0
    job.buffer = 0
    job.used = 0
    job.mark = 0
    job.error_at = 0
    job.frame_bytes = 0
    if RELEASES != 0:
        job.releaser = 0
        job.entry = 0
        job.collector = 0
        job.handed = False
    if GUARD != 0:
        job.faulted = False
    if LATE_POLICIES != 0:
        job.expired = False
    job.stage = 0
    job.host = HostWork.NONE
    job.turn = 0
    job.holds_npu = False
    job.detached = False
    job.abort = False
    job.announced = False
    job.into = False
