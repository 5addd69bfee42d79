/* Nodes whose form only a run decides: what they became is kept from run to run, within limits, and never mistaken. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "onnx/late.h"
#include "support/paths.h"

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})
enum { N = 24 };

/* y = exp(reshape(neg(x), z)): how many dimensions y has only z decides. */
static tn_model *reshaping(tn_heap *heap, tn_text *bytes) {
    tn_text g = message();
    put_value(&g, 11, "x", TN_F32, "N");
    put_value(&g, 11, "z", TN_I64, "R");
    put_node(&g, "Neg", "turn", "x", "h");
    put_node(&g, "Reshape", "bend", "h,z", "r");
    put_node(&g, "Abs", "size", "r", "y");
    put_value(&g, 12, "y", TN_F32, NULL);
    return path_model(17, g, heap ? TN_OPTIONS(tn_model_options, .heap = heap) : NULL, bytes);
}

static tn_status reshape_once(tn_session *s, double first, int rank, const int64_t *shape) {
    tn_tensor *x = tn_tensor_create(TN_F32, 1, DIMS(N)), *z = tn_tensor_from_i64(rank, shape), *y = NULL;
    for (int i = 0; x && i < N; i++)
        tn_tensor_set_f64(x, i, first + i);
    const tn_binding in[] = {{.name = "x", .tensor = x}, {.name = "z", .tensor = z}};
    tn_status status = x && z ? tn_session_run(s, 2, in, 1, &(tn_output){.name = "y", .tensor = &y}) : TN_ERR_MEMORY;
    bool right = status != TN_OK || tn_tensor_rank(y) == rank;
    for (int i = 0; right && y && i < rank; i++)
        right = tn_tensor_dims(y)[i] == shape[i];
    for (int i = 0; right && y && i < N; i++)
        right = tn_tensor_get_f64(y, i) == first + i;
    tn_tensor_destroy(x);
    tn_tensor_destroy(y);
    tn_tensor_destroy(z);
    return right ? status : TN_ERR_INTERNAL;
}

static void expect_counts(tn_session *s, const char *what, uint64_t made, uint64_t found) {
    tn_session_report r;
    assert_int_equal(tn_session_describe(s, &r), TN_OK);
    if (r.expansions != made || r.expansions_found != found)
        fail_msg("%s: %d made, %d found; not %d and %d", what, (int)r.expansions, (int)r.expansions_found, (int)made,
                 (int)found);
}

static void test_found_again(void **state) {
    (void)state;
    for (int p = 0; p < RUN_PATHS; p++) {
        tn_text bytes;
        tn_model *model = reshaping(NULL, &bytes);
        tn_session *s = tn_session_create(model, &run_paths[p].options);
        assert_non_null(s);
        uint32_t nodes = 1; /* that are expanded when they run; the last is, too, where its input's rank is not known */
        assert_int_equal(reshape_once(s, 1, 2, DIMS(2, 12)), TN_OK);
        tn_session_report r;
        assert_int_equal(tn_session_describe(s, &r), TN_OK);
        nodes = (uint32_t)r.expansions;
        assert_true(nodes >= 1 && nodes <= 2);
        expect_counts(s, "first", nodes, 0);
        /* other numbers of the same sizes */
        assert_int_equal(reshape_once(s, 5, 2, DIMS(2, 12)), TN_OK);
        expect_counts(s, "again", nodes, nodes);
        /* other contents of the same sizes; other sizes */
        assert_int_equal(reshape_once(s, 1, 2, DIMS(3, 8)), TN_OK);
        expect_counts(s, "other contents", 2 * nodes, nodes);
        assert_int_equal(reshape_once(s, 1, 3, DIMS(2, 3, 4)), TN_OK);
        expect_counts(s, "other rank", 3 * nodes, nodes);
        for (int i = 0; i < 10; i++) {
            assert_int_equal(reshape_once(s, i, 2, DIMS(2, 12)), TN_OK);
            assert_int_equal(reshape_once(s, i, 3, DIMS(2, 3, 4)), TN_OK);
            assert_int_equal(reshape_once(s, i, 2, DIMS(3, 8)), TN_OK);
        }
        expect_counts(s, "in turn", 3 * nodes, 31 * nodes);
        tn_session_destroy(s);
        tn_model_destroy(model);
        tn_text_free(&bytes);
    }
}

/* Sequences: two items of one shape, of another, of one rank, of two ranks. */
static void test_sequences(void **state) {
    (void)state;
    tn_text g = message(), bytes;
    put_value(&g, 11, "x", TN_F32, "N");
    put_value(&g, 11, "z", TN_I64, "R");
    put_value(&g, 11, "w", TN_I64, "Q");
    put_node(&g, "Reshape", "bend", "x,z", "a");
    put_node(&g, "Reshape", "bend2", "x,w", "b");
    put_node(&g, "SequenceConstruct", "both", "a,b", "s");
    put_node(&g, "Identity", "on", "s", "t");
    put_node(&g, "SequenceLength", "count", "t", "n");
    put_node(&g, "Sub", "last", "n,n", "at");
    put_node(&g, "SequenceAt", "take", "t,at", "y");
    put_value(&g, 12, "y", TN_F32, NULL);
    tn_model *model = path_model(17, g, NULL, &bytes);
    static const struct {
        int rank[2];
        int64_t shape[2][3];
    } cases[] = {{{2, 2}, {{2, 12}, {2, 12}}},    {{2, 2}, {{3, 8}, {3, 8}}},     {{2, 2}, {{2, 12}, {3, 8}}},
                 {{2, 2}, {{3, 8}, {2, 12}}},     {{2, 3}, {{2, 12}, {2, 3, 4}}}, {{3, 2}, {{2, 3, 4}, {2, 12}}},
                 {{3, 3}, {{2, 3, 4}, {4, 3, 2}}}};
    for (int p = 0; p < RUN_PATHS; p++) {
        tn_session *s = tn_session_create(model, &run_paths[p].options);
        if (!s)
            fail_msg("%s", tn_error_message());
        for (size_t i = 0; i < 3 * sizeof cases / sizeof *cases; i++) {
            size_t k = i % (sizeof cases / sizeof *cases);
            tn_tensor *x = tn_tensor_create(TN_F32, 1, DIMS(N)),
                      *z = tn_tensor_from_i64(cases[k].rank[0], cases[k].shape[0]),
                      *w = tn_tensor_from_i64(cases[k].rank[1], cases[k].shape[1]), *y = NULL;
            const tn_binding in[] = {
                {.name = "x", .tensor = x}, {.name = "z", .tensor = z}, {.name = "w", .tensor = w}};
            if (tn_session_run(s, 3, in, 1, &(tn_output){.name = "y", .tensor = &y}) != TN_OK)
                fail_msg("%s, case %d: %s", run_paths[p].name, (int)k, tn_error_message());
            assert_int_equal(tn_tensor_rank(y), cases[k].rank[0]);
            for (int d = 0; d < cases[k].rank[0]; d++)
                assert_int_equal(tn_tensor_dims(y)[d], cases[k].shape[0][d]);
            tn_tensor_destroy(x);
            tn_tensor_destroy(y);
            tn_tensor_destroy(z);
            tn_tensor_destroy(w);
        }
        tn_session_destroy(s);
    }
    tn_model_destroy(model);
    tn_text_free(&bytes);
}

/* A shape that the caller changes in place between runs is no part of what is kept. */
static void test_contents_are_copied(void **state) {
    (void)state;
    tn_text bytes;
    tn_model *model = reshaping(NULL, &bytes);
    tn_session *s = tn_session_create(model, NULL);
    int64_t shape[2] = {2, 12};
    tn_tensor *z = tn_tensor_wrap(TN_I64, 1, DIMS(2), shape), *x = tn_tensor_create(TN_F32, 1, DIMS(N));
    for (int i = 0; i < 6; i++) {
        shape[0] = i & 1 ? 3 : 2;
        shape[1] = N / shape[0];
        tn_tensor *y = NULL;
        const tn_binding in[] = {{.name = "x", .tensor = x}, {.name = "z", .tensor = z}};
        assert_int_equal(tn_session_run(s, 2, in, 1, &(tn_output){.name = "y", .tensor = &y}), TN_OK);
        assert_int_equal(tn_tensor_dims(y)[0], shape[0]);
        shape[0] = shape[1] = 7;
        tn_tensor_destroy(y);
    }
    tn_tensor_destroy(x);
    tn_tensor_destroy(z);
    tn_session_destroy(s);
    tn_model_destroy(model);
    tn_text_free(&bytes);
}

/* More forms than a node may keep: the one used longest ago goes; what is kept grows no further. */
static void test_limits(void **state) {
    (void)state;
    static const int64_t shapes[][3] = {{1, 1, 24}, {1, 2, 12}, {1, 3, 8}, {1, 4, 6},
                                        {2, 2, 6},  {2, 3, 4},  {2, 4, 3}, {24, 1, 1}};
    enum { SHAPES = sizeof shapes / sizeof *shapes };
    tn_text bytes;
    tn_model *model = reshaping(NULL, &bytes);
    tn_session *s = tn_session_create(model, NULL);
    tn_session_report r;
    assert_int_equal(reshape_once(s, 1, 3, shapes[0]), TN_OK);
    assert_int_equal(tn_session_describe(s, &r), TN_OK);
    uint32_t nodes = (uint32_t)r.expansions;
    uint64_t one = r.expansion_bytes;
    for (int i = 1; i < TN_LATE_FORMS_OF_NODE; i++)
        assert_int_equal(reshape_once(s, 1, 3, shapes[i]), TN_OK);
    assert_int_equal(reshape_once(s, 1, 3, shapes[0]), TN_OK); /* used now: the second is the oldest */
    expect_counts(s, "full", TN_LATE_FORMS_OF_NODE * nodes, nodes);
    assert_int_equal(reshape_once(s, 1, 3, shapes[TN_LATE_FORMS_OF_NODE]), TN_OK);
    assert_int_equal(reshape_once(s, 1, 3, shapes[0]), TN_OK);
    expect_counts(s, "the newest stay", (TN_LATE_FORMS_OF_NODE + 1) * nodes, 2 * nodes);
    assert_int_equal(reshape_once(s, 1, 3, shapes[1]), TN_OK);
    expect_counts(s, "the oldest went", (TN_LATE_FORMS_OF_NODE + 2) * nodes, 2 * nodes);
    for (int i = 0; i < 300; i++)
        assert_int_equal(reshape_once(s, 1, 3, shapes[i % SHAPES]), TN_OK);
    assert_int_equal(tn_session_describe(s, &r), TN_OK);
    assert_true(r.expansion_bytes > 0 && r.expansion_bytes <= (TN_LATE_FORMS_OF_NODE + 1) * one);
    tn_session_destroy(s);
    tn_model_destroy(model);
    tn_text_free(&bytes);
}

/* The sizes of 70 parts are more than an expansion looks at by itself: it asks for them, and that is kept too. */
static void test_contents_asked_for(void **state) {
    (void)state;
    enum { PARTS = 70 };
    char outputs[PARTS * 8] = "y";
    int64_t sizes[PARTS];
    for (int i = 1; i < PARTS; i++)
        snprintf(outputs + strlen(outputs), 8, ",o%d", i);
    tn_text g = message(), bytes;
    put_value(&g, 11, "x", TN_F32, "N");
    put_value(&g, 11, "z", TN_I64, "R");
    put_node(&g, "Split", "parts", "x,z", outputs);
    put_value(&g, 12, "y", TN_F32, NULL);
    tn_model *model = path_model(17, g, NULL, &bytes);
    tn_session *s = tn_session_create(model, NULL);
    if (!s)
        fail_msg("%s", tn_error_message());
    for (int k = 0; k < 6; k++) {
        int64_t count = 0;
        for (int i = 0; i < PARTS; i++)
            count += sizes[i] = i == 0 ? 1 + k % 2 : 1;
        tn_tensor *x = tn_tensor_create(TN_F32, 1, &count), *z = tn_tensor_from_i64(PARTS, sizes), *y = NULL;
        const tn_binding in[] = {{.name = "x", .tensor = x}, {.name = "z", .tensor = z}};
        if (tn_session_run(s, 2, in, 1, &(tn_output){.name = "y", .tensor = &y}) != TN_OK)
            fail_msg("%s", tn_error_message());
        assert_int_equal(tn_tensor_dims(y)[0], 1 + k % 2);
        tn_tensor_destroy(x);
        tn_tensor_destroy(y);
        tn_tensor_destroy(z);
    }
    tn_session_report r;
    assert_int_equal(tn_session_describe(s, &r), TN_OK);
    print_message("70 parts: %d made, %d found\n", (int)r.expansions, (int)r.expansions_found);
    assert_true(r.expansions <= 4 && r.expansions_found >= 4);
    tn_session_destroy(s);
    tn_model_destroy(model);
    tn_text_free(&bytes);
}

/* --- threads, memory ----------------------------------------------------------------------------------------------------------------- */

static void *run_many(void *session) {
    static const int64_t shapes[][2] = {{1, 24}, {2, 12}, {3, 8}, {4, 6}, {6, 4}, {8, 3}};
    for (int i = 0; i < 200; i++)
        if (reshape_once(session, i, 2, shapes[i * 7 % 6]) != TN_OK)
            return (void *)1;
    return NULL;
}

static void test_threads(void **state) {
    (void)state;
    tn_text bytes;
    tn_model *model = reshaping(NULL, &bytes);
    tn_session *s[2] = {tn_session_create(model, TN_OPTIONS(tn_session_options, .threads = 1)),
                        tn_session_create(model, TN_OPTIONS(tn_session_options, .threads = 1))};
    pthread_t thread[4];
    void *wrong[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, run_many, s[i % 2]), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(thread[i], &wrong[i]);
        assert_null(wrong[i]);
    }
    tn_session_destroy(s[0]);
    tn_session_destroy(s[1]);
    tn_model_destroy(model);
    tn_text_free(&bytes);
}

static void test_out_of_memory(void **state) {
    (void)state;
    tn_heap *heap = tn_heap_create(NULL);
    tn_text bytes;
    tn_model *model = reshaping(heap, &bytes);
    tn_session *s = tn_session_create(model, TN_OPTIONS(tn_session_options, .threads = 1));
    assert_non_null(s);
    for (uint64_t k = 1;; k++) {
        /* another shape each time, so that something is made */
        const int64_t shape[3] = {k & 1 ? 2 : 3, k & 1 ? 12 : 8, 1};
        tn_heap_fail_at(heap, k, false);
        tn_status status = reshape_once(s, 1, k & 2 ? 2 : 3, shape);
        tn_heap_fail_at(heap, 0, false);
        if (status == TN_OK && k > 400)
            break;
        if (status != TN_OK && status != TN_ERR_MEMORY)
            fail_msg("allocation %d: %s", (int)k, tn_error_message());
        assert_true(k < 5000);
    }
    tn_session_destroy(s);
    tn_model_destroy(model);
    tn_text_free(&bytes);
    assert_int_equal(tn_heap_in_use(heap), 0);
    tn_heap_destroy(heap);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_found_again),         cmocka_unit_test(test_sequences),
                                       cmocka_unit_test(test_contents_are_copied), cmocka_unit_test(test_limits),
                                       cmocka_unit_test(test_contents_asked_for),  cmocka_unit_test(test_threads),
                                       cmocka_unit_test(test_out_of_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
