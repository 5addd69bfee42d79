/* Binding a kernel to sizes and addresses. */
#include "kernels/machine.h"

#include <string.h>

static void set_fill(tn_resolved_access *r, const tn_access *a) {
    if (a->fill_identity)
        tn_scalar_identity((tn_scalar_op)a->fill_identity, r->dtype, &r->fill);
    else if (tn_dtype_is_float(r->dtype))
        tn_store_f64(r->dtype, &r->fill, 0, a->fill);
    else
        tn_store_i64(r->dtype, &r->fill, 0, r->dtype == TN_U64 ? (int64_t)(uint64_t)a->fill : (int64_t)a->fill);
}

static bool resolve_access(tn_resolved *r, const tn_kernel_args *args, const tn_access *a, int axes,
                           tn_resolved_access *out) {
    out->dtype = (tn_dtype)a->dtype;
    out->element = tn_dtype_bits(out->dtype) / 8;
    out->base = (char *)args->slot[a->slot] + args->size[a->offset] * out->element;
    for (int i = 0; i < axes; i++)
        out->stride[i] = args->size[a->stride[i]];
    out->guards = a->guards;
    if (a->guards) {
        out->guard = tn_arena_alloc(&r->arena, a->guards * sizeof *out->guard);
        if (!out->guard)
            return false;
        for (int g = 0; g < a->guards; g++) {
            for (int i = 0; i < axes; i++)
                out->guard[g].coef[i] = args->size[a->guard[g].coef[i]];
            out->guard[g].offset = args->size[a->guard[g].offset];
            out->guard[g].extent = args->size[a->guard[g].extent];
        }
        set_fill(out, a);
    }
    return true;
}

static bool guards_use(const tn_resolved_access *a, int axis) {
    for (int g = 0; g < a->guards; g++)
        if (a->guard[g].coef[axis])
            return true;
    return false;
}

/* Whether axis i + 1 walks on where axis i steps, in an access. */
static bool walks_on(const tn_resolved *r, const tn_resolved_access *a, int i) {
    return a->stride[i] == a->stride[i + 1] * r->extent[i + 1] && !guards_use(a, i) && !guards_use(a, i + 1);
}

static void drop_axis(tn_resolved_access *a, int axis, int axes) {
    for (int i = axis; i + 1 < axes; i++) {
        a->stride[i] = a->stride[i + 1];
        for (int g = 0; g < a->guards; g++)
            a->guard[g].coef[i] = a->guard[g].coef[i + 1];
    }
}

static void remove_axis(tn_resolved *r, int axis) {
    int axes = r->outer + r->inner;
    for (int k = 0; k < r->kernel->operands; k++)
        drop_axis(&r->operand[k], axis, axes);
    for (int k = 0; k < r->kernel->outputs; k++)
        drop_axis(&r->output[k], axis, axes);
    memmove(r->extent + axis, r->extent + axis + 1, (size_t)(axes - axis - 1) * sizeof *r->extent);
    if (axis < r->outer)
        r->outer--;
    else
        r->inner--;
}

static void swap_axes(tn_resolved_access *a, int i, int j) {
    int64_t t = a->stride[i];
    a->stride[i] = a->stride[j];
    a->stride[j] = t;
    for (int g = 0; g < a->guards; g++) {
        t = a->guard[g].coef[i];
        a->guard[g].coef[i] = a->guard[g].coef[j];
        a->guard[g].coef[j] = t;
    }
}

/* Outer axes in the order of the first output's memory, so that runs follow it. No bit depends on their order. */
static void order_axes(tn_resolved *r) {
    if (!r->kernel->outputs)
        return;
    const int64_t *stride = r->output[0].stride;
    for (int n = 1; n < r->outer; n++)
        for (int i = n; i > 0 && stride[i] > stride[i - 1] && r->extent[i] > 1; i--) {
            for (int k = 0; k < r->kernel->operands; k++)
                swap_axes(&r->operand[k], i, i - 1);
            for (int k = 0; k < r->kernel->outputs; k++)
                swap_axes(&r->output[k], i, i - 1);
            int64_t t = r->extent[i];
            r->extent[i] = r->extent[i - 1];
            r->extent[i - 1] = t;
        }
}

static void merge_axes(tn_resolved *r) {
    /* axes of one element say nothing, unless a guard's offset alone decides there: coefficients of index 0 are 0 */
    for (int i = r->outer + r->inner - 1; i >= 0; i--)
        if (r->extent[i] == 1)
            remove_axis(r, i);
    for (int i = r->outer + r->inner - 2; i >= 0; i--) {
        if (i == r->outer - 1)
            continue;
        bool all = true;
        for (int k = 0; k < r->kernel->operands && all; k++)
            all = walks_on(r, &r->operand[k], i);
        for (int k = 0; k < r->kernel->outputs && all && i < r->outer; k++)
            all = walks_on(r, &r->output[k], i);
        if (!all)
            continue;
        int64_t merged = r->extent[i] * r->extent[i + 1];
        /* the later axis keeps the small stride */
        r->extent[i + 1] = merged;
        remove_axis(r, i);
    }
}

tn_status tn_resolve_plain(tn_resolved *r, const tn_kernel_args *args) {
    const tn_kernel *k = args->kernel;
    *r = (tn_resolved){.kernel = k, .outer = k->outer, .inner = k->inner};
    tn_arena_init(&r->arena, args->heap);
    int axes = k->outer + k->inner;
    if (axes > TN_MACHINE_AXES || k->operands + k->steps + k->epilogue + 1 > TN_MACHINE_REGISTERS)
        return tn_fail(TN_ERR_INTERNAL, "a kernel is larger than the machine");
    r->operand = tn_arena_alloc(&r->arena, k->operands * sizeof *r->operand + 1);
    r->output = tn_arena_alloc(&r->arena, k->outputs * sizeof *r->output + 1);
    bool ok = r->operand && r->output;
    r->outputs_count = r->inner_count = 1;
    for (int i = 0; i < axes; i++) {
        r->extent[i] = args->size[k->extent[i]];
        *(i < k->outer ? &r->outputs_count : &r->inner_count) *= r->extent[i];
    }
    for (int i = 0; i < k->operands && ok; i++)
        ok = resolve_access(r, args, &k->operand[i], axes, &r->operand[i]);
    for (int i = 0; i < k->outputs && ok; i++)
        ok = resolve_access(r, args, &k->output[i], k->outer, &r->output[i]);
    if (!ok) {
        tn_arena_free(&r->arena);
        return TN_ERR_MEMORY;
    }
    return TN_OK;
}

tn_status tn_resolve(tn_resolved *r, const tn_kernel_args *args) {
    TN_TRY(tn_resolve_plain(r, args));
    order_axes(r);
    merge_axes(r);
    return TN_OK;
}

void tn_resolved_free(tn_resolved *r) {
    tn_arena_free(&r->arena);
}
