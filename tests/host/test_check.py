"""Memory as planned is memory as used, and FC-05: a slow network does not stop the device, and that is known beforehand."""

from pathlib import Path

import numpy as np
import pytest

import synapticos as syn
from synapticos import i32
from synapticos import boards, toolchain
from synapticos.analysis.cycles import timing
from synapticos.analysis.response import analyse
from synapticos.analysis.tasks import MS, US, Step, Task, TaskSet
from synapticos.host.check import arena_parts, check_app
from synapticos.host.runtime import Runtime

ROOT = Path(__file__).parents[2]
SINE = Path(syn.__file__).parent / "app" / "sine.tflite"
pytestmark = [
    pytest.mark.slow,  # all together
    pytest.mark.skipif(
        not toolchain.find_all("cortex-m33") or not toolchain.find_all("host"), reason="needs compilers for Cortex-M and for this machine"
    ),
]


def mixed_app():
    """Four pipelines of different sizes in three classes."""
    app = syn.App("mixed")
    angles = app.frames("angles", (1, 1), "int8")
    for name, priority in (("a", syn.REALTIME), ("b", syn.NORMAL), ("c", syn.NORMAL), ("d", syn.BEST_EFFORT)):
        pipeline = app.pipeline(name, angles).model(app.model(SINE, name=f"m{name}"))
        if name in "bd":
            pipeline = pipeline.dequantize()
        app.job(pipeline, priority=priority, every=10 * syn.ms, deadline=9 * syn.ms)
    return app


def test_a_stress_uses_what_was_planned_and_no_more():
    """Hundreds of jobs in all orders, half-done ones among them: the high-water marks of the frames are the plan."""
    app = mixed_app()
    rng = np.random.default_rng(0)
    with Runtime(app) as runtime:
        image, kernel = runtime.image, runtime.kernel
        names = list(app.pipelines.values())
        for _ in range(100):
            running = []
            for k in rng.permutation(len(names))[: image.slots]:
                running.append(runtime.submit(names[k], np.array([[rng.integers(-128, 128)]], np.int8)))
            for job in running:
                job.result()
        used = [int(frame.used) for frame in kernel.frames][: len(image.frames)]
        planned = image.frames
        arena = sum(size for _, size in arena_parts(image))
    assert arena == image.arena_bytes
    assert used == planned
    measured = image.arena_bytes - sum(planned) + sum(used)
    assert measured <= image.arena_bytes <= 1.05 * measured


def test_a_budget_that_is_too_small_is_a_verdict_and_names_the_culprit():
    app = mixed_app()
    app.ram, app.stack = 100, 200
    check = check_app(app, "mps2-an521", timing(boards.find("mps2-an521")))
    assert not check.good and len(check.memory.shortages) == 2
    assert "the arena needs" in check.memory.shortages[0] and "most is alive in pipeline" in check.memory.shortages[0]
    assert "the stack may need" in check.memory.shortages[1]


def test_a_control_job_starts_within_the_longest_layer_and_a_constant_that_is_stated():
    """FC-05: forty layers of unequal length, the longest 15 ms, ten seconds in all; a control job every 20 ms with 1 ms of work."""
    lengths = [15 * MS, *(int(n) * US for n in np.random.default_rng(5).integers(1000, 15000, 39))]
    rest = 10_000 * MS - sum(lengths)
    rounds = -(-rest // sum(lengths))
    vision = tuple(Step(ns, layer=i) for i, ns in enumerate(lengths * (1 + rounds)))
    constant = 30 * US
    tasks = TaskSet(
        (Task("control", 2, (Step(1 * MS),), 20 * MS, 20 * MS), Task("vision", 0, vision, 60_000 * MS)), idle_ns=constant
    )
    control, slow = analyse(tasks)
    assert control.start == 15 * MS and control.response == 16 * MS and control.meets
    assert control.blocking == 15 * MS and control.culprit.startswith("vision")
    assert slow.response is not None and slow.response < 60_000 * MS


def test_declared_cost_and_interference_are_in_the_proof():
    @syn.stage
    def until(x: syn.Shaped[syn.Array[syn.i8], 1], out: syn.Shaped[syn.Array[syn.i8], 1]) -> syn.Status:
        n: syn.u32 = 0
        while n < 100 and i32(x[0]) > i32(n):
            n += 1
        out[0] = syn.i8(n)
        return syn.Status.OK

    def make(cost):
        app = syn.App("declared")
        source = app.frames("x", (1, 1), "int8")
        app.job(app.pipeline("p", source).stage(until, cost_us=cost).model(app.model(SINE)), every=20 * syn.ms, deadline=15 * syn.ms)
        app.interference("radio", every=10 * syn.ms, cost=500 * syn.us)
        return app

    board = boards.find("mps2-an521")
    open_ended = check_app(make(0), board.name, timing(board))
    assert open_ended.bounds["p"][0].how == "measured" and not open_ended.good
    closed = check_app(make(4000), board.name, timing(board))
    assert closed.bounds["p"][0].how == "declared" and closed.bounds["p"][0].ns == 4 * MS and closed.good
    assert ("radio", 500 * US) in closed.responses[0].others
    with pytest.raises(syn.UserError, match="more than its declared cost of 1 us"):
        check_app(make(1), board.name, timing(board))


def test_an_end_by_the_deadline_is_paid_for_by_the_release():
    """It comes in anybody's poll, so no step of its own job has the look for what waits that follows."""
    from types import SimpleNamespace

    from synapticos.host.check import release_costs
    from synapticos.host.measure import Costed, Events

    def cost(**job):
        app = SimpleNamespace(jobs=[SimpleNamespace(**dict(released=True, every=0, cascade=None, late="finish") | job)])
        one = Costed(SimpleNamespace(ns=lambda cycles: cycles), {}, 1000, 0, 0, 0, 1, 0, jobs=[Events(due=1, begun=20, late=300)], stirred=50_000)  # type: ignore[arg-type]
        return release_costs(app, one)[0]

    assert cost() == 320 and cost(every=9) == 321
    assert cost(late="abort") == cost(late="skip") == 50_320
    assert cost(released=False, late="abort") == cost(released=False) > 1320  # posted, and nothing of it waits


def test_a_step_that_its_watchdog_ends_keeps_no_deadline():
    def checked(watchdog):
        app = syn.App("watched", watchdog=watchdog)
        app.job(app.pipeline("a", app.frames("angles", (1, 1), "int8")).model(app.model(SINE)), every=10 * syn.ms, deadline=9 * syn.ms)
        return check_app(app, "mps2-an521", timing(boards.find("mps2-an521")))

    ended, kept = checked(10), checked(10_000)
    assert not ended.good and ended.verdict(ended.responses[0]) == "ended" and any("its watchdog ends the job after 10 us" in note for note in ended.notes)
    assert kept.good and kept.notes == []
    assert [b.ns for b in ended.bounds["a"]] == [b.ns for b in kept.bounds["a"]]  # it was measured without


def test_jobs_that_others_release_are_as_late_as_these():
    """A detector, what looks at its boxes, and what reads a front end: jitter is the parent's worst response, raised until nothing changes."""
    from types import SimpleNamespace

    from synapticos.analysis.tasks import Interference
    from synapticos.host.check import Data, follow

    detector, each, front, reader = (object() for _ in range(4))
    plain = SimpleNamespace(cascade=None, on=None)
    app = SimpleNamespace(
        jobs=[
            SimpleNamespace(pipeline=detector, **vars(plain)),
            SimpleNamespace(pipeline=each, **vars(plain) | {"cascade": SimpleNamespace(detector=detector, most=3)}),
            SimpleNamespace(pipeline=front, **vars(plain)),
            SimpleNamespace(pipeline=reader, **vars(plain) | {"on": SimpleNamespace(pipeline=front)}),
        ]
    )
    tasks = TaskSet(
        (
            Task("detector", 1, (Step(4 * MS),), 40 * MS, 30 * MS),
            Task("each", 0, (Step(2 * MS),) * 3, 40 * MS, 60 * MS),
            Task("front", 2, (Step(1 * MS),), 10 * MS),
            Task("reader", 0, (Step(1 * MS),), 10 * MS, 40 * MS),
        )
    )
    data = [Data("features", 500, 10 * MS, 0, 2)]
    made, responses = follow(app, tasks, [1000, 3000, 1000, 1000], data)
    by_name = {r.name: r for r in responses}
    assert made.task("each").jitter_ns == by_name["detector"].response
    assert made.task("reader").jitter_ns == by_name["front"].response
    struck = {i.name: i for i in made.interference}
    assert struck["releases of each"] == Interference("releases of each", 40 * MS, 3000, by_name["detector"].response)
    assert struck["data of features"] == Interference("data of features", 10 * MS, 500, by_name["front"].response)
    assert analyse(made) == responses and all(r.response is not None for r in responses)
    full = TaskSet((Task("detector", 1, (Step(50 * MS),), 40 * MS), *tasks.tasks[1:]))
    made, responses = follow(app, full, [1000, 3000, 1000, 1000], data)
    assert made.task("each").period_ns == 0 and responses[1].response is None
    struck = {i.name: i for i in made.interference}
    assert struck["releases of each"].period_ns == 50 * MS  # the detector's jobs run one after the other
