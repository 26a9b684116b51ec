"""One step of a job: a stage, or a piece of its model.

A stage's result gets a buffer before it runs: in an app's frame the two ends take turns, so that what a stage reads
and what it writes never overlap; everywhere else it is the next ephemeral block of the arena, counted as published.
A model's buffer is its frame and holds all it computes.

Whatever comes back from a stage or backend is checked before the next one sees it.
"""

from synapticos.lang import *
from synapticos.kernel import hal
from synapticos.kernel.arena import HEADER, align_up, shape_bytes
from synapticos.kernel.backend import Need, NpuState, StepRows
from synapticos.kernel.capacity import (
    ACCELERATOR, COMPOSING, DEADLINES, FEEDS, GUARD, HOST_STAGES, MAX_JOBS, MODEL_STATE, OFFLOAD, PARTS, PLAIN_STAGES, PROFILING, RELEASES, RUN_ON,
)  # fmt: skip
from synapticos.kernel.container import ModelMemory
from synapticos.kernel.feed import source_push
from synapticos.kernel.guard import APP_STAGES, LayerWork, StageWork, guard_layer, guard_stage, refused
from synapticos.kernel.job import FREE_FRAME, REALTIME, HostWork, Job
from synapticos.kernel.kernel import Kernel
from synapticos.kernel.model import RAW_OUTPUT, Model, ModelState, noted_outputs
from synapticos.kernel.npu import BACKEND_CLEAR, BACKEND_LOAD, BACKEND_NEED, BACKEND_OUTPUT, BACKEND_RUN, BACKEND_STEP
from synapticos.kernel.offload import npu_empty_place, npu_give_back, npu_step, npu_take
from synapticos.kernel.parts import has_parts, part_begin, part_buffer, part_ends, parts_join
from synapticos.kernel.pipeline import MIN_BUFFER, Pipeline, Stage, StageKind
from synapticos.kernel.queue import cascade_boxes
from synapticos.kernel.region import REGION_ARENA, REGION_NONE, REGION_NPU, REGION_OUTPUT
from synapticos.kernel.residency import NOWHERE
from synapticos.kernel.stages.tables import BUILTINS, capacity
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import MAX_DIMS, STAGE_INPUTS, DType, Lifetime, StageCall, Tensor, element_size


@fn(inline=True)
def runs_on(job: Job) -> bool:
    """Could nothing come between two steps of this job, whatever is posted?

    Never in a build that has to look between them for what the clock, a release, the host or an accelerator has brought.
    """
    if RUN_ON == 0 or DEADLINES != 0 or RELEASES != 0 or HOST_STAGES != 0 or OFFLOAD != 0:
        return False
    return MAX_JOBS == 1 or not job.preemptible or job.priority == REALTIME


@fn(inline=True)
def take_buffer(kernel: Kernel, job: Job, n: u32) -> tuple[Status, u32]:
    """`n` bytes for what the next stage leaves: the second result is their offset in the arena.

    Returns OK; NOMEM.
    """
    frame = kernel.frames[job.frame]
    if COMPOSING != 0 and job.frame == FREE_FRAME:
        state = hal.critical_enter(kernel.board)
        status, block = kernel.arena.tensor(n, Lifetime.EPHEMERAL)
        if status == Status.OK:
            job.mark = kernel.arena.end
        hal.critical_exit(kernel.board, state)
        if status != Status.OK:
            left = kernel.arena.size - kernel.arena.end
            return refuse(kernel.note, Status.NOMEM, f"stage {job.stage} needs {n} bytes of the arena, which has {left} left"), 0
        job.used += n + HEADER
        return Status.OK, block + HEADER
    room = align_up(n)
    used = room + align_up(job.buffer)
    # Where all pipelines are planned, boot has seen that each fits, and submission that the frame is as large.
    if COMPOSING != 0 and (n > frame.bytes or used > frame.bytes):
        return refuse(kernel.note, Status.NOMEM, f"stage {job.stage} needs {n} bytes of a frame of {frame.bytes}, beside {job.buffer} in use"), 0
    job.used = max(job.used, used)
    if job.turn == 0:
        job.turn = 1
        return Status.OK, frame.at
    job.turn = 0
    return Status.OK, frame.at + (frame.bytes - room)


@fn
def stage_config(kernel: Kernel, pipeline: Pipeline, stage: Stage) -> Ptr[u8] | None:
    """A stage's configuration, or None if it has none."""
    if stage.config_bytes == 0:
        return None
    if stage.config_region != REGION_NONE:
        return kernel.regions.get(stage.config_region, stage.config_at, stage.config_bytes)
    return pipeline.config[stage.config_at : stage.config_at + stage.config_bytes]


@fn(inline=False)
def stage_capacity(kernel: Kernel, pipeline: Pipeline, number: u32, x: Tensor) -> u32:
    """Bytes that stage `number`, not a model, gets for what it makes of `x`."""
    stage = pipeline.stages[number]
    n = stage.capacity
    if n == 0:
        if stage.kind == StageKind.BUILTIN:
            config = stage_config(kernel, pipeline, stage)
            n = capacity(stage.number, x, config, stage.config_bytes)
        else:
            n = sat(u32, u64(x.size) * 4)
        if n < MIN_BUFFER and stage.kind != StageKind.BUILTIN:
            n = MIN_BUFFER
    if number + 1 == pipeline.model:
        # The model reads all of its input, so the stage before it has room for that.
        model = kernel.models.find(pipeline.stages[pipeline.model].number)
        if model is not None:
            n = max(n, model.info.input_size)
    return n


@fn(inline=True)
def fill_input(kernel: Kernel, job: Job, call: StageCall, to: u32, source: u32) -> Status:
    """Tensor `source` of the job is input `to`. Returns OK; INVAL if it does not lie in its region."""
    x = job.x[source]
    data = kernel.regions.get(x.region, x.offset, x.size)
    if data is None:
        return Status.INVAL
    copy(call.x[to], x)
    call.x_data[to] = data
    call.scale[to] = job.quant[source].scale
    call.zero[to] = job.quant[source].zero
    return Status.OK


@fn(inline=False)
def fill_inputs(kernel: Kernel, job: Job, stage: Stage, call: StageCall) -> Status:
    """All inputs of a stage that takes several, or chooses. Returns what `fill_call` does."""
    inputs = u32(job.inputs)
    if stage.binds != 0:
        inputs = u32(stage.binds)
    if inputs > STAGE_INPUTS:
        return Status.INVAL
    call.inputs = inputs
    for i in range(inputs):
        source = i
        if stage.binds != 0:
            source = u32(stage.bind[i])
        if source >= job.inputs:
            return Status.INVAL
        check(fill_input(kernel, job, call, i, source))
    return Status.OK


@fn
def fill_call(kernel: Kernel, job: Job, pipeline: Pipeline, stage: Stage, call: StageCall) -> Status:
    """Resolve the operands of the stage that runs: all that it can see, and nothing of inputs that it has not.

    Returns OK; INVAL if a tensor does not lie in its region or a bind names none.
    """
    if job.inputs == 1 and stage.binds == 0:
        call.inputs = 1
        check(fill_input(kernel, job, call, 0, 0))
    else:
        check(fill_inputs(kernel, job, stage, call))
    memory = kernel.regions.items[REGION_ARENA].base
    if memory is None:
        return Status.INVAL
    fill_own(kernel, job, pipeline, stage, call, memory)
    arena = kernel.arena
    call.scratch = None
    call.scratch_bytes = 0
    start = align_up(arena.scratch_used)
    if start < arena.scratch_size:
        call.scratch = memory[arena.scratch_at + start : arena.scratch_at + arena.scratch_size]
        call.scratch_bytes = arena.scratch_size - start
    return Status.OK


@fn(inline=True)
def fill_own(kernel: Kernel, job: Job, pipeline: Pipeline, stage: Stage, call: StageCall, memory: Ptr[u8]) -> None:
    """What a stage has beside its inputs and the scratch pool: room for its result, its configuration and its state.

    Where they lie is the kernel's own arithmetic, checked when the arena, the frames and this buffer were given.
    """
    # Statements of their own for neighbouring bytes make words of them.
    y = call.y
    y.offset = job.y_at
    y.size = job.y_room
    y.dtype = call.x[0].dtype
    y.ndim = 0
    y.region = u8(REGION_ARENA)
    y.reserved = 0
    y.shape[0] = 0
    y.shape[1] = 0
    y.shape[2] = 0
    y.shape[3] = 0
    y.lifetime = Lifetime.EPHEMERAL
    y.reserved_end[0] = 0
    y.reserved_end[1] = 0
    y.reserved_end[2] = 0
    call.y_data = memory[job.y_at : job.y_at + job.y_room]
    call.config_bytes = stage.config_bytes
    call.config = None
    if stage.config_bytes != 0:
        call.config = stage_config(kernel, pipeline, stage)
    call.state_bytes = stage.state_bytes
    call.state = None
    if stage.state_bytes != 0:
        call.state = memory[stage.state_at : stage.state_at + stage.state_bytes]


@fn(inline=True)
def accept(kernel: Kernel, job: Job, pipeline: Pipeline, y: Tensor) -> Status:
    """A stage answered OK and left `y`: is it within what the stage was given? Then the job is at its next stage.

    Returns OK; FBIG if it says that it wrote more than its room; INVAL for a shape that promises more than the size;
    MSGSIZE if it is a part of what a model takes, and not all of it.
    """
    room = job.y_room
    if y.size > room:
        return refuse(kernel.note, Status.FBIG, f"stage {job.stage} says it wrote {y.size} bytes and had room for {room}")
    check(fits_shape(kernel, job, y))
    if PARTS != 0 and y.size != room:
        if has_parts(pipeline) and job.stage < pipeline.model and part_ends(pipeline, job.stage):
            return refuse(kernel.note, Status.MSGSIZE, f"stage {job.stage} left {y.size} bytes, the model takes {room} of it")
    job.inputs = 1
    job.buffer = room
    job.stage += 1
    return Status.OK


@fn(inline=True)
def hand_on(job: Job, x: Tensor, y: Tensor) -> None:
    """What a stage left is input `x` of the next one."""
    copy(x, y)
    x.offset = job.y_at
    x.region = u8(REGION_ARENA)
    x.lifetime = Lifetime.EPHEMERAL


@fn(inline=True)
def end_row(job: Job, y: Tensor) -> None:
    """What a stage left is what the job has, until it is picked again."""
    hand_on(job, job.x[0], y)
    job.quant[0].scale = 0.0
    job.quant[0].zero = 0


@fn
def end_stage(kernel: Kernel, job: Job, y: Tensor) -> Status:
    """A stage answered OK and left `y`, which is not the job's own: hand it on, if `accept` takes it."""
    check(accept(kernel, job, kernel.pipelines.items[job.pipeline], y))
    end_row(job, y)
    return Status.OK


@fn(inline=True)
def fits_shape(kernel: Kernel, job: Job, y: Tensor) -> Status:
    """`check_shape`, with the shortest of shapes looked at on the spot."""
    if y.ndim != 1 or u64(y.shape[0]) * element_size(y.dtype) > y.size:
        return check_shape(kernel, job, y)
    y.shape[1] = 0
    y.shape[2] = 0
    y.shape[3] = 0
    return Status.OK


@fn(inline=False)
def check_shape(kernel: Kernel, job: Job, y: Tensor) -> Status:
    """Does the size that a stage or a backend left hold the shape that it states? Clears the shape's unused entries.

    Returns OK; INVAL for a shape that promises more than the size.
    """
    if y.ndim == 0 or y.ndim > MAX_DIMS:
        return refuse(kernel.note, Status.INVAL, f"stage {job.stage} left a tensor of {y.ndim} dimensions")
    fits, size = shape_bytes(y.shape, y.ndim, y.dtype)
    if fits != Status.OK or size > y.size:
        return refuse(kernel.note, Status.INVAL, f"stage {job.stage} left {y.size} bytes in a shape of {size}")
    for i in range(u32(y.ndim), MAX_DIMS):
        y.shape[i] = 0
    return Status.OK


@fn
def bring_model(kernel: Kernel, model: Model, handle: u32) -> Status:
    """Make sure that the accelerator would run `model`, swapping it in if it is loaded but not resident.

    Returns OK; PERM if it is not loaded, or the accelerator is down, suspended, or holds what the model without a
    payload was not registered for; what the backend says.
    """
    npu = kernel.npu
    if ACCELERATOR == 0:
        if model.state != ModelState.LOADED:
            return Status.PERM
        return Status.OK
    if model.bytes != 0 and model.state != ModelState.LOADED:
        return Status.PERM
    if model.bytes != 0 and not model.exclusive:
        return Status.OK
    if not npu.initialised or npu.state == NpuState.SUSPENDED:
        return Status.PERM
    if OFFLOAD != 0 and model.asynchronous:
        return Status.OK
    if npu.state == NpuState.BUSY:
        return Status.BUSY
    if model.bytes == 0:
        if npu.model_bytes == 0 or npu.state != NpuState.IDLE:
            return Status.PERM
        return Status.OK
    resident = npu.holds.find(handle)
    if resident != NOWHERE and npu.state == NpuState.IDLE:
        npu.holds.use(resident)
        return Status.OK
    data = kernel.regions.get(model.region, model.at, model.bytes)
    if data is None:
        return Status.PERM
    m = local(ModelMemory)
    m.container = data
    m.container_bytes = model.bytes
    before = hal.ticks(kernel.board)
    check(BACKEND_LOAD[model.backend](m))
    place = npu_empty_place(kernel, model.backend)
    if place == NOWHERE:
        return Status.NOMEM
    after = hal.ticks(kernel.board)
    npu.holds.put(place, handle, wrap(u32, after - before))
    npu.state = NpuState.IDLE
    return Status.OK


@fn
def model_memory(kernel: Kernel, job: Job, model: Model, m: ModelMemory) -> Status:
    """Where a model's spaces lie while one step of `job` runs: every field of `m`.

    Where frame and scratch lie is the kernel's own arithmetic, checked as they were given.
    Returns OK; INVAL if its container, its input or what it keeps does not lie in its region.
    """
    arena = kernel.arena
    region = u32(model.region)
    at = model.at
    bytes = model.bytes
    if ACCELERATOR != 0 and bytes == 0:
        region = REGION_NPU  # loaded by hand
        bytes = kernel.npu.model_bytes
    container = kernel.regions.get(region, at, bytes)
    x = job.x[0]
    input = kernel.regions.get(x.region, x.offset, x.size)
    memory = kernel.regions.items[REGION_ARENA].base
    if container is None or input is None or memory is None:
        return Status.INVAL
    m.container = container
    m.container_bytes = bytes
    m.frame = memory[job.frame_at : job.frame_at + job.frame_bytes]
    m.frame_bytes = job.frame_bytes
    start = min(align_up(arena.scratch_used), arena.scratch_size)
    m.scratch = memory[arena.scratch_at + start : arena.scratch_at + arena.scratch_size]
    m.scratch_bytes = arena.scratch_size - start
    m.input = input
    m.input_bytes = x.size
    m.persistent = memory
    m.persistent_bytes = 0
    if MODEL_STATE != 0 and model.persistent_bytes != 0:
        persistent = kernel.regions.get(REGION_ARENA, model.persistent_at, model.persistent_bytes)
        if persistent is None:
            return Status.INVAL
        m.persistent = persistent
        m.persistent_bytes = model.persistent_bytes
    m.bad_step = 0
    m.planned = 0
    m.required = 0
    return Status.OK


@fn
def feed_model(kernel: Kernel, job: Job, want: u32) -> Status:
    """Check what enters a model that takes `want` bytes; what a stage left too short is filled with zeros.

    Returns OK; MSGSIZE if it is longer, or shorter and straight from the caller.
    """
    x = job.x[0]
    if want == 0 or x.size == want:
        return Status.OK
    if PLAIN_STAGES == 0 or x.size > want or job.stage == 0 or job.buffer < want:
        return refuse(kernel.note, Status.MSGSIZE, f"the model takes {want} bytes and is given {x.size}")
    data = kernel.regions.get(x.region, x.offset, want)
    if data is None:
        return Status.INVAL
    fill(data[x.size :], 0, want - x.size)
    x.size = want
    return Status.OK


@fn
def note_need(model: Model, m: ModelMemory) -> Status:
    """Of a model that was loaded by hand nobody has noted what it needs. Returns OK; NOTSUP for too many outputs."""
    need = local(Need)
    BACKEND_NEED[model.backend](m, need)
    if need.outputs == 0 or need.outputs > STAGE_INPUTS:
        return Status.NOTSUP
    model.outputs = noted_outputs(need)
    model.steps = need.steps
    return Status.OK


@fn
def begin_model(kernel: Kernel, job: Job, stage: Stage, model: Model, m: ModelMemory) -> Status:
    """The job reaches its model: check the input, give it a frame, fill `m` and ask once what the model needs."""
    check(bring_model(kernel, model, stage.number))
    if PARTS != 0 and has_parts(kernel.pipelines.items[job.pipeline]):
        parts_join(kernel, job, model.info.input_size)
    check(feed_model(kernel, job, model.info.input_size))
    bytes = model.frame_bytes
    if ACCELERATOR != 0 and bytes == 0:
        bytes = max(model.info.output_size, MIN_BUFFER)
    at = check(take_buffer(kernel, job, bytes))
    job.frame_at = at
    job.frame_bytes = bytes
    check(model_memory(kernel, job, model, m))
    if ACCELERATOR != 0 and model.bytes == 0:
        check(note_need(model, m))
    job.steps = model.steps
    job.step = 0
    job.row = 0
    if ACCELERATOR != 0 and model.exclusive and (OFFLOAD == 0 or not model.asynchronous):
        ignore(npu_take(kernel, job))
    if PROFILING != 0:
        job.times.stage[job.stage] = 0
        kernel.profile.begin_layers(job.id)
    return Status.OK


@fn(inline=False)
def clear_state(kernel: Kernel, stage: Stage) -> None:
    """What a stage keeps from run to run: zeros, as before the first."""
    state = kernel.regions.get(REGION_ARENA, stage.state_at, stage.state_bytes)
    if state is not None:
        fill(state, 0, stage.state_bytes)


@fn(inline=True)
def run_rows(kernel: Kernel, job: Job, model: Model, m: ModelMemory, row: u32, row_end: u32) -> Status:
    """Rows of the model's step. Returns what the backend says, or what `guard_layer` does; a model whose layer did not return
    forgets what it keeps, which may be half written."""
    if GUARD != 0:
        work = local(LayerWork, zero=False)
        copy(work.memory, m)
        work.backend = model.backend
        work.step = job.step
        work.row = row
        work.row_end = row_end
        status = guard_layer(kernel, job, work)
        if MODEL_STATE != 0 and job.faulted and model.persistent_bytes != 0:
            ignore(BACKEND_CLEAR[model.backend](m))
        return status
    return BACKEND_RUN[model.backend](m, job.step, row, row_end)


@fn(inline=False)
def step_model(kernel: Kernel, job: Job, stage: Stage) -> Status:
    """The next piece of the job's model; after the last one its outputs are handed on."""
    model = kernel.models.find(stage.number)
    if model is None:
        return Status.NOENT
    if OFFLOAD != 0 and model.exclusive and not model.asynchronous and not job.holds_npu and kernel.npu.owner != 0:
        job.host = HostWork.LINE
        return Status.OK
    m = local(ModelMemory, zero=False)
    if job.frame_bytes == 0:
        check(begin_model(kernel, job, stage, model, m))
    else:
        check(model_memory(kernel, job, model, m))
    if OFFLOAD != 0 and model.asynchronous:
        check(npu_step(kernel, job, model, stage.number, m))
        if job.host != HostWork.NONE or job.step < job.steps:
            return Status.OK
        return end_model(kernel, job, model, m)
    if job.step < job.steps:
        rows = local(StepRows, zero=False)
        rows.row = 0
        rows.row_end = 0
        rows.tile = 0
        BACKEND_STEP[model.backend](m, job.step, rows)
        row = max(job.row, rows.row)
        row_end = rows.row_end
        if rows.tile != 0 and row_end - row > rows.tile:
            row_end = row + rows.tile
        status = run_rows(kernel, job, model, m, row, row_end)
        if status != Status.OK:
            if ACCELERATOR != 0 and job.holds_npu:
                npu_give_back(kernel, job, NpuState.ERROR)
            return status
        if row_end < rows.row_end:
            job.row = row_end
            return Status.OK
        job.step += 1
        job.row = 0
    if job.step < job.steps:
        return Status.OK
    return end_model(kernel, job, model, m)


@fn
def end_model(kernel: Kernel, job: Job, model: Model, m: ModelMemory) -> Status:
    """The model has run: its outputs are what the next stage gets."""
    if ACCELERATOR != 0 and job.holds_npu:
        npu_give_back(kernel, job, NpuState.IDLE)
    outputs = u32(model.outputs) & (RAW_OUTPUT - 1)
    for i in range(outputs):
        y = job.x[i]
        y.dtype = DType.INT8
        y.ndim = 0
        y.reserved = 0
        for k in range(MAX_DIMS):
            y.shape[k] = 0
        for k in range(3):
            y.reserved_end[k] = 0
        status = BACKEND_OUTPUT[model.backend](m, i, y, job.quant[i])
        if status != Status.OK:
            return status
        if y.size > job.frame_bytes or y.offset > job.frame_bytes - y.size:
            return Status.IO
        y.offset += job.frame_at
        y.region = u8(REGION_ARENA)
        y.lifetime = Lifetime.EPHEMERAL
        if ACCELERATOR != 0 and outputs != model.outputs and i == 0:
            declare_output(y, model)
        check(fits_shape(kernel, job, y))
    job.inputs = u8(outputs)
    job.buffer = job.frame_bytes
    job.frame_bytes = 0
    job.steps = 0
    job.step = 0
    job.stage += 1
    return Status.OK


@fn
def declare_output(y: Tensor, model: Model) -> None:
    """Type and shape of a backend's bytes by the model's record: its shape if that matches, else a row of elements."""
    if model.info.output_dtype <= 4:
        y.dtype = DType(model.info.output_dtype)
    width = element_size(y.dtype)
    declared = u64(width)
    ndim: u32 = 0
    for i in range(MAX_DIMS):
        if model.info.output_shape[i] != 0 and ndim == i:
            declared *= model.info.output_shape[i]
            ndim += 1
    if ndim != 0 and declared == y.size:
        y.ndim = u8(ndim)
        for i in range(ndim):
            y.shape[i] = model.info.output_shape[i]
    else:
        y.ndim = 1
        y.shape[0] = y.size // width


@fn(inline=False)
def run_step(kernel: Kernel, job: Job, pipeline: Pipeline) -> Status:
    """The job's next step. A stage of the host's only gets its buffer: `job.host` says that it is wanted."""
    stage = pipeline.stages[job.stage]
    if PLAIN_STAGES == 0 or stage.kind == StageKind.MODEL:
        return step_model(kernel, job, stage)
    if PARTS != 0 and stage.kind == StageKind.PART:
        return part_begin(kernel, job, pipeline)
    room = stage.capacity  # as boot has worked it out
    if COMPOSING != 0 and not pipeline.planned:
        room = stage_capacity(kernel, pipeline, job.stage, job.x[0])
    if PARTS != 0 and has_parts(pipeline) and job.stage < pipeline.model:
        place = check(part_buffer(kernel, job, pipeline, room))
        job.y_at = place
    else:
        at = check(take_buffer(kernel, job, room))
        job.y_at = at
    job.y_room = room
    if HOST_STAGES != 0 and stage.kind == StageKind.HOST:
        job.host = HostWork.WANTED
        return Status.OK
    if GUARD != 0:
        work = local(StageWork, zero=False)
        check(fill_call(kernel, job, pipeline, stage, work.call))
        work.app = stage.kind == StageKind.APP
        work.number = stage.number
        status = guard_stage(kernel, job, work)
        if status != Status.OK:
            if job.faulted and stage.state_bytes != 0:
                clear_state(kernel, stage)  # it did not return, and may have written half of it
            return status
        return end_stage(kernel, job, work.call.y)
    return run_row(kernel, job, pipeline)


@fn(inline=True)
def run_row(kernel: Kernel, job: Job, pipeline: Pipeline) -> Status:
    """Call the stage that has its buffer; and those behind it in the same poll, if nothing could come between and each takes
    what the one before left. That is handed on from call to call, and is the job's own once the row is over.

    Returns the first status that is not OK, of a stage (as `refused` has it) or of `accept`.
    """
    call = local(StageCall, zero=False)
    check(fill_call(kernel, job, pipeline, pipeline.stages[job.stage], call))
    going = True
    while going:
        stage = pipeline.stages[job.stage]
        status = Status.OK
        if stage.kind == StageKind.APP:
            status = APP_STAGES[stage.number](call)
        else:
            status = BUILTINS[stage.number](call)
        if status != Status.OK:
            return refused(status)
        check(accept(kernel, job, pipeline, call.y))
        going = next_in_row(kernel, job, pipeline, call)
    end_row(job, call.y)
    return Status.OK


@fn(inline=True)
def next_in_row(kernel: Kernel, job: Job, pipeline: Pipeline, call: StageCall) -> bool:
    """Make of a stage's call that of the stage behind it, if that may run at once."""
    if COMPOSING != 0 or GUARD != 0 or not runs_on(job) or job.abort:
        return False
    if job.stage == pipeline.count or (PROFILING != 0 and kernel.profile.enabled):
        return False
    stage = pipeline.stages[job.stage]
    if (stage.kind != StageKind.APP and stage.kind != StageKind.BUILTIN) or stage.binds != 0 or (PARTS != 0 and has_parts(pipeline)):
        return False
    memory = kernel.regions.items[REGION_ARENA].base
    if memory is None:
        return False
    hand_on(job, call.x[0], call.y)
    call.inputs = 1
    call.scale[0] = 0.0
    call.zero[0] = 0
    call.x_data[0] = memory[job.y_at : job.y_at + call.y.size]
    room = stage.capacity
    status, at = take_buffer(kernel, job, room)
    if status != Status.OK:
        return False
    job.y_at = at
    job.y_room = room
    fill_own(kernel, job, pipeline, stage, call, memory)
    return True


@fn
def push_result(kernel: Kernel, job: Job) -> Status:
    """The result goes into a feed, as if a source had given it. What finds no entry there is counted as lost, no error."""
    x = job.x[0]
    data = kernel.regions.get(x.region, x.offset, x.size)
    status = source_push(kernel, u32(kernel.pipelines.items[job.pipeline].feed) - 1, data, x.size)
    if status == Status.NOMEM:
        return Status.OK
    return status


@fn
def outputs_fit(kernel: Kernel, job: Job, room: u32) -> Status:
    """Have all outputs room, each from a multiple of 16 on? Returns OK; MSGSIZE."""
    total: u64 = 0
    for i in range(job.inputs):
        total = (total + 15) & ~u64(15)
        total += job.x[i].size
    if total > room:
        return refuse(kernel.note, Status.MSGSIZE, f"a result of {total} bytes and a buffer of {room}")
    return Status.OK


@fn
def deliver(kernel: Kernel, job: Job, slot: u32) -> Status:
    """Move a job's result out of its frame: into the caller's buffer, or its slot's if the app has some.

    Each output begins at a multiple of 16. Returns OK; MSGSIZE if it does not fit, and then nothing has moved; CANCELED if
    the job was aborted before others could be given its result.
    """
    if RELEASES != 0 or FEEDS != 0:
        pipeline = kernel.pipelines.items[job.pipeline]
        if pipeline.cascades or pipeline.feed != 0:
            state = hal.critical_enter(kernel.board)
            job.handed = not job.abort
            hal.critical_exit(kernel.board, state)
            if not job.handed:
                return Status.CANCELED
        if RELEASES != 0 and pipeline.cascades:
            cascade_boxes(kernel, job)
        if FEEDS != 0 and pipeline.feed != 0:
            return push_result(kernel, job)
    region: u32 = REGION_ARENA
    at: u32 = 0
    room: u32 = 0
    if job.into:
        region = REGION_OUTPUT + slot
        room = kernel.regions.items[region].size
    elif kernel.result_bytes != 0 and job.frame != FREE_FRAME:
        at = kernel.results_at + kernel.result_bytes * slot
        room = kernel.result_bytes
    else:
        return Status.OK
    if STAGE_INPUTS != 1 and job.inputs != 1:
        check(outputs_fit(kernel, job, room))
    for i in range(job.inputs):
        x = job.x[i]
        at = align_up(at)
        if x.size > room:
            return refuse(kernel.note, Status.MSGSIZE, f"a result of {x.size} bytes and a buffer of {room}")
        source = kernel.regions.get(x.region, x.offset, x.size)
        target = kernel.regions.get(region, at, x.size)
        if source is None or target is None:
            return Status.INVAL
        move(target, source, x.size)
        x.region = u8(region)
        x.offset = at
        at += x.size
    job.mark = 0
    return Status.OK
