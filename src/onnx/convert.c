/* Operator sets: nodes of the standard from one version to another, up and down, by one table of what changed when. What the table
   does not name is the same in all versions that have the operator (but for the element types it admits). */
#define TN_NO_POSITIONS
#include <inttypes.h>
#include <stdio.h>
#include <tenon/build.h>

#include "onnx/contract.h"
#include "onnx/convert.h"
#include "onnx/expander.h"

enum { ROOM = 6 }; /* inputs and attributes that a node may gain */

/* --- the table --------------------------------------------------------------------------------------------------------------------------- */

static const tn_change changes[] = {
    {"Reshape", 5, INTS_INPUT, "shape", 1, NULL, NULL},
    {"*", 6, DROPPED, "consumed_inputs", 0, NULL, NULL},
    {"Cast", 6, STEP, "to", 0, NULL, tn_step_cast_names},
    {"Tile", 6, MEANS, NULL, 0, "Tile takes its repeats otherwise", NULL},
    {"Pad", 2, STEP, NULL, 0, NULL, tn_step_pad_names},
    {"Concat", 4, NEW_INT, "axis", 1, NULL, NULL},
    {"Add", 7, STEP, NULL, 0, NULL, tn_step_broadcasting},
    {"Sub", 7, STEP, NULL, 0, NULL, tn_step_broadcasting},
    {"Mul", 7, STEP, NULL, 0, NULL, tn_step_broadcasting},
    {"Div", 7, STEP, NULL, 0, NULL, tn_step_broadcasting},
    {"Pow", 7, STEP, NULL, 0, NULL, tn_step_broadcasting},
    {"And", 7, STEP, NULL, 0, NULL, tn_step_broadcasting},
    {"Or", 7, STEP, NULL, 0, NULL, tn_step_broadcasting},
    {"Xor", 7, STEP, NULL, 0, NULL, tn_step_broadcasting},
    {"Equal", 7, STEP, NULL, 0, NULL, tn_step_broadcasting},
    {"Greater", 7, STEP, NULL, 0, NULL, tn_step_broadcasting},
    {"Less", 7, STEP, NULL, 0, NULL, tn_step_broadcasting},
    {"PRelu", 7, STEP, NULL, 0, NULL, tn_step_broadcasting},
    {"Gemm", 7, DROPPED, "broadcast", 0, NULL, NULL},
    {"BatchNormalization", 7, STEP, NULL, 0, NULL, tn_step_trips},
    {"Dropout", 7, DROPPED, "is_test", 0, NULL, NULL},
    {"RNN", 7, DROPPED, "output_sequence", 0, NULL, NULL},
    {"GRU", 7, DROPPED, "output_sequence", 0, NULL, NULL},
    {"LSTM", 7, DROPPED, "output_sequence", 0, NULL, NULL},
    {"Upsample", 7, STEP, NULL, 0, NULL, tn_step_scales},
    {"AveragePool", 7, NEW_INT, "count_include_pad", 0, NULL, NULL},
    {"MaxPool", 8, NEW_INT, "storage_order", 0, NULL, NULL},
    {"MaxPool", 8, NEW_OUTPUT, NULL, 1, NULL, NULL},
    {"Scan", 9, MEANS, NULL, 0, "Scan runs over a batch", NULL},
    {"BatchNormalization", 9, NEW_INT, "spatial", 1, NULL, NULL},
    {"BatchNormalization", 9, DROPPED, "spatial", 0, NULL, NULL},
    {"Upsample", 9, STEP, NULL, 0, NULL, tn_step_upsample},
    {"Upsample", 10, OPERATOR, NULL, 0, "Resize", NULL},
    {"MaxPool", 10, NEW_INT, "ceil_mode", 0, NULL, NULL},
    {"MaxPool", 10, NEW_ANY, "dilations", 0, NULL, NULL},
    {"AveragePool", 10, NEW_INT, "ceil_mode", 0, NULL, NULL},
    {"Slice", 10, INTS_INPUT, "starts", 1, NULL, NULL},
    {"Slice", 10, INTS_INPUT, "ends", 2, NULL, NULL},
    {"Slice", 10, INTS_INPUT, "axes", 3, NULL, NULL},
    {"Slice", 10, NEW_INPUT, NULL, 4, NULL, NULL},
    {"TopK", 10, VEC_INPUT, "k", 1, NULL, NULL},
    {"TopK", 10, STEP, NULL, 0, NULL, tn_step_narrower},
    {"Dropout", 10, NEW_OUTPUT, NULL, 1, NULL, NULL},
    {"Clip", 11, BOUND_INPUT, "min", 1, "-", NULL},
    {"Clip", 11, BOUND_INPUT, "max", 2, "+", NULL},
    {"Flatten", 11, STEP, NULL, 0, NULL, tn_step_narrower},
    {"Gemm", 11, STEP, NULL, 0, NULL, tn_step_narrower},
    {"Pad", 11, INTS_INPUT, "pads", 1, NULL, NULL},
    {"Pad", 11, FLOAT_INPUT, "value", 2, NULL, NULL},
    {"Resize", 11, STEP, NULL, 0, NULL, tn_step_resize},
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
    {"Dropout", 12, STEP, NULL, 0, NULL, tn_step_dropout},
    {"Softmax", 13, STEP, NULL, 0, NULL, tn_step_softmax},
    {"LogSoftmax", 13, STEP, NULL, 0, NULL, tn_step_softmax},
    {"Hardmax", 13, STEP, NULL, 0, NULL, tn_step_softmax},
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
    {"Identity", 14, STEP, NULL, 0, NULL, tn_step_narrower},
    {"Shape", 15, NEW_INT, "start", 0, NULL, NULL},
    {"Shape", 15, NEW_ANY, "end", 0, NULL, NULL},
    {"Identity", 16, STEP, NULL, 0, NULL, tn_step_narrower},
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
    {"Split", 18, STEP, NULL, 0, NULL, tn_step_trips},
    {"Resize", 18, NEW_INT, "antialias", 0, NULL, NULL},
    {"Resize", 18, NEW_ANY, "axes", 0, NULL, NULL},
    {"Resize", 18, NEW_TEXT, "keep_aspect_ratio_policy", 0, "stretch", NULL},
    {"ScatterElements", 18, STEP, NULL, 0, NULL, tn_step_trips},
    {"ScatterND", 18, STEP, NULL, 0, NULL, tn_step_trips},
    {"LpPool", 18, NEW_INT, "ceil_mode", 0, NULL, NULL},
    {"LpPool", 18, NEW_ANY, "dilations", 0, NULL, NULL},
    {"AveragePool", 19, NEW_ANY, "dilations", 0, NULL, NULL},
    {"Cast", 19, NEW_INT, "saturate", 1, NULL, NULL},
    {"CastLike", 19, NEW_INT, "saturate", 1, NULL, NULL},
    {"QuantizeLinear", 19, NEW_INT, "saturate", 1, NULL, NULL},
    {"Pad", 19, STEP, NULL, 0, NULL, tn_step_trips},
    {"Resize", 19, STEP, NULL, 0, NULL, tn_step_trips},
    {"GridSample", 20, VALUES, "mode", 0, "bilinear=linear bicubic=cubic", NULL},
    {"DFT", 20, INT_INPUT, "axis", 2, "1", NULL},
    {"GroupNormalization", 21, MEANS, NULL, 0, "GroupNormalization has a scale for each channel, not for each group",
     NULL},
    {"QuantizeLinear", 21, NEW_INT, "block_size", 0, NULL, NULL},
    {"QuantizeLinear", 21, NEW_INT, "output_dtype", 0, NULL, NULL},
    {"DequantizeLinear", 21, NEW_INT, "block_size", 0, NULL, NULL},
    {"QuantizeLinear", 23, NEW_INT, "precision", 0, NULL, NULL},
    {"DequantizeLinear", 23, NEW_INT, "output_dtype", 0, NULL, NULL},
    {"*", 13, TYPES, NULL, 0, "bf16", NULL},
    {"*", 19, TYPES, NULL, 0, "f8e4m3fn f8e4m3fnuz f8e5m2 f8e5m2fnuz", NULL},
    {"*", 21, TYPES, NULL, 0, "i4 u4", NULL},
    {"*", 23, TYPES, NULL, 0, "f4e2m1", NULL},
    {"*", 24, TYPES, NULL, 0, "f8e8m0", NULL},
    {"*", 25, TYPES, NULL, 0, "i2 u2", NULL},
    {"Add", 14, TYPES, NULL, 0, "i8 i16 u8 u16", NULL},
    {"Sub", 14, TYPES, NULL, 0, "i8 i16 u8 u16", NULL},
    {"Mul", 14, TYPES, NULL, 0, "i8 i16 u8 u16", NULL},
    {"Div", 14, TYPES, NULL, 0, "i8 i16 u8 u16", NULL},
    {"Relu", 14, TYPES, NULL, 0, "i8 i16 i32 i64", NULL},
    {"Max", 12, TYPES, NULL, 0, "i8 i16 i32 i64 u8 u16 u32 u64", NULL},
    {"Min", 12, TYPES, NULL, 0, "i8 i16 i32 i64 u8 u16 u32 u64", NULL},
    {"Clip", 12, TYPES, NULL, 0, "i8 i16 i32 i64 u8 u16 u32 u64", NULL},
    {"Pow", 12, TYPES, NULL, 0, "i32 i64", NULL},
    {"ReduceMax", 12, TYPES, NULL, 0, "i8 u8", NULL},
    {"ReduceMin", 12, TYPES, NULL, 0, "i8 u8", NULL},
    {"ReduceMax", 20, TYPES, NULL, 0, "bool", NULL},
    {"ReduceMin", 20, TYPES, NULL, 0, "bool", NULL},
    {"MaxPool", 12, TYPES, NULL, 0, "i8 u8", NULL},
    {"MatMul", 9, TYPES, NULL, 0, "i32 i64 u32 u64", NULL},
    {"Gemm", 9, TYPES, NULL, 0, "i32 i64 u32 u64", NULL},
    {"Less", 9, TYPES, NULL, 0, "i8 i16 i32 i64 u8 u16 u32 u64", NULL},
    {"Greater", 9, TYPES, NULL, 0, "i8 i16 i32 i64 u8 u16 u32 u64", NULL},
    {"Equal", 11, TYPES, NULL, 0, "f16 f32 f64", NULL},
    {"Equal", 19, TYPES, NULL, 0, "string", NULL},
    {"Cast", 9, TYPES, NULL, 0, "string", NULL},
    {"Sign", 13, TYPES, NULL, 0, "bf16", NULL},
    {"Pad", 13, TYPES, NULL, 0, "bool string", NULL},
    {"IsInf", 20, TYPES, NULL, 0, "f16 bf16", NULL},
    {"IsNaN", 13, TYPES, NULL, 0, "f64", NULL},
    {"MaxPool", 22, STEP, "ceil_mode", 0, NULL, tn_step_trips},
    {"AveragePool", 22, STEP, "ceil_mode", 0, NULL, tn_step_trips},
    {"LpPool", 22, STEP, "ceil_mode", 0, NULL, tn_step_trips},
    {"Attention", 24, NEW_INPUT, NULL, 6, NULL, NULL},
    {"Cast", 24, NEW_TEXT, "round_mode", 0, "up", NULL},
    {"CastLike", 24, NEW_TEXT, "round_mode", 0, "up", NULL},
};

/* --- up -------------------------------------------------------------------------------------------------------------------------------- */

static tn_status to_input(tn_convert_node *n, const tn_change *c) {
    tn_attr *a = c->attr ? tn_v_attr_of(n, c->attr) : NULL;
    tn_attr copy = a ? *a : (tn_attr){0};
    uint8_t wanted = c->kind == INTS_INPUT                          ? TN_ATTR_INTS
                     : c->kind == VEC_INPUT || c->kind == INT_INPUT ? TN_ATTR_INT
                                                                    : TN_ATTR_FLOAT;
    if (!c->attr)
        return TN_OK;
    if (a && a->kind != wanted)
        return tn_v_refuse(n, c->version, true, "an attribute is of the wrong kind");
    if (a)
        tn_v_drop(n, a);
    switch (c->kind) {
    case INTS_INPUT:
        return a ? tn_v_put_input(n, c->number, tn_constant_i64(n->g, 1, copy.count, copy.as.ints), c->version, true)
                 : TN_OK;
    case VEC_INPUT:
        return a ? tn_v_put_input(n, c->number, tn_constant_i64(n->g, 1, 1, &copy.as.i), c->version, true) : TN_OK;
    case INT_INPUT: {
        int64_t value = a ? copy.as.i : c->text[0] - '0';
        return tn_v_put_input(n, c->number, tn_constant_i64(n->g, 0, 1, &value), c->version, true);
    }
    default: break;
    }
    if (!a && c->kind == FLOAT_INPUT)
        return TN_OK;
    tn_dtype dtype = tn_v_dtype_of(n->g, n->in[0], 0);
    if (dtype == TN_DTYPE_NONE)
        return tn_v_refuse(n, c->version, true, "the element type of its input is not known");
    if (!a && dtype != TN_F32)
        return TN_OK; /* the bounds of f32 are none of another type's */
    double bound = 3.4028234663852886e38;
    return tn_v_put_input(n, c->number,
                          tn_scalar(n->g, dtype,
                                    a                   ? copy.as.f
                                    : c->text[0] == '-' ? -bound
                                                        : bound),
                          c->version, true);
}

/* --- down ------------------------------------------------------------------------------------------------------------------------------ */

/* An input that is a constant as an attribute again. */
static tn_status to_attr(tn_convert_node *n, const tn_change *c) {
    uint32_t at = (uint32_t)c->number;
    if (!c->attr || !tn_v_has_input(n, at))
        return TN_OK;
    tn_tensor *t = tn_v_constant_of(n->g, n->in[at]);
    if (!t)
        return tn_v_refuse(n, c->version, false, "an input that becomes an attribute is no constant");
    if (c->kind == FLOAT_INPUT || c->kind == BOUND_INPUT) {
        double value = t->count == 1 ? tn_load_f64((tn_dtype)t->dtype, t->data, 0) : 0;
        if (t->count != 1 || (double)(float)value != value)
            return tn_v_refuse(n, c->version, false, "a number that is no f32");
        bool absent = c->kind == BOUND_INPUT && value == (c->text[0] == '-' ? -1 : 1) * 3.4028234663852886e38;
        if (!absent)
            tn_v_add(n, TN_A_FLOAT(c->attr, value));
    } else {
        int64_t *values = tn_arena_alloc(&n->scratch, (size_t)t->count * sizeof *values + 1);
        if (!values)
            return tn_error_status();
        for (int64_t i = 0; i < t->count; i++)
            values[i] = tn_load_i64((tn_dtype)t->dtype, t->data, i);
        if (c->kind == INTS_INPUT)
            tn_v_add(n, TN_A_INTS(c->attr, t->count, values));
        else if (t->count == 1)
            tn_v_add(n, TN_A_INT(c->attr, values[0]));
        else
            return tn_v_refuse(n, c->version, false, "an input of several numbers");
    }
    n->in[at] = (tn_value){0};
    n->changed = true;
    return TN_OK;
}

static tn_status undo_new(tn_convert_node *n, const tn_change *c) {
    if (c->kind == NEW_INPUT)
        return tn_v_has_input(n, (uint32_t)c->number)
                   ? tn_v_refuse(n, c->version, false, "an input that is not there before")
                   : TN_OK;
    if (c->kind == NEW_OUTPUT)
        return n->outputs > (uint32_t)c->number
                   ? tn_v_refuse(n, c->version, false, "an output that is not there before")
                   : TN_OK;
    tn_attr *a = tn_v_attr_of(n, c->attr);
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
        return tn_v_refuse(n, c->version, false, why);
    }
    tn_v_drop(n, a);
    return TN_OK;
}

static tn_status respell(tn_convert_node *n, const tn_change *c, bool up) {
    tn_attr *a = tn_v_attr_of(n, c->attr);
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

/* --- driver ---------------------------------------------------------------------------------------------------------------------------- */

static bool names(const tn_change *c, const char *op) {
    size_t length = strlen(c->op);
    return c->op[length - 1] == '*' ? strncmp(c->op, op, length - 1) == 0 : strcmp(c->op, op) == 0;
}

static bool listed(const char *list, const char *name) {
    size_t length = strlen(name);
    for (const char *p = list; *p; p += strcspn(p, " "), p += *p == ' ')
        if (strcspn(p, " ") == length && memcmp(p, name, length) == 0)
            return true;
    return false;
}

/* Types that nothing had before are those of any input; others of the first. */
static tn_status check_types(tn_convert_node *n, const tn_change *c) {
    const tn_attr *to = tn_v_attr_of(n, "to"), *value = tn_v_attr_of(n, "value");
    uint32_t inputs = strcmp(c->op, "*") == 0 ? n->inputs : n->inputs > 0, more = 3;
    tn_dtype types[3] = {tn_value_dtype(n->g, tn_node_output(n->g, n->node, 0)),
                         to && to->kind == TN_ATTR_INT && to->as.i > 0 && to->as.i < TN_DTYPE_COUNT ? (tn_dtype)to->as.i
                                                                                                    : TN_DTYPE_NONE,
                         value && value->kind == TN_ATTR_TENSOR ? (tn_dtype)value->as.tensor->dtype : TN_DTYPE_NONE};
    for (uint32_t i = 0; i < inputs + more; i++) {
        tn_dtype type = i < more                      ? types[i]
                        : tn_v_has_input(n, i - more) ? tn_v_dtype_of(n->g, n->in[i - more], 0)
                                                      : TN_DTYPE_NONE;
        if (type == TN_DTYPE_NONE || !listed(c->text, tn_dtype_name(type)))
            continue;
        char why[80];
        snprintf(why, sizeof why, "it does not admit %s before", tn_dtype_name(type));
        return tn_v_refuse(n, c->version, false, why);
    }
    return TN_OK;
}

static tn_status apply(tn_convert_node *n, const tn_change *c, bool up) {
    switch (c->kind) {
    case DROPPED: {
        tn_attr *a = up ? tn_v_attr_of(n, c->attr) : NULL;
        if (a && strcmp(c->attr, "spatial") == 0 && a->as.i != 1)
            return tn_v_refuse(n, c->version, up, "statistics of each element");
        if (a)
            tn_v_drop(n, a);
        return TN_OK;
    }
    case NEW_INT:
        if (up && strcmp(c->op, "Concat") == 0 && !tn_v_attr_of(n, c->attr))
            tn_v_add(n, TN_A_INT(c->attr, c->number));
        return up || (strcmp(c->op, "Concat") == 0) || strcmp(c->attr, "spatial") == 0 ? TN_OK : undo_new(n, c);
    case NEW_TEXT:
        if (up && strcmp(c->op, "RoiAlign") == 0 && !tn_v_attr_of(n, c->attr))
            tn_v_add(n, TN_A_STRING(c->attr, c->text, strlen(c->text)));
        if (!up && strcmp(c->op, "RoiAlign") == 0 && !tn_v_attr_of(n, c->attr))
            return tn_v_refuse(n, c->version, up, "coordinates are shifted by half a pixel");
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
    case TYPES: return up ? TN_OK : check_types(n, c);
    case MEANS: return tn_v_refuse(n, c->version, up, c->text);
    case STEP: return c->step(n, c->version, up);
    }
    return TN_OK;
}

static tn_status apply_step(tn_convert_node *n, int version, bool up) {
    size_t count = sizeof changes / sizeof *changes;
    for (size_t k = 0; k < count; k++) {
        const tn_change *c = &changes[up ? k : count - 1 - k];
        if (c->version == version && names(c, n->op))
            TN_TRY(apply(n, c, up));
    }
    return TN_OK;
}

/* A node in the place of the old one. */
static tn_status rebuild(tn_convert_node *n) {
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

/* What its text lists in an earlier operator set; what only moves elements has one meaning in all of them. */
static tn_status check_taken(tn_convert_node *n, const tn_onnx_op *row, int from, int to) {
    tn_dtype dtypes[8];
    uint32_t inputs = n->inputs < 8 ? n->inputs : 8, input;
    for (uint32_t i = 0; i < inputs; i++)
        dtypes[i] = n->in[i].id ? tn_v_dtype_of(n->g, n->in[i], 0) : TN_DTYPE_NONE;
    if (tn_onnx_takes(row, to, inputs, dtypes, &input))
        return TN_OK;
    tn_fail(TN_ERR_UNSUPPORTED,
            "not supported: operator %s from operator set %d to %d: it does not take input %u of %s there", n->op, from,
            to, (unsigned)input, tn_dtype_name(dtypes[input]));
    tn_fail_at_node(n->g, n->node);
    return TN_ERR_UNSUPPORTED;
}

static tn_status convert_steps(tn_convert_node *n, int from, int to) {
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
    const tn_onnx_op *row = tn_onnx_find("", n->op, to);
    if (!row)
        return tn_v_refuse(n, from < to ? to : from, from < to, "it is not there");
    if (to < from)
        TN_TRY(check_taken(n, row, from, to));
    n->changed |= n->inputs && !n->in[n->inputs - 1].id; /* inputs left empty at the end may be too many there */
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
        tn_convert_node n = {.g = g,
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
        tn_text key;
        tn_text_init(&key, graph->heap);
        tn_text_printf(&key, TN_META_FUNCTION "%s", tn_strings_text(&graph->strings, graph->function.data[i].name));
        bool failed = key.failed, written = !failed && tn_graph_metadata(graph, key.data);
        tn_text_free(&key);
        if (failed)
            return tn_error_status();
        if (written) {
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
