/* Between the files of the binary form's writer: what is written, numbered. */
#ifndef TN_IR_BINARY_WRITE_H
#define TN_IR_BINARY_WRITE_H

#include "ir/binary.h"

/* Things numbered in the order in which they are met: of[id] is the number (from 1) of what has that id in the graph. */
typedef struct tn_numbering {
    uint32_t *of;
    tn_u32_vec ids; /* by number - 1 */
} tn_numbering;

/* The bytes of one tensor, or of several that share them. */
typedef struct tn_blob {
    const tn_tensor *tensor;
    uint64_t bytes, offset, checksum; /* offset in its section */
} tn_blob;

typedef struct tn_numbers {
    const tn_graph *g;
    tn_numbering string, type, dim, origin, location, value, node, region;
    uint8_t *symbol_used;             /* by symbol */
    TN_VEC(const tn_op *) op;         /* by number */
    TN_VEC(const tn_tensor *) tensor; /* by number - 1 */
    tn_u32_vec tensor_blob;           /* by number - 1: number of its blob; strings: 0 */
    TN_VEC(tn_blob) blob;             /* by number - 1 */
    tn_u32_vec held;                  /* value ids whose elements define symbols */
    tn_map op_of, tensor_of, blob_of; /* by address */
    bool failed;                      /* out of memory: the error is set */
} tn_numbers;

/* Numbers everything that the regions of a sound graph reach. */
bool tn_numbers_make(tn_numbers *n, const tn_graph *graph);
void tn_numbers_free(tn_numbers *n);
uint32_t tn_numbers_op(const tn_numbers *n, const tn_op *op);
uint32_t tn_numbers_tensor(const tn_numbers *n, const tn_tensor *tensor);

#endif
