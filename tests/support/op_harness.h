/* Checks one evaluation of one operator row in every way that must not matter: layouts of the operands, alignment,
   threads, memory that runs out; with guards around every buffer, against an oracle.

   A family's test makes cases and calls op_check on each; tests/ops/test_edges.c lists the families. */
#ifndef TESTS_SUPPORT_OP_HARNESS_H
#define TESTS_SUPPORT_OP_HARNESS_H

#include "ir/graph.h"
#include "ir/tensor.h"
#include "ops/ops.h"

typedef struct op_block op_block;
/* Owns what its functions hand out, until op_harness_end. */
typedef struct op_harness {
    tn_heap *heap; /* of evaluations; counts, may fail */
    tn_pool *pool; /* several threads */
    op_block *blocks;
    uint64_t seed;
    uint64_t checks; /* evaluations made */
} op_harness;
void op_harness_begin(op_harness *h);
/* Frees all; fails the test when an evaluation leaked. */
void op_harness_end(op_harness *h);

/* What a case expects of its result: fills `out` (contiguous, zeroed, of the inferred dtype and shape; packed dtypes
   too). */
typedef struct op_case op_case;
typedef void op_oracle(const op_case *c, tn_tensor *out);

/* A DIMS attribute, from int64 sizes. */
#define OP_A_DIMS(k, n, v) ((tn_attr){.key = (k), .kind = TN_ATTR_DIMS, .count = (uint32_t)(n), .as.ints = (v)})
#define OP_MAX_INPUTS 8
#define OP_MAX_ATTRS 12
#define OP_MAX_OUTPUTS 8

struct op_case {
    const tn_op *op;
    uint32_t inputs;
    tn_tensor *in[OP_MAX_INPUTS]; /* any strides; borrowed. NULL where absent */
    uint32_t attrs;
    tn_attr attr[OP_MAX_ATTRS]; /* as for tn_graph_add_node; DIMS by OP_A_DIMS */
    op_oracle *oracle;          /* NULL: only that layouts, threads and failures change nothing */
    double ulps;                /* steps of the result's dtype that the oracle may be away */
    const void *ctx;            /* for the oracle */
    uint32_t output;            /* which output is checked; the others are evaluated too */
};

/* Evaluates the case on contiguous operands and compares with the oracle; then again, bit for bit: with unaligned,
   reversed, column-major and gapped operands, on several threads, and into an output that eval must make itself.
   Guards around operands and outputs must be untouched, operands unchanged. Inferred dtype and shape must be the
   result's. */
void op_check(op_harness *h, const op_case *c);
/* The same once more with each allocation of eval failing in turn: TN_ERR_MEMORY, nothing leaked, in the end the
   result. */
void op_check_failures(op_harness *h, const op_case *c);
/* One evaluation of the operands as they are. TN_OK and a new tensor (destroy it), or the status of building or
   evaluating. `limit`: bytes that evaluation may take, 0: any. */
tn_status op_try(op_harness *h, const op_case *c, size_t limit, tn_tensor **out);
/* Expects that status from op_try. */
void op_expect(op_harness *h, const op_case *c, size_t limit, tn_status status);

/* --- making operands ---------------------------------------------------------------------------------------------- */

/* A zeroed contiguous tensor. */
tn_tensor *op_tensor(op_harness *h, tn_dtype dtype, int rank, const int64_t *dims);
/* One with these values, by tn_store_f64. */
tn_tensor *op_values(op_harness *h, tn_dtype dtype, int rank, const int64_t *dims, const double *values);
/* One with random elements: floats in [-4, 4], integers over their range or, `small`, in [-8, 8]. */
tn_tensor *op_random(op_harness *h, tn_dtype dtype, int rank, const int64_t *dims, bool small);
/* The edge values of a dtype as a 1-D tensor: NaN, infinities, -0, subnormals, extremes, shift counts, ... (bool: 0,
   1). */
tn_tensor *op_edges(op_harness *h, tn_dtype dtype);
/* `base` of rank 1 seen as `dims` with stride 0 everywhere but on `axis` (-1: nowhere; base[0]). */
tn_tensor *op_expand(op_harness *h, tn_tensor *base, int rank, const int64_t *dims, int axis);
/* Element by linear index, converted as by tn_load_*; any strides. */
double op_get(const tn_tensor *t, int64_t index);
int64_t op_get_i64(const tn_tensor *t, int64_t index);
uint64_t op_random_bits(op_harness *h);

/* --- dtypes ------------------------------------------------------------------------------------------------------- */

/* f16 bf16 f32 f64; i8 to u64; those and bool; ended by TN_DTYPE_NONE. */
extern const tn_dtype op_floats[], op_ints[], op_numbers[];

/* --- families ----------------------------------------------------------------------------------------------------- */

typedef struct op_family_test {
    const tn_op_family *family;
    /* Checks the cases of one row of the family. */
    void (*check)(op_harness *h, const tn_op *op);
} op_family_test;

#endif
