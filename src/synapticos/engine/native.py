"""The native engine: the kernel as a shared library of the host, called through cffi with the GIL released."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cffi

from synapticos import toolchain
from synapticos.boards import host
from synapticos.boards.host import HostExit, NativeBoard
from synapticos.compiler.c_files import CProgram
from synapticos.lang.trap import Trap
from synapticos.lang.words import Function

from .artifact import built, light_program
from .base import Engine
from .obj import Obj

if TYPE_CHECKING:
    from .build import Build

_INCLUDE = ["-I" + str(p.parent) for p in host.SOURCES]


def library(build: Build, *, checks: bool, compiler: str | None, sanitize: tuple[str, ...],
            flags: tuple[str, ...] = ("-O2", "-g")) -> Path:  # fmt: skip
    """The folder with the shared library of a build, from the cache or compiled."""
    chain = toolchain.find("host", compiler)
    per_file = {} if sanitize else {"layers.c": ("-O3",)}

    def make(folder: Path, made: CProgram) -> None:
        units = [folder / u for u in made.units if u != "words.c"]  # the host has the words
        own = [*flags, f"-I{folder}", f"-Wa,-I{folder}", *_INCLUDE]
        chain.shared([*units, *host.SOURCES], folder / "kernel.so", own, sanitize=sanitize, per_file=per_file)

    parts = (chain.name, chain.version, flags, sanitize, list(host.SOURCES))
    return built("native", build, lambda: build.program(8), parts, checks=checks, make=make)


class NativeEngine(Engine):
    name = "native"

    def __init__(self, build: Build, *, checks: bool = False, compiler: str | None = None,
                 sanitize: tuple[str, ...] = (), real_clock: bool = False) -> None:  # fmt: skip
        self.ffi = cffi.FFI()
        self.ffi.cdef(host.CDEF + "void *malloc(size_t); void free(void *);")
        folder = library(build, checks=checks, compiler=compiler, sanitize=sanitize)
        self.lib = self.ffi.dlopen(str(folder / "kernel.so"))
        self.checks = checks
        super().__init__(light_program(build, folder, 8), NativeBoard(self.ffi, self.lib, real_clock=real_clock))
        self.roots = set(build.roots)
        self._functions: dict[Function, Any] = {}
        self._blocks: dict[int, Any] = {}  # the arguments of what interrupts call
        self._declaring = threading.Lock()  # cffi takes a declaration once

    def allocate(self, size: int, align: int, name: str) -> tuple[int, Any]:
        cell = self.ffi.gc(self.lib.malloc(size), self.lib.free, size)
        return int(self.ffi.cast("uintptr_t", cell)), cell

    def share(self, buffer: Any, name: str = "buffer") -> Obj:
        """An array of u8 over somebody else's memory (a NumPy array), without a copy; the object holds it alive."""
        from synapticos.lang.types import U8, ArrayType

        cell = self.ffi.from_buffer("uint8_t[]", buffer)
        return Obj(self, ArrayType(U8, (len(cell),)), int(self.ffi.cast("uintptr_t", cell)), (cell, buffer))

    def read(self, address: int, n: int) -> bytes:
        return bytes(self.ffi.buffer(self.ffi.cast("uint8_t *", address), n))

    def write(self, address: int, data: bytes) -> None:
        self.ffi.memmove(self.ffi.cast("uint8_t *", address), data, len(data))

    def symbol(self, function: Function) -> Any:
        found = self._functions.get(function)
        if found is None:
            if function not in self.roots:
                raise KeyError(f"{function.__name__} is not a root of this build: name it in Build(roots=[...])")
            name = function.c_name + "_thunk"
            with self._declaring:
                if function not in self._functions:
                    self.ffi.cdef(f"void {name}(void *);")
                    self._functions[function] = self.ffi.cast("void *", self.ffi.addressof(self.lib, name))
                found = self._functions[function]
        return found

    def __call__(self, function: Function, *arguments: Any) -> Any:
        return self.prepare(function, *arguments)()

    def prepare(self, function: Function, *arguments: Any) -> Callable[[], Any]:
        """The call with its arguments converted once. Not for two threads at a time: it has one argument block."""
        symbol = self.symbol(function)
        made, data = self.block(function, arguments)
        block = self.ffi.from_buffer("uint8_t[]", data)
        told = self.ffi.new("uint32_t[2]")
        host_call, read, board = self.lib.host_call, self.reader(made), self.board.number

        def call() -> Any:
            why = host_call(symbol, block, told, board)
            if why:
                raise self._broken(why, told)
            return read(data)

        return call

    def raw(self, function: Function, *arguments: Any) -> tuple[Callable[[], None], bytearray, Any]:
        """A call whose argument block the caller changes and reads between two calls: what calls, the block, its layout."""
        symbol = self.symbol(function)
        made, data = self.block(function, arguments)
        block = self.ffi.from_buffer("uint8_t[]", data)
        told = self.ffi.new("uint32_t[2]")
        host_call, board = self.lib.host_call, self.board.number

        def call() -> None:
            why = host_call(symbol, block, told, board)
            if why:
                raise self._broken(why, told)

        return call, data, made

    def interrupt(self, line: int, function: Function, *arguments: Any) -> None:
        symbol = self.symbol(function)
        _, data = self.block(function, arguments)
        block = self._blocks[line] = self.ffi.from_buffer("uint8_t[]", data)
        self.board.interrupt(line, symbol, block)

    def _broken(self, why: int, told: Any) -> Exception:
        if why == 1:
            return Trap("a check failed", self.file(told[0]), told[1])
        return HostExit(told[0] - ((told[0] & 0x80000000) << 1))

    def close(self) -> None:
        self.board.close()
