"""Built programs, found again without checking or emitting them.

What a program compiles to depends on its roots, capacities, table rows and blobs, on the sources of its functions, on
the constants that those modules hold, and on the compilers, ours and C's. A manifest remembers, for the first four,
which sources there were; while they and the constants are the same, what was built then is what would be built now.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import linecache
import os
import sys
import time
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import synapticos
from synapticos import toolchain
from synapticos.compiler import Program
from synapticos.compiler.c_files import CProgram
from synapticos.lang.words import Function, Param, Rom, is_struct

from .words import program_files, write_files

if TYPE_CHECKING:
    from .build import Build

_PACKAGE = Path(synapticos.__file__).parent


def built(kind: str, build: Build, program: Callable[[], Program], parts: tuple[Any, ...], *, checks: bool,
          make: Callable[[Path, CProgram], None]) -> Path:  # fmt: skip
    """The folder of a built program: `make(folder, files)` fills it where the cache has none.

    `parts` is what else it depends on: the C compiler, its flags, files of boards.
    """
    first = toolchain.key(kind, _own_sources(), _identity(build), checks, *parts)
    manifest = toolchain.cache_folder() / "built" / f"manifest-{first}.json"
    known = _read(manifest)
    if known is not None and _stamp(known["sources"], build) == known["stamp"]:
        folder = toolchain.kept(known["name"])
        if folder is not None:
            return folder
    seen = time.time_ns()
    checked = program()
    sources = sorted({f.file for f in checked.functions} | _reached(build))
    stamp = _stamp(sources, build)
    made = program_files(checked, build.roots, checks=checks, thunks=True)
    name = f"{kind}-" + toolchain.key(sorted((k, v) for k, v in made.files.items()), *parts)

    def fill(folder: Path) -> None:
        write_files(made, folder)
        make(folder, made)

    folder = toolchain.cached(name, fill, "the kernel for this machine" if kind == "native" else "the kernel for the emulator")
    if not _edited(sources, seen):  # else the text that was compiled need not be the text that was hashed
        _write(manifest, {"name": name, "sources": sources, "stamp": stamp})
    return folder


def _edited(sources: list[str], since: int) -> bool:
    """Whether a file was written after `since`, in ns since the epoch."""
    for path in sources:
        with contextlib.suppress(OSError):
            if os.stat(path).st_mtime_ns >= since:
                return True
    return False


def _read(path: Path) -> Any:
    """A manifest; None if there is none that can be read."""
    try:
        known = json.loads(path.read_text())
        return {"name": str(known["name"]), "sources": [str(s) for s in known["sources"]], "stamp": known["stamp"]}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write(path: Path, content: Any) -> None:
    scratch = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        scratch.write_text(json.dumps(content))
        os.replace(scratch, path)
    except OSError:  # a cache that cannot be written costs time, nothing else
        with contextlib.suppress(OSError):
            scratch.unlink()


@functools.cache
def _own_sources() -> str:
    """A hash of the compilers (ours, and how C's are called), the kernel and the boards."""
    digest = hashlib.sha256()
    paths = [_PACKAGE / "toolchain.py"]
    for part in ("lang", "compiler", "engine", "kernel", "boards"):
        paths += sorted(p for p in (_PACKAGE / part).rglob("*.[phc]*") if p.suffix in (".py", ".h", ".c"))
    for path in paths:
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def _identity(build: Build) -> list[Any]:
    names = [_name(f) for f in build.roots]
    rows = [[t.name, t.place.module, [_name(f) for f in rows]] for t, rows in build.tables.items()]
    blobs = [[b.name, data] for b, data in build.blobs.items()]
    return [names, sorted(build.params.items()), rows, blobs, sorted(_reached(build))]


def _reached(build: Build) -> set[str]:
    """The files of an app's functions, structs and modules that its roots and rows can name.

    Two apps may have stages of one name, whose adapters differ in nothing else; and a struct's file need not hold a
    function.
    """
    files: set[str] = set()
    spaces: set[int] = set()
    todo: list[Any] = [*build.roots, *(f for rows in build.tables.values() for f in rows)]
    while todo:
        thing = todo.pop()
        if isinstance(thing, Function):
            file, space = thing.file, thing.globals
        else:
            module = thing if isinstance(thing, ModuleType) else sys.modules.get(thing.__module__)
            file, space = getattr(module, "__file__", None) or "", vars(module) if module is not None else {}
            if not file or module is None or _installed(module):
                continue
        if file.startswith(str(_PACKAGE) + os.sep):
            continue
        files.add(file)
        if id(space) not in spaces:
            spaces.add(id(space))
            todo += [v for v in space.values() if isinstance(v, (Function, ModuleType)) or (isinstance(v, type) and is_struct(v))]
    return files


def _name(function: Function) -> str:
    return f"{function.module}:{function.__qualname__}:{function.c_name}"


def _stamp(sources: list[str], build: Build) -> str:
    """A hash of the texts and constants of the app's own files."""
    mine = [s for s in sources if not s.startswith(str(_PACKAGE) + os.sep)]
    digest = hashlib.sha256()
    for path in mine:
        try:
            digest.update(Path(path).read_bytes())
        except OSError:
            digest.update("".join(linecache.getlines(path)).encode())
    spaces = {id(f.globals): f.globals for f in [*build.roots, *(f for rows in build.tables.values() for f in rows)] if f.file in mine}
    for module in list(sys.modules.values()):
        if isinstance(module, ModuleType) and getattr(module, "__file__", None) in mine:
            spaces[id(vars(module))] = vars(module)
    for space in sorted(spaces.values(), key=lambda s: str(s.get("__name__"))):
        _constants(space, digest, 0)
    return digest.hexdigest()


def _constants(space: dict[str, Any], digest: Any, depth: int) -> None:
    for name, value in sorted(space.items()):
        if isinstance(value, (bool, int, float, Enum)):
            digest.update(f"{name}={value!r};".encode())
        elif isinstance(value, Param):
            digest.update(f"{name}:{value.value({})};".encode())
        elif isinstance(value, Rom):
            digest.update(f"{name}={value.values!r};".encode())
        elif isinstance(value, ModuleType) and depth == 0 and not _installed(value):
            _constants(vars(value), digest, 1)


def _installed(module: ModuleType) -> bool:
    file = getattr(module, "__file__", None) or ""
    return not file or file.startswith((str(_PACKAGE), sys.prefix, sys.base_prefix)) or "site-packages" in file


def light_program(build: Build, folder: Path, pointer: int) -> Program:
    """A program that knows signatures, texts and files, for calling what was built; its functions are not checked."""
    from synapticos.lang.types import Types

    program = Program(Types(build.params, pointer), build.tables, build.blobs)
    words = json.loads((folder / "words.json").read_text())
    program.files = words["files"]
    program.texts = {int(n): (t, k) for n, (t, k) in words["texts"].items()}
    program.enum_names = {n: {int(v): m for v, m in members.items()} for n, members in words["enums"].items()}
    return program
