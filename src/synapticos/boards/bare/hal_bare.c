/* The board of a chip that only executes functions for a test: no startup, no devices. The host that calls the
   functions moves time, takes the console and is told of a panic by a breakpoint. */
#include "../hal.h"
#include "../virtual.h"

enum { CONSOLE = 65536 };

volatile uint32_t bare_ticks;
volatile uint32_t bare_tick_rate = 1000000;
volatile uint32_t bare_wakes;
volatile uint32_t bare_console_used; /* text beyond the buffer is counted, and lost */
uint8_t bare_console[CONSOLE];
uint8_t bare_argument[256];
volatile uint32_t bare_argument_bytes;
virtual_line bare_lines[VIRTUAL_LINES];

uint32_t hal_ticks(uint32_t board) {
    (void)board;
    return bare_ticks;
}

uint32_t hal_tick_rate(uint32_t board) {
    (void)board;
    return bare_tick_rate;
}

void hal_console(uint32_t board, const uint8_t *text, uint32_t n) {
    (void)board;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = bare_console_used++;
        if (at < CONSOLE)
            bare_console[at] = text[i];
    }
}

uint32_t hal_critical_enter(uint32_t board) {
    (void)board;
    return 0;
}

void hal_critical_exit(uint32_t board, uint32_t state) {
    (void)board;
    (void)state;
}

void hal_wake(uint32_t board) {
    (void)board;
    bare_wakes++;
}

void hal_idle(uint32_t board) {
    (void)board;
}

void hal_exit(uint32_t board, int32_t code) {
    (void)board;
    register int32_t r0 __asm__("r0") = code;
    for (;;)
        __asm__ volatile("bkpt #2" : : "r"(r0) : "memory");
}

uint32_t hal_argument(uint32_t board, uint8_t *buffer, uint32_t n) {
    (void)board;
    uint32_t have = bare_argument_bytes;
    for (uint32_t i = 0; i < have && i < n; i++)
        buffer[i] = bare_argument[i];
    return have;
}

int32_t hal_file_read(uint32_t board, const uint8_t *name, uint32_t at, uint8_t *data, uint32_t n) {
    (void)board, (void)name, (void)at, (void)data, (void)n;
    return HAL_NOTSUP;
}

int32_t hal_file_write(uint32_t board, const uint8_t *name, uint32_t at, const uint8_t *data, uint32_t n) {
    (void)board, (void)name, (void)at, (void)data, (void)n;
    return HAL_NOTSUP;
}

void hal_spend(uint32_t board, uint32_t ticks) {
    (void)board;
    virtual_spend(&bare_ticks, bare_lines, ticks);
}

void hal_interrupt_at(uint32_t board, uint32_t line, uint32_t ticks) {
    (void)board;
    virtual_at(bare_lines, line, ticks);
}

void syn_panic(uint32_t file, uint32_t line) {
    register uint32_t r0 __asm__("r0") = file;
    register uint32_t r1 __asm__("r1") = line;
    for (;;)
        __asm__ volatile("bkpt #1" : : "r"(r0), "r"(r1) : "memory");
}
