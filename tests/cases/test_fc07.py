"""FC-07: a deadline that an interrupt changes takes effect in the next poll."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels import NORMAL, NOTE_DONE, OPTIONS, PASS, REALTIME, ROOTS, TABLES, World
from synapticos.kernel import hal
from synapticos.kernel.job import JobState
from synapticos.kernel.kernel import Kernel
from synapticos.kernel.pipeline import APP_STAGE
from synapticos.kernel.run import APP_STAGES
from synapticos.kernel.sched import infer_set_deadline
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import StageCall
from synapticos.lang import copy, fn, move, u32

ROW = OPTIONS["MAX_JOBS"] - 1  # jobs that are queued behind the one that runs


@fn
def long_stage(call: StageCall) -> Status:
    """A millisecond, in which interrupts come."""
    hal.spend(0, 1000)
    move(call.y_data, call.x_data[0], call.x[0].size)
    copy(call.y, call.x[0])
    return Status.OK


@fn
def sensor(kernel: Kernel, urgent: u32, us: u32, other: u32) -> None:
    """An interrupt: one job has become urgent, another has all the time of the world."""
    status = infer_set_deadline(kernel, urgent, us)
    assert status == Status.OK, "it is queued"
    status = infer_set_deadline(kernel, other, 0)
    assert status == Status.OK, "it is queued"


@fn
def strike_at(ticks: u32) -> None:
    hal.interrupt_at(0, 0, ticks)


BUILD = {**OPTIONS, "tables": {**TABLES, APP_STAGES: [*TABLES[APP_STAGES], long_stage]}}
LONG = APP_STAGE + len(TABLES[APP_STAGES])


@pytest.fixture
def w(make):
    return World(make(*ROOTS, sensor, strike_at, **BUILD))


def pipes(w):
    w.hand_model()
    model = w.model()
    return w.pipeline(model, (LONG, PASS)), w.pipeline(model)


def test_the_case(w):
    """A, B and C are due in 50, 60 and 70 ms; in the middle of the unrelated job's stage C gets 10 ms and A none."""
    unrelated, pipe = pipes(w)
    running = w.submit(unrelated, bytes(48), REALTIME, NOTE_DONE)
    a, b, c = (w.submit(pipe, bytes(48), NORMAL, NOTE_DONE, deadline=ms * 1000) for ms in (50, 60, 70))
    w.e.interrupt(0, sensor, w.kernel, c, 10_000, a)
    w.e(strike_at, 500)
    w.run()
    assert w.e.board.now == 1000
    assert [e[0] for e in w.events()] == [running, c, b, a]


@pytest.mark.parametrize("which", ["first", "middle", "last"])
@pytest.mark.parametrize("us, place", [(10, 0), (55_000, 1), (65_000, 2), (200_000, 2), (0, 2)])
def test_the_change_hits_any_entry(w, which, us, place):
    unrelated, pipe = pipes(w)
    running = w.submit(unrelated, bytes(48), REALTIME, NOTE_DONE)
    queued = [w.submit(pipe, bytes(48), NORMAL, NOTE_DONE, deadline=ms * 1000) for ms in (50, 60, 70)]
    w("kernel_poll")  # all are in their places
    hit = queued[["first", "middle", "last"].index(which)]
    assert w("infer_set_deadline", hit, us) == Status.OK
    due = {id: ms * 1000 for id, ms in zip(queued, (50, 60, 70), strict=True)} | {hit: us or 10**9}
    w.run()
    assert [e[0] for e in w.events()] == [running, *sorted(queued, key=due.__getitem__)]
    assert place or us == 10


def test_the_running_job_keeps_running(w):
    """Only what counts as its miss changes."""
    unrelated, pipe = pipes(w)
    running = w.submit(unrelated, bytes(48), NORMAL, NOTE_DONE, deadline=100_000)
    w("kernel_poll")
    other = w.submit(pipe, bytes(48), NORMAL, NOTE_DONE, deadline=2000)
    assert w("infer_set_deadline", running, 0) == Status.OK
    w("kernel_poll")
    assert w("infer_state", running) == JobState.RUNNING and w("infer_state", other) == JobState.QUEUED
    assert w("infer_set_deadline", running, 500) == Status.OK  # which is past: a millisecond has gone
    w("kernel_poll")
    assert list(w.kernel.stats.misses) == [0, 1, 0]
    w.run()
    assert [e[0] for e in w.events()] == [running, other] and list(w.kernel.stats.misses) == [0, 1, 0]


@pytest.mark.only("checked")
def test_a_change_at_any_point_of_a_poll(w):
    """The queue holds, whatever line of poll the interrupt strikes, and every job ends once."""
    for at in range(12):
        w("kernel_boot", 0)
        assert w("kernel_init", w.memory, 8192, 1024) == Status.OK
        unrelated, pipe = pipes(w)
        w.submit(unrelated, bytes(48), REALTIME, NOTE_DONE)
        a, b, c = (w.submit(pipe, bytes(48), NORMAL, NOTE_DONE, deadline=ms * 1000) for ms in (50, 60, 70))
        sections = []

        def strike(at=at, sections=sections, a=a, c=c):
            sections.append(0)
            if len(sections) == at + 1:
                w("infer_set_deadline", c, 10_000)
                w("infer_set_deadline", a, 0)

        with w.interrupted(strike):
            w("kernel_poll")
        w.run()
        assert [e[0] for e in w.events()][1:] == [c, b, a]


changes = st.lists(st.tuples(st.integers(0, ROW), st.one_of(st.just(0), st.integers(1, 20_000))), max_size=6)


@settings(max_examples=30)
@given(st.lists(st.integers(0, 20_000), min_size=1, max_size=ROW), changes, st.booleans())
def test_any_changes(engines, due, changes, placed):
    """Of any entries, the running one too, before or after poll has given them their places: order and misses are right."""
    for e in engines(*ROOTS, sensor, strike_at, **BUILD).each:
        w = World(e)
        unrelated, pipe = pipes(w)
        ids = [w.submit(unrelated, bytes(48), NORMAL, NOTE_DONE)]
        if placed:
            w("kernel_poll")
        start = w.e.board.now
        ids += [w.submit(pipe, bytes(48), NORMAL, NOTE_DONE, deadline=us) for us in due]
        now = [0, *(start + us if us else 0 for us in due)]
        if not placed:
            w("kernel_poll")  # the first was submitted first, and nothing of its class is due before
        if w("infer_state", ids[0]) != JobState.RUNNING:
            continue  # one with a deadline went first
        for which, us in changes:
            i = which % len(ids)
            assert w("infer_set_deadline", ids[i], us) == Status.OK
            now[i] = (0 if i == 0 else start) + us if us else 0
        w.run()
        order = sorted(range(1, len(ids)), key=lambda i: (now[i] or 10**9, i))
        assert [e[0] for e in w.events()] == [ids[0], *(ids[i] for i in order)]
