"""Pairs: a real as the unevaluated sum of two f32, `high + low`, where one rounding an operation is not enough.

`two_sum` and `two_product` are exact: what the rounding of the first result lost is the second. `exp_pair` and
`log_pair` are off by less than 2**-26 of their value. Nothing here takes a NaN or an infinity.
"""

from synapticos.lang import *
from synapticos.kernel.fmath import (
    LN2_HIGH,
    LN2_LOW,
    LOG2_E,
    MANTISSA,
    ROUNDS_BELOW_2_22,
    SQRT_HALF_BITS,
)

SPLIT = 4097.0  # 2**12 + 1: times this a float falls into two halves of 12 bits, whose products are exact
POWERS_TO: Final[i32] = 64  # `exp_pair` is scaled by 2**64, so that e**-120 is no subnormal
UNSCALE = 5.421010862427522e-20
PAIR_VANISHES = -120.0  # 2**28 times e**x is below half the smallest subnormal
LOG1P_BELOW = 0.41421356


@fn(pure=True, inline=True)
def two_sum(a: f32, b: f32) -> tuple[f32, f32]:
    """a + b = high + low, exactly; |a + b| < 2**127."""
    high = a + b
    part = high - a
    return high, (a - (high - part)) + (b - part)


@fn(pure=True)
def two_product(a: f32, b: f32) -> tuple[f32, f32]:
    """a b = high + low, exactly where low is no subnormal; |a|, |b|, |a b| < 2**114."""
    high = a * b
    wide = a * SPLIT
    a_high = wide - (wide - a)
    a_low = a - a_high
    wide = b * SPLIT
    b_high = wide - (wide - b)
    b_low = b - b_high
    return high, ((a_high * b_high - high) + a_high * b_low + a_low * b_high) + a_low * b_low


@fn(pure=True)
def exp_pair(x: f32, low: f32) -> tuple[f32, f32]:
    """2**64 e**(x + low) for -120 <= x <= 0 and a `low` that x + low rounds off.

    As `f32_exp`, with what its reduction and its last additions lose.
    """
    k = (x * LOG2_E + ROUNDS_BELOW_2_22) - ROUNDS_BELOW_2_22
    exact = x - k * LN2_HIGH
    r, rest = two_sum(exact, low - k * LN2_LOW)
    p = 0.00019900444 * r + 0.0013934545
    p = p * r + 0.008333297
    p = p * r + 0.041666456
    p = p * r + 0.16666667
    p = p * r + 0.5
    high, lost = two_sum(1.0, r)
    power = from_bits(u32(i32(k) + POWERS_TO + 127) << 23)
    tail = lost + (r * r * p + rest * high)
    nearest = high + tail
    return nearest * power, (tail - (nearest - high)) * power


@fn(pure=True)
def log_pair(x: f32, low: f32) -> tuple[f32, f32]:
    """log(1 + x + low) for 0 <= x < 2**100 and a `low` that x + low rounds off. As `f32_log`, in two parts."""
    f = x
    k: f32 = 0.0
    if x >= LOG1P_BELOW:
        sum, lost = two_sum(1.0, x)
        word = wrap(u32, bits(sum) - SQRT_HALF_BITS)
        exponent = wrap(i32, word) >> 23
        f = from_bits((word & MANTISSA) + SQRT_HALF_BITS) - 1.0
        low = (low + lost) * from_bits(u32(127 - exponent) << 23)
        k = f32(exponent)
    s = f / (2.0 + f)
    z = s * s
    series = z * (0.6666667 + z * (0.40000144 + z * (0.28548297 + z * 0.23397034)))
    half_square = 0.5 * f * f
    high, rounded = two_sum(k * LN2_HIGH, f)
    return high, rounded - (half_square - (s * (half_square + series) + (k * LN2_LOW + low / (1.0 + f))))
