"""Machine: a board that boots a firmware, in this process.

    result = Machine(elf, boards.find("mps2-an521"), files={"in.bin": data}).run()
    result.code, result.text, result.files["out.bin"], result.instructions

The same ELF runs in QEMU and prints the same. The engine (unicorn) has no interrupt controller, no exceptions and no
timers: they are here, between its runs. Time is virtual: an instruction lasts `board.instruction_ns` nanoseconds, as in
QEMU with `-icount shift=5`, and a sleep jumps to the next event.

It is stricter than QEMU on the LM3S6965, where QEMU lets accesses to unmapped addresses and writes to flash pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from unicorn import arm_const as arm
from unicorn import unicorn_const as const

from synapticos.boards.board import Board
from synapticos.boards.faults import Image
from synapticos.boards.result import Result
from synapticos.emulator import cpu as unit
from synapticos.emulator.coprocessor import Coprocessor
from synapticos.emulator.cpu import UNDEFINED_32, Cpu, Registers
from synapticos.emulator.devices import NEVER, Accelerator, CmsdkTimer, SystemControl, SysTick, Uart
from synapticos.emulator.fence import Fence
from synapticos.emulator.semihost import Exit, Semihost

SLICE = 10_000_000  # instructions between two looks for Ctrl-C: some 30 ms
PATIENCE = 500  # slices of two instructions, while an exception waits to be let in, before they get longer

# Numbers that the engine's interrupt hook gives.
SVC, BREAKPOINT, RETURN, NOCP, INVALID_STATE, STACK_LIMIT = 2, 7, 8, 17, 18, 19

HARD_FAULT, MEMORY_FAULT, BUS_FAULT, USAGE_FAULT, SVCALL = 3, 4, 5, 6, 11
VTOR, CFSR, HFSR, MMFAR, BFAR = 0xD08, 0xD28, 0xD2C, 0xD34, 0xD38
FORCED = 1 << 30
FENCED = ("read of protected memory", "write to read-only memory")


class Machine:
    """One board with one firmware, from reset to its end."""

    def __init__(
        self,
        elf: bytes | str | Path | Image,
        board: Board,
        *,
        argument: str = "",
        files: Mapping[str, bytes] | None = None,
        folder: Path | None = None,
        on_text: Callable[[str], None] | None = None,
    ) -> None:
        self.board = board
        self.image = elf if isinstance(elf, Image) else Image(elf)
        self.cpu = Cpu()
        self.text = bytearray()
        self.instructions = 0
        self.slice = SLICE  # a user of the machine may set it
        self._slept_ns = 0
        self._shown = 0
        self._on_text = on_text
        self._waited = 0
        self._hook: int | None = None
        self._new_hooks: list[tuple[int, Callable[[], None]]] = []  # added between runs: they need new translations
        self._result: Result | None = None
        self._v8 = board.cpu == "cortex-m33"
        # MSPLIM, which the engine obeys and does not tell.
        self._stack_limit = self.image.symbols.get("board_stack_bottom", 0) if self._v8 else 0

        tick_ns = 1_000_000_000 // board.tick_rate
        identity = 0x410FD213 if self._v8 else 0x410FC231
        self.control = SystemControl(SysTick(self.now, tick_ns), self.cpu.stop, identity, self._v8)
        self._fence = Fence(self.cpu, self.control)
        self._fenced_at = 0  # instructions when it last changed
        self._touch: tuple[int, int] | None = None  # code without privilege asks a device of the core: pc, address
        self._timer = CmsdkTimer(self.now, tick_ns, lambda: self.control.pending.add(16 + 3))
        self.npu = Accelerator(self.now, tick_ns, self._coprocess, self._npu_interrupt, self.cpu.stop)
        self._coprocessor: Coprocessor | None = None
        self._map()
        self.semihost = Semihost(
            self.cpu.read, self.cpu.write, self.text.append, argument=argument, files=files, folder=folder
        )
        for segment in self.image.segments:
            if segment.data:
                self.cpu.write(segment.load, segment.data)
        self.cpu.trap_division(self.image.code)
        self._privilege = _traps(self.cpu, self.image.code)
        self.cpu.uc.hook_add(const.UC_HOOK_INTR, self._interrupt)

        self._all = Registers(self.cpu, range(17))
        uc = self.cpu.uc
        vectors = self.cpu.read(board.flash.base, 8)
        uc.reg_write(arm.UC_ARM_REG_SP, int.from_bytes(vectors[:4], "little"))
        self._pc = int.from_bytes(vectors[4:], "little") & ~1

    def _map(self) -> None:
        board, cpu = self.board, self.cpu
        cpu.map(board.flash.base, board.flash.size, unit.READ | unit.EXECUTE)
        for region in (board.ram, *board.more_ram):
            cpu.map(region.base, region.size)
        self._device(0xE000E000, self.control)
        if board.uart_kind != "none":
            self._device(board.uart, Uart(board.uart_kind, self.text.append))
        if board.timer:
            self._device(board.timer, self._timer)
        if board.npu:
            self._device(board.npu, self.npu)

    def _device(self, base: int, device: Uart | CmsdkTimer | SystemControl | Accelerator) -> None:
        """Bytes and halfwords are parts of the word that they lie in."""

        mine = device is self.control  # which answers to privileged code only

        def read(uc: object, offset: int, size: int, data: object) -> int:
            if mine and not self._privileged():
                self._touched(base + offset)
                return 0
            return device.read(offset & ~3) >> (offset & 3) * 8 & (1 << size * 8) - 1

        def write(uc: object, offset: int, size: int, value: int, data: object) -> None:
            shift = (offset & 3) * 8
            if mine and not self._privileged():
                self._touched(base + offset)
                return
            if size < 4:
                mask = ((1 << size * 8) - 1) << shift
                value = device.read(offset & ~3) & ~mask | value << shift & mask
            device.write(offset & ~3, value)

        self.cpu.uc.mmio_map(base, 0x1000, read, None, write, None)

    def _npu_interrupt(self, on: bool) -> None:
        (self.control.pending.add if on else self.control.pending.discard)(16)
        if on and self._running:
            self.cpu.stop()  # it may come in at once

    def _coprocess(self, function: int, block: int) -> int:
        if self._coprocessor is None:
            self._coprocessor = Coprocessor(self.cpu)
        return self._coprocessor.run(function, block)

    # Time and text ---------------------------------------------------------------------------------------------------

    _running = False

    def now(self) -> int:
        """Virtual nanoseconds since reset."""
        return self.executed() * self.board.instruction_ns + self._slept_ns

    def _show(self) -> None:
        if self._on_text is not None and len(self.text) > self._shown:
            self._on_text(self.text[self._shown :].decode(errors="replace"))
            self._shown = len(self.text)

    # Running ---------------------------------------------------------------------------------------------------------

    def run(self, limit: int = 1 << 40) -> Result:
        """Run until the firmware ends, or `limit` more instructions have run.

        After a limit `run` may be called again. Ctrl-C ends it within a slice, and then it may not.
        """
        stop_at = self.instructions + limit
        while self._result is None:
            if self.instructions >= stop_at:
                return self._finish(None, f"no end after {self.instructions} instructions", final=False)
            self._step(stop_at - self.instructions)
            self._show()
        return self._result

    def _finish(self, code: int | None, reason: str = "", final: bool = True) -> Result:
        self._show()
        if final:
            self.semihost.close()
        text = self.text.decode(errors="replace").replace("\r\n", "\n")
        files = dict(self.semihost.files or {})
        result = Result(code, text, files, reason, self.instructions, self.now())
        if final:
            self._result = result
        return result

    def _step(self, most: int) -> None:
        """One slice: what is due, an exception if one may come in, then instructions until something happens."""
        control = self.control
        control.attend()
        self._timer.attend()
        self.npu.attend()
        waits = self._take()
        due = min(control.systick.due(), self._timer.due(), self.npu.due())
        slice_ = self.slice
        if waits:
            # Nothing tells when PRIMASK or a return lets it in: look after every other instruction.
            self._waited += 1
            slice_ = 2 if self._waited < PATIENCE else 1000
        else:
            self._waited = 0
        if due < NEVER:
            ns = self.board.instruction_ns
            slice_ = min(slice_, max((due - self.now() + ns - 1) // ns, 2))
        slice_ = max(min(slice_, most), 2)

        self._hook = None
        self._running = True
        try:
            error, ran = self.cpu.start(self._pc, slice_)
        finally:
            self._running = False
        self.instructions += ran
        self._raise_from_hook()
        while self._new_hooks:
            self._hook_block(*self._new_hooks.pop())
        self._pc = self.cpu.place()
        if self._touch is not None:
            self._refuse()
        elif self._hook is not None:
            self._trapped(self._hook)
        elif error != unit.OK:
            self.instructions -= error != unit.UNDEFINED  # it was counted and did not happen
            self._failed(error)
        elif ran < slice_ and not self.cpu.was_stopped:
            self._sleep()

    def _raise_from_hook(self) -> None:
        """Python code that the engine calls cannot raise through it: the wrapper keeps what it would have raised."""
        error = getattr(self.cpu.uc, "_hook_exception", None)
        if error is not None:
            self.cpu.uc._hook_exception = None
            raise error

    def _interrupt(self, uc: object, number: int, data: object) -> None:
        self._hook = number
        self.cpu.leave()

    def _sleep(self) -> None:
        """A wait for an interrupt: go on at once if one is pending, masked or not, else at the next event."""
        self.control.attend()
        self._timer.attend()
        self.npu.attend(True)
        if any(n < 16 or n in self.control.enabled for n in self.control.pending):
            return
        due = min(self.control.systick.due(), self._timer.due(), self.npu.due(True))
        if due == NEVER:
            self._finish(None, "sleeps, and no interrupt can come")
            return
        self._slept_ns += max(due - self.now(), 0)
        self.npu.attend(True)

    def _trapped(self, number: int) -> None:
        """The engine raised an exception of its own."""
        if number == BREAKPOINT:
            if self.cpu.read(self._pc, 2) == b"\xab\xbe":
                self._semihost()
            else:
                self._fault(HARD_FAULT, 0)
        elif number == RETURN:
            self._return()
        elif number == SVC:
            self._enter(SVCALL)
        elif number == STACK_LIMIT:
            self._fault(USAGE_FAULT, 1 << 20)
        elif number == INVALID_STATE:
            self._fault(USAGE_FAULT, 1 << 17)
        elif number == NOCP:
            self._fault(USAGE_FAULT, 1 << 19)
        else:
            self._fault(USAGE_FAULT, 1 << 16)

    def _semihost(self) -> None:
        uc = self.cpu.uc
        try:
            r0 = self.semihost.call(uc.reg_read(arm.UC_ARM_REG_R0), uc.reg_read(arm.UC_ARM_REG_R1))
        except Exit as end:
            self._finish(end.code)
            return
        except IndexError as wrong:
            self._finish(None, f"semihosting: {wrong}")
            return
        uc.reg_write(arm.UC_ARM_REG_R0, r0)
        self._pc += 2

    # Counting --------------------------------------------------------------------------------------------------------

    def count(self, *symbols: str) -> dict[str, list[int]]:
        """From now on, count the instructions of each call of these functions, what they call included.

        The result has a list for each, which grows as the firmware runs. Raises KeyError if a function is not in the
        ELF: it may have been inlined.
        """
        lists: dict[str, list[int]] = {name: [] for name in symbols}
        for name in symbols:
            self._hook_block(self.image.symbols[name] & ~1, self._call_of(lists[name]))
        return lists

    def _hook_block(self, address: int, action: Callable[[], None]) -> None:
        def hook(uc: object, at: int, size: int, data: object) -> None:
            action()

        self.cpu.uc.hook_add(const.UC_HOOK_BLOCK, hook, begin=address, end=address)
        self.cpu.uc.ctl_flush_tb()

    def _call_of(self, costs: list[int]) -> Callable[[], None]:
        """What to do when a function begins: note when, and see that its return is noticed."""
        returns: set[int] = set()
        registers = Registers(self.cpu, (unit.SP, unit.LR))
        began: list[tuple[int, int]] = []  # stack pointer, instructions

        def end() -> None:
            sp = registers.load()[0]
            if began and began[-1][0] == sp:
                costs.append(self.executed() - began.pop()[1])

        def begin() -> None:
            sp, lr = registers.load()
            place = (sp, self.executed())
            if began and began[-1] == place:
                return  # the same call, seen again because a slice ended on its first instruction
            began.append(place)
            if lr not in returns:
                returns.add(lr)
                self._new_hooks.append((lr & ~1, end))
                self.cpu.stop()

        return begin

    def executed(self) -> int:
        """Instructions since reset, right also inside a hook."""
        return self.instructions + (self.cpu.ran if self._running else 0)

    # Exceptions ------------------------------------------------------------------------------------------------------

    def _failed(self, error: int) -> None:
        """An access or an instruction failed: which fault, with which bits."""
        address = self.cpu.access[0]
        kind = unit.KINDS.get(error, "")
        if kind in FENCED and self._privileged() and self._fence.lift(address):
            return  # it is done again
        if not self._all.load()[unit.XPSR] & unit.THUMB:
            self._fault(USAGE_FAULT, 1 << 17)
        elif error == unit.UNDEFINED:
            if self._pc in self._privilege:
                self._set_control(self._privilege[self._pc])
            elif self._pc not in self.cpu.divisions:
                self._fault(USAGE_FAULT, 1 << 16)
            elif self.control.memory.get(0xD14, 0) & 16:
                self._fault(USAGE_FAULT, 1 << 25)
            else:
                self.cpu.divisions[self._pc].give(0)
                self._pc += 4
                self.instructions += 1
        elif kind.startswith("jump"):
            if self.control.allows(self._pc, False, True, self._privileged()):
                self._fault(BUS_FAULT, 1 << 8)
            else:
                self._fault(MEMORY_FAULT, 1)
        elif kind.startswith("unaligned"):
            self._fault(USAGE_FAULT, 1 << 24)
        elif self.control.allows(address, "write" in kind, False, self._privileged()):
            self._fault(BUS_FAULT, 0x8200, BFAR, address)
        else:
            self._fault(MEMORY_FAULT, 0x82, MMFAR, address)

    # Privilege and memory protection ---------------------------------------------------------------------------------

    def _privileged(self) -> bool:
        return bool(self.control.active) or not self.cpu.uc.reg_read(arm.UC_ARM_REG_CONTROL) & 1

    def _set_control(self, register: int) -> None:
        """`msr control, register`, which the engine would not tell of."""
        uc = self.cpu.uc
        value, was = self._all.load()[register], uc.reg_read(arm.UC_ARM_REG_CONTROL)
        if self._privileged():
            uc.reg_write(arm.UC_ARM_REG_CONTROL, was & ~1 | value & 1)
        self._pc += 4
        self.instructions += 1
        self._all.load()
        self._all.value[unit.PC] = self._pc
        self._all.store()
        self._fence_off(self._privileged())

    def _fence_off(self, privileged: bool) -> None:
        self._fence.set(privileged, self._pc)
        self._fenced_at = self.instructions

    def _touched(self, address: int) -> None:
        """Inside a device's read or write: code without privilege reaches for what is not its own."""
        if self._touch is None:
            self._touch = (self.cpu.place(), address)
        self.cpu.stop()

    def _refuse(self) -> None:
        assert self._touch is not None
        (self._pc, address), self._touch = self._touch, None
        self._fault(BUS_FAULT, 0x8200, BFAR, address)

    def _trespassed(self) -> bool:
        """Before an exception comes in: if the code that it interrupts has written what is closed to it, that comes first."""
        found = None if self._privileged() else self._fence.broken(self.instructions - self._fenced_at)
        if found is None:
            return False
        self._pc, address = found
        self._fence_off(False)
        self._fault(MEMORY_FAULT, 0x82, MMFAR, address)
        return True

    def _fault(self, number: int, bits: int, register: int = 0, address: int = 0) -> None:
        memory = self.control.memory
        memory[CFSR] = memory.get(CFSR, 0) | bits
        if register:
            memory[register] = address
        enabled = number != HARD_FAULT and memory.get(0xD24, 0) >> (number + 12) & 1
        if not enabled or self.control.priority(number) >= self._priority():
            memory[HFSR] = memory.get(HFSR, 0) | FORCED
            number = HARD_FAULT
        if number == HARD_FAULT and self._priority() <= -1:
            place = self.image.place(self._pc)
            self._finish(None, f"lockup: a fault in the fault handler, in {place} (cfsr {memory[CFSR]:#010x})")
            return
        self._enter(number)

    def _priority(self) -> int:
        """Of what runs: an exception comes in if its own is lower."""
        uc = self.cpu.uc
        now = min((self.control.priority(n) for n in self.control.active), default=256)
        if uc.reg_read(arm.UC_ARM_REG_FAULTMASK) & 1:
            now = min(now, -1)
        if uc.reg_read(arm.UC_ARM_REG_PRIMASK) & 1:
            now = min(now, 0)
        base = uc.reg_read(arm.UC_ARM_REG_BASEPRI) & 0xFF
        return min(now, base) if base else now

    def _take(self) -> bool:
        """Enter the most urgent pending exception, if what runs lets it: does one still wait?"""
        control = self.control
        ready = sorted((control.priority(n), n) for n in control.pending if n < 16 or n in control.enabled)
        if ready and ready[0][0] < self._priority():
            number = ready.pop(0)[1]
            control.pending.discard(number)
            self._enter(number)
        return bool(ready)

    def _enter(self, number: int) -> None:
        """Push the frame and go to the handler. A frame that does not fit is not pushed; the stack is then at its end."""
        if self._trespassed():
            if number == self.control.SYSTICK or number > 15:
                self.control.pending.add(number)
            return
        uc, control = self.cpu.uc, self.control
        r = self._all.load()
        sp, xpsr = r[unit.SP], r[unit.XPSR]
        handler = bool(control.active)
        floats = bool(uc.reg_read(arm.UC_ARM_REG_CONTROL) & 4)
        size = 104 if floats else 32
        odd = sp & 4
        at = sp - odd - size
        limit = self._stack_limit
        pushed = xpsr & ~0x1FF | (control.active[-1] if handler else 0) | odd << 7
        if floats and self._v8:
            pushed |= 1 << 20  # secure floats
        words = [r[0], r[1], r[2], r[3], r[12], r[unit.LR], self._pc, pushed]
        if at < limit:
            control.memory[CFSR] = control.memory.get(CFSR, 0) | 1 << 20
            at = limit
        elif not control.allows(at, True, False, self._privileged()):
            control.memory[CFSR] = control.memory.get(CFSR, 0) | 1 << 4
        else:
            try:
                self.cpu.write(at, b"".join(w.to_bytes(4, "little") for w in words))
                if floats:
                    saved = [uc.reg_read(arm.UC_ARM_REG_S0 + i) for i in range(16)] + [
                        uc.reg_read(arm.UC_ARM_REG_FPSCR)
                    ]
                    self.cpu.write(at + 32, b"".join((w & 0xFFFFFFFF).to_bytes(4, "little") for w in saved))
            except IndexError:
                control.memory[CFSR] = control.memory.get(CFSR, 0) | 1 << 12
        if floats:
            uc.reg_write(arm.UC_ARM_REG_CONTROL, uc.reg_read(arm.UC_ARM_REG_CONTROL) & ~4)
        control.active.append(number)
        self._fence_off(True)
        r[unit.SP] = at
        r[unit.LR] = 0xFFFFFFF1 if handler else 0xFFFFFFF9
        if floats:
            r[unit.LR] &= ~0x10
        table = control.memory.get(VTOR, self.board.flash.base)
        vector = int.from_bytes(self.cpu.read(table + 4 * number, 4), "little")
        r[unit.PC] = self._pc = vector & ~1
        r[unit.XPSR] = unit.THUMB | number
        self._all.store()

    def _return(self) -> None:
        """Pop the frame that `_enter` pushed."""
        uc, control = self.cpu.uc, self.control
        kind = self._pc
        if not control.active:
            self._fault(USAGE_FAULT, 1 << 18)
            return
        control.active.pop()
        r = self._all.load()
        at = r[unit.SP]
        floats = not kind & 0x10
        words = [int.from_bytes(self.cpu.read(at + 4 * i, 4), "little") for i in range(8)]
        if floats:
            for i in range(16):
                uc.reg_write(arm.UC_ARM_REG_S0 + i, int.from_bytes(self.cpu.read(at + 32 + 4 * i, 4), "little"))
            uc.reg_write(arm.UC_ARM_REG_FPSCR, int.from_bytes(self.cpu.read(at + 96, 4), "little"))
        r[0], r[1], r[2], r[3], r[12], r[unit.LR], self._pc, xpsr = words
        r[unit.SP] = at + (104 if floats else 32) + (xpsr >> 7 & 4)
        r[unit.PC] = self._pc
        r[unit.XPSR] = xpsr & ~(1 << 9 | 1 << 20)
        self._all.store()
        if floats:
            uc.reg_write(arm.UC_ARM_REG_CONTROL, uc.reg_read(arm.UC_ARM_REG_CONTROL) | 4)
        self._fence_off(self._privileged())


def _traps(cpu: Cpu, code: list[tuple[int, int]]) -> dict[int, int]:
    """Make each `msr control, register` an instruction that stops the engine: address to register."""
    out: dict[int, int] = {}
    for start, end in code:
        data, offset = cpu.find(start, end - start)
        at = offset
        while at + 4 <= offset + end - start:
            first = data[at] | data[at + 1] << 8
            if first & 0xFFF0 == 0xF380 and data[at + 2 : at + 4] == b"\x14\x88":
                out[start + at - offset] = first & 15
                data[at : at + 4] = UNDEFINED_32
            at += 2 if first < 0xE800 else 4
    return out
