#include "lower/cost.h"

#include <string.h>

#include "ops/winograd.h"

static double count_of(const tn_kernel *k, const int64_t *size, int first, int end) {
    double n = 1;
    for (int i = first; i < end; i++)
        n *= (double)size[k->extent[i]];
    return n;
}

/* Bytes of the elements that an access reaches: no more than its slot has. */
static double touched(const tn_plan *p, const tn_kernel *k, const tn_access *a, int axes, const int64_t *size) {
    double element = (double)tn_dtype_bits((tn_dtype)a->dtype) / 8, bytes = element;
    for (int i = 0; i < axes; i++)
        if (size[a->stride[i]])
            bytes *= (double)size[k->extent[i]];
    const tn_slot *s = &p->slot.data[a->slot];
    double most = s->kind == TN_SLOT_ARENA ? (double)size[s->bytes]
                  : s->tensor              ? (double)tn_tensor_bytes(s->tensor)
                                           : bytes;
    return bytes < most ? bytes : most;
}

/* Multiply-adds of a convolution by tiles; its outer axes are images, channels, rows and columns. */
static double winograd_products(const tn_kernel *k, const int64_t *size) {
    const tn_winograd *t = tn_winograd_transforms(k->winograd);
    int64_t tall = (size[k->extent[2]] + t->m - 1) / t->m, wide = (size[k->extent[3]] + t->m - 1) / t->m;
    return (double)size[k->extent[0]] * (double)tall * (double)wide * t->n * t->n * (double)size[k->extent[1]] *
           (double)size[k->extent[k->outer + k->inner - 1]];
}

tn_kernel_cost tn_kernel_cost_of(const tn_plan *p, const tn_kernel *k, const int64_t *size) {
    int axes = k->outer + k->inner;
    double outputs = count_of(k, size, 0, k->outer), inner = count_of(k, size, k->outer, axes);
    tn_kernel_cost c = {0};
    for (int i = 0; i < k->parts; i++) {
        tn_kernel_cost part = tn_kernel_cost_of(p, &k->part[i], size);
        c.operations += part.operations;
        c.contract_operations += part.contract_operations;
        c.bytes += part.bytes;
    }
    if (k->parts)
        return c;
    if (k->kind == TN_KERNEL_CONTRACT)
        c.contract_operations = 2 * (k->winograd ? winograd_products(k, size) : outputs * inner);
    double before = k->kind == TN_KERNEL_REDUCE ? k->steps + 1.0 : k->steps;
    c.operations = c.contract_operations + outputs * (inner * before + k->epilogue);
    if (outputs == 0 || inner == 0)
        return c;
    for (int i = 0; i < k->operands; i++)
        c.bytes += i == 1 && k->packed_only ? (double)k->packed_bytes : touched(p, k, &k->operand[i], axes, size);
    for (int i = 0; i < k->outputs; i++)
        c.bytes += touched(p, k, &k->output[i], k->outer, size);
    return c;
}

static bool access_known(const tn_access *a, int axes, const uint8_t *known) {
    for (int i = 0; i < axes; i++)
        if (!known[a->stride[i]])
            return false;
    return true;
}

static bool kernel_known(const tn_kernel *k, const uint8_t *known) {
    int axes = k->outer + k->inner;
    for (int i = 0; i < k->parts; i++)
        if (!kernel_known(&k->part[i], known))
            return false;
    if (k->parts)
        return true;
    for (int i = 0; i < axes; i++)
        if (!known[k->extent[i]])
            return false;
    for (int i = 0; i < k->operands; i++)
        if (!access_known(&k->operand[i], axes, known))
            return false;
    for (int i = 0; i < k->outputs; i++)
        if (!access_known(&k->output[i], k->outer, known))
            return false;
    return true;
}

/* The arena slots of a segment, as a binding places them. */
static tn_status add_segment(const tn_plan *p, uint32_t segment, const int64_t *size, const uint8_t *known,
                             tn_lifetime *life, tn_plan_cost *c) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->slot.len; i++) {
        const tn_slot *s = &p->slot.data[i];
        if (s->kind != TN_SLOT_ARENA || s->segment != segment)
            continue;
        if (!known[s->bytes] || size[s->bytes] < 0)
            c->unknown++;
        else if (s->fetched)
            c->output_bytes += (uint64_t)size[s->bytes];
        else if (tn_plan_lifetime(p, i, &life[n]))
            life[n++].bytes = (size_t)size[s->bytes];
    }
    size_t total = 0;
    TN_TRY(tn_planner_place(p->heap, n, life, &total));
    c->arena_bytes += total;
    c->live_bytes += tn_planner_bound(p->heap, n, life);
    return TN_OK;
}

static tn_status add_all(const tn_plan *p, const tn_dim_env *env, int64_t *size, uint8_t *known, tn_lifetime *life,
                         tn_plan_cost *c) {
    for (uint32_t i = 0; i < p->size.len; i++)
        known[i] = tn_dim_eval(&p->graph->dims, env, p->size.data[i], &size[i]);
    for (uint32_t i = 0; i < p->code.len; i++) {
        const tn_instruction *in = &p->code.data[i];
        c->host_calls += in->op == TN_DO_HOST;
        if (in->op != TN_DO_CALL)
            continue;
        const tn_kernel *k = &p->kernel.data[in->a];
        c->calls++;
        if (!kernel_known(k, known)) {
            c->unknown++;
            continue;
        }
        tn_kernel_cost one = tn_kernel_cost_of(p, k, size);
        c->operations += one.operations;
        c->contract_operations += one.contract_operations;
        c->bytes += one.bytes;
    }
    for (uint32_t s = 0; s <= p->segments; s++)
        TN_TRY(add_segment(p, s, size, known, life, c));
    return TN_OK;
}

tn_status tn_plan_cost_of(const tn_plan *p, const tn_dim_env *env, tn_plan_cost *c) {
    *c = (tn_plan_cost){0};
    int64_t *size = tn_alloc_array(p->heap, (size_t)p->size.len + 1, sizeof *size);
    uint8_t *known = tn_alloc_array(p->heap, (size_t)p->size.len + 1, sizeof *known);
    tn_lifetime *life = tn_alloc_array(p->heap, (size_t)p->slot.len + 1, sizeof *life);
    tn_status status = size && known && life ? add_all(p, env, size, known, life, c) : TN_ERR_MEMORY;
    tn_free(p->heap, size);
    tn_free(p->heap, known);
    tn_free(p->heap, life);
    return status;
}

tn_status tn_plan_visit_costs(const tn_plan *p, const tn_dim_env *env, tn_cost_visit *visit, void *ctx,
                              uint32_t *unknown) {
    int64_t *size = tn_alloc_array(p->heap, (size_t)p->size.len + 1, sizeof *size);
    uint8_t *known = tn_alloc_array(p->heap, (size_t)p->size.len + 1, sizeof *known);
    tn_status status = size && known ? TN_OK : TN_ERR_MEMORY;
    *unknown = 0;
    for (uint32_t i = 0; status == TN_OK && i < p->size.len; i++)
        known[i] = tn_dim_eval(&p->graph->dims, env, p->size.data[i], &size[i]);
    for (uint32_t i = 0; status == TN_OK && i < p->kernel.len; i++) {
        const tn_kernel *k = &p->kernel.data[i];
        if (kernel_known(k, known)) {
            tn_kernel_cost cost = tn_kernel_cost_of(p, k, size);
            visit(ctx, k, &cost);
        } else
            ++*unknown;
    }
    tn_free(p->heap, size);
    tn_free(p->heap, known);
    return status;
}
