/* No inferred shape is false. Models: every value as the file gives it, after expansion and after the passes, against the sizes that the
   interpreter finds with the model's own inputs and, where inputs have free sizes, with at least three more bindings of them; shapes.txt
   holds what inference leaves open in each, exactly. Graphs of the standard's suite and the cases: with their own inputs,
   and again with no size of them known before the run, then no rank. The quick tests take some of both; TENON_ALL=1 takes all.
   TENON_SHAPES_ONLY: what has this in its name, with the nodes whose sizes data decide. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/os.h"
#include "onnx/model.h"
#include "onnx/tensor_file.h"
#include "passes/pass.h"
#include "support/shape_checks.h"

enum { MAX_INPUTS = 256, MAX_SYMBOLS = 16, WANTED = 3, MAX_TRIES = 40 };
enum { LOADED, EXPANDED, OPTIMISED, STAGES };
static const char *const stage_name[] = {"loaded", "expanded", "optimised"};

static bool take_all(void) {
    const char *all = getenv("TENON_ALL"), *only = getenv("TENON_SHAPES_ONLY");
    return only || (all && *all == '1');
}

/* --- one model ------------------------------------------------------------------------------------------------------------------------ */

typedef struct feed {
    uint32_t count;
    char name[MAX_INPUTS][200]; /* of the input; passes take away those without use */
    tn_object *object[MAX_INPUTS];
} feed;

static tn_value input_named(const tn_graph *g, const char *name) {
    for (uint32_t i = 0; i < tn_graph_input_count(g); i++)
        if (strcmp(tn_value_name(g, tn_graph_input(g, i)), name) == 0)
            return tn_graph_input(g, i);
    return (tn_value){0};
}

static void feed_free(feed *f) {
    for (uint32_t i = 0; i < f->count; i++)
        tn_object_destroy(f->object[i]);
    f->count = 0;
}

static bool feed_read(const tn_graph *g, const char *folder, int set, feed *f) {
    char path[4096];
    f->count = 0;
    snprintf(path, sizeof path, "%s/test_data_set_%d", folder, set);
    if (tn_path_kind_of(path) != TN_PATH_FOLDER)
        return false;
    for (uint32_t i = 0; i < tn_graph_input_count(g) && f->count < MAX_INPUTS; i++) {
        snprintf(path, sizeof path, "%s/test_data_set_%d/input_%" PRIu32 ".pb", folder, set, i);
        if (tn_path_kind_of(path) != TN_PATH_FILE)
            continue;
        tn_object *o = tn_onnx_read_object_file(NULL, path, tn_type_kind(g, tn_value_type(g, tn_graph_input(g, i))));
        if (!o) {
            feed_free(f);
            return false;
        }
        snprintf(f->name[f->count], sizeof *f->name, "%s", tn_value_name(g, tn_graph_input(g, i)));
        f->object[f->count++] = o;
    }
    return true;
}

static bool claims_all(void *ctx, const tn_graph *g, tn_node n) {
    (void)ctx, (void)g, (void)n;
    return true; /* the interpreter runs composites by their definition */
}

/* The graph of a model in a stage; NULL with the error set. */
static tn_graph *make_graph(const char *path, int stage, const feed *f) {
    tn_graph *g = tn_onnx_load_file(path, NULL);
    if (!g || stage == LOADED)
        return g;
    tn_value fed[MAX_INPUTS];
    for (uint32_t i = 0; i < f->count; i++)
        fed[i] = input_named(g, f->name[i]);
    tn_pass_context c = {.level = 2,
                         .passes = stage == EXPANDED ? "defaults,expand" : NULL,
                         .just_listed = stage == EXPANDED,
                         .bind_defaults = true,
                         .fed = fed,
                         .fed_count = f->count,
                         .evaluate = tn_pass_evaluate,
                         .claims = claims_all};
    tn_status status = tn_passes_run(g, &c);
    tn_pass_context_free(&c);
    if (status == TN_OK)
        return g;
    tn_error_record error;
    tn_error_save(&error);
    tn_graph_destroy(g);
    tn_error_restore(&error);
    return NULL;
}

static tn_status run_feed(const tn_graph *g, const feed *f, shape_tally *t) {
    tn_value in[MAX_INPUTS];
    tn_object *objects[MAX_INPUTS];
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->count; i++) {
        in[n] = input_named(g, f->name[i]);
        objects[n] = f->object[i];
        n += in[n].id != 0;
    }
    return shapes_run(g, n, in, objects, t);
}

/* --- bindings ------------------------------------------------------------------------------------------------------------------------- */

typedef struct binding {
    uint32_t count, symbol[MAX_SYMBOLS];
    int64_t size[MAX_SYMBOLS];
} binding;

static void add_symbol(void *ctx, uint32_t symbol) {
    binding *b = ctx;
    for (uint32_t i = 0; i < b->count; i++)
        if (b->symbol[i] == symbol)
            return;
    if (b->count < MAX_SYMBOLS)
        b->symbol[b->count++] = symbol;
}

/* The symbols of the inputs that are fed, and what they are in a data set. */
static binding binding_of(const tn_graph *g, const feed *f) {
    binding b = {0};
    tn_dim_env env;
    if (!tn_dim_env_init(&env, NULL, &g->dims))
        abort();
    for (int round = 0; round < 2; round++)
        for (uint32_t i = 0; i < f->count; i++) {
            tn_value v = input_named(g, f->name[i]);
            const tn_tensor *t = v.id ? tn_object_tensor(f->object[i]) : NULL;
            for (int d = 0; t && d < tn_value_rank(g, v) && d < tn_tensor_rank(t); d++) {
                tn_dim_symbols(&g->dims, tn_value_dim(g, v, d), add_symbol, &b);
                (void)tn_dim_env_match(&g->dims, &env, tn_value_dim(g, v, d), tn_tensor_dims(t)[d]);
            }
        }
    for (uint32_t i = 0; i < b.count; i++)
        b.size[i] = env.bound[b.symbol[i]] ? env.value[b.symbol[i]] : 1;
    tn_dim_env_free(&env);
    return b;
}

/* A tensor of other sizes with the values of `from` again and again: they stay what the model expects. */
static tn_object *resized(const tn_tensor *from, int rank, const int64_t *dims) {
    tn_tensor *t = tn_tensor_create(tn_tensor_dtype(from), rank, dims);
    int64_t n = tn_tensor_count(from);
    for (int64_t i = 0; t && i < tn_tensor_count(t); i++) {
        tn_string s;
        if (tn_tensor_dtype(from) != TN_STRING)
            tn_tensor_set_f64(t, i, n ? tn_tensor_get_f64(from, i % n) : 0);
        else if (n && tn_tensor_get_string(from, i % n, &s) == TN_OK)
            tn_tensor_set_string(t, i, s.data, s.length);
    }
    return t ? tn_tensor_object(t) : NULL;
}

static bool feed_resize(const tn_graph *g, const feed *from, const binding *b, feed *to) {
    tn_dim_env env;
    bool ok = tn_dim_env_init(&env, NULL, &g->dims);
    to->count = 0;
    for (uint32_t i = 0; ok && i < b->count; i++) {
        env.value[b->symbol[i]] = b->size[i];
        env.bound[b->symbol[i]] = 1;
    }
    for (uint32_t i = 0; ok && i < from->count; i++) {
        tn_value v = input_named(g, from->name[i]);
        const tn_tensor *t = tn_object_tensor(from->object[i]);
        int rank = t && v.id ? tn_value_rank(g, v) : -1;
        int64_t dims[TN_MAX_RANK];
        for (int d = 0; d < rank && ok; d++)
            ok = tn_dim_eval(&g->dims, &env, tn_value_dim(g, v, d), &dims[d]) && dims[d] >= 0;
        tn_object *o = !ok ? NULL : rank < 0 ? tn_object_retain(from->object[i]) : resized(t, rank, dims);
        ok = o != NULL;
        if (!ok)
            break;
        memcpy(to->name[to->count], from->name[i], sizeof *to->name);
        to->object[to->count++] = o;
    }
    tn_dim_env_free(&env);
    if (!ok)
        feed_free(to);
    return ok;
}

/* Another size for a symbol: near a small one; for what looks like a picture or a signal, one with the divisors that networks want. */
static int64_t other_size(int64_t base, int which) {
    static const int64_t large[] = {64, 96, 128, 32, 160, 256, 512, 1024, 2048, 8192},
                         small[] = {2, 3, 1, 4, 5, 7, 8, 16, 0, 6};
    return base >= 32 ? large[which % 10] : small[which % 10];
}

/* Attempt k: all symbols, then one at a time, then all with another step for each. */
static bool attempt(const binding *base, int k, binding *b) {
    *b = *base;
    uint32_t n = base->count;
    if (k < 6) {
        for (uint32_t i = 0; i < n; i++)
            b->size[i] = other_size(base->size[i], k);
    } else if (k < 26) {
        uint32_t i = (uint32_t)(k - 6) % n;
        b->size[i] = other_size(base->size[i], (k - 6) / (int)n);
    } else {
        for (uint32_t i = 0; i < n; i++)
            b->size[i] = other_size(base->size[i], k + (int)i * 3);
    }
    return memcmp(b->size, base->size, n * sizeof *b->size) != 0;
}

static void print_binding(const tn_graph *g, const binding *b) {
    for (uint32_t i = 0; i < b->count; i++)
        printf("%s%s=%" PRId64, i ? "," : "", tn_dim_symbol_name(&g->dims, b->symbol[i]), b->size[i]);
}

/* --- all stages of a model -------------------------------------------------------------------------------------------------------------- */

static struct { unsigned models, wrong, few, other, bindings, refused; } total;

static void add(shape_tally *to, const shape_tally *t) {
    to->values += t->values;
    to->numbers += t->numbers;
    to->expressions += t->expressions;
    to->contents += t->contents;
    to->data += t->data;
    to->undecided += t->undecided;
    to->unknown += t->unknown;
    if (t->wrong && !to->wrong)
        memcpy(to->first, t->first, sizeof to->first);
    to->wrong += t->wrong;
}

/* A run that must do; what is wrong is told. */
static bool must_run(const char *name, const char *what, const tn_graph *g, const feed *f, shape_tally *sum) {
    shape_tally t = {0};
    tn_status status = run_feed(g, f, &t);
    if (status != TN_OK || t.wrong) {
        printf("%s (%s): %s\n", name, what, t.wrong ? t.first : tn_error_message());
        total.wrong++;
    }
    add(sum, &t);
    return status == TN_OK;
}

/* Three bindings that the model takes, or all that were tried. */
static void try_bindings(const char *name, tn_graph *const *stage, const feed *f, shape_tally *sum) {
    binding base = binding_of(stage[EXPANDED], f), b, done[MAX_TRIES];
    unsigned ran = 0, refused = 0;
    if (!base.count)
        return;
    for (int k = 0; k < MAX_TRIES && ran < WANTED; k++) {
        feed other;
        bool again = !attempt(&base, k, &b);
        for (unsigned i = 0; i < ran + refused; i++)
            again = again || memcmp(done[i].size, b.size, sizeof b.size) == 0;
        if (again || !feed_resize(stage[EXPANDED], f, &b, &other))
            continue;
        done[ran + refused] = b;
        shape_tally t = {0};
        tn_status status = run_feed(stage[EXPANDED], &other, &t);
        printf("  %s ", status == TN_OK ? "runs with" : "refuses");
        print_binding(stage[EXPANDED], &b);
        printf("%s%.160s\n", status == TN_OK ? "" : ": ", status == TN_OK ? "" : tn_error_what());
        if (t.wrong || status == TN_ERR_INTERNAL) {
            printf("%s: %s\n", name, t.wrong ? t.first : tn_error_message());
            total.wrong++;
        }
        add(sum, &t);
        if (status == TN_OK) {
            ran++;
            must_run(name, "optimised", stage[OPTIMISED], &other, sum);
        } else {
            refused++;
        }
        feed_free(&other);
    }
    total.bindings += ran;
    total.refused += refused;
    total.few += ran < WANTED;
}

/* "name ranks dims reason" of shapes.txt; false: the model is not listed, and leaves nothing open. */
static bool expected(const char *name, unsigned *ranks, unsigned *dims) {
    char line[256], word[200];
    FILE *file = fopen(TENON_SOURCE_DIR "/tests/interp/shapes.txt", "r");
    bool found = false;
    while (file && !found && fgets(line, sizeof line, file))
        found = sscanf(line, "%199s %u %u", word, ranks, dims) == 3 && strcmp(word, name) == 0;
    if (file)
        fclose(file);
    if (!found)
        *ranks = *dims = 0;
    return found;
}

static void check_gaps(const char *name, const tn_graph *g, bool tell) {
    shape_gaps gaps = shapes_unknown(g, tell);
    unsigned ranks = 0, dims = 0;
    bool listed = expected(name, &ranks, &dims);
    printf("  of %" PRIu32 " values: %" PRIu32 " without rank, %" PRIu32 " dimensions that data decide, %" PRIu32
           " symbols, %" PRIu32 " nodes expanded when they run\n",
           gaps.values, gaps.ranks, gaps.dims, gaps.symbols, gaps.late);
    if (gaps.ranks != ranks || gaps.dims != dims) {
        printf("%s: inference leaves open %" PRIu32 " ranks and %" PRIu32 " dimensions; shapes.txt %s (%u, %u)\n", name,
               gaps.ranks, gaps.dims, listed ? "says otherwise" : "does not list the model", ranks, dims);
        total.other++;
    }
}

static void check_model(const char *folder, const char *name, bool tell) {
    char path[4096];
    snprintf(path, sizeof path, "%s/model.onnx", folder);
    tn_graph *loaded = tn_onnx_load_file(path, NULL);
    if (!loaded) {
        printf("%s does not load: %.200s\n", name, tn_error_what());
        return;
    }
    total.models++;
    printf("%s\n", name);
    shape_tally sum = {0};
    feed f;
    for (int set = 0; feed_read(loaded, folder, set, &f); set++) {
        tn_graph *stage[STAGES] = {NULL};
        bool made = true;
        for (int s = LOADED; s < STAGES && made; s++) {
            stage[s] = make_graph(path, s, &f);
            made = stage[s] != NULL;
            if (!made) {
                printf("%s (%s): %s\n", name, stage_name[s], tn_error_message());
                total.wrong++;
                break;
            }
            if (s > LOADED || !stage[s]->function.len) /* calls are inlined by the expansion */
                must_run(name, stage_name[s], stage[s], &f, &sum);
        }
        if (made && set == 0) {
            check_gaps(name, stage[EXPANDED], tell);
            try_bindings(name, stage, &f, &sum);
        }
        for (int s = 0; s < STAGES; s++)
            tn_graph_destroy(stage[s]);
        feed_free(&f);
    }
    printf("  %" PRIu64 " values seen: %" PRIu64 " numbers, %" PRIu64 " expressions, %" PRIu64
           " contents right; %" PRIu64 " decided by data, %" PRIu64 " undecided, %" PRIu64 " unknown; %" PRIu32
           " false\n",
           sum.values, sum.numbers, sum.expressions, sum.contents, sum.data, sum.undecided, sum.unknown, sum.wrong);
    tn_graph_destroy(loaded);
}

/* --- all models ------------------------------------------------------------------------------------------------------------------------------ */

static bool is_taken(const char *name) {
    static const char *const quick[] = {"mnist-cnn",      "face-mtcnn-pnet",  "kws-qdq",    "nested-if-loop-scan",
                                        "scan-lstm",      "sklearn-voting",   "qtdnn",      "opset-13",
                                        "gpt2-tiny-past", "loop-crop-resize", "silero-vad", "silero-vad-16k"};
    const char *only = getenv("TENON_SHAPES_ONLY");
    for (size_t i = 0; !take_all() && i < sizeof quick / sizeof *quick; i++)
        if (strcmp(quick[i], name) == 0)
            return true;
    return take_all() && (!only || strstr(name, only));
}

static void check_folder(const char *folder) {
    const char *only = getenv("TENON_SHAPES_ONLY");
    char root[4096], path[8192];
    snprintf(root, sizeof root, "%s/%s", TENON_SHARED_DIR, folder);
    char **names;
    size_t count;
    if (tn_folder_list(NULL, root, &names, &count) != TN_OK) {
        print_message("skipped: there is no %s\n", root);
        skip();
    }
    memset(&total, 0, sizeof total);
    for (size_t i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%s", root, names[i]);
        if (tn_path_kind_of(path) == TN_PATH_FOLDER && is_taken(names[i]))
            check_model(path, names[i], only != NULL);
        fflush(stdout);
        tn_free(NULL, names[i]);
    }
    tn_free(NULL, names);
    printf("%s: %u models, %u bindings run, %u refused by the model; %u models with fewer than %d bindings, %u runs "
           "with a false "
           "shape or failed, %u with more or less open than shapes.txt says\n",
           folder, total.models, total.bindings, total.refused, total.few, WANTED, total.wrong, total.other);
    assert_int_equal(total.wrong, 0);
    assert_int_equal(total.other, 0);
    assert_int_equal(total.few, 0);
}

static void models(void **state) {
    (void)state;
    check_folder("models");
}

/* --- the suite and the cases --------------------------------------------------------------------------------------------------------------- */

typedef enum inputs { DECLARED, FREE_SIZES, NO_SHAPES } inputs;
static const char *const inputs_name[] = {"", " with free sizes", " without shapes"};

/* Every size of every input becomes a symbol of its own, or no input has a rank. */
static tn_status forget_sizes(tn_graph *g, inputs how) {
    for (uint32_t i = 0; i < tn_graph_input_count(g); i++) {
        tn_value v = tn_graph_input(g, i);
        tn_dim dims[TN_MAX_RANK];
        int rank = tn_value_rank(g, v);
        if (rank < (how == FREE_SIZES) || tn_type_kind(g, tn_value_type(g, v)) != TN_KIND_TENSOR)
            continue;
        if (how == NO_SHAPES)
            rank = -1;
        for (int k = 0; k < rank; k++)
            dims[k] = tn_dim_fresh(g, 0, INT64_MAX);
        TN_TRY(tn_value_set_type(g, v, tn_type_tensor(g, tn_value_dtype(g, v), rank, dims)));
    }
    return TN_OK;
}

typedef struct graphs_seen {
    unsigned folders, runs, refused, wrong;
    shape_tally sum;
} graphs_seen;

/* What is refused is another test's concern. */
static void check_graphs_of(const char *folder, inputs how, graphs_seen *seen) {
    char path[4096];
    feed f;
    snprintf(path, sizeof path, "%s/model.onnx", folder);
    for (int set = 0;; set++) {
        tn_graph *g = tn_onnx_load_file(path, NULL);
        if (!g || !feed_read(g, folder, set, &f)) {
            tn_graph_destroy(g);
            return;
        }
        tn_value fed[MAX_INPUTS];
        for (uint32_t i = 0; i < f.count; i++)
            fed[i] = input_named(g, f.name[i]);
        tn_status status = how ? forget_sizes(g, how) : TN_OK;
        if (status == TN_OK)
            status = tn_onnx_use_defaults(g, f.count, fed);
        if (status == TN_OK)
            status = tn_onnx_expand(g, 0);
        shape_tally t = {0};
        if (status == TN_OK)
            status = run_feed(g, &f, &t);
        seen->runs += status == TN_OK;
        seen->refused += status != TN_OK;
        /* what late.c says of a type that was foreseen and is not so */
        bool foreseen = status != TN_OK && strstr(tn_error_message(), "is needed there is");
        if (t.wrong || status == TN_ERR_INTERNAL || foreseen) {
            printf("%s%s: %s\n", folder, inputs_name[how], t.wrong ? t.first : tn_error_message());
            seen->wrong++;
        }
        add(&seen->sum, &t);
        tn_graph_destroy(g);
        feed_free(&f);
    }
}

static void check_graphs(const char *part, inputs how, graphs_seen *seen) {
    const char *only = getenv("TENON_SHAPES_ONLY");
    char root[4096], path[8192], **names;
    size_t count;
    snprintf(root, sizeof root, "%s/%s", TENON_SHARED_DIR, part);
    if (tn_folder_list(NULL, root, &names, &count) != TN_OK) {
        print_message("skipped: there is no %s\n", root);
        return;
    }
    size_t step = take_all() ? 1 : 17;
    for (size_t i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%s", root, names[i]);
        if (i % step == 0 && (!only || strstr(names[i], only))) {
            seen->folders++;
            check_graphs_of(path, how, seen);
        }
        tn_free(NULL, names[i]);
    }
    tn_free(NULL, names);
}

static void all_graphs(inputs how, unsigned least) {
    static const char *const parts[] = {"onnx-suite/node", "onnx-suite/simple", "onnx-suite/pytorch-converted",
                                        "onnx-suite/pytorch-operator", "cases"};
    graphs_seen seen = {0};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        check_graphs(parts[i], how, &seen);
    printf("%u folders, %u runs, %u refused; %" PRIu64 " values seen: %" PRIu64 " numbers, %" PRIu64
           " expressions, %" PRIu64 " contents right; %" PRIu64 " decided by data, %" PRIu64 " undecided, %" PRIu64
           " unknown; %u false\n",
           seen.folders, seen.runs, seen.refused, seen.sum.values, seen.sum.numbers, seen.sum.expressions,
           seen.sum.contents, seen.sum.data, seen.sum.undecided, seen.sum.unknown, seen.wrong);
    assert_int_equal(seen.wrong, 0);
    if (!seen.folders)
        skip();
    assert_true(getenv("TENON_SHAPES_ONLY") || seen.runs >= (take_all() ? least : least / 20));
}

static void suite(void **state) {
    (void)state;
    all_graphs(DECLARED, 2104);
}

static void suite_with_free_sizes(void **state) {
    (void)state;
    all_graphs(FREE_SIZES, 2105);
}

static void suite_without_shapes(void **state) {
    (void)state;
    all_graphs(NO_SHAPES, 2105);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(models), cmocka_unit_test(suite),
                                       cmocka_unit_test(suite_with_free_sizes), cmocka_unit_test(suite_without_shapes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
