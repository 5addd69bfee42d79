/* Reading models: order, names, initializers, functions, external data, limits, and what is refused by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/onnx_bytes.h"

#include "base/os.h"

static void refused(tn_text model, tn_status status, const char *mentions) {
    tn_graph *g = load_bytes(&model);
    if (g)
        fail_msg("loaded, but should mention %s", mentions);
    assert_int_equal(tn_error_status(), status);
    if (!strstr(tn_error_message(), mentions))
        fail_msg("%s\ndoes not mention %s", tn_error_message(), mentions);
    tn_text_free(&model);
}

static tn_graph *loads(tn_text model) {
    tn_graph *g = load_bytes(&model);
    if (!g)
        fail_msg("%s", tn_error_message());
    if (tn_graph_verify(g) != TN_OK)
        fail_msg("%s", tn_error_message());
    tn_text_free(&model);
    return g;
}

static tn_text relu_graph(void) {
    tn_text g = message();
    put_value(&g, 11, "x", TN_F32, "N,3");
    put_node(&g, "Relu", "r", "x", "y");
    put_value(&g, 12, "y", TN_F32, "N,3");
    return g;
}

static void test_simple(void **state) {
    (void)state;
    tn_text m = model_bytes(17, relu_graph());
    put_text(&m, 6, "what it does");
    tn_text prop = message();
    put_text(&prop, 1, "author");
    put_text(&prop, 2, "me");
    put_message(&m, 14, prop);
    tn_graph *g = loads(m);
    assert_int_equal(tn_graph_input_count(g), 1);
    assert_int_equal(tn_graph_output_count(g), 1);
    assert_string_equal(tn_value_name(g, tn_graph_input(g, 0)), "x");
    assert_int_equal(tn_value_rank(g, tn_graph_input(g, 0)), 2);
    assert_string_equal(tn_graph_output_name(g, 0), "y");
    tn_node n = tn_region_first(g, tn_graph_region(g));
    assert_string_equal(tn_node_op_name(g, n), "onnx.Relu");
    assert_string_equal(tn_node_name(g, n), "r");
    assert_string_equal(tn_graph_metadata(g, TN_META_PRODUCER), "a test");
    assert_string_equal(tn_graph_metadata(g, TN_META_DOC), "what it does");
    assert_string_equal(tn_graph_metadata(g, TN_META_OPSET "ai.onnx"), "17");
    assert_string_equal(tn_graph_metadata(g, TN_META_PROP "author"), "me");
    assert_string_equal(tn_graph_metadata(g, TN_META_TYPE "y"), "f32[N,3]");
    tn_graph_destroy(g);
}

static void test_versions(void **state) {
    (void)state;
    tn_text m = model_bytes(99, relu_graph());
    refused(m, TN_ERR_UNSUPPORTED, "operator set 99 of domain 'ai.onnx'");
    m = model_bytes(17, relu_graph());
    tn_wire_put_varint(&m, 1, TN_ONNX_IR_NEWEST + 1);
    refused(m, TN_ERR_UNSUPPORTED, "IR version");
    tn_text none = message();
    put_message(&none, 7, relu_graph());
    refused(none, TN_ERR_MODEL, "IR version");
    none = message();
    tn_wire_put_varint(&none, 1, 8);
    put_message(&none, 7, relu_graph());
    refused(none, TN_ERR_MODEL, "operator set");
    refused(message(), TN_ERR_MODEL, "not an ONNX model");
}

static void test_order(void **state) {
    (void)state;
    tn_text g = message();
    put_value(&g, 11, "x", TN_F32, "2");
    put_node(&g, "Neg", "third", "b", "y");
    put_node(&g, "Relu", "second", "a", "b");
    put_node(&g, "Abs", "first", "x", "a");
    put_value(&g, 12, "y", TN_F32, "2");
    tn_graph *graph = loads(model_bytes(17, g));
    tn_node n = tn_region_first(graph, tn_graph_region(graph));
    assert_string_equal(tn_node_name(graph, n), "first");
    n = tn_node_next(graph, n);
    assert_string_equal(tn_node_name(graph, n), "second");
    n = tn_node_next(graph, n);
    assert_string_equal(tn_node_name(graph, n), "third");
    tn_graph_destroy(graph);

    g = message();
    put_value(&g, 11, "x", TN_F32, "2");
    put_node(&g, "Add", "ring1", "x,b", "a");
    put_node(&g, "Add", "ring2", "x,a", "b");
    put_value(&g, 12, "b", TN_F32, "2");
    refused(model_bytes(17, g), TN_ERR_MODEL, "ring");
}

/* A body that reads a value made later in the outer graph, and defines a name that the outer graph has too. */
static void test_nested_order_and_names(void **state) {
    (void)state;
    tn_text then_graph = message(), else_graph = message(), attrs = message(), g = message();
    put_node(&then_graph, "Neg", "inner", "late", "y"); /* y: also the outer node's output */
    put_value(&then_graph, 12, "y", TN_F32, NULL);
    put_floats(&else_graph, 5, "c", 1, (const int64_t[]){2}, (const float[]){1, 2});
    put_node(&else_graph, "Add", "inner2", "c,x", "z");
    put_value(&else_graph, 12, "z", TN_F32, NULL);
    attr_graph(&attrs, "else_branch", else_graph);
    attr_graph(&attrs, "then_branch", then_graph);
    put_value(&g, 11, "cond", TN_BOOL, "");
    put_value(&g, 11, "x", TN_F32, "2");
    put_message(&g, 1, node_bytes("If", "choose", "cond", "y", attrs));
    put_node(&g, "Abs", "maker", "x", "late");
    put_value(&g, 12, "y", TN_F32, NULL);
    tn_graph *graph = loads(model_bytes(17, g));
    tn_node n = tn_region_first(graph, tn_graph_region(graph));
    assert_string_equal(tn_node_name(graph, n), "maker");
    n = tn_node_next(graph, n);
    assert_string_equal(tn_node_name(graph, n), "choose");
    assert_int_equal(tn_node_region_count(graph, n), 2);
    const tn_attr *captures = tn_node_attr(graph, n, "__captures");
    assert_non_null(captures);
    assert_int_equal(captures->as.i, 2);
    assert_int_equal(tn_node_input_count(graph, n), 3);
    tn_graph_destroy(graph);
}

static void test_names(void **state) {
    (void)state;
    tn_text g = message();
    put_value(&g, 11, "x", TN_F32, "2");
    put_value(&g, 11, "x", TN_F32, "2");
    refused(model_bytes(17, g), TN_ERR_MODEL, "two inputs");
    g = message();
    put_value(&g, 11, "x", TN_F32, "2");
    put_node(&g, "Relu", "r", "x", "x");
    refused(model_bytes(17, g), TN_ERR_MODEL, "ring");
    g = message();
    put_value(&g, 11, "x", TN_F32, "2");
    put_node(&g, "Relu", "r", "x", "y");
    put_node(&g, "Neg", "s", "x", "y");
    refused(model_bytes(17, g), TN_ERR_MODEL, "'y' is made twice");
    g = message();
    put_value(&g, 11, "x", TN_F32, "2");
    put_node(&g, "Relu", "r", "nowhere", "y");
    refused(model_bytes(17, g), TN_ERR_MODEL, "nowhere");
    g = relu_graph();
    put_value(&g, 12, "phantom", TN_F32, "2");
    refused(model_bytes(17, g), TN_ERR_MODEL, "phantom");
    g = relu_graph();
    tn_text attrs = message();
    attr_int(&attrs, "axis", 1);
    attr_int(&attrs, "axis", 1);
    put_message(&g, 1, node_bytes("Softmax", "twice", "x", "z", attrs));
    refused(model_bytes(17, g), TN_ERR_MODEL, "given twice");
    g = relu_graph();
    tn_text node = message();
    tn_wire_put_bytes(&node, 1, "x\0y", 3);
    put_text(&node, 4, "Relu");
    put_message(&g, 1, node);
    refused(model_bytes(17, g), TN_ERR_MODEL, "zero byte");
}

/* Some files make a value by two Constant nodes: the last one counts. */
static void test_two_constants(void **state) {
    (void)state;
    tn_text g = message();
    for (int64_t i = 1; i <= 2; i++) {
        tn_text attrs = message(), a = message();
        put_text(&a, 1, "value");
        put_ints(&a, 5, "", 1, &i);
        tn_wire_put_varint(&a, 20, 4);
        put_message(&attrs, 5, a);
        put_message(&g, 1, node_bytes("Constant", "c", "", "y", attrs));
    }
    put_value(&g, 12, "y", TN_I64, "1");
    tn_graph *graph = loads(model_bytes(17, g));
    tn_node n = tn_region_first(graph, tn_graph_region(graph));
    assert_int_equal(tn_tensor_get_i64(tn_attr_tensor(graph, n, "value"), 0), 2);
    assert_int_equal(tn_region_last(graph, tn_graph_region(graph)).id, tn_node_next(graph, n).id);
    assert_non_null(strstr(tn_graph_metadata(graph, TN_META_WARNINGS), "'y'"));
    tn_graph_destroy(graph);
}

static void test_types(void **state) {
    (void)state;
    tn_text g = message();
    put_value(&g, 11, "a", TN_F32, "N,N,?,-1,7");
    put_value(&g, 11, "b", TN_I64, NULL);
    put_value(&g, 11, "c", TN_F16, "");
    tn_graph *graph = loads(model_bytes(17, g));
    tn_value a = tn_graph_input(graph, 0);
    assert_true(tn_dim_equal(graph, tn_value_dim(graph, a, 0), tn_value_dim(graph, a, 1)));
    assert_false(tn_dim_equal(graph, tn_value_dim(graph, a, 2), tn_value_dim(graph, a, 3)));
    int64_t seven;
    assert_true(tn_dim_is_const(graph, tn_value_dim(graph, a, 4), &seven) && seven == 7);
    assert_int_equal(tn_value_rank(graph, tn_graph_input(graph, 1)), -1);
    assert_int_equal(tn_value_rank(graph, tn_graph_input(graph, 2)), 0);
    tn_graph_destroy(graph);
    g = message();
    put_value(&g, 11, "a", TN_F32, "-2");
    refused(model_bytes(17, g), TN_ERR_MODEL, "-2");
    g = message();
    put_value(&g, 11, "untyped", 0, NULL);
    refused(model_bytes(17, g), TN_ERR_MODEL, "untyped");
    g = message();
    put_value(&g, 11, "a", 77, "2");
    refused(model_bytes(17, g), TN_ERR_MODEL, "77");
}

static void test_defaults(void **state) {
    (void)state;
    tn_text g = message();
    put_value(&g, 11, "x", TN_F32, "2");
    put_value(&g, 11, "w", TN_F32, "2");
    put_floats(&g, 5, "w", 1, (const int64_t[]){2}, (const float[]){1, 2});
    put_floats(&g, 5, "v", 1, (const int64_t[]){2}, (const float[]){3, 4});
    put_node(&g, "Add", "n", "x,w", "s");
    put_node(&g, "Add", "m", "s,v", "y");
    put_value(&g, 12, "y", TN_F32, "2");
    tn_graph *graph = loads(model_bytes(7, g));
    assert_int_equal(tn_graph_input_count(graph), 2);
    tn_value w = tn_graph_input(graph, 1);
    assert_non_null(tn_graph_input_default(graph, w));
    assert_null(tn_graph_input_default(graph, tn_graph_input(graph, 0)));
    assert_int_equal(tn_value_use_count(graph, w), 1);
    assert_int_equal(tn_onnx_use_defaults(graph, 1, &w), TN_OK);
    assert_int_equal(tn_value_use_count(graph, w), 1);
    assert_int_equal(tn_onnx_use_defaults(graph, 0, NULL), TN_OK);
    assert_int_equal(tn_value_use_count(graph, w), 0);
    assert_int_equal(tn_graph_verify(graph), TN_OK);
    tn_graph_destroy(graph);
    g = message();
    put_value(&g, 11, "w", TN_F32, "3");
    put_floats(&g, 5, "w", 1, (const int64_t[]){2}, (const float[]){1, 2});
    refused(model_bytes(7, g), TN_ERR_MODEL, "'w'");
    g = message();
    put_floats(&g, 5, "w", 1, (const int64_t[]){2}, (const float[]){1, 2});
    put_floats(&g, 5, "w", 1, (const int64_t[]){2}, (const float[]){1, 2});
    refused(model_bytes(7, g), TN_ERR_MODEL, "two initializers 'w'");
}

/* --- external data ---------------------------------------------------------------------------------------------------------------- */

static void put_entry(tn_text *tensor, const char *key, const char *value) {
    tn_text e = message();
    put_text(&e, 1, key);
    put_text(&e, 2, value);
    put_message(tensor, 13, e);
}

static tn_text external_model(const char *location, const char *offset, const char *length) {
    tn_text g = relu_graph(), t = message();
    tn_wire_put_varint(&t, 1, 2);
    tn_wire_put_varint(&t, 2, TN_F32);
    put_text(&t, 8, "w");
    if (location)
        put_entry(&t, "location", location);
    if (offset)
        put_entry(&t, "offset", offset);
    if (length)
        put_entry(&t, "length", length);
    tn_wire_put_varint(&t, 14, 1);
    put_message(&g, 5, t);
    return model_bytes(17, g);
}

static tn_status give(void *ctx, const char *location, const void **bytes, size_t *size) {
    ++*(int *)ctx;
    if (strcmp(location, "w.bin") != 0)
        return TN_ERR_IO;
    *bytes = "\0\0\0\0\0\0\x80\x3f\0\0\0\x40";
    *size = 12;
    return TN_OK;
}

static void test_external_memory(void **state) {
    (void)state;
    int calls = 0;
    tn_text m = external_model("w.bin", "4", "8");
    tn_graph *g = tn_onnx_load_memory(m.data, m.len, give, &calls, NULL);
    tn_text_free(&m);
    assert_non_null(g);
    assert_int_equal(calls, 1);
    tn_tensor *t = tn_value_constant(g, tn_graph_find_value(g, "w"));
    assert_non_null(t);
    assert_true(tn_tensor_get_f64(t, 0) == 1 && tn_tensor_get_f64(t, 1) == 2);
    tn_graph_destroy(g);
    static const struct {
        const char *location, *offset, *length, *mentions;
    } wrong[] = {
        {"w.bin", "8", NULL, "12 bytes"},
        {"w.bin", "-4", "8", "offset"},
        {"w.bin", "4", "4", "needs 8"},
        {"w.bin", "18446744073709551612", "8", "12 bytes"},
        {NULL, "0", "8", "location"},
        {"other", "0", "8", "other"},
        {"w.bin", "99999999999999999999", "8", "offset"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        m = external_model(wrong[i].location, wrong[i].offset, wrong[i].length);
        g = tn_onnx_load_memory(m.data, m.len, give, &calls, NULL);
        tn_text_free(&m);
        assert_null(g);
        if (!strstr(tn_error_message(), wrong[i].mentions))
            fail_msg("%s\ndoes not mention %s", tn_error_message(), wrong[i].mentions);
    }
    refused(external_model("w.bin", "0", "8"), TN_ERR_MODEL, "w.bin");
}

/* --- limits, copies, failing allocations -------------------------------------------------------------------------------------------- */

static tn_text model_with_everything(void) {
    tn_text g = message(), attrs = message(), then_graph = message(), else_graph = message();
    put_value(&g, 11, "cond", TN_BOOL, "");
    put_value(&g, 11, "x", TN_F32, "N,2");
    put_floats(&g, 5, "w", 1, (const int64_t[]){2}, (const float[]){1, 2});
    put_node(&then_graph, "Add", "a", "x,w", "t");
    put_value(&then_graph, 12, "t", TN_F32, NULL);
    put_floats(&else_graph, 5, "k", 1, (const int64_t[]){2}, (const float[]){3, 4});
    put_node(&else_graph, "Mul", "m", "x,k", "e");
    put_value(&else_graph, 12, "e", TN_F32, NULL);
    attr_graph(&attrs, "then_branch", then_graph);
    attr_graph(&attrs, "else_branch", else_graph);
    put_node(&g, "Neg", "out", "y", "z");
    put_message(&g, 1, node_bytes("If", "choose", "cond", "y", attrs));
    tn_text call_attrs = message();
    attr_int(&call_attrs, "k", -1);
    tn_text call = node_bytes("F", "call", "z", "r", call_attrs);
    put_text(&call, 7, "own");
    put_message(&g, 1, call);
    put_value(&g, 13, "z", TN_F32, "N,2");
    put_value(&g, 12, "r", TN_F32, "N,2");
    tn_text m = model_bytes(17, g), f = message(), refs = message();
    put_opset(&m, 8, "own", 1);
    put_text(&f, 1, "F");
    put_text(&f, 4, "in");
    put_text(&f, 5, "out");
    put_text(&f, 6, "k");
    put_text(&f, 10, "own");
    attr_ref(&refs, "axis", "k", 2);
    put_message(&f, 7, node_bytes("Softmax", "s", "in", "out", refs));
    put_opset(&f, 9, "", 13);
    put_message(&m, 25, f);
    return m;
}

static void test_everything_fails_cleanly(void **state) {
    (void)state;
    tn_heap *heap = tn_heap_create(NULL);
    tn_text m = model_with_everything();
    tn_onnx_options o = {.heap = heap};
    uint64_t before = tn_heap_allocations(heap);
    tn_graph *g = tn_onnx_load_memory(m.data, m.len, NULL, NULL, &o);
    if (!g)
        fail_msg("%s", tn_error_message());
    assert_int_equal(tn_graph_verify(g), TN_OK);
    tn_graph *copy = tn_graph_clone(g, NULL, NULL);
    assert_non_null(copy);
    tn_graph_destroy(g);
    assert_int_equal(tn_graph_verify(copy), TN_OK); /* rows of unknown operators came along */
    tn_graph_destroy(copy);
    uint64_t count = tn_heap_allocations(heap) - before;
    for (uint64_t n = 1; n < count; n++) {
        tn_heap_fail_at(heap, n, true);
        g = tn_onnx_load_memory(m.data, m.len, NULL, NULL, &o);
        tn_heap_fail_at(heap, 0, false);
        if (g) {
            tn_graph_destroy(g);
            break;
        }
        assert_int_equal(tn_error_status(), TN_ERR_MEMORY);
        assert_int_equal(tn_heap_in_use(heap), 0);
    }
    tn_text_free(&m);
    assert_int_equal(tn_heap_in_use(heap), 0);
    tn_heap_destroy(heap);
}

static void test_limits(void **state) {
    (void)state;
    tn_text m = model_with_everything();
    tn_onnx_options o = {.max_bytes = 8};
    assert_null(tn_onnx_load_memory(m.data, m.len, NULL, NULL, &o));
    assert_int_equal(tn_error_status(), TN_ERR_LIMIT);
    o.max_bytes = m.len;
    tn_graph *g = tn_onnx_load_memory(m.data, m.len, NULL, NULL, &o);
    assert_non_null(g);
    tn_graph_destroy(g);
    tn_text_free(&m);
    /* 100 nested graphs are fine, 200 are refused */
    for (int depth = 100; depth <= 200; depth += 100) {
        tn_text inner = message();
        put_node(&inner, "Relu", "r", "x", "y");
        put_value(&inner, 12, "y", TN_F32, NULL);
        for (int i = 0; i < depth; i++) {
            tn_text attrs = message(), outer = message(), other = message();
            put_node(&other, "Neg", "n", "x", "y");
            put_value(&other, 12, "y", TN_F32, NULL);
            attr_graph(&attrs, "then_branch", inner);
            attr_graph(&attrs, "else_branch", other);
            put_message(&outer, 1, node_bytes("If", "i", "c", "y", attrs));
            put_value(&outer, 12, "y", TN_F32, NULL);
            inner = outer;
        }
        put_value(&inner, 11, "x", TN_F32, "2");
        put_value(&inner, 11, "c", TN_BOOL, "");
        m = model_bytes(17, inner);
        if (depth == 100)
            tn_graph_destroy(loads(m));
        else
            refused(m, TN_ERR_LIMIT, "nested");
    }
}

/* A gibibyte of weights costs almost nothing to load, and a copy is made only when asked for. */
static void test_large_file(void **state) {
    (void)state;
    char path[] = "/tmp/tenon_large_XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    const uint64_t bytes = (uint64_t)1 << 30;
    tn_text graph = relu_graph(), head = message(), tensor = message(), model = message();
    tn_wire_put_varint(&tensor, 1, bytes / 4);
    tn_wire_put_varint(&tensor, 2, TN_F32);
    put_text(&tensor, 8, "w");
    /* raw_data (9) last, then the lengths around it by hand: the weights are a hole in the file */
    put_text(&graph, 2, "g");
    tn_text raw = message();
    tn_wire_put_varint(&raw, 9, bytes); /* key 0x48: a varint's key; made a length's below */
    raw.data[0] = (char)TN_WIRE_KEY(9, TN_WIRE_BYTES);
    uint64_t tensor_size = tensor.len + raw.len + bytes;
    tn_text in_graph = message();
    tn_wire_put_varint(&in_graph, 5, tensor_size);
    in_graph.data[0] = (char)TN_WIRE_KEY(5, TN_WIRE_BYTES);
    uint64_t graph_size = graph.len + in_graph.len + tensor_size;
    tn_wire_put_varint(&model, 1, 10);
    put_opset(&model, 8, "", 17);
    tn_text in_model = message();
    tn_wire_put_varint(&in_model, 7, graph_size);
    in_model.data[0] = (char)TN_WIRE_KEY(7, TN_WIRE_BYTES);
    const tn_text *parts[] = {&model, &in_model, &graph, &in_graph, &tensor, &raw};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        tn_text_bytes(&head, parts[i]->data, parts[i]->len);
    FILE *file = fdopen(fd, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(head.data, 1, head.len, file), head.len);
    assert_int_equal(fseek(file, (long)(bytes - 1), SEEK_CUR), 0);
    assert_int_equal(fputc(0, file), 0);
    assert_int_equal(fclose(file), 0);
    size_t rss = tn_rss_bytes(), heap = tn_heap_in_use(tn_heap_default());
    double begin = tn_clock();
    tn_graph *g = tn_onnx_load_file(path, NULL);
    double seconds = tn_clock() - begin;
    if (!g)
        fail_msg("%s", tn_error_message());
    print_message("1 GiB in %d us, %zu KiB resident\n", (int)(seconds * 1e6), (tn_rss_bytes() - rss) >> 10);
    assert_true(tn_rss_bytes() < rss + ((size_t)20 << 20));
    assert_true(tn_heap_in_use(tn_heap_default()) < heap + ((size_t)1 << 20));
    tn_graph_destroy(g);
    tn_onnx_options limited = {.max_bytes = 1 << 20};
    assert_null(tn_onnx_load_file(path, &limited));
    assert_int_equal(tn_error_status(), TN_ERR_LIMIT);
    remove(path);
    tn_text *all[] = {&graph, &head, &tensor, &model, &raw, &in_graph, &in_model};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        tn_text_free(all[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_simple),          cmocka_unit_test(test_versions),
        cmocka_unit_test(test_order),           cmocka_unit_test(test_nested_order_and_names),
        cmocka_unit_test(test_names),           cmocka_unit_test(test_two_constants),
        cmocka_unit_test(test_types),           cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_external_memory), cmocka_unit_test(test_everything_fails_cleanly),
        cmocka_unit_test(test_limits),          cmocka_unit_test(test_large_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
