/* Interned types of a graph. */
#include <stdio.h>

#include "ir/graph_internal.h"

uint32_t tn_dim_list_add(tn_graph *g, uint32_t count, const tn_dim *dims) {
    uint32_t first = g->dim_list.len;
    /* `dims` may point into dim_list itself: copy by index after growing */
    bool inside = count && g->dim_list.len && dims >= g->dim_list.data && dims < g->dim_list.data + g->dim_list.len;
    size_t offset = inside ? (size_t)(dims - g->dim_list.data) : 0;
    if (!tn_vec_reserve(g->heap, &g->dim_list, count))
        return UINT32_MAX;
    const tn_dim *from = inside ? g->dim_list.data + offset : dims;
    for (uint32_t i = 0; i < count; i++)
        g->dim_list.data[first + i] = from[i];
    g->dim_list.len += count;
    return first;
}

typedef struct type_key {
    const tn_graph *g;
    tn_type_rec rec;
    const tn_dim *dims;
} type_key;

static bool type_equal(const void *ctx, uint32_t id) {
    const type_key *k = ctx;
    const tn_type_rec *r = &k->g->type.data[id];
    if (r->kind != k->rec.kind || r->dtype != k->rec.dtype || r->rank != k->rec.rank || r->element != k->rec.element)
        return false;
    for (int i = 0; i < r->rank; i++)
        if (k->g->dim_list.data[r->dims + (uint32_t)i].id != k->dims[i].id)
            return false;
    return true;
}

static tn_type type_intern(tn_graph *g, tn_type_rec rec, const tn_dim *dims) {
    uint64_t h =
        tn_hash_mix((uint64_t)rec.kind | (uint64_t)rec.dtype << 8 | (uint64_t)(uint8_t)rec.rank << 16, rec.element);
    for (int i = 0; i < rec.rank; i++)
        h = tn_hash_mix(h, dims[i].id);
    type_key key = {g, rec, dims};
    uint32_t id = tn_idset_find(&g->type_set, h, type_equal, &key);
    if (id)
        return (tn_type){id};
    if (rec.rank > 0 && (rec.dims = tn_dim_list_add(g, (uint32_t)rec.rank, dims)) == UINT32_MAX)
        goto fail;
    if (!tn_vec_push(g->heap, &g->type, rec))
        goto fail;
    id = g->type.len - 1;
    if (tn_idset_add(g->heap, &g->type_set, h, id))
        return (tn_type){id};
fail:
    tn_graph_stick(g);
    return (tn_type){0};
}

/* False with the error set. */
static bool can_intern(tn_graph *g, tn_type element) {
    if (tn_graph_changeable(g) != TN_OK)
        return false;
    if (element.id < g->type.len)
        return true;
    tn_fail(TN_ERR_USAGE, "a type of another graph");
    tn_graph_stick(g);
    return false;
}

static bool known_dtype(tn_graph *g, tn_dtype dtype) {
    if ((unsigned)dtype < TN_DTYPE_COUNT)
        return true;
    tn_fail(TN_ERR_USAGE, "%d is no element type", (int)dtype);
    tn_graph_stick(g);
    return false;
}

tn_type tn_type_tensor(tn_graph *g, tn_dtype dtype, int rank, const tn_dim *dims) {
    if (!can_intern(g, (tn_type){0}) || !known_dtype(g, dtype))
        return (tn_type){0};
    if (rank > 0 && !dims) {
        tn_fail(TN_ERR_USAGE, "the dimensions of a type are NULL");
        tn_graph_stick(g);
        return (tn_type){0};
    }
    if (rank > TN_MAX_RANK) {
        tn_fail(TN_ERR_LIMIT, "a tensor of rank %d: at most %d is supported", rank, TN_MAX_RANK);
        tn_graph_stick(g);
        return (tn_type){0};
    }
    for (int i = 0; i < rank; i++)
        if (!dims[i].id || dims[i].id >= g->dims.expr.len) {
            tn_fail(TN_ERR_USAGE, "dimension %d of a shape is null or of another graph", i);
            tn_graph_stick(g);
            return (tn_type){0};
        }
    if (dtype == TN_DTYPE_NONE && rank < 0)
        return (tn_type){0}; /* unknown */
    return type_intern(
        g, (tn_type_rec){.kind = TN_KIND_TENSOR, .dtype = (uint8_t)dtype, .rank = (int8_t)(rank < 0 ? -1 : rank)},
        dims);
}

tn_type tn_type_sequence(tn_graph *g, tn_type element) {
    return !can_intern(g, element)
               ? (tn_type){0}
               : type_intern(g, (tn_type_rec){.kind = TN_KIND_SEQUENCE, .rank = -1, .element = element.id}, NULL);
}

tn_type tn_type_optional(tn_graph *g, tn_type element) {
    return !can_intern(g, element)
               ? (tn_type){0}
               : type_intern(g, (tn_type_rec){.kind = TN_KIND_OPTIONAL, .rank = -1, .element = element.id}, NULL);
}

tn_type tn_type_map(tn_graph *g, tn_dtype key, tn_type value) {
    return !can_intern(g, value) || !known_dtype(g, key)
               ? (tn_type){0}
               : type_intern(g,
                             (tn_type_rec){.kind = TN_KIND_MAP, .dtype = (uint8_t)key, .rank = -1, .element = value.id},
                             NULL);
}

static const tn_type_rec *rec_of(const tn_graph *g, tn_type t) {
    static const tn_type_rec unknown = {.rank = -1};
    return g && t.id && t.id < g->type.len ? &g->type.data[t.id] : &unknown;
}
tn_kind tn_type_kind(const tn_graph *g, tn_type t) {
    return (tn_kind)rec_of(g, t)->kind;
}
tn_dtype tn_type_dtype(const tn_graph *g, tn_type t) {
    return (tn_dtype)rec_of(g, t)->dtype;
}
int tn_type_rank(const tn_graph *g, tn_type t) {
    return rec_of(g, t)->rank;
}
tn_type tn_type_element(const tn_graph *g, tn_type t) {
    return (tn_type){rec_of(g, t)->element};
}

const tn_dim *tn_type_dims(const tn_graph *g, tn_type t) {
    const tn_type_rec *r = rec_of(g, t);
    return r->rank > 0 ? g->dim_list.data + r->dims : NULL;
}

bool tn_type_compatible(const tn_graph *g, tn_type a, tn_type b) {
    if (a.id == b.id || !a.id || !b.id)
        return true;
    const tn_type_rec *x = rec_of(g, a), *y = rec_of(g, b);
    if (x->kind != y->kind)
        return false;
    if (x->kind != TN_KIND_TENSOR)
        return (x->kind != TN_KIND_MAP || x->dtype == y->dtype) &&
               tn_type_compatible(g, (tn_type){x->element}, (tn_type){y->element});
    if (x->dtype != y->dtype && x->dtype != TN_DTYPE_NONE && y->dtype != TN_DTYPE_NONE)
        return false;
    if (x->rank < 0 || y->rank < 0)
        return true;
    if (x->rank != y->rank)
        return false;
    for (int i = 0; i < x->rank; i++)
        if (tn_dim_never_equal(g, g->dim_list.data[x->dims + (uint32_t)i], g->dim_list.data[y->dims + (uint32_t)i]))
            return false;
    return true;
}

const char *tn_type_describe(const tn_graph *g, tn_type t, char *text, size_t size) {
    const tn_type_rec *r = rec_of(g, t);
    tn_text out;
    if (!text)
        return "";
    tn_text_init(&out, g ? g->heap : NULL);
    static const char *const kind[] = {"tensor", "sequence", "optional", "map"};
    if (r->kind == TN_KIND_TENSOR && r->rank < 0 && r->dtype == TN_DTYPE_NONE)
        tn_text_add(&out, "unknown");
    else if (r->kind != TN_KIND_TENSOR) {
        char inner[128];
        tn_text_printf(
            &out, "%s<%s%s%s>", kind[r->kind], r->kind == TN_KIND_MAP ? tn_dtype_name((tn_dtype)r->dtype) : "",
            r->kind == TN_KIND_MAP ? ", " : "", tn_type_describe(g, (tn_type){r->element}, inner, sizeof inner));
    } else {
        tn_text_add(&out, tn_dtype_name((tn_dtype)r->dtype));
        tn_text_add(&out, r->rank < 0 ? "[*]" : "[");
        for (int i = 0; i < r->rank; i++) {
            if (i)
                tn_text_add(&out, ", ");
            tn_dim_print(&g->dims, g->dim_list.data[r->dims + (uint32_t)i], &out);
        }
        if (r->rank >= 0)
            tn_text_add(&out, "]");
    }
    snprintf(text, size, "%s", out.data && !out.failed ? out.data : "?");
    tn_text_free(&out);
    return text;
}
