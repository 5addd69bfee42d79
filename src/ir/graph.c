/* A graph's life: creation, destruction, the sticky error, functions, inputs' defaults, metadata. */
#include "ir/graph.h"

#include "ir/graph_internal.h"

tn_graph *tn_graph_new(tn_heap *heap, const tn_op_table *ops) {
    tn_graph *g = tn_alloc(heap, sizeof *g);
    if (!g)
        return NULL;
    g->heap = heap;
    g->ops = ops;
    tn_arena_init(&g->arena, heap);
    /* index 0 is null everywhere */
    bool ok = tn_strings_init(&g->strings, heap) && tn_dims_init(&g->dims, heap) &&
              tn_vec_push(heap, &g->type, (tn_type_rec){.rank = -1}) &&
              tn_vec_push(heap, &g->value, (tn_value_rec){.contents_count = -1}) &&
              tn_vec_push(heap, &g->node, (tn_node_rec){0}) && tn_vec_push(heap, &g->operand, (tn_operand){0}) &&
              tn_vec_push(heap, &g->region, (tn_region_rec){0}) && tn_vec_push(heap, &g->origin, (tn_origin){0}) &&
              tn_vec_push(heap, &g->location, (tn_location_set){0});
    if (ok) {
        tn_region main = tn_region_create(g);
        ok = main.id != 0 && tn_region_return(g, main, 0, NULL) == TN_OK;
        g->main_region = main.id;
        g->at_region = main.id;
    }
    if (!ok) {
        tn_error_record error;
        tn_error_save(&error);
        tn_graph_destroy(g);
        tn_error_restore(&error);
        return NULL;
    }
    return g;
}

void tn_graph_destroy(tn_graph *g) {
    if (!g)
        return;
    tn_heap *heap = g->heap;
    for (uint32_t i = 0; i < g->tensors.len; i++)
        tn_tensor_destroy(g->tensors.data[i]);
    for (uint32_t i = 0; i < g->input_default.len; i++)
        tn_tensor_destroy(g->input_default.data[i].tensor);
    for (uint32_t i = 0; i < g->region.len; i++)
        tn_vec_free(heap, &g->region.data[i].args);
    tn_vec_free(heap, &g->tensors);
    tn_vec_free(heap, &g->input_default);
    tn_vec_free(heap, &g->region);
    tn_vec_free(heap, &g->type);
    tn_vec_free(heap, &g->dim_list);
    tn_idset_free(heap, &g->type_set);
    tn_vec_free(heap, &g->value);
    tn_vec_free(heap, &g->node);
    tn_vec_free(heap, &g->operand);
    tn_vec_free(heap, &g->region_list);
    tn_vec_free(heap, &g->control_list);
    tn_vec_free(heap, &g->origin);
    tn_vec_free(heap, &g->origin_list);
    tn_vec_free(heap, &g->location);
    tn_idset_free(heap, &g->origin_set);
    tn_idset_free(heap, &g->location_set);
    tn_vec_free(heap, &g->function);
    tn_vec_free(heap, &g->output_name);
    tn_vec_free(heap, &g->metadata);
    tn_vec_free(heap, &g->symbol_value);
    tn_dims_free(&g->dims);
    tn_strings_free(&g->strings);
    tn_arena_free(&g->arena);
    tn_free(heap, g);
}

tn_dims *tn_graph_dims(tn_graph *g) {
    return &g->dims;
}

void tn_graph_stick(tn_graph *g) {
    if (g->stuck || g->frozen) /* a frozen graph stays good for its readers */
        return;
    if (tn_error_status() == TN_OK)
        tn_fail(TN_ERR_INTERNAL, "a building call failed without a message");
    char text[256];
    if (g->at_location) {
        tn_location_set set = g->location.data[g->at_location];
        for (uint32_t i = 0; i < set.count && i < 4; i++)
            tn_fail_where("%s", tn_origin_describe(g, g->origin_list.data[set.first + i], text, sizeof text));
    }
    tn_error_save(&g->error);
    g->stuck = true;
}

tn_status tn_graph_check(const tn_graph *g) {
    if (!g)
        return tn_fail(TN_ERR_USAGE, "graph is NULL");
    return g->stuck ? tn_error_restore(&g->error) : TN_OK;
}

tn_status tn_graph_changeable(tn_graph *g) {
    if (!g)
        return tn_fail(TN_ERR_USAGE, "graph is NULL");
    if (g->stuck)
        return tn_error_restore(&g->error);
    if (g->frozen) {
        /* not sticky: a frozen graph stays good for its readers */
        tn_fail(TN_ERR_USAGE, "the graph is frozen: a session holds it");
        tn_fail_hint("change a copy (tn_graph_clone), or change the graph before a session is made from it");
        return TN_ERR_USAGE;
    }
    return TN_OK;
}

void tn_graph_freeze(tn_graph *g) {
    if (g)
        g->frozen = true;
}

bool tn_graph_is_frozen(const tn_graph *g) {
    return g && g->frozen;
}

/* --- functions, defaults, metadata -------------------------------------------------------------------------------------- */

uint32_t tn_graph_add_function(tn_graph *g, const char *name, tn_region region) {
    if (tn_graph_changeable(g) != TN_OK)
        return UINT32_MAX;
    if (tn_graph_find_function(g, name) != UINT32_MAX) {
        tn_fail(TN_ERR_USAGE, "a function '%s' exists already", name);
        tn_graph_stick(g);
        return UINT32_MAX;
    }
    if (!tn_region_is_alive(g, region) || g->region.data[region.id].owner) {
        tn_fail(TN_ERR_USAGE, "function '%s': the region is null, dead or owned by a node", name);
        tn_graph_stick(g);
        return UINT32_MAX;
    }
    uint32_t id = tn_strings_add(&g->strings, name, strlen(name));
    if (id == UINT32_MAX || !tn_vec_push(g->heap, &g->function, ((tn_function){id, region.id}))) {
        tn_graph_stick(g);
        return UINT32_MAX;
    }
    return g->function.len - 1;
}

uint32_t tn_graph_find_function(const tn_graph *g, const char *name) {
    uint32_t id = tn_strings_find(&g->strings, name, strlen(name));
    if (id != UINT32_MAX)
        for (uint32_t i = 0; i < g->function.len; i++)
            if (g->function.data[i].name == id)
                return i;
    return UINT32_MAX;
}

tn_region tn_graph_function_region(const tn_graph *g, uint32_t function) {
    return (tn_region){function < g->function.len ? g->function.data[function].region : 0};
}

tn_status tn_graph_set_input_default(tn_graph *g, tn_value input, tn_tensor *tensor) {
    TN_TRY(tn_graph_changeable(g));
    if (!tn_value_is_alive(g, input) || g->value.data[input.id].region != g->main_region || !tensor)
        return tn_fail(TN_ERR_USAGE, "a default can be given to an input of the graph only");
    for (uint32_t i = 0; i < g->input_default.len; i++)
        if (g->input_default.data[i].value == input.id) {
            tn_tensor_retain(tensor);
            tn_tensor_destroy(g->input_default.data[i].tensor);
            g->input_default.data[i].tensor = tensor;
            return TN_OK;
        }
    if (!tn_vec_push(g->heap, &g->input_default, ((tn_input_default){input.id, tensor})))
        return TN_ERR_MEMORY;
    tn_tensor_retain(tensor);
    return TN_OK;
}

tn_tensor *tn_graph_input_default(const tn_graph *g, tn_value input) {
    for (uint32_t i = 0; g && i < g->input_default.len; i++)
        if (g->input_default.data[i].value == input.id)
            return g->input_default.data[i].tensor;
    return NULL;
}

tn_status tn_graph_set_metadata(tn_graph *g, const char *key, const char *value, size_t length) {
    uint32_t k = tn_strings_add(&g->strings, key, strlen(key)), v = tn_strings_add(&g->strings, value, length);
    if (k == UINT32_MAX || v == UINT32_MAX)
        return TN_ERR_MEMORY;
    for (uint32_t i = 0; i < g->metadata.len; i++)
        if (g->metadata.data[i].key == k) {
            g->metadata.data[i].value = v;
            return TN_OK;
        }
    return tn_vec_push(g->heap, &g->metadata, ((tn_metadata){k, v})) ? TN_OK : TN_ERR_MEMORY;
}

const char *tn_graph_metadata(const tn_graph *g, const char *key) {
    uint32_t k = tn_strings_find(&g->strings, key, strlen(key));
    if (k != UINT32_MAX)
        for (uint32_t i = 0; i < g->metadata.len; i++)
            if (g->metadata.data[i].key == k)
                return tn_strings_text(&g->strings, g->metadata.data[i].value);
    return NULL;
}

/* --- op tables --------------------------------------------------------------------------------------------------------------- */

const tn_op *tn_op_find(const tn_op_table *table, const char *name, size_t length) {
    for (; table; table = table->next)
        for (uint32_t i = 0; i < table->count; i++)
            if (strlen(table->rows[i]->name) == length && memcmp(table->rows[i]->name, name, length) == 0)
                return table->rows[i];
    return NULL;
}
