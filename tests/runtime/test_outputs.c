/* Outputs that the caller gives memory for: written in place; shared memory, sizes that do not fit and too little room are refused;
   inputs that are donated. Runs that are cancelled. Slots between zones. */
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>
#include <tenon/build.h>

#include "base/os.h"
#include "support/nets.h"

typedef struct running {
    tn_graph *graph;
    tn_model *model;
    tn_session *session;
} running;

static running start(tn_graph *g, const tn_session_options *options) {
    running r = {.graph = g};
    if (tn_graph_check(g) != TN_OK)
        fail_msg("%s", tn_error_message());
    r.model = tn_model_from_graph(g, NULL);
    r.session = tn_session_create(r.model, options);
    if (!r.session)
        fail_msg("%s", tn_error_message());
    return r;
}

static void stop(running *r) {
    tn_session_destroy(r->session);
    tn_model_destroy(r->model);
    tn_graph_destroy(r->graph);
}

static tn_status run(const running *r, tn_tensor *x, const char *name, tn_tensor **y) {
    return tn_session_run(r->session, 1, (const tn_binding[]){{.name = "x", .tensor = x}}, 1,
                          (const tn_output[]){{.name = name, .tensor = y}});
}

static void expect_error(tn_status got, tn_status want, const char *says) {
    if (got != want || !strstr(tn_error_message(), says))
        fail_msg("%s: '%s', not '%s'", tn_status_name(got), tn_error_message(), says);
}

static const tn_backend backends[] = {TN_BACKEND_CPU, TN_BACKEND_REFERENCE};

/* p = exp(x) + 1, q = transposed, r = the first row of x, s = x */
static tn_graph *several(void) {
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("N", 4));
    tn_value p = tn_add(g, tn_exp(g, x), tn_scalar(g, TN_F32, 1));
    tn_set_output(g, "p", p);
    tn_set_output(g, "q", tn_transpose(g, p, NULL));
    tn_set_output(g, "r", tn_slice_axis(g, x, 0, 0, 1));
    tn_set_output(g, "s", x);
    return g;
}

static void test_in_place(void **state) {
    (void)state;
    for (int b = 0; b < 2; b++) {
        running r = start(several(), TN_OPTIONS(tn_session_options, .backend = backends[b]));
        tn_tensor *x = tn_tensor_create(TN_F32, 2, (const int64_t[]){3, 4}), *want[4] = {0}, *given[4];
        for (int i = 0; i < 12; i++)
            tn_tensor_set_f64(x, i, i);
        const char *const names[] = {"p", "q", "r", "s"};
        tn_output out[4];
        for (int i = 0; i < 4; i++)
            out[i] = (tn_output){.name = names[i], .tensor = &want[i]};
        assert_int_equal(tn_session_run(r.session, 1, &(tn_binding){.name = "x", .tensor = x}, 4, out), TN_OK);
        /* contiguous, strided, on odd bytes: nothing beside it is written */
        char memory[4][600];
        for (int way = 0; way < 3; way++) {
            memset(memory, 0x77, sizeof memory);
            for (int i = 0; i < 4; i++) {
                const int64_t *dims = tn_tensor_dims(want[i]);
                const int64_t wide[2] = {2 * dims[1] + 1, 2};
                void *data = memory[i] + (way == 2 ? 65 : 64);
                given[i] = way == 1 ? tn_tensor_wrap_strided(TN_F32, 2, dims, wide, data)
                                    : tn_tensor_wrap(TN_F32, 2, dims, data);
                out[i].tensor = &given[i];
            }
            for (int again = 0; again < 2; again++) {
                tn_tensor *before[4];
                memcpy(before, given, sizeof before);
                if (tn_session_run(r.session, 1, &(tn_binding){.name = "x", .tensor = x}, 4, out) != TN_OK)
                    fail_msg("%s", tn_error_message());
                assert_memory_equal(before, given, sizeof before);
            }
            for (int i = 0; i < 4; i++) {
                for (int64_t k = 0; k < tn_tensor_count(want[i]); k++)
                    assert_true(tn_tensor_get_f64(want[i], k) == tn_tensor_get_f64(given[i], k));
                size_t bytes = way == 1 ? (size_t)(2 * tn_tensor_dims(want[i])[1] + 1) *
                                                  (size_t)(tn_tensor_dims(want[i])[0] - 1) * 4 +
                                              (size_t)(2 * (tn_tensor_dims(want[i])[1] - 1) + 1) * 4
                                        : tn_tensor_bytes(want[i]);
                for (size_t k = 0; k < sizeof memory[i]; k++)
                    if (k < (way == 2 ? 65u : 64u) || k >= (way == 2 ? 65u : 64u) + bytes)
                        assert_int_equal(memory[i][k], 0x77);
                if (way == 1)
                    assert_int_equal(memory[i][64 + 4], 0x77); /* between elements */
                tn_tensor_destroy(given[i]);
            }
        }
        for (int i = 0; i < 4; i++)
            tn_tensor_destroy(want[i]);
        tn_tensor_destroy(x);
        stop(&r);
    }
}

static void test_refused(void **state) {
    (void)state;
    for (int b = 0; b < 2; b++) {
        running r = start(several(), TN_OPTIONS(tn_session_options, .backend = backends[b]));
        float memory[64] = {0};
        const int64_t dims[] = {3, 4}, turned[] = {4, 3}, wrong[] = {3, 5};
        tn_tensor *x = tn_tensor_wrap(TN_F32, 2, dims, memory), *over = tn_tensor_wrap(TN_F32, 2, dims, memory + 11),
                  *behind = tn_tensor_wrap(TN_F32, 2, dims, memory + 12),
                  *touching = tn_tensor_wrap(TN_F32, 2, turned, memory + 23),
                  *large = tn_tensor_wrap(TN_F32, 2, wrong, memory + 12),
                  *ints = tn_tensor_wrap(TN_I32, 2, dims, memory + 12), *y = NULL;
        expect_error(run(&r, x, "p", &over), TN_ERR_USAGE, "shares memory with input 'x'");
        expect_error(run(&r, x, "p", &x), TN_ERR_USAGE, "shares memory with input 'x'");
        expect_error(run(&r, x, "p", &large), TN_ERR_INPUT, "is f32[3,5], the result is f32[3,4]");
        expect_error(run(&r, x, "p", &ints), TN_ERR_INPUT, "is i32[3,4], the result is f32[3,4]");
        expect_error(run(&r, x, "r", &behind), TN_ERR_INPUT, "the result is f32[1,4]");
        const tn_output two[] = {{.name = "p", .tensor = &behind}, {.name = "q", .tensor = &touching}};
        expect_error(tn_session_run(r.session, 1, &(tn_binding){.name = "x", .tensor = x}, 2, two), TN_ERR_USAGE,
                     "'p' and 'q' share memory");
        for (int i = 12; i < 64; i++)
            assert_true(memory[i] == 0);
        assert_int_equal(run(&r, x, "p", &behind), TN_OK);
        assert_true(memory[12] == 2 && memory[23] == 2 && memory[24] == 0);
        assert_int_equal(run(&r, x, "p", &y), TN_OK); /* and usable afterwards */
        const char *const none[] = {"z", NULL};
        expect_error(tn_session_run_with(r.session, 1, &(tn_binding){.name = "x", .tensor = x}, 1,
                                         &(tn_output){.name = "p", .tensor = &behind},
                                         TN_OPTIONS(tn_run_options, .donate = none)),
                     TN_ERR_USAGE, "'z' is donated");
        tn_tensor *all[] = {x, over, behind, touching, large, ints, y};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
            tn_tensor_destroy(all[i]);
        stop(&r);
    }
}

/* One piece of memory for results of any size: the true shape each time; what does not fit writes nothing. */
static void test_room(void **state) {
    (void)state;
    enum { BYTES = 1 << 20 };
    tn_tensor *block = tn_tensor_create(TN_U8, 1, (const int64_t[]){BYTES + 4096});
    char *memory = tn_tensor_data(block);
    for (int b = 0; b < 2; b++)
        for (int view = 0; view < 2; view++) {
            tn_graph *g = tn_graph_create();
            tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("N", 2));
            tn_set_output(g, "y", view ? tn_transpose(g, x, NULL) : tn_neg(g, x));
            running r = start(g, TN_OPTIONS(tn_session_options, .backend = backends[b]));
            memset(memory, 0x55, BYTES + 4096);
            tn_tensor *y = tn_tensor_wrap_room(TN_F32, memory, BYTES), *given = y;
            const int64_t sizes[] = {10, 1000, 10000, 0, 131072, 131073, 7};
            for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
                tn_tensor *x_now = tn_tensor_create(TN_F32, 2, (const int64_t[]){sizes[i], 2});
                for (int64_t k = 0; k < tn_tensor_count(x_now); k++)
                    ((float *)tn_tensor_data(x_now))[k] = (float)(k + 1);
                tn_status status = run(&r, x_now, "y", &y);
                if (sizes[i] > 131072) {
                    expect_error(status, TN_ERR_INPUT, "output 'y'");
                    assert_int_equal(memory[BYTES], 0x55);
                } else {
                    if (status != TN_OK)
                        fail_msg("%s", tn_error_message());
                    assert_ptr_equal(y, given);
                    assert_int_equal(tn_tensor_rank(y), 2);
                    assert_int_equal(tn_tensor_dims(y)[view], sizes[i]);
                    assert_int_equal(tn_tensor_dims(y)[1 - view], 2);
                    assert_ptr_equal(tn_tensor_data(y), memory);
                    if (sizes[i])
                        assert_true(((float *)(void *)memory)[1] == (view ? 3 : -2));
                    for (int k = 0; k < 4096; k++)
                        assert_int_equal(memory[BYTES + k], 0x55);
                }
                tn_tensor_destroy(x_now);
            }
            tn_tensor_destroy(y);
            stop(&r);
        }
    tn_tensor_destroy(block);
    assert_null(tn_tensor_wrap_room(TN_STRING, memory, 64));
    assert_null(tn_tensor_wrap_room(TN_F32, NULL, 64));
}

/* A cache that a step reads and writes anew, in the same memory; and outputs that trade places with inputs. */
static void test_donated(void **state) {
    (void)state;
    for (int b = 0; b < 2; b++)
        for (int level = 0; level < 3; level++) {
            tn_graph *g = tn_graph_create();
            tn_value cache = tn_input(g, "cache", TN_F32, TN_SHAPE(6, 4)),
                     row = tn_input(g, "x", TN_F32, TN_SHAPE(1, 4)), at = tn_input(g, "at", TN_I64, TN_SHAPE(2));
            tn_value now = tn_dynamic_update_slice(g, cache, row, at);
            tn_set_output(g, "now", now);
            tn_set_output(g, "sum", tn_reduce_sum(g, now, 1, (const int[]){0}, false));
            tn_set_output(g, "before", tn_reduce_sum(g, cache, 1, (const int[]){0}, false));
            running r = start(
                g, TN_OPTIONS(tn_session_options, .backend = backends[b], .level = (tn_level)(TN_LEVEL_0 + level)));
            tn_tensor *c = tn_tensor_create(TN_F32, 2, (const int64_t[]){6, 4}),
                      *x = tn_tensor_create(TN_F32, 2, (const int64_t[]){1, 4}),
                      *p = tn_tensor_create(TN_I64, 1, (const int64_t[]){2}), *sum = NULL, *before = NULL;
            for (int step = 0; step < 6; step++) {
                tn_tensor_set_f64(p, 0, step);
                for (int k = 0; k < 4; k++)
                    tn_tensor_set_f64(x, k, 10 * step + k);
                const tn_binding in[] = {
                    {.name = "cache", .tensor = c}, {.name = "x", .tensor = x}, {.name = "at", .tensor = p}};
                const tn_output out[] = {{.name = "now", .tensor = &c},
                                         {.name = "sum", .tensor = &sum},
                                         {.name = "before", .tensor = &before}};
                const char *const donate[] = {"cache", NULL};
                if (tn_session_run_with(r.session, 3, in, 3, out, TN_OPTIONS(tn_run_options, .donate = donate)) !=
                    TN_OK)
                    fail_msg("%s", tn_error_message());
                for (int k = 0; k < 4; k++) {
                    double all = 0;
                    for (int i = 0; i < 6; i++) {
                        double want = i <= step ? 10 * i + k : 0;
                        assert_true(tn_tensor_get_f64(c, 4 * i + k) == want);
                        all += want;
                    }
                    assert_true(tn_tensor_get_f64(sum, k) == all);
                    assert_true(tn_tensor_get_f64(before, k) == all - 10 * step - k);
                }
            }
            tn_tensor *gone[] = {c, x, p, sum, before};
            for (size_t i = 0; i < sizeof gone / sizeof *gone; i++)
                tn_tensor_destroy(gone[i]);
            stop(&r);

            /* each output in the other's input; then all in each other's, shifted by one element */
            g = tn_graph_create();
            tn_value a = tn_input(g, "a", TN_F32, TN_SHAPE("N")), v = tn_input(g, "b", TN_F32, TN_SHAPE("N"));
            tn_set_output(g, "p", v);
            tn_set_output(g, "q", a);
            tn_set_output(g, "s", tn_add(g, tn_mul(g, a, a), v));
            r = start(g,
                      TN_OPTIONS(tn_session_options, .backend = backends[b], .level = (tn_level)(TN_LEVEL_0 + level)));
            for (int shift = 0; shift < 2; shift++) {
                float memory[400];
                const int64_t n = 100;
                for (int i = 0; i < 400; i++)
                    memory[i] = (float)i;
                tn_tensor *in_a = tn_tensor_wrap(TN_F32, 1, &n, memory),
                          *in_b = tn_tensor_wrap(TN_F32, 1, &n, memory + 200),
                          *p_out = tn_tensor_wrap(TN_F32, 1, &n, memory + shift),
                          *q_out = tn_tensor_wrap(TN_F32, 1, &n, memory + 200 - 2 * shift), *s_out = NULL;
                const tn_binding in[] = {{.name = "a", .tensor = in_a}, {.name = "b", .tensor = in_b}};
                const tn_output out[] = {
                    {.name = "p", .tensor = &p_out}, {.name = "q", .tensor = &q_out}, {.name = "s", .tensor = &s_out}};
                const char *const donate[] = {"b", "a", NULL};
                if (tn_session_run_with(r.session, 2, in, 3, out, TN_OPTIONS(tn_run_options, .donate = donate)) !=
                    TN_OK)
                    fail_msg("%s", tn_error_message());
                for (int i = 0; i < n; i++) {
                    assert_true(tn_tensor_get_f64(p_out, i) == 200 + i);
                    assert_true(tn_tensor_get_f64(q_out, i) == i);
                    assert_true(tn_tensor_get_f64(s_out, i) == i * i + 200 + i);
                }
                tn_tensor *all[] = {in_a, in_b, p_out, q_out, s_out};
                for (int i = 0; i < 5; i++)
                    tn_tensor_destroy(all[i]);
            }
            stop(&r);
        }
}

/* --- cancelling --------------------------------------------------------------------------------------------------------------- */

static void below(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    results[0] = tn_less(g, args[0], *(const tn_value *)ctx);
}
static void trip(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)ctx;
    results[0] = tn_add(g, args[0], tn_constant_i64(g, 0, 1, (const int64_t[]){1}));
}
/* x trips; 1 as a result of a short way */
static tn_graph *long_loop(void) {
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", TN_I64, TN_SCALAR), y, zero = tn_constant_i64(g, 0, 1, (const int64_t[]){0});
    assert_int_equal(tn_while(g, 1, &zero, NULL, below, trip, &x, 0, &y), TN_OK);
    tn_set_output(g, "y", y);
    return g;
}

typedef struct job {
    const running *r;
    tn_cancel *cancel;
    tn_status status;
    double ended;
} job;

static void *run_long(void *arg) {
    job *j = arg;
    tn_tensor *x = tn_tensor_create(TN_I64, 0, NULL), *y = NULL;
    tn_tensor_set_f64(x, 0, 1e9);
    j->status =
        tn_session_run_with(j->r->session, 1, &(tn_binding){.name = "x", .tensor = x}, 1,
                            &(tn_output){.name = "y", .tensor = &y}, TN_OPTIONS(tn_run_options, .cancel = j->cancel));
    j->ended = tn_clock();
    tn_tensor_destroy(x);
    tn_tensor_destroy(y);
    return NULL;
}

static void wait_ms(long ms) {
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

static void test_cancelled(void **state) {
    (void)state;
    for (int b = 0; b < 2; b++) {
        running r = start(long_loop(), TN_OPTIONS(tn_session_options, .backend = backends[b]));
        tn_cancel *cancel = tn_cancel_create();
        job j = {.r = &r, .cancel = cancel};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, run_long, &j), 0);
        wait_ms(10);
        double set = tn_clock();
        tn_cancel_set(cancel);
        pthread_join(thread, NULL);
        assert_int_equal(j.status, TN_ERR_CANCELLED);
        if (j.ended - set > 0.5) /* 20 ms on a quiet machine */
            fail_msg("it ended %d ms after it was cancelled", (int)(1e3 * (j.ended - set)));
        tn_tensor *x = tn_tensor_create(TN_I64, 0, NULL), *y = NULL;
        tn_tensor_set_f64(x, 0, 3);
        expect_error(tn_session_run_with(r.session, 1, &(tn_binding){.name = "x", .tensor = x}, 1,
                                         &(tn_output){.name = "y", .tensor = &y},
                                         TN_OPTIONS(tn_run_options, .cancel = cancel)),
                     TN_ERR_CANCELLED, "cancelled"); /* it stays set */
        tn_cancel_reset(cancel);
        assert_int_equal(run(&r, x, "y", &y), TN_OK); /* the session stays usable */
        assert_int_equal(tn_tensor_get_i64(y, 0), 3);
        tn_tensor_destroy(x);
        tn_tensor_destroy(y);
        stop(&r);
        tn_cancel_destroy(cancel);
    }
}

static void test_destroyed_while_running(void **state) {
    (void)state;
    for (int b = 0; b < 2; b++) {
        running r = start(long_loop(),
                          TN_OPTIONS(tn_session_options, .backend = backends[b], .threads = 2, .oversubscribe = true));
        job j[3];
        pthread_t thread[3];
        for (int i = 0; i < 3; i++) {
            j[i] = (job){.r = &r};
            assert_int_equal(pthread_create(&thread[i], NULL, run_long, &j[i]), 0);
        }
        wait_ms(50);
        tn_session_destroy(r.session);
        for (int i = 0; i < 3; i++) {
            pthread_join(thread[i], NULL);
            assert_int_equal(j[i].status, TN_ERR_CANCELLED);
        }
        tn_model_destroy(r.model);
        tn_graph_destroy(r.graph);
    }
}

/* --- zones and poison ------------------------------------------------------------------------------------------------------------- */

static void test_guarded(void **state) {
    (void)state;
    for (int kind = 0; kind < NET_KINDS; kind++)
        for (int level = 0; level < 3; level++)
            for (int threads = 1; threads <= 2; threads++) {
                running plain = start(net_build(NULL, (net_kind)kind, -1, -1),
                                      TN_OPTIONS(tn_session_options, .level = (tn_level)(TN_LEVEL_0 + level),
                                                 .threads = threads, .oversubscribe = true));
                running guarded = {
                    .session = tn_session_create(plain.model, TN_OPTIONS(tn_session_options, .guard = true,
                                                                         .threads = threads, .oversubscribe = true,
                                                                         .level = (tn_level)(TN_LEVEL_0 + level)))};
                /* A, B, A */
                for (int i = 0; i < 3; i++) {
                    tn_tensor *x = net_input((net_kind)kind, i == 1 ? 2 : 5, i == 1 ? 11 : 7, (uint64_t)i % 2),
                              *want = NULL, *got = NULL;
                    if (run(&plain, x, "y", &want) != TN_OK || run(&guarded, x, "y", &got) != TN_OK)
                        fail_msg("%s: %s", net_names[kind], tn_error_message());
                    assert_int_equal(tn_tensor_bytes(got), tn_tensor_bytes(want));
                    assert_memory_equal(tn_tensor_data(got), tn_tensor_data(want), tn_tensor_bytes(want));
                    tn_tensor_destroy(x);
                    tn_tensor_destroy(want);
                    tn_tensor_destroy(got);
                }
                tn_session_destroy(guarded.session);
                stop(&plain);
            }
}

/* A result in another shape is handed over as a kernel made it: no more memory than its own. With `both`, that which it has the elements of
   is asked for, too, and one of them is a copy. */
static void test_other_shape(void **state) {
    (void)state;
    enum { N = 20000 };
    for (int both = 0; both < 2; both++)
        for (int named = 0; named < 2; named++) {
            tn_graph *g = tn_graph_create();
            tn_value x = tn_input(g, "x", TN_F32, named ? TN_SHAPE("N", 4) : TN_SHAPE(N, 4)), p = tn_exp(g, x);
            if (both)
                tn_set_output(g, "p", p);
            tn_set_output(g, "y", tn_reshape(g, p, TN_SHAPE(-1, 2, 2)));
            assert_int_equal(tn_graph_check(g), TN_OK);
            tn_heap *heap = tn_heap_create(NULL);
            tn_model *model = tn_model_from_graph(g, TN_OPTIONS(tn_model_options, .heap = heap));
            tn_session *s = tn_session_create(model, TN_OPTIONS(tn_session_options, .threads = 1));
            tn_tensor *in = tn_tensor_create(TN_F32, 2, (const int64_t[]){N, 4}), *out[2] = {NULL},
                      *mine = tn_tensor_create(TN_F32, 3, (const int64_t[]){N, 2, 2});
            for (int64_t i = 0; i < 4 * N; i++)
                tn_tensor_set_f64(in, i, (double)(i % 100) / 100);
            for (int time = 0; time < 3; time++) {
                tn_tensor_destroy(out[0]);
                tn_tensor_destroy(out[1]);
                out[1] = NULL;
                out[0] = time == 2 ? mine : NULL; /* the last time where the caller says */
                size_t before = tn_heap_in_use(heap);
                tn_heap_reset_peak(heap);
                if (tn_session_run(s, 1, (const tn_binding[]){{.name = "x", .tensor = in}}, both ? 2 : 1,
                                   (const tn_output[]){{.name = "y", .tensor = &out[0]},
                                                       {.name = "p", .tensor = &out[1]}}) != TN_OK)
                    fail_msg("%s", tn_error_message());
                if (time == 1 && !both)
                    assert_true(tn_heap_peak(heap) - before < 3 * tn_tensor_bytes(in) / 2);
                assert_int_equal(tn_tensor_rank(out[0]), 3);
                assert_int_equal(tn_tensor_dims(out[0])[0], N);
                if (both)
                    assert_memory_equal(tn_tensor_data(out[0]), tn_tensor_data(out[1]), tn_tensor_bytes(in));
                for (int64_t i = 0; i < 4 * N; i += 997)
                    assert_true(fabs(tn_tensor_get_f64(out[0], i) - exp((double)(i % 100) / 100)) < 1e-5);
            }
            tn_tensor_destroy(in);
            tn_tensor_destroy(out[0]);
            tn_tensor_destroy(out[1]);
            tn_session_destroy(s);
            tn_model_destroy(model);
            assert_int_equal(tn_heap_in_use(heap), 0);
            tn_heap_destroy(heap);
            tn_graph_destroy(g);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_in_place),  cmocka_unit_test(test_refused),
                                       cmocka_unit_test(test_room),      cmocka_unit_test(test_donated),
                                       cmocka_unit_test(test_cancelled), cmocka_unit_test(test_destroyed_while_running),
                                       cmocka_unit_test(test_guarded),   cmocka_unit_test(test_other_shape)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
