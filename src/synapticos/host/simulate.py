"""`syn simulate`: hours of an app in seconds. The app's own kernel, tables and jobs, with time that only moves when spent.

Every step takes the longest that `syn check` knows of it; what sources give, and interrupts, comes from a list that a seed
makes, or that was recorded. The kernel does all else as on a board: it releases, queues, drops, pre-empts and counts.
Steps compute nothing, so what depends on data (how many boxes there are) is at its most.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from synapticos import lang
from synapticos.analysis.tasks import Step, TaskSet
from synapticos.app.declare import App
from synapticos.app.image import Image, compile_app, tensor_fields
from synapticos.app.sources import Feed, Source
from synapticos.errors import KernelError, UserError
from synapticos.host.files import write_files
from synapticos.host.tasksets import ACCELERATED, beside_steps
from synapticos.host.timeline import JobSpan, StepSpan
from synapticos.host.virtual import ARRIVAL, EVENTS, LEAD, VirtualKernel, arrivals_of, in_order
from synapticos.kernel import simulate as sim
from synapticos.kernel import tables as rows
from synapticos.kernel.npu import BACKEND_CPU
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import Tensor
from synapticos.kernel.timed import BESIDE, TimedStage, timed_model

RATE = 1_000_000_000  # ticks a second: a tick is a nanosecond
PIECE = 4 * LEAD  # ns of arrivals that are made at once
LONGEST_STEP = 1 << 31  # ns
LONGEST = 1 << 60  # ns, of a simulation
AT_ONCE = 20_000_000  # arrivals that are held at the same time, at most
US = 1_000
OK, TIMEDOUT, CANCELED = int(Status.OK), int(Status.TIMEDOUT), int(Status.CANCELED)
Costs = dict[str, dict[tuple[int, int | None], list[Step]]]  # of each pipeline: each step of a stage, or of its model's layer


# ---- the app's tables, with times in place of work


def costs_of(tasks: TaskSet, places: Mapping[str, Sequence[tuple[int, int | None]]]) -> Costs:
    """What `syn check` says of each step: `places` has stage and layer of each step of one job of each task."""
    out: Costs = {}
    for task in tasks.tasks:
        own = out.setdefault(task.name, {})
        for step, place in zip(task.steps[: len(task.steps) // task.jobs], places[task.name], strict=True):
            if step.ns >= LONGEST_STEP:
                raise UserError(f'"{task.name}": {step.name or "a step"} takes {step.ns / 1e9:.1f} s; a step of at most 2 s can be simulated')
            own.setdefault(place, []).append(step)
    return out


def agree(image: Image, costs: Costs) -> bool:
    """Do these costs have each step of each job of the app, and no other of them?"""
    jobs = {job.pipeline.name for job in image.app.jobs}
    for p in image.pipelines:
        if p.name not in jobs:
            continue
        models = {(k, i) for k, step in enumerate(p.steps) if step.model is not None for i in range(len(step.model.compiled.info.layers))}
        stages = {(k, None) for k, step in enumerate(p.steps) if step.model is None and step.kind != "part"}
        parts = {(k, None) for k, step in enumerate(p.steps) if step.kind == "part"}
        known = set(costs.get(p.name, {}))
        if not models | stages <= known <= models | stages | parts:
            return False
    return jobs <= set(costs)


def timed_tables(image: Image, costs: Costs) -> tuple[bytes, bytes]:
    """The app's tables and containers: each stage and each model spends its time. All other rows are as they were.

    Raises UserError for a pipeline of which nothing is known.
    """
    tables = bytearray(image.tables)
    header = lang.unpack(rows.AppHeader, image.tables)
    models: dict[int, list[tuple[int, int, list[int]]]] = {}
    needs: dict[int, Any] = {}
    extra = b""
    at = header["stages_at"]
    for p in image.pipelines:
        known = costs.get(p.name)
        if known is None:
            raise UserError(f'pipeline "{p.name}": has no job, so nobody knows how long it takes')
        carried = 0
        for k, step in enumerate(p.steps):
            row = lang.unpack(rows.StageRow, bytes(tables), at)
            if step.model is not None:
                layers = [known[k, i] for i in range(len(step.model.compiled.info.layers))]
                if step.model.on == "npu":
                    steps = beside_steps([call for calls in layers for call in calls])
                else:
                    steps = [(len(calls), 1 if len(calls) > 1 else 0, [call.ns for call in calls]) for calls in layers]
                steps[0][2][0] += carried
                number = row["number"]
                before = models.get(number)
                models[number] = _longest(before, steps) if before else steps
                needs[number] = step.model
                carried = 0
            elif step.kind == "part":
                carried += sum(call.ns for call in known.get((k, None), []))
            else:
                spec = step.outputs[0]
                tensor = tensor_fields(spec)
                stage = lang.pack(TimedStage, ticks=known[k, None][0].ns + carried, y=lang.pack(Tensor, **tensor))
                row |= {"kind": rows.ROW_APP, "number": 0, "config_at": len(tables) + len(extra), "config_bytes": len(stage)}
                extra += stage
                tables[at : at + rows.STAGE_ROW] = lang.pack(rows.StageRow, **row)
                carried = 0
            at += int(rows.STAGE_ROW)
    if len(tables) % 4:
        raise AssertionError("configurations begin at a multiple of 4")
    containers = b""
    for number, model in enumerate(image.app.models):
        compiled = model.compiled
        away = model.on == "npu"
        made = timed_model(
            models.get(number, [(1, 0, [0, 0, 0] if away else [0])]), [{k: int(v) if k in ("size", "dtype", "ndim") else v for k, v in tensor_fields(spec).items()} for spec in model.outputs],
            name=model.name, beside=away, frame_bytes=compiled.frame_bytes, scratch_bytes=compiled.scratch_bytes,
            persistent_bytes=int(getattr(compiled, "persistent_bytes", 0)), input_bytes=model.input_bytes,
        )  # fmt: skip
        place = header["models_at"] + number * int(rows.MODEL_ROW)
        row = lang.unpack(rows.ModelRow, bytes(tables), place) | {"container_at": len(containers), "container_bytes": len(made)}
        row["backend"] = BESIDE if away else BACKEND_CPU
        tables[place : place + int(rows.MODEL_ROW)] = lang.pack(rows.ModelRow, **row)
        containers += made + bytes(-len(made) % 16)
    return bytes(tables) + extra, containers


def _longest(a: Any, b: Any) -> Any:
    """Of a model that two pipelines run: each step as long as the longer says. On the accelerator one may load it more often."""
    if len(a) != len(b):
        return max(a, b, key=len)
    return [(rows_, tile, [max(x, y) for x, y in zip(one, other, strict=True)]) for (rows_, tile, one), (_, _, other) in zip(a, b, strict=True)]


# ---- what comes from outside


@dataclass(frozen=True)
class Rate:
    """How often something comes that the app does not say: microseconds, and by how much later than even it may be."""

    name: str
    every_us: Fraction
    jitter_us: int = 0

    @classmethod
    def parse(cls, text: str) -> Rate:
        """`NAME=EVERY` or `NAME=EVERY/JITTER`, in microseconds."""
        found = re.fullmatch(r"(\w+)=(\d{1,10})(?:/(\d{1,10}))?", text)
        if not found or int(found[2]) == 0:
            raise UserError(f"--rate {text}: NAME=EVERY or NAME=EVERY/JITTER in whole microseconds, like front=500000/2000")
        return cls(found[1], Fraction(int(found[2])), int(found[3] or 0))


@dataclass(frozen=True)
class Stream:
    """One thing that comes again and again: the n-th at `phase` + n * `every`, up to `jitter` later (ns)."""

    name: str
    kind: sim.Comes
    every: Fraction
    phase: int = 0
    jitter: int = 0
    target: int = 0
    value: int = 0

    def between(self, begin: int, end: int, rng: np.random.Generator) -> np.ndarray:
        """Its arrivals whose even time is in [begin, end)."""
        first = max(-((self.phase - begin) // self.every), 0) if begin > self.phase else 0
        count = max(-((self.phase - end) // self.every) - first, 0)
        n = np.arange(int(first), int(first) + int(count), dtype=object if self.every.denominator != 1 else np.int64)
        if self.every.denominator != 1:
            even = np.array([self.phase + int(k * self.every) for k in n], np.int64)
        else:
            even = self.phase + n * int(self.every)
        if self.jitter:
            even = even + rng.integers(0, self.jitter + 1, len(even))
        return arrivals_of(even, 1 << 63, self.kind, target=self.target, value=self.value)


def streams(image: Image, tasks: TaskSet, rates: Sequence[Rate]) -> list[Stream]:
    """Sources that feed the kernel, jobs that somebody submits, and interrupts.

    Raises UserError if a rate names nothing, or nothing at all comes.
    """
    app = image.app
    wanted = {rate.name: rate for rate in rates}
    out: list[Stream] = []
    for feed in image.feeds:
        source = feed.source
        if isinstance(source, Feed):
            continue  # the kernel fills it
        jitter = max((job.jitter for job in app.jobs if job.on is source), default=0)
        rate = wanted.pop(source.name, None)
        every = rate.every_us * US if rate else _period_ns(source)
        if every == 0:
            # Read by the clock, and nobody says how often it gives something: as often as it is read.
            every = Fraction(min((job.every * US for job in app.jobs if job.every and source in job.pipeline.source.members), default=0))
        if every == 0:
            raise UserError(f'source "{source.name}": nobody says how often it gives something; say every= in the app, or --rate {source.name}=MICROSECONDS')
        out.append(Stream(source.name, sim.Comes.PUSH, every, 0, (rate.jitter_us if rate else jitter) * US, feed.number, source.hop_bytes))
    for p in image.pipelines:
        job = next((job for job in app.jobs if job.pipeline.name == p.name), None)
        if job is not None and not job.released and p.name in wanted:
            rate = wanted.pop(p.name)
            out.append(Stream(p.name, sim.Comes.JOB, rate.every_us * US, 0, rate.jitter_us * US, p.number))
    if wanted:
        names = [*(f.source.name for f in image.feeds if not isinstance(f.source, Feed)), *(j.pipeline.name for j in app.jobs if not j.released)]
        raise UserError(f"--rate {next(iter(wanted))}: is no source and no job that somebody submits; there {'are ' + ', '.join(names) if names else 'is none'}")
    if not out and not any(job.every for job in app.jobs):
        name = app.jobs[0].pipeline.name if app.jobs else "JOB"
        raise UserError(f'app "{app.name}": nothing releases its jobs; say every= or on= in the app, or --rate {name}=MICROSECONDS')
    for item in tasks.interference:
        out.append(Stream(item.name, sim.Comes.TAX, Fraction(item.period_ns), 0, item.jitter_ns, 0, item.cost_ns))
    _bounded(out)
    return out


def _bounded(given: Sequence[Stream]) -> None:
    """Raises UserError where more would have to be held at once than this machine should be asked for."""
    latest = max(given, key=lambda stream: stream.jitter, default=None)
    often = min(given, key=lambda stream: stream.every, default=None)
    if latest is None or often is None:
        return

    def held(span: int) -> int:
        return sum(int(span // stream.every) for stream in given)

    every = f'"{often.name}" comes every {float(often.every) / US:g} us'
    if held(PIECE) > AT_ONCE:
        raise UserError(f"{every}, which is more than can be simulated; let it come less often")
    if held(PIECE + latest.jitter) > AT_ONCE:
        raise UserError(f'"{latest.name}" may come {latest.jitter // US:,} us late and {every}: too much to hold at once; give it less jitter')


def _period_ns(source: Source) -> Fraction:
    """Exact where a sampling rate says it."""
    hop, rate = getattr(source, "hop", 0), getattr(source, "rate", 0)
    return Fraction(hop * RATE, rate) if hop and rate else Fraction(source.period_us * US)


def seeded(given: Sequence[Stream], until: int, seed: int) -> Iterator[tuple[np.ndarray, int]]:
    """Pieces of arrivals: what a seed makes of the streams."""
    rngs = [np.random.default_rng([seed, i]) for i in range(len(given))]
    most = max((stream.jitter for stream in given), default=0)
    held = np.zeros(0, ARRIVAL)
    begin = 0
    while begin < until:
        end = begin + PIECE + most
        made = in_order([held, *(stream.between(begin, end, rng) for stream, rng in zip(given, rngs, strict=True))])
        known = end if end < until else until  # what is shaken comes later than its even time, so before `end` all is there
        yield made[made["at"] < known], known
        held, begin = made[made["at"] >= known], end


def record_arrivals(pieces: Iterator[tuple[np.ndarray, int]], kept: list[np.ndarray]) -> Iterator[tuple[np.ndarray, int]]:
    """The same, and all of them in `kept`."""
    for made, known in pieces:
        kept.append(made)
        yield made, known


def write_arrivals(path: Path, app: str, until: int, given: Sequence[Stream], kept: Sequence[np.ndarray]) -> None:
    """A file that `read_arrivals` reads: [ns, what, of whom, bytes or ns] for each."""
    names = {(int(s.kind), s.target, s.value): s.name for s in given}
    kinds = {int(sim.Comes.JOB): "job", int(sim.Comes.TAX): "interrupt", int(sim.Comes.PUSH): "source"}
    made = [
        [int(a["at"]), kinds[int(a["kind"])], names[int(a["kind"]), int(a["target"]), int(a["value"])], int(a["value"])]
        for piece in kept for a in piece
    ]  # fmt: skip
    write_files(path.parent, {path.name: json.dumps({"app": app, "for_ns": until, "arrivals": made}).encode()})


def read_arrivals(path: Path, image: Image) -> tuple[np.ndarray, int]:
    """Arrivals in order of time, and how long they were recorded. Raises UserError for a file that is none, or another app's."""
    try:
        given = json.loads(path.read_text())
        app, until, found = given["app"], given["for_ns"], [(at, str(kind), str(name), value) for at, kind, name, value in given["arrivals"]]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise UserError(f"{path}: is no record of arrivals ({error}); syn simulate --record FILE writes one") from None
    if app != image.app.name:
        raise UserError(f'{path}: is of app {json.dumps(app)[:60]}, not of "{image.app.name}"; record anew: syn simulate --record FILE')
    if type(until) is not int or not 0 < until < LONGEST:
        raise UserError(f"{path}: says for_ns {json.dumps(until)[:60]}, which is no time above 0 in nanoseconds; record anew: syn simulate --record FILE")
    pushed = {f.source.name: f.source.hop_bytes for f in image.feeds if not isinstance(f.source, Feed)}
    targets = {("source", f.source.name): f.number for f in image.feeds if f.source.name in pushed} | {("job", p.name): p.number for p in image.pipelines}
    kinds = {"job": sim.Comes.JOB, "interrupt": sim.Comes.TAX, "source": sim.Comes.PUSH}
    out = np.zeros(len(found), ARRIVAL)
    for i, (at, kind, name, value) in enumerate(found):
        if kind not in kinds or (kind != "interrupt" and (kind, name) not in targets):
            raise UserError(f'{path}: {kind[:60]} "{name[:60]}" is nothing of {image.app.name}; record anew: syn simulate --record FILE')
        if type(at) is not int or type(value) is not int or not 0 <= at < 1 << 62 or not 0 <= value < LONGEST_STEP:
            where = f'{kind} "{name}" at {at} with {value}'[:100]
            raise UserError(f"{path}: {where}: times are whole nanoseconds from 0, a value is below 2**31; record anew: syn simulate --record FILE")
        if kind == "source" and value > pushed[name]:
            raise UserError(f'{path}: source "{name}" gives {value} bytes, and at most {pushed[name]} come at once; record anew: syn simulate --record FILE')
        out[i] = (at, value, targets.get((kind, name), 0), int(kinds[kind]), 0)
    return out[np.argsort(out["at"], kind="stable")], until


# ---- a simulation


@dataclass
class JobFigures:
    """What became of one pipeline's jobs. Times in ns."""

    name: str
    released: int
    finished: int
    missed: int  # ended after their deadline, or by their policy
    expired: int  # of these: not begun, or ended by their policy
    failed: int
    dropped: int  # releases that found the queue full
    coalesced: int
    refused: int  # no slot was free
    deadline: int
    worst: int
    median: int
    load: float  # of the processor, by steps of this job in the recorded window; all of them if that is everything


@dataclass
class Simulated:
    """A run."""

    app: str
    board: str
    seconds: float  # virtual
    took: float  # real, of the loop
    seed: int | None
    steps: int
    load: float
    preemptions: int
    jobs: list[JobFigures]
    digest: str  # of all events
    first_miss: int | None  # ns: when the first missed job was released
    spans: list[JobSpan] = field(default_factory=list)  # of the window
    window: tuple[int, int] = (0, 0)
    first_missed: str = ""  # whose that job is

    @property
    def factor(self) -> float:
        """How many times faster than real time."""
        return self.seconds / self.took if self.took else 0.0

    @property
    def good(self) -> bool:
        """No deadline was missed, nothing was dropped, refused or failed."""
        return not any(j.missed or j.dropped or j.refused or j.failed for j in self.jobs)

    def to_json(self) -> dict[str, Any]:
        return {
            "app": self.app, "board": self.board, "seconds": self.seconds, "seed": self.seed, "good": self.good, "steps": self.steps,
            "load": round(self.load, 6), "preemptions": self.preemptions, "times_real_time": round(self.factor), "digest": self.digest,
            "jobs": [
                {"job": j.name, "released": j.released, "finished": j.finished, "missed": j.missed, "expired": j.expired, "failed": j.failed,
                 "dropped": j.dropped, "coalesced": j.coalesced, "refused": j.refused, "deadline_ns": j.deadline, "worst_ns": j.worst,
                 "median_ns": j.median}
                for j in self.jobs
            ],
        }  # fmt: skip


class Simulator:
    """An app ready to be simulated, as often as one likes."""

    def __init__(self, app: App, tasks: TaskSet, costs: Costs, *, board: str = "", engine: str = "native") -> None:
        for p in app.pipelines.values():
            if any(step.kind == "part" for step in p.steps):
                raise UserError(f'pipeline "{p.name}": reads several sources at once, which is not simulated')
        self.app, self.tasks, self.board = app, tasks, board
        # As its firmware has it; what a handler takes is in the last step of its job.
        self.image = compile_app(app, slots=max(len(app.jobs), 1), enforce=False, handlers=False)
        self.tables, self.containers = timed_tables(self.image, costs)
        parameters = self.image.parameters | {"PROFILING": 0, "LAYER_TIMES": 1, "FRONT_ENDS": 0}
        if self.image.offloads:
            parameters |= ACCELERATED
        self.kernel = VirtualKernel(rate=RATE, engine=engine, parameters=parameters)

    def _boot(self) -> None:
        inputs = [tensor_fields(p.source) for p in self.image.pipelines]
        most = max([16, *(f.source.hop_bytes for f in self.image.feeds)])
        self.kernel.boot(
            self.tables, self.containers, inputs, arena_bytes=self.image.arena_bytes, scratch=self.image.scratch, most=most
        )  # fmt: skip

    def run(self, until: int, arrivals: Any, *, seed: int | None = None, window: tuple[int, int] | None = None,
            advance: Callable[[int], None] = lambda ns: None) -> Simulated:  # fmt: skip
        """Simulate `until` ns; steps of the window are kept for a picture. `arrivals` as VirtualKernel.run takes them."""
        self._boot()
        record = int(sim.RECORD_JOBS) | (int(sim.RECORD_STEPS) if window else 0)
        digest = hashlib.sha256()
        ends: list[np.ndarray] = []
        shown: list[np.ndarray] = []
        took, at, seen = 0.0, time.perf_counter(), 0
        for piece in self._events(arrivals, until, record, window):
            took += time.perf_counter() - at
            digest.update(piece[piece["kind"] != int(sim.Happens.STEP)].tobytes())  # the same whatever is drawn
            ends.append(piece[piece["kind"] == int(sim.Happens.ENDED)])
            if window is not None:
                shown.append(piece[piece["at"] >= window[0]] if window[1] < until else piece)
            now = int(self.kernel.sim.clock.ticks)
            advance(now - seen)
            seen, at = now, time.perf_counter()
        return self._told(until, took, seed, digest.hexdigest(), np.concatenate(ends), shown, window)

    def _events(self, arrivals: Any, until: int, record: int, window: tuple[int, int] | None) -> Iterator[np.ndarray]:
        """What the kernel tells. Raises UserError where more comes in one step than it can tell, naming what comes most."""
        try:
            yield from self.kernel.run(arrivals, until, record=record, idle=self.tasks.idle_ns, steps=window)
        except KernelError as error:
            if error.status != int(Status.NOMEM):
                raise
            came = self.kernel.last_arrivals(EVENTS)
            came = came[came["kind"] != int(sim.Comes.TAX)]
            kinds, counts = np.unique(came[["kind", "target"]], return_counts=True)
            most = int(counts.max(initial=0))
            apart = (int(came["at"][-1]) - int(came["at"][0])) / (most - 1) if most > 1 else LONGEST
            job = min((job for job in self.app.jobs if job.every), key=lambda job: job.every, default=None)
            if job is not None and job.every * US <= apart * 1.01:  # its own source comes as often as it reads it
                raise UserError(f'"{job.pipeline.name}" is due more often within one step than can be told; say a longer every= in the app') from None
            if most == 0:
                raise
            kind, target = kinds[int(counts.argmax())]
            name = self.image.pipelines[target].name if kind == int(sim.Comes.JOB) else self.image.feeds[target].source.name
            raise UserError(
                f'"{name}" comes more often within one step than can be told; let it come less often: every= in the app, or --rate {name}=MICROSECONDS'
            ) from None

    def _told(self, until: int, took: float, seed: int | None, digest: str, ends: np.ndarray, shown: list[np.ndarray], window: Any) -> Simulated:
        figures, state, kernel = self.kernel.figures(), self.kernel.sim, self.kernel.kernel
        releases = list(kernel.releases.items)[: kernel.releases.count] if self.image.clocked else []
        jobs: list[JobFigures] = []
        late: list[tuple[int, str]] = []
        for p in self.image.pipelines:
            f, deadline = figures[p.number], p.deadline * US
            mine = ends[ends["pipeline"] == p.number]
            good = mine[mine["value"] == OK]
            responses = (good["at"] - good["began"]).astype(np.int64)
            if deadline:
                status = mine["value"].astype(np.uint32).view(np.int32)
                bad = mine[((mine["at"] - mine["began"]).astype(np.int64) > deadline) | (status == TIMEDOUT)]
                late += [(int(bad["began"].min()), p.name)] if len(bad) else []
            own = [r for r in releases if int(r.pipeline) == p.number]
            jobs.append(JobFigures(
                p.name, int(f["released"]), int(f["done"]), int(f["late"]), int(f["expired"]), int(f["failed"]),
                sum(int(r.dropped) for r in own), sum(int(r.coalesced) for r in own), int(f["refused"]), deadline, int(f["worst"]),
                int(np.median(responses)) if len(responses) else 0, 0.0,
            ))  # fmt: skip
        spans = self._spans(np.concatenate(shown), window) if shown and window is not None else []
        first = min(late, default=None)
        return Simulated(
            self.app.name, self.board, until / 1e9, took, seed, int(state.steps), int(state.busy) / max(until, 1),
            int(kernel.stats.preemptions), jobs, digest, first[0] if first else None, spans, window or (0, 0),
            first[1] if first else "",
        )  # fmt: skip

    def _spans(self, events: np.ndarray, window: tuple[int, int]) -> list[JobSpan]:
        """The jobs of a window, as a picture shows them."""
        found: dict[int, dict[str, Any]] = {}
        step, ended, released = (int(k) for k in (sim.Happens.STEP, sim.Happens.ENDED, sim.Happens.RELEASED))
        for e in events:
            kind, number = int(e["kind"]), int(e["job"])
            if kind == released and int(e["began"]) <= window[1]:
                found[number] = {"pipeline": int(e["pipeline"]), "release": int(e["began"]), "steps": []}
            elif kind == step:
                pipeline = self.image.pipelines[int(e["pipeline"])]
                job = found.setdefault(number, {"pipeline": pipeline.number, "release": int(e["began"]), "steps": []})
                job["steps"].append(StepSpan(self._name(pipeline, int(e["stage"]), int(e["step"])), int(e["began"]) / US, int(e["at"]) / US))
            elif kind == ended and number in found:
                found[number] |= {"end": int(e["at"]), "release": int(e["began"]), "status": int(np.int32(np.uint32(e["value"])))}
        out = []
        for number, job in found.items():
            pipeline = self.image.pipelines[job["pipeline"]]
            status = job.get("status")
            outcome = "open" if status is None else {OK: "done", CANCELED: "cancelled"}.get(status, "failed")
            if status == TIMEDOUT:
                outcome = "aborted" if job["steps"] else "skipped"
            deadline = (job["release"] + pipeline.deadline * US) / US if pipeline.deadline else None
            end = job["end"] / US if "end" in job else None
            out.append(JobSpan(pipeline.name, number, job["release"] / US, end, deadline, outcome, tuple(job["steps"])))
        return out

    def _name(self, pipeline: Any, stage: int, layer: int) -> str:
        step = pipeline.steps[stage]
        if step.model is None:
            return str(step.name)
        info = step.model.compiled.info.layers[min(layer, len(step.model.compiled.info.layers) - 1)]
        return f"{info.operator.lower()} {layer}"

    def close(self) -> None:
        self.kernel.close()


def parse_time(text: str, what: str) -> int:
    """`1h`, `90s`, `1.5min`, `200ms`, `30us` in ns."""
    found = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)\s*(h|min|s|ms|us)", text.strip())
    if not found:
        raise UserError(f"{what} {text}: a time like 1h, 10min, 90s, 200ms or 30us")
    ns = Fraction(found[1]) * {"h": 3600 * RATE, "min": 60 * RATE, "s": RATE, "ms": 1_000_000, "us": 1_000}[found[2]]
    if not 0 < ns < LONGEST:
        raise UserError(f"{what} {text}: more than nothing, and at most 36 years")
    return int(ns)


__all__ = ["Rate", "Simulated", "Simulator", "Stream", "parse_time", "read_arrivals", "seeded", "streams", "timed_tables", "write_arrivals"]
