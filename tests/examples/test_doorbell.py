"""The doorbell hears its name where the reference does, with the reference's bytes, on the host and on the board."""

import json
import wave
from pathlib import Path

import numpy as np
import pytest
import synapticos as syn
from synapticos.app.load import load_app

FOLDER = Path(__file__).parents[2] / "examples" / "doorbell"
ANSWERS = np.load(Path(__file__).with_name("doorbell.npz"))  # of pymicro-features, tflite-micro and pymicro-wakeword, by tools/make_doorbell.py
CLIPS = [name.removesuffix("/outputs") for name in ANSWERS if name.endswith("/outputs")]


def sound(name):
    if name == "hard":
        return ANSWERS["hard"]
    with wave.open(str(FOLDER / f"{name}.wav")) as file:
        return np.frombuffer(file.readframes(file.getnframes()), np.int16)


@pytest.fixture(scope="module")
def app():
    app = load_app(FOLDER)
    alexa = app.models[0]
    app.pipeline("answers", app.sources["mic"]).features(alexa).model(alexa)
    rows = app.frames("rows", (3, 40), "float32")
    app.pipeline("network", rows).quantize(alexa).model(alexa)
    return app


@pytest.mark.parametrize("name", ["hello", "other", "hard"])
def test_from_sound_to_answer_no_byte_differs_from_the_reference(app, name):
    windows = sound(name).reshape(-1, 480)
    with syn.Runtime(app) as rt:
        got = [int(np.asarray(rt.run("answers", w)).item()) for w in windows]
    assert np.array_equal(got, ANSWERS[f"{name}/outputs"][0])
    with syn.Runtime(app) as rt:
        heard = [rt.run("heard", w)[1] for w in windows]
    assert np.array_equal(heard, ANSWERS[f"{name}/outputs"][2])


def test_the_word_is_heard_in_these_voices_and_nothing_else_is():
    """As the reference says, which misses two women who speak slowly."""
    heard = {name: int(ANSWERS[f"{name}/outputs"][2].sum()) for name in CLIPS}
    assert [name for name, n in heard.items() if not n] == ["other", "hard", "en-us+f2 120", "en-us+f3 120"]
    assert sum(n > 0 for n in heard.values()) == 23


@pytest.mark.parametrize("name", [name for name in CLIPS if name[:2] == "en"])
def test_the_network_answers_as_the_reference_in_every_voice(app, name):
    """Features of a word a voice and speed, each counted in 10/256."""
    rows = ANSWERS[f"{name}/rows"]
    rows = rows[: len(rows) // 3 * 3].reshape(-1, 3, 40).astype(np.float32) * np.float32(10 / 256)
    with syn.Runtime(app) as rt:
        got = [int(np.asarray(rt.run("network", r)).item()) for r in rows]
    assert np.array_equal(got, ANSWERS[f"{name}/outputs"][0])


def test_any_feature_is_quantised_as_the_reference_does(app):
    """Which divides in double precision and rounds halves to even."""
    alexa = app.models[0]
    values = np.arange(666)  # the largest that int8 holds is 665
    wanted = np.round(values * (10 / 256) / alexa.input.scale + alexa.input.zero)
    from synapticos.engine import Build
    from synapticos.kernel.stages.operands import Quantization
    from synapticos.kernel.stages.quantize import quantize
    from synapticos.kernel.tensor import DType, Tensor
    from synapticos.lang import u8

    e = Build([quantize]).engine("native")
    reals = values.astype(np.float32) * np.float32(10 / 256)
    x, y = e.new(Tensor, size=4 * 666, dtype=DType.FLOAT32, ndim=1, shape=[666]), e.new(Tensor, size=666)
    out = e.array(u8, 666)
    assert e(quantize, x, e.array(u8, reals.tobytes()), y, out, e.new(Quantization, scale=alexa.input.scale, zero_point=alexa.input.zero)) == 0
    assert np.array_equal(np.frombuffer(bytes(out), np.int8), wanted)


def test_the_front_end_travels_with_the_network():
    assert json.loads((FOLDER / "alexa.features.json").read_text()) == syn.micro_frontend()
