/* Operators of users in graphs built here: on both back ends, through the passes, in the text form; rows, schemas and callbacks
   that are wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "ir/text.h"
#include "support/custom_ops.h"
#include <tenon/tenon.h>

/* Takes the graph. */
static void expect_graph(tn_graph *g, const char *wanted) {
    if (tn_graph_check(g) != TN_OK || tn_graph_verify(g) != TN_OK)
        fail_msg("%s", tn_error_message());
    tn_model *model = tn_model_from_graph(g, NULL);
    custom_expect(model, wanted);
    tn_model_destroy(model);
    tn_graph_destroy(g);
}

static tn_value x_of(tn_graph *g) {
    return tn_input(g, "x", TN_F32, TN_SHAPE("N", 2));
}

#define AFFINE(A, B)                             \
    2, (const tn_attribute[]) {                  \
        TN_SET_FLOAT("a", A), TN_SET_INT("b", B) \
    }

/* --- graphs built here ------------------------------------------------------------------------------------------------------------ */

static void test_built(void **state) {
    (void)state;
    tn_op_set *ops = custom_set(NULL);
    assert_non_null(ops);
    tn_graph *g = tn_graph_create_using(NULL, ops);
    tn_value x = x_of(g);
    tn_value y = tn_custom(g, "com.example.Affine.1", 1, &x, 0, NULL);
    assert_int_equal(y.id, 0);
    custom_expect_error(tn_graph_check(g), TN_ERR_USAGE, "com.example.Affine.1");
    assert_non_null(strstr(tn_error_message(), "test_custom.c"));
    tn_graph_destroy(g);

    g = tn_graph_create_using(NULL, ops);
    x = x_of(g);
    y = tn_custom(g, "com.example.Affine", 1, &x, AFFINE(2, 0)); /* the newest */
    tn_set_output(g, "y", y);
    assert_int_equal(tn_value_rank(g, y), 2);
    expect_graph(g, "1001 1002 1003 1004");

    /* between primitives that fuse, on a transposed value */
    g = tn_graph_create_using(NULL, ops);
    x = tn_transpose(g, tn_mul(g, x_of(g), tn_scalar(g, TN_F32, 2)), NULL);
    y = tn_custom(g, "ai.onnx.NotInTheStandard", 1, &x, 0, NULL);
    tn_set_output(g, "y", tn_neg(g, y));
    expect_graph(g, "-1002 -1006 -1004 -1008");

    g = tn_graph_create_using(NULL, ops);
    x = tn_transpose(g, x_of(g), NULL);
    y = tn_custom(g, "com.example.Same", 1, &x, 0, NULL);
    tn_set_output(g, "y", tn_neg(g, y));
    expect_graph(g, "-1 -3 -2 -4");

    g = tn_graph_create_using(NULL, ops);
    x = tn_sub(g, x_of(g), tn_scalar(g, TN_F32, 2));
    y = tn_custom(g, "com.example.Positive", 1, &x, 0, NULL);
    tn_set_output(g, "y", tn_add(g, y, tn_scalar(g, TN_F32, 5)));
    expect_graph(g, "6 7");

    g = tn_graph_create_using(NULL, ops);
    x = x_of(g);
    tn_value in[3] = {x, {0}, tn_neg(g, x)}, out[2];
    assert_int_equal(tn_custom_outputs(g, "my-own.domain.Sums", 3, in, 0, NULL, 2, out), TN_OK);
    tn_set_output(g, "y", out[0]);
    tn_set_output(g, "count", out[1]);
    expect_graph(g, "10 -10");
    tn_op_set_destroy(ops);
}

/* Equal nodes are one; without a use none; an effect stays. */
static void test_passes(void **state) {
    (void)state;
    tn_op_set *ops = custom_set(NULL);
    tn_graph *g = tn_graph_create_using(NULL, ops);
    tn_value x = x_of(g);
    tn_value a = tn_custom(g, "com.example.Affine", 1, &x, AFFINE(3, 1));
    tn_value b = tn_custom(g, "com.example.Affine", 1, &x, AFFINE(3, 1));
    (void)tn_custom(g, "com.example.Affine", 1, &x, AFFINE(4, 1));
    (void)tn_custom(g, "com.example.Effect", 1, &x, AFFINE(4, 1));
    tn_set_output(g, "y", tn_add(g, a, b));
    assert_int_equal(tn_graph_check(g), TN_OK);
    assert_int_equal(tn_graph_optimize(g, NULL), TN_OK);
    uint32_t affine = 0, effects = 0;
    for (tn_node n = tn_region_first(g, tn_graph_region(g)); n.id; n = tn_node_next(g, n)) {
        affine += strncmp(tn_node_op_name(g, n), "com.example.Affine", 18) == 0;
        effects += strcmp(tn_node_op_name(g, n), "com.example.Effect") == 0;
    }
    assert_int_equal(affine, 1);
    assert_int_equal(effects, 1);
    custom_calls = 0;
    expect_graph(g, "2002 2004 2006 2008");
    assert_int_equal(custom_calls, 2); /* once on each back end */
    tn_op_set_destroy(ops);
}

static void test_text(void **state) {
    (void)state;
    tn_op_set *ops = custom_set(NULL);
    tn_graph *g = tn_graph_create_using(NULL, ops);
    tn_value x = x_of(g), out[2];
    x = tn_custom(g, "com.example.Affine", 1, &x, AFFINE(0.1, -3));
    tn_custom_outputs(g, "my-own.domain.Sums", 1, &x, 0, NULL, 2, out);
    tn_set_output(g, "y", out[0]);
    assert_int_equal(tn_graph_check(g), TN_OK);
    char *text = tn_graph_print(g);
    tn_graph *again = tn_graph_parse_using(NULL, ops, text, strlen(text));
    if (!again || !tn_graph_equal(g, again))
        fail_msg("%s\n%s", tn_error_message(), text);
    assert_null(tn_graph_parse(NULL, text, strlen(text)));
    custom_expect_error(tn_error_status(), TN_ERR_UNSUPPORTED, "com.example.Affine.5");
    tn_model *model = tn_model_load_memory(text, strlen(text), TN_OPTIONS(tn_model_options, .ops = ops));
    custom_expect(model, "4010");
    tn_model_destroy(model);
    tn_graph_free_text(g, text);
    tn_graph_destroy(again);
    tn_graph_destroy(g);
    tn_op_set_destroy(ops);
}

/* --- what is wrong ------------------------------------------------------------------------------------------------------------------ */

static void test_bad_rows(void **state) {
    (void)state;
    static const tn_attribute_spec twice[] = {
        {.name = "a", .kind = TN_ATTRIBUTE_INT}, {.name = "a", .kind = TN_ATTRIBUTE_INT}, {0}};
    static const tn_attribute_spec kind[] = {{.name = "a"}, {0}};
    static const tn_attribute_spec ours[] = {{.name = "__a", .kind = TN_ATTRIBUTE_INT}, {0}};
    const struct {
        tn_custom_op row;
        const char *says;
    } bad[] = {
        {{.domain = NULL, .name = "A", .eval = custom_affine_eval}, "domain"},
        {{.domain = "", .name = "A", .eval = custom_affine_eval}, "domain"},
        {{.domain = ".a", .name = "A", .eval = custom_affine_eval}, "domain"},
        {{.domain = "a b", .name = "A", .eval = custom_affine_eval}, "domain"},
        {{.domain = "onnx", .name = "A", .eval = custom_affine_eval}, "taken"},
        {{.domain = "onnx.ml", .name = "A", .eval = custom_affine_eval}, "taken"},
        {{.domain = "d", .name = "", .eval = custom_affine_eval}, "name"},
        {{.domain = "d", .name = "a.b", .eval = custom_affine_eval}, "name"},
        {{.domain = "d", .name = "1", .eval = custom_affine_eval}, "name"},
        {{.domain = "d", .name = "A"}, "no eval"},
        {{.domain = "d", .name = "A", .eval = custom_affine_eval, .min_inputs = 2, .max_inputs = 1}, "inputs"},
        {{.domain = "d", .name = "A", .eval = custom_affine_eval, .min_inputs = 1 << 20, .max_inputs = -1}, "inputs"},
        {{.domain = "d", .name = "A", .eval = custom_affine_eval, .min_outputs = -1}, "outputs"},
        {{.domain = "d", .name = "A", .eval = custom_affine_eval, .since = 4, .until = 3}, "range"},
        {{.domain = "d", .name = "A", .eval = custom_affine_eval, .flags = 1u << 20}, "flag"},
        {{.domain = "d", .name = "A", .eval = custom_affine_eval, .attributes = twice}, "twice"},
        {{.domain = "d", .name = "A", .eval = custom_affine_eval, .attributes = kind}, "kind"},
        {{.domain = "d", .name = "A", .eval = custom_affine_eval, .attributes = ours}, "__a"},
        {{.domain = "com.example", .name = "Affine", .eval = custom_affine_eval}, "already"},
        {{.domain = "com.example", .name = "Affine", .eval = custom_affine_eval, .since = 2, .until = 2}, "already"},
        {{.domain = "com.example", .name = "Affine", .eval = custom_affine_eval, .since = 6}, "already"},
    };
    tn_op_set *ops = custom_set(NULL);
    uint32_t count = tn_op_set_count(ops);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tn_custom_op row = bad[i].row;
        row.size = sizeof row;
        custom_expect_error(tn_op_set_add(ops, &row), TN_ERR_USAGE, bad[i].says);
        row.size = 8;
        custom_expect_error(tn_op_set_add(ops, &row), TN_ERR_USAGE, "TN_OPTIONS");
    }
    assert_int_equal(tn_op_set_count(ops), count);
    assert_int_equal(tn_op_set_add(ops, TN_OPTIONS(tn_custom_op, .domain = "com.example", .name = "Affine", .since = 7,
                                                   .eval = custom_affine_eval)),
                     TN_OK);
    tn_graph *g = tn_graph_create_using(NULL, ops);
    custom_expect_error(
        tn_op_set_add(ops, TN_OPTIONS(tn_custom_op, .domain = "d", .name = "Late", .eval = custom_affine_eval)),
        TN_ERR_USAGE, "in use");
    tn_graph_destroy(g);
    tn_op_set_destroy(ops);
    tn_op_set_destroy(NULL);
    custom_expect_error(tn_op_set_add(NULL, NULL), TN_ERR_USAGE, "NULL");
}

static void test_wrong_calls(void **state) {
    (void)state;
    tn_op_set *ops = custom_set(NULL);
    const struct {
        const char *op;
        uint32_t attributes;
        tn_attribute attribute[2];
        tn_status status;
        const char *says;
    } bad[] = {
        {"com.example.None", 0, {{0}}, TN_ERR_USAGE, "tn_graph_create_using"},
        {"add", 0, {{0}}, TN_ERR_USAGE, "no operator 'add'"},
        {"com.example.Affine", 0, {{0}}, TN_ERR_MODEL, "'a' (float) is missing"},
        {"com.example.Affine", 1, {TN_SET_INT("a", 1)}, TN_ERR_MODEL, "of kind int"},
        {"com.example.Affine", 1, {TN_SET_INTS("a", 2, NULL)}, TN_ERR_USAGE, "attribute 0"},
        {"com.example.Affine", 1, {{.name = "a"}}, TN_ERR_USAGE, "attribute 0"},
        {"com.example.Affine", 1, {TN_SET_TENSOR("a", NULL)}, TN_ERR_USAGE, "attribute 0"},
        {"com.example.Wrong", 1, {TN_SET_STRING("how", "null-dim")}, TN_ERR_USAGE, "no size for dimension 0"},
        {"com.example.Wrong", 1, {TN_SET_STRING("how", "no-dtype")}, TN_ERR_USAGE, "element type 99"},
        {"com.example.Wrong", 1, {TN_SET_STRING("how", "mute-infer")}, TN_ERR_LIMIT, "does not say why"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tn_graph *g = tn_graph_create_using(NULL, ops);
        tn_value x = x_of(g);
        assert_int_equal(tn_custom(g, bad[i].op, 1, &x, bad[i].attributes, bad[i].attribute).id, 0);
        custom_expect_error(tn_graph_check(g), bad[i].status, bad[i].says);
        tn_graph_destroy(g);
    }
    /* a graph without the set */
    tn_graph *g = tn_graph_create();
    tn_value x = x_of(g);
    assert_int_equal(tn_custom(g, "com.example.Affine", 1, &x, AFFINE(1, 1)).id, 0);
    custom_expect_error(tn_graph_check(g), TN_ERR_USAGE, "no operator");
    tn_graph_destroy(g);
    tn_op_set_destroy(ops);
}

static void test_wrong_eval(void **state) {
    (void)state;
    static const struct {
        const char *how;
        tn_status status;
        const char *says;
    } bad[] = {{"dtype", TN_ERR_USAGE, "than infer said"},          {"shape", TN_ERR_USAGE, "than infer said"},
               {"rank", TN_ERR_USAGE, "than infer said"},           {"mute", TN_ERR_INPUT, "does not say why"},
               {"swallowed", TN_ERR_INPUT, "something went wrong"}, {"index", TN_ERR_USAGE, "output 7"},
               {"nothing", TN_ERR_USAGE, "makes no output 0"}};
    tn_op_set *ops = custom_set(NULL);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tn_graph *g = tn_graph_create_using(NULL, ops);
        tn_value x = x_of(g);
        tn_set_output(
            g, "y",
            tn_custom(g, "com.example.Wrong", 1, &x, 1, (const tn_attribute[]){TN_SET_STRING("how", bad[i].how)}));
        tn_model *model = tn_model_from_graph(g, NULL);
        if (!model)
            fail_msg("%s", tn_error_message());
        for (int b = 0; b < 2; b++) {
            char text[100];
            custom_expect_error(custom_run(model, custom_backends[b], text, sizeof text), bad[i].status, bad[i].says);
        }
        tn_model_destroy(model);
        tn_graph_destroy(g);
    }
    tn_op_set_destroy(ops);
}

/* Everything on one heap, each allocation failing in turn: an error, nothing lost. */
static tn_status whole_way(tn_heap *heap) {
    tn_op_set *ops = custom_set(heap);
    if (!ops)
        return tn_error_status();
    tn_graph *g = tn_graph_create_using(heap, ops);
    tn_status status = g ? TN_OK : tn_error_status();
    tn_session *s = NULL;
    tn_model *model = NULL;
    if (status == TN_OK) {
        tn_value x = x_of(g), out[2];
        x = tn_custom(g, "com.example.Affine", 1, &x, AFFINE(2, 3));
        tn_custom_outputs(g, "my-own.domain.Sums", 1, &x, 0, NULL, 2, out);
        tn_set_output(g, "y", out[0]);
        status = tn_graph_check(g);
    }
    if (status == TN_OK && !(model = tn_model_from_graph(g, TN_OPTIONS(tn_model_options, .heap = heap))))
        status = tn_error_status();
    if (status == TN_OK && !(s = tn_session_create(model, TN_OPTIONS(tn_session_options, .threads = 1))))
        status = tn_error_status();
    tn_tensor *x = tn_tensor_from_f32(2, (const int64_t[]){2, 2}, (const float[]){1, 2, 3, 4}), *y = NULL;
    if (status == TN_OK)
        status = tn_session_run(s, 1, (const tn_binding[]){{.name = "x", .tensor = x}}, 1,
                                (const tn_output[]){{.name = "y", .tensor = &y}});
    if (status == TN_OK && tn_tensor_get_f64(y, 0) != 4010)
        status = tn_fail(TN_ERR_FAILED, "a wrong result");
    tn_tensor_destroy(x);
    tn_tensor_destroy(y);
    tn_session_destroy(s);
    tn_model_destroy(model);
    tn_graph_destroy(g);
    tn_op_set_destroy(ops);
    return status;
}

static void test_memory(void **state) {
    (void)state;
    uint64_t total = 0;
    for (uint64_t n = 0; n <= total; n++) { /* the first time none fails */
        tn_heap *heap = tn_heap_create(NULL);
        assert_non_null(heap);
        tn_heap_fail_at(heap, n, false);
        tn_status status = whole_way(heap);
        if (n == 0)
            total = tn_heap_allocations(heap);
        if (status != (n == 0 ? TN_OK : TN_ERR_MEMORY))
            fail_msg("allocation %llu of %llu: %s", (unsigned long long)n, (unsigned long long)total,
                     tn_error_message());
        assert_int_equal(tn_heap_in_use(heap), 0);
        tn_heap_destroy(heap);
    }
    assert_true(total > 100);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_built),    cmocka_unit_test(test_passes),      cmocka_unit_test(test_text),
        cmocka_unit_test(test_bad_rows), cmocka_unit_test(test_wrong_calls), cmocka_unit_test(test_wrong_eval),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
