"""FC-08: one definition of the audio features, on the host and on the board, and a pipeline that has another is refused."""

import numpy as np
import pytest
import synapticos as syn
from synapticos.errors import UserError
from synapticos.kernel.stages import features, quantize
from synapticos.kernel.stages.features import FeatureConfig
from synapticos.kernel.stages.operands import Quantization
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import DType, Tensor
from synapticos.lang import pack, u8

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


def packed(description):
    return pack(FeatureConfig, **description)
