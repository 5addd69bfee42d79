/* TensorProto and SparseTensorProto to tensors. */
#include "onnx/tensor_proto.h"

#include <inttypes.h>

/* The payload fields of a TensorProto. */
enum { P_RAW, P_FLOAT, P_INT32, P_STRING, P_INT64, P_DOUBLE, P_UINT64, P_EXTERNAL, P_COUNT };
static const char *const payload_name[P_COUNT] = {"raw_data",   "float_data",  "int32_data",  "string_data",
                                                  "int64_data", "double_data", "uint64_data", "external_data"};

enum { MAX_EXTERNAL = 32 };

typedef struct proto {
    tn_slice message, name;
    int64_t dims[TN_MAX_RANK];
    int rank;
    uint64_t dtype;
    uint64_t location;
    size_t count[P_COUNT];    /* elements in the list; raw: bytes; external: entries */
    uint32_t fields[P_COUNT]; /* how many fields they came in */
    tn_slice packed[P_COUNT]; /* the last packed field, raw data */
    tn_slice external[MAX_EXTERNAL];
    bool segment;
} proto;

/* --- reading the message -------------------------------------------------------------------------------------------------- */

typedef struct dims_ctx {
    proto *p;
    bool too_many;
} dims_ctx;

static void store_dim(void *ctx, size_t i, uint64_t bits) {
    dims_ctx *d = ctx;
    if (i >= TN_MAX_RANK) {
        d->too_many = true;
        return;
    }
    d->p->dims[i] = (int64_t)bits;
    d->p->rank = (int)i + 1;
}

static tn_status add_dims(proto *p, const tn_wire_field *f) {
    dims_ctx ctx = {.p = p};
    TN_TRY(tn_wire_each(f, TN_WIRE_VARINT, (size_t)p->rank, store_dim, &ctx));
    return ctx.too_many ? tn_fail(TN_ERR_LIMIT, "a tensor of more than %d dimensions", TN_MAX_RANK) : TN_OK;
}

static tn_status add_payload(proto *p, const tn_wire_field *f, int which, tn_wire_type element) {
    size_t n;
    TN_TRY(tn_wire_count(f, element, &n));
    p->count[which] += n; /* never more than the bytes of the file */
    if (n == 0)
        return TN_OK;
    p->fields[which]++;
    if ((f->key & 7) == TN_WIRE_BYTES)
        p->packed[which] = tn_wire_slice(f);
    return TN_OK;
}

static tn_status read_proto(tn_slice message, proto *p) {
    *p = (proto){.message = message};
    tn_wire w;
    tn_wire_field f;
    tn_wire_init(&w, message.data, message.size);
    while (tn_wire_next(&w, &f))
        switch (f.key) {
        case TN_WIRE_KEY(1, TN_WIRE_VARINT):
        case TN_WIRE_KEY(1, TN_WIRE_BYTES): TN_TRY(add_dims(p, &f)); break;
        case TN_WIRE_KEY(2, TN_WIRE_VARINT): p->dtype = f.value; break;
        case TN_WIRE_KEY(3, TN_WIRE_BYTES): p->segment = true; break;
        case TN_WIRE_KEY(4, TN_WIRE_BYTES):
        case TN_WIRE_KEY(4, TN_WIRE_FIXED32): TN_TRY(add_payload(p, &f, P_FLOAT, TN_WIRE_FIXED32)); break;
        case TN_WIRE_KEY(5, TN_WIRE_BYTES):
        case TN_WIRE_KEY(5, TN_WIRE_VARINT): TN_TRY(add_payload(p, &f, P_INT32, TN_WIRE_VARINT)); break;
        case TN_WIRE_KEY(6, TN_WIRE_BYTES):
            p->count[P_STRING]++;
            p->fields[P_STRING]++;
            break;
        case TN_WIRE_KEY(7, TN_WIRE_BYTES):
        case TN_WIRE_KEY(7, TN_WIRE_VARINT): TN_TRY(add_payload(p, &f, P_INT64, TN_WIRE_VARINT)); break;
        case TN_WIRE_KEY(8, TN_WIRE_BYTES): p->name = tn_wire_slice(&f); break;
        case TN_WIRE_KEY(9, TN_WIRE_BYTES):
            p->packed[P_RAW] = tn_wire_slice(&f);
            p->count[P_RAW] = f.size;
            p->fields[P_RAW] = f.size > 0;
            break;
        case TN_WIRE_KEY(10, TN_WIRE_BYTES):
        case TN_WIRE_KEY(10, TN_WIRE_FIXED64): TN_TRY(add_payload(p, &f, P_DOUBLE, TN_WIRE_FIXED64)); break;
        case TN_WIRE_KEY(11, TN_WIRE_BYTES):
        case TN_WIRE_KEY(11, TN_WIRE_VARINT): TN_TRY(add_payload(p, &f, P_UINT64, TN_WIRE_VARINT)); break;
        case TN_WIRE_KEY(13, TN_WIRE_BYTES):
            if (p->count[P_EXTERNAL] == MAX_EXTERNAL)
                return tn_fail(TN_ERR_LIMIT, "a tensor with more than %d entries of external data", MAX_EXTERNAL);
            p->external[p->count[P_EXTERNAL]++] = tn_wire_slice(&f);
            p->fields[P_EXTERNAL]++;
            break;
        case TN_WIRE_KEY(14, TN_WIRE_VARINT): p->location = f.value; break;
        default: break;
        }
    return w.status;
}

/* --- checks ----------------------------------------------------------------------------------------------------------------- */

/* The list that holds a dtype, and list entries for n elements of `bytes` bytes. */
static int list_of(tn_dtype dtype, int64_t n, size_t bytes, uint64_t *entries) {
    *entries = (uint64_t)n;
    switch (dtype) {
    case TN_C64: *entries *= 2; return P_FLOAT;
    case TN_F32: return P_FLOAT;
    case TN_C128: *entries *= 2; return P_DOUBLE;
    case TN_F64: return P_DOUBLE;
    case TN_I64: return P_INT64;
    case TN_U32:
    case TN_U64: return P_UINT64;
    case TN_STRING: return P_STRING;
    default:
        if (tn_dtype_is_subbyte(dtype))
            *entries = bytes; /* packed pairs (or fours), a byte an entry */
        return P_INT32;
    }
}

/* What the proto says: dtype, number of elements, their bytes, and which payload it has (P_COUNT: none is needed). */
typedef struct plan {
    tn_dtype dtype;
    int64_t n;
    size_t bytes;
    int payload;
} plan;

static tn_status check(const proto *p, plan *out) {
    if (p->dtype == 0 || p->dtype >= TN_DTYPE_COUNT)
        return tn_fail(TN_ERR_MODEL,
                       p->dtype ? "element type %" PRIu64 " does not exist" : "a tensor without an element type",
                       p->dtype);
    if (p->segment)
        return tn_fail(TN_ERR_UNSUPPORTED, "not supported: a tensor stored in segments");
    out->dtype = (tn_dtype)p->dtype;
    for (int i = 0; i < p->rank; i++)
        if (p->dims[i] < 0)
            return tn_fail(TN_ERR_MODEL, "dimension %d of a tensor is %" PRId64, i, p->dims[i]);
    TN_TRY(tn_dims_count(p->rank, p->dims, &out->n));
    TN_TRY(tn_dtype_bytes(out->dtype, out->n, &out->bytes));
    if (p->location > 1)
        return tn_fail(TN_ERR_MODEL, "data_location %" PRIu64 " does not exist", p->location);
    out->payload = P_COUNT;
    for (int i = 0; i < P_COUNT; i++) {
        if (!p->fields[i] || (i == P_EXTERNAL && p->location == 0))
            continue;
        if (out->payload != P_COUNT)
            return tn_fail(TN_ERR_MODEL, "a tensor has both %s and %s", payload_name[out->payload], payload_name[i]);
        out->payload = i;
    }
    uint64_t entries;
    int list = list_of(out->dtype, out->n, out->bytes, &entries);
    if (p->location == 1) {
        if (out->dtype == TN_STRING)
            return tn_fail(TN_ERR_MODEL, "strings cannot be external data");
        if (out->payload != P_EXTERNAL && out->payload != P_COUNT)
            return tn_fail(TN_ERR_MODEL, "a tensor with external data has %s too", payload_name[out->payload]);
        out->payload = P_EXTERNAL;
        return TN_OK;
    }
    if (out->payload == P_COUNT) {
        if (out->n)
            return tn_fail(TN_ERR_MODEL, "a tensor of %" PRId64 " elements has no data", out->n);
        return TN_OK;
    }
    if (out->payload == P_RAW) {
        if (out->dtype == TN_STRING)
            return tn_fail(TN_ERR_MODEL, "strings are stored as raw_data; they belong in string_data");
        if (p->count[P_RAW] != out->bytes)
            return tn_fail(TN_ERR_MODEL, "a tensor of %" PRId64 " elements of %s needs %zu bytes, raw_data has %zu",
                           out->n, tn_dtype_name(out->dtype), out->bytes, p->count[P_RAW]);
        return TN_OK;
    }
    if (out->payload != list)
        return tn_fail(TN_ERR_MODEL, "elements of %s are stored in %s; they belong in %s or raw_data",
                       tn_dtype_name(out->dtype), payload_name[out->payload], payload_name[list]);
    if (p->count[list] != entries)
        return tn_fail(TN_ERR_MODEL, "a tensor of %" PRId64 " elements of %s needs %" PRIu64 " entries, %s has %zu",
                       out->n, tn_dtype_name(out->dtype), entries, payload_name[list], p->count[list]);
    return TN_OK;
}

static tn_status admit(tn_onnx_source *s, uint64_t bytes) {
    if (bytes > UINT64_MAX - s->admitted)
        bytes = UINT64_MAX - s->admitted;
    s->admitted += bytes;
    if (s->max_bytes && s->admitted > s->max_bytes) {
        tn_fail(TN_ERR_LIMIT, "the model's tensors take %" PRIu64 " bytes or more, the limit is %" PRIu64, s->admitted,
                s->max_bytes);
        tn_fail_hint("raise the limit on bytes if the file is to be trusted");
        return TN_ERR_LIMIT;
    }
    return TN_OK;
}

/* --- data ------------------------------------------------------------------------------------------------------------------- */

/* Bytes as they are in memory. A bool that is neither 0 nor 1 becomes 1. */
static tn_tensor *over_bytes(tn_onnx_source *s, const proto *p, const plan *q, tn_mapping *mapping, tn_slice bytes) {
    bool odd = false;
    if (q->dtype == TN_BOOL)
        for (size_t i = 0; i < bytes.size && !odd; i++)
            odd = bytes.data[i] > 1;
    if (mapping && !odd && bytes.size)
        return tn_tensor_mapped(s->heap, q->dtype, p->rank, p->dims, mapping, bytes.data);
    tn_tensor *t = tn_tensor_new(s->heap, q->dtype, p->rank, p->dims);
    if (!t || !bytes.size)
        return t;
    memcpy(t->data, bytes.data, bytes.size);
    for (size_t i = 0; odd && i < bytes.size; i++)
        ((uint8_t *)t->data)[i] = bytes.data[i] != 0;
    return t;
}

typedef struct store_ctx {
    void *data;
    tn_dtype dtype;
    int bits; /* of an entry in memory */
    bool bad;
    int64_t bad_value;
} store_ctx;

/* Bit patterns and unsigned numbers in 32-bit lists may be written signed or unsigned; what fits neither way is an error. */
static void store_entry(void *ctx, size_t i, uint64_t value) {
    store_ctx *c = ctx;
    uint8_t *data = c->data;
    if (c->dtype == TN_BOOL) {
        data[i] = value != 0;
        return;
    }
    if (c->bits < 64) {
        int64_t v = (int64_t)value, low = -((int64_t)1 << (c->bits - 1)), high = ((int64_t)1 << c->bits) - 1;
        if (tn_dtype_is_signed(c->dtype) && !tn_dtype_is_subbyte(c->dtype))
            high = -(low + 1);
        if (c->dtype == TN_I32 || c->dtype == TN_U32)
            high = (int64_t)UINT32_MAX;
        if (v < low || v > high) {
            c->bad = true;
            c->bad_value = v;
        }
    }
    switch (c->bits) {
    case 8: data[i] = (uint8_t)value; break;
    case 16: memcpy(data + 2 * i, &(uint16_t){(uint16_t)value}, 2); break;
    case 32: memcpy(data + 4 * i, &(uint32_t){(uint32_t)value}, 4); break;
    default: memcpy(data + 8 * i, &value, 8); break;
    }
}

static tn_status list_fields(tn_slice message, int which, store_ctx *ctx, tn_tensor *strings) {
    static const uint32_t number[P_COUNT] = {
        [P_FLOAT] = 4, [P_INT32] = 5, [P_STRING] = 6, [P_INT64] = 7, [P_DOUBLE] = 10, [P_UINT64] = 11};
    static const tn_wire_type element[P_COUNT] = {[P_FLOAT] = TN_WIRE_FIXED32, [P_DOUBLE] = TN_WIRE_FIXED64};
    tn_wire w;
    tn_wire_field f;
    size_t at = 0;
    tn_wire_init(&w, message.data, message.size);
    while (tn_wire_next(&w, &f)) {
        if (f.key >> 3 != number[which])
            continue;
        if (strings && (f.key & 7) == TN_WIRE_BYTES)
            TN_TRY(tn_tensor_set_string(strings, (int64_t)at++, (const char *)f.data, f.size));
        if (strings || ((f.key & 7) != TN_WIRE_BYTES && (f.key & 7) != element[which]))
            continue;
        size_t n;
        TN_TRY(tn_wire_count(&f, element[which], &n));
        TN_TRY(tn_wire_each(&f, element[which], at, store_entry, ctx));
        at += n;
    }
    return w.status;
}

static tn_tensor *from_list(tn_onnx_source *s, const proto *p, const plan *q) {
    /* a packed list of a fixed width is what memory holds */
    if ((q->payload == P_FLOAT || q->payload == P_DOUBLE) && p->fields[q->payload] == 1 &&
        p->packed[q->payload].size == q->bytes)
        return over_bytes(s, p, q, s->mapping, p->packed[q->payload]);
    tn_tensor *t = tn_tensor_new(s->heap, q->dtype, p->rank, p->dims);
    if (!t)
        return NULL;
    store_ctx ctx = {
        .data = t->data, .dtype = q->dtype, .bits = tn_dtype_bits(q->dtype) < 8 ? 8 : tn_dtype_bits(q->dtype)};
    if (tn_dtype_is_complex(q->dtype))
        ctx.bits /= 2;
    tn_status status = list_fields(p->message, q->payload, &ctx, q->dtype == TN_STRING ? t : NULL);
    if (status == TN_OK && ctx.bad)
        status = tn_fail(TN_ERR_MODEL, "%" PRId64 " in %s does not fit an element of %s", ctx.bad_value,
                         payload_name[q->payload], tn_dtype_name(q->dtype));
    if (status != TN_OK) {
        tn_tensor_destroy(t);
        return NULL;
    }
    return t;
}

/* --- external data ------------------------------------------------------------------------------------------------------------ */

static tn_status decimal(tn_slice text, const char *what, uint64_t *value) {
    uint64_t v = 0;
    for (size_t i = 0; i < text.size; i++) {
        unsigned digit = (unsigned)text.data[i] - '0';
        if (digit > 9 || v > (UINT64_MAX - digit) / 10)
            text.size = 0;
        else
            v = v * 10 + digit;
    }
    if (text.size == 0)
        return tn_fail(TN_ERR_MODEL, "the %s of external data is not a number of bytes", what);
    *value = v;
    return TN_OK;
}

static bool key_is(tn_slice key, const char *name) {
    return key.size == strlen(name) && memcmp(key.data, name, key.size) == 0;
}

static tn_tensor *from_external(tn_onnx_source *s, const proto *p, const plan *q) {
    tn_slice location = {0}, bytes = {0};
    uint64_t offset = 0, length = q->bytes;
    for (size_t i = 0; i < p->count[P_EXTERNAL]; i++) {
        tn_wire w;
        tn_wire_field f;
        tn_slice key = {0}, value = {0};
        tn_wire_init(&w, p->external[i].data, p->external[i].size);
        while (tn_wire_next(&w, &f))
            if (f.key == TN_WIRE_KEY(1, TN_WIRE_BYTES))
                key = tn_wire_slice(&f);
            else if (f.key == TN_WIRE_KEY(2, TN_WIRE_BYTES))
                value = tn_wire_slice(&f);
        if (w.status != TN_OK)
            return NULL;
        if (key_is(key, "location"))
            location = value;
        else if (key_is(key, "offset") && decimal(value, "offset", &offset) != TN_OK)
            return NULL;
        else if (key_is(key, "length") && decimal(value, "length", &length) != TN_OK)
            return NULL;
    }
    if (!location.size) {
        tn_fail(TN_ERR_MODEL, "external data without a location");
        return NULL;
    }
    if (length != q->bytes) {
        tn_fail(TN_ERR_MODEL, "a tensor of %" PRId64 " elements of %s needs %zu bytes, its external data has %" PRIu64,
                q->n, tn_dtype_name(q->dtype), q->bytes, length);
        return NULL;
    }
    if (!s->external) {
        tn_fail(TN_ERR_MODEL, "external data '" TN_SLICE_FMT "' where none can be read", TN_SLICE_ARG(location));
        return NULL;
    }
    tn_mapping *mapping = NULL;
    if (s->external(s->ctx, location, &mapping, &bytes) != TN_OK)
        return NULL;
    if (offset > bytes.size || length > bytes.size - offset) {
        tn_fail(TN_ERR_MODEL,
                "external data '" TN_SLICE_FMT "' has %zu bytes, a tensor asks for %" PRIu64 " from byte %" PRIu64,
                TN_SLICE_ARG(location), bytes.size, length, offset);
        return NULL;
    }
    return over_bytes(s, p, q, mapping, (tn_slice){bytes.data + offset, q->bytes});
}

static tn_tensor *decode(tn_onnx_source *s, const proto *p, const plan *q) {
    switch (q->payload) {
    case P_EXTERNAL: return from_external(s, p, q);
    case P_RAW: return over_bytes(s, p, q, s->mapping, p->packed[P_RAW]);
    case P_COUNT: return tn_tensor_new(s->heap, q->dtype, p->rank, p->dims);
    default: return from_list(s, p, q);
    }
}

tn_tensor *tn_onnx_decode_tensor(tn_onnx_source *s, tn_slice message, tn_slice *name) {
    proto p;
    plan q;
    tn_tensor *t = NULL;
    tn_status status = read_proto(message, &p);
    if (status == TN_OK)
        status = check(&p, &q);
    if (status == TN_OK)
        status = admit(s, q.bytes);
    if (status == TN_OK)
        t = decode(s, &p, &q);
    if (!t)
        tn_fail_where("tensor '" TN_SLICE_FMT "'", TN_SLICE_ARG(p.name));
    if (name)
        *name = p.name;
    return t;
}

/* --- sparse ------------------------------------------------------------------------------------------------------------------- */

/* Where element `k` of the list stands in the dense tensor. */
static tn_status sparse_position(const tn_tensor *indices, int64_t k, int rank, const int64_t *dims, int64_t count,
                                 int64_t *at) {
    if (indices->rank == 1) {
        *at = tn_load_i64(TN_I64, indices->data, k);
        if (*at < 0 || *at >= count)
            return tn_fail(TN_ERR_MODEL, "index %" PRId64 " of a sparse tensor lies outside its %" PRId64 " elements",
                           *at, count);
        return TN_OK;
    }
    *at = 0;
    for (int d = 0; d < rank; d++) {
        int64_t i = tn_load_i64(TN_I64, indices->data, k * rank + d);
        if (i < 0 || i >= dims[d])
            return tn_fail(TN_ERR_MODEL, "index %" PRId64 " of a sparse tensor lies outside dimension %d of %" PRId64,
                           i, d, dims[d]);
        *at = *at * dims[d] + i;
    }
    return TN_OK;
}

tn_status tn_onnx_copy_element(tn_tensor *to, int64_t at, const tn_tensor *from, int64_t k) {
    tn_dtype dtype = (tn_dtype)to->dtype;
    size_t element = (size_t)tn_dtype_bits(dtype) / 8;
    tn_string s;
    if (dtype == TN_STRING) {
        TN_TRY(tn_tensor_get_string(from, k, &s));
        return tn_tensor_set_string(to, at, s.data, s.length);
    }
    if (!element) /* packed */
        tn_store_f64(dtype, to->data, at, tn_load_f64(dtype, from->data, k));
    else
        memcpy((uint8_t *)to->data + (size_t)at * element, (const uint8_t *)from->data + (size_t)k * element, element);
    return TN_OK;
}

static tn_status sparse_fill(tn_tensor *dense, const tn_tensor *values, const tn_tensor *indices) {
    for (int64_t k = 0; k < values->count; k++) {
        int64_t at;
        TN_TRY(sparse_position(indices, k, dense->rank, dense->dims, dense->count, &at));
        TN_TRY(tn_onnx_copy_element(dense, at, values, k));
    }
    return TN_OK;
}

/* Whether bytes made of those stored are too many, and more than are always allowed. */
static bool too_empty(uint64_t stored, uint64_t made, uint64_t always) {
    return made > always && (made - 1) / TN_ONNX_SPARSE_FACTOR >= stored;
}

static tn_tensor *densify(tn_onnx_source *s, const tn_tensor *values, const tn_tensor *indices, int rank,
                          const int64_t *dims, size_t stored) {
    tn_dtype dtype = (tn_dtype)values->dtype;
    int64_t count;
    size_t bytes;
    if (tn_dims_count(rank, dims, &count) != TN_OK || tn_dtype_bytes(dtype, count, &bytes) != TN_OK)
        return NULL;
    bool listed = !indices ? values->count == 0
                           : indices->dtype == TN_I64 && indices->rank >= 1 && indices->dims[0] == values->count &&
                                 (indices->rank == 1 || (indices->rank == 2 && indices->dims[1] == rank));
    if (values->rank != 1 || !listed) {
        tn_fail(TN_ERR_MODEL, "the indices of a sparse tensor must be i64[values] or i64[values, rank]");
        return NULL;
    }
    s->sparse_stored += stored;
    s->sparse_made += bytes < UINT64_MAX - s->sparse_made ? bytes : UINT64_MAX - s->sparse_made;
    if (too_empty(stored, bytes, (uint64_t)16 << 20) ||
        too_empty(s->sparse_stored, s->sparse_made, (uint64_t)64 << 20)) {
        tn_fail(TN_ERR_LIMIT, "a sparse tensor of %zu stored bytes would take %zu, with those before %" PRIu64, stored,
                bytes, s->sparse_made);
        return NULL;
    }
    if (admit(s, bytes) != TN_OK)
        return NULL;
    tn_tensor *dense = tn_tensor_create_in(s->heap, dtype, rank, dims); /* zeroed */
    if (dense && sparse_fill(dense, values, indices) != TN_OK) {
        tn_tensor_destroy(dense);
        return NULL;
    }
    return dense;
}

tn_tensor *tn_onnx_decode_sparse(tn_onnx_source *s, tn_slice message, tn_slice *name) {
    proto p = {0};
    tn_slice values = {0}, indices = {0}, label = {0};
    tn_wire w;
    tn_wire_field f;
    tn_wire_init(&w, message.data, message.size);
    while (tn_wire_next(&w, &f))
        switch (f.key) {
        case TN_WIRE_KEY(1, TN_WIRE_BYTES): values = tn_wire_slice(&f); break;
        case TN_WIRE_KEY(2, TN_WIRE_BYTES): indices = tn_wire_slice(&f); break;
        case TN_WIRE_KEY(3, TN_WIRE_VARINT):
        case TN_WIRE_KEY(3, TN_WIRE_BYTES):
            if (add_dims(&p, &f) != TN_OK)
                return NULL;
            break;
        default: break;
        }
    if (w.status != TN_OK)
        return NULL;
    tn_tensor *dense = NULL, *v = NULL, *i = NULL;
    if (!values.data)
        tn_fail(TN_ERR_MODEL, "a sparse tensor without values");
    else if ((v = tn_onnx_decode_tensor(s, values, &label)) != NULL &&
             (!indices.data || (i = tn_onnx_decode_tensor(s, indices, NULL)) != NULL))
        dense = densify(s, v, i, p.rank, p.dims, tn_tensor_bytes(v) + (i ? tn_tensor_bytes(i) : 0));
    if (!dense && v)
        tn_fail_where("sparse tensor '" TN_SLICE_FMT "'", TN_SLICE_ARG(label));
    tn_tensor_destroy(v);
    tn_tensor_destroy(i);
    if (name)
        *name = label;
    return dense;
}
