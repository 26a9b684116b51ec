"""What a run of an app gave: the same for every engine and board, so that two can be compared."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from synapticos.app.image import Image, PipelineImage
from synapticos.host.blame import Failure


@dataclass
class Result:
    """One frame of one job."""

    pipeline: str
    frame: int
    input: np.ndarray
    arrays: list[np.ndarray]
    release_us: int | None = None  # of jobs that the kernel began: after the start, nominal
    finish_us: int = 0
    item: int = 0  # which box of a cascade
    missed: bool = False  # its deadline

    @property
    def when(self) -> dict[str, Any]:
        """Of a job that the kernel began."""
        if self.release_us is None:
            return {}
        return {"release_us": self.release_us, "finish_us": self.finish_us, "item": self.item, "missed": self.missed}


@dataclass(frozen=True)
class Step:
    """One step of a job that the kernel began: times after the start, us."""

    pipeline: str
    release_us: int  # of its job
    stage: int
    layer: int
    begin_us: int
    end_us: int


@dataclass(frozen=True)
class HandlerReport:
    """What became of a pipeline's handler."""

    name: str
    runs: int
    errors: int  # of these
    failure: Failure | None  # the last

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"handler": self.name, "runs": self.runs, "errors": self.errors, "last": self.failure.to_json() if self.failure else None}


@dataclass(frozen=True)
class JobSummary:
    """What became of the jobs of one pipeline that the kernel began."""

    job: str
    released: int
    done: int  # with a result, or for the readers of a front end
    missed: int  # their deadline, whatever became of them
    dropped: int  # never begun: too many waited
    merged: int  # with another release, which took the newer data
    starved: int  # never begun: their source had given nothing
    surplus: int  # boxes beyond those that a cascade looks at
    failed: int  # ended with an error, other than for their deadline
    median_us: float | None  # from release to end, of those done; None: there was none, or nobody looked
    worst_us: int | None
    deadline_us: int | None


@dataclass
class Report:
    where: str
    image: Image
    results: list[Result]
    tick_rate: int
    times: dict[str, list[dict[str, Any]]]  # of each pipeline: total, stages and layers in ticks, frame in bytes, by frame
    console: str = ""
    instructions: int = 0
    failures: list[Failure] = field(default_factory=list)  # jobs that ended with an error
    digests: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)  # where firmware was built to write them down
    counts: dict[str, dict[str, dict[str, int]]] = field(default_factory=dict)  # of jobs that the kernel began, and of sources
    handled: dict[str, HandlerReport] = field(default_factory=dict)  # of pipelines with a handler in the firmware

    span_us: int = 0  # of jobs that the kernel began: how long it ran
    interrupted: bool = False  # before its end
    raised: dict[str, str] = field(default_factory=dict)  # what a handler in plain Python raised last

    @property
    def summary(self) -> list[JobSummary]:
        """Of each job that the kernel began."""
        out = []
        for job in self.image.jobs if self.counts else ():
            name = job.pipeline.name
            counts = self.counts["jobs"].get(name, {})
            took = sorted(r.finish_us - (r.release_us or 0) for r in self.results if r.pipeline == name and r.arrays)
            failed = sum(f.pipeline == name for f in self.failures)
            collected = job.pipeline.ends_in_feed is None
            out.append(
                JobSummary(
                    name, counts.get("released", 0), len(took) if collected else counts.get("started", 0) - failed, counts.get("misses", 0),
                    counts.get("dropped", 0), counts.get("coalesced", 0), counts.get("starved", 0), counts.get("surplus", 0), failed,
                    float(np.median(took)) if took else None, took[-1] if took else None, job.deadline or None,
                )
            )  # fmt: skip
        return out

    @property
    def unit(self) -> str:
        return "us"

    @property
    def digest(self) -> str:
        """Of every byte of every result, with shapes."""
        made = hashlib.sha256()
        for result in self.results:
            for array in result.arrays:
                made.update(f"{result.pipeline} {result.frame} {array.dtype} {array.shape}".encode())
                made.update(np.ascontiguousarray(array).tobytes())
        return made.hexdigest()[:16]

    @property
    def planned(self) -> int:
        """Bytes of the arena, as planned."""
        return self.image.arena_bytes

    @property
    def frames_planned(self) -> int:
        return sum(self.image.frames)

    @property
    def peak(self) -> int:
        """Bytes of their frames that jobs used: the most in each class, all classes together."""
        by_class: dict[int, int] = {}
        for pipeline in self.image.pipelines:
            for times in self.times.get(pipeline.name, []):
                by_class[pipeline.priority] = max(by_class.get(pipeline.priority, 0), times["frame"])
        return sum(by_class.values())

    def microseconds(self, ticks: int) -> float:
        return ticks * 1e6 / self.tick_rate

    @property
    def stages(self) -> dict[str, list[list[Any]]]:
        """Of each pipeline, a row a stage: number, what it is, microseconds of the last frame."""
        out = {}
        for pipeline in self.image.pipelines:
            last = self._last(pipeline)
            if last:
                out[pipeline.name] = [
                    [i, f"{step.kind} {step.name}", self.microseconds(ticks)]
                    for i, (step, ticks) in enumerate(zip(pipeline.steps, last["stages"]))
                ]
        return out

    @property
    def layers(self) -> dict[str, list[list[Any]]]:
        """Of each model, a row a layer: number, operator, multiply-accumulates, microseconds of the last frame."""
        out = {}
        for pipeline in self.image.pipelines:
            last = self._last(pipeline)
            model = next((step.model for step in pipeline.steps if step.model is not None), None)
            if model is not None and last and last["layers"]:
                out[model.name] = [
                    [i, layer.operator, layer.macs, self.microseconds(ticks)]
                    for i, (layer, ticks) in enumerate(zip(model.compiled.info.layers, last["layers"]))
                ]
        return out

    def _last(self, pipeline: PipelineImage) -> dict[str, Any] | None:
        times = self.times.get(pipeline.name)
        return times[-1] if times else None

    def to_json(self) -> dict[str, Any]:
        """Plain lists, dicts and numbers; of a run on this machine without what only an emulated board knows."""
        measured = {"instructions": self.instructions, "sizes": self.sizes, "console": self.console}
        return {
            "where": self.where,
            "digest": self.digest,
            "results": [{"pipeline": r.pipeline, "frame": r.frame, "arrays": r.arrays, **r.when} for r in self.results],
            "failures": [f.to_json() for f in self.failures],
            **({"seconds": self.span_us / 1e6, "interrupted": self.interrupted, "counts": self.counts} if self.counts else {}),
            **({"jobs": [asdict(one) for one in self.summary]} if self.counts else {}),
            **({"handlers": {name: one.to_json() for name, one in self.handled.items()}} if self.handled else {}),
            "stages": {name: [{"stage": s, "what": w, "us": t} for s, w, t in rows] for name, rows in self.stages.items()},
            "layers": {
                name: [{"layer": n, "operator": o, "macs": m, "us": t} for n, o, m, t in rows] for name, rows in self.layers.items()
            },
            "arena": {"planned": self.planned, "frames": self.frames_planned, "used": self.peak},
            **{name: value for name, value in measured.items() if value},
        }
