"""A run by the clock as jobs in time: what `host.timeline` draws.

    report = run_on_board(build_firmware(app, "mps2-an521", settings={"TRACE": 1}), {})
    draw_timeline(job_spans(report, end_us), "jobs.svg")
"""

from __future__ import annotations

from synapticos.app.declare import JobDecl
from synapticos.app.sources import Microphone
from synapticos.host.report import Report, Step
from synapticos.host.timeline import JobSpan, StepSpan


def job_spans(report: Report, end_us: int) -> list[JobSpan]:
    """Every release in the first `end_us` microseconds: what became of it, and its steps. Firmware without TRACE has none of these.

    One that led to no job was dropped; a job without a result was skipped if it never ran, aborted if it did.
    """
    spans = []
    for job in report.image.jobs:
        steps: dict[int, list[Step]] = {}
        for step in report.steps:
            if step.pipeline == job.pipeline.name:
                steps.setdefault(step.release_us, []).append(step)
        ended = {r.release_us: r for r in report.results if r.pipeline == job.pipeline.name and r.release_us is not None}
        times = sorted({*_nominal(job, end_us), *ended, *steps})
        for number, release in enumerate(times):
            own = steps.get(release, [])
            result = ended.get(release)
            end: float | None
            deadline = release + job.deadline if job.deadline else None
            if result is not None:
                outcome, end = "done", float(result.finish_us)
            elif not own:
                outcome, end = "dropped", None
            else:  # its last poll ended it, and ran nothing
                outcome, end = ("aborted" if len(own) > 1 else "skipped"), float(own.pop().end_us)
            names = tuple(StepSpan(_name(job, s), s.begin_us, s.end_us) for s in own)
            spans.append(JobSpan(job.pipeline.name, number, release, end, deadline, outcome, names))
    return spans


def _nominal(job: JobDecl, end_us: int) -> list[int]:
    """When it should be released."""
    if job.every:
        return list(range(job.phase, end_us, job.every))
    source = job.on
    if isinstance(source, Microphone) and source.hop == source.spec.shape[-1]:
        count = end_us * source.rate // (source.hop * 1_000_000)
        return [(k + 1) * source.hop * 1_000_000 // source.rate for k in range(count)]
    return []


def _name(job: JobDecl, step: Step) -> str:
    stage = job.pipeline.steps[step.stage] if step.stage < len(job.pipeline.steps) else None
    if stage is None:
        return "end"
    return f"{stage.name} {step.layer}" if stage.model is not None else stage.name
