"""memcpy and its like, which a compiler calls without being asked, against Python's slices."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapticos import toolchain
from synapticos.boards import bare
from synapticos.emulator import Core

PROGRAM = """
#include <stddef.h>
#include <stdint.h>
void *memcpy(void *, const void *, size_t); void *memmove(void *, const void *, size_t);
void *memset(void *, int, size_t); int memcmp(const void *, const void *, size_t);
typedef struct { uint32_t to, from, n; int32_t out; } args;
#define P(x) ((void *)(uintptr_t)(x))
void copy(args *p) { p->out = memcpy(P(p->to), P(p->from), p->n) == P(p->to); }
void move(args *p) { p->out = memmove(P(p->to), P(p->from), p->n) == P(p->to); }
void set(args *p) { p->out = memset(P(p->to), (int)p->from, p->n) == P(p->to); }
void compare(args *p) { p->out = memcmp(P(p->to), P(p->from), p->n); }
"""
FUNCTIONS = ("copy", "move", "set", "compare")
SIZE = 256
places, lengths = st.integers(0, 100), st.one_of(st.integers(0, 150), st.sampled_from([31, 32, 33, 63, 64, 65, 128]))


@pytest.fixture(scope="module", params=["arm-none-eabi-gcc", "zig"])
def core(request, tmp_path_factory):
    chains = {c.name: c for c in toolchain.find_all("cortex-m33")}
    if request.param not in chains:
        pytest.skip(f"{request.param} is not installed")
    folder, chain = tmp_path_factory.mktemp(request.param), chains[request.param]
    (folder / "program.c").write_text(PROGRAM)
    (folder / "bare.ld").write_text(bare.script())
    sources = [folder / "program.c", *bare.SOURCES]
    objects = chain.compile(sources, folder, ["-O2", "-fno-builtin"], per_file=bare.PER_FILE)
    core = Core(chain.link(objects, folder / "program.elf", script=folder / "bare.ld", keep=FUNCTIONS))
    core.block, core.memory = core.alloc(16), core.alloc(SIZE)
    return core


def call(core, name, a, b, n):
    core.write(core.block, struct.pack("<IIIi", a, b, n, 0))
    ran = core.call(name, core.block)
    return struct.unpack("<IIIi", core.read(core.block, 16))[3], ran


@given(places, places, lengths)
def test_moving_may_overlap(core, to, start, n):
    content = bytearray((i * 37) & 255 for i in range(SIZE))
    core.write(core.memory, content)
    assert call(core, "move", core.memory + to, core.memory + start, n)[0] == 1
    content[to : to + n] = content[start : start + n]
    assert core.read(core.memory, SIZE) == content


@given(st.integers(0, 7), st.integers(0, 7), st.integers(0, 110))
def test_copying_moves_these_bytes_and_no_other(core, to, start, n):
    content = bytearray((i * 91) & 255 for i in range(SIZE))
    core.write(core.memory, content)
    assert call(core, "copy", core.memory + to, core.memory + 128 + start, n)[0] == 1
    content[to : to + n] = content[128 + start : 128 + start + n]
    assert core.read(core.memory, SIZE) == content


@given(places, st.integers(-1, 300), lengths)
def test_setting_sets_these_bytes_and_no_other(core, to, value, n):
    content = bytearray((i * 91) & 255 for i in range(SIZE))
    core.write(core.memory, content)
    assert call(core, "set", core.memory + to, value & 0xFFFFFFFF, n)[0] == 1
    content[to : to + n] = bytes((value & 255,)) * n
    assert core.read(core.memory, SIZE) == content


@given(st.binary(min_size=0, max_size=40), st.binary(min_size=0, max_size=40))
def test_comparing_orders_as_unsigned_bytes(core, a, b):
    n = min(len(a), len(b))
    core.write(core.memory, a)
    core.write(core.memory + 100, b)
    got = call(core, "compare", core.memory, core.memory + 100, n)[0]
    assert (got > 0) - (got < 0) == (a[:n] > b[:n]) - (a[:n] < b[:n])


def test_a_byte_costs_a_fraction_of_an_instruction(core):
    for name in ("copy", "set"):
        less = call(core, name, core.memory, core.memory + 128, 32)[1]
        more = call(core, name, core.memory, core.memory + 128, 128)[1]
        assert more - less <= 0.25 * 96
