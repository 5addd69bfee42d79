/* What all elementwise rows share. */
#include <stdio.h>

#include "ops/contents.h"
#include "ops/elementwise.h"

#define PIECE 16384 /* elements from which a second thread is worth waking, and the least it gets */
#define MAX_OPERANDS 4

/* --- infer -------------------------------------------------------------------------------------------------------- */

tn_status tn_infer_admits(tn_infer *c, const tn_operand_type *operand) {
    static const char *const classes[] = {
        "floats (f16 bf16 f32 f64)",        "integers (8 to 64 bits)",   "bool", "strings",
        "complex numbers and 8-bit floats", "types of fewer than 8 bits"};
    tn_scalar_op op = (tn_scalar_op)tn_node_op(c->graph, c->node)->code;
    if (tn_scalar_admits(op, operand->dtype))
        return TN_OK;
    char takes[256] = "";
    size_t used = 0;
    for (unsigned i = 0; i < sizeof classes / sizeof *classes; i++)
        if (tn_scalar_describe(op)->admits >> i & 1)
            used += (size_t)snprintf(takes + used, sizeof takes - used, "%s%s", used > 0 ? ", " : "", classes[i]);
    return tn_infer_fail(c, "%s is not admitted: it takes %s", tn_dtype_name(operand->dtype), takes);
}

static tn_status propagate(tn_infer *c, tn_scalar_op op) {
    tn_contents a, b, result;
    b.n = -1;
    tn_contents_input(c, 0, &a);
    if (a.n < 0)
        return TN_OK;
    bool binary = tn_scalar_describe(op)->operands == 2;
    if (binary)
        tn_contents_input(c, 1, &b);
    if (binary && a.n != b.n)
        return TN_OK;
    result.n = a.n;
    for (int32_t i = 0; i < a.n; i++) {
        result.dim[i] = tn_contents_apply(c->graph, op, a.dim[i], binary ? b.dim[i] : a.dim[i]);
        if (result.dim[i].id == 0)
            return TN_OK;
    }
    return tn_contents_set(c, &result);
}

tn_status tn_infer_elementwise(tn_infer *c) {
    tn_scalar_op op = (tn_scalar_op)tn_node_op(c->graph, c->node)->code;
    const tn_scalar_info *info = tn_scalar_describe(op);
    tn_operand_type a, b;
    TN_TRY(tn_infer_operand(c, 0, &a));
    TN_TRY(tn_infer_admits(c, &a));
    if (info->operands == 2) {
        TN_TRY(tn_infer_operand(c, 1, &b));
        TN_TRY(tn_infer_same_dtype(c, &a, &b));
        TN_TRY(tn_infer_merge_shape(c, &a, &b));
    }
    TN_TRY(tn_infer_tensor(c, 0, info->boolean ? TN_BOOL : a.dtype, a.rank, a.dims));
    return info->boolean ? TN_OK : propagate(c, op);
}

/* --- work in pieces ----------------------------------------------------------------------------------------------- */

typedef struct range_work {
    int64_t count, piece;
    void (*body)(void *ctx, int64_t begin, int64_t end);
    void *ctx;
} range_work;

static void run_range(void *ctx, int64_t piece) {
    const range_work *work = ctx;
    int64_t begin = piece * work->piece, end = begin + work->piece;
    work->body(work->ctx, begin, end < work->count ? end : work->count);
}

void tn_range_split(tn_pool *pool, int64_t count, int64_t grain, void (*body)(void *ctx, int64_t begin, int64_t end),
                    void *ctx) {
    int64_t parts = 4 * (int64_t)tn_pool_threads(pool), piece = count / parts + 1;
    piece = (piece < PIECE ? PIECE : piece) / grain * grain + grain;
    if (count <= piece || parts <= 4) {
        if (count > 0)
            body(ctx, 0, count);
        return;
    }
    range_work work = {count, piece, body, ctx};
    tn_pool_run(pool, (count - 1) / piece + 1, run_range, &work);
}

typedef struct walk_work {
    int rank, axis, operands;
    int64_t dims[TN_MAX_RANK];
    int64_t part; /* indices of `axis` per piece */
    const tn_walk_operand *operand;
    tn_walk_row *row;
    void *ctx;
} walk_work;

static void run_walk(void *ctx, int64_t piece) {
    const walk_work *work = ctx;
    int64_t dims[TN_MAX_RANK], begin = piece * work->part, left = work->dims[work->axis] - begin;
    tn_walk_operand operand[MAX_OPERANDS];
    memcpy(dims, work->dims, (size_t)work->rank * sizeof *dims);
    dims[work->axis] = left < work->part ? left : work->part;
    for (int i = 0; i < work->operands; i++) {
        operand[i] = work->operand[i];
        operand[i].data =
            (char *)operand[i].data + begin * operand[i].strides[work->axis] * (int64_t)operand[i].element;
    }
    tn_walk(work->rank, dims, work->operands, operand, work->row, work->ctx);
}

void tn_walk_split(tn_pool *pool, int rank, const int64_t *dims, int operands, const tn_walk_operand *operand,
                   tn_walk_row *row, void *ctx) {
    int64_t count = 1, threads = tn_pool_threads(pool);
    int axis = 0;
    for (int i = 0; i < rank; i++) {
        count *= dims[i]; /* a tensor's: the product fits */
        if (dims[i] > dims[axis])
            axis = i;
    }
    if (threads <= 1 || rank == 0 || count < 2 * PIECE || operands > MAX_OPERANDS) {
        tn_walk(rank, dims, operands, operand, row, ctx);
        return;
    }
    int64_t parts = 4 * threads, fill = count / PIECE;
    if (parts > fill)
        parts = fill;
    if (parts > dims[axis])
        parts = dims[axis];
    walk_work work = {.rank = rank, .axis = axis, .operands = operands, .operand = operand, .row = row, .ctx = ctx};
    memcpy(work.dims, dims, (size_t)rank * sizeof *dims);
    work.part = (dims[axis] - 1) / parts + 1;
    tn_pool_run(pool, (dims[axis] - 1) / work.part + 1, run_walk, &work);
}

/* --- eval --------------------------------------------------------------------------------------------------------- */

tn_tensor *tn_eval_result(tn_eval *e, uint32_t i, tn_dtype dtype, int rank, const int64_t *dims) {
    tn_tensor *have = e->out[i] != NULL ? tn_eval_out(e, i) : NULL;
    if (have != NULL && have->dtype == dtype && have->rank == rank && have->contiguous &&
        (rank == 0 || memcmp(have->dims, dims, (size_t)rank * sizeof *dims) == 0))
        return have;
    tn_tensor *made = tn_tensor_new(e->heap, dtype, rank, dims);
    if (made == NULL || tn_eval_set(e, i, tn_tensor_object(made)) != TN_OK)
        return NULL;
    return made;
}

tn_status tn_eval_same_shape(tn_eval *e, uint32_t first) {
    const tn_tensor *a = tn_eval_in(e, first);
    for (uint32_t i = first + 1; i < e->inputs; i++) {
        const tn_tensor *b = tn_eval_in(e, i);
        if (a->rank != b->rank || memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) != 0) {
            char left[256], right[256];
            return tn_eval_fail(e, TN_ERR_INPUT, "operands of different shapes: %s and %s",
                                tn_tensor_describe(a, left, sizeof left), tn_tensor_describe(b, right, sizeof right));
        }
    }
    return TN_OK;
}

typedef struct elementwise {
    tn_dtype in, out;
    tn_domain domain, result; /* of the operands and of the result */
    uint32_t inputs;
    tn_run_function *run;
} elementwise;

typedef union run_buffer {
    float f32[TN_RUN];
    double f64[TN_RUN];
    int64_t i64[TN_RUN];
    uint64_t u64[TN_RUN];
} run_buffer;

static void run_row(void *ctx, int64_t n, void *const *data, const int64_t *strides) {
    const elementwise *work = ctx;
    run_buffer buffer[2], result;
    const void *in[2] = {&buffer[0], &buffer[1]};
    for (int64_t at = 0; at < n; at += TN_RUN) {
        int64_t count = n - at < TN_RUN ? n - at : TN_RUN;
        for (uint32_t i = 0; i < work->inputs; i++)
            tn_run_load(work->in, work->domain, data[i + 1], at * strides[i + 1], strides[i + 1], count, &buffer[i]);
        work->run(count, in, &result);
        tn_run_store(work->out, work->result, &result, count, data[0], at * strides[0], strides[0]);
    }
}

tn_status tn_eval_elementwise_with(tn_eval *e, tn_domain domain, tn_run_function *run) {
    const tn_scalar_info *info = tn_scalar_describe((tn_scalar_op)tn_node_op(e->graph, e->node)->code);
    const tn_tensor *a = tn_eval_in(e, 0);
    tn_dtype in = (tn_dtype)a->dtype;
    if (run == NULL)
        return tn_eval_fail(e, TN_ERR_UNSUPPORTED, "not supported: %s", tn_dtype_name(in));
    TN_TRY(tn_eval_same_shape(e, 0));
    tn_tensor *out = tn_eval_result(e, 0, info->boolean ? TN_BOOL : in, a->rank, a->dims);
    if (out == NULL)
        return tn_error_status();
    elementwise work = {.in = in,
                        .out = (tn_dtype)out->dtype,
                        .domain = domain,
                        .result = info->boolean ? TN_DOMAIN_U64 : domain,
                        .inputs = info->operands,
                        .run = run};
    size_t size = (size_t)tn_dtype_bits(in) / 8;
    tn_walk_operand operand[3] = {{out->data, out->strides, (size_t)tn_dtype_bits(work.out) / 8}};
    for (uint32_t i = 0; i < work.inputs; i++)
        operand[i + 1] = (tn_walk_operand){tn_eval_in(e, i)->data, tn_eval_in(e, i)->strides, size};
    tn_walk_split(e->pool, out->rank, out->dims, (int)work.inputs + 1, operand, run_row, &work);
    return TN_OK;
}

tn_status tn_eval_elementwise(tn_eval *e) {
    tn_scalar_op op = (tn_scalar_op)tn_node_op(e->graph, e->node)->code;
    tn_domain domain = tn_scalar_domain(op, (tn_dtype)tn_eval_in(e, 0)->dtype);
    return tn_eval_elementwise_with(e, domain, tn_scalar_run(op, domain));
}
