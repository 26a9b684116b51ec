"""The emulated core, by small C programs from each compiler that is installed."""

import struct

import pytest

from synapticos import toolchain
from synapticos.boards import bare
from synapticos.emulator import Core, Exited, Fault, Panic

PROGRAM = r"""
#include <stdint.h>
#include <stddef.h>
void syn_panic(uint32_t, uint32_t);
uint32_t hal_ticks(uint32_t);
void hal_console(uint32_t, const uint8_t *, uint32_t);
void hal_exit(uint32_t, int32_t);
void *memset(void *, int, size_t);
typedef struct { uint32_t a, b; uint64_t c; int32_t d; float f; } args;
static uint32_t kept = 7;
static const uint8_t rom[4] = {1, 2, 3, 4};
void add(args *p) { p->c = (uint64_t)p->a + p->b; }
void divide(args *p) { p->d = (int32_t)p->a / (int32_t)p->b; p->a = p->a / p->b; }
void maybe(args *p) { if ((int32_t)p->b < 5) p->a = p->a / p->b; else p->a = 77; p->b = (int32_t)p->b < 5 ? 1 : 2; }
void divide64(args *p) { p->c = p->c / p->b; }
void average(args *p) { p->f = (p->f + 1.0f) / 3.0f; }
void keep(args *p) { kept += p->a; p->b = kept; }
void load(args *p) { p->b = *(volatile uint32_t *)(uintptr_t)p->a; }
void store(args *p) { *(volatile uint32_t *)(uintptr_t)p->a = p->b; }
void patch(args *p) { *(volatile uint8_t *)(uintptr_t)&rom[p->a & 3] = 9; }
void jump(args *p) { ((void (*)(void))(uintptr_t)(p->a | 1))(); p->b = 1; }
void undefined(args *p) { (void)p; __asm__ volatile("udf #7"); }
void panic(args *p) { syn_panic(p->a, p->b); }
void leave(args *p) { hal_exit(0, (int32_t)p->a); }
void say(args *p) { p->a = hal_ticks(0); hal_console(0, (const uint8_t *)"hello", 5); }
void spin(args *p) { for (;;) p->a++; }
void wait(args *p) { (void)p; __asm__ volatile("wfi"); }
uint32_t deep(uint32_t n);
uint32_t __attribute__((noinline)) deep(uint32_t n) { volatile uint32_t x[64]; x[n & 63] = n; return deep(n + 1) + x[n & 63]; }
void overflow(args *p) { p->b = deep(p->a); }
void loop(args *p) { uint32_t a = 1; for (uint32_t i = 0; i < p->a; i++) { a = a * 1664525u + 1013904223u; a ^= a >> 7; } p->b = a; }
#line 34 "synapticos/kernel/job.py"
void python(args *p) { p->a = *(volatile uint32_t *)(uintptr_t)(p->b + 8); }
#line 40 "doorbell.py"
void stage(args *p) { p->a = *(volatile uint32_t *)(uintptr_t)(p->b + 8); }
#line 100 "program.c"
void clear(args *p) { memset((void *)(uintptr_t)p->a, 3, p->b); }
"""
FUNCTIONS = (
    "python stage add divide maybe divide64 average keep load store patch jump undefined panic leave say spin wait overflow loop clear"
).split()
ARGS = struct.Struct("<IIQif")
LINES = {name: n for n, line in enumerate(PROGRAM.splitlines(), 1) for name in FUNCTIONS if f"void {name}(args" in line}


def build(chain: toolchain.Toolchain, folder) -> Core:
    source = folder / "program.c"
    source.write_text(PROGRAM)
    script = folder / "bare.ld"
    script.write_text(bare.script())
    flags = ["-O2", "-g", "-Wno-infinite-recursion", "-Wno-unknown-warning-option", "-Wno-cast-qual"]
    objects = chain.compile([source, *bare.SOURCES], folder, flags, per_file=bare.PER_FILE)
    return Core(chain.link(objects, folder / "program.elf", script=script, keep=FUNCTIONS))


CHAINS = toolchain.find_all("cortex-m33")


@pytest.fixture(scope="module", params=["arm-none-eabi-gcc", "zig"])
def core(request, tmp_path_factory):
    for chain in CHAINS:
        if chain.name == request.param:
            return build(chain, tmp_path_factory.mktemp(request.param))
    pytest.skip(f"{request.param} is not installed")


@pytest.fixture
def call(core):
    core.reset()
    block = core.alloc(ARGS.size)

    def run(name, a=0, b=0, c=0, d=0, f=0.0):
        core.write(block, ARGS.pack(a, b, c, d, f))
        run.instructions = core.call(name, block)
        return ARGS.unpack(core.read(block, ARGS.size))

    yield run
    core.free(block)


def test_arguments_and_results_go_through_the_block(call):
    assert call("add", 0xFFFFFFFF, 2)[2] == 0x100000001


def test_an_address_is_as_good_as_a_name(core):
    block = core.alloc(ARGS.size)
    core.write(block, ARGS.pack(1, 2, 0, 0, 0))
    core.call(core.symbols["add"], block)
    assert ARGS.unpack(core.read(block, ARGS.size))[2] == 3


@pytest.mark.parametrize("a, b", [(7, 2), (-7, 2), (7, -2), (-7, -2), (0, 5), (-(2**31), 3), (-(2**31), -1), (5, 7)])
def test_division_is_that_of_the_processor(call, a, b):
    got = call("divide", a & 0xFFFFFFFF, b & 0xFFFFFFFF)
    q = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    assert got[3] & 0xFFFFFFFF == q & 0xFFFFFFFF
    assert got[0] == (a & 0xFFFFFFFF) // (b & 0xFFFFFFFF)


@pytest.mark.parametrize("b, want", [(3, (33, 1)), (9, (77, 2))])
def test_division_under_a_condition_does_only_its_own_arm(call, b, want):
    assert call("maybe", 100, b)[:2] == want


def test_division_of_64_bits_comes_with_the_compiler(call):
    assert call("divide64", b=7, c=10**15)[2] == 10**15 // 7


@pytest.mark.parametrize("name", ["divide", "maybe"])
def test_division_by_zero_faults_at_its_line(call, name):
    with pytest.raises(Fault) as caught:
        call(name, 5, 0)
    assert (caught.value.kind, caught.value.symbol, caught.value.line) == ("division by zero", name, LINES[name])
    assert caught.value.file.endswith("program.c")
    assert call("add", 1, 2)[2] == 3  # and the core goes on


def test_floats_are_single_precision(call):
    want = struct.unpack("<f", struct.pack("<f", (0.5 + 1.0) / 3.0))[0]
    assert call("average", f=0.5)[4] == want


def test_variables_start_with_their_values_and_stay_until_reset(core, call):
    assert call("keep", 1)[1] == 8
    assert call("keep", 1)[1] == 9
    core.reset()
    assert call("keep", 0)[1] == 7


@pytest.mark.parametrize(
    "name, a, kind",
    [
        ("load", 0, "read of unmapped memory"),
        ("load", 0x50000000, "read of unmapped memory"),
        ("store", 4, "write to unmapped memory"),
        ("store", 0x10000000, "write to read-only memory"),
        ("jump", 0x60000000, "jump to unmapped memory"),
    ],
)
def test_a_wrong_access_faults_with_its_address(call, name, a, kind):
    with pytest.raises(Fault) as caught:
        call(name, a)
    assert (caught.value.kind, caught.value.address) == (kind, a)
    if name != "jump":
        assert (caught.value.symbol, caught.value.line) == (name, LINES[name])


def test_constants_cannot_be_written(call):
    with pytest.raises(Fault, match="write to read-only memory"):
        call("patch", 2)


def test_a_jump_to_null_is_a_fault(call):
    with pytest.raises(Fault, match="jump to"):
        call("jump", 0)


def test_an_undefined_instruction_faults(call):
    with pytest.raises(Fault, match="undefined instruction.*in undefined"):
        call("undefined")


def test_a_stack_that_overflows_leaves_the_memory(call):
    with pytest.raises(Fault, match="unmapped memory.*in deep"):
        call("overflow")


def test_a_wait_for_an_interrupt_is_a_fault_here(call):
    with pytest.raises(Fault, match="interrupt"):
        call("wait")


def test_a_panic_brings_its_file_and_line(call):
    with pytest.raises(Panic) as caught:
        call("panic", 3, 41)
    assert (caught.value.file_id, caught.value.line) == (3, 41)
    assert str(caught.value) == "panic: file 3 line 41"


@pytest.mark.parametrize("code", [0, 3, -5])
def test_an_exit_brings_its_code(call, code):
    with pytest.raises(Exited) as caught:
        call("leave", code & 0xFFFFFFFF)
    assert caught.value.code == code


def test_console_and_ticks_are_the_hosts(core, call):
    core.ticks = 123
    assert call("say")[0] == 123
    assert core.take_console() == b"hello"
    assert core.take_console() == b""


def test_instructions_are_counted_exactly(core, call):
    def cost(n):
        call("loop", n)
        return call.instructions

    once = cost(11) - cost(10)
    assert once == 5 or core.symbols  # the loop's body, whatever the compiler made of it
    assert cost(1000) - cost(999) <= 8
    assert len({cost(50) for _ in range(3)}) == 1
    before = core.instructions
    assert cost(5) == core.instructions - before


def test_divisions_count_as_one_instruction(call):
    call("divide", 100, 7)
    first = call.instructions
    call("divide", 1, 1)
    assert call.instructions == first < 20


def test_a_call_without_end_stops_at_its_limit(core, call, monkeypatch):
    monkeypatch.setattr("synapticos.emulator.core.SLICE", 1000)
    monkeypatch.setattr(core, "limit", 10_000)
    with pytest.raises(Fault, match="no end after 10... instructions"):
        call("spin")


@pytest.mark.parametrize("size", [2, 3, 7, 1000])
def test_slices_change_neither_results_nor_counts(core, call, monkeypatch, size):
    want, ran = call("loop", 500), None
    ran = call.instructions
    monkeypatch.setattr("synapticos.emulator.core.SLICE", size)
    assert call("loop", 500) == want
    assert call.instructions == ran
    assert call("maybe", 100, 3)[:2] == (33, 1)
    assert call("maybe", 100, 9)[:2] == (77, 2)


def test_memory_is_shared_filled_and_reused(core, call):
    at = core.alloc(100, 64, fill=0xA5)
    assert at % 64 == 0 and core.read(at, 100) == b"\xa5" * 100
    view = core.view(at, 100)
    call("clear", at + 1, 98)
    assert bytes(view) == b"\xa5" + b"\x03" * 98 + b"\xa5"
    core.free(at)
    assert core.alloc(100, 64) == at
    assert core.read(at, 100) == bytes(100)
    core.free(at)


def test_memory_that_is_not_there_is_an_error_of_the_caller(core):
    with pytest.raises(IndexError):
        core.read(0x12345678 << 2, 4)
    with pytest.raises(MemoryError):
        core.alloc(1 << 30)


@pytest.mark.parametrize("name, file, line", [("python", "synapticos/kernel/job.py", 34), ("stage", "doorbell.py", 40)])
def test_a_fault_names_the_file_that_the_c_was_made_of(call, name, file, line):
    with pytest.raises(Fault) as caught:
        call(name)
    assert (caught.value.file, caught.value.line, caught.value.address) == (file, line, 8)
