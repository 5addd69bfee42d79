/* The binary form: files that are wrong (X6) are refused, quickly and without harm. */
#include <inttypes.h>
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

#define LEAST_MEMORY ((size_t)64 << 20)

/* Reads a file that may be wrong: a graph that verifies, or an error of a kind that files can cause. */
static bool try_read(const uint8_t *bytes, size_t size, const char *what, size_t at) {
    static tn_heap *heap;
    if (!heap)
        heap = tn_heap_create(NULL);
    tn_heap_set_limit(heap, LEAST_MEMORY);
    tn_error_clear();
    double start = tn_clock();
    tn_graph *g = tn_graph_read_binary_from(heap, binary_ops(), bytes, size, NULL, NULL);
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
    tn_graph *g = binary_parse(binary_everything);
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
    tn_graph *g = binary_parse(binary_everything);
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
    tn_graph *g = binary_parse(binary_everything);
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
    tn_graph *g = binary_parse(binary_everything);
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
    tn_graph *g = binary_parse(binary_everything);
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
    tn_graph *g = binary_parse("tenon 1\ngraph (%1 \"x\": f32[2]) -> (\"y\") {\n  %2 = pair(%1, %1) : f32[2]\n"
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
    tn_graph *g = tn_graph_new(NULL, binary_ops());
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
    tn_graph *g = tn_graph_new(NULL, binary_ops());
    toy_block(g, nest(g, TN_MAX_NESTING));
    binary_check(g);
    tn_graph_destroy(g);
    /* two nests; then the innermost node of the first is given the second one's regions, in the file */
    g = tn_graph_new(NULL, binary_ops());
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

/* A location that takes the numbers of those behind it: as many as are left, or one more. */
static void locations_that_take_all(void **state) {
    (void)state;
    tn_graph *g = tn_graph_new(NULL, binary_ops());
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

/* --- what is stated of values ------------------------------------------------------------------------------------------------------ */

/* Files may say less than infer does, never what the data may make false. */
static void statements_must_hold(void **state) {
    (void)state;
    static const struct {
        const char *symbols, *nodes;
        const char *type; /* what that of the output becomes */
        const char *says; /* NULL: it is read */
    } cases[] = {
        {"", "%2 = constant() {value = f32[3] [1, 2, 3]} : f32[3]", "f32[*]", NULL},
        {"", "%2 = constant() {value = f32[3] [1, 2, 3]} : f32[3]", "?", NULL},
        {"", "%2 = constant() {value = f32[3] [1, 2, 3]} : f32[3]", "f32[N]", "rule 13"},
        {"", "%2 = constant() {value = f32[3] [1, 2, 3]} : f32[3]", "f32[M]", "rule 13"},
        {"", "%2 = exp(%1) : f32[N]", "f32[*]", NULL},
        {"", "%2 = exp(%1) : f32[N]", "f32[3]", "rule 13"},
        {"", "%2 = exp(%1) : f32[N]", "f32[M]", "rule 13"},
        {"", "%2 = exp(%1) : f32[N]", "f32[N + M]", "rule 13"},
        {"", "%2 = shape_of(%1) : i64[1]", "i64[N]", "rule 13"},
        {"symbol u1 [0, 9223372036854775807] fresh\n", "%2 = nonzero(%1) : i64[1, u1]", "i64[1, N]", "rule 13"},
        {"symbol u1 [0, 9223372036854775807] fresh\n", "%2 = nonzero(%1) : i64[1, u1]", "i64[1, 3]", "rule 13"},
        {"symbol u1 [0, 9223372036854775807] fresh\n", "%2 = nonzero(%1) : i64[1, u1]", "i64[*]", NULL},
        {"", "%2 = sequence_construct(%1) : seq(f32[N])", "seq(f32[*])", NULL},
        {"", "%2 = sequence_construct(%1) : seq(f32[N])", "seq(f32[3])", "rule 13"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[600];
        snprintf(text, sizeof text,
                 "tenon 1\nsymbol N [0, 9]\nsymbol M [0, 9]\n%sgraph (%%1 \"x\": f32[N], %%9 \"m\": f32[M], %%8 \"t\": "
                 "%s) -> "
                 "(\"y\") {\n  %s\n  return(%%2)\n}\n",
                 cases[i].symbols, cases[i].type, cases[i].nodes);
        tn_graph *g = binary_parse(text);
        size_t size;
        assert_int_equal(tn_value_set_type(g, tn_graph_output(g, 0), tn_value_type(g, tn_graph_input(g, 2))), TN_OK);
        uint8_t *bytes = binary_bytes(g, &size);
        if (!bytes)
            fail_msg("%s: %s", text, tn_error_message());
        bool read = try_read(bytes, size, "statement", i);
        if (read != !cases[i].says ||
            (!read && (!strstr(tn_error_message(), cases[i].says) || tn_error_status() != TN_ERR_MODEL)))
            fail_msg("%s%s: %s", text, cases[i].says ? cases[i].says : "", read ? "it is read" : tn_error_message());
        tn_free(NULL, bytes);
        tn_graph_destroy(g);
    }
}

/* Bounds of a size that data decide leave out none that there may be; wider ones only say less. */
static void bounds_must_hold(void **state) {
    (void)state;
    static const struct {
        const char *bounds, *says;
    } cases[] = {{"[0, 9223372036854775807]", NULL},
                 {"[-9, 9223372036854775807]", NULL},
                 {"[1, 9223372036854775807]", "from 1 to"},
                 {"[0, 2]", "from 0 to 2"},
                 {"[7, 7]", "from 7 to 7"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int form = 0; form < 2; form++) { /* as text; changed in the binary form */
            char text[300];
            snprintf(
                text, sizeof text,
                "tenon 1\nsymbol N [0, 9223372036854775807]\nsymbol u1 %s fresh\ngraph (%%1 \"x\": f32[N]) -> (\"y\") "
                "{\n  %%2 = nonzero(%%1) : i64[1, u1]\n  return(%%2)\n}\n",
                form ? cases[0].bounds : cases[i].bounds);
            tn_graph *g = tn_graph_parse_with(NULL, binary_ops(), text, strlen(text));
            if (g && form) {
                size_t size;
                for (uint32_t s = 0; s < g->dims.symbol.len; s++)
                    if (g->dims.symbol.data[s].fresh)
                        sscanf(cases[i].bounds, "[%" SCNd64 ", %" SCNd64 "]", &g->dims.symbol.data[s].low,
                               &g->dims.symbol.data[s].high);
                uint8_t *bytes = binary_bytes(g, &size);
                assert_non_null(bytes);
                tn_graph_destroy(g);
                g = tn_graph_read_binary_from(NULL, binary_ops(), bytes, size, NULL, NULL);
                tn_free(NULL, bytes);
            }
            if (!g != !!cases[i].says ||
                (!g && (!strstr(tn_error_message(), cases[i].says) || tn_error_status() != TN_ERR_MODEL)))
                fail_msg("%s, form %d: %s", cases[i].bounds, form, g ? "it is read" : tn_error_message());
            tn_graph_destroy(g);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(locations_that_take_all),
        cmocka_unit_test(cut_off_anywhere),
        cmocka_unit_test(any_bit_flipped),
        cmocka_unit_test(any_number_wrong),
        cmocka_unit_test(tables_that_lie),
        cmocka_unit_test(later_sections_are_passed_over),
        cmocka_unit_test(missing_operators_are_listed),
        cmocka_unit_test(sharing_costs_no_time),
        cmocka_unit_test(nesting_has_a_limit),
        cmocka_unit_test(statements_must_hold),
        cmocka_unit_test(bounds_must_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
