"""The longest way through a step is never shorter than what any input takes."""

import numpy as np
import pytest

import synapticos as syn
from synapticos import Array, Shaped, Status, boards, f32, i8, toolchain, u32
from synapticos.analysis.cycles import timing
from synapticos.analysis.paths import Block, NoBound, loops_of
from synapticos.host import measure as measure_module
from synapticos.host.measure import measure

pytestmark = pytest.mark.skipif(
    not toolchain.find_all("cortex-m33") or not toolchain.find_all("host"), reason="needs compilers for Cortex-M and for this machine"
)
BOARD = "mps2-an521"


def graph(**edges):
    """Blocks named by letters."""
    return {ord(a): Block(ord(a), ord(a) + 2, [(ord(b), True) for b in to]) for a, to in edges.items()}


def test_loops_are_found_outer_first():
    blocks = graph(a="b", b="cf", c="d", d="ce", e="b", f="")
    loops = loops_of(blocks, ord("a"))
    assert [(chr(x.head), "".join(sorted(map(chr, x.body)))) for x in loops] == [("b", "bcde"), ("c", "cd")]
    assert loops[1].parent is loops[0] and loops[0].parent is None


def test_a_loop_with_two_entries_has_no_bound():
    with pytest.raises(NoBound):
        loops_of(graph(a="bc", b="c", c="b"), ord("a"))


@syn.stage
def by_the_data(x: Shaped[Array[i8], 16], out: Shaped[Array[f32], 16]) -> Status:
    """Branches by the data, loops that do not: a bound."""
    for i in range(16):
        value = f32(x[i])
        if value > 100.0:
            value = value / 3.0
        elif value < -100.0:
            value = value / 3.0 + value / 5.0
            for k in range(3):
                value = value + f32(k) / 7.0
        out[i] = value
    return Status.OK


@syn.stage
def until_zero(x: Shaped[Array[i8], 16], out: Shaped[Array[f32], 16]) -> Status:
    """A loop that ends by the data: none."""
    n: u32 = 0
    while n < 16 and x[n] != 0:
        out[n] = f32(x[n]) / 3.0
        n += 1
    return Status.OK


@syn.stage
def seldom(x: Shaped[Array[i8], 16], out: Shaped[Array[f32], 16]) -> Status:
    """A branch that no input of the measurement takes."""
    for i in range(16):
        out[i] = 1.0
    if x[0] == 77 and x[1] == 33 and x[2] == 5:
        for i in range(2000):
            out[i & 15] = out[i & 15] / 3.0
    return Status.OK


@syn.stage
def seldom_and_by_the_data(x: Shaped[Array[i8], 16], out: Shaped[Array[f32], 16]) -> Status:
    """The same, and in it a loop of which the source says nothing."""
    if x[0] == 77 and x[1] == 33 and x[2] == 5:
        for i in range(u32(x[3])):
            out[i & 15] = out[i & 15] / 3.0
    else:
        out[0] = 1.0
    return Status.OK


def app_of(stage, name):
    from pathlib import Path

    app = syn.App(name)
    source = app.frames("x", (1, 1), "int8")
    model = app.model(Path(syn.__file__).parent / "app" / "sine.tflite")
    wide = app.frames("wide", (16,), "int8")
    app.job(app.pipeline("plain", source).model(model))
    app.job(app.pipeline("own", wide).stage(stage).stage(narrow).model(model))
    return app


@syn.stage
def narrow(x: Shaped[Array[f32], 16], out: Shaped[Array[i8], 1]) -> Status:
    out[0] = i8(0)
    if x[0] > 0.0:
        out[0] = i8(1)
    return Status.OK


def steps_of(stage, name, monkeypatch=None, frames=None):
    if frames is not None:
        monkeypatch.setattr(measure_module, "patterns", lambda spec, count: frames if spec.shape == (16,) else [np.zeros(spec.shape, np.int8)] * len(frames))
    _, costed = measure(app_of(stage, name), timing(boards.find(BOARD)), BOARD)
    return costed.steps["own"]


def test_branches_by_the_data_are_bounded(monkeypatch):
    known = steps_of(by_the_data, "branches")[0]
    assert not known.exact and known.bound is not None, known.why
    assert max(known.cycles) <= known.bound < 3 * max(known.cycles)
    rng = np.random.default_rng(5)
    extremes = [np.full(16, -128, np.int8), np.full(16, 127, np.int8), *(rng.integers(-128, 128, 16).astype(np.int8) for _ in range(20))]
    seen = steps_of(by_the_data, "branches", monkeypatch, extremes)[0]
    assert max(seen.cycles) <= known.bound


def test_a_branch_that_no_input_takes_is_in_the_bound(monkeypatch):
    known = steps_of(seldom, "seldom")[0]
    assert len(set(known.instructions)) == 1 and not known.exact and known.bound > 20 * max(known.cycles), known.why
    taken = np.zeros(16, np.int8)
    taken[:3] = 77, 33, 5
    seen = steps_of(seldom, "seldom", monkeypatch, [taken, np.zeros(16, np.int8)])[0]
    assert known.bound / 2 < max(seen.cycles) <= known.bound


def test_a_branch_of_a_handler_that_no_input_takes_is_in_the_bound():
    """Also behind a network, of which every input takes the same."""
    app = app_of(seldom, "handled")

    @app.on(app.pipelines["plain"])
    def rare(y: Shaped[Array[i8], 1, 1], job: syn.JobInfo) -> None:
        if job.job == 12345:
            for i in range(2000):
                job.item = (job.item * 5 + u32(i)) & 0xFFFF

    _, costed = measure(app, timing(boards.find(BOARD)), BOARD)
    last = costed.steps["plain"][-1]
    assert len(set(last.instructions)) == 1 and not last.exact and last.bound > 3 * last.most, last.why


def test_a_loop_in_a_branch_that_no_input_takes_has_no_bound():
    step = steps_of(seldom_and_by_the_data, "seldom_too")[0]
    assert len(set(step.instructions)) == 1 and not step.exact and step.bound is None and "test_paths.py" in step.why


def test_a_loop_that_ends_by_the_data_is_named():
    step = steps_of(until_zero, "until")[0]
    assert step.bound is None and "while" in step.why and "test_paths.py" in step.why


def boxes(rng, rows, kind):
    out = np.zeros((rows, 6), np.float32)
    corner = rng.uniform(0, 100, (rows, 2))
    size = rng.uniform(0.1, 3, (rows, 2)) if kind == "apart" else rng.uniform(20, 60, (rows, 2))
    out[:, :2], out[:, 2:4] = corner, corner + size
    out[:, 4] = np.linspace(0.2, 1, rows) if kind != "falling" else np.linspace(1, 0.2, rows)
    return out


def test_no_boxes_take_longer_than_the_bound_of_nms(monkeypatch):
    """The limit of its loops is the number of boxes; measured on boxes that are bad for it."""
    from pathlib import Path

    app = syn.App("boxes")
    raw = app.frames("raw", (16, 6), "float32")
    model = app.model(Path(syn.__file__).parent / "app" / "sine.tflite")
    app.job(app.pipeline("own", raw).nms(iou=0.4, score=0.1, max_boxes=16).stage(first).model(model))
    rng = np.random.default_rng(1)
    frames = [boxes(rng, 16, kind) for kind in ("apart", "apart", "falling", "near")] + [np.zeros((16, 6), np.float32)]
    monkeypatch.setattr(measure_module, "patterns", lambda spec, count: frames)
    _, costed = measure(app, timing(boards.find(BOARD)), BOARD)
    step = costed.steps["own"][0]
    assert not step.exact and step.bound is not None, step.why
    assert max(step.cycles) <= step.bound


@syn.stage
def first(x: Shaped[syn.Rows[f32], 6], x_rows: u32, out: Shaped[Array[i8], 1]) -> Status:
    out[0] = i8(0)
    if x_rows > 3:
        out[0] = i8(1)
    return Status.OK
