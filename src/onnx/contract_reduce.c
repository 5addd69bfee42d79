/* The way out of reductions, windows, contractions and order. */
#define TN_NO_POSITIONS
#include <tenon/build.h>

#include "onnx/contract.h"

/* --- reductions ------------------------------------------------------------------------------------------------------------------------- */

static tn_value over_axes(tn_contract *c, const char *op, tn_value x, tn_dtype dtype) {
    const int64_t *axes;
    uint32_t n = tn_attr_ints(c->g, c->node, "axes", &axes);
    int64_t copy[TN_MAX_RANK];
    memcpy(copy, axes, n * sizeof *axes);
    tn_value in[] = {x, n ? tn_c_i64s(c, n, copy) : (tn_value){0}};
    tn_attr keep = TN_A_INT("keepdims", tn_attr_int(c->g, c->node, "keepdims"));
    tn_type type = tn_c_type(c, 0);
    if (tn_type_dtype(c->g, type) != dtype)
        type = tn_c_like(c, tn_node_output(c->g, c->node, 0), dtype);
    return n ? tn_c_emit(c, op, 2, in, 1, &keep, type) : tn_c_one(c, "Identity", x, type);
}

/* In the accumulator's dtype where that is not the operator's own. */
static tn_status reduce(tn_contract *c) {
    const char *op = tn_contract_find(tn_node_op_name(c->g, c->node))->onnx;
    tn_value x = tn_c_in(c, 0);
    tn_dtype dtype = tn_value_dtype(c->g, x), acc = (tn_dtype)tn_attr_int(c->g, c->node, "acc"),
             own = dtype == TN_F16 || dtype == TN_BF16 ? TN_F32 : dtype;
    bool narrow = tn_dtype_is_int(dtype) && dtype != TN_I32 && dtype != TN_I64 && dtype != TN_U32 && dtype != TN_U64;
    if (narrow && (strcmp(op, "ReduceSum") == 0 || strcmp(op, "ReduceProd") == 0))
        acc = TN_I64; /* the standard has no narrower sums; they wrap alike */
    if (acc == TN_DTYPE_NONE || acc == own)
        acc = dtype;
    return tn_c_set(c, 0, tn_c_cast(c, over_axes(c, op, tn_c_cast(c, x, acc), acc), dtype));
}

static tn_status reduce_logic(tn_contract *c) {
    tn_value x = tn_c_in(c, 0);
    if (tn_value_dtype(c->g, x) != TN_BOOL)
        return tn_c_unsupported(c, "reductions bit by bit");
    const char *op = tn_contract_find(tn_node_op_name(c->g, c->node))->onnx;
    return tn_c_set(c, 0, tn_c_cast(c, over_axes(c, op, tn_c_cast(c, x, TN_I32), TN_I32), TN_BOOL));
}

/* --- windows ------------------------------------------------------------------------------------------------------------------------------ */

typedef struct window {
    int rank, lead; /* lead: axes before the spatial ones that are added */
    const int64_t *size, *stride, *dilation;
    int64_t pads[2 * TN_MAX_RANK];
    int first; /* the first spatial axis of the primitive */
} window;

static tn_status read_window(tn_contract *c, window *w) {
    const tn_dim *lo, *hi;
    tn_graph *g = c->g;
    w->rank = tn_value_rank(g, tn_c_in(c, 0));
    tn_attr_ints(g, c->node, "window", &w->size);
    tn_attr_ints(g, c->node, "stride", &w->stride);
    tn_attr_ints(g, c->node, "dilation", &w->dilation);
    tn_attr_dims(g, c->node, "lo", &lo);
    tn_attr_dims(g, c->node, "hi", &hi);
    bool plain = w->rank > 2;
    for (int i = 0; i < 2 && plain; i++) {
        int64_t a, b;
        plain = w->size[i] == 1 && w->stride[i] == 1 && tn_dim_is_const(g, lo[i], &a) &&
                tn_dim_is_const(g, hi[i], &b) && a == 0 && b == 0;
    }
    w->first = plain ? 2 : 0;
    w->lead = plain ? 0 : 2;
    int spatial = w->rank - w->first;
    for (int i = 0; i < spatial; i++)
        if (!tn_dim_is_const(g, lo[w->first + i], &w->pads[i]) ||
            !tn_dim_is_const(g, hi[w->first + i], &w->pads[spatial + i]) || w->pads[i] < 0 || w->pads[spatial + i] < 0)
            return tn_c_unsupported(c, "padding that is negative or not a constant");
    return TN_OK;
}

static tn_value lead(tn_contract *c, const window *w, tn_value x, const char *op, tn_type type) {
    return w->lead ? tn_c_two(c, op, x, tn_c_i64s(c, 2, (int64_t[]){0, 1}), type) : x;
}

static uint32_t window_attrs(const window *w, tn_attr attrs[5]) {
    int spatial = w->rank - w->first;
    attrs[0] = TN_A_INTS("kernel_shape", spatial, w->size + w->first);
    attrs[1] = TN_A_INTS("strides", spatial, w->stride + w->first);
    attrs[2] = TN_A_INTS("dilations", spatial, w->dilation + w->first);
    attrs[3] = TN_A_INTS("pads", 2 * spatial, w->pads);
    return 4;
}

static tn_status window_max(tn_contract *c) {
    window w;
    TN_TRY(read_window(c, &w));
    tn_attr attrs[5];
    uint32_t n = window_attrs(&w, attrs);
    bool min = strcmp(tn_node_op_name(c->g, c->node), "window_min") == 0;
    tn_type type = tn_c_type(c, 0);
    tn_value x = tn_c_in(c, 0);
    tn_dtype dtype = tn_value_dtype(c->g, x);
    if (tn_dtype_is_int(dtype) && dtype != TN_I8 && dtype != TN_U8)
        return tn_c_unsupported(c, "MaxPool of wide integers");
    if (min && !tn_dtype_is_float(dtype))
        return tn_c_unsupported(c, "smallest integers of windows");
    if (min)
        x = tn_c_one(c, "Neg", x, tn_value_type(c->g, x));
    x = lead(c, &w, x, "Unsqueeze", (tn_type){0});
    x = tn_c_emit(c, "MaxPool", 1, &x, n, attrs, w.lead ? (tn_type){0} : type);
    x = lead(c, &w, x, "Squeeze", type);
    return tn_c_set(c, 0, min ? tn_c_one(c, "Neg", x, type) : x);
}

/* A convolution of each channel with ones: sums as they are, without a division. */
static tn_status window_sum(tn_contract *c) {
    window w;
    tn_graph *g = c->g;
    TN_TRY(read_window(c, &w));
    tn_value x = tn_c_in(c, 0);
    tn_dtype dtype = tn_value_dtype(g, x);
    if (!tn_dtype_is_float(dtype))
        return tn_c_unsupported(c, "sums of integers in windows");
    int spatial = w.rank - w.first;
    tn_dim dims[TN_MAX_RANK], kernel[TN_MAX_RANK];
    tn_type type = tn_c_type(c, 0);
    dims[1] = kernel[0] = kernel[1] = tn_dim_const(g, 1);
    dims[0] = w.first ? tn_dim_mul(g, tn_value_dim(g, x, 0), tn_value_dim(g, x, 1)) : dims[1];
    for (int i = 0; i < spatial; i++) {
        dims[2 + i] = tn_value_dim(g, x, w.first + i);
        kernel[2 + i] = tn_dim_const(g, w.size[w.first + i]);
    }
    if (!dims[0].id)
        return tn_graph_check(g);
    uint32_t n = (uint32_t)spatial + 2;
    tn_value ones = tn_c_two(c, "Expand", tn_scalar(g, dtype, 1), tn_c_dims(c, n, kernel), (tn_type){0});
    tn_attr keep = TN_A_INT("allowzero", 1), attrs[5];
    tn_value flat = tn_c_emit(c, "Reshape", 2, (tn_value[]){x, tn_c_dims(c, n, dims)}, 1, &keep, (tn_type){0});
    uint32_t count = window_attrs(&w, attrs);
    tn_value sums = tn_c_emit(c, "Conv", 2, (tn_value[]){flat, ones}, count, attrs, (tn_type){0});
    tn_dim out[TN_MAX_RANK];
    for (int i = 0; i < w.rank; i++)
        out[i] = tn_type_dims(g, type)[i];
    return tn_c_set(
        c, 0, tn_c_emit(c, "Reshape", 2, (tn_value[]){sums, tn_c_dims(c, (uint32_t)w.rank, out)}, 1, &keep, type));
}

static tn_status window_arg_max(tn_contract *c) {
    window w;
    TN_TRY(read_window(c, &w));
    tn_attr attrs[5];
    uint32_t n = window_attrs(&w, attrs);
    tn_value x = tn_c_in(c, 0), out[2];
    if (w.lead)
        return tn_c_unsupported(c, "windows over the first axes");
    attrs[n++] = TN_A_INT("storage_order", tn_attr_string_is(c->g, c->node, "order", "column"));
    const tn_onnx_op *row = tn_onnx_find_any("", "MaxPool");
    tn_type types[] = {tn_c_like(c, tn_node_output(c->g, c->node, 0), tn_value_dtype(c->g, x)), tn_c_type(c, 0)};
    if (!row)
        return tn_c_unsupported(c, "MaxPool is not in this build");
    tn_node node = tn_graph_add_node_typed(
        c->g,
        &(tn_node_desc){
            .op = &row->op, .input_count = 1, .inputs = &x, .output_count = 2, .attr_count = n, .attrs = attrs},
        types);
    if (!node.id)
        return tn_graph_check(c->g);
    out[1] = tn_node_output(c->g, node, 1);
    return tn_c_set(c, 0, out[1]);
}

/* --- contractions ----------------------------------------------------------------------------------------------------------------------- */

/* Whether integers are known to come from 8 bits, less a zero point: products and sums of them are exact in f64. */
static bool is_narrow(const tn_graph *g, tn_value value, int depth) {
    tn_dtype dtype = tn_value_dtype(g, value);
    if (dtype == TN_I8 || dtype == TN_U8)
        return true;
    tn_node n = tn_value_producer(g, value);
    if (!n.id || depth > 8)
        return false;
    tn_tensor *constant = tn_value_constant(g, value);
    if (constant) {
        bool small = true;
        for (int64_t i = 0; i < constant->count && small && constant->contiguous; i++) {
            int64_t v = tn_load_i64(dtype, constant->data, i);
            small = v >= -1024 && v <= 1024;
        }
        return small && constant->contiguous;
    }
    bool all = tn_node_input_count(g, n) > 0;
    const char *op = tn_node_op_name(g, n);
    bool passes = strcmp(op, "onnx.Cast") == 0 || strcmp(op, "onnx.Sub") == 0 || strcmp(op, "onnx.Pad") == 0 ||
                  strcmp(op, "onnx.Expand") == 0 || strcmp(op, "onnx.Reshape") == 0 ||
                  strcmp(op, "onnx.Transpose") == 0;
    uint32_t operands = strcmp(op, "onnx.Sub") == 0 ? 2 : 1;
    for (uint32_t i = 0; i < operands && all && passes; i++)
        all = is_narrow(g, tn_node_input(g, n, i), depth + 1);
    return all && passes;
}

static tn_value as_dtype(tn_contract *c, tn_value x, bool convert, tn_dtype to) {
    return convert ? tn_c_cast(c, x, to) : x;
}

/* w [M, C/g, k...] as ConvTranspose wants it: [C, M/g, k...], the kernel turned round. */
static tn_value turned(tn_contract *c, tn_value w, int64_t groups, int spatial) {
    int64_t starts[TN_MAX_RANK], ends[TN_MAX_RANK], axes[TN_MAX_RANK], steps[TN_MAX_RANK], perm[TN_MAX_RANK];
    for (int i = 0; i < spatial; i++) {
        starts[i] = steps[i] = -1;
        ends[i] = -INT64_MAX;
        axes[i] = 2 + i;
    }
    uint32_t n = (uint32_t)spatial;
    tn_value in[] = {w, tn_c_i64s(c, n, starts), tn_c_i64s(c, n, ends), tn_c_i64s(c, n, axes), tn_c_i64s(c, n, steps)};
    tn_value back = tn_c_emit(c, "Slice", 5, in, 0, NULL, (tn_type){0});
    tn_dim by = tn_dim_const(c->g, groups), dims[TN_MAX_RANK];
    dims[0] = by;
    dims[1] = tn_dim_floordiv(c->g, tn_value_dim(c->g, w, 0), by);
    for (int i = 1; i < spatial + 2; i++)
        dims[i + 1] = tn_value_dim(c->g, w, i);
    for (int i = 0; i < spatial + 3; i++)
        perm[i] = i == 1 ? 2 : i == 2 ? 1 : i;
    back = tn_c_two(c, "Reshape", back, tn_c_dims(c, n + 3, dims), (tn_type){0});
    back = tn_c_emit(c, "Transpose", 1, &back, 1, &TN_A_INTS("perm", n + 3, perm), (tn_type){0});
    dims[0] = tn_dim_mul(c->g, by, tn_value_dim(c->g, w, 1));
    dims[1] = tn_dim_floordiv(c->g, tn_value_dim(c->g, w, 0), by);
    for (int i = 2; i < spatial + 2; i++)
        dims[i] = tn_value_dim(c->g, w, i);
    return tn_c_two(c, "Reshape", back, tn_c_dims(c, n + 2, dims), (tn_type){0});
}

static tn_status conv(tn_contract *c) {
    tn_graph *g = c->g;
    const int64_t *stride, *dilation, *spread;
    const tn_dim *lo, *hi;
    int64_t pads[2 * TN_MAX_RANK] = {0}, more[TN_MAX_RANK], groups = tn_attr_int(g, c->node, "groups"), k;
    tn_value x = tn_c_in(c, 0), w = tn_c_in(c, 1);
    int spatial = tn_value_rank(g, x) - 2;
    tn_attr_ints(g, c->node, "stride", &stride);
    tn_attr_ints(g, c->node, "dilation", &dilation);
    tn_attr_ints(g, c->node, "lhs_dilation", &spread);
    tn_attr_dims(g, c->node, "lo", &lo);
    tn_attr_dims(g, c->node, "hi", &hi);
    bool transposed = false, whole = !tn_dtype_is_float(tn_value_dtype(g, x));
    for (int i = 0; i < spatial; i++) {
        if (!tn_dim_is_const(g, lo[i], &pads[i]) || !tn_dim_is_const(g, hi[i], &pads[spatial + i]))
            return tn_c_unsupported(c, "padding that is not a constant");
        transposed = transposed || spread[i] != 1;
    }
    if (whole && !(is_narrow(g, x, 0) && is_narrow(g, w, 0)))
        return tn_c_unsupported(c, "convolution of integers that need not come from 8 bits");
    tn_dtype dtype = tn_type_dtype(g, tn_c_type(c, 0));
    tn_type type = whole ? tn_c_like(c, tn_node_output(g, c->node, 0), TN_F64) : tn_c_type(c, 0);
    tn_value in[] = {as_dtype(c, x, whole, TN_F64), as_dtype(c, w, whole, TN_F64)};
    tn_attr attrs[6] = {TN_A_INT("group", groups), TN_A_INTS("dilations", spatial, dilation)};
    const char *op = "Conv";
    uint32_t n = 4;
    if (!transposed) {
        attrs[2] = TN_A_INTS("strides", spatial, stride);
        for (int i = 0; i < 2 * spatial; i++)
            if (pads[i] < 0)
                return tn_c_unsupported(c, "negative padding");
    } else {
        for (int i = 0; i < spatial; i++) {
            if (stride[i] != 1 || !tn_dim_is_const(g, tn_value_dim(g, w, 2 + i), &k))
                return tn_c_unsupported(c, "a transposed convolution with strides");
            int64_t reach = (k - 1) * dilation[i];
            pads[i] = reach - pads[i];
            pads[spatial + i] = reach - pads[spatial + i];
            more[i] = pads[spatial + i] < 0 ? -pads[spatial + i] : 0;
            if (pads[spatial + i] < 0)
                pads[spatial + i] = 0;
            if (pads[i] < 0)
                return tn_c_unsupported(c, "a transposed convolution with negative padding");
        }
        op = "ConvTranspose";
        attrs[2] = TN_A_INTS("strides", spatial, spread);
        attrs[n++] = TN_A_INTS("output_padding", spatial, more);
        in[1] = turned(c, in[1], groups, spatial);
    }
    attrs[3] = TN_A_INTS("pads", 2 * spatial, pads);
    return tn_c_set(c, 0, as_dtype(c, tn_c_emit(c, op, 2, in, n, attrs, type), whole, dtype));
}

static tn_value permuted(tn_contract *c, tn_value x, uint32_t n, const int64_t *perm) {
    bool same = true;
    tn_dim dims[TN_MAX_RANK];
    for (uint32_t i = 0; i < n; i++) {
        same = same && perm[i] == i;
        dims[i] = tn_value_dim(c->g, x, (int)perm[i]);
    }
    return same ? x
                : tn_c_emit(c, "Transpose", 1, &x, 1, &TN_A_INTS("perm", n, perm),
                            tn_type_tensor(c->g, tn_value_dtype(c->g, x), (int)n, dims));
}

static bool holds(uint32_t n, const int64_t *list, int64_t axis) {
    for (uint32_t i = 0; i < n; i++)
        if (list[i] == axis)
            return true;
    return false;
}

/* One letter for each index; the equation of the general case. */
static tn_status einsum(tn_contract *c, uint32_t batch, const int64_t *ab, const int64_t *bb, uint32_t depth,
                        const int64_t *ac, const int64_t *bc) {
    char text[4 * TN_MAX_RANK + 8], a[TN_MAX_RANK], b[TN_MAX_RANK], out[2 * TN_MAX_RANK];
    tn_value in[] = {tn_c_in(c, 0), tn_c_in(c, 1)};
    int ra = tn_value_rank(c->g, in[0]), rb = tn_value_rank(c->g, in[1]), n = 0, at = 0;
    char next = 'a';
    memset(a, 0, sizeof a);
    memset(b, 0, sizeof b);
    for (uint32_t i = 0; i < batch; i++)
        out[n++] = a[ab[i]] = b[bb[i]] = next++;
    for (uint32_t i = 0; i < depth; i++)
        a[ac[i]] = b[bc[i]] = next++;
    for (int i = 0; i < ra; i++)
        if (!a[i])
            out[n++] = a[i] = next++;
    for (int i = 0; i < rb; i++)
        if (!b[i])
            out[n++] = b[i] = next++;
    if (next > 'z' + 1)
        return tn_c_unsupported(c, "a product over more than 26 indices");
    for (int i = 0; i < ra; i++)
        text[at++] = a[i];
    text[at++] = ',';
    for (int i = 0; i < rb; i++)
        text[at++] = b[i];
    memcpy(text + at, "->", 2);
    at += 2;
    for (int i = 0; i < n; i++)
        text[at++] = out[i];
    return tn_c_set(c, 0,
                    tn_c_emit(c, "Einsum", 2, in, 1, &TN_A_STRING("equation", text, (size_t)at), tn_c_type(c, 0)));
}

/* MatMul where there is one free and one contracted axis on each side, or a plain matrix on the right. */
static tn_status dot(tn_contract *c) {
    tn_graph *g = c->g;
    const int64_t *lists[4];
    int64_t ab[TN_MAX_RANK], bb[TN_MAX_RANK], ac[TN_MAX_RANK], bc[TN_MAX_RANK], pa[TN_MAX_RANK], pb[TN_MAX_RANK];
    uint32_t batch = tn_attr_ints(g, c->node, "a_batch", &lists[0]),
             depth = tn_attr_ints(g, c->node, "a_contract", &lists[2]);
    tn_attr_ints(g, c->node, "b_batch", &lists[1]);
    tn_attr_ints(g, c->node, "b_contract", &lists[3]);
    memcpy(ab, lists[0], batch * sizeof *ab);
    memcpy(bb, lists[1], batch * sizeof *bb);
    memcpy(ac, lists[2], depth * sizeof *ac);
    memcpy(bc, lists[3], depth * sizeof *bc);
    tn_value a = tn_c_in(c, 0), b = tn_c_in(c, 1);
    uint32_t ra = (uint32_t)tn_value_rank(g, a), rb = (uint32_t)tn_value_rank(g, b);
    tn_dtype dtype = tn_value_dtype(g, a), out = tn_type_dtype(g, tn_c_type(c, 0));
    if (tn_dtype_is_int(dtype) && tn_dtype_bits(dtype) < 32)
        return tn_c_unsupported(c, "products of narrow integers");
    if (dtype != out)
        return tn_c_unsupported(c, "a product whose result has another element type");
    bool vector_left = ra == depth + batch,
         plain = depth == 1 && rb == batch + 2 && (batch ? ra == batch + 2 : ra >= 2 && ac[0] == ra - 1);
    if (!plain && !(depth == 1 && batch == 0 && ra == 2 && rb == 2))
        return vector_left && depth == 1 && batch == 0 && ra == 1 && (rb == 1 || (rb == 2 && bc[0] == 0))
                   ? tn_c_set(c, 0, tn_c_two(c, "MatMul", a, b, tn_c_type(c, 0)))
                   : einsum(c, batch, ab, bb, depth, ac, bc);
    uint32_t na = 0, nb = 0;
    for (uint32_t i = 0; i < batch; i++) {
        pa[na++] = ab[i];
        pb[nb++] = bb[i];
    }
    for (uint32_t i = 0; i < ra; i++)
        if (!holds(batch, ab, i) && i != ac[0])
            pa[na++] = i;
    pa[na++] = ac[0];
    pb[nb++] = bc[0];
    for (uint32_t i = 0; i < rb; i++)
        if (!holds(batch, bb, i) && i != bc[0])
            pb[nb++] = i;
    return tn_c_set(c, 0, tn_c_two(c, "MatMul", permuted(c, a, ra, pa), permuted(c, b, rb, pb), tn_c_type(c, 0)));
}

/* --- order -------------------------------------------------------------------------------------------------------------------------------- */

static tn_status cumulative(tn_contract *c) {
    bool product = strcmp(tn_node_op_name(c->g, c->node), "cumprod") == 0;
    tn_dtype dtype = tn_value_dtype(c->g, tn_c_in(c, 0));
    if (product && c->opset < 26)
        return tn_c_unsupported(c, "CumProd begins with operator set 26");
    if (tn_dtype_is_int(dtype) && tn_dtype_bits(dtype) < 32)
        return tn_c_unsupported(c, "running results of narrow integers");
    tn_value in[] = {tn_c_in(c, 0), tn_scalar(c->g, TN_I64, (double)tn_attr_int(c->g, c->node, "axis"))};
    tn_attr attrs[] = {TN_A_INT("exclusive", tn_attr_int(c->g, c->node, "exclusive")),
                       TN_A_INT("reverse", tn_attr_int(c->g, c->node, "reverse"))};
    return tn_c_set(c, 0, tn_c_emit(c, product ? "CumProd" : "CumSum", 2, in, 2, attrs, tn_c_type(c, 0)));
}

static tn_status arg(tn_contract *c) {
    const char *op = tn_contract_find(tn_node_op_name(c->g, c->node))->onnx;
    tn_value x = tn_c_in(c, 0);
    if (tn_value_dtype(c->g, x) == TN_BOOL)
        x = tn_c_cast(c, x, TN_U8);
    tn_attr attrs[] = {TN_A_INT("axis", tn_attr_int(c->g, c->node, "axis")),
                       TN_A_INT("keepdims", tn_attr_int(c->g, c->node, "keepdims")),
                       TN_A_INT("select_last_index", tn_attr_int(c->g, c->node, "select_last"))};
    return tn_c_set(c, 0, tn_c_emit(c, op, 1, &x, 3, attrs, tn_c_type(c, 0)));
}

static tn_status top(tn_contract *c, const tn_dim *k, bool largest) {
    int64_t axis = tn_attr_int(c->g, c->node, "axis");
    tn_dim copy = *k;
    tn_value in[] = {tn_c_in(c, 0), tn_c_dims(c, 1, &copy)};
    tn_attr attrs[] = {TN_A_INT("axis", axis), TN_A_INT("largest", largest), TN_A_INT("sorted", 1)};
    if (!in[1].id)
        return tn_graph_check(c->g);
    return tn_c_emit_many(c, "TopK", 2, in, 3, attrs, 2, c->out);
}

static tn_status sort(tn_contract *c) {
    tn_dim k = tn_value_dim(c->g, tn_c_in(c, 0), (int)tn_attr_int(c->g, c->node, "axis"));
    return top(c, &k, tn_attr_int(c->g, c->node, "descending") != 0);
}

static tn_status top_k(tn_contract *c) {
    const tn_dim *k;
    tn_attr_dims(c->g, c->node, "k", &k);
    return top(c, k, tn_attr_int(c->g, c->node, "largest") != 0);
}

const tn_contract_row tn_contract_reduce[] = {
    {"reduce_sum", reduce, "ReduceSum"},
    {"reduce_prod", reduce, "ReduceProd"},
    {"reduce_max", reduce, "ReduceMax"},
    {"reduce_min", reduce, "ReduceMin"},
    {"reduce_and", reduce_logic, "ReduceMin"},
    {"reduce_or", reduce_logic, "ReduceMax"},
    {"window_sum", window_sum, NULL},
    {"window_max", window_max, NULL},
    {"window_min", window_max, NULL},
    {"window_arg_max", window_arg_max, NULL},
    {"conv", conv, NULL},
    {"dot", dot, NULL},
    {"cumsum", cumulative, NULL},
    {"cumprod", cumulative, NULL},
    {"argmax", arg, "ArgMax"},
    {"argmin", arg, "ArgMin"},
    {"sort", sort, NULL},
    {"top_k", top_k, NULL},
    {NULL, NULL, NULL},
};
