"""The host as a board: `HostBoard` in Python for the checked engine, `hal.c` and `NativeBoard` for the native one.

Both have a virtual clock that moves when it is moved, or the machine's own at 1 MHz; a console that is captured; files
of a folder. They answer alike, so a test does not care which one it has.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from pathlib import Path
from typing import Any

from synapticos.boards.board import HERE

NOENT, IO, BUSY, INPROGRESS = -2, -5, -16, -119  # of kernel/status.py, which is above this folder
CHECK, LATE = 2, 3  # of kernel/job.py's FaultKind
SLOWER = 1000  # how many times longer than compiled code a guarded call may take on the checked engine
TICK_RATE = 1_000_000
LINES = 4  # interrupts that devices which are not there can make
SOURCES: tuple[Path, ...] = (HERE / "host" / "hal.c",)

CDEF = """
int32_t host_open(void);
void host_close(uint32_t board);
void host_clock(uint32_t board, uint32_t real, uint32_t rate);
void host_set_ticks(uint32_t board, uint32_t ticks);
void host_interrupt(uint32_t board, uint32_t line, void *handler, void *block);
void host_npu(uint32_t board, uint32_t lost, int32_t fails);
uint32_t host_take_console(uint32_t board, uint8_t *text, uint32_t n);
void host_set_argument(uint32_t board, const uint8_t *text, uint32_t n);
void host_set_folder(uint32_t board, const char *folder);
int32_t host_call(void *function, void *block, uint32_t *told, uint32_t board);
uint32_t hal_ticks(uint32_t board);
void hal_wake(uint32_t board);
uint32_t hal_tick_rate(uint32_t board);
"""


class HostExit(Exception):
    """The kernel called hal.exit."""

    def __init__(self, code: int) -> None:
        super().__init__(f"exit with code {code}")
        self.code = code


def _bytes(pointer: Any, n: int, what: str) -> memoryview:
    """The `n` bytes behind a checked pointer (or a buffer), or IndexError if they are not all its own."""
    if hasattr(pointer, "hi"):
        low, high, view = pointer.at, pointer.at + n, pointer.v
        if not pointer.lo <= low <= high <= pointer.hi:
            raise IndexError(f"{what}: {n} bytes of {pointer.hi - pointer.at}")
        return view[low:high]
    view = memoryview(pointer).cast("B")
    if n > len(view):
        raise IndexError(f"{what}: {n} bytes of {len(view)}")
    return view[:n]


def _name(pointer: Any) -> str:
    """The text at a pointer, up to its 0."""
    view = pointer.v[pointer.at : pointer.hi] if hasattr(pointer, "hi") else memoryview(pointer).cast("B")
    text = bytes(view)
    end = text.find(0)
    if end < 0:
        raise IndexError("a file's name does not end in 0")
    return text[:end].decode("utf-8", "surrogateescape")


class TooLate(Exception):
    """Raised in a guarded call of the checked engine that takes too long."""


def within(seconds: float, work: Any, block: Any) -> None:
    """`work(block)`. Raises TooLate in it, at whatever line it is, once it has taken so many seconds."""
    thread, guard = threading.get_ident(), threading.Lock()
    done = fired = False

    def fire() -> None:
        nonlocal fired
        with guard:
            if not done:
                fired = True
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(TooLate))

    timer = threading.Timer(seconds, fire)
    timer.daemon = True
    timer.start()
    try:
        work(block)
    finally:
        with guard:
            done = True
        timer.cancel()
        while fired:  # it comes at one of the next lines, if it has not yet
            if isinstance(sys.exc_info()[1], TooLate):
                break


def nowhere(error: Exception) -> tuple[int, int]:
    raise error


class HostBoard:
    """One board. The methods up to `file_write` are the hardware contract (kernel/hal); their `board` is not used.

    `fail["file_read"] = -5` makes that function answer so, until the entry is deleted (file_read and file_write).
    """

    number = 0  # what to pass as `board`

    def __init__(self, *, real_clock: bool = False, tick_rate: int = TICK_RATE, folder: Path | None = None) -> None:
        self.now = 0  # virtual ticks, unlimited
        self.real_clock = real_clock
        self.rate = TICK_RATE if real_clock else tick_rate
        self.folder = Path(folder) if folder is not None else Path()
        self.text = bytearray()
        self.arguments = b""
        self.wakes = 0
        self.alarm: int | None = None  # the counter at which the next idle ends
        self.fail: dict[str, int] = {}
        self.due: list[int | None] = [None] * LINES  # when each interrupt comes, in ticks
        self.handlers: list[Any] = [None] * LINES  # and what it calls, without arguments
        self.npu: tuple[int, int, int] | None = None  # what the accelerator is at: ticket, since, ticks
        self.npu_ends: int | None = 0  # how its work ends; None: never
        self._npu_told: tuple[int, int, int] | None = None  # what a sleeper was woken for
        self._lock = threading.RLock()
        self._woken = threading.Event()
        self._held = threading.local()
        self.place_of = nowhere  # a failed check's number of a file, and line; raises what is none

    # What the kernel calls -------------------------------------------------------------------------------------------

    def ticks(self, board: int) -> int:
        now = time.monotonic_ns() // 1000 if self.real_clock else self.now
        return now & 0xFFFFFFFF

    def tick_rate(self, board: int) -> int:
        return self.rate

    def console(self, board: int, text: Any, n: int) -> None:
        self.text += _bytes(text, n, "console")

    def critical_enter(self, board: int) -> int:
        self._lock.acquire()
        self._held.depth = self._depth + 1
        return 0

    def critical_exit(self, board: int, state: int) -> None:
        self._held.depth -= 1
        self._lock.release()

    @property
    def _depth(self) -> int:
        """Sections that this thread is in."""
        return getattr(self._held, "depth", 0)

    def wake(self, board: int) -> None:
        self.wakes += 1
        self._woken.set()

    def idle(self, board: int) -> None:
        if self.real_clock:
            left = 1000 if self.alarm is None else (self.alarm - self.ticks(board)) & 0xFFFFFFFF
            if left < 1 << 31:  # else the alarm is past
                self._woken.wait(min(left, 1000, self._npu_left()) / TICK_RATE)
        self.alarm = None
        self._woken.clear()

    def wake_at(self, board: int, ticks: int) -> None:
        self.alarm = ticks

    def exit(self, board: int, code: int) -> None:
        raise HostExit(code)

    def guard_open(self, board: int, at: Any, n: int, write: bool) -> None:
        pass

    def guard_run(self, board: int, work: Any, block: Any, n: int, limit_us: int, fault: Any) -> int:
        before = self._depth
        try:
            if limit_us == 0:
                work(block)
            else:
                within(limit_us * SLOWER / 1e6, work, block)
        except Exception as error:
            kind = LATE if isinstance(error, TooLate) else CHECK
            file, line = self.place_of(error)
            while self._depth > before:
                self.critical_exit(board, 0)
            for i, word in enumerate((kind, 0, 0, 0, 0, file, line)):
                fault.v[fault.at + i] = word
            return kind
        return 0

    def argument(self, board: int, buffer: Any, n: int) -> int:
        part = self.arguments[:n]
        _bytes(buffer, n, "argument")[: len(part)] = part
        return len(self.arguments)

    def file_read(self, board: int, name: Any, at: int, data: Any, n: int) -> int:
        if "file_read" in self.fail:
            return self.fail["file_read"]
        into = _bytes(data, n, "file_read")
        try:
            with open(self.folder / _name(name), "rb") as file:
                file.seek(at)
                got = file.read(n)
        except FileNotFoundError:
            return NOENT
        except OSError:
            return IO
        into[: len(got)] = got
        return len(got)

    def file_write(self, board: int, name: Any, at: int, data: Any, n: int) -> int:
        if "file_write" in self.fail:
            return self.fail["file_write"]
        content = bytes(_bytes(data, n, "file_write"))
        try:
            with open(self.folder / _name(name), "wb" if at == 0 else "r+b") as file:
                file.seek(at)
                file.write(content)
        except FileNotFoundError:
            return NOENT
        except OSError:
            return IO
        return n

    def spend(self, board: int, ticks: int) -> None:
        if self.real_clock:
            time.sleep(ticks / TICK_RATE)
            return
        none = ticks == 0
        while True:
            end = self.now + ticks
            due = [(max(at, self.now), line) for line, at in enumerate(self.due) if at is not None]
            at, line = min(due, default=(end + 1, 0))
            if at > end or (at == end and not none):
                self.now = end
                return
            ticks = end - at
            self.now = at
            self.due[line] = None
            if self.handlers[line] is not None:
                self.handlers[line]()

    def interrupt_at(self, board: int, line: int, ticks: int) -> None:
        ahead = (ticks - self.now) & 0xFFFFFFFF
        self.due[line % LINES] = self.now + (ahead if ahead < 1 << 31 else 0)

    def npu_start(self, board: int, ticket: int, ticks: int, work: Any, n: int) -> int:
        _bytes(work, n, "npu_start")
        if self.npu is not None and self.npu_status(board, self.npu[0]) == INPROGRESS:
            return BUSY
        self.npu = (ticket, self.ticks(board), ticks)
        return 0

    def npu_status(self, board: int, ticket: int) -> int:
        if self.npu is None or self.npu[0] != ticket:
            return NOENT
        passed = (self.ticks(board) - self.npu[1]) & 0xFFFFFFFF
        return INPROGRESS if self.npu_ends is None or passed < self.npu[2] else self.npu_ends

    def _npu_left(self) -> int:
        """Ticks until the accelerator is done; many if it is at nothing, or was found to be done by this function before."""
        if self.npu is None or self.npu_ends is None or self.npu == self._npu_told:
            return 1 << 31
        ticket, since, ticks = self.npu
        passed = (self.ticks(0) - since) & 0xFFFFFFFF
        if passed >= ticks:
            self._npu_told = self.npu
        return max(ticks - passed, 0)

    def npu_reset(self, board: int) -> None:
        self.npu = None

    def npu_counts(self, board: int) -> bool:
        return True

    # What the host calls ---------------------------------------------------------------------------------------------

    def set_npu(self, ends: int | None = 0) -> None:
        """How the accelerator's work ends from now on: a Status number, or never."""
        self.npu_ends = ends

    def advance(self, ticks: int) -> None:
        """Let virtual time pass, without interrupts."""
        self.now += ticks

    def take_console(self) -> bytes:
        """The text written since the last time."""
        text = bytes(self.text)
        self.text.clear()
        return text

    def set_argument(self, text: bytes) -> None:
        self.arguments = bytes(text)

    def set_folder(self, folder: Path) -> None:
        """Where the names of files begin."""
        self.folder = Path(folder)

    def close(self) -> None:
        """Nothing to give back: for likeness with NativeBoard."""


class NativeBoard:
    """One of the boards in a shared library that has hal.c. `ffi` knows CDEF, `lib` is the opened library."""

    def __init__(
        self, ffi: Any, lib: Any, *, real_clock: bool = False, tick_rate: int = TICK_RATE, folder: Path | None = None
    ) -> None:
        self._ffi, self._lib = ffi, lib
        self.number: int = lib.host_open()
        if self.number < 0:
            raise MemoryError("all boards of this library are in use: close one")
        self._now = 0
        self._real = real_clock
        lib.host_clock(self.number, int(real_clock), tick_rate)
        if folder is not None:
            self.set_folder(folder)

    @property
    def now(self) -> int:
        """Virtual ticks, unlimited as long as somebody asks before the counter has wrapped twice."""
        if not self._real:
            self._now += (self._lib.hal_ticks(self.number) - self._now) & 0xFFFFFFFF
        return self._now

    @now.setter
    def now(self, ticks: int) -> None:
        self._now = ticks
        self._lib.host_set_ticks(self.number, ticks & 0xFFFFFFFF)

    @property
    def rate(self) -> int:
        """Ticks a second."""
        return int(self._lib.hal_tick_rate(self.number))

    @rate.setter
    def rate(self, rate: int) -> None:
        self._lib.host_clock(self.number, int(self._real), rate)

    def advance(self, ticks: int) -> None:
        """Let virtual time pass, without interrupts."""
        self.now += ticks

    def wake_up(self) -> None:
        """As the kernel's `wake`, from a program beside it. Nobody sleeps for one that is closed."""
        number = self.number  # another thread may close it just now
        if number >= 0:
            self._lib.hal_wake(number)

    def interrupt(self, line: int, handler: Any, block: Any) -> None:
        """What an interrupt calls: an address of C, and what it is given."""
        self._lib.host_interrupt(self.number, line, handler, block)

    def set_npu(self, ends: int | None = 0) -> None:
        """How the accelerator's work ends from now on: a Status number, or never."""
        self._lib.host_npu(self.number, int(ends is None), ends or 0)

    def take_console(self) -> bytes:
        """The text written since the last time."""
        buffer = self._ffi.new("uint8_t[]", 4096)
        text = b""
        while (n := self._lib.host_take_console(self.number, buffer, 4096)) > 0:
            text += bytes(self._ffi.buffer(buffer, n))
        return text

    def set_argument(self, text: bytes) -> None:
        self._lib.host_set_argument(self.number, text, len(text))

    def set_folder(self, folder: Path) -> None:
        """Where the names of files begin."""
        self._lib.host_set_folder(self.number, str(folder).encode())

    def close(self) -> None:
        """Give the number back."""
        if self.number >= 0:
            self._lib.host_close(self.number)
            self.number = -1
