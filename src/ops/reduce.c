/* Reductions: one result for all elements that differ only along the reduced axes. */
#include <inttypes.h>
#include <stdlib.h>

#include "ops/contents.h"
#include "ops/fold.h"
#include "ops/ops.h"
#include "ops/support.h"

static tn_scalar_op operation(const tn_graph *graph, tn_node node) {
    return (tn_scalar_op)tn_node_op(graph, node)->code;
}

/* --- infer -------------------------------------------------------------------------------------------------------- */

/* A known vector reduced to one known element. */
static tn_status reduce_contents(tn_infer *c, int rank, int count) {
    tn_contents known;
    tn_scalar_op op = operation(c->graph, c->node);
    tn_contents_input(c, 0, &known);
    if (rank > 1 || known.n < 0)
        return TN_OK;
    if (count > 0) {
        if (known.n == 0) {
            if (op != TN_SCALAR_ADD && op != TN_SCALAR_MUL)
                return TN_OK;
            known.dim[0] = tn_dim_const(c->graph, op == TN_SCALAR_MUL);
        }
        for (int32_t i = 1; i < known.n; i++) {
            known.dim[0] = tn_contents_apply(c->graph, op, known.dim[0], known.dim[i]);
            if (known.dim[0].id == 0)
                return TN_OK;
        }
        known.n = 1;
    }
    return tn_contents_set(c, &known);
}

static tn_status infer_reduce(tn_infer *c) {
    tn_operand_type x;
    const int64_t *axes;
    int count, rank = 0;
    bool reduced[TN_MAX_RANK] = {false};
    tn_dim dims[TN_MAX_RANK];
    tn_dtype acc;
    int64_t keep = tn_attr_int(c->graph, c->node, "keepdims");
    TN_TRY(tn_infer_operand(c, 0, &x));
    if (!tn_scalar_admits(operation(c->graph, c->node), x.dtype))
        return tn_infer_unsupported(c, "%s of %s", tn_node_op_name(c->graph, c->node), tn_dtype_name(x.dtype));
    TN_TRY(tn_infer_attr_axes(c, "axes", x.rank, reduced, &axes, &count));
    TN_TRY(tn_infer_accumulator(c, x.dtype, &acc));
    if (keep != 0 && keep != 1)
        return tn_infer_fail(c, "attribute 'keepdims' is %" PRId64 ", it must be 0 or 1", keep);
    for (int i = 0; i < x.rank; i++) {
        if (!reduced[i])
            dims[rank++] = x.dims[i];
        else if (keep)
            dims[rank++] = tn_dim_const(c->graph, 1);
    }
    TN_TRY(tn_infer_tensor(c, 0, x.dtype, rank, dims));
    return reduce_contents(c, x.rank, count);
}

/* --- eval --------------------------------------------------------------------------------------------------------- */

typedef struct reduction {
    tn_dtype dtype;
    const char *from;
    char *to;
    int64_t size; /* bytes of an element */
    tn_space kept, reduced;
    tn_fold fold;
    int64_t per_piece;
} reduction;

/* Advances an odometer over all dimensions of `space` but the last; answers the change of the offset. */
static int64_t advance(const tn_space *space, int64_t *index) {
    int64_t change = 0;
    for (int i = space->rank - 2; i >= 0; i--) {
        if (++index[i] < space->dims[i])
            return change + space->strides[i];
        change -= (space->dims[i] - 1) * space->strides[i];
        index[i] = 0;
    }
    return change;
}

/* n <= TN_RUN results whose first elements lie `step` apart from `from` on. */
static void reduce_run(const reduction *r, const char *from, int64_t step, int64_t n, tn_cell *acc) {
    tn_cell loaded[TN_RUN];
    const tn_space *s = &r->reduced;
    int64_t inner = s->rank > 0 ? s->dims[s->rank - 1] : 1, inner_step = s->rank > 0 ? s->strides[s->rank - 1] : 1;
    int64_t rows = s->count / inner, index[TN_MAX_RANK] = {0}, offset = 0;
    /* Which way to run: along the elements of one result, or across results; both take each result's elements in
       order. */
    bool across = n > inner;
    if (n >= 16 && inner >= 16)
        across = llabs(step) < llabs(inner_step);
    for (int64_t i = 0; i < n; i++)
        acc[i] = r->fold.identity;
    for (int64_t row = 0; row < rows; row++) {
        const char *at = from + offset * r->size;
        if (across) {
            for (int64_t j = 0; j < inner; j++) {
                tn_run_load(r->dtype, r->fold.domain, at + j * inner_step * r->size, 0, step, n, loaded);
                r->fold.across(acc, loaded, n);
            }
        } else {
            for (int64_t i = 0; i < n; i++)
                for (int64_t j = 0; j < inner; j += TN_RUN) {
                    int64_t m = inner - j < TN_RUN ? inner - j : TN_RUN;
                    tn_run_load(r->dtype, r->fold.domain, at + (i * step + j * inner_step) * r->size, 0, inner_step, m,
                                loaded);
                    r->fold.along(&acc[i], loaded, m);
                }
        }
        offset += advance(s, index);
    }
}

static void reduce_piece(void *ctx, int64_t piece) {
    const reduction *r = ctx;
    const tn_space *kept = &r->kept;
    int64_t begin = piece * r->per_piece, end = begin + r->per_piece;
    int64_t inner = kept->rank > 0 ? kept->dims[kept->rank - 1] : 1,
            step = kept->rank > 0 ? kept->strides[kept->rank - 1] : 1;
    tn_cell acc[TN_RUN];
    if (end > kept->count)
        end = kept->count;
    while (begin < end) {
        int64_t n = inner - begin % inner;
        n = n > end - begin ? end - begin : n;
        n = n > TN_RUN ? TN_RUN : n;
        if (r->reduced.count == 0)
            for (int64_t i = 0; i < n; i++)
                acc[i] = r->fold.identity;
        else
            reduce_run(r, r->from + tn_space_offset(kept, begin) * r->size, step, n, acc);
        tn_run_store(r->dtype, r->fold.domain, acc, n, r->to + begin * r->size, 0, 1);
        begin += n;
    }
}

static tn_status eval_reduce(tn_eval *e) {
    const tn_tensor *x = tn_eval_in(e, 0);
    const int64_t *axes;
    uint32_t count = tn_attr_ints(e->graph, e->node, "axes", &axes);
    bool keep = tn_attr_int(e->graph, e->node, "keepdims") != 0, reduced[TN_MAX_RANK] = {false};
    int64_t dims[TN_MAX_RANK], kept_dims[TN_MAX_RANK], kept_strides[TN_MAX_RANK], over_dims[TN_MAX_RANK],
        over_strides[TN_MAX_RANK];
    int rank = 0, kept = 0, over = 0;
    for (uint32_t i = 0; i < count; i++)
        reduced[axes[i]] = true;
    for (int i = 0; i < x->rank; i++) {
        if (reduced[i]) {
            over_dims[over] = x->dims[i];
            over_strides[over++] = x->strides[i];
            if (keep)
                dims[rank++] = 1;
        } else {
            kept_dims[kept] = x->dims[i];
            kept_strides[kept++] = x->strides[i];
            dims[rank++] = x->dims[i];
        }
    }
    tn_dtype dtype = (tn_dtype)x->dtype;
    tn_tensor *out = tn_eval_result(e, 0, dtype, rank, dims);
    if (out == NULL)
        return tn_error_status();
    reduction r = {.dtype = dtype, .from = x->data, .to = out->data, .size = tn_dtype_bits(dtype) / 8};
    if (!tn_fold_init(&r.fold, operation(e->graph, e->node), dtype))
        return tn_eval_fail(e, TN_ERR_UNSUPPORTED, "not supported: this reduction of %s", tn_dtype_name(dtype));
    if (out->count == 0)
        return TN_OK;
    tn_space_init(&r.kept, kept, kept_dims, kept_strides);
    tn_space_init(&r.reduced, over, over_dims, over_strides);
    /* Pieces of at least 2^15 elements read. */
    r.per_piece = r.reduced.count >= 1 << 15 ? 1 : (1 << 15) / (r.reduced.count > 0 ? r.reduced.count : 1);
    tn_pool_run(e->pool, (r.kept.count - 1) / r.per_piece + 1, reduce_piece, &r);
    return TN_OK;
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

static const tn_attr_spec attrs[] = {{.name = "axes", .kind = TN_ATTR_INTS, .required = true},
                                     {.name = "keepdims", .kind = TN_ATTR_INT},
                                     {.name = "acc", .kind = TN_ATTR_DTYPE},
                                     {0}};

#define ROW(row, ID, exact, text)                                                                            \
    {                                                                                                        \
        .name = row, .min_inputs = 1, .max_inputs = 1, .min_outputs = 1, .max_outputs = 1,                   \
        .traits = TN_REDUCTION | (exact), .attrs = attrs, .inputs = "x", .doc = text, .infer = infer_reduce, \
        .eval = eval_reduce, .lowering = TN_LOWER_REDUCE, .code = TN_SCALAR_##ID                             \
    }

static const tn_op rows[] = {
    ROW("reduce_sum", ADD, 0, "The sum along the axes; 0 of nothing."),
    ROW("reduce_prod", MUL, 0, "The product along the axes; 1 of nothing."),
    ROW("reduce_max", MAX, TN_EXACT, "The largest along the axes, NaN if there is one; -inf or the lowest of nothing."),
    ROW("reduce_min", MIN, TN_EXACT,
        "The smallest along the axes, NaN if there is one; +inf or the highest of nothing."),
    ROW("reduce_and", AND, TN_EXACT, "Whether all along the axes hold (integers: bitwise and); true of nothing."),
    ROW("reduce_or", OR, TN_EXACT, "Whether any along the axes holds (integers: bitwise or); false of nothing."),
};
const tn_op_family tn_family_reduce = {rows, sizeof rows / sizeof *rows};
