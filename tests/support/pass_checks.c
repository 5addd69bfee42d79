/* Random inputs that fit a graph, and whether two graphs compute the same bits. */
#include "support/pass_checks.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "interp/interp.h"

tn_pass_context pass_context(int level, const char *passes) {
    return (tn_pass_context){
        .level = level, .passes = passes, .just_listed = true, .verify = true, .evaluate = tn_pass_evaluate};
}

void pass_run(tn_graph *graph, int level, const char *passes) {
    tn_pass_context c = pass_context(level, passes);
    tn_status status = tn_passes_run(graph, &c);
    tn_pass_context_free(&c);
    if (status != TN_OK)
        fail_msg("%s: %s", passes, tn_error_message());
}

static uint64_t next(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static void fill(tn_tensor *t, uint64_t *state) {
    static const double edges[] = {0, -0.0, 1, -1, 0.5, 3, -2, 100, 1e-30, 1e30, INFINITY, -INFINITY, NAN};
    for (int64_t i = 0; i < t->count; i++) {
        uint64_t r = next(state);
        if (t->dtype == TN_STRING)
            assert_int_equal(tn_tensor_set_string(t, i, r % 2 ? "yes" : "no", r % 2 ? 3 : 2), TN_OK);
        else if (tn_dtype_is_float((tn_dtype)t->dtype))
            tn_store_f64((tn_dtype)t->dtype, t->data, i, r % 3 ? (double)(r % 2001) / 100 - 10 : edges[r / 3 % 13]);
        else
            tn_store_i64((tn_dtype)t->dtype, t->data, i, (int64_t)(r % 2)); /* safe as an index and as a condition */
    }
}

void pass_inputs(const tn_graph *g, uint64_t seed, tn_object **in) {
    uint64_t state = seed;
    tn_dim_env env;
    assert_true(tn_dim_env_init(&env, NULL, &g->dims));
    for (uint32_t i = 0; i < env.count; i++) {
        int64_t low = g->dims.symbol.data[i].low, high = g->dims.symbol.data[i].high,
                size = (int64_t)(next(&state) % 5);
        env.value[i] = size < low ? low : size > high ? high : size;
        env.bound[i] = 1;
    }
    assert_true(tn_graph_input_count(g) <= PASS_MAX);
    for (uint32_t i = 0; i < tn_graph_input_count(g); i++) {
        tn_value v = tn_graph_input(g, i);
        int64_t dims[TN_MAX_RANK];
        int rank = tn_value_rank(g, v);
        if (rank < 0)
            rank = (int)(next(&state) % 3);
        for (int d = 0; d < rank; d++)
            if (tn_value_rank(g, v) < 0)
                dims[d] = 2;
            else
                assert_true(tn_dim_eval(&g->dims, &env, tn_value_dims(g, v)[d], &dims[d]));
        tn_tensor *t = tn_tensor_create(tn_value_dtype(g, v), rank, dims);
        assert_non_null(t);
        fill(t, &state);
        in[i] = tn_tensor_object(t);
    }
    tn_dim_env_free(&env);
}

void pass_release(uint32_t count, tn_object **objects) {
    for (uint32_t i = 0; i < count; i++) {
        tn_object_destroy(objects[i]);
        objects[i] = NULL;
    }
}

tn_status pass_outputs(const tn_graph *g, const tn_graph *like, tn_object *const *in, tn_object **out) {
    tn_value fed[PASS_MAX], wanted[PASS_MAX];
    tn_object *objects[PASS_MAX];
    uint32_t n = 0, m = tn_graph_output_count(g);
    assert_true(m <= PASS_MAX);
    for (uint32_t i = 0; i < tn_graph_input_count(g); i++) {
        const char *name = tn_value_name(g, tn_graph_input(g, i));
        for (uint32_t k = 0; k < tn_graph_input_count(like); k++)
            if (in[k] && strcmp(tn_value_name(like, tn_graph_input(like, k)), name) == 0) {
                fed[n] = tn_graph_input(g, i);
                objects[n++] = in[k];
            }
    }
    for (uint32_t i = 0; i < m; i++)
        wanted[i] = tn_graph_output(g, i);
    return tn_interp_run(g, NULL, n, fed, objects, m, wanted, out);
}

static bool same_float(tn_dtype dtype, const void *a, const void *b, int64_t i) {
    double x = tn_load_f64(dtype, a, i), y = tn_load_f64(dtype, b, i);
    return (isnan(x) && isnan(y)) || (x == y && signbit(x) == signbit(y));
}

bool pass_same(const tn_object *a, const tn_object *b) {
    if (a->kind != TN_KIND_TENSOR || b->kind != TN_KIND_TENSOR)
        return tn_object_equal(a, b);
    const tn_tensor *x = (const tn_tensor *)a, *y = (const tn_tensor *)b;
    if (x->dtype != y->dtype || x->rank != y->rank || memcmp(x->dims, y->dims, (size_t)x->rank * sizeof *x->dims) != 0)
        return false;
    if (!tn_dtype_is_float((tn_dtype)x->dtype))
        return tn_object_equal(a, b);
    for (int64_t i = 0; i < x->count; i++)
        if (!same_float((tn_dtype)x->dtype, x->data, y->data, i))
            return false;
    return true;
}

bool pass_equal(const tn_graph *before, const tn_graph *after, int rounds) {
    for (int round = 0; round < rounds; round++) {
        uint64_t seed = 77u + (uint64_t)round * 1000003u;
        tn_object *in[PASS_MAX] = {0}, *x[PASS_MAX] = {0}, *y[PASS_MAX] = {0};
        uint32_t outputs = tn_graph_output_count(before);
        pass_inputs(after, seed, in);
        tn_status first = pass_outputs(before, after, in, x);
        if (first != TN_OK && first != TN_ERR_FAILED)
            print_error("seed %llu: does not run before: %s\n", (unsigned long long)seed, tn_error_message());
        tn_status second = pass_outputs(after, after, in, y);
        bool failed_alike = first == TN_ERR_FAILED && second == TN_ERR_FAILED; /* an assertion does not hold */
        bool same = failed_alike || (first == TN_OK && second == TN_OK && tn_graph_output_count(after) == outputs);
        if (first == TN_OK && second != TN_OK)
            print_error("seed %llu: runs before, not after: %s\n", (unsigned long long)seed, tn_error_message());
        for (uint32_t i = 0; same && !failed_alike && i < outputs; i++)
            if (!pass_same(x[i], y[i])) {
                print_error("seed %llu: output %u differs\n", (unsigned long long)seed, i);
                same = false;
            }
        pass_release(PASS_MAX, in);
        pass_release(PASS_MAX, x);
        pass_release(PASS_MAX, y);
        if (!same)
            return false;
    }
    return true;
}
