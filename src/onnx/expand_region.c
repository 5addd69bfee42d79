/* Regions of images: RoiAlign, MaxRoiPool; Col2Im, which adds up blocks of columns. */
#include <inttypes.h>
#include <math.h>

#include "onnx/expand_common.h"

enum { MOST_POINTS = 1 << 22 }; /* that are read for one output element */

/* --- RoiAlign: the mean or maximum of points read between the elements ---------------------------------------------------------------- */

typedef struct align {
    tn_expand *x;
    tn_dtype wide;
    tn_dim regions, channels, height, width;
    int64_t out[2]; /* height, width */
    int64_t ratio;  /* points for each output element and axis; 0: as many as it is wide */
    bool mean;
    tn_value rows;      /* [batch * height * width, channels] */
    tn_value image;     /* i64 [regions, 1, 1]: the first row of its image */
    tn_value start[2];  /* [regions, 1] along y, x */
    tn_value bin[2];    /* size of an output element, [regions, 1] */
    tn_value points[2]; /* number of points, as float [regions, 1] */
} align;

/* Two neighbours along an axis and the weight of the second; far outside: `out`. */
typedef struct between {
    tn_value low, high, weight, out;
} between;

static between locate(const align *a, tn_value at, tn_dim size) {
    tn_graph *g = a->x->graph;
    between b;
    tn_value one = tn_scalar(g, a->wide, 1), zero = tn_scalar(g, a->wide, 0);
    tn_value n = tn_expand_size_value(a->x, size, a->wide), top = tn_sub(g, n, one);
    b.out = tn_or(g, tn_less(g, at, tn_scalar(g, a->wide, -1)), tn_greater(g, at, n));
    at = tn_max(g, tn_min(g, at, top), zero); /* beyond the last element it is the last one */
    tn_value low = tn_floor(g, at);
    b.weight = tn_sub(g, at, low);
    b.low = tn_cast(g, low, TN_I64);
    b.high = tn_cast(g, tn_min(g, tn_add(g, low, one), top), TN_I64);
    return b;
}

/* Values at y [regions, n] by x [regions, m]: [regions, n, m, channels]; outside 0. For the maximum the largest of the four
   weighted neighbours stands for their sum. */
static tn_value sample(const align *a, tn_value ys, tn_value xs) {
    static const int y_axis[1] = {2}, x_axis[1] = {1}, last[1] = {3};
    tn_graph *g = a->x->graph;
    between y = locate(a, tn_expand_dims(g, ys, 1, y_axis), a->height),
            x = locate(a, tn_expand_dims(g, xs, 1, x_axis), a->width);
    tn_value width = tn_expand_size_value(a->x, a->width, TN_I64), one = tn_scalar(g, a->wide, 1), sum = {0};
    for (int i = 0; i < 4; i++) {
        tn_value row = tn_mul(g, i < 2 ? y.low : y.high, width), at = tn_add(g, row, i % 2 ? x.high : x.low);
        tn_value wy = i < 2 ? tn_sub(g, one, y.weight) : y.weight, wx = i % 2 ? x.weight : tn_sub(g, one, x.weight);
        tn_value v = tn_gather(g, a->rows, tn_add(g, at, a->image), 0);
        v = tn_mul(g, v, tn_expand_dims(g, tn_mul(g, wy, wx), 1, last));
        sum = i == 0 ? v : a->mean ? tn_add(g, sum, v) : tn_max(g, sum, v);
    }
    tn_value out = tn_expand_dims(g, tn_or(g, y.out, x.out), 1, last);
    return tn_select(g, out, tn_scalar(g, a->wide, 0), sum);
}

/* The coordinates of points number `point` (a float, broadcast to [1, n]) of output elements `bin` [1, n] along axis i. */
static tn_value coordinate(const align *a, int i, tn_value bin, tn_value point) {
    tn_graph *g = a->x->graph;
    tn_value part = tn_div(g, tn_mul(g, tn_add(g, point, tn_scalar(g, a->wide, 0.5)), a->bin[i]), a->points[i]);
    return tn_add(g, tn_add(g, a->start[i], tn_mul(g, bin, a->bin[i])), part);
}

/* A fixed number of points for each output element: all are read at once. */
static tn_value align_fixed(const align *a) {
    static const int both[2] = {2, 4};
    tn_expand *x = a->x;
    tn_graph *g = x->graph;
    tn_value at[2];
    for (int i = 0; i < 2; i++) {
        tn_dim one = tn_size(x, 1), grid[3] = {one, tn_size(x, a->out[i]), tn_size(x, a->ratio)};
        tn_dim line[2] = {one, tn_dim_mul(g, grid[1], grid[2])};
        tn_value bin = tn_reshape_dims(g, tn_iota(g, a->wide, 3, grid, 1), 2, line);
        tn_value point = tn_reshape_dims(g, tn_iota(g, a->wide, 3, grid, 2), 2, line);
        at[i] = coordinate(a, i, bin, point);
    }
    tn_dim ratio = tn_size(x, a->ratio),
           apart[6] = {a->regions, tn_size(x, a->out[0]), ratio, tn_size(x, a->out[1]), ratio, a->channels};
    tn_value v = tn_reshape_dims(g, sample(a, at[0], at[1]), 6, apart);
    if (!v.id || !a->mean)
        return tn_reduce_max(g, v, 2, both, false);
    return tn_div(g, tn_reduce_sum(g, v, 2, both, false), tn_scalar_like(g, v, (double)a->ratio * (double)a->ratio));
}

/* Loop values of the other case: y and x of the point (i64 scalars), the result so far. */
typedef struct align_loop {
    const align *a;
    tn_value most[2]; /* i64 scalars: the largest numbers of points */
} align_loop;

static void more_points(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    align_loop *l = ctx;
    results[0] = tn_and(g, tn_less(g, args[0], l->most[0]), tn_greater(g, l->most[1], tn_scalar(g, TN_I64, 0)));
}

static void next_point(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    static const int sides[3] = {1, 2, 3};
    align_loop *l = ctx;
    const align *a = l->a;
    tn_value at[2], live[2], one = tn_scalar(g, TN_I64, 1);
    for (int i = 0; i < 2; i++) {
        tn_dim line[2] = {tn_size(a->x, 1), tn_size(a->x, a->out[i])};
        tn_value point = tn_cast(g, args[i], a->wide);
        at[i] = coordinate(a, i, tn_iota(g, a->wide, 2, line, 1), point);
        live[i] = tn_less(g, point, a->points[i]);
    }
    tn_value v = sample(a, at[0], at[1]),
             use = tn_expand_dims(g, tn_squeeze(g, tn_and(g, live[0], live[1]), 1, sides), 3, sides);
    tn_value first = tn_equal(g, tn_add(g, args[0], args[1]), tn_scalar(g, TN_I64, 0));
    tn_value with = a->mean ? tn_add(g, args[2], v) : tn_select(g, first, v, tn_max(g, args[2], v));
    tn_value end = tn_greater_equal(g, tn_add(g, args[1], one), l->most[1]);
    results[0] = tn_select(g, end, tn_add(g, args[0], one), args[0]);
    results[1] = tn_select(g, end, tn_scalar(g, TN_I64, 0), tn_add(g, args[1], one));
    results[2] = tn_select(g, use, with, args[2]);
}

/* As many points as a region's output elements are wide: one after the other, for all regions that have that many. */
static tn_status align_adaptive(align *a, tn_value *out) {
    static const int sides[2] = {2, 3};
    tn_expand *x = a->x;
    tn_graph *g = x->graph;
    align_loop l = {.a = a};
    tn_value tops[2];
    for (int i = 0; i < 2; i++) {
        a->points[i] = tn_max(g, tn_ceil(g, a->bin[i]), tn_scalar(g, a->wide, 0));
        tops[i] = tn_max(g, tn_reduce_max(g, a->points[i], TN_ALL_AXES, false), tn_scalar(g, a->wide, 0));
    }
    /* a region many thousand elements wide is no region */
    tn_value fits = tn_less_equal(g, tn_mul(g, tops[0], tops[1]), tn_scalar(g, a->wide, MOST_POINTS));
    tn_value shown[3] = {tops[0], tops[1], tn_scalar(g, TN_I64, MOST_POINTS)};
    for (int i = 0; i < 2; i++) {
        tn_value top = tn_require(
            g, tops[i], fits,
            "an output element is {0} by {1} elements of the input large: at most {2} are read for one", 3, shown);
        l.most[i] = tn_cast(g, top, TN_I64);
    }
    tn_dim dims[4] = {a->regions, tn_size(x, a->out[0]), tn_size(x, a->out[1]), a->channels};
    tn_value init[3] = {tn_scalar(g, TN_I64, 0), tn_scalar(g, TN_I64, 0), tn_expand_full(x, a->wide, 0, 4, dims)},
             results[3];
    TN_TRY(tn_while(g, 3, init, NULL, more_points, next_point, &l, 0, results));
    *out = results[2];
    if (a->mean) {
        tn_value count = tn_max(g, tn_mul(g, a->points[0], a->points[1]), tn_scalar(g, a->wide, 1));
        *out = tn_div(g, *out, tn_expand_dims(g, count, 2, sides));
    }
    return TN_OK;
}

/* [N, C, H, W] as rows [N * H * W, C] in `wide`. */
static tn_value image_rows(tn_expand *x, tn_dtype wide, const tn_dim *dims) {
    static const int channels_last[4] = {0, 2, 3, 1};
    tn_dim rows[2] = {tn_dim_mul(x->graph, dims[0], tn_dim_mul(x->graph, dims[2], dims[3])), dims[1]};
    tn_value v = tn_transpose(x->graph, tn_cast(x->graph, tn_expand_input(x, 0), wide), channels_last);
    return tn_reshape_dims(x->graph, v, 2, rows);
}

static tn_status check_regions(tn_expand *x, int columns) {
    TN_RULE(x, tn_expand_rank(x, 0) == 4, "the input has rank %d, it must be 4", tn_expand_rank(x, 0));
    TN_RULE(x, tn_is_float(tn_expand_dtype(x, 0)), "the input is %s: it must be of a floating point type",
            tn_dtype_name(tn_expand_dtype(x, 0)));
    TN_RULE(x, tn_expand_rank(x, 1) == 2, "the regions must have the shape [regions, %d]", columns);
    TN_RULE_SIZE(x, 1, 1, tn_size(x, columns), "the regions must have the shape [regions, %d]", columns);
    return TN_OK;
}

static tn_status expand_roi_align(tn_expand *x) {
    tn_graph *g = x->graph;
    TN_TRY(check_regions(x, 4));
    const tn_dim *dims = tn_expand_dims_copy(x, 0);
    if (!dims)
        return tn_error_status();
    tn_dtype dtype = tn_expand_dtype(x, 0);
    align a = {.x = x,
               .wide = tn_wide(dtype),
               .regions = tn_expand_dim(x, 1, 0),
               .channels = dims[1],
               .height = dims[2],
               .width = dims[3],
               .out = {tn_expand_int(x, "output_height"), tn_expand_int(x, "output_width")},
               .ratio = tn_expand_int(x, "sampling_ratio"),
               .mean = !tn_expand_string_is(x, "mode", "max")};
    TN_RULE(x, tn_expand_rank(x, 2) == 1 && !tn_dim_never_equal(g, tn_expand_dim(x, 2, 0), a.regions),
            "there must be one batch index for each region");
    TN_RULE(x, a.out[0] >= 1 && a.out[1] >= 1 && a.out[0] < 1 << 20 && a.out[1] < 1 << 20,
            "the output size is %" PRId64 " by %" PRId64, a.out[0], a.out[1]);
    TN_RULE(x, a.ratio >= 0 && a.ratio < 1 << 20, "attribute 'sampling_ratio' is %" PRId64, a.ratio);
    bool half = tn_expand_string_is(x, "coordinate_transformation_mode", "half_pixel");
    a.rows = tn_expand_one_row(x, image_rows(x, a.wide, dims));
    tn_dim column[3] = {a.regions, tn_size(x, 1), tn_size(x, 1)};
    tn_value index = tn_expand_counted(
        x, 2, tn_sub(g, tn_expand_size_value(x, dims[0], TN_I64), tn_scalar(g, TN_I64, 1)), "batch_indices");
    index = tn_reshape_dims(g, index, 3, column);
    a.image = tn_mul(g, index, tn_expand_size_value(x, tn_dim_mul(g, dims[2], dims[3]), TN_I64));
    /* as many as there are indices, also where none is read */
    tn_value boxes = tn_expand_sure(x, tn_expand_input(x, 1), 0, tn_expand_dim(x, 2, 0));
    TN_BUILT(x, boxes);
    tn_value box = tn_mul(g, tn_cast(g, boxes, a.wide), tn_scalar(g, a.wide, tn_expand_float(x, "spatial_scale")));
    if (half)
        box = tn_sub(g, box, tn_scalar(g, a.wide, 0.5));
    for (int i = 0; i < 2; i++) {
        a.start[i] = tn_slice_axis(g, box, 1, 1 - i, 1);
        tn_value size = tn_sub(g, tn_slice_axis(g, box, 1, 3 - i, 1), a.start[i]);
        if (!half) /* a malformed region is one element */
            size = tn_max(g, size, tn_scalar(g, a.wide, 1));
        a.bin[i] = tn_div(g, size, tn_scalar(g, a.wide, (double)a.out[i]));
        a.points[i] = tn_scalar(g, a.wide, (double)a.ratio);
    }
    static const int channels_second[4] = {0, 3, 1, 2};
    tn_value y;
    if (a.ratio)
        y = align_fixed(&a);
    else
        TN_TRY(align_adaptive(&a, &y));
    return tn_expand_set(x, 0, tn_cast(g, tn_transpose(g, y, channels_second), dtype));
}

/* --- MaxRoiPool: the maximum over rectangles of whole elements --------------------------------------------------------------------------- */

typedef struct pool {
    tn_expand *x;
    tn_value image; /* [N, C, H, W] */
    tn_dim dims[4];
    int64_t out[2];
    double scale;
    tn_dtype wide;
} pool;

/* Rounded to the nearest integer, halves away from 0. */
static tn_value round_away(tn_graph *g, tn_value v) {
    tn_value half = tn_scalar_like(g, v, 0.5), away = tn_floor(g, tn_add(g, tn_abs(g, v), half));
    return tn_mul(g, tn_sign(g, v), away);
}

/* Which elements along axis i (0 height, 1 width) belong to which output element: bool [out, size]; from first and last of a
   region, scalars. */
static tn_value members(const pool *p, int i, tn_value first, tn_value last) {
    tn_graph *g = p->x->graph;
    tn_dim grid[2] = {tn_size(p->x, p->out[i]), p->dims[2 + i]};
    tn_value one = tn_scalar(g, p->wide, 1), zero = tn_scalar(g, p->wide, 0);
    tn_value size = tn_max(g, tn_add(g, tn_sub(g, last, first), one), one);
    tn_value bin = tn_div(g, size, tn_scalar(g, p->wide, (double)p->out[i]));
    tn_value at = tn_iota(g, p->wide, 2, grid, 0), element = tn_iota(g, p->wide, 2, grid, 1);
    tn_value extent = tn_expand_size_value(p->x, p->dims[2 + i], p->wide);
    tn_value from = tn_add(g, tn_floor(g, tn_mul(g, at, bin)), first);
    tn_value to = tn_add(g, tn_ceil(g, tn_mul(g, tn_add(g, at, one), bin)), first);
    from = tn_min(g, tn_max(g, from, zero), extent);
    to = tn_min(g, tn_max(g, to, zero), extent);
    return tn_and(g, tn_greater_equal(g, element, from), tn_less(g, element, to));
}

/* One region [5] -> [C, out height, out width]. */
static void pool_region(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    const pool *p = ctx;
    tn_value part[5];
    for (int i = 0; i < 5; i++) {
        part[i] = tn_reshape_dims(g, tn_slice_axis(g, args[0], 0, i, 1), 0, NULL);
        if (i)
            part[i] = round_away(g, tn_mul(g, part[i], tn_scalar(g, p->wide, p->scale)));
    }
    tn_value v = tn_gather(g, p->image, tn_cast(g, part[0], TN_I64), 0);
    static const int height[1] = {2}, width[1] = {3};
    tn_dim one = tn_size(p->x, 1);
    tn_value rows = members(p, 0, part[2], part[4]), columns = members(p, 1, part[1], part[3]),
             low = tn_scalar(g, p->wide, -HUGE_VAL);
    tn_dim row_dims[4] = {one, tn_size(p->x, p->out[0]), p->dims[2], one},
           column_dims[4] = {one, one, tn_size(p->x, p->out[1]), p->dims[3]};
    static const int before_height[1] = {1}, before_width[1] = {2};
    v = tn_expand_dims(g, v, 1, before_height); /* [C, 1, H, W] */
    v = tn_reduce_max(g, tn_select(g, tn_reshape_dims(g, rows, 4, row_dims), v, low), 1, height, false);
    v = tn_expand_dims(g, v, 1, before_width); /* [C, out, 1, W] */
    v = tn_reduce_max(g, tn_select(g, tn_reshape_dims(g, columns, 4, column_dims), v, low), 1, width, false);
    /* a rectangle without elements gives 0 */
    static const int last[1] = {1}, second[1] = {1}, first[1] = {0};
    tn_value some = tn_and(g, tn_expand_dims(g, tn_reduce_or(g, rows, 1, last, false), 1, second),
                           tn_expand_dims(g, tn_reduce_or(g, columns, 1, last, false), 1, first));
    results[0] = tn_select(g, some, v, tn_scalar(g, p->wide, 0));
}

static tn_status expand_max_roi_pool(tn_expand *x) {
    tn_graph *g = x->graph;
    tn_dtype dtype = tn_expand_dtype(x, 0);
    pool p = {.x = x, .scale = tn_expand_float(x, "spatial_scale"), .wide = tn_wide(dtype)};
    TN_RULE(x, p.scale > 0 && isfinite(p.scale), "attribute 'spatial_scale' is not positive");
    TN_TRY(check_regions(x, 5));
    TN_TRY(tn_expand_list(x, "pooled_shape", 2, 1, 1, p.out));
    for (int i = 0; i < 4; i++)
        p.dims[i] = tn_expand_dim(x, 0, i);
    p.image = tn_cast(g, tn_expand_input(x, 0), p.wide);
    tn_value regions = tn_cast(g, tn_expand_input(x, 1), p.wide), y;
    tn_value index = tn_cast(g, tn_slice_axis(g, regions, 1, 0, 1), TN_I64), zero = tn_scalar(g, TN_I64, 0);
    tn_value last = tn_sub(g, tn_expand_size_value(x, p.dims[0], TN_I64), tn_scalar(g, TN_I64, 1)),
             shown[2] = {index, last};
    tn_value holds = tn_and(g, tn_greater_equal(g, index, zero), tn_less_equal(g, index, last));
    regions = tn_require(g, regions, holds, "rois{i}, the batch index, is {0}: it must lie in 0..{1}", 2, shown);
    TN_TRY(tn_scan(g, 0, NULL, 1, &regions, pool_region, &p, 1, &y));
    return tn_expand_set(x, 0, tn_cast(g, y, dtype));
}

/* --- Col2Im --------------------------------------------------------------------------------------------------------------------------------- */

/* Each element of the image reads, from each element of the block, the column that put it there. */
static tn_status expand_col2im(tn_expand *x) {
    tn_graph *g = x->graph;
    tn_dim image[TN_MAX_RANK], count[TN_MAX_RANK];
    int64_t block[TN_MAX_RANK], stride[TN_MAX_RANK], dilation[TN_MAX_RANK], pads[2 * TN_MAX_RANK], taps = 1;
    int n, m;
    TN_RULE(x, tn_expand_rank(x, 0) == 3, "the input has rank %d, it must be 3", tn_expand_rank(x, 0));
    TN_TRY(tn_expand_known_dims(x, 1, "needs the elements of 'image_shape'", image, &n));
    TN_TRY(tn_expand_known_ints(x, 2, "needs the elements of 'block_shape'", block, &m));
    TN_RULE(x, n == m && n >= 1 && n <= TN_MAX_RANK - 2, "'image_shape' has %d entries, 'block_shape' %d", n, m);
    TN_TRY(tn_expand_list(x, "strides", n, 1, 1, stride));
    TN_TRY(tn_expand_list(x, "dilations", n, 1, 1, dilation));
    TN_TRY(tn_expand_list(x, "pads", 2 * n, 0, 0, pads));
    const tn_dim *dims = tn_expand_dims_copy(x, 0);
    if (!dims)
        return tn_error_status();
    for (int i = 0; i < n; i++) {
        TN_RULE(x, block[i] >= 1 && block[i] < 1 << 20, "entry %d of 'block_shape' is %" PRId64, i, block[i]);
        TN_RULE(x, !tn_size_at_most(x, image[i], -1), "entry %d of 'image_shape' is negative", i);
        taps *= block[i];
        TN_RULE(x, taps < 1 << 24, "the block is too large");
        tn_dim room = tn_dim_add(g, image[i], tn_size(x, pads[i] + pads[n + i] - dilation[i] * (block[i] - 1) - 1));
        count[i] = tn_dim_add(g, tn_dim_floordiv(g, room, tn_size(x, stride[i])), tn_size(x, 1));
        TN_SIZED(x, count[i]);
        TN_RULE(x, !tn_size_at_most(x, count[i], -1), "the block is larger than the image on axis %d", i);
    }
    tn_dim blocks = tn_size_product(x, n, count), points = tn_size_product(x, n, image);
    TN_SIZED(x, blocks);
    TN_SIZED(x, points);
    TN_RULE(x, !tn_dim_never_equal(g, blocks, dims[2]), "the last axis must have one entry for each block");
    int64_t channels;
    if (tn_dim_is_const(g, dims[1], &channels))
        TN_RULE(x, channels % taps == 0, "axis 1 has %" PRId64 " entries: no multiple of the block's %" PRId64,
                channels, taps);
    TN_TRY(tn_expand_hold_multiple(x, 0, 1, taps));
    if (!tn_dim_equal(g, blocks, dims[2]) &&
        !x->final) /* where no block meets the image nothing is read that could tell */
        return tn_expand_later(x, "needs the number of columns");
    /* at[point][tap]: the block's element `tap` of the block whose position is (point + pad - offset) / stride */
    tn_dim table[2] = {points, tn_size(x, taps)};
    tn_value at = {0}, inside = {0}, zero = tn_scalar(g, TN_I64, 0);
    int64_t inner = taps;
    for (int i = 0; i < n; i++) {
        int64_t *offset = tn_expand_alloc(x, (size_t)taps, sizeof *offset);
        if (!offset)
            return tn_error_status();
        inner /= block[i];
        for (int64_t k = 0; k < taps; k++)
            offset[k] = pads[i] - k / inner % block[i] * dilation[i];
        tn_dim column[2] = {points, tn_size(x, 1)};
        tn_value here = tn_reshape_dims(g, tn_iota(g, TN_I64, n, image, i), 2, column),
                 step = tn_scalar(g, TN_I64, (double)stride[i]);
        here = tn_add(g, here, tn_constant_i64(g, 1, taps, offset));
        tn_value place = tn_div(g, here, step), total = tn_expand_size_value(x, count[i], TN_I64);
        tn_value good = tn_and(g, tn_equal(g, tn_mul(g, place, step), here),
                               tn_and(g, tn_greater_equal(g, here, zero), tn_less(g, place, total)));
        inside = i ? tn_and(g, inside, good) : good;
        at = i ? tn_add(g, tn_mul(g, at, total), place) : place;
    }
    TN_BUILT(x, at);
    at = tn_add(g, at, tn_mul(g, tn_iota(g, TN_I64, 2, table, 1), tn_expand_size_value(x, blocks, TN_I64)));
    at = tn_select(g, inside, at, zero);
    tn_dim rows[2] = {tn_dim_mul(g, dims[0], tn_dim_floordiv(g, dims[1], table[1])), tn_dim_mul(g, table[1], blocks)};
    TN_SIZED(x, rows[0]);
    TN_SIZED(x, rows[1]);
    static const int last[1] = {2};
    tn_value v = tn_gather(g, tn_reshape_dims(g, tn_expand_input(x, 0), 2, rows), at, 1);
    TN_BUILT(x, v);
    v = tn_reduce_sum(g, tn_select(g, inside, v, tn_scalar_like(g, v, 0)), 1, last, false);
    tn_dim out[TN_MAX_RANK] = {dims[0], tn_dim_floordiv(g, dims[1], table[1])};
    for (int i = 0; i < n; i++)
        out[2 + i] = image[i];
    return tn_expand_set(x, 0, tn_reshape_dims(g, v, 2 + n, out));
}

/* --- rows --------------------------------------------------------------------------------------------------------------------------------- */

static const tn_attr_spec align_attrs[] = {
    TN_SPEC_STRING("coordinate_transformation_mode", "half_pixel", "half_pixel|output_half_pixel"),
    TN_SPEC_STRING("mode", "avg", "avg|max"),
    TN_SPEC_INT("output_height", 1),
    TN_SPEC_INT("output_width", 1),
    TN_SPEC_INT("sampling_ratio", 0),
    TN_SPEC_FLOAT("spatial_scale", 1),
    {0}};
static const tn_attr_spec pool_attrs[] = {
    TN_SPEC_NEEDED("pooled_shape", TN_ATTR_INTS), TN_SPEC_FLOAT("spatial_scale", 1), {0}};
static const tn_attr_spec col_attrs[] = {TN_SPEC_INTS("dilations"), TN_SPEC_INTS("pads"), TN_SPEC_INTS("strides"), {0}};

static const tn_onnx_op rows[] = {
    TN_ONNX("RoiAlign", .since = 10, .inputs = {3, 3}, .outputs = {1, 1}, .attrs = align_attrs,
            .expand = expand_roi_align),
    TN_ONNX("MaxRoiPool", .since = 1, .inputs = {2, 2}, .outputs = {1, 1}, .attrs = pool_attrs,
            .expand = expand_max_roi_pool),
    TN_ONNX("Col2Im", .since = 18, .inputs = {3, 3}, .outputs = {1, 1}, .attrs = col_attrs, .expand = expand_col2im),
};

const tn_onnx_family tn_onnx_family_region = {rows, sizeof rows / sizeof *rows};
