/* Memory that runs out anywhere, and memory that comes back: every allocation of building, loading, compiling and running fails in
   turn; graphs of all sizes leave nothing behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <tenon/tenon.h>

#include "support/model_runs.h"

static const tn_backend backends[] = {TN_BACKEND_REFERENCE, TN_BACKEND_CPU};

static uint64_t fed; /* allocations of inputs, which come from the default heap */

/* What one attempt does on its heap: TN_OK, or the status of the first failure; leaves nothing behind. */
typedef tn_status attempt(tn_heap *heap, const void *what);

/* What the runs of a first, undisturbed attempt gave. */
static run_outputs expected[2];

static void forget(void) {
    run_outputs_free(&expected[0]);
    run_outputs_free(&expected[1]);
}

static tn_status use_model(tn_heap *heap, tn_model *model, uint64_t *in_use) {
    tn_status status = model ? TN_OK : tn_error_status();
    for (size_t b = 0; b < 2 && status == TN_OK; b++) {
        run_inputs in = {0};
        run_outputs out = {0};
        uint64_t start = tn_heap_allocations(NULL);
        assert_true(run_inputs_fill(model, 3, 2, NULL, &in));
        fed += tn_heap_allocations(NULL) - start;
        status = run_model(model, TN_OPTIONS(tn_session_options, .backend = backends[b], .threads = 1), &in, &out);
        if (status == TN_OK && !expected[b].count) {
            expected[b] = out;
            out.count = 0;
        } else if (status == TN_OK)
            assert_true(run_outputs_equal("undisturbed and now", &expected[b], &out));
        run_outputs_free(&out);
        run_inputs_free(&in);
    }
    *in_use = tn_heap_in_use(heap);
    tn_model_destroy(model);
    return status;
}

static tn_status build_and_run(tn_heap *heap, const void *what) {
    const char *name;
    uint64_t in_use;
    tn_graph *g = small_graph(heap, *(const uint32_t *)what, &name);
    if (!g)
        return tn_error_status();
    tn_status status = tn_graph_check(g);
    if (status == TN_OK)
        status = use_model(heap, tn_model_from_graph(g, TN_OPTIONS(tn_model_options, .heap = heap)), &in_use);
    tn_graph_destroy(g);
    return status;
}

/* The text form, read back and copied, is the text form. */
static tn_status print_and_parse(tn_heap *heap, const void *what) {
    const char *name;
    tn_graph *g = small_graph(heap, *(const uint32_t *)what, &name);
    if (!g)
        return tn_error_status();
    tn_status status = tn_graph_check(g);
    char *text = status == TN_OK ? tn_graph_print(g) : NULL;
    tn_graph *again = text ? tn_graph_parse(heap, text, strlen(text)) : NULL;
    tn_graph *copy = again ? tn_graph_clone(again, NULL, NULL) : NULL;
    if (status == TN_OK && !copy)
        status = tn_error_status();
    char *third = copy && (status = tn_graph_verify(copy)) == TN_OK ? tn_graph_print(copy) : NULL;
    if (third)
        assert_string_equal(third, text);
    else if (status == TN_OK)
        status = tn_error_status();
    if (copy)
        tn_graph_free_text(copy, third);
    tn_graph_destroy(copy);
    tn_graph_destroy(again);
    tn_graph_free_text(g, text);
    tn_graph_destroy(g);
    return status;
}

static tn_status load_and_run(tn_heap *heap, const void *what) {
    uint64_t in_use;
    return use_model(heap, tn_model_load(what, TN_OPTIONS(tn_model_options, .heap = heap)), &in_use);
}

/* Runs `f` with the n-th allocation failing, for n in steps of `step`; alone, and with all after it. The status is TN_ERR_MEMORY, but
   for a few: a proof about dimensions that runs out of memory proves nothing, which leaves the graph right. */
static void fail_everywhere(const char *name, attempt *f, const void *what, uint64_t step) {
    forget(); /* of a test that failed */
    tn_heap *heap = tn_heap_create(NULL), *outputs = tn_heap_create(NULL);
    assert_int_equal(f(outputs, what), TN_OK);
    size_t before = 0;
    uint64_t start = tn_heap_allocations(heap), foreign = tn_heap_allocations(NULL);
    fed = 0;
    assert_int_equal(f(heap, what), TN_OK);
    uint64_t count = tn_heap_allocations(heap) - start, survived = 0;
    foreign = tn_heap_allocations(NULL) - foreign - fed;
    assert_int_equal(tn_heap_in_use(heap), before);
    for (int after = 0; after < 2; after++)
        for (uint64_t n = 1; n <= count; n += step) {
            tn_error_clear();
            tn_heap_fail_at(heap, n, after);
            tn_status status = f(heap, what);
            tn_heap_fail_at(heap, 0, false);
            if (status == TN_OK && tn_error_status() == TN_OK)
                break; /* this time there were fewer: hashes are seeded */
            survived += status == TN_OK;
            if ((status == TN_OK && after) ||
                (status != TN_OK && (status != TN_ERR_MEMORY || tn_error_status() != TN_ERR_MEMORY)))
                fail_msg("%s: allocation %llu of %llu failed%s: status %s, error: %s", name, (unsigned long long)n,
                         (unsigned long long)count, after ? ", and all after it" : "", tn_status_name(status),
                         tn_error_message());
            if (tn_heap_in_use(heap) != before)
                fail_msg("%s: allocation %llu of %llu failed: %zu bytes leaked", name, (unsigned long long)n,
                         (unsigned long long)count, tn_heap_in_use(heap) - before);
        }
    assert_int_equal(f(heap, what), TN_OK);
    printf("%s: %llu allocations, every %lluth failed twice, survived %llu times; %llu others came from the default "
           "heap\n",
           name, (unsigned long long)count, (unsigned long long)step, (unsigned long long)survived,
           (unsigned long long)foreign);
    assert_in_range(survived, 0, count / step / 4 + 1);
    assert_int_equal(tn_heap_in_use(heap), 0);
    forget();
    tn_heap_destroy(heap);
    tn_heap_destroy(outputs);
}

static void test_building(void **s) {
    (void)s;
    const char *name;
    for (uint32_t i = 0;; i++) {
        tn_graph *g = small_graph(NULL, i, &name);
        if (!g)
            break;
        tn_graph_destroy(g);
        fail_everywhere(name, build_and_run, &i, run_full() ? 1 : 7);
        fail_everywhere(name, print_and_parse, &i, run_full() ? 1 : 5);
    }
}

static void test_loading(void **s) {
    (void)s;
    static const char *const models[] = {"models/nested-if-loop-scan",
                                         "models/local-function-variadic",
                                         "models/external-data-two-files",
                                         "models/sparse-initializer",
                                         "models/qtdnn",
                                         "cases/D2-sizes-read-from-data",
                                         "models/mnist-cnn",
                                         "models/sklearn-voting"};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        char path[4096], file[256];
        snprintf(file, sizeof file, "%s/model.onnx", models[i]);
        if (!shared_path(file, path, sizeof path))
            continue;
        tn_model *model = tn_model_load(path, NULL);
        tn_session *session = tn_session_create(model, NULL);
        if (session)
            fail_everywhere(models[i], load_and_run, path, run_full() ? 1 : 23);
        else
            printf("%s does not load: %s\n", models[i], tn_error_what());
        tn_session_destroy(session);
        tn_model_destroy(model);
    }
}

/* A heap's limit is met the same way, with the status of a limit. */
static void test_limits(void **s) {
    (void)s;
    forget();
    tn_heap *heap = tn_heap_create(NULL);
    uint32_t which = 1;
    assert_int_equal(build_and_run(heap, &which), TN_OK);
    size_t peak = tn_heap_peak(heap), kept = tn_heap_in_use(heap);
    for (size_t limit = kept + 1; limit < peak - peak / 10; limit += 1 + (peak - kept) / 200) {
        tn_heap_set_limit(heap, limit);
        assert_int_equal(build_and_run(heap, &which), TN_ERR_LIMIT);
        assert_int_equal(tn_heap_in_use(heap), kept);
    }
    tn_heap_set_limit(heap, 2 * peak);
    assert_int_equal(build_and_run(heap, &which), TN_OK);
    forget();
    tn_heap_destroy(heap);
}

/* Graphs of 0 to 1000 nodes: built, run by both back ends, destroyed. */
static void test_sizes(void **s) {
    (void)s;
    forget();
    tn_heap *heap = tn_heap_create(NULL);
    for (uint32_t size = 0; size <= 1000; size += run_full() || size < 4 ? 1 : 83) {
        tn_graph *g = tn_graph_create_in(heap);
        tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("N")), y = x, before = x;
        for (uint32_t i = 0; i < size; i++) {
            tn_value next = i % 7 == 3 ? tn_reduce_sum(g, tn_mul(g, y, before), TN_ALL_AXES, true)
                            : i % 2    ? tn_sin(g, y)
                                       : tn_add(g, y, before);
            before = y;
            y = next;
        }
        tn_set_output(g, "y", y);
        assert_int_equal(tn_graph_check(g), TN_OK);
        uint64_t in_use;
        if (use_model(heap, tn_model_from_graph(g, TN_OPTIONS(tn_model_options, .heap = heap)), &in_use) != TN_OK)
            fail_msg("%u nodes: %s", size, tn_error_message());
        tn_graph_destroy(g);
        forget();
        assert_int_equal(tn_heap_in_use(heap), 0);
    }
    tn_heap_destroy(heap);
}

/* Loading, running and unloading many times: the default heap is where it was. */
static void test_rounds(void **s) {
    (void)s;
    forget();
    size_t before = tn_heap_in_use(NULL);
    uint64_t in_use = 0;
    for (int round = 0; round < 200; round++) {
        tn_model *model = tn_model_load(TENON_SOURCE_DIR "/examples/data/mnist-cnn.onnx", NULL);
        assert_int_equal(round % 20 ? TN_OK : use_model(NULL, model, &in_use), TN_OK);
        if (round % 20)
            tn_model_destroy(model);
        else
            forget();
        assert_int_equal(tn_heap_in_use(NULL), before);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_building), cmocka_unit_test(test_loading),
                                       cmocka_unit_test(test_limits), cmocka_unit_test(test_sizes),
                                       cmocka_unit_test(test_rounds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
