/* Factors and shifts of the channels that a product with a constant makes go into that constant, and the shifts into one: what is
   left of a batch normalisation after a convolution is the addition of a bias (Jacob et al., arXiv:1712.05877, section 3.2).
   Scaled weights are rounded once, from a product in double. */
#include <math.h>

#include <tenon/build.h>

#include "passes/pass.h"

#define MAX_LOOK 8   /* views looked through */
#define MAX_CHAIN 16 /* factors and shifts of one product */

/* The axis of a product's output along which its constant operand 1 makes it, and the axis of that operand; false: there is none. */
static bool find_axis(const tn_graph *g, tn_node product, int *out_axis, int *axis) {
    const int64_t *list;
    if (strcmp(tn_node_op(g, product)->name, "conv") == 0) {
        *axis = 0;
        *out_axis = 1;
        return true;
    }
    tn_value b = tn_node_input(g, product, 1);
    int rank = tn_value_rank(g, b);
    uint32_t used = 0, n = tn_attr_ints(g, product, "b_contract", &list);
    for (uint32_t i = 0; i < n; i++)
        used |= 1u << list[i];
    if (tn_attr_ints(g, product, "b_batch", &list) || (int)n != rank - 1)
        return false;
    for (*axis = 0; used >> *axis & 1;)
        ++*axis;
    *out_axis = tn_value_rank(g, tn_node_output(g, product, 0)) - 1;
    return true;
}

/* A constant that what it is combined with (of `rank` axes) sees the same everywhere but along `axis`: by `step` elements there. */
static const tn_tensor *along(const tn_graph *g, tn_value v, int axis, int64_t channels, int64_t *step) {
    for (int look = 0; look < MAX_LOOK; look++) {
        const tn_tensor *t = tn_value_constant(g, v);
        if (t) {
            if (!t->contiguous || (t->count != 1 && t->count != channels))
                return NULL;
            *step = t->count != 1;
            /* `axis` counts from the end: broadcasts put new axes in front */
            return t->count == 1 || (axis <= t->rank && t->dims[t->rank - axis] == channels) ? t : NULL;
        }
        tn_node maker = tn_value_producer(g, v);
        if (!maker.id || !tn_node_has_trait(g, maker, TN_SPREADS))
            return NULL;
        v = tn_node_input(g, maker, 0);
    }
    return NULL;
}

typedef struct link {
    char kind; /* '*', '+', '-' */
    const tn_tensor *constant;
    int64_t step;
} link;

static char kind_of(const tn_graph *g, tn_node n) {
    static const char *const names[] = {"mul", "add", "sub"};
    for (int i = 0; i < 3; i++)
        if (strcmp(tn_node_op(g, n)->name, names[i]) == 0)
            return "*+-"[i];
    return 0;
}

/* Whether a node adds, takes away or multiplies by a constant for each channel; then *from is what it does that to. */
static bool read_link(const tn_graph *g, tn_node n, int axis, int64_t channels, link *l, tn_value *from) {
    l->kind = kind_of(g, n);
    if (!l->kind)
        return false;
    for (uint32_t i = 2; i-- > (l->kind == '-');) {
        l->constant = along(g, tn_node_input(g, n, i), axis, channels, &l->step);
        *from = tn_node_input(g, n, 1 - i);
        if (l->constant)
            return true;
    }
    return false;
}

/* The product at the end of a chain of such nodes, through values that nothing else reads. Any constant of few elements may belong to
   it, as long as the product is not known. */
static tn_node find_product(const tn_graph *g, tn_node n) {
    for (int i = 0; i <= MAX_CHAIN && n.id; i++) {
        if (tn_node_has_trait(g, n, TN_CONTRACTION))
            return n;
        if (!kind_of(g, n))
            break;
        tn_node next = {0};
        for (uint32_t k = 0; k < 2; k++) {
            tn_value v = tn_node_input(g, n, k);
            tn_node maker = tn_value_producer(g, v);
            if (maker.id && tn_value_use_count(g, v) == 1 &&
                (tn_node_has_trait(g, maker, TN_CONTRACTION) || kind_of(g, maker)))
                next = maker;
        }
        n = next;
    }
    return (tn_node){0};
}

/* The node that alone reads a value. */
static tn_node reader(const tn_graph *g, tn_value v) {
    return tn_value_use_count(g, v) == 1 ? tn_value_first_use(g, v).node : (tn_node){0};
}

static bool is_root(const tn_graph *g, tn_node n, void *user) {
    (void)user;
    return kind_of(g, n) != 0;
}

/* What multiplies each channel, and what is added after that. False: not finite. */
static bool sum_up(const link *chain, int count, int64_t channels, double *factor, double *shift) {
    for (int64_t c = 0; c < channels; c++) {
        factor[c] = 1;
        shift[c] = 0;
        for (int i = count; i-- > 0;) {
            const link *l = &chain[i];
            double x = tn_load_f64((tn_dtype)l->constant->dtype, l->constant->data, l->step * c);
            if (l->kind == '*') {
                factor[c] *= x;
                shift[c] *= x;
            } else
                shift[c] += l->kind == '+' ? x : -x;
        }
        if (!isfinite(factor[c]) || !isfinite(shift[c]))
            return false;
    }
    return true;
}

/* The weights times the factors of their channels. *fits false: one of them is no normal number any more. */
static tn_tensor *scaled(const tn_graph *g, const tn_tensor *w, int axis, const double *factor, bool *fits) {
    tn_dtype dtype = (tn_dtype)w->dtype;
    tn_tensor *t = tn_tensor_new(g->heap, dtype, w->rank, w->dims);
    int64_t inner = 1, channels = w->dims[axis];
    double most = dtype == TN_F32 ? 0x1p127 : 0x1p1023, least = dtype == TN_F32 ? 0x1p-126 : 0x1p-1022;
    for (int i = axis + 1; i < w->rank; i++)
        inner *= w->dims[i];
    *fits = true;
    for (int64_t i = 0; t && i < w->count && *fits; i++) {
        double from = tn_load_f64(dtype, w->data, i), by = factor[i / inner % channels], x = from * by;
        *fits = fabs(x) <= most && (fabs(x) >= least || from == 0 || by == 0);
        tn_store_f64(dtype, t->data, i, x);
    }
    return t;
}

static tn_value vector_along(tn_graph *g, tn_dtype dtype, const double *x, int64_t count, tn_value like, int axis) {
    int64_t dims[TN_MAX_RANK];
    tn_tensor *t;
    for (int i = 0; i < axis; i++)
        dims[i] = i ? 1 : count;
    t = tn_tensor_new(g->heap, dtype, axis, dims);
    for (int64_t i = 0; t && i < count; i++)
        tn_store_f64(dtype, t->data, i, x[i]);
    tn_value v = t ? tn_constant(g, t) : (tn_value){0};
    tn_tensor_destroy(t);
    tn_dim to[TN_MAX_RANK];
    int rank = tn_value_rank(g, like);
    for (int i = 0; i < rank; i++)
        to[i] = tn_value_dim(g, like, i);
    return v.id ? tn_broadcast(g, v, rank, to) : v;
}

static tn_status fold(tn_rewriter *r, tn_node n, const link *chain, int count, tn_node product, int axis, int from_end,
                      double *factor) {
    tn_graph *g = tn_rewriter_graph(r);
    const tn_tensor *w = tn_value_constant(g, tn_node_input(g, product, 1));
    int64_t channels = w->dims[axis];
    double *shift = factor + channels;
    bool fits = sum_up(chain, count, channels, factor, shift), scales = false, shifts = false;
    for (int64_t c = 0; fits && c < channels; c++) {
        scales |= factor[c] != 1;
        shifts |= shift[c] != 0;
    }
    if (!fits)
        return TN_OK;
    tn_value weights = tn_node_input(g, product, 1), old = tn_node_output(g, product, 0), y = old;
    if (scales) {
        tn_tensor *t = scaled(g, w, axis, factor, &fits);
        if (!t || !fits) {
            tn_tensor_destroy(t);
            return t ? tn_rewrite_near_miss(r, n, "scaled weights would not be normal numbers") : tn_error_status();
        }
        weights = tn_constant(g, t);
        tn_tensor_destroy(t);
        tn_value in[] = {tn_node_input(g, product, 0), weights};
        tn_attr attrs[8];
        uint32_t attr_count = tn_node_attr_count(g, product);
        for (uint32_t i = 0; i < attr_count && i < 8; i++)
            attrs[i] = *tn_node_attr_at(g, product, i);
        y = weights.id && attr_count <= 8 ? tn_graph_add(g, tn_node_op(g, product)->name, 2, in, attr_count, attrs)
                                          : (tn_value){0};
    }
    tn_value result = y;
    if (y.id && shifts)
        result = tn_add(g, y, vector_along(g, (tn_dtype)w->dtype, shift, channels, y, from_end));
    return result.id ? tn_rewrite_replace(r, n, result) : tn_graph_check(g);
}

static tn_status apply(tn_rewriter *r, tn_node n) {
    tn_graph *g = tn_rewriter_graph(r);
    tn_node product = find_product(g, n);
    int out_axis, axis, count = 0;
    if (!product.id || !find_axis(g, product, &out_axis, &axis))
        return TN_OK;
    tn_value y = tn_node_output(g, product, 0), v = tn_node_output(g, n, 0), weights = tn_node_input(g, product, 1);
    const tn_tensor *w = tn_value_constant(g, weights);
    if (!w || !w->contiguous || w->count < 1 || (w->dtype != TN_F32 && w->dtype != TN_F64) ||
        w->dtype != tn_value_dtype(g, v) || tn_value_use_count(g, weights) != 1)
        return TN_OK;
    int from_end = tn_value_rank(g, y) - out_axis;
    int64_t channels = w->dims[axis];
    link chain[MAX_CHAIN], above;
    bool scales = false;
    tn_value from;
    tn_node next = reader(g, v);
    if (next.id && kind_of(g, next) && read_link(g, next, from_end, channels, &above, &from) && from.id == v.id)
        return TN_OK; /* it is folded from there */
    for (; v.id != y.id; v = from) {
        if (count == MAX_CHAIN || !read_link(g, tn_value_producer(g, v), from_end, channels, &chain[count], &from))
            return TN_OK;
        scales |= chain[count++].kind == '*';
    }
    if (!scales && count == 1)
        return TN_OK;
    double *room = tn_alloc_array(g->heap, (size_t)channels, 2 * sizeof *room);
    if (!room)
        return tn_error_status();
    tn_status status = fold(r, n, chain, count, product, axis, from_end, room);
    tn_free(g->heap, room);
    return status;
}

static tn_status run(tn_graph *g, tn_pass_context *context) {
    static const tn_rewrite row = {
        .name = "fold-scale", .condition = is_root, .apply = apply, .effect = TN_VALUE_CHANGING};
    return context->keep_variables ? TN_OK : tn_rewrites_run(g, context, 1, &row);
}

const tn_pass tn_pass_fold_affine = {
    .name = "fold-affine",
    .doc =
        "Factors and shifts of a constant product's channels (batch normalisation) go into its weights and one bias.",
    .effect = TN_VALUE_CHANGING,
    .level = 2,
    .run = run,
};
