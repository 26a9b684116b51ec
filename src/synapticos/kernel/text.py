"""Text on a console: what the compiler makes of `console.print(f"...")`, one call a part.

Integers only: the text of a float would differ between machines. No buffer outlives a call.
"""

from synapticos.lang import *
from synapticos.kernel import hal
from synapticos.kernel.divide import divide_short

DIGITS = rom(b"0123456789abcdef")
SPACES = rom(b"                ")
ZEROS = rom(b"0000000000000000")
MINUS = rom(b"-")
NUMBER_BYTES: Final[u32] = 24  # the longest number has 20 digits
PAD_BYTES: Final[u32] = 16  # characters in SPACES and ZEROS


@fn
def write_digits(out: Ptr[u8], value: u64, base: u32) -> u32:
    """Write `value` at the end of the NUMBER_BYTES at `out`; the result is the number of its digits.

    `base` is 10 or 16.
    """
    assert base == 10 or base == 16, "a base of 10 or 16"
    at: u32 = NUMBER_BYTES
    rest = value
    while rest > 0xFFFFFFFF:
        tens = divide_short(rest, base)
        at -= 1
        out[at] = DIGITS[u32(rest - tens * base)]
        rest = tens
    low = u32(rest)
    at -= 1
    out[at] = DIGITS[low % base]
    low = low // base
    while low != 0:
        at -= 1
        out[at] = DIGITS[low % base]
        low = low // base
    return NUMBER_BYTES - at


@fn
def console_text(text: Ptr[u8], n: u32) -> None:
    """Write `n` bytes of text."""
    hal.console(0, text, n)


@fn
def console_pad(count: u32, zero: bool) -> None:
    """Write `count` zeros, or else spaces."""
    left = count
    while left != 0:
        n = min(left, PAD_BYTES)
        if zero:
            hal.console(0, ZEROS, n)
        else:
            hal.console(0, SPACES, n)
        left -= n


@fn
def console_number(negative: bool, magnitude: u64, width: u32, base: u32, zero: bool) -> None:
    """Write a number, right-aligned in `width` characters; zeros go between the sign and the digits."""
    digits = local(u8, NUMBER_BYTES)
    n = write_digits(digits, magnitude, base)
    length = n
    if negative:
        length += 1
    room: u32 = 0
    if width > length:
        room = width - length
    if not zero:
        console_pad(room, False)
    if negative:
        hal.console(0, MINUS, 1)
    if zero:
        console_pad(room, True)
    hal.console(0, digits[NUMBER_BYTES - n :], n)


@fn
def console_unsigned(value: u64, width: u32, base: u32, zero: bool) -> None:
    """Write a number in base 10 or 16, right-aligned in `width` characters, filled with zeros or spaces."""
    console_number(False, value, width, base, zero)


@fn
def console_signed(value: i64, width: u32) -> None:
    """Write a number in base 10, right-aligned in `width` characters."""
    if value < 0:
        console_number(True, wrap(u64, 0 - wrap(u64, value)), width, 10, False)
    else:
        console_number(False, u64(value), width, 10, False)
