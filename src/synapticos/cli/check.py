"""`syn check APP`: does it fit, and is each job done in time? A proof, or what is in the way."""

import re
from pathlib import Path
from typing import Any

import typer

from synapticos.cli.output import note, print_json, progress, table
from synapticos.errors import UserError

BAR = 30
COST = "; say what it takes at most: .stage(f, cost_us=...)"
PICTURE = {"exact": "exact", "bound": "bound by its loops", "declared": "declared", "recorded": "recorded", "stated": "stated by the accelerator", "measured": "measured, no bound"}


def command(
    app: Path = typer.Argument(..., help="The app's file, or its folder."),
    board: str = typer.Option("mps2-an521", "--board", help="Board to check for."),
    mhz: float | None = typer.Option(None, "--mhz", help="The core's clock, in place of the board's."),
    waits: str | None = typer.Option(None, "--waits", help="Wait states of code and of data, like 4,1 (default 0,0)."),
    margin: float | None = typer.Option(None, "--margin", help="For what the cycle model leaves out, as a part: 0.2 is 20 %."),
    profile: Path | None = typer.Option(None, "--profile", help="Times that syn calibrate recorded, in place of the cycle model."),
    interference: list[str] = typer.Option([], "--interference", help="NAME=EVERY/COST in microseconds, like tick=1000/5. May be repeated."),
    accept_measured: bool = typer.Option(False, "--accept-measured", help="A step whose longest time was only measured will do."),
    steps: bool = typer.Option(False, "--steps", help="Show every step with its time and how that is known."),
    as_json: bool = typer.Option(False, "--json", help="Print everything as JSON."),
) -> int:
    """Prove that an app fits a board and that its jobs keep their deadlines, or say what is in the way.

    syn check app.py --board mps2-an521 --interference tick=1000/5

    Ends with 0 if all of it holds, with 1 if something does not fit or a deadline cannot be guaranteed.
    """
    from synapticos import boards
    from synapticos.analysis.cycles import timing
    from synapticos.app.load import load_app
    from synapticos.host.check import check_app
    from synapticos.host.profile import Profile

    loaded = load_app(app)
    chosen = timing(boards.find(board), mhz=mhz, waits=_waits(waits), margin=margin)
    recorded = Profile.read(profile) if profile is not None else None
    struck = [parse_interference(text) for text in interference]
    with progress(f"checking {loaded.name} for {board}", 3) as advance:
        check = check_app(
            loaded, board, chosen, profile=recorded, interference=struck, accept_measured=accept_measured, advance=advance
        )  # fmt: skip
    if as_json:
        print_json(check.to_json())
    else:
        show(check, steps)
    for text in check.notes:
        note(text)
    return 0 if check.good else 1


def _waits(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    found = re.fullmatch(r"(\d{1,3}),(\d{1,3})", text)
    if not found:
        raise UserError(f"--waits {text}: wait states of code and of data, like 4,1")
    return int(found[1]), int(found[2])


def parse_interference(text: str) -> Any:
    """`NAME=EVERY/COST`, both in microseconds."""
    from synapticos.analysis.tasks import MOST_NS, US, Interference

    found = re.fullmatch(r"(\w[\w-]{0,30})=(\d{1,10})/(\d{1,10})", text)
    if not found or int(found[2]) == 0:
        raise UserError(f"--interference {text}: NAME=EVERY/COST in whole microseconds, like tick=1000/5")
    if int(found[3]) * US >= MOST_NS:
        raise UserError(f"--interference {text}: one takes less than {MOST_NS // US:,} us; say a shorter COST")
    return Interference(found[1], int(found[2]) * US, int(found[3]) * US)


def us(ns: int | None) -> str:
    """Nanoseconds as a person reads them."""
    if ns is None:
        return "-"
    if abs(ns) < 10_000_000:
        return f"{ns / 1000:,.1f} us"
    return f"{ns / 1_000_000:,.2f} ms" if abs(ns) < 10_000_000_000 else f"{ns / 1e9:,.2f} s"


def _bar(used: int, size: int) -> str:
    filled = min(BAR, -(-used * BAR // size)) if size else BAR
    return "[" + "#" * filled + "." * (BAR - filled) + "]"


def show(check: Any, steps: bool) -> None:
    """On one page."""
    m = check.memory
    print(f"{check.app} on {check.board}")
    print()
    rows = [("flash", m.flash, m.flash_size), ("RAM", m.ram, m.ram_size), ("stack", m.stack, m.stack_size)]
    if m.arena_size is not None:
        rows.append(("arena", m.arena, m.arena_size))
    for name, used, size in rows:
        print(f"  {name:<6} {_bar(used, size)} {used:>11,} of {size:,} bytes{'' if used <= size else f', {used - size:,} are missing'}")
    if m.arena_size is None:
        print(f"  arena  {m.arena:,} bytes of the RAM")
    for name, size in m.parts:
        print(f"           {size:>9,}  {name}")
    print(f"         most is alive in {m.worst}")
    for text in m.shortages:
        print(f"  does not fit: {text}")
    print()
    print(f"  times: {check.source}; {check.inputs} inputs of several kinds")
    load = check.tasks.utilisation
    print(f"  load: {load:.1%} of the processor, by what has a rate")
    table_rows: list[list[Any]] = []
    for r in check.responses:
        task = check.tasks.task(r.name)
        longest = max(check.bounds[r.name], key=lambda b: b.ns)
        table_rows.append(
            [r.name, _class(r.priority), us(task.period_ns) if task.period_ns else "?", us(r.cost), f"{us(longest.ns)} {longest.name}", us(r.start),
             us(r.response), us(r.deadline) if r.deadline else "none", us(r.slack), check.verdict(r)]
        )  # fmt: skip
    print()
    table("", ["job", "class", "every", "alone", "longest step", "starts within", "ends within", "deadline", "slack", "verdict"], table_rows)
    for r in check.responses:
        print()
        for line in explain(check, r):
            print(f"  {line}")
    if steps:
        for name, bounds in check.bounds.items():
            print()
            table(f"{name}: steps", ["step", "time", "known"], [[b.name, us(b.ns), PICTURE[b.how]] for b in bounds])
    print()
    print("all deadlines are kept" if check.good and any(r.deadline for r in check.responses) else _last(check))


def _class(priority: int) -> str:
    from synapticos.app.declare import PRIORITIES

    return PRIORITIES[priority]


def explain(check: Any, r: Any) -> list[str]:
    """Why a job takes as long as it does, and what would help."""
    out = []
    verdict = check.verdict(r)
    if r.response is None:
        out.append(f"{r.name}: no bound: {r.reason}")
    else:
        waits = "; ".join(f"{name} {us(ns)}" for name, ns in r.others[:3]) or "nothing else"
        blocked = f"blocked {us(r.blocking)} by {r.culprit}" if r.culprit else "never blocked"
        out.append(f"{r.name}: {blocked}; waits for {waits}")
    if r.apart:
        out.append(
            f"{r.name}: released by its source: no rate declared; give every= or a source with a rate. "
            f"With releases at least {us(r.apart)} apart it ends within {us(r.response)}"
        )
    steps = [b for b in check.bounds[r.name] if not b.guaranteed]
    for b in steps:
        out.append(f"{r.name}: {b.name} is measured ({us(b.ns)}), not bounded: {b.why}{COST if b.name.startswith('stage ') else ''}")
    if verdict == "kept as measured" and not steps:
        out.append(f"{r.name}: rests on {check.measured(r.name)}, which is measured and not bounded")
    advice = check.advice.get(r.name)
    if advice is not None:
        ways = []
        if advice.deadline is not None:
            ways.append(f"a deadline of {us(advice.deadline)}")
        if advice.max_step is not None:
            ways.append(f"no step of the classes below above {us(advice.max_step)} (layers: app.model(max_step=); a stage: less work in it)")
        if advice.speed is not None:
            ways.append(f"a core {advice.speed:g} times as fast ({check.timing.hz * advice.speed / 1e6:,.0f} MHz)")
        out.append(f"{r.name}: would do: {', or '.join(ways)}" if ways else f"{r.name}: no later deadline and no shorter step would do; it needs less work, or more time between jobs")
    return out


def _last(check: Any) -> str:
    if check.memory.shortages:
        return "it does not fit"
    bad = [r.name for r in check.responses if (r.deadline or r.name in check.ended) and check.verdict(r) not in ("kept", "no deadline")]
    if not bad or check.good:
        return "it fits; no job has a deadline" if not any(r.deadline for r in check.responses) else "all deadlines are kept, as measured"
    return f"not guaranteed: {', '.join(bad)}"
