"""scale: a picture, or a part of it, to another size by a rule that the configuration spells out.

x  u8 or i8 [1, H, W, C], C <= 4      y  the same type [1, h, w, C]      sizes up to 16384

The fit says which rectangle of x goes to which rectangle of y (`placement`); within these, S source pixels become D:
  nearest    align corners: round(i (S-1)/(D-1)), half up   half pixel: floor((i + 1/2) S/D)   asymmetric: floor(i S/D)
  bilinear   at i (S-1)/(D-1), (i + 1/2) S/D - 1/2 or i S/D, in f32 and blended as `resize` does: with align corners and
             stretch the bytes are those of the published processor
  area       the mean of all that a target pixel covers, edges on edges (half pixel); only to make smaller
Nearest and area are exact; half a step rounds up. Other combinations are refused when the stage is added, or, where
that depends on the picture, when it runs.
"""

from synapticos.lang import *
from synapticos.kernel.stages.operands import MAX_CHANNELS, describe, is_byte_image, saturated
from synapticos.kernel.stages.resize import COLUMNS, Axis, resize_blend
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import DType, StageCall, Tensor

NEAREST: Final[u32] = 0
BILINEAR: Final[u32] = 1
AREA: Final[u32] = 2

ALIGN_CORNERS: Final[u32] = 0
HALF_PIXEL: Final[u32] = 1
ASYMMETRIC: Final[u32] = 2

STRETCH: Final[u32] = 0
CROP: Final[u32] = 1  # the largest middle part of x in the shape of y
LETTERBOX: Final[u32] = 2  # all of x, as large as y holds in x's shape, in the middle; `fill` around it

MAX_SIDE: Final[u32] = 16384  # so that products of two sides stay in u32
MAX_AREA: Final[u32] = 0x1000000  # source pixels, so that a sum of bytes over them stays in u32


@struct
class Rect:
    x: u16
    y: u16
    w: u16
    h: u16


@struct
class ScaleConfig:
    w: u16  # of the result, pixels
    h: u16
    method: u8
    coordinates: u8
    fit: u8
    reserved: u8
    fill: Shaped[Array[u8], MAX_CHANNELS]  # bytes of a pixel beside a letterboxed picture
    roi: Rect  # the part of x that counts; w and h 0: all of it


@struct
class Placement:
    """Where a picture went: all of `source`, a part of x, became all of `target`, a part of y."""

    source: Rect
    target: Rect


SCALE_CONFIG_BYTES = sizeof(ScaleConfig)


@fn(pure=True)
def is_scale(config: ScaleConfig) -> bool:
    """Sizes of 1 to MAX_SIDE, a rule that exists, and a part with both sides or neither."""
    if config.w == 0 or config.h == 0 or config.w > MAX_SIDE or config.h > MAX_SIDE:
        return False
    if config.method > AREA or config.coordinates > ASYMMETRIC or config.fit > LETTERBOX:
        return False
    if config.method == AREA and config.coordinates != HALF_PIXEL:
        return False
    return (config.roi.w == 0) == (config.roi.h == 0)


@fn(pure=True)
def rounded_ratio(a: u32, b: u32, c: u32) -> u32:
    """a b / c, half up, at least 1; sides of pictures."""
    return max((2 * a * b + c) // (2 * c), 1)


@fn
def placement(config: ScaleConfig, width: u32, height: u32, place: Placement) -> Status:
    """Which part of a picture goes where. INVAL if the configuration is bad, the part is not all within the picture,
    the picture is past MAX_SIDE, or the area method would have to enlarge."""
    if not is_scale(config) or width == 0 or height == 0 or width > MAX_SIDE or height > MAX_SIDE:
        return Status.INVAL
    left = u32(config.roi.x)
    top = u32(config.roi.y)
    w = u32(config.roi.w)
    h = u32(config.roi.h)
    if w == 0:
        if left != 0 or top != 0:
            return Status.INVAL
        w = width
        h = height
    if left > width or w > width - left or top > height or h > height - top:
        return Status.INVAL
    to_w = u32(config.w)
    to_h = u32(config.h)
    to_left: u32 = 0
    to_top: u32 = 0
    wide = w * to_h > h * to_w
    if config.fit == CROP:
        if wide:
            part = min(rounded_ratio(h, to_w, to_h), w)
            left += (w - part) // 2
            w = part
        else:
            part = min(rounded_ratio(w, to_h, to_w), h)
            top += (h - part) // 2
            h = part
    elif config.fit == LETTERBOX:
        if wide:
            part = min(rounded_ratio(h, to_w, w), to_h)
            to_top = (to_h - part) // 2
            to_h = part
        else:
            part = min(rounded_ratio(w, to_h, h), to_w)
            to_left = (to_w - part) // 2
            to_w = part
    if config.method == AREA and (w < to_w or h < to_h or w * h > MAX_AREA):
        return Status.INVAL
    rect_set(place.source, left, top, w, h)
    rect_set(place.target, to_left, to_top, to_w, to_h)
    return Status.OK


@fn
def rect_set(rect: Rect, x: u32, y: u32, w: u32, h: u32) -> None:
    rect.x = u16(x)
    rect.y = u16(y)
    rect.w = u16(w)
    rect.h = u16(h)


@fn
def scale(x: Tensor, x_data: Ptr[u8], y: Tensor, y_data: Ptr[u8], config: ScaleConfig) -> Status:
    """Returns OK; INVAL if x is no byte image or `placement` refuses; NOMEM if the result does not fit y."""
    place = local(Placement)
    if not is_byte_image(x):
        return Status.INVAL
    status = placement(config, x.shape[2], x.shape[1], place)
    if status != Status.OK:
        return status
    channels = x.shape[3]
    width = u32(config.w)
    need = u64(config.w) * config.h * channels
    if need > y.size:
        return Status.NOMEM
    flip: u8 = 0
    if x.dtype == DType.INT8:
        flip = 128
    source = place.source
    target = place.target
    stride = x.shape[2] * channels
    out_stride = width * channels
    data = x_data[u32(source.y) * stride + u32(source.x) * channels :]
    out = y_data[u32(target.y) * out_stride + u32(target.x) * channels :]
    columns = local(Axis)
    rows = local(Axis)
    set_axis(columns, u32(source.w), u32(target.w), u32(config.coordinates))
    set_axis(rows, u32(source.h), u32(target.h), u32(config.coordinates))
    if config.method == NEAREST:
        scale_nearest(data, stride, out, out_stride, channels, columns, rows, u32(config.coordinates))
    elif config.method == AREA:
        scale_area(data, stride, out, out_stride, channels, columns, rows, flip)
    elif flip == 0:
        resize_blend(data, stride, out, out_stride, channels, columns, rows, 0)
    else:
        resize_blend(data, stride, out, out_stride, channels, columns, rows, 128)
    if config.fit == LETTERBOX:
        surround_picture(y_data, width, u32(config.h), channels, target, config.fill)
    describe(y, x.dtype, u32(need), 4, 1, config.h, width, channels)
    return Status.OK


@fn
def set_axis(axis: Axis, source: u32, target: u32, coordinates: u32) -> None:
    axis.source = source
    axis.target = target
    axis.shift = 0.0
    axis.step = f32(source) / f32(target)
    if coordinates == HALF_PIXEL:
        axis.shift = 0.5
    elif coordinates == ALIGN_CORNERS:
        axis.step = 0.0
        if target > 1:
            axis.step = f32(source - 1) / f32(target - 1)


@fn(pure=True)
def nearest_pixel(i: u32, axis: Axis, coordinates: u32) -> u32:
    """The source pixel for target pixel i, in whole numbers."""
    if coordinates == ASYMMETRIC:
        return i * axis.source // axis.target
    if coordinates == HALF_PIXEL:
        return (2 * i + 1) * axis.source // (2 * axis.target)
    if axis.target == 1:
        return 0
    return (2 * i * (axis.source - 1) + (axis.target - 1)) // (2 * (axis.target - 1))


@fn
def scale_nearest(
    data: Ptr[u8], stride: u32, out: Ptr[u8], out_stride: u32, channels: u32, columns: Axis, rows: Axis, coordinates: u32
) -> None:
    places = local(u32, 32)
    first: u32 = 0
    while first < columns.target:
        count = min(columns.target - first, COLUMNS)
        for i in range(count):
            places[i] = nearest_pixel(first + i, columns, coordinates) * channels
        for row in range(rows.target):
            line = data[nearest_pixel(row, rows, coordinates) * stride :]
            made = out[row * out_stride + first * channels :]
            at: u32 = 0
            for i in range(count):
                for c in range(places[i], places[i] + channels):
                    made[at] = line[c]
                    at += 1
        first += count


@fn
def scale_area(
    data: Ptr[u8], stride: u32, out: Ptr[u8], out_stride: u32, channels: u32, columns: Axis, rows: Axis, flip: u8
) -> None:
    """With D target pixels for S source pixels, target i covers [i S, (i+1) S) and source j [j D, (j+1) D): overlaps are
    whole numbers, and all of one target pixel's are S. Signed pixels are averaged 128 higher."""
    source_w = columns.source
    source_h = rows.source
    across = columns.target
    down = rows.target
    total = source_w * source_h
    for row in range(down):
        first_row = row * source_h // down
        last_row = ((row + 1) * source_h - 1) // down
        upper_share = min((first_row + 1) * down, (row + 1) * source_h) - row * source_h
        lower_share = (row + 1) * source_h - last_row * down
        made = out[row * out_stride :]
        at: u32 = 0
        for column in range(across):
            first = column * source_w // across
            last = ((column + 1) * source_w - 1) // across
            left_share = min((first + 1) * across, (column + 1) * source_w) - column * source_w
            right_share = (column + 1) * source_w - last * across
            begin = first * channels
            end = last * channels
            for c in range(channels):
                sum: u32 = 0
                line = data[first_row * stride + c :]
                for j in range(first_row, last_row + 1):
                    part = u32(line[begin] ^ flip) * left_share
                    if end > begin:
                        middle: u32 = 0
                        place = begin + channels
                        while place < end:
                            middle += line[place] ^ flip
                            place += channels
                        part += middle * across + u32(line[end] ^ flip) * right_share
                    if j == first_row:
                        sum += part * upper_share
                    elif j == last_row:
                        sum += part * lower_share
                    else:
                        sum += part * down
                    if j != last_row:
                        line = line[stride:]
                made[at] = u8((sum + total // 2) // total) ^ flip
                at += 1


@fn
def surround_picture(y_data: Ptr[u8], width: u32, height: u32, channels: u32, inside: Rect, colour: Ptr[u8]) -> None:
    """Colour what lies around the rectangle."""
    right = u32(inside.x) + inside.w
    below = u32(inside.y) + inside.h
    paint_pixels(y_data, width * u32(inside.y), channels, colour)
    paint_pixels(y_data[below * width * channels :], width * (height - below), channels, colour)
    for row in range(u32(inside.y), below):
        paint_pixels(y_data[row * width * channels :], u32(inside.x), channels, colour)
        paint_pixels(y_data[(row * width + right) * channels :], width - right, channels, colour)


@fn
def paint_pixels(data: Ptr[u8], pixels: u32, channels: u32, colour: Ptr[u8]) -> None:
    at: u32 = 0
    for _ in range(pixels):
        for c in range(channels):
            data[at] = colour[c]
            at += 1


@fn
def scale_check(config: Ptr[u8] | None, config_bytes: u32) -> Status:
    """INVAL if there is no configuration, or its rule is not defined."""
    if config is None or config_bytes != SCALE_CONFIG_BYTES:
        return Status.INVAL
    if not is_scale(view(ScaleConfig, config)):
        return Status.INVAL
    return Status.OK


@fn
def scale_capacity(x: Tensor, config: Ptr[u8] | None, config_bytes: u32) -> u32:
    """w * h * channels; 0 where there is no telling."""
    if config is None or config_bytes != SCALE_CONFIG_BYTES or x.ndim != 4:
        return 0
    c = view(ScaleConfig, config)
    return saturated(u64(c.w) * c.h * x.shape[3])


@fn
def scale_stage(call: StageCall) -> Status:
    config = call.config
    if call.inputs != 1 or config is None or call.config_bytes != SCALE_CONFIG_BYTES:
        return Status.INVAL
    return scale(call.x[0], call.x_data[0], call.y, call.y_data, view(ScaleConfig, config))
