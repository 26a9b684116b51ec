typedef uint8_t Kind;
#define KIND_IDLE 0
#define KIND_BUSY 1
#define KIND_GONE 2
SYN_INLINE Kind syn_Kind_of(uint64_t x, uint32_t f, uint32_t l) { if (!(x == 0 || x == 1 || x == 2)) { syn_panic(f, l); } return (Kind)x; }

uint32_t first_zero(uint8_t *p, uint32_t n);
int32_t loops(int16_t *p, uint32_t n);
int32_t sign(int32_t x);
uint32_t turn(Kind kind, uint32_t n);
bool within(int32_t x, int32_t low, int32_t high);



/* From golden/control.py. */
#line 13 "golden/control.py"
int32_t sign(int32_t x) {
    if (x < 0) {
        return -1;
    } else if (x == 0) {
        return 0;
    } else {
        return 1;
    }
}
#line 23 "golden/control.py"
uint32_t first_zero(uint8_t *p, uint32_t n) {
    /* Stops at the first: what lies behind is not looked at. */
    for (uint32_t i = 0; i < n; i++) {
        if (p[i] == 0) {
            return i; } }
    return n;
}
#line 32 "golden/control.py"
int32_t loops(int16_t *p, uint32_t n) {
    int32_t total = 0;
    for (uint32_t i = 0; i < n; i += 4) {
        total += p[i]; }
    for (int32_t j = 7; j > -1; j--) {
        total -= p[j]; }
    uint32_t k = 0u;
    while (k < n && total > 0) {
        k++;
        if (p[k] == 0) {
            continue; }
        total--; }
    return total;
}
#line 48 "golden/control.py"
uint32_t turn(Kind kind, uint32_t n) {
    switch (kind) {
    case KIND_IDLE: {
        n++; break; }
    default: {
        n = 0u; break; } }
    switch (n) {
    case 1u: {
        return 10u; }
    case 2u: case 3u: {
        n *= 2u; break; }
    default: break;
    }
    return kind != KIND_IDLE ? n : n + 1u;
}
#line 65 "golden/control.py"
bool within(int32_t x, int32_t low, int32_t high) {
    if (low > high) { syn_panic(0, 66); }
    return low <= x && x < high && x != 3;
}
