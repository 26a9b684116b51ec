"""Parts: several inputs on their way into one model.

A model's inputs are one block, each from a multiple of 16 on. Where an app feeds them from several sources, its job's
input holds a frame of each source, likewise. If nothing is done with them, that is the model's block and nothing here
runs. Else a PART stage begins each of them: from there to the next PART, or to the model, stages work on that one, and
the last leaves its result at the part's place in the block. A part without stages is copied there.

    frame:  block | what stages of one part hand on, at two ends in turns       until the model
            outputs of stages after it ... | the model's own                    then

Only an app's tables make such pipelines, and boot checks all of it (`parts_plan`).
"""

from synapticos.lang import *
from synapticos.kernel.arena import align_up, shape_bytes
from synapticos.kernel.capacity import JOINS, MAX_WAITING
from synapticos.kernel.container import DTYPE_INT32
from synapticos.kernel.job import Job
from synapticos.kernel.kernel import Kernel
from synapticos.kernel.pipeline import Pipeline, StageKind
from synapticos.kernel.region import REGION_ARENA, REGION_INPUT, REGION_TABLES
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import MAX_DIMS, DType, Lifetime


@struct
class Part:
    """The configuration of a PART stage."""

    at: u32  # of what its source gives, in the job's input, bytes
    size: u32  # of that, bytes
    shape: Shaped[Array[u32], MAX_DIMS]
    dtype: u8  # a number, since tables may be damaged
    ndim: u8
    reserved: u16
    place: u32  # in the model's block, bytes, a multiple of 16
    bytes: u32  # that the model takes there


PART_BYTES = sizeof(Part)


@fn(pure=True)
def has_parts(pipeline: Pipeline) -> bool:
    return pipeline.stages[0].kind == StageKind.PART


@fn(pure=True)
def part_ends(pipeline: Pipeline, number: u32) -> bool:
    """Is stage `number`, which lies before the model, its part's last?"""
    next = pipeline.stages[number + 1].kind
    return next == StageKind.PART or next == StageKind.MODEL


@fn
def part_of(kernel: Kernel, pipeline: Pipeline, number: u32) -> Part | None:
    """What stage `number`, which lies before the model, works on; None: nothing has begun."""
    for i in range(number + 1):
        stage = pipeline.stages[number - i]
        if stage.kind == StageKind.PART:
            config = kernel.regions.get(REGION_TABLES, stage.config_at, PART_BYTES)
            if config is None or stage.config_bytes != PART_BYTES:
                return None
            return view(Part, config)
    return None


@fn
def model_input(kernel: Kernel, pipeline: Pipeline) -> u32:
    """Bytes of the block that the pipeline's model takes."""
    model = kernel.models.find(pipeline.stages[pipeline.model].number)
    if model is None:
        return 0
    return model.info.input_size


@fn
def part_begin(kernel: Kernel, job: Job, pipeline: Pipeline) -> Status:
    """The job reaches a PART stage: what its source gave is what the next stage sees, or is copied into the block.

    Returns OK; MSGSIZE if the job's input is too short; INVAL if it lies neither in a buffer of the caller's nor in that of
    its release.
    """
    number = u32(job.stage)
    part = part_of(kernel, pipeline, number)
    region = REGION_INPUT + (kernel.current - 1)
    base: u32 = 0
    inside = True
    if JOINS != 0 and job.releaser != 0:
        release = kernel.releases.items[job.releaser - 1]
        if release.joins != 0:
            region = REGION_ARENA
            base = release.boxes_at + MAX_WAITING * release.stride
            inside = part is not None and part.at <= release.x.size and part.size <= release.x.size - part.at
    if part is None or (number == 0 and job.x[0].region != region):
        return Status.INVAL
    source = kernel.regions.get(region, base + part.at, part.size)
    if source is None or not inside:
        return refuse(kernel.note, Status.MSGSIZE, f"a part of {part.size} bytes at {part.at} lies outside the job's input")
    x = job.x[0]
    x.offset = base + part.at
    x.size = part.size
    x.dtype = DType(part.dtype)
    x.ndim = part.ndim
    x.region = u8(region)
    x.lifetime = Lifetime.EPHEMERAL
    copy(x.shape, part.shape)
    job.inputs = 1
    job.quant[0].scale = 0.0
    job.quant[0].zero = 0
    job.buffer = 0
    job.turn = 0
    if part_ends(pipeline, number):
        frame = kernel.frames[job.frame]
        if part.place > frame.bytes:
            return Status.NOMEM
        target = kernel.regions.get(REGION_ARENA, frame.at + part.place, part.size)
        if target is None or part.size > frame.bytes - part.place:
            return Status.NOMEM
        move(target, source, part.size)
    job.stage += 1
    return Status.OK


@fn
def part_buffer(kernel: Kernel, job: Job, pipeline: Pipeline, n: u32) -> tuple[Status, u32]:
    """`n` bytes for what a stage before the model leaves of its part: the second result is their offset in the arena.

    Returns OK; NOMEM; INVAL for a stage of no part, or a last one whose result is not what the model takes.
    """
    frame = kernel.frames[job.frame]
    part = part_of(kernel, pipeline, job.stage)
    if part is None:
        return Status.INVAL, 0
    block = align_up(model_input(kernel, pipeline))
    room: u32 = 0
    last = part_ends(pipeline, job.stage)
    if not last:
        room = align_up(n)
    elif n != part.bytes:
        return Status.INVAL, 0
    used = block + room + align_up(job.buffer)
    if n > frame.bytes or used > frame.bytes:
        return refuse(kernel.note, Status.NOMEM, f"stage {job.stage} needs {n} bytes of a frame of {frame.bytes}, beside {job.buffer} in use"), 0
    job.used = max(job.used, used)
    if last:
        return Status.OK, frame.at + part.place
    if job.turn == 0:
        job.turn = 1
        return Status.OK, frame.at + block
    job.turn = 0
    return Status.OK, frame.at + (frame.bytes - room)


@fn
def parts_join(kernel: Kernel, job: Job, want: u32) -> None:
    """The job reaches its model: the block is what it takes, `want` bytes."""
    x = job.x[0]
    x.offset = kernel.frames[job.frame].at
    x.size = want
    x.dtype = DType.UINT8
    x.ndim = 1
    x.region = u8(REGION_ARENA)
    x.lifetime = Lifetime.EPHEMERAL
    for i in range(MAX_DIMS):
        x.shape[i] = 0
    x.shape[0] = want
    job.inputs = 1
    job.buffer = align_up(want)
    job.turn = 1  # the model's frame lies at the other end


@fn
def parts_plan(kernel: Kernel, pipeline: Pipeline, model_bytes: u32) -> tuple[Status, u64]:
    """Bytes of a frame for a pipeline of parts whose model's own frame has `model_bytes`.

    Returns OK; INVAL if a part does not lie in the model's block, is not what its source gives, or does not end as the
    model takes it.
    """
    block = align_up(model_input(kernel, pipeline))
    largest: u64 = 0
    before: u64 = 0
    for i in range(pipeline.count):
        stage = pipeline.stages[i]
        room = (u64(stage.capacity) + 15) & ~u64(15)
        if i < pipeline.model:
            part = part_of(kernel, pipeline, i)
            if part is None:
                return Status.INVAL, 0
            left = stage.capacity
            if stage.kind == StageKind.PART:
                before = 0
                room = 0
                left = part.size
                if part.ndim == 0 or part.ndim > MAX_DIMS or part.dtype > DTYPE_INT32:
                    return Status.INVAL, 0
                fits, size = shape_bytes(part.shape, part.ndim, DType(part.dtype))
                if fits != Status.OK or size != left or part.place % 16 != 0 or part.place > block or part.bytes > block - part.place:
                    return Status.INVAL, 0
            if part_ends(pipeline, i):
                room = 0
                if left != part.bytes:
                    return Status.INVAL, 0
            largest = max(largest, block + before + room)
        else:
            if stage.kind == StageKind.MODEL:
                before = block
                room = (u64(model_bytes) + 15) & ~u64(15)
            largest = max(largest, before + room)
        before = room
    return Status.OK, largest
