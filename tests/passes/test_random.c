/* Random graphs: the pipeline at every level, and each pass alone, verifies and keeps every bit. TENON_SEED=n repeats one graph. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <tenon/build.h>

#include "base/os.h"
#include "support/pass_checks.h"

#define POOL 64

typedef struct maker {
    uint64_t state;
    tn_value pool[POOL]; /* f32[2, 3] each */
    uint32_t count;
    int depth;
    tn_value flag; /* bool[] input */
} maker;

static uint32_t draw(maker *m, uint32_t n) {
    m->state = m->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(m->state >> 33) % n;
}

static tn_value pick(maker *m) {
    return m->pool[draw(m, m->count)];
}

static void grow(maker *m, tn_graph *g, uint32_t steps);

static void branch(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    maker *m = ctx;
    (void)args;
    uint32_t count = m->count; /* what a body makes is not seen outside */
    grow(m, g, 4);
    results[0] = pick(m);
    results[1] = pick(m);
    m->count = count;
}

static void small(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)ctx;
    results[0] = tn_less(g, args[0], tn_constant_i64(g, 0, 1, (const int64_t[]){3}));
}

static void trip(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    maker *m = ctx;
    uint32_t count = m->count;
    m->pool[m->count++] = args[1];
    m->pool[m->count++] = args[2];
    grow(m, g, 4);
    results[0] = tn_add(g, args[0], tn_constant_i64(g, 0, 1, (const int64_t[]){1}));
    results[1] = pick(m);
    results[2] = draw(m, 3) ? args[2] : pick(m);
    results[3] = pick(m);
    m->count = count;
}

static tn_value constant(maker *m, tn_graph *g) {
    static const double values[] = {0, -0.0, 1, 2, 0.5, -1};
    if (draw(m, 2))
        return tn_broadcast(g, tn_scalar(g, TN_F32, values[draw(m, 6)]), 2, tn_value_dims(g, m->pool[0]));
    tn_tensor *t = tn_tensor_create_in(g->heap, TN_F32, 2, (const int64_t[]){2, 3});
    for (int i = 0; i < 6; i++)
        tn_store_f64(TN_F32, t->data, i, values[draw(m, 6)]);
    tn_value v = tn_constant(g, t);
    tn_tensor_destroy(t);
    return v;
}

static tn_value one(maker *m, tn_graph *g) {
    tn_value a = pick(m), b = pick(m), r[4];
    tn_dim whole[2] = {tn_dim_const(g, 2), tn_dim_const(g, 3)}, start[2] = {tn_dim_const(g, 1), tn_dim_const(g, 2)};
    tn_value zero = tn_constant_i64(g, 0, 1, (const int64_t[]){0});
    switch (draw(m, 19)) {
    case 0: return tn_add(g, a, b);
    case 1: return tn_add(g, b, a);
    case 2: return tn_mul(g, a, b);
    case 3: return tn_sub(g, a, b);
    case 4: return tn_div(g, a, b);
    case 5: return tn_neg(g, a);
    case 6: return tn_relu(g, a);
    case 7: return tn_transpose(g, tn_transpose(g, a, NULL), NULL);
    case 8:
        return tn_transpose(g, tn_transpose(g, tn_reshape(g, a, TN_SHAPE(1, 2, 3)), (const int[]){2, 0, 1}),
                            (const int[]){1, 2, 0})
                       .id
                   ? tn_reshape(g, tn_reshape(g, a, TN_SHAPE(6)), TN_SHAPE(2, 3))
                   : a;
    case 9: return tn_cast(g, tn_cast(g, a, draw(m, 2) ? TN_F64 : TN_F16), TN_F32);
    case 10: return tn_select(g, tn_less(g, a, b), a, b);
    case 11: return tn_max(g, a, b);
    case 12: return tn_softmax(g, a, -1);
    case 13:
        return tn_slice(g, tn_slice(g, a, start, whole, (const int64_t[]){-1, -1}),
                        (const tn_dim[]){start[0], start[1]}, whole, (const int64_t[]){-1, -1});
    case 14: return constant(m, g);
    case 15: return tn_print(g, a, "p");
    case 16:
    case 17:
        if (m->depth > 2)
            return tn_exp(g, a);
        m->depth++;
        tn_if(g, draw(m, 2) ? m->flag : tn_scalar(g, TN_BOOL, draw(m, 2)), branch, branch, m, 2, r);
        m->depth--;
        return draw(m, 2) ? tn_add(g, r[0], r[1]) : r[draw(m, 2)];
    default:
        if (m->depth > 1)
            return tn_sigmoid(g, a);
        m->depth++;
        tn_while(g, 3, (const tn_value[]){zero, a, b}, NULL, small, trip, m, 1, r);
        m->depth--;
        return draw(m, 3) ? r[1] : tn_reshape(g, tn_gather(g, r[3], zero, 0), TN_SHAPE(2, 3));
    }
}

static void grow(maker *m, tn_graph *g, uint32_t steps) {
    for (uint32_t i = 0; i < steps && m->count + 4 < POOL; i++) {
        tn_value v = one(m, g);
        if (v.id)
            m->pool[m->count++] = v;
    }
}

static tn_graph *make(uint64_t seed) {
    maker m = {.state = seed * 2654435761u + 1};
    tn_graph *g = tn_graph_create();
    m.flag = tn_input(g, "c", TN_BOOL, TN_SCALAR);
    m.pool[m.count++] = tn_input(g, "x", TN_F32, TN_SHAPE(2, 3));
    m.pool[m.count++] = tn_input(g, "y", TN_F32, TN_SHAPE(2, 3));
    grow(&m, g, 12);
    for (int i = 0; i < 3; i++) {
        char name[8];
        snprintf(name, sizeof name, "o%d", i);
        tn_set_output(g, name, pick(&m));
    }
    if (tn_graph_check(g) != TN_OK)
        fail_msg("seed %llu: %s", (unsigned long long)seed, tn_error_message());
    return g;
}

static bool check(uint64_t seed) {
    static const char *const lists[] = {
        NULL, "fold", "cse", "dce", "cleanup", "inline-composites", "cse,cleanup,fold,dce,fold,cse"};
    tn_graph *before = make(seed);
    bool good = true;
    for (size_t i = 0; good && i < 3 + sizeof lists / sizeof *lists; i++) {
        tn_graph *after = tn_graph_clone(before, NULL, NULL);
        tn_pass_context c = pass_context(i < 3 ? (int)i : 2, i < 3 ? NULL : lists[i - 3]);
        good = after && tn_passes_run(after, &c) == TN_OK;
        if (!good)
            print_error("seed %llu, list %zu: %s\n", (unsigned long long)seed, i, tn_error_message());
        if (good && !pass_equal(before, after, 3)) {
            print_error("seed %llu, list %zu: values differ\n", (unsigned long long)seed, i);
            good = false;
        }
        tn_pass_context_free(&c);
        tn_graph_destroy(after);
    }
    tn_graph_destroy(before);
    return good;
}

static void test_random_graphs(void **state) {
    (void)state;
    const char *fixed = getenv("TENON_SEED");
    uint64_t first = fixed ? strtoull(fixed, NULL, 10) : tn_random_seed() >> 40, bad = 0;
    uint64_t count = fixed ? 1 : 40;
    print_message("seeds %llu to %llu\n", (unsigned long long)first, (unsigned long long)(first + count - 1));
    for (uint64_t i = 0; i < count; i++)
        bad += !check(first + i);
    assert_int_equal(bad, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_graphs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
