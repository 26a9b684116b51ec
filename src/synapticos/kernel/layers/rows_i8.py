"""L2_NORMALIZATION and LOG_SOFTMAX, int8, row by row, in the reference's fixed point.

    L2           y_c = clamp(requantize(x_c - zero, 1 / sqrt(sum (x_k - zero)**2))) in units of 1/128
    LOG_SOFTMAX  y_c = clamp(round(16 * (d_c - log(sum exp(d_k))))) + 127, d = scale * (x - max); -128 where d is too small

    x  i8 [rows, n]
    y  i8 [rows, n]; may be x itself

Qm.k is an i32 with m bits above the point and k below, as in `softmax`. Bounds: n <= 4095 keeps a sum of exp in Q12.19
below 2**31 and one of squares, 65025 each, below 2**29.
"""

from typing import Any

from synapticos.lang import *
from synapticos.kernel.container import LayerCall, LayerCheck
from synapticos.kernel.layers.checks import apart, holds_i8, product, takes
from synapticos.kernel.layers.requant import high_mul, requantize, round_shift, scale_is_sound
from synapticos.kernel.layers.softmax import MAX_CLASSES, SUM_BITS, exp_q5, leading_zeros, reciprocal_q0, saturating_left
from synapticos.kernel.status import Status

LN2: Final[i32] = 1488522236  # in Q0.31, as all of these
SQRT_HALF: Final[i32] = 1518500250
SQRT_SQRT_HALF: Final[i32] = 1805811301
# The quotient of polynomials about 2**-1/4 that stands for the logarithm.
LOG_N: Final[i32] = 117049297  # 11/240 * 2**1/4
LOG_D: Final[i32] = 127690142  # 1/20 * 2**1/4
LOG_I: Final[i32] = 1057819769  # 2 / 2**1/4 - 2**1/4
LOG_F: Final[i32] = 638450708  # 1/4 * 2**1/4


@struct
class RowsI8Params:
    rows: u32
    n: u32
    zero: i32  # L2: of x
    multiplier: i32  # LOG_SOFTMAX: of a difference, into Q5.26
    shift: u32
    d_min: i32  # below it exp rounds to 0
    back_multiplier: i32  # from Q5.26 to a difference
    back_shift: i32


ROWS_I8_PARAMS_BYTES: Final[u32] = sizeof(RowsI8Params)


@fn(pure=True)
def rows_i8_fit(check: LayerCheck) -> bool:
    if not takes(check, 1, ROWS_I8_PARAMS_BYTES, 0):
        return False
    p = view(RowsI8Params, check.params)
    size = product(p.rows, p.n)
    if p.n > MAX_CLASSES or check.rows > p.rows or not holds_i8(check, 0, size) or not holds_i8(check, 1, size):
        return False
    return apart(check, True)


@fn
def l2_i8_validate(check: LayerCheck) -> Status:
    if not rows_i8_fit(check):
        return Status.INVAL
    p = view(RowsI8Params, check.params)
    if p.zero < -128 or p.zero > 127:
        return Status.INVAL
    return Status.OK


@fn(pure=True)
def inverse_root(square: i32) -> tuple[i32, i32]:
    """1 / sqrt(square) as multiplier and shift for `requantize`; of 0 as of 1. Five Newton steps from 1 in Q3.28."""
    if square <= 1:
        return 2147483647, 0
    rest = u32(square)
    down: i32 = 11
    while rest >= 536870912:
        rest //= 4
        down += 1
    pairs = (leading_zeros(rest) - 1) // 2 - 1
    down -= i32(pairs)
    value = i32((rest << (2 * pairs)) >> 1)
    half = round_shift(value, 1)
    x: i32 = 268435456
    for newton in range(5):
        cube = saturating_left(high_mul(high_mul(x, x), x), 6)
        x = saturating_left(wrap(i32, high_mul(402653184, x) - high_mul(half, cube)), 3)
    multiplier = high_mul(x, SQRT_HALF)
    if down < 0:
        return wrap(i32, multiplier << u32(-down)), 0
    return multiplier, -down


@fn
def l2_i8_run(call: LayerCall) -> Status:
    p = view(RowsI8Params, call.params)
    n = p.n
    for row in range(call.row, call.row_end):
        x = view(i8, call.data[0])[row * n :]
        y = view(i8, call.data[1])[row * n :]
        square: i32 = 0
        for c in range(n):
            v = i32(x[c]) - p.zero
            square += v * v
        multiplier, shift = inverse_root(square)
        for c in range(n):
            y[c] = i8(min(max(requantize(i32(x[c]) - p.zero, multiplier, shift + 7), -128), 127))
    return Status.OK


@fn
def log_softmax_i8_validate(check: LayerCheck) -> Status:
    if not rows_i8_fit(check):
        return Status.INVAL
    p = view(RowsI8Params, check.params)
    if p.multiplier < 0 or p.shift > 30 or p.d_min > 0 or p.d_min < -255:
        return Status.INVAL
    # -d_min << shift stays an i32.
    if p.d_min < 0 and u32(-p.d_min) > u32(2147483647) >> p.shift:
        return Status.INVAL
    if not scale_is_sound(p.back_multiplier, p.back_shift):
        return Status.INVAL
    return Status.OK


@fn(pure=True)
def left(x: i32, count: u32) -> i32:
    """x << count, clamped; `count` may be 0."""
    if count == 0:
        return x
    return saturating_left(x, count)


@fn(pure=True)
def log_q12(a: i32) -> i32:
    """log(a) in Q5.26 for a >= 1 in Q12.19.

    Of a and a / sqrt 2 the one whose mantissa r lies nearer 2**-1/4 is taken; its power of 2 is exact, and log r is a
    quotient of polynomials in r - 2**-1/4.
    """
    zeros = leading_zeros(u32(a))
    r_a = left(high_mul(left(a, zeros - 1), SQRT_HALF), 1)
    power_a = (12 - i32(zeros)) * 33554432 + 8388608
    zeros_b = leading_zeros(u32(high_mul(a, SQRT_HALF))) - 1
    r_b = left(a, zeros_b)
    power_b = (12 - i32(zeros_b)) * 33554432 - 8388608
    r = min(r_a, r_b)
    power = max(power_a, power_b)
    middle = i32((i64(r) + SQRT_SQRT_HALF + 1) >> 1)
    q = wrap(i32, (r - SQRT_SQRT_HALF) * 2)
    square = high_mul(q, q)
    above = wrap(i32, high_mul(q, r) + high_mul(high_mul(q, square), LOG_N))
    below = wrap(i32, high_mul(middle, wrap(i32, LOG_I + q + high_mul(LOG_D, square))) + high_mul(LOG_F, q))
    part = high_mul(round_shift(above, 6), reciprocal_q0(below))
    return saturating_left(wrap(i32, high_mul(power, LN2) + part), 1)


@fn
def log_softmax_i8_run(call: LayerCall) -> Status:
    p = view(RowsI8Params, call.params)
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
        log = log_q12(total)
        least = max(p.d_min - 1, requantize(wrap(i32, log - 2147483648), p.back_multiplier, p.back_shift))
        for c in range(n):
            d = i32(x[c]) - top
            value: i32 = -128
            if d > least:
                value = round_shift(wrap(i32, high_mul(d << p.shift, p.multiplier) - log), 22) + 127
            y[c] = i8(min(max(value, -128), 127))
    return Status.OK


def plan(op: Any) -> Any:
    """The step. Plain Python."""
    from math import floor, prod

    from synapticos.kernel.layers import quantize
    from synapticos.kernel.layers.functions import one_scale
    from synapticos.kernel.layers.variants import L2_I8, LOG_SOFTMAX_I8, MAX_ROWS, LayerPlan, Unsupported

    x, y = op.inputs[0], op.outputs[0]
    quantize.require_int8(x, y)
    (scale, zero), out = one_scale(x), one_scale(y)
    n = int(x.shape[-1])
    rows = prod(int(k) for k in x.shape) // n
    wanted = (1 / 128, 0) if op.kind == "L2_NORMALIZATION" else (1 / 16, 127)
    if out != wanted:
        raise Unsupported(f"an output of scale {out[0]:g}, zero {out[1]}", f"{wanted[0]:g} and {wanted[1]}")
    if n > MAX_CLASSES or rows > MAX_ROWS:
        raise Unsupported(f"{rows} rows of {n}", f"up to {MAX_ROWS} of {MAX_CLASSES}")
    fields: dict[str, Any] = dict(rows=rows, n=n, zero=zero)
    variant = L2_I8
    if op.kind == "LOG_SOFTMAX":
        variant = LOG_SOFTMAX_I8
        multiplier, shift = quantize.multiplier_of(min(scale * (1 << 26), float((1 << 31) - 1)))
        if shift < 1:
            raise Unsupported(f"an input of scale {scale:g}", "2**-26 or more")
        back = quantize.multiplier_of((1 << (31 - shift)) / multiplier)
        d_min = -floor(31.0 * (1 << 26) / (1 << shift))
        fields |= dict(multiplier=multiplier, shift=shift, d_min=max(d_min, -255))
        fields |= dict(back_multiplier=back[0], back_shift=back[1])
    params = pack(RowsI8Params, **fields)
    return LayerPlan(variant, [x], [y], params, scratch=0, cost=rows * n, rows=rows)
