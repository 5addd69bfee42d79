/* Rows of behaviour: memory over many runs and sizes, sessions that share, one compile for all sizes. Memory that is resident is not
   judged under sanitizers. */
#include <dirent.h>
#include <setjmp.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <tenon/build.h>

#include <tenon/tenon.h>

#include "base/os.h"
#include "ir/graph.h"
#include "support/model_runs.h"
#include "support/nets.h"

static bool sanitized(void) {
    const char *sanitize = getenv("TENON_SANITIZE");
    return sanitize && *sanitize;
}

typedef struct running {
    tn_heap *heap;
    tn_graph *graph;
    tn_model *model;
    tn_session *session;
} running;

static running start(tn_heap *heap, tn_graph *g) {
    running r = {.heap = heap, .graph = g};
    if (tn_graph_check(g) != TN_OK)
        fail_msg("%s", tn_error_message());
    r.model = tn_model_from_graph(g, TN_OPTIONS(tn_model_options, .heap = heap));
    r.session = tn_session_create(r.model, TN_OPTIONS(tn_session_options, .threads = 1));
    if (!r.session)
        fail_msg("%s", tn_error_message());
    return r;
}

static void stop(running *r) {
    tn_session_destroy(r->session);
    tn_model_destroy(r->model);
    tn_graph_destroy(r->graph);
    tn_heap_destroy(r->heap);
}

/* Runs on zeros of a shape; the result is dropped. */
static void run(const running *r, int rank, const int64_t *dims) {
    tn_tensor *x = tn_tensor_create(TN_F32, rank, dims), *y = NULL;
    if (tn_session_run(r->session, 1, &(tn_binding){.name = "x", .tensor = x}, 1,
                       &(tn_output){.name = "y", .tensor = &y}) != TN_OK)
        fail_msg("%s", tn_error_message());
    tn_tensor_destroy(x);
    tn_tensor_destroy(y);
}

static tn_memory memory_of(const running *r) {
    tn_memory m;
    assert_int_equal(tn_memory_report(r->session, &m), TN_OK);
    return m;
}

static uint64_t state = 11;
static int64_t draw(int64_t low, int64_t high) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return low + (int64_t)((state >> 33) % (uint64_t)(high - low + 1));
}

static tn_value weights(tn_graph *g, int rank, const int64_t *dims) {
    tn_tensor *t = tn_tensor_create(TN_F32, rank, dims);
    for (int64_t i = 0; i < tn_tensor_count(t); i++)
        ((float *)tn_tensor_data(t))[i] = (float)draw(-8, 8) / 16;
    tn_value v = tn_constant(g, t);
    tn_tensor_destroy(t);
    return v;
}

static tn_value conv(tn_graph *g, tn_value x, int64_t out, int64_t in) {
    const tn_dim one[2] = {tn_dim_const(g, 1), tn_dim_const(g, 1)};
    return tn_conv(g, x, weights(g, 4, (const int64_t[]){out, in, 3, 3}), NULL, NULL, NULL, one, one, 1);
}

/* Resident bytes without what the C library keeps of freed memory at the end of its heap: sometimes 128 KiB, sometimes nothing. */
static size_t resident(void) {
#ifdef __GLIBC__
    malloc_trim(0);
#endif
    return tn_rss_bytes();
}

/* M1: memory that is resident is flat over batches of many sizes; what is in use, cached, and at most; one call gives back. */
static void test_m1_batches(void **s) {
    (void)s;
    tn_heap *heap = tn_heap_create(NULL);
    tn_graph *g = tn_graph_create_in(heap);
    tn_set_output(g, "y", tn_relu(g, conv(g, tn_input(g, "x", TN_F32, TN_SHAPE("N", 3, 12, 12)), 8, 3)));
    running r = start(heap, g);
    int runs = run_full() ? 10000 : 2000;
    size_t early = 0;
    for (int i = 1; i <= runs; i++) {
        run(&r, 4, (const int64_t[]){draw(1, 16), 3, 12, 12});
        if (i == runs / 10)
            early = resident();
    }
    size_t late = resident();
    if (!sanitized() && (double)late > 1.03 * (double)early)
        fail_msg("%d kB resident after %d runs, %d kB after %d", (int)(early / 1024), runs / 10, (int)(late / 1024),
                 runs);
    tn_memory m = memory_of(&r);
    assert_true(m.in_use == tn_heap_in_use(heap) && m.peak >= m.in_use && m.cached > 0 && m.cached < m.in_use);
    tn_session_trim(r.session);
    tn_memory trimmed = memory_of(&r);
    assert_int_equal(trimmed.cached, 0);
    assert_true(trimmed.in_use + m.cached <= m.in_use + 1024);
    run(&r, 4, (const int64_t[]){16, 3, 12, 12});
    stop(&r);
}

static tn_graph *one_layer(tn_heap *heap, bool images) {
    tn_graph *g = tn_graph_create_in(heap);
    if (images)
        tn_set_output(g, "y", conv(g, tn_input(g, "x", TN_F32, TN_SHAPE(1, 2, "H", "W")), 4, 2));
    else
        tn_set_output(
            g, "y",
            tn_matmul(g, tn_input(g, "x", TN_F32, TN_SHAPE("M", 16)), weights(g, 2, (const int64_t[]){16, 16})));
    return g;
}

static void run_sized(const running *r, bool images, int64_t i) {
    const int64_t rows[] = {i, 16}, image[] = {1, 2, 3 + i % 37, 3 + i / 37};
    run(r, images ? 4 : 2, images ? image : rows);
}

/* M2, M3: every size once: what is kept is one binding, the largest so far, and one plan. */
static void test_m2_m3_every_size(void **s) {
    (void)s;
    for (int images = 0; images < 2; images++) {
        int64_t last = images ? 1480 : run_full() ? 5000 : 2500;
        size_t largest =
            0; /* what the largest run takes, alone: blocks are of whole rows, so that is not the largest image's */
        for (int64_t i = images ? last - 740 : last - 1; i < last; i++) {
            tn_heap *heap = tn_heap_create(NULL);
            running r = start(heap, one_layer(heap, images));
            size_t before = tn_heap_in_use(heap);
            run_sized(&r, images, i);
            size_t taken = tn_heap_peak(heap) - before;
            largest = taken > largest ? taken : largest;
            stop(&r);
        }
        tn_heap *heap = tn_heap_create(NULL);
        running r = start(heap, one_layer(heap, images));
        size_t early = 0;
        for (int64_t i = 1; i < last; i++) {
            run_sized(&r, images, i);
            if (i == 100)
                early = tn_heap_in_use(heap);
        }
        if (tn_heap_in_use(heap) > early + largest)
            fail_msg("%d bytes after 100 sizes, %d after %d, the largest takes %d", (int)early,
                     (int)tn_heap_in_use(heap), (int)last, (int)largest);
        tn_memory m = memory_of(&r);
        assert_int_equal(m.plans, 1);
        assert_int_equal(m.compilations, 1);
        stop(&r);
    }
}

/* Executable mappings of this process, and all; -1: not to be read here. */
static int mappings(bool executable) {
    FILE *file = fopen("/proc/self/maps", "r");
    char line[4096];
    int count = file ? 0 : -1;
    while (file && fgets(line, sizeof line, file)) {
        const char *mode = strchr(line, ' ');
        count += !executable || (mode && mode[3] == 'x');
    }
    if (file)
        fclose(file);
    return count;
}

static int open_files(void) {
    DIR *folder = opendir("/proc/self/fd");
    int count = folder ? 0 : -1;
    while (folder && readdir(folder))
        count++;
    if (folder)
        closedir(folder);
    return count;
}

/* M5: random image sizes through a small network. */
static void test_m5_images(void **s) {
    (void)s;
    tn_heap *heap = tn_heap_create(NULL);
    running r = start(heap, net_build(heap, NET_CNN, -1, -1));
    int runs = run_full() ? 5000 : 1000, code = 0;
    size_t early = 0;
    run(&r, 4, (const int64_t[]){4, 3, 40, 40});
    for (int i = 1; i <= runs; i++) {
        int64_t size = draw(4, 40);
        run(&r, 4, (const int64_t[]){draw(1, 4), 3, size, size});
        if (i == 200) {
            early = resident();
            code = mappings(true);
        }
    }
    size_t late = resident();
    if (!sanitized() && (double)late > 1.03 * (double)early)
        fail_msg("%d kB resident after 200 runs, %d kB after %d", (int)(early / 1024), (int)(late / 1024), runs);
    assert_int_equal(mappings(true), code);
    stop(&r);
}

/* M6: two lengths in turn through an LSTM: one plan; what was prepared for a length is found when it comes again. */
static void test_m6_lstm(void **s) {
    (void)s;
    char path[4096];
    if (!shared_path("models/bidi-lstm/model.onnx", path, sizeof path))
        return;
    tn_model *model = tn_model_load(path, NULL);
    running r = {.model = model, .session = tn_session_create(model, TN_OPTIONS(tn_session_options, .threads = 1))};
    if (!r.session)
        fail_msg("%s", tn_error_message());
    tn_session_report first = {0}, now;
    for (int i = 0; i < (run_full() ? 1000 : 30); i++) {
        run_inputs in;
        run_outputs out;
        assert_true(run_inputs_fill(model, 3, 1, i % 2 ? "length=9,batch=1" : "length=5,batch=1", &in));
        if (run_session(r.session, model, &in, &out) != TN_OK)
            fail_msg("%s: %s", path, tn_error_message());
        run_outputs_free(&out);
        run_inputs_free(&in);
        assert_int_equal(tn_session_describe(r.session, &now), TN_OK);
        if (i < 2)
            first = now;
        assert_int_equal(now.kernels, first.kernels);
        assert_int_equal(now.expansions, first.expansions);
    }
    assert_int_equal(memory_of(&r).compilations, 1);
    tn_session_destroy(r.session);
    tn_model_destroy(model);
}

/* D10: a step of decoding, with a cache that grows by a row each time. */
static void test_d10_decoding(void **s) {
    (void)s;
    tn_heap *heap = tn_heap_create(NULL);
    tn_graph *g = tn_graph_create_in(heap);
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE(1, 32)), past = tn_input(g, "past", TN_F32, TN_SHAPE("T", 32));
    tn_value row = tn_matmul(g, x, weights(g, 2, (const int64_t[]){32, 32}));
    tn_value now = tn_concat(g, 0, 2, (const tn_value[]){past, row});
    tn_value score = tn_softmax(g, tn_matmul(g, x, tn_transpose(g, now, NULL)), 1);
    tn_set_output(g, "y", tn_matmul(g, score, now));
    tn_set_output(g, "now", now);
    running r = start(heap, g);
    tn_tensor *token = tn_tensor_create(TN_F32, 2, (const int64_t[]){1, 32}),
              *cache = tn_tensor_create(TN_F32, 2, (const int64_t[]){0, 32});
    uint32_t kernels = 0;
    for (int i = 1; i <= 200; i++) {
        tn_tensor *y = NULL, *next = NULL;
        tn_tensor_set_f64(token, i % 32, 1 + i % 3);
        const tn_binding in[] = {{.name = "x", .tensor = token}, {.name = "past", .tensor = cache}};
        const tn_output out[] = {{.name = "y", .tensor = &y}, {.name = "now", .tensor = &next}};
        if (tn_session_run(r.session, 2, in, 2, out) != TN_OK)
            fail_msg("%s", tn_error_message());
        tn_tensor_destroy(cache);
        tn_tensor_destroy(y);
        cache = next;
        assert_int_equal(tn_tensor_dims(cache)[0], i);
        tn_session_report report;
        assert_int_equal(tn_session_describe(r.session, &report), TN_OK);
        if (i > 1)
            assert_int_equal(report.kernels, kernels);
        kernels = report.kernels;
    }
    assert_int_equal(memory_of(&r).compilations, 1);
    tn_tensor_destroy(token);
    tn_tensor_destroy(cache);
    stop(&r);
}

/* A file of `layers` products with [size, size] weights. */
static bool write_products(const char *path, int layers, int64_t size) {
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("N", size));
    tn_tensor *t = tn_tensor_create(TN_F32, 2, (const int64_t[]){size, size});
    for (int i = 0; i < layers; i++) {
        tn_tensor *w = tn_tensor_copy(t);
        ((float *)tn_tensor_data(w))[i] = 1;
        x = tn_relu(g, tn_matmul(g, x, tn_constant(g, w)));
        tn_tensor_destroy(w);
    }
    tn_set_output(g, "y", x);
    tn_tensor_destroy(t);
    bool ok = tn_graph_check(g) == TN_OK && tn_graph_save(g, path) == TN_OK;
    if (!ok)
        fprintf(stderr, "%s\n", tn_error_message());
    tn_graph_destroy(g);
    return ok;
}

/* In a process of its own: its memory is nobody else's. Exit status of `body`, 0: fine, 77: skipped. */
static int apart(int (*body)(const char *path), const char *path) {
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        _exit(body(path));
    int status = 0;
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static int write_50_mb(const char *path) {
    return write_products(path, 5, 1600) ? 0 : 77;
}
static int write_64_mb(const char *path) {
    return write_products(path, 1, 4096) ? 0 : 77;
}

static size_t run_file(tn_session *s, int64_t size) {
    tn_tensor *x = tn_tensor_create(TN_F32, 2, (const int64_t[]){4, size}), *y = NULL;
    tn_status status =
        tn_session_run(s, 1, &(tn_binding){.name = "x", .tensor = x}, 1, &(tn_output){.name = "y", .tensor = &y});
    tn_memory m = {0};
    if (status == TN_OK)
        status = tn_memory_report(s, &m);
    tn_tensor_destroy(x);
    tn_tensor_destroy(y);
    if (status != TN_OK)
        fprintf(stderr, "%s\n", tn_error_message());
    return m.arenas;
}

/* M7: eight sessions on a model of 50 MB. */
static int eight_on_50_mb(const char *path) {
    size_t before = tn_rss_bytes(), arenas = 0;
    tn_model *model = tn_model_load(path, NULL);
    tn_session *s[8] = {0};
    for (int i = 0; i < 8 && model; i++) {
        s[i] = tn_session_create(model, TN_OPTIONS(tn_session_options, .threads = 1));
        arenas += s[i] ? run_file(s[i], 1600) : 0;
    }
    size_t grown = tn_rss_bytes() - before;
    bool ok = s[7] && (double)grown <= 1.05 * (51.2e6 + (double)arenas) + 3e6;
    fprintf(stderr, "8 sessions on 51.2 MB of weights: %.1f MB, arenas %.1f MB\n", (double)grown / 1e6,
            (double)arenas / 1e6);
    for (int i = 0; i < 8; i++)
        tn_session_destroy(s[i]);
    tn_model_destroy(model);
    return ok || sanitized() ? 0 : 1;
}

/* L6: each further session on a model with one product weight of 64 MB adds less than 1 MB. */
static int eight_on_64_mb(const char *path) {
    tn_model *model = tn_model_load(path, NULL);
    tn_session *s[8] = {0};
    size_t first = 0, last = 0;
    for (int i = 0; i < 8 && model; i++) {
        s[i] = tn_session_create(model, TN_OPTIONS(tn_session_options, .threads = 1));
        if (s[i])
            run_file(s[i], 4096);
        last = tn_rss_bytes();
        first = i ? first : last;
    }
    fprintf(stderr, "7 further sessions on 64 MB: %.2f MB\n", (double)(last - first) / 1e6);
    bool ok = s[7] && last - first < 7000000;
    for (int i = 0; i < 8; i++)
        tn_session_destroy(s[i]);
    tn_model_destroy(model);
    return ok || sanitized() ? 0 : 1;
}

static void test_m7_l6_sessions(void **s) {
    (void)s;
    for (int which = 0; which < 2; which++) {
        char path[4096];
        scratch_template("tenon-sessions", path, sizeof path - 8);
        int file = mkstemp(path);
        assert_true(file >= 0);
        close(file);
        unlink(path);
        strcat(path, ".tenon");
        int wrote = apart(which ? write_64_mb : write_50_mb, path);
        int ran = wrote ? wrote : apart(which ? eight_on_64_mb : eight_on_50_mb, path);
        unlink(path);
        if (wrote == 77)
            printf("skipped: no file of that size\n");
        else
            assert_int_equal(ran, 0);
    }
}

/* M12: a model that comes and goes leaves no memory, file or mapping. */
static void test_m12_rounds(void **s) {
    (void)s;
    size_t early = 0;
    int files = 0, maps = 0;
    for (int round = 1; round <= 200; round++) {
        tn_model *model = tn_model_load(TENON_SOURCE_DIR "/examples/data/mnist-cnn.onnx", NULL);
        run_inputs in;
        run_outputs out;
        assert_true(model && run_inputs_fill(model, 1, 1, NULL, &in));
        if (run_model(model, TN_OPTIONS(tn_session_options, .threads = 1), &in, &out) != TN_OK)
            fail_msg("%s", tn_error_message());
        run_outputs_free(&out);
        run_inputs_free(&in);
        tn_model_destroy(model);
        if (round == 10) {
            early = resident();
            files = open_files();
            maps = mappings(false);
        }
    }
    if (!sanitized() && tn_rss_bytes() > early + (1 << 20))
        fail_msg("%d kB resident after 10 rounds, %d kB after 200", (int)(early / 1024), (int)(tn_rss_bytes() / 1024));
    assert_int_equal(open_files(), files);
    if (!sanitized())                                  /* which maps as it likes */
        assert_in_range(mappings(false), 0, maps + 2); /* the C library's own may come and go */
}

/* D1: batches of 1 to 100: one compile, and why. */
static void test_d1_one_compile(void **s) {
    (void)s;
    tn_heap *heap = tn_heap_create(NULL);
    running r = start(heap, net_build(heap, NET_MLP, -1, -1));
    for (int64_t n = 1; n <= 100; n++)
        run(&r, 2, (const int64_t[]){n, 32});
    tn_memory m = memory_of(&r);
    assert_int_equal(m.plans, 1);
    assert_int_equal(m.compilations, 1);
    char text[200];
    assert_int_equal(tn_session_plan(r.session, 0, text, sizeof text), TN_OK);
    assert_non_null(strstr(text, "-O2"));
    assert_non_null(strstr(text, "all outputs"));
    assert_int_equal(tn_session_plan(r.session, 1, text, sizeof text), TN_ERR_USAGE);
    stop(&r);
}

/* D2: a scalar that data decide, ten times: one compile. It is the number of trips, a length, and where a slice begins. */
static void below(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    results[0] = tn_less(g, args[0], *(const tn_value *)ctx);
}
static void trip(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)ctx;
    results[0] = tn_add(g, args[0], tn_constant_i64(g, 0, 1, (const int64_t[]){1}));
    results[1] = tn_add(g, args[1], args[1]);
}
static void test_d2_scalars(void **s) {
    (void)s;
    tn_graph *g = tn_graph_create();
    tn_value n = tn_input(g, "n", TN_I64, TN_SCALAR), x = tn_input(g, "x", TN_F32, TN_SHAPE(16)), out[2];
    tn_value init[2] = {tn_constant_i64(g, 0, 1, (const int64_t[]){0}), x};
    assert_int_equal(tn_while(g, 2, init, NULL, below, trip, &n, 0, out), TN_OK);
    tn_dim size[] = {tn_dim_const(g, 2)};
    tn_value some = tn_compress(g, x, tn_less(g, x, tn_cast(g, n, TN_F32)), 0);
    tn_set_output(g, "double", out[1]);
    tn_set_output(g, "part", tn_dynamic_slice(g, x, tn_reshape(g, n, TN_SHAPE(1)), size));
    tn_set_output(g, "some", tn_mul(g, some, some));
    if (tn_graph_check(g) != TN_OK)
        fail_msg("%s", tn_error_message());
    running r = {.graph = g, .model = tn_model_from_graph(g, NULL)};
    r.session = tn_session_create(r.model, NULL);
    tn_tensor *of_x = tn_tensor_create(TN_F32, 1, (const int64_t[]){16}), *of_n = tn_tensor_create(TN_I64, 0, NULL);
    for (int i = 0; i < 16; i++)
        tn_tensor_set_f64(of_x, i, i);
    for (int i = 0; i < 10; i++) {
        tn_tensor *y[3] = {0};
        tn_tensor_set_f64(of_n, 0, i);
        const tn_binding in[] = {{.name = "n", .tensor = of_n}, {.name = "x", .tensor = of_x}};
        const tn_output outs[] = {
            {.name = "double", .tensor = &y[0]}, {.name = "part", .tensor = &y[1]}, {.name = "some", .tensor = &y[2]}};
        if (tn_session_run(r.session, 2, in, 3, outs) != TN_OK)
            fail_msg("%s", tn_error_message());
        assert_true(tn_tensor_get_f64(y[0], 3) == 3 * (1 << i));
        assert_true(tn_tensor_get_f64(y[1], 1) == i + 1);
        assert_int_equal(tn_tensor_count(y[2]), i);
        for (int k = 0; k < 3; k++)
            tn_tensor_destroy(y[k]);
    }
    assert_int_equal(memory_of(&r).compilations, 1);
    tn_tensor_destroy(of_x);
    tn_tensor_destroy(of_n);
    stop(&r);
}

/* D3: a dimension with a bound: one plan, memory as for the bound at most. (Time: timing/sizes.) */
static void test_d3_bounded(void **s) {
    (void)s;
    tn_heap *heap = tn_heap_create(NULL);
    tn_graph *g = tn_graph_create_in(heap);
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("N", 64));
    assert_int_equal(tn_dim_set_bounds(g, tn_value_dim(g, x, 0), 0, 1024), TN_OK);
    tn_value y = tn_gelu(g, tn_matmul(g, x, weights(g, 2, (const int64_t[]){64, 128})));
    tn_set_output(g, "y", tn_softmax(g, tn_matmul(g, y, weights(g, 2, (const int64_t[]){128, 32})), 1));
    running r = start(heap, g);
    size_t arena[3];
    const int64_t sizes[] = {1024, 1, 7};
    for (int i = 0; i < 3; i++) {
        run(&r, 2, (const int64_t[]){sizes[i], 64});
        tn_session_report report;
        assert_int_equal(tn_session_describe(r.session, &report), TN_OK);
        arena[i] = report.arena_bytes;
        assert_true(report.arena_bytes <= arena[0]);
    }
    assert_true(arena[2] * 100 < arena[0]);
    assert_int_equal(memory_of(&r).compilations, 1);
    stop(&r);
}

/* D6: a size beyond its bound, though as many elements: the input, the dimension, the value and the bound are named. */
static void test_d6_beyond_bounds(void **s) {
    (void)s;
    for (int back = 0; back < 2; back++) {
        tn_graph *g = tn_graph_create();
        tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("A", "B"));
        tn_dim_set_bounds(g, tn_value_dim(g, x, 0), 1, 3);
        tn_dim_set_bounds(g, tn_value_dim(g, x, 1), 0, 4);
        tn_set_output(g, "y", tn_exp(g, x));
        tn_model *model = tn_model_from_graph(g, NULL);
        tn_session *session = tn_session_create(
            model, TN_OPTIONS(tn_session_options, .backend = back ? TN_BACKEND_REFERENCE : TN_BACKEND_CPU));
        const int64_t shapes[][2] = {{2, 6}, {4, 3}, {0, 2}, {3, 4}, {1, 0}};
        const char *const says[][3] = {{"'x'", "dimension 1 is 6", "at most 4"},
                                       {"'x'", "dimension 0 is 4", "at most 3"},
                                       {"'x'", "dimension 0 is 0", "at least 1"},
                                       {0},
                                       {0}};
        for (int i = 0; i < 5; i++) {
            tn_tensor *t = tn_tensor_create(TN_F32, 2, shapes[i]), *y = NULL;
            tn_status status = tn_session_run(session, 1, &(tn_binding){.name = "x", .tensor = t}, 1,
                                              &(tn_output){.name = "y", .tensor = &y});
            assert_int_equal(status, says[i][0] ? TN_ERR_INPUT : TN_OK);
            for (int k = 0; k < 3 && says[i][k]; k++)
                if (!strstr(tn_error_message(), says[i][k]))
                    fail_msg("'%s' does not say %s", tn_error_message(), says[i][k]);
            tn_tensor_destroy(t);
            tn_tensor_destroy(y);
        }
        tn_session_destroy(session);
        tn_model_destroy(model);
        tn_graph_destroy(g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_m1_batches),      cmocka_unit_test(test_m2_m3_every_size),
                                       cmocka_unit_test(test_m5_images),       cmocka_unit_test(test_m6_lstm),
                                       cmocka_unit_test(test_d10_decoding),    cmocka_unit_test(test_m7_l6_sessions),
                                       cmocka_unit_test(test_m12_rounds),      cmocka_unit_test(test_d1_one_compile),
                                       cmocka_unit_test(test_d2_scalars),      cmocka_unit_test(test_d3_bounded),
                                       cmocka_unit_test(test_d6_beyond_bounds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
