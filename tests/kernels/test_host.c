/* Host instructions by kernels against the evals of their rows, bit by bit: argmax and argmin, running sums and products, sort, top_k,
   gather_elements, scatter_elements; every dtype, odd sizes, any axis and strides, ties, NaN, zeros of both signs, the least and largest
   numbers; each level, threads. What kernels do not take, and what is wrong, is left to the evals. */
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

static uint64_t state = 20270204;
static uint32_t draw(uint32_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % n;
}

static const tn_dtype dtypes[] = {TN_F32, TN_F64, TN_F16, TN_BF16, TN_I8,  TN_U8,  TN_I16,
                                  TN_U16, TN_I32, TN_U32, TN_I64,  TN_U64, TN_BOOL};
enum { DTYPES = sizeof dtypes / sizeof *dtypes };
static const tn_isa levels[] = {TN_ISA_GENERIC, TN_ISA_AVX2, TN_ISA_AVX512, TN_ISA_NEON};
enum { LEVELS = sizeof levels / sizeof *levels };

/* Elements of a few values (ties), or of any bits; seldom what is odd. */
static void fill(tn_tensor *t, bool few) {
    tn_dtype dtype = (tn_dtype)t->dtype;
    static const double odd[] = {NAN, -0.0, 0.0, INFINITY, -INFINITY, 1e-40, -1e-40, 5e-324};
    for (int64_t i = 0; i < t->count; i++) {
        if (tn_dtype_is_float(dtype))
            tn_store_f64(dtype, t->data, i,
                         draw(12) == 0 ? odd[draw(8)]
                         : few         ? (double)draw(4) - 2
                                       : ((double)draw(2000001) - 1e6) / 1024);
        else if (dtype == TN_BOOL)
            tn_store_i64(dtype, t->data, i, draw(2));
        else
            tn_store_i64(dtype, t->data, i,
                         few ? (int64_t)draw(4) - 2
                             : (int64_t)((uint64_t)draw(UINT32_MAX) << 33 ^ (uint64_t)draw(UINT32_MAX) << 13));
    }
}

/* A tensor, or a view of one whose axes lie in another order in memory. */
static tn_tensor *make(tn_dtype dtype, int rank, const int64_t *dims, bool few) {
    int64_t turned[4], strides[4], step = 1;
    int order[4] = {0, 1, 2, 3};
    bool strided = draw(3) == 0;
    for (int i = rank - 1; i > 0 && strided; i--) {
        int j = (int)draw((uint32_t)i + 1), swap = order[i];
        order[i] = order[j];
        order[j] = swap;
    }
    for (int i = 0; i < rank; i++)
        turned[i] = dims[order[i]];
    tn_tensor *base = tn_tensor_create(dtype, rank, turned);
    fill(base, few);
    for (int i = rank - 1; i >= 0; i--) {
        strides[order[i]] = step;
        step *= turned[i];
    }
    tn_tensor *view = tn_tensor_view(NULL, base, dtype, rank, dims, strides, 0);
    tn_tensor_destroy(base);
    return view;
}

static tn_isa level;
static int taken; /* by kernels */
static tn_status instead(void *ctx, tn_eval *e, bool *done) {
    (void)ctx;
    tn_status status = tn_kernels_host(e, level, done);
    taken += *done;
    return status;
}

static bool same(const tn_tensor *a, const tn_tensor *b) {
    if (a->dtype != b->dtype || a->count != b->count)
        return false;
    size_t size = (size_t)tn_dtype_bits((tn_dtype)a->dtype) / 8;
    for (int64_t i = 0; i < a->count; i++) {
        const char *x = (const char *)a->data + (size_t)i * size, *y = (const char *)b->data + (size_t)i * size;
        if (memcmp(x, y, size) == 0)
            continue;
        if (!tn_dtype_is_float((tn_dtype)a->dtype) || !isnan(tn_tensor_get_f64(a, i)) ||
            !isnan(tn_tensor_get_f64(b, i)))
            return false;
    }
    return true;
}

/* Runs a graph of one node by eval and by kernels. */
static void check(tn_graph *g, uint32_t inputs, tn_object **in, bool takes, const char *what) {
    uint32_t outputs = tn_graph_output_count(g);
    tn_value from[3], to[2];
    tn_object *want[2] = {NULL}, *got[2];
    tn_pool *pool = tn_pool_create(NULL, 3);
    if (tn_graph_check(g) != TN_OK)
        fail_msg("%s: %s", what, tn_error_message());
    for (uint32_t i = 0; i < inputs; i++)
        from[i] = tn_graph_input(g, i);
    for (uint32_t i = 0; i < outputs; i++)
        to[i] = tn_graph_output(g, i);
    assert_int_equal(tn_interp_run(g, NULL, inputs, from, in, outputs, to, want), TN_OK);
    for (int l = 0; l < 2 * LEVELS; l++) {
        level = levels[l / 2];
        if (!tn_cpu_has(level))
            continue;
        taken = 0;
        tn_interp_options o = {.instead = instead, .pool = l % 2 ? pool : NULL};
        assert_int_equal(tn_interp_run(g, &o, inputs, from, in, outputs, to, got), TN_OK);
        if (takes != (taken == 1))
            fail_msg("%s: %s by a kernel", what, taken ? "run" : "not run");
        for (uint32_t i = 0; i < outputs; i++) {
            if (!same((tn_tensor *)want[i], (tn_tensor *)got[i]))
                fail_msg("%s, level %s, %d threads: other elements of output %u", what, tn_isa_name(level),
                         l % 2 ? 3 : 1, i);
            tn_object_destroy(got[i]);
        }
    }
    for (uint32_t i = 0; i < outputs; i++)
        tn_object_destroy(want[i]);
    for (uint32_t i = 0; i < inputs; i++)
        tn_object_destroy(in[i]);
    tn_pool_destroy(pool);
    tn_graph_destroy(g);
}

/* Every twentieth is enough work for several threads. */
static int shape(int64_t *dims, unsigned round) {
    int64_t most = round % 20 == 7 ? 300000 : 9000;
    static const int64_t sizes[] = {1, 2, 3, 5, 8, 17, 31, 33, 64, 65, 100, 300, 700, 2100};
    int rank = 1 + (int)draw(3);
    int64_t count = 1;
    for (int i = 0; i < rank; i++) {
        do
            dims[i] = sizes[draw(14)];
        while (count * dims[i] > most && dims[i] > 1);
        count *= dims[i];
    }
    return rank;
}

static tn_value input(tn_graph *g, const char *name, tn_dtype dtype, int rank, const int64_t *dims) {
    tn_shape s = {.rank = rank};
    for (int i = 0; i < rank; i++)
        s.item[i].size = dims[i];
    return tn_input(g, name, dtype, s);
}

static void test_extremes(void **s) {
    (void)s;
    for (unsigned round = 0; round < 600; round++) {
        int64_t dims[4];
        int rank = shape(dims, round), axis = (int)draw((uint32_t)rank);
        tn_dtype dtype = dtypes[round % DTYPES];
        bool least = draw(2), last = draw(2), few = draw(2);
        char what[120];
        snprintf(what, sizeof what, "round %u: arg%s of %s, axis %d%s", round, least ? "min" : "max",
                 tn_dtype_name(dtype), axis, last ? ", the last" : "");
        tn_graph *g = tn_graph_create();
        tn_value x = input(g, "x", dtype, rank, dims);
        const tn_attr attrs[] = {TN_A_INT("axis", axis), TN_A_INT("keepdims", draw(2)), TN_A_INT("select_last", last)};
        tn_set_output(g, "y", tn_graph_add(g, least ? "argmin" : "argmax", 1, &x, 3, attrs));
        tn_tensor *t = make(dtype, rank, dims, few);
        if (round % 40 == 0 && t->contiguous) /* nothing but the least, nothing but NaN */
            for (int64_t i = 0; i < t->count; i++)
                tn_tensor_set_f64(
                    t, i, tn_dtype_is_float(dtype) ? (draw(2) ? NAN : -INFINITY) : (double)tn_dtype_min_i64(dtype));
        tn_object *in = tn_tensor_object(t);
        check(g, 1, &in, true, what);
    }
}

static void test_running(void **s) {
    (void)s;
    for (unsigned round = 0; round < 400; round++) {
        int64_t dims[4];
        int rank = shape(dims, round), axis = (int)draw((uint32_t)rank);
        tn_dtype dtype = dtypes[round % (DTYPES - 1)];
        static const char *const kinds[] = {"cumsum", "cumprod", "cummax", "cummin"};
        int kind = (int)draw(8);
        kind = kind < 4 ? kind : 0;
        bool exclusive = draw(2), reverse = draw(2), few = draw(2);
        char what[120];
        snprintf(what, sizeof what, "round %u: %s of %s, axis %d", round, kinds[kind], tn_dtype_name(dtype), axis);
        int64_t lanes = 1;
        for (int i = 0; i < rank; i++)
            lanes *= i == axis ? 1 : dims[i];
        tn_graph *g = tn_graph_create();
        tn_value x = input(g, "x", dtype, rank, dims);
        const tn_attr attrs[] = {TN_A_INT("axis", axis), TN_A_INT("exclusive", exclusive),
                                 TN_A_INT("reverse", reverse)};
        tn_set_output(g, "y", tn_graph_add(g, kinds[kind], 1, &x, 3, attrs));
        tn_object *in = tn_tensor_object(make(dtype, rank, dims, few));
        check(g, 1, &in, kind < 2 && lanes >= 4 && dtype != TN_F16 && dtype != TN_BF16, what);
    }
}

static void test_order(void **s) {
    (void)s;
    for (unsigned round = 0; round < 500; round++) {
        int64_t dims[4];
        int rank = shape(dims, round), axis = (int)draw((uint32_t)rank);
        tn_dtype dtype = dtypes[round % DTYPES];
        bool top = draw(2), largest = draw(2), few = draw(3) == 0;
        static const int64_t wanted[] = {1, 2, 8, 16, 17, 30, 100};
        int64_t k = draw(2) ? wanted[draw(7)] : draw((uint32_t)dims[axis]) + 1;
        k = k < dims[axis] ? k : dims[axis];
        char what[160];
        snprintf(what, sizeof what, "round %u: %s of %s, axis %d of %d, %d wanted, %s first", round,
                 top ? "top_k" : "sort", tn_dtype_name(dtype), axis, (int)dims[axis], (int)k,
                 largest ? "largest" : "smallest");
        tn_graph *g = tn_graph_create();
        tn_value x = input(g, "x", dtype, rank, dims);
        tn_dim size = tn_dim_const(g, k);
        const tn_attr by_top[] = {TN_A_INT("axis", axis), TN_A_INT("largest", largest), TN_A_DIMS("k", 1, &size)};
        const tn_attr by_sort[] = {TN_A_INT("axis", axis), TN_A_INT("descending", largest)};
        tn_node node =
            tn_graph_add_node(g, &(tn_node_desc){.op = tn_op_find(g->ops, top ? "top_k" : "sort", top ? 5 : 4),
                                                 .input_count = 1,
                                                 .inputs = &x,
                                                 .attr_count = top ? 3 : 2,
                                                 .attrs = top ? by_top : by_sort});
        tn_set_output(g, "y", tn_node_output(g, node, 0));
        tn_set_output(g, "at", tn_node_output(g, node, 1));
        tn_object *in = tn_tensor_object(make(dtype, rank, dims, few));
        check(g, 1, &in, true, what);
    }
}

static const tn_dtype moved[] = {TN_U8, TN_BOOL, TN_F16, TN_F32, TN_I32, TN_F64, TN_C64, TN_C128};

/* Elements that only move. */
static tn_tensor *any(tn_dtype dtype, int rank, const int64_t *dims) {
    if (dtype != TN_C64 && dtype != TN_C128)
        return make(dtype, rank, dims, false);
    tn_tensor *t = tn_tensor_create(dtype, rank, dims);
    for (size_t i = 0; i < tn_tensor_bytes(t); i++)
        ((uint8_t *)t->data)[i] = (uint8_t)draw(256);
    return t;
}

/* Indices that name elements of an axis of n, some counted from the end; one of them is out of range. */
static tn_tensor *indices_of(int rank, const int64_t *dims, int64_t n, bool bad) {
    tn_tensor *t = make(draw(2) ? TN_I64 : TN_I32, rank, dims, true), *flat = tn_tensor_copy(t);
    tn_tensor_destroy(t);
    for (int64_t i = 0; i < flat->count; i++)
        tn_store_i64((tn_dtype)flat->dtype, flat->data, i, (int64_t)draw((uint32_t)(2 * n)) - n);
    if (bad)
        tn_store_i64((tn_dtype)flat->dtype, flat->data, draw((uint32_t)flat->count),
                     draw(2)   ? n
                     : draw(2) ? -n - 1
                               : INT32_MAX);
    return flat;
}

static void test_elements(void **s) {
    (void)s;
    for (unsigned round = 0; round < 500; round++) {
        int64_t dims[4], named[4];
        int rank = shape(dims, round), axis = (int)draw((uint32_t)rank);
        tn_dtype dtype = moved[round % 8];
        bool scatter = draw(2), adds = scatter && dtype == TN_F32 && draw(3) == 0;
        for (int i = 0; i < rank; i++)
            named[i] = i == axis ? 1 + draw(round % 20 == 7 ? 900 : 80) : 1 + draw((uint32_t)dims[i]);
        if (scatter && round % 20 == 8) { /* every element is put into many times, and the last time counts */
            rank = 2;
            axis = 0;
            dims[0] = 3;
            named[0] = 4000;
            dims[1] = named[1] = 64;
        }
        char what[120];
        snprintf(what, sizeof what, "round %u: %s_elements of %s, axis %d", round, scatter ? "scatter" : "gather",
                 tn_dtype_name(dtype), axis);
        tn_tensor *index = indices_of(rank, named, dims[axis], false);
        tn_graph *g = tn_graph_create();
        tn_value in[3] = {input(g, "x", dtype, rank, dims), input(g, "at", (tn_dtype)index->dtype, rank, named)};
        if (scatter)
            in[2] = input(g, "u", dtype, rank, named);
        const tn_attr attrs[] = {TN_A_INT("axis", axis), TN_A_STRING("reduction", adds ? "add" : "none", adds ? 3 : 4)};
        tn_set_output(g, "y",
                      scatter ? tn_graph_add(g, "scatter_elements", 3, in, 2, attrs)
                              : tn_graph_add(g, "gather_elements", 2, in, 1, attrs));
        tn_object *objects[3] = {tn_tensor_object(any(dtype, rank, dims)), tn_tensor_object(index),
                                 scatter ? tn_tensor_object(any(dtype, rank, named)) : NULL};
        check(g, scatter ? 3 : 2, objects, !adds, what);
    }
}

/* An index out of range is found by the kernel, and named by the eval. */
static void test_bad_indices(void **s) {
    (void)s;
    level = tn_cpu_best();
    for (unsigned round = 0; round < 60; round++) {
        int64_t dims[2] = {1 + draw(50), 1 + draw(600)};
        int axis = (int)draw(2);
        bool scatter = draw(2);
        tn_tensor *index = indices_of(2, dims, dims[axis], true);
        tn_graph *g = tn_graph_create();
        tn_value in[3] = {input(g, "x", TN_F32, 2, dims), input(g, "at", (tn_dtype)index->dtype, 2, dims)}, y;
        if (scatter)
            in[2] = input(g, "u", TN_F32, 2, dims);
        const tn_attr attr = TN_A_INT("axis", axis);
        y = scatter ? tn_graph_add(g, "scatter_elements", 3, in, 1, &attr)
                    : tn_graph_add(g, "gather_elements", 2, in, 1, &attr);
        tn_set_output(g, "y", y);
        assert_int_equal(tn_graph_check(g), TN_OK);
        tn_object *objects[3] = {tn_tensor_object(make(TN_F32, 2, dims, true)), tn_tensor_object(index),
                                 tn_tensor_object(make(TN_F32, 2, dims, true))},
                  *got = NULL;
        taken = 0;
        tn_value to = tn_graph_output(g, 0);
        tn_interp_options o = {.instead = instead};
        assert_int_equal(tn_interp_run(g, &o, scatter ? 3 : 2, in, objects, 1, &to, &got), TN_ERR_INPUT);
        assert_non_null(strstr(tn_error_message(), "out of range"));
        assert_int_equal(taken, 0);
        assert_null(got);
        for (int i = 0; i < 3; i++)
            tn_object_destroy(objects[i]);
        tn_graph_destroy(g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_extremes), cmocka_unit_test(test_running),     cmocka_unit_test(test_order),
        cmocka_unit_test(test_elements), cmocka_unit_test(test_bad_indices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
