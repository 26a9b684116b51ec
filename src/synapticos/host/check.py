"""An app proved before a board exists: does it fit, and does each job keep its deadline?

Memory is what the build has planned: a frame for each class (at most one job of a class is ever half done), results,
states and scratch in the arena; the deepest stack of the call graph; flash as linked. Time is the longest that each
step takes (`measure`, or a profile recorded on a board), and from that the worst response of each job (`analysis`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from synapticos import boards
from synapticos.analysis.advice import Advice, advise
from synapticos.analysis.cycles import EXCEPTION, Timing
from synapticos.analysis.response import Response, analyse
from synapticos.analysis.tasks import MS, US, Interference, Resource, Step, Task, TaskSet
from synapticos.app.declare import PRIORITIES, App, JobDecl
from synapticos.app.image import Image
from synapticos.app.sources import Feed
from synapticos.errors import UserError
from synapticos.host.firmware import Firmware, build_firmware
from synapticos.host.measure import Costed, Events, measure
from synapticos.host.profile import Profile

CLOCK_NS = 2_000  # deadlines are worked out in whole microseconds, of two readings
STAMP_NS = US  # by which a release may be noted too early: in whole microseconds, rounded down


@dataclass(frozen=True)
class Bound:
    """How long a step takes at most, and how that is known."""

    name: str
    ns: int
    how: str  # exact, bound, declared, recorded, stated (by the accelerator); measured is the most that was seen and no bound
    stage: int
    layer: int | None
    why: str = ""  # there is no bound
    resource: Resource = "cpu"

    @property
    def guaranteed(self) -> bool:
        return self.how != "measured"


@dataclass
class Memory:
    """Bytes: what is taken, and what there is."""

    flash: int
    flash_size: int
    ram: int
    ram_size: int
    stack: int
    stack_size: int
    arena: int
    arena_size: int | None  # the app's own budget
    parts: list[tuple[str, int]]  # of the arena
    worst: str  # where most of the largest frame is alive
    stack_path: str
    shortages: list[str]

    @classmethod
    def of(cls, built: Firmware) -> Memory:
        image, app, board = built.image, built.app, built.board
        largest = max(image.pipelines, key=lambda p: p.plan)
        return cls(
            built.sizes["flash"], board.flash.size, built.sizes["ram"], board.ram.size, built.stack.bytes,
            board.stack if app.stack is None else min(app.stack, board.stack), image.arena_bytes, app.ram, arena_parts(image),
            f"pipeline {largest.name}, {largest.worst}", str(built.stack), list(built.shortages),
        )  # fmt: skip


def arena_parts(image: Image) -> list[tuple[str, int]]:
    """What the arena is made of. A class has one frame, so these are all jobs that can be half done at once."""
    out = [("models' state", -(-image.persistent // 16) * 16), ("stages' state", image.states)]
    out.append((f"results of {image.slots} job{'s' if image.slots > 1 else ''}", image.result_bytes * image.slots))
    out.append(("what sources keep", image.before_frames - sum(size for _, size in out)))
    for number in sorted(PRIORITIES, reverse=True):
        if image.frames[number]:
            mine = [p for p in image.pipelines if p.priority == number]
            out.append((f"frame of {PRIORITIES[number]}: {max(mine, key=lambda p: p.plan).name}", image.frames[number]))
    out.append(("scratch of one step", image.scratch))
    return [(name, size) for name, size in out if size]


@dataclass
class Check:
    """What `syn check` says."""

    app: str
    board: str
    timing: Timing
    source: str  # of the times: the cycle model or the profile
    memory: Memory
    tasks: TaskSet
    bounds: dict[str, list[Bound]]  # of each task
    responses: list[Response]
    advice: dict[str, Advice]
    kernel: dict[str, int]  # ns of the kernel's own work
    inputs: int
    notes: list[str] = field(default_factory=list)
    accept_measured: bool = False
    ended: list[str] = field(default_factory=list)  # tasks with a step that may take longer than its watchdog lets it

    def verdict(self, response: Response) -> str:
        """kept, kept as measured, missed, ended (by a watchdog), no bound, or no deadline."""
        task = self.tasks.task(response.name)
        if response.name in self.ended:
            return "ended"
        if not task.deadline_ns:
            return "no deadline" if response.response is not None else "no bound"
        if response.response is None:
            return "no bound"
        if response.response > task.deadline_ns:
            return "missed"
        if response.apart:
            return "no rate"
        return "kept" if self.measured(response.name) is None else "kept as measured"

    def measured(self, name: str) -> str | None:
        """Of the steps that this task's response rests on, one that is measured and not bounded."""
        mine = self.tasks.task(name)
        for task in self.tasks.tasks:
            for bound in self.bounds[task.name]:
                if not bound.guaranteed and (task.priority >= mine.priority or bound.ns >= self._blocking(mine)):
                    return f"{task.name}: {bound.name}"
        return None

    def _blocking(self, mine: Task) -> int:
        return next(r.blocking for r in self.responses if r.name == mine.name)

    @property
    def good(self) -> bool:
        """All fits and all deadlines are kept."""
        fine = ("kept", "no deadline", *(("kept as measured",) if self.accept_measured else ()))
        late = [r for r in self.responses if r.deadline and self.verdict(r) not in fine]
        return not self.memory.shortages and not late and not self.ended

    def to_json(self) -> dict[str, Any]:
        jobs = []
        for r in self.responses:
            task = self.tasks.task(r.name)
            advice = self.advice.get(r.name)
            jobs.append(
                {
                    "job": r.name, "class": PRIORITIES[r.priority], "period_ns": task.period_ns, "deadline_ns": r.deadline,
                    "verdict": self.verdict(r), "response_ns": r.response, "start_ns": r.start, "slack_ns": r.slack, "cost_ns": r.cost,
                    "blocking_ns": r.blocking, "blocked_by": r.culprit, "waits_for": [{"what": n, "ns": t} for n, t in r.others],
                    "reason": r.reason, "releases_apart_ns": r.apart or None,
                    "would_do": {"deadline_ns": advice.deadline, "max_step_ns": advice.max_step, "speed": advice.speed} if advice else None,
                    "steps": [{"name": b.name, "ns": b.ns, "how": b.how, "stage": b.stage, "layer": b.layer, "why": b.why, "resource": b.resource} for b in self.bounds[r.name]],
                }
            )  # fmt: skip
        m = self.memory
        return {
            "app": self.app, "board": self.board, "good": self.good, "timing": self.timing.to_json(), "times_from": self.source,
            "memory": {
                "flash": m.flash, "flash_size": m.flash_size, "ram": m.ram, "ram_size": m.ram_size, "stack": m.stack,
                "stack_size": m.stack_size, "arena": m.arena, "arena_budget": m.arena_size,
                "arena_parts": [{"what": n, "bytes": b} for n, b in m.parts], "worst": m.worst, "stack_path": m.stack_path, "shortages": m.shortages,
            },
            "utilisation": self.tasks.utilisation, "kernel_ns": self.kernel, "inputs": self.inputs, "jobs": jobs,
            "tasks": self.tasks.to_json(), "notes": self.notes,
        }  # fmt: skip


def check_app(
    app: App, board_name: str, timing: Timing, *, profile: Profile | None = None, interference: list[Interference] | None = None,
    files: dict[str, Path] | None = None, accept_measured: bool = False, compiler: str | None = None,
    advance: Callable[[], None] = lambda: None,
) -> Check:  # fmt: skip
    """Raises UserError for an app that cannot be built at all; what does not fit or comes too late is in the Check."""
    board = boards.find(board_name)
    built = build_firmware(app, board_name, compiler, profile=False, enforce=False)
    advance()
    image, costed = measure(app, timing, board_name, files=files, compiler=compiler, advance=advance)
    if profile is not None and any(model.on == "npu" for model in app.models):
        raise UserError(f'app "{app.name}": has a model on the accelerator, whose times a profile does not tell apart; leave out --profile')
    if profile is not None:
        profile.fits(app, {name: len(steps) for name, steps in costed.steps.items()})
    kernel = {
        "waking, and a poll that finds nothing": timing.ns(costed.idle + costed.rest + costed.doze + costed.look + costed.npu_interrupt),
        "a full table, each step": timing.ns(costed.crowd),
        "setting a job aside and resuming it": timing.ns(costed.resume),
        "an end, if another of the job waits": timing.ns(costed.stirred + max(events.begun for events in costed.jobs)),
    }
    names = task_names(app)
    bounds: dict[str, list[Bound]] = {}
    tasks = []
    for job, events, name in zip(app.jobs, costed.jobs, names, strict=True):
        bounds[name] = step_bounds(job, costed, profile)
        tasks.append(_task(name, job, events, bounds[name], costed))
    ended = []
    for job, name in zip(app.jobs, names, strict=True):
        limits = next(p.watchdogs for p in image.pipelines if p.name == job.pipeline.name)
        for bound in bounds[name]:
            if bound.resource == "cpu" and 0 < limits[bound.stage] * US < bound.ns:
                costed.notes.append(f"{name}: {bound.name} may take {bound.ns / US:,.0f} us, and its watchdog ends the job after {limits[bound.stage]:,} us; raise watchdog=")
                ended.append(name)
    if costed.look:
        kernel["the accelerator's news, each step"] = timing.ns(costed.look + costed.npu_interrupt)
    everything = [*_declared(app), *(interference or [])]
    if not board.timer:  # its clock is SysTick's exception, each millisecond
        everything.append(Interference("the board's clock", MS, timing.ns(costed.tick)))
    made = TaskSet(tuple(tasks), tuple(everything), kernel["waking, and a poll that finds nothing"], CLOCK_NS, app.name)
    problems = made.problems()
    if problems:
        raise UserError(f'app "{app.name}": {problems[0]}')
    releases, data = release_costs(app, costed), data_costs(app, image, costed)
    kernel |= {f"a release of {name}": ns for name, ns in zip(names, releases, strict=True)} | {f"data of {one.name}": one.cost_ns for one in data}
    made, responses = follow(app, made, releases, data)
    responses = [from_stamp(job, response) for job, response in zip(app.jobs, responses, strict=True)]
    advice = {
        r.name: advise(made, r.name) for r in responses if r.deadline and made.task(r.name).period_ns and (r.response is None or r.response > r.deadline)
    }
    for job, name in zip(app.jobs, names, strict=True):
        enough = advice[name].deadline if name in advice else None
        if job.released and enough is not None:
            advice[name] = replace(advice[name], deadline=enough + STAMP_NS)
    source = str(timing) if profile is None else f"profile of {profile.where}"
    return Check(
        app.name, board.name, timing, source, Memory.of(built), made, bounds, responses, advice, kernel, costed.inputs, costed.notes, accept_measured, ended
    )  # fmt: skip


@dataclass(frozen=True)
class Data:
    """What a source gives, once: what handing it in and seeing it takes. `parent`: the job that leaves it, for a front end's."""

    name: str
    cost_ns: int
    period_ns: int  # 0: nobody says
    jitter_ns: int = 0
    parent: int | None = None


def release_costs(app: App, costed: Costed) -> list[int]:
    """ns that one release of each job takes in all, steps aside: of who posts it, and in polls of the kernel (`measure.Events`)."""
    out = []
    for job, events in zip(app.jobs, costed.jobs, strict=True):
        cycles = events.begun + events.late + events.boxes
        if not job.released:
            cycles += costed.post + EXCEPTION
        elif job.late != "finish":
            cycles += costed.stirred  # the look for what waits, after an end by the deadline: in anybody's poll
        if job.every:
            cycles += events.due
        out.append(costed.timing.ns(cycles) * _together(job))
    return out


def data_costs(app: App, image: Image, costed: Costed) -> list[Data]:
    """Of each source that the kernel keeps. One of which nobody says how often it gives does so as often as it is read."""
    out = []
    for feed, events in zip(image.feeds, costed.feeds, strict=True):
        source = feed.source
        if isinstance(source, Feed):
            parent = next(i for i, job in enumerate(app.jobs) if job.pipeline is source.pipeline)
            out.append(Data(source.name, costed.timing.ns(events.arrived), source.period_us * US, 0, parent))
            continue
        readers = [job for job in app.jobs if source in job.pipeline.source.members]
        every = source.period_us or min((job.every for job in readers if job.every), default=0)
        jitter = max((job.jitter for job in readers if job.on is source), default=0)
        out.append(Data(source.name, costed.timing.ns(events.pushed + EXCEPTION + events.arrived), every * US, jitter * US))
    return out


def follow(app: App, tasks: TaskSet, releases: Sequence[int], data: Sequence[Data] = ()) -> tuple[TaskSet, list[Response]]:
    """With releases and data as interference, and with jobs that others release: as often as these end, so as late as they may.

    The jitter of such a job is its parent's jitter and worst response, which depends on the jitters in turn: from none on
    they are raised until nothing changes (K. Tindell, J. Clark, "Holistic schedulability analysis for distributed hard
    real-time systems", Microprocessing and Microprogramming 40, 1994). Without an end, or behind a parent that has no
    bound, such a job has no rate; but its releases are no nearer than its parent's jobs, which run one after the other.
    """
    parents = [_parent(app, job) for job in app.jobs]
    found = list(tasks.tasks)
    before: list[Response] | None = None
    responses: list[Response] = []
    attempt = 0
    while before != responses:
        attempt += 1
        items = [
            (f"releases of {task.name}", cost, task.period_ns, task.jitter_ns, parent)
            for task, cost, parent in zip(found, releases, parents, strict=True)
        ]
        for one in data:
            period, jitter = one.period_ns, one.jitter_ns
            if one.parent is not None:
                ended = responses[one.parent] if responses else None
                open_end = attempt > 30 or (ended is not None and (ended.response is None or ended.apart != 0))
                period = 0 if open_end or not found[one.parent].period_ns else period
                jitter = found[one.parent].jitter_ns + ((ended.response or 0) if ended is not None else 0)
            items.append((f"data of {one.name}", one.cost_ns, period, jitter, one.parent))
        made_of = []
        for name, cost, period, jitter, parent in items:
            if not period and parent is not None:
                period, jitter = found[parent].cpu_ns, 0
            if cost and period:
                made_of.append(Interference(name, period, cost, jitter))
        made = replace(tasks, tasks=tuple(found), interference=(*tasks.interference, *made_of))
        before, responses = responses, analyse(made)
        for i, parent in enumerate(parents):
            if parent is None or not found[i].period_ns:
                continue
            response = responses[parent].response
            if response is None or responses[parent].apart or attempt > 30:
                found[i] = replace(found[i], period_ns=0)
            else:
                found[i] = replace(found[i], jitter_ns=found[parent].jitter_ns + response)
    return made, responses


def from_stamp(job: JobDecl, found: Response) -> Response:
    """The same, counted as deadlines are: from the release as the kernel notes it."""
    if not job.released or found.response is None or found.start is None:
        return found
    return replace(found, response=found.response + STAMP_NS, start=found.start + STAMP_NS)


def _parent(app: App, job: JobDecl) -> int | None:
    """The job whose results release this one."""
    pipeline = job.cascade.detector if job.cascade is not None else getattr(job.on, "pipeline", None)
    return next((i for i, other in enumerate(app.jobs) if other.pipeline is pipeline), None) if pipeline is not None else None


def _together(job: JobDecl) -> int:
    """Jobs of one release: a cascade's boxes."""
    return job.cascade.most if job.cascade is not None else 1


def task_names(app: App) -> list[str]:
    """Of each job: its pipeline's name, with a number where that has several."""
    seen: dict[str, int] = {}
    out = []
    for job in app.jobs:
        seen[job.pipeline.name] = seen.get(job.pipeline.name, 0) + 1
        out.append(job.pipeline.name if seen[job.pipeline.name] == 1 else f"{job.pipeline.name}_{seen[job.pipeline.name]}")
    return out


def step_bounds(job: JobDecl, costed: Costed, profile: Profile | None) -> list[Bound]:
    """Each step of a job: by the profile if there is one, else by what was counted. A declared cost says what no count can."""
    out = []
    for number, step in enumerate(costed.steps[job.pipeline.name]):
        if step.npu_ns:
            out.append(Bound(step.name, step.npu_ns, "stated", step.stage, step.layer, resource="npu"))
            continue
        declared = job.pipeline.steps[step.stage].cost_us * US
        ns, how = costed.timing.ns(step.most), "exact"
        if not step.exact and step.bound is not None:
            ns, how = costed.timing.ns(step.bound), "bound"
        elif not step.exact:
            how = "measured"
        if profile is not None:
            # What it took on the board, and as much more as the longest way is longer than the longest that was seen.
            more = (step.bound or 0) / step.most if how == "bound" else 1
            ns, how = round(profile.ns(job.pipeline.name, number) * max(more, 1)), "measured" if how == "measured" else "recorded"
        if declared:
            if declared < costed.timing.ns(step.most):
                raise UserError(
                    f'pipeline "{job.pipeline.name}": {step.name} took {ns / 1000:,.0f} us, more than its declared cost of {declared // US:,} us; raise cost_us'
                )
            ns, how = declared, "declared"
        out.append(Bound(step.name, ns, how, step.stage, step.layer, step.why if how == "measured" else ""))
    return out


def _task(name: str, job: JobDecl, events: Events, bounds: list[Bound], costed: Costed) -> Task:
    """Each step of the processor with all that the kernel may have to do in it beside: one piece of work of the accelerator
    may end in any, and one that it begins itself as well. As a job ends, the kernel looks for what waits, and the next one
    may begin: of jobs of lower classes, and of later ones, only that whose step is in the way can end before, so this is
    its last step's; but for those that their deadline ends, whose releases have it (`release_costs`)."""
    extra = costed.timing.ns(costed.crowd + costed.look + costed.npu_interrupt)
    begun = costed.timing.ns(costed.npu_interrupt)
    first = costed.timing.ns(costed.resume)  # a job that sets another aside pays for it
    last = costed.timing.ns(costed.stirred + events.begun) if job.released else 0
    steps = []
    for i, bound in enumerate(bounds):
        ns = bound.ns
        if bound.resource == "cpu":
            begins = i + 1 < len(bounds) and bounds[i + 1].resource == "npu"
            ns += extra + (first if i == 0 else 0) + (begun if begins else 0) + (last if i + 1 == len(bounds) else 0)
        steps.append(Step(ns, bound.resource, bound.layer, bound.guaranteed, bound.name))
    return Task(
        name, job.priority, tuple(steps) * _together(job), job.period_us * US, job.deadline * US, job.jitter * US, job.phase * US,
        preemptible=job.preemptible, late=job.late, jobs=_together(job),  # type: ignore[arg-type]
    )  # fmt: skip


def _declared(app: App) -> list[Interference]:
    return [Interference(name, every * US, cost * US) for name, every, cost in app.interferences]


