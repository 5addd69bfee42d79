/* Versions of operators brought to the newest form: one table says what became an input, was renamed or dropped. */
#define TN_NO_POSITIONS
#include <tenon/build.h>

#include <inttypes.h>

#include "onnx/expander.h"

typedef enum step {
    DROP,         /* the attribute goes */
    INTS_IN,      /* list of integers -> input i64[n] */
    INT_VEC_IN,   /* integer -> input i64[1] */
    INT_IN,       /* integer -> input i64 scalar; absent: `number` */
    FLOATS_IN,    /* numbers -> input f32[n] */
    FLOAT_IN,     /* number -> input, scalar of input 0's dtype; absent: none */
    FLOAT_IN_OR,  /* the same; absent: `text` as a number below */
    ALIGN,        /* legacy broadcast: `attr` names the axis of input 0 where `input` starts */
    ALIGN_AT,     /* the same at axis `number`, for an input of rank 1 */
    MOVE,         /* input `number` becomes `input` */
    RENAME,       /* the attribute is now called `text` */
    INT_OR,       /* absent attribute: `number` */
    STRING_OR,    /* absent attribute: `text` */
    DTYPE_TEXT,   /* an element type spelt out -> its number */
    FLOAT_TO_INT, /* a number that has become an integer */
    LATER,        /* the attribute came with a later version */
    INPUTS,       /* no more than `number` inputs: others came with a later version */
    OUTPUTS,      /* the same of outputs */
    SCALES        /* height_scale, width_scale -> input f32[4] */
} step;

typedef struct rule {
    char op[20]; /* of ai.onnx; "*": all; "Reduce*": all that begin so */
    int8_t since, until;
    uint8_t step; /* small fields, few pointers: the table stands in every program */
    const char *attr;
    int8_t input;
    int32_t number;
    const char *text;
} rule;

static const rule rules[] = {
    /* what versions lack; before the rules that make inputs */
    {"Attention", 23, 23, INPUTS, NULL, 0, 6, NULL},
    {"Attention", 23, 24, LATER, "left_window_size", 0, 0, NULL},
    {"Attention", 23, 24, LATER, "right_window_size", 0, 0, NULL},
    {"ArgM*", 1, 11, LATER, "select_last_index", 0, 0, NULL},
    {"AveragePool", 1, 6, LATER, "count_include_pad", 0, 0, NULL},
    {"AveragePool", 1, 9, LATER, "ceil_mode", 0, 0, NULL},
    {"AveragePool", 1, 18, LATER, "dilations", 0, 0, NULL},
    {"BatchNormalization", 1, 13, LATER, "training_mode", 0, 0, NULL},
    {"Cast*", 1, 18, LATER, "saturate", 0, 0, NULL},
    {"Cast*", 1, 23, LATER, "round_mode", 0, 0, NULL},
    {"Clip", 1, 10, INPUTS, NULL, 0, 1, NULL},
    {"DFT", 17, 19, INPUTS, NULL, 0, 2, NULL},
    {"DepthToSpace", 1, 10, LATER, "mode", 0, 0, NULL},
    {"SpaceToDepth", 1, 27, LATER, "mode", 0, 0, NULL},
    {"DequantizeLinear", 10, 12, LATER, "axis", 0, 0, NULL},
    {"DequantizeLinear", 10, 20, LATER, "block_size", 0, 0, NULL},
    {"DequantizeLinear", 10, 22, LATER, "output_dtype", 0, 0, NULL},
    {"QuantizeLinear", 10, 12, LATER, "axis", 0, 0, NULL},
    {"QuantizeLinear", 10, 18, LATER, "saturate", 0, 0, NULL},
    {"QuantizeLinear", 10, 20, LATER, "block_size", 0, 0, NULL},
    {"QuantizeLinear", 10, 20, LATER, "output_dtype", 0, 0, NULL},
    {"QuantizeLinear", 10, 22, LATER, "precision", 0, 0, NULL},
    {"Dropout", 1, 11, INPUTS, NULL, 0, 1, NULL},
    {"Dropout", 1, 11, LATER, "seed", 0, 0, NULL},
    {"GRU", 1, 2, LATER, "linear_before_reset", 0, 0, NULL},
    {"GRU", 1, 13, LATER, "layout", 0, 0, NULL},
    {"LSTM", 1, 13, LATER, "layout", 0, 0, NULL},
    {"RNN", 1, 13, LATER, "layout", 0, 0, NULL},
    {"GatherND", 11, 11, LATER, "batch_dims", 0, 0, NULL},
    {"GroupNormalization", 18, 20, LATER, "stash_type", 0, 0, NULL},
    {"LpPool", 1, 17, LATER, "ceil_mode", 0, 0, NULL},
    {"LpPool", 1, 17, LATER, "dilations", 0, 0, NULL},
    {"MaxPool", 1, 7, LATER, "storage_order", 0, 0, NULL},
    {"MaxPool", 1, 7, OUTPUTS, NULL, 0, 1, NULL},
    {"MaxPool", 1, 9, LATER, "ceil_mode", 0, 0, NULL},
    {"MaxPool", 1, 9, LATER, "dilations", 0, 0, NULL},
    {"Pad", 1, 10, INPUTS, NULL, 0, 1, NULL},
    {"Pad", 11, 17, INPUTS, NULL, 0, 3, NULL},
    {"Range", 11, 26, LATER, "stash_type", 0, 0, NULL},
    {"ReduceSum", 1, 12, INPUTS, NULL, 0, 1, NULL},
    {"ReduceSum", 1, 12, LATER, "noop_with_empty_axes", 0, 0, NULL},
    {"ReduceL*", 1, 17, INPUTS, NULL, 0, 1, NULL},
    {"ReduceL*", 1, 17, LATER, "noop_with_empty_axes", 0, 0, NULL},
    {"ReduceM*", 1, 17, INPUTS, NULL, 0, 1, NULL},
    {"ReduceM*", 1, 17, LATER, "noop_with_empty_axes", 0, 0, NULL},
    {"ReduceProd", 1, 17, INPUTS, NULL, 0, 1, NULL},
    {"ReduceProd", 1, 17, LATER, "noop_with_empty_axes", 0, 0, NULL},
    {"ReduceSumSquare", 1, 17, INPUTS, NULL, 0, 1, NULL},
    {"ReduceSumSquare", 1, 17, LATER, "noop_with_empty_axes", 0, 0, NULL},
    {"Reshape", 1, 4, INPUTS, NULL, 0, 1, NULL},
    {"Reshape", 1, 13, LATER, "allowzero", 0, 0, NULL},
    {"Resize", 10, 10, INPUTS, NULL, 0, 2, NULL},
    {"Resize", 10, 10, LATER, "coordinate_transformation_mode", 0, 0, NULL},
    {"Resize", 10, 10, LATER, "cubic_coeff_a", 0, 0, NULL},
    {"Resize", 10, 10, LATER, "exclude_outside", 0, 0, NULL},
    {"Resize", 10, 10, LATER, "extrapolation_value", 0, 0, NULL},
    {"Resize", 10, 10, LATER, "nearest_mode", 0, 0, NULL},
    {"Resize", 10, 17, LATER, "antialias", 0, 0, NULL},
    {"Resize", 10, 17, LATER, "axes", 0, 0, NULL},
    {"Resize", 10, 17, LATER, "keep_aspect_ratio_policy", 0, 0, NULL},
    {"RoiAlign", 10, 15, LATER, "coordinate_transformation_mode", 0, 0, NULL},
    {"Scan", 8, 8, LATER, "scan_input_axes", 0, 0, NULL},
    {"Scan", 8, 8, LATER, "scan_input_directions", 0, 0, NULL},
    {"Scan", 8, 8, LATER, "scan_output_axes", 0, 0, NULL},
    {"Scan", 8, 8, LATER, "scan_output_directions", 0, 0, NULL},
    {"ScatterElements", 11, 15, LATER, "reduction", 0, 0, NULL},
    {"ScatterND", 11, 15, LATER, "reduction", 0, 0, NULL},
    {"Shape", 1, 14, LATER, "start", 0, 0, NULL},
    {"Shape", 1, 14, LATER, "end", 0, 0, NULL},
    {"Slice", 1, 9, INPUTS, NULL, 0, 1, NULL},
    {"Split", 2, 12, INPUTS, NULL, 0, 1, NULL},
    {"Split", 1, 17, LATER, "num_outputs", 0, 0, NULL},
    {"Squeeze", 1, 12, INPUTS, NULL, 0, 1, NULL},
    {"Unsqueeze", 1, 12, INPUTS, NULL, 0, 1, NULL},
    {"TopK", 1, 9, INPUTS, NULL, 0, 1, NULL},
    {"TopK", 1, 10, LATER, "largest", 0, 0, NULL},
    {"TopK", 1, 10, LATER, "sorted", 0, 0, NULL},
    {"Upsample", 1, 8, INPUTS, NULL, 0, 1, NULL},
    /* what became an input, was renamed or dropped */
    {"*", 1, 5, DROP, "consumed_inputs", 0, 0, NULL},
    {"Dropout", 1, 6, DROP, "is_test", 0, 0, NULL},
    {"BatchNormalization", 1, 6, DROP, "is_test", 0, 0, NULL},
    {"Dropout", 1, 11, DROP, "ratio", 0, 0, NULL}, /* no effect outside training */
    {"Add", 1, 6, ALIGN, "axis", 1, 0, NULL},
    {"Sub", 1, 6, ALIGN, "axis", 1, 0, NULL},
    {"Mul", 1, 6, ALIGN, "axis", 1, 0, NULL},
    {"Div", 1, 6, ALIGN, "axis", 1, 0, NULL},
    {"Pow", 1, 6, ALIGN, "axis", 1, 0, NULL},
    {"And", 1, 6, ALIGN, "axis", 1, 0, NULL},
    {"Or", 1, 6, ALIGN, "axis", 1, 0, NULL},
    {"Xor", 1, 6, ALIGN, "axis", 1, 0, NULL},
    {"Equal", 1, 6, ALIGN, "axis", 1, 0, NULL},
    {"Greater", 1, 6, ALIGN, "axis", 1, 0, NULL},
    {"Less", 1, 6, ALIGN, "axis", 1, 0, NULL},
    {"PRelu", 1, 6, ALIGN_AT, NULL, 1, 1, NULL},
    {"*", 1, 6, DROP, "broadcast", 0, 0, NULL},
    {"Clip", 6, 10, FLOAT_IN_OR, "min", 1, -1, NULL},
    {"Clip", 6, 10, FLOAT_IN_OR, "max", 2, 1, NULL},
    {"Clip", 1, 5, FLOAT_IN, "min", 1, 0, NULL},
    {"Clip", 1, 5, FLOAT_IN, "max", 2, 0, NULL},
    {"Pad", 1, 1, RENAME, "paddings", 0, 0, "pads"},
    {"Pad", 1, 10, INTS_IN, "pads", 1, 0, NULL},
    {"Pad", 1, 10, FLOAT_IN, "value", 2, 0, NULL},
    {"Reshape", 1, 4, INTS_IN, "shape", 1, 0, NULL},
    {"Slice", 1, 9, INTS_IN, "starts", 1, 0, NULL},
    {"Slice", 1, 9, INTS_IN, "ends", 2, 0, NULL},
    {"Slice", 1, 9, INTS_IN, "axes", 3, 0, NULL},
    {"SpaceToDepth", 1, 27, LATER, "mode", 0, 0, NULL},
    {"Split", 1, 12, INTS_IN, "split", 1, 0, NULL},
    {"Squeeze", 1, 12, INTS_IN, "axes", 1, 0, NULL},
    {"Unsqueeze", 1, 12, INTS_IN, "axes", 1, 0, NULL},
    {"ReduceSum", 1, 12, INTS_IN, "axes", 1, 0, NULL},
    {"ReduceSum", 13, 99, INT_OR, NULL, 0, 0, NULL}, /* already in its newest form: keeps "Reduce*" away */
    {"Reduce*", 1, 17, INTS_IN, "axes", 1, 0, NULL},
    {"TopK", 1, 9, INT_VEC_IN, "k", 1, 0, NULL},
    {"Upsample", 1, 6, SCALES, NULL, 1, 0, NULL},
    {"Upsample", 7, 8, FLOATS_IN, "scales", 1, 0, NULL},
    {"Resize", 10, 10, MOVE, NULL, 2, 1, NULL},
    {"DFT", 17, 19, INT_IN, "axis", 2, 1, NULL},
    {"Concat", 1, 3, INT_OR, "axis", 0, 1, NULL},
    {"Cast", 1, 5, DTYPE_TEXT, "to", 0, 0, NULL},
    {"GRU", 1, 6, DROP, "output_sequence", 0, 0, NULL},
    {"LSTM", 1, 6, DROP, "output_sequence", 0, 0, NULL},
    {"RNN", 1, 6, DROP, "output_sequence", 0, 0, NULL},
    {"LpPool", 1, 1, FLOAT_TO_INT, "p", 0, 0, NULL},
    {"GlobalLpPool", 1, 1, FLOAT_TO_INT, "p", 0, 0, NULL},
    {"RoiAlign", 10, 15, STRING_OR, "coordinate_transformation_mode", 0, 0, "output_half_pixel"},
};

enum { ROOM = 4 }; /* inputs a rule may add, and attributes */

typedef struct normal {
    tn_expand *x;
    tn_expand_slot *in;
    uint32_t inputs, room;
    tn_attr *attrs;
    uint32_t attr_count;
} normal;

/* --- the steps ------------------------------------------------------------------------------------------------------------------- */

static tn_attr *attr_of(normal *n, const char *name) {
    for (uint32_t i = 0; name && i < n->attr_count; i++)
        if (strcmp(n->attrs[i].key, name) == 0)
            return &n->attrs[i];
    return NULL;
}

static void remove_attr(normal *n, tn_attr *a) {
    *a = n->attrs[--n->attr_count];
}

static tn_status kind_is(normal *n, const tn_attr *a, tn_attr_kind kind) {
    if (a->kind == kind)
        return TN_OK;
    return tn_expand_fail(n->x, "attribute '%s' is of the wrong kind", a->key);
}

/* An input from an attribute; an input that is there as well is kept (files of version 1 may have either). */
static tn_status put_input(normal *n, int input, tn_expand_slot made) {
    uint32_t i = (uint32_t)input;
    if (i >= n->room)
        return tn_expand_fail(n->x, "too many inputs");
    if (i < n->inputs && n->in[i].value.id)
        return tn_expand_fail(n->x, "input %u is given twice: as an attribute, too", i);
    n->in[i] = made;
    if (n->inputs <= i)
        n->inputs = i + 1;
    return TN_OK;
}

static tn_status to_input(normal *n, const rule *r, tn_attr *a) {
    tn_expand_slot in = {0};
    switch (r->step) {
    case INTS_IN:
        TN_TRY(kind_is(n, a, TN_ATTR_INTS));
        in = (tn_expand_slot){.form = TN_INPUT_INTS, .count = a->count, .ints = a->as.ints};
        break;
    case INT_VEC_IN:
    case INT_IN: {
        TN_TRY(kind_is(n, a, TN_ATTR_INT));
        int64_t *value = tn_expand_alloc(n->x, 1, sizeof *value);
        if (!value)
            return tn_error_status();
        *value = a->as.i;
        in = (tn_expand_slot){.form = r->step == INT_IN ? TN_INPUT_INT : TN_INPUT_INTS, .count = 1, .ints = value};
        break;
    }
    case FLOATS_IN:
        TN_TRY(kind_is(n, a, TN_ATTR_FLOATS));
        in = (tn_expand_slot){.form = TN_INPUT_FLOATS, .count = a->count, .floats = a->as.floats};
        break;
    default:
        TN_TRY(kind_is(n, a, TN_ATTR_FLOAT));
        in = (tn_expand_slot){.form = TN_INPUT_FLOAT, .count = 1, .f = a->as.f};
        break;
    }
    remove_attr(n, a);
    return put_input(n, r->input, in);
}

static tn_status absent(normal *n, const rule *r) {
    switch (r->step) {
    case INT_IN: {
        int64_t *value = tn_expand_alloc(n->x, 1, sizeof *value);
        if (!value)
            return tn_error_status();
        *value = r->number;
        return put_input(n, r->input, (tn_expand_slot){.form = TN_INPUT_INT, .count = 1, .ints = value});
    }
    case FLOAT_IN_OR: /* the largest finite f32, with the sign of `number` */
        return put_input(
            n, r->input,
            (tn_expand_slot){.form = TN_INPUT_FLOAT, .count = 1, .f = (double)r->number * 3.4028234663852886e38});
    case INT_OR:
        if (r->attr)
            n->attrs[n->attr_count++] = TN_A_INT(r->attr, r->number);
        return TN_OK;
    case STRING_OR: n->attrs[n->attr_count++] = TN_A_STRING(r->attr, r->text, strlen(r->text)); return TN_OK;
    default: return TN_OK;
    }
}

static tn_status align(normal *n, const rule *r, tn_attr *a) {
    if (r->step == ALIGN && a)
        TN_TRY(kind_is(n, a, TN_ATTR_INT));
    uint32_t i = (uint32_t)r->input;
    int64_t *axis = tn_expand_alloc(n->x, 1, sizeof *axis);
    if (!axis)
        return tn_error_status();
    *axis = r->step == ALIGN_AT ? r->number : a ? a->as.i : 0;
    if (a)
        remove_attr(n, a);
    else if (r->step == ALIGN)
        return TN_OK; /* aligned at the end, as numpy does */
    if (i < n->inputs && n->in[i].value.id)
        n->in[i] = (tn_expand_slot){
            .value = n->in[i].value, .form = TN_INPUT_ALIGN, .count = r->step == ALIGN_AT, .ints = axis};
    return TN_OK;
}

static tn_status scales(normal *n) {
    static const char *const names[] = {"height_scale", "width_scale"};
    float *v = tn_expand_alloc(n->x, 4, sizeof *v);
    if (!v)
        return tn_error_status();
    v[0] = v[1] = 1;
    for (int i = 0; i < 2; i++) {
        tn_attr *a = attr_of(n, names[i]);
        if (!a)
            return tn_expand_fail(n->x, "attribute '%s' is missing", names[i]);
        TN_TRY(kind_is(n, a, TN_ATTR_FLOAT));
        v[2 + i] = (float)a->as.f;
        remove_attr(n, a);
    }
    return put_input(n, 1, (tn_expand_slot){.form = TN_INPUT_FLOATS, .count = 4, .floats = v});
}

static tn_status dtype_text(normal *n, tn_attr *a) {
    char name[24];
    TN_TRY(kind_is(n, a, TN_ATTR_STRING));
    size_t length = a->as.s.length < sizeof name - 1 ? a->as.s.length : sizeof name - 1;
    for (size_t i = 0; i < length; i++) {
        char ch = a->as.s.data[i];
        name[i] = ch >= 'A' && ch <= 'Z' ? (char)(ch - 'A' + 'a') : ch;
    }
    name[length] = 0;
    tn_dtype dtype = tn_dtype_from_name(name);
    if (!dtype)
        return tn_expand_fail(n->x, "attribute '%s': there is no element type '%s'", a->key, name);
    *a = TN_A_INT(a->key, dtype);
    return TN_OK;
}

static tn_status move_input(normal *n, const rule *r) {
    uint32_t from = (uint32_t)r->number;
    if (from >= n->inputs)
        return TN_OK;
    tn_expand_slot in = n->in[from];
    n->in[from] = (tn_expand_slot){0};
    return put_input(n, r->input, in);
}

static tn_status apply(normal *n, const rule *r) {
    tn_attr *a = attr_of(n, r->attr);
    switch (r->step) {
    case SCALES: return scales(n);
    case MOVE: return move_input(n, r);
    case ALIGN:
    case ALIGN_AT: return align(n, r, a);
    case INPUTS:
        for (uint32_t i = (uint32_t)r->number; i < n->inputs; i++)
            if (n->in[i].value.id)
                return tn_expand_fail(n->x, "it has more than %d input%s: version %d has no input %u", (int)r->number,
                                      r->number == 1 ? "" : "s", n->x->version, i);
        return TN_OK;
    case OUTPUTS:
        if (n->x->outputs > (uint32_t)r->number)
            return tn_expand_fail(n->x, "it has %u outputs, at most %d are allowed in version %d", n->x->outputs,
                                  (int)r->number, n->x->version);
        return TN_OK;
    default: break;
    }
    if (!a)
        return absent(n, r);
    switch (r->step) {
    case LATER: return tn_expand_fail(n->x, "it has no attribute '%s' before version %d", a->key, r->until + 1);
    case DROP: remove_attr(n, a); return TN_OK;
    case RENAME: a->key = r->text; return TN_OK;
    case DTYPE_TEXT: return dtype_text(n, a);
    case INT_OR:
    case STRING_OR: return TN_OK;
    case FLOAT_TO_INT:
        TN_TRY(kind_is(n, a, TN_ATTR_FLOAT));
        if (!(a->as.f >= 0 && a->as.f < 1e9))
            return tn_expand_fail(n->x, "attribute '%s' is out of range", a->key);
        *a = TN_A_INT(a->key, (int64_t)a->as.f);
        return TN_OK;
    default: return to_input(n, r, a);
    }
}

static bool names(const char *pattern, const char *op) {
    size_t length = strlen(pattern);
    if (pattern[length - 1] == '*')
        return strncmp(pattern, op, length - 1) == 0;
    return strcmp(pattern, op) == 0;
}

static tn_status apply_rules(normal *n) {
    const char *op = n->x->row->name;
    bool reduce_done = false;
    if (*n->x->row->domain)
        return TN_OK;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const rule *r = &rules[i];
        if (n->x->version < r->since || n->x->version > r->until || !names(r->op, op))
            continue;
        if (strcmp(r->op, "ReduceSum") == 0)
            reduce_done = true;
        else if (reduce_done && strcmp(r->op, "Reduce*") == 0)
            continue;
        TN_TRY(apply(n, r));
    }
    return TN_OK;
}

/* --- checks against the row --------------------------------------------------------------------------------------------------- */

static const char *kind_name(uint8_t kind) {
    static const char *const list[] = {"nothing",  "an integer", "a number", "text", "an element type",
                                       "integers", "numbers",    "texts",    "dims", "a tensor",
                                       "a type",   "a function"};
    return kind < sizeof list / sizeof *list ? list[kind] : "?";
}

static bool is_allowed(const char *allowed, tn_string s) {
    while (allowed) {
        size_t length = strcspn(allowed, "|");
        if (length == s.length && memcmp(allowed, s.data, length) == 0)
            return true;
        allowed = allowed[length] ? allowed + length + 1 : NULL;
    }
    return false;
}

static tn_status check_attrs(tn_expand *x) {
    const tn_attr_spec *s;
    for (uint32_t i = 0; i < x->attr_count; i++) {
        const tn_attr *a = &x->attrs[i];
        for (s = x->row->attrs; s && s->name && strcmp(s->name, a->key) != 0; s++) {
        }
        if (!s || !s->name)
            return tn_expand_fail(x, "it has no attribute '%s'", a->key);
        if (a->kind != (s->kind == TN_ATTR_DTYPE ? TN_ATTR_INT : s->kind))
            return tn_expand_fail(x, "attribute '%s' is %s, it must be %s", a->key, kind_name(a->kind),
                                  kind_name(s->kind));
        if (s->kind == TN_ATTR_DTYPE && (a->as.i < 0 || a->as.i >= TN_DTYPE_COUNT))
            return tn_expand_fail(x, "attribute '%s': element type %" PRId64 " does not exist", a->key, a->as.i);
        if (s->low < s->high && (a->as.i < s->low || a->as.i > s->high))
            return tn_expand_fail(x, "attribute '%s' is %" PRId64 ", it must be from %" PRId64 " to %" PRId64, a->key,
                                  a->as.i, s->low, s->high);
        if (s->allowed && !is_allowed(s->allowed, a->as.s)) {
            tn_status status = tn_expand_fail(x, "attribute '%s' is '%.*s'", a->key,
                                              (int)(a->as.s.length < 40 ? a->as.s.length : 40), a->as.s.data);
            tn_fail_hint("one of %s", s->allowed);
            return status;
        }
    }
    for (s = x->row->attrs; s && s->name; s++)
        if (s->required && !tn_expand_has_attr(x, s->name))
            return tn_expand_fail(x, "attribute '%s' is missing", s->name);
    return TN_OK;
}

static tn_status check_arity(tn_expand *x) {
    const tn_onnx_op *row = x->row;
    if (row->inputs.max >= 0 && x->inputs > (uint32_t)row->inputs.max)
        return tn_expand_fail(x, "it has %u inputs, at most %d are allowed", x->inputs, row->inputs.max);
    for (uint32_t i = 0; i < (uint32_t)row->inputs.min || (row->flags & TN_ONNX_VARIADIC && i < x->inputs); i++)
        if (!tn_expand_has(x, i))
            return tn_expand_fail(x, "its required input %u is missing", i);
    if (row->outputs.max >= 0 && x->outputs > (uint32_t)row->outputs.max)
        return tn_expand_fail(x, "it has %u outputs, at most %d are allowed", x->outputs, row->outputs.max);
    if (x->outputs < (uint32_t)row->outputs.min)
        return tn_expand_fail(x, "it has %u outputs, at least %d are needed", x->outputs, row->outputs.min);
    const tn_attr *nameless = tn_node_attr(x->graph, x->node, TN_ONNX_NAMELESS);
    if (nameless && row->outputs.max >= 0 && nameless->as.i < row->outputs.min)
        return tn_expand_fail(x, "its required output %" PRId64 " has no name", nameless->as.i);
    return TN_OK;
}

tn_status tn_onnx_normalize(tn_expand *x) {
    tn_graph *g = x->graph;
    uint32_t inputs = tn_onnx_input_count(g, x->node), attrs = tn_node_attr_count(g, x->node);
    normal n = {.x = x, .inputs = inputs, .room = inputs + ROOM};
    n.in = tn_expand_alloc(x, n.room, sizeof *n.in);
    n.attrs = tn_expand_alloc(x, attrs + ROOM, sizeof *n.attrs);
    if (!n.in || !n.attrs)
        return tn_error_status();
    for (uint32_t i = 0; i < inputs; i++)
        n.in[i].value = tn_node_input(g, x->node, i);
    for (uint32_t i = 0; i < attrs; i++) {
        const tn_attr *a = tn_node_attr_at(g, x->node, i);
        const char *key = tn_strings_text(&g->strings, a->name);
        if (strncmp(key, "__", 2) != 0) {
            n.attrs[n.attr_count] = *a;
            n.attrs[n.attr_count++].key = key;
        }
    }
    x->in = n.in;
    x->outputs = tn_node_output_count(g, x->node);
    TN_TRY(apply_rules(&n));
    if (x->row->flags & TN_ONNX_VARIADIC && n.inputs > 1 && !n.in[n.inputs - 1].value.id &&
        n.in[n.inputs - 1].form == TN_INPUT_VALUE)
        return tn_expand_fail(x, "its input %u has no name: of operands that repeat none may be left out",
                              n.inputs - 1);
    while (n.inputs && !n.in[n.inputs - 1].value.id && n.in[n.inputs - 1].form == TN_INPUT_VALUE)
        n.inputs--;
    x->inputs = n.inputs;
    x->attrs = n.attrs;
    x->attr_count = n.attr_count;
    TN_TRY(check_arity(x));
    return check_attrs(x);
}

/* --- making inputs -------------------------------------------------------------------------------------------------------------- */

static tn_value constant_of(tn_graph *g, tn_tensor *t) {
    tn_value value = t ? tn_graph_constant(g, t) : (tn_value){0};
    if (!t)
        tn_graph_stick(g);
    tn_tensor_destroy(t);
    return value;
}

static tn_value aligned(tn_expand *x, const tn_expand_slot *in) {
    tn_graph *g = x->graph;
    int rank = tn_value_rank(g, in->value), wanted = tn_value_rank(g, x->in[0].value), axes[TN_MAX_RANK];
    int64_t axis = in->ints[0];
    if (rank < 0 || wanted < 0 || (in->count && rank != 1)) /* ALIGN_AT: only a vector is aligned */
        return in->value;
    if (axis < 0)
        axis += wanted;
    if (axis < 0 || axis + rank > wanted) {
        if (in->count)
            return in->value;
        tn_expand_fail(x, "axis %" PRId64 " does not align an input of rank %d with one of rank %d", in->ints[0], rank,
                       wanted);
        tn_graph_stick(g);
        return (tn_value){0};
    }
    uint32_t extra = (uint32_t)(wanted - (int)axis - rank);
    for (uint32_t i = 0; i < extra; i++)
        axes[i] = rank + (int)i;
    return extra ? tn_expand_dims(g, in->value, extra, axes) : in->value;
}

tn_value tn_expand_make_input(tn_expand *x, uint32_t input) {
    if (input >= x->inputs)
        return (tn_value){0};
    tn_expand_slot *in = (tn_expand_slot *)&x->in[input];
    if (in->form == TN_INPUT_VALUE)
        return in->value;
    tn_graph *g = x->graph;
    tn_insertion at = tn_graph_insertion(g);
    tn_graph_insert_before(g, x->node);
    int64_t count = in->count;
    tn_tensor *t;
    switch (in->form) {
    case TN_INPUT_INTS:
    case TN_INPUT_INT:
        t = tn_tensor_new(g->heap, TN_I64, in->form == TN_INPUT_INTS, &count);
        if (t)
            memcpy(t->data, in->ints, (size_t)count * sizeof(int64_t));
        in->value = constant_of(g, t);
        break;
    case TN_INPUT_FLOATS:
        t = tn_tensor_new(g->heap, TN_F32, 1, &count);
        if (t)
            memcpy(t->data, in->floats, (size_t)count * sizeof(float));
        in->value = constant_of(g, t);
        break;
    case TN_INPUT_FLOAT: {
        tn_dtype dtype = tn_value_dtype(g, x->in[0].value);
        t = tn_tensor_new(g->heap, dtype ? dtype : TN_F32, 0, NULL);
        if (t)
            tn_store_f64((tn_dtype)t->dtype, t->data, 0, in->f);
        in->value = constant_of(g, t);
        break;
    }
    default: in->value = aligned(x, in); break;
    }
    in->form = TN_INPUT_VALUE;
    tn_graph_set_insertion(g, at);
    return in->value;
}
