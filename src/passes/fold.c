/* Constant folding: what depends on constants only is computed now, by the function that the caller hands in.

   - A value whose elements are known (shape arithmetic) becomes a constant without being computed.
   - A condition that is known picks its branch.
   - Other nodes are estimated first: bytes of the result against a cap, operations against a budget. Over it they stay, and the log
     says so.
   - What only repeats or numbers elements (broadcast, iota) is a few bytes as it is and a large constant otherwise: it stays, but
     does not keep what reads it from being folded.
   At -O1 only rows marked exact are folded: others are to be computed by the kernel that would have run. */
#include <inttypes.h>

#include "ops/contents.h"
#include "passes/pass.h"

#define MAX_LOOK 16 /* views looked through for a constant */

typedef struct folder {
    tn_graph *g;
    tn_pass_context *context;
    tn_purity purity;
    tn_symbol_map symbols;
    uint64_t bytes, operations; /* cap of one value; budget left */
} folder;

/* --- what is constant --------------------------------------------------------------------------------------------------------------- */

/* An upper bound of a value's elements; false when there is none. */
static bool element_bound(const tn_graph *g, tn_value v, uint64_t *count) {
    int rank = tn_value_rank(g, v);
    uint64_t n = 1;
    for (int i = 0; i < rank; i++) {
        int64_t low, high;
        tn_dim_bounds(g, tn_value_dims(g, v)[i], &low, &high);
        if (high == INT64_MAX || high < 0 || __builtin_mul_overflow(n, (uint64_t)high, &n))
            return false;
    }
    *count = n;
    return rank >= 0;
}

static bool byte_bound(const tn_graph *g, tn_value v, uint64_t *bytes) {
    uint64_t count, bits = (uint64_t)tn_dtype_bits(tn_value_dtype(g, v));
    if (!element_bound(g, v, &count) || __builtin_mul_overflow(count, bits, &count))
        return false;
    *bytes = count / 8 + (count % 8 != 0);
    return true;
}

static bool attributes_constant(const tn_graph *g, tn_node node) {
    for (uint32_t i = 0; i < tn_node_attr_count(g, node); i++) {
        const tn_attr *a = tn_node_attr_at(g, node, i);
        int64_t value;
        if (a->kind == TN_ATTR_TYPE || a->kind == TN_ATTR_FUNCTION)
            return false;
        for (uint32_t d = 0; a->kind == TN_ATTR_DIMS && d < a->count; d++)
            if (!tn_dim_is_const(g, a->as.dims[d], &value))
                return false;
    }
    return true;
}

/* Whether the node only repeats or numbers elements: a few bytes as it is. */
static bool grows(const tn_graph *g, tn_node node) {
    const tn_op *op = tn_node_op(g, node);
    uint64_t in, out;
    if (tn_node_output_count(g, node) != 1)
        return false;
    if (tn_node_input_count(g, node) == 0)
        return true;
    return (op->traits & TN_VIEW) && element_bound(g, tn_node_output(g, node, 0), &out) &&
           element_bound(g, tn_node_input(g, node, 0), &in) && out > in;
}

static bool can_run(const folder *f, tn_node node) {
    const tn_op *op = tn_node_op(f->g, node);
    uint32_t never = TN_EFFECT | TN_RANDOM | TN_TERMINATOR | TN_CONTROL | TN_CALL | TN_CONSTANT;
    bool ours = op->dialect == TN_DIALECT_PRIMITIVE || op->dialect == TN_DIALECT_COMPOSITE;
    return ours && !(op->traits & never) && !tn_node_region_count(f->g, node) &&
           !tn_purity_is_ordered(&f->purity, f->g, node) && (f->context->level >= 2 || (op->traits & TN_EXACT)) &&
           attributes_constant(f->g, node);
}

static bool is_variable(const tn_graph *g, tn_node node) {
    return *tn_node_name(g, node) != '\0';
}

/* Whether a value is a constant, or what grows of one to at most `most` bytes. */
static bool is_constant(const folder *f, tn_value v, uint64_t most, int look) {
    const tn_graph *g = f->g;
    tn_node maker = tn_value_producer(g, v);
    uint64_t bytes;
    if (!maker.id)
        return false;
    if (tn_node_has_trait(g, maker, TN_CONSTANT))
        return !(f->context->keep_variables && is_variable(g, maker));
    if (look >= MAX_LOOK || !grows(g, maker) || !can_run(f, maker) || !byte_bound(g, v, &bytes) || bytes > most)
        return false;
    for (uint32_t i = 0; i < tn_node_input_count(g, maker); i++) {
        tn_value in = tn_node_input(g, maker, i);
        if (in.id && !is_constant(f, in, most, look + 1))
            return false;
    }
    return true;
}

/* --- what it costs ----------------------------------------------------------------------------------------------------------------------- */

static uint64_t root(uint64_t x) {
    uint64_t r = 0;
    for (uint64_t bit = (uint64_t)1 << 31; bit; bit >>= 1)
        if ((r + bit) <= UINT32_MAX && (r + bit) * (r + bit) <= x)
            r += bit;
    return r;
}

/* An estimate of the scalar operations of a node. */
static uint64_t operations(const tn_graph *g, tn_node node) {
    uint64_t in = 0, product = 1, out = 0, n, each = 1;
    for (uint32_t i = 0; i < tn_node_input_count(g, node); i++) {
        tn_value v = tn_node_input(g, node, i);
        if (!v.id || !element_bound(g, v, &n))
            continue;
        in = n > UINT64_MAX - in ? UINT64_MAX : in + n;
        if (__builtin_mul_overflow(product, n, &product))
            product = UINT64_MAX;
    }
    for (uint32_t i = 0; i < tn_node_output_count(g, node); i++)
        if (element_bound(g, tn_node_output(g, node, i), &n))
            out = n > UINT64_MAX - out ? UINT64_MAX : out + n;
    if (tn_node_has_trait(g, node, TN_CONTRACTION) && out) /* [m,k] times [k,n]: k = sqrt(m k * k n / (m n)) */
        each = root(product / out);
    const int64_t *window;
    for (uint32_t i = tn_attr_ints(g, node, "window", &window); i-- > 0;)
        if (window[i] > 0 && __builtin_mul_overflow(each, (uint64_t)window[i], &each))
            each = UINT64_MAX;
    if (__builtin_mul_overflow(out, each ? each : 1, &out) || __builtin_add_overflow(out, in, &out))
        return UINT64_MAX;
    return out;
}

/* Whether the node may be computed; says why not. */
static bool affordable(folder *f, tn_node node) {
    tn_graph *g = f->g;
    for (uint32_t i = 0; i < tn_node_output_count(g, node); i++) {
        tn_value v = tn_node_output(g, node, i);
        uint64_t bytes;
        tn_type type = tn_value_type(g, v);
        if (!type.id || tn_type_kind(g, type) != TN_KIND_TENSOR)
            return false;
        if (!byte_bound(g, v, &bytes)) {
            tn_pass_note(f->context, g, node, "not folded: the size of its result is not known before it is computed");
            return false;
        }
        if (bytes > f->bytes) {
            tn_pass_note(f->context, g, node,
                         "not folded: its result has %" PRIu64 " bytes, more than the cap of %" PRIu64, bytes,
                         f->bytes);
            return false;
        }
    }
    uint64_t cost = operations(g, node);
    if (cost > f->operations) {
        tn_pass_note(f->context, g, node,
                     "not folded: about %" PRIu64 " operations, more than the %" PRIu64 " left for folding", cost,
                     f->operations);
        return false;
    }
    f->operations -= cost;
    return true;
}

/* --- replacing ------------------------------------------------------------------------------------------------------------------------- */

static tn_type type_of(tn_graph *g, const tn_tensor *t) {
    tn_dim dims[TN_MAX_RANK];
    for (int i = 0; i < t->rank; i++)
        dims[i] = tn_dim_const(g, t->dims[i]);
    return tn_type_tensor(g, (tn_dtype)t->dtype, t->rank, dims);
}

/* Puts a tensor in the place of a value. *done false: the types do not allow it. */
static tn_status put_constant(folder *f, tn_value v, tn_tensor *t, bool *done) {
    tn_graph *g = f->g;
    tn_type type = type_of(g, t);
    if (!type.id)
        return tn_graph_check(g);
    TN_TRY(tn_symbol_map_unify(g, &f->symbols, v, type, done));
    if (!*done)
        return TN_OK;
    tn_place place = tn_place_enter(g, tn_value_producer(g, v));
    tn_value constant = tn_graph_constant(g, t);
    tn_place_leave(g, place);
    if (!constant.id)
        return tn_graph_check(g);
    TN_TRY(tn_value_inherit(g, constant, v));
    return tn_value_replace_uses(g, v, constant);
}

/* Removes a node when nothing uses it any more. */
static tn_status drop(folder *f, tn_node node) {
    for (uint32_t i = 0; i < tn_node_output_count(f->g, node); i++)
        if (tn_value_use_count(f->g, tn_node_output(f->g, node, i)))
            return TN_OK;
    if (tn_purity_traits(&f->purity, f->g, node) & TN_EFFECT)
        return TN_OK;
    return tn_node_remove(f->g, node);
}

/* --- shape arithmetic --------------------------------------------------------------------------------------------------------------------- */

/* The tensor of a value all of whose elements are known, or NULL (with *status when that is an error). */
static tn_tensor *known_tensor(tn_graph *g, tn_value v, tn_status *status) {
    tn_dtype dtype = tn_value_dtype(g, v);
    int rank = tn_value_rank(g, v);
    if (rank < 0 || rank > 1)
        return NULL;
    int64_t n = 1, element[TN_MAX_CONTENTS];
    uint8_t truth[TN_MAX_CONTENTS];
    const tn_dim *dims;
    if (rank == 1 && (!tn_dim_is_const(g, tn_value_dims(g, v)[0], &n) || n > TN_MAX_CONTENTS))
        return NULL;
    if (dtype == TN_I64 || dtype == TN_I32) {
        if (tn_value_contents(g, v, &dims) != n)
            return NULL;
        for (int64_t i = 0; i < n; i++)
            if (!tn_dim_is_const(g, dims[i], &element[i]))
                return NULL;
    } else if (dtype == TN_BOOL && tn_contents_truth(g, v, (int32_t)n, truth)) {
        for (int64_t i = 0; i < n; i++) {
            if (truth[i] == 2)
                return NULL;
            element[i] = truth[i];
        }
    } else {
        return NULL;
    }
    tn_tensor *t = tn_tensor_create_in(g->heap, dtype, rank, &n);
    if (!t)
        *status = tn_error_status();
    for (int64_t i = 0; t && i < n; i++)
        tn_store_i64(dtype, t->data, i, element[i]);
    return t;
}

static tn_status fold_known(folder *f, tn_node node) {
    tn_graph *g = f->g;
    for (uint32_t i = 0; i < tn_node_output_count(g, node); i++) {
        tn_value v = tn_node_output(g, node, i);
        tn_status status = TN_OK;
        if (!tn_value_use_count(g, v))
            continue;
        tn_tensor *t = known_tensor(g, v, &status);
        bool done = false;
        if (t)
            status = put_constant(f, v, t, &done);
        tn_tensor_destroy(t);
        TN_TRY(status);
        f->context->sites += done;
    }
    return TN_OK;
}

/* --- conditions -------------------------------------------------------------------------------------------------------------------------- */

static bool known_condition(const tn_graph *g, tn_value cond, bool *holds) {
    uint8_t truth;
    tn_tensor *t = tn_value_constant(g, cond);
    if (t) {
        *holds = tn_tensor_get_i64(t, 0) != 0;
        return t->count == 1;
    }
    if (!tn_contents_truth(g, cond, 1, &truth) || truth == 2)
        return false;
    *holds = truth != 0;
    return true;
}

static tn_status splice(folder *f, tn_node node, tn_region taken, tn_value *results) {
    tn_graph *g = f->g;
    uint32_t outputs = tn_node_output_count(g, node);
    for (uint32_t i = 0; i < outputs; i++) {
        bool agree;
        TN_TRY(tn_symbol_map_unify(g, &f->symbols, tn_node_output(g, node, i),
                                   tn_value_type(g, tn_region_result(g, taken, i)), &agree));
        if (!agree) { /* symbols that were found equal are so all the same */
            tn_pass_note(f->context, g, node, "the branch that is always taken stays: result %u has another type there",
                         i);
            return TN_OK;
        }
    }
    tn_place place = tn_place_enter(g, node);
    tn_status status = tn_region_splice(g, taken, 0, NULL, outputs, results);
    tn_place_leave(g, place);
    TN_TRY(status);
    for (uint32_t i = 0; i < outputs; i++) {
        tn_value old = tn_node_output(g, node, i);
        TN_TRY(tn_value_replace_uses(g, old, results[i]));
        TN_TRY(tn_value_inherit(g, results[i], old));
    }
    TN_TRY(tn_node_remove(g, node));
    for (uint32_t i = 0; i < outputs; i++)
        TN_TRY(tn_value_note_symbols(g, results[i]));
    f->context->sites++;
    return TN_OK;
}

static tn_status fold_if(folder *f, tn_node node) {
    tn_graph *g = f->g;
    bool holds;
    if (tn_purity_is_ordered(&f->purity, g, node) || !known_condition(g, tn_node_input(g, node, 0), &holds))
        return TN_OK;
    tn_value *results = tn_alloc_array(g->heap, tn_node_output_count(g, node), sizeof *results);
    if (!results)
        return tn_error_status();
    tn_status status = splice(f, node, tn_node_region(g, node, holds ? 0 : 1), results);
    tn_free(g->heap, results);
    return status;
}

/* --- computing ---------------------------------------------------------------------------------------------------------------------------- */

static tn_status put_results(folder *f, tn_node node, tn_object *const *outputs) {
    tn_graph *g = f->g;
    bool any = false;
    for (uint32_t i = 0; i < tn_node_output_count(g, node); i++) {
        tn_value v = tn_node_output(g, node, i);
        tn_tensor *t = tn_object_tensor(outputs[i]);
        bool done = false;
        if (tn_value_use_count(g, v) && t)
            TN_TRY(put_constant(f, v, t, &done));
        any = any || done;
    }
    f->context->sites += any;
    return any ? drop(f, node) : TN_OK;
}

static tn_status fold_computed(folder *f, tn_node node) {
    tn_graph *g = f->g;
    tn_pass_context *c = f->context;
    uint32_t outputs = tn_node_output_count(g, node), used = 0;
    for (uint32_t i = 0; i < outputs; i++)
        used += tn_value_use_count(g, tn_node_output(g, node, i)) != 0;
    if (!c->evaluate || !used || !can_run(f, node) || grows(g, node))
        return TN_OK;
    bool large = false;
    for (uint32_t i = 0; i < tn_node_input_count(g, node); i++) {
        tn_value v = tn_node_input(g, node, i);
        if (v.id && !is_constant(f, v, UINT64_MAX, 0))
            return TN_OK;
        large |= v.id && !is_constant(f, v, f->bytes, 0);
    }
    if (large) {
        tn_pass_note(c, g, node, "not folded: what it reads has more bytes than the cap of %" PRIu64, f->bytes);
        return TN_OK;
    }
    if (!affordable(f, node))
        return TN_OK;
    tn_object **results = tn_alloc_array(g->heap, outputs, sizeof *results);
    if (!results)
        return tn_error_status();
    tn_status status = c->evaluate(c->evaluate_ctx, g, node, results);
    /* what a graph becomes does not depend on a limit of memory */
    bool starved = status == TN_ERR_MEMORY || (status == TN_ERR_LIMIT && strstr(tn_error_what(), "memory limit"));
    if (status == TN_OK) {
        status = put_results(f, node, results);
    } else if (!starved && status != TN_ERR_CANCELLED && tn_graph_check(g) == TN_OK) {
        /* an error of the model's (an index out of range) is to be found where it runs, if it ever does */
        tn_pass_note(c, g, node, "not folded: %s", tn_error_what());
        tn_error_clear();
        status = TN_OK;
    }
    for (uint32_t i = 0; i < outputs; i++)
        tn_object_destroy(results[i]);
    tn_free(g->heap, results);
    return status;
}

/* --- walking -------------------------------------------------------------------------------------------------------------------------------- */

static tn_status fold_region(folder *f, tn_region region) {
    tn_graph *g = f->g;
    tn_node next;
    for (tn_node n = tn_region_first(g, region); n.id; n = next) {
        tn_node before = tn_node_previous(g, n);
        const tn_op *op = tn_node_op(g, n);
        if (!(op->traits & (TN_EFFECT | TN_RANDOM | TN_TERMINATOR | TN_CONSTANT)) && op->dialect != TN_DIALECT_ONNX &&
            op->dialect != TN_DIALECT_CUSTOM) {
            uint64_t sites = f->context->sites;
            TN_TRY(fold_known(f, n));
            if (tn_node_control_kind(g, n) == TN_CONTROL_IF)
                TN_TRY(fold_if(f, n));
            else if (f->context->sites > sites && !tn_purity_is_ordered(&f->purity, g, n))
                TN_TRY(drop(f, n));
            if (tn_node_is_alive(g, n))
                TN_TRY(fold_computed(f, n));
        }
        if (tn_node_is_alive(g, n)) {
            for (uint32_t i = 0; i < tn_node_region_count(g, n); i++)
                TN_TRY(fold_region(f, tn_node_region(g, n, i)));
            next = tn_node_next(g, n);
        } else { /* what stands in its place is looked at: constants, a branch's nodes */
            next = before.id ? tn_node_next(g, before) : tn_region_first(g, region);
        }
    }
    return TN_OK;
}

static tn_status run(tn_graph *g, tn_pass_context *context) {
    folder f = {.g = g,
                .context = context,
                .bytes = context->fold_bytes ? context->fold_bytes : TN_FOLD_BYTES,
                .operations = context->fold_operations ? context->fold_operations : TN_FOLD_OPERATIONS};
    tn_symbol_map_init(&f.symbols, g->heap);
    TN_TRY(tn_purity_init(&f.purity, g));
    tn_status status = fold_region(&f, tn_graph_region(g));
    for (uint32_t i = 0; i < g->function.len && status == TN_OK; i++)
        status = fold_region(&f, tn_graph_function_region(g, i));
    if (status == TN_OK)
        status = tn_symbol_map_apply(g, &f.symbols);
    tn_symbol_map_free(&f.symbols);
    tn_purity_free(&f.purity);
    return status;
}

const tn_pass tn_pass_fold = {
    .name = "fold",
    .doc = "Computes what depends on constants only, up to a size; known shapes become constants, known conditions "
           "pick their branch.",
    .effect = TN_BIT_EXACT,
    .keeps = TN_KEEPS_ALL,
    .level = 1,
    .run = run,
};
