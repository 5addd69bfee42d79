/* What this machine can do, and what share of it elementwise kernels, reductions and row-wise chains reach.

       bench_micro [THREADS [ISA]]

   Bytes are those a kernel must move: inputs read once, outputs written once. Shares are of the rate of a copy, measured beside. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

#include <tenon/tenon.h>

#include "base/os.h"

#define ROWS 4096
#define COLUMNS 1024
#define BYTES ((double)ROWS * COLUMNS * 4)

static int threads = 1;
static const char *isa;

/* --- the machine ---------------------------------------------------------------------------------------------------------------- */

/* A million rounds of multiply-adds into ten independent sums. */
#define ROUNDS 1000000
#define SUMS 10
#define PEAK(name, target, vector, lanes, madd)                                                  \
    target static float name(void) {                                                             \
        vector sum[SUMS], x = {0}, y = {0};                                                      \
        x += 0.999f, y += 1e-3f;                                                                 \
        _Pragma("GCC unroll 10") for (int i = 0; i < SUMS; i++) sum[i] = y;                      \
        for (int n = 0; n < ROUNDS; n++)                                                         \
            _Pragma("GCC unroll 10") for (int i = 0; i < SUMS; i++) sum[i] = madd(sum[i], x, y); \
        float total = 0;                                                                         \
        for (int i = 0; i < SUMS; i++)                                                           \
            for (int j = 0; j < lanes; j++)                                                      \
                total += sum[i][j];                                                              \
        return total;                                                                            \
    }
#if defined(__x86_64__)
PEAK(peak_avx2, __attribute__((target("avx2,fma"))), __m256, 8, _mm256_fmadd_ps)
PEAK(peak_avx512, __attribute__((target("avx512f"))), __m512, 16, _mm512_fmadd_ps)
#endif
#if defined(__ARM_NEON)
#define MADD(a, b, c) vfmaq_f32(c, a, b)
PEAK(peak_plain, , float32x4_t, 4, MADD)
#else
typedef float lanes4 __attribute__((vector_size(16)));
#define MADD(a, b, c) ((a) * (b) + (c))
PEAK(peak_plain, , lanes4, 4, MADD)
#endif

static volatile float sink;

static void print_peak(void) {
    double best = 1e9;
    int lanes = 4;
    for (int i = 0; i < 5; i++) {
        double start = tn_clock();
#if defined(__x86_64__)
        lanes = tn_cpu_has(TN_ISA_AVX512) ? 16 : tn_cpu_has(TN_ISA_AVX2) ? 8 : 4;
        sink = lanes == 16 ? peak_avx512() : lanes == 8 ? peak_avx2() : peak_plain();
#else
        sink = peak_plain();
#endif
        best = fmin(best, tn_clock() - start);
    }
    printf("multiply-add, one thread        %8.1f GFLOP/s\n", 2.0 * ROUNDS * SUMS * lanes / best * 1e-9);
}

static double copy_rate(void) {
    float *a = malloc((size_t)BYTES), *b = malloc((size_t)BYTES);
    double best = 1e9;
    if (!a || !b)
        exit(1);
    memset(a, 1, (size_t)BYTES);
    for (int i = 0; i < 20; i++) {
        double start = tn_clock();
        memcpy(b, a, (size_t)BYTES);
        sink = b[i * 1000];
        if (i)
            best = fmin(best, tn_clock() - start);
    }
    free(a);
    free(b);
    return 2 * BYTES / best;
}

/* --- kernels --------------------------------------------------------------------------------------------------------------------- */

/* Seconds of one run of g (taken over) with inputs of ones and sawteeth. */
static double run_time(tn_graph *g, tn_dtype dtype, int repeat) {
    tn_model *model = tn_model_from_graph(g, NULL);
    tn_session *session =
        model ? tn_session_create(model, TN_OPTIONS(tn_session_options, .threads = threads, .isa = isa)) : NULL;
    tn_binding in[3];
    uint32_t inputs = session ? tn_model_input_count(model) : 0;
    for (uint32_t i = 0; i < inputs; i++) {
        tn_type type = tn_model_input_type(model, i);
        int64_t dims[8] = {0};
        for (int d = 0; d < tn_type_rank(tn_model_graph(model), type); d++)
            tn_dim_is_const(tn_model_graph(model), tn_type_dims(tn_model_graph(model), type)[d], &dims[d]);
        in[i] = (tn_binding){tn_model_input_name(model, i),
                             tn_tensor_create(dtype, tn_type_rank(tn_model_graph(model), type), dims), NULL};
        for (int64_t k = 0; k < tn_tensor_count(in[i].tensor); k++)
            tn_tensor_set_f64(in[i].tensor, k, (double)(k * 7919 % 1999) / 333 - 3);
    }
    double best = 1e9;
    for (int i = 0; i < 12; i++) {
        double start = tn_clock();
        for (int j = 0; j < repeat; j++) {
            tn_tensor *y = NULL;
            if (!session || tn_session_run(session, inputs, in, 1, (const tn_output[]){{"y", &y, NULL}}) != TN_OK) {
                fprintf(stderr, "%s\n", tn_error_message());
                exit(1);
            }
            tn_tensor_destroy(y);
        }
        best = fmin(best, (tn_clock() - start) / repeat);
    }
    for (uint32_t i = 0; i < inputs; i++)
        tn_tensor_destroy(in[i].tensor);
    tn_session_destroy(session);
    tn_model_destroy(model);
    tn_graph_destroy(g);
    return best;
}

typedef tn_value build(tn_graph *g, tn_value x);

static tn_value build_one(tn_graph *g, tn_value x) {
    return tn_add(g, x, tn_scalar_like(g, x, 1));
}
static tn_value build_add(tn_graph *g, tn_value x) {
    return tn_add(g, x, tn_input(g, "b", tn_value_dtype(g, x), TN_SHAPE(ROWS, COLUMNS)));
}
static tn_value build_bias(tn_graph *g, tn_value x) {
    return tn_add(g, x, tn_input(g, "b", tn_value_dtype(g, x), TN_SHAPE(COLUMNS)));
}
static tn_value build_relu(tn_graph *g, tn_value x) {
    return tn_relu(g, x);
}
static tn_value build_gelu(tn_graph *g, tn_value x) {
    return tn_gelu(g, x);
}
static tn_value build_silu(tn_graph *g, tn_value x) {
    return tn_silu(g, x);
}
static tn_value build_exp(tn_graph *g, tn_value x) {
    return tn_exp(g, x);
}
static tn_value build_log(tn_graph *g, tn_value x) {
    return tn_log(g, x);
}
static tn_value build_tanh(tn_graph *g, tn_value x) {
    return tn_tanh(g, x);
}
static tn_value build_sin(tn_graph *g, tn_value x) {
    return tn_sin(g, x);
}
static tn_value build_square(tn_graph *g, tn_value x) {
    return tn_pow(g, x, tn_scalar_like(g, x, 2));
}
static tn_value build_where(tn_graph *g, tn_value x) {
    return tn_select(g, tn_less(g, x, tn_scalar_like(g, x, 0)), tn_scalar_like(g, x, 0.5), x);
}
static tn_value build_round_trip(tn_graph *g, tn_value x) {
    return tn_cast(g, tn_add(g, tn_cast(g, x, TN_I32), tn_scalar(g, TN_I32, 1)), TN_F32);
}
static tn_value build_softmax(tn_graph *g, tn_value x) {
    return tn_softmax(g, x, -1);
}
static tn_value build_layer_norm(tn_graph *g, tn_value x) {
    tn_value scale = tn_input(g, "b", tn_value_dtype(g, x), TN_SHAPE(COLUMNS));
    return tn_layer_norm(g, x, scale, scale, -1, 1e-5);
}
static tn_value build_transpose(tn_graph *g, tn_value x) {
    return tn_neg(g, tn_transpose(g, x, NULL));
}
static tn_value build_sum_along(tn_graph *g, tn_value x) {
    return tn_reduce_sum(g, x, 1, (const int[]){1}, true);
}
static tn_value build_sum_across(tn_graph *g, tn_value x) {
    return tn_reduce_sum(g, x, 1, (const int[]){0}, true);
}
static tn_value build_max_along(tn_graph *g, tn_value x) {
    return tn_reduce_max(g, x, 1, (const int[]){1}, true);
}

static const struct {
    const char *name;
    build *build;
    double moved; /* of BYTES */
    tn_dtype dtype;
} kernels[] = {
    {"x + 1", build_one, 2, TN_F32},
    {"add", build_add, 3, TN_F32},
    {"add a row", build_bias, 2, TN_F32},
    {"relu", build_relu, 2, TN_F32},
    {"gelu", build_gelu, 2, TN_F32},
    {"silu", build_silu, 2, TN_F32},
    {"exp", build_exp, 2, TN_F32},
    {"log", build_log, 2, TN_F32},
    {"tanh", build_tanh, 2, TN_F32},
    {"sin", build_sin, 2, TN_F32},
    {"pow(x, 2)", build_square, 2, TN_F32},
    {"where", build_where, 2, TN_F32},
    {"to i32, + 1, back", build_round_trip, 2, TN_F32},
    {"relu, f16", build_relu, 1, TN_F16},
    {"add, bf16", build_add, 1.5, TN_BF16},
    {"add, i32", build_add, 3, TN_I32},
    {"add, i64", build_add, 6, TN_I64},
    {"neg of the transpose", build_transpose, 2, TN_F32},
    {"sum along rows", build_sum_along, 1, TN_F32},
    {"sum over rows", build_sum_across, 1, TN_F32},
    {"max along rows", build_max_along, 1, TN_F32},
    {"softmax", build_softmax, 2, TN_F32},
    {"layer norm", build_layer_norm, 2, TN_F32},
};

int main(int argc, char **argv) {
#if defined(__GLIBC__)
    /* results reuse memory that is there: what is measured is kernels, not page faults */
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
    threads = argc > 1 ? atoi(argv[1]) : 1;
    isa = argc > 2 ? argv[2] : NULL;
    print_peak();
    printf("copy of 16 MiB, one thread      %8.1f GB/s\n\n", copy_rate() * 1e-9);
    printf("%-24s %9s %9s %9s   4096 x 1024, %d threads\n", "", "ms", "GB/s", "of copy", threads);
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        tn_graph *g = tn_graph_create();
        tn_value x = tn_input(g, "x", kernels[i].dtype, TN_SHAPE(ROWS, COLUMNS));
        tn_set_output(g, "y", kernels[i].build(g, x));
        double seconds = run_time(g, kernels[i].dtype, 1), rate = kernels[i].moved * BYTES / seconds;
        printf("%-24s %9.3f %9.2f %8.0f%%\n", kernels[i].name, seconds * 1e3, rate * 1e-9, 100 * rate / copy_rate());
        fflush(stdout);
    }
    static const int64_t shapes[][2] = {{1, 16}, {1, 256}, {1, 4096}, {64, 64}, {1000, 7}, {7, 1000}};
    printf("\n%-24s %9s\n", "relu(x + row)", "us");
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        tn_graph *g = tn_graph_create();
        tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE(shapes[i][0], shapes[i][1]));
        tn_set_output(g, "y", tn_relu(g, tn_add(g, x, tn_input(g, "b", TN_F32, TN_SHAPE(shapes[i][1])))));
        double seconds = run_time(g, TN_F32, 200);
        printf("%6d x %-15d %9.3f\n", (int)shapes[i][0], (int)shapes[i][1], seconds * 1e6);
    }
    return 0;
}
