/* The strip machine on random graphs: movement, elementwise operations of every dtype and reductions, against the interpreter; the same
   bits at both levels of optimisation, on one thread and several. And large chains of rows, which run a few rows at a time. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <tenon/build.h>

#include "base/os.h"
#include "base/pool.h"
#include "interp/interp.h"
#include "kernels/kernels.h"
#include "ops/composite.h"
#include "runtime/execute.h"

static uint64_t state = 20261129;
static uint32_t draw(uint32_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % n;
}

static tn_tensor *random_tensor(tn_dtype dtype, int rank, const int64_t *dims) {
    tn_tensor *t = tn_tensor_create(dtype, rank, dims);
    for (int64_t i = 0; i < tn_tensor_count(t); i++)
        if (tn_dtype_is_float(dtype))
            tn_tensor_set_f64(t, i, draw(50) ? (double)draw(4001) / 1000 - 2 : draw(2) ? NAN : -0.0);
        else
            tn_tensor_set_f64(t, i, dtype == TN_BOOL ? draw(2) : draw(120));
    return t;
}

/* --- random graphs ------------------------------------------------------------------------------------------------------------------- */

static const tn_dtype dtypes[] = {TN_F32, TN_F64, TN_F16, TN_BF16, TN_I8,  TN_U8,
                                  TN_I16, TN_U16, TN_I32, TN_U32,  TN_I64, TN_U64};

/* Some movement of x. */
static tn_value moved(tn_graph *g, tn_value x) {
    int rank = tn_value_rank(g, x), perm[8];
    int64_t step[8], n;
    tn_dim lo[8], hi[8], start[8], size[8];
    if (rank == 0)
        return x;
    switch (draw(6)) {
    case 0:
        for (int i = 0; i < rank; i++)
            perm[i] = i;
        for (int i = rank - 1; i > 0; i--) {
            int j = (int)draw((uint32_t)i + 1), t = perm[i];
            perm[i] = perm[j];
            perm[j] = t;
        }
        return tn_transpose(g, x, perm);
    case 1:
        for (int i = 0; i < rank; i++) {
            tn_dim_is_const(g, tn_value_dim(g, x, i), &n);
            step[i] = 1 + draw(2);
            int64_t from = draw((uint32_t)n);
            start[i] = tn_dim_const(g, from);
            size[i] = tn_dim_const(g, (n - from + step[i] - 1) / step[i]);
        }
        return tn_slice(g, x, start, size, step);
    case 2:
        for (int i = 0; i < rank; i++) {
            lo[i] = tn_dim_const(g, draw(3));
            hi[i] = tn_dim_const(g, draw(3));
        }
        return tn_pad(g, x, tn_scalar_like(g, x, 3), lo, hi, NULL);
    case 3: {
        tn_dim dims[8];
        dims[0] = tn_dim_const(g, 1 + draw(4));
        for (int i = 0; i < rank; i++)
            dims[i + 1] = tn_value_dim(g, x, i);
        return rank < 4 ? tn_broadcast(g, x, rank + 1, dims) : x;
    }
    case 4: return tn_reverse(g, x, 1, (const int[]){(int)draw((uint32_t)rank)});
    default: return x;
    }
}

static tn_value combined(tn_graph *g, tn_value a, tn_value b, bool *exact) {
    bool is_float = tn_dtype_is_float(tn_value_dtype(g, a));
    switch (draw(is_float ? 11 : 9)) {
    case 0: return tn_add(g, a, b);
    case 1: return tn_sub(g, a, b);
    case 2: return tn_mul(g, a, b);
    case 3: return tn_max(g, a, b);
    case 4: return tn_min(g, a, b);
    case 5: return tn_select(g, tn_less(g, a, b), b, a);
    case 6: return tn_cast(g, tn_cast(g, tn_add(g, a, b), dtypes[draw(12)]), tn_value_dtype(g, a));
    case 7: return tn_select(g, tn_or(g, tn_equal(g, a, b), tn_greater(g, a, b)), a, tn_neg(g, b));
    case 8: return tn_abs(g, tn_rem(g, a, b));
    case 9: return tn_div(g, tn_floor(g, a), tn_sqrt(g, tn_abs(g, b)));
    default: *exact = false; return tn_add(g, tn_exp(g, a), tn_tanh(g, b));
    }
}

static double close_to(tn_dtype d) {
    return d == TN_F16 ? 4e-3 : d == TN_BF16 ? 4e-2 : d == TN_F32 ? 2e-5 : 1e-12;
}

static void compare(unsigned round, bool exact, const tn_object *want, const tn_object *got) {
    const tn_tensor *a = (const tn_tensor *)want, *b = (const tn_tensor *)got;
    assert_int_equal(a->count, b->count);
    for (int64_t i = 0; i < a->count; i++) {
        double x = tn_tensor_get_f64(a, i), y = tn_tensor_get_f64(b, i);
        if ((isnan(x) && isnan(y)) || (x == y && !signbit(x) == !signbit(y)))
            continue;
        if (exact || !(fabs(x - y) <= close_to((tn_dtype)a->dtype) * (1 + fabs(x))))
            fail_msg("graph %u, element %d: reference %a, compiled %a", round, (int)i, x, y);
    }
}

static void inline_composites(tn_graph *g) {
    for (tn_node n = tn_region_first(g, tn_graph_region(g)), next; n.id; n = next) {
        next = tn_node_next(g, n);
        if (tn_node_is_composite(g, n))
            assert_int_equal(tn_composite_inline(g, n), TN_OK);
    }
}

/* Runs g (taken over) at level 0 and 1, on one thread and three, at the best instruction-set level and the plain one. */
static void check(unsigned round, tn_graph *g, tn_object *in, bool exact, bool oracle) {
    tn_object *want = NULL, *first = NULL;
    tn_pool *pool = tn_pool_create(NULL, 3);
    if (tn_graph_check(g) != TN_OK)
        fail_msg("graph %u: %s", round, tn_error_message());
    inline_composites(g);
    tn_value x = tn_graph_input(g, 0), y = tn_graph_output(g, 0);
    if (oracle && tn_interp_run(g, NULL, 1, &x, &in, 1, &y, &want) != TN_OK)
        fail_msg("graph %u: %s", round, tn_error_message());
    for (int isa = 0; isa < 2; isa++) {
        for (int level = 0; level < 2; level++) {
            tn_lower_options o = {.level = level, .isa = isa ? tn_cpu_best() : TN_ISA_GENERIC, .kernels = tn_kernels()};
            tn_plan *p = tn_lower(NULL, tn_graph_clone(g, NULL, NULL), &o);
            if (!p)
                fail_msg("graph %u: %s", round, tn_error_message());
            for (int threads = 0; threads < 2; threads++) {
                tn_execute_options e = {.pool = threads ? pool : NULL};
                tn_object *got;
                if (tn_execute(p, &e, &in, &got) != TN_OK)
                    fail_msg("graph %u: %s", round, tn_error_message());
                if (oracle)
                    compare(round, exact, want, got);
                if (!first)
                    first = tn_object_retain(got);
                if (!tn_object_equal(first, got))
                    fail_msg("graph %u: other bits at level %d", round, level);
                tn_object_destroy(got);
            }
            tn_plan_destroy(p);
        }
        tn_object_destroy(first);
        first = NULL;
    }
    tn_object_destroy(want);
    tn_object_destroy(in);
    tn_pool_destroy(pool);
    tn_graph_destroy(g);
}

static void test_random_graphs(void **s) {
    (void)s;
    static const int64_t sizes[] = {1, 2, 3, 5, 7, 16, 17, 40, 130};
    for (unsigned round = 0; round < 400; round++) {
        tn_graph *g = tn_graph_create();
        tn_dtype dtype = dtypes[draw(12)];
        int rank = (int)draw(5);
        int64_t dims[4], count = 1;
        tn_shape shape = {.rank = rank};
        for (int i = 0; i < rank; i++) {
            dims[i] = sizes[draw(count > 2000 ? 3 : 9)];
            shape.item[i].size = dims[i];
            count *= dims[i];
        }
        bool exact = true;
        tn_value x = tn_input(g, "x", dtype, shape), a = moved(g, moved(g, x));
        /* another reading of the same elements, and one of a row of them */
        tn_value b = draw(2) ? tn_neg(g, a) : moved(g, x);
        int same = tn_value_rank(g, a) == tn_value_rank(g, b);
        for (int i = 0; same && i < tn_value_rank(g, a); i++)
            same = tn_dim_equal(g, tn_value_dim(g, a, i), tn_value_dim(g, b, i));
        tn_value y = combined(g, a, same ? b : tn_scalar_like(g, a, 2), &exact);
        if (draw(2) && tn_value_rank(g, y)) {
            int axis = (int)draw((uint32_t)tn_value_rank(g, y));
            switch (draw(4)) {
            case 0: y = tn_reduce_max(g, y, 1, &axis, draw(2)); break;
            case 1: y = tn_reduce_min(g, y, TN_ALL_AXES, false); break;
            case 2:
                y = tn_reduce_sum(g, y, 1, &axis, draw(2));
                exact &= !tn_dtype_is_float(dtype);
                break;
            default: y = tn_sub(g, y, tn_reduce_sum(g, y, 1, &axis, true)); exact &= !tn_dtype_is_float(dtype);
            }
        }
        tn_set_output(g, "y", y);
        check(round, g, tn_tensor_object(random_tensor(dtype, rank, dims)), exact, true);
    }
}

/* --- chains ----------------------------------------------------------------------------------------------------------------------------- */

static tn_value chain_of(tn_graph *g, unsigned which, tn_value x) {
    int last = tn_value_rank(g, x) - 1, first = 0;
    switch (which) {
    case 0: return tn_softmax(g, x, -1);
    case 1: return tn_layer_norm(g, x, (tn_value){0}, (tn_value){0}, -1, 1e-5);
    case 2: return tn_softmax(g, tn_mul(g, tn_softmax(g, x, -1), x), -1);
    case 3: return tn_softmax(g, x, 0); /* not along rows */
    case 4: {                           /* a value of the chain that is read later */
        tn_value e = tn_exp(g, tn_sub(g, x, tn_reduce_max(g, x, 1, &last, true)));
        tn_value z = tn_div(g, e, tn_reduce_sum(g, e, 1, &last, true));
        return tn_add(g, tn_reverse(g, z, 1, &first), e);
    }
    case 5: /* rows of two axes */
        return tn_softmax(g, tn_sub(g, x, tn_reduce_sum(g, x, 2, (const int[]){last - 1, last}, true)), -1);
    case 6: return tn_log_softmax(g, tn_add(g, x, tn_reduce_max(g, x, 1, &first, true)), -1);
    case 7: return tn_softmax(g, tn_transpose(g, tn_softmax(g, x, -1), NULL), -1);
    case 8: { /* scaled and shifted by rows of x itself */
        tn_dim zero = tn_dim_const(g, 0), one = tn_dim_const(g, 1), n = tn_value_dim(g, x, last);
        tn_value row = tn_slice(g, x, (const tn_dim[]){zero, zero, zero}, (const tn_dim[]){one, one, n}, NULL);
        tn_value scale = tn_reshape_dims(g, row, 1, &n);
        return tn_layer_norm(g, x, scale, tn_add(g, scale, tn_scalar_like(g, scale, 1)), -1, 1e-5);
    }
    case 9: { /* masked: exponentials of which some vanish, and whole rows of them */
        tn_value masked = tn_select(g, tn_less(g, x, tn_scalar_like(g, x, 0.5)), tn_scalar_like(g, x, -200), x);
        tn_value none = tn_reduce_max(g, x, 1, &last, true);
        tn_value hidden =
            tn_select(g, tn_less(g, none, tn_scalar_like(g, none, 1.98)), tn_scalar_like(g, x, -1e30), masked);
        return tn_softmax(g, hidden, -1);
    }
    case 10: return tn_cast(g, tn_softmax(g, tn_cast(g, x, TN_F16), -1), TN_F32);
    case 11: return tn_cast(g, tn_layer_norm(g, tn_cast(g, x, TN_F64), (tn_value){0}, (tn_value){0}, -1, 1e-5), TN_F32);
    case 12: { /* whole numbers, truth values */
        tn_value i = tn_cast(g, tn_mul(g, x, tn_scalar_like(g, x, 40)), TN_I16);
        tn_value most = tn_reduce_max(g, i, 1, &last, true), sum = tn_reduce_sum(g, i, 1, &last, true);
        return tn_cast(g, tn_select(g, tn_less(g, i, sum), tn_sub(g, i, most), tn_mul(g, i, sum)), TN_F32);
    }
    case 13: { /* normalised over the last axis, then scaled by the middle one: longer rows than those before */
        tn_dim zero = tn_dim_const(g, 0), one = tn_dim_const(g, 1), n = tn_value_dim(g, x, 1);
        tn_value scale = tn_slice(g, x, (const tn_dim[]){zero, zero, zero}, (const tn_dim[]){one, n, one}, NULL);
        tn_value z = tn_layer_norm(g, x, (tn_value){0}, (tn_value){0}, -1, 1e-5);
        return tn_add(g, tn_mul(g, z, scale), scale);
    }
    default: { /* a row's copy, read after what it was copied from is written again */
        tn_value a = tn_neg(g, x), b = tn_sub(g, a, tn_reduce_mean(g, a, 1, &last, true));
        return tn_mul(g, tn_sub(g, b, tn_reduce_min(g, b, 1, &last, true)),
                      tn_add(g, a, tn_reduce_max(g, b, 1, &last, true)));
    }
    }
}

static void test_chains(void **s) {
    (void)s;
    static const int64_t shapes[][3] = {{40, 7, 129}, {3, 200, 64},  {1, 300, 100},
                                        {500, 1, 70}, {2, 1, 20000}, {4, 70, 2000}};
    for (unsigned i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (unsigned which = shapes[i][2] == 2000 ? 13 : 0; which < 15; which++) {
            tn_graph *g = tn_graph_create();
            tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE(shapes[i][0], shapes[i][1], shapes[i][2]));
            tn_set_output(g, "y", chain_of(g, which, x));
            tn_tensor *t = random_tensor(TN_F32, 3, shapes[i]);
            for (int64_t k = 0; k < t->count; k++)
                if (!(fabs(tn_tensor_get_f64(t, k)) < 3))
                    tn_tensor_set_f64(t, k, 1);
            check(1000 + 20 * i + which, g, tn_tensor_object(t), false, true);
        }
}

/* Windows of all kinds, over values among which are NaN, zeros of both signs, and rows of nothing else; channels innermost too. */
static void test_windows(void **s) {
    (void)s;
    for (unsigned round = 0; round < 150; round++) {
        int64_t window[4] = {1, 1}, stride[4] = {1, 1}, dilation[4] = {1, 1};
        int64_t dims[4] = {1 + draw(2), 1 + draw(20), 1 + draw(30), 8 + draw(60)};
        tn_graph *g = tn_graph_create();
        tn_dim lo[4], hi[4];
        for (int i = 0; i < 4; i++) {
            if (i > 1) {
                window[i] = 1 + draw(draw(4) ? 3 : 7);
                stride[i] = 1 + draw(3);
                dilation[i] = 1 + draw(2);
                dims[i] += window[i] * dilation[i];
            }
            lo[i] = tn_dim_const(g, i > 1 ? draw((uint32_t)window[i]) : 0);
            hi[i] = tn_dim_const(g, i > 1 ? draw((uint32_t)window[i]) : 0);
        }
        bool last = draw(2);
        static const char *const kinds[] = {"max", "sum", "min"};
        const char *kind = kinds[draw(5) % 3];
        tn_value x = last ? tn_input(g, "x", TN_F32, TN_SHAPE(dims[0], dims[2], dims[3], dims[1]))
                          : tn_input(g, "x", TN_F32, TN_SHAPE(dims[0], dims[1], dims[2], dims[3]));
        tn_value y = last ? tn_transpose(g, x, (const int[]){0, 3, 1, 2}) : x;
        y = tn_window(g, kind, y, window, stride, dilation, lo, hi);
        if (draw(2))
            y = tn_mul(g, y, tn_scalar_like(g, y, 0.25));
        tn_set_output(g, "y", last ? tn_transpose(g, y, (const int[]){0, 2, 3, 1}) : y);
        int64_t as[4] = {dims[0], last ? dims[2] : dims[1], last ? dims[3] : dims[2], last ? dims[1] : dims[3]};
        tn_tensor *t = random_tensor(TN_F32, 4, as);
        if (draw(2)) /* nothing above 0 */
            for (int64_t k = 0; k < t->count; k++)
                tn_tensor_set_f64(t, k, draw(3) ? -0.0 : draw(9) ? -1 : 0);
        check(2000 + round, g, tn_tensor_object(t), strcmp(kind, "sum") != 0, true);
    }
}

/* Sums whose parts overflow where they do not, and sums that do: along memory and across it. */
static void test_large_sums(void **s) {
    (void)s;
    for (unsigned round = 0; round < 60; round++) {
        const int64_t dims[] = {1 + draw(40), 20 + draw(400)};
        bool across = draw(2), rows = draw(2);
        tn_graph *g = tn_graph_create();
        tn_value x = across ? tn_input(g, "x", TN_F32, TN_SHAPE(dims[1], dims[0]))
                            : tn_input(g, "x", TN_F32, TN_SHAPE(dims[0], dims[1]));
        int axis = across ? 0 : 1;
        tn_value sum = tn_reduce_sum(g, rows ? tn_mul(g, x, tn_scalar_like(g, x, 0.5)) : x, 1, &axis, true);
        tn_set_output(g, "y", rows ? tn_sub(g, x, sum) : sum);
        tn_tensor *t = tn_tensor_create(TN_F32, 2, (const int64_t[]){dims[across ? 1 : 0], dims[across ? 0 : 1]});
        for (int64_t i = 0; i < dims[0]; i++)
            for (int64_t k = 0; k < dims[1]; k++) {
                double large = i % 4 == 3 ? 0 : i % 4 == 2 && k == 17 ? INFINITY : 3e38;
                /* pairs that cancel, in lanes of their own */
                double v = k / 32 * 32 + 31 < dims[1] ? (k / 16 % 2 ? -large : large) : (double)draw(100);
                v = i % 4 == 1 && k / 64 * 64 + 63 < dims[1] ? (k / 32 % 2 ? -large : large) : v;
                tn_tensor_set_f64(t, across ? k * dims[0] + i : i * dims[1] + k, v);
            }
        check(3000 + round, g, tn_tensor_object(t), false, true);
    }
}

/* The same elements reduced along memory and across it: the same bits. */
static void test_layouts(void **s) {
    (void)s;
    static const int64_t sizes[] = {1, 5, 16, 33, 100, 1000};
    for (unsigned i = 0; i < 6; i++)
        for (unsigned j = 0; j < 6; j++) {
            tn_graph *g = tn_graph_create();
            tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE(sizes[i], sizes[j]));
            tn_value y = tn_add(g, tn_transpose(g, x, NULL), tn_scalar_like(g, x, 0)); /* a copy, across */
            tn_value a = tn_reduce_sum(g, x, 1, (const int[]){1}, false),
                     b = tn_reduce_sum(g, y, 1, (const int[]){0}, false);
            tn_set_output(g, "y", tn_equal(g, a, b));
            tn_tensor *t = random_tensor(TN_F32, 2, (const int64_t[]){sizes[i], sizes[j]});
            for (int64_t k = 0; k < t->count; k++)
                if (!(fabs(tn_tensor_get_f64(t, k)) < 3))
                    tn_tensor_set_f64(t, k, 1);
            tn_lower_options o = {.level = 1, .isa = tn_cpu_best(), .kernels = tn_kernels()};
            tn_plan *p = tn_lower(NULL, g, &o);
            assert_non_null(p);
            tn_object *in = tn_tensor_object(t), *got;
            assert_int_equal(tn_execute(p, &(tn_execute_options){0}, &in, &got), TN_OK);
            for (int64_t k = 0; k < sizes[i]; k++)
                assert_true(tn_tensor_get_f64((const tn_tensor *)got, k) == 1);
            tn_object_destroy(got);
            tn_object_destroy(in);
            tn_plan_destroy(p);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_graphs), cmocka_unit_test(test_chains),
                                       cmocka_unit_test(test_windows), cmocka_unit_test(test_large_sums),
                                       cmocka_unit_test(test_layouts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
