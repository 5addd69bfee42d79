/* Hostile models: the shared cases are refused as they say, quickly and in little memory; small models cut at every byte and with
   every bit flipped end in an answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/os.h"
#include "onnx/tensor_file.h"
#include "support/onnx_try.h"

#define CASES TENON_SHARED_DIR "/cases"
enum { MAX_BYTES = 64 << 20 };

/* Loads, expands and runs all data sets of a case folder; the first error, or TN_OK. */
static tn_status run_set(tn_heap *heap, tn_graph *g, const char *folder) {
    uint32_t n = tn_graph_input_count(g), m = tn_graph_output_count(g), fed = 0;
    tn_value in_values[TRY_INPUTS], out_values[TRY_INPUTS];
    tn_object *in[TRY_INPUTS], *out[TRY_INPUTS] = {NULL};
    tn_status status =
        n <= TRY_INPUTS && m <= TRY_INPUTS ? TN_OK : tn_fail(TN_ERR_LIMIT, "too many inputs for this test");
    for (uint32_t i = 0; i < n && status == TN_OK; i++) {
        char path[1024];
        snprintf(path, sizeof path, "%s/test_data_set_0/input_%u.pb", folder, i);
        if (tn_path_kind_of(path) != TN_PATH_FILE)
            continue;
        in_values[fed] = tn_graph_input(g, i);
        in[fed] = tn_onnx_read_object_file(heap, path, tn_type_kind(g, tn_value_type(g, in_values[fed])));
        if (in[fed])
            fed++;
        else
            status = tn_error_status();
    }
    if (status == TN_OK)
        status = tn_onnx_use_defaults(g, fed, in_values);
    if (status == TN_OK)
        status = tn_onnx_expand(g, 0);
    for (uint32_t i = 0; i < m && status == TN_OK; i++)
        out_values[i] = tn_graph_output(g, i);
    tn_interp_options o = {.heap = heap, .max_bytes = MAX_BYTES};
    if (status == TN_OK)
        status = tn_interp_run(g, &o, fed, in_values, in, m, out_values, out);
    for (uint32_t i = 0; i < m && i < TRY_INPUTS; i++)
        tn_object_destroy(out[i]);
    for (uint32_t i = 0; i < fed; i++)
        tn_object_destroy(in[i]);
    return status;
}

/* The quoted words of "error_mentions" that the message lacks, or NULL. */
static const char *lacks(const char *json, const char *text) {
    static char word[200];
    const char *p = strstr(json, "\"error_mentions\"");
    p = p ? strchr(p, '[') : NULL;
    const char *end = p ? strchr(p, ']') : NULL;
    while (p && (p = strchr(p, '"')) != NULL && p < end) {
        size_t n = strcspn(++p, "\"");
        snprintf(word, sizeof word, "%.*s", (int)n, p);
        if (!strstr(text, word))
            return word;
        p += n + 1;
    }
    return NULL;
}

static bool expects_error(const char *name) {
    return name[0] == 'X' || strncmp(name, "E6-operator-set-too-new", 23) == 0 || strncmp(name, "E3-", 3) == 0 ||
           strncmp(name, "E9-", 3) == 0;
}

static void test_cases(void **state) {
    (void)state;
    char **names;
    size_t count, tried = 0;
    if (tn_folder_list(NULL, CASES, &names, &count) != TN_OK) {
        print_message("skipped: no shared cases in %s\n", CASES);
        skip();
    }
    for (size_t i = 0; i < count; i++) {
        char path[1024], json_path[1024], folder[900];
        size_t size;
        snprintf(folder, sizeof folder, "%s/%s", CASES, names[i]);
        snprintf(path, sizeof path, "%s/model.onnx", folder);
        snprintf(json_path, sizeof json_path, "%s/case.json", folder);
        if (!expects_error(names[i]) || tn_path_kind_of(path) != TN_PATH_FILE) {
            tn_free(NULL, names[i]);
            continue;
        }
        tn_heap *heap = tn_heap_create(NULL);
        tn_onnx_options o = {.heap = heap};
        double begin = tn_clock();
        tn_error_clear();
        tn_graph *g = tn_onnx_load_file(path, &o);
        tn_status status = g ? run_set(heap, g, folder) : tn_error_status();
        double seconds = tn_clock() - begin;
        if (status == TN_OK || status == TN_ERR_INTERNAL)
            fail_msg("%s: %s", names[i], status == TN_OK ? "no error" : tn_error_message());
        if (tn_error_status() != status || !*tn_error_what())
            fail_msg("%s: an error without a message", names[i]);
        char *json = tn_file_read(NULL, json_path, &size);
        assert_non_null(json);
        const char *word = lacks(json, tn_error_message());
        if (word)
            fail_msg("%s: %s\ndoes not mention %s", names[i], tn_error_message(), word);
        tn_free(NULL, json);
        if (seconds > 1.0)
            fail_msg("%s: took %d ms", names[i], (int)(seconds * 1e3));
        if (tn_heap_peak(heap) > MAX_BYTES)
            fail_msg("%s: took %zu bytes", names[i], tn_heap_peak(heap));
        tn_graph_destroy(g);
        if (tn_heap_in_use(heap))
            fail_msg("%s: %zu bytes leaked", names[i], tn_heap_in_use(heap));
        tn_heap_destroy(heap);
        tn_free(NULL, names[i]);
        tried++;
    }
    tn_free(NULL, names);
    print_message("%zu hostile models refused\n", tried);
    assert_true(tried >= 90);
}

/* Any answer but a crash, a hang, a leak, or an internal error. */
static void attempt(const char *what, const uint8_t *bytes, size_t size, size_t at) {
    double begin = tn_clock();
    uint8_t *copy = malloc(size ? size : 1); /* of exactly this size: a sanitizer sees a byte too far */
    assert_non_null(copy);
    memcpy(copy, bytes, size);
    tn_status status = try_model(copy, size, MAX_BYTES);
    free(copy);
    if (status == TN_ERR_INTERNAL)
        fail_msg("%s, damaged at %zu: %s", what, at, tn_error_message());
    if (tn_clock() - begin > 5.0)
        fail_msg("%s, damaged at %zu: %d s", what, at, (int)(tn_clock() - begin));
}

static const char *const small_models[] = {
    "cases/L8-subgraph-initializers",
    "cases/E6-relu-opset1",
    "cases/X1-value-made-twice",
    "cases/X1-function-calls-itself",
    "cases/E2-reshape-heads-batch-zero",
    "cases/X6-sparse-index-outside",
    "models/data-types",
    "models/local-function-variadic",
    "worked-examples/W12-growing-loop-value",
    "models/sparse-initializer",
};

static size_t for_small_models(void (*each)(const char *name, const uint8_t *bytes, size_t size)) {
    size_t count = 0;
    for (size_t i = 0; i < sizeof small_models / sizeof *small_models; i++) {
        char path[1024];
        size_t size;
        snprintf(path, sizeof path, "%s/%s/model.onnx", TENON_SHARED_DIR, small_models[i]);
        char *bytes = tn_path_kind_of(path) == TN_PATH_FILE ? tn_file_read(NULL, path, &size) : NULL;
        if (!bytes)
            continue;
        each(small_models[i], (const uint8_t *)bytes, size);
        tn_free(NULL, bytes);
        count++;
    }
    if (!count)
        print_message("skipped: no shared models in %s\n", TENON_SHARED_DIR);
    return count;
}

static void cut_everywhere(const char *name, const uint8_t *bytes, size_t size) {
    for (size_t n = 0; n <= size; n++)
        attempt(name, bytes, n, n);
}

static void flip_every_bit(const char *name, const uint8_t *bytes, size_t size) {
    uint8_t *copy = malloc(size);
    assert_non_null(copy);
    memcpy(copy, bytes, size);
    for (size_t bit = 0; bit < size * 8; bit++) {
        copy[bit / 8] ^= (uint8_t)(1u << (bit % 8));
        attempt(name, copy, size, bit);
        copy[bit / 8] ^= (uint8_t)(1u << (bit % 8));
    }
    free(copy);
}

static void test_cut(void **state) {
    (void)state;
    if (!for_small_models(cut_everywhere))
        skip();
}

static void test_flipped(void **state) {
    (void)state;
    if (!for_small_models(flip_every_bit))
        skip();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases), cmocka_unit_test(test_cut),
                                       cmocka_unit_test(test_flipped)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
