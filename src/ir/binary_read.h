/* Between the files of the binary form's reader. Nothing that a file says is believed before it is checked; sizes of what is
   allocated come from counts that the file's own bytes hold. */
#ifndef TN_IR_BINARY_READ_H
#define TN_IR_BINARY_READ_H

#include "ir/binary.h"
#include "ir/graph_internal.h"

/* Reading a section: past its end everything reads as 0 and `bad` is set. */
typedef struct tn_cursor {
    const uint8_t *at, *end;
    bool bad;
} tn_cursor;

static inline size_t tn_cursor_left(const tn_cursor *c) {
    return (size_t)(c->end - c->at);
}

/* The next `size` bytes, or NULL. */
static inline const uint8_t *tn_cursor_bytes(tn_cursor *c, size_t size) {
    if (size > tn_cursor_left(c)) {
        c->bad = true;
        c->at = c->end;
        return NULL;
    }
    const uint8_t *bytes = c->at;
    c->at += size;
    return bytes;
}

static inline uint32_t tn_cursor_u32(tn_cursor *c) {
    uint32_t x = 0;
    const uint8_t *bytes = tn_cursor_bytes(c, sizeof x);
    if (bytes)
        memcpy(&x, bytes, sizeof x);
    return x;
}

static inline uint64_t tn_cursor_u64(tn_cursor *c) {
    uint64_t x = 0;
    const uint8_t *bytes = tn_cursor_bytes(c, sizeof x);
    if (bytes)
        memcpy(&x, bytes, sizeof x);
    return x;
}

typedef struct tn_binary_reader {
    tn_heap *heap;
    tn_graph *g;
    const tn_op_table *ops;
    const tn_binary_options *options;
    tn_mapping *mapping; /* NULL: the bytes are the caller's */
    tn_section_view section[TN_SECTION_COUNT];
    /* By number in the file: what it is in the graph. Numbers start at 1, 0 is nothing; operators start at 0. Of strings, origins,
       locations, values, regions and nodes, numbers are ids. */
    tn_dim *dim;
    tn_type *type;
    uint8_t *type_depth;
    const tn_op **op;
    tn_tensor **tensor; /* retained */
} tn_binary_reader;

static inline uint32_t tn_reader_count(const tn_binary_reader *r, tn_section kind) {
    return r->section[kind].count;
}
tn_cursor tn_reader_cursor(const tn_binary_reader *r, tn_section kind);
/* "record 3 of section 'NODE': ..." as TN_ERR_MODEL. */
tn_status tn_reader_fail(tn_section kind, uint32_t record, const char *format, ...) TN_PRINTF(3, 4);
/* The section is read: nothing was missing and nothing is left. */
tn_status tn_reader_end(const tn_cursor *c, tn_section kind);

/* binary_read_nodes.c: values, regions, nodes, functions, names, defaults, elements that define symbols. */
tn_status tn_reader_structure(tn_binary_reader *r);

#endif
