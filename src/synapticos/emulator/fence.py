"""Fence: what memory protection keeps from code without privilege, which the engine itself does not know.

Pages that are closed as a whole are protected in the engine: an access fails before it happens. In pages that are open
in part the closed parts are remembered when such code begins, and compared when it ends: if it has changed them, it is
played again from there, in smaller and smaller pieces, to the instruction that did it. (The engine's hooks on memory
would tell at once, but lose the state of IT blocks.) Reading a closed part of such a page passes. Privileged code
passes everywhere: for it the map of the board's memory is as strict.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from unicorn import unicorn_const as const

from synapticos.emulator import cpu as unit
from synapticos.emulator.cpu import Cpu
from synapticos.emulator.devices import SystemControl

PAGE = 1024  # the engine's grain
PIECES = 64  # into which a stretch is cut to find what happened in it

Page = tuple[int, int, int, int]  # start, size, access, access of privileged code
Parts = tuple[tuple[int, int], ...]  # start, end


@dataclass(frozen=True)
class Plan:
    """What one setting of the MPU leaves to code without privilege."""

    pages: tuple[Page, ...]
    closed: Parts  # what may not be written of pages that may be in part
    open: Parts  # what may


@dataclass
class Mark:
    """A point to go back to."""

    registers: Any
    pc: int
    closed: list[bytes]
    open: list[bytes]


class Fence:
    """Follows the MPU of `control`."""

    def __init__(self, cpu: Cpu, control: SystemControl) -> None:
        self._cpu, self._control = cpu, control
        self._plans: dict[object, Plan] = {}
        self._now: Plan | None = None
        self._closed: set[Page] = set()  # in the engine; they stay so until privileged code needs one
        self._mark: Mark | None = None

    def set(self, privileged: bool, pc: int) -> None:
        """From now on privileged code runs, or other, which begins at `pc`."""
        wanted = None
        if not privileged:
            key = self._control.protects
            if key is not None:
                if key not in self._plans:
                    self._plans[key] = self._plan()
                wanted = self._plans[key]
        self._now = wanted
        if wanted is not None:
            for page in self._closed - set(wanted.pages):
                self._open(page)
            for page in wanted.pages:
                if page not in self._closed:
                    self._closed.add(page)
                    self._cpu.uc.mem_protect(*page[:3])
        self._mark = self._save(pc) if wanted is not None and wanted.closed else None

    def lift(self, address: int) -> bool:
        """Privileged code has met a closed page: it is open now. False if there is none."""
        for page in self._closed:
            if page[0] <= address < page[0] + page[1]:
                self._open(page)
                return True
        return False

    def _open(self, page: Page) -> None:
        self._closed.discard(page)
        self._cpu.uc.mem_protect(page[0], page[1], page[3])

    def broken(self, ran: int) -> tuple[int, int] | None:
        """Whether code without privilege, of which `ran` instructions ran since `set`, has written what is closed to it.

        If so it is undone, with all that came after it: instruction and address.
        """
        plan, mark = self._now, self._mark
        if plan is None or mark is None or self._read(plan.closed) == mark.closed:
            return None
        while ran > 4:
            size = max(ran // PIECES, 2)
            self._restore(mark)
            played = 0
            while True:
                played += max(self._cpu.start(mark.pc, size)[1], 1)
                if self._read(plan.closed) != mark.closed or played > ran:
                    break
                mark = self._save(self._cpu.place())
            ran = 4 if size == 2 else size + 4  # a piece does not end inside an IT block
        return self._watch(plan, mark)

    def _watch(self, plan: Plan, mark: Mark) -> tuple[int, int]:
        """The first write of what is closed in the few instructions from `mark` on."""
        found: list[tuple[int, int]] = []

        def hook(uc: object, access: int, address: int, size: int, value: int, data: object) -> None:
            found.append((self._cpu.place(), address))

        self._restore(mark)
        uc = self._cpu.uc
        hooks = [uc.hook_add(const.UC_HOOK_MEM_WRITE, hook, begin=a, end=b - 1) for a, b in plan.closed]
        uc.ctl_flush_tb()
        self._cpu.start(mark.pc, 8)
        for one in hooks:
            uc.hook_del(one)
        uc.ctl_flush_tb()
        changed = next((i for i, (a, b) in enumerate(zip(self._read(plan.closed), mark.closed, strict=True)) if a != b), 0)
        self._restore(mark)
        return found[0] if found else (mark.pc, plan.closed[changed][0])

    def _read(self, parts: Parts) -> list[bytes]:
        return [self._cpu.read(a, b - a) for a, b in parts]

    def _save(self, pc: int) -> Mark:
        assert self._now is not None
        return Mark(self._cpu.uc.context_save(), pc, self._read(self._now.closed), self._read(self._now.open))

    def _restore(self, mark: Mark) -> None:
        assert self._now is not None
        self._cpu.uc.context_restore(mark.registers)
        for parts, data in ((self._now.closed, mark.closed), (self._now.open, mark.open)):
            for (start, _), content in zip(parts, data, strict=True):
                self._cpu.write(start, content)

    def _plan(self) -> Plan:
        control = self._control
        pages: list[Page] = []
        closed: list[tuple[int, int]] = []
        opened: list[tuple[int, int]] = []
        for region in self._cpu.regions:
            end = region.base + region.size
            runs = region.access & unit.EXECUTE
            edges = sorted({region.base, end} | {e for e in control.edges() if region.base < e < end})
            parts: list[tuple[int, int, int]] = []
            for a, b in zip(edges, edges[1:], strict=False):
                access = unit.READ | runs if control.allows(a, False, False, False) else 0
                if control.allows(a, True, False, False):
                    access |= unit.WRITE & region.access
                parts.append((a, b, access))
                if access & unit.WRITE:
                    opened.append((a, b))
            # A page may do what some of it may do.
            cuts = sorted({e & -PAGE for e in edges} | {-(-e // PAGE) * PAGE for e in edges})
            for a, b in zip(cuts, cuts[1:], strict=False):
                within = [(max(a, c), min(b, d), access) for c, d, access in parts if c < b and a < d]
                access = 0
                for _, _, each in within:
                    access |= each
                if access != region.access:
                    if pages and pages[-1][0] + pages[-1][1] == a and pages[-1][2:] == (access, region.access):
                        a, b = pages.pop()[0], b  # one piece with the last
                    pages.append((a, b - a, access, region.access))
                if access & unit.WRITE:
                    closed += [(c, d) for c, d, each in within if not each & unit.WRITE]
        return Plan(tuple(pages), tuple(closed), tuple(opened))


__all__ = ["Fence"]
