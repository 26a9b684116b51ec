"""What the Python of a loop says of how often it goes round."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

from synapticos.app.declare import App
from synapticos.app.stage import Binding


class LoopSource:
    """Asked with the file and line of a piece of code: see `analysis.paths.Source`.

    An app's own loop is thought to depend on the data if it is a `while`, has a `break` or `return` in it or goes over a
    range of something read; the kernel's are not, for what its inputs change is known by running them. A `for` over
    `range(n)`, n a number or a constant of its module, goes round n times at most.
    """

    def __init__(self, app: App) -> None:
        self._own: set[str] = set()
        self._loops: dict[str, list[ast.For | ast.While]] = {}
        self._paths: dict[str, Path | None] = {}
        for pipeline in app.pipelines.values():
            for step in pipeline.steps:
                if step.binding is not None:
                    self._know(step.binding)
            if pipeline.handler is not None:
                self._know(pipeline.handler)

    def _know(self, binding: Binding) -> None:
        file = Path(binding.stage.python.__code__.co_filename)
        self._own.add(file.name)
        self._paths[file.name] = file

    def __call__(self, file: str, line: int) -> tuple[str, int | None]:
        own = Path(file).name in self._own and not file.startswith("synapticos/")
        path = self._path(Path(file).name if own else file)
        if path is None:
            return "", None
        around = [x for x in self._of(path) if x.lineno <= line <= (x.end_lineno or x.lineno)]
        if not around:
            return "", None
        loop = max(around, key=lambda x: x.lineno)
        return (_depends(loop) if own else ""), _times(loop, path)

    def _path(self, file: str) -> Path | None:
        if file not in self._paths:
            found = (getattr(m, "__file__", None) for m in list(sys.modules.values()))
            self._paths[file] = next((Path(f) for f in found if f and f.endswith(file)), None)
        return self._paths[file]

    def _of(self, path: Path) -> list[ast.For | ast.While]:
        if str(path) not in self._loops:
            text = path.read_text() if path.is_file() else ""
            self._loops[str(path)] = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.For | ast.While)]
        return self._loops[str(path)]


def _depends(loop: ast.For | ast.While) -> str:
    if isinstance(loop, ast.While):
        return "is a while, which may go round by the data"
    if any(isinstance(node, ast.Break | ast.Return) for node in ast.walk(loop)) and _times(loop, None) is None:
        return "may end early by the data"
    arguments = getattr(loop.iter, "args", [loop.iter])
    if any(isinstance(node, ast.Subscript | ast.Attribute | ast.Call) for argument in arguments for node in ast.walk(argument)):
        return "may go round by the data"
    return ""


def _times(loop: ast.For | ast.While, path: Path | None) -> int | None:
    if isinstance(loop, ast.While) or not isinstance(loop.iter, ast.Call) or getattr(loop.iter.func, "id", "") != "range" or len(loop.iter.args) != 1:
        return None
    n = loop.iter.args[0]
    if isinstance(n, ast.Constant) and isinstance(n.value, int):
        return n.value
    if isinstance(n, ast.Name) and path is not None:
        module = next((m for m in list(sys.modules.values()) if getattr(m, "__file__", None) == str(path)), None)
        value = getattr(module, n.id, None)
        return value if type(value) is int else None
    return None
