import numpy as np
import pytest
import stage_reference as reference
from hypothesis import given
from hypothesis import strategies as st
from stage_calls import config_bytes, run

from synapticos.kernel.status import Status
from synapticos.kernel.tensor import DType

scales = st.floats(width=32, allow_nan=False, allow_infinity=False).filter(lambda s: s != 0)
zero_points = st.integers(-(2**31), 2**31 - 1) | st.integers(-130, 130) | st.sampled_from([-(2**31), 2**31 - 1, 2**24, -(2**24)])


def numbers(*values):
    return np.array(values, np.float32)


def by(scale, zero_point=0, name="quantize"):
    return config_bytes(name, scale=scale, zero_point=zero_point)


def test_reals_become_bytes(e):
    result = run(e, "quantize", numbers(-1, 0, 0.5, 2), by(1 / 127))
    assert result.tensor["dtype"] == DType.INT8 and result.tensor["size"] == 4 and result.tensor["shape"] == [4, 0, 0, 0]
    assert result.array.tolist() == [-127, 0, 64, 127]


def test_halves_round_away_from_zero_and_what_is_less_does_not(e):
    values = numbers(0.5, -0.5, 1.5, 2.5, -2.5, 0.49999997, -0.49999997, 126.5, -127.5, 127.5)
    assert run(e, "quantize", values, by(1)).array.tolist() == [1, -1, 2, 3, -3, 0, 0, 127, -128, 127]


def test_huge_and_infinite_values_saturate_and_a_nan_gives_the_zero_point(e):
    values = numbers(1e30, -1e30, np.inf, -np.inf, np.nan, -0.0)
    for zero_point in (0, 5, -128):
        assert run(e, "quantize", values, by(1 / 127, zero_point)).array.tolist() == [127, -128, 127, -128, zero_point, zero_point]
    assert run(e, "quantize", values, by(1 / 127, 2**31 - 1)).array.tolist() == [127, -128, 127, -128, 127, 127]
    assert run(e, "quantize", values, by(1 / 127, -(2**31))).array.tolist() == [127, -128, 127, -128, -128, -128]
    assert run(e, "quantize", numbers(1, -1), by(-1e-45)).array.tolist() == [-128, 127]


def test_the_sum_with_an_extreme_zero_point_is_exact(e):
    values = numbers(2**31, 2**31 - 128, -(2**31), 2**24)
    assert run(e, "quantize", values, by(1, -(2**31))).array.tolist() == [0, -128, -128, -128]
    assert run(e, "quantize", values, by(1, 2**31 - 1)).array.tolist() == [127, 127, -1, 127]
    assert run(e, "quantize", values, by(1, -(2**24) - 3)).array.tolist() == [127, 127, -128, -3]


@pytest.mark.parametrize("scale", [0.0, -0.0, float("nan"), float("inf"), float("-inf")])
def test_a_scale_that_cannot_divide_is_refused(e, scale):
    assert run(e, "quantize", numbers(1, 2), by(scale)).status == Status.INVAL


def test_what_quantize_refuses(e):
    assert run(e, "quantize", numbers(1, 2), None).status == Status.INVAL
    assert run(e, "quantize", numbers(1, 2), by(1), room=1).status == Status.NOMEM
    assert run(e, "quantize", numbers(1, 2), by(1), room=2).status == Status.OK
    assert run(e, "quantize", np.zeros(4, np.int8), by(1)).status == Status.INVAL
    assert run(e, "quantize", numbers(1, 2), by(1), size=7).status == Status.INVAL
    assert run(e, "quantize", numbers(1, 2), by(1), shape=(2, 1, 1, 1, 1)).status == Status.INVAL
    assert run(e, "quantize", numbers(1, 2), by(1), shape=()).status == Status.INVAL


def test_an_empty_tensor_stays_empty(e):
    result = run(e, "quantize", np.zeros((0, 6), np.float32), by(1))
    assert result.status == Status.OK and result.tensor["size"] == 0 and result.tensor["shape"] == [0, 6, 0, 0]


@given(
    values=st.lists(st.floats(width=32) | st.integers(-400, 400).map(lambda n: n / 2), min_size=1, max_size=12),
    scale=scales | st.sampled_from([1.0, 0.5, 1 / 127]),
    zero_point=zero_points,
)
def test_quantize_equals_python(e, values, scale, zero_point):
    x = np.array(values, np.float32)
    with np.errstate(over="ignore"):
        scale = float(np.float32(scale))
    np.testing.assert_array_equal(run(e, "quantize", x, by(scale, zero_point)).array, reference.quantize(x, scale, zero_point))


def test_bytes_become_reals(e):
    result = run(e, "dequantize", np.array([-127, 0, 64, 127], np.int8), by(1 / 127, name="dequantize"))
    assert result.tensor["dtype"] == DType.FLOAT32
    np.testing.assert_allclose(result.array, [-1, 0, 0.504, 1], atol=0.001)


def test_what_dequantize_refuses(e):
    q = np.array([1, 2], np.int8)
    assert run(e, "dequantize", q, None).status == Status.INVAL
    assert run(e, "dequantize", q, by(float("nan"), name="dequantize")).status == Status.INVAL
    assert run(e, "dequantize", q, by(float("inf"), name="dequantize")).status == Status.INVAL
    assert run(e, "dequantize", q.astype(np.uint8), by(1, name="dequantize")).status == Status.INVAL
    assert run(e, "dequantize", numbers(1, 2), by(1, name="dequantize")).status == Status.INVAL
    assert run(e, "dequantize", q, by(1, name="dequantize"), room=7).status == Status.NOMEM
    assert run(e, "dequantize", q, by(1, name="dequantize"), size=1).status == Status.INVAL
    assert run(e, "dequantize", q, by(0, name="dequantize")).array.tolist() == [0, 0]


@given(q=st.binary(min_size=1, max_size=12), scale=scales, zero_point=zero_points)
def test_dequantize_equals_numpy(e, q, scale, zero_point):
    values = np.frombuffer(q, np.int8)
    want = reference.dequantize(values, scale, zero_point)
    assert run(e, "dequantize", values, by(scale, zero_point, name="dequantize")).array.tobytes() == want.tobytes()
