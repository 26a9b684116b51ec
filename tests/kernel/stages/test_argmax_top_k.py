import numpy as np
import stage_reference as reference
from hypothesis import given
from hypothesis import strategies as st
from stage_calls import config_bytes, run

from synapticos.kernel.status import Status

SCORES = np.array([-5, 3, 88, 1, 0, -100, 42, 7, 9, 11], np.int8)
scores = st.lists(st.floats(width=32) | st.sampled_from([0.0, -0.0, 1.0, float("nan")]), min_size=1, max_size=24).map(
    lambda v: np.array(v, np.float32)
) | st.binary(min_size=1, max_size=40).map(lambda b: np.frombuffer(b, np.int8))


def numbers(*values):
    return np.array(values, np.float32)


def best(k):
    return config_bytes("top_k", k=k)


def test_argmax_gives_the_first_largest_element_and_its_own_value(e):
    assert run(e, "argmax", SCORES).records == [(2, 88)]
    assert run(e, "argmax", np.array([[1, 5], [5, 2]], np.int8)).records == [(1, 5)]
    assert run(e, "argmax", np.full(3, -128, np.int8)).records == [(0, -128)]
    assert run(e, "argmax", numbers(-3, -0.0, 0.0)).records == [(1, 0)]


def test_a_nan_is_never_the_largest(e):
    assert run(e, "argmax", numbers(np.nan, -5, 2, np.nan)).records == [(2, 2)]
    assert run(e, "argmax", numbers(np.nan, -np.inf)).records == [(1, -np.inf)]
    assert run(e, "argmax", numbers(np.nan, np.nan)).status == Status.INVAL
    assert run(e, "top_k", numbers(np.nan, -5, 2, np.nan), best(4)).records == [(2, 2), (1, -5)]
    assert run(e, "top_k", numbers(np.nan), best(4)).status == Status.INVAL


def test_what_argmax_refuses(e):
    assert run(e, "argmax", SCORES.view(np.uint8)).status == Status.INVAL
    assert run(e, "argmax", SCORES[:0]).status == Status.INVAL
    assert run(e, "argmax", SCORES, size=9).status == Status.INVAL
    assert run(e, "argmax", SCORES, room=7).status == Status.NOMEM
    assert run(e, "argmax", SCORES, room=8).status == Status.OK
    assert run(e, "argmax", SCORES, inputs=2).status == Status.INVAL


def test_top_k_is_in_descending_order_with_the_lower_index_first_among_equals(e):
    assert run(e, "top_k", SCORES, best(3)).records == [(2, 88), (6, 42), (9, 11)]
    assert run(e, "top_k", np.array([4, 9, 4, 9], np.int8), best(3)).records == [(1, 9), (3, 9), (0, 4)]
    assert run(e, "top_k", SCORES[:2], best(16)).records == [(1, 3), (0, -5)]


def test_what_top_k_refuses(e):
    assert run(e, "top_k", SCORES, None).status == Status.INVAL
    assert run(e, "top_k", SCORES, best(0)).status == Status.INVAL
    assert run(e, "top_k", SCORES, best(17)).status == Status.INVAL
    assert run(e, "top_k", SCORES, best(3), room=23).status == Status.NOMEM
    assert run(e, "top_k", SCORES[:2], best(16), room=16).status == Status.OK
    assert run(e, "top_k", SCORES[:0], best(1)).status == Status.INVAL
    assert run(e, "top_k", SCORES, best(1), size=11).status == Status.INVAL


@given(values=scores, k=st.integers(1, 16))
def test_top_k_equals_sorting_and_argmax_is_its_first(e, values, k):
    want = reference.top_k(values, k)
    result = run(e, "top_k", values, best(k))
    if want:
        assert result.records == want
        assert run(e, "argmax", values).records == want[:1]
    else:
        assert result.status == Status.INVAL
