"""Coprocessor: a second core that shares a machine's memory and runs single functions of its firmware.

Its stack and the place that functions return to are memory of its own. What it executes is not counted: how long its
work takes is for whoever starts it to say.
"""

from __future__ import annotations

from synapticos.emulator import cpu as unit
from synapticos.emulator.cpu import Cpu, Division, Registers

BASE, SIZE = 0x2F000000, 64 << 10  # of its own memory: a breakpoint, and the stack down from the end
FAILED = -5  # what a function gives that did not return
LIMIT = 1 << 36  # instructions


class Coprocessor:
    def __init__(self, main: Cpu) -> None:
        self.cpu = Cpu()
        for region in main.regions:
            # All may be read, written and executed: it is the firmware's own code that runs here.
            self.cpu.map(region.base, region.size, unit.READ | unit.WRITE | unit.EXECUTE, region)
        self.cpu.map(BASE, SIZE, unit.READ | unit.WRITE | unit.EXECUTE)
        self.cpu.write(BASE, b"\x00\xbe")
        self.cpu.divisions = {at: Division(self.cpu, made.code) for at, made in main.divisions.items()}
        self._enter = Registers(self.cpu, (0, unit.SP, unit.LR, unit.XPSR))
        self._leave = Registers(self.cpu, (0, unit.PC))

    def run(self, function: int, block: int) -> int:
        """Call a function with one argument: the word that it returns, or FAILED (as a word) if it did not."""
        self._enter.value[:] = [block, BASE + SIZE, BASE | 1, unit.THUMB]
        self._enter.store()
        error, _ = self.cpu.start(function & ~1, LIMIT)
        result, pc = self._leave.load()
        return result if error == unit.EXCEPTION and pc == BASE else FAILED & 0xFFFFFFFF
