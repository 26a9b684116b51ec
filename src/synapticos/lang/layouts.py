"""Layouts on the host: sizes, packing and unpacking of structs, with no compiler."""

from __future__ import annotations

import struct as _struct
from typing import Any

from .types import ArrayType, EnumType, OptType, PtrType, Scalar, StructType, Type, Types

_default = Types()


def of(kind: Any, types: Types | None = None) -> Type:
    return kind if isinstance(kind, Type) else (types or _default).of(kind)


def sizeof(kind: Any, types: Types | None = None) -> int:
    """Bytes of a type, on the host (pointers take 8)."""
    return of(kind, types).size


def layout(cls: Any, types: Types | None = None) -> list[tuple[str, int, Type]]:
    """(name, offset, type) of each field."""
    kind = of(cls, types)
    assert isinstance(kind, StructType)
    return [(f.name, f.offset, f.type) for f in kind.fields]


def pack(cls: Any, types: Types | None = None, /, **fields: Any) -> bytes:
    """The struct's bytes; a field not named is 0. Raises ValueError for a name or value that does not fit."""
    kind = of(cls, types)
    assert isinstance(kind, StructType)
    out = bytearray(kind.size)
    for name, value in fields.items():
        if name not in kind.by_name:
            raise ValueError(f"{kind.name} has no field {name}; it has {', '.join(kind.by_name)}")
        store(out, kind.by_name[name].offset, kind.by_name[name].type, value)
    return bytes(out)


def unpack(cls: Any, data: bytes, at: int = 0, types: Types | None = None) -> dict[str, Any]:
    """Field values by name; enums as members where they are known, else as numbers."""
    kind = of(cls, types)
    assert isinstance(kind, StructType)
    return {f.name: load(data, at + f.offset, f.type) for f in kind.fields}


def store(out: Any, at: int, kind: Type, value: Any) -> None:
    """Write a Python value into bytes as `kind`. Raises ValueError if it does not fit."""
    if isinstance(kind, StructType):
        if isinstance(value, dict):
            for name, item in value.items():
                store(out, at + kind.by_name[name].offset, kind.by_name[name].type, item)
            return
        out[at : at + kind.size] = _exactly(bytes(value), kind)
    elif isinstance(kind, ArrayType):
        if isinstance(value, (bytes, bytearray, memoryview)):
            data = bytes(value)
            if len(data) > kind.size:
                raise ValueError(f"{len(data)} bytes do not fit {kind}")
            out[at : at + kind.size] = data.ljust(kind.size, b"\0")
            return
        flat = _flat(value)
        if len(flat) > kind.count:
            raise ValueError(f"{len(flat)} values do not fit {kind}")
        for i, item in enumerate(flat):
            store(out, at + i * kind.element.size, kind.element, item)
    else:
        code = "Q" if kind.size == 8 else "I"
        if isinstance(kind, (Scalar, EnumType)):
            code = kind.code
        try:
            _struct.pack_into("<" + code, out, at, float(value) if code == "f" else int(value))
        except (_struct.error, OverflowError) as error:
            raise ValueError(f"{value!r} does not fit {kind}: {error}") from None


def load(data: Any, at: int, kind: Type) -> Any:
    """Read a Python value of `kind` from bytes."""
    if isinstance(kind, StructType):
        return {f.name: load(data, at + f.offset, f.type) for f in kind.fields}
    if isinstance(kind, ArrayType):
        return [load(data, at + i * kind.element.size, kind.element) for i in range(kind.count)]
    code = kind.code if isinstance(kind, (Scalar, EnumType)) else "Q" if kind.size == 8 else "I"
    value = _struct.unpack_from("<" + code, data, at)[0]
    if isinstance(kind, EnumType) and value in kind.members.values():
        return kind.cls(value)
    if isinstance(kind, Scalar) and kind.kind == "bool":
        return value != 0
    return value


def _exactly(data: bytes, kind: Type) -> bytes:
    if len(data) != kind.size:
        raise ValueError(f"{len(data)} bytes are no {kind}, which takes {kind.size}")
    return data


def _flat(value: Any) -> list[Any]:
    if hasattr(value, "tolist"):
        value = value.tolist()
    out: list[Any] = []
    for item in value:
        out.extend(_flat(item)) if isinstance(item, (list, tuple)) else out.append(item)
    return out


__all__ = ["OptType", "PtrType", "layout", "load", "of", "pack", "sizeof", "store", "unpack"]
