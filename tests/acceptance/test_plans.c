/* The plans of the shared models: ten of them as recorded in plans.txt (kernels, host calls, bytes moved, packed bytes), so that a lost
   fusion or a copy more is seen; and every arena as small as what lives at once. TENON_UPDATE=1 writes the record anew. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <tenon/tenon.h>

#include "base/os.h"
#include "lower/cost.h"
#include "runtime/model.h"
#include "support/model_runs.h"

/* Binds the dims of input `v` to the sizes of what the model's first data set feeds to it; without that, to 1. */
static void bind(const tn_graph *g, tn_dim_env *env, tn_value v, const run_inputs *in) {
    const tn_tensor *t = NULL;
    for (uint32_t i = 0; i < in->count && !t; i++)
        if (!strcmp(in->binding[i].name, tn_value_name(g, v)))
            t = in->binding[i].tensor ? in->binding[i].tensor : tn_object_tensor(in->binding[i].object);
    for (int d = 0; d < tn_value_rank(g, v); d++)
        tn_dim_env_match(&g->dims, env, tn_value_dim(g, v, d), t && d < tn_tensor_rank(t) ? tn_tensor_dims(t)[d] : 1);
}

/* The plan of a model at the generic level, so that the record is that of every machine; free dimensions are 1, or as `fed`. False:
   there is no such model, or it does not load. */
static bool cost_of(const char *name, bool fed, tn_plan_cost *cost, size_t *packed) {
    char within[512], path[4096], folder[4096];
    snprintf(within, sizeof within, "models/%s/model.onnx", name);
    shared_path(within, path, sizeof path);
    tn_model *m = tn_path_kind_of(path) == TN_PATH_FILE ? tn_model_load(path, NULL) : NULL;
    if (!m)
        return false;
    const tn_compile_key key = {.backend = TN_BACKEND_CPU,
                                .level = 2,
                                .isa = TN_ISA_GENERIC,
                                .disable = "",
                                .passes = "",
                                .dump = "",
                                .dims = ""};
    tn_compiled *c = tn_model_compile(m, &key);
    if (c) {
        const tn_graph *g = c->plan->graph;
        tn_dim_env env;
        assert_true(tn_dim_env_init(&env, NULL, &g->dims));
        run_inputs in = {0};
        snprintf(within, sizeof within, "models/%s", name);
        if (fed)
            run_inputs_read(m, shared_path(within, folder, sizeof folder), 0, &in);
        for (uint32_t i = 0; i < tn_graph_input_count(g); i++)
            bind(g, &env, tn_graph_input(g, i), &in);
        run_inputs_free(&in);
        assert_int_equal(tn_plan_cost_of(c->plan, &env, cost), TN_OK);
        *packed = c->plan->packed_bytes;
        tn_dim_env_free(&env);
        tn_model_release(m, c);
    }
    tn_model_destroy(m);
    return c != NULL;
}

static const char *const recorded[] = {"fastestdet",         "gpt2-tiny-past", "kws-fp32",     "layout-picodet",
                                       "lstm-bidirectional", "mnist-pytorch",  "ocr-rec-ppv4", "silero-vad-ifless",
                                       "super-resolution",   "yolox-s-det"};

static void test_record(void **state) {
    (void)state;
    char file[4096], text[8192];
    size_t used = 0;
    snprintf(file, sizeof file, "%s/tests/acceptance/plans.txt", TENON_SOURCE_DIR);
    used +=
        (size_t)snprintf(text, sizeof text, "# model: kernels, host calls, operations, bytes moved, packed bytes\n");
    for (size_t i = 0; i < sizeof recorded / sizeof *recorded; i++) {
        tn_plan_cost c;
        size_t packed;
        if (!cost_of(recorded[i], false, &c, &packed)) {
            print_message("skipped: no model %s\n", recorded[i]);
            return;
        }
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "%s: %u, %u, %.0f, %.0f, %zu%s\n", recorded[i], c.calls,
                             c.host_calls, c.operations, c.bytes, packed, c.unknown ? ", more by data" : "");
    }
    const char *update = getenv("TENON_UPDATE");
    if (update && *update) {
        assert_int_equal(tn_file_write(file, text, used), TN_OK);
        return;
    }
    size_t size = 0;
    char *want = tn_file_read(NULL, file, &size);
    assert_non_null(want);
    if (strcmp(want, text) != 0)
        fail_msg("plans are not as recorded (TENON_UPDATE=1 records them). Recorded:\n%sNow:\n%s", want, text);
    tn_free(NULL, want);
}

static void test_arenas(void **state) {
    (void)state;
    char folder[4096], **name;
    size_t count = 0, seen = 0, arenas = 0;
    shared_path("models", folder, sizeof folder);
    if (tn_path_kind_of(folder) != TN_PATH_FOLDER) {
        print_message("skipped: no %s\n", folder);
        return;
    }
    assert_int_equal(tn_folder_list(NULL, folder, &name, &count), TN_OK);
    for (size_t i = 0; i < count; i++) {
        tn_plan_cost c;
        size_t packed;
        if (cost_of(name[i], true, &c, &packed)) {
            seen++;
            arenas += c.arena_bytes > 0;
            if ((double)c.arena_bytes > 1.01 * (double)c.live_bytes)
                fail_msg("%s: the arena has %" PRIu64 " bytes, %" PRIu64 " live at once", name[i], c.arena_bytes,
                         c.live_bytes);
        }
        tn_free(NULL, name[i]);
    }
    tn_free(NULL, name);
    assert_in_range(seen, 45, 1000);
    assert_true(arenas > seen / 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_record), cmocka_unit_test(test_arenas)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
