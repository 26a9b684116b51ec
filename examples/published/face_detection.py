"""face_detection: thirty frames with a bright block, a pipeline built at run time, boxes decoded and suppressed. The
published system's second sample.

    python -m examples.published face_detection                       on this machine
    python -m examples.published face_detection --board lm3s6965evb   as firmware in QEMU

The accelerator is the deterministic stub, so which cell wins depends on the sum of the bytes that reach it, not on
where the block is.
"""

from examples.published.hello_inference import copy_text
from synapticos.kernel.compose import pipeline_add_model, pipeline_add_preprocess, pipeline_build, pipeline_create
from synapticos.kernel.job import REALTIME, JobParams
from synapticos.kernel.kernel import Kernel, kernel_boot, kernel_time
from synapticos.kernel.memory import MemStats, mem_data, mem_get_stats, mem_reset_ephemeral, mem_tensor_init
from synapticos.kernel.model import ModelInfo
from synapticos.kernel.models import model_load, model_register
from synapticos.kernel.npu import npu_load_model
from synapticos.kernel.pipeline import BUILTIN_STAGE
from synapticos.kernel.runtime import kernel_init, prof_print_summary
from synapticos.kernel.sched import infer_get_result, infer_post, infer_wait
from synapticos.kernel.stages.nms import NmsConfig, nms
from synapticos.kernel.stages.normalize import NormalizeConfig
from synapticos.kernel.stages.operands import Quantization, describe
from synapticos.kernel.stages.resize import ResizeConfig
from synapticos.kernel.stages.tables import KIND_NORMALIZE, KIND_QUANTIZE, KIND_RESIZE
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import DType, Tensor
from synapticos.lang import (
    Array,
    Final,
    Ptr,
    Shaped,
    check,
    console,
    div_u64,
    f32,
    fn,
    i8,
    i32,
    local,
    rom,
    static,
    struct,
    u8,
    u32,
    view,
)

FRAMES: Final[u32] = 30
SIDE: Final[u32] = 24  # of a frame, pixels
FRAME_BYTES: Final[u32] = 1728
SMALL: Final[u32] = 12  # what the model sees
COLUMNS: Final[u32] = 5  # the model's grid: 5 columns of 4 pixels, 2 rows of 12
CELL_WIDTH: Final[u32] = 4
CELL_HEIGHT: Final[u32] = 12
CELLS: Final[u32] = 10
BLOCK: Final[u32] = 8
MOST_BOXES: Final[u32] = 4
WAIT_MS: Final[u32] = 1000
ARENA_BYTES: Final[u32] = 8192
SCRATCH_BYTES: Final[u32] = 1024
PROCESSORS = {"resize", "normalize", "quantize"}  # the built-in stages that its firmware carries

FACE_NAME = rom(b"face_detect")
FACE_VERSION = rom(b"1.0.0")
FACE_PAYLOAD = rom(u8, [0] * 64)
PIPELINE = rom(b"face_pipeline")


@struct
class FaceOutcome:
    """What came out, for whoever calls the sample as a function."""

    frames: u32
    detections: u32
    estimate: u32
    peak: u32
    used: u32
    allocs: u32
    resets: u32
    winners: Shaped[Array[u8], 30]  # the cell that won, frame by frame
    reserved: Shaped[Array[u8], 2]


@fn
def draw_frame(frame: Ptr[u8], n: u32) -> None:
    """Frame `n`: a soft pattern, and a block of 100 at cell n mod 10, cut off at the edge."""
    for y in range(SIDE):
        for x in range(SIDE):
            for c in range(3):
                frame[(y * SIDE + x) * 3 + c] = u8((x + y + c) % 64)
    left = n % CELLS % COLUMNS * CELL_WIDTH
    top = n % CELLS // COLUMNS * CELL_HEIGHT
    for y in range(top, min(top + BLOCK, SIDE)):
        for x in range(left, min(left + BLOCK, SIDE)):
            for c in range(3):
                frame[(y * SIDE + x) * 3 + c] = 100


@fn
def build_pipeline(kernel: Kernel, model: u32) -> tuple[Status, u32]:
    """resize, normalize, quantize, model: the second result is the pipeline's handle."""
    pipe = pipeline_create(kernel, PIPELINE)
    if pipe == 0:
        return Status.NOMEM, 0
    size = local(ResizeConfig)
    size.w = 12
    size.h = 12
    check(pipeline_add_preprocess(kernel, pipe, BUILTIN_STAGE + KIND_RESIZE, view(u8, size), 0))
    range_of = local(NormalizeConfig)
    range_of.channels = 3
    for c in range(3):
        range_of.mean[c] = 127.5
        range_of.std[c] = 127.5
    check(pipeline_add_preprocess(kernel, pipe, BUILTIN_STAGE + KIND_NORMALIZE, view(u8, range_of), 0))
    steps = local(Quantization)
    steps.scale = 1.0 / 127.0
    steps.zero_point = 0
    check(pipeline_add_preprocess(kernel, pipe, BUILTIN_STAGE + KIND_QUANTIZE, view(u8, steps), 0))
    check(pipeline_add_model(kernel, pipe, model))
    check(pipeline_build(kernel, pipe))
    return Status.OK, pipe


@fn
def detect(scores: Ptr[i8], kept: Ptr[f32]) -> tuple[Status, u32]:
    """Boxes of the cells with a score, the overlapping ones suppressed: the second result is how many are in `kept`."""
    boxes = local(f32, 60)
    n: u32 = 0
    for i in range(CELLS):
        if scores[i] > 0:
            x1 = i % COLUMNS * CELL_WIDTH
            y1 = i // COLUMNS * CELL_HEIGHT
            boxes[n * 6] = f32(x1)
            boxes[n * 6 + 1] = f32(y1)
            boxes[n * 6 + 2] = f32(x1 + CELL_WIDTH)
            boxes[n * 6 + 3] = f32(y1 + CELL_HEIGHT)
            boxes[n * 6 + 4] = f32(scores[i]) / 127.0
            boxes[n * 6 + 5] = 0.0
            n += 1
    if n == 0:
        return Status.OK, 0
    x = local(Tensor)
    describe(x, DType.FLOAT32, n * 24, 2, n, 6, 0, 0)
    y = local(Tensor)
    y.size = MOST_BOXES * 24
    config = local(NmsConfig)
    config.iou_threshold = 0.5
    config.score_threshold = 0.3
    config.max_boxes = 4
    check(nms(x, view(u8, boxes), y, view(u8, kept), config))
    return Status.OK, y.shape[0]


@fn
def face_detection(kernel: Kernel, memory: Ptr[u8], size: u32, frame: Ptr[u8], out: FaceOutcome) -> Status:
    """The sample, in a kernel that has been booted; `frame` has room for one frame and begins at a multiple of 16."""
    check(kernel_init(kernel, memory, size, SCRATCH_BYTES))
    check(npu_load_model(kernel, FACE_PAYLOAD, 64))
    info = local(ModelInfo)
    copy_text(info.name, FACE_NAME, 11)
    copy_text(info.version, FACE_VERSION, 5)
    info.input_size = 432
    info.output_size = CELLS
    info.sram_required = 4096
    handle = check(model_register(kernel, info))
    check(model_load(kernel, handle))
    pipe = check(build_pipeline(kernel, handle))
    out.estimate = kernel.pipelines.items[0].estimate

    shape = local(u32, 4)
    shape[0] = 1
    shape[1] = SIDE
    shape[2] = SIDE
    shape[3] = 3
    input = local(Tensor)
    check(mem_tensor_init(input, shape, 4, u32(DType.UINT8)))
    params = local(JobParams)
    params.priority = u8(REALTIME)
    kept = local(f32, 24)
    result = local(Tensor)
    out.frames = 0
    out.detections = 0
    for n in range(30):
        draw_frame(frame, n)
        job = check(infer_post(kernel, pipe, input, frame, None, 0, params))
        check(infer_wait(kernel, job, WAIT_MS))
        check(infer_get_result(kernel, job, result))
        bytes = mem_data(kernel, result)
        if bytes is None:
            return Status.INVAL
        count = check(detect(view(i8, bytes), kept))
        out.frames += 1
        out.detections += count
        out.winners[n] = 255
        if count != 0:
            column = u32(kept[0]) // CELL_WIDTH
            row = u32(kept[1]) // CELL_HEIGHT
            out.winners[n] = u8(row * COLUMNS + column)
        mem_reset_ephemeral(kernel)
    stats = local(MemStats)
    check(mem_get_stats(kernel, stats))
    out.peak = stats.arena_peak
    out.used = stats.arena_used
    out.allocs = stats.alloc_count
    out.resets = stats.reset_count
    return Status.OK


KERNEL = static(Kernel)
ARENA = static(u8, 8192, align=16)
FRAME = static(u8, 1728, align=16)


@fn
def main() -> i32:
    out = local(FaceOutcome)
    kernel_boot(KERNEL, 0)
    start = kernel_time(KERNEL)
    status = face_detection(KERNEL, ARENA, ARENA_BYTES, FRAME, out)
    if status != Status.OK:
        code = i32(status)
        console.print(f"face_detection failed: {code}")
        return 1
    end = kernel_time(KERNEL)
    average = max(div_u64(end - start, 30), 1)
    tenths = div_u64(10000000, average)
    whole = div_u64(tenths, 10)
    tenth = tenths - whole * 10
    console.print(f"frames {out.frames}, detections {out.detections}")
    console.print(f"average {average} us, {whole}.{tenth} FPS")
    prof_print_summary(KERNEL)
    console.print(f"arena peak {out.peak} bytes, in use {out.used}; {out.allocs} allocations, {out.resets} resets")
    return 0
