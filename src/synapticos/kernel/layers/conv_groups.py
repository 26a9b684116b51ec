"""CONV_2D, int8, whose filters each see a group of the input's channels.

    y[r, c, o] = i8(requantize(bias[o] + sum_{i, j, k} (x[r * s + i * d - top, c * s + j * d - left, g + k] - x_zero) * w[o, i, j, k], scale[o]))

    x      i8 [batch, x_h, x_w, depth]     g = first channel of o's group
    w      i8 [channels, k_h, k_w, depth / groups]  zero point 0
    bias   i32 [channels]
    scale  i32 [channels, 2]  multiplier and shift
    y      i8 [batch, y_h, y_w, channels]

Rows are output rows. Bounds: k_h * k_w * depth / groups <= 32768, |x - x_zero| <= 255 and |w| <= 128 keep a sum below
2**30; it is modulo 2**32.
"""

from typing import Any

from synapticos.lang import *
from synapticos.kernel.container import DTYPE_INT8, DTYPE_INT32, LayerCall, LayerCheck
from synapticos.kernel.layers.checks import MAX_SIDE, holds_i8, product, scales_are_sound, takes, trails
from synapticos.kernel.layers.operands import holds_const
from synapticos.kernel.layers.requant import OutputRange, range_is_sound, requantize, to_i8
from synapticos.kernel.layers.window import (
    Window, end_tap, first_tap, window_is_sound, window_rows, window_x_bytes, window_y_bytes,
)  # fmt: skip
from synapticos.kernel.status import Status

MAX_GROUP_TAPS: Final[u32] = 32768


@struct
class ConvGroupsParams:
    window: Window
    channels: u32
    groups: u32
    x_zero: i32
    out: OutputRange


CONV_GROUPS_PARAMS_BYTES: Final[u32] = sizeof(ConvGroupsParams)


@fn
def conv_groups_validate(check: LayerCheck) -> Status:
    if not takes(check, 4, CONV_GROUPS_PARAMS_BYTES, 0):
        return Status.INVAL
    p = view(ConvGroupsParams, check.params)
    if not window_is_sound(p.window) or p.channels == 0 or p.channels > MAX_SIDE or p.groups == 0 or p.groups > MAX_SIDE:
        return Status.INVAL
    if p.window.depth % p.groups != 0 or p.channels % p.groups != 0:
        return Status.INVAL
    taps = product(product(p.window.k_h, p.window.k_w), p.window.depth // p.groups)
    if taps > MAX_GROUP_TAPS or not holds_i8(check, 0, window_x_bytes(p.window)):
        return Status.INVAL
    if not holds_const(check, 1, DTYPE_INT8, product(taps, p.channels)) or not holds_const(check, 2, DTYPE_INT32, p.channels):
        return Status.INVAL
    if not scales_are_sound(check, 3, p.channels) or not holds_i8(check, 4, window_y_bytes(p.window, p.channels)):
        return Status.INVAL
    if check.rows > window_rows(p.window) or p.x_zero < -128 or p.x_zero > 127:
        return Status.INVAL
    if not range_is_sound(p.out) or not trails(check):
        return Status.INVAL
    return Status.OK


@fn
def conv_groups_run(call: LayerCall) -> Status:
    p = view(ConvGroupsParams, call.params)
    win = p.window
    bias = view(i32, call.data[2])
    scale = view(i32, call.data[3])
    y = view(i8, call.data[4])
    part = win.depth // p.groups
    each = p.channels // p.groups
    line = win.x_w * win.depth
    at = call.row * win.y_w * p.channels
    for row in range(call.row, call.row_end):
        x = view(i8, call.data[0])[row // win.y_h * win.x_h * line :]
        top = i32(row % win.y_h * win.stride_h) - i32(win.pad_top)
        i0 = first_tap(top, win.dilation_h)
        i1 = end_tap(top, win.dilation_h, win.x_h, win.k_h)
        left = -i32(win.pad_left)
        for column in range(win.y_w):
            j0 = first_tap(left, win.dilation_w)
            j1 = end_tap(left, win.dilation_w, win.x_w, win.k_w)
            for o in range(p.channels):
                first = o // each * part
                acc = bias[o]
                for i in range(i0, i1):
                    source = x[u32(top + i32(i * win.dilation_h)) * line + first :]
                    taps = view(i8, call.data[1])[(o * win.k_h + i) * win.k_w * part :]
                    for j in range(j0, j1):
                        from_ = source[u32(left + i32(j * win.dilation_w)) * win.depth :]
                        w = taps[j * part :]
                        for k in range(part):
                            acc = wrap(i32, acc + (i32(from_[k]) - p.x_zero) * w[k])
                y[at + o] = to_i8(requantize(acc, scale[2 * o], scale[2 * o + 1]), p.out)
            at += p.channels
            left += i32(win.stride_w)
    return Status.OK


def plan(op: Any) -> Any:
    """The step for a CONV_2D of int8; one with a single group is `conv`'s. Plain Python."""
    from synapticos.kernel.layers import conv, quantize
    from synapticos.kernel.layers.variants import CONV_GROUPS_I8, Const, LayerPlan, Unsupported
    from synapticos.kernel.layers.window import window_fields

    x, w, bias = (list(op.inputs) + [None])[:3]
    y = op.outputs[0]
    channels, k_h, k_w, part = (int(n) for n in w.shape)
    groups = int(x.shape[3]) // part
    if groups == 1:
        return conv.plan(op)
    quantize.require_int8(x, y)
    weights = quantize.weights_of(w, channels)
    if groups * part != int(x.shape[3]) or channels % groups or k_h * k_w * part > MAX_GROUP_TAPS:
        raise Unsupported(f"{x.shape[3]} channels in groups of {part}", f"equal groups of up to {MAX_GROUP_TAPS} weights")
    window = window_fields(op, k_h, k_w)
    low, high = quantize.activation_range(op.options.get("activation", "NONE"), y)
    zero = int(y.zero[0])
    params = pack(
        ConvGroupsParams, window=window, channels=channels, groups=groups, x_zero=int(x.zero[0]),
        out={"zero": zero, "low": low - zero, "high": high - zero},
    )  # fmt: skip
    inputs = [
        x, w, Const(f"{w.name}/bias", quantize.folded_bias(bias, weights.reshape(channels, -1), 0)),
        Const(f"{w.name}/scale", quantize.channel_multipliers(x, w, y, channels)),
    ]  # fmt: skip
    rows = window["batch"] * window["y_h"]
    cost = rows * window["y_w"] * channels * k_h * k_w * part
    return LayerPlan(CONV_GROUPS_I8, inputs, [y], params, scratch=0, cost=cost, rows=rows)
