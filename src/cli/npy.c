/* NumPy's files. A header is a Python dict: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }. */
#include "cli/npy.h"

#include <inttypes.h>
#include <string.h>

#include "base/number.h"
#include "base/utf8.h"
#include "base/vec.h"

typedef struct header {
    char order, kind; /* '<', '>', '|'; 'f', 'i', ... */
    int64_t size;     /* bytes of an element; 'U': characters */
    bool fortran;
    int rank;
    int64_t dims[TN_MAX_RANK];
    const uint8_t *data;
    size_t data_size;
} header;

typedef struct scanner {
    const char *at, *end;
} scanner;

static void blanks(scanner *s) {
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\n' || *s->at == '\t'))
        s->at++;
}

static bool take(scanner *s, const char *word) {
    size_t n = strlen(word);
    blanks(s);
    if ((size_t)(s->end - s->at) < n || memcmp(s->at, word, n) != 0)
        return false;
    s->at += n;
    return true;
}

static bool take_i64(scanner *s, int64_t *value) {
    size_t used;
    blanks(s);
    if (!tn_parse_i64(s->at, (size_t)(s->end - s->at), value, &used) || *value < 0)
        return false;
    s->at += used;
    take(s, "L"); /* as Python 2 wrote them */
    return true;
}

static bool scan_descr(scanner *s, header *h) {
    if (!take(s, "'") || s->end - s->at < 3)
        return false;
    h->order = *s->at++;
    h->kind = *s->at++;
    return strchr("<>|=", h->order) && take_i64(s, &h->size) && take(s, "'");
}

static bool scan_shape(scanner *s, header *h) {
    if (!take(s, "("))
        return false;
    while (!take(s, ")")) {
        if (h->rank == TN_MAX_RANK || !take_i64(s, &h->dims[h->rank++]))
            return false;
        if (!take(s, ","))
            return take(s, ")");
    }
    return true;
}

static tn_status read_header(const void *bytes, size_t size, header *h) {
    const uint8_t *b = bytes;
    *h = (header){0};
    if (size < 10 || memcmp(b, "\x93NUMPY", 6) != 0)
        return tn_fail(TN_ERR_INPUT, "not an .npy file: it does not begin with \\x93NUMPY");
    size_t prefix = b[6] == 1 ? 10 : 12, length = (size_t)b[8] | (size_t)b[9] << 8;
    if (b[6] < 1 || b[6] > 3 || size < prefix)
        return tn_fail(TN_ERR_INPUT, "an .npy file of version %d", b[6]);
    if (prefix == 12)
        length |= (size_t)b[10] << 16 | (size_t)b[11] << 24;
    if (length > size - prefix)
        return tn_fail(TN_ERR_INPUT, "the .npy file is cut short: its header of %zu bytes is not there", length);
    scanner s = {(const char *)b + prefix, (const char *)b + prefix + length};
    bool good = take(&s, "{"), descr = false, shape = false, object = false;
    while (good && !take(&s, "}")) {
        if (take(&s, "'descr':"))
            object = !(good = descr = scan_descr(&s, h));
        else if (take(&s, "'fortran_order':"))
            good = (h->fortran = take(&s, "True")) || take(&s, "False");
        else if (take(&s, "'shape':"))
            good = shape = scan_shape(&s, h);
        else
            good = false;
        take(&s, ",");
    }
    if (object || (descr && h->kind == 'O')) {
        tn_fail(TN_ERR_UNSUPPORTED, "not supported: .npy arrays of objects or records");
        tn_fail_hint("save plain numbers or strings: array.astype('U')");
        return TN_ERR_UNSUPPORTED;
    }
    if (!good || !descr || !shape)
        return tn_fail(TN_ERR_INPUT, "the .npy file's header is damaged");
    h->data = b + prefix + length;
    h->data_size = size - prefix - length;
    return TN_OK;
}

static tn_dtype dtype_of(const header *h) {
    switch (h->kind) {
    case 'f': return h->size == 2 ? TN_F16 : h->size == 4 ? TN_F32 : h->size == 8 ? TN_F64 : TN_DTYPE_NONE;
    case 'i':
        return h->size == 1   ? TN_I8
               : h->size == 2 ? TN_I16
               : h->size == 4 ? TN_I32
               : h->size == 8 ? TN_I64
                              : TN_DTYPE_NONE;
    case 'u':
        return h->size == 1   ? TN_U8
               : h->size == 2 ? TN_U16
               : h->size == 4 ? TN_U32
               : h->size == 8 ? TN_U64
                              : TN_DTYPE_NONE;
    case 'b': return h->size == 1 ? TN_BOOL : TN_DTYPE_NONE;
    case 'c': return h->size == 8 ? TN_C64 : h->size == 16 ? TN_C128 : TN_DTYPE_NONE;
    case 'U':
    case 'S': return TN_STRING;
    default: return TN_DTYPE_NONE;
    }
}

/* Strings are padded with NULs at the end. */
static tn_status read_string(tn_tensor *t, int64_t index, const header *h, const uint8_t *at, tn_text *scratch) {
    size_t n = (size_t)h->size;
    if (h->kind == 'S') {
        while (n && !at[n - 1])
            n--;
        return tn_tensor_set_string(t, index, (const char *)at, n);
    }
    scratch->len = 0;
    size_t ended = 0; /* length up to the last character that is not NUL */
    for (size_t i = 0; i < n; i++, at += 4) {
        uint32_t c = h->order == '>' ? (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3]
                                     : (uint32_t)at[3] << 24 | (uint32_t)at[2] << 16 | (uint32_t)at[1] << 8 | at[0];
        if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
            return tn_fail(TN_ERR_INPUT, "a string of the .npy file is not Unicode");
        char utf8[4];
        size_t bytes = 1;
        if (c < 0x80) {
            utf8[0] = (char)c;
        } else {
            bytes = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
            for (size_t k = bytes - 1; k > 0; k--, c >>= 6)
                utf8[k] = (char)(0x80 | (c & 0x3f));
            utf8[0] = (char)((bytes == 2 ? 0xc0 : bytes == 3 ? 0xe0 : 0xf0) | c);
        }
        tn_text_bytes(scratch, utf8, bytes);
        if (bytes > 1 || utf8[0])
            ended = scratch->len;
    }
    if (scratch->failed)
        return TN_ERR_MEMORY;
    return tn_tensor_set_string(t, index, scratch->data ? scratch->data : "", ended);
}

static tn_tensor *read_strings(tn_heap *heap, const header *h) {
    size_t each = (size_t)h->size * (h->kind == 'U' ? 4 : 1);
    tn_tensor *t = tn_tensor_create_in(heap, TN_STRING, h->rank, h->dims);
    tn_text scratch;
    tn_text_init(&scratch, heap);
    for (int64_t i = 0; t && i < t->count; i++)
        if (read_string(t, i, h, h->data + (size_t)i * each, &scratch) != TN_OK) {
            tn_tensor_destroy(t);
            t = NULL;
        }
    tn_text_free(&scratch);
    return t;
}

/* A contiguous copy of the data with its bytes swapped where needed. */
static tn_tensor *read_numbers(tn_heap *heap, const header *h, tn_dtype dtype, tn_mapping *mapping) {
    size_t part = dtype == TN_C64 || dtype == TN_C128 ? (size_t)h->size / 2 : (size_t)h->size;
    bool swap = h->order == '>' && part > 1;
    if (mapping && !swap && dtype != TN_BOOL)
        return tn_tensor_mapped(heap, dtype, h->rank, h->dims, mapping, h->data);
    tn_tensor *t = tn_tensor_new(heap, dtype, h->rank, h->dims);
    size_t bytes = t ? tn_tensor_bytes(t) : 0;
    uint8_t *to = t ? t->data : NULL;
    if (bytes)
        memcpy(to, h->data, bytes);
    for (size_t i = 0; swap && i < bytes; i += part)
        for (size_t k = 0; k < part / 2; k++) {
            uint8_t byte = to[i + k];
            to[i + k] = to[i + part - 1 - k];
            to[i + part - 1 - k] = byte;
        }
    for (size_t i = 0; dtype == TN_BOOL && i < bytes; i++)
        to[i] = to[i] != 0;
    return t;
}

/* A tensor of a sub-byte dtype from 8-bit elements. */
static tn_tensor *pack(tn_heap *heap, const tn_tensor *wide, tn_dtype wanted) {
    tn_tensor *t = tn_tensor_create_in(heap, wanted, wide->rank, wide->dims);
    for (int64_t i = 0; t && i < wide->count; i++) {
        int64_t v = tn_tensor_get_i64(wide, i);
        if (tn_dtype_is_int(wanted)) {
            if (v < tn_dtype_min_i64(wanted) || v > (int64_t)tn_dtype_max_u64(wanted)) {
                tn_fail(TN_ERR_INPUT, "%" PRId64 " does not fit %s", v, tn_dtype_name(wanted));
                tn_tensor_destroy(t);
                return NULL;
            }
            tn_store_i64(wanted, t->data, i, v);
        } else { /* the bits of a 4-bit float */
            uint8_t *byte = (uint8_t *)t->data + i / 2;
            *byte = (uint8_t)(*byte | (v & 15) << (i % 2 * 4));
        }
    }
    return t;
}

tn_tensor *tn_npy_read(tn_heap *heap, const void *bytes, size_t size, tn_mapping *mapping, tn_dtype wanted) {
    header h;
    if (read_header(bytes, size, &h) != TN_OK)
        return NULL;
    tn_dtype dtype = dtype_of(&h);
    bool narrow = tn_dtype_is_subbyte(wanted);
    if (h.kind == 'V' && wanted != TN_STRING && (tn_dtype_bits(wanted) + 7) / 8 == h.size)
        dtype = narrow ? TN_U8 : wanted;
    if (dtype == TN_DTYPE_NONE) {
        tn_fail(TN_ERR_UNSUPPORTED, "not supported: .npy arrays of '%c%c%" PRId64 "'", h.order, h.kind, h.size);
        return NULL;
    }
    int64_t count;
    size_t each = (size_t)h.size * (h.kind == 'U' ? 4 : 1), need;
    if (tn_dims_count(h.rank, h.dims, &count) != TN_OK)
        return NULL;
    if (each > size || !tn_mul_size((size_t)count, each, &need) || need > h.data_size ||
        (each == 0 && count > 1 << 20)) {
        tn_fail(TN_ERR_INPUT,
                "the .npy file is cut short: %" PRId64 " elements of %" PRId64 " bytes, but %zu bytes of data", count,
                h.size, h.data_size);
        return NULL;
    }
    int64_t dims[TN_MAX_RANK];
    memcpy(dims, h.dims, sizeof dims);
    for (int i = 0; h.fortran && i < h.rank; i++)
        h.dims[i] = dims[h.rank - 1 - i];
    tn_tensor *t = dtype == TN_STRING ? read_strings(heap, &h) : read_numbers(heap, &h, dtype, mapping);
    if (t && h.fortran && h.rank > 1) {
        int64_t strides[TN_MAX_RANK];
        for (int i = 0; i < h.rank; i++)
            strides[i] = t->strides[h.rank - 1 - i];
        tn_tensor *view = tn_tensor_view(heap, t, dtype, h.rank, dims, strides, 0);
        tn_tensor_destroy(t);
        t = view ? tn_tensor_copy(view) : NULL;
        tn_tensor_destroy(view);
    }
    if (t && narrow && (dtype == TN_U8 || dtype == TN_I8)) {
        tn_tensor *packed = pack(heap, t, wanted);
        tn_tensor_destroy(t);
        t = packed;
    }
    return t;
}

/* ---- writing ---- */

static void descr_of(const tn_tensor *t, int64_t width, char text[32]) {
    int bits = tn_dtype_bits((tn_dtype)t->dtype);
    tn_dtype d = (tn_dtype)t->dtype;
    char kind = d == TN_BOOL                                  ? 'b'
                : d == TN_STRING                              ? 'U'
                : tn_dtype_is_complex(d)                      ? 'c'
                : d == TN_F16 || d == TN_F32 || d == TN_F64   ? 'f'
                : tn_dtype_is_int(d) && tn_dtype_is_signed(d) ? 'i'
                : tn_dtype_is_int(d)                          ? 'u'
                                                              : 'V';
    char number[TN_NUMBER_TEXT];
    tn_format_i64(d == TN_STRING ? width : (bits + 7) / 8, number);
    text[0] = bits > 8 ? '<' : '|';
    text[1] = kind;
    memcpy(text + 2, number, strlen(number) + 1);
}

static size_t characters(tn_string s) {
    size_t n = 0;
    for (size_t i = 0; i < s.length; n++) {
        size_t step = tn_utf8_next(s.data + i, s.length - i, NULL);
        i += step ? step : 1;
    }
    return n;
}

static tn_status write_strings(tn_file_writer *writer, const tn_tensor *t, size_t width) {
    tn_text row;
    tn_text_init(&row, t->object.heap);
    tn_status status = TN_OK;
    for (int64_t i = 0; status == TN_OK && i < t->count; i++) {
        tn_string s;
        row.len = 0;
        status = tn_tensor_get_string(t, i, &s);
        for (size_t at = 0; status == TN_OK && at < s.length;) {
            uint32_t code = 0xfffd; /* what is not UTF-8 */
            size_t step = tn_utf8_next(s.data + at, s.length - at, &code);
            at += step ? step : 1;
            tn_text_bytes(&row, (const char *)&code, 4);
        }
        while (status == TN_OK && !row.failed && row.len < width * 4)
            tn_text_bytes(&row, "\0\0\0", 4);
        if (row.failed)
            status = TN_ERR_MEMORY;
        if (status == TN_OK)
            status = tn_file_writer_write(writer, row.data, width * 4);
    }
    tn_text_free(&row);
    return status;
}

/* Sub-byte elements, one a byte: integers by value, floats by their bits. */
static tn_status write_wide(tn_file_writer *writer, const tn_tensor *t) {
    uint8_t block[4096];
    size_t n = 0;
    tn_status status = TN_OK;
    for (int64_t i = 0; status == TN_OK && i < t->count; i++) {
        bool is_int = tn_dtype_is_int((tn_dtype)t->dtype);
        block[n++] = is_int ? (uint8_t)tn_load_i64((tn_dtype)t->dtype, t->data, i)
                            : (uint8_t)(((const uint8_t *)t->data)[i / 2] >> (i % 2 * 4) & 15);
        if (n == sizeof block || i + 1 == t->count) {
            status = tn_file_writer_write(writer, block, n);
            n = 0;
        }
    }
    return status;
}

tn_status tn_npy_write_file(const char *path, tn_tensor *tensor) {
    tn_heap *heap = tensor->object.heap;
    tn_tensor *t = tn_tensor_contiguous(heap, tensor);
    if (!t)
        return tn_error_status();
    size_t width = 1;
    for (int64_t i = 0; t->dtype == TN_STRING && i < t->count; i++) {
        tn_string s;
        if (tn_tensor_get_string(t, i, &s) == TN_OK && characters(s) > width)
            width = characters(s);
    }
    char descr[32], number[TN_NUMBER_TEXT];
    descr_of(t, (int64_t)width, descr);
    tn_text head;
    tn_text_init(&head, heap);
    tn_text_bytes(&head, "\x93NUMPY\x01\x00\x00\x00", 10);
    tn_text_printf(&head, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int i = 0; i < t->rank; i++) {
        tn_format_i64(t->dims[i], number);
        tn_text_printf(&head, "%s%s", number, t->rank == 1 ? "," : i + 1 < t->rank ? ", " : "");
    }
    tn_text_add(&head, "), }");
    while (!head.failed && (head.len + 1) % 64)
        tn_text_add(&head, " ");
    tn_text_add(&head, "\n");
    if (!head.failed) {
        head.data[8] = (char)((head.len - 10) & 0xff);
        head.data[9] = (char)((head.len - 10) >> 8);
    }
    tn_file_writer *writer = head.failed ? NULL : tn_file_writer_begin(heap, path);
    tn_status status = writer ? tn_file_writer_write(writer, head.data, head.len) : tn_error_status();
    if (status == TN_OK && t->dtype == TN_STRING)
        status = write_strings(writer, t, width);
    else if (status == TN_OK && tn_dtype_is_subbyte((tn_dtype)t->dtype))
        status = write_wide(writer, t);
    else if (status == TN_OK)
        status = tn_file_writer_write(writer, t->data, tn_tensor_bytes(t));
    if (writer && status == TN_OK)
        status = tn_file_writer_commit(writer);
    else if (writer)
        tn_file_writer_abort(writer);
    tn_text_free(&head);
    tn_tensor_destroy(t);
    return status;
}

/* ---- .npz: a zip of .npy files ---- */

static uint32_t le(const uint8_t *b, int n) {
    uint32_t v = 0;
    for (int i = n - 1; i >= 0; i--)
        v = v << 8 | b[i];
    return v;
}

static uint64_t le64(const uint8_t *b) {
    return (uint64_t)le(b + 4, 4) << 32 | le(b, 4);
}

static tn_status damaged(void) {
    return tn_fail(TN_ERR_INPUT, "the .npz file is damaged or cut short");
}

/* Sizes and offset of an entry whose 32-bit fields are all ones: from the extra field 1, in order. */
static bool read_zip64(const uint8_t *extra, size_t length, uint64_t *values[3]) {
    for (size_t at = 0; at + 4 <= length;) {
        size_t n = le(extra + at + 2, 2);
        if (n > length - at - 4)
            return false;
        if (le(extra + at, 2) == 1) {
            const uint8_t *field = extra + at + 4;
            for (int i = 0; i < 3; i++)
                if (*values[i] == UINT32_MAX) {
                    if (n < 8)
                        return false;
                    *values[i] = le64(field);
                    field += 8;
                    n -= 8;
                }
            return true;
        }
        at += 4 + n;
    }
    return *values[0] != UINT32_MAX && *values[1] != UINT32_MAX && *values[2] != UINT32_MAX;
}

tn_status tn_npz_list(tn_heap *heap, const void *bytes, size_t size, tn_npz_entry **entries, uint32_t *count) {
    const uint8_t *b = bytes;
    TN_VEC(tn_npz_entry) list = {0};
    *entries = NULL;
    *count = 0;
    if (size < 22 || memcmp(b, "PK", 2) != 0)
        return tn_fail(TN_ERR_INPUT, "not an .npz file: it is no zip archive");
    size_t end = size - 22, lowest = size > 22 + 65535 ? size - 22 - 65535 : 0;
    while (memcmp(b + end, "PK\5\6", 4) != 0)
        if (end-- == lowest)
            return damaged();
    uint64_t total = le(b + end + 10, 2), at = le(b + end + 16, 4);
    if (at == UINT32_MAX && end >= 20 && memcmp(b + end - 20, "PK\6\7", 4) == 0) {
        uint64_t record = le64(b + end - 12);
        if (size < 56 || record > size - 56 || memcmp(b + record, "PK\6\6", 4) != 0)
            return damaged();
        total = le64(b + record + 32);
        at = le64(b + record + 48);
    }
    for (uint64_t i = 0; i < total; i++) {
        if (at > size || size - at < 46 || memcmp(b + at, "PK\1\2", 4) != 0)
            goto bad;
        const uint8_t *c = b + at;
        size_t name_length = le(c + 28, 2), extra_length = le(c + 30, 2),
               rest = name_length + extra_length + le(c + 32, 2);
        if (rest > size - at - 46)
            goto bad;
        uint64_t packed = le(c + 20, 4), plain = le(c + 24, 4), offset = le(c + 42, 4);
        if (!read_zip64(c + 46 + name_length, extra_length, (uint64_t *[3]){&plain, &packed, &offset}) ||
            offset > size || size - offset < 30 || memcmp(b + offset, "PK\3\4", 4) != 0)
            goto bad;
        if (le(c + 10, 2) != 0) {
            tn_vec_free(heap, &list);
            tn_fail(TN_ERR_UNSUPPORTED, "not supported: compressed .npz files");
            tn_fail_hint("save with numpy.savez, not numpy.savez_compressed");
            return TN_ERR_UNSUPPORTED;
        }
        uint64_t data = offset + 30 + le(b + offset + 26, 2) + le(b + offset + 28, 2);
        if (packed != plain || data > size || plain > size - data)
            goto bad;
        tn_npz_entry e = {.name = (const char *)c + 46, .name_length = name_length, .bytes = b + data, .size = plain};
        if (name_length > 4 && memcmp(e.name + name_length - 4, ".npy", 4) == 0)
            e.name_length -= 4;
        if (!tn_vec_push(heap, &list, e)) {
            tn_vec_free(heap, &list);
            return TN_ERR_MEMORY;
        }
        at += 46 + rest;
    }
    *entries = list.data;
    *count = list.len;
    return TN_OK;
bad:
    tn_vec_free(heap, &list);
    return damaged();
}
