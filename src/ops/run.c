/* Loading runs of elements of any dtype into a domain's type, and storing them converted. Never assumes alignment. */
#include <math.h>

#include "ops/scalar.h"

/* o[i] = expr(e), where e is element i read as T, into items of type D. */
#define LOAD(T, D, expr)                                                     \
    {                                                                        \
        D *o = to;                                                           \
        const char *at = (const char *)from + first * (int64_t)sizeof(T);    \
        for (int64_t i = 0; i < n; i++, at += stride * (int64_t)sizeof(T)) { \
            T e;                                                             \
            memcpy(&e, at, sizeof e);                                        \
            o[i] = (D)(expr);                                                \
        }                                                                    \
        return;                                                              \
    }
/* The size of elements that items of the domain are as they are; 0: they are converted. */
static size_t same_bytes(tn_dtype dtype, tn_domain domain) {
    return dtype == TN_F32 && domain == TN_DOMAIN_F32 ? 4
           : (dtype == TN_F64 && domain == TN_DOMAIN_F64) || (dtype == TN_I64 && domain == TN_DOMAIN_I64) ||
                   (dtype == TN_U64 && domain == TN_DOMAIN_U64)
               ? 8
               : 0;
}

#define LOAD_FLOAT(T, expr)      \
    if (domain == TN_DOMAIN_F32) \
        LOAD(T, float, expr)     \
    else                         \
        LOAD(T, double, expr)

void tn_run_load(tn_dtype dtype, tn_domain domain, const void *from, int64_t first, int64_t stride, int64_t n,
                 void *to) {
    size_t same = same_bytes(dtype, domain);
    if (same && stride == 1 && n > 0) {
        memcpy(to, (const char *)from + first * (int64_t)same, (size_t)n * same);
        return;
    }
    if (same == sizeof(float) && stride == 0 && n > 0) { /* one that repeats */
        float e, *o = to;
        memcpy(&e, (const float *)from + first, sizeof e);
        for (int64_t i = 0; i < n; i++)
            o[i] = e;
        return;
    }
    if (dtype == TN_F32 && domain == TN_DOMAIN_F64 && stride == 1) { /* a loop that becomes vectors */
        const char *at = (const char *)from + first * (int64_t)sizeof(float);
        double *o = to;
        for (int64_t i = 0; i < n; i++) {
            float e;
            memcpy(&e, at + i * (int64_t)sizeof e, sizeof e);
            o[i] = (double)e;
        }
        return;
    }
    switch (dtype) {
    case TN_F32: LOAD_FLOAT(float, e)
    case TN_F16: LOAD_FLOAT(uint16_t, tn_f16_to_f32(e))
    case TN_BF16: LOAD_FLOAT(uint16_t, tn_bf16_to_f32(e))
    case TN_F64: LOAD(double, double, e)
    case TN_I8: LOAD(int8_t, int64_t, e)
    case TN_I16: LOAD(int16_t, int64_t, e)
    case TN_I32: LOAD(int32_t, int64_t, e)
    case TN_I64: LOAD(int64_t, int64_t, e)
    case TN_U8: LOAD(uint8_t, uint64_t, e)
    case TN_U16: LOAD(uint16_t, uint64_t, e)
    case TN_U32: LOAD(uint32_t, uint64_t, e)
    case TN_U64: LOAD(uint64_t, uint64_t, e)
    case TN_BOOL: LOAD(uint8_t, uint64_t, e != 0)
    default: break;
    }
    /* 8-bit floats and packed elements */
    for (int64_t i = 0; i < n; i++) {
        int64_t index = first + i * stride;
        switch (domain) {
        case TN_DOMAIN_F32: ((float *)to)[i] = (float)tn_load_f64(dtype, from, index); break;
        case TN_DOMAIN_F64: ((double *)to)[i] = tn_load_f64(dtype, from, index); break;
        default: ((int64_t *)to)[i] = tn_load_i64(dtype, from, index); break;
        }
    }
}

/* Element i of the destination = expr(v), where v is item i of type S. */
#define STORE(S, T, expr)                                                    \
    {                                                                        \
        const S *items = from;                                               \
        char *at = (char *)to + first * (int64_t)sizeof(T);                  \
        for (int64_t i = 0; i < n; i++, at += stride * (int64_t)sizeof(T)) { \
            S v = items[i];                                                  \
            T e = (T)(expr);                                                 \
            memcpy(at, &e, sizeof e);                                        \
        }                                                                    \
        return;                                                              \
    }

/* The bits of a float as an integer of `dtype`, to be cut to its width. */
static uint64_t whole_bits(double value, tn_dtype dtype) {
    if (isnan(value))
        return 0;
    if (value >= -0x1p63 && value < 0x1p63)
        return (uint64_t)(int64_t)value;
    if (dtype == TN_U64 && value > 0 && value < 0x1p64)
        return (uint64_t)value;
    return value > 0 ? tn_dtype_max_u64(dtype) : (uint64_t)tn_dtype_min_i64(dtype);
}

#define STORE_FLOATS(S, round_f16, round_bf16)                                              \
    switch (dtype) {                                                                        \
    case TN_F32: STORE(S, float, v)                                                         \
    case TN_F64: STORE(S, double, v)                                                        \
    case TN_F16: STORE(S, uint16_t, round_f16(v))                                           \
    case TN_BF16: STORE(S, uint16_t, round_bf16(v))                                         \
    case TN_BOOL: STORE(S, uint8_t, v != 0)                                                 \
    case TN_I8:                                                                             \
    case TN_U8: STORE(S, uint8_t, whole_bits((double)v, dtype))                             \
    case TN_I16:                                                                            \
    case TN_U16: STORE(S, uint16_t, whole_bits((double)v, dtype))                           \
    case TN_I32:                                                                            \
    case TN_U32: STORE(S, uint32_t, whole_bits((double)v, dtype))                           \
    case TN_I64:                                                                            \
    case TN_U64: STORE(S, uint64_t, whole_bits((double)v, dtype))                           \
    default: break;                                                                         \
    }                                                                                       \
    for (int64_t i = 0; i < n; i++) {                                                       \
        double value = (double)((const S *)from)[i];                                        \
        if (tn_dtype_is_int(dtype))                                                         \
            tn_store_i64(dtype, to, first + i * stride, (int64_t)whole_bits(value, dtype)); \
        else                                                                                \
            tn_store_f64(dtype, to, first + i * stride, value);                             \
    }

static void store_f32(tn_dtype dtype, const void *from, int64_t n, void *to, int64_t first, int64_t stride) {
    STORE_FLOATS(float, tn_f32_to_f16, tn_f32_to_bf16)
}

static void store_f64(tn_dtype dtype, const void *from, int64_t n, void *to, int64_t first, int64_t stride) {
    STORE_FLOATS(double, tn_f64_to_f16, tn_f64_to_bf16)
}

double tn_odd_f64(uint64_t magnitude) {
    if (magnitude >> 53 == 0)
        return (double)magnitude;
    return (double)(magnitude >> 11 | ((magnitude & 0x7ff) != 0)) * 0x1p11;
}

#define STORE_INTEGERS(S)                   \
    switch (dtype) {                        \
    case TN_F32: STORE(S, float, v)         \
    case TN_F64: STORE(S, double, v)        \
    case TN_BOOL: STORE(S, uint8_t, v != 0) \
    case TN_I8:                             \
    case TN_U8: STORE(S, uint8_t, v)        \
    case TN_I16:                            \
    case TN_U16: STORE(S, uint16_t, v)      \
    case TN_I32:                            \
    case TN_U32: STORE(S, uint32_t, v)      \
    case TN_I64:                            \
    case TN_U64: STORE(S, uint64_t, v)      \
    default: break;                         \
    }

static void store_i64(tn_dtype dtype, const void *from, int64_t n, void *to, int64_t first, int64_t stride) {
    STORE_INTEGERS(int64_t)
    for (int64_t i = 0; i < n; i++)
        tn_store_i64(dtype, to, first + i * stride, ((const int64_t *)from)[i]);
}

static void store_u64(tn_dtype dtype, const void *from, int64_t n, void *to, int64_t first, int64_t stride) {
    STORE_INTEGERS(uint64_t)
    for (int64_t i = 0; i < n; i++) {
        uint64_t value = ((const uint64_t *)from)[i];
        if (value > INT64_MAX && tn_dtype_is_float(dtype))
            tn_store_f64(dtype, to, first + i * stride, tn_odd_f64(value));
        else
            tn_store_i64(dtype, to, first + i * stride, (int64_t)value);
    }
}

void tn_run_store(tn_dtype dtype, tn_domain domain, const void *from, int64_t n, void *to, int64_t first,
                  int64_t stride) {
    size_t same = same_bytes(dtype, domain);
    if (same && stride == 1 && n > 0) {
        memcpy((char *)to + first * (int64_t)same, from, (size_t)n * same);
        return;
    }
    switch (domain) {
    case TN_DOMAIN_F32: store_f32(dtype, from, n, to, first, stride); break;
    case TN_DOMAIN_F64: store_f64(dtype, from, n, to, first, stride); break;
    case TN_DOMAIN_I64: store_i64(dtype, from, n, to, first, stride); break;
    case TN_DOMAIN_U64: store_u64(dtype, from, n, to, first, stride); break;
    case TN_DOMAIN_COUNT: break;
    }
}
