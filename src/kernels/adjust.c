/* Elementary functions of host instructions, by the kernels' vector math. Other operations are exact and the same everywhere. */
#include <string.h>

#include "kernels/kernels.h"
#include "kernels/machine.h"
#include "lower/plan.h"

static bool is_elementary(int code) {
    switch ((tn_scalar_op)code) {
    case TN_SCALAR_EXP:
    case TN_SCALAR_EXPM1:
    case TN_SCALAR_LOG:
    case TN_SCALAR_LOG1P:
    case TN_SCALAR_SIN:
    case TN_SCALAR_COS:
    case TN_SCALAR_TANH:
    case TN_SCALAR_ERF:
    case TN_SCALAR_SIGMOID:
    case TN_SCALAR_RSQRT:
    case TN_SCALAR_POW: return true;
    default: return false;
    }
}

/* Whether operand i is a tensor of `out`'s type with as many elements. */
static bool fits(const tn_eval *e, uint32_t i, const tn_tensor *out) {
    const tn_object *in = e->in[i];
    const tn_tensor *t = (const tn_tensor *)in;
    return in && in->kind == TN_KIND_TENSOR && t->dtype == out->dtype && t->count == out->count;
}

tn_status tn_kernels_adjust(void *ctx, tn_eval *e) {
    const tn_plan *p = ctx;
    const tn_op *op = tn_node_op(e->graph, e->node);
    if (op->lowering != TN_LOWER_SCALAR || e->outputs != 1 || !is_elementary(op->code) || !e->out[0] ||
        e->out[0]->kind != TN_KIND_TENSOR || e->inputs < 1 || e->inputs > 2)
        return TN_OK;
    tn_tensor *out = (tn_tensor *)e->out[0];
    tn_dtype dtype = (tn_dtype)out->dtype;
    const tn_strip_level *level = tn_strip_best(p->isa);
    tn_strip_fn *run = level->op[op->code][TN_STRIP_F32];
    if (!tn_dtype_is_float(dtype) || tn_strip_type_of(dtype) != TN_STRIP_F32 || !level->load[dtype] || !run ||
        !out->contiguous || !fits(e, 0, out) || !fits(e, e->inputs - 1, out))
        return TN_OK;
    tn_tensor *in[2] = {NULL, NULL};
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < e->inputs && status == TN_OK; i++)
        if (!(in[i] = tn_tensor_contiguous(e->heap, tn_eval_in(e, i))))
            status = tn_error_status();
    float x[2][TN_STRIP_LENGTH], y[TN_STRIP_LENGTH];
    size_t element = (size_t)tn_dtype_bits(dtype) / 8;
    for (int64_t at = 0; status == TN_OK && at < out->count; at += TN_STRIP_LENGTH) {
        int64_t n = out->count - at < TN_STRIP_LENGTH ? out->count - at : TN_STRIP_LENGTH;
        for (uint32_t i = 0; i < e->inputs; i++) {
            _Alignas(16) char line[TN_STRIP_LENGTH * sizeof(float)]; /* elements may lie at any byte */
            memcpy(line, (const char *)in[i]->data + (size_t)at * element, (size_t)n * element);
            level->load[dtype](n, line, 1, x[i]);
        }
        run(n, x[0], x[1], NULL, y);
        if (level->round[dtype])
            level->round[dtype](n, y, NULL, NULL, y);
        level->store[dtype](n, y, (char *)out->data + (size_t)at * element, 1);
    }
    for (int i = 0; i < 2; i++)
        tn_tensor_destroy(in[i]);
    return status;
}
