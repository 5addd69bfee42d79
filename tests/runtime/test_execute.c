/* The compiled plan against the interpreter, on graphs built in C: every kind of kernel, views, fusion at -O1 with the bits of -O0,
   symbolic sizes, host instructions and data-dependent sizes. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <tenon/build.h>

#include "interp/interp.h"
#include "kernels/kernels.h"
#include "ops/composite.h"
#include "runtime/execute.h"

static uint64_t state = 7;
static uint32_t draw(uint32_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % n;
}

static tn_tensor *random_tensor(tn_dtype dtype, int rank, const int64_t *dims) {
    tn_tensor *t = tn_tensor_create(dtype, rank, dims);
    for (int64_t i = 0; i < tn_tensor_count(t); i++)
        tn_tensor_set_f64(t, i,
                          tn_dtype_is_float(dtype) ? (double)draw(2001) / 500 - 2
                          : dtype == TN_BOOL       ? draw(2)
                                                   : draw(9));
    return t;
}

static void inline_composites(tn_graph *g) {
    for (tn_node n = tn_region_first(g, tn_graph_region(g)), next; n.id; n = next) {
        next = tn_node_next(g, n);
        if (tn_node_is_composite(g, n))
            assert_int_equal(tn_composite_inline(g, n), TN_OK);
    }
}

static double tolerance(tn_dtype d) {
    return d == TN_F16 ? 2e-3 : d == TN_BF16 ? 2e-2 : d == TN_F32 ? 2e-5 : 1e-12;
}

static void compare(const tn_object *want, const tn_object *got) {
    const tn_tensor *a = (const tn_tensor *)want, *b = (const tn_tensor *)got;
    assert_int_equal(a->dtype, b->dtype);
    assert_int_equal(a->rank, b->rank);
    for (int i = 0; i < a->rank; i++)
        assert_int_equal(a->dims[i], b->dims[i]);
    for (int64_t i = 0; i < a->count; i++) {
        double x = tn_tensor_get_f64(a, i), y = tn_tensor_get_f64(b, i);
        if (isnan(x) && isnan(y))
            continue;
        if (!(fabs(x - y) <= tolerance((tn_dtype)a->dtype) * (1 + fabs(x))) && x != y)
            fail_msg("element %d: reference %g, compiled %g", (int)i, x, y);
    }
}

static uint32_t kernels_at[2];

/* Runs g (taken over) on inputs whose free dims are `free_dim`, by the interpreter and by plans at level 0 and 1. */
static void check(tn_graph *g, int64_t free_dim) {
    if (tn_graph_check(g) != TN_OK)
        fail_msg("%s", tn_error_message());
    inline_composites(g);
    uint32_t n_in = tn_graph_input_count(g), n_out = tn_graph_output_count(g);
    tn_object *in[8], *want[8], *got[2][8];
    tn_value in_values[8], out_values[8];
    for (uint32_t i = 0; i < n_in; i++) {
        int64_t dims[8], c;
        in_values[i] = tn_graph_input(g, i);
        for (int d = 0; d < tn_value_rank(g, in_values[i]); d++)
            dims[d] = tn_dim_is_const(g, tn_value_dim(g, in_values[i], d), &c) ? c : free_dim;
        in[i] = tn_tensor_object(random_tensor(tn_value_dtype(g, in_values[i]), tn_value_rank(g, in_values[i]), dims));
    }
    for (uint32_t i = 0; i < n_out; i++)
        out_values[i] = tn_graph_output(g, i);
    if (tn_interp_run(g, NULL, n_in, in_values, in, n_out, out_values, want) != TN_OK)
        fail_msg("%s", tn_error_message());
    for (int isa = TN_ISA_GENERIC; isa < TN_ISA_COUNT; isa++) {
        if (!tn_cpu_has((tn_isa)isa))
            continue;
        for (int level = 0; level < 2; level++) {
            tn_graph *copy = tn_graph_clone(g, NULL, NULL);
            assert_non_null(copy);
            tn_lower_options o = {.level = level, .isa = (tn_isa)isa, .kernels = tn_kernels()};
            tn_plan *p = tn_lower(NULL, copy, &o);
            if (!p)
                fail_msg("%s", tn_error_message());
            kernels_at[level] = p->kernel.len;
            tn_execute_options x = {0};
            if (tn_execute(p, &x, in, got[level]) != TN_OK)
                fail_msg("%s", tn_error_message());
            for (uint32_t i = 0; i < n_out; i++)
                compare(want[i], got[level][i]);
            tn_plan_destroy(p);
        }
        for (uint32_t i = 0; i < n_out; i++) {
            assert_true(tn_object_equal(got[0][i], got[1][i])); /* fusion changes no bit */
            tn_object_destroy(got[0][i]);
            tn_object_destroy(got[1][i]);
        }
    }
    for (uint32_t i = 0; i < n_out; i++)
        tn_object_destroy(want[i]);
    for (uint32_t i = 0; i < n_in; i++)
        tn_object_destroy(in[i]);
    tn_graph_destroy(g);
}

static void test_elementwise_fuses(void **s) {
    (void)s;
    for (int d = 0; d < 4; d++) {
        static const tn_dtype dtypes[] = {TN_F32, TN_F64, TN_F16, TN_BF16};
        tn_graph *g = tn_graph_create();
        tn_value x = tn_input(g, "x", dtypes[d], TN_SHAPE("N", 37)), b = tn_input(g, "b", dtypes[d], TN_SHAPE(37));
        tn_set_output(g, "y", tn_exp(g, tn_neg(g, tn_mul(g, tn_add(g, x, b), tn_scalar(g, dtypes[d], 0.5)))));
        check(g, 300);
        assert_int_equal(kernels_at[0], 4);
        assert_int_equal(kernels_at[1], 1);
    }
}

static void test_integers_select_cast(void **s) {
    (void)s;
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", TN_I32, TN_SHAPE("N", 5)), y = tn_input(g, "y", TN_I32, TN_SHAPE("N", 5));
    tn_value c = tn_less(g, x, y), m = tn_select(g, c, tn_mod(g, x, y), tn_sub(g, y, x));
    tn_set_output(g, "m", m);
    tn_set_output(g, "f", tn_cast(g, tn_mul(g, m, m), TN_F32));
    tn_set_output(g, "u", tn_cast(g, tn_cast(g, m, TN_I8), TN_U8));
    tn_set_output(g, "c", tn_not(g, c));
    check(g, 7);
}

static void test_matmul_epilogue(void **s) {
    (void)s;
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("N", 20)), w = tn_input(g, "w", TN_F32, TN_SHAPE(20, 30)),
             b = tn_input(g, "b", TN_F32, TN_SHAPE(30));
    tn_set_output(g, "y", tn_relu(g, tn_add(g, tn_matmul(g, x, w), b)));
    check(g, 9);
    assert_int_equal(kernels_at[0], 3);
    assert_int_equal(kernels_at[1], 1);
    g = tn_graph_create();
    x = tn_input(g, "x", TN_F64, TN_SHAPE(2, "N", 3, 4));
    w = tn_input(g, "w", TN_F64, TN_SHAPE("N", 4, 5));
    tn_set_output(g, "y", tn_matmul(g, x, w));
    check(g, 3);
}

/* Factors of f16 and bf16, in every order of their axes; sums are f32, rounded once. */
static void test_narrow_contractions(void **s) {
    (void)s;
    for (int i = 0; i < 16; i++) {
        tn_dtype dtype = i % 2 ? TN_F16 : TN_BF16;
        bool across = i / 2 % 2, turned = i / 4 % 2, wide = i / 8 % 2;
        tn_graph *g = tn_graph_create();
        tn_value x = across ? tn_input(g, "x", dtype, TN_SHAPE(3, 70, "N"))
                            : tn_input(g, "x", dtype, TN_SHAPE(3, "N", 70)),
                 w = turned ? tn_input(g, "w", dtype, TN_SHAPE(21, 70)) : tn_input(g, "w", dtype, TN_SHAPE(70, 21));
        x = across ? tn_transpose(g, x, (int[]){0, 2, 1}) : x;
        w = turned ? tn_transpose(g, w, NULL) : w;
        tn_value y = tn_add(g, tn_matmul(g, x, w), tn_input(g, "b", dtype, TN_SHAPE(21)));
        tn_set_output(g, "y", wide ? tn_cast(g, y, TN_F32) : y);
        check(g, 13);
        assert_int_equal(kernels_at[1], 1);
        g = tn_graph_create();
        x = tn_input(g, "x", dtype, TN_SHAPE("N", across ? 1 : 4, 9, 11));
        w = tn_input(g, "w", dtype, TN_SHAPE(8, turned ? 1 : across ? 1 : 4, 3, 3));
        tn_dim lo[2] = {tn_dim_const(g, 1), tn_dim_const(g, 0)}, hi[2] = {tn_dim_const(g, 2), tn_dim_const(g, 1)};
        int64_t groups = across || !turned ? 1 : 4;
        y = tn_conv(g, x, w, (int64_t[]){1 + wide, 1}, NULL, NULL, lo, hi, groups);
        tn_set_output(g, "y", tn_relu(g, y));
        check(g, 2);
    }
}

static void test_convolutions(void **s) {
    (void)s;
    for (int groups = 1; groups <= 4; groups *= 2)
        for (int64_t stride = 1; stride <= 2; stride++) {
            tn_graph *g = tn_graph_create();
            tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("N", 4, 9, 11)),
                     w = tn_input(g, "w", TN_F32, TN_SHAPE(8, 4 / groups, 3, 2));
            tn_dim lo[2] = {tn_dim_const(g, 1), tn_dim_const(g, 0)}, hi[2] = {tn_dim_const(g, 2), tn_dim_const(g, 1)};
            tn_value b = tn_input(g, "b", TN_F32, TN_SHAPE(8, 1, 1));
            tn_set_output(
                g, "y",
                tn_relu(g, tn_add(g, tn_conv(g, x, w, (int64_t[]){stride, 1}, (int64_t[]){1, 2}, NULL, lo, hi, groups),
                                  b)));
            check(g, 2);
            assert_int_equal(kernels_at[1], 1);
        }
}

/* What is made of a few numbers for each column is computed in the epilogue, once for all rows of a block: a norm whose statistics are
   fed. By columns (less and more than a strip), by rows, by groups, by a number for all; the kernels are none more. */
static void test_columns_in_epilogues(void **s) {
    (void)s;
    static const int64_t columns[] = {1, 30, 1100};
    static const tn_dtype dtypes[] = {TN_F32, TN_F64, TN_F16};
    for (int i = 0; i < 27; i++) {
        tn_dtype dtype = dtypes[i / 3 % 3];
        int64_t m = columns[i % 3];
        tn_graph *g = tn_graph_create();
        tn_value x = tn_input(g, "x", dtype, TN_SHAPE("N", 20)), w = tn_input(g, "w", dtype, TN_SHAPE(20, m)),
                 mean = tn_input(g, "mean", dtype, TN_SHAPE(m));
        tn_value scale, v;
        if (i / 9 == 0) {
            scale = tn_input(g, "scale", dtype, TN_SHAPE(m));
            v = tn_input(g, "v", dtype, TN_SHAPE(m));
        } else if (i / 9 == 1) {
            scale = tn_input(g, "scale", dtype, TN_SHAPE("N", 1));
            v = tn_input(g, "v", dtype, TN_SHAPE("N", 1));
        } else {
            scale = tn_input(g, "scale", dtype, TN_SHAPE("N", 1));
            v = tn_input(g, "v", dtype, TN_SCALAR);
        }
        tn_value factor = tn_mul(g, scale, tn_rsqrt(g, tn_add(g, tn_abs(g, v), tn_scalar(g, dtype, 0.5))));
        tn_set_output(g, "y", tn_relu(g, tn_mul(g, tn_sub(g, tn_matmul(g, x, w), mean), factor)));
        check(g, 37);
        assert_int_equal(kernels_at[1],
                         i / 9 == 2 ? 2 : 1); /* a number is spread before it is a column's: a kernel of its own */
    }
    /* sums of integers, whose steps take turns with the factors'; steps before whose buffers must not be those of the columns */
    for (int i = 0; i < 6; i++) {
        tn_dtype dtype = i % 2 ? TN_F16 : TN_F32;
        int64_t m = columns[i / 2];
        tn_graph *g = tn_graph_create();
        tn_value x = tn_input(g, "x", TN_I32, TN_SHAPE("N", 20)), w = tn_input(g, "w", TN_I32, TN_SHAPE(20, m));
        tn_value a = tn_input(g, "a", dtype, TN_SHAPE(1)), b = tn_input(g, "b", dtype, TN_SHAPE(m));
        tn_value y = tn_sqrt(g, tn_abs(g, tn_cast(g, tn_matmul(g, x, w), dtype)));
        y = tn_mul(g, y, tn_mul(g, a, b));
        tn_set_output(g, "y", tn_cast(g, tn_round(g, tn_mul(g, y, tn_scalar(g, dtype, 8))), TN_I32));
        check(g, 37);
        assert_int_equal(kernels_at[1], 1);
    }
    for (int groups = 1; groups <= 8; groups *= 2) {
        tn_graph *g = tn_graph_create();
        tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("N", 8, 9, 11)),
                 w = tn_input(g, "w", TN_F32, TN_SHAPE(16, 8 / groups, 3, 3)),
                 mean = tn_input(g, "mean", TN_F32, TN_SHAPE(16, 1, 1)),
                 scale = tn_input(g, "scale", TN_F32, TN_SHAPE(16, 1, 1)),
                 v = tn_input(g, "v", TN_F32, TN_SHAPE(16, 1, 1));
        tn_dim one[2] = {tn_dim_const(g, 1), tn_dim_const(g, 1)};
        tn_value factor = tn_mul(g, scale, tn_rsqrt(g, tn_add(g, tn_abs(g, v), tn_scalar(g, TN_F32, 0.5))));
        tn_set_output(
            g, "y",
            tn_relu(g, tn_mul(g, tn_sub(g, tn_conv(g, x, w, NULL, NULL, NULL, one, one, groups), mean), factor)));
        check(g, 2);
        assert_int_equal(kernels_at[1], groups < 8 ? 1 : 2); /* of one channel each: the image is turned first */
    }
}

/* What is made of a sum and comes together again is one kernel; what does not, or leaves the region, or is read elsewhere, is several, and
   right. */
static tn_value twice_read(tn_graph *g, tn_value v, int how) {
    tn_dtype d = tn_value_dtype(g, v);
    switch (how) {
    case 0: return tn_mul(g, v, tn_sigmoid(g, v));
    case 1: return tn_mul(g, tn_scalar(g, d, 0.5), tn_mul(g, v, tn_add(g, tn_erf(g, v), tn_scalar(g, d, 1))));
    case 2: return tn_mul(g, v, tn_tanh(g, tn_log1p(g, tn_exp(g, v))));
    case 3: return tn_gelu(g, v);
    case 4: { /* the parts are read more than once, too */
        tn_value a = tn_exp(g, tn_neg(g, tn_abs(g, v))), b = tn_add(g, a, v);
        return tn_sub(g, tn_mul(g, a, b), tn_div(g, b, tn_add(g, a, tn_scalar(g, d, 1))));
    }
    case 5: return tn_select(g, tn_less(g, v, tn_scalar(g, d, 0)), tn_exp(g, v), v);
    default: return tn_mul(g, v, v);
    }
}

static void leave(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)args;
    results[0] = tn_exp(g, *(tn_value *)ctx);
}

static void test_what_comes_together(void **s) {
    (void)s;
    static const tn_dtype dtypes[] = {TN_F32, TN_F16, TN_F64};
    for (int i = 0; i < 21; i++) {
        tn_dtype dtype = dtypes[i / 7];
        tn_graph *g = tn_graph_create();
        tn_value x = tn_input(g, "x", dtype, TN_SHAPE("N", 20)), w = tn_input(g, "w", dtype, TN_SHAPE(20, 70));
        tn_value v = tn_add(g, tn_matmul(g, x, w), tn_input(g, "b", dtype, TN_SHAPE(70)));
        tn_set_output(g, "y", twice_read(g, twice_read(g, v, i % 7), (i + 3) % 7)); /* one after another */
        check(g, 19);
        assert_int_equal(kernels_at[1], 1);
    }
    for (int i = 0; i < 5; i++) {
        tn_graph *g = tn_graph_create();
        tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("N", 4, 9, 11)),
                 w = tn_input(g, "w", TN_F32, TN_SHAPE(8, 4, 3, 3)), b = tn_input(g, "b", TN_F32, TN_SHAPE(8, 1, 1)), z;
        tn_dim one[2] = {tn_dim_const(g, 1), tn_dim_const(g, 1)};
        tn_value v = tn_add(g, tn_conv(g, x, w, NULL, NULL, NULL, one, one, 1), b), y = tn_sigmoid(g, v);
        tn_value c = tn_greater(g, tn_reduce_sum(g, x, TN_ALL_AXES, false), tn_scalar(g, TN_F32, 0));
        switch (i) {
        case 0: y = tn_mul(g, v, y); break;
        case 1: y = tn_mul(g, y, tn_reduce_max(g, v, 1, (int[]){3}, true)); break; /* read by no step */
        case 2: tn_set_output(g, "v", v); break;
        case 3: /* read in a branch, before the rest */
            assert_int_equal(tn_if(g, c, leave, leave, &v, 1, &z), TN_OK);
            y = tn_mul(g, z, tn_mul(g, v, y));
            break;
        default: /* a branch between the readers */
            assert_int_equal(tn_if(g, c, leave, leave, &x, 1, &z), TN_OK);
            tn_set_output(g, "z", z);
            y = tn_mul(g, v, y);
        }
        tn_set_output(g, "y", y);
        check(g, 2);
        if (i == 0)
            assert_int_equal(kernels_at[1], 1);
    }
}

/* One channel a group: channels more and fewer than a vector, none, kernels of many sizes, strides, paddings of more than the kernel, gaps. */
static void test_depthwise(void **s) {
    (void)s;
    static const int64_t channels[] = {3, 8, 16, 24, 33, 48, 96}, sizes[] = {1, 2, 3, 5};
    for (int i = 0; i < 56; i++) {
        int64_t c = channels[i % 7], size = sizes[i / 7 % 4], stride = 1 + i % 2, gap = 1 + i / 3 % 2;
        tn_graph *g = tn_graph_create();
        tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("N", c, 9, 13));
        tn_tensor *weights = random_tensor(TN_F32, 4, (const int64_t[]){c, 1, size, 1 + size / 2});
        tn_dim lo[2] = {tn_dim_const(g, i % 3), tn_dim_const(g, i % 4)},
               hi[2] = {tn_dim_const(g, size + 1), tn_dim_const(g, 2)};
        tn_value y = tn_conv(g, tn_relu(g, x), tn_constant(g, weights), (const int64_t[]){stride, 1},
                             (const int64_t[]){1, gap}, NULL, lo, hi, c);
        tn_set_output(g, "y",
                      i / 28
                          ? tn_conv(g, y, tn_constant(g, weights), (const int64_t[]){1, stride}, NULL, NULL, lo, hi, c)
                          : tn_relu(g, y));
        tn_tensor_destroy(weights);
        check(g, 2);
    }
}

static void test_movement(void **s) {
    (void)s;
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("N", 4, 6));
    tn_value t = tn_transpose(g, x, (int[]){2, 0, 1});
    tn_set_output(g, "t", t);
    tn_set_output(g, "r", tn_reshape(g, t, TN_SHAPE(-1, 4)));
    tn_set_output(g, "s", tn_slice_axis(g, x, 2, 1, 3));
    tn_dim zero = tn_dim_const(g, 0), one = tn_dim_const(g, 1);
    tn_set_output(g, "p",
                  tn_neg(g, tn_pad(g, x, tn_scalar(g, TN_F32, 7), (tn_dim[]){zero, one, one},
                                   (tn_dim[]){one, zero, one}, "constant")));
    tn_set_output(g, "c", tn_concat(g, 1, 3, (tn_value[]){x, tn_abs(g, x), tn_slice_axis(g, x, 1, 0, 2)}));
    tn_set_output(g, "x", x);
    check(g, 5);
}

static void test_reductions(void **s) {
    (void)s;
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("N", 5, 700));
    tn_set_output(g, "all", tn_reduce_sum(g, x, TN_ALL_AXES, false));
    tn_set_output(g, "last", tn_mul(g, tn_reduce_max(g, x, 1, (int[]){-1}, true), tn_scalar(g, TN_F32, 2)));
    tn_set_output(g, "first", tn_reduce_mean(g, x, 1, (int[]){0}, false));
    tn_set_output(g, "soft", tn_softmax(g, x, 1));
    tn_set_output(g, "pool", tn_window(g, "max", x, (int64_t[]){1, 2, 3}, (int64_t[]){1, 1, 2}, NULL, NULL, NULL));
    check(g, 3);
    g = tn_graph_create();
    x = tn_input(g, "x", TN_I32, TN_SHAPE(2, "N", 4));
    tn_dim one = tn_dim_const(g, 1), zero = tn_dim_const(g, 0);
    tn_set_output(g, "m",
                  tn_window(g, "min", x, (int64_t[]){1, 3, 1}, NULL, NULL, (tn_dim[]){zero, one, zero},
                            (tn_dim[]){zero, one, zero}));
    tn_set_output(g, "s", tn_reduce_prod(g, x, 1, (int[]){1}, false));
    check(g, 6);
}

static void test_empty_and_scalars(void **s) {
    (void)s;
    for (int64_t n = 0; n < 2; n++) {
        tn_graph *g = tn_graph_create();
        tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("N", 3)), k = tn_input(g, "k", TN_F32, TN_SCALAR);
        tn_set_output(g, "y", tn_mul(g, x, k));
        tn_set_output(g, "s", tn_reduce_sum(g, x, TN_ALL_AXES, false));
        tn_set_output(g, "m", tn_matmul(g, tn_transpose(g, x, NULL), x));
        tn_set_output(g, "k2", tn_add(g, k, k));
        check(g, n);
    }
}

static void then_body(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)args;
    results[0] = tn_mul(g, *(tn_value *)ctx, tn_scalar(g, TN_F32, 2));
}
static void else_body(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)args;
    results[0] = tn_slice_axis(g, *(tn_value *)ctx, 0, 0, 1);
}

static void test_branches_decide_sizes(void **s) {
    (void)s;
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE(3, 4)), y;
    tn_value c = tn_greater(g, tn_reduce_sum(g, x, TN_ALL_AXES, false), tn_scalar(g, TN_F32, 0));
    assert_int_equal(tn_if(g, c, then_body, else_body, &x, 1, &y), TN_OK);
    tn_set_output(g, "y", tn_neg(g, tn_exp(g, y)));
    tn_set_output(g, "n", tn_shape_of(g, y));
    check(g, 1);
}

/* --- branches and loops of fixed shapes are instructions of the plan ------------------------------------------------------------ */

static void plain_else(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)args;
    results[0] = tn_sub(g, *(tn_value *)ctx, tn_scalar(g, TN_F32, 1));
}

static void nested(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)args;
    tn_value x = *(tn_value *)ctx;
    tn_value c = tn_less(g, tn_reduce_max(g, x, TN_ALL_AXES, false), tn_scalar(g, TN_F32, 1.5));
    tn_if(g, c, then_body, plain_else, ctx, 1, results);
}

static void test_branch(void **s) {
    (void)s;
    for (int i = 0; i < 6; i++) { /* random inputs take each way */
        tn_graph *g = tn_graph_create();
        tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("N", 4)), y;
        tn_value c = tn_greater(g, tn_reduce_sum(g, x, TN_ALL_AXES, false), tn_scalar(g, TN_F32, 0));
        assert_int_equal(tn_if(g, c, nested, plain_else, &x, 1, &y), TN_OK);
        tn_set_output(g, "y", tn_neg(g, y));
        check(g, 2);
        assert_true(kernels_at[1] > 4); /* compiled, not handed to the interpreter */
    }
}

static void while_cond(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)ctx;
    results[0] = tn_less(g, args[0], tn_scalar(g, TN_I32, 10));
}
static void while_body(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    results[0] = tn_add(g, args[0], tn_scalar(g, TN_I32, 1));
    results[1] = args[2]; /* they change places */
    results[2] = tn_add(g, args[1], *(tn_value *)ctx);
}

static void test_loop(void **s) {
    (void)s;
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("N", 3)), n = tn_input(g, "n", TN_I32, TN_SCALAR), out[3];
    tn_value init[3] = {n, x, tn_mul(g, x, tn_scalar(g, TN_F32, 0.5))};
    assert_int_equal(tn_while(g, 3, init, NULL, while_cond, while_body, &x, 0, out), TN_OK);
    tn_set_output(g, "a", out[1]);
    tn_set_output(g, "b", tn_abs(g, out[2]));
    tn_set_output(g, "i", out[0]);
    check(g, 4);
    assert_in_range(kernels_at[1], 6, 8); /* compiled, and only what changes places is copied */
}

static void growing_body(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)ctx;
    results[0] = tn_add(g, args[0], tn_scalar(g, TN_I32, 1));
    /* a host instruction with regions, inside the body of a loop: a branch whose ways differ in shape */
    tn_value way, c = tn_less(g, args[0], tn_scalar(g, TN_I32, 5)), x = args[1];
    tn_if(g, c, then_body, else_body, &x, 1, &way);
    results[1] = tn_add(g, args[1], tn_reduce_max(g, way, TN_ALL_AXES, false));
}

static void rows_of(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)args;
    results[0] = tn_tanh(g, *(tn_value *)ctx);
}
static void sums_of(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)args;
    results[0] = tn_reduce_sum(g, *(tn_value *)ctx, 1, (int[]){0}, true);
}

/* What the interpreter computes of a branch whose shape only a run knows has the bits that a kernel gives. */
static void test_elementary_functions_of_host_instructions(void **s) {
    (void)s;
    static const tn_dtype dtypes[] = {TN_F32, TN_F16, TN_BF16};
    for (int d = 0; d < 3; d++) {
        tn_graph *g = tn_graph_create();
        tn_value x = tn_input(g, "x", dtypes[d], TN_SHAPE("N", 700)), y;
        tn_value c = tn_greater(g, tn_reduce_max(g, x, TN_ALL_AXES, false), tn_scalar(g, dtypes[d], -100));
        assert_int_equal(tn_if(g, c, rows_of, sums_of, &x, 1, &y), TN_OK);
        tn_set_output(g, "host", y);
        tn_set_output(g, "kernel", tn_tanh(g, x));
        assert_int_equal(tn_graph_check(g), TN_OK);
        inline_composites(g);
        int64_t dims[] = {3, 700};
        tn_object *in = tn_tensor_object(random_tensor(dtypes[d], 2, dims)), *out[2];
        tn_lower_options o = {.level = 0, .isa = tn_cpu_best(), .kernels = tn_kernels()};
        tn_plan *p = tn_lower(NULL, tn_graph_clone(g, NULL, NULL), &o);
        assert_non_null(p);
        assert_int_equal(p->host.len, 1);
        tn_execute_options e = {0};
        assert_int_equal(tn_execute(p, &e, &in, out), TN_OK);
        assert_true(tn_object_equal(out[0], out[1]));
        for (int i = 0; i < 2; i++)
            tn_object_destroy(out[i]);
        tn_object_destroy(in);
        tn_plan_destroy(p);
        tn_graph_destroy(g);
    }
}

static void test_host_inside_loop(void **s) {
    (void)s;
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE(2, 3)), n = tn_input(g, "n", TN_I32, TN_SCALAR), out[2];
    assert_int_equal(tn_while(g, 2, (tn_value[]){n, x}, NULL, while_cond, growing_body, &x, 0, out), TN_OK);
    tn_set_output(g, "y", out[1]);
    check(g, 1);
}

/* --- sizes that do not fit are refused as the interpreter refuses them, before anything is computed --------------------------------- */

/* g (taken over) with this size for all free dims: an error that names `op` by every way of running. */
static void refused(tn_graph *g, int64_t free_dim, const char *op) {
    if (tn_graph_check(g) != TN_OK)
        fail_msg("%s", tn_error_message());
    uint32_t n_in = tn_graph_input_count(g);
    tn_object *in[4], *out[4];
    tn_value in_values[4], out_values[4];
    for (uint32_t i = 0; i < n_in; i++) {
        int64_t dims[8], c;
        in_values[i] = tn_graph_input(g, i);
        for (int d = 0; d < tn_value_rank(g, in_values[i]); d++)
            dims[d] = tn_dim_is_const(g, tn_value_dim(g, in_values[i], d), &c) ? c : free_dim;
        in[i] = tn_tensor_object(random_tensor(tn_value_dtype(g, in_values[i]), tn_value_rank(g, in_values[i]), dims));
    }
    for (uint32_t i = 0; i < tn_graph_output_count(g); i++)
        out_values[i] = tn_graph_output(g, i);
    assert_int_equal(tn_interp_run(g, NULL, n_in, in_values, in, tn_graph_output_count(g), out_values, out),
                     TN_ERR_INPUT);
    assert_non_null(strstr(tn_error_message(), op));
    for (int level = 0; level < 2; level++) {
        tn_lower_options o = {.level = level, .isa = TN_ISA_GENERIC, .kernels = tn_kernels()};
        tn_plan *p = tn_lower(NULL, tn_graph_clone(g, NULL, NULL), &o);
        assert_non_null(p);
        tn_execute_options x = {0};
        assert_int_equal(tn_execute(p, &x, in, out), TN_ERR_INPUT);
        assert_non_null(strstr(tn_error_message(), op));
        assert_non_null(strstr(tn_error_message(), "where: node"));
        assert_null(out[0]);
        tn_plan_destroy(p);
    }
    for (uint32_t i = 0; i < n_in; i++)
        tn_object_destroy(in[i]);
    tn_graph_destroy(g);
}

static tn_value conv5(tn_graph *g, tn_value x, int64_t channels) {
    tn_value w = tn_input(g, "w", TN_F32, TN_SHAPE(6, channels, 5, 5));
    return tn_conv(g, x, w, NULL, NULL, NULL, NULL, NULL, 1);
}

static void test_sizes_that_do_not_fit(void **s) {
    (void)s;
    for (int reduced = 0; reduced < 2; reduced++) { /* two negative sizes multiply to a positive one */
        tn_graph *g = tn_graph_create();
        tn_value y = conv5(g, tn_input(g, "x", TN_F32, TN_SHAPE(1, 3, "H", "W")), 3);
        tn_set_output(g, "y", reduced ? tn_reduce_sum(g, y, TN_ALL_AXES, false) : y);
        refused(g, 2, "conv: dimension 2 of output 0 is -2");
        g = tn_graph_create();
        y = tn_window(g, "max", tn_input(g, "x", TN_F32, TN_SHAPE("H", "W")), (int64_t[]){5, 5}, NULL, NULL, NULL,
                      NULL);
        tn_set_output(g, "y", reduced ? tn_reduce_sum(g, y, TN_ALL_AXES, false) : y);
        refused(g, 1, "window_max: dimension 0 of output 0 is -3");
    }
    for (int first = 0; first < 2;
         first++) { /* a part of a concatenation that has no size, beside one that is made in its place before */
        tn_graph *g = tn_graph_create();
        tn_value a = tn_input(g, "a", TN_F32, TN_SHAPE(1, 6, "H", 1)),
                 none = tn_input(g, "b", TN_F32, TN_SHAPE(1, 3, "H", 5)), part[2];
        part[first] = tn_exp(g, a);
        part[1 - first] = conv5(g, none, 3);
        tn_set_output(g, "y", tn_exp(g, tn_concat(g, 2, 2, part)));
        refused(g, 1, "conv: dimension 2 of output 0 is -3");
    }
    tn_graph *g = tn_graph_create();
    tn_set_output(g, "y", conv5(g, tn_input(g, "x", TN_F32, TN_SHAPE(1, "C", 9, 9)), 3));
    refused(g, 2, "conv: ");
    g = tn_graph_create();
    tn_set_output(g, "y",
                  tn_broadcast(g, tn_input(g, "x", TN_F32, TN_SHAPE(4, "N")), 2,
                               (tn_dim[]){tn_dim_const(g, 4), tn_dim_const(g, 3)}));
    refused(g, 2, "cannot be broadcast to 3");
}

static void large_window(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)args;
    tn_value y = tn_window(g, "max", *(tn_value *)ctx, (int64_t[]){5, 5}, NULL, NULL, NULL, NULL);
    results[0] = tn_reduce_sum(g, y, TN_ALL_AXES, false);
}
static void no_window(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)args;
    results[0] = tn_reduce_sum(g, *(tn_value *)ctx, TN_ALL_AXES, false);
}

/* A branch that is not taken may have sizes that do not fit. */
static void test_sizes_of_a_branch_not_taken(void **s) {
    (void)s;
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("H", 4)), y;
    tn_value c = tn_greater(g, tn_reduce_max(g, x, TN_ALL_AXES, false), tn_scalar(g, TN_F32, 100));
    assert_int_equal(tn_if(g, c, large_window, no_window, &x, 1, &y), TN_OK);
    tn_set_output(g, "y", y);
    check(g, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_elementwise_fuses),
                                       cmocka_unit_test(test_integers_select_cast),
                                       cmocka_unit_test(test_matmul_epilogue),
                                       cmocka_unit_test(test_narrow_contractions),
                                       cmocka_unit_test(test_convolutions),
                                       cmocka_unit_test(test_columns_in_epilogues),
                                       cmocka_unit_test(test_what_comes_together),
                                       cmocka_unit_test(test_depthwise),
                                       cmocka_unit_test(test_movement),
                                       cmocka_unit_test(test_reductions),
                                       cmocka_unit_test(test_empty_and_scalars),
                                       cmocka_unit_test(test_branches_decide_sizes),
                                       cmocka_unit_test(test_branch),
                                       cmocka_unit_test(test_loop),
                                       cmocka_unit_test(test_elementary_functions_of_host_instructions),
                                       cmocka_unit_test(test_host_inside_loop),
                                       cmocka_unit_test(test_sizes_that_do_not_fit),
                                       cmocka_unit_test(test_sizes_of_a_branch_not_taken)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
