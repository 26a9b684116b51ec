"""An accelerator that works beside the processor: overlap, order, residency, errors, aborts, on all engines."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels import BEST_EFFORT, NORMAL, REALTIME
from offloading import CPU, DEAF, FRAIL, INSTANT, MORE, OPTIONS, ROOTS, Offloaded, compiled, noise
from synapticos.kernel import hal
from synapticos.kernel.container import STEP_BYTES, Header, StepRecord
from synapticos.kernel.job import HostWork, JobParams, JobState, Late
from synapticos.kernel.sched import Poll
from synapticos.kernel.status import Status
from synapticos.lang import u8, unpack

pytestmark = pytest.mark.slow  # all together
WAITING, SUSPENDED, RUNNING, CANCELLED, ERROR = (JobState.WAITING, JobState.SUSPENDED, JobState.RUNNING, JobState.CANCELLED, JobState.ERROR)
AWAY, BACK, LINE, NONE = HostWork.AWAY, HostWork.BACK, HostWork.LINE, HostWork.NONE
STEPS = 3  # of each network
LATE_ABORT = int(Late.ABORT)


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


def record(container, step):
    """A step's record."""
    at = unpack(Header, container)["steps_at"] + STEP_BYTES * step
    return unpack(StepRecord, container, at)


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
    assert w.kernel.npu.holds.places[0].model == 0 and w.kernel.npu.resets == 1
    w.e.board.set_npu(0)
    assert w.alone(1, 7) == other and w("npu_get_state") == 0


@pytest.mark.parametrize("preemptible", [True, False])
@pytest.mark.parametrize("in_load", [True, False])
def test_work_that_cannot_be_begun_resets_a_stuck_device_and_the_next_job_runs(offloaded, in_load, preemptible):
    w = offloaded(dict(net=1, priority=BEST_EFFORT, preemptible=preemptible), dict(net=2, priority=REALTIME))
    good = w.alone(0, 3), w.alone(1, 7)
    job = w.go(0 if in_load else 1, 3)  # the second is there already
    stuck = w.keep(w.e.array(u8, 128))
    assert w.e(hal.npu_start, w.board, 0xBAD, 0x7FFFFFFF, stuck, 64) == 0  # work that nobody knows of, and that does not end
    w.finish(100)
    assert w("infer_wait", job, 0) == Status.IO and w("infer_error_at", job) == (0, 0)
    assert w.kernel.npu.resets == 1 and w.kernel.npu.holds.places[0].model == 0 and w.kernel.npu.owner == 0
    assert (w.alone(0, 3), w.alone(1, 7)) == good and w.kernel.npu.resets == 1
    assert w("npu_get_state") == 0


@pytest.mark.parametrize("preemptible", [True, False])
def test_a_driver_that_fails_at_the_end_of_a_step_resets_the_device(make, preemptible):
    w = Offloaded(make(*ROOTS, **MORE), [dict(net=1, on=FRAIL, preemptible=preemptible), dict(net=2, on=FRAIL)])
    good = w.alone(1, 7)
    job = w.submit(w.pipes[0], b"\x55" + noise(1)[1:])
    w.finish(100)
    assert w("infer_wait", job, 0) == Status.IO and w("infer_error_at", job) == (0, 0)
    assert w.kernel.npu.resets == 1 and w.kernel.npu.holds.places[0].model == 0 and w.kernel.npu.owner == 0
    assert w.alone(1, 7) == good and w.kernel.npu.resets == 1


def test_a_driver_that_fails_when_the_device_is_another_job_s_leaves_that_one_alone(make):
    w = Offloaded(make(*ROOTS, **MORE), [dict(net=1, on=FRAIL, priority=NORMAL), dict(net=2, on=FRAIL, priority=REALTIME)])
    good = w.alone(1, 7)
    job = w.submit(w.pipes[0], b"\x55" + noise(1)[1:])
    poll_until(w, job, (WAITING, AWAY))
    while loading(w):
        w.pass_time(10)
        w("kernel_poll")
    w.run()
    assert w.slot_state(job) == (WAITING, AWAY)
    urgent = w.go(1, 7)
    w.run()
    assert w.slot_state(urgent) == (WAITING, LINE)
    w.pass_time(1000)
    w.finish(10)  # the urgent one takes the device before the other takes up what it did
    assert w("infer_wait", job, 0) == Status.IO and w.result(urgent) == good
    assert w.kernel.npu.resets == 0 and w.kernel.npu.owner == 0


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


# Stopping


@pytest.mark.parametrize("call", ["sched_quiesce", "kernel_shutdown"])
def test_stopping_waits_for_the_accelerator_or_says_that_it_cannot(offloaded, call):
    w = low_and_high(offloaded)
    job = w.go(0)
    w("kernel_poll")
    assert w(call) == Status.BUSY and not w.kernel.hold and w.kernel.up  # the clock stands
    assert w.slot_state(job) == (WAITING, AWAY)
    if w.e.name == "checked":  # a clock that goes on by itself while the kernel sleeps
        w.e.board.idle = lambda board: w.e.board.advance(7)
        try:
            assert w(call) == Status.OK
        finally:
            del w.e.board.idle
        assert w("infer_wait", job, 0) == Status.OK and w.kernel.npu.owner == 0
        return
    w.finish()
    assert w(call) == Status.OK and w("infer_wait", job, 0) == Status.OK


@pytest.mark.only("checked")
def test_what_is_queued_is_cancelled_by_a_shutdown_and_a_lost_device_is_reset(offloaded):
    w = low_and_high(offloaded)
    w.e.board.set_npu(None)
    job = w.go(0)
    w("kernel_poll")
    queued = w.go(1)
    w.e.board.idle = lambda board: w.e.board.advance(100)
    try:
        assert w("kernel_shutdown") == Status.OK
    finally:
        del w.e.board.idle
    assert w("infer_wait", job, 0) == Status.TIMEDOUT and w("infer_wait", queued, 0) == Status.CANCELED
    assert w.e.board.npu is None  # it was reset, so it writes to nothing


@pytest.mark.parametrize("call", ["npu_deinit", "npu_load_model", "npu_set_input", "npu_invoke", "npu_suspend"])
def test_by_hand_nothing_is_done_to_an_accelerator_that_a_job_has(offloaded, call):
    w = low_and_high(offloaded)
    job = w.go(0)
    w("kernel_poll")
    data = w.keep(w.e.array(u8, 32))
    arguments = {"npu_load_model": (data, 32), "npu_set_input": (0, data, 32)}.get(call, ())
    before = bytes(w.kernel)
    assert w(call, *arguments) in (None, Status.BUSY, Status.PERM)
    assert bytes(w.kernel) == before and w("npu_invoke_async") == Status.NOTSUP
    w.finish()
    assert w("infer_wait", job, 0) == Status.OK


# Pins


def test_a_pinned_model_keeps_its_place(offloaded):
    w = offloaded(dict(net=1), dict(net=2), dict(net=3), dict(net=1, on=CPU), RESIDENT_MODELS=2)
    handles = [int(m.generation) << 8 | i + 1 for i, m in enumerate(w.kernel.models.items)]
    assert w("model_pin", handles[0], True) == w("model_pin", handles[0], True) == Status.OK
    assert w("model_pin", handles[1], True) == Status.NOMEM  # no place would be left
    assert w("model_pin", handles[3], True) == Status.NOTSUP and w("model_pin", 99, True) == Status.INVAL
    for number in (0, 1, 2, 1, 2, 0):
        w.alone(number, 1)
    assert [loads(w, i)[0] for i in (0, 1, 2)] == [1, 2, 2]
    assert w("model_pin", handles[0], False) == Status.OK
    for number in (1, 2, 0):
        w.alone(number, 1)
    assert loads(w, 0)[0] == 2


def test_with_one_place_nothing_can_be_pinned(offloaded):
    w = offloaded(dict(net=1), dict(net=2))
    assert w("model_pin", int(w.kernel.models.items[0].generation) << 8 | 1, True) == Status.NOMEM


def test_a_model_that_is_unloaded_leaves_its_place_and_its_pin(offloaded):
    w = offloaded(dict(net=1), dict(net=2), RESIDENT_MODELS=2)
    handle = int(w.kernel.models.items[0].generation) << 8 | 1
    w("model_pin", handle, True)
    w.alone(0, 1)
    assert w("model_unload", handle) == Status.OK
    assert w.kernel.npu.holds.pinned == 0 and all(int(p.model) != handle for p in w.kernel.npu.holds.places)
    job = w.go(0)
    w.finish()
    assert w("infer_wait", job, 0) == Status.PERM
    assert w("model_load", handle) == Status.OK
    w.alone(0, 1)
    assert loads(w, 0)[0] == 2


# Costs


def test_a_load_costs_what_the_timing_model_says(offloaded):
    w = offloaded(dict(net=1))
    job = w.go(0)
    w("kernel_poll")
    want = 100 + -(-len(compiled(1).container) // 64)
    while loading(w):
        w.pass_time(1)
        w("kernel_poll")
    assert loads(w, 0) == (1, want)
    for step in range(STEPS):  # as the load is seen to end the first begins, and so on
        began, ticket = w.e.board.now, int(w.kernel.npu.ticket)
        cost = 20 + -(-record(compiled(1).container, step)["cost"] // 100)
        while w.slot_state(job) == (WAITING, AWAY) and int(w.kernel.npu.ticket) == ticket:
            w.pass_time(1)
            w("kernel_poll")
        assert w.e.board.now - began == cost
    assert w("infer_wait", job, 0) == Status.OK


# The device's news, at any point


@pytest.mark.parametrize("preemptible", [True, False])
@pytest.mark.only("checked")
def test_wherever_the_interrupt_strikes_each_job_ends_well(offloaded, preemptible):
    """The accelerator is through at the n-th chance, for every n: before and after each critical section."""
    w = offloaded(dict(net=1, priority=BEST_EFFORT, preemptible=preemptible), dict(net=2, priority=REALTIME), dict(net=3, on=CPU, priority=NORMAL))
    want = [w.alone(i, 5) for i in range(3)]
    chances, news = 0, []
    for n in range(60):
        chances = 0
        jobs = [w.go(i, 5) for i in range(3)]

        def strike(n=n):
            nonlocal chances
            chances += 1
            if chances % 60 == n:
                w.pass_time(5000)
                ticket = int(w.kernel.npu.ticket)
                if w.e.board.npu_status(0, ticket) == 0:  # begun, and through
                    news.append(w("npu_done", ticket, 0))

        with w.interrupted(strike):
            for _ in range(400):
                w("kernel_poll")
                w.check()
        w.finish()
        assert [w("infer_wait", j, 0) for j in jobs] == [Status.OK] * 3
        assert [w.result(j) for j in jobs] == want
    assert chances > 60 and news.count(Status.OK) > 60 and w.kernel.unfinished == 0 and w.kernel.npu.owner == 0


@pytest.mark.parametrize("call", ["infer_cancel", "infer_abort", "pipeline_destroy"])
@pytest.mark.only("checked")
def test_wherever_a_job_is_stopped_the_others_end_well(offloaded, call):
    w = low_and_high(offloaded)
    want = [w.alone(i, 5) for i in range(3)]
    for n in range(0, 240, 3):
        if call == "pipeline_destroy" and n > 60:
            break
        if call == "pipeline_destroy":
            w = low_and_high(offloaded)
        jobs = [w.go(i, 5) for i in range(3)]
        chances, done = 0, []

        def strike(n=n, jobs=jobs, done=done):
            nonlocal chances
            chances += 1
            if chances == n + 1:
                done.append(w(call, w.pipes[0] if call == "pipeline_destroy" else jobs[0]))

        with w.interrupted(strike):
            for _ in range(400):
                w("kernel_poll")
                w.check()
                w.pass_time(10)
        w.finish()
        stopped = w("infer_wait", jobs[0], 0)
        assert stopped in (Status.OK, Status.CANCELED)
        if call == "infer_abort" and done == [Status.OK]:
            assert stopped == Status.CANCELED
        assert [w("infer_wait", j, 0) for j in jobs[1:]] == [Status.OK] * 2
        assert [w.result(j) for j in jobs[1:]] == want[1:]
        w("infer_detach", jobs[0])
    assert w.kernel.npu.owner == 0 and all(int(f.owner) == 0 for f in w.kernel.frames)


# Any mix


MIX = (dict(net=1, priority=BEST_EFFORT), dict(net=2, priority=NORMAL, preemptible=False), dict(net=3, priority=REALTIME), dict(net=1, on=CPU, priority=NORMAL))
actions = st.lists(
    st.one_of(
        st.tuples(st.just("go"), st.integers(0, 3), st.integers(0, 2)),
        st.tuples(st.just("poll"), st.integers(1, 6)),
        st.tuples(st.just("time"), st.integers(1, 400)),
        st.tuples(st.just("abort"), st.integers(0, 7)),
        st.tuples(st.just("cancel"), st.integers(0, 7)),
        st.tuples(st.just("ends"), st.sampled_from([0, 0, 0, -5, None])),
    ),
    max_size=40,
)


@pytest.mark.parametrize("places", [1, 2])
@settings(max_examples=15)
@given(actions=actions)
def test_any_mix_gives_the_bytes_of_each_job_alone(make, places, actions):
    w = Offloaded(make(*ROOTS, **OPTIONS, RESIDENT_MODELS=places), list(MIX))
    want = {(i, seed): w.alone(i, seed) for i in range(4) for seed in range(3)}
    jobs: list[tuple[int, int, int]] = []
    spoilt = False
    for op, *rest in actions:
        if op == "go" and w.kernel.unfinished < 6:
            id = w.submit(w.pipes[rest[0]], noise(rest[1]))
            if id:
                jobs.append((id, *rest))
        elif op == "poll":
            for _ in range(rest[0]):
                w("kernel_poll")
                w.check()
        elif op == "time":
            w.pass_time(rest[0])
        elif op in ("abort", "cancel") and jobs:
            w(f"infer_{op}", jobs[rest[0] % len(jobs)][0])
        elif op == "ends":
            w.e.board.set_npu(rest[0])
            spoilt = spoilt or rest[0] != 0
        w.check()
    w.finish(100)
    w.e.board.set_npu(0)
    for id, number, seed in jobs:
        status = w("infer_wait", id, 0)
        if status == Status.OK:
            assert w.result(id) == want[number, seed]
        else:
            assert status == Status.CANCELED or (spoilt and status in (Status.IO, Status.TIMEDOUT)), status
            w("infer_detach", id)
    assert w.kernel.npu.owner == 0 and w.kernel.unfinished == 0 and all(int(f.owner) == 0 for f in w.kernel.frames)
    for number in range(4):  # all goes on
        assert w.alone(number, 0) == want[number, 0]


# Deadlines


@pytest.mark.parametrize("in_line", [True, False])
def test_a_late_job_is_ended_in_line_at_once_and_on_the_accelerator_when_it_is_through(offloaded, in_line):
    w = low_and_high(offloaded)
    other = w.go(1) if in_line else 0
    if in_line:
        w("kernel_poll")
    params = w.e.new(JobParams, priority=BEST_EFFORT, deadline_us=50, late=LATE_ABORT, preemptible=True)
    buffer = w.keep(w.e.array(u8, noise(1)))
    status, late = w("infer_post", w.pipes[0], w.descriptor(72), buffer, None, 0, params)
    assert status == Status.OK
    w.run()
    assert w.slot_state(late) == (WAITING, LINE if in_line else AWAY)
    w.pass_time(51)
    w.run()
    if in_line:
        assert w("infer_wait", late, 0) == Status.TIMEDOUT and w.slot_state(other) == (WAITING, AWAY)
    else:
        assert w.slot_state(late) == (WAITING, AWAY)  # it may write to the frame
        assert w.kernel.stats.misses[BEST_EFFORT] == 1
    w.finish()
    assert w("infer_wait", late, 0) == Status.TIMEDOUT and w.kernel.stats.expired == 1 and w.kernel.stats.misses[BEST_EFFORT] == 1
    assert w.kernel.npu.owner == 0 and all(int(f.owner) == 0 for f in w.kernel.frames)


# Other backends


@pytest.mark.parametrize("preemptible", [True, False])
def test_a_backend_that_is_done_at_once_needs_no_news(make, preemptible):
    w = Offloaded(make(*ROOTS, **MORE), [dict(net=1, on=INSTANT, preemptible=preemptible), dict(net=1, on=CPU)])
    job, same = w.go(0), w.go(1)
    while w("kernel_poll")[0] == Poll.RAN:
        w.check()
    assert w("infer_wait", job, 0) == w("infer_wait", same, 0) == Status.OK
    assert w.result(job) == w.result(same) and w.kernel.npu.owner == 0 and loads(w, 0)[0] == 1


def test_a_device_that_cannot_be_asked_is_waited_for_until_it_tells(make):
    w = Offloaded(make(*ROOTS, **MORE), [dict(net=1, on=DEAF), dict(net=1, on=CPU)])
    job = w.go(0)
    for _ in range(STEPS + 1):  # a load, and the layers
        w.run()
        w.pass_time(10_000_000)  # without a limit nothing is given up
        assert w("kernel_poll") == (Poll.IDLE, 0) and w.slot_state(job) == (WAITING, AWAY)
        assert w("npu_done", int(w.kernel.npu.ticket), 0) == Status.OK
    w.run()
    assert w("infer_wait", job, 0) == Status.OK and w.result(job) == w.alone(1, 1)
