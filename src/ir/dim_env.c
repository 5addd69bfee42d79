/* Values of symbols: evaluation, matching, substitution, and which symbols occur. */
#include <inttypes.h>
#include <string.h>

#include "ir/dim_work.h"
#include "ir/graph.h"

/* Values inside an expression are computed in 128 bits, so that order of summation does not matter; only the result
   must fit in 64. */
typedef __int128 wide;
#define LARGEST ((wide)(((unsigned __int128)1 << 127) - 1))

bool tn_dim_env_init(tn_dim_env *env, tn_heap *heap, const tn_dims *dims) {
    memset(env, 0, sizeof *env);
    env->heap = heap;
    env->count = dims->symbol.len;
    env->value = tn_alloc_array(heap, env->count, sizeof *env->value);
    env->bound = tn_alloc_array(heap, env->count, sizeof *env->bound);
    if (env->value != NULL && env->bound != NULL)
        return true;
    tn_dim_env_free(env);
    return false;
}

void tn_dim_env_free(tn_dim_env *env) {
    tn_free(env->heap, env->value);
    tn_free(env->heap, env->bound);
    memset(env, 0, sizeof *env);
}

static bool add_wide(wide a, wide b, wide *out) {
    return !__builtin_add_overflow(a, b, out);
}

static bool mul_wide(wide a, wide b, wide *out) {
    if (a >= INT64_MIN && a <= INT64_MAX && b >= INT64_MIN && b <= INT64_MAX) {
        *out = a * b;
        return true;
    }
    wide x = a < 0 ? -a : a, y = b < 0 ? -b : b;
    if (x < 0 || y < 0 || (y != 0 && x > LARGEST / y))
        return false;
    *out = a * b;
    return true;
}

static wide floordiv_wide(wide a, wide b) {
    wide quotient = a / b;
    return quotient - (a % b != 0 && (a < 0) != (b < 0));
}

static bool eval_wide(const tn_dims *dims, const tn_dim_env *env, uint32_t id, wide *value) {
    const tn_dim_expr *e = tn_dim_at(dims, id);
    const uint32_t *args = tn_dim_args(dims, e);
    wide result = e->constant, x, y;
    switch ((tn_dim_kind)e->kind) {
    case TN_DIM_CONST: break;
    case TN_DIM_SYMBOL:
        if (e->symbol >= env->count || !env->bound[e->symbol])
            return false;
        result = env->value[e->symbol];
        break;
    case TN_DIM_ADD:
        for (uint32_t i = 0; i < e->nargs; i++)
            if (!eval_wide(dims, env, args[i], &x) || !add_wide(result, x, &result))
                return false;
        break;
    case TN_DIM_MUL:
        for (uint32_t i = 0; i < e->nargs; i++)
            if (!eval_wide(dims, env, args[i], &x) || !mul_wide(result, x, &result))
                return false;
        break;
    case TN_DIM_FLOORDIV:
    case TN_DIM_CEILDIV:
    case TN_DIM_MOD:
        if (!eval_wide(dims, env, args[0], &x) || !eval_wide(dims, env, args[1], &y) || y == 0 || -LARGEST > x)
            return false;
        if (e->kind == TN_DIM_CEILDIV)
            result = -floordiv_wide(-x, y);
        else
            result = floordiv_wide(x, y);
        if (e->kind == TN_DIM_MOD) {
            result = x % y;
            result += result != 0 && (result < 0) != (y < 0) ? y : 0;
        }
        break;
    case TN_DIM_MIN:
    case TN_DIM_MAX:
    case TN_DIM_BROADCAST:
        for (uint32_t i = 0; i < e->nargs; i++) {
            if (!eval_wide(dims, env, args[i], &x))
                return false;
            if (i == 0 || (e->kind == TN_DIM_MIN && x < result) || (e->kind == TN_DIM_MAX && x > result) ||
                (e->kind == TN_DIM_BROADCAST && result == 1))
                result = x;
            else if (e->kind == TN_DIM_BROADCAST && x != 1 && x != result)
                return false;
        }
        break;
    }
    *value = result;
    return true;
}

bool tn_dim_eval(const tn_dims *dims, const tn_dim_env *env, tn_dim dim, int64_t *value) {
    wide result;
    if (dim.id == 0 || dim.id >= dims->expr.len || !eval_wide(dims, env, dim.id, &result))
        return false;
    if (result < INT64_MIN || result > INT64_MAX)
        return false;
    *value = (int64_t)result;
    return true;
}

/* --- why there is no value --- */

typedef struct listing {
    const tn_dims *dims;
    const tn_dim_env *env;
    tn_text *out;
    uint32_t seen[8], count;
} listing;

static void list_symbol(void *ctx, uint32_t symbol) {
    listing *l = ctx;
    for (uint32_t i = 0; i < l->count; i++)
        if (l->seen[i] == symbol)
            return;
    if (l->count == sizeof l->seen / sizeof *l->seen)
        return;
    l->seen[l->count] = symbol;
    tn_text_printf(l->out, "%s%s", l->count++ ? ", " : ": ", tn_dim_symbol_name(l->dims, symbol));
    if (symbol < l->env->count && l->env->bound[symbol])
        tn_text_printf(l->out, " = %" PRId64, l->env->value[symbol]);
    else
        tn_text_add(l->out, " is not known");
}

const char *tn_dim_explain(const tn_dims *dims, const tn_dim_env *env, tn_dim dim, tn_text *out) {
    listing l = {.dims = dims, .env = env, .out = out};
    wide value;
    uint32_t id = dim.id;
    tn_dim_print(dims, dim, out);
    tn_text_add(out, " has no value");
    tn_dim_symbols(dims, dim, list_symbol, &l);
    for (uint32_t i = 0; id != 0 && i < tn_dim_at(dims, id)->nargs; i++) { /* down to the part that is to blame */
        uint32_t arg = tn_dim_args(dims, tn_dim_at(dims, id))[i];
        if (eval_wide(dims, env, arg, &value))
            continue;
        id = arg;
        i = UINT32_MAX;
    }
    switch (id == 0 ? TN_DIM_SYMBOL : (tn_dim_kind)tn_dim_at(dims, id)->kind) {
    case TN_DIM_BROADCAST: return "sizes that are broadcast together must be equal, or 1";
    case TN_DIM_SYMBOL: return "every free dimension must follow from the inputs";
    case TN_DIM_FLOORDIV:
    case TN_DIM_CEILDIV:
    case TN_DIM_MOD: return "the size that divides must not be 0";
    default: return "sizes must be below 2^63";
    }
}

/* --- matching --- */

typedef struct unbound {
    const tn_dim_env *env;
    uint32_t count, symbol;
} unbound;

static void note_unbound(void *ctx, uint32_t symbol) {
    unbound *u = ctx;
    if (symbol < u->env->count && u->env->bound[symbol])
        return;
    u->count++;
    u->symbol = symbol;
}

/* coefficient * symbol + rest, with all other symbols bound. False when the symbol is not there linearly, or no value. */
static bool linear_form(const tn_dims *dims, const tn_dim_env *env, uint32_t id, uint32_t symbol, wide *coef,
                        wide *rest) {
    const tn_dim_expr *e = tn_dim_at(dims, id);
    const uint32_t *args = tn_dim_args(dims, e);
    *coef = 0;
    *rest = 0;
    wide c, r, product = e->constant;
    switch ((tn_dim_kind)e->kind) {
    case TN_DIM_SYMBOL:
        if (e->symbol == symbol) {
            *coef = 1;
            return true;
        }
        break;
    case TN_DIM_ADD:
        *rest = e->constant;
        for (uint32_t i = 0; i < e->nargs; i++)
            if (!linear_form(dims, env, args[i], symbol, &c, &r) || !add_wide(*coef, c, coef) ||
                !add_wide(*rest, r, rest))
                return false;
        return true;
    case TN_DIM_MUL: {
        uint32_t at = UINT32_MAX;
        for (uint32_t i = 0; i < e->nargs; i++) {
            if (eval_wide(dims, env, args[i], &r)) {
                if (!mul_wide(product, r, &product))
                    return false;
            } else if (at == UINT32_MAX) {
                at = i;
            } else {
                return false;
            }
        }
        if (at == UINT32_MAX) {
            *rest = product;
            return true;
        }
        return linear_form(dims, env, args[at], symbol, &c, &r) && mul_wide(product, c, coef) &&
               mul_wide(product, r, rest);
    }
    default: break;
    }
    return eval_wide(dims, env, id, rest);
}

int tn_dim_env_match(const tn_dims *dims, tn_dim_env *env, tn_dim dim, int64_t value) {
    unbound u = {env, 0, 0};
    int64_t now;
    wide coef, rest, gap;
    if (dim.id == 0 || dim.id >= dims->expr.len)
        return 2;
    tn_dim_symbols(dims, dim, note_unbound, &u);
    if (u.count == 0)
        return tn_dim_eval(dims, env, dim, &now) && now == value ? 0 : 1;
    if (u.count > 1 || u.symbol >= env->count || !linear_form(dims, env, dim.id, u.symbol, &coef, &rest) ||
        rest < -LARGEST || !add_wide(value, -rest, &gap) || gap < -LARGEST)
        return 2;
    if (coef == 0)
        return gap == 0 ? 2 : 1;
    const tn_dim_sym *symbol = &dims->symbol.data[u.symbol];
    if (gap % coef != 0 || gap / coef < symbol->low || gap / coef > symbol->high)
        return 1;
    env->value[u.symbol] = (int64_t)(gap / coef);
    env->bound[u.symbol] = 1;
    return 0;
}

void tn_dim_symbols(const tn_dims *dims, tn_dim dim, void (*visit)(void *ctx, uint32_t symbol), void *ctx) {
    if (dim.id == 0 || dim.id >= dims->expr.len)
        return;
    const tn_dim_expr *e = tn_dim_at(dims, dim.id);
    if (e->kind == TN_DIM_SYMBOL)
        visit(ctx, e->symbol);
    for (uint32_t i = 0; i < e->nargs; i++)
        tn_dim_symbols(dims, (tn_dim){tn_dim_args(dims, e)[i]}, visit, ctx);
}

/* --- substitution --- */

typedef struct rewriting {
    tn_dim_work work;
    const tn_dim *map;
    uint32_t count;
} rewriting;

static uint32_t rewrite(rewriting *r, uint32_t id);

static uint32_t rewrite_sum(rewriting *r, uint32_t id) {
    tn_dims *dims = r->work.dims;
    tn_poly sum = {.constant = tn_dim_at(dims, id)->constant}, part = {0};
    bool ok = true;
    for (uint32_t i = 0; i < tn_dim_at(dims, id)->nargs && ok; i++) {
        uint32_t term = rewrite(r, tn_dim_args(dims, tn_dim_at(dims, id))[i]);
        ok =
            term != 0 && tn_poly_of(dims, term, &part, &r->work.why) && tn_poly_add(dims, &sum, &part, 1, &r->work.why);
        tn_poly_free(dims, &part);
    }
    uint32_t result = ok ? tn_dimw_from_poly(&r->work, &sum) : 0;
    tn_poly_free(dims, &sum);
    return result;
}

static uint32_t rewrite_product(rewriting *r, uint32_t id) {
    tn_dims *dims = r->work.dims;
    uint32_t count = tn_dim_at(dims, id)->nargs, result = 0;
    uint32_t *atoms = tn_alloc_array(dims->heap, count, sizeof *atoms);
    if (atoms == NULL) {
        r->work.why = TN_DIM_MEMORY;
        return 0;
    }
    bool ok = true;
    for (uint32_t i = 0; i < count && ok; i++) {
        atoms[i] = rewrite(r, tn_dim_args(dims, tn_dim_at(dims, id))[i]);
        ok = atoms[i] != 0;
    }
    if (ok)
        result = tn_dimw_product(&r->work, atoms, count);
    tn_free(dims->heap, atoms);
    return result == 0 ? 0 : tn_dimw_scale(&r->work, result, tn_dim_at(dims, id)->constant);
}

static uint32_t rewrite(rewriting *r, uint32_t id) {
    tn_dims *dims = r->work.dims;
    const tn_dim_expr e = *tn_dim_at(dims, id);
    switch ((tn_dim_kind)e.kind) {
    case TN_DIM_CONST: return id;
    case TN_DIM_SYMBOL: return e.symbol < r->count && r->map[e.symbol].id != 0 ? r->map[e.symbol].id : id;
    case TN_DIM_ADD: return rewrite_sum(r, id);
    case TN_DIM_MUL: return rewrite_product(r, id);
    default: break;
    }
    uint32_t result = rewrite(r, tn_dim_args(dims, &e)[0]);
    for (uint32_t i = 1; i < e.nargs && result != 0; i++) {
        uint32_t arg = rewrite(r, tn_dim_args(dims, &e)[i]);
        result = arg == 0 ? 0 : tn_dimw_apply(&r->work, (tn_dim_kind)e.kind, result, arg);
    }
    return result;
}

tn_dim tn_dim_substitute(tn_graph *graph, tn_dim dim, const tn_dim *map, uint32_t count) {
    rewriting r = {{tn_graph_dims(graph), TN_DIM_FINE}, map, count};
    bool known = dim.id != 0 && dim.id < r.work.dims->expr.len;
    for (uint32_t i = 0; i < count; i++)
        known = known && map[i].id < r.work.dims->expr.len;
    if (!known)
        tn_fail(TN_ERR_USAGE, "substitution in a null dimension, or by one of another graph");
    uint32_t id = known ? rewrite(&r, dim.id) : 0;
    if (id != 0)
        return (tn_dim){id};
    tn_dimw_report(&r.work);
    tn_graph_stick(graph);
    return (tn_dim){0};
}
