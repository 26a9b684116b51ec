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
from synapticos.analysis.tasks import LATE, Step, Task, TaskSet
from synapticos.app.declare import MAX_TIME
from synapticos.errors import UserError
from synapticos.host.virtual import MOST, VirtualKernel, arrivals_of, in_order
from synapticos.kernel import simulate as sim
from synapticos.kernel import tables as rows
from synapticos.kernel.npu import BACKEND_CPU
from synapticos.kernel.tensor import Tensor
from synapticos.kernel.timed import BESIDE, TimedStage, timed_model

RATE = 1_000_000_000  # ticks a second: a tick is a nanosecond
LONGEST_STEP = 1 << 31  # ns
NO_ROOM = 1 << 63  # a response: there were more jobs at once than the kernel has slots
ACCELERATED = {"OFFLOAD": 1, "ACCELERATOR": 1, "RESIDENT_MODELS": 16}
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
    """Tables and containers of an app with a pipeline for each task: one timed model of as many steps. Of a task on the
    accelerator, its model, and stages for what comes before and after. Raises UserError for one that cannot be played."""
    models, pipelines, stages, jobs, containers, configs = b"", b"", b"", b"", b"", b""
    count = 0
    config_at = lang.sizeof(rows.AppHeader)
    for i, task in enumerate(tasks):
        before, steps, after = beside(task)
        away = any(step.resource == "npu" for step in task.steps)
        made = timed_model(steps, name=f"task{i}", beside=away, frame_bytes=FRAME)
        backend = BESIDE if away else BACKEND_CPU
        models += lang.pack(rows.ModelRow, container_at=len(containers), container_bytes=len(made), backend=backend)
        containers += made + bytes(-len(made) % 16)
        pipelines += lang.pack(rows.PipelineRow, first_stage=count, stages=len(before) + 1 + len(after))
        for ns in [*before, None, *after]:
            if ns is None:
                stages += lang.pack(rows.StageRow, kind=rows.ROW_MODEL, number=i)
            else:
                config = lang.pack(TimedStage, ticks=ns, y=lang.pack(Tensor, **INPUT))
                stages += lang.pack(
                    rows.StageRow, kind=rows.ROW_APP, number=0, config_at=config_at + len(configs), config_bytes=len(config), capacity=INPUT["size"]
                )
                configs += config
            count += 1
        flags = int(rows.JOB_PREEMPTIBLE) if task.preemptible else 0
        deadline = task.deadline_ns // 1000
        jobs += lang.pack(
            rows.JobRow, pipeline=i, priority=task.priority, flags=flags, late=LATE.index(task.late), deadline_us=deadline
        )
    at, places, out = lang.sizeof(rows.AppHeader), {}, configs
    for name, part in (("jobs_at", jobs), ("models_at", models), ("pipelines_at", pipelines), ("stages_at", stages), ("binds_at", b"")):
        out += bytes(-(at + len(out)) % 8)
        places[name] = at + len(out)
        out += part
    n = len(tasks)
    header = lang.pack(rows.AppHeader, magic=rows.APP_MAGIC, version=rows.APP_VERSION, models=n, pipelines=n, stages=count, jobs=n, **places)
    return bytes(header + out), bytes(containers)


def beside(task: Task) -> tuple[list[int], list[tuple[int, int, list[int]]], list[int]]:
    """Stages before a task's model, its steps as `timed_model` takes them, and stages after. Without a step on the
    accelerator all are the model's. Between two that are there is one poll, which takes up the one and begins the other:
    half of it each. Raises UserError for any other order."""
    steps = task.steps
    away = [k for k, step in enumerate(steps) if step.resource == "npu"]
    if not away:
        return [], [(1, 0, [step.ns]) for step in steps], []
    if away[0] == 0 or away[-1] + 1 == len(steps) or any(b - a != 2 for a, b in zip(away, away[1:], strict=False)):
        raise UserError(f'task "{task.name}": one step of the processor is to come before, between and after those of the accelerator (npu)')
    before, after = away[0] - 1, away[-1] + 2
    if before + 1 + len(steps) - after > MOST["MAX_PIPELINE_STAGES"]:
        raise UserError(f'task "{task.name}": has more steps around those of the accelerator than are played')
    return [step.ns for step in steps[:before]], beside_steps(steps[before:after]), [step.ns for step in steps[after:]]


def beside_steps(steps: Sequence[Step]) -> list[tuple[int, int, list[int]]]:
    """Those of a model on the accelerator, each between two of the processor, as `timed_model` takes them."""
    last = len(steps) - 2
    made = []
    for k in range(1, len(steps), 2):
        begin = steps[k - 1].ns if k == 1 else steps[k - 1].ns - steps[k - 1].ns // 2
        end = steps[k + 1].ns if k == last else steps[k + 1].ns // 2
        made.append((1, 0, [begin, steps[k].ns, end]))
    return made


class TaskSetSimulator:
    """A kernel for task sets of up to 16 tasks."""

    def __init__(self, engine: str = "native") -> None:
        self.kernel = VirtualKernel(rate=RATE, engine=engine, parameters=MOST)
        self.engine = engine
        self._beside: VirtualKernel | None = None  # with an accelerator

    def run(self, tasks: TaskSet, releases: Sequence[Sequence[int]], horizon_ns: int, *, hits: Sequence[Sequence[int]] = (),
            events: list[np.ndarray] | None = None) -> list[Outcome]:  # fmt: skip
        """Play a set: task i is released at each of `releases[i]`, interference i hits at each of `hits[i]` (ns).

        Jobs that are released before `horizon_ns` and end by then are counted. `events` takes all that happens.
        Raises UserError for a set that cannot be played.
        """
        self._check(tasks)
        chosen = self.kernel
        if any(step.resource == "npu" for task in tasks.tasks for step in task.steps):
            if self._beside is None:
                self._beside = VirtualKernel(rate=RATE, engine=self.engine, parameters=MOST | ACCELERATED)
            chosen = self._beside
        chosen.boot(*task_tables(tasks.tasks), [INPUT] * len(tasks.tasks), arena_bytes=ARENA)
        given = [arrivals_of(ats, horizon_ns, sim.Comes.JOB, target=i) for i, ats in enumerate(releases)]
        given += [
            arrivals_of(ats, horizon_ns, sim.Comes.TAX, value=item.cost_ns)
            for item, ats in zip(tasks.interference, hits, strict=False)
        ]
        arrivals = in_order(given)
        record = 0 if events is None else int(sim.RECORD_JOBS | sim.RECORD_STEPS)
        for piece in chosen.run(arrivals, horizon_ns, record=record, idle=tasks.idle_ns):
            if events is not None:
                events.append(piece)
        return [
            Outcome(task.name, *(int(f[name]) for name in ("worst", "waiting", "released", "done", "late", "refused", "cancelled")))
            for task, f in zip(tasks.tasks, chosen.figures(), strict=False)
        ]

    def _check(self, tasks: TaskSet) -> None:
        if len(tasks.tasks) > MOST["MAX_PIPELINES"]:
            raise UserError(f"a set of {len(tasks.tasks)} tasks; at most {MOST['MAX_PIPELINES']} are played")
        for task in tasks.tasks:
            if task.deadline_ns // 1000 > MAX_TIME:
                raise UserError(f'task "{task.name}": a deadline of {task.deadline_ns} ns; the kernel counts {MAX_TIME} us at most')
            for step in task.steps:
                if step.ns >= LONGEST_STEP:
                    raise UserError(f'task "{task.name}": a step of {step.ns} ns; at most {LONGEST_STEP - 1} are played')

    def close(self) -> None:
        self.kernel.close()
        if self._beside is not None:
            self._beside.close()


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
