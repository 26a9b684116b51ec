"""An app whose jobs the kernel begins: the same bytes in virtual time and on a board, and live with a thread of its own."""

from __future__ import annotations

import threading
import time
import wave
from pathlib import Path

import numpy as np
import pytest

import synapticos as syn
from synapticos.app.declare import App
from synapticos.errors import UserError
from synapticos.host.clock import plan_run
from synapticos.host.execute import run_on_board, run_on_host
from synapticos.host.firmware import build_firmware
from synapticos.lang import Array, Shaped, i8, i16, i32, sat
from synapticos.kernel.status import Status

SINE = Path(__file__).resolve().parents[2] / "examples" / "hello_world" / "sine.tflite"


@syn.stage
def peak(mic: Shaped[Array[i16], 64], out: Shaped[Array[i8], 1, 1]) -> Status:
    """The loudest sample, in 128 steps."""
    top: i32 = 0
    for i in range(64):
        top = max(top, i32(mic[i]))
    out[0, 0] = sat(i8, top >> 8)
    return Status.OK


@pytest.fixture
def sound(tmp_path):
    file = tmp_path / "sound.wav"
    with wave.open(str(file), "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(8000)
        out.writeframes((np.sin(np.arange(1600) / 7) * np.linspace(0, 32000, 1600)).astype("<i2").tobytes())
    return file


def ears(sound: Path) -> App:
    """A microphone, its front end, and two that read it; one more by the clock."""
    app = syn.App("ears")
    mic = app.microphone("mic", rate=8000, window=64, hop=48, file=sound)
    model = app.model(SINE)
    loud = app.pipeline("front", mic).stage(peak).feed("loud")
    for name in ("left", "right"):
        app.job(app.pipeline(name, loud).model(model), deadline=5 * syn.ms, priority=syn.REALTIME)
    app.job(app.pipeline("slow", loud).model(model), every=25 * syn.ms, phase=15 * syn.ms)
    return app


def test_virtual_time_and_a_board_give_the_same_bytes(sound):
    app = ears(sound)
    reports = [run_on_host(app, {}, engine=engine) for engine in ("native", "checked")]
    reports.append(run_on_board(build_firmware(app, "mps2-an521"), {}))
    windows = (1600 // 48 * 48 - 64) // 48 + 1  # what does not fill a hop is left out
    for report in reports:
        jobs, sources = report.counts["jobs"], report.counts["sources"]
        assert [jobs[name]["started"] for name in ("front", "left", "right")] == [windows] * 3
        assert jobs["slow"]["started"] == len(range(15, 198, 25))
        assert sources["mic"] == sources["loud"] == {"entries": windows, "lost": 0, "gaps": 0}
        assert report.digest == reports[0].digest
        left = [r for r in report.results if r.pipeline == "left"]
        right = [r for r in report.results if r.pipeline == "right"]
        assert [r.arrays[0].tolist() for r in left] == [r.arrays[0].tolist() for r in right]
        slow = [r for r in report.results if r.pipeline == "slow"]
        assert [r.release_us for r in slow] == [1000 * t for t in range(15, 198, 25)]
        assert not any(r.missed for r in report.results)
    assert all(r.finish_us > r.release_us for r in reports[-1].results)


def test_a_picture_is_shown_again_until_the_longest_source_ends(tmp_path, sound):
    app = syn.App("app")
    mic = app.microphone("mic", rate=8000, window=64, file=sound)
    one = app.frames("one", (1, 1), "int8", file=tmp_path / "one.raw")
    (tmp_path / "one.raw").write_bytes(b"\x05")
    model = app.model(SINE)
    app.job(app.pipeline("heard", mic).stage(peak).model(model))
    app.job(app.pipeline("seen", one).model(model), every=30 * syn.ms)
    report = run_on_host(app, {})
    assert report.counts["jobs"]["heard"]["started"] == 25 and report.counts["jobs"]["seen"]["started"] == 7
    assert plan_run(compile_(app), {}).end_us == 200_000


def compile_(app):
    from synapticos.app.image import compile_app

    return compile_app(app)


def test_a_source_without_times_is_fed_as_fast_as_it_is_read(tmp_path):
    app = syn.App("app")
    (tmp_path / "x.raw").write_bytes(bytes(range(20)))
    x = app.frames("x", (1, 1), "int8", file=tmp_path / "x.raw", keep=2)
    app.job(app.pipeline("p", x).model(app.model(SINE)), on=x)
    reports = [run_on_host(app, {}), run_on_board(build_firmware(app, "mps2-an521"), {})]
    assert [r.counts["jobs"]["p"]["started"] for r in reports] == [20, 20]
    assert reports[0].digest == reports[1].digest


def test_a_job_that_nothing_releases_is_refused_beside_released_ones(tmp_path):
    app = syn.App("app")
    (tmp_path / "x.raw").write_bytes(b"\0")
    x = app.frames("x", (1, 1), "int8", file=tmp_path / "x.raw")
    model = app.model(SINE)
    app.job(app.pipeline("p", x).model(model), every=syn.ms)
    app.job(app.pipeline("q", x).model(model))
    with pytest.raises(UserError, match='job of "q": nothing releases it'):
        run_on_host(app, {})


@pytest.mark.parametrize("samples, words", [(50, "sound.wav: holds 50 samples, and the first frame is 64; give a longer"), (None, "is empty or cut short")])
def test_sound_that_is_too_short_is_named(tmp_path, samples, words):
    file = tmp_path / "sound.wav"
    file.write_bytes(b"")
    if samples is not None:
        with wave.open(str(file), "wb") as out:
            out.setparams((1, 2, 8000, 0, "NONE", ""))
            out.writeframes(bytes(2 * samples))
    app = syn.App("app")
    app.job(app.pipeline("heard", app.microphone("mic", rate=8000, window=64, file=file)).stage(peak).model(app.model(SINE)))
    with pytest.raises(UserError, match=words):
        run_on_host(app, {})


@pytest.mark.parametrize("change, words", [({"rate": 16000}, "at 8000 Hz"), ({"channels": 2}, "2 channels")])
def test_sound_of_another_form_is_refused_with_the_way_out(tmp_path, change, words):
    file = tmp_path / "sound.wav"
    with wave.open(str(file), "wb") as out:
        out.setnchannels(change.get("channels", 1))
        out.setsampwidth(2)
        out.setframerate(8000)
        out.writeframes(bytes(4000))
    app = syn.App("app")
    mic = app.microphone("mic", rate=change.get("rate", 8000), window=64, file=file)
    app.job(app.pipeline("heard", mic).stage(peak).model(app.model(SINE)))
    with pytest.raises(UserError, match=f"{words}.*ffmpeg"):
        run_on_host(app, {})


def test_live_a_push_reaches_the_callbacks_and_their_errors_are_counted(sound):
    app = ears(sound)
    heard: list[float] = []
    enough = threading.Event()

    def take(done):
        heard.append(float(done.arrays[0].reshape(-1)[0]))
        if len(heard) == 10:
            enough.set()

    def fail(done):
        raise ValueError("mine")

    with syn.Runtime(app) as rt:
        rt.on("left", take)
        rt.on("right", fail)
        rt.enable("slow", False)
        rt.start()
        for k in range(10):
            assert rt.push("mic", np.full(64 if k == 0 else 48, 3000 * k, np.int16))
            while rt.counters()["jobs"]["left"]["started"] <= k:
                pass
        assert enough.wait(10)
        counts = rt.counters()
        assert counts["jobs"]["front"]["released"] == counts["jobs"]["left"]["started"] == 10
    assert rt.counters()["jobs"]["right"]["callback_errors"] == 10
    assert len(set(heard)) > 5


def test_live_unknown_names_are_refused(sound):
    with syn.Runtime(ears(sound)) as rt:
        with pytest.raises(UserError, match='no source "ear"; |no source "ear" '):
            rt.push("ear", np.zeros(4, np.int16))
        with pytest.raises(UserError, match="the array is float64"):
            rt.push("mic", np.zeros(4))


def test_results_are_told_once_while_others_run_the_kernel(tmp_path):
    """Two threads run jobs of their own beside the one that runs by the clock: nobody's result or slot is lost."""
    app = syn.App("crowd")
    network = app.model(SINE, outputs=("y",))
    told: list[int] = []
    ticks = app.frames("mic", (1, 1), "int8", every=1 * syn.ms)
    asked = app.pipeline("asked", app.frames("zeros", (1, 1), "int8")).model(network)
    heard = app.pipeline("heard", ticks).model(network)
    app.job(heard, on=ticks, deadline=5 * syn.ms, priority=syn.REALTIME, queue="oldest", depth=4)
    app.job(asked)
    zero = np.zeros((1, 1), np.int8)
    ending = threading.Event()
    with syn.Runtime(app) as rt:
        rt.on("heard", lambda done: told.append(done.release_us))
        rt.start()

        def ask() -> None:
            while not ending.is_set():
                try:
                    rt.run("asked", zero, timeout=20)
                except syn.KernelError as error:
                    assert error.status == Status.BUSY  # all slots are taken for the moment

        askers = [threading.Thread(target=ask) for _ in range(2)]
        for one in askers:
            one.start()
        for _ in range(400):
            rt.push("mic", zero)
            time.sleep(0.0005)
        ending.set()
        for one in askers:
            one.join()
        until = time.monotonic() + 20
        while time.monotonic() < until and len(told) < rt.counters()["jobs"]["heard"]["started"]:
            time.sleep(0.01)
        counts = rt.counters()["jobs"]["heard"]
        assert counts["started"] > 0 and len(told) == counts["started"]
        assert told == sorted(told)
        assert all(int(job.state) == 0 for job in rt.kernel.jobs)


def test_what_a_source_gives_at_the_tick_of_a_release_is_what_its_job_reads(tmp_path):
    """A source and a job with one period and one phase, beside one that keeps the board busy: each job reads what came with it."""
    app = syn.App("app")
    (tmp_path / "x.raw").write_bytes(bytes(k * 37 % 251 for k in range(600)))
    (tmp_path / "y.raw").write_bytes(bytes(100))
    x = app.frames("x", (1, 1), "int8", file=tmp_path / "x.raw", every=2003)
    y = app.frames("y", (1, 1), "int8", file=tmp_path / "y.raw", every=7 * syn.ms)
    model = app.model(SINE)
    app.job(app.pipeline("same", x).model(model), every=2003, priority=syn.REALTIME)
    app.job(app.pipeline("busy", y).model(app.model(SINE, name="other")), every=1499, queue="coalesce")
    host = run_on_host(app, {})
    board = run_on_board(build_firmware(app, "mps2-an521"), {})
    for report in (host, board):
        same = [r for r in report.results if r.pipeline == "same"]
        assert len(same) == 600
    mine = [[r.arrays[0].tolist() for r in report.results if r.pipeline == "same"] for report in (host, board)]
    assert mine[0] == mine[1]


@syn.stage
def stuck(mic: Shaped[Array[i16], 64], out: Shaped[Array[i8], 1, 1]) -> Status:
    """Never comes back from sound that is loud."""
    n = i32(mic[0])
    while n > 20000 or n < -20000:
        n = n * 1
    out[0, 0] = 0
    return Status.OK


@pytest.mark.parametrize("board", [None, "mps2-an521"])
def test_a_job_that_its_watchdog_ended_is_a_failure_and_no_result(sound, board):
    app = syn.App("stuck", watchdog=30 * syn.ms)
    mic = app.microphone("mic", rate=8000, window=64, hop=64, file=sound)
    app.job(app.pipeline("ear", mic).stage(stuck).model(app.model(SINE)))
    report = run_on_board(build_firmware(app, board), {}) if board else run_on_host(app, {})
    [row] = report.summary
    assert 0 < len(report.failures) and 0 < len(report.results) and row.released == len(report.failures) + len(report.results) + row.dropped
    assert all(str(f).startswith("stage stuck took longer than the 30 ms that it may") and f.line for f in report.failures)
