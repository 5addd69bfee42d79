/* What files declare of values, held against what inference finds: of the main graph, of the bodies of nodes, of functions. Inference
   wins; the file's word is said to be false. */
#include "onnx/expander.h"
#include "onnx/reader.h"

#include <inttypes.h>
#include <stdio.h>

enum { MAX_WARNINGS = 50 };

/* --- comparing ---------------------------------------------------------------------------------------------------------------------- */

/* The length of "sparse(" before the type of a tensor, if it stands there: the value is the dense tensor. */
static size_t sparse_prefix(const char *text, size_t length) {
    size_t prefix = sizeof TN_SPARSE_TYPE - 1;
    return length > prefix && memcmp(text, TN_SPARSE_TYPE, prefix) == 0 ? prefix : 0;
}

/* Whether what the file declares ("f32[1,N,?]"; tensors alone say something) can be the type of a value; `single`: a scalar may be
   declared as [1]. */
static bool agrees(const tn_graph *g, tn_value value, bool single, const char *declared) {
    tn_type type = tn_value_type(g, value);
    declared += sparse_prefix(declared, strlen(declared));
    const char *p = declared + strcspn(declared, "[");
    if (!type.id || tn_type_kind(g, type) != TN_KIND_TENSOR || *p != '[' ||
        memchr(declared, '(', (size_t)(p - declared)))
        return true;
    int rank = tn_type_rank(g, type), at = 0;
    const char *dtype = tn_dtype_name(tn_type_dtype(g, type));
    if (tn_type_dtype(g, type) &&
        (strlen(dtype) != (size_t)(p - declared) || strncmp(dtype, declared, strlen(dtype)) != 0))
        return false;
    if (rank < 0 || p[1] == '*' || (single && rank == 0 && strcmp(p, "[1]") == 0))
        return true;
    for (p++; *p && *p != ']'; at++) {
        int64_t size = 0, actual;
        bool known = *p >= '0' && *p <= '9';
        for (bool quoted = false; *p && (quoted || (*p != ',' && *p != ']')); p++)
            if (*p == '"')
                quoted = !quoted;
            else if (quoted && *p == '\\' && p[1])
                p++;
            else if (known && size < INT64_MAX / 10 - 9)
                size = size * 10 + (*p - '0');
        if (*p == ',')
            p++;
        if (at >= rank)
            return false;
        int64_t low, high;
        tn_dim_bounds(g, tn_value_dim(g, value, at), &low, &high);
        if (known &&
            (tn_dim_is_const(g, tn_value_dim(g, value, at), &actual) ? actual != size : size < low || size > high))
            return false;
    }
    return at == rank;
}

static void warn(tn_expander *ex, tn_node node, const tn_claim *claim, tn_value made) {
    const tn_graph *g = ex->graph;
    char origin[256], type[256];
    tn_text line;
    tn_text_init(&line, g->heap);
    tn_text_printf(
        &line, "%s: value '%s'%s is declared as %s, but is %s\n",
        tn_node_origin_count(g, node) ? tn_node_origin(g, node, 0, origin, sizeof origin) : tn_node_op_name(g, node),
        claim->value, claim->place, claim->type, tn_type_describe(g, tn_value_type(g, made), type, sizeof type));
    if (line.failed) {
        ex->warnings.failed = true;
    } else if (!ex->warnings.data || !strstr(ex->warnings.data, line.data)) { /* a body may be built more than once */
        ex->warning_count++;
        tn_text_bytes(&ex->warnings, line.data, line.len);
    }
    tn_text_free(&line);
}

static const tn_claim *claims_of(const tn_expander *ex, tn_value value) {
    uint64_t first;
    return value.id && tn_map_get(&ex->claims, value.id, &first) ? (const tn_claim *)(uintptr_t)first : NULL;
}

void tn_declared_compare(tn_expander *ex, tn_node node, tn_value declared, tn_value made, bool single) {
    for (const tn_claim *c = made.id ? claims_of(ex, declared) : NULL; c; c = c->next)
        if (ex->warning_count < MAX_WARNINGS && !agrees(ex->graph, made, single, c->type))
            warn(ex, node, c, made);
}

tn_status tn_declared_follow(tn_expander *ex, tn_value from, tn_value to) {
    const tn_claim *c = claims_of(ex, from);
    return !c || tn_map_put(ex->graph->heap, &ex->claims, to.id, (uintptr_t)c) ? TN_OK : tn_error_status();
}

tn_warnings_mark tn_warnings_here(const tn_expander *ex) {
    return (tn_warnings_mark){ex->warnings.len, ex->warning_count};
}

void tn_warnings_back_to(tn_expander *ex, tn_warnings_mark mark) {
    if (ex->warnings.len > mark.length)
        ex->warnings.data[ex->warnings.len = mark.length] = 0;
    ex->warning_count = mark.count;
}

/* --- collecting --------------------------------------------------------------------------------------------------------------------- */

/* What is declared of `value`. Strings but `place` are copied. */
static tn_status add_claim(tn_expander *ex, tn_value value, tn_slice name, tn_slice type, const char *place) {
    tn_claim *c = tn_arena_alloc(&ex->claim_text, sizeof *c);
    if (!c)
        return tn_error_status();
    *c = (tn_claim){claims_of(ex, value), tn_arena_strndup(&ex->claim_text, (const char *)name.data, name.size),
                    tn_arena_strndup(&ex->claim_text, (const char *)type.data, type.size), place};
    return c->value && c->type && tn_map_put(ex->graph->heap, &ex->claims, value.id, (uintptr_t)c) ? TN_OK
                                                                                                   : tn_error_status();
}

/* A region whose values are declared by name. */
typedef struct named {
    tn_expander *ex;
    tn_node owner;     /* null: a function */
    const char *place; /* " in body of Loop 'rows'" */
    tn_map values;     /* string id -> value */
} named;

static bool add_name(named *n, tn_value value, bool again) {
    const tn_graph *g = n->ex->graph;
    uint32_t name = value.id ? g->value.data[value.id].name : 0;
    return !name || (!again && tn_map_get(&n->values, name, NULL)) || tn_map_put(g->heap, &n->values, name, value.id);
}

/* The names of a region: its own, and those of outer values that it returns. */
static tn_status add_names(named *n, tn_region region) {
    const tn_graph *g = n->ex->graph;
    bool ok = true;
    for (uint32_t i = 0; i < tn_region_arg_count(g, region) && ok; i++)
        ok = add_name(n, tn_region_arg(g, region, i), true);
    for (tn_node node = tn_region_first(g, region); node.id && ok; node = tn_node_next(g, node))
        for (uint32_t i = 0; i < tn_node_output_count(g, node) && ok; i++)
            ok = add_name(n, tn_node_output(g, node, i), true);
    for (uint32_t i = 0; i < tn_region_result_count(g, region) && ok; i++)
        ok = add_name(n, tn_region_result(g, region, i), false);
    return ok ? TN_OK : tn_error_status();
}

static tn_status declare(named *n, tn_slice name, tn_slice type) {
    const tn_graph *g = n->ex->graph;
    uint32_t id = name.size ? tn_strings_find(&g->strings, (const char *)name.data, name.size) : UINT32_MAX;
    uint64_t found;
    if (id == UINT32_MAX || !tn_map_get(&n->values, id, &found))
        return TN_OK;
    tn_value value = {(uint32_t)found};
    TN_TRY(add_claim(n->ex, value, name, type, n->place));
    if (n->owner.id && tn_value_type(g, value).id) /* a constant, an input of the model: nothing will take its place */
        tn_declared_compare(n->ex, n->owner, value, value, false);
    return TN_OK;
}

/* "VALUE: TYPE" of a tensor: where the type begins, else 0. */
static size_t type_in(tn_string s) {
    char dtype[16];
    for (size_t i = 0; i + 2 < s.length; i++) {
        const char *type = s.data + i + 2, *bracket = memchr(type, '[', s.length - i - 2);
        if (memcmp(s.data + i, ": ", 2) != 0 || !bracket)
            continue;
        type += sparse_prefix(type, (size_t)(bracket - type));
        if ((size_t)(bracket - type) >= sizeof dtype)
            continue;
        memcpy(dtype, type, (size_t)(bracket - type));
        dtype[bracket - type] = 0;
        if (tn_dtype_from_name(dtype))
            return i + 2;
    }
    return 0;
}

static tn_status collect_body(tn_expander *ex, tn_node owner, tn_region region, const char *name, const tn_attr *list) {
    const tn_graph *g = ex->graph;
    const char *op = tn_node_op_name(g, owner), *dot = strrchr(op, '.');
    char place[256];
    int length = snprintf(place, sizeof place, " in %s of %s '%s'", name, dot ? dot + 1 : op, tn_node_name(g, owner));
    length = length < (int)sizeof place ? length : (int)sizeof place - 1;
    named n = {.ex = ex, .owner = owner, .place = tn_arena_strndup(&ex->claim_text, place, (size_t)length)};
    tn_status status = n.place ? add_names(&n, region) : tn_error_status();
    for (uint32_t i = 1; i < list->count && status == TN_OK; i++) {
        tn_string s = list->as.strings[i];
        size_t at = type_in(s);
        if (at)
            status = declare(&n, (tn_slice){(const uint8_t *)s.data, at - 2},
                             (tn_slice){(const uint8_t *)s.data + at, s.length - at});
    }
    tn_map_free(g->heap, &n.values);
    return status;
}

/* The bodies of the nodes of a region, and those inside. */
static tn_status collect_inside(tn_expander *ex, tn_region region) {
    const tn_graph *g = ex->graph;
    for (tn_node node = tn_region_first(g, region); node.id; node = tn_node_next(g, node)) {
        uint32_t count = tn_node_region_count(g, node);
        if (!count || !tn_node_is_onnx(g, node))
            continue;
        const tn_op *op = tn_node_op(g, node);
        const tn_onnx_op *row = op->extra == tn_onnx_known ? (const tn_onnx_op *)(const void *)op : NULL;
        tn_string names = tn_attr_string(g, node, "__regions");
        if (row)
            names = (tn_string){row->regions ? row->regions : "", row->regions ? strlen(row->regions) : 0};
        for (uint32_t i = 0; i < count; i++) {
            const char *space = names.length ? memchr(names.data, ' ', names.length) : NULL;
            size_t length = space ? (size_t)(space - names.data) : names.length;
            char key[300];
            int n = snprintf(key, sizeof key, "__graph:%.*s", length < 200 ? (int)length : 0, names.data);
            const tn_attr *list = n > 0 ? tn_node_attr(g, node, key) : NULL;
            if (list && list->count > 1)
                TN_TRY(collect_body(ex, node, tn_node_region(g, node, i), key + sizeof "__graph:" - 1, list));
            names.data += length + (space != NULL);
            names.length -= length + (space != NULL);
            TN_TRY(collect_inside(ex, tn_node_region(g, node, i)));
        }
    }
    return TN_OK;
}

/* `fields`: of the FunctionProto, as they stand in the file. */
static tn_status collect_function(tn_expander *ex, const char *name, tn_slice fields) {
    const tn_graph *g = ex->graph;
    uint32_t id = tn_strings_find(&g->strings, name, strlen(name));
    uint64_t function;
    if (id == UINT32_MAX || !tn_map_get(&ex->functions, id, &function))
        return TN_OK;
    named n = {.ex = ex};
    tn_wire w;
    tn_wire_field f;
    tn_status status = TN_OK;
    tn_wire_init(&w, fields.data, fields.size);
    while (status == TN_OK && tn_wire_next(&w, &f)) {
        tn_slice value, type;
        tn_text text;
        if (f.key != TN_WIRE_KEY(12, TN_WIRE_BYTES))
            continue;
        if (!n.place) {
            char place[256];
            int length = snprintf(place, sizeof place, " in function '%.200s'", name);
            n.place = tn_arena_strndup(&ex->claim_text, place, (size_t)length);
            status = n.place ? add_names(&n, tn_graph_function_region(g, (uint32_t)function - 1)) : tn_error_status();
        }
        tn_text_init(&text, g->heap);
        if (status == TN_OK)
            status = tn_onnx_read_value_info(tn_wire_slice(&f), &value, &type);
        if (status == TN_OK && type.data)
            status = tn_onnx_print_type(type, 0, &text);
        if (status == TN_OK && text.failed)
            status = tn_error_status();
        if (status == TN_OK && text.len)
            status = declare(&n, value, (tn_slice){(const uint8_t *)text.data, text.len});
        tn_text_free(&text);
    }
    tn_map_free(g->heap, &n.values);
    return status == TN_OK ? w.status : status;
}

static tn_status collect_main(tn_expander *ex, const tn_map *declared) {
    const tn_graph *g = ex->graph;
    tn_region region = tn_graph_region(g);
    uint64_t at;
    for (tn_node node = tn_region_first(g, region); node.id; node = tn_node_next(g, node))
        for (uint32_t i = 0; tn_node_is_onnx(g, node) && i < tn_node_output_count(g, node); i++) {
            tn_value value = tn_node_output(g, node, i);
            const char *name = tn_value_name(g, value);
            if (!*name || !tn_map_get(declared, g->value.data[value.id].name, &at))
                continue;
            uint32_t type = g->metadata.data[at].value;
            TN_TRY(add_claim(
                ex, value, (tn_slice){(const uint8_t *)name, strlen(name)},
                (tn_slice){(const uint8_t *)tn_strings_text(&g->strings, type), tn_strings_length(&g->strings, type)},
                ""));
        }
    return TN_OK;
}

tn_status tn_declared_collect(tn_expander *ex) {
    const tn_graph *g = ex->graph;
    tn_map declared = {0}; /* string id of a name -> index in the metadata */
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < g->metadata.len && status == TN_OK; i++) {
        const char *key = tn_strings_text(&g->strings, g->metadata.data[i].key);
        uint32_t text = g->metadata.data[i].value;
        if (strncmp(key, TN_META_TYPE, sizeof TN_META_TYPE - 1) == 0) {
            const char *name = key + sizeof TN_META_TYPE - 1;
            uint32_t id = tn_strings_find(&g->strings, name, strlen(name));
            if (id != UINT32_MAX && !tn_map_put(g->heap, &declared, id, i))
                status = tn_error_status();
        } else if (strncmp(key, TN_META_FUNCTION, sizeof TN_META_FUNCTION - 1) == 0) {
            status = collect_function(
                ex, key + sizeof TN_META_FUNCTION - 1,
                (tn_slice){(const uint8_t *)tn_strings_text(&g->strings, text), tn_strings_length(&g->strings, text)});
        }
    }
    if (status == TN_OK)
        status = collect_main(ex, &declared);
    tn_map_free(g->heap, &declared);
    if (status == TN_OK)
        status = collect_inside(ex, tn_graph_region(g));
    for (uint32_t f = 0; f < g->function.len && status == TN_OK; f++)
        status = collect_inside(ex, tn_graph_function_region(g, f));
    return status;
}
