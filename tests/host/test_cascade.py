"""A detector whose boxes are looked at one by one: the crops are parts of the frame that it saw, and surplus is counted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import synapticos as syn
from synapticos.errors import UserError
from synapticos.host.execute import run_on_board, run_on_host
from synapticos.host.firmware import build_firmware
from synapticos.kernel.status import Status
from synapticos.lang import Array, Shaped, f32, i8, u8, u32

SINE = Path(__file__).resolve().parents[2] / "examples" / "hello_world" / "sine.tflite"


@syn.stage
def first(cam: Shaped[Array[u8], 8, 8], out: Shaped[Array[i8], 1, 1]) -> Status:
    """The picture's first pixel, 0 to 6."""
    out[0, 0] = i8(cam[0, 0])
    return Status.OK


@syn.stage
def find(y: Shaped[Array[i8], 1, 1], out: Shaped[Array[f32], 8, 6]) -> tuple[Status, u32]:
    """As many boxes of 2 x 2 as the network's answer says, down the diagonal."""
    n = u32(y[0, 0] & 7)
    for i in range(n):
        out[i, 0] = f32(i)
        out[i, 1] = f32(i)
        out[i, 2] = f32(i + 2)
        out[i, 3] = f32(i + 2)
        out[i, 4] = 1.0
        out[i, 5] = 0.0
    return Status.OK, n


@syn.stage
def corner(cam: Shaped[Array[u8], 2, 2], out: Shaped[Array[i8], 1, 1]) -> Status:
    out[0, 0] = i8(cam[0, 0])
    return Status.OK


@pytest.fixture
def pictures(tmp_path):
    made = np.arange(6 * 64, dtype=np.uint8).reshape(6, 8, 8) % 100
    made[:, 0, 0] = range(6)
    (tmp_path / "cam.raw").write_bytes(made.tobytes())
    return made


def plates(tmp_path, most: int = 3) -> syn.App:
    app = syn.App("plates")
    cam = app.frames("cam", (1, 8, 8, 1), "uint8", file=tmp_path / "cam.raw", every=20 * syn.ms)
    model = app.model(SINE, outputs=("y",))
    detector = app.pipeline("detector", cam).stage(first).model(model).stage(find)
    reader = app.pipeline("reader", cam).crop(2, 2).stage(corner).model(model)
    app.job(detector, on=cam, priority=syn.REALTIME)
    app.cascade("plates", detector, each=reader, most=most)
    return app


def test_each_box_is_read_in_its_own_frame(tmp_path, pictures):
    app = plates(tmp_path)
    host = run_on_host(app, {})
    board = run_on_board(build_firmware(app, "mps2-an521"), {})
    checked = run_on_host(app, {}, engine="checked")
    assert host.digest == board.digest == checked.digest
    sine = syn.App("sine")
    x = sine.frames("x", (1, 1), "int8", file=tmp_path / "x.raw")
    sine.job(sine.pipeline("p", x).model(sine.model(SINE)), on=x)
    boxes = [len(r.arrays[0]) for r in host.results if r.pipeline == "detector"]
    assert len(boxes) == 6 and max(boxes) > 3
    corners = [(k, i) for k, n in enumerate(boxes) for i in range(min(n, 3))]
    (tmp_path / "x.raw").write_bytes(bytes(int(pictures[k, i, i]) for k, i in corners))
    want = [r.arrays[0].tolist() for r in run_on_host(sine, {}).results]
    for report in (host, board):
        read = [r for r in report.results if r.pipeline == "reader"]
        assert [r.item for r in read] == [i for _, i in corners]
        assert [r.arrays[0].tolist() for r in read] == want
        counts = report.counts["jobs"]["reader"]
        assert counts["surplus"] == sum(max(n - 3, 0) for n in boxes) and counts["dropped"] == counts["starved"] == 0


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda app, a, b: app.cascade("c", a, each=a), "its own boxes"),
        (lambda app, a, b: app.cascade("c", b, each=a), 'cascade "c": "b" -> "a": the detector leaves'),
        (lambda app, a, b: app.cascade("c", a, each=app.pipeline("d", a.source)), 'cascade "c": "a" -> "d": "d" has no .crop'),
        (lambda app, a, b: app.cascade("c", a, each=app.pipeline("d", a.source).crop(2, 2)), "has no .model"),
        (lambda app, a, b: app.cascade("c", a, each=b, most=0), "most is a whole number from 1 to 16"),
        (lambda app, a, b: app.cascade("c", a, each=b, deadline=1 << 32), "deadline is whole microseconds from 0 to 4294967295"),
        (lambda app, a, b: app.cascade("c", a, each=b, deadline=0.5), "deadline is whole microseconds"),
        (lambda app, a, b: app.job(b), "looks at boxes; app.cascade"),
        (lambda app, a, b: (app.cascade("c", a, each=b), app.cascade("e", a, each=b)), '"b" has a job already'),
    ],
)
def test_a_wrong_cascade_is_refused_and_both_are_named(tmp_path, pictures, change, words):
    app = syn.App("app")
    cam = app.frames("cam", (1, 8, 8, 1), "uint8")
    model = app.model(SINE, outputs=("y",))
    a = app.pipeline("a", cam).stage(first).model(model).stage(find)
    b = app.pipeline("b", cam).crop(2, 2).stage(corner).model(model)
    with pytest.raises(UserError, match=words.replace("(", r"\(")):
        change(app, a, b)


def test_a_detector_that_nothing_releases_is_refused(tmp_path, pictures):
    app = syn.App("app")
    cam = app.frames("cam", (1, 8, 8, 1), "uint8")
    model = app.model(SINE, outputs=("y",))
    a = app.pipeline("a", cam).stage(first).model(model).stage(find)
    app.cascade("c", a, each=app.pipeline("b", cam).crop(2, 2).stage(corner).model(model))
    with pytest.raises(UserError, match='cascade "c": "a" -> "b": nothing releases the detector'):
        syn.Runtime(app)
