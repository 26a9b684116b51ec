"""The main program of firmware whose jobs the kernel begins: feed the sources at their times, poll, sleep.

On an emulated board the file `plan` says how long to run, and how the files `in0`, `in1`... become what the sources give:
a RunPlan, then a FeedPlan for each. Each job's results go to `out0`, `out1`...: a ReleaseRecord, then what `program` writes
of a frame. At the end `counts` has a JobCounts for each job and a FeedCounts for each source. Where there is no such file,
drivers feed the sources, and results are left to the app's sinks.
"""

from synapticos.app.program import (
    INPUT_BYTES,
    INPUTS,
    KERNEL,
    file_name,
    program_end,
    program_start,
    put,
    write_frame,
)
from synapticos.kernel import hal
from synapticos.kernel.capacity import FEEDS, MAX_JOBS, RELEASES
from synapticos.kernel.divide import divide
from synapticos.kernel.due import (
    due_ticks,
    ended_job,
    job_counts,
    kernel_rest,
    releases_start,
    rest_until,
    since_start,
    source_counts,
)
from synapticos.kernel.feed import source_push_at
from synapticos.kernel.job import NEVER
from synapticos.kernel.kernel import Kernel
from synapticos.kernel.release import FeedCounts, JobCounts
from synapticos.kernel.sched import Poll, find_slot, infer_detach, kernel_poll_at, outcome
from synapticos.kernel.status import Status
from synapticos.lang import (
    Array,
    Final,
    Ptr,
    Shaped,
    check,
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
    u16,
    u32,
    u64,
    view,
    wrap,
)

PLAN_MAGIC: Final[u32] = 0x314E4C50  # "PLN1"
TRACE = param(u32, 0, max=1)  # write down each step


@struct
class RunPlan:
    magic: u32
    feeds: u32  # FeedPlans that follow
    end_us: u64  # after the start of releases: none by the clock from then on; 0: no end


@struct
class FeedPlan:
    """One source's file. Push k, counted from 0, comes (first + k * step) / rate seconds after the start of releases."""

    source: u32
    chunk: u32  # bytes of a push
    chunks: u32  # in the file; what comes after them is the first again
    pushes: u32  # in all
    first: u64
    step: u64  # 0: whenever all that read it are idle
    rate: u32
    reserved: u32


@struct
class ReleaseRecord:
    release_us: u64  # both after the start of releases
    finish_us: u64
    item: u32  # which box of a cascade
    missed: u32  # 1: after its deadline


@struct
class StepRecord:
    """One step of a job, as the file `trace` has it where TRACE is 1. Times are after the start of releases."""

    release_us: u64  # of its job
    begin_us: u64
    end_us: u64
    pipeline: u16
    stage: u16  # where the job stood before the step
    layer: u16
    reserved: u16


@struct
class Run:
    """Where a run is."""

    next: Shaped[Array[u64], FEEDS]  # ticks since boot: when each feed's next push comes; NEVER: it has ended
    pushed: Shaped[Array[u32], FEEDS]
    plan: Shaped[Array[FeedPlan], FEEDS]
    feeds: u32
    ends: Shaped[Array[u32], RELEASES]  # of each file, bytes
    traced: u32  # bytes of the file `trace`


PLAN_NAME = rom(b"plan")
COUNTS_NAME = rom(b"counts")
TRACE_NAME = rom(b"trace")
RUN_PLAN_BYTES = sizeof(RunPlan)
FEED_PLAN_BYTES = sizeof(FeedPlan)
RELEASE_RECORD_BYTES = sizeof(ReleaseRecord)
JOB_COUNTS_BYTES = sizeof(JobCounts)
FEED_COUNTS_BYTES = sizeof(FeedCounts)
STEP_RECORD_BYTES = sizeof(StepRecord)
RUN = static(Run)


@fn
def name_of(name: Ptr[u8], text: Ptr[u8], n: u32) -> None:
    """A file's name, with a 0 behind it."""
    for i in range(n):
        name[i] = text[i]
    name[n] = 0


@fn
def read_plan(kernel: Kernel, run: Run) -> tuple[Status, u64]:
    """The plan, if there is one: the second result is how long to run, in microseconds; 0: for good.

    Returns OK; INVAL for a plan that this program cannot follow.
    """
    name = local(u8, 8)
    head = local(RunPlan)
    name_of(name, PLAN_NAME, 4)
    got = hal.file_read(0, name, 0, view(u8, head), RUN_PLAN_BYTES)
    if got != i32(RUN_PLAN_BYTES):
        return Status.OK, 0
    if head.magic != PLAN_MAGIC or head.feeds > FEEDS:
        return Status.INVAL, 0
    for i in range(head.feeds):
        plan = run.plan[i]
        got = hal.file_read(0, name, RUN_PLAN_BYTES + i * FEED_PLAN_BYTES, view(u8, plan), FEED_PLAN_BYTES)
        if got != i32(FEED_PLAN_BYTES) or plan.source >= FEEDS or plan.chunk == 0 or plan.chunk > INPUT_BYTES or plan.rate == 0 or plan.chunks == 0:
            return Status.INVAL, 0
    run.feeds = head.feeds
    return Status.OK, head.end_us


@fn
def aim_feed(kernel: Kernel, run: Run, number: u32) -> None:
    """When the next push of a feed comes."""
    plan = run.plan[number]
    if run.pushed[number] >= plan.pushes:
        run.next[number] = NEVER
        return
    us = divide(plan.first + run.pushed[number] * plan.step, plan.rate)
    run.next[number] = kernel.clock.of_us(kernel.releases.origin_us + us)


@fn
def push_next(kernel: Kernel, run: Run, number: u32, ticks: u32) -> Status:
    """Read the next chunk of a feed's file and hand it in. Returns OK; IO if the file ends too soon."""
    plan = run.plan[number]
    name = local(u8, 8)
    file_name(name, 0, number)
    chunk = run.pushed[number] % plan.chunks
    got = hal.file_read(0, name, chunk * plan.chunk, INPUTS, plan.chunk)
    if got != i32(plan.chunk):
        return Status.IO
    status = source_push_at(kernel, plan.source, INPUTS, plan.chunk, ticks)
    if status != Status.OK and status != Status.NOMEM:
        return status
    run.pushed[number] += 1
    aim_feed(kernel, run, number)
    return Status.OK


@fn
def push_due(kernel: Kernel, run: Run, now: u32) -> Status:
    """Hand in what has come by `now`, each with the time at which it should have."""
    kernel.clock.update(now)
    for i in range(run.feeds):
        while run.plan[i].step != 0 and run.next[i] <= kernel.clock.ticks:
            check(push_next(kernel, run, i, wrap(u32, u64(now) - (kernel.clock.ticks - run.next[i]))))
    return Status.OK


@fn(pure=True)
def readers_idle(kernel: Kernel, source: u32) -> bool:
    """Whether every job that a source releases has ended, and none waits."""
    for i in range(RELEASES):
        release = kernel.releases.items[i]
        if release.feed == source + 1 and (release.job != 0 or release.waiting != 0):
            return False
    return kernel.releases.fed == 0


@fn
def push_idle(kernel: Kernel, run: Run) -> tuple[Status, bool]:
    """Hand in what comes when nobody works on the last: was there something?"""
    some = False
    for i in range(run.feeds):
        if run.plan[i].step == 0 and run.next[i] != NEVER and readers_idle(kernel, run.plan[i].source):
            now = hal.ticks(0)
            status = push_next(kernel, run, i, now)
            if status != Status.OK:
                return status, False
            some = True
    return Status.OK, some


@fn
def write_result(kernel: Kernel, run: Run, number: u32, job: u32, status: Status) -> bool:
    """Write what a job became. False if that failed."""
    record = local(ReleaseRecord)
    name = local(u8, 8)
    slot = find_slot(kernel, job)
    if slot == MAX_JOBS:
        return False
    record.release_us = since_start(kernel, kernel.jobs[slot].release)
    record.finish_us = since_start(kernel, kernel.clock.ticks)
    record.item = kernel.jobs[slot].user
    if kernel.jobs[slot].missed:
        record.missed = 1
    file_name(name, 1, number)
    good = put(name, run.ends[number], view(u8, record), RELEASE_RECORD_BYTES)
    if not good:
        return False
    fine, end = write_frame(kernel, job, status, name, run.ends[number] + RELEASE_RECORD_BYTES)
    run.ends[number] = end
    return fine


@fn
def take_results(kernel: Kernel, run: Run) -> bool:
    """Write the results of the jobs that have ended, and let their slots go. False if that failed."""
    for i in range(RELEASES):
        job = ended_job(kernel, i)
        while job != 0:
            _, status = outcome(kernel, job)
            good = write_result(kernel, run, i, job, status)
            ignore(infer_detach(kernel, job))
            if not good:
                return False
            job = ended_job(kernel, i)
    return True


@fn
def write_counts(kernel: Kernel, run: Run) -> bool:
    """What became of all releases and of what the sources gave."""
    name = local(u8, 8)
    jobs = local(JobCounts)
    feeds = local(FeedCounts)
    name_of(name, COUNTS_NAME, 6)
    at: u32 = 0
    for i in range(RELEASES):
        ignore(job_counts(kernel, i, jobs))
        good = put(name, at, view(u8, jobs), JOB_COUNTS_BYTES)
        if not good:
            return False
        at += JOB_COUNTS_BYTES
    for i in range(FEEDS):
        ignore(source_counts(kernel, i, feeds))
        good = put(name, at, view(u8, feeds), FEED_COUNTS_BYTES)
        if not good:
            return False
        at += FEED_COUNTS_BYTES
    return True


@fn
def rest(kernel: Kernel, run: Run) -> bool:
    """Sleep until there is something to do. False if there never will be."""
    next: u64 = NEVER
    for i in range(run.feeds):
        if run.plan[i].step != 0:
            next = min(next, run.next[i])
    due = due_ticks(kernel)
    if min(next, due) == NEVER:
        return kernel.unfinished != 0
    rest_until(kernel, min(next, due))
    return True


@fn
def poll_traced(kernel: Kernel, run: Run, now: u32) -> tuple[Status, Poll]:
    """Poll at `now`, and write down the step that it ran. Returns OK; IO if that failed."""
    ids = local(u32, MAX_JOBS)
    stages = local(u32, MAX_JOBS)
    layers = local(u32, MAX_JOBS)
    record = local(StepRecord)
    name = local(u8, 8)
    for i in range(MAX_JOBS):
        ids[i] = kernel.jobs[i].id
        stages[i] = kernel.jobs[i].stage
        layers[i] = kernel.jobs[i].step
    kernel.clock.update(now)
    record.begin_us = since_start(kernel, kernel.clock.ticks)
    answer, id = kernel_poll_at(kernel, now)
    ended = hal.ticks(0)
    kernel.clock.update(ended)
    slot = find_slot(kernel, id)
    if answer != Poll.RAN or slot == MAX_JOBS:
        return Status.OK, answer
    job = kernel.jobs[slot]
    record.end_us = since_start(kernel, kernel.clock.ticks)
    record.release_us = since_start(kernel, job.release)
    record.pipeline = job.pipeline
    if ids[slot] == id:  # else it came in this poll, and stood at its beginning
        record.stage = u16(stages[slot])
        record.layer = u16(layers[slot])
    name_of(name, TRACE_NAME, 5)
    good = put(name, run.traced, view(u8, record), STEP_RECORD_BYTES)
    if not good:
        return Status.IO, answer
    run.traced += STEP_RECORD_BYTES
    return Status.OK, answer


@fn
def run_clock(kernel: Kernel, run: Run) -> Status:
    """Run by the clock, as the plan says. Returns OK at its end; INVAL for a bad plan; IO for files that fail."""
    span = check(read_plan(kernel, run))
    if run.feeds == 0 and span == 0:
        while True:
            now = hal.ticks(0)
            answer, job = kernel_poll_at(kernel, now)
            if answer != Poll.RAN:
                kernel_rest(kernel)
    for i in range(RELEASES):
        release = kernel.releases.items[i]
        release.collect = kernel.pipelines.items[release.pipeline].feed == 0
    check(releases_start(kernel, span))
    for i in range(run.feeds):
        aim_feed(kernel, run, i)
    going = True
    while going:
        now = hal.ticks(0)  # of both: a job released now takes what its source gives now
        check(push_due(kernel, run, now))
        answer = Poll.IDLE
        if TRACE != 0:
            answer = check(poll_traced(kernel, run, now))
        else:
            answer, job = kernel_poll_at(kernel, now)
        good = take_results(kernel, run)
        if not good:
            return Status.IO
        if answer != Poll.RAN:
            pushed = check(push_idle(kernel, run))
            if not pushed:
                going = rest(kernel, run)
    good = write_counts(kernel, run)
    if not good:
        return Status.IO
    return Status.OK


@fn
def run_all_by_clock(kernel: Kernel, run: Run) -> i32:
    """The whole program, in a kernel of its own: its exit code."""
    started = program_start(kernel)
    if not started:
        return 1
    status = run_clock(kernel, run)
    return program_end(kernel, status)


@fn
def main() -> i32:
    return run_all_by_clock(KERNEL, RUN)
