/* Expressions of one symbol made of sums, products with numbers, MIN and MAX: linear piece by piece, so what they are for every value of
   the symbol can be written down, and order and equality be decided exactly. Everything else has no pieces. Reads only. */
#include "ir/dim_work.h"

/* Larger ones have no pieces: nothing is decided about them here. COEFFICIENT keeps sums and products within 128 bits. */
enum { MAX_PIECES = 16, MAX_VISITS = 200, MAX_PARTS = 32 };
#define COEFFICIENT ((wide)1 << 60)
typedef __int128 wide;

/* base + slope * s for the values s of the symbol from `from` to where the next piece begins. */
typedef struct piece {
    int64_t from;
    wide base, slope;
} piece;

typedef struct pieces {
    int n;
    piece at[MAX_PIECES];
} pieces;

typedef struct domain {
    const tn_dims *dims;
    uint32_t symbol;   /* UINT32_MAX: none was met yet */
    int64_t low, high; /* high INT64_MAX: there is no largest value */
    int visits;
} domain;

static wide value_at(const piece *p, int64_t s) {
    return p->base + p->slope * s;
}

static wide floor_div(wide a, wide b) { /* b > 0 */
    return a / b - (a % b < 0);
}

static bool append(pieces *out, int64_t from, wide base, wide slope) {
    if (out->n && out->at[out->n - 1].base == base && out->at[out->n - 1].slope == slope)
        return true;
    if (out->n == MAX_PIECES || base > COEFFICIENT || base < -COEFFICIENT || slope > COEFFICIENT ||
        slope < -COEFFICIENT)
        return false;
    out->at[out->n++] = (piece){from, base, slope};
    return true;
}

/* Goes over the intervals [from, to] on which both are linear; i and j are the pieces there, -1 before the first. */
typedef struct both {
    const pieces *a, *b;
    int i, j;
    int64_t from, to;
} both;

static bool next(const domain *d, both *w) {
    if (w->i < 0) {
        w->i = w->j = 0;
        w->from = d->low;
    } else {
        if (w->to == d->high)
            return false;
        w->from = w->to + 1;
        w->i += w->i + 1 < w->a->n && w->a->at[w->i + 1].from == w->from;
        w->j += w->j + 1 < w->b->n && w->b->at[w->j + 1].from == w->from;
    }
    w->to = d->high;
    if (w->i + 1 < w->a->n)
        w->to = w->a->at[w->i + 1].from - 1;
    if (w->j + 1 < w->b->n && w->b->at[w->j + 1].from - 1 < w->to)
        w->to = w->b->at[w->j + 1].from - 1;
    return true;
}

static bool sum(const domain *d, const pieces *a, const pieces *b, wide scale, pieces *out) {
    out->n = 0;
    for (both w = {a, b, -1, -1, 0, 0}; next(d, &w);)
        if (!append(out, w.from, a->at[w.i].base + scale * b->at[w.j].base,
                    a->at[w.i].slope + scale * b->at[w.j].slope))
            return false;
    return true;
}

/* MIN and MAX: where they cross within an interval, it becomes two. */
static bool extreme(const domain *d, bool least, const pieces *a, const pieces *b, pieces *out) {
    out->n = 0;
    for (both w = {a, b, -1, -1, 0, 0}; next(d, &w);) {
        const piece *p = &a->at[w.i], *q = &b->at[w.j];
        /* p - q, or q - p for MAX: p is wanted where it is not above 0 */
        wide base = least ? p->base - q->base : q->base - p->base, turn = (wide)w.to + 1;
        wide slope = least ? p->slope - q->slope : q->slope - p->slope;
        bool p_first = base + slope * w.from <= 0;
        if (p_first && slope > 0)
            turn = floor_div(-base, slope) + 1;
        else if (!p_first && slope < 0)
            turn = -floor_div(-base, -slope);
        const piece *first = p_first ? p : q, *second = p_first ? q : p;
        if (!append(out, w.from, first->base, first->slope) ||
            (turn <= w.to && !append(out, (int64_t)turn, second->base, second->slope)))
            return false;
    }
    return true;
}

static bool pieces_of(domain *d, uint32_t id, pieces *out);

static bool combine(domain *d, const tn_dim_expr *e, pieces *out) {
    for (uint32_t i = 0; i < e->nargs; i++) {
        pieces part, so_far = *out;
        if (!pieces_of(d, tn_dim_args(d->dims, e)[i], &part))
            return false;
        if (i == 0 && e->kind != TN_DIM_ADD)
            *out = part;
        else if (!(e->kind == TN_DIM_ADD ? sum(d, &so_far, &part, 1, out)
                                         : extreme(d, e->kind == TN_DIM_MIN, &so_far, &part, out)))
            return false;
    }
    return true;
}

static bool pieces_of(domain *d, uint32_t id, pieces *out) {
    const tn_dim_expr *e = tn_dim_at(d->dims, id);
    if (--d->visits < 0)
        return false;
    *out = (pieces){.n = 1, .at = {{d->low, 0, 0}}};
    switch ((tn_dim_kind)e->kind) {
    case TN_DIM_CONST: out->at[0].base = e->constant; return e->constant < COEFFICIENT && e->constant > -COEFFICIENT;
    case TN_DIM_SYMBOL: out->at[0].slope = 1; return e->symbol == d->symbol;
    case TN_DIM_MUL: {
        pieces part, zero = *out;
        return e->nargs == 1 && e->constant < COEFFICIENT && e->constant > -COEFFICIENT &&
               pieces_of(d, tn_dim_args(d->dims, e)[0], &part) && sum(d, &zero, &part, e->constant, out);
    }
    case TN_DIM_ADD:
        out->at[0].base = e->constant;
        return e->constant < COEFFICIENT && e->constant > -COEFFICIENT && combine(d, e, out);
    case TN_DIM_MIN:
    case TN_DIM_MAX: return combine(d, e, out);
    default: return false;
    }
}

/* --- which symbol ------------------------------------------------------------------------------------------------------------------- */

/* Finds the one symbol, and counts MIN and MAX; false: there are more symbols, or an operation without pieces. */
static bool survey(domain *d, uint32_t id, int *extremes) {
    const tn_dim_expr *e = tn_dim_at(d->dims, id);
    if (--d->visits < 0)
        return false;
    switch ((tn_dim_kind)e->kind) {
    case TN_DIM_CONST: return true;
    case TN_DIM_SYMBOL:
        if (d->symbol != UINT32_MAX && d->symbol != e->symbol)
            return false;
        d->symbol = e->symbol;
        return true;
    case TN_DIM_MUL:
        if (e->nargs != 1)
            return false;
        break;
    case TN_DIM_ADD: break;
    case TN_DIM_MIN:
    case TN_DIM_MAX: ++*extremes; break;
    default: return false;
    }
    for (uint32_t i = 0; i < e->nargs; i++)
        if (!survey(d, tn_dim_args(d->dims, e)[i], extremes))
            return false;
    return true;
}

static bool begin(domain *d, const tn_dims *dims, const uint32_t *ids, uint32_t count, int *extremes) {
    *d = (domain){.dims = dims, .symbol = UINT32_MAX, .visits = MAX_VISITS};
    *extremes = 0;
    for (uint32_t i = 0; i < count; i++)
        if (!survey(d, ids[i], extremes))
            return false;
    if (d->symbol == UINT32_MAX)
        return false;
    d->low = dims->symbol.data[d->symbol].low;
    d->high = dims->symbol.data[d->symbol].high;
    d->visits = MAX_VISITS;
    return d->low > INT64_MIN / 4;
}

/* --- what is decided ---------------------------------------------------------------------------------------------------------------- */

int tn_pieces_nonneg(const tn_dims *dims, const tn_poly *poly) {
    domain d;
    pieces total, part, so_far;
    uint32_t ids[MAX_PARTS];
    int extremes;
    if (poly->terms.len > MAX_PARTS || poly->constant >= COEFFICIENT || poly->constant <= -COEFFICIENT)
        return -1;
    for (uint32_t i = 0; i < poly->terms.len; i++)
        ids[i] = poly->terms.data[i].mono;
    if (!begin(&d, dims, ids, poly->terms.len, &extremes) || !extremes)
        return -1; /* without MIN and MAX bounds tell the same */
    total = (pieces){.n = 1, .at = {{d.low, poly->constant, 0}}};
    for (uint32_t i = 0; i < poly->terms.len; i++) {
        int64_t coef = poly->terms.data[i].coef;
        so_far = total;
        if (coef >= COEFFICIENT || coef <= -COEFFICIENT || !pieces_of(&d, ids[i], &part) ||
            !sum(&d, &so_far, &part, coef, &total))
            return -1;
    }
    for (int i = 0; i < total.n; i++) {
        const piece *p = &total.at[i];
        int64_t to = i + 1 < total.n ? total.at[i + 1].from - 1 : d.high;
        if (value_at(p, p->from) < 0 || (to == INT64_MAX ? p->slope < 0 : value_at(p, to) < 0))
            return 0;
    }
    return 1;
}

static bool same(const domain *d, const pieces *a, const pieces *b) {
    for (both w = {a, b, -1, -1, 0, 0}; next(d, &w);) {
        const piece *p = &a->at[w.i], *q = &b->at[w.j];
        if (value_at(p, w.from) != value_at(q, w.from) || (w.from != w.to && p->slope != q->slope))
            return false;
    }
    return true;
}

/* The MIN and MAX in an expression, itself included. */
static void extremes_in(const tn_dims *dims, uint32_t id, uint32_t *list, int *count) {
    const tn_dim_expr *e = tn_dim_at(dims, id);
    if ((e->kind == TN_DIM_MIN || e->kind == TN_DIM_MAX) && *count < MAX_PARTS)
        list[(*count)++] = id;
    for (uint32_t i = 0; i < e->nargs && *count < MAX_PARTS; i++)
        extremes_in(dims, tn_dim_args(dims, e)[i], list, count);
}

uint32_t tn_pieces_same_part(const tn_dims *dims, tn_dim_kind kind, uint32_t a, uint32_t b) {
    domain d;
    pieces f, g, whole, part;
    uint32_t list[MAX_PARTS], best = 0;
    int extremes, found = 0;
    if (!begin(&d, dims, (uint32_t[]){a, b}, 2, &extremes) || !extremes || !pieces_of(&d, a, &f) ||
        !pieces_of(&d, b, &g) || !extreme(&d, kind == TN_DIM_MIN, &f, &g, &whole))
        return 0;
    extremes_in(dims, a, list, &found);
    extremes_in(dims, b, list, &found);
    for (int i = 0; i < found; i++) {
        d.visits = MAX_VISITS;
        if (pieces_of(&d, list[i], &part) && same(&d, &whole, &part) &&
            (!best || tn_dim_at(dims, list[i])->size < tn_dim_at(dims, best)->size))
            best = list[i];
    }
    return best;
}

bool tn_pieces_broadcast_is(const tn_dims *dims, uint32_t a, uint32_t b) {
    domain d;
    pieces f, g;
    int extremes;
    if (!begin(&d, dims, (uint32_t[]){a, b}, 2, &extremes) || !pieces_of(&d, a, &f) || !pieces_of(&d, b, &g))
        return false;
    for (both w = {&f, &g, -1, -1, 0, 0}; next(&d, &w);) { /* where a is 1, b must be so, too */
        const piece *p = &f.at[w.i], *q = &g.at[w.j];
        if (p->slope == 0) {
            if (p->base == 1 && (value_at(q, w.from) != 1 || (w.from != w.to && q->slope != 0)))
                return false;
            continue;
        }
        wide s = (1 - p->base) / p->slope;
        if (p->base + p->slope * s == 1 && s >= w.from && s <= w.to && value_at(q, (int64_t)s) != 1)
            return false;
    }
    return true;
}
