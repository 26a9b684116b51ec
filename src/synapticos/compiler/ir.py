"""The typed tree: what a function means, with every implicit step explicit.

Built by `check`; read by both emitters. An integer expression knows the interval of its values (`lo`, `hi`), so that
neither emitter checks what cannot fail.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

from synapticos.lang.types import EnumType, Field, Scalar, Type
from synapticos.lang.words import Function, Rom, Static, Table

from .diag import Pos


@dataclass(eq=False)
class Local:
    name: str
    type: Type
    pos: Pos
    loop: bool = False  # a loop's variable: not assigned in its body
    lo: int = 0  # with `loop` and constant bounds, the values it takes
    hi: int = 0
    ranged: bool = False
    storage: bool = False  # bound to local(...) of this function
    c_name: str = ""


@dataclass(eq=False)
class Expr:
    pos: Pos
    type: Type
    lo: int = field(default=0, init=False)
    hi: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        kind = self.type.base if isinstance(self.type, EnumType) else self.type
        if isinstance(kind, Scalar) and kind.kind == "int":
            self.lo, self.hi = kind.low, kind.high


@dataclass(eq=False)
class Const(Expr):
    value: Any
    name: str = ""  # the module's name for it, where it has one

    def __post_init__(self) -> None:
        if isinstance(self.value, int):
            self.lo = self.hi = int(self.value)


@dataclass(eq=False)
class LocalRef(Expr):
    local: Local

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.local.ranged:
            self.lo, self.hi = self.local.lo, self.local.hi


@dataclass(eq=False)
class GlobalRef(Expr):
    thing: Rom | Static


@dataclass(eq=False)
class FunctionRef(Expr):
    """A function, handed to the board to be called."""

    function: Function


@dataclass(eq=False)
class NoneRef(Expr):
    pass


@dataclass(eq=False)
class Storage(Expr):
    """local(...): memory of this function, zeroed unless it says `zero=False`."""

    zero: bool = True


@dataclass(eq=False)
class Bin(Expr):
    op: str  # + - * // % / << >> & | ^
    a: Expr
    b: Expr
    checked: bool = True  # may leave its type, so trap
    wraps: bool = False  # part of a wrap(): modulo the width of `type`, which is unsigned


@dataclass(eq=False)
class Un(Expr):
    op: str  # - ~
    a: Expr
    checked: bool = True
    wraps: bool = False


@dataclass(eq=False)
class Not(Expr):
    a: Expr


@dataclass(eq=False)
class Compare(Expr):
    op: str  # == != < <= > >=
    a: Expr
    b: Expr


@dataclass(eq=False)
class IsNone(Expr):
    a: Expr
    negate: bool


@dataclass(eq=False)
class Logic(Expr):
    op: str  # and, or
    parts: list[Expr]


@dataclass(eq=False)
class Cond(Expr):
    test: Expr
    a: Expr
    b: Expr

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.type, Scalar) and self.type.kind == "int":
            self.lo, self.hi = min(self.a.lo, self.b.lo), max(self.a.hi, self.b.hi)


@dataclass(eq=False)
class Convert(Expr):
    kind: str  # widen: keeps every value; exact: T(x), traps; wrap; sat; enum: a number to its member
    a: Expr

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.type, Scalar) and self.type.kind == "int" and self.a.lo <= self.a.hi and not is_float(self.a):
            if self.kind in ("widen", "exact", "sat") or (self.type.low <= self.a.lo and self.a.hi <= self.type.high):
                self.lo = min(max(self.a.lo, self.type.low), self.type.high)
                self.hi = max(min(self.a.hi, self.type.high), self.type.low)

    @property
    def safe(self) -> bool:
        """No value can be lost."""
        kind = self.type
        return isinstance(kind, Scalar) and kind.kind == "int" and not is_float(self.a) and kind.low <= self.a.lo and self.a.hi <= kind.high


@dataclass(eq=False)
class FieldGet(Expr):
    base: Expr
    field: Field


@dataclass(eq=False)
class Index(Expr):
    base: Expr  # an array or a pointer
    at: list[Expr]


@dataclass(eq=False)
class Slice(Expr):
    """A pointer to part of a pointer or array; `row` holds leading indices of an array of several dimensions."""

    base: Expr
    row: list[Expr]
    start: Expr | None
    stop: Expr | None


@dataclass(eq=False)
class View(Expr):
    base: Expr


@dataclass(eq=False)
class Call(Expr):
    function: Function
    args: list[Expr]


@dataclass(eq=False)
class TableCall(Expr):
    table: Table
    at: Expr
    args: list[Expr]


@dataclass(eq=False)
class Builtin(Expr):
    name: str
    args: list[Expr]


def is_float(e: Expr) -> bool:
    return isinstance(e.type, Scalar) and e.type.kind == "float"


@dataclass(eq=False)
class Stmt:
    pos: Pos


@dataclass(eq=False)
class Declare(Stmt):
    """A local's first assignment."""

    local: Local
    value: Expr


@dataclass(eq=False)
class Assign(Stmt):
    target: Expr  # LocalRef, FieldGet or Index
    value: Expr
    augmented: bool = False  # value is Bin(target, x)


@dataclass(eq=False)
class Unpack(Stmt):
    """`a, b = f(x)`; a target of None is dropped. `check`: the first result is a Status, handed on unless OK."""

    targets: list[tuple[Expr, bool] | None]  # LocalRef and whether it is declared here
    call: Call | TableCall
    check: bool = False
    result: Type | None = None  # of the enclosing function, for `check`


@dataclass(eq=False)
class Do(Stmt):
    """A call for its effects."""

    call: Expr


@dataclass(eq=False)
class If(Stmt):
    test: Expr
    body: list[Stmt]
    orelse: list[Stmt]


@dataclass(eq=False)
class While(Stmt):
    test: Expr
    body: list[Stmt]


@dataclass(eq=False)
class ForRange(Stmt):
    local: Local
    start: Expr
    stop: Expr
    step: int
    body: list[Stmt]


@dataclass(eq=False)
class ForEach(Stmt):
    local: Local
    base: Expr
    count: Expr
    body: list[Stmt]


@dataclass(eq=False)
class Match(Stmt):
    subject: Expr
    cases: list[tuple[list[Const], list[Stmt]]]  # no constants: the rest


@dataclass(eq=False)
class Return(Stmt):
    values: list[Expr]


@dataclass(eq=False)
class Jump(Stmt):
    word: str  # break, continue, pass


@dataclass(eq=False)
class Assert(Stmt):
    test: Expr
    text: str


@dataclass(eq=False)
class FnIR:
    function: Function
    parameters: list[Local]
    result: Type
    body: list[Stmt]
    doc: str
    pos: Pos
    end_line: int
    calls: list[Function]
    tables: list[Table]
    writes: bool = False  # touches memory that is not its own, or calls what does
    storage: list[Local] = field(default_factory=list)

    @cached_property
    def globals(self) -> list[Rom | Static]:
        """The tables and the storage that it names, in order of first use."""
        named = (one.thing for s in every(self.body) for e in expressions(s) for one in below(e) if isinstance(one, GlobalRef))
        return list(dict.fromkeys(named))


# The attributes of a node that hold expressions, or lists of them, in order of evaluation.
_ORDER = ("a", "b", "test", "base", "parts", "args", "row", "at", "start", "stop")
_STATEMENT_ORDER = ("value", "target", "call", "test", "start", "stop", "base", "count", "subject", "values")
_operands: dict[type, tuple[str, ...]] = {Cond: ("test", "a", "b")}


def _named(kind: type, order: tuple[str, ...]) -> tuple[str, ...]:
    """Those of `order` that nodes of a kind have."""
    found = _operands.get(kind)
    if found is None:
        have = {f.name for f in fields(kind)}
        found = _operands[kind] = tuple(name for name in order if name in have)
    return found


def _gather(node: Any, names: tuple[str, ...]) -> list[Expr]:
    out: list[Expr] = []
    for name in names:
        value = getattr(node, name)
        if isinstance(value, list):
            out += value
        elif value is not None:
            out.append(value)
    return out


def children(e: Expr) -> list[Expr]:
    """The operands of an expression, in order of evaluation."""
    return _gather(e, _named(type(e), _ORDER))


def expressions(s: Stmt) -> list[Expr]:
    """What a statement itself evaluates or stores to, not what the statements inside it do."""
    return _gather(s, _named(type(s), _STATEMENT_ORDER))


def below(e: Expr) -> Iterator[Expr]:
    """An expression and all inside it, each before its operands."""
    todo = [e]
    while todo:
        one = todo.pop()
        yield one
        if names := _named(type(one), _ORDER):
            todo += reversed(_gather(one, names))


def every(body: list[Stmt]) -> Iterator[Stmt]:
    """The statements of a body, and those inside them."""
    for s in body:
        yield s
        for name in ("body", "orelse"):
            yield from every(getattr(s, name, []))
        for _, inner in getattr(s, "cases", []):
            yield from every(inner)


def born(body: list[Stmt]) -> list[str]:
    """Names of the locals that begin in a body, in order."""
    out: list[str] = []
    for s in every(body):
        if isinstance(s, (Declare, ForRange, ForEach)):
            out.append(s.local.name)
        if isinstance(s, Unpack):
            out += [t[0].local.name for t in s.targets if t is not None]  # type: ignore[attr-defined]
    return out
