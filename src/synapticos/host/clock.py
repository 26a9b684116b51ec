"""An app whose jobs the kernel begins, run once over what its sources give: in virtual time here, or as firmware.

A run lasts as long as the longest of the sources that have times; what ends sooner begins again, so a camera may have one
picture for a minute of sound. Sources without times are fed as fast as their readers take it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from synapticos import lang
from synapticos.app import clock as program
from synapticos.app.declare import App, JobDecl
from synapticos.app.image import FeedImage, Image
from synapticos.app.sources import Feed, Microphone
from synapticos.boards import faults
from synapticos.boards.host import TICK_RATE
from synapticos.errors import UserError
from synapticos.host.blame import Failure
from synapticos.host.firmware import Firmware
from synapticos.host.live import Live
from synapticos.host.record import read_record
from synapticos.host.report import Report, Result, Step
from synapticos.host.runtime import Runtime
from synapticos.kernel.release import FeedCounts, JobCounts
from synapticos.kernel.sched import Poll
from synapticos.kernel.status import Status

US = 1_000_000


@dataclass
class Feeding:
    """One source's data and times: push k comes (first + k * step) / rate microseconds after the start."""

    feed: FeedImage
    data: bytes
    chunk: int
    first: int
    step: int  # 0: when its readers are idle
    rate: int
    pushes: int = 0

    @property
    def chunks(self) -> int:
        return len(self.data) // self.chunk

    def at(self, k: int) -> int:
        return (self.first + k * self.step) // self.rate

    def part(self, k: int) -> bytes:
        at = k % self.chunks * self.chunk
        return self.data[at : at + self.chunk]


@dataclass
class RunPlan:
    feedings: list[Feeding]
    end_us: int  # 0: no source has times

    def files(self) -> dict[str, bytes]:
        """What firmware is given."""
        out = lang.pack(program.RunPlan, magic=program.PLAN_MAGIC, feeds=len(self.feedings), end_us=self.end_us)
        files = {}
        for i, one in enumerate(self.feedings):
            out += lang.pack(
                program.FeedPlan, source=one.feed.number, chunk=one.chunk, chunks=one.chunks, pushes=one.pushes, first=one.first,
                step=one.step, rate=one.rate,
            )  # fmt: skip
            files[f"in{i}"] = one.data
        return {"plan": bytes(out), **files}


def plan_run(image: Image, files: dict[str, Path], crop: bool = False, span_us: int = 0) -> RunPlan:
    """When which source gives what, for `span_us` microseconds (0: as long as the longest). Raises UserError for files that
    are not what their sources say, for jobs that nothing releases, and for a span of sources that have no times."""
    app = image.app
    for job in app.jobs:
        if not job.released:
            raise UserError(f'job of "{job.pipeline.name}": nothing releases it, and the other jobs are released; say every= or on=')
    made = [feeding(one, app, files, crop) for one in image.feeds if not isinstance(one.source, Feed)]
    timed = [one for one in made if one.step]
    end = max((one.at(one.chunks - isinstance(one.feed.source, Microphone)) - one.at(0) * (one.rate == 1) for one in timed), default=0)
    if span_us and not timed and not any(job.every for job in app.jobs):
        raise UserError(f"{app.name}: no source says when it gives something, and it runs as long as they last; leave --for out, or say every= of a source")
    end = span_us or end
    for one in made:
        one.pushes = one.chunks
        if one.step:
            last = end if isinstance(one.feed.source, Microphone) else end - 1  # a picture at the end is the next run's first
            one.pushes = max(0, (last * one.rate + one.rate - 1 - one.first) // one.step + 1)
    return RunPlan(made, end)


def feeding(one: FeedImage, app: App, files: dict[str, Path], crop: bool) -> Feeding:
    source = one.source
    data = source.stream(files, crop=crop)
    if isinstance(source, Microphone):
        made = Feeding(one, data, source.hop_bytes, source.hop * US, source.hop * US, source.rate)
    else:
        job = next((job for job in app.jobs if job.every and source in job.pipeline.source.members), None)
        every = source.every or (job.every if job else 0)
        made = Feeding(one, data, source.spec.bytes, job.phase if job and not source.every else 0, every, 1)
    if made.chunks == 0:
        file = files.get(source.name) or source.file
        unit, size = ("samples", 2) if isinstance(source, Microphone) else ("bytes", 1)
        raise UserError(f'source "{source.name}": {file}: holds {len(data) // size} {unit}, and the first frame is {made.chunk // size}; give a longer one')
    return made


def run_by_clock(
    app: App, files: dict[str, Path], *, engine: str = "native", crop: bool = False, checks: bool = False,
    advance: Callable[[float], Any] = lambda ms: None, span_us: int = 0, stop: Callable[[], bool] = lambda: False,
) -> Report:  # fmt: skip
    """Run an app in virtual time on this machine: steps take none, so every deadline is met. For `span_us` microseconds (0: as
    long as its longest source), or until `stop` says so; `advance` is told of each millisecond."""
    with Runtime(app, engine=engine, profile=True, checks=checks, virtual=True) as runtime:
        plan = plan_run(runtime.image, files, crop, span_us)
        live = Live(runtime)
        live.start(plan.end_us)
        pushed = [0] * len(plan.feedings)
        results: dict[int, list[Any]] = {}
        said: list[str] = []  # the board's console has room for little

        def push(i: int) -> None:
            one = plan.feedings[i]
            live.push(one.feed.source.name, one.part(pushed[i]))
            pushed[i] += 1

        going, seen = True, 0
        while going and not stop():
            advance((live.now_us - seen) / 1000)
            seen = live.now_us
            for i, one in enumerate(plan.feedings):
                while one.step and pushed[i] < one.pushes and one.at(pushed[i]) <= live.now_us:
                    push(i)
            answer = live.step()
            if runtime.image.handles:
                said.append(runtime.said())
            for done in live.take():
                results.setdefault(app.jobs.index(done.job), []).append(done)
                live.tell(done)
            if answer == Poll.IDLE:
                idle = [i for i, one in enumerate(plan.feedings) if not one.step and pushed[i] < one.pushes and live.idle(one.feed.number)]
                for i in idle:
                    push(i)
                if not idle:
                    going = live.sleep([one.at(pushed[i]) for i, one in enumerate(plan.feedings) if one.step and pushed[i] < one.pushes])
        report = Report(f"host, {engine}, virtual time", runtime.image, [], TICK_RATE, {}, "".join([*said, runtime.said()]))
        for j in sorted(results):
            for k, done in enumerate(results[j]):
                add_result(report, app.jobs[j], k, done, done.failure)
        report.counts = live.counters()
        report.handled = runtime.handled()
        report.raised = {name: f"{type(errors[-1]).__name__}: {errors[-1]}" for name, errors in live.errors.items()}
        report.interrupted = going
        report.span_us = live.now_us if going else max(plan.end_us, live.now_us)
        return report


def add_result(report: Report, job: JobDecl, k: int, done: Any, failure: Failure | None) -> None:
    """One job, which its deadline or somebody may have ended: that is no failure, and has no result."""
    if failure is not None and (failure.faulted or failure.status not in (Status.TIMEDOUT, Status.CANCELED)):
        report.failures.append(replace(failure, frame=k))
        return
    result = Result(job.pipeline.name, k, np.zeros(0), done.arrays, done.release_us, done.finish_us, done.item, done.missed)
    report.results.append(result)
    report.times.setdefault(job.pipeline.name, []).append(done.times)


@dataclass
class BoardDone:
    """What firmware wrote of a job."""

    arrays: list[np.ndarray]
    release_us: int
    finish_us: int
    item: int
    missed: bool
    times: dict[str, Any]


def read_by_clock(report: Report, built: Firmware, files: dict[str, bytes]) -> None:
    """Take what firmware wrote into a report."""
    app, elf = report.image.app, faults.Image(built.elf)
    for j, job in enumerate(app.jobs):
        data, at, k = files.get(f"out{j}", b""), 0, 0
        while at < len(data):
            try:
                when = lang.unpack(program.ReleaseRecord, data, at)
                at += lang.sizeof(program.ReleaseRecord)
                outcome, times, at = read_record(built, elf, job.pipeline.name, job.pipeline.specs, k, data, at)
            except (ValueError, struct.error):
                if not report.interrupted:
                    raise
                break  # in the middle of this one
            failure = outcome if isinstance(outcome, Failure) else None
            arrays = [] if isinstance(outcome, Failure) else outcome
            done = BoardDone(arrays, when["release_us"], when["finish_us"], when["item"], bool(when["missed"]), times)
            add_result(report, job, k, done, failure)
            k += 1
    names = {p.number: p.name for p in report.image.pipelines}
    size, data = lang.sizeof(program.StepRecord), files.get("trace", b"")
    for at in range(0, len(data), size):
        step = lang.unpack(program.StepRecord, data, at)
        report.steps.append(
            Step(names[step["pipeline"]], step["release_us"], step["stage"], step["layer"], step["begin_us"], step["end_us"])
        )
    data, at = files.get("counts", b""), 0
    jobs, feeds = {}, {}
    if report.interrupted and not data:  # what it counted was to come at the end; what it wrote was released
        seen = [r.pipeline for r in report.results] + [f.pipeline for f in report.failures]
        report.counts = {"jobs": {job.pipeline.name: {"released": seen.count(job.pipeline.name)} for job in app.jobs}, "sources": {}}
        return
    for job in app.jobs:
        jobs[job.pipeline.name] = lang.unpack(JobCounts, data, at)
        at += lang.sizeof(JobCounts)
    for one in report.image.feeds:
        feeds[one.source.name] = lang.unpack(FeedCounts, data, at)
        at += lang.sizeof(FeedCounts)
    report.counts = {"jobs": jobs, "sources": feeds}


__all__ = ["Feeding", "RunPlan", "plan_run", "read_by_clock", "run_by_clock"]
