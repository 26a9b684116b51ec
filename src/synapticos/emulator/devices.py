"""What a firmware reaches by address: UARTs, timers and the system control space, as plain objects.

A device has `read(offset) -> int` and `write(offset, value)`, both of 32 bits, and keeps no clock of its own: it asks
`now()` for virtual nanoseconds. `due()` is when it next wants attention, `attend()` gives it.
"""

from __future__ import annotations

from collections.abc import Callable

Clock = Callable[[], int]
NEVER = 1 << 62


class Uart:
    """The sending half of a UART: CMSDK's or PL011's, which differ in where things lie."""

    def __init__(self, kind: str, put: Callable[[int], None]) -> None:
        self._put = put
        self._idle = {"cmsdk": {}, "pl011": {0x18: 0x90}}[kind]  # PL011: FIFO empty both ways
        self._state: dict[int, int] = {}

    def read(self, offset: int) -> int:
        return self._idle.get(offset, self._state.get(offset, 0) if offset else 0)

    def write(self, offset: int, value: int) -> None:
        if offset == 0:
            self._put(value & 0xFF)
        elif offset not in self._idle:
            self._state[offset] = value


class CmsdkTimer:
    """A 32-bit down counter: control +0 (bit 0 on, bit 3 interrupt), value +4, reload +8, interrupt status +12."""

    def __init__(self, now: Clock, tick_ns: int, interrupt: Callable[[], None]) -> None:
        self._now, self._tick_ns, self._interrupt = now, tick_ns, interrupt
        self._control = self._value = self._reload = self._status = 0
        self._since = 0  # when `_value` was the value

    def _settle(self) -> None:
        now = self._now()
        if self._control & 1 and (self._value or self._reload):
            passed = (now - self._since) // self._tick_ns
            self._since += passed * self._tick_ns
            if passed >= self._value and self._value | self._reload:
                if passed > self._value or self._value:
                    self._status = 1
                rest = passed - self._value
                self._value = self._reload - (rest - 1) % (self._reload + 1) if rest else 0
            else:
                self._value -= passed
        else:
            self._since = now

    def read(self, offset: int) -> int:
        self._settle()
        return {0: self._control, 4: self._value, 8: self._reload, 12: self._status}.get(offset, 0)

    def write(self, offset: int, value: int) -> None:
        self._settle()
        if offset == 0:
            self._control = value & 15
        elif offset == 4:
            self._value = value
        elif offset == 8:
            self._reload = self._value = value
        elif offset == 12 and value & 1:
            self._status = 0

    def due(self) -> int:
        if self._control & 9 != 9 or not self._value | self._reload:
            return NEVER
        return self._since + (self._value or self._reload + 1) * self._tick_ns

    def attend(self) -> None:
        self._settle()
        if self._status and self._control & 8:
            self._interrupt()


class SysTick:
    """The core's 24-bit timer. It counts down to 0, where its exception comes, and reloads a tick later."""

    def __init__(self, now: Clock, tick_ns: int) -> None:
        self._now, self._tick_ns = now, tick_ns
        self.control = self.reload = 0
        self._since = 0  # when the counter was 0 and did not count as having reached it
        self._periods = 0  # that were noticed since then
        self._left = 0  # the value while it is off
        self._flag = False

    def _period(self) -> int:
        return (self.reload + 1) * self._tick_ns

    def attend(self) -> bool:
        """Notice the periods that have passed: is its exception to be raised?"""
        if not self.control & 1 or self.reload == 0:
            return False
        periods = (self._now() - self._since) // self._period()
        new = periods > self._periods
        self._periods = periods
        self._flag = self._flag or new
        return new and bool(self.control & 2)

    def due(self) -> int:
        if self.control & 3 != 3 or self.reload == 0:
            return NEVER
        return self._since + (self._periods + 1) * self._period()

    def value(self) -> int:
        if not self.control & 1 or self.reload == 0:
            return self._left
        ticks = (self._now() - self._since) // self._tick_ns % (self.reload + 1)
        return self.reload + 1 - ticks if ticks else 0

    def read_control(self) -> int:
        self.attend()
        flag, self._flag = self._flag, False
        return self.control | flag << 16

    def write_control(self, value: int) -> None:
        was = self.control & 1
        if was and not value & 1:
            self._left = self.value()
        self.control = value & 7
        if value & 1 and not was:
            # Go on from the value that it stopped at.
            ticks = self.reload + 1 - self._left if self._left else 0
            self._since = self._now() - ticks * self._tick_ns
            self._periods = 0

    def write_reload(self, value: int) -> None:
        self.reload = value & 0xFFFFFF

    def write_value(self) -> None:
        self._left, self._flag = 0, False
        self._since, self._periods = self._now(), 0


class Accelerator:
    """A core beside the processor that runs one function on one block: at +0 the function, +4 the block, +8 ticks that it
    takes, +12 a ticket (kept for whoever asks), +16 control, +20 the function's result.

    Control: write 1 to start, 2 to reset, 4 to withdraw the interrupt; it reads 0 idle, 1 at work, 2 done. The function
    runs when its time is over, so nothing is written before; a reset before that writes nothing at all.
    """

    IDLE, WORKS, DONE = range(3)

    def __init__(self, now: Clock, tick_ns: int, run: Callable[[int, int], int], interrupt: Callable[[bool], None], changed: Callable[[], None]) -> None:
        self._now, self._tick_ns, self._run, self._interrupt, self._changed = now, tick_ns, run, interrupt, changed
        self._words = [0] * 4  # function, block, ticks, ticket
        self.state = self.IDLE
        self._ends = NEVER
        self._result = 0
        self.lost = False  # for tests: it never ends
        self.held = False  # for who counts what runs: it ends only while the processor sleeps
        self.extra_ns = 0  # for tests: it takes so much longer
        self.fails = 0  # for tests: what every function gives in place of its result, unless 0
        self.started: list[int] = []  # when, in ns, for who wants a trace; `ended` likewise
        self.ended: list[int] = []

    def read(self, offset: int) -> int:
        self.attend()
        if offset == 16:
            return self.state
        if offset == 20:
            return self._result & 0xFFFFFFFF
        return self._words[offset // 4] if offset < 16 else 0

    def write(self, offset: int, value: int) -> None:
        self.attend()
        if offset == 16:
            if value & 2:
                self.state, self._ends = self.IDLE, NEVER
            if value & 1 and self.state != self.WORKS:
                self.state = self.WORKS
                self.started.append(self._now())
                self._ends = NEVER if self.lost else self._now() + self._words[2] * self._tick_ns + self.extra_ns
                if not self.held:
                    self._changed()  # there is something to wait for
            if value & 6:
                self._interrupt(False)
        elif offset < 16 and self.state != self.WORKS:
            self._words[offset // 4] = value

    def due(self, sleeps: bool = False) -> int:
        return NEVER if self.held and not sleeps else self._ends

    def attend(self, sleeps: bool = False) -> None:
        if self._now() >= self._ends and (sleeps or not self.held):
            self.ended.append(self._ends)
            self._ends = NEVER
            self.state = self.DONE
            self._result = self.fails or self._run(self._words[0], self._words[1])
            self._interrupt(True)


class SystemControl:
    """0xE000E000 to 0xE000EFFF: SysTick, interrupt controller, fault status, MPU. What it does not know is memory."""

    SYSTICK = 15

    def __init__(self, systick: SysTick, changed: Callable[[], None], identity: int, v8: bool = True) -> None:
        self.systick = systick
        self._changed = changed  # something that may let an exception in
        self.pending: set[int] = set()  # exception numbers
        self.active: list[int] = []  # the innermost last
        self.enabled: set[int] = set()  # of those from 16 on
        self.v8 = v8
        self.regions: dict[int, tuple[int, int]] = {}  # MPU: number to (base, limit or size and attributes) as written
        self.memory: dict[int, int] = {0xD00: identity, 0xD14: 0x200}

    def attend(self) -> None:
        if self.systick.attend():
            self.pending.add(self.SYSTICK)

    def read(self, offset: int) -> int:
        if offset == 0x10:
            return self.systick.read_control()
        if offset == 0x14:
            return self.systick.reload
        if offset == 0x18:
            return self.systick.value()
        if 0x100 <= offset < 0x180:  # enabled
            return self._bits(self.enabled, offset & 0x7C)
        if 0x200 <= offset < 0x280:  # pending
            return self._bits(self.pending, offset & 0x7C)
        if offset == 0xD04:
            self.attend()
            now = self.active[-1] if self.active else 0
            return now | (self.SYSTICK in self.pending) << 26 | (14 in self.pending) << 28
        if 0xD9C <= offset < 0xDBC:
            return self.regions.get(self._region(offset), (0, 0))[(offset & 4) == 0]
        if offset == 0xD90:
            return 8 << 8  # MPU_TYPE: eight regions
        return self.memory.get(offset, 0)

    def write(self, offset: int, value: int) -> None:
        if offset == 0x10:
            self.systick.write_control(value)
        elif offset == 0x14:
            self.systick.write_reload(value)
        elif offset == 0x18:
            self.systick.write_value()
        elif 0x100 <= offset < 0x300:
            where = self.enabled if offset < 0x200 else self.pending
            numbers = {16 + (offset & 0x7C) * 8 + i for i in range(32) if value >> i & 1}
            if offset & 0x80:
                where -= numbers
            else:
                where |= numbers
        elif offset == 0xD04:
            self.attend()
            for bit, number, on in ((26, 15, True), (25, 15, False), (28, 14, True), (27, 14, False)):
                if value >> bit & 1:
                    (self.pending.add if on else self.pending.discard)(number)
        elif offset in (0xD28, 0xD2C):
            self.memory[offset] = self.memory.get(offset, 0) & ~value  # written ones clear
        elif 0xD9C <= offset < 0xDBC:
            is_base = offset & 4 != 0
            if is_base and not self.v8:
                if value & 16:  # the number is in the address
                    self.memory[0xD98] = value & 15
                value &= ~31
            number = self._region(offset)
            base, limit = self.regions.get(number, (0, 0))
            self.regions[number] = (value, limit) if is_base else (base, value)
        else:
            self.memory[offset] = value
        if not 0xD90 <= offset < 0xDD0:  # memory protection lets no exception in
            self._changed()

    def _region(self, offset: int) -> int:
        """Of the MPU's registers for a region, of which there are four pairs: the region's number."""
        number, pair = self.memory.get(0xD98, 0) & 7, (offset - 0xD9C) // 8
        return number & 4 | pair if pair and self.v8 else number

    @staticmethod
    def _bits(numbers: set[int], offset: int) -> int:
        first = 16 + offset * 8
        return sum(1 << n - first for n in numbers if first <= n < first + 32)

    def priority(self, number: int) -> int:
        """Of an exception; the lower goes first."""
        if number <= 3:
            return number - 4  # reset -3, NMI -2, HardFault -1
        offset = 0xD14 + number if number < 16 else 0x400 + number - 16
        return self.memory.get(offset & ~3, 0) >> (offset & 3) * 8 & 0xFF

    @property
    def protects(self) -> tuple[int, tuple[tuple[int, int, int], ...]] | None:
        """What memory protection is set to, to compare and to remember: None if it is off."""
        control = self.memory.get(0xD94, 0)
        return (control, tuple((n, *r) for n, r in sorted(self.regions.items()))) if control & 1 else None

    def edges(self) -> set[int]:
        """Addresses at which what is allowed may change."""
        out: set[int] = set()
        for base, limit in self.regions.values():
            if not limit & 1:
                continue
            if self.v8:
                out |= {base & ~31, (limit | 31) + 1}
            else:
                size = 2 << (limit >> 1 & 31)
                start = base & -size
                out |= {start + size // 8 * i for i in range(9)} if size >= 256 else {start, start + size}
        return out

    def allows(self, address: int, write: bool, execute: bool, privileged: bool = True) -> bool:
        """Does the MPU permit this access?"""
        control = self.memory.get(0xD94, 0)
        if not control & 1 or address >> 28 == 0xE:
            return True
        found = self._v8_region(address) if self.v8 else self._v7_region(address)
        if found is None:
            return privileged and bool(control & 4)
        readable, writable, runs = found[0 if privileged else 1]
        return runs if execute else writable if write else readable

    def _v8_region(self, address: int) -> tuple[tuple[bool, bool, bool], tuple[bool, bool, bool]] | None:
        """(readable, writable, executable) for privileged and for other code; None if no region holds the address."""
        for base, limit in self.regions.values():
            if limit & 1 and base & ~31 <= address <= limit | 31:
                all_, write, runs = bool(base & 2), not base & 4, not base & 1
                return (True, write, runs), (all_, all_ and write, all_ and runs)
        return None

    def _v7_region(self, address: int) -> tuple[tuple[bool, bool, bool], tuple[bool, bool, bool]] | None:
        """As above: of regions that overlap the highest number counts."""
        for _, (base, bits) in sorted(self.regions.items(), reverse=True):
            size = 2 << (bits >> 1 & 31)
            if not bits & 1 or address & -size != base & -size:
                continue
            if size >= 256 and bits >> 8 >> (address % size // (size // 8)) & 1:
                continue
            access, runs = bits >> 24 & 7, not bits >> 28 & 1
            theirs = access in (2, 3, 6, 7), access == 3
            ours = access != 0, access in (1, 2, 3)
            return (*ours, runs and ours[0]), (*theirs, runs and theirs[0])
        return None
