/* Evaluation of contractions: the block engine (contract_block.c), dot (contract_dot.c), convolution
   (contract_conv.c); rows and inference in contract.c.

   Each output element is one sum, its terms taken one after the other in the row-major order of the contracted
   index: in double for floats of all widths (rounded once at the end), in 64 wrapping bits for integers. Blocking
   and threads never change bits. */
#ifndef TN_OPS_CONTRACT_H
#define TN_OPS_CONTRACT_H

#include "ops/scalar.h"
#include "ops/support.h"

tn_status tn_eval_conv(tn_eval *e);
tn_status tn_eval_dot(tn_eval *e);

/* Where integers are accumulated and what dtype comes out: `acc` (none: dtype) for integers, dtype for floats. */
tn_dtype tn_contract_result(tn_dtype dtype, tn_dtype acc);
/* What elements of a dtype are loaded into. */
static inline tn_domain tn_contract_domain(tn_dtype dtype) {
    return tn_dtype_is_float(dtype) ? TN_DOMAIN_F64 : tn_dtype_is_signed(dtype) ? TN_DOMAIN_I64 : TN_DOMAIN_U64;
}

/* One element in work: a double or 64 bits of an integer; zero bits are zero in both. */
typedef uint64_t tn_lane;

#define TN_BLOCK_COLUMNS 64
#define TN_BLOCK_DEPTH 256

/* Sums for `rows` rows by up to TN_BLOCK_COLUMNS columns, and room for the operands' next TN_BLOCK_DEPTH terms. */
typedef struct tn_block {
    tn_heap *heap;
    bool floats;
    int64_t rows;
    tn_lane *memory;
    tn_lane *acc;   /* [rows, rounded up to even][TN_BLOCK_COLUMNS] */
    tn_lane *panel; /* [column / 8][term][8] */
    tn_lane *strip; /* [pair of rows][term][2] */
} tn_block;
bool tn_block_init(tn_block *block, tn_heap *heap, bool floats, int64_t rows);
void tn_block_free(tn_block *block);
/* All sums become 0. */
void tn_block_clear(tn_block *block);
/* Sets the columns' operands of one term; columns past those in use must be 0. */
void tn_block_set_term(tn_block *block, int64_t term, const tn_lane line[TN_BLOCK_COLUMNS]);
/* The other way round: operands of terms 0, 1, ... of one column. */
void tn_block_set_column(tn_block *block, int64_t column, int64_t terms, const tn_lane *operands);
/* Sets the columns from `first` to the end of its register tile to 0. */
void tn_block_pad_columns(tn_block *block, int64_t first, int64_t terms);
/* Fills row[0..terms) with the operands of `row` for terms begin, begin + 1, ... */
typedef void tn_block_load_row(const void *ctx, int64_t row, int64_t begin, int64_t terms, tn_lane *out);
/* Adds terms [begin, begin + terms) of all rows with the panel to the first `columns` columns. */
void tn_block_multiply(tn_block *block, int64_t begin, int64_t terms, int64_t columns, tn_block_load_row *load,
                       const void *ctx);
static inline const tn_lane *tn_block_sums(const tn_block *block, int64_t row) {
    return block->acc + row * TN_BLOCK_COLUMNS;
}

/* Loads elements [begin, begin + n) of a space, row-major, from `base`. */
void tn_space_load(const tn_space *space, tn_dtype dtype, const char *base, int64_t begin, int64_t n, tn_lane *out);

/* Work cut into units (batch or group, columns, rows) and those into pieces for the pool. */
typedef struct tn_contract_split {
    int64_t outer, columns, rows; /* sizes */
    int64_t column_blocks, row_blocks, row_block;
    int64_t units, pieces;
} tn_contract_split;
void tn_contract_plan(tn_contract_split *split, int threads, int64_t outer, int64_t columns, int64_t rows);
typedef struct tn_contract_unit {
    int64_t outer, column, columns, row, rows; /* ranges [column, column + columns), ... */
} tn_contract_unit;
tn_contract_unit tn_contract_unit_at(const tn_contract_split *split, int64_t unit);
/* Runs `compute` for all units, each piece with a block of its own; TN_ERR_MEMORY when one cannot be had. */
typedef void tn_contract_compute(const void *ctx, tn_block *block, const tn_contract_unit *unit);
tn_status tn_contract_run(tn_eval *e, const tn_contract_split *split, bool floats, tn_contract_compute *compute,
                          const void *ctx);

#endif
