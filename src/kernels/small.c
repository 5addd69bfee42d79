/* Elementwise kernels of few elements: one strip, of which what a run needs is kept beside its resolved sizes, so that a call in a loop is
   a walk over the codes and nothing else. The functions and their order are those of the strip machine: so are the bits. */
#include "kernels/machine.h"

#include <string.h>

#define BYTES (1 << 10) /* of a register: more is worth what the machine begins with */
#define ROOM (16 << 10) /* of all registers */

typedef struct access {
    uint32_t slot;
    tn_size offset;
    int64_t element, stride;
    union {
        tn_strip_load_fn *load; /* NULL: it is read where it lies */
        tn_strip_store_fn *store;
    };
} access;

typedef enum state { UNSEEN, SMALL, LARGE } state;

typedef struct small {
    uint8_t state;
    bool copy, direct; /* nothing but a copy; the last code writes the result in place */
    int64_t n, pitch;
    access access[]; /* operands, outputs */
} small;

size_t tn_small_room(const tn_kernel *k) {
    return k->kind == TN_KERNEL_STRIP ? sizeof(small) + ((size_t)k->operands + k->outputs) * sizeof(access) : 0;
}

/* What an access steps by; false: it has no one step. */
static bool one_step(const tn_resolved *r, const tn_resolved_access *a, int64_t *stride) {
    *stride = r->outer ? a->stride[0] : 0;
    return !a->guards && r->outer <= 1;
}

static bool make(const tn_resolved *r, small *s) {
    const tn_kernel *k = r->kernel;
    const tn_strip_program *p = k->program;
    s->n = r->outputs_count;
    s->pitch = (8 * s->n + 63) / 64 * 64;
    if (s->n == 0 || 8 * s->n > BYTES || s->n > p->length || s->pitch * p->buffers > ROOM)
        return false;
    for (int i = 0; i < k->operands + k->outputs; i++) {
        bool in = i < k->operands;
        const tn_resolved_access *x = &r->operand[i];
        const tn_access *a = in ? &k->operand[i] : &k->output[i - k->operands];
        access *to = &s->access[i];
        if (!one_step(r, x, &to->stride))
            return false;
        to->slot = a->slot;
        to->offset = a->offset;
        to->element = x->element;
        bool there = tn_strip_same(x->dtype) && (to->stride == 1 || s->n == 1);
        if (!in)
            to->store = p->level->store[x->dtype];
        else
            to->load = there ? NULL : p->level->load[x->dtype];
    }
    const access *last = &s->access[k->operands];
    s->direct = p->direct && (last->stride == 1 || s->n == 1);
    s->copy =
        k->operands == 1 && k->outputs == 1 && !k->steps && !k->result[0] && k->operand[0].dtype == k->output[0].dtype;
    /* a copy moves bytes; what it does not move side by side is another's */
    return !s->copy || s->n == 1 || (s->access[0].stride == 1 && last->stride == 1);
}

void tn_small_consider(tn_resolved *r) {
    small *s = r->extra;
    if (tn_small_room(r->kernel) && s->state == UNSEEN)
        s->state = make(r, s) ? SMALL : LARGE;
}

/* Loop values are single numbers: a call of the C library's takes longer than they do. */
static void move(void *to, const void *from, int64_t bytes) {
    switch (bytes) {
    case 1: memcpy(to, from, 1); break;
    case 4: memcpy(to, from, 4); break;
    case 8: memcpy(to, from, 8); break;
    default: memmove(to, from, (size_t)bytes);
    }
}

bool tn_small_is(const tn_resolved *r) {
    return r && r->kernel->kind == TN_KERNEL_STRIP && ((const small *)r->extra)->state == SMALL;
}

bool tn_small_run(const tn_resolved *r, const tn_kernel_args *args) {
    const tn_kernel *k = args->kernel;
    const tn_strip_program *p = k->program;
    if (!tn_small_is(r))
        return false;
    const small *s = r->extra;
    const void *reg[TN_MACHINE_REGISTERS];
    _Alignas(64) char buffer[ROOM];
    for (int i = 0; i < k->operands; i++) {
        const access *a = &s->access[i];
        const char *from = (const char *)args->slot[a->slot] + args->size[a->offset] * a->element;
        reg[i] = from;
        if (!a->load || s->copy)
            continue;
        char *to = buffer + p->buffer[i] * s->pitch;
        a->load(s->n, from, a->stride, to);
        reg[i] = to;
    }
    for (int i = k->operands; i < k->operands + k->outputs; i++) {
        const access *a = &s->access[i];
        char *out = (char *)args->slot[a->slot] + args->size[a->offset] * a->element;
        if (s->copy) {
            move(out, reg[0], s->n * a->element);
            return true;
        }
        if (i == k->operands)
            tn_strip_codes(p, TN_STRIP_BEFORE, s->n, reg, buffer, s->pitch, 0, s->direct ? out : NULL);
        if (i > k->operands || !s->direct)
            a->store(s->n, reg[k->result[i - k->operands]], out, a->stride);
    }
    return true;
}
