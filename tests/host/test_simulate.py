"""An app in virtual time: answers worked out by hand, the same events for the same seed, record and engine."""

from pathlib import Path

import numpy as np
import pytest
import synapticos as syn
from synapticos import toolchain
from synapticos.analysis.response import analyse
from synapticos.analysis.tasks import MS, SECOND, US, Interference, Step, Task, TaskSet
from synapticos.errors import UserError
from synapticos.host import simulate as host
from synapticos.host.simulate import Rate, Simulator, costs_of, parse_time, read_arrivals, seeded, streams, write_arrivals

SINE = Path(__file__).resolve().parents[2] / "examples" / "hello_world" / "sine.tflite"
LAYERS = 3  # of the sine
if not toolchain.find_all("host"):
    pytest.skip("no compiler for this machine", allow_module_level=True)


def make(fast=None, slow=None, every=10, jitter=0, irq=None):
    """A fast job by its source, and a slow one by the clock: (app, tasks, costs). Steps: three layers and a stage."""
    app = syn.App("pair")
    model = app.model(SINE)
    source = app.frames("angles", (1, 1), "int8", every=every * syn.ms)
    wave = app.pipeline("wave", source).model(model).dequantize()
    other = app.model(SINE, name="other")
    long = app.pipeline("long", app.frames("more", (1, 1), "int8")).model(other).dequantize()
    app.job(wave, **{"on": source, "priority": syn.REALTIME, "deadline": 5 * syn.ms, "jitter": jitter, **(fast or {})})
    app.job(long, **{"every": 40 * syn.ms, "priority": syn.BEST_EFFORT, **(slow or {})})
    tasks = (
        Task("wave", 2, tuple(Step(n * US) for n in (300, 200, 400, 100)), every * MS, 5 * MS, jitter * US),
        Task("long", 0, tuple(Step(n * MS) for n in (2, 6, 3, 1)), 40 * MS),
    )
    made = TaskSet(tasks, (Interference("irq", *irq),) if irq else (), name="pair")
    places = {name: [(0, i) for i in range(LAYERS)] + [(1, None)] for name in ("wave", "long")}
    return app, made, costs_of(made, places)


def simulate(until, *, seed=0, window=None, rates=(), engine="native", **options):
    app, tasks, costs = make(**options)
    simulator = Simulator(app, tasks, costs, engine=engine)
    return simulator.run(until, seeded(streams(simulator.image, tasks, rates), until, seed), seed=seed, window=window)


def figures(made, name):
    return next(job for job in made.jobs if job.name == name)


def test_two_jobs_by_hand():
    """Wave at 0, 10, 20, 30 ms takes 1 ms. Long waits at 0 for its source's first frame, which comes then too, runs 1-3, 3-9,
    9-12 with wave at 10 waiting till 12, then 13-14: 14 ms; wave's worst is 3 ms."""
    made = simulate(40 * MS, window=(0, 40 * MS))
    wave, long = figures(made, "wave"), figures(made, "long")
    assert (wave.released, wave.finished, wave.missed, wave.worst, wave.median) == (4, 4, 0, 3 * MS, 1 * MS)
    assert (long.released, long.finished, long.worst, long.deadline) == (1, 1, 14 * MS, 0)
    assert made.steps == 20 and made.load == pytest.approx((4 * 1 + 12) / 40) and made.preemptions == 1 and made.good
    first = next(span for span in made.spans if span.name == "long")
    assert [(s.begin_us, s.end_us) for s in first.steps] == [(1000, 3000), (3000, 9000), (9000, 12000), (13000, 14000)]
    assert [s.name for s in first.steps] == ["fully_connected 0", "fully_connected 1", "fully_connected 2", "dequantize"]
    assert [(s.release_us, s.deadline_us, s.outcome) for s in made.spans if s.name == "wave"][:2] == [(0, 5000, "done"), (10000, 15000, "done")]


def test_what_is_seen_stays_within_what_is_proved():
    options = dict(every=7, jitter=700, irq=(1 * MS, 20 * US))  # 7 and 40 ms: all distances come
    made, (_, tasks, _) = simulate(60 * SECOND, seed=4, **options), make(**options)
    for bound, job in zip(analyse(tasks), made.jobs, strict=True):
        assert bound.response is not None and 0.8 * bound.response < job.worst <= bound.response


def test_the_same_seed_makes_the_same_events_and_another_does_not():
    one, same, other = (simulate(5 * SECOND, jitter=500, seed=seed) for seed in (1, 1, 2))
    assert one.digest == same.digest != other.digest
    assert figures(one, "wave").released == figures(other, "wave").released == 500


@pytest.mark.parametrize("engine", ["checked", "cortex-m"])
def test_the_same_events_on_all_engines(engine):
    if engine == "cortex-m" and not toolchain.find_all("cortex-m33"):
        pytest.skip("no compiler for the emulated core")
    options = dict(jitter=500, irq=(3 * MS, 30 * US))
    assert simulate(150 * MS, engine=engine, **options).digest == simulate(150 * MS, **options).digest


def test_what_comes_may_be_given_in_pieces_or_at_once(monkeypatch):
    app, tasks, costs = make(jitter=4000, irq=(1 * MS, 20 * US))
    simulator = Simulator(app, tasks, costs)
    given = streams(simulator.image, tasks, [])
    pieces = list(seeded(given, 60 * SECOND, 7))
    assert len(pieces) > 2
    at_once = np.concatenate([piece for piece, _ in pieces])
    assert (np.diff(at_once["at"].astype(np.int64)) >= 0).all()
    assert simulator.run(60 * SECOND, at_once).digest == simulator.run(60 * SECOND, iter(pieces)).digest


def test_a_record_is_replayed_exactly(tmp_path):
    app, tasks, costs = make(jitter=900, irq=(7 * MS, 50 * US))
    simulator = Simulator(app, tasks, costs)
    given = streams(simulator.image, tasks, [])
    kept = []
    made = simulator.run(3 * SECOND, host.record_arrivals(seeded(given, 3 * SECOND, 5), kept))
    write_arrivals(tmp_path / "r.json", app.name, 3 * SECOND, given, kept)
    arrivals, until = read_arrivals(tmp_path / "r.json", simulator.image)
    again = simulator.run(until, arrivals)
    assert until == 3 * SECOND and again.digest == made.digest and again.jobs == made.jobs
    fewer = simulator.run(until, arrivals[:-20])
    assert fewer.digest != made.digest


def test_late_jobs_are_ended_skipped_or_dropped_as_declared():
    """Wave finds long's step of 6 ms in its way: what becomes of it is what the app says."""
    finish = figures(simulate(SECOND, every=4, fast=dict(deadline=2 * syn.ms, depth=3)), "wave")
    abort = simulate(SECOND, every=4, fast=dict(deadline=2 * syn.ms, late="abort", depth=3), window=(0, SECOND))
    skip = simulate(SECOND, every=4, fast=dict(deadline=2 * syn.ms, late="skip", depth=3), window=(0, SECOND))
    assert finish.missed > 0 and finish.expired == 0 and finish.finished == finish.released
    for made in (abort, skip):
        wave = figures(made, "wave")
        assert wave.expired > 0 and wave.finished + wave.expired >= wave.released - 1 and not made.good
        assert made.first_miss is not None and made.first_miss % (4 * MS) == 0
    assert {span.outcome for span in skip.spans if span.name == "wave"} >= {"done", "skipped"}
    dropped = simulate(SECOND, every=1, fast=dict(queue="newest"), irq=(1 * MS, 100 * US))
    assert figures(dropped, "wave").dropped > 0 and not dropped.good


def test_jobs_that_somebody_submits_need_a_rate():
    app = syn.App("alone")
    app.job(app.pipeline("wave", app.frames("angles", (1, 1), "int8")).model(app.model(SINE)).dequantize())
    tasks = TaskSet((Task("wave", 1, (Step(1 * MS),) * 4),), name="alone")
    simulator = Simulator(app, tasks, costs_of(tasks, {"wave": [(0, 0), (0, 1), (0, 2), (1, None)]}))
    with pytest.raises(UserError, match="--rate wave=MICROSECONDS"):
        streams(simulator.image, tasks, [])
    given = streams(simulator.image, tasks, [Rate.parse("wave=10000/500")])
    made = simulator.run(SECOND, seeded(given, SECOND, 0))
    assert figures(made, "wave").released == 100 and figures(made, "wave").worst == 4 * MS


@pytest.mark.parametrize(("text", "why"), [
    ("not json", "no record of arrivals"), ('{"for_ns": 5, "arrivals": [[1, "job", "nobody", 0]]}', 'job "nobody" is nothing of pair'),
    ('{"for_ns": 5, "arrivals": [[-1, "source", "angles", 1]]}', "nanoseconds from 0"), ('{"for_ns": 5, "arrivals": [[1, 2]]}', "no record"),
    ('{"for_ns": 5, "arrivals": [[Infinity, "source", "angles", 1]]}', "nanoseconds from 0"), ("[" * 100_000, "no record"), ("{}", "no record"),
    ('{"for_ns": 0, "arrivals": []}', "no time above 0"), ('{"for_ns": -5, "arrivals": []}', "no time above 0"),
    (f'{{"for_ns": {10**30}, "arrivals": []}}', "no time above 0"), ('{"for_ns": Infinity, "arrivals": []}', "no time above 0"),
    ('{"app": "zzz", "for_ns": 5, "arrivals": []}', 'is of app "zzz", not of "pair"'),
    ('{"for_ns": 5, "arrivals": [[1, "source", "angles", 100000]]}', "at most 1 come at once"),
])  # fmt: skip
def test_a_record_that_is_none_is_refused(tmp_path, text, why):
    app, tasks, costs = make()
    (tmp_path / "r.json").write_text(text.replace('{"for_ns"', '{"app": "pair", "for_ns"'))
    with pytest.raises(UserError, match=why):
        read_arrivals(tmp_path / "r.json", Simulator(app, tasks, costs).image)


def test_what_comes_too_often_is_named():
    with pytest.raises(UserError, match='"angles" may come .* give it less jitter'):
        simulate(SECOND, rates=[Rate.parse("angles=1/9999999999")])
    app = syn.App("alone")
    app.job(app.pipeline("wave", app.frames("angles", (1, 1), "int8")).model(app.model(SINE)).dequantize())
    tasks = TaskSet((Task("wave", 1, (Step(20 * MS),) * 4),), name="alone")
    simulator = Simulator(app, tasks, costs_of(tasks, {"wave": [(0, 0), (0, 1), (0, 2), (1, None)]}))
    with pytest.raises(UserError, match='"wave" comes more often within one step .* --rate wave=MICROSECONDS'):
        simulator.run(SECOND, seeded(streams(simulator.image, tasks, [Rate.parse("wave=1")]), SECOND, 0))


def test_a_job_that_is_due_too_often_is_named():
    with pytest.raises(UserError, match='"long" is due more often within one step .* a longer every='):
        simulate(SECOND, slow={"every": 1})


def test_an_interrupt_that_comes_all_the_time_is_named():
    _, tasks, _ = make(irq=(1, 1))
    with pytest.raises(UserError, match='"irq" comes every 0.001 us'):
        streams(Simulator(*make()).image, tasks, [])


def test_what_cannot_be_is_refused():
    app, tasks, costs = make()
    image = Simulator(app, tasks, costs).image
    with pytest.raises(UserError, match="--rate nobody: is no source and no job"):
        streams(image, tasks, [Rate.parse("nobody=5")])
    for text in ("wave", "wave=0", "wave=-3", "wave=1.5", "=4"):
        with pytest.raises(UserError, match="NAME=EVERY"):
            Rate.parse(text)
    for text in ("1", "h", "0s", "-1s", "1d", "99999999h"):
        with pytest.raises(UserError):
            parse_time(text, "--for")
    assert [parse_time(t, "") for t in ("1h", "1.5min", "90s", "200ms", "30us")] == [3600 * SECOND, 90 * SECOND, 90 * SECOND, 200 * MS, 30 * US]
    with pytest.raises(UserError, match="at most 2 s"):
        costs_of(TaskSet((Task("wave", 1, (Step(3 * SECOND),)),)), {"wave": [(0, 0)]})


def test_a_model_on_the_accelerator_leaves_the_processor_to_others():
    """Seen begins a layer 0-1, which is away till 9; long runs 1-7 and 7-10, so seen takes it up and begins the next 10-12; that
    is away till 16, and long ends 12-14; seen takes up and begins 16-18, is away till 19, and takes up by 20."""
    app = syn.App("side")
    seen = app.pipeline("seen", app.frames("angles", (1, 1), "int8", every=100 * syn.ms)).model(app.model(SINE, on="npu"))
    long = app.pipeline("long", app.frames("more", (1, 1), "int8")).model(app.model(SINE, name="other"))
    app.job(seen, every=100 * syn.ms, priority=syn.REALTIME, deadline=50 * syn.ms)
    app.job(long, every=100 * syn.ms, priority=syn.BEST_EFFORT)
    away = [(1, "cpu", 0), (8, "npu", 0), (2, "cpu", 1), (4, "npu", 1), (2, "cpu", 2), (1, "npu", 2), (1, "cpu", 2)]
    tasks = TaskSet((
        Task("seen", 2, tuple(Step(ms * MS, where) for ms, where, _ in away), 100 * MS, 50 * MS),
        Task("long", 0, tuple(Step(n * MS) for n in (6, 3, 2)), 100 * MS),
    ), name="side")  # fmt: skip
    places = {"seen": [(0, layer) for _, _, layer in away], "long": [(0, i) for i in range(LAYERS)]}
    simulator = Simulator(app, tasks, costs_of(tasks, places))
    made = simulator.run(100 * MS, seeded(streams(simulator.image, tasks, ()), 100 * MS, 0), window=(0, 100 * MS))
    seen, long = figures(made, "seen"), figures(made, "long")
    assert seen.finished == long.finished == 1 and made.good
    assert seen.worst == 20 * MS and long.worst == 14 * MS
    assert made.load == pytest.approx((6 + 11) / 100)


@syn.stage
def first(cam: syn.Shaped[syn.Array[syn.u8], 8, 8], out: syn.Shaped[syn.Array[syn.i8], 1, 1]) -> syn.Status:
    out[0, 0] = syn.i8(cam[0, 0] & 7)
    return syn.Status.OK


@syn.stage
def find(y: syn.Shaped[syn.Array[syn.i8], 1, 1], out: syn.Shaped[syn.Array[syn.f32], 8, 6]) -> tuple[syn.Status, syn.u32]:
    out[0, 0] = 0.0
    return syn.Status.OK, 1


@syn.stage
def corner(cam: syn.Shaped[syn.Array[syn.u8], 2, 2], out: syn.Shaped[syn.Array[syn.i8], 1, 1]) -> syn.Status:
    out[0, 0] = syn.i8(cam[0, 0] & 7)
    return syn.Status.OK


def plates(folder):
    app = syn.App("plates")
    cam = app.frames("cam", (1, 8, 8, 1), "uint8", file=folder / "cam.raw", every=20 * syn.ms)
    model = app.model(SINE, outputs=("y",))
    detector = app.pipeline("detector", cam).stage(first).model(model).stage(find)
    reader = app.pipeline("reader", cam).crop(2, 2).stage(corner).model(model)
    app.job(detector, on=cam, priority=syn.REALTIME)
    app.cascade("plates", detector, each=reader, most=3)
    return app


def test_several_boxes_of_a_detector_are_jobs_one_after_the_other(tmp_path):
    (tmp_path / "cam.raw").write_bytes(bytes(64))
    app = plates(tmp_path)
    one = {"detector": (1, 1, 1, 1, 1), "reader": (1, 1, 1, 1, 1)}
    tasks = TaskSet((
        Task("detector", 2, tuple(Step(n * MS) for n in one["detector"]), 20 * MS),
        Task("reader", 1, tuple(Step(n * MS) for n in one["reader"]) * 3, 20 * MS, jobs=3),
    ), name="plates")  # fmt: skip
    places = {"detector": [(0, None), *((1, i) for i in range(LAYERS)), (2, None)], "reader": [(0, None), (1, None), *((2, i) for i in range(LAYERS))]}
    simulator = Simulator(app, tasks, costs_of(tasks, places))
    made = simulator.run(100 * MS, seeded(streams(simulator.image, tasks, ()), 100 * MS, 0))
    assert figures(made, "reader").released == 3 * figures(made, "detector").finished - figures(made, "reader").dropped
    assert figures(made, "reader").worst >= 15 * MS  # the last of three
