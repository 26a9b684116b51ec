"""The words of kernel-Python as CPython meets them: markers that hold what was written and do nothing else.

What they mean is decided elsewhere: `types` makes types of annotations, the compiler makes code of functions.
"""

from __future__ import annotations

import inspect
import operator
import sys
from collections.abc import Callable
from enum import Enum
from typing import Annotated, Any, Final

from .reserved import c_name

Shaped = Annotated
Fn = Callable


class _Int(int):
    """A width. Called from plain Python it checks its range and gives a number that knows its width."""

    bits = 0
    signed = False

    def __new__(cls, value: Any = 0) -> Any:
        number = int.__new__(cls, int(value))
        half = 1 << (cls.bits - 1) if cls.bits else 0
        low, high = (-half, half - 1) if cls.signed else (0, 2 * half - 1)
        if cls.bits and not low <= number <= high:
            raise OverflowError(f"{int(number)} is outside {cls.__name__}")
        return number


def _width(name: str, bits: int, signed: bool) -> type[_Int]:
    return type(name, (_Int,), {"bits": bits, "signed": signed, "__module__": "synapticos.lang"})


u8, u16, u32, u64 = (_width(f"u{n}", n, False) for n in (8, 16, 32, 64))
i8, i16, i32, i64 = (_width(f"i{n}", n, True) for n in (8, 16, 32, 64))


class f32(float):
    """IEEE single. In plain Python a double, rounded where the language computes with it."""


class _Generic:
    def __class_getitem__(cls, element: Any) -> Any:
        return Marked(cls.__name__, element)


class Marked:
    """`Ptr[T]`, `Array[T]` or `Rows[T]` as written."""

    def __init__(self, kind: str, element: Any) -> None:
        self.kind, self.element = kind, element

    def __repr__(self) -> str:
        return f"{self.kind}[{getattr(self.element, '__name__', self.element)}]"

    def __or__(self, other: Any) -> Any:
        return Optional_(self) if other is None else NotImplemented

    def __call__(self, *_: Any) -> Any:  # typing.Annotated asks for something callable
        raise TypeError(f"{self!r} is a type, not a function")


class Optional_:
    """`Ptr[T] | None` as written (for classes Python makes a UnionType of its own)."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __call__(self, *_: Any) -> Any:
        raise TypeError("a type is not a function")


class Array(_Generic):
    pass


class Ptr(_Generic):
    pass


class Rows(_Generic):
    pass


class Place:
    """Where something was written: its module's name, file and first line."""

    def __init__(self, depth: int) -> None:
        frame = sys._getframe(depth + 1)
        self.module: str = frame.f_globals.get("__name__", "?")
        self.file: str = frame.f_code.co_filename
        self.line: int = frame.f_lineno
        self.globals = frame.f_globals


class Named:
    """A module-level object that finds the name it was given when somebody asks."""

    def __init__(self) -> None:
        depth = 1
        while sys._getframe(depth).f_globals.get("__name__") == __name__:
            depth += 1
        self.place = Place(depth)

    @property
    def name(self) -> str:
        for name, value in self.place.globals.items():
            if value is self:
                return name
        return "?"


class Param(Named):
    """A capacity that a build decides. Sums and products with it are capacities too."""

    def __init__(self, width: Any, default: int, max: int | None = None, min: int = 0) -> None:
        super().__init__()
        self.width, self.default, self.max, self.min = width, default, max, min

    def value(self, params: dict[str, int]) -> int:
        return params.get(self.name, self.default)

    def __index__(self) -> int:
        raise TypeError(f"{self.name} has no value at import: a build gives it one ({self.place.file}:{self.place.line})")

    def __add__(self, other: Any) -> ParamExpr:
        return ParamExpr("+", self, other)

    def __sub__(self, other: Any) -> ParamExpr:
        return ParamExpr("-", self, other)

    def __mul__(self, other: Any) -> ParamExpr:
        return ParamExpr("*", self, other)

    def __floordiv__(self, other: Any) -> ParamExpr:
        return ParamExpr("//", self, other)

    __radd__, __rmul__ = __add__, __mul__


class ParamExpr(Param):
    """A sum, difference, product or whole quotient that contains a capacity."""

    def __init__(self, op: str, left: Any, right: Any) -> None:
        Named.__init__(self)
        self.op, self.left, self.right = op, left, right

    def value(self, params: dict[str, int]) -> int:
        left, right = (x.value(params) if isinstance(x, Param) else int(x) for x in (self.left, self.right))
        return {"+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv}[self.op](left, right)


def param(width: Any, default: int, *, max: int | None = None, min: int = 0) -> Any:
    """A capacity: a number that each build may set, by this name, between `min` and `max`."""
    return Param(width, default, max, min)


class Rom(Named):
    """A constant table."""

    def __init__(self, element: Any, values: Any) -> None:
        super().__init__()
        self.element, self.values = element, values
        shape, level = [], values
        while isinstance(level, (list, tuple)):
            shape.append(len(level))
            level = level[0] if level else 0
        self.shape = tuple(shape)

    def flat(self) -> list[Any]:
        out, level = [], [self.values]
        while level:
            head = level.pop(0)
            if isinstance(head, (list, tuple)):
                level[0:0] = list(head)
            else:
                out.append(head)
        return out

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, at: Any) -> Any:
        return self.values[at]


def rom(element: Any, values: Any = None) -> Any:
    """A constant table: `rom(i16, [...])`, nested lists for two dimensions, `rom(b"text")` with a 0 after it."""
    if values is None:
        element, values = u8, list(element) + [0]
    if hasattr(values, "tolist"):
        values = values.tolist()
    return Rom(element, list(values))


class Blob(Rom):
    """Constant bytes that a build gives: a container, tables, a picture."""

    blob = True

    def __init__(self) -> None:
        Named.__init__(self)
        self.element, self.values, self.shape = u8, [], (0,)


def blob() -> Any:
    """Constant bytes that a build gives by this name; `len()` of it is their count. 16-aligned."""
    return Blob()


class Table(Named):
    """What may be called through a number. `open`: a build may append its own."""

    def __init__(self, type: Any, entries: list[Any], open: bool) -> None:
        super().__init__()
        self.type, self.entries, self.open = type, entries, open

    def __len__(self) -> int:
        return len(self.entries)


def table(type: Any, entries: list[Any], *, open: bool = False) -> Any:
    """A table of functions of one `Fn` type, called as `TABLE[i](...)`."""
    return Table(type, list(entries), open)


class Static(Named):
    """Memory that a program owns for as long as it runs (a board's root only)."""

    def __init__(self, type: Any, count: Any, align: int, section: str) -> None:
        super().__init__()
        self.type, self.count, self.align, self.section = type, count, align, section


def static(type: Any, count: Any = None, *, align: int = 0, section: str = "") -> Any:
    """Memory of a program's root: one struct, or an array of `count` elements."""
    return Static(type, count, align, section)


class Function:
    """A `@fn`: what was written, and a callable that runs on the checked engine."""

    def __init__(self, python: Callable[..., Any], kind: str = "fn", *, pure: bool = False, inline: bool | None = None, disjoint: bool = False,
                 nan: bool = False, code: str = "", when: str = "", symbol: str = "", prefix: str = "") -> None:
        self.python, self.kind = python, kind
        self.pure, self.inline, self.disjoint, self.nan, self.code, self.when = pure, inline, disjoint, nan, code, when
        self.symbol, self.prefix = symbol, prefix
        self.owner: type | None = None  # the struct whose method it is
        self.__name__, self.__doc__ = python.__name__, python.__doc__
        self.__qualname__, self.__module__ = python.__qualname__, python.__module__
        self.__wrapped__ = python
        self.file, self.line = python.__code__.co_filename, python.__code__.co_firstlineno

    @property
    def c_name(self) -> str:
        if self.kind == "hal":
            return "hal_" + self.__name__
        if self.owner is not None:
            return f"{snake(self.owner.__name__)}_{self.__name__}"
        return c_name(self.prefix + self.__name__)

    @property
    def module(self) -> str:
        return self.python.__module__

    @property
    def globals(self) -> dict[str, Any]:
        return self.python.__globals__

    @property
    def signature(self) -> inspect.Signature:
        return inspect.signature(self.python)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        return lambda *arguments: self(instance, *arguments)

    def __call__(self, *arguments: Any) -> Any:
        from synapticos.engine import default_engine

        return default_engine().call_direct(self, arguments)

    def __repr__(self) -> str:
        return f"<{self.kind} {self.__qualname__} {self.file}:{self.line}>"


def fn(python: Any = None, *, pure: bool = False, inline: bool | None = None, disjoint: bool = False, nan: bool = False) -> Any:
    """Kernel-Python from here on. `pure`: writes nothing but its own locals, so calls to it may stand anywhere.
    `inline`: True or False decides it, else the C compiler does.
    `disjoint`: what its pointers reach while it runs does not overlap (`restrict` in C; checked runs compare bounds).
    `nan`: a NaN is a value like any other to its f32 operations, and stops no check."""
    if python is None:
        return lambda f: Function(f, pure=pure, inline=inline, disjoint=disjoint, nan=nan)
    return Function(python, pure=pure, inline=inline, disjoint=disjoint, nan=nan)


def intrinsic(code: str, *, when: str = "defined(__ARM_FEATURE_DSP)") -> Any:
    """An instruction: `code` is C with `{0}`, `{1}`... for the arguments, used where the C condition `when` holds.
    The body is the meaning, and the C elsewhere."""
    return lambda f: Function(f, "intrinsic", pure=True, inline=True, code=code, when=when)


def hal_function(python: Any) -> Any:
    """A function that the board answers."""
    return Function(python, "hal")


def struct(cls: Any) -> Any:
    """A struct: annotated fields in order, natural alignment. Functions in it are its methods."""
    from .layouts import layout

    methods = {}
    for name, value in list(vars(cls).items()):
        if isinstance(value, Function):
            value.owner = cls
            methods[name] = value
    cls.__kernel_struct__ = True
    cls.__kernel_methods__ = methods
    cls.__kernel_place__ = Place(1)
    cls.layout = classmethod(layout)
    return cls


def snake(name: str) -> str:
    out = ""
    for i, letter in enumerate(name):
        if letter.isupper() and i and (not name[i - 1].isupper() or (i + 1 < len(name) and name[i + 1].islower())):
            out += "_"
        out += letter.lower()
    return out


def is_struct(thing: Any) -> bool:
    return isinstance(thing, type) and "__kernel_struct__" in vars(thing)


def is_enum(thing: Any) -> bool:
    return isinstance(thing, type) and issubclass(thing, Enum) and issubclass(thing, _Int)


def _compiled(name: str) -> Any:
    def word(*_: Any, **__: Any) -> Any:
        raise TypeError(f"{name} is a word of kernel-Python: it stands in an @fn")

    word.__name__ = name
    return word


wrap, sat, view, bits, from_bits, isnan, local, copy, fill, move, null, aligned = (
    _compiled(n) for n in "wrap sat view bits from_bits isnan local copy fill move null aligned".split())
check, ignore, refuse = (_compiled(n) for n in "check ignore refuse".split())
div_floor, mod_floor, div_trunc, rem_trunc, div_u64, rem_u64 = (
    _compiled(n) for n in "div_floor mod_floor div_trunc rem_trunc div_u64 rem_u64".split())
load_acquire, store_release, fence = (_compiled(n) for n in "load_acquire store_release fence".split())


class _Console:
    def print(self, text: str) -> None:
        raise TypeError("console.print stands in an @fn")


class _Log:
    def _word(self, log: Any, text: str) -> None:
        raise TypeError("log.info and its kin stand in an @fn")

    error = warning = info = debug = _word


console = _Console()
log = _Log()

__all__ = [
    "u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "f32", "Array", "Ptr", "Rows", "Shaped", "Fn", "Final", "Enum",
    "param", "rom", "blob", "table", "static", "fn", "intrinsic", "hal_function", "struct", "wrap", "sat", "view", "bits", "from_bits", "isnan",
    "local", "copy", "fill", "move", "null", "aligned", "check", "ignore", "refuse", "console", "log", "div_floor", "mod_floor",
    "div_trunc", "rem_trunc", "div_u64", "rem_u64", "load_acquire", "store_release", "fence",
]  # fmt: skip
