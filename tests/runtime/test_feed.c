/* Feeding and fetching any value by name: a part of the model runs, compiled once for each set of names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <tenon/build.h>

#include <tenon/tenon.h>

#include "runtime/session.h"
#include "support/model_runs.h"
#include "support/nets.h"

#define FLOATS(...) vector((int64_t)(sizeof((float[]){__VA_ARGS__}) / sizeof(float)), (const float[]){__VA_ARGS__})

static tn_tensor *vector(int64_t count, const float *values) {
    return tn_tensor_from_f32(2, (const int64_t[]){1, count}, values);
}

/* y = relu(x W1 + b1) W2 + b2 */
static tn_graph *two_layers(void) {
    tn_graph *g = tn_graph_create();
    const float w1[] = {1, 0, 0, 1, 1, -1}, b1[] = {2.5f, -1}, w2[] = {2, 3}, b2[] = {1};
    tn_tensor *t[] = {
        tn_tensor_from_f32(2, (const int64_t[]){3, 2}, w1), tn_tensor_from_f32(1, (const int64_t[]){2}, b1),
        tn_tensor_from_f32(2, (const int64_t[]){2, 1}, w2), tn_tensor_from_f32(1, (const int64_t[]){1}, b2)};
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("N", 3));
    tn_value p = tn_matmul(g, x, tn_variable(g, "W1", t[0]));
    tn_value a = tn_add(g, p, tn_variable(g, "b1", t[1])), r = tn_relu(g, a);
    tn_value q = tn_matmul(g, r, tn_variable(g, "W2", t[2]));
    tn_set_output(g, "y", tn_add(g, q, tn_variable(g, "b2", t[3])));
    tn_value_set_name(g, a, "a");
    tn_value_set_name(g, r, "r");
    tn_value_set_name(g, q, "q");
    for (int i = 0; i < 4; i++)
        tn_tensor_destroy(t[i]);
    assert_int_equal(tn_graph_check(g), TN_OK);
    return g;
}

/* Runs with one value fed, one asked for. NULL with the error set on failure. */
static tn_tensor *run_one(tn_session *s, const char *in, tn_tensor *x, const char *out) {
    tn_tensor *y = NULL;
    tn_status status = tn_session_run(s, x != NULL, (const tn_binding[]){{.name = in, .tensor = x}}, 1,
                                      (const tn_output[]){{.name = out, .tensor = &y}});
    assert_true((status == TN_OK) == (y != NULL));
    tn_tensor_destroy(x);
    return y;
}

static void expect(tn_tensor *got, int64_t count, const double *want) {
    if (!got)
        fail_msg("%s", tn_error_message());
    assert_int_equal(tn_tensor_count(got), count);
    for (int64_t i = 0; i < count; i++)
        if (tn_tensor_get_f64(got, i) != want[i])
            fail_msg("element %d: %g, not %g", (int)i, tn_tensor_get_f64(got, i), want[i]);
    tn_tensor_destroy(got);
}
#define EXPECT(got, ...) \
    expect((got), (int64_t)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)), (const double[]){__VA_ARGS__})

static uint64_t compilations(tn_session *s) {
    tn_memory m;
    assert_int_equal(tn_memory_report(s, &m), TN_OK);
    return m.compilations;
}

/* Contractions in the plan made last. */
static int products(const tn_session *s) {
    const tn_plan *p = s->form.data[s->form.len - 1]->compiled->plan;
    int n = 0;
    for (uint32_t i = 0; i < p->kernel.len; i++)
        n += p->kernel.data[i].kind == TN_KERNEL_CONTRACT;
    return n;
}

static void test_two_layers(void **state) {
    (void)state;
    for (int way = 0; way < 5; way++) {
        tn_graph *g = two_layers();
        tn_model *model = tn_model_from_graph(g, NULL);
        tn_session *s = tn_session_create(
            model, TN_OPTIONS(tn_session_options, .backend = way > 3 ? TN_BACKEND_REFERENCE : TN_BACKEND_CPU,
                              .level = way > 3 ? TN_LEVEL_DEFAULT : (tn_level)(TN_LEVEL_0 + way)));
        EXPECT(run_one(s, "x", FLOATS(1, -2, 3), "y"), 14.0);
        assert_int_equal(compilations(s), 1);
        EXPECT(run_one(s, "x", FLOATS(1, -2, 3), "a"), 6.5, -6);
        assert_int_equal(compilations(s), 2);
        if (way < 4)
            assert_int_equal(products(s), 1);
        EXPECT(run_one(s, "r", FLOATS(1, 1), "y"), 6);
        assert_int_equal(compilations(s), 3);
        if (way < 4)
            assert_int_equal(products(s), 1);
        EXPECT(run_one(s, "r", FLOATS(2, 0), "y"), 5); /* a second feed plans nothing anew */
        EXPECT(run_one(s, "x", FLOATS(0, 0, 0), "a"), 2.5, -1);
        EXPECT(run_one(s, "x", FLOATS(1, -2, 3), "y"), 14.0);
        assert_int_equal(compilations(s), 3);
        tn_session *other = tn_session_create(model, &s->options); /* shares them */
        EXPECT(run_one(other, "r", FLOATS(1, 1), "y"), 6);
        assert_int_equal(compilations(s), 3);
        tn_session_destroy(other);
        /* what is fed is what comes out; an input, too */
        EXPECT(run_one(s, "r", FLOATS(4, 5), "r"), 4, 5);
        EXPECT(run_one(s, "x", FLOATS(4, 5, 6), "x"), 4, 5, 6);
        /* a weight; nothing at all */
        EXPECT(run_one(s, NULL, NULL, "b1"), 2.5, -1);
        tn_tensor *w2 = tn_tensor_from_f32(2, (const int64_t[]){2, 1}, (const float[]){1, 1}), *x = FLOATS(1, -2, 3),
                  *y = NULL, *q = NULL;
        const tn_binding both[] = {{.name = "W2", .tensor = w2}, {.name = "x", .tensor = x}},
                         turned[] = {both[1], both[0]};
        uint64_t before = compilations(s);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(tn_session_run(s, 2, i ? turned : both, 2,
                                            (const tn_output[]){{.name = i ? "q" : "y", .tensor = i ? &q : &y},
                                                                {.name = i ? "y" : "q", .tensor = i ? &y : &q}}),
                             TN_OK);
            EXPECT(y, 7.5);
            EXPECT(q, 6.5);
            y = q = NULL;
        }
        assert_int_equal(compilations(s), before + 1); /* the order of names does not matter */
        tn_tensor_destroy(w2);
        tn_tensor_destroy(x);
        assert_true(tn_graph_is_frozen(g)); /* a session holds it */
        assert_int_equal(tn_add(g, tn_graph_input(g, 0), tn_graph_input(g, 0)).id, 0);
        tn_session_destroy(s);
        tn_model_destroy(model);
        tn_graph_destroy(g);
    }
}

static void expect_error(tn_tensor *y, tn_status status, const char *says) {
    assert_null(y);
    if (tn_error_status() != status || !strstr(tn_error_message(), says))
        fail_msg("%s: not '%s'", tn_error_message(), says);
}

static void test_errors(void **state) {
    (void)state;
    tn_graph *g = two_layers();
    tn_model *model = tn_model_from_graph(g, NULL);
    tn_session *s = tn_session_create(model, NULL);
    expect_error(run_one(s, "nothing", FLOATS(1), "y"), TN_ERR_INPUT, "no input 'nothing', nor an inner value");
    expect_error(run_one(s, "x", FLOATS(1, 2, 3), "nothing"), TN_ERR_INPUT, "no output 'nothing', nor an inner value");
    expect_error(run_one(s, "r", FLOATS(1, 2), "a"), TN_ERR_INPUT, "input 'x' is not given");
    expect_error(run_one(s, "b2", FLOATS(1), "y"), TN_ERR_INPUT, "input 'x' is not given");
    expect_error(run_one(s, "r", FLOATS(1, 2, 3), "y"), TN_ERR_INPUT, "'r'"); /* of another size */
    tn_tensor *half = tn_tensor_create(TN_F64, 2, (const int64_t[]){1, 2});
    expect_error(run_one(s, "r", half, "y"), TN_ERR_INPUT, "element type");
    tn_tensor *x = FLOATS(1, 2), *y = NULL;
    assert_int_equal(tn_session_run(s, 2, (const tn_binding[]){{.name = "r", .tensor = x}, {.name = "r", .tensor = x}},
                                    1, (const tn_output[]){{.name = "y", .tensor = &y}}),
                     TN_ERR_USAGE);
    tn_tensor_destroy(x);
    EXPECT(run_one(s, "x", FLOATS(1, -2, 3), "y"), 14.0);
    tn_session_destroy(s);
    tn_model_destroy(model);
    tn_graph_destroy(g);
}

/* More ways of being called than a session, and more sets of names than a model, remembers. */
static void test_many_sets(void **state) {
    (void)state;
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("N", 2));
    char name[16];
    for (int i = 0; i < 40; i++) {
        x = tn_add(g, x, tn_scalar(g, TN_F32, 1));
        snprintf(name, sizeof name, "v%d", i);
        tn_value_set_name(g, x, name);
    }
    tn_set_output(g, "y", x);
    tn_model *model = tn_model_from_graph(g, NULL);
    tn_session *s = tn_session_create(model, NULL);
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 40; i++) {
            snprintf(name, sizeof name, "v%d", i);
            EXPECT(run_one(s, "x", FLOATS(1, 2), name), 2.0 + i, 3.0 + i);
            EXPECT(run_one(s, name, FLOATS(1, 2), "y"), 40.0 - i, 41.0 - i);
        }
    tn_memory m;
    assert_int_equal(tn_memory_report(s, &m), TN_OK);
    assert_in_range(m.plans, 17, 1 + 2 * 16);
    assert_true(s->call.len <= TN_SESSION_CALLS && s->form.len <= TN_SESSION_CALLS);
    tn_session_destroy(s);
    tn_model_destroy(model);
    tn_graph_destroy(g);
}

enum { MOST = 64 };

/* Names the values of the main region, constants or not, "value 0", "value 1", ...; how many there are. */
static uint32_t name_all(tn_graph *g, bool constants, char names[MOST][16]) {
    uint32_t n = 0;
    tn_node last = tn_region_last(g, tn_graph_region(g));
    for (tn_node node = tn_region_first(g, tn_graph_region(g)); node.id != last.id && n < MOST;
         node = tn_node_next(g, node)) {
        if (!constants && tn_node_has_trait(g, node, TN_CONSTANT))
            continue;
        snprintf(names[n], sizeof names[n], "value %u", n);
        tn_value_set_name(g, tn_node_output(g, node, 0), names[n]);
        n++;
    }
    return n;
}

/* Every named value of networks, fetched, then fed back: the output is what it was. */
static void test_networks(void **state) {
    (void)state;
    for (int kind = 0; kind < NET_KINDS; kind++)
        for (int form = 0; form < 4; form++) {
            tn_graph *g = net_build(NULL, (net_kind)kind, form % 2 ? 3 : -1, form % 2 ? 8 : -1);
            char names[MOST][16];
            uint32_t n = name_all(g, true, names);
            tn_model *model = tn_model_from_graph(g, NULL);
            tn_session *s = tn_session_create(
                model, TN_OPTIONS(tn_session_options, .backend = form / 2 ? TN_BACKEND_REFERENCE : TN_BACKEND_CPU,
                                  .level = form / 2 ? TN_LEVEL_DEFAULT : TN_LEVEL_1));
            tn_tensor *x = net_input((net_kind)kind, 3, 8, 7), *y = run_one(s, "x", tn_tensor_retain(x), "y");
            assert_non_null(y);
            for (uint32_t i = 0; i < n; i++) {
                tn_tensor *inner = run_one(s, "x", tn_tensor_retain(x), names[i]), *again = NULL;
                if (!inner)
                    fail_msg("%s, form %d, %s: %s", net_names[kind], form, names[i], tn_error_message());
                if (tn_session_run(
                        s, 2, (const tn_binding[]){{.name = names[i], .tensor = inner}, {.name = "x", .tensor = x}}, 1,
                        (const tn_output[]){{.name = "y", .tensor = &again}}) != TN_OK)
                    fail_msg("%s, form %d, %s: %s", net_names[kind], form, names[i], tn_error_message());
                assert_int_equal(tn_tensor_bytes(again), tn_tensor_bytes(y));
                if (memcmp(tn_tensor_data(again), tn_tensor_data(y), tn_tensor_bytes(y)) != 0)
                    fail_msg("%s, form %d: another output with %s fed", net_names[kind], form, names[i]);
                tn_tensor_destroy(again);
                tn_tensor_destroy(inner);
            }
            tn_tensor_destroy(x);
            tn_tensor_destroy(y);
            tn_session_destroy(s);
            tn_model_destroy(model);
            tn_graph_destroy(g);
        }
}

/* What the reference interpreter computed under each name. */
typedef struct seen {
    char (*names)[16];
    tn_tensor *value[MOST];
    uint32_t count, found;
} seen;

static void see(void *user, const char *name, const tn_object *object) {
    seen *s = user;
    for (uint32_t i = 0; i < s->count; i++)
        if (strcmp(s->names[i], name) == 0 && tn_object_tensor((tn_object *)(uintptr_t)object)) {
            s->found += s->value[i] == NULL;
            tn_tensor_destroy(s->value[i]);
            s->value[i] = tn_tensor_copy(tn_object_tensor((tn_object *)(uintptr_t)object));
        }
}

static void is_near(const tn_tensor *got, const tn_tensor *want, const char *what) {
    double error = 0, size = 0;
    if (tn_tensor_dtype(got) != tn_tensor_dtype(want) || tn_tensor_rank(got) != tn_tensor_rank(want) ||
        tn_tensor_count(got) != tn_tensor_count(want))
        fail_msg("%s has another type than the reference says", what);
    for (int i = 0; i < tn_tensor_rank(got); i++)
        assert_int_equal(tn_tensor_dims(got)[i], tn_tensor_dims(want)[i]);
    for (int64_t i = 0; i < tn_tensor_count(got); i++) {
        double a = tn_tensor_get_f64(got, i), b = tn_tensor_get_f64(want, i);
        error += (a - b) * (a - b);
        size += b * b;
    }
    if (!(error <= 1e-10 * size + 1e-20))
        fail_msg("%s is not what the reference computes on the way: error %g of %g", what, error, size);
}

/* Row V4: an inner value of a compiled model, tapped, is what the reference interpreter has there when it runs the whole model; what is
   asked for with it keeps its bits, and the plan without it its kernels. */
static void test_v4_taps(void **state) {
    (void)state;
    for (int kind = 0; kind < NET_KINDS; kind++)
        for (int form = 0; form < 6; form++) {
            static const tn_level levels[] = {TN_LEVEL_0, TN_LEVEL_1, TN_LEVEL_2};
            tn_graph *g = net_build(NULL, (net_kind)kind, form % 2 ? 3 : -1, form % 2 ? 8 : -1);
            char names[MOST][16], what[100];
            seen s = {.names = names, .count = name_all(g, false, names)};
            tn_model *model = tn_model_from_graph(g, NULL);
            tn_session *whole = tn_session_create(model, TN_OPTIONS(tn_session_options, .backend = TN_BACKEND_REFERENCE,
                                                                    .level = TN_LEVEL_0, .tap = see, .tap_user = &s));
            tn_session *plan = tn_session_create(
                model, TN_OPTIONS(tn_session_options, .backend = TN_BACKEND_CPU, .level = levels[form / 2]));
            tn_tensor *x = net_input((net_kind)kind, 3, 8, 7);
            tn_tensor *want = run_one(whole, "x", tn_tensor_retain(x), "y"),
                      *y = run_one(plan, "x", tn_tensor_retain(x), "y");
            assert_true(want && y);
            is_near(y, want, "y");
            assert_int_equal(s.found, s.count); /* none was optimised away there */
            tn_session_report before, after;
            assert_int_equal(tn_session_describe(plan, &before), TN_OK);
            for (uint32_t i = 0; i < s.count; i++) {
                snprintf(what, sizeof what, "%s, form %d: %s", net_names[kind], form, names[i]);
                tn_tensor *alone = run_one(plan, "x", tn_tensor_retain(x), names[i]), *beside = NULL, *again = NULL;
                if (!alone)
                    fail_msg("%s: %s", what, tn_error_message());
                is_near(alone, s.value[i], what);
                if (tn_session_run(plan, 1, (const tn_binding[]){{.name = "x", .tensor = x}}, 2,
                                   (const tn_output[]){{.name = "y", .tensor = &again},
                                                       {.name = names[i], .tensor = &beside}}) != TN_OK)
                    fail_msg("%s: %s", what, tn_error_message());
                if (memcmp(tn_tensor_data(again), tn_tensor_data(y), tn_tensor_bytes(y)) != 0 ||
                    memcmp(tn_tensor_data(beside), tn_tensor_data(alone), tn_tensor_bytes(alone)) != 0)
                    fail_msg("%s: other bits when both are asked for", what);
                tn_tensor_destroy(alone);
                tn_tensor_destroy(beside);
                tn_tensor_destroy(again);
            }
            assert_int_equal(tn_session_describe(plan, &after), TN_OK);
            assert_int_equal(after.kernels, before.kernels);
            tn_tensor *last = run_one(plan, "x", tn_tensor_retain(x), "y");
            assert_non_null(last);
            assert_memory_equal(tn_tensor_data(last), tn_tensor_data(y), tn_tensor_bytes(y));
            for (uint32_t i = 0; i < s.count; i++)
                tn_tensor_destroy(s.value[i]);
            tn_tensor_destroy(last);
            tn_tensor_destroy(want);
            tn_tensor_destroy(y);
            tn_tensor_destroy(x);
            tn_session_destroy(whole);
            tn_session_destroy(plan);
            tn_model_destroy(model);
            tn_graph_destroy(g);
        }
}

/* One of several outputs: computes only what it needs, and needs only its inputs. */
static void test_some_outputs(void **state) {
    (void)state;
    tn_graph *g = tn_graph_create();
    tn_value a = tn_input(g, "a", TN_F32, TN_SHAPE("N", 2)), b = tn_input(g, "b", TN_F32, TN_SHAPE("M", 2));
    tn_set_output(g, "p", tn_exp(g, tn_mul(g, a, a)));
    tn_set_output(g, "q", tn_neg(g, b));
    tn_assert(g, tn_reduce_and(g, tn_greater(g, b, tn_scalar(g, TN_F32, 0)), TN_ALL_AXES, false), "b is positive");
    tn_model *model = tn_model_from_graph(g, NULL);
    for (int back = 0; back < 2; back++) {
        tn_session *s = tn_session_create(
            model, TN_OPTIONS(tn_session_options, .backend = back ? TN_BACKEND_REFERENCE : TN_BACKEND_CPU));
        EXPECT(run_one(s, "a", FLOATS(0, 0), "p"), 1, 1);
        EXPECT(run_one(s, "b", FLOATS(-3, 4), "q"), 3, -4);
        expect_error(run_one(s, "b", FLOATS(3, 4), "p"), TN_ERR_INPUT, "input 'a' is not given");
        tn_session_destroy(s);
    }
    tn_model_destroy(model);
    tn_graph_destroy(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_two_layers),   cmocka_unit_test(test_errors),
                                       cmocka_unit_test(test_many_sets),    cmocka_unit_test(test_networks),
                                       cmocka_unit_test(test_some_outputs), cmocka_unit_test(test_v4_taps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
