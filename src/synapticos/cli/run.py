"""`syn run APP`: execute an app on this machine, or as firmware in an emulator."""

import importlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer

from synapticos.cli import INTERRUPTED
from synapticos.cli.output import note, plain, print_json, progress, stoppable, table
from synapticos.errors import UserError

MAX_SPAN = 1 << 38  # us, 76 h: the report has every result


def command(
    context: typer.Context,
    app: Path = typer.Argument(..., help="The app's file, or its folder. --SOURCE FILE feeds a source of that name."),
    board: str = typer.Option("host", "--board", help="host, or a board to build firmware for."),
    engine: str | None = typer.Option(
        None, "--engine", help="On the host: native (the default), checked (stops where a value or an index leaves its range) or cortex-m."
    ),
    emulator: str | None = typer.Option(None, "--emulator", help="For a board: own (in this process, the default) or qemu."),
    mhz: float | None = typer.Option(None, "--mhz", help="For a board: the emulated core's clock, an instruction a cycle (default 31.25)."),
    checks: bool = typer.Option(False, "--checks", help="On the host: compiled code that stops where --engine checked would, much faster."),
    crop: bool = typer.Option(False, "--crop", help="Cut and scale pictures to what the camera gives."),
    time: str | None = typer.Option(
        None, "--for", help="How long an app runs whose jobs a clock or a source releases: 10s, 2min (default: as long as its longest source)."
    ),
    results: bool = typer.Option(False, "--results", help="Of such an app: print every result before the summary."),
    times: bool = typer.Option(False, "--times", help="Show the time of each stage and layer."),
    draw: Path | None = typer.Option(None, "--draw", help="Write the picture with the boxes drawn into this PNG."),
    as_json: bool = typer.Option(False, "--json", help="Print everything as JSON."),
) -> int:
    """Run an app: each job, for every frame of its source; or by its clock, and then it ends with a summary.

    syn run app.py --board mps2-an521 --for 10s

    On this machine time is virtual and steps take none; on a board (in an emulator) they take what they take there. What ends
    sooner than the app runs is begun again. Ctrl-C ends it with what there is by then. Ends with 1 if a job failed.
    """
    from synapticos import boards
    from synapticos.app.load import load_app, mistake
    from synapticos.boards import qemu
    from synapticos.host.execute import ENGINES, read_sources, run_on_board, run_on_host
    from synapticos.host.firmware import build_firmware, left_out
    from synapticos.host.simulate import parse_time

    loaded = load_app(app)
    clocked = any(job.released for job in loaded.jobs)
    if time is not None and not clocked:
        raise UserError(f"--for {time}: {loaded.name} runs once over its sources' frames; say every= or on= in app.job, or leave --for out")
    span_us = parse_time(time, "--for") // 1000 if time is not None else 0
    if time is not None and not 0 < span_us < MAX_SPAN:
        raise UserError(f"--for {time}: from 1us to {MAX_SPAN // 1_000_000 // 3600} h; syn simulate plays more")
    files = source_files(context.args, loaded)
    if engine not in (None, *ENGINES):
        raise UserError(f"--engine {engine}: there are {', '.join(ENGINES)}")
    if emulator not in (None, "own", "qemu"):
        raise UserError(f"--emulator {emulator}: own or qemu")
    if engine is not None and board != "host":
        raise UserError(f"--engine {engine}: is for the host; leave out --board {board}, or --engine")
    if emulator is not None and board == "host":
        raise UserError(f"--emulator {emulator}: is for a board; say which, like --board mps2-an521")
    if checks and (board != "host" or engine == "checked"):
        other = f"--board {board}" if board != "host" else "--engine checked, which has them"
        raise UserError(f"--checks: is for compiled code on the host; leave out {other}")
    if draw is not None and draw.suffix.lower() != ".png":
        raise UserError(f"--draw {draw}: is written as a PNG; name it so: {draw.with_suffix('.png')}")
    if draw is not None and not draw.absolute().parent.is_dir():
        raise UserError(f"--draw {draw}: there is no folder {draw.parent}")
    if mhz is not None and (board == "host" or emulator == "qemu"):
        raise UserError(f"--mhz {mhz:g}: is the pace of our own emulator; say --board BOARD, and leave --emulator qemu out")
    target = None if board == "host" else boards.find(board)
    missing = qemu.missing(target) if emulator == "qemu" else None
    if missing is not None:
        raise UserError(f"--emulator qemu: {missing}; the emulator of our own needs nothing: leave --emulator out")
    if engine == "cortex-m" or (board != "host" and emulator != "qemu"):
        importlib.import_module("synapticos.emulator")  # says what it lacks before anything is compiled
    try:
        unit = " ms" if clocked or board != "host" else " frames"
        with progress(f"running {loaded.name}", span_us // 1000 or None, unit) as advance, stoppable() as stop:
            given: dict[str, Any] = {"crop": crop, "advance": advance, "span_us": span_us, "stop": stop}
            if board == "host":
                report = run_on_host(loaded, files, engine=engine or "native", checks=checks, **given)
            else:
                read_sources(loaded, files, crop)
                built = build_firmware(loaded, board)
                built = built if mhz is None else replace(built, board=built.board.at(mhz))
                report = run_on_board(built, files, emulator=emulator or "own", **given)
    except Exception as error:  # a host stage of the app's
        raise mistake(error, app) from error
    if draw is not None:
        from synapticos.host.draw import draw_boxes

        draw_boxes(report, draw)
    status = INTERRUPTED if report.interrupted else 1 if report.failures else 0
    if as_json:
        print_json(report.to_json())
        return status
    if report.console:
        note(report.console.rstrip("\n"))
    for result in report.results if results or not clocked else []:
        text = _text(result.arrays) if result.arrays or not result.missed else "no result: not done by its deadline"
        print(f"{result.pipeline} {result.frame}: {text}".replace(": \n", ":\n"))
    for failure in report.failures:
        print(f"{failure.pipeline} {failure.frame}: failed: {failure}")
    if times:
        show_times(report)
    if clocked:
        show_summary(report)
    for line in [*handler_lines(report), *(left_out(loaded) if board != "host" else [])]:
        note(line)
    count = len(report.results)
    note(f"{report.where}: {count} result{'' if count == 1 else 's'}, digest {report.digest}")
    if draw is not None:
        note(f"wrote {draw}")
    return status


def show_summary(report: Any) -> None:
    """A row for each job that the kernel began; what never happened has no column."""
    rare = [name for name in ("merged", "starved", "surplus", "failed") if any(getattr(one, name) for one in report.summary)]
    rows = [
        [one.job, one.released, one.done, one.missed, one.dropped, *(getattr(one, name) for name in rare), *map(_ms, (one.median_us, one.worst_us, one.deadline_us))]
        for one in report.summary
    ]
    columns = ["job", "released", "done", "missed", "dropped", *rare, "median, ms", "worst, ms", "deadline, ms"]
    stopped = ", interrupted" if report.interrupted else ""
    table(f"{report.image.app.name}, {report.span_us / 1e6:g} s{stopped}", columns, rows)
    for name, one in report.counts["sources"].items():
        if one["lost"]:
            print(f"{name}: {one['lost']:,} bytes found no free entry, {one['gaps']:,} times; keep more, or shorten what reads it")
    for name, one in report.counts["jobs"].items():
        if one.get("callback_errors"):
            print(f"{name}: {one['callback_errors']:,} times a handler raised, at last {report.raised[name]}")


def _ms(us: float | None) -> str:
    return "-" if us is None else f"{us / 1000:,.3f}" if us < 10_000 else f"{us / 1000:,.1f}"


def handler_lines(report: Any) -> list[str]:
    """A line for each handler that failed."""
    return [f"{name}: {one.errors:,} of {one.runs:,} times its {one.failure}" for name, one in report.handled.items() if one.failure]


def show_times(report: Any) -> None:
    """Stages and layers with their times, and the arena."""
    for pipeline, rows in report.stages.items():
        table(f"{pipeline}: stages", ["stage", "step", f"time, {report.unit}"], rows)
    for model, rows in report.layers.items():
        table(f"{model}: layers", ["layer", "operator", "MACs", f"time, {report.unit}"], rows)
    print(f"arena: planned {report.planned:,} bytes, used {report.peak:,}")


def source_files(extra: list[str], app: Any) -> dict[str, Path]:
    """`--front visit.png` for each source of that name; anything else is refused."""
    files: dict[str, Path] = {}
    words = iter(extra)
    there = ", ".join(f"--{name}" for name in app.sources) or "none"
    for word in words:
        name, equals, value = word.partition("=")
        if not name.startswith("--") or name[2:] not in app.sources:
            raise UserError(f"{word}: no such option; the sources of {app.name} are {there}")
        given = value if equals else next(words, None)
        if given is None:
            raise UserError(f"{name}: which file?")
        files[name[2:]] = Path(given)
    return files


def _text(arrays: list[Any]) -> str:
    """A result in a line, or in a line a row."""
    texts = []
    for array in arrays:
        value = plain(array)
        if isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
            value = value[0]
        if isinstance(value, list) and value and isinstance(value[0], list):
            texts.append("".join(f"\n  {_row(row)}" for row in value[:20]) + (" ..." if len(value) > 20 else ""))
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            texts.append(", ".join(f"{item['index']} ({item['score']:.4g})" for item in value))
        else:
            texts.append(_row(value) if isinstance(value, list) else str(value))
    return "; ".join(text or "nothing" for text in texts)


def _row(row: Any) -> str:
    flat = row if isinstance(row, list) else [row]
    return " ".join(f"{v:.4g}" if isinstance(v, float) else str(v) for v in flat[:16]) + (" ..." if len(flat) > 16 else "") or "nothing"
