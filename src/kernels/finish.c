#include "kernels/finish.h"

#include <math.h>

#include "kernels/half_float.h"
#include "kernels/machine.h"
#include "ops/scalar.h"

/* How an operand is read as columns pass. False: in none of the forms. */
static bool form_of(const tn_resolved *r, const tn_resolved_access *a, int column, tn_finish_form *form) {
    if (a->dtype != r->kernel->reduced || a->guards)
        return false;
    bool columns = column >= 0 && r->extent[column] > 1, rows = false;
    int64_t step = columns ? a->stride[column] : 0;
    for (int i = 0; i < r->outer; i++)
        rows |= i != column && r->extent[i] > 1 && a->stride[i] != 0;
    *form = rows ? TN_FINISH_ALL : step ? TN_FINISH_COLUMNS : TN_FINISH_ONE;
    return !columns || step == 1 || *form == TN_FINISH_ONE;
}

static bool op_of(const tn_scalar_step *s, bool left, int dtype, tn_finish_op *op) {
    switch (s->op) {
    case TN_SCALAR_ADD: *op = TN_FINISH_ADD; break;
    case TN_SCALAR_MUL: *op = TN_FINISH_MUL; break;
    case TN_SCALAR_MAX: *op = TN_FINISH_MAX; break;
    case TN_SCALAR_MIN: *op = TN_FINISH_MIN; break;
    case TN_SCALAR_SUB: *op = left ? TN_FINISH_SUB : TN_FINISH_FROM; break;
    case TN_SCALAR_DIV: *op = left ? TN_FINISH_DIV : TN_FINISH_INTO; break;
    default: return false;
    }
    return s->dtype == dtype && s->from == dtype && (*op <= TN_FINISH_MIN || dtype == TN_F32);
}

static float element(int dtype, const void *at) {
    if (dtype == TN_F32)
        return *(const float *)at;
    uint16_t half = *(const uint16_t *)at;
    return dtype == TN_F16 ? tn_vm_f32_of_f16(half) : tn_vm_f32_of_bf16(half);
}

bool tn_finish_make(tn_finish *f, const tn_resolved *r, int column) {
    const tn_kernel *k = r->kernel;
    const uint16_t sum = (uint16_t)(k->operands + k->steps);
    uint16_t made = sum;
    f->steps = f->all = 0;
    f->dtype = k->reduced;
    if (k->epilogue > TN_FINISH_STEPS || k->outputs != 1 || r->output[0].dtype != k->reduced ||
        (f->dtype != TN_F32 && f->dtype != TN_F16 && f->dtype != TN_BF16))
        return false;
    int kept = -1;
    for (int i = 0; i < k->epilogue; i++, made++) {
        const tn_scalar_step *s = &k->step[k->steps + i];
        tn_finish_step *to = &f->step[f->steps++];
        *to = (tn_finish_step){.form = TN_FINISH_ONE};
        if (tn_scalar_describe((tn_scalar_op)s->op)->operands == 1) {
            to->op = TN_FINISH_CALL;
            to->call = k->program->level->op[s->op][TN_STRIP_F32];
            to->sigmoid = s->op == TN_SCALAR_SIGMOID;
            if (s->a != made || s->dtype != TN_F32 || s->from != TN_F32 || f->dtype != TN_F32 || !to->call)
                return false;
            continue;
        }
        uint16_t other = s->a == made ? s->b : s->a;
        tn_finish_op op;
        tn_finish_form form;
        if ((s->a == made) == (s->b == made) || !op_of(s, s->a == made, f->dtype, &op))
            return false;
        if (other >= sum) { /* what was made before: one such value is kept */
            if ((kept >= 0 && kept != other - sum) || op == TN_FINISH_MAX || op == TN_FINISH_MIN || f->dtype != TN_F32)
                return false;
            kept = other - sum;
            f->step[kept].keep = true;
            to->op = (uint8_t)op;
            to->form = TN_FINISH_KEPT;
            continue;
        }
        if (other >= k->operands || !form_of(r, &r->operand[other], column, &form))
            return false;
        const void *at = r->operand[other].base;
        float one = form == TN_FINISH_ONE ? element(f->dtype, at) : 0;
        bool bound = op == TN_FINISH_MAX || op == TN_FINISH_MIN;
        if (bound && (form != TN_FINISH_ONE || isnan(one) || (one == 0 && op == TN_FINISH_MIN && signbit(one))))
            return false;
        if (form == TN_FINISH_ALL && f->all)
            return false;
        if (form == TN_FINISH_ALL)
            f->all = other;
        *to =
            (tn_finish_step){.op = (uint8_t)op, .form = (uint8_t)form, .operand = (uint8_t)other, .one = one, .at = at};
    }
    return k->result[0] == made;
}

/* The next step if it is of this operation and form; else NULL. */
static const tn_finish_step *next(const tn_finish *f, int *i, tn_finish_op op, tn_finish_form form) {
    const tn_finish_step *s = &f->step[*i];
    if (*i == f->steps || s->op != op || (op != TN_FINISH_CALL && s->form != form))
        return NULL;
    (*i)++;
    return s;
}

/* Bounds, in either order. */
static bool take_bounds(const tn_finish *f, int *i, tn_finish_end *e) {
    const tn_finish_step *min = next(f, i, TN_FINISH_MIN, TN_FINISH_ONE),
                         *max = next(f, i, TN_FINISH_MAX, TN_FINISH_ONE);
    if (!min)
        min = next(f, i, TN_FINISH_MIN, TN_FINISH_ONE);
    if (max) {
        e->low = max->one;
        e->zero = e->low == 0 ? e->low : -0.0f;
    }
    if (min)
        e->high = min->one;
    return (max || min) && e->low < e->high;
}

static bool take_swish(const tn_finish *f, int *i, tn_finish_end *e) {
    const tn_finish_step *s;
    if (*i == f->steps || !f->step[*i].keep)
        return false;
    if ((s = next(f, i, TN_FINISH_MUL, TN_FINISH_ONE)))
        e->by = s->one;
    if ((s = next(f, i, TN_FINISH_ADD, TN_FINISH_ONE)))
        e->plus = s->one;
    if (!take_bounds(f, i, e) || !next(f, i, TN_FINISH_MUL, TN_FINISH_KEPT))
        return false;
    if ((s = next(f, i, TN_FINISH_DIV, TN_FINISH_ONE)))
        e->over = s->one;
    if ((s = next(f, i, TN_FINISH_MUL, TN_FINISH_ONE)))
        e->after = s->one;
    if ((s = next(f, i, TN_FINISH_ADD, TN_FINISH_ONE)))
        e->more = s->one;
    e->goes_on = e->after != 1 || e->more != 0 || !signbit(e->more);
    e->form = TN_ENDS_SWISH;
    return true;
}

/* Whether division by it is multiplication by its reciprocal. */
static bool is_power_of_two(float x) {
    int exponent;
    return frexpf(fabsf(x), &exponent) == 0.5f && exponent > -100 && exponent < 100;
}

static const tn_finish_end neutral = {.low = -INFINITY,
                                      .high = INFINITY,
                                      .zero = -0.0f,
                                      .scale = 1,
                                      .by = 1,
                                      .plus = -0.0f,
                                      .over = 1,
                                      .shift = -0.0f,
                                      .after = 1,
                                      .more = -0.0f};

bool tn_finish_bounds_of(const tn_finish *f, tn_finish_end *e) {
    *e = neutral;
    int i = 0;
    e->bounds = take_bounds(f, &i, e);
    return i == f->steps && (e->bounds || !f->steps);
}

/* A factor and what is added, each a number or one of each column, before anything is kept. */
static void take_affine(const tn_finish *f, int *i, tn_finish_end *e) {
    const tn_finish_step *s = NULL;
    if (*i < f->steps && !f->step[*i].keep && (s = next(f, i, TN_FINISH_MUL, TN_FINISH_COLUMNS)))
        e->mul = s->at;
    else if (*i < f->steps && !f->step[*i].keep && (s = next(f, i, TN_FINISH_MUL, TN_FINISH_ONE)))
        e->scale = s->one;
    if (s && *i < f->steps && !f->step[*i].keep && (s = next(f, i, TN_FINISH_ADD, TN_FINISH_ONE)))
        e->shift = s->one;
}

bool tn_finish_end_of(const tn_finish *f, tn_finish_end *e) {
    *e = neutral;
    int i = 0, keeps = 0;
    if (f->dtype != TN_F32)
        return false;
    const tn_finish_step *s;
    for (int k = 0; k < f->steps; k++)
        keeps += f->step[k].keep;
    if (!keeps && (s = next(f, &i, TN_FINISH_MUL, TN_FINISH_ONE))) {
        e->scales = true;
        e->scale = s->one;
    } else if (!keeps && i < f->steps && is_power_of_two(f->step[i].one) &&
               (s = next(f, &i, TN_FINISH_DIV, TN_FINISH_ONE))) {
        e->scales = true;
        e->scale = 1 / s->one;
    }
    if (!e->scales && (s = next(f, &i, TN_FINISH_SUB, TN_FINISH_COLUMNS)))
        e->sub = s->at;
    if (!e->scales && (s = next(f, &i, TN_FINISH_MUL, TN_FINISH_COLUMNS)))
        e->mul = s->at;
    if (!e->scales && !e->sub && !e->mul && i + 1 < f->steps && f->step[i + 1].op == TN_FINISH_MUL &&
        !f->step[i].keep && !f->step[i + 1].keep && (s = next(f, &i, TN_FINISH_ADD, TN_FINISH_COLUMNS))) {
        e->sub = s->at;
        e->adds = true;
        take_affine(f, &i, e);
    }
    if (e->shift == 0 && signbit(e->shift) && (s = next(f, &i, TN_FINISH_ADD, TN_FINISH_COLUMNS)))
        e->add = s->at;
    if (next(f, &i, TN_FINISH_ADD, TN_FINISH_ALL))
        e->all = true;
    e->late = e->sub || e->mul || keeps;
    if (i == f->steps)
        return true;
    if (!keeps) {
        e->bounds = take_bounds(f, &i, e);
        return e->bounds && i == f->steps;
    }
    const bool kept = f->step[i].keep; /* here, and nowhere else: one value is */
    if (kept && f->step[i].sigmoid && i + 1 < f->steps) {
        e->sigmoid = f->step[i++].call;
        e->form = TN_ENDS_SILU;
        return next(f, &i, TN_FINISH_MUL, TN_FINISH_KEPT) && i == f->steps;
    }
    return kept && take_swish(f, &i, e) && i == f->steps;
}
