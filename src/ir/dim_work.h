/* How dim_*.c work on expressions: polynomials over interned monomials, and operations on ids that answer 0 on failure. */
#ifndef TN_IR_DIM_WORK_H
#define TN_IR_DIM_WORK_H

#include "base/error.h"
#include "ir/dim.h"

/* Why an operation failed. What only costs a simplification (OVERFLOW, TOO_LARGE) is told from what must be reported. */
typedef enum tn_dim_why {
    TN_DIM_FINE,
    TN_DIM_MEMORY, /* the thread's error is set */
    TN_DIM_OVERFLOW,
    TN_DIM_TOO_LARGE,
    TN_DIM_ZERO_DIVISOR,
    TN_DIM_MISMATCH /* a broadcast of two different constants */
} tn_dim_why;

typedef struct tn_dim_work {
    tn_dims *dims;
    tn_dim_why why;
} tn_dim_work;

/* Sum of coefficient * monomial, sorted by monomial (an atom or a MUL with coefficient 1), plus a constant. */
typedef struct tn_poly_term {
    int64_t coef;
    uint32_t mono;
} tn_poly_term;
typedef struct tn_poly {
    int64_t constant;
    TN_VEC(tn_poly_term) terms;
} tn_poly;

/* Bounds; INT64_MIN as low and INT64_MAX as high mean unbounded. */
typedef struct tn_interval {
    int64_t low, high;
} tn_interval;

static inline bool tn_interval_is_point(tn_interval x) {
    return x.low == x.high && x.low != INT64_MIN && x.low != INT64_MAX;
}
static inline const tn_dim_expr *tn_dim_at(const tn_dims *dims, uint32_t id) {
    return &dims->expr.data[id];
}
static inline const uint32_t *tn_dim_args(const tn_dims *dims, const tn_dim_expr *e) {
    return e->nargs > 0 ? dims->arg.data + e->args : NULL;
}
static inline int64_t tn_floordiv_i64(int64_t a, int64_t b) { /* b > 0 */
    return a / b - (a % b < 0);
}
static inline int64_t tn_gcd_i64(int64_t a, int64_t b) { /* of magnitudes; b > 0, so the result fits */
    uint64_t x = a < 0 ? 0 - (uint64_t)a : (uint64_t)a, y = (uint64_t)b;
    while (x != 0) {
        uint64_t rest = y % x;
        y = x;
        x = rest;
    }
    return (int64_t)y;
}

/* MIN and MAX of more operands are refused as too large: they are compared pair by pair. */
#define TN_DIM_MAX_EXTREMES 32

/* dim.c: interning. `args` may point into dims->arg. */
uint32_t tn_dimw_intern(tn_dim_work *work, tn_dim_kind kind, int64_t constant, const uint32_t *args, uint32_t nargs);
uint32_t tn_dimw_const(tn_dim_work *work, int64_t value);
/* A symbol by name; `fresh` is the name space. */
uint32_t tn_dimw_symbol(tn_dim_work *work, const char *name, size_t length, bool fresh);
/* Whether a name is in the form of fresh symbols (u1, u2, ...); *number is its number. */
bool tn_dim_name_is_fresh(const char *name, size_t length, uint32_t *number);
/* Turns `why` into the thread's error; returns its status. */
tn_status tn_dimw_report(const tn_dim_work *work);

/* dim_poly.c */
void tn_poly_free(const tn_dims *dims, tn_poly *poly);
/* The polynomial of an expression. Reads only. */
bool tn_poly_of(const tn_dims *dims, uint32_t id, tn_poly *out, tn_dim_why *why);
/* to += scale * from; on failure `to` is unchanged. */
bool tn_poly_add(const tn_dims *dims, tn_poly *to, const tn_poly *from, int64_t scale, tn_dim_why *why);
bool tn_poly_add_term(const tn_dims *dims, tn_poly *to, uint32_t mono, int64_t coef, tn_dim_why *why);
uint32_t tn_dimw_from_poly(tn_dim_work *work, const tn_poly *poly);
uint32_t tn_dimw_add(tn_dim_work *work, uint32_t a, uint32_t b, int64_t scale); /* a + scale * b */
uint32_t tn_dimw_scale(tn_dim_work *work, uint32_t a, int64_t scale);
uint32_t tn_dimw_mul(tn_dim_work *work, uint32_t a, uint32_t b);
/* The product of atoms, in the one order that gives the canonical form; reorders `atoms`. */
uint32_t tn_dimw_product(tn_dim_work *work, uint32_t *atoms, uint32_t count);
/* The atoms of a monomial. */
const uint32_t *tn_dim_mono_atoms(const tn_dims *dims, const uint32_t *mono, uint32_t *count);
/* Whether monomial b's atoms are among a's; the rest, sorted, goes to `rest` (room for a's atoms). */
bool tn_dim_mono_divides(const tn_dims *dims, uint32_t a, uint32_t b, uint32_t *rest, uint32_t *nrest);
/* Moves the terms of `a` that the term `by` divides to `quotient`, divided. */
bool tn_dimw_take_multiples(tn_dim_work *work, tn_poly *a, tn_poly_term by, tn_poly *quotient);
/* a / b when b divides it as a polynomial; else 0, with work->why FINE. */
uint32_t tn_dimw_divide_exact(tn_dim_work *work, uint32_t a, uint32_t b);

/* dim_div.c, dim_minmax.c */
uint32_t tn_dimw_floordiv(tn_dim_work *work, uint32_t a, uint32_t b);
uint32_t tn_dimw_ceildiv(tn_dim_work *work, uint32_t a, uint32_t b);
uint32_t tn_dimw_mod(tn_dim_work *work, uint32_t a, uint32_t b);
uint32_t tn_dimw_lattice(tn_dim_work *work, tn_dim_kind kind, uint32_t a, uint32_t b); /* MIN, MAX, BROADCAST */
/* kind applied to a and b; ADD and MUL too. */
uint32_t tn_dimw_apply(tn_dim_work *work, tn_dim_kind kind, uint32_t a, uint32_t b);

/* dim_bounds.c. Reads only. */
tn_interval tn_dim_interval(const tn_dims *dims, uint32_t id);
tn_interval tn_poly_interval(const tn_dims *dims, const tn_poly *poly);
tn_interval tn_interval_floordiv(tn_interval a, tn_interval b);
/* dim_pieces.c. Reads only. Whether poly >= 0 always: 1, 0, or -1 where it has no pieces. */
int tn_pieces_nonneg(const tn_dims *dims, const tn_poly *poly);
/* A MIN or MAX inside a or b that always equals MIN or MAX (kind) of the two, or 0. */
uint32_t tn_pieces_same_part(const tn_dims *dims, tn_dim_kind kind, uint32_t a, uint32_t b);
/* Whether broadcast(a, b) is a wherever it has a value. */
bool tn_pieces_broadcast_is(const tn_dims *dims, uint32_t a, uint32_t b);
/* dim_proof.c: whether poly >= 0 always. Reads only. */
bool tn_poly_is_nonneg(const tn_dims *dims, const tn_poly *poly);
/* Whether a + offset <= b always. */
bool tn_dim_is_at_most(const tn_dims *dims, uint32_t a, int64_t offset, uint32_t b);

#endif
