/* Control flow in control flow: branches and loops in turns, 64 deep and to the limit, which read a value of the outermost graph; a level
   more is refused with the limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "ir/graph.h"
#include "support/paths.h"

/* Nodes that make "y<level>" of x, the innermost 2 x, each loop around it twice as much again; `depth` levels of bodies. */
static void put_level(tn_text *g, int level, int depth) {
    char in[24], out[24], to[24];
    snprintf(to, sizeof to, "y%d", level);
    if (depth == 0) {
        put_node(g, "Add", "end", "x,x", to);
        return;
    }
    snprintf(in, sizeof in, "y%d", level + 1);
    tn_text attrs = message();
    if (level % 2 == 0) {
        for (int branch = 0; branch < 2; branch++) {
            tn_text body = message();
            if (branch)
                put_node(&body, "Neg", "not_taken", "x", in);
            else
                put_level(&body, level + 1, depth - 1);
            put_value(&body, 12, in, 0, NULL);
            put_text(&body, 2, "body");
            attr_graph(&attrs, branch ? "else_branch" : "then_branch", body);
        }
        put_message(g, 1, node_bytes("If", "choose", "c", to, attrs));
        return;
    }
    tn_text body = message();
    snprintf(out, sizeof out, "s%d", level);
    put_value(&body, 11, "i", TN_I64, "");
    put_value(&body, 11, "go", TN_BOOL, "");
    put_value(&body, 11, "s", TN_F32, "2");
    put_level(&body, level + 1, depth - 1);
    snprintf(in, sizeof in, "s,y%d", level + 1);
    put_node(&body, "Add", "sum", in, out);
    put_node(&body, "Identity", "on", "go", "go_on");
    put_value(&body, 12, "go_on", TN_BOOL, "");
    put_value(&body, 12, out, TN_F32, "2");
    put_text(&body, 2, "body");
    attr_graph(&attrs, "body", body);
    put_message(g, 1, node_bytes("Loop", "repeat", "n,c,zero", to, attrs));
}

/* `data`: only the run knows the condition. */
static tn_text nested(int depth, bool data) {
    tn_text g = message(), attrs = message(), bytes = message();
    put_value(&g, 11, "x", TN_F32, "2");
    tn_tensor *c = tn_tensor_create(TN_BOOL, 0, NULL), *n = tn_tensor_create(TN_I64, 0, NULL);
    tn_tensor_set_f64(c, 0, 1);
    tn_tensor_set_f64(n, 0, 1);
    assert_int_equal(tn_onnx_write_tensor(&bytes, n, "n"), TN_OK);
    put_message(&g, 5, bytes);
    bytes = message();
    assert_int_equal(tn_onnx_write_tensor(&bytes, c, data ? "unused" : "c"), TN_OK);
    put_message(&g, 5, bytes);
    tn_tensor_destroy(c);
    tn_tensor_destroy(n);
    attr_int(&attrs, "keepdims", 0);
    put_message(&g, 1, node_bytes("ReduceMax", "most", "x", "m", attrs));
    put_node(&g, "Less", "above", "least,m", data ? "c" : "d");
    put_floats(&g, 5, "least", 0, NULL, (const float[]){0});
    put_floats(&g, 5, "zero", 1, (const int64_t[]){2}, (const float[]){0, 0});
    put_level(&g, 0, depth);
    put_node(&g, "Identity", "out", "y0", "y");
    put_value(&g, 12, "y", TN_F32, "2");
    return g;
}

static void test_depths(void **state) {
    (void)state;
    static const int depths[] = {1, 2, 9, 64, TN_MAX_NESTING - 1}; /* the outermost graph is one */
    tn_tensor *x = tn_tensor_from_f32(1, (const int64_t[]){2}, (const float[]){1.5F, -3}), *y;
    for (size_t i = 0; i < 10; i++) {
        tn_text bytes;
        tn_model *model = path_model(17, nested(depths[i % 5], i >= 5), NULL, &bytes);
        if (!model)
            fail_msg("%d deep: %s", depths[i % 5], tn_error_message());
        for (int p = 0; p < RUN_PATHS; p++) {
            if (path_run(model, p, x, NULL, &y) != TN_OK)
                fail_msg("%d deep, %s: %s", depths[i % 5], run_paths[p].name, tn_error_message());
            assert_true(tn_tensor_get_f64(y, 0) == 3 && tn_tensor_get_f64(y, 1) == -6);
            tn_tensor_destroy(y);
        }
        tn_model_destroy(model);
        tn_text_free(&bytes);
    }
    tn_tensor_destroy(x);
}

static void test_too_deep(void **state) {
    (void)state;
    tn_text bytes;
    char limit[16];
    tn_model *model = path_model(17, nested(TN_MAX_NESTING, true), NULL, &bytes);
    assert_null(model);
    assert_int_equal(tn_error_status(), TN_ERR_LIMIT);
    snprintf(limit, sizeof limit, "%d", TN_MAX_NESTING);
    assert_non_null(strstr(tn_error_message(), limit));
    tn_text_free(&bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_depths), cmocka_unit_test(test_too_deep)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
