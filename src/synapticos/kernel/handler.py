"""Handlers: what an app does with a result, as the callback of its pipeline.

The function is the stage behind a pipeline's last: compiled, bound to the outputs, configured and guarded as stages are,
and with a state of its own. It leaves nothing for others; where a stage has its result's memory, it has a JobInfo. It runs
in the poll that ends the job, and nobody waits for the job before it has returned. What it does wrong is counted in its
pipeline, and neither the job's status nor its result changes.
"""

from synapticos.lang import *
from synapticos.kernel import hal
from synapticos.kernel.capacity import DEADLINES, GUARD, MAX_JOBS, WATCHDOG_US, WATCHDOGS
from synapticos.kernel.due import since_start
from synapticos.kernel.guard import APP_STAGES, answered, count_broken, open_call
from synapticos.kernel.job import Fault, FaultKind, Job, JobDone, Timed
from synapticos.kernel.kernel import Kernel
from synapticos.kernel.pipeline import Pipeline, Stage
from synapticos.kernel.region import REGION_ARENA
from synapticos.kernel.run import fill_input, stage_config
from synapticos.kernel.sched import find_slot
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import StageCall


@struct
class JobInfo:
    """What a handler may be told of its job. Times are after the start of releases, microseconds."""

    release_us: u64  # nominal; 0 in a build without deadlines
    finish_us: u64
    job: u32  # its id
    item: u32  # which box of a cascade
    status: Status  # OK, or what ended it
    missed: bool  # its deadline
    reserved: Shaped[Array[u8], 3]


JOB_INFO_BYTES = sizeof(JobInfo)


@struct
class HandlerWork:
    """A handler about to run."""

    call: StageCall
    info: JobInfo
    number: u32
    status: Status


@fn
def run_handler_work(block: Ptr[u8]) -> None:
    """What the board calls for a handler: `block` is a HandlerWork."""
    work = view(HandlerWork, block)
    work.call.y_data = view(u8, work.info)  # a board may have moved the block
    work.status = APP_STAGES[work.number](work.call)


@fn
def fill_handler(kernel: Kernel, job: Job, pipeline: Pipeline, stage: Stage, work: HandlerWork) -> Status:
    """Resolve what a handler takes of its job. Returns OK; INVAL if the job has no such output."""
    call = work.call
    call.inputs = u32(stage.binds)
    for i in range(call.inputs):
        if stage.bind[i] >= job.inputs:
            return Status.INVAL
        check(fill_input(kernel, job, call, i, u32(stage.bind[i])))
    call.config_bytes = stage.config_bytes
    call.config = None
    if stage.config_bytes != 0:
        call.config = stage_config(kernel, pipeline, stage)
    call.state_bytes = stage.state_bytes
    call.state = None
    if stage.state_bytes != 0:
        call.state = kernel.regions.get(REGION_ARENA, stage.state_at, stage.state_bytes)
    call.scratch = None
    call.scratch_bytes = 0
    info = work.info
    call.y.size = 0
    call.y_data = view(u8, info)
    work.number = stage.number
    if stage.capacity < JOB_INFO_BYTES:  # it asks for none
        return Status.OK
    info.release_us = 0
    if DEADLINES != 0 and job.timed == Timed.KNOWN:
        release = since_start(kernel, job.release)
        info.release_us = release
    finish = since_start(kernel, kernel.clock.ticks)
    info.finish_us = finish
    info.job = job.id
    info.item = job.user
    info.status = job.status
    info.missed = job.missed
    fill(info.reserved, 0, 3)
    return Status.OK


@fn
def guard_handler(kernel: Kernel, pipeline: Pipeline, work: HandlerWork) -> Status:
    """Run a handler: its status, or TIMEDOUT or ACCES for a fault, which its pipeline keeps. It may write its state and
    the call, and read the outputs and its configuration."""
    call = work.call
    open_call(kernel, call)
    limit_us: u32 = WATCHDOG_US
    for i in range(WATCHDOGS):
        limit_us = pipeline.stages[pipeline.count].watchdog_us[i]
    fault = local(Fault)
    kind = hal.guard_run(kernel.board, run_handler_work, view(u8, work), sizeof(HandlerWork), limit_us, view(u32, fault))
    if kind == u32(FaultKind.NONE):
        return answered(work.status)
    for handled in pipeline.handled:
        copy(handled.fault, fault)
    return count_broken(kernel, kind)


@fn
def handle_result(kernel: Kernel, done: JobDone) -> None:
    """The callback of pipelines with a handler: it gets what the job has left. One that takes no outputs hears of jobs
    that ended with an error too."""
    pipeline = kernel.pipelines.items[done.pipeline]
    slot = find_slot(kernel, done.job)
    if not pipeline.handles or slot == MAX_JOBS or done.status == Status.INPROGRESS:
        return
    stage = pipeline.stages[pipeline.count]
    if done.status != Status.OK and stage.binds != 0:
        return
    work = local(HandlerWork, zero=False)
    status = fill_handler(kernel, kernel.jobs[slot], pipeline, stage, work)
    if status == Status.OK:
        if GUARD != 0:
            status = guard_handler(kernel, pipeline, work)
        else:
            status = APP_STAGES[work.number](work.call)
    for handled in pipeline.handled:
        handled.runs = wrap(u32, handled.runs + 1)
        if status != Status.OK:
            handled.errors = wrap(u32, handled.errors + 1)
            handled.status = status
