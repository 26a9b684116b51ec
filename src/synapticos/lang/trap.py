"""Trap: a check that failed while kernel-Python ran, on any engine."""

from __future__ import annotations


class Trap(Exception):
    """A value left its type, an index its array, an assertion failed. `file` and `line` are of the Python source."""

    def __init__(self, message: str, file: str = "", line: int = 0, column: int = 0, end: int = 0) -> None:
        super().__init__(message)
        self.message, self.file, self.line, self.column, self.end = message, file, line, column, end

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}" if self.file else self.message
