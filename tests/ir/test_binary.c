/* The binary form: it writes and reads back exactly. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/os.h"
#include "ir/text.h"
#include "ops/ops.h"
#include "support/binary_graphs.h"

#define GOLDENS TENON_SOURCE_DIR "/tests/ir/golden"

static void round_trips(void **state) {
    (void)state;
    char **names;
    size_t count;
    assert_int_equal(tn_folder_list(NULL, GOLDENS, &names, &count), TN_OK);
    for (size_t i = 0; i < count; i++) {
        char path[4096];
        size_t size;
        snprintf(path, sizeof path, "%s/%s", GOLDENS, names[i]);
        char *text = tn_file_read(NULL, path, &size);
        assert_non_null(text);
        tn_graph *g = binary_parse(text);
        binary_check(g);
        tn_graph_destroy(g);
        tn_free(NULL, text);
        tn_free(NULL, names[i]);
    }
    tn_free(NULL, names);
    assert_true(count > 3);
    static const char *const texts[] = {
        "tenon 1\ngraph () -> () {\n  return()\n}\n",
        "tenon 1\nsymbol u2 [0, 1000] fresh\ngraph (%1 \"x\": f32[2]) -> (\"y\") {\n  %2 = size(%1) : i64[u2]\n  "
        "return(%2)\n}\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        tn_graph *g = binary_parse(texts[i]);
        binary_check(g);
        tn_graph_destroy(g);
    }
}

static void everything_survives(void **state) {
    (void)state;
    static const char text[] =
        "tenon 1\nmetadata \"a\" = \"b\\x00c\"\nmetadata \"empty\" = \"\"\nsymbol N [0, 9]\nsymbol u7 [0, 9] fresh\n"
        "function \"f\" (%1: f32[N]) {\n  return(%1)\n}\n"
        "graph (%2 \"x\": f32[N] = f32[1] [1], %3 \"p\": i64[2] holds [u7, 4]) -> (\"y\") {\n  return(%2)\n}\n";
    tn_graph *g = binary_parse(text);
    binary_check(g);
    tn_graph_destroy(g);
    g = binary_parse(binary_everything);
    binary_check(g);
    /* removed nodes, values and unused names are left out */
    size_t before, after;
    uint8_t *first = binary_bytes(g, &before);
    tn_graph_insert_at_end(g, tn_graph_region(g));
    tn_value x = tn_graph_input(g, 0);
    tn_node extra = toy_node(g, "any", 1, &x, 1, &(tn_type){0}, 0, NULL);
    assert_int_equal(tn_node_set_name(g, extra, "an unused name"), TN_OK);
    assert_int_equal(tn_node_remove(g, extra), TN_OK);
    binary_check(g);
    uint8_t *second = binary_bytes(g, &after);
    assert_non_null(first);
    assert_int_equal(before, after);
    assert_memory_equal(first, second, before);
    tn_free(NULL, first);
    tn_free(NULL, second);
    tn_graph_destroy(g);
}

/* --- tensors ---------------------------------------------------------------------------------------------------------------- */

static tn_tensor *tensor_of(const tn_graph *g, uint32_t nth) {
    tn_node n = tn_region_first(g, tn_graph_region(g));
    for (; nth; nth--)
        n = tn_node_next(g, n);
    return tn_attr_tensor(g, n, "value");
}

static void constants_lie_in_the_file(void **state) {
    (void)state;
    enum { N = 5000 };
    tn_graph *g = tn_graph_new(NULL, binary_ops());
    const int64_t dims[2] = {50, 100}, turned[2] = {100, 50}, strides[2] = {1, 100}, some[1] = {7};
    float *data = malloc(N * sizeof *data);
    for (int i = 0; i < N; i++)
        data[i] = (float)i / 7;
    tn_tensor *whole = tn_tensor_from_f32(2, dims, data);
    tn_tensor *view = tn_tensor_view(NULL, whole, TN_F32, 2, turned, strides, 0);
    tn_tensor *flat = tn_tensor_view(NULL, whole, TN_F32, 2, turned, (const int64_t[]){50, 1}, 0);
    tn_tensor *small = tn_tensor_from_f32(1, some, data);
    tn_tensor *all[] = {whole, whole, flat, view, small};
    for (int i = 0; i < 5; i++)
        assert_true(tn_graph_constant(g, all[i]).id != 0);
    binary_check(g);
    char path[] = "/tmp/tenon-test-XXXXXX";
    close(mkstemp(path));
    assert_int_equal(tn_graph_write_binary(g, path), TN_OK);
    tn_mapping *map = tn_mapping_open(NULL, path);
    assert_non_null(map);
    /* what is shared is there once: two tensors of bytes, the turned one and the shared one */
    assert_true(tn_mapping_size(map) > 2 * N * sizeof *data && tn_mapping_size(map) < 3 * N * sizeof *data);
    tn_graph *back = tn_graph_read_binary(NULL, binary_ops(), map);
    assert_non_null(back);
    const uint8_t *begin = tn_mapping_data(map), *end = begin + tn_mapping_size(map);
    for (uint32_t i = 0; i < 5; i++) {
        const uint8_t *at = tn_tensor_data(tensor_of(back, i));
        assert_true(at >= begin && at < end && (at - begin) % 64 == 0);
        assert_true(tn_object_equal(tn_tensor_object(tensor_of(back, i)), tn_tensor_object(all[i])));
    }
    assert_ptr_equal(tensor_of(back, 0), tensor_of(back, 1));
    assert_ptr_equal(tn_tensor_data(tensor_of(back, 0)), tn_tensor_data(tensor_of(back, 2)));
    tn_tensor *kept = tn_tensor_retain(tensor_of(back, 3));
    tn_mapping_release(map);
    /* saved over the file that it came from: the mapping keeps what it had, and sharing is found again */
    struct stat first, second;
    assert_int_equal(stat(path, &first), 0);
    assert_int_equal(tn_graph_write_binary(back, path), TN_OK);
    assert_int_equal(stat(path, &second), 0);
    assert_int_equal(first.st_size, second.st_size);
    binary_check(back);
    tn_graph_destroy(back);
    assert_true(tn_tensor_get_f64(kept, 1) == (double)(100.0f / 7));
    tn_tensor_destroy(kept);
    unlink(path);
    for (int i = 1; i < 5; i++)
        tn_tensor_destroy(all[i]);
    tn_graph_destroy(g);
    free(data);
}

static void weights_are_checked_on_demand(void **state) {
    (void)state;
    tn_graph *g = tn_graph_new(NULL, binary_ops());
    tn_tensor *large = tn_tensor_create(TN_F32, 1, (const int64_t[]){3000}),
              *small = tn_tensor_create(TN_F32, 1, (const int64_t[]){3});
    tn_graph_constant(g, large);
    tn_graph_constant(g, small);
    size_t size;
    uint8_t *bytes = binary_bytes(g, &size);
    assert_non_null(bytes);
    assert_int_equal(tn_binary_check_weights(bytes, size), TN_OK);
    uint64_t at;
    memcpy(&at, binary_entry(bytes, size, "WGHT") + 8, 8);
    bytes[at + 4321] ^= 1;
    tn_graph *back = tn_graph_read_binary_from(NULL, binary_ops(), bytes, size, NULL, NULL);
    assert_non_null(back);
    tn_graph_destroy(back);
    assert_int_equal(tn_binary_check_weights(bytes, size), TN_ERR_MODEL);
    bytes[at + 4321] ^= 1;
    memcpy(&at, binary_entry(bytes, size, "DATA") + 8, 8);
    bytes[at] ^= 1;
    assert_null(tn_graph_read_binary_from(NULL, binary_ops(), bytes, size, NULL, NULL));
    assert_non_null(strstr(tn_error_message(), "section 'DATA' is damaged"));
    tn_free(NULL, bytes);
    tn_tensor_destroy(large);
    tn_tensor_destroy(small);
    tn_graph_destroy(g);
}

/* --- memory and files ----------------------------------------------------------------------------------------------------------- */

static void out_of_memory(void **state) {
    (void)state;
    tn_graph *g = binary_parse(binary_everything);
    size_t size;
    uint8_t *bytes = binary_bytes(g, &size);
    assert_non_null(bytes);
    tn_heap *heap = tn_heap_create(NULL);
    tn_graph *back = NULL;
    for (uint64_t k = 1; !back; k++) {
        tn_heap_fail_at(heap, k, k % 2 == 0);
        back = tn_graph_read_binary_from(heap, binary_ops(), bytes, size, NULL, NULL);
        tn_heap_fail_at(heap, 0, false);
        if (!back && tn_error_status() != TN_ERR_MEMORY)
            fail_msg("allocation %llu: %s", (unsigned long long)k, tn_error_message());
        if (!back)
            assert_int_equal(tn_heap_in_use(heap), 0);
        assert_true(k < 20000);
    }
    /* writing: the file is whole or not there */
    char path[64];
    snprintf(path, sizeof path, "/tmp/tenon-test-%d.tenon", (int)getpid());
    size_t before = tn_heap_in_use(heap);
    tn_status status = TN_ERR_MEMORY;
    for (uint64_t k = 1; status != TN_OK; k++) {
        tn_heap_fail_at(heap, k, k % 2 == 0);
        status = tn_graph_write_binary(back, path);
        tn_heap_fail_at(heap, 0, false);
        if (status != TN_OK && status != TN_ERR_MEMORY)
            fail_msg("allocation %llu: %s", (unsigned long long)k, tn_error_message());
        assert_int_equal(tn_heap_in_use(heap), before);
        assert_int_equal(access(path, F_OK) == 0, status == TN_OK);
        assert_true(k < 20000);
    }
    assert_int_equal(unlink(path), 0);
    tn_graph_destroy(back);
    assert_int_equal(tn_heap_in_use(heap), 0);
    tn_heap_destroy(heap);
    tn_free(NULL, bytes);
    tn_graph_destroy(g);
}

static void saving(void **state) {
    (void)state;
    tn_graph *g = binary_parse("tenon 1\ngraph (%1 \"x\": f32[2]) -> (\"y\") {\n  return(%1)\n}\n");
    char folder[] = "/tmp/tenon-test-XXXXXX", path[128], other[128];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/m.tenon", folder);
    snprintf(other, sizeof other, "%s/other", folder);
    /* a link is replaced, not followed */
    assert_int_equal(tn_file_write(other, "precious", 8), TN_OK);
    assert_int_equal(symlink(other, path), 0);
    assert_int_equal(tn_graph_save(g, path), TN_OK);
    size_t size;
    char *kept = tn_file_read(NULL, other, &size);
    assert_true(kept && size == 8 && memcmp(kept, "precious", 8) == 0);
    tn_free(NULL, kept);
    struct stat info;
    assert_int_equal(lstat(path, &info), 0);
    assert_true(S_ISREG(info.st_mode));
    tn_mapping *map = tn_mapping_open(NULL, path);
    tn_graph *back = tn_graph_read_binary(NULL, binary_ops(), map);
    assert_non_null(back);
    assert_true(tn_graph_equal(g, back));
    tn_graph_destroy(back);
    tn_mapping_release(map);
    unlink(path);
    /* the text form by its ending; other endings are refused */
    snprintf(path, sizeof path, "%s/m.txt", folder);
    assert_int_equal(tn_graph_save(g, path), TN_OK);
    char *text = tn_file_read(NULL, path, &size), *printed = tn_graph_print(g);
    assert_string_equal(text, printed);
    tn_graph_free_text(g, printed);
    tn_free(NULL, text);
    unlink(path);
    assert_int_equal(tn_graph_save(g, "/tmp/m.pb"), TN_ERR_USAGE);
    assert_int_equal(tn_graph_save(g, ".tenon"), TN_ERR_USAGE);
    assert_int_equal(tn_graph_save(NULL, path), TN_ERR_USAGE);
    assert_int_equal(tn_graph_save(g, NULL), TN_ERR_USAGE);
    /* a full disk, a folder that is not there: an error, and nothing is left behind */
    assert_int_equal(tn_graph_write_binary(g, "/dev/full"), TN_ERR_IO);
    snprintf(path, sizeof path, "%s/none/m.tenon", folder);
    assert_int_equal(tn_graph_save(g, path), TN_ERR_IO);
    /* a graph that does not verify is not written */
    snprintf(path, sizeof path, "%s/m.tenon", folder);
    g->value.data[1].use_count = 7;
    assert_int_equal(tn_graph_save(g, path), TN_ERR_MODEL);
    unlink(other);
    char **names;
    size_t count;
    assert_int_equal(tn_folder_list(NULL, folder, &names, &count), TN_OK);
    assert_int_equal(count, 0);
    tn_free(NULL, names);
    rmdir(folder);
    tn_graph_destroy(g);
    /* no such file, no such form */
    assert_null(tn_graph_read_binary(NULL, binary_ops(), NULL));
    assert_int_equal(tn_error_status(), TN_ERR_USAGE);
    assert_null(tn_graph_read_binary_from(NULL, binary_ops(), "tenon 1", 7, NULL, NULL));
    assert_int_equal(tn_error_status(), TN_ERR_MODEL);
}

static void limits_of_nodes(void **state) {
    (void)state;
    tn_graph *g = binary_parse(binary_everything);
    size_t size;
    uint8_t *bytes = binary_bytes(g, &size);
    assert_non_null(bytes);
    assert_null(tn_graph_read_binary_from(NULL, binary_ops(), bytes, size, NULL, &(tn_binary_options){.max_nodes = 3}));
    assert_int_equal(tn_error_status(), TN_ERR_LIMIT);
    tn_graph *back =
        tn_graph_read_binary_from(NULL, binary_ops(), bytes, size, NULL, &(tn_binary_options){.max_nodes = 30});
    assert_non_null(back);
    tn_graph_destroy(back);
    tn_free(NULL, bytes);
    tn_graph_destroy(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trips),
        cmocka_unit_test(everything_survives),
        cmocka_unit_test(constants_lie_in_the_file),
        cmocka_unit_test(weights_are_checked_on_demand),
        cmocka_unit_test(out_of_memory),
        cmocka_unit_test(saving),
        cmocka_unit_test(limits_of_nodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
