"""`syn`: one file a command. A command parses, calls and prints; results go to stdout, all else to stderr.

Exit status: 0 yes, 1 no, 2 bad input, 130 interrupted.
"""

import os
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    """The command `syn`."""
    try:
        status = invoke(sys.argv[1:])
    except KeyboardInterrupt:  # before a command has begun
        print("syn: interrupted", file=sys.stderr)
        status = 130
    sys.exit(status)


def invoke(arguments: list[str]) -> int:
    """`syn` with these arguments: its exit status."""
    import typer

    from synapticos.cli.commands import build_command
    from synapticos.cli.output import fail
    from synapticos.errors import UserError
    from synapticos.lang import Trap

    # typer carries its own click in some versions and shares one in others: the class is the one it raises.
    usage_error: Any = typer.BadParameter.__mro__[2]
    as_json = "--json" in arguments
    try:
        result = build_command()(args=arguments, prog_name="syn", standalone_mode=False)
    except UserError as error:
        return fail(str(error), as_json)
    except Trap as trap:
        if trap.file.startswith("synapticos/"):
            raise  # ours
        return fail(str(trap), as_json)
    except (KeyboardInterrupt, typer.Abort):
        print("syn: interrupted", file=sys.stderr)
        return 130
    except typer.Exit as error:
        return error.exit_code
    except usage_error as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # `syn`, `syn model`: the help itself
            print(error.format_message(), file=sys.stderr)
            return 2
        text = " ".join(error.format_message().split()).rstrip(".")
        return fail(f"{text}; syn --help lists what there is", as_json)
    except BrokenPipeError:  # syn ... | head
        sys.stderr.close()
        return 1
    except OSError as error:  # a file of the user's that cannot be read or written; ours are there
        name = error.filename
        if name is None or Path(os.fsdecode(name)).resolve().is_relative_to(Path(__file__).parents[1]):
            raise
        return fail(f"{os.fsdecode(name)}: {(error.strerror or str(error)).lower()}", as_json)
    return result if isinstance(result, int) else 0
