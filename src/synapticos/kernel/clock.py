"""Clock: 64-bit time made of a 32-bit counter that wraps.

`update` must be called at least once between two wraps (28 s at 150 MHz); `poll` does, so a board's idle loop must
not sleep longer.
"""

from synapticos.lang import *

MICROSECONDS: Final[u64] = 1000000  # in a second


@struct
class Clock:
    us: u64  # since boot
    ticks: u64  # since boot
    part: u64  # what `us` has not counted yet, in ticks * 10^6
    rate: u32  # ticks a second
    last: u32  # the counter at the last update

    @fn
    def start(self, now: u32, rate: u32) -> None:
        """Time begins: the counter shows `now` and counts `rate` a second."""
        assert rate != 0, "a clock that stands still"
        self.us = 0
        self.ticks = 0
        self.part = 0
        self.rate = rate
        self.last = now

    @fn
    def update(self, now: u32) -> None:
        """The counter shows `now`."""
        gone = wrap(u32, now - self.last)
        if gone == 0:
            return
        self.last = now
        self.ticks += gone
        part = self.part + u64(gone) * MICROSECONDS
        if part >= self.rate:
            whole = div_u64(part, self.rate)
            self.us += whole
            part -= whole * self.rate
        self.part = part

    @fn
    def to_us_up(self, ticks: u32) -> u32:
        """A span of ticks in microseconds, rounded up; the largest u32 if it does not fit."""
        product = u64(ticks) * MICROSECONDS + (self.rate - 1)
        return sat(u32, div_u64(product, self.rate))

    @fn
    def to_us(self, ticks: u32) -> u32:
        """A span of ticks in microseconds, rounded down; the largest u32 if it does not fit."""
        return sat(u32, div_u64(u64(ticks) * MICROSECONDS, self.rate))
