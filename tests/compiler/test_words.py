"""What CPython runs, what editors see and what the reference lists have the same names; type checkers are content."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import synapticos.lang as lang

ROOT = Path(__file__).parents[2]
STUB = Path(lang.__file__).with_suffix(".pyi")


def test_the_stub_has_the_names_that_cpython_has():
    tree = ast.parse(STUB.read_text())
    listed = next(ast.literal_eval(n.value) for n in tree.body if isinstance(n, ast.Assign) and getattr(n.targets[0], "id", "") == "__all__")
    assert sorted(listed) == sorted(lang.__all__)
    defined: set[str] = set()
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            defined.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            defined.add(node.target.id)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            defined |= {a.asname or a.name for a in node.names}
    assert not set(lang.__all__) - defined


def pyright(*paths: Path) -> str:
    command = Path(sys.executable).with_name("pyright")
    if not command.exists() and shutil.which("pyright") is None:
        pytest.skip("pyright is not installed")
    run = [str(command) if command.exists() else "pyright", "--pythonpath", sys.executable, *map(str, paths)]
    done = subprocess.run(run, capture_output=True, text=True, cwd=ROOT, check=False)
    if "error" in done.stderr.lower() and not done.stdout:
        pytest.skip("pyright does not start here")
    return done.stdout


@pytest.mark.slow
def test_the_kernel_is_clean_in_pyright_basic():
    said = pyright(ROOT / "src" / "synapticos" / "kernel")
    assert "0 errors" in said, said


def test_a_type_checker_sees_wrong_fields_arguments_and_missing_tests_for_none(tmp_path):
    file = tmp_path / "wrong.py"
    file.write_text(
        "from synapticos.lang import *\n\n\n@struct\nclass Job:\n    id: u32\n    data: Shaped[Array[u8], 4]\n\n\n"
        "@fn\ndef f(job: Job | None, other: Job) -> u32:\n"
        "    a = other.nothing\n"  # 12
        "    b = job.id\n"  # 13
        "    c: u32 = other.data\n"  # 14
        "    return f(other)\n"  # 15
    )
    said = pyright(file)
    lines = {int(row.split(":")[1]) for row in said.splitlines() if ": error" in row or " - error" in row}
    assert lines == {12, 13, 14, 15}, said
