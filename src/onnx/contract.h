/* Primitives and composites back to ONNX operators: the way out, as expand_*.c is the way in.

   One row for each primitive: a short function that builds onnx.* nodes before the primitive, in the form that the standard operators
   have in operator set TN_CONTRACT_OPSET and in all newer ones, and hands over a value for each output. */
#ifndef TN_ONNX_CONTRACT_H
#define TN_ONNX_CONTRACT_H

#include "ir/graph.h"
#include "onnx/op.h"

#define TN_CONTRACT_OPSET 18

typedef struct tn_contract {
    tn_graph *g;
    tn_node node;  /* the primitive */
    int opset;     /* at least TN_CONTRACT_OPSET */
    tn_value *out; /* [outputs of the node]: filled by the row */
    bool defined;  /* what the row built are primitives: they come next */
    tn_map spread; /* value made by Expand -> what it repeats: operators that broadcast read that */
} tn_contract;

typedef tn_status tn_contract_fn(tn_contract *c);
typedef struct tn_contract_row {
    const char *primitive;
    tn_contract_fn *run;
    const char *onnx; /* for rows that share a function: the operator */
} tn_contract_row;
extern const tn_contract_row tn_contract_scalar[], tn_contract_move[], tn_contract_reduce[], tn_contract_other[];
const tn_contract_row *tn_contract_find(const char *primitive);

/* Replaces every primitive and composite of the graph, which is left good for nothing but being written. The operators are those of
   `opset`, or newer; nodes that were ONNX nodes stay. TN_ERR_UNSUPPORTED names what has no operator. */
tn_status tn_onnx_contract(tn_graph *graph, int opset);

/* Whether a primitive that was built has no way back, or one that gives other bits: then the ONNX node it came from stays
   (tn_onnx_expand_writable). */
bool tn_contract_is_one_way(const tn_graph *graph, tn_node node);

/* convert.c: ONNX nodes of the standard from one operator set to another, in place. TN_ERR_UNSUPPORTED names the first step that would
   change what is computed, or that is not known. */
tn_status tn_onnx_convert(tn_graph *graph, int from, int to);

/* --- for the rows -------------------------------------------------------------------------------------------------------------------- */

static inline tn_value tn_c_in(const tn_contract *c, uint32_t i) {
    return tn_node_input(c->g, c->node, i);
}
/* The type of output i of the primitive. */
tn_type tn_c_type(const tn_contract *c, uint32_t output);
/* The type of `value` with another dtype. */
tn_type tn_c_like(const tn_contract *c, tn_value value, tn_dtype dtype);
/* A node of the standard with one output of this type (id 0: unknown). Null: the graph's sticky error. */
tn_value tn_c_emit(tn_contract *c, const char *op, uint32_t inputs, const tn_value *in, uint32_t attrs,
                   const tn_attr *attr, tn_type type);
/* Several outputs, of the primitive's types. */
tn_status tn_c_emit_many(tn_contract *c, const char *op, uint32_t inputs, const tn_value *in, uint32_t attrs,
                         const tn_attr *attr, uint32_t outputs, tn_value *out);
tn_value tn_c_one(tn_contract *c, const char *op, tn_value a, tn_type type);
tn_value tn_c_two(tn_contract *c, const char *op, tn_value a, tn_value b, tn_type type);
tn_value tn_c_cast(tn_contract *c, tn_value a, tn_dtype to);
tn_value tn_c_i64s(tn_contract *c, uint32_t count, const int64_t *values);
/* Sizes as an i64 vector: a constant, or read from shapes of values that are there. */
tn_value tn_c_dims(tn_contract *c, uint32_t count, const tn_dim *dims);
/* Hands over output i; TN_OK, or the sticky error when the value is null. */
tn_status tn_c_set(tn_contract *c, uint32_t output, tn_value value);
tn_status tn_c_unsupported(tn_contract *c, const char *why);
#ifdef __clang_analyzer__ /* as in base/error.h */
#define tn_c_unsupported(...) tn_not_ok((tn_c_unsupported)(__VA_ARGS__))
#endif
/* A composite by its definition, of these inputs. */
tn_status tn_c_define(tn_contract *c, const tn_value *inputs);

#endif
