"""`python -m bench [models|layers|kernel|build|size|runtime ...] [--write]`: measure and print; `--write` keeps docs/figures.md.

Instruction counts are exact and the same on every machine. Times are of this machine, and ratios are of one run.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("models", "checked", "kernel", "layers", "processors", "build", "size", "runtime", "analysis", "simulate")

PUBLISHED = (
    "The published system states 596 instructions for a request without any of its operating system's work, about 2,200 with that "
    "system's real primitives, and 154 cycles for an allocation. Requests here have no operating system beneath them: what they "
    "count is all there is."
)


def table(head: list[str], rows: list[list[Any]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)]
    return "\n".join(lines + ["| " + " | ".join(str(c) for c in row) + " |" for row in rows])


def folder() -> Path:
    return Path(os.environ.get("SYNAPTICOS_MODELS", ROOT.parent / "shared" / "models"))


def models() -> str:
    from . import models as m

    rows = m.host(folder())
    if not rows:
        return f"Not measured: no models at {folder()}."
    return table(
        ["model, on the host, engine native", "MACs and elements", "us", "`tflite-micro`, us", "times faster"],
        [[r["model"], f"{r['work']:,}", f"{r['us']:,.1f}", f"{r['tflite_micro_us']:,.1f}" if r["ratio"] else "no wheel", f"{r['ratio']:.1f}" if r["ratio"] else ""] for r in rows],
    )


def checked() -> str:
    from . import models as m

    return table(["engine checked", ""], [["multiply-accumulates a second, M", f"{m.checked_rate() / 1e6:.2f}"]])


def kernel() -> str:
    from . import kernel as k

    return table(["the kernel's own work, Cortex-M33", "instructions"], [[n, f"{v:,}"] for n, v in k.figures().items()]) + "\n\n" + PUBLISHED


def layers() -> str:
    from . import models as m

    rows = m.layers(folder())
    if not rows:
        return f"Not measured: no models at {folder()}."
    out = []
    for name in m.FOUR:
        mine = [r for r in rows if r["model"] == name]
        if mine:
            work, spent = sum(r["work"] for r in mine), sum(r["instructions"] for r in mine)
            body = [[f"{r['step']} {r['kind']}", f"{r['work']:,}", f"{r['instructions']:,}", f"{r['instructions'] / max(r['work'], 1):.2f}"] for r in mine]
            out.append(table([f"{name}, Cortex-M33", "MACs or elements", "instructions", "each"], [*body, ["all", f"{work:,}", f"{spent:,}", f"{spent / work:.2f}"]]))
    return "\n\n".join(out)


def processors() -> str:
    from . import processors as p

    rows = [[what, f"{spent:,}", f"{spent / work:,.1f} a {unit}"] for what, spent, work, unit in p.processors()]
    return table(["processors and signal processing, Cortex-M33 with FPU", "instructions", "each"], rows)


def simulate() -> str:
    from . import simulate as s

    return table(["virtual time", ""], [[n, v] for n, v in s.figures().items()])


def build() -> str:
    from . import build as b

    return table(["building", "seconds"], [[n, f"{v:.2f}"] for n, v in b.figures().items()])


def size() -> str:
    from . import size as s

    return s.text()


def analysis() -> str:
    from . import analysis as a

    return table(["what `syn check` proves, against the kernel in virtual time", ""], a.rows(a.figures()))


def write(page: Path, texts: dict[str, str]) -> None:
    """Keep the parts that were measured in the page; each stands behind a mark, so one can be written anew alone."""
    head = (
        "# Figures\n\nWritten by `make bench` (`python -m bench --write`). Instruction counts come from the in-process emulator of a "
        "Cortex-M33 and are exact; no cycles are modelled and no silicon was used. Times are of one run on one machine "
        f"({platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}) and worth only their ratios.\n\n"
    )
    found = page.read_text() if page.exists() else head
    if set(texts) == set(PARTS):
        found = head
    for part, text in texts.items():
        mark = f"<!-- part: {part} -->"
        block = f"{mark}\n\n{text}\n"
        before, there, after = found.partition(mark)
        if there:
            _, more, rest = after.partition("<!-- part: ")
            found = before + block + (f"\n<!-- part: {rest}" if more else "")
        else:
            found = found.rstrip("\n") + "\n\n" + block
    page.write_text(found)


def runtime() -> str:
    from . import runtime as r

    sys.path.insert(0, str(ROOT / "tools"))
    return table(["jobs from Python, engine native", "us"], [[n, f"{v:,.1f}"] for n, v in r.figures().items()])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"what to measure (default: all): {', '.join(PARTS)}")
    parser.add_argument("--write", action="store_true", help="keep the figures in docs/figures.md")
    arguments = parser.parse_args()
    unknown = [p for p in arguments.parts if p not in PARTS]
    if unknown:
        print(f"bench: {unknown[0]} is not measured; parts are {', '.join(PARTS)}", file=sys.stderr)
        return 2
    texts = {}
    for part in arguments.parts or PARTS:
        text = globals()[part]()
        print(text + "\n", flush=True)
        texts[part] = text
    if arguments.write:
        write(ROOT / "docs" / "figures.md", texts)
    return 0


if __name__ == "__main__":
    sys.exit(main())
