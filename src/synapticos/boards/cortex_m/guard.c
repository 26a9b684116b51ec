/* A guarded call: code that may not do more than its own work, without privilege, behind the MPU.

   It writes the stack up to its block's end (what is kept there for the way back too) and the pieces that were opened for
   it, and reads those, constants and code. Anything else faults; the handler of the fault, or the system timer when the time is up, makes the processor go on behind the
   call, with the stack and the registers that the kernel had before it. Interrupts run in between as ever: they are
   privileged, and see all memory. Compiled into firmware with GUARD only. */
#include "chip.h"

#define CONTROL_UNPRIVILEGED 1
#define FPCCR REGISTER(0xE000EF34)
#define FPCCR_PENDING 1u /* floats of the dropped call still to be saved */
#define MPU_ON 5u        /* and all memory for who is privileged */

enum { WRITABLE = 3, READABLE = 2, GRAIN = 32 };

typedef struct {
    uint32_t at, end;
} piece;

/* What the naked code below reads comes first: `board_guard` is the stack pointer of the guarded call, 0 for none. */
volatile uint32_t board_guard;
volatile uint32_t board_guard_left; /* milliseconds of its time; 0: any */
static volatile uint32_t fault_words[FAULT_WORDS];
static piece writable[WRITABLE + 1], readable[READABLE];
static uint32_t writables, readables;

extern uint32_t board_stack_bottom[];

uint32_t board_guard_note(uint32_t pc, uint32_t caller, uint32_t kind);
void board_guard_close(void);
void board_guard_end(void);
void board_guard_drop(void);
void board_guard_over(void);
void board_service(void);
void board_guard_tick(void);
void board_guard_panic(uint32_t file, uint32_t line);

void hal_guard_open(uint32_t board, uint8_t *at, uint32_t n, bool write) {
    (void)board;
    uint32_t from = (uint32_t)(uintptr_t)at, to = from + n;
    if (n == 0 || from - BOARD_FLASH < BOARD_FLASH_SIZE)
        return;
    piece *list = write ? writable : readable;
    uint32_t *count = write ? &writables : &readables;
    uint32_t most = write ? WRITABLE : READABLE;
    if (*count == most) { /* one that holds the last and this */
        *count = most - 1;
        if (list[most - 1].at < from)
            from = list[most - 1].at;
        if (list[most - 1].end > to)
            to = list[most - 1].end;
    }
    list[*count].at = from;
    list[*count].end = to;
    *count += 1;
}

#if BOARD_MPU == 8
/* ARMv8-M: from any multiple of 32 to any other, and no two may overlap. */
static uint32_t region(uint32_t number, uint32_t at, uint32_t end, uint32_t access, uint32_t attribute) {
    MPU_NUMBER = number;
    MPU_BASE = at | access;
    MPU_LIMIT = ((end - 1) & ~(GRAIN - 1u)) | attribute << 1 | 1;
    return number + 1;
}

static void open_regions(uint32_t stack_end) {
    enum { READ_WRITE = 3, READ_ONLY = 7, READ_EXECUTE = 6 };
    MPU_CONTROL = 0;
    uint32_t n = region(0, BOARD_FLASH, BOARD_FLASH + BOARD_FLASH_SIZE, READ_EXECUTE, 0);
    n = region(n, (uint32_t)(uintptr_t)board_stack_bottom, stack_end, READ_WRITE, 0);
    n = region(n, BOARD_DEVICES, BOARD_DEVICES + BOARD_DEVICES_SIZE, READ_WRITE, 1);
    for (uint32_t i = 0; i < writables; i++) {
        piece *p = &writable[i];
        p->at &= ~(GRAIN - 1u);
        p->end = (p->end + GRAIN - 1) & ~(GRAIN - 1u);
        for (uint32_t k = 0; k < i; k++) /* rounding may have made two overlap: the second gives way */
            if (p->at < writable[k].end && writable[k].at < p->end) {
                if (p->at < writable[k].at)
                    p->end = writable[k].at;
                else
                    p->at = writable[k].end;
            }
        if (p->at < p->end)
            n = region(n, p->at, p->end, READ_WRITE, 0);
    }
    for (uint32_t i = 0; i < readables; i++) {
        piece *p = &readable[i];
        p->at &= ~(GRAIN - 1u);
        p->end = (p->end + GRAIN - 1) & ~(GRAIN - 1u);
        for (uint32_t k = 0; k < writables; k++)
            if (p->at < writable[k].end && writable[k].at < p->end) {
                if (p->at < writable[k].at)
                    p->end = writable[k].at;
                else
                    p->at = writable[k].end;
            }
        if (i == 1 && p->at < readable[0].end && readable[0].at < p->end)
            p->at = readable[0].end;
        if (p->at < p->end)
            n = region(n, p->at, p->end, READ_ONLY, 0);
    }
    for (; n < 8; n++) {
        MPU_NUMBER = n;
        MPU_LIMIT = 0;
    }
    MPU_CONTROL = MPU_ON;
}
#else
/* ARMv7-M: powers of two, each in eight parts that may be left out; of two that overlap the higher number counts. So
   memory can be read as a whole, and what lies within an eighth of a piece can be written with it. */
enum { PRIVILEGED = 1, READ_FOR_ALL = 2, ALL = 3, READ_ONLY = 6, NEVER_EXECUTED = 16 };

static void region(uint32_t number, uint32_t at, uint32_t end, uint32_t access) {
    uint32_t last = end - 1;
    uint32_t bits = 32 - (uint32_t)__builtin_clz((at ^ last) | 31); /* the smallest power of two that holds both */
    uint32_t base = bits == 32 ? 0 : at >> bits << bits;
    uint32_t without = 0;
    if (bits >= 8)
        without = ~((2u << ((last - base) >> (bits - 3))) - (1u << ((at - base) >> (bits - 3)))) & 255;
    MPU_BASE = base | 16 | number;
    MPU_LIMIT = access << 24 | without << 8 | (bits - 1) << 1 | 1;
}

static void open_regions(uint32_t stack_end) {
    MPU_CONTROL = 0;
    region(0, BOARD_FLASH, BOARD_FLASH + BOARD_FLASH_SIZE, READ_ONLY);
    region(1, BOARD_RAM, BOARD_RAM + BOARD_RAM_SIZE, NEVER_EXECUTED | READ_FOR_ALL);
    region(2, BOARD_DEVICES, BOARD_DEVICES + BOARD_DEVICES_SIZE, NEVER_EXECUTED | ALL);
    region(3, BOARD_FLASH, BOARD_FLASH + 64, PRIVILEGED); /* the vectors: nobody reads them, but through a null pointer */
    region(4, (uint32_t)(uintptr_t)board_stack_bottom, stack_end, NEVER_EXECUTED | ALL);
    for (uint32_t i = 0; i < WRITABLE; i++)
        if (i < writables) {
            region(5 + i, writable[i].at, writable[i].end, NEVER_EXECUTED | ALL);
        } else {
            MPU_NUMBER = 5 + i;
            MPU_LIMIT = 0;
        }
    MPU_CONTROL = MPU_ON;
}
#endif

/* Called with the guarded call's registers already kept. */
__attribute__((used)) void board_guard_close(void) {
    if (board_guard_left != 0)
        board_watch(1);
    __asm__ volatile("dsb\n isb" : : : "memory");
}

/* It is over, one way or another. */
__attribute__((used)) void board_guard_end(void) {
    MPU_CONTROL = 0;
    __asm__ volatile("dsb\n isb" : : : "memory");
    board_protect();
    if (board_guard_left != 0)
        board_watch(0);
    board_guard_left = 0;
    writables = readables = 0;
    board_guard = 0;
}

/* Out of the compiler's sight, which would count on what the way back does not keep. Keeps what a function has to keep, and calls.
   The address behind `svc` is the one from which it may come back. */
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
    "mrs r3, primask\n"
    "push {r3, r4-r11, lr}\n"
#if BOARD_FPU
    "vpush {d8-d15}\n"
#endif
    "ldr r2, =board_guard\n"
    "mov r3, sp\n"
    "str r3, [r2]\n"
    "mov r4, r0\n"
    "mov r5, r1\n"
    "bl board_guard_close\n"
    "mrs r3, control\n"
    "orr r3, #1\n"
    "msr control, r3\n"
    "isb\n"
    "mov r0, r5\n"
    "blx r4\n"
    "svc #0\n"
    ".globl board_guard_returned\n"
    "board_guard_returned:\n"
    "movs r0, #0\n"
    ".globl board_guard_drop\n"
    ".thumb_func\n"
    "board_guard_drop:\n"
    "mov r4, r0\n"
    "bl board_guard_end\n"
    "mov r0, r4\n"
#if BOARD_FPU
    "vpop {d8-d15}\n"
#endif
    "pop {r3}\n"
    "msr primask, r3\n"
    "pop {r4-r11, pc}\n"
    
    ".ltorg\n"
    ".size guarded_call, . - guarded_call\n"
    ".popsection");

uint32_t hal_guard_run(uint32_t board, void (*work)(uint8_t *), uint8_t *block, uint32_t n, uint32_t limit_us, uint32_t *fault) {
    (void)board;
    board_guard_left = limit_us / 1000 + (limit_us != 0); /* the first may be short */
    open_regions(((uint32_t)(uintptr_t)block + n + GRAIN - 1) & ~(GRAIN - 1u));
    uint32_t kind = guarded_call(work, block);
    if (kind != FAULT_NONE)
        for (uint32_t i = 0; i < FAULT_WORDS; i++)
            fault[i] = fault_words[i];
    return kind;
}

/* SVC: a guarded call asks for its privilege back, from the one place where it may, or a check of its own has failed, with
   file and line in r0 and r1. Anything else is a fault. */
__attribute__((naked)) void board_service(void) {
    __asm__ volatile(
        "tst lr, #8\n" /* from a handler */
        "beq 1f\n"
        "ldr r2, =board_guard\n"
        "ldr r2, [r2]\n"
        "cbz r2, 1f\n"
        "ldr r1, [sp, #24]\n"
        "ldr r3, =board_guard_returned\n"
        "bic r3, #1\n"
        "cmp r1, r3\n"
        "beq 2f\n"
        "ldr r3, =board_guard_panicked\n"
        "bic r3, #1\n"
        "cmp r1, r3\n"
        "bne 1f\n"
        "ldr r0, [sp]\n"
        "ldr r1, [sp, #4]\n"
        "movs r3, %0\n"
        "b board_guard_told\n"
        "2: mrs r3, control\n"
        "bic r3, #1\n"
        "msr control, r3\n"
        "bx lr\n"
        "1: b board_fault\n"
        ".ltorg\n"
        :
        : "i"(FAULT_CHECK));
}

/* Writes down what happened (a file and line if that was a check), and builds below the guarded call's stack pointer what the processor pops on its way there:
   the address of that. */
__attribute__((used)) uint32_t board_guard_note(uint32_t where, uint32_t caller, uint32_t kind) {
    uint32_t causes = CFSR;
    for (uint32_t i = 0; i < FAULT_WORDS; i++)
        fault_words[i] = 0;
    fault_words[FAULT_KIND] = kind;
    fault_words[kind == FAULT_CHECK ? FAULT_FILE : FAULT_PC] = where;
    fault_words[kind == FAULT_CHECK ? FAULT_LINE : FAULT_CALLER] = caller;
    if (kind == FAULT_PROCESSOR) {
        fault_words[FAULT_CAUSES] = causes;
        if ((causes & 1u << 7) != 0)
            fault_words[FAULT_ADDRESS] = MMFAR;
        else if ((causes & 1u << 15) != 0)
            fault_words[FAULT_ADDRESS] = BFAR;
    }
    CFSR = causes;
    HFSR = HFSR;
#if BOARD_FPU
    FPCCR &= ~FPCCR_PENDING;
#endif
    uint32_t control;
    __asm__ volatile("mrs %0, control" : "=r"(control));
    control &= ~(uint32_t)CONTROL_UNPRIVILEGED;
    __asm__ volatile("msr control, %0" : : "r"(control));
    uint32_t *frame = (uint32_t *)(uintptr_t)(board_guard - 32);
    frame[0] = kind;
    for (uint32_t i = 1; i < 6; i++)
        frame[i] = 0;
    frame[6] = (uint32_t)(uintptr_t)board_guard_drop & ~1u;
    frame[7] = 1u << 24;
    return board_guard - 32;
}

/* From an exception's handler: lr is its return, r1 where the processor pushed its frame, r3 the kind. The frame may not
   be there: a stack that was full has lost it. The stack below the guarded call's pointer is free from here on, but for
   the frame, which is read first. */
__attribute__((naked, used)) void board_guard_over(void) {
    __asm__ volatile(
        "ldr r2, =board_stack_bottom\n"
        "movs r0, #0\n"
        "cmp r1, r2\n"
        "bls 1f\n"
        "ldr r0, [r1, #24]\n"
        "ldr r1, [r1, #20]\n"
        "b 2f\n"
        "1: movs r1, #0\n"
        "2: .globl board_guard_told\n"
        ".thumb_func\n"
        "board_guard_told:\n"
        "ldr r2, =board_guard\n"
        "ldr r2, [r2]\n"
        "sub r2, #32\n"
        "mov sp, r2\n"
        "mov r2, r3\n"
        "mov r4, lr\n"
        "bl board_guard_note\n"
        "mov sp, r0\n"
        "orr r4, #16\n" /* the frame has no floats */
        "bx r4\n"
        ".ltorg\n");
}

/* The system timer's exception, once a millisecond while a guarded call with a limit runs. */
__attribute__((naked)) void board_guard_tick(void) {
    __asm__ volatile(
        "push {r3, lr}\n"
        "bl board_tick\n"
        "pop {r3, lr}\n"
        "ldr r2, =board_guard_left\n"
        "ldr r3, [r2]\n"
        "cbz r3, 1f\n"
        "subs r3, #1\n"
        "beq 2f\n"
        "str r3, [r2]\n"
        "1: bx lr\n"
        "2: tst lr, #8\n" /* it interrupts another handler: next time */
        "beq 1b\n"
        "ldr r3, =board_guard\n"
        "ldr r3, [r3]\n"
        "cmp r3, #0\n"
        "beq 1b\n"
        "mov r1, sp\n"
        "movs r3, %0\n"
        "b board_guard_over\n"
        ".ltorg\n"
        :
        : "i"(FAULT_LATE));
}

/* A failed check in a guarded call: where `board_service` looks for it. */
__attribute__((naked)) void board_guard_panic(
    __attribute__((unused)) uint32_t file, __attribute__((unused)) uint32_t line) {
    __asm__ volatile(
        "svc #0\n"
        ".globl board_guard_panicked\n"
        "board_guard_panicked:\n"
        "b .\n");
}
