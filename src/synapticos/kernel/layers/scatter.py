"""TRANSPOSE_CONV, int8, int16 and float32: every output element gathers what the inputs would scatter onto it.

    y[r, c, o] = out(bias[o] + sum_{i, j, k} (x[i, j, k] - x_zero) * w[o, r + top - i * s_h, c + left - j * s_w, k])

    x      i8, i16 or f32 [batch, x_h, x_w, depth]
    w      i8 (of i16 too) or f32 [channels, k_h, k_w, depth]   zero point 0
    bias   i32 or f32 [channels]; of int16 i32 [channels, 2], 64 bits each
    scale  i32 [channels, 2]   multiplier and shift, of integers
    y      i8, i16 or f32 [batch, y_h, y_w, channels]

Terms are taken in the order i, j, k where the window has them; the sum of f32 begins at 0, gets the bias last, and each
operation is rounded. Rows are output lines. Bounds: k_h * k_w * depth <= 65536 keeps a sum of int8 below 2**31 less the
bias; it is modulo 2**32.
"""

from typing import Any

from synapticos.lang import *
from synapticos.kernel.container import DTYPE_FLOAT32, DTYPE_INT8, DTYPE_INT16, DTYPE_INT32, LayerCall, LayerCheck
from synapticos.kernel.layers.checks import MAX_SIDE, apart, product, scales_are_sound, takes
from synapticos.kernel.layers.operands import holds, holds_const
from synapticos.kernel.layers.requant import OutputRange, range_is_sound, requantize, to_i8
from synapticos.kernel.layers.wide import holds_halves, requantize_wide, wide_bias, wide_scales_are_sound
from synapticos.kernel.layers.window import (
    Window, window_is_sound, window_patch_bytes, window_rows, window_x_bytes, window_y_bytes,
)  # fmt: skip
from synapticos.kernel.status import Status


@struct
class ScatterParams:
    window: Window  # its strides and padding are those of the output
    channels: u32
    x_zero: i32
    out: OutputRange


SCATTER_PARAMS_BYTES: Final[u32] = sizeof(ScatterParams)


@fn(pure=True)
def scatter_fits(check: LayerCheck, dtype: u8, weights: u8, out: u32) -> bool:
    p = view(ScatterParams, check.params)
    if not window_is_sound(p.window) or p.channels == 0 or p.channels > MAX_SIDE:
        return False
    if not holds(check, 0, dtype, window_x_bytes(p.window)):
        return False
    if not holds_const(check, 1, weights, product(window_patch_bytes(p.window), p.channels)):
        return False
    if not holds(check, out, dtype, window_y_bytes(p.window, p.channels)):
        return False
    return check.rows <= window_rows(p.window) and apart(check, False)


@fn
def scatter_i8_validate(check: LayerCheck) -> Status:
    if not takes(check, 4, SCATTER_PARAMS_BYTES, 0) or not scatter_fits(check, DTYPE_INT8, DTYPE_INT8, 4):
        return Status.INVAL
    p = view(ScatterParams, check.params)
    if not holds_const(check, 2, DTYPE_INT32, p.channels):
        return Status.INVAL
    if p.x_zero < -128 or p.x_zero > 127 or not range_is_sound(p.out) or not scales_are_sound(check, 3, p.channels):
        return Status.INVAL
    return Status.OK


@fn
def scatter_f32_validate(check: LayerCheck) -> Status:
    if not takes(check, 3, SCATTER_PARAMS_BYTES, 0) or not scatter_fits(check, DTYPE_FLOAT32, DTYPE_FLOAT32, 3):
        return Status.INVAL
    if not holds_const(check, 2, DTYPE_FLOAT32, view(ScatterParams, check.params).channels):
        return Status.INVAL
    return Status.OK


@fn
def scatter_i16_validate(check: LayerCheck) -> Status:
    if not takes(check, 4, SCATTER_PARAMS_BYTES, 0) or not scatter_fits(check, DTYPE_INT16, DTYPE_INT8, 4):
        return Status.INVAL
    p = view(ScatterParams, check.params)
    if not holds_halves(check, 2, p.channels) or not wide_scales_are_sound(check, 3, p.channels):
        return Status.INVAL
    return Status.OK


@fn(pure=True)
def first_source(at: u32, k: u32, stride: u32) -> u32:
    """The first input line that reaches place `at` of the padded output with a window of k."""
    if at < k:
        return 0
    return (at - k) // stride + 1


@fn
def scatter_i8_run(call: LayerCall) -> Status:
    p = view(ScatterParams, call.params)
    win = p.window
    n = win.depth
    w = view(i8, call.data[1])
    bias = view(i32, call.data[2])
    scale = view(i32, call.data[3])
    for row in range(call.row, call.row_end):
        picture = view(i8, call.data[0])[row // win.y_h * win.x_h * win.x_w * n :]
        down = row % win.y_h + win.pad_top
        i0 = first_source(down, win.k_h, win.stride_h)
        i1 = min(down // win.stride_h + 1, win.x_h)
        for column in range(win.y_w):
            across = column + win.pad_left
            j0 = first_source(across, win.k_w, win.stride_w)
            j1 = min(across // win.stride_w + 1, win.x_w)
            y = view(i8, call.data[4])[(row * win.y_w + column) * p.channels :]
            for o in range(p.channels):
                acc = bias[o]
                for i in range(i0, i1):
                    for j in range(j0, j1):
                        x = picture[(i * win.x_w + j) * n :]
                        tap = (o * win.k_h + down - i * win.stride_h) * win.k_w + across - j * win.stride_w
                        for k in range(n):
                            acc = wrap(i32, acc + (i32(x[k]) - p.x_zero) * w[tap * n + k])
                y[o] = to_i8(requantize(acc, scale[2 * o], scale[2 * o + 1]), p.out)
    return Status.OK


@fn
def scatter_i16_run(call: LayerCall) -> Status:
    p = view(ScatterParams, call.params)
    win = p.window
    n = win.depth
    w = view(i8, call.data[1])
    bias = view(i32, call.data[2])
    scale = view(i32, call.data[3])
    for row in range(call.row, call.row_end):
        picture = view(i16, call.data[0])[row // win.y_h * win.x_h * win.x_w * n :]
        down = row % win.y_h + win.pad_top
        i0 = first_source(down, win.k_h, win.stride_h)
        i1 = min(down // win.stride_h + 1, win.x_h)
        for column in range(win.y_w):
            across = column + win.pad_left
            j0 = first_source(across, win.k_w, win.stride_w)
            j1 = min(across // win.stride_w + 1, win.x_w)
            y = view(i16, call.data[4])[(row * win.y_w + column) * p.channels :]
            for o in range(p.channels):
                acc = wide_bias(bias, o)
                for i in range(i0, i1):
                    for j in range(j0, j1):
                        x = picture[(i * win.x_w + j) * n :]
                        tap = (o * win.k_h + down - i * win.stride_h) * win.k_w + across - j * win.stride_w
                        for k in range(n):
                            acc = wrap(i64, acc + i64(i32(x[k]) * w[tap * n + k]))
                value = requantize_wide(acc, scale[2 * o], scale[2 * o + 1])
                y[o] = i16(min(max(value, -32768), 32767))
    return Status.OK


@fn(nan=True)
def scatter_f32_run(call: LayerCall) -> Status:
    p = view(ScatterParams, call.params)
    win = p.window
    n = win.depth
    w = view(f32, call.data[1])
    bias = view(f32, call.data[2])
    for row in range(call.row, call.row_end):
        picture = view(f32, call.data[0])[row // win.y_h * win.x_h * win.x_w * n :]
        down = row % win.y_h + win.pad_top
        i0 = first_source(down, win.k_h, win.stride_h)
        i1 = min(down // win.stride_h + 1, win.x_h)
        for column in range(win.y_w):
            across = column + win.pad_left
            j0 = first_source(across, win.k_w, win.stride_w)
            j1 = min(across // win.stride_w + 1, win.x_w)
            y = view(f32, call.data[3])[(row * win.y_w + column) * p.channels :]
            for o in range(p.channels):
                total: f32 = 0.0
                for i in range(i0, i1):
                    for j in range(j0, j1):
                        x = picture[(i * win.x_w + j) * n :]
                        tap = (o * win.k_h + down - i * win.stride_h) * win.k_w + across - j * win.stride_w
                        for k in range(n):
                            total += x[k] * w[tap * n + k]
                y[o] = total + bias[o]
    return Status.OK


def plan(op: Any) -> Any:
    """The step for a TRANSPOSE_CONV. Plain Python."""
    import numpy as np

    from synapticos.kernel.layers import quantize
    from synapticos.kernel.layers.operands import require
    from synapticos.kernel.layers.variants import SCATTER_F32, SCATTER_I8, SCATTER_I16, Const, LayerPlan, Unsupported
    from synapticos.kernel.layers.wide import MAX_WIDE_SHIFT, require_wide, wide_bias_halves
    from synapticos.kernel.layers.window import window_fields

    x, w, bias = (list(op.inputs) + [None])[:3]
    y = op.outputs[0]
    channels, k_h, k_w, depth = (int(n) for n in w.shape)
    window = window_fields(op, k_h, k_w)
    if k_h * k_w * depth > 65536:
        raise Unsupported(f"a filter of {k_h * k_w * depth} weights a channel", "up to 65536")
    fields: dict[str, Any] = dict(window=window, channels=channels)
    rows = window["batch"] * window["y_h"]
    cost = window["batch"] * window["x_h"] * window["x_w"] * channels * k_h * k_w * depth
    if x.dtype == "float32":
        require("float32", w, y)
        values = np.zeros(channels, np.float32) if bias is None else bias.data.reshape(-1)
        inputs, variant = [x, w, Const(f"{w.name}/bias", values)], SCATTER_F32
        fields["out"] = {"zero": 0, "low": 0, "high": 0}
    elif x.dtype == "int16":
        require_wide(x, y)
        quantize.weights_of(w, channels)
        made = quantize.channel_multipliers(x, w, y, channels)
        if made[:, 1].max() > MAX_WIDE_SHIFT:
            raise Unsupported(f"sums 2**{made[:, 1].max()} times finer than the output", f"2**{MAX_WIDE_SHIFT}")
        inputs = [x, w, Const(f"{w.name}/bias", wide_bias_halves(bias, channels)), Const(f"{w.name}/scale", made)]
        variant, fields["out"] = SCATTER_I16, {"zero": 0, "low": 0, "high": 0}
    else:
        quantize.require_int8(x, y)
        weights = quantize.weights_of(w, channels)
        zero = int(y.zero[0])
        fields |= dict(x_zero=int(x.zero[0]), out={"zero": zero, "low": -128 - zero, "high": 127 - zero})
        values = quantize.folded_bias(bias, weights.reshape(channels, -1), 0)
        scales = Const(f"{w.name}/scale", quantize.channel_multipliers(x, w, y, channels))
        inputs, variant = [x, w, Const(f"{w.name}/bias", values), scales], SCATTER_I8
    return LayerPlan(variant, inputs, [y], pack(ScatterParams, **fields), scratch=0, cost=cost, rows=rows)
