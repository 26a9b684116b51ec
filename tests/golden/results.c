typedef int32_t Status;
#define STATUS_OK 0
#define STATUS_INVAL (-22)
#define STATUS_NOMEM (-12)
SYN_INLINE Status syn_Status_of(int64_t x, uint32_t f, uint32_t l) { if (!(x == 0 || x == -22 || x == -12)) { syn_panic(f, l); } return (Status)x; }

typedef struct Pool Pool;
struct Pool {
    uint32_t used;
    uint32_t size;
};
_Static_assert(sizeof(Pool) == 8, "Pool");
_Static_assert(offsetof(Pool, used) == 0, "Pool.used");
_Static_assert(offsetof(Pool, size) == 4, "Pool.size");

Status pool_find(Pool *self, uint32_t n);
Status pool_take(Pool *self, uint32_t n, uint32_t *out_1);
Status two(Pool *pool, uint32_t n, uint32_t *out_1, uint32_t *out_2);



/* From golden/results.py. */
/* Hand out `n`: where they begin. */
#line 18 "golden/results.py"
Status pool_take(Pool *self, uint32_t n, uint32_t *out_1) {

    if (n == 0u) {
        *out_1 = 0u; return STATUS_INVAL; }
    if (n > self->size - self->used) {
        *out_1 = 0u; return STATUS_NOMEM; }
    uint32_t at = self->used;
    self->used += n;
    *out_1 = at; return STATUS_OK;
}
#line 29 "golden/results.py"
Status pool_find(Pool *self, uint32_t n) {
    if (n > self->size) {
        return STATUS_INVAL; }
    return STATUS_OK;
}
#line 36 "golden/results.py"
Status two(Pool *pool, uint32_t n, uint32_t *out_1, uint32_t *out_2) {
    const Status status_1 = pool_find(pool, n); if (status_1 != 0) { *out_1 = 0; *out_2 = 0; return status_1; }
    uint32_t a; const Status status_2 = pool_take(pool, n, &a); if (status_2 != 0) { *out_1 = 0; *out_2 = 0; return status_2; }
    uint32_t b; Status status = pool_take(pool, n, &b);
    if (status != STATUS_OK) {
        *out_1 = 0u; *out_2 = 0u; return status; }
    uint32_t unused_3; (void)pool_take(pool, 1u, &unused_3);
    (void)pool_take(pool, 1u, &b);
    *out_1 = a; *out_2 = b; return STATUS_OK;
}
