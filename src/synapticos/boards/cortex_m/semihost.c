/* Files, the argument and the exit code by semihosting: a breakpoint that an emulator or a debugger answers. */
#include "chip.h"

enum {
    SYS_OPEN = 0x01,
    SYS_CLOSE = 0x02,
    SYS_WRITE = 0x05,
    SYS_READ = 0x06,
    SYS_SEEK = 0x0A,
    SYS_GET_CMDLINE = 0x15,
    SYS_EXIT_EXTENDED = 0x20,
    MODE_READ = 1,   /* rb */
    MODE_UPDATE = 3, /* r+b */
    MODE_WRITE = 5,  /* wb */
    LINE = 256,
};

static int32_t ask(uint32_t what, const void *block) {
    register uint32_t r0 __asm__("r0") = what;
    register const void *r1 __asm__("r1") = block;
    __asm__ volatile("bkpt #0xab" : "+r"(r0) : "r"(r1) : "memory");
    return (int32_t)r0;
}

void board_exit(int32_t code) {
    const uint32_t block[2] = {0x20026, (uint32_t)code};
    for (;;)
        ask(SYS_EXIT_EXTENDED, block);
}

void hal_exit(uint32_t board, int32_t code) {
    (void)board;
    board_exit(code);
}

uint32_t hal_argument(uint32_t board, uint8_t *buffer, uint32_t n) {
    (void)board;
    uint8_t line[LINE]; /* the program's name, a space, the argument */
    uint32_t block[2] = {(uint32_t)(uintptr_t)line, LINE};
    line[0] = 0;
    if (ask(SYS_GET_CMDLINE, block) != 0)
        return 0;
    uint32_t at = 0;
    while (at < LINE && line[at] != 0 && line[at] != ' ')
        at++;
    if (at < LINE && line[at] == ' ')
        at++;
    uint32_t have = 0;
    for (; at < LINE && line[at] != 0; at++, have++)
        if (have < n)
            buffer[have] = line[at];
    return have;
}

static int32_t open(const uint8_t *name, uint32_t mode) {
    uint32_t n = 0;
    while (name[n] != 0)
        n++;
    const uint32_t block[3] = {(uint32_t)(uintptr_t)name, mode, n};
    return ask(SYS_OPEN, block);
}

/* One open, seek, transfer and close. Handles are the emulator's own, so they are never shown. */
static int32_t transfer(uint32_t what, int32_t file, uint32_t at, const uint8_t *data, uint32_t n) {
    const uint32_t place[2] = {(uint32_t)file, at};
    const uint32_t block[3] = {(uint32_t)file, (uint32_t)(uintptr_t)data, n};
    int32_t moved = HAL_IO;
    if (at == 0 || ask(SYS_SEEK, place) == 0) {
        uint32_t left = (uint32_t)ask(what, block);
        if (left <= n)
            moved = (int32_t)(n - left);
    }
    ask(SYS_CLOSE, place);
    return moved;
}

int32_t hal_file_read(uint32_t board, const uint8_t *name, uint32_t at, uint8_t *data, uint32_t n) {
    (void)board;
    int32_t file = open(name, MODE_READ);
    return file < 0 ? HAL_NOENT : transfer(SYS_READ, file, at, data, n);
}

int32_t hal_file_write(uint32_t board, const uint8_t *name, uint32_t at, const uint8_t *data, uint32_t n) {
    (void)board;
    int32_t file = open(name, at == 0 ? MODE_WRITE : MODE_UPDATE);
    return file < 0 ? HAL_NOENT : transfer(SYS_WRITE, file, at, data, n);
}
