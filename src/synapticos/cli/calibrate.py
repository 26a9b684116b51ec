"""`syn calibrate APP`: record how long each step takes on a board, for `syn check --profile`."""

import json
from pathlib import Path

import typer

from synapticos.cli.output import note, print_json, progress, table
from synapticos.cli.run import source_files
from synapticos.errors import UserError


def command(
    context: typer.Context,
    app: Path = typer.Argument(..., help="The app's file, or its folder. --SOURCE FILE feeds a source of that name."),
    board: str = typer.Option("mps2-an521", "--board", help="Board to run on."),
    emulator: str = typer.Option("own", "--emulator", help="own (in this process) or qemu."),
    out: Path = typer.Option(Path("profile.json"), "--out", help="File for the profile."),
    margin: float = typer.Option(0.1, "--margin", help="Added to each time, for what another run may take more: 0.1 is 10 %."),
    crop: bool = typer.Option(False, "--crop", help="Cut and scale pictures to what the camera gives."),
    as_json: bool = typer.Option(False, "--json", help="Print the profile as JSON."),
) -> int:
    """Run an app's firmware and record the longest time of each step, by the board's own clock.

    syn calibrate app.py --board mps2-an521 --out profile.json

    The profile is worth what the clock is: an emulator's says how many instructions there were.
    """
    from synapticos.app.load import load_app
    from synapticos.host.execute import run_on_board
    from synapticos.host.files import write_files
    from synapticos.host.firmware import build_firmware
    from synapticos.host.profile import Profile

    if emulator not in ("own", "qemu"):
        raise UserError(f"--emulator {emulator}: own or qemu")
    if not 0 <= margin <= 10:
        raise UserError(f"--margin {margin:g}: a part of each time, from 0 to 10; 0.1 is 10 %")
    if out.is_dir() or (out.absolute().parent.exists() and not out.absolute().parent.is_dir()):
        raise UserError(f"--out {out}: {'is a folder' if out.is_dir() else f'{out.parent} is no folder'}; give a file, like profile.json")
    loaded = load_app(app)
    files = source_files(context.args, loaded)
    layers = max((len(m.compiled.info.layers) for m in loaded.models), default=1)
    with progress(f"running {loaded.name} on {board}") as advance:
        built = build_firmware(loaded, board, profile=True, settings={"LAYER_TIMES": max(layers, 1)})
        report = run_on_board(built, files, emulator=emulator, crop=crop, advance=advance)
    profile = Profile.of(report, margin)
    write_files(out.parent, {out.name: (json.dumps(profile.to_json(), indent=2) + "\n").encode()})
    if as_json:
        print_json(profile.to_json())
        return 0
    for name, rows in profile.steps.items():
        table(name, ["step", "time, us"], [[step, round(ns / 1000, 1)] for step, ns in rows])
    note(f"{report.where}: the longest of {profile.frames} frame{'' if profile.frames == 1 else 's'}; wrote {out}")
    return 0
