"""An app, run once over what its sources give: on this machine, or as firmware on an emulated board.

Both take the frames in the same rounds, one of each job at a time, so their reports can be compared by digest.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from synapticos import lang
from synapticos.app.declare import App
from synapticos.app.image import Image
from synapticos.app.program import FrameRecord
from synapticos.app.sources import Feed
from synapticos.boards import faults
from synapticos.errors import KernelError, UserError
from synapticos.host.blame import Failure, status_of, words_of
from synapticos.host.clock import plan_run, read_by_clock, run_by_clock
from synapticos.host.firmware import Firmware
from synapticos.host.record import read_handled, read_record
from synapticos.host.report import Report, Result
from synapticos.host.runtime import Runtime

ENGINES = ("native", "checked", "cortex-m")
Frames = list[list[np.ndarray]]  # of each job
HOST_TICKS = 1_000_000
SLICE = 5_000_000  # instructions between two looks for Ctrl-C
MAX_FILE = 0xFFFFFFFF  # bytes: firmware counts in 32 bits


def read_sources(app: App, files: dict[str, Path], crop: bool) -> Frames:
    """Every job's frames. Raises UserError for a file that is not what its source says."""
    if not app.jobs:
        raise UserError(f'app "{app.name}": has no job; app.job(pipeline) makes one')
    sources = [job.pipeline.source for job in app.jobs if not isinstance(job.pipeline.source, Feed)]
    if any(job.released for job in app.jobs):  # each comes at times of its own
        sources = [one for source in sources for one in source.members if not isinstance(one, Feed)]
    return [list(source.read_from(files, crop=crop)) for source in sources]


def run_on_host(
    app: App, files: dict[str, Path], *, engine: str = "native", crop: bool = False, checks: bool = False,
    advance: Callable[[float], Any] = lambda n: None, span_us: int = 0, stop: Callable[[], bool] = lambda: False,
) -> Report:  # fmt: skip
    """Run every job for every frame on this machine; an app whose jobs the kernel begins, by the clock, in virtual time, for
    `span_us` microseconds (0: as long as its sources).

    With `checks` compiled code traps where checked Python would. `advance` is told of each frame, or of milliseconds; once
    `stop` says so, what there is by then is reported.
    """
    if any(job.released for job in app.jobs):
        return run_by_clock(app, files, engine=engine, crop=crop, checks=checks, advance=advance, span_us=span_us, stop=stop)
    frames = read_sources(app, files, crop)
    results: list[Result] = []
    times: dict[str, list[dict[str, Any]]] = {}
    failures: list[Failure] = []
    said: list[str] = []  # the board's console has room for little
    with Runtime(app, engine=engine, profile=True, checks=checks) as runtime:
        interrupted = False
        for k in range(max(map(len, frames))):
            started = []
            for job, own in zip(app.jobs, frames):
                if k < len(own):
                    started.append((job.pipeline.name, own[k], runtime.submit(job.pipeline, own[k])))
            for name, frame, running in started:
                try:
                    value = running.result()
                except KernelError:
                    if running.failure is None:
                        raise
                    failures.append(replace(running.failure, frame=k))
                    continue
                results.append(Result(name, k, frame, value if isinstance(value, list) else [value]))
                times.setdefault(name, []).append(running.times or {})
            said.append(runtime.said())
            advance(1)
            interrupted = stop()
            if interrupted:
                break
        where = f"host, {engine}{', checks' if checks else ''}"
        return Report(where, runtime.image, results, HOST_TICKS, times, "".join(said), failures=failures, handled=runtime.handled(), interrupted=interrupted)


def run_on_board(
    built: Firmware, files: dict[str, Path], *, emulator: str = "own", crop: bool = False,
    advance: Callable[[float], Any] = lambda ms: None, span_us: int = 0, stop: Callable[[], bool] = lambda: False,
) -> Report:  # fmt: skip
    """Boot firmware in an emulator, `own` or `qemu`, with the frames of its app's sources, and read what it wrote.

    Jobs that the kernel begins run for `span_us` microseconds (0: as long as the sources). In our own emulator `advance` is
    told of each millisecond of the board's time, and once `stop` says so, what was written by then is reported.
    """
    from synapticos.boards import qemu

    app = built.app
    plan = plan_run(built.image, files, crop, span_us) if built.image.clocked else None
    frames = read_sources(app, files, crop) if plan is None else []
    if emulator == "qemu" and built.image.offloads:
        raise UserError(f"--emulator qemu: it has no accelerator, and {app.name} has a model on it; leave --emulator out")
    if emulator == "qemu":
        missing = qemu.missing(built.board)
        if missing is not None:
            raise UserError(f"--emulator qemu: {missing}; the emulator of our own needs nothing: leave --emulator out")
    for job, own in zip(app.jobs, frames):
        most = max(job.pipeline.source.spec.bytes, _record_bytes(built.image, job)) * len(own)
        if most > MAX_FILE:
            raise UserError(f'job of "{job.pipeline.name}": {len(own):,} frames are {most:,} bytes; a board reads and writes at most {MAX_FILE:,}: give it fewer')
    fed = {f"in{j}": b"".join(np.ascontiguousarray(f).tobytes() for f in own) for j, own in enumerate(frames)}
    if plan is not None:
        fed = plan.files()
    interrupted = False
    if emulator == "qemu":
        done = qemu.run(built.board, built.elf, files=fed, timeout=600)
    else:
        from synapticos.emulator import Machine  # needs what QEMU does not

        machine, seen = Machine(built.elf, built.board, files=fed), 0
        done = machine.run(SLICE)
        while done.code is None and done.reason.startswith("no end after") and not interrupted:
            advance((machine.now() - seen) / 1_000_000)
            seen = machine.now()
            interrupted = stop()
            done = done if interrupted else machine.run(SLICE)
    if done.code != 0 and not interrupted:
        raise UserError(f"{app.name} on {built.board.name}: {_why(built, done)}")
    where = f"{built.board.name}, {'QEMU' if emulator == 'qemu' else 'in-process emulator'}"
    report = Report(where, built.image, [], built.board.tick_rate, {}, in_words(built.image, done.text), done.instructions, sizes=built.sizes)
    report.interrupted = interrupted
    if plan is not None:
        read_by_clock(report, built, done.files)
        ended = max((r.finish_us for r in report.results), default=0)
        report.span_us = ended if interrupted else max(plan.end_us, ended)
    else:
        report.results, report.times, report.failures = _read_results(built, frames, done.files, interrupted)
    report.handled = read_handled(built, faults.Image(built.elf), done.files.get("handled", b""))
    return report


def _record_bytes(image: Image, job: Any) -> int:
    """What firmware writes of one frame, at most."""
    sizes = sum(spec.bytes for spec in job.pipeline.specs)
    return int(lang.sizeof(FrameRecord)) + sizes + 4 * (len(job.pipeline.steps) + image.layers)


def in_words(image: Image, text: str) -> str:
    """What firmware said, with names for its numbers."""

    def line(found: re.Match[str]) -> str:
        job, frame, status = (int(n) for n in found.groups())
        name = image.jobs[job].pipeline.name if job < len(image.jobs) else f"job {job}"
        return f"{name}, frame {frame}: {'done' if status == 0 else words_of(status_of(status))}"

    return re.sub(r"^job (\d+) frame (\d+): (-?\d+)$", line, text, flags=re.MULTILINE)


def _why(built: Firmware, done: Any) -> str:
    """Why a firmware stopped, in a line: the fault and its Python line, or the last that it said."""
    from synapticos.boards.faults import explain

    told = explain(built.elf, done.text, built.files).strip().splitlines()
    words = [line.strip() for line in told if line.startswith("  ")]  # what `explain` has added
    if words:
        return "stopped " + "; ".join(words)
    last = re.sub(r"^(the app does not start|stopped): (-\d+)$", lambda m: f"{m[1]}: it {words_of(status_of(m[2]))}", told[-1] if told else "")
    return done.reason or last or f"ended with {done.code}"


def _read_results(
    built: Firmware, frames: Frames, files: dict[str, bytes], interrupted: bool = False
) -> tuple[list[Result], dict[str, list[dict[str, Any]]], list[Failure]]:
    """What firmware wrote, in the order in which the host runs the same frames."""
    image, elf = built.image, faults.Image(built.elf)
    found: dict[tuple[int, int], Result] = {}
    failed: dict[tuple[int, int], Failure] = {}
    times: dict[str, list[dict[str, Any]]] = {}
    for j, job in enumerate(image.jobs):
        data, at = files.get(f"out{j}", b""), 0
        name = job.pipeline.name
        for k, frame in enumerate(frames[j]):
            if at + lang.sizeof(FrameRecord) > len(data):
                if interrupted:
                    break
                raise UserError(f'job of "{name}": the board wrote {k} results for {len(frames[j])} frames')
            outcome, spent, at = read_record(built, elf, name, job.pipeline.specs, k, data, at)
            if isinstance(outcome, Failure):
                failed[k, j] = outcome
                continue
            found[k, j] = Result(name, k, frame, outcome)
            times.setdefault(name, []).append(spent)
    return [found[key] for key in sorted(found)], times, [failed[key] for key in sorted(failed)]


__all__ = ["ENGINES", "read_sources", "run_on_board", "run_on_host"]
