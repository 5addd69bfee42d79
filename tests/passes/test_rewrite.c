/* Rewrites of a user's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <tenon/build.h>

#include "support/pass_checks.h"

static tn_status relu_to_gelu(tn_rewriter *r, tn_node n) {
    tn_graph *g = tn_rewriter_graph(r);
    return tn_rewrite_replace(r, n, tn_gelu(g, tn_node_input(g, n, 0)));
}

static tn_status gelu_to_relu(tn_rewriter *r, tn_node n) {
    tn_graph *g = tn_rewriter_graph(r);
    return tn_rewrite_replace(r, n, tn_relu(g, tn_node_input(g, n, 0)));
}

static uint32_t count_op(const tn_graph *g, const char *name) {
    uint32_t count = 0;
    for (uint32_t i = 1; i < g->node.len; i++)
        count += g->node.data[i].op && strcmp(g->node.data[i].op->name, name) == 0;
    return count;
}

static void body(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)args;
    results[0] = tn_relu(g, *(tn_value *)ctx);
}

static tn_graph *network(void) {
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("N", 3)), c = tn_input(g, "c", TN_BOOL, TN_SCALAR), y;
    assert_int_equal(tn_if(g, c, body, body, &x, 1, &y), TN_OK);
    tn_set_output(g, "y", tn_relu(g, tn_neg(g, tn_relu(g, y))));
    assert_int_equal(tn_graph_check(g), TN_OK);
    return g;
}

static void test_everywhere_also_in_bodies(void **state) {
    (void)state;
    const tn_rewrite rows[] = {{.name = "relu-to-gelu", .root = "relu", .apply = relu_to_gelu}};
    uint64_t sites = 99;
    tn_graph *g = network();
    assert_int_equal(tn_rewrite_apply(g, 1, rows, &sites), TN_OK);
    assert_int_equal(sites, 4);
    assert_int_equal(count_op(g, "relu"), 0);
    assert_int_equal(count_op(g, "gelu"), 4);
    assert_int_equal(tn_graph_verify(g), TN_OK);
    assert_int_equal(tn_rewrite_apply(g, 1, rows, NULL), TN_OK);
    assert_int_equal(tn_rewrite_apply(g, 0, NULL, &sites), TN_OK);
    assert_int_equal(sites, 0);
    tn_graph_destroy(g);
    /* a rewrite that changes values is not for -O1; disabled by name it is not for -O2 */
    const struct {
        tn_level level;
        const char *disable;
        uint32_t left;
    } cases[] = {{TN_LEVEL_1, NULL, 3}, {TN_LEVEL_2, NULL, 0}, {TN_LEVEL_2, "relu-to-gelu", 3}, {TN_LEVEL_0, NULL, 4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        g = network();
        assert_int_equal(
            tn_graph_optimize(g, TN_OPTIONS(tn_optimize_options, .level = cases[i].level, .disable = cases[i].disable,
                                            .keep_composites = true, .rewrites = rows, .rewrite_count = 1)),
            TN_OK);
        assert_int_equal(count_op(g, "relu"), cases[i].level == TN_LEVEL_0 ? 4 : cases[i].left + (cases[i].left != 0));
        tn_graph_destroy(g);
    }
}

/* exp(log(x)) -> x, x + x -> 2 * x, where the inner node is used once */
static bool inner_used_once(const tn_graph *g, tn_node n, void *user) {
    (*(uint32_t *)user)++;
    return tn_value_use_count(g, tn_node_input(g, n, 0)) == 1;
}

static tn_status exp_of_log(tn_rewriter *r, tn_node n) {
    tn_graph *g = tn_rewriter_graph(r);
    tn_node log = tn_value_producer(g, tn_node_input(g, n, 0));
    if (!log.id || strcmp(tn_node_op_name(g, log), "log") != 0)
        return tn_rewrite_near_miss(r, n, "its input is no logarithm");
    assert_ptr_equal(tn_rewriter_user(r), tn_rewriter_user(r));
    return tn_rewrite_replace(r, n, tn_abs(g, tn_node_input(g, log, 0)));
}

static void keep_note(void *ctx, const char *text) {
    snprintf(ctx, 300, "%s", text);
}

static void test_conditions_origins_names_and_near_misses(void **state) {
    (void)state;
    uint32_t asked = 0;
    const tn_rewrite rows[] = {
        {.name = "exp-log", .root = "exp", .condition = inner_used_once, .apply = exp_of_log, .user = &asked}};
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("N"));
    tn_value log = tn_log(g, x);
    tn_value y = tn_exp(g, log);
    int line = __LINE__ - 1;
    tn_value_set_name(g, y, "result");
    tn_node_set_role(g, tn_value_producer(g, y), TN_ROLE_GRADIENT);
    tn_set_output(g, "y", y);
    tn_set_output(g, "z", tn_exp(g, tn_neg(g, x)));
    char note[300] = "";
    assert_int_equal(tn_graph_optimize(g, TN_OPTIONS(tn_optimize_options, .passes = "rewrites", .rewrites = rows,
                                                     .rewrite_count = 1, .log = keep_note, .log_user = note)),
                     TN_OK);
    assert_true(asked >= 2);
    tn_node made = tn_value_producer(g, tn_graph_output(g, 0));
    assert_string_equal(tn_node_op_name(g, made), "abs");
    assert_int_equal(tn_node_role(g, made), TN_ROLE_GRADIENT);
    assert_string_equal(tn_value_name(g, tn_graph_output(g, 0)), "result");
    assert_int_equal(tn_node_origin_count(g, made), 2); /* where exp and log stood */
    char text[200], wanted[40];
    snprintf(wanted, sizeof wanted, "test_rewrite.c:%d", line);
    bool found = false;
    for (uint32_t i = 0; i < 2; i++)
        found = found || strstr(tn_node_origin(g, made, i, text, sizeof text), wanted);
    assert_true(found);
    assert_int_equal(count_op(g, "log"), 0);
    assert_non_null(strstr(note, "exp-log did not fire: its input is no logarithm"));
    tn_graph_destroy(g);
}

static tn_status builds_in_vain(tn_rewriter *r, tn_node n) {
    tn_graph *g = tn_rewriter_graph(r);
    tn_exp(g, tn_neg(g, tn_node_input(g, n, 0)));
    return TN_OK;
}

static tn_status wrong_shape(tn_rewriter *r, tn_node n) {
    tn_graph *g = tn_rewriter_graph(r);
    return tn_rewrite_replace(r, n, tn_reduce_sum(g, tn_node_input(g, n, 0), TN_ALL_AXES, false));
}

static tn_status wrong_building(tn_rewriter *r, tn_node n) {
    tn_graph *g = tn_rewriter_graph(r);
    return tn_rewrite_replace(r, n, tn_transpose(g, tn_node_input(g, n, 0), (const int[]){5, 5}));
}

static tn_status null_value(tn_rewriter *r, tn_node n) {
    return tn_rewrite_replace(r, n, (tn_value){0});
}

static tn_status later_value(tn_rewriter *r, tn_node n) {
    tn_graph *g = tn_rewriter_graph(r);
    return tn_rewrite_replace(r, n, tn_node_output(g, tn_value_first_use(g, tn_node_output(g, n, 0)).node, 0));
}

static tn_status refuses(tn_rewriter *r, tn_node n) {
    (void)r, (void)n;
    return TN_ERR_CANCELLED;
}

static tn_graph *chain(void) {
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE(2, 2));
    tn_set_output(g, "y", tn_neg(g, tn_abs(g, x)));
    return g;
}

static void expect_failure(tn_status (*apply)(tn_rewriter *, tn_node), tn_status status, const char *what,
                           bool usable) {
    const tn_rewrite rows[] = {{.name = "bad", .root = "abs", .apply = apply}};
    tn_graph *g = chain();
    uint64_t sites = 1;
    assert_int_equal(tn_rewrite_apply(g, 1, rows, &sites), status);
    assert_int_equal(sites, 0);
    assert_non_null(strstr(tn_error_message(), what));
    assert_int_equal(tn_graph_check(g) == TN_OK, usable);
    if (usable) {
        assert_int_equal(tn_graph_verify(g), TN_OK);
        assert_int_equal(count_op(g, "abs"), 1);
    }
    tn_graph_destroy(g);
}

static void test_what_goes_wrong(void **state) {
    (void)state;
    expect_failure(wrong_shape, TN_ERR_MODEL, "rewrite 'bad' replaces", true);
    expect_failure(wrong_building, TN_ERR_USAGE, "transpose", false);
    expect_failure(null_value, TN_ERR_USAGE, "null", true);
    expect_failure(later_value, TN_ERR_USAGE, "not defined before", true);
    tn_fail(TN_ERR_CANCELLED, "enough");
    expect_failure(refuses, TN_ERR_CANCELLED, "in rewrite 'bad'", true);
    const tn_rewrite vain[] = {{.name = "vain", .root = "abs", .apply = builds_in_vain}};
    tn_graph *g = chain();
    uint64_t sites;
    assert_int_equal(tn_rewrite_apply(g, 1, vain, &sites), TN_OK);
    assert_int_equal(sites, 0);
    assert_int_equal(tn_graph_count_nodes(g), 2);
    const tn_rewrite rows[][2] = {
        {{.name = "a", .apply = builds_in_vain}, {.name = "a", .apply = builds_in_vain}},
        {{.name = "", .apply = builds_in_vain}, {.name = "b", .apply = builds_in_vain}},
        {{.name = "a"}, {.name = "b", .apply = builds_in_vain}},
        {{.name = "a", .root = "rellu", .apply = builds_in_vain}, {.name = "b", .apply = builds_in_vain}}};
    const char *what[] = {"two rewrites are called 'a'", "no name", "no function", "there is no operator 'rellu'"};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(tn_rewrite_apply(g, 2, rows[i], NULL), TN_ERR_USAGE);
        assert_non_null(strstr(tn_error_what(), what[i]));
    }
    assert_non_null(strstr(tn_error_hint(), "'relu'"));
    const tn_rewrite onnx[] = {{.name = "a", .root = "onnx.Relu", .apply = builds_in_vain}};
    assert_int_equal(tn_rewrite_apply(g, 1, onnx, NULL), TN_OK); /* a graph built in C has none */
    assert_int_equal(tn_rewrite_apply(g, 1, NULL, NULL), TN_ERR_USAGE);
    assert_int_equal(tn_rewrite_apply(NULL, 0, NULL, NULL), TN_ERR_USAGE);
    tn_graph_destroy(g);
}

static void test_endless_rewrites_are_stopped(void **state) {
    (void)state;
    const tn_rewrite rows[] = {{.name = "there", .root = "relu", .apply = relu_to_gelu},
                               {.name = "back", .root = "gelu", .apply = gelu_to_relu}};
    tn_graph *g = network();
    uint64_t sites;
    assert_int_equal(tn_rewrite_apply(g, 2, rows, &sites), TN_ERR_LIMIT);
    assert_true(sites > 1000);
    assert_int_equal(tn_graph_check(g), TN_OK);
    assert_int_equal(tn_graph_verify(g), TN_OK);
    assert_int_equal(count_op(g, "relu") + count_op(g, "gelu"), 4);
    tn_graph_destroy(g);
}

/* The two results of an if, one replaced. */
static tn_status first_result(tn_rewriter *r, tn_node n) {
    tn_graph *g = tn_rewriter_graph(r);
    if (tn_value_use_count(g, tn_node_output(g, n, 0)) == 0)
        return TN_OK;
    assert_int_equal(tn_rewrite_replace(r, n, tn_graph_input(g, 1)), TN_ERR_USAGE); /* two outputs */
    assert_int_equal(tn_rewrite_replace_output(r, n, 7, tn_graph_input(g, 1)), TN_ERR_USAGE);
    return tn_rewrite_replace_output(r, n, 0, tn_graph_input(g, 1));
}

static void two_results(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)args;
    results[0] = *(tn_value *)ctx;
    results[1] = tn_exp(g, results[0]);
}

static void test_one_of_several_outputs(void **state) {
    (void)state;
    const tn_rewrite rows[] = {{.name = "first", .root = "if", .apply = first_result}};
    tn_graph *g = tn_graph_create();
    tn_value c = tn_input(g, "c", TN_BOOL, TN_SCALAR), x = tn_input(g, "x", TN_F32, TN_SHAPE(2)), y[2];
    tn_if(g, c, two_results, two_results, &x, 2, y);
    tn_set_output(g, "a", y[0]);
    tn_set_output(g, "b", y[1]);
    uint64_t sites;
    assert_int_equal(tn_rewrite_apply(g, 1, rows, &sites), TN_OK);
    assert_int_equal(sites, 1);
    assert_int_equal(tn_graph_output(g, 0).id, x.id);
    assert_int_equal(tn_graph_output(g, 1).id, y[1].id);
    assert_int_equal(tn_graph_verify(g), TN_OK);
    tn_graph_destroy(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_everywhere_also_in_bodies),
        cmocka_unit_test(test_conditions_origins_names_and_near_misses),
        cmocka_unit_test(test_what_goes_wrong),
        cmocka_unit_test(test_endless_rewrites_are_stopped),
        cmocka_unit_test(test_one_of_several_outputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
