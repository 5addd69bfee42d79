/* Movement of elements as they are, by their size alone. */
#ifndef TN_KERNELS_MOVE_H
#define TN_KERNELS_MOVE_H

#include "kernels/machine.h"

/* --- isa/move.c ------------------------------------------------------------------------------------------------------------------------ */

/* to[c * pitch + r] = from[r * stride + c] for r < rows and c < columns, elements of one size, aligned to it; `to` lies apart. */
typedef void tn_move_transpose_fn(int64_t rows, int64_t columns, const void *from, int64_t stride, void *to,
                                  int64_t pitch);
typedef struct tn_move_level {
    tn_move_transpose_fn *transpose[9]; /* by bytes of an element: 1, 2, 4, 8 */
} tn_move_level;

/* What moves has no use for registers of 64 bytes: memory is slower. */
extern const tn_move_level tn_move_generic, tn_move_avx2, tn_move_neon;

/* --- copy.c ---------------------------------------------------------------------------------------------------------------------------- */

/* The level that goes with the strips' level, or with the highest to use. */
const tn_move_level *tn_move_of(const tn_strip_level *strips);
/* A kernel that only copies, where its source or its rows lie side by side. False: it is another one, nothing was done. */
bool tn_copy_run_resolved(const tn_resolved *r, tn_pool *pool);

#endif
