/* TypeProto and ValueInfoProto, from types of the graph and from what a file declared, as text. */
#include <string.h>

#include "base/number.h"
#include "onnx/writer.h"

/* --- types as text ---------------------------------------------------------------------------------------------------------------- */

typedef struct reading {
    const char *at, *end;
    int depth;
} reading;

static bool eat(reading *r, const char *word) {
    size_t length = strlen(word);
    if ((size_t)(r->end - r->at) < length || memcmp(r->at, word, length) != 0)
        return false;
    r->at += length;
    return true;
}

/* A name in quotes, as tn_text_quoted writes it: unescaped into `out`. */
static bool eat_quoted(reading *r, tn_text *out) {
    if (!eat(r, "\""))
        return false;
    while (r->at < r->end && *r->at != '"') {
        char c = *r->at++;
        if (c == '\\' && r->at < r->end) {
            c = *r->at++;
            if (c == 'n' || c == 't') {
                c = c == 'n' ? '\n' : '\t';
            } else if (c == 'x' && r->end - r->at >= 2) {
                static const char hex[] = "0123456789abcdef";
                const char *high = memchr(hex, r->at[0] | 32, 16), *low = memchr(hex, r->at[1] | 32, 16);
                if (!high || !low)
                    return false;
                c = (char)((high - hex) << 4 | (low - hex));
                r->at += 2;
            }
        }
        tn_text_bytes(out, &c, 1);
    }
    return eat(r, "\"");
}

/* One entry of a shape: a Dimension message. */
static bool eat_dim(reading *r, tn_wire_out *shape) {
    tn_wire_out dim;
    tn_text name;
    size_t used = 0, length = 0;
    int64_t size;
    bool good = true;
    tn_wire_out_init(&dim, shape->text.heap);
    tn_text_init(&name, shape->text.heap);
    while (r->at + length < r->end && !strchr(",]", r->at[length]))
        length++;
    if (r->at < r->end && *r->at == '"') {
        good = eat_quoted(r, &name);
        if (good)
            tn_wire_out_bytes(&dim, 2, name.data ? name.data : "", name.len);
    } else if (!eat(r, "?")) {
        good = length > 0;
        if (good && tn_parse_i64(r->at, length, &size, &used) && used == length)
            tn_wire_out_number(&dim, 1, (uint64_t)size);
        else if (good)
            tn_wire_out_bytes(&dim, 2, r->at, length);
        r->at += length;
    }
    tn_text_free(&name);
    tn_wire_out_message(shape, 1, &dim);
    return good;
}

static bool eat_type(reading *r, uint32_t field, tn_wire_out *out);

/* The one element type of a sequence, optional or map, and its end. */
static bool eat_element(reading *r, tn_wire_out *body, uint32_t at, uint32_t which, tn_wire_out *type) {
    bool good = ++r->depth <= TN_MAX_NESTING && eat_type(r, at, body) && eat(r, ")");
    r->depth--;
    tn_wire_out_message(type, which, body);
    return good;
}

static bool eat_dtype(reading *r, const char *stop, uint64_t *dtype) {
    char name[24];
    size_t length = 0;
    while (r->at + length < r->end && length < sizeof name - 1 && !strchr(stop, r->at[length]))
        length++;
    memcpy(name, r->at, length);
    name[length] = 0;
    *dtype = tn_dtype_from_name(name);
    r->at += length;
    return *dtype != 0;
}

static bool eat_tensor(reading *r, uint32_t which, tn_wire_out *type) {
    tn_wire_out body, shape;
    uint64_t dtype;
    bool good = eat_dtype(r, "[,)", &dtype) && eat(r, "[");
    tn_wire_out_init(&body, type->text.heap);
    tn_wire_out_number(&body, 1, dtype);
    if (good && !eat(r, "*]")) {
        tn_wire_out_init(&shape, type->text.heap);
        if (!eat(r, "]"))
            do
                good = eat_dim(r, &shape);
            while (good && eat(r, ","));
        good = good && (r->at[-1] == ']' || eat(r, "]"));
        tn_wire_out_message(&body, 2, &shape);
    }
    tn_wire_out_message(type, which, &body);
    return good;
}

static bool eat_type(reading *r, uint32_t field, tn_wire_out *out) {
    tn_wire_out type, body;
    bool good;
    uint64_t key;
    tn_wire_out_init(&type, out->text.heap);
    tn_wire_out_init(&body, out->text.heap);
    if (eat(r, "seq("))
        good = eat_element(r, &body, 1, 4, &type);
    else if (eat(r, "optional("))
        good = eat_element(r, &body, 1, 9, &type);
    else if (eat(r, "map(")) {
        good = eat_dtype(r, ",", &key) && eat(r, ",");
        tn_wire_out_number(&body, 1, key);
        good = good && eat_element(r, &body, 2, 5, &type);
    } else if (eat(r, TN_SPARSE_TYPE)) {
        good = eat_tensor(r, 8, &type) && eat(r, ")");
    } else {
        good = eat_tensor(r, 1, &type);
    }
    tn_wire_out_free(&body);
    tn_wire_out_message(out, field, &type);
    return good;
}

bool tn_onnx_write_declared(tn_onnx_writer *w, const char *text, size_t length, uint32_t field, tn_wire_out *out) {
    reading r = {.at = text, .end = text + length};
    tn_wire_out whole;
    tn_wire_out_init(&whole, w->heap);
    bool good = eat_type(&r, field, &whole) && r.at == r.end;
    if (good)
        tn_wire_out_raw(out, whole.text.data, whole.text.len);
    out->text.failed = out->text.failed || whole.text.failed;
    tn_wire_out_free(&whole);
    return good;
}

/* --- types of the graph ------------------------------------------------------------------------------------------------------------ */

/* The text of dimension `at` of a declared tensor of `rank` dimensions, or NULL. */
static const char *declared_dim(const char *text, int rank, int at, size_t *length) {
    const char *p = text ? strchr(text, '[') : NULL, *found = NULL;
    int count = 0;
    if (!p || memchr(text, '(', (size_t)(p - text)))
        return NULL;
    for (p++; *p && *p != ']'; count++) {
        const char *begin = p;
        for (bool quoted = false; *p && (quoted || (*p != ',' && *p != ']')); p++)
            if (*p == '"')
                quoted = !quoted;
            else if (quoted && *p == '\\' && p[1])
                p++;
        if (count == at)
            found = begin, *length = (size_t)(p - begin);
        if (*p == ',')
            p++;
    }
    return count == rank ? found : NULL;
}

static void put_dim(const tn_graph *g, tn_dim dim, const char *text, size_t length, tn_wire_out *shape) {
    tn_wire_out message;
    const tn_dim_expr *e = dim.id < g->dims.expr.len ? &g->dims.expr.data[dim.id] : NULL;
    int64_t size;
    bool named = e && dim.id && e->kind == TN_DIM_SYMBOL && !g->dims.symbol.data[e->symbol].fresh;
    if (!(dim.id && tn_dim_is_const(g, dim, &size)) && !named && text) {
        reading r = {.at = text, .end = text + length};
        eat_dim(&r, shape);
        return;
    }
    tn_wire_out_init(&message, shape->text.heap);
    if (dim.id && tn_dim_is_const(g, dim, &size))
        tn_wire_out_number(&message, 1, (uint64_t)size);
    else if (named)
        tn_wire_out_text(&message, 2, tn_dim_symbol_name(&g->dims, e->symbol));
    tn_wire_out_message(shape, 1, &message);
}

static void put_tensor(tn_onnx_writer *w, tn_type type, const char *text, tn_wire_out *out) {
    const tn_graph *g = w->graph;
    tn_wire_out body, shape;
    int rank = tn_type_rank(g, type);
    bool sparse = text && strncmp(text, TN_SPARSE_TYPE, sizeof TN_SPARSE_TYPE - 1) == 0;
    if (sparse)
        text += sizeof TN_SPARSE_TYPE - 1;
    tn_wire_out_init(&body, w->heap);
    tn_wire_out_init(&shape, w->heap);
    tn_wire_out_number(&body, 1, (uint64_t)tn_type_dtype(g, type));
    for (int i = 0; i < rank; i++) {
        size_t length = 0;
        const char *dim = declared_dim(text, rank, i, &length);
        put_dim(g, tn_type_dims(g, type)[i], dim, length, &shape);
    }
    if (rank >= 0)
        tn_wire_out_message(&body, 2, &shape);
    tn_wire_out_free(&shape);
    tn_wire_out_message(out, sparse ? 8 : 1, &body);
}

static bool is_known(const tn_graph *g, tn_type type) {
    while (type.id && tn_type_kind(g, type) != TN_KIND_TENSOR)
        type = tn_type_element(g, type);
    return type.id && tn_type_dtype(g, type) != TN_DTYPE_NONE;
}

void tn_onnx_write_type(tn_onnx_writer *w, tn_type type, const char *text, uint32_t field, tn_wire_out *out) {
    const tn_graph *g = w->graph;
    tn_wire_out message, body;
    bool vague = !is_known(g, type) || tn_type_kind(g, type) != TN_KIND_TENSOR || tn_type_rank(g, type) < 0;
    if (!is_known(g, type) || (text && vague)) {
        if (text)
            tn_onnx_write_declared(w, text, strlen(text), field, out);
        return;
    }
    tn_wire_out_init(&message, w->heap);
    tn_wire_out_init(&body, w->heap);
    switch (tn_type_kind(g, type)) {
    case TN_KIND_TENSOR: put_tensor(w, type, text, &message); break;
    case TN_KIND_SEQUENCE:
    case TN_KIND_OPTIONAL:
        tn_onnx_write_type(w, tn_type_element(g, type), NULL, 1, &body);
        tn_wire_out_message(&message, tn_type_kind(g, type) == TN_KIND_SEQUENCE ? 4 : 9, &body);
        break;
    case TN_KIND_MAP:
        tn_wire_out_number(&body, 1, (uint64_t)tn_type_dtype(g, type));
        tn_onnx_write_type(w, tn_type_element(g, type), NULL, 2, &body);
        tn_wire_out_message(&message, 5, &body);
        break;
    }
    tn_wire_out_free(&body);
    tn_wire_out_message(out, field, &message);
}

/* --- values of the main graph ------------------------------------------------------------------------------------------------------- */

const char *tn_onnx_kept(const tn_onnx_writer *w, const char *prefix, const char *name, size_t *length,
                         tn_wire_out *out) {
    const tn_graph *g = w->graph;
    tn_text key;
    tn_text_init(&key, w->heap);
    tn_text_printf(&key, "%s%s", prefix, name);
    out->text.failed = out->text.failed || key.failed;
    uint32_t id = key.failed ? UINT32_MAX : tn_strings_find(&g->strings, key.data, key.len);
    tn_text_free(&key);
    uint64_t at;
    if (id == UINT32_MAX || !tn_map_get(&w->declared, id, &at))
        return NULL;
    *length = tn_strings_length(&g->strings, g->metadata.data[at].value);
    return tn_strings_text(&g->strings, g->metadata.data[at].value);
}

void tn_onnx_write_value(tn_onnx_writer *w, tn_value value, const char *name, uint32_t field, tn_wire_out *out) {
    tn_wire_out info;
    size_t length = 0;
    tn_wire_out_init(&info, w->heap);
    tn_wire_out_text(&info, 1, name);
    const char *declared = tn_onnx_kept(w, TN_META_TYPE, name, &length, out);
    tn_onnx_write_type(w, tn_value_type(w->graph, value), declared, 2, &info);
    const char *kept = tn_onnx_kept(w, TN_META_INFO, name, &length, out);
    if (kept)
        tn_wire_out_raw(&info, kept, length);
    tn_wire_out_message(out, field, &info);
}
