"""The checked engine: the kernel's Python under CPython, every width, bound and lifetime checked."""

from __future__ import annotations

from typing import Any

from synapticos.boards.host import HostBoard
from synapticos.compiler import Program
from synapticos.compiler.emit_checked import Checked, scalar, unit
from synapticos.lang import layouts as layout
from synapticos.lang.memory import P, Q, R, Region, new_region, region_at
from synapticos.lang.trap import Trap
from synapticos.lang.types import ArrayType, EnumType, OptType, StructType, Type
from synapticos.lang.words import Function

from .base import Engine
from .obj import Obj


class CheckedEngine(Engine):
    name = "checked"

    def __init__(self, program: Program, board: Any = None) -> None:
        super().__init__(program, board or HostBoard())
        self.checked = Checked(program, self.board)
        self.checked.refresh()
        self.said: dict[tuple[int, int], str] = {}  # what the last failed check at a place said, for Faults
        self.board.place_of = self._place

    def allocate(self, size: int, align: int, name: str) -> tuple[int, Any]:
        region = new_region(size, name)
        self._kept.append(region)
        return region.number << 32, region

    def share(self, buffer: Any, name: str = "buffer") -> Obj:
        """An array of u8 over somebody else's memory (a NumPy array, bytes), without a copy."""
        region = Region(buffer, name)
        self._kept.append(region)
        from synapticos.lang.types import U8

        return Obj(self, ArrayType(U8, (region.size,)), region.number << 32, region)

    def read(self, address: int, n: int) -> bytes:
        at = address & 0xFFFFFFFF
        return bytes(region_at(address).buffer[at : at + n])

    def write(self, address: int, data: bytes) -> None:
        at = address & 0xFFFFFFFF
        region_at(address).buffer[at : at + len(data)] = data

    def enter(self, value: Any, kind: Type) -> Any:
        if isinstance(kind, OptType):
            if value is None:
                return None
            kind = kind.inner
        if scalar(kind):
            buffer = bytearray(8)
            layout.store(buffer, 0, kind, value)
            got = layout.load(buffer, 0, kind)
            return int(got) if isinstance(kind, EnumType) else got
        address = self.address(value, kind)
        region, at = region_at(address), address & 0xFFFFFFFF
        if isinstance(kind, StructType):
            return R(region, at)
        size = value._type.size if isinstance(value, Obj) else region.size
        element = kind.element  # type: ignore[attr-defined]
        if scalar(element):
            if at % element.size:
                raise ValueError(f"byte {at} is not aligned for {element}")
            return P(region, unit(element), at // element.size, at // element.size, (at + size) // element.size)
        return Q(region, at, at, at + size, element.size)

    def leave(self, value: Any, kind: Type) -> Any:
        if isinstance(kind, OptType):
            if value is None:
                return None
            kind = kind.inner
        if isinstance(kind, EnumType):
            return kind.cls(value) if value in kind.members.values() else value
        if scalar(kind):
            return value
        if isinstance(kind, StructType):
            return Obj(self, kind, value.r.number << 32 | value.o, value.r)
        if isinstance(value, P):
            size = kind.element.size  # type: ignore[attr-defined]
            return Obj(self, ArrayType(kind.element, (value.hi - value.at,)), value.r.number << 32 | value.at * size, value.r)  # type: ignore[attr-defined]
        element = kind.element  # type: ignore[attr-defined]
        return Obj(self, ArrayType(element, ((value.hi - value.o) // element.size,)), value.r.number << 32 | value.o, value.r)

    def __call__(self, function: Function, *arguments: Any) -> Any:
        parameters, result = self.program.signature(function)
        if len(arguments) != len(parameters):
            raise TypeError(f"{function.__name__} takes {len(parameters)} arguments, and {len(arguments)} are given")
        inner = self.checked.function(function)
        values = [self.enter(v, t) for v, (_, t) in zip(arguments, parameters, strict=True)]
        try:
            out = inner(*values)
        except (AttributeError, TypeError, IndexError, ValueError) as error:
            raise self._trap(error) from error
        kinds = getattr(result, "items", None)
        if kinds is not None:
            return tuple(self.leave(v, t) for v, t in zip(out, kinds, strict=True))
        return None if out is None else self.leave(out, result)

    def interrupt(self, line: int, function: Function, *arguments: Any) -> None:
        self.board.handlers[line] = lambda: self(function, *arguments)

    def _trap(self, error: Exception) -> Exception:
        """What Python itself noticed in checked code, as a Trap at its line; anything else as it is."""
        at = error.__traceback__
        last = None
        files = {f.file for f in self.program.functions}
        while at is not None:
            if at.tb_frame.f_code.co_filename in files:
                last = at
            at = at.tb_next
        if last is None:
            return error
        text = str(error)
        if "read-only" in text or "cannot modify" in text:
            text = "a write to a rom table"
        elif "NoneType" in text:
            text = "None is used as a reference"
        from synapticos.compiler.parse import short_path

        return Trap(text, short_path(last.tb_frame.f_code.co_filename), last.tb_lineno)

    def _place(self, error: Exception) -> tuple[int, int]:
        """The number of the file, and the line, of a failed check in a guarded call. What is none of kernel-Python goes on."""
        trap = error if isinstance(error, Trap) else self._trap(error)
        if not isinstance(trap, Trap):
            raise error
        number = self.program.file_id(trap.file)
        self.said[number, trap.line] = trap.message
        return number, trap.line

    def call_direct(self, function: Function, arguments: tuple[Any, ...]) -> Any:
        self.checked.function(function)
        return self(function, *arguments)



