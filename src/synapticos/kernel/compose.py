"""Composing pipelines: create, add stages, build. Thread mode; the pool's slots change under the critical section.

The grammar is `pre* model post*`. Every published call takes the kernel first and behaves as published.
"""

from synapticos.lang import *
from synapticos.kernel import hal
from synapticos.kernel.arena import HEADER
from synapticos.kernel.capacity import COMPOSING, FEEDS, PIPELINE_CONFIG_BYTES
from synapticos.kernel.kernel import Kernel
from synapticos.kernel.model import Model
from synapticos.kernel.pipeline import (
    APP_STAGE, BUILTIN_STAGE, HOST_STAGE, MIN_BUFFER, NO_MODEL, STAGE_NUMBERS, PipelineState, Stage, StageKind,
    pipeline_append, pipeline_estimate, pipeline_keep_config,
)  # fmt: skip
from synapticos.kernel.run import APP_STAGES, stage_capacity
from synapticos.kernel.stages.tables import (
    BUILTINS, check_config, config_size, plan_result,
)  # fmt: skip
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import DType, Tensor, element_size


@fn
def pipeline_create(kernel: Kernel, name: Ptr[u8] | None) -> u32:
    """A new pipeline's handle, or 0 when all are in use. `name` ends with a 0 and is cut to 23 bytes; None: "unnamed"."""
    state = hal.critical_enter(kernel.board)
    handle = kernel.pipelines.create(name)
    hal.critical_exit(kernel.board, state)
    return handle


@fn(pure=True)
def stage_kind(stage: u32) -> StageKind:
    """What a stage's number stands for; NONE if this build has no such stage."""
    if stage >= BUILTIN_STAGE and stage - BUILTIN_STAGE < len(BUILTINS):
        return StageKind.BUILTIN
    if stage >= APP_STAGE and stage - APP_STAGE < len(APP_STAGES):
        return StageKind.APP
    if stage >= HOST_STAGE and stage - HOST_STAGE < STAGE_NUMBERS:
        return StageKind.HOST
    return StageKind.NONE


@fn
def pipeline_add(kernel: Kernel, pipe: u32, stage: u32, config: Ptr[u8] | None, config_bytes: u32, after: bool) -> Status:
    """Append a stage; the rest of `pipeline_add_preprocess` and `pipeline_add_postprocess`."""
    pipeline = kernel.pipelines.find(pipe)
    kind = stage_kind(stage)
    if pipeline is None or kind == StageKind.NONE:
        return Status.INVAL
    if pipeline.state == PipelineState.BUILT:
        return Status.PERM
    number = stage % STAGE_NUMBERS
    bytes = config_bytes
    if config is not None and bytes == 0 and kind == StageKind.BUILTIN:
        bytes = config_size(number)
    if config is None:
        bytes = 0
    if kind == StageKind.BUILTIN:
        check(check_config(number, config, bytes))
    if after != (pipeline.model != NO_MODEL):
        return Status.INVAL
    if bytes > PIPELINE_CONFIG_BYTES - pipeline.config_used:
        return refuse(kernel.note, Status.NOMEM, f"a configuration of {bytes} bytes; the pipeline has room for {PIPELINE_CONFIG_BYTES - pipeline.config_used}")
    added = pipeline_append(pipeline, kind, number)
    if added is None:
        return Status.NOMEM
    if config is not None:
        return pipeline_keep_config(pipeline, added, config, bytes)
    return Status.OK


@fn
def pipeline_add_preprocess(kernel: Kernel, pipe: u32, stage: u32, config: Ptr[u8] | None, config_bytes: u32) -> Status:
    """Append a stage before the model. `stage` is BUILTIN_STAGE, APP_STAGE or HOST_STAGE plus a number.

    The configuration is checked and copied; 0 bytes with a built-in means the size of its own.
    Returns OK; INVAL for a bad pipeline, stage or configuration; PERM if it is built; INVAL after the model; NOMEM if
    the stage table or the room for configurations is full.
    """
    return pipeline_add(kernel, pipe, stage, config, config_bytes, False)


@fn
def pipeline_add_postprocess(kernel: Kernel, pipe: u32, stage: u32, config: Ptr[u8] | None, config_bytes: u32) -> Status:
    """Append a stage after the model. Returns what `pipeline_add_preprocess` does; INVAL before the model."""
    return pipeline_add(kernel, pipe, stage, config, config_bytes, True)


@fn
def pipeline_add_model(kernel: Kernel, pipe: u32, model: u32) -> Status:
    """Append the model.

    Returns OK; INVAL for a bad pipeline or handle 0; PERM if it is built; ALREADY if it has a model; NOENT if nothing
    is registered under the handle; NOMEM.
    """
    pipeline = kernel.pipelines.find(pipe)
    if pipeline is None or model == 0:
        return Status.INVAL
    if pipeline.state == PipelineState.BUILT:
        return Status.PERM
    if pipeline.model != NO_MODEL:
        return Status.ALREADY
    found = kernel.models.find(model)
    if found is None:
        return Status.NOENT
    added = pipeline_append(pipeline, StageKind.MODEL, model)
    if added is None:
        return Status.NOMEM
    return Status.OK


@fn
def pipeline_build(kernel: Kernel, pipe: u32) -> Status:
    """Close a pipeline: from now on it takes jobs and no stages. The published estimate goes to the log.

    Returns OK; INVAL for a bad pipeline; ALREADY if it is built; INVAL without a model, unless it
    ends in a feed; NOENT if the model is gone.
    """
    pipeline = kernel.pipelines.find(pipe)
    if pipeline is None:
        return Status.INVAL
    if pipeline.state == PipelineState.BUILT:
        return Status.ALREADY
    if FEEDS != 0 and pipeline.feed != 0 and pipeline.model == NO_MODEL:
        pipeline.state = PipelineState.BUILT
        return Status.OK
    if pipeline.model == NO_MODEL:
        return Status.INVAL
    model = kernel.models.find(pipeline.stages[pipeline.model].number)
    if model is None:
        return Status.NOENT
    if COMPOSING != 0:
        pipeline.estimate = pipeline_estimate(pipeline, model.info.input_size, model.info.output_size, model.info.sram_required)
    pipeline.state = PipelineState.BUILT
    log.info(kernel.log, f"pipeline {pipe}: {pipeline.count} stages, estimate {pipeline.estimate} bytes")
    return Status.OK


@fn
def pipeline_get_estimate(kernel: Kernel, pipe: u32) -> u32:
    """The published estimate of a built pipeline in bytes; 0 for any other."""
    pipeline = kernel.pipelines.find(pipe)
    if pipeline is None:
        return 0
    return pipeline.estimate


@fn
def model_buffer(model: Model) -> u32:
    """Bytes that a model's stage takes: its frame, or its declared output."""
    if model.frame_bytes != 0:
        return model.frame_bytes
    return max(model.info.output_size, MIN_BUFFER)


@fn
def plan_after(stage: Stage, model: Model, x: Tensor, size: u32) -> None:
    """Turn `x`, which enters a stage, into the largest that can leave it, `size` bytes. Only what capacities ask is kept."""
    x.size = size
    if stage.kind == StageKind.MODEL:
        x.dtype = DType.INT8
        if model.info.output_dtype <= 4:
            x.dtype = DType(model.info.output_dtype)
        if model.frame_bytes == 0:
            x.size = model.info.output_size
        x.ndim = 1
        x.shape[0] = x.size // element_size(x.dtype)
    elif stage.kind == StageKind.BUILTIN:
        plan_result(stage.number, x, size)


@fn
def pipeline_plan(kernel: Kernel, pipe: u32, input: Tensor) -> tuple[Status, u32]:
    """The exact bytes that a job with such an input takes: of its frame if the pipeline is planned, else of the arena.

    The second result counts descriptors and padding as the arena does from a multiple of 16.
    Returns OK; INVAL for a bad pipeline; PERM if it is not built; NOENT if its model is gone.
    """
    pipeline = kernel.pipelines.find(pipe)
    if pipeline is None:
        return Status.INVAL, 0
    if pipeline.state != PipelineState.BUILT:
        return Status.PERM, 0
    model = kernel.models.find(pipeline.stages[pipeline.model].number)
    if model is None:
        return Status.NOENT, 0
    x = local(Tensor)
    copy(x, input)
    total: u64 = 0
    before: u64 = 0
    largest: u64 = 0
    for i in range(pipeline.count):
        stage = pipeline.stages[i]
        size: u32 = 0
        if stage.kind == StageKind.MODEL:
            size = model_buffer(model)
        else:
            size = stage_capacity(kernel, pipeline, i, x)
        room = (u64(size) + 15) & ~u64(15)
        total = ((total + 15) & ~u64(15)) + HEADER + size
        largest = max(largest, before + room)
        before = room
        plan_after(stage, model, x, size)
    if pipeline.planned:
        return Status.OK, sat(u32, largest)
    return Status.OK, sat(u32, total)
