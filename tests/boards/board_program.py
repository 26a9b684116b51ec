"""A small C program that uses all of a board, for tests: what it does last is chosen by its argument."""

NUMBER = r"""
#include "chip.h"
static void number(const char *name, uint32_t v) {
    char b[11];
    int i = 10;
    b[10] = 0;
    do { b[--i] = (char)('0' + v % 10); v /= 10; } while (v);
    board_text(name); board_text(" "); board_text(b + i); board_text("\n");
}
"""
PROGRAM = NUMBER + r"""
static int is(const uint8_t *a, const char *b) { while (*a && *a == (uint8_t)*b) { a++; b++; } return *a == (uint8_t)*b; }
uint32_t counted = 41;
volatile uint32_t zero, worked;
static const uint32_t constants[2] = {1, 2};
uint32_t deep(uint32_t n);
uint32_t __attribute__((noinline)) deep(uint32_t n) { volatile uint32_t x[64]; x[n & 63] = n; return deep(n + 1) + x[n & 63]; }
uint32_t __attribute__((noinline)) work(uint32_t n);
uint32_t __attribute__((noinline)) work(uint32_t n) { uint32_t a = n; for (uint32_t i = 0; i < n; i++) { a = a * 1664525u + 1013904223u; a ^= a >> 7; } worked = a; return a; }
static void __attribute__((noinline)) divide(void) { number("quotient", 70 / zero); }
static void __attribute__((noinline)) null(void) { *(volatile uint32_t *)(uintptr_t)zero = 1; }
static void __attribute__((noinline)) times(void) { /* so that no register shows a time afterwards */
    uint32_t t = hal_ticks(0);
    number("work", work(1000));
    t = hal_ticks(0) - t;
    number("took at least", t / 1000 * 1000);
    t = hal_ticks(0);
    hal_wake(0); hal_idle(0);
    number("slept when woken", hal_ticks(0) - t > 1000);
    t = hal_ticks(0);
    for (uint32_t i = 0; i < 3; i++) hal_idle(0);
    t = (hal_ticks(0) - t) * 1000ull / hal_tick_rate(0);
    number("slept", t >= 2 && t <= 7);
    uint32_t state = hal_critical_enter(0), inner = hal_critical_enter(0);
    hal_critical_exit(0, inner);
    number("masked", state * 2 + inner);
    t = hal_ticks(0);
    for (uint32_t i = 0; i < 4; i++) work(2000);
    number("ticks while masked", hal_ticks(0) - t > 10000);
    hal_critical_exit(0, state);
    __asm__ volatile("mov r12, #0" : : : "r12");
}
int main(void) {
    uint8_t argument[16] = {0}, data[16];
    number("argument", hal_argument(0, argument, 15));
    hal_console(0, argument, 15); board_text("\n");
    number("counted", ++counted);
    times();
    number("stack", hal_stack_size(0));
    number("used", hal_stack_used(0) > 64 && hal_stack_used(0) < 600);
    volatile float f = 1.0f;
    number("third", (uint32_t)(f / 3.0f * 100000.0f));
    int32_t got = hal_file_read(0, (const uint8_t *)"in.bin", 2, data, 16);
    if (got < 0) number("no file", (uint32_t)-got);
    else {
        number("read", (uint32_t)got);
        number("wrote", (uint32_t)hal_file_write(0, (const uint8_t *)"out.bin", 0, data, (uint32_t)got));
        number("wrote", (uint32_t)hal_file_write(0, (const uint8_t *)"out.bin", 4, data, (uint32_t)got));
    }
    if (is(argument, "null")) null();
    if (is(argument, "wild")) *(volatile uint32_t *)(0x60000000 + zero) = 1;
    if (is(argument, "bus")) number("", *(volatile uint32_t *)(0x5f000000 + zero));
    if (is(argument, "constant")) *(volatile uint32_t *)(uintptr_t)&constants[zero] = 1;
    if (is(argument, "divide")) divide();
    if (is(argument, "undefined")) __asm__ volatile("udf #1");
    if (is(argument, "jump")) ((void (*)(void))(0x60000001 + zero))();
    if (is(argument, "data")) ((void (*)(void))(0x38000001 + zero))();
    if (is(argument, "even")) ((void (*)(void))(0x10000000 + zero))();
    if (is(argument, "deep")) number("", deep(1));
    if (is(argument, "svc")) __asm__ volatile("svc #1");
    if (is(argument, "breakpoint")) __asm__ volatile("bkpt #1");
    if (is(argument, "panic")) syn_panic(3, 41);
    if (is(argument, "exit")) hal_exit(0, 77);
    if (is(argument, "sleep")) { SYSTICK_CONTROL = 0; __asm__ volatile("wfi"); }
    if (is(argument, "spin")) for (;;) ;
    return 5;
}
"""
FLAGS = ("-Os", "-g", "-Wno-infinite-recursion", "-Wno-unknown-warning-option")


def line_of(text: str) -> int:
    """The line that has this text."""
    return next(n for n, line in enumerate(PROGRAM.splitlines(), 1) if text in line)
