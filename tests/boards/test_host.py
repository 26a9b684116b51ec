"""The host as a board: the Python one and the C one answer alike."""

import functools
import threading

import cffi
import pytest

from synapticos import toolchain
from synapticos.boards.host import CDEF, SOURCES, HostBoard, HostExit, NativeBoard

COMPILERS = ["gcc", "clang", "zig"]
MORE = """
void hal_console(uint32_t, const uint8_t *, uint32_t);
uint32_t hal_critical_enter(uint32_t);
void hal_critical_exit(uint32_t, uint32_t);
void hal_idle(uint32_t);
void hal_spend(uint32_t, uint32_t);
void hal_wake_at(uint32_t, uint32_t);
void hal_interrupt_at(uint32_t, uint32_t, uint32_t);
uint32_t hal_argument(uint32_t, uint8_t *, uint32_t);
int32_t hal_file_read(uint32_t, const uint8_t *, uint32_t, uint8_t *, uint32_t);
int32_t hal_file_write(uint32_t, const uint8_t *, uint32_t, const uint8_t *, uint32_t);
"""
PROGRAM = """
#include <stdint.h>
void syn_panic(uint32_t, uint32_t) __attribute__((noreturn));
void hal_exit(uint32_t, int32_t);
uint32_t hal_critical_enter(uint32_t);
void hal_critical_exit(uint32_t, uint32_t);
int32_t host_call(void (*)(void *), void *, uint32_t *, uint32_t);
void good(void *p); void bad(void *p); void leave(void *p); void count(void *p); void nested(void *p);
void hal_wake(uint32_t); void hal_idle(uint32_t); void hal_wake_at(uint32_t, uint32_t); uint32_t hal_ticks(uint32_t);
void relay(void *p);
/* p: board, its turn, turns in all, threads, next number, sleeps that lasted though it was the thread's turn, when the turn was given. */
void relay(void *p) {
    volatile uint32_t *w = p;
    uint32_t board = w[0], mine = __atomic_fetch_add(&w[4], 1, __ATOMIC_SEQ_CST);
    for (;;) {
        uint32_t turn = __atomic_load_n(&w[1], __ATOMIC_SEQ_CST);
        if (turn >= w[2]) return;
        if (turn % w[3] == mine) {
            w[6] = hal_ticks(board);
            uint32_t state = turn % 2 ? hal_critical_enter(board) : 1;
            __atomic_store_n(&w[1], turn + 1, __ATOMIC_SEQ_CST);
            hal_wake(board);
            hal_critical_exit(board, state);
            continue;
        }
        uint32_t began = hal_ticks(board);
        hal_wake_at(board, began + 20000);
        hal_idle(board);
        turn = __atomic_load_n(&w[1], __ATOMIC_SEQ_CST);
        if (turn % w[3] == mine && turn < w[2] && hal_ticks(board) - began >= 20000 && hal_ticks(board) - w[6] >= 10000)
            __atomic_fetch_add(&w[5], 1, __ATOMIC_SEQ_CST);
    }
}
void good(void *p) { *(uint32_t *)p += 1; }
void bad(void *p) { *(uint32_t *)p += 1; syn_panic(3, 41); }
void leave(void *p) { (void)p; hal_exit(0, -7); }
void nested(void *p) { uint32_t told[2]; *(uint32_t *)p = (uint32_t)host_call(bad, p, told, 0); if (told[1] == 41) syn_panic(5, 6); }
void count(void *p) {
    volatile uint32_t *n = p;
    for (uint32_t i = 0; i < 20000; i++) {
        uint32_t s = hal_critical_enter(0), t = hal_critical_enter(0);
        *n = *n + 1;
        hal_critical_exit(0, t); hal_critical_exit(0, s);
    }
}
"""


class Native(NativeBoard):
    """NativeBoard with the contract's functions as methods."""

    def __init__(self, ffi, lib, **options):
        super().__init__(ffi, lib, **options)
        for name in ("ticks", "tick_rate", "console", "critical_enter", "critical_exit", "wake", "wake_at", "idle", "spend", "interrupt_at"):
            setattr(self, name, getattr(lib, f"hal_{name}"))

        def buffers(function):
            return lambda *a: function(*(ffi.from_buffer("uint8_t[]", x) if isinstance(x, bytearray) else x for x in a))

        for name in ("argument", "file_read", "file_write"):
            setattr(self, name, buffers(getattr(lib, f"hal_{name}")))


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A function: the library by a compiler's name, opened, each built once."""

    @functools.cache
    def build(name):
        chains = {c.name: c for c in toolchain.find_all("host")}
        if name not in chains:
            pytest.skip(f"{name} is not installed")
        folder = tmp_path_factory.mktemp(name)
        (folder / "program.c").write_text(PROGRAM)
        out = chains[name].shared([folder / "program.c", *SOURCES], folder / "host.so")
        ffi = cffi.FFI()
        ffi.cdef(CDEF + MORE + "".join(f"void {n}(void *);" for n in ("good", "bad", "leave", "count", "nested", "relay")))
        return ffi, ffi.dlopen(str(out))

    return build


@pytest.fixture(params=COMPILERS)
def library(request, built):
    return built(request.param)


@pytest.fixture(params=["checked", *COMPILERS])
def make(request, built):
    made = []

    def new(**options):
        board = HostBoard(**options) if request.param == "checked" else Native(*built(request.param), **options)
        made.append(board)
        return board

    yield new
    for board in made:
        board.close()


def number(board):
    return getattr(board, "number", 0)


def test_virtual_time_moves_when_it_is_moved_and_wraps(make):
    board = make(tick_rate=1000)
    n = number(board)
    assert (board.ticks(n), board.tick_rate(n)) == (0, 1000)
    board.idle(n)
    board.advance(2**32 + 5)
    assert board.ticks(n) == 5


def test_real_time_is_in_microseconds_and_idle_ends_by_itself(make):
    board = make(real_clock=True, tick_rate=1000)
    n = number(board)
    before = board.ticks(n)
    board.idle(n)
    assert board.tick_rate(n) == 1_000_000
    assert 900 <= (board.ticks(n) - before) % 2**32 < 500_000
    board.wake(n)
    board.idle(n)


def test_an_interrupt_of_no_device_comes_once_when_its_time_is_spent(make):
    board = make()
    n = number(board)
    board.now = 0xFFFFFFF0
    came = []

    def listen(line, what):
        if isinstance(board, HostBoard):
            board.handlers[line] = what
        else:
            kept.append(board._ffi.callback("void(void *)", lambda block: (what(), None)[1]))
            board.interrupt(line, kept[-1], board._ffi.NULL)

    def again():
        came.append(("again", board.now))
        if len(came) < 3:
            board.interrupt_at(n, 2, (board.now + 7) & 0xFFFFFFFF)

    kept = []
    listen(0, lambda: (came.append(("slow", board.now)), board.spend(n, 100)))
    listen(2, again)
    board.interrupt_at(n, 2, 0xFFFFFFF5)
    board.interrupt_at(n, 0, 30)
    board.interrupt_at(n, 0, 4)  # moved
    board.interrupt_at(n, 1, 6)  # nobody listens
    board.spend(n, 4)
    assert came == []
    board.spend(n, 16)
    at = 0xFFFFFFF0
    assert came[-1] == ("again", at + 19) and board.now == at + 20  # what is due now comes with the next ticks
    board.spend(n, 0)
    assert came == [("again", at + 5), ("again", at + 12), ("again", at + 19), ("slow", at + 20)]
    assert board.now == at + 120
    board.interrupt_at(n, 2, (at + 50) & 0xFFFFFFFF)  # passed: at once
    board.spend(n, 1)
    assert came[-1] == ("again", at + 120) and board.now == at + 121


def test_boards_share_nothing(make):
    one, two = make(), make()
    one.advance(7)
    one.console(number(one), b"one", 3)
    one.set_argument(b"x")
    assert two.ticks(number(two)) == 0
    assert two.take_console() == b""
    assert two.argument(number(two), bytearray(4), 4) == 0
    assert one.take_console() == b"one" and one.take_console() == b""


def test_the_argument_is_cut_to_the_buffer_and_its_length_is_told(make):
    board = make()
    board.set_argument(b"photo.ppm")
    buffer = bytearray(b"........")
    assert board.argument(number(board), buffer, 5) == 9
    assert bytes(buffer) == b"photo..."


def test_files_are_read_and_written_at_an_offset(make, tmp_path):
    board = make(folder=tmp_path)
    n = number(board)
    name, buffer = bytearray(b"a.bin\0"), bytearray(8)
    assert board.file_read(n, name, 0, buffer, 8) == -2
    assert board.file_write(n, name, 4, buffer, 4) == -2  # no file to go on with
    assert board.file_write(n, name, 0, bytearray(b"0123456789"), 10) == 10
    assert board.file_write(n, name, 3, bytearray(b"ab"), 2) == 2
    assert (tmp_path / "a.bin").read_bytes() == b"012ab56789"
    assert board.file_read(n, name, 2, buffer, 4) == 4 and bytes(buffer[:4]) == b"2ab5"
    assert board.file_read(n, name, 8, buffer, 8) == 2
    assert board.file_read(n, name, 99, buffer, 8) == 0
    assert board.file_write(n, name, 0, bytearray(b"z"), 1) == 1
    assert (tmp_path / "a.bin").read_bytes() == b"z"


def test_a_checked_board_never_reads_past_a_buffer(tmp_path):
    board = HostBoard(folder=tmp_path)
    with pytest.raises(IndexError):
        board.console(0, b"abc", 4)
    with pytest.raises(IndexError):
        board.file_write(0, b"no end", 0, b"abc", 3)
    with pytest.raises(HostExit) as caught:
        board.exit(0, 7)
    assert caught.value.code == 7


def test_a_checked_board_fails_on_request(tmp_path):
    board = HostBoard(folder=tmp_path)
    board.fail["file_write"] = -5
    assert board.file_write(0, b"a\0", 0, b"abc", 3) == -5
    del board.fail["file_write"]
    assert board.file_write(0, b"a\0", 0, b"abc", 3) == 3


def test_a_native_panic_or_exit_comes_back_to_the_caller(library):
    ffi, lib = library
    block, told = ffi.new("uint32_t[1]"), ffi.new("uint32_t[2]")
    call = lambda name: lib.host_call(ffi.cast("void *", getattr(lib, name)), block, told, 0)
    assert call("good") == 0
    assert call("bad") == 1 and list(told) == [3, 41]
    assert call("leave") == 2 and ffi.cast("int32_t", told[0]) == -7
    assert call("good") == 0 and block[0] == 3
    assert call("nested") == 1 and list(told) == [5, 6]


def test_a_native_critical_section_keeps_other_threads_out(library):
    ffi, lib = library
    block = ffi.new("uint32_t[1]")
    threads = [threading.Thread(target=lib.count, args=(block,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert block[0] == 60000


@pytest.mark.parametrize("threads", [2, 5])
def test_a_wake_reaches_every_native_sleeper_wherever_it_falls(library, threads):
    """Threads hand on a turn, each woken by the one before; a wake that got lost would make them sleep their time out."""
    ffi, lib = library
    board = NativeBoard(ffi, lib, real_clock=True)
    words = ffi.new("uint32_t[7]", [board.number, 0, 4000, threads, 0, 0, 0])
    started = [threading.Thread(target=lib.relay, args=(words,)) for _ in range(threads)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join(60)
        assert not thread.is_alive()
    assert words[5] <= 4  # the machine may have had no time for a thread
    board.close()


def test_each_native_thread_has_its_own_alarm_and_its_own_wakes(library):
    ffi, lib = library
    board = NativeBoard(ffi, lib, real_clock=True)
    n = board.number

    def sleep(us):
        start = lib.hal_ticks(n)
        lib.hal_wake_at(n, (start + us) % 2**32)
        lib.hal_idle(n)
        return (lib.hal_ticks(n) - start) % 2**32

    def in_thread(call):
        got = []
        thread = threading.Thread(target=lambda: got.append(call()))
        thread.start()
        thread.join()
        return got[0]

    sleep(100)
    assert sleep(3000) >= 3000
    assert sleep(2**31 - 1) >= 20000  # no sleep is longer than that
    lib.hal_wake(n)
    in_thread(lambda: (sleep(3000), sleep(3000)))  # takes nothing from this one
    assert min(sleep(19000), (lib.hal_wake(n), sleep(19000))[1]) < 19000
    lib.hal_wake_at(n, (lib.hal_ticks(n) + 19000) % 2**32)
    in_thread(lambda: lib.hal_idle(n))  # uses up no alarm of others
    start = lib.hal_ticks(n)
    lib.hal_idle(n)
    assert (lib.hal_ticks(n) - start) % 2**32 > 2000
    board.close()


def test_native_boards_run_out_and_come_back(library):
    ffi, lib = library
    boards = []
    with pytest.raises(MemoryError):
        for _ in range(65):
            boards.append(NativeBoard(ffi, lib))
    boards.pop().close()
    boards.append(NativeBoard(ffi, lib))
    for board in boards:
        board.close()
