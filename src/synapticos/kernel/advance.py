"""What a poll does for the job that it picked: one step, its time, and the job's end if that was the last.

Completion names the job by its id, never by its slot: state first, then the callback from copies, then whoever waits.
"""

from synapticos.lang import *
from synapticos.kernel import hal
from synapticos.kernel.backend import NpuState
from synapticos.kernel.capacity import ACCELERATOR, COMPOSING, DEADLINES, HOST_STAGES, LATE_POLICIES, MAX_JOBS, OFFLOAD, PROFILING, RECLAIM, RELEASES
from synapticos.kernel.feed import release_over
from synapticos.kernel.guard import refused
from synapticos.kernel.job import FREE_FRAME, HostWork, Job, JobDone, JobState, Late, Timed, job_finished
from synapticos.kernel.kernel import Inside, Kernel
from synapticos.kernel.offload import npu_leave
from synapticos.kernel.pipeline import Pipeline, PipelineState
from synapticos.kernel.profile import add_ticks
from synapticos.kernel.order import FEW_JOBS, take_out
from synapticos.kernel.region import REGION_INPUT
from synapticos.kernel.run import deliver, end_stage, run_step, runs_on
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import Tensor

CallbackFn = Fn[[Kernel, JobDone], None]
CALLBACKS = table(CallbackFn, [], open=True)  # by number from 1


@fn(inline=True)
def step_job(kernel: Kernel, job: Job, slot: u32, pipeline: Pipeline, before: u32) -> bool:
    """Run one step of a job, count its time, and end the job if that was its last. Has it a next one that could run now?"""
    if job.abort:
        end_job(kernel, slot, Status.CANCELED)
        return False
    number = u32(job.stage)
    layer = job.step
    status = run_step(kernel, job, pipeline)
    if PROFILING != 0 and kernel.profile.enabled:
        after = hal.ticks(kernel.board)
        spent = wrap(u32, after - before)
        if number == pipeline.model:
            kernel.profile.add_layer(job.id, layer, spent)
            spent = add_ticks(job.times.stage[number], spent)
        job.times.stage[number] = spent
    at = u32(job.stage)
    if status == Status.OK:
        if (HOST_STAGES != 0 or OFFLOAD != 0) and job.host != HostWork.NONE:
            wait(kernel, job, slot)
            return False
        if at != pipeline.count:
            return True
        at -= 1
        status = deliver(kernel, job, slot)
    if status != Status.OK and not job.abort:
        fail(kernel, job, at, status)
    end_job(kernel, slot, status)
    return False


@fn(inline=False)
def advance(kernel: Kernel, job: Job, slot: u32, before: u32) -> None:
    """Run one step of a job. In a build with RUN_ON all that are left, if `pick` would choose it again whatever is posted.

    An abort counts before the next step either way.
    """
    pipeline = kernel.pipelines.items[job.pipeline]
    now = before
    going = True
    while going:
        going = step_job(kernel, job, slot, pipeline, now)
        if not runs_on(job):
            going = False
        elif going and PROFILING != 0:
            now = hal.ticks(kernel.board)
            kernel.clock.update(now)


@fn
def wait(kernel: Kernel, job: Job, slot: u32) -> None:
    """Somebody beside the kernel works for the job, or will: it is WAITING, unless that is over already."""
    state = hal.critical_enter(kernel.board)
    over = job.abort
    if OFFLOAD != 0:
        over = job.host != HostWork.AWAY and (over or (job.host == HostWork.LINE and kernel.npu.owner == 0))
    if OFFLOAD != 0 and job.host == HostWork.BACK:
        pass  # it stays RUNNING, and takes up what was done as it is picked
    elif over:
        job.host = HostWork.NONE  # it stays RUNNING, and ends, or tries again, as it is picked
    else:
        job.state = JobState.WAITING
    hal.critical_exit(kernel.board, state)


@fn(inline=False)
def fail(kernel: Kernel, job: Job, stage: u32, status: Status) -> None:
    """A step of this job ended with an error, or what its last stage left could not be delivered."""
    job.error_at = stage << 16 | (job.step & 0xFFFF)
    log.error(kernel.log, f"job {job.id} ended at stage {stage}: {i32(status)}")


@fn
def take_host_stage(kernel: Kernel, slot: u32) -> None:
    """The host has run a stage of this job and posted its status, and its tensor in `job.x[0]`."""
    job = kernel.jobs[slot]
    job.host = HostWork.NONE
    status = job.status
    stage = u32(job.stage)
    if status == Status.OK:
        y = local(Tensor, zero=False)
        copy(y, job.x[0])
        status = end_stage(kernel, job, y)
    else:
        status = refused(status)
    last = status == Status.OK and job.stage == kernel.pipelines.items[job.pipeline].count
    if last:
        if not job.abort:
            status = deliver(kernel, job, slot)
    elif LATE_POLICIES != 0 and status == Status.OK and job.missed and job.late == Late.ABORT:
        status = Status.TIMEDOUT
        job.expired = True
        stage = u32(job.stage)  # which it does not begin
    if status != Status.OK and not job.abort:
        fail(kernel, job, stage, status)
    if last or job.abort or status != Status.OK:
        end_job(kernel, slot, status)
        return
    # Until here the job is WAITING, which nobody cancels; an abort from now on ends it as it is picked.
    state = hal.critical_enter(kernel.board)
    job.state = JobState.SUSPENDED
    hal.critical_exit(kernel.board, state)


@fn
def end_job(kernel: Kernel, slot: u32, status: Status) -> None:
    """A job that `poll` holds ends: DONE, ERROR, or CANCELLED if it was aborted.

    First its state, and copies of all that is still needed of the slot, in one critical section; then the callback;
    then `announced`, for whoever waits, and only if the slot is still this job's.
    """
    job = kernel.jobs[slot]
    pipeline = kernel.pipelines.items[job.pipeline]
    if (LATE_POLICIES != 0 or HOST_STAGES != 0 or OFFLOAD != 0) and status == Status.INPROGRESS:
        status = Status.IO  # a driver's answer, but it would say that the job goes on
    late = finish_times(kernel, job, pipeline)
    done = local(JobDone, zero=False)  # all of it is filled for a callback, and read by nobody else
    job_id = job.id
    state = hal.critical_enter(kernel.board)
    aborted = job.abort
    job.status = status
    if aborted:
        job.state = JobState.CANCELLED
        job.status = Status.CANCELED
        job.error_at = 0  # it may have failed, or its deadline ended it, just before
        kernel.stats.cancelled = wrap(u32, kernel.stats.cancelled + 1)
    elif status == Status.OK:
        job.state = JobState.DONE
        kernel.stats.done = wrap(u32, kernel.stats.done + 1)
    else:
        job.state = JobState.ERROR
        kernel.stats.errors = wrap(u32, kernel.stats.errors + 1)
        if LATE_POLICIES != 0 and job.expired:
            kernel.stats.expired = wrap(u32, kernel.stats.expired + 1)
    if late and not aborted and not job.missed:
        count_miss(kernel, job)
    if PROFILING != 0 and kernel.profile.enabled:
        if aborted:
            job.times.job = 0
        elif job.stage == pipeline.count:
            kernel.profile.finish(job.times)
    if status != Status.OK or aborted:
        job.inputs = 0
        job.mark = 0
    if RECLAIM != 0:
        job.began = kernel.clock.ticks
    release_job(kernel, job, slot)
    callback = u32(job.callback)
    if len(CALLBACKS) != 0 and callback != 0:
        fill_done(job, done)
        done.outputs = u32(job.inputs)
        if job.inputs != 0:
            copy(done.output, job.x[0])
        else:
            fill(view(u8, done.output), 0, sizeof(Tensor))
    hal.critical_exit(kernel.board, state)
    if len(CALLBACKS) != 0 and callback != 0 and not aborted:
        call_back(kernel, callback, done)
    announce(kernel, slot, job_id)


@fn
def fill_done(job: Job, done: JobDone) -> None:
    """What a callback is told, but for the outputs."""
    done.job = job.id
    done.user = job.user
    done.status = job.status
    done.pipeline = u32(job.pipeline)
    done.missed = job.missed
    done.reserved[0] = 0
    done.reserved[1] = 0
    done.reserved[2] = 0


@fn
def call_back(kernel: Kernel, callback: u32, done: JobDone) -> None:
    kernel.inside = Inside.CALLBACK
    CALLBACKS[callback - 1](kernel, done)
    kernel.inside = Inside.STEP


@fn
def count_miss(kernel: Kernel, job: Job) -> None:
    """Inside the critical section: this job has missed its deadline, which is counted once."""
    job.missed = True
    kernel.stats.misses[job.priority] = wrap(u32, kernel.stats.misses[job.priority] + 1)
    pipeline = kernel.pipelines.items[job.pipeline]
    pipeline.misses = wrap(u32, pipeline.misses + 1)


@fn
def tell(kernel: Kernel, slot: u32, id: u32, status: Status) -> None:
    """Call the callback of a job that goes on, unless it has ended meanwhile."""
    done = local(JobDone)
    job = kernel.jobs[slot]
    state = hal.critical_enter(kernel.board)
    callback = u32(job.callback)
    if len(CALLBACKS) == 0 or job.id != id or job_finished(job):
        callback = 0
    if callback != 0:
        fill_done(job, done)
        done.status = status
    hal.critical_exit(kernel.board, state)
    if len(CALLBACKS) != 0 and callback != 0:
        call_back(kernel, callback, done)


@fn
def announce(kernel: Kernel, slot: u32, id: u32) -> None:
    """The callback of job `id` has returned: those who wait for it go on. Another job in its slot is not touched."""
    job = kernel.jobs[slot]
    state = hal.critical_enter(kernel.board)
    if job.id == id and job_finished(job):
        job.announced = True
        if job.detached:
            free_slot(kernel, job, slot)
    hal.critical_exit(kernel.board, state)
    hal.wake(kernel.board)


@fn
def release_job(kernel: Kernel, job: Job, slot: u32) -> None:
    """Inside the critical section: a job is over, so its frame, its pipeline and the accelerator are not held by it."""
    if MAX_JOBS > FEW_JOBS:
        take_out(kernel.queues, kernel.jobs, slot)
    kernel.posted.remove(slot)
    kernel.unfinished -= 1
    frame = kernel.frames[job.frame]
    if COMPOSING == 0 or job.frame != FREE_FRAME:
        frame.used = max(frame.used, job.used)
    if frame.owner == slot + 1:
        frame.owner = 0
    if kernel.current == slot + 1:
        kernel.current = 0
    if ACCELERATOR != 0 and job.holds_npu:
        npu_leave(kernel, job, NpuState.IDLE)
    if RELEASES != 0 and job.releaser != 0:
        release_over(kernel, job)
    kernel.regions.set(REGION_INPUT + slot, None, 0)
    pipeline = kernel.pipelines.items[job.pipeline]
    pipeline.jobs -= 1
    if COMPOSING != 0 and pipeline.jobs == 0 and pipeline.state == PipelineState.DYING:
        kernel.pipelines.free(pipeline)


@fn
def free_slot(kernel: Kernel, job: Job, slot: u32) -> None:
    """Inside the critical section: nobody needs this job any more."""
    job.state = JobState.FREE
    kernel.free.add(slot)
    job.mark = 0
    if RELEASES != 0:
        hal.wake(kernel.board)  # a release may wait for a slot


@fn
def reclaim_slot(kernel: Kernel, job: Job, slot: u32) -> None:
    """Inside the critical section: nobody has read this job, and nobody will."""
    free_slot(kernel, job, slot)
    kernel.stats.reclaimed = wrap(u32, kernel.stats.reclaimed + 1)


@fn
def finish_times(kernel: Kernel, job: Job, pipeline: Pipeline) -> bool:
    """Work out the job's profile. Has it missed its deadline?"""
    if DEADLINES != 0 or PROFILING != 0:
        now = hal.ticks(kernel.board)
        kernel.clock.update(now)
    late = False
    if DEADLINES != 0 and job.timed == Timed.KNOWN:
        late = kernel.clock.ticks > job.deadline
    if PROFILING == 0 or not kernel.profile.enabled:
        return late
    times = job.times
    times.preprocess = 0
    times.npu = 0
    times.postprocess = 0
    times.total = sat(u32, kernel.clock.ticks - job.began)
    times.job = job.id
    times.peak = kernel.arena.peak
    times.frame = job.used
    times.stages = u32(pipeline.count)
    for i in range(u32(job.stage) + 1, pipeline.count):
        times.stage[i] = 0  # not reached
    for i in range(pipeline.count):
        if i < pipeline.model:
            times.preprocess = add_ticks(times.preprocess, times.stage[i])
        elif i == pipeline.model:
            times.npu = times.stage[i]
        else:
            times.postprocess = add_ticks(times.postprocess, times.stage[i])
    return late
