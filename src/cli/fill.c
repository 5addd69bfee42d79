/* Made-up values for inputs. */
#include <math.h>

#include "cli/inputs.h"

/* Philox4x32-10 (Salmon et al. 2011): ten rounds of two 32x32-bit products. */
static void philox(const uint32_t counter[4], uint64_t seed, uint32_t out[4]) {
    uint32_t key0 = (uint32_t)seed, key1 = (uint32_t)(seed >> 32);
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xD2511F53u * c0, b = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(b >> 32) ^ c1 ^ key0;
        c1 = (uint32_t)b;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ key1;
        c3 = (uint32_t)a;
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

/* Two standard normal values from two words. */
static void normal(const uint32_t word[2], double out[2]) {
    double u = ((double)word[0] + 0.5) * 0x1p-32, angle = 6.283185307179586 * ((double)word[1] * 0x1p-32);
    double radius = sqrt(-2 * log(u));
    out[0] = radius * cos(angle);
    out[1] = radius * sin(angle);
}

static tn_status random_string(tn_tensor *t, int64_t i, const uint32_t word[4]) {
    char text[8];
    size_t length = 3 + word[0] % 6;
    for (size_t k = 0; k < length; k++)
        text[k] = (char)('a' + (word[1 + k / 4] >> (k % 4 * 8) & 0xff) % 26);
    return tn_tensor_set_string(t, i, text, length);
}

static tn_status fill_random(tn_tensor *t, uint64_t seed, uint32_t stream) {
    tn_dtype d = (tn_dtype)t->dtype;
    int64_t step = d == TN_STRING ? 1 : tn_dtype_is_complex(d) ? 2 : 4;
    for (int64_t i = 0; i < t->count; i += step) {
        uint64_t block = (uint64_t)(i / step);
        uint32_t word[4];
        philox((uint32_t[4]){(uint32_t)block, (uint32_t)(block >> 32), stream, 0}, seed, word);
        if (d == TN_STRING) {
            TN_TRY(random_string(t, i, word));
            continue;
        }
        double value[4];
        normal(word, value);
        normal(word + 2, value + 2);
        for (int64_t k = 0; k < step && i + k < t->count; k++)
            if (d == TN_C64)
                memcpy((float *)t->data + 2 * (i + k), (float[2]){(float)value[2 * k], (float)value[2 * k + 1]}, 8);
            else if (d == TN_C128)
                memcpy((double *)t->data + 2 * (i + k), value + 2 * k, 16);
            else if (tn_dtype_is_float(d))
                tn_store_f64(d, t->data, i + k, value[k]);
            else
                tn_store_i64(d, t->data, i + k, word[k] >> 31);
    }
    return TN_OK;
}

static tn_status fill_string(tn_tensor *t, int64_t i, tn_fill how) {
    char digits[24];
    size_t n = 0;
    uint64_t rest = how == TN_FILL_ARANGE ? (uint64_t)i : how == TN_FILL_ONES;
    do {
        digits[sizeof digits - ++n] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest);
    return tn_tensor_set_string(t, i, digits + sizeof digits - n, how == TN_FILL_ZEROS ? 0 : n);
}

tn_status tn_cli_fill(tn_tensor *t, tn_fill how, uint64_t seed, uint32_t stream) {
    if (how == TN_FILL_RANDOM)
        return fill_random(t, seed, stream);
    tn_dtype d = (tn_dtype)t->dtype;
    for (int64_t i = 0; i < t->count; i++)
        if (d == TN_STRING)
            TN_TRY(fill_string(t, i, how));
        else if (tn_dtype_is_float(d) || tn_dtype_is_complex(d))
            tn_store_f64(d, t->data, i, how == TN_FILL_ARANGE ? (double)i : how == TN_FILL_ONES);
        else
            tn_store_i64(d, t->data, i, how == TN_FILL_ARANGE ? i : how == TN_FILL_ONES);
    return TN_OK;
}
