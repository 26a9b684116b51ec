"""`syn build APP --board NAME`: firmware, the C it is made of, and what takes how much."""

from pathlib import Path

import typer

from synapticos.cli.output import note, print_json, progress, table
from synapticos.errors import UserError


def command(
    app: Path = typer.Argument(..., help="The app's file, or its folder."),
    board: str = typer.Option("mps2-an521", "--board", help="Board to build for."),
    out: Path = typer.Option(Path("out"), "--out", help="Folder for what is built."),
    compiler: str | None = typer.Option(None, "--compiler", help="arm-none-eabi-gcc or zig (default: the first there is)."),
    profile: bool = typer.Option(False, "--profile", help="Keep the times of stages and layers, as `syn run --board` does."),
    strict: bool = typer.Option(False, "--strict", help="Refuse an app of which something stays on the host."),
    as_json: bool = typer.Option(False, "--json", help="Print the sizes as JSON."),
) -> int:
    """Build firmware: ELF, .bin, .hex, the C, and its sizes."""
    from synapticos.app.load import load_app
    from synapticos.host.firmware import build_firmware, left_out

    loaded = load_app(app)
    if strict and left_out(loaded):
        raise UserError(f"--strict: {left_out(loaded)[0]}")
    with progress(f"building {loaded.name} for {board}"):
        built = build_firmware(loaded, board, compiler, profile=profile)
    files = built.write(out)
    if as_json:
        print_json({"app": loaded.name, "board": built.board.name, "files": files, "sizes": built.sizes, "parts": built.parts, "stack": built.stack.to_json(), "left_out": built.left_out})
        return 0
    table("", ["part", "flash", "RAM"], [[name, flash, ram] for name, flash, ram in built.parts])
    sizes = built.sizes
    print(
        f"{built.board.name}: flash {sizes['flash']:,} of {built.board.flash.size:,} bytes; "
        f"RAM {sizes['ram']:,} of {built.board.ram.size:,}, {sizes['stack']:,} of it stack, "
        f"of which {built.stack.bytes:,} can be used at most"
    )
    for line in built.left_out:
        note(line)
    for file in files:
        note(f"wrote {file}")
    return 0
