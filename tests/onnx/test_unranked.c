/* Nodes whose inputs have no rank in the file: expanded when they run, by both back ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <tenon/model.h>

#include "support/paths.h"

#define D(...) ((const int64_t[]){__VA_ARGS__})
#define F(...) ((const float[]){__VA_ARGS__})

static tn_tensor *floats(int rank, const int64_t *dims, const float *values) {
    tn_tensor *t = tn_tensor_create(TN_F32, rank, dims);
    assert_non_null(t);
    memcpy(tn_tensor_data(t), values, tn_tensor_bytes(t));
    return t;
}

static tn_tensor *number(int64_t value) {
    tn_tensor *t = tn_tensor_create(TN_I64, 0, NULL);
    assert_non_null(t);
    *(int64_t *)tn_tensor_data(t) = value;
    return t;
}

/* The graph with inputs a, b, ... of the tensors' types but no shape and the output y: y must be `count` of these. */
static void gives(tn_text graph, uint32_t n, tn_tensor *const *in, int64_t count, const float *want) {
    tn_binding feed[4];
    static const char *const names[] = {"a", "b", "c", "d"};
    for (uint32_t i = 0; i < n; i++) {
        put_value(&graph, 11, names[i], (int)tn_tensor_dtype(in[i]), NULL);
        feed[i] = (tn_binding){.name = names[i], .tensor = in[i]};
    }
    put_value(&graph, 12, "y", 0, NULL);
    tn_text bytes = model_bytes(17, graph);
    for (int backend = 0; backend < 2; backend++) {
        tn_model *model = tn_model_load_memory(bytes.data, bytes.len, NULL);
        tn_session *session = tn_session_create(
            model,
            TN_OPTIONS(tn_session_options, .backend = backend ? TN_BACKEND_CPU : TN_BACKEND_REFERENCE, .threads = 1));
        tn_object *y = NULL;
        tn_output out = {.name = "y", .object = &y};
        if (!session)
            fail_msg("back end %d: %s", backend, tn_error_message());
        if (tn_session_run(session, n, feed, 1, &out) != TN_OK)
            fail_msg("back end %d: %s", backend, tn_error_message());
        tn_tensor *t = tn_object_tensor(y);
        assert_non_null(t);
        assert_int_equal(tn_tensor_count(t), count);
        for (int64_t i = 0; i < count; i++)
            assert_float_equal(((const float *)tn_tensor_data(t))[i], want[i], 1e-6);
        tn_object_destroy(y);
        tn_session_destroy(session);
        tn_model_destroy(model);
    }
    tn_text_free(&bytes);
    for (uint32_t i = 0; i < n; i++)
        tn_tensor_destroy(in[i]);
}

/* The first result of a recurrent node, which nobody asks for, is not made. */
static void test_unwanted(void **state) {
    (void)state;
    tn_text g = message();
    put_message(&g, 1, node_bytes("RNN", "n", "a,b,c", ",y", message()));
    tn_tensor *in[] = {floats(3, D(2, 1, 1), F(0.5f, -1)), floats(3, D(1, 1, 1), F(0)), floats(3, D(1, 1, 1), F(0.5f))};
    gives(g, 3, in, 1, F(0));
}

/* The same of nodes with bodies: Scan and Loop of a state and an output of each step, If of two results; one has no name, or is not read. */
static void test_unwanted_of_bodies(void **state) {
    (void)state;
    for (int i = 0; i < 6; i++) {
        bool first = i % 2;
        tn_text g = message(), body = message(), attrs = message();
        put_text(&body, 2, "body");
        if (i / 2 == 0) { /* a: the state, b: what is scanned */
            put_message(&body, 1, node_bytes("Add", "n", "s,e", "t", message()));
            put_message(&body, 1, node_bytes("Mul", "m", "e,e", "o", message()));
            put_value(&body, 11, "s", TN_F32, "?");
            put_value(&body, 11, "e", TN_F32, "?");
        } else if (i / 2 == 1) { /* c: trips */
            put_message(&body, 1, node_bytes("Identity", "c", "more", "on", message()));
            put_message(&body, 1, node_bytes("Add", "n", "s,b", "t", message()));
            put_message(&body, 1, node_bytes("Mul", "m", "s,b", "o", message()));
            put_value(&body, 11, "trip", TN_I64, "");
            put_value(&body, 11, "more", TN_BOOL, "");
            put_value(&body, 11, "s", TN_F32, "?");
            put_value(&body, 12, "on", TN_BOOL, "");
        } else { /* c: which */
            put_message(&body, 1, node_bytes("Add", "n", "a,b", "t", message()));
            put_message(&body, 1, node_bytes("Mul", "m", "a,b", "o", message()));
        }
        put_value(&body, 12, "t", TN_F32, "?");
        put_value(&body, 12, "o", TN_F32, "?");
        const char *outputs = first ? "y,unread" : ",y";
        if (i / 2 == 0) {
            attr_graph(&attrs, "body", body);
            attr_int(&attrs, "num_scan_inputs", 1);
            put_message(&g, 1, node_bytes("Scan", "scan", "a,b", outputs, attrs));
        } else if (i / 2 == 1) {
            attr_graph(&attrs, "body", body);
            put_message(&g, 1, node_bytes("Loop", "loop", "c,,a", outputs, attrs));
        } else {
            tn_text other = message();
            put_text(&other, 2, "other");
            put_message(&other, 1, node_bytes("Sub", "n", "a,b", "t", message()));
            put_message(&other, 1, node_bytes("Div", "m", "a,b", "o", message()));
            put_value(&other, 12, "t", TN_F32, "?");
            put_value(&other, 12, "o", TN_F32, "?");
            attr_graph(&attrs, "then_branch", body);
            attr_graph(&attrs, "else_branch", other);
            tn_text to = message();
            attr_int(&to, "to", TN_BOOL);
            put_message(&g, 1, node_bytes("Cast", "which", "c", "d", to));
            put_message(&g, 1, node_bytes("If", "if", "d", outputs, attrs));
        }
        tn_tensor *in[] = {floats(1, D(1), F(1)), floats(2, D(2, 1), F(2, 3)), number(2)};
        if (i / 2 == 0) {
            tn_tensor_destroy(in[2]);
            gives(g, 2, in, first ? 1 : 2, first ? F(6) : F(4, 9));
        } else if (i / 2 == 1) { /* 1, then [3, 4], in turn: the outputs of steps of one shape each */
            tn_tensor_destroy(in[1]);
            in[1] = floats(1, D(1), F(2));
            gives(g, 3, in, first ? 1 : 2, first ? F(5) : F(2, 6));
        } else
            gives(g, 3, in, 2, first ? F(3, 4) : F(2, 3));
    }
}

/* A position in a sequence is one number, whatever its rank. */
static void test_positions(void **state) {
    (void)state;
    static const char *const ops[] = {"SequenceAt", "SequenceErase", "SequenceInsert"};
    for (int i = 0; i < 3; i++) {
        tn_text g = message();
        put_message(&g, 1, node_bytes("SequenceConstruct", "s", "a,b", "s", message()));
        put_message(&g, 1, node_bytes(ops[i], "n", i < 2 ? "s,c" : "s,b,c", i ? "t" : "y", message()));
        if (i) {
            put_message(&g, 1, node_bytes("SequenceLength", "l", "t", "l", message()));
            tn_text to = message();
            attr_int(&to, "to", TN_F32);
            put_message(&g, 1, node_bytes("Cast", "y", "l", "y", to));
        }
        tn_tensor *in[] = {floats(1, D(1), F(1)), floats(1, D(2), F(2, 3)), number(-1)};
        gives(g, 3, in, i ? 1 : 2, i ? F(i == 1 ? 1 : 3) : F(2, 3));
    }
}

/* SequenceMap over items that share a rank: its body is typed by what the items are when it runs. */
static void test_map(void **state) {
    (void)state;
    tn_text g = message(), body = message(), attrs = message();
    put_message(&body, 1, node_bytes("Mul", "m", "i,i", "o", message()));
    put_text(&body, 2, "body");
    put_value(&body, 11, "i", TN_F32, "?");
    put_value(&body, 12, "o", TN_F32, "?");
    attr_graph(&attrs, "body", body);
    put_message(&g, 1, node_bytes("SequenceConstruct", "s", "a,b", "s", message()));
    put_message(&g, 1, node_bytes("SequenceMap", "n", "s", "t", attrs));
    put_message(&g, 1, node_bytes("SequenceAt", "at", "t,c", "y", message()));
    tn_tensor *in[] = {floats(1, D(1), F(1)), floats(1, D(2), F(2, 3)), number(1)};
    gives(g, 3, in, 2, F(4, 9));
}

/* Both branches give the shape of a scalar: a list of nothing. */
static void test_empty_contents(void **state) {
    (void)state;
    tn_text g = message(), attrs = message();
    for (int i = 0; i < 2; i++) {
        tn_text branch = message();
        put_message(&branch, 1, node_bytes("Shape", "s", "k", i ? "t" : "u", message()));
        put_text(&branch, 2, "branch");
        put_value(&branch, 12, i ? "t" : "u", TN_I64, "?");
        attr_graph(&attrs, i ? "then_branch" : "else_branch", branch);
    }
    put_floats(&g, 5, "k", 0, NULL, F(1));
    put_message(&g, 1, node_bytes("If", "i", "b", "l", attrs));
    put_message(&g, 1, node_bytes("Expand", "e", "a,l", "y", message()));
    tn_tensor *b = tn_tensor_create(TN_BOOL, 0, NULL);
    assert_non_null(b);
    *(uint8_t *)tn_tensor_data(b) = 1;
    tn_tensor *in[] = {floats(0, NULL, F(7)), b};
    gives(g, 2, in, 1, F(7));
}

/* A run's limit holds in nodes that are expanded when they run, for what is only a view there, too. */
static void test_limit(void **state) {
    (void)state;
    tn_text g = message();
    put_message(&g, 1, node_bytes("Tile", "n", "a,b", "y", message()));
    put_value(&g, 11, "a", TN_F32, NULL);
    put_value(&g, 11, "b", TN_I64, NULL);
    put_value(&g, 12, "y", 0, NULL);
    tn_text bytes = model_bytes(17, g);
    tn_tensor *a = floats(2, D(1, 3), F(1, 2, 3)), *b = tn_tensor_from_i64(2, D(1 << 20, 1 << 12));
    tn_binding feed[] = {{.name = "a", .tensor = a}, {.name = "b", .tensor = b}};
    for (int backend = 0; backend < 2; backend++) {
        tn_model *model = tn_model_load_memory(bytes.data, bytes.len, NULL);
        tn_session *session = tn_session_create(
            model, TN_OPTIONS(tn_session_options, .backend = backend ? TN_BACKEND_CPU : TN_BACKEND_REFERENCE,
                              .threads = 1, .max_bytes = 1 << 20));
        tn_object *y = NULL;
        tn_output out = {.name = "y", .object = &y};
        assert_int_equal(tn_session_run(session, 2, feed, 1, &out), TN_ERR_LIMIT);
        tn_session_destroy(session);
        tn_model_destroy(model);
    }
    tn_text_free(&bytes);
    tn_tensor_destroy(a);
    tn_tensor_destroy(b);
}

/* A loop that stacks what inference does not know, after no trip: as the body declares it, whether that is all stacked outputs or one
   of them; where nothing is declared the message says so. Scan in the same way. */
static void stacked(bool scan, bool all, int dtype, const char *shape, int64_t trips, int rank, const int64_t *dims) {
    tn_text g = message(), body = message(), attrs = message();
    put_node(&body, rank < 0 ? "Dropout" : "Squeeze", "q", "a",
             rank < 0 ? "kept,second" : "second"); /* a mask of either type */
    put_node(&body, "Neg", "m", "second", "first");
    put_node(&body, "Identity", "i", scan ? "row" : "go", "on");
    put_text(&body, 2, "body");
    if (!scan)
        put_value(&body, 11, "trip", TN_I64, "");
    put_value(&body, 11, scan ? "row" : "go", scan ? TN_I64 : TN_BOOL, "");
    if (!scan)
        put_value(&body, 12, "on", TN_BOOL, "");
    put_value(&body, 12, "first", TN_F32, "7");
    put_value(&body, 12, "second", dtype, shape);
    if (scan)
        attr_int(&attrs, "num_scan_inputs", 1);
    attr_graph(&attrs, "body", body);
    put_message(&g, 1, node_bytes(scan ? "Scan" : "Loop", "n", scan ? "t" : "t,", "x,y", attrs));
    put_value(&g, 11, "a", TN_F32, NULL);
    put_value(&g, 11, "t", TN_I64, scan ? "T" : "");
    put_value(&g, 12, "y", 0, NULL);
    if (all)
        put_value(&g, 12, "x", 0, NULL);
    tn_text bytes;
    tn_model *model = path_model(17, g, NULL, &bytes);
    tn_tensor *a = floats(3, D(1, 2, 3), F(1, 2, 3, 4, 5, 6)),
              *t = scan ? tn_tensor_create(TN_I64, 1, &trips) : number(trips);
    tn_binding feed[] = {{.name = "a", .tensor = a}, {.name = "t", .tensor = t}};
    for (int p = 0; p < RUN_PATHS; p++) {
        tn_session *session = tn_session_create(model, &run_paths[p].options);
        if (!session)
            fail_msg("%s", tn_error_message());
        tn_object *x = NULL, *y = NULL;
        tn_output out[] = {{.name = "y", .object = &y}, {.name = "x", .object = &x}};
        tn_status status = tn_session_run(session, 2, feed, all ? 2 : 1, out);
        if (rank < 0) {
            assert_int_equal(status, TN_ERR_MODEL);
            assert_non_null(strstr(tn_error_message(), "declare element type and shape of the body's output 'second'"));
        } else if (status != TN_OK)
            fail_msg("%s: %s", run_paths[p].name, tn_error_message());
        tn_tensor *made = rank < 0 ? NULL : tn_object_tensor(y);
        if (made) {
            assert_int_equal(tn_tensor_dtype(made), TN_F32);
            assert_int_equal(tn_tensor_rank(made), rank);
            for (int i = 0; i < rank; i++)
                assert_int_equal(tn_tensor_dims(made)[i], dims[i]);
        }
        if (x && trips == 0)
            assert_int_equal(tn_tensor_dims(tn_object_tensor(x))[1], 7);
        tn_object_destroy(x);
        tn_object_destroy(y);
        tn_session_destroy(session);
    }
    tn_tensor_destroy(a);
    tn_tensor_destroy(t);
    tn_model_destroy(model);
    tn_text_free(&bytes);
}

static void test_no_trip(void **state) {
    (void)state;
    for (int scan = 0; scan < 2; scan++)
        for (int all = 0; all < 2; all++) {
            stacked(scan, all, TN_F32, "2,N", 0, 3, D(0, 2, 0));
            stacked(scan, all, TN_F32, "", 0, 1, D(0));
            stacked(scan, all, TN_F32, NULL, 0, 1, D(0));
            stacked(scan, all, 0, NULL, 0, 1, D(0)); /* the element type follows from what is squeezed */
            stacked(scan, all, 0, NULL, 0, -1, NULL);
            stacked(scan, all, TN_F32, "2,N", 2, 3, D(2, 2, 3));
            stacked(scan, all, TN_I64, "5", 2, 3, D(2, 2, 3)); /* a false declaration is a hint at most */
            stacked(scan, all, 0, NULL, 2, 3, D(2, 2, 3));
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_unwanted),       cmocka_unit_test(test_unwanted_of_bodies),
                                       cmocka_unit_test(test_positions),      cmocka_unit_test(test_map),
                                       cmocka_unit_test(test_empty_contents), cmocka_unit_test(test_limit),
                                       cmocka_unit_test(test_no_trip)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
