#include "kernels/finish.h"

#include <math.h>

#include "kernels/machine.h"
#include "ops/scalar.h"

/* How an operand is read as columns pass. False: in none of the forms. */
static bool form_of(const tn_resolved *r, const tn_resolved_access *a, int column, tn_finish_form *form) {
    if (a->dtype != TN_F32 || a->guards)
        return false;
    bool columns = column >= 0 && r->extent[column] > 1, rows = false;
    int64_t step = columns ? a->stride[column] : 0;
    for (int i = 0; i < r->outer; i++)
        rows |= i != column && r->extent[i] > 1 && a->stride[i] != 0;
    *form = rows ? TN_FINISH_ALL : step ? TN_FINISH_COLUMNS : TN_FINISH_ONE;
    return !columns || step == 1 || *form == TN_FINISH_ONE;
}

static bool op_of(const tn_scalar_step *s, tn_finish_op *op) {
    switch (s->op) {
    case TN_SCALAR_ADD: *op = TN_FINISH_ADD; break;
    case TN_SCALAR_MUL: *op = TN_FINISH_MUL; break;
    case TN_SCALAR_MAX: *op = TN_FINISH_MAX; break;
    case TN_SCALAR_MIN: *op = TN_FINISH_MIN; break;
    default: return false;
    }
    return s->dtype == TN_F32 && s->from == TN_F32;
}

bool tn_finish_make(tn_finish *f, const tn_resolved *r, int column) {
    const tn_kernel *k = r->kernel;
    uint16_t made = (uint16_t)(k->operands + k->steps);
    f->steps = f->all = 0;
    if (k->epilogue > TN_FINISH_STEPS || k->outputs != 1 || k->reduced != TN_F32)
        return false;
    for (int i = 0; i < k->epilogue; i++, made++) {
        const tn_scalar_step *s = &k->step[k->steps + i];
        uint16_t other = s->a == made ? s->b : s->a;
        tn_finish_op op;
        tn_finish_form form;
        if ((s->a == made) == (s->b == made) || other >= k->operands || !op_of(s, &op) ||
            !form_of(r, &r->operand[other], column, &form))
            return false;
        const float *at = (const float *)(const void *)r->operand[other].base;
        bool bound = op == TN_FINISH_MAX || op == TN_FINISH_MIN;
        if (bound && (form != TN_FINISH_ONE || isnan(*at) || (*at == 0 && op == TN_FINISH_MIN && signbit(*at))))
            return false;
        if (form == TN_FINISH_ALL && f->all)
            return false;
        if (form == TN_FINISH_ALL)
            f->all = other;
        f->step[f->steps++] =
            (tn_finish_step){.op = (uint8_t)op, .form = (uint8_t)form, .operand = (uint8_t)other, .at = at};
    }
    return f->steps > 0 && k->result[0] == made;
}
