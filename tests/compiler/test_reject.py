"""Each refusal of the compiler has a file in tests/reject/: `#! text` stands on the line that is refused."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from synapticos.compiler import LanguageError, Program, diag, refusals
from synapticos.lang.words import Function, is_struct

FOLDER = Path(__file__).parents[1] / "reject"
FILES = sorted(FOLDER.glob("*.py"))


def load(path: Path) -> Any:
    name = f"reject_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def roots(module: Any) -> list[Function]:
    found = [v for v in vars(module).values() if isinstance(v, Function) and v.module == module.__name__]
    for value in vars(module).values():
        if is_struct(value) and value.__module__ == module.__name__:
            found += value.__kernel_methods__.values()
    return found


def refused(path: Path) -> LanguageError:
    with pytest.raises(LanguageError) as raised:
        Program.of(roots(load(path)))
    return raised.value


@pytest.mark.parametrize("path", FILES, ids=[p.stem for p in FILES])
def test_what_is_refused_is_said_on_its_line(path):
    error = refused(path)
    wanted = {n: m.group(1) for n, line in enumerate(path.read_text().splitlines(), 1) if (m := re.search(r"#! (.*)", line))}
    got: dict[int, list[str]] = {}
    for message in error.messages:
        got.setdefault(message.pos.line, []).append(message.fact)
    assert wanted, "the file refuses nothing"
    assert sorted(got) == sorted(wanted), str(error)
    for line, text in wanted.items():
        assert any(text in fact for fact in got[line]), f"line {line}: {got[line]}"
    for message in error.messages:
        assert message.fix, f"no way out is named: {message.text()}"


def test_a_message_has_place_fact_line_caret_facts_and_a_way_out():
    text = str(refused(FOLDER / "mixed_signs.py")).split("\n\n")[0]
    lines = text.splitlines()[:5]
    assert lines == [
        "reject/mixed_signs.py:7:9: error: u32 + i32 has no type: the operands differ in sign",
        "    c = a + b  #! u32 + i32 has no type: the operands differ in sign",
        "        ^^^^^",
        "  a is u32 (reject/mixed_signs.py:6); b is i32 (reject/mixed_signs.py:6)",
        "  convert one of them: a + u32(b)",
    ]


def test_a_message_says_where_a_field_is_declared(tmp_path):
    path = tmp_path / "ring.py"
    path.write_text("from synapticos.lang import *\n\n\n@struct\nclass Ring:\n    size: u32\n\n\n@fn\ndef room(ring: Ring, pending: i32) -> u32:\n    return ring.size - pending\n")
    assert "  ring.size is u32 (" in str(refused(path)) and "ring.py:6); pending is i32 (" in str(refused(path))


def test_each_construct_of_the_table_has_a_file():
    covered = " ".join(p.read_text().split('"""')[1] for p in FILES)
    missing = [name for name, _, _ in refusals.rows() if name not in covered and name not in [later[0] for later in refusals.LATER]]
    assert not missing


def test_every_refusal_of_the_compiler_is_reached(monkeypatch):
    """Each `Refused(...)` in the compiler is raised by some file."""
    reached: set[tuple[str, int]] = set()
    original = diag.Refused.__init__

    def note(self: Any, *args: Any, **kwargs: Any) -> None:
        frame = sys._getframe(1)
        reached.add((Path(frame.f_code.co_filename).name, frame.f_lineno))
        original(self, *args, **kwargs)

    monkeypatch.setattr(diag.Refused, "__init__", note)
    for path in FILES:
        refused(path)
    missing = []
    for source in sorted(Path(diag.__file__).parent.glob("*.py")):
        for number, line in enumerate(source.read_text().splitlines(), 1):
            if re.search(r"\bRefused\(", line) and "class " not in line and (source.name, number) not in reached:
                missing.append(f"{source.name}:{number}: {line.strip()[:150]}")
    missing = [m for m in missing if "this text has the number of another" not in m and "docs/language.md" not in m]
    assert not missing, "\n".join(missing)


def test_a_real_number_beside_an_integer_is_answered_with_the_conversion_that_is_meant():
    text = str(refused(FOLDER / "mixed_signs.py"))
    assert "write an integer, or f32(a) / 256.0" in text and "write an integer, or 0.5 * f32(b)" in text
