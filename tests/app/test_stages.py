"""What a user's stages are given as they run: rows, and a state of their own."""

from pathlib import Path

import numpy as np
import pytest
import synapticos as syn
from synapticos.app.spec import Spec
from synapticos.app.stage import bind, write_adapter
from synapticos.errors import UserError
from synapticos.lang import Array, Rows, Shaped, f32, i8, struct, u32

SINE = Path(__file__).parents[2] / "examples" / "hello_world" / "sine.tflite"


@struct
class Seen:
    count: u32
    largest: f32


@syn.stage
def largest_so_far(y: Shaped[Array[f32], 1], state: Seen, out: Shaped[Array[f32], 2]) -> syn.Status:
    if state.count == 0 or y[0] > state.largest:
        state.largest = y[0]
    state.count += 1
    out[0] = state.largest
    out[1] = f32(state.count)
    return syn.Status.OK


@syn.stage
def as_rows(y: Shaped[Array[i8], 1], out: Shaped[Array[f32], 4, 2]) -> tuple[syn.Status, u32]:
    """As many rows as there are tens in a positive y, at most 4."""
    rows: u32 = 0
    for i in range(4):
        if y[0] > i8(10 * i):
            out[rows, 0] = f32(i)
            out[rows, 1] = 1.0
            rows += 1
    return syn.Status.OK, rows


@syn.stage
def count_rows(x: Shaped[Rows[f32], 2], x_rows: u32, out: Shaped[Array[f32], 2]) -> syn.Status:
    out[0] = f32(x_rows)
    out[1] = 0.0
    for i in range(x_rows):
        out[1] += x[i * 2 + 1]
    return syn.Status.OK


def wave(app):
    source = app.frames("angle", (1, 1), "int8")
    return app.pipeline("wave", source).model(app.model(SINE, outputs=("y",)))


def byte(q):
    return np.array([[q]], np.int8)


@pytest.mark.parametrize("engine", ["native", "checked", "cortex-m"])
def test_a_state_lasts_from_run_to_run_and_begins_with_zeros(engine):
    app = syn.App("keeps")
    app.job(wave(app).dequantize().stage(largest_so_far))
    for _ in range(2):  # a new runtime begins anew
        with syn.Runtime(app, engine=engine) as rt:
            got = [rt.run("wave", byte(q)) for q in (-128, -64, 0)]
            assert [g[1] for g in got] == [1, 2, 3]
            assert got[0][0] < 0.1 and got[1][0] > 0.9 and got[2][0] == got[1][0]


@pytest.mark.parametrize("engine", ["native", "checked", "cortex-m"])
def test_rows_come_with_their_number(engine):
    app = syn.App("rows")
    app.job(wave(app).stage(as_rows).stage(count_rows))
    with syn.Runtime(app, engine=engine) as rt:
        assert list(rt.run("wave", byte(-64))) == [4, 4]
        assert list(rt.run("wave", byte(64))) == [0, 0]


def test_rows_taken_as_a_whole_array_are_refused_with_the_way_out():
    @syn.stage
    def whole(boxes: Shaped[Array[f32], 4, 6], out: Shaped[Array[f32], 1]) -> syn.Status:
        return syn.Status.OK

    rows = Spec("boxes", (4, 6), "float32", rows=True)
    with pytest.raises(UserError, match=r"take it as Shaped\[Rows\[f32\], 6\] with boxes_rows: u32"):
        bind("p", "app", whole, (rows,), {}, False)


def test_two_uses_of_a_stage_have_two_adapters():
    spec = Spec("y", (1,), "int8")
    first, second = (write_adapter(bind("p", "app", as_rows, (spec,), {}, False), n) for n in (0, 1))
    assert first.c_name != second.c_name
