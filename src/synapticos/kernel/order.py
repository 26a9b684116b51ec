"""Order: the submitted jobs that have not begun, one queue for each frame, each in the order in which they are to begin.

A frame has an owner, or the first of its queue may take it; so who runs next is the best of as many candidates as there
are frames, however many jobs are queued. Only `poll` puts a job in; cancelling takes one out from anywhere, in a few
instructions. `poll` looks for a job's place with interrupts on, from the queue's end, and looks again if one was taken
out meanwhile: links only ever lead towards the front, so the look ends whatever else happens.

A build of few job slots keeps no queues: it is smaller, and as quick, to look through the slots.
"""

from synapticos.lang import *
from synapticos.kernel import hal
from synapticos.kernel.bits import bit, lowest_bit
from synapticos.kernel.capacity import COMPOSING, DEADLINE_ORDER, DEADLINES, MAX_JOBS
from synapticos.kernel.job import Job, JobState

FRAMES = COMPOSING + 3  # one a class, and one for all that is not planned
FEW_JOBS: Final[u32] = 4  # slots up to which a build has no queues
SLOT_WORDS = (MAX_JOBS + 31) // 32


@struct
class Slots:
    """A set of job slots. To be changed inside the critical section."""

    words: Shaped[Array[u32], SLOT_WORDS]

    @fn(inline=True)
    def add(self, slot: u32) -> None:
        if SLOT_WORDS == 1:
            self.words[0] = self.words[0] | bit(slot)
        else:
            self.words[slot >> 5] = self.words[slot >> 5] | bit(slot & 31)

    @fn(inline=True)
    def remove(self, slot: u32) -> None:
        if SLOT_WORDS == 1:
            self.words[0] = self.words[0] & ~bit(slot)
        else:
            self.words[slot >> 5] = self.words[slot >> 5] & ~bit(slot & 31)

    @fn(pure=True, inline=True)
    def any(self) -> bool:
        if SLOT_WORDS == 1:
            return self.words[0] != 0
        return self.words[0] != 0 or self.words[SLOT_WORDS - 1] != 0

    @fn(pure=True, inline=True)
    def first(self) -> u32:
        """The first slot of a set that is not empty."""
        if MAX_JOBS == 1:
            return 0
        if SLOT_WORDS == 1 or self.words[0] != 0:
            return lowest_bit(self.words[0])
        return lowest_bit(self.words[SLOT_WORDS - 1]) + 32


@struct
class Order:
    first: u8  # job slot + 1; 0: none
    last: u8


@struct
class Orders:
    items: Shaped[Array[Order], FRAMES]
    taken_out: u32  # jobs, since boot; wraps

    @fn(pure=True)
    def has(self, job: Job, slot: u32) -> bool:
        """Is the job in its frame's queue?"""
        return job.before != 0 or self.items[job.frame].first == slot + 1


@fn(pure=True)
def begins_before(a: Job, b: Job) -> bool:
    """Of two jobs that have not begun: class, then the deadline, then submission."""
    if a.priority != b.priority:
        return a.priority > b.priority
    if DEADLINES != 0 and DEADLINE_ORDER != 0 and a.deadline != b.deadline:
        return a.deadline < b.deadline
    return wrap(u32, a.sequence - b.sequence) > 0x7FFFFFFF


@fn(pure=True)
def goes_before(a: Job, b: Job) -> bool:
    """Is `a` more urgent? Class; then half-done ones; then the deadline; then submission."""
    if a.priority != b.priority:
        return a.priority > b.priority
    begun_a = a.state != JobState.QUEUED
    begun_b = b.state != JobState.QUEUED
    if begun_a != begun_b:
        return begun_a
    return begins_before(a, b)


@fn(inline=False)
def take_out(queues: Orders, jobs: Ptr[Job], slot: u32) -> None:
    """Inside the critical section: the job of a slot is in no queue from here on. Nothing if it is in none."""
    job = jobs[slot]
    queue = queues.items[job.frame]
    if not queues.has(job, slot):
        return
    queues.taken_out = wrap(u32, queues.taken_out + 1)
    if job.before == 0:
        queue.first = job.behind
    else:
        jobs[job.before - 1].behind = job.behind
    if job.behind == 0:
        queue.last = job.before
    else:
        jobs[job.behind - 1].before = job.before
    job.before = 0
    job.behind = 0


@fn(inline=False)
def put_in(board: u32, queues: Orders, jobs: Ptr[Job], slot: u32, id: u32) -> None:
    """In `poll`: give job `id` its place, unless it is not queued any more."""
    job = jobs[slot]
    looking = True
    while looking:
        taken_out = queues.taken_out
        queue = queues.items[job.frame]
        before = u32(queue.last)
        while before != 0 and begins_before(job, jobs[before - 1]):
            before = u32(jobs[before - 1].before)
        state = hal.critical_enter(board)
        if job.id != id or job.state != JobState.QUEUED:
            looking = False  # it was cancelled
        elif queues.taken_out == taken_out:
            looking = False
            job.before = u8(before)
            if before == 0:
                job.behind = queue.first
                queue.first = u8(slot + 1)
            else:
                job.behind = jobs[before - 1].behind
                jobs[before - 1].behind = u8(slot + 1)
            if job.behind == 0:
                queue.last = u8(slot + 1)
            else:
                jobs[job.behind - 1].before = u8(slot + 1)
        hal.critical_exit(board, state)
