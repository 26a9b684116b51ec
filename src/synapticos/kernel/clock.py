"""Clock: 64-bit time made of a 32-bit counter that wraps.

`update` must be called at least once between two wraps (28 s at 150 MHz); `poll` does, so a board's idle loop must
not sleep longer. Time is kept in ticks and divided only where somebody wants microseconds.
"""

from synapticos.lang import *
from synapticos.kernel.divide import divide

MICROSECONDS: Final[u64] = 1000000  # in a second
NEVER: Final[u64] = 0xFFFFFFFFFFFFFFFF  # later than any tick or microsecond


@struct
class Clock:
    ticks: u64  # since boot
    rate: u32  # ticks a second
    last: u32  # the counter at the last update

    @fn
    def start(self, now: u32, rate: u32) -> None:
        """Time begins: the counter shows `now` and counts `rate` a second."""
        assert rate != 0, "a clock that stands still"
        self.ticks = 0
        self.rate = rate
        self.last = now

    @fn(inline=True)
    def update(self, now: u32) -> None:
        """The counter shows `now`."""
        self.ticks += wrap(u32, now - self.last)
        self.last = now

    @fn
    def at(self, stamp: u32) -> u64:
        """The tick since boot at which the counter showed `stamp`: at most three quarters of its range before the last
        update, or up to one after it, as an interrupt may have read the counter since."""
        age = wrap(u32, self.last - stamp)
        if age > 0xBFFFFFFF:
            return self.ticks + wrap(u32, stamp - self.last)
        return self.ticks - min(self.ticks, u64(age))

    @fn
    def us(self) -> u64:
        """Microseconds since boot."""
        return self.time(self.ticks)

    @fn
    def time(self, ticks: u64) -> u64:
        """Ticks since boot in microseconds, rounded down."""
        seconds = divide(ticks, self.rate)
        part = u32(ticks - seconds * self.rate)
        return seconds * MICROSECONDS + divide(u64(part) * MICROSECONDS, self.rate)

    @fn
    def of_us(self, us: u64) -> u64:
        """A span of microseconds in ticks, rounded up; NEVER from 71 years on."""
        if us >> 51 != 0:  # with a rate of 32 bits the product might not fit
            return NEVER
        if self.rate % u32(MICROSECONDS) == 0:
            return us * (self.rate // u32(MICROSECONDS))
        seconds = divide(us, u32(MICROSECONDS))
        part = u64(u32(us - seconds * MICROSECONDS)) * self.rate
        whole = seconds * self.rate
        return whole + divide(part + (MICROSECONDS - 1), u32(MICROSECONDS))

    @fn
    def to_us_up(self, ticks: u32) -> u32:
        """A span of ticks in microseconds, rounded up; the largest u32 if it does not fit."""
        return sat(u32, divide(u64(ticks) * MICROSECONDS + (self.rate - 1), self.rate))

    @fn
    def to_us(self, ticks: u32) -> u32:
        """A span of ticks in microseconds, rounded down; the largest u32 if it does not fit."""
        return sat(u32, divide(u64(ticks) * MICROSECONDS, self.rate))
