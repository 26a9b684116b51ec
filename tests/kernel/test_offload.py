"""An accelerator that works beside the processor: overlap, order, residency, errors, aborts, on all engines."""

from __future__ import annotations

import pytest
from kernels import BEST_EFFORT, NORMAL, REALTIME
from offloading import CPU, OPTIONS, ROOTS, Offloaded
from synapticos.kernel.job import HostWork, JobState
from synapticos.kernel.sched import Poll
from synapticos.kernel.status import Status

WAITING, SUSPENDED, RUNNING, CANCELLED, ERROR = (JobState.WAITING, JobState.SUSPENDED, JobState.RUNNING, JobState.CANCELLED, JobState.ERROR)
AWAY, BACK, LINE, NONE = HostWork.AWAY, HostWork.BACK, HostWork.LINE, HostWork.NONE
STEPS = 3  # of each network


@pytest.fixture
def offloaded(make):
    """`offloaded(dict(net=1), dict(net=2, priority=2), RESIDENT_MODELS=2)`: an app with a pipeline for each."""

    def made(*pipelines, **options):
        return Offloaded(make(*ROOTS, **{**OPTIONS, **options}), list(pipelines))

    return made


def low_and_high(offloaded, **options):
    """A job of the lowest class, one on the processor, one of the highest: all of other classes."""
    return offloaded(dict(net=1, priority=BEST_EFFORT), dict(net=2, priority=REALTIME), dict(net=3, on=CPU, priority=NORMAL), **options)


def poll_until(w, job, state, most=50):
    for _ in range(most):
        if w.slot_state(job) == state:
            return
        if w("kernel_poll")[0] != Poll.RAN:
            w.pass_time(10)
        w.check()
    raise AssertionError(f"{w.slot_state(job)}, not {state}")


def loading(w):
    return int(w.kernel.npu.work) == 1


# Overlap


def test_the_accelerator_gives_the_processors_bytes(offloaded):
    w = offloaded(dict(net=1), dict(net=1, on=CPU))
    for seed in range(3):
        assert w.alone(0, seed) == w.alone(1, seed)


def test_the_processor_works_while_the_accelerator_does(offloaded):
    w = low_and_high(offloaded)
    away = w.go(0)
    assert w("kernel_poll") == (Poll.RAN, away) and w.slot_state(away) == (WAITING, AWAY)
    beside = w.go(2)
    trace = w.run()  # no time passes, so all of this is while the accelerator takes in the model
    assert trace == [(Poll.RAN, beside)] * STEPS and w.slot_state(away) == (WAITING, AWAY)
    assert w("infer_wait", beside, 0) == Status.OK and w("kernel_poll") == (Poll.IDLE, 0)
    assert [job for _, job in w.finish()] == [away] * (STEPS + 1)  # begin each layer, take up the last
    assert w("infer_wait", away, 0) == Status.OK


def test_who_wants_the_accelerator_waits_without_holding_the_processor(offloaded):
    w = low_and_high(offloaded)
    first = w.go(0)
    w("kernel_poll")
    second, third = w.go(1), w.go(2)
    assert [job for _, job in w.run()] == [second, *[third] * STEPS]
    assert w.slot_state(first) == (WAITING, AWAY) and w.slot_state(second) == (WAITING, LINE)
    w.check()
    w.finish()
    assert [w("infer_wait", j, 0) for j in (first, second, third)] == [Status.OK] * 3


def test_the_most_urgent_in_line_gets_the_accelerator_next(offloaded):
    w = offloaded(dict(net=1, priority=BEST_EFFORT), dict(net=1, priority=NORMAL), dict(net=1, priority=REALTIME))
    low = w.go(0)
    poll_until(w, low, (WAITING, AWAY))
    middle, high = w.go(1), w.go(2)
    w.run()
    ends = []
    for _ in range(3):
        while not any(w("infer_wait", j, 0) == Status.OK for j in (low, middle, high) if j not in ends):
            w.pass_time(10)
        ends += [j for j in (low, middle, high) if j not in ends and w("infer_wait", j, 0) == Status.OK]
    assert ends == [high, middle, low]


def test_a_job_that_is_not_preemptible_keeps_it_to_the_end_of_its_model(offloaded):
    w = offloaded(dict(net=1, priority=BEST_EFFORT, preemptible=False), dict(net=2, priority=REALTIME))
    low = w.go(0)
    w("kernel_poll")
    high = w.go(1)
    while w("infer_wait", low, 0) == Status.AGAIN:
        assert w.slot_state(high)[1] in (NONE, LINE)
        w.pass_time(10)
        w.check()
    w.finish()
    assert w.kernel.npu.holds.swaps == 1
    assert w("infer_wait", high, 0) == Status.OK


# Residency


def loads(w, number):
    status, count, ticks = w("model_loads", int(w.kernel.models.items[number].generation) << 8 | number + 1)
    assert status == Status.OK
    return count, ticks


def test_a_model_is_taken_in_once_and_stays_until_another_takes_its_place(offloaded):
    w = offloaded(dict(net=1), dict(net=2))
    for _ in range(2):
        w.alone(0, 1)
    assert loads(w, 0)[0] == 1 and loads(w, 1) == (0, 0) and w.kernel.npu.holds.swaps == 0
    w.alone(1, 1)
    w.alone(0, 1)
    assert loads(w, 0)[0] == 2 and loads(w, 1)[0] == 1 and w.kernel.npu.holds.swaps == 2


def test_with_room_for_both_each_is_taken_in_once(offloaded):
    w = offloaded(dict(net=1), dict(net=2), RESIDENT_MODELS=2)
    for number in (0, 1, 0, 1):
        w.alone(number, 1)
    assert [loads(w, i)[0] for i in (0, 1)] == [1, 1] and w.kernel.npu.holds.swaps == 0


def test_the_model_used_longest_ago_leaves(offloaded):
    w = offloaded(dict(net=1), dict(net=2), dict(net=3), RESIDENT_MODELS=2)
    for number in (0, 1, 0, 2):  # 2 takes the place of 1
        w.alone(number, 1)
    w.alone(0, 1)
    assert [loads(w, i)[0] for i in (0, 1, 2)] == [1, 1, 1]
    w.alone(1, 1)
    assert [loads(w, i)[0] for i in (0, 1, 2)] == [1, 2, 1] and w.kernel.npu.holds.swaps == 2


# Errors


@pytest.mark.parametrize("in_load", [True, False])
@pytest.mark.parametrize("ends, status", [(-5, Status.IO), (None, Status.TIMEDOUT)])
def test_work_that_fails_or_never_ends_ends_its_job_and_the_next_one_runs(offloaded, in_load, ends, status):
    w = low_and_high(offloaded)
    other = w.alone(1, 7)
    job = w.go(0)
    poll_until(w, job, (WAITING, AWAY))
    assert loading(w)
    if not in_load:
        while loading(w):
            w.pass_time(10)
            w("kernel_poll")
        w.run()
        assert w.slot_state(job) == (WAITING, AWAY) and int(w.kernel.npu.work) == 2
    w.e.board.set_npu(ends)
    w.finish(1000)
    assert w("infer_wait", job, 0) == status and w("infer_error_at", job) == (0, 0)
    assert w.kernel.npu.holds.places[0].model == 0  # it was reset
    w.e.board.set_npu(0)
    assert w.alone(1, 7) == other and w("npu_get_state") == 0


# Aborting


def test_a_job_is_aborted_when_the_accelerator_is_through_with_it_and_not_before(offloaded):
    w = low_and_high(offloaded)
    job = w.go(0)
    w("kernel_poll")
    assert w("infer_cancel", job) == Status.BUSY and w("infer_abort", job) == Status.OK
    w.run()
    assert w.slot_state(job) == (WAITING, AWAY) and w.kernel.frames[0].owner != 0
    w.finish()
    assert w("infer_wait", job, 0) == Status.CANCELED and w.kernel.frames[0].owner == 0 and w.kernel.npu.owner == 0


def test_a_job_in_line_is_aborted_at_once(offloaded):
    w = low_and_high(offloaded)
    first = w.go(0)
    w("kernel_poll")
    second = w.go(1)
    w.run()
    assert w.slot_state(second) == (WAITING, LINE)
    assert w("infer_abort", second) == Status.OK
    assert w("kernel_poll") == (Poll.RAN, second)
    assert w("infer_wait", second, 0) == Status.CANCELED and w.slot_state(first) == (WAITING, AWAY)
    w.finish()
    assert w("infer_wait", first, 0) == Status.OK


def test_news_of_other_work_are_refused(offloaded):
    w = low_and_high(offloaded)
    job = w.go(0)
    assert w("npu_done", 0, 0) == Status.NOENT
    w("kernel_poll")
    ticket = int(w.kernel.npu.ticket)
    assert w("npu_done", ticket + 1, 0) == w("npu_done", ticket - 1, 0) == Status.NOENT
    w.pass_time(10_000)
    assert w("npu_done", ticket, 0) == Status.OK
    assert w("npu_done", ticket, 0) == Status.NOENT
    assert w.slot_state(job) == (WAITING, BACK)
    w.finish()
    assert w("infer_wait", job, 0) == Status.OK
