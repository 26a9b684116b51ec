"""How commands print: one line for an error, JSON where asked for, a bar on what takes long."""

import json
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np


def one_line(text: str, most: int = 1000) -> str:
    """Text that a user's file or name has had a part in, as one line of which the beginning and the end are kept."""
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most * 2 // 3]} ... {text[-most // 4 :]}"


def fail(text: str, as_json: bool = False) -> int:
    """Bad input: one line on stderr (compiler messages bring lines of their own), JSON on stdout if asked for."""
    if as_json:
        print(json.dumps({"error": text}))
    print(f"syn: {text}", file=sys.stderr)
    return 2


def note(text: str) -> None:
    """What a person wants to know and a script does not."""
    print(text, file=sys.stderr)


def plain(value: Any) -> Any:
    """A value as JSON knows it."""
    if isinstance(value, np.ndarray):
        if value.dtype.names:
            return [{n: item[n].item() for n in value.dtype.names} for item in value.reshape(-1)]
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, bytes):
        return value.hex()
    return value if isinstance(value, str | int | float | bool | type(None)) else str(value)


def print_json(value: Any) -> None:
    print(json.dumps(plain(value), indent=2))


def table(title: str, columns: list[str], rows: list[list[Any]]) -> None:
    """Rows under headings; numbers to the right. Plain where stdout is no terminal, so it can be cut and compared."""
    cells = [[_cell(v) for v in row] for row in rows]
    widths = [max([len(c), *(len(row[i]) for row in cells)]) for i, c in enumerate(columns)]
    right = [all(isinstance(row[i], int | float) for row in rows) and bool(rows) for i in range(len(columns))]
    if title:
        print(title)

    def line(row: list[str]) -> str:
        return "  " + "  ".join(c.rjust(w) if r else c.ljust(w) for c, w, r in zip(row, widths, right)).rstrip()

    print(line(columns))
    for row in cells:
        print(line(row))


def _cell(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "-"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.3g}" if abs(value) < 100 else f"{value:,.0f}"
    return str(value)


@contextmanager
def stoppable() -> Iterator[Callable[[], bool]]:
    """The value says whether Ctrl-C was pressed; a second one interrupts at once."""
    if threading.current_thread() is not threading.main_thread():  # who alone may take signals
        yield lambda: False
        return
    pressed: list[int] = []

    def press(number: int, frame: Any) -> None:
        pressed.append(number)
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, press)
    try:
        yield lambda: bool(pressed)
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def progress(text: str, total: int | None = None, unit: str = "") -> Iterator[Any]:
    """A bar on stderr where that is a terminal; the value is called with how many more are done."""
    if not sys.stderr.isatty():
        yield lambda n=1: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn(f"{{task.completed:,.0f}}{f' of {total:,}' if total else ''}{unit}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(text, total=total)
        yield lambda n=1: bar.advance(task, n)
