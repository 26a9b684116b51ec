"""Types: what an annotation means in one build (capacities and pointer size decided)."""

from __future__ import annotations

import inspect
import types as _python_types
import typing
from dataclasses import dataclass, field
from typing import Any

from . import words
from .reserved import c_name


class Type:
    """Base of all; types of one `Types` are compared by identity."""

    name: str
    size: int
    align: int

    def __str__(self) -> str:
        return self.name


@dataclass(eq=False)
class Scalar(Type):
    name: str
    size: int
    signed: bool
    code: str  # of the struct module and of memoryview.cast
    kind: str = "int"  # int, float, bool

    @property
    def align(self) -> int:  # type: ignore[override]
        return self.size

    @property
    def bits(self) -> int:
        return 8 * self.size

    @property
    def low(self) -> int:
        return -(1 << (self.bits - 1)) if self.signed else 0

    @property
    def high(self) -> int:
        if self.kind == "bool":
            return 1
        return (1 << (self.bits - 1)) - 1 if self.signed else (1 << self.bits) - 1


U8, U16, U32, U64 = (Scalar(f"u{8 * n}", n, False, c) for n, c in ((1, "B"), (2, "H"), (4, "I"), (8, "Q")))
I8, I16, I32, I64 = (Scalar(f"i{8 * n}", n, True, c) for n, c in ((1, "b"), (2, "h"), (4, "i"), (8, "q")))
F32 = Scalar("f32", 4, True, "f", "float")
BOOL = Scalar("bool", 1, False, "B", "bool")
SCALARS: dict[Any, Scalar] = {words.u8: U8, words.u16: U16, words.u32: U32, words.u64: U64, words.i8: I8, words.i16: I16,
                              words.i32: I32, words.i64: I64, words.f32: F32, bool: BOOL}  # fmt: skip
INTEGERS = [U8, U16, U32, U64, I8, I16, I32, I64]


class _Void(Type):
    name, size, align = "None", 0, 1


VOID = _Void()


@dataclass(eq=False)
class EnumType(Type):
    cls: Any
    base: Scalar

    def __post_init__(self) -> None:
        self.name, self.size, self.align = self.cls.__name__, self.base.size, self.base.size
        self.members = {m.name: int(m.value) for m in self.cls}

    @property
    def code(self) -> str:
        return self.base.code


@dataclass(eq=False)
class Field:
    name: str
    type: Type
    offset: int


@dataclass(eq=False)
class StructType(Type):
    cls: Any
    fields: list[Field] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.name, self.size, self.align = self.cls.__name__, 0, 1
        self.by_name: dict[str, Field] = {}


@dataclass(eq=False)
class ArrayType(Type):
    element: Type
    dims: tuple[int, ...]

    def __post_init__(self) -> None:
        self.count = 1
        for n in self.dims:
            self.count *= n
        self.name = f"{self.element}[{', '.join(map(str, self.dims))}]"
        self.size, self.align = self.count * self.element.size, self.element.align


@dataclass(eq=False)
class PtrType(Type):
    element: Type
    size: int

    def __post_init__(self) -> None:
        self.name, self.align = f"Ptr[{self.element}]", self.size


@dataclass(eq=False)
class OptType(Type):
    """A reference or pointer that may be None."""

    inner: Type

    def __post_init__(self) -> None:
        self.name = f"{self.inner} | None"
        self.size, self.align = self.inner.size, self.inner.align


@dataclass(eq=False)
class TupleType(Type):
    items: tuple[Type, ...]

    def __post_init__(self) -> None:
        self.name = f"tuple[{', '.join(map(str, self.items))}]"
        self.size, self.align = 0, 1


@dataclass(eq=False)
class FnType(Type):
    parameters: tuple[Type, ...]
    result: Type

    def __post_init__(self) -> None:
        self.name = f"Fn[[{', '.join(map(str, self.parameters))}], {self.result}]"
        self.size, self.align = 0, 1


class BadType(Exception):
    """An annotation that is no type of the language; the text says why and what to write."""


class Types:
    """All types of one build."""

    def __init__(self, params: dict[str, int] | None = None, pointer: int = 8) -> None:
        self.params = params or {}
        self.pointer = pointer
        self._made: dict[Any, Type] = {}
        self.structs: list[StructType] = []  # in order of need: a struct after those it embeds
        self.enums: list[EnumType] = []
        self._names: dict[str, EnumType | StructType] = {}

    def of(self, annotation: Any) -> Type:
        """The type that an annotation names. Raises BadType."""
        if annotation is None or annotation is type(None):
            return VOID
        try:
            if annotation in SCALARS:
                return SCALARS[annotation]
        except TypeError:
            pass
        if annotation is int or annotation is float:
            width = "u32 or i32" if annotation is int else "f32"
            raise BadType(f"{annotation.__name__} has no width: write {width}, or another width of the language")
        if words.is_struct(annotation):
            return self.struct(annotation)
        if words.is_enum(annotation):
            return self.enum(annotation)
        if isinstance(annotation, words.Marked):
            if annotation.kind == "Ptr":
                return self.ptr(self.of(annotation.element))
            if annotation.kind == "Rows":
                return self.ptr(self.of(annotation.element))
            raise BadType(f"{annotation!r} has no length: write Shaped[{annotation!r}, n], or Ptr[...] for a buffer of any length")
        if isinstance(annotation, words.Optional_):
            return self.optional(self.of(annotation.inner))
        if typing.get_origin(annotation) is typing.Annotated:
            base = annotation.__origin__
            if not isinstance(base, words.Marked):
                raise BadType("Shaped[...] takes an Array[T] first, then its sizes")
            if base.kind == "Rows":
                return self.ptr(self.of(base.element))
            if base.kind != "Array":
                raise BadType("Shaped[...] takes an Array[T] first, then its sizes")
            return self.array(self.of(base.element), tuple(self.number(n) for n in annotation.__metadata__))
        origin = typing.get_origin(annotation)
        if origin is _python_types.UnionType or origin is typing.Union:
            inner = [a for a in typing.get_args(annotation) if a is not type(None)]
            if len(inner) != 1 or len(typing.get_args(annotation)) != 2:
                raise BadType("a union may only be of one reference and None: S | None")
            return self.optional(self.of(inner[0]))
        if origin is tuple:
            return self.results(tuple(self.of(a) for a in typing.get_args(annotation)))
        if origin is typing.Final:
            return self.of(typing.get_args(annotation)[0])
        if origin is _callable_origin:
            parameters, result = typing.get_args(annotation)
            return self.fn(tuple(self.of(p) for p in parameters), self.of(result))
        name = getattr(annotation, "__name__", repr(annotation))
        if isinstance(annotation, type):
            raise BadType(f"{name} is not a type of kernel-Python: make it a @struct, or use a width")
        raise BadType(f"{name} is not a type of kernel-Python")

    def number(self, n: Any) -> int:
        value = n.value(self.params) if isinstance(n, words.Param) else int(n)
        if value < 0:
            raise BadType(f"a size of {value} is negative")
        return value

    def _keep(self, key: Any, make: Any) -> Any:
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    def ptr(self, element: Type) -> PtrType:
        return self._keep(("ptr", element), lambda: PtrType(element, self.pointer))

    def optional(self, inner: Type) -> OptType:
        if not isinstance(inner, (StructType, PtrType)):
            raise BadType(f"{inner} is not a reference, so it is never None: use a Status, or a value that means none")
        return self._keep(("opt", inner), lambda: OptType(inner))

    def array(self, element: Type, dims: tuple[int, ...]) -> ArrayType:
        return self._keep(("array", element, dims), lambda: ArrayType(element, dims))

    def results(self, items: tuple[Type, ...]) -> TupleType:
        return self._keep(("tuple", items), lambda: TupleType(items))

    def fn(self, parameters: tuple[Type, ...], result: Type) -> FnType:
        return self._keep(("fn", parameters, result), lambda: FnType(parameters, result))

    def enum(self, cls: Any) -> EnumType:
        if cls not in self._made:
            base = next(SCALARS[b] for b in cls.__mro__ if b in SCALARS)
            made = EnumType(cls, base)
            self._name(made)
            self._made[cls] = made
            self.enums.append(made)
        return typing.cast(EnumType, self._made[cls])

    def _name(self, made: EnumType | StructType) -> None:
        """A struct or enum whose name another module has too is called by its module as well; the package's own stay."""
        name = c_name(made.name)
        other = self._names.get(name)
        if other is None:
            made.name = name
            self._names[name] = made
            return
        stranger, stays = (other, made) if made.cls.__module__.startswith("synapticos.") else (made, other)
        self._names[name], stays.name = stays, name
        stranger.name = f"{stranger.cls.__module__.replace('.', '_')}_{name}"
        self._names[stranger.name] = stranger

    def struct(self, cls: Any) -> StructType:
        if cls in self._made:
            return typing.cast(StructType, self._made[cls])
        for base in cls.__mro__[1:]:
            if words.is_struct(base):
                raise BadType(f"{cls.__name__} inherits from {base.__name__}: hold the other struct as a field")
        made = StructType(cls)
        self._name(made)
        self._made[cls] = made
        try:
            self._fields(made)
        except BadType:  # what is half made is not found again
            del self._made[cls], self._names[made.name]
            raise
        self.structs.append(made)
        return made

    def _fields(self, made: StructType) -> None:
        """Lay out a struct."""
        cls, at, align = made.cls, 0, 1
        for name, annotation in inspect.get_annotations(cls, eval_str=True).items():
            if typing.get_origin(annotation) is typing.ClassVar:
                continue
            try:
                kind = self.of(annotation)
            except BadType as error:
                raise BadType(f"field {cls.__name__}.{name}: {error}") from None
            if isinstance(kind, StructType) and kind.size == 0 and kind is made:
                raise BadType(f"field {cls.__name__}.{name}: a struct cannot hold itself: hold an index")
            if isinstance(kind, (TupleType, FnType)) or kind is VOID:
                raise BadType(f"field {cls.__name__}.{name}: {kind} cannot be kept in a struct: keep an index into a table()")
            at = -(-at // kind.align) * kind.align
            made.fields.append(Field(name, kind, at))
            made.by_name[name] = made.fields[-1]
            at += kind.size
            align = max(align, kind.align)
        made.align, made.size = align, -(-at // align) * align


_callable_origin = typing.get_origin(words.Fn[[int], int])  # type: ignore[type-arg, misc, valid-type]
