/* Random nodes without a seed: each has numbers of its own, the same whether it is expanded with the model or when it runs, at every
   level, on both back ends, and after saving. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>
#include <tenon/model.h>

#include "support/paths.h"

enum { OUTPUTS = 14, COUNT = 12 };

static const char *const outputs[OUTPUTS] = {"normal", "uniform", "bernoulli", "multinomial", "dropout",
                                             "first",  "second",  "third",     "branch",      "loop",
                                             "trip",   "trip_in", "trip_back", "step"};

static void put_cast(tn_text *graph, const char *from, const char *to, int dtype) {
    tn_text attrs = message();
    attr_int(&attrs, "to", dtype);
    put_message(graph, 1, node_bytes("Cast", "", from, to, attrs));
}

/* y = F(x): random, by way of a function in it. */
static void put_function(tn_text *model, const char *name, const char *op, const char *domain) {
    tn_text f = message(), node = node_bytes(op, "inner", "x", "y", message());
    put_text(&f, 1, name);
    put_text(&f, 4, "x");
    put_text(&f, 5, "y");
    if (*domain)
        put_text(&node, 7, domain);
    put_message(&f, 7, node);
    put_opset(&f, 9, "", 17);
    put_opset(&f, 9, "local", 1);
    put_text(&f, 10, "local");
    put_message(model, 25, f);
}

static void put_call(tn_text *graph, const char *name, const char *to) {
    tn_text node = node_bytes(name, "", "x", to, message());
    put_text(&node, 7, "local");
    put_message(graph, 1, node);
}

static tn_text branch(const char *op) {
    tn_text g = message();
    put_node(&g, op, "r", "x", "drawn");
    put_text(&g, 2, "branch");
    put_value(&g, 12, "drawn", TN_F32, NULL);
    return g;
}

static void put_axis(tn_text *graph, const char *from, const char *to) {
    tn_text attrs = message();
    attr_int(&attrs, "axis", 1);
    put_message(graph, 1, node_bytes("Gather", "", from, to, attrs));
}

/* Draws by way of a function and a branch, in a loop in a loop. */
static tn_text inner_body(const char *shape) {
    tn_text g = message(), attrs = message();
    attr_graph(&attrs, "then_branch", branch("RandomNormalLike"));
    attr_graph(&attrs, "else_branch", branch("RandomUniformLike"));
    put_message(&g, 1, node_bytes("If", "", "c", "drawn_here", attrs));
    put_call(&g, "F", "called");
    put_node(&g, "Add", "", "drawn_here,called", "d");
    put_node(&g, "Identity", "", "go_in", "on_in");
    put_text(&g, 2, "inner");
    put_value(&g, 11, "j", TN_I64, "");
    put_value(&g, 11, "go_in", TN_BOOL, "");
    put_value(&g, 11, "e", TN_F32, shape);
    put_node(&g, "Identity", "", "e", "e_out");
    put_value(&g, 12, "on_in", TN_BOOL, "");
    put_value(&g, 12, "e_out", TN_F32, shape);
    put_value(&g, 12, "d", TN_F32, NULL);
    return g;
}

static tn_text step(const char *shape) {
    tn_text g = message();
    put_node(&g, "RandomNormalLike", "", "row", "row_drawn");
    put_text(&g, 2, "step");
    put_value(&g, 11, "row", TN_F32, shape);
    put_value(&g, 12, "row_drawn", TN_F32, shape);
    return g;
}

/* `shape` of the input: NULL, so that all is expanded when it runs, or the one it has. */
static tn_text model_of(const char *shape) {
    static const int64_t one = 1, two = 2, none = 0;
    tn_text g = message(), attrs = message(), body = message();
    put_value(&g, 11, "x", TN_F32, shape);
    put_value(&g, 11, "c", TN_BOOL, "");
    put_ints(&g, 5, "one", 1, &one);
    put_ints(&g, 5, "trips", 1, &two);
    put_ints(&g, 5, "zero", 1, &none);
    put_floats(&g, 5, "half", 0, NULL, &(float){0.5f});
    put_node(&g, "RandomNormalLike", "", "x", "normal");
    put_node(&g, "RandomUniformLike", "", "x", "uniform");
    put_node(&g, "Bernoulli", "", "x", "bernoulli");
    attr_int(&attrs, "sample_size", 4);
    put_message(&g, 1, node_bytes("Multinomial", "m", "x", "classes", attrs));
    put_cast(&g, "classes", "multinomial", TN_F32);
    put_cast(&g, "one", "list", TN_BOOL);
    put_node(&g, "Squeeze", "", "list", "on");
    put_node(&g, "Dropout", "", "x,half,on", "dropout");
    put_call(&g, "F", "first");
    put_call(&g, "F", "second");
    put_call(&g, "G", "third");
    attrs = message();
    attr_graph(&attrs, "then_branch", branch("RandomNormalLike"));
    attr_graph(&attrs, "else_branch", branch("RandomUniformLike"));
    put_message(&g, 1, node_bytes("If", "", "c", "branch", attrs));
    put_node(&body, "RandomNormalLike", "", "a", "b");
    put_node(&body, "Identity", "", "go", "on");
    attrs = message();
    attr_graph(&attrs, "body", inner_body(shape));
    put_message(&body, 1, node_bytes("Loop", "", "trips,,b", "last,inside", attrs));
    put_text(&body, 2, "body");
    put_value(&body, 11, "i", TN_I64, "");
    put_value(&body, 11, "go", TN_BOOL, "");
    put_value(&body, 11, "a", TN_F32, shape);
    put_value(&body, 12, "on", TN_BOOL, "");
    put_value(&body, 12, "b", TN_F32, shape);
    put_value(&body, 12, "inside", TN_F32, NULL);
    attrs = message();
    attr_graph(&attrs, "body", body);
    put_message(&g, 1, node_bytes("Loop", "", "trips,,x", "loop,rows", attrs));
    put_node(&g, "Gather", "", "rows,zero", "first_trip"); /* [1, 2, ...] */
    put_node(&g, "Gather", "", "rows,one", "second_trip");
    put_axis(&g, "first_trip,zero", "trip");
    put_axis(&g, "first_trip,one", "trip_in");
    put_axis(&g, "second_trip,zero", "trip_back");
    attrs = message();
    attr_graph(&attrs, "body", step(shape ? "4" : NULL));
    attr_int(&attrs, "num_scan_inputs", 1);
    put_message(&g, 1, node_bytes("Scan", "", "x", "step", attrs));
    for (int i = 0; i < OUTPUTS; i++)
        put_value(&g, 12, outputs[i], TN_F32, NULL);
    tn_text m = model_bytes(17, g);
    put_opset(&m, 8, "local", 1);
    put_function(&m, "F", "RandomNormalLike", "");
    put_function(&m, "G", "F", "local");
    return m;
}

static void run(tn_model *model, int path, float out[OUTPUTS][COUNT]) {
    static const int64_t dims[] = {3, 4};
    float values[COUNT];
    for (int i = 0; i < COUNT; i++)
        values[i] = (float)(i + 1) / 16;
    tn_tensor *x = tn_tensor_from_f32(2, dims, values), *c = tn_tensor_create(TN_BOOL, 0, NULL);
    assert_true(x && c);
    *(uint8_t *)tn_tensor_data(c) = 1;
    tn_binding in[] = {{.name = "x", .tensor = x}, {.name = "c", .tensor = c}};
    tn_object *made[OUTPUTS] = {NULL};
    tn_output wanted[OUTPUTS];
    for (int i = 0; i < OUTPUTS; i++)
        wanted[i] = (tn_output){.name = outputs[i], .object = &made[i]};
    tn_session *s = tn_session_create(model, &run_paths[path].options);
    if (tn_session_run(s, 2, in, OUTPUTS, wanted) != TN_OK)
        fail_msg("%s", tn_error_message());
    for (int i = 0; i < OUTPUTS; i++) {
        const tn_tensor *t = tn_object_tensor(made[i]);
        assert_int_equal(tn_tensor_count(t), COUNT);
        for (int k = 0; k < COUNT; k++)
            out[i][k] = (float)tn_tensor_get_f64(t, k);
        tn_object_destroy(made[i]);
    }
    tn_session_destroy(s);
    tn_tensor_destroy(x);
    tn_tensor_destroy(c);
}

static void same_numbers(float want[OUTPUTS][COUNT], float got[OUTPUTS][COUNT], const char *how, const char *path) {
    for (int i = 0; i < OUTPUTS; i++)
        if (memcmp(want[i], got[i], sizeof want[i]) != 0)
            fail_msg("%s: other numbers, %s, %s", outputs[i], how, path);
}

static void test_own_seeds(void **state) {
    (void)state;
    static float want[OUTPUTS][COUNT], got[OUTPUTS][COUNT];
    char path[] = "/tmp/tenon-test-XXXXXX.tenon";
    for (int late = 0; late < 2; late++) {
        tn_text bytes = model_of(late ? NULL : "3,4");
        tn_model *model = tn_model_load_memory(bytes.data, bytes.len, NULL);
        if (!model)
            fail_msg("%s", tn_error_message());
        for (int p = 0; p < RUN_PATHS; p++) {
            run(model, p, got);
            if (!late && !p)
                memcpy(want, got, sizeof want);
            same_numbers(want, got, late ? "expanded late" : "expanded early", run_paths[p].name);
        }
        if (!late)
            close(mkstemps(path, 6));
        assert_int_equal(tn_graph_save(tn_model_graph(model), path), TN_OK);
        tn_model_destroy(model);
        model = tn_model_load(path, NULL);
        if (!model)
            fail_msg("%s", tn_error_message());
        run(model, RUN_PATHS - 1, got);
        same_numbers(want, got, "saved", run_paths[RUN_PATHS - 1].name);
        tn_model_destroy(model);
        tn_text_free(&bytes);
    }
    unlink(path);
    for (int i = 0; i < OUTPUTS; i++)
        for (int j = 0; j < i; j++)
            if (memcmp(want[i], want[j], sizeof want[i]) == 0)
                fail_msg("%s and %s have the same numbers", outputs[i], outputs[j]);
    for (int row = 1; row < 3; row++)
        assert_memory_not_equal(want[OUTPUTS - 1], want[OUTPUTS - 1] + 4 * row, 4 * sizeof(float)); /* of each step */
}

/* A part of a model draws what the whole does, also where what is left out bears the same names. */
static void test_parts(void **state) {
    (void)state;
    tn_text g = message(), bytes;
    static const char *const names[] = {"y0", "y1", "y2"};
    put_value(&g, 11, "x", TN_F32, "12");
    put_value(&g, 11, "c", TN_BOOL, "");
    for (int i = 0; i < 3; i++) {
        tn_text attrs = message();
        attr_graph(&attrs, "then_branch", branch("RandomNormalLike"));
        attr_graph(&attrs, "else_branch", branch("RandomUniformLike"));
        put_message(&g, 1, node_bytes("If", "", "c", names[i], attrs));
        put_value(&g, 12, names[i], 0, NULL);
    }
    tn_model *model = path_model(17, g, NULL, &bytes);
    assert_non_null(model);
    tn_tensor *x = tn_tensor_create(TN_F32, 1, (const int64_t[]){COUNT}), *c = tn_tensor_create(TN_BOOL, 0, NULL);
    *(uint8_t *)tn_tensor_data(c) = 1;
    const tn_binding in[] = {{.name = "x", .tensor = x}, {.name = "c", .tensor = c}};
    for (int p = 0; p < RUN_PATHS; p++) {
        tn_tensor *whole[3] = {NULL};
        tn_output all[3];
        for (int i = 0; i < 3; i++)
            all[i] = (tn_output){.name = names[i], .tensor = &whole[i]};
        tn_session *s = tn_session_create(model, &run_paths[p].options);
        assert_int_equal(tn_session_run(s, 2, in, 3, all), TN_OK);
        assert_memory_not_equal(tn_tensor_data(whole[0]), tn_tensor_data(whole[2]), COUNT * sizeof(float));
        for (int i = 0; i < 3; i++) {
            tn_tensor *alone = NULL;
            assert_int_equal(tn_session_run(s, 2, in, 1, &(tn_output){.name = names[i], .tensor = &alone}), TN_OK);
            if (memcmp(tn_tensor_data(alone), tn_tensor_data(whole[i]), COUNT * sizeof(float)) != 0)
                fail_msg("%s: %s alone draws other numbers", run_paths[p].name, names[i]);
            tn_tensor_destroy(alone);
        }
        for (int i = 0; i < 3; i++)
            tn_tensor_destroy(whole[i]);
        tn_session_destroy(s);
    }
    tn_tensor_destroy(x);
    tn_tensor_destroy(c);
    tn_model_destroy(model);
    tn_text_free(&bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_own_seeds), cmocka_unit_test(test_parts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
