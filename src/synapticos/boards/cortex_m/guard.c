/* A guarded call: code that may not do more than its own work, without privilege, behind the MPU.

   It writes its part of the stack and the pieces that were opened for it, and reads those, constants and code. Anything
   else faults; the handler of the fault, or the system timer when the time is up, makes the processor go on behind the
   call, with the stack and the registers that the kernel had before it. Interrupts run in between as ever: they are
   privileged, and see all memory. Compiled into firmware with GUARD only.

       the kernel's stack, and the registers that it wants back         <- board_guard.sp
       a gap: the MPU cannot draw a line anywhere                       <- the line
       the block that the call works on, a copy, taken back behind it   <- board_guard.copy
       the call's own frames

   So what overruns an array on the call's stack upwards harms the call and its block, and faults at the line. */
#include "chip.h"

#define CONTROL_UNPRIVILEGED 1
#define FPCCR REGISTER(0xE000EF34)
#define FPCCR_PENDING 1u /* floats of the dropped call still to be saved */
#define MPU_ON 5u        /* and all memory for who is privileged */

#if BOARD_MPU == 8
enum { WRITABLE = 3, READABLE = 2, GRAIN = 32, READ_WRITE = 3, READ_ONLY = 7 };
#else
enum { WRITABLE = 3, READABLE = 0 }; /* all memory can be read */
#endif

/* Here and in fault.c naked code reads it. `sp` 0: no guarded call runs. */
volatile struct {
    uint32_t sp, copy;
} board_guard;
volatile uint32_t board_guard_left; /* milliseconds of its time; 0: any */
static volatile uint32_t fault_words[FAULT_WORDS];
static struct piece {
    uint32_t at, last; /* ARMv8-M: as the MPU's registers want it, in the lowest five bits who may do what */
} pieces[WRITABLE + READABLE];
static uint32_t writables, opened;

extern uint32_t board_stack_bottom[], board_stack_top[];

uint32_t board_guard_note(uint32_t pc, uint32_t caller, uint32_t kind);
void board_guard_close(uint32_t line);
void board_guard_end(void);
void board_guard_drop(void);
void board_guard_over(void);
void board_service(void);
void board_guard_tick(void);
void board_guard_panic(uint32_t file, uint32_t line);

void hal_guard_open(uint32_t board, uint8_t *at, uint32_t n, bool write) {
    (void)board;
    uint32_t from = (uint32_t)(uintptr_t)at, last = from + n - 1, count = opened;
    if (n == 0 || from - BOARD_FLASH < BOARD_FLASH_SIZE || (READABLE == 0 && !write))
        return;
    if (count == (write ? (uint32_t)WRITABLE : writables + READABLE)) { /* one that holds the last and this */
        struct piece *p = &pieces[--count];
        from = p->at < from ? p->at : from;
        last = p->last > last ? p->last : last;
    }
#if BOARD_MPU == 8
    from &= ~(GRAIN - 1u);
    last |= GRAIN - 1u;
    for (uint32_t i = 0; i < count; i++) { /* rounding may have made two overlap: the later gives way */
        uint32_t theirs = pieces[i].at & ~(GRAIN - 1u), end = pieces[i].last | (GRAIN - 1u);
        if (from <= end && theirs <= last) {
            if (from < theirs)
                last = theirs - 1;
            else
                from = end + 1;
        }
    }
    if (from > last)
        return;
    from |= write ? READ_WRITE : READ_ONLY;
    last &= ~(GRAIN - 2u);
#endif
    pieces[count].at = from;
    pieces[count].last = last;
    opened = ++count;
    if (write)
        writables = count;
}

#if BOARD_MPU == 8
/* ARMv8-M: from any multiple of 32 to any other, and no two may overlap. Regions 0 and 1, code and devices, stay as the
   kernel has them, and those from 4 on are off while it runs. */
static void close_memory(uint32_t line) {
    enum { STACK = 2, FIRST = 3 };
    MPU_CONTROL = 0;
    MPU_NUMBER = 0;
    MPU_BASE_OF(STACK) = (uint32_t)(uintptr_t)board_stack_bottom | READ_WRITE;
    MPU_LIMIT_OF(STACK) = (line - GRAIN) | 1;
    MPU_LIMIT_OF(FIRST) = 0;
    for (uint32_t i = 0, n = opened; i < n; i++) {
        MPU_NUMBER = FIRST + i;
        MPU_BASE = pieces[i].at;
        MPU_LIMIT = pieces[i].last;
    }
    MPU_CONTROL = MPU_ON;
}
#else
/* ARMv7-M: powers of two, each in eight parts that may be left out; of two that overlap the higher number counts. So
   memory can be read as a whole, and what lies within an eighth of a piece can be written with it. */
enum { PRIVILEGED = 1, READ_FOR_ALL = 2, ALL = 3, READ_ONLY = 6, NEVER_EXECUTED = 16 };

static inline __attribute__((always_inline)) void region(uint32_t number, uint32_t at, uint32_t last, uint32_t access) {
    uint32_t bits = 32 - (uint32_t)__builtin_clz((at ^ last) | 31); /* the smallest power of two that holds both */
    uint32_t base = bits == 32 ? 0 : at >> bits << bits;
    uint32_t without = 0;
    if (bits >= 8)
        without = ~((2u << ((last - base) >> (bits - 3))) - (1u << ((at - base) >> (bits - 3)))) & 255;
    MPU_BASE = base | 16 | number;
    MPU_LIMIT = access << 24 | without << 8 | (bits - 1) << 1 | 1;
}

static __attribute__((noinline)) void piece_for(uint32_t number, uint32_t at, uint32_t last, uint32_t access) {
    region(number, at, last, NEVER_EXECUTED | access);
}

static void close_memory(uint32_t line) {
    enum { FIRST = 3, VECTORS = 5, ALL_STACK = 6, STACK = 7 };
    uint32_t bottom = (uint32_t)(uintptr_t)board_stack_bottom, end = (uint32_t)(uintptr_t)board_stack_top - bottom;
    end -= end % ((2u << (31 - __builtin_clz((end - 1) | 255))) / 8); /* nothing behind it, which may be a piece */
    MPU_CONTROL = 0;
    region(0, BOARD_FLASH, BOARD_FLASH + BOARD_FLASH_SIZE - 1, READ_ONLY);
    region(1, BOARD_RAM, BOARD_RAM + BOARD_RAM_SIZE - 1, NEVER_EXECUTED | READ_FOR_ALL);
    region(2, BOARD_DEVICES, BOARD_DEVICES + BOARD_DEVICES_SIZE - 1, NEVER_EXECUTED | ALL);
    for (uint32_t i = 0; i < VECTORS - FIRST; i++) {
        MPU_NUMBER = FIRST + i;
        MPU_LIMIT = 0;
    }
    /* The vectors, which nobody reads but through a null pointer, give way to a third piece. */
    region(VECTORS, BOARD_FLASH, BOARD_FLASH + 63, PRIVILEGED);
    for (uint32_t i = 0; i < opened; i++)
        piece_for(FIRST + i, pieces[i].at, pieces[i].last, ALL);
    piece_for(ALL_STACK, bottom, bottom + end - 1, READ_FOR_ALL); /* whatever a piece has opened of it with itself */
    piece_for(STACK, bottom, line - 1, ALL);
    MPU_CONTROL = MPU_ON;
}
#endif

/* Called on the guarded call's part of the stack, with all that the way back needs above the line. */
__attribute__((used)) void board_guard_close(uint32_t line) {
    close_memory(line);
    if (board_guard_left != 0)
        board_watch(1);
    __asm__ volatile("dsb" : : : "memory");
}

/* It is over, one way or another. */
__attribute__((used)) void board_guard_end(void) {
    MPU_CONTROL = 0;
    __asm__ volatile("dsb\n isb" : : : "memory");
    board_protect();
    if (board_guard_left != 0)
        board_watch(0);
    board_guard_left = 0;
    writables = opened = 0;
    board_guard.sp = 0;
}

/* Out of the compiler's sight, which would count on what the way back does not keep. Keeps what a function has to keep,
   copies the block below the line, and calls; what the call leaves in registers and stack pointer counts for nothing.
   The address behind `svc` is the one from which it may come back. analysis/stack.py knows the line and the copy. */
uint32_t guarded_call(void (*work)(uint8_t *), uint8_t *block, uint32_t n);
__asm__(
    ".pushsection .text.guarded_call,\"ax\",%progbits\n"
    ".syntax unified\n"
    ".thumb\n"
    ".balign 4\n"
    ".macro board_copy from, to\n" /* r2 bytes, a multiple of 4; changes r2 to r4, r8 to r12, lr */
    "subs r2, #32\n"
    "blo 2f\n"
    "1: ldmia \\from!, {r3, r4, r8-r12, lr}\n"
    "stmia \\to!, {r3, r4, r8-r12, lr}\n"
    "subs r2, #32\n"
    "bhs 1b\n"
    "2: adds r2, #32\n"
    "beq 4f\n"
    "3: ldr r3, [\\from], #4\n"
    "str r3, [\\to], #4\n"
    "subs r2, #4\n"
    "bne 3b\n"
    "4:\n"
    ".endm\n"
    ".globl board_guard_grain\n" /* for analysis/stack.py: between two lines; 0: an eighth of a power of two */
#if BOARD_MPU == 8
    ".set board_guard_grain, 32\n"
#else
    ".set board_guard_grain, 0\n"
#endif
    ".globl guarded_call\n"
    ".type guarded_call, %function\n"
    ".thumb_func\n"
    "guarded_call:\n"
    "mrs r12, primask\n"
    "push {r1, r2, r4-r12, lr}\n"
#if BOARD_FPU
    "vpush {d8-d15}\n"
#endif
    "mov r4, sp\n"
#if BOARD_MPU == 8
    "bic r6, r4, #31\n"
#else
    "ldr r3, =board_stack_bottom\n" /* an eighth of the power of two that holds all below */
    "subs r3, r4, r3\n"
    "subs r3, #1\n"
    "orr r3, #255\n"
    "clz r3, r3\n"
    "rsb r3, r3, #29\n"
    "lsr r6, r4, r3\n"
    "lsl r6, r6, r3\n"
#endif
    "sub r7, r6, r2\n"
    "bic r7, #7\n"
    "ldr r3, =board_guard\n"
    "strd r4, r7, [r3]\n"
    "mov sp, r7\n"
    "mov r5, r0\n"
    "board_copy r1, r7\n"
    "mov r0, r6\n"
    "bl board_guard_close\n"
    "mrs r3, control\n"
    "orr r3, #1\n"
    "msr control, r3\n"
    "isb\n"
    "mov r0, sp\n"
    "blx r5\n"
    "svc #0\n"
    ".globl board_guard_returned\n"
    "board_guard_returned:\n"
    "ldr r3, =board_guard\n"
    "ldrd r6, r7, [r3]\n"
    "mov sp, r7\n"
#if BOARD_FPU
    "ldrd r1, r2, [r6, #64]\n"
#else
    "ldrd r1, r2, [r6]\n"
#endif
    "board_copy r7, r1\n"
    "mov sp, r6\n"
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
    "pop {r1, r2, r4-r12, lr}\n"
    "msr primask, r12\n"
    "bx lr\n"
    ".ltorg\n"
    ".size guarded_call, . - guarded_call\n"
    ".popsection");

uint32_t hal_guard_run(uint32_t board, void (*work)(uint8_t *), uint8_t *block, uint32_t n, uint32_t limit_us, uint32_t *fault) {
    (void)board;
    board_guard_left = limit_us / 1000 + (limit_us != 0); /* the first may be short */
    uint32_t kind = guarded_call(work, block, n);
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
    uint32_t *frame = (uint32_t *)(uintptr_t)(board_guard.sp - 32);
    frame[0] = kind;
    for (uint32_t i = 1; i < 6; i++)
        frame[i] = 0;
    frame[6] = (uint32_t)(uintptr_t)board_guard_drop & ~1u;
    frame[7] = 1u << 24;
    return board_guard.sp - 32;
}

/* From an exception's handler: lr is its return, r1 where the processor pushed its frame, r3 the kind. The frame may not
   be there: a stack that was full has lost it, or the call its stack pointer. The stack below the guarded call's pointer
   is free from here on, but for the frame, which is read first. */
__attribute__((naked, used)) void board_guard_over(void) {
    __asm__ volatile(
        "ldr r2, =board_stack_bottom\n"
        "movs r0, #0\n"
        "cmp r1, r2\n"
        "bls 1f\n"
        "ldr r2, =board_guard\n"
        "ldr r2, [r2]\n"
        "cmp r1, r2\n"
        "bhs 1f\n"
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
        "orr lr, r4, #16\n" /* the frame has no floats */
        "bx lr\n"
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
