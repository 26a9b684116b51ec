"""Firmware that runs by the clock as `app.clock` does, and writes down what each poll of the kernel saw.

The clock has been going for twelve days as it begins. Each call of `counted_poll` leaves a PollRecord in the file `polls`.
"""

from synapticos.app.clock import RUN, Run, aim_feed, push_due, push_idle, read_plan, rest
from synapticos.app.program import KERNEL, program_start
from synapticos.kernel import hal
from synapticos.kernel.capacity import DEADLINES, FEEDS, MAX_JOBS, RELEASES
from synapticos.kernel.due import releases_start
from synapticos.kernel.kernel import Kernel
from synapticos.kernel.sched import Poll, kernel_poll_at
from synapticos.kernel.status import Status
from synapticos.lang import (
    Array, Final, Shaped, fn, i32, local, rom, sizeof, static, struct, u8, u32, u64, view, wrap,
)  # fmt: skip

NOBODY: Final[u32] = 0xFF
MOST: Final[u32] = 8  # jobs, and sources


@struct
class PollRecord:
    pipeline: u8  # whose step ran; NOBODY: none
    stage: u8  # where it stood before
    scanned: u8  # deadlines were looked at
    begun: u8  # the job had been begun before
    step: u32
    row: u32
    looked: u32  # bit n: release n was to be looked at
    released: Shaped[Array[u8], MOST]  # times, in this poll
    started: Shaped[Array[u8], MOST]
    missed: Shaped[Array[u8], MOST]
    arrived: Shaped[Array[u8], MOST]


@struct
class Before:
    released: Shaped[Array[u32], RELEASES]
    started: Shaped[Array[u32], RELEASES]
    missed: Shaped[Array[u32], RELEASES]
    id: Shaped[Array[u32], MAX_JOBS]
    stage: Shaped[Array[u8], MAX_JOBS]
    begun: Shaped[Array[u8], MAX_JOBS]
    step: Shaped[Array[u32], MAX_JOBS]
    row: Shaped[Array[u32], MAX_JOBS]
    at: u32  # bytes of the file


BEFORE = static(Before)
POLLS = rom(b"polls")
RECORD_BYTES = sizeof(PollRecord)


@fn(inline=False)
def counted_poll(kernel: Kernel) -> tuple[Poll, u32]:
    now = hal.ticks(0)
    answer, job = kernel_poll_at(kernel, now)
    return answer, job


@fn(inline=False)
def note_poll(kernel: Kernel, before: Before) -> Poll:
    """One poll and its record."""
    record = local(PollRecord)
    for i in range(RELEASES):
        before.released[i] = kernel.releases.items[i].released
        before.started[i] = kernel.releases.items[i].started
        before.missed[i] = kernel.pipelines.items[kernel.releases.items[i].pipeline].misses
    for i in range(FEEDS):
        record.arrived[i] = kernel.releases.feeds[i].arrived
    for i in range(MAX_JOBS):
        before.id[i] = kernel.jobs[i].id
        before.stage[i] = kernel.jobs[i].stage
        before.step[i] = kernel.jobs[i].step
        before.row[i] = kernel.jobs[i].row
        before.begun[i] = u8(1 if kernel.current == i + 1 else 0)
    late_at = kernel.late_at
    record.looked = kernel.releases.stirred
    answer, id = counted_poll(kernel)
    record.pipeline = NOBODY
    for i in range(MAX_JOBS):
        if id != 0 and kernel.jobs[i].id == id:
            record.pipeline = kernel.jobs[i].pipeline
            if before.id[i] == id:  # else it has come in this poll
                record.stage = before.stage[i]
                record.step = before.step[i]
                record.row = before.row[i]
                record.begun = before.begun[i]
    record.scanned = u8(1 if DEADLINES != 0 and kernel.late_at > late_at else 0)
    for i in range(RELEASES):
        release = kernel.releases.items[i]
        record.released[i] = u8(wrap(u32, release.released - before.released[i]))
        record.started[i] = u8(wrap(u32, release.started - before.started[i]))
        record.missed[i] = u8(wrap(u32, kernel.pipelines.items[release.pipeline].misses - before.missed[i]))
    done = hal.file_write(0, POLLS, before.at, view(u8, record), RECORD_BYTES)
    assert done == i32(RECORD_BYTES), "a file that takes no more"
    before.at += RECORD_BYTES
    return answer


@fn
def go(kernel: Kernel, run: Run) -> Status:
    kernel.clock.ticks = u64(1000000) * kernel.clock.rate
    status, span = read_plan(kernel, run)
    if status != Status.OK:
        return status
    begun = releases_start(kernel, span)
    if begun != Status.OK:
        return begun
    for i in range(run.feeds):
        aim_feed(kernel, run, i)
    going = True
    while going:
        now = hal.ticks(0)
        pushed = push_due(kernel, run, now)
        if pushed != Status.OK:
            return pushed
        answer = note_poll(kernel, BEFORE)
        if answer != Poll.RAN:
            idle, some = push_idle(kernel, run)
            if idle != Status.OK:
                return idle
            if not some:
                going = rest(kernel, run)
    return Status.OK


@fn
def main() -> i32:
    started = program_start(KERNEL)
    if not started:
        return 1
    status = go(KERNEL, RUN)
    return i32(status)
