"""CONV_2D, int8, any window: the patch of each pixel is gathered into scratch, then all channels take it.

    y[r, c, o] = i8(requantize(bias[o] + sum_{i, j, k} x[r * s + i * d - top, c * s + j * d - left, k] * w[o, i, j, k], scale[o]))

    x        i8 [batch, x_h, x_w, depth]
    w        i8 [channels, k_h, k_w, depth]  zero point 0
    bias     i32 [channels]     folded: bias - x_zero * sum of the channel's weights
    scale    i32 [channels, 2]  multiplier and shift
    y        i8 [batch, y_h, y_w, channels]
    scratch  i8 [k_h, k_w, depth]

Rows are output rows. Bounds: k_h * k_w * depth <= 65536, so no partial sum passes 2**30 (see `dot`).
"""

from typing import Any

from synapticos.lang import *
from synapticos.kernel.container import LayerCall, LayerCheck
from synapticos.kernel.layers.checks import (
    MAX_SIDE, has_scratch, holds_i8, holds_i32, product, scales_are_sound, takes, trails,
)  # fmt: skip
from synapticos.kernel.layers.dot import MAX_DEPTH, dot_pixel
from synapticos.kernel.layers.requant import OutputRange, range_is_sound
from synapticos.kernel.layers.window import (
    Window, gather, window_is_sound, window_patch_bytes, window_rows, window_x_bytes, window_y_bytes,
)  # fmt: skip
from synapticos.kernel.status import Status


@struct
class ConvParams:
    window: Window
    channels: u32
    x_zero: i32
    out: OutputRange


CONV_PARAMS_BYTES: Final[u32] = sizeof(ConvParams)


@fn(pure=True)
def conv_operands_fit(check: LayerCheck, p: ConvParams) -> bool:
    """Whether x, w, bias, scale and y have the sizes that the parameters say."""
    if not window_is_sound(p.window) or p.channels == 0 or p.channels > MAX_SIDE:
        return False
    patch = window_patch_bytes(p.window)
    if patch > MAX_DEPTH or not holds_i8(check, 0, window_x_bytes(p.window)):
        return False
    if not holds_i8(check, 1, product(patch, p.channels)) or not holds_i32(check, 2, p.channels):
        return False
    if not scales_are_sound(check, 3, p.channels) or not holds_i8(check, 4, window_y_bytes(p.window, p.channels)):
        return False
    if check.rows > window_rows(p.window) or p.x_zero < -128 or p.x_zero > 127:
        return False
    return range_is_sound(p.out) and trails(check)


@fn
def conv_validate(check: LayerCheck) -> Status:
    if not takes(check, 4, CONV_PARAMS_BYTES, 0):
        return Status.INVAL
    p = view(ConvParams, check.params)
    if not conv_operands_fit(check, p):
        return Status.INVAL
    if not has_scratch(check, window_patch_bytes(p.window)):
        return Status.INVAL
    return Status.OK


@fn
def conv_run(call: LayerCall) -> Status:
    p = view(ConvParams, call.params)
    win = p.window
    x = view(i8, call.data[0])
    w = view(i8, call.data[1])
    bias = view(i32, call.data[2])
    scale = view(i32, call.data[3])
    y = view(i8, call.data[4])
    patch = view(i8, call.scratch)
    depth = win.k_h * win.k_w * win.depth
    channels = p.channels
    zero = i8(p.x_zero)
    picture = win.x_h * win.x_w * win.depth
    for row in range(call.row, call.row_end):
        source = x[row // win.y_h * picture :]
        top = i32(row % win.y_h * win.stride_h) - i32(win.pad_top)
        left = -i32(win.pad_left)
        at = row * win.y_w * channels
        for column in range(win.y_w):
            gather(win, source, top, left, zero, patch)
            dot_pixel(patch, w, bias, scale, 2, y[at : at + channels], depth, channels, p.out)
            at += channels
            left += i32(win.stride_w)
    return Status.OK


def plan(op: Any) -> Any:
    """The step for a CONV_2D. Plain Python."""
    from synapticos.kernel.layers import conv_1x1, quantize, variants

    x, w, bias = (list(op.inputs) + [None])[:3]
    y = op.outputs[0]
    quantize.require_int8(x, y)
    if len(x.shape) != 4 or len(y.shape) != 4:
        raise variants.Unsupported(f"an input of rank {len(x.shape)}", "rank 4")
    channels, k_h, k_w, depth = w.shape
    weights = quantize.weights_of(w, channels)
    if depth != x.shape[3]:
        raise variants.Unsupported(f"grouped convolution ({x.shape[3]} channels, {depth} a filter)", "one group")
    return plan_conv(op, x, w, weights, bias, y, conv_1x1)


def plan_conv(op: Any, x: Any, w: Any, weights: Any, bias: Any, y: Any, small: Any) -> Any:
    """The step for weights [channels, k_h, k_w, depth]; `small` is the module for 1 x 1 windows. Plain Python."""
    from synapticos.kernel.layers import quantize
    from synapticos.kernel.layers.variants import CONV_1X1_I8, CONV_I8, Const, LayerPlan, Unsupported
    from synapticos.kernel.layers.window import window_fields

    channels, k_h, k_w, depth = weights.shape
    taps = k_h * k_w * depth
    if taps > MAX_DEPTH:
        raise Unsupported(f"a filter of {taps} weights a channel", f"up to {MAX_DEPTH}")
    window = window_fields(op, k_h, k_w)
    low, high = quantize.activation_range(op.options.get("activation", "NONE"), y)
    x_zero = int(x.zero[0])
    params = pack(
        ConvParams, window=window, channels=channels, x_zero=x_zero,
        out={"zero": int(y.zero[0]), "low": low - int(y.zero[0]), "high": high - int(y.zero[0])},
    )  # fmt: skip
    pixels = window["batch"] * window["y_h"] * window["y_w"]
    direct = small.fits(window)
    return LayerPlan(
        variant=CONV_1X1_I8 if direct else CONV_I8,
        inputs=[
            x,
            Const(f"{w.name}/weights", weights) if weights is not w.data else w,
            Const(f"{w.name}/bias", quantize.folded_bias(bias, weights.reshape(channels, taps), x_zero)),
            Const(f"{w.name}/scale", quantize.channel_multipliers(x, w, y, channels)),
        ],
        outputs=[y],
        params=params,
        scratch=0 if direct else -(-taps // 16) * 16,
        cost=pixels * channels * taps,
        rows=window["batch"] * window["y_h"],
    )
