/* Bounds of expressions: interval arithmetic over the integers. An expression that has no value has any bounds. */
#include "ir/dim_work.h"
#include "ir/graph.h"

/* Endpoints are computed in 128 bits; INFINITE stands for an open end and lies beyond every finite endpoint. */
typedef __int128 wide;
#define INFINITE ((wide)1 << 100)

static wide low_end(tn_interval x) {
    return x.low == INT64_MIN ? -INFINITE : x.low;
}
static wide high_end(tn_interval x) {
    return x.high == INT64_MAX ? INFINITE : x.high;
}
static wide smaller(wide a, wide b) {
    return a < b ? a : b;
}
static wide larger(wide a, wide b) {
    return a > b ? a : b;
}

/* Cutting an endpoint to 64 bits only widens: below INT64_MIN is open, above INT64_MAX is open. */
static int64_t cut(wide x) {
    return x < INT64_MIN ? INT64_MIN : x > INT64_MAX ? INT64_MAX : (int64_t)x;
}
static tn_interval interval_of(wide low, wide high) {
    return (tn_interval){cut(low), cut(high)};
}
static const tn_interval everything = {INT64_MIN, INT64_MAX};

static wide end_product(wide a, wide b) {
    if (a == 0 || b == 0)
        return 0;
    if (a <= -INFINITE || a >= INFINITE || b <= -INFINITE || b >= INFINITE)
        return (a < 0) == (b < 0) ? INFINITE : -INFINITE;
    wide product = a * b; /* two 64-bit factors */
    return product > INFINITE ? INFINITE : product < -INFINITE ? -INFINITE : product;
}

static tn_interval interval_mul(tn_interval x, tn_interval y) {
    wide a = end_product(low_end(x), low_end(y)), b = end_product(low_end(x), high_end(y));
    wide c = end_product(high_end(x), low_end(y)), d = end_product(high_end(x), high_end(y));
    return interval_of(smaller(smaller(a, b), smaller(c, d)), larger(larger(a, b), larger(c, d)));
}

/* floor(a / b), b > 0, either may be infinite. */
static wide end_quotient(wide a, wide b) {
    if (a <= -INFINITE || a >= INFINITE)
        return a;
    if (b >= INFINITE)
        return a < 0 ? -1 : 0;
    return a / b - (a % b < 0);
}

static tn_interval divide(wide alow, wide ahigh, wide blow, wide bhigh) { /* blow > 0 */
    return interval_of(smaller(end_quotient(alow, blow), end_quotient(alow, bhigh)),
                       larger(end_quotient(ahigh, blow), end_quotient(ahigh, bhigh)));
}

tn_interval tn_interval_floordiv(tn_interval a, tn_interval b) {
    wide alow = low_end(a), ahigh = high_end(a), blow = low_end(b), bhigh = high_end(b);
    if (blow == 0)
        blow = 1; /* a zero divisor has no value */
    if (bhigh == 0)
        bhigh = -1;
    if (blow > bhigh)
        return everything;
    if (blow > 0)
        return divide(alow, ahigh, blow, bhigh);
    if (bhigh < 0)
        return divide(-ahigh, -alow, -bhigh, -blow);
    wide reach = larger(ahigh < 0 ? -ahigh : ahigh, alow < 0 ? -alow : alow); /* |floor(a / b)| <= |a| */
    return interval_of(-reach, reach);
}

static tn_interval interval_mod(tn_interval a, tn_interval b) {
    wide blow = low_end(b), bhigh = high_end(b);
    wide low = blow >= 0 ? 0 : blow + 1, high = bhigh <= 0 ? 0 : bhigh - 1;
    if (blow >= 0 && a.low >= 0)
        high = smaller(high, high_end(a));
    if (bhigh <= 0 && a.high <= 0)
        low = larger(low, low_end(a));
    return low > high ? everything : interval_of(low, high);
}

static tn_interval negated(tn_interval x) {
    return interval_of(-high_end(x), -low_end(x));
}

/* coefficient * product of sorted atoms; even powers are not negative. */
static tn_interval product_interval(const tn_dims *dims, int64_t coef, const uint32_t *atoms, uint32_t count) {
    tn_interval product = {coef, coef};
    if (coef == INT64_MIN || coef == INT64_MAX)
        product = coef < 0 ? (tn_interval){INT64_MIN, coef} : (tn_interval){coef, INT64_MAX};
    for (uint32_t i = 0; i < count;) {
        tn_interval atom = tn_dim_interval(dims, atoms[i]), power = atom;
        uint32_t n = 1;
        for (; i + n < count && atoms[i + n] == atoms[i]; n++)
            power = interval_mul(power, atom);
        if (n % 2 == 0 && power.low < 0)
            power.low = 0;
        product = interval_mul(product, power);
        i += n;
    }
    return product;
}

tn_interval tn_dim_interval(const tn_dims *dims, uint32_t id) {
    const tn_dim_expr *e = tn_dim_at(dims, id);
    const uint32_t *args = tn_dim_args(dims, e);
    switch ((tn_dim_kind)e->kind) {
    case TN_DIM_CONST: return (tn_interval){e->constant, e->constant};
    case TN_DIM_SYMBOL: return (tn_interval){dims->symbol.data[e->symbol].low, dims->symbol.data[e->symbol].high};
    case TN_DIM_MUL: return product_interval(dims, e->constant, args, e->nargs);
    case TN_DIM_FLOORDIV: return tn_interval_floordiv(tn_dim_interval(dims, args[0]), tn_dim_interval(dims, args[1]));
    case TN_DIM_CEILDIV:
        return negated(tn_interval_floordiv(negated(tn_dim_interval(dims, args[0])), tn_dim_interval(dims, args[1])));
    case TN_DIM_MOD: return interval_mod(tn_dim_interval(dims, args[0]), tn_dim_interval(dims, args[1]));
    default: break;
    }
    tn_interval result = tn_dim_interval(dims, args[0]);
    wide low = low_end(result), high = high_end(result);
    bool positive = result.low >= 1;
    int64_t highest_low = result.low;
    if (e->kind == TN_DIM_ADD) {
        low += e->constant;
        high += e->constant;
    }
    bool open_low = result.low == INT64_MIN, open_high = result.high == INT64_MAX;
    for (uint32_t i = 1; i < e->nargs; i++) {
        tn_interval x = tn_dim_interval(dims, args[i]);
        positive = positive && x.low >= 1;
        highest_low = x.low > highest_low ? x.low : highest_low;
        switch ((tn_dim_kind)e->kind) {
        case TN_DIM_ADD: /* an open end is kept apart: many of them would overflow, and one could be cancelled */
            open_low = open_low || x.low == INT64_MIN;
            open_high = open_high || x.high == INT64_MAX;
            low += x.low;
            high += x.high;
            break;
        case TN_DIM_MIN:
            low = smaller(low, low_end(x));
            high = smaller(high, high_end(x));
            break;
        case TN_DIM_MAX:
            low = larger(low, low_end(x));
            high = larger(high, high_end(x));
            break;
        default: /* broadcast: one of the operands */ low = smaller(low, low_end(x)); high = larger(high, high_end(x));
        }
    }
    if (e->kind == TN_DIM_ADD) {
        low = open_low ? -INFINITE : low;
        high = open_high ? INFINITE : high;
    }
    if (e->kind == TN_DIM_BROADCAST && positive) /* every operand is 1 or the result */
        low = highest_low;
    return interval_of(low, high);
}

tn_interval tn_poly_interval(const tn_dims *dims, const tn_poly *poly) {
    wide low = poly->constant, high = poly->constant;
    bool open_low = false, open_high = false;
    for (uint32_t i = 0; i < poly->terms.len; i++) {
        uint32_t count;
        const uint32_t *atoms = tn_dim_mono_atoms(dims, &poly->terms.data[i].mono, &count);
        tn_interval x = product_interval(dims, poly->terms.data[i].coef, atoms, count);
        open_low = open_low || x.low == INT64_MIN;
        open_high = open_high || x.high == INT64_MAX;
        low += x.low;
        high += x.high;
    }
    return interval_of(open_low ? -INFINITE : low, open_high ? INFINITE : high);
}

void tn_dim_bounds(const tn_graph *graph, tn_dim dim, int64_t *low, int64_t *high) {
    const tn_dims *dims = graph == NULL ? NULL : tn_graph_dims((tn_graph *)(uintptr_t)graph);
    tn_interval x = everything;
    if (dims != NULL && dim.id != 0 && dim.id < dims->expr.len)
        x = tn_dim_interval(dims, dim.id);
    if (low != NULL)
        *low = x.low;
    if (high != NULL)
        *high = x.high;
}

bool tn_dim_is_const(const tn_graph *graph, tn_dim dim, int64_t *value) {
    const tn_dims *dims = graph == NULL ? NULL : tn_graph_dims((tn_graph *)(uintptr_t)graph);
    if (dims == NULL || dim.id == 0 || dim.id >= dims->expr.len)
        return false;
    if (tn_dim_at(dims, dim.id)->kind == TN_DIM_CONST) {
        if (value != NULL)
            *value = tn_dim_at(dims, dim.id)->constant;
        return true;
    }
    tn_interval x = tn_dim_interval(dims, dim.id);
    if (!tn_interval_is_point(x))
        return false;
    if (value != NULL)
        *value = x.low;
    return true;
}
