/* The same bits: run after run, at -O0 and -O1, on any number of threads, however values lie and share memory, and for a row of a batch wherever it stands in it. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <tenon/tenon.h>

#include "ir/graph.h"
#include "ir/tensor.h"
#include "support/model_runs.h"

#define BATCH 7

/* Models of the quick form; the long one takes all that load. */
static const char *const quick[] = {
    "mnist-cnn", "kws-fp32",  "face-mtcnn-pnet", "face-mtcnn-rnet", "lightgbm-classifier",  "deconv-group",
    "opset-13",  "nested-if", "data-types",      "qtdnn",           "audio-melspectrogram", "bidi-lstm",
    "scan-lstm"};

/* Those whose inputs begin with a dimension along which nothing is summed. */
static const char *const rows_apart[] = {"mlp",
                                         "conv",
                                         "product, softmax, sum",
                                         "face-mtcnn-pnet",
                                         "face-mtcnn-rnet",
                                         "face-mtcnn-onet",
                                         "lightgbm-classifier",
                                         "kws-qdq",
                                         "filetype-magika",
                                         "music-basic-pitch",
                                         "bidi-lstm",
                                         "ocr-cls-ppv2",
                                         "ocr-det-ppv4",
                                         "ocr-rec-ppv4",
                                         "orientation-lcnet",
                                         "super-resolution",
                                         "xgboost-classifier"};

static unsigned compared, batched;

/* Runs with these options; compares with *base, or becomes it. */
static bool same(const char *what, tn_model *model, const tn_session_options *o, const run_inputs *in, int runs,
                 run_outputs *base) {
    tn_session *session = tn_session_create(model, o);
    bool ok = session != NULL;
    for (int i = 0; i < runs && ok; i++) {
        run_outputs out;
        ok = run_session(session, model, in, &out) == TN_OK;
        if (ok && !base->count) {
            *base = out;
            continue;
        }
        ok = ok && run_outputs_equal(what, base, &out);
        run_outputs_free(&out);
        compared++;
    }
    if (!session || (!ok && tn_error_status() != TN_OK))
        fprintf(stderr, "%s: %s\n", what, tn_error_message());
    tn_session_destroy(session);
    return ok;
}

/* One row, or rows of `in`, along axis 0. */
static void take_row(const run_inputs *in, int64_t row, run_inputs *out) {
    out->count = in->count;
    for (uint32_t i = 0; i < in->count; i++) {
        tn_tensor *t = in->binding[i].tensor;
        int64_t dims[TN_MAX_RANK];
        memcpy(dims, t->dims, (size_t)t->rank * sizeof *dims);
        dims[0] = 1;
        tn_tensor *view = tn_tensor_view(NULL, t, (tn_dtype)t->dtype, t->rank, dims, t->strides, row * t->strides[0]);
        out->binding[i] = (tn_binding){in->binding[i].name, tn_tensor_copy(view), NULL};
        tn_tensor_destroy(view);
    }
}

/* "N=7" of the symbol that the inputs begin with, if it is one. */
static bool symbolic_batch(const tn_model *model, char *binding, size_t room) {
    const tn_graph *g = tn_model_graph(model);
    tn_dim first = {0};
    for (uint32_t i = 0; i < tn_model_input_count(model); i++) {
        tn_type type = tn_model_input_type(model, i);
        int64_t size;
        if (tn_model_input_has_default(model, i))
            continue;
        if (tn_type_rank(g, type) < 1 || tn_type_dtype(g, type) == TN_STRING ||
            tn_dim_is_const(g, tn_type_dims(g, type)[0], &size) ||
            (first.id && tn_type_dims(g, type)[0].id != first.id))
            return false;
        first = tn_type_dims(g, type)[0];
        for (int d = 1; d < tn_type_rank(g, type); d++) /* a sequence length may be the first dimension */
            if (tn_type_dims(g, type)[d].id == first.id)
                return false;
    }
    tn_text name;
    tn_text_init(&name, NULL);
    if (first.id)
        tn_dim_print(&g->dims, first, &name);
    snprintf(binding, room, "%s=%d", name.data ? name.data : "", BATCH);
    tn_text_free(&name);
    return first.id != 0;
}

/* Rows 0, 3 and 6 of a batch of 7 against each alone, for outputs that have a row for each. */
static bool batch_positions(const char *what, tn_model *model, const tn_session_options *o) {
    run_inputs all;
    run_outputs together;
    bool apart = false;
    for (size_t i = 0; i < sizeof rows_apart / sizeof *rows_apart; i++)
        apart |= strcmp(what, rows_apart[i]) == 0;
    char binding[256];
    if (!apart || !symbolic_batch(model, binding, sizeof binding) || !run_inputs_fill(model, 11, 64, binding, &all))
        return true;
    tn_session *session = tn_session_create(model, o);
    bool ok = true;
    if (!session || run_session(session, model, &all, &together) != TN_OK) {
        fprintf(stderr, "%s: no batch of %d: %s\n", what, BATCH, tn_error_message());
        run_inputs_free(&all);
        tn_session_destroy(session);
        return false;
    }
    for (int64_t row = 0; row < BATCH && ok; row += 3) {
        run_inputs one;
        run_outputs alone;
        take_row(&all, row, &one);
        ok = run_session(session, model, &one, &alone) == TN_OK;
        if (!ok)
            fprintf(stderr, "%s, row %" PRId64 " alone: %s\n", what, row, tn_error_message());
        for (uint32_t i = 0; i < together.count && ok; i++) {
            tn_tensor *t = tn_object_tensor(together.object[i]), *a = tn_object_tensor(alone.object[i]);
            bool rows = t && a && t->rank && t->rank == a->rank && t->dims[0] == BATCH && a->dims[0] == 1 &&
                        t->dtype != TN_STRING;
            for (int d = 1; rows && d < t->rank; d++)
                rows = t->dims[d] == a->dims[d];
            if (!rows)
                continue;
            size_t bytes = tn_tensor_bytes(a);
            ok = memcmp((const char *)t->data + (size_t)row * bytes, a->data, bytes) == 0;
            batched++;
            if (!ok)
                fprintf(stderr, "%s: output %u of row %" PRId64 " of a batch has other bits than alone\n", what, i,
                        row);
        }
        run_outputs_free(&alone);
        run_inputs_free(&one);
    }
    run_outputs_free(&together);
    run_inputs_free(&all);
    tn_session_destroy(session);
    return ok;
}

/* All comparisons of one model. */
static bool check_model(const char *what, tn_model *model, const run_inputs *in) {
    char label[300];
    run_outputs base = {0}, two = {0};
    snprintf(label, sizeof label, "%s -O0", what);
    bool ok = same(label, model, TN_OPTIONS(tn_session_options, .level = TN_LEVEL_0, .threads = 1), in, 2, &base);
    for (int threads = 1; threads <= 3 && ok; threads++) {
        snprintf(label, sizeof label, "%s -O1, %d threads against -O0", what, threads);
        ok = same(label, model,
                  TN_OPTIONS(tn_session_options, .level = TN_LEVEL_1, .threads = threads, .oversubscribe = true), in,
                  threads == 2 ? 3 : 1, &base);
        snprintf(label, sizeof label, "%s -O2, %d threads", what, threads);
        ok = ok &&
             same(label, model, TN_OPTIONS(tn_session_options, .threads = threads, .oversubscribe = true), in, 2, &two);
    }
    static const struct {
        const char *name;
        tn_layout_option layout;
        tn_reuse_option reuse;
        tn_level level;
    } plan[] = {{"nchw, nothing reused", TN_LAYOUT_NCHW, TN_REUSE_NONE, TN_LEVEL_1},
                {"nhwc, in place", TN_LAYOUT_NHWC, TN_REUSE_IN_PLACE, TN_LEVEL_1},
                {"nhwc, nothing reused", TN_LAYOUT_NHWC, TN_REUSE_NONE, TN_LEVEL_2},
                {"nchw, in place", TN_LAYOUT_NCHW, TN_REUSE_IN_PLACE, TN_LEVEL_2}};
    for (size_t i = 0; i < sizeof plan / sizeof *plan && ok; i++) {
        snprintf(label, sizeof label, "%s, %s", what, plan[i].name);
        ok = same(
            label, model,
            TN_OPTIONS(tn_session_options, .level = plan[i].level, .layout = plan[i].layout, .reuse = plan[i].reuse),
            in, 2, plan[i].level == TN_LEVEL_1 ? &base : &two);
    }
    ok = ok && batch_positions(what, model, TN_OPTIONS(tn_session_options, .threads = 2, .oversubscribe = true));
    run_outputs_free(&base);
    run_outputs_free(&two);
    return ok;
}

static void test_built_graphs(void **s) {
    (void)s;
    const char *name;
    tn_graph *g;
    bool ok = true;
    for (uint32_t i = 0; (g = small_graph(NULL, i, &name)); i++) {
        tn_model *model = tn_model_from_graph(g, NULL);
        run_inputs in;
        assert_non_null(model);
        assert_true(run_inputs_fill(model, 5, 9, NULL, &in));
        ok = check_model(name, model, &in) && ok;
        run_inputs_free(&in);
        tn_model_destroy(model);
        tn_graph_destroy(g);
    }
    assert_true(ok);
}

/* More rows than a strip, a tile and a block of any kernel hold, in sizes around them. */
static void test_sizes(void **s) {
    (void)s;
    static const int64_t sizes[] = {1, 2, 3, 7, 16, 17, 63, 129};
    bool ok = true;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        tn_graph *g = tn_graph_create();
        tn_tensor *w = tn_tensor_create(TN_F32, 2, (const int64_t[]){sizes[i], 2 * sizes[i] + 1});
        for (int64_t k = 0; k < tn_tensor_count(w); k++)
            tn_tensor_set_f64(w, k, (double)(k * 2654435761 % 1000) / 500 - 1);
        tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("N", sizes[i]));
        tn_value y = tn_softmax(g, tn_gelu(g, tn_matmul(g, x, tn_constant(g, w))), -1);
        tn_set_output(g, "y", tn_reduce_sum(g, tn_mul(g, y, y), 1, (const int[]){1}, true));
        tn_model *model = tn_model_from_graph(g, NULL);
        for (int64_t n = 1; n < 40; n = 3 * n + 1) {
            run_inputs in;
            assert_true(run_inputs_fill(model, (uint64_t)n, n, NULL, &in));
            ok = check_model("product, softmax, sum", model, &in) && ok;
            run_inputs_free(&in);
        }
        tn_model_destroy(model);
        tn_graph_destroy(g);
        tn_tensor_destroy(w);
    }
    assert_true(ok);
}

static bool chosen(const char *name) {
    bool found = run_full();
    for (size_t i = 0; i < sizeof quick / sizeof *quick; i++)
        found |= strcmp(name, quick[i]) == 0;
    return found;
}

static void test_models(void **s) {
    (void)s;
    char **names = shared_models("models");
    unsigned checked = 0, unsupported = 0, failures = 0;
    for (char **name = names; *name; name++) {
        char path[4096], file[512];
        if (!chosen(*name))
            continue;
        snprintf(file, sizeof file, "models/%s", *name);
        shared_path(file, path, sizeof path);
        strcat(path, "/model.onnx");
        tn_model *model = tn_model_load(path, NULL);
        *strrchr(path, '/') = '\0';
        tn_session *session = model ? tn_session_create(model, NULL) : NULL;
        run_inputs in = {0};
        if (!session) {
            printf("%s: %s\n", *name, tn_error_what());
            unsupported++;
        } else if (run_inputs_read(model, path, 0, &in)) {
            failures += !check_model(*name, model, &in);
            checked++;
        }
        run_inputs_free(&in);
        tn_session_destroy(session);
        tn_model_destroy(model);
    }
    shared_free_names(names);
    printf("%u models checked, %u do not load; %u runs and %u rows compared\n", checked, unsupported, compared,
           batched);
    assert_int_equal(failures, 0);
    assert_true(checked == 0 || batched >= 60); /* the shared models have outputs of a row for each */
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_built_graphs), cmocka_unit_test(test_sizes),
                                       cmocka_unit_test(test_models)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
