/* Asks a row by building nodes of it: inputs of all ranks with sizes of 1 and attributes of a few plain kinds, until one is
   accepted; then the same with each dtype. */
#include "cli/ops_probe.h"

#include <string.h>

#include "ir/graph.h"

enum { MOST_INPUTS = 5, RANKS = 5, OTHER_RANKS = 3, PATTERNS = 6, LISTS = 4, SIZES = 4, MOST_ATTRS = 12 };

/* One way to make a node. */
typedef struct trial {
    int rank, other_rank, pattern, list, sizes, integer;
    uint32_t inputs;
} trial;

/* The dtype of input i when the principal one is `dtype`. */
static tn_dtype dtype_of(const trial *t, uint32_t i, tn_dtype dtype) {
    switch (t->pattern) {
    case 0: return dtype;
    case 1: return i == 0 ? dtype : TN_I64;
    case 2: return i == 1 ? TN_I64 : dtype;
    case 3: return i == 2 ? TN_I64 : dtype;
    case 4: return i == 0 ? dtype : TN_BOOL;
    default: return i == 0 ? TN_BOOL : dtype;
    }
}

static int rank_of(const trial *t, uint32_t i) {
    return i == 0 || t->other_rank == 0 ? t->rank : t->other_rank - 1;
}

static bool fill(tn_graph *g, const tn_attr_spec *s, const trial *t, tn_dtype dtype, tn_tensor *tensor, tn_attr *a) {
    static const int64_t zeros[RANKS] = {0}, ones[RANKS] = {1, 1, 1, 1, 1}, iota[RANKS] = {0, 1, 2, 3, 4};
    static const tn_dim none = {0};
    uint32_t rank = (uint32_t)t->rank, inner = t->rank >= 2 ? rank - 2 : 0;
    switch (s->kind) {
    case TN_ATTR_INT: *a = TN_A_INT(s->name, t->integer); break;
    case TN_ATTR_FLOAT: *a = TN_A_FLOAT(s->name, 1); break;
    case TN_ATTR_STRING: {
        const char *text = s->allowed ? s->allowed : "";
        *a = TN_A_STRING(s->name, text, strcspn(text, "|"));
        break;
    }
    case TN_ATTR_DTYPE: *a = TN_A_DTYPE(s->name, dtype); break;
    case TN_ATTR_INTS:
        *a = TN_A_INTS(s->name,
                       t->list == 0   ? 0
                       : t->list == 3 ? inner
                                      : rank,
                       t->list == 1   ? iota
                       : t->list == 2 ? ones
                                      : ones);
        break;
    case TN_ATTR_FLOATS:
        *a = (tn_attr){.key = s->name, .kind = TN_ATTR_FLOATS, .as.floats = (const float *)zeros};
        break;
    case TN_ATTR_STRINGS:
        *a = (tn_attr){.key = s->name, .kind = TN_ATTR_STRINGS, .as.strings = (const tn_string *)zeros};
        break;
    case TN_ATTR_DIMS: {
        tn_dim *dims = tn_arena_alloc(&g->arena, sizeof *dims * RANKS);
        if (!dims)
            return false;
        for (int i = 0; i < RANKS; i++)
            dims[i] = tn_dim_const(g, t->sizes & 1);
        *a = TN_A_DIMS(s->name, t->sizes < 2 ? rank : inner, dims ? dims : &none);
        break;
    }
    case TN_ATTR_TENSOR: *a = TN_A_TENSOR(s->name, tensor); break;
    default: return false; /* types, functions */
    }
    return true;
}

/* Whether the row takes such a node. TN_OK, TN_ERR_FAILED (no), or out of memory. */
static tn_status try(const tn_op_table *table, const tn_op *op, const trial *t, tn_dtype dtype) {
    tn_graph *g = tn_graph_new(NULL, table);
    tn_tensor *tensor = tn_tensor_create(dtype, 0, NULL);
    tn_value in[MOST_INPUTS];
    tn_attr attrs[MOST_ATTRS];
    uint32_t count = 0;
    bool good = g && tensor;
    for (uint32_t i = 0; good && i < t->inputs; i++) {
        tn_dim dims[RANKS];
        for (int k = 0; k < RANKS; k++)
            dims[k] = tn_dim_const(g, 1);
        in[i] = tn_region_add_arg(g, tn_graph_region(g), tn_type_tensor(g, dtype_of(t, i, dtype), rank_of(t, i), dims),
                                  NULL);
        good = in[i].id != 0;
    }
    for (const tn_attr_spec *s = op->attrs; good && s && s->name && count < MOST_ATTRS; s++)
        if (s->required)
            good = fill(g, s, t, dtype, tensor, &attrs[count++]);
    if (good)
        good =
            tn_graph_add_node(
                g,
                &(tn_node_desc){.op = op, .input_count = t->inputs, .inputs = in, .attr_count = count, .attrs = attrs})
                .id != 0;
    tn_status status = good ? TN_OK : tn_error_status() == TN_ERR_MEMORY ? TN_ERR_MEMORY : TN_ERR_FAILED;
    tn_tensor_destroy(tensor);
    tn_graph_destroy(g);
    return status;
}

static bool uses(const tn_op *op, tn_attr_kind kind) {
    for (const tn_attr_spec *s = op->attrs; s && s->name; s++)
        if (s->required && s->kind == kind)
            return true;
    return false;
}

/* The first way that works for `dtype`. */
static tn_status find(const tn_op_table *table, const tn_op *op, tn_dtype dtype, trial *t) {
    int lists = uses(op, TN_ATTR_INTS) ? LISTS : 1, sizes = uses(op, TN_ATTR_DIMS) ? SIZES : 1;
    int integers = uses(op, TN_ATTR_INT) ? 2 : 1;
    bool several = t->inputs > 1, any = t->inputs > 0;
    for (t->pattern = 0; t->pattern < (several ? PATTERNS : 1); t->pattern++)
        for (t->rank = 0; t->rank < (any || lists > 1 || sizes > 1 ? RANKS : 1); t->rank++)
            for (t->other_rank = 0; t->other_rank < (several ? OTHER_RANKS : 1); t->other_rank++)
                for (t->list = 0; t->list < lists; t->list++)
                    for (t->sizes = 0; t->sizes < sizes; t->sizes++)
                        for (t->integer = 0; t->integer < integers; t->integer++) {
                            tn_status status = try(table, op, t, dtype);
                            if (status != TN_ERR_FAILED)
                                return status;
                        }
    return TN_ERR_FAILED;
}

tn_status tn_ops_probe(const tn_op_table *table, const tn_op *op, uint32_t *dtypes) {
    static const tn_dtype seeds[] = {TN_F32, TN_I64, TN_BOOL, TN_STRING};
    *dtypes = 0;
    if (op->regions || op->traits & (TN_CALL | TN_TERMINATOR) || op->min_inputs > MOST_INPUTS)
        return TN_OK;
    trial t = {.inputs = (uint32_t)op->min_inputs};
    bool takes_dtype = uses(op, TN_ATTR_DTYPE) || uses(op, TN_ATTR_TENSOR);
    if (!t.inputs && !takes_dtype && op->max_inputs != 0)
        t.inputs = 1;
    tn_status status = TN_ERR_FAILED;
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds && status == TN_ERR_FAILED; i++)
        status = find(table, op, seeds[i], &t);
    for (int d = 1; d < TN_DTYPE_COUNT && status == TN_OK; d++) {
        tn_status one = try(table, op, &t, (tn_dtype)d);
        if (one == TN_OK)
            *dtypes |= 1u << d;
        else if (one != TN_ERR_FAILED)
            return one;
    }
    tn_error_clear();
    return status == TN_ERR_MEMORY ? tn_fail(TN_ERR_MEMORY, "out of memory") : TN_OK;
}
