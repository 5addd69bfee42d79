/* Vector math: elementary functions of f32 as branch-free scalar C that compilers vectorise, one text for every instruction-set level
   and for generated code. No function depends on its neighbours, so where an element stands in a strip changes no bit; levels with
   fused multiply-add differ from those without in the last place.

   Bounds, in units of the result's last place, subnormal results included; tests/kernels holds them over all 2^32 floats:
     exp 1.0   expm1 1.7   log 1.0   log1p 1.5   tanh 2.7   sigmoid 2.5   erf 6.6   rsqrt 1.5   sin, cos, pow 0.51
   NaN gives NaN; infinities, zeros and their signs are those of C's Annex F. */
#ifndef TN_KERNELS_VECTOR_MATH_H
#define TN_KERNELS_VECTOR_MATH_H

#include <stdint.h>

#define TN_VM static inline __attribute__((always_inline, unused))

/* A loop over i whose turns do not depend on each other. */
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed" /* a wish: sanitizers and coverage may stand in its way */
#define TN_VM_LOOP(n) _Pragma("clang loop vectorize(assume_safety)") for (int64_t i = 0; i < (n); i++)
#else
#define TN_VM_LOOP(n) _Pragma("GCC ivdep") for (int64_t i = 0; i < (n); i++)
#endif

/* a * b + c, rounded once where the level has the instruction. */
#if defined(__FMA__) || defined(__aarch64__)
#define TN_VM_FUSED
#define TN_VM_MADD(a, b, c) __builtin_fmaf(a, b, c)
#define TN_VM_MADD_F64(a, b, c) __builtin_fma(a, b, c)
#else
#define TN_VM_MADD(a, b, c) ((a) * (b) + (c))
#define TN_VM_MADD_F64(a, b, c) ((a) * (b) + (c))
#endif

TN_VM uint32_t tn_vm_bits(float x) {
    uint32_t u;
    __builtin_memcpy(&u, &x, sizeof u);
    return u;
}
TN_VM float tn_vm_float(uint32_t u) {
    float x;
    __builtin_memcpy(&x, &u, sizeof x);
    return x;
}
TN_VM uint64_t tn_vm_bits_f64(double x) {
    uint64_t u;
    __builtin_memcpy(&u, &x, sizeof u);
    return u;
}
TN_VM double tn_vm_double(uint64_t u) {
    double x;
    __builtin_memcpy(&x, &u, sizeof x);
    return x;
}
TN_VM float tn_vm_with_sign(float magnitude, float sign) {
    return tn_vm_float(tn_vm_bits(magnitude) | (tn_vm_bits(sign) & 0x80000000u));
}

/* Added to |x| < 2^22, it rounds x to an integer, which then stands in the low bits. */
#define TN_VM_ROUND 0x1.8p23f
#define TN_VM_ROUND_F64 0x1.8p52
/* ln 2 in two parts; products of the first with exponents are exact. */
#define TN_VM_LOG2_E 0x1.715476p0f
#define TN_VM_LN2_HIGH 0x1.62e000p-1f
#define TN_VM_LN2_LOW 0x1.0bfbe8p-15f

/* --- exp, expm1 ------------------------------------------------------------------------------------------------------------------ */

/* (e^r - 1 - r) / r^2 for |r| <= ln 2 / 2: 1/2 and these. */
#define TN_VM_EXP_2 0x1.55548cp-3f
#define TN_VM_EXP_3 0x1.55545cp-5f
#define TN_VM_EXP_4 0x1.123ce0p-7f
#define TN_VM_EXP_5 0x1.6db64cp-10f
TN_VM float tn_vm_exp_rest(float r) {
    float q = TN_VM_EXP_5;
    q = TN_VM_MADD(q, r, TN_VM_EXP_4);
    q = TN_VM_MADD(q, r, TN_VM_EXP_3);
    q = TN_VM_MADD(q, r, TN_VM_EXP_2);
    return TN_VM_MADD(q, r, 0.5f);
}
/* e^r - 1 */
TN_VM float tn_vm_expm1_near(float r) {
    return TN_VM_MADD(r * r, tn_vm_exp_rest(r), r);
}

/* x = n ln 2 + r; `rounded` holds n in its low bits. */
TN_VM float tn_vm_reduce(float x, float *rounded) {
    float t = TN_VM_MADD(x, TN_VM_LOG2_E, TN_VM_ROUND), n = t - TN_VM_ROUND;
    *rounded = t;
    return TN_VM_MADD(n, -TN_VM_LN2_LOW, TN_VM_MADD(n, -TN_VM_LN2_HIGH, x));
}

/* e^r */
TN_VM float tn_vm_exp_near(float x, float *rounded) {
#if defined(TN_VM_FUSED)
    float r = tn_vm_reduce(x, rounded), q = TN_VM_MADD(tn_vm_exp_rest(r), r, 1.0f);
    return TN_VM_MADD(q, r, 1.0f);
#else /* r in two parts, so that it is rounded only where little depends on it */
    float t = x * TN_VM_LOG2_E + TN_VM_ROUND, n = t - TN_VM_ROUND;
    float high = x - n * TN_VM_LN2_HIGH, low = -(n * TN_VM_LN2_LOW), r = high + low;
    *rounded = t;
    return 1.0f + (high + (low + r * r * tn_vm_exp_rest(r)));
#endif
}

TN_VM float tn_vm_exp(float x) {
    float t, low = x < -104.0f ? -104.0f : x, c = low > 89.0f ? 89.0f : low;
    float p = tn_vm_exp_near(c, &t);
    /* n and n / 2, rounded down, where exponents stand; in two steps over- and underflow round once */
    uint32_t n = tn_vm_bits(t) << 23, half = tn_vm_bits(t) << 22 & 0xff800000u;
    return p * tn_vm_float(half + 0x3f800000u) * tn_vm_float(n - half + 0x3f800000u);
}

/* The same bits where |x| <= TN_VM_EXP_LIMIT: results are normal. */
#define TN_VM_EXP_LIMIT 87.0f
TN_VM float tn_vm_exp_normal(float x) {
    float t, p = tn_vm_exp_near(x, &t);
    return tn_vm_float(tn_vm_bits(p) + (tn_vm_bits(t) << 23));
}

TN_VM float tn_vm_expm1(float x) {
    float t, low = x < -20.0f ? -20.0f : x, c = low > 89.0f ? 89.0f : low;
    float p = tn_vm_expm1_near(tn_vm_reduce(c, &t));
    float s = tn_vm_float((tn_vm_bits(t) << 23) + 0x3f000000u); /* 2^(n - 1) */
    float y = 2.0f * TN_VM_MADD(s, p, s - 0.5f);
    y = t == TN_VM_ROUND ? p : y;
    return x == 0.0f ? x : y;
}

/* --- log, log1p ------------------------------------------------------------------------------------------------------------------ */

/* log(1 + f) + k ln 2 + c for 1 + f in [sqrt(1/2), sqrt(2)], c small. */
TN_VM float tn_vm_log_near(float f, float k, float c) {
    float p = 0x1.1b5240p-4f;
    p = TN_VM_MADD(p, f, -0x1.e2ff28p-4f);
    p = TN_VM_MADD(p, f, 0x1.e65558p-4f);
    p = TN_VM_MADD(p, f, -0x1.fb401ap-4f);
    p = TN_VM_MADD(p, f, 0x1.233242p-3f);
    p = TN_VM_MADD(p, f, -0x1.5562f4p-3f);
    p = TN_VM_MADD(p, f, 0x1.99a54cp-3f);
    p = TN_VM_MADD(p, f, -0x1.ffffeep-3f);
    p = TN_VM_MADD(p, f, 0x1.555546p-2f);
    float s = f * f, low = TN_VM_MADD(k, TN_VM_LN2_LOW, c);
    low = TN_VM_MADD(f * s, p, low);
    low = TN_VM_MADD(s, -0.5f, low);
    return TN_VM_MADD(k, TN_VM_LN2_HIGH, f + low);
}

TN_VM float tn_vm_log(float x) {
    float scaled = x < 0x1p-126f ? x * 0x1p23f : x, less = x < 0x1p-126f ? 23.0f : 0.0f;
    uint32_t u = tn_vm_bits(scaled) - 0x3f3504f3u; /* of sqrt(1/2) */
    float k = (float)((int32_t)u >> 23) - less, f = tn_vm_float((u & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
    float y = tn_vm_log_near(f, k, 0.0f);
    y = x == __builtin_inff() ? x : y;
    y = x == 0.0f ? -__builtin_inff() : y;
    y = x < 0.0f ? __builtin_nanf("") : y;
    return x != x ? x : y;
}

TN_VM float tn_vm_log1p(float x) {
    float u = 1.0f + x, c = x > 1.0f ? 1.0f - (u - x) : x - (u - 1.0f); /* what u lost */
    uint32_t b = tn_vm_bits(u) - 0x3f3504f3u;
    float k = (float)((int32_t)b >> 23), f = tn_vm_float((b & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
    /* near 0 x itself is f */
    float y = tn_vm_log_near(k == 0.0f ? x : f, k, k == 0.0f ? 0.0f : c / u);
    y = x == __builtin_inff() ? x : y;
    y = x == 0.0f ? x : y;
    y = x == -1.0f ? -__builtin_inff() : y;
    y = x < -1.0f ? __builtin_nanf("") : y;
    return x != x ? x : y;
}

/* --- tanh, sigmoid, erf, rsqrt ------------------------------------------------------------------------------------------------------ */

/* h / (h + 1), h = (e^2|x| - 1) / 2. What ln 2 loses by being one number is less than the last place: large results hardly depend on e. */
TN_VM float tn_vm_tanh(float x) {
    float a = __builtin_fabsf(x), c = 10.0f < a ? 10.0f : a;
    float t = TN_VM_MADD(c, 0x1.715476p1f, TN_VM_ROUND), n = t - TN_VM_ROUND;
    float r = TN_VM_MADD(n, -0x1.62e430p-2f, c), q = 0x1.6db64cp-5f; /* tn_vm_exp_rest(2 r) * 2 */
    q = TN_VM_MADD(q, r, 0x1.123ce0p-3f);
    q = TN_VM_MADD(q, r, 0x1.55545cp-2f);
    q = TN_VM_MADD(q, r, 0x1.55548cp-1f);
    q = TN_VM_MADD(q, r, 1.0f);
    float p = TN_VM_MADD(r * r, q, r), s = tn_vm_float((tn_vm_bits(t) << 23) + 0x3f800000u); /* 2^n, n < 30 */
    float h = TN_VM_MADD(s, p, TN_VM_MADD(s, 0.5f, -0.5f));
    return tn_vm_with_sign(h / (h + 1.0f), x);
}

/* The same bits as tn_vm_sigmoid where |x| <= TN_VM_EXP_LIMIT. */
TN_VM float tn_vm_sigmoid_normal(float x) {
    return 1.0f / (1.0f + tn_vm_exp_normal(-x));
}
/* Beyond, it is 1 or so small that 1 + e^-x would overflow. */
TN_VM float tn_vm_sigmoid(float x) {
    float e = tn_vm_exp(-__builtin_fabsf(x)), far = (x < 0.0f ? e : 1.0f) / (1.0f + e);
    return __builtin_fabsf(x) <= TN_VM_EXP_LIMIT ? tn_vm_sigmoid_normal(x) : far;
}

/* x P(x^2) / Q(x^2), no more than 1. At 4.1 the quotient is well beyond 1 at every level, so that of all that lies beyond exactly 1 is left: what
   multiplies 1 - erf by large numbers relies on it. A polynomial near 0 and one in an exponent beyond, both computed, would err by
   1.6 instead of 6.6 (where the result is near 1; 4.5 up to |x| = 1.5), and take half as long again. */
TN_VM float tn_vm_erf(float x) {
    float a = __builtin_fabsf(x), c = 4.1f < a ? 4.1f : a, s = c * c;
    float p = TN_VM_MADD(0x1.1c1af6p-19f, s, 0x1.2bb280p-12f), q = TN_VM_MADD(0x1.45b242p-15f, s, 0x1.2bb0d8p-10f);
    p = TN_VM_MADD(p, s, 0x1.dfe9aap-9f);
    q = TN_VM_MADD(q, s, 0x1.e3a6dap-7f);
    p = TN_VM_MADD(p, s, 0x1.ad9dfcp-5f);
    q = TN_VM_MADD(q, s, 0x1.ced3aep-4f);
    p = TN_VM_MADD(p, s, 0x1.801b96p-3f);
    q = TN_VM_MADD(q, s, 0x1.ff8946p-2f);
    p = TN_VM_MADD(p, s, 0x1.20dd74p+0f);
    q = TN_VM_MADD(q, s, 1.0f);
    float y = c * p / q;
    return tn_vm_with_sign(1.0f < y ? 1.0f : y, x);
}

TN_VM float tn_vm_rsqrt(float x) {
    return 1.0f / __builtin_sqrtf(x);
}

/* --- sin, cos: for |x| <= TN_VM_TRIG_LIMIT; beyond it callers take the C library's ------------------------------------------------------ */

#define TN_VM_TRIG_LIMIT 0x1p20f

/* The sine of x + quarter * pi / 2. */
TN_VM float tn_vm_sine(float x, uint64_t quarter) {
    double d = (double)x, t = d * 0x1.45f306dc9c883p-1 + TN_VM_ROUND_F64, n = t - TN_VM_ROUND_F64;
    /* pi / 2 in two parts, the first of 31 bits */
    double r = (d - n * 0x1.921fb544p0) - n * 0x1.0b4611a626331p-34, s = r * r;
    uint64_t q = tn_vm_bits_f64(t) + quarter;
    double sine = -0x1.a964a2c7960c0p-26, cosine = -0x1.242906a4ba427p-22;
    sine = TN_VM_MADD_F64(sine, s, 0x1.71d776df3a43bp-19);
    sine = TN_VM_MADD_F64(sine, s, -0x1.a019f94f44df4p-13);
    sine = TN_VM_MADD_F64(sine, s, 0x1.1111110c9a628p-7);
    sine = TN_VM_MADD_F64(sine, s, -0x1.555555555238cp-3);
    sine = TN_VM_MADD_F64(sine * s, r, r);
    cosine = TN_VM_MADD_F64(cosine, s, 0x1.a011177fef5c2p-16);
    cosine = TN_VM_MADD_F64(cosine, s, -0x1.6c16b88bdddcdp-10);
    cosine = TN_VM_MADD_F64(cosine, s, 0x1.5555554f427b1p-5);
    cosine = TN_VM_MADD_F64(cosine * s, s, 1.0 - 0.5 * s);
    uint64_t odd = (q & 1) * UINT64_MAX;
    return (float)tn_vm_double(((tn_vm_bits_f64(cosine) & odd) | (tn_vm_bits_f64(sine) & ~odd)) ^ (q & 2) << 62);
}

/* --- pow: for x finite, |y| <= TN_VM_POW_LIMIT; else the C library's --------------------------------------------------------------------- */

#define TN_VM_POW_LIMIT 0x1p20f

TN_VM float tn_vm_cube(float x) {
    return (float)((double)x * (double)x * (double)x);
}

TN_VM float tn_vm_pow(float x, float y) {
    double a = (double)__builtin_fabsf(x);
    uint64_t u = tn_vm_bits_f64(a) - 0x3fe6a09e667f3bcdu;
    /* the exponent as a double: the sign-extending shift of 64 bits is not everywhere */
    double k = tn_vm_double(((u >> 52 ^ 0x800u) & 0xfffu) | 0x4330000000000000u) - (0x1p52 + 0x800);
    double m = tn_vm_double((u & 0xfffffffffffffu) + 0x3fe6a09e667f3bcdu), s = (m - 1.0) / (m + 1.0), z = s * s;
    double l = 0x1.04b5124834c36p-2;
    l = TN_VM_MADD_F64(l, z, 0x1.0aa28355801a1p-2);
    l = TN_VM_MADD_F64(l, z, 0x1.4858db9cafd23p-2);
    l = TN_VM_MADD_F64(l, z, 0x1.a617341034998p-2);
    l = TN_VM_MADD_F64(l, z, 0x1.2776c53210992p-1);
    l = TN_VM_MADD_F64(l, z, 0x1.ec709dc38ba19p-1);
    l = TN_VM_MADD_F64(l, z, 0x1.71547652b830dp+1);
    double w = (double)y * TN_VM_MADD_F64(l, s, k);
    w = w < -160.0 ? -160.0 : w;
    w = w > 140.0 ? 140.0 : w;
    double t = w + TN_VM_ROUND_F64, r = w - (t - TN_VM_ROUND_F64);
    double e = 0x1.b67f000000000p-24;
    e = TN_VM_MADD_F64(e, r, 0x1.63ef400000000p-20);
    e = TN_VM_MADD_F64(e, r, 0x1.ffcb482000000p-17);
    e = TN_VM_MADD_F64(e, r, 0x1.43088e6400000p-13);
    e = TN_VM_MADD_F64(e, r, 0x1.5d87fea284000p-10);
    e = TN_VM_MADD_F64(e, r, 0x1.3b2ab72b06000p-7);
    e = TN_VM_MADD_F64(e, r, 0x1.c6b08d7039f80p-5);
    e = TN_VM_MADD_F64(e, r, 0x1.ebfbdff814938p-3);
    e = TN_VM_MADD_F64(e, r, 0x1.62e42fefa3a2ap-1);
    e = TN_VM_MADD_F64(e, r, 1.0);
    float power = (float)(e * tn_vm_double((tn_vm_bits_f64(t) + 1023) << 52));
    float of_zero = y < 0.0f ? __builtin_inff() : 0.0f;
    of_zero = y == 0.0f ? 1.0f : of_zero;
    power = a == 0.0 ? of_zero : power;
    /* negative bases: whole exponents only, odd ones keep the sign */
    float yr = (y + tn_vm_with_sign(0x1p23f, y)) - tn_vm_with_sign(0x1p23f, y), h = y * 0.5f;
    float hr = (h + tn_vm_with_sign(0x1p23f, h)) - tn_vm_with_sign(0x1p23f, h);
    float of_negative = yr == y ? (hr == h ? power : -power) : a == 0.0 ? power : __builtin_nanf("");
    power = tn_vm_bits(x) >> 31 ? of_negative : power;
    /* what is a product or a root is rounded once, and so costs no more where all exponents are that */
    power = y == 2.0f ? x * x : power;
    power = y == 3.0f ? tn_vm_cube(x) : power;
    return y == 0.5f ? __builtin_sqrtf(x) + 0.0f : power;
}

#endif
