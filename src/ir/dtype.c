/* Element types: names, sizes, traits. One row per dtype. */
#include <string.h>

#include "ir/tensor.h"

enum { CLASS_NONE, CLASS_BOOL, CLASS_UNSIGNED, CLASS_SIGNED, CLASS_FLOAT, CLASS_COMPLEX, CLASS_STRING };

typedef struct dtype_row {
    const char *name, *onnx_name;
    uint16_t bits;
    uint8_t class;
} dtype_row;

static const dtype_row rows[TN_DTYPE_COUNT] = {
    [TN_DTYPE_NONE] = {"none", "undefined", 0, CLASS_NONE},
    [TN_F32] = {"f32", "float", 32, CLASS_FLOAT},
    [TN_U8] = {"u8", "uint8", 8, CLASS_UNSIGNED},
    [TN_I8] = {"i8", "int8", 8, CLASS_SIGNED},
    [TN_U16] = {"u16", "uint16", 16, CLASS_UNSIGNED},
    [TN_I16] = {"i16", "int16", 16, CLASS_SIGNED},
    [TN_I32] = {"i32", "int32", 32, CLASS_SIGNED},
    [TN_I64] = {"i64", "int64", 64, CLASS_SIGNED},
    [TN_STRING] = {"string", "string", 8 * sizeof(tn_string), CLASS_STRING},
    [TN_BOOL] = {"bool", "bool", 8, CLASS_BOOL},
    [TN_F16] = {"f16", "float16", 16, CLASS_FLOAT},
    [TN_F64] = {"f64", "double", 64, CLASS_FLOAT},
    [TN_U32] = {"u32", "uint32", 32, CLASS_UNSIGNED},
    [TN_U64] = {"u64", "uint64", 64, CLASS_UNSIGNED},
    [TN_C64] = {"c64", "complex64", 64, CLASS_COMPLEX},
    [TN_C128] = {"c128", "complex128", 128, CLASS_COMPLEX},
    [TN_BF16] = {"bf16", "bfloat16", 16, CLASS_FLOAT},
    [TN_F8E4M3FN] = {"f8e4m3fn", "float8e4m3fn", 8, CLASS_FLOAT},
    [TN_F8E4M3FNUZ] = {"f8e4m3fnuz", "float8e4m3fnuz", 8, CLASS_FLOAT},
    [TN_F8E5M2] = {"f8e5m2", "float8e5m2", 8, CLASS_FLOAT},
    [TN_F8E5M2FNUZ] = {"f8e5m2fnuz", "float8e5m2fnuz", 8, CLASS_FLOAT},
    [TN_U4] = {"u4", "uint4", 4, CLASS_UNSIGNED},
    [TN_I4] = {"i4", "int4", 4, CLASS_SIGNED},
    [TN_F4E2M1] = {"f4e2m1", "float4e2m1", 4, CLASS_FLOAT},
    [TN_F8E8M0] = {"f8e8m0", "float8e8m0", 8, CLASS_FLOAT},
    [TN_U2] = {"u2", "uint2", 2, CLASS_UNSIGNED},
    [TN_I2] = {"i2", "int2", 2, CLASS_SIGNED},
};

static const dtype_row *row_of(tn_dtype dtype) {
    return (unsigned)dtype < TN_DTYPE_COUNT ? &rows[dtype] : &rows[TN_DTYPE_NONE];
}

const char *tn_dtype_name(tn_dtype dtype) {
    return row_of(dtype)->name;
}

const char *tn_dtype_onnx_name(tn_dtype dtype) {
    return row_of(dtype)->onnx_name;
}

tn_dtype tn_dtype_from_name(const char *name) {
    if (name == NULL)
        return TN_DTYPE_NONE;
    for (int i = 1; i < TN_DTYPE_COUNT; i++)
        if (strcmp(name, rows[i].name) == 0 || strcmp(name, rows[i].onnx_name) == 0)
            return (tn_dtype)i;
    return TN_DTYPE_NONE;
}

int tn_dtype_bits(tn_dtype dtype) {
    return row_of(dtype)->bits;
}

bool tn_dtype_is_float(tn_dtype dtype) {
    return row_of(dtype)->class == CLASS_FLOAT;
}

bool tn_dtype_is_int(tn_dtype dtype) {
    uint8_t class = row_of(dtype)->class;
    return class == CLASS_SIGNED || class == CLASS_UNSIGNED;
}

bool tn_dtype_is_signed(tn_dtype dtype) {
    return row_of(dtype)->class == CLASS_SIGNED;
}

bool tn_dtype_is_complex(tn_dtype dtype) {
    return row_of(dtype)->class == CLASS_COMPLEX;
}

bool tn_dtype_is_subbyte(tn_dtype dtype) {
    uint16_t bits = row_of(dtype)->bits;
    return bits > 0 && bits < 8;
}

int64_t tn_dtype_min_i64(tn_dtype dtype) {
    const dtype_row *row = row_of(dtype);
    return row->class == CLASS_SIGNED ? INT64_MIN >> (64 - row->bits) : 0;
}

uint64_t tn_dtype_max_u64(tn_dtype dtype) {
    const dtype_row *row = row_of(dtype);
    switch (row->class) {
    case CLASS_BOOL: return 1;
    case CLASS_SIGNED: return UINT64_MAX >> (64 - row->bits + 1);
    case CLASS_UNSIGNED: return UINT64_MAX >> (64 - row->bits);
    default: return 0;
    }
}

tn_status tn_dims_count(int rank, const int64_t *dims, int64_t *count) {
    int64_t product = 1;
    bool overflow = false, zero = false;
    for (int i = 0; i < rank; i++) {
        if (dims[i] < 0)
            return tn_fail(TN_ERR_LIMIT, "dimension %d is negative (%lld)", i, (long long)dims[i]);
        zero = zero || dims[i] == 0;
        overflow = overflow || __builtin_mul_overflow(product, dims[i], &product);
    }
    if (overflow && !zero)
        return tn_fail(TN_ERR_LIMIT, "the number of elements is larger than 64 bits can hold");
    *count = zero ? 0 : product;
    return TN_OK;
}

tn_status tn_dtype_bytes(tn_dtype dtype, int64_t count, size_t *bytes) {
    uint64_t bits = (uint64_t)tn_dtype_bits(dtype), total;
    if (bits == 0)
        return tn_fail(TN_ERR_USAGE, "elements of no known type have no size");
    if (count < 0)
        return tn_fail(TN_ERR_LIMIT, "a negative number of elements (%lld)", (long long)count);
    if (bits >= 8) {
        if (__builtin_mul_overflow((uint64_t)count, bits / 8, &total) || total > PTRDIFF_MAX)
            return tn_fail(TN_ERR_LIMIT, "%lld elements of %s are more bytes than can be addressed", (long long)count,
                           tn_dtype_name(dtype));
    } else {
        uint64_t per_byte = 8 / bits;
        total = (uint64_t)count / per_byte + ((uint64_t)count % per_byte != 0);
    }
    *bytes = (size_t)total;
    return TN_OK;
}

tn_status tn_tensor_extent(tn_dtype dtype, int rank, const int64_t *dims, const int64_t *strides, size_t *bytes) {
    int64_t count;
    uint64_t span = 0, total;
    if (bytes == NULL || (rank > 0 && dims == NULL))
        return tn_fail(TN_ERR_USAGE, "tn_tensor_extent: dims or bytes is NULL");
    if (rank < 0 || rank > TN_MAX_RANK)
        return tn_fail(TN_ERR_LIMIT, "rank %d is not between 0 and %d", rank, TN_MAX_RANK);
    if (strides == NULL) {
        TN_TRY(tn_dims_count(rank, dims, &count));
        return tn_dtype_bytes(dtype, count, bytes);
    }
    for (int i = 0; i < rank; i++)
        if (dims[i] < 0)
            return tn_fail(TN_ERR_LIMIT, "dimension %d is negative (%lld)", i, (long long)dims[i]);
    for (int i = 0; i < rank; i++)
        if (dims[i] == 0)
            return tn_dtype_bytes(dtype, 0, bytes);
    for (int i = 0; i < rank; i++) {
        uint64_t step = strides[i] < 0 ? 0 - (uint64_t)strides[i] : (uint64_t)strides[i], part;
        if (__builtin_mul_overflow((uint64_t)dims[i] - 1, step, &part) || __builtin_add_overflow(span, part, &span))
            return tn_fail(TN_ERR_LIMIT, "the strides reach further than 64 bits can hold");
    }
    if (__builtin_add_overflow(span, 1, &total) || total > INT64_MAX)
        return tn_fail(TN_ERR_LIMIT, "the strides reach further than 64 bits can hold");
    return tn_dtype_bytes(dtype, (int64_t)total, bytes);
}
