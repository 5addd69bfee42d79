/* The protobuf wire reader: fields out of bytes, bounds checked. */
#include "onnx/wire.h"

#include <inttypes.h>

enum { MAX_GROUPS = 100 };

static bool malformed(tn_wire *w, const char *what) {
    w->status = tn_fail(TN_ERR_MODEL, "malformed protobuf: %s", what);
    tn_fail_where("byte %zu of a message of %zu bytes", (size_t)(w->at - w->begin), (size_t)(w->end - w->begin));
    tn_fail_hint("the file is cut or damaged, or not what it is taken for");
    w->at = w->end;
    return false;
}

/* At most ten bytes, the tenth 0 or 1. Answers the bytes read; 0: cut or too long. */
static size_t varint(const uint8_t *at, const uint8_t *end, uint64_t *value) {
    uint64_t v = 0;
    for (unsigned i = 0; i < 10 && at + i < end; i++) {
        uint8_t b = at[i];
        if (i == 9 && b > 1)
            return 0;
        v |= (uint64_t)(b & 0x7f) << (7 * i);
        if (!(b & 0x80)) {
            *value = v;
            return i + 1;
        }
    }
    return 0;
}

static uint64_t fixed(const uint8_t *at, unsigned bytes) {
    uint64_t v = 0;
    for (unsigned i = 0; i < bytes; i++)
        v |= (uint64_t)at[i] << (8 * i);
    return v;
}

static bool payload(tn_wire *w, tn_wire_field *f) {
    size_t left = (size_t)(w->end - w->at), n;
    f->data = NULL;
    f->size = 0;
    f->value = 0;
    switch (f->key & 7) {
    case TN_WIRE_VARINT:
        if (!(n = varint(w->at, w->end, &f->value)))
            return malformed(w, left < 10 ? "a number is cut" : "a number is longer than ten bytes");
        w->at += n;
        return true;
    case TN_WIRE_FIXED64:
    case TN_WIRE_FIXED32:
        n = (f->key & 7) == TN_WIRE_FIXED64 ? 8 : 4;
        if (left < n)
            return malformed(w, "a fixed-size number is cut");
        f->value = fixed(w->at, (unsigned)n);
        w->at += n;
        return true;
    case TN_WIRE_BYTES: {
        uint64_t length;
        if (!(n = varint(w->at, w->end, &length)))
            return malformed(w, "a length is cut or longer than ten bytes");
        if (length > left - n)
            return malformed(w, "a length goes past the end");
        f->data = w->at + n;
        f->size = (size_t)length;
        w->at = f->data + f->size;
        return true;
    }
    default: return true; /* group marks have none */
    }
}

static bool header(tn_wire *w, tn_wire_field *f) {
    uint64_t key;
    size_t n = varint(w->at, w->end, &key);
    if (!n)
        return malformed(w, "a field's key is cut or too long");
    if (key >> 3 == 0 || key > UINT32_MAX)
        return malformed(w, "a field number is 0 or too large");
    if ((key & 7) > TN_WIRE_FIXED32)
        return malformed(w, "a wire type that does not exist");
    f->key = (uint32_t)key;
    w->at += n;
    return true;
}

bool tn_wire_next(tn_wire *w, tn_wire_field *f) {
    uint32_t open[MAX_GROUPS]; /* field numbers of the groups we are in */
    int depth = 0;
    while (w->at < w->end) {
        if (!header(w, f) || !payload(w, f))
            return false;
        switch (f->key & 7) {
        case TN_WIRE_GROUP:
            if (depth == MAX_GROUPS)
                return malformed(w, "groups are nested too deep");
            open[depth++] = f->key >> 3;
            break;
        case TN_WIRE_GROUP_END:
            if (depth == 0 || open[depth - 1] != f->key >> 3)
                return malformed(w, "the end of a group that was not begun");
            depth--;
            break;
        default:
            if (depth == 0)
                return true;
        }
    }
    return depth ? malformed(w, "a group never ends") : false;
}

size_t tn_wire_pass_alike(tn_wire *w, const tn_wire_field *f, const uint8_t **bytes) {
    enum { FIELD = 5 };
    const uint8_t *begin = w->at, *at = begin;
    *bytes = begin;
    if ((f->key & 7) != TN_WIRE_FIXED32 || f->key > 0x7f)
        return 0;
    const uint8_t key = (uint8_t)f->key;
    /* eight at a time: a jump for each would cost as much as reading it */
    while (w->end - at >= 8 * FIELD &&
           !((at[0] ^ key) | (at[FIELD] ^ key) | (at[2 * FIELD] ^ key) | (at[3 * FIELD] ^ key) | (at[4 * FIELD] ^ key) |
             (at[5 * FIELD] ^ key) | (at[6 * FIELD] ^ key) | (at[7 * FIELD] ^ key)))
        at += 8 * FIELD;
    while (w->end - at >= FIELD && *at == key)
        at += FIELD;
    w->at = at;
    return (size_t)(at - begin) / FIELD;
}

/* --- repeated numbers ------------------------------------------------------------------------------------------------------- */

static tn_status does_not_divide(const tn_wire_field *f) {
    return tn_fail(TN_ERR_MODEL,
                   "malformed protobuf: a packed list of %zu bytes ends inside a number (field %" PRIu32 ")", f->size,
                   f->key >> 3);
}

tn_status tn_wire_count(const tn_wire_field *f, tn_wire_type element, size_t *count) {
    *count = 1;
    if ((f->key & 7) != TN_WIRE_BYTES)
        return TN_OK;
    size_t n = 0;
    if (element == TN_WIRE_VARINT) {
        for (size_t i = 0; i < f->size; i++)
            n += f->data[i] < 0x80;
        if (f->size && f->data[f->size - 1] >= 0x80)
            return does_not_divide(f);
    } else {
        size_t bytes = element == TN_WIRE_FIXED64 ? 8 : 4;
        if (f->size % bytes)
            return does_not_divide(f);
        n = f->size / bytes;
    }
    *count = n;
    return TN_OK;
}

tn_status tn_wire_each(const tn_wire_field *f, tn_wire_type element, size_t first,
                       void (*store)(void *ctx, size_t i, uint64_t bits), void *ctx) {
    if ((f->key & 7) != TN_WIRE_BYTES) {
        store(ctx, first, f->value);
        return TN_OK;
    }
    const uint8_t *at = f->data, *end = at + f->size;
    while (at < end) {
        uint64_t value;
        size_t n = element == TN_WIRE_FIXED64 ? 8 : 4;
        if (element == TN_WIRE_VARINT) {
            if (!(n = varint(at, end, &value)))
                return does_not_divide(f);
        } else {
            if ((size_t)(end - at) < n)
                return does_not_divide(f);
            value = fixed(at, (unsigned)n);
        }
        store(ctx, first++, value);
        at += n;
    }
    return TN_OK;
}

static void store_i64(void *ctx, size_t i, uint64_t bits) {
    tn_i64_vec *vec = ctx;
    vec->data[i] = (int64_t)bits;
    vec->len = (uint32_t)i + 1;
}

tn_status tn_wire_push_i64(tn_heap *heap, tn_i64_vec *vec, const tn_wire_field *f) {
    size_t count;
    TN_TRY(tn_wire_count(f, TN_WIRE_VARINT, &count));
    if (count > UINT32_MAX - vec->len)
        return tn_fail(TN_ERR_LIMIT, "a list of more than %" PRIu32 " numbers", UINT32_MAX);
    if (!tn_vec_reserve(heap, vec, (uint32_t)count))
        return tn_error_status();
    return tn_wire_each(f, TN_WIRE_VARINT, vec->len, store_i64, vec);
}
