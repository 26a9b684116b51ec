"""ADD, SUB, MUL, MAXIMUM, MINIMUM and PRELU of int8, element by element and of any shapes that match.

    ADD, SUB          y = i8(requantize(s1(a - a_zero) +- s2(b - b_zero), out))    s(v) = requantize(v << 20, the input's scale)
    MUL               y = i8(requantize((a - a_zero) * (b - b_zero), out))
    PRELU             y = i8(v >= 0 ? requantize(v, s1) : requantize(v * (b - b_zero), out)),  v = a - a_zero
    MAXIMUM, MINIMUM  y = the larger or smaller, as they are: all three have one scale

    a, b  i8, broadcast as in `broadcast`
    y     i8; may be a or b itself

Bounds: |v| <= 255, so v << 20 < 2**28 and a product < 2**17. The shifts of ADD and SUB are not positive, so each term
stays below 2**28.
"""

from typing import Any

from synapticos.lang import *
from synapticos.kernel.container import DTYPE_INT8, LayerCall, LayerCheck
from synapticos.kernel.layers.add import ADD_BITS, add_scale_is_sound
from synapticos.kernel.layers.broadcast import Broadcast, broadcast_fits, first_a, first_b
from synapticos.kernel.layers.checks import takes
from synapticos.kernel.layers.requant import OutputRange, range_is_sound, requantize, scale_is_sound, to_i8
from synapticos.kernel.status import Status

BYTES_ADD: Final[u32] = 0
BYTES_SUB: Final[u32] = 1
BYTES_MUL: Final[u32] = 2
BYTES_PRELU: Final[u32] = 3
BYTES_MAX: Final[u32] = 4
BYTES_MIN: Final[u32] = 5
BYTES_OPS: Final[u32] = 6

BYTES = {"ADD": 0, "SUB": 1, "MUL": 2, "PRELU": 3, "MAXIMUM": 4, "MINIMUM": 5}


@struct
class ElementsI8Params:
    shape: Broadcast
    op: u32
    a_zero: i32
    a_multiplier: i32
    a_shift: i32
    b_zero: i32
    b_multiplier: i32
    b_shift: i32
    multiplier: i32
    shift: i32
    out: OutputRange


ELEMENTS_I8_PARAMS_BYTES: Final[u32] = sizeof(ElementsI8Params)


@fn
def elements_i8_validate(check: LayerCheck) -> Status:
    if not takes(check, 2, ELEMENTS_I8_PARAMS_BYTES, 0):
        return Status.INVAL
    p = view(ElementsI8Params, check.params)
    if p.op >= BYTES_OPS or not broadcast_fits(check, p.shape, DTYPE_INT8, 2) or not range_is_sound(p.out):
        return Status.INVAL
    if p.a_zero < -128 or p.a_zero > 127 or p.b_zero < -128 or p.b_zero > 127:
        return Status.INVAL
    if not scale_is_sound(p.multiplier, p.shift) or not scale_is_sound(p.a_multiplier, p.a_shift):
        return Status.INVAL
    if p.op <= BYTES_SUB:
        if not add_scale_is_sound(p.a_multiplier, p.a_shift) or not add_scale_is_sound(p.b_multiplier, p.b_shift):
            return Status.INVAL
        if not add_scale_is_sound(p.multiplier, p.shift):
            return Status.INVAL
    return Status.OK


@fn(pure=True)
def element_i8(p: ElementsI8Params, a: i8, b: i8) -> i8:
    if p.op == BYTES_MAX:
        return max(a, b)
    if p.op == BYTES_MIN:
        return min(a, b)
    v = i32(a) - p.a_zero
    w = i32(b) - p.b_zero
    acc: i32 = 0
    if p.op == BYTES_MUL:
        acc = v * w
    elif p.op == BYTES_PRELU:
        if v >= 0:
            return to_i8(requantize(v, p.a_multiplier, p.a_shift), p.out)
        acc = v * w
    else:
        left = requantize(v << ADD_BITS, p.a_multiplier, p.a_shift)
        right = requantize(w << ADD_BITS, p.b_multiplier, p.b_shift)
        if p.op == BYTES_ADD:
            acc = left + right
        else:
            acc = left - right
    return to_i8(requantize(acc, p.multiplier, p.shift), p.out)


@fn
def elements_i8_run(call: LayerCall) -> Status:
    p = view(ElementsI8Params, call.params)
    n = p.shape.y[3]
    step_a = p.shape.a[3]
    step_b = p.shape.b[3]
    for row in range(call.row, call.row_end):
        a = view(i8, call.data[0])[first_a(p.shape, row) :]
        b = view(i8, call.data[1])[first_b(p.shape, row) :]
        y = view(i8, call.data[2])[row * n :]
        for i in range(n):
            y[i] = element_i8(p, a[i * step_a], b[i * step_b])
    return Status.OK


def plan(op: Any) -> Any:
    """The step. Plain Python."""
    from math import prod

    from synapticos.kernel.layers import quantize
    from synapticos.kernel.layers.broadcast import broadcast_fields
    from synapticos.kernel.layers.functions import one_scale
    from synapticos.kernel.layers.variants import ELEMENTS_I8, LayerPlan, Unsupported

    (a, b), y = op.inputs, op.outputs[0]
    quantize.require_int8(a, b, y)
    (a_scale, a_zero), (b_scale, b_zero), (y_scale, y_zero) = one_scale(a), one_scale(b), one_scale(y)
    scales = [(0, 0)] * 3
    low, high = quantize.activation_range(op.options.get("activation", "NONE"), y)
    if op.kind in ("ADD", "SUB"):
        twice = 2.0 * max(a_scale, b_scale)
        ratios = (a_scale / twice, b_scale / twice, twice / ((1 << ADD_BITS) * y_scale))
        scales = [quantize.multiplier_of(r) for r in ratios]
        if scales[2][1] > 0:
            raise Unsupported(f"an output scale 2**{ADD_BITS} times finer than the inputs'", "scales nearer each other")
    elif op.kind in ("MUL", "PRELU"):
        scales[2] = quantize.multiplier_of(a_scale * b_scale / y_scale)
        if op.kind == "PRELU":
            scales[0] = quantize.multiplier_of(a_scale / y_scale)
    elif not (a_scale, a_zero) == (b_scale, b_zero) == (y_scale, y_zero):
        raise Unsupported("operands of other scales than the output", "equal scales")
    shape = broadcast_fields(a, b, y)
    params = pack(
        ElementsI8Params, shape=shape, op=BYTES[op.kind], a_zero=a_zero, a_multiplier=scales[0][0], a_shift=scales[0][1],
        b_zero=b_zero, b_multiplier=scales[1][0], b_shift=scales[1][1], multiplier=scales[2][0], shift=scales[2][1],
        out={"zero": y_zero, "low": low - y_zero, "high": high - y_zero},
    )  # fmt: skip
    size = prod(int(n) for n in y.shape)
    return LayerPlan(ELEMENTS_I8, [a, b], [y], params, scratch=0, cost=size, rows=prod(shape["y"][:3]))
