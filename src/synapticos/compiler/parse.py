"""Source files: text, ast, comments, and the node of each function."""

from __future__ import annotations

import ast
import io
import linecache
import os
import tokenize
import weakref
from typing import Any

import synapticos
from synapticos.errors import UserError
from synapticos.lang.words import Function

from .diag import Pos

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(synapticos.__file__)))
_sources: dict[str, Source] = {}
_nodes: weakref.WeakKeyDictionary[Function, ast.FunctionDef] = weakref.WeakKeyDictionary()


class Source:
    """One file, as CPython read it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.stamp = _stamp(path)
        linecache.checkcache(path)
        self.lines = [line.rstrip("\n") for line in linecache.getlines(path)]
        self.text = "\n".join(self.lines) + "\n"
        self.tree = ast.parse(self.text, path)
        self.functions: dict[int, Any] = {}  # by the line of the first decorator
        for node in ast.walk(self.tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
                self.functions[first] = node

    @property
    def short(self) -> str:
        """The path as messages and `#line` show it: from the package's folder, else from the working folder's."""
        return short_path(self.path)

    def comments(self) -> dict[int, str]:
        """Line -> text of the comments that have a line to themselves."""
        if not hasattr(self, "_comments"):
            self._comments: dict[int, str] = {}
            for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
                if token.type == tokenize.COMMENT and token.line.strip().startswith("#"):
                    self._comments[token.start[0]] = token.string.lstrip("# ").rstrip()
        return self._comments


def short_path(path: str) -> str:
    for root in (_ROOT, os.path.dirname(os.path.dirname(path))):
        if path.startswith(root + os.sep):
            return os.path.relpath(path, root)
    return path


def source(path: str) -> Source:
    """The parsed file, as it was when it was last read."""
    if path not in _sources:
        _sources[path] = Source(path)
    return _sources[path]


def node_of(function: Function) -> ast.FunctionDef:
    """The function's text. A function that is new since its file was read has the file read anew."""
    if function not in _nodes:
        found = source(function.file)
        if found.stamp != _stamp(function.file):
            found = _sources[function.file] = Source(function.file)
        node = found.functions.get(function.line)
        if node is None or node.name != function.__name__:
            raise UserError(f"{found.short} has changed since it was imported ({function.__name__} is not at line {function.line} any more): start again")
        _nodes[function] = node
    return _nodes[function]


def _stamp(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


def position(path: str, node: Any) -> Pos:
    return Pos(path, node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or node.col_offset)
