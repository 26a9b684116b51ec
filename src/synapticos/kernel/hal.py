"""What the kernel asks of a board.

A board answers each function under its C name, `hal_<name>`; on checked CPython the methods of a board object
answer. The first argument is the board's number, so that one process may hold several; a chip ignores it.
"""

from synapticos.lang import Fn, Ptr, hal_function, i32, u8, u32

Work = Fn[[Ptr[u8]], None]


@hal_function
def ticks(board: u32) -> u32:
    """The free-running counter, at `tick_rate` a second. It wraps."""
    ...


@hal_function
def tick_rate(board: u32) -> u32:
    """Ticks in a second, in Hz, never 0."""
    ...


@hal_function
def console(board: u32, text: Ptr[u8], n: u32) -> None:
    """Write `n` bytes of text to the console, all of them, before returning."""


@hal_function
def critical_enter(board: u32) -> u32:
    """Keep interrupts and other threads out; the result is what `critical_exit` wants back."""
    ...


@hal_function
def critical_exit(board: u32, state: u32) -> None:
    """Leave the section that `critical_enter` opened."""


@hal_function
def wake(board: u32) -> None:
    """Something was posted: whoever sleeps in `idle` should poll again. Safe from an interrupt."""


@hal_function
def idle(board: u32) -> None:
    """Sleep until an interrupt or a `wake`."""


@hal_function
def wake_at(board: u32, ticks: u32) -> None:
    """Let the next `idle` end when the counter reaches `ticks`, if not before; at most half the counter's range ahead."""


@hal_function
def exit(board: u32, code: i32) -> None:
    """End the program with an exit code, where there is somebody to take it; else stop."""


@hal_function
def argument(board: u32, buffer: Ptr[u8], n: u32) -> u32:
    """Copy at most `n` bytes of the program's argument into `buffer`; the result is its whole length in bytes, 0 for none."""
    ...


@hal_function
def file_read(board: u32, name: Ptr[u8], at: u32, data: Ptr[u8], n: u32) -> i32:
    """Read up to `n` bytes from byte `at` of the file `name` (0-terminated): bytes read, or a negative Status number."""
    ...


@hal_function
def file_write(board: u32, name: Ptr[u8], at: u32, data: Ptr[u8], n: u32) -> i32:
    """Write `n` bytes at byte `at` of the file `name` (0 begins it anew): bytes written, or a negative Status number."""
    ...


@hal_function
def spend(board: u32, ticks: u32) -> None:
    """Where time is virtual: let `ticks` (below 2^31) pass, as if something had run so long.

    An interrupt that is due before they are over comes at its time, and what it spends itself is on top; one that is due
    when they are over comes with the next. 0 takes what is due.
    """


@hal_function
def interrupt_at(board: u32, line: u32, ticks: u32) -> None:
    """Where time is virtual: device `line` (0..3) interrupts when the counter reaches `ticks`, once.

    At the next `spend` if that has passed. A second call moves it.
    """


@hal_function
def guard_open(board: u32, at: Ptr[u8], n: u32, write: bool) -> None:
    """The next `guard_run` may use these `n` bytes besides its stack and its block: read them, or `write` them too.

    Those to write come first. Three to write and two to read are kept apart; one more is joined with the last, and all
    between them is open too.
    """


@hal_function
def guard_run(board: u32, work: Work, block: Ptr[u8], n: u32, limit_us: u32, fault: Ptr[u32]) -> u32:
    """Call `work(block)`, a block of `n` bytes, and come back in any case: a FaultKind, and if that is not NONE its Fault.

    `n` is a multiple of 4. `work` may be handed a copy, which is `block` again when it returns. If it does not, what was
    called is forgotten, a critical section that it was in included, and `block` may be as it was before. A `limit_us` that is not 0 bounds its
    time, by a clock of the board's own choice. Not from inside another `work`. Writes `fault`, seven words from the kind
    on, only if it is not NONE.
    """
    ...


@hal_function
def npu_start(board: u32, ticket: u32, ticks: u32, work: Ptr[u8], n: u32) -> i32:
    """The simulated accelerator begins `work` (`n` bytes, a `sim.SimWork`, copied), and will be at it for `ticks`, below 2^31.

    0; a negative Status number: BUSY while it is at something, NOTSUP where there is none.
    """
    ...


@hal_function
def npu_status(board: u32, ticket: u32) -> i32:
    """How the work of `ticket` goes: INPROGRESS, 0 once it is done, NOENT if it was never begun or reset; else its error."""
    ...


@hal_function
def npu_reset(board: u32) -> None:
    """It stops, and neither reads nor writes memory until it is started again."""


@hal_function
def npu_counts(board: u32) -> bool:
    """Does it only keep the time? Then its driver does the work, once the time is over."""
    ...
