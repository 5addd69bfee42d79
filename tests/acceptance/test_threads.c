/* Rows of behaviour about threads: P1, P2, N1. P3 is base/cpu (fixture files), P5 timing/threads. */
#define _GNU_SOURCE
#include <dirent.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include <tenon/build.h>

#include <tenon/tenon.h>

#include "base/os.h"
#include "support/model_runs.h"
#include "support/nets.h"

typedef struct running {
    tn_graph *graph;
    tn_model *model;
    tn_session *session;
    tn_tensor *x;
} running;

/* A network large enough for two threads. */
static running start(const tn_session_options *options) {
    running r = {.graph = net_build(NULL, NET_TRANSFORMER, 8, 16)};
    r.model = tn_model_from_graph(r.graph, NULL);
    r.session = tn_session_create(r.model, options);
    r.x = net_input(NET_TRANSFORMER, 8, 16, 1);
    if (!r.session)
        fail_msg("%s", tn_error_message());
    return r;
}

static void run(running *r) {
    tn_tensor *y = NULL;
    if (tn_session_run(r->session, 1, (const tn_binding[]){{.name = "x", .tensor = r->x}}, 1,
                       (const tn_output[]){{.name = "y", .tensor = &y}}) != TN_OK)
        fail_msg("%s", tn_error_message());
    tn_tensor_destroy(y);
}

static void stop(running *r) {
    tn_session_destroy(r->session);
    tn_model_destroy(r->model);
    tn_graph_destroy(r->graph);
    tn_tensor_destroy(r->x);
}

/* Threads of this process. */
static int tasks(void) {
    DIR *folder = opendir("/proc/self/task");
    int count = 0;
    for (struct dirent *e; folder && (e = readdir(folder));)
        count += e->d_name[0] != '.';
    if (folder)
        closedir(folder);
    return count;
}

static double seconds_of(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool is_slowed(void) {
    const char *s = getenv("TENON_SANITIZE"), *emulator = getenv("TENON_EMULATED");
    return (s && *s) || (emulator && *emulator);
}

/* The share of a processor that ten calls a second take; under sanitizers and emulators, where a call itself takes many times as long, beyond what they
   compute. */
static double share(int threads, int spin) {
    running r = start(TN_OPTIONS(tn_session_options, .threads = threads, .spin_microseconds = spin));
    for (int i = 0; i < 3; i++)
        run(&r);
    enum { TRIES = 20 };
    double call = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    for (int i = 0; i < TRIES; i++)
        run(&r);
    call = (seconds_of(CLOCK_PROCESS_CPUTIME_ID) - call) / TRIES;
    usleep(100000); /* the spin is over */
    double from = seconds_of(CLOCK_MONOTONIC), used = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    for (int i = 0, n = run_full() ? 100 : 10; i < n; i++) {
        run(&r);
        usleep(100000);
    }
    used = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - used;
    from = seconds_of(CLOCK_MONOTONIC) - from;
    stop(&r);
    double calls = is_slowed() ? from * 10 * call : 0;
    return used > calls ? (used - calls) / from : 0;
}

/* The least of some tries: others who want the processors make a call wait for its own threads. */
static double least_share(int threads, int spin) {
    double least = share(threads, spin);
    for (int i = 0; i < 4 && least >= 0.02; i++) {
        double again = share(threads, spin);
        least = again < least ? again : least;
    }
    return least;
}

static void test_p1_waiting_costs_nothing(void **state) {
    (void)state;
    int threads = tn_cpu_count() > 1 ? 2 : 1;
    double of_default = least_share(threads, 0), of_none = least_share(threads, -1), alone = least_share(1, 0);
    if (of_default >= 0.02 || of_none >= 0.02 || alone >= 0.02)
        fail_msg("ten calls a second take %.3g of a processor, without spinning %.3g, on one "
                 "thread %.3g",
                 of_default, of_none, alone);
    if (threads == 1)
        return;
    double spinning = share(threads, 90000); /* the worker spins nearly all the time */
    if (spinning < 0.1)
        fail_msg("spin_microseconds = 90000 changes nothing: %.3g of a processor", spinning);
    running r;
    assert_null(
        tn_session_create(NULL, TN_OPTIONS(tn_session_options, .spin_microseconds = 1000001))); /* no model, too */
    r.graph = net_build(NULL, NET_MLP, 2, 2);
    r.model = tn_model_from_graph(r.graph, NULL);
    assert_null(tn_session_create(r.model, TN_OPTIONS(tn_session_options, .spin_microseconds = 1000001)));
    assert_int_equal(tn_error_status(), TN_ERR_USAGE);
    tn_model_destroy(r.model);
    tn_graph_destroy(r.graph);
}

static void test_p1_no_threads(void **state) {
    (void)state;
    int before = tasks();
    running r = start(TN_OPTIONS(tn_session_options, .threads = 1));
    for (int i = 0; i < 5; i++)
        run(&r);
    assert_int_equal(tasks(), before);
    stop(&r);
}

#if defined(__SANITIZE_THREAD__)
#define OF_SANITIZER 1 /* it starts a thread of its own in a child */
#else
#define OF_SANITIZER 0
#endif

/* In a child that may use the processors of `set` alone: a session of as many threads at most, which runs. */
static void check_affinity(const cpu_set_t *set) {
    pid_t child = fork();
    if (!child) {
        if (sched_setaffinity(0, sizeof *set, set))
            _exit(77);
        int allowed = CPU_COUNT(set);
        if (tn_cpu_count() > allowed)
            _exit(1);
        running r = {.graph = net_build(NULL, NET_TRANSFORMER, 8, 16)};
        r.model = tn_model_from_graph(r.graph, NULL);
        r.session = tn_session_create(r.model, NULL);
        r.x = net_input(NET_TRANSFORMER, 8, 16, 1);
        if (!r.session)
            _exit(2);
        int before = tasks() - 1;
        for (int i = 0; i < 5; i++) {
            tn_tensor *y = NULL;
            if (tn_session_run(r.session, 1, (const tn_binding[]){{.name = "x", .tensor = r.x}}, 1,
                               (const tn_output[]){{.name = "y", .tensor = &y}}) != TN_OK)
                _exit(3);
            tn_tensor_destroy(y);
        }
        if (tasks() - before > allowed + OF_SANITIZER)
            _exit(4);
        tn_session_destroy(r.session);
        tn_session *more =
            tn_session_create(r.model, TN_OPTIONS(tn_session_options, .threads = allowed + 1)); /* refused in words */
        _exit(more || !strstr(tn_error_message(), "this process may use") ? 5 : 0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) != 77)
        assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_p2_affinity(void **state) {
    (void)state;
    cpu_set_t all, set;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    int first = -1, last = -1;
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &all)) {
            first = first < 0 ? i : first;
            last = i;
        }
    CPU_ZERO(&set);
    CPU_SET(last, &set);
    check_affinity(&set);
    CPU_SET(first, &set);
    check_affinity(&set);
}

/* N1: a million floats, summed on 1 to 16 threads, time and again: one result. */
static void test_n1_one_hash(void **state) {
    (void)state;
    enum { COUNT = 1000000 };
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE(COUNT));
    tn_set_output(g, "y", tn_reduce_sum(g, x, TN_ALL_AXES, false));
    assert_int_equal(tn_graph_check(g), TN_OK);
    tn_model *model = tn_model_from_graph(g, NULL);
    tn_tensor *in = tn_tensor_create(TN_F32, 1, (const int64_t[]){COUNT});
    float *value = tn_tensor_data(in), first = 0;
    uint32_t noise = 1;
    for (int i = 0; i < COUNT; i++) {
        noise = noise * 1664525u + 1013904223u;
        value[i] = ((float)(noise >> 8) / 8388608 - 1) * (i % 1000 ? 1.0F : 1e6F);
    }
    for (int threads = 1; threads <= 16; threads++) {
        tn_session *s =
            tn_session_create(model, TN_OPTIONS(tn_session_options, .threads = threads, .oversubscribe = true));
        for (int i = 0, n = run_full() ? 100 : 20; i < n; i++) {
            tn_tensor *y = NULL;
            if (!s || tn_session_run(s, 1, (const tn_binding[]){{.name = "x", .tensor = in}}, 1,
                                     (const tn_output[]){{.name = "y", .tensor = &y}}) != TN_OK)
                fail_msg("%s", tn_error_message());
            float sum = *(const float *)tn_tensor_data(y);
            if (threads == 1 && i == 0)
                first = sum;
            assert_memory_equal(&sum, &first, sizeof sum);
            tn_tensor_destroy(y);
        }
        tn_session_destroy(s);
    }
    tn_tensor_destroy(in);
    tn_model_destroy(model);
    tn_graph_destroy(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_p2_affinity), cmocka_unit_test(test_p1_no_threads),
                                       cmocka_unit_test(test_p1_waiting_costs_nothing),
                                       cmocka_unit_test(test_n1_one_hash)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
