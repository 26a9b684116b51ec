"""What a program in Python asks of the kernel at once: a way into compiled code costs it more than what is done there.

One thread at a time runs the kernel, by `job_run` or `take_turn`; others sleep in `job_await` meanwhile. A job that is
awaited so is its waiter's to take: who runs the kernel need not go back to Python for its end.
"""

from synapticos.kernel import hal
from synapticos.kernel.arena import align_up
from synapticos.kernel.capacity import MAX_JOBS
from synapticos.kernel.due import due_ticks, ended_job, rest_until
from synapticos.kernel.job import job_finished
from synapticos.kernel.kernel import Kernel
from synapticos.kernel.sched import Poll, find_slot, infer_abort, infer_detach, kernel_poll, outcome
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import MAX_STAGE_INPUTS
from synapticos.lang import Array, Ptr, Shaped, fn, i32, ignore, move, struct, u8, u32, u64, wrap

ENDED = 1  # bits of an answer: the job has ended, or one has
HOST = 2  # a stage of the host is wanted


@struct
class Turn:
    """Who runs the kernel, who wants to, and who waits."""

    left: u32  # how often a thread has gone that ran it; wraps
    wanted: u32  # not 0: somebody waits to run it
    awaited: Shaped[Array[u32], MAX_JOBS]  # by slot: id of a job that a thread waits for in `job_await`


@fn(pure=True)
def ended(kernel: Kernel) -> u32:
    """Jobs that have ended since boot; wraps."""
    return wrap(u32, kernel.stats.done + kernel.stats.errors + kernel.stats.cancelled)


@fn(pure=True)
def job_told(over: bool, status: Status) -> u64:
    """A job's end in one word: bit 0 whether it has ended, bits 8 to 15 its status, negated."""
    if not over:
        return 0
    return u64(u32(-i32(status))) << 8 | ENDED


@fn
def job_look(kernel: Kernel, id: u32) -> u64:
    """Whether a job has ended, and how, as `job_told`."""
    over, status = outcome(kernel, id)
    return job_told(over, status)


@fn
def job_stop(kernel: Kernel, id: u32) -> Status:
    """`infer_abort`, heard by who sleeps until the job has ended."""
    status = infer_abort(kernel, id)
    hal.wake(kernel.board)
    return status


@fn
def untaken(kernel: Kernel, turn: Turn) -> bool:
    """Has a job ended that nobody takes who waits in `job_await`?"""
    found = False
    state = hal.critical_enter(kernel.board)
    for i in range(MAX_JOBS):
        job = kernel.jobs[i]
        if job_finished(job) and turn.awaited[i] != job.id:
            found = True
    hal.critical_exit(kernel.board, state)
    return found


@fn
def sleep(kernel: Kernel, span: u32) -> bool:
    """Sleep until there may be something to do, `span` ticks at most; for the thread that runs the kernel. False if its
    clock stands."""
    due = due_ticks(kernel)
    before = hal.ticks(kernel.board)
    time = kernel.clock.ticks + wrap(u32, before - kernel.clock.last)
    if due <= time:
        return True
    end = time + span
    rest_until(kernel, min(due, end))
    after = hal.ticks(kernel.board)
    return before != after


@fn
def take_turn(kernel: Kernel, turn: Turn, id: u32, span: u32) -> u64:
    """Run the kernel, and sleep when there is nothing to do, until job `id` (0: none) has ended, or another one that its
    waiter does not take; a stage of the host is wanted; another thread wants its turn; `span` ticks are over (0: one round);
    or there is nothing to do and the clock stands.

    The result is ENDED, or HOST and from bit 32 on the job that wants a stage, or 0.
    """
    start = hal.ticks(kernel.board)
    first = ended(kernel)
    left = span
    while True:
        answer, job = kernel_poll(kernel)
        now_ended = ended(kernel)
        if now_ended != first:
            first = now_ended
            over, status = outcome(kernel, id)
            if over and id != 0:
                return ENDED
            over = untaken(kernel, turn)
            if over:
                return ENDED
        if answer == Poll.HOST:
            return u64(job) << 32 | HOST
        goes = True
        if answer != Poll.RAN and turn.wanted == 0:
            goes = sleep(kernel, left)
        now = hal.ticks(kernel.board)
        spent = wrap(u32, now - start)
        left = span - min(spent, span)
        if not goes or left == 0 or turn.wanted != 0:
            return 0


@fn
def job_run(kernel: Kernel, turn: Turn, id: u32, span: u32, keep: bool) -> u64:
    """`take_turn` for job `id`. The result is as of `job_told`; or with HOST set, from bit 32 on the job that wants a stage
    of the host. A job that has ended well is freed unless `keep`."""
    over, status = outcome(kernel, id)
    if not over:
        told = take_turn(kernel, turn, id, span)
        if told & HOST != 0:
            return told
        over, status = outcome(kernel, id)
    if over and not keep and status == Status.OK:
        ignore(infer_detach(kernel, id))
    return job_told(over, status)


@fn
def job_await(kernel: Kernel, turn: Turn, left: u32, id: u32, span: u32) -> u64:
    """Sleep until job `id` has ended, who ran the kernel has gone (`turn.left` is not `left` any more), or `span` ticks are
    over; while another thread runs the kernel, and only by a clock that goes.

    The result is as of `job_told`. If the job has ended it is for the caller to take; it stays marked as awaited until then.
    """
    state = hal.critical_enter(kernel.board)
    slot = find_slot(kernel, id)
    if slot != MAX_JOBS:
        turn.awaited[slot] = id
    hal.critical_exit(kernel.board, state)
    over, status = outcome(kernel, id)
    start = hal.ticks(kernel.board)
    spent: u32 = 0
    while not over and spent < span and turn.left == left:
        hal.wake_at(kernel.board, wrap(u32, start + span))
        hal.idle(kernel.board)
        over, status = outcome(kernel, id)
        now = hal.ticks(kernel.board)
        spent = wrap(u32, now - start)
    if over:
        return job_told(over, status)
    # From here on whoever runs the kernel tells of its end; what ended before is seen once more.
    state = hal.critical_enter(kernel.board)
    if slot != MAX_JOBS:
        turn.awaited[slot] = 0
    hal.critical_exit(kernel.board, state)
    over, status = outcome(kernel, id)
    return job_told(over, status)


@struct
class Ended:
    """A job that the kernel began, and that has ended."""

    release: u64  # nominal, in ticks since boot
    finish: u64  # in ticks since boot, as it is looked at
    id: u32  # 0: there is none
    number: u32  # of its release
    user: u32
    status: Status
    missed: bool  # its deadline
    faulted: bool
    more: bool  # without an id: one is about to be told
    outputs: u8  # 0 unless it ended well
    reserved: Shaped[Array[u8], 4]
    size: Shaped[Array[u32], MAX_STAGE_INPUTS]  # bytes of each output


@fn
def ended_take(kernel: Kernel, ended: Ended, data: Ptr[u8], room: u32) -> Status:
    """Look at a job that has ended and whose result waits for its reader: the oldest of the release with the lowest number.

    Its outputs are copied to `data`, each from a multiple of 16 on. It keeps its slot until `infer_detach`; one reader at a
    time. Returns OK, and with `ended.id` 0 there is none; MSGSIZE if the outputs take more than `room` bytes.
    """
    ended.id = 0
    ended.more = False
    ended.outputs = 0
    number: u32 = 0
    while number < kernel.releases.count and ended.id == 0:
        ended.id = ended_job(kernel, number)
        ended.number = number
        number += 1
    state = hal.critical_enter(kernel.board)
    slot = find_slot(kernel, ended.id)
    for i in range(MAX_JOBS):
        if job_finished(kernel.jobs[i]) and kernel.jobs[i].collector != 0:
            ended.more = True
    hal.critical_exit(kernel.board, state)
    if slot == MAX_JOBS:
        return Status.OK
    job = kernel.jobs[slot]
    ended.release = job.release
    ended.finish = kernel.clock.ticks
    ended.user = job.user
    ended.status = job.status
    ended.missed = job.missed
    ended.faulted = job.faulted
    if job.status != Status.OK:
        return Status.OK
    at: u32 = 0
    for i in range(job.inputs):
        x = job.x[i]
        source = kernel.regions.get(x.region, x.offset, x.size)
        at = align_up(at)
        if source is None or at > room or x.size > room - at:
            return Status.MSGSIZE
        move(data[at:], source, x.size)
        ended.size[i] = x.size
        at += x.size
    ended.outputs = job.inputs
    return Status.OK
