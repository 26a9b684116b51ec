"""`syn new NAME`: a folder with an app to start from."""

from pathlib import Path

import typer

from synapticos.cli.output import note, print_json
from synapticos.errors import UserError


def command(
    folder: Path = typer.Argument(..., help="Folder to make; its name is the app's."),
    model: Path | None = typer.Option(None, "--model", help="A .tflite to start from (default: a small one that comes with it)."),
    as_json: bool = typer.Option(False, "--json", help="Print what was written as JSON."),
) -> int:
    """Write an app to start from, with a stage in typed Python."""
    from synapticos.app.skeleton import write_skeleton

    if folder.exists():
        raise UserError(f"{folder}: is there already; name a new folder")
    files = write_skeleton(folder, model)
    if as_json:
        print_json({"folder": folder, "files": files})
    else:
        for file in files:
            print(file)
        note(f"try it: syn run {folder / 'app.py'}")
    return 0
