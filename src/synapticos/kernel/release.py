"""Releases and feeds as data: what lets an app's jobs begin.

A release is a row for each job of an app: when it begins (by the clock, or by what arrives in a feed), and what becomes of
a beginning while the last one still runs. A feed is a source's ring of entries, each of them one input: a picture, a window
of sound, a row of features. Entries are read where they lie; whoever needs one counts as a user, and a free entry is one
without users.

A job that reads several sources gets a copy of an entry of each, one behind the other: of the one that releases it the next,
of the others the newest that poll has seen.

For each release: released = started + dropped + coalesced + starved + those that wait.
"""

from synapticos.lang import *
from synapticos.kernel.capacity import FEED_ENTRIES, FEEDS, JOINS, MAX_WAITING, RELEASES
from synapticos.kernel.tensor import Tensor


BOX_BYTES: Final[u32] = 24  # x1, y1, x2, y2, score, class
BOX_STRIDE: Final[u32] = 32


class Queue(u8, Enum):
    """What becomes of a release that finds the queue of its job full."""

    OLDEST = 0  # the one that has waited longest is dropped for it
    NEWEST = 1  # it is dropped itself
    COALESCE = 2  # one waits at most: it keeps its time and takes the newer data


@struct
class Waiting:
    """A release whose job has not been submitted yet."""

    release_us: u64  # nominal, since boot
    entry: u8  # of its feed, + 1; 0: none
    item: u8  # which of several that one result caused
    reserved: Shaped[Array[u8], 6]


@struct
class Release:
    x: Tensor  # what its jobs take; where it lies is said by the entry, if there is a feed
    next_us: u64  # nominal time of the next release by the clock, since boot; NEVER: none
    next_ticks: u64  # the first tick at which that time has come
    period_us: u32  # 0: not by the clock
    phase_us: u32  # of its first release, from the start of releases
    jitter_us: u32  # by which a release may come after its nominal time; for whoever analyses
    job: u32  # id of its job that has not ended; 0: none
    last: u32  # id of its last job
    released: u32  # times it was due, or data came
    started: u32  # of these: jobs submitted
    dropped: u32
    coalesced: u32
    starved: u32  # a source that it reads at its newest had never given anything
    late: u32  # by the clock, and seen only when the next one was due already
    surplus: u32  # boxes beyond `most`
    boxes_at: u32  # in the arena: for each place of `queue`, then for the job that runs, a box, or a copy of several entries
    stride: u32  # from one of these to the next, bytes
    delay_us: u32  # longest from nominal time to when poll saw it
    pipeline: u8  # slot
    feed: u8  # + 1; 0: none
    policy: Queue
    depth: u8  # releases that may wait, 1..MAX_WAITING
    waiting: u8
    first: u8  # place of the oldest in `queue`
    enabled: bool
    parent: u8  # pipeline slot + 1 whose boxes release it; 0: none
    most: u8  # boxes of one result
    joins: u8  # sources, if there are several
    reserved: u8
    by_feed: bool  # what arrives in its feed releases it
    collect: bool  # somebody reads its results, and frees the slot by `infer_detach`
    join: Shaped[Array[u8], JOINS]  # their feeds, in the order of a job's input
    queue: Shaped[Array[Waiting], MAX_WAITING]

    @fn
    def place(self, n: u32) -> u32:
        """Where in `queue` the waiting release lies that is `n` behind the oldest."""
        at = u32(self.first) + n
        if at >= MAX_WAITING:
            at -= MAX_WAITING
        return at


@struct
class JobCounts:
    """What became of the releases of a job since boot; all wrap but `delay_us` and `surplus`."""

    released: u32  # = started + dropped + coalesced + starved + waiting
    started: u32
    dropped: u32
    coalesced: u32
    starved: u32
    late: u32
    surplus: u32
    misses: u32  # deadlines, of all jobs of its pipeline
    delay_us: u32
    waiting: u32


@struct
class FeedCounts:
    """What became of what a source gave since boot."""

    entries: u32
    lost: u32  # bytes; stays at its largest
    gaps: u32


@struct
class Feed:
    at: u32  # of its entries in the arena; a multiple of 16
    stride: u32  # from one entry to the next, bytes
    bytes: u32  # of a whole entry
    hop: u32  # bytes from where one entry begins in what is pushed to where the next one does
    filled: u32  # bytes in the entry that is being filled
    skip: u32  # bytes that belong to no entry before the next one begins
    period_us: u32  # nominal, from one entry to the next; 0: not known
    entries: u32  # whole ones since boot
    lost: u32  # bytes that found no free entry
    gaps: u32  # how often that began
    keep: u8  # entries, 1..FEED_ENTRIES
    filling: u8  # entry + 1; 0: none
    last: u8  # entry + 1 whose end is the beginning of the next; 0: none
    newest: u8  # entry + 1 that releases by the clock read; 0: nothing has come
    by_clock: bool  # there are such
    losing: bool  # the last push found no free entry
    pushing: bool  # somebody fills it now
    arrived: u8  # whole entries that poll has not seen
    first: u8  # place of the oldest of these in `order`
    reserved: Shaped[Array[u8], 3]
    stamp: Shaped[Array[u32], FEED_ENTRIES]  # the counter as the entry was whole
    users: Shaped[Array[u16], FEED_ENTRIES]  # of all releases: those that wait, and their jobs
    order: Shaped[Array[u8], FEED_ENTRIES]

    @fn
    def drop(self, entry: u32) -> None:
        """Inside the critical section: one user less of `entry` (+ 1; 0: of none)."""
        if entry != 0:
            self.users[entry - 1] -= 1

    @fn
    def hold(self, entry: u32) -> None:
        """Inside the critical section: one user more."""
        if entry != 0:
            self.users[entry - 1] += 1

    @fn
    def free_entry(self) -> u32:
        """Inside the critical section: an entry without users, + 1, or 0."""
        for i in range(u32(self.keep)):
            if self.users[i] == 0:
                return i + 1
        return 0


@struct
class Releases:
    due_us: u64  # when the next release by the clock is, since boot; NEVER: none
    due_ticks: u64  # the same in ticks
    end_us: u64  # since boot: no release by the clock at or after it; NEVER: they go on
    origin_us: u64  # since boot: phases count from here; never 0
    count: u32  # of `items` in use
    feed_count: u32
    wanted: u32  # bit n: release n is to be enabled
    stirred: u32  # bit n: poll must look at release n
    fed: u32  # bit n: whole entries have arrived in feed n
    joining: u32  # bit n: feed n releases a job that reads others too
    items: Shaped[Array[Release], RELEASES]
    feeds: Shaped[Array[Feed], FEEDS]
