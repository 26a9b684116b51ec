"""`syn try MODEL`: a network on trial, on one page."""

from pathlib import Path
from typing import Any

import typer

from synapticos.cli.output import note, print_json, progress, table


def command(
    model: Path = typer.Argument(..., help="A .tflite or .onnx file."),
    board: list[str] = typer.Option([], "--board", help="A board to fit; all that there are unless given. May be repeated."),
    cases: int = typer.Option(3, "--cases", min=1, help="Inputs for the comparison: all lowest, all highest, then noise."),
    as_json: bool = typer.Option(False, "--json", help="Print everything as JSON."),
) -> int:
    """Say of a network whether it runs here, on which board, at what cost, and whether it is exact.

    Ends with 0 if it compiles, a board holds it and no layer differs from the reference; else with 1.
    """
    from synapticos.host.trial import try_model

    with progress(f"trying {model.name}"):
        trial = try_model(model, board_names=board or None, cases=cases)
    if as_json:
        print_json(trial.to_json())
        return 0 if trial.good else 1
    if trial.problems:
        print(f"{trial.name}: {len(trial.problems)} operator{'s' if len(trial.problems) > 1 else ''} cannot be compiled")
        for problem in trial.problems:
            print(f"  {problem}")
        return 1
    _show(trial)
    for text in trial.notes:
        note(text)
    return 0 if trial.good else 1


def _show(trial: Any) -> None:
    print(f"{trial.name}: {len(trial.layers)} layers, {trial.macs:,} multiply-accumulates, file {trial.file:,} bytes")
    for word, texts in (("in", trial.inputs), ("out", trial.outputs)):
        for text in texts:
            print(f"  {word:<4}{text}")
    print()
    counted = bool(trial.layers) and trial.layers[0].instructions is not None
    columns = ["step", "operator", "result", "", "MACs", "weights", "live RAM"] + (["instructions", "an MAC"] if counted else [])
    rows = []
    for x in trial.layers:
        row: list[Any] = [x.step, x.operator, x.name, x.output, x.macs, x.weights, x.live]
        if counted:
            row += [x.instructions, f"{x.instructions / x.macs:.2f}" if x.macs else ""]
        rows.append(row)
    table("", columns, rows)
    print()
    if counted:
        print(f"instructions  {sum(x.instructions for x in trial.layers):,} an inference on a Cortex-M33 with DSP (counted, not cycles)")
    print(f"flash         {trial.container:,} bytes for the network")
    state = f", {trial.state:,} of state" if trial.state else ""
    print(f"RAM           {trial.arena:,} bytes: {trial.frame:,} of tensors, {trial.scratch:,} of scratch{state}")
    print(f"              largest live set {trial.live:,} at {trial.peak}; all tensors {trial.total:,}")
    for fit in trial.boards:
        used = [f"{what} {'?' if n is None else f'{n:,}'} of {size:,}" for what, n, size in (("flash", fit.flash, fit.flash_size), ("RAM", fit.ram, fit.ram_size))]
        print(f"{'fits' if fit.fits else 'does not fit':<14}{fit.board}: {', '.join(used)}{f' ({fit.note})' if fit.note else ''}")
    if trial.verdict is not None:
        v = trial.verdict
        against = f"{v.layers} layers, {v.cases} inputs, {v.where} against {v.reference}"
        print(f"{v.word:<14}{against}: {v.found}")
