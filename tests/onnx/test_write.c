/* Writing ONNX models: what was read comes back, files appear whole or not at all, nothing outside the folder is touched. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tenon/session.h>

#include "base/os.h"
#include "ir/text.h"
#include "onnx/op.h"
#include "onnx/tensor_file.h"
#include "support/onnx_bytes.h"

static char folder[] = "/tmp/tenon-test-XXXXXX";

static int make_folder(void **state) {
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static size_t files_in_folder(bool remove) {
    char **names, path[4096];
    size_t count;
    assert_int_equal(tn_folder_list(NULL, folder, &names, &count), TN_OK);
    for (size_t i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        if (remove)
            unlink(path);
        tn_free(NULL, names[i]);
    }
    tn_free(NULL, names);
    return count;
}

static int remove_folder(void **state) {
    (void)state;
    files_in_folder(true);
    return rmdir(folder);
}

static const char *in_folder(const char *name) {
    static char path[4][4096];
    static int at;
    at = (at + 1) % 4;
    snprintf(path[at], sizeof path[at], "%s/%s", folder, name);
    return path[at];
}

/* --- a model with one of everything ------------------------------------------------------------------------------------------------ */

static tn_text prop(const char *key, const char *value) {
    tn_text p = message();
    put_text(&p, 1, key);
    put_text(&p, 2, value);
    return p;
}

static tn_text branch(const char *op, const char *output) {
    tn_text g = message(), node = node_bytes(op, "inner", "x", output, message());
    put_text(&node, 6, "a node's doc string");
    put_message(&g, 1, node);
    put_text(&g, 2, "branch");
    put_text(&g, 10, "a branch's doc string");
    put_value(&g, 12, output, TN_F32, "N,a b");
    return g;
}

static tn_text everything(void) {
    tn_text g = message(), attrs = message(), function = message(), strings = message(), sparse = message();
    put_value(&g, 11, "x", TN_F32, "N,a b");
    put_value(&g, 11, "c", TN_BOOL, "");
    put_value(&g, 11, "d", TN_F32, "2");
    put_typed(&g, 11, "z", type_bytes(8, TN_F32, "N,a b"));
    put_floats(&g, 5, "d", 1, (int64_t[]){2}, (float[]){1, -0.0f});
    attr_graph(&attrs, "then_branch", branch("Neg", "p"));
    attr_graph(&attrs, "else_branch", branch("Abs", "q"));
    tn_text node = node_bytes("If", "choice", "c", "i", attrs);
    put_message(&node, 9, prop("node", "property"));
    put_message(&g, 1, node);
    attrs = message();
    attr_ref(&attrs, "alpha", "slope", 1);
    tn_text leaky = node_bytes("LeakyRelu", "", "v", "w", attrs);
    put_text(&function, 1, "f.with.dots");
    put_text(&function, 4, "v");
    put_text(&function, 5, "w");
    put_text(&function, 6, "slope");
    put_message(&function, 7, leaky);
    put_text(&function, 8, "a function's doc string");
    put_opset(&function, 9, "", 16);
    put_text(&function, 10, "my.domain");
    tn_text call = node_bytes("f.with.dots", "call", "i", "r", message());
    put_text(&call, 7, "my.domain");
    put_message(&g, 1, call);
    tn_wire_put_varint(&strings, 1, 2);
    tn_wire_put_varint(&strings, 2, TN_STRING);
    tn_wire_put_bytes(&strings, 6, "a\0b", 3);
    tn_wire_put_bytes(&strings, 6, "", 0);
    put_text(&strings, 8, "text");
    put_message(&g, 5, strings);
    put_node(&g, "Identity", "", "text", "words");
    put_floats(&sparse, 1, "few", 1, (int64_t[]){2}, (float[]){3, 4});
    put_ints(&sparse, 2, "", 2, (int64_t[]){1, 600});
    tn_wire_put_varint(&sparse, 3, 1000);
    put_message(&g, 15, sparse);
    put_node(&g, "Identity", "", "few", "many");
    put_node(&g, "SequenceConstruct", "", "r,i", "s");
    put_value(&g, 12, "r", TN_F32, "N,?");
    put_value(&g, 12, "words", TN_STRING, "2");
    put_typed(&g, 12, "z", type_bytes(8, TN_F32, "N,a b"));
    put_value(&g, 12, "many", TN_F32, NULL);
    put_value(&g, 13, "i", TN_F32, "N,a b");
    tn_text info = message(), type = message(), sequence = message(), element = message(), tensor = message();
    put_text(&info, 1, "s");
    tn_wire_put_varint(&tensor, 1, TN_F32);
    put_message(&element, 1, tensor);
    put_message(&sequence, 1, element);
    put_message(&type, 4, sequence);
    put_message(&info, 2, type);
    put_text(&info, 3, "an output's doc string");
    put_message(&g, 12, info);
    put_text(&g, 10, "the graph's doc string");
    tn_text m = model_bytes(17, g);
    put_opset(&m, 8, "my.domain", 1);
    put_opset(&m, 8, "unused", 3);
    put_text(&m, 3, "1.0");
    put_text(&m, 4, "org.example");
    tn_wire_put_varint(&m, 5, 7);
    put_text(&m, 6, "the model's doc string");
    put_message(&m, 14, prop("key", "value"));
    put_message(&m, 25, function);
    return m;
}

static tn_graph *load(tn_heap *heap, const char *bytes, size_t size) {
    tn_graph *g = tn_onnx_load_memory(bytes, size, NULL, NULL, &(tn_onnx_options){.heap = heap});
    if (!g && !heap)
        fail_msg("%s", tn_error_message());
    return g;
}

static void what_was_read_comes_back(void **state) {
    (void)state;
    tn_text m = everything();
    const char *path = in_folder("m.onnx");
    tn_graph *g = load(NULL, m.data, m.len);
    if (tn_graph_save(g, path) != TN_OK)
        fail_msg("%s", tn_error_message());
    size_t size, again_size;
    char *bytes = tn_file_read(NULL, path, &size);
    tn_graph *back = load(NULL, bytes, size);
    char *wanted = tn_graph_print(g), *got = tn_graph_print(back);
    assert_string_equal(wanted, got);
    assert_int_equal(tn_graph_save(back, path), TN_OK);
    char *again = tn_file_read(NULL, path, &again_size);
    assert_true(size == again_size && memcmp(bytes, again, size) == 0);
    static const char *const words[] = {
        "a node's doc", "a branch's doc", "a function's doc", "an output's doc", "graph's doc", "model's doc",
        "org.example",  "property",       "f.with.dots",      "unused",          "a b"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!memmem(bytes, size, words[i], strlen(words[i])))
            fail_msg("'%s' is lost", words[i]);
    assert_true(size < 3000); /* the sparse tensor stays sparse */
    tn_free(NULL, again);
    tn_free(NULL, bytes);
    tn_graph_free_text(g, wanted);
    tn_graph_free_text(back, got);
    tn_graph_destroy(g);
    tn_graph_destroy(back);
    tn_text_free(&m);
    unlink(path);
}

/* Names of any length: of a function, a graph attribute, an initializer that is sparse, an input, an output. */
static void long_names_come_back(void **state) {
    (void)state;
    enum { LENGTH = 3000 };
    char name[LENGTH + 1], *bytes;
    memset(name, 'n', LENGTH);
    name[LENGTH] = 0;
    tn_text g = message(), function = message(), attrs = message(), sparse = message(), node;
    put_typed(&g, 11, "x", type_bytes(8, TN_F32, "N,a b"));
    put_value(&g, 11, name, TN_F32, "N,a b");
    put_text(&function, 1, name);
    put_text(&function, 4, "v");
    put_text(&function, 5, "w");
    put_message(&function, 7, node_bytes("Neg", "", "v", "w", message()));
    put_text(&function, 8, "a function's doc string");
    put_opset(&function, 9, "", 17);
    put_text(&function, 10, "my.domain");
    node = node_bytes(name, "call", "x", "r", message());
    put_text(&node, 7, "my.domain");
    put_message(&g, 1, node);
    attr_graph(&attrs, name, branch("Neg", "inner"));
    node = node_bytes("Unknown", "", "r", "q", attrs);
    put_text(&node, 7, "my.domain");
    put_message(&g, 1, node);
    name[0] = 's';
    put_floats(&sparse, 1, name, 1, (int64_t[]){2}, (float[]){3, 4});
    put_ints(&sparse, 2, "", 2, (int64_t[]){1, 600});
    tn_wire_put_varint(&sparse, 3, 1000);
    put_message(&g, 15, sparse);
    put_node(&g, "Identity", "", name, "many");
    put_value(&g, 12, "q", TN_F32, "N,?");
    put_value(&g, 12, "many", TN_F32, NULL);
    name[0] = 'o';
    put_node(&g, "Identity", "", "r", name);
    put_typed(&g, 12, name, type_bytes(8, TN_F32, "N,?"));
    tn_text m = model_bytes(17, g);
    put_opset(&m, 8, "my.domain", 1);
    put_message(&m, 25, function);
    const char *path = in_folder("m.onnx");
    tn_graph *graph = load(NULL, m.data, m.len);
    size_t size;
    if (tn_graph_save(graph, path) != TN_OK)
        fail_msg("%s", tn_error_message());
    assert_int_equal(tn_graph_save_as(graph, in_folder("n.onnx"), TN_OPTIONS(tn_save_options, .opset = 18)),
                     TN_ERR_UNSUPPORTED); /* the function */
    bytes = tn_file_read(NULL, path, &size);
    tn_graph *back = load(NULL, bytes, size);
    char *wanted = tn_graph_print(graph), *got = tn_graph_print(back);
    assert_string_equal(wanted, got);
    static const char *const words[] = {"a function's doc", "a branch's doc"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!memmem(bytes, size, words[i], strlen(words[i])))
            fail_msg("'%s' is lost", words[i]);
    assert_true(size < m.len + 200); /* sparse still */
    tn_free(NULL, bytes);
    tn_graph_free_text(graph, wanted);
    tn_graph_free_text(back, got);
    tn_graph_destroy(graph);
    tn_graph_destroy(back);
    tn_text_free(&m);
    unlink(path);
}

/* Each allocation fails in turn: an error, no file, no leak. */
static void memory_runs_out(void **state) {
    (void)state;
    tn_text m = everything();
    const char *path = in_folder("m.onnx");
    for (int outside = 0; outside < 2; outside++)
        for (uint64_t n = 1;; n++) {
            tn_heap *heap = tn_heap_create(0);
            tn_graph *g = load(heap, m.data, m.len);
            assert_non_null(g);
            size_t before = tn_heap_in_use(heap);
            tn_heap_fail_at(heap, n, true);
            tn_status status =
                tn_graph_save_as(g, path, TN_OPTIONS(tn_save_options, .external_data = outside, .opset = 0));
            tn_heap_fail_at(heap, 0, false);
            assert_int_equal(tn_heap_in_use(heap), before);
            assert_int_equal(files_in_folder(true), status == TN_OK ? 1 : 0);
            tn_graph_destroy(g);
            assert_int_equal(tn_heap_in_use(heap), 0);
            tn_heap_destroy(heap);
            if (status == TN_OK)
                break;
            assert_int_equal(status, TN_ERR_MEMORY);
            assert_true(n < 100000);
        }
    tn_text_free(&m);
}

/* --- external data ------------------------------------------------------------------------------------------------------------------ */

static tn_graph *two_weights(void) {
    tn_graph *g = tn_graph_new(NULL, tn_onnx_table());
    int64_t dims[] = {400, 2};
    const char *names[] = {"a", "b"};
    tn_value in[2];
    for (int i = 0; i < 2; i++) {
        tn_tensor *t = tn_tensor_create(TN_F32, 2, dims);
        for (int k = 0; k < 800; k++)
            ((float *)tn_tensor_data(t))[k] = (float)(k + i);
        in[i] = tn_graph_constant(g, t);
        tn_value_set_name(g, in[i], names[i]);
        tn_tensor_destroy(t);
    }
    tn_node n = tn_graph_add_node(
        g, &(tn_node_desc){.op = &tn_onnx_find("", "Add", 17)->op, .input_count = 2, .inputs = in, .output_count = 1});
    tn_graph_add_output(g, tn_node_output(g, n, 0), "y");
    tn_graph_set_metadata(g, TN_META_OPSET "ai.onnx", "17", 2);
    tn_graph_set_metadata(g, TN_META_IR_VERSION, "8", 1);
    assert_int_equal(tn_graph_check(g), TN_OK);
    return g;
}

static void check_two_weights(const char *path) {
    tn_graph *g = tn_onnx_load_file(path, NULL);
    if (!g)
        fail_msg("%s", tn_error_message());
    tn_tensor *b = tn_value_constant(g, tn_graph_find_value(g, "b"));
    assert_non_null(b);
    assert_true(((const float *)tn_tensor_data(b))[799] == 800);
    tn_graph_destroy(g);
}

static void data_lies_beside_the_model(void **state) {
    (void)state;
    tn_graph *g = two_weights();
    const char *path = in_folder("m.onnx"), *data = in_folder("m.onnx.data"), *precious = in_folder("precious");
    const tn_save_options *outside = TN_OPTIONS(tn_save_options, .external_data = true);
    assert_int_equal(tn_graph_save_as(g, path, outside), TN_OK);
    assert_int_equal(files_in_folder(false), 2);
    check_two_weights(path);
    /* a model that was read with external data keeps it, and may be saved over itself */
    tn_graph *again = tn_onnx_load_file(path, NULL);
    assert_int_equal(tn_graph_save(again, path), TN_OK);
    assert_int_equal(files_in_folder(false), 2);
    check_two_weights(path);
    tn_graph_destroy(again);
    /* links in the way are replaced, what they point to stays as it is */
    for (int hard = 0; hard < 2; hard++) {
        files_in_folder(true);
        assert_int_equal(tn_file_write(precious, "precious", 8), TN_OK);
        assert_int_equal(hard ? link(precious, path) : symlink(precious, path), 0);
        assert_int_equal(hard ? link(precious, data) : symlink(precious, data), 0);
        assert_int_equal(tn_graph_save_as(g, path, outside), TN_OK);
        size_t size;
        char *kept = tn_file_read(NULL, precious, &size);
        assert_true(kept && size == 8 && memcmp(kept, "precious", 8) == 0);
        tn_free(NULL, kept);
        check_two_weights(path);
    }
    /* what cannot be written leaves nothing behind: a pipe or folder where the data should be, a full disk, no folder */
    files_in_folder(true);
    assert_int_equal(mkfifo(data, 0600), 0);
    assert_int_equal(tn_graph_save_as(g, path, outside), TN_ERR_IO);
    assert_int_equal(files_in_folder(true), 1);
    assert_int_equal(mkdir(data, 0700), 0);
    assert_int_equal(tn_graph_save_as(g, path, outside), TN_ERR_IO);
    assert_int_equal(files_in_folder(false), 1);
    assert_int_equal(rmdir(data), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(tn_graph_save_as(g, path, outside), TN_ERR_IO);
    assert_int_equal(files_in_folder(false), 1);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(tn_graph_save_as(g, "/dev/full", outside), TN_ERR_IO);
    assert_int_equal(tn_path_kind_of("/dev/full.data"), TN_PATH_NONE);
    assert_int_equal(tn_graph_save(g, in_folder("none/m.onnx")), TN_ERR_IO);
    if (geteuid() != 0) {
        assert_int_equal(chmod(folder, 0500), 0);
        assert_int_equal(tn_graph_save(g, path), TN_ERR_IO);
        assert_int_equal(chmod(folder, 0700), 0);
    }
    assert_int_equal(files_in_folder(false), 0);
    tn_graph_destroy(g);
}

/* A weight of 2.1 GB in a file of zeros that takes no room: saved by its pages, none of which stays in memory. */
static void large_weights(void **state) {
    (void)state;
    enum { COUNT = 550 * 1000 * 1000 };
    int64_t bytes = (int64_t)COUNT * 4;
    char number[24];
    tn_text g = message(), tensor = message();
    const char *entries[][2] = {{"location", "zeros"}, {"length", number}};
    snprintf(number, sizeof number, "%lld", (long long)bytes);
    tn_wire_put_varint(&tensor, 1, COUNT);
    tn_wire_put_varint(&tensor, 2, TN_F32);
    put_text(&tensor, 8, "w");
    for (int i = 0; i < 2; i++)
        put_message(&tensor, 13, prop(entries[i][0], entries[i][1]));
    tn_wire_put_varint(&tensor, 14, 1);
    put_message(&g, 5, tensor);
    put_value(&g, 11, "i", TN_I64, "1");
    put_node(&g, "Gather", "", "w,i", "y");
    put_value(&g, 12, "y", TN_F32, "1");
    tn_text m = model_bytes(17, g);
    assert_int_equal(tn_file_write(in_folder("large.onnx"), m.data, m.len), TN_OK);
    tn_text_free(&m);
    int fd = open(in_folder("zeros"), O_CREAT | O_WRONLY, 0600);
    assert_true(fd >= 0 && ftruncate(fd, bytes) == 0 && pwrite(fd, "\0\0\x80\x3f", 4, bytes - 4) == 4);
    close(fd);
    tn_graph *graph = tn_onnx_load_file(in_folder("large.onnx"), NULL);
    if (!graph)
        fail_msg("%s", tn_error_message());
    size_t before = tn_rss_bytes();
    assert_int_equal(tn_graph_save(graph, in_folder("saved.onnx")), TN_OK);
    size_t more = tn_rss_bytes() - before;
#if !defined(__SANITIZE_THREAD__) /* it keeps four times what is touched */
    assert_true((ptrdiff_t)more < (ptrdiff_t)64 << 20);
#endif
    print_message("saving takes %d kB\n", (int)((ptrdiff_t)more / 1000));
    tn_graph_destroy(graph);
    struct stat info;
    assert_int_equal(stat(in_folder("saved.onnx.data"), &info), 0);
    assert_true(info.st_size >= bytes);
    assert_true(info.st_blocks < 16384); /* holes stay holes */
    tn_graph *saved = tn_onnx_load_file(in_folder("saved.onnx"), NULL);
    tn_tensor *w = saved ? tn_value_constant(saved, tn_graph_find_value(saved, "w")) : NULL;
    assert_true(w && ((const float *)tn_tensor_data(w))[COUNT - 1] == 1);
    tn_graph_destroy(saved);
    files_in_folder(true);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_read_comes_back),
        cmocka_unit_test(long_names_come_back),
        cmocka_unit_test(memory_runs_out),
        cmocka_unit_test(data_lies_beside_the_model),
        cmocka_unit_test(large_weights),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
