/* Winograd's convolution: which convolutions are computed so, and by which transforms. It is part of the numeric recipe: the choice depends
   on the row's attributes and on channels, never on sizes of images or batches.

   A tile of m x m outputs is made of n x n inputs, n = m + 2, at its place on a grid that begins at the first output:
   y = A' ((G w G') * (B' x B)) A, where * multiplies elements and then adds the products of all channels. */
#ifndef TN_OPS_WINOGRAD_H
#define TN_OPS_WINOGRAD_H

#include "ir/graph.h"
#include "ir/op.h"

#define TN_WINOGRAD_MOST 6 /* n, at most */

/* m for so many channels in and out of a 3 x 3 window; 0: products one by one. */
int tn_winograd_tile(int64_t in, int64_t out);
/* The same of a node of a graph: 0 unless it is a convolution, of f32 or narrower floats and summed in f32, by constant weights that is computed
   so. */
int tn_winograd_of(const tn_graph *graph, tn_node node);

/* The sums of absolute terms that roundings of an evaluated convolution are in proportion to, in place of those of plain products: into `out`,
   contiguous and of the result's dtype and shape; infinite where what is finite may overflow on the way. *done false: it is none that is computed
   so, whatever its weights are. */
tn_status tn_winograd_terms(const tn_eval *e, tn_tensor *out, bool *done);

/* B' is [n][n], G [n][3], A' [m][n]. */
typedef struct tn_winograd {
    int m, n;
    double b[TN_WINOGRAD_MOST][TN_WINOGRAD_MOST], g[TN_WINOGRAD_MOST][3], a[4][TN_WINOGRAD_MOST];
} tn_winograd;
/* m: 2 or 4. */
const tn_winograd *tn_winograd_transforms(int m);

#endif
