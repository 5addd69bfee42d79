/* Common subexpressions: of two nodes that compute the same, the later one is replaced by the earlier one where that is visible.

   The same are: operator, attributes (bit for bit, defaults filled in), inputs (in any order where that does not matter), bodies,
   types of the outputs. Constants: dtype, shape and bits. Never merged are effects, random numbers, operators that nothing is known
   about, and nodes in an ordering edge. */
#include "passes/pass.h"

#define MAX_ROUNDS 4 /* a merge may make other nodes' types the same */
#define SAMPLES 16   /* elements of a constant that are hashed; what agrees in them is compared whole */
#define LARGE 65536 /* bytes; of a larger constant, whose pages may not have been read yet, only the middle is hashed */

typedef struct merger {
    tn_graph *g;
    tn_pass_context *context;
    tn_purity purity;
    tn_symbol_map symbols;
    tn_idset seen;
    uint8_t *needed; /* by node id, see tn_graph_needed_nodes */
    bool failed;     /* out of memory within a comparison */
} merger;

/* --- tensors ------------------------------------------------------------------------------------------------------------------------ */

static uint64_t tensor_hash(const tn_tensor *t) {
    uint64_t h = tn_hash_mix(t->dtype, t->rank);
    h = tn_hash_mix(h, tn_hash_bytes(t->dims, (size_t)t->rank * sizeof *t->dims, 0));
    int bits = tn_dtype_bits((tn_dtype)t->dtype);
    if (t->count == 0 || bits < 8 || !t->contiguous)
        return h;
    bool large = t->count > LARGE / (bits / 8);
    for (int64_t i = 0; i < SAMPLES; i++) {
        int64_t at = i < t->count ? i * ((t->count - 1) / SAMPLES) : t->count - 1;
        if (large)
            at = t->count / 2 + i;
        else if (i == SAMPLES - 1)
            at = t->count - 1;
        if (t->dtype == TN_STRING) {
            tn_string s = ((const tn_string *)t->data)[at];
            h = tn_hash_mix(h, tn_hash_bytes(s.data, s.length, 1));
        } else {
            h = tn_hash_mix(
                h, tn_hash_bytes((const char *)t->data + (size_t)at * (size_t)(bits / 8), (size_t)(bits / 8), 1));
        }
    }
    return h;
}

static bool tensors_equal(tn_tensor *a, tn_tensor *b) {
    return a == b || (a->dtype == b->dtype && a->rank == b->rank && a->count == b->count &&
                      tn_object_equal(tn_tensor_object(a), tn_tensor_object(b)));
}

/* --- attributes ---------------------------------------------------------------------------------------------------------------------- */

static uint64_t float_bits(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* Whether the attribute says what its absence would. */
static bool is_default(const tn_op *op, const tn_attr *a) {
    const tn_attr_spec *s = op->attrs;
    while (s && s->name && strcmp(s->name, a->key) != 0)
        s++;
    if (!s || !s->name || s->required || s->kind != a->kind)
        return false;
    switch ((tn_attr_kind)a->kind) {
    case TN_ATTR_INT:
    case TN_ATTR_DTYPE: return a->as.i == s->i;
    case TN_ATTR_FLOAT: return float_bits(a->as.f) == float_bits(s->f);
    case TN_ATTR_STRING:
        return s->s && strlen(s->s) == a->as.s.length && memcmp(s->s, a->as.s.data, a->as.s.length) == 0;
    default: return false;
    }
}

static uint64_t attr_hash(const tn_attr *a) {
    uint64_t h = tn_hash_mix(tn_hash_bytes(a->key, strlen(a->key), 2), a->kind);
    switch ((tn_attr_kind)a->kind) {
    case TN_ATTR_NONE: return h;
    case TN_ATTR_INT:
    case TN_ATTR_DTYPE:
    case TN_ATTR_FUNCTION: return tn_hash_mix(h, (uint64_t)a->as.i);
    case TN_ATTR_FLOAT: return tn_hash_mix(h, float_bits(a->as.f));
    case TN_ATTR_STRING: return tn_hash_mix(h, tn_hash_bytes(a->as.s.data, a->as.s.length, 3));
    case TN_ATTR_INTS: return tn_hash_mix(h, tn_hash_bytes(a->as.ints, a->count * sizeof *a->as.ints, 4));
    case TN_ATTR_FLOATS: return tn_hash_mix(h, tn_hash_bytes(a->as.floats, a->count * sizeof *a->as.floats, 4));
    case TN_ATTR_DIMS: return tn_hash_mix(h, tn_hash_bytes(a->as.dims, a->count * sizeof *a->as.dims, 4));
    case TN_ATTR_STRINGS:
        for (uint32_t i = 0; i < a->count; i++)
            h = tn_hash_mix(h, tn_hash_bytes(a->as.strings[i].data, a->as.strings[i].length, 3));
        return h;
    case TN_ATTR_TENSOR: return tn_hash_mix(h, tensor_hash(a->as.tensor));
    case TN_ATTR_TYPE: return tn_hash_mix(h, a->as.type.id);
    }
    return h;
}

static bool strings_equal(tn_string a, tn_string b) {
    return a.length == b.length && (a.length == 0 || memcmp(a.data, b.data, a.length) == 0);
}

static bool attr_equal(const tn_attr *a, const tn_attr *b) {
    if (a->kind != b->kind)
        return false;
    switch ((tn_attr_kind)a->kind) {
    case TN_ATTR_NONE: return true;
    case TN_ATTR_INT:
    case TN_ATTR_DTYPE:
    case TN_ATTR_FUNCTION: return a->as.i == b->as.i;
    case TN_ATTR_FLOAT: return float_bits(a->as.f) == float_bits(b->as.f);
    case TN_ATTR_STRING: return strings_equal(a->as.s, b->as.s);
    case TN_ATTR_INTS:
        return a->count == b->count && memcmp(a->as.ints, b->as.ints, a->count * sizeof *a->as.ints) == 0;
    case TN_ATTR_FLOATS:
        return a->count == b->count && memcmp(a->as.floats, b->as.floats, a->count * sizeof *a->as.floats) == 0;
    case TN_ATTR_DIMS:
        return a->count == b->count && memcmp(a->as.dims, b->as.dims, a->count * sizeof *a->as.dims) == 0;
    case TN_ATTR_STRINGS:
        for (uint32_t i = 0; i < a->count && i < b->count; i++)
            if (!strings_equal(a->as.strings[i], b->as.strings[i]))
                return false;
        return a->count == b->count;
    case TN_ATTR_TENSOR: return tensors_equal(a->as.tensor, b->as.tensor);
    case TN_ATTR_TYPE: return a->as.type.id == b->as.type.id;
    }
    return false;
}

/* Attributes of `a` that are no defaults stand in `b` too; the number of those of `a` and of `b` is the same. */
static bool attrs_equal(const tn_graph *g, tn_node a, tn_node b) {
    const tn_op *op = tn_node_op(g, a);
    uint32_t balance = 0;
    for (uint32_t i = 0; i < tn_node_attr_count(g, b); i++)
        balance += !is_default(op, tn_node_attr_at(g, b, i));
    for (uint32_t i = 0; i < tn_node_attr_count(g, a); i++) {
        const tn_attr *x = tn_node_attr_at(g, a, i);
        if (is_default(op, x))
            continue;
        const tn_attr *y = tn_node_attr(g, b, x->key);
        if (!y || !attr_equal(x, y))
            return false;
        balance--;
    }
    return balance == 0;
}

/* --- nodes ------------------------------------------------------------------------------------------------------------------------------ */

static bool commutes(const tn_graph *g, tn_node n) {
    return tn_node_has_trait(g, n, TN_COMMUTATIVE) && tn_node_input_count(g, n) == 2;
}

static uint64_t shape_hash(const tn_graph *g, tn_node n) {
    uint64_t h = tn_hash_mix((uintptr_t)tn_node_op(g, n), tn_node_output_count(g, n)), attrs = 0;
    for (uint32_t i = 0; i < tn_node_attr_count(g, n); i++)
        if (!is_default(tn_node_op(g, n), tn_node_attr_at(g, n, i)))
            attrs += attr_hash(tn_node_attr_at(g, n, i)); /* in any order */
    return tn_hash_mix(h, tn_hash_mix(attrs, tn_node_input_count(g, n)));
}

static uint64_t node_hash(const tn_graph *g, tn_node n) {
    uint64_t h = shape_hash(g, n);
    if (commutes(g, n)) {
        uint32_t a = tn_node_input(g, n, 0).id, b = tn_node_input(g, n, 1).id;
        return tn_hash_mix(h, a < b ? (uint64_t)a << 32 | b : (uint64_t)b << 32 | a);
    }
    for (uint32_t i = 0; i < tn_node_input_count(g, n); i++)
        h = tn_hash_mix(h, tn_node_input(g, n, i).id);
    for (uint32_t r = 0; r < tn_node_region_count(g, n); r++)
        for (tn_node k = tn_region_first(g, tn_node_region(g, n, r)); k.id; k = tn_node_next(g, k))
            h = tn_hash_mix(h, shape_hash(g, k));
    return h;
}

/* Comparing two nodes, with the values of bodies of the second mapped to those of the first. */
typedef struct comparison {
    merger *m;
    tn_map map; /* value in the second -> value in the first */
} comparison;

static bool same_value(const comparison *c, tn_value a, tn_value b) {
    uint64_t mapped;
    return a.id == b.id || (c->map.len && tn_map_get(&c->map, b.id, &mapped) && mapped == a.id);
}

static bool map_values(comparison *c, tn_value a, tn_value b) {
    const tn_graph *g = c->m->g;
    if (tn_value_type(g, a).id != tn_value_type(g, b).id)
        return false;
    if (!tn_map_put(g->heap, &c->map, b.id, a.id)) {
        c->m->failed = true;
        return false;
    }
    return true;
}

static bool same_region(comparison *c, tn_region a, tn_region b, int depth);

/* `outputs`: whether output types are compared and mapped (of nodes in bodies). */
static bool same_node(comparison *c, tn_node a, tn_node b, bool outputs, int depth) {
    const tn_graph *g = c->m->g;
    if (tn_node_op(g, a) != tn_node_op(g, b) || tn_node_input_count(g, a) != tn_node_input_count(g, b) ||
        tn_node_output_count(g, a) != tn_node_output_count(g, b) ||
        tn_node_region_count(g, a) != tn_node_region_count(g, b) ||
        g->node.data[a.id].placement != g->node.data[b.id].placement || !attrs_equal(g, a, b))
        return false;
    bool same = true;
    for (uint32_t i = 0; same && i < tn_node_input_count(g, a); i++)
        same = same_value(c, tn_node_input(g, a, i), tn_node_input(g, b, i));
    if (!same && commutes(g, a))
        same = same_value(c, tn_node_input(g, a, 0), tn_node_input(g, b, 1)) &&
               same_value(c, tn_node_input(g, a, 1), tn_node_input(g, b, 0));
    for (uint32_t i = 0; same && i < tn_node_region_count(g, a); i++)
        same = same_region(c, tn_node_region(g, a, i), tn_node_region(g, b, i), depth + 1);
    for (uint32_t i = 0; same && outputs && i < tn_node_output_count(g, a); i++)
        same = map_values(c, tn_node_output(g, a, i), tn_node_output(g, b, i));
    return same;
}

static bool same_region(comparison *c, tn_region a, tn_region b, int depth) {
    const tn_graph *g = c->m->g;
    if (tn_region_arg_count(g, a) != tn_region_arg_count(g, b) || depth > 2 * TN_MAX_NESTING)
        return false;
    for (uint32_t i = 0; i < tn_region_arg_count(g, a); i++)
        if (!map_values(c, tn_region_arg(g, a, i), tn_region_arg(g, b, i)))
            return false;
    tn_node x = tn_region_first(g, a), y = tn_region_first(g, b);
    while (x.id && y.id && same_node(c, x, y, true, depth)) {
        x = tn_node_next(g, x);
        y = tn_node_next(g, y);
    }
    return !x.id && !y.id;
}

typedef struct lookup {
    merger *m;
    tn_node node;
} lookup;

/* idset's equality: whether node `id` may stand for the one that is looked up. */
static bool stands_for(const void *ctx, uint32_t id) {
    const lookup *l = ctx;
    const tn_graph *g = l->m->g;
    tn_node other = {id};
    if (!tn_node_is_alive(g, other) || other.id == l->node.id ||
        !tn_value_visible(g, tn_node_output(g, other, 0), l->node))
        return false;
    /* a node that nobody needs is not run: a body that may not run either must not make it needed, for it may fail */
    if (!l->m->needed[id] && !tn_node_has_trait(g, other, TN_CONSTANT) &&
        tn_node_parent(g, other).id != tn_node_parent(g, l->node).id)
        return false;
    comparison c = {.m = l->m};
    bool same = same_node(&c, other, l->node, false, 0);
    tn_map_free(g->heap, &c.map);
    return same;
}

/* --- merging ---------------------------------------------------------------------------------------------------------------------------- */

static bool mergeable(const merger *m, tn_node n) {
    const tn_graph *g = m->g;
    const tn_op *op = tn_node_op(g, n);
    if ((op->traits & TN_TERMINATOR) || tn_node_output_count(g, n) == 0 || tn_purity_is_ordered(&m->purity, g, n))
        return false;
    if ((op->traits & TN_CONSTANT) && m->context->keep_variables && *tn_node_name(g, n))
        return false;
    return !(tn_purity_traits(&m->purity, g, n) & (TN_EFFECT | TN_RANDOM));
}

static tn_status merge(merger *m, tn_node keep, tn_node gone) {
    tn_graph *g = m->g;
    for (uint32_t i = 0; i < tn_node_output_count(g, gone); i++) {
        bool agree;
        TN_TRY(tn_symbol_map_unify(g, &m->symbols, tn_node_output(g, gone, i),
                                   tn_value_type(g, tn_node_output(g, keep, i)), &agree));
        if (!agree)
            return TN_OK;
    }
    m->needed[keep.id] |= m->needed[gone.id];
    for (uint32_t i = 0; i < tn_node_output_count(g, gone); i++) {
        TN_TRY(tn_value_inherit(g, tn_node_output(g, keep, i), tn_node_output(g, gone, i)));
        TN_TRY(tn_value_replace_uses(g, tn_node_output(g, gone, i), tn_node_output(g, keep, i)));
    }
    m->context->sites += !tn_node_has_trait(g, gone, TN_CONSTANT);
    TN_TRY(tn_node_remove(g, gone));
    for (uint32_t i = 0; i < tn_node_output_count(g, keep); i++)
        TN_TRY(tn_value_note_symbols(g, tn_node_output(g, keep, i)));
    return TN_OK;
}

static tn_status merge_region(merger *m, tn_region region) {
    tn_graph *g = m->g;
    tn_node next;
    for (tn_node n = tn_region_first(g, region); n.id; n = next) {
        next = tn_node_next(g, n);
        /* bodies first: twins within them make the bodies of two nodes alike */
        for (uint32_t i = 0; i < tn_node_region_count(g, n); i++)
            TN_TRY(merge_region(m, tn_node_region(g, n, i)));
        if (!mergeable(m, n))
            continue;
        lookup l = {m, n};
        uint64_t h = node_hash(g, n);
        uint32_t twin = tn_idset_find(&m->seen, h, stands_for, &l);
        if (m->failed)
            return tn_error_status();
        if (twin)
            TN_TRY(merge(m, (tn_node){twin}, n));
        else if (!tn_idset_add(g->heap, &m->seen, h, n.id))
            return tn_error_status();
    }
    return TN_OK;
}

static tn_status round_once(merger *m) {
    TN_TRY(merge_region(m, tn_graph_region(m->g)));
    for (uint32_t i = 0; i < m->g->function.len; i++)
        TN_TRY(merge_region(m, tn_graph_function_region(m->g, i)));
    return TN_OK;
}

static tn_status run(tn_graph *g, tn_pass_context *context) {
    merger m = {.g = g, .context = context};
    tn_symbol_map_init(&m.symbols, g->heap);
    TN_TRY(tn_purity_init(&m.purity, g));
    m.needed = tn_graph_needed_nodes(g);
    tn_status status = m.needed ? TN_OK : tn_error_status();
    bool again = true;
    for (int round = 0; round < MAX_ROUNDS && again && status == TN_OK; round++) {
        status = round_once(&m);
        tn_idset_free(g->heap, &m.seen);
        m.seen = (tn_idset){0};
        again = m.symbols.used != 0;
        if (status == TN_OK)
            status = tn_symbol_map_apply(g, &m.symbols);
    }
    tn_symbol_map_free(&m.symbols);
    tn_purity_free(&m.purity);
    tn_free(g->heap, m.needed);
    return status;
}

const tn_pass tn_pass_cse = {
    .name = "cse",
    .doc = "Nodes that compute the same are merged; effects and random numbers never.",
    .effect = TN_BIT_EXACT,
    .keeps = TN_KEEPS_ALL,
    .level = 1,
    .run = run,
};
