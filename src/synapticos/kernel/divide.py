"""Division of 64-bit numbers by 32-bit ones: on a chip the compiler's own routine takes ten times the flash.

What it costs from 2**32 on does not depend on the numbers, and below it is less: so a release can be charged for it.
"""

from synapticos.lang import *
from synapticos.kernel.bits import zeros_above


@fn
def divide(n: u64, by: u32) -> u64:
    """n // by. `by` is not 0."""
    assert by != 0, "division by 0"
    high = u32(n >> 32)
    low = wrap(u32, n)
    if high == 0:
        return u64(low // by)
    # Two digits of 16 bits of (rest, low) // by, by an estimate from the upper half of `by`, scaled to its full width: it
    # is at most 2 too large (D. Knuth, "The Art of Computer Programming", volume 2, section 4.3.1, theorem B).
    shift = zeros_above(by)
    scaled = by << shift
    rest = u64(high % by) << 32 | low
    rest = rest << shift
    quotient: u32 = 0
    for i in range(2):
        part = rest >> 16
        digit = u32(rest >> 32) // (scaled >> 16)
        used = u64(digit) * scaled
        for k in range(2):  # without a branch
            over = u32(wrap(u64, part - used) >> 63)  # 1 if it is
            digit -= over
            used -= u64(scaled) * over
        rest = (part - used) << 32 | (rest & 0xFFFF) << 16
        quotient = quotient << 16 | digit
    return u64(high // by) << 32 | quotient


@fn
def divide_short(n: u64, by: u32) -> u64:
    """n // by, `by` from 1 to 65535: digits of 16 bits, each a division that the processor has."""
    high = u32(n >> 32)
    low = wrap(u32, n)
    middle = (high % by) << 16 | low >> 16
    last = (middle % by) << 16 | (low & 0xFFFF)
    return (u64(high // by) << 32) + (u64(middle // by) << 16) + last // by
