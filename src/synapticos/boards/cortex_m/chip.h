/* Cortex-M: the registers that the boards use, and what a board's own file gives to the startup code. */
#ifndef SYN_CHIP_H
#define SYN_CHIP_H

#include "../hal.h"

#define REGISTER(address) (*(volatile uint32_t *)(uintptr_t)(address))

#define SYSTICK_CONTROL REGISTER(0xE000E010)
#define SYSTICK_RELOAD REGISTER(0xE000E014)
#define SYSTICK_VALUE REGISTER(0xE000E018)
#define ICSR REGISTER(0xE000ED04)
#define ICSR_SYSTICK_PENDING (1u << 26)
#define ICSR_SYSTICK_CLEAR (1u << 25)
#define CCR REGISTER(0xE000ED14)
#define CCR_DIV_0_TRP (1u << 4)
#define CFSR REGISTER(0xE000ED28)
#define HFSR REGISTER(0xE000ED2C)
#define MMFAR REGISTER(0xE000ED34)
#define BFAR REGISTER(0xE000ED38)
#define CPACR REGISTER(0xE000ED88)
#define NVIC_ENABLE REGISTER(0xE000E100) /* interrupts 0 to 31 */
#define MPU_CONTROL REGISTER(0xE000ED94)
#define MPU_NUMBER REGISTER(0xE000ED98)
#define MPU_BASE REGISTER(0xE000ED9C)
#define MPU_LIMIT REGISTER(0xE000EDA0)
#define MPU_BASE_OF(n) REGISTER(0xE000ED9C + 8 * (n)) /* ARMv8-M: of region MPU_NUMBER + n, where that is a multiple of 4, and n below */
#define MPU_LIMIT_OF(n) REGISTER(0xE000EDA0 + 8 * (n))
#define MPU_ATTRIBUTES REGISTER(0xE000EDC0)

/* Given by the board's file. */
void board_init(void);         /* UART, timer, memory protection; variables have their first values */
void board_put(uint8_t byte);  /* to the console, when there is room */
void board_tick(void);         /* SysTick's exception */
void board_interrupt(void);    /* a device's, in a build that has one; else a fault */

/* Given by guard.c, in firmware with BOARD_GUARD; by the board's file the last two. */
void board_service(void);                             /* SVC's exception */
void board_guard_tick(void);                          /* SysTick's */
void board_guard_panic(uint32_t file, uint32_t line); /* a failed check in a guarded call */
void board_protect(void);                             /* memory protection as it is while the kernel runs: see guard.c */
void board_watch(uint32_t on);                        /* SysTick's exception every millisecond, from now on or no more */

/* Given by fault.c and semihost.c. */
void board_text(const char *text);
void board_exit(int32_t code) __attribute__((noreturn));

/* How deep the stack ever was, and how large it is, in bytes. */
uint32_t hal_stack_used(uint32_t board);
uint32_t hal_stack_size(uint32_t board);

int main(void);

#endif
