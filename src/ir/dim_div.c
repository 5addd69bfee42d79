/* Floor division, ceiling division and remainder of dimensions. Each rule below holds for all integers for which the
   division has a value; none needs more than what its condition proves. */
#include <string.h>

#include "ir/dim_work.h"

/* Whether to go on without a simplification that failed: true unless memory ran out. */
static bool may_skip(tn_dim_work *work) {
    if (work->why == TN_DIM_MEMORY)
        return false;
    work->why = TN_DIM_FINE;
    return true;
}

static bool const_of(const tn_dims *dims, uint32_t id, int64_t *value) {
    const tn_dim_expr *e = tn_dim_at(dims, id);
    *value = e->constant;
    return e->kind == TN_DIM_CONST;
}

static int64_t remainder_of(int64_t x, int64_t c) { /* in [0, c) */
    int64_t rest = x % c;
    return rest < 0 ? rest + c : rest;
}

/* quotient + more, as an id. */
static uint32_t plus(tn_dim_work *work, const tn_poly *quotient, uint32_t more) {
    tn_poly sum = {0}, part = {0};
    uint32_t id = 0;
    if (more != 0 && tn_poly_add(work->dims, &sum, quotient, 1, &work->why) &&
        tn_poly_of(work->dims, more, &part, &work->why) && tn_poly_add(work->dims, &sum, &part, 1, &work->why))
        id = tn_dimw_from_poly(work, &sum);
    tn_poly_free(work->dims, &sum);
    tn_poly_free(work->dims, &part);
    return id;
}

/* op(-a, -b), or 0 (work->why FINE) when a negation overflows. */
static uint32_t negated(tn_dim_work *work, uint32_t a, uint32_t b,
                        uint32_t (*op)(tn_dim_work *work, uint32_t a, uint32_t b)) {
    uint32_t x = tn_dimw_scale(work, a, -1), y = x == 0 ? 0 : tn_dimw_scale(work, b, -1);
    uint32_t id = y == 0 ? 0 : op(work, x, y);
    if (id == 0)
        (void)may_skip(work);
    return id;
}

static int64_t gcd_of_terms(const tn_poly *poly, int64_t with) {
    for (uint32_t i = 0; i < poly->terms.len; i++)
        with = tn_gcd_i64(poly->terms.data[i].coef, with);
    return with;
}

static uint32_t binary_node(tn_dim_work *work, tn_dim_kind kind, const tn_poly *a, uint32_t b) {
    uint32_t args[2] = {tn_dimw_from_poly(work, a), b};
    return args[0] == 0 || b == 0 ? 0 : tn_dimw_intern(work, kind, 0, args, 2);
}

/* floordiv(floordiv(x, m) + k, b) = floordiv(x + m*k, m*b) for b > 0. 0 with work->why FINE: does not apply. */
static uint32_t nested_quotient(tn_dim_work *work, const tn_poly *rest, uint32_t b) {
    if (rest->terms.len != 1 || rest->terms.data[0].coef != 1)
        return 0;
    const tn_dim_expr *inner = tn_dim_at(work->dims, rest->terms.data[0].mono);
    if (inner->kind != TN_DIM_FLOORDIV)
        return 0;
    uint32_t x = tn_dim_args(work->dims, inner)[0], m = tn_dim_args(work->dims, inner)[1];
    uint32_t top = tn_dimw_add(work, x, m, rest->constant);
    uint32_t bottom = top == 0 ? 0 : tn_dimw_mul(work, m, b);
    uint32_t id = bottom == 0 ? 0 : tn_dimw_floordiv(work, top, bottom);
    if (id == 0)
        (void)may_skip(work);
    return id;
}

/* floordiv(a, c), c > 1: multiples of c leave the division, a common divisor cancels. Takes `a` apart. */
static uint32_t floordiv_by_const(tn_dim_work *work, tn_poly *a, int64_t c) {
    tn_dims *dims = work->dims;
    tn_poly quotient = {.constant = tn_floordiv_i64(a->constant, c)};
    uint32_t kept = 0, id = 0;
    a->constant = remainder_of(a->constant, c);
    for (uint32_t i = 0; i < a->terms.len; i++) {
        tn_poly_term term = a->terms.data[i];
        if (term.coef % c != 0)
            a->terms.data[kept++] = term;
        else if (!tn_poly_add_term(dims, &quotient, term.mono, term.coef / c, &work->why))
            goto done;
    }
    a->terms.len = kept;
    int64_t divisor = kept == 0 ? 1 : gcd_of_terms(a, c);
    for (uint32_t i = 0; i < kept; i++)
        a->terms.data[i].coef /= divisor;
    a->constant /= divisor;
    c /= divisor;
    tn_interval range = tn_interval_floordiv(tn_poly_interval(dims, a), (tn_interval){c, c});
    if (kept == 0 || tn_interval_is_point(range)) {
        const tn_poly constant = {.constant = kept == 0 ? 0 : range.low};
        if (tn_poly_add(dims, &quotient, &constant, 1, &work->why))
            id = tn_dimw_from_poly(work, &quotient);
        goto done;
    }
    uint32_t b = tn_dimw_const(work, c);
    uint32_t more = b == 0 ? 0 : nested_quotient(work, a, b);
    if (more == 0 && work->why == TN_DIM_FINE)
        more = binary_node(work, TN_DIM_FLOORDIV, a, b);
    id = plus(work, &quotient, more);
done:
    tn_poly_free(dims, &quotient);
    return id;
}

/* The largest monomial (atoms that are no sums) and coefficient that divide all of `a` and the term `b`, as an id; the
   constant 1 when there is none. 0: failed. */
static uint32_t common_factor(tn_dim_work *work, const tn_poly *a, tn_poly_term b) {
    tn_dims *dims = work->dims;
    uint32_t count;
    const uint32_t *source = tn_dim_mono_atoms(dims, &b.mono, &count);
    uint32_t *atoms = tn_alloc_array(dims->heap, count, sizeof *atoms);
    if (atoms == NULL) {
        work->why = TN_DIM_MEMORY;
        return 0;
    }
    uint32_t kept = 0;
    for (uint32_t k = 0; k < count && a->constant == 0; k++)
        if (tn_dim_at(dims, source[k])->kind != TN_DIM_ADD)
            atoms[kept++] = source[k];
    for (uint32_t i = 0; i < a->terms.len; i++) {
        uint32_t others, j = 0, common = 0;
        const uint32_t *other = tn_dim_mono_atoms(dims, &a->terms.data[i].mono, &others);
        for (uint32_t k = 0; k < kept; k++) { /* both sorted */
            while (j < others && other[j] < atoms[k])
                j++;
            if (j < others && other[j] == atoms[k]) {
                atoms[common++] = atoms[k];
                j++;
            }
        }
        kept = common;
    }
    int64_t coef = gcd_of_terms(a, b.coef); /* b.coef > 0 */
    coef = tn_gcd_i64(a->constant, coef);
    uint32_t id = tn_dimw_product(work, atoms, kept);
    tn_free(dims->heap, atoms);
    return id == 0 ? 0 : tn_dimw_scale(work, id, coef);
}

/* The divisor as one positive-coefficient term, when it is one. */
static bool single_term(const tn_poly *b, tn_poly_term *term) {
    if (b->terms.len != 1 || b->constant != 0)
        return false;
    *term = b->terms.data[0];
    return term->coef > 0;
}

/* Takes multiples of b out of a (into `quotient`) and cancels common factors of what is left: on return *top / *bottom is
   what remains to be divided, *top 0 when nothing, and *factor what was cancelled. False: failed. */
static bool reduce(tn_dim_work *work, uint32_t a, uint32_t b, tn_poly *quotient, uint32_t *top, uint32_t *bottom,
                   uint32_t *factor) {
    tn_dims *dims = work->dims;
    tn_poly rest = {0}, divisor = {0}, part = {0};
    tn_poly_term term;
    bool ok = tn_poly_of(dims, a, &rest, &work->why) && tn_poly_of(dims, b, &divisor, &work->why);
    *top = a;
    *bottom = b;
    *factor = 0;
    if (ok && single_term(&divisor, &term)) {
        ok = tn_dimw_take_multiples(work, &rest, term, quotient);
        if (ok && rest.terms.len == 0 && rest.constant == 0) {
            *top = 0;
        } else if (ok) {
            *factor = common_factor(work, &rest, term);
            *top = *factor == 0 ? 0 : tn_dimw_from_poly(work, &rest);
            ok = *top != 0;
            int64_t one;
            if (ok && !(const_of(dims, *factor, &one) && one == 1)) {
                if (const_of(dims, *factor, &one)) { /* long division divides by no constant */
                    for (uint32_t i = 0; i < rest.terms.len; i++)
                        rest.terms.data[i].coef /= one;
                    rest.constant /= one;
                    divisor.terms.data[0].coef /= one;
                    *top = tn_dimw_from_poly(work, &rest);
                    *bottom = *top == 0 ? 0 : tn_dimw_from_poly(work, &divisor);
                } else {
                    *top = tn_dimw_divide_exact(work, *top, *factor);
                    *bottom = *top == 0      ? 0
                              : b == *factor ? tn_dimw_const(work, 1)
                                             : tn_dimw_divide_exact(work, b, *factor);
                }
                ok = *top != 0 && *bottom != 0;
            } else {
                *factor = 0;
            }
        }
    } else if (ok) {
        uint32_t whole = tn_dimw_divide_exact(work, a, b);
        ok = work->why == TN_DIM_FINE;
        if (whole != 0) {
            *top = 0;
            ok = tn_poly_of(dims, whole, &part, &work->why) && tn_poly_add(dims, quotient, &part, 1, &work->why);
        }
    }
    tn_poly_free(dims, &rest);
    tn_poly_free(dims, &divisor);
    tn_poly_free(dims, &part);
    return ok;
}

/* Whether 0 <= a < b always. */
static bool is_proper(const tn_dims *dims, uint32_t a, uint32_t b) {
    return tn_dim_interval(dims, a).low >= 0 && tn_dim_is_at_most(dims, a, 1, b);
}

/* floordiv by an expression that is no constant, without rewriting. */
static uint32_t plain_floordiv(tn_dim_work *work, uint32_t a, uint32_t b) {
    tn_dims *dims = work->dims;
    tn_poly rest = {0};
    uint32_t id = 0;
    tn_interval range = tn_interval_floordiv(tn_dim_interval(dims, a), tn_dim_interval(dims, b));
    if (tn_interval_is_point(range))
        return tn_dimw_const(work, range.low);
    if (is_proper(dims, a, b))
        return tn_dimw_const(work, 0);
    if (tn_dim_interval(dims, b).low >= 0 && tn_poly_of(dims, a, &rest, &work->why))
        id = nested_quotient(work, &rest, b);
    tn_poly_free(dims, &rest);
    if (id == 0 && work->why == TN_DIM_FINE) {
        const uint32_t args[2] = {a, b};
        id = tn_dimw_intern(work, TN_DIM_FLOORDIV, 0, args, 2);
    }
    return id;
}

static uint32_t floordiv_general(tn_dim_work *work, uint32_t a, uint32_t b) {
    tn_dims *dims = work->dims;
    tn_poly quotient = {0};
    uint32_t top, bottom, factor, id = 0;
    if (reduce(work, a, b, &quotient, &top, &bottom, &factor)) {
        if (top == 0)
            id = tn_dimw_from_poly(work, &quotient);
        else
            id = plus(work, &quotient,
                      factor != 0 ? tn_dimw_floordiv(work, top, bottom) : plain_floordiv(work, top, bottom));
    }
    tn_poly_free(dims, &quotient);
    if (id == 0 && work->why != TN_DIM_MEMORY) {
        const uint32_t args[2] = {a, b};
        work->why = TN_DIM_FINE;
        id = tn_dimw_intern(work, TN_DIM_FLOORDIV, 0, args, 2);
    }
    return id;
}

/* Whether the divisor is a single term with a negative coefficient. */
static bool is_negative_term(const tn_dims *dims, uint32_t b) {
    const tn_dim_expr *e = tn_dim_at(dims, b);
    return e->kind == TN_DIM_MUL && e->constant < 0;
}

uint32_t tn_dimw_floordiv(tn_dim_work *work, uint32_t a, uint32_t b) {
    tn_dims *dims = work->dims;
    int64_t x, c;
    bool const_b = const_of(dims, b, &c), const_a = const_of(dims, a, &x);
    if (const_b && c == 0) {
        work->why = TN_DIM_ZERO_DIVISOR;
        return 0;
    }
    if (const_b && c == 1)
        return a;
    if (const_a && x == 0)
        return a;
    if (a == b)
        return tn_dimw_const(work, 1);
    if (const_a && const_b) {
        if (x == INT64_MIN && c == -1) {
            work->why = TN_DIM_OVERFLOW;
            return 0;
        }
        return tn_dimw_const(work, x / c - (x % c != 0 && (x < 0) != (c < 0)));
    }
    if ((const_b && c < 0) || is_negative_term(dims, b)) {
        uint32_t id = negated(work, a, b, tn_dimw_floordiv);
        if (id != 0 || work->why != TN_DIM_FINE)
            return id;
        return tn_dimw_intern(work, TN_DIM_FLOORDIV, 0, (const uint32_t[]){a, b}, 2);
    }
    if (!const_b)
        return floordiv_general(work, a, b);
    tn_poly top;
    uint32_t id = tn_poly_of(dims, a, &top, &work->why) ? floordiv_by_const(work, &top, c) : 0;
    tn_poly_free(dims, &top);
    return id;
}

uint32_t tn_dimw_ceildiv(tn_dim_work *work, uint32_t a, uint32_t b) {
    tn_dims *dims = work->dims;
    int64_t x, c;
    uint32_t id = 0;
    bool const_b = const_of(dims, b, &c), const_a = const_of(dims, a, &x);
    if (const_b && c == 0) {
        work->why = TN_DIM_ZERO_DIVISOR;
        return 0;
    }
    if ((const_a && x == 0) || (const_b && c == 1))
        return a;
    if (a == b)
        return tn_dimw_const(work, 1);
    if (const_a && const_b) {
        if (x == INT64_MIN && c == -1) {
            work->why = TN_DIM_OVERFLOW;
            return 0;
        }
        return tn_dimw_const(work, x / c + (x % c != 0 && (x < 0) == (c < 0)));
    }
    if ((const_b && c < 0) || is_negative_term(dims, b)) {
        id = negated(work, a, b, tn_dimw_ceildiv);
    } else if (tn_dim_interval(dims, b).low >= 0) { /* floordiv(a + b - 1, b) */
        uint32_t one = tn_dimw_const(work, 1), sum = one == 0 ? 0 : tn_dimw_add(work, a, b, 1);
        sum = sum == 0 ? 0 : tn_dimw_add(work, sum, one, -1);
        id = sum == 0 ? 0 : tn_dimw_floordiv(work, sum, b);
        if (id == 0)
            (void)may_skip(work);
    } else {
        id = tn_dimw_divide_exact(work, a, b);
    }
    if (id != 0 || work->why != TN_DIM_FINE)
        return id;
    return tn_dimw_intern(work, TN_DIM_CEILDIV, 0, (const uint32_t[]){a, b}, 2);
}

/* factor * mod(a, b) + offset */
static uint32_t scaled_mod(tn_dim_work *work, uint32_t factor, uint32_t a, uint32_t b, int64_t offset) {
    uint32_t inner = a == 0 || b == 0 ? 0 : tn_dimw_mod(work, a, b);
    uint32_t id = inner == 0 ? 0 : tn_dimw_mul(work, factor, inner);
    const tn_poly constant = {.constant = offset};
    return offset == 0 ? id : plus(work, &constant, id);
}

/* mod(a, c), c > 1: multiples of c vanish, a common divisor comes out. Takes `a` apart. */
static uint32_t mod_by_const(tn_dim_work *work, tn_poly *a, int64_t c) {
    tn_dims *dims = work->dims;
    uint32_t kept = 0;
    a->constant = remainder_of(a->constant, c);
    for (uint32_t i = 0; i < a->terms.len; i++) {
        a->terms.data[kept] = a->terms.data[i];
        a->terms.data[kept].coef %= c;
        kept += a->terms.data[kept].coef != 0;
    }
    a->terms.len = kept;
    if (kept == 0)
        return tn_dimw_const(work, a->constant);
    int64_t divisor = gcd_of_terms(a, c);
    if (divisor > 1) { /* mod(g*x + k, g*c) = g*mod(x + k/g, c) + k mod g */
        int64_t offset = a->constant % divisor;
        for (uint32_t i = 0; i < kept; i++)
            a->terms.data[i].coef /= divisor;
        a->constant /= divisor;
        uint32_t factor = tn_dimw_const(work, divisor), b = factor == 0 ? 0 : tn_dimw_const(work, c / divisor);
        return scaled_mod(work, factor, b == 0 ? 0 : tn_dimw_from_poly(work, a), b, offset);
    }
    tn_interval range = tn_interval_floordiv(tn_poly_interval(dims, a), (tn_interval){c, c});
    if (tn_interval_is_point(range)) { /* always in one period */
        int64_t back;
        if (!__builtin_mul_overflow(range.low, c, &back) && !__builtin_sub_overflow(a->constant, back, &a->constant))
            return tn_dimw_from_poly(work, a);
    }
    uint32_t b = tn_dimw_const(work, c);
    const tn_dim_expr *inner = tn_dim_at(dims, a->terms.data[0].mono);
    int64_t period;
    if (b != 0 && kept == 1 && a->terms.data[0].coef == 1 && inner->kind == TN_DIM_MOD &&
        const_of(dims, tn_dim_args(dims, inner)[1], &period) &&
        period % c == 0) { /* mod(mod(x, n*c) + k, c) = mod(x + k, c) */
        const tn_poly constant = {.constant = a->constant};
        uint32_t id = plus(work, &constant, tn_dim_args(dims, inner)[0]);
        id = id == 0 ? 0 : tn_dimw_mod(work, id, b);
        if (id != 0 || !may_skip(work))
            return id;
    }
    return binary_node(work, TN_DIM_MOD, a, b);
}

static uint32_t mod_general(tn_dim_work *work, uint32_t a, uint32_t b) {
    tn_dims *dims = work->dims;
    tn_poly quotient = {0};
    uint32_t top, bottom, factor, id = 0;
    if (is_proper(dims, a, b))
        return a;
    if (reduce(work, a, b, &quotient, &top, &bottom, &factor)) {
        if (top == 0)
            id = tn_dimw_const(work, 0);
        else if (factor != 0)
            id = scaled_mod(work, factor, top, bottom, 0);
        else if (is_proper(dims, top, bottom))
            id = top;
        else
            id = tn_dimw_intern(work, TN_DIM_MOD, 0, (const uint32_t[]){top, bottom}, 2);
    }
    tn_poly_free(dims, &quotient);
    if (id == 0 && may_skip(work))
        id = tn_dimw_intern(work, TN_DIM_MOD, 0, (const uint32_t[]){a, b}, 2);
    return id;
}

uint32_t tn_dimw_mod(tn_dim_work *work, uint32_t a, uint32_t b) {
    tn_dims *dims = work->dims;
    int64_t x, c;
    bool const_b = const_of(dims, b, &c), const_a = const_of(dims, a, &x);
    if (const_b && c == 0) {
        work->why = TN_DIM_ZERO_DIVISOR;
        return 0;
    }
    if (a == b || (const_b && (c == 1 || c == -1)) || (const_a && x == 0))
        return tn_dimw_const(work, 0);
    if (const_a && const_b) {
        int64_t rest = x % c;
        return tn_dimw_const(work, rest != 0 && (rest < 0) != (c < 0) ? rest + c : rest);
    }
    if ((const_b && c < 0) || is_negative_term(dims, b)) { /* -mod(-a, -b) */
        uint32_t id = negated(work, a, b, tn_dimw_mod);
        id = id == 0 ? 0 : tn_dimw_scale(work, id, -1);
        if (id != 0 || !may_skip(work))
            return id;
        return tn_dimw_intern(work, TN_DIM_MOD, 0, (const uint32_t[]){a, b}, 2);
    }
    if (!const_b)
        return mod_general(work, a, b);
    tn_poly top;
    uint32_t id = tn_poly_of(dims, a, &top, &work->why) ? mod_by_const(work, &top, c) : 0;
    tn_poly_free(dims, &top);
    return id;
}
