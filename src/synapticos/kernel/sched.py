"""Scheduler: one step at a time of the most urgent job.

`poll` takes what was posted, picks a job, runs its next step and says what there is to do; looping and sleeping are
its caller's. Interrupts and other threads only claim a free slot, fill it and post a flag, each in a few instructions
inside the board's critical section, so `infer_submit` answers at once from anywhere and nothing can overflow.

A job owns its frame from first step to last; a more urgent one may run between two of its steps if it is pre-emptible
and the other has a frame of its own. Completion names the job by its id, never by its slot: state first, then the
callback from copies, then whoever waits.
"""

from synapticos.lang import *
from synapticos.kernel import hal
from synapticos.kernel.backend import NpuState
from synapticos.kernel.capacity import MAX_JOBS, PROFILING
from synapticos.kernel.job import (
    CLASSES, FREE_FRAME, NEVER, HostWork, Job, JobDone, JobParams, JobState, goes_before, job_begun, job_clear, job_finished,
    job_unfinished,
)  # fmt: skip
from synapticos.kernel.kernel import Inside, Kernel, kernel_time
from synapticos.kernel.pipeline import Pipeline, PipelineState
from synapticos.kernel.profile import add_ticks
from synapticos.kernel.region import REGION_ARENA, REGION_INPUT, REGION_OUTPUT
from synapticos.kernel.run import deliver, end_stage, fill_call, run_step
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import MAX_DIMS, StageCall, Tensor

CallbackFn = Fn[[Kernel, JobDone], None]
CALLBACKS = table(CallbackFn, [], open=True)  # by number from 1


class Poll(u8, Enum):
    """What `poll` found."""

    IDLE = 0  # nothing to do until something is posted
    RAN = 1  # one step of the job given; call again
    HOST = 2  # the job given wants a stage that the host runs: `stage_take`, then `stage_done`
    BUSY = 3  # called from a stage or a callback, or by two at once


# ---- submission


@fn
def claim(kernel: Kernel, pipe: u32, params: JobParams | None) -> tuple[Status, u32]:
    """Take a free slot for a job of pipeline `pipe`, inside the critical section: the second result is the slot.

    Returns OK; INVAL for a bad pipeline; PERM if it is not built; BUSY if the cap is reached or no slot is free;
    NOMEM if it is planned and its class's frame is too small for it.
    """
    pipeline = kernel.pipelines.find(pipe)
    if pipeline is None:
        return Status.INVAL, 0
    if pipeline.state != PipelineState.BUILT:
        return Status.PERM, 0
    priority = pipeline.priority
    if params is not None:
        priority = params.priority
    frame: u32 = FREE_FRAME
    if pipeline.planned:
        frame = u32(priority)
        if kernel.frames[frame].bytes < pipeline.plan:
            return Status.NOMEM, 0
    unfinished: u32 = 0
    slot: u32 = MAX_JOBS
    for i in range(MAX_JOBS):
        if job_unfinished(kernel.jobs[i]):
            unfinished += 1
        elif slot == MAX_JOBS and kernel.jobs[i].state == JobState.FREE:
            slot = i
    if slot == MAX_JOBS or unfinished >= kernel.cap:
        return Status.BUSY, 0
    job = kernel.jobs[slot]
    job.state = JobState.CLAIMED
    job.id = kernel.next_id
    job.sequence = kernel.next_sequence
    job.priority = priority
    job.pipeline = u8((pipe & 0xFF) - 1)
    job_clear(job)
    job.frame = u8(frame)
    kernel.next_sequence = wrap(u32, kernel.next_sequence + 1)
    kernel.next_id = wrap(u32, kernel.next_id + 1)
    if kernel.next_id == 0:
        kernel.next_id = 1
    pipeline.jobs += 1
    return Status.OK, slot


@fn
def infer_post(kernel: Kernel, pipe: u32, input: Tensor | None, data: Ptr[u8] | None, out: Ptr[u8] | None, out_bytes: u32, params: JobParams | None) -> tuple[Status, u32]:
    """Submit a job; from anywhere, interrupts included. The second result is its id.

    `input` is copied, its data are not: they lie at `data` (16-aligned) if that is given, else where `input` says, and
    must stay until the job ends. The result goes to the `out_bytes` bytes at `out` (16-aligned) if given.
    Returns OK; INVAL for no input, data outside their region, a priority above 2 or an unknown callback; what `claim` does.
    """
    if input is None:
        return Status.INVAL, 0
    if data is None:
        bytes = kernel.regions.get(input.region, input.offset, input.size)
        if bytes is None:
            return Status.INVAL, 0
    if params is not None:
        if params.priority >= CLASSES or params.callback > len(CALLBACKS):
            return Status.INVAL, 0
    state = hal.critical_enter(kernel.board)
    status, slot = claim(kernel, pipe, params)
    hal.critical_exit(kernel.board, state)
    if status != Status.OK:
        return status, 0
    job = kernel.jobs[slot]
    id = job.id
    copy(job.x[0], input)
    job.quant[0].scale = 0.0
    job.quant[0].zero = 0
    job.inputs = 1
    if data is not None:
        kernel.regions.set(REGION_INPUT + slot, data, input.size)
        job.x[0].region = u8(REGION_INPUT + slot)
        job.x[0].offset = 0
    elif input.region == REGION_ARENA:
        job.mark = input.offset + input.size
    if out is not None:
        kernel.regions.set(REGION_OUTPUT + slot, out, out_bytes)
        job.into = True
    pipeline = kernel.pipelines.items[job.pipeline]
    job.callback = pipeline.sink
    if params is not None:
        job.deadline_in = params.deadline_us
        job.user = params.user
        job.preemptible = params.preemptible
        if params.callback != 0:
            job.callback = params.callback
    else:
        job.deadline_in = pipeline.deadline_us
        job.preemptible = pipeline.preemptible
    job.posted_at = hal.ticks(kernel.board)
    post(kernel, slot, JobState.POSTED)
    return Status.OK, id


@fn
def post(kernel: Kernel, slot: u32, to: JobState) -> None:
    """Put a claimed slot into a state and tell `poll`."""
    one: u32 = 1
    state = hal.critical_enter(kernel.board)
    kernel.jobs[slot].state = to
    kernel.posted = kernel.posted | (one << slot)
    hal.critical_exit(kernel.board, state)
    hal.wake(kernel.board)


@fn
def infer_submit(kernel: Kernel, pipe: u32, input: Tensor | None, params: JobParams | None) -> u32:
    """Submit a job: its id, or 0 if it is refused (`infer_post` says why)."""
    status, id = infer_post(kernel, pipe, input, None, None, 0, params)
    if status != Status.OK:
        return 0
    return id


@fn
def infer_set_max_concurrent(kernel: Kernel, n: u32) -> Status:
    """Cap on unfinished jobs. Returns OK; INVAL unless 1 <= n <= MAX_JOBS."""
    if n == 0 or n > MAX_JOBS:
        return Status.INVAL
    kernel.cap = n
    return Status.OK


# ---- dispatch


@fn
def kernel_poll(kernel: Kernel) -> tuple[Poll, u32]:
    """Take what was posted and run at most one step. The second result is the id of the job that the first is about."""
    state = hal.critical_enter(kernel.board)
    busy = kernel.inside != Inside.NOTHING
    posted: u32 = 0
    if not busy:
        kernel.inside = Inside.STEP
        posted = kernel.posted
        kernel.posted = 0
    hal.critical_exit(kernel.board, state)
    if busy:
        return Poll.BUSY, 0
    now = hal.ticks(kernel.board)
    kernel.clock.update(now)
    if posted != 0:
        take_posted(kernel, posted, now)
    slot = pick(kernel)
    if slot == MAX_JOBS:
        kernel.inside = Inside.NOTHING
        wanted = host_wanted(kernel)
        if wanted != 0:
            return Poll.HOST, wanted
        return Poll.IDLE, 0
    id = kernel.jobs[slot].id
    taken = dispatch(kernel, slot)
    if taken:
        advance(kernel, slot, now)
    kernel.inside = Inside.NOTHING
    if taken and kernel.jobs[slot].id == id and kernel.jobs[slot].host == HostWork.WANTED:
        return Poll.HOST, id
    return Poll.RAN, id


@fn
def take_posted(kernel: Kernel, posted: u32, now: u32) -> None:
    """What interrupts and other threads left: new jobs get their times, stages that the host ran are done."""
    for i in range(MAX_JOBS):
        if (posted >> i) & 1 == 0:
            continue
        job = kernel.jobs[i]
        if job.state == JobState.POSTED:
            if job.deadline_in != 0:
                age = kernel.clock.to_us(wrap(u32, now - job.posted_at))
                time = kernel.clock.us()
                job.deadline_us = time + job.deadline_in - min(time, u64(age))
            state = hal.critical_enter(kernel.board)
            if job.state == JobState.POSTED:
                job.state = JobState.QUEUED
                kernel.stats.submitted = wrap(u32, kernel.stats.submitted + 1)
            hal.critical_exit(kernel.board, state)
        elif job.state == JobState.WAITING and job.host == HostWork.DONE:
            job.host = HostWork.NONE
            job.state = JobState.SUSPENDED
            take_host_stage(kernel, i)


@fn
def take_host_stage(kernel: Kernel, slot: u32) -> None:
    """The host has run a stage of this job and posted `job.y` and a status."""
    job = kernel.jobs[slot]
    y = local(Tensor)
    copy(y, job.y)
    # What the host posted may say anything; the buffer is the one that it was given.
    job.y.size = job.row
    job.row = 0
    for i in range(MAX_DIMS):
        job.y.shape[i] = 0
    status = job.status
    job.status = Status.OK
    if status == Status.OK:
        status = end_stage(kernel, job, y)
    last = status == Status.OK and job.stage == kernel.pipelines.items[job.pipeline].count
    if last and not job.abort:
        status = deliver(kernel, job, slot)
    if last or job.abort or status != Status.OK:
        end_job(kernel, slot, status)


@fn(pure=True)
def can_run(kernel: Kernel, job: Job) -> bool:
    """Has it a step that could run now?"""
    if job.state == JobState.QUEUED:
        return not kernel.hold and kernel.frames[job.frame].owner == 0
    return job.state == JobState.RUNNING or job.state == JobState.SUSPENDED


@fn
def pick(kernel: Kernel) -> u32:
    """The slot of the job whose step runs now, or MAX_JOBS."""
    if kernel.current != 0:
        job = kernel.jobs[kernel.current - 1]
        if job.state == JobState.RUNNING and (job.holds_npu or not job.preemptible):
            return kernel.current - 1
    best: u32 = MAX_JOBS
    for i in range(MAX_JOBS):
        if can_run(kernel, kernel.jobs[i]):
            if best == MAX_JOBS:
                best = i
            elif goes_before(kernel.jobs[i], kernel.jobs[best]):
                best = i
    return best


@fn
def dispatch(kernel: Kernel, slot: u32) -> bool:
    """Make the job of a slot the RUNNING one. False if it was cancelled just now."""
    job = kernel.jobs[slot]
    begins = False
    state = hal.critical_enter(kernel.board)
    taken = can_run(kernel, job)
    if taken:
        begins = job.state == JobState.QUEUED
        if kernel.current != 0 and kernel.current != slot + 1:
            before = kernel.jobs[kernel.current - 1]
            if before.state == JobState.RUNNING:
                before.state = JobState.SUSPENDED
                kernel.stats.preemptions = wrap(u32, kernel.stats.preemptions + 1)
        job.state = JobState.RUNNING
        kernel.current = slot + 1
        kernel.frames[job.frame].owner = slot + 1
    hal.critical_exit(kernel.board, state)
    if begins:
        job.began = kernel.clock.ticks
        if PROFILING != 0:
            job.times.job = 0
            for i in range(kernel.pipelines.items[job.pipeline].count):
                job.times.stage[i] = 0
    return taken


@fn
def advance(kernel: Kernel, slot: u32, before: u32) -> None:
    """Run one step of a job, count its time, and end the job if that was its last."""
    job = kernel.jobs[slot]
    pipeline = kernel.pipelines.items[job.pipeline]
    if job.abort:
        end_job(kernel, slot, Status.CANCELED)
        return
    stage = u32(job.stage)
    layer = job.step
    status = run_step(kernel, job, pipeline)
    after = hal.ticks(kernel.board)
    kernel.clock.update(after)
    if PROFILING != 0 and kernel.profile.enabled:
        spent = wrap(u32, after - before)
        job.times.stage[stage] = add_ticks(job.times.stage[stage], spent)
        if stage == pipeline.model:
            kernel.profile.add_layer(job.id, layer, spent)
    if status != Status.OK:
        job.error_at = stage << 16 | (job.step & 0xFFFF)
        log.error(kernel.log, f"job {job.id} ended at stage {stage}: {i32(status)}")
        end_job(kernel, slot, status)
    elif job.host == HostWork.WANTED:
        state = hal.critical_enter(kernel.board)
        job.state = JobState.WAITING
        hal.critical_exit(kernel.board, state)
    elif job.stage == pipeline.count:
        delivered = deliver(kernel, job, slot)
        end_job(kernel, slot, delivered)


# ---- completion


@fn
def end_job(kernel: Kernel, slot: u32, status: Status) -> None:
    """A job that has begun ends: DONE, ERROR, or CANCELLED if it was aborted.

    First its state, and copies of all that is still needed of the slot, in one critical section; then the callback;
    then `announced`, for whoever waits, and only if the slot is still this job's.
    """
    job = kernel.jobs[slot]
    pipeline = kernel.pipelines.items[job.pipeline]
    finish_times(kernel, job, pipeline)
    done = local(JobDone)
    state = hal.critical_enter(kernel.board)
    aborted = job.abort
    job.status = status
    if aborted:
        job.state = JobState.CANCELLED
        job.status = Status.CANCELED
    elif status == Status.OK:
        job.state = JobState.DONE
    else:
        job.state = JobState.ERROR
    if status != Status.OK or aborted:
        job.inputs = 0
        if job.frame != FREE_FRAME:
            job.mark = 0
    release_job(kernel, job, slot)
    done.job = job.id
    done.user = job.user
    done.status = job.status
    done.pipeline = u32(job.pipeline)
    done.outputs = u32(job.inputs)
    if job.inputs != 0:
        copy(done.output, job.x[0])
    callback = job.callback
    hal.critical_exit(kernel.board, state)
    if callback != 0 and not aborted:
        kernel.inside = Inside.CALLBACK
        CALLBACKS[callback - 1](kernel, done)
        kernel.inside = Inside.STEP
    announce(kernel, slot, done.job)


@fn
def announce(kernel: Kernel, slot: u32, id: u32) -> None:
    """The callback of job `id` has returned: those who wait for it go on. Another job in its slot is not touched."""
    job = kernel.jobs[slot]
    state = hal.critical_enter(kernel.board)
    if job.id == id and job_finished(job):
        job.announced = True
        if job.detached:
            free_slot(job)
    hal.critical_exit(kernel.board, state)
    hal.wake(kernel.board)


@fn
def release_job(kernel: Kernel, job: Job, slot: u32) -> None:
    """Inside the critical section: a job is over, so its frame, its pipeline and the accelerator are not held by it."""
    if kernel.frames[job.frame].owner == slot + 1:
        kernel.frames[job.frame].owner = 0
    if kernel.current == slot + 1:
        kernel.current = 0
    if job.holds_npu:
        job.holds_npu = False
        kernel.npu.state = NpuState.IDLE
    kernel.regions.set(REGION_INPUT + slot, None, 0)
    pipeline = kernel.pipelines.items[job.pipeline]
    pipeline.jobs -= 1
    if pipeline.jobs == 0 and pipeline.state == PipelineState.DYING:
        kernel.pipelines.free(pipeline)


@fn
def free_slot(job: Job) -> None:
    """Inside the critical section: nobody needs this job any more."""
    job.state = JobState.FREE
    job.mark = 0


@fn
def finish_times(kernel: Kernel, job: Job, pipeline: Pipeline) -> None:
    """Work out the job's profile, count it and a missed deadline."""
    if job.abort:
        kernel.stats.cancelled = wrap(u32, kernel.stats.cancelled + 1)
        return
    late = False
    if job.deadline_us != NEVER:
        time = kernel.clock.us()
        late = time > job.deadline_us
    if late:
        kernel.stats.misses[job.priority] = wrap(u32, kernel.stats.misses[job.priority] + 1)
    if PROFILING == 0 or not kernel.profile.enabled:
        return
    times = job.times
    times.preprocess = 0
    times.npu = 0
    times.postprocess = 0
    times.total = sat(u32, kernel.clock.ticks - job.began)
    times.job = job.id
    times.peak = kernel.arena.peak
    times.frame = job.used
    times.stages = u32(pipeline.count)
    for i in range(pipeline.count):
        if i < pipeline.model:
            times.preprocess = add_ticks(times.preprocess, times.stage[i])
        elif i == pipeline.model:
            times.npu = times.stage[i]
        else:
            times.postprocess = add_ticks(times.postprocess, times.stage[i])
    if job.stage == pipeline.count:
        kernel.profile.finish(times)


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
    slot = find_slot(kernel, id)
    if slot == MAX_JOBS:
        return True, Status.NOENT
    job = kernel.jobs[slot]
    if not job_finished(job) or not job.announced:
        return False, Status.INPROGRESS
    return True, job.status


@fn
def infer_wait(kernel: Kernel, id: u32, timeout_ms: u32) -> Status:
    """Run the kernel until job `id` has ended and its callback has returned; may be repeated.

    Returns the job's status; NOENT for an unknown job; BUSY from a stage or a callback if it would have to wait;
    AGAIN after `timeout_ms` (0: after one step), or when nothing goes on and the board's clock stands.
    """
    over, status = outcome(kernel, id)
    if over:
        return status
    if kernel.inside != Inside.NOTHING:
        return Status.BUSY
    start = kernel_time(kernel)
    limit = u64(timeout_ms) * 1000
    spent: u64 = 0
    waiting = True
    while waiting:
        answer, job = kernel_poll(kernel)
        over, status = outcome(kernel, id)
        if over:
            return status
        if answer != Poll.RAN and limit != 0:
            before = hal.ticks(kernel.board)
            hal.idle(kernel.board)
            after = hal.ticks(kernel.board)
            if before == after:
                return Status.AGAIN
        now = kernel_time(kernel)
        spent = now - start
        waiting = spent < limit
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
    release_job(kernel, job, slot)
    kernel.stats.cancelled = wrap(u32, kernel.stats.cancelled + 1)
    if job.detached:
        free_slot(job)


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

    Returns OK; NOENT; ALREADY if it is finished.
    """
    status = infer_cancel(kernel, id)
    if status != Status.BUSY:
        return status
    state = hal.critical_enter(kernel.board)
    slot = find_slot(kernel, id)
    if slot != MAX_JOBS:
        job = kernel.jobs[slot]
        job.abort = True
        if job.state == JobState.WAITING and job.host == HostWork.WANTED:
            job.host = HostWork.NONE
            job.state = JobState.SUSPENDED
    hal.critical_exit(kernel.board, state)
    hal.wake(kernel.board)
    return Status.OK


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
            free_slot(job)
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
            free_slot(job)
    hal.critical_exit(kernel.board, state)
    return status


@fn
def infer_output(kernel: Kernel, id: u32, index: u32, out: Tensor) -> Status:
    """The descriptor of output `index`; the job stays.

    Returns OK; NOENT for no such job or output; BUSY if it is not finished; the job's error.
    """
    slot = find_slot(kernel, id)
    if slot == MAX_JOBS:
        return Status.NOENT
    job = kernel.jobs[slot]
    if not job_finished(job):
        return Status.BUSY
    if job.status != Status.OK:
        return job.status
    if index >= job.inputs:
        return Status.NOENT
    copy(out, job.x[index])
    return Status.OK


@fn
def infer_read(kernel: Kernel, id: u32, index: u32, data: Ptr[u8], room: u32) -> tuple[Status, u32]:
    """Copy output `index` of a job to `data`; the job stays. The second result is the bytes that it has.

    Returns what `infer_output` does; MSGSIZE if `room` is too small, and nothing is copied.
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
    return Status.OK, x.size


@fn
def infer_error_at(kernel: Kernel, id: u32) -> tuple[u32, u32]:
    """Stage and layer that ended a job in ERROR; 0 and 0 for any other."""
    slot = find_slot(kernel, id)
    if slot == MAX_JOBS:
        return 0, 0
    at = kernel.jobs[slot].error_at
    return at >> 16, at & 0xFFFF


# ---- stages that the host runs


@fn
def host_wanted(kernel: Kernel) -> u32:
    """A job whose host stage nobody has taken yet, or 0."""
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
    filled = fill_call(kernel, job, pipeline, call)
    if filled != Status.OK:
        return filled, 0
    return Status.OK, pipeline.stages[job.stage].number


@fn
def stage_done(kernel: Kernel, id: u32, status: Status, y: Tensor) -> Status:
    """The host has run the stage: its status, and size, dtype, ndim and shape of what it wrote; from any thread.

    Returns OK; NOENT, and the job is not touched; INVAL if its stage was not taken.
    """
    answer = Status.NOENT
    one: u32 = 1
    state = hal.critical_enter(kernel.board)
    slot = find_slot(kernel, id)
    if slot != MAX_JOBS:
        job = kernel.jobs[slot]
        answer = Status.INVAL
        if job.state == JobState.WAITING and job.host == HostWork.TAKEN:
            job.row = job.y.size
            job.y.size = y.size
            job.y.dtype = y.dtype
            job.y.ndim = y.ndim
            copy(job.y.shape, y.shape)
            job.status = status
            job.host = HostWork.DONE
            kernel.posted = kernel.posted | (one << slot)
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
                if job.state == JobState.POSTED or job.state == JobState.QUEUED or job.state == JobState.SUSPENDED:
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


@fn
def sched_quiesce(kernel: Kernel) -> Status:
    """Let no job begin, and run those that have begun to their ends. `sched_release` lets them begin again.

    Returns OK; BUSY, and nothing is held, from a stage, from a callback if a job is half done, or if a half-done job
    waits for somebody else.
    """
    if kernel.inside == Inside.STEP or kernel.hold:
        return Status.BUSY
    if kernel.inside == Inside.CALLBACK and any_begun(kernel):
        return Status.BUSY
    kernel.hold = True
    while any_begun(kernel):
        answer, job = kernel_poll(kernel)
        if answer != Poll.RAN:
            kernel.hold = False
            return Status.BUSY
    return Status.OK


@fn
def sched_release(kernel: Kernel) -> None:
    kernel.hold = False
    hal.wake(kernel.board)
