/* The way out: graphs of primitives saved as ONNX models, read again, give the same bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <unistd.h>

#include <tenon/build.h>
#include <tenon/session.h>

#include "base/os.h"
#include "ir/tensor.h"

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

/* --- primitives ------------------------------------------------------------------------------------------------------------------------ */

typedef void build_fn(tn_graph *g, tn_value x, tn_value y, tn_value i, tn_value *out);
#define BUILD(name, ...)                                                                       \
    static void build_##name(tn_graph *g, tn_value x, tn_value y, tn_value i, tn_value *out) { \
        (void)g, (void)x, (void)y, (void)i, (void)out;                                         \
        __VA_ARGS__                                                                            \
    }
#define DIM(n) tn_dim_const(g, n)

/* x f32[N, 3, 4], y f32[N, 3, 4], i i64[2] */
BUILD(unary, out[0] = tn_neg(g, tn_abs(g, x)); out[1] = tn_sigmoid(g, tn_tanh(g, x)); out[2] = tn_trunc(g, x);
      out[3] = tn_floor(g, x);)
BUILD(binary, out[0] = tn_add(g, x, tn_mul(g, y, tn_scalar(g, TN_F32, 2))); out[1] = tn_rem(g, x, y);
      out[2] = tn_max(g, x, y); out[3] = tn_select(g, tn_less(g, x, y), x, y);)
BUILD(compare, out[0] = tn_not_equal(g, x, y); out[1] = tn_and(g, tn_less_equal(g, x, y), tn_is_finite(g, x));
      out[2] = tn_is_inf(g, x, true, false); out[3] = tn_cast(g, tn_greater(g, x, y), TN_I32);)
BUILD(shapes, const tn_dim row[] = {tn_value_dim(g, x, 0), DIM(12)}; out[0] = tn_reshape_dims(g, x, 2, row);
      out[1] = tn_transpose(g, x, (int[]){2, 0, 1}); out[2] = tn_shape_of(g, x);
      out[3] = tn_reverse(g, x, 2, (int[]){0, 2});)
BUILD(fits, tn_dim even = tn_dim_mul(g, tn_dim_floordiv(g, tn_value_dim(g, x, 0), DIM(2)), DIM(2));
      const tn_dim dims[] = {even, DIM(3), DIM(4)}; out[0] = tn_fit(g, x, dims); out[1] = tn_neg(g, tn_fit(g, y, dims));
      out[2] = tn_reshape_dims(g, out[0], 2, (tn_dim[]){even, DIM(12)}); out[3] = x;)
BUILD(slices, out[0] = tn_slice_axis(g, x, 2, 1, 2); const tn_dim lo[] = {DIM(0), DIM(1), DIM(0)};
      const tn_dim hi[] = {DIM(0), DIM(0), DIM(2)}; out[1] = tn_pad(g, x, tn_scalar(g, TN_F32, 7), lo, hi, "constant");
      out[2] = tn_concat(g, 1, 2, (tn_value[]){x, y}); out[3] = tn_gather(g, x, i, 1);)
BUILD(dynamic, const tn_dim size[] = {tn_value_dim(g, x, 0), DIM(2), DIM(3)};
      tn_value starts = tn_concat(g, 0, 2, (tn_value[]){tn_constant_i64(g, 1, 1, (int64_t[]){0}), i});
      out[0] = tn_dynamic_slice(g, x, starts, size); out[1] = tn_dynamic_update_slice(g, x, tn_neg(g, out[0]), starts);
      const tn_dim shape[] = {tn_value_dim(g, x, 0), DIM(5)}; out[2] = tn_iota(g, TN_I32, 2, shape, 0);
      out[3] = tn_nonzero(g, x);)
BUILD(reduce, const int axes[] = {1, 2}; out[0] = tn_reduce_sum(g, x, 2, axes, true);
      out[1] = tn_reduce_max(g, x, 1, axes, false); out[2] = tn_reduce_or(g, tn_less(g, x, y), 1, axes, false);
      out[3] = tn_reduce_mean(g, x, 2, axes, false);)
BUILD(order, out[0] = tn_sort(g, x, 2, false, &out[1]); out[2] = tn_argmax(g, x, 1, true);
      out[3] = tn_cumsum(g, x, 2, true, true);)
BUILD(dot, const int64_t zero[] = {0}; const int64_t one[] = {1}; const int64_t two[] = {2};
      out[0] = tn_dot(g, x, y, 1, zero, zero, 1, two, two); out[1] = tn_dot(g, x, y, 1, zero, zero, 1, one, one);
      out[2] = tn_dot(g, x, y, 0, NULL, NULL, 2, (int64_t[]){0, 2}, (int64_t[]){0, 2});
      out[3] = tn_matmul(g, x, tn_transpose(g, y, (int[]){0, 2, 1}));)
BUILD(windows, const int64_t window[] = {1, 1, 2}; out[0] = tn_window(g, "max", x, window, NULL, NULL, NULL, NULL);
      tn_value w = tn_broadcast(g, tn_scalar(g, TN_F32, 0.5), 3, (tn_dim[]){DIM(2), DIM(3), DIM(2)});
      out[1] = tn_conv(g, x, w, NULL, NULL, NULL, NULL, NULL, 1);
      out[2] = tn_window(g, "min", x, window, NULL, NULL, NULL, NULL); out[3] = x;)
BUILD(composites, out[0] = tn_softmax(g, tn_relu(g, x), -1); out[1] = tn_gelu(g, tn_silu(g, x));
      out[2] = tn_log_softmax(g, x, 1); out[3] = tn_hard_swish(g, tn_mish(g, y));)
BUILD(same, out[0] = x; out[1] = x; out[2] = tn_scalar(g, TN_F32, 3); out[3] = out[2];)

static void then_body(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)args;
    results[0] = *(tn_value *)ctx;
    results[1] = tn_neg(g, results[0]);
}
static void else_body(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)args;
    results[0] = results[1] = tn_abs(g, *(tn_value *)ctx);
}
static void while_cond(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)ctx;
    results[0] = tn_less(g, args[0], tn_scalar(g, TN_I64, 5));
}
static void while_body(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    results[0] = tn_add(g, args[0], tn_scalar(g, TN_I64, 1));
    results[1] = tn_add(g, args[1], *(tn_value *)ctx);
    results[2] = args[0];
}
static void scan_body(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)ctx;
    results[0] = tn_add(g, args[0], args[1]);
    results[1] = tn_mul(g, results[0], results[0]);
}
BUILD(branches, tn_value cond = tn_less(g, tn_reduce_sum(g, x, TN_ALL_AXES), tn_scalar(g, TN_F32, 0));
      tn_if(g, cond, then_body, else_body, &x, 2, out);
      tn_if(g, tn_not(g, cond), then_body, else_body, &y, 2, out + 2);)
BUILD(loops, tn_value init[] = {tn_scalar(g, TN_I64, 0), x};
      tn_while(g, 2, init, NULL, while_cond, while_body, &y, 1, out);
      tn_value first = tn_reduce_sum(g, x, 1, (int[]){0}, false), results[2];
      tn_scan(g, 1, &first, 1, &x, scan_body, NULL, 1, results); out[3] = results[1];)

static tn_tensor *input(int64_t n, int seed) {
    tn_tensor *t = tn_tensor_create(TN_F32, 3, (int64_t[]){n, 3, 4});
    float *v = tn_tensor_data(t);
    for (int k = 0; k < n * 12; k++)
        v[k] = (float)((k * 37 + seed * 11) % 29 - 14) / 4;
    return t;
}

static void run(tn_model *model, tn_object **out) {
    tn_session *session = model ? tn_session_create(model, TN_OPTIONS(tn_session_options, .level = TN_LEVEL_1)) : NULL;
    if (!session)
        fail_msg("%s", tn_error_message());
    tn_tensor *x = input(2, 1), *y = input(2, 5), *i = tn_tensor_from_i64(2, (int64_t[]){1, 0});
    const tn_binding in[] = {{.name = "x", .tensor = x}, {.name = "y", .tensor = y}, {.name = "i", .tensor = i}};
    tn_output outputs[4];
    static const char *const names[] = {"o0", "o1", "o2", "o3"};
    for (int k = 0; k < 4; k++)
        outputs[k] = (tn_output){.name = names[k], .object = &out[k]};
    if (tn_session_run(session, 3, in, 4, outputs) != TN_OK)
        fail_msg("%s", tn_error_message());
    tn_tensor_destroy(x);
    tn_tensor_destroy(y);
    tn_tensor_destroy(i);
    tn_session_destroy(session);
}

static void out_and_back(const char *name, build_fn *build) {
    static const char *const names[] = {"o0", "o1", "o2", "o3"};
    tn_graph *g = tn_graph_create();
    tn_value out[4] = {{0}};
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("N", 3, 4)), y = tn_input(g, "y", TN_F32, TN_SHAPE("N", 3, 4)),
             i = tn_input(g, "i", TN_I64, TN_SHAPE(2));
    build(g, x, y, i, out);
    for (int k = 0; k < 4; k++)
        tn_set_output(g, names[k], out[k]);
    if (tn_graph_check(g) != TN_OK)
        fail_msg("%s: %s", name, tn_error_message());
    for (int opset = 0; opset <= 26; opset += 26) {
        if (tn_graph_save_as(g, path, TN_OPTIONS(tn_save_options, .opset = opset, .standard_only = true)) != TN_OK)
            fail_msg("%s: %s", name, tn_error_message());
        tn_model *before = tn_model_from_graph(g, NULL), *after = tn_model_load(path, NULL);
        tn_object *wanted[4] = {0}, *got[4] = {0};
        run(before, wanted);
        run(after, got);
        for (int k = 0; k < 4; k++) {
            if (!tn_object_equal(wanted[k], got[k]))
                fail_msg("%s, operator set %d: output %d differs", name, opset, k);
            tn_object_destroy(wanted[k]);
            tn_object_destroy(got[k]);
        }
        tn_model_destroy(before);
        tn_model_destroy(after);
    }
    tn_graph_destroy(g);
}

static void primitives_come_back(void **state) {
    (void)state;
    static const struct {
        const char *name;
        build_fn *build;
    } all[] = {
        {"unary", build_unary},     {"binary", build_binary},     {"compare", build_compare},
        {"shapes", build_shapes},   {"fits", build_fits},         {"slices", build_slices},
        {"dynamic", build_dynamic}, {"reduce", build_reduce},     {"order", build_order},
        {"dot", build_dot},         {"windows", build_windows},   {"composites", build_composites},
        {"same", build_same},       {"branches", build_branches}, {"loops", build_loops},
    };
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        out_and_back(all[k].name, all[k].build);
}

/* Runs y of x and w, of these sizes. */
static tn_status fit_runs(tn_model *model, int backend, int rank, const int64_t *x_dims, const int64_t *w_dims) {
    tn_tensor *x = tn_tensor_create(TN_F32, rank, x_dims), *w = tn_tensor_create(TN_F32, rank, w_dims), *y = NULL;
    tn_session *s = tn_session_create(
        model, TN_OPTIONS(tn_session_options, .backend = backend ? TN_BACKEND_CPU : TN_BACKEND_REFERENCE));
    assert_non_null(s);
    const tn_binding in[] = {{.name = "x", .tensor = x}, {.name = "w", .tensor = w}};
    tn_status status = tn_session_run(s, 2, in, 1, (const tn_output[]){{.name = "y", .tensor = &y}});
    if (status == TN_OK)
        assert_int_equal(tn_tensor_count(y), tn_tensor_count(x));
    tn_tensor_destroy(x);
    tn_tensor_destroy(w);
    tn_tensor_destroy(y);
    tn_session_destroy(s);
    return status;
}

/* "fit" refuses other sizes than it names when it is written as operators of the standard, too: of all sizes, also of nothing. */
static void fits_are_kept(void **state) {
    (void)state;
    for (int rank = 0; rank <= 3; rank++) {
        tn_graph *g = tn_graph_create();
        const tn_shape none = {0};
        const tn_shape shapes[2][4] = {{none, TN_SHAPE("A"), TN_SHAPE("A", "B"), TN_SHAPE("A", "B", "C")},
                                       {none, TN_SHAPE("P"), TN_SHAPE("P", "Q"), TN_SHAPE("P", "Q", "R")}};
        tn_value x = tn_input(g, "x", TN_F32, shapes[0][rank]), w = tn_input(g, "w", TN_F32, shapes[1][rank]);
        tn_dim dims[3] = {{0}};
        for (int k = 0; k < rank; k++)
            dims[k] = tn_value_dim(g, w, k);
        tn_set_output(g, "y", tn_fit(g, x, dims));
        assert_int_equal(tn_graph_save(g, path), TN_OK);
        tn_model *model[2] = {tn_model_from_graph(g, NULL), tn_model_load(path, NULL)};
        if (!model[0] || !model[1])
            fail_msg("%s", tn_error_message());
        int refused = 0, cases = 1;
        for (int k = 0; k < 2 * rank; k++)
            cases *= 3;
        for (int c = 0; c < cases; c++) {
            int64_t sizes[6];
            for (int k = 0, rest = c; k < 6; k++, rest /= 3)
                sizes[k] = rest % 3;
            bool same = memcmp(sizes, sizes + rank, (size_t)rank * sizeof *sizes) == 0;
            refused += !same;
            for (int run = 0; run < 4; run++) {
                tn_status status = fit_runs(model[run / 2], run % 2, rank, sizes, sizes + rank);
                if (same ? status != TN_OK : status != TN_ERR_INPUT)
                    fail_msg("rank %d, case %d, run %d: status %d: %s", rank, c, run, (int)status,
                             status ? tn_error_message() : "");
            }
        }
        assert_true(rank == 0 || refused > 0);
        tn_model_destroy(model[0]);
        tn_model_destroy(model[1]);
        tn_graph_destroy(g);
    }
}

/* A constant that is repeated is written once. */
static void repeated_values_stay_small(void **state) {
    (void)state;
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE(4096, 4096));
    const tn_dim dims[] = {DIM(4096), DIM(4096)};
    tn_set_output(g, "y", tn_add(g, tn_broadcast(g, tn_scalar(g, TN_F32, 2), 2, dims), x));
    assert_int_equal(tn_graph_save(g, path), TN_OK);
    size_t size;
    char *bytes = tn_file_read(NULL, path, &size);
    assert_non_null(bytes);
    assert_true(size < 4096);
    tn_free(NULL, bytes);
    tn_graph_destroy(g);
}

static void what_has_no_operator_is_named(void **state) {
    (void)state;
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE(4));
    tn_set_output(g, "y", tn_atan2(g, x, x));
    assert_int_equal(tn_graph_save(g, path), TN_ERR_UNSUPPORTED);
    assert_non_null(strstr(tn_error_message(), "atan2"));
    assert_int_equal(tn_graph_save_as(g, path, TN_OPTIONS(tn_save_options, .opset = 999)), TN_ERR_UNSUPPORTED);
    assert_int_equal(tn_graph_save_as(g, path, TN_OPTIONS(tn_save_options, .opset = -1)), TN_ERR_USAGE);
    tn_graph_destroy(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(primitives_come_back),
        cmocka_unit_test(fits_are_kept),
        cmocka_unit_test(repeated_values_stay_small),
        cmocka_unit_test(what_has_no_operator_is_named),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
