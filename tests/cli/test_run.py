"""`syn run` of an app that a clock runs: how long, what it says at the end, and what Ctrl-C leaves."""

import json
from pathlib import Path

import pytest
from synapticos.app.load import load_app
from synapticos.host.execute import run_on_board
from synapticos.host.firmware import build_firmware

SINE = Path(__file__).parents[2] / "examples" / "hello_world" / "sine.tflite"
APP = f"""import synapticos as syn
from synapticos import Array, Shaped, console, i8

app = syn.App("beat")
x = app.frames("x", (1, 1), "int8", file="x.raw", every=5 * syn.ms)
sine = app.model({str(SINE)!r}, outputs=("y",))
p = app.pipeline("p", x).model(sine)
q = app.pipeline("q", x).model(sine)
app.job(p, on=x, deadline=4 * syn.ms)
app.job(q, every=20 * syn.ms)


@app.on(q)
def tell(y: Shaped[Array[i8], 1, 1]) -> None:
    console.print(f"q {{y[0, 0]}}")


@app.on(p)
def show(done):
    if done.arrays[0][0, 0] == -3:
        raise ValueError("low")
"""


@pytest.fixture
def app(tmp_path):
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "x.raw").write_bytes(bytes(range(0, 60, 10)))
    return tmp_path


def test_the_end_is_a_summary_and_results_are_there_for_who_asks(syn, app):
    status, out, err = syn("run", app)
    lines = out.splitlines()
    assert status == 0 and lines[0] == "beat, 0.03 s" and len(lines) == 5
    assert lines[1].split() == ["job", "released", "done", "missed", "dropped", "median,", "ms", "worst,", "ms", "deadline,", "ms"]
    assert [line.split() for line in lines[2:4]] == [["p", "6", "6", "0", "0", "0.000", "0.000", "4.000"], ["q", "2", "2", "0", "0", "0.000", "0.000", "-"]]
    assert lines[4] == "p: 1 times a handler raised, at last ValueError: low"
    assert err.count("q -3") == 1 and "host, native, virtual time: 8 results, digest" in err
    assert len(syn("run", app, "--results")[1].splitlines()) == 5 + 8


def test_it_runs_as_long_as_it_is_told(syn, app):
    for way in ((), ("--board", "mps2-an521")):
        status, out, _ = syn("run", app, "--for", "100ms", "--json", *way)
        made = json.loads(out)
        p, q = made["jobs"]
        assert status == 0 and made["seconds"] == 0.1 and not made["interrupted"] and len(made["results"]) == 25
        assert (p["job"], p["released"], p["done"], p["missed"], q["released"], q["deadline_us"]) == ("p", 20, 20, 0, 5, None)
        assert (p["worst_us"] > 0) == bool(way) and p["median_us"] <= p["worst_us"]


def test_what_firmware_leaves_out_is_said_and_refused_if_asked(syn, app, tmp_path):
    line = 'on "p": handler show is plain Python and stays on the host; give its parameters types to have it in firmware'
    status, _, err = syn("build", app, "--out", tmp_path / "out")
    assert status == 0 and line in err.splitlines()
    assert line in syn("run", app, "--board", "mps2-an521")[2].splitlines()
    status, out, err = syn("build", app, "--out", tmp_path / "out", "--strict")
    assert (status, out, err) == (2, "", f"syn: --strict: {line}\n")


@pytest.mark.parametrize("words, told", [(("--for", "10"), "a time like 1h"), (("--for", "100h"), "syn simulate plays more")])
def test_a_wrong_time_is_one_line(syn, app, words, told):
    status, out, err = syn("run", app, *words)
    assert status == 2 and not out and told in err and err.count("\n") == 1


def test_an_app_that_no_clock_runs_is_told_so(syn):
    status, _, err = syn("run", SINE.parent, "--for", "10s")
    assert status == 2 and "runs once over its sources' frames; say every= or on= in app.job, or leave --for out" in err


def test_ctrl_c_ends_it_with_the_summary(syn, app):
    """Of a run of hours: what there is by then, and 130."""
    text = APP.replace('raise ValueError("low")', "os.kill(os.getpid(), signal.SIGINT)").replace("import synapticos", "import os, signal\n\nimport synapticos", 1)
    (app / "app.py").write_text(text.replace("== -3", "== -34"))
    status, out, err = syn("run", app, "--for", "60h")
    assert status == 130 and out.startswith("beat, ") and ", interrupted\n" in out and err.endswith("syn: interrupted\n")
    assert out.splitlines()[2].split()[:4] == ["p", "2", "2", "0"]


def test_a_board_is_stopped_in_the_middle(app):
    """What it has written by then is told; what it would have counted at the end is not known."""
    looks = iter([False, True])
    report = run_on_board(build_firmware(load_app(app), "mps2-an521"), {}, span_us=3_600_000_000, stop=lambda: next(looks))
    p = report.summary[0]
    assert report.interrupted and 0 < p.released == p.done and report.span_us >= 5000 * (p.released - 1) and p.worst_us < 4000


def test_what_takes_long_is_announced(syn, app, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    first, second = (syn("run", app)[2] for _ in range(2))
    assert first.startswith(f"compiling the kernel for this machine; kept in {tmp_path / 'cache'}") and "compiling" not in second
