/* Operator sets: nodes of the standard from one version to another, up and down, by one table of what changed when. What the table
   does not name is the same in all versions that have the operator (but for the element types it admits). */
#define TN_NO_POSITIONS
#include <inttypes.h>
#include <stdio.h>
#include <tenon/build.h>

#include "onnx/contract.h"
#include "onnx/expander.h"

/* --- the table --------------------------------------------------------------------------------------------------------------------------- */

struct node;
typedef tn_status step_fn(struct node *n, int version, bool up);

typedef enum kind {
    DROPPED,     /* attribute: gone from `version` on, without effect before */
    NEW_INT,     /* attribute: there from `version` on, before as if it were `number` */
    NEW_TEXT,    /* the same with `text` */
    NEW_ANY,     /* attribute: nothing like it before */
    NEW_INPUT,   /* input `number`: nothing like it before */
    NEW_OUTPUT,  /* output `number` */
    INTS_INPUT,  /* list attribute becomes input `number`, i64[n] */
    VEC_INPUT,   /* integer attribute becomes input `number`, i64[1] */
    INT_INPUT,   /* integer attribute becomes input `number`, i64 scalar; absent: `text` is its value */
    FLOAT_INPUT, /* number attribute becomes input `number`, a scalar of input 0's element type */
    BOUND_INPUT, /* the same; absent: the lowest ("-") or largest ("+") finite number */
    VALUES,      /* texts of an attribute are spelt differently: "old=new old=new" */
    OPERATOR,    /* the operator is called `text` from `version` on */
    MEANS,       /* something else is computed: refused, `text` says what */
    STEP         /* see the function */
} kind;

typedef struct change {
    const char *op; /* "*": all; "Reduce*": all that begin so */
    int version;
    kind kind;
    const char *attr;
    int64_t number;
    const char *text;
    step_fn *step;
} change;

static step_fn resize, softmax, broadcasting, upsample, scales, dropout, cast_names, trips, pad_names;

static const change changes[] = {
    {"Reshape", 5, INTS_INPUT, "shape", 1, NULL, NULL},
    {"*", 6, DROPPED, "consumed_inputs", 0, NULL, NULL},
    {"Cast", 6, STEP, "to", 0, NULL, cast_names},
    {"Tile", 6, MEANS, NULL, 0, "Tile takes its repeats otherwise", NULL},
    {"Pad", 2, STEP, NULL, 0, NULL, pad_names},
    {"Concat", 4, NEW_INT, "axis", 1, NULL, NULL},
    {"Add", 7, STEP, NULL, 0, NULL, broadcasting},
    {"Sub", 7, STEP, NULL, 0, NULL, broadcasting},
    {"Mul", 7, STEP, NULL, 0, NULL, broadcasting},
    {"Div", 7, STEP, NULL, 0, NULL, broadcasting},
    {"Pow", 7, STEP, NULL, 0, NULL, broadcasting},
    {"And", 7, STEP, NULL, 0, NULL, broadcasting},
    {"Or", 7, STEP, NULL, 0, NULL, broadcasting},
    {"Xor", 7, STEP, NULL, 0, NULL, broadcasting},
    {"Equal", 7, STEP, NULL, 0, NULL, broadcasting},
    {"Greater", 7, STEP, NULL, 0, NULL, broadcasting},
    {"Less", 7, STEP, NULL, 0, NULL, broadcasting},
    {"PRelu", 7, STEP, NULL, 0, NULL, broadcasting},
    {"Gemm", 7, DROPPED, "broadcast", 0, NULL, NULL},
    {"BatchNormalization", 7, STEP, NULL, 0, NULL, trips},
    {"Dropout", 7, DROPPED, "is_test", 0, NULL, NULL},
    {"RNN", 7, DROPPED, "output_sequence", 0, NULL, NULL},
    {"GRU", 7, DROPPED, "output_sequence", 0, NULL, NULL},
    {"LSTM", 7, DROPPED, "output_sequence", 0, NULL, NULL},
    {"Upsample", 7, STEP, NULL, 0, NULL, scales},
    {"AveragePool", 7, NEW_INT, "count_include_pad", 0, NULL, NULL},
    {"MaxPool", 8, NEW_INT, "storage_order", 0, NULL, NULL},
    {"MaxPool", 8, NEW_OUTPUT, NULL, 1, NULL, NULL},
    {"Scan", 9, MEANS, NULL, 0, "Scan runs over a batch", NULL},
    {"BatchNormalization", 9, NEW_INT, "spatial", 1, NULL, NULL},
    {"BatchNormalization", 9, DROPPED, "spatial", 0, NULL, NULL},
    {"Upsample", 9, STEP, NULL, 0, NULL, upsample},
    {"Upsample", 10, OPERATOR, NULL, 0, "Resize", NULL},
    {"MaxPool", 10, NEW_INT, "ceil_mode", 0, NULL, NULL},
    {"MaxPool", 10, NEW_ANY, "dilations", 0, NULL, NULL},
    {"AveragePool", 10, NEW_INT, "ceil_mode", 0, NULL, NULL},
    {"Slice", 10, INTS_INPUT, "starts", 1, NULL, NULL},
    {"Slice", 10, INTS_INPUT, "ends", 2, NULL, NULL},
    {"Slice", 10, INTS_INPUT, "axes", 3, NULL, NULL},
    {"Slice", 10, NEW_INPUT, NULL, 4, NULL, NULL},
    {"TopK", 10, VEC_INPUT, "k", 1, NULL, NULL},
    {"Dropout", 10, NEW_OUTPUT, NULL, 1, NULL, NULL},
    {"Clip", 11, BOUND_INPUT, "min", 1, "-", NULL},
    {"Clip", 11, BOUND_INPUT, "max", 2, "+", NULL},
    {"Pad", 11, INTS_INPUT, "pads", 1, NULL, NULL},
    {"Pad", 11, FLOAT_INPUT, "value", 2, NULL, NULL},
    {"Resize", 11, STEP, NULL, 0, NULL, resize},
    {"Scatter", 11, OPERATOR, NULL, 0, "ScatterElements", NULL},
    {"TopK", 11, NEW_INT, "largest", 1, NULL, NULL},
    {"TopK", 11, NEW_INT, "sorted", 1, NULL, NULL},
    {"DepthToSpace", 11, NEW_TEXT, "mode", 0, "DCR", NULL},
    {"Constant", 11, NEW_ANY, "sparse_value", 0, NULL, NULL},
    {"ArgMax", 12, NEW_INT, "select_last_index", 0, NULL, NULL},
    {"ArgMin", 12, NEW_INT, "select_last_index", 0, NULL, NULL},
    {"GatherND", 12, NEW_INT, "batch_dims", 0, NULL, NULL},
    {"Constant", 12, NEW_ANY, "value_int", 0, NULL, NULL},
    {"Constant", 12, NEW_ANY, "value_ints", 0, NULL, NULL},
    {"Constant", 12, NEW_ANY, "value_float", 0, NULL, NULL},
    {"Constant", 12, NEW_ANY, "value_floats", 0, NULL, NULL},
    {"Constant", 12, NEW_ANY, "value_string", 0, NULL, NULL},
    {"Constant", 12, NEW_ANY, "value_strings", 0, NULL, NULL},
    {"Dropout", 12, STEP, NULL, 0, NULL, dropout},
    {"Softmax", 13, STEP, NULL, 0, NULL, softmax},
    {"LogSoftmax", 13, STEP, NULL, 0, NULL, softmax},
    {"Hardmax", 13, STEP, NULL, 0, NULL, softmax},
    {"Split", 13, INTS_INPUT, "split", 1, NULL, NULL},
    {"Squeeze", 13, INTS_INPUT, "axes", 1, NULL, NULL},
    {"Unsqueeze", 13, INTS_INPUT, "axes", 1, NULL, NULL},
    {"ReduceSum", 13, INTS_INPUT, "axes", 1, NULL, NULL},
    {"ReduceSum", 13, NEW_INT, "noop_with_empty_axes", 0, NULL, NULL},
    {"QuantizeLinear", 13, NEW_INT, "axis", 1, NULL, NULL},
    {"DequantizeLinear", 13, NEW_INT, "axis", 1, NULL, NULL},
    {"RNN", 14, NEW_INT, "layout", 0, NULL, NULL},
    {"GRU", 14, NEW_INT, "layout", 0, NULL, NULL},
    {"LSTM", 14, NEW_INT, "layout", 0, NULL, NULL},
    {"Reshape", 14, NEW_INT, "allowzero", 0, NULL, NULL},
    {"BatchNormalization", 14, NEW_INT, "training_mode", 0, NULL, NULL},
    {"BatchNormalization", 14, NEW_OUTPUT, NULL, 1, NULL, NULL},
    {"Shape", 15, NEW_INT, "start", 0, NULL, NULL},
    {"Shape", 15, NEW_ANY, "end", 0, NULL, NULL},
    {"ScatterElements", 16, NEW_TEXT, "reduction", 0, "none", NULL},
    {"ScatterND", 16, NEW_TEXT, "reduction", 0, "none", NULL},
    {"RoiAlign", 16, NEW_TEXT, "coordinate_transformation_mode", 0, "output_half_pixel", NULL},
    {"ReduceMax", 18, INTS_INPUT, "axes", 1, NULL, NULL},
    {"ReduceMin", 18, INTS_INPUT, "axes", 1, NULL, NULL},
    {"ReduceMean", 18, INTS_INPUT, "axes", 1, NULL, NULL},
    {"ReduceProd", 18, INTS_INPUT, "axes", 1, NULL, NULL},
    {"ReduceL1", 18, INTS_INPUT, "axes", 1, NULL, NULL},
    {"ReduceL2", 18, INTS_INPUT, "axes", 1, NULL, NULL},
    {"ReduceLogSum", 18, INTS_INPUT, "axes", 1, NULL, NULL},
    {"ReduceLogSumExp", 18, INTS_INPUT, "axes", 1, NULL, NULL},
    {"ReduceSumSquare", 18, INTS_INPUT, "axes", 1, NULL, NULL},
    {"ReduceMax", 18, NEW_INT, "noop_with_empty_axes", 0, NULL, NULL},
    {"ReduceMin", 18, NEW_INT, "noop_with_empty_axes", 0, NULL, NULL},
    {"ReduceMean", 18, NEW_INT, "noop_with_empty_axes", 0, NULL, NULL},
    {"ReduceProd", 18, NEW_INT, "noop_with_empty_axes", 0, NULL, NULL},
    {"ReduceL1", 18, NEW_INT, "noop_with_empty_axes", 0, NULL, NULL},
    {"ReduceL2", 18, NEW_INT, "noop_with_empty_axes", 0, NULL, NULL},
    {"ReduceLogSum", 18, NEW_INT, "noop_with_empty_axes", 0, NULL, NULL},
    {"ReduceLogSumExp", 18, NEW_INT, "noop_with_empty_axes", 0, NULL, NULL},
    {"ReduceSumSquare", 18, NEW_INT, "noop_with_empty_axes", 0, NULL, NULL},
    {"Pad", 18, NEW_INPUT, NULL, 3, NULL, NULL},
    {"Split", 18, STEP, NULL, 0, NULL, trips},
    {"Resize", 18, NEW_INT, "antialias", 0, NULL, NULL},
    {"Resize", 18, NEW_ANY, "axes", 0, NULL, NULL},
    {"Resize", 18, NEW_TEXT, "keep_aspect_ratio_policy", 0, "stretch", NULL},
    {"ScatterElements", 18, STEP, NULL, 0, NULL, trips},
    {"ScatterND", 18, STEP, NULL, 0, NULL, trips},
    {"LpPool", 18, NEW_INT, "ceil_mode", 0, NULL, NULL},
    {"LpPool", 18, NEW_ANY, "dilations", 0, NULL, NULL},
    {"AveragePool", 19, NEW_ANY, "dilations", 0, NULL, NULL},
    {"Cast", 19, NEW_INT, "saturate", 1, NULL, NULL},
    {"CastLike", 19, NEW_INT, "saturate", 1, NULL, NULL},
    {"QuantizeLinear", 19, NEW_INT, "saturate", 1, NULL, NULL},
    {"Pad", 19, STEP, NULL, 0, NULL, trips},
    {"Resize", 19, STEP, NULL, 0, NULL, trips},
    {"GridSample", 20, VALUES, "mode", 0, "bilinear=linear bicubic=cubic", NULL},
    {"DFT", 20, INT_INPUT, "axis", 2, "1", NULL},
    {"GroupNormalization", 21, MEANS, NULL, 0, "GroupNormalization has a scale for each channel, not for each group",
     NULL},
    {"QuantizeLinear", 21, NEW_INT, "block_size", 0, NULL, NULL},
    {"QuantizeLinear", 21, NEW_INT, "output_dtype", 0, NULL, NULL},
    {"DequantizeLinear", 21, NEW_INT, "block_size", 0, NULL, NULL},
    {"QuantizeLinear", 23, NEW_INT, "precision", 0, NULL, NULL},
    {"DequantizeLinear", 23, NEW_INT, "output_dtype", 0, NULL, NULL},
    {"Attention", 24, NEW_INPUT, NULL, 6, NULL, NULL},
    {"Cast", 24, NEW_TEXT, "round_mode", 0, "up", NULL},
    {"CastLike", 24, NEW_TEXT, "round_mode", 0, "up", NULL},
};

/* --- one node -------------------------------------------------------------------------------------------------------------------------- */

enum { ROOM = 6 };

typedef struct node {
    tn_graph *g;
    tn_node node;
    const char *op;
    tn_value *in;
    uint32_t inputs;
    tn_attr *attrs;
    uint32_t attr_count;
    uint32_t outputs; /* named or used ones, at least the first */
    tn_arena scratch;
    bool changed;
} node;

static tn_status refuse(const node *n, int version, bool up, const char *why) {
    tn_fail(TN_ERR_UNSUPPORTED, "not supported: operator %s from operator set %d to %d: %s", n->op,
            up ? version - 1 : version, up ? version : version - 1, why);
    tn_fail_at_node(n->g, n->node);
    return TN_ERR_UNSUPPORTED;
}

static tn_attr *attr_of(node *n, const char *name) {
    for (uint32_t i = 0; i < n->attr_count; i++)
        if (strcmp(n->attrs[i].key, name) == 0)
            return &n->attrs[i];
    return NULL;
}

static void drop(node *n, tn_attr *a) {
    *a = n->attrs[--n->attr_count];
    n->changed = true;
}

static void add(node *n, tn_attr a) {
    n->attrs[n->attr_count++] = a;
    n->changed = true;
}

static bool has_input(const node *n, uint32_t i) {
    return i < n->inputs && n->in[i].id;
}

/* The element type of a value, as far as nodes that read and pass it tell. */
static tn_dtype dtype_of(const tn_graph *g, tn_value value, int depth) {
    tn_dtype dtype = tn_value_dtype(g, value);
    tn_node from = tn_value_producer(g, value);
    if (dtype != TN_DTYPE_NONE || !from.id || depth > 64)
        return dtype;
    const char *op = tn_node_op_name(g, from);
    const tn_attr *to = tn_node_attr(g, from, "to"), *constant = tn_node_attr(g, from, "value");
    static const char *const passing[] = {"Relu",
                                          "Conv",
                                          "BatchNormalization",
                                          "Add",
                                          "Mul",
                                          "Sub",
                                          "Div",
                                          "Pad",
                                          "MaxPool",
                                          "MatMul",
                                          "Gemm",
                                          "Identity",
                                          "Reshape",
                                          "Transpose",
                                          "AveragePool",
                                          "Sigmoid",
                                          "Clip",
                                          "Concat",
                                          "LeakyRelu",
                                          "Squeeze",
                                          "Unsqueeze",
                                          "Slice",
                                          "Flatten",
                                          "Dropout",
                                          "GlobalAveragePool",
                                          "ConvTranspose",
                                          "InstanceNormalization",
                                          "Upsample",
                                          "Resize"};
    if (strcmp(op, "onnx.Cast") == 0 && to && to->kind == TN_ATTR_INT)
        return (tn_dtype)to->as.i;
    if (strcmp(op, "onnx.Constant") == 0 && constant && constant->kind == TN_ATTR_TENSOR)
        return (tn_dtype)constant->as.tensor->dtype;
    for (size_t i = 0; i < sizeof passing / sizeof *passing; i++)
        if (strcmp(op + 5, passing[i]) == 0 && tn_node_input_count(g, from))
            return dtype_of(g, tn_node_input(g, from, 0), depth + 1);
    return TN_DTYPE_NONE;
}

static tn_tensor *constant_of(const tn_graph *g, tn_value value) {
    tn_node from = tn_value_producer(g, value);
    const tn_attr *a =
        from.id && strcmp(tn_node_op_name(g, from), "onnx.Constant") == 0 ? tn_node_attr(g, from, "value") : NULL;
    tn_tensor *t = a && a->kind == TN_ATTR_TENSOR ? a->as.tensor : tn_value_constant(g, value);
    return t && t->contiguous ? t : NULL;
}

static tn_status put_input(node *n, int64_t at, tn_value value, int version, bool up) {
    if (!value.id)
        return tn_graph_check(n->g);
    if (has_input(n, (uint32_t)at))
        return refuse(n, version, up, "an input is given as an attribute, too");
    while (n->inputs <= (uint32_t)at)
        n->in[n->inputs++] = (tn_value){0};
    n->in[at] = value;
    n->changed = true;
    return TN_OK;
}

static tn_value number_like(node *n, tn_dtype dtype, double number) {
    return tn_scalar(n->g, dtype, number);
}

/* --- up -------------------------------------------------------------------------------------------------------------------------------- */

static tn_status to_input(node *n, const change *c) {
    tn_attr *a = c->attr ? attr_of(n, c->attr) : NULL;
    tn_attr copy = a ? *a : (tn_attr){0};
    uint8_t wanted = c->kind == INTS_INPUT                          ? TN_ATTR_INTS
                     : c->kind == VEC_INPUT || c->kind == INT_INPUT ? TN_ATTR_INT
                                                                    : TN_ATTR_FLOAT;
    if (!c->attr)
        return TN_OK;
    if (a && a->kind != wanted)
        return refuse(n, c->version, true, "an attribute is of the wrong kind");
    if (a)
        drop(n, a);
    switch (c->kind) {
    case INTS_INPUT:
        return a ? put_input(n, c->number, tn_constant_i64(n->g, 1, copy.count, copy.as.ints), c->version, true)
                 : TN_OK;
    case VEC_INPUT:
        return a ? put_input(n, c->number, tn_constant_i64(n->g, 1, 1, &copy.as.i), c->version, true) : TN_OK;
    case INT_INPUT: {
        int64_t value = a ? copy.as.i : c->text[0] - '0';
        return put_input(n, c->number, tn_constant_i64(n->g, 0, 1, &value), c->version, true);
    }
    default: break;
    }
    if (!a && c->kind == FLOAT_INPUT)
        return TN_OK;
    tn_dtype dtype = dtype_of(n->g, n->in[0], 0);
    if (dtype == TN_DTYPE_NONE)
        return refuse(n, c->version, true, "the element type of its input is not known");
    if (!a && dtype != TN_F32)
        return TN_OK; /* the bounds of f32 are none of another type's */
    double bound = 3.4028234663852886e38;
    return put_input(n, c->number,
                     number_like(n, dtype,
                                 a                   ? copy.as.f
                                 : c->text[0] == '-' ? -bound
                                                     : bound),
                     c->version, true);
}

/* --- down ------------------------------------------------------------------------------------------------------------------------------ */

/* An input that is a constant as an attribute again. */
static tn_status to_attr(node *n, const change *c) {
    uint32_t at = (uint32_t)c->number;
    if (!c->attr || !has_input(n, at))
        return TN_OK;
    tn_tensor *t = constant_of(n->g, n->in[at]);
    if (!t)
        return refuse(n, c->version, false, "an input that becomes an attribute is no constant");
    if (c->kind == FLOAT_INPUT || c->kind == BOUND_INPUT) {
        double value = t->count == 1 ? tn_load_f64((tn_dtype)t->dtype, t->data, 0) : 0;
        if (t->count != 1 || (double)(float)value != value)
            return refuse(n, c->version, false, "a number that is no f32");
        bool absent = c->kind == BOUND_INPUT && value == (c->text[0] == '-' ? -1 : 1) * 3.4028234663852886e38;
        if (!absent)
            add(n, TN_A_FLOAT(c->attr, value));
    } else {
        int64_t *values = tn_arena_alloc(&n->scratch, (size_t)t->count * sizeof *values + 1);
        if (!values)
            return tn_error_status();
        for (int64_t i = 0; i < t->count; i++)
            values[i] = tn_load_i64((tn_dtype)t->dtype, t->data, i);
        if (c->kind == INTS_INPUT)
            add(n, TN_A_INTS(c->attr, t->count, values));
        else if (t->count == 1)
            add(n, TN_A_INT(c->attr, values[0]));
        else
            return refuse(n, c->version, false, "an input of several numbers");
    }
    n->in[at] = (tn_value){0};
    n->changed = true;
    return TN_OK;
}

static tn_status undo_new(node *n, const change *c) {
    if (c->kind == NEW_INPUT)
        return has_input(n, (uint32_t)c->number) ? refuse(n, c->version, false, "an input that is not there before")
                                                 : TN_OK;
    if (c->kind == NEW_OUTPUT)
        return n->outputs > (uint32_t)c->number ? refuse(n, c->version, false, "an output that is not there before")
                                                : TN_OK;
    tn_attr *a = attr_of(n, c->attr);
    if (!a)
        return TN_OK;
    bool same = c->kind == NEW_INT    ? a->kind == TN_ATTR_INT && a->as.i == c->number
                : c->kind == NEW_TEXT ? a->kind == TN_ATTR_STRING && a->as.s.length == strlen(c->text) &&
                                            memcmp(a->as.s.data, c->text, a->as.s.length) == 0
                                      : false;
    if (c->kind == NEW_ANY && a->kind == TN_ATTR_INTS) { /* dilations of 1 are none */
        same = strcmp(c->attr, "dilations") == 0;
        for (uint32_t i = 0; i < a->count && same; i++)
            same = a->as.ints[i] == 1;
    }
    if (!same) {
        char why[120];
        snprintf(why, sizeof why, "attribute '%.60s', which is not there before", c->attr);
        return refuse(n, c->version, false, why);
    }
    drop(n, a);
    return TN_OK;
}

static tn_status respell(node *n, const change *c, bool up) {
    tn_attr *a = attr_of(n, c->attr);
    if (!a || a->kind != TN_ATTR_STRING)
        return TN_OK;
    for (const char *p = c->text; *p;) {
        size_t old = strcspn(p, "="), new = strcspn(p + old + 1, " ");
        const char *from = up ? p : p + old + 1, *to = up ? p + old + 1 : p;
        size_t length = up ? old : new;
        if (a->as.s.length == length && memcmp(a->as.s.data, from, length) == 0) {
            a->as.s = (tn_string){to, up ? new : old};
            n->changed = true;
            return TN_OK;
        }
        p += old + 1 + new;
        p += *p == ' ';
    }
    return TN_OK;
}

/* --- steps of their own ---------------------------------------------------------------------------------------------------------------- */

/* Before 13: over all axes from `axis` (1) on as one. The same where `axis` is the last; else by way of a matrix. */
static tn_status softmax(node *n, int version, bool up) {
    tn_attr *a = attr_of(n, "axis");
    int rank = tn_value_rank(n->g, n->in[0]);
    int64_t axis = a ? a->as.i : up ? 1 : -1;
    if (axis == -1 || (rank >= 0 && axis == rank - 1)) {
        if (a)
            a->as.i = axis;
        else
            add(n, TN_A_INT("axis", axis));
        n->changed = true;
        return TN_OK;
    }
    return refuse(n, version, up,
                  up ? "before, the axes from 'axis' on are one" : "'axis' is not known to be the last");
}

/* Before 7: shapes are equal, or 'broadcast' aligns the second operand at 'axis' of the first. */
static tn_status broadcasting(node *n, int version, bool up) {
    tn_graph *g = n->g;
    tn_attr *flag = attr_of(n, "broadcast"), *axis = attr_of(n, "axis");
    int a = tn_value_rank(g, n->in[0]), b = n->inputs > 1 ? tn_value_rank(g, n->in[1]) : -1;
    if (!up) {
        bool same = a >= 0 && a == b;
        for (int i = 0; i < a && same; i++)
            same = tn_dim_equal(g, tn_value_dim(g, n->in[0], i), tn_value_dim(g, n->in[1], i));
        return same ? TN_OK : refuse(n, version, up, "its operands are not known to have one shape");
    }
    int64_t at = axis && axis->kind == TN_ATTR_INT ? axis->as.i : strcmp(n->op, "PRelu") == 0 ? 1 : -1000;
    if (axis)
        drop(n, axis);
    if ((flag = attr_of(n, "broadcast")))
        drop(n, flag);
    bool prelu = strcmp(n->op, "PRelu") == 0;
    if (at == -1000)
        return TN_OK;
    tn_tensor *constant = n->inputs > 1 ? constant_of(g, n->in[1]) : NULL;
    if (b < 0 && constant)
        b = constant->rank;
    if (prelu && (b != 1 || (constant && constant->count == 1)))
        return b >= 0 ? TN_OK : refuse(n, version, up, "the rank of its slope is not known");
    if (a < 0 || b < 0)
        return refuse(n, version, up, "the ranks of its operands are not known");
    if (at < 0)
        at += a;
    int extra = a - (int)at - b;
    if (extra < 0)
        return refuse(n, version, up, "'axis' does not align its operands");
    if (extra == 0)
        return TN_OK;
    int64_t shape[TN_MAX_RANK];
    for (int i = 0; i < b + extra; i++)
        shape[i] = i < b ? 0 : 1;
    tn_value in[] = {n->in[1], tn_constant_i64(g, 1, b + extra, shape)};
    const tn_onnx_op *row = tn_onnx_find_any("", "Reshape");
    tn_node r =
        row ? tn_graph_add_node(g, &(tn_node_desc){.op = &row->op, .input_count = 2, .inputs = in, .output_count = 1})
            : (tn_node){0};
    if (!r.id)
        return row ? tn_graph_check(g) : refuse(n, version, up, "Reshape is not in this build");
    n->in[1] = tn_node_output(g, r, 0);
    n->changed = true;
    return TN_OK;
}

static tn_status put_floats(node *n, int64_t at, uint32_t count, const float *values, int version) {
    int64_t dim = count;
    tn_tensor *t = tn_tensor_new(n->g->heap, TN_F32, 1, &dim);
    if (!t)
        return tn_error_status();
    if (count)
        memcpy(t->data, values, count * sizeof *values);
    tn_value value = tn_graph_constant(n->g, t);
    tn_tensor_destroy(t);
    return put_input(n, at, value, version, true);
}

/* Upsample 1 has a scale for the height and one for the width. */
static tn_status scales(node *n, int version, bool up) {
    tn_attr *h = attr_of(n, "height_scale"), *w = attr_of(n, "width_scale");
    if (!up || !h || !w)
        return refuse(n, version, up, "its scales are given otherwise");
    float *v = tn_arena_alloc(&n->scratch, 4 * sizeof *v);
    if (!v)
        return tn_error_status();
    v[0] = v[1] = 1;
    v[2] = (float)h->as.f;
    v[3] = (float)w->as.f;
    drop(n, h);
    drop(n, attr_of(n, "width_scale"));
    add(n, (tn_attr){.key = "scales", .kind = TN_ATTR_FLOATS, .count = 4, .as.floats = v});
    return TN_OK;
}

static tn_status upsample(node *n, int version, bool up) {
    tn_attr *a = attr_of(n, "scales");
    if (up) {
        if (!a || a->kind != TN_ATTR_FLOATS)
            return refuse(n, version, up, "it has no scales");
        tn_attr copy = *a;
        drop(n, a);
        return put_floats(n, 1, copy.count, copy.as.floats, version);
    }
    tn_tensor *t = n->inputs > 1 ? constant_of(n->g, n->in[1]) : NULL;
    if (!t || t->dtype != TN_F32)
        return refuse(n, version, up, "its scales are no constant");
    float *v = tn_arena_alloc(&n->scratch, (size_t)t->count * sizeof *v + 1);
    if (!v)
        return tn_error_status();
    memcpy(v, t->data, (size_t)t->count * sizeof *v);
    add(n, (tn_attr){.key = "scales", .kind = TN_ATTR_FLOATS, .count = (uint32_t)t->count, .as.floats = v});
    n->inputs = 1;
    return TN_OK;
}

/* Before 11, positions are those of the input times the scale, cut to whole ones; regions are not known. */
static tn_status resize(node *n, int version, bool up) {
    if (!up)
        return refuse(n, version, up, "it takes its positions from other coordinates");
    tn_value sizes = n->inputs > 1 ? n->in[1] : (tn_value){0};
    n->inputs = 1;
    TN_TRY(put_floats(n, 1, 0, NULL, version));
    n->inputs = 3;
    n->in[2] = sizes;
    add(n, TN_A_STRING("coordinate_transformation_mode", "asymmetric", 10));
    add(n, TN_A_STRING("nearest_mode", "floor", 5));
    return TN_OK;
}

/* Before 12 it drops nothing; since, when it is told that it trains. */
static tn_status dropout(node *n, int version, bool up) {
    if (up) {
        tn_attr *a = attr_of(n, "ratio");
        if (a)
            drop(n, a);
        return TN_OK;
    }
    if (has_input(n, 2))
        return refuse(n, version, up, "it may train");
    tn_attr *seed = attr_of(n, "seed");
    if (seed)
        drop(n, seed);
    n->changed = n->changed || n->inputs > 1;
    n->inputs = 1;
    return TN_OK;
}

static tn_status cast_names(node *n, int version, bool up) {
    tn_attr *a = attr_of(n, "to");
    char name[24];
    if (!a)
        return TN_OK;
    if (up && a->kind == TN_ATTR_STRING) {
        size_t length = a->as.s.length < sizeof name - 1 ? a->as.s.length : sizeof name - 1;
        for (size_t i = 0; i < length; i++)
            name[i] = (char)(a->as.s.data[i] >= 'A' && a->as.s.data[i] <= 'Z' ? a->as.s.data[i] + 32 : a->as.s.data[i]);
        name[length] = 0;
        if (!tn_dtype_from_name(name))
            return refuse(n, version, up, "there is no such element type");
        *a = TN_A_INT("to", tn_dtype_from_name(name));
        n->changed = true;
        return TN_OK;
    }
    return up ? TN_OK : refuse(n, version, up, "element types are spelt out before");
}

static tn_status pad_names(node *n, int version, bool up) {
    tn_attr *a = attr_of(n, up ? "paddings" : "pads");
    (void)version;
    if (a) {
        a->key = up ? "pads" : "paddings";
        n->changed = true;
    }
    return TN_OK;
}

static bool text_is(const tn_attr *a, const char *text) {
    return a && a->kind == TN_ATTR_STRING && a->as.s.length == strlen(text) &&
           memcmp(a->as.s.data, text, a->as.s.length) == 0;
}

/* Values of attributes that come later, and what a node must say since. */
static tn_status trips(node *n, int version, bool up) {
    tn_attr *a;
    if (strcmp(n->op, "BatchNormalization") == 0) {
        if ((a = attr_of(n, "is_test")))
            drop(n, a);
        if (!up)
            add(n, TN_A_INT("is_test", 1));
        return TN_OK;
    }
    if (strcmp(n->op, "Split") == 0) { /* equal parts must be counted */
        if (up && !has_input(n, 1) && !attr_of(n, "num_outputs"))
            add(n, TN_A_INT("num_outputs", tn_node_output_count(n->g, n->node)));
        else if (!up && (a = attr_of(n, "num_outputs"))) {
            int rank = tn_value_rank(n->g, n->in[0]);
            const tn_attr *axis = attr_of(n, "axis");
            int64_t size, at = axis ? axis->as.i : 0, parts = a->as.i;
            if (rank < 0 || !tn_dim_is_const(n->g, tn_value_dim(n->g, n->in[0], (int)at), &size) || parts < 1 ||
                size % parts)
                return refuse(n, version, up, "its parts are not known to be equal");
            drop(n, a);
        }
        return TN_OK;
    }
    if (up)
        return TN_OK;
    if (strncmp(n->op, "Scatter", 7) == 0 &&
        (text_is(attr_of(n, "reduction"), "max") || text_is(attr_of(n, "reduction"), "min")))
        return refuse(n, version, up, "reduction by max or min");
    if (strcmp(n->op, "Pad") == 0 && text_is(attr_of(n, "mode"), "wrap"))
        return refuse(n, version, up, "mode 'wrap'");
    if (strcmp(n->op, "Resize") == 0 && text_is(attr_of(n, "coordinate_transformation_mode"), "half_pixel_symmetric"))
        return refuse(n, version, up, "half_pixel_symmetric");
    return TN_OK;
}

/* --- driver ---------------------------------------------------------------------------------------------------------------------------- */

static bool names(const change *c, const char *op) {
    size_t length = strlen(c->op);
    return c->op[length - 1] == '*' ? strncmp(c->op, op, length - 1) == 0 : strcmp(c->op, op) == 0;
}

static tn_status apply(node *n, const change *c, bool up) {
    switch (c->kind) {
    case DROPPED: {
        tn_attr *a = up ? attr_of(n, c->attr) : NULL;
        if (a && strcmp(c->attr, "spatial") == 0 && a->as.i != 1)
            return refuse(n, c->version, up, "statistics of each element");
        if (a)
            drop(n, a);
        return TN_OK;
    }
    case NEW_INT:
        if (up && strcmp(c->op, "Concat") == 0 && !attr_of(n, c->attr))
            add(n, TN_A_INT(c->attr, c->number));
        return up || (strcmp(c->op, "Concat") == 0) || strcmp(c->attr, "spatial") == 0 ? TN_OK : undo_new(n, c);
    case NEW_TEXT:
        if (up && strcmp(c->op, "RoiAlign") == 0 && !attr_of(n, c->attr))
            add(n, TN_A_STRING(c->attr, c->text, strlen(c->text)));
        if (!up && strcmp(c->op, "RoiAlign") == 0 && !attr_of(n, c->attr))
            return refuse(n, c->version, up, "coordinates are shifted by half a pixel");
        return up ? TN_OK : undo_new(n, c);
    case NEW_ANY:
    case NEW_INPUT:
    case NEW_OUTPUT: return up ? TN_OK : undo_new(n, c);
    case INTS_INPUT:
    case VEC_INPUT:
    case INT_INPUT:
    case FLOAT_INPUT:
    case BOUND_INPUT: return up ? to_input(n, c) : to_attr(n, c);
    case VALUES: return respell(n, c, up);
    case OPERATOR:
        if (!up)
            return TN_OK;
        n->op = c->text;
        n->changed = true;
        return TN_OK;
    case MEANS: return refuse(n, c->version, up, c->text);
    case STEP: return c->step(n, c->version, up);
    }
    return TN_OK;
}

static tn_status apply_step(node *n, int version, bool up) {
    size_t count = sizeof changes / sizeof *changes;
    for (size_t k = 0; k < count; k++) {
        const change *c = &changes[up ? k : count - 1 - k];
        if (c->version == version && names(c, n->op))
            TN_TRY(apply(n, c, up));
    }
    return TN_OK;
}

/* A node in the place of the old one. */
static tn_status rebuild(node *n) {
    tn_graph *g = n->g;
    const tn_onnx_op *row = tn_onnx_find_any("", n->op);
    uint32_t outputs = tn_node_output_count(g, n->node);
    while (n->inputs && !n->in[n->inputs - 1].id)
        n->inputs--;
    tn_type *types = tn_arena_alloc(&n->scratch, outputs * sizeof *types + 1);
    if (!types)
        return tn_error_status();
    for (uint32_t i = 0; i < outputs; i++)
        types[i] = tn_value_type(g, tn_node_output(g, n->node, i));
    if (tn_node_region_count(g, n->node) || !row) {
        tn_fail(TN_ERR_UNSUPPORTED, "not supported: %s in another operator set", n->op);
        tn_fail_at_node(g, n->node);
        return TN_ERR_UNSUPPORTED;
    }
    tn_node made = tn_graph_add_node_typed(g,
                                           &(tn_node_desc){.op = &row->op,
                                                           .name = tn_node_name(g, n->node),
                                                           .input_count = n->inputs,
                                                           .inputs = n->in,
                                                           .output_count = outputs,
                                                           .attr_count = n->attr_count,
                                                           .attrs = n->attrs},
                                           types);
    if (!made.id)
        return tn_graph_check(g);
    for (uint32_t i = 0; i < outputs; i++) {
        tn_value old = tn_node_output(g, n->node, i), value = tn_node_output(g, made, i);
        if (*tn_value_name(g, old))
            TN_TRY(tn_value_set_name(g, value, tn_value_name(g, old)));
        TN_TRY(tn_value_replace_uses(g, old, value));
    }
    return tn_node_remove(g, n->node);
}

static tn_status convert_steps(node *n, int from, int to) {
    tn_graph *g = n->g;
    n->in = tn_arena_alloc(&n->scratch, (n->inputs + ROOM) * sizeof *n->in);
    n->attrs = tn_arena_alloc(&n->scratch, (n->attr_count + ROOM) * sizeof *n->attrs);
    if (!n->in || !n->attrs)
        return tn_error_status();
    for (uint32_t i = 0; i < n->inputs; i++)
        n->in[i] = tn_node_input(g, n->node, i);
    for (uint32_t i = 0; i < n->attr_count; i++) {
        n->attrs[i] = *tn_node_attr_at(g, n->node, i);
        n->attrs[i].key = tn_strings_text(&g->strings, n->attrs[i].name);
    }
    for (uint32_t i = 0; i < tn_node_output_count(g, n->node); i++) {
        tn_value v = tn_node_output(g, n->node, i);
        if (i == 0 || *tn_value_name(g, v) || tn_value_use_count(g, v))
            n->outputs = i + 1;
    }
    tn_graph_insert_before(g, n->node);
    tn_graph_at_location(g, tn_node_location(g, n->node));
    for (int v = from + 1; v <= to; v++)
        TN_TRY(apply_step(n, v, true));
    for (int v = from; v > to; v--)
        TN_TRY(apply_step(n, v, false));
    if (!tn_onnx_find("", n->op, to))
        return refuse(n, from < to ? to : from, from < to, "it is not there");
    return n->changed ? rebuild(n) : TN_OK;
}

static tn_status convert_region(tn_graph *g, tn_region region, int from, int to, int depth) {
    if (depth > TN_MAX_NESTING)
        return tn_fail(TN_ERR_LIMIT, "regions are nested deeper than %d", TN_MAX_NESTING);
    for (tn_node at = tn_region_first(g, region), next; at.id; at = next) {
        next = tn_node_next(g, at);
        const tn_op *op = tn_node_op(g, at);
        for (uint32_t i = 0; i < tn_node_region_count(g, at); i++)
            TN_TRY(convert_region(g, tn_node_region(g, at, i), from, to, depth + 1));
        if (op->dialect != TN_DIALECT_ONNX || op->extra != tn_onnx_known)
            continue;
        const tn_onnx_op *row = (const tn_onnx_op *)(const void *)op;
        if (*row->domain)
            continue;
        node n = {.g = g,
                  .node = at,
                  .op = row->name,
                  .inputs = tn_node_input_count(g, at),
                  .attr_count = tn_node_attr_count(g, at)};
        tn_arena_init(&n.scratch, g->heap);
        tn_status status = convert_steps(&n, from, to);
        tn_arena_free(&n.scratch);
        TN_TRY(status);
    }
    return TN_OK;
}

tn_status tn_onnx_convert(tn_graph *graph, int from, int to) {
    for (uint32_t i = 0; i < graph->function.len; i++) {
        char key[600];
        int n = snprintf(key, sizeof key, TN_META_FUNCTION "%s",
                         tn_strings_text(&graph->strings, graph->function.data[i].name));
        if (n < (int)sizeof key && tn_graph_metadata(graph, key)) {
            tn_fail(TN_ERR_UNSUPPORTED, "not supported: a model with functions in another operator set");
            tn_fail_hint("-O1 inlines functions");
            return TN_ERR_UNSUPPORTED;
        }
    }
    tn_insertion at = tn_graph_insertion(graph);
    TN_TRY(convert_region(graph, tn_graph_region(graph), from, to, 0));
    tn_graph_set_insertion(graph, at);
    return TN_OK;
}
