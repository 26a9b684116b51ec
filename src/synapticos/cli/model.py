"""`syn model info FILE`: what a network is, costs and needs."""

from pathlib import Path

import typer

from synapticos.cli.output import note, print_json
from synapticos.errors import UserError

commands = typer.Typer(help="Look into networks.", no_args_is_help=True, rich_markup_mode=None)


@commands.callback()
def _group() -> None:
    pass


@commands.command("info")
def info(
    file: Path = typer.Argument(..., help="A .tflite file."),
    picture: Path | None = typer.Option(None, "--picture", help="Draw the memory plan into this PNG."),
    optimize: str = typer.Option("default", "--optimize", help="default, or none: keep every layer's own result."),
    ram: str | None = typer.Option(None, "--ram", help="Arena to fit, like 192K; ends with status 1 if it does not."),
    as_json: bool = typer.Option(False, "--json", help="Print all of it as JSON."),
) -> int:
    """Show layers, shapes, quantisation, multiply-accumulates, weights and the memory plan."""
    from synapticos import importers, model
    from synapticos.app.declare import parse_bytes
    from synapticos.model import draw

    if not file.is_file():
        raise UserError(f"{file}: no such file")
    if optimize not in ("default", "none"):
        raise UserError(f"--optimize {optimize}: default or none")
    room = parse_bytes(ram, "--ram")
    compiled = model.compile_model(importers.load(file), optimize="none" if optimize == "none" else "default")
    need = compiled.info.ram
    fits = room is None or need <= room
    if as_json:
        print_json(compiled.info.to_json() | ({} if room is None else {"available": room, "fits": fits}))
    else:
        print(compiled.info.to_text())
        print()
        print(draw.draw_text(compiled.info, 100))
    if picture is not None:
        draw.draw_png(compiled.info, picture)
        note(f"wrote {picture}")
    if not fits:
        assert room is not None
        note(
            f"{file}: needs {need:,} bytes of arena, {room:,} are available, {need - room:,} are missing; "
            f"most are alive at {compiled.info.worst_layer}"
        )
    return 0 if fits else 1
