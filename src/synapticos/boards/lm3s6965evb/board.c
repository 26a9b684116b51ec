/* Stellaris LM3S6965 evaluation board: a Cortex-M3 at 12.5 MHz (its clock after reset). */
#include "../cortex_m/chip.h"

#define UART_DATA REGISTER(0x4000C000)
#define UART_FLAGS REGISTER(0x4000C018)
#define UART_CONTROL REGISTER(0x4000C030)
#define UART_FULL (1u << 5)

enum { TICK_RATE = 12500000, PERIOD = TICK_RATE / 1000 };

static volatile uint32_t periods; /* milliseconds since boot */

void board_init(void) {
    UART_CONTROL = 0x301;
    SYSTICK_RELOAD = PERIOD - 1;
    SYSTICK_VALUE = 0;
    SYSTICK_CONTROL = 7;
}

void board_put(uint8_t byte) {
    while ((UART_FLAGS & UART_FULL) != 0)
        ;
    UART_DATA = byte;
}

/* What the kernel does is not protected on this board. */
void board_protect(void) {
}

/* SysTick counts time, and always comes. */
void board_watch(uint32_t on) {
    (void)on;
}

void board_tick(void) {
    periods++;
}

/* SysTick has 24 bits and counts down to 0, where its exception counts the period; then it starts again. An exception
   that is pending (interrupts are masked, or it came just now) is not counted yet. */
uint32_t hal_ticks(uint32_t board) {
    uint32_t state = hal_critical_enter(board);
    uint32_t passed = periods;
    uint32_t left = SYSTICK_VALUE;
    if ((ICSR & ICSR_SYSTICK_PENDING) != 0) {
        left = SYSTICK_VALUE;
        passed++;
    }
    hal_critical_exit(board, state);
    return passed * PERIOD + (left == 0 ? 0 : PERIOD - left);
}

uint32_t hal_tick_rate(uint32_t board) {
    (void)board;
    return TICK_RATE;
}

static volatile uint32_t woken;

void hal_wake(uint32_t board) {
    (void)board;
    woken = 1;
}

static uint32_t alarm; /* ticks until which the next sleep lasts */
static uint32_t alarmed;

void hal_wake_at(uint32_t board, uint32_t ticks) {
    (void)board;
    alarm = ticks;
    alarmed = 1;
}

/* SysTick's exception ends the sleep after a millisecond at most. It is the clock as well, so for an alarm that is nearer
   than that there is no timer: the processor waits awake, and interrupts may come in. */
void hal_idle(uint32_t board) {
    uint32_t state = hal_critical_enter(board);
    if (alarmed != 0 && (int32_t)(alarm - hal_ticks(board)) < (int32_t)PERIOD) {
        hal_critical_exit(board, state);
        while (woken == 0 && (int32_t)(alarm - hal_ticks(board)) > 0)
            ;
        hal_critical_enter(board);
    } else if (woken == 0) {
        __asm__ volatile("dsb\n wfi" : : : "memory");
    }
    alarmed = 0;
    woken = 0;
    hal_critical_exit(board, state);
}
