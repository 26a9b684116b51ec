"""What a wrong declaration is told, on the line that is wrong."""

import sys
from pathlib import Path

import numpy as np
import pytest
from synapticos.app import App, stage
from synapticos.app.load import load_app
from synapticos.app.stage import write_adapter
from synapticos.errors import UserError
from synapticos.kernel.status import Status
from synapticos.lang import Array, Shaped, f32, i8, i32, struct, u32

EXAMPLES = Path(__file__).parents[2] / "examples"


@struct
class Settings:
    threshold: f32


@stage
def decode(
    scores: Shaped[Array[i8], 896],
    boxes: Shaped[Array[i8], 896, 16],
    scores_scale: f32,
    scores_zero: i32,
    cfg: Settings,
    out: Shaped[Array[f32], 64, 6],
) -> tuple[Status, u32]:
    return Status.OK, 0


@stage
def four_values(boxes: Shaped[Array[i8], 896, 4], out: Shaped[Array[f32], 64, 6]) -> tuple[Status, u32]:
    return Status.OK, 0


@stage
def wrong_name(boxen: Shaped[Array[i8], 896, 16], out: Shaped[Array[f32], 64, 6]) -> tuple[Status, u32]:
    return Status.OK, 0


@pytest.fixture
def app():
    return App("test")


@pytest.fixture
def camera(app):
    return app.camera("front", 128, 128)


@pytest.fixture
def blaze(app):
    return app.model(
        EXAMPLES / "face_detection" / "face_blazeface_int8.tflite", name="blaze", outputs=("boxes", "scores"), mean=127.5, std=127.5
    )


@pytest.fixture
def detector(app, camera, blaze):
    return app.pipeline("faces", camera).fit(blaze).model(blaze)


def refusal(call, *args, **kwargs):
    with pytest.raises(UserError) as caught:
        call(*args, **kwargs)
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_outputs_bind_by_name_in_any_order(detector):
    binding = detector.stage(decode, threshold=0.5).steps[-1].binding
    assert [(p.name, i) for p, i in binding.arrays] == [("scores", 1), ("boxes", 0)]


def test_a_parameter_that_names_no_tensor_is_refused_with_those_there_are(detector):
    text = refusal(detector.stage, wrong_name)
    assert 'parameter "boxen" names no tensor' in text and "boxes (i8 1 x 896 x 16), scores (i8 1 x 896 x 1)" in text


def test_a_parameter_of_another_shape_is_refused_with_both(detector):
    text = refusal(detector.stage, four_values)
    assert 'parameter "boxes" is i8 896 x 4, the tensor is i8 1 x 896 x 16; write boxes: Shaped[Array[i8], 896, 16]' in text


def test_settings_are_checked_by_name(detector):
    assert "cfg has no limit; it has threshold" in refusal(detector.stage, decode, limit=1)
    assert "cfg: threshold='high': " in refusal(detector.stage, decode, threshold="high")
    assert "cfg needs threshold" in refusal(detector.stage, decode)


def test_a_built_in_takes_one_tensor(detector):
    assert "takes one tensor, the step before gives 2" in refusal(detector.nms)


def test_a_second_model_is_refused(detector, blaze):
    assert "has a model already" in refusal(detector.model, blaze)


def test_a_picture_straight_into_a_network_is_told_of_fit(app, camera, blaze):
    assert "put .fit(model) before it" in refusal(app.pipeline("p", camera).model, blaze)


def test_names_are_taken_once(app, camera):
    assert "declared twice" in refusal(app.camera, "front", 10, 10)


def test_a_job_needs_a_model(app, camera):
    assert "has no model" in refusal(app.job, app.pipeline("p", camera))


def test_a_plain_function_is_no_stage(detector):
    assert "put @syn.stage" in refusal(detector.stage, lambda x: x)


def test_a_missing_model_is_named(app, camera):
    model = app.model("nowhere.tflite")
    assert "nowhere.tflite: no such file" in refusal(app.pipeline("p", camera).fit, model)


def test_pixels_without_mean_fill_the_input_tensors_range(app, blaze):
    blaze.mean = blaze.std = None
    mean, std = blaze.pixels()
    low, high = (np.array([0, 255]) - mean[0]) / std[0]
    spec = blaze.input
    assert round(low / spec.scale) + spec.zero == -128 and round(high / spec.scale) + spec.zero == 127


def test_an_adapter_is_kernel_python_that_can_be_read(detector):
    binding = detector.stage(decode, threshold=0.5).steps[-1].binding
    adapter = write_adapter(binding, 0)
    assert adapter.c_name == "test_decode_0"
    assert binding.pack()[-4:] == np.float32(0.5).tobytes()


def test_a_source_says_what_a_file_should_be(app, camera, tmp_path):
    frames = app.frames("raw", (1, 3), "int8")
    (tmp_path / "f").write_bytes(bytes(7))
    assert "7 bytes are no whole number of frames (i8 1 x 3, 3 bytes each)" in refusal(list, frames.read(tmp_path / "f"))
    (tmp_path / "picture.png").write_bytes(b"no picture")
    assert "no picture that can be read" in refusal(list, camera.read(tmp_path / "picture.png"))


def test_a_picture_of_another_size_is_refused_unless_cropped(app, tmp_path):
    from PIL import Image

    Image.new("RGB", (60, 40), (9, 9, 9)).save(tmp_path / "p.png")
    camera = app.camera("small", 20, 20)
    assert "is 60 x 40, the camera gives 20 x 20; say --crop" in refusal(list, camera.read(tmp_path / "p.png"))
    (frame,) = camera.read(tmp_path / "p.png", crop=True)
    assert frame.shape == (1, 20, 20, 3) and (frame == 9).all()


def test_an_apps_own_mistake_is_one_line_with_its_place(tmp_path):
    (tmp_path / "app.py").write_text("import synapticos as syn\n\nx = 1 / 0\n")
    assert f"{tmp_path}/app.py:3: ZeroDivisionError" in refusal(load_app, tmp_path / "app.py")
    (tmp_path / "app.py").write_text("import synapticos as syn\nx = (\n")
    assert "app.py:2: " in refusal(load_app, tmp_path / "app.py")
    (tmp_path / "app.py").write_text("x = 1\n")
    assert "declares 0 apps" in refusal(load_app, tmp_path / "app.py")


def test_a_mistake_names_the_file_as_it_was_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("app.py").write_text("for\n")
    assert refusal(load_app, "app.py").startswith("app.py:1: ")
    Path("app.py").write_text(
        "import synapticos as syn\n"
        "app = syn.App('a')\n"
        "@syn.stage\n"
        "def f(x, out: syn.f32) -> syn.Status: ...\n"
        "app.job(app.pipeline('p', app.frames('x', (1,))).stage(f))\n"
    )
    assert refusal(load_app, "app.py").startswith('app.py:3: stage f: parameter "x" has no type')


def test_importing_the_package_imports_nothing_else():
    import subprocess

    code = "import sys, synapticos; print(sorted(m for m in sys.modules if m.startswith('synapticos.') or m == 'numpy'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


WRONG = [
    ("App", (5,), {}), ("App", ("a" * 100,), {}), ("App", ("a",), {"ram": True}), ("frames", ("s", 1), {}), ("frames", (None, (1,)), {}),
    ("frames", ("s", (True, True)), {}), ("frames", ("s", (1 << 40,)), {}), ("frames", ("s", (1,)), {"file": 5}), ("camera", ("c", "5", 4, "yuyv"), {}),
    ("camera", ("c", 4, 4, []), {}), ("model", ("m.tflite",), {"outputs": 3}), ("model", ("m.tflite",), {"outputs": "values"}),
    ("model", ("m.tflite",), {"mean": "x"}), ("model", ("m.tflite",), {"std": 0}), ("model", (None,), {}), ("pipeline", ("p", None), {}), ("job", (None,), {}),
]  # fmt: skip


@pytest.mark.parametrize(("method", "given", "named"), WRONG)
def test_a_value_of_the_wrong_type_is_refused_where_it_is_written(app, method, given, named):
    refusal(App if method == "App" else getattr(app, method), *given, **named)


@pytest.mark.parametrize(("what", "value"), [("deadline", 1 << 32), ("deadline", 1.5), ("every", "x"), ("every", True), ("priority", 2.0), ("late", [])])
def test_a_jobs_times_are_what_the_kernel_can_count(app, detector, what, value):
    assert what in refusal(app.job, detector, **{what: value})
    assert app.job(detector, deadline=1.5 * 1000).deadline == 1500


def test_pipelines_end_where_the_kernels_slots_do(app, detector):
    for i in range(31):
        app.pipeline(f"p{i}", detector.source)
    assert "more than 32 pipelines" in refusal(app.pipeline, "more", detector.source)
    app.job(detector)
    assert "has a job already" in refusal(app.job, detector)


def test_a_picture_too_large_to_decode_is_one_line(app, tmp_path):
    import struct
    import zlib

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    for side in (12_000, 60_000):
        head = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0))
        (tmp_path / "p.png").write_bytes(b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(b"0")) + chunk(b"IEND", b""))
        assert "no picture that can be read" in refusal(list, app.camera(f"c{side}", 4, 4).read(tmp_path / "p.png"))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"raise ValueError('a\\nb')", "app.py:1: ValueError: a b"),
        (b"raise ValueError", "app.py:1: ValueError"),
        (b"raise GeneratorExit", "app.py:1: GeneratorExit"),
        (b"import sys\nsys.exit(0)", "app.py:2: ends the program (SystemExit 0)"),
        (b"x = 1\n\0", "app.py: "),
    ],
)
def test_however_an_app_ends_is_one_line(tmp_path, text, told):
    (tmp_path / "app.py").write_bytes(text + b"\n")
    assert told in refusal(load_app, tmp_path / "app.py")
