/* The expansion driver: functions and their attributes, old versions, nodes that wait for run time, what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/onnx_bytes.h"

#include "interp/interp.h"

static tn_graph *loads(tn_text model) {
    tn_graph *g = load_bytes(&model);
    if (!g)
        fail_msg("%s", tn_error_message());
    tn_text_free(&model);
    return g;
}

static void expands(tn_graph *g) {
    if (tn_onnx_expand(g, 0) != TN_OK || tn_graph_verify(g) != TN_OK)
        fail_msg("%s", tn_error_message());
}

static uint32_t waiting(const tn_graph *g) {
    uint32_t count = 0;
    for (tn_node n = tn_region_first(g, tn_graph_region(g)); n.id; n = tn_node_next(g, n))
        count += strncmp(tn_node_op_name(g, n), "onnx.", 5) == 0;
    return count;
}

/* Runs with f32 or other tensors for the inputs (destroyed) and compares the only output. */
static void gives(tn_graph *g, uint32_t n, tn_tensor **in, int rank, const int64_t *dims, const float *wanted) {
    tn_value values[8], out_value = tn_graph_output(g, 0);
    tn_object *objects[8], *out = NULL;
    for (uint32_t i = 0; i < n; i++) {
        values[i] = tn_graph_input(g, i);
        objects[i] = tn_tensor_object(in[i]);
    }
    if (tn_interp_run(g, NULL, n, values, objects, 1, &out_value, &out) != TN_OK)
        fail_msg("%s", tn_error_message());
    tn_tensor *t = tn_object_tensor(out);
    assert_non_null(t);
    assert_int_equal(t->rank, rank);
    for (int i = 0; i < rank; i++)
        assert_int_equal(t->dims[i], dims[i]);
    for (int64_t i = 0; i < t->count; i++)
        if (tn_tensor_get_f64(t, i) != (double)wanted[i])
            fail_msg("element %d is not what it should be", (int)i);
    tn_object_destroy(out);
    for (uint32_t i = 0; i < n; i++)
        tn_tensor_destroy(in[i]);
}

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})
#define FLOATS(...) ((const float[]){__VA_ARGS__})

static tn_tensor *boolean(bool value) {
    tn_tensor *t = tn_tensor_create(TN_BOOL, 0, NULL);
    *(uint8_t *)t->data = value;
    return t;
}

/* --- functions ---------------------------------------------------------------------------------------------------------------------- */

/* own.F(a, b?) = LeakyRelu(a; alpha = @k), k's default 0.5 when `with_default`. */
static void put_function(tn_text *model, const char *name, const char *inner, bool with_default) {
    tn_text f = message(), refs = message();
    put_text(&f, 1, name);
    put_text(&f, 4, "a");
    put_text(&f, 4, "b");
    put_text(&f, 5, "r");
    put_text(&f, 10, "own");
    put_opset(&f, 9, "", 16);
    put_opset(&f, 9, "own", 1);
    if (inner) {
        attr_ref(&refs, "k", "k", 1);
        tn_text call = node_bytes(inner, "call", "a,b", "r", refs);
        put_text(&call, 7, "own");
        put_message(&f, 7, call);
    } else {
        attr_ref(&refs, "alpha", "k", 1);
        put_message(&f, 7, node_bytes("LeakyRelu", "leaky", "a", "r", refs));
    }
    if (with_default) {
        tn_text a = message();
        const uint8_t half[] = {0x15, 0, 0, 0, 0x3f};
        put_text(&a, 1, "k");
        tn_text_bytes(&a, (const char *)half, sizeof half);
        tn_wire_put_varint(&a, 20, 1);
        put_message(&f, 11, a);
    }
    put_message(model, 25, f);
}

static tn_graph *call_model(bool give_k, bool with_default, bool nested) {
    tn_text g = message(), attrs = message();
    if (give_k) {
        tn_text a = message();
        const uint8_t two[] = {0x15, 0, 0, 0, 0x40};
        put_text(&a, 1, "k");
        tn_text_bytes(&a, (const char *)two, sizeof two);
        tn_wire_put_varint(&a, 20, 1);
        put_message(&attrs, 5, a);
    }
    put_value(&g, 11, "x", TN_F32, "2");
    tn_text call = node_bytes(nested ? "G" : "F", "outer", "x", "y", attrs);
    put_text(&call, 7, "own");
    put_message(&g, 1, call);
    put_value(&g, 12, "y", TN_F32, "2");
    tn_text m = model_bytes(17, g);
    put_opset(&m, 8, "own", 1);
    if (nested)
        put_function(&m, "G", "F", with_default);
    put_function(&m, "F", NULL, with_default);
    tn_graph *graph = loads(m);
    expands(graph);
    assert_int_equal(waiting(graph), 0);
    return graph;
}

static void test_functions(void **state) {
    (void)state;
    for (int nested = 0; nested < 2; nested++) {
        tn_graph *g = call_model(true, true, nested);
        gives(g, 1, (tn_tensor *[]){tn_tensor_from_f32(1, DIMS(2), FLOATS(-4, 3))}, 1, DIMS(2), FLOATS(-8, 3));
        tn_graph_destroy(g);
        g = call_model(false, true, nested);
        gives(g, 1, (tn_tensor *[]){tn_tensor_from_f32(1, DIMS(2), FLOATS(-4, 3))}, 1, DIMS(2), FLOATS(-2, 3));
        tn_graph_destroy(g);
        g = call_model(false, false, nested); /* the operator's own default */
        tn_node origin = tn_value_producer(g, tn_graph_output(g, 0));
        assert_true(tn_node_origin_count(g, origin) >= 2); /* of the call and of the node in the function */
        gives(g, 1, (tn_tensor *[]){tn_tensor_from_f32(1, DIMS(2), FLOATS(0, 3))}, 1, DIMS(2), FLOATS(0, 3));
        tn_graph_destroy(g);
    }
}

/* f0 calls f1 ten times, f1 calls f2 ... : refused before anything is copied. */
static void test_function_bomb(void **state) {
    (void)state;
    tn_text g = message();
    put_value(&g, 11, "x", TN_F32, "2");
    tn_text call = node_bytes("f0", "c", "x", "y", message());
    put_text(&call, 7, "own");
    put_message(&g, 1, call);
    put_value(&g, 12, "y", TN_F32, "2");
    tn_text m = model_bytes(17, g);
    put_opset(&m, 8, "own", 1);
    for (int i = 0; i < 20; i++) {
        tn_text f = message();
        char name[8], next[8], from[8], to[8];
        snprintf(name, sizeof name, "f%d", i);
        snprintf(next, sizeof next, "f%d", i + 1);
        put_text(&f, 1, name);
        put_text(&f, 4, "v0");
        put_text(&f, 5, "v10");
        put_text(&f, 10, "own");
        for (int k = 0; k < 10; k++) {
            snprintf(from, sizeof from, "v%d", k);
            snprintf(to, sizeof to, "v%d", k + 1);
            tn_text inner = node_bytes(i == 19 ? "Relu" : next, "c", from, to, message());
            if (i < 19)
                put_text(&inner, 7, "own");
            put_message(&f, 7, inner);
        }
        put_message(&m, 25, f);
    }
    tn_graph *graph = loads(m);
    size_t before = tn_heap_in_use(tn_heap_default());
    assert_int_equal(tn_onnx_expand(graph, 0), TN_ERR_LIMIT);
    assert_true(tn_heap_in_use(tn_heap_default()) < before + 65536);
    tn_graph_destroy(graph);
}

/* --- old versions ------------------------------------------------------------------------------------------------------------------- */

static void test_legacy_broadcast(void **state) {
    (void)state;
    tn_text g = message(), attrs = message();
    attr_int(&attrs, "broadcast", 1);
    attr_int(&attrs, "axis", 0);
    put_value(&g, 11, "x", TN_F32, "2,3");
    put_floats(&g, 5, "b", 1, DIMS(2), FLOATS(10, 20));
    put_message(&g, 1, node_bytes("Add", "n", "x,b", "y", attrs));
    put_value(&g, 12, "y", TN_F32, "2,3");
    tn_graph *graph = loads(model_bytes(6, g));
    expands(graph);
    gives(graph, 1, (tn_tensor *[]){tn_tensor_from_f32(2, DIMS(2, 3), FLOATS(1, 2, 3, 4, 5, 6))}, 2, DIMS(2, 3),
          FLOATS(11, 12, 13, 24, 25, 26));
    tn_graph_destroy(graph);
}

static void test_attribute_to_input(void **state) {
    (void)state;
    static const int versions[] = {11, 13};
    for (int i = 0; i < 2; i++) {
        tn_text g = message(), attrs = message(), a = message();
        put_text(&a, 1, "axes");
        tn_wire_put_varint(&a, 8, (uint64_t)-1);
        tn_wire_put_varint(&a, 20, 7);
        if (i == 0)
            put_message(&attrs, 5, a);
        else
            tn_text_free(&a);
        attr_int(&attrs, "keepdims", 0);
        put_value(&g, 11, "x", TN_F32, "N,3");
        put_ints(&g, 5, "axes", 1, DIMS(-1));
        put_message(&g, 1, node_bytes("ReduceSum", "n", i ? "x,axes" : "x", "y", attrs));
        put_value(&g, 12, "y", TN_F32, "N");
        tn_graph *graph = loads(model_bytes(versions[i], g));
        expands(graph);
        assert_int_equal(waiting(graph), 0);
        gives(graph, 1, (tn_tensor *[]){tn_tensor_from_f32(2, DIMS(2, 3), FLOATS(1, 2, 3, 4, 5, 6))}, 1, DIMS(2),
              FLOATS(6, 15));
        tn_graph_destroy(graph);
    }
}

/* --- nodes that wait ------------------------------------------------------------------------------------------------------------------ */

static void test_late_shape(void **state) {
    (void)state;
    tn_text g = message();
    put_value(&g, 11, "x", TN_F32, "N");
    put_value(&g, 11, "shape", TN_I64, "R"); /* not even its length is known */
    put_node(&g, "Reshape", "late", "x,shape", "r");
    put_node(&g, "Neg", "after", "r", "y");
    put_value(&g, 12, "y", TN_F32, NULL);
    tn_graph *graph = loads(model_bytes(17, g));
    expands(graph);
    assert_int_equal(waiting(graph), 2);
    for (int i = 0; i < 2; i++) {
        tn_tensor *x = tn_tensor_from_f32(1, DIMS(4), FLOATS(1, 2, 3, 4));
        tn_tensor *shape = i ? tn_tensor_from_i64(3, DIMS(1, -1, 1)) : tn_tensor_from_i64(2, DIMS(2, 2));
        gives(graph, 2, (tn_tensor *[]){x, shape}, i ? 3 : 2, i ? DIMS(1, 4, 1) : DIMS(2, 2), FLOATS(-1, -2, -3, -4));
    }
    tn_graph_destroy(graph);
}

/* An If over values of unknown rank, which its branches read from outside, one of them through a function. */
static void test_late_captures(void **state) {
    (void)state;
    tn_text g = message(), attrs = message(), then_graph = message(), else_graph = message();
    tn_text call = node_bytes("F", "call", "m", "t", message());
    put_text(&call, 7, "own");
    put_message(&then_graph, 1, call);
    put_value(&then_graph, 12, "t", 0, NULL);
    put_floats(&else_graph, 5, "k", 1, DIMS(1), FLOATS(100));
    put_node(&else_graph, "Add", "a", "x,k", "e");
    put_value(&else_graph, 12, "e", 0, NULL);
    attr_graph(&attrs, "then_branch", then_graph);
    attr_graph(&attrs, "else_branch", else_graph);
    put_value(&g, 11, "c", TN_BOOL, "");
    put_value(&g, 11, "x", TN_F32, NULL);
    put_node(&g, "Mul", "square", "x,x", "m");
    put_message(&g, 1, node_bytes("If", "choose", "c", "y", attrs));
    put_value(&g, 12, "y", TN_F32, NULL);
    tn_text model = model_bytes(17, g);
    put_opset(&model, 8, "own", 1);
    put_function(&model, "F", NULL, true);
    tn_graph *graph = loads(model);
    expands(graph);
    assert_true(waiting(graph) >= 1);
    for (int i = 0; i < 4; i++) {
        tn_tensor *x =
            i < 2 ? tn_tensor_from_f32(1, DIMS(2), FLOATS(-2, 3)) : tn_tensor_from_f32(2, DIMS(2, 1), FLOATS(-2, 3));
        gives(graph, 2, (tn_tensor *[]){boolean(i % 2 == 0), x}, i < 2 ? 1 : 2, i < 2 ? DIMS(2) : DIMS(2, 1),
              i % 2 == 0 ? FLOATS(4, 9) : FLOATS(98, 103));
    }
    /* a copy that outlives the original runs as well */
    tn_graph *copy = tn_graph_clone(graph, NULL, NULL);
    tn_graph_destroy(graph);
    assert_non_null(copy);
    gives(copy, 2, (tn_tensor *[]){boolean(true), tn_tensor_from_f32(0, NULL, FLOATS(5))}, 0, NULL, FLOATS(25));
    tn_graph_destroy(copy);
}

/* What is wrong at run time is an error that names the node. */
static void test_late_error(void **state) {
    (void)state;
    tn_text g = message();
    put_value(&g, 11, "x", TN_F32, NULL);
    put_node(&g, "Reshape", "late", "x,s", "y");
    put_ints(&g, 5, "s", 1, DIMS(7));
    put_value(&g, 12, "y", TN_F32, NULL);
    tn_graph *graph = loads(model_bytes(17, g));
    expands(graph);
    tn_value in = tn_graph_input(graph, 0), out_value = tn_graph_output(graph, 0);
    tn_tensor *x = tn_tensor_from_f32(1, DIMS(2), FLOATS(1, 2));
    tn_object *object = tn_tensor_object(x), *out = NULL;
    assert_int_not_equal(tn_interp_run(graph, NULL, 1, &in, &object, 1, &out_value, &out), TN_OK);
    assert_non_null(strstr(tn_error_message(), "late"));
    assert_null(out);
    tn_tensor_destroy(x);
    tn_graph_destroy(graph);
}

/* --- what is refused, what is warned of --------------------------------------------------------------------------------------------- */

static void expand_fails(tn_graph *g, tn_status status, int n, const char *const *mentions) {
    assert_int_equal(tn_onnx_expand(g, 0), status);
    for (int i = 0; i < n; i++)
        if (!strstr(tn_error_message(), mentions[i]))
            fail_msg("%s\ndoes not mention %s", tn_error_message(), mentions[i]);
    tn_graph_destroy(g);
}

static void test_unsupported(void **state) {
    (void)state;
    tn_text g = message();
    put_value(&g, 11, "x", TN_F32, "2");
    put_node(&g, "Frobnicate", "one", "x", "a");
    put_node(&g, "Frobnicate", "two", "a", "b");
    put_node(&g, "Swish", "gone", "b", "c"); /* not in operator set 17 */
    tn_text other = node_bytes("Thing", "three", "c", "y", message());
    put_text(&other, 7, "some.where");
    put_message(&g, 1, other);
    put_value(&g, 12, "y", TN_F32, "2");
    tn_text model = model_bytes(17, g);
    put_opset(&model, 8, "some.where", 3);
    tn_graph *graph = loads(model);
    assert_string_equal(tn_node_op_name(graph, tn_value_producer(graph, tn_graph_output(graph, 0))),
                        "onnx.some.where.Thing");
    tn_text list = message();
    uint32_t count;
    assert_int_equal(tn_onnx_list_unsupported(graph, &list, &count), TN_OK);
    assert_int_equal(count, 3);
    assert_non_null(strstr(list.data, "Frobnicate"));
    tn_text_free(&list);
    expand_fails(
        graph, TN_ERR_UNSUPPORTED, 7,
        (const char *const[]){"Frobnicate", "'one', 'two'", "some.where", "version 3", "Swish", "'gone'", "'three'"});
}

static void test_checks(void **state) {
    (void)state;
    static const struct {
        const char *op, *inputs, *attr;
        const char *mentions;
    } wrong[] = {
        {"Relu", "x,x", NULL, "2 inputs"},
        {"Add", "x", NULL, "input 1"},
        {"Add", "x,", NULL, "input 1"},
        {"Relu", "x", "alpha", "no attribute 'alpha'"},
        {"Concat", "x", NULL, "'axis' is missing"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tn_text g = message(), attrs = message();
        if (wrong[i].attr)
            attr_int(&attrs, wrong[i].attr, 1);
        put_value(&g, 11, "x", TN_F32, "2");
        put_message(&g, 1, node_bytes(wrong[i].op, "node", wrong[i].inputs, "y", attrs));
        put_value(&g, 12, "y", TN_F32, "2");
        expand_fails(loads(model_bytes(17, g)), TN_ERR_MODEL, 2, (const char *const[]){wrong[i].mentions, "'node'"});
    }
}

static void test_declared(void **state) {
    (void)state;
    tn_text g = message();
    put_value(&g, 11, "x", TN_F32, "N,3");
    put_node(&g, "Relu", "r", "x", "a");
    put_node(&g, "Neg", "s", "a", "y");
    put_value(&g, 13, "a", TN_F32, "N,4");
    put_value(&g, 12, "y", TN_F32, "N,3");
    tn_graph *graph = loads(model_bytes(17, g));
    expands(graph);
    const char *warnings = tn_graph_metadata(graph, TN_META_WARNINGS);
    assert_non_null(warnings);
    assert_non_null(strstr(warnings, "'a'"));
    assert_non_null(strstr(warnings, "f32[N,4]"));
    assert_null(strstr(warnings, "'y'"));
    tn_graph_destroy(graph);
}

static void test_too_large(void **state) {
    (void)state;
    tn_text g = message();
    put_value(&g, 11, "x", TN_F32, "1048576,N");
    for (int i = 0; i < 40; i++) {
        char from[8], twice[20], to[8];
        tn_text attrs = message();
        snprintf(from, sizeof from, i ? "v%d" : "x", i);
        snprintf(twice, sizeof twice, "%s,%s", from, from);
        snprintf(to, sizeof to, "v%d", i + 1);
        attr_int(&attrs, "axis", 0);
        put_message(&g, 1, node_bytes("Concat", to, twice, to, attrs));
    }
    put_value(&g, 12, "v40", TN_F32, NULL);
    tn_graph *graph = loads(model_bytes(17, g)); /* N may be 0: fine */
    expands(graph);
    tn_graph_destroy(graph);
}

/* Ifs in Ifs: as deep as may be, expanded and run, with known and with unknown ranks. */
static void test_deep(void **state) {
    (void)state;
    for (int ranked = 0; ranked < 2; ranked++) {
        tn_text inner = message();
        put_node(&inner, "Neg", "r", "x", "y");
        put_value(&inner, 12, "y", TN_F32, NULL);
        for (int i = 0; i < 100; i++) {
            tn_text attrs = message(), outer = message(), other = message();
            put_node(&other, "Abs", "n", "x", "y");
            put_value(&other, 12, "y", TN_F32, NULL);
            attr_graph(&attrs, "then_branch", inner);
            attr_graph(&attrs, "else_branch", other);
            put_message(&outer, 1, node_bytes("If", "i", "c", "y", attrs));
            put_value(&outer, 12, "y", TN_F32, NULL);
            inner = outer;
        }
        put_value(&inner, 11, "c", TN_BOOL, "");
        put_value(&inner, 11, "x", TN_F32, ranked ? "N" : NULL);
        tn_graph *g = loads(model_bytes(17, inner));
        expands(g);
        gives(g, 2, (tn_tensor *[]){boolean(true), tn_tensor_from_f32(1, DIMS(2), FLOATS(1, 2))}, 1, DIMS(2),
              FLOATS(-1, -2));
        tn_graph_destroy(g);
    }
}

static tn_text everything(void) {
    tn_text g = message(), attrs = message(), then_graph = message(), else_graph = message();
    tn_text call = node_bytes("G", "call", "m", "t", message());
    put_text(&call, 7, "own");
    put_message(&then_graph, 1, call);
    put_value(&then_graph, 12, "t", 0, NULL);
    put_floats(&else_graph, 5, "k", 1, DIMS(1), FLOATS(100));
    put_node(&else_graph, "Add", "a", "x,k", "e");
    put_value(&else_graph, 12, "e", 0, NULL);
    attr_graph(&attrs, "then_branch", then_graph);
    attr_graph(&attrs, "else_branch", else_graph);
    put_value(&g, 11, "c", TN_BOOL, "");
    put_value(&g, 11, "x", TN_F32, "N");
    put_value(&g, 11, "s", TN_I64, "R");
    put_node(&g, "Mul", "square", "x,x", "m");
    put_message(&g, 1, node_bytes("If", "choose", "c", "z", attrs));
    put_node(&g, "Reshape", "late", "z,s", "y");
    put_value(&g, 12, "y", TN_F32, "N,7,7,7");
    tn_text model = model_bytes(17, g);
    put_opset(&model, 8, "own", 1);
    put_function(&model, "F", NULL, true);
    put_function(&model, "G", "F", true);
    return model;
}

/* Every allocation of expanding and running may fail: an error, and nothing leaks. */
static void test_failing_allocations(void **state) {
    (void)state;
    tn_heap *heap = tn_heap_create(NULL);
    tn_text m = everything();
    tn_onnx_options o = {.heap = heap};
    tn_tensor *in[] = {boolean(true), tn_tensor_from_f32(1, DIMS(4), FLOATS(1, 2, 3, 4)),
                       tn_tensor_from_i64(2, DIMS(2, 2))};
    uint64_t n = 0;
    bool through = false;
    while (!through) {
        tn_graph *g = tn_onnx_load_memory(m.data, m.len, NULL, NULL, &o);
        if (!g)
            fail_msg("%s", tn_error_message());
        tn_value values[3], out_value;
        tn_object *objects[3], *out = NULL;
        for (uint32_t i = 0; i < 3; i++) {
            values[i] = tn_graph_input(g, i);
            objects[i] = tn_tensor_object(in[i]);
        }
        tn_heap_fail_at(heap, ++n, true);
        tn_status status = tn_onnx_expand(g, 0);
        if (status == TN_OK) {
            out_value = tn_graph_output(g, 0);
            status = tn_interp_run(g, &(tn_interp_options){.heap = heap}, 3, values, objects, 1, &out_value, &out);
        }
        tn_heap_fail_at(heap, 0, false);
        through = status == TN_OK;
        if (!through && status != TN_ERR_MEMORY)
            fail_msg("allocation %d: %s", (int)n, tn_error_message());
        tn_object_destroy(out);
        tn_graph_destroy(g);
        assert_int_equal(tn_heap_in_use(heap), 0);
    }
    print_message("%d allocations\n", (int)n);
    for (int i = 0; i < 3; i++)
        tn_tensor_destroy(in[i]);
    tn_text_free(&m);
    tn_heap_destroy(heap);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_functions),
        cmocka_unit_test(test_function_bomb),
        cmocka_unit_test(test_legacy_broadcast),
        cmocka_unit_test(test_attribute_to_input),
        cmocka_unit_test(test_late_shape),
        cmocka_unit_test(test_late_captures),
        cmocka_unit_test(test_late_error),
        cmocka_unit_test(test_unsupported),
        cmocka_unit_test(test_checks),
        cmocka_unit_test(test_declared),
        cmocka_unit_test(test_too_large),
        cmocka_unit_test(test_deep),
        cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
