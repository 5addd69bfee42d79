/* Resize and Upsample: one axis after the other. For an axis of n elements the coordinate of each of the m results in the input is
   computed as f64[m]; nearest reads the element at the rounded coordinate, linear and cubic add neighbours with weights. All of it is
   ordinary nodes, so sizes may be symbolic; with known sizes the coordinates are constants. Nearest by a whole scale repeats elements:
   movement alone. */
#include <inttypes.h>
#include <math.h>

#include "onnx/expand_common.h"

/* One resized axis. */
typedef struct axis_plan {
    int axis;
    tn_dim in, out;
    bool scaled;     /* `scale` is known */
    double scale;    /* out / in, as given */
    tn_value factor; /* the same as f64 */
    tn_value
        width; /* the length of the result that the coordinates speak of: scale * in, which may be no whole number, or out */
    tn_value start, end; /* of the region of interest; null: whole */
} axis_plan;

typedef struct resize {
    bool nearest, cubic, antialias, exclude, crop;
    tn_string coordinates, rounding;
    bool up_when_smaller; /* the rounding is "ceil" on axes that shrink */
    double a, extrapolation;
    uint32_t scales; /* which input; sizes follow where it is 2 */
} resize;

static bool is(tn_string s, const char *text) {
    return s.length == strlen(text) && memcmp(s.data, text, s.length) == 0;
}
static tn_value f64(tn_expand *x, double v) {
    return tn_scalar(x->graph, TN_F64, v);
}

/* --- sizes -------------------------------------------------------------------------------------------------------------------------- */

/* floor(in * scale), exact for symbolic sizes too: scale is m * 2^e. */
static tn_status scaled_size(tn_expand *x, tn_dim in, double scale, tn_dim *out) {
    tn_graph *g = x->graph;
    int64_t n;
    TN_RULE(x, scale > 0 && scale < 1e9, "a scale is not positive, or too large");
    if (tn_dim_is_const(g, in, &n)) {
        double size = floor((double)n * scale);
        TN_RULE(x, size < 9e15, "a size that follows from the scales overflows");
        *out = tn_size(x, (int64_t)size);
        return TN_OK;
    }
    int e;
    double m = frexp(scale, &e);
    while (m != floor(m)) {
        m *= 2;
        e--;
    }
    if (e < -62 || m > 0x1p40)
        return tn_expand_later(x, "needs the sizes of the input");
    tn_dim v = tn_dim_mul(g, in, tn_size(x, (int64_t)m));
    *out = e >= 0 ? tn_dim_mul(g, v, tn_size(x, (int64_t)1 << e)) : tn_dim_floordiv(g, v, tn_size(x, (int64_t)1 << -e));
    TN_SIZED(x, *out);
    return TN_OK;
}

static void set_scale(tn_expand *x, axis_plan *p, double scale) {
    p->scaled = true;
    p->scale = scale;
    p->factor = f64(x, scale);
    p->width = tn_mul(x->graph, p->factor, tn_expand_size_value(x, p->in, TN_F64));
}

static tn_status plan_scales(tn_expand *x, uint32_t input, int n, axis_plan *plans) {
    tn_tensor *scales = tn_expand_constant(x, input);
    if (!scales)
        return tn_expand_later(x, "needs the scales");
    TN_RULE(x, tn_tensor_count(scales) == n, "there are %" PRId64 " scales for %d axes", tn_tensor_count(scales), n);
    tn_tensor *roi = tn_expand_constant(x, 1);
    for (int i = 0; i < n; i++) {
        axis_plan *p = &plans[i];
        double scale = tn_tensor_get_f64(scales, i), part = 1;
        TN_RULE(x, scale > 0 && scale < 1e9, "scale %d is not positive, or too large", i);
        TN_RULE(x, scale >= 1 || strcmp(x->row->name, "Upsample") != 0, "scale %d is less than 1", i);
        if (p->start.id) { /* of a region, only that part is enlarged */
            if (!roi)
                return tn_expand_later(x, "needs the region of interest");
            part = tn_tensor_get_f64(roi, n + i) - tn_tensor_get_f64(roi, i);
            TN_RULE(x, part > 0 && part < 1e9, "the region of interest is empty on axis %d", p->axis);
        }
        set_scale(x, p, scale);
        TN_TRY(scaled_size(x, p->in, scale * part, &p->out));
        if (part < 1 || part > 1)
            p->width = tn_expand_size_value(x, p->out, TN_F64);
    }
    return TN_OK;
}

/* keep_aspect_ratio_policy: one scale for all axes, the smallest or largest; sizes are rounded, halves up. */
static tn_status plan_ratio(tn_expand *x, int n, axis_plan *plans, bool smallest) {
    double scale = 0;
    for (int i = 0; i < n; i++) {
        int64_t in, out;
        if (!tn_dim_is_const(x->graph, plans[i].in, &in) || !tn_dim_is_const(x->graph, plans[i].out, &out))
            return tn_expand_later(x, "needs the sizes of input and output");
        TN_RULE(x, in > 0, "axis %d is empty: it has no ratio to keep", plans[i].axis);
        double own = (double)out / (double)in;
        scale = i == 0 ? own : smallest ? fmin(scale, own) : fmax(scale, own);
    }
    for (int i = 0; i < n; i++) {
        int64_t in = 0;
        (void)tn_dim_is_const(x->graph, plans[i].in, &in);
        plans[i].out = tn_size(x, (int64_t)floor(scale * (double)in + 0.5));
        set_scale(x, &plans[i], scale);
    }
    return TN_OK;
}

static tn_status plan_sizes(tn_expand *x, int n, axis_plan *plans) {
    tn_graph *g = x->graph;
    tn_dim sizes[TN_MAX_RANK];
    int count;
    TN_TRY(tn_expand_known_dims(x, 3, "needs the sizes", sizes, &count));
    TN_RULE(x, count == n, "there are %d sizes for %d axes", count, n);
    for (int i = 0; i < n; i++) {
        axis_plan *p = &plans[i];
        int64_t in, out;
        TN_RULE(x, !tn_size_at_most(x, sizes[i], -1), "size %d is negative", i);
        p->out = sizes[i];
        p->scaled = tn_dim_is_const(g, p->in, &in) && tn_dim_is_const(g, p->out, &out) && in > 0;
        if (p->scaled)
            p->scale = (double)out / (double)in;
    }
    if (!tn_expand_string_is(x, "keep_aspect_ratio_policy", "stretch"))
        return plan_ratio(x, n, plans, tn_expand_string_is(x, "keep_aspect_ratio_policy", "not_larger"));
    for (int i = 0; i < n; i++) {
        axis_plan *p = &plans[i];
        p->width = tn_expand_size_value(x, p->out, TN_F64);
        p->factor = p->scaled ? f64(x, p->scale) : tn_div(g, p->width, tn_expand_size_value(x, p->in, TN_F64));
    }
    return TN_OK;
}

/* --- coordinates ------------------------------------------------------------------------------------------------------------------------ */

/* `many` where the result has more than one element, else `one`. */
static tn_value unless_single(tn_expand *x, const axis_plan *p, tn_value many, tn_value one) {
    tn_graph *g = x->graph;
    if (tn_size_at_least(x, p->out, 2))
        return many;
    if (tn_size_is(x, p->out, 1))
        return tn_broadcast(g, one, 1, &p->out);
    return tn_select(g, tn_greater(g, tn_expand_size_value(x, p->out, TN_F64), f64(x, 1)), many, one);
}

/* The coordinate in the input of each result, f64[out]. */
static tn_value coordinates(tn_expand *x, const resize *r, const axis_plan *p) {
    tn_graph *g = x->graph;
    tn_value i = tn_iota(g, TN_F64, 1, &p->out, 0), half = f64(x, 0.5), one = f64(x, 1), zero = f64(x, 0);
    tn_value last = tn_sub(g, tn_expand_size_value(x, p->in, TN_F64), one);
    if (is(r->coordinates, "asymmetric"))
        return tn_div(g, i, p->factor);
    if (is(r->coordinates, "tf_half_pixel_for_nn"))
        return tn_div(g, tn_add(g, i, half), p->factor);
    if (is(r->coordinates, "align_corners"))
        return unless_single(x, p, tn_div(g, tn_mul(g, i, last), tn_sub(g, p->width, one)), zero);
    if (r->crop) {
        tn_value extent = tn_sub(g, p->end, p->start), from = tn_mul(g, p->start, last);
        tn_value many = tn_div(g, tn_mul(g, tn_mul(g, i, extent), last), tn_sub(g, p->width, one));
        tn_value single = tn_mul(g, tn_mul(g, half, tn_add(g, p->start, p->end)), last);
        return unless_single(x, p, tn_add(g, from, many), single);
    }
    tn_value pixel = tn_sub(g, tn_div(g, tn_add(g, i, half), p->factor), half);
    if (is(r->coordinates, "pytorch_half_pixel"))
        return unless_single(x, p, pixel, zero);
    if (is(r->coordinates, "half_pixel_symmetric")) {
        tn_value adjustment = tn_div(g, tn_expand_size_value(x, p->out, TN_F64), p->width);
        tn_value center = tn_mul(g, tn_expand_size_value(x, p->in, TN_F64), half);
        return tn_add(g, tn_mul(g, center, tn_sub(g, one, adjustment)), pixel);
    }
    return pixel;
}

/* Whole coordinates as indices within the input. */
static tn_value clamped(tn_expand *x, const axis_plan *p, tn_value at) {
    tn_graph *g = x->graph;
    tn_value last = tn_sub(g, tn_expand_size_value(x, p->in, TN_F64), f64(x, 1));
    return tn_cast(g, tn_max(g, tn_min(g, at, last), f64(x, 0)), TN_I64);
}

/* --- weights ------------------------------------------------------------------------------------------------------------------------------- */

/* Cubic convolution at distance d: (a+2)d^3 - (a+3)d^2 + 1 up to 1, a d^3 - 5a d^2 + 8a d - 4a up to 2, then 0. */
static tn_value cubic(tn_expand *x, tn_value d, double a) {
    tn_graph *g = x->graph;
    d = tn_abs(g, d);
    tn_value d2 = tn_mul(g, d, d), d3 = tn_mul(g, d2, d);
    tn_value near = tn_add(g, tn_sub(g, tn_mul(g, d3, f64(x, a + 2)), tn_mul(g, d2, f64(x, a + 3))), f64(x, 1));
    tn_value far = tn_sub(g, tn_mul(g, d3, f64(x, a)), tn_mul(g, d2, f64(x, 5 * a)));
    far = tn_sub(g, tn_add(g, far, tn_mul(g, d, f64(x, 8 * a))), f64(x, 4 * a));
    far = tn_select(g, tn_less(g, d, f64(x, 2)), far, f64(x, 0));
    return tn_select(g, tn_less_equal(g, d, f64(x, 1)), near, far);
}

static tn_value triangle(tn_expand *x, tn_value d) {
    tn_graph *g = x->graph;
    return tn_max(g, tn_sub(g, f64(x, 1), tn_abs(g, d)), f64(x, 0));
}

/* Weights of neighbours at `distance` from the coordinate, which lie at `where`. */
static tn_value weigh(tn_expand *x, const resize *r, const axis_plan *p, tn_value distance, tn_value where) {
    tn_graph *g = x->graph;
    tn_value weights = r->cubic ? cubic(x, distance, r->a) : triangle(x, distance);
    if (!r->exclude)
        return weights;
    tn_value last = tn_sub(g, tn_expand_size_value(x, p->in, TN_F64), f64(x, 1));
    tn_value inside = tn_and(g, tn_greater_equal(g, where, f64(x, 0)), tn_less_equal(g, where, last));
    return tn_select(g, inside, weights, f64(x, 0));
}

/* The divisor that makes weights of this sum add up to 1. */
static tn_value divisor(tn_expand *x, tn_value total) {
    return tn_select(x->graph, tn_equal(x->graph, total, f64(x, 0)), f64(x, 1), total);
}

/* v along one axis: the weighted sum of the neighbours of each coordinate, in v's dtype. */
static tn_status interpolate(tn_expand *x, const resize *r, const axis_plan *p, tn_value at, tn_value *v) {
    tn_graph *g = x->graph;
    int reach = r->cubic ? 2 : 1, taps = 2 * reach, rank = tn_value_rank(g, *v);
    bool normalise = r->exclude || r->antialias;
    tn_value base = tn_floor(g, at), ratio = tn_sub(g, at, base), total = {0}, sum = {0}, weights[4], where[4];
    for (int t = 0; t < taps; t++) {
        tn_value offset = f64(x, 1 - reach + t);
        where[t] = tn_add(g, base, offset);
        weights[t] = weigh(x, r, p, tn_sub(g, offset, ratio), where[t]);
        total = t ? tn_add(g, total, weights[t]) : weights[t];
    }
    if (normalise)
        total = divisor(x, total);
    for (int t = 0; t < taps; t++) {
        tn_value w = normalise ? tn_div(g, weights[t], total) : weights[t];
        w = tn_expand_along(x, tn_cast(g, w, tn_value_dtype(g, *v)), rank, p->axis);
        tn_value part = tn_mul(g, tn_gather(g, *v, clamped(x, p, where[t]), p->axis), w);
        sum = t ? tn_add(g, sum, part) : part;
    }
    *v = sum;
    return TN_OK;
}

/* The same where an axis shrinks and is antialiased: the neighbours, as many as the scale says, are an axis of their own, with weights
   [out, neighbours]. That axis holds at most about 4 times what `in` does. */
static tn_status interpolate_wide(tn_expand *x, const resize *r, const axis_plan *p, tn_value at, tn_value *v) {
    tn_graph *g = x->graph;
    int rank = tn_value_rank(g, *v);
    static const int along[1] = {1}, neighbours[1] = {2};
    double low = floor(-(r->cubic ? 2 : 1) / p->scale), most = (double)((int64_t)1 << 40);
    int64_t first = (int64_t)(low > -most ? low : -most) + 1; /* of a smaller scale nothing is left: no elements */
    const tn_dim *dims = tn_expand_value_dims(x, *v);
    if (!dims)
        return tn_error_status();
    tn_dim grid[2] = {p->out, tn_size(x, 2 - 2 * first)}, column[2] = {p->out, tn_size(x, 1)},
           flat[3] = {tn_size_product(x, p->axis, dims), dims[p->axis],
                      tn_size_product(x, rank - 1 - p->axis, dims + p->axis + 1)},
           out[TN_MAX_RANK];
    TN_SIZED(x, flat[0]);
    TN_SIZED(x, flat[2]);
    at = tn_reshape_dims(g, at, 2, column);
    tn_value base = tn_floor(g, at), ratio = tn_sub(g, at, base),
             offset = tn_add(g, tn_iota(g, TN_F64, 2, grid, 1), f64(x, (double)first)), where = tn_add(g, base, offset);
    tn_value w = weigh(x, r, p, tn_mul(g, tn_sub(g, offset, ratio), f64(x, p->scale)), where);
    w = tn_div(g, w, divisor(x, tn_reduce_sum(g, w, 1, along, true)));
    tn_dim weights[4] = {column[1], grid[0], grid[1], column[1]};
    w = tn_reshape_dims(g, tn_cast(g, w, tn_value_dtype(g, *v)), 4, weights);
    tn_value parts = tn_gather(g, tn_reshape_dims(g, *v, 3, flat), clamped(x, p, where), 1);
    memcpy(out, dims, (size_t)rank * sizeof *out);
    out[p->axis] = p->out;
    *v = tn_reshape_dims(g, tn_reduce_sum(g, tn_mul(g, parts, w), 1, neighbours, false), rank, out);
    return TN_OK;
}

static tn_value nearest(tn_expand *x, const resize *r, const axis_plan *p, tn_value at, tn_value v) {
    tn_graph *g = x->graph;
    if (is(r->rounding, "round_prefer_floor"))
        at = tn_ceil(g, tn_sub(g, at, f64(x, 0.5)));
    else if (is(r->rounding, "round_prefer_ceil"))
        at = tn_floor(g, tn_add(g, at, f64(x, 0.5)));
    else
        at = is(r->rounding, "ceil") || (r->up_when_smaller && p->scale < 1) ? tn_ceil(g, at) : tn_floor(g, at);
    return tn_gather(g, v, clamped(x, p, at), p->axis);
}

/* Whether every element of an axis is taken `p->scale` times, one after the other. */
static bool repeats(tn_expand *x, const resize *r, const axis_plan *p) {
    double s = p->scale;
    if (!r->nearest || r->crop || 2 * tn_expand_rank(x, 0) > TN_MAX_RANK || !p->scaled || s < 2 || s > 1024 ||
        s > floor(s) || !tn_dim_equal(x->graph, p->out, tn_dim_mul(x->graph, p->in, tn_size(x, (int64_t)s))))
        return false;
    bool middle = is(r->rounding, "round_prefer_floor"), down = is(r->rounding, "floor");
    if (is(r->coordinates, "asymmetric")) /* i / s */
        return down || (middle && s <= 2);
    /* (i + 1/2) / s - 1/2 is less than a half from the element, so long as there is more than one */
    return is(r->coordinates, "half_pixel") && (middle || is(r->rounding, "round_prefer_ceil"));
}

/* All axes that only repeat. */
static tn_status repeat(tn_expand *x, const resize *r, int n, const axis_plan *plans, tn_value *v) {
    tn_graph *g = x->graph;
    int rank = tn_value_rank(g, *v), parts = 0;
    const tn_dim *dims = tn_expand_value_dims(x, *v);
    tn_dim apart[2 * TN_MAX_RANK], many[2 * TN_MAX_RANK], out[TN_MAX_RANK];
    if (!dims)
        return tn_error_status();
    for (int i = 0; i < rank; i++) {
        apart[parts] = many[parts] = out[i] = dims[i];
        parts++;
        for (int k = 0; k < n; k++)
            if (plans[k].axis == i && repeats(x, r, &plans[k])) {
                apart[parts] = tn_size(x, 1);
                many[parts++] = tn_size(x, (int64_t)plans[k].scale);
                out[i] = plans[k].out;
            }
    }
    if (parts > rank)
        *v = tn_reshape_dims(g, tn_broadcast(g, tn_reshape_dims(g, *v, parts, apart), parts, many), rank, out);
    TN_BUILT(x, *v);
    return TN_OK;
}

/* --- the node --------------------------------------------------------------------------------------------------------------------------- */

/* One axis of v; nothing where size and coordinates stay, or where it was repeated. */
static tn_status resize_axis(tn_expand *x, const resize *r, const axis_plan *p, tn_value *v) {
    tn_graph *g = x->graph;
    bool same = tn_dim_equal(g, p->in, p->out) && (!p->scaled || fabs(p->scale - 1) < 1e-9);
    if (same && !r->crop && !is(r->coordinates, "tf_half_pixel_for_nn"))
        return TN_OK;
    if (repeats(x, r, p))
        return TN_OK;
    tn_value at = coordinates(x, r, p);
    TN_BUILT(x, at);
    if (r->antialias && !p->scaled)
        return tn_expand_later(x, "needs the scale of an axis");
    if (r->nearest)
        *v = nearest(x, r, p, at, *v);
    else
        TN_TRY((r->antialias && p->scale < 1 ? interpolate_wide : interpolate)(x, r, p, at, v));
    TN_BUILT(x, *v);
    if (r->crop) {
        tn_value last = tn_sub(g, tn_expand_size_value(x, p->in, TN_F64), f64(x, 1));
        tn_value outside = tn_or(g, tn_less(g, at, f64(x, 0)), tn_greater(g, at, last));
        outside = tn_expand_along(x, outside, tn_value_rank(g, *v), p->axis);
        tn_value fill = tn_cast(g, f64(x, r->extrapolation), tn_value_dtype(g, *v));
        *v = tn_select(g, outside, fill, *v);
    }
    return TN_OK;
}

/* The ends of the region of interest along the planned axes. */
static tn_status plan_region(tn_expand *x, int n, axis_plan *plans) {
    tn_graph *g = x->graph;
    int64_t given;
    TN_RULE(x, tn_expand_has(x, 1) && tn_expand_rank(x, 1) == 1,
            "'tf_crop_and_resize' needs a list as region of interest");
    if (tn_dim_is_const(g, tn_expand_dim(x, 1, 0), &given))
        TN_RULE(x, given == 2 * (int64_t)n, "the region of interest has %" PRId64 " entries for %d axes", given, n);
    tn_value roi = tn_cast(g, tn_expand_input(x, 1), TN_F64);
    for (int i = 0; i < n; i++) {
        plans[i].start = tn_reshape_dims(g, tn_slice_axis(g, roi, 0, i, 1), 0, NULL);
        plans[i].end = tn_reshape_dims(g, tn_slice_axis(g, roi, 0, n + i, 1), 0, NULL);
        TN_BUILT(x, plans[i].end);
    }
    return TN_OK;
}

/* Whether an input is there and not an empty list, as which some files give what they do not mean; `sure`: it is not empty. */
static bool given(tn_expand *x, uint32_t input, bool *sure) {
    int64_t n = 1;
    *sure = !tn_expand_has(x, input) || tn_expand_rank(x, input) != 1 ||
            tn_dim_is_const(x->graph, tn_expand_dim(x, input, 0), &n);
    return tn_expand_has(x, input) && n != 0;
}

static tn_status run(tn_expand *x, const resize *r, int n, axis_plan *plans) {
    tn_graph *g = x->graph;
    tn_dtype dtype = tn_expand_dtype(x, 0), in = dtype;
    if (r->crop)
        TN_TRY(plan_region(x, n, plans));
    bool sure_scales, sure_sizes = true, scales = given(x, r->scales, &sure_scales);
    bool sizes = r->scales == 2 && given(x, 3, &sure_sizes);
    if (scales && sizes && !(sure_scales && sure_sizes))
        return tn_expand_later(x, "needs the number of scales and sizes");
    TN_RULE(x, !scales || !sizes, "both 'scales' and 'sizes' are given");
    TN_RULE(x, scales || sizes, "neither 'scales' nor 'sizes' is given");
    TN_TRY(scales ? plan_scales(x, r->scales, n, plans) : plan_sizes(x, n, plans));
    for (int i = 0; i < n; i++) {
        tn_dim have = plans[i].in, some = tn_dim_min(g, plans[i].out, tn_size(x, 1));
        if (scales || tn_dim_equal(g, have, plans[i].out))
            continue;
        TN_RULE(x, !tn_size_is(x, have, 0) || tn_size_is(x, some, 0),
                "axis %d is empty: there is nothing to interpolate", plans[i].axis);
        TN_TRY(tn_expand_hold_least(x, 0, plans[i].axis, some));
    }
    if (!r->nearest) {
        if (tn_dtype_is_complex(dtype))
            return tn_expand_unsupported(x, "interpolation of %s", tn_dtype_name(dtype));
        TN_RULE(x, tn_is_float(dtype) || tn_is_int(dtype), "interpolation of %s", tn_dtype_name(dtype));
        in = dtype == TN_F64 ? TN_F64 : TN_F32;
        if (tn_is_int(dtype) && tn_dtype_bits(dtype) > 16)
            in = TN_F64;
    }
    tn_value v = tn_cast(g, tn_expand_input(x, 0), in);
    TN_TRY(repeat(x, r, n, plans, &v));
    for (int i = 0; i < n; i++)
        TN_TRY(resize_axis(x, r, &plans[i], &v));
    if (in != dtype && tn_is_int(dtype)) { /* rounded, within the dtype's range */
        double low = (double)tn_dtype_min_i64(dtype), high = (double)tn_dtype_max_u64(dtype);
        v = tn_round(g, v);
        if (tn_dtype_bits(dtype) < 32)
            v = tn_min(g, tn_max(g, v, tn_scalar(g, in, low)), tn_scalar(g, in, high));
    }
    return tn_expand_set(x, 0, tn_cast(g, v, dtype));
}

static tn_status expand_resize(tn_expand *x) {
    int rank = tn_expand_rank(x, 0), axes[TN_MAX_RANK], n = rank;
    const int64_t *list;
    resize r = {.nearest = tn_expand_string_is(x, "mode", "nearest"),
                .cubic = tn_expand_string_is(x, "mode", "cubic"),
                .antialias = tn_expand_int(x, "antialias") != 0,
                .exclude = tn_expand_int(x, "exclude_outside") != 0,
                .crop = tn_expand_string_is(x, "coordinate_transformation_mode", "tf_crop_and_resize"),
                .coordinates = tn_expand_string(x, "coordinate_transformation_mode"),
                .rounding = tn_expand_string(x, "nearest_mode"),
                .a = tn_expand_float(x, "cubic_coeff_a"),
                .extrapolation = tn_expand_float(x, "extrapolation_value"),
                .scales = 2};
    TN_RULE(
        x, x->version < 13 || !is(r.coordinates, "tf_half_pixel_for_nn"),
        "attribute 'coordinate_transformation_mode' is \"tf_half_pixel_for_nn\", which is gone since operator set 13");
    TN_RULE(x, !(r.antialias && r.nearest), "'antialias' does not go with mode \"nearest\"");
    for (int i = 0; i < rank; i++)
        axes[i] = i;
    if (tn_expand_has_attr(x, "axes")) {
        n = (int)tn_expand_ints(x, "axes", &list);
        TN_RULE(x, n <= rank, "there are %d axes for a tensor of rank %d", n, rank);
        TN_TRY(tn_expand_axes(x, (uint32_t)n, list, rank, axes));
    }
    axis_plan *plans = tn_expand_alloc(x, (size_t)n + 1, sizeof *plans);
    if (!plans)
        return tn_error_status();
    for (int i = 0; i < n; i++)
        plans[i] = (axis_plan){.axis = axes[i], .in = tn_expand_dim(x, 0, axes[i])};
    return run(x, &r, n, plans);
}

/* Operator sets up to 10: coordinates are divided by the scale; nearest rounds down, up on axes that shrink. The text does not say so:
   the standard's example of the time does, [1 2 3 4] by 0.6 is [1 3]. */
static tn_status upsample(tn_expand *x) {
    int n = tn_expand_rank(x, 0);
    const resize r = {.nearest = tn_expand_string_is(x, "mode", "nearest"),
                      .coordinates = {"asymmetric", 10},
                      .rounding = {"floor", 5},
                      .up_when_smaller = true,
                      .scales = x->row->since == 1 ? 1 : 2};
    axis_plan *plans = tn_expand_alloc(x, (size_t)n + 1, sizeof *plans);
    if (!plans)
        return tn_error_status();
    for (int i = 0; i < n; i++)
        plans[i] = (axis_plan){.axis = i, .in = tn_expand_dim(x, 0, i)};
    return run(x, &r, n, plans);
}

/* --- rows ---------------------------------------------------------------------------------------------------------------------------------- */

static const tn_attr_spec resize_attrs[] = {
    TN_SPEC_BOOL("antialias", 0),
    TN_SPEC_INTS("axes"),
    TN_SPEC_STRING("coordinate_transformation_mode", "half_pixel",
                   "half_pixel|half_pixel_symmetric|pytorch_half_pixel|align_corners|asymmetric|tf_crop_and_resize|tf_"
                   "half_pixel_for_nn"),
    TN_SPEC_FLOAT("cubic_coeff_a", -0.75),
    TN_SPEC_BOOL("exclude_outside", 0),
    TN_SPEC_FLOAT("extrapolation_value", 0),
    TN_SPEC_STRING("keep_aspect_ratio_policy", "stretch", "stretch|not_larger|not_smaller"),
    TN_SPEC_STRING("mode", "nearest", "nearest|linear|cubic"),
    TN_SPEC_STRING("nearest_mode", "round_prefer_floor", "round_prefer_floor|round_prefer_ceil|floor|ceil"),
    {0}};
static const tn_attr_spec upsample_attrs[] = {TN_SPEC_STRING("mode", "nearest", "nearest|linear|bilinear"), {0}};

static const tn_onnx_op rows[] = {
    TN_ONNX("Resize", .since = 11, .inputs = {1, 4}, .outputs = {1, 1}, .attrs = resize_attrs, .expand = expand_resize),
    TN_ONNX("Resize", .since = 10, .until = 10, .inputs = {1, 3}, .outputs = {1, 1}, .attrs = upsample_attrs,
            .expand = upsample),
    TN_ONNX("Upsample", .since = 1, .inputs = {2, 2}, .outputs = {1, 1}, .attrs = upsample_attrs, .expand = upsample),
};

const tn_onnx_family tn_onnx_family_resize = {rows, sizeof rows / sizeof *rows};
