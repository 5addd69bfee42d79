/* The binary form, before writing: what a graph's regions reach gets numbers, in the order in which a reader wants it. */
#include <stdlib.h>

#include "ir/binary_write.h"

/* Gives `id` a number; true when it is new. */
static bool number(tn_numbers *n, tn_numbering *to, uint32_t id) {
    if (!id || to->of[id] || n->failed)
        return false;
    if (!tn_vec_push(n->g->heap, &to->ids, id)) {
        n->failed = true;
        return false;
    }
    to->of[id] = to->ids.len;
    return true;
}

static void number_string(tn_numbers *n, uint32_t id) {
    number(n, &n->string, id);
}

/* --- dimensions and types ----------------------------------------------------------------------------------------------- */

static void mark_symbol(void *ctx, uint32_t symbol) {
    ((tn_numbers *)ctx)->symbol_used[symbol] = 1;
}

static void number_dims(tn_numbers *n, uint32_t count, const tn_dim *dims) {
    for (uint32_t i = 0; i < count; i++)
        if (number(n, &n->dim, dims[i].id))
            tn_dim_symbols(&n->g->dims, dims[i], mark_symbol, n);
}

/* Elements before what holds them. Types are made from their elements: the depth is bounded by what made the graph, but
   numbering does not rely on it. */
static void number_type(tn_numbers *n, uint32_t id) {
    tn_u32_vec chain = {0};
    for (; id && !n->type.of[id]; id = n->g->type.data[id].element)
        if (!tn_vec_push(n->g->heap, &chain, id)) {
            n->failed = true;
            break;
        }
    while (chain.len) {
        uint32_t at = chain.data[--chain.len];
        const tn_type_rec *t = &n->g->type.data[at];
        if (t->rank > 0)
            number_dims(n, (uint32_t)t->rank, n->g->dim_list.data + t->dims);
        number(n, &n->type, at);
    }
    tn_vec_free(n->g->heap, &chain);
}

/* --- tensors ---------------------------------------------------------------------------------------------------------------- */

static uint32_t number_blob(tn_numbers *n, const tn_tensor *tensor) {
    tn_heap *heap = n->g->heap;
    uint64_t bytes = tn_tensor_bytes(tensor), found = 0, address = (uint64_t)(uintptr_t)tensor->data;
    bool shared = tensor->contiguous && bytes;
    if (shared && tn_map_get(&n->blob_of, address, &found) && n->blob.data[found - 1].bytes == bytes)
        return (uint32_t)found;
    tn_blob blob = {.tensor = tensor, .bytes = bytes};
    if (!tn_vec_push(heap, &n->blob, blob) || (shared && !tn_map_put(heap, &n->blob_of, address, n->blob.len))) {
        n->failed = true;
        return 0;
    }
    return n->blob.len;
}

static void number_tensor(tn_numbers *n, const tn_tensor *tensor) {
    tn_heap *heap = n->g->heap;
    uint64_t address = (uint64_t)(uintptr_t)tensor;
    if (n->failed || tn_map_get(&n->tensor_of, address, NULL))
        return;
    uint32_t blob = tensor->dtype == TN_STRING ? 0 : number_blob(n, tensor);
    if (n->failed || !tn_vec_push(heap, &n->tensor, tensor) || !tn_vec_push(heap, &n->tensor_blob, blob) ||
        !tn_map_put(heap, &n->tensor_of, address, n->tensor.len))
        n->failed = true;
}

uint32_t tn_numbers_tensor(const tn_numbers *n, const tn_tensor *tensor) {
    uint64_t found = 0;
    return tn_map_get(&n->tensor_of, (uint64_t)(uintptr_t)tensor, &found) ? (uint32_t)found : 0;
}

/* --- operators and places ----------------------------------------------------------------------------------------------------- */

static void number_op(tn_numbers *n, const tn_op *op) {
    uint64_t address = (uint64_t)(uintptr_t)op;
    if (n->failed || tn_map_get(&n->op_of, address, NULL))
        return;
    if (!tn_map_put(n->g->heap, &n->op_of, address, n->op.len) || !tn_vec_push(n->g->heap, &n->op, op))
        n->failed = true;
}

uint32_t tn_numbers_op(const tn_numbers *n, const tn_op *op) {
    uint64_t found = 0;
    return tn_map_get(&n->op_of, (uint64_t)(uintptr_t)op, &found) ? (uint32_t)found : 0;
}

static void number_location(tn_numbers *n, uint32_t id) {
    if (!number(n, &n->location, id))
        return;
    tn_location_set set = n->g->location.data[id];
    for (uint32_t i = 0; i < set.count; i++) {
        uint32_t origin = n->g->origin_list.data[set.first + i];
        const tn_origin *o = &n->g->origin.data[origin];
        if (!number(n, &n->origin, origin))
            continue;
        number_string(n, o->what);
        number_string(n, o->name);
        number_string(n, o->file);
    }
}

/* --- values, nodes, regions ----------------------------------------------------------------------------------------------------- */

/* Whether the elements of a value define symbols: others are inferred anew. */
static bool defines_by_contents(const tn_graph *g, uint32_t value) {
    const tn_value_rec *v = &g->value.data[value];
    for (int32_t i = 0; i < v->contents_count; i++) {
        const tn_dim_expr *e = &g->dims.expr.data[g->dim_list.data[v->contents + (uint32_t)i].id];
        if (e->kind == TN_DIM_SYMBOL && e->symbol < g->symbol_value.len && g->symbol_value.data[e->symbol] == value)
            return true;
    }
    return false;
}

static void number_value(tn_numbers *n, uint32_t value) {
    const tn_value_rec *v = &n->g->value.data[value];
    if (!number(n, &n->value, value))
        return;
    number_type(n, v->type);
    number_string(n, v->name);
    if (!defines_by_contents(n->g, value))
        return;
    number_dims(n, (uint32_t)v->contents_count, n->g->dim_list.data + v->contents);
    if (!tn_vec_push(n->g->heap, &n->held, value))
        n->failed = true;
}

static void number_attr(tn_numbers *n, const tn_attr *a) {
    number_string(n, a->name);
    switch ((tn_attr_kind)a->kind) {
    case TN_ATTR_DIMS: number_dims(n, a->count, a->as.dims); break;
    case TN_ATTR_TYPE: number_type(n, a->as.type.id); break;
    case TN_ATTR_TENSOR: number_tensor(n, a->as.tensor); break;
    default: break;
    }
}

static void number_region(tn_numbers *n, uint32_t region);

/* Arguments first, then node by node: its regions before itself and its outputs. */
static void number_body(tn_numbers *n, uint32_t region) {
    const tn_graph *g = n->g;
    const tn_region_rec *r = &g->region.data[region];
    for (uint32_t i = 0; i < r->args.len; i++)
        number_value(n, r->args.data[i]);
    for (uint32_t id = r->first; id && !n->failed; id = g->node.data[id].next) {
        const tn_node_rec *node = &g->node.data[id];
        for (uint32_t i = 0; i < node->region_count; i++)
            number_region(n, g->region_list.data[node->regions + i]);
        number(n, &n->node, id);
        number_op(n, node->op);
        number_string(n, node->name);
        number_location(n, node->location);
        for (uint32_t i = 0; i < node->output_count; i++)
            number_value(n, node->outputs + i);
        for (uint32_t i = 0; i < node->attr_count; i++)
            number_attr(n, &node->attrs[i]);
    }
}

static void number_region(tn_numbers *n, uint32_t region) {
    if (number(n, &n->region, region))
        number_body(n, region);
}

typedef struct name {
    const char *text;
    uint32_t length, id;
} name;

static int compare_names(const void *a, const void *b) {
    const name *x = a, *y = b;
    return tn_string_compare(x->text, x->length, y->text, y->length);
}

/* Strings stand in ascending order: a reader sees without a search that none is there twice. */
static bool sort_strings(tn_numbers *n) {
    const tn_strings *strings = &n->g->strings;
    tn_u32_vec *ids = &n->string.ids;
    name *names = tn_alloc_array(n->g->heap, ids->len, sizeof *names);
    if (!names)
        return false;
    for (uint32_t i = 0; i < ids->len; i++) {
        uint32_t id = ids->data[i];
        names[i] = (name){tn_strings_text(strings, id), tn_strings_length(strings, id), id};
    }
    qsort(names, ids->len, sizeof *names, compare_names);
    for (uint32_t i = 0; i < ids->len; i++) {
        ids->data[i] = names[i].id;
        n->string.of[names[i].id] = i + 1;
    }
    tn_free(n->g->heap, names);
    return true;
}

static bool numbering_init(tn_numbers *n, tn_numbering *to, uint32_t length) {
    to->of = tn_alloc_array(n->g->heap, length, sizeof *to->of);
    return to->of != NULL;
}

/* Names of operators and symbols need no numbers: they stand in their records. */
bool tn_numbers_make(tn_numbers *n, const tn_graph *g) {
    *n = (tn_numbers){.g = g};
    n->symbol_used = tn_alloc(g->heap, g->dims.symbol.len);
    if (!n->symbol_used || !numbering_init(n, &n->string, g->strings.text.len) ||
        !numbering_init(n, &n->type, g->type.len) || !numbering_init(n, &n->dim, g->dims.expr.len) ||
        !numbering_init(n, &n->origin, g->origin.len) || !numbering_init(n, &n->location, g->location.len) ||
        !numbering_init(n, &n->value, g->value.len) || !numbering_init(n, &n->node, g->node.len) ||
        !numbering_init(n, &n->region, g->region.len))
        return false;
    number(n, &n->region, g->main_region); /* region 1; what stands in it comes after the functions */
    for (uint32_t i = 0; i < g->function.len; i++) {
        number_string(n, g->function.data[i].name);
        number_region(n, g->function.data[i].region);
    }
    number_body(n, g->main_region);
    for (uint32_t i = 0; i < g->output_name.len; i++)
        number_string(n, g->output_name.data[i]);
    for (uint32_t i = 0; i < g->metadata.len; i++)
        number_string(n, g->metadata.data[i].key);
    for (uint32_t i = 0; i < g->input_default.len; i++)
        number_tensor(n, g->input_default.data[i].tensor);
    return !n->failed && sort_strings(n);
}

static void numbering_free(tn_numbers *n, tn_numbering *of) {
    tn_free(n->g->heap, of->of);
    tn_vec_free(n->g->heap, &of->ids);
}

void tn_numbers_free(tn_numbers *n) {
    tn_heap *heap = n->g->heap;
    tn_numbering *all[] = {&n->string, &n->type, &n->dim, &n->origin, &n->location, &n->value, &n->node, &n->region};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        numbering_free(n, all[i]);
    tn_free(heap, n->symbol_used);
    tn_vec_free(heap, &n->op);
    tn_vec_free(heap, &n->tensor);
    tn_vec_free(heap, &n->tensor_blob);
    tn_vec_free(heap, &n->blob);
    tn_vec_free(heap, &n->held);
    tn_map_free(heap, &n->op_of);
    tn_map_free(heap, &n->tensor_of);
    tn_map_free(heap, &n->blob_of);
}
