"""Core: single functions of a chip's program, called from Python.

    core = Core(elf)
    block = core.alloc(16)
    core.write(block, packed_arguments)
    ran = core.call("alloc_thunk", block)       # instructions
    core.read(block, 16)

The ELF is linked by `boards.bare.script()` with `boards.bare.SOURCES`. Each function gets one argument, the address of
a block; it has a fresh stack, which ends in unmapped memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unicorn import unicorn_const as const

from synapticos.boards import bare
from synapticos.boards.faults import Image, Place
from synapticos.emulator import cpu as unit
from synapticos.emulator.cpu import Cpu, Registers

SLICE = 100_000_000  # instructions between two looks for Ctrl-C: about a third of a second
GAP = 16  # bytes after each allocation that belong to nobody
_PAGE = 4096
BELOW = 128  # bytes under the stack pointer that an interrupt leaves alone: more than a core pushes
NO_END = 1 << 62
PROCESSOR, CHECK, LATE = 1, 2, 3  # FaultKind of kernel/job.py
CAUSES = {  # what a processor with an MPU would say, as bits of its CFSR
    "read of unmapped memory": 1 << 9, "write to unmapped memory": 1 << 9, "jump to unmapped memory": 1 << 8,
    "read of protected memory": 1 << 1, "write to read-only memory": 1 << 1, "jump to memory that holds no code": 1 << 0,
    "undefined instruction": 1 << 16, "division by zero": 1 << 25, "unaligned read": 1 << 24, "unaligned write": 1 << 24,
}  # fmt: skip


class Fault(Exception):
    """The program did what the processor does not allow. `address` is that of the access, None where there is none."""

    def __init__(self, kind: str, pc: int, address: int | None, place: Place) -> None:
        at = "" if address is None else f" at {address:#010x}"
        super().__init__(f"{kind}{at}, in {place}")
        self.kind, self.pc, self.address = kind, pc, address
        self.symbol, self.file, self.line = place.function, place.file, place.line


class Panic(Exception):
    """The program called syn_panic."""

    def __init__(self, file_id: int, line: int) -> None:
        super().__init__(f"panic: file {file_id} line {line}")
        self.file_id, self.line = file_id, line


class Exited(Exception):
    """The program called hal_exit."""

    def __init__(self, code: int) -> None:
        super().__init__(f"exit with code {code}")
        self.code = code


class Core:
    """A program in an emulated Cortex-M33, and memory that both sides use."""

    def __init__(self, elf: bytes | str | Path | Image, *, heap: int = bare.HEAP.size) -> None:
        self.image = elf if isinstance(elf, Image) else Image(elf)
        self.symbols: Mapping[str, int] = self.image.symbols
        self.cpu = Cpu()
        self.instructions = 0  # in all calls
        self.limit = 1 << 40  # instructions of one call
        self._ran = 0  # instructions of the call that runs
        code = self.cpu.map(bare.CODE.base, bare.CODE.size, unit.READ | unit.EXECUTE)
        self._ram = self.cpu.map(bare.RAM.base, bare.RAM.size)
        self._heap = self.cpu.map(bare.HEAP.base, (heap + _PAGE - 1) & -_PAGE)
        for segment in self.image.segments:
            if segment.data:
                self.cpu.write(segment.address, segment.data)
        self.cpu.trap_division(self.image.code)
        code.data[bare.RETURN - code.base :][:2] = b"\x00\xbe"
        self._initial = bytes(self._ram.data)
        self._next = self._heap.base
        self._free: dict[int, list[int]] = {}
        self._sizes: dict[int, int] = {}
        self._enter = Registers(self.cpu, (0, unit.SP, unit.LR, unit.XPSR))
        self._enter.value[1] = bare.RAM.base + bare.STACK
        self._enter.value[2] = bare.RETURN | 1
        self._enter.value[3] = unit.THUMB
        self._leave = Registers(self.cpu, (unit.PC,))
        self._panic = Registers(self.cpu, (0, 1))
        self._start = self.cpu.start
        self._held: list[tuple[Any, int, int, int]] = []  # calls begun and not ended

    def reset(self) -> None:
        """Give the program's variables their first values. What was allocated stays."""
        self._ram.data[:] = self._initial

    # Memory ----------------------------------------------------------------------------------------------------------

    def alloc(self, n: int, align: int = 8, fill: int = 0) -> int:
        """The address of `n` bytes, each `fill`; `free` takes them back."""
        size = (n + GAP + 15) & -16
        free = self._free.get(size)
        if free and free[-1] % align == 0:
            address = free.pop()
        else:
            address = (self._next + max(align, 16) - 1) & -max(align, 16)
            if address + size > self._heap.base + self._heap.size:
                raise MemoryError(f"{n} bytes for the emulated core: {self._heap.size} are all it has")
            self._next = address + size
        self._sizes[address] = size
        at = address - self._heap.base
        self._heap.data[at : at + n] = bytes((fill,)) * n
        return address

    def free(self, address: int) -> None:
        """Take back what `alloc` gave. Nothing is unmapped: a use afterwards is not noticed."""
        self._free.setdefault(size := self._sizes.pop(address), []).append(address)
        at = address - self._heap.base
        self._heap.data[at : at + size] = b"\xdd" * size

    def view(self, address: int, n: int) -> memoryview:
        """`n` bytes of the program's memory, shared: writing to it writes there."""
        data, at = self.cpu.find(address, n)
        return data[at : at + n]

    def read(self, address: int, n: int) -> bytes:
        return self.cpu.read(address, n)

    def write(self, address: int, data: bytes | bytearray | memoryview) -> None:
        self.cpu.write(address, data)

    def word(self, symbol: str) -> int:
        """The 32-bit variable of that name."""
        return int.from_bytes(self.cpu.read(self.symbols[symbol], 4), "little")

    def set_word(self, symbol: str, value: int) -> None:
        self.cpu.write(self.symbols[symbol], (value & 0xFFFFFFFF).to_bytes(4, "little"))

    # The board -------------------------------------------------------------------------------------------------------

    @property
    def ticks(self) -> int:
        """What hal_ticks answers. Time moves when this is set."""
        return self.word("bare_ticks")

    @ticks.setter
    def ticks(self, value: int) -> None:
        self.set_word("bare_ticks", value)

    def take_console(self) -> bytes:
        """The text that the program wrote since the last time."""
        base = self.symbols.get("bare_console")
        if base is None:
            return b""  # the linker dropped it: nothing writes
        used = self.word("bare_console_used")
        self.set_word("bare_console_used", 0)
        return self.cpu.read(base, min(used, self.image.sizes["bare_console"]))

    def set_argument(self, text: bytes) -> None:
        """What hal_argument answers: at most 256 bytes."""
        self.cpu.write(self.symbols["bare_argument"], text[:256])
        self.set_word("bare_argument_bytes", len(text[:256]))

    # Calls -----------------------------------------------------------------------------------------------------------

    def call(self, symbol: str | int, block: int = 0) -> int:
        """Call a function with a block's address: the instructions that it took, its return included.

        Raises Fault, Panic or Exited where it does not return; the program's memory is then as it was left.
        """
        enter = self._enter
        enter.value[0] = block
        enter.store()
        pc = self.symbols[symbol] if isinstance(symbol, str) else symbol
        error, self._ran = self._start(pc, SLICE)
        try:
            if error != unit.EXCEPTION or self._leave.load()[0] != bare.RETURN:
                self._go_on(error)
            self._ran -= 1  # the breakpoint is not the function's
        finally:
            self.instructions += self._ran
        return self._ran

    def begin(self, symbol: str | int, block: int, after: int) -> int | None:
        """Start a call and hold it after `after` instructions (at least 2, and to the end of an IT block): how many ran.

        Meanwhile other functions may be called, on the stack below, as an interrupt's would be; `resume` goes on. None
        if the function has returned before: then nothing is held.
        """
        enter = self._enter
        enter.value[0] = block
        enter.store()
        error, ran = self._start(self.symbols[symbol] if isinstance(symbol, str) else symbol, after)
        pc = self._leave.load()[0]
        if pc == bare.RETURN and error in (unit.OK, unit.EXCEPTION):
            return None
        if error != unit.OK or ran < after:
            self._ran = ran
            self._go_on(error)
            return None
        registers = Registers(self.cpu, (unit.SP,))
        self._held.append((self.cpu.uc.context_save(), pc, enter.value[1], ran))
        enter.value[1] = (registers.load()[0] - BELOW) & -8
        return ran

    def resume(self) -> int:
        """Let the call that `begin` holds go on to its end: the instructions that it took in all."""
        context, pc, stack, before = self._held.pop()
        self.cpu.uc.context_restore(context)
        self._enter.value[1] = stack
        error, self._ran = self._start(pc, SLICE)
        if error != unit.EXCEPTION or self._leave.load()[0] != bare.RETURN:
            self._go_on(error)
        return before + self._ran - 1

    def watch(self, *symbols: str) -> list[tuple[str, int]]:
        """From now on note each entry of these functions in the list that is returned: which, and after how many
        instructions of its call."""
        seen: list[tuple[str, int]] = []
        for name in symbols:
            at = self.symbols[name] & ~1

            def hook(uc: object, address: int, size: int, data: object, name: str = name) -> None:
                seen.append((name, self.cpu.ran))

            self.cpu.uc.hook_add(const.UC_HOOK_BLOCK, hook, begin=at, end=at)
        self.cpu.uc.ctl_flush_tb()
        return seen

    def _go_on(self, error: int) -> None:
        """The rest of a call that took more than a slice, or did not return."""
        last, end = 0, NO_END  # instructions before this slice, and at which a guarded call has used up its time
        slice_ = SLICE
        while True:
            pc = self._leave.load()[0]
            if error == unit.EXCEPTION and pc == bare.RETURN:
                return
            if error == unit.EXCEPTION and self._code(pc) == 0xBE03:
                end, pc = self._ran + self.word("bare_guard_limit_us") * 1000 // bare.INSTRUCTION_NS, pc + 2
            elif error == unit.OK and self._ran - last >= slice_:
                if self._ran >= end and self._guarded():
                    pc, end = self._drop(LATE, pc), NO_END
                elif self._ran >= self.limit:
                    raise self._fault(f"no end after {self._ran} instructions", pc, None)
            else:
                try:
                    self._broken(error, pc)
                except (Fault, Panic) as broken:
                    if not self._guarded():
                        raise
                    end = NO_END
                    if isinstance(broken, Panic):
                        pc = self._drop(CHECK, file=broken.file_id, line=broken.line)
                    else:
                        pc = self._drop(PROCESSOR, pc, CAUSES.get(broken.kind, 0), broken.address or 0)
            if not self._guarded() and self._ran >= end:
                end = NO_END  # it has returned in time
            last, slice_ = self._ran, max(min(SLICE, end - self._ran), 2)
            error, more = self._start(pc, slice_)
            self._ran += more

    def _broken(self, error: int, pc: int) -> None:
        """Raise what stopped a run that is not at its end."""
        if error == unit.OK:
            raise self._fault("wait for an interrupt that cannot come", pc, None)
        if error == unit.EXCEPTION:
            code = self._code(pc)
            if code == 0xBE01:
                raise Panic(*self._panic.load())
            if code == 0xBE02:
                value = self._panic.load()[0]
                raise Exited(value - ((value & 0x80000000) << 1))
            raise self._fault("breakpoint" if code >> 8 == 0xBE else "exception", pc, None)
        if error == unit.UNDEFINED:
            raise self._fault("division by zero" if pc in self.cpu.divisions else unit.KINDS[error], pc, None)
        raise self._fault(unit.KINDS.get(error, f"unicorn error {error}"), pc, self.cpu.access[0])

    # Guarded calls (hal_bare.c) --------------------------------------------------------------------------------------

    def _guarded(self) -> bool:
        return "bare_guard_sp" in self.symbols and self.word("bare_guard_sp") != 0

    def _drop(self, kind: int, pc: int = 0, causes: int = 0, address: int = 0, file: int = 0, line: int = 0) -> int:
        """Forget the guarded call that runs: where to go on. `bare_fault` says why."""
        caller = self._enter.load()[2]
        words = (kind, pc, caller if pc else 0, causes, address, file, line)
        self.cpu.write(self.symbols["bare_fault"], b"".join((w & 0xFFFFFFFF).to_bytes(4, "little") for w in words))
        enter = self._enter
        enter.value[0], enter.value[1], enter.value[3] = kind, self.word("bare_guard_sp"), unit.THUMB
        enter.store()
        enter.value[1], enter.value[2] = bare.RAM.base + bare.STACK, bare.RETURN | 1  # as a call wants them
        return self.symbols["bare_guard_drop"]

    def _code(self, pc: int) -> int:
        try:
            return int.from_bytes(self.cpu.read(pc, 2), "little")
        except IndexError:
            return 0

    def _fault(self, kind: str, pc: int, address: int | None) -> Fault:
        return Fault(kind, pc, address, self.image.place(pc))
