"""Simulation: a kernel's own schedule in virtual time, from one event to the next.

The caller gives a list of arrivals, in order of time: a job to submit, one to cancel, an interrupt that takes its time.
Each comes from an interrupt at its very tick, in the middle of a step too. Between them this loop does what firmware's
main does: it polls, and when there is nothing to do it lets time pass until something comes.

What happens is written to a list of events, and summed up for each pipeline. Times are ticks since the simulation began.
Nothing here is part of a firmware.
"""

from synapticos.lang import *
from synapticos.kernel import hal
from synapticos.kernel.backend import NpuWork
from synapticos.kernel.capacity import DEADLINES, MAX_JOBS, MAX_PIPELINES, OFFLOAD, RELEASES
from synapticos.kernel.clock import Clock
from synapticos.kernel.due import due_ticks
from synapticos.kernel.feed import source_push
from synapticos.kernel.job import HostWork, Job, JobState, Timed, job_finished
from synapticos.kernel.kernel import Kernel
from synapticos.kernel.region import REGION_ARENA
from synapticos.kernel.sched import Poll, find_slot, infer_abort, infer_cancel, infer_detach, infer_post, kernel_poll
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import Tensor

LINE: Final[u32] = 0  # the interrupt by which arrivals come
LONGEST: Final[u64] = 0x40000000  # ticks that pass at once at most, and that an interrupt is armed ahead
LEAST_ROOM: Final[u32] = 1024  # events that one poll and what comes during it may cause
RECORD_JOBS: Final[u32] = 1  # a Simulation's `record`
RECORD_STEPS: Final[u32] = 2


class Comes(u8, Enum):
    """What an arrival is."""

    JOB = 0  # a job of pipeline `target` is submitted
    CANCEL = 1  # the newest job of pipeline `target` is cancelled
    ABORT = 2  # it is aborted
    TAX = 3  # an interrupt that takes `value` ticks
    PUSH = 4  # `value` bytes come from source `target`


class Happens(u8, Enum):
    """What an event is."""

    RELEASED = 0
    REFUSED = 1  # `value`: the status, two's complement
    STEP = 2  # `value`: the ticks it took, interrupts included
    ENDED = 3  # `value`: the status, two's complement
    ANSWERED = 4  # a cancel or an abort: `value` is the status


class Stop(u8, Enum):
    """Why `simulate` came back."""

    DONE = 0  # the time is over
    FULL = 1  # the events want to be taken
    MORE = 3  # it is not known any more what comes next
    STUCK = 2  # a job waits for somebody who is not there


@struct
class Arrival:
    at: u64
    value: u32
    target: u16
    kind: u8
    reserved: u8


@struct
class Event:
    at: u64
    began: u64  # of a step: when; of an end: the job's release
    job: u32
    value: u32
    kind: u8
    slot: u8
    pipeline: u8
    stage: u8  # of a step: what ran, and from which row on
    step: u16
    row: u16


@struct
class Source:
    """What pipeline i of an app is given."""

    pipe: u32  # handle
    tensor: Tensor


@struct
class Seen:
    """What was last seen of a job slot."""

    released: u64
    id: u32
    step: u32
    row: u32
    stage: u8
    pipeline: u8
    open: bool  # the job has not ended
    reserved: u8


@struct
class Figures:
    """One pipeline's jobs."""

    worst: u64  # from release to end, ticks, of those that ended well
    total: u64
    waiting: u64  # how long the oldest job that has not ended has been there when the run is done
    released: u32
    refused: u32
    done: u32
    late: u32  # missed their deadline
    failed: u32
    expired: u32  # ended by their policy, or not begun
    cancelled: u32
    reserved: u32


@struct
class Simulation:
    clock: Clock
    until: u64
    known: u64  # what comes before then is all in the arrivals
    lead: u64  # ticks before that at which to ask for more
    offset: u64  # the kernel's clock when the simulation began
    steps_from: u64  # steps are recorded from then
    steps_until: u64
    busy: u64  # ticks in which something ran
    steps: u64
    idle: u32  # ticks of a poll that finds nothing; the last one begins just before something comes
    record: u32
    arrivals: u32
    next: u32
    used: u32  # events
    room: u32
    lost: u32  # events for which there was no room
    reserved: u32
    newest: Shaped[Array[u32], MAX_PIPELINES]
    seen: Shaped[Array[Seen], MAX_JOBS]
    figures: Shaped[Array[Figures], MAX_PIPELINES]


ARRIVAL_BYTES = sizeof(Arrival)
EVENT_BYTES = sizeof(Event)
SOURCE_BYTES = sizeof(Source)


@fn
def simulate_begin(kernel: Kernel, sim: Simulation, until: u64, record: u32, room: u32, idle: u32) -> None:
    """Time begins, nothing comes, and all that happens is to be recorded as `record` says. Directly after boot."""
    fill(view(u8, sim), 0, sizeof(Simulation))
    rate = hal.tick_rate(kernel.board)
    if RELEASES != 0:
        # Phases count from the first microsecond on, which shall be our 0.
        first = kernel.clock.of_us(1)
        hal.spend(kernel.board, u32(first))
    now = hal.ticks(kernel.board)
    sim.clock.start(now, rate)
    sim.until = until
    sim.known = until
    sim.steps_until = until
    sim.record = record
    kernel.clock.update(now)
    sim.offset = kernel.clock.ticks
    for slot in range(MAX_JOBS):
        sim.seen[slot].id = kernel.jobs[slot].id
    sim.room = room
    sim.idle = idle


@fn
def look(kernel: Kernel, sim: Simulation) -> u64:
    """Ticks since the beginning."""
    now = hal.ticks(kernel.board)
    sim.clock.update(now)
    return sim.clock.ticks


@fn
def add_event(sim: Simulation, events: Ptr[u8], kind: Happens, job: u32, value: u32, slot: u32, seen: Seen | None, began: u64) -> None:
    if sim.used == sim.room:
        sim.lost += 1
        return
    event = view(Event, events[sim.used * EVENT_BYTES :])
    sim.used += 1
    event.at = sim.clock.ticks
    event.began = began
    event.job = job
    event.value = value
    event.kind = u8(kind)
    event.slot = u8(slot)
    event.pipeline = 0
    event.stage = 0
    event.step = 0
    event.row = 0
    if seen is not None:
        event.pipeline = seen.pipeline
        event.stage = seen.stage
        event.step = u16(seen.step & 0xFFFF)
        event.row = u16(seen.row & 0xFFFF)


@fn
def see_new(kernel: Kernel, sim: Simulation, events: Ptr[u8], job: Job, slot: u32) -> None:
    """A job that was not there before: submitted now, or released by the kernel itself a while ago."""
    seen = sim.seen[slot]
    seen.id = job.id
    seen.released = sim.clock.ticks
    if DEADLINES != 0 and job.timed != Timed.COUNTER:
        released = job.release
        if job.timed == Timed.GIVEN:
            released = kernel.clock.of_us(released)
        seen.released = released - min(released, sim.offset)
    seen.pipeline = job.pipeline
    seen.stage = 0
    seen.step = 0
    seen.row = 0
    seen.open = True
    sim.figures[job.pipeline].released += 1
    if sim.record & RECORD_JOBS != 0:
        add_event(sim, events, Happens.RELEASED, job.id, 0, slot, seen, seen.released)


@fn
def see_end(sim: Simulation, events: Ptr[u8], job: Job, slot: u32) -> None:
    """The job that was seen in a slot has ended; the slot still tells how, unless the next one has it."""
    seen = sim.seen[slot]
    seen.open = False
    figures = sim.figures[seen.pipeline]
    status = Status.NOENT
    if job.id == seen.id:
        status = job.status
        if job.missed and status != Status.CANCELED:
            figures.late += 1
    if status == Status.OK:
        response = sim.clock.ticks - seen.released
        figures.worst = max(figures.worst, response)
        figures.total += response
        figures.done += 1
    elif status == Status.CANCELED:
        figures.cancelled += 1
    elif status == Status.TIMEDOUT:
        figures.expired += 1
    else:
        figures.failed += 1
    if sim.record & RECORD_JOBS != 0:
        add_event(sim, events, Happens.ENDED, seen.id, wrap(u32, i32(status)), slot, seen, seen.released)


@fn
def see_begun(kernel: Kernel, sim: Simulation, events: Ptr[u8]) -> None:
    """Which jobs have come since the last look? Some may have ended as well."""
    for slot in range(MAX_JOBS):
        job = kernel.jobs[slot]
        if job.id != sim.seen[slot].id and job.state != JobState.CLAIMED:
            if sim.seen[slot].open:
                see_end(sim, events, job, slot)
            see_new(kernel, sim, events, job, slot)


@fn
def see_ended(kernel: Kernel, sim: Simulation, events: Ptr[u8]) -> None:
    """Which jobs have ended since the last look, and where are the others now?"""
    for slot in range(MAX_JOBS):
        job = kernel.jobs[slot]
        seen = sim.seen[slot]
        if seen.open:
            if job.state == JobState.FREE or job_finished(job):
                see_end(sim, events, job, slot)
            seen.stage = job.stage
            seen.step = job.step
            seen.row = job.row


@fn
def submit(kernel: Kernel, sim: Simulation, events: Ptr[u8], target: u32, sources: Ptr[u8], input: Ptr[u8]) -> None:
    source = view(Source, sources[target * SOURCE_BYTES :])
    status, id = infer_post(kernel, source.pipe, source.tensor, input, None, 0, None)
    if status != Status.OK:
        sim.figures[target].refused += 1
        if sim.record & RECORD_JOBS != 0:
            add_event(sim, events, Happens.REFUSED, target, wrap(u32, i32(status)), 0, None, sim.clock.ticks)
        return
    sim.newest[target] = id
    slot = find_slot(kernel, id)
    if slot != MAX_JOBS:
        if sim.seen[slot].open:
                    see_end(sim, events, kernel.jobs[slot], slot)
        see_new(kernel, sim, events, kernel.jobs[slot], slot)
    ignore(infer_detach(kernel, id))


@fn
def simulate_interrupt(kernel: Kernel, sim: Simulation, sources: Ptr[u8], input: Ptr[u8], arrivals: Ptr[u8], events: Ptr[u8]) -> None:
    """What is due arrives; then the interrupt for the next one is armed."""
    now = look(kernel, sim)
    while sim.next < sim.arrivals:
        arrival = view(Arrival, arrivals[sim.next * ARRIVAL_BYTES :])
        if arrival.at > now:
            break
        sim.next += 1
        match arrival.kind:
            case 0:
                submit(kernel, sim, events, arrival.target, sources, input)
            case 1:
                cancelled = infer_cancel(kernel, sim.newest[arrival.target])
                add_event(sim, events, Happens.ANSWERED, sim.newest[arrival.target], wrap(u32, i32(cancelled)), 0, None, sim.clock.ticks)
            case 2:
                aborted = infer_abort(kernel, sim.newest[arrival.target])
                add_event(sim, events, Happens.ANSWERED, sim.newest[arrival.target], wrap(u32, i32(aborted)), 0, None, sim.clock.ticks)
            case 4:
                pushed = source_push(kernel, arrival.target, input, arrival.value)
                if pushed != Status.OK:
                    add_event(sim, events, Happens.REFUSED, arrival.target, wrap(u32, i32(pushed)), 0, None, sim.clock.ticks)
            case _:
                hal.spend(kernel.board, arrival.value)
                now = look(kernel, sim)
    arm(kernel, sim, arrivals)


@fn
def arm(kernel: Kernel, sim: Simulation, arrivals: Ptr[u8]) -> None:
    """Ask for the interrupt of the next arrival, if that is near."""
    if sim.next < sim.arrivals:
        arrival = view(Arrival, arrivals[sim.next * ARRIVAL_BYTES :])
        wait: u64 = 0
        if arrival.at > sim.clock.ticks:
            wait = arrival.at - sim.clock.ticks
        if wait < LONGEST:
            hal.interrupt_at(kernel.board, LINE, wrap(u32, sim.clock.last + u32(wait)))


@fn
def accelerator_left(kernel: Kernel, sim: Simulation) -> u64:
    """Ticks until the timed accelerator is through (`kernel/timed.py`); LONGEST if it is at nothing."""
    if kernel.npu.work == NpuWork.NOTHING or kernel.npu.owner == 0:
        return LONGEST
    job = kernel.jobs[kernel.npu.owner - 1]
    frame = kernel.regions.get(REGION_ARENA, job.frame_at, 4)
    if job.host != HostWork.AWAY or frame is None:
        return LONGEST
    ends = view(u32, frame)
    left = wrap(u32, ends[0] - sim.clock.last)
    if left >= 0x80000000:
        return 0
    return u64(left)


@fn
def rest(kernel: Kernel, sim: Simulation, arrivals: Ptr[u8]) -> None:
    """Nothing to do: let time pass until something comes."""
    now = sim.clock.ticks
    target = sim.until
    if sim.next < sim.arrivals:
        arrival = view(Arrival, arrivals[sim.next * ARRIVAL_BYTES :])
        target = min(target, arrival.at)
    wait: u64 = 0
    if target > now:
        wait = min(target - now, LONGEST)
    due = due_ticks(kernel)
    wait = min(wait, due - min(due, kernel.clock.ticks))
    if OFFLOAD != 0:
        left = accelerator_left(kernel, sim)
        wait = min(wait, left)
    if sim.idle != 0 and wait != 0:
        if wait > 1:
            hal.spend(kernel.board, u32(wait - 1))
        hal.spend(kernel.board, sim.idle)
    else:
        hal.spend(kernel.board, u32(wait))


@fn
def simulate(kernel: Kernel, sim: Simulation, sources: Ptr[u8], input: Ptr[u8], arrivals: Ptr[u8], events: Ptr[u8]) -> Stop:
    """Go on until the time is over, the events want to be taken (from the start of their list, `sim.used`), or arrivals
    are wanted: all that have not come, from `sim.next` on, and what comes after `sim.known`.

    `sources` has a Source for each pipeline, `input` memory for the largest of their tensors. Before the first call
    the board's interrupt LINE is made `simulate_interrupt` with the same arguments.
    """
    sim.used = 0
    now = look(kernel, sim)
    while now < sim.until:
        if sim.room - sim.used < LEAST_ROOM:
            return Stop.FULL
        if sim.known < sim.until and now + sim.lead >= sim.known:
            return Stop.MORE
        arm(kernel, sim, arrivals)
        hal.spend(kernel.board, 0)
        now = look(kernel, sim)
        began = now
        answer, id = kernel_poll(kernel)
        now = look(kernel, sim)
        see_begun(kernel, sim, events)
        if answer == Poll.RAN:
            sim.busy += now - began
            sim.steps += 1
            if sim.record & RECORD_STEPS != 0 and began >= sim.steps_from and began < sim.steps_until:
                add_step(sim, events, id, began)
        elif answer == Poll.HOST:
            return Stop.STUCK
        see_ended(kernel, sim, events)
        if answer != Poll.RAN:
            rest(kernel, sim, arrivals)
            now = look(kernel, sim)
    for seen in sim.seen:
        if seen.open:
            figures = sim.figures[seen.pipeline]
            figures.waiting = max(figures.waiting, now - seen.released)
    return Stop.DONE


@fn
def add_step(sim: Simulation, events: Ptr[u8], id: u32, began: u64) -> None:
    """The step that a poll has run, from what was seen of its job before."""
    for slot in range(MAX_JOBS):
        seen = sim.seen[slot]
        if seen.id == id and seen.open:
            add_event(sim, events, Happens.STEP, id, sat(u32, sim.clock.ticks - began), slot, seen, began)
            return
