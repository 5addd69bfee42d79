/* Bands: a convolution, the depthwise one that alone reads it, and the one that alone reads that, as one kernel that makes some rows of the last
   one's output at a time. What lies between them is then in the caches, and never in memory as a whole; no bit differs. */
#include "lower/join.h"

#define MOST 3                 /* members */
#define PAYS (1 << 20)         /* bytes of an image between two members: less comes back from the caches as fast */
#define KEPT_BYTES (320 << 10) /* of the rows between members that one row of outputs needs, at most */
#define AXES 5                 /* outer ones: of images, groups, columns of a group, rows and columns of the image */

/* A value, where it is the same at every binding; else 0. */
static int64_t known(const tn_joiner *f, tn_size size) {
    int64_t n;
    return tn_dim_is_const(f->l->graph, tn_lowering_dim(f->l, size), &n) ? n : 0;
}

/* A convolution of images along two axes, not by Winograd's tiles. */
static bool is_convolution(const tn_kernel *k) {
    if (k->kind != TN_KERNEL_CONTRACT || k->winograd || k->inner != 3 || (k->outer != 4 && k->outer != AXES) ||
        k->outputs != 1 || k->output[0].dtype != TN_F32 || k->operand[0].dtype != TN_F32)
        return false;
    for (int i = k->outer - 2; i < k->outer; i++)
        if (k->role[i] != TN_AXIS_ROW)
            return false;
    return k->role[0] == TN_AXIS_ROW;
}

/* Whether each channel is summed by itself. */
static bool is_depthwise(const tn_joiner *f, const tn_kernel *k) {
    return k->outer == AXES && tn_join_is(f, k->extent[k->outer - 3], 1);
}

/* How many steps of `row` a stride is; 0: not so few. */
static int64_t steps_of(const tn_joiner *f, tn_size stride, tn_size row) {
    for (int64_t n = 1; n <= 4; n++)
        if (tn_dim_equal(f->l->graph, tn_lowering_dim(f->l, stride),
                         tn_dim_mul(f->l->graph, tn_dim_const(f->l->graph, n), tn_lowering_dim(f->l, row))))
            return n;
    return 0;
}

/* Whether `next` reads rows of what `k` makes as a convolution does; *taps: how many for one of its own. */
static bool follows(const tn_joiner *f, const tn_kernel *k, const tn_kernel *next, int64_t *taps) {
    const tn_access *x = &next->operand[0], *y = &k->output[0];
    if (!is_convolution(next) || x->slot != y->slot || !tn_join_same(f, x->stride[0], y->stride[0]) ||
        !tn_join_same(f, k->extent[0], next->extent[0]))
        return false;
    for (int i = 1; i < next->operands; i++)
        if (next->operand[i].slot == y->slot)
            return false;
    tn_size row = y->stride[k->outer - 2], tap = x->stride[next->outer];
    int64_t high = known(f, next->extent[next->outer]), step = high == 1 ? 1 : steps_of(f, tap, row);
    *taps = (high - 1) * step + 1;
    return high > 0 && high <= 16 && step && steps_of(f, x->stride[next->outer - 2], row);
}

/* Bytes of a row of what a kernel makes, and of an image; 0: that is not known. */
static int64_t bytes_of(const tn_joiner *f, const tn_kernel *k, int64_t *image) {
    int64_t row = (int64_t)sizeof(float);
    for (int i = 1; i < k->outer; i++)
        row *= i == k->outer - 2 ? 1 : known(f, k->extent[i]);
    *image = row * known(f, k->extent[k->outer - 2]);
    return row;
}

/* The next kernel that reads what the last member makes, if it is a convolution of it. */
static bool grow(tn_joiner *f, int64_t *kept) {
    const tn_kernel *last = tn_join_member(f, f->count - 1);
    if (f->count == MOST || !tn_join_is_passed_on(f, last) || f->reads[last->output[0].slot] != 1)
        return false;
    for (uint32_t i = tn_join_next(f, f->at[f->count - 1]); i; i = tn_join_next(f, i)) {
        const tn_kernel *k = tn_join_kernel_at(f, i);
        bool reads = false;
        for (int j = 0; j < k->operands; j++)
            reads |= k->operand[j].slot == last->output[0].slot;
        if (!reads)
            continue;
        int64_t taps, image, row = bytes_of(f, last, &image);
        if (!follows(f, last, k, &taps) || is_depthwise(f, k) != (f->count == 1) || (image && image < PAYS) ||
            *kept + (taps + 1) * row > KEPT_BYTES)
            return false;
        *kept += (taps + 1) * row;
        tn_join_take(f, i, false);
        return true;
    }
    return false;
}

static bool find(tn_joiner *f, uint32_t pc) {
    int64_t kept = 0;
    f->count = 0;
    if (!is_convolution(tn_join_kernel_at(f, pc)) || is_depthwise(f, tn_join_kernel_at(f, pc)))
        return false;
    tn_join_take(f, pc, false);
    while (grow(f, &kept))
        if (!tn_join_may_wait(f)) {
            f->count--;
            break;
        }
    return f->count > 1;
}

static tn_status join(tn_joiner *f) {
    tn_kernel k;
    TN_TRY(tn_join_begin(f, TN_KERNEL_BANDS, &k));
    k.impl = tn_lowering_choose(f->l, &k);
    return k.impl ? tn_join_put(f, &k, 0) : TN_OK;
}

tn_status tn_lowering_bands(tn_lowerer *l) {
    return tn_join_all(l, find, join);
}
