/* Operator sets: models converted up and down give the same results; a step that would lose something is refused and named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <unistd.h>

#include <tenon/session.h>

#include "support/onnx_bytes.h"

static char path[] = "/tmp/tenon-test-XXXXXX.onnx";

static int make_file(void **state) {
    (void)state;
    int fd = mkstemps(path, 5);
    return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state) {
    (void)state;
    return unlink(path);
}

static tn_tensor *input(void) {
    tn_tensor *t = tn_tensor_create(TN_F32, 3, (int64_t[]){2, 3, 4});
    float *v = tn_tensor_data(t);
    for (int k = 0; k < 24; k++)
        v[k] = (float)((k * 37 + 33) % 29 - 14) / 4;
    return t;
}

static tn_text one_node(int opset, const char *op, const char *inputs, const char *outputs, tn_text attrs, bool list) {
    tn_text g = message();
    put_value(&g, 11, "x", TN_F32, "2,3,4");
    if (list)
        put_ints(&g, 5, "c", 1, (int64_t[]){1});
    put_message(&g, 1, node_bytes(op, "node", inputs, outputs, attrs));
    put_value(&g, 12, "y", TN_F32, NULL);
    return model_bytes(opset, g);
}

static tn_tensor *result_of(const void *bytes, size_t size, const char *file) {
    tn_model *model = file ? tn_model_load(file, NULL) : tn_model_load_memory(bytes, size, NULL);
    tn_session *session = model ? tn_session_create(model, NULL) : NULL;
    tn_tensor *x = input(), *y = NULL;
    if (!session || tn_session_run(session, 1, (const tn_binding[]){{.name = "x", .tensor = x}}, 1,
                                   (tn_output[]){{.name = "y", .tensor = &y}}) != TN_OK)
        fail_msg("%s", tn_error_message());
    tn_tensor_destroy(x);
    tn_session_destroy(session);
    tn_model_destroy(model);
    return y;
}

/* refused: NULL, or what the message names. */
static void converts(tn_text bytes, int to, const char *refused) {
    tn_model *model = tn_model_load_memory(bytes.data, bytes.len, NULL);
    if (!model)
        fail_msg("%s", tn_error_message());
    tn_status status = tn_graph_save_as(tn_model_graph(model), path, TN_OPTIONS(tn_save_options, .opset = to));
    if (refused) {
        assert_int_equal(status, TN_ERR_UNSUPPORTED);
        if (!strstr(tn_error_message(), refused) || !strstr(tn_error_message(), "node"))
            fail_msg("%s", tn_error_message());
    } else {
        if (status != TN_OK)
            fail_msg("%s", tn_error_message());
        tn_tensor *wanted = result_of(bytes.data, bytes.len, NULL), *got = result_of(NULL, 0, path);
        assert_true(tn_object_equal(tn_tensor_object(wanted), tn_tensor_object(got)));
        tn_tensor_destroy(wanted);
        tn_tensor_destroy(got);
    }
    tn_model_destroy(model);
    tn_text_free(&bytes);
}

static tn_text ints(const char *name, int count, const int64_t *values) {
    tn_text attrs = message(), a = message();
    put_text(&a, 1, name);
    for (int k = 0; k < count; k++)
        tn_wire_put_varint(&a, 8, (uint64_t)values[k]);
    tn_wire_put_varint(&a, 20, 7);
    put_message(&attrs, 5, a);
    return attrs;
}

static tn_text integer(const char *name, int64_t value) {
    tn_text attrs = message();
    attr_int(&attrs, name, value);
    return attrs;
}

static void operator_sets(void **state) {
    (void)state;
    const int64_t axes[] = {1};
    converts(one_node(9, "ReduceMean", "x", "y", ints("axes", 1, axes), false), 18, NULL);
    converts(one_node(9, "ReduceSum", "x", "y", ints("axes", 1, axes), false), 21, NULL);
    converts(one_node(18, "ReduceMean", "x,c", "y", message(), true), 13, NULL);
    converts(one_node(13, "Squeeze", "x", "y", message(), false), 11, NULL);
    converts(one_node(11, "Unsqueeze", "x", "y", ints("axes", 1, axes), false), 17, NULL);
    converts(one_node(13, "Unsqueeze", "x,c", "y", message(), true), 9, NULL);
    converts(one_node(9, "Clip", "x", "y", message(), false), 13, NULL);
    converts(one_node(11, "Clip", "x", "y", message(), false), 9, NULL);
    converts(one_node(11, "Softmax", "x", "y", integer("axis", 2), false), 13, NULL);
    converts(one_node(11, "Softmax", "x", "y", message(), false), 13, "Softmax");
    converts(one_node(13, "Softmax", "x", "y", message(), false), 9, NULL);
    converts(one_node(13, "Softmax", "x", "y", integer("axis", 0), false), 11, "Softmax");
    converts(one_node(20, "Gelu", "x", "y", message(), false), 18, "Gelu");
    converts(one_node(7, "Dropout", "x", "y", message(), false), 13, NULL);
    converts(one_node(13, "Dropout", "x", "y", message(), false), 7, NULL);
    converts(one_node(14, "Reshape", "x,c", "y", integer("allowzero", 1), true), 13, "allowzero");
    converts(one_node(9, "Relu", "x", "y", message(), false), 26, NULL);
    /* what an earlier text does not list is refused, or told in its words */
    converts(one_node(13, "Equal", "x,x", "y", message(), false), 9, "Equal");
    converts(one_node(13, "Flatten", "x", "y", integer("axis", -1), false), 9, NULL);
    converts(one_node(13, "Clip", "x,,", "y", message(), false), 9, NULL);
    converts(one_node(26, "Relu", "x", "y", message(), false), 6, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(operator_sets)};
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
