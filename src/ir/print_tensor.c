/* Elements and tensors as text that reads back to the same bits. */
#include <math.h>

#include "base/number.h"
#include "ir/text.h"

/* The stored bits of one element of at most 64 bits. */
static uint64_t load_bits(tn_dtype dtype, const void *data, int64_t index) {
    int bits = tn_dtype_bits(dtype);
    uint64_t value = 0;
    if (bits < 8) {
        int64_t per_byte = 8 / bits;
        uint8_t byte = ((const uint8_t *)data)[index / per_byte];
        return (uint64_t)byte >> (index % per_byte * bits) & ((1u << bits) - 1);
    }
    size_t bytes = (size_t)bits / 8;
    memcpy(&value, (const uint8_t *)data + (size_t)index * bytes, bytes);
    return value;
}

static void store_bits(tn_dtype dtype, void *data, int64_t index, uint64_t value) {
    int bits = tn_dtype_bits(dtype);
    if (bits < 8) {
        int64_t per_byte = 8 / bits;
        uint8_t *byte = (uint8_t *)data + index / per_byte;
        int shift = (int)(index % per_byte) * bits;
        unsigned mask = ((1u << bits) - 1) << shift;
        *byte = (uint8_t)((*byte & ~mask) | ((unsigned)value << shift & mask));
        return;
    }
    size_t bytes = (size_t)bits / 8;
    memcpy((uint8_t *)data + (size_t)index * bytes, &value, bytes);
}

/* The part dtype of a complex one. */
static tn_dtype part_of(tn_dtype dtype) {
    return dtype == TN_C64 ? TN_F32 : TN_F64;
}

static size_t format_element(tn_dtype dtype, const void *data, int64_t index, char text[TN_NUMBER_TEXT]) {
    if (dtype == TN_BOOL) {
        const char *word = tn_load_i64(dtype, data, index) ? "true" : "false";
        memcpy(text, word, strlen(word) + 1);
        return strlen(word);
    }
    if (dtype == TN_U64)
        return tn_format_u64((uint64_t)tn_load_i64(dtype, data, index), text);
    if (tn_dtype_is_int(dtype))
        return tn_format_i64(tn_load_i64(dtype, data, index), text);
    if (dtype == TN_F64)
        return tn_format_f64(tn_load_f64(dtype, data, index), text);
    return tn_format_f32((float)tn_load_f64(dtype, data, index), text);
}

void tn_element_print(tn_dtype dtype, const void *data, int64_t index, tn_text *out) {
    if (tn_dtype_is_complex(dtype)) {
        tn_text_add(out, "(");
        tn_element_print(part_of(dtype), data, 2 * index, out);
        tn_text_add(out, ", ");
        tn_element_print(part_of(dtype), data, 2 * index + 1, out);
        tn_text_add(out, ")");
        return;
    }
    char text[TN_NUMBER_TEXT];
    uint64_t bits = load_bits(dtype, data, index), back = 0;
    size_t length = format_element(dtype, data, index, text);
    if (tn_element_parse(dtype, text, length, &back, 0) && back == bits)
        tn_text_bytes(out, text, length);
    else /* NaNs with a payload, bytes that are no bool */
        tn_text_printf(out, "bits(0x%llx)", (unsigned long long)bits);
}

static int hex_digit(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* "bits(0x1f)" of at most `width` bits. */
static bool parse_bits(const char *text, size_t length, int width, uint64_t *bits) {
    static const char head[] = "bits(0x";
    size_t at = sizeof head - 1;
    if (length < at + 2 || length > at + 17 || memcmp(text, head, at) != 0 || text[length - 1] != ')')
        return false;
    *bits = 0;
    for (; at < length - 1; at++) {
        int digit = hex_digit(text[at]);
        if (digit < 0)
            return false;
        *bits = *bits << 4 | (uint64_t)digit;
    }
    return width >= 64 || *bits >> width == 0;
}

bool tn_element_parse(tn_dtype dtype, const char *text, size_t length, void *data, int64_t index) {
    size_t used = 0;
    uint64_t bits;
    if (parse_bits(text, length, tn_dtype_bits(dtype), &bits)) {
        store_bits(dtype, data, index, bits);
        return true;
    }
    if (dtype == TN_BOOL) {
        bool yes = length == 4 && memcmp(text, "true", 4) == 0;
        if (!yes && !(length == 5 && memcmp(text, "false", 5) == 0))
            return false;
        tn_store_i64(dtype, data, index, yes);
        return true;
    }
    if (tn_dtype_is_int(dtype)) {
        int64_t value;
        if (tn_dtype_is_signed(dtype)) {
            if (!tn_parse_i64(text, length, &value, &used) || used != length || value < tn_dtype_min_i64(dtype) ||
                (value > 0 && (uint64_t)value > tn_dtype_max_u64(dtype)))
                return false;
        } else {
            uint64_t wide;
            if (!tn_parse_u64(text, length, &wide, &used) || used != length || wide > tn_dtype_max_u64(dtype))
                return false;
            value = (int64_t)wide;
        }
        tn_store_i64(dtype, data, index, value);
        return true;
    }
    if (!tn_dtype_is_float(dtype))
        return false;
    if (dtype == TN_F32) {
        float value;
        if (!tn_parse_f32(text, length, &value, &used) || used != length)
            return false;
        tn_store_f64(dtype, data, index, (double)value);
        return true;
    }
    double value;
    if (!tn_parse_f64(text, length, &value, &used) || used != length)
        return false;
    tn_store_f64(dtype, data, index, value);
    return true;
}

static void print_base64(const uint8_t *bytes, size_t count, tn_text *out) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char block[64];
    size_t fill = 0;
    for (size_t i = 0; i < count; i += 3) {
        size_t n = count - i < 3 ? count - i : 3;
        uint32_t word =
            (uint32_t)bytes[i] << 16 | (n > 1 ? (uint32_t)bytes[i + 1] << 8 : 0) | (n > 2 ? bytes[i + 2] : 0);
        block[fill++] = digits[word >> 18];
        block[fill++] = digits[word >> 12 & 63];
        block[fill++] = n > 1 ? digits[word >> 6 & 63] : '=';
        block[fill++] = n > 2 ? digits[word & 63] : '=';
        if (fill == sizeof block) {
            tn_text_bytes(out, block, fill);
            fill = 0;
        }
    }
    tn_text_bytes(out, block, fill);
}

void tn_tensor_print(const tn_tensor *tensor, tn_text *out) {
    if (!tensor) {
        tn_text_add(out, "null");
        return;
    }
    tn_dtype dtype = (tn_dtype)tensor->dtype;
    tn_text_add(out, tn_dtype_name(dtype));
    tn_text_add(out, "[");
    for (int i = 0; i < tensor->rank; i++)
        tn_text_printf(out, "%s%lld", i ? ", " : "", (long long)tensor->dims[i]);
    tn_text_add(out, "] ");
    if (dtype == TN_STRING) {
        tn_text_add(out, "[");
        for (int64_t i = 0; i < tensor->count; i++) {
            tn_string s = {"", 0};
            if (tn_tensor_get_string(tensor, i, &s) != TN_OK)
                out->failed = true;
            tn_text_add(out, i ? ", " : "");
            tn_text_quoted(out, s.data, s.length);
        }
        tn_text_add(out, "]");
        return;
    }
    tn_tensor *rows = tensor->contiguous ? NULL : tn_tensor_copy(tensor);
    if (!tensor->contiguous && !rows) {
        out->failed = true;
        return;
    }
    const void *data = rows ? rows->data : tensor->data;
    if (tensor->count <= TN_TEXT_LITERAL) {
        tn_text_add(out, "[");
        for (int64_t i = 0; i < tensor->count; i++) {
            tn_text_add(out, i ? ", " : "");
            tn_element_print(dtype, data, i, out);
        }
        tn_text_add(out, "]");
    } else {
        tn_text_add(out, "base64 \"");
        print_base64(data, tn_tensor_bytes(tensor), out);
        tn_text_add(out, "\"");
    }
    tn_tensor_destroy(rows);
}
