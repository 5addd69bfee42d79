/* Softmax of many rows in one call: the bits of each row alone, whatever their length, distance and number; it stops where a row has to
   go the long way. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/os.h"
#include "kernels/rows.h"

enum { ROWS = 53, MOST = 200 };
static float x[ROWS * (MOST + 3)], want[ROWS * (MOST + 3)], y[ROWS * (MOST + 3)];

static const tn_rows_level *level(int i) {
#if defined(TN_HAVE_ISA_AVX512)
    if (i == 1)
        return tn_cpu_has(TN_ISA_AVX2) ? &tn_rows_avx2 : NULL;
    if (i == 2)
        return tn_cpu_has(TN_ISA_AVX512) ? &tn_rows_avx512 : NULL;
#elif defined(TN_HAVE_ISA_NEON)
    if (i == 1)
        return &tn_rows_neon;
#endif
    return i == 0 ? &tn_rows_generic : NULL;
}

static uint32_t state = 1;
static float draw(float scale) {
    state = state * 1664525u + 1013904223u;
    return ((float)(state >> 8) / 8388608.0f - 1.0f) * scale;
}

static void check(const tn_rows_level *l, int64_t n, int64_t pitch, bool divides, float scale, int64_t bad,
                  float what) {
    int64_t step = pitch * (int64_t)sizeof(float);
    for (int64_t i = 0; i < ROWS * pitch; i++)
        x[i] = draw(scale);
    memcpy(want, x, sizeof x);
    if (bad >= 0)
        x[bad * pitch + n / 2] = what;
    int64_t end = bad < 0 ? ROWS : bad;
    for (int64_t row = 0; row < end; row++) {
        char *at = (char *)(want + row * pitch);
        assert_int_equal(l->softmax(1, n, at, step, at, step, divides), 1);
        double sum = 0;
        for (int64_t i = 0; i < n; i++)
            sum += (double)want[row * pitch + i];
        assert_true(fabs(sum - 1) < 1e-5);
    }
    if (bad >= 0)
        memcpy(want + bad * pitch, x + bad * pitch, (size_t)(ROWS - bad) * (size_t)step);
    memcpy(y, x, sizeof x);

    int64_t done = l->softmax(ROWS, n, (const char *)y, step, (char *)y, step, divides);
    assert_int_equal(done, end);
    assert_memory_equal(y, want, (size_t)(ROWS * pitch) * sizeof *y); /* nor is anything between rows */
    memcpy(y, want, sizeof y);
    for (int64_t row = 0; row < end; row++)
        memset(y + row * pitch, 0, (size_t)n * sizeof *y);
    assert_int_equal(l->softmax(ROWS, n, (const char *)x, step, (char *)y, step, divides), end);
    assert_memory_equal(y, want, (size_t)(ROWS * pitch) * sizeof *y);
}

static void test_softmax(void **unused) {
    (void)unused;
    for (int i = 0; i < 3; i++)
        for (int64_t n = 1; n <= MOST && level(i); n += n < 70 ? 1 : 43)
            for (int form = 0; form < 8; form++) {
                float scale = form & 2 ? 200.0f : 4.0f;
                check(level(i), n, form & 4 ? n + 3 : n, form & 1, scale, -1, 0);
                check(level(i), n, n, form & 1, scale, form * 7 % ROWS, form & 4 ? NAN : INFINITY);
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_softmax)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
