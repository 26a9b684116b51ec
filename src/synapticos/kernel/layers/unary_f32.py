"""Functions of one float32, by the formulas of the reference.

    LOGISTIC    1 above 16.619047; e**x below -9; 1 / (1 + e**-x) between
    TANH        tanh x                  RELU, RELU6, RELU_N1_TO_1    x between `low` and `high`
    ELU         e**x - 1 below 0, as one function    LEAKY_RELU                   slope * x below 0
    HARD_SWISH  x * min(6, max(0, x + 3)) / 6

    x  f32 [rows, n]
    y  f32 [rows, n]; may be x itself

e**x and tanh are those of `fmath`; everything else is one rounding an operation. Beside the exact real value of its formula
LOGISTIC is at most 1.992 units in the last place off (all floats from -9 to -0.25 and from 0.25 up), TANH 1.331, ELU 1.32; the
others are the reference kernels in every bit. A NaN gives a NaN where there is no exponential, and 0 where there is one.
"""

from typing import Any

from synapticos.lang import *
from synapticos.kernel.container import DTYPE_FLOAT32, LayerCall, LayerCheck
from synapticos.kernel.fmath import f32_exp, f32_tanh
from synapticos.kernel.layers.checks import apart, product, takes
from synapticos.kernel.layers.elements_f32 import clamp_f32
from synapticos.kernel.layers.operands import holds
from synapticos.kernel.status import Status

UNARY_CLAMP: Final[u32] = 0
UNARY_LOGISTIC: Final[u32] = 1
UNARY_TANH: Final[u32] = 2
UNARY_ELU: Final[u32] = 3
UNARY_LEAKY: Final[u32] = 4
UNARY_SWISH: Final[u32] = 5
LOGISTIC_IS_ONE = 16.619047164916992188
LOGISTIC_IS_EXP = -9.0

UNARY = {"LOGISTIC": 1, "TANH": 2, "ELU": 3, "LEAKY_RELU": 4, "HARD_SWISH": 5}


@struct
class UnaryF32Params:
    rows: u32
    n: u32
    op: u32
    low: f32
    high: f32  # LEAKY_RELU: `low` is the slope


UNARY_F32_PARAMS_BYTES: Final[u32] = sizeof(UnaryF32Params)


@fn
def unary_f32_validate(check: LayerCheck) -> Status:
    if not takes(check, 1, UNARY_F32_PARAMS_BYTES, 0):
        return Status.INVAL
    p = view(UnaryF32Params, check.params)
    size = product(p.rows, p.n)
    if not holds(check, 0, DTYPE_FLOAT32, size) or not holds(check, 1, DTYPE_FLOAT32, size) or check.rows > p.rows:
        return Status.INVAL
    if p.op > UNARY_SWISH or isnan(p.low) or isnan(p.high) or not apart(check, True):
        return Status.INVAL
    return Status.OK


@fn(nan=True, pure=True)
def logistic_f32(x: f32) -> f32:
    if x > LOGISTIC_IS_ONE:
        return 1.0
    if x < LOGISTIC_IS_EXP:
        return f32_exp(x)
    return 1.0 / (1.0 + f32_exp(-x))


@fn(nan=True, pure=True)
def expm1_f32(x: f32) -> f32:
    """e**x - 1 for x <= 0: from -ln 2 on a series, as the difference would lose what x is; its ten terms leave 2**-26."""
    if x < -0.6931472:
        return f32_exp(x) - 1.0
    p = 2.7557319e-07 * x + 2.7557319e-06
    p = p * x + 2.4801587e-05
    p = p * x + 0.00019841270
    p = p * x + 0.0013888889
    p = p * x + 0.008333334
    p = p * x + 0.041666668
    p = p * x + 0.16666667
    p = p * x + 0.5
    return x + x * x * p


@fn(nan=True)
def unary_f32_run(call: LayerCall) -> Status:
    p = view(UnaryF32Params, call.params)
    at = call.row * p.n
    x = view(f32, call.data[0])[at:]
    y = view(f32, call.data[1])[at:]
    for i in range((call.row_end - call.row) * p.n):
        value: f32 = 0.0
        if not isnan(x[i]):
            value = x[i]
        if p.op == UNARY_CLAMP:
            value = clamp_f32(value, p.low, p.high)
        elif p.op == UNARY_LOGISTIC:
            value = logistic_f32(value)
        elif p.op == UNARY_TANH:
            value = f32_tanh(value)
        elif p.op == UNARY_ELU:
            if value < 0.0:
                value = expm1_f32(value)
        elif p.op == UNARY_LEAKY:
            if value <= 0.0:
                value = value * p.low
        else:
            value = value * clamp_f32(value + 3.0, 0.0, 6.0) / 6.0
        y[i] = value
    return Status.OK


def plan(op: Any) -> Any:
    """The step. Plain Python."""
    from synapticos.kernel.layers.elements_f32 import limits_f32
    from synapticos.kernel.layers.operands import require
    from synapticos.kernel.layers.variants import UNARY_F32, LayerPlan, as_rows

    x, y = op.inputs[0], op.outputs[0]
    require("float32", x, y)
    rows, n = as_rows(y.shape)
    low, high = limits_f32(op.kind) if op.kind.startswith("RELU") else (op.options.get("alpha", 0.0), 0.0)
    if op.kind in ("RELU", "NONE"):
        high = float("inf")
    params = pack(UnaryF32Params, rows=rows, n=n, op=UNARY.get(op.kind, 0), low=low, high=high)
    return LayerPlan(UNARY_F32, [x], [y], params, scratch=0, cost=rows * n, rows=rows)
