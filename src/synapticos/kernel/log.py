"""Log: a ring of the latest records, each the number of a text and the figures in it.

The words are in a section of the ELF that is not loaded; the host puts them together. `log.info(kernel.log, f"...")`
comes down to `log.write`. Written in thread mode, by whoever runs the kernel; not from interrupts.
"""

from synapticos.lang import *

LOG_LEVEL = param(u32, 3, max=4)  # 0 nothing, 1 errors, 2 warnings, 3 information, 4 all
LOG_RECORDS = param(u32, 8, min=1, max=4096)
LOG_ARGS = param(u32, 4, min=1, max=4)  # figures that a record keeps
LOG_ERROR: Final[u32] = 1
LOG_WARNING: Final[u32] = 2
LOG_INFO: Final[u32] = 3
LOG_DEBUG: Final[u32] = 4


@struct
class LogRecord:
    args: Shaped[Array[u64], LOG_ARGS]  # signed figures in two's complement; unused entries 0
    text: u32  # number of the text
    level: u8
    count: u8  # figures in use
    reserved: u16

    @fn(inline=True)
    def keep(self, i: u32, figure: u64) -> None:
        if i < LOG_ARGS:
            self.args[i] = figure


@struct
class Log:
    records: Shaped[Array[LogRecord], LOG_RECORDS]
    written: u32  # records since boot; the latest is number written - 1; wraps
    reserved: u32

    @fn
    def write(self, level: u32, text: u32, count: u32, a: u64, b: u64, c: u64, d: u64) -> None:
        """Keep one record, over the oldest. A level above LOG_LEVEL is not kept."""
        if level > LOG_LEVEL:
            return
        record = self.records[self.written % LOG_RECORDS]
        record.text = text
        record.level = u8(level)
        record.count = u8(min(count, LOG_ARGS))
        record.reserved = 0
        record.keep(0, a)
        record.keep(1, b)
        record.keep(2, c)
        record.keep(3, d)
        self.written = wrap(u32, self.written + 1)

    @fn
    def read(self, number: u32) -> LogRecord | None:
        """Record `number` (they count from 0 since boot), or None if it is not written yet or no longer kept."""
        age = wrap(u32, self.written - number)
        if age == 0 or age > LOG_RECORDS or age > self.written:
            return None
        return self.records[number % LOG_RECORDS]
