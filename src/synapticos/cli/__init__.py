"""`syn`: one file a command. A command parses, calls and prints; results go to stdout, all else to stderr.

Exit status: 0 yes, 1 no, 2 bad input, 130 interrupted.
"""

import errno
import io
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

INTERRUPTED = 130
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def main() -> None:
    """The command `syn`."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that has no such letter shows a ?
    if sys.stderr is None:  # closed: print would take stdout for it
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    if sys.stdout is None:
        print("syn: standard output is closed; there is nowhere to write to", file=sys.stderr)
        sys.exit(2)
    _end_at_the_second()
    try:
        status = invoke(sys.argv[1:])
    except KeyboardInterrupt:  # before a command has begun
        print("syn: interrupted", file=sys.stderr)
        status = INTERRUPTED
    sys.exit(status)


def _end_at_the_second() -> None:
    """Python hears of Ctrl-C when a call into compiled code returns, and a stage may not: the second one ends the process."""
    told, tell = os.pipe()
    os.set_blocking(tell, False)
    signal.set_wakeup_fd(tell, warn_on_full_buffer=False)

    def watch() -> None:
        heard = 0
        while heard < 2:
            heard += os.read(told, 16).count(signal.SIGINT)
        os.write(2, b"syn: interrupted\n")
        os._exit(INTERRUPTED)

    threading.Thread(target=watch, daemon=True).start()


def invoke(arguments: list[str]) -> int:
    """`syn` with these arguments: its exit status."""
    try:
        status = _run(arguments)
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # syn ... | head
        _drop_output()
        return 1
    except OSError as error:
        if error.filename is not None or error.errno not in FULL:
            raise  # ours
        _drop_output()
        print(f"syn: {(error.strerror or str(error)).lower()}; not all was written", file=sys.stderr)
        return 2


def _run(arguments: list[str]) -> int:
    import typer

    from synapticos import toolchain
    from synapticos.cli.commands import build_command
    from synapticos.cli.output import fail, note, one_line
    from synapticos.errors import KernelError, UserError
    from synapticos.lang import Trap

    # typer carries its own click in some versions and shares one in others: the class is the one it raises.
    usage_error: Any = typer.BadParameter.__mro__[2]
    as_json = "--json" in arguments
    toolchain.announce = note
    try:
        result = build_command()(args=arguments, prog_name="syn", standalone_mode=False)
    except UserError as error:
        ours = type(error) in (UserError, KernelError)  # the others have lines of their own
        return fail(one_line(str(error)) if ours else str(error), as_json)
    except Trap as trap:
        if trap.file.startswith("synapticos/"):
            raise  # ours
        return fail(str(trap), as_json)
    except (KeyboardInterrupt, typer.Abort):
        print("syn: interrupted", file=sys.stderr)
        return INTERRUPTED
    except typer.Exit as error:
        return error.exit_code
    except usage_error as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # `syn`, `syn model`: the help itself
            print(error.format_message(), file=sys.stderr)
            return 2
        return fail(f"{one_line(error.format_message()).rstrip('.')}; syn --help lists what there is", as_json)
    except MemoryError:
        return fail("this machine has too little memory for that", as_json)
    except OSError as error:  # a file of the user's that cannot be read or written; ours are there
        name = error.filename
        if name is None or Path(os.fsdecode(name)).resolve().is_relative_to(Path(__file__).parents[1]):
            raise
        return fail(one_line(f"{os.fsdecode(name)}: {(error.strerror or str(error)).lower()}"), as_json)
    if result == INTERRUPTED:  # typer makes a number of Ctrl-C
        print("syn: interrupted", file=sys.stderr)
    return result if isinstance(result, int) else 0


def _drop_output() -> None:
    """The interpreter flushes stdout once more as it ends, and what is left there must have somewhere to go."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
