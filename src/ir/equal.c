/* Structural equality of graphs: both are walked side by side; what refers to values, nodes, functions, symbols is compared by
   what it refers to. */
#include "ir/text.h"

typedef struct pairing {
    const tn_graph *a, *b;
    uint32_t *value; /* of a -> of b */
    uint32_t *node;
    uint8_t *symbol_used; /* by symbol of a */
    tn_text left, right;  /* for comparing what has a text */
} pairing;

static bool differ(const pairing *q, uint32_t node, const char *what) {
    tn_fail(TN_ERR_FAILED, "the graphs differ: %s", what);
    if (node)
        tn_fail_at_node(q->a, (tn_node){node});
    return false;
}

static bool same_string(const pairing *q, uint32_t a, uint32_t b) {
    const tn_strings *x = &q->a->strings, *y = &q->b->strings;
    return tn_strings_length(x, a) == tn_strings_length(y, b) &&
           memcmp(tn_strings_text(x, a), tn_strings_text(y, b), tn_strings_length(x, a)) == 0;
}

/* Compares the two texts and empties them. Out of memory reads as different, with that as the error. */
static bool same_text(pairing *q) {
    bool same = !q->left.failed && !q->right.failed && q->left.len == q->right.len &&
                (q->left.len == 0 || memcmp(q->left.data, q->right.data, q->left.len) == 0);
    q->left.len = q->right.len = 0;
    return same;
}

static void mark_symbol(void *ctx, uint32_t symbol) {
    ((pairing *)ctx)->symbol_used[symbol] = 1;
}

static bool same_dims(pairing *q, uint32_t count, const tn_dim *a, const tn_dim *b) {
    for (uint32_t i = 0; i < count; i++) {
        tn_dim_symbols(&q->a->dims, a[i], mark_symbol, q);
        tn_dim_print(&q->a->dims, a[i], &q->left);
        tn_dim_print(&q->b->dims, b[i], &q->right);
        if (!same_text(q))
            return false;
    }
    return true;
}

static bool same_type(pairing *q, tn_type a, tn_type b) {
    for (;;) {
        const tn_type_rec *x = &q->a->type.data[a.id], *y = &q->b->type.data[b.id];
        if (!a.id != !b.id || x->kind != y->kind || x->dtype != y->dtype || x->rank != y->rank ||
            (x->rank > 0 && !same_dims(q, (uint32_t)x->rank, tn_type_dims(q->a, a), tn_type_dims(q->b, b))))
            return false;
        if (!a.id || x->kind == TN_KIND_TENSOR)
            return true;
        a.id = x->element; /* types are made from their elements: this ends */
        b.id = y->element;
    }
}

static bool same_value(pairing *q, uint32_t a, uint32_t b) {
    const tn_value_rec *x = &q->a->value.data[a], *y = &q->b->value.data[b];
    q->value[a] = b;
    return same_string(q, x->name, y->name) && same_type(q, (tn_type){x->type}, (tn_type){y->type});
}

static bool same_tensor(const tn_tensor *a, const tn_tensor *b) {
    return a == b || (a && b && tn_object_equal(tn_tensor_object((tn_tensor *)a), tn_tensor_object((tn_tensor *)b)));
}

/* Equal are equal bits: NaN is NaN, and -0 is not 0. */
static uint64_t bits(double x) {
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static bool same_attr(pairing *q, const tn_attr *a, const tn_attr *b) {
    if (a->kind != b->kind || a->count != b->count)
        return false;
    switch ((tn_attr_kind)a->kind) {
    case TN_ATTR_NONE: return true;
    case TN_ATTR_INT:
    case TN_ATTR_DTYPE: return a->as.i == b->as.i;
    case TN_ATTR_FLOAT: return bits(a->as.f) == bits(b->as.f);
    case TN_ATTR_STRING:
        return a->as.s.length == b->as.s.length && memcmp(a->as.s.data, b->as.s.data, a->as.s.length) == 0;
    case TN_ATTR_INTS: return a->count == 0 || memcmp(a->as.ints, b->as.ints, a->count * sizeof *a->as.ints) == 0;
    case TN_ATTR_FLOATS:
        return a->count == 0 || memcmp(a->as.floats, b->as.floats, a->count * sizeof *a->as.floats) == 0;
    case TN_ATTR_STRINGS:
        for (uint32_t i = 0; i < a->count; i++)
            if (a->as.strings[i].length != b->as.strings[i].length ||
                memcmp(a->as.strings[i].data, b->as.strings[i].data, a->as.strings[i].length) != 0)
                return false;
        return true;
    case TN_ATTR_DIMS: return same_dims(q, a->count, a->as.dims, b->as.dims);
    case TN_ATTR_TENSOR: return same_tensor(a->as.tensor, b->as.tensor);
    case TN_ATTR_TYPE: return same_type(q, a->as.type, b->as.type);
    case TN_ATTR_FUNCTION:
        return a->as.i >= 0 && b->as.i >= 0 && a->as.i < (int64_t)q->a->function.len &&
               b->as.i < (int64_t)q->b->function.len &&
               same_string(q, q->a->function.data[a->as.i].name, q->b->function.data[b->as.i].name);
    }
    return false;
}

static bool same_location(const pairing *q, uint32_t a, uint32_t b) {
    tn_location_set x = q->a->location.data[a], y = q->b->location.data[b];
    bool same = x.count == y.count;
    for (uint32_t i = 0; same && i < x.count; i++) {
        const tn_origin *o = &q->a->origin.data[q->a->origin_list.data[x.first + i]],
                        *p = &q->b->origin.data[q->b->origin_list.data[y.first + i]];
        same = o->line == p->line && same_string(q, o->what, p->what) && same_string(q, o->name, p->name) &&
               same_string(q, o->file, p->file);
    }
    return same;
}

static bool same_region(pairing *q, uint32_t a, uint32_t b, int depth);

static bool same_node(pairing *q, uint32_t a, uint32_t b, int depth) {
    const tn_node_rec *x = &q->a->node.data[a], *y = &q->b->node.data[b];
    q->node[a] = b;
    if (strcmp(x->op->name, y->op->name) != 0)
        return differ(q, a, "another operator");
    if (x->input_count != y->input_count || x->output_count != y->output_count || x->region_count != y->region_count ||
        x->attr_count != y->attr_count || x->control_count != y->control_count)
        return differ(q, a, "another number of inputs, outputs, attributes, regions or control inputs");
    for (uint32_t i = 0; i < x->input_count; i++) {
        uint32_t value = q->a->operand.data[x->inputs + i].value;
        if ((value ? q->value[value] : 0) != q->b->operand.data[y->inputs + i].value)
            return differ(q, a, "another input");
    }
    for (uint32_t i = 0; i < x->control_count; i++)
        if (q->node[q->a->control_list.data[x->control + i]] != q->b->control_list.data[y->control + i])
            return differ(q, a, "another control input");
    for (uint32_t i = 0; i < x->output_count; i++)
        if (!same_value(q, x->outputs + i, y->outputs + i))
            return differ(q, a, "an output of another type or name");
    for (uint32_t i = 0; i < x->attr_count; i++) {
        const tn_attr *other = tn_node_attr(q->b, (tn_node){b}, x->attrs[i].key);
        if (!other || !same_attr(q, &x->attrs[i], other))
            return differ(q, a, "another attribute");
    }
    if (!same_string(q, x->name, y->name) || x->role != y->role || x->placement != y->placement)
        return differ(q, a, "another name, role or device");
    if (!same_location(q, x->location, y->location))
        return differ(q, a, "other origins");
    for (uint32_t i = 0; i < x->region_count; i++)
        if (!same_region(q, q->a->region_list.data[x->regions + i], q->b->region_list.data[y->regions + i], depth + 1))
            return false;
    return true;
}

static bool same_region(pairing *q, uint32_t a, uint32_t b, int depth) {
    const tn_region_rec *x = &q->a->region.data[a], *y = &q->b->region.data[b];
    if (depth > TN_MAX_NESTING)
        return differ(q, 0, "regions are nested too deeply to compare");
    if (x->args.len != y->args.len)
        return differ(q, x->owner, "another number of a region's arguments");
    for (uint32_t i = 0; i < x->args.len; i++)
        if (!same_value(q, x->args.data[i], y->args.data[i]))
            return differ(q, x->owner, "an argument of another type or name");
    uint32_t m = x->first, n = y->first;
    for (; m && n; m = q->a->node.data[m].next, n = q->b->node.data[n].next)
        if (!same_node(q, m, n, depth))
            return false;
    return (!m && !n) || differ(q, m, "another number of nodes");
}

/* Bounds of the symbols that occur; they have the same names. */
static bool same_symbols(pairing *q) {
    const tn_dims *x = &q->a->dims, *y = &q->b->dims;
    uint32_t *by_name = tn_alloc_array(q->a->heap, y->strings.text.len, 2 * sizeof *by_name); /* symbol of b + 1 */
    if (!by_name)
        return false;
    for (uint32_t i = 0; i < y->symbol.len; i++)
        by_name[2 * y->symbol.data[i].name + y->symbol.data[i].fresh] = i + 1;
    bool same = true;
    for (uint32_t i = 0; i < x->symbol.len && same; i++) {
        const tn_dim_sym *s = &x->symbol.data[i];
        uint32_t name = tn_strings_find(&y->strings, tn_strings_text(&x->strings, s->name),
                                        tn_strings_length(&x->strings, s->name));
        uint32_t other = name == UINT32_MAX ? 0 : by_name[2 * name + s->fresh];
        if (q->symbol_used[i] && other)
            same = s->low == y->symbol.data[other - 1].low && s->high == y->symbol.data[other - 1].high;
    }
    tn_free(q->a->heap, by_name);
    return same || differ(q, 0, "other bounds of a symbol");
}

static bool same_whole(pairing *q) {
    const tn_graph *a = q->a, *b = q->b;
    if (a->metadata.len != b->metadata.len || a->function.len != b->function.len ||
        a->output_name.len != b->output_name.len)
        return differ(q, 0, "another number of functions, outputs or metadata");
    for (uint32_t i = 0; i < a->metadata.len; i++)
        if (!same_string(q, a->metadata.data[i].key, b->metadata.data[i].key) ||
            !same_string(q, a->metadata.data[i].value, b->metadata.data[i].value))
            return differ(q, 0, "other metadata");
    for (uint32_t i = 0; i < a->output_name.len; i++)
        if (!same_string(q, a->output_name.data[i], b->output_name.data[i]))
            return differ(q, 0, "another output name");
    for (uint32_t i = 0; i < a->function.len; i++) {
        uint32_t other = tn_graph_find_function(b, tn_strings_text(&a->strings, a->function.data[i].name));
        if (other == UINT32_MAX)
            return differ(q, 0, "a function that only one has");
        if (!same_region(q, a->function.data[i].region, b->function.data[other].region, 0))
            return false;
    }
    if (!same_region(q, a->main_region, b->main_region, 0))
        return false;
    for (uint32_t i = 0; i < tn_graph_input_count(a); i++)
        if (!same_tensor(tn_graph_input_default(a, tn_graph_input(a, i)),
                         tn_graph_input_default(b, tn_graph_input(b, i))))
            return differ(q, 0, "another default of an input");
    return same_symbols(q);
}

bool tn_graph_equal(const tn_graph *a, const tn_graph *b) {
    pairing q = {.a = a, .b = b};
    tn_text_init(&q.left, a->heap);
    tn_text_init(&q.right, a->heap);
    q.value = tn_alloc_array(a->heap, a->value.len, sizeof *q.value);
    q.node = tn_alloc_array(a->heap, a->node.len, sizeof *q.node);
    q.symbol_used = tn_alloc_array(a->heap, a->dims.symbol.len, sizeof *q.symbol_used);
    bool same = q.value && q.node && q.symbol_used && same_whole(&q);
    tn_free(a->heap, q.value);
    tn_free(a->heap, q.node);
    tn_free(a->heap, q.symbol_used);
    tn_text_free(&q.left);
    tn_text_free(&q.right);
    return same;
}
