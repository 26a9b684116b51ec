"""DEPTHWISE_CONV_2D, int8, any window and multiplier.

    y[.., k * m + n] = i8(requantize(bias[k * m + n] + sum_{i, j} x[.., k] * w[i, j, k * m + n], scale[k * m + n]))

    x        i8 [batch, x_h, x_w, depth]
    w        i8 [k_h, k_w, depth * m]  zero point 0
    bias     i32 [depth * m]     folded: bias - x_zero * sum of the channel's weights
    scale    i32 [depth * m, 2]  multiplier and shift
    y        i8 [batch, y_h, y_w, depth * m]
    scratch  i32 [depth * m] sums, then i8 [k_h, k_w, depth] patch

Rows are output rows. Bounds: at most 255 * 255 taps of at most 2**14 each: no partial sum passes 2**30.
"""

from typing import Any

from synapticos.lang import *
from synapticos.kernel.container import LayerCall, LayerCheck
from synapticos.kernel.layers.checks import (
    MAX_SIDE, has_scratch, holds_i8, holds_i32, product, scales_are_sound, takes, trails,
)  # fmt: skip
from synapticos.kernel.layers.requant import OutputRange, range_is_sound, requantize, to_i8
from synapticos.kernel.layers.window import (
    Window, gather, window_is_sound, window_patch_bytes, window_rows, window_x_bytes, window_y_bytes,
)  # fmt: skip
from synapticos.kernel.status import Status


@struct
class DepthwiseParams:
    window: Window
    multiplier: u32  # output channels for each input channel
    x_zero: i32
    out: OutputRange


DEPTHWISE_PARAMS_BYTES: Final[u32] = sizeof(DepthwiseParams)


@fn(pure=True)
def depthwise_operands_fit(check: LayerCheck, p: DepthwiseParams) -> bool:
    """Whether x, w, bias, scale and y have the sizes that the parameters say."""
    if not window_is_sound(p.window) or p.multiplier == 0 or p.multiplier > MAX_SIDE:
        return False
    channels = product(p.window.depth, p.multiplier)
    if channels > MAX_SIDE or not holds_i8(check, 0, window_x_bytes(p.window)):
        return False
    if not holds_i8(check, 1, product(product(p.window.k_h, p.window.k_w), channels)) or not holds_i32(
        check, 2, channels
    ):
        return False
    if not scales_are_sound(check, 3, channels) or not holds_i8(check, 4, window_y_bytes(p.window, channels)):
        return False
    if check.rows > window_rows(p.window) or p.x_zero < -128 or p.x_zero > 127:
        return False
    return range_is_sound(p.out) and trails(check)


@fn
def depthwise_validate(check: LayerCheck) -> Status:
    if not takes(check, 4, DEPTHWISE_PARAMS_BYTES, 0):
        return Status.INVAL
    p = view(DepthwiseParams, check.params)
    if not depthwise_operands_fit(check, p):
        return Status.INVAL
    if not has_scratch(check, 4 * p.window.depth * p.multiplier + window_patch_bytes(p.window)):
        return Status.INVAL
    return Status.OK


@fn(disjoint=True)
def requantize_pixel(
    acc: Ptr[i32], bias: Ptr[i32], scale: Ptr[i32], y: Ptr[i8], channels: u32, out: OutputRange
) -> None:
    """The sums of one pixel as i8."""
    for c in range(channels):
        total = wrap(i32, acc[c] + bias[c])
        y[c] = to_i8(requantize(total, scale[2 * c], scale[2 * c + 1]), out)


@fn(disjoint=True)
def taps_one(patch: Ptr[i8], w: Ptr[i8], acc: Ptr[i32], taps: u32, channels: u32) -> None:
    """Sums of a pixel whose channels have one output each."""
    fill(acc, 0, channels)
    for tap in range(taps):
        x = patch[tap * channels :]
        v = w[tap * channels :]
        for c in range(channels):
            acc[c] += i32(x[c]) * v[c]


@fn(disjoint=True)
def taps_many(patch: Ptr[i8], w: Ptr[i8], acc: Ptr[i32], taps: u32, depth: u32, multiplier: u32) -> None:
    """Sums of a pixel whose channels have several outputs each."""
    channels = depth * multiplier
    fill(acc, 0, channels)
    for tap in range(taps):
        x = patch[tap * depth :]
        v = w[tap * channels :]
        at: u32 = 0
        for c in range(depth):
            value = i32(x[c])
            for n in range(multiplier):
                acc[at] += value * v[at]
                at += 1


@fn
def depthwise_run(call: LayerCall) -> Status:
    p = view(DepthwiseParams, call.params)
    win = p.window
    x = view(i8, call.data[0])
    w = view(i8, call.data[1])
    bias = view(i32, call.data[2])
    scale = view(i32, call.data[3])
    y = view(i8, call.data[4])
    channels = win.depth * p.multiplier
    acc = view(i32, call.scratch[: 4 * channels])
    patch = view(i8, call.scratch)[4 * channels :]
    taps = win.k_h * win.k_w
    zero = i8(p.x_zero)
    picture = win.x_h * win.x_w * win.depth
    for row in range(call.row, call.row_end):
        source = x[row // win.y_h * picture :]
        top = i32(row % win.y_h * win.stride_h) - i32(win.pad_top)
        left = -i32(win.pad_left)
        at = row * win.y_w * channels
        for column in range(win.y_w):
            gather(win, source, top, left, zero, patch)
            if p.multiplier == 1:
                taps_one(patch, w, acc, taps, channels)
            else:
                taps_many(patch, w, acc, taps, win.depth, p.multiplier)
            requantize_pixel(acc, bias, scale, y[at : at + channels], channels, p.out)
            at += channels
            left += i32(win.stride_w)
    return Status.OK


def plan(op: Any) -> Any:
    """The step for a DEPTHWISE_CONV_2D. Plain Python."""
    import numpy as np

    from synapticos.kernel.layers import conv, conv_1x1, depthwise_3x3, quantize
    from synapticos.kernel.layers.variants import DEPTHWISE_3X3_I8, DEPTHWISE_I8, Const, LayerPlan, Unsupported
    from synapticos.kernel.layers.window import window_fields

    x, w, bias = (list(op.inputs) + [None])[:3]
    y = op.outputs[0]
    quantize.require_int8(x, y)
    if len(x.shape) != 4 or len(y.shape) != 4:
        raise Unsupported(f"an input of rank {len(x.shape)}", "rank 4")
    _, k_h, k_w, channels = w.shape
    weights = quantize.weights_of(w, channels)
    depth = x.shape[3]
    if channels % depth or w.shape[0] != 1:
        raise Unsupported(f"{channels} filters for {depth} channels", "a multiple of the channels")
    by_channel = np.ascontiguousarray(weights[0].transpose(2, 0, 1))  # [channels, k_h, k_w]
    if depth == 1:  # every filter takes the one channel: that is a convolution
        return conv.plan_conv(op, x, w, by_channel.reshape(channels, k_h, k_w, 1), bias, y, conv_1x1)
    window = window_fields(op, k_h, k_w)
    low, high = quantize.activation_range(op.options.get("activation", "NONE"), y)
    zero, x_zero = int(y.zero[0]), int(x.zero[0])
    params = pack(
        DepthwiseParams, window=window, multiplier=channels // depth, x_zero=x_zero,
        out={"zero": zero, "low": low - zero, "high": high - zero},
    )  # fmt: skip
    three = depthwise_3x3.fits(window, channels // depth)
    scratch = k_h * k_w * depth + (0 if three else 4 * channels)
    return LayerPlan(
        variant=DEPTHWISE_3X3_I8 if three else DEPTHWISE_I8,
        inputs=[
            x,
            w,
            Const(f"{w.name}/bias", quantize.folded_bias(bias, by_channel.reshape(channels, k_h * k_w), x_zero)),
            Const(f"{w.name}/scale", quantize.channel_multipliers(x, w, y, channels)),
        ],
        outputs=[y],
        params=params,
        scratch=-(-scratch // 16) * 16,
        cost=window["batch"] * window["y_h"] * window["y_w"] * channels * k_h * k_w,
        rows=window["batch"] * window["y_h"],
    )
