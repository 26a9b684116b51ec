/* From reset to main: the vector table, the first values of variables, a painted stack. */
#include "chip.h"

#define PAINT 0x57AC57ACu /* what an untouched word of the stack holds */

extern uint32_t board_stack_bottom[], board_stack_top[];
extern uint32_t board_data_start[], board_data_end[], board_data_load[];
extern uint32_t board_bss_start[], board_bss_end[];

void board_reset(void) __attribute__((noreturn));
void board_fault(void);

typedef union {
    uint32_t *stack;
    void (*handler)(void);
} vector;

/* The sixteen of the core, and those of devices, where a build has some. What nobody handles is reported as a fault. */
const vector board_vectors[16 + BOARD_INTERRUPTS] __attribute__((section(".vectors"), used, aligned(512))) = {
    {.stack = board_stack_top},
    {.handler = (void (*)(void))board_reset},
    {.handler = board_fault}, /* NMI */
    {.handler = board_fault}, /* HardFault: the others are not enabled and come here too */
    {.handler = board_fault}, {.handler = board_fault}, {.handler = board_fault}, {.handler = board_fault},
    {.handler = 0}, {.handler = 0}, {.handler = 0},
    {.handler = BOARD_GUARD ? board_service : board_fault}, /* SVC */
    {.handler = board_fault},
    {.handler = 0},
    {.handler = board_fault}, /* PendSV */
    {.handler = BOARD_GUARD ? board_guard_tick : board_tick},
#if BOARD_INTERRUPTS
    [16 ... 15 + BOARD_INTERRUPTS] = {.handler = board_interrupt},
#endif
};

static void start(void) {
    const uint32_t *from = board_data_load;
    for (uint32_t *to = board_data_start; to < board_data_end; to++)
        *to = *from++;
    for (uint32_t *to = board_bss_start; to < board_bss_end; to++)
        *to = 0;
#if BOARD_FPU
    CPACR |= 0xFu << 20;
    __asm__ volatile("dsb\n isb" : : : "memory");
#endif
    CCR |= CCR_DIV_0_TRP;
    board_init();
    board_exit(main());
}

/* Painting comes first, by code that keeps nothing on the stack. */
__attribute__((naked, used)) void board_reset(void) {
    __asm__ volatile(
        "ldr r0, =board_stack_bottom\n"
        "ldr r1, =board_stack_top\n"
        "mov sp, r1\n"
#if BOARD_STACK_LIMIT
        "msr msplim, r0\n"
#endif
        "ldr r2, =%c0\n"
        "1: cmp r0, r1\n"
        "bhs 2f\n"
        "str r2, [r0], #4\n"
        "b 1b\n"
        "2: bl %c1\n"
        ".ltorg\n"
        :
        : "i"(PAINT), "i"(start));
}

uint32_t hal_stack_size(uint32_t board) {
    (void)board;
    return (uint32_t)(uintptr_t)board_stack_top - (uint32_t)(uintptr_t)board_stack_bottom;
}

uint32_t hal_stack_used(uint32_t board) {
    (void)board;
    const volatile uint32_t *p = board_stack_bottom;
    while (p < board_stack_top && *p == PAINT)
        p++;
    return (uint32_t)(uintptr_t)board_stack_top - (uint32_t)(uintptr_t)p;
}

/* Interrupts are kept out by PRIMASK; the state is what it was, so sections nest. */
uint32_t hal_critical_enter(uint32_t board) {
    (void)board;
    uint32_t state;
    __asm__ volatile("mrs %0, primask\n cpsid i" : "=r"(state) : : "memory");
    return state;
}

void hal_critical_exit(uint32_t board, uint32_t state) {
    (void)board;
    __asm__ volatile("msr primask, %0" : : "r"(state) : "memory");
}

void hal_console(uint32_t board, const uint8_t *text, uint32_t n) {
    (void)board;
    for (uint32_t i = 0; i < n; i++)
        board_put(text[i]);
}
