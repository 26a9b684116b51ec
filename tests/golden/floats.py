"""f32: literals, conversions, comparisons."""

from synapticos.lang import *

HALF = 0.5


@fn
def mix(x: f32, y: f32, n: i32) -> f32:
    half = x * HALF - y / 3.0
    if half > 1e10 or isnan(half):
        half = -0.1
    return min(half, f32(n)) + 16777216.0


@fn
def whole(x: f32) -> i32:
    near = (x + 12582912.0) - 12582912.0
    return i32(near) + i32(bits(x) >> 31)


@fn(disjoint=True)
def scale(x: Ptr[i8], y: Ptr[f32], n: u32, factor: f32, zero: i32):
    for i in range(n):
        y[i] = f32(i32(x[i]) - zero) * factor
