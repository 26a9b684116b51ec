"""SOFTMAX, int8, in fixed point: the reference's polynomial for exp and its Newton steps for the quotient.

    d[c] = x[c] - max(x)
    y[c] = clamp(round(exp(beta * scale * d[c]) / sum_k exp(beta * scale * d[k]) * 256) - 128); -128 where d[c] < d_min

    x  i8 [rows, n]
    y  i8 [rows, n]; may be x itself

Qm.k is an i32 with m bits above the point (sign apart) and k below. exp is computed in Q0.31 from a difference in
Q5.26, summed in Q12.19. Bounds: n <= 4095 terms of at most 2**19 keep the sum below 2**31. d_min keeps
-d << shift below 31 * 2**26. The polynomial's partial results stay inside (-1, 1), the quotient's inside (-4, 4).
"""

from typing import Any

from synapticos.lang import *
from synapticos.kernel.container import LayerCall, LayerCheck
from synapticos.kernel.layers.checks import apart, holds_i8, product, takes
from synapticos.kernel.layers.requant import high_mul, round_shift
from synapticos.kernel.status import Status

ONE_Q0: Final[i32] = 2147483647  # nearly 1 in Q0.31
SUM_BITS: Final[u32] = 12  # above the point in a sum
MAX_CLASSES: Final[u32] = 4095

# exp(-2**e) in Q0.31 for e = -2..4, selected by bits 24.. of the difference
EXP_STEPS = rom(i32, [1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242])


@struct
class SoftmaxParams:
    rows: u32
    n: u32
    multiplier: i32  # of a difference, into Q5.26
    shift: u32
    d_min: i32  # below it exp rounds to 0


SOFTMAX_PARAMS_BYTES: Final[u32] = sizeof(SoftmaxParams)


@fn
def softmax_validate(check: LayerCheck) -> Status:
    if not takes(check, 1, SOFTMAX_PARAMS_BYTES, 0):
        return Status.INVAL
    p = view(SoftmaxParams, check.params)
    size = product(p.rows, p.n)
    if p.n > MAX_CLASSES or check.rows > p.rows or not holds_i8(check, 0, size) or not holds_i8(check, 1, size):
        return Status.INVAL
    if p.multiplier < 0 or p.shift > 30 or p.d_min > 0 or p.d_min < -255 or not apart(check, True):
        return Status.INVAL
    # -d_min << shift stays an i32.
    if p.d_min < 0 and u32(-p.d_min) > u32(2147483647) >> p.shift:
        return Status.INVAL
    return Status.OK


@fn(pure=True)
def exp_q5(a: i32) -> i32:
    """exp(a) in Q0.31 for a <= 0 in Q5.26."""
    if a == 0:
        return ONE_Q0
    # a = part - steps, part in [-1/4, 0): a polynomial about -1/8 for exp(part), then a product for each bit of steps.
    part = (a & 16777215) - 16777216
    x = (part << 5) + 268435456
    x2 = high_mul(x, x)
    x3 = high_mul(x2, x)
    x4 = high_mul(x2, x2)
    tail = round_shift(high_mul(round_shift(x4, 2) + x3, 715827883) + x2, 1)
    result = 1895147668 + high_mul(1895147668, x + tail)
    steps = wrap(u32, part - a) >> 24
    for bit in range(7):
        if (steps >> bit) & 1 != 0:
            result = high_mul(result, EXP_STEPS[bit])
    return result


@fn(pure=True)
def saturating_left(x: i32, count: u32) -> i32:
    """x << count, clamped to i32; `count` is 1..30."""
    room = 31 - count
    limit = i32((u32(1) << room) - 1)
    if x > limit:
        return 2147483647
    if x < -limit:
        return -2147483648
    return x << count


@fn(pure=True)
def reciprocal_q0(a: i32) -> i32:
    """1 / (1 + a) in Q0.31 for a in [0, 1) in Q0.31: three Newton steps for the half of it."""
    half = i32((i64(a) + ONE_Q0 + 1) >> 1)  # (1 + a) / 2
    x = 1515870810 + high_mul(half, -1010580540)  # 48/17 - 32/17 * half, in Q2.29
    for newton in range(3):
        error = 536870912 - high_mul(half, x)
        x = x + saturating_left(high_mul(x, error), 2)
    return saturating_left(x, 1)


@fn(pure=True)
def leading_zeros(x: u32) -> u32:
    """Zero bits above the highest one of x; 32 for 0."""
    count: u32 = 0
    rest = x
    if rest == 0:
        return 32
    if rest < 65536:
        rest <<= 16
        count += 16
    if rest < 16777216:
        rest <<= 8
        count += 8
    if rest < 268435456:
        rest <<= 4
        count += 4
    if rest < 1073741824:
        rest <<= 2
        count += 2
    if rest < 2147483648:
        count += 1
    return count


@fn
def softmax_run(call: LayerCall) -> Status:
    p = view(SoftmaxParams, call.params)
    n = p.n
    for row in range(call.row, call.row_end):
        x = view(i8, call.data[0])[row * n :]
        y = view(i8, call.data[1])[row * n :]
        top: i32 = -128
        for c in range(n):
            top = max(top, i32(x[c]))
        total: i32 = 0
        for c in range(n):
            d = i32(x[c]) - top
            if d >= p.d_min:
                total += round_shift(exp_q5(high_mul(d << p.shift, p.multiplier)), SUM_BITS)
        # total = 2**-headroom * (1 + a) in units of 2**31
        headroom = leading_zeros(u32(total))
        scale = reciprocal_q0(i32(wrap(u32, u32(total) << headroom) - 2147483648))
        count = SUM_BITS + 23 - headroom
        for c in range(n):
            d = i32(x[c]) - top
            value: i32 = 0
            if d >= p.d_min and count <= 31:
                value = round_shift(high_mul(scale, exp_q5(high_mul(d << p.shift, p.multiplier))), count)
            y[c] = i8(min(max(value - 128, -128), 127))
    return Status.OK


def plan(op: Any) -> Any:
    """The step for a SOFTMAX. Plain Python."""
    from synapticos.kernel.layers import quantize
    from synapticos.kernel.layers.variants import Unsupported

    x, y = op.inputs[0], op.outputs[0]
    quantize.require_int8(x, y)
    if int(y.zero[0]) != -128 or float(y.scale[0]) != 1 / 256:
        raise Unsupported(f"an output of scale {y.scale[0]:g}, zero {int(y.zero[0])}", "1/256 and -128")
    return plan_rows(op, x)


def plan_rows(op: Any, x: Any) -> Any:
    """The step, whatever the output's type. Plain Python."""
    from math import floor, prod

    from synapticos.kernel.layers import quantize
    from synapticos.kernel.layers.variants import SOFTMAX_I8, LayerPlan, Unsupported

    quantize.require_int8(x)
    n = int(x.shape[-1])
    if n > MAX_CLASSES:
        raise Unsupported(f"{n} classes", f"up to {MAX_CLASSES}")
    rows = prod(int(k) for k in x.shape) // n
    real = min(float(op.options.get("beta", 1.0)) * float(x.scale[0]) * (1 << 26), float((1 << 31) - 1))
    multiplier, shift = quantize.multiplier_of(real)
    if shift < 0:
        raise Unsupported(f"an input of scale {x.scale[0]:g}", "2**-27 or more")
    d_min = -floor(31.0 * (1 << 26) / (1 << shift))
    params = pack(SoftmaxParams, rows=rows, n=n, multiplier=multiplier, shift=shift, d_min=max(d_min, -255))
    return LayerPlan(SOFTMAX_I8, [x], [op.outputs[0]], params, scratch=0, cost=rows * n, rows=rows)
