"""QEMU, where it is installed: the second opinion on every firmware that the in-process emulator runs."""

from __future__ import annotations

import functools
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from synapticos.boards.board import Board
from synapticos.boards.result import Result
from synapticos.errors import UserError

PROGRAM = "qemu-system-arm"
# Noise of the emulator itself, not of the firmware.
_NOISE = re.compile(r"^(Timer with period zero, disabling|qemu-system-arm: .*audio.*)$", re.MULTILINE)


@functools.cache
def version() -> str | None:
    """QEMU's version, or None if it is not installed."""
    if shutil.which(PROGRAM) is None:
        return None
    done = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, check=False)
    found = re.search(r"version (\d+\.\d+\.\d+)", done.stdout)
    return found.group(1) if found else None


def missing(board: Board | None = None) -> str | None:
    """Why QEMU cannot run a board's firmware here, for a test that skips; None if it can."""
    if version() is None:
        return f"{PROGRAM} is not installed (apt install qemu-system-arm)"
    if board is not None and not board.qemu:
        return f"QEMU does not know the board {board.name}"
    return None


def command(board: Board, elf: Path, argument: str = "") -> list[str]:
    """The command that boots a firmware: console on stdout, exit status from the firmware, virtual time."""
    parts = "".join(f",arg={word.replace(',', ',,')}" for word in ("img", *([argument] if argument else [])))
    return [
        PROGRAM,
        *board.qemu,
        *("-display", "none", "-monitor", "none", "-serial", "stdio"),
        *("-semihosting-config", f"enable=on,target=native{parts}"),
        *("-icount", "shift=5,sleep=off"),
        *("-kernel", str(elf)),
    ]


def debug_target(board: Board, elf: Path) -> str:
    """What to tell gdb so that it starts the firmware itself, stopped at reset: no port is needed."""
    words = [PROGRAM, *board.qemu, "-display", "none", "-monitor", "none", "-serial", "null"]
    words += ["-semihosting-config", "enable=on,target=native,arg=img", "-kernel", str(elf), "-gdb", "stdio", "-S"]
    return f"target remote | exec {shlex.join(words)}"


def run(
    board: Board,
    elf: bytes | str | Path,
    *,
    argument: str = "",
    files: Mapping[str, bytes] | None = None,
    folder: Path | None = None,
    timeout: float = 120,
) -> Result:
    """Boot a firmware and wait for its end, at most `timeout` seconds of real time.

    It opens files in `folder` (default: where we are), or, if `files` are given, in a folder of its own that holds
    them; the result then has them as the firmware left them.
    """
    why = missing(board)
    if why is not None:
        raise UserError(why)
    with tempfile.TemporaryDirectory(prefix="syn-qemu-") as scratch:
        place = Path(scratch)
        if isinstance(elf, bytes):
            image = place / "firmware.elf"
            image.write_bytes(elf)
        else:
            image = Path(elf).resolve()
        where = Path(folder or ".")
        if files is not None:
            where = place / "files"
            where.mkdir()
            for name, content in files.items():
                (where / name).write_bytes(content)
        with open(os.devnull, "rb") as nothing:
            try:
                done = subprocess.run(
                    command(board, image, argument),
                    stdin=nothing,
                    capture_output=True,
                    cwd=where,
                    timeout=timeout,
                    check=False,
                )
                code, reason = done.returncode, ""
                out, err = done.stdout, done.stderr
            except subprocess.TimeoutExpired as late:
                code, reason = None, f"no end after {timeout:g} s"
                out, err = late.stdout or b"", late.stderr or b""
        noise = _NOISE.sub("", err.decode(errors="replace")).strip()
        if noise:
            reason = reason or noise
            if code is not None and code < 0 or "Lockup" in noise:
                code = None
        left = {p.name: p.read_bytes() for p in sorted(where.iterdir())} if files is not None else {}
    return Result(code, out.decode(errors="replace").replace("\r\n", "\n"), left, reason)
