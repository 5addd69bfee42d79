/* Constants in the forms that kernels want, shared by all plans of a model. A plan holds the tensors that it uses; what no plan holds
   any more goes when a plan is destroyed. Safe to use from several threads. */
#ifndef TN_LOWER_PACKS_H
#define TN_LOWER_PACKS_H

#include "lower/kernel.h"

/* What a constant was brought to: numbers of whoever makes it, his own first. */
#define TN_PACK_NUMBERS 128
typedef struct tn_pack_form {
    int count;
    bool unfilled; /* nothing is written: it equals nothing */
    int64_t number[TN_PACK_NUMBERS];
} tn_pack_form;
enum { TN_PACK_ALIGNED, TN_PACK_COLUMNS, TN_PACK_DEPTHWISE, TN_PACK_WINOGRAD }; /* number[0] */
static inline void tn_pack_say(tn_pack_form *form, int64_t number) {
    if (form->count < TN_PACK_NUMBERS)
        form->number[form->count] = number;
    form->count++; /* too many: the form is not shared */
}

typedef struct tn_packs tn_packs;
tn_packs *tn_packs_create(tn_heap *heap);
void tn_packs_destroy(tn_packs *packs);
/* A plan begins: its constants are compared by their bytes with those of plans before it, not with each other, so that what it takes does not
   depend on them. One plan of a model at a time. */
void tn_packs_begin(tn_packs *packs);
/* `from` in that form, if a plan has it: one reference more. NULL: nobody has. `packs` may be NULL: nothing is shared. */
tn_tensor *tn_packs_find(tn_packs *packs, const tn_tensor *from, const tn_pack_form *form);
/* Takes over what was made of `from`, bytes side by side; the answer is to be used in its place, with one reference: itself, or what
   another constant of the same bytes was brought to. NULL, with the error set: out of memory. */
tn_tensor *tn_packs_add(tn_packs *packs, tn_tensor *from, const tn_pack_form *form, tn_tensor *made);
/* Operand 1 of a kernel in that form, `bytes` long: k->pack and what goes with it. *fill: NULL, or where it has to be written; then call
   tn_kernel_packed. */
tn_status tn_kernel_pack(tn_kernel *k, const tn_kernel_facts *f, const tn_pack_form *form, size_t bytes, float **fill);
tn_status tn_kernel_packed(tn_kernel *k, const tn_kernel_facts *f, const tn_pack_form *form);
/* Frees what no plan holds. */
void tn_packs_sweep(tn_packs *packs);

#endif
