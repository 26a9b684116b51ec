"""Division of 64-bit numbers by 32-bit ones in 32-bit steps: on a chip the compiler's own routine takes ten times the flash."""

from synapticos.lang import *


@fn
def divide(n: u64, by: u32) -> u64:
    """n // by. `by` is not 0."""
    assert by != 0, "division by 0"
    high = u32(n >> 32)
    low = wrap(u32, n)
    if high == 0:
        return u64(low // by)
    rest = high % by
    quotient: u32 = 0
    for i in range(32):
        # rest < by, so 2 * rest + 1 takes 33 bits at most: the 33rd is the bit that is shifted out.
        out = rest >> 31
        rest = wrap(u32, rest << 1) | (low >> (31 - i) & 1)
        quotient = wrap(u32, quotient << 1)
        if out != 0 or rest >= by:
            rest = wrap(u32, rest - by)
            quotient = quotient | 1
    return u64(high // by) << 32 | quotient
