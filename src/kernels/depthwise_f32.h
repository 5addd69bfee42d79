/* Depthwise convolution in f32 (depthwise_f32.c), for kernels that it is a part of. */
#ifndef TN_KERNELS_DEPTHWISE_F32_H
#define TN_KERNELS_DEPTHWISE_F32_H

#include "kernels/finish.h"
#include "kernels/gemm.h"
#include "kernels/machine.h"

#define TN_DEPTHWISE_TAPS 256
#define TN_DEPTHWISE_GUARDS 4

typedef struct tn_depthwise {
    const tn_resolved *r;
    const tn_gemm_level *level;
    int group;     /* the axis of channels */
    bool beside;   /* they lie side by side */
    bool finishes; /* what follows the sums is `finish` */
    bool direct;   /* all is done where the output lies */
    bool turned;   /* or beside it, and then brought where pixels lie side by side */
    tn_finish finish;
    bool ends; /* in registers, as `end` says */
    tn_finish_end end;
    int64_t taps, width; /* width: of the last summed axis */
    int64_t offset[TN_DEPTHWISE_TAPS],
        guard[TN_DEPTHWISE_TAPS][TN_DEPTHWISE_GUARDS]; /* a tap's shares of the offset and of the guards' values */
    int64_t least[TN_DEPTHWISE_GUARDS], most[TN_DEPTHWISE_GUARDS]; /* of the latter */
} tn_depthwise;

/* What a convolution is, once its sizes are known; `r` outlives it. */
void tn_depthwise_open(tn_depthwise *d, const tn_gemm_level *level, const tn_resolved *r);
/* To be called when the addresses of a run are known, too. */
void tn_depthwise_see_ends(tn_depthwise *d);
/* Rows [first, end) along the last outer axis but one, of the image `image`, the first outer axis; `r`: d->r, or a copy with other addresses.
   Where d->beside, and channels of outputs lie side by side. */
void tn_depthwise_rows(const tn_depthwise *d, const tn_resolved *r, int64_t image, int64_t first, int64_t end);

#endif
