/* Arithmetic that does nothing: exact for every value, NaN, infinities and -0 included. (x + 0 is not: -0 + 0 is 0.) */
#include "passes/cleanup.h"

#define MAX_LOOK 8       /* views looked through */
#define MAX_UNIFORM 4096 /* elements of a constant that are compared */

const tn_tensor *tn_cleanup_uniform(const tn_graph *g, tn_value v) {
    for (int look = 0; look < MAX_LOOK; look++) {
        const tn_tensor *t = tn_value_constant(g, v);
        tn_node maker = tn_value_producer(g, v);
        if (!t && maker.id && tn_node_has_trait(g, maker, TN_VIEW) && tn_node_input_count(g, maker) == 1) {
            v = tn_node_input(g, maker, 0);
            continue;
        }
        if (!t || t->count < 1 || t->count > MAX_UNIFORM || t->dtype == TN_STRING ||
            tn_dtype_bits((tn_dtype)t->dtype) < 8 || !t->contiguous)
            return NULL;
        size_t size = (size_t)tn_dtype_bits((tn_dtype)t->dtype) / 8;
        for (int64_t i = 1; i < t->count; i++)
            if (memcmp(t->data, (const char *)t->data + (size_t)i * size, size) != 0)
                return NULL;
        return t;
    }
    return NULL;
}

/* Whether the value is everywhere this number; of floats the sign of 0 counts. */
static bool is_number(const tn_graph *g, tn_value v, int64_t number, bool negative_zero) {
    const tn_tensor *t = tn_cleanup_uniform(g, v);
    if (!t)
        return false;
    tn_dtype dtype = (tn_dtype)t->dtype;
    if (!tn_dtype_is_float(dtype))
        return tn_dtype_is_int(dtype) && !negative_zero && tn_load_i64(dtype, t->data, 0) == number;
    double x = tn_load_f64(dtype, t->data, 0);
    return x == (double)number && (number != 0 || (__builtin_signbit(x) != 0) == negative_zero);
}

static bool is_float(const tn_graph *g, tn_node n) {
    return tn_dtype_is_float(tn_value_dtype(g, tn_node_output(g, n, 0)));
}

static bool is_integer(const tn_graph *g, tn_node n) {
    return tn_dtype_is_int(tn_value_dtype(g, tn_node_output(g, n, 0)));
}

/* The other input when one satisfies `neutral`; null when none does. */
static tn_value other_than(const tn_graph *g, tn_node n, bool (*neutral)(const tn_graph *g, tn_node n, tn_value v)) {
    tn_value a = tn_node_input(g, n, 0), b = tn_node_input(g, n, 1);
    if (neutral(g, n, b))
        return a;
    return tn_node_has_trait(g, n, TN_COMMUTATIVE) && neutral(g, n, a) ? b : (tn_value){0};
}

/* Whether a broadcast repeats what only a run can tell to be 1, or of the size it has already. */
static bool spread_may_not_fit(const tn_graph *g, tn_value from, tn_value to) {
    int lead = tn_value_rank(g, to) - tn_value_rank(g, from);
    for (int i = 0; i < tn_value_rank(g, from); i++) {
        int64_t size;
        tn_dim dim = tn_value_dim(g, from, i);
        if (!tn_dim_equal(g, dim, tn_value_dim(g, to, lead + i)) && !(tn_dim_is_const(g, dim, &size) && size == 1))
            return true;
    }
    return false;
}

/* The same of other views: sizes that are not known stay, and those that are known multiply to the same. */
static bool view_may_not_fit(const tn_graph *g, tn_value from, tn_value to) {
    int64_t before = 1, after = 1, size;
    bool used[TN_MAX_RANK] = {false};
    int rank = tn_value_rank(g, to);
    for (int i = 0; i < tn_value_rank(g, from); i++) {
        tn_dim dim = tn_value_dim(g, from, i);
        int k = 0;
        if (tn_dim_is_const(g, dim, &size)) {
            if (__builtin_mul_overflow(before, size, &before))
                return true;
            continue;
        }
        while (k < rank && (used[k] || tn_value_dim(g, to, k).id != dim.id))
            k++;
        if (k == rank)
            return true;
        used[k] = true;
    }
    for (int i = 0; i < rank; i++)
        if (!used[i] &&
            (!tn_dim_is_const(g, tn_value_dim(g, to, i), &size) || __builtin_mul_overflow(after, size, &after)))
            return true;
    return before != after;
}

/* Whether `v`, looked at through elementwise operators and views, asks for sizes that only a run can tell to fit: who drops it drops
   that refusal. */
static bool may_not_fit(const tn_graph *g, tn_value v, int look) {
    tn_node maker = tn_value_producer(g, v);
    if (!maker.id || look == MAX_LOOK ||
        !(tn_node_has_trait(g, maker, TN_ELEMENTWISE) || tn_node_has_trait(g, maker, TN_VIEW)))
        return false;
    tn_value from = tn_node_input(g, maker, 0);
    if (tn_node_has_trait(g, maker, TN_VIEW) && tn_value_rank(g, from) >= 0 && tn_value_rank(g, v) >= 0) {
        if (tn_node_has_trait(g, maker, TN_SPREADS) ? spread_may_not_fit(g, from, v) : view_may_not_fit(g, from, v))
            return true;
    }
    for (uint32_t i = 0; i < tn_node_input_count(g, maker); i++)
        if (may_not_fit(g, tn_node_input(g, maker, i), look + 1))
            return true;
    return false;
}

static tn_status drop_neutral(tn_rewriter *r, tn_node n, bool (*neutral)(const tn_graph *g, tn_node n, tn_value v)) {
    const tn_graph *g = tn_rewriter_graph(r);
    tn_value x = other_than(g, n, neutral), a = tn_node_input(g, n, 0), b = tn_node_input(g, n, 1);
    return x.id && !may_not_fit(g, x.id == a.id ? b : a, 0) ? tn_cleanup_forward(r, n, x) : TN_OK;
}

static bool is_one(const tn_graph *g, tn_node n, tn_value v) {
    (void)n;
    return is_number(g, v, 1, false);
}

/* what may be added: 0 for integers, -0 for floats */
static bool adds_nothing(const tn_graph *g, tn_node n, tn_value v) {
    return is_number(g, v, 0, is_float(g, n));
}

/* what may be taken away: 0, not -0 */
static bool takes_nothing(const tn_graph *g, tn_node n, tn_value v) {
    (void)n;
    return is_number(g, v, 0, false);
}

static bool is_bits(const tn_graph *g, tn_node n, tn_value v, bool ones) {
    const tn_tensor *t = tn_cleanup_uniform(g, v);
    if (!t || (t->dtype != TN_BOOL && !is_integer(g, n)))
        return false;
    unsigned char wanted = (unsigned char)(t->dtype == TN_BOOL ? ones : ones ? 0xff : 0);
    for (int i = 0; i < tn_dtype_bits((tn_dtype)t->dtype) / 8; i++)
        if (((const unsigned char *)t->data)[i] != wanted)
            return false;
    return true;
}

static bool is_zeros(const tn_graph *g, tn_node n, tn_value v) {
    return is_bits(g, n, v, false);
}

static bool is_ones(const tn_graph *g, tn_node n, tn_value v) {
    return is_bits(g, n, v, true);
}

static tn_status by_one(tn_rewriter *r, tn_node n) {
    return drop_neutral(r, n, is_one);
}

static tn_status add_nothing(tn_rewriter *r, tn_node n) {
    return drop_neutral(r, n, adds_nothing);
}

static tn_status take_nothing(tn_rewriter *r, tn_node n) {
    return drop_neutral(r, n, takes_nothing);
}

/* x or 0, x xor 0, x shl 0, x shr 0 */
static tn_status no_bits(tn_rewriter *r, tn_node n) {
    return drop_neutral(r, n, is_zeros);
}

/* min(x, x), max, and, or */
static tn_status twins(tn_rewriter *r, tn_node n) {
    const tn_graph *g = tn_rewriter_graph(r);
    tn_value a = tn_node_input(g, n, 0);
    return a.id == tn_node_input(g, n, 1).id ? tn_cleanup_forward(r, n, a) : TN_OK;
}

static tn_status all_bits(tn_rewriter *r, tn_node n) {
    return drop_neutral(r, n, is_ones);
}

/* f(f(x)) = x */
static tn_status involution(tn_rewriter *r, tn_node n) {
    const tn_graph *g = tn_rewriter_graph(r);
    tn_node inner = tn_cleanup_same_op(g, n, 0);
    return inner.id ? tn_cleanup_forward(r, n, tn_node_input(g, inner, 0)) : TN_OK;
}

/* f(f(x)) = f(x), of rows that say so */
static bool is_idempotent(const tn_graph *g, tn_node n, void *user) {
    (void)user;
    return tn_node_has_trait(g, n, TN_IDEMPOTENT) && tn_node_input_count(g, n) == 1 && tn_node_attr_count(g, n) == 0;
}

static tn_status once_is_enough(tn_rewriter *r, tn_node n) {
    const tn_graph *g = tn_rewriter_graph(r);
    tn_node inner = tn_cleanup_same_op(g, n, 0);
    return inner.id ? tn_cleanup_forward(r, n, tn_node_input(g, n, 0)) : TN_OK;
}

/* select(c, x, x); select(true, x, y); select(false, x, y) */
static tn_status known_select(tn_rewriter *r, tn_node n) {
    const tn_graph *g = tn_rewriter_graph(r);
    tn_value a = tn_node_input(g, n, 1), b = tn_node_input(g, n, 2);
    if (a.id == b.id)
        return may_not_fit(g, tn_node_input(g, n, 0), 0) ? TN_OK : tn_cleanup_forward(r, n, a);
    const tn_tensor *t = tn_cleanup_uniform(g, tn_node_input(g, n, 0));
    if (!t || t->dtype != TN_BOOL)
        return TN_OK;
    bool first = *(const unsigned char *)t->data;
    return may_not_fit(g, first ? b : a, 0) ? TN_OK : tn_cleanup_forward(r, n, first ? a : b);
}

#define ROW(NAME, ROOT, APPLY) \
    { .name = NAME, .root = ROOT, .apply = APPLY, .effect = TN_BIT_EXACT }

const tn_rewrite tn_cleanup_algebra_rows[] = {
    ROW("mul-one", "mul", by_one),
    ROW("div-one", "div", by_one),
    ROW("add-nothing", "add", add_nothing),
    ROW("sub-nothing", "sub", take_nothing),
    ROW("or-nothing", "or", no_bits),
    ROW("xor-nothing", "xor", no_bits),
    ROW("shl-nothing", "shl", no_bits),
    ROW("shr-nothing", "shr", no_bits),
    ROW("and-all", "and", all_bits),
    ROW("and-twins", "and", twins),
    ROW("or-twins", "or", twins),
    ROW("min-twins", "min", twins),
    ROW("max-twins", "max", twins),
    ROW("neg-neg", "neg", involution),
    ROW("not-not", "not", involution),
    ROW("bit-not-bit-not", "bit_not", involution),
    ROW("known-select", "select", known_select),
    {.name = "once-is-enough", .condition = is_idempotent, .apply = once_is_enough, .effect = TN_BIT_EXACT},
};
const uint32_t tn_cleanup_algebra_count = sizeof tn_cleanup_algebra_rows / sizeof tn_cleanup_algebra_rows[0];
