/* For the files that put one kernel in the place of several, when all kernels of a plan are there. */
#ifndef TN_LOWER_JOIN_H
#define TN_LOWER_JOIN_H

#include "lower/lowering.h"

typedef struct tn_joiner {
    tn_lowerer *l;
    tn_plan *p;
    bool *target;     /* by instruction */
    uint32_t *reads;  /* by slot: of kernels */
    bool *elsewhere;  /* by slot: it is read by other than kernels, or written more than once */
    bool *gone;       /* by instruction */
    bool *dead;       /* by kernel */
    uint32_t *number; /* new ones, of instructions or of kernels */
    uint32_t found;

    /* what is looked at: members */
    uint32_t at[TN_CHAIN_MOST + 2]; /* instructions */
    uint32_t slot[TN_CHAIN_MOST + 2], left[TN_CHAIN_MOST + 2];
    bool wide[TN_CHAIN_MOST + 2]; /* as the caller says */
    int count;
} tn_joiner;

/* Looks through the plan's kernels: whatever `find` finds from a call on, as members, `join` puts together. */
tn_status tn_join_all(tn_lowerer *l, bool (*find)(tn_joiner *f, uint32_t pc), tn_status (*join)(tn_joiner *f));

const tn_kernel *tn_join_kernel_at(const tn_joiner *f, uint32_t pc);
const tn_kernel *tn_join_member(const tn_joiner *f, int i);
/* Whether a size is this, whether two are one, at every binding. */
bool tn_join_is(const tn_joiner *f, tn_size size, int64_t value);
bool tn_join_same(const tn_joiner *f, tn_size a, tn_size b);
/* Who made a slot that only members read; -1: it comes from elsewhere. */
int tn_join_made_by(const tn_joiner *f, uint32_t slot);
/* Whether nobody but kernels, as many as read it, reads what a kernel makes. */
bool tn_join_is_passed_on(const tn_joiner *f, const tn_kernel *k);
bool tn_join_has_guards(const tn_kernel *k);
/* The kernel of an instruction is a member. */
void tn_join_take(tn_joiner *f, uint32_t pc, bool wide);
/* The next call after an instruction, but for those that are gone; 0: what comes before it keeps members from running after that. */
uint32_t tn_join_next(const tn_joiner *f, uint32_t pc);
/* Counts the reads of a kernel among the members; how many of them it makes. */
int tn_join_count_reads(tn_joiner *f, const tn_kernel *k);
/* Whether members may run where the last one is: what they read is then as it was. */
bool tn_join_may_wait(const tn_joiner *f);
/* A kernel whose parts are the members; what it makes is what the last one makes. */
tn_status tn_join_begin(const tn_joiner *f, tn_kernel_kind kind, tn_kernel *k);
/* Puts it where the last member is, or where it was before *copy took its place (NULL: nothing did); the members are gone. */
tn_status tn_join_put(tn_joiner *f, tn_kernel *k, uint32_t copied);

#endif
