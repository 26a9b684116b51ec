"""crop: the part of a picture that a box shows, to a size of its own.

x0  u8 or i8 [1, H, W, C], C <= 4      x1  f32 [1, 6]: x1, y1, x2, y2 in pixels of x0, and what else there is of a box
y   the same type as x0 [1, h, w, C], by the rule of `scale`

The part is every pixel that the box touches, within the picture; a box that touches none becomes the nearest pixel.
"""

from synapticos.lang import *
from synapticos.kernel.stages.operands import is_byte_image
from synapticos.kernel.stages.scale import SCALE_CONFIG_BYTES, ScaleConfig, rect_set, scale, scale_check
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import DType, StageCall


@fn(pure=True)
def first_pixel(at: f32, size: u32) -> u32:
    """The pixel that a coordinate lies in, of `size` pixels."""
    return min(sat(u32, at), size - 1)


@fn(pure=True)
def end_pixel(at: f32, first: u32, size: u32) -> u32:
    """The pixel behind the last one that is touched up to a coordinate; at least one is."""
    end = sat(u32, at)
    if end < size and f32(end) < at:
        end += 1
    return min(max(end, first + 1), size)


@fn
def crop_stage(call: StageCall) -> Status:
    """Returns what `scale` does; INVAL too for what is no box."""
    second: u32 = 1  # no constant: a build may have room for one input only
    config = call.config
    if call.inputs != 2 or config is None or call.config_bytes != SCALE_CONFIG_BYTES:
        return Status.INVAL
    box = call.x[second]
    x = call.x[0]
    if box.dtype != DType.FLOAT32 or box.size < 16 or not is_byte_image(x) or x.shape[1] > 16384 or x.shape[2] > 16384:
        return Status.INVAL
    at = view(f32, call.x_data[second])
    left = first_pixel(at[0], x.shape[2])
    top = first_pixel(at[1], x.shape[1])
    right = end_pixel(at[2], left, x.shape[2])
    bottom = end_pixel(at[3], top, x.shape[1])
    part = local(ScaleConfig)
    copy(part, view(ScaleConfig, config))
    rect_set(part.roi, left, top, right - left, bottom - top)
    return scale(x, call.x_data[0], call.y, call.y_data, part)


@fn
def crop_check(config: Ptr[u8] | None, config_bytes: u32) -> Status:
    """INVAL if there is no configuration, its rule is not defined, or it says itself which part."""
    check(scale_check(config, config_bytes))
    if config is None:
        return Status.INVAL
    if view(ScaleConfig, config).roi.w != 0:
        return Status.INVAL
    return Status.OK
