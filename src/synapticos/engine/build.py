"""A build: root functions, values for capacities, rows of open tables, bytes of blobs. It gives three engines."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from synapticos.compiler import Program
from synapticos.engine.words import program_files, write_files
from synapticos.lang.words import Blob, Function, Table

from .base import Engine

ENGINES = ("checked", "native", "cortex-m")


class Build:
    """`Build(roots=[Arena.alloc], SLOTS=4).engine("native")`.

    `tables` gives open tables their rows, `blobs` their bytes; capacities are keywords by their `param`'s name.
    Raises LanguageError if the program is not kernel-Python, UserError if no compiler is installed.
    """

    # To type checkers a decorated function is the function, and a table or blob what it holds: hence the wide types.
    def __init__(self, roots: Sequence[Any], *, tables: Mapping[Any, Any] | None = None,
                 blobs: Mapping[Any, bytes] | None = None, **params: int) -> None:  # fmt: skip
        self.roots: list[Function] = list(dict.fromkeys(roots))
        self.tables: dict[Table, list[Function]] = dict(tables or {})
        self.blobs: dict[Blob, bytes] = dict(blobs or {})
        self.params = params

    def program(self, pointer: int = 8) -> Program:
        return Program.of(self.roots, self.params, pointer, self.tables, self.blobs)

    def c_files(self, folder: Path, *, pointer: int = 4, checks: bool = False) -> list[Path]:
        """Write the program's C into `folder` (made if need be), without thunks: the units to compile.

        They include the other files by name, so compile with `-I<folder> -Wa,-I<folder>`. The words of messages and the
        names of source files are in the section `.syn.words`, which is not loaded.
        """
        made = program_files(self.program(pointer), self.roots, checks=checks)
        write_files(made, folder)
        return [folder / unit for unit in made.units]

    def engine(self, name: str, *, checks: bool = False, compiler: str | None = None, sanitize: tuple[str, ...] = (),
               board: Any = None, real_clock: bool = False) -> Engine:  # fmt: skip
        """The build on an engine. `checks`: C that traps where checked CPython would."""
        if name == "checked":
            from .checked import CheckedEngine

            return CheckedEngine(self.program(8), board)
        if name == "native":
            from .native import NativeEngine

            return NativeEngine(self, checks=checks, compiler=compiler, sanitize=sanitize, real_clock=real_clock)
        if name == "cortex-m":
            from .cortexm import CortexMEngine

            return CortexMEngine(self, checks=checks, compiler=compiler)
        raise ValueError(f"{name} is no engine: {', '.join(ENGINES)}")


@functools.cache
def default_engine() -> Any:
    """The checked engine on which a function runs that is called from plain Python."""
    return Build([]).engine("checked")
