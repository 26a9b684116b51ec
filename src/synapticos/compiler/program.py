"""A program: everything that a set of root functions needs, checked, for one choice of capacities."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from synapticos.lang import words
from synapticos.lang.types import VOID, BadType, Type, Types
from synapticos.lang.words import Function, Rom, Static, Table

from . import ir
from .check import FunctionChecker
from .diag import Follows, LanguageError, Message, Refused
from .expr import text_number
from .parse import node_of, position, short_path

Signature = tuple[list[tuple[str, Type]], Type]


@contextmanager
def keeping() -> Iterator[None]:
    """Trees of half a million nodes that stay are made inside: nothing is searched meanwhile for what could be freed."""
    searched = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if searched:
            gc.enable()


class Program:
    """Functions reachable from roots, in order of first need; grows when `need` is called."""

    def __init__(self, types: Types, tables: dict[Table, list[Function]] | None = None,
                 blobs: dict[Any, bytes] | None = None) -> None:  # fmt: skip
        self.types = types
        self.rows = tables or {}
        self.blobs = blobs or {}
        self.functions: dict[Function, ir.FnIR] = {}
        self.tables: list[Table] = []
        self.enum_names: dict[str, dict[int, str]] = {}  # of a program that was not checked here
        self.texts: dict[int, tuple[str, list[str]]] = {}  # number -> (text, kinds of its values)
        self.constants_text: dict[str, Rom] = {}
        self.files: list[str] = []
        self._signatures: dict[Function, Signature] = {}
        self._names: dict[str, Function] = {}

    @classmethod
    def of(cls, roots: list[Function], params: dict[str, int] | None = None, pointer: int = 8,
           tables: dict[Table, list[Function]] | None = None, blobs: dict[Any, bytes] | None = None) -> Program:  # fmt: skip
        """Check `roots` and all they call. Raises LanguageError with everything that is wrong."""
        program = cls(Types(params, pointer), tables, blobs)
        program.need(*roots)
        return program

    def entries(self, table: Table) -> list[Function]:
        """The rows of a table in this build: an open table may be given others."""
        return self.rows.get(table, table.entries)

    def file_id(self, path: str) -> int:
        if path not in self.files:
            self.files.append(path)
        return self.files.index(path)

    def text(self, text: str, kinds: list[str], _where: Any = None) -> int:
        number = text_number(text, kinds)
        self.texts[number] = (text, kinds)
        return number

    def text_table(self, text: str) -> Rom:
        """The rom that holds a piece of console text."""
        if text not in self.constants_text:
            made = Rom(words.u8, [*text.encode(), 0])
            made.given_name = f"TEXT_{text_number(text, []):08x}"  # type: ignore[attr-defined]
            self.constants_text[text] = made
        return self.constants_text[text]

    def signature(self, function: Function, types: Types | None = None) -> Signature:
        """Parameters and result. Raises Refused at the annotation that is wrong."""
        if function in self._signatures:
            return self._signatures[function]
        plain = self._plain_signature(function)
        if plain is not None:
            self._signatures[function] = plain
            return plain
        node = node_of(function)
        checker = _Annotations(function, self.types)
        if node.args.defaults or node.args.kwonlyargs or node.args.vararg or node.args.kwarg or node.args.posonlyargs:
            raise Refused(position(function.file, node), f"{function.__name__} has default, keyword or starred arguments", fix="pass every argument by position")
        parameters: list[tuple[str, Type]] = []
        for i, argument in enumerate(node.args.args):
            if argument.annotation is None:
                if i == 0 and function.owner is not None:
                    parameters.append((argument.arg, self.types.struct(function.owner)))
                    continue
                raise Refused(position(function.file, argument), f"{argument.arg} has no type", fix=f"write it: {argument.arg}: u32")
            parameters.append((argument.arg, checker.type_of(argument.annotation)))
        result = checker.type_of(node.returns) if node.returns is not None else VOID
        self._signatures[function] = (parameters, result)
        return self._signatures[function]

    def _plain_signature(self, function: Function) -> Signature | None:
        """The signature by what Python evaluated at import, or None where the source has to be read to word an error."""
        code, noted = function.python.__code__, function.python.__annotations__
        if function.python.__defaults__ or code.co_kwonlyargcount or code.co_posonlyargcount or code.co_flags & 0x0C:
            return None
        names = code.co_varnames[: code.co_argcount]
        try:
            parameters = [(n, self.types.struct(function.owner) if i == 0 and function.owner is not None and n not in noted else self.types.of(noted[n]))
                          for i, n in enumerate(names)]  # fmt: skip
            return parameters, self.types.of(noted["return"]) if "return" in noted else VOID
        except (BadType, KeyError, TypeError):
            return None

    def need(self, *roots: Function) -> None:
        """Check functions and all they call. Raises LanguageError; the program is then as it was."""
        with keeping():
            self._need(*roots)

    def _need(self, *roots: Function) -> None:
        work = list(roots)
        new: dict[Function, ir.FnIR] = {}
        messages: list[Message] = []
        seen = set(self.functions)
        tables, tables_before, names_before = list(self.tables), self.tables, dict(self._names)
        while work:
            function = work.pop(0)
            if function in seen:
                continue
            seen.add(function)
            clash = self._names.get(function.c_name)
            if clash is not None and clash is not function:
                where = f"{short_path(clash.file)}:{clash.line}"
                messages.append(Refused(position(function.file, node_of(function)), f"two functions are {function.c_name} in C", f"the other is at {where}", fix="rename one").message)
            self._names.setdefault(function.c_name, function)
            if function.kind == "hal":
                try:
                    self.signature(function)
                except Refused as refused:
                    messages.append(refused.message)
                continue
            try:
                checker = FunctionChecker(function, self, self.types)
                made = checker.run()
                messages += checker.messages
            except Refused as refused:
                if not isinstance(refused, Follows):
                    messages.append(refused.message)
                continue
            new[function] = made
            work += made.calls
            for table in made.tables:
                if table not in tables:
                    tables.append(table)
                work += self.entries(table)
        if not messages:
            self.functions.update(new)
            self.tables = tables
            try:
                messages += [m for m in [self._recursion()] if m]
                for table in tables:
                    self._check_table(table)
            except Refused as refused:
                messages.append(refused.message)
        if messages:
            for function in new:
                self.functions.pop(function, None)
            self.tables, self._names = tables_before, names_before
            raise LanguageError(messages)

    def _check_table(self, table: Table) -> None:
        kind = self.types.of(table.type)
        for entry in self.entries(table):
            parameters, result = self.signature(entry)
            if tuple(t for _, t in parameters) != kind.parameters or result is not kind.result:  # type: ignore[attr-defined]
                listed = ", ".join(str(t) for _, t in parameters)
                raise Refused(position(entry.file, node_of(entry)), f"{entry.__name__} is ({listed}) -> {result}, and {table.name} holds {kind}",
                              fix="give it the table's signature")  # fmt: skip

    def callees(self, made: ir.FnIR) -> list[Function]:
        """All that a function may call, through tables too."""
        out = list(made.calls)
        for table in made.tables:
            out += self.entries(table)
        return out

    def _recursion(self) -> Message | None:
        done: set[Function] = set()
        path: list[Function] = []

        def visit(function: Function) -> Message | None:
            if function in path:
                circle = [*path[path.index(function) :], function]
                node = node_of(function)
                return Refused(position(function.file, node), "recursion: " + " -> ".join(f.__name__ for f in circle), fix="use a loop and an array of known length").message
            if function in done or function not in self.functions:
                return None
            path.append(function)
            for callee in self.callees(self.functions[function]):
                found = visit(callee)
                if found:
                    return found
            path.pop()
            done.add(function)
            return None

        for function in list(self.functions):
            found = visit(function)
            if found:
                return found
        return None

    def hals(self) -> list[Function]:
        found: dict[Function, None] = {}
        for made in self.functions.values():
            for callee in made.calls:
                if callee.kind == "hal":
                    found[callee] = None
        return list(found)

    def globals_used(self) -> list[Rom | Static]:
        return list(dict.fromkeys(thing for made in self.functions.values() for thing in made.globals))


class _Annotations(FunctionChecker):
    """Reads annotations only."""

    def __init__(self, function: Function, types: Types) -> None:
        self.function, self.file, self.globals, self.types = function, function.file, function.globals, types


def walk(body: list[ir.Stmt], visit: Callable[[ir.Expr], Any]) -> None:
    """Call `visit` on every expression below statements."""
    for s in ir.every(body):
        for e in ir.expressions(s):
            for one in ir.below(e):
                visit(one)
