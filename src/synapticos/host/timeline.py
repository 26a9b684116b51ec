"""Timelines: which job ran when, as a picture (SVG) and as a trace for Perfetto or a browser's tracing page.

    draw_timeline(jobs, "jobs.svg", title="pre-emption on")
    write_trace(jobs, "jobs.trace.json")

Times are microseconds. A row for each kind of job, in the order given or of their first appearance: a tick where a job is
released, its steps as boxes, a line between them while it lies suspended, a tick with a flag at its deadline. What runs
after its deadline is red.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from synapticos.errors import UserError
from synapticos.host.files import write_files

WIDTH, LEFT, RIGHT = 1200, 170, 30
ROW, BAR, TOP, AXIS = 52, 22, 40, 58
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#8c6d31", "#7f5fc9", "#5b6770")
LATE, INK, FAINT = "#d01c1c", "#1d2733", "#c8ced6"
MOST = 20_000  # boxes in one picture
OUTCOMES = {"skipped": "skipped", "dropped": "dropped", "aborted": "aborted", "failed": "failed", "cancelled": "cancelled"}


@dataclass(frozen=True)
class StepSpan:
    """One step of a job, from the poll that ran it to its end."""

    name: str
    begin_us: float
    end_us: float
    resource: str = "cpu"


@dataclass(frozen=True)
class JobSpan:
    """One job. `end_us` None: it had not ended when the record does. A deadline is a time, not a span."""

    name: str
    number: int
    release_us: float
    end_us: float | None = None
    deadline_us: float | None = None
    outcome: str = "done"  # open, done, or one of OUTCOMES
    steps: tuple[StepSpan, ...] = field(default=())

    @property
    def missed(self) -> bool:
        """Has it ended after its deadline, or been stopped because it could not meet it?"""
        if self.outcome in ("skipped", "dropped", "aborted"):
            return True
        return self.deadline_us is not None and self.end_us is not None and self.end_us > self.deadline_us


def draw_timeline(
    jobs: Sequence[JobSpan], path: str | Path, *, title: str = "", begin_us: float | None = None, end_us: float | None = None,
    order: Sequence[str] = (),
) -> None:  # fmt: skip
    """Write one timeline as SVG: what happens from `begin_us` to `end_us` (default: all of it)."""
    draw_timelines([(title, jobs)], path, begin_us=begin_us, end_us=end_us, order=order)


def draw_timelines(
    panels: Sequence[tuple[str, Sequence[JobSpan]]], path: str | Path, *, begin_us: float | None = None,
    end_us: float | None = None, order: Sequence[str] = (),
) -> None:  # fmt: skip
    """Several over one time axis, one below the other. Raises UserError for more than MOST boxes: draw less time."""
    every = [job for _, jobs in panels for job in jobs]
    begin = begin_us if begin_us is not None else min((job.release_us for job in every), default=0.0)
    end = end_us if end_us is not None else max((_last(job) for job in every), default=1.0)
    if not end > begin:
        end = begin + 1
    shown = [(title, [j for j in jobs if _last(j) >= begin and j.release_us <= end]) for title, jobs in panels]
    boxes = sum(1 for _, jobs in shown for job in jobs for step in job.steps if step.end_us >= begin and step.begin_us <= end)
    if boxes > MOST:
        raise UserError(f"{path}: {boxes:,} steps in {(end - begin) / 1000:g} ms; draw less time, at most {MOST:,} steps")
    names = list(dict.fromkeys([*order, *(job.name for job in sorted(every, key=lambda j: j.release_us))]))
    names = [name for name in names if any(job.name == name for job in every)]
    colour = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(names)}
    out: list[str] = []
    y = 12.0
    for title, jobs in shown:
        y = _panel(out, title, jobs, names, colour, y, begin, end)
    height = y + AXIS
    _axis(out, begin, end, y)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" height="{height:.0f}" '
        f'font-family="system-ui, sans-serif" font-size="13" fill="{INK}">\n<rect width="100%" height="100%" fill="#ffffff"/>\n'
    )
    write_files(Path(path).parent, {Path(path).name: (head + "\n".join(out) + "\n</svg>\n").encode()})


def _last(job: JobSpan) -> float:
    ends = [step.end_us for step in job.steps]
    return max([job.release_us, job.end_us or job.release_us, *ends])


def _panel(
    out: list[str], title: str, jobs: Sequence[JobSpan], names: list[str], colour: dict[str, str], y: float, begin: float, end: float
) -> float:  # fmt: skip
    """One panel from `y` down: where it ends."""
    scale = (WIDTH - LEFT - RIGHT) / (end - begin)

    def x(time: float) -> float:
        return LEFT + (min(max(time, begin), end) - begin) * scale

    def inside(time: float) -> bool:
        return begin <= time <= end

    missed = sum(job.missed for job in jobs)
    if title:
        out.append(f'<text x="{LEFT}" y="{y + 16:.0f}" font-size="16" font-weight="600">{escape(title)}</text>')
    words = f"{missed} missed" if missed else "none missed"
    out.append(
        f'<text x="{WIDTH - RIGHT}" y="{y + 16:.0f}" text-anchor="end" fill="{LATE if missed else INK}">'
        f'{len(jobs)} job{"" if len(jobs) == 1 else "s"}, {words}</text>'
    )
    y += TOP
    for name in names:
        base = y + ROW - 12  # the line that the boxes stand on
        mine = [job for job in jobs if job.name == name]
        late = sum(job.missed for job in mine)
        out.append(f'<line x1="{LEFT}" y1="{base}" x2="{WIDTH - RIGHT}" y2="{base}" stroke="{FAINT}"/>')
        out.append(f'<text x="{LEFT - 14}" y="{base - 10}" text-anchor="end" font-weight="600" fill="{colour[name]}">{escape(name)}</text>')
        note = f"{late} of {len(mine)} missed" if late else f"{len(mine)} job{'' if len(mine) == 1 else 's'}"
        out.append(f'<text x="{LEFT - 14}" y="{base + 4}" text-anchor="end" font-size="11" fill="{LATE if late else "#5b6770"}">{note}</text>')
        crosses = sorted(x(_cross(job)) for job in mine if job.missed or job.outcome in OUTCOMES)
        for job in mine:
            at = bisect_right(crosses, x(_cross(job)))
            room = crosses[at] - x(_cross(job)) if at < len(crosses) else WIDTH
            _job(out, job, colour[name], base, x, inside, room > 60)
        y += ROW
    return y + 14


def _cross(job: JobSpan) -> float:
    """Where its miss is marked."""
    return job.end_us if job.end_us is not None else job.release_us


def _job(out: list[str], job: JobSpan, colour: str, base: float, x: Any, inside: Any, room: bool) -> None:
    top = base - BAR
    said = escape(f"{job.name} {job.number}: {_words(job)}", quote=True)
    out.append(f"<g><title>{said}</title>")
    if job.steps:
        first, last = x(job.steps[0].begin_us), x(_last(job))
        out.append(f'<line x1="{first:.2f}" y1="{base - BAR / 2}" x2="{last:.2f}" y2="{base - BAR / 2}" stroke="{colour}" stroke-width="2" stroke-dasharray="3 3"/>')
    for step in job.steps:
        if x(step.begin_us) == x(step.end_us):
            continue  # outside, or nothing
        parts = [(step.begin_us, step.end_us, colour)]
        if job.deadline_us is not None and step.end_us > job.deadline_us:
            middle = max(job.deadline_us, step.begin_us)
            parts = [(step.begin_us, middle, colour), (middle, step.end_us, LATE)]
        for begin, end, fill in parts:
            a, b = x(begin), x(end)
            if b > a:
                dash = ' fill-opacity="0.45"' if step.resource != "cpu" else ""
                out.append(
                    f'<rect x="{a:.2f}" y="{top}" width="{max(b - a, 0.4):.2f}" height="{BAR}" fill="{fill}"{dash} '
                    f'stroke="#ffffff" stroke-width="{0.6 if b - a > 3 else 0}"><title>{said}\n{escape(step.name)}: '
                    f"{step.end_us - step.begin_us:,.1f} us</title></rect>"
                )
        wide = x(step.end_us) - x(step.begin_us)
        if step.name and wide > 7 * len(step.name) + 6:
            middle = (x(step.begin_us) + x(step.end_us)) / 2
            out.append(f'<text x="{middle:.2f}" y="{base - 7}" text-anchor="middle" font-size="11" fill="{_on(colour)}" pointer-events="none">{escape(step.name)}</text>')
    if inside(job.release_us):
        a = x(job.release_us)
        out.append(f'<path d="M{a:.2f} {base + 6}V{top - 7}m-3 4l3-4l3 4" fill="none" stroke="{INK}" stroke-width="1.2"/>')
    if job.deadline_us is not None and inside(job.deadline_us):
        a, ink = x(job.deadline_us), LATE if job.missed else "#5b6770"
        out.append(f'<path d="M{a:.2f} {base + 6}V{top - 7}h-6v5h6" fill="{ink}" fill-opacity="0.55" stroke="{ink}" stroke-width="1.2"/>')
    if job.missed or job.outcome in OUTCOMES:
        at = _cross(job)
        if inside(at):
            word = OUTCOMES.get(job.outcome, "") if room else ""
            a, c = x(at), top - 9
            out.append(f'<path d="M{a - 3.5:.2f} {c - 3.5}l7 7m0-7l-7 7" stroke="{LATE}" stroke-width="2"/>')
            if word:
                side = f'text-anchor="end" x="{a - 7:.2f}"' if a > WIDTH - RIGHT - 50 else f'x="{a + 7:.2f}"'
                out.append(f'<text {side} y="{c + 4}" font-size="10" fill="{LATE}">{word}</text>')
    out.append("</g>")


def _on(colour: str) -> str:
    """Ink that can be read on a colour."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#ffffff" if 0.3 * red + 0.59 * green + 0.11 * blue < 140 else INK


def _words(job: JobSpan) -> str:
    text = f"released at {job.release_us / 1000:,.3f} ms"
    if job.end_us is not None:
        text += f", {job.outcome} after {(job.end_us - job.release_us) / 1000:,.3f} ms"
    else:
        text += f", {job.outcome}"
    if job.deadline_us is not None:
        text += f", deadline {(job.deadline_us - job.release_us) / 1000:,.3f} ms" + (", missed" if job.missed else "")
    return text


def _axis(out: list[str], begin: float, end: float, y: float) -> None:
    """Ticks at round times, about ten of them, and what the marks mean."""
    span = end - begin
    step = 10.0 ** (len(f"{int(max(span, 10)):d}") - 2)
    while span / step > 14:
        step *= 2 if str(step)[0] in "15" else 2.5
    scale = (WIDTH - LEFT - RIGHT) / span
    unit, name = (1_000_000.0, "s") if span >= 10_000_000 else (1000.0, "ms") if span >= 2000 else (1.0, "us")
    out.append(f'<line x1="{LEFT}" y1="{y}" x2="{WIDTH - RIGHT}" y2="{y}" stroke="{INK}"/>')
    at = math.ceil(begin / step) * step
    while at <= end + step * 1e-9:
        x = LEFT + (at - begin) * scale
        out.append(f'<line x1="{x:.2f}" y1="{y}" x2="{x:.2f}" y2="{y + 5}" stroke="{INK}"/>')
        out.append(f'<text x="{x:.2f}" y="{y + 18}" text-anchor="middle" font-size="11">{at / unit + 0.0:g}</text>')
        at += step
    out.append(f'<text x="{WIDTH - RIGHT}" y="{y + 36}" text-anchor="end" font-size="11">time, {name}</text>')
    x, line = LEFT, y + 44
    for mark, word in (
        ('<path d="M{x} {b}v-14m-3 4l3-4l3 4" fill="none" stroke="#1d2733" stroke-width="1.2"/>', "released"),
        ('<path d="M{x} {b}v-14h-6v5h6" fill="#5b6770" fill-opacity="0.55" stroke="#5b6770"/>', "deadline"),
        ('<path d="M{x} {c}h12" stroke="#5b6770" stroke-width="2" stroke-dasharray="3 3"/>', "suspended"),
        ('<rect x="{x}" y="{t}" width="12" height="10" fill="#d01c1c"/>', "after its deadline"),
    ):
        out.append(mark.format(x=x, b=line + 3, c=line - 4, t=line - 9))
        out.append(f'<text x="{x + 18}" y="{line}" font-size="11">{word}</text>')
        x += 34 + 7 * len(word)


def write_trace(jobs: Iterable[JobSpan], path: str | Path) -> None:
    """Write the jobs in the trace event format that ui.perfetto.dev and chrome://tracing read."""
    rows: dict[str, int] = {}
    events: list[dict[str, Any]] = []
    for job in jobs:
        row = rows.setdefault(job.name, len(rows) + 1)
        told = {"job": job.number, "outcome": job.outcome, "missed": job.missed}
        events.append({"ph": "i", "s": "t", "name": f"{job.name} {job.number} released", "ts": job.release_us, "pid": 1, "tid": row, "args": told})
        for step in job.steps:
            events.append({
                "ph": "X", "name": step.name or job.name, "cat": step.resource, "ts": step.begin_us,
                "dur": round(step.end_us - step.begin_us, 3), "pid": 1, "tid": row, "args": told,
            })  # fmt: skip
        if job.end_us is not None:
            span = {"cat": "job", "id": job.number, "name": f"{job.name} {job.number}", "pid": 1, "tid": row}
            events.append({"ph": "b", "ts": job.release_us, **span, "args": told})
            events.append({"ph": "e", "ts": job.end_us, **span})
        if job.missed:
            at = job.end_us if job.end_us is not None else job.release_us
            events.append({"ph": "i", "s": "p", "name": f"{job.name} {job.number} missed", "ts": at, "pid": 1, "tid": row, "args": told})
    names: list[dict[str, Any]] = [{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "SynapticOS"}}]
    names += [{"ph": "M", "name": "thread_name", "pid": 1, "tid": row, "args": {"name": name}} for name, row in rows.items()]
    events.sort(key=lambda e: e["ts"])
    write_files(Path(path).parent, {Path(path).name: json.dumps({"traceEvents": names + events, "displayTimeUnit": "ms"}).encode()})


__all__ = ["JobSpan", "StepSpan", "draw_timeline", "draw_timelines", "write_trace"]
