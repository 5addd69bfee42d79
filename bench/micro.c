/* What share of what this machine can do the kernels reach: elementwise ones, reductions and row-wise chains of the rate of a copy,
   matrix products of the rate of multiply-adds, products of few rows of the time of one row; and what a call costs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include <tenon/tenon.h>

#include "base/os.h"
#include "support/machine.h"

#define ROWS 4096
#define COLUMNS 1024
#define BYTES ((double)ROWS * COLUMNS * 4)

static int threads = 1;
static const char *isa, *only;
static bool own_time; /* this thread's on its processor, not the clock's */

static double now(void) {
    struct timespec t;
    return own_time && clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0 ? (double)t.tv_sec + 1e-9 * (double)t.tv_nsec
                                                                       : tn_clock();
}

/* --- kernels --------------------------------------------------------------------------------------------------------------------- */

/* The best rate measured beside, in turns with runs. */
typedef struct yardstick {
    double (*rate)(void);
    double best;
} yardstick;

static double copy_rate(void) {
    return machine_copy_rate(3);
}
static double multiply_add_rate(void) {
    return machine_multiply_add_rate(threads, 1);
}

/* Seconds of one run of g (taken over) with inputs of sawteeth: best of 12 rounds of `repeat` runs. */
static double run_time(tn_graph *g, tn_dtype dtype, int repeat, yardstick *beside) {
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
        if (beside)
            beside->best = fmax(beside->best, beside->rate());
        double start = now();
        for (int j = 0; j < repeat; j++) {
            tn_tensor *y = NULL;
            if (!session || tn_session_run(session, inputs, in, 1, (const tn_output[]){{"y", &y, NULL}}) != TN_OK) {
                fprintf(stderr, "%s\n", tn_error_message());
                exit(1);
            }
            tn_tensor_destroy(y);
        }
        best = fmin(best, (now() - start) / repeat);
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

static void elementwise(void) {
    printf("%-24s %9s %9s %9s   %d x %d\n", "", "ms", "GB/s", "of copy", ROWS, COLUMNS);
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        if (only && strcmp(only, kernels[i].name))
            continue;
        tn_graph *g = tn_graph_create();
        tn_value x = tn_input(g, "x", kernels[i].dtype, TN_SHAPE(ROWS, COLUMNS));
        tn_set_output(g, "y", kernels[i].build(g, x));
        yardstick copy = {copy_rate, 0};
        double seconds = run_time(g, kernels[i].dtype, 1, &copy), rate = kernels[i].moved * BYTES / seconds;
        printf("%-24s %9.3f %9.2f %8.0f%%\n", kernels[i].name, seconds * 1e3, rate * 1e-9, 100 * rate / copy.best);
        fflush(stdout);
    }
    if (only)
        return;
    static const int64_t shapes[][2] = {{1, 16}, {1, 256}, {1, 4096}, {64, 64}, {1000, 7}, {7, 1000}};
    printf("\n%-24s %9s\n", "relu(x + row)", "us");
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        tn_graph *g = tn_graph_create();
        tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE(shapes[i][0], shapes[i][1]));
        tn_set_output(g, "y", tn_relu(g, tn_add(g, x, tn_input(g, "b", TN_F32, TN_SHAPE(shapes[i][1])))));
        double seconds = run_time(g, TN_F32, 200, NULL);
        printf("%6d x %-15d %9.3f\n", (int)shapes[i][0], (int)shapes[i][1], seconds * 1e6);
    }
}

static tn_value weights(tn_graph *g, int64_t rows, int64_t columns, int seed) {
    const int64_t dims[] = {rows, columns};
    tn_tensor *w = tn_tensor_create(TN_F32, 2, dims);
    float *p = tn_tensor_data(w);
    for (int64_t i = 0; p && i < rows * columns; i++)
        p[i] = (float)((i + seed) * 7919 % 1999) / 4000 - 0.25f;
    tn_value v = tn_constant(g, w);
    tn_tensor_destroy(w);
    return v;
}

static void matmul(void) {
    printf("%-24s %9s %9s %9s   constant columns\n", "", "ms", "GFLOP/s", "of peak");
    static const int64_t shapes[][3] = {{256, 256, 256},    {512, 512, 512},  {1024, 1024, 1024},
                                        {2048, 2048, 2048}, {128, 768, 3072}, {128, 3072, 768},
                                        {3136, 64, 256},    {3136, 576, 64},  {197, 384, 1536}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        int64_t m = shapes[i][0], k = shapes[i][1], n = shapes[i][2];
        tn_graph *g = tn_graph_create();
        tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE(m, k));
        tn_set_output(g, "y", tn_matmul(g, x, weights(g, k, n, 0)));
        yardstick peak = {multiply_add_rate, 0};
        double flops = 2.0 * (double)m * (double)k * (double)n;
        double seconds = run_time(g, TN_F32, 1 + (int)(2e8 / flops), &peak);
        printf("%5d x %5d x %-8d %9.3f %9.1f %8.0f%%\n", (int)m, (int)k, (int)n, seconds * 1e3, flops / seconds * 1e-9,
               100 * flops / seconds / peak.best);
        fflush(stdout);
    }
}

/* Eight sets of weights in turn, so that they come from memory each time. */
static void few_rows(void) {
    enum { SIDE = 4096, SETS = 8 };
    double one = 0, bytes = 4.0 * SIDE * SIDE * SETS;
    printf("%-24s %9s %9s %9s   %d sets of %d x %d weights\n", "rows", "ms", "GB/s", "of 1 row", SETS, SIDE, SIDE);
    for (int rows = 1; rows <= 16; rows *= rows == 1 ? 4 : 2) {
        tn_graph *g = tn_graph_create();
        tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE(rows, SIDE));
        for (int i = 0; i < SETS; i++)
            x = tn_matmul(g, x, weights(g, SIDE, SIDE, i));
        tn_set_output(g, "y", x);
        double seconds = run_time(g, TN_F32, 1, NULL);
        one = rows == 1 ? seconds : one;
        printf("%-24d %9.2f %9.1f %9.2f\n", rows, seconds * 1e3, bytes / seconds * 1e-9, seconds / one);
        fflush(stdout);
    }
}

/* Products of one element, which do not fuse. */
static void calls(void) {
    enum { LENGTH = 1000 };
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE(1, 1));
    for (int i = 0; i < LENGTH; i++)
        x = tn_matmul(g, x, weights(g, 1, 1, i));
    tn_set_output(g, "y", x);
    double seconds = run_time(g, TN_F32, 10, NULL);
    printf("%-24s %9.0f ns each\n", "1000 operators", seconds / LENGTH * 1e9);
}

static const struct {
    const char *name;
    void (*run)(void);
} sections[] = {
    {"machine", NULL}, {"elementwise", elementwise}, {"matmul", matmul}, {"few-rows", few_rows}, {"calls", calls}};
enum { SECTIONS = sizeof sections / sizeof *sections };

static int usage(FILE *to) {
    fprintf(to, "usage: bench_micro [--threads N | --own-time] [--isa NAME] [--kernel NAME] [SECTION]...\n"
                "sections (all without any):");
    for (int i = 0; i < SECTIONS; i++)
        fprintf(to, " %s", sections[i].name);
    fprintf(to,
            "\nThe machine's own rates are printed first; --kernel: of the elementwise section, that one alone; "
            "each kernel is measured in turns with the one it is "
            "judged by. --own-time: runs by the time that this thread had a processor, where others want it too.\n");
    return to == stderr ? 2 : 0;
}

int main(int argc, char **argv) {
#if defined(__GLIBC__)
    /* results reuse memory that is there: what is measured is kernels, not page faults */
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
    bool wanted[SECTIONS] = {false}, any = false;
    for (int i = 1; i < argc; i++) {
        int found = SECTIONS;
        if (!strcmp(argv[i], "--help"))
            return usage(stdout);
        if (!strcmp(argv[i], "--threads") && i + 1 < argc)
            threads = atoi(argv[++i]), found = -1;
        else if (!strcmp(argv[i], "--isa") && i + 1 < argc)
            isa = argv[++i], found = -1;
        else if (!strcmp(argv[i], "--kernel") && i + 1 < argc)
            only = argv[++i], found = -1;
        else if (!strcmp(argv[i], "--own-time"))
            own_time = true, found = -1;
        else
            for (found = 0; found < SECTIONS && strcmp(argv[i], sections[found].name); found++) {
            }
        if (found == SECTIONS || threads < 1)
            return usage(stderr);
        if (found >= 0)
            wanted[found] = any = true;
    }
    machine_print(threads);
    printf("\n%d thread%s, %s\n", threads, threads > 1 ? "s" : "", isa ? isa : tn_isa_name(tn_cpu_best()));
    for (int i = 0; i < SECTIONS; i++)
        if (sections[i].run && (!any || wanted[i])) {
            printf("\n");
            sections[i].run();
        }
    return 0;
}
