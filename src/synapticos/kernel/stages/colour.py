"""colour: what a camera gives, or a part of it, as RGB, BGR or grey bytes.

x  u8 [1, H, W, C], C bytes a pixel as the format says (below)      y  u8 [1, h, w, 1 or 3]

565 to bytes: the top bits repeat below, so 0 stays 0 and all ones become 255.
YUV to RGB: R = Y + 1.402 V, G = Y - 0.344136 U - 0.714136 V, B = Y + 1.772 U with U and V 128 lower (JPEG); with `video`
Y runs from 16 to 235 and U, V from 16 to 240 (BT.601). 16-bit fixed point, rounded half up, clamped. U and V serve two
pixels side by side. Its grey is Y alone, spread over 0..255 where it is video.
RGB to grey: (19595 R + 38470 G + 7471 B + 32768) >> 16.
"""

from synapticos.lang import *
from synapticos.kernel.stages.operands import describe, is_whole, saturated
from synapticos.kernel.stages.scale import MAX_SIDE, Rect
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import DType, StageCall, Tensor

GREY: Final[u32] = 0
RGB: Final[u32] = 1
BGR: Final[u32] = 2
RGBA: Final[u32] = 3  # the fourth byte is not looked at
RGB565: Final[u32] = 4  # RRRRRGGG GGGBBBBB, the low byte first
RGB565_SWAPPED: Final[u32] = 5  # the high byte first
YUYV: Final[u32] = 6  # Y0 U Y1 V; the picture's width is even
UYVY: Final[u32] = 7  # U Y0 V Y1
PIXEL_BYTES = rom(u8, [1, 3, 3, 4, 2, 2, 2, 2])
FORMATS: Final[u32] = 8


@struct
class ColourConfig:
    source: u8  # format of x
    target: u8  # of y: GREY, RGB or BGR
    video: u8  # 1: YUV in the narrow range
    reserved: u8
    roi: Rect  # the part of x that is wanted; w and h 0: all of it


COLOUR_CONFIG_BYTES = sizeof(ColourConfig)


@fn(pure=True)
def is_colour(config: ColourConfig) -> bool:
    """Formats that exist, and a part with both sides or neither, or none."""
    if config.source >= FORMATS or config.target > BGR or config.video > 1:
        return False
    if config.video != 0 and config.source < YUYV:
        return False
    if config.roi.w == 0:
        return config.roi.h == 0 and config.roi.x == 0 and config.roi.y == 0
    return config.roi.h != 0


@fn(pure=True, inline=True)
def clamped_colour(fixed: i32) -> u8:
    """A byte from 16 bits of fraction, half up."""
    return sat(u8, (fixed + 32768) >> 16)


@fn(pure=True, inline=True)
def luminance(r: u8, g: u8, b: u8) -> u8:
    return u8((u32(r) * 19595 + u32(g) * 38470 + u32(b) * 7471 + 32768) >> 16)


@fn
def colour(x: Tensor, x_data: Ptr[u8], y: Tensor, y_data: Ptr[u8], config: ColourConfig) -> Status:
    """Returns OK; INVAL if the configuration is bad (`colour_check`), x is no u8 picture of its format with sides up to
    MAX_SIDE, or the part is not all within it; NOMEM if the result does not fit y."""
    if not is_colour(config) or x.dtype != DType.UINT8 or x.ndim != 4 or not is_whole(x) or x.size == 0:
        return Status.INVAL
    pixel_bytes = u32(PIXEL_BYTES[config.source])
    height = x.shape[1]
    width = x.shape[2]
    if x.shape[0] != 1 or x.shape[3] != pixel_bytes or width > MAX_SIDE or height > MAX_SIDE:
        return Status.INVAL
    if config.source >= YUYV and width % 2 != 0:
        return Status.INVAL
    left = u32(config.roi.x)
    top = u32(config.roi.y)
    w = u32(config.roi.w)
    h = u32(config.roi.h)
    if w == 0:
        w = width
        h = height
    if left > width or w > width - left or top > height or h > height - top:
        return Status.INVAL
    channels: u32 = 3
    if config.target == GREY:
        channels = 1
    if w * h * channels > y.size:
        return Status.NOMEM
    for row in range(h):
        line = x_data[(top + row) * width * pixel_bytes :]
        out = y_data[row * w * channels :]
        if config.source >= YUYV:
            yuv_row(line, out, left, w, config)
        else:
            rgb_row(line[left * pixel_bytes :], out, w, pixel_bytes, u32(config.source), u32(config.target))
    describe(y, DType.UINT8, w * h * channels, 4, 1, h, w, channels)
    return Status.OK


@fn
def rgb_row(line: Ptr[u8], out: Ptr[u8], count: u32, pixel_bytes: u32, source: u32, target: u32) -> None:
    """Pixels that carry red, green and blue, or one grey."""
    at: u32 = 0
    made: u32 = 0
    for _ in range(count):
        r = line[at]
        g = r
        b = r
        if source == RGB or source == RGBA:
            g = line[at + 1]
            b = line[at + 2]
        elif source == BGR:
            g = line[at + 1]
            r = line[at + 2]
        elif source != GREY:
            low = line[at]
            high = line[at + 1]
            if source == RGB565_SWAPPED:
                low = line[at + 1]
                high = line[at]
            six = ((high & 7) << 3) | (low >> 5)
            five = low & 31
            r = (high & 0xF8) | (high >> 5)
            g = (six << 2) | (six >> 4)
            b = (five << 3) | (five >> 2)
        if target == GREY:
            if source == GREY:
                out[made] = r
            else:
                out[made] = luminance(r, g, b)
            made += 1
        else:
            put_pixel(out[made:], r, g, b, target)
            made += 3
        at += pixel_bytes


@fn(inline=True)
def put_pixel(out: Ptr[u8], r: u8, g: u8, b: u8, target: u32) -> None:
    out[1] = g
    if target == RGB:
        out[0] = r
        out[2] = b
    else:
        out[0] = b
        out[2] = r


@fn
def yuv_row(line: Ptr[u8], out: Ptr[u8], left: u32, count: u32, config: ColourConfig) -> None:
    """Two pixels share the four bytes that begin at an even one."""
    odd: u32 = 0  # where Y stands in its pair of bytes
    if config.source == UYVY:
        odd = 1
    for i in range(count):
        column = left + i
        shared = (column & ~u32(1)) * 2 + 1 - odd
        bright = i32(line[column * 2 + odd]) << 16
        u = i32(line[shared]) - 128
        v = i32(line[shared + 2]) - 128
        red = 91881 * v
        green = -22554 * u - 46802 * v
        blue = 116130 * u
        if config.video != 0:
            bright = 76309 * (i32(line[column * 2 + odd]) - 16)
            red = 104597 * v
            green = -25675 * u - 53279 * v
            blue = 132201 * u
        if config.target == GREY:
            out[i] = clamped_colour(bright)
        else:
            put_pixel(out[i * 3 :], clamped_colour(bright + red), clamped_colour(bright + green), clamped_colour(bright + blue), u32(config.target))


@fn
def colour_check(config: Ptr[u8] | None, config_bytes: u32) -> Status:
    """INVAL if there is no configuration, or a format in it does not exist."""
    if config is None or config_bytes != COLOUR_CONFIG_BYTES:
        return Status.INVAL
    if not is_colour(view(ColourConfig, config)):
        return Status.INVAL
    return Status.OK


@fn
def colour_capacity(x: Tensor, config: Ptr[u8] | None, config_bytes: u32) -> u32:
    """Pixels of the part, times 1 or 3; 0 where there is no telling."""
    if config is None or config_bytes != COLOUR_CONFIG_BYTES or x.ndim != 4:
        return 0
    c = view(ColourConfig, config)
    if not is_colour(c):
        return 0
    pixels = u64(c.roi.w) * c.roi.h
    if c.roi.w == 0:
        pixels = u64(x.size // u32(PIXEL_BYTES[c.source]))
    if c.target != GREY:
        pixels *= 3
    return saturated(pixels)


@fn
def colour_stage(call: StageCall) -> Status:
    config = call.config
    if call.inputs != 1 or config is None or call.config_bytes != COLOUR_CONFIG_BYTES:
        return Status.INVAL
    return colour(call.x[0], call.x_data[0], call.y, call.y_data, view(ColourConfig, config))
