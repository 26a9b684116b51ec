/* The board of a chip that only executes functions for a test: no startup, no devices. The host that calls the
   functions moves time, takes the console and is told of a panic by a breakpoint. */
#include "../hal.h"
#include "../counting.h"
#include "../virtual.h"

enum { CONSOLE = 65536 };

volatile uint32_t bare_ticks;
volatile uint32_t bare_tick_rate = 1000000;
volatile uint32_t bare_wakes;
volatile uint32_t bare_alarm; /* what hal_wake_at was told last */
volatile uint32_t bare_console_used; /* text beyond the buffer is counted, and lost */
uint8_t bare_console[CONSOLE];
uint8_t bare_argument[256];
volatile uint32_t bare_argument_bytes;
virtual_line bare_lines[VIRTUAL_LINES];
volatile uint32_t bare_fault[FAULT_WORDS]; /* as the host has found it */
volatile counting_npu bare_npu;

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

void hal_wake_at(uint32_t board, uint32_t ticks) {
    (void)board;
    bare_alarm = ticks;
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

/* The host that runs the core is the one that brings a guarded call back: it looks whether `bare_guard_sp` is set. */
volatile uint32_t bare_guard_sp;       /* 0: no guarded call runs */
volatile uint32_t bare_guard_limit_us; /* 0: any time */

void hal_guard_open(uint32_t board, uint8_t *at, uint32_t n, bool write) {
    (void)board, (void)at, (void)n, (void)write;
}

/* Keeps what a function must keep, calls, and gives 0; `bare_guard_drop` is where the host goes on when the call did not
   return, with its kind in r0 and the stack pointer as it is stored. */
uint32_t guarded_call(void (*work)(uint8_t *), uint8_t *block);
__asm__(
    ".pushsection .text.guarded_call,\"ax\",%progbits\n"
    ".syntax unified\n"
    ".thumb\n"
    ".balign 4\n"
    ".globl guarded_call\n"
    ".type guarded_call, %function\n"
    ".thumb_func\n"
    "guarded_call:\n"
    "push {r4-r11, lr}\n"
    "sub sp, #4\n"
#ifdef __ARM_FP
    "vpush {d8-d15}\n"
#endif
    "ldr r2, =bare_guard_sp\n"
    "mov r3, sp\n"
    "str r3, [r2]\n"
    "mov r2, r0\n"
    "mov r0, r1\n"
    "blx r2\n"
    "movs r0, #0\n"
    ".globl bare_guard_drop\n"
    ".thumb_func\n"
    "bare_guard_drop:\n"
    "ldr r2, =bare_guard_sp\n"
    "movs r3, #0\n"
    "str r3, [r2]\n"
#ifdef __ARM_FP
    "vpop {d8-d15}\n"
#endif
    "add sp, #4\n"
    "pop {r4-r11, pc}\n"
    
    ".ltorg\n"
    ".size guarded_call, . - guarded_call\n"
    ".popsection");

uint32_t hal_guard_run(uint32_t board, void (*work)(uint8_t *), uint8_t *block, uint32_t n, uint32_t limit_us, uint32_t *fault) {
    (void)board, (void)n;
    bare_guard_limit_us = limit_us;
    if (limit_us != 0)
        __asm__ volatile("bkpt #3" : : : "memory"); /* the host counts from here on */
    uint32_t kind = guarded_call(work, block);
    if (kind != FAULT_NONE)
        for (uint32_t i = 0; i < FAULT_WORDS; i++)
            fault[i] = bare_fault[i];
    return kind;
}

int32_t hal_npu_start(uint32_t board, uint32_t ticket, uint32_t ticks, const uint8_t *work, uint32_t n) {
    (void)work, (void)n;
    return counting_start(&bare_npu, hal_ticks(board), ticket, ticks);
}

int32_t hal_npu_status(uint32_t board, uint32_t ticket) {
    return counting_status(&bare_npu, hal_ticks(board), ticket);
}

void hal_npu_reset(uint32_t board) {
    (void)board;
    bare_npu.started = 0;
}

bool hal_npu_counts(uint32_t board) {
    (void)board;
    return true;
}

void syn_panic(uint32_t file, uint32_t line) {
    register uint32_t r0 __asm__("r0") = file;
    register uint32_t r1 __asm__("r1") = line;
    for (;;)
        __asm__ volatile("bkpt #1" : : "r"(r0), "r"(r1) : "memory");
}
