/* Values that are written over in place: an elementwise kernel puts its result where an operand lies that nobody reads any more. */
#include "lower/lowering.h"

/* The first instruction of the chain that an instruction belongs to; itself, where it runs alone. */
static int32_t chain_of(const tn_plan *p, int32_t at) {
    for (int32_t i = at; i >= 0 && at - i < TN_CHAIN_MOST; i--) {
        const tn_instruction *in = &p->code.data[i];
        if (in->op != TN_DO_CALL)
            break;
        if (p->kernel.data[in->a].chain)
            return at - i < p->kernel.data[in->a].chain ? i : at;
    }
    return at;
}

static int32_t chain_end(const tn_plan *p, int32_t first, int32_t at) {
    const tn_kernel *k = &p->kernel.data[p->code.data[first].a];
    return k->chain && first + k->chain > at ? first + k->chain : at + 1;
}

static bool reads(const tn_kernel *k, uint32_t slot) {
    for (int i = 0; i < k->operands; i++)
        if (k->operand[i].slot == slot && (i != 1 || !k->packed_only))
            return true;
    return false;
}

/* Whether kernel `at` can put its result where operand `index` lies. */
static bool fits(const tn_plan *p, int32_t at, const tn_kernel *k, int index) {
    const tn_access *a = &k->operand[index], *y = &k->output[0];
    const tn_slot *x = &p->slot.data[a->slot], *s = &p->slot.data[y->slot];
    if (x->kind != TN_SLOT_ARENA || x->fetched || x->last != at || x->first >= at || x->segment != s->segment ||
        x->bytes != s->bytes || a->guards || a->offset != y->offset ||
        tn_dtype_bits((tn_dtype)a->dtype) != tn_dtype_bits((tn_dtype)y->dtype))
        return false;
    for (int i = 0; i < k->outer; i++)
        if (a->stride[i] != y->stride[i])
            return false;
    for (int i = 0; i < k->operands; i++)
        if (i != index && k->operand[i].slot == a->slot)
            return false;
    /* kernels of a chain take turns: what they hand on is not in memory at all, and none may read what another writes over */
    int32_t first = chain_of(p, at), end = chain_end(p, first, at);
    if (x->first >= first)
        return false;
    for (int32_t i = first; i < end; i++)
        if (i != at && reads(&p->kernel.data[p->code.data[i].a], a->slot))
            return false;
    return true;
}

void tn_lowering_in_place(tn_plan *p) {
    for (uint32_t i = 0; i < p->slot.len; i++)
        p->slot.data[i].until = p->slot.data[i].last;
    for (uint32_t i = 0; i < p->code.len; i++) {
        if (p->code.data[i].op != TN_DO_CALL)
            continue;
        const tn_kernel *k = &p->kernel.data[p->code.data[i].a];
        if (k->kind != TN_KERNEL_STRIP || k->outputs != 1)
            continue;
        tn_slot *s = &p->slot.data[k->output[0].slot];
        if (s->kind != TN_SLOT_ARENA || s->fetched || s->first != (int32_t)i)
            continue;
        for (int n = 0; n < k->operands && !s->over; n++)
            if (fits(p, (int32_t)i, k, n))
                s->over = 1 + k->operand[n].slot;
        tn_slot *home = &p->slot.data[tn_plan_home(p, k->output[0].slot)];
        home->until = s->last > home->until ? s->last : home->until;
    }
}

uint32_t tn_plan_home(const tn_plan *p, uint32_t slot) {
    while (p->slot.data[slot].over)
        slot = p->slot.data[slot].over - 1;
    return slot;
}

bool tn_plan_lifetime(const tn_plan *p, uint32_t slot, tn_lifetime *life) {
    const tn_slot *s = &p->slot.data[slot];
    *life = (tn_lifetime){.first = p->reuse == TN_REUSE_FULL ? s->first : 0, .last = (int32_t)p->code.len};
    if (p->reuse == TN_REUSE_NONE)
        return true;
    if (s->over)
        return false;
    if (p->reuse == TN_REUSE_IN_PLACE)
        return true;
    life->last = s->until;
    return true;
}
