/* Symbols that turned out to be something else (a number, another symbol): replaced throughout a graph. */
#include "base/number.h"
#include "passes/pass.h"

#define MAX_ROUNDS 64 /* of replacing within replacements; they have no cycles */

void tn_symbol_map_init(tn_symbol_map *map, tn_heap *heap) {
    *map = (tn_symbol_map){.heap = heap};
}

void tn_symbol_map_free(tn_symbol_map *map) {
    tn_free(map->heap, map->to);
    tn_symbol_map_init(map, map->heap);
}

tn_dim tn_symbol_map_get(tn_graph *g, const tn_symbol_map *map, tn_dim dim) {
    for (int round = 0; map->used && dim.id && round < MAX_ROUNDS; round++) {
        tn_dim next = tn_dim_substitute(g, dim, map->to, map->count);
        if (next.id == dim.id)
            break;
        dim = next;
    }
    return dim;
}

typedef struct occurs_search {
    uint32_t symbol;
    bool found;
} occurs_search;

static void visit_symbol(void *ctx, uint32_t symbol) {
    occurs_search *s = ctx;
    s->found = s->found || s->symbol == symbol;
}

static tn_status reserve(tn_graph *g, tn_symbol_map *map) {
    uint32_t need = g->dims.symbol.len;
    if (need <= map->count)
        return TN_OK;
    tn_dim *to =
        map->to ? tn_realloc(map->heap, map->to, need * sizeof *to) : tn_alloc_array(map->heap, need, sizeof *to);
    if (!to)
        return tn_error_status();
    map->to = to;
    map->count = need;
    return TN_OK;
}

tn_status tn_symbol_map_add(tn_graph *g, tn_symbol_map *map, uint32_t symbol, tn_dim dim) {
    TN_TRY(reserve(g, map));
    if (!dim.id || symbol >= map->count)
        return tn_fail(TN_ERR_INTERNAL, "a symbol is replaced that does not exist, or by nothing");
    if (!map->to[symbol].id)
        map->used++;
    map->to[symbol] = dim;
    return TN_OK;
}

/* One dimension of `from`, of a node's output; *yes as in tn_symbol_map_unify. Adds to the map. */
static tn_status unify_dim(tn_graph *g, tn_symbol_map *map, tn_value from, tn_dim a, tn_dim b, bool *yes) {
    a = tn_symbol_map_get(g, map, a);
    b = tn_symbol_map_get(g, map, b);
    if (!a.id || !b.id)
        return tn_graph_check(g);
    if (tn_dim_equal(g, a, b))
        return TN_OK;
    const tn_dim_expr e = g->dims.expr.data[a.id];
    tn_node maker = tn_value_producer(g, from);
    uint32_t definer = e.kind == TN_DIM_SYMBOL && e.symbol < g->symbol_value.len ? g->symbol_value.data[e.symbol] : 0;
    occurs_search occurs = {.symbol = e.symbol};
    tn_dim_symbols(&g->dims, b, visit_symbol, &occurs);
    if (!maker.id || !definer || tn_value_producer(g, (tn_value){definer}).id != maker.id || occurs.found) {
        *yes = false;
        return TN_OK;
    }
    return tn_symbol_map_add(g, map, e.symbol, b);
}

tn_status tn_symbol_map_unify(tn_graph *g, tn_symbol_map *map, tn_value from, tn_type to, bool *yes) {
    tn_type type = tn_value_type(g, from);
    *yes = true;
    if (type.id == to.id || !type.id)
        return TN_OK;
    *yes = to.id && tn_type_kind(g, type) == TN_KIND_TENSOR && tn_type_kind(g, to) == TN_KIND_TENSOR &&
           tn_type_dtype(g, type) == tn_type_dtype(g, to);
    int rank = tn_type_rank(g, type);
    if (!*yes || rank < 0)
        return TN_OK;
    *yes = tn_type_rank(g, to) == rank;
    uint32_t symbols[TN_MAX_RANK], count = 0;
    tn_status status = TN_OK;
    for (int i = 0; *yes && status == TN_OK && i < rank; i++) {
        uint32_t used = map->used;
        tn_dim a = tn_symbol_map_get(g, map, tn_type_dims(g, type)[i]);
        status = unify_dim(g, map, from, tn_type_dims(g, type)[i], tn_type_dims(g, to)[i], yes);
        if (map->used > used)
            symbols[count++] = g->dims.expr.data[a.id].symbol;
    }
    for (uint32_t i = 0; i < count && (!*yes || status != TN_OK); i++) {
        map->to[symbols[i]] = (tn_dim){0};
        map->used--;
    }
    return status;
}

/* --- applying ---------------------------------------------------------------------------------------------------------------------- */

typedef struct applying {
    tn_graph *g;
    const tn_symbol_map *map;
    tn_map types; /* type id -> new type id */
} applying;

static tn_status new_type(applying *a, tn_type type, int depth, tn_type *out) {
    tn_graph *g = a->g;
    uint64_t known;
    *out = type;
    if (!type.id || depth > 2 * TN_MAX_NESTING)
        return TN_OK;
    if (tn_map_get(&a->types, type.id, &known)) {
        out->id = (uint32_t)known;
        return TN_OK;
    }
    tn_kind kind = tn_type_kind(g, type);
    if (kind == TN_KIND_TENSOR) {
        tn_dim dims[TN_MAX_RANK];
        int rank = tn_type_rank(g, type);
        bool same = true;
        for (int i = 0; i < rank; i++) {
            tn_dim old = tn_type_dims(g, type)[i];
            dims[i] = tn_symbol_map_get(g, a->map, old);
            if (!dims[i].id)
                return tn_graph_check(g);
            same = same && dims[i].id == old.id;
        }
        if (!same)
            *out = tn_type_tensor(g, tn_type_dtype(g, type), rank, dims);
    } else {
        tn_type element, old = tn_type_element(g, type);
        TN_TRY(new_type(a, old, depth + 1, &element));
        if (element.id != old.id)
            *out = kind == TN_KIND_SEQUENCE   ? tn_type_sequence(g, element)
                   : kind == TN_KIND_OPTIONAL ? tn_type_optional(g, element)
                                              : tn_type_map(g, tn_type_dtype(g, type), element);
    }
    if (!out->id)
        return tn_graph_check(g);
    return tn_map_put(g->heap, &a->types, type.id, out->id) ? TN_OK : tn_error_status();
}

static tn_status apply_attr(applying *a, tn_attr *attr) {
    tn_graph *g = a->g;
    if (attr->kind == TN_ATTR_TYPE)
        return new_type(a, attr->as.type, 0, &attr->as.type);
    if (attr->kind != TN_ATTR_DIMS)
        return TN_OK;
    tn_dim *copy = NULL;
    for (uint32_t i = 0; i < attr->count; i++) {
        tn_dim old = attr->as.dims[i], d = tn_symbol_map_get(g, a->map, old);
        if (!d.id)
            return tn_graph_check(g);
        if (d.id == old.id)
            continue;
        if (!copy && !(copy = tn_arena_copy(&g->arena, attr->as.dims, attr->count * sizeof *copy)))
            return tn_error_status();
        copy[i] = d;
    }
    if (copy)
        attr->as.dims = copy;
    return TN_OK;
}

static tn_status apply_value(applying *a, uint32_t id) {
    tn_graph *g = a->g;
    tn_type type;
    TN_TRY(new_type(a, (tn_type){g->value.data[id].type}, 0, &type));
    for (int32_t i = 0; i < g->value.data[id].contents_count; i++) { /* the range is this value's own */
        tn_dim *place = &g->dim_list.data[g->value.data[id].contents + (uint32_t)i];
        tn_dim d = tn_symbol_map_get(g, a->map, *place);
        if (!d.id)
            return tn_graph_check(g);
        g->dim_list.data[g->value.data[id].contents + (uint32_t)i] = d;
    }
    return type.id != g->value.data[id].type ? tn_value_set_type(g, (tn_value){id}, type) : TN_OK;
}

tn_status tn_symbol_map_apply(tn_graph *g, tn_symbol_map *map) {
    if (!map->used)
        return TN_OK;
    TN_TRY(tn_graph_changeable(g));
    applying a = {.g = g, .map = map};
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < map->count && i < g->symbol_value.len; i++)
        if (map->to[i].id)
            g->symbol_value.data[i] = 0;
    for (uint32_t id = 1; id < g->value.len && status == TN_OK; id++)
        if (g->value.data[id].alive)
            status = apply_value(&a, id);
    for (uint32_t id = 1; id < g->node.len && status == TN_OK; id++)
        for (uint32_t i = 0; g->node.data[id].op && i < g->node.data[id].attr_count && status == TN_OK; i++)
            status = apply_attr(&a, &g->node.data[id].attrs[i]);
    tn_map_free(g->heap, &a.types);
    if (status == TN_OK) {
        memset(map->to, 0, map->count * sizeof *map->to);
        map->used = 0;
    }
    return status;
}

/* --- sizes given by the user -------------------------------------------------------------------------------------------- */

tn_status tn_graph_fix_dims(tn_graph *g, const char *dims) {
    tn_symbol_map map;
    tn_symbol_map_init(&map, g->heap);
    tn_status status = TN_OK;
    while (*dims && status == TN_OK) {
        size_t length = strcspn(dims, ","), name = strcspn(dims, "=");
        int64_t value = -1;
        size_t used = 0;
        if (name >= length || !tn_parse_i64(dims + name + 1, length - name - 1, &value, &used) ||
            used != length - name - 1 || value < 0) {
            status = tn_fail(TN_ERR_USAGE, "'%.*s' is no dimension", (int)length, dims);
            tn_fail_hint("NAME=N, N a size");
            break;
        }
        uint32_t symbol = UINT32_MAX;
        for (uint32_t i = 0; i < g->dims.symbol.len; i++) {
            const char *have = tn_dim_symbol_name(&g->dims, i);
            if (!g->dims.symbol.data[i].fresh && strlen(have) == name && memcmp(have, dims, name) == 0)
                symbol = i;
        }
        if (symbol == UINT32_MAX) {
            status = tn_fail(TN_ERR_INPUT, "the model has no free dimension '%.*s'", (int)name, dims);
            for (uint32_t i = 0; i < g->dims.symbol.len && i < 20; i++)
                tn_fail_where("it has %s", tn_dim_symbol_name(&g->dims, i));
            break;
        }
        status = tn_symbol_map_add(g, &map, symbol, tn_dim_const(g, value));
        dims += length + (dims[length] == ',');
    }
    if (status == TN_OK && map.used)
        status = tn_symbol_map_apply(g, &map);
    tn_symbol_map_free(&map);
    return status;
}
