"""FC-04: two wake words share one microphone and one front end."""

from __future__ import annotations

import wave
from pathlib import Path

import numpy as np
import pytest

import synapticos as syn
from synapticos.host.execute import run_on_board, run_on_host
from synapticos.host.firmware import build_firmware
from synapticos.host.live import Live
from synapticos.kernel.status import Status
from synapticos.lang import Array, Shaped, f32, i8, i16, i32, struct, u32

SINE = Path(__file__).resolve().parents[2] / "examples" / "hello_world" / "sine.tflite"
RATE, WINDOW, HOP = 8000, 64, 48
LEVEL = {"A": 20000, "B": 28000, " ": 0}  # the loudest sample of a word


@syn.stage
def loudest(mic: Shaped[Array[i16], 64], out: Shaped[Array[i8], 1, 1]) -> Status:
    """The feature of a window: its loudest sample, 0 to 127 above the lowest."""
    top: i32 = 0
    for i in range(64):
        top = max(top, i32(mic[i]))
    out[0, 0] = i8((top >> 7) - 128)
    return Status.OK


@struct
class Word:
    low: i32  # what the network answers to the word
    high: i32
    windows: u32  # that it must go on answering so, on average more than half


@struct
class Heard:
    count: u32
    firing: u32


@syn.stage
def listen(y: Shaped[Array[i8], 1, 1], cfg: Word, state: Heard, out: Shaped[Array[f32], 1, 1]) -> Status:
    """1 in the window in which a word has lasted so long, else 0."""
    hit = i32(y[0, 0]) >= cfg.low and i32(y[0, 0]) <= cfg.high
    if not hit:
        state.count = 0
    else:
        state.count += 1
    out[0, 0] = 0.0
    if state.count == cfg.windows:
        out[0, 0] = 1.0
    return Status.OK


def sound_of(words: str) -> np.ndarray:
    """80 ms of each letter, a wave with its level."""
    return np.concatenate([np.sin(np.arange(640) * 1.3) * LEVEL[w] for w in words]).astype("<i2")


def answers() -> dict[str, int]:
    """What the network says to each word's level."""
    app = syn.App("ask")
    x = app.frames("x", (1, 1), "int8")
    app.job(app.pipeline("p", x).model(app.model(SINE)))
    with syn.Runtime(app) as rt:
        return {w: int(rt.run("p", np.array([[(int(sound_of(w).max()) >> 7) - 128]], np.int8)).reshape(-1)[0]) for w in LEVEL}


def ears(order: str, file: Path | None, depth: int = 1) -> syn.App:
    said = answers()
    app = syn.App("ears")
    mic = app.microphone("mic", rate=RATE, window=WINDOW, hop=HOP, file=file, keep=4)
    features = app.pipeline("front", mic).stage(loudest).feed("features")
    for name in order:
        network = app.model(SINE, name=f"word_{name}", outputs=("y",))
        cut = dict(low=said[name] - 6, high=said[name] + 6, windows=3 if name == "A" else 5)
        pipeline = app.pipeline(name, features).model(network).stage(listen, **cut)
        app.job(pipeline, priority=syn.REALTIME if name == "A" else syn.NORMAL, depth=depth)
    return app


@pytest.fixture
def file(tmp_path):
    with wave.open(str(tmp_path / "words.wav"), "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(RATE)
        out.writeframes(sound_of(" A B AB ").tobytes())
    return tmp_path / "words.wav"


def fired(report, name: str) -> list[int]:
    return [r.frame for r in report.results if r.pipeline == name and r.arrays[0].reshape(-1)[0] == 1.0]


def test_both_orders_fire_at_the_same_positions_and_features_are_made_once(file):
    reports = [run_on_host(ears(order, file), {}) for order in ("AB", "BA")]
    reports.append(run_on_board(build_firmware(ears("BA", file), "mps2-an521"), {}))
    a, b = fired(reports[0], "A"), fired(reports[0], "B")
    assert len(a) == len(b) == 2
    # A begins with the second and the sixth letter, B with the fourth and the seventh, of 640 samples each.
    for at, letters, windows in ((a, (1, 5), 3), (b, (3, 6), 5)):
        for k, letter in zip(at, letters, strict=True):
            first = next(n for n in range(200) if n * HOP + WINDOW > letter * 640 + 4)
            assert first + windows - 1 <= k <= first + windows + 1
    for report in reports:
        assert (fired(report, "A"), fired(report, "B")) == (a, b)
        jobs = report.counts["jobs"]
        assert jobs["front"]["started"] == jobs["A"]["started"] == jobs["B"]["started"] == (8 * 640 // HOP * HOP - WINDOW) // HOP + 1
        assert report.counts["sources"]["mic"]["lost"] == 0


def test_what_overflows_is_counted_and_the_next_whole_window_is_right():
    """Three seconds come while nobody polls; then the consumer goes on."""
    app = ears("AB", None)
    with syn.Runtime(app, virtual=True) as rt:
        live = Live(rt)
        live.start()
        flood = sound_of("A" * 38)[: 3 * RATE]
        held = [live.push("mic", flood[at : at + 100]) for at in range(0, len(flood), 100)]
        assert held[0] and not held[-1]
        mic = live.counters()["sources"]["mic"]
        kept = WINDOW + 3 * HOP  # of a ring of four entries
        assert mic == {"entries": 4, "lost": 2 * (len(flood) - kept), "gaps": 1}
        while live.step() != 0:
            live.take()
        before = live.counters()["jobs"]["front"]["started"]
        word = sound_of("B")
        live.push("mic", word[:WINDOW])
        done = []
        while live.step() != 0:
            done += live.take()
        after = live.counters()
        assert after["jobs"]["front"]["started"] == before + 1 and after["sources"]["mic"]["lost"] == mic["lost"]
        # What the front end left of it is of these samples alone: the network answers as it does to the word.
        feed = rt.kernel.releases.feeds[1]
        assert int(feed.entries) == before + 1 and {d.job.pipeline.name for d in done} <= {"A", "B"}
        entry = rt._memory.numpy()[int(feed.at) :].reshape(-1)
        stride, keep = int(feed.stride), int(feed.keep)
        assert (int(word[:WINDOW].max()) >> 7) - 128 in [int(np.int8(entry[k * stride])) for k in range(keep)]
