"""`syn simulate APP`: hours of an app's schedule in seconds, in virtual time, by its own kernel."""

import json
from pathlib import Path
from typing import Any

import typer

from synapticos.cli.check import us
from synapticos.cli.output import note, print_json, progress, table
from synapticos.errors import UserError

MOST_EVENTS = 20_000_000  # of interrupts and sources in a record


def command(
    app: Path = typer.Argument(..., help="The app's file, or its folder."),
    time: str | None = typer.Option(None, "--for", help="How long: 10min, 90s, 200ms (default 1h, or as long as --replay was recorded)."),
    seed: int = typer.Option(0, "--seed", help="What is not even (jitter) is made of this; the same seed, the same events.", min=0),
    rate: list[str] = typer.Option(
        [], "--rate", help="NAME=EVERY[/JITTER] in microseconds, of a source or a job of which the app does not say it. May be repeated."
    ),
    board: str = typer.Option("mps2-an521", "--board", help="Board whose times are taken."),
    mhz: float | None = typer.Option(None, "--mhz", help="The core's clock, in place of the board's."),
    waits: str | None = typer.Option(None, "--waits", help="Wait states of code and of data, like 4,1 (default 0,0)."),
    margin: float | None = typer.Option(None, "--margin", help="For what the cycle model leaves out, as a part: 0.2 is 20 %."),
    interference: list[str] = typer.Option([], "--interference", help="NAME=EVERY/COST in microseconds, like tick=1000/5. May be repeated."),
    checked: Path | None = typer.Option(None, "--check", help="What syn check --json has printed: takes the times from there."),
    record: Path | None = typer.Option(None, "--record", help="Write all that came (sources, submitted jobs, interrupts) into this file."),
    replay: Path | None = typer.Option(None, "--replay", help="Let come what such a file says, and nothing else."),
    draw: Path | None = typer.Option(None, "--draw", help="Write a timeline into this SVG."),
    trace: Path | None = typer.Option(None, "--trace", help="Write a trace for ui.perfetto.dev into this JSON."),
    begin: str | None = typer.Option(None, "--from", help="Where timeline and trace begin (default: just before the first miss, else 0)."),
    window: str | None = typer.Option(None, "--window", help="How much of the time they show (default: some jobs of each kind)."),
    as_json: bool = typer.Option(False, "--json", help="Print everything as JSON."),
) -> int:
    """Simulate an app: every step takes the longest that syn check knows of it, and time is virtual.

    syn simulate app.py --for 1h --seed 3 --draw timeline.svg

    Released are the jobs that began to wait or run: what a full queue dropped is counted apart. Missed are all that were not
    done by their deadline, expired those of them that were ended or not begun for it.

    Ends with 0 if no deadline was missed and nothing dropped, with 1 otherwise.
    """
    from synapticos.analysis.tasks import TaskSet
    from synapticos.app.image import compile_app
    from synapticos.app.load import load_app
    from synapticos.host import simulate as host
    from synapticos.host.timeline import draw_timeline, write_trace

    until = host.parse_time(time or "1h", "--for")
    if replay is not None and (rate or seed):
        raise UserError("--replay: says all that comes; leave --rate and --seed out")
    if replay is not None and record is not None:
        raise UserError(f"--record {record}: what --replay says is recorded already; leave one of them out")
    if trace is not None and record is not None and trace.absolute() == record.absolute():
        raise UserError(f"--record {record}: is the name of the --trace too; give another")
    for option, path, suffix in (("--draw", draw, ".svg"), ("--trace", trace, ".json"), ("--record", record, ".json")):
        if path is not None and path.suffix.lower() != suffix:
            raise UserError(f"{option} {path}: is written as {suffix[1:].upper()}; name it so: {path.with_suffix(suffix)}")
        if path is not None and not path.absolute().parent.is_dir():
            raise UserError(f"{option} {path}: there is no folder {path.parent}")
    rates = [host.Rate.parse(text) for text in rate]
    loaded = load_app(app)
    if replay is None:  # what is missing is said before anything is measured
        host.streams(compile_app(loaded, slots=max(len(loaded.jobs), 1), enforce=False), TaskSet(()), rates)
    tasks, costs, where = _times(loaded, board, mhz, waits, margin, interference, checked)
    simulator = host.Simulator(loaded, tasks, costs, board=where)
    given: list[host.Stream] = []
    kept: list[Any] = []
    if replay is not None:
        arrivals, recorded = host.read_arrivals(replay, simulator.image)
        if time is None:
            until = recorded
        elif until > recorded:
            raise UserError(f"--for {time}: {replay} was recorded for {recorded / 1e9:g} s; leave --for out, or say less")
    else:
        given = host.streams(simulator.image, tasks, rates)
        if record is not None and sum(until / s.every for s in given) > MOST_EVENTS:
            raise UserError(f"--record {record}: more than {MOST_EVENTS:,} arrivals; record less time")

    def coming() -> Any:
        if replay is not None:
            return arrivals
        return host.seeded(given, until, seed)

    with progress(f"simulating {loaded.name}", until // 1_000_000) as advance:
        source = host.record_arrivals(coming(), kept) if record is not None and replay is None else coming()
        made = simulator.run(until, source, seed=None if replay else seed, advance=lambda ns: advance(ns / 1_000_000))
    shown = None
    if draw is not None or trace is not None:
        span = _window(made, tasks, begin, window, until)
        shown = simulator.run(span[1], coming(), seed=seed, window=span)
        if draw is not None:
            draw_timeline(shown.spans, draw, title=loaded.name, begin_us=span[0] / 1000, end_us=span[1] / 1000)
        if trace is not None:
            write_trace(shown.spans, trace)
    if record is not None:
        host.write_arrivals(record, loaded.name, until, given, kept)
    if as_json:
        print_json(made.to_json())
    else:
        _show(made, tasks)
    note(f"{made.seconds:g} s in {made.took:.2f} s: {made.factor:,.0f} times real time; events {made.digest[:16]}")
    for path in (draw, trace, record):
        if path is not None:
            note(f"wrote {path}")
    return 0 if made.good else 1


def _times(app: Any, board: str, mhz: float | None, waits: str | None, margin: float | None, interference: list[str], checked: Path | None) -> Any:
    """What each step takes, as `syn check` says it: now, or in a file."""
    from synapticos import boards
    from synapticos.analysis.cycles import timing
    from synapticos.analysis.tasks import TaskSet
    from synapticos.app.image import compile_app
    from synapticos.cli.check import _waits, parse_interference
    from synapticos.host.check import check_app
    from synapticos.host.simulate import agree, costs_of

    if checked is not None:
        if mhz is not None or waits is not None or margin is not None or interference:
            raise UserError("--check: says all times; leave --mhz, --waits, --margin and --interference out")
        try:
            given = json.loads(checked.read_text())
            tasks = TaskSet.from_json(given["tasks"])
            places = {job["job"]: [(step["stage"], step["layer"]) for step in job["steps"]] for job in given["jobs"]}
            hash(tuple(map(tuple, places.values())))
            where = str(given["board"])
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise UserError(f"{checked}: is not what syn check --json prints ({error})") from None
        if tasks.name != app.name:
            raise UserError(f"{checked}: is of {tasks.name or 'another app'}, and this is {app.name}; run syn check --json again")
        same = all(len(places.get(t.name, ())) == len(t.steps) // t.jobs for t in tasks.tasks)
        costs = costs_of(tasks, places) if same else {}
        if not agree(compile_app(app, slots=max(len(app.jobs), 1), enforce=False), costs):
            raise UserError(f"{checked}: is of an earlier {app.name}, with other jobs or steps; run syn check --json again")
        return tasks, costs, boards.find(where).name
    chosen = timing(boards.find(board), mhz=mhz, waits=_waits(waits), margin=margin)
    with progress(f"measuring {app.name} for {board}", 3) as advance:
        check = check_app(app, board, chosen, interference=[parse_interference(t) for t in interference], advance=advance)
    return check.tasks, costs_of(check.tasks, {n: [(b.stage, b.layer) for b in bounds] for n, bounds in check.bounds.items()}), board


def _window(made: Any, tasks: Any, begin: str | None, window: str | None, until: int) -> tuple[int, int]:
    """What timeline and trace show, in ns."""
    from synapticos.host.simulate import parse_time

    longest = max(max(task.period_ns, task.cost_ns) for task in tasks.tasks)
    often = min((task.period_ns for task in tasks.tasks if task.period_ns), default=longest)
    span = parse_time(window, "--window") if window else min(4 * longest, 30 * often)
    if begin is not None:
        start = 0 if begin in ("0", "0s") else parse_time(begin, "--from")
    else:
        start = max(made.first_miss - span // 4, 0) if made.first_miss is not None else 0
    if start >= until:
        raise UserError(f"--from {begin}: the simulation ends before")
    return start, min(start + span, until)


def _show(made: Any, tasks: Any) -> None:
    rows = []
    for job in made.jobs:
        rows.append([
            job.name, job.released, job.finished, job.missed, job.expired, job.dropped + job.coalesced, job.refused + job.failed,
            us(job.median if job.finished else None), us(job.worst if job.finished else None), us(job.deadline) if job.deadline else "none",
        ])  # fmt: skip
    columns = ["job", "released", "finished", "missed", "expired", "dropped", "failed", "median", "worst", "deadline"]
    table(f"{made.app} on {made.board}, {made.seconds:g} s, load {made.load:.1%}, {made.preemptions:,} pre-emptions", columns, rows)
    if made.first_miss is not None:
        print(f"the first miss is of a job of {made.first_missed}, released at {made.first_miss / 1e9:.6f} s")
