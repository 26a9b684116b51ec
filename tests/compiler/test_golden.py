"""The C of each construct, kept beside its Python in tests/golden/ and read as prose.

    GOLDEN=write pytest tests/compiler/test_golden.py      # writes it anew, to be reviewed
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from synapticos import toolchain
from synapticos.compiler.c_files import CWriter
from synapticos.engine import Build
from synapticos.lang.words import Function, is_struct

FOLDER = Path(__file__).parents[1] / "golden"
FILES = sorted(FOLDER.glob("*.py"))
NAMES = [p.stem for p in FILES]


def build(path: Path) -> Build:
    name = f"golden_{path.stem}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    module = sys.modules[name]
    roots: list[Any] = [v for v in vars(module).values() if isinstance(v, Function) and v.module == name]
    for value in vars(module).values():
        if is_struct(value) and value.__module__ == name:
            roots += value.__kernel_methods__.values()
    return Build(sorted(roots, key=lambda f: f.line))


def files(path: Path, **options: Any) -> dict[str, Any]:
    made = build(path)
    return CWriter(made.program(4), made.roots, thunks=False, **options).run().files


def shown(path: Path) -> str:
    """The module's C, with the data and types that are its own."""
    made = files(path)
    body = next(text for name, text in made.items() if name.endswith(f"{path.stem}.c"))
    header = made["program.h"].split('#include "support.h"')[1].split("\n#endif")[0].strip()
    data = made["layers.c"].split('#include "program.h"')[1]
    data = "\n".join(line for line in data.splitlines() if not line.startswith("#include")).strip()
    return f"{header}\n\n{data}\n\n{body}"


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_the_c_of_a_construct_reads_as_it_did_when_it_was_reviewed(path):
    want = path.with_suffix(".c")
    got = shown(path)
    if os.environ.get("GOLDEN") == "write":
        want.write_text(got)
    assert got == want.read_text()


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_each_statement_is_on_the_line_of_its_python(path):
    """The C compiler's own counting, followed through #line, against the Python's lines."""
    text = next(t for name, t in files(path).items() if name.endswith(f"{path.stem}.c"))
    python = path.read_text().splitlines()
    line = 0
    seen = 0
    for row in text.splitlines():
        found = re.match(r'#line (\d+) "golden/', row)
        if found:
            line = int(found.group(1))
            continue
        returned = re.search(r"\breturn\b", row)
        if returned and line and "{" not in row:
            assert "return" in python[line - 1] or "check(" in python[line - 1], (line, row)
            seen += 1
        line += line > 0
    assert seen or "return" not in text


@pytest.mark.parametrize("chain", [c for t in ("host", "cortex-m33", "cortex-m3") for c in toolchain.find_all(t)], ids=lambda c: f"{c.name}-{c.target.name}")
def test_both_compilers_take_it_without_a_warning(chain, tmp_path):
    for checks in (False, True):
        for path in FILES:
            folder = tmp_path / f"{path.stem}{checks}"
            folder.mkdir()
            for name, text in files(path, checks=checks).items():
                (folder / name).write_text(text)
            chain.compile([folder / "layers.c"], folder / "out", ["-O2", f"-I{folder}"])  # -Wall -Wextra -Werror are always on
