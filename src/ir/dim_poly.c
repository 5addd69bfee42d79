/* Sums and products of dimensions: polynomials over interned monomials. */
#include <string.h>

#include "ir/dim_work.h"

/* Two sums with more terms between them are multiplied out no further. */
#define MAX_EXPANDED 16

void tn_poly_free(const tn_dims *dims, tn_poly *poly) {
    tn_vec_free(dims->heap, &poly->terms);
    poly->constant = 0;
}

static tn_poly_term term_of(const tn_dims *dims, uint32_t id) {
    const tn_dim_expr *e = tn_dim_at(dims, id);
    return e->kind == TN_DIM_MUL ? (tn_poly_term){e->constant, e->unit} : (tn_poly_term){1, id};
}

static void sort_terms(tn_poly_term *terms, uint32_t count) {
    for (uint32_t i = 1; i < count; i++) { /* nearly sorted as a rule */
        tn_poly_term term = terms[i];
        uint32_t at = i;
        for (; at > 0 && terms[at - 1].mono > term.mono; at--)
            terms[at] = terms[at - 1];
        terms[at] = term;
    }
}

static bool reserve(const tn_dims *dims, tn_poly *poly, uint32_t extra, tn_dim_why *why) {
    if (poly->terms.len + extra > TN_DIM_MAX_SIZE) {
        *why = TN_DIM_TOO_LARGE;
        return false;
    }
    if (!tn_vec_reserve(dims->heap, &poly->terms, extra)) {
        *why = TN_DIM_MEMORY;
        return false;
    }
    return true;
}

bool tn_poly_of(const tn_dims *dims, uint32_t id, tn_poly *out, tn_dim_why *why) {
    const tn_dim_expr *e = tn_dim_at(dims, id);
    memset(out, 0, sizeof *out);
    if (e->kind == TN_DIM_CONST) {
        out->constant = e->constant;
        return true;
    }
    uint32_t count = e->kind == TN_DIM_ADD ? e->nargs : 1;
    if (!reserve(dims, out, count, why))
        return false;
    if (e->kind == TN_DIM_ADD) {
        out->constant = e->constant;
        for (uint32_t i = 0; i < count; i++)
            out->terms.data[i] = term_of(dims, tn_dim_args(dims, e)[i]);
        sort_terms(out->terms.data, count);
    } else {
        out->terms.data[0] = term_of(dims, id);
    }
    out->terms.len = count;
    return true;
}

bool tn_poly_add(const tn_dims *dims, tn_poly *to, const tn_poly *from, int64_t scale, tn_dim_why *why) {
    int64_t constant;
    if (__builtin_mul_overflow(from->constant, scale, &constant) ||
        __builtin_add_overflow(to->constant, constant, &constant)) {
        *why = TN_DIM_OVERFLOW;
        return false;
    }
    tn_poly sum = {0};
    if ((to->terms.len || from->terms.len) && !reserve(dims, &sum, to->terms.len + from->terms.len, why))
        return false;
    const tn_poly_term *a = to->terms.data, *b = from->terms.data;
    uint32_t i = 0, j = 0;
    while (i < to->terms.len || j < from->terms.len) {
        tn_poly_term term;
        if (j == from->terms.len || (i < to->terms.len && a[i].mono < b[j].mono)) {
            term = a[i++];
        } else {
            term = b[j++];
            bool overflow = __builtin_mul_overflow(term.coef, scale, &term.coef);
            if (!overflow && i < to->terms.len && a[i].mono == term.mono)
                overflow = __builtin_add_overflow(term.coef, a[i++].coef, &term.coef);
            if (overflow) {
                *why = TN_DIM_OVERFLOW;
                tn_poly_free(dims, &sum);
                return false;
            }
        }
        if (term.coef != 0)
            sum.terms.data[sum.terms.len++] = term;
    }
    sum.constant = constant;
    tn_poly_free(dims, to);
    *to = sum;
    return true;
}

bool tn_poly_add_term(const tn_dims *dims, tn_poly *to, uint32_t mono, int64_t coef, tn_dim_why *why) {
    tn_poly_term term = {coef, mono};
    tn_poly one = {0};
    one.terms.data = &term;
    one.terms.len = 1;
    return tn_poly_add(dims, to, &one, 1, why);
}

static void sort_ids(uint32_t *ids, uint32_t count) {
    for (uint32_t i = 1; i < count; i++) {
        uint32_t id = ids[i], at = i;
        for (; at > 0 && ids[at - 1] > id; at--)
            ids[at] = ids[at - 1];
        ids[at] = id;
    }
}

const uint32_t *tn_dim_mono_atoms(const tn_dims *dims, const uint32_t *mono, uint32_t *count) {
    const tn_dim_expr *e = tn_dim_at(dims, *mono);
    if (e->kind != TN_DIM_MUL) {
        *count = 1;
        return mono;
    }
    *count = e->nargs;
    return tn_dim_args(dims, e);
}

/* coef * mono as an expression; coef is not 0. */
static uint32_t intern_term(tn_dim_work *work, int64_t coef, uint32_t mono) {
    uint32_t count;
    if (coef == 1)
        return mono;
    const uint32_t *atoms = tn_dim_mono_atoms(work->dims, &mono, &count);
    return tn_dimw_intern(work, TN_DIM_MUL, coef, atoms, count);
}

uint32_t tn_dimw_from_poly(tn_dim_work *work, const tn_poly *poly) {
    tn_heap *heap = work->dims->heap;
    uint32_t count = poly->terms.len, id = 0;
    if (count == 0)
        return tn_dimw_const(work, poly->constant);
    if (count == 1 && poly->constant == 0)
        return intern_term(work, poly->terms.data[0].coef, poly->terms.data[0].mono);
    uint32_t *args = tn_alloc_array(heap, count, sizeof *args);
    if (args == NULL) {
        work->why = TN_DIM_MEMORY;
        return 0;
    }
    bool ok = true;
    for (uint32_t i = 0; i < count && ok; i++) {
        args[i] = intern_term(work, poly->terms.data[i].coef, poly->terms.data[i].mono);
        ok = args[i] != 0;
    }
    if (ok) {
        sort_ids(args, count);
        id = tn_dimw_intern(work, TN_DIM_ADD, poly->constant, args, count);
    }
    tn_free(heap, args);
    return id;
}

uint32_t tn_dimw_add(tn_dim_work *work, uint32_t a, uint32_t b, int64_t scale) {
    tn_poly sum, other = {0};
    uint32_t id = 0;
    if (tn_poly_of(work->dims, a, &sum, &work->why) && tn_poly_of(work->dims, b, &other, &work->why) &&
        tn_poly_add(work->dims, &sum, &other, scale, &work->why))
        id = tn_dimw_from_poly(work, &sum);
    tn_poly_free(work->dims, &sum);
    tn_poly_free(work->dims, &other);
    return id;
}

uint32_t tn_dimw_scale(tn_dim_work *work, uint32_t a, int64_t scale) {
    uint32_t zero = tn_dimw_const(work, 0);
    return zero == 0 ? 0 : tn_dimw_add(work, zero, a, scale);
}

static bool is_sum(const tn_dims *dims, uint32_t id) {
    return tn_dim_at(dims, id)->kind == TN_DIM_ADD;
}

/* Whether a sum that was not multiplied out is among a monomial's atoms. */
static bool holds_sum(const tn_dims *dims, uint32_t mono) {
    uint32_t count;
    const uint32_t *atoms = tn_dim_mono_atoms(dims, &mono, &count);
    for (uint32_t i = 0; i < count; i++)
        if (is_sum(dims, atoms[i]))
            return true;
    return false;
}

/* The monomial of all atoms of two; nothing is multiplied out. */
static uint32_t mono_product(tn_dim_work *work, uint32_t a, uint32_t b) {
    tn_heap *heap = work->dims->heap;
    uint32_t na, nb, id = 0;
    const uint32_t *x = tn_dim_mono_atoms(work->dims, &a, &na), *y = tn_dim_mono_atoms(work->dims, &b, &nb);
    uint32_t *atoms = tn_alloc_array(heap, na + nb, sizeof *atoms);
    if (atoms == NULL) {
        work->why = TN_DIM_MEMORY;
        return 0;
    }
    memcpy(atoms, x, na * sizeof *atoms);
    memcpy(atoms + na, y, nb * sizeof *atoms);
    sort_ids(atoms, na + nb);
    id = tn_dimw_intern(work, TN_DIM_MUL, 1, atoms, na + nb);
    tn_free(heap, atoms);
    return id;
}

static uint32_t term_count(const tn_poly *poly) {
    return poly->terms.len + (poly->constant != 0);
}

/* to += coef * (a's term i) * (b's term j), the constants being term number `len`. */
static bool add_product(tn_dim_work *work, tn_poly *to, const tn_poly *a, uint32_t i, const tn_poly *b, uint32_t j) {
    int64_t x = i < a->terms.len ? a->terms.data[i].coef : a->constant;
    int64_t y = j < b->terms.len ? b->terms.data[j].coef : b->constant, coef;
    uint32_t m = i < a->terms.len ? a->terms.data[i].mono : 0, n = j < b->terms.len ? b->terms.data[j].mono : 0;
    if (__builtin_mul_overflow(x, y, &coef)) {
        work->why = TN_DIM_OVERFLOW;
        return false;
    }
    if (coef == 0)
        return true;
    if (m == 0 && n == 0) {
        const tn_poly constant = {.constant = coef};
        return tn_poly_add(work->dims, to, &constant, 1, &work->why);
    }
    uint32_t mono = m == 0 ? n : n == 0 ? m : mono_product(work, m, n);
    return mono != 0 && tn_poly_add_term(work->dims, to, mono, coef, &work->why);
}

static uint32_t mul_polys(tn_dim_work *work, uint32_t a, const tn_poly *x, uint32_t b, const tn_poly *y) {
    uint32_t nx = term_count(x), ny = term_count(y);
    if (nx == 0 || ny == 0)
        return tn_dimw_const(work, 0);
    bool expand = nx == 1 || ny == 1 || nx * ny <= MAX_EXPANDED;
    /* A monomial that holds a sum stays a monomial: (A)*(B) times (C). */
    if (nx == 1 && ny > 1 && x->terms.len == 1 && holds_sum(work->dims, x->terms.data[0].mono)) {
        uint32_t mono = mono_product(work, x->terms.data[0].mono, b);
        return mono == 0 ? 0 : intern_term(work, x->terms.data[0].coef, mono);
    }
    if (ny == 1 && nx > 1 && y->terms.len == 1 && holds_sum(work->dims, y->terms.data[0].mono)) {
        uint32_t mono = mono_product(work, a, y->terms.data[0].mono);
        return mono == 0 ? 0 : intern_term(work, y->terms.data[0].coef, mono);
    }
    if (!expand)
        return mono_product(work, a, b);
    tn_poly product = {0};
    bool ok = true;
    for (uint32_t i = 0; i <= x->terms.len && ok; i++)
        for (uint32_t j = 0; j <= y->terms.len && ok; j++)
            ok = add_product(work, &product, x, i, y, j);
    uint32_t id = ok ? tn_dimw_from_poly(work, &product) : 0;
    tn_poly_free(work->dims, &product);
    return id;
}

uint32_t tn_dimw_mul(tn_dim_work *work, uint32_t a, uint32_t b) {
    tn_poly x, y = {0};
    uint32_t id = 0;
    if (tn_poly_of(work->dims, a, &x, &work->why) && tn_poly_of(work->dims, b, &y, &work->why))
        id = mul_polys(work, a, &x, b, &y);
    tn_poly_free(work->dims, &x);
    tn_poly_free(work->dims, &y);
    return id;
}

uint32_t tn_dimw_product(tn_dim_work *work, uint32_t *atoms, uint32_t count) {
    const tn_dims *dims = work->dims;
    uint32_t id = 0;
    /* Sums first, the longest first: what was not multiplied out is not multiplied out now. */
    for (uint32_t i = 1; i < count; i++) {
        uint32_t atom = atoms[i], at = i, rank = is_sum(dims, atom) ? tn_dim_at(dims, atom)->nargs : 0;
        rank += is_sum(dims, atom) && tn_dim_at(dims, atom)->constant != 0;
        for (; at > 0; at--) {
            const tn_dim_expr *before = tn_dim_at(dims, atoms[at - 1]);
            if ((before->kind == TN_DIM_ADD ? before->nargs + (before->constant != 0) : 0) >= rank)
                break;
            atoms[at] = atoms[at - 1];
        }
        atoms[at] = atom;
    }
    if (count == 0)
        return tn_dimw_const(work, 1);
    id = atoms[0];
    for (uint32_t i = 1; i < count && id != 0; i++)
        id = tn_dimw_mul(work, id, atoms[i]);
    return id;
}

bool tn_dim_mono_divides(const tn_dims *dims, uint32_t a, uint32_t b, uint32_t *rest, uint32_t *nrest) {
    uint32_t na, nb, j = 0;
    const uint32_t *x = tn_dim_mono_atoms(dims, &a, &na), *y = tn_dim_mono_atoms(dims, &b, &nb);
    *nrest = 0;
    for (uint32_t i = 0; i < na; i++) {
        if (j < nb && x[i] == y[j])
            j++;
        else
            rest[(*nrest)++] = x[i];
    }
    return j == nb;
}

/* --- exact division --- */

bool tn_dimw_take_multiples(tn_dim_work *work, tn_poly *a, tn_poly_term by, tn_poly *quotient) {
    tn_dims *dims = work->dims;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < a->terms.len; i++) {
        tn_poly_term term = a->terms.data[i];
        uint32_t count, left, id = 0;
        tn_dim_mono_atoms(dims, &term.mono, &count);
        uint32_t *atoms = tn_alloc_array(dims->heap, count, sizeof *atoms);
        if (atoms == NULL) {
            work->why = TN_DIM_MEMORY;
            return false;
        }
        bool divides = term.coef % by.coef == 0 && tn_dim_mono_divides(dims, term.mono, by.mono, atoms, &left);
        if (divides)
            id = tn_dimw_product(work, atoms, left);
        tn_free(dims->heap, atoms);
        if (!divides) {
            a->terms.data[kept++] = term;
            continue;
        }
        tn_poly part = {0};
        bool ok = id != 0 && tn_poly_of(dims, id, &part, &work->why) &&
                  tn_poly_add(dims, quotient, &part, term.coef / by.coef, &work->why);
        tn_poly_free(dims, &part);
        if (!ok)
            return false;
    }
    a->terms.len = kept;
    return true;
}

/* A monomial order (graded, then lexicographic): whether a comes before b, as the leading one. */
static bool leads(const tn_dims *dims, uint32_t a, uint32_t b) {
    uint32_t na, nb;
    const uint32_t *x = tn_dim_mono_atoms(dims, &a, &na), *y = tn_dim_mono_atoms(dims, &b, &nb);
    if (na != nb)
        return na > nb;
    for (uint32_t i = 0; i < na; i++)
        if (x[i] != y[i])
            return x[i] < y[i];
    return false;
}

static tn_poly_term leading_term(const tn_dims *dims, const tn_poly *poly) {
    tn_poly_term best = poly->terms.data[0];
    for (uint32_t i = 1; i < poly->terms.len; i++)
        if (leads(dims, poly->terms.data[i].mono, best.mono))
            best = poly->terms.data[i];
    return best;
}

/* One step of long division: rest -= t * b, quotient += t, with t = leading terms' quotient. 1: done, 0: does not divide,
   -1: failed. */
static int division_step(tn_dim_work *work, tn_poly *rest, tn_poly *quotient, uint32_t b, tn_poly_term b_leads) {
    tn_poly_term lead = leading_term(work->dims, rest);
    uint32_t count, left, t = 0;
    tn_dim_mono_atoms(work->dims, &lead.mono, &count);
    if (b_leads.coef == -1 || lead.coef % b_leads.coef != 0) {
        if (b_leads.coef != -1 || lead.coef == INT64_MIN)
            return 0;
    }
    int64_t coef = lead.coef / b_leads.coef;
    uint32_t *atoms = tn_alloc_array(work->dims->heap, count, sizeof *atoms);
    if (atoms == NULL) {
        work->why = TN_DIM_MEMORY;
        return -1;
    }
    bool divides = tn_dim_mono_divides(work->dims, lead.mono, b_leads.mono, atoms, &left);
    if (divides && (t = tn_dimw_product(work, atoms, left)) != 0)
        t = tn_dimw_scale(work, t, coef);
    tn_free(work->dims->heap, atoms);
    if (!divides)
        return 0;
    uint32_t product = t == 0 ? 0 : tn_dimw_mul(work, t, b);
    tn_poly part = {0};
    bool ok = product != 0 && tn_poly_of(work->dims, product, &part, &work->why) &&
              tn_poly_add(work->dims, rest, &part, -1, &work->why);
    tn_poly_free(work->dims, &part);
    ok = ok && tn_poly_of(work->dims, t, &part, &work->why) && tn_poly_add(work->dims, quotient, &part, 1, &work->why);
    tn_poly_free(work->dims, &part);
    return ok ? 1 : -1;
}

/* Whether the sum `b` stands whole, as an atom, in every term. */
static bool stands_whole(const tn_dims *dims, const tn_poly *poly, uint32_t b) {
    bool whole = is_sum(dims, b) && poly->constant == 0;
    for (uint32_t i = 0; i < poly->terms.len && whole; i++) {
        uint32_t count;
        const uint32_t *atoms = tn_dim_mono_atoms(dims, &poly->terms.data[i].mono, &count);
        whole = false;
        for (uint32_t k = 0; k < count; k++)
            whole = whole || atoms[k] == b;
    }
    return whole;
}

uint32_t tn_dimw_divide_exact(tn_dim_work *work, uint32_t a, uint32_t b) {
    tn_dims *dims = work->dims;
    tn_poly rest, quotient = {0}, divisor = {0};
    int step = 1;
    uint32_t id = 0;
    if (!tn_poly_of(dims, a, &rest, &work->why) || !tn_poly_of(dims, b, &divisor, &work->why))
        step = -1;
    else if (divisor.terms.len == 0)
        step = 0;
    else if (stands_whole(dims, &rest, b))
        step = tn_dimw_take_multiples(work, &rest, (tn_poly_term){1, b}, &quotient) ? 1 : -1;
    for (int steps = 0; step == 1 && rest.terms.len > 0; steps++)
        step = steps < 64 ? division_step(work, &rest, &quotient, b, leading_term(dims, &divisor)) : 0;
    if (step == 1 && rest.constant == 0)
        id = tn_dimw_from_poly(work, &quotient);
    if (id == 0 && (work->why == TN_DIM_OVERFLOW || work->why == TN_DIM_TOO_LARGE))
        work->why = TN_DIM_FINE;
    tn_poly_free(dims, &rest);
    tn_poly_free(dims, &quotient);
    tn_poly_free(dims, &divisor);
    return id;
}
