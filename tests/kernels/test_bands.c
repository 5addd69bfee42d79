/* Bands: a convolution, a depthwise one and one more as a single kernel have the bits of the kernels one by one, whatever the strides, padding,
   dilation, sizes, images, threads and what follows each; and such a plan is what large images get. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <tenon/tenon.h>

#include "base/os.h"
#include "lower/plan.h"
#include "runtime/session.h"

typedef struct form {
    int64_t in, mid, out;                        /* channels; out: 0: the chain ends with the depthwise convolution */
    int64_t side, first;                         /* of the first convolution's window, and its stride */
    int64_t window, stride, dilation, low, high; /* of the depthwise one; low, high: its padding along either axis */
    int64_t height, width, images;
    bool swish, again; /* what follows; the input is added to what the last one makes */
} form;

static const form forms[] = {
    {16, 96, 24, 1, 1, 3, 2, 1, 1, 1, 64, 48, 1, false, false},
    {24, 144, 24, 1, 1, 3, 1, 1, 1, 1, 56, 56, 1, false, true},
    {8, 64, 16, 1, 1, 5, 1, 1, 2, 2, 70, 61, 1, true, false},
    {3, 40, 16, 3, 2, 3, 1, 1, 1, 1, 180, 171, 1, false, false},
    {16, 96, 0, 1, 1, 3, 2, 1, 0, 1, 65, 49, 1, true, false},
    {16, 130, 24, 1, 1, 3, 1, 2, 2, 2, 50, 44, 1, false, false},
    {16, 96, 16, 1, 1, 3, 1, 1, 1, 1, 40, 70, 3, false, true},
    {16, 96, 20, 1, 1, 3, 1, 1, 0, 0, 66, 47, 1, false, false},
    {8, 250, 12, 3, 1, 3, 2, 1, 4, 4, 34, 37, 1, false, false},
    {8, 512, 8, 1, 1, 3, 1, 1, 1, 1, 20, 30, 1, false, true},
};
enum { FORMS = sizeof forms / sizeof *forms };

static uint64_t state = 29;
static float draw(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (float)((double)((state >> 33) % 2049) / 3000 - 0.34);
}
static tn_value random_of(tn_graph *g, int rank, const int64_t *dims) {
    tn_tensor *t = tn_tensor_create(TN_F32, rank, dims);
    for (int64_t i = 0; i < tn_tensor_count(t); i++)
        ((float *)tn_tensor_data(t))[i] = draw();
    tn_value v = tn_constant(g, t);
    tn_tensor_destroy(t);
    return v;
}

static tn_value ended(tn_graph *g, const form *f, tn_value y, int64_t channels) {
    y = tn_add(g, y, random_of(g, 3, (int64_t[]){channels, 1, 1}));
    if (f->swish)
        return tn_mul(g, y, tn_sigmoid(g, y));
    return tn_min(g, tn_max(g, y, tn_scalar(g, TN_F32, 0)), tn_scalar(g, TN_F32, 6));
}

/* free: height, width and images are known when it runs. */
static tn_graph *chain_of(const form *f, bool free) {
    tn_graph *g = tn_graph_create();
    state = 29;
    tn_value x = free ? tn_input(g, "x", TN_F32, TN_SHAPE("N", f->in, "H", "W"))
                      : tn_input(g, "x", TN_F32, TN_SHAPE(f->images, f->in, f->height, f->width));
    const tn_dim pad = tn_dim_const(g, f->side / 2), low = tn_dim_const(g, f->low), high = tn_dim_const(g, f->high);
    tn_value from = tn_conv(g, x, random_of(g, 4, (int64_t[]){f->in, f->in, 1, 1}), NULL, NULL, NULL, NULL, NULL, 1);
    tn_value y = tn_conv(g, from, random_of(g, 4, (int64_t[]){f->mid, f->in, f->side, f->side}),
                         (int64_t[]){f->first, f->first}, NULL, NULL, (tn_dim[]){pad, pad}, (tn_dim[]){pad, pad}, 1);
    y = ended(g, f, y, f->mid);
    y = tn_conv(g, y, random_of(g, 4, (int64_t[]){f->mid, 1, f->window, f->window}), (int64_t[]){f->stride, f->stride},
                (int64_t[]){f->dilation, f->dilation}, NULL, (tn_dim[]){low, low}, (tn_dim[]){high, high}, f->mid);
    y = ended(g, f, y, f->mid);
    if (f->out)
        y = tn_conv(g, y, random_of(g, 4, (int64_t[]){f->out, f->mid, 1, 1}), NULL, NULL, NULL, NULL, NULL, 1);
    if (f->again)
        y = tn_add(g, y, from);
    tn_set_output(g, "y",
                  tn_relu(g, tn_conv(g, y, random_of(g, 4, (int64_t[]){4, f->out ? f->out : f->mid, 1, 1}), NULL, NULL,
                                     NULL, NULL, NULL, 1)));
    return g;
}

static tn_tensor *run(tn_session *s, const tn_tensor *x) {
    tn_tensor *y = NULL;
    for (int time = 0; time < 2; time++) { /* the second time by what is kept */
        tn_tensor_destroy(y);
        y = NULL;
        if (!s || tn_session_run(s, 1, &(tn_binding){.name = "x", .tensor = (tn_tensor *)x}, 1,
                                 &(tn_output){.name = "y", .tensor = &y}) != TN_OK)
            fail_msg("%s", tn_error_message());
    }
    return y;
}

static bool has_bands(const tn_session *s) {
    const tn_plan *p = s->whole.compiled->plan;
    for (uint32_t i = 0; i < p->kernel.len; i++)
        if (p->kernel.data[i].kind == TN_KERNEL_BANDS)
            return true;
    return false;
}

static tn_session *session_of(tn_model *model, tn_level level, int threads, const char *isa) {
    return tn_session_create(model, TN_OPTIONS(tn_session_options, .level = level, .threads = threads, .isa = isa));
}

static void check(int form_index, bool free, const char *isa) {
    const form *f = &forms[form_index];
    tn_graph *g = chain_of(f, free);
    tn_model *model = tn_model_from_graph(g, NULL);
    tn_session *plain = session_of(model, TN_LEVEL_0, 1, isa);
    /* of the form, small, of a few rows; images */
    const int64_t size[4][3] = {{f->images, f->height, f->width}, {2, 9, 12}, {1, 3, 40}, {5, f->height - 7, 8}};
    for (int threads = 1; threads <= 3 && threads <= tn_cpu_count(); threads++) {
        tn_session *s = session_of(model, TN_LEVEL_1, threads, isa);
        for (int n = 0; n < (free ? 4 : 1); n++) {
            tn_tensor *x = tn_tensor_create(TN_F32, 4, (int64_t[]){size[n][0], f->in, size[n][1], size[n][2]});
            state = 31 + (uint64_t)n;
            for (int64_t i = 0; i < tn_tensor_count(x); i++)
                ((float *)tn_tensor_data(x))[i] = 8 * draw();
            tn_tensor *want = run(plain, x), *y = run(s, x);
            if (tn_tensor_count(y) != tn_tensor_count(want) ||
                memcmp(tn_tensor_data(y), tn_tensor_data(want), (size_t)tn_tensor_count(y) * sizeof(float)) != 0)
                fail_msg("form %d, sizes %s (%d), %d threads, %s: other bits than of kernels one by one", form_index,
                         free ? "free" : "fixed", n, threads, isa);
            tn_tensor_destroy(x);
            tn_tensor_destroy(want);
            tn_tensor_destroy(y);
        }
        if (!has_bands(s))
            fail_msg("form %d, sizes %s, %s: no bands", form_index, free ? "free" : "fixed", isa);
        tn_session_destroy(s);
    }
    tn_session_destroy(plain);
    tn_model_destroy(model);
    tn_graph_destroy(g);
}

static void test_bits(void **unused) {
    (void)unused;
    for (int isa = 0; isa < TN_ISA_COUNT; isa++)
        for (int f = 0; f < FORMS && tn_cpu_has((tn_isa)isa); f++) {
            check(f, false, tn_isa_name((tn_isa)isa));
            if (isa != TN_ISA_GENERIC)
                check(f, true, tn_isa_name((tn_isa)isa));
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
