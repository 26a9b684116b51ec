/* MPS2+ with the AN521 image: two Cortex-M33 at 20 MHz, of which this runs on the first, in secure state. */
#include "../cortex_m/chip.h"

#define TIMER_CONTROL REGISTER(0x50000000)
#define TIMER_VALUE REGISTER(0x50000004)
#define TIMER_RELOAD REGISTER(0x50000008)
#define UART_DATA REGISTER(0x50200000)
#define UART_STATE REGISTER(0x50200004)
#define UART_CONTROL REGISTER(0x50200008)
#define UART_DIVIDER REGISTER(0x50200010)
#define UART_FULL 1u
#define NPU_PROGRAM REGISTER(0x50F00000) /* what it runs, a function of one pointer */
#define NPU_WORK REGISTER(0x50F00004)    /* on what */
#define NPU_TICKS REGISTER(0x50F00008)   /* for how long */
#define NPU_TICKET REGISTER(0x50F0000C)
#define NPU_CONTROL REGISTER(0x50F00010) /* write: what to do; read: what it does */
#define NPU_RESULT REGISTER(0x50F00014)

enum { TICK_RATE = 20000000, BAUD = 115200, DOZE = TICK_RATE / 1000 };

/* Memory that a program may use. All else faults, address 0 first of all. Attribute 0 is plain memory. Code without
   privilege, of which there is only a guarded call, may use code and devices. */
#define READ_ONLY (3u << 1) /* and executable */
#define READ_WRITE 1u       /* and never executed */
#define FOR_ALL (BOARD_GUARD ? 2u : 0u)

static inline void allow(uint32_t n, uint32_t base, uint32_t size, uint32_t access, uint32_t attribute) {
    MPU_BASE_OF(n) = base | access;
    MPU_LIMIT_OF(n) = ((base + size - 1) & ~31u) | attribute << 1 | 1;
}

void board_protect(void) {
    MPU_NUMBER = 0;
    allow(0, BOARD_FLASH, BOARD_FLASH_SIZE, READ_ONLY, 0);
    allow(1, BOARD_DEVICES, BOARD_DEVICES_SIZE, READ_WRITE | FOR_ALL, 1);
    allow(2, BOARD_RAM, BOARD_RAM_SIZE, READ_WRITE, 0);
    allow(3, BOARD_PSRAM, BOARD_PSRAM_SIZE, READ_WRITE, 0);
    if (BOARD_GUARD) { /* of a guarded call */
        MPU_NUMBER = 4;
        MPU_LIMIT_OF(0) = MPU_LIMIT_OF(1) = MPU_LIMIT_OF(2) = MPU_LIMIT_OF(3) = 0;
    }
    MPU_CONTROL = 1;
    __asm__ volatile("dsb\n isb" : : : "memory");
}

void board_watch(uint32_t on) {
    SYSTICK_RELOAD = DOZE - 1;
    SYSTICK_VALUE = 0;
    SYSTICK_CONTROL = on != 0 ? 7 : 0;
    if (on == 0)
        ICSR = ICSR_SYSTICK_CLEAR;
}

void board_init(void) {
    UART_DIVIDER = TICK_RATE / BAUD;
    UART_CONTROL = 1;
    TIMER_RELOAD = 0xFFFFFFFF;
    TIMER_VALUE = 0xFFFFFFFF;
    TIMER_CONTROL = 1;
    MPU_ATTRIBUTES = 0x0044; /* 0: memory, not cached; 1: device */
    board_protect();
}

void board_put(uint8_t byte) {
    while ((UART_STATE & UART_FULL) != 0)
        ;
    UART_DATA = byte;
}

/* The timer counts down. */
uint32_t hal_ticks(uint32_t board) {
    (void)board;
    return ~TIMER_VALUE;
}

uint32_t hal_tick_rate(uint32_t board) {
    (void)board;
    return TICK_RATE;
}

void board_tick(void) {
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

/* Doze until the alarm, or for a millisecond at most, so that what an interrupt did not announce is looked at too. With
   interrupts masked a pending one still ends WFI, so nothing slips in between the look at `woken` and the sleep. The
   time is read with interrupts masked too: nothing comes between it and the timer. */
void hal_idle(uint32_t board) {
    uint32_t state = hal_critical_enter(board);
    int32_t left = DOZE;
    if (alarmed != 0 && (int32_t)(alarm - hal_ticks(board)) < left)
        left = (int32_t)(alarm - hal_ticks(board));
    alarmed = 0;
    if (woken == 0 && left > 1) {
        SYSTICK_RELOAD = (uint32_t)left - 1;
        SYSTICK_VALUE = 0;
        SYSTICK_CONTROL = 7;
        __asm__ volatile("dsb\n wfi" : : : "memory");
        SYSTICK_CONTROL = 0;
        ICSR = ICSR_SYSTICK_CLEAR;
    }
    woken = 0;
    hal_critical_exit(board, state);
}

/* The emulator's accelerator: a core of its own, which shares the memory and runs one function of this firmware, as long
   as it is told. It says by interrupt 0 that it is through. */
enum { NPU_START = 1, NPU_RESET = 2, NPU_SEEN = 4, NPU_WORKS = 1, NPU_DONE = 2, NPU_WORK_BYTES = 128 };

int32_t sim_work(const void *work) __attribute__((weak));
void npu_interrupt(uint32_t ticket, int32_t status) __attribute__((weak));

int32_t hal_npu_start(uint32_t board, uint32_t ticket, uint32_t ticks, const uint8_t *work, uint32_t n) {
    static uint8_t kept[NPU_WORK_BYTES] __attribute__((aligned(8)));
    (void)board;
    if (sim_work == 0 || n > NPU_WORK_BYTES)
        return HAL_NOTSUP;
    if (NPU_CONTROL == NPU_WORKS)
        return HAL_BUSY;
    for (uint32_t i = 0; i < n; i++)
        kept[i] = work[i];
    NPU_PROGRAM = (uint32_t)(uintptr_t)sim_work;
    NPU_WORK = (uint32_t)(uintptr_t)kept;
    NPU_TICKS = ticks;
    NPU_TICKET = ticket;
    NVIC_ENABLE = 1;
    NPU_CONTROL = NPU_START;
    return 0;
}

int32_t hal_npu_status(uint32_t board, uint32_t ticket) {
    (void)board;
    uint32_t state = NPU_CONTROL;
    if (NPU_TICKET != ticket || (state != NPU_WORKS && state != NPU_DONE))
        return HAL_NOENT;
    return state == NPU_WORKS ? HAL_INPROGRESS : (int32_t)NPU_RESULT;
}

void hal_npu_reset(uint32_t board) {
    (void)board;
    NPU_CONTROL = NPU_RESET;
}

bool hal_npu_counts(uint32_t board) {
    (void)board;
    return false;
}

#if BOARD_INTERRUPTS
void board_interrupt(void) {
    NPU_CONTROL = NPU_SEEN;
    woken = 1;
    if (npu_interrupt != 0)
        npu_interrupt(NPU_TICKET, (int32_t)NPU_RESULT);
}
#endif
