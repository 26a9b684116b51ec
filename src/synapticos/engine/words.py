"""The words of messages: kept beside the program, not in it.

A log record, a refusal and a panic are numbers. Here is what they say: written into a section of the ELF that is not
loaded, read back from it, or taken from the program itself.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

from elftools.elf.elffile import ELFFile

from synapticos.compiler import Program
from synapticos.compiler.c_files import CProgram, CWriter
from synapticos.compiler.parse import short_path
from synapticos.lang.words import Function

SECTION = ".syn.words"


class Words:
    """Texts by number and source files by index. `enums` names the members of enums that messages show."""

    def __init__(self, texts: dict[int, tuple[str, list[str]]], files: list[str], enums: dict[str, dict[int, str]]) -> None:
        self.texts, self.files, self.enums = texts, files, enums

    @classmethod
    def of(cls, program: Program) -> Words:
        enums = {**program.enum_names, **{e.name: {v: n for n, v in e.members.items()} for e in program.types.enums}}
        return cls(dict(program.texts), [short_path(f) for f in program.files], enums)

    @classmethod
    def from_elf(cls, data: bytes) -> Words:
        """Read the section of an ELF; empty where it has none."""
        section = ELFFile(io.BytesIO(data)).get_section_by_name(SECTION)
        if section is None:
            return cls({}, [], {})
        got = json.loads(section.data())
        enums = {n: {int(v): m for v, m in members.items()} for n, members in got["enums"].items()}
        return cls({int(n): (t, k) for n, (t, k) in got["texts"].items()}, got["files"], enums)

    def say(self, number: int, args: list[int]) -> str:
        """The text of a message with its figures in it."""
        if number not in self.texts:
            return f"message {number:#010x} {args}" if number else ""
        text, kinds = self.texts[number]
        values: list[Any] = []
        for kind, raw in zip(kinds, args, strict=False):
            if kind == "i":
                raw -= (raw & (1 << 63)) << 1
            signed = raw - ((raw & (1 << 63)) << 1)
            values.append(bool(raw) if kind == "b" else self.enums.get(kind, {}).get(signed, raw) if kind not in "iu" else raw)
        return text.format(*values)

    def place(self, file: int, line: int) -> str:
        return f"{self.files[file]}:{line}" if file < len(self.files) else f"file {file}:{line}"


def program_files(program: Program, roots: list[Function], *, checks: bool = False, thunks: bool = False) -> CProgram:
    """All C of a program as bytes, and its words: in `words.json`, and by `words.c` in the section.

    `words.c` is the last of the units; a shared library, whose host has the words, leaves it out.
    """
    made = CWriter(program, roots, checks=checks, thunks=thunks).run()
    words = Words.of(program)
    content = {"texts": words.texts, "files": words.files, "enums": words.enums}
    made.files["words.json"] = json.dumps(content, sort_keys=True)
    made.files["words.c"] = f"""/* The words of messages; not loaded. */
__asm__(".pushsection {SECTION},\\"\\",%progbits\\n.incbin \\"words.json\\"\\n.popsection");
"""
    made.files = {name: text if isinstance(text, bytes) else text.encode() for name, text in made.files.items()}
    made.units.append("words.c")
    return made


def write_files(made: CProgram, folder: Path) -> None:
    """Write the files into `folder`, which is made if need be."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in made.files.items():
        (folder / name).write_bytes(content)  # type: ignore[arg-type] # program_files leaves bytes only
