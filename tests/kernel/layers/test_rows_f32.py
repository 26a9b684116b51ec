"""Functions of float32 against exact real values, on all engines, and in units of the last place."""

import decimal
import math
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from synapticos.kernel.layers.rows_f32 import log_softmax_row, softmax_row
from synapticos.kernel.layers.unary_f32 import expm1_f32, logistic_f32
from synapticos.lang import *

SOFTMAX_BOUND = 1.5
LOG_SOFTMAX_BOUND = 0.75
LOGISTIC_BOUND = 1.992
ELU_BOUND = 1.32


@pytest.fixture(scope="module")
def e(engines):
    return engines(softmax_row, log_softmax_row, logistic_f32, expm1_f32)


@pytest.fixture(autouse=True)
def digits():
    """More than any cancellation below takes: 1 + e**-120 keeps 30 of its tail's."""
    with decimal.localcontext() as context:
        context.prec = 90
        yield


def ulps(got, want):
    """How far a result is from the exact one, in units of the last place that f32 has there."""
    exponent = max(math.frexp(float(want))[1], -125)
    return float(abs(Decimal(float(got)) - want)) / math.ldexp(1.0, exponent - 24)


def exponentials(x, beta):
    values = [Decimal(float(v)) for v in x]
    largest = max(values)
    exponents = {v: (v - largest) * Decimal(float(np.float32(beta))) for v in set(values)}
    made = {v: (d, d.exp() if d > -1000 else Decimal(0)) for v, d in exponents.items()}
    return [made[v] for v in values]


def check_softmax(e, x, beta):
    buffer = e.array(f32, x)
    e(softmax_row, buffer, buffer, len(x), float(max(x)), beta)  # in place: the layer may be asked to
    got = np.frombuffer(bytes(buffer), np.float32)
    made = [value for _, value in exponentials(x, beta)]
    total = sum(made)
    assert max(ulps(g, w / total) for g, w in zip(got, made, strict=True)) <= SOFTMAX_BOUND


def check_log_softmax(e, x):
    buffer, out = e.array(f32, x), e.array(f32, len(x))
    e(log_softmax_row, buffer, out, len(x), float(max(x)))
    got = np.frombuffer(bytes(out), np.float32)
    made = exponentials(x, 1.0)
    log = sum(value for _, value in made).ln()
    wanted = [d - log for d, _ in made]
    for g, w in zip(got, wanted, strict=True):
        if w < Decimal(-(2**128 - 2**103)):
            assert g == -np.inf  # the difference of two floats need not be one
        else:
            assert ulps(g, w) <= LOG_SOFTMAX_BOUND


def hostile(random):
    """Rows where something nearly cancels, vanishes or overflows."""
    for n in (1, 2, 3, 10, 31, 100):
        yield random.normal(0, 10.0 ** random.uniform(-6, 2.5), n)
        yield random.normal(0, 1, n) + random.uniform(-1000, 1000)
        yield random.normal() + random.normal(0, 1e-6, n)  # all of them the same, nearly
        yield np.append(-np.abs(random.normal(0, 1e-6, n)), random.uniform(0, 120))  # one far ahead: log of 1 and a bit
        yield random.uniform(-115, 0, n)  # results down to the subnormals, and past them
        yield random.choice([0, 1e-45, -87.3, -103.9, -104.5, 3.4e38, -3.4e38, 1e30, 100, -16.7], n)
    yield np.append(np.zeros(1), np.full(999, -109.0))  # each is nothing; together they are a subnormal
    yield random.normal(0, 3, 1000)


@pytest.mark.parametrize("seed", range(2))
def test_softmax_and_log_softmax_are_near_the_exact_real_values(e, seed):
    random = np.random.default_rng(seed)
    for i, row in enumerate(hostile(random)):
        x = row.astype(np.float32)
        check_softmax(e, x, float(np.float32([1.0, 0.1, 7.3][i % 3])))
        check_log_softmax(e, x)


@given(st.lists(st.floats(-120, 120, width=32) | st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=12))
@example([3.4028234663852886e38, -3.4028234663852886e38])
@example([0.0, -0.0])
def test_any_row_is_near_the_exact_real_values(e, row):
    x = np.array(row, np.float32)
    check_softmax(e, x, 1.0)
    check_log_softmax(e, x)


@given(st.floats(-100, 20, width=32) | st.floats(-9, 0, width=32))
@example(-6.2379456)
@example(-1.9484134)
def test_logistic_is_near_its_formula(e, x):
    """Below -9 the formula is e**x, from 16.6 on it is 1."""
    value = Decimal(float(np.float32(x)))
    x = float(value)
    wanted = value.exp() if x < -9 else Decimal(1) if x > 16.619047164916992188 else 1 / (1 + (-value).exp())
    assert ulps(e(logistic_f32, x), wanted) <= LOGISTIC_BOUND


@given(st.floats(-30, 0, width=32) | st.floats(-0.75, 0, width=32))
@example(-0.6879115700721741)
def test_elu_is_near_the_exact_real_value(e, x):
    value = Decimal(float(np.float32(x)))
    assert ulps(e(expm1_f32, float(value)), value.exp() - 1) <= ELU_BOUND
