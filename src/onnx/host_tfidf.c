/* tfidf_vectorize: how often each n-gram of a pool is found in each row of words or numbers.

   An n-gram of skip distance s is made of the tokens at i, i + s, i + 2s, ...; n-grams of one token are counted once, whatever the
   skips. The pool lists all 1-grams, then all 2-grams, ...; attribute ngram_counts says where each length begins. Weights and
   ngram_indexes go with the n-grams in the order of the pool. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/map.h"
#include "onnx/host_ops.h"
#include "onnx/op.h"
#include "ops/elementwise.h"

typedef struct ngram {
    const uint32_t *tokens; /* [length] */
    uint32_t length, id;
} ngram;

typedef struct pool {
    uint32_t items, levels, total; /* tokens; lengths; n-grams of all lengths */
    const int64_t *starts;         /* [levels], of each length, in tokens */
    const int64_t *numbers;        /* [items], or */
    const tn_string *words;
    const int64_t *columns; /* [total] */
    const float *weights;   /* [total], or NULL: all 1 */
    int64_t width, shortest, longest, skips;
} pool;

static int64_t end_of(const pool *p, uint32_t level) {
    return level + 1 < p->levels ? p->starts[level + 1] : p->items;
}

/* What is wrong with the attributes, or NULL. */
static const char *read_pool(const tn_graph *g, tn_node node, pool *p) {
    *p = (pool){.shortest = tn_attr_int(g, node, "min_gram_length"),
                .longest = tn_attr_int(g, node, "max_gram_length"),
                .skips = tn_attr_int(g, node, "max_skip_count")};
    uint32_t numbers = tn_attr_ints(g, node, "pool_int64s", &p->numbers),
             words = tn_host_strings(g, node, "pool_strings", &p->words);
    uint32_t columns = tn_attr_ints(g, node, "ngram_indexes", &p->columns),
             weights = tn_host_floats(g, node, "weights", &p->weights);
    p->levels = tn_attr_ints(g, node, "ngram_counts", &p->starts);
    p->items = numbers ? numbers : words;
    if ((numbers != 0) == (words != 0))
        return "one of pool_int64s and pool_strings must be there";
    if (p->shortest < 1 || p->longest < p->shortest || p->skips < 0)
        return "min_gram_length, max_gram_length or max_skip_count is out of range";
    if (p->longest > p->levels)
        return "max_gram_length is longer than ngram_counts";
    for (uint32_t i = 0; i < p->levels; i++) {
        int64_t begin = p->starts[i], end = end_of(p, i);
        if (begin < 0 || end < begin || end > p->items || (i == 0 && begin != 0))
            return "ngram_counts does not rise from 0 to the size of the pool";
        if ((end - begin) % (i + 1) != 0)
            return "a part of the pool does not hold whole n-grams";
        p->total += (uint32_t)((end - begin) / (i + 1));
    }
    if (columns != p->total)
        return "ngram_indexes does not have one entry for each n-gram of the pool";
    if (weights && weights != p->total)
        return "weights does not have one entry for each n-gram of the pool";
    p->width = 0;
    for (uint32_t i = 0; i < p->total; i++) {
        if (p->columns[i] < 0 || p->columns[i] == INT64_MAX)
            return "ngram_indexes holds a number that is no position";
        p->width = p->columns[i] >= p->width ? p->columns[i] + 1 : p->width;
    }
    return NULL;
}

static tn_status infer_tfidf(tn_infer *c) {
    tn_operand_type in;
    pool p;
    TN_TRY(tn_infer_operand(c, 0, &in));
    const char *wrong = read_pool(c->graph, c->node, &p);
    if (wrong)
        return tn_infer_fail(c, "%s", wrong);
    if (in.rank != 1 && in.rank != 2)
        return tn_infer_fail(c, "the input has rank %d, it must be 1 or 2", in.rank);
    if (p.words ? in.dtype != TN_STRING : in.dtype != TN_I32 && in.dtype != TN_I64)
        return tn_infer_fail(c, "the input is %s, the pool holds %s", tn_dtype_name(in.dtype),
                             p.words ? "strings" : "integers");
    in.dims[in.rank - 1] = tn_dim_const(c->graph, p.width);
    return tn_infer_tensor(c, 0, TN_F32, in.rank, in.dims);
}

/* --- eval -------------------------------------------------------------------------------------------------------------------- */

typedef struct search {
    pool p;
    tn_heap *heap;
    tn_strings words; /* interned tokens: their numbers */
    tn_map numbers;
    uint32_t *tokens; /* [items] */
    ngram *grams;     /* [total], those of one length in order */
    uint32_t *first;  /* [levels + 1], of each length */
    uint32_t *counts; /* [total] */
    uint32_t *row;    /* tokens of a row; UINT32_MAX: not in the pool */
} search;

static int by_tokens(const void *a, const void *b) {
    const ngram *x = a, *y = b;
    for (uint32_t i = 0; i < x->length; i++)
        if (x->tokens[i] != y->tokens[i])
            return x->tokens[i] < y->tokens[i] ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static bool intern_pool(search *s) {
    for (uint32_t i = 0; i < s->p.items; i++) {
        if (s->p.words) {
            s->tokens[i] = tn_strings_add(&s->words, s->p.words[i].data, s->p.words[i].length);
            if (s->tokens[i] == UINT32_MAX)
                return false;
        } else {
            uint64_t key = (uint64_t)s->p.numbers[i], id = i;
            if (!tn_map_get(&s->numbers, key, &id) && !tn_map_put(s->heap, &s->numbers, key, id))
                return false;
            s->tokens[i] = (uint32_t)id;
        }
    }
    return true;
}

static bool build(search *s) {
    s->tokens = tn_alloc_array(s->heap, (size_t)s->p.items + 1, sizeof *s->tokens);
    s->grams = tn_alloc_array(s->heap, (size_t)s->p.total + 1, sizeof *s->grams);
    s->counts = tn_alloc_array(s->heap, (size_t)s->p.total + 1, sizeof *s->counts);
    s->first = tn_alloc_array(s->heap, (size_t)s->p.levels + 1, sizeof *s->first);
    if (!s->tokens || !s->grams || !s->counts || !s->first || !intern_pool(s))
        return false;
    uint32_t id = 0;
    for (uint32_t level = 0; level < s->p.levels; level++) {
        s->first[level] = id;
        for (int64_t at = s->p.starts[level]; at < end_of(&s->p, level); at += level + 1, id++)
            s->grams[id] = (ngram){s->tokens + at, level + 1, id};
        qsort(s->grams + s->first[level], id - s->first[level], sizeof *s->grams, by_tokens);
    }
    s->first[s->p.levels] = id;
    return true;
}

static int compare_window(const ngram *gram, const uint32_t *at, int64_t step) {
    for (uint32_t i = 0; i < gram->length; i++) {
        uint32_t token = at[(int64_t)i * step];
        if (gram->tokens[i] != token)
            return gram->tokens[i] < token ? -1 : 1;
    }
    return 0;
}

/* Counts the n-grams equal to the tokens at, at + step, ... */
static void count_window(search *s, uint32_t level, const uint32_t *at, int64_t step) {
    uint32_t low = s->first[level], high = s->first[level + 1], end = high;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (compare_window(&s->grams[middle], at, step) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < end && compare_window(&s->grams[low], at, step) == 0; low++)
        s->counts[s->grams[low].id]++;
}

static void count_row(search *s, int64_t length) {
    memset(s->counts, 0, s->p.total * sizeof *s->counts);
    for (int64_t n = s->p.shortest; n <= s->p.longest; n++) {
        if (s->first[n - 1] == s->first[n])
            continue;
        for (int64_t step = 1; step - 1 <= (n == 1 ? 0 : s->p.skips); step++) {
            if (n > 1 && step > (length - 1) / (n - 1))
                break;
            int64_t reach = (n - 1) * step; /* of the last token beyond the first */
            for (int64_t i = 0; i + reach < length; i++)
                if (s->row[i] != UINT32_MAX)
                    count_window(s, (uint32_t)n - 1, s->row + i, step);
        }
    }
}

typedef enum weighting { TF, IDF, TFIDF } weighting;

static void write_row(const search *s, weighting mode, float *out) {
    for (uint32_t i = 0; i < s->p.total; i++) {
        if (!s->counts[i])
            continue;
        float weight = mode == TF || !s->p.weights ? 1 : s->p.weights[i];
        out[s->p.columns[i]] += mode == IDF ? weight : weight * (float)s->counts[i];
    }
}

static tn_status read_row(search *s, const tn_tensor *in, int64_t begin, int64_t length) {
    for (int64_t i = 0; i < length; i++) {
        uint64_t id = UINT32_MAX;
        if (s->p.words) {
            tn_string text;
            TN_TRY(tn_tensor_get_string(in, begin + i, &text));
            id = tn_strings_find(&s->words, text.data, text.length);
        } else if (!tn_map_get(&s->numbers, (uint64_t)tn_tensor_get_i64(in, begin + i), &id)) {
            id = UINT32_MAX;
        }
        s->row[i] = (uint32_t)id;
    }
    return TN_OK;
}

static tn_status vectorize(tn_eval *e, search *s) {
    const tn_tensor *in = tn_eval_in(e, 0);
    weighting mode = tn_attr_string_is(e->graph, e->node, "mode", "TF")    ? TF
                     : tn_attr_string_is(e->graph, e->node, "mode", "IDF") ? IDF
                                                                           : TFIDF;
    int64_t rows = in->rank == 2 ? in->dims[0] : 1, length = in->dims[in->rank - 1];
    int64_t dims[2] = {rows, s->p.width};
    tn_tensor *out = tn_eval_result(e, 0, TN_F32, in->rank, in->rank == 2 ? dims : dims + 1);
    s->row = out ? tn_alloc_array(s->heap, (size_t)length + 1, sizeof *s->row) : NULL;
    if (!s->row)
        return tn_error_status();
    if (out->count)
        memset(out->data, 0, tn_tensor_bytes(out));
    for (int64_t i = 0; i < rows; i++) {
        TN_TRY(read_row(s, in, i * length, length));
        count_row(s, length);
        write_row(s, mode, (float *)out->data + i * s->p.width);
    }
    return TN_OK;
}

static tn_status eval_tfidf(tn_eval *e) {
    search s = {.heap = e->heap};
    const char *wrong = read_pool(e->graph, e->node, &s.p);
    if (wrong)
        return tn_eval_fail(e, TN_ERR_MODEL, "%s", wrong);
    tn_status status = TN_ERR_MEMORY;
    if (tn_strings_init(&s.words, e->heap)) {
        status = build(&s) ? vectorize(e, &s) : tn_error_status();
        tn_strings_free(&s.words);
    }
    tn_map_free(e->heap, &s.numbers);
    tn_free(e->heap, s.tokens);
    tn_free(e->heap, s.grams);
    tn_free(e->heap, s.counts);
    tn_free(e->heap, s.first);
    tn_free(e->heap, s.row);
    return status;
}

const tn_attr_spec tn_host_tfidf_attrs[] = {
    TN_SPEC_NEEDED("max_gram_length", TN_ATTR_INT),
    TN_SPEC_NEEDED("max_skip_count", TN_ATTR_INT),
    TN_SPEC_NEEDED("min_gram_length", TN_ATTR_INT),
    {.name = "mode", .kind = TN_ATTR_STRING, .required = true, .allowed = "TF|IDF|TFIDF"},
    TN_SPEC_NEEDED("ngram_counts", TN_ATTR_INTS),
    TN_SPEC_NEEDED("ngram_indexes", TN_ATTR_INTS),
    TN_SPEC_INTS("pool_int64s"),
    TN_SPEC_STRINGS("pool_strings"),
    TN_SPEC_FLOATS("weights"),
    {0}};

const tn_op tn_host_tfidf = {.name = "tfidf_vectorize",
                             .dialect = TN_DIALECT_PRIMITIVE,
                             .min_inputs = 1,
                             .max_inputs = 1,
                             .min_outputs = 1,
                             .max_outputs = 1,
                             .traits = TN_HOST,
                             .attrs = tn_host_tfidf_attrs,
                             .inputs = "x",
                             .doc = "How often each n-gram of a pool is found in a row of words or numbers, weighted.",
                             .infer = infer_tfidf,
                             .eval = eval_tfidf,
                             .no_gradient = "tokens are no numbers"};
