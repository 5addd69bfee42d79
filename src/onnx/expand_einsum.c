/* Einsum: operands are brought to one axis for each label and contracted two at a time from the left. */
#include <inttypes.h>

#include "onnx/expand_common.h"

/* Labels: letters, and the axes under an ellipsis as ELLIPSIS + position counted from their end. */
enum { ELLIPSIS = 256, MAX_OPERANDS = 64 };

typedef struct term {
    int count;
    int label[TN_MAX_RANK];
} term;

typedef struct equation {
    uint32_t operands;
    int wide; /* axes under the ellipsis, -1: not seen yet */
    term in[MAX_OPERANDS], out;
} equation;

static int find(const term *t, int label) {
    for (int i = 0; i < t->count; i++)
        if (t->label[i] == label)
            return i;
    return -1;
}

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* --- reading ------------------------------------------------------------------------------------------------------------------------ */

/* One term up to `end`. `rank` of its operand, or -1 for the output. */
static tn_status read_term(tn_expand *x, equation *e, const char *p, const char *end, int rank, term *t) {
    int letters = 0;
    bool dots = false;
    for (const char *q = p; q < end; q++)
        letters += is_letter(*q);
    int wide = rank < 0 ? (e->wide < 0 ? 0 : e->wide) : rank - letters;
    for (; p < end; p++) {
        if (*p == ' ')
            continue;
        if (is_letter(*p)) {
            TN_RULE(x, t->count < TN_MAX_RANK, "a term of attribute 'equation' has more than %d labels", TN_MAX_RANK);
            t->label[t->count++] = (uint8_t)*p;
            continue;
        }
        TN_RULE(x, end - p >= 3 && p[0] == '.' && p[1] == '.' && p[2] == '.',
                "attribute 'equation' holds '%c' in a term", *p);
        TN_RULE(x, !dots, "a term of attribute 'equation' has two ellipses");
        TN_RULE(x, wide >= 0, "a term of attribute 'equation' has %d labels for an operand of rank %d", letters, rank);
        TN_RULE(x, t->count + wide <= TN_MAX_RANK, "a term of attribute 'equation' stands for more than %d axes",
                TN_MAX_RANK);
        dots = true;
        p += 2;
        for (int i = 0; i < wide; i++)
            t->label[t->count++] = ELLIPSIS + wide - 1 - i;
        if (rank >= 0 && wide > e->wide)
            e->wide = wide;
    }
    TN_RULE(x, rank < 0 || t->count == rank, "a term of attribute 'equation' has %d labels for an operand of rank %d",
            t->count, rank);
    return TN_OK;
}

/* Without "->": the ellipsis, then the letters that occur once, in the order of their codes. */
static void implicit_output(equation *e) {
    for (int i = e->wide - 1; i >= 0; i--)
        e->out.label[e->out.count++] = ELLIPSIS + i;
    for (int c = 0; c < ELLIPSIS; c++) {
        int seen = 0;
        for (uint32_t k = 0; k < e->operands; k++)
            for (int i = 0; i < e->in[k].count; i++)
                seen += e->in[k].label[i] == c;
        if (seen == 1 && e->out.count < TN_MAX_RANK)
            e->out.label[e->out.count++] = c;
    }
}

static tn_status read_equation(tn_expand *x, equation *e) {
    tn_string s = tn_expand_string(x, "equation");
    const char *end = s.data + s.length, *arrow = NULL, *p = s.data;
    for (const char *q = s.data; q + 1 < end && !arrow; q++)
        if (q[0] == '-' && q[1] == '>')
            arrow = q;
    const char *stop = arrow ? arrow : end;
    TN_RULE(x, x->inputs <= MAX_OPERANDS, "there are %u operands: at most %d are supported", (unsigned)x->inputs,
            MAX_OPERANDS);
    e->wide = -1;
    for (bool more = true; more;) {
        const char *comma = p;
        while (comma < stop && *comma != ',')
            comma++;
        more = comma < stop;
        TN_RULE(x, e->operands < x->inputs, "attribute 'equation' has more terms than the %u operands",
                (unsigned)x->inputs);
        TN_TRY(read_term(x, e, p, comma, tn_expand_rank(x, e->operands), &e->in[e->operands]));
        e->operands++;
        p = comma + 1;
    }
    TN_RULE(x, e->operands == x->inputs, "attribute 'equation' has %u terms for %u operands", (unsigned)e->operands,
            (unsigned)x->inputs);
    if (!arrow) {
        implicit_output(e);
        return TN_OK;
    }
    TN_TRY(read_term(x, e, arrow + 2, end, -1, &e->out));
    for (int i = 0; i < e->out.count; i++) {
        bool known = false;
        for (uint32_t k = 0; k < e->operands; k++)
            known = known || find(&e->in[k], e->out.label[i]) >= 0;
        TN_RULE(x, known, "the output of attribute 'equation' has the label '%c', which no operand has",
                e->out.label[i]);
        term rest = {.count = i};
        memcpy(rest.label, e->out.label, sizeof rest.label);
        TN_RULE(x, find(&rest, e->out.label[i]) < 0, "the output of attribute 'equation' has the label '%c' twice",
                e->out.label[i]);
    }
    return TN_OK;
}

/* --- operands --------------------------------------------------------------------------------------------------------------------------- */

/* The diagonal of axes a < b: moved to the end, flattened, read at every (n + 1)-th element; it becomes the last axis. */
static tn_status take_diagonal(tn_expand *x, tn_value *v, term *t, int a, int b) {
    tn_graph *g = x->graph;
    int rank = t->count, perm[TN_MAX_RANK], k = 0;
    const tn_dim *dims = tn_expand_value_dims(x, *v);
    if (!dims)
        return tn_error_status();
    TN_RULE(x, !tn_dim_never_equal(g, dims[a], dims[b]), "label '%c' stands for axes of different sizes", t->label[a]);
    tn_dim flat[TN_MAX_RANK], fit[TN_MAX_RANK], n = dims[a];
    memcpy(fit, dims, (size_t)rank * sizeof *fit);
    fit[b] = n;
    *v = tn_fit(g, *v, fit);
    term left = {0};
    for (int i = 0; i < rank; i++) {
        if (i == a || i == b)
            continue;
        flat[k] = dims[i];
        left.label[k] = t->label[i];
        perm[k++] = i;
    }
    left.label[k] = t->label[a];
    left.count = k + 1;
    perm[k] = a;
    perm[k + 1] = b;
    flat[k] = tn_dim_mul(g, n, n);
    TN_SIZED(x, flat[k]);
    tn_value step = tn_add(g, tn_expand_size_value(x, n, TN_I64), tn_scalar(g, TN_I64, 1));
    tn_value at = tn_mul(g, tn_iota(g, TN_I64, 1, &n, 0), step);
    *v = tn_gather(g, tn_reshape_dims(g, tn_transpose(g, *v, perm), k + 1, flat), at, k);
    *t = left;
    return TN_OK;
}

/* Each label once. */
static tn_status take_diagonals(tn_expand *x, tn_value *v, term *t) {
    for (int b = 1; b < t->count; b++)
        for (int a = 0; a < b; a++)
            if (t->label[a] == t->label[b]) {
                TN_TRY(take_diagonal(x, v, t, a, b));
                b = 0;
                break;
            }
    return TN_OK;
}

/* Whether a label is needed after operand k: by the output or a later operand. */
static bool needed(const equation *e, uint32_t k, int label) {
    for (uint32_t i = k + 1; i < e->operands; i++)
        if (find(&e->in[i], label) >= 0)
            return true;
    return find(&e->out, label) >= 0;
}

/* Sums away the labels that neither `other` nor anything after operand k needs. */
static void sum_unneeded(tn_expand *x, const equation *e, uint32_t k, const term *other, tn_value *v, term *t) {
    int axes[TN_MAX_RANK], n = 0, kept = 0;
    for (int i = 0; i < t->count; i++) {
        if (needed(e, k, t->label[i]) || (other && find(other, t->label[i]) >= 0))
            t->label[kept++] = t->label[i];
        else
            axes[n++] = i;
    }
    t->count = kept;
    if (n)
        *v = tn_reduce_sum(x->graph, *v, (uint32_t)n, axes, false);
}

/* Makes the axes that two operands share equal in size, where one of them is 1. */
static tn_status match_sizes(tn_expand *x, tn_value *a, const term *s, tn_value *b, const term *t) {
    tn_graph *g = x->graph;
    tn_dim *p = tn_expand_value_dims(x, *a), *q = tn_expand_value_dims(x, *b);
    if (!p || !q)
        return tn_error_status();
    tn_dim one = tn_size(x, 1);
    for (int i = 0; i < s->count; i++) {
        int j = find(t, s->label[i]);
        if (j < 0 || tn_dim_equal(g, p[i], q[j]))
            continue;
        if (tn_dim_never_equal(g, p[i], q[j]))
            TN_RULE(x, !tn_dim_never_equal(g, p[i], one) || !tn_dim_never_equal(g, q[j], one),
                    "label '%c' stands for axes of different sizes", s->label[i] < ELLIPSIS ? s->label[i] : '.');
        bool may_be_one = !tn_dim_never_equal(g, p[i], one) || !tn_dim_never_equal(g, q[j], one);
        bool is_one = tn_size_is(x, p[i], 1) || tn_size_is(x, q[j], 1);
        if (s->label[i] < ELLIPSIS && may_be_one && !is_one && !x->final)
            return tn_expand_later(x, "needs the sizes of its inputs"); /* the same, or one of them 1 */
        tn_dim both = s->label[i] < ELLIPSIS && !is_one ? p[i] : tn_dim_broadcast(g, p[i], q[j]);
        TN_SIZED(x, both);
        p[i] = q[j] = both;
    }
    *a = tn_broadcast(g, *a, s->count, p);
    *b = tn_broadcast(g, *b, t->count, q);
    return TN_OK;
}

/* a . b over the labels that both have and nothing later needs; the result's labels: shared ones, a's, b's. */
static tn_status contract(tn_expand *x, const equation *e, uint32_t k, tn_value *a, term *s, tn_value b, term *t) {
    int64_t lists[4][TN_MAX_RANK];
    uint32_t batch = 0, inner = 0;
    term out = {0};
    TN_TRY(match_sizes(x, a, s, &b, t));
    for (int i = 0; i < s->count; i++) {
        int j = find(t, s->label[i]);
        if (j < 0)
            continue;
        bool keep = needed(e, k, s->label[i]);
        lists[keep ? 0 : 2][keep ? batch : inner] = i;
        lists[keep ? 1 : 3][keep ? batch : inner] = j;
        if (keep)
            out.label[out.count++] = s->label[i];
        batch += keep;
        inner += !keep;
    }
    int free_axes = 0;
    for (int i = 0; i < s->count; i++)
        free_axes += find(t, s->label[i]) < 0;
    for (int i = 0; i < t->count; i++)
        free_axes += find(s, t->label[i]) < 0;
    TN_RULE(x, out.count + free_axes <= TN_MAX_RANK, "a product has more than %d axes", TN_MAX_RANK);
    for (int i = 0; i < s->count; i++)
        if (find(t, s->label[i]) < 0)
            out.label[out.count++] = s->label[i];
    for (int i = 0; i < t->count; i++)
        if (find(s, t->label[i]) < 0)
            out.label[out.count++] = t->label[i];
    *a = tn_dot(x->graph, *a, b, batch, lists[0], lists[1], inner, lists[2], lists[3]);
    *s = out;
    return TN_OK;
}

/* --- the node --------------------------------------------------------------------------------------------------------------------------- */

static tn_status expand_einsum(tn_expand *x) {
    tn_graph *g = x->graph;
    equation *e = tn_expand_alloc(x, 1, sizeof *e);
    if (!e)
        return tn_error_status();
    TN_TRY(read_equation(x, e));
    term have = e->in[0];
    tn_value v = tn_expand_input(x, 0);
    TN_TRY(take_diagonals(x, &v, &have));
    TN_BUILT(x, v);
    sum_unneeded(x, e, 0, NULL, &v, &have);
    for (uint32_t k = 1; k < e->operands; k++) {
        term next = e->in[k];
        tn_value w = tn_expand_input(x, k);
        TN_TRY(take_diagonals(x, &w, &next));
        TN_BUILT(x, w);
        sum_unneeded(x, e, k, &have, &w, &next);
        TN_TRY(contract(x, e, k, &v, &have, w, &next));
        TN_BUILT(x, v);
    }
    int perm[TN_MAX_RANK];
    bool ordered = true;
    for (int i = 0; i < e->out.count; i++) {
        perm[i] = find(&have, e->out.label[i]);
        ordered = ordered && perm[i] == i;
    }
    return tn_expand_set(x, 0, ordered ? v : tn_transpose(g, v, perm));
}

static const tn_attr_spec attrs[] = {TN_SPEC_NEEDED("equation", TN_ATTR_STRING), {0}};

static const tn_onnx_op rows[] = {
    TN_ONNX("Einsum", .since = 12, .inputs = {1, TN_ONNX_ANY}, .outputs = {1, 1}, .attrs = attrs,
            .flags = TN_ONNX_VARIADIC, .expand = expand_einsum),
};

const tn_onnx_family tn_onnx_family_einsum = {rows, sizeof rows / sizeof *rows};
