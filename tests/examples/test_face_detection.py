"""The example finds the face that a float reference finds, and none where there is none."""

from pathlib import Path

import numpy as np
import pytest
import synapticos as syn
from PIL import Image
from synapticos.app.load import load_app

FOLDER = Path(__file__).parents[2] / "examples" / "face_detection"


def reference(boxes, scores, threshold, iou):
    """Decode and suppress in double precision: boxes in parts of the side, best first."""
    anchors = []
    for side, many in ((16, 2), (8, 6)):
        for y in range(side):
            for x in range(side):
                anchors += [((x + 0.5) / side, (y + 0.5) / side)] * many
    logits = np.clip(scores.reshape(-1), -100, 100).astype(np.float64)
    chance = 1 / (1 + np.exp(-logits))
    centre = boxes.reshape(896, 16)[:, :2] / 128 + np.array(anchors)
    size = boxes.reshape(896, 16)[:, 2:4] / 128
    corners = np.concatenate([centre - size / 2, centre + size / 2], axis=1)
    kept = []
    for i in np.argsort(-chance, kind="stable"):
        if chance[i] < threshold:
            break
        if all(overlap(corners[i], corners[k]) <= iou for k in kept):
            kept.append(i)
    return np.concatenate([corners[kept], chance[kept][:, None]], axis=1)


def overlap(a, b):
    wide, high = np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2])
    if wide <= 0 or high <= 0:
        return 0.0
    both = wide * high
    return both / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both)


def picture(name):
    return np.asarray(Image.open(FOLDER / name).convert("RGB"))[None]


@pytest.fixture(scope="module")
def app():
    return load_app(FOLDER)


@pytest.fixture(scope="module")
def runtime(app):
    blaze = app.models[0]
    raw = app.pipeline("raw", app.sources["front"]).fit(blaze).model(blaze)
    assert raw.specs[0].name == "boxes"
    with syn.Runtime(app) as rt:
        yield rt


def test_the_face_is_where_a_float_decoder_puts_it(app, runtime):
    frame = picture("astronaut.png")
    faces = runtime.run("faces", frame)
    boxes, scores = runtime.run("raw", frame)
    y, s = app.models[0].outputs
    expected = reference(y.scale * (boxes.astype(float) - y.zero), s.scale * (scores.astype(float) - s.zero), 0.6, 0.3)
    assert faces.shape == (1, 6)
    assert np.abs(faces[:, :4] - expected[:, :4]).max() * 128 < 0.01
    assert np.abs(faces[:, 4] - expected[:, 4]).max() < 1e-5


def test_the_face_is_within_two_pixels_of_the_float_networks(runtime):
    # The float32 original on this picture, run by tflite-micro and decoded by the reference above.
    float_network = np.array([0.3499688, 0.1599912, 0.5347074, 0.3447295])
    faces = runtime.run("faces", picture("astronaut.png"))
    assert np.abs(faces[0, :4] - float_network).max() * 128 < 2


def test_a_picture_without_a_face_gives_none(runtime):
    assert runtime.run("faces", picture("coffee.png")).shape == (0, 6)


def test_the_stage_called_with_numpy_gives_the_pipelines_bytes(app, runtime):
    """`decode` runs under CPython, checked, as it stands; what nms keeps of its rows is what the pipeline gave."""
    frame = picture("astronaut.png")
    boxes, scores = runtime.run("raw", frame)
    decode = app.pipelines["faces"].steps[2].binding.stage
    y, s = app.models[0].outputs
    out = np.zeros((64, 6), np.float32)
    status, rows = decode(
        boxes=boxes, scores=scores, boxes_scale=y.scale, boxes_zero=y.zero,
        scores_scale=s.scale, scores_zero=s.zero, cfg={"threshold": 0.6}, out=out,
    )  # fmt: skip
    assert status == syn.Status.OK and rows >= 1
    best = out[:rows][np.argmax(out[:rows, 4])]
    assert best.tobytes() == runtime.run("faces", frame)[0].tobytes()
