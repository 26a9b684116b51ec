"""An app whose stage goes wrong, by what its input says: its job fails with stage, layer and Python line; others run."""

import inspect
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import synapticos as syn
from synapticos import boards, toolchain
from synapticos.boards import qemu
from synapticos.app.image import compile_app
from synapticos.errors import KernelError, UserError
from synapticos.host.execute import run_on_board, run_on_host
from synapticos.host.firmware import build_firmware
from synapticos.kernel.status import Status
from synapticos.lang import Array, Shaped, i8, i32, local, u32, wrap

SINE = Path(__file__).parents[2] / "examples" / "hello_world" / "sine.tflite"
WILD, DIVIDE, SPIN, LONG, REFUSE = 101, 102, 103, 104, 105
FAR = 0x50000000  # bytes from RAM to where no board has anything


@syn.stage
def fragile(angle: Shaped[Array[i8], 1, 1], out: Shaped[Array[i8], 1, 1]) -> tuple[syn.Status, u32]:
    mode = angle[0, 0]
    out[0, 0] = mode
    at: u32 = 0
    if mode == WILD:
        at = FAR
        out[at, 0] = 1  # WILD
    if mode == DIVIDE:
        out[0, 0] = i8(7 // at)  # DIVIDE
    if mode == SPIN:
        while out[0, 0] != 1:  # SPIN
            out[0, 0] = 2
    if mode == LONG:
        return syn.Status.OK, 1000
    if mode == REFUSE:
        return syn.Status.IO, 0
    return syn.Status.OK, 1


@syn.stage
def overrunning(much: Shaped[Array[i8], 1, 1], out: Shaped[Array[i8], 1, 1]) -> tuple[syn.Status, u32]:
    """Writes four words for each of `much` past the end of an array on its stack, or past its start if that is negative."""
    words = local(u32, 6)
    n = i32(much[0, 0]) * 4
    for i in range(n):
        words[i] = wrap(u32, u32(i) * 2654435761)  # UP
    for i in range(-n):
        words[wrap(u32, 0 - u32(i))] = 0xA5A5A5A5  # DOWN
    out[0, 0] = i8(words[1] & 63)
    return syn.Status.OK, 1


def line_of(name):
    lines, first = inspect.getsourcelines(fragile.python)
    return next(first + i for i, line in enumerate(lines) if line.rstrip().endswith(f"# {name}"))


def make_app(modes, tmp_path, watchdog=0, of_job=None, of_stage=None):
    app = syn.App("frail", watchdog=watchdog)
    (tmp_path / "modes.bin").write_bytes(np.array(modes, np.int8).tobytes())
    (tmp_path / "good.bin").write_bytes(bytes(len(modes)))
    model = app.model(SINE, outputs=("y",))
    victim = app.pipeline("victim", app.frames("modes", (1, 1), "int8", file=tmp_path / "modes.bin")).stage(fragile, watchdog=of_stage).model(model)
    good = app.pipeline("good", app.frames("zeros", (1, 1), "int8", file=tmp_path / "good.bin")).model(model)
    app.job(victim, watchdog=of_job)
    app.job(good)
    return app


def run(where, app):
    if where == "checked":
        return run_on_host(app, {}, engine="checked")
    if where == "checks":
        return run_on_host(app, {}, checks=True)
    if where == "native":
        return run_on_host(app, {})
    if where == "cortex-m":
        return run_on_host(app, {}, engine="cortex-m")
    name, emulator = where.split("/")
    if not toolchain.find_all(boards.find(name).target):
        pytest.skip("no compiler for it")
    if emulator == "qemu" and (why := qemu.missing(boards.find(name))):
        pytest.skip(why)
    return run_on_board(build_firmware(app, name), {}, emulator=emulator)


EVERYWHERE = ["checked", "checks", "cortex-m", "mps2-an521/own", "mps2-an521/qemu", "lm3s6965evb/own", "lm3s6965evb/qemu"]


@pytest.mark.parametrize("where", EVERYWHERE)
def test_a_stage_that_goes_wrong_fails_its_job_and_no_other(where, tmp_path):
    report = run(where, make_app([0, WILD, 5, DIVIDE, LONG, REFUSE, 6], tmp_path))
    quiet = run("checked", make_app([0, 5, 6], tmp_path))
    mine = {(r.pipeline, r.frame): r.arrays[0].tobytes() for r in report.results}
    wanted = {(r.pipeline, r.frame): r.arrays[0].tobytes() for r in quiet.results}
    assert [f for p, f in mine if p == "good"] == list(range(7)) and len({mine["good", k] for k in range(7)}) == 1
    assert mine["good", 0] == wanted["good", 0]
    assert [mine["victim", k] for k in (0, 2, 6)] == [wanted["victim", k] for k in range(3)]
    assert [(f.pipeline, f.frame, f.stage, f.layer, f.step) for f in report.failures] == [
        ("victim", k, 0, None, "stage fragile") for k in (1, 3, 4, 5)
    ]
    wild, divide, long_, refuse = report.failures
    for failure, name in ((wild, "WILD"), (divide, "DIVIDE")):
        assert failure.status == Status.ACCES and "did what it may not" in failure.text
        assert Path(failure.file).name == "test_faults.py" and failure.line == line_of(name), failure
        assert f"test_faults.py:{failure.line}" in str(failure)
    assert long_.status in (Status.FBIG, Status.INVAL) and refuse.status == Status.IO


@pytest.mark.parametrize("where", [*EVERYWHERE, "native"])
def test_a_stage_that_never_ends_is_dropped_by_its_watchdog(where, tmp_path):
    limit = 1 if where == "checked" else 20
    report = run(where, make_app([SPIN, 5, SPIN], tmp_path, watchdog=limit * syn.ms))
    assert [(f.frame, f.status) for f in report.failures] == [(0, Status.TIMEDOUT), (2, Status.TIMEDOUT)]
    assert f"took longer than the {limit} ms that it may" in report.failures[0].text
    line = line_of("SPIN") if where not in ("checks", "native") else fragile.function.line  # there only the function is known
    assert report.failures[0].line in range(line, line + 2)
    assert len(report.results) == 4


@pytest.mark.parametrize("where", [w for w in EVERYWHERE if "/" in w])
def test_an_array_on_the_stack_that_is_overrun_by_any_length_fails_its_job_and_no_other(where, tmp_path):
    much = [1, -1, *range(2, 60, 3), 100, 127, -40, -128, 0]
    app = syn.App("frail")
    (tmp_path / "much.bin").write_bytes(np.array(much, np.int8).tobytes())
    (tmp_path / "good.bin").write_bytes(bytes(range(len(much))))
    model = app.model(SINE, outputs=("y",))
    app.job(app.pipeline("victim", app.frames("much", (1, 1), "int8", file=tmp_path / "much.bin")).stage(overrunning).model(model))
    app.job(app.pipeline("good", app.frames("x", (1, 1), "int8", file=tmp_path / "good.bin")).model(model))
    report = run(where, app)
    good = [r.arrays[0].tobytes() for r in report.results if r.pipeline == "good"]
    assert len(good) == len(much) and len(set(good)) > 10
    failed = {f.frame: f for f in report.failures}
    assert {k for k, n in enumerate(much) if n > 10} <= set(failed) and len(much) - 1 not in failed
    source, first = inspect.getsourcelines(overrunning.python)
    lines = {name: next(first + i for i, line in enumerate(source) if line.rstrip().endswith(f"# {name}")) for name in ("UP", "DOWN")}
    for k, failure in failed.items():
        assert failure.status == Status.ACCES and (failure.stage, failure.step) == (0, "stage overrunning"), failure
        assert Path(failure.file).name == "test_faults.py" and first <= failure.line < first + len(source), failure
    assert all(failed[k].line == lines["UP"] for k, n in enumerate(much) if n >= 100)


def test_a_runtime_goes_on_and_says_who_it_was(tmp_path):
    app = make_app([0], tmp_path)
    with syn.Runtime(app, checks=True) as rt:
        for _ in range(100):
            job = rt.submit("victim", np.array([[WILD]], np.int8))
            with pytest.raises(KernelError, match=rf"stage fragile did what it may not: a check failed, at .*test_faults.py:{line_of('WILD')}"):
                job.result()
            assert job.failure.stage == 0
        assert rt.run("victim", np.array([[5]], np.int8)).shape == (1, 1)
        assert rt.kernel.guards[0].faults == 100 and rt.kernel.stats.errors == 100


@pytest.mark.parametrize(
    "where, of_job, of_stage",
    [("checked", 1, None), ("native", 3000, 20), ("native", 20, None), ("cortex-m", 3000, 20), ("mps2-an521/own", 20, None),
     ("mps2-an521/qemu", 3000, 20), ("lm3s6965evb/own", 3000, 20), ("lm3s6965evb/qemu", 20, None)],
)  # fmt: skip
def test_a_job_s_or_stage_s_own_watchdog_is_the_one_that_counts(where, of_job, of_stage, tmp_path):
    own = {name: limit and limit * syn.ms for name, limit in (("of_job", of_job), ("of_stage", of_stage))}
    app = make_app([SPIN, 5], tmp_path, watchdog=60_000 * syn.ms, **own)
    image = compile_app(app)
    job = 60_000 * syn.ms if of_job is None else of_job * syn.ms
    assert [p.watchdogs for p in image.pipelines] == [[(of_stage or of_job) * syn.ms, job], [60_000 * syn.ms]]
    report = run(where, app)
    assert [(f.pipeline, f.frame, f.status) for f in report.failures] == [("victim", 0, Status.TIMEDOUT)]
    assert f"took longer than the {of_stage or of_job} ms that it may" in report.failures[0].text
    assert len(report.results) == 3


def test_one_job_may_have_no_watchdog_where_others_have(tmp_path):
    app = make_app([5], tmp_path, watchdog=20 * syn.ms, of_job=0)
    assert [p.watchdogs for p in compile_app(app).pipelines] == [[0, 0], [20_000]]
    with syn.Runtime(app) as rt:
        limits = [[stage.watchdog_us[0] for stage in list(p.stages)[: p.count]] for p in list(rt.kernel.pipelines.items)[:2]]
        assert limits == [[0, 0], [20_000]]


@pytest.mark.parametrize("same", [{}, {"of_job": 20 * syn.ms}, {"of_stage": 20 * syn.ms, "of_job": 20 * syn.ms}])
def test_watchdogs_that_say_what_the_app_says_cost_nothing(tmp_path, same):
    image, plain = (compile_app(make_app([5], tmp_path, watchdog=20 * syn.ms, **more)) for more in (same, {}))
    assert image.tables == plain.tables and image.guards == plain.guards == {"GUARD": 1, "WATCHDOG_US": 20_000, "WATCHDOGS": 0}


@pytest.mark.parametrize("wrong", [-1, 1.5, "20", True, 1 << 32])
def test_a_watchdog_that_is_no_time_is_refused(tmp_path, wrong):
    for name in ("of_job", "of_stage"):
        with pytest.raises(UserError, match=r'"victim": watchdog is whole microseconds'):
            make_app([5], tmp_path, **{name: wrong})


def test_nothing_can_stop_a_stage_of_the_host(tmp_path):
    @syn.host_stage
    def numpy_stage(x):
        return x

    app = syn.App("frail")
    with pytest.raises(UserError, match="numpy_stage is a stage of the host"):
        app.pipeline("p", app.frames("x", (1, 1), "int8")).stage(numpy_stage, watchdog=5 * syn.ms)


def test_a_division_by_zero_is_found_without_checks_too(tmp_path):
    with syn.Runtime(make_app([0], tmp_path)) as rt:
        with pytest.raises(KernelError, match="stage fragile did what it may not"):
            rt.run("victim", np.array([[DIVIDE]], np.int8))
        assert rt.run("victim", np.array([[5]], np.int8)).shape == (1, 1)


def test_qemu_needs_no_emulator_of_ours():
    if why := qemu.missing(boards.find("lm3s6965evb")):
        pytest.skip(why)
    if not toolchain.find_all("cortex-m3"):
        pytest.skip("no compiler for cortex-m3 is installed")
    app = SINE.parent / "app.py"
    code = (
        "import sys; sys.modules['unicorn'] = None\n"
        f"sys.argv = ['syn', 'run', {str(app)!r}, '--board', 'lm3s6965evb', '--emulator', 'qemu', '--json']\n"
        "from synapticos.cli import main\nsys.exit(main())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert len(json.loads(done.stdout)["results"]) == 32
