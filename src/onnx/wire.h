/* Reading the protobuf wire format over memory that is there already: nothing is copied, every step stays inside the bytes.

       tn_wire w;
       tn_wire_field f;
       tn_wire_init(&w, bytes, size);
       while (tn_wire_next(&w, &f))
           switch (f.key) {
           case TN_WIRE_KEY(1, TN_WIRE_VARINT): version = f.value; break;   // the last one wins
           case TN_WIRE_KEY(7, TN_WIRE_BYTES): ... f.data, f.size ... break;
           }
       TN_TRY(w.status);

   A field of another wire type than expected has another key: it is skipped like an unknown field. Groups are skipped. */
#ifndef TN_ONNX_WIRE_H
#define TN_ONNX_WIRE_H

#include <string.h>

#include "base/error.h"
#include "base/vec.h"

typedef enum tn_wire_type {
    TN_WIRE_VARINT = 0,
    TN_WIRE_FIXED64 = 1,
    TN_WIRE_BYTES = 2,
    TN_WIRE_GROUP = 3,     /* never handed out */
    TN_WIRE_GROUP_END = 4, /* never handed out */
    TN_WIRE_FIXED32 = 5
} tn_wire_type;

#define TN_WIRE_KEY(number, type) ((uint32_t)(number) << 3 | (uint32_t)(type))

typedef struct tn_wire {
    const uint8_t *begin, *at, *end;
    tn_status status; /* TN_ERR_MODEL after a malformed field, with the thread's error set */
} tn_wire;

typedef struct tn_wire_field {
    uint32_t key;        /* TN_WIRE_KEY(number, type) */
    uint64_t value;      /* VARINT, FIXED32, FIXED64 (bits) */
    const uint8_t *data; /* BYTES */
    size_t size;
} tn_wire_field;

/* A piece of the file. */
typedef struct tn_slice {
    const uint8_t *data;
    size_t size;
} tn_slice;

static inline void tn_wire_init(tn_wire *w, const void *bytes, size_t size) {
    w->begin = w->at = bytes ? bytes : ""; /* no arithmetic on NULL */
    w->end = w->at + size;
    w->status = TN_OK;
}
static inline tn_slice tn_wire_slice(const tn_wire_field *f) {
    return (tn_slice){f->data, f->size};
}

/* The next field that is not a group. False at the end or after an error (see status). */
bool tn_wire_next(tn_wire *w, tn_wire_field *f);

/* Passes over the fields of the same key that directly follow `f`, a field of 4 bytes whose key is one byte: long lists of floats are
   written so. Answers how many; their bytes begin at *bytes, 5 for each, the key first. 0 for other fields. */
size_t tn_wire_pass_alike(tn_wire *w, const tn_wire_field *f, const uint8_t **bytes);

/* Repeated numbers, packed (BYTES) or not: what one field adds. TN_ERR_MODEL when a packed field does not divide up. */
tn_status tn_wire_count(const tn_wire_field *f, tn_wire_type element, size_t *count);
/* Calls store(ctx, i, bits) for each, i counting on from `first`. */
tn_status tn_wire_each(const tn_wire_field *f, tn_wire_type element, size_t first,
                       void (*store)(void *ctx, size_t i, uint64_t bits), void *ctx);
/* Appends the numbers to a vector (varints as they are: an int64). */
tn_status tn_wire_push_i64(tn_heap *heap, tn_i64_vec *vec, const tn_wire_field *f);

static inline float tn_wire_float(uint64_t bits) {
    uint32_t b = (uint32_t)bits;
    float value;
    memcpy(&value, &b, sizeof value);
    return value;
}

#endif
