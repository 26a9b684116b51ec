"""Offload: one accelerator, taken by one job at a time, which may work while the processor does other things.

A backend that runs on the processor has done its step when it returns. One that works beside it has only begun, answers
INPROGRESS, and tells by `npu_done` (from an interrupt), or when `poll` asks it, that it is through. Meanwhile:

    job       WAITING, its frame its own     LINE until the accelerator is free -> AWAY while it works -> BACK
    kernel    runs steps of other jobs

The accelerator is a second resource beside the processor, ordered as that one is: as it comes free, all in line are
ready again and the first that is picked (class, deadline, submission) takes it. It is given back after each step and
after each load, if its job is pre-emptible. For an analysis of response times that means:

- a step on it, and a load, are not interrupted: who is more urgent waits for at most one of them, the longest of any
  less urgent job;
- with fewer places than models each use may begin with a load, and whoever was put out pays one more afterwards: so
  count a load with each step that another model's may come before, and one with a model's first step;
- beginning a step and taking up its result are steps of the processor, which wait for it as any other does; on the
  accelerator nothing happens between the two;
- a job on the accelerator does not hold the processor, and keeps its class's frame, so no other of its class begins.

Work that outlives the backend's limit, cannot be begun, or ends in an error, resets the accelerator: nothing is resident
then, and the job ends. If only the processor's part at its end fails (`BACKEND_FINISH`), and another job has the device by
now, that one's work goes on: should the device be stuck, its own limit finds that. A job is aborted at once while in line, otherwise when the accelerator is through with it or was reset: until
then it may write to the job's frame.

Only `poll` takes the accelerator; `npu_done` leaves a status and a flag. A ticket names the work, so that news of work
that was reset never end the next one's.
"""

from synapticos.lang import *
from synapticos.kernel import hal
from synapticos.kernel.backend import (
    LOADING, BringFn, Caps, FinishFn, LimitFn, LookFn, NpuState, NpuWork, ResetFn, StartFn, StepRows,
)  # fmt: skip
from synapticos.kernel.capacity import LATE_POLICIES, OFFLOAD, PROFILING
from synapticos.kernel.clock import MICROSECONDS, NEVER
from synapticos.kernel.container import ModelMemory
from synapticos.kernel.divide import divide
from synapticos.kernel.job import HostWork, Job, JobState, Late
from synapticos.kernel.kernel import Kernel
from synapticos.kernel.model import Model
from synapticos.kernel.npu import BACKEND_CAPS, BACKEND_STEP
from synapticos.kernel.profile import add_ticks
from synapticos.kernel.residency import NOWHERE
from synapticos.kernel.status import Status

# A backend's row has its number here too; those that work on the processor have none that counts.
BACKEND_BRING = table(BringFn, [], open=True)
BACKEND_START = table(StartFn, [], open=True)
BACKEND_LIMIT = table(LimitFn, [], open=True)
BACKEND_LOOK = table(LookFn, [], open=True)
BACKEND_FINISH = table(FinishFn, [], open=True)
BACKEND_RESET = table(ResetFn, [], open=True)


@fn
def npu_take(kernel: Kernel, job: Job) -> bool:
    """The running job takes the accelerator, or has it already. False: it is another's, and the job gets in line."""
    npu = kernel.npu
    if npu.owner == kernel.current:
        return True
    if OFFLOAD != 0 and npu.owner != 0:
        job.host = HostWork.LINE
        return False
    assert npu.owner == 0, "two jobs on one accelerator"
    npu.owner = kernel.current
    npu.state = NpuState.BUSY
    job.holds_npu = True
    return True


@fn
def npu_leave(kernel: Kernel, job: Job, state: NpuState) -> None:
    """Inside the critical section: the job gives the accelerator back, and who is in line is ready again."""
    npu = kernel.npu
    job.holds_npu = False
    npu.owner = 0
    npu.state = state
    if OFFLOAD == 0:
        return
    for frame in kernel.frames:
        if frame.owner != 0:
            slot = frame.owner - 1
            waiting = kernel.jobs[slot]
            if waiting.state == JobState.WAITING and waiting.host == HostWork.LINE:
                waiting.host = HostWork.NONE
                npu_ready(kernel, waiting, slot)


@fn
def npu_ready(kernel: Kernel, job: Job, slot: u32) -> None:
    """Inside the critical section: a job that waited has a step to do."""
    job.state = JobState.SUSPENDED


@fn
def npu_give_back(kernel: Kernel, job: Job, state: NpuState) -> None:
    """`npu_leave`, from a step of the job. After an error the accelerator holds no model."""
    if state == NpuState.ERROR:
        kernel.npu.holds.clear()
    section: u32 = 0
    if OFFLOAD != 0:
        section = hal.critical_enter(kernel.board)
    npu_leave(kernel, job, state)
    if OFFLOAD != 0:
        hal.critical_exit(kernel.board, section)


@fn(inline=False)
def npu_reset(kernel: Kernel, driver: u32) -> None:
    """Stop a device that has failed: it works no more, and holds no model."""
    BACKEND_RESET[driver](kernel.board)
    kernel.npu.holds.clear()
    kernel.npu.resets = wrap(u32, kernel.npu.resets + 1)


@fn
def npu_failed(kernel: Kernel, job: Job, driver: u32, status: Status) -> Status:
    """The driver could not do what a step of the job asked for: reset the device, unless another job has it. Returns `status`."""
    npu = kernel.npu
    if npu.owner == 0 or job.holds_npu:
        npu_reset(kernel, driver)
        if job.holds_npu:
            npu_give_back(kernel, job, NpuState.ERROR)
        elif npu.state == NpuState.IDLE:
            npu.state = NpuState.ERROR
    return status


@fn
def npu_empty_place(kernel: Kernel, backend: u32) -> u32:
    """Make room for a model, and forget what was loaded by hand: the place, or NOWHERE, with a note, if all are pinned."""
    npu = kernel.npu
    npu.model_bytes = 0
    npu.input_bytes = 0
    npu.output_bytes = 0
    npu.has_output = False
    caps = local(Caps)
    BACKEND_CAPS[backend](caps)
    place = npu.holds.make_room(caps.models)
    if place == NOWHERE:
        ignore(refuse(kernel.note, Status.NOMEM, f"the accelerator's models are all pinned: no place for another"))
    return place


@fn
def npu_begin(kernel: Kernel, job: Job, model: Model, m: ModelMemory, work: NpuWork, step: u32) -> u32:
    """The accelerator is about to work for the job: the ticket. From here on `npu_done` counts."""
    npu = kernel.npu
    limit = BACKEND_LIMIT[model.backend](kernel.board, m, step)
    npu.limit = divide(u64(limit) * kernel.clock.rate + (MICROSECONDS - 1), u32(MICROSECONDS))
    npu.driver = model.backend
    now = hal.ticks(kernel.board)
    kernel.clock.update(now)
    npu.since = kernel.clock.ticks
    state = hal.critical_enter(kernel.board)
    npu.ticket = wrap(u32, npu.ticket + 1)
    npu.work = work
    job.host = HostWork.AWAY
    hal.critical_exit(kernel.board, state)
    return npu.ticket


@fn
def npu_began(kernel: Kernel, job: Job, answer: Status) -> bool:
    """The backend's answer to what it was told to begin: does it work? Otherwise it is through, or could not."""
    if answer == Status.INPROGRESS:
        return True
    state = hal.critical_enter(kernel.board)
    kernel.npu.work = NpuWork.NOTHING
    job.host = HostWork.NONE
    hal.critical_exit(kernel.board, state)
    return False


@fn
def npu_bring(kernel: Kernel, job: Job, model: Model, handle: u32, m: ModelMemory) -> Status:
    """Take the model in. Returns OK, and `job.host` is AWAY while that goes on; NOMEM if all places are pinned; what the backend says."""
    npu = kernel.npu
    place = npu_empty_place(kernel, model.backend)
    if place == NOWHERE:
        return Status.NOMEM
    npu.place = u8(place)
    npu.coming = handle
    ticket = npu_begin(kernel, job, model, m, NpuWork.LOAD, LOADING)
    answer = BACKEND_BRING[model.backend](kernel.board, ticket, m, place)
    working = npu_began(kernel, job, answer)
    if working:
        return Status.OK
    if answer != Status.OK:
        return npu_failed(kernel, job, model.backend, answer)
    npu.holds.put(place, handle, 0)
    return Status.OK


@fn
def npu_rows(model: Model, job: Job, m: ModelMemory, rows: StepRows) -> u32:
    """The rows of the job's next piece, from `rows.row`: the result is where the piece ends, `rows.row_end` where the step does."""
    BACKEND_STEP[model.backend](m, job.step, rows)
    rows.row = max(job.row, rows.row)
    if rows.tile != 0 and rows.row_end - rows.row > rows.tile:
        return rows.row + rows.tile
    return rows.row_end


@fn
def npu_past(job: Job, rows: StepRows, row_end: u32) -> None:
    """Rows up to `row_end` of the step are done."""
    if row_end < rows.row_end:
        job.row = row_end
        return
    job.step += 1
    job.row = 0


@fn(inline=False)
def npu_step(kernel: Kernel, job: Job, model: Model, handle: u32, m: ModelMemory) -> Status:
    """Take up what the accelerator has done for the job, and begin the next piece of its model, or the model's load.

    Returns OK: `job.host` is LINE or AWAY if the job waits now, else look at `job.step`; TIMEDOUT for work that
    outlived its limit; PERM while the accelerator is suspended; NOMEM if it has no place; what the backend says.
    """
    npu = kernel.npu
    rows = local(StepRows)
    if job.host == HostWork.BACK:
        job.host = HostWork.NONE
        if job.status == Status.TIMEDOUT:
            return refuse(kernel.note, Status.TIMEDOUT, f"the accelerator did not finish layer {job.step} of stage {job.stage} in time")
        if job.status != Status.OK:
            return job.status
        if LATE_POLICIES != 0 and job.missed and job.late == Late.ABORT:
            job.expired = True
            return Status.TIMEDOUT
        end = npu_rows(model, job, m, rows)
        finished = BACKEND_FINISH[model.backend](kernel.board, m, job.step, rows.row, end)
        if finished != Status.OK:
            return npu_failed(kernel, job, model.backend, finished)
        npu_past(job, rows, end)
        if job.step == job.steps:
            return Status.OK
    if npu.state == NpuState.SUSPENDED:
        return Status.PERM
    if not npu_take(kernel, job):
        return Status.OK
    place = npu.holds.find(handle)
    if place == NOWHERE:
        check(npu_bring(kernel, job, model, handle, m))
        if job.host != HostWork.NONE:
            return Status.OK
        place = npu.holds.find(handle)
    npu.holds.use(place)
    end = npu_rows(model, job, m, rows)
    ticket = npu_begin(kernel, job, model, m, NpuWork.STEP, job.step)
    answer = BACKEND_START[model.backend](kernel.board, ticket, m, job.step, rows.row, end)
    working = npu_began(kernel, job, answer)
    if working:
        return Status.OK
    if answer != Status.OK:
        return npu_failed(kernel, job, model.backend, answer)
    npu_past(job, rows, end)
    if job.preemptible or job.step == job.steps:
        npu_give_back(kernel, job, NpuState.IDLE)
    return Status.OK


@fn
def npu_done(kernel: Kernel, ticket: u32, status: Status) -> Status:
    """The accelerator has ended the work of a ticket, well (OK) or not; from anywhere, interrupts included.

    Returns OK; NOENT if that work is over already, and nothing happens.
    """
    answer = Status.NOENT
    state = hal.critical_enter(kernel.board)
    npu = kernel.npu
    if npu.work != NpuWork.NOTHING and npu.ticket == ticket and npu.owner != 0:
        job = kernel.jobs[npu.owner - 1]
        if job.host == HostWork.AWAY:
            job.status = status
            job.host = HostWork.BACK
            answer = Status.OK
    hal.critical_exit(kernel.board, state)
    hal.wake(kernel.board)
    return answer


@fn(inline=False)
def npu_look(kernel: Kernel) -> None:
    """In `poll`, while the accelerator works: is it through, or late? Then its job is ready, and the accelerator free."""
    npu = kernel.npu
    slot = npu.owner - 1
    job = kernel.jobs[slot]
    if job.host == HostWork.AWAY:
        status = BACKEND_LOOK[npu.driver](kernel.board, npu.ticket)
        if status == Status.INPROGRESS and npu.limit != 0 and kernel.clock.ticks - npu.since > npu.limit:
            status = Status.TIMEDOUT
        if status != Status.INPROGRESS:
            ignore(npu_done(kernel, npu.ticket, status))
    if job.host != HostWork.BACK:
        return
    spent = sat(u32, kernel.clock.ticks - npu.since)
    good = job.status == Status.OK
    after = NpuState.IDLE
    if not good:
        after = NpuState.ERROR
        npu_reset(kernel, u32(npu.driver))
    loaded = good and npu.work == NpuWork.LOAD
    if loaded:
        npu.holds.put(npu.place, npu.coming, spent)
    if PROFILING != 0 and kernel.profile.enabled:
        job.times.stage[job.stage] = add_ticks(job.times.stage[job.stage], spent)
        if not loaded:
            kernel.profile.add_layer(job.id, job.step, spent)
    state = hal.critical_enter(kernel.board)
    npu.work = NpuWork.NOTHING
    if loaded:
        job.host = HostWork.NONE
    if job.preemptible or not good:
        npu_leave(kernel, job, after)
    if job.state == JobState.WAITING:
        npu_ready(kernel, job, slot)
    hal.critical_exit(kernel.board, state)


@fn
def npu_idle(kernel: Kernel) -> bool:
    """Sleep while the accelerator works. False if the board's clock stands, so that it would not end."""
    before = hal.ticks(kernel.board)
    hal.idle(kernel.board)
    after = hal.ticks(kernel.board)
    return before != after


@fn
def npu_due(kernel: Kernel) -> u64:
    """Ticks since boot at which `poll` gives up the work in progress; the largest u64 if nothing is, or it has no limit."""
    npu = kernel.npu
    if OFFLOAD == 0 or npu.work == NpuWork.NOTHING or npu.limit == 0:
        return NEVER
    return npu.since + npu.limit + 1
