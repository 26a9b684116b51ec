"""The cortex-m engine: the kernel as Thumb-2 for a Cortex-M33, function by function in the in-process emulator."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from synapticos import toolchain
from synapticos.boards import bare
from synapticos.boards.host import HostExit
from synapticos.compiler.c_files import CProgram
from synapticos.emulator import Core, Exited, Fault, Panic
from synapticos.lang.trap import Trap
from synapticos.lang.words import Function

from .artifact import built, light_program
from .base import Engine

if TYPE_CHECKING:
    from .build import Build


def image(build: Build, *, checks: bool, compiler: str | None, flags: tuple[str, ...] = ("-O2", "-g")) -> Path:
    """The folder with the ELF of a build's functions, from the cache or compiled."""
    chain = toolchain.find("cortex-m33", compiler)
    script = bare.script()

    def make(folder: Path, made: CProgram) -> None:
        (folder / "image.ld").write_text(script)
        sources = [*(folder / u for u in made.units), *bare.SOURCES]
        own = [*flags, f"-I{folder}", f"-Wa,-I{folder}"]
        objects = chain.compile(sources, folder / "objects", own, per_file=bare.PER_FILE)
        chain.link(objects, folder / "image.elf", script=folder / "image.ld", keep=[t.symbol for t in made.thunks.values()])

    parts = (chain.name, chain.version, flags, script, list(bare.SOURCES))
    return built("cortexm", build, lambda: build.program(4), parts, checks=checks, make=make)


class CoreBoard:
    """The board of a bare core: time moves when it is moved."""

    def __init__(self, core: Core) -> None:
        self.core = core

    @property
    def now(self) -> int:
        return self.core.ticks

    @now.setter
    def now(self, ticks: int) -> None:
        self.core.ticks = ticks & 0xFFFFFFFF

    number = 0

    @property
    def rate(self) -> int:
        """Ticks a second."""
        return self.core.word("bare_tick_rate")

    @rate.setter
    def rate(self, rate: int) -> None:
        self.core.set_word("bare_tick_rate", rate)

    def advance(self, ticks: int) -> None:
        self.now = self.now + ticks

    def set_npu(self, ends: int | None = 0) -> None:
        """How the accelerator's work ends from now on: a Status number, or never."""
        at = self.core.symbols.get("bare_npu")
        if at is not None:  # the linker dropped it: nothing asks
            self.core.write(at + 16, int(ends is None).to_bytes(4, "little") + (ends or 0).to_bytes(4, "little", signed=True))

    def take_console(self) -> bytes:
        return self.core.take_console()

    def set_argument(self, text: bytes) -> None:
        self.core.set_argument(text)


class CortexMEngine(Engine):
    name = "cortex-m"
    pointer = 4

    def __init__(self, build: Build, *, checks: bool = False, compiler: str | None = None) -> None:
        folder = image(build, checks=checks, compiler=compiler)
        self.core = Core(folder / "image.elf")
        self.checks = checks
        self._blocks: dict[int, Any] = {}  # the arguments of what interrupts call
        super().__init__(light_program(build, folder, 4), CoreBoard(self.core))
        self.roots = set(build.roots)
        self.instructions = 0  # of the last call, its thunk included
        self._block = self.core.alloc(4096, 16)

    def allocate(self, size: int, align: int, name: str) -> tuple[int, Any]:
        address = self.core.alloc(size, align)
        return address, _Cell(self.core, address)

    def share(self, buffer: Any, name: str = "buffer") -> Any:
        """An array of u8 with a copy of the bytes: the emulated core has memory of its own."""
        from synapticos.lang import u8

        return self.array(u8, bytes(memoryview(buffer).cast("B")), name)

    def read(self, address: int, n: int) -> bytes:
        return self.core.read(address, n)

    def write(self, address: int, data: bytes) -> None:
        self.core.write(address, data)

    def __call__(self, function: Function, *arguments: Any) -> Any:
        if function not in self.roots:
            raise KeyError(f"{function.__name__} is not a root of this build: name it in Build(roots=[...])")
        made, data = self.block(function, arguments)
        self.core.write(self._block, bytes(data))
        try:
            self.instructions = self.core.call(made.symbol, self._block)
        except Panic as panic:
            raise Trap("a check failed", self.file(panic.file_id), panic.line) from None
        except Exited as exited:
            raise HostExit(exited.code) from None
        except Fault as fault:
            raise Trap(str(fault), fault.file or "", fault.line or 0) from fault
        return self.results(made, self.core.read(self._block, made.size))


    def interrupt(self, line: int, function: Function, *arguments: Any) -> None:
        made, data = self.block(function, arguments)
        block, cell = self.allocate(made.size, 16, "interrupt")
        self.core.write(block, bytes(data))
        self._blocks[line] = cell
        entry = (0).to_bytes(8, "little") + (self.core.symbols[made.symbol] | 1).to_bytes(4, "little") + block.to_bytes(4, "little")
        self.core.write(self.core.symbols["bare_lines"] + 16 * line, entry)


class _Cell:
    """Memory of the core, given back with the last object on it."""

    def __init__(self, core: Core, address: int) -> None:
        self.core, self.address = core, address

    def __del__(self) -> None:
        try:
            self.core.free(self.address)
        except Exception:
            pass
