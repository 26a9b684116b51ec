"""Bits of a word as a set of small numbers: slots that are free, jobs that have something to do."""

from synapticos.lang import *


@intrinsic("(uint32_t)__builtin_ctz({0})")
def lowest_bit(set: u32) -> u32:
    """The smallest number in a set that is not empty."""
    n: u32 = 0
    while (set >> n) & 1 == 0:
        n += 1
    return n


@intrinsic("(uint32_t)__builtin_clz({0})")
def zeros_above(word: u32) -> u32:
    """Zero bits above the highest one of a word that is not 0."""
    n: u32 = 0
    while (word << n) >> 31 == 0:
        n += 1
    return n


@fn(pure=True, inline=True)
def bit(n: u32) -> u32:
    """The set of one number below 32."""
    one: u32 = 1
    return one << n
