"""The requantizer against exact fractions, and the multipliers that the host computes for it."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from layer_reference import fixed, half_away, half_up

from synapticos.kernel.layers.quantize import multiplier_of
from synapticos.kernel.layers.requant import high_mul, requantize, round_shift

EDGES = [-(2**31), -(2**31) + 1, -(2**30), -1, 0, 1, 2**30 - 1, 2**30, 2**31 - 1]
words = st.one_of(st.sampled_from(EDGES), st.integers(-(2**31), 2**31 - 1))
multipliers = st.one_of(st.sampled_from([0, 1, 2**30, 2**30 + 1, 2**31 - 1]), st.integers(0, 2**31 - 1))


@pytest.fixture(scope="session")
def e(engines):
    return engines(high_mul, round_shift, requantize)


@given(words, multipliers)
def test_high_mul_is_the_product_rounded_half_up(e, a, b):
    assert e(high_mul, a, b) == half_up(Fraction(a * b, 2**31))


@given(words, multipliers)
def test_high_mul_is_what_the_reference_computes_with_its_two_nudges(e, a, b):
    nudged = a * b + (2**30 if a * b >= 0 else 1 - 2**30)
    truncated = abs(nudged) // 2**31 * (1 if nudged >= 0 else -1)
    assert e(high_mul, a, b) == truncated


@given(words.map(lambda x: min(max(x, -(2**31) + 1), 2**31 - 2)), st.integers(1, 31))
def test_round_shift_rounds_half_away_from_zero(e, x, count):
    assert e(round_shift, x, count) == half_away(Fraction(x, 2**count))


@given(st.integers(-(2**20), 2**20), multipliers, st.integers(-31, 10))
def test_requantize_rounds_twice(e, x, multiplier, shift):
    high = half_up(Fraction(x * 2 ** max(shift, 0) * multiplier, 2**31))
    assert e(requantize, x, multiplier, shift) == half_away(Fraction(high, 2 ** max(-shift, 0)))


@given(st.floats(2.0**-40, 2.0**20))
def test_multiplier_of_is_the_nearest_31_bits(scale):
    assert multiplier_of(scale) == fixed(scale)


def test_a_scale_that_rounds_up_to_one_moves_the_shift():
    assert multiplier_of(1 - 2.0**-40) == (2**30, 1)
    assert multiplier_of(2.0**-33) == (0, 0)
    assert multiplier_of(2.0**-32) == (2**30, -31)
