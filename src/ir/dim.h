/* Symbolic dimensions from the inside. */
#ifndef TN_IR_DIM_H
#define TN_IR_DIM_H

#include <tenon/dim.h>

#include "base/buffer.h"
#include "base/map.h"

/* Larger expressions are refused with TN_ERR_LIMIT: walks over an expression take time in proportion to its tree. */
#define TN_DIM_MAX_SIZE 2048
#define TN_DIM_MAX_DEPTH 200

/* What an expression means: where it has a value, every canonical form has the same value; a canonical form may have a
   value where what was written has none (a division by zero that cancelled, an overflow inside a sum).

   One interned expression. Canonical form: constants fold; ADD is a constant plus terms (each an atom or a MUL), sorted by id;
   MUL is a coefficient times sorted atoms; a product over a sum is expanded while it has at most 16 terms, so equal
   polynomials have equal ids, else kept as an atom. MIN, MAX, BROADCAST sort their operands and simplify by bounds
   (broadcast(1,x) = x, broadcast(x,x) = x, with a constant c other than 1 it is c). Exact division of a polynomial by a monomial
   simplifies; (k*x + r) floordiv k with 0 <= r < k is x. */
typedef struct tn_dim_expr {
    uint8_t kind;         /* tn_dim_kind */
    uint32_t args, nargs; /* operands: range in tn_dims.arg */
    int64_t constant;     /* CONST: value; ADD: constant term; MUL: coefficient */
    uint32_t symbol;      /* SYMBOL: index into tn_dims.symbol */
    uint32_t unit;        /* MUL: id of the same product with coefficient 1 */
    uint16_t size, depth; /* of the expression as a tree; at most TN_DIM_MAX_SIZE and TN_DIM_MAX_DEPTH */
} tn_dim_expr;

typedef struct tn_dim_sym {
    uint32_t name; /* in tn_dims.strings */
    uint32_t expr; /* id of its SYMBOL expression */
    int64_t low, high;
    bool fresh; /* fresh symbols are u1, u2, ...: a name space of their own */
} tn_dim_sym;

/* All expressions of one graph. Expression ids start at 1. */
typedef struct tn_dims {
    tn_heap *heap;
    tn_strings strings;
    TN_VEC(tn_dim_expr) expr;
    tn_u32_vec arg;
    TN_VEC(tn_dim_sym) symbol;
    tn_idset set;
    uint32_t fresh;
} tn_dims;

bool tn_dims_init(tn_dims *dims, tn_heap *heap);
void tn_dims_free(tn_dims *dims);
bool tn_dims_copy(tn_dims *to, const tn_dims *from, tn_heap *heap); /* ids stay */
/* The table of a graph (defined with the graph). */
tn_dims *tn_graph_dims(tn_graph *graph);

/* Values of symbols at run time. */
typedef struct tn_dim_env {
    tn_heap *heap;
    int64_t *value; /* by symbol index */
    uint8_t *bound; /* 0 or 1 */
    uint32_t count;
} tn_dim_env;
bool tn_dim_env_init(tn_dim_env *env, tn_heap *heap, const tn_dims *dims);
void tn_dim_env_free(tn_dim_env *env);
/* False when a symbol in it is not bound, or it has no value (division by zero, overflow, broadcast mismatch). */
bool tn_dim_eval(const tn_dims *dims, const tn_dim_env *env, tn_dim dim, int64_t *value);
/* For messages about a dim that tn_dim_eval found no value of: writes "broadcast(M, N) has no value: M = 3, N = 2" and answers the rule
   that it breaks, for the hint. */
const char *tn_dim_explain(const tn_dims *dims, const tn_dim_env *env, tn_dim dim, tn_text *out);
/* Makes `dim` equal `value`: evaluates and compares when all symbols are bound; binds when exactly one unbound symbol occurs,
   once and linearly (value - rest divisible by its coefficient). Checks the symbol's bounds.
   0: fine; 1: contradiction; 2: cannot be decided. */
int tn_dim_env_match(const tn_dims *dims, tn_dim_env *env, tn_dim dim, int64_t value);

/* "N", "4", "2*N + 3", "floordiv(N + 1, 2)", "max(N, M)". Names that are no identifiers, or that read like a fresh symbol
   (u1) or an operation, are quoted: `a b` in backquotes. The order of operands does not depend on ids. A null dim: "?". */
void tn_dim_print(const tn_dims *dims, tn_dim dim, tn_text *out);
/* Parses what tn_dim_print writes, and ordinary arithmetic with + - * and parentheses. *used: bytes read. Null dim on error,
   with the thread's error set; the graph's sticky error is left alone. Unknown symbols are made. */
tn_dim tn_dim_parse(tn_graph *graph, const char *text, size_t length, size_t *used);
/* Rewrites symbols: map[symbol index] is the replacement (null id, or index >= count: keep). */
tn_dim tn_dim_substitute(tn_graph *graph, tn_dim dim, const tn_dim *map, uint32_t count);
/* Calls visit(ctx, symbol index) for each symbol that occurs in dim (possibly more than once). */
void tn_dim_symbols(const tn_dims *dims, tn_dim dim, void (*visit)(void *ctx, uint32_t symbol), void *ctx);
const char *tn_dim_symbol_name(const tn_dims *dims, uint32_t symbol);

#endif
