/* Files that are damaged or meant to harm: every bit of ten small models flipped, every length they can be cut to, weights that are
   no files or lie elsewhere. Each try ends by itself, quickly and in little memory. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include <tenon/tenon.h>

#include "base/os.h"
#include "interp/interp.h"
#include "support/model_runs.h"

#define MOST_BYTES ((size_t)64 << 20)
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MOST_SECONDS 10.0
#else
#define MOST_SECONDS 1.0
#endif

/* Shared with the process that tries. */
typedef struct progress {
    size_t position; /* bit flipped; or size in bits + bytes kept */
    uint32_t tries, loaded, compiled, ran;
    double slowest;
    size_t slowest_at, most_bytes, most_at;
} progress;

/* Runs by the interpreter what loaded, within bounds. */
static bool run_bounded(tn_session *session, tn_model *model, tn_heap *heap) {
    const tn_graph *g = tn_session_graph(session);
    run_inputs in;
    double elements = 0;
    for (uint32_t i = 0; i < tn_model_input_count(model); i++) {
        tn_type type = tn_model_input_type(model, i);
        double count = 1;
        for (int d = 0; d < tn_type_rank(tn_model_graph(model), type); d++) {
            int64_t size = 2;
            tn_dim_is_const(tn_model_graph(model), tn_type_dims(tn_model_graph(model), type)[d], &size);
            count *= (double)size;
        }
        elements += count;
    }
    if (elements > 1e5 || tn_model_output_count(model) > RUN_MAX || !run_inputs_fill(model, 1, 2, NULL, &in))
        return false;
    tn_value values[RUN_MAX], wanted[RUN_MAX];
    tn_object *given[RUN_MAX], *out[RUN_MAX] = {NULL};
    uint32_t n = 0, n_out = tn_graph_output_count(g);
    for (uint32_t i = 0; i < in.count; i++)
        for (uint32_t k = 0; k < tn_graph_input_count(g); k++)
            if (strcmp(in.binding[i].name, tn_value_name(g, tn_graph_input(g, k))) == 0) {
                values[n] = tn_graph_input(g, k);
                given[n++] = tn_tensor_object(in.binding[i].tensor);
            }
    for (uint32_t i = 0; i < n_out; i++)
        wanted[i] = tn_graph_output(g, i);
    tn_interp_options o = {.heap = heap, .max_bytes = (size_t)16 << 20, .max_nodes = 2000};
    bool ok = tn_interp_run(g, &o, n, values, given, n_out, wanted, out) == TN_OK;
    for (uint32_t i = 0; i < n_out; i++)
        tn_object_destroy(out[i]);
    run_inputs_free(&in);
    return ok;
}

static void attempt(const uint8_t *bytes, size_t size, progress *p) {
    double start = tn_clock();
    tn_heap *heap = tn_heap_create(NULL);
    tn_heap_set_limit(heap, 4 * MOST_BYTES);
    tn_model *model = tn_model_load_memory(bytes, size, TN_OPTIONS(tn_model_options, .heap = heap));
    if (model) {
        p->loaded++;
        tn_session *compiled = tn_session_create(model, TN_OPTIONS(tn_session_options, .threads = 1));
        p->compiled += compiled != NULL;
        tn_session_destroy(compiled);
        tn_session *session =
            tn_session_create(model, TN_OPTIONS(tn_session_options, .threads = 1, .backend = TN_BACKEND_REFERENCE));
        if (session)
            p->ran += run_bounded(session, model, heap);
        tn_session_destroy(session);
    }
    tn_model_destroy(model);
    if (tn_heap_in_use(heap))
        abort();
    size_t peak = tn_heap_peak(heap);
    tn_heap_destroy(heap);
    double seconds = tn_clock() - start;
    p->tries++;
    if (seconds > p->slowest) {
        p->slowest = seconds;
        p->slowest_at = p->position;
    }
    if (peak > p->most_bytes) {
        p->most_bytes = peak;
        p->most_at = p->position;
    }
}

static void all_attempts(const char *whole, size_t size, size_t step, progress *p) {
    uint8_t *bytes = malloc(size);
    for (size_t bit = 0; bit < 8 * size; bit += step) {
        memcpy(bytes, whole, size);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        p->position = bit;
        attempt(bytes, size, p);
    }
    for (size_t kept = 0; kept < size; kept += (step + 3) / 4) {
        uint8_t *cut = malloc(kept + 1); /* of its own size, so that a sanitizer sees reads past the end */
        memcpy(cut, whole, kept);
        p->position = 8 * size + kept;
        attempt(cut, kept, p);
        free(cut);
    }
    free(bytes);
}

static void test_bits(void **s) {
    (void)s;
    static const char *const models[] = {"deconv-group",
                                         "local-function-variadic",
                                         "lstm-bidirectional",
                                         "sparse-initializer",
                                         "sklearn-voting",
                                         "nested-if-loop-scan",
                                         "qtdnn",
                                         "nested-optional",
                                         "data-types",
                                         "nested-if"};
    progress *p = mmap(NULL, sizeof *p, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(p != MAP_FAILED);
    int failures = 0;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        char file[256], path[4096];
        snprintf(file, sizeof file, "models/%s/model.onnx", models[i]);
        if (!shared_path(file, path, sizeof path))
            continue;
        size_t size;
        char *whole = tn_file_read(NULL, path, &size);
        assert_non_null(whole);
        memset(p, 0, sizeof *p);
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            all_attempts(whole, size, run_full() ? 1 : 61, p);
            _exit(0);
        }
        /* a try that hangs is ended */
        int status = 0;
        for (uint32_t tries = 0, quiet = 0; waitpid(child, &status, WNOHANG) == 0; usleep(20000)) {
            quiet = tries == p->tries ? quiet + 1 : 0;
            tries = p->tries;
            if (quiet > 60 * 50)
                kill(child, SIGKILL);
        }
        bool ok = status == 0 && p->slowest < MOST_SECONDS && p->most_bytes < MOST_BYTES;
        failures += !ok;
        printf("%s%s: %u tries, %u loaded, %u compiled, %u ran; slowest %d ms at %zu, most memory %zu kB at %zu\n",
               ok ? "" : "FAILED ", models[i], p->tries, p->loaded, p->compiled, p->ran, (int)(1e3 * p->slowest),
               p->slowest_at, p->most_bytes / 1000, p->most_at);
        if (status)
            printf("   ended by %s %d at %zu\n", WIFSIGNALED(status) ? "signal" : "exit",
                   WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), p->position);
        tn_free(NULL, whole);
    }
    munmap(p, sizeof *p);
    assert_int_equal(failures, 0);
}

/* --- weights in other files ---------------------------------------------------------------------------------------------------------- */

static char root[64];

static const char *in_root(const char *name) {
    static char path[4][256];
    static int next;
    char *text = path[next++ % 4];
    snprintf(text, 256, "%s/%s", root, name);
    return text;
}

static void put_entry(tn_text *tensor, const char *key, const char *value) {
    tn_text entry;
    tn_text_init(&entry, NULL);
    tn_text_printf(&entry, "\n%c%s\x12%c%s", (int)strlen(key), key, (int)strlen(value), value); /* fields 1 and 2 */
    onnx_put_message(tensor, 13, &entry);
    tn_text_free(&entry);
}

/* y = x + w, w f32[4] in the file `location`. */
static void write_model(const char *name, const char *location) {
    tn_text graph, tensor, opset, file;
    tn_text *all[] = {&graph, &tensor, &opset, &file};
    for (size_t i = 0; i < 4; i++)
        tn_text_init(all[i], NULL);
    onnx_put_node(&graph, "Add", 2, (const char *[]){"x", "w"}, "y");
    onnx_put_value(&graph, 11, "x", 1, (const int64_t[]){4});
    onnx_put_value(&graph, 12, "y", 1, (const int64_t[]){4});
    tn_text_printf(&tensor, "\x08\x04\x10\x01\x42\x01w");
    put_entry(&tensor, "location", location);
    tn_text_printf(&tensor, "\x70\x01"); /* data_location: external */
    onnx_put_message(&graph, 5, &tensor);
    tn_text_printf(&graph, "\x12\x01g");
    tn_text_printf(&opset, "\x10\x11");
    tn_text_printf(&file, "\x08\x08");
    onnx_put_message(&file, 8, &opset);
    onnx_put_message(&file, 7, &graph);
    assert_int_equal(tn_file_write(in_root(name), file.data, file.len), TN_OK);
    for (size_t i = 0; i < 4; i++)
        tn_text_free(all[i]);
}

/* Loads in a process of its own, which has a second: 0 when it loads, else the status. */
static int load_status(const char *name) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        alarm(1 + (int)MOST_SECONDS);
        tn_model *model = tn_model_load(in_root(name), NULL);
        _exit(model ? 0 : (int)tn_error_status());
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status))
        fail_msg("%s: signal %d", name, WTERMSIG(status));
    return WEXITSTATUS(status);
}

static void test_external(void **s) {
    (void)s;
    strcpy(root, "/tmp/tenon-hostile-XXXXXX");
    assert_non_null(mkdtemp(root));
    assert_int_equal(mkdir(in_root("inside"), 0700), 0);
    static const float w[4] = {1, 2, 3, 4};
    assert_int_equal(tn_file_write(in_root("outside.bin"), w, sizeof w), TN_OK);
    assert_int_equal(tn_file_write(in_root("inside/good.bin"), w, sizeof w), TN_OK);
    assert_int_equal(mkfifo(in_root("inside/fifo"), 0600), 0);
    assert_int_equal(link(in_root("outside.bin"), in_root("inside/hard.bin")), 0);
    assert_int_equal(symlink("../outside.bin", in_root("inside/soft.bin")), 0);
    assert_int_equal(symlink("..", in_root("inside/up")), 0);
    static const struct {
        const char *location;
        bool loads;
    } cases[] = {{"good.bin", true},
                 {"./good.bin", true},
                 {"fifo", false},
                 {"hard.bin", false},
                 {"soft.bin", false},
                 {"up/outside.bin", false},
                 {"../outside.bin", false},
                 {"/dev/zero", false},
                 {"", false},
                 {".", false},
                 {"nothing.bin", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_model("inside/m.onnx", cases[i].location);
        int status = load_status("inside/m.onnx");
        if ((status == 0) != cases[i].loads)
            fail_msg("weights at '%s': status %s", cases[i].location, tn_status_name((tn_status)status));
    }
    /* a FIFO, a folder and nothing as the model itself */
    assert_int_equal(load_status("inside/fifo"), TN_ERR_IO);
    assert_int_equal(load_status("inside"), TN_ERR_IO);
    assert_int_equal(load_status("inside/nobody.onnx"), TN_ERR_IO);
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", root);
    assert_int_equal(system(command), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bits), cmocka_unit_test(test_external)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
