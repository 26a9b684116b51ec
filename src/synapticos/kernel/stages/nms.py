"""nms: of boxes that overlap, keep the best of each class.

x  f32, at most 64 boxes of {x1, y1, x2, y2, score, class_id}      y  f32 [kept, 6], best first

1. Drop boxes below the score threshold, and those that cannot be judged: inverted, a NaN anywhere, a corner not finite.
2. Walk the rest by descending score, equal scores in input order; keep a box unless its IoU with a kept one of its
   class is above the threshold. Stop at max_boxes, or where y is full: that is a shorter result, not an error.
IoU = intersection / (area + area - intersection); 0 where the boxes do not overlap or their areas are past f32.
"""

from synapticos.lang import *
from synapticos.kernel.fmath import is_finite
from synapticos.kernel.stages.operands import describe, is_whole
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import DType, StageCall, Tensor

MAX_BOXES: Final[u32] = 64
BOX_FLOATS: Final[u32] = 6
BOX_BYTES: Final[u32] = 24


@struct
class NmsConfig:
    iou_threshold: f32
    score_threshold: f32
    max_boxes: u8  # kept, not 0
    reserved: Shaped[Array[u8], 3]


NMS_CONFIG_BYTES = sizeof(NmsConfig)


@fn(pure=True)
def is_nms(config: NmsConfig) -> bool:
    """max_boxes is not 0, and the thresholds are numbers."""
    return config.max_boxes != 0 and not isnan(config.iou_threshold) and not isnan(config.score_threshold)


@fn(pure=True)
def is_candidate(box: Ptr[f32], score_threshold: f32) -> bool:
    """A box that can be judged, with a score of at least the threshold."""
    for i in range(4):
        if not is_finite(box[i]):
            return False
    if isnan(box[4]) or isnan(box[5]):
        return False
    return box[0] <= box[2] and box[1] <= box[3] and box[4] >= score_threshold


@fn(pure=True)
def box_iou(a: Ptr[f32], b: Ptr[f32]) -> f32:
    """Intersection over union of two boxes with finite corners, neither inverted. Symmetric."""
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0.0 or height <= 0.0:
        return 0.0
    # Both boxes contain the overlap, so no side is 0 and no product below is 0 times infinity.
    intersection = width * height
    areas = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1])
    if not is_finite(areas):
        return 0.0
    union_area = areas - intersection
    if union_area <= 0.0:
        return 0.0
    return intersection / union_area


@fn
def nms(x: Tensor, x_data: Ptr[u8], y: Tensor, y_data: Ptr[u8], config: NmsConfig) -> Status:
    """Returns OK; INVAL if the configuration is bad (`nms_check`), or x is not f32 of its size, in whole boxes, at most 64."""
    if not is_nms(config) or x.dtype != DType.FLOAT32 or not is_whole(x):
        return Status.INVAL
    if x.size % BOX_BYTES != 0 or x.size > MAX_BOXES * BOX_BYTES:
        return Status.INVAL
    boxes = view(f32, x_data)
    kept_boxes = view(f32, y_data)
    order = local(u8, 64)
    count: u32 = 0
    for i in range(x.size // BOX_BYTES):
        if is_candidate(boxes[i * BOX_FLOATS :], config.score_threshold):
            at = count
            while at > 0 and boxes[i * BOX_FLOATS + 4] > boxes[u32(order[at - 1]) * BOX_FLOATS + 4]:
                order[at] = order[at - 1]
                at -= 1
            order[at] = u8(i)
            count += 1
    room = min(u32(config.max_boxes), y.size // BOX_BYTES)
    kept: u32 = 0
    for i in range(count):
        if kept == room:
            break
        box = boxes[u32(order[i]) * BOX_FLOATS :]
        covered = False
        for k in range(kept):
            other = kept_boxes[k * BOX_FLOATS :]
            if other[5] == box[5] and box_iou(other, box) > config.iou_threshold:
                covered = True
                break
        if not covered:
            move(kept_boxes[kept * BOX_FLOATS :], box, BOX_FLOATS)
            kept += 1
    describe(y, DType.FLOAT32, kept * BOX_BYTES, 2, kept, BOX_FLOATS, 0, 0)
    return Status.OK


@fn
def nms_check(config: Ptr[u8] | None, config_bytes: u32) -> Status:
    """INVAL if there is no configuration, max_boxes is 0 or a threshold is a NaN."""
    if config is None or config_bytes != NMS_CONFIG_BYTES:
        return Status.INVAL
    if not is_nms(view(NmsConfig, config)):
        return Status.INVAL
    return Status.OK


@fn
def nms_capacity(x: Tensor, config: Ptr[u8] | None, config_bytes: u32) -> u32:
    """n."""
    return x.size


@fn
def nms_stage(call: StageCall) -> Status:
    config = call.config
    if call.inputs != 1 or config is None or call.config_bytes != NMS_CONFIG_BYTES:
        return Status.INVAL
    return nms(call.x[0], call.x_data[0], call.y, call.y_data, view(NmsConfig, config))
