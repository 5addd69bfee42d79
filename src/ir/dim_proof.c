/* Proofs about dimensions: whether a polynomial is never negative, and from that equality and order. Reads only. */
#include "ir/dim_work.h"
#include "ir/graph.h"

#define PROOF_DEPTH 4
#define PROOF_STEPS 64

static bool nonneg(const tn_dims *dims, const tn_poly *poly, int depth, int *steps);

/* scale * (poly without term i) + coef * (polynomial of `by`) + offset >= 0, with coef term i's. */
static bool nonneg_with(const tn_dims *dims, const tn_poly *poly, uint32_t i, int64_t scale, uint32_t by,
                        int64_t offset, int depth, int *steps) {
    tn_poly changed = {0}, part = {0};
    tn_poly_term term = poly->terms.data[i];
    tn_dim_why why;
    const tn_poly constant = {.constant = offset};
    int64_t cancel;
    bool ok = !__builtin_mul_overflow(term.coef, scale, &cancel) &&
              !__builtin_sub_overflow((int64_t)0, cancel, &cancel) && tn_poly_add(dims, &changed, poly, scale, &why) &&
              tn_poly_add_term(dims, &changed, term.mono, cancel, &why) && tn_poly_of(dims, by, &part, &why) &&
              tn_poly_add(dims, &changed, &part, term.coef, &why) && tn_poly_add(dims, &changed, &constant, 1, &why) &&
              nonneg(dims, &changed, depth - 1, steps);
    tn_poly_free(dims, &changed);
    tn_poly_free(dims, &part);
    return ok;
}

/* Replaces floordiv(x, c), c > 0, by its bound: x/c from above, (x - c + 1)/c from below; all times c. */
static bool by_quotient(const tn_dims *dims, const tn_poly *poly, uint32_t i, int depth, int *steps) {
    const uint32_t *args = tn_dim_args(dims, tn_dim_at(dims, poly->terms.data[i].mono));
    const tn_dim_expr *divisor = tn_dim_at(dims, args[1]);
    int64_t coef = poly->terms.data[i].coef, offset = 0;
    if (divisor->kind != TN_DIM_CONST || divisor->constant <= 0)
        return false;
    if (coef > 0 && __builtin_mul_overflow(coef, 1 - divisor->constant, &offset))
        return false;
    return nonneg_with(dims, poly, i, divisor->constant, args[0], offset, depth, steps);
}

/* Replaces min or max by its operands: where that lowers the sum one operand is enough, else all must do. */
static bool by_operands(const tn_dims *dims, const tn_poly *poly, uint32_t i, int depth, int *steps) {
    const tn_dim_expr *e = tn_dim_at(dims, poly->terms.data[i].mono);
    bool one_is_enough = (e->kind == TN_DIM_MAX) == (poly->terms.data[i].coef > 0);
    for (uint32_t k = 0; k < e->nargs; k++)
        if (nonneg_with(dims, poly, i, 1, tn_dim_args(dims, e)[k], 0, depth, steps) == one_is_enough)
            return one_is_enough;
    return !one_is_enough;
}

/* Weakens a positive term c*m*x to c*low(x)*m, for a negative term of m >= 0: N*M - N is not negative when M >= 1. */
static bool by_factor(const tn_dims *dims, const tn_poly *poly, uint32_t i, int depth, int *steps) {
    tn_poly_term negative = poly->terms.data[i];
    const tn_poly alone = {.terms = {&(tn_poly_term){1, negative.mono}, 1, 1}};
    if (negative.coef >= 0 || tn_poly_interval(dims, &alone).low < 0)
        return false;
    for (uint32_t j = 0; j < poly->terms.len; j++) {
        tn_poly_term positive = poly->terms.data[j];
        uint32_t count, left;
        tn_dim_mono_atoms(dims, &positive.mono, &count);
        if (positive.coef <= 0 || i == j)
            continue;
        uint32_t *atoms = tn_alloc_array(dims->heap, count, sizeof *atoms);
        if (atoms == NULL)
            return false;
        bool divides = tn_dim_mono_divides(dims, positive.mono, negative.mono, atoms, &left);
        /* low bound of the product of what is left, each at least 1 */
        int64_t least = 1;
        for (uint32_t k = 0; k < left && divides; k++) {
            tn_interval x = tn_dim_interval(dims, atoms[k]);
            divides = x.low >= 1 && !__builtin_mul_overflow(least, x.low, &least);
        }
        tn_free(dims->heap, atoms);
        int64_t gain, loss;
        if (!divides || __builtin_mul_overflow(positive.coef, least, &gain) ||
            __builtin_sub_overflow((int64_t)0, positive.coef, &loss))
            continue;
        tn_poly changed = {0};
        tn_dim_why why;
        bool ok =
            tn_poly_add(dims, &changed, poly, 1, &why) && tn_poly_add_term(dims, &changed, positive.mono, loss, &why) &&
            tn_poly_add_term(dims, &changed, negative.mono, gain, &why) && nonneg(dims, &changed, depth - 1, steps);
        tn_poly_free(dims, &changed);
        if (ok)
            return true;
    }
    return false;
}

static bool nonneg(const tn_dims *dims, const tn_poly *poly, int depth, int *steps) {
    if (tn_poly_interval(dims, poly).low >= 0)
        return true;
    if (depth == 0 || poly->terms.len > 64)
        return false;
    for (uint32_t i = 0; i < poly->terms.len; i++) {
        tn_dim_kind kind = (tn_dim_kind)tn_dim_at(dims, poly->terms.data[i].mono)->kind;
        if (--*steps < 0)
            return false;
        if ((kind == TN_DIM_FLOORDIV && by_quotient(dims, poly, i, depth, steps)) ||
            ((kind == TN_DIM_MIN || kind == TN_DIM_MAX) && by_operands(dims, poly, i, depth, steps)) ||
            by_factor(dims, poly, i, depth, steps))
            return true;
    }
    return false;
}

bool tn_poly_is_nonneg(const tn_dims *dims, const tn_poly *poly) {
    int steps = PROOF_STEPS, exact = tn_pieces_nonneg(dims, poly);
    return exact >= 0 ? exact : nonneg(dims, poly, PROOF_DEPTH, &steps);
}

/* scale * (b - a) + offset. False when it cannot be written down. */
static bool difference(const tn_dims *dims, uint32_t a, uint32_t b, int64_t offset, tn_poly *out) {
    tn_dim_why why;
    tn_poly other = {0};
    const tn_poly constant = {.constant = offset};
    bool ok = tn_poly_of(dims, b, out, &why) && tn_poly_of(dims, a, &other, &why) &&
              tn_poly_add(dims, out, &other, -1, &why) && tn_poly_add(dims, out, &constant, 1, &why);
    tn_poly_free(dims, &other);
    if (!ok)
        tn_poly_free(dims, out);
    return ok;
}

bool tn_dim_is_at_most(const tn_dims *dims, uint32_t a, int64_t offset, uint32_t b) {
    tn_poly gap;
    if (offset == INT64_MIN || !difference(dims, a, b, -offset, &gap))
        return false;
    bool proved = tn_poly_is_nonneg(dims, &gap);
    tn_poly_free(dims, &gap);
    return proved;
}

/* Whether no integers make it 0: the coefficients share a divisor that the constant has not. */
static bool misses_zero(const tn_poly *poly) {
    int64_t divisor = 0;
    for (uint32_t i = 0; i < poly->terms.len; i++) {
        int64_t coef = poly->terms.data[i].coef;
        if (coef == INT64_MIN)
            return false;
        coef = coef < 0 ? -coef : coef;
        divisor = divisor == 0 ? coef : tn_gcd_i64(coef, divisor);
    }
    return divisor == 0 ? poly->constant != 0 : poly->constant % divisor != 0;
}

/* The table of a graph when both are expressions of it, else NULL. */
static const tn_dims *table_of(const tn_graph *graph, tn_dim a, tn_dim b) {
    const tn_dims *dims = graph == NULL ? NULL : tn_graph_dims((tn_graph *)(uintptr_t)graph);
    if (dims == NULL || a.id == 0 || b.id == 0 || a.id >= dims->expr.len || b.id >= dims->expr.len)
        return NULL;
    return dims;
}

bool tn_dim_equal(const tn_graph *graph, tn_dim a, tn_dim b) {
    const tn_dims *dims = table_of(graph, a, b);
    if (dims == NULL)
        return false;
    if (a.id == b.id)
        return true;
    if (tn_dim_at(dims, a.id)->kind == TN_DIM_CONST && tn_dim_at(dims, b.id)->kind == TN_DIM_CONST)
        return false;
    return tn_dim_is_at_most(dims, a.id, 0, b.id) && tn_dim_is_at_most(dims, b.id, 0, a.id);
}

bool tn_dim_never_equal(const tn_graph *graph, tn_dim a, tn_dim b) {
    const tn_dims *dims = table_of(graph, a, b);
    if (dims == NULL || a.id == b.id)
        return false;
    if (tn_dim_at(dims, a.id)->kind == TN_DIM_CONST && tn_dim_at(dims, b.id)->kind == TN_DIM_CONST)
        return true;
    tn_poly gap;
    if (!difference(dims, a.id, b.id, 0, &gap))
        return false;
    bool proved = misses_zero(&gap);
    tn_poly_free(dims, &gap);
    return proved || tn_dim_is_at_most(dims, a.id, 1, b.id) || tn_dim_is_at_most(dims, b.id, 1, a.id);
}

bool tn_dim_at_most(const tn_graph *graph, tn_dim a, tn_dim b) {
    const tn_dims *dims = table_of(graph, a, b);
    return dims != NULL && (a.id == b.id || tn_dim_is_at_most(dims, a.id, 0, b.id));
}
