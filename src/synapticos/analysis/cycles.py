"""A cycle model of a core, and the tables from which a run's cycles are counted.

No processor is modelled in full. For each instruction there is the most cycles that it takes by Arm's table for the
core, with operands ready and memory without wait states; whenever control does not go on to the next instruction, the
pipeline is refilled; each access and each fetch adds its region's wait states. What that leaves out (a load whose value
is used at once, unaligned words, other masters on a bus) is what the margin is for, and docs/timing.md says so.

Sources: Cortex-M3, Arm DDI 0337 ("Cortex-M3 Technical Reference Manual"), Table "Cortex-M3 instruction set summary":
P is 1 to 3, long multiplications 3 to 5 and with an addition 4 to 7, divisions 2 to 12; the largest is taken of each.
Cortex-M33: Arm 100230 gives no cycles for single instructions, so they are those of the Cortex-M4 (Arm DDI 0439,
"Processor instructions" and "FPU instruction set"), an older core with a pipeline of the same length, and a larger margin.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace

from synapticos.boards.board import Board, core_mhz
from synapticos.boards.faults import Image
from synapticos.errors import UserError


@dataclass(frozen=True)
class Core:
    """Cycles of an instruction at most, operands ready and memory without wait states."""

    name: str
    source: str
    margin: float  # of all cycles, for what is not modelled
    refill: int = 3  # when control goes elsewhere
    load: int = 2  # of one register; of n: 1 + n
    multiply_add: int = 1
    long_multiply: int = 1
    long_add: int = 1
    divide: int = 12
    barrier: int = 4
    system: int = 2
    real: int = 2  # an addition or multiplication of reals: 1, and 1 if the next one needs it
    real_add: int = 4  # multiplied and added: 3, and 1 if the next one needs it
    real_divide: int = 15


CORES = {
    core.name: core
    for core in (
        Core("cortex-m33", "Cortex-M4's table (Arm DDI 0439), for Arm publishes none", 0.20),
        Core("cortex-m3", "Cortex-M3's table (Arm DDI 0337)", 0.10, multiply_add=2, long_multiply=5, long_add=7),
    )
}


EXCEPTION = 12 + 12  # cycles into an exception and out of it: Arm DDI 0337 and DDI 0439, "Exception entry and exit"


@dataclass(frozen=True)
class Timing:
    """A core at its clock, with its memory."""

    core: Core
    hz: int
    fetch_waits: int = 0  # of each word of code, and of each place that is jumped to
    data_waits: int = 0  # of each access, the slowest region's
    margin: float = 0.0  # of all

    def ns(self, cycles: int) -> int:
        """The time of so many cycles, margin added, rounded up."""
        scaled = cycles * (1000 + round(self.margin * 1000))
        return -(-scaled * 1_000_000 // self.hz)

    def cycles(self, ns: int) -> int:
        return ns * self.hz // 1_000_000_000

    def __str__(self) -> str:
        waits = f"{self.fetch_waits} wait states for code, {self.data_waits} for data"
        return f"{self.core.name} at {self.hz / 1e6:g} MHz, {waits}, margin {self.margin:.0%}"

    def to_json(self) -> dict[str, object]:
        return {
            "core": self.core.name, "source": self.core.source, "hz": self.hz, "fetch_waits": self.fetch_waits,
            "data_waits": self.data_waits, "margin": self.margin,
        }  # fmt: skip


def timing(board: Board, *, mhz: float | None = None, waits: tuple[int, int] | None = None, margin: float | None = None) -> Timing:
    """Of a board as it is, or as the reader says that it is. Raises UserError for a core that has no table."""
    core = CORES.get(board.cpu)
    if core is None:
        raise UserError(f"{board.name}: no cycles are known of a {board.cpu}; record a profile with syn calibrate and give it with --profile")
    made = Timing(core, board.tick_rate, 0, 0, core.margin)
    if mhz is not None:
        made = replace(made, hz=round(core_mhz(mhz) * 1e6))
    if waits is not None:
        if not all(0 <= n <= 100 for n in waits):
            raise UserError(f"--waits {waits[0]},{waits[1]}: wait states of code and of data, each from 0 to 100")
        made = replace(made, fetch_waits=waits[0], data_waits=waits[1])
    if margin is not None:
        if not 0 <= margin <= 10:
            raise UserError(f"--margin {margin:g}: a part of all cycles, from 0 to 10; 0.2 is 20 %")
        made = replace(made, margin=margin)
    return made


def thumb(code: bytes, base: int) -> Iterator[tuple[int, int, int, int]]:
    """(address, bytes, first halfword, second or 0) of each instruction of a range without data."""
    at = 0
    while at + 2 <= len(code):
        first = struct.unpack_from("<H", code, at)[0]
        if first >> 11 in (0b11101, 0b11110, 0b11111) and at + 4 <= len(code):
            yield base + at, 4, first, struct.unpack_from("<H", code, at + 2)[0]
            at += 4
        else:
            yield base + at, 2, first, 0
            at += 2


def cost(core: Core, first: int, second: int) -> tuple[int, int]:
    """(cycles, accesses to memory) of an instruction; what a jump adds comes where it is known to jump."""
    ones = bin(second).count("1")
    if first >> 11 not in (0b11101, 0b11110, 0b11111):  # 16 bits
        if first >> 12 == 0b1100:  # LDM, STM
            n = bin(first & 0xFF).count("1")
            return 1 + n, n
        if first & 0xF600 == 0xB400:  # PUSH, POP
            n = bin(first & 0x1FF).count("1")
            return 1 + n, n
        if first >> 11 == 0b01001 or first >> 12 == 0b0101 or first >> 13 == 0b011 or first >> 12 in (0b1000, 0b1001):
            return core.load, 1
        return (EXCEPTION if first & 0xFF00 == 0xDF00 else 1), 0  # SVC, and the way back
    if first & 0xFE40 == 0xE800:  # LDM, STM
        return 1 + ones, ones
    if first & 0xFE40 == 0xE840:  # two registers, exclusive, tables of branches
        return (core.load, 1) if first & 0xFF00 == 0xE800 or first & 0xFFF0 == 0xE8D0 else (core.load + 1, 2)
    if first & 0xFE00 == 0xEC00 and second & 0x0E00 == 0x0A00:  # reals: to and from memory, two core registers
        if first & 0xFFE0 == 0xEC40:
            return 2, 0
        single = first & 0x0120 == 0x0100
        words = (1 + (second >> 8 & 1)) if single else second & 0xFF
        return 1 + words, words
    if first & 0xFF00 in (0xEE00, 0xFE00) and second & 0x0E00 == 0x0A00:
        if second & 0x10:
            return 1, 0  # to or from a core register
        if first & 0xFFB0 == 0xEE80 or (first & 0xFFBF == 0xEEB1 and second & 0xC0 == 0xC0):
            return core.real_divide, 0  # VDIV, VSQRT
        if first & 0xFFB0 in (0xEE00, 0xEE10, 0xEE90, 0xEEA0):
            return core.real_add, 0
        return core.real, 0
    if first >> 9 == 0b1111100:  # one register
        return core.load, 1
    if first & 0xFF80 == 0xFB00:  # 32-bit products
        added = second >> 12 != 15
        return (core.multiply_add if added else 1), 0
    if first & 0xFF80 == 0xFB80:
        kind = first >> 4 & 7
        if kind in (1, 3):
            return core.divide, 0
        return (core.long_multiply if kind in (0, 2) else core.long_add), 0
    if first & 0xF800 == 0xF000 and second & 0x8000:
        if first & 0xFFF0 == 0xF3B0:
            return core.barrier, 0
        if first & 0xFFC0 in (0xF380, 0xF3C0) and second & 0x5000 == 0:
            return core.system, 0
    return 1, 0


class Costs:
    """Of an image's code: what all instructions before a halfword cost, so that a block is a subtraction."""

    def __init__(self, image: Image, timing: Timing) -> None:
        spans = [(start, end) for start, end in image.code]
        self.base = min(start for start, _ in spans)
        self.end = max(end for _, end in spans)
        halves = (self.end - self.base) // 2 + 1
        count, cycles = [0] * (halves + 1), [0] * (halves + 1)
        for start, end in spans:
            segment = next(s for s in image.segments if s.address <= start < s.address + len(s.data))
            code = segment.data[start - segment.address : end - segment.address]
            for at, size, first, second in thumb(code, start):
                spent, accesses = cost(timing.core, first, second)
                last = (at + size - self.base) // 2  # an instruction counts where it ends
                count[last] += 1
                cycles[last] += spent + accesses * timing.data_waits
        # The fetch of a 32-bit word of code waits; two halfwords share one.
        for i in range(1, halves + 1, 2):
            cycles[i] += timing.fetch_waits
        for i in range(1, halves + 1):
            count[i] += count[i - 1]
            cycles[i] += cycles[i - 1]
        self.count, self.cycles = count, cycles
        self.jump = timing.core.refill + timing.fetch_waits
        self.image = image

    def straight(self, name: str) -> int:
        """All instructions of a function once, each as if it jumped: more than any way through one without loops. 0: not there."""
        at = self.image.symbols.get(name)
        if at is None:
            return 0
        start = ((at & ~1) - self.base) // 2
        end = min(start + self.image.sizes[name] // 2, len(self.cycles) - 1)  # its constants may lie behind all code
        return self.cycles[end] - self.cycles[start] + (self.count[end] - self.count[start]) * self.jump
