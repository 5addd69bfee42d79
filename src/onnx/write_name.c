/* Names of values as they are written: a value's own label where no other value that is visible with it has it, else one made of it. */
#include <inttypes.h>
#include <stdio.h>

#include "onnx/writer.h"

typedef struct shadow {
    uint32_t name, value; /* what the name meant before; 0: nothing */
} shadow;

typedef struct namer {
    tn_onnx_writer *w;
    tn_strings seen;
    tn_map taken; /* string id of a name that is visible here -> value */
    TN_VEC(shadow) stack;
    uint32_t region, made;
} namer;

static tn_status take(namer *n, uint32_t value, const char *name, size_t length) {
    uint32_t id = tn_strings_add(&n->seen, name, length);
    uint64_t before = 0;
    if (id == UINT32_MAX)
        return tn_error_status();
    tn_map_get(&n->taken, id, &before);
    if (!tn_map_put(n->w->heap, &n->taken, id, value) ||
        !tn_vec_push(n->w->heap, &n->stack, ((shadow){id, (uint32_t)before})))
        return tn_error_status();
    const char *copy = tn_arena_strndup(&n->w->arena, name, length);
    if (!copy)
        return tn_error_status();
    n->w->name[value] = copy;
    return TN_OK;
}

/* Whether a value is read inside a region, at any depth. */
static bool is_read_in(const tn_graph *g, tn_value value, uint32_t region) {
    for (tn_use u = tn_value_first_use(g, value); u.node.id; u = tn_use_next(g, u))
        for (tn_node at = u.node; at.id; at = tn_region_owner(g, tn_node_parent(g, at)))
            if (tn_node_parent(g, at).id == region)
                return true;
    return false;
}

static uint32_t region_of(const tn_graph *g, tn_value value) {
    tn_node from = tn_value_producer(g, value);
    return from.id ? tn_node_parent(g, from).id : g->value.data[value.id].region;
}

/* A name of an enclosing graph may be given again where a file does so, and nothing here reads what it means there. */
static bool is_taken(const namer *n, const char *name, size_t length) {
    uint32_t id = tn_strings_find(&n->seen, name, length);
    uint64_t value;
    if (id == UINT32_MAX || !tn_map_get(&n->taken, id, &value) || value == 0)
        return false;
    tn_value other = {(uint32_t)value};
    return !n->w->as_read || other.id == UINT32_MAX || region_of(n->w->graph, other) == n->region ||
           is_read_in(n->w->graph, other, n->region);
}

/* Takes `label`, or something like it that is free. */
static tn_status name_like(namer *n, uint32_t value, const char *label, size_t length) {
    if (length && !is_taken(n, label, length))
        return take(n, value, label, length);
    tn_text text;
    tn_text_init(&text, n->w->heap);
    do {
        text.len = 0;
        tn_text_bytes(&text, length ? label : "v", length ? length : 1);
        tn_text_printf(&text, "_%" PRIu32, ++n->made);
    } while (!text.failed && is_taken(n, text.data, text.len));
    tn_status status = text.failed ? tn_error_status() : take(n, value, text.data, text.len);
    tn_text_free(&text);
    return status;
}

static tn_status name_value(namer *n, uint32_t value, bool needed) {
    const tn_graph *g = n->w->graph;
    const tn_value_rec *v = &g->value.data[value];
    if (n->w->name[value])
        return TN_OK;
    if (!v->name && !needed && !v->use_count) {
        n->w->name[value] = "";
        return TN_OK;
    }
    return name_like(n, value, tn_strings_text(&g->strings, v->name), tn_strings_length(&g->strings, v->name));
}

/* All values of a region, then of the regions in it. */
static tn_status name_region(namer *n, uint32_t region, int depth) {
    const tn_graph *g = n->w->graph;
    const tn_region_rec *r = &g->region.data[region];
    uint32_t begin = n->stack.len, outer = n->region;
    n->region = region;
    if (depth > TN_MAX_NESTING)
        return tn_fail(TN_ERR_LIMIT, "graphs are nested deeper than %d", TN_MAX_NESTING);
    for (uint32_t i = 0; i < r->args.len; i++)
        TN_TRY(name_value(n, r->args.data[i], true));
    for (uint32_t id = r->first; id; id = g->node.data[id].next)
        for (uint32_t i = 0; i < g->node.data[id].output_count; i++)
            TN_TRY(name_value(n, g->node.data[id].outputs + i, false));
    for (uint32_t id = r->first; id; id = g->node.data[id].next)
        for (uint32_t i = 0; i < g->node.data[id].region_count; i++)
            TN_TRY(name_region(n, g->region_list.data[g->node.data[id].regions + i], depth + 1));
    while (n->stack.len > begin) {
        shadow last = n->stack.data[--n->stack.len];
        if (last.value)
            (void)tn_map_put(n->w->heap, &n->taken, last.name, last.value); /* it is there: no room is needed */
        else
            tn_map_remove(&n->taken, last.name);
    }
    n->region = outer;
    return TN_OK;
}

/* Inputs first: their names are the model's. Then outputs that may carry theirs; the others become copies (write_graph.c). */
static tn_status name_ends(namer *n) {
    const tn_graph *g = n->w->graph;
    for (uint32_t i = 0; i < tn_graph_input_count(g); i++)
        TN_TRY(name_value(n, tn_graph_input(g, i).id, true));
    for (uint32_t i = 0; i < tn_graph_output_count(g); i++) {
        tn_value value = tn_graph_output(g, i);
        const char *name = tn_graph_output_name(g, i);
        tn_node producer = tn_value_producer(g, value);
        if (!n->w->name[value.id] && *name && !is_taken(n, name, strlen(name)) && producer.id &&
            tn_node_parent(g, producer).id == tn_graph_region(g).id)
            TN_TRY(take(n, value.id, name, strlen(name)));
        else if (*name && !is_taken(n, name, strlen(name))) { /* the copy's */
            uint32_t id = tn_strings_add(&n->seen, name, strlen(name));
            if (id == UINT32_MAX || !tn_map_put(n->w->heap, &n->taken, id, UINT32_MAX))
                return tn_error_status();
        }
    }
    return TN_OK;
}

static tn_status run(tn_onnx_writer *w, tn_region region, bool main) {
    namer n = {.w = w, .region = region.id};
    tn_status status = tn_strings_init(&n.seen, w->heap) ? TN_OK : tn_error_status();
    if (status == TN_OK && main)
        status = name_ends(&n);
    if (status == TN_OK)
        status = name_region(&n, region.id, 0);
    tn_strings_free(&n.seen);
    tn_map_free(w->heap, &n.taken);
    tn_vec_free(w->heap, &n.stack);
    return status;
}

tn_status tn_onnx_name_graph(tn_onnx_writer *w) {
    return run(w, tn_graph_region(w->graph), true);
}

tn_status tn_onnx_name_function(tn_onnx_writer *w, tn_region region) {
    return run(w, region, false);
}
