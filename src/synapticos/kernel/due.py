"""Releases at work: which jobs begin in this poll.

A nominal time is its release's phase plus whole periods from `origin_us`, whatever happened meanwhile, so nothing drifts;
deadlines count from it. One job of a release is submitted at a time; until it has ended, further ones wait, and when too
many do, the release's policy says which is dropped. All of that is counted.
"""

from synapticos.lang import *
from synapticos.kernel import hal
from synapticos.kernel.advance import free_slot
from synapticos.kernel.bits import bit, lowest_bit
from synapticos.kernel.capacity import DEADLINES, FEED_ENTRIES, FEEDS, JOINS, MAX_JOBS, MAX_WAITING, OFFLOAD, RELEASES
from synapticos.kernel.clock import MICROSECONDS
from synapticos.kernel.divide import divide
from synapticos.kernel.job import NEVER, Job, JobParams, JobState, job_finished
from synapticos.kernel.kernel import Inside, Kernel
from synapticos.kernel.offload import npu_due
from synapticos.kernel.pipeline import PipelineState
from synapticos.kernel.queue import add_joined, add_release, drop_entry, drop_first, join_ready
from synapticos.kernel.region import REGION_ARENA
from synapticos.kernel.release import BOX_BYTES, BOX_STRIDE, FeedCounts, JobCounts, Queue, Release
from synapticos.kernel.status import Status
from synapticos.kernel.submit import infer_post
from synapticos.kernel.tensor import STAGE_INPUTS, DType, Tensor

HALF_RANGE: Final[u64] = 0x7FFFFFFF  # of the board's counter: no sleep is longer, or the clock would miss a wrap


@fn
def due_ticks(kernel: Kernel) -> u64:
    """`kernel_due` in ticks since boot."""
    due: u64 = NEVER
    if RELEASES != 0:
        due = kernel.releases.due_ticks
    if OFFLOAD != 0:
        limit = npu_due(kernel)
        due = min(due, limit)
    if DEADLINES != 0 and kernel.late_at < due:
        due = kernel.late_at + 1
    return due


@fn
def kernel_due(kernel: Kernel) -> u64:
    """When the kernel next has something to do by the clock: microseconds since boot, NEVER if nothing.

    That is a release, a deadline that nobody has looked at since it passed, or the time limit of an accelerator's work.
    What was posted, and jobs that can run, are not asked about: poll until it answers IDLE, then sleep until then.
    """
    due = due_ticks(kernel)
    if due == NEVER:
        return NEVER
    if RELEASES != 0:
        if due == kernel.releases.due_ticks:
            return kernel.releases.due_us
    rate = kernel.clock.rate
    seconds = divide(due, rate)
    part = due - seconds * rate
    whole = seconds * MICROSECONDS
    return whole + divide(part * MICROSECONDS + (rate - u64(1)), rate)


@fn
def kernel_rest(kernel: Kernel) -> None:
    """Sleep until the kernel has something to do by the clock, or an interrupt or a `wake` comes; for a loop around poll."""
    due = due_ticks(kernel)
    rest_until(kernel, due)


@fn
def rest_until(kernel: Kernel, due: u64) -> None:
    """Sleep until `due`, in ticks since boot (NEVER: as long as may be), or an interrupt or a `wake` comes."""
    # The clock is poll's, which may be another thread's and just now; the worst that can be read then is a time too late.
    last = kernel.clock.last
    now = hal.ticks(kernel.board)
    time = kernel.clock.ticks + wrap(u32, now - last)
    if due <= time:
        return
    left = min(due - time, HALF_RANGE)
    hal.wake_at(kernel.board, wrap(u32, u64(now) + left))
    hal.idle(kernel.board)


@fn
def ended_job(kernel: Kernel, number: u32) -> u32:
    """The id of the oldest job of release `number` that has ended and whose result waits for its reader, or 0.

    The reader looks at it and lets it go by `infer_detach`.
    """
    id: u32 = 0
    sequence: u32 = 0
    state = hal.critical_enter(kernel.board)
    for i in range(MAX_JOBS):
        job = kernel.jobs[i]
        if job.collector == number + 1 and job_finished(job) and job.announced:
            if id == 0 or wrap(u32, job.sequence - sequence) > 0x7FFFFFFF:
                id = job.id
                sequence = job.sequence
    hal.critical_exit(kernel.board, state)
    return id


@fn
def releases_start(kernel: Kernel, span_us: u64) -> Status:
    """Phases count from now, and for `span_us` microseconds releases come by the clock (0: for good).

    Boot has done so once; nothing that waits or runs is touched. Returns OK; BUSY, and nothing has changed, while somebody
    polls: from a stage, a callback or beside another thread.
    """
    state = hal.critical_enter(kernel.board)
    busy = kernel.inside != Inside.NOTHING
    if not busy:
        kernel.inside = Inside.STEP
    hal.critical_exit(kernel.board, state)
    if busy:
        return Status.BUSY
    now = hal.ticks(kernel.board)
    kernel.clock.update(now)
    releases = kernel.releases
    time = kernel.clock.us()
    releases.origin_us = max(time, 1)
    releases.end_us = NEVER
    if span_us != 0:
        releases.end_us = releases.origin_us + span_us
    for i in range(min(releases.count, RELEASES)):
        aim(kernel, releases.items[i])
    find_due(kernel)
    state = hal.critical_enter(kernel.board)
    kernel.inside = Inside.NOTHING
    hal.critical_exit(kernel.board, state)
    return Status.OK


@fn
def since_start(kernel: Kernel, ticks: u64) -> u64:
    """A moment in ticks since boot in microseconds after the start of releases, rounded down; 0 if it was before."""
    us = kernel.clock.time(ticks)
    return us - min(us, kernel.releases.origin_us)


@fn
def job_enable(kernel: Kernel, number: u32, on: bool) -> Status:
    """Let release `number` begin jobs, or none from now on; from anywhere, it counts from the next poll.

    Switched off, what waits is dropped and counted; a job that was submitted runs on. Switched on, it is released next at
    its next nominal time, or when data come. Returns OK; NOENT for an unknown one.
    """
    if RELEASES == 0:
        return Status.NOENT
    releases = kernel.releases
    if number >= releases.count:
        return Status.NOENT
    state = hal.critical_enter(kernel.board)
    if on:
        releases.wanted = releases.wanted | bit(number)
    else:
        releases.wanted = releases.wanted & ~bit(number)
    releases.stirred = releases.stirred | bit(number)
    hal.critical_exit(kernel.board, state)
    hal.wake(kernel.board)
    return Status.OK


@fn
def job_counts(kernel: Kernel, number: u32, out: JobCounts | None) -> Status:
    """What became of the releases of release `number`; from anywhere. Beside a poll of another thread or in an interrupt each
    count is right, and a release may be between two of them.

    Returns OK; INVAL for None; NOENT for an unknown one, and `out` has not changed.
    """
    if out is None:
        return Status.INVAL
    if RELEASES == 0:
        return Status.NOENT
    if number >= kernel.releases.count:
        return Status.NOENT
    release = kernel.releases.items[number]
    out.released = release.released
    out.started = release.started
    out.dropped = release.dropped
    out.coalesced = release.coalesced
    out.starved = release.starved
    out.late = release.late
    out.surplus = release.surplus
    out.misses = kernel.pipelines.items[release.pipeline].misses
    out.delay_us = release.delay_us
    out.waiting = u32(release.waiting)
    return Status.OK


@fn
def source_counts(kernel: Kernel, source: u32, out: FeedCounts | None) -> Status:
    """What became of what a source gave; as `job_counts`.

    Returns OK; INVAL for None; NOENT for an unknown one, or one that keeps nothing, and `out` has not changed.
    """
    if out is None:
        return Status.INVAL
    if FEEDS == 0:
        return Status.NOENT
    if source >= kernel.releases.feed_count:
        return Status.NOENT
    feed = kernel.releases.feeds[source]
    out.entries = feed.entries
    out.lost = feed.lost
    out.gaps = feed.gaps
    return Status.OK


@fn
def aim(kernel: Kernel, release: Release) -> None:
    """Find the first nominal time of a release that is not past."""
    release.next_us = NEVER
    release.next_ticks = NEVER
    if release.period_us == 0 or not release.enabled:
        return
    next = kernel.releases.origin_us + release.phase_us
    now = kernel.clock.us()
    if now > next:
        past = divide(now - next + (release.period_us - u64(1)), release.period_us)
        next += past * release.period_us
    aim_at(kernel, release, next)


@fn
def aim_at(kernel: Kernel, release: Release, us: u64) -> None:
    """The next nominal time of a release, unless that is after the end."""
    release.next_us = NEVER
    release.next_ticks = NEVER
    if us < kernel.releases.end_us:
        release.next_us = us
        release.next_ticks = kernel.clock.of_us(us)


@fn
def find_due(kernel: Kernel) -> None:
    releases = kernel.releases
    releases.due_us = NEVER
    releases.due_ticks = NEVER
    for i in range(min(releases.count, RELEASES)):
        release = releases.items[i]
        if release.next_us < releases.due_us:
            releases.due_us = release.next_us
            releases.due_ticks = release.next_ticks


@fn
def take_newest(kernel: Kernel, release: Release) -> tuple[bool, u32]:
    """The entry that a release by the clock reads, with one user more: False if its feed has had none."""
    if JOINS != 0 and release.joins != 0:
        ready = join_ready(kernel, release, 0)
        return ready, 0
    if FEEDS == 0 or release.feed == 0:
        return True, 0
    state = hal.critical_enter(kernel.board)
    feed = kernel.releases.feeds[release.feed - 1]
    entry = u32(feed.newest)
    feed.hold(entry)
    hal.critical_exit(kernel.board, state)
    return entry != 0, entry


@fn
def release_by_clock(kernel: Kernel, release: Release, now: u64) -> None:
    """All nominal times of a release that have come; it is `now` microseconds after boot."""
    seen = min(now, kernel.releases.end_us - 1)
    behind = divide(seen - release.next_us, release.period_us)
    release.delay_us = max(release.delay_us, sat(u32, now - release.next_us))
    release.late = sat(u32, release.late + behind)
    # Of more than fit the queue twice, those in the middle all meet the same fate; which times remain is the policy's.
    middle: u64 = 0
    if behind > u64(2) * release.depth:
        middle = behind - u64(2) * release.depth
    left = u32(behind - middle) + 1
    next = release.next_us
    while left != 0:
        found, entry = take_newest(kernel, release)
        if middle != 0 and left == release.depth:
            next += middle * release.period_us
            release.released = wrap(u32, release.released + wrap(u32, middle))
            if not found:
                release.starved = wrap(u32, release.starved + wrap(u32, middle))
            elif release.policy == Queue.COALESCE:
                release.coalesced = wrap(u32, release.coalesced + wrap(u32, middle))
            else:
                release.dropped = wrap(u32, release.dropped + wrap(u32, middle))
        if JOINS != 0 and release.joins != 0:
            add_joined(kernel, release, next, 0, 0)
        elif found:
            add_release(kernel, release, next, entry, 0)
        else:
            release.released = wrap(u32, release.released + 1)
            release.starved = wrap(u32, release.starved + 1)
        next += release.period_us
        left -= 1
    aim_at(kernel, release, next)


@fn
def take_arrivals(kernel: Kernel, number: u32) -> None:
    """What has arrived in a feed releases all that it feeds, and is what releases by the clock read from now on."""
    releases = kernel.releases
    feed = releases.feeds[number]
    more = feed.arrived != 0
    while more:
        state = hal.critical_enter(kernel.board)
        entry = u32(feed.order[feed.first])
        feed.first += 1
        if feed.first == FEED_ENTRIES:
            feed.first = 0
        feed.arrived -= 1
        more = feed.arrived != 0
        ticks = feed.stamp[entry - 1]
        hal.critical_exit(kernel.board, state)
        came = kernel.clock.at(ticks)
        time = kernel.clock.time(came)
        us = max(time, 1)
        for i in range(min(releases.count, RELEASES)):
            release = releases.items[i]
            reads = release.feed == number + 1 and release.by_feed and release.enabled
            if JOINS != 0 and reads and release.joins != 0:
                add_joined(kernel, release, us, number + 1, entry)
            elif reads:
                state = hal.critical_enter(kernel.board)
                feed.hold(entry)
                hal.critical_exit(kernel.board, state)
                add_release(kernel, release, us, entry, 0)
        state = hal.critical_enter(kernel.board)
        if feed.by_clock:
            feed.drop(feed.newest)
            feed.newest = u8(entry)
        else:
            feed.drop(entry)
        hal.critical_exit(kernel.board, state)


@fn
def switch(kernel: Kernel, release: Release, on: bool) -> None:
    """Enable or disable a release."""
    if release.enabled == on:
        return
    release.enabled = on
    while release.waiting != 0:
        drop_first(kernel, release)
    aim(kernel, release)


@fn(inline=False)
def give_box(kernel: Kernel, release: Release, job: Job, place: u32) -> None:
    """Inside the critical section: a job that looks at a box gets it as its second input."""
    at = release.boxes_at + MAX_WAITING * BOX_STRIDE
    source = kernel.regions.get(REGION_ARENA, release.boxes_at + place * BOX_STRIDE, BOX_BYTES)
    target = kernel.regions.get(REGION_ARENA, at, BOX_BYTES)
    if source is None or target is None:
        return
    move(target, source, BOX_BYTES)
    second: u32 = 1  # no constant: a build may have room for one input only
    x = job.x[second]
    x.offset = at
    x.size = BOX_BYTES
    x.dtype = DType.FLOAT32
    x.ndim = 2
    x.region = u8(REGION_ARENA)
    x.shape[0] = 1
    x.shape[1] = BOX_BYTES // 4
    x.shape[2] = 0
    x.shape[3] = 0
    job.quant[second].scale = 0.0
    job.quant[second].zero = 0
    job.inputs = 2


@fn
def give_joined(kernel: Kernel, release: Release, place: u32, x: Tensor) -> None:
    """What waits at `place` of the queue becomes the input of the job that is begun: the place may be taken again."""
    at = release.boxes_at + MAX_WAITING * release.stride
    source = kernel.regions.get(REGION_ARENA, release.boxes_at + place * release.stride, x.size)
    target = kernel.regions.get(REGION_ARENA, at, x.size)
    if source is not None and target is not None:
        move(target, source, x.size)
    x.offset = at
    x.region = u8(REGION_ARENA)


@fn(inline=False)
def start_waiting(kernel: Kernel, number: u32) -> None:
    """Submit the oldest release that waits, as its last job has ended. Without a free slot it waits on."""
    release = kernel.releases.items[number]
    pipeline = kernel.pipelines.items[release.pipeline]
    if pipeline.state != PipelineState.BUILT:
        drop_first(kernel, release)
        return
    place = u32(release.first)
    waiting = release.queue[place]
    x = local(Tensor)
    copy(x, release.x)
    if FEEDS != 0 and waiting.entry != 0:
        feed = kernel.releases.feeds[release.feed - 1]
        x.offset = feed.at + feed.stride * (u32(waiting.entry) - 1)
        x.region = u8(REGION_ARENA)
    if JOINS != 0 and release.joins != 0:
        give_joined(kernel, release, place, x)
    params = local(JobParams)
    params.deadline_us = pipeline.deadline_us
    params.priority = pipeline.priority
    params.preemptible = pipeline.preemptible
    params.user = u32(waiting.item)
    params.late = pipeline.late
    params.flags = pipeline.flags
    params.release_us = waiting.release_us
    status, id = infer_post(kernel, pipeline.generation << 8 | (u32(release.pipeline) + 1), x, None, None, 0, params)
    if status != Status.OK:
        state = hal.critical_enter(kernel.board)
        kernel.releases.stirred = kernel.releases.stirred | bit(number)  # the next poll tries again
        hal.critical_exit(kernel.board, state)
        return
    release.first = u8(release.place(1))
    release.waiting -= 1
    release.started = wrap(u32, release.started + 1)
    release.last = id
    kept = False
    state = hal.critical_enter(kernel.board)
    for i in range(MAX_JOBS):
        job = kernel.jobs[i]
        if job.id == id and job.state == JobState.QUEUED:  # else somebody has cancelled it just now
            job.releaser = u8(number + 1)
            job.entry = waiting.entry
            job.detached = not release.collect
            if release.collect:
                job.collector = u8(number + 1)
            if STAGE_INPUTS > 1 and release.parent != 0:
                give_box(kernel, release, job, place)
            release.job = id
            kept = True
        elif job.id == id and job.state == JobState.CANCELLED and not release.collect:
            free_slot(kernel, job, i)
    hal.critical_exit(kernel.board, state)
    if not kept:
        drop_entry(kernel, release, waiting.entry)


@fn(inline=False)
def release_due(kernel: Kernel) -> None:
    """Begin what is to begin in this poll; the clock is up to date."""
    if RELEASES == 0:
        return
    releases = kernel.releases
    state = hal.critical_enter(kernel.board)
    stirred = releases.stirred
    fed = releases.fed
    wanted = releases.wanted
    releases.stirred = 0
    releases.fed = 0
    hal.critical_exit(kernel.board, state)
    look = stirred
    switched = False
    while look != 0:
        number = lowest_bit(look)
        look = look & (look - 1)
        release = releases.items[number]
        on = wanted & bit(number) != 0
        if release.enabled != on:
            switch(kernel, release, on)
            switched = True
    if JOINS != 0:  # first what others read at its newest, so that what came together is read together
        first = fed & ~releases.joining
        fed = fed & releases.joining
        while first != 0:
            take_arrivals(kernel, lowest_bit(first))
            first = first & (first - 1)
    while FEEDS != 0 and fed != 0:
        take_arrivals(kernel, lowest_bit(fed))
        fed = fed & (fed - 1)
    if releases.due_ticks <= kernel.clock.ticks:
        now = kernel.clock.us()
        for i in range(min(releases.count, RELEASES)):
            release = releases.items[i]
            if release.next_ticks <= kernel.clock.ticks:
                release_by_clock(kernel, release, now)
        switched = True
    if switched:
        find_due(kernel)
    for i in range(min(releases.count, RELEASES)):
        if releases.items[i].waiting != 0 and releases.items[i].job == 0:
            start_waiting(kernel, i)
