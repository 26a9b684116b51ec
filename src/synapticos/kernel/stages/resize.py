"""image_resize: a byte image to another height and width, bilinear, corners on corners.

    sx = x (W - 1) / (w - 1), x0 = floor(sx), x1 = min(x0 + 1, W - 1), fx = sx - x0; the same down the columns
    upper = a + fx (b - a), lower = c + fx (d - c), out = floor(upper + fy (lower - upper) + 0.5)

x  u8 or i8 [1, H, W, C], C <= 4      y  the same type [1, h, w, C]      all arithmetic f32, in this order
INT8 pixels are blended as signed numbers.
"""

from synapticos.lang import *
from synapticos.kernel.stages.operands import describe, is_byte_image, saturated
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import DType, StageCall, Tensor


@struct
class ResizeConfig:
    w: u16  # of the result, pixels
    h: u16


RESIZE_CONFIG_BYTES = sizeof(ResizeConfig)
COLUMNS: Final[u32] = 32  # in a block


@fn(pure=True, inline=True)
def pixel(byte: u8, flip: u8) -> i32:
    """A pixel's value: `flip` is 0 for unsigned bytes, 128 for signed ones."""
    return i32(byte ^ flip) - flip


@struct
class Axis:
    """One direction of a scaling: target pixel i lies at (i + shift) step - shift in the source, not below 0."""

    source: u32  # pixels
    target: u32
    step: f32
    shift: f32


@fn
def corners_on_corners(axis: Axis, source: u32, target: u32) -> None:
    axis.source = source
    axis.target = target
    axis.step = 0.0
    axis.shift = 0.0
    if target > 1:
        axis.step = f32(source - 1) / f32(target - 1)


@fn
def resize(x: Tensor, x_data: Ptr[u8], y: Tensor, y_data: Ptr[u8], config: ResizeConfig) -> Status:
    """Returns OK; INVAL if w or h is 0 or x is no byte image; NOMEM if the result does not fit y."""
    if config.w == 0 or config.h == 0 or not is_byte_image(x):
        return Status.INVAL
    height = x.shape[1]
    width = x.shape[2]
    channels = x.shape[3]
    need = u64(config.w) * config.h * channels
    if need > y.size:
        return Status.NOMEM
    if width == config.w and height == config.h:
        move(y_data, x_data, x.size)  # every fraction would be 0
    else:
        columns = local(Axis)
        rows = local(Axis)
        corners_on_corners(columns, width, u32(config.w))
        corners_on_corners(rows, height, u32(config.h))
        out_stride = u32(config.w) * channels
        if x.dtype == DType.UINT8:
            resize_blend(x_data, width * channels, y_data, out_stride, channels, columns, rows, 0)
        else:
            resize_blend(x_data, width * channels, y_data, out_stride, channels, columns, rows, 128)
    describe(y, x.dtype, u32(need), 4, 1, config.h, config.w, channels)
    return Status.OK


@fn(inline=True)
def resize_blend(
    x_data: Ptr[u8], stride: u32, y_data: Ptr[u8], out_stride: u32, channels: u32, columns: Axis, rows: Axis, flip: u8
) -> None:
    """The blending itself, from one rectangle to another, whose rows are `stride` and `out_stride` bytes apart; inline,
    so that each type gets its own loop.

    Places and fractions of the columns are worked out once for a block of them and serve all rows.
    """
    width = columns.target
    last_row = rows.source - 1
    last_column = columns.source - 1
    right = min(last_column, 1) * channels  # from a pixel to the one beside it, if the picture has two
    left = local(u32, 32)
    fractions = local(f32, 32)
    first: u32 = 0
    while first < width:
        count = min(width - first, COLUMNS)
        for i in range(count):
            sx = max((f32(first + i) + columns.shift) * columns.step - columns.shift, 0.0)
            x0 = u32(sx)
            if x0 < last_column:
                left[i] = x0 * channels
                fractions[i] = sx - f32(x0)
            else:
                left[i] = last_column * channels - right
                fractions[i] = 1.0  # all of the right neighbour is the last column, to the bit
        at = first * channels
        for row in range(rows.target):
            sy = max((f32(row) + rows.shift) * rows.step - rows.shift, 0.0)
            y0 = min(u32(sy), last_row)
            fy = sy - f32(y0)
            upper_row = x_data[y0 * stride :]
            lower_row = x_data[min(y0 + 1, last_row) * stride :]
            out = y_data[at:]
            at += out_stride
            made: u32 = 0
            for i in range(count):
                fx = fractions[i]
                for c in range(left[i], left[i] + channels):
                    a = pixel(upper_row[c], flip)
                    b = pixel(upper_row[c + right], flip)
                    upper = f32(a) + fx * f32(b - a)
                    a = pixel(lower_row[c], flip)
                    b = pixel(lower_row[c + right], flip)
                    lower = f32(a) + fx * f32(b - a)
                    value = upper + fy * (lower - upper) + 0.5
                    whole = i32(value)
                    if flip != 0 and f32(whole) > value:
                        whole -= 1
                    # upper and lower are pixel values or between two, so the sum stays within half a step of the type.
                    out[made] = u8(whole + flip) ^ flip
                    made += 1
        first += count


@fn
def resize_check(config: Ptr[u8] | None, config_bytes: u32) -> Status:
    """Whether `resize` can take this configuration: INVAL if there is none, or w or h is 0."""
    if config is None or config_bytes != RESIZE_CONFIG_BYTES:
        return Status.INVAL
    c = view(ResizeConfig, config)
    if c.w == 0 or c.h == 0:
        return Status.INVAL
    return Status.OK


@fn
def resize_capacity(x: Tensor, config: Ptr[u8] | None, config_bytes: u32) -> u32:
    """w * h * channels; 0 where there is no telling."""
    if config is None or config_bytes != RESIZE_CONFIG_BYTES or x.ndim != 4:
        return 0
    c = view(ResizeConfig, config)
    return saturated(u64(c.w) * c.h * x.shape[3])


@fn
def resize_stage(call: StageCall) -> Status:
    config = call.config
    if call.inputs != 1 or config is None or call.config_bytes != RESIZE_CONFIG_BYTES:
        return Status.INVAL
    return resize(call.x[0], call.x_data[0], call.y, call.y_data, view(ResizeConfig, config))
