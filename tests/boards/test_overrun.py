"""A guarded call that overruns an array on its own stack, by any length, up or down: the kernel's part of the stack, its
registers and whatever runs next are as before."""

import re

import pytest
from board_program import NUMBER

from synapticos import boards
from synapticos.boards import qemu
from synapticos.emulator import Machine

BOARDS = ("mps2-an521", "lm3s6965evb")
PROGRAM = NUMBER + r"""
typedef struct { uint32_t from, words, pattern, value; uint32_t x[18]; } block; /* 88 bytes: no multiple of 32 */
extern uint32_t board_stack_bottom[], board_guard_drop[], board_guard_end[];
static uint8_t wide[40000]; /* on the smaller board from behind the stack to beyond the middle of memory */
static void good(uint8_t *p) { block *b = (block *)(void *)p; b->value = b->from * 3 + b->x[17]; }

/* What is written: nothing, noise, addresses of the stack, of code that only the kernel may run, and no address. */
static uint32_t word(uint32_t pattern, uint32_t i) {
    switch (pattern) {
    case 0: return 0;
    case 1: return i * 2654435761u;
    case 2: return (uint32_t)(uintptr_t)board_stack_bottom + 8 * (i & 31);
    case 3: return (uint32_t)(uintptr_t)board_guard_drop | 1;
    case 4: return (uint32_t)(uintptr_t)board_guard_end | 1;
    default: return 0xFFFFFFF0u + (i & 15);
    }
}
static void __attribute__((noinline)) up(uint8_t *p) {
    block *b = (block *)(void *)p;
    volatile uint32_t a[6], *to = a;
    uint32_t n = b->words, pattern = b->pattern;
    __asm__ volatile("" : "+r"(to)); /* the compiler shall not know that there are six */
    for (uint32_t i = 0; i < n; i++) to[i] = word(pattern, i);
}
static void __attribute__((noinline)) down(uint8_t *p) {
    block *b = (block *)(void *)p;
    volatile uint32_t a[6], *to = a;
    uint32_t n = b->words, pattern = b->pattern;
    __asm__ volatile("" : "+r"(to));
    for (uint32_t i = 0; i < n; i++) *to-- = word(pattern, i);
}
/* The kernel's stack, `deep` words deeper: its canaries around the block, its registers, and its mask of interrupts. */
static uint32_t __attribute__((noinline)) run(void (*work)(uint8_t *), uint32_t words, uint32_t pattern, uint32_t deep) {
    volatile uint32_t canary[deep + 1];
    struct { uint32_t before[8]; block b; uint32_t after[8]; } k = {{0}, {7, words, pattern, 0, {0}}, {0}};
    uint32_t fault[FAULT_WORDS] = {0};
    for (uint32_t i = 0; i <= deep; i++) canary[i] = ~i;
    for (uint32_t i = 0; i < 8; i++) k.before[i] = k.after[i] = 0x1234567u + i;
    for (uint32_t i = 0; i < 18; i++) k.b.x[i] = i;
    /* None to three pieces. None where it jumps to the kernel's code: a piece as large opens some of the kernel's state on
       the smaller board, and QEMU lets that code write to the MPU without privilege (nothing happens; silicon faults). */
    for (uint32_t i = pattern; i < 3; i++)
        hal_guard_open(0, wide + i * 32, sizeof wide - i * 64, true);
    uint32_t kind = hal_guard_run(0, work, (uint8_t *)&k.b, sizeof k.b, 0, fault);
    uint32_t bad = 0;
    for (uint32_t i = 0; i <= deep; i++) bad += canary[i] != ~i;
    for (uint32_t i = 0; i < 8; i++) bad += (k.before[i] != 0x1234567u + i) + (k.after[i] != 0x1234567u + i);
    if (kind != FAULT_NONE) { /* the block is as it was */
        bad += k.b.from != 7 || k.b.words != words || k.b.pattern != pattern || k.b.value != 0;
        for (uint32_t i = 0; i < 18; i++) bad += k.b.x[i] != i;
    }
    bad += kind == FAULT_LATE;
    if (bad) { number("words", words); number("pattern", pattern); number("deep", deep); number("kind", kind); number("bad", bad); }
    k.b.x[17] = 17;
    k.b.from = 7;
    if (hal_guard_run(0, good, (uint8_t *)&k.b, sizeof k.b, 0, fault) != FAULT_NONE || k.b.value != 38) number("not good after", words);
    return kind;
}
int main(void) {
    uint8_t argument[16] = {0};
    uint32_t n = hal_argument(0, argument, 15), step = 0, kinds[4] = {0}, runs = 0;
    for (uint32_t i = 0; i < n; i++) step = step * 10 + argument[i] - '0';
    register uint32_t kept __asm__("r9") = 0xCAFE;
    for (uint32_t deep = 0; deep < 150; deep += 37)
        for (uint32_t pattern = 0; pattern < 6; pattern++)
            for (uint32_t words = 1 + (pattern + deep) % step; words < 400; words += step) {
                __asm__ volatile("" : "+r"(kept));
                kinds[run(up, words, pattern, deep)]++;
                kinds[run(down, words * 2, pattern, deep)]++;
                runs += 2;
                if (kept != 0xCAFE) number("r9", words);
            }
    number("runs", runs); number("none", kinds[0]); number("faults", kinds[1] + kinds[2]);
    number("deep up", run(up, 100000, 1, 0)); number("deep down", run(down, 100000, 1, 3));
    number("masked", hal_critical_enter(0));
    return 5;
}
"""


@pytest.fixture(scope="module", params=["arm-none-eabi-gcc", "zig"])
def built(request, program_of):
    return lambda name: program_of(PROGRAM, boards.find(name).guarded(), request.param, flags=("-Wno-vla",))


@pytest.mark.parametrize("emulator", ["qemu", "own"])
@pytest.mark.parametrize("name", BOARDS)
def test_however_far_a_call_overruns_its_stack_the_kernel_s_is_as_before(built, name, emulator):
    board, elf = built(name)
    if emulator == "qemu":
        if why := qemu.missing(board):
            pytest.skip(why)
        result = qemu.run(board, elf, argument="5")
    else:
        result = Machine(elf, board, argument="97").run(50_000_000)
    assert result.code == 5, result.text + result.reason
    told = {k: int(v) for k, v in re.findall(r"^([\w ]+) (\d+)$", result.text, re.MULTILINE)}
    runs = told.pop("runs")
    assert told.pop("none") + told.pop("faults") == runs > 100
    assert told == {"deep up": 1, "deep down": 1, "masked": 0}, result.text
