#include "ops/winograd.h"

#include <math.h>

#include "base/pool.h"
#include "ops/ops.h"
#include "ops/support.h"

/* Points 0, 1, -1 and infinity. */
static const tn_winograd two = {
    .m = 2,
    .n = 4,
    .b = {{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}},
    .g = {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}},
    .a = {{1, 1, 1, 0}, {0, 1, -1, -1}},
};

/* Points 0, +-sqrt(1/2), +-sqrt(2) and infinity: half the error of 0, +-1, +-2, with as many operations. */
#define R 0.70710678118654752440
#define S 1.41421356237309504880
static const tn_winograd four = {
    .m = 4,
    .n = 6,
    .b = {{1, 0, -2.5, 0, 1, 0},
          {0, -S, -2, R, 1, 0},
          {0, S, -2, -R, 1, 0},
          {0, -R, -0.5, S, 1, 0},
          {0, R, -0.5, -S, 1, 0},
          {0, 1, 0, -2.5, 0, 1}},
    .g = {{1, 0, 0},
          {-2.0 / 3, -S / 3, -1.0 / 3},
          {-2.0 / 3, S / 3, -1.0 / 3},
          {1.0 / 6, S / 6, 1.0 / 3},
          {1.0 / 6, -S / 6, 1.0 / 3},
          {0, 0, 1}},
    .a = {{1, 1, 1, 1, 1, 0}, {0, R, -R, S, -S, 0}, {0, 0.5, 0.5, 2, 2, 0}, {0, R / 2, -R / 2, 2 * S, -2 * S, 1}},
};

const tn_winograd *tn_winograd_transforms(int m) {
    return m == 2 ? &two : &four;
}

/* By weights, that is in * out. Tiles of 4 take four times fewer products by weights four times larger; tiles of 2 take 2.25 times fewer by
   weights 1.8 times larger: where each weight is read for a few tiles only, as with many channels on small maps, reading them costs more than
   the products. With few channels the transforms cost more. */
int tn_winograd_tile(int64_t in, int64_t out) {
    static const struct {
        int64_t least; /* of in * out */
        int m;
    } table[] = {{(1 << 17) + 1, 2}, {48, 4}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (in > 0 && out > (table[i].least - 1) / in)
            return table[i].m;
    return 0;
}

static bool all_one(const tn_graph *g, tn_node node, const char *name) {
    const int64_t *list;
    uint32_t n = tn_attr_ints(g, node, name, &list);
    for (uint32_t i = 0; i < n && list; i++)
        if (list[i] != 1)
            return false;
    return true;
}

/* Floats that are summed in f32. */
static bool is_narrow(tn_dtype t) {
    return t == TN_F32 || t == TN_F16 || t == TN_BF16;
}

/* m of a node that is a convolution summed in f32 by weights of this shape. */
static int tile_of(const tn_graph *g, tn_node node, const tn_tensor *w) {
    const tn_op *op = tn_node_op(g, node);
    if (op->lowering != TN_LOWER_CONTRACT || op->code != TN_CONTRACT_CONV || !w || w->rank != 4 ||
        !is_narrow((tn_dtype)w->dtype) || w->dims[2] != 3 || w->dims[3] != 3)
        return 0;
    tn_value x = tn_node_input(g, node, 0), y = tn_node_output(g, node, 0);
    tn_dtype sum = (tn_dtype)tn_attr_int(g, node, "acc");
    if (tn_value_dtype(g, x) != (tn_dtype)w->dtype || !is_narrow(tn_value_dtype(g, y)) ||
        (sum != TN_DTYPE_NONE && sum != TN_F32) || tn_attr_int(g, node, "groups") != 1 || !all_one(g, node, "stride") ||
        !all_one(g, node, "dilation") || !all_one(g, node, "lhs_dilation"))
        return 0;
    return tn_winograd_tile(w->dims[1], w->dims[0]);
}

int tn_winograd_of(const tn_graph *g, tn_node node) {
    const tn_op *op = tn_node_op(g, node);
    return op->lowering == TN_LOWER_CONTRACT ? tile_of(g, node, tn_value_constant(g, tn_node_input(g, node, 1))) : 0;
}

/* --- terms ---------------------------------------------------------------------------------------------------------------------------- */

enum { TOGETHER = 8, POINTS = TN_WINOGRAD_MOST * TN_WINOGRAD_MOST };

typedef struct terms {
    const tn_winograd *t;
    const tn_tensor *x, *w, *y;
    int64_t lo[2], in, out, tall, wide;
    const double *u; /* [point][out][in]: absolute values of G w G' */
    tn_heap *heap;
    _Atomic bool failed;
} terms;

/* What may be beyond f32 on the way, where factors are yet to make it smaller, or is no number, may be infinite. */
static double within(double x) {
    return x <= 0x1p125 ? x : (double)INFINITY;
}

/* s = L x L' by absolute values: x is [n][n][step], s is [m][m][step] with m <= n rows of l. */
static void apply(const double (*l)[TN_WINOGRAD_MOST], int m, int n, const double *x, double *s, int64_t step,
                  int64_t count) {
    for (int64_t c = 0; c < count; c++)
        for (int i = 0; i < m; i++)
            for (int j = 0; j < m; j++) {
                double sum = 0;
                for (int a = 0; a < n; a++)
                    for (int b = 0; b < n; b++)
                        if (l[i][a] != 0 && l[j][b] != 0) /* NOLINT: a coefficient that is none */
                            sum += fabs(l[i][a]) * fabs(l[j][b]) * x[(a * n + b) * step + c];
                s[(i * m + j) * step + c] = within(sum);
            }
}

/* The inputs of a tile: x[point][in][TOGETHER], place `at` of the last axis. */
static void take_tile(const terms *q, int64_t tile, double *x, int at) {
    const tn_tensor *from = q->x;
    int64_t image = tile / q->tall / q->wide, i = tile / q->wide % q->tall * q->t->m, j = tile % q->wide * q->t->m;
    for (int a = 0; a < q->t->n; a++)
        for (int b = 0; b < q->t->n; b++)
            for (int64_t c = 0; c < q->in; c++) {
                int64_t h = i + a - q->lo[0], v = j + b - q->lo[1];
                bool inside = h >= 0 && h < from->dims[2] && v >= 0 && v < from->dims[3] && i + a < q->y->dims[2] + 2 &&
                              j + b < q->y->dims[3] + 2;
                double value = 0;
                if (inside)
                    value = tn_load_f64((tn_dtype)from->dtype, from->data,
                                        image * from->strides[0] + c * from->strides[1] + h * from->strides[2] +
                                            v * from->strides[3]);
                x[((a * q->t->n + b) * q->in + c) * TOGETHER + at] = within(fabs(value));
            }
}

static void put_tile(const terms *q, int64_t tile, int64_t channel, const double *y, int at) {
    const tn_tensor *to = q->y;
    int64_t image = tile / q->tall / q->wide, i = tile / q->wide % q->tall * q->t->m, j = tile % q->wide * q->t->m;
    for (int a = 0; a < q->t->m && i + a < to->dims[2]; a++)
        for (int b = 0; b < q->t->m && j + b < to->dims[3]; b++)
            tn_store_f64((tn_dtype)to->dtype, to->data,
                         ((image * q->out + channel) * to->dims[2] + i + a) * to->dims[3] + j + b,
                         y[(a * q->t->m + b) * TOGETHER + at]);
}

static void terms_piece(void *ctx, int64_t piece) {
    terms *q = ctx;
    int64_t first = piece * TOGETHER, tiles = q->y->dims[0] * q->tall * q->wide,
            count = tiles - first < TOGETHER ? tiles - first : TOGETHER;
    int points = q->t->n * q->t->n;
    double sum[POINTS * TOGETHER], y[POINTS * TOGETHER];
    double *x = tn_alloc_array(q->heap, (size_t)(2 * points * q->in * TOGETHER), sizeof *x);
    if (!x) {
        q->failed = true;
        return;
    }
    double *v = x + points * q->in * TOGETHER;
    for (int at = 0; at < count; at++)
        take_tile(q, first + at, x, at);
    apply(q->t->b, q->t->n, q->t->n, x, v, q->in * TOGETHER, q->in * TOGETHER);
    for (int64_t m = 0; m < q->out; m++) {
        for (int p = 0; p < points; p++) {
            double one[TOGETHER] = {0};
            for (int64_t c = 0; c < q->in; c++)
                for (int at = 0; at < TOGETHER; at++)
                    one[at] += q->u[(p * q->out + m) * q->in + c] * v[(p * q->in + c) * TOGETHER + at];
            for (int at = 0; at < TOGETHER; at++)
                sum[p * TOGETHER + at] = within(one[at]);
        }
        apply(q->t->a, q->t->m, q->t->n, sum, y, TOGETHER, count);
        for (int at = 0; at < count; at++)
            put_tile(q, first + at, m, y, at);
    }
    tn_free(q->heap, x);
}

static void transform_weights(const terms *q, double *u) {
    const tn_winograd *t = q->t;
    for (int64_t m = 0; m < q->out; m++)
        for (int64_t c = 0; c < q->in; c++)
            for (int i = 0; i < t->n; i++)
                for (int j = 0; j < t->n; j++) {
                    double sum = 0;
                    for (int k = 0; k < 9; k++)
                        sum += t->g[i][k / 3] * t->g[j][k % 3] *
                               tn_load_f64((tn_dtype)q->w->dtype, q->w->data,
                                           m * q->w->strides[0] + c * q->w->strides[1] + k / 3 * q->w->strides[2] +
                                               k % 3 * q->w->strides[3]);
                    u[((i * t->n + j) * q->out + m) * q->in + c] = fabs(sum);
                }
}

tn_status tn_winograd_terms(const tn_eval *e, tn_tensor *out, bool *done) {
    const tn_op *op = tn_node_op(e->graph, e->node);
    bool conv = op->lowering == TN_LOWER_CONTRACT && op->code == TN_CONTRACT_CONV && e->inputs == 2;
    int m = conv ? tile_of(e->graph, e->node, tn_eval_in(e, 1)) : 0;
    *done = m != 0;
    if (!m)
        return TN_OK;
    terms q = {.t = tn_winograd_transforms(m), .x = tn_eval_in(e, 0), .w = tn_eval_in(e, 1), .y = out, .heap = e->heap};
    q.in = q.w->dims[1];
    q.out = q.w->dims[0];
    q.tall = (out->dims[2] + m - 1) / m;
    q.wide = (out->dims[3] + m - 1) / m;
    TN_TRY(tn_eval_dims(e, "lo", 2, q.lo));
    double *u = tn_alloc_array(e->heap, (size_t)(q.t->n * q.t->n * q.in * q.out), sizeof *u);
    if (!u)
        return tn_error_status();
    transform_weights(&q, u);
    q.u = u;
    int64_t tiles = out->dims[0] * q.tall * q.wide;
    tn_pool_run(e->pool, (tiles + TOGETHER - 1) / TOGETHER, terms_piece, &q);
    tn_free(e->heap, u);
    return q.failed ? tn_fail(TN_ERR_MEMORY, "out of memory for the terms of a convolution") : TN_OK;
}
