/* Changes between operator sets that no row of the table can say. */
#define TN_NO_POSITIONS
#include <tenon/build.h>

#include "onnx/convert.h"

/* Before 13: over all axes from `axis` (1) on as one. The same where `axis` is the last; else by way of a matrix. */
tn_status tn_step_softmax(tn_convert_node *n, int version, bool up) {
    tn_attr *a = tn_v_attr_of(n, "axis");
    int rank = tn_value_rank(n->g, n->in[0]);
    int64_t axis = a ? a->as.i : up ? 1 : -1;
    if (axis == -1 || (rank >= 0 && axis == rank - 1)) {
        if (a)
            a->as.i = axis;
        else
            tn_v_add(n, TN_A_INT("axis", axis));
        n->changed = true;
        return TN_OK;
    }
    return tn_v_refuse(n, version, up,
                       up ? "before, the axes from 'axis' on are one" : "'axis' is not known to be the last");
}

/* Before 7: shapes are equal, or 'broadcast' aligns the second operand at 'axis' of the first. */
tn_status tn_step_broadcasting(tn_convert_node *n, int version, bool up) {
    tn_graph *g = n->g;
    tn_attr *axis = tn_v_attr_of(n, "axis");
    int a = tn_value_rank(g, n->in[0]), b = n->inputs > 1 ? tn_value_rank(g, n->in[1]) : -1;
    if (!up) {
        bool same = a >= 0 && a == b;
        for (int i = 0; i < a && same; i++)
            same = tn_dim_equal(g, tn_value_dim(g, n->in[0], i), tn_value_dim(g, n->in[1], i));
        return same ? TN_OK : tn_v_refuse(n, version, up, "its operands are not known to have one shape");
    }
    int64_t at = axis && axis->kind == TN_ATTR_INT ? axis->as.i : strcmp(n->op, "PRelu") == 0 ? 1 : -1000;
    if (axis)
        tn_v_drop(n, axis);
    tn_attr *flag = tn_v_attr_of(n, "broadcast"); /* after the drop, which moves attributes */
    if (flag)
        tn_v_drop(n, flag);
    bool prelu = strcmp(n->op, "PRelu") == 0;
    if (at == -1000)
        return TN_OK;
    tn_tensor *constant = n->inputs > 1 ? tn_v_constant_of(g, n->in[1]) : NULL;
    if (b < 0 && constant)
        b = constant->rank;
    if (prelu && (b != 1 || (constant && constant->count == 1)))
        return b >= 0 ? TN_OK : tn_v_refuse(n, version, up, "the rank of its slope is not known");
    if (a < 0 || b < 0)
        return tn_v_refuse(n, version, up, "the ranks of its operands are not known");
    if (at < 0)
        at += a;
    int extra = a - (int)at - b;
    if (extra < 0)
        return tn_v_refuse(n, version, up, "'axis' does not align its operands");
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
        return row ? tn_graph_check(g) : tn_v_refuse(n, version, up, "Reshape is not in this build");
    n->in[1] = tn_node_output(g, r, 0);
    n->changed = true;
    return TN_OK;
}

static tn_status put_floats(tn_convert_node *n, int64_t at, uint32_t count, const float *values, int version) {
    int64_t dim = count;
    tn_tensor *t = tn_tensor_new(n->g->heap, TN_F32, 1, &dim);
    if (!t)
        return tn_error_status();
    if (count)
        memcpy(t->data, values, count * sizeof *values);
    tn_value value = tn_graph_constant(n->g, t);
    tn_tensor_destroy(t);
    return tn_v_put_input(n, at, value, version, true);
}

/* Upsample 1 has a scale for the height and one for the width. */
tn_status tn_step_scales(tn_convert_node *n, int version, bool up) {
    tn_attr *h = tn_v_attr_of(n, "height_scale"), *w = tn_v_attr_of(n, "width_scale");
    if (!up || !h || !w)
        return tn_v_refuse(n, version, up, "its scales are given otherwise");
    float *v = tn_arena_alloc(&n->scratch, 4 * sizeof *v);
    if (!v)
        return tn_error_status();
    v[0] = v[1] = 1;
    v[2] = (float)h->as.f;
    v[3] = (float)w->as.f;
    tn_v_drop(n, h);
    tn_v_drop(n, tn_v_attr_of(n, "width_scale"));
    tn_v_add(n, (tn_attr){.key = "scales", .kind = TN_ATTR_FLOATS, .count = 4, .as.floats = v});
    return TN_OK;
}

tn_status tn_step_upsample(tn_convert_node *n, int version, bool up) {
    tn_attr *a = tn_v_attr_of(n, "scales");
    if (up) {
        if (!a || a->kind != TN_ATTR_FLOATS)
            return tn_v_refuse(n, version, up, "it has no scales");
        tn_attr copy = *a;
        tn_v_drop(n, a);
        return put_floats(n, 1, copy.count, copy.as.floats, version);
    }
    tn_tensor *t = n->inputs > 1 ? tn_v_constant_of(n->g, n->in[1]) : NULL;
    if (!t || t->dtype != TN_F32)
        return tn_v_refuse(n, version, up, "its scales are no constant");
    float *v = tn_arena_alloc(&n->scratch, (size_t)t->count * sizeof *v + 1);
    if (!v)
        return tn_error_status();
    memcpy(v, t->data, (size_t)t->count * sizeof *v);
    tn_v_add(n, (tn_attr){.key = "scales", .kind = TN_ATTR_FLOATS, .count = (uint32_t)t->count, .as.floats = v});
    n->inputs = 1;
    return TN_OK;
}

/* Before 11, positions are those of the input times the scale, cut to whole ones; regions are not known. */
tn_status tn_step_resize(tn_convert_node *n, int version, bool up) {
    if (!up)
        return tn_v_refuse(n, version, up, "it takes its positions from other coordinates");
    tn_value sizes = n->inputs > 1 ? n->in[1] : (tn_value){0};
    n->inputs = 1;
    TN_TRY(put_floats(n, 1, 0, NULL, version));
    n->inputs = 3;
    n->in[2] = sizes;
    tn_v_add(n, TN_A_STRING("coordinate_transformation_mode", "asymmetric", 10));
    tn_v_add(n, TN_A_STRING("nearest_mode", "floor", 5));
    return TN_OK;
}

/* Before 12 it drops nothing; since, when it is told that it trains. */
tn_status tn_step_dropout(tn_convert_node *n, int version, bool up) {
    if (up) {
        tn_attr *a = tn_v_attr_of(n, "ratio");
        if (a)
            tn_v_drop(n, a);
        return TN_OK;
    }
    if (tn_v_has_input(n, 2))
        return tn_v_refuse(n, version, up, "it may train");
    tn_attr *seed = tn_v_attr_of(n, "seed");
    if (seed)
        tn_v_drop(n, seed);
    n->changed = n->changed || n->inputs > 1;
    n->inputs = 1;
    return TN_OK;
}

tn_status tn_step_cast_names(tn_convert_node *n, int version, bool up) {
    tn_attr *a = tn_v_attr_of(n, "to");
    char name[24];
    if (!a)
        return TN_OK;
    if (up && a->kind == TN_ATTR_STRING) {
        size_t length = a->as.s.length < sizeof name - 1 ? a->as.s.length : sizeof name - 1;
        for (size_t i = 0; i < length; i++)
            name[i] = (char)(a->as.s.data[i] >= 'A' && a->as.s.data[i] <= 'Z' ? a->as.s.data[i] + 32 : a->as.s.data[i]);
        name[length] = 0;
        if (!tn_dtype_from_name(name))
            return tn_v_refuse(n, version, up, "there is no such element type");
        *a = TN_A_INT("to", tn_dtype_from_name(name));
        n->changed = true;
        return TN_OK;
    }
    return up ? TN_OK : tn_v_refuse(n, version, up, "element types are spelt out before");
}

tn_status tn_step_pad_names(tn_convert_node *n, int version, bool up) {
    tn_attr *a = tn_v_attr_of(n, up ? "paddings" : "pads");
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
tn_status tn_step_trips(tn_convert_node *n, int version, bool up) {
    tn_attr *a;
    if (strcmp(n->op, "BatchNormalization") == 0) {
        if ((a = tn_v_attr_of(n, "is_test")))
            tn_v_drop(n, a);
        if (!up)
            tn_v_add(n, TN_A_INT("is_test", 1));
        return TN_OK;
    }
    if (strcmp(n->op, "Split") == 0) { /* equal parts must be counted */
        int rank = tn_value_rank(n->g, n->in[0]);
        const tn_attr *axis = tn_v_attr_of(n, "axis");
        int64_t size, at = axis ? axis->as.i : 0, parts = tn_node_output_count(n->g, n->node);
        bool known =
            rank > 0 && at >= -rank && at < rank && tn_dim_is_const(n->g, tn_value_dim(n->g, n->in[0], (int)at), &size);
        if (up && !tn_v_has_input(n, 1) && !tn_v_attr_of(n, "num_outputs")) {
            if (known && size % parts) /* an error before, a smaller part since */
                return tn_v_refuse(n, version, up, "its parts are not equal");
            tn_v_add(n, TN_A_INT("num_outputs", parts));
        }
        if (!up && (a = tn_v_attr_of(n, "num_outputs"))) {
            parts = a->as.i;
            if (!known || parts < 1 || size % parts)
                return tn_v_refuse(n, version, up, "its parts are not known to be equal");
            tn_v_drop(n, a);
        }
        return TN_OK;
    }
    if (version == 22) { /* the last window of ceil_mode is another one since */
        a = tn_v_attr_of(n, "ceil_mode");
        return a && a->as.i ? tn_v_refuse(n, version, up, "ceil_mode counts windows otherwise") : TN_OK;
    }
    if (up)
        return TN_OK;
    if (strncmp(n->op, "Scatter", 7) == 0 &&
        (text_is(tn_v_attr_of(n, "reduction"), "max") || text_is(tn_v_attr_of(n, "reduction"), "min")))
        return tn_v_refuse(n, version, up, "reduction by max or min");
    if (strcmp(n->op, "Pad") == 0 && text_is(tn_v_attr_of(n, "mode"), "wrap"))
        return tn_v_refuse(n, version, up, "mode 'wrap'");
    if (strcmp(n->op, "Resize") == 0 &&
        text_is(tn_v_attr_of(n, "coordinate_transformation_mode"), "half_pixel_symmetric"))
        return tn_v_refuse(n, version, up, "half_pixel_symmetric");
    return TN_OK;
}

/* What an operator took only later: an axis that counts from the end, no third input, values that are no tensors. */
tn_status tn_step_narrower(tn_convert_node *n, int version, bool up) {
    tn_attr *axis = tn_v_attr_of(n, "axis");
    if (up)
        return TN_OK;
    if (strcmp(n->op, "Gemm") == 0 && !tn_v_has_input(n, 2))
        return tn_v_refuse(n, version, up, "it has no input C");
    if (strcmp(n->op, "Flatten") == 0 && axis && axis->kind == TN_ATTR_INT && axis->as.i < 0) {
        int rank = tn_value_rank(n->g, n->in[0]);
        if (rank < 0)
            return tn_v_refuse(n, version, up, "attribute 'axis' counts from an end that is not known");
        axis->as.i += rank;
        n->changed = true;
    }
    if (strcmp(n->op, "TopK") == 0) {
        tn_tensor *k = n->inputs > 1 && n->in[1].id ? tn_v_constant_of(n->g, n->in[1]) : NULL;
        if (k && k->count == 1 && tn_tensor_get_i64(k, 0) < 0)
            return tn_v_refuse(n, version, up, "k is negative");
    }
    if (strcmp(n->op, "Identity") == 0) {
        tn_type type = tn_value_type(n->g, n->in[0]);
        if (type.id && tn_type_kind(n->g, type) != TN_KIND_TENSOR &&
            (version == 16 || tn_type_kind(n->g, type) == TN_KIND_SEQUENCE))
            return tn_v_refuse(n, version, up, "it passes tensors alone");
    }
    return TN_OK;
}
