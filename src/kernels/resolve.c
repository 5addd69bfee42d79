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

static void resolve_access(const tn_kernel_args *args, const tn_access *a, int axes, tn_resolved_access *out,
                           tn_resolved_guard **guard) {
    out->dtype = (tn_dtype)a->dtype;
    out->element = tn_dtype_bits(out->dtype) / 8;
    for (int i = 0; i < axes; i++)
        out->stride[i] = args->size[a->stride[i]];
    out->guards = a->guards;
    if (!a->guards)
        return;
    out->guard = *guard;
    *guard += a->guards;
    for (int g = 0; g < a->guards; g++) {
        for (int i = 0; i < axes; i++)
            out->guard[g].coef[i] = args->size[a->guard[g].coef[i]];
        out->guard[g].offset = args->size[a->guard[g].offset];
        out->guard[g].extent = args->size[a->guard[g].extent];
    }
    set_fill(out, a);
}

void tn_resolve_bases(const tn_resolved *r, const tn_kernel_args *args) {
    const tn_kernel *k = r->kernel;
    for (int i = 0; i < k->operands + k->outputs; i++) {
        const tn_access *a = i < k->operands ? &k->operand[i] : &k->output[i - k->operands];
        r->operand[i].base = (char *)args->slot[a->slot] + args->size[a->offset] * r->operand[i].element;
    }
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

void tn_resolved_merge(tn_resolved *r) {
    order_axes(r);
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

size_t tn_resolved_bytes(const tn_kernel *k) {
    size_t accesses = (size_t)k->operands + k->outputs, guards = 0;
    for (int i = 0; i < k->operands; i++)
        guards += k->operand[i].guards;
    for (int i = 0; i < k->outputs; i++)
        guards += k->output[i].guards;
    size_t own = sizeof(tn_resolved) + accesses * sizeof(tn_resolved_access) + guards * sizeof(tn_resolved_guard);
    return (own + 63) & ~(size_t)63;
}

void tn_resolve_sizes(tn_resolved *r, const tn_kernel_args *args, tn_resolve_how how) {
    const tn_kernel *k = args->kernel;
    tn_resolved_access *access = (tn_resolved_access *)(void *)(r + 1);
    tn_resolved_guard *guard = (tn_resolved_guard *)(void *)(access + k->operands + k->outputs);
    *r = (tn_resolved){.kernel = k,
                       .outer = k->outer,
                       .inner = k->inner,
                       .outputs_count = 1,
                       .inner_count = 1,
                       .operand = access,
                       .output = access + k->operands,
                       .extra = (char *)r + tn_resolved_bytes(k)};
    int axes = k->outer + k->inner;
    for (int i = 0; i < axes; i++) {
        r->extent[i] = args->size[k->extent[i]];
        *(i < k->outer ? &r->outputs_count : &r->inner_count) *= r->extent[i];
    }
    for (int i = 0; i < k->operands; i++)
        resolve_access(args, &k->operand[i], axes, &r->operand[i], &guard);
    for (int i = 0; i < k->outputs; i++)
        resolve_access(args, &k->output[i], k->outer, &r->output[i], &guard);
    if (how == TN_RESOLVE_MERGED)
        tn_resolved_merge(r);
}

tn_resolved *tn_resolve(const tn_kernel_args *args, tn_resolve_how how, size_t extra) {
    const tn_kernel *k = args->kernel;
    if (k->outer + k->inner > TN_MACHINE_AXES || k->operands + k->steps + k->epilogue + 1 > TN_MACHINE_REGISTERS) {
        tn_fail(TN_ERR_INTERNAL, "a kernel is larger than the machine");
        return NULL;
    }
    tn_resolved *r = args->kept ? *args->kept : NULL;
    if (!r) {
        r = tn_alloc(args->heap, tn_resolved_bytes(k) + extra);
        if (!r)
            return NULL;
        tn_resolve_sizes(r, args, how);
    }
    if (args->kept)
        *args->kept = r;
    r->kernel = k;
    tn_resolve_bases(r, args);
    return r;
}

void tn_resolved_free(const tn_kernel_args *args, tn_resolved *r) {
    if (!args->kept)
        tn_free(args->heap, r);
}
