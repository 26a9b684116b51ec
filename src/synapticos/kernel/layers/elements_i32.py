"""ADD, SUB, MUL, DIV, MAXIMUM and MINIMUM of int32, element by element.

    y = clamp(a op b)    broadcast as in `broadcast`

    a, b  i32, without a scale
    y     i32; may be a or b itself

Sums and products are modulo 2**32; a quotient truncates, of 0 as a divisor it is 0.
"""

from typing import Any

from synapticos.lang import *
from synapticos.kernel.container import DTYPE_INT32, LayerCall, LayerCheck
from synapticos.kernel.layers.broadcast import Broadcast, broadcast_fits, first_a, first_b
from synapticos.kernel.layers.checks import takes
from synapticos.kernel.layers.elements_f32 import (
    CODES, ELEMENTS_ADD, ELEMENTS_DIV, ELEMENTS_MAX, ELEMENTS_MIN, ELEMENTS_MUL, ELEMENTS_SUB,
)  # fmt: skip
from synapticos.kernel.status import Status


@struct
class ElementsI32Params:
    shape: Broadcast
    op: u32
    low: i32
    high: i32


ELEMENTS_I32_PARAMS_BYTES: Final[u32] = sizeof(ElementsI32Params)


@fn
def elements_i32_validate(check: LayerCheck) -> Status:
    if not takes(check, 2, ELEMENTS_I32_PARAMS_BYTES, 0):
        return Status.INVAL
    p = view(ElementsI32Params, check.params)
    if p.op > ELEMENTS_MIN or not broadcast_fits(check, p.shape, DTYPE_INT32, 2) or p.low > p.high:
        return Status.INVAL
    return Status.OK


@fn(pure=True)
def element_i32(op: u32, a: i32, b: i32) -> i32:
    if op == ELEMENTS_ADD:
        return wrap(i32, a + b)
    if op == ELEMENTS_SUB:
        return wrap(i32, a - b)
    if op == ELEMENTS_MUL:
        return wrap(i32, a * b)
    if op == ELEMENTS_DIV:
        if b == 0:
            return 0
        if b == -1:
            return wrap(i32, -a)
        return div_trunc(a, b)
    if op == ELEMENTS_MAX:
        return max(a, b)
    return min(a, b)


@fn
def elements_i32_run(call: LayerCall) -> Status:
    p = view(ElementsI32Params, call.params)
    n = p.shape.y[3]
    step_a = p.shape.a[3]
    step_b = p.shape.b[3]
    for row in range(call.row, call.row_end):
        a = view(i32, call.data[0])[first_a(p.shape, row) :]
        b = view(i32, call.data[1])[first_b(p.shape, row) :]
        y = view(i32, call.data[2])[row * n :]
        for i in range(n):
            y[i] = min(max(element_i32(p.op, a[i * step_a], b[i * step_b]), p.low), p.high)
    return Status.OK


def plan(op: Any) -> Any:
    """The step. Plain Python."""
    from math import prod

    from synapticos.kernel.layers.broadcast import broadcast_fields
    from synapticos.kernel.layers.operands import require
    from synapticos.kernel.layers.variants import ELEMENTS_I32, LayerPlan, Unsupported

    (a, b), y = op.inputs, op.outputs[0]
    require("int32", a, b, y)
    limits = {"NONE": (-(1 << 31), (1 << 31) - 1), "RELU": (0, (1 << 31) - 1), "RELU6": (0, 6), "RELU_N1_TO_1": (-1, 1)}
    activation = op.options.get("activation", "NONE")
    if op.kind == "DIV" and b.data is not None and (b.data == 0).any():
        raise Unsupported("a division by 0", "another divisor")
    shape = broadcast_fields(a, b, y)
    low, high = limits[activation]
    params = pack(ElementsI32Params, shape=shape, op=CODES[op.kind], low=low, high=high)
    size = prod(int(n) for n in y.shape)
    return LayerPlan(ELEMENTS_I32, [a, b], [y], params, scratch=0, cost=size, rows=prod(shape["y"][:3]))
