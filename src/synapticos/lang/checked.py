"""What checked code calls: the checks too long to stand inline, and the places of its traps.

A function here takes the number of a place; `places` of the code's own globals turns it into file, line and columns.
"""

from __future__ import annotations

import array
from typing import Any

from .memory import SIZE, P, Q, R, Region, new_region, region_at
from .trap import Trap

_cell = array.array("f", [0.0])
_word = memoryview(_cell).cast("B").cast("I")  # type: ignore[arg-type]


class Places:
    """Numbers for places of the source; makes the traps."""

    def __init__(self) -> None:
        self.list: list[tuple[str, int, int, int]] = []

    def add(self, file: str, line: int, column: int, end: int) -> int:
        self.list.append((file, line, column, end))
        return len(self.list) - 1

    def trap(self, place: int, text: str) -> Trap:
        return Trap(text, *self.list[place])


def helpers(places: Places, short: Any) -> dict[str, Any]:
    """The globals of one program's checked code."""

    def trap(place: int, text: str) -> Trap:
        file, line, column, end = places.list[place]
        return Trap(text, short(file), line, column, end)

    def ov(value: int, kind: str, place: int) -> Any:
        raise trap(place, f"{value} overflows {kind}")

    def fl(value: float, place: int) -> float:
        _cell[0] = value
        value = _cell[0]
        if value != value:
            raise trap(place, "this f32 operation makes a NaN")
        return value

    def fdiv(a: float, b: float, place: int) -> float:
        if b == 0.0:
            if a == 0.0 or a != a:
                raise trap(place, "this f32 operation makes a NaN")
            import math

            return math.copysign(float("inf"), a) * math.copysign(1.0, b)
        return fl(a / b, place)

    def fl_any(value: float) -> float:
        _cell[0] = value
        return _cell[0]

    def fdiv_any(a: float, b: float) -> float:
        import math

        if b == 0.0:
            return a * math.inf * math.copysign(1.0, b) if a != 0.0 else math.nan
        return fl_any(a / b)

    def fcmp(a: float, place: int) -> float:
        if a != a:
            raise trap(place, "a NaN is compared")
        return a

    def div(a: int, b: int, place: int) -> int:
        if b == 0:
            raise trap(place, "division by zero")
        return a // b

    def mod(a: int, b: int, place: int) -> int:
        if b == 0:
            raise trap(place, "division by zero")
        return a % b

    def signed(name: str, a: int, b: int, low: int, high: int, kind: str, place: int) -> int:
        if b == 0:
            raise trap(place, "division by zero")
        if name == "div_floor":
            out = a // b
        elif name == "mod_floor":
            out = a % b
        else:
            out = abs(a) // abs(b) if (a < 0) == (b < 0) else -(abs(a) // abs(b))
            if name == "rem_trunc":
                out = a - out * b
        if not low <= out <= high:
            raise trap(place, f"{out} overflows {kind}")
        return out

    def count(n: int, bits: int, place: int) -> int:
        if not 0 <= n < bits:
            raise trap(place, f"a shift by {n} of {bits} bits")
        return n

    def to_int(x: float, low: int, high: int, kind: str, place: int) -> int:
        if x != x or x in (float("inf"), float("-inf")) or not low <= int(x) <= high:
            raise trap(place, f"{x} does not fit {kind}")
        return int(x)

    def sat_float(x: float, low: int, high: int) -> int:
        if x != x:
            return 0
        if x >= high:
            return high
        return low if x <= low else int(x)

    def to_float(n: int, place: int) -> float:
        return fl(float(n), place) if -(1 << 53) <= n <= 1 << 53 else round_int(n)

    def round_int(n: int) -> float:
        """An integer of more than 53 bits to f32, rounded once."""
        sign, n = (-1.0, -n) if n < 0 else (1.0, n)
        shift = n.bit_length() - 24
        low = n & ((1 << shift) - 1)
        n >>= shift
        half = 1 << (shift - 1)
        n += low > half or (low == half and n & 1)
        return sign * float(n) * 2.0**shift

    def enum(value: int, members: Any, kind: str, place: int) -> int:
        if value not in members:
            raise trap(place, f"{value} is no {kind}")
        return value

    def ix(at: int, length: int, place: int) -> int:
        if not 0 <= at < length:
            raise trap(place, f"index {at} of {length}")
        return at

    def out(p: P, at: int, place: int) -> Any:
        raise trap(place, f"{p.r.name}: element {p.at + at - p.lo} of {p.hi - p.lo}")

    def elem(p: Q, at: int, place: int) -> R:
        o = p.o + at * p.n
        if o < p.lo or o + p.n > p.hi:
            raise trap(place, f"{p.r.name}: element {at} is outside [{(p.lo - p.o) // p.n}, {(p.hi - p.o) // p.n})")
        return R(p.r, o)

    def cut(p: Any, start: int, stop: int | None, place: int) -> Any:
        if isinstance(p, Q):
            low, high = p.o + start * p.n, p.hi if stop is None else p.o + stop * p.n
            if not p.lo <= low <= high <= p.hi:
                raise trap(place, f"{p.r.name}: [{start}:{stop if stop is not None else ''}] is outside it")
            return Q(p.r, low, low, high, p.n)
        low, high = p.at + start, p.hi if stop is None else p.at + stop
        if not p.lo <= low <= high <= p.hi:
            raise trap(place, f"{p.r.name}: [{start}:{stop if stop is not None else ''}] of {p.hi - p.at} elements")
        return P(p.r, p.k, low, low, high)

    def span(p: Any) -> tuple[Region, int, int, int]:
        """region, byte offset, lowest and end byte of a pointer"""
        if isinstance(p, P):
            n = SIZE[p.k]
            return p.r, p.at * n, p.lo * n, p.hi * n
        return p.r, p.o, p.lo, p.hi

    def view(p: Any, kind: str, place: int) -> P:
        region, at, low, high = span(p)
        n = SIZE[kind]
        if at % n:
            raise trap(place, f"{region.name}: byte {at} is not aligned for {kind}")
        return P(region, kind, at // n, -(-low // n), high // n)

    def view_q(p: Any, n: int, align: int, place: int) -> Q:
        region, at, low, high = span(p)
        if at % align:
            raise trap(place, f"{region.name}: byte {at} is not aligned")
        return Q(region, at, low, high, n)

    def view_r(p: Any, size: int, align: int, kind: str, place: int) -> R:
        region, at, low, high = span(p)
        if at % align:
            raise trap(place, f"{region.name}: byte {at} is not aligned for {kind}")
        if at < low or at + size > high:
            raise trap(place, f"{region.name}: {kind} at byte {at - low} of {high - low}")
        return R(region, at)

    def from_struct(s: R, size: int) -> Q:
        return Q(s.r, s.o, s.o, s.o + size, 1)

    def load_p(address: int, kind: str) -> P | None:
        if address == 0:
            return None
        region, n = region_at(address), SIZE[kind]
        return P(region, kind, (address & 0xFFFFFFFF) // n, 0, region.size // n)

    def load_q(address: int, n: int) -> Q | None:
        if address == 0:
            return None
        region = region_at(address)
        return Q(region, address & 0xFFFFFFFF, 0, region.size, n)

    def address(p: Any) -> int:
        if p is None:
            return 0
        region, at, _, _ = span(p) if not isinstance(p, R) else (p.r, p.o, 0, 0)
        return region.number << 32 | at

    def load_r(at: int) -> R | None:
        return None if at == 0 else R(region_at(at), at & 0xFFFFFFFF)

    def copy(dst: Any, src: Any, size: int) -> None:
        (a, i), (b, j) = where(dst), where(src)
        a.buffer[i : i + size] = bytes(b.buffer[j : j + size])

    def copy_apart(dst: Any, src: Any, size: int, place: int) -> None:
        (a, i), (b, j) = where(dst), where(src)
        if a is b and i != j and abs(i - j) < size:
            raise trap(place, f"{a.name}: the copy overlaps what it copies")
        a.buffer[i : i + size] = b.buffer[j : j + size]

    def where(x: Any) -> tuple[Region, int]:
        return (x.r, x.o) if isinstance(x, (R, Q)) else (x.r, x.at * SIZE[x.k])

    def fill(p: P, value: Any, n: int, place: int) -> None:
        if p.at < p.lo or p.at + n > p.hi:
            raise trap(place, f"{p.r.name}: {n} elements of {p.hi - p.at}")
        if n:
            p.v[p.at : p.at + n] = memoryview(array.array(p.v.format, [value]) * n)

    def move(dst: Any, src: Any, n: int, place: int) -> None:
        size = n * (SIZE[dst.k] if isinstance(dst, P) else dst.n)
        for p in (dst, src):
            region, at, low, high = span(p)
            if at < low or at + size > high:
                raise trap(place, f"{region.name}: {size} bytes of {high - at}")
        copy(dst, src, size)

    def acquire(p: P, place: int) -> Any:
        return p.v[p.at] if p.lo <= p.at < p.hi else out(p, 0, place)

    def release(p: P, value: Any, place: int) -> None:
        if not p.lo <= p.at < p.hi:
            out(p, 0, place)
        p.v[p.at] = value

    def most(n: int, length: int, place: int) -> int:
        if n > length:
            raise trap(place, f"[:{n}] of {length}")
        return n

    def failed(text: str, place: int) -> None:
        raise trap(place, text)

    def bits(x: float) -> int:
        if x != x:
            return 0x7FC00000
        _cell[0] = x
        return _word[0]

    def from_bits(w: int) -> float:
        _word[0] = w
        return _cell[0]

    def zero(size: int, name: str, fill: int) -> Region:
        return new_region(size, name, fill)

    def row(table: Any, at: int, place: int) -> Any:
        if not 0 <= at < len(table):
            raise trap(place, f"entry {at} of a table of {len(table)}")
        return table[at]

    def loop(stop: int, step: int, high: int, place: int) -> int:
        """A range whose variable would pass its type before it ends traps at once."""
        if stop > high - step + 1:
            raise trap(place, f"a loop to {stop} by {step} leaves its type")
        return stop

    return {"_" + name: value for name, value in locals().items() if callable(value) and name not in ("places", "short")} | {
        "_P": P, "_Q": Q, "_R": R}  # fmt: skip
