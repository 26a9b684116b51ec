"""FC-10: outputs are bound by what they are called, so the order in which an export lists them means nothing."""

import numpy as np
import pytest
import synapticos as syn
from synapticos import Array, Shaped, Status, exp, f32, i8, i32
from synapticos.errors import UserError
from synapticos.host.execute import run_on_board, run_on_host
from synapticos.host.firmware import build_firmware
from tflite_writer import Writer

SIDE, OBJECTS = 16, 3
BOXES, SCORES = 0.002, 0.4  # the outputs' scales


def detector(order, numbers=4):
    """Its picture's first pixels are its boxes (half of each), the next its scores (40 either way)."""
    w = Writer()
    picture = w.tensor("picture", (1, SIDE, SIDE, 1), 1 / 255, -128)
    flat = w.tensor("flat", (1, SIDE * SIDE), 1 / 255, -128)
    w.op("RESHAPE", [picture, w.constant("shape", np.array([1, SIDE * SIDE], np.int32))], [flat], 1, "ReshapeOptions")
    made = {}
    for name, first, n, factor, bias, scale, zero in (
        ("boxes", 0, OBJECTS * numbers, 0.5, 0.0, BOXES, -128),
        ("scores", 64, OBJECTS, 80.0, -40.0, SCORES, 0),
    ):
        kernel = np.zeros((n, SIDE * SIDE), np.int8)
        kernel[np.arange(n), first + np.arange(n)] = 127
        k = w.constant(f"{name}/k", kernel, [factor / 127])
        b = w.constant(f"{name}/b", np.full(n, round(bias * 255 * 127 / factor), np.int32), [factor / 127 / 255])
        y = w.tensor(f"{name}/flat", (1, n), scale, zero)
        w.op("FULLY_CONNECTED", [flat, k, b], [y], 4, "FullyConnectedOptions")
        shape = (1, OBJECTS, numbers) if name == "boxes" else (1, OBJECTS)
        made[name] = w.tensor(name, shape, scale, zero)
        w.op("RESHAPE", [y, w.constant(f"{name}/shape", np.array(shape, np.int32))], [made[name]], 1, "ReshapeOptions")
    return w.finish([picture], [made[name] for name in order])


def frame():
    """Two objects whose boxes overlap by 0.6, and one that reaches over the right border."""
    pixels = np.zeros(SIDE * SIDE, np.uint8)
    boxes = [(0.3, 0.5, 0.4, 0.4), (0.4, 0.5, 0.4, 0.4), (0.95, 0.25, 0.2, 0.2)]  # middle, width, height
    pixels[: OBJECTS * 4] = np.round(np.array(boxes) * 255).reshape(-1)
    pixels[64 : 64 + OBJECTS] = [140, 160, 150]  # logits of 4, 10 and 7
    return pixels.reshape(1, SIDE, SIDE, 1)


@syn.stage
def decode(
    scores: Shaped[Array[i8], 3],
    boxes: Shaped[Array[i8], 3, 4],
    boxes_scale: f32,
    boxes_zero: i32,
    scores_scale: f32,
    scores_zero: i32,
    out: Shaped[Array[f32], 3, 6],
) -> Status:
    for i in range(3):
        for side in range(2):
            middle = 2.0 * boxes_scale * f32(boxes[i, side] - boxes_zero)
            half = boxes_scale * f32(boxes[i, side + 2] - boxes_zero)
            out[i, side] = middle - half
            out[i, side + 2] = middle + half
        out[i, 4] = 1.0 / (1.0 + exp(-scores_scale * f32(scores[i] - scores_zero)))
        out[i, 5] = 0.0
    return Status.OK


@syn.stage
def wrong_name(boxen: Shaped[Array[i8], 3, 4], scores: Shaped[Array[i8], 3], out: Shaped[Array[f32], 3, 6]) -> Status:
    return Status.OK


def app_of(folder, order, iou):
    file = folder / f"{'_'.join(order)}.tflite"
    file.write_bytes(detector(order))
    app = syn.App("detect")
    model = app.model(file)
    camera = app.camera("camera", SIDE, SIDE, "grey")
    app.job(app.pipeline("found", camera).fit(model).model(model).stage(decode).nms(iou=iou, score=0.5).map_boxes("fraction"))
    return app


ORDERS = [("boxes", "scores"), ("scores", "boxes")]


@pytest.mark.parametrize(("iou", "kept"), [(0.5, 2), (0.7, 3)])
@pytest.mark.parametrize("engine", ["native", "checked"])
def test_both_exports_give_the_same_boxes(tmp_path, iou, kept, engine):
    results = []
    for order in ORDERS:
        with syn.Runtime(app_of(tmp_path, order, iou), engine=engine) as rt:
            results.append(rt.run("found", frame()))
    one, other = results
    assert one.tobytes() == other.tobytes() and one.shape == (kept, 6)
    assert np.isfinite(one).all()
    best, border = one[0], one[1]
    assert best[:4] == pytest.approx([0.2 * SIDE, 0.3 * SIDE, 0.6 * SIDE, 0.7 * SIDE], abs=0.2)
    assert best[4] == pytest.approx(1 / (1 + np.exp(-10)), abs=1e-3)
    assert border[2] == SIDE and border[0] == pytest.approx(0.85 * SIDE, abs=0.2)  # cut at the picture's edge
    if kept == 3:
        assert one[2, :4] == pytest.approx([0.1 * SIDE, 0.3 * SIDE, 0.5 * SIDE, 0.7 * SIDE], abs=0.2)


def test_a_board_gives_the_same_bytes_of_both(tmp_path):
    from PIL import Image

    file = tmp_path / "frame.png"
    Image.fromarray(frame()[0, :, :, 0]).save(file)
    digests = set()
    for order in ORDERS:
        app = app_of(tmp_path, order, 0.5)
        digests |= {run_on_host(app, {"camera": file}).digest}
        digests |= {run_on_board(build_firmware(app, "mps2-an521"), {"camera": file}).digest}
    assert len(digests) == 1


def test_extremes_stay_finite(tmp_path):
    with syn.Runtime(app_of(tmp_path, ORDERS[0], 0.5)) as rt:
        for pixel in (0, 127, 128, 255):
            assert np.isfinite(rt.run("found", np.full((1, SIDE, SIDE, 1), pixel, np.uint8))).all()


def test_a_tensor_that_is_not_there_is_refused_as_it_is_built(tmp_path):
    file = tmp_path / "m.tflite"
    file.write_bytes(detector(ORDERS[1]))
    app = syn.App("detect")
    model = app.model(file)
    run = app.pipeline("found", app.camera("camera", SIDE, SIDE, "grey")).fit(model).model(model)
    with pytest.raises(UserError, match=r'stage wrong_name: parameter "boxen" names no tensor of the step before; there is scores .*, boxes '):
        run.stage(wrong_name)


def test_a_box_of_five_numbers_is_refused_where_four_are_taken(tmp_path):
    file = tmp_path / "m.tflite"
    file.write_bytes(detector(ORDERS[0], numbers=5))
    app = syn.App("detect")
    model = app.model(file)
    run = app.pipeline("found", app.camera("camera", SIDE, SIDE, "grey")).fit(model).model(model)
    with pytest.raises(UserError, match=r'parameter "boxes" is i8 3 x 4, the tensor is i8 1 x 3 x 5; write boxes: Shaped\[Array\[i8\], 3, 5\]'):
        run.stage(decode)
