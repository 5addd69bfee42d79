/* Folding: caps, budgets, what may not be folded, what computing it answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <tenon/build.h>

#include "support/pass_checks.h"

static char noted[4000];

static void keep_notes(void *ctx, const char *text) {
    (void)ctx;
    size_t used = strlen(noted);
    snprintf(noted + used, sizeof noted - used, "%s\n", text);
}

static tn_value filled(tn_graph *g, int rank, const int64_t *dims, double value) {
    tn_tensor *t = tn_tensor_create_in(g->heap, TN_F32, rank, dims);
    assert_non_null(t);
    for (int64_t i = 0; i < t->count; i++)
        tn_store_f64(TN_F32, t->data, i, value + (double)i);
    tn_value v = tn_constant(g, t);
    tn_tensor_destroy(t);
    return v;
}

/* Folds, and answers the number of nodes left. */
static uint32_t fold(tn_graph *g, tn_pass_context *c) {
    noted[0] = '\0';
    c->log = keep_notes;
    tn_graph *before = tn_graph_clone(g, NULL, NULL);
    if (tn_passes_run(g, c) != TN_OK)
        fail_msg("%s", tn_error_message());
    assert_true(pass_equal(before, g, 2));
    tn_graph_destroy(before);
    tn_pass_context_free(c);
    return tn_graph_count_nodes(g);
}

/* Concat -> Reshape -> Add on constants: three nodes become none; over the cap they stay, and the log says so. */
static void test_the_cap(void **state) {
    (void)state;
    for (int capped = 0; capped < 2; capped++) {
        tn_graph *g = tn_graph_create();
        tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE(6, 4));
        tn_value parts[2] = {filled(g, 1, (const int64_t[]){12}, 0), filled(g, 1, (const int64_t[]){12}, 50)};
        tn_value k = tn_reshape(g, tn_concat(g, 0, 2, parts), TN_SHAPE(6, 4));
        tn_set_output(g, "y", tn_add(g, x, k));
        tn_pass_context c = pass_context(2, "fold,dce");
        c.fold_bytes = capped ? 95 : 96;
        assert_int_equal(fold(g, &c), capped ? 3 : 1);
        assert_true((strstr(noted, "concat") && strstr(noted, "96 bytes, more than the cap of 95")) == capped);
        tn_graph_destroy(g);
    }
}

static void test_the_budget(void **state) {
    (void)state;
    for (int capped = 0; capped < 2; capped++) {
        tn_graph *g = tn_graph_create();
        tn_value a = filled(g, 2, (const int64_t[]){8, 32}, 0), b = filled(g, 2, (const int64_t[]){32, 4}, 1);
        tn_set_output(g, "y", tn_matmul(g, a, b));
        tn_pass_context c = pass_context(2, "fold,dce");
        c.fold_operations = capped ? 1000 : 2000; /* 8 * 32 * 4 and what is read: 1408 */
        assert_int_equal(fold(g, &c), capped ? 1 : 0);
        assert_true((strstr(noted, "operations") != NULL) == capped);
        tn_graph_destroy(g);
    }
}

/* A broadcast scalar stays one; what reads it is folded all the same; a large one keeps its reader from being folded. */
static void test_what_only_repeats(void **state) {
    (void)state;
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE(100));
    tn_dim n = tn_dim_const(g, 100);
    tn_value half = tn_broadcast(g, tn_scalar(g, TN_F32, 0.5), 1, &n), count = tn_iota(g, TN_F32, 1, &n, 0);
    tn_set_output(g, "a", tn_mul(g, x, half));
    tn_set_output(g, "b", tn_add(g, x, tn_mul(g, half, count)));
    tn_pass_context c = pass_context(2, "fold,dce");
    assert_int_equal(fold(g, &c), 3); /* broadcast, mul, add */
    tn_graph_destroy(g);
    g = tn_graph_create();
    n = tn_dim_const(g, 100);
    half = tn_broadcast(g, tn_scalar(g, TN_F32, 0.5), 1, &n);
    tn_set_output(g, "y", tn_reduce_sum(g, half, TN_ALL_AXES, false));
    c = pass_context(2, "fold,dce");
    c.fold_bytes = 399;
    assert_int_equal(fold(g, &c), 2);
    c = pass_context(2, "fold,dce");
    assert_int_equal(fold(g, &c), 0);
    tn_graph_destroy(g);
}

static void test_variables_stay(void **state) {
    (void)state;
    for (int keep = 0; keep < 2; keep++) {
        tn_graph *g = tn_graph_create();
        float one[2] = {1, 2};
        tn_tensor *t = tn_tensor_from_f32(1, (const int64_t[]){2}, one);
        tn_value v = tn_variable(g, "v", t), w = tn_variable(g, "w", t);
        tn_set_output(g, "y", tn_add(g, v, v));
        tn_set_output(g, "z", w);
        tn_set_output(g, "t", v);
        tn_pass_context c = pass_context(2, "fold,cse,dce");
        c.keep_variables = keep != 0;
        assert_int_equal(fold(g, &c), keep);
        assert_int_equal(tn_graph_output(g, 1).id == tn_graph_output(g, 2).id, !keep);
        tn_tensor_destroy(t);
        tn_graph_destroy(g);
    }
}

/* An index out of range is an error of the run, not of preparing it. */
static void test_errors_are_left_to_the_run(void **state) {
    (void)state;
    tn_graph *g = tn_graph_create();
    tn_value table = filled(g, 1, (const int64_t[]){3}, 0);
    tn_set_output(g, "y", tn_gather(g, table, tn_constant_i64(g, 0, 1, (const int64_t[]){7}), 0));
    assert_int_equal(tn_graph_check(g), TN_OK);
    tn_pass_context c = pass_context(2, "fold,dce");
    c.log = keep_notes;
    noted[0] = '\0';
    assert_int_equal(tn_passes_run(g, &c), TN_OK);
    assert_int_equal(tn_error_status(), TN_OK);
    assert_int_equal(tn_graph_count_nodes(g), 1);
    assert_non_null(strstr(noted, "not folded"));
    tn_pass_context_free(&c);
    tn_graph_destroy(g);
}

typedef struct answers {
    tn_status status;
    uint32_t asked;
} answers;

static tn_status answer(void *ctx, const tn_graph *g, tn_node node, tn_object **outputs) {
    answers *a = ctx;
    a->asked++;
    return a->status == TN_OK ? tn_pass_evaluate(NULL, g, node, outputs) : tn_fail(a->status, "as told");
}

static void test_who_computes(void **state) {
    (void)state;
    const struct {
        tn_status says, gives;
        uint32_t left;
    } cases[] = {{TN_OK, TN_OK, 0},
                 {TN_ERR_UNSUPPORTED, TN_OK, 1},
                 {TN_ERR_LIMIT, TN_OK, 1},
                 {TN_ERR_MEMORY, TN_ERR_MEMORY, 1},
                 {TN_ERR_CANCELLED, TN_ERR_CANCELLED, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tn_graph *g = tn_graph_create();
        tn_value k = filled(g, 1, (const int64_t[]){3}, 0);
        tn_set_output(g, "y", tn_add(g, k, k));
        answers a = {.status = cases[i].says};
        tn_pass_context c = pass_context(2, "fold,dce");
        c.evaluate = answer;
        c.evaluate_ctx = &a;
        assert_int_equal(tn_passes_run(g, &c), cases[i].gives);
        assert_int_equal(a.asked, 1);
        assert_int_equal(tn_graph_count_nodes(g), cases[i].left);
        tn_pass_context_free(&c);
        tn_graph_destroy(g);
    }
    /* nobody: only shapes are folded */
    tn_graph *g = tn_graph_create();
    tn_value k = filled(g, 1, (const int64_t[]){3}, 0);
    tn_set_output(g, "y", tn_add(g, k, k));
    tn_set_output(g, "s", tn_shape_of(g, k));
    tn_pass_context c = pass_context(2, "fold,dce");
    c.evaluate = NULL;
    assert_int_equal(fold(g, &c), 1);
    tn_graph_destroy(g);
}

/* The shape of an input whose sizes are bound: the symbol map replaces them everywhere. */
static void test_symbols_bound_to_numbers(void **state) {
    (void)state;
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("N", "M"));
    tn_value s = tn_shape_of(g, x);
    tn_set_output(g, "s", s);
    tn_set_output(g, "y", tn_reshape(g, tn_exp(g, x), TN_SHAPE("M", -1)));
    assert_int_equal(tn_graph_check(g), TN_OK);
    tn_symbol_map map;
    tn_symbol_map_init(&map, NULL);
    tn_dim n = tn_value_dim(g, x, 0), m = tn_value_dim(g, x, 1);
    assert_int_equal(tn_symbol_map_add(g, &map, g->dims.expr.data[n.id].symbol, tn_dim_add(g, m, tn_dim_const(g, 1))),
                     TN_OK);
    assert_int_equal(tn_symbol_map_add(g, &map, g->dims.expr.data[m.id].symbol, tn_dim_const(g, 4)), TN_OK);
    assert_int_equal(tn_symbol_map_apply(g, &map), TN_OK);
    tn_symbol_map_free(&map);
    assert_int_equal(tn_graph_verify(g), TN_OK);
    char text[100];
    assert_string_equal(tn_type_describe(g, tn_value_type(g, x), text, sizeof text), "f32[5, 4]");
    tn_pass_context c = pass_context(2, "fold,dce");
    assert_int_equal(fold(g, &c), 2); /* exp, reshape */
    assert_string_equal(tn_type_describe(g, tn_value_type(g, tn_graph_output(g, 1)), text, sizeof text), "f32[4, 5]");
    tn_graph_destroy(g);
}

/* An if inside an if inside an if, all known, hundreds of nodes: every branch is taken out. */
static void nested(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    int *depth = ctx;
    (void)args;
    if ((*depth)-- > 0)
        tn_if(
            g,
            tn_equal(g, tn_constant_i64(g, 0, 1, (const int64_t[]){1}), tn_constant_i64(g, 0, 1, (const int64_t[]){1})),
            nested, nested, ctx, 1, results);
    else
        results[0] = tn_neg(g, tn_graph_input(g, 0));
}

static void test_nested_conditions(void **state) {
    (void)state;
    tn_graph *g = tn_graph_create();
    tn_input(g, "x", TN_F32, TN_SHAPE("N"));
    int depth = 60;
    tn_value y;
    nested(&depth, g, NULL, &y);
    tn_set_output(g, "y", y);
    if (tn_graph_check(g) != TN_OK)
        fail_msg("%s", tn_error_message());
    tn_pass_context c = pass_context(1, "fold,dce");
    assert_int_equal(fold(g, &c), 1);
    tn_graph_destroy(g);
}

static void test_strings(void **state) {
    (void)state;
    tn_graph *g = tn_graph_create();
    const char *words[] = {"a", "b", "a"};
    tn_value v[3];
    for (int i = 0; i < 3; i++) {
        tn_tensor *t = tn_tensor_create(TN_STRING, 1, (const int64_t[]){1});
        assert_int_equal(tn_tensor_set_string(t, 0, words[i], 1), TN_OK);
        v[i] = tn_constant(g, t);
        tn_tensor_destroy(t);
    }
    tn_set_output(g, "p", tn_equal(g, v[0], v[1]));
    tn_set_output(g, "q", tn_equal(g, v[0], v[2]));
    tn_set_output(g, "r", v[1]);
    tn_set_output(g, "s", v[2]);
    tn_pass_context c = pass_context(2, "cse,fold,dce");
    assert_int_equal(fold(g, &c), 0);
    assert_int_equal(tn_tensor_get_i64(tn_value_constant(g, tn_graph_output(g, 0)), 0), 0);
    assert_int_equal(tn_tensor_get_i64(tn_value_constant(g, tn_graph_output(g, 1)), 0), 1);
    assert_int_not_equal(tn_graph_output(g, 2).id, tn_graph_output(g, 3).id);
    tn_graph_destroy(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_cap),
        cmocka_unit_test(test_the_budget),
        cmocka_unit_test(test_what_only_repeats),
        cmocka_unit_test(test_variables_stay),
        cmocka_unit_test(test_errors_are_left_to_the_run),
        cmocka_unit_test(test_who_computes),
        cmocka_unit_test(test_symbols_bound_to_numbers),
        cmocka_unit_test(test_nested_conditions),
        cmocka_unit_test(test_strings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
