"""SOFTMAX from int8 to int16: as `softmax`, with 16 bits of the quotient kept.

    y[c] = clamp(round(exp(beta * scale * d[c]) / sum_k exp(beta * scale * d[k]) * 65536) - 32768)

    x  i8 [rows, n]
    y  i16 [rows, n]

Bounds are those of `softmax`.
"""

from typing import Any

from synapticos.lang import *
from synapticos.kernel.container import DTYPE_INT16, LayerCall, LayerCheck
from synapticos.kernel.layers.checks import apart, holds_i8, product, takes
from synapticos.kernel.layers.operands import holds
from synapticos.kernel.layers.requant import high_mul, round_shift
from synapticos.kernel.layers.softmax import (
    MAX_CLASSES, SOFTMAX_PARAMS_BYTES, SUM_BITS, SoftmaxParams, exp_q5, leading_zeros, reciprocal_q0,
)  # fmt: skip
from synapticos.kernel.status import Status


@fn
def softmax_wide_validate(check: LayerCheck) -> Status:
    if not takes(check, 1, SOFTMAX_PARAMS_BYTES, 0):
        return Status.INVAL
    p = view(SoftmaxParams, check.params)
    size = product(p.rows, p.n)
    if p.n > MAX_CLASSES or check.rows > p.rows or not holds_i8(check, 0, size) or not holds(check, 1, DTYPE_INT16, size):
        return Status.INVAL
    if p.multiplier < 0 or p.shift > 30 or p.d_min > 0 or p.d_min < -255 or not apart(check, False):
        return Status.INVAL
    # -d_min << shift stays an i32.
    if p.d_min < 0 and u32(-p.d_min) > u32(2147483647) >> p.shift:
        return Status.INVAL
    return Status.OK


@fn
def softmax_wide_run(call: LayerCall) -> Status:
    p = view(SoftmaxParams, call.params)
    n = p.n
    for row in range(call.row, call.row_end):
        x = view(i8, call.data[0])[row * n :]
        y = view(i16, call.data[1])[row * n :]
        top: i32 = -128
        for c in range(n):
            top = max(top, i32(x[c]))
        total: i32 = 0
        for c in range(n):
            d = i32(x[c]) - top
            if d >= p.d_min:
                total += round_shift(exp_q5(high_mul(d << p.shift, p.multiplier)), SUM_BITS)
        headroom = leading_zeros(u32(total))
        scale = reciprocal_q0(i32(wrap(u32, u32(total) << headroom) - 2147483648))
        count = SUM_BITS + 15 - headroom
        for c in range(n):
            d = i32(x[c]) - top
            value: i32 = 0
            if d >= p.d_min and count <= 31:
                value = round_shift(high_mul(scale, exp_q5(high_mul(d << p.shift, p.multiplier))), count)
            y[c] = i16(min(max(value - 32768, -32768), 32767))
    return Status.OK


def plan(op: Any) -> Any:
    """The step for a SOFTMAX from int8 to int16. Plain Python."""
    from dataclasses import replace

    from synapticos.kernel.layers import softmax
    from synapticos.kernel.layers.operands import require
    from synapticos.kernel.layers.variants import SOFTMAX_WIDE, Unsupported

    x, y = op.inputs[0], op.outputs[0]
    require("int16", y)
    if int(y.zero[0]) != -32768 or abs(float(y.scale[0]) * 65536 - 1) > 0.001:
        raise Unsupported(f"an output of scale {y.scale[0]:g}, zero {int(y.zero[0])}", "1/65536 and -32768")
    return replace(softmax.plan_rows(op, x), variant=SOFTMAX_WIDE, outputs=[y])
