"""ADD, SUB, MUL, DIV, MAXIMUM, MINIMUM and PRELU of float32, element by element.

    y = clamp(a op b); of PRELU a >= 0 ? a : a * b    broadcast as in `broadcast`

    a, b  f32
    y     f32; may be a or b itself

One rounding an element. Bounds: none; a NaN among the operands is the caller's, and a quotient by 0 is what IEEE says.
"""

from typing import Any

from synapticos.lang import *
from synapticos.kernel.container import DTYPE_FLOAT32, LayerCall, LayerCheck
from synapticos.kernel.layers.broadcast import Broadcast, broadcast_fits, first_a, first_b
from synapticos.kernel.layers.checks import takes
from synapticos.kernel.status import Status

ELEMENTS_ADD: Final[u32] = 0
ELEMENTS_SUB: Final[u32] = 1
ELEMENTS_MUL: Final[u32] = 2
ELEMENTS_DIV: Final[u32] = 3
ELEMENTS_MAX: Final[u32] = 4
ELEMENTS_MIN: Final[u32] = 5
ELEMENTS_PRELU: Final[u32] = 6

CODES = {"ADD": 0, "SUB": 1, "MUL": 2, "DIV": 3, "MAXIMUM": 4, "MINIMUM": 5, "PRELU": 6}


@struct
class ElementsF32Params:
    shape: Broadcast
    op: u32
    low: f32
    high: f32


ELEMENTS_F32_PARAMS_BYTES: Final[u32] = sizeof(ElementsF32Params)


@fn
def elements_f32_validate(check: LayerCheck) -> Status:
    if not takes(check, 2, ELEMENTS_F32_PARAMS_BYTES, 0):
        return Status.INVAL
    p = view(ElementsF32Params, check.params)
    if p.op > ELEMENTS_PRELU or not broadcast_fits(check, p.shape, DTYPE_FLOAT32, 2):
        return Status.INVAL
    if isnan(p.low) or isnan(p.high):
        return Status.INVAL
    return Status.OK


@fn(nan=True, pure=True, inline=True)
def clamp_f32(value: f32, low: f32, high: f32) -> f32:
    """`value` between two others; of equal zeros it is `value` that stays."""
    if value < low:
        return low
    if high < value:
        return high
    return value


@fn(nan=True, pure=True, inline=True)
def element_f32(op: u32, a: f32, b: f32) -> f32:
    if op == ELEMENTS_ADD:
        return a + b
    if op == ELEMENTS_SUB:
        return a - b
    if op == ELEMENTS_MUL:
        return a * b
    if op == ELEMENTS_DIV:
        return a / b
    if op == ELEMENTS_MAX:
        if a > b:
            return a
        return b
    if op == ELEMENTS_PRELU:
        if a >= 0.0:
            return a
        return a * b
    if a < b:
        return a
    return b


@fn(nan=True)
def elements_f32_run(call: LayerCall) -> Status:
    p = view(ElementsF32Params, call.params)
    n = p.shape.y[3]
    step_a = p.shape.a[3]
    step_b = p.shape.b[3]
    for row in range(call.row, call.row_end):
        a = view(f32, call.data[0])[first_a(p.shape, row) :]
        b = view(f32, call.data[1])[first_b(p.shape, row) :]
        y = view(f32, call.data[2])[row * n :]
        for i in range(n):
            y[i] = clamp_f32(element_f32(p.op, a[i * step_a], b[i * step_b]), p.low, p.high)
    return Status.OK


def limits_f32(activation: str) -> tuple[float, float]:
    """Lowest and highest real that a fused activation lets through. Plain Python."""
    from synapticos.kernel.layers.variants import Unsupported

    largest = 3.4028234663852886e38
    limits = {"NONE": (-largest, largest), "RELU": (0.0, largest), "RELU6": (0.0, 6.0), "RELU_N1_TO_1": (-1.0, 1.0)}
    if activation not in limits:
        raise Unsupported(f"a fused {activation}", "NONE, RELU, RELU6 or RELU_N1_TO_1")
    return limits[activation]


def plan(op: Any) -> Any:
    """The step. Plain Python."""
    from math import prod

    from synapticos.kernel.layers.broadcast import broadcast_fields
    from synapticos.kernel.layers.operands import require
    from synapticos.kernel.layers.variants import ELEMENTS_F32, LayerPlan

    (a, b), y = op.inputs, op.outputs[0]
    require("float32", a, b, y)
    low, high = (-float("inf"), float("inf"))
    if op.kind not in ("MAXIMUM", "MINIMUM", "PRELU"):
        low, high = limits_f32(op.options.get("activation", "NONE"))
    shape = broadcast_fields(a, b, y)
    params = pack(ElementsF32Params, shape=shape, op=CODES[op.kind], low=low, high=high)
    size = prod(int(n) for n in y.shape)
    return LayerPlan(ELEMENTS_F32, [a, b], [y], params, scratch=0, cost=size, rows=prod(shape["y"][:3]))
