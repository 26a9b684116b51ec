"""Biquads: recursive filters of second order, one after the other, in f32.

    y = b0 x + s1;  s1 = b1 x - a1 y + s2;  s2 = b2 x - a2 y      (direct form II, transposed; a0 is 1)

The order of operations is the one written. Results stay within +-1e30, so a filter that runs away ends at a bound and
not in a NaN: with coefficients up to 1e6 a state is then at most 1e36 and its sum with the other, below 2e37.
"""

from synapticos.lang import *
from synapticos.kernel.stages.features import audible

LARGEST_COEFFICIENT = 1.0e6
BOUND = 1.0e30
LARGEST_S1 = 2.0e37
LARGEST_S2 = 1.0e37


@struct
class Biquad:
    b0: f32
    b1: f32
    b2: f32
    a1: f32
    a2: f32
    s1: f32  # state: 0 at first
    s2: f32


@fn(pure=True, inline=True)
def is_gain(x: f32) -> bool:
    """A coefficient whose products stay in f32."""
    return not isnan(x) and -LARGEST_COEFFICIENT <= x <= LARGEST_COEFFICIENT


@fn(pure=True)
def is_biquad(section: Biquad) -> bool:
    """Coefficients within +-1e6, and states that these can leave."""
    if not is_gain(section.b0) or not is_gain(section.b1) or not is_gain(section.b2) or not is_gain(section.a1) or not is_gain(section.a2):
        return False
    if isnan(section.s1) or isnan(section.s2):
        return False
    return -LARGEST_S1 <= section.s1 <= LARGEST_S1 and -LARGEST_S2 <= section.s2 <= LARGEST_S2


@fn(pure=True, inline=True)
def bounded_result(x: f32) -> f32:
    return min(max(x, -BOUND), BOUND)


@fn
def biquad_f32(sections: Ptr[Biquad], count: u32, x: Ptr[f32], y: Ptr[f32], n: u32) -> None:
    """Filter n samples; y may be x. Sections as `is_biquad` says; samples count as `audible` says (NaN is 0, +-1e12)."""
    for i in range(n):
        y[i] = audible(x[i])
    for k in range(count):
        section = sections[k]
        b0 = section.b0  # y could lie over the sections, as far as C knows
        b1 = section.b1
        b2 = section.b2
        a1 = section.a1
        a2 = section.a2
        s1 = section.s1
        s2 = section.s2
        for i in range(n):
            value = y[i]
            made = bounded_result(b0 * value + s1)
            s1 = b1 * value - a1 * made + s2
            s2 = b2 * value - a2 * made
            y[i] = made
        section.s1 = s1
        section.s2 = s2
