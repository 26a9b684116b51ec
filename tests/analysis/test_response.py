"""No job ever takes longer than the bound says; and known task sets have their known answers."""

import random
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from synapticos.analysis.response import Demand, analyse, respond
from synapticos.analysis.tasks import MS, US, Interference, Step, Task, TaskSet
from events import periodic, play, strikes


# ---- against the event simulation


@st.composite
def task_sets(draw, npu=False):
    """Up to six tasks in three classes; loads around what a class can bear, deadlines around what it takes."""
    tasks = []
    for number in range(draw(st.integers(1, 6))):
        steps = draw(st.lists(st.integers(1, 12), min_size=1, max_size=5))
        made = [Step(ns * US) for ns in steps]
        if npu and draw(st.integers(0, 2)):
            for at in sorted(draw(st.sets(st.integers(1, len(made)), max_size=3)), reverse=True):
                made.insert(at, Step(draw(st.integers(1, 15)) * US, "npu"))
            if made[-1].resource == "npu":
                made.append(Step(1 * US))
        cost = sum(step.ns for step in made) // US
        period = cost * draw(st.integers(2, 9)) + draw(st.integers(0, 9))
        tasks.append(
            Task(
                f"t{number}",
                draw(st.integers(0, 2)),
                tuple(made),
                period * US,
                draw(st.sampled_from([0, cost, 2 * cost, period // 2, period, 2 * period])) * US,
                draw(st.sampled_from([0, 0, 1, period // 2, 2 * period])) * US,
                preemptible=draw(st.integers(0, 3)) != 0,
                late=draw(st.sampled_from(["finish", "finish", "abort", "skip"])),
            )
        )
    noise = ()
    if draw(st.booleans()):
        noise = (Interference("irq", draw(st.integers(5, 60)) * US, draw(st.integers(1, 3)) * US, draw(st.integers(0, 9)) * US),)
    return TaskSet(tuple(tasks), noise, idle_ns=draw(st.integers(0, 2)) * US)


def adversary(tasks: TaskSet, seed: int, target: int):
    """Releases that are bad for one task: what can block it just before, what goes before it at once, jitter first late
    and then early; or anything."""
    rng = random.Random(seed)
    victim = tasks.tasks[target]
    horizon = 3 * max(task.period_ns + task.jitter_ns for task in tasks.tasks)
    kind = rng.choice(["critical", "critical", "shifted", "random"])
    blockers = [i for i, t in enumerate(tasks.tasks) if t.priority <= victim.priority and i != target]
    blocker = rng.choice(blockers) if blockers else None
    releases = []
    for number, task in enumerate(tasks.tasks):
        offset = rng.randrange(task.period_ns) if kind == "random" else 1
        if kind != "random" and number == blocker:
            offset = 0
        elif kind == "shifted" and task.priority == victim.priority:
            offset = rng.randrange(task.period_ns) if rng.random() < 0.5 else 1
        first = True
        at = offset
        while at < horizon:
            late = 0
            if kind == "random":
                late = rng.randrange(task.jitter_ns + 1)
            elif first:
                at -= task.jitter_ns  # the first as late as can be, the others early: these come close together
                late = task.jitter_ns
            if at + late >= 0:
                releases.append((max(at + late, offset if kind != "random" else 0), number))
            first = False
            at += task.period_ns
    struck = []
    for noise in tasks.interference:
        offset = 1 if kind != "random" else rng.randrange(noise.period_ns)
        struck += [(offset, noise.cost_ns)]
        struck += [(offset + n * noise.period_ns - noise.jitter_ns, noise.cost_ns) for n in range(1, horizon // noise.period_ns + 2)]
    full = rng.random() < 0.7
    return play(
        tasks,
        releases,
        strikes=[s for s in struck if s[0] >= 0],
        length=lambda task, step: step.ns if full else rng.randint(1, step.ns),
        idle=lambda: rng.choice([0, tasks.idle_ns]),
        horizon=20 * horizon,
    )


def check(tasks: TaskSet, seed: int, rounds: int) -> list[tuple[int, int]]:
    """No observation above its bound; (observed, bound) of each task that has one."""
    bounds = analyse(tasks)
    worst = [0] * len(bounds)
    for target in range(len(bounds)):
        for k in range(rounds):
            seen = adversary(tasks, seed * 1000 + k, target)
            for i, bound in enumerate(bounds):
                response = seen.response.get(bound.name, 0)
                worst[i] = max(worst[i], response)
                if bound.response is not None:
                    assert response <= bound.response, (bound, response)
                    assert seen.start.get(bound.name, 0) <= bound.start, bound
                    if bound.meets:
                        assert seen.misses.get(bound.name, 0) == 0
    return [(w, b.response) for w, b in zip(worst, bounds, strict=True) if b.response is not None and w]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(task_sets(), st.integers(0, 10**6))
def test_no_job_takes_longer_than_its_bound(tasks, seed):
    check(tasks, seed, 6)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(task_sets(npu=True), st.integers(0, 10**6))
def test_nor_where_an_accelerator_is_shared(tasks, seed):
    check(tasks, seed, 6)


# ---- published answers


def fixed(*rows, unit=MS, step=1):
    """Each task a class of its own, first the highest: (cost, period, deadline), pre-empted anywhere (steps of 1 ns)."""
    return [
        Demand(f"t{i}", -i, round(c * unit), step, step, round(t * unit), 0, round(d * unit)) for i, (c, t, d) in enumerate(rows)
    ]


def whole(*rows, unit=MS):
    """The same, and nothing is pre-empted."""
    return [replace(d, tail=d.cost, section=d.cost) for d in fixed(*rows, unit=unit)]


def in_ms(responses):
    return [round(r.response / MS, 5) if r.response is not None else None for r in responses]


@pytest.mark.parametrize(
    ("rows", "answers"),
    [
        # A. Burns, A. Wellings, "Real-Time Systems and Programming Languages", on response time analysis: two task sets.
        ([(3, 7, 7), (3, 12, 12), (5, 20, 20)], [3, 6, 20]),
        ([(5, 20, 20), (10, 40, 40)], [5, 15]),
    ],
)
def test_fixed_priorities_as_in_the_textbook(rows, answers):
    assert in_ms(respond(fixed(*rows))) == answers


def test_a_processor_that_is_full_is_still_answered_where_nothing_blocks():
    # Burns and Wellings: (5, 20), (10, 40), (40, 80) take all of the processor, and the last ends at 80 just so.
    responses = respond(fixed((5, 20, 20), (10, 40, 40), (40, 80, 80)))
    assert in_ms(responses) == [5, 15, 80] and responses[2].meets


def test_the_second_message_is_the_late_one():
    """Three messages on a bus, each 1 ms, that nothing interrupts. The first instance of C takes 3.0 ms and the original
    analysis stopped there; the second takes 3.5 and misses 3.25. R. I. Davis, A. Burns, R. J. Bril, J. J. Lukkien,
    "Controller Area Network (CAN) schedulability analysis: Refuted, revisited and revised", Real-Time Systems 35, 2007."""
    responses = respond(whole((1, 2.5, 2.5), (1, 3.5, 3.25), (1, 3.5, 3.25)))
    assert in_ms(responses) == [2.0, 3.0, 3.5]
    assert [r.meets for r in responses] == [True, True, False]


def test_with_deferred_pre_emption_a_later_job_is_the_worst():
    """T1 = 5, C1 = 2; T2 = 7, C2 = 1.2 + 3: the fifth job of the second task takes 7, the first 6.2. After Bril, Lukkien
    and Verhaegh, ECRTS 2007."""
    steps = (Step(1200 * US), Step(3 * MS))
    tasks = TaskSet((Task("t1", 2, (Step(2 * MS),), 5 * MS, 5 * MS), Task("t2", 1, steps, 7 * MS, 7 * MS)))
    assert in_ms(analyse(tasks)) == [5.0, 7.0]
    seen = play(tasks, periodic(tasks, 35 * MS, [0, 0]))
    assert seen.response["t2"] == 7 * MS


# ---- published tests that are necessary and sufficient

small = st.lists(st.tuples(st.integers(1, 6), st.integers(2, 30), st.integers(1, 40)), min_size=1, max_size=5)


@settings(max_examples=300, deadline=None)
@given(small)
def test_one_class_is_refused_exactly_when_non_pre_emptive_edf_can_miss(rows):
    """George, Rivierre, Spuri (1996): sporadic tasks keep their deadlines under non-pre-emptive EDF if and only if for
    all t: sum of max(0, floor((t - D) / T) + 1) C + max of C with D > t is at most t."""
    rows = [(c, t, d) for c, t, d in rows if c <= min(t, d)]
    if not rows or sum(c / t for c, t, _ in rows) >= 1:
        return
    demands = [replace(d, priority=0) for d in whole(*rows)]
    end = 2000  # beyond any busy period of these
    feasible = all(
        sum(max(0, (t - d) // p + 1) * c for c, p, d in rows) + max((c for c, _, d in rows if d > t), default=0) <= t
        for t in range(1, end)
        if any(t >= d and (t - d) % p == 0 for c, p, d in rows)
    )
    found = respond(demands)
    if all(r.response is not None for r in found):
        assert all(r.meets for r in found) == feasible


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 5), st.integers(4, 40), st.integers(0, 20), st.integers(0, 6)), min_size=1, max_size=5))
def test_fixed_priorities_equal_the_recurrence(rows):
    """R = B + C + sum of ceil((R + J) / T) C of those above, for R <= T - J: Audsley and others (1993)."""
    if sum(c / t for c, t, _, _ in rows) >= 1:
        return
    demands = [Demand(f"t{i}", -i, c * MS, 1, b * MS or 1, t * MS, j * MS, t * MS) for i, (c, t, j, b) in enumerate(rows)]
    for i, found in enumerate(respond(demands)):
        block = max((b * MS or 1 for _, _, _, b in rows[i + 1 :]), default=0)
        c, t, j, _ = rows[i]
        r = c * MS
        for _ in range(2000):
            r = block + c * MS + sum(-(-(r + jj * MS) // (tt * MS)) * cc * MS for cc, tt, jj, _ in rows[:i])
        if found.response is not None and r <= (t - j) * MS:
            assert abs(found.response - r) <= 2 * len(rows)  # ns: the steps of 1 ns


# ---- what it says


def test_no_rate_no_proof_below_and_a_distance_for_itself():
    tasks = TaskSet((Task("a", 1, (Step(3 * MS),), 0, 10 * MS), Task("b", 2, (Step(1 * MS),), 10 * MS, 5 * MS), Task("c", 0, (Step(MS),), MS * 100)))
    a, b, c = analyse(tasks)
    assert b.response == 4 * MS and b.meets and b.blocking == 3 * MS and "a" in b.culprit
    assert a.response == 5 * MS and a.apart == 5 * MS and not a.meets
    assert c.response is None and "a is released by its source" in c.reason


def test_interference_strikes_inside_a_last_step():
    tasks = TaskSet((Task("a", 1, (Step(9 * MS),), 100 * MS, 20 * MS),), (Interference("irq", 2 * MS, 1 * MS),))
    assert analyse(tasks)[0].response == 18 * MS
    assert play(tasks, [(0, 0)], strikes=strikes(tasks.interference[0], 100 * MS, 0)).response["a"] == 18 * MS


def test_more_work_than_there_is_time_is_said_so():
    tasks = TaskSet((Task("a", 1, (Step(9 * MS),), 10 * MS, 20 * MS), Task("b", 0, (Step(3 * MS),), 10 * MS, 100 * MS)))
    a, b = analyse(tasks)
    assert a.meets and b.response is None and "120% of the processor" in b.reason
