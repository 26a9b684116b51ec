"""The native engine: the kernel as a shared library of the host, called through cffi with the GIL released."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import cffi

from synapticos import toolchain
from synapticos.boards import host
from synapticos.boards.host import HostExit, NativeBoard
from synapticos.compiler import Program
from synapticos.compiler.c_files import CWriter
from synapticos.lang.trap import Trap
from synapticos.lang.words import Function

from .base import Engine
from .obj import Obj

_INCLUDE = ["-I" + str(p.parent) for p in host.SOURCES]


def library(program: Program, roots: list[Function], *, checks: bool, compiler: str | None, sanitize: tuple[str, ...],
            flags: tuple[str, ...] = ("-O2", "-g")) -> Path:  # fmt: skip
    """The shared library of a program, from the cache or compiled."""
    made = CWriter(program, roots, checks=checks, jumps=False).run()
    chain = toolchain.find("host", compiler)
    name = "native-" + toolchain.key(
        sorted((k, v) for k, v in made.files.items()), chain.name, chain.version, flags, sanitize, *host.SOURCES)  # fmt: skip

    def make(folder: Path) -> None:
        folder.mkdir()
        for file, text in made.files.items():
            (folder / file).write_bytes(text if isinstance(text, bytes) else text.encode())
        units = [folder / u for u in made.units]
        chain.shared([*units, *host.SOURCES], folder / "kernel.so", [*flags, f"-I{folder}", f"-Wa,-I{folder}", *_INCLUDE], sanitize=sanitize,
                     per_file={} if sanitize else {"layers.c": ("-O3",)})
        (folder / "files.json").write_text(json.dumps(program.files))

    return toolchain.cached(name, make) / "kernel.so"


class NativeEngine(Engine):
    name = "native"

    def __init__(self, program: Program, roots: list[Function], *, checks: bool = False, compiler: str | None = None,
                 sanitize: tuple[str, ...] = (), real_clock: bool = False) -> None:  # fmt: skip
        self.ffi = cffi.FFI()
        self.ffi.cdef(host.CDEF + "void *malloc(size_t); void free(void *);")
        self.path = library(program, roots, checks=checks, compiler=compiler, sanitize=sanitize)
        self.lib = self.ffi.dlopen(str(self.path))
        super().__init__(program, NativeBoard(self.ffi, self.lib, real_clock=real_clock))
        self.roots = set(roots)
        self._functions: dict[Function, Any] = {}

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
            self.ffi.cdef(f"void {name}(void *);")
            found = self._functions[function] = self.ffi.cast("void *", self.ffi.addressof(self.lib, name))
        return found

    def __call__(self, function: Function, *arguments: Any) -> Any:
        symbol = self.symbol(function)
        made, data = self.block(function, arguments)
        block = self.ffi.from_buffer("uint8_t[]", data)
        told = self.ffi.new("uint32_t[2]")
        why = self.lib.host_call(symbol, block, told)
        if why == 1:
            from synapticos.compiler.parse import short_path

            raise Trap("a check failed", short_path(self.short(told[0])), told[1])
        if why == 2:
            code = told[0]
            raise HostExit(code - ((code & 0x80000000) << 1))
        return self.results(made, data)

    def close(self) -> None:
        self.board.close()
