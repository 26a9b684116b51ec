"""CONV_2D, DEPTHWISE_CONV_2D and both pools of float32, tap by tap in the order of the reference.

    CONV       y[r, c, o] = clamp(sum_{i, j, k} x[r * s + i * d - top, c * s + j * d - left, g + k] * w[o, i, j, k] + bias[o])
    DEPTHWISE  y[r, c, o] = clamp(sum_{i, j} x[.., o / multiplier] * w[i, j, o] + bias[o])
    AVERAGE    y[r, c, k] = clamp(sum_{i, j} x[.., k] / taps inside the picture)
    MAX        y[r, c, k] = clamp(largest x[.., k])

    x     f32 [batch, x_h, x_w, depth]
    w     f32 [channels, k_h, k_w, depth / groups], or [k_h, k_w, channels] of a depthwise one
    bias  f32 [channels]
    y     f32 [batch, y_h, y_w, channels]

Every sum begins at 0 and takes its terms in the order i, j, k; each product and each sum is rounded. Rows are output
rows.
"""

from typing import Any

from synapticos.lang import *
from synapticos.kernel.container import DTYPE_FLOAT32, LayerCall, LayerCheck
from synapticos.kernel.layers.checks import MAX_SIDE, product, takes, trails
from synapticos.kernel.layers.elements_f32 import clamp_f32
from synapticos.kernel.layers.operands import holds, holds_const
from synapticos.kernel.layers.window import (
    Window, end_tap, first_tap, window_is_sound, window_rows, window_x_bytes, window_y_bytes,
)  # fmt: skip
from synapticos.kernel.status import Status

LOWEST_F32 = -3.4028234663852886e38


@struct
class WindowF32Params:
    window: Window
    channels: u32
    groups: u32  # 1 of a pool; the multiplier of a depthwise convolution
    low: f32
    high: f32


WINDOW_F32_PARAMS_BYTES: Final[u32] = sizeof(WindowF32Params)


@fn(pure=True)
def window_f32_fits(check: LayerCheck, p: WindowF32Params, out: u32) -> bool:
    """Whether picture and output, operand `out`, have the sizes that the parameters say."""
    if not window_is_sound(p.window) or p.channels == 0 or p.channels > MAX_SIDE or p.groups == 0 or p.groups > MAX_SIDE:
        return False
    if not holds(check, 0, DTYPE_FLOAT32, window_x_bytes(p.window)):
        return False
    if not holds(check, out, DTYPE_FLOAT32, window_y_bytes(p.window, p.channels)) or isnan(p.low) or isnan(p.high):
        return False
    return check.rows <= window_rows(p.window) and trails(check)


@fn
def conv_f32_validate(check: LayerCheck) -> Status:
    if not takes(check, 3, WINDOW_F32_PARAMS_BYTES, 0):
        return Status.INVAL
    p = view(WindowF32Params, check.params)
    if not window_f32_fits(check, p, 3) or p.window.depth % p.groups != 0 or p.channels % p.groups != 0:
        return Status.INVAL
    taps = product(product(p.window.k_h, p.window.k_w), p.window.depth // p.groups)
    if not holds_const(check, 1, DTYPE_FLOAT32, product(taps, p.channels)):
        return Status.INVAL
    if not holds_const(check, 2, DTYPE_FLOAT32, p.channels):
        return Status.INVAL
    return Status.OK


@fn(nan=True)
def conv_f32_run(call: LayerCall) -> Status:
    p = view(WindowF32Params, call.params)
    win = p.window
    bias = view(f32, call.data[2])
    y = view(f32, call.data[3])
    part = win.depth // p.groups
    each = p.channels // p.groups
    line = win.x_w * win.depth
    at = call.row * win.y_w * p.channels
    for row in range(call.row, call.row_end):
        x = view(f32, call.data[0])[row // win.y_h * win.x_h * line :]
        top = i32(row % win.y_h * win.stride_h) - i32(win.pad_top)
        i0 = first_tap(top, win.dilation_h)
        i1 = end_tap(top, win.dilation_h, win.x_h, win.k_h)
        left = -i32(win.pad_left)
        for column in range(win.y_w):
            j0 = first_tap(left, win.dilation_w)
            j1 = end_tap(left, win.dilation_w, win.x_w, win.k_w)
            for o in range(p.channels):
                first = o // each * part
                total: f32 = 0.0
                for i in range(i0, i1):
                    source = x[u32(top + i32(i * win.dilation_h)) * line + first :]
                    taps = view(f32, call.data[1])[(o * win.k_h + i) * win.k_w * part :]
                    for j in range(j0, j1):
                        from_ = source[u32(left + i32(j * win.dilation_w)) * win.depth :]
                        w = taps[j * part :]
                        for k in range(part):
                            total += from_[k] * w[k]
                y[at + o] = clamp_f32(total + bias[o], p.low, p.high)
            at += p.channels
            left += i32(win.stride_w)
    return Status.OK


@fn
def depthwise_f32_validate(check: LayerCheck) -> Status:
    if not takes(check, 3, WINDOW_F32_PARAMS_BYTES, 0):
        return Status.INVAL
    p = view(WindowF32Params, check.params)
    if not window_f32_fits(check, p, 3) or product(p.window.depth, p.groups) != p.channels:
        return Status.INVAL
    if not holds_const(check, 1, DTYPE_FLOAT32, product(product(p.window.k_h, p.window.k_w), p.channels)):
        return Status.INVAL
    if not holds_const(check, 2, DTYPE_FLOAT32, p.channels):
        return Status.INVAL
    return Status.OK


@fn(nan=True)
def depthwise_f32_run(call: LayerCall) -> Status:
    p = view(WindowF32Params, call.params)
    win = p.window
    w = view(f32, call.data[1])
    bias = view(f32, call.data[2])
    y = view(f32, call.data[3])
    line = win.x_w * win.depth
    at = call.row * win.y_w * p.channels
    for row in range(call.row, call.row_end):
        x = view(f32, call.data[0])[row // win.y_h * win.x_h * line :]
        top = i32(row % win.y_h * win.stride_h) - i32(win.pad_top)
        i0 = first_tap(top, win.dilation_h)
        i1 = end_tap(top, win.dilation_h, win.x_h, win.k_h)
        left = -i32(win.pad_left)
        for column in range(win.y_w):
            j0 = first_tap(left, win.dilation_w)
            j1 = end_tap(left, win.dilation_w, win.x_w, win.k_w)
            for o in range(p.channels):
                channel = o // p.groups
                total: f32 = 0.0
                for i in range(i0, i1):
                    source = u32(top + i32(i * win.dilation_h)) * line + channel
                    taps = i * win.k_w * p.channels + o
                    for j in range(j0, j1):
                        total += x[source + u32(left + i32(j * win.dilation_w)) * win.depth] * w[taps + j * p.channels]
                y[at + o] = clamp_f32(total + bias[o], p.low, p.high)
            at += p.channels
            left += i32(win.stride_w)
    return Status.OK


@fn(pure=True)
def pool_f32_fits(check: LayerCheck) -> bool:
    if not takes(check, 1, WINDOW_F32_PARAMS_BYTES, 0):
        return False
    p = view(WindowF32Params, check.params)
    return window_f32_fits(check, p, 1) and p.channels == p.window.depth


@fn
def average_pool_f32_validate(check: LayerCheck) -> Status:
    if not pool_f32_fits(check):
        return Status.INVAL
    return Status.OK


@fn
def max_pool_f32_validate(check: LayerCheck) -> Status:
    if not pool_f32_fits(check):
        return Status.INVAL
    return Status.OK


@fn(nan=True)
def pool_f32_row(call: LayerCall, p: WindowF32Params, row: u32, average: bool) -> None:
    """One output row."""
    win = p.window
    n = win.depth
    line = win.x_w * n
    x = view(f32, call.data[0])[row // win.y_h * win.x_h * line :]
    y = view(f32, call.data[1])
    top = i32(row % win.y_h * win.stride_h) - i32(win.pad_top)
    i0 = first_tap(top, 1)
    i1 = end_tap(top, 1, win.x_h, win.k_h)
    left = -i32(win.pad_left)
    at = row * win.y_w * n
    for column in range(win.y_w):
        j0 = first_tap(left, 1)
        j1 = end_tap(left, 1, win.x_w, win.k_w)
        for k in range(n):
            total: f32 = 0.0
            count: u32 = 0
            best: f32 = LOWEST_F32
            for i in range(i0, i1):
                for j in range(j0, j1):
                    value = x[u32(top + i32(i)) * line + u32(left + i32(j)) * n + k]
                    total += value
                    count += 1
                    if best < value:
                        best = value
            if not average:
                total = best
            elif count > 0:
                total = total / f32(count)
            y[at + k] = clamp_f32(total, p.low, p.high)
        at += n
        left += i32(win.stride_w)


@fn(nan=True)
def average_pool_f32_run(call: LayerCall) -> Status:
    p = view(WindowF32Params, call.params)
    for row in range(call.row, call.row_end):
        pool_f32_row(call, p, row, True)
    return Status.OK


@fn(nan=True)
def max_pool_f32_run(call: LayerCall) -> Status:
    p = view(WindowF32Params, call.params)
    for row in range(call.row, call.row_end):
        pool_f32_row(call, p, row, False)
    return Status.OK


def plan(op: Any) -> Any:
    """The step for a convolution or a pool of float32. Plain Python."""
    import numpy as np

    from synapticos.kernel.layers import variants
    from synapticos.kernel.layers.elements_f32 import limits_f32
    from synapticos.kernel.layers.operands import require
    from synapticos.kernel.layers.window import window_fields

    x, y = op.inputs[0], op.outputs[0]
    require("float32", x, y)
    low, high = limits_f32(op.options.get("activation", "NONE"))
    inputs, groups, depth = [x], 1, 1
    channels = int(y.shape[3])
    if op.kind in ("CONV_2D", "DEPTHWISE_CONV_2D"):
        w, bias = op.inputs[1], (list(op.inputs) + [None])[2]
        require("float32", w)
        k_h, k_w = w.shape[1:3]
        if op.kind == "CONV_2D":
            depth = int(w.shape[3])
            groups = int(x.shape[3]) // depth
            if groups * depth != int(x.shape[3]) or channels % groups:
                raise variants.Unsupported(f"{x.shape[3]} channels in groups of {depth}", "groups of equal size")
        else:
            groups = channels // int(x.shape[3])
        values = np.zeros(channels, np.float32) if bias is None else bias.data.reshape(-1)
        inputs += [w, variants.Const(f"{w.name}/bias", values)]
        variant = variants.CONV_F32 if op.kind == "CONV_2D" else variants.DEPTHWISE_F32
    else:
        k_h, k_w = op.options["filter_h"], op.options["filter_w"]
        variant = variants.AVERAGE_POOL_F32 if op.kind == "AVERAGE_POOL_2D" else variants.MAX_POOL_F32
    window = window_fields(op, k_h, k_w)
    params = pack(WindowF32Params, window=window, channels=channels, groups=groups, low=low, high=high)
    rows = window["batch"] * window["y_h"]
    cost = rows * window["y_w"] * channels * k_h * k_w * depth
    return variants.LayerPlan(variant, inputs, [y], params, scratch=0, cost=cost, rows=rows)
