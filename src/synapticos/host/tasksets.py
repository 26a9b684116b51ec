"""Task sets played in virtual time, by the kernel itself: what `syn check` proves is what this must never pass.

    worst = simulate_tasks(tasks)                       # name -> the longest response that was seen, ns

One native kernel, compiled once, plays any number of sets: steps and their times are tables. Every step takes its
longest time. What varies is when jobs are released, and that is chosen to hurt.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from synapticos import lang
from synapticos.analysis.tasks import LATE, Task, TaskSet
from synapticos.errors import UserError
from synapticos.host.virtual import MOST, VirtualKernel, arrivals_of, in_order
from synapticos.kernel import simulate as sim
from synapticos.kernel import tables as rows
from synapticos.kernel.npu import BACKEND_CPU
from synapticos.kernel.timed import timed_model

RATE = 1_000_000_000  # ticks a second: a tick is a nanosecond
LONGEST_STEP = 1 << 31  # ns
NO_ROOM = 1 << 63  # a response: there were more jobs at once than the kernel has slots
FRAME = 16  # bytes of each model's
ARENA = 4096
INPUT = {"size": 4, "ndim": 1, "shape": [4, 0, 0, 0], "dtype": 0, "region": 0}


@dataclass(frozen=True)
class Outcome:
    """What became of one task's jobs."""

    name: str
    worst_ns: int  # of those that ended well, from release to end
    waiting_ns: int  # how long the oldest one that has not ended had been there at the end
    released: int
    finished: int
    late: int  # after their deadline
    refused: int  # there were more jobs at once than the kernel has room for
    cancelled: int


def task_tables(tasks: Sequence[Task]) -> tuple[bytes, bytes]:
    """Tables and containers of an app with a pipeline for each task: one timed model of as many steps."""
    models, pipelines, stages, jobs, containers = b"", b"", b"", b"", b""
    for i, task in enumerate(tasks):
        made = timed_model([(1, 0, [step.ns]) for step in task.steps], name=f"task{i}", frame_bytes=FRAME)
        models += lang.pack(rows.ModelRow, container_at=len(containers), container_bytes=len(made), backend=BACKEND_CPU)
        containers += made + bytes(-len(made) % 16)
        pipelines += lang.pack(rows.PipelineRow, first_stage=i, stages=1)
        stages += lang.pack(rows.StageRow, kind=rows.ROW_MODEL, number=i)
        flags = int(rows.JOB_PREEMPTIBLE) if task.preemptible else 0
        deadline = task.deadline_ns // 1000
        jobs += lang.pack(
            rows.JobRow, pipeline=i, priority=task.priority, flags=flags, late=LATE.index(task.late), deadline_us=deadline
        )
    at, places, out = lang.sizeof(rows.AppHeader), {}, b""
    for name, part in (("jobs_at", jobs), ("models_at", models), ("pipelines_at", pipelines), ("stages_at", stages), ("binds_at", b"")):
        out += bytes(-(at + len(out)) % 8)
        places[name] = at + len(out)
        out += part
    n = len(tasks)
    header = lang.pack(rows.AppHeader, magic=rows.APP_MAGIC, version=rows.APP_VERSION, models=n, pipelines=n, stages=n, jobs=n, **places)
    return bytes(header + out), bytes(containers)


class TaskSetSimulator:
    """A kernel for task sets of up to 16 tasks."""

    def __init__(self, engine: str = "native") -> None:
        self.kernel = VirtualKernel(rate=RATE, engine=engine)
        self._tasks: TaskSet | None = None

    def run(self, tasks: TaskSet, releases: Sequence[Sequence[int]], horizon_ns: int, *, hits: Sequence[Sequence[int]] = (),
            events: list[np.ndarray] | None = None) -> list[Outcome]:  # fmt: skip
        """Play a set: task i is released at each of `releases[i]`, interference i hits at each of `hits[i]` (ns).

        Jobs that are released before `horizon_ns` and end by then are counted. `events` takes all that happens.
        Raises UserError for a set that cannot be played.
        """
        self._check(tasks)
        self.kernel.boot(*task_tables(tasks.tasks), [INPUT] * len(tasks.tasks), arena_bytes=ARENA)
        given = [arrivals_of(ats, horizon_ns, sim.Comes.JOB, target=i) for i, ats in enumerate(releases)]
        given += [
            arrivals_of(ats, horizon_ns, sim.Comes.TAX, value=item.cost_ns)
            for item, ats in zip(tasks.interference, hits, strict=False)
        ]
        arrivals = in_order(given)
        record = 0 if events is None else int(sim.RECORD_JOBS | sim.RECORD_STEPS)
        for piece in self.kernel.run(arrivals, horizon_ns, record=record, idle=tasks.idle_ns):
            if events is not None:
                events.append(piece)
        return [
            Outcome(task.name, *(int(f[name]) for name in ("worst", "waiting", "released", "done", "late", "refused", "cancelled")))
            for task, f in zip(tasks.tasks, self.kernel.figures(), strict=False)
        ]

    def _check(self, tasks: TaskSet) -> None:
        if len(tasks.tasks) > MOST["MAX_PIPELINES"]:
            raise UserError(f"a set of {len(tasks.tasks)} tasks; at most {MOST['MAX_PIPELINES']} are played")
        for task in tasks.tasks:
            for step in task.steps:
                if step.resource != "cpu":
                    raise UserError(f'task "{task.name}": a step on the {step.resource}; only those of the cpu are played')
                if step.ns >= LONGEST_STEP:
                    raise UserError(f'task "{task.name}": a step of {step.ns} ns; at most {LONGEST_STEP - 1} are played')

    def close(self) -> None:
        self.kernel.close()


# ---- when jobs are released


def steady(tasks: TaskSet, offsets: Sequence[int], horizon_ns: int, jitter: np.random.Generator | None = None) -> list[list[int]]:
    """Task i first at `offsets[i]`, then as often as it may; `jitter` shakes each release by up to the task's."""
    out = []
    for task, offset in zip(tasks.tasks, offsets, strict=True):
        if task.period_ns == 0:
            out.append([offset])
            continue
        times = np.arange(offset, horizon_ns, task.period_ns, dtype=np.int64)
        if jitter is not None and task.jitter_ns and not task.sporadic:
            times = np.sort(times + jitter.integers(0, task.jitter_ns + 1, len(times)))
        out.append(times.tolist())
    return out


def burst(task: Task, at: int, horizon_ns: int) -> list[int]:
    """The densest that a task may be from `at` on: its first job as late as jitter lets it, the next ones not at all."""
    if task.period_ns == 0:
        return [at]
    times = at - task.jitter_ns + task.period_ns * np.arange(1, max((horizon_ns - at + task.jitter_ns) // task.period_ns + 1, 1), dtype=np.int64)
    return [at, *np.maximum(times[times < horizon_ns], at).tolist()]


def patterns(tasks: TaskSet, horizon_ns: int, seed: int, count: int) -> Iterator[tuple[list[list[int]], list[list[int]]]]:
    """Releases and hits that are likely to hurt, `count` of them at least.

    All at once, with bursts as dense as jitter allows; all just after a step of each less urgent task has begun; each
    task a little before or after another's step ends; at random.
    """
    rng = np.random.default_rng(seed)
    n = len(tasks.tasks)

    def hits() -> list[list[int]]:
        out = []
        for item in tasks.interference:
            ats = range(0, horizon_ns, item.period_ns)
            first = max(-item.jitter_ns, -item.period_ns)
            out.append([0, *(max(0, at + item.period_ns + first) for at in ats)] if item.jitter_ns else list(ats))
        return out

    yield [burst(task, 0, horizon_ns) for task in tasks.tasks], hits()
    for victim, low in enumerate(tasks.tasks):
        # This one has just begun a step, the longest or the last, when all others come.
        ahead = 0
        longest = max(range(len(low.steps)), key=lambda k: low.steps[k].ns)
        for k in sorted({longest, len(low.steps) - 1, 0}):
            ahead = sum(step.ns for step in low.steps[:k]) + 1
            others = [burst(task, 0 if i == victim else ahead, horizon_ns) for i, task in enumerate(tasks.tasks)]
            yield others, [[at + ahead for at in ats] for ats in hits()]
    for k in range(count):
        shaken = steady(tasks, [int(rng.integers(0, max(task.period_ns, 1))) for task in tasks.tasks], horizon_ns, rng)
        if k % 2:
            at = int(rng.integers(0, max([1, *(task.cost_ns for task in tasks.tasks)])))
            shaken[k % n] = burst(tasks.tasks[k % n], at, horizon_ns)
        shifts = [int(rng.integers(0, item.period_ns)) for item in tasks.interference]
        yield shaken, [[at + shift for at in ats] for ats, shift in zip(hits(), shifts, strict=True)]


def horizon_of(tasks: TaskSet, jobs: int = 20) -> int:
    """Long enough for `jobs` jobs of the rarest task, or for two hyperperiods if those are shorter."""
    periods = [task.period_ns for task in tasks.tasks if task.period_ns] or [sum(task.cost_ns for task in tasks.tasks)]
    hyper = math.lcm(*periods)
    ends = max((task.jitter_ns + task.deadline_ns for task in tasks.tasks), default=0)
    return min(2 * hyper, jobs * max(periods)) + ends + 2 * sum(task.cost_ns for task in tasks.tasks)


_shared: list[TaskSetSimulator] = []


def simulate_tasks(
    tasks: TaskSet, *, seed: int = 0, count: int = 8, horizon_ns: int | None = None, simulator: TaskSetSimulator | None = None
) -> dict[str, int]:
    """The longest response of each task in all `patterns`, in ns: of a job that has not ended, as long as it has waited;
    NO_ROOM where a job found none."""
    if simulator is None:
        if not _shared:
            _shared.append(TaskSetSimulator())
        simulator = _shared[0]
    horizon = horizon_ns or horizon_of(tasks)
    worst: dict[str, int] = {task.name: 0 for task in tasks.tasks}
    for releases, hits in patterns(tasks, horizon, seed, count):
        for outcome in simulator.run(tasks, releases, horizon, hits=hits):
            seen = max(outcome.worst_ns, outcome.waiting_ns) if not outcome.refused else NO_ROOM
            worst[outcome.name] = max(worst[outcome.name], seen)
    return worst


__all__ = ["NO_ROOM", "Outcome", "TaskSetSimulator", "simulate_tasks"]
