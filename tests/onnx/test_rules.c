/* What the operators' texts forbid is refused by both back ends alike, whether the file says the shapes or only the run does. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include "support/refused.h"

/* The outputs that an operator must have, y the first. */
static const char *outputs_of(const char *op) {
    static const char *const two[] = {"TopK", "LinearAttention", "CausalConvWithState"};
    for (size_t i = 0; i < sizeof two / sizeof *two; i++)
        if (strcmp(op, two[i]) == 0)
            return "y,z";
    return "y";
}

typedef struct rule {
    const char *op, *inputs;
    int opset;
    input in[5];
    const char *attr; /* an integer attribute, or NULL */
    int64_t value;
    const char *says;
} rule;

static const rule rules[] = {
    /* attributes that say yes or no */
    {"CumSum", "a,b", 14, {{TN_F32, "3"}, {TN_I64, ""}}, "exclusive", -1, "'exclusive' is -1"},
    {"CumSum", "a,b", 14, {{TN_F32, "3"}, {TN_I64, "2"}}, NULL, 0, "'axis' must be a scalar"},
    {"CumSum", "a,b", 14, {{TN_F32, "3"}, {TN_I64, "0"}}, NULL, 0, "'axis' must be a scalar"},
    {"CumProd", "a,b", 26, {{TN_F32, "3"}, {TN_I64, "1,1"}}, NULL, 0, "'axis' must be a scalar"},
    {"OneHot", "a,b,c", 11, {{TN_I64, "3"}, {TN_I64, "2"}, {TN_F32, "2"}}, NULL, 0, "'depth' must be a scalar"},
    {"Trilu", "a,b", 14, {{TN_F32, "3,3"}, {TN_I64, "2"}}, NULL, 0, "'k' must be a scalar"},
    {"Slice", "a,b,c", 13, {{TN_F32, "3,3"}, {TN_I64, "2"}, {TN_I64, "1"}}, NULL, 0, "starts"},
    {"ReduceSum", "a", 13, {{TN_F32, "3"}}, "keepdims", 2, "from 0 to 1"},
    {"Flatten", "a", 10, {{TN_F32, "2,3"}}, "axis", -1, "attribute 'axis' is -1"},
    {"Flatten", "a", 28, {{TN_F32, "2,3"}}, "axis", -3, "attribute 'axis' is -3"},
    /* what came with later versions */
    {"Shape", "a", 13, {{TN_F32, "3"}}, "start", 0, "before version 15"},
    {"Unsqueeze", "a,b", 11, {{TN_F32, "3"}, {TN_I64, "1"}}, NULL, 0, "version 11 has no input 1"},
    {"Attention", "a,b,b", 23, {{TN_F32, "2,1,3,4"}, {TN_F32, "1,1,3,4"}}, NULL, 0, "'K' must have the batch of 'Q'"},
    {"Attention",
     "a,b,b",
     23,
     {{TN_F32, "2,1,3,4"}, {TN_F32, "2,1,3,5"}},
     NULL,
     0,
     "heads of 'K' must have the size of those of 'Q'"},
    {"Attention", "a,a,b", 23, {{TN_F32, "2,1,3,4"}, {TN_F32, "2,1,4,4"}}, NULL, 0, "'V' must have the length of 'K'"},
    {"Dropout", "a,b", 13, {{TN_F32, "3"}, {TN_F32, "1"}}, NULL, 0, "ratio must be a scalar"},
    {"Dropout", "a,b,c", 13, {{TN_F32, "3"}, {TN_F32, ""}, {TN_BOOL, "1"}}, NULL, 0, "training_mode must be a scalar"},
    {"Dropout", "a,b", 11, {{TN_F32, "3"}, {TN_F32, ""}}, NULL, 0, "version 11 has no input 1"},
    /* element types */
    {"Softsign", "a", 22, {{TN_I32, "3"}}, NULL, 0, "type i32, which Softsign does not take"},
    {"ReduceLogSumExp", "a", 28, {{TN_I32, "3"}}, NULL, 0, "does not take in operator set 28"}, /* taken up to 27 */
    {"Erf", "a", 13, {{TN_I32, "3"}}, NULL, 0, "does not take in operator set 13"},             /* taken up to 12 */
    {"Abs", "a", 12, {{TN_BF16, "3"}}, NULL, 0, "does not take in operator set 12"},
    {"Equal", "a,a", 10, {{TN_F32, "3"}}, NULL, 0, "does not take in operator set 10"},
    {"DequantizeLinear", "a,b", 20, {{TN_I16, "3"}, {TN_F32, ""}}, NULL, 0, "does not take in operator set 20"},
    {"Sum", "a,a", 13, {{TN_STRING, "2"}}, NULL, 0, "which Sum does not take"},
    {"Add", "a,b", 14, {{TN_F32, "2"}, {TN_F64, "2"}}, NULL, 0, "must be of the same"},
    {"Max", "a,a,b", 13, {{TN_F32, "2"}, {TN_I32, "2"}}, NULL, 0, "must be of the same"},
    {"ai.onnx.ml.Scaler", "a", 3, {{TN_STRING, "2"}}, NULL, 0, "which Scaler does not take"},
    /* parameters that are scalars, or lists */
    {"HannWindow", "a", 17, {{TN_I64, "1"}}, NULL, 0, "must be a scalar"},
    {"ConstantOfShape", "a", 20, {{TN_I64, ""}}, NULL, 0, "must be a list"},
    {"Reshape", "a,b", 21, {{TN_F32, "1"}, {TN_I64, ""}}, NULL, 0, "must be a list"},
    {"TopK", "a,b", 11, {{TN_F32, "3"}, {TN_I64, ""}}, NULL, 0, "must be a list"},
    {"Multinomial", "a", 15, {{TN_F32, "2,0"}}, "sample_size", 3, "there are no classes to draw from"},
    {"Clip", "a,b", 11, {{TN_F32, "3"}, {TN_F32, "1,1"}}, NULL, 0, "'min' has rank 2, it must be a scalar"},
    {"Clip", "a,,b", 13, {{TN_F32, "3"}, {TN_F32, "2"}}, NULL, 0, ""},
    {"Clip", "a,b", 13, {{TN_F32, "3"}, {TN_F32, "0"}}, NULL, 0, ""},
    {"NonMaxSuppression",
     "a,b,c",
     11,
     {{TN_F32, "1,2,4"}, {TN_F32, "1,1,2"}, {TN_I64, "0"}},
     NULL,
     0,
     "'max_output_boxes_per_class' has 0 elements"},
    {"NonMaxSuppression",
     "a,b,,c",
     11,
     {{TN_F32, "1,2,4"}, {TN_F32, "1,1,2"}, {TN_F32, "2"}},
     NULL,
     0,
     "'iou_threshold' has 2 elements"},
    {"NonMaxSuppression",
     "a,b,,,c",
     11,
     {{TN_F32, "1,2,4"}, {TN_F32, "1,1,2"}, {TN_F32, "0"}},
     NULL,
     0,
     "'score_threshold' has 0 elements"},
    /* sizes of two inputs, where as many elements would pass */
    {"NegativeLogLikelihoodLoss", "a,b", 22, {{TN_F32, "1,4,3"}, {TN_I64, "3,1"}}, NULL, 0, "the targets differ"},
    {"NegativeLogLikelihoodLoss",
     "a,b,c",
     22,
     {{TN_F32, "1,4,3"}, {TN_I64, "1,3"}, {TN_F32, "5"}},
     NULL,
     0,
     "for each class"},
    {"SoftmaxCrossEntropyLoss", "a,b", 13, {{TN_F32, "2,2,1,2"}, {TN_I64, "2,2,1"}}, NULL, 0, "the targets differ"},
    {"LSTM",
     "a,b,c",
     14,
     {{TN_F32, "3,1,2"}, {TN_F32, "8,1,2"}, {TN_F32, "1,8,2"}},
     "hidden_size",
     2,
     "'W' has the wrong size"},
    {"GRU",
     "a,b,c,,d",
     14,
     {{TN_F32, "2,2,1"}, {TN_F32, "1,3,1"}, {TN_F32, "1,3,1"}, {TN_I32, "1"}},
     "hidden_size",
     1,
     "'sequence_lens' has the wrong size"},
    {"SwiGLU", "a,b", 28, {{TN_F32, "2,4,4"}, {TN_F32, "4,2,4"}}, NULL, 0, "differ on axis 0"},
    {"GridSample", "a,b", 20, {{TN_F32, "1,1,3,1"}, {TN_F32, "2,4,2,1"}}, NULL, 0, "the last axis of the grid"},
    {"TensorScatter",
     "a,b,c",
     24,
     {{TN_F32, "2,6,3"}, {TN_F32, "3,3,2"}, {TN_I64, "2"}},
     "axis",
     1,
     "differ on axis 0"},
    {"RotaryEmbedding",
     "a,b,b",
     23,
     {{TN_F32, "1,1,2,4"}, {TN_F32, "2,1,2"}},
     NULL,
     0,
     "'cos_cache' has the wrong size"},
    {"BatchNormalization",
     "a,b,b,c,b",
     15,
     {{TN_F32, "1,4,2"}, {TN_F32, "4"}, {TN_F32, "3"}},
     "training_mode",
     1,
     "'mean' must have one entry for each channel"},
    {"DequantizeLinear",
     "a,b",
     21,
     {{TN_U8, "1,4,2,1"}, {TN_F32, "1,4,1,1"}},
     "block_size",
     1,
     "the scale's size on axis 2"},
    /* sizes of what has no elements */
    {"DepthToSpace", "a", 13, {{TN_F32, "0,13,3,3"}}, "blocksize", 2, "is no multiple of 4"},
    {"SpaceToDepth", "a", 13, {{TN_F32, "0,1,4,3"}}, "blocksize", 2, "is no multiple of 2"},
    {"RoiAlign",
     "a,b,c",
     16,
     {{TN_F32, "1,1,4,4"}, {TN_F32, "0,3"}, {TN_I64, "0"}},
     NULL,
     0,
     "the regions must have the shape [regions, 4]"},
    {"ArgMax", "a", 13, {{TN_F32, "2,0,0"}}, "axis", 1, "axis 1 has no elements"},
    {"ArgMin", "a", 13, {{TN_F32, "0,0"}}, "keepdims", 0, "axis 0 has no elements"},
    {"GridSample", "a,b", 20, {{TN_F32, "0,1,0,3"}, {TN_F32, "0,4,2,2"}}, NULL, 0, "there is nothing to sample"},
    {"GridSample", "a,b", 20, {{TN_F32, "1,0,3,3"}, {TN_F32, "2,4,2,2"}}, NULL, 0, "differ in their batch"},
    {"ConvTranspose", "a,b", 22, {{TN_F32, "1,9,4,3"}, {TN_F32, "10,0,3,3"}}, NULL, 0, "are not axis 0 of the weights"},
    {"Conv", "a,b", 22, {{TN_F32, "0,3,4,4"}, {TN_F32, "3,1,3,3"}}, "group", 2, "no multiple of 'group'"},
    {"GroupNormalization",
     "a,b,b",
     21,
     {{TN_F32, "0,5,2"}, {TN_F32, "5"}},
     "num_groups",
     2,
     "cannot be divided into 2 groups"},
    {"Attention",
     "a,b,b,c",
     23,
     {{TN_F32, "0,3,1,4"}, {TN_F32, "0,2,4,4"}, {TN_F32, "1,4"}},
     NULL,
     0,
     "query heads cannot be divided"},
    {"Attention",
     "a,b,b,c",
     24,
     {{TN_F32, "2,1,1,4"}, {TN_F32, "2,1,4,4"}, {TN_F32, "0,0"}},
     NULL,
     0,
     "axis 0 of 'attn_mask' is neither"},
    {"RotaryEmbedding", "a,b,b", 23, {{TN_F32, "0,1,2,5"}, {TN_F32, "0,2,2"}}, NULL, 0, "rotated in pairs"},
};

static void test_rules(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        for (form how = FIXED; how <= UNKNOWN; how++) {
            const rule *r = &rules[i];
            const char *dot = strrchr(r->op, '.');
            tn_text g = message(), attrs = message();
            if (r->attr)
                attr_int(&attrs, r->attr, r->value);
            tn_text node = node_bytes(dot ? dot + 1 : r->op, "n", r->inputs, outputs_of(r->op), attrs);
            if (dot)
                put_text(&node, 7, "ai.onnx.ml");
            put_message(&g, 1, node);
            is_refused(g, dot ? 21 : r->opset, r->in, how, r->says);
        }
}

/* The condition of If is one bool, also when only the run says what it is. */
static void test_condition(void **state) {
    (void)state;
    static const input conditions[][2] = {
        {{TN_BOOL, "7"}, {0, NULL}}, {{TN_BOOL, "2,1"}}, {{TN_F32, "1"}}, {{TN_I64, ""}}};
    for (size_t i = 0; i < sizeof conditions / sizeof *conditions; i++) {
        tn_text g = message(), attrs = message();
        for (int b = 0; b < 2; b++) {
            tn_text branch = message(), constant = message(), bytes = message(), list = message();
            put_text(&branch, 2, b ? "then" : "else");
            put_text(&constant, 1, "value");
            tn_tensor *t = tn_tensor_from_f32(0, NULL, (const float[]){(float)b});
            assert_int_equal(tn_onnx_write_tensor(&bytes, t, "v"), TN_OK);
            tn_tensor_destroy(t);
            put_message(&constant, 5, bytes);
            tn_wire_put_varint(&constant, 20, 4);
            put_message(&list, 5, constant);
            put_message(&branch, 1, node_bytes("Constant", "c", "", "v", list));
            put_value(&branch, 12, "v", TN_F32, "");
            attr_graph(&attrs, b ? "then_branch" : "else_branch", branch);
        }
        put_message(&g, 1, node_bytes("If", "n", "a", "y", attrs));
        is_refused(g, 21, conditions[i], UNKNOWN, "");
    }
}

/* The node has as many outputs as its bodies have results for it. */
static void test_results_of_bodies(void **state) {
    (void)state;
    static const input in[] = {{TN_BOOL, ""}, {TN_F32, "2"}, {0, NULL}};
    static const struct {
        const char *op, *inputs, *says;
        int args, results; /* of the body: conditions of Loop included */
    } list[] = {{"If", "a", "gives 2 values, the node has 1 outputs", 0, 2},
                {"Loop", ",a,b", "gives 3 values, the node has 1 outputs", 3, 3},
                {"Scan", "b", "gives 2 values, the node has 1 outputs", 1, 2}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        tn_text g = message(), attrs = message();
        for (int b = 0; b < (i ? 1 : 2); b++) {
            static const char *const args[] = {"i", "go", "s"}, *const values[] = {"p", "q", "r"};
            tn_text body = message();
            put_text(&body, 2, "body");
            for (int k = 0; k < list[i].args; k++)
                put_value(&body, 11, args[k], i == 2 || k == 2 ? TN_F32 : k ? TN_BOOL : TN_I64, "");
            for (int k = 0; k < list[i].results; k++) {
                put_node(&body, "Identity", "", i == 0 ? "b" : i == 2 ? "i" : k ? "s" : "go", values[k]);
                put_value(&body, 12, values[k], 0, NULL);
            }
            attr_graph(&attrs, i ? "body" : b ? "then_branch" : "else_branch", body);
        }
        if (i == 2)
            attr_int(&attrs, "num_scan_inputs", 1);
        put_message(&g, 1, node_bytes(list[i].op, "n", list[i].inputs, "y", attrs));
        forget_fixed();
        is_refused(g, 21, in, FIXED, list[i].says);
    }
}

/* What the branches of If give is of one type; found when the model is compiled, if it is known then. */
static void test_branches(void **state) {
    (void)state;
    static const input in[] = {{TN_F32, "2"}, {TN_BOOL, ""}, {0, NULL}};
    static const char *const ops[] = {"Neg", "SequenceConstruct", "Optional", "IsNaN"};
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 4; k++) {
            if (i == k)
                continue;
            tn_text g = message(), attrs = message();
            for (int b = 0; b < 2; b++) {
                tn_text branch = message();
                put_text(&branch, 2, "branch");
                put_message(&branch, 1, node_bytes(ops[b ? i : k], "m", "a", b ? "t" : "u", message()));
                put_value(&branch, 12, b ? "t" : "u", 0, NULL);
                attr_graph(&attrs, b ? "then_branch" : "else_branch", branch);
            }
            put_message(&g, 1, node_bytes("If", "n", "b", "y", attrs));
            for (int how = FIXED; how <= NAMED; how++) {
                forget_fixed(); /* types are part of the message */
                tn_text copy = message();
                tn_text_bytes(&copy, g.data, g.len);
                is_refused(copy, 21, in, (form)how, "they must be of one type");
            }
            tn_text_free(&g);
        }
}

/* A loop value that is no longer of its kind: a branch gives a tensor where a sequence is carried. */
static void test_kinds(void **state) {
    (void)state;
    static const input in[] = {{TN_F32, "2"}, {TN_BOOL, ""}, {TN_I64, "1"}, {0, NULL}};
    static const char *const starts[] = {"SequenceConstruct", "Optional"};
    for (int i = 0; i < 2; i++)
        for (int how = FIXED; how <= UNKNOWN; how++) {
            forget_fixed();
            tn_text g = message(), body = message(), attrs = message(), loop = message();
            for (int b = 0; b < 2; b++) { /* the tensor is of a type that is not known before */
                tn_text branch = message();
                put_text(&branch, 2, "branch");
                put_message(&branch, 1,
                            b ? node_bytes("Identity", "m", "s", "t", message())
                              : node_bytes("Unsqueeze", "m", "a,c", "u", message()));
                put_value(&branch, 12, b ? "t" : "u", 0, NULL);
                attr_graph(&attrs, b ? "then_branch" : "else_branch", branch);
            }
            put_text(&body, 2, "body");
            put_value(&body, 11, "i", TN_I64, "");
            put_value(&body, 11, "go", TN_BOOL, "");
            put_value(&body, 11, "s", 0, NULL);
            put_message(&body, 1, node_bytes("If", "n", "b", "r", attrs));
            put_value(&body, 12, "go", TN_BOOL, "");
            put_value(&body, 12, "r", 0, NULL);
            attr_graph(&loop, "body", body);
            put_message(&g, 1, node_bytes(starts[i], "make", "a", "first", message()));
            put_ints(&g, 5, "trips", 1, (const int64_t[]){2});
            put_message(&g, 1, node_bytes("Loop", "n", "trips,,first", "y", loop));
            is_refused(g, 21, in, (form)how, ""); /* before the run or in it, as is known of the branches */
        }
}

/* Sizes that do not broadcast are refused, also where the result would not need them: of unsigned numbers none is negative, and
   a condition that is known takes one side. */
static void test_dropped_operand(void **state) {
    (void)state;
    static const input prelu[] = {{TN_U64, "2,3,2,5"}, {TN_U64, "2,2"}, {0, NULL}};
    for (form how = FIXED; how <= UNKNOWN; how++) {
        tn_text g = message();
        put_message(&g, 1, node_bytes("PRelu", "n", "a,b", "y", message()));
        is_refused(g, 16, prelu, how, "axis 1 of 'slope' has size 2: it must be 1, or that of the input's axis 3, 5");
    }
}

/* Sizes that the file leaves open must fit when they are known, also where they would broadcast what they must not. */
static void test_sizes(void **state) {
    (void)state;
    static const struct {
        const char *op, *inputs;
        int opset;
        input in[5];
        const char *names[2]; /* integer attributes */
        int64_t values[2];
    } list[] = {
        {"MatMulInteger", "a,b,,c", 21, {{TN_U8, "1,3"}, {TN_U8, "3,1"}, {TN_U8, "5"}}, {NULL}, {0}},
        {"MatMulInteger", "a,b,c", 21, {{TN_U8, "1,3"}, {TN_U8, "3,2"}, {TN_U8, "4"}}, {NULL}, {0}},
        {"RotaryEmbedding", "a,b,c", 23, {{TN_F32, "1,1,1,2"}, {TN_F32, "1,1,3"}, {TN_F32, "1,1,3"}}, {NULL}, {0}},
        {"RotaryEmbedding", "a,b,c", 23, {{TN_F32, "1,1,2,6"}, {TN_F32, "1,2,3"}, {TN_F32, "7,2,3"}}, {NULL}, {0}},
        {"RotaryEmbedding", "a,b,c", 23, {{TN_F32, "1,1,2,2"}, {TN_F32, "5,2,1"}, {TN_F32, "1,2,1"}}, {NULL}, {0}},
        {"Det", "a", 22, {{TN_F32, "3,0"}}, {NULL}, {0}},
        {"Split", "a,b", 13, {{TN_F32, "6"}, {TN_I64, "1"}}, {NULL}, {0}},
        {"Split", "a", 18, {{TN_F32, "6"}}, {"num_outputs"}, {7}},
        {"RoiAlign", "a,b,c", 16, {{TN_F32, "1,1,4,4"}, {TN_F32, "2,4"}, {TN_I64, "3"}}, {NULL}, {0}},
        {"RoiAlign", "a,b,c", 16, {{TN_F32, "1,1,4,4"}, {TN_F32, "2,5"}, {TN_I64, "2"}}, {NULL}, {0}},
        {"Concat", "a,b", 13, {{TN_F32, "2,3"}, {TN_F32, "3,3"}}, {"axis"}, {1}},
        {"MatMul", "a,b", 13, {{TN_F32, "2,3"}, {TN_F32, "4,2"}}, {NULL}, {0}},
        {"Attention", "a,b,b", 24, {{TN_F32, "1,2,2,4"}, {TN_F32, "1,2,2,5"}}, {NULL}, {0}},
        {"LayerNormalization", "a,b", 17, {{TN_F32, "2,3"}, {TN_F32, "4"}}, {NULL}, {0}},
        {"DepthToSpace", "a", 13, {{TN_F32, "1,6,2,2"}}, {"blocksize"}, {2}},
        {"TopK", "a,b", 11, {{TN_F32, "3"}, {TN_I64, "2"}}, {NULL}, {0}},
        {"CausalConvWithState", "a,b,,c", 28, {{TN_F32, "2,3,4"}, {TN_F32, "3,1,1"}, {TN_F32, "5,3,0"}}, {NULL}, {0}},
        {"CausalConvWithState", "a,b,,c", 28, {{TN_F32, "2,3,4"}, {TN_F32, "3,1,2"}, {TN_F32, "3,2,1"}}, {NULL}, {0}},
        {"Pad", "a,b,,c", 24, {{TN_F32, "1,1"}, {TN_I64, "2"}, {TN_I64, ""}}, {NULL}, {0}},
        {"Resize", "a,,b", 14, {{TN_F32, "5,6"}, {TN_F32, "1,2"}}, {NULL}, {0}},
        {"DeformConv", "a,b,c", 21, {{TN_F32, "1,1,4,3"}, {TN_F32, "2,1,3,3"}, {TN_F32, "1,18,2,2"}}, {NULL}, {0}},
        {"DeformConv", "a,b,c", 21, {{TN_F32, "1,1,4,4"}, {TN_F32, "2,1,3,3"}, {TN_F32, "1,18,1,4"}}, {NULL}, {0}},
        {"Det", "a", 22, {{TN_F32, "1,3"}}, {NULL}, {0}},
        {"LinearAttention",
         "a,b,c",
         28,
         {{TN_F32, "2,1,4"}, {TN_F32, "1,1,4"}, {TN_F32, "2,1,4"}},
         {"q_num_heads", "kv_num_heads"},
         {2, 2}},
        {"Attention",
         "a,b,c",
         24,
         {{TN_F32, "1,2,2,4"}, {TN_F32, "1,2,2,4"}, {TN_F32, "1,2,2,4"}},
         {"q_num_heads", "kv_num_heads"},
         {2, 2}},
        {"Mean", "a,b", 7, {{TN_F32, "2"}, {TN_F32, ""}}, {NULL}, {0}},
        {"Hardmax", "a", 11, {{TN_F32, "3"}}, {"axis"}, {1}},
        {"Softmax", "a", 11, {{TN_F32, ""}}, {"axis"}, {-1}},
        {"BatchNormalization", "a,b,b,b,b", 9, {{TN_F32, "2,3"}, {TN_F32, "2"}}, {NULL}, {0}},
        {"BatchNormalization", "a,b,b,b,b", 9, {{TN_F32, "2,3,2"}, {TN_F32, "3,2"}}, {"spatial"}, {0}},
        {"BatchNormalization", "a,b,b,b,b", 13, {{TN_F32, "2,3,2"}, {TN_F32, "3"}}, {"spatial"}, {1}},
        {"DequantizeLinear", "a,b", 13, {{TN_I8, "3"}, {TN_F32, "3"}}, {NULL}, {0}},
        {"GroupNormalization", "a,b,b", 21, {{TN_F32, "1,2,2"}, {TN_F32, "2"}}, {"num_groups", "stash_type"}, {2, -1}},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        for (form how = FIXED; how <= UNKNOWN; how++) {
            tn_text g = message(), attrs = message();
            for (int k = 0; k < 2; k++)
                if (list[i].names[k])
                    attr_int(&attrs, list[i].names[k], list[i].values[k]);
            put_message(&g, 1, node_bytes(list[i].op, "n", list[i].inputs, outputs_of(list[i].op), attrs));
            is_refused(g, list[i].opset, list[i].in, how, "");
        }
}

/* What is added at the end of a transposed convolution is less than a step. */
static void test_output_padding(void **state) {
    (void)state;
    static const input in[] = {{TN_F32, "1,1,4"}, {TN_F32, "1,1,3"}, {0, NULL}};
    tn_text g = message(), attrs = message(), a = message();
    put_text(&a, 1, "output_padding");
    tn_wire_put_varint(&a, 8, 1);
    tn_wire_put_varint(&a, 20, 7);
    put_message(&attrs, 5, a);
    put_message(&g, 1, node_bytes("ConvTranspose", "n", "a,b", "y", attrs));
    is_refused(g, 11, in, FIXED, "less than the stride");
}

/* A zero point goes with its scale, also when it is all zeros and only the run says the size of the scale. */
static void test_zero_point(void **state) {
    (void)state;
    static const input in[] = {{TN_F32, "3"}, {TN_F32, "3"}, {0, NULL}};
    for (int64_t size = 0; size < 5; size++)
        for (form how = FIXED; how <= UNKNOWN && size != 3; how++) {
            tn_text g = message(), zero = message(), attrs = message();
            tn_tensor *t = tn_tensor_create(TN_U8, 1, &size);
            assert_non_null(t);
            assert_int_equal(tn_onnx_write_tensor(&zero, t, "z"), TN_OK);
            tn_tensor_destroy(t);
            put_message(&g, 5, zero);
            attr_int(&attrs, "axis", 0);
            put_message(&g, 1, node_bytes("QuantizeLinear", "n", "a,b,z", "y", attrs));
            is_refused(g, 21, in, how, "the scale and the zero point differ in size on axis 0");
        }
}

/* Lengths of sequences are from 0 to the number of steps. */
static void test_lengths(void **state) {
    (void)state;
    static const input in[] = {{TN_F32, "2,1,1"}, {TN_F32, "1,1,1"}, {TN_F32, "1,1,1"}, {0, NULL}};
    static const int32_t lengths[] = {-1, 3, INT32_MAX, INT32_MIN};
    static const int64_t one = 1;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (form how = FIXED; how <= UNKNOWN; how++) {
            tn_text g = message(), list = message(), attrs = message();
            tn_tensor *t = tn_tensor_create(TN_I32, 1, &one);
            assert_non_null(t);
            *(int32_t *)tn_tensor_data(t) = lengths[i];
            assert_int_equal(tn_onnx_write_tensor(&list, t, "l"), TN_OK);
            tn_tensor_destroy(t);
            put_message(&g, 5, list);
            attr_int(&attrs, "hidden_size", 1);
            put_message(&g, 1, node_bytes("RNN", "n", "a,b,c,,l", "y", attrs));
            is_refused(g, 14, in, how, "it must lie in 0..2");
        }
}

/* What a body does is refused as such. */
static void test_body(void **state) {
    (void)state;
    static const input in[] = {{TN_U8, "2,3"}, {TN_U8, "2,4,3"}, {0, NULL}},
                       lengths[] = {{TN_F32, "2"}, {TN_F32, "2,3"}, {TN_F32, "2,4,3"}, {0, NULL}};
    for (int k = 0; k < 2; k++) {
        for (form how = FIXED; how <= UNKNOWN; how++) {
            tn_text g = message(), attrs = message(), body = message();
            put_text(&body, 2, "body");
            put_value(&body, 11, "s", k ? TN_F32 : TN_U8, "3");
            put_value(&body, 11, "x", k ? TN_F32 : TN_U8, "3");
            put_message(&body, 1, node_bytes("Tanh", "n", "s", "t", message()));
            put_value(&body, 12, "t", k ? TN_F32 : TN_U8, "3");
            attr_int(&attrs, "num_scan_inputs", 1);
            attr_graph(&attrs, "body", body);
            put_message(&g, 1, node_bytes("Scan", "n", k ? "a,b,c" : ",a,b", "y", attrs));
            is_refused(g, 8, k ? lengths : in, how, k ? "which Scan does not take" : "which Tanh does not take");
        }
    }
}

/* A state of Scan keeps its shape, also where there is no step. */
static void test_state(void **state) {
    (void)state;
    static const input in[][3] = {{{TN_F32, "3,1"}, {TN_F32, "2,3"}, {0, NULL}},
                                  {{TN_F32, "1"}, {TN_F32, "0,3"}, {0, NULL}},
                                  {{TN_F32, "1"}, {TN_F32, "2,3"}, {0, NULL}},
                                  {{TN_F32, ""}, {TN_F32, "2,3"}, {0, NULL}}};
    for (size_t i = 0; i < sizeof in / sizeof *in; i++)
        for (form how = FIXED; how <= UNKNOWN; how++) {
            tn_text g = message(), attrs = message(), body = message();
            put_text(&body, 2, "body");
            put_value(&body, 11, "s", TN_F32, NULL);
            put_value(&body, 11, "x", TN_F32, NULL);
            put_message(&body, 1, node_bytes("Add", "n", "s,x", "t", message()));
            put_value(&body, 12, "t", TN_F32, NULL);
            attr_int(&attrs, "num_scan_inputs", 1);
            attr_graph(&attrs, "body", body);
            put_message(&g, 1, node_bytes("Scan", "n", "a,b", "y", attrs));
            is_refused(g, 11, in[i], how, how == FIXED ? "after a step" : "");
        }
}

/* Rules whose parameters are lists of numbers; of tensors without elements, where only the sizes can break them. */
static void test_empty(void **state) {
    (void)state;
    static const struct {
        const char *op, *inputs, *outputs;
        int opset;
        input in[3];
        const char *says;
        int64_t list[4];
        int count;
    } cases[] = {
        {"Squeeze", "a,list", "y", 13, {{TN_F32, "0,2,1"}}, "axis 1 cannot be squeezed", {1}, 1},
        {"Reshape", "a,list", "y", 13, {{TN_F32, "0,5"}}, "5 elements cannot be divided among 2", {0, -1, 2}, 3},
        {"Split", "a", "y,z,u", 11, {{TN_F32, "8,0"}}, "8 elements cannot be split into 3 equal parts", {0}, 0},
        {"Split", "a", "y,z", 13, {{TN_F32, "1,0"}}, "1 elements cannot be split into 2 equal parts", {0}, 0},
        {"Resize", "a,,,list", "y", 19, {{TN_F32, "3,0"}}, "axis 1 is empty", {3, 4}, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (form how = FIXED; how <= UNKNOWN; how++) {
            tn_text g = message();
            if (cases[i].count)
                put_ints(&g, 5, "list", cases[i].count, cases[i].list);
            put_message(&g, 1, node_bytes(cases[i].op, "n", cases[i].inputs, cases[i].outputs, message()));
            is_refused(g, cases[i].opset, cases[i].in, how, cases[i].says);
        }
}

static void test_diagonal(void **state) {
    (void)state;
    static const input in[] = {{TN_F32, "2,0,1"}, {0, NULL}};
    for (form how = FIXED; how <= UNKNOWN; how++) {
        tn_text g = message(), attrs = message(), a = message();
        put_text(&a, 1, "equation");
        put_text(&a, 4, "aba->ab");
        tn_wire_put_varint(&a, 20, 3);
        put_message(&attrs, 5, a);
        put_message(&g, 1, node_bytes("Einsum", "n", "a", "y", attrs));
        is_refused(g, 21, in, how, "label 'a' stands for axes of different sizes");
    }
}

/* How much boxes may overlap is a part, from 0 to 1. */
static void test_overlap(void **state) {
    (void)state;
    static const input in[] = {{TN_F32, "1,3,4"}, {TN_F32, "1,1,3"}, {0, NULL}};
    static const float parts[] = {-0.5f, 1.5f, -1e30f, INFINITY, NAN};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        for (form how = FIXED; how <= UNKNOWN; how++) {
            tn_text g = message(), part = message();
            tn_tensor *t = tn_tensor_from_f32(0, NULL, &parts[i]);
            assert_non_null(t);
            assert_int_equal(tn_onnx_write_tensor(&part, t, "p"), TN_OK);
            tn_tensor_destroy(t);
            put_message(&g, 5, part);
            put_message(&g, 1, node_bytes("NonMaxSuppression", "n", "a,b,,p", "y", message()));
            is_refused(g, 11, in, how, "not in [0, 1]");
        }
}

/* Scales of Upsample are at least 1. */
static void test_upsample(void **state) {
    (void)state;
    static const input in[] = {{TN_F32, "4"}, {0, NULL}};
    for (form how = FIXED; how <= UNKNOWN; how++) {
        tn_text g = message(), scales = message();
        static const int64_t one = 1;
        tn_tensor *t = tn_tensor_from_f32(1, &one, (const float[]){0.5f});
        assert_int_equal(tn_onnx_write_tensor(&scales, t, "s"), TN_OK);
        tn_tensor_destroy(t);
        put_message(&g, 5, scales);
        put_message(&g, 1, node_bytes("Upsample", "n", "a,s", "y", message()));
        is_refused(g, 9, in, how, "less than 1");
    }
}

/* 'kernel_shape' is that of the weights, also when only the run says what theirs is. */
static void test_kernel_shape(void **state) {
    (void)state;
    static const char *const ops[] = {"Conv", "ConvTranspose", "ConvInteger"};
    static const int64_t kernel[2] = {2, 3};
    for (int i = 0; i < 3; i++)
        for (form how = FIXED; how <= UNKNOWN; how++) {
            int dtype = i < 2 ? TN_F32 : TN_U8;
            const input in[] = {{dtype, "1,1,5,5"}, {dtype, "1,1,3,2"}, {0, NULL}};
            tn_text g = message(), attrs = message(), a = message();
            put_text(&a, 1, "kernel_shape");
            for (int k = 0; k < 2; k++)
                tn_wire_put_varint(&a, 8, (uint64_t)kernel[k]);
            tn_wire_put_varint(&a, 20, 7);
            put_message(&attrs, 5, a);
            put_message(&g, 1, node_bytes(ops[i], "n", "a,b", "y", attrs));
            is_refused(g, 21, in, how, "kernel_shape");
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_condition),
        cmocka_unit_test(test_dropped_operand),
        cmocka_unit_test(test_results_of_bodies),
        cmocka_unit_test(test_branches),
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_output_padding),
        cmocka_unit_test(test_body),
        cmocka_unit_test(test_upsample),
        cmocka_unit_test(test_overlap),
        cmocka_unit_test(test_state),
        cmocka_unit_test(test_zero_point),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_kernel_shape),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_diagonal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
