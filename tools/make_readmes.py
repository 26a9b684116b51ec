"""Write the figures in the doorbell's README anew, from what its demo and `syn check` print.

    python tools/make_readmes.py

They stand between `<!-- generated: NAME -->` and `<!-- end of NAME -->`. A test compares them with what is printed now, and
lets a figure be a twentieth off, and a count one: a kernel that is a little faster need not write them anew.
"""

import contextlib
import importlib.util
import io
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parent.parent
DOORBELL = ROOT / "examples" / "doorbell"
NUMBER = re.compile(r"[0-9][0-9,]*(?:\.[0-9]+)?")
OFF = 0.05


def load_demo() -> ModuleType:
    """The module examples/doorbell/demo.py."""
    spec = importlib.util.spec_from_file_location("doorbell_demo", DOORBELL / "demo.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # for its dataclasses
    spec.loader.exec_module(module)
    return module


def demo_part(demo: ModuleType, off: Any, on: Any) -> str:
    """What the demo prints of two runs, without pre-emption and with it."""
    with contextlib.redirect_stdout(io.StringIO()) as said:
        demo.show("pre-emption off", off)
        demo.show("pre-emption on", on)
        demo.show_memory(on.report)
    lines = said.getvalue().splitlines()
    return "\n".join(lines[: next(i for i, line in enumerate(lines) if line.startswith("RAM")) + 1])


def check_part(said: str) -> str:
    """The table of what `syn check` prints."""
    lines = said.splitlines()
    begin = next(i for i, line in enumerate(lines) if line.split()[:2] == ["job", "class"])
    end = next(i for i in range(begin + 1, len(lines)) if ": " in lines[i] or not lines[i].startswith("  "))
    return "\n".join(lines[begin:end])


def part(page: str, name: str) -> str:
    """What a page has between the marks of `name`."""
    return page.split(f"<!-- generated: {name} -->\n```\n")[1].split(f"\n```\n<!-- end of {name} -->")[0]


def agree(old: str, new: str) -> list[str]:
    """Lines of the page that say something else than what is printed now: other words, or a figure that is a twentieth off."""
    wrong = []
    for a, b in zip(old.splitlines(), new.splitlines(), strict=False):
        numbers = [NUMBER.findall(line) for line in (a, b)]
        words = [NUMBER.sub("_", line).split() for line in (a, b)]
        if words[0] != words[1] or not all(map(_near, *numbers)):
            wrong.append(f"{a}\n  now: {b}")
    if old.count("\n") != new.count("\n"):
        wrong.append(f"{old.count(chr(10)) + 1} lines, now {new.count(chr(10)) + 1}")
    return wrong


def _near(one: str, other: str) -> bool:
    x, y = (float(n.replace(",", "")) for n in (one, other))
    return abs(x - y) <= max(OFF * max(x, y), 0 if "." in one + other else 1)


def main() -> int:
    from synapticos.cli import invoke

    demo = load_demo()
    parts = {"demo": demo_part(demo, demo.play(False, {}), demo.play(True, {}))}
    with contextlib.redirect_stdout(io.StringIO()) as said:
        invoke(["check", str(DOORBELL / "app.py"), "--mhz", "150"])
    parts["check"] = check_part(said.getvalue())
    page = DOORBELL / "README.md"
    text = page.read_text()
    for name, new in parts.items():
        text = text.replace(part(text, name), new)
    page.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
