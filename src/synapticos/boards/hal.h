/* What a board answers: the C side of kernel/hal.py, for the boards' own C. The first argument is the board's number. */
#ifndef SYN_HAL_H
#define SYN_HAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Negative Status numbers that a board gives (kernel/status.py). */
#define HAL_NOENT (-2)
#define HAL_IO (-5)
#define HAL_INVAL (-22)
#define HAL_BUSY (-16)
#define HAL_INPROGRESS (-119)
#define HAL_NOTSUP (-134)

uint32_t hal_ticks(uint32_t board);
uint32_t hal_tick_rate(uint32_t board);
void hal_console(uint32_t board, const uint8_t *text, uint32_t n);
uint32_t hal_critical_enter(uint32_t board);
void hal_critical_exit(uint32_t board, uint32_t state);
void hal_wake(uint32_t board);
void hal_idle(uint32_t board);
void hal_wake_at(uint32_t board, uint32_t ticks);
void hal_exit(uint32_t board, int32_t code);
uint32_t hal_argument(uint32_t board, uint8_t *buffer, uint32_t n);
int32_t hal_file_read(uint32_t board, const uint8_t *name, uint32_t at, uint8_t *data, uint32_t n);
int32_t hal_file_write(uint32_t board, const uint8_t *name, uint32_t at, const uint8_t *data, uint32_t n);
int32_t hal_npu_start(uint32_t board, uint32_t ticket, uint32_t ticks, const uint8_t *work, uint32_t n);
int32_t hal_npu_status(uint32_t board, uint32_t ticket);
void hal_npu_reset(uint32_t board);
bool hal_npu_counts(uint32_t board);
void hal_spend(uint32_t board, uint32_t ticks);
void hal_interrupt_at(uint32_t board, uint32_t line, uint32_t ticks);

/* FaultKind and Fault of kernel/job.py: how a guarded call ended. */
enum { FAULT_NONE, FAULT_PROCESSOR, FAULT_CHECK, FAULT_LATE };
enum { FAULT_KIND, FAULT_PC, FAULT_CALLER, FAULT_CAUSES, FAULT_ADDRESS, FAULT_FILE, FAULT_LINE, FAULT_WORDS };
void hal_guard_open(uint32_t board, uint8_t *at, uint32_t n, bool write);
uint32_t hal_guard_run(uint32_t board, void (*work)(uint8_t *), uint8_t *block, uint32_t n, uint32_t limit_us, uint32_t *fault);

/* A failed check of the kernel: file and line are numbers that the build knows. Does not return. */
void syn_panic(uint32_t file, uint32_t line) __attribute__((noreturn));

#endif
