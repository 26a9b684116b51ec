"""f32 functions in f32 operations alone: the same bits on every engine, and no libm.

Largest errors, in units of the last place of the exact result, measured over all floats of each function's range
against the double-precision libm: `f32_exp` 0.957 (0.751 of the smallest subnormal where the result is subnormal),
`f32_log` 0.835, `f32_sin` 0.965, `f32_cos` 0.929 (both for |x| <= 8192), `f32_tanh` 1.331. `f32_sqrt`, `f32_floor` and
the roundings are exact. Nothing here takes a NaN: ask `isnan` first.
"""

from synapticos.lang import *

EXP_OVERFLOWS = 88.72283172607422  # the largest x whose e**x is a finite float
EXP_VANISHES = -104.0  # below this e**x is under half the smallest subnormal
LOG2_E = 1.44269504
LN2_HIGH = 0.693359375  # 355/512: times an integer of up to 15 bits this is exact
LN2_LOW = -2.12194440e-4  # ln 2 - LN2_HIGH
TWO_OVER_PI = 0.636619772
# pi/2 in four parts: the first three have 11 bits, so times an integer of up to 13 bits each is exact.
HALF_PI = 1.5703125
HALF_PI_2 = 0.0004837512969970703
HALF_PI_3 = 7.549533620476723e-08
HALF_PI_4 = 2.5633440682570896e-12
CIRCLES_TO = 8192.0  # the largest angle that the parts above reduce
TANH_IS_ONE = 9.2  # from here on tanh rounds to 1
INTEGERS_FROM = 8388608.0  # 2**23: floats this large have no fraction
ROUNDS_BELOW_2_22 = 12582912.0  # 1.5 * 2**23: adding it leaves no bit for a fraction
SMALLEST_NORMAL = 1.1754943508222875e-38
SIGN: Final[u32] = 0x80000000
INFINITY_BITS: Final[u32] = 0x7F800000
MANTISSA: Final[u32] = 0x007FFFFF
SQRT_HALF_BITS: Final[u32] = 0x3F3504F3


@fn(pure=True, inline=True)
def is_finite(x: f32) -> bool:
    """Neither infinite nor a NaN."""
    return (bits(x) & INFINITY_BITS) != INFINITY_BITS


@fn(pure=True)
def f32_exp(x: f32) -> f32:
    """e**x for any x but a NaN, subnormal results and infinities included. At most 0.957 ulp off.

    x = k ln 2 + r with |r| <= 0.35, then 1 + r + r**2 p(r) with p of degree 5, times 2**k in two factors,
    so that neither the largest nor a subnormal result needs an exponent that a float has not.
    """
    if x > EXP_OVERFLOWS:
        return from_bits(INFINITY_BITS)
    if x < EXP_VANISHES:
        return 0.0
    k = (x * LOG2_E + ROUNDS_BELOW_2_22) - ROUNDS_BELOW_2_22
    r = (x - k * LN2_HIGH) - k * LN2_LOW
    p = 0.00019900444 * r + 0.0013934545
    p = p * r + 0.008333297
    p = p * r + 0.041666456
    p = p * r + 0.16666667
    p = p * r + 0.5
    y = 1.0 + (r + r * r * p)
    exponent = i32(k)
    half = exponent >> 1
    return y * from_bits(u32(half + 127) << 23) * from_bits(u32(exponent - half + 127) << 23)


@fn(pure=True)
def f32_log(x: f32) -> f32:
    """The natural logarithm of any x >= 0; of 0 it is minus infinity. At most 0.835 ulp off.

    x = m 2**k with m in [sqrt(1/2), sqrt(2)); with f = m - 1 and s = f / (2 + f), log m = 2 atanh s,
    arranged as f - (f**2/2 - s (f**2/2 + R(s**2))) so that the leading term is exact.
    """
    assert x >= 0.0, "the logarithm of a negative number"
    if x == 0.0:
        return from_bits(SIGN | INFINITY_BITS)
    if not is_finite(x):
        return x
    exponent: i32 = 0
    normal = x
    if x < SMALLEST_NORMAL:
        normal = x * INTEGERS_FROM
        exponent = -23
    word = wrap(u32, bits(normal) - SQRT_HALF_BITS)
    exponent += wrap(i32, word) >> 23
    f = from_bits((word & MANTISSA) + SQRT_HALF_BITS) - 1.0
    s = f / (2.0 + f)
    z = s * s
    series = z * (0.6666667 + z * (0.40000144 + z * (0.28548297 + z * 0.23397034)))
    half_square = 0.5 * f * f
    k = f32(exponent)
    return k * LN2_HIGH + (f - (half_square - (s * (half_square + series) + k * LN2_LOW)))


@fn(pure=True)
def f32_sin(x: f32) -> f32:
    """The sine of x radians, |x| <= 8192. At most 0.965 ulp off."""
    if x == 0.0:
        return x
    return sine_quarter(x, 0)


@fn(pure=True)
def f32_cos(x: f32) -> f32:
    """The cosine of x radians, |x| <= 8192. At most 0.929 ulp off."""
    return sine_quarter(x, 1)


@fn(pure=True)
def sine_quarter(x: f32, quarters: u32) -> f32:
    """The sine of x plus a number of quarter circles.

    x = k pi/2 + r + low, where the three subtractions keep in `low` what each of them rounds off, so that an angle
    next to a multiple of pi/2 loses nothing. Then sin r = r + r**3 p(r**2) or cos r = 1 - r**2/2 + r**4 q(r**2).
    """
    assert -CIRCLES_TO <= x <= CIRCLES_TO, "an angle past 8192 radians"
    k = (x * TWO_OVER_PI + ROUNDS_BELOW_2_22) - ROUNDS_BELOW_2_22
    exact = (x - k * HALF_PI) - k * HALF_PI_2
    third = k * HALF_PI_3
    nearly = exact - third
    fourth = k * HALF_PI_4
    r = nearly - fourth
    low = ((exact - nearly) - third) + ((nearly - r) - fourth)
    z = r * r
    quadrant = wrap(u32, wrap(u32, i32(k)) + quarters) & 3
    y: f32 = 0.0
    if (quadrant & 1) == 0:
        p = 2.7237618e-06 * z - 0.0001983999
        p = p * z + 0.008333332
        p = p * z - 0.16666667
        y = r + (low + r * z * p)
    else:
        q = 2.480052e-05 - 2.7290685e-07 * z
        q = q * z - 0.0013888888
        q = q * z + 0.041666668
        half_square = 0.5 * z
        y = 1.0 - half_square
        y = y + (((1.0 - y) - half_square) + (z * z * q - r * low))
    if quadrant >= 2:
        return -y
    return y


@fn(pure=True)
def f32_tanh(x: f32) -> f32:
    """The hyperbolic tangent of any x but a NaN. At most 1.331 ulp off."""
    magnitude = f32_abs(x)
    if x == 0.0:
        return x
    if magnitude < 0.625:
        z = x * x
        p = 0.0022958412 * z - 0.00834698
        p = p * z + 0.021769961
        p = p * z - 0.053959407
        p = p * z + 0.13333304
        p = p * z - 0.33333334
        return x + x * z * p
    if magnitude >= TANH_IS_ONE:
        return with_sign_of(1.0, x)
    return with_sign_of(1.0 - 2.0 / (f32_exp(2.0 * magnitude) + 1.0), x)


@intrinsic("__builtin_sqrtf({0})", when="defined(__SSE2__) || (defined(__ARM_FP) && (__ARM_FP & 4))")
def f32_sqrt(x: f32) -> f32:
    """The square root, rounded to nearest even; x >= 0, or -0.0, which is its own root.

    The body finds 25 bits of the root, two bits of the radicand at a time. The root of a float is never halfway
    between two floats, so adding 1 before dropping the last bit is the whole rounding.
    """
    assert x >= 0.0, "the square root of a negative number"
    if x == 0.0 or not is_finite(x):
        return x
    word = bits(x)
    exponent = i32(word >> 23)
    mantissa = word & MANTISSA
    if exponent == 0:
        exponent = 1
        while mantissa < 0x00800000:
            mantissa <<= 1
            exponent -= 1
    else:
        mantissa |= 0x00800000
    if (exponent & 1) == 0:
        mantissa <<= 1
    pairs = mantissa << 7  # the next two bits of the radicand are its top ones
    root: u32 = 0
    rest: u32 = 0
    for _ in range(25):
        rest = (rest << 2) | (pairs >> 30)
        pairs = wrap(u32, pairs << 2)
        trial = (root << 2) | 1
        root <<= 1
        if rest >= trial:
            rest -= trial
            root |= 1
    return from_bits((u32(exponent + 127) >> 1 << 23) + ((root + 1) >> 1) - 0x00800000)


@fn(pure=True, inline=True)
def with_sign_of(magnitude: f32, x: f32) -> f32:
    """`magnitude`, which is not negative, with the sign of x, zeros too."""
    return from_bits(bits(magnitude) | (bits(x) & SIGN))


@fn(pure=True, inline=True)
def f32_abs(x: f32) -> f32:
    """x without its sign."""
    return from_bits(bits(x) & 0x7FFFFFFF)


@fn(pure=True)
def f32_floor(x: f32) -> f32:
    """The largest integer not above x; -0.0 and infinities stay."""
    if f32_abs(x) >= INTEGERS_FROM:
        return x
    whole = f32(i32(x))
    if whole == x:
        return x
    if whole > x:
        return whole - 1.0
    return whole


@fn(pure=True)
def round_half_even(x: f32) -> f32:
    """The nearest integer, of two the even one; the sign stays, so -0.25 gives -0.0."""
    magnitude = f32_abs(x)
    if magnitude >= INTEGERS_FROM:
        return x
    return with_sign_of((magnitude + INTEGERS_FROM) - INTEGERS_FROM, x)


@fn(pure=True)
def round_half_away(x: f32) -> f32:
    """The nearest integer, of two the one farther from 0; the sign stays.

    Not floor(x + 0.5): in f32 that sum is 1.0 for 0.49999997. Here the fraction is split off first, exactly.
    """
    magnitude = f32_abs(x)
    if magnitude >= INTEGERS_FROM:
        return x
    whole = f32(i32(magnitude))
    if magnitude - whole >= 0.5:
        whole += 1.0
    return with_sign_of(whole, x)


@fn(pure=True, inline=True)
def nearest_half_away(x: f32) -> i32:
    """`round_half_away` as an integer; |x| < 2**24, so that the fraction is exact."""
    whole = i32(x)
    fraction = x - f32(whole)
    return whole + i32(fraction + fraction)  # twice the fraction is exact: it reaches 1 where the fraction reaches a half
