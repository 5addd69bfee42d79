/* Dimensions as text: printing, and parsing what was printed back to the same expression. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "ir/dim_work.h"
#include "ir/graph.h"

static const struct {
    const char *name;
    tn_dim_kind kind;
    bool many; /* two operands or more, in any order */
} functions[] = {
    {"floordiv", TN_DIM_FLOORDIV, false},
    {"ceildiv", TN_DIM_CEILDIV, false},
    {"mod", TN_DIM_MOD, false},
    {"min", TN_DIM_MIN, true},
    {"max", TN_DIM_MAX, true},
    {"broadcast", TN_DIM_BROADCAST, true},
};
#define FUNCTIONS ((int)(sizeof functions / sizeof functions[0]))

static int function_named(const char *name, size_t length) {
    for (int i = 0; i < FUNCTIONS; i++)
        if (strlen(functions[i].name) == length && memcmp(functions[i].name, name, length) == 0)
            return i;
    return -1;
}

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* --- printing --- */

static void print_name(tn_text *out, const char *name, size_t length, bool fresh) {
    uint32_t number;
    bool plain = length > 0 && is_letter(name[0]) && function_named(name, length) < 0 &&
                 tn_dim_name_is_fresh(name, length, &number) == fresh;
    for (size_t i = 0; i < length && plain; i++)
        plain = is_letter(name[i]) || is_digit(name[i]);
    if (plain) {
        tn_text_bytes(out, name, length);
        return;
    }
    tn_text_add(out, "`");
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)name[i];
        if (c == '`' || c == '\\')
            tn_text_printf(out, "\\%c", c);
        else if (c < 0x20 || c == 0x7f)
            tn_text_printf(out, "\\x%02X", (unsigned)c);
        else
            tn_text_bytes(out, name + i, 1);
    }
    tn_text_add(out, "`");
}

/* Operands in the order of their texts: constants last, longer sums first when `sums_first`. */
typedef struct printed {
    tn_text text;
    int64_t coef;  /* ADD: of the term */
    uint32_t rank; /* greater ranks first */
} printed;

static int compare_printed(const void *a, const void *b) {
    const printed *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank > y->rank ? -1 : 1;
    return x->text.data == NULL || y->text.data == NULL ? 0 : strcmp(x->text.data, y->text.data);
}

static void print(const tn_dims *dims, uint32_t id, tn_text *out);

static void free_printed(const tn_dims *dims, printed *parts, uint32_t count) {
    for (uint32_t i = 0; i < count && parts != NULL; i++)
        tn_text_free(&parts[i].text);
    tn_free(dims->heap, parts);
}

/* The operands' texts, sorted. NULL (out->failed set) when out of memory. */
static printed *print_parts(const tn_dims *dims, const uint32_t *ids, uint32_t count, bool of_sum, tn_text *out) {
    printed *parts = tn_alloc_array(dims->heap, count, sizeof *parts);
    for (uint32_t i = 0; i < count && parts != NULL; i++) {
        const tn_dim_expr *e = tn_dim_at(dims, ids[i]);
        uint32_t id = of_sum && e->kind == TN_DIM_MUL ? e->unit : ids[i];
        parts[i].coef = of_sum && e->kind == TN_DIM_MUL ? e->constant : 1;
        parts[i].rank = e->kind == TN_DIM_CONST            ? 0
                        : !of_sum && e->kind == TN_DIM_ADD ? 2 + e->nargs + (e->constant != 0)
                                                           : 1;
        tn_text_init(&parts[i].text, dims->heap);
        print(dims, id, &parts[i].text);
        if (parts[i].text.failed)
            out->failed = true;
    }
    if (parts == NULL || out->failed) {
        out->failed = true;
        free_printed(dims, parts, count);
        return NULL;
    }
    qsort(parts, count, sizeof *parts, compare_printed);
    return parts;
}

static uint64_t magnitude_of(int64_t x) {
    return x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
}

/* coef * mono, with the sign as an operator between terms. The coefficient stands first, but last after sums in
   parentheses: it would be multiplied into the first. */
static void print_term(tn_text *out, int64_t coef, const tn_text *mono, bool first) {
    bool sum = mono->len > 0 && mono->data[0] == '(';
    bool whole = sum && coef == INT64_MIN; /* its magnitude alone cannot be read back */
    bool minus = coef < 0 && !whole;
    tn_text_add(out, first ? (minus ? "-" : "") : minus ? " - " : " + ");
    if (magnitude_of(coef) != 1 && !sum)
        tn_text_printf(out, "%" PRIu64 "*", magnitude_of(coef));
    tn_text_bytes(out, mono->data, mono->len);
    if (magnitude_of(coef) != 1 && sum)
        tn_text_printf(out, "*%s%" PRIu64, whole ? "-" : "", magnitude_of(coef));
}

static void print_sum(const tn_dims *dims, const tn_dim_expr *e, tn_text *out) {
    printed *parts = print_parts(dims, tn_dim_args(dims, e), e->nargs, true, out);
    if (parts == NULL)
        return;
    for (uint32_t i = 0; i < e->nargs; i++)
        print_term(out, parts[i].coef, &parts[i].text, i == 0);
    if (e->constant != 0)
        tn_text_printf(out, " %c %" PRIu64, e->constant < 0 ? '-' : '+', magnitude_of(e->constant));
    free_printed(dims, parts, e->nargs);
}

static void print_product(const tn_dims *dims, const tn_dim_expr *e, tn_text *out) {
    printed *parts = print_parts(dims, tn_dim_args(dims, e), e->nargs, false, out);
    if (parts == NULL)
        return;
    tn_text mono;
    tn_text_init(&mono, dims->heap);
    for (uint32_t i = 0; i < e->nargs; i++) {
        tn_text_add(&mono, i > 0 ? "*" : "");
        tn_text_add(&mono, parts[i].rank > 1 ? "(" : "");
        tn_text_bytes(&mono, parts[i].text.data, parts[i].text.len);
        tn_text_add(&mono, parts[i].rank > 1 ? ")" : "");
    }
    out->failed = out->failed || mono.failed;
    if (!mono.failed)
        print_term(out, e->constant, &mono, true);
    tn_text_free(&mono);
    free_printed(dims, parts, e->nargs);
}

static void print_call(const tn_dims *dims, const tn_dim_expr *e, tn_text *out) {
    const uint32_t *args = tn_dim_args(dims, e);
    int f = 0;
    while (functions[f].kind != e->kind)
        f++;
    tn_text_printf(out, "%s(", functions[f].name);
    printed *parts = functions[f].many ? print_parts(dims, args, e->nargs, false, out) : NULL;
    for (uint32_t i = 0; i < e->nargs && !out->failed; i++) {
        tn_text_add(out, i > 0 ? ", " : "");
        if (parts != NULL)
            tn_text_bytes(out, parts[i].text.data, parts[i].text.len);
        else
            print(dims, args[i], out);
    }
    tn_text_add(out, ")");
    if (parts != NULL)
        free_printed(dims, parts, e->nargs);
}

static void print(const tn_dims *dims, uint32_t id, tn_text *out) {
    const tn_dim_expr *e = tn_dim_at(dims, id);
    const tn_dim_sym *symbol;
    switch ((tn_dim_kind)e->kind) {
    case TN_DIM_CONST: tn_text_printf(out, "%" PRId64, e->constant); break;
    case TN_DIM_SYMBOL:
        symbol = &dims->symbol.data[e->symbol];
        print_name(out, tn_strings_text(&dims->strings, symbol->name), tn_strings_length(&dims->strings, symbol->name),
                   symbol->fresh);
        break;
    case TN_DIM_ADD: print_sum(dims, e, out); break;
    case TN_DIM_MUL: print_product(dims, e, out); break;
    default: print_call(dims, e, out);
    }
}

void tn_dim_print(const tn_dims *dims, tn_dim dim, tn_text *out) {
    if (dim.id == 0 || dim.id >= dims->expr.len)
        tn_text_add(out, "?");
    else
        print(dims, dim.id, out);
}

/* --- parsing --- */

typedef struct parser {
    tn_dim_work work;
    const char *text;
    size_t length, at;
    int depth;
    bool failed; /* the error is set */
} parser;

static uint32_t parse_sum(parser *p);

/* Sets the error unless one is set; answers 0. */
static uint32_t wrong(parser *p, const char *what) {
    if (!p->failed)
        tn_fail(TN_ERR_MODEL, "a dimension's text is wrong at byte %zu: %s", p->at, what);
    p->failed = true;
    return 0;
}

/* Passes `id` on; 0 makes the reason the error. */
static uint32_t checked(parser *p, uint32_t id) {
    if (id == 0 && !p->failed) {
        tn_dimw_report(&p->work);
        p->failed = true;
    }
    return id;
}

static char peek(parser *p) {
    while (p->at < p->length && (p->text[p->at] == ' ' || p->text[p->at] == '\t'))
        p->at++;
    return p->at < p->length ? p->text[p->at] : '\0';
}

static bool take(parser *p, char c) {
    size_t before = p->at;
    if (c != '\0' && peek(p) == c) {
        p->at++;
        return true;
    }
    p->at = before;
    return false;
}

static int hex_digit(char c) {
    if (is_digit(c))
        return c - '0';
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static uint32_t parse_quoted(parser *p) {
    tn_text name;
    tn_text_init(&name, p->work.dims->heap);
    bool closed = false, bad = false;
    uint32_t id = 0;
    while (p->at < p->length && !closed && !bad) {
        char c = p->text[p->at++];
        if (c == '`') {
            closed = true;
        } else if (c == '\\' && p->at < p->length) {
            c = p->text[p->at++];
            if (c == 'x') {
                int high = p->at + 2 <= p->length ? hex_digit(p->text[p->at]) : -1;
                int low = high >= 0 ? hex_digit(p->text[p->at + 1]) : -1;
                bad = low < 0 || high * 16 + low == 0;
                p->at += bad ? 0 : 2;
                c = (char)(high * 16 + low);
            } else {
                bad = c != '`' && c != '\\';
            }
            tn_text_bytes(&name, &c, 1);
        } else {
            bad = c == '\\' || c == '\0';
            tn_text_bytes(&name, &c, 1);
        }
    }
    if (name.failed) {
        p->work.why = TN_DIM_MEMORY;
        checked(p, 0);
    } else if (!closed || bad || name.len == 0) {
        wrong(p, "a name in backquotes is not ended, empty, or has a wrong escape");
    } else {
        id = checked(p, tn_dimw_symbol(&p->work, name.data, name.len, false));
    }
    tn_text_free(&name);
    return id;
}

static uint32_t parse_call(parser *p, int f) {
    uint32_t id = parse_sum(p), count = 1;
    while (id != 0 && take(p, ',')) {
        uint32_t next = parse_sum(p);
        if (++count > 2 && !functions[f].many)
            return wrong(p, "two operands are wanted");
        id = next == 0 ? 0 : checked(p, tn_dimw_apply(&p->work, functions[f].kind, id, next));
    }
    if (id == 0)
        return 0;
    if (count < 2)
        return wrong(p, "two operands are wanted");
    return take(p, ')') ? id : wrong(p, "')' is wanted");
}

static uint32_t parse_word(parser *p) {
    size_t start = p->at;
    uint32_t number;
    while (p->at < p->length && (is_letter(p->text[p->at]) || is_digit(p->text[p->at])))
        p->at++;
    const char *name = p->text + start;
    size_t length = p->at - start;
    int f = function_named(name, length);
    if (f >= 0 && take(p, '('))
        return parse_call(p, f);
    bool fresh = tn_dim_name_is_fresh(name, length, &number);
    uint32_t id = checked(p, tn_dimw_symbol(&p->work, name, length, fresh));
    if (id != 0 && fresh && number > p->work.dims->fresh)
        p->work.dims->fresh = number;
    return id;
}

static uint32_t parse_factor(parser *p) {
    char c = peek(p);
    int64_t value;
    size_t used;
    if (is_digit(c) || (c == '-' && p->at + 1 < p->length && is_digit(p->text[p->at + 1]))) {
        if (!tn_parse_i64(p->text + p->at, p->length - p->at, &value, &used) || used == 0)
            return wrong(p, "the number does not fit in 64 bits");
        p->at += used;
        return checked(p, tn_dimw_const(&p->work, value));
    }
    if (c == '`') {
        p->at++;
        return parse_quoted(p);
    }
    if (is_letter(c))
        return parse_word(p);
    if (c != '(')
        return wrong(p, "a number, a name or '(' is wanted");
    p->at++;
    uint32_t id = parse_sum(p);
    return id == 0 ? 0 : take(p, ')') ? id : wrong(p, "')' is wanted");
}

/* The first factor of a term; *sign is the term's. - 9223372036854775808 is read whole. */
static uint32_t parse_first_factor(parser *p, int64_t *sign) {
    char c = peek(p);
    uint64_t magnitude;
    size_t used;
    if (c == '-' && p->at + 1 < p->length && !is_digit(p->text[p->at + 1])) {
        p->at++;
        *sign = -*sign;
    } else if (*sign < 0 && is_digit(c) && tn_parse_u64(p->text + p->at, p->length - p->at, &magnitude, &used) &&
               magnitude == (uint64_t)1 << 63) {
        p->at += used;
        *sign = 1;
        return checked(p, tn_dimw_const(&p->work, INT64_MIN));
    }
    return parse_factor(p);
}

/* A product, added to `sum` with a sign. */
static bool parse_term(parser *p, tn_poly *sum, int64_t sign) {
    tn_dims *dims = p->work.dims;
    tn_poly part = {0};
    uint32_t id = parse_first_factor(p, &sign);
    while (id != 0 && take(p, '*')) {
        uint32_t factor = parse_factor(p);
        id = factor == 0 ? 0 : checked(p, tn_dimw_mul(&p->work, id, factor));
    }
    bool ok = id != 0 && tn_poly_of(dims, id, &part, &p->work.why) && tn_poly_add(dims, sum, &part, sign, &p->work.why);
    tn_poly_free(dims, &part);
    return ok || checked(p, 0) != 0;
}

static uint32_t parse_sum(parser *p) {
    tn_poly sum = {0};
    if (++p->depth > TN_DIM_MAX_DEPTH)
        return wrong(p, "nested too deeply");
    bool ok = parse_term(p, &sum, 1);
    while (ok) {
        int64_t sign = take(p, '+') ? 1 : take(p, '-') ? -1 : 0;
        if (sign == 0)
            break;
        ok = parse_term(p, &sum, sign);
    }
    uint32_t id = ok ? checked(p, tn_dimw_from_poly(&p->work, &sum)) : 0;
    tn_poly_free(p->work.dims, &sum);
    p->depth--;
    return id;
}

tn_dim tn_dim_parse(tn_graph *graph, const char *text, size_t length, size_t *used) {
    parser p = {.work = {tn_graph_dims(graph), TN_DIM_FINE}, .text = text, .length = length};
    uint32_t id = parse_sum(&p);
    if (used != NULL)
        *used = p.at;
    return (tn_dim){id};
}
