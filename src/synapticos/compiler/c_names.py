"""Names, types and literals of C: what a Python name, width or constant is called there."""

from __future__ import annotations

from enum import Enum
from typing import Any

from synapticos.lang.reserved import WORDS, c_name, taken
from synapticos.lang.types import (
    VOID,
    ArrayType,
    EnumType,
    FnType,
    OptType,
    PtrType,
    Scalar,
    StructType,
    TupleType,
    Type,
)
from synapticos.lang.words import Function, Param, Rom, Static, Table

from .program import Program

_C = {"u8": "uint8_t", "u16": "uint16_t", "u32": "uint32_t", "u64": "uint64_t", "i8": "int8_t", "i16": "int16_t", "i32": "int32_t",
      "i64": "int64_t", "f32": "float", "bool": "bool"}  # fmt: skip


def ctype(kind: Type) -> str:
    """The C type of a value, parameter or pointer."""
    if isinstance(kind, OptType):
        return ctype(kind.inner)
    if isinstance(kind, Scalar):
        return _C[kind.name]
    if isinstance(kind, EnumType):
        return kind.name
    if isinstance(kind, StructType):
        return kind.name + " *"
    if isinstance(kind, (PtrType, ArrayType)):
        element = kind.element
        return (element.name + " *") if isinstance(element, StructType) else _star(ctype(element))
    return "void"


def _star(text: str) -> str:
    return text + "*" if text.endswith("*") else text + " *"


def declare(kind: Type, name: str) -> str:
    if isinstance(kind, FnType):
        result, parameters = fn_type(kind)
        return f"{result} (*{name})({parameters})"
    text = ctype(kind)
    return text + name if text.endswith("*") else f"{text} {name}"


def number(value: int, kind: Scalar) -> str:
    if kind.name == "u32":
        return f"{value}u"
    if kind.name == "u64":
        return f"{value}ull"
    if kind.name == "i64":
        return f"{value}ll" if value > -(1 << 63) else "(-9223372036854775807ll - 1)"
    return str(value) if value > -(1 << 31) else "(-2147483647 - 1)"


def real(value: float) -> str:
    if value != value:
        return '__builtin_nanf("")'
    if value in (float("inf"), float("-inf")):
        return "__builtin_inff()" if value > 0 else "-__builtin_inff()"
    text = f"{value:.9g}"
    for digits in range(1, 10):
        short = f"{value:.{digits}g}"
        from .expr import round_f32

        if round_f32(float(short)) == value:
            text = short
            break
    return (text if any(c in text for c in ".e") else text + ".0") + "f"


class Names:
    """Macros and symbols of one emitted program."""

    def __init__(self, program: Program, checks: bool) -> None:
        self.program, self.checks = program, checks
        self.macros: dict[str, tuple[Any, str]] = {}
        self._symbols: dict[str, Any] = {}
        self._named: dict[Any, str] = {}
        modules = {id(f.globals): f.globals for f in program.functions}.values()
        # What may become a macro, in any module: nothing else may have these names.
        self.constants = {n for m in modules for n, v in m.items() if _loud(n) and isinstance(v, (int, float, Param)) and not isinstance(v, Enum)}
        self.globals = {f.c_name for f in program.functions} | {t.name for t in [*program.types.structs, *program.types.enums]}

    def macro(self, name: str, value: Any, kind: Scalar, text: str) -> str:
        """The name of a constant, defined as a macro; its text where another module has the name for something else."""
        if not name or not _loud(name) or taken(name) or name in self.globals or name in self._symbols:
            return text
        found = self.macros.setdefault(name, (value, text))
        return name if found == (value, text) else text

    def symbol(self, thing: Rom | Static | Table) -> str:
        """The C name of a module's table or storage: its own, or with its module's before it where two modules share it."""
        if thing not in self._named:
            name = getattr(thing, "given_name", "") or c_name(thing.name)
            if name in self._symbols or name in self.constants or name in self.globals:
                name = f"{thing.place.module.removeprefix('synapticos.').replace('.', '_')}_{name}"
            while name in self._symbols or name in self.globals:
                name += "_"
            self._symbols[name] = thing
            self._named[thing] = name
        return self._named[thing]

    def field(self, name: str) -> str:
        return name + "_" if name in WORDS or name in self.constants or taken(name) and _loud(name) else name

    def local(self, name: str) -> str:
        """A local's name, out of the way of all that C knows at file level."""
        reserved = name.startswith("_") or taken(name) or name in self.constants or name in self.globals
        return name + "_" if reserved or _loud(name) and name in self._symbols else name


def _loud(name: str) -> bool:
    """Written as constants are."""
    return name.isupper() or name.replace("_", "").isupper()


def signature(names: Names, function: Function, parameter_names: list[str] | None = None) -> str:
    parameters, result = names.program.signature(function)
    spelled = parameter_names or [names.local(n) for n, _ in parameters]
    restrict = "restrict " if function.disjoint else ""
    texts = [declare(kind, (restrict if isinstance(_bare(kind), PtrType) else "") + name) for name, (_, kind) in zip(spelled, parameters, strict=True)]
    first = result
    if isinstance(result, TupleType):
        first = result.items[0]
        texts += [declare_out(kind, f"out_{i}") for i, kind in enumerate(result.items) if i]
    head = "void" if first is VOID else ctype(first)
    space = "" if head.endswith("*") else " "
    return f"{head}{space}{function.c_name}({', '.join(texts) or 'void'})"


def _bare(kind: Type) -> Type:
    return kind.inner if isinstance(kind, OptType) else kind


def declare_out(kind: Type, name: str) -> str:
    return _star(ctype(kind)) + name


def fn_type(kind: FnType) -> tuple[str, str]:
    """(result, parameters) of a function pointer."""
    result = kind.result
    first = result.items[0] if isinstance(result, TupleType) else result
    texts = [ctype(p) for p in kind.parameters]
    if isinstance(result, TupleType):
        texts += [_star(ctype(t)) for t in result.items[1:]]
    return "void" if first is VOID else ctype(first), ", ".join(texts) or "void"
