"""FC-08: one definition of the audio features, on the host and on the board, and a pipeline that has another is refused."""

import numpy as np
import pytest
import synapticos as syn
from synapticos import importers
from synapticos.errors import KernelError, UserError
from synapticos.host.execute import run_on_board
from synapticos.host.firmware import build_firmware
from synapticos.kernel.stages import features, quantize
from synapticos.kernel.stages.features import FeatureConfig
from synapticos.kernel.stages.operands import Quantization
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import DType, Tensor
from synapticos.lang import pack, u8
from synapticos.model import compile_model
from synapticos.model.load import load_container
from tflite_writer import Writer

RATE = 16000


def one_second() -> np.ndarray:
    """A chirp to 8 kHz, digital silence, a full-scale square wave of 400 Hz."""
    t = np.arange(RATE)
    chirp = np.round(20000 * np.sin(np.pi * 8000 * (t / RATE) ** 2 * 3))
    square = np.where(t // 20 % 2 == 0, 32767, -32768)
    return np.select([t < RATE // 3, t < 2 * RATE // 3], [chirp, 0], square).astype(np.int16)


@pytest.fixture
def e(engines):
    """The host's compiled code and the board's; the checked engine runs the same on short clips elsewhere."""
    made = engines(features.features, features.feature_floats, features.feature_frames, features.feature_width, quantize.quantize)
    made.each = [engine for engine in made.each if engine.name != "checked"]
    return made


@pytest.mark.parametrize("preset", [syn.librosa(), features.published(), syn.librosa(n_mfcc=0, center=False, top_db=None)], ids=["librosa", "published", "log mel"])
def test_quantised_features_are_the_same_bytes_on_host_and_board(e, preset):
    samples = one_second()
    config = e.new(FeatureConfig, **preset)
    frames, width = e(features.feature_frames, config, RATE), e(features.feature_width, config)
    scratch = 4 * e(features.feature_floats, config)
    published = preset == features.published()
    x_data = (samples / 32768).astype(np.float32) if published else samples
    x = e.new(Tensor, size=x_data.nbytes, ndim=1, shape=[RATE], dtype=DType.FLOAT32 if published else DType.INT16)
    y, q = e.new(Tensor, size=4 * frames * width), e.new(Tensor, size=frames * width)
    y_data, q_data = e.array(u8, 4 * frames * width), e.array(u8, frames * width)
    assert e(features.features, x, e.array(u8, x_data.tobytes()), y, y_data, config, e.array(u8, scratch), scratch) == Status.OK
    made = np.frombuffer(bytes(y_data), np.float32).reshape(frames, width)
    assert np.isfinite(made).all()
    quiet = made[frames * 5 // 12 : frames * 7 // 12]
    assert (quiet == quiet[0]).all()
    assert e(quantize.quantize, y, y_data, q, q_data, e.new(Quantization, scale=0.5, zero_point=3)) == Status.OK
    assert len(set(bytes(q_data))) > 20  # and `e` has compared the bytes of the two


def test_a_pipeline_that_differs_in_the_mel_formula_is_refused_by_name(tmp_path):
    app = syn.App("words")
    model = app.model(tmp_path / "words.tflite", features=syn.librosa())
    mic = app.frames("mic", (RATE,), "int16")
    with pytest.raises(UserError, match='model "words" and the pipeline differ in mel: slaney, htk$'):
        app.pipeline("heard", mic).features(model, syn.librosa(htk=True))


def test_a_description_names_all_that_decides():
    """Window, hop, padding at the edges, mel formula, log base and floor, cosine transform, the first coefficient."""
    for field in ("window", "window_shape", "hop", "placing", "mel", "log", "floor", "floor_rule", "dct", "keep_first"):
        other = dict(syn.librosa(n_mfcc=12), **{field: {"floor": 1e-3, "window": 400, "hop": 80}.get(field, 0)})
        (found,) = features.differences(*(packed(d) for d in (syn.librosa(n_mfcc=12), other)))
        assert found.startswith(f"{field}: ")


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    """A network that hands on one frame of 8 coefficients."""
    w = Writer()
    x, y = w.tensor("x", (1, 8), 0.5), w.tensor("y", (1, 8), 0.5)
    w.op("RELU", [x], [y], 1)
    file = tmp_path_factory.mktemp("words") / "words.tflite"
    file.write_bytes(w.finish([x], [y]))
    return file


SHORT = dict(sr=8000, n_fft=64, hop_length=32, n_mels=8, n_mfcc=8, center=False, top_db=None)


def listening(words, trained, heard):
    """An image whose container says `trained`, and whose pipeline makes `heard`, as a container from elsewhere may."""
    app = syn.App("words")
    m = app.model(words, features=heard)
    mic = app.frames("mic", (64,), "int16")
    app.job(app.pipeline("heard", mic).features(m).model(m))
    m.__dict__["compiled"] = compile_model(m.graph, name=m.name, features=trained)
    return app


@pytest.mark.parametrize("engine", ["native", "cortex-m"])
def test_a_device_compares_at_boot(words, engine):
    preset = syn.librosa(**SHORT)
    for trained in (preset, None):  # the same, or a container that does not say
        with syn.Runtime(listening(words, trained, preset), engine=engine) as rt:
            assert rt.run("heard", np.zeros(64, np.int16)).shape == (1, 8)
    with pytest.raises(KernelError) as caught:
        syn.Runtime(listening(words, syn.librosa(**SHORT, htk=True), preset), engine=engine)
    assert caught.value.status == Status.ACCES
    assert "hears other features than its model was trained on" in str(caught.value)


@pytest.mark.parametrize("engine", ["native", "cortex-m"])
def test_a_device_compares_micro_front_ends_too(words, engine):
    preset = syn.micro_frontend(rate=8000, window_ms=8, step_ms=4, filters=8, high_hz=3500.0)
    with syn.Runtime(listening(words, preset, preset), engine=engine) as rt:
        assert rt.run("heard", np.zeros(64, np.int16)).shape == (1, 8)
    for other in (dict(preset, odd_smoothing=0.07), syn.librosa(**SHORT)):
        with pytest.raises(KernelError) as caught:
            syn.Runtime(listening(words, other, preset), engine=engine)
        assert caught.value.status == Status.ACCES


def test_firmware_does_not_start_and_says_why(words, tmp_path):
    file = tmp_path / "mic.bin"
    file.write_bytes(bytes(128))
    app = listening(words, syn.librosa(**SHORT, htk=True), syn.librosa(**SHORT))
    with pytest.raises(UserError, match="the app does not start: it hears other features than its model was trained on"):
        run_on_board(build_firmware(app, "mps2-an521"), {"mic": file})


def test_the_number_of_a_description_is_in_the_container(words):
    preset = syn.librosa(**SHORT)
    made = compile_model(importers.load(words), features=preset)
    found = load_container(made.container, "words")
    assert found.header["features"] == features.digest(packed(preset)) != 0
    with pytest.raises(UserError, match="no description of features"):
        compile_model(importers.load(words), features={"rate": "loud"})


def packed(description):
    return pack(FeatureConfig, **description)
