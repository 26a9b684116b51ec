"""A build whose polls run on: the same results in fewer polls, and only where nothing could come between two steps."""

import pytest
from kernels import BEST_EFFORT, BOAST, FAIL, HALVE, NORMAL, OPTIONS, PASS, REALTIME, ROOTS, World
from synapticos.kernel.sched import Poll
from synapticos.kernel.status import Status

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
