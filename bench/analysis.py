"""How tight the proofs of `syn check` are: task sets played by the kernel in virtual time against their bounds.

Two populations, both from a seed. Wide ones: periods over two decades, loads up to 95 %, jitter, interrupts, classes,
jobs that are not pre-emptible; each is released in the ways that are most likely to hurt. Small ones: three tasks with
short periods, of which every combination of offsets is played (to the step, and just before and after one another), so
a set that is refused although no combination misses is refused by the analysis's caution alone.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from synapticos.analysis.response import analyse
from synapticos.analysis.tasks import MS, Interference, Step, Task, TaskSet
from synapticos.host.tasksets import NO_ROOM, TaskSetSimulator, simulate_tasks, steady


def wide(seed: int) -> TaskSet:
    rng = np.random.default_rng([1, seed])
    n = int(rng.integers(2, 7))
    shares = rng.dirichlet(np.ones(n)) * rng.uniform(0.3, 0.95)
    tasks = []
    for i in range(n):
        period = int(10 ** rng.uniform(6, 8)) // 1000 * 1000
        cost = max(int(period * shares[i]), 1000)
        cuts = np.unique(rng.integers(1, cost, int(rng.integers(0, 6))))
        steps = tuple(Step(int(part)) for part in np.diff([0, *cuts, cost]))
        jitter = int(period * rng.uniform(0, 1)) if rng.random() < 0.3 else 0
        deadline = int(period * rng.uniform(0.3, 1.5))
        late = ("finish", "finish", "abort", "skip")[int(rng.integers(0, 4))]
        tasks.append(Task(f"t{i}", int(rng.integers(0, 3)), steps, period, deadline, jitter, preemptible=bool(rng.random() < 0.8), late=late))
    noise = ()
    if rng.random() < 0.4:
        noise = (Interference("irq", int(rng.integers(200_000, 5_000_000)), int(rng.integers(1_000, 50_000))),)
    return TaskSet(tuple(tasks), noise, idle_ns=int(rng.integers(0, 5_000)))


def small(seed: int) -> TaskSet:
    rng = np.random.default_rng([2, seed])
    tasks = []
    for i in range(3):
        period = int(rng.integers(4, 9))
        cost = int(rng.integers(1, 3))
        steps = tuple(Step(MS) for _ in range(cost)) if rng.random() < 0.7 else (Step(cost * MS),)
        deadline = int(rng.integers(cost, period + 2))
        tasks.append(Task(f"t{i}", int(rng.integers(0, 3)), steps, period * MS, deadline * MS, preemptible=bool(rng.random() < 0.8)))
    return TaskSet(tuple(tasks))


def exhaust(kernel: TaskSetSimulator, tasks: TaskSet) -> dict[str, int]:
    """The longest responses over all offsets of the tasks against one another, a nanosecond before and after included."""
    worst = {task.name: 0 for task in tasks.tasks}
    periods = [task.period_ns // MS for task in tasks.tasks]
    horizon = int(np.lcm.reduce(periods)) * 2 * MS
    for offsets in itertools.product(range(1), *(range(p) for p in periods[1:])):
        for order in itertools.permutations(range(3)):
            releases = steady(tasks, [o * MS + k for o, k in zip(offsets, order, strict=True)], horizon)
            for outcome in kernel.run(tasks, releases, horizon + 10 * MS):
                worst[outcome.name] = max(worst[outcome.name], outcome.worst_ns)
    return worst


def figures(wide_sets: int = 1000, small_sets: int = 100) -> dict[str, Any]:
    kernel = TaskSetSimulator()
    ratios: list[float] = []
    above = refused = quiet = unbounded = jobs = 0
    for seed in range(wide_sets):
        tasks = wide(seed)
        bounds, seen = analyse(tasks), simulate_tasks(tasks, seed=seed, count=6, simulator=kernel)
        no = missed = False
        for bound in bounds:
            observed = seen[bound.name]
            jobs += 1
            if bound.response is None:
                unbounded += 1
            elif observed != NO_ROOM:
                above += observed > bound.response
                if tasks.task(bound.name).late == "finish":
                    ratios.append(observed / bound.response)
            no |= not bound.meets
            missed |= observed > tasks.task(bound.name).deadline_ns
        refused += no
        quiet += no and not missed
    cautious = small_refused = exact = small_jobs = 0
    for seed in range(small_sets):
        tasks = small(seed)
        bounds, worst = analyse(tasks), exhaust(kernel, tasks)
        no = any(not b.meets for b in bounds)
        small_refused += no
        cautious += no and not any(worst[t.name] > t.deadline_ns for t in tasks.tasks)
        for b in bounds:
            if b.response is not None:
                above += worst[b.name] > b.response
                small_jobs += 1
                exact += b.response - worst[b.name] < 10
    kernel.close()
    ratios.sort()
    return {
        "sets": wide_sets, "jobs": jobs, "above": above, "median": ratios[len(ratios) // 2], "tenth": ratios[len(ratios) // 10],
        "reached": sum(r > 0.999999 for r in ratios) / len(ratios), "unbounded": unbounded, "refused": refused, "quiet": quiet,
        "small": small_sets, "small_jobs": small_jobs, "exact": exact, "small_refused": small_refused, "cautious": cautious,
    }  # fmt: skip


def rows(f: dict[str, Any]) -> list[list[str]]:
    return [
        ["task sets played", f"{f['sets'] + f['small']:,}"],
        ["responses above their bound", f"{f['above']}"],
        [f"wide sets ({f['sets']:,}, {f['jobs']:,} tasks): observed / bound, median", f"{f['median']:.4f}"],
        ["- the lowest tenth", f"{f['tenth']:.4f}"],
        ["- tasks that reach their bound to a millionth", f"{f['reached']:.1%}"],
        ["- sets refused", f"{f['refused'] / f['sets']:.1%}"],
        ["- of all, refused although nothing was seen to miss", f"{f['quiet'] / f['sets']:.1%}"],
        [f"small sets ({f['small']:,}), all offsets: tasks whose bound is the worst that there is", f"{f['exact'] / f['small_jobs']:.1%}"],
        ["- sets refused", f"{f['small_refused'] / f['small']:.1%}"],
        ["- of all, refused although no combination of offsets misses", f"{f['cautious'] / f['small']:.1%}"],
    ]
