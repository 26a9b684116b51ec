"""`syn check` and `syn calibrate`, as a person or a script calls them."""

import json
from pathlib import Path

import pytest

from synapticos import toolchain

TESTS = Path(__file__).parents[1]
THREE = TESTS / "analysis" / "three_jobs.py"
HELLO = TESTS.parent / "examples" / "hello_world" / "app.py"

pytestmark = [
    pytest.mark.slow,  # all together
    pytest.mark.skipif(
        not toolchain.find_all("cortex-m33") or not toolchain.find_all("host"), reason="needs compilers for Cortex-M and for this machine"
    ),
]


def test_jobs_in_time_end_with_0_and_the_page_says_why(syn):
    status, out, _ = syn("check", THREE, "--steps")
    assert status == 0, out
    for text in ("flash  [", "stack  [", "arena  [", "frame of REALTIME: control", "times: cortex-m33 at 20 MHz", "all deadlines are kept", "control: blocked ", "exact"):
        assert text in out, text


def test_a_slow_core_ends_with_1_and_the_way_out(syn):
    status, out, _ = syn("check", THREE, "--mhz", "16", "--json")
    check = json.loads(out)
    late = {job["job"]: job for job in check["jobs"] if job["verdict"] == "missed"}
    assert status == 1 and not check["good"] and "control" in late
    control = late["control"]
    assert control["response_ns"] > control["deadline_ns"] and control["slack_ns"] < 0 and control["blocked_by"].startswith(("watch", "spare"))
    assert control["would_do"]["deadline_ns"] == control["response_ns"]
    assert 0 < control["would_do"]["max_step_ns"] < control["blocking_ns"]


def test_more_load_than_a_core_has_is_a_clear_verdict(syn):
    status, out, _ = syn("check", THREE, "--mhz", "8")
    assert status == 1 and "% of the processor" in out and "no bound" in out and "not guaranteed" in out


def test_interference_counts(syn):
    _, quiet, _ = syn("check", THREE, "--json")
    _, noisy, _ = syn("check", THREE, "--interference", "tick=1000/20", "--json")
    for a, b in zip(json.loads(quiet)["jobs"], json.loads(noisy)["jobs"], strict=True):
        ticks = next(w["ns"] for w in b["waits_for"] if w["what"] == "tick")
        assert ticks == -(-b["response_ns"] // 1_000_000) * 20_000 and b["response_ns"] >= a["response_ns"] + ticks


def test_no_rate_is_said_and_no_deadline_is_no_failure(syn):
    status, out, _ = syn("check", HELLO)
    assert status == 0 and "no rate declared; give every=" in out and "no job has a deadline" in out


def test_a_profile_is_a_file(syn, tmp_path):
    status, _, err = syn("calibrate", HELLO, "--out", tmp_path)
    assert status == 2 and f"--out {tmp_path}: is a folder; give a file" in err and err.count("\n") == 1


def test_a_profile_takes_the_place_of_the_cycle_model(syn, tmp_path):
    file = tmp_path / "profile.json"
    status, _, err = syn("calibrate", HELLO, "--out", file)
    assert status == 0 and str(file) in err
    profile = json.loads(file.read_text())
    assert profile["syn_profile"] == 1 and len(profile["steps"]["wave"]) == 4 and profile["margin"] == 0.1
    status, out, _ = syn("check", HELLO, "--profile", file, "--json")
    check = json.loads(out)
    assert status == 0 and check["times_from"].startswith("profile of mps2-an521")
    for row, step in zip(profile["steps"]["wave"], check["jobs"][0]["steps"], strict=True):
        assert step["ns"] == pytest.approx(row["ns"] * 1.1, rel=0.01)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--waits", "4"], "--waits 4: wait states of code and of data"),
        (["--interference", "tick"], "NAME=EVERY/COST"),
        (["--interference", "tick=0/5"], "NAME=EVERY/COST"),
        (["--interference", "tick=9999999999/9000000"], "one takes less than 2,147,483 us"),
        (["--mhz", "0"], "--mhz 0"),
        (["--margin", "-1"], "--margin -1"),
        (["--board", "nowhere"], "nowhere"),
        (["--profile", "nowhere.json"], "nowhere.json: cannot be read"),
    ],
)
def test_bad_input_is_one_line_and_2(syn, arguments, said):
    status, out, err = syn("check", HELLO, *arguments)
    assert status == 2 and said in err and len(err.strip().splitlines()) == 1 and not out


@pytest.mark.parametrize("text", ["{}", "[]", '{"syn_profile": 2}', '{"syn_profile": 1, "app": "hello", "where": "x", "frames": 1, "steps": {"wave": [{"name": "a"}]}}', "x"])
def test_a_file_that_is_no_profile_is_refused(syn, tmp_path, text):
    (tmp_path / "p.json").write_text(text)
    status, _, err = syn("check", HELLO, "--profile", tmp_path / "p.json")
    assert status == 2 and "is no profile" in err


def test_the_profile_of_another_app_is_refused(syn, tmp_path):
    (tmp_path / "p.json").write_text('{"syn_profile": 1, "app": "other", "where": "x", "frames": 1, "steps": {}}')
    status, _, err = syn("check", HELLO, "--profile", tmp_path / "p.json")
    assert status == 2 and 'a profile of app "other"' in err


def test_a_run_at_the_same_clock_takes_no_longer_than_the_check_says(syn):
    """One meaning of --mhz: at 10 MHz the emulated board is half as fast as at 20, and within the bound of each step."""
    _, out, _ = syn("check", HELLO, "--mhz", "10", "--json")
    bound = sum(step["ns"] for step in json.loads(out)["jobs"][0]["steps"])
    took = {}
    for mhz in ("10", "20"):
        status, out, _ = syn("run", HELLO, "--board", "mps2-an521", "--mhz", mhz, "--json")
        assert status == 0
        took[mhz] = sum(stage["us"] for stage in json.loads(out)["stages"]["wave"]) * 1000
    assert took["10"] == pytest.approx(2 * took["20"], rel=0.05) and bound / 6 < took["10"] <= bound


@pytest.mark.parametrize("arguments", [["--mhz", "20"], ["--mhz", "20", "--board", "mps2-an521", "--emulator", "qemu"]])
def test_a_pace_is_of_the_own_emulator(syn, arguments):
    status, _, err = syn("run", HELLO, *arguments)
    assert status == 2 and "--mhz 20: is the pace of our own emulator" in err
