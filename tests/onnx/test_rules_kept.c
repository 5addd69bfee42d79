/* Rules of what is thrown away hold all the same: operands that change nothing, states of no step, sizes that no machine has. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/one_node.h"
#include "support/refused.h"

/* A constant: `shape` as of inputs, all elements the number. */
typedef struct constant {
    const char *name;
    int dtype;
    const char *shape;
    double number;
} constant;

static void put_constant(tn_text *g, const constant *c) {
    tn_text bytes = message();
    tn_tensor *t = zeros((input){c->dtype, c->shape});
    for (int64_t i = 0; i < t->count; i++)
        tn_store_f64((tn_dtype)c->dtype, t->data, i, c->number);
    assert_int_equal(tn_onnx_write_tensor(&bytes, t, c->name), TN_OK);
    tn_tensor_destroy(t);
    put_message(g, 5, bytes);
}

/* What does not change the result is dropped when a graph is compiled; that its size is wrong is not forgotten. */
static void test_constants(void **state) {
    (void)state;
    static const struct {
        const char *op, *inputs;
        int opset;
        input in[4];
        constant constants[7];
        const char *says;
    } list[] = {
        {"Where", "a,p,q", 16, {{TN_BOOL, "3"}}, {{"p", TN_F32, "2", 0}, {"q", TN_F32, "2", 0}}, "broadcast"},
        {"Where", "a,p,p", 16, {{TN_BOOL, "3"}}, {{"p", TN_F32, "2", 0}}, "broadcast"},
        {"Where", "a,b,p", 16, {{TN_BOOL, "2,3"}, {TN_F32, "1,3"}}, {{"p", TN_F32, "1,4", 0}}, "broadcast"},
        {"Where", "p,a,b", 16, {{TN_F32, "3"}, {TN_F32, "2"}}, {{"p", TN_BOOL, "1", 1}}, "broadcast"},
        {"Mul", "a,p", 14, {{TN_F32, "3"}}, {{"p", TN_F32, "4", 1}}, "broadcast"},
        {"Div", "a,p", 14, {{TN_F32, "2,3"}}, {{"p", TN_F32, "2,2", 1}}, "broadcast"},
        {"Add", "a,p", 14, {{TN_F32, "3"}}, {{"p", TN_F32, "4", -0.0}}, "broadcast"},
        {"Sub", "a,p", 14, {{TN_I64, "3"}}, {{"p", TN_I64, "4", 0}}, "broadcast"},
        {"And", "a,p", 7, {{TN_BOOL, "3"}}, {{"p", TN_BOOL, "4", 1}}, "broadcast"},
        {"Or", "a,p", 7, {{TN_BOOL, "3"}}, {{"p", TN_BOOL, "4", 0}}, "broadcast"},
        {"Xor", "a,p", 7, {{TN_BOOL, "3"}}, {{"p", TN_BOOL, "4", 0}}, "broadcast"},
        {"LayerNormalization", "a,p", 17, {{TN_F32, "2,3"}}, {{"p", TN_F32, "4", 1}}, "axis 0 of 'Scale' has size 4"},
        {"LayerNormalization",
         "a,b,p",
         17,
         {{TN_F32, "2,3"}, {TN_F32, "3"}},
         {{"p", TN_F32, "2", -0.0}},
         "axis 0 of 'B' has size 2"},
        {"LayerNormalization", "a,p", 17, {{TN_F32, "3"}}, {{"p", TN_F32, "1,3", 1}}, "'Scale' has rank 2"},
        {"RMSNormalization", "a,p", 23, {{TN_F32, "2,3"}}, {{"p", TN_F32, "2", 1}}, "axis 0 of 'scale' has size 2"},
        {"BatchNormalization",
         "a,p,q,b,b",
         15,
         {{TN_F32, "1,4,2"}, {TN_F32, "4"}},
         {{"p", TN_F32, "3", 1}, {"q", TN_F32, "4", -0.0}},
         "for each channel"},
        {"InstanceNormalization",
         "a,p,q",
         6,
         {{TN_F32, "1,4,2"}},
         {{"p", TN_F32, "4", 1}, {"q", TN_F32, "3", -0.0}},
         "for each channel"},
        {"PRelu", "a,p", 16, {{TN_F32, "2,3"}}, {{"p", TN_F32, "4", 1}}, "axis 0 of 'slope' has size 4"},
        {"PRelu", "a,p", 16, {{TN_F32, "3"}}, {{"p", TN_F32, "1,3", 1}}, "'slope' has rank 2"},
        {"ConvInteger",
         "a,b,,p",
         10,
         {{TN_U8, "1,1,4,4"}, {TN_U8, "3,1,2,2"}},
         {{"p", TN_U8, "2", 0}},
         "one for each output channel"},
        {"ConvInteger",
         "a,b,p",
         10,
         {{TN_U8, "1,1,4,4"}, {TN_U8, "3,1,2,2"}},
         {{"p", TN_U8, "3", 0}},
         "input 2 must be one number"},
        {"QLinearConv",
         "a,s,x,b,s,p,s,x",
         10,
         {{TN_U8, "1,1,4,4"}, {TN_U8, "3,1,2,2"}},
         {{"s", TN_F32, "", 1}, {"x", TN_U8, "", 0}, {"p", TN_U8, "2", 0}},
         "input 5 must be one number, or one for each output channel"},
        {"QLinearConv",
         "a,s,x,b,s,p,s,x",
         10,
         {{TN_U8, "1,1,4,4"}, {TN_U8, "3,1,2,2"}},
         {{"s", TN_F32, "", 1}, {"x", TN_U8, "", 0}, {"p", TN_U8, "0", 0}},
         "input 5 must be one number, or one for each output channel"},
        {"MatMulInteger", "a,b,p", 10, {{TN_U8, "3,2"}, {TN_U8, "2,4"}}, {{"p", TN_U8, "2", 0}}, "for each row"},
        {"MatMulInteger", "a,b,,p", 10, {{TN_U8, "3,2"}, {TN_U8, "2,4"}}, {{"p", TN_U8, "3", 0}}, "for each column"},
        {"MatMulInteger", "a,b,,p", 10, {{TN_U8, "3,2"}, {TN_U8, "2,4"}}, {{"p", TN_U8, "1,5", 0}}, "for each column"},
        {"QLinearMatMul",
         "a,s,x,b,s,p,s,x",
         10,
         {{TN_U8, "3,2"}, {TN_U8, "2,4"}},
         {{"s", TN_F32, "", 1}, {"x", TN_U8, "", 0}, {"p", TN_U8, "3", 0}},
         "for each column"},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        for (form how = FIXED; how <= UNKNOWN; how++) {
            tn_text g = message();
            for (const constant *c = list[i].constants; c->name; c++)
                put_constant(&g, c);
            put_message(&g, 1, node_bytes(list[i].op, "n", list[i].inputs, "y", message()));
            is_refused(g, list[i].opset, list[i].in, how, list[i].says);
        }
}

/* What is scanned is of one length, and of one batch, and states keep their shape: also of no steps and no batch; a state may be a
   constant. */
static void test_scan(void **state) {
    (void)state;
    static const struct {
        int opset, scanned;
        const char *inputs, *says;
        input in[4];
        constant constants[2];
    } list[] = {
        {8, 1, ",a,b", "axis 0 of state 0 has another size after a step", {{TN_F32, "2,1"}, {TN_F32, "2,0,3"}}, {{0}}},
        {8, 1, ",a,b", "axis 0 of state 0 has another size after a step", {{TN_F32, "0,1"}, {TN_F32, "0,2,3"}}, {{0}}},
        {8, 1, ",a,b", "axis 0 of state 0 has another size after a step", {{TN_F32, "2,1"}, {TN_F32, "2,4,3"}}, {{0}}},
        {8,
         1,
         ",p,a",
         "axis 0 of state 0 has another size after a step",
         {{TN_F32, "2,0,3"}},
         {{"p", TN_F32, "2,1", 0}}},
        {8, 1, ",a,b", "input 1 has another batch than input 2", {{TN_F32, "2,3"}, {TN_F32, "0,4,3"}}, {{0}}},
        {8, 1, "c,a,b", "input 0 has another batch", {{TN_F32, "2,3"}, {TN_F32, "2,4,3"}, {TN_I64, "3"}}, {{0}}},
        {8, 2, ",a,b", "input 2 has another number of steps", {{TN_F32, "2,4,3"}, {TN_F32, "2,5,3"}}, {{0}}},
        {8, 2, ",a,b", "input 2 has another number of steps", {{TN_F32, "2,0,3"}, {TN_F32, "2,5,3"}}, {{0}}},
        {9, 1, "a,b", "axis 0 of state 0 has another size after a step", {{TN_F32, "1"}, {TN_F32, "0,3"}}, {{0}}},
        {9, 1, "p,a", "axis 0 of state 0 has another size after a step", {{TN_F32, "0,3"}}, {{"p", TN_F32, "1", 0}}},
        {9, 2, "a,b", "input 1 has another number of steps", {{TN_F32, "0,3"}, {TN_F32, "5,3"}}, {{0}}},
        {16, 2, "a,b", "input 1 has another number of steps", {{TN_F32, "4,3"}, {TN_F32, "5,3"}}, {{0}}},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        for (form how = FIXED; how <= UNKNOWN; how++) {
            tn_text g = message(), attrs = message(), body = message();
            put_text(&body, 2, "body");
            put_value(&body, 11, "s", TN_F32, NULL);
            put_value(&body, 11, "x", TN_F32, NULL);
            put_message(&body, 1, node_bytes("Add", "n", "s,x", "t", message()));
            put_value(&body, 12, "t", TN_F32, NULL);
            attr_int(&attrs, "num_scan_inputs", list[i].scanned);
            attr_graph(&attrs, "body", body);
            for (const constant *c = list[i].constants; c->name; c++)
                put_constant(&g, c);
            put_message(&g, 1, node_bytes("Scan", "n", list[i].inputs, "y", attrs));
            is_refused(g, list[i].opset, list[i].in, how, list[i].says);
        }
}

/* Numbers that multiply sizes, as large as they come: a rule is broken, whether or not the sizes are known that it is of. */
static void test_large(void **state) {
    (void)state;
    static const struct {
        const char *op, *inputs, *attr;
        int opset;
        input in[4];
        const char *more; /* a second attribute of the same value, or NULL */
    } list[] = {
        {"GRU", "a,b,c", "hidden_size", 14, {{TN_F32, "2,1,1"}, {TN_F32, "1,3,1"}, {TN_F32, "1,3,1"}}, NULL},
        {"LSTM", "a,b,c", "hidden_size", 14, {{TN_F32, "2,1,1"}, {TN_F32, "1,4,1"}, {TN_F32, "1,4,1"}}, NULL},
        {"RNN", "a,b,c", "hidden_size", 14, {{TN_F32, "2,1,1"}, {TN_F32, "1,1,1"}, {TN_F32, "1,1,1"}}, NULL},
        {"RotaryEmbedding", "a,b,b", "num_heads", 23, {{TN_F32, "1,2,4"}, {TN_F32, "1,2,2"}}, NULL},
        {"RotaryEmbedding", "a,b,b", "rotary_embedding_dim", 23, {{TN_F32, "1,2,2,4"}, {TN_F32, "1,2,2"}}, NULL},
        {"Attention", "a,a,a", "q_num_heads", 23, {{TN_F32, "1,2,4"}}, "kv_num_heads"},
        {"LinearAttention", "a,a,a", "q_num_heads", 28, {{TN_F32, "1,2,4"}}, "kv_num_heads"},
        {"GroupNormalization", "a,b,b", "num_groups", 21, {{TN_F32, "1,6,2"}, {TN_F32, "6"}}, NULL},
        {"Conv", "a,b", "group", 22, {{TN_F32, "1,6,4,4"}, {TN_F32, "6,3,2,2"}}, NULL},
        {"ConvTranspose", "a,b", "group", 22, {{TN_F32, "1,6,4,3"}, {TN_F32, "6,3,3,3"}}, NULL},
        {"ConvInteger", "a,b", "group", 10, {{TN_U8, "2,2,2"}, {TN_U8, "4,1,1"}}, NULL},
        {"DepthToSpace", "a", "blocksize", 13, {{TN_F32, "1,6,2,2"}}, NULL},
        {"SpaceToDepth", "a", "blocksize", 13, {{TN_F32, "1,6,2,2"}}, NULL},
        {"TopK", "a", "k", 9, {{TN_F32, "2,3"}}, NULL},
        {"Split", "a", "num_outputs", 18, {{TN_F32, "6"}}, NULL},
    };
    static const int64_t values[] = {INT64_MAX,        (int64_t)1 << 62, ((int64_t)1 << 62) + 2, (int64_t)1 << 61,
                                     (int64_t)1 << 40, (int64_t)1 << 32, INT32_MAX - 1};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        for (size_t k = 0; k < sizeof values / sizeof *values; k++)
            for (form how = FIXED; how <= UNKNOWN; how++) {
                tn_text g = message(), attrs = message();
                attr_int(&attrs, list[i].attr, values[k]);
                if (list[i].more)
                    attr_int(&attrs, list[i].more, values[k]);
                bool two = strcmp(list[i].op, "TopK") == 0 || strcmp(list[i].op, "LinearAttention") == 0;
                put_message(&g, 1, node_bytes(list[i].op, "n", list[i].inputs, two ? "y,z" : "y", attrs));
                is_refused(g, list[i].opset, list[i].in, how, "");
            }
}

/* Of operands that repeat none may be left out, the last no more than others. */
static void test_repeated(void **state) {
    (void)state;
    static const struct {
        const char *op, *attr;
        int64_t value;
    } list[] = {{"Max", NULL, 0},  {"Min", NULL, 0},      {"Sum", NULL, 0},
                {"Mean", NULL, 0}, {"Concat", "axis", 0}, {"SequenceConstruct", NULL, 0}};
    static const struct {
        const char *inputs, *says;
    } left_out[] = {{"a,a,", "its input 2 has no name"},
                    {"a,", "its input 1 has no name"},
                    {",a", "input 0 is missing"},
                    {"a,,a", "input 1 is missing"}};
    static const input in[] = {{TN_F32, "2"}, {0, NULL}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        for (size_t k = 0; k < sizeof left_out / sizeof *left_out; k++)
            for (form how = FIXED; how <= UNKNOWN; how++) {
                tn_text g = message(), attrs = message();
                if (list[i].attr)
                    attr_int(&attrs, list[i].attr, list[i].value);
                put_message(&g, 1, node_bytes(list[i].op, "n", left_out[k].inputs, "y", attrs));
                is_refused(g, 13, in, how, left_out[k].says);
            }
}

/* What drops as much as there is, or less than nothing, is refused: also when nothing is to be dropped, and when only the run says so. */
static void test_ratio(void **state) {
    (void)state;
    static const input in[] = {{TN_F32, "2,3"}, {TN_F32, ""}, {0, NULL}};
    static const double ratios[] = {1, -0.5, 7, INFINITY, NAN};
    for (size_t i = 0; i < sizeof ratios / sizeof *ratios; i++)
        for (int training = 0; training < 2; training++)
            for (int fed = 0; fed < 2; fed++)
                for (form how = FIXED; how <= UNKNOWN; how++) {
                    tn_text g = message();
                    put_constant(&g, &(constant){"p", TN_F32, "", ratios[i]});
                    put_constant(&g, &(constant){"t", TN_BOOL, "", training});
                    put_node(&g, "Add", "m", "b,p", "r");
                    put_message(&g, 1, node_bytes("Dropout", "n", fed ? "a,r,t" : "a,p,t", "y", message()));
                    is_refused(g, 13, in, how, "not in [0, 1)");
                }
}

/* What sizes of several inputs have to do with each other is said in the operator's words. */
static void test_words(void **state) {
    (void)state;
    static const struct {
        const char *op, *inputs;
        int opset;
        input in[6];
        const char *attrs[2], *says;
        int64_t value;
    } list[] = {
        {"LinearAttention",
         "a,b,b",
         28,
         {{TN_F32, "1,2,4"}, {TN_F32, "1,2,6"}},
         {"q_num_heads", "kv_num_heads"},
         "heads of queries and of keys differ",
         2},
        {"LinearAttention",
         "a,a,a,b",
         28,
         {{TN_F32, "1,2,4"}, {TN_F32, "1,2,2,3"}},
         {"q_num_heads", "kv_num_heads"},
         "axis 3 of 'past_state'",
         2},
        {"Attention",
         "a,a,a,,b,c",
         23,
         {{TN_F32, "2,1,2,4"}, {TN_F32, "3,1,2,4"}, {TN_F32, "2,1,2,4"}},
         {NULL, NULL},
         "'past_key' has another size on axis 0",
         0},
        {"Attention",
         "a,a,a,,b,c",
         23,
         {{TN_F32, "2,1,2,4"}, {TN_F32, "2,1,2,4"}, {TN_F32, "2,1,2,5"}},
         {NULL, NULL},
         "'past_value' has another size on axis 3",
         0},
        {"Attention",
         "a,a,a,,,,b",
         24,
         {{TN_F32, "2,1,2,4"}, {TN_I64, "3"}},
         {NULL, NULL},
         "'nonpad_kv_seqlen' must have one entry",
         0},
        {"TensorScatter",
         "a,b,c",
         24,
         {{TN_F32, "2,4,1"}, {TN_F32, "2,3,1"}, {TN_I64, "3"}},
         {"axis", NULL},
         "'write_indices' must have one entry",
         1},
        {"QuantizeLinear", "a,b", 13, {{TN_F32, ""}, {TN_F32, "2"}}, {NULL, NULL}, "the scale must be one number", 0},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        for (form how = FIXED; how <= UNKNOWN; how++) {
            tn_text g = message(), attrs = message();
            for (int k = 0; k < 2 && list[i].attrs[k]; k++)
                attr_int(&attrs, list[i].attrs[k], list[i].value);
            bool two = strcmp(list[i].op, "LinearAttention") == 0;
            if (two)
                attr_text(&attrs, "update_rule", "linear");
            put_message(&g, 1, node_bytes(list[i].op, "n", list[i].inputs, two ? "y,z" : "y", attrs));
            is_refused(g, list[i].opset, list[i].in, how, list[i].says);
        }
    static const input in[][3] = {{{TN_F32, "1,1,2,3"}, {TN_I64, "1,1,3,2"}, {0, NULL}},
                                  {{TN_F32, "1,1,2,2"}, {TN_I64, "1,1,2,7"}, {0, NULL}},
                                  {{TN_F32, "0,1,2,2"}, {TN_I64, "1,0,2,2"}, {0, NULL}}};
    for (int i = 0; i < 3; i++)
        for (form how = FIXED; how <= UNKNOWN; how++) {
            tn_text g = message(), attrs = message();
            attr_ints(&attrs, "kernel_shape", 2, (const int64_t[]){2, 2});
            put_message(&g, 1, node_bytes("MaxUnpool", "n", "a,b", "y", attrs));
            is_refused(g, 22, in[i], how, "the indices differ from the input on axis");
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_constants), cmocka_unit_test(test_scan),
                                       cmocka_unit_test(test_large),     cmocka_unit_test(test_repeated),
                                       cmocka_unit_test(test_ratio),     cmocka_unit_test(test_words)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
