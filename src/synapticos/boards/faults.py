"""What an ELF says of addresses: symbols, ranges of code, and lines (which are Python lines: the C has #line).

`explain` reads the text that the fault handler of a board printed and adds where in the Python it was.
"""

from __future__ import annotations

import bisect
import functools
import io
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection


@dataclass(frozen=True)
class Place:
    """Where an address is: in which function, at which line of which file; what is not known is "" or 0."""

    function: str = ""
    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.file else ""
        if self.function:
            return f"{self.function} ({where})" if where else self.function
        return where or "an unknown place"


@dataclass(frozen=True)
class Segment:
    """Bytes to load: at `address` they are used, at `load` they are stored; `size` counts the zeroed rest too."""

    address: int
    load: int
    data: bytes
    size: int
    executable: bool
    writable: bool


class Image:
    """An ELF, read once: segments and symbols at once, lines when first asked for."""

    def __init__(self, elf: bytes | str | Path) -> None:
        self.data = elf if isinstance(elf, bytes) else Path(elf).read_bytes()
        file = ELFFile(io.BytesIO(self.data))
        self.entry: int = file["e_entry"]
        self.segments = [
            Segment(s["p_vaddr"], s["p_paddr"], s.data(), s["p_memsz"], bool(s["p_flags"] & 1), bool(s["p_flags"] & 2))
            for s in file.iter_segments()
            if s["p_type"] == "PT_LOAD" and s["p_memsz"]
        ]
        self.symbols: dict[str, int] = {}
        self.sizes: dict[str, int] = {}
        marks: list[tuple[int, str]] = []
        functions: list[tuple[int, int, str]] = []
        for section in file.iter_sections():
            if not isinstance(section, SymbolTableSection):
                continue
            for symbol in section.iter_symbols():
                if symbol["st_shndx"] == "SHN_UNDEF" or not symbol.name:
                    continue
                kind, value = symbol["st_info"]["type"], symbol["st_value"]
                if symbol.name[:2] in ("$t", "$d", "$a"):
                    marks.append((value, symbol.name[1]))
                    continue
                if symbol["st_info"]["bind"] != "STB_LOCAL" or symbol.name not in self.symbols:
                    self.symbols[symbol.name] = value
                    self.sizes[symbol.name] = symbol["st_size"]
                if kind == "STT_FUNC":
                    functions.append((value & ~1, symbol["st_size"], symbol.name))
        self._functions = sorted(functions)
        self._text = [
            (s["sh_addr"], s["sh_addr"] + s["sh_size"])
            for s in file.iter_sections()
            if s["sh_flags"] & 4 and s["sh_type"] == "SHT_PROGBITS"
        ]
        self.code = _thumb_ranges(sorted(marks), self._text)

    def name_of(self, address: int) -> str:
        """The function that holds an address."""
        at = bisect.bisect_right(self._functions, (address & ~1, 1 << 33, "")) - 1
        if at < 0:
            return ""
        start, size, name = self._functions[at]
        inside = (address & ~1) - start < size if size else any(a <= address < b for a, b in self._text)  # an assembler's has none
        return name if inside else ""

    def place(self, address: int) -> Place:
        """The function, file and line of an address; nothing of one that is in no function."""
        name = self.name_of(address)
        file, line = self._line(address & ~1) if name else ("", 0)
        return Place(name, file, line)

    @functools.cached_property
    def _lines(self) -> tuple[list[int], list[tuple[str, int]]]:
        rows: list[tuple[int, int, str, int]] = []
        # Functions that the linker dropped keep their lines, from address 0 on, where another may be.
        first_code = self._functions[0][0] if self._functions else 0
        elf = ELFFile(io.BytesIO(self.data))
        if elf.has_dwarf_info():
            for unit in (dwarf := elf.get_dwarf_info()).iter_CUs():
                program = dwarf.line_program_for_CU(unit)
                if program is None:
                    continue
                first = 0 if program["version"] >= 5 else 1
                # Folder 0 is where the compiler ran; a file in it, or by an absolute path, needs no more.
                folders = [_text(folder) for folder in program["include_directory"]]
                folders = [""] + (folders[1:] if first == 0 else folders)
                names = [
                    posixpath.join(folders[entry.dir_index], _text(entry.name))
                    if entry.dir_index < len(folders)
                    else _text(entry.name)
                    for entry in program["file_entry"]
                ]
                begins, dropped = True, False
                for item in program.get_entries():
                    state = item.state
                    if state is None:
                        continue
                    if begins:
                        dropped = state.address < first_code
                    begins = state.end_sequence
                    if dropped:
                        continue
                    number = state.file - first
                    name = names[number] if 0 <= number < len(names) and not state.end_sequence else ""
                    # At one address the row that ends a sequence gives way to one that begins another.
                    rows.append((state.address, 0 if state.end_sequence else 1, name, state.line if name else 0))
        rows = [row for row in rows if any(a <= row[0] <= b for a, b in self._text)]
        rows.sort(key=lambda row: row[:2])  # stable: of equal addresses the last written counts
        return [row[0] for row in rows], [(row[2], row[3]) for row in rows]

    def _line(self, address: int) -> tuple[str, int]:
        addresses, lines = self._lines
        at = bisect.bisect_right(addresses, address) - 1
        return lines[at] if at >= 0 else ("", 0)


def _text(name: bytes | str) -> str:
    return name.decode(errors="replace") if isinstance(name, bytes) else name


def _thumb_ranges(marks: list[tuple[int, str]], sections: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges of Thumb code: from each mark `$t` to the next mark, inside the sections that hold code."""
    ranges: list[tuple[int, int]] = []
    for start, end in sections:
        inside = [(a, kind) for a, kind in marks if start <= a < end]
        for (a, kind), (b, _) in zip(inside, [*inside[1:], (end, "d")], strict=True):
            if kind == "t" and b > a:
                ranges.append((a, b))
    return ranges


_REGISTER = re.compile(r"^ *(pc|lr) ([0-9a-f]{8})$")
_STATUS = re.compile(r"^fault (\d+)  cfsr ([0-9a-f]{8})  hfsr ([0-9a-f]{8})  mmfar ([0-9a-f]{8})  bfar ([0-9a-f]{8})$")
_PANIC = re.compile(r"^panic: file (\d+) line (\d+)$")
_MMFAR, _BFAR = 1 << 7, 1 << 15  # is the address register valid?
_CAUSES = {  # by the bits of CFSR
    0: "memory protection: jump to memory that holds no code",
    1: "memory protection: access that is not allowed",
    3: "memory protection: while an exception returned",
    4: "memory protection: no room for an exception's frame",
    8: "bus fault: jump to memory that is not there",
    9: "bus fault: access to memory that is not there",
    10: "bus fault, imprecise: an earlier write to memory that is not there",
    11: "bus fault: while an exception returned",
    12: "bus fault: no room for an exception's frame",
    16: "undefined instruction",
    17: "jump to an even address, or a wrong instruction set state",
    18: "wrong exception return",
    19: "floating point, or another coprocessor, is off",
    20: "stack overflow",
    24: "unaligned access",
    25: "division by zero",
}
_EXCEPTIONS = {2: "NMI", 3: "breakpoint without a debugger", 11: "SVC, which nothing here handles", 14: "PendSV"}


def cause(number: int, cfsr: int, mmfar: int, bfar: int) -> str:
    """The words for a fault: exception number and the fault status registers."""
    causes = [text for bit, text in _CAUSES.items() if cfsr >> bit & 1]
    if not causes:
        causes = [_EXCEPTIONS.get(number, f"exception {number}, which nothing here handles")]
    text = ", ".join(causes)
    if cfsr & _MMFAR:
        text += f", address {mmfar:#010x}"
    elif cfsr & _BFAR:
        text += f", address {bfar:#010x}"
    return text


def explain(elf: bytes | str | Path | Image, text: str, files: Mapping[int, str] | None = None) -> str:
    """A console's text, with words and places added under the lines of a fault or panic.

    `files` names the numbers that a panic gives for files.
    """
    image = elf if isinstance(elf, Image) else Image(elf)
    out: list[str] = []
    for line in text.splitlines():
        out.append(line)
        if found := _STATUS.match(line):
            number, cfsr, mmfar, bfar = int(found[1]), int(found[2], 16), int(found[4], 16), int(found[5], 16)
            out.append(f"  {cause(number, cfsr, mmfar, bfar)}")
        elif found := _REGISTER.match(line):
            address = int(found[2], 16)
            # LR is where the call would return to: the call itself is before it.
            place = image.place(address if found[1] == "pc" else (address & ~1) - 2)
            if place.function or place.file:
                out.append(f"  {'at' if found[1] == 'pc' else 'the last call was in'} {place}")
        elif (found := _PANIC.match(line)) and files and int(found[1]) in files:
            out.append(f"  at {files[int(found[1])]}:{found[2]}")
    return "\n".join(out) + ("\n" if text.endswith("\n") else "")
