"""Integers: widths, wrap, sat, division."""

from synapticos.lang import *

PRIME: Final[u32] = 16777619


@fn
def sums(a: u8, b: u8, c: u32, d: i32, e: i64) -> i64:
    """Narrow results are cast back; operands meet in the wider type."""
    narrow = a + b
    wide = c * 3 + narrow
    return d - e + wide


@fn
def hash_step(h: u32, c: u8) -> u32:
    """FNV-1a, one byte."""
    return wrap(u32, (h ^ c) * PRIME)


@fn
def halves(x: u32) -> i32:
    low = i32(wrap(i16, x))
    high = i32(wrap(i16, x >> 16))
    return low * high


@fn
def clamp(x: i32, y: f32) -> i8:
    return max(sat(i8, x), sat(i8, y))


@fn
def ratios(a: u32, b: u32, s: i32, w: u64) -> u64:
    q = a // b + a % 10
    f = div_floor(s, 8)
    t = div_trunc(s, 7)
    return div_u64(w, 1000) + q + u32(max(f, 0)) + u32(max(t, 0))


@fn
def bits_of(x: u32, n: u32) -> u32:
    mask = (u32(1) << n) - 1
    return x >> n & mask | x << (31 - n) & ~mask
