"""A build whose polls run on: the same results in fewer polls, and only where nothing could come between two steps."""

import pytest
from apps import PipelineOf, app_stage, model, tables
from kernels import APP_STAGE, BEST_EFFORT, BOAST, FAIL, HALVE, NORMAL, OPTIONS, PASS, REALTIME, ROOTS, World
from synapticos.kernel.region import REGION_CONTAINERS, REGION_TABLES, Regions
from synapticos.kernel.sched import Poll
from synapticos.kernel.status import Status
from synapticos.lang import u8

FIRMWARE = dict(RUN_ON=1, DEADLINES=0, LATE_POLICIES=0, HOST_STAGES=0)
DATA = bytes(range(48))


@pytest.fixture
def on(make):
    return lambda **params: World(make(*ROOTS, **{**OPTIONS, **FIRMWARE, **params}))


def piped(w, pre=(PASS, PASS), post=(PASS,)):
    w.hand_model()
    return w.pipeline(w.model(), pre, post)


@pytest.mark.parametrize("lone", [0, 1])
def test_one_poll_runs_a_whole_job(on, lone):
    w = on(ONE_THREAD=lone)
    pipe = piped(w)
    for priority in (BEST_EFFORT, NORMAL, REALTIME):
        job = w.submit(pipe, DATA, priority)
        assert w.run() == [(Poll.RAN, job)]
        assert w.result(job) == bytes(127 if i == sum(DATA) % 10 else 0 for i in range(10))
    assert w.kernel.stats.done == 3 and int(w.kernel.inside) == 0 and w.kernel.current == 0


def test_a_preemptible_job_still_gives_way_between_its_steps(on):
    w = on()
    pipe = piped(w)
    w.frames_for(pipe)
    low = w.submit(pipe, DATA, BEST_EFFORT, preemptible=True)
    assert w("kernel_poll") == (Poll.RAN, low)
    high = w.submit(pipe, DATA, REALTIME, preemptible=True)
    assert w("kernel_poll") == (Poll.RAN, high)
    assert w("infer_state", high) == 4 and w.kernel.stats.preemptions == 1
    assert w.run() == [(Poll.RAN, low)] * 3
    assert w.result(low) == w.result(high)


@pytest.mark.parametrize(("stage", "status"), [(FAIL, Status.IO), (BOAST, Status.FBIG)])
def test_an_error_in_the_middle_names_its_stage(on, stage, status):
    w = on()
    job = w.submit(piped(w, (PASS, HALVE, stage), ()), DATA, NORMAL)
    assert w.run() == [(Poll.RAN, job)]
    assert w("infer_error_at", job) == (2, 0) and w("infer_wait", job, 0) == status


def test_builds_that_look_between_steps_do_not_run_on(on):
    w = on(DEADLINES=1)
    job = w.submit(piped(w), DATA, NORMAL)
    assert w.run() == [(Poll.RAN, job)] * 4


# Stages in a row keep their call where pipelines are planned and nobody takes times, as in firmware.


def row_of(number):
    """A stage as an app's tables name it."""
    return app_stage(number - APP_STAGE, 64)


def planned(make, stages, **params):
    w = World(make(*ROOTS, **{**OPTIONS, **FIRMWARE, "COMPOSING": 0, "PROFILING": 0, **params}))
    app = tables([(b"any bytes will do for the stub", 0)], [PipelineOf(stages, result=64, job=dict(priority=2))])
    for region, data in zip((REGION_TABLES, REGION_CONTAINERS), app, strict=True):
        w.e(Regions.set, w.kernel.regions, int(region), w.keep(w.e.array(u8, data)), len(data))
    assert w("app_boot") == Status.OK
    return w


@pytest.mark.parametrize("stages", [(PASS,), (PASS, PASS, PASS), (PASS, HALVE), (HALVE, HALVE, PASS)])
def test_a_row_of_stages_leaves_what_they_leave_one_by_one(make, stages):
    """Before the model, also where it fills up what they left short, and behind it."""
    found = []
    for on in (0, 1):
        w = planned(make, [*map(row_of, stages), model(0), *map(row_of, stages)], RUN_ON=on)
        for _ in range(2):  # the second time over what the first has left
            job = w.submit(w("app_pipeline", 0), DATA)
            assert w.run() == [(Poll.RAN, job)] * (1 if on else 2 * len(stages) + 1)
            found.append((w.result(job), int(w.kernel.frames[2].used)))
    assert len(set(found)) == 1


@pytest.mark.parametrize(("stage", "status"), [(FAIL, Status.IO), (BOAST, Status.FBIG)])
@pytest.mark.parametrize("at", [0, 1, 2])
def test_an_error_in_a_row_names_its_stage_and_the_next_job_runs(make, at, stage, status):
    stages = [PASS, PASS, PASS]
    stages[at] = stage
    w = planned(make, [*map(row_of, stages), model(0)])
    for _ in range(2):
        job = w.submit(w("app_pipeline", 0), DATA)
        assert w.run() == [(Poll.RAN, job)]
        assert w("infer_error_at", job) == (at, 0) and w("infer_wait", job, 0) == status
        w("infer_detach", job)
    assert w.kernel.frames[2].owner == 0 and w.kernel.unfinished == 0
