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

/* Elements far below the greatest, as masks make them, in runs: the exponentials of the long way, bit for bit. */
static void test_masked(void **unused) {
    (void)unused;
    static const float far[] = {-INFINITY, -1e4f,   -3e38f,    -87,        -86.99f, -87.01f,
                                -95,       -103.9f, -103.972f, -103.9721f, -104,    -104.01f};
    for (int i = 0; i < 3; i++)
        for (int64_t n = 1; n <= MOST && level(i); n += n < 70 ? 1 : 43)
            for (int form = 0; form < 6; form++) {
                const tn_rows_level *l = level(i);
                int64_t step = n * (int64_t)sizeof(float);
                for (int64_t k = 0; k < ROWS * n; k += 1 + (int64_t)(draw(1) * 20 + 20)) {
                    float what = far[(int)(draw(6) + 6) % 12];
                    for (int64_t j = k; j < ROWS * n && j < k + 40; j++)
                        x[j] = form == 0 ? what : form == 1 ? -INFINITY : draw(1) > 0 ? what : draw(60);
                }
                for (int64_t row = 0; row < ROWS; row++)
                    x[row * n + (int64_t)(draw(0.5f) * (float)n + (float)n / 2) % n] = form & 1 ? 0 : 31;
                memcpy(y, x, sizeof x);
                assert_int_equal(l->softmax(ROWS, n, (const char *)y, step, (char *)y, step, false), ROWS);
                for (int64_t row = 0; row < ROWS; row++) {
                    tn_strip_sums sums = {.sum = {0}};
                    const float *from = x + row * n, *got = y + row * n;
                    int64_t greatest = 0;
                    for (int64_t k = 0; k < n; k++)
                        greatest = from[k] > from[greatest] ? k : greatest;
                    l->exp_sum(n, from, from[greatest], want, &sums, &(tn_rows_ahead){NULL, NULL});
                    double sum = 0;
                    for (int64_t k = 0; k < n; k++) {
                        float each = want[k] * got[greatest]; /* the exponential of 0 is 1 */
                        sum += (double)want[k];
                        assert_memory_equal(&got[k], &each, sizeof each);
                    }
                    assert_true(fabs(sum * (double)got[greatest] - 1) < 1e-6);
                }
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_softmax), cmocka_unit_test(test_masked)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
