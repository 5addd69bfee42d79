/* A part of a model as a graph of its own: what is fed becomes an input, what is asked for an output. */
#include "base/error.h"
#include "passes/pass.h"
#include "runtime/model.h"

typedef struct cutting {
    tn_graph *g;     /* a clone of the whole */
    tn_value *fetch; /* in it */
    uint8_t *needed; /* by node id */
} cutting;

/* Puts an argument in the place of each value that is fed. */
static tn_status feed(cutting *c, const tn_graph *whole, const tn_cut *cut, const uint32_t *map) {
    for (uint32_t i = 0; i < cut->fetches; i++)
        c->fetch[i] = (tn_value){map[cut->fetch[i].id]};
    for (uint32_t i = 0; i < cut->feeds; i++) {
        tn_value v = {map[cut->feed[i].id]};
        tn_value arg =
            tn_region_add_arg(c->g, tn_graph_region(c->g), tn_value_type(c->g, v), tn_value_name(whole, cut->feed[i]));
        if (!arg.id)
            return tn_graph_check(c->g);
        TN_TRY(tn_value_replace_uses(c->g, v, arg));
        for (uint32_t k = 0; k < cut->fetches; k++)
            if (c->fetch[k].id == v.id)
                c->fetch[k] = arg;
    }
    return TN_OK;
}

/* Marks the node of the main region that makes a value. */
static void need(cutting *c, tn_value v) {
    tn_node n = v.id ? tn_value_producer(c->g, v) : (tn_node){0};
    if (n.id && tn_node_parent(c->g, n).id == tn_graph_region(c->g).id)
        c->needed[n.id] = 1;
}

static void need_inputs(cutting *c, tn_node node) {
    for (uint32_t i = 0; i < tn_node_input_count(c->g, node); i++)
        need(c, tn_node_input(c->g, node, i));
    for (uint32_t r = 0; r < tn_node_region_count(c->g, node); r++)
        for (tn_node n = tn_region_first(c->g, tn_node_region(c->g, node, r)); n.id; n = tn_node_next(c->g, n))
            need_inputs(c, n); /* nested at most as deep as a graph may be */
}

/* Removes what the values asked for do not need. */
static tn_status remove_rest(cutting *c, const tn_cut *cut) {
    tn_graph *g = c->g;
    TN_TRY(tn_region_return(g, tn_graph_region(g), cut->fetches, c->fetch));
    g->output_name.len = 0;
    for (uint32_t i = 0; i < cut->fetches; i++) {
        uint32_t name = tn_strings_add(&g->strings, cut->fetch_name[i], strlen(cut->fetch_name[i]));
        if (name == UINT32_MAX || !tn_vec_push(g->heap, &g->output_name, name))
            return TN_ERR_MEMORY;
        need(c, c->fetch[i]);
    }
    tn_node last = tn_region_last(g, tn_graph_region(g));
    for (tn_node n = tn_node_previous(g, last); n.id; n = tn_node_previous(g, n))
        if (c->needed[n.id])
            need_inputs(c, n);
    for (tn_node n = tn_node_previous(g, last), before; n.id; n = before) {
        before = tn_node_previous(g, n);
        if (!c->needed[n.id])
            TN_TRY(tn_node_remove(g, n));
    }
    for (uint32_t i = tn_graph_input_count(g); i-- > 0;)
        if (!tn_value_use_count(g, tn_graph_input(g, i)))
            TN_TRY(tn_region_remove_arg(g, tn_graph_region(g), i));
    return TN_OK;
}

static bool is_fed(const tn_graph *g, tn_value input, const tn_graph *whole, const tn_cut *cut) {
    for (uint32_t i = 0; i < cut->feeds; i++)
        if (strcmp(tn_value_name(g, input), tn_value_name(whole, cut->feed[i])) == 0)
            return true;
    return false;
}

/* The same with types inferred from what is fed: a size of it need not be what its old producer made it. */
static tn_graph *infer_anew(const tn_graph *g, const tn_graph *whole, const tn_cut *cut) {
    uint32_t inputs = tn_graph_input_count(g), outputs = cut->fetches;
    tn_graph *n = tn_graph_new(g->heap, g->ops);
    tn_value *values = n ? tn_alloc_array(g->heap, (size_t)inputs + outputs + 1, sizeof *values) : NULL;
    tn_status status = values ? TN_OK : tn_error_status();
    for (uint32_t i = 0; i < inputs && status == TN_OK; i++) {
        tn_value v = tn_graph_input(g, i);
        tn_tensor *given = tn_graph_input_default(g, v);
        tn_type type = tn_type_copy(n, g, tn_value_type(g, v), is_fed(g, v, whole, cut));
        values[i] = tn_region_add_arg(n, tn_graph_region(n), type, tn_value_name(g, v));
        status = values[i].id ? TN_OK : tn_graph_check(n);
        if (status == TN_OK && given)
            status = tn_graph_set_input_default(n, values[i], given);
    }
    if (status == TN_OK)
        status = tn_region_copy(n, g, tn_graph_region(g), inputs, values, outputs, values + inputs, NULL, NULL);
    for (uint32_t i = 0; i < outputs && status == TN_OK; i++)
        status = tn_graph_add_output(n, values[inputs + i], cut->fetch_name[i]);
    for (uint32_t i = 0; i < g->metadata.len && status == TN_OK; i++) {
        const tn_metadata *m = &g->metadata.data[i];
        status = tn_graph_set_metadata(n, tn_strings_text(&g->strings, m->key), tn_strings_text(&g->strings, m->value),
                                       tn_strings_length(&g->strings, m->value));
    }
    if (values)
        tn_free(g->heap, values);
    if (status == TN_OK)
        status = tn_graph_check(n);
    if (status == TN_OK)
        return n;
    tn_error_record error;
    tn_error_save(&error);
    tn_graph_destroy(n);
    tn_error_restore(&error);
    return NULL;
}

tn_graph *tn_graph_cut(const tn_graph *whole, const tn_cut *cut) {
    uint32_t *map;
    cutting c = {.g = tn_graph_clone(whole, &map, NULL)};
    if (!c.g)
        return NULL;
    c.fetch = tn_alloc_array(whole->heap, cut->fetches + 1u, sizeof *c.fetch);
    c.needed = tn_alloc(whole->heap, c.g->node.len + 1u);
    tn_status status = c.fetch && c.needed ? TN_OK : TN_ERR_MEMORY;
    if (status == TN_OK)
        status = feed(&c, whole, cut, map);
    if (status == TN_OK)
        status = remove_rest(&c, cut);
    tn_graph *made = status == TN_OK ? c.g : NULL;
    if (made && cut->feeds)
        made = infer_anew(c.g, whole, cut);
    tn_error_record error;
    tn_error_save(&error);
    tn_free(whole->heap, c.fetch);
    tn_free(whole->heap, c.needed);
    tn_graph_free_map(whole, map);
    if (made != c.g)
        tn_graph_destroy(c.g);
    if (!made)
        tn_error_restore(&error);
    return made;
}
