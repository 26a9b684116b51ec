#define HALF 0.5f

float mix(float x, float y, int32_t n);
void scale(int8_t *restrict x, float *restrict y, uint32_t n, float factor, int32_t zero);
int32_t whole(float x);



/* From golden/floats.py. */
#line 9 "golden/floats.py"
float mix(float x, float y, int32_t n) {
    float half = x * HALF - y / 3.0f;
    if (half > 1e+10f || __builtin_isnan(half)) {
        half = -0.1f; }
    return syn_min_f32(half, (float)n) + 16777216.0f;
}
#line 17 "golden/floats.py"
int32_t whole(float x) {
    float near = x + 12582912.0f - 12582912.0f;
    return (int32_t)near + (int32_t)(syn_bits(x) >> 31);
}
#line 23 "golden/floats.py"
void scale(int8_t *restrict x, float *restrict y, uint32_t n, float factor, int32_t zero) {
    for (uint32_t i = 0; i < n; i++) {
        y[i] = (float)((int32_t)x[i] - zero) * factor;
    }
}
