#define PRIME 16777619u

uint32_t bits_of(uint32_t x, uint32_t n);
int8_t clamp(int32_t x, float y);
int32_t halves(uint32_t x);
uint32_t hash_step(uint32_t h, uint8_t c);
uint64_t ratios(uint32_t a, uint32_t b, int32_t s, uint64_t w);
int64_t sums(uint8_t a, uint8_t b, uint32_t c, int32_t d, int64_t e);



/* From golden/arithmetic.py. */
/* Narrow results are cast back; operands meet in the wider type. */
#line 9 "golden/arithmetic.py"
int64_t sums(uint8_t a, uint8_t b, uint32_t c, int32_t d, int64_t e) {

    uint8_t narrow = (uint8_t)(a + b);
    uint32_t wide = c * 3u + narrow;
    return (int64_t)d - e + (int64_t)wide;
}
/* FNV-1a, one byte. */
#line 17 "golden/arithmetic.py"
uint32_t hash_step(uint32_t h, uint8_t c) {

    return (h ^ (uint32_t)c) * PRIME;
}
#line 23 "golden/arithmetic.py"
int32_t halves(uint32_t x) {
    int32_t low = (int32_t)(int16_t)x;
    int32_t high = (int32_t)(int16_t)(x >> 16);
    return low * high;
}
#line 30 "golden/arithmetic.py"
int8_t clamp(int32_t x, float y) {
    return syn_max_i8((int8_t)syn_sat_i32(x, -128, 127), syn_satf_i8(y));
}
#line 35 "golden/arithmetic.py"
uint64_t ratios(uint32_t a, uint32_t b, int32_t s, uint64_t w) {
    uint32_t q = syn_div_u32(a, b, 0, 36) + a % 10u;
    int32_t f = syn_div_floor_i32(s, 8, 0, 37);
    int32_t t = s / 7;
    return w / 1000ull + (uint64_t)q + (uint64_t)(uint32_t)syn_max_i32(f, 0) + (uint64_t)(uint32_t)syn_max_i32(t, 0);
}
#line 43 "golden/arithmetic.py"
uint32_t bits_of(uint32_t x, uint32_t n) {
    uint32_t mask = (1u << n) - 1u;
    return ((x >> n) & mask) | ((x << (31u - n)) & ~mask);
}
