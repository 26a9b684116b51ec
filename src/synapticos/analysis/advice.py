"""What would make a job meet its deadline: a later deadline, or shorter steps of those that block it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from synapticos.analysis.response import Demand, Level, Response, demand
from synapticos.analysis.tasks import TaskSet


@dataclass(frozen=True)
class Advice:
    """Either may be None: it would not help."""

    deadline: int | None  # ns: the least that it keeps, all else as it is
    max_step: int | None  # ns: if no step of a lower class took longer
    speed: float | None  # times as fast a core, all of whose steps take so much less


def advise(tasks: TaskSet, name: str) -> Advice:
    """Of a task that has a deadline and a rate and may miss. Raises KeyError for a name that is not there."""
    demands = [demand(task) for task in tasks.tasks]
    mine = next(d for d in demands if d.name == name)
    return Advice(_deadline(tasks, demands, mine), _max_step(tasks, demands, mine), _speed(tasks, name))


def _answer(tasks: TaskSet, demands: Sequence[Demand], mine: Demand) -> Response:
    return Level(demands, mine.priority, tasks.interference, tasks.idle_ns, tasks.clock_ns).response(mine)


def _deadline(tasks: TaskSet, demands: list[Demand], mine: Demand) -> int | None:
    """A later deadline lets others of the class go first, so it is asked again until it holds."""
    deadline = mine.deadline
    for _ in range(64):
        with_it = replace(mine, deadline=deadline)
        found = _answer(tasks, [with_it if d is mine else d for d in demands], with_it)
        if found.response is None or found.apart:
            return None
        if found.response <= deadline:
            return deadline
        deadline = found.response
    return None


def _speed(tasks: TaskSet, name: str) -> float | None:
    """Of the processor; the accelerator and interference stay as they are."""

    def meets(percent: int) -> bool:
        faster = [
            replace(task, steps=tuple(replace(s, ns=-(-s.ns * 100 // percent)) if s.resource == "cpu" else s for s in task.steps))
            for task in tasks.tasks
        ]
        demands = [demand(task) for task in faster]
        return _answer(tasks, demands, next(d for d in demands if d.name == name)).meets

    least, most = 100, 6400
    if not meets(most):
        return None
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (least, middle) if meets(middle) else (middle, most)
    return most / 100


def _max_step(tasks: TaskSet, demands: list[Demand], mine: Demand) -> int | None:
    below = [d.section for d in demands if d.priority < mine.priority]
    if not below:
        return None

    def meets(step: int) -> bool:
        cut = [replace(d, section=min(d.section, step)) if d.priority < mine.priority else d for d in demands]
        return _answer(tasks, cut, mine).meets

    least, most = 0, max(below)
    if not meets(least):
        return None
    while most - least > max(1, most // 1000):
        middle = (least + most) // 2
        if meets(middle):
            least = middle
        else:
            most = middle
    return least or None
