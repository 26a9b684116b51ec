"""Guarded calls on both boards, in both emulators: whatever the call does, the board comes back and goes on."""

import re

import pytest
from board_program import NUMBER

from synapticos import boards
from synapticos.boards import faults, qemu
from synapticos.emulator import Machine

M33, M3 = "mps2-an521", "lm3s6965evb"
PROGRAM = NUMBER + r"""
typedef struct { uint32_t at, value; uint32_t pad[6]; } block;
extern uint8_t other[], mine[], input[];
uint8_t other[4096] __attribute__((aligned(4096)));
uint8_t mine[4096] __attribute__((aligned(4096)));
uint8_t input[4096] __attribute__((aligned(4096)));
extern const uint32_t constants[2];
const uint32_t constants[2] = {1, 2};
volatile uint32_t zero;
uint32_t __attribute__((noinline)) deep(uint32_t n);
uint32_t __attribute__((noinline)) deep(uint32_t n) { volatile uint32_t x[64]; x[n & 63] = n; return deep(n + 1) + x[n & 63]; }
static void good(uint8_t *p) { block *b = (block *)(void *)p; b->value = mine[0] + input[0]; mine[1] = 7; float f = 0.5f; for (uint32_t i = 0; i < b->at; i++) f = f * 1.5f; b->value += (uint32_t)f; }
static void wild(uint8_t *p) { block *b = (block *)(void *)p; *(volatile uint32_t *)(0x60000000 + b->at) = 1; }
static void null(uint8_t *p) { block *b = (block *)(void *)p; b->value = *(volatile uint32_t *)(uintptr_t)b->at; }
static void theirs(uint8_t *p) { (void)p; other[64] = 1; }
static void beyond(uint8_t *p) { (void)p; for (uint32_t i = 0; i < 8192; i++) ((volatile uint8_t *)mine)[i] = 9; }
static void inputs(uint8_t *p) { (void)p; input[0] = 1; }
static void constant(uint8_t *p) { block *b = (block *)(void *)p; *(volatile uint32_t *)(uintptr_t)&constants[b->at] = 1; }
static void data(uint8_t *p) { (void)p; ((void (*)(void))((uintptr_t)mine | 1))(); }
static void undefined(uint8_t *p) { (void)p; __asm__ volatile("udf #1"); }
static void divide(uint8_t *p) { block *b = (block *)(void *)p; b->value = 70 / b->at; }
static void overflow(uint8_t *p) { (void)p; deep(1); }
static void spin(uint8_t *p) { (void)p; volatile float f = 1.5f; for (;;) f = f * 1.25f; }
static void masked(uint8_t *p) { (void)p; __asm__ volatile("cpsid i"); for (;;) ; }
static void service(uint8_t *p) { (void)p; __asm__ volatile("svc #0"); }
static void control(uint8_t *p) { (void)p; REGISTER(0xE000ED94) = 0; other[64] = 1; }
static void near(uint8_t *p) { block *b = (block *)(void *)p; for (uint32_t i = 0; i < 1000; i++) { b->value += i; if ((i & 3) != 0 && i < 64 + b->at) ((volatile uint8_t *)mine)[256 + i] = 5; } }
static void panic(uint8_t *p) { (void)p; syn_panic(3, 41); }
static uint32_t counts[4];
static uint32_t call(const char *name, void (*work)(uint8_t *), uint32_t at, uint32_t limit) {
    block b = {at, 0, {0}};
    uint32_t fault[FAULT_WORDS] = {0};
    if (work == near) hal_guard_open(0, mine + 256, 64, true);
    else hal_guard_open(0, mine, 4096, true);
    hal_guard_open(0, input, 4096, false);
    uint32_t kind = hal_guard_run(0, work, (uint8_t *)&b, sizeof b, limit, fault);
    counts[kind]++;
    if (name != 0) {
        board_text(name);
        number(" kind", kind);
        if (kind == FAULT_NONE) number("  value", b.value);
        else { number("  line", fault[FAULT_LINE]); number("  causes", fault[FAULT_CAUSES]); number("  address", fault[FAULT_ADDRESS]); number("  pc", fault[FAULT_PC]); }
    }
    return kind;
}
int main(void) {
    uint8_t argument[16] = {0};
    hal_argument(0, argument, 15);
    input[0] = 2; mine[0] = 3;
    call("good", good, 2, 0);
    if (argument[0] == 'n') *(volatile uint32_t *)(0x60000000 + zero) = 1; /* outside of a call: as ever */
    call("wild", wild, 0, 0);
    call("null", null, 0, 0);
    call("theirs", theirs, 0, 0);
    call("beyond", beyond, 0, 0);
    call("inputs", inputs, 0, 0);
    call("constant", constant, 0, 0);
    call("data", data, 0, 0);
    call("undefined", undefined, 0, 0);
    call("divide", divide, 0, 0);
    call("overflow", overflow, 0, 0);
    call("service", service, 0, 0);
    call("control", control, 0, 0);
    mine[320] = 0;
    mine[321] = 0;
    call("inside", near, 0, 0);
    call("near", near, 9, 0);
    number("kept", mine[320] + mine[321]);
    call("panic", panic, 0, 0);
    number("spin kind", call(0, spin, 0, 5000));
    number("masked kind", call(0, masked, 0, 2000));
    call("good", good, 2, 9000);
    number("other", other[64] + other[0]);
    number("mine", mine[1] == 7);
    number("input", input[0]);
    number("masked", hal_critical_enter(0));
    hal_critical_exit(0, 0);
    uint32_t sp, again;
    __asm__ volatile("mov %0, sp" : "=r"(sp));
    for (uint32_t i = 0; i < 100; i++) call(0, (i & 1) != 0 ? wild : overflow, 0, 1000);
    __asm__ volatile("mov %0, sp" : "=r"(again));
    number("stack", sp - again);
    number("faults", counts[FAULT_PROCESSOR]);
    number("idle", (hal_idle(0), hal_idle(0), 1));
    call("good", good, 2, 0);
    return 5;
}
"""


def line_of(name):
    return next(n for n, line in enumerate(PROGRAM.splitlines(), 1) if line.startswith(f"static void {name}("))


@pytest.fixture(scope="module", params=["arm-none-eabi-gcc", "zig"])
def built(request, program_of):
    return lambda name: program_of(PROGRAM, boards.find(name).guarded(), request.param)


def told(text):
    """Name -> the figures of its call."""
    out = {}
    for name, kind, rest in re.findall(r"^(\w+) kind (\d+)\n((?:  .*\n)*)", text, re.MULTILINE):
        out[name] = {"kind": int(kind)} | {k: int(v) for k, v in re.findall(r"  (\w+) (\d+)", rest)}
    return out


def run(built, name, emulator, argument=""):
    board, elf = built(name)
    if emulator == "qemu":
        if why := qemu.missing(board):
            pytest.skip(why)
        return elf, qemu.run(board, elf, argument=argument)
    return elf, Machine(elf, board, argument=argument).run(50_000_000)


@pytest.mark.parametrize("emulator", ["qemu", "own"])
@pytest.mark.parametrize("name", [M33, M3])
def test_whatever_a_guarded_call_does_the_board_goes_on(built, name, emulator):
    elf, result = run(built, name, emulator)
    assert result.code == 5, result.text + result.reason
    calls = told(result.text)
    assert calls.pop("good") == {"kind": 0, "value": 12}  # the last: `beyond` has filled what is its own
    assert calls.pop("panic") == {"kind": 2, "line": 41, "causes": 0, "address": 0, "pc": 0}
    assert calls.pop("spin")["kind"] == 3 and calls.pop("inside")["kind"] == 0
    if (name, emulator) == (M3, "own"):
        calls.pop("null")  # it is read in a page of code
    for each, fault in calls.items():
        assert fault["kind"] == (3 if each == "masked" else 1), each
    lines = result.text.splitlines()
    for line in ("other 0", "mine 1", "input 2", "masked 0", "stack 0", "idle 1", "kept 0"):
        assert line in lines, line
    assert lines.count("good kind 0") == 3


@pytest.mark.parametrize("emulator", ["qemu", "own"])
@pytest.mark.parametrize("name", [M33, M3])
def test_a_fault_has_its_cause_address_and_line(built, name, emulator):
    elf, result = run(built, name, emulator)
    image, calls = faults.Image(elf), told(result.text)
    at = image.symbols
    for each, bit, address in [f for f in (
        ("wild", 1, 0x60000000), ("null", 1, 0), ("theirs", 1, at["other"] + 64), ("beyond", 1, at["mine"] + 4096), ("inputs", 1, at["input"]),
        ("constant", 1, at["constants"]), ("near", 1, at["mine"] + 321), ("undefined", 16, 0), ("divide", 25, 0),
    ) if (name, emulator, f[0]) != (M3, "own", "null")]:  # fmt: skip
        fault = calls[each]
        assert fault["causes"] >> bit & 1, (each, hex(fault["causes"]))
        assert fault["address"] == address, each
        assert image.place(fault["pc"]).line == line_of(each), each
    assert calls["data"]["causes"] & 1 and calls["data"]["pc"] == at["mine"]


def test_outside_of_a_guarded_call_a_fault_stops_the_board_as_ever(built):
    elf, result = run(built, M33, "own", "n")
    assert result.code == 3 and "access that is not allowed, address 0x60000000" in faults.explain(elf, result.text)


@pytest.mark.parametrize("name", [M33, M3])
def test_both_emulators_print_the_same(built, name):
    one, two = (run(built, name, emulator)[1] for emulator in ("qemu", "own"))
    first, second = told(one.text), told(two.text)
    if name == M3:
        # QEMU drops a write to the MPU that is not privileged, and catches the next access; silicon and we the write itself.
        # A null pointer reads the vectors, in a page of code: which passes in ours.
        for each in ("control", "null"):
            first.pop(each), second.pop(each)
    assert first == second
    ends = [[line for line in r.text.splitlines()[-10:] if name == M33 or "faults" not in line] for r in (one, two)]
    assert ends[0] == ends[1]
    assert two.code == one.code
