"""The requantizer that all layers share: an i32 sum times a real scale, in the reference's own steps.

    y = round_shift(high_mul(acc << max(shift, 0), multiplier), max(-shift, 0))

    multiplier  0..2**31-1, shift  -31..30 (checked when a container is loaded)

Two roundings: first the product's high half, then the shift. One rounding of the exact product differs in the last
bit now and then, and the judge is the reference.
"""

from synapticos.lang import *

MIN_SHIFT: Final[i32] = -31
MAX_SHIFT: Final[i32] = 30


@struct
class OutputRange:
    """How a requantized sum becomes an i8."""

    zero: i32  # zero point of the output
    low: i32  # lowest value before the zero point is added: -128 - zero, or higher for a fused activation
    high: i32


@fn(pure=True, inline=True)
def high_mul(a: i32, b: i32) -> i32:
    """a * b / 2**31, rounded to nearest, halves up; `b` is 0..2**31-1. The result lies in -2**31+1..2**31-2.

    The reference adds 2**30 or 1 - 2**30 by the product's sign and truncates: the same number for every product.
    It saturates for a = b = -2**31 only; b is never negative here.
    """
    return wrap(i32, (i64(a) * b + 1073741824) >> 31)


@fn(pure=True, inline=True)
def round_shift(x: i32, count: u32) -> i32:
    """x / 2**count, rounded to nearest, halves away from 0; `count` is 1..31, x a result of `high_mul`.

    Negative numbers are lowered by 1, so that a half goes down; then the first bit that falls off rounds up.
    """
    doubled = (x + (x >> 31)) >> (count - 1)
    return (doubled + 1) >> 1


@fn(pure=True, inline=True)
def requantize(acc: i32, multiplier: i32, shift: i32) -> i32:
    """acc * multiplier * 2**(shift - 31), rounded twice."""
    if shift >= 0:
        return high_mul(wrap(i32, acc << u32(shift)), multiplier)
    return round_shift(high_mul(acc, multiplier), u32(-shift))


@fn(pure=True, inline=True)
def to_i8(value: i32, out: OutputRange) -> i8:
    """Clamp, then add the zero point. Clamping first cannot overflow, whatever `value` is."""
    return i8(min(max(value, out.low), out.high) + out.zero)


@fn(pure=True)
def range_is_sound(out: OutputRange) -> bool:
    """Whether `to_i8` stays inside i8."""
    if out.zero < -128 or out.zero > 127 or out.low > out.high:
        return False
    return out.low >= -128 - out.zero and out.high <= 127 - out.zero


@fn(pure=True)
def scale_is_sound(multiplier: i32, shift: i32) -> bool:
    """Whether `requantize` may be given these."""
    return multiplier >= 0 and shift >= MIN_SHIFT and shift <= MAX_SHIFT


def output_range(y_zero: int, low: int, high: int) -> dict[str, int]:
    """Fields of OutputRange for an output whose values are low..high. Plain Python."""
    return {"zero": y_zero, "low": low - y_zero, "high": high - y_zero}
