/* The four functions that a compiler may call without being asked, for programs without a libc.
   Compiled with -fno-builtin -fno-tree-loop-distribute-patterns, or each would become a call of itself. */
#include <stddef.h>
#include <stdint.h>

void *memcpy(void *restrict to, const void *restrict from, size_t n);
void *memmove(void *to, const void *from, size_t n);
void *memset(void *to, int value, size_t n);
int memcmp(const void *a, const void *b, size_t n);

typedef uint32_t __attribute__((may_alias)) word;

#define ALIGNED(a, b) ((((uintptr_t)(a) | (uintptr_t)(b)) & 3) == 0)

/* 32 bytes a round by the instructions that move several registers, which no compiler chooses here by itself. */
#ifdef __thumb2__
#define COPY_32(to, from)                                                                                             \
    __asm__ volatile("ldmia %1!, {r3, r4, r5, r6}\n stmia %0!, {r3, r4, r5, r6}\n"                                    \
                     "ldmia %1!, {r3, r4, r5, r6}\n stmia %0!, {r3, r4, r5, r6}"                                      \
                     : "+r"(to), "+r"(from)                                                                           \
                     :                                                                                                \
                     : "r3", "r4", "r5", "r6", "memory")
#define FILL_32(to, four)                                                                                             \
    do {                                                                                                              \
        register uint32_t a __asm__("r3") = four, b __asm__("r4") = four, c __asm__("r5") = four, d __asm__("r6") = four; \
        __asm__ volatile("stmia %0!, {r3, r4, r5, r6}\n stmia %0!, {r3, r4, r5, r6}"                                  \
                         : "+r"(to)                                                                                   \
                         : "r"(a), "r"(b), "r"(c), "r"(d)                                                             \
                         : "memory");                                                                                 \
    } while (0)
#else
#define COPY_32(to, from)                                                                                             \
    do {                                                                                                              \
        for (uint32_t i = 0; i < 8; i++)                                                                              \
            ((word *)(void *)to)[i] = ((const word *)(const void *)from)[i];                                          \
        to += 32, from += 32;                                                                                         \
    } while (0)
#define FILL_32(to, four)                                                                                             \
    do {                                                                                                              \
        for (uint32_t i = 0; i < 8; i++)                                                                              \
            ((word *)(void *)to)[i] = four;                                                                           \
        to += 32;                                                                                                     \
    } while (0)
#endif

static void forward(uint8_t *to, const uint8_t *from, size_t n) {
    if (ALIGNED(to, from)) {
        for (; n >= 32; n -= 32)
            COPY_32(to, from);
        for (; n >= 4; n -= 4, to += 4, from += 4)
            *(word *)(void *)to = *(const word *)(const void *)from;
    }
    for (; n > 0; n--)
        *to++ = *from++;
}

void *memcpy(void *restrict to, const void *restrict from, size_t n) {
    forward(to, from, n);
    return to;
}

void *memmove(void *to, const void *from, size_t n) {
    uint8_t *t = to;
    const uint8_t *f = from;
    if ((uintptr_t)t - (uintptr_t)f >= n) { /* below the source, or clear of it */
        forward(t, f, n);
    } else {
        if (ALIGNED(t + n, f + n))
            for (; n >= 4; n -= 4)
                *(word *)(void *)(t + n - 4) = *(const word *)(const void *)(f + n - 4);
        while (n > 0) {
            n--;
            t[n] = f[n];
        }
    }
    return to;
}

void *memset(void *to, int value, size_t n) {
    uint8_t *t = to;
    for (; n > 0 && ((uintptr_t)t & 3) != 0; n--)
        *t++ = (uint8_t)value;
    uint32_t four = (uint8_t)value * 0x01010101u;
    for (; n >= 32; n -= 32)
        FILL_32(t, four);
    for (; n >= 4; n -= 4, t += 4)
        *(word *)(void *)t = four;
    for (; n > 0; n--)
        *t++ = (uint8_t)value;
    return to;
}

int memcmp(const void *a, const void *b, size_t n) {
    const uint8_t *x = a;
    const uint8_t *y = b;
    for (; n > 0; n--, x++, y++)
        if (*x != *y)
            return *x - *y;
    return 0;
}
