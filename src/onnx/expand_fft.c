/* The fast Fourier transform of a constant length: one pass for each factor of the length (Stockham: each pass leaves its results
   in the order that the next one reads). Factors 2 to 5 are added up by hand, larger primes by their matrix. */
#include "onnx/expand_fft.h"

#include <math.h>

#include "base/error.h"

#define TWO_PI 6.28318530717958647692

enum { MAX_PRIME = 128, MAX_FACTORS = 64 };

typedef struct complex_value {
    tn_value re, im;
} cplx;

typedef struct fft {
    tn_expand *x;
    tn_graph *g;
    tn_dtype dtype;
    int64_t length;
    bool inverse;
} fft;

static int factors_of(int64_t n, int64_t factors[MAX_FACTORS]) {
    int count = 0;
    for (; n % 4 == 0; n /= 4)
        factors[count++] = 4;
    if (n % 2 == 0) {
        n /= 2;
        factors[count++] = 2;
        int64_t swap = factors[0]; /* the odd 2 comes first */
        factors[0] = factors[count - 1];
        factors[count - 1] = swap;
    }
    for (int64_t d = 3; d * d <= n; d += 2)
        for (; n % d == 0; n /= d)
            factors[count++] = d;
    if (n > 1)
        factors[count++] = n;
    return count;
}

bool tn_expand_fft_suits(int64_t length) {
    int64_t factors[MAX_FACTORS];
    if (length < 1 || length > 1 << 24)
        return false;
    int count = factors_of(length, factors);
    return count == 0 || factors[count - 1] <= MAX_PRIME;
}

static cplx plus(const fft *f, cplx a, cplx b) {
    return (cplx){tn_add(f->g, a.re, b.re), tn_add(f->g, a.im, b.im)};
}
static cplx minus(const fft *f, cplx a, cplx b) {
    return (cplx){tn_sub(f->g, a.re, b.re), tn_sub(f->g, a.im, b.im)};
}
static cplx times(const fft *f, cplx a, double c) {
    tn_value factor = tn_scalar(f->g, f->dtype, c);
    return (cplx){tn_mul(f->g, a.re, factor), tn_mul(f->g, a.im, factor)};
}
/* i a, or -i a */
static cplx turn(const fft *f, cplx a, bool left) {
    return left ? (cplx){tn_neg(f->g, a.im), a.re} : (cplx){a.im, tn_neg(f->g, a.re)};
}

/* A list of numbers as a constant; null with the error left on the graph. */
static tn_value constant(const fft *f, int rank, const int64_t *dims, const double *values) {
    tn_tensor *t = tn_tensor_create_in(f->g->heap, f->dtype, rank, dims);
    if (!t) {
        tn_graph_stick(f->g);
        return (tn_value){0};
    }
    for (int64_t i = 0; i < t->count; i++)
        tn_store_f64(f->dtype, t->data, i, values[i]);
    tn_value v = tn_constant(f->g, t);
    tn_tensor_destroy(t);
    return v;
}

/* --- butterflies: n values to their transform ----------------------------------------------------------------------------------------- */

static void butterfly_3(const fft *f, cplx v[3]) {
    cplx sum = plus(f, v[1], v[2]), apart = minus(f, v[1], v[2]), half = plus(f, v[0], times(f, sum, -0.5));
    cplx side = turn(f, times(f, apart, 0.86602540378443864676), f->inverse);
    v[0] = plus(f, v[0], sum);
    v[1] = plus(f, half, side);
    v[2] = minus(f, half, side);
}

static void butterfly_4(const fft *f, cplx v[4]) {
    cplx even = plus(f, v[0], v[2]), even_apart = minus(f, v[0], v[2]), odd = plus(f, v[1], v[3]);
    cplx odd_apart = turn(f, minus(f, v[1], v[3]), f->inverse);
    v[0] = plus(f, even, odd);
    v[1] = plus(f, even_apart, odd_apart);
    v[2] = minus(f, even, odd);
    v[3] = minus(f, even_apart, odd_apart);
}

static void butterfly_5(const fft *f, cplx v[5]) {
    static const double c[2] = {0.30901699437494742410, -0.80901699437494742410};
    static const double s[2] = {0.95105651629515357212, 0.58778525229247312917};
    cplx near = plus(f, v[1], v[4]), near_apart = minus(f, v[1], v[4]);
    cplx far = plus(f, v[2], v[3]), far_apart = minus(f, v[2], v[3]), first = v[0];
    v[0] = plus(f, plus(f, first, near), far);
    for (int k = 0; k < 2; k++) {
        cplx sum = plus(f, plus(f, first, times(f, near, c[k])), times(f, far, c[1 - k]));
        cplx a = times(f, near_apart, s[k]), b = times(f, far_apart, s[1 - k]);
        cplx side = turn(f, k == 0 ? plus(f, a, b) : minus(f, a, b), f->inverse);
        v[1 + k] = plus(f, sum, side);
        v[4 - k] = minus(f, sum, side);
    }
}

/* Any n: v [rows, before, n, after] times the matrix, as [rows, n, before, after]. */
static cplx butterfly_any(const fft *f, int64_t n, cplx v) {
    static const int perm[4] = {0, 3, 1, 2};
    static const int64_t third[1] = {2}, first[1] = {0};
    const int64_t dims[2] = {n, n};
    double *re = tn_expand_alloc(f->x, (size_t)(n * n), sizeof *re),
           *im = tn_expand_alloc(f->x, (size_t)(n * n), sizeof *im);
    if (!re || !im) {
        tn_graph_stick(f->g);
        return (cplx){{0}, {0}};
    }
    for (int64_t i = 0; i < n * n; i++) {
        double angle = TWO_PI * (double)(i / n * (i % n) % n) / (double)n;
        re[i] = cos(angle);
        im[i] = f->inverse ? sin(angle) : -sin(angle);
    }
    tn_value c = constant(f, 2, dims, re), s = constant(f, 2, dims, im), part[4];
    for (int i = 0; i < 4; i++)
        part[i] =
            tn_transpose(f->g, tn_dot(f->g, i < 2 ? v.re : v.im, i % 2 ? s : c, 0, NULL, NULL, 1, third, first), perm);
    return (cplx){tn_sub(f->g, part[0], part[3]), tn_add(f->g, part[1], part[2])};
}

/* --- passes ------------------------------------------------------------------------------------------------------------------------------ */

/* Result k of n, [..., after], turned by k * i * before / length for i < after. */
static cplx twiddle(const fft *f, cplx v, int64_t k, int64_t before, int64_t after) {
    if (k == 0 || after == 1)
        return v;
    double *re = tn_expand_alloc(f->x, (size_t)after, sizeof *re),
           *im = tn_expand_alloc(f->x, (size_t)after, sizeof *im);
    if (!re || !im) {
        tn_graph_stick(f->g);
        return (cplx){{0}, {0}};
    }
    for (int64_t i = 0; i < after; i++) {
        double angle = TWO_PI * (double)(k * i * before % f->length) / (double)f->length;
        re[i] = cos(angle);
        im[i] = f->inverse ? sin(angle) : -sin(angle);
    }
    tn_graph *g = f->g;
    tn_value c = constant(f, 1, &after, re), s = constant(f, 1, &after, im);
    return (cplx){tn_sub(g, tn_mul(g, v.re, c), tn_mul(g, v.im, s)), tn_add(g, tn_mul(g, v.re, s), tn_mul(g, v.im, c))};
}

/* [rows, before, n, after] to [rows, n, before, after]; before * n * after is the length. */
static cplx pass(const fft *f, cplx v, int64_t n, int64_t before, int64_t after) {
    static const int axis[1] = {2}, front[1] = {1};
    tn_graph *g = f->g;
    tn_value re[MAX_PRIME], im[MAX_PRIME];
    cplx part[5];
    if (n > 5) {
        v = butterfly_any(f, n, v);
        if (after == 1)
            return v;
    }
    for (int64_t k = 0; k < n; k++) {
        const int *from = n > 5 ? front : axis;
        cplx one = {tn_squeeze(g, tn_slice_axis(g, v.re, *from, k, 1), 1, from),
                    tn_squeeze(g, tn_slice_axis(g, v.im, *from, k, 1), 1, from)};
        if (n <= 5) {
            part[k] = one;
            continue;
        }
        one = twiddle(f, one, k, before, after);
        re[k] = tn_expand_dims(g, one.re, 1, front);
        im[k] = tn_expand_dims(g, one.im, 1, front);
    }
    if (n == 2) {
        cplx sum = plus(f, part[0], part[1]);
        part[1] = minus(f, part[0], part[1]);
        part[0] = sum;
    } else if (n == 3) {
        butterfly_3(f, part);
    } else if (n == 4) {
        butterfly_4(f, part);
    } else if (n == 5) {
        butterfly_5(f, part);
    }
    for (int64_t k = 0; k < n && n <= 5; k++) {
        cplx one = twiddle(f, part[k], k, before, after);
        re[k] = tn_expand_dims(g, one.re, 1, front);
        im[k] = tn_expand_dims(g, one.im, 1, front);
    }
    return (cplx){tn_concat(g, 1, (uint32_t)n, re), tn_concat(g, 1, (uint32_t)n, im)};
}

void tn_expand_fft(tn_expand *x, int64_t length, bool inverse, tn_value *re, tn_value *im) {
    tn_graph *g = x->graph;
    if (!re->id || !im->id)
        return;
    fft f = {.x = x, .g = g, .dtype = tn_value_dtype(g, *re), .length = length, .inverse = inverse};
    int64_t factors[MAX_FACTORS], before = 1;
    int count = factors_of(length, factors);
    tn_dim rows = tn_value_dim(g, *re, 0), flat[2] = {rows, tn_size(x, length)};
    cplx v = {*re, *im};
    for (int i = 0; i < count; i++) {
        int64_t n = factors[i], after = length / before / n;
        tn_dim apart[4] = {rows, tn_size(x, before), tn_size(x, n), tn_size(x, after)};
        v.re = tn_reshape_dims(g, v.re, 4, apart);
        v.im = tn_reshape_dims(g, v.im, 4, apart);
        v = pass(&f, v, n, before, after);
        before *= n;
    }
    *re = tn_reshape_dims(g, v.re, 2, flat);
    *im = tn_reshape_dims(g, v.im, 2, flat);
}
