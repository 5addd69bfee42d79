/* Conversions of the narrow floats, and loads and stores of single elements of any dtype.

   Every narrow float is one row of `formats`; rounding is to nearest, ties to even, done on the exact binary64 value, so
   there is never a second rounding. What happens to NaN, infinities and values out of range is that of the ONNX standard. */
#include <math.h>
#include <string.h>

#include "ir/tensor.h"

static uint64_t bits_of_f64(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static uint32_t bits_of_f32(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float f32_of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The magnitude of a finite `value`, rounded to a format of `mantissa` bits whose smallest normal exponent is `least`, as
   the format's code (exponent field above the mantissa field). The code may pass the format's largest. */
static uint32_t encode_magnitude(double value, int mantissa, int least) {
    uint64_t bits = bits_of_f64(value) & 0x7fffffffffffffff;
    int exponent = (int)(bits >> 52);
    uint64_t significand = bits & 0xfffffffffffff;
    if (exponent == 0) /* far below the smallest value of any narrow format */
        return 0;
    significand |= (uint64_t)1 << 52;
    exponent -= 1023;
    int floor = exponent > least ? exponent : least; /* exponent of the binade whose spacing applies */
    int drop = 52 - mantissa + (floor - exponent);
    if (drop > 54)
        return 0;
    uint64_t kept = significand >> drop, rest = significand & (((uint64_t)1 << drop) - 1);
    uint64_t half = (uint64_t)1 << (drop - 1);
    if (rest > half || (rest == half && (kept & 1)))
        kept++;
    /* A normal's leading bit counts one in the exponent field; a carry moves up by itself. */
    return ((uint32_t)(floor - least) << mantissa) + (uint32_t)kept;
}

float tn_f16_to_f32(uint16_t bits) {
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16, exponent = (bits >> 10) & 31, mantissa = bits & 0x3ff;
    if (exponent == 31)
        return f32_of_bits(sign | 0x7f800000 | mantissa << 13);
    if (exponent == 0) {
        float magnitude = (float)mantissa * 0x1p-24f;
        return sign ? -magnitude : magnitude;
    }
    return f32_of_bits(sign | (exponent + 112) << 23 | mantissa << 13);
}

uint16_t tn_f32_to_f16(float value) {
    uint32_t bits = bits_of_f32(value), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000)
        return (uint16_t)(sign | 0x7e00 | (magnitude >> 13 & 0x1ff));
    if (magnitude >= 0x477ff000) /* rounds past 65504 */
        return (uint16_t)(sign | 0x7c00);
    if (magnitude >= 0x38800000) {
        uint32_t code = (magnitude >> 13) - (112 << 10), rest = magnitude & 0x1fff;
        code += rest > 0x1000 || (rest == 0x1000 && (code & 1));
        return (uint16_t)(sign | code);
    }
    return (uint16_t)(sign | encode_magnitude((double)value, 10, -14));
}

uint16_t tn_f64_to_f16(double value) {
    uint32_t sign = signbit(value) ? 0x8000 : 0;
    if (isnan(value))
        return (uint16_t)(sign | 0x7e00);
    uint32_t code = isinf(value) ? 0x7c00 : encode_magnitude(value, 10, -14);
    return (uint16_t)(sign | (code < 0x7c00 ? code : 0x7c00));
}

float tn_bf16_to_f32(uint16_t bits) {
    return f32_of_bits((uint32_t)bits << 16);
}

uint16_t tn_f32_to_bf16(float value) {
    uint32_t bits = bits_of_f32(value);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

uint16_t tn_f64_to_bf16(double value) {
    uint32_t sign = signbit(value) ? 0x8000 : 0;
    if (isnan(value))
        return (uint16_t)(sign | 0x7fc0);
    uint32_t code = isinf(value) ? 0x7f80 : encode_magnitude(value, 7, -126);
    return (uint16_t)(sign | (code < 0x7f80 ? code : 0x7f80));
}

typedef struct narrow_format {
    uint8_t exponent, mantissa; /* bits of the fields */
    int8_t bias;
    uint8_t largest;  /* code of the largest finite magnitude */
    uint8_t nan;      /* code that NaN becomes */
    bool signed_nan;  /* NaN keeps its sign (and -0 exists) */
    uint8_t infinity; /* code, or 0: the format has none */
} narrow_format;

static const narrow_format *format_of(tn_dtype dtype) {
    static const narrow_format e4m3fn = {4, 3, 7, 0x7e, 0x7f, true, 0}, e4m3fnuz = {4, 3, 8, 0x7f, 0x80, false, 0},
                               e5m2 = {5, 2, 15, 0x7b, 0x7e, true, 0x7c}, e5m2fnuz = {5, 2, 16, 0x7f, 0x80, false, 0},
                               e2m1 = {2, 1, 1, 7, 8, false, 0}; /* NaN becomes -0, as in the standard's tests */
    switch (dtype) {
    case TN_F8E4M3FN: return &e4m3fn;
    case TN_F8E4M3FNUZ: return &e4m3fnuz;
    case TN_F8E5M2: return &e5m2;
    case TN_F8E5M2FNUZ: return &e5m2fnuz;
    case TN_F4E2M1: return &e2m1;
    default: return NULL;
    }
}

float tn_f8_to_f32(tn_dtype dtype, uint8_t bits) {
    if (dtype == TN_F8E8M0) /* a power of two, 2^(bits - 127) */
        return bits == 0xff ? NAN : bits == 0 ? 0x1p-127f : f32_of_bits((uint32_t)bits << 23);
    const narrow_format *f = format_of(dtype);
    if (f == NULL)
        return 0;
    int sign_at = f->exponent + f->mantissa;
    uint32_t magnitude = bits & ((1u << sign_at) - 1), sign = bits >> sign_at & 1;
    if (dtype != TN_F4E2M1) {
        if (f->signed_nan ? magnitude > f->largest && magnitude != f->infinity : bits == f->nan)
            return sign && f->signed_nan ? -NAN : NAN;
        if (f->infinity != 0 && magnitude == f->infinity)
            return sign ? -INFINITY : INFINITY;
    }
    uint32_t field = magnitude >> f->mantissa, fraction = magnitude & ((1u << f->mantissa) - 1);
    int exponent = field == 0 ? 1 - f->bias : (int)field - f->bias;
    uint32_t significand = field == 0 ? fraction : fraction | 1u << f->mantissa;
    float value = (float)significand * f32_of_bits((uint32_t)(exponent - f->mantissa + 127) << 23);
    return sign ? -value : value;
}

/* E8M0 has neither sign nor zero: the magnitude is rounded up to a power of two (the standard's default). What lies outside becomes
   the nearest extreme, without `saturate` NaN, as NaN does. */
static uint8_t encode_e8m0(double value, bool saturate) {
    if (isnan(value))
        return 0xff;
    uint64_t bits = bits_of_f64(value) & 0x7fffffffffffffff;
    int exponent = (int)(bits >> 52) - 1023 + ((bits & 0xfffffffffffff) != 0);
    if (fabs(value) < 0x1p-127)
        return saturate ? 0 : 0xff;
    if (exponent > 127)
        return saturate ? 0xfe : 0xff;
    return (uint8_t)(exponent + 127);
}

static uint8_t encode_f8(tn_dtype dtype, double value, bool saturate) {
    if (dtype == TN_F8E8M0)
        return encode_e8m0(value, saturate);
    const narrow_format *f = format_of(dtype);
    if (f == NULL)
        return 0;
    uint32_t sign = signbit(value) ? 1u << (f->exponent + f->mantissa) : 0, code;
    if (isnan(value))
        return (uint8_t)(f->signed_nan ? sign | f->nan : f->nan);
    code = isinf(value) ? UINT32_MAX : encode_magnitude(value, f->mantissa, 1 - f->bias);
    if (code > f->largest) {
        if (saturate || dtype == TN_F4E2M1)
            code = f->largest;
        else if (f->infinity != 0)
            code = f->infinity;
        else
            return (uint8_t)(f->signed_nan ? sign | f->nan : f->nan);
    }
    if (code == 0 && dtype != TN_F4E2M1 && !f->signed_nan) /* no -0: its code is NaN */
        sign = 0;
    return (uint8_t)(sign | code);
}

uint8_t tn_f32_to_f8(tn_dtype dtype, float value, bool saturate) {
    return encode_f8(dtype, (double)value, saturate);
}

/* Element `index` of a packed array of `bits`-wide elements (2 or 4), first element in the low bits. */
static uint8_t load_packed(const void *data, int64_t index, int bits) {
    unsigned shift = (unsigned)(index % (8 / bits)) * (unsigned)bits;
    return (uint8_t)(((const uint8_t *)data)[index / (8 / bits)] >> shift & ((1u << bits) - 1));
}

static void store_packed(void *data, int64_t index, int bits, uint32_t value) {
    unsigned shift = (unsigned)(index % (8 / bits)) * (unsigned)bits, mask = (1u << bits) - 1;
    uint8_t *byte = (uint8_t *)data + index / (8 / bits);
    *byte = (uint8_t)((*byte & ~(mask << shift)) | (value & mask) << shift);
}

static int64_t sign_extend(uint8_t value, int bits) {
    int64_t half = (int64_t)1 << (bits - 1);
    return ((int64_t)value ^ half) - half;
}

static int64_t truncate_i64(double value) {
    if (isnan(value))
        return 0;
    if (value >= 0x1p63)
        return INT64_MAX;
    return value <= -0x1p63 ? INT64_MIN : (int64_t)value;
}

static uint64_t truncate_u64(double value) {
    if (!(value > 0))
        return 0;
    return value >= 0x1p64 ? UINT64_MAX : (uint64_t)value;
}

/* To binary64 such that a later rounding to at most 51 bits is the right one ("round to odd"). */
static double odd_f64(int64_t value) {
    uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    if (magnitude >> 53 != 0 && (magnitude & 0x7ff) != 0)
        magnitude = (magnitude & ~(uint64_t)0x7ff) | 0x800;
    return value < 0 ? -(double)magnitude : (double)magnitude;
}

#define AT(T) ((const uint8_t *)data + index * (int64_t)sizeof(T))
#define LOAD(T)                                  \
    {                                            \
        T element;                               \
        memcpy(&element, AT(T), sizeof element); \
        return CAST(element);                    \
    }

double tn_load_f64(tn_dtype dtype, const void *data, int64_t index) {
#define CAST(x) (double)(x)
    switch (dtype) {
    case TN_F32: LOAD(float)
    case TN_C64: {
        float element;
        memcpy(&element, (const uint8_t *)data + index * 8, sizeof element);
        return (double)element;
    }
    case TN_F64: LOAD(double)
    case TN_C128: {
        double element;
        memcpy(&element, (const uint8_t *)data + index * 16, sizeof element);
        return element;
    }
    case TN_U8: LOAD(uint8_t)
    case TN_I8: LOAD(int8_t)
    case TN_U16: LOAD(uint16_t)
    case TN_I16: LOAD(int16_t)
    case TN_U32: LOAD(uint32_t)
    case TN_I32: LOAD(int32_t)
    case TN_U64: LOAD(uint64_t)
    case TN_I64: LOAD(int64_t)
    case TN_BOOL: return *AT(uint8_t) != 0;
    case TN_F16: {
        uint16_t element;
        memcpy(&element, AT(uint16_t), sizeof element);
        return (double)tn_f16_to_f32(element);
    }
    case TN_BF16: {
        uint16_t element;
        memcpy(&element, AT(uint16_t), sizeof element);
        return (double)tn_bf16_to_f32(element);
    }
    case TN_F8E4M3FN:
    case TN_F8E4M3FNUZ:
    case TN_F8E5M2:
    case TN_F8E5M2FNUZ:
    case TN_F8E8M0: return (double)tn_f8_to_f32(dtype, *AT(uint8_t));
    case TN_F4E2M1: return (double)tn_f8_to_f32(dtype, load_packed(data, index, 4));
    case TN_U4: return (double)load_packed(data, index, 4);
    case TN_U2: return (double)load_packed(data, index, 2);
    case TN_I4: return (double)sign_extend(load_packed(data, index, 4), 4);
    case TN_I2: return (double)sign_extend(load_packed(data, index, 2), 2);
    case TN_STRING:
    case TN_DTYPE_NONE:
    case TN_DTYPE_COUNT: break;
    }
    return NAN;
#undef CAST
}

int64_t tn_load_i64(tn_dtype dtype, const void *data, int64_t index) {
#define CAST(x) (int64_t)(x)
    switch (dtype) {
    case TN_U8: LOAD(uint8_t)
    case TN_I8: LOAD(int8_t)
    case TN_U16: LOAD(uint16_t)
    case TN_I16: LOAD(int16_t)
    case TN_U32: LOAD(uint32_t)
    case TN_I32: LOAD(int32_t)
    case TN_U64: LOAD(uint64_t)
    case TN_I64: LOAD(int64_t)
    case TN_BOOL: return *AT(uint8_t) != 0;
    case TN_U4: return load_packed(data, index, 4);
    case TN_U2: return load_packed(data, index, 2);
    case TN_I4: return sign_extend(load_packed(data, index, 4), 4);
    case TN_I2: return sign_extend(load_packed(data, index, 2), 2);
    default: return truncate_i64(tn_load_f64(dtype, data, index));
    }
#undef CAST
}
#undef AT

#define STORE(T, v)                                                                     \
    {                                                                                   \
        T element = (T)(v);                                                             \
        memcpy((uint8_t *)data + index * (int64_t)sizeof(T), &element, sizeof element); \
        return;                                                                         \
    }

static void store_complex(tn_dtype dtype, void *data, int64_t index, double value) {
    if (dtype == TN_C64) {
        float element[2] = {(float)value, 0};
        memcpy((uint8_t *)data + index * (int64_t)sizeof element, element, sizeof element);
    } else {
        double element[2] = {value, 0};
        memcpy((uint8_t *)data + index * (int64_t)sizeof element, element, sizeof element);
    }
}

void tn_store_f64(tn_dtype dtype, void *data, int64_t index, double value) {
    switch (dtype) {
    case TN_F32: STORE(float, value)
    case TN_F64: STORE(double, value)
    case TN_F16: STORE(uint16_t, tn_f64_to_f16(value))
    case TN_BF16: STORE(uint16_t, tn_f64_to_bf16(value))
    case TN_BOOL: STORE(uint8_t, value != 0)
    case TN_F8E4M3FN:
    case TN_F8E4M3FNUZ:
    case TN_F8E5M2:
    case TN_F8E5M2FNUZ:
    case TN_F8E8M0: STORE(uint8_t, encode_f8(dtype, value, true))
    case TN_F4E2M1: store_packed(data, index, 4, encode_f8(dtype, value, true)); return;
    case TN_C64:
    case TN_C128: store_complex(dtype, data, index, value); return;
    case TN_U64: STORE(uint64_t, truncate_u64(value))
    case TN_STRING:
    case TN_DTYPE_NONE:
    case TN_DTYPE_COUNT: return;
    default: {
        int64_t whole = truncate_i64(value), low = tn_dtype_min_i64(dtype), high = (int64_t)tn_dtype_max_u64(dtype);
        tn_store_i64(dtype, data, index, whole < low ? low : whole > high ? high : whole);
    }
    }
}

void tn_store_i64(tn_dtype dtype, void *data, int64_t index, int64_t value) {
    switch (dtype) {
    case TN_U8:
    case TN_I8: STORE(uint8_t, value)
    case TN_U16:
    case TN_I16: STORE(uint16_t, value)
    case TN_U32:
    case TN_I32: STORE(uint32_t, value)
    case TN_U64:
    case TN_I64: STORE(uint64_t, value)
    case TN_BOOL: STORE(uint8_t, value != 0)
    case TN_U4:
    case TN_I4: store_packed(data, index, 4, (uint32_t)value); return;
    case TN_U2:
    case TN_I2: store_packed(data, index, 2, (uint32_t)value); return;
    case TN_F32: STORE(float, value)
    case TN_F64: STORE(double, value)
    case TN_C64: {
        float element[2] = {(float)value, 0};
        memcpy((uint8_t *)data + index * (int64_t)sizeof element, element, sizeof element);
        return;
    }
    case TN_C128: store_complex(dtype, data, index, (double)value); return;
    default: tn_store_f64(dtype, data, index, odd_f64(value));
    }
}
