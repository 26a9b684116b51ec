import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from stage_calls import config_bytes, run

from synapticos.kernel.status import Status
from synapticos.kernel.tensor import DType


def numbers(*values):
    return np.array(values, np.float32)


def exact(logits):
    p = np.exp(logits - logits.max())
    return p / p.sum()


def test_one_large_logit_takes_nearly_all(e):
    logits = np.zeros(10, np.int8)
    logits[5] = 127
    result = run(e, "softmax", logits)
    assert result.tensor["dtype"] == DType.FLOAT32 and result.array.shape == (10,)
    assert abs(result.array.sum() - 1) < 0.001 and result.array[5] > 0.99


def test_a_configuration_scales_bytes_and_leaves_floats_alone(e):
    config = config_bytes("softmax", scale=1 / 64, zero_point=-7)
    q = np.array([[-128, 0, 127, 3]], np.int8)
    got = run(e, "softmax", q, config).array
    assert got.shape == (1, 4)
    np.testing.assert_allclose(got[0], exact((q[0].astype(float) + 7) / 64), rtol=1e-6)
    x = numbers(1, 2, 3)
    assert run(e, "softmax", x, config).bytes == run(e, "softmax", x).bytes
    assert run(e, "softmax", q, config_bytes("softmax", scale=1.0)).bytes == run(e, "softmax", q).bytes


def test_infinite_scores_share_the_whole_and_a_nan_gets_nothing(e):
    assert run(e, "softmax", numbers(np.inf, 1, np.inf, -np.inf, np.nan)).array.tolist() == [0.5, 0, 0.5, 0, 0]
    assert run(e, "softmax", numbers(-np.inf, -np.inf)).array.tolist() == [0.5, 0.5]
    assert run(e, "softmax", numbers(np.nan, 3, -np.inf)).array.tolist() == [0, 1, 0]
    assert run(e, "softmax", numbers(np.nan, np.nan)).status == Status.INVAL
    assert run(e, "softmax", numbers(3e38, -3e38)).array.tolist() == [1, 0]
    assert run(e, "softmax", numbers(-0.0, 0.0)).array.tolist() == [0.5, 0.5]


def test_what_it_refuses(e):
    assert run(e, "softmax", np.zeros(3, np.uint8)).status == Status.INVAL
    assert run(e, "softmax", np.zeros(3, np.int16)).status == Status.INVAL
    assert run(e, "softmax", np.zeros(0, np.int8)).status == Status.INVAL
    assert run(e, "softmax", np.zeros(3, np.int8), room=11).status == Status.NOMEM
    assert run(e, "softmax", numbers(1, 2), room=7).status == Status.NOMEM
    assert run(e, "softmax", numbers(1, 2), size=4).status == Status.INVAL
    assert run(e, "softmax", np.zeros(3, np.int8), config_bytes("softmax", scale=float("nan"))).status == Status.INVAL
    assert run(e, "softmax", np.zeros(3, np.int8), bytes(4)).status == Status.INVAL


@given(st.lists(st.floats(-60, 60, width=32), min_size=1, max_size=12))
def test_softmax_of_floats_is_near_the_exact_one(e, values):
    x = np.array(values, np.float32)
    # The difference to the largest is rounded once, at most 2**-19 here, and that is the exponent's relative error.
    np.testing.assert_allclose(run(e, "softmax", x).array, exact(x.astype(float)), rtol=1e-5, atol=1e-37)


@given(st.lists(st.floats(width=32), min_size=1, max_size=12))
def test_softmax_of_any_floats_is_a_distribution(e, values):
    x = np.array(values, np.float32)
    result = run(e, "softmax", x)
    if np.isnan(x).all():
        assert result.status == Status.INVAL
    else:
        assert abs(float(result.array.astype(float).sum()) - 1) < 1e-5
        assert (result.array >= 0).all() and result.array[np.isnan(x)].sum() == 0
