"""What a program in Python asks of the kernel at once: a way into compiled code costs it more than what is done there."""

from synapticos.kernel import hal
from synapticos.kernel.kernel import Kernel
from synapticos.kernel.sched import Poll, infer_detach, kernel_poll, outcome
from synapticos.kernel.status import Status
from synapticos.lang import fn, i32, ignore, u32, u64, wrap


@fn(pure=True)
def ended(kernel: Kernel) -> u32:
    """Jobs that have ended since boot; wraps."""
    return wrap(u32, kernel.stats.done + kernel.stats.errors + kernel.stats.cancelled)


@fn(pure=True)
def job_told(over: bool, status: Status) -> u64:
    """A job's end in one word: bit 0 whether it has ended, bits 8 to 15 its status, negated."""
    if not over:
        return 0
    return u64(u32(-i32(status))) << 8 | 1


@fn
def job_look(kernel: Kernel, id: u32) -> u64:
    """Whether a job has ended, and how, as `job_told`."""
    over, status = outcome(kernel, id)
    return job_told(over, status)


@fn
def job_run(kernel: Kernel, id: u32, slice_us: u32, keep: bool) -> u64:
    """Run the kernel until job `id` has ended, another one has (somebody may wait for that), a stage of the host is
    wanted, or `slice_us` are over.

    The result is as of `job_told`; or with bit 1 set, from bit 32 on the job that wants a stage of the host. A job that
    has ended well is freed unless `keep`.
    """
    over, status = outcome(kernel, id)
    running = not over
    first = ended(kernel)
    start = hal.ticks(kernel.board)
    rate = hal.tick_rate(kernel.board)
    wanted: u32 = 0
    while running:
        answer, job = kernel_poll(kernel)
        over, status = outcome(kernel, id)
        now_ended = ended(kernel)
        running = not over and now_ended == first
        if running and answer == Poll.HOST:
            wanted = job
            running = False
        if running and answer != Poll.RAN:
            before = hal.ticks(kernel.board)
            hal.idle(kernel.board)
            after = hal.ticks(kernel.board)
            running = before != after  # else its clock stands
        if running:
            now = hal.ticks(kernel.board)
            running = u64(wrap(u32, now - start)) * 1000000 < u64(slice_us) * rate
    if wanted != 0:
        return u64(wanted) << 32 | 2
    told = job_told(over, status)
    if over and not keep and status == Status.OK:
        ignore(infer_detach(kernel, id))
    return told
