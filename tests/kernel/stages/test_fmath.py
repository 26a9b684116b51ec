"""f32 functions against double precision, and the roundings against NumPy."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from synapticos.kernel.fmath import (
    f32_cos,
    f32_exp,
    f32_floor,
    f32_log,
    f32_sin,
    f32_sqrt,
    f32_tanh,
    round_half_away,
    round_half_even,
)
from synapticos.lang import Trap

any_number = st.floats(width=32, allow_nan=False)
rounded = st.floats(-(2.0**25), 2.0**25, width=32) | st.integers(-200, 200).map(lambda n: n / 4) | any_number


@pytest.fixture
def e(engines):
    return engines(f32_exp, f32_log, f32_sin, f32_cos, f32_tanh, f32_sqrt, f32_floor, round_half_even, round_half_away)


def f32_bits(x):
    return int(np.float32(x).view(np.uint32))


def ulps(got, want):
    """How far a result is from the exact one, in units of the last place that f32 has there."""
    exponent = max(math.frexp(want)[1], -125)
    return abs(float(got) - want) / math.ldexp(1.0, exponent - 24)


@given(st.floats(-104, 88.5, width=32) | st.floats(-1, 1, width=32))
@example(float.fromhex("-0x1.df388ep5"))  # the worst there is
@example(-103.875)
@example(88.72283172607422)
@example(2.0**-100)
def test_exp_is_within_its_bound(e, x):
    assert ulps(e(f32_exp, x), math.exp(x)) <= 0.957


def test_exp_at_its_ends(e):
    assert e(f32_exp, 0.0) == 1.0 and e(f32_exp, -0.0) == 1.0
    assert e(f32_exp, 88.72283935546875) == math.inf and e(f32_exp, math.inf) == math.inf
    assert e(f32_exp, -104.1) == 0.0 and e(f32_exp, -math.inf) == 0.0 and e(f32_exp, 3e38) == math.inf


@given(st.floats(0, width=32, exclude_min=True, allow_infinity=False) | st.floats(0.5, 2, width=32))
@example(float.fromhex("0x1.67cc32p0"))  # the worst there is
@example(2.0**-149)
def test_log_is_within_its_bound(e, x):
    assert ulps(e(f32_log, x), math.log(x)) <= 0.835 or x == 1.0


def test_log_at_its_ends(e):
    assert e(f32_log, 1.0) == 0.0 and e(f32_log, 0.0) == -math.inf and e(f32_log, math.inf) == math.inf
    with pytest.raises(Trap):
        e(f32_log, -1.0)


@given(st.floats(0, width=32))
@example(2.0**-149)
@example(3.4028234663852886e38)
def test_sqrt_is_exactly_rounded(e, x):
    assert f32_bits(e(f32_sqrt, x)) == f32_bits(np.sqrt(np.float32(x)))


def test_sqrt_keeps_a_negative_zero(e):
    assert f32_bits(e(f32_sqrt, -0.0)) == 0x80000000


@given(rounded)
@example(0.5 - 2.0**-25)
@example(-0.0)
@example(4194304.5)
@example(-8388607.5)
def test_roundings_equal_numpy(e, x):
    value = np.float32(x)
    assert f32_bits(e(f32_floor, x)) == f32_bits(np.floor(value))
    assert f32_bits(e(round_half_even, x)) == f32_bits(np.rint(value))
    away = math.copysign(math.floor(abs(x) + 0.5), x) if abs(x) < 2**30 else x
    assert f32_bits(e(round_half_away, x)) == f32_bits(away)


@given(st.floats(-8192, 8192, width=32) | st.floats(-7, 7, width=32) | st.integers(-5000, 5000).map(lambda k: float(np.float32(k * math.pi / 2))))
@example(float.fromhex("0x1.e7c75p+12"))  # the worst sine
@example(float.fromhex("0x1.d1b0b2p+12"))  # the worst cosine
@example(2.0**-149)
def test_sine_and_cosine_are_within_their_bounds(e, x):
    assert x == 0 or ulps(e(f32_sin, x), math.sin(x)) <= 0.965
    assert ulps(e(f32_cos, x), math.cos(x)) <= 0.929


@given(any_number)
@example(float.fromhex("0x1.41b1cap-1"))  # the worst there is
def test_tanh_is_within_its_bound(e, x):
    got = e(f32_tanh, x)
    assert x == 0 or ulps(got, math.tanh(x)) <= 1.331
    assert abs(got) <= 1 and math.copysign(1, got) == math.copysign(1, x)


def test_angles_that_cannot_be_reduced_trap(e):
    for angle in (8200.0, -1e30, math.inf):
        with pytest.raises(Trap):
            e(f32_sin, angle)
