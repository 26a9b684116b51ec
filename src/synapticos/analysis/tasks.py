"""What is known of an app's jobs in time: the plain data that `syn check` proves from and `syn simulate` plays.

All times are whole nanoseconds. A task is a stream of like jobs; a job is its steps, in order. What the kernel itself
does for a step (look who is next, dispatch, hand on, end the job) is part of the step's time, so a step is a whole
`kernel_poll`, and the most urgent job waits for at most one of them. What a release costs whoever is interrupted by it
is interference like any other.

The rules by which these run are the kernel's: higher `priority` first; in a class a half-done job before queued ones,
these by deadline, then by release; a pre-emptible job gives way between steps to a higher class only, another one never.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from synapticos.errors import UserError

Resource = Literal["cpu", "npu"]
Late = Literal["finish", "abort", "skip"]
LATE: tuple[Late, ...] = ("finish", "abort", "skip")
US, MS, SECOND = 1_000, 1_000_000, 1_000_000_000  # ns
MOST_NS = 1 << 31  # of what happens at once: the clock counts it in one go


@dataclass(frozen=True)
class Step:
    """One step, at its longest. On the "npu" the processor is free meanwhile; the job keeps its class's frame."""

    ns: int
    resource: Resource = "cpu"
    layer: int | None = None  # of the job's model; None: a stage
    guaranteed: bool = True  # a bound; False: the most that was seen
    name: str = ""  # for the reader: "conv_2d 3", "stage decode_cells", "nms"


@dataclass(frozen=True)
class Task:
    """A stream of jobs. Its n-th release is no earlier than `phase_ns` + n * `period_ns` and, unless `sporadic`, at most
    `jitter_ns` later; two releases of a sporadic one are at least `period_ns` - `jitter_ns` apart, n + 1 of them at
    least n * `period_ns` - `jitter_ns`. A deadline counts from the job's own release, jitter behind it."""

    name: str
    priority: int  # class, 2 before 1 before 0
    steps: tuple[Step, ...]
    period_ns: int = 0  # 0: nobody has said how often
    deadline_ns: int = 0  # 0: none
    jitter_ns: int = 0
    phase_ns: int = 0  # of the first release; a proof holds for any
    sporadic: bool = False
    preemptible: bool = True
    late: Late = "finish"
    jobs: int = 1  # of one release, one after the other: `steps` are those of all, each has as many

    @property
    def cost_ns(self) -> int:
        """Of all jobs of a release, both resources."""
        return sum(step.ns for step in self.steps)

    @property
    def cpu_ns(self) -> int:
        return sum(step.ns for step in self.steps if step.resource == "cpu")

    @property
    def npu_ns(self) -> int:
        return self.cost_ns - self.cpu_ns

    @property
    def guaranteed(self) -> bool:
        return all(step.guaranteed for step in self.steps)


@dataclass(frozen=True)
class Interference:
    """What takes the processor away at any instant, inside a step too: an interrupt, a thread above ours, a busy flash."""

    name: str
    period_ns: int  # least distance of two
    cost_ns: int  # of one, at most
    jitter_ns: int = 0


@dataclass(frozen=True)
class TaskSet:
    tasks: tuple[Task, ...]
    interference: tuple[Interference, ...] = ()
    idle_ns: int = 0  # a poll that finds nothing: a release can just miss it
    clock_ns: int = 0  # the kernel's deadlines are off by at most this, so two that are nearer may swap
    name: str = ""

    @property
    def utilisation(self) -> float:
        """Of the processor, by what has a rate."""
        jobs = sum(task.cpu_ns / task.period_ns for task in self.tasks if task.period_ns)
        return jobs + sum(item.cost_ns / item.period_ns for item in self.interference)

    def task(self, name: str) -> Task:
        """Raises KeyError."""
        for task in self.tasks:
            if task.name == name:
                return task
        raise KeyError(name)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any] | str) -> TaskSet:
        """What `to_json` gave, or its text. Raises UserError for anything else."""
        try:
            given = json.loads(data) if isinstance(data, str) else data
            tasks = tuple(Task(**{**t, "steps": tuple(Step(**s) for s in t["steps"])}) for t in given["tasks"])
            interference = tuple(Interference(**i) for i in given.get("interference", ()))
            rest = {key: value for key, value in given.items() if key not in ("tasks", "interference")}
            made = cls(tasks, interference, **rest)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise UserError(f"a task set that cannot be read: {error}; `syn check --json` writes one under \"tasks\"") from None
        problems = made.problems()
        if problems:
            raise UserError(f"a task set that cannot be: {problems[0]}")
        return made

    def problems(self) -> list[str]:
        """What of it cannot be: a line each."""
        out: list[str] = []
        names = [task.name for task in self.tasks]
        if not _whole((self.idle_ns, self.clock_ns)) or max(self.idle_ns, self.clock_ns) >= MOST_NS:
            out.append("idle_ns and clock_ns are whole nanoseconds from 0, below 2**31")
        out += [f'task "{name}" is there twice' for name in sorted(set(names)) if names.count(name) > 1]
        for task in self.tasks:
            numbers = (task.period_ns, task.deadline_ns, task.jitter_ns, task.phase_ns, *(step.ns for step in task.steps))
            if not _whole(numbers):
                out.append(f'task "{task.name}": a time that is no whole number of nanoseconds from 0')
            elif task.priority not in (0, 1, 2) or type(task.priority) is not int:
                out.append(f'task "{task.name}": its priority is 0, 1 or 2')
            elif any(step.resource not in ("cpu", "npu") for step in task.steps) or task.late not in LATE:
                out.append(f'task "{task.name}": a step is on the "cpu" or the "npu", late one of {", ".join(LATE)}')
            elif type(task.jobs) is not int or task.jobs < 1 or task.steps != task.steps[: len(task.steps) // task.jobs] * task.jobs:
                out.append(f'task "{task.name}": {task.jobs} jobs of a release, and steps that are not as many times the same')
            elif not task.steps or task.cpu_ns <= 0:
                out.append(f'task "{task.name}": takes no time')
        for item in self.interference:
            if not _whole((item.period_ns, item.cost_ns, item.jitter_ns)) or item.period_ns == 0:
                out.append(f'interference "{item.name}": needs a period above 0 and a cost, in whole nanoseconds')
            elif item.cost_ns >= MOST_NS:
                out.append(f'interference "{item.name}": one takes less than 2**31 ns')
        return out


def _whole(values: Sequence[object]) -> bool:
    return all(type(value) is int and value >= 0 for value in values)


__all__ = ["LATE", "MS", "SECOND", "US", "Interference", "Late", "Resource", "Step", "Task", "TaskSet"]
