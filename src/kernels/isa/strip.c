/* Operations on strips at one instruction-set level. Loops are plain: the compiler makes vectors of them. Every operation on an element
   is the same in a vector and in what is left over, so no bit depends on where an element stands. */
#include "kernels/strip.h"

/* The same instructions as AVX-512: that level's table serves. */
#if !defined(__AVX512VNNI__)

#include <math.h>
#include <string.h>

#include "ir/tensor.h"
#include "kernels/half_float.h"
#include "kernels/sums.h"
#include "kernels/vector_math.h"

/* Operands and result may be the same memory, never parts of it that overlap otherwise. */
#define LOOP TN_VM_LOOP(n)
#define ARGS int64_t n, const void *pa, const void *pb, const void *pc, void *to
#define UNUSED_BC (void)pb, (void)pc

#define UNARY(name, T, R, expr) \
    static void name(ARGS) {    \
        const T *a = pa;        \
        R *r = to;              \
        UNUSED_BC;              \
        LOOP {                  \
            T x = a[i];         \
            r[i] = (R)(expr);   \
        }                       \
    }
#define BINARY(name, T, U, R, expr) \
    static void name(ARGS) {        \
        const T *a = pa;            \
        const U *b = pb;            \
        R *r = to;                  \
        (void)pc;                   \
        LOOP {                      \
            T x = a[i];             \
            U y = b[i];             \
            r[i] = (R)(expr);       \
        }                           \
    }
#define SELECT(name, T)               \
    static void name(ARGS) {          \
        const uint8_t *c = pa;        \
        const T *a = pb, *b = pc;     \
        T *r = to;                    \
        LOOP {                        \
            T x = a[i], y = b[i];     \
            r[i] = c[i] != 0 ? x : y; \
        }                             \
    }
#define TERNARY(name, T, expr)              \
    static void name(ARGS) {                \
        const T *a = pa, *b = pb, *c = pc;  \
        T *r = to;                          \
        LOOP {                              \
            T x = a[i], y = b[i], z = c[i]; \
            r[i] = (expr);                  \
        }                                   \
    }
#define COMPARE(type, T)                             \
    BINARY(equal_##type, T, T, uint8_t, x == y)      \
    BINARY(not_equal_##type, T, T, uint8_t, x != y)  \
    BINARY(less_##type, T, T, uint8_t, x < y)        \
    BINARY(less_equal_##type, T, T, uint8_t, x <= y) \
    BINARY(greater_##type, T, T, uint8_t, x > y)     \
    BINARY(greater_equal_##type, T, T, uint8_t, x >= y)

/* --- floats ------------------------------------------------------------------------------------------------------------------------ */

/* NaN wins; of zeros the one whose sign says so. */
#define EXTREMES(type, T, bits, back)             \
    TN_VM T greatest_##type(T x, T y) {           \
        T r = x > y ? x : y;                      \
        r = x == y ? back(bits(x) & bits(y)) : r; \
        return x != x ? x : r;                    \
    }                                             \
    TN_VM T least_##type(T x, T y) {              \
        T r = x < y ? x : y;                      \
        r = x == y ? back(bits(x) | bits(y)) : r; \
        return x != x ? x : r;                    \
    }
#define FLOATS(type, T, M)                                               \
    UNARY(neg_##type, T, T, -x)                                          \
    UNARY(abs_##type, T, T, M(fabs)(x))                                  \
    UNARY(sign_##type, T, T, x != x ? x : (T)(x > 0) - (T)(x < 0))       \
    UNARY(floor_##type, T, T, M(floor)(x))                               \
    UNARY(ceil_##type, T, T, M(ceil)(x))                                 \
    UNARY(round_##type, T, T, M(rint)(x))                                \
    UNARY(trunc_##type, T, T, M(trunc)(x))                               \
    UNARY(sqrt_##type, T, T, M(sqrt)(x))                                 \
    UNARY(reciprocal_##type, T, T, 1 / x)                                \
    UNARY(is_nan_##type, T, uint8_t, x != x)                             \
    UNARY(is_inf_##type, T, uint8_t, M(fabs)(x) == (T)__builtin_inf())   \
    UNARY(is_finite_##type, T, uint8_t, M(fabs)(x) < (T)__builtin_inf()) \
    BINARY(add_##type, T, T, T, x + y)                                   \
    BINARY(sub_##type, T, T, T, x - y)                                   \
    BINARY(mul_##type, T, T, T, x *y)                                    \
    BINARY(div_##type, T, T, T, x / y)                                   \
    BINARY(min_##type, T, T, T, least_##type(x, y))                      \
    BINARY(max_##type, T, T, T, greatest_##type(x, y))                   \
    COMPARE(type, T)                                                     \
    SELECT(select_##type, T)
#define OF_FLOAT(name) __builtin_##name##f
#define OF_DOUBLE(name) __builtin_##name
EXTREMES(f32, float, tn_vm_bits, tn_vm_float)
EXTREMES(f64, double, tn_vm_bits_f64, tn_vm_double)
FLOATS(f32, float, OF_FLOAT)
FLOATS(f64, double, OF_DOUBLE)

UNARY(any_exp_f32, float, float, tn_vm_exp(x))
UNARY(normal_exp_f32, float, float, tn_vm_exp_normal(x))
UNARY(expm1_f32, float, float, tn_vm_expm1(x))
UNARY(log_f32, float, float, tn_vm_log(x))
UNARY(log1p_f32, float, float, tn_vm_log1p(x))
UNARY(tanh_f32, float, float, tn_vm_tanh(x))
UNARY(any_sigmoid_f32, float, float, tn_vm_sigmoid(x))
UNARY(normal_sigmoid_f32, float, float, tn_vm_sigmoid_normal(x))
UNARY(erf_f32, float, float, tn_vm_erf(x))
UNARY(rsqrt_f32, float, float, tn_vm_rsqrt(x))
UNARY(near_sin_f32, float, float, tn_vm_sine(x, 0))
UNARY(near_cos_f32, float, float, tn_vm_sine(x, 1))
BINARY(near_pow_f32, float, float, float, tn_vm_pow(x, y))

TERNARY(mul_mul_f32, float, x *y *z)
TERNARY(mul_add_f32, float, x *y + z)
TERNARY(scaled_erf_f32, float, tn_vm_erf(x *y) + z)
TERNARY(scaled_tanh_f32, float, tn_vm_tanh(x *y) + z)

static bool all_near(int64_t n, const float *a, float limit) {
    int far = 0;
    for (int64_t i = 0; i < n; i++)
        far |= !(__builtin_fabsf(a[i]) <= limit);
    return !far;
}
/* Results of both functions have the same bits where arguments are near. */
#define NEAR_OR_ANY(name, near, any, limit)                      \
    static void name(ARGS) {                                     \
        const float *a = pa;                                     \
        (all_near(n, a, limit) ? near : any)(n, pa, pb, pc, to); \
    }
NEAR_OR_ANY(exp_f32, normal_exp_f32, any_exp_f32, TN_VM_EXP_LIMIT)
NEAR_OR_ANY(sigmoid_f32, normal_sigmoid_f32, any_sigmoid_f32, TN_VM_EXP_LIMIT)
/* Elements beyond the reach of the vector function take the C library's. */
#define TRIGONOMETRIC(name, near, f)                       \
    static void name(ARGS) {                               \
        const float *a = pa;                               \
        float *r = to;                                     \
        if (all_near(n, a, TN_VM_TRIG_LIMIT)) {            \
            near(n, pa, pb, pc, to);                       \
            return;                                        \
        }                                                  \
        for (int64_t i = 0; i < n; i++)                    \
            if (__builtin_fabsf(a[i]) <= TN_VM_TRIG_LIMIT) \
                near(1, a + i, NULL, NULL, r + i);         \
            else                                           \
                r[i] = (float)f((double)a[i]);             \
    }
TRIGONOMETRIC(sin_f32, near_sin_f32, sin)
TRIGONOMETRIC(cos_f32, near_cos_f32, cos)

/* Powers that are products or a root, as tn_vm_pow has them. */
UNARY(square_f32, float, float, x *x)
UNARY(cube_f32, float, float, tn_vm_cube(x))
UNARY(root_f32, float, float, __builtin_sqrtf(x) + 0.0f)

static void pow_f32(ARGS) {
    const float *a = pa, *b = pb;
    float *r = to;
    int other = 0;
    for (int64_t i = 0; i < n; i++)
        other |= b[i] != b[0];
    tn_strip_fn *simple = other || !n    ? NULL
                          : b[0] == 2    ? square_f32
                          : b[0] == 3    ? cube_f32
                          : b[0] == 0.5f ? root_f32
                                         : NULL;
    if (simple && all_near(n, a, 0x1.fffffep127f)) {
        simple(n, pa, NULL, NULL, to);
        return;
    }
    if (all_near(n, a, 0x1.fffffep127f) && all_near(n, b, TN_VM_POW_LIMIT)) {
        near_pow_f32(n, pa, pb, pc, to);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        if (all_near(1, a + i, 0x1.fffffep127f) && all_near(1, b + i, TN_VM_POW_LIMIT))
            near_pow_f32(1, a + i, b + i, NULL, r + i);
        else
            r[i] = (float)pow((double)a[i], (double)b[i]);
}

/* --- integers: arithmetic is unsigned, where it wraps -------------------------------------------------------------------------------- */

#define INTEGERS(type, T, U, width)                                              \
    UNARY(neg_##type, T, T, 0 - (U)x)                                            \
    UNARY(abs_##type, T, T, x < 0 ? 0 - (U)x : (U)x)                             \
    UNARY(sign_##type, T, T, (x > 0) - (x < 0))                                  \
    UNARY(bit_not_##type, T, T, ~(U)x)                                           \
    BINARY(add_##type, T, T, T, (U)x + (U)y)                                     \
    BINARY(sub_##type, T, T, T, (U)x - (U)y)                                     \
    BINARY(mul_##type, T, T, T, (U)x *(U)y)                                      \
    BINARY(min_##type, T, T, T, x < y ? x : y)                                   \
    BINARY(max_##type, T, T, T, x > y ? x : y)                                   \
    BINARY(and_##type, T, T, T, (U)x &(U)y)                                      \
    BINARY(or_##type, T, T, T, (U)x | (U)y)                                      \
    BINARY(xor_##type, T, T, T, (U)x ^ (U)y)                                     \
    BINARY(shl_##type, T, T, T, (U)y < width ? (U)x << ((U)y & (width - 1)) : 0) \
    BINARY(shr_##type, T, T, T, x >> ((U)y < width ? (U)y : width - 1))          \
    COMPARE(type, T)                                                             \
    SELECT(select_##type, T)
INTEGERS(i32, int32_t, uint32_t, 32u)
INTEGERS(i64, int64_t, uint64_t, 64u)
BINARY(min_u64, uint64_t, uint64_t, uint64_t, x < y ? x : y)
BINARY(max_u64, uint64_t, uint64_t, uint64_t, x > y ? x : y)
BINARY(less_u64, uint64_t, uint64_t, uint8_t, x < y)
BINARY(less_equal_u64, uint64_t, uint64_t, uint8_t, x <= y)
BINARY(greater_u64, uint64_t, uint64_t, uint8_t, x > y)
BINARY(greater_equal_u64, uint64_t, uint64_t, uint8_t, x >= y)

UNARY(not_b8, uint8_t, uint8_t, x == 0)
BINARY(and_b8, uint8_t, uint8_t, uint8_t, (x != 0) & (y != 0))
BINARY(or_b8, uint8_t, uint8_t, uint8_t, (x | y) != 0)
BINARY(xor_b8, uint8_t, uint8_t, uint8_t, (x != 0) != (y != 0))
BINARY(equal_b8, uint8_t, uint8_t, uint8_t, (x != 0) == (y != 0))
SELECT(select_b8, uint8_t)

/* --- conversions -------------------------------------------------------------------------------------------------------------------- */

#define CONVERT(from, T, to_type, R, expr) UNARY(to_type##_of_##from, T, R, expr)
CONVERT(f32, float, f64, double, x)
CONVERT(f64, double, f32, float, x)
CONVERT(i32, int32_t, f32, float, x)
CONVERT(i32, int32_t, f64, double, x)
CONVERT(i32, int32_t, i64, int64_t, x)
CONVERT(i64, int64_t, f32, float, x)
CONVERT(i64, int64_t, f64, double, x)
CONVERT(i64, int64_t, i32, int32_t, x)
CONVERT(u64, uint64_t, f32, float, x)
CONVERT(u64, uint64_t, f64, double, x)
CONVERT(b8, uint8_t, f32, float, x != 0)
CONVERT(b8, uint8_t, f64, double, x != 0)
CONVERT(b8, uint8_t, i32, int32_t, x != 0)
CONVERT(b8, uint8_t, i64, int64_t, x != 0)
CONVERT(f32, float, b8, uint8_t, x != 0)
CONVERT(f64, double, b8, uint8_t, x != 0)
CONVERT(i32, int32_t, b8, uint8_t, x != 0)
CONVERT(i64, int64_t, b8, uint8_t, x != 0)
UNARY(copy_32, uint32_t, uint32_t, x)
UNARY(copy_64, uint64_t, uint64_t, x)
UNARY(copy_8, uint8_t, uint8_t, x)

/* Floats to integers: beyond the type's range, what tn_run_store says. */
#define TO_INTEGER(from, T, domain, to_type, R, width, limit)                           \
    CONVERT(from, T, near_##to_type, R, x)                                              \
    static void to_type##_of_##from(ARGS) {                                             \
        const T *a = pa;                                                                \
        R *r = to;                                                                      \
        int far = 0;                                                                    \
        for (int64_t i = 0; i < n; i++)                                                 \
            far |= !(a[i] > -limit) | !(a[i] < limit);                                  \
        if (!far) {                                                                     \
            near_##to_type##_of_##from(n, pa, pb, pc, to);                              \
            return;                                                                     \
        }                                                                               \
        tn_dtype dtype = (tn_dtype) * (const uint8_t *)pc;                              \
        tn_domain integers = tn_dtype_is_signed(dtype) ? TN_DOMAIN_I64 : TN_DOMAIN_U64; \
        for (int64_t i = 0; i < n; i++) {                                               \
            uint64_t narrow = 0, wide = 0;                                              \
            tn_run_store(dtype, domain, a + i, 1, &narrow, 0, 1);                       \
            tn_run_load(dtype, integers, &narrow, 0, 1, 1, &wide);                      \
            r[i] = (R)wide;                                                             \
        }                                                                               \
    }
TO_INTEGER(f32, float, TN_DOMAIN_F32, i32, int32_t, 31, 0x1p31f)
TO_INTEGER(f32, float, TN_DOMAIN_F32, i64, int64_t, 63, 0x1p63f)
TO_INTEGER(f64, double, TN_DOMAIN_F64, i32, int32_t, 31, 0x1p31)
TO_INTEGER(f64, double, TN_DOMAIN_F64, i64, int64_t, 63, 0x1p63)

static void f16_narrow(ARGS) {
    UNUSED_BC;
    tn_vm_narrow_f16(n, pa, to);
}
static void round_f16(ARGS) {
    UNUSED_BC;
    tn_vm_round_f16(n, pa, to);
}
UNARY(bf16_narrow, float, uint16_t, tn_vm_bf16_of_f32(x))
UNARY(round_bf16, float, float, tn_vm_f32_of_bf16(tn_vm_bf16_of_f32(x)))
UNARY(round_i8, int32_t, int32_t, (int8_t)x)
UNARY(round_u8, int32_t, int32_t, (uint8_t)x)
UNARY(round_i16, int32_t, int32_t, (int16_t)x)
UNARY(round_u16, int32_t, int32_t, (uint16_t)x)
UNARY(round_u32, int64_t, int64_t, (uint32_t)x)

/* --- loads and stores ------------------------------------------------------------------------------------------------------------------ */

#define LOAD(name, T, R, expr)                                                       \
    static void load_##name(int64_t n, const void *from, int64_t stride, void *to) { \
        const T *a = from;                                                           \
        R *r = to;                                                                   \
        if (stride == 1)                                                             \
            LOOP {                                                                   \
                T x = a[i];                                                          \
                r[i] = (R)(expr);                                                    \
            }                                                                        \
        else if (stride == 0) {                                                      \
            T x = a[0];                                                              \
            R y = (R)(expr);                                                         \
            LOOP r[i] = y;                                                           \
        } else                                                                       \
            LOOP {                                                                   \
                T x = a[i * stride];                                                 \
                r[i] = (R)(expr);                                                    \
            }                                                                        \
    }
#define STORE(name, R, T, expr)                                                       \
    static void store_##name(int64_t n, const void *from, void *to, int64_t stride) { \
        const R *a = from;                                                            \
        T *r = to;                                                                    \
        if (stride == 1)                                                              \
            LOOP {                                                                    \
                R x = a[i];                                                           \
                r[i] = (T)(expr);                                                     \
            }                                                                         \
        else                                                                          \
            for (int64_t i = 0; i < n; i++) {                                         \
                R x = a[i];                                                           \
                r[i * stride] = (T)(expr);                                            \
            }                                                                         \
    }
LOAD(32, uint32_t, uint32_t, x)
LOAD(64, uint64_t, uint64_t, x)
LOAD(8, uint8_t, uint8_t, x)
LOAD(i8, int8_t, int32_t, x)
LOAD(u8, uint8_t, int32_t, x)
LOAD(i16, int16_t, int32_t, x)
LOAD(u16, uint16_t, int32_t, x)
LOAD(u32, uint32_t, int64_t, x)
STORE(32, uint32_t, uint32_t, x)
STORE(64, uint64_t, uint64_t, x)
STORE(8, uint8_t, uint8_t, x != 0)
STORE(i8, int32_t, uint8_t, x)
STORE(i16, int32_t, uint16_t, x)
STORE(u32, int64_t, uint32_t, x)

/* Conversions of many steps exist once: what lies apart is put side by side first. */
#define NARROW_FLOAT(name)                                                                       \
    UNARY(name##_wide, uint16_t, float, tn_vm_f32_of_##name(x))                                  \
    static void load_##name(int64_t n, const void *from, int64_t stride, void *to) {             \
        const uint16_t *a = from;                                                                \
        uint16_t taken[64];                                                                      \
        for (int64_t at = 0, m; at < n; at += m) {                                               \
            m = stride == 1 || n - at < 64 ? n - at : 64;                                        \
            for (int64_t i = 0; i < m && stride != 1; i++)                                       \
                taken[i] = a[(at + i) * stride];                                                 \
            name##_wide(m, stride == 1 ? a + at : taken, NULL, NULL, (float *)to + at);          \
        }                                                                                        \
    }                                                                                            \
    static void store_##name(int64_t n, const void *from, void *to, int64_t stride) {            \
        uint16_t *r = to, made[64];                                                              \
        for (int64_t at = 0, m; at < n; at += m) {                                               \
            m = stride == 1 || n - at < 64 ? n - at : 64;                                        \
            name##_narrow(m, (const float *)from + at, NULL, NULL, stride == 1 ? r + at : made); \
            for (int64_t i = 0; i < m && stride != 1; i++)                                       \
                r[(at + i) * stride] = made[i];                                                  \
        }                                                                                        \
    }
NARROW_FLOAT(f16)
NARROW_FLOAT(bf16)

/* --- folding: sixteen lanes, each in order ------------------------------------------------------------------------------------------------ */

#define FOLD(name, T, A, expr)                                                       \
    static void fold_##name(int64_t n, const void *px, int64_t phase, void *lanes) { \
        const T *x = px;                                                             \
        A *acc = lanes, v[TN_STRIP_LANES];                                           \
        int64_t i = 0;                                                               \
        for (; i < n && (phase + i) % TN_STRIP_LANES; i++) {                         \
            A a = acc[(phase + i) % TN_STRIP_LANES], b = (A)x[i];                    \
            acc[(phase + i) % TN_STRIP_LANES] = (A)(expr);                           \
        }                                                                            \
        memcpy(v, acc, sizeof v);                                                    \
        for (; i + TN_STRIP_LANES <= n; i += TN_STRIP_LANES)                         \
            for (int l = 0; l < TN_STRIP_LANES; l++) {                               \
                A a = v[l], b = (A)x[i + l];                                         \
                v[l] = (A)(expr);                                                    \
            }                                                                        \
        for (int l = 0; i < n; i++, l++) {                                           \
            A a = v[l], b = (A)x[i];                                                 \
            v[l] = (A)(expr);                                                        \
        }                                                                            \
        memcpy(acc, v, sizeof v);                                                    \
    }
FOLD(wide_f32, float, double, a + b)
static void fold_add_f32(int64_t n, const void *px, int64_t phase, void *lanes) {
    tn_vm_add_sums(n, px, phase, lanes);
}
FOLD(mul_f32, float, double, a *b)
FOLD(add_f64, double, double, a + b)
FOLD(mul_f64, double, double, a *b)
/* Plain comparisons, unless there are NaN, or zeros among which the sign decides. */
#define FOLD_EXTREME(name, T, compare, exact)                                           \
    FOLD(exact_##name, T, T, exact(a, b))                                               \
    static void fold_##name(int64_t n, const void *px, int64_t phase, void *lanes) {    \
        const T *x = px;                                                                \
        T *acc = lanes, v[2 * TN_STRIP_LANES];                                          \
        int64_t i = 0;                                                                  \
        int odd[2 * TN_STRIP_LANES] = {0}, any = n < 2 * TN_STRIP_LANES;                \
        for (int l = 0; l < 2 * TN_STRIP_LANES; l++) {                                  \
            v[l] = acc[l % TN_STRIP_LANES];                                             \
            any |= v[l] != v[l];                                                        \
        }                                                                               \
        for (; i + 2 * TN_STRIP_LANES <= n; i += 2 * TN_STRIP_LANES)                    \
            for (int l = 0; l < 2 * TN_STRIP_LANES; l++) {                              \
                T b = x[i + l];                                                         \
                odd[l] |= b != b ? -1 : 0;                                              \
                v[l] = v[l] compare b ? v[l] : b;                                       \
            }                                                                           \
        for (int l = 0; l < 2 * TN_STRIP_LANES; l++)                                    \
            any |= odd[l] | (v[l] == 0);                                                \
        if (any) {                                                                      \
            fold_exact_##name(n, px, phase, lanes);                                     \
            return;                                                                     \
        }                                                                               \
        for (int l = 0; l < TN_STRIP_LANES; l++)                                        \
            acc[l] = v[l] compare v[l + TN_STRIP_LANES] ? v[l] : v[l + TN_STRIP_LANES]; \
        fold_exact_##name(n - i, x + i, 0, lanes);                                      \
    }
FOLD_EXTREME(max_f32, float, >, greatest_f32)
FOLD_EXTREME(min_f32, float, <, least_f32)
FOLD_EXTREME(max_f64, double, >, greatest_f64)
FOLD_EXTREME(min_f64, double, <, least_f64)
/* The lanes, in pairs, into the first. */
#define FOLD_END(name, T, expr)                                  \
    static void end_##name(void *lanes) {                        \
        T *v = lanes;                                            \
        for (int half = TN_STRIP_LANES / 2; half > 0; half /= 2) \
            for (int l = 0; l < half; l++) {                     \
                T a = v[l], b = v[l + half];                     \
                v[l] = expr;                                     \
            }                                                    \
    }
FOLD_END(add_f64, double, a + b)
FOLD_END(max_f32, float, greatest_f32(a, b))
FOLD_END(min_f32, float, least_f32(a, b))
#define FOLD_INTEGERS(type, T, U)         \
    FOLD(add_##type, T, T, (U)a + (U)b)   \
    FOLD(mul_##type, T, T, (U)a *(U)b)    \
    FOLD(max_##type, T, T, a > b ? a : b) \
    FOLD(min_##type, T, T, a < b ? a : b) \
    FOLD(and_##type, T, T, (U)a &(U)b)    \
    FOLD(or_##type, T, T, (U)a | (U)b)
FOLD_INTEGERS(i32, int32_t, uint32_t)
FOLD_INTEGERS(i64, int64_t, uint64_t)
FOLD(max_u64, uint64_t, uint64_t, a > b ? a : b)
FOLD(min_u64, uint64_t, uint64_t, a < b ? a : b)
FOLD(and_b8, uint8_t, uint8_t, (a != 0) & (b != 0))
FOLD(or_b8, uint8_t, uint8_t, (a | b) != 0)
BINARY(add_wide, double, float, double, x + (double)y)
BINARY(mul_wide, double, float, double, x *(double)y)

/* --- the table -------------------------------------------------------------------------------------------------------------------------- */

#define FLOAT_OPS(name) [TN_STRIP_F32] = name##_f32, [TN_STRIP_F64] = name##_f64
#define SIGNED_OPS(name) [TN_STRIP_I32] = name##_i32, [TN_STRIP_I64] = name##_i64
/* Operations that do the same with and without a sign. */
#define INTEGER_OPS(name) SIGNED_OPS(name), [TN_STRIP_U64] = name##_i64
#define ORDERED_OPS(name) SIGNED_OPS(name), [TN_STRIP_U64] = name##_u64
#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
const tn_strip_level PASTE(tn_strip_, TN_ISA) = {
    .op = {[TN_SCALAR_NEG] = {FLOAT_OPS(neg), INTEGER_OPS(neg)},
           [TN_SCALAR_ABS] = {FLOAT_OPS(abs), SIGNED_OPS(abs), [TN_STRIP_U64] = copy_64},
           [TN_SCALAR_SIGN] = {FLOAT_OPS(sign), SIGNED_OPS(sign)},
           [TN_SCALAR_FLOOR] = {FLOAT_OPS(floor)},
           [TN_SCALAR_CEIL] = {FLOAT_OPS(ceil)},
           [TN_SCALAR_ROUND] = {FLOAT_OPS(round)},
           [TN_SCALAR_TRUNC] = {FLOAT_OPS(trunc)},
           [TN_SCALAR_SQRT] = {FLOAT_OPS(sqrt)},
           [TN_SCALAR_RECIPROCAL] = {FLOAT_OPS(reciprocal)},
           [TN_SCALAR_RSQRT] = {[TN_STRIP_F32] = rsqrt_f32},
           [TN_SCALAR_EXP] = {[TN_STRIP_F32] = exp_f32},
           [TN_SCALAR_EXPM1] = {[TN_STRIP_F32] = expm1_f32},
           [TN_SCALAR_LOG] = {[TN_STRIP_F32] = log_f32},
           [TN_SCALAR_LOG1P] = {[TN_STRIP_F32] = log1p_f32},
           [TN_SCALAR_SIN] = {[TN_STRIP_F32] = sin_f32},
           [TN_SCALAR_COS] = {[TN_STRIP_F32] = cos_f32},
           [TN_SCALAR_TANH] = {[TN_STRIP_F32] = tanh_f32},
           [TN_SCALAR_ERF] = {[TN_STRIP_F32] = erf_f32},
           [TN_SCALAR_SIGMOID] = {[TN_STRIP_F32] = sigmoid_f32},
           [TN_SCALAR_POW] = {[TN_STRIP_F32] = pow_f32},
           [TN_SCALAR_NOT] = {[TN_STRIP_B8] = not_b8},
           [TN_SCALAR_BIT_NOT] = {INTEGER_OPS(bit_not)},
           [TN_SCALAR_IS_NAN] = {FLOAT_OPS(is_nan)},
           [TN_SCALAR_IS_INF] = {FLOAT_OPS(is_inf)},
           [TN_SCALAR_IS_FINITE] = {FLOAT_OPS(is_finite)},
           [TN_SCALAR_ADD] = {FLOAT_OPS(add), INTEGER_OPS(add)},
           [TN_SCALAR_SUB] = {FLOAT_OPS(sub), INTEGER_OPS(sub)},
           [TN_SCALAR_MUL] = {FLOAT_OPS(mul), INTEGER_OPS(mul)},
           [TN_SCALAR_DIV] = {FLOAT_OPS(div)},
           [TN_SCALAR_MIN] = {FLOAT_OPS(min), ORDERED_OPS(min)},
           [TN_SCALAR_MAX] = {FLOAT_OPS(max), ORDERED_OPS(max)},
           [TN_SCALAR_AND] = {INTEGER_OPS(and), [TN_STRIP_B8] = and_b8},
           [TN_SCALAR_OR] = {INTEGER_OPS(or), [TN_STRIP_B8] = or_b8},
           [TN_SCALAR_XOR] = {INTEGER_OPS(xor), [TN_STRIP_B8] = xor_b8},
           [TN_SCALAR_SHL] = {INTEGER_OPS(shl)},
           [TN_SCALAR_SHR] = {SIGNED_OPS(shr)},
           [TN_SCALAR_EQUAL] = {FLOAT_OPS(equal), INTEGER_OPS(equal), [TN_STRIP_B8] = equal_b8},
           [TN_SCALAR_NOT_EQUAL] = {FLOAT_OPS(not_equal), INTEGER_OPS(not_equal), [TN_STRIP_B8] = xor_b8},
           [TN_SCALAR_LESS] = {FLOAT_OPS(less), ORDERED_OPS(less)},
           [TN_SCALAR_LESS_EQUAL] = {FLOAT_OPS(less_equal), ORDERED_OPS(less_equal)},
           [TN_SCALAR_GREATER] = {FLOAT_OPS(greater), ORDERED_OPS(greater)},
           [TN_SCALAR_GREATER_EQUAL] = {FLOAT_OPS(greater_equal), ORDERED_OPS(greater_equal)},
           [TN_SCALAR_SELECT] = {FLOAT_OPS(select), INTEGER_OPS(select), [TN_STRIP_B8] = select_b8}},
    .pair = {mul_mul_f32, mul_add_f32},
    .scaled = {[TN_SCALAR_ERF] = scaled_erf_f32, [TN_SCALAR_TANH] = scaled_tanh_f32},
    .convert = {[TN_STRIP_F32] = {[TN_STRIP_F32] = copy_32, f64_of_f32, i32_of_f32, i64_of_f32, i64_of_f32, b8_of_f32},
                [TN_STRIP_F64] = {[TN_STRIP_F32] = f32_of_f64, copy_64, i32_of_f64, i64_of_f64, i64_of_f64, b8_of_f64},
                [TN_STRIP_I32] = {[TN_STRIP_F32] = f32_of_i32, f64_of_i32, copy_32, i64_of_i32, i64_of_i32, b8_of_i32},
                [TN_STRIP_I64] = {[TN_STRIP_F32] = f32_of_i64, f64_of_i64, i32_of_i64, copy_64, copy_64, b8_of_i64},
                [TN_STRIP_U64] = {[TN_STRIP_F32] = f32_of_u64, f64_of_u64, i32_of_i64, copy_64, copy_64, b8_of_i64},
                [TN_STRIP_B8] = {[TN_STRIP_F32] = f32_of_b8, f64_of_b8, i32_of_b8, i64_of_b8, i64_of_b8, copy_8}},
    .round = {[TN_F16] = round_f16,
              [TN_BF16] = round_bf16,
              [TN_I8] = round_i8,
              [TN_U8] = round_u8,
              [TN_I16] = round_i16,
              [TN_U16] = round_u16,
              [TN_U32] = round_u32},
    .load = {[TN_F32] = load_32,
             [TN_F64] = load_64,
             [TN_F16] = load_f16,
             [TN_BF16] = load_bf16,
             [TN_I8] = load_i8,
             [TN_U8] = load_u8,
             [TN_I16] = load_i16,
             [TN_U16] = load_u16,
             [TN_I32] = load_32,
             [TN_U32] = load_u32,
             [TN_I64] = load_64,
             [TN_U64] = load_64,
             [TN_BOOL] = load_8},
    .store = {[TN_F32] = store_32,
              [TN_F64] = store_64,
              [TN_F16] = store_f16,
              [TN_BF16] = store_bf16,
              [TN_I8] = store_i8,
              [TN_U8] = store_i8,
              [TN_I16] = store_i16,
              [TN_U16] = store_i16,
              [TN_I32] = store_32,
              [TN_U32] = store_u32,
              [TN_I64] = store_64,
              [TN_U64] = store_64,
              [TN_BOOL] = store_8},
#define FOLD_FLOATS(name) [TN_STRIP_F32] = fold_##name##_f32, [TN_STRIP_F64] = fold_##name##_f64
#define FOLD_SIGNED(name) [TN_STRIP_I32] = fold_##name##_i32, [TN_STRIP_I64] = fold_##name##_i64
    .fold = {[TN_SCALAR_ADD] = {FOLD_FLOATS(add), FOLD_SIGNED(add), [TN_STRIP_U64] = fold_add_i64},
             [TN_SCALAR_MUL] = {FOLD_FLOATS(mul), FOLD_SIGNED(mul), [TN_STRIP_U64] = fold_mul_i64},
             [TN_SCALAR_MAX] = {FOLD_FLOATS(max), FOLD_SIGNED(max), [TN_STRIP_U64] = fold_max_u64},
             [TN_SCALAR_MIN] = {FOLD_FLOATS(min), FOLD_SIGNED(min), [TN_STRIP_U64] = fold_min_u64},
             [TN_SCALAR_AND] = {FOLD_SIGNED(and), [TN_STRIP_U64] = fold_and_i64, [TN_STRIP_B8] = fold_and_b8},
             [TN_SCALAR_OR] = {FOLD_SIGNED(or), [TN_STRIP_U64] = fold_or_i64, [TN_STRIP_B8] = fold_or_b8}},
    .fold_end = {[TN_SCALAR_ADD] = {[TN_STRIP_F64] = end_add_f64},
                 [TN_SCALAR_MAX] = {[TN_STRIP_F32] = end_max_f32},
                 [TN_SCALAR_MIN] = {[TN_STRIP_F32] = end_min_f32}},
    .fold_wide = fold_wide_f32,
    .add_wide = add_wide,
    .mul_wide = mul_wide};

#endif
