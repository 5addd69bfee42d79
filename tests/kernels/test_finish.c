/* What ends a contraction: the bits of the same steps over its sums, one kernel after the other; for every form that tiles take and forms that
   strips take, widths and heights beside those of tiles, and values that are not numbers or zeros of either sign. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <math.h>
#include <tenon/tenon.h>

#include "base/os.h"

enum { K = 9, MOST = 96 };

/* b: + of each column, s: * of each column, r: + of each element, f: * of each element, t: + of each row, 1: + 0.75, p: + 0, *: * -1.5; bounds from
   below 0, -0 (z), -0.5 (-), NaN (n), and from above 6, 0 (o), -0 (m); x: the sum is the other operand of a maximum's.
   u: - of each column, v: that minus it, d: / 3, i: 3 / it, T: tanh; S: SiLU; h, H, g: hard-swish by a factor, by a quotient, bounds the other way
   round; k: * what it was before the last step; e: exp(it) * it. */
static const char *const forms[] = {
    "b",    "b0",     "b06",   "br",   "brs0",  "r0",    "sb0", "b-6", "bz",    "bm",       "bn",   "bo",
    "b10*", "bt",     "rbr0",  "f",    "bf6",   "x0",    "06",  "*z",  "*0",    "sbs10606", "u",    "v",
    "usb",  "usb06",  "usbr0", "us",   "u6",    "bd",    "i",   "bT",  "bS",    "usbS",     "brS",  "S0",
    "bSb",  "h",      "usbh",  "bH",   "g",     "bg",    "brh", "h1",  "b1k",   "dk",       "e",    "SS",
    "b*1H", "b*1H*1", "bsbH*", "b*06", "b*106", "bs1g1", "H1",  "bHp", "b*b06", "b*r06",    "b*pH", "b*1r06",
    "bs06", "b*S",    "bsbS",  "b**H", "h*p",   "b1H",   "b*1k"};

static uint64_t state = 5;
static float draw(void) {
    static const float odd[] = {0, -0.0f, INFINITY, -INFINITY, NAN};
    state = state * 6364136223846793005u + 1442695040888963407u;
    uint32_t n = (uint32_t)(state >> 33);
    return n % 41 < 5 ? odd[n % 41] : (float)(int)(n % 2001) / 250 - 4;
}

static tn_dtype dtype; /* that is tested */

static tn_tensor *matrix(int64_t rows, int64_t columns, bool plain) {
    tn_tensor *t = tn_tensor_create(dtype, 2, (int64_t[]){rows, columns});
    for (int64_t i = 0; i < rows * columns; i++) {
        float x = draw();
        tn_tensor_set_f64(t, i, (double)(plain && !isfinite(x) ? 1 : x));
    }
    return t;
}

typedef struct values {
    int64_t n;
    tn_tensor *w, *row[2];
} values;

static tn_value steps(tn_graph *g, tn_value y, const char *form, const values *v) {
    tn_value r = tn_input(g, "r", dtype, TN_SHAPE("M", v->n)), t = tn_input(g, "t", dtype, TN_SHAPE("M", 1));
    tn_value before = y;
    for (; *form; form++) {
        tn_value now = y, bounded;
        switch (*form) {
        case 'b': y = tn_add(g, y, tn_constant(g, v->row[0])); break;
        case 's': y = tn_mul(g, tn_constant(g, v->row[1]), y); break;
        case 'r': y = tn_add(g, r, y); break;
        case 'f': y = tn_mul(g, y, r); break;
        case 't': y = tn_add(g, y, t); break;
        case '1': y = tn_add(g, y, tn_scalar(g, dtype, 0.75)); break;
        case 'p': y = tn_add(g, y, tn_scalar(g, dtype, 0)); break;
        case '*': y = tn_mul(g, y, tn_scalar(g, dtype, -1.5)); break;
        case '0': y = tn_max(g, y, tn_scalar(g, dtype, 0)); break;
        case 'z': y = tn_max(g, y, tn_scalar(g, dtype, -0.0)); break;
        case '-': y = tn_max(g, y, tn_scalar(g, dtype, -0.5)); break;
        case 'n': y = tn_max(g, y, tn_scalar(g, dtype, (double)NAN)); break;
        case '6': y = tn_min(g, y, tn_scalar(g, dtype, 6)); break;
        case 'o': y = tn_min(g, y, tn_scalar(g, dtype, 0)); break;
        case 'm': y = tn_min(g, y, tn_scalar(g, dtype, -0.0)); break;
        case 'u': y = tn_sub(g, y, tn_constant(g, v->row[1])); break;
        case 'v': y = tn_sub(g, tn_constant(g, v->row[1]), y); break;
        case 'd': y = tn_div(g, y, tn_scalar(g, dtype, 3)); break;
        case 'i': y = tn_div(g, tn_scalar(g, dtype, 3), y); break;
        case 'T': y = tn_tanh(g, y); break;
        case 'S': y = tn_mul(g, y, tn_sigmoid(g, y)); break;
        case 'e': y = tn_mul(g, tn_exp(g, y), y); break;
        case 'k': y = tn_mul(g, y, before); break;
        case 'h':
            bounded = tn_add(g, tn_mul(g, y, tn_scalar(g, dtype, 0.1875)), tn_scalar(g, dtype, 0.5));
            y = tn_mul(g, y, tn_max(g, tn_min(g, bounded, tn_scalar(g, dtype, 1)), tn_scalar(g, dtype, 0)));
            break;
        case 'H':
            bounded = tn_max(g, tn_add(g, y, tn_scalar(g, dtype, 3)), tn_scalar(g, dtype, 0));
            y = tn_div(g, tn_mul(g, y, tn_min(g, bounded, tn_scalar(g, dtype, 6))), tn_scalar(g, dtype, 6));
            break;
        case 'g':
            bounded = tn_max(g, tn_mul(g, y, tn_scalar(g, dtype, 0.25)), tn_scalar(g, dtype, -0.25));
            y = tn_mul(g, tn_min(g, bounded, tn_scalar(g, dtype, 0.5)), y);
            break;
        default: y = tn_max(g, r, y); break;
        }
        before = now;
    }
    return y;
}

typedef struct runner {
    tn_graph *graph;
    tn_model *model;
    tn_session *session;
} runner;

/* Of the product; of the steps; of both. */
static void prepare(runner *r, bool product, const char *form, const values *v, const char *isa) {
    tn_graph *g = r->graph = tn_graph_create();
    tn_value y = product ? tn_matmul(g, tn_input(g, "x", dtype, TN_SHAPE("M", K)), tn_constant(g, v->w))
                         : tn_input(g, "x", dtype, TN_SHAPE("M", v->n));
    tn_set_output(g, "y", form ? steps(g, y, form, v) : y);
    r->model = tn_model_from_graph(g, NULL);
    r->session =
        tn_session_create(r->model, TN_OPTIONS(tn_session_options, .threads = 1, .isa = isa, .disable = "fold-affine"));
    if (!r->session)
        fail_msg("%s", tn_error_message());
}
static void done(runner *r) {
    tn_session_destroy(r->session);
    tn_model_destroy(r->model);
    tn_graph_destroy(r->graph);
}

static tn_tensor *run(runner *r, tn_tensor *x, tn_tensor *full, tn_tensor *column, bool steps) {
    tn_tensor *y = NULL;
    const tn_binding in[] = {{"x", x, NULL}, {"r", full, NULL}, {"t", column, NULL}};
    if (tn_session_run(r->session, steps ? 3 : 1, in, 1, (const tn_output[]){{"y", &y, NULL}}) != TN_OK)
        fail_msg("%s", tn_error_message());
    return y;
}

static void check(const char *form, int64_t n, const char *isa) {
    static const int64_t heights[] = {1, 3, 12, 17, MOST};
    values v = {.n = n, .w = matrix(K, n, true), .row = {matrix(1, n, false), matrix(1, n, false)}};
    runner product, after, both;
    prepare(&product, true, NULL, &v, isa);
    prepare(&after, false, form, &v, isa);
    prepare(&both, true, form, &v, isa);
    for (size_t h = 0; h < sizeof heights / sizeof *heights; h++) {
        int64_t m = heights[h];
        tn_tensor *x = matrix(m, K, m % 2), *full = matrix(m, n, false), *column = matrix(m, 1, false);
        tn_tensor *sums = run(&product, x, NULL, NULL, false);
        tn_tensor *want = run(&after, sums, full, column, true), *got = run(&both, x, full, column, true);
        for (int64_t i = 0; i < m * n; i++) {
            double a = tn_tensor_get_f64(want, i), b = tn_tensor_get_f64(got, i);
            if (isnan(a) ? !isnan(b) : a != b || signbit(a) != signbit(b))
                fail_msg("\"%s\", %s, %s: element %d of %d x %d is %.9g, not %.9g", form, isa, tn_dtype_name(dtype),
                         (int)i, (int)m, (int)n, b, a);
        }
        tn_tensor *all[] = {x, full, column, sums, want, got};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
            tn_tensor_destroy(all[i]);
    }
    done(&product);
    done(&after);
    done(&both);
    tn_tensor_destroy(v.w);
    tn_tensor_destroy(v.row[0]);
    tn_tensor_destroy(v.row[1]);
}

static void test_products(void **unused) {
    (void)unused;
    static const int64_t widths[] = {1, 7, 16, 24, 31, 32, 65};
    static const tn_dtype dtypes[] = {TN_F32, TN_F16, TN_BF16};
    for (int isa = 0; isa < TN_ISA_COUNT; isa++)
        for (size_t i = 0; i < sizeof forms / sizeof *forms && tn_cpu_has((tn_isa)isa); i++)
            for (size_t j = 0; j < sizeof widths / sizeof *widths; j++)
                for (size_t k = 0; k < 3; k++) {
                    dtype = dtypes[k];
                    check(forms[i], widths[j], tn_isa_name((tn_isa)isa));
                }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_products)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
