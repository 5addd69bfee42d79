/* The table of symbolic dimensions: interning, symbols, and the public builders. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ir/dim_work.h"
#include "ir/graph.h"

/* --- the table --- */

bool tn_dims_init(tn_dims *dims, tn_heap *heap) {
    memset(dims, 0, sizeof *dims);
    dims->heap = heap;
    if (tn_strings_init(&dims->strings, heap) && tn_vec_push(heap, &dims->expr, (tn_dim_expr){0}))
        return true;
    tn_dims_free(dims);
    return false;
}

void tn_dims_free(tn_dims *dims) {
    tn_strings_free(&dims->strings);
    tn_vec_free(dims->heap, &dims->expr);
    tn_vec_free(dims->heap, &dims->arg);
    tn_vec_free(dims->heap, &dims->symbol);
    tn_idset_free(dims->heap, &dims->set);
    memset(dims, 0, sizeof *dims);
}

static uint64_t hash_of(const tn_dims *dims, tn_dim_kind kind, int64_t constant, uint32_t symbol, const uint32_t *args,
                        uint32_t nargs) {
    uint64_t hash = tn_hash_mix(dims->strings.seed, (uint64_t)kind << 32 | nargs);
    hash = tn_hash_mix(hash, kind == TN_DIM_SYMBOL ? symbol : (uint64_t)constant);
    for (uint32_t i = 0; i < nargs; i++)
        hash = tn_hash_mix(hash, args[i]);
    return hash;
}

/* A symbol's key in the set: its name and whether it is fresh. */
static uint32_t symbol_key(const tn_dim_sym *symbol) {
    return symbol->name * 2 + symbol->fresh;
}

bool tn_dims_copy(tn_dims *to, const tn_dims *from, tn_heap *heap) {
    if (!tn_dims_init(to, heap))
        return false;
    bool ok = true;
    for (uint32_t i = 1; i < from->strings.text.len && ok; i++)
        ok = tn_strings_add(&to->strings, from->strings.text.data[i], from->strings.length.data[i]) == i;
    ok = ok && tn_vec_reserve(heap, &to->expr, from->expr.len) && tn_vec_reserve(heap, &to->arg, from->arg.len) &&
         tn_vec_reserve(heap, &to->symbol, from->symbol.len);
    if (ok && from->arg.len > 0)
        memcpy(to->arg.data, from->arg.data, from->arg.len * sizeof *to->arg.data);
    if (ok && from->symbol.len > 0)
        memcpy(to->symbol.data, from->symbol.data, from->symbol.len * sizeof *to->symbol.data);
    if (ok) {
        to->arg.len = from->arg.len;
        to->symbol.len = from->symbol.len;
        to->fresh = from->fresh;
    }
    for (uint32_t id = 1; id < from->expr.len && ok; id++) {
        const tn_dim_expr *e = &from->expr.data[id];
        uint32_t key = e->kind == TN_DIM_SYMBOL ? symbol_key(&from->symbol.data[e->symbol]) : 0;
        uint64_t hash = hash_of(to, (tn_dim_kind)e->kind, e->constant, key, tn_dim_args(to, e), e->nargs);
        ok = tn_idset_add(heap, &to->set, hash, id);
        to->expr.data[to->expr.len++] = *e;
    }
    if (!ok)
        tn_dims_free(to);
    return ok;
}

typedef struct probe {
    const tn_dims *dims;
    tn_dim_kind kind;
    int64_t constant;
    uint32_t symbol; /* key */
    const uint32_t *args;
    uint32_t nargs;
} probe;

static bool same_expr(const void *ctx, uint32_t id) {
    const probe *p = ctx;
    const tn_dim_expr *e = tn_dim_at(p->dims, id);
    if (e->kind != p->kind)
        return false;
    if (e->kind == TN_DIM_SYMBOL)
        return symbol_key(&p->dims->symbol.data[e->symbol]) == p->symbol;
    return e->constant == p->constant && e->nargs == p->nargs &&
           (e->nargs == 0 || memcmp(tn_dim_args(p->dims, e), p->args, e->nargs * sizeof *p->args) == 0);
}

/* Appends an expression whose args are already at the end of dims->arg. */
static uint32_t append(tn_dim_work *work, tn_dim_expr expr, uint64_t hash) {
    tn_dims *dims = work->dims;
    uint32_t id = dims->expr.len;
    if (!tn_vec_reserve(dims->heap, &dims->expr, 1) || !tn_idset_add(dims->heap, &dims->set, hash, id)) {
        work->why = TN_DIM_MEMORY;
        return 0;
    }
    dims->expr.data[dims->expr.len++] = expr;
    return id;
}

uint32_t tn_dimw_intern(tn_dim_work *work, tn_dim_kind kind, int64_t constant, const uint32_t *args, uint32_t nargs) {
    tn_dims *dims = work->dims;
    uint64_t hash = hash_of(dims, kind, constant, 0, args, nargs);
    uint32_t id = tn_idset_find(&dims->set, hash, same_expr, &(probe){dims, kind, constant, 0, args, nargs});
    if (id != 0)
        return id;
    uint32_t size = 1, depth = 0, unit = 0;
    for (uint32_t i = 0; i < nargs; i++) {
        const tn_dim_expr *arg = tn_dim_at(dims, args[i]);
        size += arg->size;
        depth = arg->depth > depth ? arg->depth : depth;
        if (size > TN_DIM_MAX_SIZE || depth + 1 > TN_DIM_MAX_DEPTH) {
            work->why = TN_DIM_TOO_LARGE;
            return 0;
        }
    }
    if (kind == TN_DIM_MUL && constant != 1) {
        /* args may be those of another expression, which the call below may move */
        size_t from = dims->arg.len > 0 && args >= dims->arg.data && args < dims->arg.data + dims->arg.len
                          ? (size_t)(args - dims->arg.data)
                          : SIZE_MAX;
        unit = nargs == 1 ? args[0] : tn_dimw_intern(work, TN_DIM_MUL, 1, args, nargs);
        if (unit == 0)
            return 0;
        if (from != SIZE_MAX)
            args = dims->arg.data + from;
    }
    uint32_t first = dims->arg.len;
    size_t inside = first > 0 && args != NULL && args >= dims->arg.data && args < dims->arg.data + first
                        ? (size_t)(args - dims->arg.data)
                        : SIZE_MAX;
    if (nargs > 0 && !tn_vec_reserve(dims->heap, &dims->arg, nargs)) {
        work->why = TN_DIM_MEMORY;
        return 0;
    }
    if (inside != SIZE_MAX)
        args = dims->arg.data + inside;
    for (uint32_t i = 0; i < nargs; i++)
        dims->arg.data[first + i] = args[i];
    if (kind == TN_DIM_MUL && constant == 1)
        unit = dims->expr.len; /* itself */
    id = append(work,
                (tn_dim_expr){.kind = (uint8_t)kind,
                              .args = first,
                              .nargs = nargs,
                              .constant = constant,
                              .unit = unit,
                              .size = (uint16_t)size,
                              .depth = (uint16_t)(depth + 1)},
                hash);
    if (id != 0)
        dims->arg.len += nargs;
    return id;
}

uint32_t tn_dimw_const(tn_dim_work *work, int64_t value) {
    return tn_dimw_intern(work, TN_DIM_CONST, value, NULL, 0);
}

bool tn_dim_name_is_fresh(const char *name, size_t length, uint32_t *number) {
    uint32_t value = 0;
    if (length < 2 || length > 10 || name[0] != 'u' || name[1] == '0')
        return false;
    for (size_t i = 1; i < length; i++) {
        if (name[i] < '0' || name[i] > '9')
            return false;
        value = value * 10 + (uint32_t)(name[i] - '0'); /* at most 9 digits */
    }
    *number = value;
    return true;
}

uint32_t tn_dimw_symbol(tn_dim_work *work, const char *name, size_t length, bool fresh) {
    tn_dims *dims = work->dims;
    uint32_t text = tn_strings_add(&dims->strings, name, length);
    if (text >= UINT32_MAX / 2) {
        work->why = text == UINT32_MAX ? TN_DIM_MEMORY : TN_DIM_TOO_LARGE;
        return 0;
    }
    tn_dim_sym symbol = {.name = text, .expr = dims->expr.len, .low = 0, .high = INT64_MAX, .fresh = fresh};
    uint32_t key = symbol_key(&symbol);
    uint64_t hash = hash_of(dims, TN_DIM_SYMBOL, 0, key, NULL, 0);
    uint32_t id = tn_idset_find(&dims->set, hash, same_expr, &(probe){dims, TN_DIM_SYMBOL, 0, key, NULL, 0});
    if (id != 0)
        return id;
    if (!tn_vec_reserve(dims->heap, &dims->symbol, 1)) {
        work->why = TN_DIM_MEMORY;
        return 0;
    }
    id = append(work, (tn_dim_expr){.kind = TN_DIM_SYMBOL, .symbol = dims->symbol.len, .size = 1, .depth = 1}, hash);
    if (id != 0)
        dims->symbol.data[dims->symbol.len++] = symbol;
    return id;
}

const char *tn_dim_symbol_name(const tn_dims *dims, uint32_t symbol) {
    return symbol < dims->symbol.len ? tn_strings_text(&dims->strings, dims->symbol.data[symbol].name) : "";
}

tn_status tn_dimw_report(const tn_dim_work *work) {
    switch (work->why) {
    case TN_DIM_FINE: return TN_OK;
    case TN_DIM_MEMORY: return tn_error_status();
    case TN_DIM_OVERFLOW: return tn_fail(TN_ERR_LIMIT, "a dimension's value or coefficient does not fit in 64 bits");
    case TN_DIM_TOO_LARGE:
        return tn_fail(TN_ERR_LIMIT, "a dimension's expression is larger than %d terms or nested deeper than %d",
                       TN_DIM_MAX_SIZE, TN_DIM_MAX_DEPTH);
    case TN_DIM_ZERO_DIVISOR: return tn_fail(TN_ERR_MODEL, "a dimension is divided by zero");
    case TN_DIM_MISMATCH: break;
    }
    return tn_fail(TN_ERR_MODEL, "two different dimensions, neither of them 1, cannot be broadcast");
}

/* --- builders --- */

/* The handle of a result; failures become the graph's sticky error. */
static tn_dim finish(tn_graph *graph, const tn_dim_work *work, uint32_t id) {
    if (id == 0) {
        tn_dimw_report(work);
        tn_graph_stick(graph);
    }
    return (tn_dim){id};
}

/* Not for frozen graphs; one that has its sticky error may still make dimensions. */
static bool buildable(tn_graph *graph) {
    return (graph != NULL && graph->stuck) || tn_graph_changeable(graph) == TN_OK;
}

static bool check_operand(tn_graph *graph, const tn_dims *dims, tn_dim dim) {
    if (dim.id != 0 && dim.id < dims->expr.len)
        return true;
    if (graph->stuck) { /* the error that made it null */
        tn_error_restore(&graph->error);
        return false;
    }
    tn_fail(TN_ERR_USAGE, dim.id == 0 ? "an operand of a dimension is null" : "a dimension of another graph");
    tn_graph_stick(graph);
    return false;
}

static tn_dim binary(tn_graph *graph, tn_dim_kind kind, tn_dim a, tn_dim b) {
    if (!buildable(graph))
        return (tn_dim){0};
    tn_dim_work work = {tn_graph_dims(graph), TN_DIM_FINE};
    if (!check_operand(graph, work.dims, a) || !check_operand(graph, work.dims, b))
        return (tn_dim){0};
    return finish(graph, &work, tn_dimw_apply(&work, kind, a.id, b.id));
}

tn_dim tn_dim_const(tn_graph *graph, int64_t value) {
    if (!buildable(graph))
        return (tn_dim){0};
    tn_dim_work work = {tn_graph_dims(graph), TN_DIM_FINE};
    return finish(graph, &work, tn_dimw_const(&work, value));
}

tn_dim tn_dim_symbol(tn_graph *graph, const char *name) {
    if (!buildable(graph))
        return (tn_dim){0};
    if (name == NULL || name[0] == '\0') {
        tn_fail(TN_ERR_USAGE, "a symbolic dimension needs a name");
        tn_graph_stick(graph);
        return (tn_dim){0};
    }
    tn_dim_work work = {tn_graph_dims(graph), TN_DIM_FINE};
    return finish(graph, &work, tn_dimw_symbol(&work, name, strlen(name), false));
}

tn_dim tn_dim_fresh(tn_graph *graph, int64_t low, int64_t high) {
    if (!buildable(graph))
        return (tn_dim){0};
    tn_dim_work work = {tn_graph_dims(graph), TN_DIM_FINE};
    tn_dims *dims = work.dims;
    if (low > high || dims->fresh >= 999999999) {
        tn_fail(low > high ? TN_ERR_USAGE : TN_ERR_LIMIT,
                low > high ? "bounds of a dimension are empty" : "too many unnamed dimensions");
        tn_graph_stick(graph);
        return (tn_dim){0};
    }
    char name[16];
    int length = snprintf(name, sizeof name, "u%u", (unsigned)(dims->fresh + 1));
    uint32_t id = tn_dimw_symbol(&work, name, (size_t)length, true);
    if (id != 0) {
        tn_dim_sym *symbol = &dims->symbol.data[tn_dim_at(dims, id)->symbol];
        dims->fresh++;
        symbol->low = low;
        symbol->high = high;
    }
    return finish(graph, &work, id);
}

tn_dim tn_dim_add(tn_graph *graph, tn_dim a, tn_dim b) {
    return binary(graph, TN_DIM_ADD, a, b);
}
tn_dim tn_dim_mul(tn_graph *graph, tn_dim a, tn_dim b) {
    return binary(graph, TN_DIM_MUL, a, b);
}
tn_dim tn_dim_floordiv(tn_graph *graph, tn_dim a, tn_dim b) {
    return binary(graph, TN_DIM_FLOORDIV, a, b);
}
tn_dim tn_dim_ceildiv(tn_graph *graph, tn_dim a, tn_dim b) {
    return binary(graph, TN_DIM_CEILDIV, a, b);
}
tn_dim tn_dim_mod(tn_graph *graph, tn_dim a, tn_dim b) {
    return binary(graph, TN_DIM_MOD, a, b);
}
tn_dim tn_dim_min(tn_graph *graph, tn_dim a, tn_dim b) {
    return binary(graph, TN_DIM_MIN, a, b);
}
tn_dim tn_dim_max(tn_graph *graph, tn_dim a, tn_dim b) {
    return binary(graph, TN_DIM_MAX, a, b);
}
tn_dim tn_dim_broadcast(tn_graph *graph, tn_dim a, tn_dim b) {
    return binary(graph, TN_DIM_BROADCAST, a, b);
}

tn_dim tn_dim_sub(tn_graph *graph, tn_dim a, tn_dim b) {
    if (!buildable(graph))
        return (tn_dim){0};
    tn_dim_work work = {tn_graph_dims(graph), TN_DIM_FINE};
    if (!check_operand(graph, work.dims, a) || !check_operand(graph, work.dims, b))
        return (tn_dim){0};
    return finish(graph, &work, tn_dimw_add(&work, a.id, b.id, -1));
}

tn_status tn_dim_set_bounds(tn_graph *graph, tn_dim symbol, int64_t low, int64_t high) {
    tn_dims *dims = graph != NULL ? tn_graph_dims(graph) : NULL;
    if (dims == NULL || symbol.id == 0 || symbol.id >= dims->expr.len ||
        tn_dim_at(dims, symbol.id)->kind != TN_DIM_SYMBOL)
        return tn_fail(TN_ERR_USAGE, "bounds can be set of a symbol only");
    tn_dim_sym *s = &dims->symbol.data[tn_dim_at(dims, symbol.id)->symbol];
    low = low > s->low ? low : s->low;
    high = high < s->high ? high : s->high;
    if (low > high)
        return tn_fail(TN_ERR_MODEL, "dimension %s has no possible value: at least %" PRId64 " and at most %" PRId64,
                       tn_strings_text(&dims->strings, s->name), low, high);
    s->low = low;
    s->high = high;
    return TN_OK;
}

uint32_t tn_dimw_apply(tn_dim_work *work, tn_dim_kind kind, uint32_t a, uint32_t b) {
    switch (kind) {
    case TN_DIM_ADD: return tn_dimw_add(work, a, b, 1);
    case TN_DIM_MUL: return tn_dimw_mul(work, a, b);
    case TN_DIM_FLOORDIV: return tn_dimw_floordiv(work, a, b);
    case TN_DIM_CEILDIV: return tn_dimw_ceildiv(work, a, b);
    case TN_DIM_MOD: return tn_dimw_mod(work, a, b);
    case TN_DIM_MIN:
    case TN_DIM_MAX:
    case TN_DIM_BROADCAST: return tn_dimw_lattice(work, kind, a, b);
    case TN_DIM_CONST:
    case TN_DIM_SYMBOL: break;
    }
    return 0;
}
