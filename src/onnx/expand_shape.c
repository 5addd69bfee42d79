/* Operators about shapes: Reshape, Flatten, Squeeze, Unsqueeze, Expand, Tile, Shape, Size; and tensors made from nothing but a
   shape or numbers: Constant, ConstantOfShape, Range, EyeLike. */
#include <inttypes.h>
#include <math.h>

#include "onnx/expand_common.h"

/* --- reshape --------------------------------------------------------------------------------------------------------------------- */

static tn_status expand_reshape(tn_expand *x) {
    tn_graph *g = x->graph;
    tn_dim dims[TN_MAX_RANK];
    int n, rest = -1, rank = tn_expand_rank(x, 0);
    bool keep_zero = tn_expand_int(x, "allowzero") != 0, zero = false;
    TN_TRY(tn_expand_known_dims(x, 1, "needs the elements of the new shape", dims, &n));
    for (int i = 0; i < n; i++) {
        int64_t v;
        if (!tn_dim_is_const(g, dims[i], &v))
            continue;
        TN_RULE(x, v >= -1, "the new shape holds %" PRId64, v);
        zero = zero || v == 0;
        if (v == -1) {
            TN_RULE(x, rest < 0, "the new shape holds -1 twice");
            rest = i;
        } else if (v == 0 && !keep_zero) {
            TN_RULE(x, i < rank, "the new shape copies axis %d, but the input has rank %d", i, rank);
            dims[i] = tn_expand_dim(x, 0, i);
        }
    }
    TN_RULE(x, !(keep_zero && zero && rest >= 0), "the new shape holds both 0 and -1, and 'allowzero' is set");
    tn_value v = tn_expand_input(x, 0);
    if (rest >= 0) {
        /* Sizes that stand on both sides go away first: [0, -1] of an input with no rows keeps its columns. */
        tn_dim from = tn_size(x, 1), to = tn_size(x, 1), same[TN_MAX_RANK];
        int kept = 0;
        bool used[TN_MAX_RANK] = {false};
        for (int i = 0; i < n; i++) {
            int j = 0;
            while (i != rest && j < rank && (used[j] || tn_expand_dim(x, 0, j).id != dims[i].id))
                j++;
            if (i == rest)
                continue;
            if (j < rank) {
                used[j] = true;
                same[kept++] = dims[i];
            } else
                to = tn_dim_mul(g, to, dims[i]);
        }
        for (int j = 0; j < rank; j++)
            if (!used[j])
                from = tn_dim_mul(g, from, tn_expand_dim(x, 0, j));
        TN_SIZED(x, from);
        TN_SIZED(x, to);
        if (tn_size_is(x, to, 0))
            return tn_expand_fail(x, "-1 of the new shape cannot be inferred for a tensor without elements");
        int64_t a, b;
        if (tn_dim_is_const(g, from, &a) && tn_dim_is_const(g, to, &b))
            TN_RULE(x, a % b == 0, "%" PRId64 " elements cannot be divided among %" PRId64 " for -1 of the new shape",
                    a, b);
        dims[rest] = tn_dim_floordiv(g, from, to);
        TN_SIZED(x, dims[rest]);
        tn_dim whole = tn_dim_mul(g, dims[rest], to);
        TN_SIZED(x, whole);
        bool empty = false;
        for (int i = 0; i < kept; i++)
            empty = empty || !tn_size_at_least(x, same[i], 1);
        if (empty && !tn_dim_equal(g, whole, from)) { /* the rule holds beside axes that are empty, too */
            same[kept] = from;
            v = tn_reshape_dims(g, v, kept + 1, same);
            same[kept] = whole;
            v = tn_fit(g, v, same);
        }
    }
    return tn_expand_set(x, 0, tn_reshape_dims(g, v, n, dims));
}

static tn_status expand_flatten(tn_expand *x) {
    int rank = tn_expand_rank(x, 0);
    int64_t axis = tn_expand_int(x, "axis");
    TN_RULE(x, axis >= (x->version < 11 ? 0 : -rank) && axis <= rank,
            "attribute 'axis' is %" PRId64 " for a tensor of rank %d", axis, rank);
    return tn_expand_set(x, 0, tn_flatten(x->graph, tn_expand_input(x, 0), (int)axis));
}

static tn_status expand_squeeze(tn_expand *x) {
    tn_graph *g = x->graph;
    int rank = tn_expand_rank(x, 0), axes[TN_MAX_RANK], count = 0;
    if (tn_expand_has(x, 1)) {
        TN_TRY(tn_expand_axes_input(x, 1, rank, axes, &count));
        for (int i = 0; i < count; i++)
            TN_RULE(x, !tn_dim_never_equal(g, tn_expand_dim(x, 0, axes[i]), tn_size(x, 1)),
                    "axis %d cannot be squeezed: its size is not 1", axes[i]);
    } else {
        for (int i = 0; i < rank; i++) {
            tn_dim d = tn_expand_dim(x, 0, i);
            if (tn_size_is(x, d, 1))
                axes[count++] = i;
            else if (!tn_dim_never_equal(g, d, tn_size(x, 1)))
                return tn_expand_later(x, "needs to know which sizes are 1");
        }
    }
    return tn_expand_set(x, 0, tn_squeeze(g, tn_expand_input(x, 0), (uint32_t)count, axes));
}

static tn_status expand_unsqueeze(tn_expand *x) {
    int64_t list[TN_MAX_RANK];
    int axes[TN_MAX_RANK], count, rank = tn_expand_rank(x, 0);
    TN_TRY(tn_expand_known_ints(x, 1, "needs the axes", list, &count));
    TN_RULE(x, rank + count <= TN_MAX_RANK, "the result has rank %d: at most %d is supported", rank + count,
            TN_MAX_RANK);
    TN_TRY(tn_expand_axes(x, (uint32_t)count, list, rank + count, axes));
    return tn_expand_set(x, 0, tn_expand_dims(x->graph, tn_expand_input(x, 0), (uint32_t)count, axes));
}

/* Elements that one number, given by a few bytes of a file, may be spread to. */
#define MAX_SPREAD ((int64_t)1 << 40)

static tn_status check_spread(tn_expand *x, int n, const tn_dim *dims) {
    int64_t known = 1, v;
    for (int i = 0; i < n; i++) {
        if (!tn_dim_is_const(x->graph, dims[i], &v))
            continue;
        if (v && known > MAX_SPREAD / v) {
            tn_fail(TN_ERR_LIMIT, "%s to more than 2^40 elements", x->row->name);
            tn_fail_at_node(x->graph, x->node);
            return TN_ERR_LIMIT;
        }
        known *= v;
    }
    return TN_OK;
}

/* Sizes given by an input: none may be negative, nor all together absurd. */
static tn_status sizes(tn_expand *x, uint32_t input, tn_dim dims[TN_MAX_RANK], int *n) {
    TN_TRY(tn_expand_known_dims(x, input, "needs the elements of the shape", dims, n));
    for (int i = 0; i < *n; i++)
        TN_RULE(x, !tn_size_at_most(x, dims[i], -1), "entry %d of the shape is negative", i);
    return check_spread(x, *n, dims);
}

static tn_status expand_expand(tn_expand *x) {
    tn_graph *g = x->graph;
    tn_dim dims[TN_MAX_RANK], out[TN_MAX_RANK];
    int n, own = tn_expand_rank(x, 0);
    TN_TRY(sizes(x, 1, dims, &n));
    int rank = n > own ? n : own;
    for (int i = 0; i < rank; i++) {
        int a = i - (rank - own), b = i - (rank - n);
        out[i] = a < 0 ? dims[b] : tn_expand_dim(x, 0, a);
        if (a < 0 || b < 0 || tn_dim_equal(g, out[i], dims[b]))
            continue;
        TN_RULE(x,
                !tn_dim_never_equal(g, out[i], dims[b]) || !tn_dim_never_equal(g, out[i], tn_size(x, 1)) ||
                    !tn_dim_never_equal(g, dims[b], tn_size(x, 1)),
                "axis %d cannot be broadcast to entry %d of the shape: they differ and neither is 1", a, b);
        out[i] = tn_dim_broadcast(g, out[i], dims[b]);
        TN_SIZED(x, out[i]);
    }
    return tn_expand_set(x, 0, tn_broadcast(g, tn_expand_input(x, 0), rank, out));
}

/* [d] as [1, d], broadcast to [repeats, d], as [repeats * d]. */
static tn_status expand_tile(tn_expand *x) {
    tn_graph *g = x->graph;
    tn_dim repeats[TN_MAX_RANK], apart[2 * TN_MAX_RANK], wide[2 * TN_MAX_RANK], out[TN_MAX_RANK];
    int n, rank = tn_expand_rank(x, 0), k = 0;
    TN_TRY(tn_expand_known_dims(x, 1, "needs the repeats", repeats, &n));
    TN_RULE(x, n == rank, "there are %d repeats for a tensor of rank %d", n, rank);
    for (int i = 0; i < rank; i++) {
        TN_RULE(x, !tn_size_at_most(x, repeats[i], -1), "repeat %d is negative", i);
        tn_dim d = tn_expand_dim(x, 0, i);
        if (!tn_size_is(x, repeats[i], 1)) {
            apart[k] = tn_size(x, 1);
            wide[k++] = repeats[i];
        }
        apart[k] = wide[k] = d;
        k++;
        out[i] = tn_dim_mul(g, repeats[i], d);
        TN_SIZED(x, out[i]);
    }
    TN_TRY(check_spread(x, rank, out));
    TN_RULE(x, k <= TN_MAX_RANK, "repeating %d axes of a tensor of rank %d is not supported", k - rank, rank);
    tn_value v = tn_broadcast(g, tn_reshape_dims(g, tn_expand_input(x, 0), k, apart), k, wide);
    return tn_expand_set(x, 0, tn_reshape_dims(g, v, rank, out));
}

/* Before operator set 6: one axis, repeated `tiles` times. */
static tn_status expand_tile_axis(tn_expand *x) {
    tn_graph *g = x->graph;
    int rank = tn_expand_rank(x, 0), axis;
    tn_dim tiles, dims[TN_MAX_RANK], wide[TN_MAX_RANK];
    int64_t given;
    if (tn_expand_contents_dims(x, 1, &tiles, 1) != 1 || tn_expand_contents_i64(x, 2, &given, 1) != 1) {
        const tn_tensor *count = tn_expand_constant(x, 1), *at = tn_expand_constant(x, 2);
        if (!count || !at || tn_tensor_count(count) != 1 || tn_tensor_count(at) != 1)
            return tn_expand_later(x, "needs the values of tiles and axis");
        tiles = tn_size(x, tn_tensor_get_i64(count, 0));
        given = tn_tensor_get_i64(at, 0);
    }
    TN_TRY(tn_expand_axis(x, given, rank, &axis));
    TN_RULE(x, rank < TN_MAX_RANK && !tn_size_at_most(x, tiles, -1), "'tiles' is negative");
    for (int i = 0; i <= rank; i++) {
        wide[i] = i == axis ? tiles : tn_expand_dim(x, 0, i < axis ? i : i - 1);
        dims[i] = i == axis ? tn_size(x, 1) : wide[i];
    }
    tn_value v = tn_broadcast(g, tn_reshape_dims(g, tn_expand_input(x, 0), rank + 1, dims), rank + 1, wide);
    wide[axis] = tn_dim_mul(g, tiles, tn_expand_dim(x, 0, axis));
    TN_SIZED(x, wide[axis]);
    for (int i = axis + 1; i < rank; i++)
        wide[i] = wide[i + 1];
    return tn_expand_set(x, 0, tn_reshape_dims(g, v, rank, wide));
}

/* --- shapes as values --------------------------------------------------------------------------------------------------------------- */

static int64_t clamp_axis(int64_t axis, int rank) {
    axis = axis < 0 ? axis + rank : axis;
    return axis < 0 ? 0 : axis > rank ? rank : axis;
}

static tn_status expand_shape(tn_expand *x) {
    int rank = tn_expand_rank(x, 0);
    tn_value shape = tn_shape_of(x->graph, tn_expand_input(x, 0));
    int64_t from = clamp_axis(tn_expand_int(x, "start"), rank), to = rank;
    if (tn_expand_has_attr(x, "end"))
        to = clamp_axis(tn_expand_int(x, "end"), rank);
    if (from > 0 || to < rank)
        shape = tn_slice_axis(x->graph, shape, 0, from, to > from ? to - from : 0);
    return tn_expand_set(x, 0, shape);
}

static tn_status expand_size(tn_expand *x) {
    return tn_expand_set(x, 0,
                         tn_reduce_prod(x->graph, tn_shape_of(x->graph, tn_expand_input(x, 0)), TN_ALL_AXES, false));
}

/* --- constants ---------------------------------------------------------------------------------------------------------------------- */

/* Hands over a tensor of the expansion's own (NULL: the error is set). */
static tn_status set_constant(tn_expand *x, tn_tensor *tensor) {
    if (!tensor)
        return tn_error_status();
    tn_value v = tn_constant(x->graph, tensor);
    tn_tensor_destroy(tensor);
    return tn_expand_set(x, 0, v);
}

/* A list of `n` numbers; scalar: rank 0. */
static tn_tensor *list_tensor(tn_expand *x, tn_dtype dtype, bool scalar, uint32_t n) {
    const int64_t dims[1] = {n};
    return tn_tensor_create_in(x->graph->heap, dtype, scalar ? 0 : 1, dims);
}

static tn_status expand_constant(tn_expand *x) {
    static const char *const names[] = {"value",      "value_float",  "value_floats",  "value_int",
                                        "value_ints", "value_string", "value_strings", "sparse_value"};
    int found = -1;
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++)
        if (tn_expand_has_attr(x, names[i])) {
            TN_RULE(x, found < 0, "both '%s' and '%s' are given", names[found], names[i]);
            found = i;
        }
    TN_RULE(x, found >= 0, "no value is given");
    if (found == 0 || found == 7) {
        tn_tensor *t = tn_expand_tensor(x, names[found]);
        TN_RULE(x, t, "attribute '%s' holds no tensor", names[found]);
        return tn_expand_set(x, 0, tn_constant(x->graph, t));
    }
    bool scalar = found == 1 || found == 3 || found == 5;
    if (found <= 2) {
        const float *list = NULL;
        uint32_t n = scalar ? 1 : tn_expand_floats(x, names[found], &list);
        tn_tensor *t = list_tensor(x, TN_F32, scalar, n);
        for (uint32_t i = 0; t && i < n; i++)
            tn_store_f64(TN_F32, t->data, i, scalar ? tn_expand_float(x, names[found]) : (double)list[i]);
        return set_constant(x, t);
    }
    if (found <= 4) {
        const int64_t *list = NULL;
        uint32_t n = scalar ? 1 : tn_expand_ints(x, names[found], &list);
        tn_tensor *t = list_tensor(x, TN_I64, scalar, n);
        for (uint32_t i = 0; t && i < n; i++)
            tn_store_i64(TN_I64, t->data, i, scalar ? tn_expand_int(x, names[found]) : list[i]);
        return set_constant(x, t);
    }
    const tn_string *list = NULL;
    tn_string one = tn_expand_string(x, "value_string");
    uint32_t n = scalar ? 1 : tn_expand_strings(x, names[found], &list);
    tn_tensor *t = list_tensor(x, TN_STRING, scalar, n);
    for (uint32_t i = 0; t && i < n; i++) {
        tn_string s = scalar ? one : list[i];
        if (tn_tensor_set_string(t, i, s.data, s.length) != TN_OK) {
            tn_tensor_destroy(t);
            return tn_error_status();
        }
    }
    return set_constant(x, t);
}

static tn_status expand_constant_of_shape(tn_expand *x) {
    tn_dim dims[TN_MAX_RANK];
    int n;
    TN_TRY(sizes(x, 0, dims, &n));
    tn_tensor *t = tn_expand_tensor(x, "value");
    if (!t)
        return tn_expand_set(x, 0, tn_expand_full(x, TN_F32, 0, n, dims));
    TN_RULE(x, tn_tensor_count(t) == 1, "attribute 'value' must hold one element");
    tn_value one = tn_reshape_dims(x->graph, tn_constant(x->graph, t), 0, NULL);
    return tn_expand_set(x, 0, tn_broadcast(x->graph, one, n, dims));
}

/* --- range ---------------------------------------------------------------------------------------------------------------------------- */

/* max(ceil((limit - start) / delta), 0) of floats. */
static tn_status float_range_size(tn_expand *x, tn_dim *size) {
    double v[3];
    for (uint32_t i = 0; i < 3; i++) {
        tn_tensor *t = tn_expand_constant(x, i);
        if (!t || tn_tensor_count(t) != 1)
            return tn_expand_later(x, "needs the values of start, limit and delta");
        v[i] = tn_tensor_get_f64(t, 0);
    }
    TN_RULE(x, v[2] < 0 || v[2] > 0, "delta is 0, or not a number");
    double n = ceil((v[1] - v[0]) / v[2]);
    TN_RULE(x, n < 9e15, "the range from start to limit has too many elements, or no end");
    *size = tn_size(x, n > 0 ? (int64_t)n : 0);
    return TN_OK;
}

static tn_status int_range_size(tn_expand *x, tn_dim *size) {
    tn_graph *g = x->graph;
    tn_dim v[3];
    int64_t c[3];
    bool known = true;
    for (uint32_t i = 0; i < 3; i++) {
        if (tn_expand_contents_dims(x, i, &v[i], 1) != 1)
            return tn_expand_later(x, "needs the values of start, limit and delta");
        known = tn_dim_is_const(g, v[i], &c[i]) && known;
    }
    if (!tn_dim_is_const(g, v[2], &c[2]))
        return tn_expand_later(x, "needs the value of delta");
    TN_RULE(x, c[2] != 0, "delta is 0");
    if (known) {
        __int128 span = c[2] > 0 ? (__int128)c[1] - c[0] : (__int128)c[0] - c[1];
        __int128 step = c[2] > 0 ? (__int128)c[2] : -(__int128)c[2];
        __int128 n = span > 0 ? (span + step - 1) / step : 0;
        TN_RULE(x, n <= INT64_MAX, "the range has too many elements");
        *size = tn_size(x, (int64_t)n);
        return TN_OK;
    }
    TN_RULE(x, c[2] != INT64_MIN, "delta is too large");
    tn_dim span = c[2] > 0 ? tn_dim_sub(g, v[1], v[0]) : tn_dim_sub(g, v[0], v[1]);
    *size = tn_dim_max(g, tn_dim_ceildiv(g, span, tn_size(x, c[2] > 0 ? c[2] : -c[2])), tn_size(x, 0));
    return TN_OK;
}

/* start + i * delta */
static tn_status expand_range(tn_expand *x) {
    tn_graph *g = x->graph;
    tn_value in[3];
    tn_dim n;
    tn_dtype dtype = tn_expand_dtype(x, 0);
    for (uint32_t i = 0; i < 3; i++) {
        int rank = tn_expand_rank(x, i);
        for (int k = 0; k < rank; k++)
            TN_RULE(x, !tn_dim_never_equal(g, tn_expand_dim(x, i, k), tn_size(x, 1)),
                    "start, limit and delta must be scalars");
        in[i] = tn_reshape_dims(g, tn_expand_input(x, i), 0, NULL);
    }
    TN_TRY(tn_is_float(dtype) ? float_range_size(x, &n) : int_range_size(x, &n));
    TN_SIZED(x, n);
    /* f16 and bf16 count in f32, unless stash_type says otherwise: they do not hold every index */
    tn_dtype wide = tn_wide(dtype);
    if (wide != dtype) {
        int64_t stash = tn_expand_int(x, "stash_type");
        TN_RULE(x, stash > TN_DTYPE_NONE && stash < TN_DTYPE_COUNT && tn_is_float((tn_dtype)stash),
                "attribute 'stash_type' is %" PRId64 ", which is no floating point type", stash);
        wide = (tn_dtype)stash;
    }
    tn_value steps = tn_mul(g, tn_iota(g, wide, 1, &n, 0), tn_cast(g, in[2], wide));
    return tn_expand_set(x, 0, tn_cast(g, tn_add(g, tn_cast(g, in[0], wide), steps), dtype));
}

static tn_status expand_eye_like(tn_expand *x) {
    tn_graph *g = x->graph;
    int64_t dtype = tn_expand_has_attr(x, "dtype") ? tn_expand_int(x, "dtype") : (int64_t)tn_expand_dtype(x, 0);
    int64_t k = tn_expand_int(x, "k");
    TN_RULE(x, dtype > TN_DTYPE_NONE && dtype < TN_DTYPE_COUNT,
            "attribute 'dtype' is %" PRId64 ", which is no element type", dtype);
    TN_RULE(x, tn_expand_rank(x, 0) == 2, "the input has rank %d: it must be a matrix", tn_expand_rank(x, 0));
    const tn_dim *dims = tn_expand_dims_copy(x, 0);
    if (!dims)
        return tn_error_status();
    tn_value diagonal = tn_sub(g, tn_iota(g, TN_I64, 2, dims, 1), tn_iota(g, TN_I64, 2, dims, 0));
    return tn_expand_set(x, 0, tn_cast(g, tn_equal(g, diagonal, tn_constant_i64(g, 0, 1, &k)), (tn_dtype)dtype));
}

/* --- rows -------------------------------------------------------------------------------------------------------------------------------- */

static const tn_attr_spec reshape_attrs[] = {TN_SPEC_BOOL("allowzero", 0), {0}};
static const tn_attr_spec flatten_attrs[] = {TN_SPEC_INT("axis", 1), {0}};
static const tn_attr_spec shape_attrs[] = {TN_SPEC_INT("start", 0), TN_SPEC_INT("end", 0), {0}};
static const tn_attr_spec constant_attrs[] = {
    TN_SPEC_TENSOR("value"),          TN_SPEC_FLOAT("value_float", 0), TN_SPEC_FLOATS("value_floats"),
    TN_SPEC_INT("value_int", 0),      TN_SPEC_INTS("value_ints"),      TN_SPEC_STRING("value_string", "", NULL),
    TN_SPEC_STRINGS("value_strings"), TN_SPEC_TENSOR("sparse_value"),  {0}};
static const tn_attr_spec value_attrs[] = {TN_SPEC_TENSOR("value"), {0}};
static const tn_attr_spec range_attrs[] = {TN_SPEC_INT("stash_type", 1), {0}};
static const tn_attr_spec eye_attrs[] = {TN_SPEC_INT("dtype", 0), TN_SPEC_INT("k", 0), {0}};

static const tn_onnx_op rows[] = {
    TN_ONNX("Reshape", .since = 1, .inputs = {2, 2}, .outputs = {1, 1}, .attrs = reshape_attrs,
            .expand = expand_reshape),
    TN_ONNX("Flatten", .since = 1, .inputs = {1, 1}, .outputs = {1, 1}, .attrs = flatten_attrs,
            .expand = expand_flatten),
    TN_ONNX("Squeeze", .since = 1, .inputs = {1, 2}, .outputs = {1, 1}, .expand = expand_squeeze),
    TN_ONNX("Unsqueeze", .since = 1, .inputs = {2, 2}, .outputs = {1, 1}, .expand = expand_unsqueeze),
    TN_ONNX("Expand", .since = 8, .inputs = {2, 2}, .outputs = {1, 1}, .expand = expand_expand),
    TN_ONNX("Tile", .since = 6, .inputs = {2, 2}, .outputs = {1, 1}, .expand = expand_tile),
    TN_ONNX("Tile", .since = 1, .until = 5, .inputs = {3, 3}, .outputs = {1, 1}, .expand = expand_tile_axis),
    TN_ONNX("Shape", .since = 1, .inputs = {1, 1}, .outputs = {1, 1}, .attrs = shape_attrs, .expand = expand_shape),
    TN_ONNX("Size", .since = 1, .inputs = {1, 1}, .outputs = {1, 1}, .expand = expand_size),
    TN_ONNX("Constant", .since = 1, .inputs = {0, 0}, .outputs = {1, 1}, .attrs = constant_attrs,
            .expand = expand_constant),
    TN_ONNX("ConstantOfShape", .since = 9, .inputs = {1, 1}, .outputs = {1, 1}, .attrs = value_attrs,
            .expand = expand_constant_of_shape),
    TN_ONNX("Range", .since = 11, .inputs = {3, 3}, .outputs = {1, 1}, .attrs = range_attrs, .expand = expand_range),
    TN_ONNX("EyeLike", .since = 9, .inputs = {1, 1}, .outputs = {1, 1}, .attrs = eye_attrs, .expand = expand_eye_like),
};

const tn_onnx_family tn_onnx_family_shape = {rows, sizeof rows / sizeof *rows};
