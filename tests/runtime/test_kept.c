/* What runs keep from one to the next: from the second run of a size on, nothing is allocated; memory is flat over many sizes; the bits
   are those of a fixed-shape build. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <tenon/build.h>

#include "support/nets.h"

typedef struct running {
    tn_heap *heap;
    tn_graph *graph;
    tn_model *model;
    tn_session *session;
} running;

static running start(net_kind kind, int64_t n, int64_t t, const tn_session_options *options) {
    running r = {.heap = tn_heap_create(NULL)};
    r.graph = net_build(r.heap, kind, n, t);
    r.model = tn_model_from_graph(r.graph, TN_OPTIONS(tn_model_options, .heap = r.heap));
    r.session = tn_session_create(r.model, options);
    if (!r.session)
        fail_msg("%s: %s", net_names[kind], tn_error_message());
    return r;
}

static void stop(running *r) {
    tn_session_destroy(r->session);
    tn_model_destroy(r->model);
    tn_graph_destroy(r->graph);
    assert_int_equal(tn_heap_in_use(r->heap), 0);
    tn_heap_destroy(r->heap);
}

/* y NULL: receives a new tensor. */
static void run(const running *r, tn_tensor *x, tn_tensor **y) {
    if (tn_session_run(r->session, 1, (const tn_binding[]){{.name = "x", .tensor = x}}, 1,
                       (const tn_output[]){{.name = "y", .tensor = y}}) != TN_OK)
        fail_msg("%s", tn_error_message());
}

static uint64_t allocations(const running *r) {
    return tn_heap_allocations(r->heap) + tn_heap_allocations(NULL);
}

static void same_bits(tn_tensor *a, tn_tensor *b) {
    assert_int_equal(tn_tensor_bytes(a), tn_tensor_bytes(b));
    assert_memory_equal(tn_tensor_data(a), tn_tensor_data(b), tn_tensor_bytes(a));
}

static void test_no_allocations(void **state) {
    (void)state;
    for (int kind = 0; kind < NET_KINDS; kind++)
        for (int form = 0; form < 6; form++) {
            bool fixed = form % 2;
            running r = start((net_kind)kind, fixed ? 4 : -1, fixed ? 8 : -1,
                              TN_OPTIONS(tn_session_options, .threads = form / 2 == 2 ? 2 : 1, .oversubscribe = true,
                                         .level = form / 2 == 1 ? TN_LEVEL_0 : TN_LEVEL_DEFAULT));
            tn_tensor *x = net_input((net_kind)kind, 4, 8, 1), *first = NULL, *y = NULL;
            run(&r, x, &first);
            run(&r, x, &y);
            same_bits(first, y);
            for (int again = 0; again < 3; again++) {
                uint64_t before = allocations(&r);
                memset(tn_tensor_data(y), 0xee, tn_tensor_bytes(y));
                run(&r, x, &y);
                if (allocations(&r) != before && again > 0) /* the call is a new one: into a tensor that is given */
                    fail_msg("%s, form %d, run %d: %d allocations", net_names[kind], form, again,
                             (int)(allocations(&r) - before));
                same_bits(first, y);
            }
            tn_tensor_destroy(x);
            tn_tensor_destroy(y);
            tn_tensor_destroy(first);
            stop(&r);
        }
}

/* Other sizes in between change no bit and, once both are known, allocate nothing. */
static void test_alternating(void **state) {
    (void)state;
    for (int kind = 0; kind < NET_KINDS; kind++) {
        running r = start((net_kind)kind, -1, -1, TN_OPTIONS(tn_session_options, .threads = 1));
        tn_tensor *x[2] = {net_input((net_kind)kind, 3, 8, 2), net_input((net_kind)kind, 5, 12, 3)}, *y[2] = {0},
                  *into[2] = {0};
        for (int i = 0; i < 2; i++) {
            run(&r, x[i], &y[i]);
            into[i] = tn_tensor_copy(y[i]);
        }
        for (int again = 0; again < 8; again++) {
            uint64_t before = allocations(&r);
            run(&r, x[again % 2], &into[again % 2]);
            if (allocations(&r) != before && again >= 4)
                fail_msg("%s: %d allocations", net_names[kind], (int)(allocations(&r) - before));
            same_bits(y[again % 2], into[again % 2]);
        }
        for (int i = 0; i < 2; i++) {
            running one = start((net_kind)kind, i ? 5 : 3, i ? 12 : 8, NULL);
            tn_tensor *fixed = NULL;
            run(&one, x[i], &fixed);
            same_bits(fixed, y[i]);
            tn_tensor_destroy(fixed);
            stop(&one);
            tn_tensor_destroy(x[i]);
            tn_tensor_destroy(y[i]);
            tn_tensor_destroy(into[i]);
        }
        stop(&r);
    }
}

/* Hundreds of sizes: once the largest were seen, memory does not grow; it can be given back. */
static void test_flat(void **state) {
    (void)state;
    for (int kind = 0; kind < NET_KINDS; kind++) {
        running r = start((net_kind)kind, -1, -1, TN_OPTIONS(tn_session_options, .threads = 1));
        size_t after_first = 0;
        uint64_t seed = 5;
        for (int i = 0; i < 400; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            bool largest = i < 2;
            int64_t n = largest ? 9 : 1 + (int64_t)(seed >> 33) % 9, t = largest ? 13 : 2 + (int64_t)(seed >> 40) % 12;
            tn_tensor *x = net_input((net_kind)kind, n, t, (uint64_t)i), *y = NULL;
            run(&r, x, &y);
            tn_tensor_destroy(x);
            tn_tensor_destroy(y);
            if (i == 100)
                after_first = tn_heap_in_use(r.heap);
        }
        if (tn_heap_in_use(r.heap) > after_first + after_first * 3 / 100)
            fail_msg("%s: %d bytes after 100 sizes, %d after 400", net_names[kind], (int)after_first,
                     (int)tn_heap_in_use(r.heap));
        tn_memory m;
        assert_int_equal(tn_memory_report(r.session, &m), TN_OK);
        assert_int_equal(m.in_use, tn_heap_in_use(r.heap));
        assert_true(m.cached > 0 && m.arenas <= m.cached && m.cached < m.in_use && m.peak >= m.in_use);
        assert_int_equal(m.plans, 1);
        assert_int_equal(m.compilations, 1);
        tn_session_trim(r.session);
        assert_int_equal(tn_memory_report(r.session, &m), TN_OK);
        assert_int_equal(m.cached, 0);
        stop(&r);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_no_allocations), cmocka_unit_test(test_alternating),
                                       cmocka_unit_test(test_flat)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
