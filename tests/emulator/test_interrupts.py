"""Interrupts of the in-process board: taken when they may be, nested by priority, floats kept; as in QEMU."""

import pytest

from synapticos import boards, toolchain
from synapticos.boards import firmware, qemu
from synapticos.boards.board import HERE
from synapticos.emulator import Machine

PROGRAM = r"""
#include "chip.h"
#define VTOR REGISTER(0xE000ED08)
#define SHPR3 REGISTER(0xE000ED20)
#define ENABLE REGISTER(0xE000E100)
#define PEND REGISTER(0xE000E200)
#define PRIORITY REGISTER(0xE000E400)
#define TIMER_CONTROL REGISTER(0x50001000)
#define TIMER_RELOAD REGISTER(0x50001008)
#define TIMER_CLEAR REGISTER(0x5000100C)
static void say(const char *name, uint32_t v) {
    char b[11];
    int i = 10;
    b[10] = 0;
    do { b[--i] = (char)('0' + v % 10); v /= 10; } while (v);
    board_text(name); board_text(" "); board_text(b + i); board_text("\n");
}
static uint32_t table[64] __attribute__((aligned(512)));
static volatile uint32_t ticks, order, number;
static volatile float noise;
static void tick(void) { ticks++; noise = noise * 1.5f + 2.0f; if (noise > 1000.0f) noise = 1.0f; }
static void pendsv(void) {
    order = order * 10 + 1;
    PEND = 1u << 7; /* more urgent: comes in here */
    __asm__ volatile("dsb\n isb");
    order = order * 10 + 2;
    PEND = 1u << 8; /* less urgent: comes when this is done */
    __asm__ volatile("dsb\n isb");
    order = order * 10 + 3;
}
static void urgent(void) { uint32_t n; __asm__ volatile("mrs %0, ipsr" : "=r"(n)); number = n; order = order * 10 + 7; noise += 1.0f; }
static void patient(void) { order = order * 10 + 8; }
static void service(void) { order = order * 10 + 4; }
int main(void) {
    const uint32_t *old = (const uint32_t *)BOARD_FLASH;
    for (uint32_t i = 0; i < 16; i++) table[i] = old[i];
    table[11] = (uint32_t)(uintptr_t)service;
    table[14] = (uint32_t)(uintptr_t)pendsv;
    table[15] = (uint32_t)(uintptr_t)tick;
    table[16 + 7] = (uint32_t)(uintptr_t)urgent;
    table[16 + 8] = (uint32_t)(uintptr_t)patient;
    VTOR = (uint32_t)(uintptr_t)table;
    SHPR3 = 0x80800000; /* SysTick and PendSV in the middle */
    REGISTER(0xE000E404) = 0x20000000; /* 7 above them */
    REGISTER(0xE000E408) = 0x000000C0; /* 8 below */
    ENABLE = 3u << 7;
    uint32_t state = hal_critical_enter(0);
    ICSR = 1u << 28;
    __asm__ volatile("dsb\n isb");
    say("masked", order);
    hal_critical_exit(0, state);
    __asm__ volatile("isb");
    say("order", order);
    say("number", number);
    order = 0;
    __asm__ volatile("svc #0");
    say("service", order);
    SYSTICK_RELOAD = 199;
    SYSTICK_VALUE = 0;
    SYSTICK_CONTROL = 7;
    float sum = 0.0f;
    for (uint32_t i = 0; i < 20000; i++) { sum = sum * 0.5f + (float)i; __asm__ volatile("" : "+t"(sum)); }
    SYSTICK_CONTROL = 0;
    say("sum", (uint32_t)sum);
    say("interrupted", ticks > 100);
    PEND = 1u << 9;
    say("not enabled", ticks > 100);
    return 0;
}
"""
WANT = "masked 0\norder 17238\nnumber 23\nservice 4\nsum 39996\ninterrupted 1\nnot enabled 1\n"


@pytest.fixture(scope="module", params=["arm-none-eabi-gcc", "zig"])
def elf(request, tmp_path_factory):
    chains = {c.name: c for c in toolchain.find_all("cortex-m33")}
    if request.param not in chains:
        pytest.skip(f"{request.param} is not installed")
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "program.c").write_text(PROGRAM)
    flags = ["-O2", "-g", f"-I{HERE / 'cortex_m'}", *boards.find("mps2-an521").flags]
    return firmware.build(
        boards.find("mps2-an521"), [folder / "program.c"], folder / "fw.elf", chain=chains[request.param], flags=flags
    )


def test_interrupts_come_in_order_and_keep_floats(elf):
    result = Machine(elf, boards.find("mps2-an521")).run(10_000_000)
    assert (result.text, result.code, result.reason) == (WANT, 0, "")


def test_interrupts_are_the_same_in_qemu(elf):
    if why := qemu.missing():
        pytest.skip(why)
    assert qemu.run(boards.find("mps2-an521"), elf).text == WANT
