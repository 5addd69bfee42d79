/* Writing the binary form: section after section into a file that appears whole or not at all. */
#include "ir/binary_write.h"

#include "base/checksum.h"
#include "base/os.h"

#define BUFFER ((size_t)1 << 16)

typedef struct writer {
    tn_numbers n;
    const tn_graph *g;
    tn_file_writer *file;
    tn_status status; /* the first failure; its error is set, and then nothing is written any more */
    uint8_t *buffer;
    size_t fill;
    uint64_t at;          /* bytes written, the buffer's included */
    uint64_t start;       /* of the section */
    tn_checksum sum;      /* of the section, unless `lazy` */
    tn_checksum blob_sum; /* of the blob that is being written */
    bool lazy, in_blob;
    uint8_t table[TN_SECTION_COUNT * TN_BINARY_ENTRY];
    uint32_t sections;
    tn_text text; /* scratch */
} writer;

static tn_status fail(writer *w, tn_status status) {
    if (w->status == TN_OK)
        w->status = status;
    return w->status;
}

static void flush(writer *w) {
    if (w->fill && w->status == TN_OK)
        fail(w, tn_file_writer_write(w->file, w->buffer, w->fill));
    w->fill = 0;
}

static void put(writer *w, const void *bytes, size_t size) {
    if (!size || w->status != TN_OK)
        return;
    if (!w->lazy)
        tn_checksum_add(&w->sum, bytes, size);
    if (w->in_blob)
        tn_checksum_add(&w->blob_sum, bytes, size);
    w->at += size;
    if (size > BUFFER - w->fill) {
        flush(w);
        if (size >= BUFFER) {
            if (w->status == TN_OK)
                fail(w, tn_file_writer_write(w->file, bytes, size));
            return;
        }
    }
    memcpy(w->buffer + w->fill, bytes, size);
    w->fill += size;
}

static void put32(writer *w, uint32_t x) {
    put(w, &x, sizeof x);
}

static void put64(writer *w, uint64_t x) {
    put(w, &x, sizeof x);
}

/* A length and its bytes. */
static void put_bytes(writer *w, const char *bytes, size_t size) {
    if (size >= UINT32_MAX) {
        fail(w, tn_fail(TN_ERR_LIMIT, "too large for the binary form: a string of %zu bytes", size));
        return;
    }
    put32(w, (uint32_t)size);
    put(w, bytes, size);
}

static void put_zeros_to(writer *w, uint64_t multiple) {
    static const uint8_t zero[TN_BINARY_ALIGN];
    put(w, zero, (size_t)((multiple - w->at % multiple) % multiple));
}

/* --- sections ----------------------------------------------------------------------------------------------------------------- */

static void begin(writer *w) {
    put_zeros_to(w, TN_BINARY_ALIGN);
    tn_checksum_begin(&w->sum);
    w->start = w->at;
}

static void end(writer *w, tn_section kind, uint64_t count) {
    bool lazy = kind == TN_SECTION_WEIGHTS;
    const struct {
        char code[4];
        uint32_t flags;
        uint64_t offset, size, count, checksum;
        uint32_t align, zero;
    } entry = {.flags = TN_SECTION_REQUIRED | (lazy ? TN_SECTION_LAZY : 0),
               .offset = w->start,
               .size = w->at - w->start,
               .count = count,
               .checksum = lazy ? 0 : tn_checksum_end(&w->sum),
               .align = TN_BINARY_ALIGN};
    _Static_assert(sizeof entry == TN_BINARY_ENTRY, "the layout of an entry");
    uint8_t *to = w->table + w->sections++ * TN_BINARY_ENTRY;
    memcpy(to, &entry, sizeof entry);
    memcpy(to, tn_binary_kinds[kind].code, 4);
}

static void write_strings(writer *w) {
    const tn_strings *s = &w->g->strings;
    const tn_u32_vec *ids = &w->n.string.ids;
    begin(w);
    for (uint32_t i = 0; i < ids->len; i++)
        put32(w, tn_strings_length(s, ids->data[i]));
    for (uint32_t i = 0; i < ids->len; i++) /* with the NUL */
        put(w, tn_strings_text(s, ids->data[i]), (size_t)tn_strings_length(s, ids->data[i]) + 1);
    end(w, TN_SECTION_STRINGS, ids->len);
}

static void write_ops(writer *w) {
    begin(w);
    for (uint32_t i = 0; i < w->n.op.len; i++) {
        const tn_op *op = w->n.op.data[i];
        put32(w, op->version ? op->version : 1);
        put_bytes(w, op->name, strlen(op->name));
    }
    end(w, TN_SECTION_OPS, w->n.op.len);
}

static void write_symbols(writer *w) {
    const tn_dims *dims = &w->g->dims;
    uint32_t count = 0;
    begin(w);
    for (uint32_t i = 0; i < dims->symbol.len; i++) {
        const tn_dim_sym *s = &dims->symbol.data[i];
        if (!w->n.symbol_used[i])
            continue;
        count++;
        put64(w, (uint64_t)s->low);
        put64(w, (uint64_t)s->high);
        put32(w, s->fresh);
        put_bytes(w, tn_strings_text(&dims->strings, s->name), tn_strings_length(&dims->strings, s->name));
    }
    end(w, TN_SECTION_SYMBOLS, count);
}

static void write_dims(writer *w) {
    const tn_dims *dims = &w->g->dims;
    const tn_u32_vec *ids = &w->n.dim.ids;
    begin(w);
    for (uint32_t i = 0; i < ids->len; i++) {
        const tn_dim_expr *e = &dims->expr.data[ids->data[i]];
        if (e->kind == TN_DIM_CONST) {
            put32(w, UINT32_MAX);
            put64(w, (uint64_t)e->constant);
            continue;
        }
        w->text.len = 0;
        tn_dim_print(dims, (tn_dim){ids->data[i]}, &w->text);
        if (w->text.failed)
            fail(w, TN_ERR_MEMORY);
        else
            put_bytes(w, w->text.data, w->text.len);
    }
    end(w, TN_SECTION_DIMS, ids->len);
}

static void write_types(writer *w) {
    const tn_graph *g = w->g;
    const tn_u32_vec *ids = &w->n.type.ids;
    begin(w);
    for (uint32_t i = 0; i < ids->len; i++) {
        const tn_type_rec *t = &g->type.data[ids->data[i]];
        const uint8_t head[4] = {t->kind, t->dtype, (uint8_t)t->rank, 0};
        put(w, head, sizeof head);
        put32(w, w->n.type.of[t->element]);
        for (int k = 0; k < t->rank; k++)
            put32(w, w->n.dim.of[g->dim_list.data[t->dims + (uint32_t)k].id]);
    }
    end(w, TN_SECTION_TYPES, ids->len);
}

static void write_origins(writer *w) {
    const tn_graph *g = w->g;
    const tn_u32_vec *ids = &w->n.origin.ids;
    begin(w);
    for (uint32_t i = 0; i < ids->len; i++) {
        const tn_origin *o = &g->origin.data[ids->data[i]];
        put32(w, w->n.string.of[o->what]);
        put32(w, w->n.string.of[o->name]);
        put32(w, w->n.string.of[o->file]);
        put32(w, o->line);
    }
    end(w, TN_SECTION_ORIGINS, ids->len);
    ids = &w->n.location.ids;
    begin(w);
    for (uint32_t i = 0; i < ids->len; i++) {
        tn_location_set set = g->location.data[ids->data[i]];
        put32(w, set.count);
        for (uint32_t k = 0; k < set.count; k++)
            put32(w, w->n.origin.of[g->origin_list.data[set.first + k]]);
    }
    end(w, TN_SECTION_LOCATIONS, ids->len);
}

static void write_values(writer *w) {
    const tn_graph *g = w->g;
    const tn_u32_vec *ids = &w->n.value.ids;
    begin(w);
    for (uint32_t i = 0; i < ids->len; i++) {
        const tn_value_rec *v = &g->value.data[ids->data[i]];
        put32(w, w->n.type.of[v->type]);
        put32(w, w->n.string.of[v->name]);
    }
    end(w, TN_SECTION_VALUES, ids->len);
    begin(w);
    for (uint32_t i = 0; i < w->n.held.len; i++) {
        const tn_value_rec *v = &g->value.data[w->n.held.data[i]];
        put32(w, w->n.value.of[w->n.held.data[i]]);
        put32(w, (uint32_t)v->contents_count);
        for (int32_t k = 0; k < v->contents_count; k++)
            put32(w, w->n.dim.of[g->dim_list.data[v->contents + (uint32_t)k].id]);
    }
    end(w, TN_SECTION_HELD, w->n.held.len);
}

static void write_regions(writer *w) {
    const tn_u32_vec *ids = &w->n.region.ids;
    begin(w);
    for (uint32_t i = 0; i < ids->len; i++) {
        const tn_u32_vec *args = &w->g->region.data[ids->data[i]].args;
        put32(w, args->len ? w->n.value.of[args->data[0]] : 0);
        put32(w, args->len);
    }
    end(w, TN_SECTION_REGIONS, ids->len);
}

/* --- nodes ---------------------------------------------------------------------------------------------------------------------- */

static void write_attr(writer *w, const tn_attr *a) {
    put32(w, w->n.string.of[a->name]);
    put32(w, a->kind);
    switch ((tn_attr_kind)a->kind) {
    case TN_ATTR_NONE: break;
    case TN_ATTR_INT:
    case TN_ATTR_DTYPE:
    case TN_ATTR_FUNCTION: put64(w, (uint64_t)a->as.i); break;
    case TN_ATTR_FLOAT: put(w, &a->as.f, sizeof a->as.f); break;
    case TN_ATTR_STRING: put_bytes(w, a->as.s.data, a->as.s.length); break;
    case TN_ATTR_INTS:
        put32(w, a->count);
        put(w, a->as.ints, a->count * sizeof *a->as.ints);
        break;
    case TN_ATTR_FLOATS:
        put32(w, a->count);
        put(w, a->as.floats, a->count * sizeof *a->as.floats);
        break;
    case TN_ATTR_STRINGS:
        put32(w, a->count);
        for (uint32_t i = 0; i < a->count; i++)
            put_bytes(w, a->as.strings[i].data, a->as.strings[i].length);
        break;
    case TN_ATTR_DIMS:
        put32(w, a->count);
        for (uint32_t i = 0; i < a->count; i++)
            put32(w, w->n.dim.of[a->as.dims[i].id]);
        break;
    case TN_ATTR_TENSOR: put32(w, tn_numbers_tensor(&w->n, a->as.tensor)); break;
    case TN_ATTR_TYPE: put32(w, w->n.type.of[a->as.type.id]); break;
    }
}

static void write_nodes(writer *w) {
    const tn_graph *g = w->g;
    const tn_u32_vec *ids = &w->n.node.ids;
    begin(w);
    for (uint32_t i = 0; i < ids->len; i++) {
        const tn_node_rec *node = &g->node.data[ids->data[i]];
        const uint32_t head[11] = {tn_numbers_op(&w->n, node->op),
                                   w->n.string.of[node->name],
                                   w->n.location.of[node->location],
                                   w->n.region.of[node->region],
                                   node->role | (uint32_t)node->placement << 16,
                                   node->output_count ? w->n.value.of[node->outputs] : 0,
                                   node->output_count,
                                   node->input_count,
                                   node->region_count,
                                   node->control_count,
                                   node->attr_count};
        put(w, head, sizeof head);
        for (uint32_t k = 0; k < node->input_count; k++)
            put32(w, w->n.value.of[g->operand.data[node->inputs + k].value]);
        for (uint32_t k = 0; k < node->region_count; k++)
            put32(w, w->n.region.of[g->region_list.data[node->regions + k]]);
        for (uint32_t k = 0; k < node->control_count; k++)
            put32(w, w->n.node.of[g->control_list.data[node->control + k]]);
        for (uint32_t k = 0; k < node->attr_count; k++)
            write_attr(w, &node->attrs[k]);
    }
    end(w, TN_SECTION_NODES, ids->len);
}

/* Functions, names of outputs, defaults, metadata. */
static void write_face(writer *w) {
    const tn_graph *g = w->g;
    begin(w);
    for (uint32_t i = 0; i < g->function.len; i++) {
        put32(w, w->n.string.of[g->function.data[i].name]);
        put32(w, w->n.region.of[g->function.data[i].region]);
    }
    end(w, TN_SECTION_FUNCTIONS, g->function.len);
    begin(w);
    for (uint32_t i = 0; i < g->output_name.len; i++)
        put32(w, w->n.string.of[g->output_name.data[i]]);
    end(w, TN_SECTION_OUTPUTS, g->output_name.len);
    begin(w);
    for (uint32_t i = 0; i < g->input_default.len; i++) {
        put32(w, w->n.value.of[g->input_default.data[i].value]);
        put32(w, tn_numbers_tensor(&w->n, g->input_default.data[i].tensor));
    }
    end(w, TN_SECTION_DEFAULTS, g->input_default.len);
    begin(w);
    for (uint32_t i = 0; i < g->metadata.len; i++) {
        uint32_t value = g->metadata.data[i].value;
        put32(w, w->n.string.of[g->metadata.data[i].key]);
        put_bytes(w, tn_strings_text(&g->strings, value), tn_strings_length(&g->strings, value));
    }
    end(w, TN_SECTION_METADATA, g->metadata.len);
}

/* --- tensors -------------------------------------------------------------------------------------------------------------------- */

static void write_tensors(writer *w) {
    begin(w);
    for (uint32_t i = 0; i < w->n.tensor.len; i++) {
        const tn_tensor *t = w->n.tensor.data[i];
        const uint8_t head[4] = {t->dtype, t->rank};
        put(w, head, sizeof head);
        put32(w, w->n.tensor_blob.data[i]);
        put(w, t->dims, t->rank * sizeof *t->dims);
        for (int64_t k = 0; t->dtype == TN_STRING && k < t->count && w->status == TN_OK; k++) {
            tn_string s = {0};
            fail(w, tn_tensor_get_string(t, k, &s));
            put_bytes(w, s.data, s.length);
        }
    }
    end(w, TN_SECTION_TENSORS, w->n.tensor.len);
}

typedef struct strided {
    writer *w;
    size_t element;
} strided;

static void put_row(void *ctx, int64_t count, void *const *data, const int64_t *strides) {
    const strided *s = ctx;
    const char *from = data[0];
    for (int64_t i = 0; i < count; i++)
        put(s->w, from + i * strides[0] * (int64_t)s->element, s->element);
}

static void write_blob(writer *w, tn_blob *blob) {
    const tn_tensor *t = blob->tensor;
    put_zeros_to(w, TN_BINARY_ALIGN);
    blob->offset = w->at - w->start;
    tn_checksum_begin(&w->blob_sum);
    w->in_blob = true;
    if (t->contiguous) {
        put(w, t->data, (size_t)blob->bytes);
    } else { /* never of less than a byte for an element */
        strided s = {w, (size_t)tn_dtype_bits((tn_dtype)t->dtype) / 8};
        tn_walk(t->rank, t->dims, 1, &(tn_walk_operand){t->data, t->strides, s.element}, put_row, &s);
    }
    w->in_blob = false;
    blob->checksum = tn_checksum_end(&w->blob_sum);
}

/* The blobs of one section. What is mapped must still be what was loaded. */
static void write_blobs(writer *w, bool small) {
    const tn_mapping *unchanged = NULL;
    begin(w);
    w->lazy = !small;
    for (uint32_t i = 0; i < w->n.blob.len && w->status == TN_OK; i++) {
        tn_blob *blob = &w->n.blob.data[i];
        const tn_mapping *mapping = blob->tensor->storage ? blob->tensor->storage->mapping : NULL;
        if ((blob->bytes <= TN_BINARY_SMALL) != small)
            continue;
        if (mapping && mapping != unchanged && !tn_mapping_unchanged(mapping))
            fail(w, tn_fail(TN_ERR_IO, "'%s', from which weights are to be written, has changed since it was loaded",
                            tn_mapping_path(mapping)));
        unchanged = mapping;
        write_blob(w, blob);
    }
    w->lazy = false;
    end(w, small ? TN_SECTION_DATA : TN_SECTION_WEIGHTS, 0);
}

static void write_blob_table(writer *w) {
    begin(w);
    for (uint32_t i = 0; i < w->n.blob.len; i++) {
        const tn_blob *blob = &w->n.blob.data[i];
        put64(w, blob->bytes > TN_BINARY_SMALL);
        put64(w, blob->offset);
        put64(w, blob->bytes);
        put64(w, blob->checksum);
    }
    end(w, TN_SECTION_BLOBS, w->n.blob.len);
}

/* --- the whole ------------------------------------------------------------------------------------------------------------------ */

static void make_header(uint8_t header[TN_BINARY_HEADER]) {
    const uint32_t endian = TN_BINARY_ENDIAN;
    const uint16_t version[2] = {TN_BINARY_MAJOR, TN_BINARY_MINOR};
    memset(header, 0, TN_BINARY_HEADER);
    memcpy(header, TN_BINARY_MAGIC, 8);
    memcpy(header + 8, &endian, sizeof endian);
    memcpy(header + 12, version, sizeof version);
}

/* The table of sections and the footer that finds it. */
static void write_end(writer *w, const uint8_t header[TN_BINARY_HEADER]) {
    put_zeros_to(w, TN_BINARY_ALIGN);
    uint64_t table = w->at;
    size_t size = w->sections * (size_t)TN_BINARY_ENTRY;
    put(w, w->table, size);
    uint8_t footer[TN_BINARY_FOOTER] = {0};
    uint64_t file = w->at + TN_BINARY_FOOTER, sections = w->sections;
    memcpy(footer, &table, 8);
    memcpy(footer + 8, &sections, 8);
    memcpy(footer + 16, &file, 8);
    tn_checksum sum;
    tn_checksum_begin(&sum);
    tn_checksum_add(&sum, header, TN_BINARY_HEADER);
    tn_checksum_add(&sum, w->table, size);
    tn_checksum_add(&sum, footer, 48);
    uint64_t checksum = tn_checksum_end(&sum);
    memcpy(footer + 48, &checksum, 8);
    memcpy(footer + 56, TN_BINARY_TAIL, 8);
    put(w, footer, sizeof footer);
}

static void write_all(writer *w) {
    uint8_t header[TN_BINARY_HEADER];
    make_header(header);
    put(w, header, sizeof header);
    write_strings(w);
    write_ops(w);
    write_symbols(w);
    write_dims(w);
    write_types(w);
    write_origins(w);
    write_values(w);
    write_regions(w);
    write_nodes(w);
    write_face(w);
    write_tensors(w);
    write_blobs(w, true);
    write_blobs(w, false);
    write_blob_table(w);
    write_end(w, header);
    flush(w);
}

static tn_status write_file(writer *w, const char *path) {
    w->file = tn_file_writer_begin(w->g->heap, path);
    if (!w->file)
        return tn_error_status();
    write_all(w);
    if (w->status == TN_OK)
        return tn_file_writer_commit(w->file);
    tn_error_record error;
    tn_error_save(&error);
    tn_file_writer_abort(w->file);
    return tn_error_restore(&error);
}

tn_status tn_graph_write_binary(const tn_graph *graph, const char *path) {
    if (!graph || !path)
        return tn_fail(TN_ERR_USAGE, !graph ? "graph is NULL" : "the path of a file to be written is NULL");
    TN_TRY(tn_graph_verify(graph));
    writer w = {.g = graph};
    tn_text_init(&w.text, graph->heap);
    w.buffer = tn_alloc(graph->heap, BUFFER);
    tn_status status = tn_numbers_make(&w.n, graph) && w.buffer ? write_file(&w, path) : tn_error_status();
    tn_numbers_free(&w.n);
    tn_text_free(&w.text);
    tn_free(graph->heap, w.buffer);
    return status;
}
