"""The kernel itself, compiled, against what is proved of it: no response that it shows exceeds the bound.

And against its rules written down a second time: the same responses for the same releases.
"""

from dataclasses import replace

import numpy as np
import pytest
from events import play
from hypothesis import given, settings
from hypothesis import strategies as st
from synapticos import toolchain
from synapticos.analysis.response import analyse
from synapticos.analysis.tasks import US, Interference, Step, Task, TaskSet
from synapticos.errors import UserError
from synapticos.host.tasksets import NO_ROOM, TaskSetSimulator, patterns, simulate_tasks
from test_response import task_sets


@pytest.fixture(scope="module")
def kernel():
    if not toolchain.find_all("host"):
        pytest.skip("no compiler for this machine")
    return TaskSetSimulator()


def assert_bounded(kernel, tasks, seed, count=4):
    bounds, seen = analyse(tasks), simulate_tasks(tasks, seed=seed, count=count, simulator=kernel)
    for bound in bounds:
        if bound.response is not None and not bound.apart and seen[bound.name] != NO_ROOM:
            assert seen[bound.name] <= bound.response, (bound, seen[bound.name], tasks.to_json())


@settings(max_examples=120)
@given(task_sets(), st.integers(0, 10**6))
def test_no_response_of_the_kernel_exceeds_its_bound(kernel, tasks, seed):
    assert_bounded(kernel, tasks, seed)


def random_tasks(seed: int) -> TaskSet:
    """A set for tests and figures: periods over two decades, loads of 30 to 95 %, up to five steps, jitter beyond a period,
    interrupts, deadlines on both sides of the period."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 7))
    shares = rng.dirichlet(np.ones(n)) * rng.uniform(0.3, 0.95)
    tasks = []
    for i in range(n):
        period = int(10 ** rng.uniform(6, 8)) // 1000 * 1000
        cost = max(int(period * shares[i]), 1000)
        cuts = np.unique(rng.integers(1, cost, int(rng.integers(0, 5))))
        steps = tuple(Step(int(part)) for part in np.diff([0, *cuts, cost]))
        deadline = 0 if rng.random() < 0.15 else int(period * rng.uniform(0.3, 1.5)) // 1000 * 1000
        jitter = int(period * rng.uniform(0, 1.3)) if rng.random() < 0.3 else 0
        tasks.append(Task(
            f"t{i}", int(rng.integers(0, 3)), steps, period, deadline, jitter, sporadic=bool(rng.random() < 0.2),
            preemptible=bool(rng.random() < 0.8),
        ))  # fmt: skip
    noise: tuple[Interference, ...] = ()
    if rng.random() < 0.4:
        noise = (Interference("irq", int(rng.integers(200_000, 5_000_000)), int(rng.integers(1_000, 50_000)), int(rng.integers(0, 100_000))),)
    return TaskSet(tuple(tasks), noise, idle_ns=int(rng.integers(0, 5_000)) if rng.random() < 0.5 else 0)


@settings(max_examples=40)
@given(st.integers(0, 10**9))
def test_nor_in_wider_sets(kernel, seed):
    assert_bounded(kernel, random_tasks(seed), seed)


def playable(tasks):
    """What the kernel can be asked: one step of the processor between two of the accelerator."""
    out = []
    for task in tasks.tasks:
        kept = []
        for k, step in enumerate(task.steps):
            first = next((i for i, s in enumerate(task.steps) if s.resource == "npu"), len(task.steps))
            last = max((i for i, s in enumerate(task.steps) if s.resource == "npu"), default=-1)
            if step.resource == "cpu" and first < k < last and kept[-1].resource == "cpu":
                continue
            kept.append(step)
        out.append(replace(task, steps=tuple(kept)))
    return replace(tasks, tasks=tuple(out))


@settings(max_examples=80)
@given(task_sets(npu=True), st.integers(0, 10**6))
def test_nor_where_the_kernel_shares_an_accelerator(kernel, tasks, seed):
    assert_bounded(kernel, playable(tasks), seed)


@pytest.mark.parametrize("engine", ["native", "checked", "cortex-m"])
def test_the_processor_is_free_while_the_accelerator_works(kernel, engine):
    if engine != "native":
        if engine == "cortex-m" and not toolchain.find_all("cortex-m33"):
            pytest.skip("no compiler for Cortex-M")
        kernel = TaskSetSimulator(engine)
    away = Task("away", 1, (Step(3 * US), Step(50 * US, "npu"), Step(4 * US), Step(20 * US, "npu"), Step(2 * US)), 1000 * US)
    beside = Task("beside", 0, (Step(10 * US),) * 3, 1000 * US)
    outcomes = kernel.run(TaskSet((away, beside)), [[0], [0]], 500 * US)
    assert [o.worst_ns for o in outcomes] == [(3 + 50 + 4 + 20 + 2) * US, (3 + 30) * US]
    with pytest.raises(UserError, match="one step of the processor"):
        kernel.run(TaskSet((replace(away, steps=away.steps[1:]),)), [[0]], 500 * US)


@settings(max_examples=60)
@given(task_sets(), st.integers(0, 10**6))
def test_the_kernel_and_its_rules_written_twice_agree(kernel, tasks, seed):
    """Whole microseconds, so that no deadline is rounded; interrupts apart from the steps' ends, where both orders are right."""
    tasks = replace(tasks, tasks=tuple(replace(t, late="finish") for t in tasks.tasks), idle_ns=0, interference=())
    horizon = 6 * max(t.period_ns + t.jitter_ns for t in tasks.tasks)
    for releases, _ in patterns(tasks, horizon, seed, 3):
        rounded = [[at // US * US for at in ats if at < horizon] for ats in releases]
        given = sorted((at, i) for i, ats in enumerate(rounded) for at in ats)
        outcomes = kernel.run(tasks, rounded, 40 * horizon)
        if any(o.refused for o in outcomes):
            continue  # more jobs at once than there are slots
        rules = play(tasks, given)
        assert {o.name: o.worst_ns for o in outcomes if o.finished} == rules.response
        assert {o.name: o.finished for o in outcomes if o.finished} == rules.ended


def one_by_one(tasks: TaskSet, number: int) -> TaskSet:
    """The jobs of a release as tasks of their own: what the kernel runs for a cascade's boxes."""
    task = tasks.tasks[number]
    steps = task.steps[: len(task.steps) // task.jobs]
    split = [replace(task, name=f"{task.name}.{i}", steps=steps, jobs=1) for i in range(task.jobs)]
    return replace(tasks, tasks=(*tasks.tasks[:number], *split, *tasks.tasks[number + 1 :]))


def assert_bounds_several(kernel, tasks, number, seed):
    """Releases are those of the set, and all the jobs of one come at once."""
    apart, jobs = one_by_one(tasks, number), tasks.tasks[number].jobs
    bounds = {bound.name: bound for bound in analyse(tasks)}
    horizon = 40 * max(task.period_ns for task in tasks.tasks)
    for releases, hits in patterns(tasks, horizon, seed, 3):
        split = [*releases[:number], *[releases[number]] * jobs, *releases[number + 1 :]]
        for outcome in kernel.run(apart, split, horizon, hits=hits):
            bound = bounds[outcome.name.split(".")[0]]
            if bound.response is not None and not bound.apart and not outcome.refused:
                assert max(outcome.worst_ns, outcome.waiting_ns) <= bound.response, (bound, outcome, tasks.to_json(), releases)


def test_between_two_boxes_others_of_the_class_may_go(kernel):
    """The last of four boxes waits for what came while the others ran and has an earlier deadline."""
    boxes = Task("boxes", 1, (Step(100 * US),) * 4, 2000 * US, 2000 * US, jobs=4)
    tasks = TaskSet((boxes, Task("peer", 1, (Step(40 * US),), 150 * US, 150 * US)))
    assert analyse(tasks)[0].response >= 520 * US
    assert_bounds_several(kernel, tasks, 0, 1)


@settings(max_examples=60, deadline=None)
@given(task_sets(), st.integers(0, 7), st.integers(2, 3), st.integers(0, 10**6))
def test_no_box_of_a_cascade_exceeds_its_bound(kernel, tasks, number, jobs, seed):
    number %= len(tasks.tasks)
    task = tasks.tasks[number]
    tasks = replace(tasks, tasks=(*tasks.tasks[:number], replace(task, steps=task.steps * jobs, jobs=jobs), *tasks.tasks[number + 1 :]))
    assert_bounds_several(kernel, tasks, number, seed)


def test_behind_its_own_queue_a_job_lets_others_go_first():
    """Without deadlines the class goes by submission, and a task's next job is submitted as its last one ends: A B A B A."""
    a = Task("A", 1, (Step(100 * US),), 1000 * US, jitter_ns=2000 * US, preemptible=False)
    b = Task("B", 1, (Step(US),), 50 * US, preemptible=False)
    response = analyse(TaskSet((a, b)))[0].response
    assert response is not None and response >= 302 * US
