"""The program that runs an app's jobs step by step on a board, so that each poll of the kernel can be measured.

It is built like the app's firmware, with this `main`. For each job, frame after frame of the file `in<job>`: post it,
then poll until it has ended. Then all jobs at once, which shows what looking through a full table costs; then, of each
pair of a job and one of a higher class, the first until it is half done, the second to its end and the first again.
While nothing can run but an accelerator works, it sleeps.

Then nothing may begin (`kernel.hold`), the table is full, and of each job a poll sees it released, begun, and late; of each
source, what it has given; of each detector, its boxes. The clock is far beyond 32 bits all the time: what is divided takes
its longest then. Before each of these polls is one that finds nothing: what the other takes beyond that is the event's.

Each call of a `measured_` function leaves a MeasureRecord in the file `steps`, in order.
"""

from synapticos.app.program import INPUTS, KERNEL, program_start
from synapticos.kernel import hal
from synapticos.kernel.backend import NpuWork
from synapticos.kernel.bits import bit
from synapticos.kernel.capacity import DEADLINES, FEEDS, JOINS, MAX_JOBS, MAX_WAITING, OFFLOAD, RELEASES
from synapticos.kernel.divide import divide
from synapticos.kernel.due import give_box, kernel_rest, release_due
from synapticos.kernel.feed import source_push_at
from synapticos.kernel.job import NEVER, HostWork, Job, JobState, Late, Timed
from synapticos.kernel.kernel import Kernel
from synapticos.kernel.queue import add_release, cascade_boxes, drop_first
from synapticos.kernel.region import REGION_ARENA
from synapticos.kernel.release import BOX_BYTES, Release
from synapticos.kernel.sched import Poll, find_slot, infer_detach, infer_post, kernel_poll, kernel_poll_at
from synapticos.kernel.status import Status
from synapticos.kernel.tables import app_pipeline
from synapticos.kernel.tensor import STAGE_INPUTS, Tensor
from synapticos.lang import (
    Array,
    Final,
    Ptr,
    Shaped,
    blob,
    f32,
    fill,
    fn,
    i32,
    ignore,
    local,
    move,
    rom,
    sizeof,
    static,
    struct,
    u8,
    u32,
    u64,
    view,
)

MEASURES = blob()  # MeasureRow, one a job
STEPS_FILE = rom(b"steps")
KIND_POST: Final[u32] = 0
KIND_POLL: Final[u32] = 1
KIND_WORK: Final[u32] = 2
NOBODY: Final[u32] = 0xFFFF
LONG_AGO: Final[u64] = 0x138800000000  # ticks that the clock has been going, at least
AHEAD: Final[u32] = 0x7FFFFFFF  # ticks to deadlines while steps are counted: none strikes

# A record's `phase`.
ALONE: Final[u32] = 0
TOGETHER: Final[u32] = 1
SET_ASIDE: Final[u32] = 2
NOTHING: Final[u32] = 3  # a poll that finds nothing
DUE: Final[u32] = 4  # one that sees job `job` released by the clock
BEGUN: Final[u32] = 5  # one that gives it its place among those that are to run
LATE: Final[u32] = 6  # one that sees its deadline pass
STIRRED: Final[u32] = 7  # one that looks at all releases, and none begins
ARRIVED: Final[u32] = 8  # one that sees an entry of source `job` whole
PUSHED: Final[u32] = 9  # no poll: a driver hands in what source `job` gives
BOXES: Final[u32] = 10  # no poll: what job `job` leaves releases others
REST: Final[u32] = 11  # no poll: to sleep, and what wakes is there already


@struct
class MeasureRow:
    """How one job is fed."""

    pipeline: u32
    input_at: u32  # bytes; a multiple of 16
    priority: u32
    deadline: u32  # us, 0: none
    released: u32  # 1: the kernel releases it
    boxes: u32  # of its result, that release others
    tensor: Tensor


@struct
class MeasureRecord:
    """One call: what ran in it, and where the job's cursor stood before."""

    kind: u32
    phase: u32
    job: u32  # number of its row; NOBODY: the poll found nothing
    frame: u32
    stage: u32
    step: u32  # layer
    row: u32
    status: i32  # of the job once it has ended; what posting said
    taken: u32  # the accelerator had done a step of this job, which was taken up
    began: u32  # NpuWork that the accelerator was told to begin


@struct
class Measured:
    """What the program keeps: which job each row has now, and where the file ends."""

    at: u32  # bytes written
    phase: u32
    frame: u32
    about: u32  # whom the next poll is about, if it runs nobody
    ids: Shaped[Array[u32], MAX_JOBS]


MEASURE_STATE = static(Measured)
MEASURE_ROW_BYTES = sizeof(MeasureRow)
MEASURE_RECORD_BYTES = sizeof(MeasureRecord)


@fn(inline=True)
def any_poll(kernel: Kernel) -> tuple[Poll, u32]:
    """As the app's own firmware polls."""
    if RELEASES != 0:
        now = hal.ticks(kernel.board)
        answer, job = kernel_poll_at(kernel, now)
        return answer, job
    answer, job = kernel_poll(kernel)
    return answer, job


@fn(inline=False)
def measured_poll(kernel: Kernel) -> tuple[Poll, u32]:
    answer, job = any_poll(kernel)
    return answer, job


@fn(inline=False)
def measured_post(kernel: Kernel, pipe: u32, input: Tensor, data: Ptr[u8]) -> tuple[Status, u32]:
    status, job = infer_post(kernel, pipe, input, data, None, 0, None)
    return status, job


@fn(inline=False)
def measured_work(kernel: Kernel, what: u32, number: u32) -> None:
    if FEEDS != 0 and what == PUSHED:
        ignore(source_push_at(kernel, number, INPUTS, kernel.releases.feeds[number].hop, kernel.clock.last))
    elif RELEASES != 0 and what == BOXES:
        cascade_boxes(kernel, kernel.jobs[number])
    elif what == REST:
        kernel_rest(kernel)


@fn(inline=False)
def measure_write(state: Measured, record: MeasureRecord) -> bool:
    done = hal.file_write(0, STEPS_FILE, state.at, view(u8, record), MEASURE_RECORD_BYTES)
    state.at += MEASURE_RECORD_BYTES
    return done == i32(MEASURE_RECORD_BYTES)


@fn(inline=False)
def measure_read(number: u32, at: u32, data: Ptr[u8], n: u32) -> bool:
    """`n` bytes at byte `at` of the file `in<number>`."""
    name = local(u8, 8)
    name[0] = 105
    name[1] = 110
    if number >= 10:
        name[2] = u8(48 + number // 10)
        name[3] = u8(48 + number % 10)
    else:
        name[2] = u8(48 + number)
    got = hal.file_read(0, name, at, data, n)
    return got == i32(n)


@fn
def long_ago(kernel: Kernel) -> None:
    """The clock has been going for long; it is in the middle of a second, and far from where its upper half changes."""
    seconds = divide(LONG_AGO, kernel.clock.rate) + 1
    kernel.clock.ticks = seconds * kernel.clock.rate + kernel.clock.rate // 4


@fn(inline=False)
def measure_post(kernel: Kernel, state: Measured, number: u32) -> bool:
    """Post a frame of job `number`, from the file at the frame that the state says. False if there is none or it is refused."""
    row = view(MeasureRow, MEASURES[number * MEASURE_ROW_BYTES :])
    input = INPUTS[row.input_at : row.input_at + row.tensor.size]
    read = measure_read(number, state.frame * row.tensor.size, input, row.tensor.size)
    if not read:
        return False
    pipe = app_pipeline(kernel, row.pipeline)
    record = local(MeasureRecord)
    status, id = measured_post(kernel, pipe, row.tensor, input)
    record.kind = KIND_POST
    record.phase = state.phase
    record.job = number
    record.frame = state.frame
    record.status = i32(status)
    state.ids[number] = id
    slot = find_slot(kernel, id)
    if RELEASES != 0 and row.released != 0 and slot != MAX_JOBS:
        as_released(kernel, kernel.jobs[slot], number, input)
        if STAGE_INPUTS > 1 and kernel.releases.items[number].parent != 0:
            measure_box(kernel, kernel.jobs[slot], kernel.releases.items[number], row.tensor, state.frame)
    written = measure_write(state, record)
    return written and status == Status.OK


@fn
def as_released(kernel: Kernel, job: Job, number: u32, input: Ptr[u8]) -> None:
    """As if release `number` had begun this job: its end lets that, an entry and the slot go. Of several sources it has copies."""
    release = kernel.releases.items[number]
    release.job = job.id
    job.releaser = u8(number + 1)
    job.detached = True
    if JOINS != 0 and release.joins != 0:
        x = job.x[0]
        at = release.boxes_at + MAX_WAITING * release.stride
        copies = kernel.regions.get(REGION_ARENA, at, x.size)
        assert copies is not None, "an input outside the arena"
        move(copies, input, x.size)
        x.region = u8(REGION_ARENA)
        x.offset = at
    elif FEEDS != 0 and release.feed != 0:
        job.entry = 1
        feed = kernel.releases.feeds[release.feed - 1]
        feed.hold(1)


@fn
def measure_box(kernel: Kernel, job: Job, release: Release, picture: Tensor, frame: u32) -> None:
    """A job that looks at a box gets one: all of its picture, or less of it in later frames."""
    data = kernel.regions.get(REGION_ARENA, release.boxes_at, BOX_BYTES)
    assert data is not None, "a box outside the arena"
    box = view(f32, data)
    fill(box, 0.0, BOX_BYTES // 4)
    box[2] = f32(picture.shape[2]) / f32(frame + 1)
    box[3] = f32(picture.shape[1]) / f32(frame + 1)
    give_box(kernel, release, job, 0)


@fn
def tidy(kernel: Kernel) -> None:
    """What an end or a front end's result leaves to the next poll is done now: it is counted by itself."""
    if RELEASES != 0 and (kernel.releases.stirred != 0 or kernel.releases.fed != 0):
        release_due(kernel)


@fn(pure=True)
def slot_of(kernel: Kernel, id: u32) -> u32:
    """The slot that job `id` has, or had last; MAX_JOBS if there is none."""
    for i in range(MAX_JOBS):
        if id != 0 and kernel.jobs[i].id == id:
            return i
    return MAX_JOBS


@fn(pure=True)
def loading(kernel: Kernel, slot: u32) -> bool:
    """Does the accelerator take in a model for the job of this slot, or has it just done so?"""
    return kernel.npu.owner == slot + 1 and kernel.npu.work == NpuWork.LOAD


@fn(inline=False)
def measure_poll(kernel: Kernel, state: Measured) -> bool:
    """One poll and its record. False if nothing ran."""
    cursors = local(u32, 3 * MAX_JOBS)
    back = local(u32, MAX_JOBS)
    for i in range(MAX_JOBS):
        job = kernel.jobs[i]
        cursors[3 * i] = u32(job.stage)
        cursors[3 * i + 1] = job.step
        cursors[3 * i + 2] = job.row
        if OFFLOAD != 0 and job.state != JobState.FREE and not loading(kernel, i):
            back[i] = 1 if job.host == HostWork.BACK or job.host == HostWork.AWAY else 0
    record = local(MeasureRecord)
    ticket = kernel.npu.ticket
    answer, id = measured_poll(kernel)
    record.kind = KIND_POLL
    record.phase = state.phase
    record.frame = state.frame
    record.job = state.about
    if id != 0:
        for j in range(MAX_JOBS):
            if state.ids[j] == id:
                record.job = j
    slot = slot_of(kernel, id)
    if slot != MAX_JOBS:
        record.stage = cursors[3 * slot]
        record.step = cursors[3 * slot + 1]
        record.row = cursors[3 * slot + 2]
        record.taken = back[slot]
        if OFFLOAD != 0 and kernel.npu.ticket != ticket:
            record.began = u32(kernel.npu.work)
        job = kernel.jobs[slot]
        record.status = i32(Status.INPROGRESS)
        if job.state == JobState.DONE or job.state == JobState.ERROR or job.state == JobState.FREE:
            record.status = i32(job.status)
            state.ids[record.job] = 0
            ignore(infer_detach(kernel, id))
    written = measure_write(state, record)
    return written and answer == Poll.RAN


@fn
def late_already(kernel: Kernel) -> None:
    """What has a deadline is late, and that is counted: its end looks once more than that of another."""
    for job in kernel.jobs:
        if job.state == JobState.QUEUED and job.late != Late.SKIP and job.deadline_in != 0:
            job.deadline_in = 1
            job.missed = True
        elif job.timed == Timed.KNOWN and job.state != JobState.QUEUED and job.deadline != NEVER:
            job.deadline = 1
            job.missed = True


@fn(inline=False)
def measure_go(kernel: Kernel, state: Measured) -> bool:
    """One poll, and sleep if only the accelerator has something to do. False if nothing has."""
    tidy(kernel)
    if DEADLINES != 0:
        late_already(kernel)
    ran = measure_poll(kernel, state)
    if OFFLOAD != 0 and not ran and kernel.npu.work != NpuWork.NOTHING:
        hal.idle(kernel.board)
        return True
    return ran


@fn
def measure_all(kernel: Kernel, state: Measured, count: u32) -> None:
    """Every step of every job, in each phase."""
    state.about = NOBODY
    for j in range(count):
        state.frame = 0
        long_ago(kernel)
        more = measure_post(kernel, state, j)
        while more:
            while measure_go(kernel, state):
                pass
            state.frame += 1
            long_ago(kernel)
            more = measure_post(kernel, state, j)
    state.frame = 0
    state.phase = TOGETHER
    for j in range(count):
        ignore_post = measure_post(kernel, state, j)
        assert ignore_post, "a job that ran alone is refused"
    while measure_go(kernel, state):
        pass
    state.phase = SET_ASIDE
    for low in range(count):
        for high in range(count):
            a = view(MeasureRow, MEASURES[low * MEASURE_ROW_BYTES :])
            b = view(MeasureRow, MEASURES[high * MEASURE_ROW_BYTES :])
            if a.priority < b.priority:
                long_ago(kernel)
                first = measure_post(kernel, state, low)
                tidy(kernel)
                begun = measure_poll(kernel, state)
                second = measure_post(kernel, state, high)
                assert first and begun and second, "a job that ran alone is refused"
                while measure_go(kernel, state):
                    pass


# ---- what happens beside steps


@fn(inline=False)
def measure_event(kernel: Kernel, state: Measured, phase: u32, number: u32) -> None:
    """One poll with an event in it."""
    state.phase = phase
    state.about = number
    ran = measure_poll(kernel, state)
    assert not ran, "a job runs while none may"


@fn(inline=False)
def measure_work(kernel: Kernel, state: Measured, what: u32, number: u32, arg: u32) -> None:
    record = local(MeasureRecord)
    record.kind = KIND_WORK
    record.phase = what
    record.job = number
    measured_work(kernel, what, arg)
    written = measure_write(state, record)
    assert written, "a file that takes no more"


@fn
def nothing_yet(kernel: Kernel, state: Measured) -> None:
    """A poll that finds nothing, and what it leaves is a kernel in which nothing is due."""
    long_ago(kernel)
    kernel.late_at = NEVER
    for job in kernel.jobs:
        if job.timed == Timed.KNOWN and job.deadline != NEVER:
            job.deadline = NEVER - 1
    measure_event(kernel, state, NOTHING, NOBODY)


@fn
def unseen(kernel: Kernel) -> None:
    """A poll that nobody counts."""
    answer, id = any_poll(kernel)
    assert answer == Poll.IDLE, "a job runs while none may"


@fn
def wait_one(kernel: Kernel, number: u32) -> None:
    """One more release of job `number` waits, with an entry of its source."""
    if RELEASES == 0:
        return
    release = kernel.releases.items[number]
    entry: u32 = 0
    if FEEDS != 0 and release.feed != 0 and (JOINS == 0 or release.joins == 0):
        entry = 1
        feed = kernel.releases.feeds[release.feed - 1]
        feed.hold(entry)
    now = kernel.clock.us()
    place = add_release(kernel, release, now, entry, 0)
    assert place < MAX_WAITING, "more than may wait"


@fn
def none_waits(kernel: Kernel, number: u32) -> None:
    if RELEASES == 0:
        return
    release = kernel.releases.items[number]
    while release.waiting != 0:
        drop_first(kernel, release)


@fn
def all_wait(kernel: Kernel, number: u32) -> None:
    """As many releases of job `number` wait as may."""
    if RELEASES == 0:
        return
    release = kernel.releases.items[number]
    while release.waiting < release.depth:
        wait_one(kernel, number)


@fn
def queues(kernel: Kernel, count: u32, full: bool) -> None:
    """Of each job none waits, or as many as may."""
    for j in range(count):
        none_waits(kernel, j)
        if full:
            all_wait(kernel, j)


@fn
def begin(kernel: Kernel, state: Measured, number: u32, counted: bool) -> None:
    """Job `number`, of which there is none, is released and gets its place; nobody runs it."""
    row = view(MeasureRow, MEASURES[number * MEASURE_ROW_BYTES :])
    if counted:
        nothing_yet(kernel, state)
    if RELEASES != 0 and row.released != 0:
        wait_one(kernel, number)
        kernel.releases.stirred = kernel.releases.stirred | bit(number)
    else:
        pipe = app_pipeline(kernel, row.pipeline)
        status, id = infer_post(kernel, pipe, row.tensor, INPUTS, None, 0, None)
        assert status == Status.OK, "a job that ran is refused"
        state.ids[number] = id
    if counted:
        measure_event(kernel, state, BEGUN, number)
    else:
        unseen(kernel)
    if RELEASES != 0 and row.released != 0:
        state.ids[number] = kernel.releases.items[number].job
    assert state.ids[number] != 0, "a release that begins no job"


@fn
def end(kernel: Kernel, state: Measured, number: u32) -> None:
    """There is no job `number` any more: it ends as one that is aborted while it runs."""
    none_waits(kernel, number)
    slot = find_slot(kernel, state.ids[number])
    if slot != MAX_JOBS:
        job = kernel.jobs[slot]
        job.state = JobState.RUNNING
        job.preemptible = False
        job.abort = True
        kernel.current = slot + 1
        answer, id = any_poll(kernel)
        assert answer == Poll.RAN, "a job that does not end"
        ignore(infer_detach(kernel, state.ids[number]))
    tidy(kernel)
    state.ids[number] = 0


@fn
def never_due(kernel: Kernel) -> None:
    """The clock releases nothing."""
    for i in range(RELEASES):
        release = kernel.releases.items[i]
        release.next_us = NEVER
        release.next_ticks = NEVER
    if RELEASES != 0:
        kernel.releases.due_us = NEVER
        kernel.releases.due_ticks = NEVER


@fn
def all_given(kernel: Kernel) -> None:
    """Each source that is read at its newest has given something: what has is copied, or held, and no release starves."""
    for f in range(FEEDS):
        feed = kernel.releases.feeds[f]
        if feed.by_clock and feed.newest == 0:
            feed.hold(1)
            feed.newest = 1


@fn
def meet_due(kernel: Kernel, state: Measured, number: u32) -> None:
    """The clock releases job `number`, and its last one has not ended."""
    if RELEASES == 0:
        return
    for i in range(RELEASES):
        other = kernel.releases.items[i]
        if other.period_us != 0:  # the next one is the last that is looked at
            other.next_us = NEVER - 1 - u64(i)
            other.next_ticks = NEVER - 1
    nothing_yet(kernel, state)
    release = kernel.releases.items[number]
    release.next_us = kernel.clock.us()
    release.next_ticks = kernel.clock.ticks
    kernel.releases.due_us = release.next_us
    kernel.releases.due_ticks = release.next_ticks
    measure_event(kernel, state, DUE, number)
    never_due(kernel)


@fn
def meet_arrival(kernel: Kernel, state: Measured, number: u32) -> None:
    """An entry of source `number` has become whole."""
    if FEEDS == 0:
        return
    nothing_yet(kernel, state)
    feed = kernel.releases.feeds[number]
    feed.hold(1)
    feed.order[feed.first] = 1
    feed.arrived = 1
    feed.stamp[0] = kernel.clock.last
    kernel.releases.fed = bit(number)
    measure_event(kernel, state, ARRIVED, number)


@fn
def meet_pushes(kernel: Kernel, state: Measured, number: u32) -> None:
    """Nobody reads source `number`, and its driver fills some of its entries."""
    if FEEDS == 0:
        return
    feed = kernel.releases.feeds[number]
    for i in range(u32(feed.keep)):
        feed.users[i] = 0
    feed.newest = 0
    feed.filling = 0
    feed.filled = 0
    feed.last = 0
    feed.skip = 0
    feed.arrived = 0
    for _k in range(feed.bytes // feed.hop + 3):
        measure_work(kernel, state, PUSHED, number, number)
        tidy(kernel)


@fn
def meet_boxes(kernel: Kernel, state: Measured, number: u32) -> None:
    """Job `number` has left as many boxes as may be."""
    if RELEASES == 0:
        return
    row = view(MeasureRow, MEASURES[number * MEASURE_ROW_BYTES :])
    slot = slot_of(kernel, state.ids[number])
    if row.boxes == 0 or slot == MAX_JOBS:
        return
    job = kernel.jobs[slot]
    x = job.x[0]
    x.region = u8(REGION_ARENA)
    x.offset = 0
    x.size = row.boxes * BOX_BYTES
    x.ndim = 2
    x.shape[0] = row.boxes
    x.shape[1] = BOX_BYTES // 4
    measure_work(kernel, state, BOXES, number, slot)
    kernel.releases.stirred = 0


@fn
def meet_late(kernel: Kernel, state: Measured, number: u32) -> None:
    """The deadline of job `number` passes, and of no other."""
    slot = slot_of(kernel, state.ids[number])
    if DEADLINES == 0 or slot == MAX_JOBS:
        return
    nothing_yet(kernel, state)
    job = kernel.jobs[slot]
    if job.deadline == NEVER:
        return
    job.deadline = kernel.clock.ticks - 1
    kernel.late_at = job.deadline
    measure_event(kernel, state, LATE, number)


@fn
def measure_events(kernel: Kernel, state: Measured, count: u32) -> None:
    """All that may happen in a poll beside a step."""
    long_ago(kernel)
    kernel.hold = True
    for j in range(count):
        row = view(MeasureRow, MEASURES[j * MEASURE_ROW_BYTES :])
        kernel.pipelines.items[row.pipeline].deadline_us = row.deadline
        if RELEASES != 0:
            kernel.releases.items[j].enabled = True
            kernel.releases.wanted = kernel.releases.wanted | bit(j)
    never_due(kernel)
    nothing_yet(kernel, state)
    for j in range(count):
        begin(kernel, state, j, False)
    all_given(kernel)
    for full in range(2):
        if RELEASES != 0:
            queues(kernel, count, full != 0)
            nothing_yet(kernel, state)
            kernel.releases.stirred = 1
            measure_event(kernel, state, STIRRED, NOBODY)
        for f in range(FEEDS):
            queues(kernel, count, full != 0)
            meet_arrival(kernel, state, f)
        for j in range(count):
            queues(kernel, count, full != 0)
            if RELEASES != 0 and kernel.releases.items[j].period_us != 0:
                meet_due(kernel, state, j)
            queues(kernel, count, full != 0)
            meet_boxes(kernel, state, j)
    for j in range(count):
        end(kernel, state, j)
        begin(kernel, state, j, True)
        meet_late(kernel, state, j)
        end(kernel, state, j)
        begin(kernel, state, j, False)
        queues(kernel, count, True)
    for j in range(count):
        end(kernel, state, j)
    if RELEASES != 0:
        for j in range(count):
            kernel.releases.items[j].enabled = False
        kernel.releases.wanted = 0
    for f in range(FEEDS):
        meet_pushes(kernel, state, f)
    long_ago(kernel)
    hal.wake(kernel.board)
    measure_work(kernel, state, REST, NOBODY, 0)


@fn
def quiet(kernel: Kernel, count: u32) -> None:
    """The kernel releases nothing by itself, and no deadline passes."""
    ahead = kernel.clock.to_us(AHEAD)
    for j in range(count):
        row = view(MeasureRow, MEASURES[j * MEASURE_ROW_BYTES :])
        if row.deadline != 0:
            kernel.pipelines.items[row.pipeline].deadline_us = ahead
        if RELEASES != 0:
            kernel.releases.items[j].enabled = False
    if RELEASES != 0:
        kernel.releases.wanted = 0
    never_due(kernel)


@fn
def main() -> i32:
    started = program_start(KERNEL)
    if not started:
        return 1
    count: u32 = len(MEASURES) // MEASURE_ROW_BYTES
    quiet(KERNEL, count)
    measure_all(KERNEL, MEASURE_STATE, count)
    measure_events(KERNEL, MEASURE_STATE, count)
    return 0
