/* What is known of the outputs of nodes that wait until they run: element type, rank and sizes, of every kind of row in foresee.c.
   That none of it is false is interp/shapes' to show, over the standard's suite with no shape known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/one_node.h"
#include "support/shape_checks.h"

/* "axis=1 perm=[2,0,1]" as attributes. */
static tn_text attributes(const char *text) {
    tn_text attrs = message();
    for (const char *p = text; *p; p += strspn(p, " ")) {
        char name[64];
        size_t n = strcspn(p, "=");
        snprintf(name, sizeof name, "%.*s", (int)n, p);
        p += n + 1;
        bool list = *p == '[';
        int64_t values[8];
        uint32_t count = 0;
        char *end;
        do {
            values[count++] = strtoll(p + list, &end, 10);
            p = end;
        } while (list && *p == ',' && count < 8);
        p += *p == ']';
        if (list)
            attr_ints(&attrs, name, count, values);
        else
            attr_int(&attrs, name, values[0]);
    }
    return attrs;
}

/* The type of a value, "f32[N,?]": "?" where data decide. */
static void describe(const tn_graph *g, tn_value v, char *out, size_t size) {
    int rank = tn_value_rank(g, v);
    tn_text text;
    tn_text_init(&text, NULL);
    tn_text_printf(&text, "%s[%s", tn_value_type(g, v).id ? tn_dtype_name(tn_value_dtype(g, v)) : "unknown",
                   rank < 0 ? "*" : "");
    for (int i = 0; i < rank; i++) {
        tn_dim dim = tn_value_dim(g, v, i);
        const tn_dim_expr *e = &g->dims.expr.data[dim.id];
        tn_text_add(&text, i ? "," : "");
        if (e->kind == TN_DIM_SYMBOL && g->dims.symbol.data[e->symbol].fresh)
            tn_text_add(&text, "?");
        else
            tn_dim_print(&g->dims, dim, &text);
    }
    tn_text_add(&text, "]");
    snprintf(out, size, "%s", text.data);
    tn_text_free(&text);
}

/* An input: "f32[N,3]", "f32" without rank, "" absent. */
static void put_input(tn_text *g, const char *name, const char *type) {
    char text[64], *shape;
    snprintf(text, sizeof text, "%s", type);
    shape = strchr(text, '[');
    if (shape) {
        *shape++ = 0;
        shape[strlen(shape) - 1] = 0;
    }
    put_value(g, 11, name, (int)tn_dtype_from_name(text), shape);
}

typedef struct node_case {
    const char *op, *attrs;
    const char *in[6];
    const char *want[3]; /* of the outputs */
} node_case;

static const node_case cases[] = {
    /* no rank, but what the operator gives */
    {"Shape", "", {"f32"}, {"i64[?]"}},
    {"Size", "", {"f32"}, {"i64[]"}},
    {"Equal", "", {"f32", "f32[3]"}, {"bool[*]"}},
    {"Not", "", {"bool"}, {"bool[*]"}},
    {"Cast", "to=7", {"f32"}, {"i64[*]"}},
    {"CastLike", "", {"f32", "f16[2]"}, {"f16[*]"}},
    {"Relu", "", {"f32"}, {"f32[*]"}},
    {"Add", "", {"f32", "f32[3]"}, {"f32[*]"}},
    {"RMSNormalization", "", {"f32", "f16[3]"}, {"f16[*]"}},
    {"Where", "", {"bool", "i32", "i32[2]"}, {"i32[*]"}},
    {"QuantizeLinear", "", {"f32", "f32[]", "i8[]"}, {"i8[*]"}},
    {"QuantizeLinear", "", {"f32", "f32[]"}, {"u8[*]"}},
    {"DequantizeLinear", "", {"i8", "f32[]"}, {"f32[*]"}},
    {"NonZero", "", {"f32"}, {"i64[?,?]"}},
    {"Range", "", {"i64", "i64", "i64"}, {"i64[?]"}},
    {"Gemm", "", {"f32", "f32[3,4]"}, {"f32[?,?]"}},
    {"Flatten", "", {"f32"}, {"f32[?,?]"}},
    {"Transpose", "perm=[1,0,2]", {"f32"}, {"f32[?,?,?]"}},
    {"ReduceMax", "keepdims=0", {"f32"}, {"f32[]"}},
    {"ReduceMax", "keepdims=1", {"f32"}, {"f32[*]"}},
    {"Reshape", "", {"f32", "i64[3]"}, {"f32[?,?,?]"}},
    {"Tile", "", {"f32", "i64[2]"}, {"f32[?,?]"}},
    {"Pad", "", {"f32", "i64[6]"}, {"f32[?,?,?]"}},
    /* rank and sizes from weights and other inputs */
    {"Conv", "", {"f32", "f32[8,3,3,3]"}, {"f32[?,8,?,?]"}},
    {"ConvTranspose", "group=2", {"f32", "f32[4,8,3]"}, {"f32[?,16,?]"}},
    {"MaxPool", "kernel_shape=[2,2]", {"f32"}, {"f32[?,?,?,?]", "i64[?,?,?,?]"}},
    {"LSTM", "hidden_size=4", {"f32", "f32[1,16,3]", "f32[1,16,4]"}, {"f32[?,1,?,4]", "f32[1,?,4]", "f32[1,?,4]"}},
    {"GRU", "hidden_size=4 layout=1", {"f32", "f32[1,12,3]", "f32[1,12,4]"}, {"f32[?,?,1,4]", "f32[?,1,4]"}},
    {"Concat", "axis=1", {"f32", "f32[2,3]"}, {"f32[2,?]"}},
    /* what is known but for a fed axis, number or list */
    {"CumSum", "", {"f32[N,3]", "i64[]"}, {"f32[N,3]"}},
    {"TopK", "", {"f32[N,4]", "i64[1]"}, {"f32[N,?]", "i64[N,?]"}},
    {"TopK", "axis=0", {"f32[N,4]", "i64[1]"}, {"f32[?,4]", "i64[?,4]"}},
    {"Slice", "", {"f32[N,4]", "i64[K]", "i64[K]"}, {"f32[?,?]"}},
    {"Slice", "", {"f32[N,4]", "i64[1]", "i64[1]", "i64[1]"}, {"f32[?,?]"}},
    {"ReduceSum", "keepdims=1", {"f32[N,1,4]", "i64[1]"}, {"f32[?,1,?]"}},
    {"ReduceSum", "keepdims=0", {"f32[N,1,4]", "i64[1]"}, {"f32[?,?]"}},
    {"ReduceSum", "keepdims=0", {"f32[N,1,4]", "i64[K]"}, {"f32[*]"}},
    {"Resize", "", {"f32[1,3,N,N]", "", "f32[4]"}, {"f32[?,?,?,?]"}},
    {"Resize", "", {"f32", "", "", "i64[4]"}, {"f32[?,?,?,?]"}},
    {"Unsqueeze", "", {"f32[N]", "i64[2]"}, {"f32[?,?,?]"}},
    {"Squeeze", "", {"f32[N,1,1]", "i64[2]"}, {"f32[?]"}},
    {"Squeeze", "", {"f32[N,1,1]"}, {"f32[*]"}},
    {"Split", "axis=1", {"f32[N,4]", "i64[2]"}, {"f32[N,?]", "f32[N,?]"}},
    {"OneHot", "", {"i64[N]", "i64[]", "f16[2]"}, {"f16[?,?]"}},
    {"CenterCropPad", "", {"f32[N,4]", "i64[2]"}, {"f32[?,?]"}},
    {"AffineGrid", "", {"f32[N,2,3]", "i64[4]"}, {"f32[?,?,?,?]"}},
    {"Col2Im", "", {"f32[N,12,4]", "i64[2]", "i64[2]"}, {"f32[?,?,?,?]"}},
    {"HannWindow", "", {"i64[]"}, {"f32[?]"}},
};

static void check(const node_case *c) {
    static const char *const names[] = {"a", "b", "c", "d", "e", "f"}, *const results[] = {"x", "y", "z"};
    tn_text g = message();
    char inputs[32] = "", outputs[16] = "", text[200];
    for (int i = 0; i < 6 && c->in[i]; i++) {
        snprintf(inputs + strlen(inputs), sizeof inputs - strlen(inputs), "%s%s", i ? "," : "",
                 *c->in[i] ? names[i] : "");
        if (*c->in[i])
            put_input(&g, names[i], c->in[i]);
    }
    for (int i = 0; i < 3 && c->want[i]; i++) {
        snprintf(outputs + strlen(outputs), sizeof outputs - strlen(outputs), "%s%s", i ? "," : "", results[i]);
        put_value(&g, 12, results[i], 0, NULL);
    }
    put_message(&g, 1, node_bytes(c->op, "node", inputs, outputs, attributes(c->attrs)));
    tn_text model = model_bytes(23, g);
    tn_graph *graph = load_bytes(&model);
    if (!graph || tn_onnx_expand(graph, 0) != TN_OK || tn_graph_verify(graph) != TN_OK)
        fail_msg("%s: %s", c->op, tn_error_message());
    for (uint32_t i = 0; i < 3 && c->want[i]; i++) {
        describe(graph, tn_graph_output(graph, i), text, sizeof text);
        if (strcmp(text, c->want[i]) != 0)
            fail_msg("%s %s, output %u: %s, not %s", c->op, c->attrs, (unsigned)i, text, c->want[i]);
    }
    tn_graph_destroy(graph);
    tn_text_free(&model);
}

static void test_nodes(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(&cases[i]);
}

/* Branches of different ranks, and a condition that shapes decide: y is what the branch gives that is taken. */
static void test_condition(void **state) {
    (void)state;
    static const struct {
        const char *shape, *want;
    } tries[] = {{"2,N", "f32[2,N]"}, {"0,N", "f32[0]"}, {"M,N", "f32[*]"}};
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        tn_text g = message(), attrs = message(), branch[2] = {message(), message()}, to = message();
        put_node(&branch[0], "Relu", "r", "a", "t");
        put_node(&branch[1], "Reshape", "s", "a,list", "e");
        for (int k = 0; k < 2; k++) {
            put_text(&branch[k], 2, "branch");
            put_value(&branch[k], 12, k ? "e" : "t", TN_F32, NULL);
            attr_graph(&attrs, k ? "else_branch" : "then_branch", branch[k]);
        }
        put_ints(&g, 5, "zero", 1, (const int64_t[]){0});
        put_ints(&g, 5, "list", 1, (const int64_t[]){-1});
        attr_int(&to, "to", TN_BOOL);
        put_value(&g, 11, "a", TN_F32, tries[i].shape);
        put_node(&g, "Shape", "s", "a", "shape");
        put_node(&g, "Gather", "g", "shape,zero", "first");
        put_message(&g, 1, node_bytes("Cast", "c", "first", "go", to));
        put_message(&g, 1, node_bytes("If", "i", "go", "y", attrs));
        put_value(&g, 12, "y", 0, NULL);
        tn_text model = model_bytes(23, g);
        tn_graph *graph = load_bytes(&model);
        char text[200];
        if (!graph || tn_onnx_expand(graph, 0) != TN_OK)
            fail_msg("%s", tn_error_message());
        describe(graph, tn_graph_output(graph, 0), text, sizeof text);
        assert_string_equal(text, tries[i].want);
        tn_graph_destroy(graph);
        tn_text_free(&model);
    }
}

/* Truth that shapes decide, as a number, as a size. */
static void test_truth(void **state) {
    (void)state;
    static const struct {
        const char *shape, *want;
    } tries[] = {{"3,N", "f32[1]"}, {"2,N", "f32[0]"}, {"M,N", "f32[?]"}};
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        tn_text g = message(), to = message();
        put_ints(&g, 5, "zero", 1, (const int64_t[]){0});
        put_ints(&g, 5, "three", 1, (const int64_t[]){3});
        attr_int(&to, "to", TN_I64);
        put_value(&g, 11, "a", TN_F32, tries[i].shape);
        put_node(&g, "Shape", "s", "a", "shape");
        put_node(&g, "Gather", "g", "shape,zero", "first");
        put_node(&g, "Equal", "e", "first,three", "same");
        put_message(&g, 1, node_bytes("Cast", "c", "same", "size", to));
        put_node(&g, "ConstantOfShape", "f", "size", "y");
        put_value(&g, 12, "y", 0, NULL);
        tn_text model = model_bytes(20, g);
        tn_graph *graph = load_bytes(&model);
        char text[200];
        if (!graph || tn_onnx_expand(graph, 0) != TN_OK)
            fail_msg("%s", tn_error_message());
        describe(graph, tn_graph_output(graph, 0), text, sizeof text);
        assert_string_equal(text, tries[i].want);
        tn_graph_destroy(graph);
        tn_text_free(&model);
    }
}

/* A loop over the rows of a: what it slices at its own number, and how often it does. */
typedef struct loop_case {
    const char *shape; /* of a */
    int64_t trips;     /* -1: as many as a has rows */
    int64_t from, to;  /* added to the number of the trip */
    bool ends;         /* the body may end it */
    const char *want;  /* of the stacked slices */
} loop_case;

static void check_loop(const loop_case *c) {
    tn_text g = message(), body = message(), attrs = message();
    put_value(&body, 11, "i", TN_I64, "");
    put_value(&body, 11, "go", TN_BOOL, "");
    put_node(&body, "Add", "n0", "i,from", "start");
    put_node(&body, "Add", "n1", "i,to", "end");
    put_node(&body, "Slice", "n2", "a,start,end", "rows");
    put_node(&body, c->ends ? "Less" : "Identity", "n3", c->ends ? "start,end" : "go", "on0");
    put_node(&body, "Squeeze", "n4", "on0", "on");
    put_text(&body, 2, "body");
    put_value(&body, 12, "on", TN_BOOL, "");
    put_value(&body, 12, "rows", TN_F32, NULL);
    attr_graph(&attrs, "body", body);
    put_ints(&g, 5, "from", 1, &c->from);
    put_ints(&g, 5, "to", 1, &c->to);
    put_ints(&g, 5, "zero", 1, (const int64_t[]){0});
    put_ints(&g, 5, "number", 1, &c->trips);
    put_value(&g, 11, "a", TN_F32, c->shape);
    if (c->trips < 0) {
        put_node(&g, "Shape", "s", "a", "shape");
        put_node(&g, "Gather", "g", "shape,zero", "trips");
    } else {
        put_node(&g, "Identity", "s", "number", "trips");
    }
    put_message(&g, 1, node_bytes("Loop", "l", "trips,", "y", attrs));
    put_value(&g, 12, "y", 0, NULL);
    tn_text model = model_bytes(20, g);
    tn_graph *graph = load_bytes(&model);
    if (!graph || tn_onnx_expand(graph, 0) != TN_OK || tn_graph_verify(graph) != TN_OK)
        fail_msg("%s", tn_error_message());
    char text[200];
    describe(graph, tn_graph_output(graph, 0), text, sizeof text);
    if (strcmp(text, c->want) != 0)
        fail_msg("a %s, %d trips, %d to %d: %s, not %s", c->shape, (int)c->trips, (int)c->from, (int)c->to, text,
                 c->want);
    tn_tensor *a = tn_tensor_create(TN_F32, 2, (const int64_t[]){3, 4});
    tn_object *objects[] = {tn_tensor_object(a)};
    const tn_value in[] = {tn_graph_input(graph, 0)};
    shape_tally tally = {0};
    (void)shapes_run(graph, 1, in, objects, &tally); /* rows of several sizes are not stacked */
    if (tally.wrong)
        fail_msg("%s", tally.first);
    tn_tensor_destroy(a);
    tn_graph_destroy(graph);
    tn_text_free(&model);
}

static void test_loops(void **state) {
    (void)state;
    static const loop_case loops[] = {
        {"3,4", 3, 0, 1, false, "f32[3,1,4]"},  {"3,4", 2, 1, 2, false, "f32[2,1,4]"},
        {"3,4", 2, 0, 2, false, "f32[2,2,4]"},  {"3,4", 3, 0, 2, false, "f32[3,?,4]"}, /* leaves the axis */
        {"3,4", 3, -1, 1, false, "f32[3,?,4]"}, {"3,4", 3, 1, 0, false, "f32[3,?,4]"},
        {"3,4", 0, 0, 1, false, "f32[0,1,4]"},  {"M,4", 3, 0, 1, false, "f32[3,?,4]"},
        {"M,4", -1, 0, 1, false, "f32[M,?,4]"}, {"3,4", 3, 0, 1, true, "f32[?,1,4]"},
    };
    for (size_t i = 0; i < sizeof loops / sizeof *loops; i++)
        check_loop(&loops[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_nodes), cmocka_unit_test(test_condition),
                                       cmocka_unit_test(test_truth), cmocka_unit_test(test_loops)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
