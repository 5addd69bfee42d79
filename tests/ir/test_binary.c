/* The binary form: it writes and reads back exactly; wrong files are refused, quickly and without harm. */
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

#include "base/checksum.h"
#include "base/os.h"
#include "ir/text.h"
#include "ops/ops.h"
#include "support/binary_checks.h"
#include "support/toy_ops.h"

#define GOLDENS TENON_SOURCE_DIR "/tests/ir/golden"
#define LEAST_MEMORY ((size_t)64 << 20)

static const tn_op_table *ops(void) {
    return toy_ops_before(tn_ops_table());
}

static tn_graph *parse(const char *text) {
    tn_graph *g = tn_graph_parse_with(NULL, ops(), text, strlen(text));
    if (!g)
        fail_msg("%s\n%.200s...", tn_error_message(), text);
    return g;
}

/* A bit of everything. */
static const char everything[] =
    "tenon 1\nmetadata \"a\" = \"b\\x00c\"\nmetadata \"empty\" = \"\"\nsymbol N [0, 9]\nsymbol `odd name` [1, 1000]\n"
    "symbol u3 [-5, 1000] fresh\nsymbol u7 [0, 9] fresh\n"
    "function \"f\" (%1: f32[N]) {\n  return(%1)\n}\n"
    "function \"g\" (%2: f32[N]) {\n  %3 = call(%2) {callee = function \"f\"} : f32[N]\n  return(%3)\n}\n"
    "graph (%4 \"x\": f32[N] = f32[1] [1], %5 \"s\": seq(optional(map(i64, f32[`odd name`, 2*N + 3]))), %6 \"q\": ?, "
    "%7 \"p\": i64[2] holds [u7, 4]) -> (\"y\", \"z\") {\n"
    "  !1 %8 \"h\" = call(%4) {callee = function \"g\"} : f32[N] \"n\" role gradient device 3 @\"f\":1 @\"a\"(\"b\", "
    "\"c\":7)\n"
    "  any(%8, _, %5) {s = strings [\"a\\x00b\", \"\"], t = string[2] [\"b\", \"\"], d = dims [N + 1, floordiv(N, 2)], "
    "l = [1, "
    "-9223372036854775808], i = -3, f = 0.1, h = bits(0x7ff8000000000001), fs = floats [1, nan, -0], none = [], e = "
    "string, "
    "w = type seq(f32[*]), k = u4[3] [1, 2, 15], z = f32[0, 5] [], c = c64[1] [(1, -0)]} after(!1)\n"
    "    region (%9: f32[]) {\n      %10, %11 = any(%9) : f32[], i64[1] holds [u3]\n      return(%9)\n    }\n"
    "    region () {\n      return(%8)\n    }\n"
    "  return(%8, %8)\n}\n";

static void check(const tn_graph *g) {
    if (!binary_survives(g, NULL)) {
        char *text = tn_graph_print(g);
        fail_msg("%s\n%s", tn_error_message(), text);
    }
}

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
        tn_graph *g = parse(text);
        check(g);
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
        tn_graph *g = parse(texts[i]);
        check(g);
        tn_graph_destroy(g);
    }
}

static void everything_survives(void **state) {
    (void)state;
    static const char text[] =
        "tenon 1\nmetadata \"a\" = \"b\\x00c\"\nmetadata \"empty\" = \"\"\nsymbol N [0, 9]\nsymbol u7 [0, 9] fresh\n"
        "function \"f\" (%1: f32[N]) {\n  return(%1)\n}\n"
        "graph (%2 \"x\": f32[N] = f32[1] [1], %3 \"p\": i64[2] holds [u7, 4]) -> (\"y\") {\n  return(%2)\n}\n";
    tn_graph *g = parse(text);
    check(g);
    tn_graph_destroy(g);
    g = parse(everything);
    check(g);
    /* removed nodes, values and unused names are left out */
    size_t before, after;
    uint8_t *first = binary_bytes(g, &before);
    tn_graph_insert_at_end(g, tn_graph_region(g));
    tn_value x = tn_graph_input(g, 0);
    tn_node extra = toy_node(g, "any", 1, &x, 1, &(tn_type){0}, 0, NULL);
    assert_int_equal(tn_node_set_name(g, extra, "an unused name"), TN_OK);
    assert_int_equal(tn_node_remove(g, extra), TN_OK);
    check(g);
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
    tn_graph *g = tn_graph_new(NULL, ops());
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
    check(g);
    char path[] = "/tmp/tenon-test-XXXXXX";
    close(mkstemp(path));
    assert_int_equal(tn_graph_write_binary(g, path), TN_OK);
    tn_mapping *map = tn_mapping_open(NULL, path);
    assert_non_null(map);
    /* what is shared is there once: two tensors of bytes, the turned one and the shared one */
    assert_true(tn_mapping_size(map) > 2 * N * sizeof *data && tn_mapping_size(map) < 3 * N * sizeof *data);
    tn_graph *back = tn_graph_read_binary(NULL, ops(), map);
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
    check(back);
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
    tn_graph *g = tn_graph_new(NULL, ops());
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
    tn_graph *back = tn_graph_read_binary_from(NULL, ops(), bytes, size, NULL, NULL);
    assert_non_null(back);
    tn_graph_destroy(back);
    assert_int_equal(tn_binary_check_weights(bytes, size), TN_ERR_MODEL);
    bytes[at + 4321] ^= 1;
    memcpy(&at, binary_entry(bytes, size, "DATA") + 8, 8);
    bytes[at] ^= 1;
    assert_null(tn_graph_read_binary_from(NULL, ops(), bytes, size, NULL, NULL));
    assert_non_null(strstr(tn_error_message(), "section 'DATA' is damaged"));
    tn_free(NULL, bytes);
    tn_tensor_destroy(large);
    tn_tensor_destroy(small);
    tn_graph_destroy(g);
}

/* --- files that are wrong (X6) ----------------------------------------------------------------------------------------------------- */

/* Reads a file that may be wrong: a graph that verifies, or an error of a kind that files can cause. */
static bool try_read(const uint8_t *bytes, size_t size, const char *what, size_t at) {
    static tn_heap *heap;
    if (!heap)
        heap = tn_heap_create(NULL);
    tn_heap_set_limit(heap, LEAST_MEMORY);
    tn_error_clear();
    double start = tn_clock();
    tn_graph *g = tn_graph_read_binary_from(heap, ops(), bytes, size, NULL, NULL);
    double took = tn_clock() - start;
    tn_status status = tn_error_status();
    if (!g && status != TN_ERR_MODEL && status != TN_ERR_UNSUPPORTED && status != TN_ERR_LIMIT)
        fail_msg("%s %zu: status %d: %s", what, at, (int)status, tn_error_message());
    if (!g && status == TN_ERR_LIMIT && strstr(tn_error_message(), "heap"))
        fail_msg("%s %zu needs too much memory: %s", what, at, tn_error_message());
    if (g && tn_graph_verify(g) != TN_OK)
        fail_msg("%s %zu: %s", what, at, tn_error_message());
    if (took > 20) /* it hangs; less is a matter of the machine */
        fail_msg("%s %zu takes %d ms", what, at, (int)(took * 1000));
    tn_graph_destroy(g);
    if (tn_heap_in_use(heap))
        fail_msg("%s %zu: %zu bytes are lost", what, at, tn_heap_in_use(heap));
    return g != NULL;
}

/* A block of exactly `size` bytes, so that sanitizers see what is read beyond it. */
static bool try_copy(const uint8_t *bytes, size_t size, const char *what, size_t at) {
    uint8_t *copy = malloc(size ? size : 1);
    if (size)
        memcpy(copy, bytes, size);
    bool read = try_read(copy, size, what, at);
    free(copy);
    return read;
}

static void cut_off_anywhere(void **state) {
    (void)state;
    tn_graph *g = parse(everything);
    size_t size;
    uint8_t *bytes = binary_bytes(g, &size);
    assert_non_null(bytes);
    for (size_t n = 0; n < size; n++)
        assert_false(try_copy(bytes, n, "cut off at", n));
    assert_true(try_copy(bytes, size, "whole", size));
    uint8_t *longer = malloc(size + 64);
    memset(longer, 0, size + 64);
    memcpy(longer, bytes, size);
    assert_false(try_read(longer, size + 1, "longer by", 1));
    assert_false(try_read(longer, size + 64, "longer by", 64));
    free(longer);
    tn_free(NULL, bytes);
    tn_graph_destroy(g);
}

/* Every bit of what is read is covered by a checksum: only the space between sections may change. */
static void any_bit_flipped(void **state) {
    (void)state;
    tn_graph *g = parse(everything);
    size_t size;
    uint8_t *bytes = binary_bytes(g, &size);
    assert_non_null(bytes);
    uint8_t *covered = calloc(size, 1);
    memset(covered, 1, TN_BINARY_HEADER);
    uint64_t table, count;
    memcpy(&table, bytes + size - TN_BINARY_FOOTER, 8);
    memcpy(&count, bytes + size - TN_BINARY_FOOTER + 8, 8);
    memset(covered + table, 1, size - table);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t offset, length;
        memcpy(&offset, bytes + table + i * TN_BINARY_ENTRY + 8, 8);
        memcpy(&length, bytes + table + i * TN_BINARY_ENTRY + 16, 8);
        memset(covered + offset, 1, length);
    }
    for (size_t bit = 0; bit < size * 8; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        if (try_read(bytes, size, "bit flipped", bit) && covered[bit / 8])
            fail_msg("bit %zu of byte %zu may change unseen", bit % 8, bit / 8);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    free(covered);
    tn_free(NULL, bytes);
    tn_graph_destroy(g);
}

/* Wrong numbers beneath right checksums: every word in turn, and many at random. */
static void any_number_wrong(void **state) {
    (void)state;
    static const uint32_t wrong[] = {0, 1, 2, 3, 7, 0xff, 0x10000, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff};
    tn_graph *g = parse(everything);
    size_t size;
    uint8_t *bytes = binary_bytes(g, &size);
    assert_non_null(bytes);
    uint8_t *copy = malloc(size);
    size_t read = 0;
    for (size_t at = 0; at + 4 <= size; at += 4)
        for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
            memcpy(copy, bytes, size);
            memcpy(copy + at, &wrong[k], 4);
            binary_seal(copy, size);
            read += try_read(copy, size, "number wrong at", at);
        }
    assert_true(read > 0); /* names, lines, numbers that mean nothing else */
    const char *given = getenv("TENON_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 0) : tn_random_seed(), x = seed | 1;
    printf("TENON_SEED=%llu\n", (unsigned long long)seed);
    for (size_t trial = 0; trial < 20000; trial++) {
        memcpy(copy, bytes, size);
        for (int k = 0; k < 4; k++) {
            x = x * 6364136223846793005u + 1442695040888963407u;
            size_t at = (size_t)(x >> 33) % size;
            copy[at] = (x >> 20 & 3) == 0 ? (uint8_t)(x >> 24) : (uint8_t)(copy[at] + (x >> 24 & 3) - 1);
            if (x >> 63)
                break;
        }
        binary_seal(copy, size);
        try_read(copy, size, "random change", trial);
    }
    free(copy);
    tn_free(NULL, bytes);
    tn_graph_destroy(g);
}

/* One change of the table's entry of a section, or of a number somewhere. */
static void refuse(const uint8_t *bytes, size_t size, const char *code, size_t at, const void *value, size_t length,
                   const char *message) {
    uint8_t *copy = malloc(size);
    memcpy(copy, bytes, size);
    uint8_t *entry = code ? binary_entry(copy, size, code) : copy;
    assert_non_null(entry);
    memcpy(entry + at, value, length);
    binary_seal(copy, size);
    bool read = try_read(copy, size, code ? code : "header", at);
    if (message ? read || !strstr(tn_error_message(), message) : !read)
        fail_msg("expected \"%s\" for byte %zu of %s: %s", message ? message : "a graph", at,
                 code ? code : "the header", read ? "it is read" : tn_error_message());
    free(copy);
}

static void tables_that_lie(void **state) {
    (void)state;
    tn_graph *g = parse(everything);
    size_t size;
    uint8_t *bytes = binary_bytes(g, &size);
    assert_non_null(bytes);
    static const char *const codes[] = {"STRS", "OPS ", "SYMB", "DIMS", "TYPE", "ORIG", "LOCS", "VALU", "HELD", "REGN",
                                        "NODE", "FUNC", "OUTS", "DFLT", "META", "TENS", "DATA", "WGHT", "BLOB"};
    static const uint64_t huge[] = {(uint64_t)1 << 63, UINT64_MAX, (uint64_t)1 << 32, 0xffffffff, 0x7fffffff};
    const uint64_t past = size;
    const uint32_t zero = 0, odd = 48, one = 1, page = 1u << 31;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        for (size_t k = 0; k < sizeof huge / sizeof *huge; k++) {
            bool records = memcmp(codes[i], "DATA", 4) != 0 && memcmp(codes[i], "WGHT", 4) != 0;
            if (records || huge[k] > UINT32_MAX)
                refuse(bytes, size, codes[i], 24, &huge[k], 8, "cannot hold");
            refuse(bytes, size, codes[i], 16, &huge[k], 8, "does not lie inside the file");
            refuse(bytes, size, codes[i], 8, &huge[k], 8,
                   huge[k] % 64 ? "is not aligned" : "does not lie inside the file");
        }
        refuse(bytes, size, codes[i], 8, &past, 8, size % 64 ? "is not aligned" : "does not lie inside the file");
        refuse(bytes, size, codes[i], 40, &zero, 4, "is not aligned");
        refuse(bytes, size, codes[i], 40, &odd, 4, "is not aligned");
        refuse(bytes, size, codes[i], 40, &one, 4, "is not aligned");
        refuse(bytes, size, codes[i], 40, &page, 4, "is not aligned");
        refuse(bytes, size, codes[i], 0, "LATE", 4, "not supported: section 'LATE'");
        refuse(bytes, size, codes[i], 0, codes[(i + 1) % (sizeof codes / sizeof *codes)], 4, ""); /* twice */
        /* two sections change places: whatever their records read as */
        for (size_t k = 0; k < i; k++) {
            uint8_t *copy = malloc(size);
            memcpy(copy, bytes, size);
            uint8_t *a = binary_entry(copy, size, codes[i]), *b = binary_entry(copy, size, codes[k]);
            memcpy(a, codes[k], 4);
            memcpy(b, codes[i], 4);
            binary_seal(copy, size);
            try_read(copy, size, codes[i], k);
            free(copy);
        }
    }
    /* sections that a reader need not know are passed over, and then what is needed is missing */
    const uint32_t optional[2] = {0, 0};
    uint8_t late[8];
    memcpy(late, "LATE", 4);
    memcpy(late + 4, optional, 4);
    refuse(bytes, size, "HELD", 0, late, 8, "section 'HELD' is missing");
    /* versions and byte orders */
    refuse(bytes, size, NULL, 12, &(uint16_t){2}, 2, "not supported: version 2.0 of the binary form");
    refuse(bytes, size, NULL, 12, &(uint16_t){0}, 2, "not supported: version 0.0 of the binary form");
    refuse(bytes, size, NULL, 14, &(uint16_t){99}, 2, NULL);
    refuse(bytes, size, NULL, 8, "\x01\x02\x03\x04", 4, "byte order");
    refuse(bytes, size, NULL, 8, "\x01\x02\x03\x05", 4, "damaged");
    refuse(bytes, size, NULL, 6, "\n\n", 2, "no saved Tenon graph"); /* as a transfer as text would leave it */
    /* the footer */
    for (size_t k = 0; k < 4; k++) {
        refuse(bytes, size, NULL, size - 64, &huge[k], 8, "does not lie inside the file");
        refuse(bytes, size, NULL, size - 56, &huge[k], 8, "does not lie inside the file");
    }
    tn_free(NULL, bytes);
    tn_graph_destroy(g);
}

/* A section that readers need not know, in front of the table. */
static void later_sections_are_passed_over(void **state) {
    (void)state;
    tn_graph *g = parse(everything);
    size_t size;
    uint8_t *bytes = binary_bytes(g, &size);
    assert_non_null(bytes);
    uint64_t table, count, more = 64;
    memcpy(&table, bytes + size - 64, 8);
    memcpy(&count, bytes + size - 56, 8);
    for (uint32_t flags = 0; flags < 2; flags++) {
        size_t larger = size + more + TN_BINARY_ENTRY;
        uint8_t *copy = calloc(larger, 1);
        memcpy(copy, bytes, table);
        memcpy(copy + table, "packed panels", 13);
        uint64_t at = table + more, entries = count + 1;
        memcpy(copy + at, bytes + table, count * TN_BINARY_ENTRY);
        uint8_t *entry = copy + at + count * TN_BINARY_ENTRY;
        memcpy(entry, "PANL", 4);
        memcpy(entry + 4, &flags, 4);
        memcpy(entry + 8, &table, 8);
        memcpy(entry + 16, &more, 8);
        memcpy(entry + 40, &(uint32_t){64}, 4);
        memcpy(copy + larger - 64, &at, 8);
        memcpy(copy + larger - 56, &entries, 8);
        binary_seal(copy, larger);
        bool read = try_read(copy, larger, "section of flags", flags);
        assert_int_equal(read, flags == 0);
        if (flags)
            assert_non_null(strstr(tn_error_message(), "not supported: section 'PANL'"));
        free(copy);
    }
    tn_free(NULL, bytes);
    tn_graph_destroy(g);
}

static void missing_operators_are_listed(void **state) {
    (void)state;
    tn_graph *g = parse("tenon 1\ngraph (%1 \"x\": f32[2]) -> (\"y\") {\n  %2 = pair(%1, %1) : f32[2]\n"
                        "  effect(%2)\n  %3 = add(%2, %1) : f32[2]\n  return(%3)\n}\n");
    size_t size;
    uint8_t *bytes = binary_bytes(g, &size);
    assert_non_null(bytes);
    assert_null(tn_graph_read_binary_from(NULL, tn_ops_table(), bytes, size, NULL, NULL));
    assert_int_equal(tn_error_status(), TN_ERR_UNSUPPORTED);
    if (strcmp(tn_error_what(), "not supported: 2 operators: 'pair', 'effect'") != 0)
        fail_msg("%s", tn_error_message());
    /* a row whose meaning has changed since */
    uint64_t at;
    memcpy(&at, binary_entry(bytes, size, "OPS ") + 8, 8);
    refuse(bytes, size, NULL, at, &(uint32_t){2}, 4,
           "not supported: 1 operator: 'pair' of version 2 (this library has version 1)");
    tn_free(NULL, bytes);
    tn_graph_destroy(g);
}

/* What could be large by being shared: a large expression in a type that many values have. */
static void sharing_costs_no_time(void **state) {
    (void)state;
    tn_graph *g = tn_graph_new(NULL, ops());
    tn_dim sum = tn_dim_symbol(g, "n0"), all[TN_MAX_RANK];
    for (int i = 1; i < 600; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", i);
        sum = tn_dim_add(g, sum, tn_dim_symbol(g, name));
    }
    for (int i = 0; i < TN_MAX_RANK; i++)
        all[i] = tn_dim_add(g, sum, tn_dim_const(g, i));
    tn_type type = tn_type_tensor(g, TN_F32, TN_MAX_RANK, all);
    for (int i = 0; i < 20000; i++) {
        char name[16];
        snprintf(name, sizeof name, "x%d", i);
        assert_true(tn_region_add_arg(g, tn_graph_region(g), type, name).id != 0);
    }
    size_t size;
    uint8_t *bytes = binary_bytes(g, &size);
    assert_non_null(bytes);
    assert_true(try_read(bytes, size, "values of a large type", 20000));
    tn_free(NULL, bytes);
    tn_graph_destroy(g);
}

static void toy_block(tn_graph *g, tn_region region) {
    tn_node_desc desc = {.op = toy_op("block"), .region_count = 1, .regions = &region};
    assert_true(tn_graph_add_node(g, &desc).id != 0);
}

/* Regions one in the other, `deep` of them; the outermost. */
static tn_region nest(tn_graph *g, int deep) {
    tn_region inner = {0};
    for (int i = 0; i < deep; i++) {
        tn_region region = tn_region_create(g);
        tn_graph_insert_at_end(g, region);
        if (inner.id)
            toy_block(g, inner);
        assert_int_equal(tn_region_return(g, region, 0, NULL), TN_OK);
        inner = region;
    }
    tn_graph_insert_at_end(g, tn_graph_region(g));
    return inner;
}

static void nesting_has_a_limit(void **state) {
    (void)state;
    enum { HALF = TN_MAX_NESTING / 2 + 1 };
    size_t size;
    tn_graph *g = tn_graph_new(NULL, ops());
    toy_block(g, nest(g, TN_MAX_NESTING));
    check(g);
    tn_graph_destroy(g);
    /* two nests; then the innermost node of the first is given the second one's regions, in the file */
    g = tn_graph_new(NULL, ops());
    toy_block(g, nest(g, HALF));
    toy_block(g, nest(g, HALF));
    uint8_t *bytes = binary_bytes(g, &size);
    assert_non_null(bytes);
    uint8_t *entry = binary_entry(bytes, size, "NODE"), *inner = NULL, *outer = NULL;
    uint64_t at, count;
    memcpy(&at, entry + 8, 8);
    memcpy(&count, entry + 24, 8);
    for (uint64_t i = 0; i < count; i++) {
        uint32_t head[11];
        memcpy(head, bytes + at, sizeof head);
        if (head[8] && !inner)
            inner = bytes + at + sizeof head;
        if (head[8])
            outer = bytes + at + sizeof head;
        at += sizeof head + 4 * (size_t)(head[7] + head[8] + head[9]);
    }
    uint32_t swap[2];
    memcpy(&swap[0], inner, 4);
    memcpy(&swap[1], outer, 4);
    memcpy(inner, &swap[1], 4);
    memcpy(outer, &swap[0], 4);
    binary_seal(bytes, size);
    assert_false(try_read(bytes, size, "nesting", 2 * HALF));
    if (!strstr(tn_error_message(), "nested deeper"))
        fail_msg("%s", tn_error_message());
    tn_free(NULL, bytes);
    tn_graph_destroy(g);
}

/* --- memory and files ----------------------------------------------------------------------------------------------------------- */

static void out_of_memory(void **state) {
    (void)state;
    tn_graph *g = parse(everything);
    size_t size;
    uint8_t *bytes = binary_bytes(g, &size);
    assert_non_null(bytes);
    tn_heap *heap = tn_heap_create(NULL);
    tn_graph *back = NULL;
    for (uint64_t k = 1; !back; k++) {
        tn_heap_fail_at(heap, k, k % 2 == 0);
        back = tn_graph_read_binary_from(heap, ops(), bytes, size, NULL, NULL);
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
    tn_graph *g = parse("tenon 1\ngraph (%1 \"x\": f32[2]) -> (\"y\") {\n  return(%1)\n}\n");
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
    tn_graph *back = tn_graph_read_binary(NULL, ops(), map);
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
    assert_null(tn_graph_read_binary(NULL, ops(), NULL));
    assert_int_equal(tn_error_status(), TN_ERR_USAGE);
    assert_null(tn_graph_read_binary_from(NULL, ops(), "tenon 1", 7, NULL, NULL));
    assert_int_equal(tn_error_status(), TN_ERR_MODEL);
}

static void limits_of_nodes(void **state) {
    (void)state;
    tn_graph *g = parse(everything);
    size_t size;
    uint8_t *bytes = binary_bytes(g, &size);
    assert_non_null(bytes);
    assert_null(tn_graph_read_binary_from(NULL, ops(), bytes, size, NULL, &(tn_binary_options){.max_nodes = 3}));
    assert_int_equal(tn_error_status(), TN_ERR_LIMIT);
    tn_graph *back = tn_graph_read_binary_from(NULL, ops(), bytes, size, NULL, &(tn_binary_options){.max_nodes = 30});
    assert_non_null(back);
    tn_graph_destroy(back);
    tn_free(NULL, bytes);
    tn_graph_destroy(g);
}

/* The published values of XXH64. */
static void checksums(void **state) {
    (void)state;
    assert_true(tn_checksum_of("", 0) == 0xEF46DB3751D8E999u);
    assert_true(tn_checksum_of("a", 1) == 0xD24EC4F1A98C6E5Bu);
    assert_true(tn_checksum_of("abc", 3) == 0x44BC2CF5AD770999u);
    uint8_t bytes[150];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 7);
    for (size_t size = 0; size <= sizeof bytes; size++)
        for (size_t first = 0; first <= size; first++) {
            tn_checksum sum;
            tn_checksum_begin(&sum);
            tn_checksum_add(&sum, bytes, first);
            tn_checksum_add(&sum, bytes + first, size - first);
            assert_true(tn_checksum_end(&sum) == tn_checksum_of(bytes, size));
        }
}

/* Strings that were loaded are found, and stay what they are when others are added. */
static void loaded_strings_are_found(void **state) {
    (void)state;
    static const char bytes[] = "a\0ab\0b\0ba\0c";
    const uint32_t lengths[] = {1, 2, 1, 2, 1};
    uint8_t raw[sizeof lengths];
    memcpy(raw, lengths, sizeof raw);
    tn_strings s;
    uint32_t record;
    assert_true(tn_strings_init(&s, NULL));
    assert_true(tn_strings_load(&s, 5, raw, bytes, sizeof bytes, &record));
    for (int added = 0; added < 2; added++) {
        assert_int_equal(tn_strings_find(&s, "a", 1), 1);
        assert_int_equal(tn_strings_find(&s, "ab", 2), 2);
        assert_int_equal(tn_strings_find(&s, "ba", 2), 4);
        assert_int_equal(tn_strings_find(&s, "c", 1), 5);
        assert_int_equal(tn_strings_find(&s, "aa", 2), UINT32_MAX);
        assert_int_equal(tn_strings_find(&s, "d", 1), UINT32_MAX);
        assert_int_equal(tn_strings_find(&s, "", 0), 0);
        if (!added)
            assert_int_equal(tn_strings_append(&s, "ab", 2), 6);
        assert_int_equal(tn_strings_add(&s, "ab", 2), 2);
        assert_int_equal(tn_strings_add(&s, "new", 3), 7);
    }
    tn_strings_free(&s);
    static const struct {
        const char *bytes;
        size_t size;
        uint32_t first, second, wrong;
    } bad[] = {{"b\0a", 4, 1, 1, 2},          {"a\0a", 4, 1, 1, 2}, {"\0a", 3, 0, 1, 1},
               {"a\0b", 3, 1, 1, 2},          {"abab", 5, 1, 2, 1}, {"a\0b\0\0", 5, 1, 1, 3},
               {"a\0b", 4, 1, 0xffffffff, 2}, {"a\0b", 0, 1, 1, 1}, {"a\0\0b", 5, 1, 2, 2}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        memcpy(raw, &bad[i].first, 4);
        memcpy(raw + 4, &bad[i].second, 4);
        assert_true(tn_strings_init(&s, NULL));
        assert_false(tn_strings_load(&s, 2, raw, bad[i].bytes, bad[i].size, &record));
        assert_int_equal(record, bad[i].wrong);
        tn_strings_free(&s);
    }
}

/* A location that takes the numbers of those behind it: as many as are left, or one more. */
static void locations_that_take_all(void **state) {
    (void)state;
    tn_graph *g = tn_graph_new(NULL, ops());
    for (uint32_t i = 0; i < 12; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%u", (unsigned)i);
        tn_graph_at_location(g, tn_location_make(g, "Op", name, "file", i));
        toy_block(g, nest(g, 1));
    }
    size_t size;
    uint8_t *bytes = binary_bytes(g, &size);
    assert_non_null(bytes);
    uint64_t offset, length;
    memcpy(&offset, binary_entry(bytes, size, "LOCS") + 8, 8);
    memcpy(&length, binary_entry(bytes, size, "LOCS") + 16, 8);
    assert_true(length >= 24 * 4);
    for (uint32_t n = 2; n <= 16; n++)
        for (uint64_t at = 0; at < length; at += 8) {
            uint8_t *copy = malloc(size);
            memcpy(copy, bytes, size);
            for (uint64_t k = at + 8; k < length; k += 8)
                memcpy(copy + offset + k, &(uint32_t){1}, 4);
            memcpy(copy + offset + at, &n, 4);
            binary_seal(copy, size);
            assert_false(try_read(copy, size, "location of too many origins", (size_t)at));
            free(copy);
        }
    tn_free(NULL, bytes);
    tn_graph_destroy(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(locations_that_take_all),
        cmocka_unit_test(checksums),
        cmocka_unit_test(loaded_strings_are_found),
        cmocka_unit_test(round_trips),
        cmocka_unit_test(everything_survives),
        cmocka_unit_test(constants_lie_in_the_file),
        cmocka_unit_test(weights_are_checked_on_demand),
        cmocka_unit_test(cut_off_anywhere),
        cmocka_unit_test(any_bit_flipped),
        cmocka_unit_test(any_number_wrong),
        cmocka_unit_test(tables_that_lie),
        cmocka_unit_test(later_sections_are_passed_over),
        cmocka_unit_test(missing_operators_are_listed),
        cmocka_unit_test(sharing_costs_no_time),
        cmocka_unit_test(nesting_has_a_limit),
        cmocka_unit_test(out_of_memory),
        cmocka_unit_test(saving),
        cmocka_unit_test(limits_of_nodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
