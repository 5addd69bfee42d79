/* Element types and value kinds. */
#ifndef TENON_TYPES_H
#define TENON_TYPES_H

#include <tenon/status.h>

TN_BEGIN_DECLS

/* Element types. The numbers are those of the ONNX standard (TensorProto.DataType).
   Sub-byte types are packed, first element in the low bits, rows not padded. f16/bf16 are kept as uint16_t. */
typedef enum tn_dtype {
    TN_DTYPE_NONE = 0, /* unknown */
    TN_F32 = 1,
    TN_U8 = 2,
    TN_I8 = 3,
    TN_U16 = 4,
    TN_I16 = 5,
    TN_I32 = 6,
    TN_I64 = 7,
    TN_STRING = 8,
    TN_BOOL = 9, /* one byte, 0 or 1 */
    TN_F16 = 10,
    TN_F64 = 11,
    TN_U32 = 12,
    TN_U64 = 13,
    TN_C64 = 14,  /* complex of two f32 */
    TN_C128 = 15, /* complex of two f64 */
    TN_BF16 = 16,
    TN_F8E4M3FN = 17,
    TN_F8E4M3FNUZ = 18,
    TN_F8E5M2 = 19,
    TN_F8E5M2FNUZ = 20,
    TN_U4 = 21,
    TN_I4 = 22,
    TN_F4E2M1 = 23,
    TN_F8E8M0 = 24,
    TN_U2 = 25,
    TN_I2 = 26,
    TN_DTYPE_COUNT = 27
} tn_dtype;

/* What a value is. */
typedef enum tn_kind { TN_KIND_TENSOR = 0, TN_KIND_SEQUENCE = 1, TN_KIND_OPTIONAL = 2, TN_KIND_MAP = 3 } tn_kind;

/* Tenon's name ("f32", "bf16", "i4", "f8e4m3fn"; "none") and the standard's name ("float", "bfloat16", "int4"). Never NULL. */
TN_API const char *tn_dtype_name(tn_dtype dtype);
TN_API const char *tn_dtype_onnx_name(tn_dtype dtype);
/* By either name; TN_DTYPE_NONE when unknown. */
TN_API tn_dtype tn_dtype_from_name(const char *name);
/* Bits of one element as stored (strings: those of the library's string record; none: 0). */
TN_API int tn_dtype_bits(tn_dtype dtype);

TN_END_DECLS
#endif
