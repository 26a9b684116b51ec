"""The table of folders in docs/architecture.md says all that a folder imports, and nothing else."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "synapticos"
ROWS = re.findall(r"^\| `(\w+)/` \|.*\| (.*) \|$", (ROOT / "docs" / "architecture.md").read_text(), re.MULTILINE)
FOLDERS = [folder for folder, _ in ROWS]


def imported(folder: str) -> set[str]:
    """The folders, and modules beside them, that a folder's files import, inside functions too."""
    found: set[str] = set()
    for path in (PACKAGE / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [f"{node.module}.{a.name}" for a in node.names] if node.module == "synapticos" else [node.module or ""]
            found |= {n.split(".")[1] for n in names if n.startswith("synapticos.")}
    return found & {p.stem for p in PACKAGE.iterdir()} - {folder, "errors"}


def test_every_folder_has_a_row():
    assert sorted(FOLDERS) == sorted(p.parent.name for p in PACKAGE.glob("*/__init__.py"))


@pytest.mark.parametrize(("folder", "says"), ROWS, ids=FOLDERS)
def test_a_folder_imports_what_its_row_says(folder, says):
    if says == "all above":
        assert imported(folder) <= {*FOLDERS[: FOLDERS.index(folder)], "toolchain"}
    else:
        assert imported(folder) == set(re.findall(r"`(\w+)`", says)) - {"console", "log", "refuse"}
