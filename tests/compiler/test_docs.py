"""docs/language.md: its kernel-Python compiles everywhere, its table is the compiler's own, and it names every word."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest
from test_reject import roots

import synapticos.lang as lang
from synapticos.compiler import refusals
from synapticos.engine import ENGINES, Build

PAGE = Path(__file__).parents[2] / "docs" / "language.md"
TEXT = PAGE.read_text()
BLOCKS = re.findall(r"<!-- compiled -->\n```python\n(.*?)```", TEXT, re.DOTALL)


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_an_example_compiles_on_every_engine(number, tmp_path):
    path = tmp_path / f"example_{number}.py"
    path.write_text(BLOCKS[number])
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    build = Build(roots(module))
    for name in ENGINES:
        build.engine(name)


def test_the_table_of_refusals_is_the_compilers_own():
    shown = TEXT.split("<!-- generated: refusals -->")[1].split("<!-- end of refusals -->")[0]
    assert set(shown.strip().splitlines()) == set(refusals.table().splitlines())


def test_every_word_is_named():
    missing = [word for word in lang.__all__ if not re.search(rf"\b{re.escape(word)}\b", TEXT)]
    assert not [w for w in missing if w not in ("Final", "Rows", "hal_function")]
