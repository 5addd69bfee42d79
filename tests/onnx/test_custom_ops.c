/* Operators of users in ONNX models: any domain, versions, functions, bodies, unknown shapes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <tenon/passes.h>
#include <unistd.h>

#include "support/custom_ops.h"
#include "support/onnx_bytes.h"

/* --- ONNX -------------------------------------------------------------------------------------------------------------------------- */

static tn_text affine_attrs(float a, int64_t b) {
    tn_text attrs = message();
    attr_float(&attrs, "a", a);
    if (b)
        attr_int(&attrs, "b", b);
    return attrs;
}

/* Takes the graph, to which x f32[N, 2] (or of no known shape) and y are added. */
static tn_text finish_model(tn_text graph, int version, const char *shape) {
    put_value(&graph, 11, "x", 1, shape);
    put_value(&graph, 12, "y", 0, NULL);
    tn_text model = model_bytes(17, graph);
    put_opset(&model, 8, "com.example", version);
    put_opset(&model, 8, "my-own.domain", 1);
    return model;
}

static tn_model *load(tn_op_set *ops, const tn_text *bytes) {
    return tn_model_load_memory(bytes->data, bytes->len, TN_OPTIONS(tn_model_options, .ops = ops));
}

/* Optimised at each level and written, it is a model that uses the same operators. */
static void expect_written(tn_op_set *ops, const tn_model *model, const char *wanted) {
    char path[] = "/tmp/tenon-test-XXXXXX.onnx";
    int fd = mkstemps(path, 5);
    assert_true(fd >= 0 && close(fd) == 0);
    for (tn_level level = TN_LEVEL_0; level <= TN_LEVEL_2; level++) {
        tn_graph *g = tn_graph_clone(tn_model_graph(model), NULL, NULL);
        if (!g ||
            tn_graph_optimize(g, TN_OPTIONS(tn_optimize_options, .level = level, .keep_composites = true,
                                            .for_onnx = true)) != TN_OK ||
            tn_graph_save(g, path) != TN_OK)
            fail_msg("level %d: %s", (int)level, tn_error_message());
        tn_graph_destroy(g);
        tn_model *again = tn_model_load(path, TN_OPTIONS(tn_model_options, .ops = ops));
        custom_expect(again, wanted);
        tn_model_destroy(again);
    }
    assert_int_equal(unlink(path), 0);
}

/* Takes the bytes. */
static void expect_onnx(tn_op_set *ops, tn_text bytes, const char *wanted) {
    tn_model *model = load(ops, &bytes);
    custom_expect(model, wanted);
    expect_written(ops, model, wanted);
    tn_model_destroy(model);
    tn_text_free(&bytes);
}

static void expect_onnx_error(tn_op_set *ops, tn_text bytes, tn_status wanted, const char *says) {
    char text[200];
    tn_model *model = load(ops, &bytes);
    tn_status status = model ? custom_run(model, TN_BACKEND_CPU, text, sizeof text) : tn_error_status();
    custom_expect_error(status, wanted, says);
    tn_model_destroy(model);
    tn_text_free(&bytes);
}

static void test_onnx(void **state) {
    (void)state;
    tn_op_set *ops = custom_set(NULL);
    tn_text g = message();
    put_node_of(&g, "com.example", "Affine", "x", "t", affine_attrs(2, 0));
    put_node(&g, "Neg", "neg", "t", "y");
    expect_onnx(ops, finish_model(g, 1, "N,2"), "-12 -14 -16 -18");
    /* another version, another row; none for the next */
    g = message();
    put_node_of(&g, "com.example", "Affine", "x", "y", affine_attrs(2, 1));
    expect_onnx(ops, finish_model(g, 6, "N,2"), "1001 1002 1003 1004");
    g = message();
    put_node_of(&g, "com.example", "Affine", "x", "y", affine_attrs(2, 1));
    expect_onnx_error(ops, finish_model(g, 7, "N,2"), TN_ERR_UNSUPPORTED, "not in this version");
    /* the standard's own domain */
    g = message();
    put_node(&g, "NotInTheStandard", "n", "x", "y");
    expect_onnx(ops, finish_model(g, 1, "N,2"), "1001 1002 1003 1004");
    /* without the set it is not supported, with the name of the node */
    g = message();
    put_node_of(&g, "com.example", "Affine", "x", "y", affine_attrs(2, 1));
    expect_onnx_error(NULL, finish_model(g, 1, "N,2"), TN_ERR_UNSUPPORTED, "the node");
    /* absent inputs, outputs left out */
    g = message();
    put_node_of(&g, "my-own.domain", "Sums", ",x,,x,", "y", message());
    expect_onnx(ops, finish_model(g, 1, "N,2"), "10 10");
    g = message();
    put_node_of(&g, "com.example", "Affine", "", "y", affine_attrs(2, 1));
    expect_onnx_error(ops, finish_model(g, 1, "N,2"), TN_ERR_MODEL, "com.example.Affine");
    g = message();
    put_node_of(&g, "com.example", "Affine", "x", "y", message());
    expect_onnx_error(ops, finish_model(g, 1, "N,2"), TN_ERR_MODEL, "attribute 'a' (float) is missing");
    tn_text attrs = affine_attrs(1, 1);
    attr_int(&attrs, "c", 1);
    g = message();
    put_node_of(&g, "com.example", "Affine", "x", "y", attrs);
    expect_onnx_error(ops, finish_model(g, 1, "N,2"), TN_ERR_MODEL, "no attribute 'c'");
    tn_op_set_destroy(ops);
}

/* Two versions of one operator, which no model imports at once; an effect that nobody reads stays. */
static void test_written(void **state) {
    (void)state;
    tn_op_set *ops = custom_set(NULL);
    char path[] = "/tmp/tenon-test-XXXXXX.onnx";
    int fd = mkstemps(path, 5);
    assert_true(fd >= 0 && close(fd) == 0);
    static const char *const texts[] = {
        "  %2 \"y\" = com.example.Affine(%1) {a = 2.0} : f32[2, 2]\n  %3 = com.example.Affine.5(%2) {a = 2.0} : f32[2, "
        "2]\n",
        "  %2 = com.example.Effect(%1) {a = 2.0} : f32[2, 2]\n  %3 = neg(%1) : f32[2, 2]\n"};
    for (int i = 0; i < 2; i++) {
        char text[400];
        snprintf(text, sizeof text, "tenon 1\ngraph (%%1 \"x\": f32[2, 2]) -> (\"y\") {\n%s  return(%%3)\n}\n",
                 texts[i]);
        tn_model *model = tn_model_load_memory(text, strlen(text), TN_OPTIONS(tn_model_options, .ops = ops));
        if (!model)
            fail_msg("%s", tn_error_message());
        tn_status status = tn_graph_save(tn_model_graph(model), path);
        tn_model_destroy(model);
        if (i == 0) {
            custom_expect_error(status, TN_ERR_UNSUPPORTED, "a model has one operator set of a domain");
            continue;
        }
        assert_int_equal(status, TN_OK);
        model = tn_model_load(path, TN_OPTIONS(tn_model_options, .ops = ops));
        int calls = custom_calls;
        custom_expect(model, "-1 -2 -3 -4");
        assert_true(custom_calls > calls);
        tn_model_destroy(model);
    }
    assert_int_equal(unlink(path), 0);
    tn_op_set_destroy(ops);
}

/* In functions, bodies, and where types are known only at run time. */
static void test_onnx_places(void **state) {
    (void)state;
    tn_op_set *ops = custom_set(NULL);
    /* x of no known shape: everything waits */
    tn_text g = message();
    put_node_of(&g, "com.example", "Affine", "x", "t", affine_attrs(2, 0));
    put_node(&g, "Neg", "neg", "t", "y");
    expect_onnx(ops, finish_model(g, 1, NULL), "-12 -14 -16 -18");
    /* no infer: what follows waits */
    g = message();
    put_node_of(&g, "com.example", "Untyped", "x", "t", message());
    put_node(&g, "Neg", "neg", "t", "y");
    expect_onnx(ops, finish_model(g, 1, "N,2"), "-1001 -1002 -1003 -1004");
    /* in the branches of If, reading a value from outside */
    tn_text then_branch = message(), else_branch = message(), attrs = message();
    put_node_of(&then_branch, "com.example", "Affine", "x", "r", affine_attrs(3, 0));
    put_text(&then_branch, 2, "then");
    put_value(&then_branch, 12, "r", 0, NULL);
    put_node(&else_branch, "Neg", "neg", "x", "r2");
    put_text(&else_branch, 2, "else");
    put_value(&else_branch, 12, "r2", 0, NULL);
    attr_graph(&attrs, "then_branch", then_branch);
    attr_graph(&attrs, "else_branch", else_branch);
    g = message();
    put_node(&g, "ReduceSum", "sum", "x", "s");
    put_node(&g, "IsNaN", "nan", "s", "n3");
    put_node(&g, "Not", "not", "n3", "n4");
    put_ints(&g, 5, "one", 0, NULL);
    put_node(&g, "Reshape", "shape", "n4,one", "c");
    put_message(&g, 1, node_bytes("If", "if", "c", "y", attrs));
    expect_onnx(ops, finish_model(g, 1, "N,2"), "13 16 19 22");
    /* in a function; its attribute comes from the caller */
    tn_text f = message(), call = message(), ref = message();
    put_text(&f, 1, "Twice");
    put_text(&f, 10, "local");
    put_text(&f, 4, "in");
    put_text(&f, 5, "out");
    put_text(&f, 6, "slope");
    attr_ref(&ref, "a", "slope", 1);
    tn_text node = node_bytes("Affine", "inner", "in", "out", ref);
    put_text(&node, 7, "com.example");
    put_message(&f, 7, node);
    put_opset(&f, 9, "com.example", 2);
    attr_float(&call, "slope", 5);
    g = message();
    put_node_of(&g, "local", "Twice", "x", "y", call);
    tn_text model = finish_model(g, 1, "N,2");
    put_opset(&model, 8, "local", 1);
    put_message(&model, 25, f);
    expect_onnx(ops, model, "15 20 25 30");
    tn_op_set_destroy(ops);
}

/* A row goes before a function of the model; what is built in cannot be replaced. */
static void test_onnx_precedence(void **state) {
    (void)state;
    tn_op_set *ops = custom_set(NULL);
    tn_text f = message(), g = message();
    put_text(&f, 1, "Affine");
    put_text(&f, 10, "com.example");
    put_text(&f, 4, "in");
    put_text(&f, 5, "out");
    put_message(&f, 7, node_bytes("Neg", "inner", "in", "out", message()));
    put_opset(&f, 9, "", 17);
    put_node_of(&g, "com.example", "Affine", "x", "y", affine_attrs(2, 0));
    tn_text model = finish_model(g, 1, "N,2");
    put_message(&model, 25, f);
    tn_model *without = load(NULL, &model);
    custom_expect(without, "-1 -2 -3 -4");
    tn_model_destroy(without);
    expect_onnx(ops, model, "12 14 16 18");
    tn_op_set_destroy(ops);

    ops = tn_op_set_create(NULL);
    assert_int_equal(
        tn_op_set_add(ops, TN_OPTIONS(tn_custom_op, .domain = "ai.onnx", .name = "Relu", .eval = custom_affine_eval)),
        TN_OK);
    g = message();
    put_node(&g, "Relu", "r", "x", "y");
    expect_onnx_error(ops, finish_model(g, 1, "N,2"), TN_ERR_USAGE, "ai.onnx.Relu");
    tn_op_set_destroy(ops);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_onnx),
        cmocka_unit_test(test_written),
        cmocka_unit_test(test_onnx_places),
        cmocka_unit_test(test_onnx_precedence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
