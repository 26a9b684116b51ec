"""Scheduler: one step at a time of the most urgent job.

`poll` takes what was posted, picks a job, runs its next step and says what there is to do; looping and sleeping are
its caller's. Interrupts and other threads only claim a free slot, fill it and post a flag, each in a few instructions
inside the board's critical section, so `infer_submit` answers at once from anywhere and nothing can overflow.

A job owns its frame from first step to last; a more urgent one may run between two of its steps if it is pre-emptible
and the other has a frame of its own.
"""

from synapticos.lang import *
from synapticos.kernel import hal
from synapticos.kernel.advance import CALLBACKS, CallbackFn, advance, free_slot, reclaim_slot, release_job, take_host_stage  # noqa: F401
from synapticos.kernel.backend import NpuWork
from synapticos.kernel.capacity import COMPOSING, DEADLINES, GUARD, HOST_STAGES, LATE_POLICIES, MAX_JOBS, OFFLOAD, ONE_THREAD, PROFILING, RECLAIM, RELEASES
from synapticos.kernel.clock import Clock
from synapticos.kernel.deadline import begin_deadline, see_late, skip
from synapticos.kernel.due import release_due
from synapticos.kernel.job import CLASSES, FREE_FRAME, REALTIME, Fault, HostWork, Job, JobState, Late, job_begun, job_finished
from synapticos.kernel.kernel import Inside, Kernel
from synapticos.kernel.offload import npu_idle, npu_look
from synapticos.kernel.pipeline import PipelineState
from synapticos.kernel.order import FEW_JOBS, goes_before, put_in, take_out
from synapticos.kernel.run import fill_call
from synapticos.kernel.status import Status
from synapticos.kernel.submit import claim, infer_post, infer_submit  # noqa: F401
from synapticos.kernel.tensor import StageCall, Tensor


class Poll(u8, Enum):
    """What `poll` found."""

    IDLE = 0  # nothing to do until something is posted
    RAN = 1  # one step of the job given, or it was skipped; call again
    HOST = 2  # the job given wants a stage that the host runs: `stage_take`, then `stage_done`
    BUSY = 3  # called from a stage or a callback, or by two at once


@fn
def infer_set_max_concurrent(kernel: Kernel, n: u32) -> Status:
    """Cap on unfinished jobs. Returns OK; INVAL unless 1 <= n <= MAX_JOBS."""
    if n == 0 or n > MAX_JOBS:
        return Status.INVAL
    kernel.cap = n
    if RELEASES != 0:
        hal.wake(kernel.board)
    return Status.OK


# ---- dispatch


@fn
def kernel_poll(kernel: Kernel) -> tuple[Poll, u32]:
    """Take what was posted and run at most one step (with RUN_ON, as many as nothing could come between). The second
    result is the id of the job that the first is about."""
    entered = enter_poll(kernel)
    if not entered:
        return Poll.BUSY, 0
    now = hal.ticks(kernel.board)
    answer, id = poll_entered(kernel, now)
    return answer, id


@fn
def kernel_poll_at(kernel: Kernel, now: u32) -> tuple[Poll, u32]:
    """`kernel_poll` of a main loop that alone polls and has just read the counter: what it handed in by then, and what is
    due by then, are seen together."""
    entered = enter_poll(kernel)
    if not entered:
        return Poll.BUSY, 0
    answer, id = poll_entered(kernel, now)
    return answer, id


@fn(inline=True)
def enter_poll(kernel: Kernel) -> bool:
    """Nobody else may poll now. False if somebody does."""
    state: u32 = 0
    if ONE_THREAD == 0:
        state = hal.critical_enter(kernel.board)
    busy = kernel.inside != Inside.NOTHING
    if not busy:
        kernel.inside = Inside.STEP
    if ONE_THREAD == 0:
        hal.critical_exit(kernel.board, state)
    return not busy


@fn(inline=True)
def poll_entered(kernel: Kernel, now: u32) -> tuple[Poll, u32]:
    """What a poll does, as the counter shows `now`."""
    kernel.clock.update(now)
    if OFFLOAD != 0 and kernel.npu.work != NpuWork.NOTHING:
        npu_look(kernel)
    if RELEASES != 0:
        releases = kernel.releases
        if releases.due_ticks <= kernel.clock.ticks or releases.stirred != 0 or releases.fed != 0:
            release_due(kernel)
    if (MAX_JOBS > FEW_JOBS or DEADLINES != 0 or HOST_STAGES != 0) and kernel.posted.any():
        take_posted(kernel)
    if DEADLINES != 0 and kernel.clock.ticks > kernel.late_at:
        see_late(kernel)
    slot = pick(kernel)
    if slot == MAX_JOBS:
        leave_poll(kernel)
        wanted = host_wanted(kernel)
        if wanted != 0:
            return Poll.HOST, wanted
        return Poll.IDLE, 0
    if MAX_JOBS == 1:
        slot = 0  # a constant makes shorter code
    job = kernel.jobs[slot]
    id = job.id
    if LATE_POLICIES != 0 and job.late == Late.SKIP and job.state == JobState.QUEUED:
        skipped = skip(kernel, job, slot, id)
        if skipped:
            leave_poll(kernel)
            return Poll.RAN, id
    taken = dispatch(kernel, job, slot, id)
    if taken:
        advance(kernel, job, slot, now)
    wants_host = HOST_STAGES != 0 and taken and job.host == HostWork.WANTED and job.id == id
    leave_poll(kernel)
    if wants_host:
        return Poll.HOST, id
    return Poll.RAN, id


@fn
def leave_poll(kernel: Kernel) -> None:
    """Another thread may poll now. The section lets it see all that this one has written."""
    state: u32 = 0
    if ONE_THREAD == 0:
        state = hal.critical_enter(kernel.board)
    kernel.inside = Inside.NOTHING
    if ONE_THREAD == 0:
        hal.critical_exit(kernel.board, state)


@fn(inline=False)
def take_posted(kernel: Kernel) -> None:
    """What interrupts and other threads left: new jobs get their places, stages that the host ran are done."""
    while kernel.posted.any():
        state = hal.critical_enter(kernel.board)
        slot: u32 = 0
        if kernel.posted.any():
            slot = kernel.posted.first()
            kernel.posted.remove(slot)
        job = kernel.jobs[slot]
        id = job.id
        queued = job.state == JobState.QUEUED
        hal.critical_exit(kernel.board, state)
        if DEADLINES != 0:
            begin_deadline(kernel, slot, id)
        if MAX_JOBS > FEW_JOBS and queued:
            put_in(kernel.board, kernel.queues, kernel.jobs, slot, id)
        if HOST_STAGES != 0 and job.state == JobState.WAITING and job.host == HostWork.DONE:
            take_host_stage(kernel, slot)


@fn(pure=True, inline=True)
def can_run(kernel: Kernel, job: Job) -> bool:
    """Has it a step that could run now?"""
    if job.state == JobState.QUEUED:
        return not kernel.hold and kernel.frames[job.frame].owner == 0
    return job.state == JobState.RUNNING or job.state == JobState.SUSPENDED


@fn(pure=True)
def candidate(kernel: Kernel, frame: u32) -> u32:
    """Slot + 1 of the job that a frame has to offer: its owner if that can go on, else the first in line. 0: none."""
    owner = kernel.frames[frame].owner
    if owner != 0:
        state = kernel.jobs[owner - 1].state
        if state == JobState.RUNNING or state == JobState.SUSPENDED:
            return owner
        return 0
    if kernel.hold:
        return 0
    return u32(kernel.queues.items[frame].first)


@fn(inline=True)
def pick(kernel: Kernel) -> u32:
    """The slot of the job whose step runs now, or MAX_JOBS."""
    if MAX_JOBS == 1:
        job = kernel.jobs[0]
        if (job.state == JobState.QUEUED and not kernel.hold) or job.state == JobState.RUNNING or job.state == JobState.SUSPENDED:
            return 0
        return MAX_JOBS
    if kernel.current != 0:
        job = kernel.jobs[kernel.current - 1]
        if job.state == JobState.RUNNING and (not job.preemptible or job.holds_npu or job.priority == REALTIME):
            return kernel.current - 1
    best: u32 = 0
    if MAX_JOBS <= FEW_JOBS:
        for i in range(MAX_JOBS):
            if can_run(kernel, kernel.jobs[i]) and (best == 0 or goes_before(kernel.jobs[i], kernel.jobs[best - 1])):
                best = i + 1
        if best == 0:
            return MAX_JOBS
        return best - 1
    left: u32 = CLASSES
    while left != 0 and best == 0:  # a frame is a class's, the highest first
        left -= 1
        best = candidate(kernel, left)
    if COMPOSING != 0:
        one = candidate(kernel, FREE_FRAME)
        if best == 0 or (one != 0 and goes_before(kernel.jobs[one - 1], kernel.jobs[best - 1])):
            best = one
    if best == 0:
        return MAX_JOBS
    return best - 1


@fn(inline=True)
def dispatch(kernel: Kernel, job: Job, slot: u32, id: u32) -> bool:
    """Make job `id` of a slot the RUNNING one. False if it was cancelled just now; the slot may have the next one already."""
    if kernel.current == slot + 1 and job.state == JobState.RUNNING:
        return True  # nobody but `poll` takes this state from it
    state = hal.critical_enter(kernel.board)
    begins = job.state == JobState.QUEUED
    taken = job.id == id and (begins or job.state == JobState.SUSPENDED or job.state == JobState.RUNNING)
    if taken:
        if MAX_JOBS > FEW_JOBS and begins:
            take_out(kernel.queues, kernel.jobs, slot)
        if MAX_JOBS > 1 and kernel.current != 0 and kernel.current != slot + 1:
            before = kernel.jobs[kernel.current - 1]
            if before.state == JobState.RUNNING:
                before.state = JobState.SUSPENDED
                kernel.stats.preemptions = wrap(u32, kernel.stats.preemptions + 1)
        job.state = JobState.RUNNING
        kernel.current = slot + 1
        frame = kernel.frames[job.frame]
        if MAX_JOBS > 1:
            assert frame.owner == 0 or frame.owner == slot + 1, "as many half-done jobs as frames"
        frame.owner = slot + 1
    hal.critical_exit(kernel.board, state)
    if PROFILING != 0 and taken and begins:
        job.began = kernel.clock.ticks
    return taken


@fn
def infer_set_deadline(kernel: Kernel, id: u32, deadline_us: u32) -> Status:
    """Let job `id` be due `deadline_us` microseconds after its release; 0 withdraws its deadline. From anywhere.

    It takes effect in the next poll: a queued job changes its place, for one that has begun only what counts as a miss
    (and its late policy) changes. A miss that a poll has seen stays counted, and no second one is.
    Returns OK; NOENT; ALREADY if it is finished; NOTSUP in a build without deadlines.
    """
    if DEADLINES == 0:
        return Status.NOTSUP
    status = Status.NOENT
    state = hal.critical_enter(kernel.board)
    slot = find_slot(kernel, id)
    if slot != MAX_JOBS:
        job = kernel.jobs[slot]
        status = Status.ALREADY
        if not job_finished(job):
            job.deadline_in = deadline_us
            kernel.posted.add(slot)
            status = Status.OK
    hal.critical_exit(kernel.board, state)
    hal.wake(kernel.board)
    return status


# ---- what a client asks


@fn
def find_slot(kernel: Kernel, id: u32) -> u32:
    """The slot of job `id`, or MAX_JOBS: never given, or already read."""
    if id == 0:
        return MAX_JOBS
    for i in range(MAX_JOBS):
        job = kernel.jobs[i]
        if job.id == id and job.state != JobState.FREE and job.state != JobState.CLAIMED:
            return i
    return MAX_JOBS


@fn
def infer_state(kernel: Kernel, id: u32) -> JobState:
    """The state of a job; FREE if there is none of this id (any more)."""
    slot = find_slot(kernel, id)
    if slot == MAX_JOBS:
        return JobState.FREE
    return kernel.jobs[slot].state


@fn
def outcome(kernel: Kernel, id: u32) -> tuple[bool, Status]:
    """Has the job ended and its callback returned, and how? An unknown job has ended with NOENT."""
    over = True
    status = Status.NOENT
    state = hal.critical_enter(kernel.board)
    slot = find_slot(kernel, id)
    if slot != MAX_JOBS:
        job = kernel.jobs[slot]
        status = job.status
        if not job_finished(job) or not job.announced:
            over = False
            status = Status.INPROGRESS
    hal.critical_exit(kernel.board, state)
    return over, status


@fn
def infer_wait(kernel: Kernel, id: u32, timeout_ms: u32) -> Status:
    """Run the kernel until job `id` has ended and its callback has returned; may be repeated.

    Returns the job's status; NOENT for an unknown job; BUSY from a stage or a callback if it would have to wait;
    AGAIN after `timeout_ms` (0: after one poll), or when nothing goes on and the board's clock stands.
    """
    over, status = outcome(kernel, id)
    if over:
        return status
    if kernel.inside != Inside.NOTHING:
        return Status.BUSY
    start = hal.ticks(kernel.board)
    answer, job = kernel_poll(kernel)
    over, status = outcome(kernel, id)
    if over:
        return status
    return wait_on(kernel, id, timeout_ms, start, answer)


@fn(inline=False)
def wait_on(kernel: Kernel, id: u32, timeout_ms: u32, start: u32, first: Poll) -> Status:
    """The rest of `infer_wait`, which began at `start` ticks, after its first poll."""
    rate = hal.tick_rate(kernel.board)
    clock = local(Clock)  # its own: the kernel's is that of the thread in `poll`, which may be another
    clock.start(start, rate)
    limit = u64(timeout_ms) * 1000
    answer = first
    waiting = True
    while waiting:
        if answer != Poll.RAN and limit != 0:
            before = hal.ticks(kernel.board)
            hal.idle(kernel.board)
            after = hal.ticks(kernel.board)
            if before == after:
                return Status.AGAIN
        now = hal.ticks(kernel.board)
        clock.update(now)
        spent = clock.us()
        waiting = spent < limit
        if waiting:
            answer, job = kernel_poll(kernel)
            over, status = outcome(kernel, id)
            if over:
                return status
    return Status.AGAIN


@fn
def cancel_slot(kernel: Kernel, slot: u32) -> None:
    """Inside the critical section: a job that is not running ends as CANCELLED. Its callback is not called."""
    job = kernel.jobs[slot]
    job.state = JobState.CANCELLED
    job.status = Status.CANCELED
    job.inputs = 0
    job.mark = 0
    job.announced = True
    job.began = kernel.clock.ticks
    release_job(kernel, job, slot)
    kernel.stats.cancelled = wrap(u32, kernel.stats.cancelled + 1)
    if job.detached:
        free_slot(kernel, job, slot)
    if RELEASES != 0:
        hal.wake(kernel.board)  # a release may have waited for its end


@fn
def infer_cancel(kernel: Kernel, id: u32) -> Status:
    """Cancel a job that is queued or suspended; from anywhere. Its callback is not called, its waiters get CANCELED.

    Returns OK; NOENT; BUSY if it runs (`infer_abort` ends such a one); ALREADY if it is finished.
    """
    status = Status.NOENT
    state = hal.critical_enter(kernel.board)
    slot = find_slot(kernel, id)
    if slot != MAX_JOBS:
        job = kernel.jobs[slot]
        if job_finished(job):
            status = Status.ALREADY
        elif job.state == JobState.RUNNING or job.state == JobState.WAITING:
            status = Status.BUSY
        else:
            cancel_slot(kernel, slot)
            status = Status.OK
    hal.critical_exit(kernel.board, state)
    return status


@fn
def infer_abort(kernel: Kernel, id: u32) -> Status:
    """Cancel a job in whatever state: a running one ends as CANCELLED before its next step.

    Returns OK; NOENT; ALREADY if it is finished, or its result goes to other jobs just now.
    """
    status = infer_cancel(kernel, id)
    if status != Status.BUSY:
        return status
    status = Status.NOENT  # it may have ended since, and been read
    state = hal.critical_enter(kernel.board)
    slot = find_slot(kernel, id)
    if slot != MAX_JOBS:
        job = kernel.jobs[slot]
        if job_finished(job) or (RELEASES != 0 and job.handed):
            status = Status.ALREADY
        else:
            status = Status.OK
            job.abort = True
            if job.state == JobState.WAITING and (job.host == HostWork.WANTED or job.host == HostWork.LINE):
                job.host = HostWork.NONE
                job.state = JobState.SUSPENDED
    hal.critical_exit(kernel.board, state)
    hal.wake(kernel.board)
    return status


@fn
def infer_detach(kernel: Kernel, id: u32) -> Status:
    """Nobody will read this job: its slot is free as soon as it has ended.

    Returns OK; NOENT.
    """
    status = Status.NOENT
    state = hal.critical_enter(kernel.board)
    slot = find_slot(kernel, id)
    if slot != MAX_JOBS:
        job = kernel.jobs[slot]
        job.detached = True
        if job_finished(job) and job.announced:
            free_slot(kernel, job, slot)
        status = Status.OK
    hal.critical_exit(kernel.board, state)
    return status


@fn
def infer_get_result(kernel: Kernel, id: u32, out: Tensor | None) -> Status:
    """The descriptor of a job's first output; the slot is free afterwards.

    The data stay until the next ephemeral reset, or in an app until the next job of the slot ends: read them first
    with `infer_read`, or submit with a buffer of your own.
    Returns OK; INVAL if `out` is None; NOENT; BUSY if it is not finished; the job's error or CANCELED, and the slot is
    free as well.
    """
    if out is None:
        return Status.INVAL
    status = Status.NOENT
    state = hal.critical_enter(kernel.board)
    slot = find_slot(kernel, id)
    if slot != MAX_JOBS:
        job = kernel.jobs[slot]
        if not job_finished(job):
            status = Status.BUSY
        else:
            status = job.status
            if status == Status.OK:
                copy(out, job.x[0])
            free_slot(kernel, job, slot)
    hal.critical_exit(kernel.board, state)
    return status


@fn
def infer_output(kernel: Kernel, id: u32, index: u32, out: Tensor) -> Status:
    """The descriptor of output `index`; the job stays.

    Returns OK; NOENT for no such job or output; BUSY if it is not finished; the job's error.
    """
    status = Status.NOENT
    state = hal.critical_enter(kernel.board)
    slot = find_slot(kernel, id)
    if slot != MAX_JOBS:
        job = kernel.jobs[slot]
        if not job_finished(job):
            status = Status.BUSY
        elif job.status != Status.OK:
            status = job.status
        elif index < job.inputs:
            copy(out, job.x[index])
            status = Status.OK
    hal.critical_exit(kernel.board, state)
    return status


@fn
def infer_read(kernel: Kernel, id: u32, index: u32, data: Ptr[u8], room: u32) -> tuple[Status, u32]:
    """Copy output `index` of a job to `data`; the job stays. The second result is the bytes that it has.

    Returns what `infer_output` does, NOENT too if somebody else frees the slot meanwhile: the bytes copied may be
    another job's then; MSGSIZE if `room` is too small, and nothing is copied.
    """
    x = local(Tensor)
    status = infer_output(kernel, id, index, x)
    if status != Status.OK:
        return status, 0
    if x.size > room:
        return Status.MSGSIZE, x.size
    source = kernel.regions.get(x.region, x.offset, x.size)
    if source is None:
        return Status.INVAL, 0
    move(data, source, x.size)
    check(infer_output(kernel, id, index, x))
    return Status.OK, x.size


@fn
def infer_error_at(kernel: Kernel, id: u32) -> tuple[u32, u32]:
    """Stage and layer that ended a job in ERROR: the one that failed, or left what could not be delivered, or of a job that
    its deadline ended the one that it did not begin any more. 0 and 0 for any other job."""
    at: u32 = 0
    state = hal.critical_enter(kernel.board)
    slot = find_slot(kernel, id)
    if slot != MAX_JOBS:
        at = kernel.jobs[slot].error_at
    hal.critical_exit(kernel.board, state)
    return at >> 16, at & 0xFFFF


@fn
def infer_fault(kernel: Kernel, id: u32, out: Fault) -> Status:
    """The fault that ended a job, in a build with GUARD; the job stays.

    Returns OK; NOENT for no such job; NODATA, and `out` has not changed, if no fault ended it (yet).
    """
    status = Status.NOENT
    state = hal.critical_enter(kernel.board)
    slot = find_slot(kernel, id)
    if slot != MAX_JOBS:
        job = kernel.jobs[slot]
        status = Status.NODATA
        if GUARD != 0 and job_finished(job) and job.faulted:
            copy(out, view(Fault, job.x[0]))
            status = Status.OK
    hal.critical_exit(kernel.board, state)
    return status


@fn
def infer_reclaim(kernel: Kernel, keep_ms: u32) -> u32:
    """Free the slots of jobs that ended more than `keep_ms` ago and that nobody has read: how many. Thread mode.

    Whoever asks for such a job later gets NOENT. Counted in `stats.reclaimed`.
    """
    if RECLAIM == 0:
        return 0
    now = hal.ticks(kernel.board)
    span = kernel.clock.of_us(u64(keep_ms) * 1000)
    count: u32 = 0
    for i in range(MAX_JOBS):
        job = kernel.jobs[i]
        state = hal.critical_enter(kernel.board)
        time = kernel.clock.at(now)
        if job_finished(job) and job.announced and time - min(time, job.began) > span:
            reclaim_slot(kernel, job, i)
            count += 1
        hal.critical_exit(kernel.board, state)
    return count


# ---- stages that the host runs


@fn
def host_wanted(kernel: Kernel) -> u32:
    """A job whose host stage nobody has taken yet, or 0."""
    if HOST_STAGES == 0:
        return 0
    for i in range(MAX_JOBS):
        job = kernel.jobs[i]
        if job.state == JobState.WAITING and job.host == HostWork.WANTED:
            return job.id
    return 0


@fn
def stage_take(kernel: Kernel, id: u32, call: StageCall) -> tuple[Status, u32]:
    """The operands of the stage that the host is to run for a job: the second result is the stage's number.

    Until `stage_done` the job's tensors stay where they are, and cancelling gives BUSY.
    Returns OK; NOENT; INVAL if the job wants no stage of the host.
    """
    status = Status.NOENT
    state = hal.critical_enter(kernel.board)
    slot = find_slot(kernel, id)
    if slot != MAX_JOBS:
        status = Status.INVAL
        if kernel.jobs[slot].state == JobState.WAITING and kernel.jobs[slot].host == HostWork.WANTED:
            kernel.jobs[slot].host = HostWork.TAKEN
            status = Status.OK
    hal.critical_exit(kernel.board, state)
    if status != Status.OK:
        return status, 0
    job = kernel.jobs[slot]
    pipeline = kernel.pipelines.items[job.pipeline]
    filled = fill_call(kernel, job, pipeline, pipeline.stages[job.stage], call)
    if filled != Status.OK:
        return filled, 0
    return Status.OK, pipeline.stages[job.stage].number


@fn
def stage_done(kernel: Kernel, id: u32, status: Status, y: Tensor) -> Status:
    """The host has run the stage: its status, and size, dtype, ndim and shape of what it wrote; from any thread.

    Returns OK; NOENT, and the job is not touched; INVAL if its stage was not taken.
    """
    answer = Status.NOENT
    state = hal.critical_enter(kernel.board)
    slot = find_slot(kernel, id)
    if slot != MAX_JOBS:
        job = kernel.jobs[slot]
        answer = Status.INVAL
        if job.state == JobState.WAITING and job.host == HostWork.TAKEN:
            x = job.x[0]
            x.size = y.size
            x.dtype = y.dtype
            x.ndim = y.ndim
            copy(x.shape, y.shape)
            job.status = status
            job.host = HostWork.DONE
            kernel.posted.add(slot)
            answer = Status.OK
    hal.critical_exit(kernel.board, state)
    hal.wake(kernel.board)
    return answer


# ---- stopping


@fn
def pipeline_destroy(kernel: Kernel, pipe: u32) -> None:
    """Destroy a pipeline: its handle is bad from now on, its queued and suspended jobs are cancelled. If one is running,
    it runs to its end and the slot is free then. A bad handle is ignored."""
    state = hal.critical_enter(kernel.board)
    pipeline = kernel.pipelines.find(pipe)
    if pipeline is not None:
        pipeline.generation = (pipeline.generation + 1) & 0xFFFFFF
        pipeline.state = PipelineState.DYING
        for i in range(MAX_JOBS):
            job = kernel.jobs[i]
            if job.pipeline == (pipe & 0xFF) - 1:
                if job.state == JobState.QUEUED or job.state == JobState.SUSPENDED:
                    cancel_slot(kernel, i)
        if pipeline.jobs == 0:
            kernel.pipelines.free(pipeline)
    hal.critical_exit(kernel.board, state)


@fn(pure=True)
def any_begun(kernel: Kernel) -> bool:
    for i in range(MAX_JOBS):
        if job_begun(kernel.jobs[i]):
            return True
    return False


class Drain(u8, Enum):
    """What `sched_drain` waits for."""

    BEGUN = 0  # half-done jobs run to their ends
    ALL = 1  # and queued ones, those that come meanwhile too
    ABORT = 2  # half-done jobs end before their next step, as by `infer_abort`


@fn(pure=True)
def drained(kernel: Kernel, what: u32) -> bool:
    if what == u32(Drain.ALL) and not kernel.hold:
        return kernel.unfinished == 0
    return not any_begun(kernel)


@fn
def sched_drain(kernel: Kernel, what: u32, timeout_ms: u32) -> Status:
    """Run until no job is half done (a Drain), and let none begin until `sched_release`. For `timeout_ms`; 0 never sleeps.

    Returns OK; INVAL for an unknown Drain. Otherwise nothing is held and all goes on as before, but for jobs aborted: BUSY
    if somebody holds already, from a stage, from a callback if there is something to wait for, and with 0 if a half-done
    job waits for the host; AGAIN after the timeout, or when nothing goes on and the board's clock stands. For an
    accelerator it waits in any case, unless the clock stands.
    """
    if what > u32(Drain.ABORT):
        return Status.INVAL
    state = hal.critical_enter(kernel.board)
    busy = kernel.inside == Inside.STEP or kernel.hold or kernel.draining
    if not busy:
        kernel.draining = True
        kernel.hold = what != u32(Drain.ALL)
    hal.critical_exit(kernel.board, state)
    if busy:
        return Status.BUSY
    if kernel.inside == Inside.CALLBACK and not drained(kernel, what):
        let_go(kernel)
        return Status.BUSY
    start = hal.ticks(kernel.board)
    clock = local(Clock)
    rate = hal.tick_rate(kernel.board)
    clock.start(start, rate)
    if what == u32(Drain.ABORT):
        for job in kernel.jobs:
            if job_begun(job):
                ignore(infer_abort(kernel, job.id))
    draining = True
    while draining:
        while not drained(kernel, what):
            answer, job_id = kernel_poll(kernel)
            waits = False
            if OFFLOAD != 0 and answer == Poll.IDLE and kernel.npu.work != NpuWork.NOTHING:
                waits = npu_idle(kernel)
            stuck = answer != Poll.RAN and not waits and not drained(kernel, what)  # the poll may have ended what was late
            if stuck and timeout_ms == 0:
                let_go(kernel)
                return Status.BUSY
            before = hal.ticks(kernel.board)
            if stuck:
                hal.idle(kernel.board)
            now = hal.ticks(kernel.board)
            clock.update(now)
            spent = clock.us()
            if timeout_ms != 0 and ((stuck and now == before) or spent >= u64(timeout_ms) * 1000):
                let_go(kernel)
                return Status.AGAIN
        draining = not kernel.hold  # of ALL: what another thread has begun just now
        state = hal.critical_enter(kernel.board)
        if kernel.inside != Inside.STEP:  # a poll that has begun may have looked at `hold` before
            kernel.hold = True
        hal.critical_exit(kernel.board, state)
    return Status.OK


@fn
def let_go(kernel: Kernel) -> None:
    """Whoever drains, or holds, does so no more."""
    state = hal.critical_enter(kernel.board)
    kernel.hold = False
    kernel.draining = False
    hal.critical_exit(kernel.board, state)


@fn
def sched_quiesce(kernel: Kernel) -> Status:
    """`sched_drain` of half-done jobs, without sleeping: OK, or BUSY."""
    return sched_drain(kernel, u32(Drain.BEGUN), 0)


@fn
def sched_release(kernel: Kernel) -> None:
    """Let jobs begin again."""
    let_go(kernel)
    hal.wake(kernel.board)
