/* What the texts of operators allow and few files use: by all back ends and levels, whether the file says the sizes, names them or says
   nothing. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <tenon/model.h>

#include "support/custom_ops.h"
#include "support/one_node.h"
#include "support/paths.h"

#define D(...) ((const int64_t[]){__VA_ARGS__})

enum { INPUTS = 6, SAID, NAMED, OPEN, FORMS };

/* Numbers between -1 and 1 that look like nothing. */
static tn_tensor *numbers(int rank, const int64_t *dims, double least) {
    tn_tensor *t = tn_tensor_create(TN_F32, rank, dims);
    assert_non_null(t);
    for (int64_t i = 0; i < tn_tensor_count(t); i++)
        ((float *)tn_tensor_data(t))[i] = (float)(least + (1 - least) * fabs(sin((double)(7 * i + 3 * rank + 1))));
    return t;
}

/* The node with inputs a, b, ... that are f32, and the output y; checked with `want` by every path. */
static void gives(int opset, const char *op, tn_text attrs, int form, uint32_t n, tn_tensor *const *in,
                  const char *more, const char *outputs, uint32_t results, tn_tensor *const *want) {
    static const char *const names[] = {"a", "b", "c", "d", "e", "f"};
    tn_text g = message(), bytes;
    tn_binding feed[INPUTS];
    char inputs[40] = "";
    for (uint32_t i = 0; i < n; i++) {
        char shape[100] = "";
        for (int k = 0; k < tn_tensor_rank(in[i]); k++)
            snprintf(shape + strlen(shape), sizeof shape - strlen(shape), form == SAID ? "%s%d" : "%sN%d", k ? "," : "",
                     form == SAID ? (int)tn_tensor_dims(in[i])[k] : (int)(10 * i) + k);
        put_value(&g, 11, names[i], TN_F32, form == OPEN ? NULL : shape);
        feed[i] = (tn_binding){.name = names[i], .tensor = in[i]};
        snprintf(inputs + strlen(inputs), sizeof inputs - strlen(inputs), "%s%s", i ? "," : "", names[i]);
    }
    strcat(inputs, more);
    put_message(&g, 1, node_bytes(op, "node", inputs, outputs, attrs));
    if (*more)
        put_ints(&g, 5, "sizes", tn_tensor_rank(want[0]), tn_tensor_dims(want[0]));
    tn_output out[INPUTS];
    char name[INPUTS][8] = {""};
    for (uint32_t i = 0; i < results; i++) {
        size_t length = strcspn(outputs, ",");
        memcpy(name[i], outputs, length);
        outputs += length + (outputs[length] == ',');
        put_value(&g, 12, name[i], 0, NULL);
    }
    tn_model *model = path_model(opset, g, NULL, &bytes);
    if (!model)
        fail_msg("%s, form %d: %s", op, form, tn_error_message());
    for (int p = 0; p < RUN_PATHS; p++) {
        tn_tensor *y[INPUTS] = {NULL};
        for (uint32_t i = 0; i < results; i++)
            out[i] = (tn_output){.name = name[i], .tensor = &y[i]};
        tn_session *s = tn_session_create(model, &run_paths[p].options);
        if (!s || tn_session_run(s, n, feed, results, out) != TN_OK)
            fail_msg("%s, form %d, %s: %s", op, form, run_paths[p].name, tn_error_message());
        for (uint32_t i = 0; i < results; i++) {
            assert_int_equal(tn_tensor_rank(y[i]), tn_tensor_rank(want[i]));
            for (int k = 0; k < tn_tensor_rank(y[i]); k++)
                assert_int_equal(tn_tensor_dims(y[i])[k], tn_tensor_dims(want[i])[k]);
            for (int64_t k = 0; k < tn_tensor_count(y[i]); k++) {
                double a = tn_tensor_get_f64(y[i], k), b = tn_tensor_get_f64(want[i], k);
                if (!(fabs(a - b) <= 2e-5 * (1 + fabs(b))))
                    fail_msg("%s, form %d, %s: output %u, element %d is %g, not %g", op, form, run_paths[p].name,
                             (unsigned)i, (int)k, a, b);
            }
            tn_tensor_destroy(y[i]);
        }
        tn_session_destroy(s);
    }
    tn_model_destroy(model);
    tn_text_free(&bytes);
}

/* --- Resize, antialiased ------------------------------------------------------------------------------------------------------------ */

static double weight(bool cubic, double d) {
    const double a = -0.75;
    d = fabs(d);
    if (!cubic)
        return d < 1 ? 1 - d : 0;
    return d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

/* x [2, n, 2] with `out` elements on axis 1: every element of the axis and beyond, by the formula. */
static tn_tensor *shrunk(const tn_tensor *x, int64_t out, bool cubic, bool exclude) {
    int64_t n = tn_tensor_dims(x)[1];
    double scale = (double)out / (double)n;
    tn_tensor *y = tn_tensor_create(TN_F32, 3, D(2, out, 2));
    assert_non_null(y);
    for (int64_t row = 0; row < 4; row++)
        for (int64_t i = 0; i < out; i++) {
            double at = ((double)i + 0.5) / scale - 0.5, sum = 0, total = 0;
            for (int64_t j = -4 * n; j < 5 * n; j++) {
                double w = weight(cubic, ((double)j - at) * scale);
                if (exclude && (j < 0 || j >= n))
                    continue;
                int64_t inside = j < 0 ? 0 : j >= n ? n - 1 : j;
                total += w;
                sum += w * tn_tensor_get_f64(x, (row / 2 * n + inside) * 2 + row % 2);
            }
            ((float *)tn_tensor_data(y))[(row / 2 * out + i) * 2 + row % 2] = (float)(sum / total);
        }
    return y;
}

static tn_text resize_attrs(bool cubic, bool exclude) {
    tn_text attrs = message();
    attr_text(&attrs, "mode", cubic ? "cubic" : "linear");
    attr_int(&attrs, "antialias", 1);
    attr_int(&attrs, "exclude_outside", exclude);
    return attrs;
}

static void test_antialias(void **state) {
    (void)state;
    static const int64_t sizes[][2] = {{5, 3}, {40, 7}, {1300, 2}, {3000, 1}, {700, 699}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int kind = 0; kind < 4; kind++)
            for (int form = SAID; form < FORMS; form++) {
                tn_tensor *x = numbers(3, D(2, sizes[i][0], 2), -1),
                          *y = shrunk(x, sizes[i][1], kind & 1, (kind & 2) != 0);
                gives(18, "Resize", resize_attrs(kind & 1, (kind & 2) != 0), form, 1, &x, ",,,sizes", "y", 1, &y);
                tn_tensor_destroy(x);
                tn_tensor_destroy(y);
            }
}

/* What a node becomes does not grow with the number of neighbours. */
static void test_antialias_size(void **state) {
    (void)state;
    uint32_t nodes[2];
    for (int i = 0; i < 2; i++) {
        tn_text g = message(), bytes;
        put_value(&g, 11, "a", TN_F32, i ? "2,100000" : "2,10");
        put_ints(&g, 5, "sizes", 2, D(2, 5));
        put_message(&g, 1, node_bytes("Resize", "node", "a,,,sizes", "y", resize_attrs(true, false)));
        put_value(&g, 12, "y", 0, NULL);
        tn_model *model = path_model(18, g, NULL, &bytes);
        tn_session *s = tn_session_create(model, &run_paths[0].options);
        assert_non_null(s);
        tn_session_report report;
        assert_int_equal(tn_session_describe(s, &report), TN_OK);
        nodes[i] = (uint32_t)report.nodes;
        tn_session_destroy(s);
        tn_model_destroy(model);
        tn_text_free(&bytes);
    }
    assert_int_equal(nodes[0], nodes[1]);
}

/* --- BatchNormalization with spatial 0 ---------------------------------------------------------------------------------------------- */

/* Operator sets 7 and 8: each element of a sample has its own scale, bias and statistics. */
static void test_not_spatial(void **state) {
    (void)state;
    static const struct {
        int rank;
        int64_t dims[4];
    } shapes[] = {{4, {3, 2, 2, 5}}, {3, {2, 4, 3}}, {2, {3, 4}}, {4, {1, 2, 1, 3}}};
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++)
        for (int training = 0; training < 2; training++)
            for (int form = SAID; form < FORMS; form++) {
                int rank = shapes[k].rank;
                const int64_t *dims = shapes[k].dims;
                tn_tensor *in[5] = {numbers(rank, dims, -1)}, *want[5] = {tn_tensor_create(TN_F32, rank, dims)};
                int64_t n = dims[0], each = tn_tensor_count(in[0]) / n;
                for (int i = 1; i < 5; i++) {
                    in[i] = numbers(rank - 1, dims + 1, i == 4 ? 0.5 : -0.8);
                    want[i] = tn_tensor_create(TN_F32, rank - 1, dims + 1);
                }
                for (int64_t e = 0; e < each; e++) {
                    double mean = 0, variance = 0, x[5] = {0};
                    for (int64_t s = 0; s < n; s++)
                        mean += tn_tensor_get_f64(in[0], s * each + e) / (double)n;
                    for (int64_t s = 0; s < n; s++)
                        variance += pow(tn_tensor_get_f64(in[0], s * each + e) - mean, 2) / (double)n;
                    for (int i = 1; i < 5; i++)
                        x[i] = tn_tensor_get_f64(in[i], e);
                    ((float *)tn_tensor_data(want[1]))[e] = (float)(x[3] * 0.75 + mean * 0.25);
                    ((float *)tn_tensor_data(want[2]))[e] = (float)(x[4] * 0.75 + variance * 0.25);
                    ((float *)tn_tensor_data(want[3]))[e] = (float)mean;
                    ((float *)tn_tensor_data(want[4]))[e] = (float)variance;
                    for (int64_t s = 0; s < n; s++) {
                        double v = tn_tensor_get_f64(in[0], s * each + e), from = training ? mean : x[3],
                               by = training ? variance : x[4];
                        ((float *)tn_tensor_data(want[0]))[s * each + e] =
                            (float)((v - from) / sqrt(by + 0.5) * x[1] + x[2]);
                    }
                }
                tn_text attrs = message();
                attr_int(&attrs, "spatial", 0);
                attr_float(&attrs, "epsilon", 0.5f);
                attr_float(&attrs, "momentum", 0.75f);
                gives(7 + (int)(k & 1), "BatchNormalization", attrs, form, 5, in, "", training ? "y,m,v,sm,sv" : "y",
                      training ? 5 : 1, want);
                for (int i = 0; i < 5; i++) {
                    tn_tensor_destroy(in[i]);
                    tn_tensor_destroy(want[i]);
                }
            }
}

/* --- SequenceMap ---------------------------------------------------------------------------------------------------------------------- */

/* SequenceMap of a body `nodes` (reads i and j, makes o) over a sequence of x-like items, then the item at `at`, flattened into y. */
static tn_text map_of(tn_text nodes, const char *items, int64_t at) {
    tn_text g = message(), attrs = message();
    put_text(&nodes, 2, "body");
    put_value(&nodes, 11, "i", TN_F32, NULL);
    put_value(&nodes, 11, "j", TN_F32, NULL);
    put_value(&nodes, 12, "o", TN_F32, NULL);
    attr_graph(&attrs, "body", nodes);
    put_value(&g, 11, "x", TN_F32, "2,2");
    put_ints(&g, 5, "two", 2, D(2, 2));
    put_ints(&g, 5, "four", 1, D(4));
    put_ints(&g, 5, "axes", 1, D(0));
    put_node(&g, "Reshape", "flat", "x,four", "flat");
    put_node(&g, "Unsqueeze", "deep", "x,axes", "deep");
    if (*items)
        put_node(&g, "SequenceConstruct", "make", items, "s");
    else
        put_message(&g, 1, node_bytes("SequenceEmpty", "make", "", "s", message()));
    put_message(&g, 1, node_bytes("SequenceMap", "map", "s,x", "t", attrs));
    put_ints(&g, 5, "at", 1, &at);
    put_ints(&g, 5, "all", 1, D(-1));
    if (*items) {
        put_node(&g, "SequenceAt", "get", "t,at", "r");
        put_node(&g, "Reshape", "out", "r,all", "y");
    } else {
        put_node(&g, "SequenceLength", "get", "t", "y");
    }
    put_value(&g, 12, "y", 0, NULL);
    return g;
}

static void test_map(void **state) {
    (void)state;
    static const char *const lists[] = {"x,flat", "flat,x,deep", "deep,flat,flat", "flat,flat"};
    tn_op_set *ops = custom_set(NULL);
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++)
        for (int64_t at = 0; at < 2; at++)
            for (int custom = 0; custom < 3; custom++) { /* none, one without infer, the same twice */
                tn_text body = message(), bytes;
                if (custom)
                    put_node_of(&body, "com.example", "Untyped", "i", "u", message());
                put_node(&body, "Neg", "neg", custom ? "u" : "i", custom > 1 ? "v" : "o");
                if (custom > 1)
                    put_node_of(&body, "com.example", "Untyped", "v", "o", message());
                bytes = model_bytes(17, map_of(body, lists[k], at));
                put_opset(&bytes, 8, "com.example", 1);
                tn_model *model = tn_model_load_memory(bytes.data, bytes.len, TN_OPTIONS(tn_model_options, .ops = ops));
                assert_non_null(model);
                custom_expect(model, custom == 0   ? "-1 -2 -3 -4"
                                     : custom == 1 ? "-1001 -1002 -1003 -1004"
                                                   : "-1 -2 -3 -4");
                tn_model_destroy(model);
                tn_text_free(&bytes);
            }
    /* over nothing */
    tn_text body = message(), bytes;
    put_node_of(&body, "com.example", "Untyped", "i", "o", message());
    bytes = model_bytes(17, map_of(body, "", 0));
    put_opset(&bytes, 8, "com.example", 1);
    tn_model *model = tn_model_load_memory(bytes.data, bytes.len, TN_OPTIONS(tn_model_options, .ops = ops));
    assert_non_null(model);
    custom_expect(model, "0");
    tn_model_destroy(model);
    tn_text_free(&bytes);
    tn_op_set_destroy(ops);
}

/* --- Einsum ------------------------------------------------------------------------------------------------------------------------- */

/* Axes of one label where one of them is 1, of one operand and of the other: [3, 1, 1] with [3, 1] or [1, 3] as Xcd,dc->Xcd. */
static void test_einsum_of_one(void **state) {
    (void)state;
    for (int swapped = 0; swapped < 2; swapped++)
        for (int form = SAID; form < FORMS; form++) {
            tn_tensor *x = numbers(3, D(3, 1, 1), -1), *w = numbers(2, swapped ? D(1, 3) : D(3, 1), -1);
            tn_tensor *y = tn_tensor_create(TN_F32, 3, swapped ? D(3, 3, 1) : D(3, 1, 3));
            tn_text attrs = message();
            attr_text(&attrs, "equation", "Xcd,dc->Xcd");
            for (int64_t i = 0; i < 9; i++)
                ((float *)tn_tensor_data(y))[i] = (float)(tn_tensor_get_f64(x, i / 3) * tn_tensor_get_f64(w, i % 3));
            gives(12, "Einsum", attrs, form, 2, (tn_tensor *[]){x, w}, "", "y", 1, &y);
            tn_tensor_destroy(x);
            tn_tensor_destroy(w);
            tn_tensor_destroy(y);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_antialias), cmocka_unit_test(test_antialias_size),
                                       cmocka_unit_test(test_not_spatial), cmocka_unit_test(test_map),
                                       cmocka_unit_test(test_einsum_of_one)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
