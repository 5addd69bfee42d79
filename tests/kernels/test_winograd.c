/* Winograd's convolution (kernels/winograd_f32.c): near a plain sum in double at every small size, with paddings, odd channels and batches; the
   same bits on any number of threads, in any batch and place of it, in a crop of whole tiles, in any layout and with any epilogue. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <math.h>
#include <tenon/tenon.h>

#include "base/os.h"
#include "ops/winograd.h"
#include "runtime/model.h"

/* What stands around the convolution: channels side by side in what it reads (a product by ones before it) and in what it makes (one after it). */
enum { BEFORE = 1, AFTER = 2, AROUND = 4 };
typedef enum epilogue { NONE, BIAS_RELU, RESIDUAL, SIGMOID, EPILOGUES } epilogue;

typedef struct form {
    int64_t in, out, batch, height, width;
    int64_t lo[2], hi[2];
    epilogue epilogue;
    int around;
} form;

static tn_dtype dtype = TN_F32; /* of all values; sums are of f32 */

static uint64_t state = 9;
static double draw(void) {
    double sum = 0; /* about normal */
    for (int i = 0; i < 4; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        sum += (double)(state >> 40) / (1 << 24) - 0.5;
    }
    return sum * 1.7;
}
static tn_tensor *random_of(int rank, const int64_t *dims) {
    tn_tensor *t = tn_tensor_create(dtype, rank, dims);
    for (int64_t i = 0; i < tn_tensor_count(t); i++)
        tn_tensor_set_f64(t, i, draw());
    return t;
}

/* A convolution that changes nothing. */
static tn_value same(tn_graph *g, tn_value x, int64_t channels) {
    tn_tensor *w = tn_tensor_create(dtype, 4, (int64_t[]){channels, channels, 1, 1});
    for (int64_t i = 0; i < channels * channels; i++)
        tn_tensor_set_f64(w, i, i % (channels + 1) == 0);
    tn_value y = tn_conv(g, x, tn_constant(g, w), NULL, NULL, NULL, NULL, NULL, 1);
    tn_tensor_destroy(w);
    return y;
}

static tn_model *model_of(const form *f, tn_tensor *w, tn_tensor *bias, tn_graph **graph) {
    tn_graph *g = *graph = tn_graph_create();
    tn_value x = tn_input(g, "x", dtype, TN_SHAPE("N", f->in, "H", "W")), r = {0};
    if (f->around & BEFORE)
        x = same(g, x, f->in);
    const tn_dim lo[] = {tn_dim_const(g, f->lo[0]), tn_dim_const(g, f->lo[1])},
                 hi[] = {tn_dim_const(g, f->hi[0]), tn_dim_const(g, f->hi[1])};
    tn_value y = tn_conv(g, x, tn_constant(g, w), NULL, NULL, NULL, lo, hi, 1);
    switch (f->epilogue) {
    case BIAS_RELU: y = tn_relu(g, tn_add(g, y, tn_constant(g, bias))); break;
    case RESIDUAL:
        r = tn_input(g, "r", dtype, TN_SHAPE("N", f->out, "H2", "W2"));
        y = tn_max(g, tn_add(g, tn_add(g, y, tn_constant(g, bias)), f->around & AFTER ? same(g, r, f->out) : r),
                   tn_scalar(g, dtype, 0));
        break;
    case SIGMOID: y = tn_mul(g, y, tn_sigmoid(g, y)); break;
    default: break;
    }
    tn_set_output(g, "y", f->around & AFTER ? same(g, y, f->out) : y);
    tn_model *m = tn_model_from_graph(g, NULL);
    if (!m)
        fail_msg("%s", tn_error_message());
    return m;
}

static tn_tensor *run(tn_model *m, tn_tensor *x, tn_tensor *r, const tn_session_options *o) {
    tn_session *s = tn_session_create(m, o);
    tn_tensor *y = NULL;
    const tn_binding in[] = {{.name = "x", .tensor = x}, {.name = "r", .tensor = r}};
    if (!s || tn_session_run(s, r ? 2 : 1, in, 1, &(tn_output){.name = "y", .tensor = &y}) != TN_OK)
        fail_msg("%s", tn_error_message());
    tn_session_destroy(s);
    return y;
}

static bool uses_winograd(tn_model *m, int level, tn_isa isa) {
    const tn_compile_key key = {
        .backend = TN_BACKEND_CPU, .level = level, .isa = isa, .disable = "", .passes = "", .dump = "", .dims = ""};
    tn_compiled *c = tn_model_compile(m, &key);
    bool found = false;
    assert_non_null(c);
    for (uint32_t i = 0; i < c->plan->kernel.len; i++)
        found |= strstr(c->plan->kernel.data[i].impl->name, "winograd") != NULL;
    tn_model_release(m, c);
    return found;
}

static const char *said(const form *f) {
    static char text[160];
    snprintf(text, sizeof text, "%s, %d to %d channels, batch %d, %d x %d, pads %d %d %d %d, epilogue %d, around %d",
             tn_dtype_name(dtype), (int)f->in, (int)f->out, (int)f->batch, (int)f->height, (int)f->width, (int)f->lo[0],
             (int)f->lo[1], (int)f->hi[0], (int)f->hi[1], (int)f->epilogue, f->around);
    return text;
}

static double at(const tn_tensor *t, int64_t n, int64_t c, int64_t i, int64_t j) {
    const int64_t *d = tn_tensor_dims(t);
    return i < 0 || j < 0 || i >= d[2] || j >= d[3] ? 0 : tn_tensor_get_f64(t, ((n * d[1] + c) * d[2] + i) * d[3] + j);
}

/* The root mean square of the error, and its largest, as shares of the rms of the right result. */
static void is_right(const form *f, const tn_tensor *x, const tn_tensor *w, const tn_tensor *bias, const tn_tensor *r,
                     const tn_tensor *y) {
    const int64_t *d = tn_tensor_dims(y);
    double error = 0, square = 0, worst = 0;
    assert_int_equal(d[2], f->height + f->lo[0] + f->hi[0] - 2);
    assert_int_equal(d[3], f->width + f->lo[1] + f->hi[1] - 2);
    for (int64_t n = 0; n < d[0]; n++)
        for (int64_t m = 0; m < d[1]; m++)
            for (int64_t i = 0; i < d[2]; i++)
                for (int64_t j = 0; j < d[3]; j++) {
                    double sum = 0;
                    for (int64_t c = 0; c < f->in; c++)
                        for (int k = 0; k < 9; k++)
                            sum += at(x, n, c, i + k / 3 - f->lo[0], j + k % 3 - f->lo[1]) *
                                   tn_tensor_get_f64(w, (m * f->in + c) * 9 + k);
                    square += sum * sum;
                    if (f->epilogue == BIAS_RELU || f->epilogue == RESIDUAL)
                        sum = fmax(sum + tn_tensor_get_f64(bias, m) + (r ? at(r, n, m, i, j) : 0), 0);
                    if (f->epilogue == SIGMOID)
                        sum = sum / (1 + exp(-sum));
                    double off = fabs(at(y, n, m, i, j) - sum);
                    error += off * off;
                    worst = off > worst || isnan(off) ? off : worst;
                }
    double count = (double)tn_tensor_count(y), rms = sqrt(square / count);
    /* what 2000 channels leave, and for more of them as sums of so many terms err */
    double more = f->in > 2000 ? sqrt((double)f->in / 2000) : 1;
    double unit = dtype == TN_F16 ? 0x1p-11 : dtype == TN_BF16 ? 0x1p-8 : 0; /* each step rounds */
    if (!(sqrt(error / count) <= (4e-6 * more + 2 * unit) * rms) || !(worst <= (4e-5 * more + 16 * unit) * rms))
        fail_msg("%s: the error is %.2g, at most %.2g, of %.2g", said(f), sqrt(error / count), worst, rms);
}

static void are_same(const form *f, const char *what, const tn_tensor *a, const tn_tensor *b) {
    assert_int_equal(tn_tensor_count(a), tn_tensor_count(b));
    for (int64_t i = 0; i < tn_tensor_count(a); i++)
        if (tn_tensor_get_f64(a, i) != tn_tensor_get_f64(b, i)) /* NOLINT: bits, but for the sign of 0 */
            fail_msg("%s, %s: element %d is %.9g, not %.9g", said(f), what, (int)i, tn_tensor_get_f64(a, i),
                     tn_tensor_get_f64(b, i));
}

typedef struct tensors {
    tn_tensor *x, *w, *bias, *r;
} tensors;

static tensors make(const form *f) {
    tensors t = {random_of(4, (int64_t[]){f->batch, f->in, f->height, f->width}),
                 random_of(4, (int64_t[]){f->out, f->in, 3, 3}), random_of(3, (int64_t[]){f->out, 1, 1}), NULL};
    if (f->epilogue == RESIDUAL)
        t.r = random_of(
            4, (int64_t[]){f->batch, f->out, f->height + f->lo[0] + f->hi[0] - 2, f->width + f->lo[1] + f->hi[1] - 2});
    return t;
}
static void drop(tensors *t) {
    tn_tensor *all[] = {t->x, t->w, t->bias, t->r};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        tn_tensor_destroy(all[i]);
}

static void check(const form *f, tn_isa isa) {
    tensors t = make(f);
    tn_graph *g;
    tn_model *m = model_of(f, t.w, t.bias, &g);
    if (!uses_winograd(m, 2, isa) || uses_winograd(m, 1, isa))
        fail_msg("%s, %s: not by tiles at -O2, or at -O1", said(f), tn_isa_name(isa));
    tn_tensor *y =
        run(m, t.x, t.r, TN_OPTIONS(tn_session_options, .threads = 1, .isa = tn_isa_name(isa), .guard = true));
    is_right(f, t.x, t.w, t.bias, t.r, y);
    tn_tensor_destroy(y);
    tn_model_destroy(m);
    tn_graph_destroy(g);
    drop(&t);
}

#define EACH_ISA(isa)                            \
    for (int isa = 0; isa < TN_ISA_COUNT; isa++) \
        if (tn_cpu_has((tn_isa)isa))

/* Sizes from one output on, paddings that differ on all sides, channels about vectors and panels, both kinds of tiles. */
static void test_sizes_of(tn_dtype of) {
    dtype = of;
    static const int64_t channels[][2] = {{7, 7},  {16, 16}, {5, 33},  {33, 17}, {1, 48},    {48, 1},   {3, 19},
                                          {17, 3}, {8, 64},  {257, 9}, {65, 40}, {4, 32769}, {32769, 4}};
    int n = 0;
    EACH_ISA(isa)
    for (size_t c = 0; c < sizeof channels / sizeof *channels; c++)
        for (int64_t height = 1; height <= 17; height += height < 6 ? 1 : 2, n++) {
            int64_t width = n * 7 % 17 + 1;
            form f = {.in = channels[c][0],
                      .out = channels[c][1],
                      .batch = n % 3 + 1,
                      .height = height,
                      .width = width,
                      .lo = {n % 4, n / 4 % 3},
                      .hi = {2 - n % 3, n / 3 % 4},
                      .epilogue = (epilogue)(n % EPILOGUES),
                      .around = n / 5 % AROUND};
            if (f.in * f.out > 20000) {
                f.around = 0; /* what is before would be by a weight of channels times channels */
                f.batch = 1;
                if (height > 3 || width > 6)
                    continue;
            }
            if (dtype != TN_F32 && n % 3) /* fewer do */
                continue;
            if (height + f.lo[0] + f.hi[0] < 3 || width + f.lo[1] + f.hi[1] < 3)
                continue;
            check(&f, (tn_isa)isa);
        }
    assert_true(n > 100);
}

static void test_sizes(void **unused) {
    (void)unused;
    test_sizes_of(TN_F16);
    test_sizes_of(TN_BF16);
    test_sizes_of(TN_F32);
}

/* One result, however it comes about. */
static void test_bits_of(tn_dtype of) {
    dtype = of;
    static const int64_t channels[][2] = {{24, 40}, {19, 64}, {370, 360}};
    EACH_ISA(isa)
    for (size_t c = 0; c < (dtype == TN_F32 ? sizeof channels / sizeof *channels : 2); c++)
        for (int e = c == 2 ? RESIDUAL : NONE; e < (c == 2 ? SIGMOID : EPILOGUES); e++) { /* of many channels one */
            form f = {.in = channels[c][0],
                      .out = channels[c][1],
                      .batch = c == 2 ? 2 : 3,
                      .height = c == 2 ? 5 : 13,
                      .width = c == 2 ? 6 : 22,
                      .lo = {1, 1},
                      .hi = {1, 1},
                      .epilogue = (epilogue)e};
            const char *name = tn_isa_name((tn_isa)isa);
            tensors t = make(&f);
            tn_tensor *first = NULL;
            for (f.around = 0; f.around < AROUND; f.around++) {
                tn_graph *g;
                tn_model *m = model_of(&f, t.w, t.bias, &g);
                assert_true(uses_winograd(m, 2, (tn_isa)isa));
                for (int threads = 1; threads <= 5; threads += 2) {
                    tn_tensor *y =
                        run(m, t.x, t.r,
                            TN_OPTIONS(tn_session_options, .threads = threads, .oversubscribe = true, .isa = name,
                                       .layout = threads == 3 ? TN_LAYOUT_NCHW : TN_LAYOUT_AUTO));
                    if (first)
                        are_same(&f, "other threads or layout", y, first);
                    if (!first)
                        first = y;
                    else
                        tn_tensor_destroy(y);
                }
                for (int64_t n = 0; n < f.batch; n++) { /* alone */
                    int64_t count = tn_tensor_count(t.x) / f.batch, outputs = tn_tensor_count(first) / f.batch;
                    tn_tensor *x = tn_tensor_create(dtype, 4, (int64_t[]){1, f.in, f.height, f.width}), *r = NULL;
                    for (int64_t i = 0; i < count; i++)
                        tn_tensor_set_f64(x, i, tn_tensor_get_f64(t.x, n * count + i));
                    if (t.r)
                        r = tn_tensor_create(dtype, 4, (int64_t[]){1, f.out, f.height, f.width});
                    for (int64_t i = 0; r && i < outputs; i++)
                        tn_tensor_set_f64(r, i, tn_tensor_get_f64(t.r, n * outputs + i));
                    tn_tensor *y = run(m, x, r, TN_OPTIONS(tn_session_options, .threads = 1, .isa = name));
                    for (int64_t i = 0; i < outputs; i++)
                        if (tn_tensor_get_f64(y, i) != tn_tensor_get_f64(first, n * outputs + i)) /* NOLINT */
                            fail_msg("%s, %s: other bits alone than in a batch", said(&f), name);
                    tn_tensor_destroy(x);
                    tn_tensor_destroy(r);
                    tn_tensor_destroy(y);
                }
                tn_model_destroy(m);
                tn_graph_destroy(g);
            }
            tn_tensor_destroy(first);
            drop(&t);
        }
}

static void test_bits(void **unused) {
    (void)unused;
    test_bits_of(TN_F16);
    test_bits_of(TN_F32);
}

/* A crop that begins at a tile of the whole image: whole tiles of it have the same bits; and what is no number in one of them stays there. */
static void test_crops(void **unused) {
    (void)unused;
    EACH_ISA(isa) {
        form f = {.in = 20, .out = 24, .batch = 1, .height = 34, .width = 42};
        const char *name = tn_isa_name((tn_isa)isa);
        tensors t = make(&f);
        tn_graph *g;
        tn_model *m = model_of(&f, t.w, t.bias, &g);
        tn_tensor *whole = run(m, t.x, NULL, TN_OPTIONS(tn_session_options, .threads = 1, .isa = name));
        enum { I = 8, J = 20, TALL = 12, WIDE = 16 };
        tn_tensor *x = tn_tensor_create(dtype, 4, (int64_t[]){1, f.in, TALL + 2, WIDE + 2});
        for (int64_t k = 0; k < tn_tensor_count(x); k++)
            tn_tensor_set_f64(
                x, k, at(t.x, 0, k / (TALL + 2) / (WIDE + 2), I + k / (WIDE + 2) % (TALL + 2), J + k % (WIDE + 2)));
        tn_tensor *y = run(m, x, NULL, TN_OPTIONS(tn_session_options, .threads = 1, .isa = name));
        for (int64_t k = 0; k < tn_tensor_count(y); k++)
            if (tn_tensor_get_f64(y, k) !=
                at(whole, 0, k / TALL / WIDE, I + k / WIDE % TALL, J + k % WIDE)) /* NOLINT */
                fail_msg("%s: other bits in a crop", name);
        tn_tensor_set_f64(x, (4 + 2) * (WIDE + 2) + 8 + 3, NAN); /* read by one tile alone */
        tn_tensor *z = run(m, x, NULL, TN_OPTIONS(tn_session_options, .threads = 1, .isa = name));
        for (int64_t k = 0; k < tn_tensor_count(z); k++) {
            int64_t i = k / WIDE % TALL, j = k % WIDE;
            bool touched = i >= 4 && i < 8 && j >= 8 && j < 12;
            if (!touched && tn_tensor_get_f64(z, k) != tn_tensor_get_f64(y, k)) /* NOLINT */
                fail_msg("%s: NaN in a tile moves an output of another", name);
            if (i >= 4 && i <= 6 && j >= 9 && j <= 11 && !isnan(tn_tensor_get_f64(z, k)))
                fail_msg("%s: an output of NaN is a number", name);
        }
        tn_tensor *all[] = {whole, x, y, z};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
            tn_tensor_destroy(all[i]);
        tn_model_destroy(m);
        tn_graph_destroy(g);
        drop(&t);
    }
}

/* The choice: by attributes, channels and element type alone. */
static void test_choice(void **unused) {
    (void)unused;
    assert_int_equal(tn_winograd_tile(3, 15), 0);
    assert_int_equal(tn_winograd_tile(3, 16), 4);
    assert_int_equal(tn_winograd_tile(1, 48), 4);
    assert_int_equal(tn_winograd_tile(256, 512), 4);
    assert_int_equal(tn_winograd_tile(513, 256), 2);
    assert_int_equal(tn_winograd_tile(INT64_MAX, INT64_MAX), 2);
    assert_int_equal(tn_winograd_tile(0, 64), 0);
    assert_int_equal(tn_winograd_tile(64, 0), 0);
    /* A' ((G w G') * (B' x B)) A of impulses is the convolution of them */
    for (int m = 2; m <= 4; m += 2) {
        const tn_winograd *t = tn_winograd_transforms(m);
        assert_int_equal(t->n, m + 2);
        for (int tap = 0; tap < 3; tap++)
            for (int x = 0; x < t->n; x++)
                for (int y = 0; y < m; y++) {
                    double sum = 0;
                    for (int p = 0; p < t->n; p++)
                        sum += t->a[y][p] * t->g[p][tap] * t->b[p][x];
                    assert_true(fabs(sum - (x == y + tap)) < 1e-15 * 64);
                }
    }
    tn_tensor *w = random_of(4, (int64_t[]){16, 16, 3, 3}), *tall = random_of(4, (int64_t[]){16, 16, 3, 1});
    static const int64_t one[] = {1, 1}, two[] = {2, 2};
    for (int i = 0; i < 6; i++) {
        tn_graph *g = tn_graph_create();
        tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("N", i == 3 ? 32 : 16, "H", "W")),
                 weights = i == 4   ? tn_input(g, "w", TN_F32, TN_SHAPE(16, 16, 3, 3))
                           : i == 5 ? tn_constant(g, tall)
                                    : tn_constant(g, w);
        tn_set_output(g, "y",
                      tn_conv(g, x, weights, i == 1 ? two : one, i == 2 ? two : one, NULL, NULL, NULL, i == 3 ? 2 : 1));
        tn_model *m = tn_model_from_graph(g, NULL);
        assert_non_null(m);
        assert_int_equal(uses_winograd(m, 2, TN_ISA_GENERIC), i == 0);
        tn_model_destroy(m);
        tn_graph_destroy(g);
    }
    tn_tensor_destroy(w);
    tn_tensor_destroy(tall);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sizes), cmocka_unit_test(test_bits),
                                       cmocka_unit_test(test_crops), cmocka_unit_test(test_choice)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
