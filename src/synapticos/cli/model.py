"""`syn model`: what a network is and needs, whether it is exact, its container, and what changed in it."""

from pathlib import Path
from typing import Any

import typer

from synapticos.cli.output import note, print_json
from synapticos.errors import UserError

commands = typer.Typer(help="Look into networks.", no_args_is_help=True, rich_markup_mode=None)


@commands.callback()
def _group() -> None:
    pass


@commands.command("info")
def info(
    file: Path = typer.Argument(..., help="A .tflite or .onnx file."),
    picture: Path | None = typer.Option(None, "--picture", help="Draw the memory plan into this PNG."),
    optimize: str = typer.Option("default", "--optimize", help="default, or none: keep every layer's own result."),
    ram: str | None = typer.Option(None, "--ram", help="Arena to fit, like 192K; ends with status 1 if it does not."),
    as_json: bool = typer.Option(False, "--json", help="Print all of it as JSON."),
) -> int:
    """Show layers, shapes, quantisation, multiply-accumulates, weights and the memory plan."""
    from synapticos import importers, model
    from synapticos.app.declare import parse_bytes
    from synapticos.model import draw

    need_file(file)
    if optimize not in ("default", "none"):
        raise UserError(f"--optimize {optimize}: default or none")
    room = parse_bytes(ram, "--ram")
    compiled = model.compile_model(importers.load(file), optimize="none" if optimize == "none" else "default")
    need = compiled.info.ram
    fits = room is None or need <= room
    if picture is not None:
        draw.draw_png(compiled.info, picture)
    if as_json:
        print_json(compiled.info.to_json() | ({} if room is None else {"available": room, "fits": fits}))
    else:
        print(compiled.info.to_text())
        print()
        print(draw.draw_text(compiled.info, 100))
    if picture is not None:
        note(f"wrote {picture}")
    if not fits:
        assert room is not None
        note(
            f"{file}: needs {need:,} bytes of arena, {room:,} are available, {need - room:,} are missing; "
            f"most are alive at {compiled.info.worst_layer}"
        )
    return 0 if fits else 1


@commands.command("compile")
def compile_file(
    file: Path = typer.Argument(..., help="A .tflite or .onnx file."),
    out: Path | None = typer.Option(None, "-o", "--out", help="The container; the model's name with .synm unless given."),
    optimize: str = typer.Option("default", "--optimize", help="default, or none: keep every layer's own result."),
    ram: str | None = typer.Option(None, "--ram", help="Arena to fit, like 192K; refused if it does not."),
    max_step: int | None = typer.Option(None, "--max-step", help="Most multiply-accumulates between two looks for urgent work."),
    answers: int = typer.Option(0, "--answers", help="Keep so many known answers in it, for `syn model verify`."),
) -> int:
    """Compile a network into a container that firmware runs as it lies. A MODEL.features.json beside it says what sound it hears."""
    from synapticos import importers, model
    from synapticos.app.declare import parse_bytes
    from synapticos.app.sound import read_features
    from synapticos.host.verify import known_answers

    if optimize not in ("default", "none"):
        raise UserError(f"--optimize {optimize}: default or none")
    how = "none" if optimize == "none" else "default"
    if max_step is not None and max_step < 1:
        raise UserError(f"--max-step {max_step}: at least 1")
    if answers < 0:
        raise UserError(f"--answers {answers}: 0 or more")
    need_file(file)
    room = parse_bytes(ram, "--ram")
    graph, heard = importers.load(file), read_features(file)
    made = model.compile_model(graph, optimize=how, ram=room, max_step=max_step, features=heard)  # type: ignore[arg-type]
    if answers:
        known = known_answers(file.read_bytes(), made, answers)
        made = model.compile_model(graph, optimize=how, ram=room, max_step=max_step, answers=known, features=heard)  # type: ignore[arg-type]
    target = out or file.with_suffix(".synm")
    try:
        target.write_bytes(made.container)
    except OSError as error:
        raise UserError(f"{target}: cannot be written ({error.strerror})") from None
    note(f"wrote {target}: {len(made.container):,} bytes, arena {made.plan.ram:,} bytes")
    return 0


@commands.command("verify")
def verify(
    file: Path = typer.Argument(..., help="A .tflite or .onnx, or a .synm with known answers."),
    board: str = typer.Option("host", "--board", help="host, or a board whose firmware runs the layers or answers."),
    cases: int = typer.Option(3, "--cases", help="Inputs: all lowest, all highest, then noise."),
    as_json: bool = typer.Option(False, "--json", help="Print the outcome as JSON."),
) -> int:
    """Compare every layer with the model format's reference (an .onnx: within 1 of onnxruntime); name the first that differs."""
    from synapticos import importers, model
    from synapticos.host.verify import verify_container, verify_container_on_board, verify_on_board, verify_on_host

    data = read_file(file)
    if cases < 1:
        raise UserError(f"--cases {cases}: at least 1")
    outcome: Any
    if data[:4] == b"SYNM":
        outcome = verify_container(data, file.name) if board == "host" else verify_container_on_board(data, file.name, board)
    else:
        made = model.compile_model(importers.load(file))
        outcome = verify_on_host(data, made, cases) if board == "host" else verify_on_board(data, made, board, cases)
    if as_json:
        print_json(outcome.to_json())
    else:
        print(outcome.to_text())
    return 0 if outcome.agrees else 1


@commands.command("diff")
def diff(
    before: Path = typer.Argument(..., help="A .tflite, .onnx or .synm."),
    after: Path = typer.Argument(..., help="Another of the same kind."),
    as_json: bool = typer.Option(False, "--json", help="Print it as JSON."),
) -> int:
    """Show what changed between two networks. Status 1 if anything did."""
    from synapticos import importers, model
    from synapticos.model.diff import Side, diff_models
    from synapticos.model.load import load_container

    def side(file: Path) -> Side:
        data = read_file(file)
        if data[:4] == b"SYNM":
            return Side.of_container(data, load_container(data, str(file)), file.name)
        return Side.of(model.compile_model(importers.load(file)), file.name)

    a, b = side(before), side(after)
    if before.suffix != after.suffix:
        raise UserError(f"{before.name} and {after.name}: give two of the same kind")
    found = diff_models(a, b)
    if as_json:
        print_json(found.to_json())
    else:
        print(found.to_text())
    return 0 if found.same else 1


def need_file(file: Path) -> None:
    if file.exists() and not file.is_file():
        raise UserError(f"{file}: is no regular file; give a .tflite, .onnx or .synm")
    if not file.is_file():
        raise UserError(f"{file}: no such file")


def read_file(file: Path) -> bytes:
    from synapticos.importers import MAX_FILE

    need_file(file)
    try:
        size = file.stat().st_size
        if size > MAX_FILE:
            raise UserError(f"{file}: {size} bytes are more than a model may have ({MAX_FILE}); give a smaller model")
        return file.read_bytes()
    except OSError as error:
        raise UserError(f"{file}: cannot be read ({error.strerror})") from None
