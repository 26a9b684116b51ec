"""CONV_2D, DEPTHWISE_CONV_2D and both pools of int16, the convolutions with int8 weights.

    CONV       y[r, c, o] = i16(requantize_wide(bias[o] + sum_{i, j, k} x[r * s + i * d - top, c * s + j * d - left, g + k] * w[o, i, j, k]))
    DEPTHWISE  y[r, c, o] = i16(requantize_wide(bias[o] + sum_{i, j} x[.., o / multiplier] * w[i, j, o]))
    AVERAGE    y[r, c, k] = clamp((sum +- count / 2) / count)    over the taps inside; both quotients truncate
    MAX        y[r, c, k] = clamp(largest x[.., k])

    x      i16 [batch, x_h, x_w, depth]   zero point 0, as everywhere here
    w      i8 [channels, k_h, k_w, depth / groups], or [k_h, k_w, channels] of a depthwise one
    bias   i32 [channels, 2]   64 bits each
    scale  i32 [channels, 2]   multiplier and shift
    y      i16 [batch, y_h, y_w, channels]

Rows are output rows. Bounds: a product is below 2**22, so sums stay far inside 64 bits; a pool's sum of 255 * 255 below
2**31.
"""

from typing import Any

from synapticos.lang import *
from synapticos.kernel.container import DTYPE_INT8, DTYPE_INT16, LayerCall, LayerCheck
from synapticos.kernel.layers.checks import MAX_SIDE, product, takes, trails
from synapticos.kernel.layers.operands import holds, holds_const
from synapticos.kernel.layers.wide import holds_halves, requantize_wide, wide_bias, wide_scales_are_sound
from synapticos.kernel.layers.window import (
    Window, end_tap, first_tap, window_is_sound, window_rows, window_x_bytes, window_y_bytes,
)  # fmt: skip
from synapticos.kernel.status import Status


@struct
class WindowI16Params:
    window: Window
    channels: u32
    groups: u32  # 1 of a pool; the multiplier of a depthwise convolution
    low: i32
    high: i32


WINDOW_I16_PARAMS_BYTES: Final[u32] = sizeof(WindowI16Params)


@fn(pure=True)
def window_i16_fits(check: LayerCheck, p: WindowI16Params, out: u32) -> bool:
    """Whether picture and output, operand `out`, have the sizes that the parameters say."""
    if not window_is_sound(p.window) or p.channels == 0 or p.channels > MAX_SIDE or p.groups == 0 or p.groups > MAX_SIDE:
        return False
    if not holds(check, 0, DTYPE_INT16, window_x_bytes(p.window)):
        return False
    if not holds(check, out, DTYPE_INT16, window_y_bytes(p.window, p.channels)):
        return False
    if p.low < -32768 or p.high > 32767 or p.low > p.high:
        return False
    return check.rows <= window_rows(p.window) and trails(check)


@fn
def conv_i16_validate(check: LayerCheck) -> Status:
    if not takes(check, 4, WINDOW_I16_PARAMS_BYTES, 0):
        return Status.INVAL
    p = view(WindowI16Params, check.params)
    if not window_i16_fits(check, p, 4) or p.window.depth % p.groups != 0 or p.channels % p.groups != 0:
        return Status.INVAL
    taps = product(product(p.window.k_h, p.window.k_w), p.window.depth // p.groups)
    if not holds_const(check, 1, DTYPE_INT8, product(taps, p.channels)):
        return Status.INVAL
    if not holds_halves(check, 2, p.channels) or not wide_scales_are_sound(check, 3, p.channels):
        return Status.INVAL
    return Status.OK


@fn
def conv_i16_run(call: LayerCall) -> Status:
    p = view(WindowI16Params, call.params)
    win = p.window
    bias = view(i32, call.data[2])
    scale = view(i32, call.data[3])
    y = view(i16, call.data[4])
    part = win.depth // p.groups
    each = p.channels // p.groups
    line = win.x_w * win.depth
    at = call.row * win.y_w * p.channels
    for row in range(call.row, call.row_end):
        x = view(i16, call.data[0])[row // win.y_h * win.x_h * line :]
        top = i32(row % win.y_h * win.stride_h) - i32(win.pad_top)
        i0 = first_tap(top, win.dilation_h)
        i1 = end_tap(top, win.dilation_h, win.x_h, win.k_h)
        left = -i32(win.pad_left)
        for column in range(win.y_w):
            j0 = first_tap(left, win.dilation_w)
            j1 = end_tap(left, win.dilation_w, win.x_w, win.k_w)
            for o in range(p.channels):
                first = o // each * part
                acc = wide_bias(bias, o)
                for i in range(i0, i1):
                    source = x[u32(top + i32(i * win.dilation_h)) * line + first :]
                    taps = view(i8, call.data[1])[(o * win.k_h + i) * win.k_w * part :]
                    for j in range(j0, j1):
                        from_ = source[u32(left + i32(j * win.dilation_w)) * win.depth :]
                        w = taps[j * part :]
                        for k in range(part):
                            acc = wrap(i64, acc + i64(i32(from_[k]) * w[k]))
                value = requantize_wide(acc, scale[2 * o], scale[2 * o + 1])
                y[at + o] = i16(min(max(value, p.low), p.high))
            at += p.channels
            left += i32(win.stride_w)
    return Status.OK


@fn
def depthwise_i16_validate(check: LayerCheck) -> Status:
    if not takes(check, 4, WINDOW_I16_PARAMS_BYTES, 0):
        return Status.INVAL
    p = view(WindowI16Params, check.params)
    if not window_i16_fits(check, p, 4) or product(p.window.depth, p.groups) != p.channels:
        return Status.INVAL
    if not holds_const(check, 1, DTYPE_INT8, product(product(p.window.k_h, p.window.k_w), p.channels)):
        return Status.INVAL
    if not holds_halves(check, 2, p.channels) or not wide_scales_are_sound(check, 3, p.channels):
        return Status.INVAL
    return Status.OK


@fn
def depthwise_i16_run(call: LayerCall) -> Status:
    p = view(WindowI16Params, call.params)
    win = p.window
    w = view(i8, call.data[1])
    bias = view(i32, call.data[2])
    scale = view(i32, call.data[3])
    y = view(i16, call.data[4])
    line = win.x_w * win.depth
    at = call.row * win.y_w * p.channels
    for row in range(call.row, call.row_end):
        x = view(i16, call.data[0])[row // win.y_h * win.x_h * line :]
        top = i32(row % win.y_h * win.stride_h) - i32(win.pad_top)
        i0 = first_tap(top, win.dilation_h)
        i1 = end_tap(top, win.dilation_h, win.x_h, win.k_h)
        left = -i32(win.pad_left)
        for column in range(win.y_w):
            j0 = first_tap(left, win.dilation_w)
            j1 = end_tap(left, win.dilation_w, win.x_w, win.k_w)
            for o in range(p.channels):
                acc = wide_bias(bias, o)
                for i in range(i0, i1):
                    source = u32(top + i32(i * win.dilation_h)) * line + o // p.groups
                    taps = i * win.k_w * p.channels + o
                    for j in range(j0, j1):
                        value = x[source + u32(left + i32(j * win.dilation_w)) * win.depth]
                        acc = wrap(i64, acc + i64(i32(value) * w[taps + j * p.channels]))
                result = requantize_wide(acc, scale[2 * o], scale[2 * o + 1])
                y[at + o] = i16(min(max(result, p.low), p.high))
            at += p.channels
            left += i32(win.stride_w)
    return Status.OK


@fn(pure=True)
def pool_i16_fits(check: LayerCheck) -> bool:
    if not takes(check, 1, WINDOW_I16_PARAMS_BYTES, 0):
        return False
    p = view(WindowI16Params, check.params)
    return window_i16_fits(check, p, 1) and p.channels == p.window.depth


@fn
def average_pool_i16_validate(check: LayerCheck) -> Status:
    if not pool_i16_fits(check):
        return Status.INVAL
    return Status.OK


@fn
def max_pool_i16_validate(check: LayerCheck) -> Status:
    if not pool_i16_fits(check):
        return Status.INVAL
    return Status.OK


@fn
def pool_i16_row(call: LayerCall, p: WindowI16Params, row: u32, average: bool) -> None:
    """One output row."""
    win = p.window
    n = win.depth
    line = win.x_w * n
    x = view(i16, call.data[0])[row // win.y_h * win.x_h * line :]
    y = view(i16, call.data[1])
    top = i32(row % win.y_h * win.stride_h) - i32(win.pad_top)
    i0 = first_tap(top, 1)
    i1 = end_tap(top, 1, win.x_h, win.k_h)
    left = -i32(win.pad_left)
    at = row * win.y_w * n
    for column in range(win.y_w):
        j0 = first_tap(left, 1)
        j1 = end_tap(left, 1, win.x_w, win.k_w)
        for k in range(n):
            total: i32 = 0
            count: i32 = 0
            best: i32 = -32768
            for i in range(i0, i1):
                for j in range(j0, j1):
                    value = i32(x[u32(top + i32(i)) * line + u32(left + i32(j)) * n + k])
                    total = wrap(i32, total + value)
                    count += 1
                    best = max(best, value)
            if not average:
                total = best
            elif count > 0:
                half = count >> 1
                if total > 0:
                    total = div_trunc(wrap(i32, total + half), count)
                else:
                    total = div_trunc(wrap(i32, total - half), count)
            y[at + k] = i16(min(max(total, p.low), p.high))
        at += n
        left += i32(win.stride_w)


@fn
def average_pool_i16_run(call: LayerCall) -> Status:
    p = view(WindowI16Params, call.params)
    for row in range(call.row, call.row_end):
        pool_i16_row(call, p, row, True)
    return Status.OK


@fn
def max_pool_i16_run(call: LayerCall) -> Status:
    p = view(WindowI16Params, call.params)
    for row in range(call.row, call.row_end):
        pool_i16_row(call, p, row, False)
    return Status.OK


def plan(op: Any) -> Any:
    """The step for a convolution or a pool of int16. Plain Python."""
    from synapticos.kernel.layers import quantize, variants
    from synapticos.kernel.layers.wide import MAX_WIDE_SHIFT, require_wide, wide_bias_halves, wide_limits
    from synapticos.kernel.layers.window import window_fields

    x, y = op.inputs[0], op.outputs[0]
    require_wide(x, y)
    low, high = wide_limits(op.options.get("activation", "NONE"), y)
    inputs, groups, depth = [x], 1, 1
    channels = int(y.shape[3])
    if op.kind in ("CONV_2D", "DEPTHWISE_CONV_2D"):
        w, bias = op.inputs[1], (list(op.inputs) + [None])[2]
        quantize.weights_of(w, channels)
        k_h, k_w = w.shape[1:3]
        variant = variants.CONV_I16 if op.kind == "CONV_2D" else variants.DEPTHWISE_I16
        if op.kind == "CONV_2D":
            depth = int(w.shape[3])
            groups = int(x.shape[3]) // depth
            if groups * depth != int(x.shape[3]) or channels % groups:
                raise variants.Unsupported(f"{x.shape[3]} channels in groups of {depth}", "groups of equal size")
        else:
            groups = channels // int(x.shape[3])
        scales = quantize.channel_multipliers(x, w, y, channels)
        if scales[:, 1].max() > MAX_WIDE_SHIFT:
            raise variants.Unsupported(f"sums 2**{scales[:, 1].max()} times finer than the output", f"2**{MAX_WIDE_SHIFT}")
        inputs += [w, variants.Const(f"{w.name}/bias", wide_bias_halves(bias, channels))]
        inputs += [variants.Const(f"{w.name}/scale", scales)]
    else:
        if (float(x.scale[0])) != float(y.scale[0]):
            raise variants.Unsupported("an output scale other than the input's", "equal scales")
        k_h, k_w = op.options["filter_h"], op.options["filter_w"]
        variant = variants.AVERAGE_POOL_I16 if op.kind == "AVERAGE_POOL_2D" else variants.MAX_POOL_I16
    window = window_fields(op, k_h, k_w)
    params = pack(WindowI16Params, window=window, channels=channels, groups=groups, low=low, high=high)
    rows = window["batch"] * window["y_h"]
    cost = rows * window["y_w"] * channels * k_h * k_w * depth
    return variants.LayerPlan(variant, inputs, [y], params, scratch=0, cost=cost, rows=rows)
