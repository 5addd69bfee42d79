#include "support/binary_checks.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/checksum.h"
#include "base/os.h"
#include "ir/text.h"

static uint64_t load64(const uint8_t *at) {
    uint64_t x;
    memcpy(&x, at, sizeof x);
    return x;
}

static bool same(const tn_graph *graph, const tn_graph *back) {
    char *a = tn_graph_print(graph), *b = back ? tn_graph_print(back) : NULL;
    bool good = a && b;
    if (good && strcmp(a, b) != 0) {
        size_t at = 0, line = 1;
        for (; a[at] == b[at]; at++)
            line += a[at] == '\n';
        while (at && a[at - 1] != '\n')
            at--;
        tn_fail(TN_ERR_FAILED, "the graph read back prints otherwise, line %zu: '%.160s' instead of '%.160s'", line,
                b + at, a + at);
        good = false;
    }
    if (a)
        tn_graph_free_text(graph, a);
    if (b)
        tn_graph_free_text(back, b);
    return good && tn_graph_equal(graph, back) && tn_graph_verify(back) == TN_OK;
}

static bool temporary(char path[64]) {
    strcpy(path, "/tmp/tenon-test-XXXXXX");
    int fd = mkstemp(path);
    if (fd < 0)
        return tn_fail(TN_ERR_IO, "no temporary file") == TN_OK;
    close(fd);
    return true;
}

bool binary_survives(const tn_graph *graph, const tn_binary_options *options) {
    char path[64];
    if (!temporary(path))
        return false;
    tn_mapping *map = NULL;
    tn_graph *back = NULL;
    bool good = tn_graph_write_binary(graph, path) == TN_OK && (map = tn_mapping_open(NULL, path)) != NULL;
    if (good) {
        const uint8_t *bytes = tn_mapping_data(map);
        size_t size = tn_mapping_size(map);
        back = tn_graph_read_binary_from(NULL, graph->ops, bytes, size, map, options);
        good = back && same(graph, back) && tn_binary_check_weights(bytes, size) == TN_OK;
    }
    tn_graph_destroy(back);
    tn_mapping_release(map);
    unlink(path);
    return good;
}

uint8_t *binary_bytes(const tn_graph *graph, size_t *size) {
    char path[64];
    if (!temporary(path))
        return NULL;
    uint8_t *bytes = tn_graph_write_binary(graph, path) == TN_OK ? (uint8_t *)tn_file_read(NULL, path, size) : NULL;
    unlink(path);
    return bytes;
}

/* The table, when it lies inside the file. */
static uint8_t *table_of(uint8_t *bytes, size_t size, uint64_t *count) {
    if (size < TN_BINARY_HEADER + TN_BINARY_FOOTER)
        return NULL;
    size_t room = size - TN_BINARY_FOOTER;
    uint64_t at = load64(bytes + room);
    *count = load64(bytes + room + 8);
    return at <= room && *count <= (room - at) / TN_BINARY_ENTRY ? bytes + at : NULL;
}

void binary_seal(uint8_t *bytes, size_t size) {
    uint64_t count, file = size;
    uint8_t *table = table_of(bytes, size, &count), *footer = bytes + size - TN_BINARY_FOOTER;
    if (!table)
        return;
    memcpy(footer + 16, &file, 8);
    memcpy(footer + 56, TN_BINARY_TAIL, 8);
    for (uint64_t i = 0; i < count; i++) {
        uint8_t *entry = table + i * TN_BINARY_ENTRY;
        uint64_t offset = load64(entry + 8), length = load64(entry + 16);
        if (offset > size || length > size - offset || memcmp(entry, "WGHT", 4) == 0)
            continue;
        uint64_t sum = tn_checksum_of(bytes + offset, (size_t)length);
        memcpy(entry + 32, &sum, 8);
    }
    tn_checksum sum;
    tn_checksum_begin(&sum);
    tn_checksum_add(&sum, bytes, TN_BINARY_HEADER);
    tn_checksum_add(&sum, table, (size_t)count * TN_BINARY_ENTRY);
    tn_checksum_add(&sum, footer, 48);
    uint64_t checksum = tn_checksum_end(&sum);
    memcpy(footer + 48, &checksum, 8);
}

uint8_t *binary_entry(uint8_t *bytes, size_t size, const char *code) {
    uint64_t count;
    uint8_t *table = table_of(bytes, size, &count);
    for (uint64_t i = 0; table && i < count; i++)
        if (memcmp(table + i * TN_BINARY_ENTRY, code, 4) == 0)
            return table + i * TN_BINARY_ENTRY;
    return NULL;
}
