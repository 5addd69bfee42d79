/* NodeProto and AttributeProto. */
#include "onnx/reader.h"

#include "onnx/expander.h"

#include <inttypes.h>

/* AttributeProto.AttributeType */
enum {
    A_UNDEFINED,
    A_FLOAT,
    A_INT,
    A_STRING,
    A_TENSOR,
    A_GRAPH,
    A_FLOATS,
    A_INTS,
    A_STRINGS,
    A_TENSORS,
    A_GRAPHS,
    A_SPARSE,
    A_SPARSES,
    A_TYPE,
    A_TYPES,
    A_COUNT
};
static const char *const attr_type_name[A_COUNT] = {
    "nothing", "a number", "an integer",      "text",           "a tensor", "a graph", "numbers", "integers", "texts",
    "tensors", "graphs",   "a sparse tensor", "sparse tensors", "a type",   "types"};

typedef struct attr_fields {
    tn_slice name, ref;
    uint64_t type;
    uint32_t has[A_COUNT]; /* fields seen of each */
    uint64_t number;       /* f or i: bits */
    tn_slice bytes;        /* s, t, g, tp, sparse_tensor */
    const uint8_t *run;    /* the last floats that follow each other, not packed: their fields, 5 bytes each */
    size_t run_length;
} attr_fields;

/* A node being read. */
typedef struct node {
    tn_onnx_reader *r;
    tn_arena scratch;
    tn_slice name, op, domain, overload, doc;
    TN_VEC(tn_value) inputs;
    tn_u32_vec outputs; /* names */
    TN_VEC(tn_attr) attrs;
    TN_VEC(tn_slice) graphs;
    tn_u32_vec graph_names; /* string ids */
    tn_slice_vec attr_messages;
    const tn_op *row;
    const tn_onnx_op *known;
    int version;
    const char *domain_name, *op_name;
} node;

/* --- attributes ------------------------------------------------------------------------------------------------------------------ */

static tn_status read_attr_fields(tn_slice message, attr_fields *a) {
    tn_wire w;
    tn_wire_field f;
    const uint8_t *alike;
    *a = (attr_fields){0};
    tn_wire_init(&w, message.data, message.size);
    while (tn_wire_next(&w, &f))
        switch (f.key) {
        case TN_WIRE_KEY(1, TN_WIRE_BYTES): a->name = tn_wire_slice(&f); break;
        case TN_WIRE_KEY(2, TN_WIRE_FIXED32): a->has[A_FLOAT]++, a->number = f.value; break;
        case TN_WIRE_KEY(3, TN_WIRE_VARINT): a->has[A_INT]++, a->number = f.value; break;
        case TN_WIRE_KEY(4, TN_WIRE_BYTES): a->has[A_STRING]++, a->bytes = tn_wire_slice(&f); break;
        case TN_WIRE_KEY(5, TN_WIRE_BYTES): a->has[A_TENSOR]++, a->bytes = tn_wire_slice(&f); break;
        case TN_WIRE_KEY(6, TN_WIRE_BYTES): a->has[A_GRAPH]++, a->bytes = tn_wire_slice(&f); break;
        case TN_WIRE_KEY(7, TN_WIRE_BYTES): a->has[A_FLOATS]++; break;
        case TN_WIRE_KEY(7, TN_WIRE_FIXED32):
            a->has[A_FLOATS]++;
            a->run_length = 1 + tn_wire_pass_alike(&w, &f, &alike);
            a->run = alike - 5;
            break;
        case TN_WIRE_KEY(8, TN_WIRE_BYTES):
        case TN_WIRE_KEY(8, TN_WIRE_VARINT): a->has[A_INTS]++; break;
        case TN_WIRE_KEY(9, TN_WIRE_BYTES): a->has[A_STRINGS]++; break;
        case TN_WIRE_KEY(10, TN_WIRE_BYTES): a->has[A_TENSORS]++; break;
        case TN_WIRE_KEY(11, TN_WIRE_BYTES): a->has[A_GRAPHS]++; break;
        case TN_WIRE_KEY(14, TN_WIRE_BYTES): a->has[A_TYPE]++, a->bytes = tn_wire_slice(&f); break;
        case TN_WIRE_KEY(15, TN_WIRE_BYTES): a->has[A_TYPES]++; break;
        case TN_WIRE_KEY(20, TN_WIRE_VARINT): a->type = f.value; break;
        case TN_WIRE_KEY(21, TN_WIRE_BYTES): a->ref = tn_wire_slice(&f); break;
        case TN_WIRE_KEY(22, TN_WIRE_BYTES): a->has[A_SPARSE]++, a->bytes = tn_wire_slice(&f); break;
        case TN_WIRE_KEY(23, TN_WIRE_BYTES): a->has[A_SPARSES]++; break;
        default: break;
        }
    return w.status;
}

/* The type that is stated, or (files of IR version 1) the one field that is there. */
static tn_status settle_type(attr_fields *a) {
    uint32_t found = A_UNDEFINED;
    if (a->type >= A_COUNT)
        return tn_fail(TN_ERR_MODEL, "attribute type %" PRIu64 " does not exist", a->type);
    for (uint32_t t = 1; t < A_COUNT; t++) {
        if (!a->has[t])
            continue;
        if (found || (a->type && a->type != t))
            return tn_fail(TN_ERR_MODEL, "an attribute is declared as %s but holds %s",
                           attr_type_name[found ? found : a->type], attr_type_name[t]);
        found = t;
    }
    if (!a->type)
        a->type = found;
    return TN_OK;
}

static void store_int(void *ctx, size_t i, uint64_t bits) {
    ((int64_t *)ctx)[i] = (int64_t)bits;
}

static void store_float(void *ctx, size_t i, uint64_t bits) {
    ((float *)ctx)[i] = tn_wire_float(bits);
}

static void put_run(float *to, const uint8_t *fields, size_t count) {
    for (size_t i = 0; i < count; i++)
        memcpy(to + i, fields + 5 * i + 1, sizeof *to); /* little-endian, as memory is */
}

/* How many elements the fields of number `field` have in all. */
static tn_status count_list(tn_slice message, uint32_t field, tn_wire_type element, size_t *total) {
    tn_wire w;
    tn_wire_field f;
    const uint8_t *alike;
    size_t count;
    tn_wire_init(&w, message.data, message.size);
    while (tn_wire_next(&w, &f))
        if (f.key >> 3 == field && ((f.key & 7) == TN_WIRE_BYTES || (f.key & 7) == element)) {
            count = 1;
            if (field != 9)
                TN_TRY(tn_wire_count(&f, element, &count));
            *total += count + tn_wire_pass_alike(&w, &f, &alike);
        }
    return w.status;
}

/* INTS, FLOATS, STRINGS: the fields of number `field`. Numbers lie in the graph's arena, strings in scratch memory. */
static tn_status read_list(node *n, tn_slice message, const attr_fields *a, uint32_t field, tn_attr *out) {
    bool strings = field == 9, one_run = field == 7 && a->run && a->has[A_FLOATS] == 1;
    tn_wire_type element = field == 7 ? TN_WIRE_FIXED32 : TN_WIRE_VARINT;
    tn_wire w;
    tn_wire_field f;
    size_t total = one_run ? a->run_length : 0, at = 0, count;
    const uint8_t *alike;
    if (!one_run)
        TN_TRY(count_list(message, field, element, &total));
    if (total > UINT32_MAX / 16)
        return tn_fail(TN_ERR_LIMIT, "an attribute of %zu elements", total);
    size_t size = strings ? sizeof(tn_string) : field == 7 ? sizeof(float) : sizeof(int64_t);
    void *items = tn_arena_alloc(strings ? &n->scratch : &n->r->graph->arena, total * size + 1);
    if (!items)
        return tn_error_status();
    tn_wire_init(&w, message.data, one_run ? 0 : message.size);
    if (one_run)
        put_run(items, a->run, total);
    while (tn_wire_next(&w, &f)) {
        if (f.key >> 3 != field || ((f.key & 7) != TN_WIRE_BYTES && (f.key & 7) != element))
            continue;
        if (strings) {
            ((tn_string *)items)[at++] = (tn_string){(const char *)f.data, f.size};
            continue;
        }
        TN_TRY(tn_wire_count(&f, element, &count));
        if (field == 7 && (f.key & 7) == TN_WIRE_BYTES)
            memcpy((float *)items + at, f.data, count * sizeof(float));
        else
            TN_TRY(tn_wire_each(&f, element, at, field == 7 ? store_float : store_int, items));
        at += count;
        count = tn_wire_pass_alike(&w, &f, &alike);
        put_run((float *)items + at, alike, count);
        at += count;
    }
    out->count = (uint32_t)total;
    out->kept = !strings;
    if (strings)
        out->as.strings = items;
    else if (field == 7)
        out->as.floats = items;
    else
        out->as.ints = items;
    out->kind = strings ? TN_ATTR_STRINGS : field == 7 ? TN_ATTR_FLOATS : TN_ATTR_INTS;
    return TN_OK;
}

static tn_status read_value(node *n, tn_slice message, const attr_fields *a, tn_attr *out) {
    tn_onnx_reader *r = n->r;
    switch (a->type) {
    case A_FLOAT:
        out->kind = TN_ATTR_FLOAT;
        out->as.f = (double)tn_wire_float(a->number);
        return TN_OK;
    case A_INT:
        out->kind = TN_ATTR_INT;
        out->as.i = (int64_t)a->number;
        return TN_OK;
    case A_STRING:
        out->kind = TN_ATTR_STRING;
        out->as.s = (tn_string){a->bytes.size ? (const char *)a->bytes.data : "", a->bytes.size};
        return TN_OK;
    case A_FLOATS: return read_list(n, message, a, 7, out);
    case A_INTS: return read_list(n, message, a, 8, out);
    case A_STRINGS: return read_list(n, message, a, 9, out);
    case A_TENSOR:
    case A_SPARSE:
        if (!a->bytes.data)
            return tn_fail(TN_ERR_MODEL, "a tensor attribute without a tensor");
        out->as.tensor = a->type == A_TENSOR ? tn_onnx_decode_tensor(&r->source, a->bytes, NULL)
                                             : tn_onnx_decode_sparse(&r->source, a->bytes, NULL);
        if (!out->as.tensor)
            return tn_error_status();
        out->kind = TN_ATTR_TENSOR;
        return TN_OK;
    case A_TYPE: out->kind = TN_ATTR_TYPE; return tn_onnx_read_type(r, a->bytes, 0, &out->as.type);
    case A_UNDEFINED: return tn_fail(TN_ERR_MODEL, "an attribute without a value");
    default: return tn_fail(TN_ERR_UNSUPPORTED, "not supported: an attribute that holds %s", attr_type_name[a->type]);
    }
}

static tn_status push_attr(node *n, tn_attr attr) {
    return tn_vec_push(n->r->heap, &n->attrs, attr) ? TN_OK : tn_error_status();
}

/* A value, of attribute `key`, onto the node's list. */
static tn_status push_value(node *n, const char *key, tn_slice message, const attr_fields *a) {
    tn_attr attr = {.key = key};
    tn_status status = read_value(n, message, a, &attr);
    if (status == TN_OK && (status = push_attr(n, attr)) != TN_OK && attr.kind == TN_ATTR_TENSOR)
        tn_tensor_destroy(attr.as.tensor);
    return status;
}

/* The default that the function gives for its attribute `ref`, as attribute `key`. */
static tn_status push_default(node *n, const char *key, tn_slice ref) {
    const tn_slice_vec *defaults = n->r->defaults;
    for (uint32_t i = 0; defaults && i < defaults->len; i++) {
        attr_fields d;
        TN_TRY(read_attr_fields(defaults->data[i], &d));
        if (d.name.size != ref.size || memcmp(d.name.data, ref.data, ref.size) != 0)
            continue;
        TN_TRY(settle_type(&d));
        return push_value(n, key, defaults->data[i], &d);
    }
    return TN_OK;
}

/* PREFIX NAME in scratch memory; NULL with the error set. */
static char *prefixed(node *n, const char *prefix, const char *name) {
    size_t before = strlen(prefix), length = strlen(name);
    char *key = tn_arena_alloc(&n->scratch, before + length + 1);
    if (key) {
        memcpy(key, prefix, before);
        memcpy(key + before, name, length + 1);
    }
    return key;
}

static tn_status push_ref(node *n, const char *name, const attr_fields *a) {
    uint32_t ref;
    if (!n->r->in_function)
        return tn_fail(TN_ERR_MODEL, "a reference to an attribute of the caller outside a function");
    if (!tn_onnx_name(n->r, a->ref, &ref))
        return tn_error_status();
    if (a->type == A_GRAPH || a->type == A_GRAPHS)
        return tn_fail(TN_ERR_UNSUPPORTED, "not supported: a function's attribute that is a graph");
    char *key = prefixed(n, "__ref:", name);
    if (!key)
        return tn_error_status();
    const char *text = tn_onnx_text(n->r, ref);
    TN_TRY(push_attr(n, TN_A_STRING(key, text, strlen(text))));
    if (a->type) {
        char *type = prefixed(n, "__type:", name);
        if (!type)
            return tn_error_status();
        TN_TRY(push_attr(n, TN_A_INT(type, (int64_t)a->type)));
    }
    return push_default(n, name, a->ref);
}

/* A text in scratch memory as an attribute of ours; frees it. */
static tn_status push_text(node *n, const char *key, tn_text *text) {
    char *copy = text->failed ? NULL : tn_arena_strndup(&n->scratch, text->data ? text->data : "", text->len);
    tn_status status = copy && key ? push_attr(n, TN_A_STRING(key, copy, text->len)) : tn_error_status();
    tn_text_free(text);
    return status;
}

/* "__graph:NAME", "__graph_kept:NAME". */
static tn_status keep_graph(node *n, const char *name, tn_slice message) {
    tn_attr list = {.kind = TN_ATTR_STRINGS}, kept = {.kind = TN_ATTR_STRING};
    TN_TRY(tn_onnx_keep_graph(n->r, message, &n->scratch, &list, &kept));
    list.key = prefixed(n, "__graph:", name);
    kept.key = prefixed(n, "__graph_kept:", name);
    if (!list.key || !kept.key)
        return tn_error_status();
    TN_TRY(push_attr(n, list));
    return kept.as.s.length ? push_attr(n, kept) : TN_OK;
}

static tn_status read_attr(node *n, tn_slice message) {
    attr_fields a;
    uint32_t name;
    TN_TRY(read_attr_fields(message, &a));
    if (!tn_onnx_name(n->r, a.name, &name))
        return tn_error_status();
    const char *key = tn_onnx_text(n->r, name);
    if (!name)
        return tn_fail(TN_ERR_MODEL, "an attribute has no name");
    if (strncmp(key, "__", 2) == 0)
        return tn_fail(TN_ERR_UNSUPPORTED, "not supported: an attribute named '%s'", key);
    tn_status status = settle_type(&a);
    if (status == TN_OK && a.ref.size) {
        status = push_ref(n, key, &a);
    } else if (status == TN_OK && a.type == A_GRAPH) {
        if (!a.bytes.data)
            status = tn_fail(TN_ERR_MODEL, "a graph attribute without a graph");
        else if (!tn_vec_push(n->r->heap, &n->graphs, a.bytes) || !tn_vec_push(n->r->heap, &n->graph_names, name))
            status = tn_error_status();
    } else if (status == TN_OK) {
        status = push_value(n, key, message, &a);
    }
    if (status != TN_OK)
        tn_fail_where("attribute '%s'", key);
    return status;
}

/* Attributes given twice; few, or a map. */
static tn_status check_twice(node *n) {
    tn_map seen = {0};
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < n->attrs.len + n->graphs.len && status == TN_OK; i++) {
        const char *key =
            i < n->attrs.len ? n->attrs.data[i].key : tn_onnx_text(n->r, n->graph_names.data[i - n->attrs.len]);
        uint32_t id = tn_strings_add(&n->r->graph->strings, key, strlen(key));
        if (id == UINT32_MAX)
            status = tn_error_status();
        else if (tn_map_get(&seen, id, NULL))
            status = tn_fail(TN_ERR_MODEL, "attribute '%s' is given twice", key);
        else if (!tn_map_put(n->r->heap, &seen, id, 0))
            status = tn_error_status();
    }
    tn_map_free(n->r->heap, &seen);
    return status;
}

/* --- the operator's row --------------------------------------------------------------------------------------------------------- */

tn_status tn_onnx_opset(tn_onnx_reader *r, const char *domain, int *version) {
    uint32_t id = tn_strings_find(&r->graph->strings, domain, strlen(domain));
    uint64_t found;
    if (id == UINT32_MAX || !(tn_map_get(r->in_function ? &r->opsets : &r->model_opsets, id, &found) ||
                              tn_map_get(&r->model_opsets, id, &found))) {
        if (r->ir_version < 3 && !*domain) {
            *version = 1;
            return TN_OK;
        }
        return tn_fail(TN_ERR_MODEL, "the model imports no operator set of domain '%s'", *domain ? domain : "ai.onnx");
    }
    *version = (int)found;
    int newest = tn_onnx_newest(domain);
    if (newest && *version > newest) {
        tn_fail(TN_ERR_UNSUPPORTED, "not supported: operator set %d of domain '%s'", *version,
                *domain ? domain : "ai.onnx");
        tn_fail_hint("versions 1 to %d of it are supported", newest);
        return TN_ERR_UNSUPPORTED;
    }
    return TN_OK;
}

/* A row for an operator that no table has, one for each name. */
static const tn_op *unknown_row(node *n) {
    tn_onnx_reader *r = n->r;
    size_t domain = strlen(n->domain_name), op = strlen(n->op_name);
    char *full = tn_arena_alloc(&r->graph->arena, domain + op + sizeof "onnx..");
    if (!full)
        return NULL;
    memcpy(full, "onnx.", 5);
    memcpy(full + 5, n->domain_name, domain);
    if (domain)
        full[5 + domain++] = '.';
    memcpy(full + 5 + domain, n->op_name, op + 1);
    uint32_t id = tn_strings_add(&r->graph->strings, full, 5 + domain + op);
    uint64_t found;
    if (id == UINT32_MAX)
        return NULL;
    if (tn_map_get(&r->unknown_ops, id, &found))
        return (const tn_op *)(uintptr_t)found;
    const tn_op *row;
    if (tn_onnx_make_row(r->graph, tn_onnx_text(r, id), 5 + domain + op, &row) != TN_OK)
        return NULL;
    return tn_map_put(r->heap, &r->unknown_ops, id, (uintptr_t)row) ? row : NULL;
}

static tn_status find_row(node *n) {
    tn_onnx_reader *r = n->r;
    uint32_t id;
    if (!tn_onnx_name(r, n->op, &id))
        return tn_error_status();
    if (!id)
        return tn_fail(TN_ERR_MODEL, "a node without an operator");
    n->op_name = tn_onnx_text(r, id);
    if (!tn_onnx_name(r, n->domain, &id))
        return tn_error_status();
    n->domain_name = tn_onnx_text(r, id);
    if (strcmp(n->domain_name, "ai.onnx") == 0)
        n->domain_name = "";
    TN_TRY(tn_onnx_opset(r, n->domain_name, &n->version));
    n->known = tn_onnx_find_any(n->domain_name, n->op_name);
    n->row = n->known ? &n->known->op : unknown_row(n);
    return n->row ? TN_OK : tn_error_status();
}

/* --- graph attributes ------------------------------------------------------------------------------------------------------------- */

/* The index in the list of names "a b c", or -1. */
static int place_in(const char *list, const char *name) {
    size_t length = strlen(name);
    for (int i = 0; list && *list; i++) {
        size_t n = strcspn(list, " ");
        if (n == length && memcmp(list, name, n) == 0)
            return i;
        list += n + (list[n] == ' ');
    }
    return -1;
}

/* Empty graphs for the optional ones that are not there. */
static tn_status add_absent_graphs(node *n) {
    for (const char *list = n->known->regions; *list;) {
        size_t length = strcspn(list, " ");
        bool there = false;
        for (uint32_t i = 0; i < n->graphs.len; i++) {
            const char *name = tn_onnx_text(n->r, n->graph_names.data[i]);
            there = there || (strlen(name) == length && memcmp(name, list, length) == 0);
        }
        uint32_t name;
        if (!there &&
            (!tn_onnx_name(n->r, (tn_slice){(const uint8_t *)list, length}, &name) ||
             !tn_vec_push(n->r->heap, &n->graphs, (tn_slice){0}) || !tn_vec_push(n->r->heap, &n->graph_names, name)))
            return tn_error_status();
        list += length + (list[length] == ' ');
    }
    return TN_OK;
}

static tn_status order_graphs(node *n) {
    uint32_t wanted = (uint32_t)n->known->op.regions;
    for (uint32_t i = 0; i < n->graphs.len; i++)
        if (place_in(n->known->regions, tn_onnx_text(n->r, n->graph_names.data[i])) < 0)
            return tn_fail(TN_ERR_MODEL, "%s has no graph attribute '%s'", n->op_name,
                           tn_onnx_text(n->r, n->graph_names.data[i]));
    if (n->known->flags & TN_ONNX_OPTIONAL_GRAPHS)
        TN_TRY(add_absent_graphs(n));
    if (n->graphs.len != wanted)
        return tn_fail(TN_ERR_MODEL, "%s needs the graph attributes '%s', some are missing", n->op_name,
                       n->known->regions);
    for (uint32_t i = 0; i < wanted;) {
        uint32_t at = (uint32_t)place_in(n->known->regions, tn_onnx_text(n->r, n->graph_names.data[i]));
        if (at == i) {
            i++;
            continue;
        }
        tn_slice graph = n->graphs.data[i];
        uint32_t name = n->graph_names.data[i];
        n->graphs.data[i] = n->graphs.data[at];
        n->graph_names.data[i] = n->graph_names.data[at];
        n->graphs.data[at] = graph;
        n->graph_names.data[at] = name;
    }
    return TN_OK;
}

/* "__regions": the names, in the order of the regions. */
static tn_status name_graphs(node *n) {
    tn_text list;
    tn_text_init(&list, n->r->heap);
    for (uint32_t i = 0; i < n->graphs.len; i++)
        tn_text_printf(&list, "%s%s", i ? " " : "", tn_onnx_text(n->r, n->graph_names.data[i]));
    char *text = list.failed ? NULL : tn_arena_strndup(&n->scratch, list.data, list.len);
    tn_status status = text ? push_attr(n, TN_A_STRING("__regions", text, list.len)) : tn_error_status();
    tn_text_free(&list);
    return status;
}

static tn_status read_graphs(node *n, tn_region *regions) {
    tn_insertion at = tn_graph_insertion(n->r->graph);
    for (uint32_t i = 0; i < n->graphs.len; i++) {
        regions[i] = tn_region_create(n->r->graph);
        if (!regions[i].id)
            return tn_error_status();
        tn_status status = tn_onnx_read_graph(n->r, n->graphs.data[i], regions[i], false);
        if (status != TN_OK) {
            tn_fail_where("in graph '%s'", tn_onnx_text(n->r, n->graph_names.data[i]));
            return status;
        }
    }
    tn_graph_set_insertion(n->r->graph, at);
    return TN_OK;
}

/* --- the node -------------------------------------------------------------------------------------------------------------------- */

static tn_status read_input(node *n, tn_slice text) {
    uint32_t name;
    tn_value value = {0};
    if (!tn_onnx_name(n->r, text, &name))
        return tn_error_status();
    if (name && !tn_onnx_lookup(n->r, name, &value))
        return tn_fail(TN_ERR_MODEL, "nothing provides the value '%s'", tn_onnx_text(n->r, name));
    return tn_vec_push(n->r->heap, &n->inputs, value) ? TN_OK : tn_error_status();
}

/* Head first (names for messages), then the rest. */
static tn_status read_head(node *n, tn_slice message) {
    tn_wire w;
    tn_wire_field f;
    tn_wire_init(&w, message.data, message.size);
    while (tn_wire_next(&w, &f))
        switch (f.key) {
        case TN_WIRE_KEY(3, TN_WIRE_BYTES): n->name = tn_wire_slice(&f); break;
        case TN_WIRE_KEY(4, TN_WIRE_BYTES): n->op = tn_wire_slice(&f); break;
        case TN_WIRE_KEY(5, TN_WIRE_BYTES):
            if (!tn_vec_push(n->r->heap, &n->attr_messages, tn_wire_slice(&f)))
                return tn_error_status();
            break;
        case TN_WIRE_KEY(6, TN_WIRE_BYTES): n->doc = tn_wire_slice(&f); break;
        case TN_WIRE_KEY(7, TN_WIRE_BYTES): n->domain = tn_wire_slice(&f); break;
        case TN_WIRE_KEY(8, TN_WIRE_BYTES): n->overload = tn_wire_slice(&f); break;
        default: break;
        }
    return w.status;
}

static tn_status read_values(node *n, tn_slice message) {
    tn_wire w;
    tn_wire_field f;
    uint32_t name;
    tn_wire_init(&w, message.data, message.size);
    while (tn_wire_next(&w, &f))
        if (f.key == TN_WIRE_KEY(1, TN_WIRE_BYTES)) {
            TN_TRY(read_input(n, tn_wire_slice(&f)));
        } else if (f.key == TN_WIRE_KEY(2, TN_WIRE_BYTES)) {
            if (!tn_onnx_name(n->r, tn_wire_slice(&f), &name) || !tn_vec_push(n->r->heap, &n->outputs, name))
                return tn_error_status();
        }
    return w.status;
}

/* Attributes of ours. */
static tn_status add_own_attrs(node *n, tn_slice message) {
    tn_onnx_reader *r = n->r;
    uint64_t model = 0;
    if (r->in_function) {
        uint32_t id = tn_strings_find(&r->graph->strings, n->domain_name, strlen(n->domain_name));
        if (id == UINT32_MAX || !tn_map_get(&r->model_opsets, id, &model) || (int)model != n->version)
            TN_TRY(push_attr(n, TN_A_INT("__opset", n->version)));
    }
    if (n->overload.size)
        TN_TRY(push_attr(n, TN_A_STRING("__overload", (const char *)n->overload.data, n->overload.size)));
    if (n->graphs.len && !n->known)
        TN_TRY(name_graphs(n));
    for (uint32_t i = 0; i < n->graphs.len; i++)
        if (n->graphs.data[i].data)
            TN_TRY(keep_graph(n, tn_onnx_text(r, n->graph_names.data[i]), n->graphs.data[i]));
    if (n->doc.size)
        TN_TRY(push_attr(n, TN_A_STRING("__doc", (const char *)n->doc.data, n->doc.size)));
    tn_text kept;
    tn_text_init(&kept, r->heap);
    tn_onnx_keep_fields(message, (const uint8_t[]){1, 2, 3, 4, 5, 6, 7, 8, 0}, true, &kept);
    if (kept.len || kept.failed)
        return push_text(n, "__kept", &kept);
    tn_text_free(&kept);
    return TN_OK;
}

/* What the regions read from outside becomes inputs, after those of the operator: so it lives, and reaches a node that waits. */
static tn_status add_captures(node *n, const tn_region *regions) {
    tn_onnx_reader *r = n->r;
    tn_value_vec captures = {0};
    tn_status status = tn_onnx_captures(r->graph, n->graphs.len, regions, r->heap, &captures);
    for (uint32_t i = 0; i < captures.len && status == TN_OK; i++)
        if (!tn_vec_push(r->heap, &n->inputs, captures.data[i]))
            status = tn_error_status();
    if (status == TN_OK && captures.len)
        status = push_attr(n, TN_A_INT("__captures", captures.len));
    tn_vec_free(r->heap, &captures);
    return status;
}

/* The first output that has no name: whether it needs one, the operator's row says. */
static tn_status note_nameless(node *n) {
    for (uint32_t i = 0; i < n->outputs.len; i++)
        if (!n->outputs.data[i])
            return push_attr(n, TN_A_INT(TN_ONNX_NAMELESS, i));
    return TN_OK;
}

static tn_status add_node(node *n, const char *label) {
    tn_onnx_reader *r = n->r;
    tn_region *regions = tn_arena_alloc(&n->scratch, (n->graphs.len + 1) * sizeof *regions);
    if (!regions)
        return tn_error_status();
    TN_TRY(read_graphs(n, regions));
    TN_TRY(add_captures(n, regions));
    TN_TRY(note_nameless(n));
    uint32_t location = tn_location_make(r->graph, n->op_name, label, r->file, 0);
    tn_graph_at_location(r->graph, location);
    tn_node id = tn_graph_add_node(r->graph, &(tn_node_desc){.op = n->row,
                                                             .name = label,
                                                             .input_count = n->inputs.len,
                                                             .inputs = n->inputs.data,
                                                             .output_count = n->outputs.len,
                                                             .attr_count = n->attrs.len,
                                                             .attrs = n->attrs.data,
                                                             .region_count = n->graphs.len,
                                                             .regions = regions});
    if (!id.id)
        return tn_graph_check(r->graph);
    for (uint32_t i = 0; i < n->outputs.len; i++) {
        if (!n->outputs.data[i])
            continue;
        tn_value value = tn_node_output(r->graph, id, i);
        TN_TRY(tn_value_set_name(r->graph, value, tn_onnx_text(r, n->outputs.data[i])));
        TN_TRY(tn_onnx_bind(r, n->outputs.data[i], value));
    }
    return TN_OK;
}

static tn_status read_node(node *n, tn_slice message, const char **label) {
    uint32_t id;
    TN_TRY(read_head(n, message));
    if (!tn_onnx_name(n->r, n->name, &id))
        return tn_error_status();
    *label = tn_onnx_text(n->r, id);
    TN_TRY(find_row(n));
    TN_TRY(read_values(n, message));
    for (uint32_t i = 0; i < n->attr_messages.len; i++)
        TN_TRY(read_attr(n, n->attr_messages.data[i]));
    TN_TRY(check_twice(n));
    if (n->known)
        TN_TRY(order_graphs(n));
    TN_TRY(add_own_attrs(n, message));
    return add_node(n, *label);
}

tn_status tn_onnx_read_node(tn_onnx_reader *r, tn_slice message) {
    node n = {.r = r};
    const char *label = "";
    tn_arena_init(&n.scratch, r->heap);
    tn_status status = read_node(&n, message, &label);
    if (status != TN_OK)
        tn_fail_where("node '%s' (" TN_SLICE_FMT ")", label, TN_SLICE_ARG(n.op));
    for (uint32_t i = 0; i < n.attrs.len; i++)
        if (n.attrs.data[i].kind == TN_ATTR_TENSOR)
            tn_tensor_destroy(n.attrs.data[i].as.tensor);
    tn_vec_free(r->heap, &n.inputs);
    tn_vec_free(r->heap, &n.outputs);
    tn_vec_free(r->heap, &n.attrs);
    tn_vec_free(r->heap, &n.graphs);
    tn_vec_free(r->heap, &n.graph_names);
    tn_vec_free(r->heap, &n.attr_messages);
    tn_arena_free(&n.scratch);
    return status;
}
