"""The doorbell hears its name where the reference does, with the reference's bytes, on the host and on the board."""

import importlib.util
import json
import wave
from pathlib import Path

import numpy as np
import pytest
import synapticos as syn
from synapticos.app.load import load_app
from synapticos.host.clock import run_by_clock
from synapticos.host.timeline import draw_timelines

pytestmark = pytest.mark.slow  # all together
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


readmes_file = Path(__file__).parents[2] / "tools" / "make_readmes.py"
_spec = importlib.util.spec_from_file_location("make_readmes", readmes_file)
assert _spec is not None and _spec.loader is not None
readmes = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(readmes)


@pytest.fixture(scope="module")
def demo():
    return readmes.load_demo()


@pytest.fixture(scope="module")
def off(demo):
    return demo.play(False, {})


@pytest.fixture(scope="module")
def on(demo):
    return demo.play(True, {})


def test_without_pre_emption_most_of_what_is_said_meanwhile_is_missed(off):
    heard, visitor = off.jobs["heard"], off.jobs["visitor"]
    assert heard.released == len(sound("hello")) // 480 == 192
    assert heard.missed > 60 and heard.dropped > 60
    assert visitor.missed == 0 and visitor.released == 2
    assert off.heard == []  # the word was said while the other network was at work


def test_with_pre_emption_nothing_is_missed_and_the_word_is_heard(on):
    heard, visitor = on.jobs["heard"], on.jobs["visitor"]
    assert (heard.released, heard.missed) == (192, 0) and heard.longest_us < 30_000
    assert (visitor.released, visitor.missed, on.faces) == (2, 0, 2)
    results = [r for r in on.report.results if r.pipeline == "heard"]
    assert np.array_equal([r.arrays[0][1] for r in results], ANSWERS["hello/outputs"][2])


def test_all_of_it_takes_at_most_256_kb_and_what_was_planned(demo, on):
    assert on.report.sizes["ram"] <= demo.RAM
    assert on.report.peak == sum(on.report.image.frames)


def test_the_readme_says_what_is_printed(demo, on, off, request):
    """Figures within a twentieth; `python tools/make_readmes.py` writes them anew."""
    page = (FOLDER / "README.md").read_text()
    assert not readmes.agree(readmes.part(page, "demo"), readmes.demo_part(demo, off, on))
    said = request.getfixturevalue("syn")("check", FOLDER / "app.py", "--mhz", "150")[1]
    assert not readmes.agree(readmes.part(page, "check"), readmes.check_part(said))


def test_figures_may_be_a_twentieth_off():
    assert readmes.agree("a 100.0 us", "a 104.9 us") == [] and readmes.agree("a 1,000", "a  1,040") == []
    assert len(readmes.agree("a 100.0 us", "a 106 us")) == len(readmes.agree("a 1", "b 1")) == len(readmes.agree("a", "a\nb")) == 1


def test_the_board_gives_the_host_s_bytes(on, off):
    here = run_by_clock(load_app(FOLDER), {})
    assert here.digest == on.report.digest
    found = {r.release_us: r.arrays[0].tobytes() for r in here.results if r.pipeline == "visitor"}
    for r in off.report.results:  # a network forgets no window that it was given; its answers depend on those it was not
        if r.pipeline == "visitor":
            assert r.arrays[0].tobytes() == found[r.release_us]


def test_other_words_are_not_heard(demo):
    played = demo.play(True, {"mic": FOLDER / "other.wav"})
    assert played.heard == [] and played.jobs["heard"].missed == 0


@pytest.mark.parametrize("which", ["on", "off"])
def test_spans_tell_what_the_counts_do(which, request):
    played = request.getfixturevalue(which)
    steps = []
    for name, counts in played.jobs.items():
        spans = [span for span in played.spans if span.name == name]
        assert len(spans) == counts.released
        assert sum(span.outcome == "dropped" for span in spans) == counts.dropped
        assert sum(span.missed for span in spans) == counts.missed
        for span in spans:
            steps += [(step.begin_us, step.end_us) for step in span.steps]
            assert all(span.release_us <= step.begin_us for step in span.steps)
    steps.sort()
    assert all(end <= begin for (_, end), (begin, _) in zip(steps, steps[1:]))  # one processor


def test_the_timeline_is_a_picture(demo, on, off, tmp_path):
    draw_timelines([("off", off.spans), ("on", on.spans)], tmp_path / "t.svg", begin_us=2_850_000, end_us=4_350_000)
    assert (tmp_path / "t.svg").read_text().startswith("<svg")


def test_a_front_end_may_be_shared():
    """Two networks that read the rows of one: as if each had its own."""
    app = syn.App("two_words")
    mic = app.microphone("mic", window=480, file=FOLDER / "hello.wav")
    rows = app.pipeline("rows", mic).features(description=syn.micro_frontend()).feed("features")
    for name in ("first", "second"):
        word = app.model(FOLDER / "alexa.tflite", name=name)
        app.job(app.pipeline(f"heard_{name}", rows).quantize(word).model(word), priority=syn.REALTIME)
    report = run_by_clock(app, {})
    for name in ("first", "second"):
        got = [int(r.arrays[0].item()) for r in report.results if r.pipeline == f"heard_{name}"]
        assert got == ANSWERS["hello/outputs"][0].tolist()
