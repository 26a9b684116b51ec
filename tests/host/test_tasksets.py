"""Task sets in virtual time: answers worked out by hand, and the same events on all engines."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synapticos import toolchain
from synapticos.analysis.tasks import MS, SECOND, Interference, Step, Task, TaskSet
from synapticos.errors import UserError
from synapticos.host.tasksets import NO_ROOM, TaskSetSimulator, burst, simulate_tasks, steady
from synapticos.kernel.simulate import Happens

HIGH = Task("high", 2, (Step(1 * MS), Step(2 * MS)), period_ns=10 * MS, deadline_ns=10 * MS)
LOW = Task("low", 0, (Step(5 * MS), Step(4 * MS)), period_ns=40 * MS, deadline_ns=40 * MS)


@pytest.fixture(scope="module")
def native():
    if not toolchain.find_all("host"):
        pytest.skip("no compiler for this machine")
    return TaskSetSimulator()


def play(simulator, tasks, releases, horizon, **more):
    pieces: list[np.ndarray] = []
    out = simulator.run(tasks, releases, horizon, events=pieces, **more)
    return out, np.concatenate(pieces)


def test_two_tasks_by_hand(native):
    """Low begins at 0, both come at 0: high 0-3, low 3-8, low 8-12 but high at 10 waits until 12."""
    (high, low), events = play(native, TaskSet((HIGH, LOW)), [[0, 10 * MS], [0]], 20 * MS)
    assert (high.worst_ns, high.finished, low.worst_ns, low.finished) == (5 * MS, 2, 12 * MS, 1)
    ends = [(int(e["at"]), int(e["pipeline"])) for e in events if e["kind"] == int(Happens.STEP)]
    assert ends == [(1 * MS, 0), (3 * MS, 0), (8 * MS, 1), (12 * MS, 1), (13 * MS, 0), (15 * MS, 0)]


def test_the_worst_is_found_just_after_a_long_step_begins(native):
    """High waits for all of low's 5 ms but the nanosecond by which it came too late, then takes 3."""
    assert simulate_tasks(TaskSet((HIGH, LOW)), simulator=native) == {"high": 8 * MS - 1, "low": 12 * MS}


def test_a_task_that_is_not_preemptible_is_waited_for_to_its_end(native):
    low = Task("low", 0, LOW.steps, period_ns=40 * MS, preemptible=False)
    assert simulate_tasks(TaskSet((HIGH, low)), simulator=native)["high"] == 12 * MS - 1


def test_in_a_class_the_nearer_deadline_goes_first_but_not_before_one_that_has_begun(native):
    near = Task("near", 1, (Step(2 * MS),), period_ns=50 * MS, deadline_ns=10 * MS)
    far = Task("far", 1, (Step(1 * MS), Step(1 * MS)), period_ns=50 * MS, deadline_ns=30 * MS)
    (a, b), _ = play(native, TaskSet((near, far)), [[0], [0]], 50 * MS)
    assert (a.worst_ns, b.worst_ns) == (2 * MS, 4 * MS)
    (a, b), _ = play(native, TaskSet((near, far)), [[1], [0]], 50 * MS)
    assert (a.worst_ns, b.worst_ns) == (4 * MS - 1, 2 * MS)


def test_an_interrupt_lengthens_the_step_that_it_comes_in(native):
    tasks = TaskSet((HIGH,), (Interference("uart", period_ns=2 * MS, cost_ns=100_000),))
    (high,), _ = play(native, tasks, [[0]], 20 * MS, hits=[[500_000, 2_500_000, 4_500_000]])
    assert high.worst_ns == 3_200_000


def test_a_release_can_just_miss_a_poll_that_finds_nothing(native):
    (high,), _ = play(native, TaskSet((HIGH,), idle_ns=7_000), [[5 * MS]], 20 * MS)
    assert high.worst_ns == 3 * MS + 6_999


def test_misses_are_counted_and_backlog_is_kept(native):
    """Ten milliseconds of work every eight: each job waits for those before it."""
    task = Task("slow", 1, (Step(10 * MS),), period_ns=8 * MS, deadline_ns=15 * MS)
    (slow,), _ = play(native, TaskSet((task,)), steady(TaskSet((task,)), [0], 80 * MS), 200 * MS)
    assert (slow.released, slow.finished, slow.worst_ns) == (10, 10, 28 * MS) and slow.late == 7


def test_a_job_that_finds_no_room_is_told(native):
    task = Task("flood", 1, (Step(10 * MS),), period_ns=1 * MS)
    (flood,), _ = play(native, TaskSet((task,)), [[0] * 40], SECOND)
    assert (flood.released, flood.refused, flood.finished) == (32, 8, 32)
    assert simulate_tasks(TaskSet((task,)), simulator=native, horizon_ns=SECOND)["flood"] == NO_ROOM
    assert simulate_tasks(TaskSet((task,)), simulator=native, horizon_ns=20 * MS)["flood"] == 19 * MS


def test_more_than_the_counter_holds(native):
    """A tick is a nanosecond, so the counter wraps every 4.3 s; jobs a minute apart are where they should be."""
    task = Task("rare", 1, (Step(3 * MS),), period_ns=60 * SECOND)
    (rare,), events = play(native, TaskSet((task,)), [[i * 60 * SECOND for i in range(5)]], 300 * SECOND)
    assert rare.finished == 5 and rare.worst_ns == 3 * MS
    assert [int(e["at"]) for e in events if e["kind"] == int(Happens.ENDED)] == [i * 60 * SECOND + 3 * MS for i in range(5)]


def test_bursts_are_as_dense_as_jitter_allows_and_no_denser():
    task = Task("t", 1, (Step(1),), period_ns=10, jitter_ns=25)
    assert burst(task, 5, 60) == [5, 5, 5, 10, 20, 30, 40, 50]


@pytest.mark.parametrize(("task", "why"), [
    (Task("a", 1, (Step(1, "npu"), Step(1))), "npu"),
    (Task("a", 1, (Step(1 << 31),)), "at most"),
])  # fmt: skip
def test_what_cannot_be_played_is_refused(native, task, why):
    with pytest.raises(UserError, match=why):
        native.run(TaskSet((task,)), [[0]], 100)


@st.composite
def sets(draw):
    tasks = []
    for i in range(draw(st.integers(1, 4))):
        steps = draw(st.lists(st.integers(1, 5_000), min_size=1, max_size=4))
        period = draw(st.integers(2_000, 30_000))
        deadline = draw(st.sampled_from([0, 5_000, 12_000]))
        tasks.append(Task(f"t{i}", draw(st.integers(0, 2)), tuple(Step(n) for n in steps), period, deadline, preemptible=draw(st.booleans())))
    hits = (Interference("irq", 3_000, 200),) if draw(st.booleans()) else ()
    return TaskSet(tuple(tasks), hits, idle_ns=draw(st.sampled_from([0, 50])))


@pytest.fixture(scope="module")
def three():
    names = ["checked", *(n for n, t in (("native", "host"), ("cortex-m", "cortex-m33")) if toolchain.find_all(t))]
    return [TaskSetSimulator(name) for name in names]


@settings(max_examples=12)
@given(sets(), st.integers(0, 5_000))
def test_the_same_events_on_all_engines(three, tasks, offset):
    releases = steady(tasks, [offset * i for i in range(len(tasks.tasks))], 60_000)
    hits = [list(range(100, 60_000, item.period_ns)) for item in tasks.interference]
    outcomes = [play(s, tasks, releases, 80_000, hits=hits) for s in three]
    assert len(outcomes[0][1]) > 0
    for outcome, events in outcomes[1:]:
        assert outcome == outcomes[0][0]
        assert events.tobytes() == outcomes[0][1].tobytes()
