/* Symbolic dimensions: interned, canonical integer expressions of a graph. */
#ifndef TENON_DIM_H
#define TENON_DIM_H

#include <tenon/types.h>

TN_BEGIN_DECLS

typedef struct tn_graph tn_graph;

/* A dimension expression of one graph; equal ids mean provably equal. id 0 is null. */
typedef struct tn_dim {
    uint32_t id;
} tn_dim;

typedef enum tn_dim_kind {
    TN_DIM_CONST,
    TN_DIM_SYMBOL,
    TN_DIM_ADD,      /* sum of terms, canonical */
    TN_DIM_MUL,      /* product of factors, canonical */
    TN_DIM_FLOORDIV, /* rounded towards minus infinity; a zero divisor has no value */
    TN_DIM_CEILDIV,
    TN_DIM_MOD, /* a - b * floordiv(a, b) */
    TN_DIM_MIN,
    TN_DIM_MAX,
    TN_DIM_BROADCAST /* numpy's rule at run time: a where b is 1, b where a is 1, a where equal; else no value */
} tn_dim_kind;

/* Builders; operands of other graphs, or null, give null with the graph's sticky error set. Results that overflow int64 are null too. */
TN_API tn_dim tn_dim_const(tn_graph *graph, int64_t value);
/* The symbol of this name (bounds [0, INT64_MAX] when new); the same name gives the same symbol. */
TN_API tn_dim tn_dim_symbol(tn_graph *graph, const char *name);
/* A new symbol that no name gives ("u1", "u2", ...), with bounds. */
TN_API tn_dim tn_dim_fresh(tn_graph *graph, int64_t low, int64_t high);
TN_API tn_dim tn_dim_add(tn_graph *graph, tn_dim a, tn_dim b);
TN_API tn_dim tn_dim_sub(tn_graph *graph, tn_dim a, tn_dim b);
TN_API tn_dim tn_dim_mul(tn_graph *graph, tn_dim a, tn_dim b);
TN_API tn_dim tn_dim_floordiv(tn_graph *graph, tn_dim a, tn_dim b);
TN_API tn_dim tn_dim_ceildiv(tn_graph *graph, tn_dim a, tn_dim b);
TN_API tn_dim tn_dim_mod(tn_graph *graph, tn_dim a, tn_dim b);
TN_API tn_dim tn_dim_min(tn_graph *graph, tn_dim a, tn_dim b);
TN_API tn_dim tn_dim_max(tn_graph *graph, tn_dim a, tn_dim b);
TN_API tn_dim tn_dim_broadcast(tn_graph *graph, tn_dim a, tn_dim b);

/* Narrows a symbol's bounds (intersection). An empty intersection is TN_ERR_MODEL. */
TN_API tn_status tn_dim_set_bounds(tn_graph *graph, tn_dim symbol, int64_t low, int64_t high);
/* Sound bounds of an expression (saturating at INT64_MIN/MAX). */
TN_API void tn_dim_bounds(const tn_graph *graph, tn_dim dim, int64_t *low, int64_t *high);
TN_API bool tn_dim_is_const(const tn_graph *graph, tn_dim dim, int64_t *value);
/* Proofs: true only when it holds for all values within the bounds. */
TN_API bool tn_dim_equal(const tn_graph *graph, tn_dim a, tn_dim b);
TN_API bool tn_dim_never_equal(const tn_graph *graph, tn_dim a, tn_dim b);
TN_API bool tn_dim_at_most(const tn_graph *graph, tn_dim a, tn_dim b);

TN_END_DECLS
#endif
