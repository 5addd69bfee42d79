/* Evaluation of dot: for each batch index, rows (free axes of a) by columns (free axes of b) over the contracted
   axes. */
#include <inttypes.h>
#include <stdlib.h>

#include "ops/contract.h"

typedef struct dot_operand {
    const tn_tensor *tensor;
    tn_space batch, free, contract;
} dot_operand;

typedef struct dot {
    dot_operand rows, columns;
    tn_dtype dtype;
    int64_t depth;
    tn_dtype out_dtype;
    char *out;
    int64_t batch_step, row_step, column_step; /* of the output, in elements */
    const tn_contract_unit *unit;
    const char *row_base;
} dot;

static void load_row(const void *ctx, int64_t row, int64_t begin, int64_t terms, tn_lane *out) {
    const dot *d = ctx;
    const char *base = d->row_base + tn_space_offset(&d->rows.free, d->unit->row + row) * (tn_dtype_bits(d->dtype) / 8);
    tn_space_load(&d->rows.contract, d->dtype, base, begin, terms, out);
}

/* Packs the columns' operands, reading along whichever index lies closer together in memory. */
static void pack_columns(const dot *d, tn_block *block, const tn_contract_unit *unit, const char *columns,
                         int64_t begin, int64_t terms) {
    const tn_space *free = &d->columns.free, *contract = &d->columns.contract;
    int64_t size = tn_dtype_bits(d->dtype) / 8;
    tn_lane line[TN_BLOCK_DEPTH] = {0};
    if (free->rank > 0 && contract->rank > 0 &&
        llabs(contract->strides[contract->rank - 1]) < llabs(free->strides[free->rank - 1])) {
        for (int64_t j = 0; j < unit->columns; j++) {
            tn_space_load(contract, d->dtype, columns + tn_space_offset(free, unit->column + j) * size, begin, terms,
                          line);
            tn_block_set_column(block, j, terms, line);
        }
        tn_block_pad_columns(block, unit->columns, terms);
        return;
    }
    for (int64_t t = 0; t < terms; t++) {
        tn_space_load(free, d->dtype, columns + tn_space_offset(contract, begin + t) * size, unit->column,
                      unit->columns, line);
        tn_block_set_term(block, t, line);
    }
}

static void compute(const void *ctx, tn_block *block, const tn_contract_unit *unit) {
    dot d = *(const dot *)ctx;
    int64_t size = tn_dtype_bits(d.dtype) / 8, out_size = tn_dtype_bits(d.out_dtype) / 8;
    const char *columns = (const char *)d.columns.tensor->data + tn_space_offset(&d.columns.batch, unit->outer) * size;
    d.unit = unit;
    d.row_base = (const char *)d.rows.tensor->data + tn_space_offset(&d.rows.batch, unit->outer) * size;
    for (int64_t begin = 0; begin < d.depth; begin += TN_BLOCK_DEPTH) {
        int64_t terms = d.depth - begin < TN_BLOCK_DEPTH ? d.depth - begin : TN_BLOCK_DEPTH;
        pack_columns(&d, block, unit, columns, begin, terms);
        tn_block_multiply(block, begin, terms, unit->columns, load_row, &d);
    }
    tn_domain domain = tn_contract_domain(d.dtype);
    for (int64_t r = 0; r < unit->rows; r++)
        tn_run_store(d.out_dtype, domain, tn_block_sums(block, r), unit->columns,
                     d.out +
                         (unit->outer * d.batch_step + (unit->row + r) * d.row_step + unit->column * d.column_step) *
                             out_size,
                     0, d.column_step);
}

/* Splits an operand's axes; appends the sizes of its free axes to dims. */
static void read_operand(const tn_tensor *x, uint32_t batches, const int64_t *batch, uint32_t contracts,
                         const int64_t *contract, dot_operand *out, int64_t *dims, int *rank) {
    int64_t size[3][TN_MAX_RANK], stride[3][TN_MAX_RANK];
    bool used[TN_MAX_RANK] = {false};
    int n = 0;
    for (uint32_t i = 0; i < batches; i++) {
        size[0][i] = x->dims[batch[i]];
        stride[0][i] = x->strides[batch[i]];
        used[batch[i]] = true;
    }
    for (uint32_t i = 0; i < contracts; i++) {
        size[1][i] = x->dims[contract[i]];
        stride[1][i] = x->strides[contract[i]];
        used[contract[i]] = true;
    }
    for (int i = 0; i < x->rank; i++) {
        if (used[i])
            continue;
        size[2][n] = x->dims[i];
        stride[2][n++] = x->strides[i];
        dims[(*rank)++] = x->dims[i];
    }
    out->tensor = x;
    tn_space_init(&out->batch, (int)batches, size[0], stride[0]);
    tn_space_init(&out->contract, (int)contracts, size[1], stride[1]);
    tn_space_init(&out->free, n, size[2], stride[2]);
}

static tn_status check_pairs(tn_eval *e, const char *what, const tn_tensor *a, const tn_tensor *b, uint32_t n,
                             const int64_t *of_a, const int64_t *of_b) {
    for (uint32_t i = 0; i < n; i++)
        if (a->dims[of_a[i]] != b->dims[of_b[i]]) {
            tn_eval_fail(e, TN_ERR_INPUT,
                         "%s axis %" PRId64 " of a has %" PRId64 " elements, axis %" PRId64 " of b %" PRId64, what,
                         of_a[i], a->dims[of_a[i]], of_b[i], b->dims[of_b[i]]);
            tn_fail_hint("the two must be equal");
            return TN_ERR_INPUT;
        }
    return TN_OK;
}

tn_status tn_eval_dot(tn_eval *e) {
    const tn_tensor *a = tn_eval_in(e, 0), *b = tn_eval_in(e, 1);
    const int64_t *a_batch, *b_batch, *a_contract, *b_contract;
    uint32_t batches = tn_attr_ints(e->graph, e->node, "a_batch", &a_batch);
    uint32_t contracts = tn_attr_ints(e->graph, e->node, "a_contract", &a_contract);
    tn_attr_ints(e->graph, e->node, "b_batch", &b_batch);
    tn_attr_ints(e->graph, e->node, "b_contract", &b_contract);
    TN_TRY(check_pairs(e, "batch", a, b, batches, a_batch, b_batch));
    TN_TRY(check_pairs(e, "contracted", a, b, contracts, a_contract, b_contract));
    int64_t dims[2 * TN_MAX_RANK];
    int rank = 0;
    for (uint32_t i = 0; i < batches; i++)
        dims[rank++] = a->dims[a_batch[i]];
    dot d = {.dtype = (tn_dtype)a->dtype};
    read_operand(a, batches, a_batch, contracts, a_contract, &d.rows, dims, &rank);
    read_operand(b, batches, b_batch, contracts, b_contract, &d.columns, dims, &rank);
    d.depth = d.rows.contract.count;
    d.out_dtype = tn_contract_result(d.dtype, (tn_dtype)tn_attr_int(e->graph, e->node, "acc"));
    tn_tensor *out = tn_eval_result(e, 0, d.out_dtype, rank, dims);
    if (out == NULL)
        return tn_error_status();
    if (out->count == 0)
        return TN_OK;
    d.out = out->data;
    d.batch_step = d.rows.free.count * d.columns.free.count;
    d.row_step = d.columns.free.count;
    d.column_step = 1;
    if (d.columns.free.count < 8 &&
        d.rows.free.count > d.columns.free.count) { /* columns are what runs fast: swap the operands */
        dot_operand rows = d.rows;
        d.rows = d.columns;
        d.columns = rows;
        d.column_step = d.row_step;
        d.row_step = 1;
    }
    tn_contract_split split;
    tn_contract_plan(&split, tn_pool_threads(e->pool), d.rows.batch.count, d.columns.free.count, d.rows.free.count);
    return tn_contract_run(e, &split, tn_dtype_is_float(d.dtype), compute, &d);
}
