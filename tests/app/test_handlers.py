"""`@app.on`: what is done with a result is the same function on the host and on a board; plain Python stays on the host."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import synapticos as syn
from synapticos.errors import UserError
from synapticos.host.execute import run_on_board, run_on_host
from synapticos.host.firmware import build_firmware
from synapticos.kernel.status import Status
from synapticos.lang import Array, Rows, Shaped, console, f32, i8, i32, struct, u8, u32

SINE = Path(__file__).parents[2] / "examples" / "hello_world" / "sine.tflite"
ANGLES = bytes([0, 5, 60, 128, 200, 255])
LOW = -17  # what the network gives for 5


@struct
class Seen:
    count: u32
    sum: i32


@struct
class Limit:
    above: i32


def tell(y: Shaped[Array[i8], 1, 1], y_scale: f32, y_zero: i32, cfg: Limit, state: Seen, job: syn.JobInfo) -> None:
    state.count += 1
    state.sum += i32(y[0, 0])
    console.print(f"{state.count}: {y[0, 0]} {i32(y_scale * 1e6)} {y_zero}, sum {state.sum}, at {job.release_us}, {job.status} {job.item}")
    if y[0, 0] > cfg.above:
        console.print(f"loud {cfg.above}")


@syn.stage
def rows_of(y: Shaped[Array[i8], 1, 1], out: Shaped[Array[f32], 4, 2]) -> tuple[Status, u32]:
    """Two rows for a positive y, else none; an error for LOW."""
    rows: u32 = 0
    if y[0, 0] == LOW:
        return Status.IO, rows
    if y[0, 0] > 0:
        rows = 2
        for i in range(2):
            out[i, 0] = f32(i)
            out[i, 1] = f32(y[0, 0])
    return Status.OK, rows


def tell_rows(boxes: Shaped[Rows[f32], 2], boxes_rows: u32) -> None:
    sum: f32 = 0.0
    for i in range(boxes_rows):
        sum += boxes[i * 2 + 1]
    console.print(f"{boxes_rows} rows, {i32(sum)}")


def tell_all(job: syn.JobInfo) -> None:
    console.print(f"{job.job}: {job.status}")


def tell_best(best: Shaped[Array[syn.Ranked], 1]) -> None:
    console.print(f"{best[0].index} {i32(best[0].score)}")


def break_out(y: Shaped[Array[i8], 1, 1], state: Seen) -> None:
    """Leaves its array by the third result."""
    state.count += 1
    steps: Shaped[Array[u8], 2] = syn.local(u8, 2)
    steps[state.count - 1] = 1


def refuse_low(y: Shaped[Array[i8], 1, 1]) -> Status:
    if y[0, 0] < 0:
        return Status.NOTSUP
    return Status.OK


@pytest.fixture
def app(tmp_path):
    made = syn.App("hand")
    (tmp_path / "x.raw").write_bytes(ANGLES)
    made.x = made.frames("x", (1, 1), "int8", file=tmp_path / "x.raw", every=5 * syn.ms)
    made.m = made.model(SINE, outputs=("y",))
    made.p = made.pipeline("p", made.x)
    return made


def said(report):
    """What handlers printed: a run's own words aside."""
    return [line for line in report.console.splitlines() if not line.startswith("frames:") and ", frame " not in line]


@pytest.mark.parametrize("on", [True, False])
def test_a_handler_says_the_same_on_the_host_and_on_a_board(app, on):
    """Of a job that ended with an error there is nothing to hand on; who takes nothing hears of it."""
    app.p.model(app.m)
    pipelines = {name: app.pipeline(name, app.x).model(app.m) for name in ("rows", "all", "best")}
    for name in ("rows", "all"):
        pipelines[name].stage(rows_of)
    pipelines["best"].dequantize().argmax()
    app.on(app.p, above=60)(tell)
    app.on(pipelines["rows"])(tell_rows)
    app.on(pipelines["all"])(tell_all)
    app.on(pipelines["best"])(tell_best)
    for pipeline in app.pipelines.values():
        app.job(pipeline, on=app.x if on else None)
    reports = [run_on_host(app, {}, engine=engine) for engine in ("native", "checked")]
    reports.append(run_on_board(build_firmware(app, "mps2-an521"), {}))
    words, *others = ([re.sub("at [0-9]+", "at _", line) for line in said(r)] if not on else said(r) for r in reports)
    assert others == [words, words] and len({r.digest for r in reports}) == 1
    for report in reports:
        assert [(f.pipeline, f.step) for f in report.failures] == [("rows", "stage rows_of"), ("all", "stage rows_of")]
        assert {name: one.runs for name, one in report.handled.items()} == {"p": 6, "rows": 5, "all": 6, "best": 6}
        assert not any(one.errors or one.failure for one in report.handled.values())
    values = [int(r.arrays[0].reshape(-1)[0]) for r in reports[0].results if r.pipeline == "p"]
    assert sum(w == "loud 60" for w in words) == sum(v > 60 for v in values) > 0
    lines, kept = [w for w in words if "sum" in w], app.m.outputs[0]
    for k, line in enumerate(lines):
        assert line.startswith(f"{k + 1}: {values[k]} {int(np.float32(kept.scale) * np.float32(1e6))} {kept.zero}, sum {sum(values[: k + 1])}, at ")
        assert not on or line.endswith(f"at {5000 * k}, 0 0")
    assert [w for w in words if w.endswith("rows, 0") or "2 rows" in w] == [f"{2 * (v > 0)} rows, {2 * max(v, 0)}" for v in values if v != LOW]
    assert sum(w.endswith(": -5") for w in words) == 1


def test_what_a_handler_does_wrong_is_counted_and_nothing_else(app):
    app.p.model(app.m)
    q = app.pipeline("q", app.x).model(app.m)
    app.on(q)(refuse_low)
    for pipeline in (app.p, q):
        app.job(pipeline, on=app.x)
    board = run_on_board(build_firmware(app, "mps2-an521"), {})
    want = board.digest
    app.on(app.p)(break_out)  # a board's build has no checks of indices
    for report in (board, run_on_host(app, {}, engine="checked"), run_on_host(app, {}, checks=True)):
        assert report.digest == want and not report.failures
        low = report.handled["q"]
        assert (low.runs, low.errors) == (6, sum(int(r.arrays[0].reshape(-1)[0]) < 0 for r in report.results if r.pipeline == "q"))
        assert str(low.failure) == "handler refuse_low ended with NOTSUP"
        if report is not board:
            broken = report.handled["p"]
            assert (broken.runs, broken.errors) == (6, 4) and broken.failure.file.endswith("test_handlers.py")
            assert str(broken.failure).startswith("handler break_out did what it may not: ")


def test_plain_python_is_told_of_released_and_of_submitted_jobs(app):
    heard = []
    app.p.model(app.m)
    q = app.pipeline("q", app.frames("y", (1, 1), "int8")).model(app.m)

    @app.on(app.p)
    def note(done):
        heard.append(("p", done.pipeline, done.release_us, done.arrays[0].shape))

    @app.on(q)
    def fail(done: syn.Done):
        raise ValueError("mine")

    app.job(app.p, on=app.x)
    app.job(q)
    with syn.Runtime(app) as rt:
        assert int(rt.run("p", np.full((1, 1), 5, np.int8)).reshape(-1)[0]) == LOW
        assert [h[:2] for h in heard] == [("p", "p")]
        with pytest.raises(ValueError, match="mine"):
            rt.run("q", np.zeros((1, 1), np.int8))
    app.jobs.pop()
    report = run_on_host(app, {})
    assert heard[1:] == [("p", "p", 5000 * k, (1, 1)) for k in range(6)] and len(report.results) == 6
    assert build_firmware(app, "mps2-an521").left_out[0].startswith('on "p": handler note is plain Python and stays on the host; ')


def test_a_handler_is_called_like_any_function(app):
    app.p.model(app.m)
    typed = app.on(app.p)(refuse_low)
    assert typed(np.full((1, 1), 5, np.int8)) == Status.OK and typed(np.full((1, 1), -5, np.int8)) == Status.NOTSUP


def no_type(y, cfg):
    pass


def with_out(y: Shaped[Array[i8], 1, 1], out: Shaped[Array[f32], 1]) -> None:
    out[0] = f32(y[0, 0])


def other(z: Shaped[Array[i8], 4]) -> None:
    pass


def answers(y: Shaped[Array[i8], 1, 1]) -> i32:
    return i32(y[0, 0])


def twice(a: syn.JobInfo, b: syn.JobInfo) -> None:
    pass


@pytest.mark.parametrize(
    "act, words",
    [
        (lambda a: a.on(a.p)(no_type), 'handler no_type: parameter "y" has no type|stage no_type: parameter "y" has no type'),
        (lambda a: a.on(a.p)(with_out), "handler with_out: has an out"),
        (lambda a: a.on(a.p)(other), 'handler other: parameter "z" is i8 4, the tensor is i8 1 x 1'),
        (lambda a: a.on(a.p)(twice), "both a JobInfo"),
        (lambda a: (a.on(a.p)(answers), build_firmware(a, "mps2-an521")), "handler answers returns i32"),
        (lambda a: a.on(a.p, above=1)(lambda done: None), "is plain Python and takes no above"),
        (lambda a: (a.on(a.p)(refuse_low), a.on(a.p)(refuse_low)), "has a handler already, refuse_low"),
        (lambda a: (a.on(a.p)(refuse_low), a.p.dequantize()), "say this step before @app.on"),
        (lambda a: a.on(a.pipeline("r", a.x)), "has no model yet"),
        (lambda a: a.on("p"), "is no pipeline of this app"),
        (lambda a: a.on(a.p)(3), "3 is no function"),
    ],
)
def test_a_wrong_handler_is_refused_in_a_line(app, act, words):
    app.p.model(app.m)
    app.job(app.p)
    with pytest.raises(UserError, match=words) as told:
        act(app)
    assert "\n" not in str(told.value)
