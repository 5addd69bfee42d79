/* Movement and casts that do nothing, or can be joined. Two nodes are joined only when no sizes exist that one of them refuses and
   the joined one would not. */
#define TN_NO_POSITIONS
#include <tenon/build.h>

#include "passes/cleanup.h"

/* A copy of a value's dims, which move when the graph grows; its rank. */
static int copy_dims(const tn_graph *g, tn_value v, tn_dim dims[TN_MAX_RANK]) {
    int rank = tn_value_rank(g, v);
    if (rank > 0)
        memcpy(dims, tn_value_dims(g, v), (size_t)rank * sizeof *dims);
    return rank;
}

static bool is_const(const tn_graph *g, tn_dim dim, int64_t value) {
    int64_t have;
    return tn_dim_is_const(g, dim, &have) && have == value;
}

/* reshape, broadcast, fit, cast to the type there is already */
static tn_status same_type(tn_rewriter *r, tn_node n) {
    return tn_cleanup_forward(r, n, tn_node_input(tn_rewriter_graph(r), n, 0));
}

static tn_dim count_of(tn_graph *g, tn_value v) {
    tn_dim count = tn_dim_const(g, 1);
    for (int i = 0; i < tn_value_rank(g, v); i++)
        count = tn_dim_mul(g, count, tn_value_dim(g, v, i));
    return count;
}

/* Whether one of the two keeps the number of elements for sure: then the other's check is the joined one's. */
static bool reshapes_join(tn_graph *g, tn_value x, tn_value middle, tn_value y) {
    tn_dim count = count_of(g, middle);
    return tn_dim_equal(g, count_of(g, x), count) || tn_dim_equal(g, count, count_of(g, y));
}

/* Whether, on each axis, the first keeps the size, or makes it from 1 and the second is sure to take it. */
static bool broadcasts_join(tn_graph *g, tn_value x, tn_value middle, tn_value y) {
    int rank_x = tn_value_rank(g, x), rank = tn_value_rank(g, middle), rank_y = tn_value_rank(g, y);
    for (int i = 1; i <= rank; i++) { /* from the last axis on */
        tn_dim size = tn_value_dim(g, middle, rank - i);
        bool kept = i <= rank_x && tn_dim_equal(g, tn_value_dim(g, x, rank_x - i), size);
        bool made = i > rank_x || is_const(g, tn_value_dim(g, x, rank_x - i), 1);
        bool taken = is_const(g, size, 1) || tn_dim_equal(g, size, tn_value_dim(g, y, rank_y - i));
        if (!kept && !(made && taken))
            return false;
    }
    return true;
}

/* reshape(reshape(x)), broadcast(broadcast(x)): the last shape is what counts */
static tn_status last_shape(tn_rewriter *r, tn_node n, bool (*join)(tn_graph *, tn_value, tn_value, tn_value),
                            tn_value (*build)(tn_graph *, tn_value, int, const tn_dim *)) {
    tn_graph *g = tn_rewriter_graph(r);
    tn_node inner = tn_cleanup_same_op(g, n, 0);
    if (!inner.id)
        return TN_OK;
    tn_dim dims[TN_MAX_RANK];
    tn_value x = tn_node_input(g, inner, 0);
    int rank = copy_dims(g, tn_node_output(g, n, 0), dims);
    tn_value middle = tn_node_input(g, n, 0);
    if (rank < 0 || tn_value_rank(g, x) < 0 || tn_value_rank(g, middle) < 0 ||
        !join(g, x, middle, tn_node_output(g, n, 0)))
        return TN_OK;
    tn_value y = build(g, x, rank, dims);
    return tn_cleanup_built(r, n, y);
}

static tn_status reshape_reshape(tn_rewriter *r, tn_node n) {
    return last_shape(r, n, reshapes_join, tn_reshape_dims);
}

static tn_status broadcast_broadcast(tn_rewriter *r, tn_node n) {
    return last_shape(r, n, broadcasts_join, tn_broadcast);
}

static tn_status transpose(tn_rewriter *r, tn_node n) {
    tn_graph *g = tn_rewriter_graph(r);
    const int64_t *perm, *inner_perm;
    int joined[TN_MAX_RANK];
    uint32_t rank = tn_attr_ints(g, n, "perm", &perm);
    tn_node inner = tn_cleanup_same_op(g, n, 0);
    tn_value x = tn_node_input(g, inner.id ? inner : n, 0);
    if (rank > TN_MAX_RANK || (inner.id && tn_attr_ints(g, inner, "perm", &inner_perm) != rank))
        return TN_OK;
    bool identity = true;
    for (uint32_t i = 0; i < rank; i++) {
        int64_t axis = inner.id ? inner_perm[perm[i]] : perm[i];
        joined[i] = (int)axis;
        identity = identity && axis == i;
    }
    if (identity)
        return tn_cleanup_forward(r, n, x);
    if (!inner.id)
        return TN_OK;
    tn_value y = tn_transpose(g, x, joined);
    return tn_cleanup_built(r, n, y);
}

/* slice that takes everything */
static tn_status slice_all(tn_rewriter *r, tn_node n) {
    tn_graph *g = tn_rewriter_graph(r);
    const tn_dim *start;
    const int64_t *step;
    uint32_t rank = tn_attr_dims(g, n, "start", &start);
    if (tn_attr_ints(g, n, "step", &step) != rank)
        return TN_OK;
    for (uint32_t i = 0; i < rank; i++)
        if (!is_const(g, start[i], 0) || step[i] != 1)
            return TN_OK;
    return tn_cleanup_forward(r, n, tn_node_input(g, n, 0));
}

/* Whether a slice of an axis from `start` on is sure to lie inside it. */
static bool is_inside(tn_graph *g, int64_t start, tn_dim size, int64_t step, tn_dim axis) {
    int64_t low, high;
    tn_dim_bounds(g, size, &low, &high);
    if (low < 1) /* nothing of it, or the last element is not known: only a plain slice can be told */
        return step == 1 && start >= 0 && tn_dim_at_most(g, tn_dim_add(g, size, tn_dim_const(g, start)), axis);
    tn_dim reach = tn_dim_mul(g, tn_dim_sub(g, size, tn_dim_const(g, 1)), tn_dim_const(g, step)),
           first = tn_dim_const(g, start), last = tn_dim_add(g, first, reach), one = tn_dim_const(g, 1),
           zero = tn_dim_const(g, 0);
    return tn_dim_at_most(g, zero, step > 0 ? first : last) &&
           tn_dim_at_most(g, tn_dim_add(g, step > 0 ? last : first, one), axis);
}

/* slice(slice(x)) with small constant starts: one slice */
static tn_status slice_slice(tn_rewriter *r, tn_node n) {
    tn_graph *g = tn_rewriter_graph(r);
    tn_node inner = tn_cleanup_same_op(g, n, 0);
    if (!inner.id)
        return TN_OK;
    const tn_dim *start, *inner_start, *size;
    const int64_t *step, *inner_step;
    tn_dim starts[TN_MAX_RANK], sizes[TN_MAX_RANK];
    int64_t steps[TN_MAX_RANK], at[TN_MAX_RANK], a, b;
    uint32_t rank = tn_attr_dims(g, n, "start", &start);
    if (rank > TN_MAX_RANK || tn_attr_dims(g, n, "size", &size) != rank ||
        tn_attr_dims(g, inner, "start", &inner_start) != rank || tn_attr_ints(g, n, "step", &step) != rank ||
        tn_attr_ints(g, inner, "step", &inner_step) != rank)
        return TN_OK;
    for (uint32_t i = 0; i < rank; i++) {
        sizes[i] = size[i];
        if (!tn_dim_is_const(g, start[i], &a) || !tn_dim_is_const(g, inner_start[i], &b) ||
            __builtin_mul_overflow(step[i], inner_step[i], &steps[i]) || __builtin_mul_overflow(a, inner_step[i], &a) ||
            __builtin_add_overflow(a, b, &at[i]) || at[i] < 0)
            return TN_OK;
        /* both are sure to lie inside: what is left is sure to, as well */
        tn_value middle = tn_node_output(g, inner, 0), whole = tn_node_input(g, inner, 0);
        tn_dim_is_const(g, start[i], &a);
        if (!is_inside(g, b, tn_value_dim(g, middle, (int)i), inner_step[i], tn_value_dim(g, whole, (int)i)) ||
            !is_inside(g, a, size[i], step[i], tn_value_dim(g, middle, (int)i)))
            return TN_OK;
    }
    for (uint32_t i = 0; i < rank; i++)
        starts[i] = tn_dim_const(g, at[i]);
    tn_value y = tn_slice(g, tn_node_input(g, inner, 0), starts, sizes, steps);
    return tn_cleanup_built(r, n, y);
}

/* Indices that step evenly: the first and the step (1 of one index). False: they do not, or are not known. */
static bool even_steps(const tn_graph *g, tn_value indices, int64_t *first, int64_t *step, int64_t *count) {
    const tn_tensor *t = tn_value_constant(g, indices);
    if (!t || t->count < 1)
        return false;
    *count = t->count;
    *first = tn_tensor_get_i64(t, 0);
    *step = t->count > 1 ? tn_tensor_get_i64(t, 1) - *first : 1;
    for (int64_t i = 1; i < t->count; i++)
        if (tn_tensor_get_i64(t, i) - tn_tensor_get_i64(t, i - 1) != *step)
            return false;
    return *step != 0;
}

/* gather of rows that step evenly: a slice, which is no copy */
static tn_status gather_slice(tn_rewriter *r, tn_node n) {
    tn_graph *g = tn_rewriter_graph(r);
    tn_value x = tn_node_input(g, n, 0);
    int64_t first, step, count, size;
    int axis = (int)tn_attr_int(g, n, "axis");
    tn_dim sizes[TN_MAX_RANK], starts[TN_MAX_RANK], dims[TN_MAX_RANK];
    int64_t steps[TN_MAX_RANK];
    int rank = copy_dims(g, x, sizes), out_rank = copy_dims(g, tn_node_output(g, n, 0), dims);
    /* lists of sizes stay: what is known of their elements goes through gather */
    if (rank < 2 || out_rank < 0 || axis >= rank || tn_dtype_is_subbyte(tn_value_dtype(g, x)) ||
        !even_steps(g, tn_node_input(g, n, 1), &first, &step, &count))
        return TN_OK;
    if (first < 0 && !tn_dim_is_const(g, sizes[axis], &size))
        return TN_OK;
    first += first < 0 ? size : 0;
    tn_dim length = tn_dim_const(g, count);
    if (first < 0 || (step < 0 && first + step * (count - 1) < 0) || !is_inside(g, first, length, step, sizes[axis]))
        return TN_OK;
    for (int i = 0; i < rank; i++) {
        starts[i] = tn_dim_const(g, i == axis ? first : 0);
        steps[i] = i == axis ? step : 1;
    }
    sizes[axis] = length;
    tn_value y = tn_slice(g, x, starts, sizes, steps);
    return tn_cleanup_built(r, n, out_rank == rank ? y : tn_reshape_dims(g, y, out_rank, dims));
}

static tn_status pad_nothing(tn_rewriter *r, tn_node n) {
    tn_graph *g = tn_rewriter_graph(r);
    const tn_dim *lo, *hi;
    uint32_t rank = tn_attr_dims(g, n, "lo", &lo);
    if (tn_attr_dims(g, n, "hi", &hi) != rank)
        return TN_OK;
    for (uint32_t i = 0; i < rank; i++)
        if (!is_const(g, lo[i], 0) || !is_const(g, hi[i], 0))
            return TN_OK;
    return tn_cleanup_forward(r, n, tn_node_input(g, n, 0));
}

/* Whether a part has nothing on the axis, and is sure to fit on the others. */
static bool is_empty_part(const tn_graph *g, tn_node n, uint32_t part, int axis) {
    tn_value x = tn_node_input(g, n, part), y = tn_node_output(g, n, 0);
    for (int i = 0; i < tn_value_rank(g, x); i++)
        if (i != axis && !tn_dim_equal(g, tn_value_dim(g, x, i), tn_value_dim(g, y, i)))
            return false;
    return is_const(g, tn_value_dim(g, x, axis), 0);
}

/* concat of one; parts that are empty on the axis go */
static tn_status concat_parts(tn_rewriter *r, tn_node n) {
    tn_graph *g = tn_rewriter_graph(r);
    int axis = (int)tn_attr_int(g, n, "axis");
    uint32_t count = tn_node_input_count(g, n), kept = 0;
    if (count == 1)
        return tn_cleanup_forward(r, n, tn_node_input(g, n, 0));
    for (uint32_t i = 0; i < count; i++)
        kept += !is_empty_part(g, n, i, axis);
    if (kept == count || kept == 0)
        return TN_OK;
    tn_value *parts = tn_alloc_array(g->heap, kept, sizeof *parts);
    if (!parts)
        return tn_error_status();
    kept = 0;
    for (uint32_t i = 0; i < count; i++)
        if (!is_empty_part(g, n, i, axis))
            parts[kept++] = tn_node_input(g, n, i);
    tn_value y = kept == 1 ? parts[0] : tn_concat(g, axis, kept, parts);
    tn_free(g->heap, parts);
    return tn_cleanup_built(r, n, y);
}

/* --- casts ------------------------------------------------------------------------------------------------------------------------- */

/* Significant bits, exponent range (as the largest power of two below which all integers of that many bits are) of a dtype. */
typedef struct number_class {
    bool known, is_float, is_signed;
    int digits; /* of the significand, or of an integer without its sign */
    int max_exponent, min_exponent;
} number_class;

static number_class class_of(tn_dtype dtype) {
    switch (dtype) {
    case TN_F64: return (number_class){true, true, true, 53, 1024, -1074};
    case TN_F32: return (number_class){true, true, true, 24, 128, -149};
    case TN_F16: return (number_class){true, true, true, 11, 16, -24};
    case TN_BF16: return (number_class){true, true, true, 8, 128, -133};
    case TN_BOOL: return (number_class){true, false, false, 1, 0, 0};
    default: break;
    }
    if (!tn_dtype_is_int(dtype) || tn_dtype_is_subbyte(dtype))
        return (number_class){0};
    bool is_signed = tn_dtype_is_signed(dtype);
    return (number_class){true, false, is_signed, tn_dtype_bits(dtype) - is_signed, 0, 0};
}

/* Whether every value of `from` is one of `to`. */
static bool is_lossless(tn_dtype from, tn_dtype to) {
    number_class a = class_of(from), b = class_of(to);
    if (!a.known || !b.known || (a.is_float && !b.is_float) || to == TN_BOOL)
        return false;
    if (a.is_float)
        return a.digits <= b.digits && a.max_exponent <= b.max_exponent && a.min_exponent >= b.min_exponent;
    if (b.is_float) /* -2^digits is a power of two */
        return a.digits <= b.digits && a.digits < b.max_exponent;
    return (!a.is_signed || b.is_signed) && a.digits <= b.digits;
}

/* cast(cast(x)) where the first loses nothing: one cast, or x itself */
static tn_status cast_cast(tn_rewriter *r, tn_node n) {
    tn_graph *g = tn_rewriter_graph(r);
    tn_node inner = tn_cleanup_same_op(g, n, 0);
    if (!inner.id)
        return TN_OK;
    tn_value x = tn_node_input(g, inner, 0);
    tn_dtype first = tn_value_dtype(g, x), second = tn_value_dtype(g, tn_node_output(g, inner, 0)),
             last = tn_value_dtype(g, tn_node_output(g, n, 0));
    if (!is_lossless(first, second) || !class_of(last).known || tn_node_attr_count(g, n) != 1)
        return TN_OK; /* one attribute: `to` */
    if (first == last)
        return tn_cleanup_forward(r, n, x);
    tn_value y = tn_cast(g, x, last);
    return tn_cleanup_built(r, n, y);
}

const tn_rewrite tn_cleanup_move_rows[] = {
    {.name = "reshape-nothing", .root = "reshape", .apply = same_type, .effect = TN_BIT_EXACT},
    {.name = "reshape-reshape", .root = "reshape", .apply = reshape_reshape, .effect = TN_BIT_EXACT},
    {.name = "fit-nothing", .root = "fit", .apply = same_type, .effect = TN_BIT_EXACT},
    {.name = "broadcast-nothing", .root = "broadcast", .apply = same_type, .effect = TN_BIT_EXACT},
    {.name = "broadcast-broadcast", .root = "broadcast", .apply = broadcast_broadcast, .effect = TN_BIT_EXACT},
    {.name = "transpose-transpose", .root = "transpose", .apply = transpose, .effect = TN_BIT_EXACT},
    {.name = "slice-all", .root = "slice", .apply = slice_all, .effect = TN_BIT_EXACT},
    {.name = "slice-slice", .root = "slice", .apply = slice_slice, .effect = TN_BIT_EXACT},
    {.name = "gather-slice", .root = "gather", .apply = gather_slice, .effect = TN_BIT_EXACT},
    {.name = "pad-nothing", .root = "pad", .apply = pad_nothing, .effect = TN_BIT_EXACT},
    {.name = "concat-parts", .root = "concat", .apply = concat_parts, .effect = TN_BIT_EXACT},
    {.name = "cast-nothing", .root = "cast", .apply = same_type, .effect = TN_BIT_EXACT},
    {.name = "cast-cast", .root = "cast", .apply = cast_cast, .effect = TN_BIT_EXACT},
};
const uint32_t tn_cleanup_move_count = sizeof tn_cleanup_move_rows / sizeof tn_cleanup_move_rows[0];
