/* Contents propagation. */
#include "ops/contents.h"

#define MAX_LOOK 8 /* nodes looked through for the truth of a condition */

static int32_t read_contents(const tn_graph *graph, tn_value value, tn_contents *out) {
    const tn_dim *dims = NULL;
    out->n = value.id == 0 ? -1 : tn_value_contents(graph, value, &dims);
    if (out->n > TN_MAX_CONTENTS)
        out->n = -1;
    if (out->n > 0)
        memcpy(out->dim, dims, (size_t)out->n * sizeof *dims);
    return out->n;
}

void tn_contents_input(const tn_infer *c, uint32_t index, tn_contents *out) {
    read_contents(c->graph, tn_node_input(c->graph, c->node, index), out);
}

tn_status tn_contents_set(tn_infer *c, const tn_contents *contents) {
    tn_dtype dtype = tn_type_dtype(c->graph, c->type[0]);
    int rank = tn_type_rank(c->graph, c->type[0]);
    if (contents->n < 0 || rank < 0 || rank > 1 || (dtype != TN_I64 && dtype != TN_I32))
        return TN_OK;
    tn_contents cut = *contents;
    for (int32_t i = 0; i < cut.n; i++) {
        int64_t value;
        if (cut.dim[i].id == 0)
            return TN_OK;
        if (dtype == TN_I32 && tn_dim_is_const(c->graph, cut.dim[i], &value) && value != (int32_t)value)
            cut.dim[i] = tn_dim_const(c->graph, (int32_t)(uint32_t)value);
    }
    return tn_infer_known(c, 0, (uint32_t)cut.n, cut.dim);
}

static bool known_at_least(const tn_graph *graph, tn_dim dim, int64_t least) {
    int64_t low, high;
    tn_dim_bounds(graph, dim, &low, &high);
    return low >= least;
}

static bool is_const(const tn_graph *graph, tn_dim dim, int64_t value) {
    int64_t have;
    return tn_dim_is_const(graph, dim, &have) && have == value;
}

/* A constant so large that an expression with it could overflow (an "until the end" of INT64_MAX): says nothing. */
static bool is_huge(const tn_graph *graph, tn_dim dim) {
    int64_t value, limit = (int64_t)1 << 48;
    return tn_dim_is_const(graph, dim, &value) && (value > limit || value < -limit);
}

/* op(a, b) as an expression, for operands that are not both constants. */
static tn_dim express(tn_graph *graph, tn_scalar_op op, tn_dim a, tn_dim b) {
    const tn_dim none = {0};
    if (op == TN_SCALAR_MIN && (is_const(graph, a, INT64_MAX) || is_const(graph, b, INT64_MAX)))
        return is_const(graph, a, INT64_MAX) ? b : a;
    if (op == TN_SCALAR_MAX && (is_const(graph, a, INT64_MIN) || is_const(graph, b, INT64_MIN)))
        return is_const(graph, a, INT64_MIN) ? b : a;
    if (op != TN_SCALAR_MIN && op != TN_SCALAR_MAX && (is_huge(graph, a) || is_huge(graph, b)))
        return none;
    switch (op) {
    case TN_SCALAR_NEG: return tn_dim_sub(graph, tn_dim_const(graph, 0), a);
    case TN_SCALAR_ABS: return known_at_least(graph, a, 0) ? a : none;
    case TN_SCALAR_SIGN: return known_at_least(graph, a, 1) ? tn_dim_const(graph, 1) : none;
    case TN_SCALAR_ADD: return tn_dim_add(graph, a, b);
    case TN_SCALAR_SUB: return tn_dim_sub(graph, a, b);
    case TN_SCALAR_MUL: return tn_dim_mul(graph, a, b);
    case TN_SCALAR_DIV:
        return known_at_least(graph, a, 0) && known_at_least(graph, b, 1) ? tn_dim_floordiv(graph, a, b) : none;
    case TN_SCALAR_MOD: return known_at_least(graph, b, 1) ? tn_dim_mod(graph, a, b) : none;
    case TN_SCALAR_REM:
        return known_at_least(graph, a, 0) && known_at_least(graph, b, 1) ? tn_dim_mod(graph, a, b) : none;
    case TN_SCALAR_MIN: return tn_dim_min(graph, a, b);
    case TN_SCALAR_MAX: return tn_dim_max(graph, a, b);
    default: return none;
    }
}

tn_dim tn_contents_apply(tn_graph *graph, tn_scalar_op op, tn_dim a, tn_dim b) {
    const tn_dim none = {0};
    int64_t x, y = 0;
    bool unary = tn_scalar_describe(op)->operands == 1;
    if (a.id == 0 || (!unary && b.id == 0))
        return none;
    if (tn_dim_is_const(graph, a, &x) && (unary || tn_dim_is_const(graph, b, &y))) {
        tn_run_function *run = tn_scalar_describe(op)->boolean ? NULL : tn_scalar_run(op, TN_DOMAIN_I64);
        int64_t result;
        const void *in[2] = {&x, &y};
        if (run == NULL)
            return none;
        run(1, in, &result);
        return tn_dim_const(graph, result);
    }
    if (graph->stuck)
        return none;
    tn_dim result = express(graph, op, a, b);
    if (graph->stuck && graph->error.status != TN_ERR_MEMORY) {
        /* Too large an expression, or its numbers: nothing is wrong with the graph, the elements are not known. */
        graph->stuck = false;
        memset(&graph->error, 0, sizeof graph->error);
        tn_error_clear();
        return none;
    }
    return result;
}

/* 1 or 0 when the comparison holds for all or no values, else 2. */
static uint8_t decide(const tn_graph *graph, tn_scalar_op op, tn_dim a, tn_dim b) {
    bool equal = tn_dim_equal(graph, a, b), never = tn_dim_never_equal(graph, a, b);
    bool at_most = equal || tn_dim_at_most(graph, a, b), at_least = equal || tn_dim_at_most(graph, b, a);
    switch (op) {
    case TN_SCALAR_EQUAL: return equal ? 1 : never ? 0 : 2;
    case TN_SCALAR_NOT_EQUAL: return equal ? 0 : never ? 1 : 2;
    case TN_SCALAR_LESS: return at_least ? 0 : at_most && never ? 1 : 2;
    case TN_SCALAR_LESS_EQUAL: return at_most ? 1 : at_least && never ? 0 : 2;
    case TN_SCALAR_GREATER: return at_most ? 0 : at_least && never ? 1 : 2;
    case TN_SCALAR_GREATER_EQUAL: return at_least ? 1 : at_most && never ? 0 : 2;
    default: return 2;
    }
}

/* The number of elements of a value whose dims are all constants and whose rank is at most 1, else -1. */
static int64_t small_count(const tn_graph *graph, tn_value value) {
    int rank = tn_value_rank(graph, value);
    int64_t count = 1;
    if (rank == 1)
        return tn_dim_is_const(graph, tn_value_dim(graph, value, 0), &count) ? count : -1;
    return rank == 0 ? 1 : -1;
}

static bool compare_contents(const tn_graph *graph, tn_node node, tn_scalar_op op, int32_t n, uint8_t *truth) {
    tn_contents a, b;
    if (read_contents(graph, tn_node_input(graph, node, 0), &a) != n ||
        read_contents(graph, tn_node_input(graph, node, 1), &b) != n)
        return false;
    for (int32_t i = 0; i < n; i++)
        truth[i] = decide(graph, op, a.dim[i], b.dim[i]);
    return true;
}

/* cast to bool: of integers that are known, or of a bool. */
static bool not_zero(const tn_graph *graph, tn_node node, int32_t n, uint8_t *truth) {
    tn_contents a;
    if (read_contents(graph, tn_node_input(graph, node, 0), &a) != n)
        return false;
    for (int32_t i = 0; i < n; i++) {
        int64_t value, low, high;
        tn_dim_bounds(graph, a.dim[i], &low, &high);
        truth[i] = tn_dim_is_const(graph, a.dim[i], &value) ? value != 0 : low > 0 || high < 0 ? 1 : 2;
    }
    return true;
}

static uint8_t combine(tn_scalar_op op, uint8_t a, uint8_t b) {
    if (op == TN_SCALAR_AND)
        return a == 0 || b == 0 ? 0 : a == 1 && b == 1 ? 1 : 2;
    if (op == TN_SCALAR_OR)
        return a == 1 || b == 1 ? 1 : a == 0 && b == 0 ? 0 : 2;
    return a == 2 || b == 2 ? 2 : a != b;
}

static bool truth_of(const tn_graph *graph, tn_value value, int32_t n, uint8_t *truth, int *look) {
    if (value.id == 0 || n < 0 || n > TN_MAX_CONTENTS || --*look < 0)
        return false;
    tn_tensor *tensor = tn_value_constant(graph, value);
    if (tensor != NULL) {
        if (tensor->dtype != TN_BOOL || tensor->count != n)
            return false;
        for (int32_t i = 0; i < n; i++)
            truth[i] = tn_tensor_get_i64(tensor, i) != 0;
        return true;
    }
    tn_node node = tn_value_producer(graph, value);
    const tn_op *op = node.id == 0 ? NULL : tn_node_op(graph, node);
    if (op == NULL)
        return false;
    if (op->traits & TN_VIEW) { /* of one element, any number of times */
        uint8_t one;
        if (small_count(graph, tn_node_input(graph, node, 0)) != 1 ||
            !truth_of(graph, tn_node_input(graph, node, 0), 1, &one, look))
            return false;
        memset(truth, one, (size_t)n);
        return true;
    }
    if (op->lowering != TN_LOWER_SCALAR)
        return false;
    switch (op->code) {
    case TN_SCALAR_CAST:
        return tn_value_dtype(graph, tn_node_input(graph, node, 0)) == TN_BOOL
                   ? truth_of(graph, tn_node_input(graph, node, 0), n, truth, look)
                   : not_zero(graph, node, n, truth);
    case TN_SCALAR_NOT:
        if (!truth_of(graph, tn_node_input(graph, node, 0), n, truth, look))
            return false;
        for (int32_t i = 0; i < n; i++)
            truth[i] = truth[i] == 2 ? 2 : !truth[i];
        return true;
    case TN_SCALAR_AND:
    case TN_SCALAR_OR:
    case TN_SCALAR_XOR: {
        uint8_t other[TN_MAX_CONTENTS];
        if (!truth_of(graph, tn_node_input(graph, node, 0), n, truth, look) ||
            !truth_of(graph, tn_node_input(graph, node, 1), n, other, look))
            return false;
        for (int32_t i = 0; i < n; i++)
            truth[i] = combine((tn_scalar_op)op->code, truth[i], other[i]);
        return true;
    }
    default: return compare_contents(graph, node, (tn_scalar_op)op->code, n, truth);
    }
}

bool tn_contents_truth(const tn_graph *graph, tn_value value, int32_t n, uint8_t *truth) {
    int look = MAX_LOOK;
    return truth_of(graph, value, n, truth, &look);
}
