/* Signals: DFT, STFT, window functions, MelWeightMatrix. Real signals and windows are computed in f64 and rounded once, complex
   signals in their own type (f16, bf16: f32). */
#include <inttypes.h>
#include <math.h>

#include "onnx/expand_fft.h"

#define PI 3.14159265358979323846

/* An integer input of one element as a size. */
static tn_status read_size(tn_expand *x, uint32_t input, const char *name, const char *reason, tn_dim *size) {
    TN_RULE(x, tn_is_int(tn_expand_dtype(x, input)), "'%s' is %s: it must be an integer", name,
            tn_dtype_name(tn_expand_dtype(x, input)));
    for (int i = 0; i < tn_expand_rank(x, input); i++)
        TN_RULE(x, !tn_dim_never_equal(x->graph, tn_expand_dim(x, input, i), tn_size(x, 1)), "'%s' must be a scalar",
                name);
    if (tn_expand_contents_dims(x, input, size, 1) != 1)
        return tn_expand_later(x, reason);
    TN_RULE(x, !tn_size_at_most(x, *size, -1), "'%s' is negative", name);
    return TN_OK;
}

static tn_status read_dtype(tn_expand *x, tn_dtype *dtype) {
    int64_t t = tn_expand_int(x, "output_datatype");
    TN_RULE(x, t > 0 && t < TN_DTYPE_COUNT && (tn_is_float((tn_dtype)t) || tn_is_int((tn_dtype)t)),
            "attribute 'output_datatype' is %" PRId64, t);
    *dtype = (tn_dtype)t;
    return TN_OK;
}

/* --- the transform --------------------------------------------------------------------------------------------------------------- */

/* A complex tensor; im may be null (0). */
typedef struct spectrum {
    tn_value re, im;
} spectrum;

/* A tensor whose last axis holds the real or the real and imaginary parts. False: how many is not known. */
static bool read_complex(tn_expand *x, tn_value v, spectrum *s) {
    tn_graph *g = x->graph;
    int last = tn_value_rank(g, v) - 1;
    int64_t parts;
    if (!tn_dim_is_const(g, tn_value_dim(g, v, last), &parts))
        return false;
    v = tn_cast(g, v, parts == 1 ? TN_F64 : tn_wide(tn_value_dtype(g, v)));
    s->re = tn_squeeze(g, parts == 2 ? tn_slice_axis(g, v, last, 0, 1) : v, 1, &last);
    s->im = parts == 2 ? tn_squeeze(g, tn_slice_axis(g, v, last, 1, 1), 1, &last) : (tn_value){0};
    return true;
}

static tn_value write_complex(tn_expand *x, spectrum s, tn_dtype dtype) {
    tn_graph *g = x->graph;
    if (!s.re.id || !s.im.id)
        return (tn_value){0};
    int last = tn_value_rank(g, s.re);
    tn_value parts[2] = {tn_expand_dims(g, s.re, 1, &last), tn_expand_dims(g, s.im, 1, &last)};
    return tn_cast(g, tn_concat(g, last, 2, parts), dtype);
}

/* v times a matrix, along `axis` of v. */
static tn_value along(tn_expand *x, tn_value v, int axis, tn_value matrix) {
    tn_graph *g = x->graph;
    int perm[TN_MAX_RANK], rank = v.id ? tn_value_rank(g, v) : 0;
    const int64_t from[1] = {axis}, first[1] = {0};
    v = tn_dot(g, v, matrix, 0, NULL, NULL, 1, from, first); /* the axis is now the last one */
    for (int i = 0; i < rank; i++)
        perm[i] = i < axis ? i : i == axis ? rank - 1 : i - 1;
    return tn_transpose(g, v, perm);
}

/* cos and sin of 2 pi n k / length for n < rows, k < columns; the product is reduced in integers, which keeps the angle exact. */
static void circle(tn_expand *x, tn_dtype dtype, tn_dim rows, tn_dim columns, tn_dim length, tn_value *cosine,
                   tn_value *sine) {
    tn_graph *g = x->graph;
    tn_dim dims[2] = {rows, columns};
    tn_value n = tn_expand_size_value(x, length, TN_I64);
    tn_value turn = tn_mod(g, tn_mul(g, tn_iota(g, TN_I64, 2, dims, 0), tn_iota(g, TN_I64, 2, dims, 1)), n);
    tn_value angle =
        tn_div(g, tn_mul(g, tn_cast(g, turn, TN_F64), tn_scalar(g, TN_F64, 2 * PI)), tn_cast(g, n, TN_F64));
    *cosine = tn_cast(g, tn_cos(g, angle), dtype);
    *sine = tn_cast(g, tn_sin(g, angle), dtype);
}

/* v with `axis` last, cut or filled up with 0 to `length`, as [rows, length]. */
static tn_value rows_of(tn_expand *x, tn_value v, int axis, tn_dim used, tn_dim length, tn_dim rows) {
    tn_graph *g = x->graph;
    int perm[TN_MAX_RANK], rank = v.id ? tn_value_rank(g, v) : 0;
    tn_dim lo[2] = {tn_size(x, 0), tn_size(x, 0)}, hi[2] = {tn_size(x, 0), tn_dim_sub(g, length, used)},
           flat[2] = {rows, used};
    for (int i = 0; i < rank; i++)
        perm[i] = i == rank - 1 ? axis : i < axis ? i : i + 1;
    v = tn_transpose(g, tn_expand_slice(x, v, axis, lo[0], used, 1), perm);
    v = tn_reshape_dims(g, v, 2, flat);
    if (!v.id || tn_dim_equal(g, used, length))
        return v;
    return tn_pad(g, v, tn_scalar_like(g, v, 0), lo, hi, "constant");
}

static spectrum fast(tn_expand *x, spectrum s, int axis, int64_t length, tn_dim keep, bool inverse) {
    tn_graph *g = x->graph;
    spectrum y = {{0}, {0}};
    int perm[TN_MAX_RANK], rank = tn_value_rank(g, s.re);
    tn_dim n = tn_size(x, length), *dims = tn_expand_value_dims(x, s.re), rows = tn_size(x, 1);
    if (!dims)
        return y;
    tn_dim used = tn_dim_min(g, dims[axis], n), moved[TN_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        rows = i == axis ? rows : tn_dim_mul(g, rows, dims[i]);
        moved[i] = i == rank - 1 ? n : dims[i < axis ? i : i + 1];
        perm[i] = i < axis ? i : i == axis ? rank - 1 : i - 1;
    }
    tn_value re = rows_of(x, s.re, axis, used, n, rows), im;
    if (s.im.id)
        im = rows_of(x, s.im, axis, used, n, rows);
    else
        im = tn_expand_full(x, tn_value_dtype(g, s.re), 0, 2, (tn_dim[2]){rows, n});
    tn_expand_fft(x, length, inverse, &re, &im);
    tn_value part[2] = {re, im};
    for (int i = 0; i < 2 && re.id && im.id; i++) {
        tn_value v = tn_transpose(g, tn_reshape_dims(g, part[i], rank, moved), perm);
        if (inverse && v.id)
            v = tn_mul(g, v, tn_scalar_like(g, v, 1 / (double)length));
        *(i ? &y.im : &y.re) = tn_expand_slice(x, v, axis, tn_size(x, 0), keep, 1);
    }
    return y;
}

/* The first `keep` of `length` frequencies (or, inverse, samples) of what stands along `axis`, cut or filled up with 0 to length. */
static spectrum transform(tn_expand *x, spectrum s, int axis, tn_dim length, tn_dim keep, bool inverse) {
    tn_graph *g = x->graph;
    spectrum y = {{0}, {0}};
    int64_t constant;
    if (!s.re.id)
        return y;
    if (tn_dim_is_const(g, length, &constant) && tn_expand_fft_suits(constant))
        return fast(x, s, axis, constant, keep, inverse);
    tn_dtype dtype = tn_value_dtype(g, s.re);
    tn_dim zero = tn_size(x, 0), used = tn_dim_min(g, tn_value_dim(g, s.re, axis), length);
    tn_value cosine, sine, re = tn_expand_slice(x, s.re, axis, zero, used, 1), im = {0};
    circle(x, dtype, used, keep, length, &cosine, &sine);
    if (!inverse)
        sine = tn_neg(g, sine);
    y.re = along(x, re, axis, cosine);
    y.im = along(x, re, axis, sine);
    if (s.im.id) {
        im = tn_expand_slice(x, s.im, axis, zero, used, 1);
        y.re = tn_sub(g, y.re, along(x, im, axis, sine));
        y.im = tn_add(g, y.im, along(x, im, axis, cosine));
    }
    if (inverse) {
        tn_value n = tn_expand_size_value(x, length, dtype);
        y.re = tn_div(g, y.re, n);
        y.im = tn_div(g, y.im, n);
    }
    return y;
}

/* `length` real samples of the first half of a spectrum whose other half mirrors it. */
static tn_value real_inverse(tn_expand *x, spectrum s, int axis, tn_dim length) {
    tn_graph *g = x->graph;
    if (!s.re.id)
        return s.re;
    tn_dim zero = tn_size(x, 0), half = tn_dim_add(g, tn_dim_floordiv(g, length, tn_size(x, 2)), tn_size(x, 1));
    tn_dim used = tn_dim_min(g, tn_value_dim(g, s.re, axis), half);
    tn_value cosine, sine, n = tn_expand_size_value(x, length, TN_I64);
    circle(x, TN_F64, used, length, length, &cosine, &sine);
    /* frequencies count twice, but the first one and, of an even number, the last one */
    tn_value k = tn_iota(g, TN_I64, 1, &used, 0), two = tn_scalar(g, TN_I64, 2);
    tn_value once = tn_or(g, tn_equal(g, k, tn_scalar(g, TN_I64, 0)), tn_equal(g, tn_mul(g, k, two), n));
    tn_value weight = tn_select(g, once, tn_scalar(g, TN_F64, 1), tn_scalar(g, TN_F64, 2));
    weight = tn_expand_along(x, tn_div(g, weight, tn_cast(g, n, TN_F64)), 2, 0);
    tn_value re = tn_expand_slice(x, tn_cast(g, s.re, TN_F64), axis, zero, used, 1);
    tn_value y = along(x, re, axis, tn_mul(g, cosine, weight));
    if (s.im.id) {
        tn_value im = tn_expand_slice(x, tn_cast(g, s.im, TN_F64), axis, zero, used, 1);
        y = tn_sub(g, y, along(x, im, axis, tn_mul(g, sine, weight)));
    }
    return y;
}

static tn_dim half_spectrum(tn_expand *x, tn_dim length) {
    return tn_dim_add(x->graph, tn_dim_floordiv(x->graph, length, tn_size(x, 2)), tn_size(x, 1));
}

static tn_status check_signal(tn_expand *x, int least) {
    int rank = tn_expand_rank(x, 0);
    int64_t parts;
    TN_RULE(x, tn_is_float(tn_expand_dtype(x, 0)), "the input is %s: it must be of a floating point type",
            tn_dtype_name(tn_expand_dtype(x, 0)));
    TN_RULE(x, rank >= least, "the input has rank %d: at least %d are needed", rank, least);
    if (tn_dim_is_const(x->graph, tn_expand_dim(x, 0, -1), &parts))
        TN_RULE(x, parts == 1 || parts == 2,
                "the last axis has %" PRId64 " entries: 1 (real) or 2 (complex) are possible", parts);
    return TN_OK;
}

static tn_status expand_dft(tn_expand *x) {
    tn_graph *g = x->graph;
    int rank = tn_expand_rank(x, 0), axis;
    int64_t given = -2;
    bool inverse = tn_expand_int(x, "inverse") != 0, onesided = tn_expand_int(x, "onesided") != 0;
    tn_dtype dtype = tn_expand_dtype(x, 0);
    spectrum s;
    TN_TRY(check_signal(x, 2));
    if (tn_expand_has(x, 2) && tn_expand_contents_i64(x, 2, &given, 1) != 1)
        return tn_expand_later(x, "needs the value of 'axis'");
    TN_TRY(tn_expand_axis(x, given, rank, &axis));
    TN_RULE(x, axis < rank - 1, "'axis' is the last one, which holds the parts of complex numbers");
    if (!read_complex(x, tn_expand_input(x, 0), &s))
        return tn_expand_later(x, "needs the size of the last axis");
    tn_dim length = tn_expand_dim(x, 0, axis), one = tn_size(x, 1);
    if (tn_expand_has(x, 1))
        TN_TRY(read_size(x, 1, "dft_length", "needs the value of 'dft_length'", &length));
    else if (inverse && onesided)
        length = tn_dim_mul(g, tn_size(x, 2), tn_dim_sub(g, length, one));
    TN_SIZED(x, length);
    TN_RULE(x, !tn_size_at_most(x, length, 0), "the length of the transform is not positive");
    if (inverse && onesided) {
        tn_value y = tn_cast(g, real_inverse(x, s, axis, length), dtype);
        const int last = rank - 1;
        return tn_expand_set(x, 0, tn_expand_dims(g, y, 1, &last));
    }
    TN_RULE(x, !onesided || !s.im.id, "'onesided' needs real input");
    tn_dim keep = onesided ? half_spectrum(x, length) : length;
    return tn_expand_set(x, 0, write_complex(x, transform(x, s, axis, length, keep, inverse), dtype));
}

static tn_status expand_stft(tn_expand *x) {
    tn_graph *g = x->graph;
    tn_dim step, length, frames;
    spectrum s;
    TN_TRY(check_signal(x, 3));
    TN_RULE(x, tn_expand_rank(x, 0) == 3, "the signal has rank %d, it must be 3", tn_expand_rank(x, 0));
    TN_TRY(read_size(x, 1, "frame_step", "needs the value of 'frame_step'", &step));
    TN_RULE(x, !tn_size_at_most(x, step, 0), "'frame_step' is not positive");
    length = tn_expand_dim(x, 0, 1);
    if (tn_expand_has(x, 2)) {
        TN_RULE(x, tn_expand_rank(x, 2) == 1, "'window' has rank %d, it must be a list", tn_expand_rank(x, 2));
        length = tn_expand_dim(x, 2, 0);
    }
    if (tn_expand_has(x, 3)) {
        TN_TRY(read_size(x, 3, "frame_length", "needs the value of 'frame_length'", &length));
        if (tn_expand_has(x, 2))
            TN_RULE_SIZE(x, 2, 0, length, "'frame_length' is not the length of 'window'");
    }
    TN_RULE(x, !tn_size_at_most(x, length, 0), "'frame_length' is not positive");
    if (tn_expand_has(x, 2))
        TN_TRY(tn_expand_hold_least(x, 2, 0, tn_size(x, 1)));
    frames = tn_dim_floordiv(g, tn_dim_sub(g, tn_expand_dim(x, 0, 1), length), step);
    frames = tn_dim_add(g, frames, tn_size(x, 1));
    TN_SIZED(x, frames);
    TN_RULE(x, !tn_size_at_most(x, tn_dim_sub(g, tn_expand_dim(x, 0, 1), length), -1),
            "a frame is longer than the signal");
    TN_TRY(tn_expand_hold_least(x, 0, 1, tn_dim_max(g, length, tn_size(x, 1))));
    tn_dim grid[2] = {frames, length};
    tn_value at = tn_mul(g, tn_iota(g, TN_I64, 2, grid, 0), tn_expand_size_value(x, step, TN_I64));
    at = tn_add(g, at, tn_iota(g, TN_I64, 2, grid, 1));
    tn_value v = tn_gather(g, tn_expand_input(x, 0), at, 1); /* [batch, frames, length, parts] */
    TN_BUILT(x, v);
    if (!read_complex(x, v, &s))
        return tn_expand_later(x, "needs the size of the last axis");
    if (tn_expand_has(x, 2)) {
        tn_value window = tn_cast(g, tn_expand_input(x, 2), TN_F64);
        s.re = tn_mul(g, s.re, tn_cast(g, window, tn_value_dtype(g, s.re)));
        s.im = s.im.id ? tn_mul(g, s.im, tn_cast(g, window, tn_value_dtype(g, s.im))) : s.im;
    }
    tn_dim keep = tn_expand_int(x, "onesided") ? half_spectrum(x, length) : length;
    return tn_expand_set(x, 0, write_complex(x, transform(x, s, 2, length, keep, false), tn_expand_dtype(x, 0)));
}

/* --- windows ------------------------------------------------------------------------------------------------------------------------ */

/* a - b cos(2 pi n / m) + c cos(4 pi n / m), m the size (periodic) or one less. */
static tn_status window(tn_expand *x, double a, double b, double c) {
    tn_graph *g = x->graph;
    tn_dim size;
    tn_dtype dtype;
    TN_TRY(read_dtype(x, &dtype));
    TN_TRY(read_size(x, 0, "size", "needs the value of 'size'", &size));
    tn_dim over = tn_expand_int(x, "periodic") ? size : tn_dim_sub(g, size, tn_size(x, 1));
    TN_SIZED(x, over);
    tn_value n = tn_iota(g, TN_F64, 1, &size, 0),
             m = tn_cast(g, tn_reshape_dims(g, tn_expand_input(x, 0), 0, NULL), TN_F64);
    if (!tn_expand_int(x, "periodic"))
        m = tn_sub(g, m, tn_scalar(g, TN_F64, 1));
    tn_value turn = tn_div(g, tn_mul(g, n, tn_scalar(g, TN_F64, 2 * PI)), m);
    tn_value y = tn_sub(g, tn_scalar(g, TN_F64, a), tn_mul(g, tn_cos(g, turn), tn_scalar(g, TN_F64, b)));
    if (c > 0) {
        tn_value twice = tn_cos(g, tn_mul(g, turn, tn_scalar(g, TN_F64, 2)));
        y = tn_add(g, y, tn_mul(g, twice, tn_scalar(g, TN_F64, c)));
    }
    return tn_expand_set(x, 0, tn_cast(g, y, dtype));
}

static tn_status expand_hann(tn_expand *x) {
    return window(x, 0.5, 0.5, 0);
}
static tn_status expand_hamming(tn_expand *x) {
    return window(x, 25.0 / 46, 1 - 25.0 / 46, 0);
}
static tn_status expand_blackman(tn_expand *x) {
    return window(x, 0.42, 0.5, 0.08);
}

/* --- mel scale ------------------------------------------------------------------------------------------------------------------------ */

static tn_value scalar_input(tn_expand *x, uint32_t input) {
    return tn_cast(x->graph, tn_reshape_dims(x->graph, tn_expand_input(x, input), 0, NULL), TN_F64);
}

/* hertz -> mel, without the common factor. */
static tn_value to_mel(tn_expand *x, tn_value hertz) {
    return tn_log1p(x->graph, tn_div(x->graph, hertz, tn_scalar(x->graph, TN_F64, 700)));
}

static tn_status expand_mel(tn_expand *x) {
    tn_graph *g = x->graph;
    tn_dim bands, length, edges, dims[2];
    tn_dtype dtype;
    TN_TRY(read_dtype(x, &dtype));
    TN_TRY(read_size(x, 0, "num_mel_bins", "needs the value of 'num_mel_bins'", &bands));
    TN_TRY(read_size(x, 1, "dft_length", "needs the value of 'dft_length'", &length));
    edges = tn_dim_add(g, bands, tn_size(x, 2));
    dims[0] = half_spectrum(x, length);
    dims[1] = bands;
    TN_SIZED(x, edges);
    TN_SIZED(x, dims[0]);
    /* the edges of the bands are equally far from each other in mel; as numbers of bins */
    tn_value low = to_mel(x, scalar_input(x, 3)), high = to_mel(x, scalar_input(x, 4));
    tn_value step = tn_div(g, tn_sub(g, high, low), tn_expand_size_value(x, edges, TN_F64));
    tn_value edge = tn_add(g, tn_mul(g, tn_iota(g, TN_F64, 1, &edges, 0), step), low);
    edge = tn_mul(g, tn_expm1(g, edge), tn_scalar(g, TN_F64, 700));
    tn_value whole = tn_add(g, scalar_input(x, 1), tn_scalar(g, TN_F64, 1));
    edge = tn_floor(g, tn_div(g, tn_mul(g, edge, whole), scalar_input(x, 2)));
    tn_value at[3]; /* left, centre, right of each band, [1, bands] */
    for (int i = 0; i < 3; i++)
        at[i] = tn_expand_along(x, tn_expand_slice(x, edge, 0, tn_size(x, i), bands, 1), 2, 1);
    tn_value bin = tn_iota(g, TN_F64, 2, dims, 0), zero = tn_scalar(g, TN_F64, 0), one = tn_scalar(g, TN_F64, 1);
    tn_value up = tn_sub(g, at[1], at[0]), down = tn_sub(g, at[2], at[1]);
    tn_value rising = tn_and(g, tn_greater_equal(g, bin, at[0]), tn_less_equal(g, bin, at[1]));
    tn_value falling = tn_and(g, tn_greater_equal(g, bin, at[1]), tn_less(g, bin, at[2]));
    tn_value slope = tn_select(g, tn_equal(g, up, zero), one, tn_div(g, tn_sub(g, bin, at[0]), up));
    tn_value y = tn_select(g, rising, slope, zero);
    y = tn_select(g, falling, tn_div(g, tn_sub(g, at[2], bin), down), y);
    return tn_expand_set(x, 0, tn_cast(g, y, dtype));
}

/* --- rows -------------------------------------------------------------------------------------------------------------------------------- */

static const tn_attr_spec dft_attrs[] = {TN_SPEC_BOOL("inverse", 0), TN_SPEC_BOOL("onesided", 0), {0}};
static const tn_attr_spec stft_attrs[] = {TN_SPEC_BOOL("onesided", 1), {0}};
static const tn_attr_spec window_attrs[] = {TN_SPEC_INT("output_datatype", 1), TN_SPEC_BOOL("periodic", 1), {0}};
static const tn_attr_spec mel_attrs[] = {TN_SPEC_INT("output_datatype", 1), {0}};

#define WINDOW(name, build) \
    TN_ONNX(name, .since = 17, .inputs = {1, 1}, .outputs = {1, 1}, .attrs = window_attrs, .expand = build)

static const tn_onnx_op rows[] = {
    TN_ONNX("DFT", .since = 17, .inputs = {1, 3}, .outputs = {1, 1}, .attrs = dft_attrs, .expand = expand_dft),
    TN_ONNX("STFT", .since = 17, .inputs = {2, 4}, .outputs = {1, 1}, .attrs = stft_attrs, .expand = expand_stft),
    WINDOW("HannWindow", expand_hann),
    WINDOW("HammingWindow", expand_hamming),
    WINDOW("BlackmanWindow", expand_blackman),
    TN_ONNX("MelWeightMatrix", .since = 17, .inputs = {5, 5}, .outputs = {1, 1}, .attrs = mel_attrs,
            .expand = expand_mel),
};

const tn_onnx_family tn_onnx_family_signal = {rows, sizeof rows / sizeof *rows};
