/* Saved models: every graph that loads survives both forms, as loaded and after expansion: it prints the same text and gives the same
   bits with both back ends. The quick tests take part of the models, the standard's suite and the cases; TENON_ALL=1 takes all. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>
#include <tenon/tenon.h>

#include "base/os.h"
#include "ir/binary.h"
#include "onnx/model.h"
#include "onnx/op.h"
#include "onnx/tensor_file.h"
#include "support/binary_checks.h"
#include "support/model_runs.h"

#define MODELS TENON_SHARED_DIR "/models"

static const tn_binary_options options = {.unknown_op = tn_onnx_make_row};
static struct { unsigned loaded, expanded, skipped, wrong, runs, refused; } seen;
static char scratch[] = "/tmp/tenon-test-XXXXXX";

static bool take_all(void) {
    const char *all = getenv("TENON_ALL");
    return all && *all == '1';
}

static void complain(const char *path, const char *what, const char *why) {
    print_error("%s: %s: %s\n", path, what, why);
    seen.wrong++;
}

/* --- results -------------------------------------------------------------------------------------------------------------------- */

/* A data set, or false: there is none, or it cannot be read (cases with damaged files). */
static bool read_set(const tn_model *model, const char *folder, int set, run_inputs *in) {
    const tn_graph *g = tn_model_graph(model);
    char path[4096];
    in->count = 0;
    snprintf(path, sizeof path, "%s/test_data_set_%d", folder, set);
    if (tn_path_kind_of(path) != TN_PATH_FOLDER)
        return false;
    for (uint32_t i = 0; i < tn_model_input_count(model) && in->count < RUN_MAX; i++) {
        snprintf(path, sizeof path, "%s/test_data_set_%d/input_%u.pb", folder, set, (unsigned)i);
        if (tn_path_kind_of(path) != TN_PATH_FILE)
            continue;
        tn_object *object = tn_onnx_read_object_file(NULL, path, tn_type_kind(g, tn_model_input_type(model, i)));
        if (!object) {
            run_inputs_free(in);
            return false;
        }
        in->binding[in->count++] = (tn_binding){tn_model_input_name(model, i), NULL, object};
    }
    return true;
}

typedef enum running {
    RUN_NOT,
    RUN_ALL,
    RUN_FEW
} running; /* few: compiled plans run one data set, of the graph as loaded */

/* Both models give the same bits for the first `sets` data sets, or both refuse them with the same status. */
static void check_results(const char *folder, tn_model *model, tn_model *saved, tn_backend backend, int sets,
                          const char *what) {
    run_inputs in;
    tn_session *a = tn_session_create(model, TN_OPTIONS(tn_session_options, .backend = backend)),
               *b = tn_session_create(saved, TN_OPTIONS(tn_session_options, .backend = backend));
    if (!a != !b)
        complain(folder, what, tn_error_message());
    for (int set = 0; a && b && set < sets && read_set(model, folder, set, &in); set++) {
        run_outputs x, y;
        tn_status wanted = run_session(a, model, &in, &x), got = run_session(b, saved, &in, &y);
        if (wanted != got)
            complain(folder, what, tn_error_message());
        else if (wanted == TN_OK && !run_outputs_equal(folder, &x, &y))
            complain(folder, what, "another result");
        seen.runs += wanted == TN_OK;
        seen.refused += wanted != TN_OK;
        run_outputs_free(&x);
        run_outputs_free(&y);
        run_inputs_free(&in);
    }
    tn_session_destroy(a);
    tn_session_destroy(b);
}

/* The graph saved in one form and loaded: the same text, the same results. */
static void check_saved(const tn_graph *g, const char *folder, const char *ending, const char *what, running run,
                        bool loaded) {
    char path[64], *text = tn_graph_print(g);
    snprintf(path, sizeof path, "%s/model.%s", scratch, ending);
    tn_model *saved = tn_graph_save(g, path) == TN_OK ? tn_model_load(path, NULL) : NULL;
    char *again = saved ? tn_graph_print(tn_model_graph(saved)) : NULL;
    if (!text || !again)
        complain(folder, what, tn_error_message());
    else if (strcmp(text, again) != 0)
        complain(folder, what, "it prints otherwise");
    if (again && run != RUN_NOT) {
        tn_graph *copy = tn_graph_clone(g, NULL, NULL);
        tn_model *model = tn_model_from_graph(copy, NULL);
        if (model) {
            check_results(folder, model, saved, TN_BACKEND_REFERENCE, INT_MAX, what);
            if (run == RUN_ALL || loaded)
                check_results(folder, model, saved, TN_BACKEND_CPU, run == RUN_ALL ? INT_MAX : 1, what);
        } else {
            complain(folder, what, tn_error_message());
        }
        tn_model_destroy(model);
        tn_graph_destroy(copy);
    }
    if (text)
        tn_graph_free_text(g, text);
    if (again)
        tn_graph_free_text(tn_model_graph(saved), again);
    tn_model_destroy(saved);
    unlink(path);
}

static void check(const tn_graph *g, const char *path, const char *folder, bool loaded, running run) {
    const char *what = loaded ? "as loaded" : "expanded";
    char form[64];
    if (tn_graph_verify(g) != TN_OK) {
        complain(path, "it does not verify", tn_error_message());
        return;
    }
    if (!binary_survives(g, &options))
        complain(path, what, tn_error_message());
    static const char *const endings[] = {"tenon", "txt"};
    for (int i = 0; i < 2; i++) {
        snprintf(form, sizeof form, "%s, .%s", what, endings[i]);
        check_saved(g, folder, endings[i], form, run, loaded);
    }
}

/* What does not load or expand is not this test's concern. */
static void check_file(const char *path, const char *folder, running run) {
    tn_graph *g = tn_onnx_load_file(path, &(tn_onnx_options){0});
    if (!g) {
        seen.skipped++;
        return;
    }
    check(g, path, folder, true, run);
    seen.loaded++;
    if (tn_onnx_use_defaults(g, 0, NULL) == TN_OK && tn_onnx_expand(g, 0) == TN_OK) {
        check(g, path, folder, false, run);
        seen.expanded++;
    }
    tn_graph_destroy(g);
}

/* Every `step`-th case of a folder: a folder with a model.onnx, or a file.onnx. */
static void check_folder(const char *folder, size_t step, running run) {
    char **names, path[4096], sub[4096];
    size_t count;
    if (tn_folder_list(NULL, folder, &names, &count) != TN_OK) {
        print_message("%s is not there: its models are skipped\n", folder);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(names[i]);
        if (i % step == 0) {
            bool file = length > 5 && strcmp(names[i] + length - 5, ".onnx") == 0;
            snprintf(sub, sizeof sub, "%.2000s/%.1000s", folder, names[i]);
            snprintf(path, sizeof path, "%.4000s%s", sub, file ? "" : "/model.onnx");
            if (tn_path_kind_of(path) == TN_PATH_FILE)
                check_file(path, sub, file ? RUN_NOT : run);
        }
        tn_free(NULL, names[i]);
    }
    tn_free(NULL, names);
}

static void every_model_survives(void **state) {
    (void)state;
    static const char *const parts[] = {"onnx-suite/node",
                                        "onnx-suite/simple",
                                        "onnx-suite/pytorch-converted",
                                        "onnx-suite/pytorch-operator",
                                        "onnx-suite/light",
                                        "cases"};
    assert_non_null(mkdtemp(scratch));
    check_folder(MODELS, take_all() ? 1 : 4, take_all() ? RUN_FEW : RUN_NOT);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        char folder[4096];
        snprintf(folder, sizeof folder, "%s/%s", TENON_SHARED_DIR, parts[i]);
        check_folder(folder, take_all() ? 1 : 13, RUN_ALL);
    }
    rmdir(scratch);
    print_message("%u graphs as loaded, %u expanded; %u files do not load; %u runs compared, %u refused alike\n",
                  seen.loaded, seen.expanded, seen.skipped, seen.runs, seen.refused);
    assert_int_equal(seen.wrong, 0);
    assert_true(!seen.loaded || seen.runs > seen.loaded);
}

/* --- running ---------------------------------------------------------------------------------------------------------------- */

/* The one input that must be fed, or NULL. */
static const char *fed_input(const tn_model *model) {
    const char *name = NULL;
    for (uint32_t i = 0; i < tn_model_input_count(model); i++)
        if (!tn_model_input_has_default(model, i)) {
            if (name)
                return NULL;
            name = tn_model_input_name(model, i);
        }
    return name;
}

static tn_tensor *run(tn_model *model, tn_tensor *input) {
    if (!model)
        fail_msg("%s", tn_error_message());
    tn_session *session = tn_session_create(model, TN_OPTIONS(tn_session_options, .backend = TN_BACKEND_REFERENCE));
    if (!session)
        fail_msg("%s", tn_error_message());
    tn_tensor *output = NULL;
    tn_binding in = {.name = fed_input(model), .tensor = input};
    tn_output out = {.name = tn_model_output_name(model, 0), .tensor = &output};
    if (tn_session_run(session, 1, &in, 1, &out) != TN_OK)
        fail_msg("%s", tn_error_message());
    tn_session_destroy(session);
    return output;
}

static void saved_models_run(void **state) {
    (void)state;
    static const char *const models[] = {"mnist-cnn", "mnist-pytorch", "kws-fp32", "face-mtcnn-pnet"};
    unsigned ran = 0;
    char folder[] = "/tmp/tenon-test-XXXXXX", path[4096];
    assert_non_null(mkdtemp(folder));
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        snprintf(path, sizeof path, "%s/%s/test_data_set_0/input_0.pb", MODELS, models[i]);
        tn_object *input =
            tn_path_kind_of(path) == TN_PATH_FILE ? tn_onnx_read_object_file(NULL, path, TN_KIND_TENSOR) : NULL;
        snprintf(path, sizeof path, "%s/%s/model.onnx", MODELS, models[i]);
        tn_model *model = input ? tn_model_load(path, NULL) : NULL;
        if (!model || !fed_input(model)) {
            tn_model_destroy(model);
            tn_object_destroy(input);
            continue;
        }
        ran++;
        tn_tensor *wanted = run(model, tn_object_tensor(input));
        static const char *const endings[] = {"tenon", "txt"};
        for (int k = 0; k < 2; k++) {
            snprintf(path, sizeof path, "%s/m.%s", folder, endings[k]);
            if (tn_graph_save(tn_model_graph(model), path) != TN_OK)
                fail_msg("%s", tn_error_message());
            tn_model *saved = tn_model_load(path, NULL);
            tn_tensor *got = run(saved, tn_object_tensor(input));
            assert_true(tn_object_equal(tn_tensor_object(wanted), tn_tensor_object(got)));
            tn_tensor_destroy(got);
            tn_model_destroy(saved);
            /* from memory, at an address that is not aligned */
            size_t size;
            char *bytes = tn_file_read(NULL, path, &size), *odd = malloc(size + 1);
            memcpy(odd + 1, bytes, size);
            saved = tn_model_load_memory(odd + 1, size, NULL);
            got = run(saved, tn_object_tensor(input));
            assert_true(tn_object_equal(tn_tensor_object(wanted), tn_tensor_object(got)));
            tn_tensor_destroy(got);
            tn_model_destroy(saved);
            free(odd);
            tn_free(NULL, bytes);
            unlink(path);
        }
        tn_tensor_destroy(wanted);
        tn_model_destroy(model);
        tn_object_destroy(input);
    }
    rmdir(folder);
    print_message("%u models run\n", ran);
}

static void limits_hold(void **state) {
    (void)state;
    char path[] = "/tmp/tenon-test-XXXXXX.tenon";
    close(mkstemps(path, 6));
    tn_graph *g = tn_graph_create();
    tn_value x = tn_region_add_arg(g, tn_graph_region(g), tn_type_tensor(g, TN_F32, 0, NULL), "x");
    assert_int_equal(tn_graph_add_output(g, x, "y"), TN_OK);
    assert_int_equal(tn_graph_save(g, path), TN_OK);
    assert_null(tn_model_load(path, TN_OPTIONS(tn_model_options, .max_bytes = 100)));
    assert_int_equal(tn_error_status(), TN_ERR_LIMIT);
    tn_model *model = tn_model_load(path, TN_OPTIONS(tn_model_options, .max_ops = 1));
    assert_non_null(model);
    assert_string_equal(tn_model_input_name(model, 0), "x");
    assert_string_equal(tn_model_output_name(model, 0), "y");
    tn_model_destroy(model);
    tn_graph_destroy(g);
    unlink(path);
}

/* A session that is only looked at shows the plan of one that runs, and refuses to run. */
static void described_sessions_do_not_run(void **state) {
    (void)state;
    tn_graph *g = tn_graph_create();
    tn_tensor *w = tn_tensor_from_f32(2, (const int64_t[]){1, 1}, (const float[]){2});
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("N", 1));
    tn_set_output(g, "y", tn_relu(g, tn_matmul(g, x, tn_variable(g, "w", w))));
    tn_model *model = tn_model_from_graph(g, NULL);
    tn_session *runs = tn_session_create(model, NULL),
               *shown = tn_session_create(model, TN_OPTIONS(tn_session_options, .describe_only = true));
    assert_true(runs && shown);
    tn_session_report a, b;
    assert_int_equal(tn_session_describe(runs, &a), TN_OK);
    assert_int_equal(tn_session_describe(shown, &b), TN_OK);
    assert_int_equal(a.kernels, b.kernels);
    assert_int_equal(a.weight_bytes, b.weight_bytes);
    tn_tensor *in = tn_tensor_from_f32(2, (const int64_t[]){1, 1}, (const float[]){3}), *out = NULL;
    const tn_binding binding = {.name = "x", .tensor = in};
    const tn_output output = {.name = "y", .tensor = &out};
    assert_int_equal(tn_session_run(shown, 1, &binding, 1, &output), TN_ERR_USAGE);
    assert_null(out);
    assert_int_equal(tn_session_run(runs, 1, &binding, 1, &output), TN_OK);
    assert_true(tn_tensor_get_f64(out, 0) == 6);
    tn_tensor_destroy(out);
    tn_tensor_destroy(in);
    tn_tensor_destroy(w);
    tn_session_destroy(shown);
    tn_session_destroy(runs);
    tn_model_destroy(model);
    tn_graph_destroy(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_model_survives),
        cmocka_unit_test(saved_models_run),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(described_sessions_do_not_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
