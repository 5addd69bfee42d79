/* Strips: runs of elements in registers of one of six types, and one vectorised function for each operation on them. The functions of
   an instruction-set level stand in one table (isa/strip.c); what no table has is computed by ops/scalar.h, in 64 bits. */
#ifndef TN_KERNELS_STRIP_H
#define TN_KERNELS_STRIP_H

#include "ops/scalar.h"

/* What elements of a dtype are computed in: f16, bf16, f32 | f64 | i8, i16, i32, u8, u16 | u32, i64 | u64 | bool (0 or not). Results of
   narrower dtypes are rounded or wrapped after each operation. */
typedef enum tn_strip_type {
    TN_STRIP_F32,
    TN_STRIP_F64,
    TN_STRIP_I32,
    TN_STRIP_I64,
    TN_STRIP_U64,
    TN_STRIP_B8,
    TN_STRIP_TYPES
} tn_strip_type;

/* to[i] = op(a[i], b[i], c[i]), i < n; `to` may be one of the operands. select: a is the condition, in B8. Casts of floats to integers:
   c points to the dtype (uint8_t). */
typedef void tn_strip_fn(int64_t n, const void *a, const void *b, const void *c, void *to);
/* Elements from[i * stride] of a dtype into a register, and back. */
typedef void tn_strip_load_fn(int64_t n, const void *from, int64_t stride, void *to);
typedef void tn_strip_store_fn(int64_t n, const void *from, void *to, int64_t stride);
/* Combines x[i], element phase + i of what is reduced, into its lane, in order. Lanes are TN_STRIP_LANES of the accumulator's type; those of
   sums of F32 are tn_strip_sums. */
#define TN_STRIP_LANES 16
/* Element k goes to lane k % 16; of each lane as many as TN_STRIP_SUMMED that follow each other (k / 16 / TN_STRIP_SUMMED the same) are summed
   in f32, and these sums in f64: conversions cost more than sums. A sum that is not finite is formed again, all in f64: parts may overflow
   where it does not. */
#define TN_STRIP_SUMMED 4
typedef struct tn_strip_sums {
    _Alignas(64) double sum[TN_STRIP_LANES];
    float part[TN_STRIP_LANES]; /* of elements since the last multiple of TN_STRIP_SUMMED; else 0 */
} tn_strip_sums;
typedef void tn_strip_fold_fn(int64_t n, const void *x, int64_t phase, void *lanes);

enum { TN_STRIP_MUL, TN_STRIP_ADD };
typedef struct tn_strip_level {
    tn_strip_fn *op[TN_SCALAR_COUNT][TN_STRIP_TYPES]; /* by the type of the operands; IS_INF: both infinities */
    /* Two and three operations of F32 in one pass, each rounded as alone: a * b op c, by TN_STRIP_MUL and TN_STRIP_ADD; f(a * b) + c. */
    tn_strip_fn *pair[2], *scaled[TN_SCALAR_COUNT];
    tn_strip_fn *convert[TN_STRIP_TYPES][TN_STRIP_TYPES];
    tn_strip_fn *round[TN_DTYPE_COUNT]; /* to a dtype narrower than its type; NULL: none is */
    tn_strip_load_fn *load[TN_DTYPE_COUNT];
    tn_strip_store_fn *store[TN_DTYPE_COUNT];
    tn_strip_fold_fn *fold[TN_SCALAR_COUNT][TN_STRIP_TYPES]; /* sums and products of F32: lanes of F64 */
    void (*fold_end[TN_SCALAR_COUNT][TN_STRIP_TYPES])(
        void *lanes);                 /* combines lanes in pairs, into the first; or NULL */
    tn_strip_fold_fn *fold_wide;      /* sums of F32 in lanes of F64 alone */
    tn_strip_fn *add_wide, *mul_wide; /* a in F64, b in F32, result in F64 */
} tn_strip_level;

extern const tn_strip_level tn_strip_generic, tn_strip_avx2, tn_strip_avx512, tn_strip_neon;

static inline tn_strip_type tn_strip_type_of(tn_dtype dtype) {
    switch (dtype) {
    case TN_F64: return TN_STRIP_F64;
    case TN_I8:
    case TN_I16:
    case TN_I32:
    case TN_U8:
    case TN_U16: return TN_STRIP_I32;
    case TN_U32:
    case TN_I64: return TN_STRIP_I64;
    case TN_U64: return TN_STRIP_U64;
    case TN_BOOL: return TN_STRIP_B8;
    default: return TN_STRIP_F32;
    }
}
static inline int64_t tn_strip_bytes(tn_strip_type type) {
    return type == TN_STRIP_B8 ? 1 : type == TN_STRIP_F32 || type == TN_STRIP_I32 ? 4 : 8;
}
/* Whether elements in memory are what registers hold. */
static inline bool tn_strip_same(tn_dtype dtype) {
    return dtype == TN_F32 || dtype == TN_F64 || dtype == TN_I32 || dtype == TN_I64 || dtype == TN_U64 ||
           dtype == TN_BOOL;
}

#endif
