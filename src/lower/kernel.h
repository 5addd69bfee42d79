/* Kernel IR: what a compiled plan computes, one record a kernel launch; and the type of the kernel table that kernels/ fills.

   A kernel has a domain: `outer` axes, one output element each, then `inner` axes that are reduced (none: elementwise). Operands
   are read, and outputs written, through accesses: affine maps from domain indices to elements of a slot, with guards where a
   window or padding may leave the source. Movement operators (transpose, broadcast, slice, pad, window) are accesses, not copies.
   Every size is an index into the plan's table of dimension expressions, so one kernel serves all bindings. */
#ifndef TN_LOWER_KERNEL_H
#define TN_LOWER_KERNEL_H

#include "base/os.h"
#include "ir/graph.h"
#include "ops/scalar.h"

/* Index into tn_plan.size; its value at run time is args->size[index]. */
typedef uint32_t tn_size;

/* A guard: sum_d coef[d] * index[d] + offset must lie in [0, extent), else the access reads the kernel's `fill` of that operand. */
typedef struct tn_guard {
    tn_size *coef; /* [axes of the domain] */
    tn_size offset, extent;
} tn_guard;

typedef struct tn_access {
    uint32_t slot;
    uint8_t dtype;
    uint8_t guards;
    tn_size offset;  /* in elements from the slot's first */
    tn_size *stride; /* [axes of the domain], in elements of the slot */
    tn_guard *guard; /* [guards] */
    double fill;     /* value read where a guard fails (integers: exact below 2^53; lowest/highest via fill_identity) */
    uint16_t fill_identity; /* a tn_scalar_op whose identity in `dtype` is read instead of `fill`; 0: `fill` */
} tn_access;

/* One scalar operation of a stage. Registers: 0..operands-1 are the loaded operands, then one for each operation. */
typedef struct tn_scalar_step {
    uint16_t op;   /* tn_scalar_op; TN_SCALAR_NONE: copy of a */
    uint8_t dtype; /* of the result (and, but for compare, cast, select's condition, of the operands) */
    uint8_t from;  /* dtype of the operands */
    uint16_t a, b, c;
    int64_t flags; /* is_inf: 1 positive, 2 negative; cast: saturate */
} tn_scalar_step;

/* What an axis of a contraction is: of rows (operand 0 only), columns (operand 1 only), of both factors, or summed. At most one
   axis is COLUMN. */
typedef enum tn_axis_role { TN_AXIS_ROW, TN_AXIS_COLUMN, TN_AXIS_BATCH, TN_AXIS_SUM } tn_axis_role;

typedef enum tn_kernel_kind {
    TN_KERNEL_STRIP, /* elementwise DAG over the domain, stored to the outputs */
    TN_KERNEL_REDUCE, /* the same, then one register combined over the inner axes by `combine`, then the epilogue steps */
    TN_KERNEL_CONTRACT, /* sum over the inner axes of operand 0 * operand 1, then the epilogue steps (more operands by outer axes) */
    TN_KERNEL_ATTENTION, /* `part`: a contraction, kernels that make something of each row of it, and a contraction of these rows; what they
                            hand on to each other is nowhere else. Operands: what they read from outside; axes: the last part's, outer ones */
    TN_KERNEL_BANDS, /* `part`: contractions, each of which reads rows of what the one before makes, which is nowhere else. Operands and axes: as
                        of attentions */
    TN_KERNEL_KIND_COUNT
} tn_kernel_kind;

typedef struct tn_kernel {
    uint8_t kind;
    uint8_t winograd;     /* CONTRACT: outputs of a side of a tile (ops/winograd.h); 0: products one by one */
    uint8_t outer, inner; /* numbers of axes */
    uint8_t operands, outputs;
    uint8_t accumulator;      /* dtype of the sum or combination */
    uint8_t reduced;          /* dtype the sum is rounded to: that of its register */
    uint16_t combine;         /* REDUCE: tn_scalar_op */
    uint16_t steps, epilogue; /* steps before and after the reduction; epilogue steps follow in `step` */
    tn_size *extent;          /* [outer + inner] */
    tn_access
        *operand; /* [operands]; CONTRACT: 0 and 1 are the factors, the rest are read by outer axes in the epilogue */
    tn_access *output;                /* [outputs]; strides of outer axes */
    uint16_t *result;                 /* [outputs]: the register stored */
    tn_scalar_step *step;             /* [steps + epilogue]. The reduced value is register operands + steps. */
    uint8_t *role;                    /* CONTRACT: [outer + inner], tn_axis_role */
    struct tn_strip_program *program; /* the steps as the strip machine runs them; owned by the plan */
    const void *packed;               /* operand 1 as its way of running wants it: what is in `pack` */
    tn_tensor *pack;                  /* a reference of the plan's (packs.h), or NULL */
    size_t packed_bytes;
    bool packed_only; /* operand 1 is never read but through `packed` */
    uint8_t chain;    /* kernels from this one on that may run together, row by row; 0: none or not the first */
    uint8_t
        readers; /* all reads of the output are by the next `readers` kernels of the chain; 0: it is read elsewhere */
    struct tn_kernel *part; /* ATTENTION, BANDS: [parts]; they own programs and packs as kernels do */
    uint8_t parts;
    uint32_t nodes, node_count;        /* the graph nodes it stands for: range in tn_plan.kernel_node */
    const struct tn_kernel_impl *impl; /* chosen once per plan */
} tn_kernel;

/* Elementwise kernels and reductions that follow each other: at most. */
#define TN_CHAIN_MOST 16

/* What a kernel runs on. */
typedef struct tn_kernel_args {
    const tn_kernel *kernel;
    void *const *slot;   /* base address of each slot */
    const int64_t *size; /* value of each tn_size */
    tn_pool *pool;       /* may be NULL */
    tn_heap *heap;       /* scratch; prefer the stack */
    /* A block of `heap` that a kernel keeps for its next run of the same sizes, one for each kernel that runs: NULL at first, and again
       when sizes change (the caller frees it). NULL: nothing is kept. */
    void **kept;
    /* On every second trip of a loop: what was read last on the trip before is read first, while it is still in the cache. No bit depends
       on it. */
    bool backwards;
} tn_kernel_args;

/* What is known of a kernel when its plan is made. */
typedef struct tn_kernel_facts {
    tn_heap *heap;
    tn_isa isa;    /* the highest level to use */
    bool unfilled; /* what is prepared is allocated, not written: the plan is measured, it does not compute */
    const void *ctx;
    bool (*constant)(const void *ctx, tn_size size, int64_t *value); /* whether a size is the same at every binding */
    const tn_tensor *(*weights)(const void *ctx, uint32_t slot);     /* the tensor of a constant slot, or NULL */
    struct tn_packs *packs; /* where packed constants are shared; may be NULL */
} tn_kernel_facts;

/* One way to run a kind of kernel. The table lists ways best first; a plain one that takes everything is last. */
typedef struct tn_kernel_impl {
    const char *name;
    uint8_t kind; /* tn_kernel_kind */
    uint8_t isa;  /* tn_isa it needs */
    bool (*takes)(const tn_kernel *kernel, const tn_kernel_facts *facts);
    /* Makes kernel->program; packs weights into kernel->packed where that helps. NULL: nothing to prepare. */
    tn_status (*prepare)(tn_kernel *kernel, const tn_kernel_facts *facts);
    double (*cost)(const tn_kernel *kernel, const int64_t *size); /* seconds, roughly; NULL: unknown */
    tn_status (*run)(const tn_kernel_args *args);
} tn_kernel_impl;

typedef struct tn_kernel_table {
    const tn_kernel_impl *const *impl;
    uint32_t count;
} tn_kernel_table;

#endif
