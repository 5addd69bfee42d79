/* Evaluation of convolution: for each group, rows (its output channels) by columns (images and output positions)
   over the terms (its input channels and kernel positions). Padding and the gaps of lhs_dilation are zeros that are
   multiplied like elements. */
#include <inttypes.h>

#include "ops/contract.h"

/* Spatial rank 0 is computed as rank 1 with one element and a kernel of one. */
typedef struct conv {
    const tn_tensor *x, *w;
    tn_dtype dtype, out_dtype;
    char *out;
    int rank;                                                        /* spatial, at least 1 */
    int64_t images, in_channels, out_channels, groups;               /* channels of one group */
    int64_t in[TN_MAX_RANK], kernel[TN_MAX_RANK], size[TN_MAX_RANK]; /* spatial sizes of x, w, the output */
    int64_t x_step[TN_MAX_RANK];                                     /* strides of x, spatial */
    int64_t lo[TN_MAX_RANK], stride[TN_MAX_RANK], dilation[TN_MAX_RANK], gap[TN_MAX_RANK]; /* gap: lhs_dilation */
    int64_t positions;                                                                     /* product of size */
    int64_t depth;    /* in_channels times kernel positions */
    tn_space weights; /* the terms of one output channel */
    const tn_contract_unit *unit;
} conv;

/* Columns that stand in one image and one row of the last spatial axis. */
typedef struct segment {
    int64_t columns;
    int64_t base;                /* of the image in x, in elements */
    int64_t corner[TN_MAX_RANK]; /* padded position where the first column's window begins */
} segment;

static void load_row(const void *ctx, int64_t row, int64_t begin, int64_t terms, tn_lane *out) {
    const conv *c = ctx;
    int64_t channel = c->unit->outer * c->out_channels + c->unit->row + row;
    const char *base = (const char *)c->w->data + channel * c->w->strides[0] * (tn_dtype_bits(c->dtype) / 8);
    tn_space_load(&c->weights, c->dtype, base, begin, terms, out);
}

static int cut_segments(const conv *c, const tn_contract_unit *unit, segment *segments) {
    int count = 0, last = c->rank - 1;
    for (int64_t column = unit->column, end = column + unit->columns; column < end; count++) {
        segment *s = &segments[count];
        int64_t rest = column % c->positions, at = rest % c->size[last];
        *s = (segment){.columns = c->size[last] - at < end - column ? c->size[last] - at : end - column,
                       .base = column / c->positions * c->x->strides[0]};
        for (int i = last; i >= 0; i--) {
            s->corner[i] = rest % c->size[i] * c->stride[i] - c->lo[i];
            rest /= c->size[i];
        }
        column += s->columns;
    }
    return count;
}

/* The elements of x under kernel position `tap` for a segment's columns; 0 outside. */
static void load_segment(const conv *c, const segment *s, int64_t channel, const int64_t *tap, tn_lane *line) {
    int last = c->rank - 1;
    int64_t offset = s->base + channel * c->x->strides[1], size = tn_dtype_bits(c->dtype) / 8;
    tn_domain domain = tn_contract_domain(c->dtype);
    for (int i = 0; i < last; i++) {
        int64_t at = s->corner[i] + tap[i] * c->dilation[i];
        if (at < 0 || at % c->gap[i] != 0 || at / c->gap[i] >= c->in[i]) {
            memset(line, 0, (size_t)s->columns * sizeof *line);
            return;
        }
        offset += at / c->gap[i] * c->x_step[i];
    }
    const char *from = (const char *)c->x->data + offset * size;
    int64_t at = s->corner[last] + tap[last] * c->dilation[last], stride = c->stride[last], step = c->x_step[last];
    int64_t n = c->in[last], gap = c->gap[last];
    if (gap > 1) {
        for (int64_t i = 0; i < s->columns; i++, at += stride) {
            line[i] = 0;
            if (at >= 0 && at % gap == 0 && at / gap < n)
                tn_run_load(c->dtype, domain, from + at / gap * step * size, 0, 1, 1, &line[i]);
        }
        return;
    }
    int64_t first = at >= 0 ? 0 : (-at - 1) / stride + 1, end = at >= n ? 0 : (n - 1 - at) / stride + 1;
    end = end > s->columns ? s->columns : end;
    first = first > end ? end : first;
    memset(line, 0, (size_t)first * sizeof *line);
    if (first < end)
        tn_run_load(c->dtype, domain, from + (at + first * stride) * step * size, 0, stride * step, end - first,
                    line + first);
    memset(line + end, 0, (size_t)(s->columns - end) * sizeof *line);
}

static void compute(const void *ctx, tn_block *block, const tn_contract_unit *unit) {
    conv c = *(const conv *)ctx;
    segment segments[TN_BLOCK_COLUMNS];
    int count = cut_segments(&c, unit, segments);
    int64_t tap[TN_MAX_RANK] = {0}, channel = unit->outer * c.in_channels;
    tn_lane line[TN_BLOCK_COLUMNS] = {0};
    c.unit = unit;
    for (int64_t begin = 0; begin < c.depth; begin += TN_BLOCK_DEPTH) {
        int64_t terms = c.depth - begin < TN_BLOCK_DEPTH ? c.depth - begin : TN_BLOCK_DEPTH;
        for (int64_t t = 0; t < terms; t++) {
            tn_lane *to = line;
            for (int i = 0; i < count; to += segments[i++].columns)
                load_segment(&c, &segments[i], channel, tap, to);
            tn_block_set_term(block, t, line);
            int axis = c.rank - 1;
            while (axis >= 0 && ++tap[axis] == c.kernel[axis])
                tap[axis--] = 0;
            channel += axis < 0;
        }
        tn_block_multiply(block, begin, terms, unit->columns, load_row, &c);
    }
    int64_t size = tn_dtype_bits(c.out_dtype) / 8, all = c.groups * c.out_channels;
    tn_domain domain = tn_contract_domain(c.dtype);
    for (int64_t r = 0; r < unit->rows; r++) {
        const tn_lane *sums = tn_block_sums(block, r);
        int64_t to_channel = unit->outer * c.out_channels + unit->row + r;
        for (int64_t column = unit->column, end = column + unit->columns, n; column < end; column += n, sums += n) {
            int64_t at = column % c.positions, image = column / c.positions;
            n = c.positions - at < end - column ? c.positions - at : end - column;
            tn_run_store(c.out_dtype, domain, sums, n, c.out + ((image * all + to_channel) * c.positions + at) * size,
                         0, 1);
        }
    }
}

static tn_status read_channels(tn_eval *e, conv *c) {
    const tn_tensor *x = c->x, *w = c->w;
    c->groups = tn_attr_int(e->graph, e->node, "groups");
    c->in_channels = w->dims[1];
    if (x->dims[1] % c->groups != 0 || x->dims[1] / c->groups != w->dims[1] || w->dims[0] % c->groups != 0) {
        tn_eval_fail(e, TN_ERR_INPUT,
                     "%" PRId64 " channels in %" PRId64 " groups do not go with weights of %" PRId64 " by %" PRId64
                     " channels",
                     x->dims[1], c->groups, w->dims[0], w->dims[1]);
        tn_fail_hint("axis 1 of the weights must be the channels of one group, axis 0 a multiple of the groups");
        return TN_ERR_INPUT;
    }
    c->out_channels = w->dims[0] / c->groups;
    return TN_OK;
}

tn_status tn_eval_conv(tn_eval *e) {
    conv c = {.x = tn_eval_in(e, 0), .w = tn_eval_in(e, 1)};
    const tn_tensor *x = c.x, *w = c.w;
    int spatial = x->rank - 2;
    int64_t dims[TN_MAX_RANK], hi[TN_MAX_RANK];
    const int64_t *stride, *dilation, *gap;
    TN_TRY(read_channels(e, &c));
    tn_attr_ints(e->graph, e->node, "stride", &stride);
    tn_attr_ints(e->graph, e->node, "dilation", &dilation);
    tn_attr_ints(e->graph, e->node, "lhs_dilation", &gap);
    TN_TRY(tn_eval_sizes(e, "lo", spatial, c.lo));
    TN_TRY(tn_eval_sizes(e, "hi", spatial, hi));
    dims[0] = x->dims[0];
    dims[1] = w->dims[0];
    c.rank = spatial > 0 ? spatial : 1;
    c.in[0] = c.kernel[0] = c.size[0] = c.stride[0] = c.dilation[0] = c.gap[0] = c.x_step[0] = 1;
    for (int i = 0; i < spatial; i++) {
        int64_t spread;
        c.in[i] = x->dims[i + 2];
        c.x_step[i] = x->strides[i + 2];
        c.kernel[i] = w->dims[i + 2];
        c.stride[i] = stride[i];
        c.dilation[i] = dilation[i];
        c.gap[i] = gap[i];
        if (c.kernel[i] == 0)
            return tn_eval_fail(e, TN_ERR_INPUT, "the kernel has no elements on spatial axis %d", i);
        if (__builtin_mul_overflow(c.in[i] - 1, gap[i], &spread) || __builtin_add_overflow(spread, 1, &spread))
            return tn_eval_fail(e, TN_ERR_LIMIT, "lhs_dilation makes spatial axis %d too large", i);
        TN_TRY(tn_eval_window(e, "spatial axis", i, spread, c.lo[i], hi[i], c.kernel[i], stride[i], dilation[i],
                              &c.size[i]));
        dims[i + 2] = c.size[i];
    }
    c.dtype = (tn_dtype)x->dtype;
    c.out_dtype = tn_contract_result(c.dtype, (tn_dtype)tn_attr_int(e->graph, e->node, "acc"));
    tn_tensor *out = tn_eval_result(e, 0, c.out_dtype, x->rank, dims);
    if (out == NULL)
        return tn_error_status();
    if (out->count == 0)
        return TN_OK;
    c.out = out->data;
    c.positions = 1;
    for (int i = 0; i < c.rank; i++)
        c.positions *= c.size[i];
    tn_space_init(&c.weights, w->rank - 1, w->dims + 1, w->strides + 1);
    c.depth = x->count > 0 ? c.weights.count : 0;
    tn_contract_split split;
    tn_contract_plan(&split, tn_pool_threads(e->pool), c.groups, x->dims[0] * c.positions, c.out_channels);
    return tn_contract_run(e, &split, tn_dtype_is_float(c.dtype), compute, &c);
}
