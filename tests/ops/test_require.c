/* require: a value that goes on only where a rule about data holds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <tenon/build.h>
#include <tenon/session.h>
#include <unistd.h>

static const tn_session_options paths[] = {
    {.size = sizeof(tn_session_options), .backend = TN_BACKEND_REFERENCE},
    {.size = sizeof(tn_session_options), .backend = TN_BACKEND_REFERENCE, .level = TN_LEVEL_2},
    {.size = sizeof(tn_session_options), .level = TN_LEVEL_0},
    {.size = sizeof(tn_session_options), .level = TN_LEVEL_1},
    {.size = sizeof(tn_session_options)},
};
enum { PATHS = sizeof paths / sizeof *paths };

/* x [3] goes on where all of it is below 5; what does not use it is not refused. */
static void test_require(void **state) {
    (void)state;
    static const int64_t three = 3;
    char path[] = "/tmp/tenon-test-XXXXXX.onnx";
    int fd = mkstemps(path, 5);
    assert_true(fd >= 0 && close(fd) == 0);
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("N")), limit = tn_scalar(g, TN_F32, 5);
    tn_value shown[2] = {x, limit};
    tn_value held = tn_require(g, x, tn_less(g, x, limit), "x{i} is {0}, not below {1}; {2}{x}", 2, shown);
    tn_set_output(g, "y", tn_add(g, held, held));
    tn_set_output(g, "free", tn_neg(g, x));
    assert_int_equal(tn_graph_check(g), TN_OK);
    assert_int_equal(tn_graph_save_as(g, path, TN_OPTIONS(tn_save_options, .standard_only = true)), TN_OK);
    for (int from = 0; from < 2; from++) /* as it is, and of standard operators, which cannot say the rule */
        for (int p = 0; p < PATHS; p++) {
            tn_model *model = from ? tn_model_load(path, NULL) : tn_model_from_graph(g, NULL);
            assert_non_null(model);
            for (int bad = 0; bad < 2; bad++) {
                tn_tensor *in = tn_tensor_from_f32(1, &three, (const float[]){1, bad ? 7.5F : 2, 4}), *y = NULL,
                          *same = NULL;
                tn_session *s = tn_session_create(model, &paths[p]);
                assert_non_null(s);
                const tn_binding feed = {.name = "x", .tensor = in};
                assert_int_equal(tn_session_run(s, 1, &feed, 1, &(tn_output){.name = "free", .tensor = &same}), TN_OK);
                assert_float_equal(((float *)tn_tensor_data(same))[1], bad ? -7.5F : -2.F, 0);
                tn_status status = tn_session_run(s, 1, &feed, 1, &(tn_output){.name = "y", .tensor = &y});
                assert_int_equal(status, bad ? TN_ERR_INPUT : TN_OK);
                if (!bad)
                    assert_float_equal(((float *)tn_tensor_data(y))[1], 4, 0);
                else if (!from && !strstr(tn_error_what(), "x[1] is 7.5, not below 5; {2}{x}"))
                    fail_msg("%s", tn_error_message());
                tn_tensor_destroy(in);
                tn_tensor_destroy(y);
                tn_tensor_destroy(same);
                tn_session_destroy(s);
            }
            tn_model_destroy(model);
        }
    tn_graph_destroy(g);
    assert_int_equal(unlink(path), 0);
}

static void test_wrong_calls(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        tn_graph *g = tn_graph_create();
        tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE(3)), many[11];
        for (int k = 0; k < 11; k++)
            many[k] = x;
        tn_value y = i ? tn_require(g, x, tn_is_nan(g, x), "", 11, many) : tn_require(g, x, x, "", 0, NULL);
        assert_int_equal(y.id, 0);
        assert_int_equal(tn_graph_check(g), i ? TN_ERR_USAGE : TN_ERR_MODEL);
        if (!strstr(tn_error_message(), i ? "at most 10" : "must be bool"))
            fail_msg("%s", tn_error_message());
        tn_graph_destroy(g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_require), cmocka_unit_test(test_wrong_calls)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
