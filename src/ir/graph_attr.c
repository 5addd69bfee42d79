/* Attributes of nodes: checking against the row, copying into the graph, reading with the row's defaults. */
#include "ir/graph_internal.h"

static const char *const kind_name[] = {"none",   "int",     "float", "string", "dtype", "ints",
                                        "floats", "strings", "dims",  "tensor", "type",  "function"};

static const tn_attr_spec *spec_of(const tn_op *op, const char *name) {
    for (const tn_attr_spec *s = op->attrs; s && s->name; s++)
        if (strcmp(s->name, name) == 0)
            return s;
    return NULL;
}

static bool is_allowed(const char *allowed, tn_string s) {
    for (const char *p = allowed; *p;) {
        size_t n = strcspn(p, "|");
        if (n == s.length && memcmp(p, s.data, n) == 0)
            return true;
        p += n + (p[n] == '|');
    }
    return false;
}

tn_status tn_attrs_check(const tn_op *op, uint32_t count, const tn_attr *attrs, const char *who) {
    if (!op->attrs && op->dialect != TN_DIALECT_PRIMITIVE && op->dialect != TN_DIALECT_COMPOSITE)
        return TN_OK; /* any */
    for (uint32_t i = 0; i < count; i++) {
        const tn_attr *a = &attrs[i];
        const tn_attr_spec *s = spec_of(op, a->key);
        if (!s)
            return tn_fail(TN_ERR_MODEL, "%s has no attribute '%s'", who, a->key);
        for (uint32_t j = 0; j < i; j++)
            if (strcmp(attrs[j].key, a->key) == 0)
                return tn_fail(TN_ERR_MODEL, "%s: attribute '%s' is given twice", who, a->key);
        if (a->kind != s->kind)
            return tn_fail(TN_ERR_MODEL, "%s: attribute '%s' is of kind %s, but must be %s", who, a->key,
                           kind_name[a->kind <= TN_ATTR_FUNCTION ? a->kind : 0], kind_name[s->kind]);
        if (s->allowed && !is_allowed(s->allowed, a->as.s)) {
            tn_fail(TN_ERR_MODEL, "%s: attribute '%s' is '%.*s'", who, a->key,
                    (int)(a->as.s.length < 60 ? a->as.s.length : 60), a->as.s.data);
            tn_fail_hint("one of %s", s->allowed);
            return TN_ERR_MODEL;
        }
        if (a->kind == TN_ATTR_DTYPE && (a->as.i < 0 || a->as.i >= TN_DTYPE_COUNT))
            return tn_fail(TN_ERR_MODEL, "%s: attribute '%s' is no element type", who, a->key);
        if (a->kind == TN_ATTR_TENSOR && !a->as.tensor)
            return tn_fail(TN_ERR_MODEL, "%s: attribute '%s' has no tensor", who, a->key);
    }
    for (const tn_attr_spec *s = op->attrs; s && s->name; s++) {
        bool found = !s->required;
        for (uint32_t i = 0; i < count && !found; i++)
            found = strcmp(attrs[i].key, s->name) == 0;
        if (!found)
            return tn_fail(TN_ERR_MODEL, "%s: attribute '%s' (%s) is missing", who, s->name, kind_name[s->kind]);
    }
    return TN_OK;
}

tn_attr *tn_attrs_copy(tn_graph *g, uint32_t count, const tn_attr *attrs) {
    tn_attr *copy = tn_arena_alloc(&g->arena, count * sizeof *copy);
    if (!copy)
        return NULL;
    for (uint32_t i = 0; i < count; i++) {
        const tn_attr *a = &attrs[i];
        tn_attr *c = &copy[i];
        *c = *a;
        c->kept = false;
        c->name = tn_strings_add(&g->strings, a->key, strlen(a->key));
        if (c->name == UINT32_MAX)
            return NULL;
        c->key = tn_strings_text(&g->strings, c->name);
        switch (a->kind) {
        case TN_ATTR_STRING:
            c->as.s.data = tn_arena_strndup(&g->arena, a->as.s.data ? a->as.s.data : "", a->as.s.length);
            break;
        case TN_ATTR_INTS:
            if (!a->kept)
                c->as.ints = tn_arena_copy(&g->arena, a->as.ints, a->count * sizeof *a->as.ints);
            break;
        case TN_ATTR_FLOATS:
            if (!a->kept)
                c->as.floats = tn_arena_copy(&g->arena, a->as.floats, a->count * sizeof *a->as.floats);
            break;
        case TN_ATTR_DIMS: {
            for (uint32_t d = 0; d < a->count; d++)
                if (!a->as.dims[d].id || a->as.dims[d].id >= g->dims.expr.len) {
                    tn_fail(TN_ERR_USAGE, "attribute '%s': dimension %u is null or of another graph", a->key, d);
                    return NULL;
                }
            c->as.dims = tn_arena_copy(&g->arena, a->as.dims, a->count * sizeof *a->as.dims);
            break;
        }
        case TN_ATTR_STRINGS: {
            tn_string *s = tn_arena_alloc(&g->arena, a->count * sizeof *s);
            for (uint32_t k = 0; s && k < a->count; k++) {
                s[k] = (tn_string){tn_arena_strndup(&g->arena, a->as.strings[k].data ? a->as.strings[k].data : "",
                                                    a->as.strings[k].length),
                                   a->as.strings[k].length};
                if (!s[k].data)
                    return NULL;
            }
            c->as.strings = s;
            break;
        }
        case TN_ATTR_TENSOR:
            if (!tn_vec_push(g->heap, &g->tensors, a->as.tensor))
                return NULL;
            tn_tensor_retain(a->as.tensor);
            break;
        default: break;
        }
        bool pointer = a->kind == TN_ATTR_INTS || a->kind == TN_ATTR_FLOATS || a->kind == TN_ATTR_DIMS ||
                       a->kind == TN_ATTR_STRINGS;
        if ((pointer && !c->as.ints) || (a->kind == TN_ATTR_STRING && !c->as.s.data))
            return NULL;
    }
    return copy;
}

tn_status tn_node_add_attr(tn_graph *g, tn_node node, const tn_attr *attr) {
    TN_TRY(tn_graph_changeable(g));
    tn_node_rec *n = &g->node.data[node.id];
    tn_attr *list = tn_arena_alloc(&g->arena, (n->attr_count + 1u) * sizeof *list);
    tn_attr *own = list ? tn_attrs_copy(g, 1, attr) : NULL;
    if (!own)
        return tn_error_status();
    if (n->attr_count)
        memcpy(list, n->attrs, n->attr_count * sizeof *list);
    list[n->attr_count] = *own;
    n->attrs = list;
    n->attr_count++;
    return TN_OK;
}

/* --- reading ---------------------------------------------------------------------------------------------------------------- */

uint32_t tn_node_attr_count(const tn_graph *g, tn_node n) {
    return tn_node_is_alive(g, n) ? g->node.data[n.id].attr_count : 0;
}

const tn_attr *tn_node_attr_at(const tn_graph *g, tn_node n, uint32_t i) {
    return tn_node_is_alive(g, n) && i < g->node.data[n.id].attr_count ? &g->node.data[n.id].attrs[i] : NULL;
}

const tn_attr *tn_node_attr(const tn_graph *g, tn_node n, const char *name) {
    if (!tn_node_is_alive(g, n))
        return NULL;
    const tn_node_rec *r = &g->node.data[n.id];
    for (uint32_t i = 0; i < r->attr_count; i++)
        if (strcmp(r->attrs[i].key, name) == 0)
            return &r->attrs[i];
    return NULL;
}

static const tn_attr_spec *default_of(const tn_graph *g, tn_node n, const char *name) {
    const tn_op *op = tn_node_op(g, n);
    return op ? spec_of(op, name) : NULL;
}

int64_t tn_attr_int(const tn_graph *g, tn_node n, const char *name) {
    const tn_attr *a = tn_node_attr(g, n, name);
    if (a && (a->kind == TN_ATTR_INT || a->kind == TN_ATTR_DTYPE || a->kind == TN_ATTR_FUNCTION))
        return a->as.i;
    const tn_attr_spec *s = default_of(g, n, name);
    return s ? s->i : 0;
}

double tn_attr_float(const tn_graph *g, tn_node n, const char *name) {
    const tn_attr *a = tn_node_attr(g, n, name);
    if (a && a->kind == TN_ATTR_FLOAT)
        return a->as.f;
    const tn_attr_spec *s = default_of(g, n, name);
    return s ? s->f : 0;
}

tn_string tn_attr_string(const tn_graph *g, tn_node n, const char *name) {
    const tn_attr *a = tn_node_attr(g, n, name);
    if (a && a->kind == TN_ATTR_STRING)
        return a->as.s;
    const tn_attr_spec *s = default_of(g, n, name);
    const char *text = s && s->s ? s->s : "";
    return (tn_string){text, strlen(text)};
}

bool tn_attr_string_is(const tn_graph *g, tn_node n, const char *name, const char *text) {
    tn_string s = tn_attr_string(g, n, name);
    return s.length == strlen(text) && memcmp(s.data, text, s.length) == 0;
}

uint32_t tn_attr_ints(const tn_graph *g, tn_node n, const char *name, const int64_t **ints) {
    const tn_attr *a = tn_node_attr(g, n, name);
    bool good = a && a->kind == TN_ATTR_INTS;
    *ints = good ? a->as.ints : NULL;
    return good ? a->count : 0;
}

uint32_t tn_attr_dims(const tn_graph *g, tn_node n, const char *name, const tn_dim **dims) {
    const tn_attr *a = tn_node_attr(g, n, name);
    bool good = a && a->kind == TN_ATTR_DIMS;
    *dims = good ? a->as.dims : NULL;
    return good ? a->count : 0;
}

tn_tensor *tn_attr_tensor(const tn_graph *g, tn_node n, const char *name) {
    const tn_attr *a = tn_node_attr(g, n, name);
    return a && a->kind == TN_ATTR_TENSOR ? a->as.tensor : NULL;
}
