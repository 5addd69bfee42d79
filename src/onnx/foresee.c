/* What is known of the outputs of a node that waits until it runs: the element type nearly always, often the rank, at times sizes. It
   follows from the operator's text for every run that does not fail; late.c compares it with what comes out. */
#include <string.h>

#include "onnx/expand_common.h"
#include "onnx/expander.h"

/* Where the shape comes from; `at` is an input, or a number. */
typedef enum source {
    NOTHING,  /* not known */
    SAME,     /* the shape of input `at` */
    RANK,     /* its rank */
    FIXED,    /* rank `at` */
    LIST,     /* a size for each entry of input `at`, which is the size */
    RESHAPE,  /* the same, but 0 and -1 mean others */
    COUNT,    /* as many sizes as input `at` has entries */
    IMAGE,    /* and two more */
    ENTRIES,  /* the rank of input 0, or as many */
    MORE,     /* the rank of input 0, and as many more */
    LESS,     /* the rank of input 0, and as many less */
    NEXT,     /* the rank of input 0 and one more */
    REDUCED,  /* without the axes in input 1, or these with another size */
    WINDOWS,  /* batch of input 0, channels as the weights, input `at`, have rows, spatial axes */
    SPREAD,   /* the same with weights that lie the other way */
    POOLED,   /* batch and channels of input 0, as many axes more as kernel_shape has entries */
    ALONG,    /* input 0 but for the size of the attribute `axis` */
    JOINED,   /* the same, of any input that has a rank */
    PERMUTED, /* as many sizes as the attribute `perm` has entries */
    SCALED,   /* the rank of input 0, or as many as there are scales or sizes */
    PADDED,   /* the rank of input 0, or half as many as there are pads */
    SEQUENCE, /* recurrent: steps, directions, batch, hidden */
    STATE     /* directions, batch, hidden */
} source;

/* What the element type is: '0'..'9' that of an input; b, u, i, l, f: bool, u8, i32, i64, f32; t the attribute `to`; o the attribute
   `output_datatype`; d the attribute `dtype`, or input 0's; v that of the attribute `value`; q and s what quantising and its opposite
   give. */
typedef struct output {
    char dtype; /* 0: nothing is known */
    uint8_t source, at;
} output;

typedef struct row {
    const char *ops; /* names with spaces between */
    output out[3];   /* operators with any number of outputs: all are as the first */
} row;

/* Dropout's mask is left out: what it is of changed with the version. */
static const row rows[] = {
    {"Abs Acos Acosh Asin Asinh Atan Atanh BatchNormalization BitwiseNot Ceil Celu Clip Cos Cosh CumProd "
     "CumSum Dropout Elu Erf Exp Floor Gelu GroupNormalization HardSigmoid HardSwish Hardmax ImageScaler "
     "InstanceNormalization LRN LayerNormalization LeakyRelu Log LogSoftmax LpNormalization "
     "MeanVarianceNormalization Mish Neg PRelu Reciprocal Relu ReverseSequence "
     "RotaryEmbedding Round Scatter ScatterElements ScatterND Selu Shrink Sigmoid Sign Sin Sinh Softmax "
     "Softplus Softsign Sqrt Swish Tan Tanh TensorScatter ThresholdedRelu Trilu",
     {{'0', SAME, 0}}},
    {"Add Attention BitShift BitwiseAnd BitwiseOr BitwiseXor Compress Det Div Einsum Expand Gather "
     "GatherND MatMul Max Mean Min Mod Mul NegativeLogLikelihoodLoss Pow Sub Sum SwiGLU",
     {{'0', NOTHING, 0}}},
    {"ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum "
     "ReduceSumSquare",
     {{'0', REDUCED, 0}}},
    {"And Equal Greater GreaterOrEqual Less LessOrEqual Or Xor", {{'b', NOTHING, 0}}},
    {"CenterCropPad DFT GlobalAveragePool GlobalLpPool GlobalMaxPool GridSample MaxUnpool Slice", {{'0', RANK, 0}}},
    {"DepthToSpace MaxRoiPool RoiAlign STFT SpaceToDepth", {{'0', FIXED, 4}}},
    {"Bernoulli EyeLike RandomNormalLike RandomUniformLike", {{'d', SAME, 0}}},
    {"IsInf IsNaN Not RegexFullMatch", {{'b', SAME, 0}}},
    {"BlackmanWindow HammingWindow HannWindow", {{'o', FIXED, 1}}},
    {"ArgMax ArgMin", {{'l', NOTHING, 0}}},
    {"AveragePool LpPool", {{'0', POOLED, 0}}},
    {"Conv DeformConv", {{'0', WINDOWS, 1}}},
    {"Flatten Gemm", {{'0', FIXED, 2}}},
    {"GRU RNN", {{'0', SEQUENCE, 0}, {'0', STATE, 0}}},
    {"NonMaxSuppression NonZero", {{'l', FIXED, 2}}},
    {"Tile Upsample", {{'0', ENTRIES, 1}}},
    {"AffineGrid", {{'0', COUNT, 1}}},
    {"Cast", {{'t', SAME, 0}}},
    {"CastLike", {{'1', SAME, 0}}},
    {"Col2Im", {{'0', IMAGE, 1}}},
    {"Concat", {{'0', JOINED, 0}}},
    {"ConstantOfShape", {{'v', LIST, 0}}},
    {"ConvInteger", {{'i', WINDOWS, 1}}},
    {"ConvTranspose", {{'0', SPREAD, 1}}},
    {"DequantizeLinear", {{'s', SAME, 0}}},
    {"DynamicQuantizeLinear", {{'u', SAME, 0}, {'f', FIXED, 0}, {'u', FIXED, 0}}},
    {"GatherElements", {{'0', SAME, 1}}},
    {"ImageDecoder", {{'u', FIXED, 3}}},
    {"LSTM", {{'0', SEQUENCE, 0}, {'0', STATE, 0}, {'0', STATE, 0}}},
    {"MatMulInteger", {{'i', NOTHING, 0}}},
    {"MaxPool", {{'0', POOLED, 0}, {'l', POOLED, 0}}},
    {"MelWeightMatrix", {{'o', FIXED, 2}}},
    {"OneHot", {{'2', NEXT, 0}}},
    {"Pad", {{'0', PADDED, 1}}},
    {"QLinearConv", {{'7', WINDOWS, 3}}},
    {"QLinearMatMul", {{'7', NOTHING, 0}}},
    {"QuantizeLinear", {{'q', SAME, 0}}},
    {"RMSNormalization", {{'1', SAME, 0}}},
    {"Range", {{'0', FIXED, 1}}},
    {"Reshape", {{'0', RESHAPE, 1}}},
    {"Resize", {{'0', SCALED, 0}}},
    {"Shape", {{'l', FIXED, 1}}},
    {"Size", {{'l', FIXED, 0}}},
    {"SoftmaxCrossEntropyLoss", {{'0', NOTHING, 0}, {'0', SAME, 0}}},
    {"Split", {{'0', ALONG, 0}}},
    {"Squeeze", {{'0', LESS, 1}}},
    {"TopK", {{'0', ALONG, 0}, {'l', ALONG, 0}}},
    {"Transpose", {{'0', PERMUTED, 0}}},
    {"Unique", {{'0', NOTHING, 0}, {'l', FIXED, 1}, {'l', FIXED, 1}}},
    {"Unsqueeze", {{'0', MORE, 1}}},
    {"Where", {{'1', NOTHING, 0}}},
};

/* --- element types --------------------------------------------------------------------------------------------------------------- */

static tn_dtype attr_dtype(tn_expand *x, const char *name, tn_dtype absent) {
    int64_t t = tn_expand_has_attr(x, name) ? tn_expand_int(x, name) : 0;
    return t > 0 && t < TN_DTYPE_COUNT ? (tn_dtype)t : absent;
}

static tn_dtype dtype_of(tn_expand *x, char code) {
    tn_tensor *value;
    switch (code) {
    case 'b': return TN_BOOL;
    case 'u': return TN_U8;
    case 'i': return TN_I32;
    case 'l': return TN_I64;
    case 'f': return TN_F32;
    case 't': return attr_dtype(x, "to", TN_DTYPE_NONE);
    case 'o': return attr_dtype(x, "output_datatype", TN_F32);
    case 'd': return attr_dtype(x, "dtype", tn_expand_dtype_like(x, 0));
    case 'v': value = tn_expand_tensor(x, "value"); return value ? tn_tensor_dtype(value) : TN_F32;
    case 'q': return tn_expand_has(x, 2) ? tn_expand_dtype_like(x, 2) : attr_dtype(x, "output_dtype", TN_U8);
    case 's': return attr_dtype(x, "output_dtype", tn_expand_dtype_like(x, 1));
    default: return code ? tn_expand_dtype_like(x, (uint32_t)(code - '0')) : TN_DTYPE_NONE;
    }
}

/* --- shapes ------------------------------------------------------------------------------------------------------------------------ */

typedef struct shape {
    int rank; /* -1: not known */
    tn_dim dim[TN_MAX_RANK];
} shape;

static tn_dim any_size(tn_expand *x) {
    return tn_dim_fresh(x->graph, 0, INT64_MAX);
}

static void set_rank(tn_expand *x, shape *s, int rank) {
    s->rank = rank > TN_MAX_RANK ? -1 : rank;
    for (int i = 0; i < s->rank; i++)
        s->dim[i] = any_size(x);
}

/* The entries of a list, or -1. */
static int entries(tn_expand *x, uint32_t input) {
    int64_t n;
    return tn_expand_rank(x, input) == 1 && tn_dim_is_const(x->graph, tn_expand_dim(x, input, 0), &n) &&
                   n <= TN_MAX_RANK
               ? (int)n
               : -1;
}

static void set_shape_of(tn_expand *x, shape *s, uint32_t input) {
    s->rank = tn_expand_rank(x, input);
    for (int i = 0; i < s->rank; i++)
        s->dim[i] = tn_expand_dim(x, input, i);
}

/* `size` is one of an input, or null. */
static void set_size(shape *s, int axis, tn_dim size) {
    if (size.id && axis < s->rank)
        s->dim[axis] = size;
}

static void set_list(tn_expand *x, shape *s, uint32_t input, bool reshape) {
    tn_dim list[TN_MAX_RANK];
    int n = tn_expand_contents_dims(x, input, list, TN_MAX_RANK);
    set_rank(x, s, n >= 0 && tn_expand_rank(x, input) == 1 ? n : entries(x, input));
    bool copies = reshape && !tn_expand_int(x, "allowzero");
    for (int i = 0; i < n && i < s->rank; i++)
        if (tn_size_at_least(x, list[i], copies ? 1 : 0))
            s->dim[i] = list[i];
        else if (copies && tn_size_is(x, list[i], 0))
            set_size(s, i, tn_expand_dim(x, 0, i < tn_expand_rank(x, 0) ? i : TN_MAX_RANK));
}

static void set_reduced(tn_expand *x, shape *s) {
    int rank = tn_expand_rank(x, 0), n = tn_expand_has(x, 1) ? entries(x, 1) : 0;
    if (n == 0 && tn_expand_int(x, "noop_with_empty_axes")) {
        set_shape_of(x, s, 0);
    } else if (tn_expand_int(x, "keepdims")) {
        set_rank(x, s, rank);
        for (int i = 0; i < rank; i++)
            if (tn_size_is(x, tn_expand_dim(x, 0, i), 1))
                s->dim[i] = tn_size(x, 1);
    } else if (n == 0) {
        s->rank = 0;
    } else if (n > 0 && rank >= n) {
        set_rank(x, s, rank - n);
    }
}

static void set_windows(tn_expand *x, shape *s, uint32_t weights, bool spread) {
    int rank = tn_expand_rank(x, 0);
    set_rank(x, s, rank >= 0 ? rank : tn_expand_rank(x, weights));
    set_size(s, 0, tn_expand_dim(x, 0, 0));
    if (!spread)
        set_size(s, 1, tn_expand_dim(x, weights, 0));
    else if (tn_expand_rank(x, weights) > 1)
        set_size(s, 1, tn_dim_mul(x->graph, tn_expand_dim(x, weights, 1), tn_size(x, tn_expand_int(x, "group"))));
}

static void set_along(tn_expand *x, shape *s, uint32_t input) {
    int64_t axis = tn_expand_int(x, "axis");
    set_shape_of(x, s, input);
    axis += axis < 0 ? s->rank : 0;
    if (axis >= 0 && axis < s->rank)
        s->dim[axis] = any_size(x);
}

/* Recurrent nodes: input 0 is what is read, 1 and 2 the weights. */
static void set_recurrent(tn_expand *x, shape *s, bool steps) {
    bool batch_first = tn_expand_int(x, "layout") != 0;
    int at = batch_first ? 1 + steps : steps; /* of the directions */
    set_rank(x, s, steps ? 4 : 3);
    set_size(s, at, tn_expand_dim(x, 1, 0));
    set_size(s, at, tn_expand_dim(x, 2, 0));
    set_size(s, s->rank - 1, tn_expand_dim(x, 2, 2));
    set_size(s, batch_first ? 0 : at + 1, tn_expand_dim(x, 0, batch_first ? 0 : 1));
    if (steps)
        set_size(s, batch_first, tn_expand_dim(x, 0, batch_first));
}

static void set_shape(tn_expand *x, const output *o, shape *s) {
    const int64_t *list;
    int rank = tn_expand_rank(x, 0), n = 0;
    s->rank = -1;
    switch ((source)o->source) {
    case NOTHING: break;
    case SAME: set_shape_of(x, s, o->at); break;
    case RANK: set_rank(x, s, tn_expand_rank(x, o->at)); break;
    case FIXED: set_rank(x, s, o->at); break;
    case LIST: set_list(x, s, o->at, false); break;
    case RESHAPE: set_list(x, s, o->at, true); break;
    case COUNT: set_rank(x, s, entries(x, o->at)); break;
    case IMAGE:
        n = entries(x, o->at);
        set_rank(x, s, n < 0 ? -1 : n + 2);
        break;
    case ENTRIES: set_rank(x, s, rank >= 0 ? rank : entries(x, o->at)); break;
    case MORE:
    case LESS:
        n = entries(x, o->at);
        if (n >= 0 && rank >= 0)
            set_rank(x, s, o->source == MORE ? rank + n : rank - n);
        break;
    case NEXT: set_rank(x, s, rank < 0 ? -1 : rank + 1); break;
    case REDUCED: set_reduced(x, s); break;
    case WINDOWS:
    case SPREAD: set_windows(x, s, o->at, o->source == SPREAD); break;
    case POOLED:
        n = (int)tn_expand_ints(x, "kernel_shape", &list);
        set_rank(x, s, rank >= 0 ? rank : n ? n + 2 : -1);
        set_size(s, 0, tn_expand_dim(x, 0, 0));
        set_size(s, 1, tn_expand_dim(x, 0, 1));
        break;
    case ALONG: set_along(x, s, 0); break;
    case JOINED:
        for (uint32_t i = 0; i < x->inputs && s->rank < 0; i++)
            set_along(x, s, i);
        break;
    case PERMUTED:
        n = (int)tn_expand_ints(x, "perm", &list);
        set_rank(x, s, n ? n : rank);
        break;
    case SCALED:
        if (rank < 0 && !tn_expand_has_attr(x, "axes"))
            rank = entries(x, tn_expand_has(x, 3) ? 3 : 2);
        set_rank(x, s, rank);
        break;
    case PADDED:
        n = tn_expand_has(x, 3) ? -1 : entries(x, o->at);
        set_rank(x, s, rank >= 0 || n < 0 ? rank : n / 2);
        break;
    case SEQUENCE: set_recurrent(x, s, true); break;
    case STATE: set_recurrent(x, s, false); break;
    }
}

static const row *find(const tn_onnx_op *op) {
    size_t length = strlen(op->name);
    for (size_t i = 0; !*op->domain && i < sizeof rows / sizeof *rows; i++)
        for (const char *at = rows[i].ops; *at; at += strspn(at, " ")) {
            size_t n = strcspn(at, " ");
            if (n == length && memcmp(at, op->name, n) == 0)
                return &rows[i];
            at += n;
        }
    return NULL;
}

tn_status tn_expand_foresee(tn_expand *x, tn_type *types) {
    const row *r = find(x->row);
    bool all_alike = x->row->outputs.max == TN_ONNX_ANY;
    for (uint32_t i = 0; i < x->outputs; i++) {
        types[i] = (tn_type){0};
        const output *o = r && (all_alike || i < sizeof r->out / sizeof *r->out) ? &r->out[all_alike ? 0 : i] : NULL;
        tn_dtype dtype = o ? dtype_of(x, o->dtype) : TN_DTYPE_NONE;
        shape s;
        if (!dtype)
            continue;
        set_shape(x, o, &s);
        TN_TRY(tn_graph_check(x->graph));
        types[i] = tn_type_tensor(x->graph, dtype, s.rank, s.dim);
    }
    return tn_graph_check(x->graph);
}
