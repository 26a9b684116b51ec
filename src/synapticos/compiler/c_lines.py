"""Where C goes: on lines that have the numbers of the Python's."""

from __future__ import annotations

from . import ir
from .parse import source


class LineWriter:
    """Text whose lines have the numbers of the Python's, by filling gaps, `#line` over long ones."""

    def __init__(self, path: str) -> None:
        self.file = source(path)
        self.comments = self.file.comments()
        self.out: list[str] = []
        self.line = 0  # number of the next line, as the C compiler counts
        self.current = ""

    def function(self, made: ir.FnIR, pieces: list[tuple[int, int, str]], before: str = "") -> None:
        if before:
            self.out.append(before)
        doc = made.doc.split("\n\n")[0].replace("*/", "* /").strip()
        if doc:
            self.out.append(f"/* {' '.join(doc.split())} */")
        self.line = pieces[0][0]
        self.closing: list[int] = []
        self.out.append(f'#line {self.line} "{self.file.short}"')
        self.current = ""
        for line, depth, text in pieces:
            if not line:
                self.closing.append(depth)
                continue
            self.advance(line, depth)
            self.current += (" " if self.current.strip() else "    " * depth) + text
        self.out.append(self.current)
        self.out += ["    " * depth + "}" for depth in self.closing]
        self.current = ""

    def close_blocks(self, line: int) -> None:
        """Put the closing braces on lines of their own before `line`, as far as there are any without a comment."""
        room = next((n for n in range(self.line + 1, line) if n in self.comments), line) - self.line - 1
        if room < 1:
            self.current += " }" * len(self.closing)
        elif self.closing:
            rows = [[depth] for depth in self.closing] if room >= len(self.closing) else [self.closing]
            for row in rows:
                self.out.append(self.current)
                self.line += 1
                self.current = "    " * row[0] + " ".join("}" for _ in row)
        self.closing = []

    def advance(self, line: int, depth: int) -> None:
        self.close_blocks(line)
        if line <= self.line:
            return
        self.out.append(self.current)
        self.current = ""
        self.line += 1
        if line - self.line > 12 and not any(n in self.comments for n in range(self.line, line)):
            self.out.append(f'#line {line} "{self.file.short}"')
            self.line = line
            return
        while self.line < line:
            comment = self.comments.get(self.line, "").replace("*/", "* /")
            self.out.append("    " * depth + f"/* {comment} */" if comment else "")
            self.line += 1

    def text(self) -> str:
        return "\n".join(self.out) + "\n"
