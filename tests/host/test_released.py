"""Bounds of jobs that the kernel itself releases: by the clock, by sources with jitter, through queues, and by a detector's boxes.

Random apps of one shape are played by the kernel in virtual time, each with several arrivals that are made to hurt, and no
response is longer than its bound.
"""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import synapticos as syn
from synapticos import toolchain
from synapticos.analysis.tasks import US, Step, Task, TaskSet
from synapticos.host.check import follow, from_stamp
from synapticos.host.simulate import Simulator, costs_of
from synapticos.host.virtual import arrivals_of, in_order
from synapticos.kernel import simulate as sim
from tests.host.test_simulate import corner, first

SINE = Path(syn.__file__).parent / "app" / "sine.tflite"
LAYERS = 3
pytestmark = pytest.mark.skipif(not toolchain.find_all("host"), reason="no compiler for this machine")


@syn.stage
def find(y: syn.Shaped[syn.Array[syn.i8], 1, 1], out: syn.Shaped[syn.Array[syn.f32], 3, 6]) -> tuple[syn.Status, syn.u32]:
    out[0, 0] = 0.0
    return syn.Status.OK, 1


def draw(seed):
    """(app, tasks, places): sound with a job of its own and one by the clock, pictures with a detector and a cascade."""
    rng = np.random.default_rng(seed)
    app = syn.App("drawn")
    model, other, third, fourth = (app.model(SINE, name=f"m{i}", outputs=("y",)) for i in range(4))
    load = rng.uniform(0.4, 0.95)
    periods = [int(rng.integers(4, 40)) * 500 for _ in range(3)]  # us: of the sound, by the clock, of the pictures
    jitter = [int(rng.integers(0, 2)) * int(rng.integers(0, p // 2)) for p in periods]
    sound = app.frames("sound", (1, 1), "int8", every=periods[0], keep=16)
    cam = app.frames("cam", (1, 8, 8, 1), "uint8", every=periods[2], keep=16)
    queue = [("oldest", "newest", "coalesce")[i] for i in rng.integers(0, 3, 4)]
    queue[3] = queue[3].replace("coalesce", "newest")
    depth = [1 if q == "coalesce" else int(rng.integers(1, 4)) for q in queue[:3]] + [3]  # so one kernel plays them all
    classes = [int(c) for c in rng.integers(0, 3, 4)]
    deadline = [int(rng.integers(1, 4)) * p for p in (*periods, periods[2])]
    heard = app.pipeline("heard", sound).model(model)
    clocked = app.pipeline("clocked", sound).model(other)
    detector = app.pipeline("detector", cam).stage(first).model(third).stage(find)
    reader = app.pipeline("reader", cam).crop(2, 2).stage(corner).model(fourth)
    how = [dict(priority=classes[i], deadline=deadline[i], queue=queue[i], depth=depth[i]) for i in range(4)]
    app.job(heard, on=sound, jitter=jitter[0], **how[0])
    app.job(clocked, every=periods[1], phase=int(rng.integers(0, periods[1])), **how[1])
    app.job(detector, on=cam, jitter=jitter[2], **how[2])
    app.cascade("boxes", detector, each=reader, most=3, **how[3])
    steps = {"heard": 3, "clocked": 3, "detector": 5, "reader": 5}
    share = rng.dirichlet([1] * 4) * load
    tasks = []
    every = {"heard": 0, "clocked": 1, "detector": 2, "reader": 2}
    for i, (name, n) in enumerate(steps.items()):
        jobs = 3 if name == "reader" else 1
        total = max(int(share[i] * periods[every[name]] * US / jobs), n * 1000)
        cuts = rng.dirichlet([1] * n) * total
        one = tuple(Step(max(int(c), 1)) for c in cuts)
        tasks.append(Task(
            name, classes[i], one * jobs, periods[every[name]] * US, deadline[i] * US, jitter[every[name]] * US if name in ("heard", "detector") else 0,
            jobs=jobs,
        ))  # fmt: skip
    places = {"heard": [(0, i) for i in range(LAYERS)], "clocked": [(0, i) for i in range(LAYERS)]}
    places["detector"] = [(0, None), *((1, i) for i in range(LAYERS)), (2, None)]
    places["reader"] = [(0, None), (1, None), *((2, i) for i in range(LAYERS))]
    return app, TaskSet(tuple(tasks), (), clock_ns=2000, name="drawn"), places


def pushes(simulator, app, rng, until, how):
    """When the sources give: evenly, each as late as it may be at random, or the first late and all others not."""
    out = []
    for feed in simulator.image.feeds:
        every = feed.source.every * US
        jitter = max(job.jitter for job in app.jobs if job.on is feed.source) * US
        begin = int(rng.integers(0, every)) if how else 0
        times = begin + every * np.arange(until // every + 1, dtype=np.int64)
        if how == 1:
            times = np.sort(times + rng.integers(0, jitter + 1, len(times)))
        elif how == 2:
            times[:1] += jitter
        out.append(arrivals_of(times, until, sim.Comes.PUSH, target=feed.number, value=feed.source.hop_bytes))
    return in_order(out)


def play(seed, kernels):
    """(name, observed, bound, deadline, missed) of each job of a drawn app that has a bound."""
    app, tasks, places = draw(seed)
    made, responses = follow(app, tasks, [0] * 4)
    responses = [from_stamp(job, r) for job, r in zip(app.jobs, responses, strict=True)]
    simulator = Simulator(app, tasks, costs_of(made, places))
    if kernels:
        simulator.close()
        simulator.kernel = kernels[0]
    kernels[:] = [simulator.kernel]
    rng = np.random.default_rng(seed)
    until = 40 * max(task.period_ns for task in tasks.tasks)
    worst, missed = {task.name: 0 for task in tasks.tasks}, set()
    for attempt in range(6):
        told = simulator.run(until, pushes(simulator, app, rng, until, attempt % 3))
        for job in told.jobs:
            worst[job.name] = max(worst[job.name], job.worst)
            missed |= {job.name} if job.missed or job.dropped or job.coalesced else set()
    return [SimpleNamespace(name=r.name, seen=worst[r.name], bound=r.response, deadline=r.deadline, missed=r.name in missed) for r in responses]


def test_no_response_through_queues_feeds_and_cascades_is_longer_than_its_bound():
    kernels: list = []
    jobs = [job for seed in range(60) for job in play(seed, kernels)]
    bounded = [job for job in jobs if job.bound is not None]
    over = [job for job in bounded if job.seen > job.bound]
    assert not over, over[:3]
    tight = float(np.median([job.seen / job.bound for job in bounded]))
    refused = [job for job in jobs if (job.bound is None or job.bound > job.deadline) and not job.missed]
    assert len(bounded) > 200 and tight > 0.7 and len(refused) < 0.15 * len(jobs)  # docs/timing.md has the figures
