"""`syn simulate`: what it prints and writes, how it ends, and that bad input is one line."""

import json
import shutil
import xml.etree.ElementTree as xml
from pathlib import Path

import pytest
from synapticos import toolchain
from synapticos.analysis.tasks import MS, US, Step, Task, TaskSet

SINE = Path(__file__).parents[2] / "examples" / "hello_world" / "sine.tflite"
APP = """
import synapticos as syn
app = syn.App("pair")
angles = app.frames("angles", (1, 1), "int8", every=10 * syn.ms)
wave = app.pipeline("wave", angles).model(app.model("sine.tflite")).dequantize()
app.job(wave, on=angles, priority=syn.REALTIME, deadline=DEADLINE, jitter=500)
"""
pytestmark = pytest.mark.skipif(not toolchain.find_all("host"), reason="no compiler for this machine")


@pytest.fixture
def app(tmp_path):
    """An app and what `syn check --json` would say of its times."""
    shutil.copy(SINE, tmp_path)
    (tmp_path / "app.py").write_text(APP.replace("DEADLINE", "5 * syn.ms"))
    (tmp_path / "late.py").write_text(APP.replace("DEADLINE", "900"))
    tasks = TaskSet((Task("wave", 2, tuple(Step(n * US) for n in (300, 200, 400, 100)), 10 * MS, 5 * MS),), name="pair")
    places = [{"stage": 0, "layer": i} for i in range(3)] + [{"stage": 1, "layer": None}]
    (tmp_path / "check.json").write_text(json.dumps({"board": "mps2-an521", "tasks": tasks.to_json(), "jobs": [{"job": "wave", "steps": places}]}))
    return tmp_path


def test_an_hour_is_told_in_a_table_and_as_json(syn, app):
    status, out, err = syn("simulate", app / "app.py", "--check", app / "check.json")
    assert status == 0 and "pair on mps2-an521, 3600 s, load 10.0%, 0 pre-emptions" in out and "times real time" in err
    assert [line.split() for line in out.splitlines() if line.startswith("  wave")][0][:7] == ["wave", "360,000", "360,000", "0", "0", "0", "0"]
    status, out, _ = syn("simulate", app / "app.py", "--check", app / "check.json", "--for", "2s", "--json")
    told = json.loads(out)
    assert status == 0 and told["good"] and told["seconds"] == 2 and 1 * MS <= told["jobs"][0]["worst_ns"] < 1 * MS + US


def test_what_is_late_ends_with_1_and_is_drawn(syn, app):
    status, out, _ = syn(
        "simulate", app / "late.py", "--check", app / "check.json", "--for", "1s", "--draw", app / "t.svg", "--trace", app / "t.json"
    )  # fmt: skip
    assert status == 1 and "the first miss is of a job of wave, released at 0.000" in out
    assert "missed" in (app / "t.svg").read_text() and xml.parse(app / "t.svg")
    assert any(e["ph"] == "X" and e["name"] == "dequantize" for e in json.loads((app / "t.json").read_text())["traceEvents"])


def test_a_record_gives_the_same_events(syn, app):
    given = ("simulate", app / "app.py", "--check", app / "check.json", "--json")
    _, out, _ = syn(*given, "--for", "3s", "--seed", "8", "--record", app / "r.json")
    _, again, _ = syn(*given, "--replay", app / "r.json")
    one, two = json.loads(out), json.loads(again)
    assert one["digest"] == two["digest"] and one["jobs"] == two["jobs"] and two["seed"] is None


@pytest.mark.parametrize(("arguments", "why"), [
    (["--for", "1 day"], "a time like 1h"),
    (["--rate", "wave"], "NAME=EVERY"),
    (["--rate", "wave=1000"], "no source and no job that somebody submits"),
    (["--draw", "t.png"], "is written as SVG"),
    (["--trace", "no/folder/t.json"], "there is no folder"),
    (["--check", "check.json", "--mhz", "5"], "leave --mhz"),
    (["--replay", "check.json", "--seed", "3"], "leave --rate and --seed out"),
    (["--replay", "check.json"], "is no record of arrivals"),
    (["--check", "app.py"], "is not what syn check --json prints"),
    (["--for", "1s", "--from", "2s", "--draw", "t.svg"], "ends before"),
    (["--replay", "r.json", "--record", "r.json"], "leave one of them out"),
    (["--replay", "r.json", "--for", "1h"], "was recorded for 1 s; leave --for out"),
    (["--trace", "t.json", "--record", "t.json"], "is the name of the --trace too"),
    (["--check", "stage.json"], "is of an earlier pair"),
    (["--check", "layer.json"], "is of an earlier pair"),
    (["--check", "nojobs.json"], "is of an earlier pair"),
    (["--check", "list.json"], "is not what syn check --json prints"),
    (["--check", "deep.json"], "is not what syn check --json prints"),
    (["--check", "idle.json"], "idle_ns and clock_ns are whole nanoseconds"),
    (["--check", "urgent.json"], "its priority is 0, 1 or 2"),
    (["--check", "struck.json"], "one takes less than 2**31 ns"),
    (["--check", "board.json"], "there is no such board"),
    (["--for", "1s", "--draw", "dir.svg"], "dir.svg: cannot be written (is a directory); give another name"),
])  # fmt: skip
def test_bad_input_is_one_line(syn, app, monkeypatch, arguments, why):
    monkeypatch.chdir(app)
    if "--check" not in arguments:
        arguments = ["--check", "check.json", *arguments]
    (app / "r.json").write_text('{"app": "pair", "for_ns": 1000000000, "arrivals": [[0, "source", "angles", 1]]}')
    damaged(app)
    files = {path: path.read_bytes() for path in app.iterdir() if path.is_file()}
    status, out, err = syn("simulate", "app.py", *arguments)
    assert status == 2 and why in err and err.count("\n") == 1 and err.startswith("syn: ") and not out, err
    assert files == {path: path.read_bytes() for path in app.iterdir() if path.is_file()}, "something was written"


def damaged(app):
    """What `syn check --json` did not say of this app, in files named for what is wrong."""
    good = (app / "check.json").read_text()

    def write(name, change):
        given = json.loads(good)
        change(given)
        (app / f"{name}.json").write_text(json.dumps(given))

    write("stage", lambda g: g["jobs"][0]["steps"][3].update(stage=7))
    write("layer", lambda g: g["jobs"][0]["steps"][2].update(layer=3))
    write("list", lambda g: g["jobs"][0]["steps"][2].update(layer=[]))
    write("nojobs", lambda g: g.update(jobs=[]))
    write("idle", lambda g: g["tasks"].update(idle_ns=-5))
    write("urgent", lambda g: g["tasks"]["tasks"][0].update(priority="x"))
    write("struck", lambda g: g["tasks"].update(interference=[{"name": "irq", "period_ns": 10**12, "cost_ns": 1 << 32}]))
    write("board", lambda g: g.update(board=5))
    (app / "deep.json").write_text("[" * 100_000)
    (app / "dir.svg").mkdir()


def test_the_help_has_an_example(syn):
    status, out, _ = syn("simulate", "--help")
    assert status == 0 and "syn simulate app.py --for 1h" in out
