/* Reading a tensor between its elements: GridSample, DeformConv; AffineGrid, which makes the positions. */
#include <inttypes.h>

#include "onnx/expand_common.h"

typedef enum padding { PAD_ZEROS, PAD_BORDER, PAD_REFLECTION } padding;

/* Points to read, [points], and for each the elements that take part, [points, taps]: their positions in the row-major order of the
   axes so far, their weights (null: 1), and whether they lie inside (null: all do). */
typedef struct taps {
    tn_expand *x;
    padding padding;
    bool corners; /* the border is the centre of the outermost elements, not their edge */
    tn_dim points;
    int64_t count; /* taps */
    tn_value index, weight, inside;
} taps;

/* [points, a] and [points, b] combined to [points, a * b], a slower. */
static tn_value outer(taps *t, tn_value a, tn_value b, int64_t n, tn_value (*op)(tn_graph *, tn_value, tn_value)) {
    tn_graph *g = t->x->graph;
    if (!a.id || !b.id)
        return a.id ? a : b;
    tn_dim one = tn_size(t->x, 1), na = tn_size(t->x, t->count), nb = tn_size(t->x, n);
    tn_dim da[3] = {t->points, na, one}, db[3] = {t->points, one, nb},
           both[2] = {t->points, tn_size(t->x, t->count * n)};
    tn_value v = op(g, tn_reshape_dims(g, a, 3, da), tn_reshape_dims(g, b, 3, db));
    return tn_reshape_dims(g, v, 2, both);
}

static tn_value number(taps *t, tn_value like, double v) {
    return tn_scalar_like(t->x->graph, like, v);
}

/* v beyond a border comes back from it, until it is inside. */
static tn_value reflect(taps *t, tn_value v, tn_value size) {
    tn_graph *g = t->x->graph;
    double edge = t->corners ? 0 : 0.5;
    tn_value low = number(t, v, -edge), high = tn_sub(g, size, number(t, v, t->corners ? 1 : 0.5));
    tn_value below = tn_less(g, v, low), range = tn_sub(g, high, low);
    tn_value away = tn_select(g, below, tn_sub(g, low, v), tn_sub(g, v, high));
    tn_value times = tn_trunc(g, tn_div(g, away, range)), rest = tn_sub(g, away, tn_mul(g, times, range));
    tn_value even = tn_equal(g, tn_mod(g, times, number(t, v, 2)), number(t, v, 0));
    tn_value back = tn_select(g, tn_xor(g, even, below), tn_sub(g, high, rest), tn_add(g, low, rest));
    return tn_select(g, tn_or(g, below, tn_greater(g, v, high)), back, v);
}

/* v beyond a border becomes the nearest element; between an outermost element and its edge it stays, and its taps are clamped. */
static tn_value clamp_outside(taps *t, tn_value v, tn_value size) {
    tn_graph *g = t->x->graph;
    double edge = t->corners ? 0 : 0.5;
    tn_value last = tn_sub(g, size, number(t, v, 1)), zero = number(t, v, 0);
    v = tn_select(g, tn_less(g, v, number(t, v, -edge)), zero, v);
    return tn_select(g, tn_greater(g, v, tn_add(g, last, number(t, v, edge))), last, v);
}

/* The weights of 4 neighbours at distance f from the second: [points, 4]. */
static tn_value cubic(taps *t, tn_value f) {
    tn_graph *g = t->x->graph;
    const double a = -0.75;
    tn_value one = number(t, f, 1), w[4];
    for (int i = 0; i < 4; i++) {
        static const int last[1] = {1};
        tn_value d = i == 0   ? tn_add(g, f, one)
                     : i == 1 ? f
                     : i == 2 ? tn_sub(g, one, f)
                              : tn_sub(g, number(t, f, 2), f);
        tn_value p;
        if (i == 0 || i == 3) { /* ((a d - 5a) d + 8a) d - 4a */
            p = tn_sub(g, tn_mul(g, d, number(t, f, a)), number(t, f, 5 * a));
            p = tn_add(g, tn_mul(g, p, d), number(t, f, 8 * a));
            p = tn_sub(g, tn_mul(g, p, d), number(t, f, 4 * a));
        } else { /* ((a + 2) d - (a + 3)) d d + 1 */
            p = tn_sub(g, tn_mul(g, d, number(t, f, a + 2)), number(t, f, a + 3));
            p = tn_add(g, tn_mul(g, tn_mul(g, p, d), d), one);
        }
        w[i] = tn_expand_dims(g, p, 1, last);
    }
    return tn_concat(g, 1, 4, w);
}

/* The next axis, of `size`, read at `at` [points] (floats, in elements) with `n` taps: 1 nearest, 2 linear, 4 cubic. */
static tn_status add_axis(taps *t, tn_value at, tn_dim size, int64_t n) {
    static const int last[1] = {1};
    tn_expand *x = t->x;
    tn_graph *g = x->graph;
    TN_BUILT(x, at);
    tn_value extent = tn_expand_size_value(x, size, TN_I64), zero = tn_scalar(g, TN_I64, 0);
    tn_value width = tn_cast(g, extent, tn_value_dtype(g, at)), top = tn_sub(g, extent, tn_scalar(g, TN_I64, 1));
    tn_value weight = {0}, inside = {0};
    if (n == 1)
        at = tn_round(g, at);
    if (t->padding == PAD_BORDER)
        at = clamp_outside(t, at, width);
    else if (t->padding == PAD_REFLECTION)
        at = reflect(t, at, width);
    else if (t->padding == PAD_ZEROS) /* far outside is outside: keeps the integers small */
        at = tn_min(g, tn_max(g, at, number(t, at, -8)), tn_add(g, width, number(t, at, 8)));
    tn_value low = n == 1 ? at : tn_floor(g, at), base = tn_expand_dims(g, tn_cast(g, low, TN_I64), 1, last);
    if (n > 1) {
        tn_value f = tn_sub(g, at, low);
        tn_value two[2] = {tn_expand_dims(g, tn_sub(g, number(t, at, 1), f), 1, last), tn_expand_dims(g, f, 1, last)};
        weight = n == 4 ? cubic(t, f) : tn_concat(g, 1, 2, two);
    }
    static const int64_t steps[4] = {-1, 0, 1, 2};
    tn_value index = tn_add(g, base, tn_constant_i64(g, 1, n, steps + (n == 4 ? 0 : 1)));
    if (t->padding == PAD_ZEROS) {
        inside = tn_and(g, tn_greater_equal(g, index, zero), tn_less_equal(g, index, top));
    } else if (t->padding == PAD_REFLECTION) {
        index = tn_cast(g, reflect(t, tn_cast(g, index, tn_value_dtype(g, at)), width), TN_I64);
    }
    index = tn_max(g, tn_min(g, index, top), zero);
    t->index = outer(t, t->index.id ? tn_mul(g, t->index, extent) : t->index, index, n, tn_add);
    t->weight = outer(t, t->weight, weight, n, tn_mul);
    t->inside = outer(t, t->inside, inside, n, tn_and);
    t->count *= n;
    return TN_OK;
}

/* [points, columns]: the weighted sums of rows base[point] + index of `rows` [n, columns]. */
static tn_value read_taps(taps *t, tn_value rows, tn_value base) {
    static const int last[1] = {1}, third[1] = {2};
    tn_graph *g = t->x->graph;
    tn_value v = tn_gather(g, rows, tn_add(g, tn_expand_dims(g, base, 1, last), t->index), 0);
    if (!v.id)
        return v;
    if (t->inside.id)
        v = tn_select(g, tn_expand_dims(g, t->inside, 1, third), v, number(t, v, 0));
    if (t->weight.id)
        v = tn_mul(g, v, tn_expand_dims(g, tn_cast(g, t->weight, tn_value_dtype(g, v)), 1, third));
    return tn_reduce_sum(g, v, 1, last, false);
}

/* --- grid sample -------------------------------------------------------------------------------------------------------------------- */

/* From [-1, 1] to positions of elements. */
static tn_value to_elements(taps *t, tn_value n, tn_dim size) {
    tn_graph *g = t->x->graph;
    if (!n.id)
        return n;
    tn_value one = number(t, n, 1), two = number(t, n, 2);
    tn_value width = tn_expand_size_value(t->x, size, tn_value_dtype(g, n)), shifted = tn_add(g, n, one);
    if (t->corners)
        return tn_mul(g, tn_div(g, shifted, two), tn_sub(g, width, one));
    return tn_div(g, tn_sub(g, tn_mul(g, shifted, width), one), two);
}

static tn_status expand_grid_sample(tn_expand *x) {
    tn_graph *g = x->graph;
    int rank = tn_expand_rank(x, 0), spatial = rank - 2;
    tn_dtype dtype = tn_expand_dtype(x, 0), grid_dtype = tn_expand_dtype(x, 1);
    int64_t n = tn_expand_string_is(x, "mode", "nearest")                                              ? 1
                : tn_expand_string_is(x, "mode", "cubic") || tn_expand_string_is(x, "mode", "bicubic") ? 4
                                                                                                       : 2;
    TN_RULE(x, rank >= 3, "the input has rank %d: at least 3 are needed", rank);
    TN_RULE(x, tn_expand_rank(x, 1) == rank, "the grid has rank %d, but the input %d", tn_expand_rank(x, 1), rank);
    TN_RULE(x, tn_is_float(grid_dtype), "the grid is %s: it must be of a floating point type",
            tn_dtype_name(grid_dtype));
    if (n != 1 && tn_dtype_is_complex(dtype))
        return tn_expand_unsupported(x, "interpolation of %s", tn_dtype_name(dtype));
    TN_RULE(x, n == 1 || tn_is_float(dtype) || tn_is_int(dtype), "interpolation of %s", tn_dtype_name(dtype));
    TN_RULE(x, n < 4 || spatial <= 8, "cubic interpolation over %d axes", spatial);
    const tn_dim *dims = tn_expand_dims_copy(x, 0), *grid = tn_expand_dims_copy(x, 1);
    if (!dims || !grid)
        return tn_error_status();
    for (int i = 2; i < rank; i++) {
        TN_RULE(x, !tn_size_is(x, dims[i], 0), "axis %d of the input is empty: there is nothing to sample", i);
        TN_TRY(tn_expand_hold_least(x, 0, i, tn_size(x, 1)));
    }
    TN_RULE_SIZE(x, 1, -1, tn_size(x, spatial), "the last axis of the grid must hold %d coordinates", spatial);
    TN_RULE_SIZE(x, 1, 0, dims[0], "input and grid differ in their batch");
    tn_dim in = tn_size_product(x, spatial, dims + 2), out = tn_size_product(x, spatial, grid + 1);
    TN_SIZED(x, in);
    TN_SIZED(x, out);
    taps t = {.x = x,
              .padding = tn_expand_string_is(x, "padding_mode", "zeros")    ? PAD_ZEROS
                         : tn_expand_string_is(x, "padding_mode", "border") ? PAD_BORDER
                                                                            : PAD_REFLECTION,
              .corners = tn_expand_int(x, "align_corners") != 0,
              .points = tn_dim_mul(g, dims[0], out),
              .count = 1};
    TN_SIZED(x, t.points);
    tn_dim table[2] = {t.points, tn_size(x, spatial)};
    tn_value places = tn_reshape_dims(g, tn_cast(g, tn_expand_input(x, 1), tn_wide(grid_dtype)), 2, table);
    for (int i = 0; i < spatial; i++) { /* the grid lists the innermost axis first */
        static const int second[1] = {1};
        tn_value at = tn_squeeze(g, tn_slice_axis(g, places, 1, spatial - 1 - i, 1), 1, second);
        TN_TRY(add_axis(&t, to_elements(&t, at, dims[2 + i]), dims[2 + i], n));
    }
    static const int channels_last[3] = {0, 2, 1};
    tn_dtype wide = n == 1 ? dtype : tn_is_float(dtype) ? tn_wide(dtype) : TN_F64;
    tn_dim images[3] = {dims[0], dims[1], in}, rows[2] = {tn_dim_mul(g, dims[0], in), dims[1]};
    TN_SIZED(x, rows[0]);
    tn_value v = tn_cast(g, tn_reshape_dims(g, tn_expand_input(x, 0), 3, images), wide);
    v = tn_reshape_dims(g, tn_transpose(g, v, channels_last), 2, rows);
    tn_dim pair[2] = {dims[0], out};
    tn_value image = tn_mul(g, tn_iota(g, TN_I64, 2, pair, 0), tn_expand_size_value(x, in, TN_I64));
    image = tn_reshape_dims(g, image, 1, &t.points);
    if (n == 1) { /* no arithmetic: any element type */
        static const int one[1] = {1};
        v = tn_gather(g, v, tn_add(g, tn_expand_dims(g, image, 1, one), t.index), 0);
        v = tn_squeeze(g, v, 1, one);
        TN_BUILT(x, v);
        if (t.inside.id)
            v = tn_select(g, t.inside, v, tn_expand_zero(x, dtype));
    } else {
        v = read_taps(&t, v, image);
    }
    tn_dim apart[3] = {dims[0], out, dims[1]}, result[TN_MAX_RANK] = {dims[0], dims[1]};
    for (int i = 0; i < spatial; i++)
        result[2 + i] = grid[1 + i];
    v = tn_transpose(g, tn_reshape_dims(g, v, 3, apart), channels_last);
    return tn_expand_set(x, 0, tn_cast(g, tn_reshape_dims(g, v, rank, result), dtype));
}

/* --- affine grid ---------------------------------------------------------------------------------------------------------------------- */

static tn_status expand_affine_grid(tn_expand *x) {
    tn_graph *g = x->graph;
    tn_dim size[TN_MAX_RANK], grid[TN_MAX_RANK], points;
    tn_dtype dtype = tn_expand_dtype(x, 0), wide = tn_wide(dtype);
    int n, spatial;
    bool corners = tn_expand_int(x, "align_corners") != 0;
    TN_TRY(tn_expand_known_dims(x, 1, "needs the elements of 'size'", size, &n));
    TN_RULE(x, n == 4 || n == 5, "'size' has %d entries, it must have 4 or 5", n);
    spatial = n - 2;
    TN_RULE(x, tn_is_float(dtype), "'theta' is %s: it must be of a floating point type", tn_dtype_name(dtype));
    const tn_dim theta[3] = {size[0], tn_size(x, spatial), tn_size(x, spatial + 1)};
    TN_RULE(x, tn_expand_rank(x, 0) == 3, "'theta' must have the shape [N, %d, %d]", spatial, spatial + 1);
    for (int i = 0; i < 3; i++)
        TN_RULE_SAME(x, tn_expand_dim(x, 0, i), theta[i], "'theta' must have the shape [N, %d, %d]", spatial,
                     spatial + 1);
    for (int i = 0; i < n; i++)
        TN_RULE(x, !tn_size_at_most(x, size[i], -1), "entry %d of 'size' is negative", i);
    points = tn_size_product(x, spatial, size + 2);
    TN_SIZED(x, points);
    tn_value parts[4];
    for (int i = 0; i < spatial; i++) { /* innermost axis first */
        int axis = spatial - 1 - i;
        tn_value width = tn_expand_size_value(x, size[2 + axis], wide), two = tn_scalar(g, wide, 2),
                 one = tn_scalar(g, wide, 1), step, start = tn_scalar(g, wide, -1);
        if (corners) { /* one element stands at the start */
            tn_value gaps = tn_sub(g, width, one);
            step =
                tn_select(g, tn_greater(g, gaps, tn_scalar(g, wide, 0)), tn_div(g, two, gaps), tn_scalar(g, wide, 0));
        } else {
            step = tn_div(g, two, width);
            start = tn_add(g, start, tn_div(g, step, two));
        }
        tn_value at = tn_add(g, start, tn_mul(g, tn_iota(g, wide, spatial, size + 2, axis), step));
        tn_dim column[2] = {points, tn_size(x, 1)};
        parts[i] = tn_reshape_dims(g, at, 2, column);
        parts[spatial] = tn_expand_full(x, wide, 1, 2, column);
    }
    static const int64_t last[1] = {1}, theta_last[1] = {2};
    static const int turned[3] = {1, 0, 2};
    tn_value places = tn_concat(g, 1, (uint32_t)spatial + 1, parts);
    tn_value y = tn_dot(g, places, tn_cast(g, tn_expand_input(x, 0), wide), 0, NULL, NULL, 1, last, theta_last);
    y = tn_transpose(g, y, turned); /* [N, points, spatial] */
    grid[0] = size[0];
    for (int i = 0; i < spatial; i++)
        grid[1 + i] = size[2 + i];
    grid[1 + spatial] = tn_size(x, spatial);
    return tn_expand_set(x, 0, tn_cast(g, tn_reshape_dims(g, y, n, grid), dtype));
}

/* --- deformable convolution ------------------------------------------------------------------------------------------------------------- */

typedef struct deform {
    int spatial;
    int64_t groups, offset_groups;
    int64_t stride[TN_MAX_RANK], dilation[TN_MAX_RANK], pads[2 * TN_MAX_RANK], kernel[TN_MAX_RANK], taps;
    tn_dim batch, channels, filters, in, out; /* in, out: elements of an image */
    tn_dim out_dims[TN_MAX_RANK], in_dims[TN_MAX_RANK];
    tn_dtype wide;
} deform;

static tn_status read_deform(tn_expand *x, deform *d) {
    tn_graph *g = x->graph;
    int rank = tn_expand_rank(x, 0), n = rank - 2;
    int64_t c;
    TN_RULE(x, rank >= 3, "the input has rank %d: at least 3 are needed", rank);
    TN_RULE(x, tn_expand_rank(x, 1) == rank && tn_expand_rank(x, 2) == rank,
            "the weights have rank %d, the offsets %d, but the input %d", tn_expand_rank(x, 1), tn_expand_rank(x, 2),
            rank);
    d->spatial = n;
    d->wide = tn_wide(tn_expand_dtype(x, 0));
    d->groups = tn_expand_int(x, "group");
    d->offset_groups = tn_expand_int(x, "offset_group");
    TN_RULE(x, d->groups >= 1 && d->offset_groups >= 1, "the number of groups is below 1");
    TN_TRY(tn_expand_list(x, "kernel_shape", n, 1, 0, d->kernel));
    TN_TRY(tn_expand_list(x, "strides", n, 1, 1, d->stride));
    TN_TRY(tn_expand_list(x, "dilations", n, 1, 1, d->dilation));
    TN_TRY(tn_expand_list(x, "pads", 2 * n, 0, 0, d->pads));
    d->batch = tn_expand_dim(x, 0, 0);
    d->channels = tn_expand_dim(x, 0, 1);
    d->filters = tn_expand_dim(x, 1, 0);
    d->taps = 1;
    if (tn_dim_is_const(g, d->channels, &c))
        TN_RULE(x, c % d->groups == 0 && c % d->offset_groups == 0,
                "%" PRId64 " channels cannot be divided into groups", c);
    if (tn_dim_is_const(g, d->filters, &c))
        TN_RULE(x, c % d->groups == 0, "%" PRId64 " output channels cannot be divided into groups", c);
    TN_TRY(tn_expand_hold_multiple(x, 0, 1, d->groups));
    TN_TRY(tn_expand_hold_multiple(x, 0, 1, d->offset_groups));
    TN_TRY(tn_expand_hold_multiple(x, 1, 0, d->groups));
    d->channels = tn_expand_dim(x, 0, 1);
    d->filters = tn_expand_dim(x, 1, 0);
    for (int i = 0; i < n; i++) {
        int64_t k;
        if (!tn_dim_is_const(g, tn_expand_dim(x, 1, 2 + i), &k))
            return tn_expand_later(x, "needs the size of the kernel");
        TN_RULE(x, k >= 1 && k < 1 << 20 && (!d->kernel[i] || d->kernel[i] == k),
                "attribute 'kernel_shape' disagrees with the weights on axis %d, or the kernel is empty", i);
        d->kernel[i] = k;
        d->taps *= k;
        TN_RULE(x, d->taps < 1 << 20, "the kernel is too large");
        d->in_dims[i] = tn_expand_dim(x, 0, 2 + i);
        d->out_dims[i] = tn_expand_dim(x, 2, 2 + i);
        tn_dim reach = tn_size(x, d->pads[i] + d->pads[n + i] - d->dilation[i] * (k - 1) - 1);
        tn_dim want = tn_dim_add(g, tn_dim_floordiv(g, tn_dim_add(g, d->in_dims[i], reach), tn_size(x, d->stride[i])),
                                 tn_size(x, 1));
        TN_SIZED(x, want);
        TN_RULE(x, !tn_dim_never_equal(g, want, d->out_dims[i]), "the offsets have the wrong size on axis %d", 2 + i);
        if (!tn_dim_equal(g, want, d->out_dims[i]))
            return tn_expand_later(x, "needs the sizes of input and offsets");
    }
    tn_dim offsets = tn_size(x, d->offset_groups * d->taps * n), masks = tn_size(x, d->offset_groups * d->taps);
    TN_RULE(x, !tn_dim_never_equal(g, tn_expand_dim(x, 2, 1), offsets), "the offsets have the wrong size on axis 1");
    if (tn_expand_has(x, 4))
        TN_RULE(x, tn_expand_rank(x, 4) == rank && !tn_dim_never_equal(g, tn_expand_dim(x, 4, 1), masks),
                "the mask has the wrong shape");
    d->in = tn_size_product(x, n, d->in_dims);
    d->out = tn_size_product(x, n, d->out_dims);
    TN_SIZED(x, d->in);
    TN_SIZED(x, d->out);
    return TN_OK;
}

/* Where each kernel element of axis i reads: [batch, offset groups, taps, out] as one list. */
static tn_value deform_places(tn_expand *x, const deform *d, tn_value offsets, int i, const tn_dim *points) {
    static const int pair[1] = {3};
    tn_graph *g = x->graph;
    int64_t *at = tn_expand_alloc(x, (size_t)d->taps, sizeof *at), inner = 1;
    if (!at) {
        tn_graph_stick(g);
        return (tn_value){0};
    }
    for (int k = i + 1; k < d->spatial; k++)
        inner *= d->kernel[k];
    for (int64_t k = 0; k < d->taps; k++)
        at[k] = k / inner % d->kernel[i] * d->dilation[i] - d->pads[i];
    tn_value kernel = tn_cast(g, tn_constant_i64(g, 1, d->taps, at), d->wide);
    tn_value out =
        tn_mul(g, tn_iota(g, d->wide, d->spatial, d->out_dims, i), tn_scalar(g, d->wide, (double)d->stride[i]));
    tn_value place = tn_squeeze(g, tn_slice_axis(g, offsets, 3, i, 1), 1, pair); /* [batch, groups, taps, out] */
    place = tn_add(g, place, tn_expand_along(x, kernel, 2, 0));
    place = tn_add(g, place, tn_reshape_dims(g, out, 1, &d->out));
    return tn_reshape_dims(g, place, 1, points);
}

static tn_status expand_deform_conv(tn_expand *x) {
    tn_graph *g = x->graph;
    deform d = {0};
    TN_TRY(read_deform(x, &d));
    tn_dim og = tn_size(x, d.offset_groups), k = tn_size(x, d.taps), gs = tn_size(x, d.groups);
    tn_dim channels = tn_dim_floordiv(g, d.channels, og), four[4] = {d.batch, og, k, d.out};
    taps t = {.x = x, .points = tn_size_product(x, 4, four), .count = 1};
    TN_SIZED(x, t.points);
    tn_dim apart[5] = {d.batch, og, k, tn_size(x, d.spatial), d.out};
    tn_value offsets = tn_reshape_dims(g, tn_cast(g, tn_expand_input(x, 2), d.wide), 5, apart);
    for (int i = 0; i < d.spatial; i++)
        TN_TRY(add_axis(&t, deform_places(x, &d, offsets, i, &t.points), d.in_dims[i], 2));
    /* the image as rows of the channels that share offsets */
    static const int rows_first[4] = {0, 1, 3, 2};
    tn_dim images[4] = {d.batch, og, channels, d.in};
    tn_dim rows[2] = {tn_dim_mul(g, tn_dim_mul(g, d.batch, og), d.in), channels};
    TN_SIZED(x, rows[0]);
    tn_value v = tn_reshape_dims(g, tn_cast(g, tn_expand_input(x, 0), d.wide), 4, images);
    v = tn_expand_one_row(x, tn_reshape_dims(g, tn_transpose(g, v, rows_first), 2, rows));
    tn_dim two[2] = {tn_dim_mul(g, d.batch, og), tn_dim_mul(g, k, d.out)};
    tn_value image = tn_mul(g, tn_iota(g, TN_I64, 2, two, 0), tn_expand_size_value(x, d.in, TN_I64));
    v = read_taps(&t, v, tn_reshape_dims(g, image, 1, &t.points));
    tn_dim five[5] = {d.batch, og, k, d.out, channels};
    v = tn_reshape_dims(g, v, 5, five);
    if (tn_expand_has(x, 4)) {
        tn_dim mask[5] = {d.batch, og, k, d.out, tn_size(x, 1)};
        v = tn_mul(g, v, tn_reshape_dims(g, tn_cast(g, tn_expand_input(x, 4), d.wide), 5, mask));
    }
    /* columns [batch, groups, channels of a group * taps, out] */
    static const int columns_last[5] = {0, 1, 4, 2, 3}, batch_first[4] = {2, 0, 1, 3};
    tn_dim depth = tn_dim_mul(g, tn_dim_floordiv(g, d.channels, gs), k);
    tn_dim columns[4] = {d.batch, gs, depth, d.out}, filters[3] = {gs, tn_dim_floordiv(g, d.filters, gs), depth};
    v = tn_reshape_dims(g, tn_transpose(g, v, columns_last), 4, columns);
    tn_value w = tn_reshape_dims(g, tn_cast(g, tn_expand_input(x, 1), d.wide), 3, filters);
    static const int64_t w_batch[1] = {0}, v_batch[1] = {1}, last[1] = {2};
    tn_value y = tn_dot(g, w, v, 1, w_batch, v_batch, 1, last, last); /* [groups, filters, batch, out] */
    tn_dim result[TN_MAX_RANK] = {d.batch, d.filters};
    for (int i = 0; i < d.spatial; i++)
        result[2 + i] = d.out_dims[i];
    y = tn_reshape_dims(g, tn_transpose(g, y, batch_first), 2 + d.spatial, result);
    if (tn_expand_has(x, 3)) {
        TN_RULE(x, tn_expand_rank(x, 3) == 1 && !tn_dim_never_equal(g, tn_expand_dim(x, 3, 0), d.filters),
                "the bias must have one entry for each output channel");
        tn_value bias = tn_expand_listed(x, tn_cast(g, tn_expand_input(x, 3), d.wide), d.filters);
        y = tn_add(g, y, tn_expand_along(x, bias, 2 + d.spatial, 1));
    }
    return tn_expand_set(x, 0, tn_cast(g, y, tn_expand_dtype(x, 0)));
}

/* --- rows -------------------------------------------------------------------------------------------------------------------------------- */

#define SAMPLE(modes, usual)                                                \
    TN_SPEC_BOOL("align_corners", 0), TN_SPEC_STRING("mode", usual, modes), \
        TN_SPEC_STRING("padding_mode", "zeros", "zeros|border|reflection")
static const tn_attr_spec sample_attrs[] = {SAMPLE("linear|nearest|cubic", "linear"), {0}};
static const tn_attr_spec sample_16_attrs[] = {SAMPLE("bilinear|nearest|bicubic", "bilinear"), {0}};
static const tn_attr_spec grid_attrs[] = {TN_SPEC_BOOL("align_corners", 0), {0}};
static const tn_attr_spec deform_attrs[] = {TN_SPEC_INTS("dilations"),
                                            TN_SPEC_INT("group", 1),
                                            TN_SPEC_INTS("kernel_shape"),
                                            TN_SPEC_INT("offset_group", 1),
                                            TN_SPEC_INTS("pads"),
                                            TN_SPEC_INTS("strides"),
                                            {0}};

static const tn_onnx_op rows[] = {
    TN_ONNX("GridSample", .since = 20, .inputs = {2, 2}, .outputs = {1, 1}, .attrs = sample_attrs,
            .expand = expand_grid_sample),
    TN_ONNX("GridSample", .since = 16, .until = 19, .inputs = {2, 2}, .outputs = {1, 1}, .attrs = sample_16_attrs,
            .expand = expand_grid_sample),
    TN_ONNX("AffineGrid", .since = 20, .inputs = {2, 2}, .outputs = {1, 1}, .attrs = grid_attrs,
            .expand = expand_affine_grid),
    TN_ONNX("DeformConv", .since = 19, .inputs = {3, 5}, .outputs = {1, 1}, .attrs = deform_attrs,
            .expand = expand_deform_conv),
};

const tn_onnx_family tn_onnx_family_sample = {rows, sizeof rows / sizeof *rows};
