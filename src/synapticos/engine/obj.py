"""Objects of a kernel, seen from Python, wherever their bytes lie.

One implementation for all engines: an engine gives `read(address, n)` and `write(address, bytes)`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from synapticos.lang import layouts as layout
from synapticos.lang.types import ArrayType, EnumType, OptType, PtrType, Scalar, StructType, Type


class Obj:
    """A struct or array in an engine's memory. Fields are attributes, elements are items; equal by bytes."""

    __slots__ = ("_engine", "_type", "_address", "_keep")

    def __init__(self, engine: Any, kind: Type, address: int, keep: Any) -> None:
        for name, value in (("_engine", engine), ("_type", kind), ("_address", address), ("_keep", keep)):
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        kind = self._type
        if isinstance(kind, StructType) and name in kind.by_name:
            found = kind.by_name[name]
            return self._load(found.type, self._address + found.offset)
        raise AttributeError(f"{kind} has no {name}")

    def __setattr__(self, name: str, value: Any) -> None:
        kind = self._type
        if not isinstance(kind, StructType) or name not in kind.by_name:
            raise AttributeError(f"{kind} has no {name}")
        found = kind.by_name[name]
        self._store(found.type, self._address + found.offset, value)

    def _load(self, kind: Type, address: int) -> Any:
        if isinstance(kind, (StructType, ArrayType)):
            return Obj(self._engine, kind, address, self._keep)
        return layout.load(self._engine.read(address, kind.size), 0, kind)

    def _store(self, kind: Type, address: int, value: Any) -> None:
        if isinstance(kind, (PtrType, OptType)) and isinstance(value, Obj):
            self._engine.keep(value)
            value = value._address
        if value is None:
            value = 0
        buffer = bytearray(self._engine.read(address, kind.size))
        layout.store(buffer, 0, kind, value)
        self._engine.write(address, bytes(buffer))

    def _element(self, at: Any) -> tuple[Type, int]:
        kind = self._type
        if not isinstance(kind, ArrayType):
            raise TypeError(f"{kind} has no elements")
        indices = at if isinstance(at, tuple) else (at,)
        if len(indices) != len(kind.dims):
            raise IndexError(f"{kind} has {len(kind.dims)} dimensions")
        flat = 0
        for index, n in zip(indices, kind.dims, strict=True):
            index = index + n if index < 0 else index
            if not 0 <= index < n:
                raise IndexError(f"index {index} of {n}")
            flat = flat * n + index
        return kind.element, self._address + flat * kind.element.size

    def __getitem__(self, at: Any) -> Any:
        return self._load(*self._element(at))

    def __setitem__(self, at: Any, value: Any) -> None:
        self._store(*self._element(at), value)

    def __len__(self) -> int:
        if not isinstance(self._type, ArrayType):
            raise TypeError(f"{self._type} has no length")
        return self._type.dims[0]

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def __bytes__(self) -> bytes:
        return self._engine.read(self._address, self._type.size)

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Obj) and bytes(self) == bytes(other)

    __hash__ = None  # type: ignore[assignment]

    def numpy(self) -> np.ndarray:
        """A copy of an array's elements."""
        kind = self._type
        if not isinstance(kind, ArrayType) or not isinstance(kind.element, (Scalar, EnumType)):
            raise TypeError(f"{kind} is not an array of numbers")
        code = kind.element.code
        return np.frombuffer(bytes(self), dtype="<" + code).reshape(kind.dims).copy()

    def part(self, start: int, stop: int) -> Obj:
        """Elements [start, stop) of an array of one dimension, the same bytes."""
        kind = self._type
        assert isinstance(kind, ArrayType) and 0 <= start <= stop <= kind.count
        return Obj(self._engine, ArrayType(kind.element, (stop - start,)), self._address + start * kind.element.size, self._keep)

    def __repr__(self) -> str:
        if isinstance(self._type, StructType):
            return f"<{self._type} " + " ".join(f"{f.name}={getattr(self, f.name)!r}" for f in self._type.fields if isinstance(f.type, (Scalar, EnumType))) + ">"
        return f"<{self._type} {bytes(self)[:16].hex(' ')}>"
