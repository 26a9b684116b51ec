"""Pipelines: named chains of stages, `pre* model post*`, in a fixed pool.

    FREE -> OPEN (create) -> BUILT (build) -> FREE (destroy); DYING while a job still runs through a destroyed one

A built pipeline does not change and serves any number of jobs. Handles are made as those of models. Configurations
are copied into the pipeline when a stage is added, unless they lie in the app's tables.
"""

from synapticos.lang import *
from synapticos.kernel.capacity import (
    HANDLERS, PIPELINE_CONFIG_BYTES, MAX_PIPELINES, MAX_PIPELINE_STAGES, WATCHDOG_US, WATCHDOGS,
)  # fmt: skip
from synapticos.kernel.job import Fault
from synapticos.kernel.region import REGION_NONE
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import MAX_STAGE_INPUTS

PIPELINE_NAME = param(u32, 24, min=8, max=24)  # bytes of a name; the last is 0
NO_MODEL: Final[u32] = 0xFF
MIN_BUFFER: Final[u32] = 64  # bytes that a stage gets at least
LARGEST: Final[u32] = 0xFFFFFFFF

# What `pipeline_add_preprocess` and `pipeline_add_postprocess` take: one of these and an index. 0 is no stage.
BUILTIN_STAGE: Final[u32] = 0x1000  # + number in stages.tables
APP_STAGE: Final[u32] = 0x2000  # + index in APP_STAGES
HOST_STAGE: Final[u32] = 0x3000  # + a number that only the host knows
STAGE_NUMBERS: Final[u32] = 0x1000  # of each kind


class PipelineState(u8, Enum):
    FREE = 0
    OPEN = 1
    BUILT = 2
    DYING = 3


class StageKind(u8, Enum):
    NONE = 0
    MODEL = 1
    BUILTIN = 2
    APP = 3
    HOST = 4
    PART = 5  # begins one of several inputs


@struct
class Stage:
    number: u32  # of the function, from 0; a model's handle
    config_at: u32  # in its region, or in the pipeline's copies
    capacity: u32  # bytes that its output gets; 0: by the published rule
    state_at: u32  # in the arena
    state_bytes: u32  # kept from run to run; 0: none
    watchdog_us: Shaped[Array[u32], WATCHDOGS]  # how long it, or rows of its model's layer, may take; 0: any time
    config_bytes: u16
    config_region: u8  # REGION_NONE: the pipeline's copies
    kind: StageKind
    binds: u8  # inputs that `bind` chooses; 0: all of the step before, in order
    reserved: Shaped[Array[u8], 3]
    bind: Shaped[Array[u8], MAX_STAGE_INPUTS]  # which output of the step before


@struct
class Handled:
    """What became of a pipeline's handler since boot."""

    runs: u32
    errors: u32  # of these: it said so, or did not return
    status: Status  # of the last error
    fault: Fault  # the last one


@struct
class Pipeline:
    generation: u32
    estimate: u32  # bytes, the published formula
    plan: u32  # bytes of a frame, if planned
    result: u32  # bytes of its result, if planned
    sink: u32  # callback for jobs that bring none; 0: none
    deadline_us: u32  # of jobs submitted without parameters; 0: none
    cost_us: u32  # what a job takes at most, for Late.SKIP; 0: not known
    misses: u32  # jobs that missed their deadline
    jobs: u32  # unfinished ones
    config_used: u32
    name: Shaped[Array[u8], PIPELINE_NAME]
    state: PipelineState
    count: u8  # stages
    model: u8  # which stage is the model; NO_MODEL: none yet
    planned: bool  # runs in its class's frame, buffers at fixed places
    priority: u8  # of jobs submitted without parameters
    preemptible: bool  # likewise
    late: u8  # likewise, a Late
    flags: u8  # likewise, of JobParams
    feed: u8  # + 1: where its results go; 0: to whoever reads them
    cascades: bool  # its boxes release other jobs
    handles: bool  # a handler stands behind its last stage
    reserved_end: u8
    handled: Shaped[Array[Handled], HANDLERS]
    stages: Shaped[Array[Stage], MAX_PIPELINE_STAGES]  # a handler behind the last of its `count`
    config: Shaped[Array[u8], PIPELINE_CONFIG_BYTES]


@struct
class Pipelines:
    items: Shaped[Array[Pipeline], MAX_PIPELINES]

    @fn
    def find(self, handle: u32) -> Pipeline | None:
        """The pipeline of a handle, or None: never given, destroyed, or dying."""
        slot = handle & 0xFF
        if slot == 0 or slot > MAX_PIPELINES:
            return None
        pipeline = self.items[slot - 1]
        if pipeline.state != PipelineState.OPEN and pipeline.state != PipelineState.BUILT:
            return None
        if pipeline.generation != handle >> 8:
            return None
        return pipeline

    @fn
    def create(self, name: Ptr[u8] | None) -> u32:
        """Take a slot: a handle, or 0 when all are in use. `name` ends with a 0 and is cut to 23 bytes."""
        for i in range(MAX_PIPELINES):
            pipeline = self.items[i]
            if pipeline.state == PipelineState.FREE:
                pipeline_clear(pipeline)
                pipeline_name(pipeline, name)
                pipeline.state = PipelineState.OPEN
                return pipeline.generation << 8 | (i + 1)
        return 0

    @fn
    def free(self, pipeline: Pipeline) -> None:
        """The slot is free; its handle was good until now, or until the pipeline began to die."""
        pipeline.state = PipelineState.FREE


UNNAMED = rom(b"unnamed")


@fn
def pipeline_name(pipeline: Pipeline, name: Ptr[u8] | None) -> None:
    fill(pipeline.name, 0, PIPELINE_NAME)
    if name is None:
        for i in range(7):
            pipeline.name[i] = UNNAMED[i]
        return
    at: u32 = 0
    while at < PIPELINE_NAME - 1 and name[at] != 0:
        pipeline.name[at] = name[at]
        at += 1


@fn
def pipeline_clear(pipeline: Pipeline) -> None:
    """Everything but the generation and the state as in a new pipeline."""
    pipeline.estimate = 0
    pipeline.plan = 0
    pipeline.result = 0
    pipeline.sink = 0
    pipeline.deadline_us = 0
    pipeline.cost_us = 0
    pipeline.misses = 0
    pipeline.jobs = 0
    pipeline.config_used = 0
    pipeline.count = 0
    pipeline.model = NO_MODEL
    pipeline.planned = False
    pipeline.priority = 1
    pipeline.preemptible = False
    pipeline.late = 0
    pipeline.flags = 0
    pipeline.feed = 0
    pipeline.cascades = False
    if HANDLERS != 0:
        pipeline.handles = False
        for handled in pipeline.handled:
            fill(view(u8, handled), 0, sizeof(Handled))
    fill(pipeline.name, 0, PIPELINE_NAME)
    fill(pipeline.config, 0, PIPELINE_CONFIG_BYTES)


@fn
def pipeline_append(pipeline: Pipeline, kind: StageKind, number: u32) -> Stage | None:
    """One more stage without configuration, or None if the table is full."""
    if pipeline.count >= MAX_PIPELINE_STAGES:
        return None
    stage = pipeline.stages[pipeline.count]
    stage.number = number
    stage.config_at = 0
    stage.capacity = 0
    stage.state_at = 0
    stage.state_bytes = 0
    for i in range(WATCHDOGS):
        stage.watchdog_us[i] = WATCHDOG_US
    stage.config_bytes = 0
    stage.config_region = REGION_NONE
    stage.kind = kind
    stage.binds = 0
    fill(stage.reserved, 0, 3)
    fill(stage.bind, 0, MAX_STAGE_INPUTS)
    if kind == StageKind.MODEL:
        pipeline.model = pipeline.count
    pipeline.count += 1
    return stage


@fn
def pipeline_keep_config(pipeline: Pipeline, stage: Stage, config: Ptr[u8], n: u32) -> Status:
    """Copy a stage's configuration.

    Returns OK; NOMEM if the pipeline has no room for it.
    """
    if n > PIPELINE_CONFIG_BYTES - pipeline.config_used:
        return Status.NOMEM
    at = pipeline.config_used
    for i in range(n):
        pipeline.config[at + i] = config[i]
    stage.config_at = at
    stage.config_bytes = u16(n)
    pipeline.config_used = min(PIPELINE_CONFIG_BYTES, at + ((n + 3) & ~u32(3)))
    return Status.OK


@fn
def pipeline_estimate(pipeline: Pipeline, input_size: u32, output_size: u32, sram: u32) -> u32:
    """The published estimate of what a job takes, in bytes (the largest u32 if it is more).

    sram, and for each stage the size that it leaves: max(4 * before, 64, input_size) before the model, output_size
    for the model, max(4 * before, 64) after it; the first one's `before` is input_size.
    """
    total: u64 = sram
    size: u64 = input_size
    for i in range(pipeline.count):
        if i == pipeline.model:
            size = output_size
        elif i < pipeline.model:
            size = max(max(size * 4, MIN_BUFFER), u64(input_size))
        else:
            size = max(size * 4, MIN_BUFFER)
        total += size
    return sat(u32, total)
