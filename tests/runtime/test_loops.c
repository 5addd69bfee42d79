/* Loops as instructions of the plan: what is carried, scanned and stacked in every way that a body can hand it on, against the
   interpreter, with zones around all values. All values are small whole numbers: the bits must be equal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <tenon/build.h>

#include "interp/interp.h"
#include "kernels/kernels.h"
#include "ops/composite.h"
#include "runtime/execute.h"

static tn_tensor *counted(tn_dtype dtype, int rank, const int64_t *dims, int from) {
    tn_tensor *t = tn_tensor_create(dtype, rank, dims);
    for (int64_t i = 0; i < tn_tensor_count(t); i++)
        tn_tensor_set_f64(t, i, dtype == TN_BOOL ? (double)(i % 2) : (double)((i + from) % 11));
    return t;
}

typedef struct found {
    uint32_t kernels, hosts, loops;
} found;

/* Runs g (taken over), whose free dims are `free_dim`, by the interpreter and as plans. */
static found check(tn_graph *g, int64_t free_dim) {
    found f = {0};
    if (tn_graph_check(g) != TN_OK)
        fail_msg("%s", tn_error_message());
    uint32_t n_in = tn_graph_input_count(g), n_out = tn_graph_output_count(g);
    tn_object *in[8], *want[8], *got[8];
    tn_value in_values[8], out_values[8];
    for (uint32_t i = 0; i < n_in; i++) {
        int64_t dims[8], c;
        in_values[i] = tn_graph_input(g, i);
        for (int d = 0; d < tn_value_rank(g, in_values[i]); d++)
            dims[d] = tn_dim_is_const(g, tn_value_dim(g, in_values[i], d), &c) ? c : free_dim;
        in[i] = tn_tensor_object(
            counted(tn_value_dtype(g, in_values[i]), tn_value_rank(g, in_values[i]), dims, (int)i * 3));
    }
    for (uint32_t i = 0; i < n_out; i++)
        out_values[i] = tn_graph_output(g, i);
    if (tn_interp_run(g, NULL, n_in, in_values, in, n_out, out_values, want) != TN_OK)
        fail_msg("%s", tn_error_message());
    for (int level = 0; level < 2; level++)
        for (int reuse = TN_REUSE_FULL; reuse <= TN_REUSE_NONE; reuse++) {
            tn_lower_options o = {
                .level = level, .isa = tn_cpu_best(), .kernels = tn_kernels(), .reuse = (tn_reuse_option)reuse};
            tn_plan *p = tn_lower(NULL, tn_graph_clone(g, NULL, NULL), &o);
            if (!p)
                fail_msg("%s", tn_error_message());
            f = (found){p->kernel.len, p->host.len, p->loop.len};
            tn_frame *frame = tn_frame_create(p, NULL);
            assert_non_null(frame);
            for (int run = 0; run < 3; run++) { /* the last without zones, on a frame that was used */
                tn_execute_options x = {.guard = run < 2};
                if (tn_frame_run(frame, &x, in, NULL, got) != TN_OK)
                    fail_msg("-O%d: %s", level, tn_error_message());
                for (uint32_t i = 0; i < n_out; i++) {
                    if (!tn_object_equal(want[i], got[i]))
                        fail_msg("-O%d, output %u differs", level, i);
                    tn_object_destroy(got[i]);
                }
            }
            tn_frame_destroy(frame);
            tn_plan_destroy(p);
        }
    for (uint32_t i = 0; i < n_out; i++)
        tn_object_destroy(want[i]);
    for (uint32_t i = 0; i < n_in; i++)
        tn_object_destroy(in[i]);
    tn_graph_destroy(g);
    return f;
}

static void built(tn_status status) {
    if (status != TN_OK)
        fail_msg("%s", tn_error_message());
}

static void set_outputs(tn_graph *g, uint32_t count, const tn_value *values) {
    char name[8];
    for (uint32_t i = 0; i < count; i++) {
        snprintf(name, sizeof name, "y%u", i);
        tn_set_output(g, name, values[i]);
    }
}

/* --- bodies: (a, b, x) -> (a, b, rows...) ----------------------------------------------------------------------------------------- */

static void running_sum(void *ctx, tn_graph *g, const tn_value *v, tn_value *r) {
    (void)ctx;
    r[0] = tn_add(g, v[0], v[2]);
    r[1] = tn_max(g, tn_sub(g, v[1], v[2]), r[0]);
    r[2] = r[0]; /* stacked where it is carried */
    r[3] = tn_add(g, r[1], v[0]);
}

static void swapped(void *ctx, tn_graph *g, const tn_value *v, tn_value *r) {
    (void)ctx;
    r[0] = v[1];
    r[1] = tn_add(g, v[0], v[2]);
    r[2] = v[0];
    r[3] = v[2];
}

static void kept(void *ctx, tn_graph *g, const tn_value *v, tn_value *r) {
    r[0] = v[0];                   /* as it was */
    r[1] = *(const tn_value *)ctx; /* of outside */
    r[2] = tn_add(g, v[1], v[0]);
    r[3] = r[2]; /* stacked twice */
}

static void doubled(void *ctx, tn_graph *g, const tn_value *v, tn_value *r) {
    (void)ctx;
    r[0] = r[1] = tn_add(g, tn_add(g, v[0], v[1]), v[2]); /* carried twice */
    r[2] = tn_slice_axis(g, v[0], 0, 1, 1);
    r[3] = r[0];
}

/* What a trip hands on is a view of what it made. */
static void turned(void *ctx, tn_graph *g, const tn_value *v, tn_value *r) {
    (void)ctx;
    tn_value both[2] = {tn_add(g, v[0], v[2]), tn_sub(g, v[1], v[2])}, all = tn_concat(g, 0, 2, both);
    r[0] = tn_slice_axis(g, all, 0, 2, 2);
    r[1] = tn_slice_axis(g, all, 0, 0, 2);
    r[2] = tn_reverse(g, all, 1, (int[]){0});
    r[3] = tn_reduce_sum(g, all, 1, (int[]){0}, false);
}

static const struct {
    const char *name;
    void (*body)(void *ctx, tn_graph *g, const tn_value *v, tn_value *r);
} bodies[] = {
    {"running_sum", running_sum}, {"swapped", swapped}, {"kept", kept}, {"doubled", doubled}, {"turned", turned}};

/* Carried values begin contiguous, as one number that is repeated, or as a constant; what is scanned is whole, reversed, or a transposed part. */
static void test_scan(void **state) {
    (void)state;
    static const tn_dtype dtypes[] = {TN_F32, TN_I64, TN_F16, TN_U8};
    for (size_t b = 0; b < sizeof bodies / sizeof *bodies; b++)
        for (int d = 0; d < 4; d++)
            for (int form = 0; form < 3; form++)
                for (int64_t trips = 0; trips < 4; trips++) {
                    tn_graph *g = tn_graph_create();
                    tn_value x = tn_input(g, "x", dtypes[d], form < 2 ? TN_SHAPE("N", 2, 3) : TN_SHAPE(3, "N", 4));
                    tn_value a = tn_input(g, "a", dtypes[d], TN_SHAPE(2, 3)), out[4], rows = x;
                    tn_dim whole[2] = {tn_dim_const(g, 2), tn_dim_const(g, 3)};
                    tn_value first = tn_input(g, "b", dtypes[d], TN_SHAPE(3));
                    tn_value init[2] = {a, tn_broadcast(g, first, 2, whole)};
                    if (form == 1) {
                        rows = tn_reverse(g, x, 1, (int[]){0});
                        init[0] = tn_broadcast(g, tn_scalar_like(g, a, 2), 2, whole);
                    } else if (form == 2) {
                        rows = tn_transpose(g, tn_slice_axis(g, x, 2, 1, 2), (int[]){1, 2, 0});
                        init[0] = init[1];
                    }
                    built(tn_scan(g, 2, init, 1, &rows, bodies[b].body, &a, 2, out));
                    set_outputs(g, 4, out);
                    tn_set_output(g, "later", tn_add(g, out[0], out[1]));
                    found f = check(g, trips);
                    if (f.hosts || f.loops != 1)
                        fail_msg("%s: %u host instructions, %u loops", bodies[b].name, f.hosts, f.loops);
                }
}

/* A body whose results are made in their places has no kernel but those that compute. */
static void test_no_copies(void **state) {
    (void)state;
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("N", 2, 3)), a = tn_input(g, "a", TN_F32, TN_SHAPE(2, 3)), out[4];
    tn_value init[2] = {a, a};
    built(tn_scan(g, 2, init, 1, &x, running_sum, &a, 2, out));
    set_outputs(g, 4, out);
    assert_int_equal(check(g, 5).kernels, 3);
}

static void rows_of_rows(void *ctx, tn_graph *g, const tn_value *v, tn_value *r) {
    tn_value init[2] = {v[0], tn_neg(g, v[0])}, out[4];
    r[0] = v[0];
    if (tn_scan(g, 2, init, 1, &v[1], ctx, &r[0], 2, out) != TN_OK)
        return;
    r[0] = out[0];
    r[1] = out[2];
    r[2] = out[3];
}

static void test_nested(void **state) {
    (void)state;
    for (size_t b = 0; b < sizeof bodies / sizeof *bodies; b++)
        for (int64_t trips = 0; trips < 4; trips++) {
            tn_graph *g = tn_graph_create();
            tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("N", 3, 2, 3)), a = tn_input(g, "a", TN_F32, TN_SHAPE(2, 3));
            tn_value out[3];
            built(tn_scan(g, 1, &a, 1, &x, rows_of_rows, (void *)bodies[b].body, 2, out));
            set_outputs(g, 3, out);
            found f = check(g, trips);
            assert_int_equal(f.hosts, 0);
            assert_int_equal(f.loops, 2);
        }
}

static void below(void *ctx, tn_graph *g, const tn_value *v, tn_value *r) {
    r[0] = tn_less(g, v[0], *(const tn_value *)ctx);
}

/* The number of the trip, two that change places, one that stays. */
static void trip(void *ctx, tn_graph *g, const tn_value *v, tn_value *r) {
    (void)ctx;
    r[0] = tn_add(g, v[0], tn_scalar(g, TN_I64, 1));
    r[1] = v[2];
    r[2] = tn_add(g, v[1], tn_cast(g, v[0], TN_F32));
    r[3] = v[3];
    r[4] = tn_mul(g, v[1], v[3]);
}

/* Rows are stacked where it is known how many trips there are; else the condition alone knows. */
static void test_while(void **state) {
    (void)state;
    for (int stacked = 0; stacked < 2; stacked++)
        for (int64_t trips = 0; trips < 5; trips++) {
            tn_graph *g = tn_graph_create();
            tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("N", 3)), a = tn_reduce_sum(g, x, 1, (int[]){0}, false),
                     out[5];
            tn_value limit =
                stacked ? tn_slice_axis(g, tn_shape_of(g, x), 0, 0, 1) : tn_input(g, "n", TN_I64, TN_SCALAR);
            limit = tn_reshape_dims(g, limit, 0, NULL);
            tn_value init[4] = {tn_scalar(g, TN_I64, 0), a, tn_neg(g, a), a};
            built(tn_while(g, 4, init, NULL, below, trip, &limit, (uint32_t)stacked, out));
            set_outputs(g, 4 + (uint32_t)stacked, out);
            found f = check(g, trips);
            assert_int_equal(f.hosts, (uint32_t)stacked); /* the size as a value */
            assert_int_equal(f.loops, 1);
        }
}

/* The trips of a loop that counts them are known when it begins: no condition is computed, nor the number that nobody reads. */
static void doubling(void *ctx, tn_graph *g, const tn_value *v, tn_value *r) {
    (void)ctx;
    r[0] = tn_add(g, v[0], tn_scalar(g, TN_I64, 1));
    r[1] = tn_min(g, tn_add(g, v[1], v[1]), tn_scalar(g, TN_F32, 1000));
}
static void by_two(void *ctx, tn_graph *g, const tn_value *v, tn_value *r) {
    doubling(ctx, g, v, r);
    r[0] = tn_add(g, v[0], tn_scalar(g, TN_I64, 2));
}

static void test_counted(void **state) {
    (void)state;
    for (int form = 0; form < 4; form++)
        for (int64_t trips = 0; trips < 4; trips++) {
            tn_graph *g = tn_graph_create();
            tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE(3)), out[2], n = tn_input(g, "n", TN_I64, TN_SCALAR);
            tn_value limit = tn_sub(g, n, tn_scalar(g, TN_I64, 3 - trips)); /* n is 3; less than 0 for no trip, too */
            tn_value init[2] = {tn_scalar(g, TN_I64, form == 2), x};
            built(tn_while(g, 2, init, NULL, below, form == 3 ? by_two : doubling, &limit, 0, out));
            set_outputs(g, form == 1 ? 1 : 0, out);
            tn_set_output(g, "x", out[1]);
            uint32_t kernels = check(g, 0).kernels;
            assert_int_equal(kernels, form == 0 ? 2 : form == 1 ? 3 : 4); /* one of them makes the limit */
        }
}

static void below_aloud(void *ctx, tn_graph *g, const tn_value *v, tn_value *r) {
    tn_print(g, v[1], "before");
    below(ctx, g, v, r);
}

static void count_line(void *ctx, const char *text) {
    *(int *)ctx += strstr(text, "before") != NULL;
}

/* A condition that prints is computed before every trip, whatever it decides by. */
static void test_condition_that_prints(void **state) {
    (void)state;
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE(3)), out[2], n = tn_input(g, "n", TN_I64, TN_SCALAR);
    tn_value init[2] = {tn_scalar(g, TN_I64, 0), x};
    built(tn_while(g, 2, init, NULL, below_aloud, doubling, &n, 0, out));
    tn_set_output(g, "y", out[1]);
    tn_lower_options o = {.level = 1, .isa = tn_cpu_best(), .kernels = tn_kernels()};
    tn_plan *p = tn_lower(NULL, g, &o);
    assert_non_null(p);
    int64_t three = 3;
    int lines = 0;
    tn_object *in[2] = {tn_tensor_object(counted(TN_F32, 1, &three, 0)), tn_tensor_object(counted(TN_I64, 0, NULL, 3))},
              *got = NULL;
    tn_execute_options run = {.log = count_line, .log_ctx = &lines};
    assert_int_equal(tn_execute(p, &run, in, &got), TN_OK);
    assert_int_equal(lines, 4);
    tn_object_destroy(got);
    tn_object_destroy(in[0]);
    tn_object_destroy(in[1]);
    tn_plan_destroy(p);
}

/* What is scanned together has one length. */
static void add_rows(void *ctx, tn_graph *g, const tn_value *v, tn_value *r) {
    (void)ctx;
    r[0] = tn_add(g, v[0], tn_mul(g, v[1], v[2]));
}

static void test_lengths_that_differ(void **state) {
    (void)state;
    tn_graph *g = tn_graph_create();
    tn_value xs[2] = {tn_input(g, "x", TN_F32, TN_SHAPE("N", 3)), tn_input(g, "y", TN_F32, TN_SHAPE("M", 3))}, out;
    tn_value init = tn_reduce_sum(g, xs[0], 1, (int[]){0}, false);
    built(tn_scan(g, 1, &init, 2, xs, add_rows, NULL, 0, &out));
    tn_set_output(g, "out", out);
    tn_lower_options o = {.level = 1, .isa = tn_cpu_best(), .kernels = tn_kernels()};
    tn_plan *p = tn_lower(NULL, g, &o);
    assert_non_null(p);
    for (int64_t other = 2; other < 5; other++) {
        tn_object *in[2] = {tn_tensor_object(counted(TN_F32, 2, (int64_t[]){3, 3}, 0)),
                            tn_tensor_object(counted(TN_F32, 2, (int64_t[]){other, 3}, 1))},
                  *got = NULL;
        tn_execute_options x = {0};
        assert_int_equal(tn_execute(p, &x, in, &got), other == 3 ? TN_OK : TN_ERR_INPUT);
        tn_object_destroy(got);
        tn_object_destroy(in[0]);
        tn_object_destroy(in[1]);
    }
    tn_plan_destroy(p);
}

/* --- loops side by side ------------------------------------------------------------------------------------------------------------- */

static void decay(void *ctx, tn_graph *g, const tn_value *v, tn_value *r) {
    (void)ctx;
    r[0] = tn_sub(g, tn_add(g, v[0], v[1]), tn_max(g, v[0], tn_scalar(g, TN_F32, 9)));
    r[1] = tn_mul(g, r[0], v[1]);
}

typedef struct counter {
    _Atomic int left;
} counter;

static bool runs_out(void *ctx) {
    counter *c = ctx;
    return --c->left < 0;
}

/* Two loops over the same rows, one of them in reverse, then a third that needs the first: what waits, and for what. */
static tn_graph *three_loops(void) {
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("N", 64, 64)), zero = tn_reduce_max(g, x, 1, (int[]){0}, false);
    tn_value back = tn_reverse(g, x, 1, (int[]){0}), a[2], b[2], c[2];
    built(tn_scan(g, 1, &zero, 1, &x, decay, NULL, 1, a));
    tn_value between = tn_neg(g, zero);
    built(tn_scan(g, 1, &between, 1, &back, decay, NULL, 1, b));
    built(tn_scan(g, 1, &a[0], 1, &x, decay, NULL, 1, c));
    tn_value all[6] = {a[0], a[1], b[0], tn_reverse(g, b[1], 1, (int[]){0}), c[0], c[1]};
    set_outputs(g, 6, all);
    return g;
}

static void test_side_by_side(void **state) {
    (void)state;
    int64_t dims[3] = {150, 64, 64};
    tn_graph *g = three_loops();
    tn_object *in = tn_tensor_object(counted(TN_F32, 3, dims, 0)), *want[6], *got[6];
    tn_value input = tn_graph_input(g, 0), outputs[6];
    for (uint32_t i = 0; i < 6; i++)
        outputs[i] = tn_graph_output(g, i);
    assert_int_equal(tn_interp_run(g, NULL, 1, &input, &in, 6, outputs, want), TN_OK);
    tn_lower_options o = {.level = 1, .isa = tn_cpu_best(), .kernels = tn_kernels()};
    tn_plan *p = tn_lower(NULL, g, &o);
    assert_non_null(p);
    assert_int_equal(p->fork.len, 1);
    assert_int_equal(p->fork.data[0].parts, 2);
    for (int threads = 1; threads < 4; threads++) {
        tn_pool *pool = tn_pool_create(NULL, threads);
        tn_frame *frame = tn_frame_create(p, NULL);
        assert_true(pool && frame);
        for (int run = 0; run < 20; run++) {
            /* some runs are cancelled within the loops; the frame stays as good as new */
            counter c = {run % 3 == 1 ? 40 * run : 1 << 20};
            tn_execute_options x = {.pool = pool, .cancelled = runs_out, .cancel_ctx = &c};
            tn_status status = tn_frame_run(frame, &x, &in, NULL, got);
            assert_int_equal(status, run % 3 == 1 ? TN_ERR_CANCELLED : TN_OK);
            for (uint32_t i = 0; i < 6 && status == TN_OK; i++) {
                assert_true(tn_object_equal(want[i], got[i]));
                tn_object_destroy(got[i]);
            }
        }
        tn_frame_destroy(frame);
        tn_pool_destroy(pool);
    }
    tn_plan_destroy(p);
    for (uint32_t i = 0; i < 6; i++)
        tn_object_destroy(want[i]);
    tn_object_destroy(in);
}

/* What looks at a loop before it has run, or prints in it, keeps it in its turn. */
static void prints(void *ctx, tn_graph *g, const tn_value *v, tn_value *r) {
    decay(ctx, g, v, r);
    r[0] = tn_print(g, r[0], "row");
}

static void test_in_turn(void **state) {
    (void)state;
    for (int form = 0; form < 3; form++) {
        tn_graph *g = tn_graph_create();
        tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("N", 2, 3)), zero = tn_reduce_max(g, x, 1, (int[]){0}, false);
        tn_value a[2], b[2];
        built(tn_scan(g, 1, &zero, 1, &x, form == 1 ? prints : decay, NULL, 1, a));
        tn_value next = form == 2 ? tn_neg(g, a[0]) : zero;
        built(tn_scan(g, 1, &next, 1, &x, decay, NULL, 1, b));
        tn_value all[4] = {a[0], a[1], b[0], b[1]};
        set_outputs(g, 4, all);
        tn_lower_options o = {.level = 1, .isa = tn_cpu_best(), .kernels = tn_kernels()};
        tn_plan *p = tn_lower(NULL, tn_graph_clone(g, NULL, NULL), &o);
        assert_non_null(p);
        assert_int_equal(p->fork.len, form == 0);
        tn_plan_destroy(p);
        check(g, 3);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_scan),
                                       cmocka_unit_test(test_no_copies),
                                       cmocka_unit_test(test_nested),
                                       cmocka_unit_test(test_while),
                                       cmocka_unit_test(test_counted),
                                       cmocka_unit_test(test_condition_that_prints),
                                       cmocka_unit_test(test_lengths_that_differ),
                                       cmocka_unit_test(test_side_by_side),
                                       cmocka_unit_test(test_in_turn)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
