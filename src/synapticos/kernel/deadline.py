"""Deadlines: a posted span becomes a tick of the board's counter, and a poll after it sees the miss.

A deadline counts from the job's release, which is its submission unless that says otherwise. A job is late when the
counter has passed the deadline's tick, so one that ends on it has met it. A miss is counted once for each job, in its
class and in its pipeline, by the first poll after it (or at the job's end); a job with TELL_LATE is told then as well.
Spans up to 71 minutes; time since boot is of 64 bits and orders jobs whatever the 32-bit counter does.
"""

from synapticos.lang import *
from synapticos.kernel import hal
from synapticos.kernel.advance import count_miss, end_job, tell
from synapticos.kernel.capacity import LATE_POLICIES, MAX_JOBS
from synapticos.kernel.job import NEVER, TELL_LATE, HostWork, Job, JobState, Late, Timed, job_finished
from synapticos.kernel.kernel import Kernel
from synapticos.kernel.order import FEW_JOBS, take_out
from synapticos.kernel.status import Status


@fn(inline=False)
def begin_deadline(kernel: Kernel, slot: u32, id: u32) -> None:
    """Work out the deadline of job `id` if it still has its slot: it is new, or its deadline was changed."""
    job = kernel.jobs[slot]
    span = job.deadline_in
    release = job.release
    if job.timed == Timed.COUNTER:
        release = kernel.clock.at(wrap(u32, release))
    elif job.timed == Timed.GIVEN:
        release = min(kernel.clock.of_us(release), NEVER - 1)
    deadline: u64 = NEVER
    if span != 0:
        ticks = kernel.clock.of_us(span)
        deadline = release + min(ticks, NEVER - 1 - release)
    state = hal.critical_enter(kernel.board)
    if job.id == id and job.state != JobState.CLAIMED and not job_finished(job):  # nobody has cancelled it
        job.release = release
        job.deadline = deadline
        job.timed = Timed.KNOWN
        if MAX_JOBS > FEW_JOBS and job.state == JobState.QUEUED:
            take_out(kernel.queues, kernel.jobs, slot)
        if not job.missed:
            kernel.late_at = min(kernel.late_at, deadline)
    hal.critical_exit(kernel.board, state)


@fn(inline=False)
def see_late(kernel: Kernel) -> None:
    """Some deadline may have passed: count each miss, tell of it, end the jobs whose policy is that."""
    kernel.late_at = NEVER
    for slot in range(MAX_JOBS):
        job = kernel.jobs[slot]
        if job.timed == Timed.KNOWN and not job.missed and job.deadline != NEVER:
            see_deadline(kernel, job, slot)


@fn
def see_deadline(kernel: Kernel, job: Job, slot: u32) -> None:
    """Has this job's deadline passed? If not, it is among the next that may."""
    late = False
    ends = False
    state = hal.critical_enter(kernel.board)
    id = job.id
    if job.timed == Timed.KNOWN and job.state != JobState.CLAIMED and job.state != JobState.FREE and not job_finished(job) and not job.abort:
        late = kernel.clock.ticks > job.deadline
        if late:
            count_miss(kernel, job)
            if LATE_POLICIES == 0:
                ends = False
            elif job.state == JobState.QUEUED:
                ends = job.late != Late.FINISH
            elif job.state != JobState.WAITING or job.host == HostWork.WANTED or job.host == HostWork.LINE:  # nobody outside works for it
                ends = job.late == Late.ABORT
            if LATE_POLICIES != 0 and ends:
                expire(kernel, job, slot)
        else:
            kernel.late_at = min(kernel.late_at, job.deadline)
    hal.critical_exit(kernel.board, state)
    if LATE_POLICIES == 0:
        return
    if ends:
        end_job(kernel, slot, Status.TIMEDOUT)
    elif late and job.flags & TELL_LATE != 0:
        tell(kernel, slot, id, Status.INPROGRESS)


@fn(inline=False)
def skip(kernel: Kernel, job: Job, slot: u32, id: u32) -> bool:
    """Is it too late to begin this job, by what its pipeline says that one takes? Then it ends, and this is its miss."""
    if job.deadline == NEVER:
        return False
    ticks = kernel.clock.of_us(kernel.pipelines.items[job.pipeline].cost_us)
    if ticks <= job.deadline and kernel.clock.ticks <= job.deadline - ticks:
        return False
    state = hal.critical_enter(kernel.board)
    ends = job.id == id and job.state == JobState.QUEUED  # nobody has cancelled it
    if ends:
        count_miss(kernel, job)
        expire(kernel, job, slot)
    hal.critical_exit(kernel.board, state)
    if ends:
        end_job(kernel, slot, Status.TIMEDOUT)
    return True


@fn
def expire(kernel: Kernel, job: Job, slot: u32) -> None:
    """Inside the critical section: from here on nobody but `poll` ends this job, and it does so at once."""
    job.expired = True
    job.error_at = u32(job.stage) << 16 | (job.step & 0xFFFF)
    job.host = HostWork.NONE
    if job.state == JobState.QUEUED:
        if MAX_JOBS > FEW_JOBS:
            take_out(kernel.queues, kernel.jobs, slot)
        job.began = kernel.clock.ticks
        job.times.stage[0] = 0
    job.state = JobState.RUNNING
