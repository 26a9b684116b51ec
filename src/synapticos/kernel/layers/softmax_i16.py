"""SOFTMAX, int16: exp and the reciprocal from tables of 513 entries, between which lies a straight line.

    e_c = EXP(clamp(requantize(x_c - max) + 32767))    -10..0 as all of an i16
    y_c = clamp((e_c * RECIPROCAL(sum e) + half) >> what the sum's highest bit says)    in units of 2**-15

    x      i16 [rows, n]
    exp    i16 [513]  constant: exp(-10..0) in Q0.15
    recip  i16 [513]  constant: 1 / (1 + 0..1) in Q0.15
    y      i16 [rows, n]; may be x itself

Bounds: n <= 65535 terms of at most 2**15 keep the sum below 2**31. The shift is at most 16, so a difference of 65535
shifted stays an i32, modulo 2**32 beyond.
"""

from typing import Any

from synapticos.lang import *
from synapticos.kernel.container import DTYPE_INT16, LayerCall, LayerCheck
from synapticos.kernel.layers.checks import MAX_SIDE, apart, product, takes
from synapticos.kernel.layers.operands import holds, holds_const
from synapticos.kernel.layers.requant import requantize, scale_is_sound
from synapticos.kernel.layers.softmax import leading_zeros
from synapticos.kernel.status import Status

LINE_ENTRIES: Final[u32] = 513


@struct
class SoftmaxI16Params:
    rows: u32
    n: u32
    multiplier: i32  # of a difference
    shift: i32


SOFTMAX_I16_PARAMS_BYTES: Final[u32] = sizeof(SoftmaxI16Params)


@fn
def softmax_i16_validate(check: LayerCheck) -> Status:
    if not takes(check, 3, SOFTMAX_I16_PARAMS_BYTES, 0):
        return Status.INVAL
    p = view(SoftmaxI16Params, check.params)
    size = product(p.rows, p.n)
    if p.n > MAX_SIDE or check.rows > p.rows or not holds(check, 0, DTYPE_INT16, size):
        return Status.INVAL
    if not holds(check, 3, DTYPE_INT16, size) or not holds_const(check, 1, DTYPE_INT16, LINE_ENTRIES):
        return Status.INVAL
    if not holds_const(check, 2, DTYPE_INT16, LINE_ENTRIES) or not scale_is_sound(p.multiplier, p.shift):
        return Status.INVAL
    if not apart(check, True):
        return Status.INVAL
    return Status.OK


@fn(pure=True)
def on_line(table: Ptr[i16], x: i32) -> i32:
    """Table at x, an i16 after clamping: the entry below it and the part of the way to the next, rounded."""
    clamped = min(max(x, -32768), 32767)
    at = u32(256 + (clamped >> 7))
    base = i32(table[at])
    return i32(wrap(i16, base + (((i32(table[at + 1]) - base) * (clamped & 127) + 64) >> 7)))


@fn
def softmax_i16_run(call: LayerCall) -> Status:
    p = view(SoftmaxI16Params, call.params)
    n = p.n
    table = view(i16, call.data[1])
    reciprocal = view(i16, call.data[2])
    for row in range(call.row, call.row_end):
        x = view(i16, call.data[0])[row * n :]
        y = view(i16, call.data[3])[row * n :]
        top: i32 = -32768
        for c in range(n):
            top = max(top, i32(x[c]))
        total: i32 = 0
        for c in range(n):
            scaled = requantize(i32(x[c]) - top, p.multiplier, p.shift)
            y[c] = i16(on_line(table, wrap(i32, scaled + 32767)))
            total += i32(y[c])
        zeros = leading_zeros(wrap(u32, total))
        share: i32 = 0
        right: u32 = 16
        if total > 0:
            mantissa = i32(((i64(total) << (zeros - 1)) + 8192) >> 14)
            share = on_line(reciprocal, mantissa - 98304)
            right = 31 - zeros
        half: i64 = 0
        if right > 0:
            half = i64(1) << (right - 1)
        for c in range(n):
            y[c] = i16(min(max(i32((i64(y[c]) * share + half) >> right), 0), 32767))
    return Status.OK


def line_table(function: Any, first: float, last: float) -> Any:
    """513 points of a function in Q0.15, each lowered by half of what the line to the next is too high in its middle."""
    import numpy as np

    one = np.float32

    def rounded(v: float) -> float:
        return float(np.floor(abs(v) + 0.5) * (1 if v >= 0 else -1))

    def at(v: Any) -> float:
        return float(one(one(function(float(v))) * one(32768)))

    step = one((one(last) - one(first)) / one(512))
    entries = []
    for i in range(512):
        here = at(one(first) + one(i) * step)
        middle = at(one(first) + one(i) * step + one(step / 2))
        next_ = at(one(first) + one(i + 1) * step)
        error = rounded(float(one(one(next_) + one(rounded(here))) / one(2))) - rounded(middle)
        entries.append(min(max(rounded(here) - rounded(error / 2), -32768), 32767))
    entries.append(min(max(rounded(at(last)), -32768), 32767))
    return np.array(entries, np.int16)


def plan(op: Any) -> Any:
    """The step for a SOFTMAX of int16; one of int8 with such a result is `softmax_wide`'s. Plain Python."""
    from math import exp, prod

    from synapticos.kernel.layers import softmax_wide
    from synapticos.kernel.layers.functions import one_scale
    from synapticos.kernel.layers.quantize import multiplier_of
    from synapticos.kernel.layers.variants import MAX_ROWS, SOFTMAX_I16, Const, LayerPlan, Unsupported

    x, y = op.inputs[0], op.outputs[0]
    if x.dtype != "int16":
        return softmax_wide.plan(op)
    (scale, zero), (y_scale, y_zero) = one_scale(x), one_scale(y)
    if zero != 0 or y_zero != 0 or abs(y_scale * 32768 - 1) > 0.001:
        raise Unsupported(f"an output of scale {y_scale:g}, zero {y_zero}", "1/32768 and 0")
    n = int(x.shape[-1])
    rows = prod(int(k) for k in x.shape) // n
    if n > MAX_SIDE or rows > MAX_ROWS:
        raise Unsupported(f"{rows} rows of {n}", f"up to {MAX_ROWS} of {MAX_SIDE}")
    multiplier, shift = multiplier_of(scale * float(op.options.get("beta", 1.0)) / (10.0 / 65535.0))
    params = pack(SoftmaxI16Params, rows=rows, n=n, multiplier=multiplier, shift=shift)
    inputs = [
        x, Const("softmax/exp", line_table(exp, -10.0, 0.0)),
        Const("softmax/reciprocal", line_table(lambda v: 1 / (1 + v), 0.0, 1.0)),
    ]  # fmt: skip
    return LayerPlan(SOFTMAX_I16, inputs, [y], params, scratch=0, cost=rows * n, rows=rows)
