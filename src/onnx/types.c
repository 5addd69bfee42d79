/* What the operators' texts say of their inputs: element types, which of them are the same, and the rank of parameters. Quantised
   operators check their own (expand_quant.c, expand_quant_product.c). */
#include <stdio.h>

#include "onnx/expander.h"

/* Sets of element types. */
#define OF(t) (1u << TN_##t)
#define IEEE (OF(F16) | OF(F32) | OF(F64))
#define SHORT_FLOATS (OF(F16) | OF(F32) | OF(BF16))
#define FLOATS (IEEE | OF(BF16))
#define INDICES (OF(I32) | OF(I64))
#define WIDE_INTS (INDICES | OF(U32) | OF(U64))
#define BYTES (OF(I8) | OF(U8))
#define INTS (WIDE_INTS | BYTES | OF(I16) | OF(U16))
#define NUMBERS (FLOATS | INTS)
#define COMPLEX (OF(C64) | OF(C128))
#define PLAIN (NUMBERS | COMPLEX | OF(BOOL) | OF(STRING))
#define ANY ((1u << TN_DTYPE_COUNT) - 1)
#define SMALL (ANY & ~PLAIN)
_Static_assert(TN_DTYPE_COUNT <= 31, "element types are bits of an unsigned");

/* `inputs`: a letter for each input in the newest form. 'A' is of types[0], 'B' of types[1]; inputs of one letter have one type.
   '.': anything. A digit after it: the rank. '+' at the end: the last repeats. Types are those of all versions together; what only moves
   elements moves those of any type. */
typedef struct input_types {
    const char *op; /* in order; "domain.Name" of other domains than ai.onnx */
    const char *inputs;
    uint32_t types[5];
} input_types;

static const input_types rows[] = {
    {"Abs", "A", {NUMBERS}},
    {"Acos", "A", {FLOATS}},
    {"Acosh", "A", {FLOATS}},
    {"Add", "AA", {NUMBERS}},
    {"AffineGrid", "AB", {FLOATS, OF(I64)}},
    {"And", "AA", {OF(BOOL)}},
    {"ArgMax", "A", {NUMBERS}},
    {"ArgMin", "A", {NUMBERS}},
    {"Asin", "A", {FLOATS}},
    {"Asinh", "A", {FLOATS}},
    {"Atan", "A", {FLOATS}},
    {"Atanh", "A", {FLOATS}},
    {"Attention", "AABCABD", {FLOATS, FLOATS, NUMBERS | OF(BOOL), OF(I64)}},
    {"AveragePool", "A", {FLOATS}},
    {"BatchNormalization", "ABBCC", {FLOATS, FLOATS, FLOATS}},
    {"Bernoulli", "A", {FLOATS}},
    {"BitShift", "AA", {INTS}},
    {"BitwiseAnd", "AA", {INTS}},
    {"BitwiseNot", "A", {INTS}},
    {"BitwiseOr", "AA", {INTS}},
    {"BitwiseXor", "AA", {INTS}},
    {"BlackmanWindow", "A0", {INDICES}},
    {"CausalConvWithState", "AAAA", {SHORT_FLOATS}},
    {"Ceil", "A", {FLOATS}},
    {"Celu", "A", {FLOATS}},
    {"CenterCropPad", "AB1", {ANY, INDICES}},
    {"Clip", "AAA", {NUMBERS}},
    {"Col2Im", "AB1B1", {ANY, OF(I64)}},
    {"Compress", "AB", {ANY, OF(BOOL)}},
    {"ConstantOfShape", "A1", {OF(I64)}},
    {"Conv", "AAA", {FLOATS}},
    {"ConvTranspose", "AAA", {FLOATS}},
    {"Cos", "A", {FLOATS}},
    {"Cosh", "A", {FLOATS}},
    {"CumProd", "AB", {FLOATS | WIDE_INTS, INDICES}},
    {"CumSum", "AB", {FLOATS | WIDE_INTS, INDICES}},
    {"DFT", "AB0C0", {FLOATS, INDICES, OF(I64)}},
    {"DeformConv", "AAAAA", {FLOATS}},
    {"Det", "A", {FLOATS}},
    {"Div", "AA", {NUMBERS}},
    {"Dropout", "ABC", {FLOATS | SMALL, FLOATS | SMALL, OF(BOOL)}},
    {"DynamicQuantizeLinear", "A", {OF(F32)}},
    {"Einsum", "A+", {NUMBERS}},
    {"Elu", "A", {FLOATS}},
    {"Equal", "AA", {NUMBERS | OF(BOOL) | OF(STRING)}},
    {"Erf", "A", {NUMBERS}},
    {"Exp", "A", {FLOATS}},
    {"Expand", "AB1", {ANY, OF(I64)}},
    {"EyeLike", "A", {NUMBERS | OF(BOOL)}},
    {"Floor", "A", {FLOATS}},
    {"GRU", "AAAABA", {FLOATS, OF(I32)}},
    {"Gather", "AB", {ANY, INDICES}},
    {"GatherElements", "AB", {ANY, INDICES}},
    {"GatherND", "AB", {ANY, OF(I64)}},
    {"Gelu", "A", {FLOATS}},
    {"Gemm", "AAA", {FLOATS | WIDE_INTS}},
    {"GlobalAveragePool", "A", {FLOATS}},
    {"GlobalLpPool", "A", {FLOATS}},
    {"GlobalMaxPool", "A", {FLOATS}},
    {"Greater", "AA", {NUMBERS}},
    {"GreaterOrEqual", "AA", {NUMBERS}},
    {"GridSample", "AB", {ANY, FLOATS}},
    {"GroupNormalization", "AAA", {FLOATS}},
    {"HammingWindow", "A0", {INDICES}},
    {"HannWindow", "A0", {INDICES}},
    {"HardSigmoid", "A", {FLOATS}},
    {"HardSwish", "A", {FLOATS}},
    {"Hardmax", "A", {FLOATS}},
    {"If", "A", {OF(BOOL)}},
    {"ImageDecoder", "A", {OF(U8)}},
    {"InstanceNormalization", "AAA", {FLOATS}},
    {"IsInf", "A", {FLOATS | SMALL}},
    {"IsNaN", "A", {FLOATS | SMALL}},
    {"LRN", "A", {FLOATS}},
    {"LSTM", "AAAABAAA", {FLOATS, OF(I32)}},
    {"LayerNormalization", "AAA", {FLOATS}},
    {"LeakyRelu", "A", {FLOATS}},
    {"Less", "AA", {NUMBERS}},
    {"LessOrEqual", "AA", {NUMBERS}},
    {"LinearAttention", "AAABAA", {SHORT_FLOATS, SHORT_FLOATS}},
    {"Log", "A", {FLOATS}},
    {"LogSoftmax", "A", {FLOATS}},
    {"Loop", "AB.", {OF(I64), OF(BOOL)}},
    {"LpNormalization", "A", {FLOATS}},
    {"LpPool", "A", {FLOATS}},
    {"MatMul", "AA", {FLOATS | WIDE_INTS}},
    {"Max", "A+", {NUMBERS}},
    {"MaxPool", "A", {FLOATS | BYTES}},
    {"MaxRoiPool", "AA", {FLOATS}},
    {"MaxUnpool", "ABB", {FLOATS, OF(I64)}},
    {"Mean", "A+", {FLOATS}},
    {"MeanVarianceNormalization", "A", {FLOATS}},
    {"MelWeightMatrix", "A0A0A0B0B0", {INDICES, FLOATS}},
    {"Min", "A+", {NUMBERS}},
    {"Mish", "A", {FLOATS}},
    {"Mod", "AA", {NUMBERS}},
    {"Mul", "AA", {NUMBERS}},
    {"Multinomial", "A", {FLOATS}},
    {"Neg", "A", {FLOATS | INDICES | OF(I16) | OF(I8)}},
    {"NegativeLogLikelihoodLoss", "ABA", {FLOATS, INDICES}},
    {"NonMaxSuppression", "AABAA", {OF(F32), OF(I64)}},
    {"Not", "A", {OF(BOOL)}},
    {"OneHot", "ABC1", {INTS | IEEE, INTS | IEEE, ANY}},
    {"Or", "AA", {OF(BOOL)}},
    {"PRelu", "AA", {FLOATS | WIDE_INTS}},
    {"Pad", "ABAC", {ANY, OF(I64), INDICES}},
    {"Pow", "AB", {FLOATS | INDICES, NUMBERS}},
    {"RMSNormalization", "AB", {FLOATS, FLOATS}},
    {"RNN", "AAAABA", {FLOATS, OF(I32)}},
    {"Range", "AAA", {FLOATS | INDICES | OF(I16)}},
    {"Reciprocal", "A", {FLOATS}},
    {"ReduceL1", "AB", {FLOATS | WIDE_INTS, OF(I64)}},
    {"ReduceL2", "AB", {FLOATS | WIDE_INTS, OF(I64)}},
    {"ReduceLogSum", "AB", {FLOATS | WIDE_INTS, OF(I64)}},
    {"ReduceLogSumExp", "AB", {FLOATS | WIDE_INTS, OF(I64)}},
    {"ReduceMax", "AB", {FLOATS | WIDE_INTS | BYTES | OF(BOOL), OF(I64)}},
    {"ReduceMean", "AB", {FLOATS | WIDE_INTS, OF(I64)}},
    {"ReduceMin", "AB", {FLOATS | WIDE_INTS | BYTES | OF(BOOL), OF(I64)}},
    {"ReduceProd", "AB", {FLOATS | WIDE_INTS, OF(I64)}},
    {"ReduceSum", "AB", {FLOATS | WIDE_INTS, OF(I64)}},
    {"ReduceSumSquare", "AB", {FLOATS | WIDE_INTS, OF(I64)}},
    {"RegexFullMatch", "A", {OF(STRING)}},
    {"Relu", "A", {FLOATS | INDICES | OF(I16) | OF(I8)}},
    {"Reshape", "AB1", {ANY, OF(I64)}},
    {"Resize", "ABCD", {ANY, IEEE, OF(F32), OF(I64)}},
    {"ReverseSequence", "AB", {ANY, OF(I64)}},
    {"RoiAlign", "AAB", {FLOATS, OF(I64)}},
    {"RotaryEmbedding", "AAAB", {SHORT_FLOATS, OF(I64)}},
    {"Round", "A", {FLOATS}},
    {"STFT", "AB0AB0", {FLOATS, INDICES}},
    {"ScatterElements", "ABA", {ANY, INDICES}},
    {"ScatterND", "ABA", {ANY, OF(I64)}},
    {"Selu", "A", {FLOATS}},
    {"SequenceAt", ".A", {INDICES}},
    {"SequenceConstruct", "A+", {INTS | IEEE | COMPLEX | OF(BOOL) | OF(STRING)}},
    {"SequenceErase", ".A", {INDICES}},
    {"SequenceInsert", ".AB", {INTS | IEEE | COMPLEX | OF(BOOL) | OF(STRING), INDICES}},
    {"Shrink", "A", {INTS | IEEE}},
    {"Sigmoid", "A", {FLOATS}},
    {"Sign", "A", {NUMBERS}},
    {"Sin", "A", {FLOATS}},
    {"Sinh", "A", {FLOATS}},
    {"Slice", "AB1B1B1B1", {ANY, INDICES}},
    {"Softmax", "A", {FLOATS}},
    {"SoftmaxCrossEntropyLoss", "ABA", {FLOATS, INDICES}},
    {"Softplus", "A", {FLOATS}},
    {"Softsign", "A", {FLOATS}},
    {"Split", "AB1", {ANY, IEEE | OF(I64)}},
    {"SplitToSequence", "AB", {ANY, INDICES}},
    {"Sqrt", "A", {FLOATS}},
    {"Squeeze", "AB1", {ANY, OF(I64)}},
    {"StringConcat", "AA", {OF(STRING)}},
    {"StringNormalizer", "A", {OF(STRING)}},
    {"StringSplit", "A", {OF(STRING)}},
    {"Sub", "AA", {NUMBERS}},
    {"Sum", "A+", {FLOATS}},
    {"SwiGLU", "AA", {FLOATS}},
    {"Swish", "A", {FLOATS}},
    {"Tan", "A", {FLOATS}},
    {"Tanh", "A", {FLOATS}},
    {"TensorScatter", "AAB", {ANY, OF(I64)}},
    {"TfIdfVectorizer", "A", {INDICES | OF(STRING)}},
    {"ThresholdedRelu", "A", {FLOATS}},
    {"Tile", "AB1", {ANY, IEEE | OF(I64)}},
    {"TopK", "AB1", {NUMBERS, OF(I64)}},
    {"Trilu", "AB", {ANY, OF(I64)}},
    {"Unsqueeze", "AB", {ANY, OF(I64)}},
    {"Where", "ABB", {OF(BOOL), ANY}},
    {"Xor", "AA", {OF(BOOL)}},
    {"ai.onnx.ml.ArrayFeatureExtractor", "AB", {INDICES | OF(F64) | OF(F32) | OF(STRING), OF(I64)}},
    {"ai.onnx.ml.Binarizer", "A", {INDICES | OF(F64) | OF(F32)}},
    {"ai.onnx.ml.CategoryMapper", "A", {OF(I64) | OF(STRING)}},
    {"ai.onnx.ml.FeatureVectorizer", "A+", {INDICES | OF(F64) | OF(F32)}},
    {"ai.onnx.ml.Imputer", "A", {INDICES | OF(F64) | OF(F32)}},
    {"ai.onnx.ml.LabelEncoder", "A", {INDICES | OF(F64) | OF(F32) | OF(I16) | OF(STRING)}},
    {"ai.onnx.ml.LinearClassifier", "A", {INDICES | OF(F64) | OF(F32)}},
    {"ai.onnx.ml.LinearRegressor", "A", {INDICES | OF(F64) | OF(F32)}},
    {"ai.onnx.ml.Normalizer", "A", {INDICES | OF(F64) | OF(F32)}},
    {"ai.onnx.ml.OneHotEncoder", "A", {INDICES | OF(F64) | OF(F32) | OF(STRING)}},
    {"ai.onnx.ml.SVMClassifier", "A", {INDICES | OF(F64) | OF(F32)}},
    {"ai.onnx.ml.SVMRegressor", "A", {INDICES | OF(F64) | OF(F32)}},
    {"ai.onnx.ml.Scaler", "A", {INDICES | OF(F64) | OF(F32)}},
    {"ai.onnx.ml.TreeEnsemble", "A2", {IEEE}},
    {"ai.onnx.ml.ZipMap", "A", {OF(F32)}},
};

static const input_types *find(const tn_onnx_op *op) {
    char full[256];
    const char *name = op->name;
    if (*op->domain) {
        snprintf(full, sizeof full, "%s.%s", op->domain, op->name);
        name = full;
    }
    size_t low = 0, high = sizeof rows / sizeof *rows;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = strcmp(name, rows[middle].op);
        if (order == 0)
            return &rows[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

static tn_status wrong_type(tn_expand *x, uint32_t input, tn_dtype dtype, uint32_t types) {
    char list[300] = "";
    size_t length = 0;
    for (int t = 1; t < TN_DTYPE_COUNT; t++)
        if (types >> t & 1)
            length += (size_t)snprintf(list + length, sizeof list - length, "%s%s", length ? ", " : "",
                                       tn_dtype_name((tn_dtype)t));
    tn_status status =
        tn_expand_fail(x, "input %u is of type %s, which %s does not take", input, tn_dtype_name(dtype), x->row->name);
    tn_fail_hint("one of %s", list);
    return status;
}

tn_status tn_expand_check_inputs(tn_expand *x) {
    const input_types *row = find(x->row);
    tn_dtype seen[5] = {TN_DTYPE_NONE};
    const char *at = row ? row->inputs : "";
    for (uint32_t i = 0; i < x->inputs && *at; i++) {
        const char *next = at + 1;
        int rank = *next >= '0' && *next <= '9' ? *next++ - '0' : -1;
        tn_value value = x->in[i].form == TN_INPUT_VALUE ? x->in[i].value : (tn_value){0};
        tn_type type = value.id ? tn_value_type(x->graph, value) : (tn_type){0};
        int letter = *at - 'A';
        if (*next != '+')
            at = next;
        if (!type.id || tn_type_kind(x->graph, type) != TN_KIND_TENSOR)
            continue;
        tn_dtype dtype = tn_value_dtype(x->graph, value);
        if (rank >= 0 && tn_value_rank(x->graph, value) >= 0 && tn_value_rank(x->graph, value) != rank)
            return tn_expand_fail(x, "input %u has rank %d, it must be %s (rank %d)", i, tn_value_rank(x->graph, value),
                                  rank == 0   ? "a scalar"
                                  : rank == 1 ? "a list"
                                              : "a table",
                                  rank);
        if (!dtype || letter < 0 || letter >= 5)
            continue;
        if (!(row->types[letter] >> dtype & 1))
            return wrong_type(x, i, dtype, row->types[letter]);
        if (seen[letter] && seen[letter] != dtype)
            return tn_expand_fail(x, "input %u is of type %s, another that must be of the same is of %s", i,
                                  tn_dtype_name(dtype), tn_dtype_name(seen[letter]));
        seen[letter] = dtype;
    }
    return TN_OK;
}
