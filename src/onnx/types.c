/* What the operators' texts say of their inputs: element types, which of them are the same, and the rank of parameters. */
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
#define FLOATS8 (OF(F8E4M3FN) | OF(F8E4M3FNUZ) | OF(F8E5M2) | OF(F8E5M2FNUZ))
#define QUANTISED (BYTES | OF(I16) | OF(U16) | FLOATS8 | OF(I4) | OF(U4))
#define INTS (WIDE_INTS | BYTES | OF(I16) | OF(U16))
#define NUMBERS (FLOATS | INTS)
#define COMPLEX (OF(C64) | OF(C128))
#define PLAIN (NUMBERS | COMPLEX | OF(BOOL) | OF(STRING))
#define ANY ((1u << TN_DTYPE_COUNT) - 1)
_Static_assert(TN_DTYPE_COUNT <= 31, "element types are bits of an unsigned");

/* A row speaks of the versions from `since` to the next row of its operator; `bf16`: the first of them that takes BF16, 0: as the types
   say. `inputs`: a letter for each input in the newest form. 'A' is of types[0], 'B' of types[1]; inputs of one letter have one type.
   '.': anything. A digit after it: the rank; 'l': a list, or a scalar that stands for a list of it (exporters write them, and every
   runtime takes them). '+' at the end: the last repeats. The types are those of the operator's text (the test
   nightly/meaning_types compares them), but what only moves elements moves those of any type in every version. */
typedef struct input_types {
    const char *op; /* in order; "domain.Name" of other domains than ai.onnx */
    int16_t since, bf16;
    char inputs[12];
    uint32_t types[5];
} input_types;

static const input_types rows[] = {
    {"Abs", 1, 0, "A", {IEEE}},
    {"Abs", 6, 13, "A", {NUMBERS}},
    {"Acos", 1, 22, "A", {FLOATS}},
    {"Acosh", 1, 22, "A", {FLOATS}},
    {"Add", 1, 0, "AA", {IEEE}},
    {"Add", 6, 13, "AA", {FLOATS | WIDE_INTS}},
    {"Add", 14, 0, "AA", {NUMBERS}},
    {"AffineGrid", 1, 0, "AB", {FLOATS, OF(I64)}},
    {"And", 1, 0, "AA", {OF(BOOL)}},
    {"ArgMax", 1, 13, "A", {NUMBERS}},
    {"ArgMin", 1, 13, "A", {NUMBERS}},
    {"Asin", 1, 22, "A", {FLOATS}},
    {"Asinh", 1, 22, "A", {FLOATS}},
    {"Atan", 1, 22, "A", {FLOATS}},
    {"Atanh", 1, 22, "A", {FLOATS}},
    {"Attention", 1, 0, "AABCABD", {FLOATS, FLOATS, NUMBERS | OF(BOOL), OF(I64)}},
    {"AveragePool", 1, 22, "A", {FLOATS}},
    {"BatchNormalization", 1, 0, "AAAAA", {IEEE}},
    {"BatchNormalization", 14, 0, "AAABB", {FLOATS, FLOATS}},
    {"BatchNormalization", 15, 0, "ABBCC", {FLOATS, FLOATS, FLOATS}},
    {"Bernoulli", 1, 22, "A", {FLOATS}},
    {"BitShift", 1, 0, "AA", {OF(U8) | OF(U16) | OF(U32) | OF(U64)}},
    {"BitShift", 28, 0, "AA", {INTS}},
    {"BitwiseAnd", 1, 0, "AA", {INTS}},
    {"BitwiseNot", 1, 0, "A", {INTS}},
    {"BitwiseOr", 1, 0, "AA", {INTS}},
    {"BitwiseXor", 1, 0, "AA", {INTS}},
    {"BlackmanWindow", 1, 0, "A0", {INDICES}},
    {"CausalConvWithState", 1, 0, "AAAA", {SHORT_FLOATS}},
    {"Ceil", 1, 13, "A", {FLOATS}},
    {"Celu", 1, 0, "A", {OF(F32)}},
    {"Celu", 28, 0, "A", {FLOATS}},
    {"CenterCropPad", 1, 0, "AB1", {ANY, INDICES}},
    {"Clip", 1, 0, "AAA", {IEEE}},
    {"Clip", 12, 13, "AAA", {NUMBERS}},
    {"Col2Im", 1, 0, "AB1B1", {PLAIN, OF(I64)}},
    {"Compress", 1, 0, "AB", {ANY, OF(BOOL)}},
    {"ConstantOfShape", 1, 0, "A1", {OF(I64)}},
    {"Conv", 1, 22, "AAA", {FLOATS}},
    {"ConvTranspose", 1, 22, "AAA", {FLOATS}},
    {"Cos", 1, 22, "A", {FLOATS}},
    {"Cosh", 1, 22, "A", {FLOATS}},
    {"CumProd", 1, 0, "AB", {FLOATS | WIDE_INTS, INDICES}},
    {"CumSum", 1, 0, "AB", {WIDE_INTS | OF(F32) | OF(F64), INDICES}},
    {"CumSum", 14, 0, "AB", {FLOATS | WIDE_INTS, INDICES}},
    {"DFT", 1, 0, "AB0C0", {FLOATS, INDICES, OF(I64)}},
    {"DeformConv", 1, 22, "AAAAA", {FLOATS}},
    {"DequantizeLinear", 1, 0, "ABA", {BYTES | OF(I32), OF(F32)}},
    {"DequantizeLinear", 19, 0, "ABA", {BYTES | OF(I32) | FLOATS8, SHORT_FLOATS}},
    {"DequantizeLinear", 21, 0, "ABA", {QUANTISED | OF(I32), SHORT_FLOATS}},
    {"DequantizeLinear", 23, 0, "ABA", {QUANTISED | OF(I32) | OF(F4E2M1), SHORT_FLOATS}},
    {"DequantizeLinear", 24, 0, "ABA", {QUANTISED | OF(I32) | OF(F4E2M1), SHORT_FLOATS | OF(F8E8M0)}},
    {"DequantizeLinear", 25, 0, "ABA", {QUANTISED | OF(I32) | OF(F4E2M1) | OF(I2) | OF(U2), SHORT_FLOATS | OF(F8E8M0)}},
    {"Det", 1, 22, "A", {FLOATS}},
    {"Div", 1, 0, "AA", {IEEE}},
    {"Div", 6, 13, "AA", {FLOATS | WIDE_INTS}},
    {"Div", 14, 0, "AA", {NUMBERS}},
    {"Dropout", 1, 13, "ABC", {FLOATS, IEEE, OF(BOOL)}},
    {"Dropout", 22, 0, "ABC", {FLOATS | FLOATS8, FLOATS | FLOATS8, OF(BOOL)}},
    {"DynamicQuantizeLinear", 1, 0, "A", {OF(F32)}},
    {"Einsum", 1, 28, "A+", {NUMBERS}},
    {"Elu", 1, 22, "A", {FLOATS}},
    {"Equal", 1, 0, "AA", {INDICES | OF(BOOL)}},
    {"Equal", 11, 13, "AA", {NUMBERS | OF(BOOL)}},
    {"Equal", 19, 0, "AA", {NUMBERS | OF(BOOL) | OF(STRING)}},
    {"Erf", 1, 0, "A", {INTS | IEEE}},
    {"Erf", 13, 0, "A", {FLOATS}},
    {"Exp", 1, 13, "A", {FLOATS}},
    {"Expand", 1, 0, "AB1", {ANY, OF(I64)}},
    {"EyeLike", 1, 22, "A", {NUMBERS | OF(BOOL)}},
    {"Floor", 1, 13, "A", {FLOATS}},
    {"GRU", 1, 22, "AAAABA", {FLOATS, OF(I32)}},
    {"Gather", 1, 0, "AB", {ANY, INDICES}},
    {"GatherElements", 1, 0, "AB", {ANY, INDICES}},
    {"GatherND", 1, 0, "AB", {ANY, OF(I64)}},
    {"Gelu", 1, 0, "A", {FLOATS}},
    {"Gemm", 1, 0, "AAA", {IEEE}},
    {"Gemm", 9, 13, "AAA", {FLOATS | WIDE_INTS}},
    {"GlobalAveragePool", 1, 22, "A", {FLOATS}},
    {"GlobalLpPool", 1, 22, "A", {FLOATS}},
    {"GlobalMaxPool", 1, 22, "A", {FLOATS}},
    {"Greater", 1, 0, "AA", {IEEE}},
    {"Greater", 9, 13, "AA", {NUMBERS}},
    {"GreaterOrEqual", 1, 16, "AA", {NUMBERS}},
    {"GridSample", 1, 22, "AB", {PLAIN, FLOATS}},
    {"GroupNormalization", 1, 0, "AAA", {FLOATS}},
    {"HammingWindow", 1, 0, "A0", {INDICES}},
    {"HannWindow", 1, 0, "A0", {INDICES}},
    {"HardSigmoid", 1, 22, "A", {FLOATS}},
    {"HardSwish", 1, 22, "A", {FLOATS}},
    {"Hardmax", 1, 13, "A", {FLOATS}},
    {"If", 1, 0, "A", {OF(BOOL)}},
    {"ImageDecoder", 1, 0, "A", {OF(U8)}},
    {"InstanceNormalization", 1, 22, "AAA", {FLOATS}},
    {"IsInf", 1, 0, "A", {OF(F32) | OF(F64)}},
    {"IsInf", 20, 0, "A", {FLOATS | FLOATS8}},
    {"IsNaN", 1, 13, "A", {FLOATS}},
    {"IsNaN", 20, 0, "A", {FLOATS | FLOATS8}},
    {"LRN", 1, 13, "A", {FLOATS}},
    {"LSTM", 1, 22, "AAAABAAA", {FLOATS, OF(I32)}},
    {"LayerNormalization", 1, 0, "AAA", {FLOATS}},
    {"LeakyRelu", 1, 16, "A", {FLOATS}},
    {"Less", 1, 0, "AA", {IEEE}},
    {"Less", 9, 13, "AA", {NUMBERS}},
    {"LessOrEqual", 1, 16, "AA", {NUMBERS}},
    {"LinearAttention", 1, 0, "AAABAA", {SHORT_FLOATS, SHORT_FLOATS}},
    {"Log", 1, 13, "A", {FLOATS}},
    {"LogSoftmax", 1, 13, "A", {FLOATS}},
    {"Loop", 1, 0, "AB.", {OF(I64), OF(BOOL)}},
    {"LpNormalization", 1, 22, "A", {FLOATS}},
    {"LpPool", 1, 22, "A", {FLOATS}},
    {"MatMul", 1, 0, "AA", {IEEE}},
    {"MatMul", 9, 13, "AA", {FLOATS | WIDE_INTS}},
    {"Max", 1, 0, "A+", {IEEE}},
    {"Max", 12, 13, "A+", {NUMBERS}},
    {"MaxPool", 1, 0, "A", {IEEE}},
    {"MaxPool", 12, 22, "A", {FLOATS | BYTES}},
    {"MaxRoiPool", 1, 22, "AA", {FLOATS}},
    {"MaxUnpool", 1, 22, "ABB", {FLOATS, OF(I64)}},
    {"Mean", 1, 13, "A+", {FLOATS}},
    {"MeanVarianceNormalization", 1, 13, "A", {FLOATS}},
    {"MelWeightMatrix", 1, 0, "A0A0A0B0B0", {INDICES, FLOATS}},
    {"Min", 1, 0, "A+", {IEEE}},
    {"Min", 12, 13, "A+", {NUMBERS}},
    {"Mish", 1, 22, "A", {FLOATS}},
    {"Mod", 1, 13, "AA", {NUMBERS}},
    {"Mul", 1, 0, "AA", {IEEE}},
    {"Mul", 6, 13, "AA", {FLOATS | WIDE_INTS}},
    {"Mul", 14, 0, "AA", {NUMBERS}},
    {"Multinomial", 1, 22, "A", {FLOATS}},
    {"Neg", 1, 0, "A", {IEEE}},
    {"Neg", 6, 13, "A", {FLOATS | INDICES | OF(I8) | OF(I16)}},
    {"NegativeLogLikelihoodLoss", 1, 22, "ABA", {FLOATS, INDICES}},
    {"NonMaxSuppression", 1, 0, "AABAA", {OF(F32), OF(I64)}},
    {"NonZero", 1, 13, "A", {PLAIN}},
    {"Not", 1, 0, "A", {OF(BOOL)}},
    {"OneHot", 1, 0, "ABC1", {INTS | IEEE, INTS | IEEE, ANY}},
    {"Or", 1, 0, "AA", {OF(BOOL)}},
    {"PRelu", 1, 0, "AA", {IEEE}},
    {"PRelu", 9, 16, "AA", {FLOATS | WIDE_INTS}},
    {"Pad", 1, 0, "AB1AC1", {ANY, OF(I64), INDICES}},
    {"Pow", 1, 0, "AA", {IEEE}},
    {"Pow", 12, 13, "AB", {FLOATS | INDICES, INTS | IEEE}},
    {"Pow", 15, 0, "AB", {FLOATS | INDICES, NUMBERS}},
    {"QLinearConv", 1, 0, "ABACBCBDE", {BYTES, OF(F32), BYTES, BYTES, OF(I32)}},
    {"QLinearMatMul", 1, 0, "ABACBCBD", {BYTES, OF(F32), BYTES, BYTES}},
    {"QLinearMatMul", 21, 0, "ABACBCBD", {BYTES | FLOATS8, SHORT_FLOATS, BYTES | FLOATS8, BYTES | FLOATS8}},
    {"QuantizeLinear", 1, 0, "ABC", {OF(F32) | OF(I32), OF(F32), BYTES}},
    {"QuantizeLinear", 19, 0, "AAB", {SHORT_FLOATS | OF(I32), BYTES | FLOATS8}},
    {"QuantizeLinear", 21, 0, "AAB", {SHORT_FLOATS | OF(I32), QUANTISED}},
    {"QuantizeLinear", 23, 0, "ABC", {SHORT_FLOATS | OF(I32), SHORT_FLOATS | OF(I32), QUANTISED | OF(F4E2M1)}},
    {"QuantizeLinear",
     24,
     0,
     "ABC",
     {SHORT_FLOATS | OF(I32), SHORT_FLOATS | OF(I32) | OF(F8E8M0), QUANTISED | OF(F4E2M1)}},
    {"QuantizeLinear",
     25,
     0,
     "ABC",
     {SHORT_FLOATS | OF(I32), SHORT_FLOATS | OF(I32) | OF(F8E8M0), QUANTISED | OF(F4E2M1) | OF(I2) | OF(U2)}},
    {"RMSNormalization", 1, 0, "AB", {FLOATS, FLOATS}},
    {"RNN", 1, 22, "AAAABA", {FLOATS, OF(I32)}},
    {"Range", 1, 0, "AAA", {INDICES | OF(F32) | OF(F64) | OF(I16)}},
    {"Range", 27, 0, "AAA", {FLOATS | INDICES | OF(I16)}},
    {"Reciprocal", 1, 13, "A", {FLOATS}},
    {"ReduceL1", 1, 13, "AB", {FLOATS | WIDE_INTS, OF(I64)}},
    {"ReduceL2", 1, 13, "AB", {FLOATS | WIDE_INTS, OF(I64)}},
    {"ReduceLogSum", 1, 13, "AB", {FLOATS | WIDE_INTS, OF(I64)}},
    {"ReduceLogSum", 28, 0, "AB", {FLOATS, OF(I64)}},
    {"ReduceLogSumExp", 1, 13, "AB", {FLOATS | WIDE_INTS, OF(I64)}},
    {"ReduceLogSumExp", 28, 0, "AB", {FLOATS, OF(I64)}},
    {"ReduceMax", 1, 0, "AB", {IEEE | WIDE_INTS, OF(I64)}},
    {"ReduceMax", 12, 13, "AB", {FLOATS | WIDE_INTS | BYTES, OF(I64)}},
    {"ReduceMax", 20, 0, "AB", {FLOATS | WIDE_INTS | BYTES | OF(BOOL), OF(I64)}},
    {"ReduceMean", 1, 13, "AB", {FLOATS | WIDE_INTS, OF(I64)}},
    {"ReduceMin", 1, 0, "AB", {IEEE | WIDE_INTS, OF(I64)}},
    {"ReduceMin", 12, 13, "AB", {FLOATS | WIDE_INTS | BYTES, OF(I64)}},
    {"ReduceMin", 20, 0, "AB", {FLOATS | WIDE_INTS | BYTES | OF(BOOL), OF(I64)}},
    {"ReduceProd", 1, 13, "AB", {FLOATS | WIDE_INTS, OF(I64)}},
    {"ReduceSum", 1, 13, "AB", {FLOATS | WIDE_INTS, OF(I64)}},
    {"ReduceSumSquare", 1, 13, "AB", {FLOATS | WIDE_INTS, OF(I64)}},
    {"RegexFullMatch", 1, 0, "A", {OF(STRING)}},
    {"Relu", 1, 13, "A", {FLOATS}},
    {"Relu", 14, 0, "A", {FLOATS | INDICES | OF(I8) | OF(I16)}},
    {"Reshape", 1, 0, "AB1", {ANY, OF(I64)}},
    {"Resize", 1, 0, "A.B1", {PLAIN & ~OF(BF16), OF(F32)}},
    {"Resize", 11, 13, "AB1C1D1", {PLAIN, IEEE, OF(F32), OF(I64)}},
    {"ReverseSequence", 1, 0, "AB", {ANY, OF(I64)}},
    {"RoiAlign", 1, 22, "AAB", {FLOATS, OF(I64)}},
    {"RotaryEmbedding", 1, 0, "AAAB", {SHORT_FLOATS, OF(I64)}},
    {"Round", 1, 22, "A", {FLOATS}},
    {"STFT", 1, 0, "AB0AB0", {FLOATS, INDICES}},
    {"Scan", 8, 0, "A.", {OF(I64)}},
    {"Scan", 9, 0, "", {0}},
    {"ScatterElements", 1, 0, "ABA", {ANY, INDICES}},
    {"ScatterND", 1, 0, "ABA", {ANY, OF(I64)}},
    {"Selu", 1, 22, "A", {FLOATS}},
    {"SequenceAt", 1, 0, ".A", {INDICES}},
    {"SequenceConstruct", 1, 0, "A+", {INTS | IEEE | COMPLEX | OF(BOOL) | OF(STRING)}},
    {"SequenceErase", 1, 0, ".A", {INDICES}},
    {"SequenceInsert", 1, 0, ".AB", {INTS | IEEE | COMPLEX | OF(BOOL) | OF(STRING), INDICES}},
    {"Shrink", 1, 0, "A", {INTS | IEEE}},
    {"Sigmoid", 1, 13, "A", {FLOATS}},
    {"Sign", 1, 13, "A", {NUMBERS}},
    {"Sin", 1, 22, "A", {FLOATS}},
    {"Sinh", 1, 22, "A", {FLOATS}},
    {"Slice", 1, 0, "ABlBlBlBl", {ANY, INDICES}},
    {"Softmax", 1, 13, "A", {FLOATS}},
    {"SoftmaxCrossEntropyLoss", 1, 13, "ABA", {FLOATS, INDICES}},
    {"Softplus", 1, 22, "A", {FLOATS}},
    {"Softsign", 1, 22, "A", {FLOATS}},
    {"Split", 1, 0, "AA1", {IEEE}},
    {"Split", 2, 0, "AB1", {ANY, OF(I64)}},
    {"SplitToSequence", 1, 0, "AB", {ANY, INDICES}},
    {"Sqrt", 1, 13, "A", {FLOATS}},
    {"Squeeze", 1, 0, "AB1", {ANY, OF(I64)}},
    {"StringConcat", 1, 0, "AA", {OF(STRING)}},
    {"StringNormalizer", 1, 0, "A", {OF(STRING)}},
    {"StringSplit", 1, 0, "A", {OF(STRING)}},
    {"Sub", 1, 0, "AA", {IEEE}},
    {"Sub", 6, 13, "AA", {FLOATS | WIDE_INTS}},
    {"Sub", 14, 0, "AA", {NUMBERS}},
    {"Sum", 1, 13, "A+", {FLOATS}},
    {"SwiGLU", 1, 0, "AA", {FLOATS}},
    {"Swish", 1, 0, "A", {FLOATS}},
    {"Tan", 1, 22, "A", {FLOATS}},
    {"Tanh", 1, 13, "A", {FLOATS}},
    {"TensorScatter", 1, 0, "AAB", {ANY, OF(I64)}},
    {"TfIdfVectorizer", 1, 0, "A", {INDICES | OF(STRING)}},
    {"ThresholdedRelu", 1, 22, "A", {FLOATS}},
    {"Tile", 1, 0, "AAlAl", {IEEE}},
    {"Tile", 6, 0, "AB1", {ANY, OF(I64)}},
    {"TopK", 1, 0, "AB1", {IEEE, OF(I64)}},
    {"TopK", 11, 24, "AB1", {NUMBERS, OF(I64)}},
    {"Trilu", 1, 0, "AB", {ANY, OF(I64)}},
    {"Unsqueeze", 1, 0, "AB", {ANY, OF(I64)}},
    {"Upsample", 1, 0, "AB1", {PLAIN & ~OF(BF16), OF(F32)}},
    {"Where", 1, 0, "ABB", {OF(BOOL), ANY}},
    {"Xor", 1, 0, "AA", {OF(BOOL)}},
    {"ai.onnx.ml.ArrayFeatureExtractor", 1, 0, "AB", {INDICES | OF(F32) | OF(F64) | OF(STRING), OF(I64)}},
    {"ai.onnx.ml.Binarizer", 1, 0, "A", {INDICES | OF(F32) | OF(F64)}},
    {"ai.onnx.ml.CategoryMapper", 1, 0, "A", {OF(I64) | OF(STRING)}},
    {"ai.onnx.ml.FeatureVectorizer", 1, 0, "A+", {INDICES | OF(F32) | OF(F64)}},
    {"ai.onnx.ml.Imputer", 1, 0, "A", {INDICES | OF(F32) | OF(F64)}},
    {"ai.onnx.ml.LabelEncoder", 1, 0, "A", {OF(I64) | OF(STRING)}},
    {"ai.onnx.ml.LabelEncoder", 2, 0, "A", {OF(F32) | OF(I64) | OF(STRING)}},
    {"ai.onnx.ml.LabelEncoder", 4, 0, "A", {INDICES | OF(F32) | OF(F64) | OF(I16) | OF(STRING)}},
    {"ai.onnx.ml.LinearClassifier", 1, 0, "A", {INDICES | OF(F32) | OF(F64)}},
    {"ai.onnx.ml.LinearRegressor", 1, 0, "A", {INDICES | OF(F32) | OF(F64)}},
    {"ai.onnx.ml.Normalizer", 1, 0, "A", {INDICES | OF(F32) | OF(F64)}},
    {"ai.onnx.ml.OneHotEncoder", 1, 0, "A", {INDICES | OF(F32) | OF(F64) | OF(STRING)}},
    {"ai.onnx.ml.SVMClassifier", 1, 0, "A", {INDICES | OF(F32) | OF(F64)}},
    {"ai.onnx.ml.SVMRegressor", 1, 0, "A", {INDICES | OF(F32) | OF(F64)}},
    {"ai.onnx.ml.Scaler", 1, 0, "A", {INDICES | OF(F32) | OF(F64)}},
    {"ai.onnx.ml.TreeEnsemble", 1, 0, "A2", {IEEE}},
    {"ai.onnx.ml.ZipMap", 1, 0, "A", {OF(F32)}},
};

/* The last row of the operator that is not for later versions. */
static const input_types *find(const tn_onnx_op *op, int version) {
    char full[256];
    const char *name = op->name;
    if (*op->domain) {
        snprintf(full, sizeof full, "%s.%s", op->domain, op->name);
        name = full;
    }
    size_t low = 0, high = sizeof rows / sizeof *rows;
    while (low <
           high) { /* rows before `low` are of earlier operators or versions, those from `high` on of later ones */
        size_t middle = (low + high) / 2;
        int order = strcmp(name, rows[middle].op);
        if (order > 0 || (order == 0 && rows[middle].since <= version))
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && strcmp(name, rows[low - 1].op) == 0 ? &rows[low - 1] : NULL;
}

static tn_status wrong_type(tn_expand *x, uint32_t input, tn_dtype dtype, uint32_t types) {
    char list[300] = "";
    size_t length = 0;
    for (int t = 1; t < TN_DTYPE_COUNT; t++)
        if (types >> t & 1)
            length += (size_t)snprintf(list + length, sizeof list - length, "%s%s", length ? ", " : "",
                                       tn_dtype_name((tn_dtype)t));
    tn_status status = tn_expand_fail(x, "input %u is of type %s, which %s does not take in operator set %d", input,
                                      tn_dtype_name(dtype), x->row->name, x->version);
    tn_fail_hint("one of %s", list);
    return status;
}

/* One input's part of a row's text: "AB1C+". */
typedef struct input_form {
    int letter; /* from 0; negative: anything */
    int rank;   /* -1: any */
    bool or_scalar, repeats;
    const char *next;
} input_form;

static input_form read_form(const char *at) {
    input_form f = {.letter = *at - 'A', .rank = -1, .next = at + 1};
    f.or_scalar = *f.next == 'l';
    if (f.or_scalar || (*f.next >= '0' && *f.next <= '9')) {
        f.rank = f.or_scalar ? 1 : *f.next - '0';
        f.next++;
    }
    f.repeats = *f.next == '+';
    if (f.repeats)
        f.next = at;
    return f;
}

tn_status tn_expand_check_inputs(tn_expand *x) {
    const input_types *row = find(x->row, x->version);
    tn_dtype seen[5] = {TN_DTYPE_NONE};
    const char *at = row ? row->inputs : "";
    for (uint32_t i = 0; i < x->inputs && *at; i++) {
        input_form f = read_form(at);
        int rank = f.rank, letter = f.letter;
        tn_value value = x->in[i].form == TN_INPUT_VALUE ? x->in[i].value : (tn_value){0};
        tn_type type = value.id ? tn_value_type(x->graph, value) : (tn_type){0};
        at = f.next;
        if (!type.id || tn_type_kind(x->graph, type) != TN_KIND_TENSOR)
            continue;
        tn_dtype dtype = tn_value_dtype(x->graph, value);
        int have = tn_value_rank(x->graph, value);
        if (rank >= 0 && have >= 0 && have != rank && !(f.or_scalar && have == 0))
            return tn_expand_fail(x, "input %u has rank %d, it must be %s (rank %d)", i, have,
                                  rank == 0   ? "a scalar"
                                  : rank == 1 ? "a list"
                                              : "a table",
                                  rank);
        if (!dtype || letter < 0 || letter >= 5)
            continue;
        uint32_t types = row->types[letter] & ~(row->bf16 > x->version ? OF(BF16) : 0);
        if (!(types >> dtype & 1))
            return wrong_type(x, i, dtype, types);
        if (seen[letter] && seen[letter] != dtype)
            return tn_expand_fail(x, "input %u is of type %s, another that must be of the same is of %s", i,
                                  tn_dtype_name(dtype), tn_dtype_name(seen[letter]));
        seen[letter] = dtype;
    }
    return TN_OK;
}

bool tn_onnx_takes(const tn_onnx_op *op, int version, uint32_t inputs, const tn_dtype *dtypes, uint32_t *input) {
    const input_types *row = find(op, version);
    tn_dtype seen[5] = {TN_DTYPE_NONE};
    const char *at = row ? row->inputs : "";
    for (*input = 0; *input < inputs && *at; ++*input) {
        input_form f = read_form(at);
        tn_dtype dtype = dtypes[*input];
        at = f.next;
        if (!dtype || f.letter < 0 || f.letter >= 5)
            continue;
        uint32_t types = row->types[f.letter] & ~(row->bf16 > version ? OF(BF16) : 0);
        if (!(types >> dtype & 1) || (seen[f.letter] && seen[f.letter] != dtype))
            return false;
        seen[f.letter] = dtype;
    }
    return true;
}

tn_dtype tn_expand_dtype_like(tn_expand *x, uint32_t input) {
    const input_types *row = find(x->row, x->version);
    tn_dtype own = tn_expand_dtype(x, input), other[5] = {TN_DTYPE_NONE};
    int wanted = -1;
    const char *at = row ? row->inputs : "";
    for (uint32_t i = 0; !own && i < x->inputs && *at; i++) {
        input_form f = read_form(at);
        if (i == input)
            wanted = f.letter;
        if (f.letter >= 0 && f.letter < 5 && !other[f.letter])
            other[f.letter] = tn_expand_dtype(x, i);
        at = f.next;
    }
    return own ? own : wanted >= 0 && wanted < 5 ? other[wanted] : TN_DTYPE_NONE;
}
