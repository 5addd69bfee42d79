/* ONNX operators: their rows, and what an expansion (ONNX node -> primitives) works with.

   A row covers the versions since..until of one operator. Where versions differ only in form (attributes that became inputs,
   renamed or dropped attributes), normalize.c brings a node to the newest form first, so an expansion sees one form. Where the
   meaning differs, there are several rows of one name.

   An expansion builds nodes with the public builders at the graph's insertion point (before the ONNX node), hands over one value
   for each output with tn_expand_set and answers TN_OK. It must not change the ONNX node. Example:

       static tn_status expand_relu(tn_expand *x) {
           return tn_expand_set(x, 0, tn_relu(x->graph, tn_expand_input(x, 0)));
       }
       static const tn_onnx_op rows[] = {
           TN_ONNX("Relu", .since = 1, .inputs = {1, 1}, .outputs = {1, 1}, .expand = expand_relu),
       };
       const tn_onnx_family tn_onnx_family_elementwise = {rows, sizeof rows / sizeof *rows};

   Before it is called these hold, or the driver has refused the node or put it off: required inputs are there; the numbers of
   inputs, outputs and regions are the row's; attributes are the row's, of the right kind; unless the row has
   TN_ONNX_UNRANKED, every input that is present is a tensor of known dtype and rank (else the node waits until run time). */
#ifndef TN_ONNX_OP_H
#define TN_ONNX_OP_H

#include "ir/graph.h"

typedef struct tn_expand tn_expand;
typedef tn_status tn_expand_fn(tn_expand *x);

enum {
    TN_ONNX_UNRANKED = 1 << 0, /* takes inputs of unknown kind, dtype or rank: checks itself */
    TN_ONNX_VARIADIC = 1 << 1, /* the last input may repeat; none may be absent */
    TN_ONNX_RANDOM = 1 << 2,   /* two equal nodes are not the same value */
    TN_ONNX_OPTIONAL_GRAPHS =
        1 << 3 /* a graph attribute may be absent: its region is empty, without arguments and results */
};

#define TN_ONNX_ANY (-1) /* any number of inputs or outputs */

typedef struct tn_onnx_op {
    tn_op op;           /* the row that nodes of the graph point to; filled by TN_ONNX */
    const char *domain; /* "" is ai.onnx */
    const char *name;
    int16_t since, until; /* operator set versions; until 0: the newest known */
    struct {
        int16_t min, max;
    } inputs, outputs; /* in the newest form; max TN_ONNX_ANY: any. An absent optional input is "has" = false */
    const tn_attr_spec
        *attrs; /* in the newest form, ended by a NULL name; NULL: none. Graph attributes are not listed here */
    const char *regions; /* graph attributes, in the order of the node's regions: "then_branch else_branch" */
    uint32_t flags;
    tn_expand_fn *expand;
    /* Instead of expand: a host operator (infer + eval) that takes the node as it is: same inputs, outputs, attributes. */
    const tn_op *host;
} tn_onnx_op;

typedef struct tn_onnx_family {
    const tn_onnx_op *rows;
    uint32_t count;
} tn_onnx_family;

tn_status tn_onnx_infer(tn_infer *c);    /* outputs of unknown type */
tn_status tn_onnx_late_eval(tn_eval *e); /* late.c */
extern const char tn_onnx_known[];       /* `extra` of the op rows of known operators */

#define TN_ONNX_BASE(full)                                                                              \
    .op.name = (full), .op.dialect = TN_DIALECT_ONNX, .op.max_inputs = -1, .op.max_outputs = -1,        \
    .op.traits = TN_HOST | TN_OPTIONAL_INPUTS, .op.infer = tn_onnx_infer, .op.eval = tn_onnx_late_eval, \
    .op.extra = tn_onnx_known
/* A row of ai.onnx; of another domain; of an operator with `count` graph attributes (set .regions to their names). */
#define TN_ONNX(NAME, ...) \
    { TN_ONNX_BASE("onnx." NAME), .domain = "", .name = NAME, __VA_ARGS__ }
#define TN_ONNX_OF(DOMAIN, NAME, ...) \
    { TN_ONNX_BASE("onnx." DOMAIN "." NAME), .domain = DOMAIN, .name = NAME, __VA_ARGS__ }
#define TN_ONNX_CONTROL_BASE(full, count)                                                                            \
    .op.name = (full), .op.dialect = TN_DIALECT_ONNX, .op.max_inputs = -1, .op.max_outputs = -1,                     \
    .op.traits = TN_HOST | TN_OPTIONAL_INPUTS | TN_CONTROL, .op.infer = tn_onnx_infer, .op.eval = tn_onnx_late_eval, \
    .op.extra = tn_onnx_known, .op.regions = (count)
#define TN_ONNX_CONTROL(NAME, count, ...) \
    { TN_ONNX_CONTROL_BASE("onnx." NAME, count), .domain = "", .name = NAME, __VA_ARGS__ }
#define TN_ONNX_CONTROL_OF(DOMAIN, NAME, count, ...) \
    { TN_ONNX_CONTROL_BASE("onnx." DOMAIN "." NAME, count), .domain = DOMAIN, .name = NAME, __VA_ARGS__ }
/* Attribute lists: static const tn_attr_spec conv_attrs[] = {TN_SPEC_INT("group", 1), TN_SPEC_INTS("pads"), {0}}; */
#define TN_SPEC_INT(n, d) \
    { .name = (n), .kind = TN_ATTR_INT, .i = (d) }
#define TN_SPEC_BOOL(n, d) /* an integer that says yes or no */ \
    { .name = (n), .kind = TN_ATTR_INT, .i = (d), .low = 0, .high = 1 }
#define TN_SPEC_FLOAT(n, d) \
    { .name = (n), .kind = TN_ATTR_FLOAT, .f = (d) }
#define TN_SPEC_STRING(n, d, any) \
    { .name = (n), .kind = TN_ATTR_STRING, .s = (d), .allowed = (any) }
#define TN_SPEC_INTS(n) \
    { .name = (n), .kind = TN_ATTR_INTS }
#define TN_SPEC_FLOATS(n) \
    { .name = (n), .kind = TN_ATTR_FLOATS }
#define TN_SPEC_STRINGS(n) \
    { .name = (n), .kind = TN_ATTR_STRINGS }
#define TN_SPEC_TENSOR(n) \
    { .name = (n), .kind = TN_ATTR_TENSOR }
#define TN_SPEC_TYPE(n) \
    { .name = (n), .kind = TN_ATTR_TYPE }
#define TN_SPEC_NEEDED(n, k) \
    { .name = (n), .kind = (k), .required = true }

/* The families, each in its expand_<name>.c: declare one here and list it in table.c. */
extern const tn_onnx_family tn_onnx_family_elementwise;
extern const tn_onnx_family tn_onnx_family_activation;
extern const tn_onnx_family tn_onnx_family_shape;
extern const tn_onnx_family tn_onnx_family_move;
extern const tn_onnx_family tn_onnx_family_gather;
extern const tn_onnx_family tn_onnx_family_reduce;
extern const tn_onnx_family tn_onnx_family_conv;
extern const tn_onnx_family tn_onnx_family_pool;
extern const tn_onnx_family tn_onnx_family_norm;
extern const tn_onnx_family tn_onnx_family_resize;
extern const tn_onnx_family tn_onnx_family_einsum;
extern const tn_onnx_family tn_onnx_family_control;
extern const tn_onnx_family tn_onnx_family_if;
extern const tn_onnx_family tn_onnx_family_recurrent;
extern const tn_onnx_family tn_onnx_family_attention;
extern const tn_onnx_family tn_onnx_family_loss;
extern const tn_onnx_family tn_onnx_family_sample;
extern const tn_onnx_family tn_onnx_family_region;
extern const tn_onnx_family tn_onnx_family_signal;
extern const tn_onnx_family tn_onnx_family_state;
extern const tn_onnx_family tn_onnx_family_order;
extern const tn_onnx_family tn_onnx_family_random;
extern const tn_onnx_family tn_onnx_family_sequence;
extern const tn_onnx_family tn_onnx_family_quant;
extern const tn_onnx_family tn_onnx_family_quant_product;
extern const tn_onnx_family tn_onnx_family_string;
extern const tn_onnx_family tn_onnx_family_ml;
extern const tn_onnx_family tn_onnx_family_ml_label;
extern const tn_onnx_family tn_onnx_family_ml_svm;
extern const tn_onnx_family tn_onnx_family_ml_tree;
extern const tn_onnx_family tn_onnx_family_optimizer;
extern const tn_onnx_family tn_onnx_family_image;

/* The row of an operator in an operator set, or NULL. `domain` "" or "ai.onnx" is the default one. */
const tn_onnx_op *tn_onnx_find(const char *domain, const char *name, int version);
/* Any row of that operator, whatever version, or NULL. */
const tn_onnx_op *tn_onnx_find_any(const char *domain, const char *name);
/* Tenon's own rows and all ONNX rows (one for each name): the op table of graphs that come from ONNX. Lives for ever. */
const tn_op_table *tn_onnx_table(void);
/* A row in the graph's arena for an operator that no table has ("onnx.DOMAIN.NAME"; every call makes one). *op NULL: the name does
   not begin with "onnx.". */
tn_status tn_onnx_make_row(tn_graph *graph, const char *name, size_t length, const tn_op **op);
/* All families, for listings. */
const tn_onnx_family *const *tn_onnx_families(uint32_t *count);
/* Builds with a part of the operators (-DTENON_OPS): whether a row is one of them; whether an operator that nobody finds is there
   in a whole build. */
bool tn_onnx_listed(const tn_onnx_op *row);
bool tn_onnx_left_out(const char *domain, const char *name);
/* The newest operator set version known of a domain; 0: the domain is unknown. */
int tn_onnx_newest(const char *domain);

/* --- one node's expansion ------------------------------------------------------------------------------------------------- */

struct tn_expand_slot;
struct tn_expander;
struct tn_expand {
    tn_graph *graph;
    tn_node node; /* the ONNX node */
    const tn_onnx_op *row;
    int version;              /* operator set of its domain that the node is written in */
    uint32_t inputs, outputs; /* counts in the newest form (trailing absent inputs are not counted) */
    /* internal: */
    const struct tn_expand_slot *in;
    const tn_attr *attrs;
    uint32_t attr_count;
    tn_value *out;
    const char *late;
    uint32_t singles; /* so many first arguments of bodies are one number: bodies may take them as [1] */
    struct tn_expander *driver;
    tn_arena *scratch; /* freed when the node is done */
    bool final;        /* every shape is concrete and every small integer input known: `later` is of no use */
};

/* Inputs. Index beyond the count reads as absent. dtype NONE, rank -1: unknown or absent. */
bool tn_expand_has(const tn_expand *x, uint32_t input);
tn_value tn_expand_input(tn_expand *x, uint32_t input); /* null: absent */
tn_dtype tn_expand_dtype(tn_expand *x, uint32_t input);
int tn_expand_rank(tn_expand *x, uint32_t input);
const tn_dim *tn_expand_input_dims(tn_expand *x, uint32_t input); /* valid until the graph changes */
tn_dim tn_expand_dim(tn_expand *x, uint32_t input, int axis);     /* negative: from the end; null when unknown */
/* The dims, copied to the node's scratch memory: stay valid while building. NULL: unknown rank, absent or out of memory. */
const tn_dim *tn_expand_dims_copy(tn_expand *x, uint32_t input);
/* The elements of a small integer input when known: the number of them, or -1 (unknown, absent, more than `max`, not an
   integer or bool tensor of rank <= 1). _i64 wants constants; _dims takes symbolic ones. */
int tn_expand_contents_i64(tn_expand *x, uint32_t input, int64_t *values, int max);
int tn_expand_contents_dims(tn_expand *x, uint32_t input, tn_dim *values, int max);
/* The tensor of an input that is a constant, or NULL. Borrowed. */
tn_tensor *tn_expand_constant(tn_expand *x, uint32_t input);

/* From here on axis `axis` (negative: from the end) of an input is of size `want`: a run in which it is not is refused, if what the
   expansion makes of the input is wanted. Where the input is a constant and `want` the size of another input, that one is held to the
   constant's. `want` null: a size that overflowed, which is refused. */
tn_status tn_expand_hold(tn_expand *x, uint32_t input, int axis, tn_dim want);

/* Attributes in the newest form; an absent one reads as the row's default (lists: 0 and NULL). */
bool tn_expand_has_attr(const tn_expand *x, const char *name);
int64_t tn_expand_int(const tn_expand *x, const char *name);
double tn_expand_float(const tn_expand *x, const char *name);
tn_string tn_expand_string(const tn_expand *x, const char *name);
bool tn_expand_string_is(const tn_expand *x, const char *name, const char *text);
uint32_t tn_expand_ints(const tn_expand *x, const char *name, const int64_t **values);
uint32_t tn_expand_floats(const tn_expand *x, const char *name, const float **values);
uint32_t tn_expand_strings(const tn_expand *x, const char *name, const tn_string **values);
tn_tensor *tn_expand_tensor(const tn_expand *x, const char *name); /* borrowed; NULL: absent */
tn_type tn_expand_type(const tn_expand *x, const char *name);      /* id 0: absent */

/* Outputs. Whether output i exists and is named or used. */
bool tn_expand_wants(const tn_expand *x, uint32_t output);
/* Hands over output i. A null value is the builder's sticky error, which is answered; outputs the node lacks are ignored. */
tn_status tn_expand_set(tn_expand *x, uint32_t output, tn_value value);

/* How else it may end. */
tn_status tn_expand_fail(tn_expand *x, const char *format, ...) TN_PRINTF(2, 3); /* TN_ERR_MODEL, with the node */
tn_status tn_expand_unsupported(tn_expand *x, const char *format, ...) TN_PRINTF(2, 3); /* "not supported: ..." */
/* Not enough is known before run time: "needs the rank of input 1" (a literal). What was built is taken back; the node stays
   and is expanded when it runs, with concrete shapes and small integer inputs as constants. When even then it answers this,
   it is TN_ERR_UNSUPPORTED with the reason. */
tn_status tn_expand_later(tn_expand *x, const char *reason);
/* What tn_expand_later answers, no status of others: TN_TRY passes it on. */
#define TN_EXPAND_LATER ((tn_status)1000)
#ifdef __clang_analyzer__ /* as in base/error.h */
#define tn_expand_fail(...) tn_not_ok((tn_expand_fail)(__VA_ARGS__))
#define tn_expand_unsupported(...) tn_not_ok((tn_expand_unsupported)(__VA_ARGS__))
#define tn_expand_later(...) tn_not_ok((tn_expand_later)(__VA_ARGS__))
#endif

/* Helpers. axis in [-rank, rank) made non-negative, else TN_ERR_MODEL. The list form also refuses an axis given twice. */
tn_status tn_expand_axis(tn_expand *x, int64_t axis, int rank, int *result);
tn_status tn_expand_axes(tn_expand *x, uint32_t count, const int64_t *axes, int rank, int *result);
/* Zeroed memory for the time of this expansion. NULL with the error set. */
void *tn_expand_alloc(tn_expand *x, size_t count, size_t size);

/* Bodies of If, Loop, Scan: copies the nodes of the ONNX node's region to the insertion point (typically inside a region made
   with tn_region_create, tn_graph_insert_at_end) with args[i] for its arguments, expands them, and fills results[] with what
   the body returns (values of the enclosing scopes are read directly). May be called several times for one region. A result may
   have unknown type when nodes in the body wait for run time. The count of args must be the body's. */
uint32_t tn_expand_body_args(const tn_expand *x, uint32_t region);
uint32_t tn_expand_body_results(const tn_expand *x, uint32_t region);
tn_status tn_expand_body(tn_expand *x, uint32_t region, uint32_t n_args, const tn_value *args, uint32_t n_results,
                         tn_value *results);
/* The same of a loop's body that draws random numbers: `trip` is the TN_ONNX_TRIP of its nodes. Null: it draws none. */
tn_status tn_expand_trip(tn_expand *x, uint32_t region, tn_value trip, uint32_t n_args, const tn_value *args,
                         uint32_t n_results, tn_value *results);

#endif
