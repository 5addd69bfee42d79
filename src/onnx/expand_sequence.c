/* Sequences and optionals: one host operation each; SequenceMap, a loop over them. */
#include <inttypes.h>
#include <stdio.h>

#include "onnx/expand_common.h"

/* Whether the type of an input is known (absent: false). */
static bool known(tn_expand *x, uint32_t input) {
    return tn_expand_has(x, input) && tn_value_type(x->graph, tn_expand_input(x, input)).id != 0;
}

static bool is_sequence(tn_expand *x, uint32_t input) {
    tn_graph *g = x->graph;
    return tn_type_kind(g, tn_value_type(g, tn_expand_input(x, input))) == TN_KIND_SEQUENCE;
}

/* The node of the primitive with the inputs as they are. */
static tn_status plain(tn_expand *x, const char *op, uint32_t attrs, const tn_attr *attr) {
    tn_value *in = tn_expand_alloc(x, (size_t)x->inputs + 1, sizeof *in);
    if (!in)
        return tn_error_status();
    for (uint32_t i = 0; i < x->inputs; i++) {
        if (tn_expand_has(x, i) && !known(x, i))
            return tn_expand_later(x, "needs the types of its inputs");
        in[i] = tn_expand_input(x, i);
    }
    return tn_expand_set(x, 0, tn_graph_add(x->graph, op, x->inputs, in, attrs, attr));
}

/* The same for an operator on a sequence. */
static tn_status on_sequence(tn_expand *x, const char *op, uint32_t attrs, const tn_attr *attr) {
    TN_RULE(x, !known(x, 0) || is_sequence(x, 0), "input 0 is no sequence");
    return plain(x, op, attrs, attr);
}

static tn_status expand_empty(tn_expand *x) {
    int64_t dtype = tn_expand_int(x, "dtype");
    TN_RULE(x, dtype > TN_DTYPE_NONE && dtype < TN_DTYPE_COUNT, "attribute 'dtype' is %" PRId64, dtype);
    const tn_attr attr = TN_A_DTYPE("dtype", dtype);
    return tn_expand_set(x, 0, tn_graph_add(x->graph, "sequence_empty", 0, NULL, 1, &attr));
}
static tn_status expand_construct(tn_expand *x) {
    return plain(x, "sequence_construct", 0, NULL);
}
static tn_status expand_erase(tn_expand *x) {
    return on_sequence(x, "sequence_erase", 0, NULL);
}
static tn_status expand_length(tn_expand *x) {
    return on_sequence(x, "sequence_length", 0, NULL);
}

/* Whether something is known of the items of a sequence. */
static bool items_known(tn_expand *x, uint32_t input) {
    tn_graph *g = x->graph;
    return known(x, input) && is_sequence(x, input) &&
           tn_type_element(g, tn_value_type(g, tn_expand_input(x, input))).id != 0;
}

/* A tensor of unknown type is one of the items' element type. */
static tn_status expand_insert(tn_expand *x) {
    tn_graph *g = x->graph;
    if (!items_known(x, 0) || known(x, 1))
        return on_sequence(x, "sequence_insert", 0, NULL);
    tn_type item = tn_type_element(g, tn_value_type(g, tn_expand_input(x, 0)));
    if (tn_type_kind(g, item) != TN_KIND_TENSOR)
        return tn_expand_later(x, "needs the type of the item");
    item = tn_type_tensor(g, tn_type_dtype(g, item), -1, NULL);
    tn_value in[3] = {tn_expand_input(x, 0), tn_expand_declared(x, "Identity", tn_expand_input(x, 1), item),
                      tn_expand_input(x, 2)};
    return tn_expand_set(x, 0, tn_graph_add(g, "sequence_insert", x->inputs, in, 0, NULL));
}

static tn_status expand_at(tn_expand *x) {
    if (known(x, 0) && is_sequence(x, 0) && !items_known(x, 0) && !x->final)
        return tn_expand_later(x, "needs the type of the items");
    return on_sequence(x, "sequence_at", 0, NULL);
}

static tn_status expand_concat_from(tn_expand *x) {
    const tn_attr attrs[] = {TN_A_INT("axis", tn_expand_int(x, "axis")),
                             TN_A_INT("new_axis", tn_expand_int(x, "new_axis") != 0)};
    bool nothing = known(x, 0) && is_sequence(x, 0) && !items_known(x, 0);
    if (nothing && !x->final)
        return tn_expand_later(x, "needs the type of the items");
    TN_RULE(x, !nothing, "the sequence is empty: the shape of the result is not known");
    return on_sequence(x, "concat_from_sequence", 2, attrs);
}

static tn_status expand_split_to(tn_expand *x) {
    int axis;
    TN_RULE(x, tn_expand_rank(x, 0) >= 1, "the input is a scalar");
    TN_TRY(tn_expand_axis(x, tn_expand_int(x, "axis"), tn_expand_rank(x, 0), &axis));
    bool keep = tn_expand_int(x, "keepdims") != 0 || tn_expand_has(x, 1);
    const tn_attr attrs[] = {TN_A_INT("axis", axis), TN_A_INT("keepdims", keep)};
    return plain(x, "split_to_sequence", 2, attrs);
}

/* --- optionals ------------------------------------------------------------------------------------------------------------------------ */

static tn_status expand_optional(tn_expand *x) {
    tn_type type = tn_expand_type(x, "type");
    TN_RULE(x, type.id || tn_expand_has(x, 0), "neither an input nor the type of what it lacks is given");
    const tn_attr attr = TN_A_TYPE("type", type);
    return plain(x, "optional", type.id ? 1 : 0, &attr);
}
static tn_status expand_has(tn_expand *x) {
    return plain(x, "optional_has_element", 0, NULL);
}
static tn_status expand_get(tn_expand *x) {
    return plain(x, "optional_get_element", 0, NULL);
}

/* --- SequenceMap ------------------------------------------------------------------------------------------------------------------------ */

/* When the node runs, the items of one sequence may be of different rank still, and what the body makes of them of any type: then its
   nodes wait for their own run in each trip, and the sequences made are of items of which nothing is known. */

typedef struct map {
    tn_expand *x;
    tn_value length;
    tn_status status;
} map;

/* The body on item `at` of each sequence, other inputs as they are. */
static tn_status map_item(tn_expand *x, tn_value at, tn_value *results) {
    tn_graph *g = x->graph;
    tn_value *args = tn_expand_alloc(x, (size_t)x->inputs + 1, sizeof *args);
    if (!args)
        return tn_error_status();
    for (uint32_t i = 0; i < x->inputs; i++) {
        tn_value both[2] = {tn_expand_input(x, i), at};
        args[i] = is_sequence(x, i) ? tn_graph_add(g, "sequence_at", 2, both, 0, NULL) : both[0];
        TN_BUILT(x, args[i]);
    }
    return tn_expand_body(x, 0, x->inputs, args, x->outputs, results);
}

/* Loop values: the position, then the sequences made so far. */
static void map_condition(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    results[0] = tn_less(g, args[0], ((map *)ctx)->length);
}

static void map_step(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    map *m = ctx;
    results[0] = tn_add(g, args[0], tn_scalar(g, TN_I64, 1));
    if (m->status == TN_OK)
        m->status = map_item(m->x, args[0], results + 1);
    tn_expand_stick(m->x, m->status);
    for (uint32_t i = 1; i <= m->x->outputs && m->status == TN_OK; i++) {
        tn_value both[2] = {args[i], results[i]};
        results[i] = tn_graph_add(g, "sequence_insert", 2, both, 0, NULL);
    }
}

/* What the body gives for an item: its dtypes (0: not known before it runs). */
static tn_status learn(tn_expand *x, tn_dtype *dtypes) {
    tn_graph *g = x->graph;
    tn_value *results = tn_expand_alloc(x, (size_t)x->outputs + 1, sizeof *results);
    tn_region region = tn_region_create(g);
    if (!results || !region.id)
        return tn_error_status();
    tn_insertion saved = tn_graph_insertion(g);
    tn_graph_insert_at_end(g, region);
    tn_status status = map_item(x, tn_scalar(g, TN_I64, 0), results);
    tn_graph_set_insertion(g, saved);
    TN_TRY(status);
    for (uint32_t i = 0; i < x->outputs; i++)
        dtypes[i] = tn_value_dtype(g, results[i]);
    TN_TRY(tn_region_return(g, region, 0, NULL));
    return tn_expand_discard(x, region);
}

static tn_status expand_map(tn_expand *x) {
    tn_graph *g = x->graph;
    TN_RULE(x, tn_expand_body_args(x, 0) == x->inputs && tn_expand_body_results(x, 0) == x->outputs,
            "the body takes %u values and gives %u, the node has %u inputs and %u outputs",
            (unsigned)tn_expand_body_args(x, 0), (unsigned)tn_expand_body_results(x, 0), (unsigned)x->inputs,
            (unsigned)x->outputs);
    for (uint32_t i = 0; i < x->inputs; i++) {
        if (!known(x, i) || (is_sequence(x, i) && !items_known(x, i) && !x->final))
            return tn_expand_later(x, "needs the types of its inputs");
    }
    TN_RULE(x, is_sequence(x, 0), "input 0 is no sequence");
    size_t n = (size_t)x->outputs + 1;
    tn_dtype *dtypes = tn_expand_alloc(x, n, sizeof *dtypes);
    tn_value *init = tn_expand_alloc(x, n, sizeof *init), *out = tn_expand_alloc(x, n, sizeof *out);
    tn_type *types = tn_expand_alloc(x, n, sizeof *types);
    if (!dtypes || !init || !out || !types)
        return tn_error_status();
    TN_TRY(learn(x, dtypes));
    tn_value first = tn_expand_input(x, 0);
    map m = {.x = x, .length = tn_graph_add(g, "sequence_length", 1, &first, 0, NULL)};
    for (uint32_t i = 1; i < x->inputs; i++) { /* the others must be as long */
        tn_value other = tn_expand_input(x, i);
        if (!is_sequence(x, i))
            continue;
        char text[100];
        snprintf(text, sizeof text, "the sequence of input %u has {0} items, that of input 0 has {1}", (unsigned)i);
        tn_value shown[2] = {tn_graph_add(g, "sequence_length", 1, &other, 0, NULL), m.length};
        m.length = tn_require(g, m.length, tn_equal(g, shown[0], m.length), text, 2, shown);
    }
    init[0] = tn_scalar(g, TN_I64, 0);
    TN_BUILT(x, init[0]);
    types[0] = tn_value_type(g, init[0]);
    for (uint32_t i = 0; i < x->outputs; i++) {
        if (!dtypes[i] && !x->final)
            return tn_expand_later(x, "needs the types of what its body gives");
        const tn_attr attr = TN_A_DTYPE("dtype", dtypes[i]);
        init[i + 1] = dtypes[i] ? tn_graph_add(g, "sequence_empty", 0, NULL, 1, &attr)
                                : tn_graph_add(g, "sequence_construct", 0, NULL, 0, NULL);
        types[i + 1] = tn_type_sequence(g, dtypes[i] ? tn_type_tensor(g, dtypes[i], -1, NULL) : (tn_type){0});
    }
    tn_status status = tn_while(g, (uint32_t)n, init, types, map_condition, map_step, &m, 0, out);
    TN_TRY(m.status);
    TN_TRY(status);
    for (uint32_t i = 0; i < x->outputs; i++)
        TN_TRY(tn_expand_set(x, i, out[i + 1]));
    return TN_OK;
}

/* --- rows --------------------------------------------------------------------------------------------------------------------------------- */

static const tn_attr_spec empty_attrs[] = {TN_SPEC_INT("dtype", 1), {0}};
static const tn_attr_spec concat_attrs[] = {TN_SPEC_NEEDED("axis", TN_ATTR_INT), TN_SPEC_BOOL("new_axis", 0), {0}};
static const tn_attr_spec split_attrs[] = {TN_SPEC_INT("axis", 0), TN_SPEC_BOOL("keepdims", 1), {0}};
static const tn_attr_spec optional_attrs[] = {TN_SPEC_TYPE("type"), {0}};

#define ROW(name, from, least, most, list, build)                                                                      \
    TN_ONNX(name, .since = from, .inputs = {least, most}, .outputs = {1, 1}, .attrs = list, .flags = TN_ONNX_UNRANKED, \
            .expand = build)

static const tn_onnx_op rows[] = {
    ROW("SequenceEmpty", 11, 0, 0, empty_attrs, expand_empty),
    TN_ONNX("SequenceConstruct", .since = 11, .inputs = {1, TN_ONNX_ANY}, .outputs = {1, 1},
            .flags = TN_ONNX_UNRANKED | TN_ONNX_VARIADIC, .expand = expand_construct),
    ROW("SequenceInsert", 11, 2, 3, NULL, expand_insert),
    ROW("SequenceErase", 11, 1, 2, NULL, expand_erase),
    ROW("SequenceAt", 11, 2, 2, NULL, expand_at),
    ROW("SequenceLength", 11, 1, 1, NULL, expand_length),
    ROW("ConcatFromSequence", 11, 1, 1, concat_attrs, expand_concat_from),
    TN_ONNX("SplitToSequence", .since = 11, .inputs = {1, 2}, .outputs = {1, 1}, .attrs = split_attrs,
            .expand = expand_split_to),
    ROW("Optional", 15, 0, 1, optional_attrs, expand_optional),
    ROW("OptionalHasElement", 15, 0, 1, NULL, expand_has),
    ROW("OptionalGetElement", 15, 1, 1, NULL, expand_get),
    TN_ONNX_CONTROL("SequenceMap", 1, .since = 17, .inputs = {1, TN_ONNX_ANY}, .outputs = {1, TN_ONNX_ANY},
                    .flags = TN_ONNX_UNRANKED | TN_ONNX_VARIADIC, .regions = "body", .expand = expand_map),
};

const tn_onnx_family tn_onnx_family_sequence = {rows, sizeof rows / sizeof *rows};
