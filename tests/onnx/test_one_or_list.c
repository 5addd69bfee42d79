/* Scales and zero points that are one number or a list: of a size that only a run knows, and that is not the list's unless it is 1. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <tenon/model.h>

#include "support/paths.h"

enum { MOST = 9 };

/* A node; inputs by element type and shape. That at `list` is taken from the front of a longer one: at most one element of it. */
typedef struct row {
    const char *op;
    int list;
    struct {
        tn_dtype dtype;
        int rank;
        int64_t dims[4];
    } in[MOST];
} row;

#define U8(...)                                        \
    {                                                  \
        TN_U8, sizeof((int64_t[]){__VA_ARGS__}) / 8, { \
            __VA_ARGS__                                \
        }                                              \
    }
#define I8(...)                                        \
    {                                                  \
        TN_I8, sizeof((int64_t[]){__VA_ARGS__}) / 8, { \
            __VA_ARGS__                                \
        }                                              \
    }
#define F32(...)                                        \
    {                                                   \
        TN_F32, sizeof((int64_t[]){__VA_ARGS__}) / 8, { \
            __VA_ARGS__                                 \
        }                                               \
    }
#define ONE_U8      \
    {               \
        TN_U8, 0, { \
            0       \
        }           \
    }
#define ONE_F32      \
    {                \
        TN_F32, 0, { \
            0        \
        }            \
    }
static const row rows[] = {
    {"MatMulInteger", 2, {U8(2, 3), I8(3, 2), U8(1)}},
    {"MatMulInteger", 3, {U8(2, 3), U8(3, 2), ONE_U8, U8(1)}},
    {"QLinearMatMul", 1, {U8(2, 3), F32(1), ONE_U8, U8(3, 2), ONE_F32, ONE_U8, ONE_F32, ONE_U8}},
    {"QLinearMatMul", 5, {U8(2, 3), ONE_F32, ONE_U8, U8(3, 2), ONE_F32, U8(1), ONE_F32, ONE_U8}},
    {"ConvInteger", 3, {U8(1, 2, 4, 4), U8(3, 2, 2, 2), ONE_U8, U8(1)}},
    {"QLinearConv", 4, {U8(1, 2, 4, 4), ONE_F32, ONE_U8, U8(3, 2, 2, 2), F32(1), ONE_U8, ONE_F32, ONE_U8}},
    {"QuantizeLinear", 1, {F32(2, 3), F32(1)}},
    {"DequantizeLinear", 1, {U8(2, 3), F32(1)}},
};

static tn_tensor *filled(tn_dtype dtype, int rank, const int64_t *dims) {
    tn_tensor *t = tn_tensor_create(dtype, rank, dims);
    assert_non_null(t);
    for (int64_t i = 0; i < tn_tensor_count(t); i++)
        tn_tensor_set_f64(t, i, dtype == TN_F32 ? 0.5 + (double)i : (double)(i * 7 % 11 + 1));
    return t;
}

/* The node on a path; `length` elements where the list is taken from, 0 and more, -1: it is fed as it is. */
static tn_status run(const row *r, int path, int64_t length, tn_object **y) {
    tn_text g = message();
    tn_binding feed[MOST];
    uint32_t n = 0;
    char inputs[64] = "";
    for (; n < MOST && r->in[n].dtype; n++) {
        static const char *const names[MOST] = {"a", "b", "c", "d", "e", "f", "g", "h", "i"};
        char shape[64] = "";
        bool cut = (int)n == r->list && length >= 0;
        for (int k = 0; k < r->in[n].rank; k++)
            snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%s%d", k ? "," : "", (int)r->in[n].dims[k]);
        put_value(&g, 11, names[n], (int)r->in[n].dtype, cut ? "N" : shape);
        feed[n] = (tn_binding){.name = names[n],
                               .tensor = filled(r->in[n].dtype, r->in[n].rank, cut ? &length : r->in[n].dims)};
        snprintf(inputs + strlen(inputs), sizeof inputs - strlen(inputs), "%s%s", n ? "," : "", cut ? "cut" : names[n]);
        if (cut) {
            for (int64_t at = 0; at < 2; at++) {
                tn_tensor *place = tn_tensor_create(TN_I64, 1, (const int64_t[]){1});
                tn_text bytes = message();
                assert_non_null(place);
                *(int64_t *)tn_tensor_data(place) = at;
                assert_int_equal(tn_onnx_write_tensor(&bytes, place, at ? "to" : "from"), TN_OK);
                put_message(&g, 5, bytes);
                tn_tensor_destroy(place);
            }
            char from[64];
            snprintf(from, sizeof from, "%s,from,to", names[n]);
            put_node(&g, "Slice", "cut", from, "cut");
        }
    }
    put_node(&g, r->op, "node", inputs, "y");
    put_value(&g, 12, "y", 0, NULL);
    tn_text bytes = model_bytes(17, g);
    tn_model *model = tn_model_load_memory(bytes.data, bytes.len, NULL);
    tn_session *s = model ? tn_session_create(model, &run_paths[path].options) : NULL;
    tn_status status = s ? tn_session_run(s, n, feed, 1, &(tn_output){.name = "y", .object = y}) : tn_error_status();
    for (uint32_t i = 0; i < n; i++)
        tn_tensor_destroy(feed[i].tensor);
    tn_session_destroy(s);
    tn_model_destroy(model);
    tn_text_free(&bytes);
    return status;
}

static void test_one_or_list(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int path = 0; path < RUN_PATHS; path++) {
            tn_object *want = NULL, *got = NULL;
            if (run(&rows[i], path, -1, &want) != TN_OK || run(&rows[i], path, 5, &got) != TN_OK)
                fail_msg("%s, input %d, %s: %s", rows[i].op, rows[i].list, run_paths[path].name, tn_error_message());
            tn_tensor *a = tn_object_tensor(want), *b = tn_object_tensor(got);
            assert_int_equal(tn_tensor_count(a), tn_tensor_count(b));
            assert_true(tn_tensor_count(a) > 1);
            assert_memory_equal(tn_tensor_data(a), tn_tensor_data(b), tn_tensor_bytes(a));
            tn_object_destroy(want);
            tn_object_destroy(got);
            got = NULL;
            if (run(&rows[i], path, 0, &got) == TN_OK)
                fail_msg("%s, input %d, %s: a list of none is taken", rows[i].op, rows[i].list, run_paths[path].name);
            assert_null(got);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_or_list)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
