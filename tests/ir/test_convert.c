/* Narrow floats against independent definitions, and element loads and stores of every dtype. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ir/tensor.h"

static uint64_t seed = 20240611;
static uint64_t random_bits(void) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed * 0x9e3779b97f4a7c15u;
}

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void test_names(void **state) {
    (void)state;
    for (int i = 1; i < TN_DTYPE_COUNT; i++) {
        assert_true(tn_dtype_bits((tn_dtype)i) > 0);
        assert_int_equal(tn_dtype_from_name(tn_dtype_name((tn_dtype)i)), i);
        assert_int_equal(tn_dtype_from_name(tn_dtype_onnx_name((tn_dtype)i)), i);
    }
    assert_string_equal(tn_dtype_name(TN_BF16), "bf16");
    assert_string_equal(tn_dtype_onnx_name(TN_F64), "double");
    assert_string_equal(tn_dtype_name((tn_dtype)99), "none");
    assert_string_equal(tn_dtype_name((tn_dtype)-1), "none");
    assert_int_equal(tn_dtype_from_name("f33"), TN_DTYPE_NONE);
    assert_int_equal(tn_dtype_from_name(NULL), TN_DTYPE_NONE);
    assert_int_equal(tn_dtype_bits(TN_I4), 4);
    assert_int_equal(tn_dtype_bits(TN_C128), 128);
    assert_int_equal(tn_dtype_bits(TN_DTYPE_NONE), 0);
}

static void test_traits(void **state) {
    (void)state;
    assert_true(tn_dtype_is_float(TN_F4E2M1) && tn_dtype_is_float(TN_F8E8M0) && !tn_dtype_is_float(TN_C64));
    assert_true(tn_dtype_is_int(TN_U2) && !tn_dtype_is_int(TN_BOOL) && !tn_dtype_is_int(TN_STRING));
    assert_true(tn_dtype_is_signed(TN_I2) && !tn_dtype_is_signed(TN_U8) && !tn_dtype_is_signed(TN_F32));
    assert_true(tn_dtype_is_subbyte(TN_F4E2M1) && !tn_dtype_is_subbyte(TN_I8) && !tn_dtype_is_subbyte(TN_DTYPE_NONE));
    assert_true(tn_dtype_min_i64(TN_I64) == INT64_MIN && tn_dtype_max_u64(TN_I64) == INT64_MAX);
    assert_true(tn_dtype_min_i64(TN_I2) == -2 && tn_dtype_max_u64(TN_I2) == 1);
    assert_true(tn_dtype_min_i64(TN_U8) == 0 && tn_dtype_max_u64(TN_U8) == 255);
    assert_true(tn_dtype_max_u64(TN_U64) == UINT64_MAX && tn_dtype_max_u64(TN_U4) == 15);
}

/* The value of a code by the textbook formula. */
static double value_of_code(unsigned code, int exponent_bits, int mantissa_bits, int bias) {
    unsigned field = code >> mantissa_bits & ((1u << exponent_bits) - 1), fraction = code & ((1u << mantissa_bits) - 1);
    double value = field == 0 ? ldexp(fraction, 1 - bias - mantissa_bits)
                              : ldexp(fraction + (1u << mantissa_bits), (int)field - bias - mantissa_bits);
    return code >> (exponent_bits + mantissa_bits) & 1 ? -value : value;
}

/* The magnitude code nearest to |value| among 0..largest by search, ties to even; codes past the largest count as the
   value they would have, so the result may be largest + 1. */
static unsigned nearest_code(double value, unsigned largest, int exponent_bits, int mantissa_bits, int bias) {
    double magnitude = fabs(value);
    unsigned low = 0, high = largest + 1;
    double above = value_of_code(high, exponent_bits + 1, mantissa_bits, bias); /* one more bit: no wrap to the sign */
    if (magnitude >= above)
        return high;
    while (high - low > 1) {
        unsigned middle = (low + high) / 2;
        if (value_of_code(middle, exponent_bits + 1, mantissa_bits, bias) <= magnitude)
            low = middle;
        else
            high = middle;
    }
    double down = magnitude - value_of_code(low, exponent_bits + 1, mantissa_bits, bias);
    double up = value_of_code(high, exponent_bits + 1, mantissa_bits, bias) - magnitude;
    return down < up ? low : up < down ? high : low & 1 ? high : low;
}

static void check_16(double value) {
    unsigned sign = signbit(value) ? 0x8000 : 0;
    unsigned f16 = nearest_code(value, 0x7bff, 5, 10, 15), bf16 = nearest_code(value, 0x7f7f, 8, 7, 127);
    if (tn_f64_to_f16(value) != (sign | f16) || tn_f64_to_bf16(value) != (sign | bf16))
        fail_msg("%a: f16 %x not %x, bf16 %x not %x", value, tn_f64_to_f16(value), sign | f16, tn_f64_to_bf16(value),
                 sign | bf16);
    if ((double)(float)value == value) {
        assert_int_equal(tn_f32_to_f16((float)value), sign | f16);
        assert_int_equal(tn_f32_to_bf16((float)value), sign | bf16);
    }
}

static void test_f16_and_bf16(void **state) {
    (void)state;
    for (unsigned code = 0; code < 0x10000; code++) {
        float f16 = tn_f16_to_f32((uint16_t)code), bf16 = tn_bf16_to_f32((uint16_t)code);
        if ((code & 0x7fff) > 0x7c00)
            assert_true(isnan(f16) && isnan(tn_f16_to_f32(tn_f32_to_f16(f16))));
        else if ((code & 0x7fff) == 0x7c00)
            assert_true(isinf(f16) && (f16 < 0) == (code >> 15 != 0));
        else
            assert_true((double)f16 == value_of_code(code, 5, 10, 15));
        if ((code & 0x7fff) > 0x7f80)
            assert_true(isnan(bf16) && isnan(tn_bf16_to_f32(tn_f32_to_bf16(bf16))));
        else if ((code & 0x7fff) < 0x7f80)
            assert_true((double)bf16 == value_of_code(code, 8, 7, 127));
        if (!isnan(f16)) {
            assert_int_equal(tn_f32_to_f16(f16), code);
            assert_int_equal(tn_f64_to_f16((double)f16), code);
        }
        if (!isnan(bf16)) {
            assert_int_equal(tn_f32_to_bf16(bf16), code);
            assert_int_equal(tn_f64_to_bf16((double)bf16), code);
        }
        /* midpoints to the next code, and a hair to each side */
        if ((code & 0x7fff) < 0x7c00) {
            double next = value_of_code((code & 0x7fff) + 1, 6, 10, 15), here = value_of_code(code & 0x7fff, 5, 10, 15);
            double middle = (code & 0x8000 ? -1 : 1) * (here + next) / 2;
            check_16(middle);
            check_16(nextafter(middle, 0));
            check_16(nextafter(middle, 1e300));
        }
    }
    printf("seed %llu\n", (unsigned long long)seed);
    for (int i = 0; i < 200000; i++) {
        uint32_t bits = (uint32_t)random_bits();
        float single = float_of(bits);
        if (isfinite(single))
            check_16((double)single);
        double value = ldexp((double)(int64_t)random_bits(), (int)(random_bits() % 330) - 230);
        check_16(value);
    }
    check_16(0.0);
    check_16(-0.0);
    check_16(5e-324);
    check_16(1e308);
    assert_int_equal(tn_f32_to_f16(INFINITY), 0x7c00);
    assert_int_equal(tn_f64_to_bf16(-(double)INFINITY), 0xff80);
    assert_true(isnan(tn_f16_to_f32(tn_f64_to_f16((double)NAN))) && isnan(tn_bf16_to_f32(tn_f64_to_bf16((double)NAN))));
    /* one rounding: through f32 this tie would go the other way */
    assert_int_equal(tn_f64_to_f16(1.0 + 0x1p-11 + 0x1p-40), 0x3c01);
}

typedef struct small_format {
    tn_dtype dtype;
    int exponent, mantissa, bias;
    unsigned largest, infinity;
    bool negative_zero;
} small_format;
static const small_format small_formats[] = {
    {TN_F8E4M3FN, 4, 3, 7, 0x7e, 0, true},   {TN_F8E4M3FNUZ, 4, 3, 8, 0x7f, 0, false},
    {TN_F8E5M2, 5, 2, 15, 0x7b, 0x7c, true}, {TN_F8E5M2FNUZ, 5, 2, 16, 0x7f, 0, false},
    {TN_F4E2M1, 2, 1, 1, 7, 0, true},
};

static void check_small(const small_format *f, float value) {
    unsigned sign_bit = 1u << (f->exponent + f->mantissa), sign = signbit(value) ? sign_bit : 0;
    unsigned code =
        isinf(value) ? f->largest + 1 : nearest_code((double)value, f->largest, f->exponent, f->mantissa, f->bias);
    for (int saturate = 0; saturate < 2; saturate++) {
        unsigned got = tn_f32_to_f8(f->dtype, value, saturate != 0);
        if (code > f->largest && !saturate && f->dtype != TN_F4E2M1) {
            if (f->infinity)
                assert_int_equal(got, sign | f->infinity);
            else
                assert_true(isnan(tn_f8_to_f32(f->dtype, (uint8_t)got)));
        } else {
            unsigned wanted = code > f->largest ? f->largest : code;
            wanted |= wanted == 0 && !f->negative_zero ? 0 : sign;
            if (got != wanted)
                fail_msg("%s of %a: %x not %x", tn_dtype_name(f->dtype), (double)value, got, wanted);
        }
    }
}

static void test_small_floats(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof small_formats / sizeof small_formats[0]; k++) {
        const small_format *f = &small_formats[k];
        unsigned sign = 1u << (f->exponent + f->mantissa);
        for (unsigned code = 0; code < 2 * sign; code++) {
            float value = tn_f8_to_f32(f->dtype, (uint8_t)code);
            unsigned magnitude = code & (sign - 1);
            if (!f->negative_zero && code == sign) {
                assert_true(isnan(value));
            } else if (magnitude > f->largest) {
                if (f->infinity && magnitude == f->infinity)
                    assert_true(isinf(value) && (value < 0) == (code >= sign));
                else
                    assert_true(isnan(value));
            } else {
                assert_true((double)value == value_of_code(code, f->exponent, f->mantissa, f->bias));
                assert_int_equal(tn_f32_to_f8(f->dtype, value, true), code);
                float next = (float)value_of_code(magnitude + 1, f->exponent + 1, f->mantissa, f->bias);
                float middle = (fabsf(value) + next) / 2;
                for (int s = -1; s < 2; s += 2) {
                    check_small(f, (float)s * middle);
                    check_small(f, (float)s * nextafterf(middle, 0));
                    check_small(f, (float)s * nextafterf(middle, 1e30f));
                }
            }
        }
        for (int i = 0; i < 100000; i++) {
            float value = float_of((uint32_t)random_bits());
            if (!isnan(value))
                check_small(f, value);
        }
        check_small(f, INFINITY);
        check_small(f, -INFINITY);
        check_small(f, -0.0f);
    }
    /* as the standard's tests have them */
    assert_int_equal(tn_f32_to_f8(TN_F8E4M3FN, NAN, true), 0x7f);
    assert_int_equal(tn_f32_to_f8(TN_F8E4M3FNUZ, NAN, true), 0x80);
    assert_int_equal(tn_f32_to_f8(TN_F8E5M2, NAN, false), 0x7e);
    assert_int_equal(tn_f32_to_f8(TN_F8E5M2FNUZ, -NAN, true), 0x80);
    assert_int_equal(tn_f32_to_f8(TN_F4E2M1, NAN, true), 0x8);
    assert_int_equal(tn_f32_to_f8(TN_F8E4M3FNUZ, INFINITY, true), 0x7f);
    assert_int_equal(tn_f32_to_f8(TN_F8E4M3FNUZ, -1e-7f, true), 0);
    assert_int_equal(tn_f32_to_f8(TN_F8E4M3FN, 0.48033667f, true), 0x2f);
}

static void test_e8m0(void **state) {
    (void)state;
    for (unsigned code = 0; code < 255; code++) {
        float value = tn_f8_to_f32(TN_F8E8M0, (uint8_t)code);
        assert_true((double)value == ldexp(1, (int)code - 127));
        assert_int_equal(tn_f32_to_f8(TN_F8E8M0, value, false), code);
        if (code < 254)
            assert_int_equal(tn_f32_to_f8(TN_F8E8M0, nextafterf(value, INFINITY), false), code + 1);
    }
    assert_true(isnan(tn_f8_to_f32(TN_F8E8M0, 255)));
    assert_int_equal(tn_f32_to_f8(TN_F8E8M0, 0, true), 0);
    assert_int_equal(tn_f32_to_f8(TN_F8E8M0, 1.1f, true), 0x80);
    assert_int_equal(tn_f32_to_f8(TN_F8E8M0, 3e38f, true), 0xfe);
    assert_int_equal(tn_f32_to_f8(TN_F8E8M0, 3e38f, false), 0xff);
    assert_int_equal(tn_f32_to_f8(TN_F8E8M0, NAN, true), 0xff);
    assert_int_equal(tn_f32_to_f8(TN_F8E8M0, INFINITY, true), 0xfe);
    assert_int_equal(tn_f32_to_f8(TN_F8E8M0, INFINITY, false), 0xff);
    assert_int_equal(tn_f32_to_f8(TN_F8E8M0, 0, false), 0xff);
    assert_int_equal(tn_f32_to_f8(TN_F8E8M0, 1e-39f, false), 0xff);
}

/* Stores at every index of a misaligned array and reads back: neighbours stay, values are those of a C conversion. */
static void test_elements(void **state) {
    (void)state;
    enum { COUNT = 9 };
    for (int t = 1; t < TN_DTYPE_COUNT; t++) {
        tn_dtype dtype = (tn_dtype)t;
        if (dtype == TN_STRING)
            continue;
        uint8_t raw[1 + COUNT * 16 + 1];
        size_t bytes;
        assert_int_equal(tn_dtype_bytes(dtype, COUNT, &bytes), TN_OK);
        memset(raw, 0xa5, sizeof raw);
        memset(raw + 1, 0, bytes);
        void *data = raw + 1;
        for (int64_t i = 0; i < COUNT; i++)
            tn_store_i64(dtype, data, i, i % 2);
        for (int64_t i = 0; i < COUNT; i++) {
            if (dtype != TN_F8E8M0) {
                assert_int_equal(tn_load_i64(dtype, data, i), i % 2);
                assert_true(tn_load_f64(dtype, data, i) == (double)(i % 2));
            }
            tn_store_f64(dtype, data, i, 1.0);
            assert_true(tn_load_f64(dtype, data, i) == 1.0);
        }
        assert_int_equal(raw[0], 0xa5);
        assert_int_equal(raw[1 + bytes], 0xa5);
        if (tn_dtype_is_int(dtype)) {
            int64_t low = tn_dtype_min_i64(dtype), high = (int64_t)tn_dtype_max_u64(dtype);
            tn_store_i64(dtype, data, 3, low);
            tn_store_i64(dtype, data, 4, high);
            assert_true(tn_load_i64(dtype, data, 3) == low && tn_load_i64(dtype, data, 4) == high);
            tn_store_f64(dtype, data, 3, 1e30);
            tn_store_f64(dtype, data, 4, -1e30);
            tn_store_f64(dtype, data, 5, (double)NAN);
            tn_store_f64(dtype, data, 6, tn_dtype_is_signed(dtype) ? -1.9 : 1.9);
            assert_true(tn_load_i64(dtype, data, 3) == high && tn_load_i64(dtype, data, 4) == low);
            assert_true(tn_load_i64(dtype, data, 5) == 0);
            assert_true(tn_load_i64(dtype, data, 6) == (tn_dtype_is_signed(dtype) ? -1 : 1));
            tn_store_i64(dtype, data, 2, 0x123456789abcdef7);
            uint64_t mask = tn_dtype_bits(dtype) == 64 ? UINT64_MAX : ((uint64_t)1 << tn_dtype_bits(dtype)) - 1;
            assert_true(((uint64_t)tn_load_i64(dtype, data, 2) & mask) == (0x123456789abcdef7 & mask));
        }
    }
    uint64_t big = UINT64_MAX;
    float f = 3e38f;
    double d = -1e300;
    assert_true(tn_load_f64(TN_U64, &big, 0) == 0x1p64);
    assert_true(tn_load_i64(TN_U64, &big, 0) == -1);
    assert_true(tn_load_i64(TN_F32, &f, 0) == INT64_MAX && tn_load_i64(TN_F64, &d, 0) == INT64_MIN);
    /* an integer just above a tie of bf16, more bits than a double holds */
    uint16_t half;
    tn_store_i64(TN_BF16, &half, 0, ((int64_t)0x82 << 54) + ((int64_t)1 << 53) + 1);
    assert_int_equal(half, tn_f32_to_bf16(nextafterf((float)(((int64_t)0x82 << 54) + ((int64_t)1 << 53)), INFINITY)));
    uint8_t packed[2] = {0x21, 0xf3};
    assert_int_equal(tn_load_i64(TN_U4, packed, 0), 1);
    assert_int_equal(tn_load_i64(TN_U4, packed, 1), 2);
    assert_int_equal(tn_load_i64(TN_I4, packed, 3), -1);
    assert_int_equal(tn_load_i64(TN_I2, packed, 4), -1);
    assert_int_equal(tn_load_i64(TN_U2, packed, 2), 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),        cmocka_unit_test(test_traits), cmocka_unit_test(test_f16_and_bf16),
        cmocka_unit_test(test_small_floats), cmocka_unit_test(test_e8m0),   cmocka_unit_test(test_elements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
