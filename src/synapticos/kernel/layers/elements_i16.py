"""ADD, SUB, MUL, MAXIMUM, MINIMUM and LEAKY_RELU of int16, element by element.

    ADD, SUB  y = i16(requantize(s1(a) +- s2(b), out))    s(v) = requantize(v << 15, the input's scale)
    MUL       y = i16(requantize(a * b, out))
    MAXIMUM, MINIMUM  y = the larger or smaller, as they are: all three have one scale
    LEAKY_RELU        y = i16(a >= 0 ? requantize(a, s1) : requantize(a, out))    b is a again, and not looked at

    a, b  i16, zero point 0, broadcast as in `broadcast`
    y     i16, zero point 0; may be a or b itself

Bounds: |v| <= 2**15, so v << 15 and a product stay at most 2**30. The shifts of ADD and SUB are not positive, and each
term is at most half, so their sum stays below 2**31.
"""

from typing import Any

from synapticos.lang import *
from synapticos.kernel.container import DTYPE_INT16, LayerCall, LayerCheck
from synapticos.kernel.layers.add import add_scale_is_sound
from synapticos.kernel.layers.broadcast import Broadcast, broadcast_fits, first_a, first_b
from synapticos.kernel.layers.checks import takes
from synapticos.kernel.layers.elements_i8 import BYTES, BYTES_MAX, BYTES_MIN, BYTES_MUL, BYTES_OPS, BYTES_PRELU, BYTES_SUB
from synapticos.kernel.layers.requant import requantize, scale_is_sound
from synapticos.kernel.status import Status

WIDE_BITS: Final[u32] = 15
LEAKY = BYTES_PRELU  # a PRELU whose slopes are one


@struct
class ElementsI16Params:
    shape: Broadcast
    op: u32
    a_multiplier: i32
    a_shift: i32
    b_multiplier: i32
    b_shift: i32
    multiplier: i32
    shift: i32
    low: i32
    high: i32


ELEMENTS_I16_PARAMS_BYTES: Final[u32] = sizeof(ElementsI16Params)


@fn
def elements_i16_validate(check: LayerCheck) -> Status:
    if not takes(check, 2, ELEMENTS_I16_PARAMS_BYTES, 0):
        return Status.INVAL
    p = view(ElementsI16Params, check.params)
    if p.op >= BYTES_OPS or not broadcast_fits(check, p.shape, DTYPE_INT16, 2):
        return Status.INVAL
    if p.low < -32768 or p.high > 32767 or p.low > p.high or not scale_is_sound(p.multiplier, p.shift):
        return Status.INVAL
    if not scale_is_sound(p.a_multiplier, p.a_shift):
        return Status.INVAL
    if p.op <= BYTES_SUB and (not add_scale_is_sound(p.a_multiplier, p.a_shift) or not add_scale_is_sound(p.b_multiplier, p.b_shift)):
        return Status.INVAL
    return Status.OK


@fn(pure=True)
def element_i16(p: ElementsI16Params, a: i16, b: i16) -> i16:
    acc: i32 = 0
    if p.op == BYTES_MAX:
        return max(a, b)
    if p.op == BYTES_MIN:
        return min(a, b)
    if p.op == LEAKY:
        acc = i32(a)
        if acc >= 0:
            return i16(min(max(requantize(acc, p.a_multiplier, p.a_shift), p.low), p.high))
    elif p.op == BYTES_MUL:
        acc = i32(a) * b
    else:
        left = requantize(i32(a) << WIDE_BITS, p.a_multiplier, p.a_shift)
        right = requantize(i32(b) << WIDE_BITS, p.b_multiplier, p.b_shift)
        if p.op == BYTES_SUB:
            acc = wrap(i32, left - right)
        else:
            acc = wrap(i32, left + right)
    return i16(min(max(requantize(acc, p.multiplier, p.shift), p.low), p.high))


@fn
def elements_i16_run(call: LayerCall) -> Status:
    p = view(ElementsI16Params, call.params)
    n = p.shape.y[3]
    step_a = p.shape.a[3]
    step_b = p.shape.b[3]
    for row in range(call.row, call.row_end):
        a = view(i16, call.data[0])[first_a(p.shape, row) :]
        b = view(i16, call.data[1])[first_b(p.shape, row) :]
        y = view(i16, call.data[2])[row * n :]
        for i in range(n):
            y[i] = element_i16(p, a[i * step_a], b[i * step_b])
    return Status.OK


def plan(op: Any) -> Any:
    """The step. Plain Python."""
    from math import prod

    import numpy as np

    from synapticos.kernel.layers import quantize
    from synapticos.kernel.layers.broadcast import broadcast_fields
    from synapticos.kernel.layers.variants import ELEMENTS_I16, LayerPlan, Unsupported
    from synapticos.kernel.layers.wide import require_wide, wide_limits

    y = op.outputs[0]
    a, b = op.inputs * 2 if op.kind == "LEAKY_RELU" else op.inputs
    require_wide(a, b, y)
    a_scale, b_scale, y_scale = (float(t.scale[0]) for t in (a, b, y))
    low, high = wide_limits(op.options.get("activation", "NONE"), y)
    scales = [(0, 0)] * 3
    if op.kind == "MUL":
        scales[2] = quantize.multiplier_of(a_scale * b_scale / y_scale)
    elif op.kind == "LEAKY_RELU":
        slope = float(np.float32(op.options["alpha"]))
        if slope < 0:
            raise Unsupported(f"a slope of {slope:g}", "0 or more")
        scales[0], scales[2] = quantize.multiplier_of(a_scale / y_scale), quantize.multiplier_of(a_scale * slope / y_scale)
    elif op.kind in ("MAXIMUM", "MINIMUM"):
        if not a_scale == b_scale == y_scale:
            raise Unsupported("operands of other scales than the output", "equal scales")
    else:
        twice = 2.0 * max(a_scale, b_scale)
        ratios = (a_scale / twice, b_scale / twice, twice / ((1 << WIDE_BITS) * y_scale))
        scales = [quantize.multiplier_of(r) for r in ratios]
        if op.options.get("pot_scale"):
            raise Unsupported("scales that are powers of 2 by option", "any scales")
    shape = broadcast_fields(a, b, y)
    params = pack(
        ElementsI16Params, shape=shape, op=BYTES.get(op.kind, int(LEAKY)), a_multiplier=scales[0][0], a_shift=scales[0][1],
        b_multiplier=scales[1][0], b_shift=scales[1][1], multiplier=scales[2][0], shift=scales[2][1], low=low, high=high,
    )  # fmt: skip
    size = prod(int(n) for n in y.shape)
    return LayerPlan(ELEMENTS_I16, [a, b], [y], params, scratch=0, cost=size, rows=prod(shape["y"][:3]))
