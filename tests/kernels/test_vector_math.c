/* Vector math against the C library in f64: the stated bounds, at every level of this machine, over a sample of all floats, or with
   TENON_FULL=1 over all 2^32; and the same bits wherever an element stands in a strip. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/os.h"
#include "kernels/machine.h"
#include "kernels/vector_math.h"

#define N 512

static const struct {
    tn_isa isa;
    const char *name;
} levels[] = {{TN_ISA_GENERIC, "generic"}, {TN_ISA_AVX2, "avx2"}, {TN_ISA_AVX512, "avx512"}, {TN_ISA_NEON, "neon"}};

static double sigmoid(double x) {
    return x >= 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x));
}
static double reciprocal_root(double x) {
    return 1 / sqrt(x);
}

static const struct {
    tn_scalar_op op;
    double (*f)(double);
    double bound;
} functions[] = {
    {TN_SCALAR_EXP, exp, 1.0},   {TN_SCALAR_EXPM1, expm1, 1.7},
    {TN_SCALAR_LOG, log, 1.0},   {TN_SCALAR_LOG1P, log1p, 1.0},
    {TN_SCALAR_TANH, tanh, 2.7}, {TN_SCALAR_SIGMOID, sigmoid, 2.5},
    {TN_SCALAR_ERF, erf, 6.6},   {TN_SCALAR_SIN, sin, 0.51},
    {TN_SCALAR_COS, cos, 0.51},  {TN_SCALAR_RSQRT, reciprocal_root, 1.5},
};

static bool full(void) {
    const char *text = getenv("TENON_FULL");
    return text && *text && strcmp(text, "0") != 0;
}

/* How far a float is from a value, in units of the value's last place; 1e9 where no distance makes sense. */
static double distance(double want, float got) {
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got) ? 0 : 1e9;
    if (want == 0)
        return got == 0 && !signbit(want) == !signbit(got) ? 0 : 1e9;
    int exponent;
    frexp(want, &exponent);
    exponent = exponent < -125 ? -125 : exponent;
    if (isinf(got)) /* the next after the largest float */
        return isinf(want) || isinf((float)want) ? (want > 0) == (got > 0) ? 0 : 1e9
               : fabs(want) > 0x1.fffffap127     ? 1
                                                 : 1e9;
    if (isinf(want))
        return 1e9;
    double unit = ldexp(1, exponent - 24);
    return fabs((double)got - (want > 0x1.fffffffp127 ? 0x1p128 : want < -0x1.fffffffp127 ? -0x1p128 : want)) / unit;
}

static float of_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void test_bounds(void **s) {
    (void)s;
    enum { LEVELS = sizeof levels / sizeof *levels };
    uint32_t step = full() ? 1 : 20011;
    for (size_t k = 0; k < sizeof functions / sizeof *functions; k++) {
        double worst[LEVELS] = {0}, want[N];
        float at[LEVELS] = {0}, x[N], y[N];
        for (uint64_t bits = 0; bits <= UINT32_MAX;) {
            int n = 0;
            for (; n < N && bits <= UINT32_MAX; bits += step, n++)
                want[n] = functions[k].f((double)(x[n] = of_bits((uint32_t)bits)));
            for (size_t l = 0; l < LEVELS; l++) {
                if (!tn_cpu_has(levels[l].isa))
                    continue;
                tn_strip_best(levels[l].isa)->op[functions[k].op][TN_STRIP_F32](n, x, NULL, NULL, y);
                for (int i = 0; i < n; i++) {
                    double d = distance(want[i], y[i]);
                    if (functions[k].op == TN_SCALAR_ERF)
                        assert_false(fabsf(y[i]) > 1 || (fabsf(x[i]) >= 4.1f && fabsf(y[i]) < 1));
                    if (d > worst[l]) {
                        worst[l] = d;
                        at[l] = x[i];
                    }
                }
            }
        }
        for (size_t l = 0; l < LEVELS; l++) {
            printf("%s, %s: at most %d thousandths of the last place, at bits %08x\n", levels[l].name,
                   tn_scalar_describe(functions[k].op)->name, (int)(worst[l] < 1e6 ? worst[l] * 1000 : 1e9),
                   tn_vm_bits(at[l]));
            assert_true(worst[l] <= functions[k].bound);
        }
    }
}

static uint64_t state = 20261129;
static uint32_t draw(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 32);
}

static void test_pow(void **s) {
    (void)s;
    static const float special[] = {0.0f,  -0.0f,    1.0f,      -1.0f,           0.5f,      -0.5f,   2.0f, 3.0f, -2.0f,
                                    -3.0f, INFINITY, -INFINITY, 0x1.fffffep127f, 0x1p-149f, 0x1p24f, NAN};
    enum { SPECIAL = sizeof special / sizeof *special };
    int rounds = full() ? 200000 : 2000;
    for (size_t l = 0; l < sizeof levels / sizeof *levels; l++) {
        if (!tn_cpu_has(levels[l].isa))
            continue;
        tn_strip_fn *run = tn_strip_best(levels[l].isa)->op[TN_SCALAR_POW][TN_STRIP_F32];
        for (int round = 0; round < rounds; round++) {
            float x[N], y[N], z[N];
            for (int i = 0; i < N; i++) {
                x[i] = round == 0 ? special[i % SPECIAL] : of_bits(draw());
                y[i] = round == 0       ? special[i / SPECIAL % SPECIAL]
                       : round % 3 == 0 ? (float)((int)(draw() % 21) - 10)
                       : round % 3 == 1 ? (float)((int)(draw() % 2001) - 1000) / 100
                                        : of_bits(draw());
                if (round % 2 && isfinite(x[i]))
                    x[i] = 1 + x[i] / (fabsf(x[i]) + 1) * 0.4f;
            }
            run(N, x, y, NULL, z);
            for (int i = 0; i < N; i++)
                if (distance(pow((double)x[i], (double)y[i]), z[i]) > 0.51)
                    fail_msg("%s: pow of bits %08x and %08x", levels[l].name, tn_vm_bits(x[i]), tn_vm_bits(y[i]));
        }
    }
}

/* Every function of F32 in strips of all lengths to 70, from all offsets to 16: the bits of a strip of one. */
static void test_places(void **s) {
    (void)s;
    for (size_t l = 0; l < sizeof levels / sizeof *levels; l++) {
        if (!tn_cpu_has(levels[l].isa))
            continue;
        const tn_strip_level *level = tn_strip_best(levels[l].isa);
        for (int op = 0; op < TN_SCALAR_COUNT; op++) {
            tn_strip_fn *run = level->op[op][TN_STRIP_F32];
            if (!run || op == TN_SCALAR_SELECT)
                continue;
            bool boolean = tn_scalar_describe((tn_scalar_op)op)->boolean;
            size_t bytes = boolean ? 1 : 4;
            float a[96], b[96], alone[96], out[96];
            for (int i = 0; i < 96; i++) {
                a[i] = (float)(draw() % 4000) / 333 - 5 + (i % 7 == 0 ? 3e6f : 0);
                b[i] = (float)(draw() % 400) / 33 - 5;
                run(1, &a[i], &b[i], NULL, (char *)alone + (size_t)i * bytes);
            }
            for (int n = 1; n <= 70; n++)
                for (int at = 0; at < 16; at++) {
                    run(n, a + at, b + at, NULL, out);
                    if (memcmp(out, (char *)alone + (size_t)at * bytes, (size_t)n * bytes) != 0)
                        fail_msg("%s, %s: %d elements from %d have other bits than alone", levels[l].name,
                                 tn_scalar_describe((tn_scalar_op)op)->name, n, at);
                }
        }
    }
}

/* The greatest and the least of runs in several parts, among zeros of both signs, infinities and NaN: lanes combined, those of one after
   the other. */
static void test_extremes(void **s) {
    (void)s;
    static const double special[] = {0.0, -0.0, 1.0, INFINITY, -INFINITY, NAN};
    for (size_t l = 0; l < sizeof levels / sizeof *levels; l++) {
        if (!tn_cpu_has(levels[l].isa))
            continue;
        const tn_strip_level *level = tn_strip_best(levels[l].isa);
        for (int round = 0; round < 4000; round++) {
            tn_scalar_op op = round % 2 ? TN_SCALAR_MAX : TN_SCALAR_MIN;
            tn_strip_type type = round / 2 % 2 ? TN_STRIP_F64 : TN_STRIP_F32;
            int64_t bytes = tn_strip_bytes(type), n = draw() % 300, cut = n ? draw() % n : 0;
            int kinds = 1 + (int)(draw() % 6), rare = 1 + (int)(draw() % 100), below = (int)(draw() % 3);
            double x[300], lanes[TN_STRIP_LANES], one;
            for (int64_t i = 0; i < n + TN_STRIP_LANES + 1; i++) {
                double v = i >= n                         ? op == TN_SCALAR_MAX ? -INFINITY : INFINITY
                           : draw() % (uint32_t)rare == 0 ? special[draw() % (uint32_t)kinds]
                           : below == 0                   ? (double)(draw() % 100) - 50
                           : below == 1                   ? -1 - (double)(draw() % 100)
                                                          : 1 + (double)(draw() % 100);
                float narrow = (float)v;
                char *to = i < n ? (char *)x + i * bytes : i == n ? (char *)&one : (char *)lanes + (i - n - 1) * bytes;
                memcpy(to, type == TN_STRIP_F32 ? (void *)&narrow : (void *)&v, (size_t)bytes);
            }
            level->fold[op][type](cut, x, 0, lanes);
            level->fold[op][type](n - cut, (char *)x + cut * bytes, cut % TN_STRIP_LANES, lanes);
            for (int64_t i = 0; i < n; i++)
                level->op[op][type](1, &one, (char *)x + i * bytes, NULL, &one);
            for (int i = 1; i < TN_STRIP_LANES; i++)
                level->op[op][type](1, lanes, (char *)lanes + i * bytes, NULL, lanes);
            float a, b;
            memcpy(&a, lanes, sizeof a);
            memcpy(&b, &one, sizeof b);
            bool unknown = type == TN_STRIP_F32 ? isnan(a) && isnan(b) : isnan(lanes[0]) && isnan(one);
            if (!unknown && memcmp(lanes, &one, (size_t)bytes) != 0)
                fail_msg("%s, %s: round %d, %d elements", levels[l].name, tn_scalar_describe(op)->name, round, (int)n);
        }
    }
}

/* All 16-bit floats there and back, and all floats rounded to them, as ir/convert.c does it. */
static void test_16_bit_floats(void **s) {
    (void)s;
    for (size_t l = 0; l < sizeof levels / sizeof *levels; l++) {
        if (!tn_cpu_has(levels[l].isa))
            continue;
        const tn_strip_level *level = tn_strip_best(levels[l].isa);
        uint32_t step = full() ? 1 : 4099;
        for (uint64_t bits = 0; bits <= UINT32_MAX; bits += step) {
            float x = of_bits((uint32_t)bits), y;
            uint16_t half, narrow;
            for (int brain = 0; brain < 2; brain++) {
                level->store[brain ? TN_BF16 : TN_F16](1, &x, &half, 1);
                narrow = brain ? tn_f32_to_bf16(x) : tn_f32_to_f16(x);
                level->load[brain ? TN_BF16 : TN_F16](1, &half, 1, &y);
                float wide = brain ? tn_bf16_to_f32(narrow) : tn_f16_to_f32(narrow);
                if (half != narrow || tn_vm_bits(y) != tn_vm_bits(wide))
                    fail_msg("%s: bits %08x become %04x, not %04x", levels[l].name, (unsigned)bits, half, narrow);
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bounds), cmocka_unit_test(test_pow),
                                       cmocka_unit_test(test_places), cmocka_unit_test(test_16_bit_floats),
                                       cmocka_unit_test(test_extremes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
