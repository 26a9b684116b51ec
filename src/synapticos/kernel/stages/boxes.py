"""map_boxes: boxes found in a scaled picture, in the pixels of the picture that it was made from.

x  f32 [n, 6] of {x1, y1, x2, y2, ...}      y  f32, the same shape
Corners become corner * scale + offset, then stay within the picture; a NaN corner becomes its edge 0. Corners lie
between pixels: a picture reaches from 0 to its width.
"""

from synapticos.lang import *
from synapticos.kernel.fmath import is_finite
from synapticos.kernel.stages.nms import BOX_BYTES, BOX_FLOATS
from synapticos.kernel.stages.operands import describe_like, is_whole
from synapticos.kernel.stages.scale import Placement
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import DType, StageCall, Tensor


@struct
class BoxMap:
    scale_x: f32
    scale_y: f32
    offset_x: f32
    offset_y: f32
    width: f32  # of the picture that boxes are mapped to
    height: f32


BOX_MAP_BYTES = sizeof(BoxMap)


@fn
def box_map(place: Placement, unit_w: f32, unit_h: f32, width: u32, height: u32, map: BoxMap) -> Status:
    """The configuration that undoes a placement: of boxes in pixels of the target (units 1), or in fractions of it
    (units its width and height). INVAL for an empty target."""
    if place.target.w == 0 or place.target.h == 0:
        return Status.INVAL
    x = f32(place.source.w) / f32(place.target.w)
    y = f32(place.source.h) / f32(place.target.h)
    map.scale_x = unit_w * x
    map.scale_y = unit_h * y
    map.offset_x = f32(place.source.x) - f32(place.target.x) * x
    map.offset_y = f32(place.source.y) - f32(place.target.y) * y
    map.width = f32(width)
    map.height = f32(height)
    return Status.OK


@fn(pure=True)
def is_box_map(map: BoxMap) -> bool:
    """All finite, and no picture smaller than nothing."""
    if not is_finite(map.scale_x) or not is_finite(map.scale_y) or not is_finite(map.offset_x) or not is_finite(map.offset_y):
        return False
    return is_finite(map.width) and is_finite(map.height) and map.width >= 0.0 and map.height >= 0.0


@fn(pure=True)
def mapped_corner(corner: f32, scale: f32, offset: f32, end: f32) -> f32:
    if isnan(corner) or (scale == 0.0 and not is_finite(corner)):
        return 0.0
    stretched = corner * scale
    return min(max(stretched + offset, 0.0), end)


@fn
def map_boxes(x: Tensor, x_data: Ptr[u8], y: Tensor, y_data: Ptr[u8], config: BoxMap) -> Status:
    """Returns OK; INVAL if the configuration is bad or x is not f32 of its size in whole boxes; NOMEM if they do not fit y."""
    if not is_box_map(config) or x.dtype != DType.FLOAT32 or not is_whole(x) or x.size % BOX_BYTES != 0:
        return Status.INVAL
    if y.size < x.size:
        return Status.NOMEM
    boxes = view(f32, x_data)
    out = view(f32, y_data)
    at: u32 = 0
    for _ in range(x.size // BOX_BYTES):
        for side in range(0, 4, 2):
            out[at + side] = mapped_corner(boxes[at + side], config.scale_x, config.offset_x, config.width)
            out[at + side + 1] = mapped_corner(boxes[at + side + 1], config.scale_y, config.offset_y, config.height)
        out[at + 4] = boxes[at + 4]
        out[at + 5] = boxes[at + 5]
        at += BOX_FLOATS
    describe_like(y, x, DType.FLOAT32, x.size)
    return Status.OK


@fn
def map_boxes_check(config: Ptr[u8] | None, config_bytes: u32) -> Status:
    """INVAL if there is no configuration, or a number in it is not finite."""
    if config is None or config_bytes != BOX_MAP_BYTES:
        return Status.INVAL
    if not is_box_map(view(BoxMap, config)):
        return Status.INVAL
    return Status.OK


@fn
def map_boxes_capacity(x: Tensor, config: Ptr[u8] | None, config_bytes: u32) -> u32:
    """n."""
    return x.size


@fn
def map_boxes_stage(call: StageCall) -> Status:
    config = call.config
    if call.inputs != 1 or config is None or call.config_bytes != BOX_MAP_BYTES:
        return Status.INVAL
    return map_boxes(call.x[0], call.x_data[0], call.y, call.y_data, view(BoxMap, config))
