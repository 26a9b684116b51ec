"""What the documents show is what happens.

In a page, `<!-- run -->` before a block of `sh` has its commands executed, in order, in one folder for each page that
sees the repository's `examples`; `<!-- file: NAME -->` before a block writes it there; `<!-- shows -->` before a block
of text asks that the commands before it printed these lines, `...` standing for anything.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"<!-- (run|shows|file: \S+) -->\n+```\w*\n(.*?)```", re.DOTALL)


def blocks(page: Path) -> list[tuple[str, str]]:
    return [(m[1], m[2]) for m in BLOCK.finditer(page.read_text())]


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p)], ids=lambda p: str(p.relative_to(ROOT)))
def test_the_commands_of_a_page_do_what_it_says(page, tmp_path):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = dict(os.environ, PATH=path, COLUMNS="120")
    output = ""
    for kind, text in blocks(page):
        if kind == "run":
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", text], cwd=tmp_path, env=environment, capture_output=True, text=True
            )
            assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
            output = done.stdout + done.stderr
        elif kind == "shows":
            for line in text.splitlines():
                pattern = ".*".join(re.escape(part.strip()) for part in line.split("..."))
                assert re.search(pattern, output), f"{line!r} is not in\n{output}"
        else:
            file = tmp_path / kind.removeprefix("file: ")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)


def test_every_page_that_is_linked_is_there():
    missing = []
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            if not (page.parent / target).exists():
                missing.append(f"{page.relative_to(ROOT)}: {target}")
    assert not missing
