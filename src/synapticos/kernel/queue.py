"""The queue of a release: what waits until its last job has ended, and what is dropped when too many do."""

from synapticos.lang import *
from synapticos.kernel import hal
from synapticos.kernel.bits import bit
from synapticos.kernel.arena import align_up
from synapticos.kernel.capacity import FEEDS, JOINS, MAX_WAITING, RELEASES
from synapticos.kernel.job import Job
from synapticos.kernel.kernel import Kernel
from synapticos.kernel.region import REGION_ARENA
from synapticos.kernel.release import BOX_BYTES, BOX_STRIDE, Queue, Release


@fn
def drop_entry(kernel: Kernel, release: Release, entry: u32) -> None:
    """One user less of an entry (+ 1; 0: none) of a release's feed."""
    if FEEDS != 0 and entry != 0:
        state = hal.critical_enter(kernel.board)
        feed = kernel.releases.feeds[release.feed - 1]
        feed.drop(entry)
        hal.critical_exit(kernel.board, state)


@fn
def drop_first(kernel: Kernel, release: Release) -> None:
    """The oldest release that waits is dropped."""
    drop_entry(kernel, release, release.queue[release.first].entry)
    release.first = u8(release.place(1))
    release.waiting -= 1
    release.dropped = wrap(u32, release.dropped + 1)


@fn
def add_release(kernel: Kernel, release: Release, us: u64, entry: u32, item: u32) -> u32:
    """A release at `us` with an entry that the caller holds a user of: it waits, or its policy says what else.

    The result is its place in the queue; MAX_WAITING if it is dropped.
    """
    release.released = wrap(u32, release.released + 1)
    if release.policy == Queue.COALESCE and release.waiting != 0:
        waiting = release.queue[release.first]
        drop_entry(kernel, release, waiting.entry)
        waiting.entry = u8(entry)
        waiting.item = u8(item)
        release.coalesced = wrap(u32, release.coalesced + 1)
        return u32(release.first)
    if release.waiting >= release.depth:
        if release.policy == Queue.NEWEST:
            drop_entry(kernel, release, entry)
            release.dropped = wrap(u32, release.dropped + 1)
            return MAX_WAITING
        drop_first(kernel, release)
    place = release.place(release.waiting)
    waiting = release.queue[place]
    waiting.release_us = us
    waiting.entry = u8(entry)
    waiting.item = u8(item)
    release.waiting += 1
    return place


@fn
def join_ready(kernel: Kernel, release: Release, given: u32) -> bool:
    """Has each source of a release given something? One whose entry is at hand need not be asked: feed `given` (+ 1)."""
    for i in range(JOINS):
        if i < release.joins and release.join[i] + u32(1) != given and kernel.releases.feeds[release.join[i]].newest == 0:
            return False
    return True


@fn
def join_entries(kernel: Kernel, release: Release, place: u32, given: u32, entry: u32) -> None:
    """Copy an entry of each source, each from a multiple of 16 on, to where what waits at `place` of the queue has its input:
    `entry` of feed `given` (+ 1), of the others the newest. None of them is filled meanwhile, for it has a user."""
    at = release.boxes_at + place * release.stride
    for i in range(JOINS):
        if i < release.joins:
            feed = kernel.releases.feeds[release.join[i]]
            one = u32(feed.newest)
            if release.join[i] + u32(1) == given:
                one = entry
            target = kernel.regions.get(REGION_ARENA, at, feed.bytes)
            if one != 0 and target is not None:
                source = kernel.regions.get(REGION_ARENA, feed.at + feed.stride * (one - u32(1)), feed.bytes)
                if source is not None:
                    move(target, source, feed.bytes)
            at += align_up(feed.bytes)


@fn
def add_joined(kernel: Kernel, release: Release, us: u64, given: u32, entry: u32) -> None:
    """A release at `us` of a job of several sources, one of which may have given `entry` just now."""
    ready = join_ready(kernel, release, given)
    if not ready:
        release.released = wrap(u32, release.released + 1)
        release.starved = wrap(u32, release.starved + 1)
        return
    place = add_release(kernel, release, us, 0, 0)
    if place != MAX_WAITING:
        join_entries(kernel, release, place, given, entry)


@fn(inline=False)
def cascade_boxes(kernel: Kernel, job: Job) -> None:
    """A job has left boxes: each of the first ones releases the jobs that look at it, with the job's own input.

    Those beyond `most` are counted as surplus; those of a job that a release did not begin have no picture: starved.
    """
    boxes = job.x[0]
    n: u32 = 0
    if boxes.ndim == 2 and boxes.shape[1] * 4 == BOX_BYTES:
        n = boxes.shape[0]
    data = kernel.regions.get(boxes.region, boxes.offset, n * BOX_BYTES)
    if data is None or RELEASES == 0:
        return
    time = kernel.clock.us()
    releases = kernel.releases
    for i in range(min(releases.count, RELEASES)):
        release = releases.items[i]
        if release.parent != job.pipeline + u32(1) or not release.enabled:
            continue
        most = min(n, u32(release.most))
        release.surplus = sat(u32, u64(release.surplus) + (n - most))
        for k in range(most):
            if job.entry == 0:
                release.released = wrap(u32, release.released + 1)
                release.starved = wrap(u32, release.starved + 1)
                continue
            state = hal.critical_enter(kernel.board)
            feed = releases.feeds[release.feed - 1]
            feed.hold(job.entry)
            hal.critical_exit(kernel.board, state)
            place = add_release(kernel, release, max(time, 1), job.entry, k)
            target = kernel.regions.get(REGION_ARENA, release.boxes_at + place * BOX_STRIDE, BOX_BYTES)
            if place != MAX_WAITING and target is not None:
                move(target, data[k * BOX_BYTES :], BOX_BYTES)
        state = hal.critical_enter(kernel.board)
        releases.stirred = releases.stirred | bit(i)
        hal.critical_exit(kernel.board, state)
