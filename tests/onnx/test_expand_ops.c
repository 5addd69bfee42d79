/* Operators that the standard's suite tests little or not at all, by hand and by property; rules that are checked before anything is
   built. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/onnx_bytes.h"

#include "interp/interp.h"

/* One operator: inputs named a, b, c...; each has a shape (NULL: none) or is a constant list of integers. */
typedef struct one_op {
    const char *op, *domain;
    int opset;
    const char *inputs, *outputs;
    tn_text attrs;
    struct {
        const char *shape;
        int dtype; /* 0: f32 */
    } in[6];
    struct {
        int64_t count;
        int64_t values[8];
    } constant[6];
} one_op;

static tn_text model_of(one_op *o) {
    tn_text g = message(), node = node_bytes(o->op, "n", o->inputs, o->outputs, o->attrs);
    if (o->domain)
        put_text(&node, 7, o->domain);
    put_message(&g, 1, node);
    for (int i = 0; i < 6; i++) {
        char name[2] = {(char)('a' + i), 0};
        if (o->in[i].shape)
            put_value(&g, 11, name, o->in[i].dtype ? o->in[i].dtype : TN_F32, o->in[i].shape);
        else if (o->constant[i].count)
            put_ints(&g, 5, name, o->constant[i].count, o->constant[i].values);
    }
    for (const char *p = o->outputs; *p;) {
        char name[8] = {0};
        size_t n = strcspn(p, ",");
        memcpy(name, p, n < 7 ? n : 7);
        if (n)
            put_value(&g, 12, name, 0, NULL);
        p += n + (p[n] == ',');
    }
    return model_bytes(o->opset, g);
}

static tn_graph *expanded(one_op *o) {
    tn_text m = model_of(o);
    tn_graph *g = load_bytes(&m);
    tn_text_free(&m);
    if (!g || tn_onnx_expand(g, 0) != TN_OK || tn_graph_verify(g) != TN_OK)
        fail_msg("%s: %s", o->op, tn_error_message());
    return g;
}

/* Runs with the inputs (destroyed); outputs to `out`, to be destroyed. */
static void run(tn_graph *g, uint32_t n, tn_tensor *const *in, uint32_t outputs, tn_tensor **out) {
    tn_value values[6], out_values[6];
    tn_object *objects[6], *results[6] = {NULL};
    for (uint32_t i = 0; i < n; i++) {
        values[i] = tn_graph_input(g, i);
        objects[i] = tn_tensor_object(in[i]);
    }
    for (uint32_t i = 0; i < outputs; i++)
        out_values[i] = tn_graph_output(g, i);
    if (tn_interp_run(g, NULL, n, values, objects, outputs, out_values, results) != TN_OK)
        fail_msg("%s", tn_error_message());
    for (uint32_t i = 0; i < outputs; i++) {
        out[i] = tn_object_tensor(results[i]);
        assert_non_null(out[i]);
    }
    for (uint32_t i = 0; i < n; i++)
        tn_tensor_destroy(in[i]);
}

static tn_tensor *floats(int rank, const int64_t *dims, const float *values) {
    return tn_tensor_from_f32(rank, dims, values);
}

static void close_to(const tn_tensor *t, int64_t count, const double *wanted, double atol) {
    assert_int_equal(t->count, count);
    for (int64_t i = 0; i < count; i++)
        if (!(fabs(tn_tensor_get_f64(t, i) - wanted[i]) <= atol))
            fail_msg("element %d is %d / 10^6, wanted %d / 10^6", (int)i, (int)(tn_tensor_get_f64(t, i) * 1e6),
                     (int)(wanted[i] * 1e6));
}

#define D(...) ((const int64_t[]){__VA_ARGS__})
#define F(...) ((const float[]){__VA_ARGS__})
#define W(...) ((const double[]){__VA_ARGS__})

static void attr_text(tn_text *attrs, const char *name, const char *value) {
    tn_text a = message();
    put_text(&a, 1, name);
    put_text(&a, 4, value);
    tn_wire_put_varint(&a, 20, 3);
    put_message(attrs, 5, a);
}

static void attr_ints(tn_text *attrs, const char *name, int count, const int64_t *values) {
    tn_text a = message();
    put_text(&a, 1, name);
    for (int i = 0; i < count; i++)
        tn_wire_put_varint(&a, 8, (uint64_t)values[i]);
    tn_wire_put_varint(&a, 20, 7);
    put_message(attrs, 5, a);
}

/* --- recurrent ------------------------------------------------------------------------------------------------------------------------ */

static double sigmoid(double v) {
    return 1 / (1 + exp(-v));
}

/* One unit, batch of two with sequences of 2 and 1 steps, in reverse: the shorter one has its own last step first. */
static void test_lstm_lengths(void **state) {
    (void)state;
    one_op o = {.op = "LSTM",
                .opset = 14,
                .inputs = "a,b,c,,d",
                .outputs = "Y,H,C",
                .attrs = message(),
                .in = {{"T,2,1", 0}, {"1,4,1", 0}, {"1,4,1", 0}, {"2", TN_I32}}};
    attr_int(&o.attrs, "hidden_size", 1);
    attr_text(&o.attrs, "direction", "reverse");
    tn_graph *g = expanded(&o);
    tn_tensor *lengths = tn_tensor_create(TN_I32, 1, D(2)), *out[3];
    tn_store_i64(TN_I32, tn_tensor_data(lengths), 0, 2);
    tn_store_i64(TN_I32, tn_tensor_data(lengths), 1, 1);
    tn_tensor *in[4] = {floats(3, D(2, 2, 1), F(0.5f, -1, 2, 9)), floats(3, D(1, 4, 1), F(0.1f, 0.2f, 0.3f, 0.4f)),
                        floats(3, D(1, 4, 1), F(0.5f, -0.4f, 0.3f, 0.2f)), lengths};
    run(g, 4, in, 3, out);
    double h[2] = {0, 0}, c[2] = {0, 0}, y[4] = {0, 0, 0, 0};
    const double x[2][2] = {{0.5, -1}, {2, 9}}, w[4] = {0.1f, 0.2f, 0.3f, 0.4f}, r[4] = {0.5, -0.4f, 0.3f, 0.2f};
    for (int b = 0; b < 2; b++)
        for (int t = b == 0 ? 1 : 0; t >= 0; t--) {
            double i = sigmoid(x[t][b] * w[0] + h[b] * r[0]), q = sigmoid(x[t][b] * w[1] + h[b] * r[1]);
            double f = sigmoid(x[t][b] * w[2] + h[b] * r[2]), n = tanh(x[t][b] * w[3] + h[b] * r[3]);
            c[b] = f * c[b] + i * n;
            h[b] = q * tanh(c[b]);
            y[2 * t + b] = h[b];
        }
    close_to(out[0], 4, y, 1e-6);
    close_to(out[1], 2, h, 1e-6);
    close_to(out[2], 2, c, 1e-6);
    for (int i = 0; i < 3; i++)
        tn_tensor_destroy(out[i]);
    tn_graph_destroy(g);
}

/* --- regions --------------------------------------------------------------------------------------------------------------------------- */

static void test_max_roi_pool(void **state) {
    (void)state;
    one_op o = {.op = "MaxRoiPool",
                .opset = 14,
                .inputs = "a,b",
                .outputs = "y",
                .attrs = message(),
                .in = {{"1,1,4,H", 0}, {"R,5", 0}}};
    attr_ints(&o.attrs, "pooled_shape", 2, D(2, 2));
    tn_graph *g = expanded(&o);
    float image[16];
    for (int i = 0; i < 16; i++)
        image[i] = (float)i;
    tn_tensor *in[2] = {floats(4, D(1, 1, 4, 4), image), floats(2, D(2, 5), F(0, 0, 0, 3, 3, 0, 1, 1, 1, 2))}, *out;
    run(g, 2, in, 1, &out);
    close_to(out, 8, W(5, 7, 13, 15, 5, 5, 9, 9), 0); /* the second is one column, two rows */
    tn_tensor_destroy(out);
    tn_graph_destroy(g);
}

/* --- attention ---------------------------------------------------------------------------------------------------------------------------- */

/* A query that may attend no key gives 0; the other one the only value it sees. */
static void test_attention_masked(void **state) {
    (void)state;
    one_op o = {.op = "Attention",
                .opset = 24,
                .inputs = "a,b,c,d",
                .outputs = "y",
                .attrs = message(),
                .in = {{"1,1,2,2", 0}, {"1,1,K,2", 0}, {"1,1,K,1", 0}, {"2,K", TN_BOOL}}};
    tn_graph *g = expanded(&o);
    tn_tensor *mask = tn_tensor_create(TN_BOOL, 2, D(2, 3)), *out;
    memset(tn_tensor_data(mask), 0, 6);
    tn_store_i64(TN_BOOL, tn_tensor_data(mask), 4, 1);
    tn_tensor *in[4] = {floats(4, D(1, 1, 2, 2), F(1, 2, 3, 4)), floats(4, D(1, 1, 3, 2), F(1, 0, 0, 1, 1, 1)),
                        floats(4, D(1, 1, 3, 1), F(7, 8, 9)), mask};
    run(g, 4, in, 1, &out);
    close_to(out, 2, W(0, 8), 0);
    tn_tensor_destroy(out);
    tn_graph_destroy(g);
}

/* --- transforms ----------------------------------------------------------------------------------------------------------------------------- */

/* All lengths up to 40, primes beyond, one that no pass suits: against the sum that defines the transform; and back. */
static void test_dft(void **state) {
    (void)state;
    static const int more[] = {49, 64, 77, 97, 127, 131, 134};
    for (int k = 1; k <= 40 + (int)(sizeof more / sizeof *more); k++) {
        int n = k <= 40 ? k : more[k - 41];
        char shape[32];
        snprintf(shape, sizeof shape, "1,%d,2", n);
        float *x = malloc((size_t)n * 2 * sizeof *x);
        double *y = malloc((size_t)n * 2 * sizeof *y), *back = malloc((size_t)n * 2 * sizeof *back);
        for (int i = 0; i < 2 * n; i++) {
            x[i] = (float)((i * 37 + 11) % 29) / 8 - 1;
            back[i] = (double)x[i];
        }
        for (int f = 0; f < n; f++) {
            y[2 * f] = y[2 * f + 1] = 0;
            for (int t = 0; t < n; t++) {
                double a = -6.283185307179586 * (f * t % n) / n, re = (double)x[2 * t], im = (double)x[2 * t + 1];
                y[2 * f] += re * cos(a) - im * sin(a);
                y[2 * f + 1] += re * sin(a) + im * cos(a);
            }
        }
        tn_tensor *in = floats(3, D(1, n, 2), x), *out;
        for (int inverse = 0; inverse < 2; inverse++) {
            one_op o = {
                .op = "DFT", .opset = 17, .inputs = "a", .outputs = "y", .attrs = message(), .in = {{shape, 0}}};
            attr_int(&o.attrs, "inverse", inverse);
            tn_graph *g = expanded(&o);
            run(g, 1, &in, 1, &out);
            close_to(out, 2 * n, inverse ? back : y, 1e-4);
            in = out;
            tn_graph_destroy(g);
        }
        tn_tensor_destroy(out);
        free(x);
        free(y);
        free(back);
    }
}

/* --- random numbers ---------------------------------------------------------------------------------------------------------------------------- */

/* Samples follow the probabilities, are repeatable, and stay in range. */
static void test_multinomial(void **state) {
    (void)state;
    int64_t first[3] = {0};
    for (int trial = 0; trial < 2; trial++) {
        one_op o = {
            .op = "Multinomial", .opset = 14, .inputs = "a", .outputs = "y", .attrs = message(), .in = {{"1,C", 0}}};
        attr_int(&o.attrs, "sample_size", 4000);
        tn_graph *g = expanded(&o);
        tn_tensor *in = floats(2, D(1, 3), F(0, 0.6931472f, 1.6094379f)), *out; /* 1 : 2 : 5 */
        int64_t count[3] = {0};
        run(g, 1, &in, 1, &out);
        assert_int_equal(out->count, 4000);
        assert_int_equal(out->dtype, TN_I32);
        for (int64_t i = 0; i < out->count; i++) {
            int64_t v = tn_tensor_get_i64(out, i);
            assert_in_range(v, 0, 2);
            count[v]++;
        }
        for (int i = 0; i < 3; i++) {
            static const double wanted[3] = {500, 1000, 2500};
            assert_true(fabs((double)count[i] - wanted[i]) < 150);
            assert_true(trial == 0 || first[i] == count[i]);
            first[i] = count[i];
        }
        tn_tensor_destroy(out);
        tn_graph_destroy(g);
    }
}

static void test_normal(void **state) {
    (void)state;
    one_op o = {
        .op = "RandomNormalLike", .opset = 14, .inputs = "a", .outputs = "y", .attrs = message(), .in = {{"N", 0}}};
    tn_graph *g = expanded(&o);
    tn_tensor *in = tn_tensor_create(TN_F32, 1, D(5000)), *out;
    memset(tn_tensor_data(in), 0, 5000 * sizeof(float));
    double sum = 0, squares = 0;
    run(g, 1, &in, 1, &out);
    for (int64_t i = 0; i < out->count; i++) {
        sum += tn_tensor_get_f64(out, i);
        squares += tn_tensor_get_f64(out, i) * tn_tensor_get_f64(out, i);
    }
    assert_true(fabs(sum / 5000) < 0.06 && fabs(squares / 5000 - 1) < 0.08);
    tn_tensor_destroy(out);
    tn_graph_destroy(g);
}

/* --- order ---------------------------------------------------------------------------------------------------------------------------------------- */

/* K comes with the data. */
static void test_top_k_later(void **state) {
    (void)state;
    one_op o = {.op = "TopK",
                .opset = 11,
                .inputs = "a,b",
                .outputs = "v,i",
                .attrs = message(),
                .in = {{"N", 0}, {"1", TN_I64}}};
    tn_graph *g = expanded(&o);
    tn_tensor *in[2] = {floats(1, D(5), F(2, 5, 1, 5, 3)), tn_tensor_from_i64(1, D(3))}, *out[2];
    run(g, 2, in, 2, out);
    close_to(out[0], 3, W(5, 5, 3), 0);
    close_to(out[1], 3, W(1, 3, 4), 0);
    tn_tensor_destroy(out[0]);
    tn_tensor_destroy(out[1]);
    tn_graph_destroy(g);
}

/* Without a limit no box is chosen; NaN scores come last. */
static void test_nms(void **state) {
    (void)state;
    for (int limit = 0; limit < 2; limit++) {
        one_op o = {.op = "NonMaxSuppression",
                    .opset = 11,
                    .inputs = limit ? "a,b,c" : "a,b",
                    .outputs = "y",
                    .attrs = message(),
                    .in = {{"1,N,4", 0}, {"1,1,N", 0}},
                    .constant = {[2] = {1, {2}}}};
        tn_graph *g = expanded(&o);
        tn_tensor *in[2] = {floats(3, D(1, 3, 4), F(0, 0, 1, 1, 1, 1, 0, 0, 5, 5, 6, 6)),
                            floats(3, D(1, 1, 3), F(0.5f, 0.7f, NAN))},
                  *out;
        run(g, 2, in, 1, &out);
        assert_int_equal(out->dims[1], 3);
        close_to(out, limit ? 6 : 0, W(0, 0, 1, 0, 0, 2), 0); /* the first box is the second one, turned */
        tn_tensor_destroy(out);
        tn_graph_destroy(g);
    }
}

/* Complex elements that are filled in are zero. */
static void test_trilu_complex(void **state) {
    (void)state;
    one_op o = {.op = "Trilu", .opset = 14, .inputs = "a", .outputs = "y", .attrs = message(), .in = {{"N,2", TN_C64}}};
    tn_graph *g = expanded(&o);
    static const float values[] = {1, 2, 3, 4, 5, 6, 7, 8}, upper[] = {1, 2, 3, 4, 0, 0, 7, 8};
    tn_tensor *in = tn_tensor_create(TN_C64, 2, D(2, 2)), *out;
    assert_non_null(in);
    memcpy(tn_tensor_data(in), values, sizeof values);
    run(g, 1, &in, 1, &out);
    assert_int_equal(out->dtype, TN_C64);
    assert_memory_equal(tn_tensor_data(out), upper, sizeof upper);
    tn_tensor_destroy(out);
    tn_graph_destroy(g);
}

/* --- what is refused ---------------------------------------------------------------------------------------------------------------------------------- */

static void test_refused(void **state) {
    (void)state;
    static const struct {
        const char *op;
        int opset;
        const char *inputs, *attr; /* "name=3", "name='text'" */
        const char *shape[6];
        const char *mentions;
    } list[] = {
        {"LSTM", 14, "a,b,c", NULL, {"T,B,I", "1,8,I", "1,8,3"}, "'W' has the wrong size on axis 1"},
        {"GRU", 14, "a,b,c", "hidden_size=3", {"T,B,I", "1,6,I", "1,6,2"}, "hidden_size"},
        {"RNN", 14, "a,b,c", "direction='sideways'", {"T,B,I", "1,2,I", "1,2,2"}, "direction"},
        {"RNN", 14, "a,b,c", "direction='bidirectional'", {"T,B,I", "1,2,I", "1,2,2"}, "axis 0"},
        {"Attention", 23, "a,b,c", NULL, {"B,3,4", "B,3,4", "B,3,4"}, "number of heads"},
        {"Attention", 23, "a,b,c", NULL, {"B,3,2,4", "B,2,2,4", "B,2,2,4"}, "cannot be divided"},
        {"Attention", 23, "a,b,c,,d", NULL, {"B,2,2,4", "B,2,2,4", "B,2,2,4", "B,2,2,4"}, "go together"},
        {"RotaryEmbedding", 23, "a,b,c", NULL, {"B,2,3,4", "B,3,3", "B,3,3"}, "half of what is rotated"},
        {"NegativeLogLikelihoodLoss", 13, "a,b", NULL, {"N,C,3", "N,4"}, "differ"},
        {"GridSample", 20, "a,b", NULL, {"N,C,3,3", "N,4,4,3"}, "2 coordinates"},
        {"DeformConv", 19, "a,b,c", NULL, {"N,2,5,5", "2,2,3,3", "N,17,3,3"}, "axis 1"},
        {"DFT", 17, "a", "axis=2", {"N,8,2"}, "parts of complex numbers"},
        {"DFT", 17, "a", "onesided=1", {"N,8,2"}, "real input"},
        {"DFT", 17, "a", NULL, {"N,8,3"}, "3 entries"},
        {"RoiAlign", 16, "a,b,c", NULL, {"N,C,4,4", "R,5", "R"}, "[regions, 4]"},
        {"Det", 14, "a", NULL, {"N,2,3"}, "not square"},
        {"CumSum", 14, "a,b", NULL, {"", "1"}, "scalar"},
        {"TensorScatter", 24, "a,b", "axis=0", {"B,4,2", "B,1,2"}, "batch"},
        {"TensorScatter", 24, "a,b", NULL, {"B,4,2", "B,5,2"}, "does not fit"},
        {"ArgMax", 13, "a", "axis=2", {"N,C"}, "out of range"},
        {"ScatterElements", 18, "a,b,c", "reduction='mean'", {"N,C", "N,C", "N,C"}, "reduction"},
        {"MaxUnpool", 11, "a,b", NULL, {"N,C,2,2", "N,C,2,2"}, "kernel_shape"},
        {"LinearAttention", 27, "a,b,c", "q_num_heads=2", {"B,T,4", "B,T,4", "B,T,4"}, "kv_num_heads"},
        {"CausalConvWithState", 27, "a,b", NULL, {"B,3,T", "3,2,4"}, "[channels, 1, k]"},
        {"SequenceLength", 11, "a", NULL, {"N"}, "no sequence"},
        {"Multinomial", 14, "a", "dtype=1", {"B,C"}, "dtype"},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        bool two = strcmp(list[i].op, "LinearAttention") == 0 || strcmp(list[i].op, "CausalConvWithState") == 0;
        one_op o = {.op = list[i].op,
                    .opset = list[i].opset,
                    .inputs = list[i].inputs,
                    .outputs = two ? "y,z" : "y",
                    .attrs = message()};
        bool integers = strcmp(list[i].op, "NegativeLogLikelihoodLoss") == 0 || strcmp(list[i].op, "CumSum") == 0 ||
                        strcmp(list[i].op, "ScatterElements") == 0 || strcmp(list[i].op, "MaxUnpool") == 0;
        for (int k = 0; k < 6; k++) {
            o.in[k].shape = list[i].shape[k];
            o.in[k].dtype = k == 1 && integers                              ? TN_I64
                            : strcmp(list[i].op, "RoiAlign") == 0 && k == 2 ? TN_I64
                                                                            : TN_F32;
        }
        const char *attr = list[i].attr, *value = attr ? strchr(attr, '=') : NULL;
        if (value) {
            char name[64] = {0}, text[64] = {0};
            memcpy(name, attr, (size_t)(value - attr));
            if (value[1] == '\'') {
                memcpy(text, value + 2, strlen(value) - 3);
                attr_text(&o.attrs, name, text);
            } else {
                attr_int(&o.attrs, name, strtoll(value + 1, NULL, 10));
            }
        }
        tn_text m = model_of(&o);
        tn_graph *g = load_bytes(&m);
        tn_text_free(&m);
        if (g && tn_onnx_expand(g, 0) == TN_OK)
            fail_msg("%s was expanded, but should mention %s", list[i].op, list[i].mentions);
        assert_int_equal(tn_error_status(), TN_ERR_MODEL);
        if (!strstr(tn_error_message(), list[i].mentions))
            fail_msg("%s: %s\ndoes not mention %s", list[i].op, tn_error_message(), list[i].mentions);
        if (g)
            tn_graph_destroy(g);
    }
}

/* A fraction of Shrink's bias counts before the result is an integer again. */
static void test_shrink_of_integers(void **state) {
    (void)state;
    one_op o = {.op = "Shrink", .opset = 10, .inputs = "a", .outputs = "y", .attrs = message(), .in = {{"4", TN_I64}}};
    attr_float(&o.attrs, "bias", 0.5F);
    attr_float(&o.attrs, "lambd", 1);
    tn_tensor *in = tn_tensor_from_i64(4, D(-4, 1, 2, 7)), *out;
    tn_graph *g = expanded(&o);
    run(g, 1, &in, 1, &out);
    static const int64_t want[] = {-3, 0, 1, 6};
    assert_memory_equal(tn_tensor_data(out), want, sizeof want);
    tn_tensor_destroy(out);
    tn_graph_destroy(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shrink_of_integers),
        cmocka_unit_test(test_lstm_lengths),
        cmocka_unit_test(test_max_roi_pool),
        cmocka_unit_test(test_attention_masked),
        cmocka_unit_test(test_dft),
        cmocka_unit_test(test_multinomial),
        cmocka_unit_test(test_normal),
        cmocka_unit_test(test_top_k_later),
        cmocka_unit_test(test_trilu_complex),
        cmocka_unit_test(test_nms),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
