"""suppress: of boxes that overlap, keep the best, or let each that is kept weaken the others.

x  f32, at most 64 boxes of {x1, y1, x2, y2, score, class_id}      y  f32 [kept, 6], best first, scores as weakened

Again and again the best box left is kept (of equal ones the first in x) until none reaches the score threshold,
max_boxes are kept or y is full; then every box left, of its class or of any, is weakened by their IoU:
  hard      out, if IoU > iou_threshold: with classes apart these are the boxes of `nms`
  linear    score (1 - IoU), if IoU > iou_threshold
  gaussian  score e**(-IoU**2 / sigma)
Boxes that cannot be judged are dropped as in `nms`; the soft ways also drop infinite scores.
"""

from synapticos.lang import *
from synapticos.kernel.fmath import f32_exp, is_finite
from synapticos.kernel.stages.nms import BOX_BYTES, BOX_FLOATS, MAX_BOXES, box_iou, is_candidate
from synapticos.kernel.stages.operands import describe, is_whole
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import DType, StageCall, Tensor

HARD: Final[u32] = 0
LINEAR: Final[u32] = 1
GAUSSIAN: Final[u32] = 2


@struct
class SuppressConfig:
    iou_threshold: f32
    score_threshold: f32  # 0 or more for the soft ways
    sigma: f32  # above 0; of the gaussian way only
    max_boxes: u8  # kept, not 0
    method: u8
    any_class: u8  # 1: boxes of other classes count too
    reserved: u8


SUPPRESS_CONFIG_BYTES = sizeof(SuppressConfig)


@fn(pure=True)
def is_suppress(config: SuppressConfig) -> bool:
    """A way that exists, numbers for thresholds, and some boxes to keep."""
    if config.max_boxes == 0 or config.method > GAUSSIAN or config.any_class > 1:
        return False
    if isnan(config.iou_threshold) or isnan(config.score_threshold) or isnan(config.sigma):
        return False
    if config.method != HARD and config.score_threshold < 0.0:
        return False
    return config.method != GAUSSIAN or (config.sigma > 0.0 and is_finite(config.sigma))


@fn(pure=True)
def weakened_score(score: f32, iou: f32, config: SuppressConfig) -> f32:
    """A score after a box that overlaps by `iou` was kept; soft ways."""
    if config.method == GAUSSIAN:
        return score * f32_exp(-(iou * iou / config.sigma))
    if iou > config.iou_threshold:
        return score * (1.0 - iou)
    return score


@fn
def suppress(x: Tensor, x_data: Ptr[u8], y: Tensor, y_data: Ptr[u8], config: SuppressConfig) -> Status:
    """Returns OK; INVAL if the configuration is bad (`suppress_check`), or x is not f32 of its size, in whole boxes, at most 64."""
    if not is_suppress(config) or x.dtype != DType.FLOAT32 or not is_whole(x):
        return Status.INVAL
    if x.size % BOX_BYTES != 0 or x.size > MAX_BOXES * BOX_BYTES:
        return Status.INVAL
    boxes = view(f32, x_data)
    out = view(f32, y_data)
    left = local(u8, 64)  # numbers of boxes not kept yet, in order
    scores = local(f32, 64)  # of these
    count: u32 = 0
    for i in range(x.size // BOX_BYTES):
        box = boxes[i * BOX_FLOATS :]
        if is_candidate(box, config.score_threshold) and (config.method == HARD or is_finite(box[4])):
            left[count] = u8(i)
            scores[count] = box[4]
            count += 1
    room = min(u32(config.max_boxes), y.size // BOX_BYTES)
    kept: u32 = 0
    while kept < room and count > 0:
        best: u32 = 0
        for i in range(1, count):
            if scores[i] > scores[best]:
                best = i
        box = boxes[u32(left[best]) * BOX_FLOATS :]
        move(out[kept * BOX_FLOATS :], box, BOX_FLOATS)
        out[kept * BOX_FLOATS + 4] = scores[best]
        kept += 1
        staying: u32 = 0
        for i in range(count):
            other = boxes[u32(left[i]) * BOX_FLOATS :]
            score = scores[i]
            stays = i != best
            if stays and (config.any_class != 0 or other[5] == box[5]):
                iou = box_iou(box, other)
                if config.method == HARD:
                    stays = iou <= config.iou_threshold
                else:
                    score = weakened_score(score, iou, config)
                    stays = score >= config.score_threshold
            if stays:
                left[staying] = left[i]
                scores[staying] = score
                staying += 1
        count = staying
    describe(y, DType.FLOAT32, kept * BOX_BYTES, 2, kept, BOX_FLOATS, 0, 0)
    return Status.OK


@fn
def suppress_check(config: Ptr[u8] | None, config_bytes: u32) -> Status:
    """INVAL if there is no configuration, or a field in it is out of its range."""
    if config is None or config_bytes != SUPPRESS_CONFIG_BYTES:
        return Status.INVAL
    if not is_suppress(view(SuppressConfig, config)):
        return Status.INVAL
    return Status.OK


@fn
def suppress_capacity(x: Tensor, config: Ptr[u8] | None, config_bytes: u32) -> u32:
    """n."""
    return x.size


@fn
def suppress_stage(call: StageCall) -> Status:
    config = call.config
    if call.inputs != 1 or config is None or call.config_bytes != SUPPRESS_CONFIG_BYTES:
        return Status.INVAL
    return suppress(call.x[0], call.x_data[0], call.y, call.y_data, view(SuppressConfig, config))
