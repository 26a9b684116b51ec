"""Stages called like any function: what NumPy would narrow is refused, and a call leaves no memory behind."""

import numpy as np
import pytest
import synapticos as syn
from synapticos.engine import default_engine
from synapticos.errors import UserError
from synapticos.kernel.status import Status
from synapticos.lang import Array, Shaped, f32, i8


@syn.stage
def halves(x: Shaped[Array[i8], 4], out: Shaped[Array[f32], 4]) -> Status:
    for i in range(4):
        out[i] = f32(x[i]) * 0.5
    return Status.OK


def call(x):
    out = np.zeros(4, np.float32)
    assert halves(x=x, out=out) == Status.OK
    return out.tolist()


def test_what_fits_is_taken():
    assert call(np.array([1, 2, 3, 4], np.int8)) == call([1, 2, 3, 4]) == [0.5, 1.0, 1.5, 2.0]
    assert call(np.array([True, False, True, False])) == [0.5, 0.0, 0.5, 0.0]
    assert call([1.0, 2.0, -128.0, 127.0]) == [0.5, 1.0, -64.0, 63.5]


@pytest.mark.parametrize("x", [[300, 0, 0, 0], [1.5, 0, 0, 0], ["a", "b", "c", "d"], np.array([1, 2, 3, 4]), np.zeros(4), np.zeros(4, np.uint8)])
def test_what_would_be_another_number_is_refused(x):
    with pytest.raises(UserError, match='stage halves: parameter "x" is i8 4') as caught:
        call(x)
    assert "\n" not in str(caught.value)


def test_a_thousand_calls_leave_nothing():
    call([1, 2, 3, 4])
    kept = len(default_engine()._kept)
    for _ in range(1000):
        call([1, 2, 3, 4])
    assert len(default_engine()._kept) == kept


def test_a_result_beyond_any_arena_is_refused_as_it_is_declared():
    @syn.stage
    def vast(x: Shaped[Array[i8], 4], out: Shaped[Array[f32], 65536, 65536]) -> Status:
        return Status.OK

    app = syn.App("vast")
    with pytest.raises(UserError, match="stage vast: out is f32 65536 x 65536; a result has at most 268,435,456 bytes"):
        app.pipeline("p", app.frames("x", (4,))).stage(vast)
