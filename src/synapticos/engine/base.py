"""What the three engines share: making objects, converting arguments and results, calling."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from synapticos.compiler import Program
from synapticos.compiler.c_files import is_word, thunk
from synapticos.lang import layouts as layout
from synapticos.lang.types import ArrayType, EnumType, OptType, PtrType, Scalar, StructType, Type
from synapticos.lang.words import Function

from .obj import Obj


def _nothing(data: Any) -> None:
    return None


class Engine:
    """A build on one engine. `e(fn, arguments...)` calls; `e.new` and `e.array` make objects in its memory."""

    name = "?"
    pointer = 8

    def __init__(self, program: Program, board: Any) -> None:
        self.program, self.board = program, board
        self.fill = 0
        self._kept: list[Any] = []
        self._thunks: dict[Function, Any] = {}
        self._readers: dict[str, Callable[[Any], Any]] = {}

    # Memory: an engine answers these three

    def allocate(self, size: int, align: int, name: str) -> tuple[int, Any]:
        raise NotImplementedError  # pragma: no cover - each engine answers

    def read(self, address: int, n: int) -> bytes:
        raise NotImplementedError  # pragma: no cover

    def write(self, address: int, data: bytes) -> None:
        raise NotImplementedError  # pragma: no cover

    def keep(self, thing: Any) -> None:
        """Hold an object whose address was stored in another."""
        self._kept.append(thing)

    @contextmanager
    def lending(self) -> Iterator[None]:
        """What is made inside lives as long as the caller holds it; elsewhere as long as the engine. One thread at a time."""
        mark = len(self._kept)
        try:
            yield
        finally:
            del self._kept[mark:]

    def type(self, kind: Any) -> Type:
        return kind if isinstance(kind, Type) else self.program.types.of(kind)

    def new(self, kind: Any, **fields: Any) -> Obj:
        """A struct: zero, then the fields named. With `fill` set, what is not named holds that byte."""
        made = self.type(kind)
        address, keep = self.allocate(max(made.size, 1), 16, made.name)
        self.write(address, bytes([self.fill]) * made.size)
        out = Obj(self, made, address, keep)
        for name, value in fields.items():
            setattr(out, name, value)
        return out

    def array(self, element: Any, values: Any, name: str = "array") -> Obj:
        """An array: a count of elements, or their values (a list, bytes, a NumPy array of the same width)."""
        kind = self.type(element)
        if isinstance(values, (int, np.integer)):
            made = ArrayType(kind, (int(values),))
            data = bytes([self.fill]) * made.size
        elif isinstance(values, (bytes, bytearray, memoryview)):
            data = bytes(values)
            made = ArrayType(kind, (len(data) // kind.size,))
        elif isinstance(values, np.ndarray) and isinstance(kind, (Scalar, EnumType)):
            if values.dtype != np.dtype("<" + kind.code) and not (values.dtype == np.bool_ and kind.name == "bool"):
                values = values.astype(np.dtype("<" + kind.code), casting="safe")
            made = ArrayType(kind, (values.size,))
            data = np.ascontiguousarray(values).tobytes()
        else:
            items = list(values)
            made = ArrayType(kind, (len(items),))
            buffer = bytearray(made.size)
            layout.store(buffer, 0, made, items)
            data = bytes(buffer)
        address, keep = self.allocate(max(made.size, 1), 16, name)
        self.write(address, data)
        return Obj(self, made, address, keep)

    # Calls

    def __call__(self, function: Function, *arguments: Any) -> Any:
        raise NotImplementedError  # pragma: no cover

    def prepare(self, function: Function, *arguments: Any) -> Callable[[], Any]:
        """The call with its arguments converted once: what it returns calls again and again."""
        return lambda: self(function, *arguments)

    def interrupt(self, line: int, function: Function, *arguments: Any) -> None:
        """What device `line` of a board without devices (`hal.interrupt_at`) calls when its time comes."""
        raise NotImplementedError  # pragma: no cover

    def block(self, function: Function, arguments: tuple[Any, ...]) -> tuple[Any, bytearray]:
        """The thunk's layout and its argument block, filled."""
        made = self._thunks.get(function)
        if made is None:
            made = self._thunks[function] = thunk(self.program, function)
        if len(arguments) != len(made.parameters):
            raise TypeError(f"{function.__name__} takes {len(made.parameters)} arguments, and {len(arguments)} are given")
        data = bytearray(made.size)
        for value, (kind, at) in zip(arguments, made.parameters, strict=True):
            if is_word(kind):
                data[at : at + 8] = self.address(value, kind).to_bytes(8, "little")
            else:
                layout.store(data, at, kind, value)
        return made, data

    def address(self, value: Any, kind: Type) -> int:
        """The address that a reference or pointer argument passes."""
        if value is None:
            if not isinstance(kind, OptType):
                raise TypeError(f"None is given, and {kind} is wanted")
            return 0
        kind = kind.inner if isinstance(kind, OptType) else kind
        if isinstance(value, Obj):
            have = value._type
            fits = have is kind or (isinstance(kind, StructType) and have is kind)
            if isinstance(kind, (PtrType, ArrayType)) and isinstance(have, ArrayType):
                fits = have.element is kind.element and (isinstance(kind, PtrType) or have.count == kind.count)
            if isinstance(kind, PtrType) and isinstance(have, StructType):
                fits = have is kind.element or kind.element.size == 1
            if not fits:
                raise TypeError(f"{have} is given, and {kind} is wanted")
            return int(value._address)
        if isinstance(value, (bytes, bytearray, np.ndarray)) and isinstance(kind, PtrType):
            made = self.array(kind.element, value)
            self.keep(made)
            return int(made._address)
        raise TypeError(f"{type(value).__name__} is given, and {kind} is wanted")

    def results(self, made: Any, data: Any) -> Any:
        return self.reader(made)(data)

    def reader(self, made: Any) -> Callable[[Any], Any]:
        """What takes a call's results out of its argument block."""
        found = self._readers.get(made.symbol)
        if found is None:
            each = [self._read_one(kind, at) for kind, at in made.results]
            if not each:
                found = _nothing
            elif len(each) == 1:
                found = each[0]
            else:

                def found(data: Any) -> Any:
                    return tuple(read(data) for read in each)

            self._readers[made.symbol] = found
        return found

    def _read_one(self, kind: Type, at: int) -> Callable[[Any], Any]:
        if is_word(kind):
            inner = kind.inner if isinstance(kind, OptType) else kind
            word = struct.Struct("<Q").unpack_from

            def reference(data: Any) -> Any:
                address = word(data, at)[0]
                return None if address == 0 else self.found(address, inner)

            return reference
        assert isinstance(kind, (Scalar, EnumType))
        unpack = struct.Struct("<" + kind.code).unpack_from
        if isinstance(kind, EnumType):
            members = {v: kind.cls(v) for v in kind.members.values()}

            def member(data: Any) -> Any:
                value = unpack(data, at)[0]
                return members.get(value, value)

            return member
        if kind.kind == "bool":
            return lambda data: unpack(data, at)[0] != 0
        return lambda data: unpack(data, at)[0]

    def found(self, address: int, kind: Type) -> Obj:
        """An object at an address that the kernel returned (a pointer: one element of it)."""
        return Obj(self, ArrayType(kind.element, (1,)) if isinstance(kind, PtrType) else kind, address, None)

    def file(self, number: int) -> str:
        """The source file of a panic."""
        files = self.program.files
        return files[number] if number < len(files) else f"file {number}"

    def close(self) -> None:
        """Give back what the engine holds."""
