"""The list of commands."""

from typing import Any

import typer
import typer.main

from synapticos.cli import build, calibrate, check, doctor, model, new, run, simulate, try_


def build_command() -> Any:
    app = typer.Typer(
        name="syn",
        help="SynapticOS: an operating system for microcontrollers whose unit of work is the inference job.",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    extra = {"allow_extra_args": True, "ignore_unknown_options": True}
    app.command("run", context_settings=extra)(run.command)
    app.command("build")(build.command)
    app.command("check")(check.command)
    app.command("calibrate", context_settings=extra)(calibrate.command)
    app.command("simulate")(simulate.command)
    app.command("try")(try_.command)
    app.command("new")(new.command)
    app.add_typer(model.commands, name="model")
    app.command("doctor")(doctor.command)
    app.callback()(_version)
    return typer.main.get_command(app)


def _show_version(wanted: bool) -> None:
    if wanted:
        from synapticos import __version__

        print(f"synapticos {__version__}")
        raise typer.Exit()


def _version(
    version: bool = typer.Option(False, "--version", callback=_show_version, is_eager=True, help="Print the version."),
) -> None:
    pass
