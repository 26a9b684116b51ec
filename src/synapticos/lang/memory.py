"""Checked memory: every object a region of bytes of its own, every reference with its bounds.

A virtual address is `region number << 32 | byte offset`, so nothing lies beside anything else, and an address that
was stored is found again. Accesses go through typed memoryviews of the region.
"""

from __future__ import annotations

import weakref
from typing import Any

from .trap import Trap

_regions: weakref.WeakValueDictionary[int, Region] = weakref.WeakValueDictionary()
_next = 1
_CODES = {"u8": "B", "u16": "H", "u32": "I", "u64": "Q", "i8": "b", "i16": "h", "i32": "i", "i64": "q", "f32": "f"}


class Region:
    """Bytes with a name, and typed views of them, made when first used."""

    __slots__ = ("number", "buffer", "size", "name", "u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "f32", "__weakref__")

    def __init__(self, buffer: Any, name: str, size: int | None = None) -> None:
        global _next
        self.buffer = memoryview(buffer).cast("B")
        self.size = len(self.buffer) if size is None else size
        self.name = name
        self.number = _next
        _next += 1
        _regions[self.number] = self

    def __getattr__(self, kind: str) -> Any:
        code = _CODES.get(kind)
        if code is None:
            raise AttributeError(kind)
        unit = {"B": 1, "b": 1, "H": 2, "h": 2, "I": 4, "i": 4, "f": 4, "Q": 8, "q": 8}[code]
        view = self.buffer[: len(self.buffer) // unit * unit].cast("B").cast(code)  # type: ignore[call-overload]
        setattr(self, kind, view)
        return view


def new_region(size: int, name: str, fill: int = 0) -> Region:
    """A region of `size` bytes; what lies behind them up to a multiple of 8 belongs to nobody."""
    padded = -(-size // 8) * 8
    return Region(bytearray([fill]) * padded if fill else bytearray(padded), name, size)


class P:
    """A pointer to elements of one scalar type: `v` the typed view, `at` its index, `lo` and `hi` the bounds."""

    __slots__ = ("r", "v", "at", "lo", "hi", "k")

    def __init__(self, r: Region, kind: str, at: int, lo: int, hi: int) -> None:
        self.r, self.k, self.at, self.lo, self.hi = r, kind, at, lo, hi
        self.v = getattr(r, kind)


class Q:
    """A pointer to elements that are structs or pointers: byte offset `o`, bounds in bytes, element size `n`."""

    __slots__ = ("r", "o", "lo", "hi", "n")

    def __init__(self, r: Region, o: int, lo: int, hi: int, n: int) -> None:
        self.r, self.o, self.lo, self.hi, self.n = r, o, lo, hi, n


class R:
    """A reference to one struct at byte `o` of its region."""

    __slots__ = ("r", "o")

    def __init__(self, r: Region, o: int) -> None:
        self.r, self.o = r, o


def region_at(address: int) -> Region:
    found = _regions.get(address >> 32)
    if found is None:
        raise Trap("this pointer's memory is gone" if address else "this pointer is None")
    return found


_SIZES = {"B": 1, "b": 1, "H": 2, "h": 2, "I": 4, "i": 4, "f": 4, "Q": 8, "q": 8}
SIZE = {name: _SIZES[code] for name, code in _CODES.items()}
