/* The order of a graph's nodes: what each node reads, directly or from inside its graph attributes, and a stable sort by it. */
#include "onnx/reader.h"

#include <inttypes.h>

typedef struct order_node {
    tn_slice name, op;
    uint32_t first, count; /* of deps */
    uint8_t state;         /* 0 not visited, 1 on the path, 2 done */
    bool dropped;          /* a Constant that a later one replaces */
} order_node;

typedef struct order {
    tn_onnx_reader *r;
    const tn_slice *nodes;
    order_node *node;
    tn_map producer; /* string id -> node index */
    tn_u32_vec deps;
    tn_map seen; /* deps of the current node */
} order;

/* Names that graphs inside the node define: they hide the outer ones. */
typedef struct hidden {
    const struct hidden *outer;
    tn_map names;
} hidden;

static bool is_hidden(const hidden *h, uint32_t name) {
    for (; h; h = h->outer)
        if (tn_map_get(&h->names, name, NULL))
            return true;
    return false;
}

static tn_status use(order *o, const hidden *h, tn_slice text) {
    uint32_t name;
    uint64_t producer;
    if (!text.size)
        return TN_OK;
    if (!tn_onnx_name(o->r, text, &name))
        return tn_error_status();
    if (is_hidden(h, name) || !tn_map_get(&o->producer, name, &producer) || tn_map_get(&o->seen, producer, NULL))
        return TN_OK;
    if (!tn_map_put(o->r->heap, &o->seen, producer, 0) || !tn_vec_push(o->r->heap, &o->deps, (uint32_t)producer))
        return tn_error_status();
    return TN_OK;
}

static tn_status uses_of_graph(order *o, const hidden *outer, tn_slice graph, int depth);

/* What a node reads. */
static tn_status uses_of_node(order *o, const hidden *h, tn_slice node, int depth) {
    tn_wire w, a;
    tn_wire_field f, g;
    const uint8_t *alike;
    tn_wire_init(&w, node.data, node.size);
    while (tn_wire_next(&w, &f))
        if (f.key == TN_WIRE_KEY(1, TN_WIRE_BYTES)) {
            TN_TRY(use(o, h, tn_wire_slice(&f)));
        } else if (f.key == TN_WIRE_KEY(5, TN_WIRE_BYTES)) {
            tn_wire_init(&a, f.data, f.size);
            while (tn_wire_next(&a, &g))
                if (g.key == TN_WIRE_KEY(6, TN_WIRE_BYTES) || g.key == TN_WIRE_KEY(11, TN_WIRE_BYTES))
                    TN_TRY(uses_of_graph(o, h, tn_wire_slice(&g), depth + 1));
                else if (g.key == TN_WIRE_KEY(7, TN_WIRE_FIXED32))
                    tn_wire_pass_alike(&a, &g, &alike);
            TN_TRY(a.status);
        }
    return w.status;
}

static tn_status hide(order *o, hidden *h, tn_slice text) {
    uint32_t name;
    if (!tn_onnx_name(o->r, text, &name))
        return tn_error_status();
    return tn_map_put(o->r->heap, &h->names, name, 0) ? TN_OK : tn_error_status();
}

/* The name in field `number` of a message. */
static tn_status hide_field(order *o, hidden *h, tn_slice message, uint32_t number) {
    tn_wire w;
    tn_wire_field f;
    tn_wire_init(&w, message.data, message.size);
    while (tn_wire_next(&w, &f))
        if (f.key == TN_WIRE_KEY(number, TN_WIRE_BYTES))
            TN_TRY(hide(o, h, tn_wire_slice(&f)));
    return w.status;
}

static tn_status definitions(order *o, hidden *h, tn_slice graph) {
    tn_wire w, s;
    tn_wire_field f, v;
    tn_wire_init(&w, graph.data, graph.size);
    while (tn_wire_next(&w, &f))
        switch (f.key) {
        case TN_WIRE_KEY(1, TN_WIRE_BYTES): TN_TRY(hide_field(o, h, tn_wire_slice(&f), 2)); break;
        case TN_WIRE_KEY(5, TN_WIRE_BYTES): TN_TRY(hide_field(o, h, tn_wire_slice(&f), 8)); break;
        case TN_WIRE_KEY(11, TN_WIRE_BYTES): TN_TRY(hide_field(o, h, tn_wire_slice(&f), 1)); break;
        case TN_WIRE_KEY(15, TN_WIRE_BYTES):
            tn_wire_init(&s, f.data, f.size);
            while (tn_wire_next(&s, &v))
                if (v.key == TN_WIRE_KEY(1, TN_WIRE_BYTES))
                    TN_TRY(hide_field(o, h, tn_wire_slice(&v), 8));
            TN_TRY(s.status);
            break;
        default: break;
        }
    return w.status;
}

static tn_status uses_inside(order *o, const hidden *h, tn_slice graph, int depth) {
    tn_wire w, v;
    tn_wire_field f, g;
    tn_wire_init(&w, graph.data, graph.size);
    while (tn_wire_next(&w, &f))
        if (f.key == TN_WIRE_KEY(1, TN_WIRE_BYTES)) {
            TN_TRY(uses_of_node(o, h, tn_wire_slice(&f), depth));
        } else if (f.key == TN_WIRE_KEY(12, TN_WIRE_BYTES)) { /* an output may name an outer value */
            tn_wire_init(&v, f.data, f.size);
            while (tn_wire_next(&v, &g))
                if (g.key == TN_WIRE_KEY(1, TN_WIRE_BYTES))
                    TN_TRY(use(o, h, tn_wire_slice(&g)));
            TN_TRY(v.status);
        }
    return w.status;
}

static tn_status uses_of_graph(order *o, const hidden *outer, tn_slice graph, int depth) {
    if (depth + o->r->depth > TN_MAX_NESTING)
        return tn_fail(TN_ERR_LIMIT, "graphs are nested deeper than %d", TN_MAX_NESTING);
    hidden h = {.outer = outer};
    tn_status status = definitions(o, &h, graph);
    if (status == TN_OK)
        status = uses_inside(o, &h, graph, depth);
    tn_map_free(o->r->heap, &h.names);
    return status;
}

/* Some exporters' tools write a value as two Constant nodes. The last one counts, as for others who read such files. */
static tn_status replaced_constant(order *o, uint32_t name, uint32_t earlier) {
    o->node[earlier].dropped = true;
    if (o->r->warnings.len < 4096)
        tn_text_printf(&o->r->warnings, "value '%s' is made by two Constant nodes; the last one counts\n",
                       tn_onnx_text(o->r, name));
    return TN_OK;
}

static bool is_constant(const order_node *n) {
    return n->op.size == 8 && memcmp(n->op.data, "Constant", 8) == 0;
}

static tn_status made_twice(order *o, uint32_t name, uint32_t a, uint32_t b) {
    tn_fail(TN_ERR_MODEL, "value '%s' is made twice", tn_onnx_text(o->r, name));
    tn_fail_where("nodes '" TN_SLICE_FMT "' (" TN_SLICE_FMT ") and '" TN_SLICE_FMT "' (" TN_SLICE_FMT ")",
                  TN_SLICE_ARG(o->node[a].name), TN_SLICE_ARG(o->node[a].op), TN_SLICE_ARG(o->node[b].name),
                  TN_SLICE_ARG(o->node[b].op));
    return TN_ERR_MODEL;
}

static tn_status outputs_of(order *o, uint32_t i) {
    tn_wire w;
    tn_wire_field f;
    uint32_t name;
    uint64_t other;
    tn_wire_init(&w, o->nodes[i].data, o->nodes[i].size);
    while (tn_wire_next(&w, &f))
        if (f.key == TN_WIRE_KEY(3, TN_WIRE_BYTES))
            o->node[i].name = tn_wire_slice(&f);
        else if (f.key == TN_WIRE_KEY(4, TN_WIRE_BYTES))
            o->node[i].op = tn_wire_slice(&f);
    TN_TRY(w.status);
    tn_wire_init(&w, o->nodes[i].data, o->nodes[i].size);
    while (tn_wire_next(&w, &f)) {
        if (f.key != TN_WIRE_KEY(2, TN_WIRE_BYTES) || !f.size)
            continue;
        if (!tn_onnx_name(o->r, tn_wire_slice(&f), &name))
            return tn_error_status();
        if (tn_map_get(&o->producer, name, &other)) {
            if (other == i || !is_constant(&o->node[other]) || !is_constant(&o->node[i]))
                return made_twice(o, name, (uint32_t)other, i);
            TN_TRY(replaced_constant(o, name, (uint32_t)other));
        }
        if (!tn_map_put(o->r->heap, &o->producer, name, i))
            return tn_error_status();
    }
    return w.status;
}

static tn_status cycle(const order *o, uint32_t i) {
    tn_fail(TN_ERR_MODEL,
            "nodes read each other's results in a ring: node '" TN_SLICE_FMT "' (" TN_SLICE_FMT
            ") needs its own result",
            TN_SLICE_ARG(o->node[i].name), TN_SLICE_ARG(o->node[i].op));
    return TN_ERR_MODEL;
}

/* Depth first over the nodes as they stand in the file, what a node reads before it. Dropped ones are left out. */
static tn_status sort(order *o, uint32_t count, uint32_t *result, uint32_t *kept) {
    typedef struct frame {
        uint32_t node, next;
    } frame;
    frame *stack = tn_alloc_array(o->r->heap, count, sizeof *stack);
    uint32_t done = 0;
    tn_status status = stack ? TN_OK : tn_error_status();
    for (uint32_t root = 0; root < count && status == TN_OK; root++) {
        uint32_t depth = 0;
        if (o->node[root].state == 0 && !o->node[root].dropped) {
            o->node[root].state = 1;
            stack[depth++] = (frame){root, 0};
        }
        while (depth && status == TN_OK) {
            frame *top = &stack[depth - 1];
            order_node *n = &o->node[top->node];
            if (top->next == n->count) {
                n->state = 2;
                result[done++] = top->node;
                depth--;
                continue;
            }
            uint32_t dep = o->deps.data[n->first + top->next++];
            if (o->node[dep].state == 1)
                status = cycle(o, dep);
            else if (o->node[dep].state == 0) {
                o->node[dep].state = 1;
                stack[depth++] = (frame){dep, 0};
            }
        }
    }
    *kept = done;
    tn_free(o->r->heap, stack);
    return status;
}

tn_status tn_onnx_order(tn_onnx_reader *r, const tn_slice *nodes, uint32_t count, uint32_t *result, uint32_t *kept) {
    order o = {.r = r, .nodes = nodes, .node = tn_alloc_array(r->heap, count, sizeof *o.node)};
    tn_status status = o.node ? TN_OK : tn_error_status();
    for (uint32_t i = 0; i < count && status == TN_OK; i++)
        status = outputs_of(&o, i);
    bool sorted = true;
    for (uint32_t i = 0; i < count && status == TN_OK; i++) {
        o.node[i].first = o.deps.len;
        status = uses_of_node(&o, NULL, nodes[i], 0);
        o.node[i].count = o.deps.len - o.node[i].first;
        for (uint32_t d = o.node[i].first; d < o.deps.len; d++) {
            sorted = sorted && o.deps.data[d] < i;
            tn_map_remove(&o.seen, o.deps.data[d]);
        }
        sorted = sorted && !o.node[i].dropped;
        result[i] = i;
        if (status != TN_OK)
            tn_fail_where("node '" TN_SLICE_FMT "' (" TN_SLICE_FMT ")", TN_SLICE_ARG(o.node[i].name),
                          TN_SLICE_ARG(o.node[i].op));
    }
    *kept = count;
    if (status == TN_OK && !sorted)
        status = sort(&o, count, result, kept);
    tn_map_free(r->heap, &o.producer);
    tn_map_free(r->heap, &o.seen);
    tn_vec_free(r->heap, &o.deps);
    tn_free(r->heap, o.node);
    return status;
}
