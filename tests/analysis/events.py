"""The kernel's scheduling rules as an event simulation of their own, exact to the nanosecond.

Written from the rules and not from the analysis: classes, half-done first, deadline, release; steps; one frame a class;
an accelerator that one job owns, given back after
each operation by a job that is pre-emptible, else with its last; before each operation comes a step that begins it. Everything that the outside decides (when a job
is released, how long a step takes, when interference strikes, how long an idle poll still takes) comes from the caller.
"""

import heapq
from dataclasses import dataclass, field

from synapticos.analysis.tasks import Interference, TaskSet

NEVER = 1 << 62


@dataclass
class Running:
    task: int
    release: int
    sequence: int
    priority: int
    deadline: int
    step: int = 0
    begun: bool = False
    waits: bool = False  # for the accelerator, in line for it or served
    line: bool = False
    started: int = -1

    @property
    def urgency(self):
        return (-self.priority, not self.begun, self.deadline, self.sequence)


@dataclass
class Seen:
    """Of each task: the worst response and start, jobs that ended, misses, jobs ended or skipped by their policy."""

    response: dict[str, int] = field(default_factory=dict)
    start: dict[str, int] = field(default_factory=dict)
    ended: dict[str, int] = field(default_factory=dict)
    misses: dict[str, int] = field(default_factory=dict)
    dropped: dict[str, int] = field(default_factory=dict)
    unfinished: int = 0


class Steals:
    """Interference as given instants: how much of the processor is gone in a stretch of work."""

    def __init__(self, strikes):
        self.strikes = sorted(strikes)  # (when, cost)
        self.at = 0
        self.until = 0  # what came while nothing ran is served until then

    def work(self, start: int, ns: int) -> int:
        """When `ns` of work begun at `start` is done."""
        while self.at < len(self.strikes) and self.strikes[self.at][0] <= start:
            when, cost = self.strikes[self.at]
            self.until = max(self.until, when) + cost
            self.at += 1
        end = max(start, self.until) + ns
        while self.at < len(self.strikes) and self.strikes[self.at][0] < end:
            end += self.strikes[self.at][1]
            self.at += 1
        return end


def play(tasks: TaskSet, releases, *, strikes=(), length=lambda task, step: step.ns, idle=lambda: 0, horizon=NEVER) -> Seen:
    """Play `releases`, pairs of a time and a task's number. `length` says how long a step takes, `idle` how much of an
    idle poll is left when a job comes. Jobs are run to their ends unless that is after `horizon`."""
    seen = Seen()
    coming = sorted((at, n, task) for n, (at, task) in enumerate(releases))
    next_coming, now = 0, 0
    ready: list[Running] = []
    current: Running | None = None
    frames: dict[int, Running] = {}
    npu_owner: Running | None = None
    npu_ends: list[tuple[int, int, Running]] = []
    steals = Steals(strikes)

    def admit(until: int) -> None:
        nonlocal next_coming
        while next_coming < len(coming) and coming[next_coming][0] <= until:
            at, _, number = coming[next_coming]
            task = tasks.tasks[number]
            deadline = at + task.deadline_ns if task.deadline_ns else NEVER
            ready.append(Running(number, at, next_coming, task.priority, deadline))
            next_coming += 1

    def look(at: int) -> None:
        """In a poll: an operation that has ended by `at` leaves its job ready; a pre-emptible one gives the accelerator back."""
        while npu_ends and npu_ends[0][0] <= at:
            _, _, job = heapq.heappop(npu_ends)
            job.waits = False
            job.step += 1
            if tasks.tasks[job.task].preemptible:
                leave()

    def leave() -> None:
        nonlocal npu_owner
        npu_owner = None
        for job in ready:
            if job.line:
                job.line = job.waits = False

    def uses(job: Running, step: int) -> bool:
        steps = tasks.tasks[job.task].steps
        return step < len(steps) and steps[step].resource == "npu"

    def end(job: Running, at: int, dropped: bool = False) -> None:
        nonlocal current
        name = tasks.tasks[job.task].name
        ready.remove(job)
        if frames.get(job.priority) is job:
            del frames[job.priority]
        if current is job:
            current = None
        if npu_owner is job:
            leave()
        if dropped:
            seen.dropped[name] = seen.dropped.get(name, 0) + 1
            return
        seen.ended[name] = seen.ended.get(name, 0) + 1
        seen.response[name] = max(seen.response.get(name, 0), at - job.release)
        if at > job.deadline:
            seen.misses[name] = seen.misses.get(name, 0) + 1

    while now < horizon:
        admit(now)
        look(now)
        for job in list(ready):
            task = tasks.tasks[job.task]
            left = sum(s.ns for s in task.steps)
            if task.late == "abort" and job.deadline < now and not job.waits:
                end(job, now, dropped=True)
            elif task.late == "skip" and not job.begun and job.deadline < now + left:
                end(job, now, dropped=True)
        can = [j for j in ready if not j.waits and (j.begun or j.priority not in frames)]
        if current is not None and not current.waits and not tasks.tasks[current.task].preemptible and current in can:
            job = current
        elif can:
            job = min(can, key=lambda j: j.urgency)
        else:
            later = [at for at, *_ in npu_ends[:1]] + [at for at, *_ in coming[next_coming : next_coming + 1]]
            if not later:
                break
            now = min(later) + idle()
            continue
        task = tasks.tasks[job.task]
        step = task.steps[job.step]
        if not job.begun:
            job.begun = True
            frames[job.priority] = job
            seen.start[task.name] = max(seen.start.get(task.name, 0), now - job.release)
        current = job
        asks = uses(job, job.step + 1)
        if asks and npu_owner is None:
            npu_owner = job
        had = npu_owner is job
        now = steals.work(now, length(task, step))
        if asks and not had:
            job.waits = job.line = True  # it looked in vain, and will look again
            current = None
            continue
        job.step += 1
        if job.step == len(task.steps):
            end(job, now)
            continue
        if asks:
            job.waits = True
            current = None
            heapq.heappush(npu_ends, (now + length(task, task.steps[job.step]), job.sequence, job))
        elif had and not any(uses(job, i) for i in range(job.step, len(task.steps))):
            leave()
    seen.unfinished = len(ready)
    return seen


def periodic(tasks: TaskSet, horizon: int, offsets, jitter=lambda task: 0):
    """Releases of all tasks up to a time: the n-th at offset + n * period + jitter."""
    out = []
    for number, (task, offset) in enumerate(zip(tasks.tasks, offsets, strict=True)):
        at = offset
        while at < horizon:
            out.append((at + jitter(task), number))
            if not task.period_ns:
                break
            at += task.period_ns
    return out


def strikes(interference: Interference, horizon: int, offset: int, jitter=lambda: 0):
    return [(at + jitter(), interference.cost_ns) for at in range(offset, horizon, interference.period_ns)]
