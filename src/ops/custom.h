/* Operators of users, from the inside. */
#ifndef TN_OPS_CUSTOM_H
#define TN_OPS_CUSTOM_H

#include <tenon/custom.h>

#include "base/pool.h"
#include "base/vec.h"
#include "ir/op.h"

/* A row of a set: `op` is what nodes point to, its `extra` this row. Lies in the set's arena. */
typedef struct tn_custom_row {
    tn_op op; /* name "domain.Name", or "domain.Name.SINCE" when it does not cover the first version */
    const char *domain, *name;
    int since, until; /* until INT32_MAX: the newest */
    uint32_t flags;
    tn_custom_function *infer, *eval;
    void *user;
} tn_custom_row;

/* The row of a node of dialect TN_DIALECT_CUSTOM that comes from a set, or NULL. */
const tn_custom_row *tn_custom_row_of(const tn_op *op);
/* Among the rows of sets in a table: the one of that domain ("ai.onnx" for ""), name and version (0: the newest there is), or
   NULL; *other: there is one for another version. `other` may be NULL. */
const tn_op *tn_custom_find(const tn_op_table *table, const char *domain, size_t domain_length, const char *name,
                            int version, bool *other);
/* The set's rows, then those of `base` (which lives for ever); the set takes no more rows. NULL with the error set. */
const tn_op_table *tn_op_set_table(tn_op_set *ops, const tn_op_table *base);
const tn_custom_row *tn_op_set_row(const tn_op_set *ops, uint32_t index);

/* custom_call.c: infer and eval of all these rows. */
tn_status tn_custom_run_infer(tn_infer *c);
tn_status tn_custom_run_eval(tn_eval *e);

/* plugin.c: libraries that a set holds. */
typedef struct tn_library tn_library;
struct tn_op_set {
    tn_heap *heap;
    tn_arena arena; /* rows and their texts */
    TN_VEC(const tn_op *) rows;
    TN_VEC(tn_library *) libraries;
    tn_mutex *mutex; /* guards what follows: sets are used from several threads once they are complete */
    bool sealed;
    uint32_t tables;
    tn_op_table table[2]; /* by base */
};

#endif
