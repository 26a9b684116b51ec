"""Clock, text, log, note, checksum, regions: the small parts that the rest stands on."""

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from synapticos.engine import Build
from synapticos.kernel.clock import Clock
from synapticos.kernel.crc import crc32
from synapticos.kernel.divide import divide, divide_short
from synapticos.kernel.log import Log
from synapticos.kernel.note import Note
from synapticos.kernel.region import REGION_ARENA, REGIONS, Regions
from synapticos.kernel.status import Status
from synapticos.kernel.text import console_signed, console_unsigned
from synapticos.lang import *

U32 = (1 << 32) - 1


@given(st.binary(max_size=300), st.integers(0, 300))
def test_the_checksum_is_zlibs_and_can_be_continued(engines, data, cut):
    e = engines(crc32)
    cut = min(cut, len(data))
    first = e(crc32, e.array(u8, data[:cut] or b"x"), cut, 0)
    assert e(crc32, e.array(u8, data[cut:] or b"x"), len(data) - cut, first) == zlib.crc32(data)


@given(st.lists(st.integers(0, U32), max_size=20), st.sampled_from([1, 3, 32768, 1_000_000, 12_000_000, 150_000_000, U32]), st.integers(0, U32))
def test_time_is_exact_whatever_the_rate_and_never_wraps(engines, gaps, rate, start):
    e = engines(Clock.start, Clock.update, Clock.us, Clock.to_us, Clock.to_us_up)
    clock = e.new(Clock)
    e(Clock.start, clock, start, rate)
    ticks = 0
    for gap in gaps:
        ticks += gap
        e(Clock.update, clock, (start + ticks) & U32)
        assert (clock.ticks, e(Clock.us, clock)) == (ticks, ticks * 1_000_000 // rate)
    for gap in gaps:
        assert e(Clock.to_us, clock, gap) == min(gap * 1_000_000 // rate, U32)
        assert e(Clock.to_us_up, clock, gap) == min(-(-gap * 1_000_000 // rate), U32)


NUMBERS = [0, 1, 9, 10, 99, 1000, U32, U32 + 1, 10**18, (1 << 64) - 1]


@pytest.mark.parametrize("value", NUMBERS)
def test_numbers_are_written_as_python_writes_them(make, value):
    e = make(console_unsigned, console_signed)
    e.board.take_console()
    for width in (0, 1, 7, 40):
        for zero in (False, True):
            e(console_unsigned, value, width, 10, zero)
            e(console_unsigned, value, width, 16, zero)
            fill = "0" if zero else ""
            assert e.board.take_console().decode() == f"{value:>{fill}{width}}{value:{fill}{width}x}".replace(">0", "0")
        signed = min(value, (1 << 63) - 1)
        e(console_signed, -signed, width)
        assert e.board.take_console().decode() == f"{-signed:>{width}}"
    e(console_signed, -(1 << 63), 0)
    assert e.board.take_console() == b"-9223372036854775808"


def test_the_log_keeps_the_latest(make):
    e = make(Log.write, Log.read, LOG_RECORDS=4)
    log = e.new(Log)
    assert e(Log.read, log, 0) is None
    for i in range(6):
        e(Log.write, log, 3, 100 + i, 1, i, 0, 0, 0)
    e(Log.write, log, 4, 999, 0, 0, 0, 0, 0)  # above LOG_LEVEL
    assert log.written == 6
    assert [None if (r := e(Log.read, log, i)) is None else r.text for i in range(7)] == [None, None, 102, 103, 104, 105, None]


@fn
def refuse_it(note: Note, a: u32, b: i32) -> Status:
    return refuse(note, Status.NOMEM, f"{a} bytes needed, {b} left")


def test_a_refusal_keeps_its_figures(make):
    e = make(refuse_it)
    note = e.new(Note)
    assert e(refuse_it, note, 7, -2) == Status.NOMEM
    assert (note.code, note.count, note.args[0], note.args[1]) == (-12, 2, 7, (1 << 64) - 2)
    text, _ = e.program.texts[note.text]
    assert "bytes needed" in text


@given(st.integers(0, U32), st.integers(0, U32), st.integers(0, 70))
def test_a_region_gives_nothing_outside_itself(engines, at, n, size):
    e = engines(Regions.set, Regions.get)
    regions = e.new(Regions)
    memory = e.array(u8, 64)
    for i, each in enumerate(e.each):
        each(Regions.set, regions.each[i], int(REGION_ARENA), memory.each[i], min(size, 64))
        got = each(Regions.get, regions.each[i], int(REGION_ARENA), at, n)
        assert (got is not None) == (at + n <= min(size, 64))
        assert each(Regions.get, regions.each[i], 2, 0, 0) is None
        assert each(Regions.get, regions.each[i], REGIONS.value({}), 0, 0) is None
        assert each(Regions.get, regions.each[i], U32, 0, 0) is None
        each(Regions.set, regions.each[i], int(REGION_ARENA), None, 64)
        assert each(Regions.get, regions.each[i], int(REGION_ARENA), 0, 0) is None


@given(st.integers(0, (1 << 64) - 1), st.one_of(st.integers(1, U32), st.sampled_from([1, 2, 1 << 31, (1 << 31) + 1, U32])))
def test_long_division_is_exact(engines, n, by):
    e = engines(divide)
    assert e(divide, n, by) == n // by
    assert e(divide, n >> 40, by) == (n >> 40) // by


@given(st.integers(0, (1 << 64) - 1), st.one_of(st.integers(1, 65535), st.sampled_from([1, 10, 16, 65535])))
def test_long_division_by_a_short_number_is_exact(engines, n, by):
    e = engines(divide_short)
    assert e(divide_short, n, by) == n // by


@pytest.mark.parametrize("by", [25, 10_000, 12_500_000, 20_000_000, (1 << 31) - 1, 1 << 31, U32])
def test_a_long_division_costs_the_same_whatever_the_numbers(by):
    e = Build([divide]).engine("cortex-m")
    taken = []
    for n in (1 << 32, 1 << 33, (1 << 40) + 12345, by << 32, (by << 32) - 1, (1 << 64) - 1):
        e(divide, n, by)
        taken.append(e.instructions)
    assert max(taken) <= 110 and max(taken) == min(taken), taken
