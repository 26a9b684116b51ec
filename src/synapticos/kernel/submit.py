"""Submission: claim a free slot, fill it, post it. From anywhere, in a few instructions inside the critical section."""

from synapticos.lang import *
from synapticos.kernel import hal
from synapticos.kernel.advance import CALLBACKS, reclaim_slot
from synapticos.kernel.capacity import COMPOSING, DEADLINES, LATE_POLICIES, MAX_JOBS, RECLAIM
from synapticos.kernel.job import CLASSES, FREE_FRAME, NEVER, RECLAIMABLE, JobParams, JobState, Late, Timed, job_clear, job_finished
from synapticos.kernel.kernel import Kernel
from synapticos.kernel.pipeline import PipelineState
from synapticos.kernel.order import FEW_JOBS
from synapticos.kernel.region import REGION_ARENA, REGION_INPUT, REGION_OUTPUT
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import Tensor

FLAGS = LATE_POLICIES + RECLAIM * 2  # of a job that this build knows: TELL_LATE, RECLAIMABLE


@fn(inline=False)
def reclaim_oldest(kernel: Kernel) -> None:
    """Inside the critical section: free the slot of the job that ended first of those that nobody has read and that allow it."""
    oldest: u32 = MAX_JOBS
    for i in range(MAX_JOBS):
        job = kernel.jobs[i]
        if job_finished(job) and job.announced and u32(job.flags) & RECLAIMABLE != 0:
            if oldest == MAX_JOBS or job.began < kernel.jobs[oldest].began:
                oldest = i
    if oldest != MAX_JOBS:
        reclaim_slot(kernel, kernel.jobs[oldest], oldest)


@fn
def claim(kernel: Kernel, pipe: u32, params: JobParams | None) -> tuple[Status, u32]:
    """Take a free slot for a job of pipeline `pipe`, inside the critical section: the second result is the slot.

    Returns OK; INVAL for a bad pipeline; PERM if it is not built; BUSY if the cap is reached or no slot is free;
    NOMEM if it is planned and its class's frame is too small for it.
    """
    pipeline = kernel.pipelines.find(pipe)
    if pipeline is None:
        return Status.INVAL, 0
    if pipeline.state != PipelineState.BUILT:
        return Status.PERM, 0
    priority = pipeline.priority
    if params is not None:
        priority = params.priority
    frame: u32 = FREE_FRAME
    if pipeline.planned or COMPOSING == 0:
        frame = u32(priority)
        if kernel.frames[frame].bytes < pipeline.plan:
            return Status.NOMEM, 0
    if RECLAIM != 0 and not kernel.free.any():
        reclaim_oldest(kernel)
    if not kernel.free.any() or kernel.unfinished >= kernel.cap:
        return Status.BUSY, 0
    slot = kernel.free.first()
    kernel.free.remove(slot)
    kernel.unfinished += 1
    kernel.stats.submitted = wrap(u32, kernel.stats.submitted + 1)
    job = kernel.jobs[slot]
    job.state = JobState.CLAIMED
    job.id = kernel.next_id
    job.sequence = kernel.next_sequence
    job.priority = priority
    job.pipeline = u8((pipe & 0xFF) - 1)
    job.frame = u8(frame)
    kernel.next_sequence = wrap(u32, kernel.next_sequence + 1)
    kernel.next_id = wrap(u32, kernel.next_id + 1)
    if kernel.next_id == 0:
        kernel.next_id = 1
    pipeline.jobs += 1
    return Status.OK, slot


@fn
def infer_post(kernel: Kernel, pipe: u32, input: Tensor | None, data: Ptr[u8] | None, out: Ptr[u8] | None, out_bytes: u32, params: JobParams | None) -> tuple[Status, u32]:
    """Submit a job; from anywhere, interrupts included. The second result is its id.

    `input` is copied, its data are not: they lie at `data` (16-aligned) if that is given, else where `input` says, and
    must stay until the job ends. The result goes to the `out_bytes` bytes at `out` (16-aligned) if given.
    Returns OK; INVAL for no input, data outside their region, `data` or `out` not 16-aligned, a priority above 2, an unknown callback, policy or flag, or a
    deadline or policy in a build without; what `claim` does.
    """
    if input is None:
        return Status.INVAL, 0
    if (data is not None and not aligned(data, 16)) or (out is not None and not aligned(out, 16)):
        return Status.INVAL, 0
    if data is None:
        bytes = kernel.regions.get(input.region, input.offset, input.size)
        if bytes is None:
            return Status.INVAL, 0
    if params is not None:
        if params.priority >= CLASSES or params.callback > len(CALLBACKS) or params.late > u8(Late.SKIP):
            return Status.INVAL, 0
        if (DEADLINES == 0 and params.deadline_us != 0) or (LATE_POLICIES == 0 and params.late != 0) or u32(params.flags) | FLAGS != FLAGS:
            return Status.INVAL, 0
    state = hal.critical_enter(kernel.board)
    status, slot = claim(kernel, pipe, params)
    hal.critical_exit(kernel.board, state)
    if status != Status.OK:
        return status, 0
    job = kernel.jobs[slot]
    id = job.id
    job_clear(job)
    copy(job.x[0], input)
    job.quant[0].scale = 0.0
    job.quant[0].zero = 0
    job.inputs = 1
    if data is not None:
        kernel.regions.set(REGION_INPUT + slot, data, input.size)
        job.x[0].region = u8(REGION_INPUT + slot)
        job.x[0].offset = 0
    elif input.region == REGION_ARENA:
        job.mark = input.offset + input.size
    if out is not None:
        kernel.regions.set(REGION_OUTPUT + slot, out, out_bytes)
        job.into = True
    pipeline = kernel.pipelines.items[(pipe & 0xFF) - 1]
    callback = pipeline.sink
    deadline = pipeline.deadline_us
    if params is not None:
        deadline = params.deadline_us
        job.user = params.user
        job.preemptible = params.preemptible
        if LATE_POLICIES != 0:
            job.late = Late(params.late)
        if LATE_POLICIES != 0 or RECLAIM != 0:
            job.flags = params.flags
        if params.callback != 0:
            callback = params.callback
    else:
        job.preemptible = pipeline.preemptible
        if LATE_POLICIES != 0:
            job.late = Late(pipeline.late)
        if LATE_POLICIES != 0 or RECLAIM != 0:
            job.flags = pipeline.flags
    if len(CALLBACKS) != 0:
        job.callback = u16(callback)
    if DEADLINES != 0:
        job.deadline_in = deadline
        job.deadline = NEVER
        job.missed = False
        if params is not None and params.release_us != 0:
            job.release = params.release_us
            job.timed = Timed.GIVEN
        else:
            job.release = u64(hal.ticks(kernel.board))
            job.timed = Timed.COUNTER
    state = hal.critical_enter(kernel.board)
    job.state = JobState.QUEUED
    if DEADLINES != 0 or MAX_JOBS > FEW_JOBS:
        kernel.posted.add(slot)
    hal.critical_exit(kernel.board, state)
    hal.wake(kernel.board)
    return Status.OK, id


@fn
def infer_submit(kernel: Kernel, pipe: u32, input: Tensor | None, params: JobParams | None) -> u32:
    """Submit a job: its id, or 0 if it is refused (`infer_post` says why)."""
    status, id = infer_post(kernel, pipe, input, None, None, 0, params)
    if status != Status.OK:
        return 0
    return id
