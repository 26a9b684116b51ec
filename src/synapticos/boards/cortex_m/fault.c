/* What a board does when it cannot go on: say where, in numbers that the host resolves to a line, and end. */
#include "chip.h"

enum { EXIT_FAULT = 3, EXIT_PANIC = 4 };

extern uint32_t board_stack_bottom[], board_stack_top[];

void board_fault(void);
void board_fault_report(const uint32_t *saved, const uint32_t *frame);

void board_text(const char *text) {
    while (*text != 0)
        board_put((uint8_t)*text++);
}

static void put_hex(const char *name, uint32_t value) {
    board_text(name);
    for (int32_t shift = 28; shift >= 0; shift -= 4)
        board_put((uint8_t)"0123456789abcdef"[value >> shift & 15]);
}

static void put_number(uint32_t value) {
    uint8_t digits[10];
    uint32_t n = 0;
    do {
        digits[n++] = (uint8_t)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    while (n > 0)
        board_put(digits[--n]);
}

/* `saved` is r4 to r11; `frame` is what the processor pushed: r0 to r3, r12, lr, pc, psr; or null if it could not. */
__attribute__((used)) void board_fault_report(const uint32_t *saved, const uint32_t *frame) {
    static const char names[8][5] = {" r4 ", " r5 ", " r6 ", " r7 ", " r8 ", " r9 ", "r10 ", "r11 "};
    uint32_t number;
    __asm__ volatile("mrs %0, ipsr" : "=r"(number));
    board_text("\nfault ");
    put_number(number);
    put_hex("  cfsr ", CFSR);
    put_hex("  hfsr ", HFSR);
    put_hex("  mmfar ", MMFAR);
    put_hex("  bfar ", BFAR);
    if (frame != 0) {
        put_hex("\n r0 ", frame[0]);
        put_hex("   r1 ", frame[1]);
        put_hex("   r2 ", frame[2]);
        put_hex("   r3 ", frame[3]);
    } else {
        board_text("\nstack overflow");
    }
    for (uint32_t i = 0; i < 8; i++) {
        board_text(i % 4 == 0 ? "\n" : "  ");
        put_hex(names[i], saved[i]);
    }
    if (frame != 0) {
        put_hex("\nr12 ", frame[4]);
        put_hex("   sp ", (uint32_t)(uintptr_t)frame + 32);
        put_hex("  psr ", frame[7]);
        put_hex("\n lr ", frame[5]);
        put_hex("\n pc ", frame[6]);
    }
    board_text("\n");
    board_exit(EXIT_FAULT);
}

/* The frame lies where the stack pointer was, unless the stack was full: then it was not pushed, and the report
   runs on the stack's top, which nobody needs any more. */
__attribute__((naked)) void board_fault(void) {
    __asm__ volatile(
#if BOARD_GUARD
        "tst lr, #8\n" /* not of an interrupt's handler */
        "beq 2f\n"
        "ldr r2, =board_guard\n"
        "ldr r2, [r2]\n"
        "cbz r2, 2f\n"
        "mov r1, sp\n"
        "movs r3, %0\n"
        "b board_guard_over\n"
        "2:\n"
#endif
        "mov r1, sp\n"
        "ldr r2, =board_stack_bottom\n"
        "add r3, r2, #256\n"
        "cmp r1, r3\n"
        "bhs 1f\n"
#if BOARD_STACK_LIMIT
        "msr msplim, r2\n"
#endif
        "ldr r3, =board_stack_top\n"
        "mov sp, r3\n"
        "movs r1, #0\n"
        "1: push {r4-r11}\n"
        "mov r0, sp\n"
        "bl board_fault_report\n"
        ".ltorg\n"
        :
        : "i"(FAULT_PROCESSOR));
}

/* Of a device that nobody asked for. */
__attribute__((weak, alias("board_fault"))) void board_interrupt(void);

void syn_panic(uint32_t file, uint32_t line) {
#if BOARD_GUARD
    uint32_t control;
    __asm__ volatile("mrs %0, control" : "=r"(control));
    if ((control & 1) != 0) /* without privilege: in a guarded call */
        board_guard_panic(file, line);
#endif
    board_text("\npanic: file ");
    put_number(file);
    board_text(" line ");
    put_number(line);
    board_text("\n");
    board_exit(EXIT_PANIC);
}
