/* Operators on strings: StringConcat, StringSplit, StringNormalizer. */
#define _GNU_SOURCE
#include <inttypes.h>

#include "base/utf8.h"
#include "onnx/expand_common.h"
#include "onnx/host_ops.h"
#include "onnx/letters.h"
#include "ops/builder.h"
#include "ops/elementwise.h"

static tn_status infer_strings(tn_infer *c, uint32_t index, tn_operand_type *out) {
    TN_TRY(tn_infer_operand(c, index, out));
    if (out->dtype != TN_STRING)
        return tn_infer_fail(c, "input %u is %s, it must be string", (unsigned)index, tn_dtype_name(out->dtype));
    return TN_OK;
}

/* --- string_concat ----------------------------------------------------------------------------------------------------------- */

static tn_status infer_concat(tn_infer *c) {
    tn_operand_type a, b;
    TN_TRY(infer_strings(c, 0, &a));
    TN_TRY(infer_strings(c, 1, &b));
    TN_TRY(tn_infer_merge_shape(c, &a, &b));
    return tn_infer_tensor(c, 0, TN_STRING, a.rank, a.dims);
}

static tn_status eval_concat(tn_eval *e) {
    const tn_tensor *a = tn_eval_in(e, 0), *b = tn_eval_in(e, 1);
    TN_TRY(tn_eval_same_shape(e, 0));
    tn_tensor *out = tn_eval_result(e, 0, TN_STRING, a->rank, a->dims);
    tn_text joined;
    tn_text_init(&joined, e->heap);
    tn_status status = out ? TN_OK : tn_error_status();
    for (int64_t i = 0; i < a->count && status == TN_OK; i++) {
        tn_string x, y;
        joined.len = 0;
        if ((status = tn_tensor_get_string(a, i, &x)) != TN_OK || (status = tn_tensor_get_string(b, i, &y)) != TN_OK)
            break;
        tn_text_bytes(&joined, x.data, x.length);
        tn_text_bytes(&joined, y.data, y.length);
        status =
            joined.failed ? TN_ERR_MEMORY : tn_tensor_set_string(out, i, joined.len ? joined.data : "", joined.len);
    }
    tn_text_free(&joined);
    return status;
}

static const tn_op string_concat = {.name = "string_concat",
                                    .dialect = TN_DIALECT_PRIMITIVE,
                                    .min_inputs = 2,
                                    .max_inputs = 2,
                                    .min_outputs = 1,
                                    .max_outputs = 1,
                                    .traits = TN_HOST | TN_ELEMENTWISE | TN_EXACT,
                                    .inputs = "a, b",
                                    .doc = "Each string of a followed by that of b.",
                                    .infer = infer_concat,
                                    .eval = eval_concat,
                                    .no_gradient = "strings are no numbers"};

static tn_status expand_concat(tn_expand *x) {
    const tn_value in[] = {tn_expand_input(x, 0), tn_expand_input(x, 1)};
    return tn_expand_set(x, 0, tn_build_elementwise(x->graph, "StringConcat", "string_concat", 2, in));
}

/* --- string_split ------------------------------------------------------------------------------------------------------------ */

static tn_status infer_split(tn_infer *c) {
    tn_operand_type in;
    TN_TRY(infer_strings(c, 0, &in));
    if (in.rank == TN_MAX_RANK)
        return tn_infer_unsupported(c, "string_split of rank %d", in.rank);
    tn_dim dims[TN_MAX_RANK];
    memcpy(dims, in.dims, sizeof dims);
    dims[in.rank] = tn_infer_fresh(c, 0, in.rank, 0, INT64_MAX);
    if (!dims[in.rank].id)
        return tn_error_status();
    TN_TRY(tn_infer_tensor(c, 0, TN_STRING, in.rank + 1, dims));
    return c->outputs > 1 ? tn_infer_tensor(c, 1, TN_I64, in.rank, in.dims) : TN_OK;
}

/* The length of the white space at the start. */
static size_t space_at(const char *data, size_t length) {
    uint32_t code;
    size_t used = tn_utf8_next(data, length, &code);
    return used && tn_letter_space(code) ? used : 0;
}

typedef struct splitter {
    tn_string rest;
    tn_string delimiter; /* empty: white space */
    int64_t left;        /* splits that may still be made */
    bool done;
} splitter;

/* The next piece, or false when there is none. */
static bool next_by_space(splitter *s, tn_string *piece) {
    size_t used;
    while (s->rest.length && (used = space_at(s->rest.data, s->rest.length))) {
        s->rest.data += used;
        s->rest.length -= used;
    }
    if (s->rest.length == 0)
        return false;
    size_t end = 0;
    if (s->left-- > 0)
        while (end < s->rest.length && !space_at(s->rest.data + end, s->rest.length - end))
            end++;
    else
        end = s->rest.length;
    *piece = (tn_string){s->rest.data, end};
    s->rest.data += end;
    s->rest.length -= end;
    return true;
}

static bool next_piece(splitter *s, tn_string *piece) {
    if (s->delimiter.length == 0)
        return next_by_space(s, piece);
    if (s->done)
        return false;
    const char *found = s->left-- > 0 && s->rest.length
                            ? memmem(s->rest.data, s->rest.length, s->delimiter.data, s->delimiter.length)
                            : NULL;
    if (!found) {
        s->done = true;
        *piece = s->rest;
        return true;
    }
    *piece = (tn_string){s->rest.data, (size_t)(found - s->rest.data)};
    s->rest.length -= piece->length + s->delimiter.length;
    s->rest.data = found + s->delimiter.length;
    return true;
}

static splitter splitter_of(tn_eval *e, tn_string text) {
    bool limited = tn_node_attr(e->graph, e->node, "maxsplit") != NULL;
    int64_t most = limited ? tn_attr_int(e->graph, e->node, "maxsplit") : -1;
    return (splitter){
        .rest = text, .delimiter = tn_attr_string(e->graph, e->node, "delimiter"), .left = most < 0 ? INT64_MAX : most};
}

static tn_status eval_split(tn_eval *e) {
    const tn_tensor *in = tn_eval_in(e, 0);
    tn_string text, piece;
    int64_t widest = 0, dims[TN_MAX_RANK + 1];
    tn_tensor *counts = e->outputs > 1 ? tn_eval_result(e, 1, TN_I64, in->rank, in->dims) : NULL;
    if (e->outputs > 1 && !counts)
        return tn_error_status();
    for (int64_t i = 0; i < in->count; i++) {
        int64_t n = 0;
        TN_TRY(tn_tensor_get_string(in, i, &text));
        splitter s = splitter_of(e, text);
        while (next_piece(&s, &piece))
            n++;
        widest = n > widest ? n : widest;
        if (counts)
            ((int64_t *)counts->data)[i] = n;
    }
    if (in->rank > 0)
        memcpy(dims, in->dims, in->rank * sizeof *dims);
    dims[in->rank] = widest;
    tn_tensor *out = tn_eval_result(e, 0, TN_STRING, in->rank + 1, dims);
    if (!out)
        return tn_error_status();
    for (int64_t i = 0; i < in->count; i++) {
        int64_t n = 0;
        TN_TRY(tn_tensor_get_string(in, i, &text));
        splitter s = splitter_of(e, text);
        for (; next_piece(&s, &piece); n++)
            TN_TRY(tn_tensor_set_string(out, i * widest + n, piece.data, piece.length));
    }
    return TN_OK;
}

static const tn_attr_spec split_attrs[] = {TN_SPEC_STRING("delimiter", "", NULL), TN_SPEC_INT("maxsplit", -1), {0}};

static const tn_op string_split = {
    .name = "string_split",
    .dialect = TN_DIALECT_PRIMITIVE,
    .min_inputs = 1,
    .max_inputs = 1,
    .min_outputs = 1,
    .max_outputs = 2,
    .traits = TN_HOST | TN_EXACT,
    .attrs = split_attrs,
    .inputs = "x",
    .doc = "The pieces of each string along a new last axis, empty strings to fill it, and how many there are.",
    .infer = infer_split,
    .eval = eval_split,
    .no_gradient = "strings are no numbers"};

/* --- string_normalize -------------------------------------------------------------------------------------------------------- */

/* [C] or [1, C] */
static tn_status infer_normalize(tn_infer *c) {
    tn_operand_type in;
    tn_graph *g = c->graph;
    TN_TRY(infer_strings(c, 0, &in));
    if (in.rank < 1 || in.rank > 2 || (in.rank == 2 && tn_dim_never_equal(g, in.dims[0], tn_dim_const(g, 1))))
        return tn_infer_fail(c, "the input must be [C] or [1, C]");
    if (in.rank == 2)
        in.dims[0] = tn_dim_const(g, 1);
    const tn_string *words;
    if (tn_host_strings(g, c->node, "stopwords", &words) > 0) {
        in.dims[in.rank - 1] = tn_infer_fresh(c, 0, in.rank - 1, 1, INT64_MAX);
        if (!in.dims[in.rank - 1].id)
            return tn_error_status();
    } else {
        in.dims[in.rank - 1] = tn_dim_max(g, in.dims[in.rank - 1], tn_dim_const(g, 1));
    }
    return tn_infer_tensor(c, 0, TN_STRING, in.rank, in.dims);
}

typedef struct normaliser {
    const tn_string *words;
    uint32_t count;
    tn_text *folded; /* [count], the words in lower case; NULL: case matters */
    tn_text scratch;
    tn_case change;
    bool turkic;
} normaliser;

static bool same_bytes(const char *a, size_t n, const char *b, size_t m) {
    return n == m && (n == 0 || memcmp(a, b, n) == 0);
}

/* Whether a text is a stop word. Out of memory: scratch.failed. */
static bool is_stopped(normaliser *n, tn_string text) {
    if (n->folded && n->count) {
        n->scratch.len = 0;
        tn_text_case(&n->scratch, text.data, text.length, TN_CASE_LOWER, n->turkic);
    }
    for (uint32_t i = 0; i < n->count; i++)
        if (n->folded ? same_bytes(n->folded[i].data, n->folded[i].len, n->scratch.data, n->scratch.len)
                      : same_bytes(n->words[i].data, n->words[i].length, text.data, text.length))
            return true;
    return false;
}

static tn_status normalise(tn_eval *e, normaliser *n) {
    const tn_tensor *in = tn_eval_in(e, 0);
    int64_t dims[2] = {1, 0}, kept = 0;
    tn_string text;
    if (in->rank == 2 && in->dims[0] != 1)
        return tn_eval_fail(e, TN_ERR_INPUT, "the input must be [C] or [1, C]");
    for (int64_t i = 0; i < in->count; i++) {
        TN_TRY(tn_tensor_get_string(in, i, &text));
        kept += !is_stopped(n, text);
    }
    dims[in->rank - 1] = kept ? kept : 1;
    tn_tensor *out = tn_eval_result(e, 0, TN_STRING, in->rank, dims);
    if (!out)
        return tn_error_status();
    int64_t at = 0;
    for (int64_t i = 0; i < in->count; i++) {
        TN_TRY(tn_tensor_get_string(in, i, &text));
        if (is_stopped(n, text))
            continue;
        n->scratch.len = 0;
        tn_text_case(&n->scratch, text.data, text.length, n->change, n->turkic);
        if (n->scratch.failed)
            return TN_ERR_MEMORY;
        TN_TRY(tn_tensor_set_string(out, at++, n->scratch.len ? n->scratch.data : "", n->scratch.len));
    }
    return kept ? TN_OK : tn_tensor_set_string(out, 0, "", 0);
}

static tn_status eval_normalize(tn_eval *e) {
    const tn_graph *g = e->graph;
    normaliser n = {.change = tn_attr_string_is(g, e->node, "case_change_action", "LOWER")   ? TN_CASE_LOWER
                              : tn_attr_string_is(g, e->node, "case_change_action", "UPPER") ? TN_CASE_UPPER
                                                                                             : TN_CASE_NONE};
    tn_string locale = tn_attr_string(g, e->node, "locale");
    n.turkic = tn_locale_turkic(locale.data, locale.length);
    n.count = tn_host_strings(g, e->node, "stopwords", &n.words);
    tn_text_init(&n.scratch, e->heap);
    bool good = true;
    if (n.count && !tn_attr_int(g, e->node, "is_case_sensitive")) {
        n.folded = tn_alloc_array(e->heap, n.count, sizeof *n.folded);
        good = n.folded != NULL;
        for (uint32_t i = 0; n.folded && i < n.count; i++)
            tn_text_init(&n.folded[i], e->heap);
        for (uint32_t i = 0; n.folded && i < n.count; i++) {
            tn_text_case(&n.folded[i], n.words[i].data, n.words[i].length, TN_CASE_LOWER, n.turkic);
            good = good && !n.folded[i].failed;
        }
    }
    tn_status status = good ? normalise(e, &n) : TN_ERR_MEMORY;
    if (status == TN_OK && n.scratch.failed)
        status = TN_ERR_MEMORY;
    for (uint32_t i = 0; n.folded && i < n.count; i++)
        tn_text_free(&n.folded[i]);
    tn_free(e->heap, n.folded);
    tn_text_free(&n.scratch);
    return status;
}

static const tn_attr_spec normalize_attrs[] = {TN_SPEC_STRING("case_change_action", "NONE", "NONE|LOWER|UPPER"),
                                               TN_SPEC_BOOL("is_case_sensitive", 0),
                                               TN_SPEC_STRING("locale", "", NULL),
                                               TN_SPEC_STRINGS("stopwords"),
                                               {0}};

static const tn_op string_normalize = {
    .name = "string_normalize",
    .dialect = TN_DIALECT_PRIMITIVE,
    .min_inputs = 1,
    .max_inputs = 1,
    .min_outputs = 1,
    .max_outputs = 1,
    .traits = TN_HOST | TN_EXACT,
    .attrs = normalize_attrs,
    .inputs = "x",
    .doc = "Strings without the stop words, in upper or lower case; one empty string when none is left.",
    .infer = infer_normalize,
    .eval = eval_normalize,
    .no_gradient = "strings are no numbers"};

/* --- rows -------------------------------------------------------------------------------------------------------------------- */

static const tn_onnx_op rows[] = {
    TN_ONNX("StringConcat", .since = 20, .inputs = {2, 2}, .outputs = {1, 1}, .expand = expand_concat,
            .host = &string_concat),
    TN_ONNX("StringSplit", .since = 20, .inputs = {1, 1}, .outputs = {2, 2}, .attrs = split_attrs,
            .host = &string_split),
    TN_ONNX("StringNormalizer", .since = 10, .inputs = {1, 1}, .outputs = {1, 1}, .attrs = normalize_attrs,
            .host = &string_normalize),
    TN_ONNX("RegexFullMatch", .since = 20, .inputs = {1, 1}, .outputs = {1, 1}, .attrs = tn_host_regex_attrs,
            .host = &tn_host_regex),
    TN_ONNX("TfIdfVectorizer", .since = 9, .inputs = {1, 1}, .outputs = {1, 1}, .attrs = tn_host_tfidf_attrs,
            .host = &tn_host_tfidf),
};

const tn_onnx_family tn_onnx_family_string = {rows, sizeof rows / sizeof *rows};
