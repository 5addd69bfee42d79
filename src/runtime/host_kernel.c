/* Contractions and reductions of host instructions, in bodies of branches and loops above all: by the kernels that would have run them
   in a plan, so that the order of sums, and with it the bits, do not depend on who runs a node. A node's plan is kept for the shapes it
   is given. */
#include <string.h>

#include "base/error.h"
#include "kernels/kernels.h"
#include "runtime/frame.h"

enum { KEPT = 64, KEY = 1024 };

typedef struct kernel_plan {
    uint8_t *key;
    size_t size;
    tn_plan *plan; /* NULL: kernels do not take it */
    tn_frame *frame;
} kernel_plan;

struct tn_host_kernels {
    tn_heap *own;  /* of this */
    tn_heap *heap; /* of plans and runs */
    tn_isa isa;
    uint32_t count, next; /* to be replaced */
    kernel_plan kept[KEPT];
};

static void forget(tn_host_kernels *h, kernel_plan *k) {
    tn_frame_destroy(k->frame);
    tn_plan_destroy(k->plan);
    tn_free(h->heap, k->key);
    *k = (kernel_plan){0};
}

tn_host_kernels *tn_host_kernels_create(tn_heap *own, tn_heap *heap, tn_isa isa) {
    tn_host_kernels *h = tn_alloc(own, sizeof *h);
    if (h) {
        h->own = own;
        h->heap = heap;
        h->isa = isa;
    }
    return h;
}

void tn_host_kernels_trim(tn_host_kernels *h) {
    for (uint32_t i = 0; h && i < h->count; i++)
        forget(h, &h->kept[i]);
    if (h)
        h->count = h->next = 0;
}

void tn_host_kernels_destroy(tn_host_kernels *h) {
    tn_host_kernels_trim(h);
    if (h)
        tn_free(h->own, h);
}

/* --- what a node is, with its shapes ---------------------------------------------------------------------------------------------------- */

typedef struct key {
    uint8_t data[KEY];
    size_t size;
    bool fits;
} key;

static void put(key *k, const void *data, size_t size) {
    k->fits = k->fits && size <= KEY - k->size;
    if (k->fits && size)
        memcpy(k->data + k->size, data, size);
    k->size += k->fits ? size : 0;
}

static void put_attr(key *k, const tn_eval *e, const tn_attr *a) {
    int64_t size;
    put(k, &a->kind, sizeof a->kind);
    put(k, &a->count, sizeof a->count);
    switch ((tn_attr_kind)a->kind) {
    case TN_ATTR_NONE: return;
    case TN_ATTR_INT:
    case TN_ATTR_DTYPE:
    case TN_ATTR_FLOAT: put(k, &a->as.i, sizeof a->as.i); return;
    case TN_ATTR_INTS: put(k, a->as.ints, a->count * sizeof *a->as.ints); return;
    case TN_ATTR_DIMS:
        for (uint32_t i = 0; i < a->count && k->fits; i++)
            if (tn_dim_is_const(e->graph, a->as.dims[i], &size) ||
                (e->env && tn_dim_eval(&e->graph->dims, e->env, a->as.dims[i], &size)))
                put(k, &size, sizeof size);
            else
                k->fits = false;
        return;
    default: k->fits = false;
    }
}

static void make_key(key *k, const tn_eval *e) {
    const tn_op *op = tn_node_op(e->graph, e->node);
    k->size = 0;
    k->fits = true;
    put(k, &op, sizeof(const tn_op *));
    for (uint32_t i = 0; i < e->inputs && k->fits; i++) {
        const tn_tensor *t = e->in[i] && e->in[i]->kind == TN_KIND_TENSOR ? tn_eval_in(e, i) : NULL;
        k->fits = t != NULL;
        if (!t)
            return;
        put(k, &t->dtype, sizeof t->dtype);
        put(k, &t->rank, sizeof t->rank);
        put(k, t->dims, (size_t)t->rank * sizeof *t->dims);
    }
    for (uint32_t i = 0; i < tn_node_attr_count(e->graph, e->node) && k->fits; i++)
        put_attr(k, e, tn_node_attr_at(e->graph, e->node, i));
}

/* --- plans of one node ----------------------------------------------------------------------------------------------------------------- */

enum { MOST_INPUTS = 4, MOST_ATTRS = 12, MOST_DIMS = 2 * TN_MAX_RANK };

static tn_status fill_graph(tn_graph *g, const tn_eval *e) {
    tn_value in[MOST_INPUTS];
    tn_attr attr[MOST_ATTRS];
    tn_dim dims[MOST_ATTRS][MOST_DIMS];
    uint32_t attrs = tn_node_attr_count(e->graph, e->node);
    if (attrs > MOST_ATTRS || e->inputs > MOST_INPUTS)
        return TN_ERR_UNSUPPORTED;
    for (uint32_t i = 0; i < e->inputs; i++) {
        const tn_tensor *t = tn_eval_in(e, i);
        tn_dim size[TN_MAX_RANK];
        for (int d = 0; d < t->rank; d++)
            size[d] = tn_dim_const(g, t->dims[d]);
        in[i] = tn_region_add_arg(g, tn_graph_region(g), tn_type_tensor(g, (tn_dtype)t->dtype, t->rank, size), "");
    }
    for (uint32_t i = 0; i < attrs; i++) {
        attr[i] = *tn_node_attr_at(e->graph, e->node, i);
        if (attr[i].kind != TN_ATTR_DIMS)
            continue;
        if (attr[i].count > MOST_DIMS)
            return TN_ERR_UNSUPPORTED;
        for (uint32_t d = 0; d < attr[i].count; d++) {
            int64_t size = 0; /* it has one: the key was made */
            if (!tn_dim_is_const(e->graph, attr[i].as.dims[d], &size))
                tn_dim_eval(&e->graph->dims, e->env, attr[i].as.dims[d], &size);
            dims[i][d] = tn_dim_const(g, size);
        }
        attr[i].as.dims = dims[i];
    }
    tn_node node = tn_graph_add_node(g, &(tn_node_desc){.op = tn_node_op(e->graph, e->node),
                                                        .input_count = e->inputs,
                                                        .inputs = in,
                                                        .attr_count = attrs,
                                                        .attrs = attr});
    return node.id ? tn_graph_add_output(g, tn_node_output(g, node, 0), "y") : tn_graph_check(g);
}

/* Without a plan where it is no kernel's work. */
static tn_status make_plan(tn_host_kernels *h, const tn_eval *e, kernel_plan *k) {
    tn_graph *g = tn_graph_new(h->heap, e->graph->ops);
    if (!g)
        return tn_error_status();
    if (fill_graph(g, e) != TN_OK || tn_graph_check(g) != TN_OK) {
        tn_graph_destroy(g);
        return TN_OK;
    }
    k->plan = tn_lower(h->heap, g, &(tn_lower_options){.isa = h->isa, .kernels = tn_kernels()});
    if (!k->plan)
        return tn_error_status();
    if (k->plan->host.len || !k->plan->kernel.len) {
        tn_plan_destroy(k->plan);
        k->plan = NULL;
        return TN_OK;
    }
    k->frame = tn_frame_create(k->plan, h->heap);
    return k->frame ? TN_OK : tn_error_status();
}

static kernel_plan *find(tn_host_kernels *h, const tn_eval *e, tn_status *status) {
    key own;
    make_key(&own, e);
    if (!own.fits)
        return NULL;
    for (uint32_t i = 0; i < h->count; i++)
        if (h->kept[i].size == own.size && memcmp(h->kept[i].key, own.data, own.size) == 0)
            return &h->kept[i];
    uint32_t at = h->count < KEPT ? h->count : h->next;
    kernel_plan *k = &h->kept[at];
    forget(h, k);
    h->next = (at + 1) % KEPT;
    k->key = tn_alloc(h->heap, own.size);
    *status = k->key ? make_plan(h, e, k) : tn_error_status();
    if (*status != TN_OK && *status != TN_ERR_MEMORY && *status != TN_ERR_LIMIT) { /* the row says it better */
        tn_error_clear();
        *status = TN_OK;
    }
    if (*status != TN_OK || !k->key) {
        forget(h, k);
        return NULL;
    }
    memcpy(k->key, own.data, own.size);
    k->size = own.size;
    h->count += at == h->count;
    return k;
}

tn_status tn_host_kernels_run(tn_host_kernels *h, tn_eval *e, bool *done) {
    const tn_op *op = tn_node_op(e->graph, e->node);
    tn_tensor *out = e->outputs == 1 && e->out[0] && e->out[0]->kind == TN_KIND_TENSOR ? (tn_tensor *)e->out[0] : NULL;
    bool sums = op->lowering == TN_LOWER_CONTRACT || op->lowering == TN_LOWER_REDUCE || op->lowering == TN_LOWER_WINDOW;
    TN_TRY(tn_kernels_host(e, h->isa, done));
    if (*done || !sums || op->traits & TN_EXACT || !out || !out->contiguous || !tn_dtype_is_float((tn_dtype)out->dtype))
        return TN_OK;
    tn_status status = TN_OK;
    kernel_plan *k = find(h, e, &status);
    if (!k || !k->plan)
        return status;
    tn_execute_options o = {.heap = h->heap, .pool = e->pool};
    tn_object *result = NULL;
    status = tn_frame_run(k->frame, &o, e->in, &out, &result);
    *done = status == TN_OK && result == e->out[0];
    tn_object_destroy(result);
    if (status == TN_OK || status == TN_ERR_MEMORY || status == TN_ERR_LIMIT)
        return status;
    tn_error_clear();
    return TN_OK;
}
