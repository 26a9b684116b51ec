"""Windows over a picture: their geometry, its checks, and the patch of one output pixel.

A patch is gathered with the input's zero point where the window leaves the picture, so the inner loops know no
borders: a padded element then counts x_zero * w, which the folded bias takes away again.

    x      i8 [batch, x_h, x_w, depth]
    patch  i8 [k_h, k_w, depth]

Rows of a step are output rows: row r is line r % y_h of picture r // y_h.
"""

from typing import Any

from synapticos.lang import *
from synapticos.kernel.layers.checks import MAX_SIDE, MAX_WINDOW, product
from synapticos.kernel.layers.variants import Unsupported

SHORT: Final[u32] = 16  # bytes that are copied here sooner than by a call


@struct
class Window:
    batch: u32
    x_h: u32
    x_w: u32
    depth: u32  # channels of the input
    y_h: u32
    y_w: u32
    k_h: u32
    k_w: u32
    stride_h: u32
    stride_w: u32
    dilation_h: u32
    dilation_w: u32
    pad_top: u32
    pad_left: u32


@fn(pure=True)
def window_is_sound(win: Window) -> bool:
    """Whether all numbers are in ranges in which no index below can wrap: sides to 65535, windows to 255."""
    if win.batch == 0 or win.batch > MAX_SIDE or win.depth == 0 or win.depth > MAX_SIDE:
        return False
    if win.x_h == 0 or win.x_h > MAX_SIDE or win.x_w == 0 or win.x_w > MAX_SIDE:
        return False
    if win.y_h == 0 or win.y_h > MAX_SIDE or win.y_w == 0 or win.y_w > MAX_SIDE:
        return False
    if win.k_h == 0 or win.k_h > MAX_WINDOW or win.k_w == 0 or win.k_w > MAX_WINDOW:
        return False
    if win.stride_h == 0 or win.stride_h > MAX_WINDOW or win.stride_w == 0 or win.stride_w > MAX_WINDOW:
        return False
    if win.dilation_h == 0 or win.dilation_h > MAX_WINDOW or win.dilation_w == 0 or win.dilation_w > MAX_WINDOW:
        return False
    return win.pad_top <= MAX_SIDE and win.pad_left <= MAX_SIDE


@fn(pure=True)
def window_x_bytes(win: Window) -> u32:
    return product(product(product(win.batch, win.x_h), win.x_w), win.depth)


@fn(pure=True)
def window_y_bytes(win: Window, channels: u32) -> u32:
    return product(product(product(win.batch, win.y_h), win.y_w), channels)


@fn(pure=True)
def window_patch_bytes(win: Window) -> u32:
    return product(product(win.k_h, win.k_w), win.depth)


@fn(pure=True)
def window_rows(win: Window) -> u32:
    return product(win.batch, win.y_h)


@fn(pure=True)
def first_tap(at: i32, step: u32) -> u32:
    """The first tap whose place at + tap * step is not negative."""
    if at >= 0:
        return 0
    return (u32(-at) + step - 1) // step


@fn(pure=True)
def end_tap(at: i32, step: u32, side: u32, taps: u32) -> u32:
    """One after the last of `taps` whose place at + tap * step is below `side`; may be less than the first."""
    room = i32(side) - at
    if room <= 0:
        return 0
    return min(taps, (u32(room) + step - 1) // step)


@fn(pure=True)
def is_inside(at: i32, step: u32, side: u32, taps: u32) -> bool:
    """Whether all taps lie in 0..side-1."""
    return at >= 0 and at + i32((taps - 1) * step) < i32(side)


@fn
def gather(win: Window, x: Ptr[i8], top: i32, left: i32, zero: i8, patch: Ptr[i8]) -> None:
    """The patch whose first tap is at (top, left) of the picture `x`."""
    depth = win.depth
    line = win.x_w * depth
    patch_line = win.k_w * depth
    y0 = first_tap(top, win.dilation_h)
    y1 = end_tap(top, win.dilation_h, win.x_h, win.k_h)
    x0 = first_tap(left, win.dilation_w)
    x1 = end_tap(left, win.dilation_w, win.x_w, win.k_w)
    if y0 > 0 or y1 < win.k_h or x0 > 0 or x1 < win.k_w:
        fill(patch, zero, win.k_h * patch_line)
    if x1 <= x0:
        return
    for ky in range(y0, y1):
        row = u32(top + i32(ky * win.dilation_h))
        if win.dilation_w == 1:
            source = x[row * line + u32(left + i32(x0)) * depth :]
            target = patch[ky * patch_line + x0 * depth :]
            count = (x1 - x0) * depth
            if count < SHORT:
                for k in range(count):
                    target[k] = source[k]
            else:
                move(target, source, count)
        else:
            for kx in range(x0, x1):
                column = u32(left + i32(kx * win.dilation_w))
                move(patch[ky * patch_line + kx * depth :], x[row * line + column * depth :], depth)


def window_fields(op: Any, k_h: int, k_w: int) -> dict[str, int]:
    """Fields of Window for an operator whose padding is resolved into elements. Plain Python."""
    o = op.options
    batch, x_h, x_w, depth = (int(n) for n in op.inputs[0].shape)
    _, y_h, y_w, _ = (int(n) for n in op.outputs[0].shape)
    fields = {
        "batch": batch, "x_h": x_h, "x_w": x_w, "depth": depth, "y_h": y_h, "y_w": y_w, "k_h": int(k_h), "k_w": int(k_w),
        "stride_h": o.get("stride_h", 1), "stride_w": o.get("stride_w", 1),
        "dilation_h": o.get("dilation_h", 1), "dilation_w": o.get("dilation_w", 1),
        "pad_top": o.get("pad_top", 0), "pad_left": o.get("pad_left", 0),
    }  # fmt: skip
    for name in ("k_h", "k_w", "stride_h", "stride_w", "dilation_h", "dilation_w"):
        if not 1 <= fields[name] <= MAX_WINDOW:
            raise Unsupported(f"{name} {fields[name]}", f"1 to {MAX_WINDOW}")
    for name in ("batch", "x_h", "x_w", "depth", "y_h", "y_w", "pad_top", "pad_left"):
        if not 0 <= fields[name] <= MAX_SIDE:
            raise Unsupported(f"{name} {fields[name]}", f"up to {MAX_SIDE}")
    return fields
