/* Convolutions with few output channels, which sum along rows of outputs (kernels/contract_lines.c): right beside a plain sum in double, with
   the bits of a crop so narrow that tiles sum it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <math.h>
#include <tenon/tenon.h>

#include "base/os.h"

typedef struct form {
    int64_t in, out, tall, wide; /* channels; the window */
    int64_t stride[2], dilation[2], pad[2];
    tn_layout_option layout;
    tn_dtype dtype;
    int64_t height, width;
    bool after; /* a bias and a bound follow */
} form;

static const form forms[] = {
    {1, 8, 5, 5, {1, 1}, {1, 1}, {2, 2}, TN_LAYOUT_AUTO, TN_F32, 20, 45, true},
    {1, 16, 8, 8, {1, 1}, {1, 1}, {4, 4}, TN_LAYOUT_AUTO, TN_F32, 12, 50, true},
    {8, 8, 3, 39, {1, 1}, {1, 1}, {1, 19}, TN_LAYOUT_AUTO, TN_F32, 6, 90, true},
    {8, 8, 3, 39, {1, 1}, {1, 1}, {1, 19}, TN_LAYOUT_NCHW, TN_F32, 6, 90, false},
    {32, 3, 9, 9, {1, 1}, {1, 1}, {0, 0}, TN_LAYOUT_NHWC, TN_F32, 12, 90, false},
    {32, 3, 9, 9, {1, 1}, {1, 1}, {0, 0}, TN_LAYOUT_NCHW, TN_F16, 12, 60, true},
    {5, 4, 3, 7, {2, 2}, {1, 1}, {1, 3}, TN_LAYOUT_NHWC, TN_F32, 11, 81, true},
    {5, 4, 3, 7, {1, 3}, {1, 2}, {1, 6}, TN_LAYOUT_NCHW, TN_F32, 7, 160, false},
    {3, 2, 3, 5, {1, 2}, {2, 2}, {2, 4}, TN_LAYOUT_NHWC, TN_F16, 9, 70, false},
    {33, 1, 3, 3, {1, 1}, {1, 1}, {1, 1}, TN_LAYOUT_NHWC, TN_F32, 8, 131, false},
    {7, 5, 1, 11, {1, 1}, {1, 3}, {0, 15}, TN_LAYOUT_AUTO, TN_BF16, 3, 77, false},
    {2, 7, 4, 6, {3, 1}, {1, 1}, {3, 40}, TN_LAYOUT_NHWC, TN_F32, 9, 30, false}, /* windows wholly outside */
    /* columns of several panels, of rows that would have to be packed */
    {3, 24, 3, 3, {2, 2}, {1, 1}, {1, 1}, TN_LAYOUT_AUTO, TN_F32, 21, 65, true},
    {3, 32, 7, 7, {2, 2}, {1, 1}, {3, 3}, TN_LAYOUT_NCHW, TN_F32, 30, 70, true},
    {4, 40, 3, 4, {1, 1}, {1, 1}, {1, 1}, TN_LAYOUT_AUTO, TN_F32, 7, 300, false},
    {3, 20, 5, 5, {2, 2}, {2, 1}, {4, 2}, TN_LAYOUT_AUTO, TN_F32, 23, 83, true},
    {3, 24, 3, 3, {3, 2}, {1, 1}, {0, 1}, TN_LAYOUT_NCHW, TN_F32, 19, 65, false},
    {1, 17, 4, 8, {1, 1}, {1, 1}, {2, 3}, TN_LAYOUT_AUTO, TN_F32, 9, 40, true},
    /* rows of outputs whose lines serve the next ones */
    {32, 1, 7, 3, {1, 1}, {1, 1}, {3, 1}, TN_LAYOUT_NHWC, TN_F32, 20, 88, true},
    {17, 3, 5, 5, {2, 1}, {1, 1}, {2, 2}, TN_LAYOUT_NHWC, TN_F16, 17, 50, false},
    {70, 2, 3, 9, {1, 1}, {1, 2}, {1, 8}, TN_LAYOUT_NHWC, TN_F16, 9, 61, true},
};

static uint64_t state = 3;
static double draw(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)((state >> 33) % 257) / 128 - 1;
}
static tn_tensor *random_of(tn_dtype dtype, int rank, const int64_t *dims) {
    tn_tensor *t = tn_tensor_create(dtype, rank, dims);
    for (int64_t i = 0; i < tn_tensor_count(t); i++)
        tn_tensor_set_f64(t, i, draw());
    return t;
}

static tn_tensor *convolve(const form *f, int64_t pad, tn_tensor *x, tn_tensor *w, tn_tensor *bias, const char *isa) {
    tn_graph *g = tn_graph_create();
    const int64_t *d = tn_tensor_dims(x);
    tn_value in = tn_input(g, "x", f->dtype, TN_SHAPE(d[0], d[1], d[2], d[3]));
    const tn_dim pads[] = {tn_dim_const(g, pad ? f->pad[0] : 0), tn_dim_const(g, pad ? f->pad[1] : 0)};
    if (f->layout ==
        TN_LAYOUT_NHWC) { /* what a convolution makes has its channels side by side: here, of the same values */
        tn_tensor *same = tn_tensor_create(f->dtype, 4, (int64_t[]){f->in, f->in, 1, 1});
        for (int64_t i = 0; i < f->in; i++)
            tn_tensor_set_f64(same, i * f->in + i, 1);
        in = tn_conv(g, in, tn_constant(g, same), NULL, NULL, NULL, NULL, NULL, 1);
        tn_tensor_destroy(same);
    }
    tn_value y = tn_conv(g, in, tn_constant(g, w), f->stride, f->dilation, NULL, pads, pads, 1);
    if (f->after)
        y = tn_relu(g, tn_add(g, y, tn_constant(g, bias)));
    tn_set_output(g, "y", y);
    tn_model *model = tn_model_from_graph(g, NULL);
    tn_session *s = tn_session_create(
        model, TN_OPTIONS(tn_session_options, .threads = 1, .isa = isa, .layout = f->layout, .guard = true));
    tn_tensor *out = NULL;
    if (!s || tn_session_run(s, 1, &(tn_binding){.name = "x", .tensor = x}, 1,
                             &(tn_output){.name = "y", .tensor = &out}) != TN_OK)
        fail_msg("%s", tn_error_message());
    tn_session_destroy(s);
    tn_model_destroy(model);
    tn_graph_destroy(g);
    return out;
}

static void is_right(const form *f, const tn_tensor *x, const tn_tensor *w, const tn_tensor *bias, const tn_tensor *y) {
    const int64_t *d = tn_tensor_dims(y);
    int64_t at = 0;
    double exact = f->dtype == TN_F32 ? 1e-6 : f->dtype == TN_F16 ? 1e-3 : 8e-3;
    for (int64_t n = 0; n < d[0]; n++)
        for (int64_t m = 0; m < d[1]; m++)
            for (int64_t i = 0; i < d[2]; i++)
                for (int64_t j = 0; j < d[3]; j++, at++) {
                    double sum = 0, size = 0;
                    for (int64_t c = 0; c < f->in; c++)
                        for (int64_t p = 0; p < f->tall; p++)
                            for (int64_t q = 0; q < f->wide; q++) {
                                int64_t h = i * f->stride[0] + p * f->dilation[0] - f->pad[0];
                                int64_t v = j * f->stride[1] + q * f->dilation[1] - f->pad[1];
                                if (h < 0 || h >= f->height || v < 0 || v >= f->width)
                                    continue;
                                double term = tn_tensor_get_f64(x, ((n * f->in + c) * f->height + h) * f->width + v) *
                                              tn_tensor_get_f64(w, ((m * f->in + c) * f->tall + p) * f->wide + q);
                                sum += term;
                                size += fabs(term);
                            }
                    if (f->after)
                        sum = fmax(sum + tn_tensor_get_f64(bias, m), 0);
                    double got = tn_tensor_get_f64(y, at);
                    if (!(fabs(got - sum) <= exact * (size + 1)))
                        fail_msg("%d to %d channels, %d x %d: y[%d, %d, %d, %d] = %g, not %g", (int)f->in, (int)f->out,
                                 (int)f->tall, (int)f->wide, (int)n, (int)m, (int)i, (int)j, got, sum);
                }
}

/* Columns [first, first + count) of the outputs from the columns of x that they read. */
static void is_crop(const form *f, const tn_tensor *x, tn_tensor *w, tn_tensor *bias, const tn_tensor *y,
                    const char *isa) {
    enum { COUNT = 15 };
    const int64_t *d = tn_tensor_dims(y), reach = (f->wide - 1) * f->dilation[1];
    int64_t first = (f->pad[1] + f->stride[1] - 1) / f->stride[1];
    int64_t from = first * f->stride[1] - f->pad[1], columns = (COUNT - 1) * f->stride[1] + reach + 1;
    if (from + columns > f->width || f->pad[0])
        return;
    tn_tensor *crop = tn_tensor_create(f->dtype, 4, (int64_t[]){2, f->in, f->height, columns});
    for (int64_t i = 0; i < 2 * f->in * f->height; i++)
        for (int64_t j = 0; j < columns; j++)
            tn_tensor_set_f64(crop, i * columns + j, tn_tensor_get_f64(x, i * f->width + from + j));
    tn_tensor *part = convolve(f, false, crop, w, bias, isa);
    for (int64_t i = 0; i < 2 * f->out * d[2]; i++)
        for (int64_t j = 0; j < COUNT; j++)
            if (tn_tensor_get_f64(part, i * COUNT + j) != tn_tensor_get_f64(y, i * d[3] + first + j)) /* NOLINT */
                fail_msg("%d to %d channels, %d x %d, %s: other bits than those of a crop", (int)f->in, (int)f->out,
                         (int)f->tall, (int)f->wide, isa);
    tn_tensor_destroy(crop);
    tn_tensor_destroy(part);
}

static void check(form f, const char *isa) {
    for (int flat = 0; flat < 2; flat++) { /* once more without padding above, as crops need it */
        f.pad[0] = flat ? 0 : f.pad[0];
        tn_tensor *x = random_of(f.dtype, 4, (int64_t[]){2, f.in, f.height, f.width});
        tn_tensor *w = random_of(f.dtype, 4, (int64_t[]){f.out, f.in, f.tall, f.wide});
        tn_tensor *bias = random_of(f.dtype, 3, (int64_t[]){f.out, 1, 1});
        tn_tensor *y = convolve(&f, true, x, w, bias, isa);
        is_right(&f, x, w, bias, y);
        is_crop(&f, x, w, bias, y, isa);
        tn_tensor *all[] = {x, w, bias, y};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
            tn_tensor_destroy(all[i]);
    }
}

static void test_forms(void **unused) {
    (void)unused;
    for (int isa = 0; isa < TN_ISA_COUNT; isa++)
        for (size_t i = 0; i < sizeof forms / sizeof *forms && tn_cpu_has((tn_isa)isa); i++)
            check(forms[i], tn_isa_name((tn_isa)isa));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_forms)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
