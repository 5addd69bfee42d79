/* The binary form of a graph (.tenon): docs/binary.md describes every byte. Written and read in little-endian order. */
#ifndef TN_IR_BINARY_H
#define TN_IR_BINARY_H

#include "ir/graph.h"

#define TN_BINARY_MAJOR 1
#define TN_BINARY_MINOR 0
#define TN_BINARY_ENDIAN 0x01020304u
#define TN_BINARY_ALIGN 64  /* of sections and of each tensor's bytes */
#define TN_BINARY_HEADER 64 /* bytes */
#define TN_BINARY_FOOTER 64
#define TN_BINARY_ENTRY 48
#define TN_BINARY_SMALL 4096 /* tensors of at most so many bytes are part of the metadata */
#define TN_BINARY_MAGIC "\x89TENON\r\n"
#define TN_BINARY_TAIL "\x89tenon\r\n"

/* Section flags. */
enum {
    TN_SECTION_REQUIRED = 1, /* who does not know it cannot read the file */
    TN_SECTION_LAZY = 2      /* its checksum is 0: its parts are checked on demand */
};

/* Kinds of sections: indices into tn_binary_kinds. */
typedef enum tn_section {
    TN_SECTION_STRINGS,
    TN_SECTION_OPS,
    TN_SECTION_SYMBOLS,
    TN_SECTION_DIMS,
    TN_SECTION_TYPES,
    TN_SECTION_ORIGINS,
    TN_SECTION_LOCATIONS,
    TN_SECTION_VALUES,
    TN_SECTION_HELD,
    TN_SECTION_REGIONS,
    TN_SECTION_NODES,
    TN_SECTION_FUNCTIONS,
    TN_SECTION_OUTPUTS,
    TN_SECTION_DEFAULTS,
    TN_SECTION_METADATA,
    TN_SECTION_TENSORS,
    TN_SECTION_DATA,
    TN_SECTION_WEIGHTS,
    TN_SECTION_BLOBS,
    TN_SECTION_COUNT
} tn_section;

typedef struct tn_binary_kind {
    char code[5];         /* four characters */
    uint8_t least_record; /* bytes of the smallest record; 0: there are none to count */
} tn_binary_kind;
extern const tn_binary_kind tn_binary_kinds[TN_SECTION_COUNT];

/* A section of a file that was looked through. */
typedef struct tn_section_view {
    const uint8_t *data;
    size_t size;
    uint32_t count;
    bool there;
} tn_section_view;

/* Writes through a temporary file; needs memory in proportion to the number of nodes, not to the weights. The graph is verified
   first. */
tn_status tn_graph_write_binary(const tn_graph *graph, const char *path);

/* Whether a file starts as the binary form does. */
bool tn_binary_is(const void *bytes, size_t size);

typedef struct tn_binary_options {
    uint64_t max_nodes; /* 0: no limit */
    /* Makes a row for a name that no table has, in the graph's arena. *op NULL: there is none. */
    tn_status (*unknown_op)(tn_graph *graph, const char *name, size_t length, const tn_op **op);
} tn_binary_options;

/* A graph with the rows of `ops`; constants lie in the mapping, which is retained. NULL with an error that names the file. */
tn_graph *tn_graph_read_binary(tn_heap *heap, const tn_op_table *ops, tn_mapping *mapping);
/* The same from memory. `mapping` NULL: the bytes must outlive the graph and its tensors. `options` may be NULL. */
tn_graph *tn_graph_read_binary_from(tn_heap *heap, const tn_op_table *ops, const void *bytes, size_t size,
                                    tn_mapping *mapping, const tn_binary_options *options);
/* Checks what reading leaves out: the bytes of the weights. */
tn_status tn_binary_check_weights(const void *bytes, size_t size);

/* Between the reader's files. Checks header, footer, table and checksums, and finds all sections. */
tn_status tn_binary_open(const uint8_t *bytes, size_t size, tn_section_view sections[TN_SECTION_COUNT]);
/* The bytes of a tensor by their number (from 0), and the checksum that they should have. */
tn_status tn_binary_blob(const tn_section_view *sections, uint32_t blob, tn_section_view *out, uint64_t *checksum);

#endif
