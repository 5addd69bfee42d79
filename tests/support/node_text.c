#include "support/node_text.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/number.h"
#include "ir/tensor.h"
#include "support/onnx_bytes.h"

enum { BODIES = 32 };

typedef struct body {
    char name[16];
    tn_text graph;
} body;

typedef struct place { /* what is being read, and where */
    const char *at;
    int line;
    body *bodies;
    uint32_t count;
} place;

static void bad(const place *p, const char *what) {
    fail_msg("line %d: %s at '%.40s'", p->line, what, p->at);
}

/* --- words -------------------------------------------------------------------------------------------------------------------------- */

static void word(place *p, char *to, size_t size, const char *end) {
    size_t n = strcspn(p->at, end);
    if (n >= size)
        bad(p, "too long a word");
    memcpy(to, p->at, n);
    to[n] = 0;
    p->at += n;
}

static bool take(place *p, char c) {
    bool there = *p->at == c;
    p->at += there;
    return there;
}

static int hex(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* A string up to `end`. */
static tn_text string(place *p, const char *end) {
    tn_text s = message();
    size_t n = strcspn(p->at, end);
    const char *stop = p->at + n;
    for (; p->at < stop; p->at++) {
        char c = *p->at;
        if (c == '%' && stop - p->at >= 3 && hex(p->at[1]) >= 0) {
            c = (char)(hex(p->at[1]) * 16 + hex(p->at[2]));
            p->at += 2;
        } else if (c == '%')
            continue;
        tn_text_bytes(&s, &c, 1);
    }
    return s;
}

static double real(place *p) {
    size_t n = strcspn(p->at, ",;) ~\n"), used;
    double v = 0;
    bool minus = *p->at == '-';
    if (strncmp(p->at, "nan", 3) == 0)
        v = (double)NAN;
    else if (strncmp(p->at + minus, "inf", 3) == 0)
        v = minus ? -HUGE_VAL : HUGE_VAL;
    else if (!tn_parse_f64(p->at, n, &v, &used) || used != n)
        bad(p, "no number");
    p->at += n;
    return v;
}

static int64_t whole(place *p) {
    char *end;
    int64_t v = *p->at == '-' ? (int64_t)strtoll(p->at, &end, 10) : (int64_t)strtoull(p->at, &end, 10);
    if (end == p->at)
        bad(p, "no whole number");
    p->at = end;
    return v;
}

/* --- values -------------------------------------------------------------------------------------------------------------------------- */

static tn_dtype dtype(place *p) {
    char name[16];
    word(p, name, sizeof name, "[); \n");
    for (int d = 1; d < TN_DTYPE_COUNT; d++)
        if (strcmp(tn_dtype_name((tn_dtype)d), name) == 0)
            return (tn_dtype)d;
    bad(p, name);
    return TN_DTYPE_NONE;
}

/* `empty`: a form, without its elements. */
static tn_tensor *tensor(place *p, bool empty) {
    int64_t dims[TN_MAX_RANK];
    int rank = 0;
    tn_dtype type = dtype(p);
    if (!take(p, '['))
        bad(p, "no shape");
    while (!take(p, ']')) {
        dims[rank++] = whole(p);
        take(p, ',');
    }
    tn_tensor *t = tn_tensor_create(type, rank, dims);
    assert_non_null(t);
    for (int64_t i = 0; i < t->count && !empty; i++) {
        if (!take(p, ','))
            bad(p, "too few elements");
        if (type == TN_STRING) {
            tn_text s = string(p, ",;) \n");
            assert_int_equal(tn_tensor_set_string(t, i, s.data ? s.data : "", s.len), TN_OK);
            tn_text_free(&s);
        } else if (tn_dtype_is_complex(type)) {
            tn_dtype part = type == TN_C64 ? TN_F32 : TN_F64;
            tn_store_f64(part, t->data, 2 * i, real(p));
            if (!take(p, ','))
                bad(p, "no imaginary part");
            tn_store_f64(part, t->data, 2 * i + 1, real(p));
        } else if (tn_dtype_is_float(type) || type == TN_F4E2M1)
            tn_store_f64(type, t->data, i, real(p));
        else
            tn_store_i64(type, t->data, i, whole(p));
    }
    return t;
}

static tn_object *value(place *p) {
    tn_object *item[NODE_TEXT_MOST] = {NULL};
    size_t n = 0;
    if (strncmp(p->at, "none", 4) == 0) {
        p->at += 4;
        return NULL;
    }
    if (!take(p, '('))
        return tn_tensor_object(tensor(p, false));
    for (; !take(p, ')'); take(p, ';'))
        item[n++] = value(p);
    tn_object *sequence = tn_sequence_create(NULL, n, item);
    assert_non_null(sequence);
    for (size_t i = 0; i < n; i++)
        tn_object_destroy(item[i]);
    return sequence;
}

/* The TypeProto of a tensor; `dtype`: in place of that in the text, TN_DTYPE_NONE: as there. */
static tn_text tensor_type(place *p, tn_dtype instead) {
    tn_text t = message(), inner = message();
    tn_dtype said = dtype(p);
    tn_wire_put_varint(&inner, 1, (uint64_t)(instead ? instead : said));
    if (take(p, '[')) {
        tn_text dims = message();
        while (!take(p, ']')) {
            char dim[32];
            tn_text d = message();
            word(p, dim, sizeof dim, ",]");
            take(p, ',');
            if (*dim >= '0' && *dim <= '9')
                tn_wire_put_varint(&d, 1, (uint64_t)strtoll(dim, NULL, 10));
            else if (*dim != '?')
                put_text(&d, 2, dim);
            put_message(&dims, 1, d);
        }
        put_message(&inner, 2, dims);
    }
    put_message(&t, 1, inner);
    return t;
}

/* A TypeProto; empty: '-'. */
static tn_text type(place *p) {
    tn_text t = message(), inner = message();
    if (take(p, '-'))
        return t;
    uint32_t kind = strncmp(p->at, "seq(", 4) == 0 ? 4 : strncmp(p->at, "opt(", 4) == 0 ? 9 : 0;
    if (!kind)
        return tensor_type(p, TN_DTYPE_NONE);
    p->at += 4;
    put_message(&inner, 1, type(p));
    if (!take(p, ')'))
        bad(p, "no ')'");
    put_message(&t, kind, inner);
    return t;
}

static tn_text tensor_bytes(place *p, const char *name) {
    tn_text bytes = message();
    tn_tensor *t = tensor(p, false);
    assert_int_equal(tn_onnx_write_tensor(&bytes, t, name), TN_OK);
    tn_tensor_destroy(t);
    return bytes;
}

/* --- nodes --------------------------------------------------------------------------------------------------------------------------- */

static void put_float(tn_text *a, uint32_t field, double v) {
    float f = (float)v;
    uint32_t bits;
    memcpy(&bits, &f, 4);
    const char bytes[5] = {(char)(field << 3 | 5), (char)bits, (char)(bits >> 8), (char)(bits >> 16),
                           (char)(bits >> 24)};
    tn_text_bytes(a, bytes, sizeof bytes);
}

static void put_string(place *p, tn_text *a, uint32_t field) {
    tn_text s = string(p, ", \n");
    tn_wire_put_bytes(a, field, s.data ? s.data : "", s.len);
    tn_text_free(&s);
}

static void put_sparse(place *p, tn_text *a) {
    tn_text sparse = message();
    do
        tn_wire_put_varint(&sparse, 3, (uint64_t)whole(p));
    while (take(p, ','));
    take(p, ';');
    put_message(&sparse, 1, tensor_bytes(p, ""));
    take(p, ';');
    put_message(&sparse, 2, tensor_bytes(p, ""));
    put_message(a, 22, sparse);
}

static void put_body(place *p, tn_text *a) {
    char name[16];
    word(p, name, sizeof name, " \n");
    for (uint32_t i = 0; i < p->count; i++)
        if (strcmp(p->bodies[i].name, name) == 0) {
            tn_wire_put_bytes(a, 6, p->bodies[i].graph.data, p->bodies[i].graph.len);
            return;
        }
    bad(p, "no such body");
}

static tn_text attribute(place *p) {
    static const struct {
        char kind;
        int type;
    } kinds[] = {{'f', 1}, {'i', 2}, {'s', 3}, {'T', 4}, {'g', 5}, {'F', 6}, {'I', 7}, {'S', 8}, {'P', 13}, {'Z', 11}};
    char name[64];
    tn_text a = message();
    word(p, name, sizeof name, ":");
    put_text(&a, 1, name);
    char kind = p->at[1];
    p->at += 3;
    bool list = kind == 'F' || kind == 'I' || kind == 'S', more = *p->at != ' ' && *p->at != '\n';
    for (; list && more; more = take(p, ','))
        switch (kind) {
        case 'F': put_float(&a, 7, real(p)); break;
        case 'I': tn_wire_put_varint(&a, 8, (uint64_t)whole(p)); break;
        default: put_string(p, &a, 9);
        }
    switch (kind) {
    case 'f': put_float(&a, 2, real(p)); break;
    case 'i': tn_wire_put_varint(&a, 3, (uint64_t)whole(p)); break;
    case 's': put_string(p, &a, 4); break;
    case 'T': put_message(&a, 5, tensor_bytes(p, "")); break;
    case 'g': put_body(p, &a); break;
    case 'P': put_message(&a, 14, type(p)); break;
    case 'Z': put_sparse(p, &a); break;
    default: break;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].kind == kind) {
            tn_wire_put_varint(&a, 20, (uint64_t)kinds[i].type);
            return a;
        }
    bad(p, "no such kind of attribute");
    return a;
}

static void split_domain(char *op, char *domain, size_t size) {
    char *colon = strchr(op, ':');
    snprintf(domain, size, "%s", colon ? colon + 1 : "");
    if (colon)
        *colon = 0;
}

static void node(place *p, tn_text *graph) {
    char op[128], domain[64], in[400], out[400];
    word(p, op, sizeof op, " ");
    split_domain(op, domain, sizeof domain);
    take(p, ' ');
    word(p, in, sizeof in, " ");
    take(p, ' ');
    word(p, out, sizeof out, " \n");
    tn_text attrs = message();
    while (take(p, ' '))
        put_message(&attrs, 5, attribute(p));
    tn_text n = node_bytes(op, "the node", strcmp(in, "-") == 0 ? "" : in, out, attrs);
    if (*domain)
        put_text(&n, 7, domain);
    put_message(graph, 1, n);
}

/* --- cases --------------------------------------------------------------------------------------------------------------------------- */

static void next_line(place *p) {
    if (*p->at != '\n')
        bad(p, "more than was expected");
    p->at++;
    p->line++;
}

static bool keyword(place *p, const char *name) {
    size_t n = strlen(name);
    bool there = strncmp(p->at, name, n) == 0 && (p->at[n] == ' ' || p->at[n] == '\n');
    p->at += there ? n + (p->at[n] == ' ') : 0;
    return there;
}

static void read_body(place *p) {
    body *b = &p->bodies[p->count];
    char name[32];
    assert_true(p->count < BODIES);
    b->graph = message();
    word(p, b->name, sizeof b->name, "\n");
    next_line(p);
    while (!keyword(p, "end")) {
        while (take(p, ' '))
            ;
        if (keyword(p, "node"))
            node(p, &b->graph);
        else {
            bool in = keyword(p, "in"), out = !in && keyword(p, "out");
            if (!in && !out && !keyword(p, "const"))
                bad(p, "no part of a body");
            word(p, name, sizeof name, " ");
            take(p, ' ');
            if (in || out)
                put_typed(&b->graph, in ? 11 : 12, name, type(p));
            else
                put_message(&b->graph, 5, tensor_bytes(p, name));
        }
        next_line(p);
    }
    put_text(&b->graph, 2, b->name);
    p->count++;
}

typedef enum value_role { IN, CONSTANT, OUT, FORM } value_role;

static void read_value(place *p, node_text *row, value_role role) {
    bool in = role == IN || role == CONSTANT, form = role == FORM;
    node_text_value *v = in ? &row->in[row->ins++] : &row->out[row->outs++];
    assert_true(row->ins <= NODE_TEXT_MOST && row->outs <= NODE_TEXT_MOST);
    word(p, v->name, sizeof v->name, " ");
    take(p, ' ');
    if (role == IN) {
        v->type = p->at;
        p->at += strcspn(p->at, " ");
        take(p, ' ');
    }
    if (!in)
        put_typed(&row->graph, 12, v->name, message());
    v->form = form;
    v->absolute = v->relative = -1;
    v->object = form ? tn_tensor_object(tensor(p, true)) : value(p);
    if (take(p, ' ') && take(p, '~')) {
        v->absolute = real(p);
        take(p, ',');
        v->relative = real(p);
    }
}

bool node_text_next(node_text_reader *reader, node_text *row) {
    body bodies[BODIES];
    char name[128];
    place p = {.at = reader->at, .line = reader->line, .bodies = bodies};
    for (; *p.at == '#' || *p.at == '\n'; next_line(&p))
        p.at += strcspn(p.at, "\n");
    if (!*p.at)
        return false;
    memset(row, 0, sizeof *row);
    row->graph = message();
    row->line = p.line;
    if (!keyword(&p, "case"))
        bad(&p, "no case");
    word(&p, name, sizeof name, " ");
    split_domain(name, row->domain, sizeof row->domain);
    snprintf(row->op, sizeof row->op, "%s", name);
    take(&p, ' ');
    row->version = (int)whole(&p);
    take(&p, ' ');
    row->opset = (int)whole(&p);
    next_line(&p);
    for (; *p.at && !(strncmp(p.at, "case ", 5) == 0) && *p.at != '\n' && *p.at != '#'; next_line(&p)) {
        if (keyword(&p, "node"))
            node(&p, &row->graph);
        else if (keyword(&p, "graph"))
            read_body(&p);
        else if (keyword(&p, "const"))
            read_value(&p, row, CONSTANT);
        else if (keyword(&p, "in"))
            read_value(&p, row, IN);
        else if (keyword(&p, "out"))
            read_value(&p, row, OUT);
        else if (keyword(&p, "form"))
            read_value(&p, row, FORM);
        else
            bad(&p, "no part of a case");
    }
    for (uint32_t i = 0; i < p.count; i++)
        tn_text_free(&bodies[i].graph);
    *reader = (node_text_reader){p.at, p.line};
    return true;
}

void node_text_free(node_text *row) {
    tn_text_free(&row->graph);
    for (uint32_t i = 0; i < row->ins; i++)
        tn_object_destroy(row->in[i].object);
    for (uint32_t i = 0; i < row->outs; i++)
        tn_object_destroy(row->out[i].object);
}

tn_text node_text_model(const node_text *row) {
    tn_text graph = message();
    tn_text_bytes(&graph, row->graph.data, row->graph.len);
    for (uint32_t i = 0; i < row->ins; i++) {
        const node_text_value *v = &row->in[i];
        const tn_tensor *t = (const tn_tensor *)v->object;
        if (v->type) {
            place p = {.at = v->type, .line = row->line};
            put_typed(&graph, 11, v->name, tensor_type(&p, (tn_dtype)t->dtype));
            continue;
        }
        tn_text bytes = message();
        assert_int_equal(tn_onnx_write_tensor(&bytes, t, v->name), TN_OK);
        put_message(&graph, 5, bytes);
    }
    tn_text model = model_bytes(*row->domain ? 21 : row->opset, graph);
    if (*row->domain)
        put_opset(&model, 8, row->domain, row->opset);
    return model;
}

/* --- comparing ----------------------------------------------------------------------------------------------------------------------- */

typedef struct judge {
    double absolute, relative;
    char *why;
    size_t size;
} judge;

static bool differ(const judge *j, const char *what, int64_t at, double got, double want) {
    snprintf(j->why, j->size, "%s at %d: %.9g, not %.9g", what, (int)at, got, want);
    return false;
}

static bool same_number(const judge *j, tn_dtype type, double got, double want) {
    if (isnan(got) || isnan(want))
        return isnan(got) && isnan(want);
    if (got == want) /* NOLINT: infinities, too */
        return true;
    if (type == TN_F16 && (fabs(got) > 6e4 && fabs(want) > 6e4)) /* one may just overflow */
        return (got > 0) == (want > 0);
    double most = fabs(got) > fabs(want) ? fabs(got) : fabs(want);
    return isfinite(got) && isfinite(want) && fabs(got - want) <= j->absolute + j->relative * most;
}

/* The limits of tests/nightly/meaning/compare.py. */
static judge judge_of(const judge *given, tn_dtype type) {
    judge j = *given;
    static const struct {
        tn_dtype type;
        double relative, absolute;
    } limits[] = {{TN_F64, 2e-7, 1e-7}, {TN_C128, 2e-7, 1e-7}, {TN_F32, 1e-4, 2e-6},
                  {TN_C64, 1e-4, 2e-6}, {TN_F16, 8e-3, 5e-4},  {TN_BF16, 5e-2, 4e-3}};
    for (size_t i = 0; i < sizeof limits / sizeof *limits && j.relative < 0; i++)
        if (limits[i].type == type) {
            j.relative = limits[i].relative;
            j.absolute = limits[i].absolute;
        }
    if (j.relative < 0) /* small floats */
        j.relative = j.absolute = 0;
    return j;
}

static bool same_tensor(const judge *given, const tn_tensor *got, const tn_tensor *want, bool form) {
    char a[200], b[200];
    tn_dtype type = (tn_dtype)want->dtype;
    judge j = judge_of(given, type);
    bool alike = got->dtype == want->dtype && got->rank == want->rank;
    for (int i = 0; alike && i < want->rank; i++)
        alike = got->dims[i] == want->dims[i];
    if (!alike) {
        snprintf(j.why, j.size, "%s, not %s", tn_tensor_describe(got, a, sizeof a),
                 tn_tensor_describe(want, b, sizeof b));
        return false;
    }
    tn_tensor *mine = tn_tensor_copy(got);
    bool same = true;
    for (int64_t i = 0; i < want->count && !form && same; i++) {
        if (type == TN_STRING) {
            tn_string s, t;
            assert_int_equal(tn_tensor_get_string(mine, i, &s), TN_OK);
            assert_int_equal(tn_tensor_get_string(want, i, &t), TN_OK);
            same = (s.length == t.length && memcmp(s.data, t.data, s.length) == 0) || differ(&j, "string", i, 0, 0);
        } else if (tn_dtype_is_complex(type)) {
            tn_dtype part = type == TN_C64 ? TN_F32 : TN_F64;
            for (int64_t k = 2 * i; k < 2 * i + 2 && same; k++) {
                double x = tn_load_f64(part, mine->data, k), y = tn_load_f64(part, want->data, k);
                same = same_number(&j, part, x, y) || differ(&j, "part", k, x, y);
            }
        } else if (tn_dtype_is_float(type) || type == TN_F4E2M1) {
            double x = tn_load_f64(type, mine->data, i), y = tn_load_f64(type, want->data, i);
            same = same_number(&j, type, x, y) || differ(&j, "element", i, x, y);
        } else {
            int64_t x = tn_load_i64(type, mine->data, i), y = tn_load_i64(type, want->data, i);
            same = x == y || differ(&j, "element", i, (double)x, (double)y);
        }
    }
    tn_tensor_destroy(mine);
    return same;
}

static bool same_key(const tn_tensor *a, int64_t i, const tn_tensor *b, int64_t k) {
    tn_string s, t;
    if (a->dtype != TN_STRING)
        return tn_tensor_get_i64(a, i) == tn_tensor_get_i64(b, k);
    return tn_tensor_get_string(a, i, &s) == TN_OK && tn_tensor_get_string(b, k, &t) == TN_OK && s.length == t.length &&
           memcmp(s.data, t.data, s.length) == 0;
}

/* A map's keys may come in any order. */
static bool same_map(const judge *given, tn_object *got, const tn_tensor *keys, const tn_tensor *values) {
    const tn_tensor *mine = tn_map_keys(got), *have = (const tn_tensor *)tn_map_values(got);
    judge j = judge_of(given, TN_F32);
    if (mine->dtype != keys->dtype || mine->count != keys->count)
        return differ(&j, "keys of a map", 0, (double)mine->count, (double)keys->count);
    for (int64_t i = 0; i < keys->count; i++) {
        int64_t k = 0;
        while (k < mine->count && !same_key(mine, k, keys, i))
            k++;
        double x = k < mine->count ? tn_tensor_get_f64(have, k) : HUGE_VAL, y = tn_tensor_get_f64(values, i);
        if (!same_number(&j, TN_F32, x, y))
            return differ(&j, "value of key", i, x, y);
    }
    return true;
}

static bool same_object(const judge *j, tn_object *got, tn_object *want, bool form) {
    while (got && tn_object_kind(got) == TN_KIND_OPTIONAL)
        got = tn_optional_get(got);
    if (!got || !want)
        return got == want || differ(j, "an optional is empty or not", 0, got != NULL, want != NULL);
    if (tn_object_kind(got) == TN_KIND_MAP && tn_object_kind(want) == TN_KIND_SEQUENCE)
        return same_map(j, got, (tn_tensor *)tn_sequence_at(want, 0), (tn_tensor *)tn_sequence_at(want, 1));
    if (tn_object_kind(got) != tn_object_kind(want))
        return differ(j, "another kind of value", 0, tn_object_kind(got), tn_object_kind(want));
    if (tn_object_kind(got) == TN_KIND_TENSOR)
        return same_tensor(j, (const tn_tensor *)got, (const tn_tensor *)want, form);
    if (tn_sequence_length(got) != tn_sequence_length(want))
        return differ(j, "length", 0, (double)tn_sequence_length(got), (double)tn_sequence_length(want));
    for (size_t i = 0; i < tn_sequence_length(want); i++)
        if (!same_object(j, tn_sequence_at(got, i), tn_sequence_at(want, i), form))
            return false;
    return true;
}

bool node_text_is(const node_text_value *want, tn_object *got, char *why, size_t size) {
    judge j = {.absolute = want->absolute, .relative = want->relative, .why = why, .size = size};
    return same_object(&j, got, want->object, want->form);
}
