"""Cpu: one Cortex-M in unicorn, driven with as little Python as a run allows.

What the wheel's own wrapper costs for one start (12 us) is most of a short call, so the three functions that matter
are called directly. Three things are added that the engine lacks:

* **exact instruction counts.** A run with a limit counts in a field of the engine's own struct. Where that field lies
  is found at the first start, by a limit that nothing else holds.
* **division by zero.** The engine answers 0; silicon with CCR.DIV_0_TRP faults. Each `udiv` and `sdiv` of a program is
  replaced, in the emulated flash, by an undefined instruction of the same length, and done here. (A program that reads
  its own code as data sees that.)
* **memory shared with Python.** Regions lie over anonymous maps, read and written without a call.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Sequence
from typing import Any, cast

import unicorn
from unicorn import arm_const as arm
from unicorn import unicorn_const as const
from unicorn.unicorn_py3.unicorn import uclib

READ, WRITE, EXECUTE = const.UC_PROT_READ, const.UC_PROT_WRITE, const.UC_PROT_EXEC

REGISTERS = (
    *(getattr(arm, f"UC_ARM_REG_R{i}") for i in range(13)),
    arm.UC_ARM_REG_SP,
    arm.UC_ARM_REG_LR,
    arm.UC_ARM_REG_PC,
    arm.UC_ARM_REG_XPSR,
)
SP, LR, PC, XPSR = 13, 14, 15, 16  # places in REGISTERS
THUMB = 1 << 24  # of xPSR
IT = 0x0600FC00  # of xPSR: the state of an IT block

# Why a run stopped: unicorn's numbers, by the names that a person would use.
OK = const.UC_ERR_OK
EXCEPTION = const.UC_ERR_EXCEPTION
UNDEFINED = const.UC_ERR_INSN_INVALID
KINDS = {
    const.UC_ERR_READ_UNMAPPED: "read of unmapped memory",
    const.UC_ERR_WRITE_UNMAPPED: "write to unmapped memory",
    const.UC_ERR_FETCH_UNMAPPED: "jump to unmapped memory",
    const.UC_ERR_READ_PROT: "read of protected memory",
    const.UC_ERR_WRITE_PROT: "write to read-only memory",
    const.UC_ERR_FETCH_PROT: "jump to memory that holds no code",
    const.UC_ERR_READ_UNALIGNED: "unaligned read",
    const.UC_ERR_WRITE_UNALIGNED: "unaligned write",
    const.UC_ERR_FETCH_UNALIGNED: "unaligned jump",
    const.UC_ERR_INSN_INVALID: "undefined instruction",
}
TRANSLATIONS = 32 << 20  # bytes for translated code: the engine's own choice is a gigabyte of address space
NO_LIMIT = 1 << 62
_NOWHERE = 0xFFFFFFFE  # an address that no run ends at
UNDEFINED_32 = b"\xf0\xf7\x00\xa0"  # udf.w #0

_start, _stop = uclib.uc_emu_start, uclib.uc_emu_stop
_read_batch, _write_batch = uclib.uc_reg_read_batch, uclib.uc_reg_write_batch


class Registers:
    """Some of the registers, read or written together: one crossing into the engine for all of them."""

    def __init__(self, cpu: Cpu, places: Sequence[int]) -> None:
        n = len(places)
        self._engine, self._n = cpu.engine, n
        self._ids = (ctypes.c_int * n)(*(REGISTERS[p] for p in places))
        self.value = (ctypes.c_uint32 * n)()
        base = ctypes.addressof(self.value)
        self._pointers = (ctypes.c_void_p * n)(*(base + 4 * i for i in range(n)))

    def load(self) -> ctypes.Array[ctypes.c_uint32]:
        _read_batch(self._engine, self._ids, self._pointers, self._n)
        return self.value

    def store(self) -> None:
        _write_batch(self._engine, self._ids, self._pointers, self._n)


class Region:
    """Mapped memory. `data` is its bytes, shared with the running program."""

    def __init__(self, base: int, size: int, access: int, backing: Region | None = None) -> None:
        self.base, self.size, self.access = base, size, access
        self._map: mmap.mmap = backing._map if backing is not None else mmap.mmap(-1, size)
        self.data = memoryview(self._map)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self._map))


class Division:
    """One `udiv` or `sdiv` of the program: its registers, and a way to do it."""

    def __init__(self, cpu: Cpu, code: bytes) -> None:
        first, second = int.from_bytes(code[:2], "little"), int.from_bytes(code[2:], "little")
        self.code = code
        self.signed = first & 0x20 == 0
        self._operands = Registers(cpu, (first & 15, second & 15))
        self._result = Registers(cpu, (second >> 8 & 15,))

    def give(self, value: int) -> None:
        """Put a result into its register."""
        self._result.value[0] = value & 0xFFFFFFFF
        self._result.store()

    def run(self) -> bool:
        """Divide; False, and nothing done, if the divisor is 0."""
        n, d = self._operands.load()
        if d == 0:
            return False
        if self.signed:
            n, d = n - ((n & 0x80000000) << 1), d - ((d & 0x80000000) << 1)
            q = abs(n) // abs(d)
            self.give(q if (n < 0) == (d < 0) else -q)
        else:
            self.give(n // d)
        return True


class Cpu:
    """A Cortex-M33 (a Cortex-M3 runs on it too: it is a subset) with nothing mapped."""

    def __init__(self) -> None:
        self.uc = _engine()
        self.engine: ctypes.c_void_p = self.uc._uch
        self.regions: list[Region] = []
        self.divisions: dict[int, Division] = {}
        self.access = (0, 0)  # address and size of the last access that failed
        counter = _counter_of(self.engine)
        self._counter = ctypes.c_uint64.from_address(counter)
        self._limit = ctypes.c_uint64.from_address(counter + 8)
        self.was_stopped = False  # the last run, by a hook
        self._before = 0  # instructions before the last division
        self._place = Registers(self, (PC,))
        self._state = Registers(self, (PC, XPSR))
        self.uc.hook_add(const.UC_HOOK_MEM_INVALID, self._invalid)

    def _invalid(self, uc: object, access: int, address: int, size: int, value: int, data: object) -> bool:
        self.access = (address, size)
        return False

    def map(self, base: int, size: int, access: int = READ | WRITE, backing: Region | None = None) -> Region:
        """Map memory, zeroed or an alias of `backing`; base and size are multiples of 4096."""
        region = Region(base, size, access, backing)
        self.uc.mem_map_ptr(base, size, access, region.address)
        self.regions.append(region)
        return region

    def find(self, address: int, n: int) -> tuple[memoryview, int]:
        """The bytes of the region that holds `n` bytes at `address`, and where in it they start."""
        for region in self.regions:
            at = address - region.base
            if 0 <= at <= region.size - n:
                return region.data, at
        raise IndexError(f"{address:#010x}: {n} bytes are not in the emulated memory")

    def read(self, address: int, n: int) -> bytes:
        data, at = self.find(address, n)
        return bytes(data[at : at + n])

    def write(self, address: int, content: bytes | bytearray | memoryview) -> None:
        data, at = self.find(address, len(content))
        data[at : at + len(content)] = content

    def trap_division(self, code: Sequence[tuple[int, int]]) -> None:
        """Make each division in these ranges of Thumb code (start, end; no data between) fault on a zero divisor."""
        for start, end in code:
            data, offset = self.find(start, end - start)
            at = offset
            while at + 4 <= offset + end - start:
                first = data[at] | data[at + 1] << 8
                if first < 0xE800:
                    at += 2
                    continue
                if first & 0xFFD0 == 0xFB90 and data[at + 3] & 0xF0 == 0xF0 and data[at + 2] & 0xF0 == 0xF0:
                    word = bytes(data[at : at + 4])
                    self.divisions[start + at - offset] = Division(self, word)
                    data[at : at + 4] = UNDEFINED_32
                at += 4

    def start(self, pc: int, count: int = NO_LIMIT) -> tuple[int, int]:
        """Run about `count` (at least 2) instructions from `pc`: why it stopped, and how many ran, exactly.

        OK with fewer than `count` is a wait for an interrupt. A limit never stops inside an IT block, so a few more
        than `count` may run. Divisions are done on the way.
        """
        self._before = 0
        self.was_stopped = False
        error = _start(self.engine, pc | 1, _NOWHERE, 0, count)
        ran = self._counter.value
        while error == UNDEFINED:
            # The instruction that failed was counted, and is done here.
            at, xpsr = self._state.load()
            division = self.divisions.get(at)
            if division is None or not division.run():
                return error, ran - 1
            if xpsr & IT:
                self._skip(at, xpsr)
            self._before = ran
            error = _start(self.engine, at + 4 | 1, _NOWHERE, 0, max(count - ran, 2))
            ran += self._counter.value
        # The instruction after the last was counted when it stopped the run.
        return error, (ran if self._counter.value <= self._limit.value else ran - 1)

    def _skip(self, pc: int, xpsr: int) -> None:
        """Let the IT block go on behind the 4-byte instruction at `pc`, which was done here."""
        it = xpsr >> 8 & 0xFC | xpsr >> 25 & 3
        it = it & 0xE0 | it << 1 & 0x1F if it & 7 else 0
        self._state.value[0] = pc + 4
        self._state.value[1] = xpsr & ~IT | (it & 0xFC) << 8 | (it & 3) << 25
        self._state.store()

    def stop(self) -> None:
        """Inside a device's read or write: end the run after this instruction.

        The engine's own way would end it before, with the access done. Lowering the limit does what is wanted.
        """
        self.was_stopped = True
        self._limit.value = self._counter.value

    def leave(self) -> None:
        """Inside an interrupt hook: end the run here."""
        self.was_stopped = True
        _stop(self.engine)

    def place(self) -> int:
        """PC."""
        return self._place.load()[0]

    @property
    def ran(self) -> int:
        """Inside a hook: the instructions of this run, with the one that called it. Divisions begin a new run."""
        return self._before + self._counter.value


def _engine() -> Any:
    mode = unicorn.UC_MODE_THUMB | unicorn.UC_MODE_MCLASS
    engine = cast(Any, unicorn.Uc)(unicorn.UC_ARCH_ARM, mode, cpu=arm.UC_CPU_ARM_CORTEX_M33)
    engine.ctl_set_tcg_buffer_size(TRANSLATIONS)
    return engine


_counter_offset: int | None = None


def _counter_of(engine: ctypes.c_void_p) -> int:
    """The address of the engine's count of instructions in its last run.

    The struct has no public layout: it is searched for the limit of a run, which lies right behind the count.
    """
    global _counter_offset
    if _counter_offset is None:
        probe = _engine()
        probe.mem_map(0x10000000, 0x1000)
        probe.mem_write(0x10000000, b"\x00\xbf" * 37 + b"\x00\xbe")  # 37 nops and a breakpoint
        limit = 0x5EED_1234_ABCD
        _start(probe._uch, 0x10000001, 0, 0, limit)
        raw = ctypes.string_at(probe._uch.value, 0x600)
        at = raw.find(limit.to_bytes(8, "little")) - 8
        if at < 0 or int.from_bytes(raw[at : at + 8], "little") != 38:
            raise RuntimeError(f"unicorn {unicorn.__version__} keeps its instruction count elsewhere; use version 2.1")
        _counter_offset = at
    assert engine.value is not None
    return engine.value + _counter_offset
