/* What a host program relies on: errors are found in the thread that failed and nothing is printed; the two-layer network that is
   defined first and run later by name; models of more than memory's worth load at once. */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include <tenon/tenon.h>

#include "base/os.h"
#include "support/model_runs.h"

/* --- errors ----------------------------------------------------------------------------------------------------------------------- */

static void *other_thread(void *ctx) {
    (void)ctx;
    if (tn_error_status() != TN_OK || *tn_error_message())
        return (void *)1;
    tn_tensor *none = tn_tensor_create(TN_F32, 1, (const int64_t[]){-3});
    return none || tn_error_status() != TN_ERR_USAGE ? (void *)1 : NULL;
}

/* Everything that fails here has code and text in this thread, and nothing is written. */
static void test_errors_by_thread(void **s) {
    (void)s;
    char path[] = "/tmp/tenon-printed-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    fflush(stdout);
    fflush(stderr);
    int saved[2] = {dup(1), dup(2)};
    dup2(file, 1);
    dup2(file, 2);

    tn_model *none = tn_model_load("/nowhere/model.onnx", NULL);
    tn_status first = tn_error_status();
    char what[512];
    snprintf(what, sizeof what, "%s", tn_error_what());
    pthread_t thread;
    void *answer = (void *)1;
    pthread_create(&thread, NULL, other_thread, NULL);
    pthread_join(thread, &answer);
    bool kept = tn_error_status() == first && strcmp(what, tn_error_what()) == 0;
    static const char *const bad[] = {"tenon 1\ngraph (", "\x08\x08\x3a\x80", "nonsense"};
    tn_status bad_status[3];
    for (int i = 0; i < 3; i++) {
        tn_error_clear();
        none = tn_model_load_memory(bad[i], strlen(bad[i]), NULL) ? (tn_model *)1 : none;
        bad_status[i] = *tn_error_message() ? tn_error_status() : TN_OK;
    }
    /* a graph's failing call is found by file and line */
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE(2, 3)), y = tn_input(g, "y", TN_F32, TN_SHAPE(2, 4));
    tn_add(g, x, y);
    tn_status graph_status = tn_graph_check(g);
    bool located = strstr(tn_error_where(), "test_promises.c:") != NULL;
    tn_graph_destroy(g);

    fflush(stdout);
    fflush(stderr);
    dup2(saved[0], 1);
    dup2(saved[1], 2);
    off_t printed = lseek(file, 0, SEEK_END);
    close(saved[0]);
    close(saved[1]);
    close(file);
    unlink(path);
    assert_null(none);
    assert_int_equal(first, TN_ERR_IO);
    assert_non_null(strstr(what, "/nowhere/model.onnx"));
    assert_null(answer);
    assert_true(kept);
    for (int i = 0; i < 3; i++)
        assert_int_not_equal(bad_status[i], TN_OK);
    assert_int_not_equal(graph_status, TN_OK);
    assert_true(located);
    assert_int_equal(printed, 0);
}

/* A model that needs more than there is says which set of operators, and which are supported. */
static void test_operator_sets(void **s) {
    (void)s;
    static const struct {
        const char *model, *words[4];
    } cases[] = {{"E6-operator-set-too-new", {"ai.onnx", "99", "versions 1 to"}},
                 {"X1-unknown-domain", {"made.up"}},
                 {"E3-unknown-operator-named", {"not supported"}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char file[256], path[4096];
        snprintf(file, sizeof file, "cases/%s/model.onnx", cases[i].model);
        if (!shared_path(file, path, sizeof path))
            continue;
        tn_model *model = tn_model_load(path, NULL);
        if (model && tn_session_create(model, NULL))
            fail_msg("%s is ready to run", cases[i].model);
        printf("%s: %s\n", cases[i].model, tn_error_message());
        for (int k = 0; k < 4 && cases[i].words[k]; k++)
            if (!strstr(tn_error_message(), cases[i].words[k]))
                fail_msg("%s: no '%s' in: %s", cases[i].model, cases[i].words[k], tn_error_message());
        tn_model_destroy(model);
    }
}

/* --- the two-layer network ----------------------------------------------------------------------------------------------------------- */

static tn_tensor *f32(int rank, const int64_t *dims, const float *values) {
    return tn_tensor_from_f32(rank, dims, values);
}

static void test_two_layers(void **s) {
    (void)s;
    /* x W1 = [4, -5] for x = [1, -2, 3]; a = [4.5, -6]; relu(a) = [4.5, 0]; y = 4.5 w + 1 = 10 with w = 2 */
    tn_tensor *w1 = f32(2, (const int64_t[]){3, 2}, (const float[]){1, 0, 0, 1, 1, -1}),
              *b1 = f32(1, (const int64_t[]){2}, (const float[]){0.5f, -1}),
              *w2 = f32(2, (const int64_t[]){2, 1}, (const float[]){2, -3}),
              *b2 = f32(1, (const int64_t[]){1}, (const float[]){1});
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("N", 3));
    tn_value a = tn_add(g, tn_matmul(g, x, tn_variable(g, "W1", w1)), tn_variable(g, "b1", b1));
    tn_set_output(g, "a", a);
    tn_set_output(g, "y", tn_add(g, tn_matmul(g, tn_relu(g, a), tn_variable(g, "W2", w2)), tn_variable(g, "b2", b2)));
    tn_model *model = tn_model_from_graph(g, NULL);
    assert_non_null(model);
    static const tn_backend backends[] = {TN_BACKEND_REFERENCE, TN_BACKEND_CPU};
    for (int b = 0; b < 2; b++) {
        tn_session *session = tn_session_create(model, TN_OPTIONS(tn_session_options, .backend = backends[b]));
        assert_non_null(session);
        tn_tensor *in = f32(2, (const int64_t[]){1, 3}, (const float[]){1, -2, 3}), *got_a = NULL, *got_y = NULL;
        assert_int_equal(tn_session_run(session, 1, (const tn_binding[]){{"x", in, NULL}}, 2,
                                        (const tn_output[]){{"y", &got_y, NULL}, {"a", &got_a, NULL}}),
                         TN_OK);
        assert_int_equal(tn_tensor_get_f64(got_a, 0) == 4.5 && tn_tensor_get_f64(got_a, 1) == -6, true);
        assert_int_equal(tn_tensor_get_f64(got_y, 0) == 10, true);
        /* into a tensor of the caller's; one output alone; a wrong shape is refused and names it */
        float place[1] = {0};
        tn_tensor *mine = tn_tensor_wrap(TN_F32, 2, (const int64_t[]){1, 1}, place),
                  *wrong = f32(2, (const int64_t[]){1, 2}, (const float[]){7, 8});
        assert_int_equal(tn_session_run(session, 1, (const tn_binding[]){{"x", in, NULL}}, 1,
                                        (const tn_output[]){{"y", &mine, NULL}}),
                         TN_OK);
        assert_true(place[0] == 10);
        assert_int_equal(tn_session_run(session, 1, (const tn_binding[]){{"x", in, NULL}}, 1,
                                        (const tn_output[]){{"y", &wrong, NULL}}),
                         TN_ERR_INPUT);
        assert_non_null(strstr(tn_error_message(), "'y'"));
        assert_true(tn_tensor_get_f64(wrong, 0) == 7);
        /* what is wrong with the feed is named */
        assert_int_equal(tn_session_run(session, 0, NULL, 1, (const tn_output[]){{"y", &got_y, NULL}}), TN_ERR_INPUT);
        assert_non_null(strstr(tn_error_message(), "x"));
        assert_int_equal(tn_session_run(session, 1, (const tn_binding[]){{"x", wrong, NULL}}, 1,
                                        (const tn_output[]){{"a", &got_a, NULL}}),
                         TN_ERR_INPUT);
        assert_non_null(strstr(tn_error_message(), "'x'"));

        /* the graph is held: no change goes through, and the session still runs */
        assert_true(tn_graph_is_frozen(g));
        assert_int_equal(tn_value_replace_uses(g, a, x), TN_ERR_USAGE);
        assert_int_equal(tn_node_remove(g, tn_value_producer(g, a)), TN_ERR_USAGE);
        assert_int_equal(tn_value_set_name(g, a, "b"), TN_ERR_USAGE);
        assert_int_equal(tn_relu(g, a).id, 0);
        assert_int_equal(tn_set_output(g, "z", a).id, 0);
        assert_int_equal(tn_graph_optimize(g, NULL), TN_ERR_USAGE);
        assert_non_null(strstr(tn_error_message(), "frozen"));
        assert_int_equal(tn_graph_check(g), TN_OK);
        assert_int_equal(tn_session_run(session, 1, (const tn_binding[]){{"x", in, NULL}}, 1,
                                        (const tn_output[]){{"y", &mine, NULL}}),
                         TN_OK);
        assert_true(place[0] == 10);
        /* a copy may change */
        tn_graph *copy = tn_graph_clone(g, NULL, NULL);
        assert_int_not_equal(tn_relu(copy, tn_graph_output(copy, 0)).id, 0);
        tn_graph_destroy(copy);
        tn_tensor_destroy(got_a);
        tn_tensor_destroy(got_y);
        tn_tensor_destroy(mine);
        tn_tensor_destroy(wrong);
        tn_tensor_destroy(in);
        tn_session_destroy(session);
    }
    tn_model_destroy(model);
    tn_graph_destroy(g);
    tn_tensor_destroy(w1);
    tn_tensor_destroy(b1);
    tn_tensor_destroy(w2);
    tn_tensor_destroy(b2);
}

/* Sessions of one model share what is compiled, and outlive the model's handle; one session runs on several threads at once. */
typedef struct worker {
    tn_session *session;
    float x, y;
    tn_status status;
} worker;

static void *work(void *ctx) {
    worker *w = ctx;
    for (int i = 0; i < 200 && w->status == TN_OK; i++) {
        float x[5], y[5];
        for (int k = 0; k < 5; k++)
            x[k] = w->x + (float)k;
        tn_tensor *in = tn_tensor_wrap(TN_F32, 1, (const int64_t[]){5}, x),
                  *out = tn_tensor_wrap(TN_F32, 1, (const int64_t[]){5}, y);
        w->status = tn_session_run(w->session, 1, (const tn_binding[]){{"x", in, NULL}}, 1,
                                   (const tn_output[]){{"y", &out, NULL}});
        for (int k = 0; k < 5 && w->status == TN_OK; k++)
            w->status = y[k] == 3 * x[k] + 1 ? TN_OK : TN_ERR_FAILED;
        tn_tensor_destroy(in);
        tn_tensor_destroy(out);
    }
    return NULL;
}

static void test_threads_share_a_session(void **s) {
    (void)s;
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("N"));
    tn_set_output(g, "y", tn_add(g, tn_mul(g, x, tn_scalar(g, TN_F32, 3)), tn_scalar(g, TN_F32, 1)));
    tn_model *model = tn_model_from_graph(g, NULL);
    tn_session *sessions[2] = {
        tn_session_create(model, TN_OPTIONS(tn_session_options, .threads = 2, .oversubscribe = true)),
        tn_session_create(model, NULL)};
    tn_model_destroy(model);
    worker workers[4];
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        workers[i] = (worker){.session = sessions[i / 3], .x = (float)(100 * i)};
        pthread_create(&threads[i], NULL, work, &workers[i]);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(workers[i].status, TN_OK);
    }
    tn_session_destroy(sessions[0]);
    tn_session_destroy(sessions[1]);
    tn_graph_destroy(g);
}

/* --- large files ------------------------------------------------------------------------------------------------------------------------ */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__linux__)
static void load_big(int64_t rows) {
    (void)rows;
    printf("skipped: memory cannot be measured here\n");
}
#else
static size_t status_kb(const char *key) {
    char line[256];
    size_t value = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, key, strlen(key)) == 0)
            value = (size_t)strtoull(line + strlen(key) + 1, NULL, 10);
    if (file)
        fclose(file);
    return value;
}

/* Loads in a process of its own: the weights are neither read nor copied, the peak is what stays. */
static void load_big(int64_t rows) {
    char path[] = "/tmp/tenon-big-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    if (!onnx_write_big(path, rows, 1 << 18)) {
        unlink(path);
        printf("skipped: no sparse file of %d MB in /tmp\n", (int)rows);
        return;
    }
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        size_t before = status_kb("VmRSS:");
        tn_model *model = tn_model_load(path, NULL);
        char text[64];
        bool ok = model && strcmp(tn_model_describe_input(model, 0, text, sizeof text), "f32[1, 1]") == 0;
        size_t after = status_kb("VmRSS:"), peak = status_kb("VmHWM:");
        printf("%d MB: %zu kB before, %zu kB after, %zu kB at most%s\n", (int)rows, before, after, peak,
               ok ? "" : ", not loaded");
        if (!ok)
            printf("%s\n", tn_error_message());
        fflush(stdout);
        _exit(ok && peak <= after + 20000 && after <= before + 20000 ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    unlink(path);
    assert_int_equal(status, 0);
}
#endif

static void test_big_models(void **s) {
    (void)s;
    const char *emulator = getenv("TENON_EMULATED");
    if (emulator && *emulator) { /* what is resident is the emulator's, whose tables grow with what is mapped */
        print_message("memory of a process under %s: skipped\n", emulator);
        return;
    }
    load_big(500);
    load_big(1024);
    load_big(1900); /* protobuf's readers end at 2 GiB: this one is just below */
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_errors_by_thread), cmocka_unit_test(test_operator_sets),
                                       cmocka_unit_test(test_two_layers),
                                       cmocka_unit_test(test_threads_share_a_session),
                                       cmocka_unit_test(test_big_models)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
