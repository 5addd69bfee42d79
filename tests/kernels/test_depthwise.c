/* Depthwise convolutions: the bits of one chain of multiply-adds over the taps inside, in their order, whatever the layouts, the numbers of channels
   and pixels, and the threads; what follows is done to them as alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <math.h>
#include <tenon/tenon.h>

#include "base/os.h"

enum { NONE, BOUNDED, SWISH, NORMALISED };

typedef struct form {
    int64_t channels, tall, wide;
    int64_t stride[2], dilation[2], pad[2];
    int64_t height, width, less; /* less: so many fewer of the padding at the end of each axis */
} form;

static const form forms[] = {
    {32, 3, 3, {1, 1}, {1, 1}, {1, 1}, 9, 14, 0},
    {40, 3, 3, {2, 2}, {1, 1}, {1, 1}, 9, 23, 0},
    {13, 3, 3, {1, 1}, {1, 1}, {1, 1}, 5, 11, 0},
    {5, 3, 3, {1, 1}, {1, 1}, {1, 1}, 6, 19, 0},
    {24, 5, 5, {1, 1}, {1, 1}, {2, 2}, 8, 17, 0},
    {17, 5, 5, {2, 2}, {1, 1}, {2, 2}, 11, 13, 0},
    {16, 3, 3, {1, 1}, {2, 2}, {2, 2}, 9, 12, 0},
    {64, 7, 7, {1, 1}, {1, 1}, {3, 3}, 9, 9, 0},
    {33, 1, 3, {1, 1}, {1, 1}, {0, 1}, 2, 40, 0},
    {20, 3, 1, {1, 1}, {1, 1}, {1, 0}, 7, 9, 0},
    {9, 2, 2, {1, 1}, {1, 1}, {0, 0}, 6, 18, 0},
    {48, 3, 3, {1, 1}, {1, 1}, {0, 0}, 3, 3, 0},
    {80, 3, 3, {1, 1}, {1, 1}, {4, 4}, 2, 6, 0}, /* windows wholly outside */
    {300, 3, 3, {1, 1}, {1, 1}, {1, 1}, 3, 70, 0},
    {16, 3, 3, {1, 1}, {1, 1}, {3, 3}, 4, 16, 2}, /* more of the edge than a window */
    {24, 5, 5, {1, 1}, {1, 1}, {6, 6}, 3, 21, 3},
    {18, 3, 3, {2, 2}, {1, 1}, {4, 4}, 5, 30, 4},
    {20, 3, 3, {1, 1}, {1, 1}, {1, 1}, 4, 24, 1},
};

static uint64_t state = 11;
static float draw(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (float)((double)((state >> 33) % 2049) / 300 - 3.4);
}
static tn_tensor *random_of(int rank, const int64_t *dims) {
    tn_tensor *t = tn_tensor_create(TN_F32, rank, dims);
    for (int64_t i = 0; i < tn_tensor_count(t); i++)
        ((float *)tn_tensor_data(t))[i] = draw();
    return t;
}

typedef struct data {
    tn_tensor *x, *w, *row[3]; /* of each channel */
} data;

static tn_value same_of(tn_graph *g, tn_value x,
                        int64_t channels) { /* through a convolution: channels lie side by side */
    tn_tensor *same = tn_tensor_create(TN_F32, 4, (int64_t[]){channels, channels, 1, 1});
    for (int64_t i = 0; i < channels; i++)
        tn_tensor_set_f64(same, i * channels + i, 1);
    tn_value y = tn_conv(g, x, tn_constant(g, same), NULL, NULL, NULL, NULL, NULL, 1);
    tn_tensor_destroy(same);
    return y;
}

static tn_tensor *convolve(const form *f, int after, const data *v, bool from, bool to, int threads, const char *isa) {
    tn_graph *g = tn_graph_create();
    const int64_t *d = tn_tensor_dims(v->x);
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE(d[0], d[1], d[2], d[3]));
    const tn_dim pads[] = {tn_dim_const(g, f->pad[0]), tn_dim_const(g, f->pad[1])},
                 ends[] = {tn_dim_const(g, f->pad[0] - f->less), tn_dim_const(g, f->pad[1] - f->less)};
    if (from)
        x = same_of(g, x, f->channels);
    tn_value y = tn_conv(g, x, tn_constant(g, v->w), f->stride, f->dilation, NULL, pads, ends, f->channels);
    if (after == NORMALISED)
        y = tn_mul(g, tn_sub(g, y, tn_constant(g, v->row[0])), tn_constant(g, v->row[1]));
    if (after != NONE)
        y = tn_add(g, y, tn_constant(g, v->row[2]));
    if (after == BOUNDED)
        y = tn_min(g, tn_max(g, y, tn_scalar(g, TN_F32, 0)), tn_scalar(g, TN_F32, 6));
    if (after == SWISH || after == NORMALISED) {
        tn_value z = tn_add(g, tn_mul(g, y, tn_scalar(g, TN_F32, 0.1875)), tn_scalar(g, TN_F32, 0.5));
        y = tn_mul(g, tn_max(g, tn_min(g, z, tn_scalar(g, TN_F32, 1)), tn_scalar(g, TN_F32, 0)), y);
    }
    if (to)
        y = same_of(g, y, f->channels);
    tn_set_output(g, "y", y);
    tn_model *model = tn_model_from_graph(g, NULL);
    tn_session *s = tn_session_create(
        model, TN_OPTIONS(tn_session_options, .threads = threads, .isa = isa, .guard = true, .disable = "fold-affine"));
    tn_tensor *out = NULL;
    if (!s || tn_session_run(s, 1, &(tn_binding){.name = "x", .tensor = v->x}, 1,
                             &(tn_output){.name = "y", .tensor = &out}) != TN_OK)
        fail_msg("%s", tn_error_message());
    tn_session_destroy(s);
    tn_model_destroy(model);
    tn_graph_destroy(g);
    return out;
}

static float one(const form *f, int after, const data *v, int64_t image, int64_t c, int64_t i, int64_t j, bool fused) {
    const float *x = tn_tensor_data(v->x), *w = tn_tensor_data(v->w), *row[3];
    volatile float sum = 0, term; /* each step rounded alone */
    for (int k = 0; k < 3; k++)
        row[k] = tn_tensor_data(v->row[k]);
    for (int64_t p = 0; p < f->tall; p++)
        for (int64_t q = 0; q < f->wide; q++) {
            int64_t h = i * f->stride[0] + p * f->dilation[0] - f->pad[0],
                    u = j * f->stride[1] + q * f->dilation[1] - f->pad[1];
            if (h < 0 || h >= f->height || u < 0 || u >= f->width)
                continue;
            float a = x[((image * f->channels + c) * f->height + h) * f->width + u],
                  b = w[(c * f->tall + p) * f->wide + q];
            term = a * b;
            sum = fused ? fmaf(a, b, sum) : sum + term;
        }
    if (after == NORMALISED) {
        sum = sum - row[0][c];
        sum = sum * row[1][c];
    }
    if (after != NONE)
        sum = sum + row[2][c];
    if (after == BOUNDED)
        return fminf(fmaxf(sum, 0), 6);
    if (after == SWISH || after == NORMALISED) {
        term = sum * 0.1875f;
        term = term + 0.5f;
        return sum * fmaxf(fminf(term, 1), 0);
    }
    return sum;
}

static void check(const form *f, int after, const char *isa, bool fused) {
    data v = {random_of(4, (int64_t[]){2, f->channels, f->height, f->width}),
              random_of(4, (int64_t[]){f->channels, 1, f->tall, f->wide}),
              {random_of(3, (int64_t[]){f->channels, 1, 1}), random_of(3, (int64_t[]){f->channels, 1, 1}),
               random_of(3, (int64_t[]){f->channels, 1, 1})}};
    for (int way = 0; way < 8; way++) { /* layouts before and after; threads */
        tn_tensor *y = convolve(f, after, &v, way & 1, way & 2, way < 4 || tn_cpu_count() < 2 ? 1 : 2, isa);
        const int64_t *d = tn_tensor_dims(y);
        const float *got = tn_tensor_data(y);
        for (int64_t n = 0; n < d[0]; n++)
            for (int64_t c = 0; c < d[1]; c++)
                for (int64_t i = 0; i < d[2]; i++)
                    for (int64_t j = 0; j < d[3]; j++, got++) {
                        float want = one(f, after, &v, n, c, i, j, fused);
                        if (*got != want) /* NOLINT */
                            fail_msg("%d channels, %d x %d, form %d, way %d, %s: y[%d, %d, %d, %d] = %.9g, not %.9g",
                                     (int)f->channels, (int)f->tall, (int)f->wide, after, way, isa, (int)n, (int)c,
                                     (int)i, (int)j, (double)*got, (double)want);
                    }
        tn_tensor_destroy(y);
    }
    tn_tensor *all[] = {v.x, v.w, v.row[0], v.row[1], v.row[2]};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        tn_tensor_destroy(all[i]);
}

static void test_chains(void **unused) {
    (void)unused;
#if defined(__aarch64__) /* every one of its processors multiplies and adds at once */
    const bool always = true;
#else
    const bool always = false;
#endif
    for (int isa = 0; isa < TN_ISA_COUNT; isa++)
        for (size_t i = 0; i < sizeof forms / sizeof *forms && tn_cpu_has((tn_isa)isa); i++)
            for (int after = NONE; after <= NORMALISED; after++)
                check(&forms[i], after, tn_isa_name((tn_isa)isa), always || isa != TN_ISA_GENERIC);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_chains)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
