"""Pipelines with pictures scaled by a rule, boxes mapped back, and sound described: what they refuse, what they run."""

from typing import Any

import numpy as np
import pytest
import synapticos as syn
from PIL import Image
from synapticos.app import App
from synapticos.app.image import compile_app
from synapticos.app.sound import read_features, write_features
from synapticos.errors import UserError
from synapticos.host.execute import run_on_board, run_on_host
from synapticos.host.firmware import build_firmware
from synapticos.kernel.stages import features as descriptions
from synapticos.kernel.status import Status
from synapticos.lang import Array, Shaped, f32, i8, u32
from test_features import exact
from tflite_writer import Writer

SHORT: dict[str, Any] = dict(sr=8000, n_fft=64, hop_length=32, n_mels=8, n_mfcc=8, center=False, top_db=None)


def same(folder, shape, scale, zero=0):
    """A network that hands its input on: a dense layer with the unit matrix."""
    n = int(np.prod(shape))
    w = Writer()
    x = w.tensor("x", (1, n), scale, zero)
    k = w.constant("k", 127 * np.eye(n, dtype=np.int8), [1 / 127])
    b = w.constant("b", np.zeros(n, np.int32), [scale / 127])
    y = w.tensor("y", (1, n), scale, zero)
    if len(shape) > 1:
        picture = w.tensor("picture", (1, *shape), scale, zero)
        w.op("RESHAPE", [picture, w.constant("shape", np.array([1, n], np.int32))], [x], 1, "ReshapeOptions")
    w.op("FULLY_CONNECTED", [x, k, b], [y], 4, "FullyConnectedOptions")
    file = folder / f"same_{'x'.join(map(str, shape))}.tflite"
    file.write_bytes(w.finish([picture if len(shape) > 1 else x], [y]))
    return file


@pytest.fixture
def app():
    return App("test")


def refused(words, call, *arguments, **keywords):
    with pytest.raises(UserError, match=words):
        call(*arguments, **keywords)


def test_rules_that_do_not_exist_are_refused_where_they_are_written(app):
    camera = app.frames("camera", (1, 4, 5, 3), "uint8")

    def resize(**rule):
        return lambda: app.pipeline(f"p{len(app.pipelines)}", camera).resize(8, 10, **rule)

    refused("area takes the mean .* it has no align_corners", resize(method="area", coordinates="align_corners"))
    refused("area takes the mean .* it has no asymmetric", resize(method="area", coordinates="asymmetric"))
    refused("5 x 4 to 8 x 10: area only makes smaller", resize(method="area"))
    refused("method is nearest, bilinear, area, not 'cubic'", resize(method="cubic"))
    refused("coordinates is align_corners, half_pixel, asymmetric, not 'both'", resize(coordinates="both"))
    refused("mode is stretch, crop, letterbox, not 'pad'", resize(mode="pad"))
    refused(r"roi \(2, 0, 4, 4\) is not all within the picture \(5 x 4\)", resize(roi=(2, 0, 4, 4)))
    refused("fill is a byte, or one for each of 3 channels", resize(mode="letterbox", fill=(1, 2)))
    yuyv = app.frames("yuyv", (1, 4, 5, 2), "uint8")
    refused("pixels in pairs; the picture is 5 wide", app.pipeline("y", yuyv).colour, "yuyv", "rgb")
    refused("rgb565 is u8 1 x height x width x 2, the step before gives", app.pipeline("z", camera).colour, "rgb565", "rgb")
    refused("to is grey, rgb or bgr, not 'yuyv'", app.pipeline("a", camera).colour, "rgb", "yuyv")
    refused("nothing before it scales a picture", app.pipeline("b", app.frames("boxes", (3, 6), "float32")).map_boxes)
    refused("soft is linear or gaussian, not 'fuzzy'", app.pipeline("c", app.frames("more", (3, 6), "float32")).nms, soft="fuzzy")


def test_the_published_resize_is_what_one_gets_unless_one_says_otherwise(app):
    camera = app.frames("camera", (1, 4, 5, 3), "uint8")
    names = [
        app.pipeline(name, camera).resize(3, 2, **rule).steps[-1].name
        for name, rule in (("a", {}), ("b", {"coordinates": "align_corners"}), ("c", {"coordinates": "half_pixel"}), ("d", {"method": "nearest"}))
    ]
    assert names == ["resize", "resize", "scale", "scale"]


@syn.stage
def two_boxes(y: Shaped[Array[i8], 192], out: Shaped[Array[f32], 2, 6]) -> tuple[Status, u32]:
    """The whole of what a 10 x 5 picture becomes in 8 x 8, and the right half of it."""
    for i in range(12):
        out[i // 6, i % 6] = 0.0
    out[0, 1] = 2.0
    out[0, 2] = 8.0
    out[0, 3] = 6.0
    out[1, 0] = 4.0
    out[1, 1] = 2.0
    out[1, 2] = 8.0
    out[1, 3] = 6.0
    return Status.OK, 2


def test_a_letterboxed_camera_and_boxes_in_its_own_pixels(app, tmp_path):
    model = app.model(same(tmp_path, (8, 8, 3), 1.0), mean=128.0, std=1.0)
    camera = app.frames("camera", (1, 6, 12, 2), "uint8")
    seen = app.pipeline("seen", camera).colour("rgb565", "rgb", roi=(2, 1, 10, 5)).fit(model, mode="letterbox", method="nearest", fill=114).model(model)
    app.job(seen)
    boxes = app.pipeline("boxes", camera).colour("rgb565", "rgb", roi=(2, 1, 10, 5)).fit(model, mode="letterbox", fill=114).model(model)
    app.job(boxes.stage(two_boxes).map_boxes())
    frame = np.zeros((1, 6, 12, 2), np.uint8)
    frame[..., 1] = 0xF8  # red
    with syn.Runtime(app) as rt:
        picture = np.asarray(rt.run("seen", frame)).reshape(8, 8, 3)
        found = np.asarray(rt.run("boxes", frame))
    want = np.full((8, 8, 3), 114 - 128)
    want[2:6] = (127, -128, -128)
    assert picture.tolist() == want.tolist()
    np.testing.assert_allclose(found[:, :4], [[2, 1, 12, 6], [7, 1, 12, 6]], atol=1e-5)


@pytest.mark.parametrize("pixels, off", [("rgb", 0), ("bgr", 0), ("rgb565", 8), ("rgb565_swapped", 8), ("yuyv", 3), ("uyvy", 3)])
def test_a_camera_of_any_pixels_comes_back_as_rgb(app, tmp_path, pixels, off):
    y, x = np.mgrid[0:8, 0:8]
    picture = np.stack([y * 30, x // 2 * 60, 255 - y * 20], axis=2).astype(np.uint8)
    Image.fromarray(picture).save(tmp_path / "p.png")
    camera = app.camera("camera", 8, 8, pixels, file=tmp_path / "p.png")
    model = app.model(same(tmp_path, (8, 8, 3), 1.0), mean=128.0, std=1.0)
    app.job(app.pipeline("seen", camera).colour(pixels, "rgb").encode(model).model(model))
    with syn.Runtime(app) as rt:
        got = np.asarray(rt.run("seen", next(camera.read()))).reshape(8, 8, 3).astype(int) + 128
    assert abs(got - picture).max() <= off


def test_cameras_with_pixels_that_do_not_exist_are_refused(app):
    refused('pixels are rgb, .*, not "hsv"', app.camera, "a", 8, 8, "hsv")
    refused("yuyv has pixels in pairs; 7 is odd", app.camera, "b", 7, 8, "yuyv")


def test_a_description_that_differs_is_refused_with_its_field(app, tmp_path):
    file = same(tmp_path, (32,), 1.0)
    mic = app.frames("mic", (8000,), "int16")
    model = app.model(file)
    refused(r"how was the model trained\? app.model\(..., features=syn.librosa", app.pipeline("a", mic).features, model)
    write_features(file, syn.librosa(htk=True))
    assert read_features(file) == syn.librosa(htk=True)
    del model.__dict__["front_end"]
    assert app.pipeline("b", mic).features(model).specs[0].shape == (51, 13)
    refused("differ in mel: htk, slaney", app.pipeline("c", mic).features, model, syn.librosa())
    other = app.model(file, name="other", features=syn.librosa(htk=True, hop_length=128))
    refused('same_32.features.json and the app differ in hop: 160, 128', app.pipeline("d", mic).features, other)
    file.with_suffix(".features.json").write_text('{"mel": "bark"}')
    refused("same_32.features.json: is no description of features", app.pipeline("e", mic).features, app.model(file, name="third"))


def test_a_micro_front_end_travels_with_its_model_and_knows_its_rows(app, tmp_path):
    file = same(tmp_path, (120,), 0.1)
    mic = app.frames("mic", (1, 480), "int16")
    write_features(file, syn.micro_frontend())
    assert read_features(file) == syn.micro_frontend()
    model = app.model(file)
    assert [step.name for step in app.pipeline("a", mic).features(model).steps] == ["micro_features", "quantize"]
    assert app.pipeline("b", mic).features(description=syn.micro_frontend()).specs[0].shape == (3, 40)
    assert app.pipeline("c", mic).features(description=syn.micro_frontend(filters=20), rows=49).specs[0].shape == (49, 20)
    refused("differ in filters: 40, 20", app.pipeline("d", mic).features, model, syn.micro_frontend(filters=20))
    refused("differ in kind: micro, mel", app.pipeline("e", mic).features, model, syn.librosa())
    refused("takes samples of 16 bits", app.pipeline("f", app.frames("g", (480,), "float32")).features, model)
    refused("rows is a whole number", app.pipeline("h", mic).features, model, rows=0)
    refused("filters is from 1 to 128", app.pipeline("i", mic).features, None, syn.micro_frontend(filters=0))
    refused("is no description of features", app.pipeline("j", mic).features, None, "micro")
    file.with_suffix(".features.json").write_text('{"kind": "micro"}')
    refused("a micro front end has rate, window_ms", app.pipeline("k", mic).features, app.model(file, name="other"))


def test_a_network_s_steps_may_be_made_smaller(app, tmp_path):
    file = same(tmp_path, (8, 8, 3), 1.0)
    refused("max_step is multiply-accumulates, a whole number from 1 on, not 0", app.model, file, max_step=0)
    whole, parts = app.model(file, name="whole"), app.model(file, name="parts", max_step=1)
    assert len(whole.compiled.container) == len(parts.compiled.container) and whole.compiled.container != parts.compiled.container


def test_what_cannot_be_heard_is_refused(app):
    def features(shape, dtype, description, **more):
        source = app.frames(f"s{len(app.sources)}", shape, dtype)
        return lambda: app.pipeline(f"p{len(app.pipelines)}", source).features(description=description, **more)

    refused("takes sound", features((2, 100), "int16", syn.librosa()))
    refused("takes sound", features((100,), "int8", syn.librosa()))
    refused("100 samples are not one frame of 512", features((100,), "int16", syn.librosa(center=False)))
    refused("out of its range", features((1000,), "int16", syn.librosa(hop_length=0)))
    refused(r"fft is 640 \(n_fft\), and a power of two from 8 to 1024: n_fft=1024 with win_length=640 has the same window", features((1000,), "int16", syn.librosa(n_fft=640)))
    refused(r"fft is 2048 \(n_fft\), and a power of two from 8 to 1024", features((4000,), "int16", syn.librosa(n_fft=2048)))
    refused(r"coefficients is 60 \(n_mfcc\), and at most filters \(n_mels\), 40", features((1000,), "int16", syn.librosa(n_mfcc=60)))
    refused("and within 0 to half the rate, 8000", features((1000,), "int16", syn.librosa(fmax=9000)))
    refused("a stream has no end", features((100,), "int16", syn.librosa(), rows=4))
    refused("rows is a whole number", features((100,), "int16", syn.librosa(center=False, top_db=None), rows=0))


def test_a_stream_of_sound_reaches_the_network_window_by_window(app, tmp_path):
    description = syn.librosa(**SHORT)
    model = app.model(same(tmp_path, (32,), 1.0), features=description)
    mic = app.frames("mic", (48,), "int16")
    app.job(app.pipeline("heard", mic).features(model, rows=4).model(model))
    app.job(app.pipeline("clip", app.frames("clip", (160,), "int16")).features(model).model(model))
    image = compile_app(app)
    assert image.states == 16 * -(-(16 + 4 * (32 + 64 + 4 * 8 + 6 + 64 + 4 * 8)) // 16)
    assert image.scratch >= 4 * (32 + 64 + 4 * 8 + 6)
    sound = np.random.default_rng(6).integers(-20000, 20000, 480).astype(np.int16)
    silence = exact(np.zeros(64), **description)
    with syn.Runtime(app) as rt:
        for i in range(10):
            got = np.asarray(rt.run("heard", sound[48 * i : 48 * (i + 1)])).reshape(4, 8)
            heard = sound[: 48 * (i + 1)] / 32768
            frames = [silence] * 4 + ([exact(heard, **description)] if len(heard) >= 64 else [])
            want = np.concatenate(frames)[-4:]
            assert abs(got - want.clip(-128, 127)).max() <= 0.51
        got = np.asarray(rt.run("clip", sound[:160])).reshape(4, 8)
        assert abs(got - exact(sound[:160] / 32768, **description).clip(-128, 127)).max() <= 0.51


@pytest.mark.slow
def test_host_and_board_see_and_hear_the_same(app, tmp_path):
    """Every step of a camera's and of a microphone's pipeline, and a state that goes on from frame to frame."""
    rng = np.random.default_rng(8)
    rng.integers(0, 256, (3, 1, 10, 24, 2), np.uint8).tofile(tmp_path / "camera.bin")
    rng.integers(-20000, 20000, (5, 48)).astype(np.int16).tofile(tmp_path / "mic.bin")
    picture = app.model(same(tmp_path, (8, 8, 3), 1.0), mean=128.0, std=1.0)
    words = app.model(same(tmp_path, (32,), 1.0), features=syn.librosa(**SHORT))
    camera = app.frames("camera", (1, 10, 24, 2), "uint8", file=tmp_path / "camera.bin")
    app.job(app.pipeline("seen", camera).colour("yuyv", "bgr", video=True).fit(picture, mode="crop", method="area").model(picture))
    mic = app.frames("mic", (48,), "int16", file=tmp_path / "mic.bin")
    app.job(app.pipeline("heard", mic).features(words, rows=4).model(words))
    on_host, on_board = run_on_host(app, {}), run_on_board(build_firmware(app, "mps2-an521"), {})
    assert len(on_host.results) == 8 and len({r.arrays[0].tobytes() for r in on_host.results}) == 8
    assert on_host.digest == on_board.digest


def test_words_of_a_stored_description_are_those_of_the_kernel():
    for name, words in descriptions.WORDS.items():
        assert len(words) == len(set(words)) and name in syn.librosa()
