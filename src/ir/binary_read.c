/* Reading the binary form: the tables that nodes refer to, and the whole. */
#include "ir/binary_read.h"

#include <stdarg.h>
#include <stdio.h>

#include "ir/dim_work.h"
#include "ir/verify.h"

tn_cursor tn_reader_cursor(const tn_binary_reader *r, tn_section kind) {
    const tn_section_view *s = &r->section[kind];
    return (tn_cursor){.at = s->data, .end = s->data + s->size};
}

tn_status tn_reader_fail(tn_section kind, uint32_t record, const char *format, ...) {
    char what[512];
    va_list args;
    va_start(args, format);
    if (vsnprintf(what, sizeof what, format, args) < 0)
        what[0] = '\0';
    va_end(args);
    return tn_fail(TN_ERR_MODEL, "record %u of section '%s': %s", record, tn_binary_kinds[kind].code, what);
}

tn_status tn_reader_end(const tn_cursor *c, tn_section kind) {
    if (c->bad || c->at != c->end)
        return tn_fail(TN_ERR_MODEL, "section '%s' does not hold what its records say", tn_binary_kinds[kind].code);
    return TN_OK;
}

/* What a table of the file maps numbers to; number 0 is there. */
static void *make_table(tn_binary_reader *r, tn_section kind, size_t size) {
    return tn_alloc_array(r->heap, (size_t)tn_reader_count(r, kind) + 1, size);
}

/* --- strings, operators --------------------------------------------------------------------------------------------------- */

/* Numbers of strings are their ids. */
static tn_status read_strings(tn_binary_reader *r) {
    uint32_t count = tn_reader_count(r, TN_SECTION_STRINGS), wrong;
    tn_cursor c = tn_reader_cursor(r, TN_SECTION_STRINGS);
    const uint8_t *lengths = tn_cursor_bytes(&c, count * (size_t)4); /* that many are there */
    if (!tn_strings_load(&r->g->strings, count, lengths, (const char *)c.at, tn_cursor_left(&c), &wrong))
        return wrong ? tn_reader_fail(TN_SECTION_STRINGS, wrong,
                                      "it is empty, holds a zero byte, has no end, or is not in order")
                     : tn_error_status();
    return TN_OK;
}

/* A row by name, from the table or made. *op NULL: there is none. */
static tn_status find_op(tn_binary_reader *r, const char *name, size_t length, const tn_op **op) {
    if (length == strlen(tn_op_return.name) && memcmp(name, tn_op_return.name, length) == 0) {
        *op = &tn_op_return;
        return TN_OK;
    }
    *op = tn_op_find(r->ops, name, length);
    if (!*op && r->options && r->options->unknown_op)
        return r->options->unknown_op(r->g, name, length, op);
    return TN_OK;
}

/* All that is missing is said at once. */
static tn_status read_op_list(tn_binary_reader *r, tn_text *missing) {
    uint32_t count = tn_reader_count(r, TN_SECTION_OPS), bad = 0;
    tn_cursor c = tn_reader_cursor(r, TN_SECTION_OPS);
    r->op = make_table(r, TN_SECTION_OPS, sizeof *r->op);
    if (!r->op)
        return tn_error_status();
    for (uint32_t i = 0; i < count; i++) {
        uint32_t version = tn_cursor_u32(&c), length = tn_cursor_u32(&c);
        const char *name = (const char *)tn_cursor_bytes(&c, length);
        if (!name)
            break;
        if (!length || memchr(name, '\0', length))
            return tn_reader_fail(TN_SECTION_OPS, i, "an operator's name is empty or holds a zero byte");
        TN_TRY(find_op(r, name, length, &r->op[i]));
        const tn_op *op = r->op[i];
        uint32_t known = !op || !op->version ? 1 : op->version;
        if (op && version == known)
            continue;
        bad++;
        if (bad <= 20)
            tn_text_printf(missing, "%s'%.*s'", bad > 1 ? ", " : "", (int)(length < 80 ? length : 80), name);
        if (bad <= 20 && op)
            tn_text_printf(missing, " of version %u (this library has version %u)", version, known);
    }
    TN_TRY(tn_reader_end(&c, TN_SECTION_OPS));
    if (missing->failed)
        return tn_error_status();
    if (!bad)
        return TN_OK;
    return tn_fail(TN_ERR_UNSUPPORTED, "not supported: %u operator%s: %s%s", bad, bad > 1 ? "s" : "", missing->data,
                   bad > 20 ? " and others" : "");
}

static tn_status read_ops(tn_binary_reader *r) {
    tn_text missing;
    tn_text_init(&missing, r->heap);
    tn_status status = read_op_list(r, &missing);
    tn_text_free(&missing);
    return status;
}

/* --- symbols, dimensions, types ------------------------------------------------------------------------------------------------- */

/* Bounds are set when all expressions are read: they stand as they were written, whatever bounds would simplify. */
static tn_status read_symbols(tn_binary_reader *r) {
    tn_dims *dims = &r->g->dims;
    tn_dim_work work = {dims, TN_DIM_FINE};
    tn_cursor c = tn_reader_cursor(r, TN_SECTION_SYMBOLS);
    for (uint32_t i = 0; i < tn_reader_count(r, TN_SECTION_SYMBOLS); i++) {
        int64_t low = (int64_t)tn_cursor_u64(&c), high = (int64_t)tn_cursor_u64(&c);
        uint32_t fresh = tn_cursor_u32(&c), length = tn_cursor_u32(&c), number = 0;
        const char *name = (const char *)tn_cursor_bytes(&c, length);
        if (!name)
            break;
        if (!length || memchr(name, '\0', length) || fresh > 1 ||
            (fresh && !tn_dim_name_is_fresh(name, length, &number)))
            return tn_reader_fail(TN_SECTION_SYMBOLS, i, "the name of a symbol is malformed");
        if (low > high || (!fresh && low < 0))
            return tn_reader_fail(TN_SECTION_SYMBOLS, i, "the bounds of a symbol hold no size");
        uint32_t id = tn_dimw_symbol(&work, name, length, fresh != 0);
        if (!id)
            return tn_dimw_report(&work);
        if (dims->symbol.len != i + 1)
            return tn_reader_fail(TN_SECTION_SYMBOLS, i, "a symbol is there twice");
        if (number > dims->fresh)
            dims->fresh = number;
        if (fresh) {
            dims->symbol.data[i].low = INT64_MIN;
            dims->symbol.data[i].high = INT64_MAX;
        }
    }
    return tn_reader_end(&c, TN_SECTION_SYMBOLS);
}

static void set_bounds(tn_binary_reader *r) {
    tn_cursor c = tn_reader_cursor(r, TN_SECTION_SYMBOLS);
    for (uint32_t i = 0; i < tn_reader_count(r, TN_SECTION_SYMBOLS); i++) {
        tn_dim_sym *s = &r->g->dims.symbol.data[i];
        s->low = (int64_t)tn_cursor_u64(&c);
        s->high = (int64_t)tn_cursor_u64(&c);
        (void)tn_cursor_u32(&c);
        (void)tn_cursor_bytes(&c, tn_cursor_u32(&c));
    }
}

static tn_status read_dims(tn_binary_reader *r) {
    tn_cursor c = tn_reader_cursor(r, TN_SECTION_DIMS);
    uint32_t symbols = r->g->dims.symbol.len;
    r->dim = make_table(r, TN_SECTION_DIMS, sizeof *r->dim);
    if (!r->dim)
        return tn_error_status();
    for (uint32_t i = 1; i <= tn_reader_count(r, TN_SECTION_DIMS) && !c.bad; i++) {
        uint32_t length = tn_cursor_u32(&c);
        if (length == UINT32_MAX) {
            r->dim[i] = tn_dim_const(r->g, (int64_t)tn_cursor_u64(&c));
            if (!r->dim[i].id)
                return tn_error_status();
            continue;
        }
        const char *text = (const char *)tn_cursor_bytes(&c, length);
        size_t used = 0;
        if (!text)
            break;
        r->dim[i] = tn_dim_parse(r->g, text, length, &used);
        if (!r->dim[i].id)
            return tn_error_status();
        if (used != length || r->g->dims.symbol.len != symbols)
            return tn_reader_fail(TN_SECTION_DIMS, i,
                                  "it is no dimension, or has a symbol that section 'SYMB' has not");
    }
    return tn_reader_end(&c, TN_SECTION_DIMS);
}

static tn_status read_type(tn_binary_reader *r, tn_cursor *c, uint32_t i) {
    const uint8_t *head = tn_cursor_bytes(c, 4);
    uint32_t element = tn_cursor_u32(c);
    tn_dim dims[TN_MAX_RANK];
    if (c->bad)
        return TN_OK; /* the caller sees it */
    tn_kind kind = (tn_kind)head[0];
    tn_dtype dtype = (tn_dtype)head[1];
    int rank = (int8_t)head[2];
    bool tensor = head[0] == TN_KIND_TENSOR;
    if (head[0] > TN_KIND_MAP || head[1] >= TN_DTYPE_COUNT || rank < -1 || rank > TN_MAX_RANK || element >= i ||
        (tensor ? element != 0 : rank != -1) || r->type_depth[element] > TN_MAX_NESTING)
        return tn_reader_fail(TN_SECTION_TYPES, i, "a type that does not exist");
    for (int k = 0; k < rank; k++) {
        uint32_t dim = tn_cursor_u32(c);
        if (!dim || dim > tn_reader_count(r, TN_SECTION_DIMS))
            return tn_reader_fail(TN_SECTION_TYPES, i, "size %d is none of section 'DIMS'", k);
        dims[k] = r->dim[dim];
    }
    r->type_depth[i] = (uint8_t)(r->type_depth[element] + 1);
    switch (kind) {
    case TN_KIND_TENSOR: r->type[i] = tn_type_tensor(r->g, dtype, rank, dims); break;
    case TN_KIND_SEQUENCE: r->type[i] = tn_type_sequence(r->g, r->type[element]); break;
    case TN_KIND_OPTIONAL: r->type[i] = tn_type_optional(r->g, r->type[element]); break;
    case TN_KIND_MAP: r->type[i] = tn_type_map(r->g, dtype, r->type[element]); break;
    }
    return tn_graph_check(r->g);
}

static tn_status read_types(tn_binary_reader *r) {
    tn_cursor c = tn_reader_cursor(r, TN_SECTION_TYPES);
    r->type = make_table(r, TN_SECTION_TYPES, sizeof *r->type);
    r->type_depth = make_table(r, TN_SECTION_TYPES, 1);
    if (!r->type || !r->type_depth)
        return tn_error_status();
    for (uint32_t i = 1; i <= tn_reader_count(r, TN_SECTION_TYPES) && !c.bad; i++)
        TN_TRY(read_type(r, &c, i));
    return tn_reader_end(&c, TN_SECTION_TYPES);
}

/* --- origins ---------------------------------------------------------------------------------------------------------------------- */

/* Numbers of origins and locations are their indices. */
static tn_status read_origins(tn_binary_reader *r) {
    tn_graph *g = r->g;
    tn_cursor c = tn_reader_cursor(r, TN_SECTION_ORIGINS);
    uint32_t count = tn_reader_count(r, TN_SECTION_ORIGINS), strings = tn_reader_count(r, TN_SECTION_STRINGS);
    if (!tn_vec_reserve(r->heap, &g->origin, count))
        return tn_error_status();
    for (uint32_t i = 1; i <= count; i++) {
        uint32_t what = tn_cursor_u32(&c), name = tn_cursor_u32(&c), file = tn_cursor_u32(&c), line = tn_cursor_u32(&c);
        tn_origin o = {what, name, file, line};
        if (o.what > strings || o.name > strings || o.file > strings)
            return tn_reader_fail(TN_SECTION_ORIGINS, i, "a name that section 'STRS' has not");
        g->origin.data[g->origin.len++] = o;
    }
    return tn_reader_end(&c, TN_SECTION_ORIGINS);
}

static tn_status read_locations(tn_binary_reader *r) {
    tn_graph *g = r->g;
    tn_cursor c = tn_reader_cursor(r, TN_SECTION_LOCATIONS);
    uint32_t count = tn_reader_count(r, TN_SECTION_LOCATIONS);
    uint64_t numbers = tn_cursor_left(&c) / 4;
    if (numbers < count)
        return tn_reader_fail(TN_SECTION_LOCATIONS, count, "more locations than are there");
    if (!tn_vec_reserve(r->heap, &g->location, count) ||
        !tn_vec_reserve(r->heap, &g->origin_list, (uint32_t)(numbers - count)))
        return tn_error_status();
    for (uint32_t i = 1; i <= count && !c.bad; i++) {
        uint32_t n = tn_cursor_u32(&c);
        if (n == 0 || n > 16)
            return tn_reader_fail(TN_SECTION_LOCATIONS, i, "a location of %u origins, not 1 to 16", n);
        if (n + (uint64_t)(count - i) >
            tn_cursor_left(&c) / 4) /* each that follows begins with its number of origins */
            return tn_reader_fail(TN_SECTION_LOCATIONS, i, "more origins than are there");
        g->location.data[g->location.len++] = (tn_location_set){g->origin_list.len, n};
        for (uint32_t k = 0; k < n; k++) {
            uint32_t origin = tn_cursor_u32(&c);
            if (!origin || origin >= g->origin.len)
                return tn_reader_fail(TN_SECTION_LOCATIONS, i, "an origin that section 'ORIG' has not");
            g->origin_list.data[g->origin_list.len++] = origin;
        }
    }
    return tn_reader_end(&c, TN_SECTION_LOCATIONS);
}

/* --- tensors ---------------------------------------------------------------------------------------------------------------------- */

static tn_tensor *read_texts(tn_binary_reader *r, tn_cursor *c, uint32_t i, int rank, const int64_t *dims) {
    int64_t count;
    if (tn_dims_count(rank, dims, &count) != TN_OK)
        return NULL;
    if ((uint64_t)count > tn_cursor_left(c) / 4) {
        tn_reader_fail(TN_SECTION_TENSORS, i, "a tensor of more strings than are there");
        return NULL;
    }
    tn_tensor *t = tn_tensor_new(r->heap, TN_STRING, rank, dims);
    for (int64_t k = 0; k < count && t; k++) {
        uint32_t length = tn_cursor_u32(c);
        const char *text = (const char *)tn_cursor_bytes(c, length);
        if (text && tn_tensor_set_string(t, k, text, length) == TN_OK)
            continue;
        if (!text)
            tn_reader_fail(TN_SECTION_TENSORS, i, "a string that is longer than what is there");
        tn_tensor_destroy(t);
        t = NULL;
    }
    return t;
}

static tn_status read_tensor(tn_binary_reader *r, tn_cursor *c, uint32_t i) {
    int64_t dims[TN_MAX_RANK], count;
    const uint8_t *head = tn_cursor_bytes(c, 4);
    uint32_t number = tn_cursor_u32(c);
    if (c->bad)
        return TN_OK; /* the caller sees it */
    tn_dtype dtype = (tn_dtype)head[0];
    int rank = head[1];
    size_t bytes;
    if (!head[0] || head[0] >= TN_DTYPE_COUNT || rank > TN_MAX_RANK)
        return tn_reader_fail(TN_SECTION_TENSORS, i, "an element type or rank that does not exist");
    for (int k = 0; k < rank; k++) {
        dims[k] = (int64_t)tn_cursor_u64(c);
        if (dims[k] < 0)
            return tn_reader_fail(TN_SECTION_TENSORS, i, "size %d is negative", k);
    }
    if (c->bad)
        return TN_OK;
    if (dtype == TN_STRING) {
        r->tensor[i] = read_texts(r, c, i, rank, dims);
        return r->tensor[i] ? TN_OK : tn_error_status();
    }
    tn_section_view blob;
    uint64_t checksum;
    if (!number)
        return tn_reader_fail(TN_SECTION_TENSORS, i, "a tensor without bytes");
    TN_TRY(tn_binary_blob(r->section, number - 1, &blob, &checksum));
    TN_TRY(tn_dims_count(rank, dims, &count));
    TN_TRY(tn_dtype_bytes(dtype, count, &bytes));
    if (blob.size != bytes)
        return tn_reader_fail(TN_SECTION_TENSORS, i, "a tensor of %zu bytes with %zu given", bytes, blob.size);
    r->tensor[i] = tn_tensor_mapped(r->heap, dtype, rank, dims, r->mapping, blob.data);
    return r->tensor[i] ? TN_OK : tn_error_status();
}

static tn_status read_tensors(tn_binary_reader *r) {
    tn_cursor c = tn_reader_cursor(r, TN_SECTION_TENSORS);
    r->tensor = make_table(r, TN_SECTION_TENSORS, sizeof(tn_tensor *));
    if (!r->tensor)
        return tn_error_status();
    for (uint32_t i = 1; i <= tn_reader_count(r, TN_SECTION_TENSORS) && !c.bad; i++)
        TN_TRY(read_tensor(r, &c, i));
    return tn_reader_end(&c, TN_SECTION_TENSORS);
}

/* --- the whole -------------------------------------------------------------------------------------------------------------------- */

static tn_status read_all(tn_binary_reader *r, const void *bytes, size_t size) {
    TN_TRY(tn_binary_open(bytes, size, r->section));
    uint64_t limit = r->options ? r->options->max_nodes : 0;
    if (limit && tn_reader_count(r, TN_SECTION_NODES) > limit)
        return tn_fail(TN_ERR_LIMIT, "the graph has %u nodes, more than the limit",
                       tn_reader_count(r, TN_SECTION_NODES));
    r->g = tn_graph_new(r->heap, r->ops);
    if (!r->g)
        return tn_error_status();
    TN_TRY(read_strings(r));
    TN_TRY(read_ops(r));
    TN_TRY(read_symbols(r));
    TN_TRY(read_dims(r));
    TN_TRY(read_types(r));
    TN_TRY(read_origins(r));
    TN_TRY(read_locations(r));
    TN_TRY(read_tensors(r));
    set_bounds(r);
    TN_TRY(tn_reader_structure(r));
    tn_graph_insert_at_end(r->g, tn_graph_region(r->g));
    return tn_graph_verify_settle(r->g);
}

static void reader_free(tn_binary_reader *r) {
    for (uint32_t i = 1; r->tensor && i <= tn_reader_count(r, TN_SECTION_TENSORS); i++)
        tn_tensor_destroy(r->tensor[i]);
    tn_free(r->heap, r->tensor);
    tn_free(r->heap, r->dim);
    tn_free(r->heap, r->type);
    tn_free(r->heap, r->type_depth);
    tn_free(r->heap, r->op);
}

tn_graph *tn_graph_read_binary_from(tn_heap *heap, const tn_op_table *ops, const void *bytes, size_t size,
                                    tn_mapping *mapping, const tn_binary_options *options) {
    if (!bytes) {
        tn_fail(TN_ERR_USAGE, "the bytes of a saved graph are NULL");
        return NULL;
    }
    tn_binary_reader r = {.heap = heap, .ops = ops, .options = options, .mapping = mapping};
    tn_status status = read_all(&r, bytes, size);
    if (status != TN_OK && mapping)
        tn_fail_where("file %s", tn_mapping_path(mapping));
    tn_error_record error;
    if (status != TN_OK)
        tn_error_save(&error);
    reader_free(&r);
    if (status == TN_OK)
        return r.g;
    tn_graph_destroy(r.g);
    tn_error_restore(&error);
    return NULL;
}

tn_graph *tn_graph_read_binary(tn_heap *heap, const tn_op_table *ops, tn_mapping *mapping) {
    if (!mapping) {
        tn_fail(TN_ERR_USAGE, "the file of a saved graph is NULL");
        return NULL;
    }
    return tn_graph_read_binary_from(heap, ops, tn_mapping_data(mapping), tn_mapping_size(mapping), mapping, NULL);
}
