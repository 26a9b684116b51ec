"""Feeds at work: data come in, from an interrupt or another thread, and leave as inputs of jobs.

Samples come in pieces of any size; an entry is whole when `bytes` of them are there, and the next one begins `hop` bytes
after it. Where no entry is free, what comes is lost and counted, and the next entry begins with the first byte that finds
room: so an entry never spans a gap.
"""

from synapticos.lang import *
from synapticos.kernel import hal
from synapticos.kernel.bits import bit
from synapticos.kernel.capacity import FEED_ENTRIES, FEEDS
from synapticos.kernel.job import Job
from synapticos.kernel.kernel import Kernel
from synapticos.kernel.region import REGION_ARENA
from synapticos.kernel.release import Feed
from synapticos.kernel.status import Status


@fn
def begin_entry(kernel: Kernel, feed: Feed) -> bool:
    """Take a free entry to fill, its beginning copied from the last one's end where they overlap. False if none is free."""
    state = hal.critical_enter(kernel.board)
    entry = feed.free_entry()
    feed.hold(entry)
    hal.critical_exit(kernel.board, state)
    last = u32(feed.last)
    feed.last = 0
    feed.filling = u8(entry)
    feed.filled = 0
    if entry != 0 and last != 0:
        n = feed.bytes - feed.hop
        source = kernel.regions.get(REGION_ARENA, feed.at + feed.stride * (last - 1) + feed.hop, n)
        target = kernel.regions.get(REGION_ARENA, feed.at + feed.stride * (entry - 1), n)
        if source is not None and target is not None:
            move(target, source, n)
            feed.filled = n
    if last != 0:
        state = hal.critical_enter(kernel.board)
        feed.drop(last)
        hal.critical_exit(kernel.board, state)
    return entry != 0


@fn
def end_entry(kernel: Kernel, feed: Feed, number: u32, ticks: u32) -> None:
    """The entry that is being filled is whole: poll will see it."""
    entry = u32(feed.filling)
    feed.filling = 0
    overlap = feed.hop < feed.bytes
    if overlap:
        feed.last = u8(entry)
    else:
        feed.skip = feed.hop - feed.bytes
    state = hal.critical_enter(kernel.board)
    if overlap:
        feed.hold(entry)
    at = u32(feed.first) + feed.arrived
    if at >= FEED_ENTRIES:
        at -= FEED_ENTRIES
    feed.order[at] = u8(entry)
    feed.arrived += 1
    feed.stamp[entry - 1] = ticks
    feed.entries = wrap(u32, feed.entries + 1)
    kernel.releases.fed = kernel.releases.fed | bit(number)
    hal.critical_exit(kernel.board, state)


@fn
def source_push_at(kernel: Kernel, source: u32, data: Ptr[u8] | None, n: u32, ticks: u32) -> Status:
    """Hand in the next `n` bytes of a source, which came when the board's counter showed `ticks`; from anywhere.

    What they complete releases the jobs of that source in the next poll; deadlines count from `ticks`, which must not lie
    more than half the counter's range back. Returns OK; INVAL for an unknown source or no data; BUSY, and nothing is
    taken, if a push to this source is going on; NOMEM if some or all bytes found no free entry: they are lost, and counted.
    """
    if FEEDS == 0 or data is None:
        return Status.INVAL
    if source >= kernel.releases.feed_count:
        return Status.INVAL
    feed = kernel.releases.feeds[source]
    state = hal.critical_enter(kernel.board)
    busy = feed.pushing
    feed.pushing = True
    hal.critical_exit(kernel.board, state)
    if busy:
        return Status.BUSY
    status = Status.OK
    at: u32 = 0
    while at < n:
        left = n - at
        if feed.skip != 0:
            step = min(left, feed.skip)
            feed.skip -= step
            at += step
            continue
        if feed.filling == 0:
            begun = begin_entry(kernel, feed)
            if not begun:
                if not feed.losing:
                    feed.gaps = wrap(u32, feed.gaps + 1)
                feed.losing = True
                feed.lost = sat(u32, u64(feed.lost) + left)
                status = Status.NOMEM
                at = n
                continue
            feed.losing = False
        step = min(left, feed.bytes - feed.filled)
        target = kernel.regions.get(REGION_ARENA, feed.at + feed.stride * (feed.filling - u32(1)) + feed.filled, step)
        if target is None:
            status = Status.INVAL
            at = n
            continue
        move(target, data[at:], step)
        feed.filled += step
        at += step
        if feed.filled == feed.bytes:
            end_entry(kernel, feed, source, ticks)
    state = hal.critical_enter(kernel.board)
    feed.pushing = False
    hal.critical_exit(kernel.board, state)
    hal.wake(kernel.board)
    return status


@fn
def source_push(kernel: Kernel, source: u32, data: Ptr[u8] | None, n: u32) -> Status:
    """Hand in the next `n` bytes of a source, which came just now: see `source_push_at`."""
    now = hal.ticks(kernel.board)
    return source_push_at(kernel, source, data, n, now)


@fn
def release_over(kernel: Kernel, job: Job) -> None:
    """Inside the critical section: a job that a release began is over; the next may begin, and its entry has a user less."""
    releases = kernel.releases
    number = u32(job.releaser) - 1
    release = releases.items[number]
    if release.job == job.id:
        release.job = 0
    if FEEDS != 0 and release.feed != 0:
        feed = releases.feeds[release.feed - 1]
        feed.drop(job.entry)
    job.releaser = 0
    job.entry = 0
    releases.stirred = releases.stirred | bit(number)
