"""App tables: an app as read-only data, and the boot that turns it into models, pipelines, releases and frames.

One region, offsets from its start: a header, then rows of models, pipelines, stages, jobs, sources and binds. Boot goes
through the calls that a C program would make, then lays out the arena:

    models' persistent bytes | sources' entries | stages' states | cascades' boxes | a result buffer for each job slot | a frame for each class | free | scratch

A class's frame is as large as its largest pipeline, and a pipeline needs the largest sum of two neighbouring buffers,
each rounded up to 16. Boot works this out itself and compares it with what the planner wrote.
"""

from synapticos.lang import *
from synapticos.kernel.arena import align_up, shape_bytes
from synapticos.kernel.bits import bit
from synapticos.kernel.capacity import (
    DEADLINES, FEED_ENTRIES, FEEDS, FRONT_ENDS, HANDLERS, HOST_STAGES, JOINS, LATE_POLICIES, MAX_JOBS, MAX_PIPELINES, MAX_WAITING,
    PARTS, PLAIN_STAGES, RELEASES, WATCHDOGS,
)  # fmt: skip
from synapticos.kernel.compose import model_buffer, pipeline_build, pipeline_create, stage_kind
from synapticos.kernel.container import MAGIC, Header
from synapticos.kernel.due import releases_start
from synapticos.kernel.front_end import check_front_end
from synapticos.kernel.job import CLASSES, NORMAL, Late
from synapticos.kernel.kernel import Kernel
from synapticos.kernel.model import NAME_BYTES, ModelInfo, ModelState
from synapticos.kernel.models import load_payload, model_register, model_set_payload
from synapticos.kernel.parts import PART_BYTES, has_parts, parts_plan
from synapticos.kernel.pipeline import (
    APP_STAGE, BUILTIN_STAGE, HOST_STAGE, NO_MODEL, STAGE_NUMBERS, Pipeline, Stage, StageKind, pipeline_append,
)  # fmt: skip
from synapticos.kernel.region import REGION_ARENA, REGION_CONTAINERS, REGION_TABLES
from synapticos.kernel.release import BOX_STRIDE, Queue, Release
from synapticos.kernel.run import clear_state
from synapticos.kernel.sched import CALLBACKS, sched_quiesce, sched_release
from synapticos.kernel.stages.tables import check_config
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import MAX_DIMS, STAGE_INPUTS, DType, Lifetime

APP_MAGIC: Final[u32] = 0x31505041  # "APP1"
APP_VERSION: Final[u32] = 2

ROW_MODEL: Final[u32] = 1  # a stage row's kinds
ROW_BUILTIN: Final[u32] = 2
ROW_APP: Final[u32] = 3
ROW_HOST: Final[u32] = 4
ROW_PART: Final[u32] = 5

JOB_PREEMPTIBLE: Final[u32] = 1  # a job row's flags
JOB_BY_SOURCE: Final[u32] = 2  # what arrives in its pipeline's source releases it
JOB_DISABLED: Final[u32] = 4  # no release until it is enabled


@struct
class FrameRow:
    at: u32  # in the arena
    bytes: u32


@struct
class AppHeader:
    """88 bytes. All offsets are multiples of 4, `jobs_at` of 8."""

    magic: u32
    version: u16
    models: u16
    pipelines: u16
    stages: u16
    jobs: u16
    binds: u16
    sources: u16  # that keep what arrives
    reserved: u16
    models_at: u32
    pipelines_at: u32
    stages_at: u32
    jobs_at: u32
    binds_at: u32
    sources_at: u32
    result_bytes: u32  # of each job slot's result buffer; 0: results stay in their frame
    frames: Shaped[Array[FrameRow], CLASSES]  # as planned; all 0: not planned by the host
    persistent_bytes: u32  # of all models
    arena_bytes: u32  # scratch included; for the reader
    scratch_bytes: u32
    watchdogs_at: u32  # a u32 for each stage: microseconds that it may take, 0 for any; 0: the build says it for all


@struct
class ModelRow:
    container_at: u32  # in the containers' region, a multiple of 16
    container_bytes: u32
    policy_at: u32  # 0: none
    backend: u16
    flags: u16


@struct
class PipelineRow:
    first_stage: u16
    stages: u16
    source: u16  # + 1, if that keeps what arrives; 0: its jobs bring their input
    sink: u16  # callback that its jobs end in, from 1; 0: none
    result: u32  # bytes of its result at most
    name_at: u32  # text that ends with a 0; 0: none
    feed: u16  # source + 1 that its result goes to, after its own; 0: none
    handlers: u16  # 1: a stage row behind its own is its handler's; its sink is `handle_result`


@struct
class SourceRow:
    """Entries, each an input of the pipelines that read this source; cut from what is pushed, one each `hop` bytes."""

    bytes: u32  # of an entry: of this type and shape
    hop: u32
    period_us: u32  # nominal, from one entry to the next; 0: not known
    shape: Shaped[Array[u32], MAX_DIMS]
    dtype: u8
    ndim: u8
    keep: u8  # entries; 2 or more if they overlap
    reserved: u8
    name_at: u32  # text that ends with a 0; 0: none


@struct
class StageRow:
    kind: u16  # ROW_MODEL, ROW_BUILTIN, ROW_APP, ROW_HOST or ROW_PART
    number: u16  # of the model row, the built-in, the app's or the host's stage; of a part 0
    first_bind: u16
    binds: u16  # 0: all outputs of the step before, in order
    config_at: u32
    config_bytes: u16
    rows: u16  # of the result at most; for the reader
    capacity: u32  # bytes of the result at most; not of a model
    state_bytes: u32  # that the stage keeps from run to run; 0: none


@struct
class JobRow:
    pipeline: u16
    priority: u8
    flags: u8
    late: u8  # a Late
    policy: u8  # a Queue
    depth: u8  # releases that may wait; from 1, if anything releases it
    most: u8  # boxes of one result that it looks at
    deadline_us: u64  # 0: none
    period_us: u64  # 0: not by the clock
    phase_us: u32  # of the first release by the clock
    jitter_us: u32  # by which its releases may be late; for the reader
    cost_us: u32  # what a job takes at most; 0: not known
    parent: u16  # pipeline + 1 whose boxes release it; 0: none
    join: u16  # + 1, in the binds: how many sources it reads, then their numbers in the order of its input; 0: one, or none


HEADER_BYTES_APP = sizeof(AppHeader)
MODEL_ROW = sizeof(ModelRow)
PIPELINE_ROW = sizeof(PipelineRow)
STAGE_ROW = sizeof(StageRow)
JOB_ROW = sizeof(JobRow)
SOURCE_ROW = sizeof(SourceRow)


def frame_bytes(sizes: list[int]) -> int:
    """For the planner on the host: bytes of a frame for a pipeline whose steps leave `sizes` bytes, a model its frame."""
    rooms = [0, *(-(-n // 16) * 16 for n in sizes)]
    return max(a + b for a, b in zip(rooms, rooms[1:], strict=False)) if sizes else 0


@fn
def table_rows(kernel: Kernel, at: u32, count: u32, size: u32, align: u32) -> Ptr[u8] | None:
    """`count` rows of `size` bytes of the tables, or None if they do not lie inside or not at a multiple of `align`."""
    if at % align != 0 or count > 0xFFFF:
        return None
    return kernel.regions.get(REGION_TABLES, at, count * size)


@fn
def boot_models(kernel: Kernel, header: AppHeader) -> Status:
    """Register and load the app's models, in the order of their rows: model row i gets slot i."""
    rows = table_rows(kernel, header.models_at, header.models, MODEL_ROW, 4)
    if rows is None:
        return Status.INVAL
    for i in range(u32(header.models)):
        row = view(ModelRow, rows[i * MODEL_ROW :])
        handle = check(register_row(kernel, row, i))
        if handle & 0xFF != i + 1:
            return Status.EXIST
        check(model_set_payload(kernel, handle, REGION_CONTAINERS, row.container_at, row.container_bytes, row.backend))
        # No job is there to wait for, and the tables state no checksum but the container's own.
        model = kernel.models.items[i]
        status = load_payload(kernel, model, handle)
        if status != Status.OK:
            log.error(kernel.log, f"model {i} of the app: {i32(status)}")
            return status
        model.state = ModelState.LOADED
    return Status.OK


@fn
def register_row(kernel: Kernel, row: ModelRow, number: u32) -> tuple[Status, u32]:
    """Register a model under its container's name; what is no container is called model0, model1..."""
    info = local(ModelInfo)
    data = kernel.regions.get(REGION_CONTAINERS, row.container_at, row.container_bytes)
    if data is None or row.container_bytes == 0 or row.container_at % 16 != 0:
        return refuse(kernel.note, Status.INVAL, f"model {number} of the app lies outside the containers"), 0
    if row.container_bytes >= sizeof(Header):
        header = view(Header, data)
        if header.magic == MAGIC:
            for i in range(NAME_BYTES):
                info.name[i] = header.name[i]
    if info.name[0] == 0:
        for i in range(5):
            info.name[i] = MODEL_NAME[i]
        at: u32 = 5
        if number >= 10:
            info.name[at] = u8(48 + number // 10)
            at += 1
        info.name[at] = u8(48 + number % 10)
    info.flash_size = row.container_bytes
    status, handle = model_register(kernel, info)
    return status, handle


MODEL_NAME = rom(b"model")


@fn
def boot_stage(kernel: Kernel, header: AppHeader, pipeline: Pipeline, row: StageRow) -> Status:
    """Append one stage of the app to a pipeline. Its configuration stays in the tables."""
    kind = StageKind.NONE
    number = u32(row.number)
    if number >= STAGE_NUMBERS:
        return Status.INVAL
    match row.kind:
        case 1:
            kind = StageKind.MODEL
            if number >= header.models:
                return Status.INVAL
            number = kernel.models.items[number].generation << 8 | (number + 1)
        case 2:
            kind = stage_kind(BUILTIN_STAGE + number)
        case 3:
            kind = stage_kind(APP_STAGE + number)
        case 4:
            kind = stage_kind(HOST_STAGE + number)
        case 5:
            if PARTS != 0 and row.config_bytes == PART_BYTES:
                kind = StageKind.PART
        case _:
            return Status.INVAL
    if (PLAIN_STAGES == 0 and kind != StageKind.MODEL) or (HOST_STAGES == 0 and kind == StageKind.HOST):
        kind = StageKind.NONE
    if kind == StageKind.NONE or row.binds > STAGE_INPUTS or row.config_at % 4 != 0:
        return refuse(kernel.note, Status.INVAL, f"the app has a stage of kind {row.kind} and number {number}, which this build has not")
    if kind == StageKind.MODEL and pipeline.model != NO_MODEL:
        return Status.ALREADY
    if PLAIN_STAGES != 0 and kind != StageKind.MODEL and kind != StageKind.PART and row.capacity == 0:
        return Status.INVAL
    config = kernel.regions.get(REGION_TABLES, row.config_at, row.config_bytes)
    if config is None:
        return Status.INVAL
    if PLAIN_STAGES != 0 and kind == StageKind.BUILTIN:
        if row.config_bytes == 0:
            check(check_config(number, None, 0))
        else:
            check(check_config(number, config, row.config_bytes))
    stage = pipeline_append(pipeline, kind, number)
    if stage is None:
        return Status.NOMEM
    if PARTS != 0 and kind == StageKind.PART:
        if pipeline.model != NO_MODEL or not has_parts(pipeline):
            return Status.INVAL
    stage.config_region = u8(REGION_TABLES)
    stage.config_at = row.config_at
    stage.config_bytes = row.config_bytes
    stage.capacity = row.capacity
    if PLAIN_STAGES != 0 and row.state_bytes != 0 and kind != StageKind.MODEL:
        at = check(kernel.arena.block(row.state_bytes, Lifetime.PERSISTENT))
        stage.state_at = at
        stage.state_bytes = row.state_bytes
        clear_state(kernel, stage)
    return bind_stage(kernel, header, stage, row)


@fn
def app_clear_state(kernel: Kernel, pipe: u32) -> Status:
    """Let the stages of a pipeline forget what they keep from run to run. Waits for half-done jobs.

    Returns OK; INVAL for a bad pipeline; BUSY as `model_load`. Models forget by `model_clear_state`.
    """
    pipeline = kernel.pipelines.find(pipe)
    if pipeline is None:
        return Status.INVAL
    check(sched_quiesce(kernel))
    for i in range(pipeline.count):
        stage = pipeline.stages[i]
        if stage.state_bytes != 0:
            clear_state(kernel, stage)
    sched_release(kernel)
    return Status.OK


@fn
def bind_stage(kernel: Kernel, header: AppHeader, stage: Stage, row: StageRow) -> Status:
    """Which outputs of the step before a stage takes."""
    if PLAIN_STAGES == 0:
        if row.binds != 0:
            return Status.INVAL
        return Status.OK
    if u32(row.first_bind) + row.binds > header.binds:
        return Status.INVAL
    bytes = table_rows(kernel, header.binds_at, header.binds, 2, 4)
    if bytes is None:
        return Status.INVAL
    binds = view(u16, bytes)
    for i in range(u32(row.binds)):
        bind = binds[row.first_bind + i]
        if bind >= STAGE_INPUTS:
            return Status.INVAL
        stage.bind[i] = u8(bind)
    stage.binds = u8(row.binds)
    return Status.OK


@fn
def plan_stages(kernel: Kernel, pipeline: Pipeline) -> Status:
    """`plan_pipeline` for one without a model, whose result goes to a feed."""
    before: u64 = 0
    largest: u64 = 0
    for i in range(pipeline.count):
        room = (u64(pipeline.stages[i].capacity) + 15) & ~u64(15)
        largest = max(largest, before + room)
        before = room
    if pipeline.count == 0 or largest > kernel.arena.size:
        return Status.INVAL
    pipeline.plan = u32(largest)
    return Status.OK


@fn
def plan_pipeline(kernel: Kernel, pipeline: Pipeline) -> Status:
    """Bytes of a frame for this pipeline: the largest sum of two neighbouring buffers."""
    if FEEDS != 0 and pipeline.model == NO_MODEL:
        if PARTS != 0 and pipeline.count != 0 and has_parts(pipeline):
            return Status.INVAL  # there is no block that they could be parts of
        return plan_stages(kernel, pipeline)
    model = kernel.models.find(pipeline.stages[pipeline.model].number)
    if model is None:
        return Status.NOENT
    before: u64 = 0
    largest: u64 = 0
    for i in range(pipeline.count):
        stage = pipeline.stages[i]
        if stage.kind == StageKind.MODEL:
            stage.capacity = model_buffer(model)
        elif PLAIN_STAGES != 0 and i + 1 == pipeline.model and not (PARTS != 0 and has_parts(pipeline)):
            stage.capacity = max(stage.capacity, model.info.input_size)
        room = (u64(stage.capacity) + 15) & ~u64(15)
        largest = max(largest, before + room)
        before = room
    if PARTS != 0 and has_parts(pipeline):
        frame = model_buffer(model)
        largest = check(parts_plan(kernel, pipeline, frame))
    if FRONT_ENDS != 0:
        check(check_front_end(kernel, pipeline))
    if largest > kernel.arena.size:
        return refuse(kernel.note, Status.NOMEM, f"a pipeline of the app needs {largest} bytes of the arena's {kernel.arena.size}")
    pipeline.plan = u32(largest)
    return Status.OK


@fn
def boot_watchdogs(kernel: Kernel, header: AppHeader, pipeline: Pipeline, first: u32) -> Status:
    """How long the pipeline's stages may take, of which `first` is the number of the first. Returns OK; INVAL."""
    bytes = table_rows(kernel, header.watchdogs_at, header.stages, 4, 4)
    if bytes is None:
        return Status.INVAL
    limits = view(u32, bytes)
    count = u32(pipeline.count)
    if HANDLERS != 0 and pipeline.handles:
        count += 1
    for k in range(count):
        for i in range(WATCHDOGS):
            pipeline.stages[k].watchdog_us[i] = limits[first + k]
    return Status.OK


@fn
def boot_handler(kernel: Kernel, header: AppHeader, pipeline: Pipeline, row: StageRow) -> Status:
    """The function that gets a pipeline's results stands behind its last stage. Of its row `binds` are the outputs that it
    takes, 0 is none, and `capacity` what it wants of a JobInfo. Returns what `boot_stage` does; INVAL if it is no stage of the app."""
    if row.kind != ROW_APP:
        return Status.INVAL
    check(boot_stage(kernel, header, pipeline, row))
    pipeline.count -= 1
    pipeline.handles = True
    return Status.OK


@fn
def boot_pipelines(kernel: Kernel, header: AppHeader) -> Status:
    """Create, fill and build the app's pipelines: pipeline row i gets slot i."""
    rows = table_rows(kernel, header.pipelines_at, header.pipelines, PIPELINE_ROW, 4)
    stages = table_rows(kernel, header.stages_at, header.stages, STAGE_ROW, 4)
    if rows is None or stages is None:
        return Status.INVAL
    for i in range(u32(header.pipelines)):
        row = view(PipelineRow, rows[i * PIPELINE_ROW :])
        if u32(row.first_stage) + row.stages > header.stages or row.sink > len(CALLBACKS) or row.result > header.result_bytes:
            return Status.INVAL
        handle = pipeline_create(kernel, None)
        pipeline = kernel.pipelines.find(handle)
        if pipeline is None or handle & 0xFF != i + 1:
            return refuse(kernel.note, Status.NOMEM, f"the app has {header.pipelines} pipelines; the build has room for {MAX_PIPELINES}")
        for k in range(u32(row.stages)):
            stage = view(StageRow, stages[(row.first_stage + k) * STAGE_ROW :])
            status = boot_stage(kernel, header, pipeline, stage)
            if status != Status.OK:
                log.error(kernel.log, f"pipeline {i} of the app, stage {k}: {i32(status)}")
                return status
        if HANDLERS != 0 and row.handlers != 0:
            if row.sink == 0 or u32(row.first_stage) + row.stages >= header.stages:
                return Status.INVAL
            check(boot_handler(kernel, header, pipeline, view(StageRow, stages[(row.first_stage + u32(row.stages)) * STAGE_ROW :])))
        if WATCHDOGS != 0 and header.watchdogs_at != 0:
            check(boot_watchdogs(kernel, header, pipeline, row.first_stage))
        if row.feed != 0 or row.source != 0:
            if row.feed > header.sources or row.source > header.sources or (row.feed != 0 and row.feed <= row.source) or FEEDS == 0:
                return Status.INVAL
        pipeline.feed = u8(row.feed)
        check(pipeline_build(kernel, handle))
        check(plan_pipeline(kernel, pipeline))
        pipeline.planned = True
        pipeline.result = row.result
        pipeline.sink = u32(row.sink)
        pipeline.priority = u8(NORMAL)
    return Status.OK


@fn
def boot_sources(kernel: Kernel, header: AppHeader) -> Status:
    """Give each source that keeps what arrives its entries.

    Returns OK; INVAL for a damaged row; NOMEM if the build or the arena is too small.
    """
    if header.sources == 0:
        return Status.OK
    if FEEDS == 0:
        return Status.INVAL
    if header.sources > FEEDS:
        return refuse(kernel.note, Status.NOMEM, f"the app has {header.sources} sources that keep data; the build has room for {FEEDS}")
    rows = table_rows(kernel, header.sources_at, header.sources, SOURCE_ROW, 4)
    if rows is None:
        return Status.INVAL
    for i in range(u32(header.sources)):
        row = view(SourceRow, rows[i * SOURCE_ROW :])
        if row.ndim == 0 or row.ndim > MAX_DIMS or row.dtype > u8(DType.INT32) or row.bytes == 0 or row.bytes > 0x7FFFFFFF or row.hop == 0:
            return Status.INVAL
        status, size = shape_bytes(row.shape, row.ndim, DType(row.dtype))
        if status != Status.OK or size != row.bytes or row.keep == 0 or (row.hop < row.bytes and row.keep == 1):
            return Status.INVAL
        if row.keep > FEED_ENTRIES:
            return refuse(kernel.note, Status.NOMEM, f"source {i} of the app keeps {row.keep} entries; the build has room for {FEED_ENTRIES}")
        feed = kernel.releases.feeds[i]
        feed.stride = align_up(row.bytes)
        total = u64(feed.stride) * row.keep
        left = kernel.arena.size - kernel.arena.end
        if total > left:
            return refuse(kernel.note, Status.NOMEM, f"source {i} of the app keeps {total} bytes; the arena has {left} left")
        at = check(kernel.arena.block(u32(total), Lifetime.PERSISTENT))
        feed.at = at
        feed.bytes = row.bytes
        feed.hop = row.hop
        feed.period_us = row.period_us
        feed.keep = row.keep
    kernel.releases.feed_count = u32(header.sources)
    return Status.OK


@fn
def boot_release(kernel: Kernel, header: AppHeader, row: JobRow, number: u32) -> Status:
    """What lets the jobs of row `number` begin; its pipeline is known.

    Returns OK; INVAL for a damaged row, or one without exactly one trigger; NOMEM if the build or the arena is too small.
    """
    if RELEASES == 0:
        return Status.INVAL
    if number >= RELEASES:
        return refuse(kernel.note, Status.NOMEM, f"the app has {header.jobs} jobs that something releases; the build has room for {RELEASES}")
    by_source = row.flags & JOB_BY_SOURCE != 0
    triggers: u32 = 0
    if by_source:
        triggers += 1
    if row.period_us != 0:
        triggers += 1
    if row.parent != 0:
        triggers += 1
    if triggers != 1 or row.period_us > 0xFFFFFFFF or row.policy > u8(Queue.COALESCE) or row.depth == 0 or row.parent > header.pipelines:
        return Status.INVAL
    if row.depth > MAX_WAITING:
        return refuse(kernel.note, Status.NOMEM, f"job {number} of the app lets {row.depth} wait; the build has room for {MAX_WAITING}")
    rows = table_rows(kernel, header.pipelines_at, header.pipelines, PIPELINE_ROW, 4)
    if rows is None:
        return Status.INVAL
    source = u32(view(PipelineRow, rows[row.pipeline * PIPELINE_ROW :]).source)
    releases = kernel.releases
    release = releases.items[number]
    release.x.region = u8(REGION_ARENA)  # no data, unless there is a source
    release.x.ndim = 1
    if FEEDS != 0 and source != 0:
        check(release_input(kernel, header, release, source - 1))
        if row.period_us != 0:
            releases.feeds[source - 1].by_clock = True
    elif by_source or row.parent != 0:
        return Status.INVAL
    release.period_us = u32(row.period_us)
    release.phase_us = row.phase_us
    release.jitter_us = row.jitter_us
    release.pipeline = u8(row.pipeline)
    release.feed = u8(source)
    release.policy = Queue(row.policy)
    release.depth = row.depth
    release.by_feed = by_source
    if JOINS != 0 and row.join != 0:
        check(boot_joins(kernel, header, row, release))
    elif row.join != 0:
        return Status.INVAL
    if row.parent != 0:
        check(boot_cascade(kernel, row, release, u32(view(PipelineRow, rows[(row.parent - u32(1)) * PIPELINE_ROW :]).source)))
    release.enabled = row.flags & JOB_DISABLED == 0
    if release.enabled:
        releases.wanted = releases.wanted | bit(number)
    releases.count = max(releases.count, number + 1)
    return Status.OK


@fn
def boot_joins(kernel: Kernel, header: AppHeader, row: JobRow, release: Release) -> Status:
    """A release of jobs that read several sources: a copy of an entry of each is their input.

    Returns OK; INVAL; NOMEM.
    """
    first = u32(row.join)
    bytes = table_rows(kernel, header.binds_at, header.binds, 2, 4)
    if bytes is None or row.parent != 0 or first > header.binds:
        return Status.INVAL
    binds = view(u16, bytes)
    joins = u32(binds[first - 1])
    if joins == 0 or joins > JOINS or first + joins > header.binds:
        return Status.INVAL
    releases = kernel.releases
    total: u64 = 0
    own = False
    for i in range(joins):
        number = u32(binds[first + i])
        if number >= releases.feed_count:
            return Status.INVAL
        feed = releases.feeds[number]
        release.join[i] = u8(number)
        total = (total + 15) & ~u64(15)
        total += feed.bytes
        if release.by_feed and release.feed == number + 1:
            own = True
            releases.joining = releases.joining | bit(number)
        else:
            feed.by_clock = True  # read at its newest
    if total > kernel.arena.size or release.by_feed != own:
        return Status.INVAL
    release.joins = u8(joins)
    release.stride = align_up(u32(total))
    room = u64(release.stride) * (MAX_WAITING + 1)
    if room > kernel.arena.size:
        return refuse(kernel.note, Status.NOMEM, f"the inputs of a job of several sources take {room} bytes; the arena has {kernel.arena.size}")
    at = check(kernel.arena.block(u32(room), Lifetime.PERSISTENT))
    release.boxes_at = at
    x = release.x
    x.size = u32(total)
    x.dtype = DType.UINT8
    x.ndim = 1
    for i in range(MAX_DIMS):
        x.shape[i] = 0
    x.shape[0] = u32(total)
    return Status.OK


@fn
def boot_cascade(kernel: Kernel, row: JobRow, release: Release, source: u32) -> Status:
    """A release by the boxes of a pipeline that reads source `source` (+ 1), which must be its own.

    Returns OK; INVAL; NOMEM.
    """
    if source != release.feed or row.parent == row.pipeline + u32(1) or row.most == 0 or STAGE_INPUTS < 2:
        return Status.INVAL
    at = check(kernel.arena.block((MAX_WAITING + 1) * BOX_STRIDE, Lifetime.PERSISTENT))
    release.boxes_at = at
    release.parent = u8(row.parent)
    release.most = row.most
    kernel.pipelines.items[row.parent - 1].cascades = True
    return Status.OK


@fn
def release_input(kernel: Kernel, header: AppHeader, release: Release, source: u32) -> Status:
    """The jobs of a release take entries of a source."""
    rows = table_rows(kernel, header.sources_at, header.sources, SOURCE_ROW, 4)
    if rows is None:
        return Status.INVAL
    row = view(SourceRow, rows[source * SOURCE_ROW :])
    x = release.x
    x.size = row.bytes
    x.dtype = DType(row.dtype)
    x.ndim = row.ndim
    for i in range(MAX_DIMS):
        x.shape[i] = 0
        if i < row.ndim:
            x.shape[i] = row.shape[i]
    return Status.OK


@fn
def boot_jobs(kernel: Kernel, header: AppHeader, need: Ptr[u32]) -> Status:
    """How the app's jobs run, and from that the bytes of each class's frame, in `need`."""
    rows = table_rows(kernel, header.jobs_at, header.jobs, JOB_ROW, 8)
    if rows is None:
        return Status.INVAL
    with_row = local(bool, MAX_PIPELINES)
    for i in range(u32(header.jobs)):
        row = view(JobRow, rows[i * JOB_ROW :])
        if row.pipeline >= header.pipelines or row.priority >= CLASSES or (DEADLINES == 0 and row.deadline_us != 0):
            return Status.INVAL
        if row.late > u8(Late.SKIP) or (LATE_POLICIES == 0 and row.late != 0):
            return Status.INVAL
        pipeline = kernel.pipelines.items[row.pipeline]
        if LATE_POLICIES != 0:
            pipeline.late = row.late
            pipeline.cost_us = row.cost_us
        pipeline.priority = row.priority
        pipeline.preemptible = row.flags & JOB_PREEMPTIBLE != 0
        pipeline.deadline_us = sat(u32, row.deadline_us)
        with_row[row.pipeline] = True
        if row.period_us != 0 or row.flags & JOB_BY_SOURCE != 0 or row.parent != 0:
            check(boot_release(kernel, header, row, i))
        need[row.priority] = max(need[row.priority], pipeline.plan)
    for i in range(u32(header.pipelines)):
        if not with_row[i]:
            need[NORMAL] = max(need[NORMAL], kernel.pipelines.items[i].plan)
    return Status.OK


@fn
def boot_frames(kernel: Kernel, header: AppHeader, need: Ptr[u32]) -> Status:
    """Lay out result buffers and frames, and compare with the plan.

    Returns OK; NOMEM if they do not fit; INVAL if the plan says otherwise.
    """
    arena = kernel.arena
    results = align_up(min(header.result_bytes, arena.size))
    if header.result_bytes > arena.size or results > arena.size // MAX_JOBS:
        return refuse(kernel.note, Status.NOMEM, f"{MAX_JOBS} result buffers of {header.result_bytes} bytes; the arena has {arena.size}")
    kernel.result_bytes = results
    if results != 0:
        at = check(arena.block(results * MAX_JOBS, Lifetime.PERSISTENT))
        kernel.results_at = at
    planned = False
    for i in range(CLASSES):
        if header.frames[i].bytes != 0:
            planned = True
    for i in range(CLASSES):
        frame = kernel.frames[i]
        frame.bytes = need[i]
        frame.at = 0
        if frame.bytes != 0:
            status, place = arena.block(frame.bytes, Lifetime.PERSISTENT)
            if status != Status.OK:
                left = arena.size - arena.end
                return refuse(kernel.note, Status.NOMEM, f"the frame of class {i} takes {frame.bytes} bytes; the arena has {left} left")
            frame.at = place
        row = header.frames[i]
        if planned and (row.bytes != frame.bytes or row.at != frame.at):
            return refuse(kernel.note, Status.INVAL, f"the plan has {row.bytes} bytes at {row.at} for a frame, which needs {frame.bytes} at {frame.at}")
    return Status.OK


@fn
def app_boot(kernel: Kernel) -> Status:
    """Set up the app in REGION_TABLES and REGION_CONTAINERS on a kernel that is up and empty.

    Returns OK; INVAL for damaged tables; NOTSUP for another version; NOMEM if the build or the arena is too small;
    what registering, loading and building say. After an error the kernel is to be booted again.
    """
    bytes = kernel.regions.get(REGION_TABLES, 0, HEADER_BYTES_APP)
    if bytes is None:
        return Status.INVAL
    header = view(AppHeader, bytes)
    if header.magic != APP_MAGIC:
        return Status.INVAL
    if header.version != APP_VERSION:
        return Status.NOTSUP
    if header.pipelines > MAX_PIPELINES:
        return refuse(kernel.note, Status.NOMEM, f"the app has {header.pipelines} pipelines; the build has room for {MAX_PIPELINES}")
    check(boot_models(kernel, header))
    check(boot_sources(kernel, header))
    check(boot_pipelines(kernel, header))
    need = local(u32, CLASSES)
    check(boot_jobs(kernel, header, need))
    check(boot_frames(kernel, header, need))
    if RELEASES != 0:
        check(releases_start(kernel, 0))
    return Status.OK


@fn
def app_pipeline(kernel: Kernel, number: u32) -> u32:
    """The handle of the app's pipeline `number`, or 0."""
    if number >= MAX_PIPELINES:
        return 0
    pipeline = kernel.pipelines.items[number]
    if not pipeline.planned:
        return 0
    return pipeline.generation << 8 | (number + 1)
