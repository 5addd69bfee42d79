/* The row of an operator: everything the system knows about it. Tables of rows are made by ops/ (primitives, composites),
   onnx/ (operators as read) and users (custom); ir/ only declares what a row is. */
#ifndef TN_IR_OP_H
#define TN_IR_OP_H

#include <tenon/graph.h>

#include "base/arena.h"
#include "base/pool.h"
#include "ir/tensor.h"

typedef enum tn_dialect {
    TN_DIALECT_PRIMITIVE, /* what passes, back ends and autodiff work on */
    TN_DIALECT_COMPOSITE, /* defined by primitives: `define` */
    TN_DIALECT_ONNX,      /* as read; `expand` in onnx/ turns it into the others */
    TN_DIALECT_CUSTOM
} tn_dialect;

/* Traits: what passes ask for. */
enum {
    TN_ELEMENTWISE = 1 << 0, /* output element i depends on element i of each input; all shapes equal */
    TN_COMMUTATIVE = 1 << 1, /* of its two inputs */
    TN_ASSOCIATIVE = 1 << 2, /* exactly, for integers (floats: mathematically) */
    TN_IDEMPOTENT = 1 << 3,  /* f(f(x)) = f(x) */
    TN_VIEW = 1 << 4,        /* moves elements only: an index map from output to input 0 */
    TN_EXACT = 1 << 5, /* same bits on every back end (integer, movement, compare, cast, + - * / sqrt): folded at -O1 */
    TN_EFFECT = 1 << 6,     /* has a side effect: never removed, merged, folded or reordered with other effects */
    TN_RANDOM = 1 << 7,     /* never merged or folded */
    TN_TERMINATOR = 1 << 8, /* return */
    TN_CONTROL = 1 << 9,    /* owns regions that may read enclosing values: if, while, scan */
    TN_CALL = 1 << 10,      /* calls a function of the graph */
    TN_CONSTANT = 1 << 11,  /* no inputs, `value` attribute */
    TN_REDUCTION = 1 << 12,
    TN_CONTRACTION = 1 << 13,
    TN_HOST = 1 << 14, /* works on host objects or strings, or has data-dependent control: a HOST instruction */
    TN_OPTIONAL_INPUTS = 1 << 15, /* inputs may be absent (null) */
    TN_SHAPE_ONLY = 1 << 17,      /* reads the shapes of its inputs, not their elements */
    TN_SPREADS = 1 << 18,         /* a view that repeats its input: along new axes in front, and along axes of size 1 */
    TN_OWNED_ROW =
        1 << 16 /* the row lies in the graph's arena (an operator no table has): another graph's nodes need a copy */
};

/* Attributes. */
typedef enum tn_attr_kind {
    TN_ATTR_NONE = 0,
    TN_ATTR_INT,
    TN_ATTR_FLOAT,
    TN_ATTR_STRING,
    TN_ATTR_DTYPE, /* an int that is a tn_dtype */
    TN_ATTR_INTS,
    TN_ATTR_FLOATS,
    TN_ATTR_STRINGS,
    TN_ATTR_DIMS, /* symbolic dimensions */
    TN_ATTR_TENSOR,
    TN_ATTR_TYPE,
    TN_ATTR_FUNCTION /* a function of the graph, by its index */
} tn_attr_kind;

typedef struct tn_attr {
    uint32_t name; /* id in the graph's strings; filled by tn_graph_add_node from `key` */
    uint8_t kind;  /* tn_attr_kind */
    bool kept; /* given to tn_graph_add_node: the list of ints or floats lies in the graph's arena and is not copied */
    uint32_t count;
    const char *key; /* the name */
    union {
        int64_t i;
        double f;
        tn_string s;
        const int64_t *ints;
        const float *floats;
        const tn_string *strings;
        const tn_dim *dims;
        tn_tensor *tensor;
        tn_type type;
    } as;
} tn_attr;

/* Building attribute lists for tn_graph_add_node (payloads are copied, tensors retained). */
#define TN_A_INT(k, v) ((tn_attr){.key = (k), .kind = TN_ATTR_INT, .as.i = (v)})
#define TN_A_FLOAT(k, v) ((tn_attr){.key = (k), .kind = TN_ATTR_FLOAT, .as.f = (v)})
#define TN_A_DTYPE(k, v) ((tn_attr){.key = (k), .kind = TN_ATTR_DTYPE, .as.i = (v)})
#define TN_A_STRING(k, text, len) ((tn_attr){.key = (k), .kind = TN_ATTR_STRING, .as.s = {(text), (len)}})
#define TN_A_INTS(k, n, v) ((tn_attr){.key = (k), .kind = TN_ATTR_INTS, .count = (uint32_t)(n), .as.ints = (v)})
#define TN_A_FLOATS(k, n, v) ((tn_attr){.key = (k), .kind = TN_ATTR_FLOATS, .count = (uint32_t)(n), .as.floats = (v)})
#define TN_A_DIMS(k, n, v) ((tn_attr){.key = (k), .kind = TN_ATTR_DIMS, .count = (uint32_t)(n), .as.dims = (v)})
#define TN_A_TENSOR(k, t) ((tn_attr){.key = (k), .kind = TN_ATTR_TENSOR, .as.tensor = (t)})
#define TN_A_TYPE(k, t) ((tn_attr){.key = (k), .kind = TN_ATTR_TYPE, .as.type = (t)})
#define TN_A_FUNCTION(k, f) ((tn_attr){.key = (k), .kind = TN_ATTR_FUNCTION, .as.i = (f)})

/* One attribute that a row admits. Optional ones that are absent read as `i`, `f` or `s` below. */
typedef struct tn_attr_spec {
    const char *name; /* NULL ends the list */
    uint8_t kind;
    bool required;
    int64_t i;
    double f;
    const char *s;
    const char *allowed; /* strings: "constant|reflect|edge"; NULL: any */
    int64_t low, high;   /* integers: the range; both 0: any */
} tn_attr_spec;

/* --- infer: dtype and symbolic shape of the outputs ----------------------------------------------------------------- */

typedef struct tn_infer {
    tn_graph *graph;
    tn_node node;
    uint32_t outputs;
    tn_type *type;             /* [outputs], filled by infer */
    struct tn_infer_contents { /* known elements of an integer output of rank 0 or 1, as dimensions; n = -1: unknown */
        int32_t n;
        const tn_dim *dims; /* in `scratch` */
    } * contents;           /* [outputs] */
    tn_dim narrow; /* a symbol of the node's own whose bounds leave out what tn_infer_fresh was asked for; null: none */
    tn_arena scratch; /* freed after infer */
} tn_infer;

tn_status tn_infer_tensor(tn_infer *c, uint32_t output, tn_dtype dtype, int rank, const tn_dim *dims);
tn_status tn_infer_type(tn_infer *c, uint32_t output, tn_type type);
/* States the elements of an integer output (rank <= 1, at most TN_MAX_CONTENTS); dims are copied. Only for i64/i32 outputs. */
tn_status tn_infer_known(tn_infer *c, uint32_t output, uint32_t n, const tn_dim *dims);
/* A fresh symbol for a size that only data decides. The same one when a node is inferred again. */
tn_dim tn_infer_fresh(tn_infer *c, uint32_t output, int axis, int64_t low, int64_t high);
/* Fails with TN_ERR_MODEL (or TN_ERR_UNSUPPORTED) and the node, its operator, origins and input types as `where`. */
tn_status tn_infer_fail(tn_infer *c, const char *format, ...) TN_PRINTF(2, 3);
tn_status tn_infer_unsupported(tn_infer *c, const char *format, ...) TN_PRINTF(2, 3);
#ifdef __clang_analyzer__ /* as in base/error.h */
#define tn_infer_fail(...) tn_not_ok((tn_infer_fail)(__VA_ARGS__))
#define tn_infer_unsupported(...) tn_not_ok((tn_infer_unsupported)(__VA_ARGS__))
#endif
#define TN_MAX_CONTENTS 256

/* --- eval: the definition, in plain C ---------------------------------------------------------------------------------- */

struct tn_dim_env;
typedef struct tn_eval {
    const tn_graph *graph;
    tn_node node;
    uint32_t inputs, outputs;
    tn_object *const *in; /* [inputs]; NULL where absent */
    /* [outputs]. A tensor whose shape is known is there already, contiguous and uninitialised (eval may replace it: destroy it
       and put another, e.g. a view); NULL where only data decides: eval creates it with `heap`. */
    tn_object **out;
    tn_heap *heap;
    size_t max_bytes; /* by which the heap may still grow in this run; 0: no limit */
    tn_pool *pool;    /* may be NULL */
    struct tn_dim_env *env;
    /* Runs a region of this node: args and results are `n` objects; results are new references. NULL where there are no regions. */
    tn_status (*run_region)(struct tn_eval *e, tn_region region, uint32_t n_args, tn_object *const *args,
                            uint32_t n_results, tn_object **results);
    void *runner; /* of run_region */
    /* Where `print` writes; NULL: nowhere. */
    void (*log)(void *ctx, const char *text);
    void *log_ctx;
    /* Called after each node's evaluation, this one's aside, in graphs that this one leads to: see tn_interp_options. NULL: none. */
    tn_status (*adjust)(void *ctx, struct tn_eval *e);
    void *adjust_ctx;
    tn_status (*instead)(void *ctx, struct tn_eval *e, bool *done);
    /* What nodes that are expanded at run time became, kept from run to run; NULL: nothing is kept. `late_graph` tells `graph` from
       others whose nodes are kept there. */
    struct tn_late_cache *late;
    uint32_t late_graph;
} tn_eval;

/* Inputs and outputs as tensors (the caller knows they are). */
static inline tn_tensor *tn_eval_in(const tn_eval *e, uint32_t i) {
    return (tn_tensor *)e->in[i];
}
static inline tn_tensor *tn_eval_out(const tn_eval *e, uint32_t i) {
    return (tn_tensor *)e->out[i];
}
/* Puts `object` (reference taken over, NULL is an error already set) in place of output i. */
tn_status tn_eval_set(tn_eval *e, uint32_t i, tn_object *object);
/* Evaluates a DIMS attribute into values[count]; TN_ERR_INPUT when it has no value. */
tn_status tn_eval_dims(const tn_eval *e, const char *attr, uint32_t count, int64_t *values);
/* Fails with the node, its operator, origins and actual input shapes as `where`. */
tn_status tn_eval_fail(const tn_eval *e, tn_status status, const char *format, ...) TN_PRINTF(3, 4);
#ifdef __clang_analyzer__ /* as in base/error.h */
#define tn_eval_fail(...) tn_not_ok((tn_eval_fail)(__VA_ARGS__))
#endif
/* Adds these `where` lines to an error that is there already. */
void tn_eval_fail_inputs(const tn_eval *e);

/* --- the row ------------------------------------------------------------------------------------------------------------ */

/* How a row lowers (lower/ reads this; everything else runs as a HOST instruction through eval). */
typedef enum tn_lowering {
    TN_LOWER_HOST,
    TN_LOWER_NOTHING,  /* constants, return */
    TN_LOWER_SCALAR,   /* elementwise: `code` is a tn_scalar of ops/scalar.h */
    TN_LOWER_MOVE,     /* an affine or padded index map (reshape, transpose, broadcast, fit, slice, pad, concat) */
    TN_LOWER_REDUCE,   /* `code` is a tn_scalar that combines */
    TN_LOWER_WINDOW,   /* window reduction, `code` as above */
    TN_LOWER_CONTRACT, /* dot, convolution */
    TN_LOWER_GATHER,
    TN_LOWER_CONTROL /* if, while, scan, call: BRANCH and LOOP */
} tn_lowering;

/* Which kernel runs it as a host instruction, with the bits of `eval` (kernels/host.c); what it does not take is left to `eval`. */
typedef enum tn_host_kernel {
    TN_HOST_EVAL,    /* none */
    TN_HOST_EXTREME, /* position of the largest or smallest: `code` is TN_SCALAR_MAX or MIN */
    TN_HOST_RUNNING, /* running results: `code` is the scalar that combines */
    TN_HOST_ORDER,   /* `code` 0: sort, 1: top_k */
    TN_HOST_PICK,    /* `code` 0: gather_elements, 1: scatter_elements */
    TN_HOST_TREES    /* tree_ensemble */
} tn_host_kernel;

struct tn_gradient; /* contexts of autodiff/, dist/ */
struct tn_batch;
struct tn_sharding;

typedef struct tn_op tn_op;
struct tn_op {
    const char *name;
    uint8_t dialect;
    int16_t min_inputs, max_inputs; /* max -1: any number */
    int16_t min_outputs, max_outputs;
    int16_t regions; /* exact number */
    uint32_t traits;
    const tn_attr_spec *attrs; /* NULL: none admitted (onnx and custom rows without a list: any) */
    const char *inputs;        /* names for messages, "x, indices"; may be NULL */
    const char *doc;           /* one line */
    tn_status (*infer)(tn_infer *c);
    tn_status (*eval)(tn_eval *e);
    /* Composites: builds the definition at the graph's insertion point from `inputs`, with `node`'s attributes; fills `outputs`. */
    tn_status (*define)(tn_graph *graph, tn_node node, const tn_value *inputs, tn_value *outputs);
    uint8_t lowering; /* tn_lowering */
    uint8_t host;     /* tn_host_kernel */
    uint16_t code;
    /* Derivatives and mappings; NULL with `no_gradient` saying why it is not differentiable, or NULL: not supported yet. */
    tn_status (*vjp)(struct tn_gradient *c);
    tn_status (*jvp)(struct tn_gradient *c);
    tn_status (*vmap)(struct tn_batch *c);
    tn_status (*shard)(struct tn_sharding *c);
    const char *no_gradient;
    const void *extra; /* of the table the row comes from (onnx/: the operator's versions) */
    uint16_t version;  /* of its meaning, in saved graphs (docs/binary.md); 0 is 1, the first */
};

/* A set of rows found by name; sets chain (custom rows, then onnx, then primitives). Immutable once used by a graph. */
typedef struct tn_op_table {
    const tn_op *const *rows;
    uint32_t count;
    const struct tn_op_table *next;
} tn_op_table;
const tn_op *tn_op_find(const tn_op_table *table, const char *name, size_t length);

#endif
