/* ModelProto: versions, metadata, functions, the graph; from a file or from memory. */
#include "onnx/model.h"

#include <inttypes.h>
#include <stdio.h>

#include "onnx/custom.h"
#include "onnx/reader.h"

enum { MAX_PROPS = 4096, MAX_IMPORTS = 4096 };

typedef struct model_fields {
    tn_slice graph;
    int graphs;
    bool has_version;
    tn_slice_vec imports, props, functions;
} model_fields;

/* --- external data --------------------------------------------------------------------------------------------------------------- */

static tn_status open_in_folder(tn_onnx_reader *r, tn_slice location, tn_onnx_file *file) {
    file->mapping = tn_mapping_open_inside(r->heap, r->folder, (const char *)location.data, location.size);
    if (!file->mapping)
        return tn_error_status();
    file->bytes = (tn_slice){tn_mapping_data(file->mapping), tn_mapping_size(file->mapping)};
    return TN_OK;
}

static tn_status ask_caller(tn_onnx_reader *r, uint32_t location, tn_onnx_file *file) {
    const void *bytes = NULL;
    size_t size = 0;
    tn_error_clear();
    tn_status status = r->external(r->external_ctx, tn_onnx_text(r, location), &bytes, &size);
    if (status == TN_OK && !bytes && size)
        status = TN_ERR_IO;
    if (status != TN_OK && tn_error_status() == TN_OK)
        tn_fail(status, "the caller gave no external data '%s'", tn_onnx_text(r, location));
    file->bytes = (tn_slice){bytes, size};
    return status;
}

/* tn_onnx_source.external: each file is opened once. */
static tn_status find_external(void *ctx, tn_slice location, tn_mapping **mapping, tn_slice *bytes) {
    tn_onnx_reader *r = ctx;
    tn_onnx_file file = {0};
    uint32_t name;
    if (!tn_onnx_name(r, location, &name))
        return tn_error_status();
    uint32_t i = 0;
    while (i < r->files.len && r->files.data[i].location != name)
        i++;
    if (i == r->files.len) {
        file.location = name;
        if (i == 0)
            TN_TRY(tn_graph_set_metadata(r->graph, TN_META_EXTERNAL, (const char *)location.data, location.size));
        if (r->folder)
            TN_TRY(open_in_folder(r, location, &file));
        else if (r->external)
            TN_TRY(ask_caller(r, name, &file));
        else
            return tn_fail(TN_ERR_MODEL, "a model in memory has external data '%s', and no function gives it",
                           tn_onnx_text(r, name));
        if (!tn_vec_push(r->heap, &r->files, file)) {
            if (file.mapping)
                tn_mapping_release(file.mapping);
            return tn_error_status();
        }
    }
    *mapping = r->source.mapping ? r->files.data[i].mapping : NULL;
    *bytes = r->files.data[i].bytes;
    return TN_OK;
}

/* --- metadata ----------------------------------------------------------------------------------------------------------------------- */

static tn_status set_text(tn_onnx_reader *r, const char *key, const tn_wire_field *f) {
    return tn_graph_set_metadata(r->graph, key, (const char *)f->data, f->size);
}

static tn_status set_number(tn_onnx_reader *r, const char *key, int64_t value) {
    char text[24];
    int n = snprintf(text, sizeof text, "%" PRId64, value);
    return tn_graph_set_metadata(r->graph, key, text, (size_t)n);
}

static tn_status read_prop(tn_onnx_reader *r, tn_slice message) {
    tn_wire w;
    tn_wire_field f;
    tn_slice key = {0}, value = {0};
    tn_wire_init(&w, message.data, message.size);
    while (tn_wire_next(&w, &f))
        if (f.key == TN_WIRE_KEY(1, TN_WIRE_BYTES))
            key = tn_wire_slice(&f);
        else if (f.key == TN_WIRE_KEY(2, TN_WIRE_BYTES))
            value = tn_wire_slice(&f);
    TN_TRY(w.status);
    return tn_onnx_set_prefixed(r, TN_META_PROP, key, value);
}

/* An OperatorSetIdProto into a map; of the model's: into the metadata, too. */
static tn_status read_import(tn_onnx_reader *r, tn_slice message, tn_map *opsets, bool model) {
    tn_wire w;
    tn_wire_field f;
    tn_slice domain = {0};
    int64_t version = 0;
    uint32_t id;
    char text[24];
    tn_wire_init(&w, message.data, message.size);
    while (tn_wire_next(&w, &f))
        if (f.key == TN_WIRE_KEY(1, TN_WIRE_BYTES))
            domain = tn_wire_slice(&f);
        else if (f.key == TN_WIRE_KEY(2, TN_WIRE_VARINT))
            version = (int64_t)f.value;
    TN_TRY(w.status);
    if (domain.size == 7 && memcmp(domain.data, "ai.onnx", 7) == 0)
        domain = (tn_slice){0};
    if (!tn_onnx_name(r, domain, &id))
        return tn_error_status();
    if (version < 1)
        return tn_fail(TN_ERR_MODEL, "operator set %" PRId64 " of domain '%s'", version,
                       id ? tn_onnx_text(r, id) : "ai.onnx");
    if (version > INT32_MAX)
        version = INT32_MAX;
    if (!tn_map_put(r->heap, opsets, id, (uint64_t)version))
        return tn_error_status();
    if (!model)
        return TN_OK;
    tn_slice shown = domain.size ? domain : (tn_slice){(const uint8_t *)"ai.onnx", 7};
    int n = snprintf(text, sizeof text, "%" PRId64, version);
    return tn_onnx_set_prefixed(r, TN_META_OPSET, shown, (tn_slice){(const uint8_t *)text, (size_t)n});
}

/* --- functions ----------------------------------------------------------------------------------------------------------------------- */

typedef struct function_fields {
    tn_slice name, domain, overload;
    tn_slice_vec nodes, inputs, outputs, defaults, imports;
} function_fields;

static tn_status collect_function(tn_onnx_reader *r, tn_slice message, function_fields *g) {
    tn_wire w;
    tn_wire_field f;
    tn_wire_init(&w, message.data, message.size);
    while (tn_wire_next(&w, &f)) {
        tn_slice_vec *list;
        switch (f.key) {
        case TN_WIRE_KEY(1, TN_WIRE_BYTES): g->name = tn_wire_slice(&f); continue;
        case TN_WIRE_KEY(4, TN_WIRE_BYTES): list = &g->inputs; break;
        case TN_WIRE_KEY(5, TN_WIRE_BYTES): list = &g->outputs; break;
        case TN_WIRE_KEY(7, TN_WIRE_BYTES): list = &g->nodes; break;
        case TN_WIRE_KEY(9, TN_WIRE_BYTES): list = &g->imports; break;
        case TN_WIRE_KEY(10, TN_WIRE_BYTES): g->domain = tn_wire_slice(&f); continue;
        case TN_WIRE_KEY(11, TN_WIRE_BYTES): list = &g->defaults; break;
        case TN_WIRE_KEY(13, TN_WIRE_BYTES): g->overload = tn_wire_slice(&f); continue;
        default: continue;
        }
        if (!tn_vec_push(r->heap, list, tn_wire_slice(&f)))
            return tn_error_status();
    }
    return w.status;
}

static tn_status function_values(tn_onnx_reader *r, const function_fields *g, tn_region region) {
    uint32_t name;
    tn_value value;
    for (uint32_t i = 0; i < g->inputs.len; i++) {
        if (!tn_onnx_name(r, g->inputs.data[i], &name))
            return tn_error_status();
        value = tn_region_add_arg(r->graph, region, (tn_type){0}, tn_onnx_text(r, name));
        if (!value.id)
            return tn_graph_check(r->graph);
        TN_TRY(tn_onnx_bind(r, name, value));
    }
    TN_TRY(tn_onnx_read_nodes(r, &g->nodes, region));
    tn_value *results = tn_alloc_array(r->heap, g->outputs.len, sizeof *results);
    tn_status status = results ? TN_OK : tn_error_status();
    for (uint32_t i = 0; i < g->outputs.len && status == TN_OK; i++)
        if (!tn_onnx_name(r, g->outputs.data[i], &name))
            status = tn_error_status();
        else if (!tn_onnx_lookup(r, name, &results[i]))
            status = tn_fail(TN_ERR_MODEL, "nothing makes the function's output '%s'", tn_onnx_text(r, name));
    if (status == TN_OK)
        status = tn_region_return(r->graph, region, g->outputs.len, results);
    tn_free(r->heap, results);
    return status;
}

static tn_status add_function(tn_onnx_reader *r, const function_fields *g, const char *full) {
    tn_onnx_scope scope = {0};
    tn_region region = tn_region_create(r->graph);
    if (!region.id)
        return tn_graph_check(r->graph);
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < g->imports.len && status == TN_OK; i++)
        status = read_import(r, g->imports.data[i], &r->opsets, false);
    r->scope = &scope;
    r->in_function = true;
    r->defaults = &g->defaults;
    if (status == TN_OK)
        status = function_values(r, g, region);
    r->in_function = false;
    r->defaults = NULL;
    r->scope = NULL;
    tn_map_free(r->heap, &scope.names);
    tn_map_free(r->heap, &r->opsets);
    if (status == TN_OK && tn_graph_add_function(r->graph, full, region) == UINT32_MAX)
        status = tn_graph_check(r->graph);
    return status;
}

static tn_status read_function(tn_onnx_reader *r, tn_slice message, tn_map *seen) {
    function_fields g = {0};
    tn_text full;
    tn_text_init(&full, r->heap);
    tn_status status = collect_function(r, message, &g);
    if (status == TN_OK && !g.name.size)
        status = tn_fail(TN_ERR_MODEL, "a function has no name");
    if (status == TN_OK) {
        tn_slice parts[] = {g.domain, g.name, g.overload};
        uint32_t id;
        for (int i = 0; i < 3; i++) {
            if (i == 2 && parts[i].size)
                tn_text_add(&full, ":");
            if (parts[i].size)
                tn_text_bytes(&full, (const char *)parts[i].data, parts[i].size);
            if (i == 0)
                tn_text_add(&full, ".");
        }
        if (full.failed || !tn_onnx_name(r, (tn_slice){(const uint8_t *)full.data, full.len}, &id))
            status = tn_error_status();
        else if (tn_map_get(seen, id, NULL))
            status = tn_fail(TN_ERR_MODEL, "there are two functions '%s'", full.data);
        else if (!tn_map_put(r->heap, seen, id, 0))
            status = tn_error_status();
    }
    if (status == TN_OK)
        status = add_function(r, &g, full.data);
    if (status == TN_OK) {
        tn_text kept;
        tn_text_init(&kept, r->heap);
        tn_onnx_keep_fields(message, (const uint8_t[]){4, 5, 7, 0}, true, &kept);
        status = tn_onnx_keep(r, TN_META_FUNCTION, full.data, &kept);
    }
    if (status != TN_OK)
        tn_fail_where("function '%s'", full.data ? full.data : "");
    tn_text_free(&full);
    tn_vec_free(r->heap, &g.nodes);
    tn_vec_free(r->heap, &g.inputs);
    tn_vec_free(r->heap, &g.outputs);
    tn_vec_free(r->heap, &g.defaults);
    tn_vec_free(r->heap, &g.imports);
    return status;
}

static tn_status read_functions(tn_onnx_reader *r, const tn_slice_vec *functions) {
    tn_map seen = {0};
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < functions->len && status == TN_OK; i++)
        status = read_function(r, functions->data[i], &seen);
    tn_map_free(r->heap, &seen);
    return status;
}

/* --- the model ------------------------------------------------------------------------------------------------------------------------ */

static tn_status collect_model(tn_onnx_reader *r, const tn_slice message, model_fields *m) {
    tn_wire w;
    tn_wire_field f;
    tn_text kept;
    tn_text_init(&kept, r->heap);
    tn_status status = tn_onnx_keep_fields(message, (const uint8_t[]){1, 2, 3, 4, 5, 6, 7, 8, 14, 25, 0}, true, &kept);
    if (status != TN_OK) {
        tn_text_free(&kept);
        return status;
    }
    TN_TRY(tn_onnx_keep(r, TN_META_KEPT_MODEL, "", &kept));
    tn_wire_init(&w, message.data, message.size);
    while (tn_wire_next(&w, &f)) {
        tn_slice_vec *list = NULL;
        switch (f.key) {
        case TN_WIRE_KEY(1, TN_WIRE_VARINT): m->has_version = true, r->ir_version = (int64_t)f.value; break;
        case TN_WIRE_KEY(2, TN_WIRE_BYTES): TN_TRY(set_text(r, TN_META_PRODUCER, &f)); break;
        case TN_WIRE_KEY(3, TN_WIRE_BYTES): TN_TRY(set_text(r, TN_META_PRODUCER_VERSION, &f)); break;
        case TN_WIRE_KEY(4, TN_WIRE_BYTES): TN_TRY(set_text(r, TN_META_DOMAIN, &f)); break;
        case TN_WIRE_KEY(5, TN_WIRE_VARINT): TN_TRY(set_number(r, TN_META_MODEL_VERSION, (int64_t)f.value)); break;
        case TN_WIRE_KEY(6, TN_WIRE_BYTES): TN_TRY(set_text(r, TN_META_DOC, &f)); break;
        case TN_WIRE_KEY(7, TN_WIRE_BYTES): m->graph = tn_wire_slice(&f), m->graphs++; break;
        case TN_WIRE_KEY(8, TN_WIRE_BYTES): list = &m->imports; break;
        case TN_WIRE_KEY(14, TN_WIRE_BYTES): list = &m->props; break;
        case TN_WIRE_KEY(25, TN_WIRE_BYTES): list = &m->functions; break;
        default: break;
        }
        if (list && !tn_vec_push(r->heap, list, tn_wire_slice(&f)))
            return tn_error_status();
    }
    return w.status;
}

static tn_status not_a_model(const char *why) {
    tn_fail(TN_ERR_MODEL, "not an ONNX model: %s", why);
    tn_fail_hint("an ONNX file is a serialized ModelProto");
    return TN_ERR_MODEL;
}

static tn_status read_model_fields(tn_onnx_reader *r, const model_fields *m) {
    if (!m->has_version)
        return not_a_model(m->graphs ? "it has no IR version" : "it has neither an IR version nor a graph");
    if (r->ir_version > TN_ONNX_IR_NEWEST || r->ir_version < TN_ONNX_IR_OLDEST) {
        tn_fail(r->ir_version < TN_ONNX_IR_OLDEST ? TN_ERR_MODEL : TN_ERR_UNSUPPORTED,
                "not supported: IR version %" PRId64, r->ir_version);
        tn_fail_hint("IR versions %d to %d are supported", TN_ONNX_IR_OLDEST, TN_ONNX_IR_NEWEST);
        return tn_error_status();
    }
    if (m->graphs != 1)
        return not_a_model(m->graphs ? "it has more than one graph" : "it has no graph");
    if (!m->imports.len && r->ir_version >= 3)
        return tn_fail(TN_ERR_MODEL, "the model imports no operator set");
    if (m->props.len > MAX_PROPS || m->imports.len > MAX_IMPORTS)
        return tn_fail(TN_ERR_LIMIT, "a model with %u metadata properties and %u operator sets", m->props.len,
                       m->imports.len);
    TN_TRY(set_number(r, TN_META_IR_VERSION, r->ir_version));
    for (uint32_t i = 0; i < m->imports.len; i++)
        TN_TRY(read_import(r, m->imports.data[i], &r->model_opsets, true));
    for (uint32_t i = 0; i < m->props.len; i++)
        TN_TRY(read_prop(r, m->props.data[i]));
    TN_TRY(read_functions(r, &m->functions));
    return tn_onnx_read_graph(r, m->graph, tn_graph_region(r->graph), true);
}

/* Admits the file, reads it, and frees what reading needed. The graph, or NULL. */
static tn_graph *read_model(tn_onnx_reader *r, tn_slice bytes, const tn_onnx_options *options) {
    model_fields m = {0};
    tn_status status = TN_OK;
    const tn_op_table *table = tn_onnx_table_with(options ? options->ops : NULL);
    if (!table || !(r->graph = tn_graph_new(r->heap, table)))
        return NULL;
    tn_text_init(&r->warnings, r->heap);
    r->source.external = find_external;
    r->source.ctx = r;
    if (r->source.max_bytes && bytes.size > r->source.max_bytes)
        status =
            tn_fail(TN_ERR_LIMIT, "the file has %zu bytes, the limit is %" PRIu64, bytes.size, r->source.max_bytes);
    if (status == TN_OK && !bytes.size)
        status = not_a_model("it is empty");
    if (status == TN_OK && *r->file)
        status = tn_graph_set_metadata(r->graph, TN_META_FILE, r->file, strlen(r->file));
    if (status == TN_OK)
        status = collect_model(r, bytes, &m);
    if (status == TN_OK)
        status = read_model_fields(r, &m);
    if (status == TN_OK)
        status = tn_graph_check(r->graph);
    if (status == TN_OK && r->warnings.len)
        status = tn_graph_set_metadata(r->graph, TN_META_WARNINGS, r->warnings.data, r->warnings.len);
    tn_text_free(&r->warnings);
    tn_vec_free(r->heap, &m.imports);
    tn_vec_free(r->heap, &m.props);
    tn_vec_free(r->heap, &m.functions);
    for (uint32_t i = 0; i < r->files.len; i++)
        if (r->files.data[i].mapping)
            tn_mapping_release(r->files.data[i].mapping);
    tn_vec_free(r->heap, &r->files);
    tn_map_free(r->heap, &r->model_opsets);
    tn_map_free(r->heap, &r->opsets);
    tn_map_free(r->heap, &r->declared);
    tn_map_free(r->heap, &r->unknown_ops);
    if (status == TN_OK) {
        tn_graph_insert_at_end(r->graph, tn_graph_region(r->graph));
        tn_graph_at_location(r->graph, 0);
        return r->graph;
    }
    if (*r->file)
        tn_fail_where("file %s", r->file);
    tn_error_record error;
    tn_error_save(&error);
    tn_graph_destroy(r->graph);
    tn_error_restore(&error);
    return NULL;
}

static tn_onnx_reader new_reader(const tn_onnx_options *options) {
    static const tn_onnx_options defaults = {0};
    const tn_onnx_options *o = options ? options : &defaults;
    tn_heap *heap = o->heap ? o->heap : tn_heap_default();
    return (tn_onnx_reader){.heap = heap, .file = "", .source = {.heap = heap, .max_bytes = o->max_bytes}};
}

tn_graph *tn_onnx_load_file(const char *path, const tn_onnx_options *options) {
    if (!path) {
        tn_fail(TN_ERR_USAGE, "the path of a model is NULL");
        return NULL;
    }
    tn_onnx_reader r = new_reader(options);
    tn_mapping *mapping = tn_mapping_open(r.heap, path);
    if (!mapping)
        return NULL;
    const char *slash = strrchr(path, '/');
    char *folder =
        !slash ? tn_strdup(r.heap, ".") : tn_strndup(r.heap, path, slash == path ? 1 : (size_t)(slash - path));
    tn_graph *graph = NULL;
    if (folder) {
        r.file = path;
        r.folder = folder;
        r.source.mapping = options && options->copy ? NULL : mapping;
        graph = read_model(&r, (tn_slice){tn_mapping_data(mapping), tn_mapping_size(mapping)}, options);
    }
    tn_free(r.heap, folder);
    tn_mapping_release(mapping);
    return graph;
}

tn_graph *tn_onnx_load_memory(const void *bytes, size_t size, tn_onnx_external *external, void *ctx,
                              const tn_onnx_options *options) {
    tn_onnx_reader r = new_reader(options);
    if (!bytes && size) {
        tn_fail(TN_ERR_USAGE, "the bytes of a model are NULL");
        return NULL;
    }
    r.external = external;
    r.external_ctx = ctx;
    return read_model(&r, (tn_slice){bytes, size}, options);
}
