/* The strip machine's loads, stores and steps. */
#include "kernels/machine.h"

#include <math.h>
#include <string.h>

void tn_machine_inside(const tn_resolved_access *a, int axes, int axis, const int64_t *at, int64_t n, int64_t *low,
                       int64_t *high) {
    int64_t lo = 0, hi = n;
    for (int g = 0; g < a->guards; g++) {
        const tn_resolved_guard *q = &a->guard[g];
        int64_t first = q->offset, step = axis >= 0 ? q->coef[axis] : 0;
        for (int i = 0; i < axes; i++)
            first += q->coef[i] * at[i];
        if (step == 0) {
            if (first < 0 || first >= q->extent)
                hi = 0;
            continue;
        }
        /* 0 <= first + step * i < extent, step > 0 */
        int64_t from = first >= 0 ? 0 : (-first + step - 1) / step;
        int64_t to = first >= q->extent ? 0 : (q->extent - first + step - 1) / step;
        lo = from > lo ? from : lo;
        hi = to < hi ? to : hi;
    }
    *low = lo < hi ? lo : 0;
    *high = lo < hi ? hi : 0;
}

static void fill_run(tn_domain domain, const tn_resolved_access *a, int64_t from, int64_t to, tn_register *r) {
    for (int64_t i = from; i < to; i++)
        if (domain == TN_DOMAIN_F32)
            r->f[i] = a->fill.f;
        else
            r->u[i] = a->fill.u;
}

static void *item(tn_domain domain, tn_register *r, int64_t i) {
    return domain == TN_DOMAIN_F32 ? (void *)&r->f[i] : (void *)&r->u[i];
}

void tn_machine_load(const tn_resolved *r, const tn_resolved_access *a, int axis, const int64_t *at, int64_t n,
                     tn_register *to) {
    int axes = r->outer + r->inner;
    int64_t stride = axis >= 0 ? a->stride[axis] : 0, low = 0, high = n;
    const char *from = a->base + tn_machine_offset(a, axes, at) * a->element;
    tn_domain domain = tn_register_domain(a->dtype);
    if (a->guards) {
        tn_machine_inside(a, axes, axis, at, n, &low, &high);
        fill_run(domain, a, 0, low, to);
        fill_run(domain, a, high, n, to);
        if (low >= high)
            return;
        from += low * stride * a->element;
    }
    tn_run_load(a->dtype, domain, from, 0, stride, high - low, item(domain, to, low));
}

void tn_machine_store(const tn_resolved *r, const tn_resolved_access *a, int axis, const int64_t *at, int64_t n,
                      const tn_register *from) {
    char *to = a->base + tn_machine_offset(a, r->outer, at) * a->element;
    tn_run_store(a->dtype, tn_register_domain(a->dtype), from, n, to, 0, axis >= 0 ? a->stride[axis] : 0);
}

/* --- steps ------------------------------------------------------------------------------------------------------------------------- */

/* Rounds a register to its dtype where that is narrower than the register. */
static void round_to(tn_dtype dtype, int64_t n, tn_register *r) {
    if (dtype == TN_F32 || dtype == TN_F64 || dtype == TN_I64 || dtype == TN_U64 || dtype == TN_BOOL)
        return;
    uint32_t narrow[TN_RUN];
    tn_domain domain = tn_register_domain(dtype);
    tn_run_store(dtype, domain, r, n, narrow, 0, 1);
    tn_run_load(dtype, domain, narrow, 0, 1, n, r);
}

static void widen(int64_t n, const tn_register *from, tn_register *to) {
    for (int64_t i = 0; i < n; i++)
        to->d[i] = from->f[i];
}

static void narrow(int64_t n, const tn_register *from, tn_register *to) {
    for (int64_t i = 0; i < n; i++)
        to->f[i] = (float)from->d[i];
}

static void step_cast(const tn_scalar_step *s, int64_t n, const tn_register *a, tn_register *out) {
    uint64_t narrow_run[TN_RUN];
    tn_dtype from = (tn_dtype)s->from, to = (tn_dtype)s->dtype;
    tn_run_store(to, tn_register_domain(from), a, n, narrow_run, 0, 1);
    tn_run_load(to, tn_register_domain(to), narrow_run, 0, 1, n, out);
}

static void step_select(const tn_scalar_step *s, int64_t n, const tn_register *c, const tn_register *a,
                        const tn_register *b, tn_register *out) {
    if (tn_register_domain((tn_dtype)s->dtype) == TN_DOMAIN_F32)
        for (int64_t i = 0; i < n; i++)
            out->f[i] = c->u[i] ? a->f[i] : b->f[i];
    else
        for (int64_t i = 0; i < n; i++)
            out->u[i] = c->u[i] ? a->u[i] : b->u[i];
}

static void step_is_inf(const tn_scalar_step *s, int64_t n, const tn_register *a, tn_register *out) {
    bool wide = s->from == TN_F64;
    for (int64_t i = 0; i < n; i++) {
        double x = wide ? a->d[i] : (double)a->f[i];
        out->u[i] = isinf(x) && (x > 0 ? s->flags & 1 : s->flags & 2) ? 1 : 0;
    }
}

static void step_run(const tn_scalar_step *s, int64_t n, const tn_register *a, const tn_register *b, tn_register *out) {
    tn_scalar_op op = (tn_scalar_op)s->op;
    tn_dtype from = (tn_dtype)s->from;
    tn_domain domain = tn_scalar_domain(op, from);
    tn_register wide[2], result;
    const void *in[2] = {a, b};
    bool widened = domain == TN_DOMAIN_F64 && tn_register_domain(from) == TN_DOMAIN_F32;
    if (widened) {
        widen(n, a, &wide[0]);
        in[0] = &wide[0];
        if (tn_scalar_describe(op)->operands > 1) {
            widen(n, b, &wide[1]);
            in[1] = &wide[1];
        }
    }
    bool boolean = tn_scalar_describe(op)->boolean;
    if (!widened || boolean) {
        tn_scalar_run(op, domain)(n, in, out);
    } else {
        tn_scalar_run(op, domain)(n, in, &result);
        /* one rounding: f64 to the dtype itself */
        if (s->dtype == TN_F32)
            narrow(n, &result, out);
        else {
            uint32_t half[TN_RUN];
            tn_run_store((tn_dtype)s->dtype, TN_DOMAIN_F64, &result, n, half, 0, 1);
            tn_run_load((tn_dtype)s->dtype, TN_DOMAIN_F32, half, 0, 1, n, out);
        }
        return;
    }
    if (!boolean)
        round_to((tn_dtype)s->dtype, n, out);
}

void tn_machine_steps(const tn_kernel *k, uint32_t first, uint32_t count, uint32_t base, int64_t n, tn_register *reg) {
    for (uint32_t j = 0; j < count; j++) {
        const tn_scalar_step *s = &k->step[first + j];
        tn_register *out = &reg[base + j];
        switch ((tn_scalar_op)s->op) {
        case TN_SCALAR_NONE: *out = reg[s->a]; break;
        case TN_SCALAR_CAST: step_cast(s, n, &reg[s->a], out); break;
        case TN_SCALAR_SELECT: step_select(s, n, &reg[s->a], &reg[s->b], &reg[s->c], out); break;
        case TN_SCALAR_IS_INF: step_is_inf(s, n, &reg[s->a], out); break;
        default: step_run(s, n, &reg[s->a], &reg[s->b], out); break;
        }
    }
}
