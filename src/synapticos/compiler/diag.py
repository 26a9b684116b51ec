"""Messages of the compiler: place, fact, source line, caret, what each side is, a way out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from synapticos.errors import UserError


class Pos(NamedTuple):
    """Of a node in a source file; columns from 0, `end` on the last line of the node."""

    file: str
    line: int
    column: int
    end_line: int
    end: int


@dataclass
class Message:
    pos: Pos
    fact: str
    notes: list[str] = field(default_factory=list)  # what each side is and where it came from
    fix: str = ""

    def text(self) -> str:
        from .parse import source

        file = source(self.pos.file)
        out = [f"{file.short}:{self.pos.line}:{self.pos.column + 1}: error: {self.fact}"]
        if 0 < self.pos.line <= len(file.lines):
            line = file.lines[self.pos.line - 1]
            end = self.pos.end if self.pos.end_line == self.pos.line else len(line)
            out.append(f"    {line.strip()}")
            indent = len(line) - len(line.lstrip())
            out.append("    " + " " * max(self.pos.column - indent, 0) + "^" * max(end - self.pos.column, 1))
        out += [f"  {note}" for note in self.notes]
        if self.fix:
            out.append(f"  {self.fix}")
        return "\n".join(out)


class LanguageError(UserError):
    """All that is wrong with a program, in order of its lines."""

    def __init__(self, messages: list[Message]) -> None:
        once = {(m.pos, m.fact): m for m in messages}
        self.messages = sorted(once.values(), key=lambda m: m.pos)
        super().__init__("\n".join(m.text() for m in self.messages))


class Refused(Exception):
    """One message, on its way to the list that a statement keeps."""

    def __init__(self, pos: Pos, fact: str, *notes: str, fix: str = "") -> None:
        super().__init__(fact)
        self.message = Message(pos, fact, [n for n in notes if n], fix)


class Follows(Refused):
    """Only follows from what was said before, so it is not said."""
