/* Types and attributes as text. */
#include <math.h>

#include "base/number.h"
#include "ir/text.h"

bool tn_text_is_word(char c, bool first) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (!first && c >= '0' && c <= '9');
}

void tn_word_print(const char *text, size_t length, const char *mark, tn_text *out) {
    static const char *const reserved[] = {"region", "after", "role", "device", "holds", "op"};
    bool plain = length > 0 && text[0] != '_';
    for (size_t i = 0; i < length && plain; i++)
        plain = tn_text_is_word(text[i], i == 0) || (i > 0 && text[i] == '.');
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved && plain; i++)
        plain = strlen(reserved[i]) != length || memcmp(reserved[i], text, length) != 0;
    if (plain) {
        tn_text_bytes(out, text, length);
    } else {
        tn_text_add(out, mark);
        tn_text_quoted(out, text, length);
    }
}

static void print_type(const tn_graph *graph, tn_type type, tn_text *out, int depth) {
    if (type.id == 0 || type.id >= graph->type.len || depth > TN_MAX_NESTING) {
        tn_text_add(out, "?");
        return;
    }
    const tn_type_rec *rec = &graph->type.data[type.id];
    switch ((tn_kind)rec->kind) {
    case TN_KIND_TENSOR:
        tn_text_add(out, tn_dtype_name((tn_dtype)rec->dtype));
        tn_text_add(out, "[");
        if (rec->rank < 0)
            tn_text_add(out, "*");
        for (int i = 0; i < rec->rank; i++) {
            tn_text_add(out, i ? ", " : "");
            tn_dim_print(&graph->dims, graph->dim_list.data[rec->dims + (uint32_t)i], out);
        }
        tn_text_add(out, "]");
        return;
    case TN_KIND_SEQUENCE:
    case TN_KIND_OPTIONAL: tn_text_add(out, rec->kind == TN_KIND_SEQUENCE ? "seq(" : "optional("); break;
    case TN_KIND_MAP: tn_text_printf(out, "map(%s, ", tn_dtype_name((tn_dtype)rec->dtype)); break;
    }
    print_type(graph, (tn_type){rec->element}, out, depth + 1);
    tn_text_add(out, ")");
}

void tn_type_print(const tn_graph *graph, tn_type type, tn_text *out) {
    print_type(graph, type, out, 0);
}

/* A float attribute: "0.5", "1.0" (never an integer's text), "0.1f" where the float is the shorter text. */
static void print_float(double value, tn_text *out) {
    char wide[TN_NUMBER_TEXT], narrow[TN_NUMBER_TEXT];
    uint64_t bits, canonical;
    double plain = (double)NAN;
    memcpy(&bits, &value, sizeof bits);
    memcpy(&canonical, &plain, sizeof canonical);
    if (isnan(value) && bits != canonical) {
        tn_text_printf(out, "bits(0x%llx)", (unsigned long long)bits);
        return;
    }
    size_t length = tn_format_f64(value, wide);
    if (isfinite(value) && (double)(float)value == value && tn_format_f32((float)value, narrow) + 1 < length) {
        tn_text_add(out, narrow);
        tn_text_add(out, "f");
        return;
    }
    tn_text_bytes(out, wide, length);
    if (isfinite(value) && !strpbrk(wide, ".e"))
        tn_text_add(out, ".0");
}

void tn_attr_print(const tn_graph *graph, const tn_attr *attr, tn_text *out) {
    switch ((tn_attr_kind)attr->kind) {
    case TN_ATTR_NONE: tn_text_add(out, "none"); return;
    case TN_ATTR_INT: tn_text_printf(out, "%lld", (long long)attr->as.i); return;
    case TN_ATTR_FLOAT: print_float(attr->as.f, out); return;
    case TN_ATTR_STRING: tn_text_quoted(out, attr->as.s.data, attr->as.s.length); return;
    case TN_ATTR_DTYPE:
        tn_text_add(
            out, tn_dtype_name(attr->as.i > 0 && attr->as.i < TN_DTYPE_COUNT ? (tn_dtype)attr->as.i : TN_DTYPE_NONE));
        return;
    case TN_ATTR_INTS:
        tn_text_add(out, "[");
        for (uint32_t i = 0; i < attr->count; i++)
            tn_text_printf(out, "%s%lld", i ? ", " : "", (long long)attr->as.ints[i]);
        break;
    case TN_ATTR_FLOATS:
        tn_text_add(out, "floats [");
        for (uint32_t i = 0; i < attr->count; i++) {
            tn_text_add(out, i ? ", " : "");
            tn_element_print(TN_F32, attr->as.floats, i, out);
        }
        break;
    case TN_ATTR_STRINGS:
        tn_text_add(out, "strings [");
        for (uint32_t i = 0; i < attr->count; i++) {
            tn_text_add(out, i ? ", " : "");
            tn_text_quoted(out, attr->as.strings[i].data, attr->as.strings[i].length);
        }
        break;
    case TN_ATTR_DIMS:
        tn_text_add(out, "dims [");
        for (uint32_t i = 0; i < attr->count; i++) {
            tn_text_add(out, i ? ", " : "");
            tn_dim_print(&graph->dims, attr->as.dims[i], out);
        }
        break;
    case TN_ATTR_TENSOR: tn_tensor_print(attr->as.tensor, out); return;
    case TN_ATTR_TYPE:
        tn_text_add(out, "type ");
        tn_type_print(graph, attr->as.type, out);
        return;
    case TN_ATTR_FUNCTION: {
        uint32_t name =
            attr->as.i >= 0 && attr->as.i < (int64_t)graph->function.len ? graph->function.data[attr->as.i].name : 0;
        tn_text_add(out, "function ");
        tn_text_quoted(out, tn_strings_text(&graph->strings, name), tn_strings_length(&graph->strings, name));
        return;
    }
    }
    tn_text_add(out, "]");
}
