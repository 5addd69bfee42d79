/* What a node reads only to throw it away is checked all the same: passes know that the result does not depend on it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/one_node.h"
#include "support/paths.h"

/* TensorScatter of a cache [1, 4] and an update [1, 2], which is written at `at`; all but the cache are constants. */
static tn_model *scatter(const char *mode, int64_t at) {
    static const int64_t list[] = {1}, row[] = {1, 2};
    tn_tensor *update = tn_tensor_create(TN_F32, 2, row), *where = tn_tensor_create(TN_I64, 1, list);
    tn_text g = message(), attrs = message();
    ((float *)tn_tensor_data(update))[0] = 5;
    ((float *)tn_tensor_data(update))[1] = 6;
    *(int64_t *)tn_tensor_data(where) = at;
    attr_text(&attrs, "mode", mode);
    attr_int(&attrs, "axis", 1);
    put_value(&g, 11, "cache", TN_F32, "1,4");
    put_value(&g, 12, "y", 0, NULL);
    const tn_tensor *constants[] = {update, where};
    static const char *const names[] = {"update", "where"};
    for (int i = 0; i < 2; i++) {
        tn_text bytes = message();
        assert_int_equal(tn_onnx_write_tensor(&bytes, constants[i], names[i]), TN_OK);
        put_message(&g, 5, bytes);
    }
    put_message(&g, 1, node_bytes("TensorScatter", "node", "cache,update,where", "y", attrs));
    tn_text bytes = model_bytes(24, g);
    tn_model *model = tn_model_load_memory(bytes.data, bytes.len, NULL);
    if (!model)
        fail_msg("%s", tn_error_message());
    tn_text_free(&bytes);
    tn_tensor_destroy(update);
    tn_tensor_destroy(where);
    return model;
}

static void test_tensor_scatter(void **state) {
    (void)state;
    static const struct {
        const char *mode;
        int64_t at;
        float wanted[4]; /* 0 first: refused */
    } cases[] = {
        {"linear", 0, {5, 6, 3, 4}},
        {"linear", 2, {1, 2, 5, 6}},
        {"circular", 3, {6, 2, 3, 5}},
        {"linear", 3, {0}},
        {"linear", 4, {0}},
        {"linear", (int64_t)1 << 40, {0}},
        {"linear", -1, {0}},
        {"linear", -2, {0}},
        {"linear", INT64_MAX, {0}},
        {"linear", INT64_MIN, {0}},
        {"linear", INT64_MAX - 2, {0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tn_model *model = scatter(cases[i].mode, cases[i].at);
        static const int64_t dims[] = {1, 4};
        tn_tensor *cache = tn_tensor_create(TN_F32, 2, dims);
        for (int k = 0; k < 4; k++)
            ((float *)tn_tensor_data(cache))[k] = (float)k + 1;
        for (int p = 0; p < RUN_PATHS; p++) {
            tn_object *y = NULL;
            const tn_binding in = {.name = "cache", .tensor = cache};
            const tn_output out = {.name = "y", .object = &y};
            tn_session *s = tn_session_create(model, &run_paths[p].options);
            bool good = s && tn_session_run(s, 1, &in, 1, &out) == TN_OK;
            if (good != (cases[i].wanted[0] != 0))
                fail_msg("%s at %lld, %s: %s", cases[i].mode, (long long)cases[i].at, run_paths[p].name,
                         good ? "is not refused" : tn_error_message());
            if (good)
                assert_memory_equal(tn_tensor_data(tn_object_tensor(y)), cases[i].wanted, 4 * sizeof(float));
            tn_object_destroy(y);
            tn_session_destroy(s);
        }
        tn_tensor_destroy(cache);
        tn_model_destroy(model);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tensor_scatter)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
