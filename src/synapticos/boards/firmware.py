"""Firmware: a board's own C and a program's, compiled and linked."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from synapticos import toolchain
from synapticos.boards.board import Board
from synapticos.boards.faults import Image
from synapticos.toolchain import Toolchain


def build(
    board: Board,
    files: Iterable[Path],
    out: Path,
    *,
    chain: Toolchain | None = None,
    flags: Sequence[str] = ("-Os", "-g"),
    per_file: Mapping[str, Sequence[str]] | None = None,
    stack: int | None = None,
    keep: Sequence[str] = (),
) -> Path:
    """Compile `files`, which have `int main(void)`, with the board's and link the firmware `out`, an ELF.

    `per_file` adds flags by file name. Raises CompileError, and then there is no `out`.
    """
    chain = chain or toolchain.find(board.target)
    with tempfile.TemporaryDirectory(prefix="syn-fw-") as scratch:
        folder = Path(scratch)
        script = folder / f"{board.name}.ld"
        script.write_text(board.script(stack=stack))
        own = chain.compile(board.sources, folder / "board", ("-Os", "-g", *board.flags), per_file=board.per_file)
        objects = chain.compile(files, folder / "program", flags, per_file=per_file)
        chain.link([*objects, *own], folder / "out.elf", script=script, keep=keep)
        out.write_bytes((folder / "out.elf").read_bytes())
    return out


def sizes(elf: bytes | str | Path | Image, board: Board) -> dict[str, int]:
    """Bytes that a firmware takes: flash, data (in both), bss, stack, and ram, the sum of the last three."""
    image = elf if isinstance(elf, Image) else Image(elf)
    at = image.symbols
    data = at["board_data_end"] - at["board_data_start"]
    bss = at["board_bss_end"] - at["board_bss_start"]
    stack = at["board_stack_top"] - at["board_stack_bottom"]
    flash = max((s.load + len(s.data) for s in image.segments if s.data and s.load < board.flash.end), default=0)
    return {"flash": flash - board.flash.base, "data": data, "bss": bss, "stack": stack, "ram": data + bss + stack}


def binary(elf: bytes | str | Path | Image) -> tuple[int, bytes]:
    """The bytes to program, and the address that they begin at. Gaps are 0xFF, as erased flash."""
    image = elf if isinstance(elf, Image) else Image(elf)
    parts = sorted((s.load, s.data) for s in image.segments if s.data)
    if not parts:
        raise ValueError("the ELF has nothing to program")
    base = parts[0][0]
    out = bytearray()
    for load, data in parts:
        out += b"\xff" * (load - base - len(out))
        out += data
    return base, bytes(out)


def intel_hex(base: int, data: bytes) -> str:
    """The same as Intel HEX: records of 16 bytes, an address record wherever the upper 16 bits change."""

    def record(kind: int, offset: int, content: bytes) -> str:
        line = bytes((len(content), offset >> 8 & 255, offset & 255, kind)) + content
        return f":{line.hex().upper()}{-sum(line) & 255:02X}\n"

    lines: list[str] = []
    upper = 0
    at = 0
    while at < len(data):
        address = base + at
        if address >> 16 != upper:
            upper = address >> 16
            lines.append(record(4, 0, upper.to_bytes(2, "big")))
        n = min(16 - address % 16, len(data) - at)
        lines.append(record(0, address & 0xFFFF, data[at : at + n]))
        at += n
    lines.append(record(1, 0, b""))
    return "".join(lines)
