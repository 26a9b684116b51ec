/* What generated C leans on: checks that stay in every build, and the operations that C leaves open.
 * Freestanding: no header but the compiler's own. */
#ifndef SYN_SUPPORT_H
#define SYN_SUPPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Capacities and widths decide many comparisons: that one has a single answer in this build is no mistake. */
#pragma GCC diagnostic ignored "-Wtype-limits"
#pragma GCC diagnostic ignored "-Wtautological-compare"
#pragma GCC diagnostic ignored "-Wshift-count-overflow"
/* Every local is set before it is read, casts are meant, and indices are checked: what gcc guesses here is noise. */
#pragma GCC diagnostic ignored "-Woverflow"
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wstringop-overflow"
#pragma GCC diagnostic ignored "-Waggressive-loop-optimizations"
#pragma GCC diagnostic ignored "-Wsign-compare" /* it warns at each comparison of ~; clang's does not, and stays on */
#else
#pragma GCC diagnostic ignored "-Wxor-used-as-pow"
#pragma GCC diagnostic ignored "-Wself-assign"
#pragma GCC diagnostic ignored "-Winteger-overflow"
#endif
#pragma GCC diagnostic ignored "-Warray-bounds"

#define SYN_INLINE static inline __attribute__((always_inline, unused))

/* The end of a program that broke its own rules. The board or the engine answers. */
__attribute__((noreturn, cold)) void syn_panic(uint32_t file, uint32_t line);

#define SYN_MINMAX(T, N) \
    SYN_INLINE T syn_min_##N(T a, T b) { return b < a ? b : a; } \
    SYN_INLINE T syn_max_##N(T a, T b) { return b > a ? b : a; }
SYN_MINMAX(uint8_t, u8) SYN_MINMAX(uint16_t, u16) SYN_MINMAX(uint32_t, u32) SYN_MINMAX(uint64_t, u64)
SYN_MINMAX(int8_t, i8) SYN_MINMAX(int16_t, i16) SYN_MINMAX(int32_t, i32) SYN_MINMAX(int64_t, i64)
SYN_MINMAX(float, f32)

#define SYN_FILL(T, N) \
    SYN_INLINE void syn_fill_##N(T *p, T value, uint32_t n) { for (uint32_t i = 0; i < n; i++) { p[i] = value; } }
SYN_FILL(uint16_t, u16) SYN_FILL(uint32_t, u32) SYN_FILL(uint64_t, u64) SYN_FILL(int16_t, i16) SYN_FILL(int32_t, i32) SYN_FILL(int64_t, i64)
SYN_FILL(float, f32)

/* Clamping: the bounds are constants of the narrow type. */
SYN_INLINE int32_t syn_sat_i32(int32_t x, int32_t lo, int32_t hi) { return x < lo ? lo : x > hi ? hi : x; }
SYN_INLINE int64_t syn_sat_i64(int64_t x, int64_t lo, int64_t hi) { return x < lo ? lo : x > hi ? hi : x; }
SYN_INLINE uint32_t syn_sat_u32(uint32_t x, uint32_t hi) { return x > hi ? hi : x; }
SYN_INLINE uint64_t syn_sat_u64(uint64_t x, uint64_t hi) { return x > hi ? hi : x; }
#define SYN_SATF(T, N, LO, HI, FLO, FHI) \
    SYN_INLINE T syn_satf_##N(float x) { return x != x ? 0 : x >= FHI ? HI : x <= FLO ? LO : (T)x; }
SYN_SATF(uint8_t, u8, 0, 255, 0.0f, 255.0f) SYN_SATF(uint16_t, u16, 0, 65535, 0.0f, 65535.0f)
SYN_SATF(uint32_t, u32, 0u, 4294967295u, 0.0f, 4294967296.0f)
SYN_SATF(uint64_t, u64, 0ull, 18446744073709551615ull, 0.0f, 18446744073709551616.0f)
SYN_SATF(int8_t, i8, -128, 127, -128.0f, 127.0f) SYN_SATF(int16_t, i16, -32768, 32767, -32768.0f, 32767.0f)
SYN_SATF(int32_t, i32, (-2147483647 - 1), 2147483647, -2147483648.0f, 2147483648.0f)
SYN_SATF(int64_t, i64, (-9223372036854775807ll - 1), 9223372036854775807ll, -9223372036854775808.0f, 9223372036854775808.0f)

SYN_INLINE uint32_t syn_bits(float x) {
    uint32_t w;
    __builtin_memcpy(&w, &x, 4);
    return (w & 0x7fffffffu) > 0x7f800000u ? 0x7fc00000u : w; /* in integers: a chip without f32 has a routine for x != x */
}
SYN_INLINE float syn_from_bits(uint32_t w) {
    float x;
    __builtin_memcpy(&x, &w, 4);
    return x;
}

/* Division: by zero it panics in every build. */
#define SYN_DIVU(T, N) \
    SYN_INLINE T syn_div_##N(T a, T b, uint32_t f, uint32_t l) { if (b == 0) { syn_panic(f, l); } return (T)(a / b); } \
    SYN_INLINE T syn_rem_##N(T a, T b, uint32_t f, uint32_t l) { if (b == 0) { syn_panic(f, l); } return (T)(a % b); }
SYN_DIVU(uint8_t, u8) SYN_DIVU(uint16_t, u16) SYN_DIVU(uint32_t, u32) SYN_DIVU(uint64_t, u64)
#define SYN_DIVS(T, N, MIN) \
    SYN_INLINE T syn_div_trunc_##N(T a, T b, uint32_t f, uint32_t l) { \
        if (b == 0 || (b == -1 && a == MIN)) { syn_panic(f, l); } \
        return (T)(a / b); } \
    SYN_INLINE T syn_rem_trunc_##N(T a, T b, uint32_t f, uint32_t l) { \
        if (b == 0) { syn_panic(f, l); } \
        return b == -1 ? 0 : (T)(a % b); } \
    SYN_INLINE T syn_div_floor_##N(T a, T b, uint32_t f, uint32_t l) { \
        T q = syn_div_trunc_##N(a, b, f, l), r = (T)(a - (T)(q * b)); \
        return (T)(q - (r != 0 && (r < 0) != (b < 0))); } \
    SYN_INLINE T syn_mod_floor_##N(T a, T b, uint32_t f, uint32_t l) { \
        T r = syn_rem_trunc_##N(a, b, f, l); \
        return r != 0 && (r < 0) != (b < 0) ? (T)(r + b) : r; }
SYN_DIVS(int8_t, i8, -128) SYN_DIVS(int16_t, i16, -32768) SYN_DIVS(int32_t, i32, (-2147483647 - 1))
#define SYN_DIVP(T, N) /* floor and truncation agree on what is not negative */ \
    SYN_INLINE T syn_div_trunc_##N(T a, T b, uint32_t f, uint32_t l) { return syn_div_##N(a, b, f, l); } \
    SYN_INLINE T syn_rem_trunc_##N(T a, T b, uint32_t f, uint32_t l) { return syn_rem_##N(a, b, f, l); } \
    SYN_INLINE T syn_div_floor_##N(T a, T b, uint32_t f, uint32_t l) { return syn_div_##N(a, b, f, l); } \
    SYN_INLINE T syn_mod_floor_##N(T a, T b, uint32_t f, uint32_t l) { return syn_rem_##N(a, b, f, l); }
SYN_DIVP(uint8_t, u8) SYN_DIVP(uint16_t, u16) SYN_DIVP(uint32_t, u32)

SYN_INLINE uint32_t syn_index(uint64_t i, uint32_t n, uint32_t f, uint32_t l) {
    if (i >= n) { syn_panic(f, l); }
    return (uint32_t)i;
}

/* A check that a build may leave out: what a run on checked Python would have trapped. */
#define SYN_ARITH(T, N) \
    SYN_INLINE T syn_add_##N(T a, T b, uint32_t f, uint32_t l) { T r; if (__builtin_add_overflow(a, b, &r)) { syn_panic(f, l); } return r; } \
    SYN_INLINE T syn_sub_##N(T a, T b, uint32_t f, uint32_t l) { T r; if (__builtin_sub_overflow(a, b, &r)) { syn_panic(f, l); } return r; } \
    SYN_INLINE T syn_mul_##N(T a, T b, uint32_t f, uint32_t l) { T r; if (__builtin_mul_overflow(a, b, &r)) { syn_panic(f, l); } return r; } \
    SYN_INLINE T syn_shl_##N(T a, uint64_t n, uint32_t f, uint32_t l) { \
        if (n >= 8 * sizeof(T)) { syn_panic(f, l); } \
        T r = (T)((uint64_t)a << n); \
        if ((T)(r >> n) != a) { syn_panic(f, l); } \
        return r; } \
    SYN_INLINE T syn_shr_##N(T a, uint64_t n, uint32_t f, uint32_t l) { if (n >= 8 * sizeof(T)) { syn_panic(f, l); } return (T)(a >> n); } \
    SYN_INLINE T syn_loop_##N(T stop, T most, uint32_t f, uint32_t l) { if (stop > most) { syn_panic(f, l); } return stop; }
SYN_ARITH(uint8_t, u8) SYN_ARITH(uint16_t, u16) SYN_ARITH(uint32_t, u32) SYN_ARITH(uint64_t, u64)
SYN_ARITH(int8_t, i8) SYN_ARITH(int16_t, i16) SYN_ARITH(int32_t, i32) SYN_ARITH(int64_t, i64)
SYN_INLINE uint32_t syn_most(uint32_t n, uint32_t most, uint32_t f, uint32_t l) { if (n > most) { syn_panic(f, l); } return n; }
SYN_INLINE uint32_t syn_count(uint64_t n, uint32_t bits, uint32_t f, uint32_t l) { if (n >= bits) { syn_panic(f, l); } return (uint32_t)n; }
SYN_INLINE int64_t syn_fit_i(int64_t x, int64_t lo, int64_t hi, uint32_t f, uint32_t l) { if (x < lo || x > hi) { syn_panic(f, l); } return x; }
SYN_INLINE uint64_t syn_fit_u(uint64_t x, uint64_t hi, uint32_t f, uint32_t l) { if (x > hi) { syn_panic(f, l); } return x; }
SYN_INLINE float syn_fit_f(float x, float lo, float hi, uint32_t f, uint32_t l) { if (!(x > lo && x < hi)) { syn_panic(f, l); } return x; }
SYN_INLINE float syn_not_nan(float x, uint32_t f, uint32_t l) { if (x != x) { syn_panic(f, l); } return x; }

#endif
