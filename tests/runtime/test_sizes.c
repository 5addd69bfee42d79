/* Sizes that do not fit fail where they are needed, and there in the same words by both back ends: in the open, in the branch that
   is taken, in a trip that is made. A few hundred random graphs of that kind; nightly/mismatch tries more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <tenon/build.h>
#include <tenon/tenon.h>

#include "support/mismatch.h"
#include "support/model_runs.h"

/* Inputs a[N], b[M], c[K, 4], flag, trips. */
typedef struct sizes {
    tn_graph *g;
    tn_value a, b, c, flag, trips;
    int kind; /* of body_of */
} sizes;

static sizes start(void) {
    sizes s = {.g = tn_graph_create()};
    s.a = tn_input(s.g, "a", TN_F32, TN_SHAPE("N"));
    s.b = tn_input(s.g, "b", TN_F32, TN_SHAPE("M"));
    s.c = tn_input(s.g, "c", TN_F32, TN_SHAPE("K", 4));
    s.flag = tn_input(s.g, "flag", TN_BOOL, TN_SCALAR);
    s.trips = tn_input(s.g, "trips", TN_I64, TN_SCALAR);
    return s;
}

enum { KINDS = 10 };
/* What does not fit when N = 2, M = 3, K = 2, and fits when N = M = 4, K = 5. */
static tn_value body_of(sizes *s) {
    tn_graph *g = s->g;
    tn_dim n = tn_value_dim(g, s->a, 0), m = tn_value_dim(g, s->b, 0), two = tn_dim_const(g, 2);
    const int64_t window[2] = {4, 1};
    tn_value parts[2] = {tn_reshape_dims(g, s->a, 2, (tn_dim[]){tn_dim_const(g, 1), n}), s->c};
    switch (s->kind) {
    case 0: return tn_add(g, s->a, s->b);
    case 1: return tn_matmul(g, s->a, s->b);
    case 2: return tn_concat(g, 0, 2, parts);
    case 3: return tn_reshape_dims(g, s->a, 2, (tn_dim[]){two, two});
    case 4: return tn_broadcast(g, s->a, 1, (tn_dim[]){tn_dim_const(g, 4)});
    case 5: return tn_window(g, "max", s->c, window, NULL, NULL, NULL, NULL);
    case 6: return tn_slice(g, s->c, (tn_dim[]){tn_dim_const(g, 3), tn_dim_const(g, 0)}, (tn_dim[]){two, m}, NULL);
    case 7: return tn_reshape_dims(g, s->b, 2, (tn_dim[]){two, tn_dim_floordiv(g, m, tn_dim_sub(g, n, two))});
    case 8: return tn_fit(g, s->b, &n);
    default: { /* nothing, from M / (N - 2) on */
        tn_dim none = tn_dim_const(g, 0), four = tn_dim_const(g, 4);
        return tn_slice(g, s->c, (tn_dim[]){tn_dim_floordiv(g, m, tn_dim_sub(g, n, two)), none}, (tn_dim[]){none, four},
                        NULL);
    }
    }
}

static void misfit(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)args;
    results[0] = tn_reduce_sum(g, body_of(ctx), TN_ALL_AXES, false);
}
static void plain(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)args;
    results[0] = tn_reduce_sum(g, ((sizes *)ctx)->a, TN_ALL_AXES, false);
}
static void nested(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    sizes *s = ctx;
    (void)args;
    tn_if(g, s->flag, misfit, plain, ctx, 1, results);
}
static void nested_not(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    sizes *s = ctx;
    (void)args;
    tn_if(g, tn_not(g, s->flag), plain, misfit, ctx, 1, results);
}
static void below(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    results[0] = tn_less(g, args[0], ((sizes *)ctx)->trips);
}
static void trip(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    tn_value y;
    misfit(ctx, g, args, &y);
    results[0] = tn_add(g, args[0], tn_constant_i64(g, 0, 1, (int64_t[]){1}));
    results[1] = tn_add(g, args[1], y);
}
static void trip_of_branch(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    tn_value y;
    nested(ctx, g, args, &y);
    results[0] = tn_add(g, args[0], tn_constant_i64(g, 0, 1, (int64_t[]){1}));
    results[1] = tn_add(g, args[1], y);
}

enum { FORMS = 6 };
static tn_value form(sizes *s, int which) {
    tn_value y, out[2], init[2] = {tn_constant_i64(s->g, 0, 1, (int64_t[]){0}), tn_scalar(s->g, TN_F32, 1)};
    tn_status status = TN_OK;
    switch (which) {
    case 0: misfit(s, s->g, NULL, &y); return y;
    case 1: status = tn_if(s->g, s->flag, misfit, plain, s, 1, &y); break;
    case 2: status = tn_if(s->g, s->flag, nested, plain, s, 1, &y); break;
    case 3: status = tn_if(s->g, tn_not(s->g, s->flag), plain, nested_not, s, 1, &y); break;
    case 4: status = tn_while(s->g, 2, init, NULL, below, trip, s, 0, out); break;
    default: status = tn_while(s->g, 2, init, NULL, below, trip_of_branch, s, 0, out);
    }
    assert_int_equal(status, TN_OK);
    return which >= 4 ? out[1] : y;
}

static void feed(run_inputs *in, int64_t n, int64_t m, int64_t k, bool flag, int64_t trips) {
    const int64_t a[] = {n}, b[] = {m}, c[] = {k, 4};
    in->count = 5;
    in->binding[0] = (tn_binding){"a", tn_tensor_create(TN_F32, 1, a), NULL};
    in->binding[1] = (tn_binding){"b", tn_tensor_create(TN_F32, 1, b), NULL};
    in->binding[2] = (tn_binding){"c", tn_tensor_create(TN_F32, 2, c), NULL};
    in->binding[3] = (tn_binding){"flag", tn_tensor_create(TN_BOOL, 0, NULL), NULL};
    in->binding[4] = (tn_binding){"trips", tn_tensor_create(TN_I64, 0, NULL), NULL};
    for (int i = 0; i < 3; i++)
        for (int64_t j = 0; j < tn_tensor_count(in->binding[i].tensor); j++)
            tn_tensor_set_f64(in->binding[i].tensor, j, (double)(i + j));
    tn_tensor_set_f64(in->binding[3].tensor, 0, flag);
    tn_tensor_set_f64(in->binding[4].tensor, 0, (double)trips);
}

/* The lines of a message that do not depend on passes: what, where in the user's source, sizes at run time, hint. */
static void lasting(const char *message, char *text, size_t size) {
    size_t used = 0;
    for (const char *line = message; *line;) {
        size_t n = strcspn(line, "\n");
        bool numbered = strncmp(line, "  where: node %", 15) == 0 || strncmp(line, "  where: input ", 15) == 0;
        if (!numbered && used + n + 2 < size) {
            memcpy(text + used, line, n);
            used += n;
            text[used++] = '\n';
        }
        line += n + (line[n] == '\n');
    }
    text[used] = '\0';
}

static void test_needed_or_not(void **state) {
    (void)state;
    for (int i = 0; i < KINDS * FORMS * 8; i++) {
        int kind = i / 8 % KINDS, which = i / 8 / KINDS;
        bool fits = i % 2, flag = i / 2 % 2, tripping = i / 4 % 2;
        sizes s = start();
        s.kind = kind;
        tn_set_output(s.g, "y", form(&s, which));
        if (tn_graph_check(s.g) != TN_OK)
            fail_msg("%s", tn_error_message());
        bool reached =
            which == 0 || (which >= 4 && tripping && (which == 4 || flag)) || (which < 4 && which > 0 && flag);
        run_inputs in;
        feed(&in, fits ? 4 : 2, fits ? 4 : 3, fits ? 5 : 2, flag, tripping ? 2 : 0);
        tn_model *model = tn_model_from_graph(s.g, NULL);
        run_outputs want, got;
        tn_status status =
            run_model(model, TN_OPTIONS(tn_session_options, .backend = TN_BACKEND_REFERENCE), &in, &want);
        char words[2][3000];
        lasting(status == TN_OK ? "" : tn_error_message(), words[0], sizeof words[0]);
        if ((status == TN_OK) != (fits || !reached))
            fail_msg("kind %d, form %d, case %d: %s", kind, which, i % 8, words[0]);
        for (int level = 0; level < 3; level++) {
            tn_status compiled =
                run_model(model, TN_OPTIONS(tn_session_options, .level = (tn_level)(TN_LEVEL_0 + level), .threads = 1),
                          &in, &got);
            lasting(compiled == TN_OK ? "" : tn_error_message(), words[1], sizeof words[1]);
            if (compiled != status || strcmp(words[0], words[1]) != 0)
                fail_msg("kind %d, form %d, case %d, level %d:\n%s\n%s", kind, which, i % 8, level, words[0], words[1]);
            if (status != TN_OK)
                continue;
            assert_true(run_outputs_close("compiled", &want, &got, 1e-5, 1e-5));
            run_outputs_free(&got);
        }
        if (status == TN_OK)
            run_outputs_free(&want);
        run_inputs_free(&in);
        tn_model_destroy(model);
        tn_graph_destroy(s.g);
    }
}

/* A branch larger than the memory that the model may have, and not taken. */
static void huge(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    sizes *s = ctx;
    (void)args;
    tn_dim many = tn_dim_mul(g, tn_value_dim(g, s->a, 0), tn_dim_const(g, (int64_t)1 << 55));
    tn_value y = tn_broadcast(g, tn_slice_axis(g, s->a, 0, 0, 1), 1, &many);
    results[0] = tn_reduce_sum(g, tn_cumsum(g, tn_exp(g, y), 0, false, false), TN_ALL_AXES, false);
}

static void test_large_branch(void **state) {
    (void)state;
    for (int taken = 0; taken < 2; taken++) {
        sizes s = start();
        tn_value y;
        assert_int_equal(tn_if(s.g, s.flag, huge, plain, &s, 1, &y), TN_OK);
        tn_set_output(s.g, "y", tn_exp(s.g, y));
        run_inputs in;
        feed(&in, 3, 1, 1, taken, 0);
        tn_heap *heap = tn_heap_create(NULL);
        tn_heap_set_limit(heap, (size_t)1 << 28);
        tn_model *model = tn_model_from_graph(s.g, TN_OPTIONS(tn_model_options, .heap = heap));
        for (int way = 0; way < 4; way++) {
            run_outputs out;
            tn_status status =
                run_model(model,
                          TN_OPTIONS(tn_session_options, .backend = way ? TN_BACKEND_CPU : TN_BACKEND_REFERENCE,
                                     .level = way ? (tn_level)(TN_LEVEL_0 + way - 1) : TN_LEVEL_DEFAULT),
                          &in, &out);
            assert_true(taken ? status == TN_ERR_MEMORY || status == TN_ERR_LIMIT : status == TN_OK);
            if (status == TN_OK)
                run_outputs_free(&out);
        }
        run_inputs_free(&in);
        tn_model_destroy(model);
        tn_heap_destroy(heap);
        tn_graph_destroy(s.g);
    }
}

/* The block of a loop's body is charged once, however many trips there are. */
static void test_loop_under_a_limit(void **state) {
    (void)state;
    sizes s = start();
    s.kind = 0;
    tn_set_output(s.g, "y", form(&s, 4));
    run_inputs in;
    feed(&in, 1000, 1000, 1, true, 500);
    tn_model *model = tn_model_from_graph(s.g, NULL);
    run_outputs out;
    if (run_model(model, TN_OPTIONS(tn_session_options, .max_bytes = 100000, .threads = 1), &in, &out) != TN_OK)
        fail_msg("%s", tn_error_message());
    run_outputs_free(&out);
    run_inputs_free(&in);
    tn_model_destroy(model);
    tn_graph_destroy(s.g);
}

/* Each allocation in turn fails, and that one or all that follow: an error or a result, and nothing is kept. */
static void test_no_memory(void **state) {
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        sizes s = start();
        tn_value y;
        s.kind = 0;
        if (kind < 2)
            tn_if(s.g, s.flag, kind ? huge : misfit, plain, &s, 1, &y);
        else
            y = form(&s, kind + 2);
        tn_set_output(s.g, "y", y);
        tn_heap *heap = tn_heap_create(NULL);
        tn_model *model = tn_model_from_graph(s.g, TN_OPTIONS(tn_model_options, .heap = heap));
        tn_session *session = tn_session_create(model, TN_OPTIONS(tn_session_options, .threads = 1));
        assert_non_null(session);
        for (int taken = 0; taken < 2; taken++) {
            run_inputs in;
            feed(&in, 3, 2, 1, taken, taken);
            run_outputs out;
            tn_heap_set_limit(heap, tn_heap_in_use(heap) + ((size_t)1 << 26));
            if (run_session(session, model, &in, &out) == TN_OK) /* what a session makes once is there */
                run_outputs_free(&out);
            for (int n = 1; n < 200; n++) {
                tn_session_trim(session);
                size_t before = tn_heap_in_use(heap);
                tn_heap_fail_at(heap, (uint64_t)(n / 2 + 1), n % 2);
                tn_status status = run_session(session, model, &in, &out);
                tn_heap_fail_at(heap, 0, false);
                assert_true(status == TN_ERR_MEMORY || status == TN_ERR_LIMIT || (status == TN_OK) == !taken);
                if (status == TN_OK)
                    run_outputs_free(&out);
                tn_session_trim(session);
                assert_int_equal(tn_heap_in_use(heap), before);
            }
            run_inputs_free(&in);
        }
        tn_session_destroy(session);
        tn_model_destroy(model);
        tn_graph_destroy(s.g);
        tn_heap_destroy(heap);
    }
}

static void test_random_graphs(void **state) {
    (void)state;
    uint32_t count[4] = {0};
    for (uint64_t seed = 1; seed <= 400; seed++) {
        char why[1200];
        mismatch_outcome outcome = mismatch_draw(seed, why, sizeof why, NULL);
        count[outcome]++;
        if (outcome == MISMATCH_DIFFERENT)
            fail_msg("TENON_SEED=%d TENON_DRAWS=1 ctest -V -R nightly/mismatch\n%s", (int)seed, why);
    }
    assert_true(count[MISMATCH_ERROR] > 40 && count[MISMATCH_RESULT] > 40);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_needed_or_not), cmocka_unit_test(test_large_branch),
                                       cmocka_unit_test(test_loop_under_a_limit), cmocka_unit_test(test_no_memory),
                                       cmocka_unit_test(test_random_graphs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
