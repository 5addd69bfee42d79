/* Building graphs in C. Each call adds nodes at the graph's insertion point and answers the result; a wrong call answers the
   null value and leaves the first error on the graph (see tn_graph_check), with the caller's file and line.

   Binary and ternary functions broadcast as numpy does (by inserting `broadcast` nodes); they never convert dtypes: mixed
   operands are an error. Every function is also a macro of the same name that passes the caller's position; define
   TN_NO_POSITIONS before including to have the plain functions. */
#ifndef TENON_BUILD_H
#define TENON_BUILD_H

#include <tenon/graph.h>

TN_BEGIN_DECLS

/* A shape in a call: sizes and names mixed, e.g. TN_SHAPE("batch", 3, 224, 224). TN_SCALAR: rank 0. TN_UNRANKED: no rank. */
typedef struct tn_shape_item {
    const char *name; /* a symbol when not NULL */
    int64_t size;
} tn_shape_item;
typedef struct tn_shape {
    int rank; /* -1: unranked */
    tn_shape_item item[8];
} tn_shape;
#define TN_SCALAR ((tn_shape){0})
#define TN_UNRANKED ((tn_shape){.rank = -1})
static inline tn_shape_item tn_shape_named(const char *name) {
    tn_shape_item i;
    i.name = name;
    i.size = 0;
    return i;
}
static inline tn_shape_item tn_shape_sized(long long size) {
    tn_shape_item i;
    i.name = 0;
    i.size = size;
    return i;
}
#ifndef __cplusplus
#define TN_SHAPE_ITEM(x) \
    _Generic((x), char * : tn_shape_named, const char * : tn_shape_named, default : tn_shape_sized)(x)
#define TN_SHAPE_N(_1, _2, _3, _4, _5, _6, _7, _8, n, ...) n
#define TN_SHAPE_1(a) TN_SHAPE_ITEM(a)
#define TN_SHAPE_2(a, ...) TN_SHAPE_ITEM(a), TN_SHAPE_1(__VA_ARGS__)
#define TN_SHAPE_3(a, ...) TN_SHAPE_ITEM(a), TN_SHAPE_2(__VA_ARGS__)
#define TN_SHAPE_4(a, ...) TN_SHAPE_ITEM(a), TN_SHAPE_3(__VA_ARGS__)
#define TN_SHAPE_5(a, ...) TN_SHAPE_ITEM(a), TN_SHAPE_4(__VA_ARGS__)
#define TN_SHAPE_6(a, ...) TN_SHAPE_ITEM(a), TN_SHAPE_5(__VA_ARGS__)
#define TN_SHAPE_7(a, ...) TN_SHAPE_ITEM(a), TN_SHAPE_6(__VA_ARGS__)
#define TN_SHAPE_8(a, ...) TN_SHAPE_ITEM(a), TN_SHAPE_7(__VA_ARGS__)
#define TN_SHAPE_CAT_(n) TN_SHAPE_##n
#define TN_SHAPE_CAT(n) TN_SHAPE_CAT_(n)
#define TN_SHAPE_COUNT(...) TN_SHAPE_N(__VA_ARGS__, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define TN_SHAPE(...) \
    ((tn_shape){TN_SHAPE_COUNT(__VA_ARGS__), {TN_SHAPE_CAT(TN_SHAPE_COUNT(__VA_ARGS__))(__VA_ARGS__)}})
#endif
/* All axes, where a list of axes is asked for. The macros of reductions take it as the last argument too: keepdims is false then. */
#define TN_ALL_AXES 0, NULL

/* --- inputs, outputs, constants ---------------------------------------------------------------------------------------- */
TN_API tn_value tn_input(tn_graph *graph, const char *name, tn_dtype dtype, tn_shape shape);
TN_API tn_value tn_set_output(tn_graph *graph, const char *name, tn_value value); /* answers `value` */
TN_API tn_value tn_constant(tn_graph *graph, tn_tensor *tensor); /* retained; must not change any more */
/* A named constant that training may change. */
TN_API tn_value tn_variable(tn_graph *graph, const char *name, tn_tensor *tensor);
TN_API tn_value tn_scalar(tn_graph *graph, tn_dtype dtype, double value);                         /* rank 0 */
TN_API tn_value tn_constant_i64(tn_graph *graph, int rank, int64_t count, const int64_t *values); /* rank 0 or 1 */
/* A scalar of the dtype of `like`. */
TN_API tn_value tn_scalar_like(tn_graph *graph, tn_value like, double value);

/* --- elementwise -------------------------------------------------------------------------------------------------------- */
/* clang-format off */
#define TN_BUILD_UNARY(X) \
    X(neg) X(abs) X(sign) X(floor) X(ceil) X(round) X(trunc) X(sqrt) X(rsqrt) X(reciprocal) X(exp) X(expm1) X(log) X(log1p) \
    X(sin) X(cos) X(tan) X(asin) X(acos) X(atan) X(sinh) X(cosh) X(tanh) X(asinh) X(acosh) X(atanh) X(erf) X(sigmoid) \
    X(not) X(bit_not) X(is_nan) X(is_finite)
#define TN_BUILD_BINARY(X) \
    X(add) X(sub) X(mul) X(div) X(mod) X(rem) X(pow) X(min) X(max) X(atan2) X(and) X(or) X(xor) X(shl) X(shr) \
    X(equal) X(not_equal) X(less) X(less_equal) X(greater) X(greater_equal)
/* clang-format on */
#define X(name) TN_API tn_value tn_##name(tn_graph *graph, tn_value x);
TN_BUILD_UNARY(X)
#undef X
#define X(name) TN_API tn_value tn_##name(tn_graph *graph, tn_value a, tn_value b);
TN_BUILD_BINARY(X)
#undef X
TN_API tn_value tn_is_inf(tn_graph *graph, tn_value x, bool positive, bool negative);
TN_API tn_value tn_select(tn_graph *graph, tn_value condition, tn_value a, tn_value b);
TN_API tn_value tn_cast(tn_graph *graph, tn_value x, tn_dtype to); /* x itself when it has that dtype */
TN_API tn_value tn_bitcast(tn_graph *graph, tn_value x, tn_dtype to);

/* --- movement; axes may be negative, counted from the end ------------------------------------------------------------------ */
TN_API tn_value tn_reshape(tn_graph *graph, tn_value x, tn_shape shape); /* one item may be -1 */
TN_API tn_value tn_reshape_dims(tn_graph *graph, tn_value x, int rank, const tn_dim *dims);
TN_API tn_value tn_transpose(tn_graph *graph, tn_value x, const int *perm); /* rank entries; NULL: reversed */
TN_API tn_value tn_broadcast(tn_graph *graph, tn_value x, int rank, const tn_dim *dims); /* x itself when equal */
/* x itself, sure to have these sizes, one for each of its axes: a run in which it has others fails. */
TN_API tn_value tn_fit(tn_graph *graph, tn_value x, const tn_dim *dims);
/* step NULL: 1. */
TN_API tn_value tn_slice(tn_graph *graph, tn_value x, const tn_dim *start, const tn_dim *size, const int64_t *step);
TN_API tn_value tn_slice_axis(tn_graph *graph, tn_value x, int axis, int64_t start, int64_t size);
TN_API tn_value tn_pad(tn_graph *graph, tn_value x, tn_value value, const tn_dim *lo, const tn_dim *hi,
                       const char *mode);
TN_API tn_value tn_concat(tn_graph *graph, int axis, uint32_t count, const tn_value *values);
TN_API tn_value tn_gather(tn_graph *graph, tn_value x, tn_value indices, int axis);
TN_API tn_value tn_expand_dims(tn_graph *graph, tn_value x, uint32_t count, const int *axes); /* axes of the result */
TN_API tn_value tn_squeeze(tn_graph *graph, tn_value x, uint32_t count, const int *axes);
TN_API tn_value tn_flatten(tn_graph *graph, tn_value x, int axis); /* 2-D: product of dims before axis, and from it */
TN_API tn_value tn_shape_of(tn_graph *graph, tn_value x);
TN_API tn_value tn_iota(tn_graph *graph, tn_dtype dtype, int rank, const tn_dim *dims, int axis);

/* --- reductions and contractions --------------------------------------------------------------------------------------------- */
#define TN_BUILD_REDUCE(X) \
    X(reduce_sum) X(reduce_prod) X(reduce_max) X(reduce_min) X(reduce_and) X(reduce_or) X(reduce_mean)
#define X(name) TN_API tn_value tn_##name(tn_graph *graph, tn_value x, uint32_t count, const int *axes, bool keepdims);
TN_BUILD_REDUCE(X)
#undef X
/* kind "sum", "max", "min"; all lists have x's rank; NULL stride/dilation: 1, NULL lo/hi: 0. */
TN_API tn_value tn_window(tn_graph *graph, const char *kind, tn_value x, const int64_t *window, const int64_t *stride,
                          const int64_t *dilation, const tn_dim *lo, const tn_dim *hi);
/* x [N, C, spatial...], w [M, C/groups, kernel...]; lists have the spatial rank, NULL as above. */
TN_API tn_value tn_conv(tn_graph *graph, tn_value x, tn_value w, const int64_t *stride, const int64_t *dilation,
                        const int64_t *lhs_dilation, const tn_dim *lo, const tn_dim *hi, int64_t groups);
TN_API tn_value tn_dot(tn_graph *graph, tn_value a, tn_value b, uint32_t batch, const int64_t *a_batch,
                       const int64_t *b_batch, uint32_t contract, const int64_t *a_contract, const int64_t *b_contract);
/* numpy's matmul: 1-D operands, broadcast batch dimensions. */
TN_API tn_value tn_matmul(tn_graph *graph, tn_value a, tn_value b);

/* --- elements at computed positions: negative indices count from the end, one out of range is an error of the run ------------ */
/* numpy's take_along_axis. */
TN_API tn_value tn_gather_elements(tn_graph *graph, tn_value x, tn_value indices, int axis);
/* Slices named by the tuples along the last axis of `indices`, after `batch_dims` axes that x and indices share. */
TN_API tn_value tn_gather_nd(tn_graph *graph, tn_value x, tn_value indices, int batch_dims);
/* x with updates put in, in order. reduction: "none" (replace; NULL too), "add", "mul", "max", "min". */
TN_API tn_value tn_scatter_elements(tn_graph *graph, tn_value x, tn_value indices, tn_value updates, int axis,
                                    const char *reduction);
TN_API tn_value tn_scatter_nd(tn_graph *graph, tn_value x, tn_value indices, tn_value updates, const char *reduction);
/* The part of x of this size (rank entries) that begins at `starts`, an integer vector; and x with that part replaced. */
TN_API tn_value tn_dynamic_slice(tn_graph *graph, tn_value x, tn_value starts, const tn_dim *size);
TN_API tn_value tn_dynamic_update_slice(tn_graph *graph, tn_value x, tn_value update, tn_value starts);
TN_API tn_value tn_reverse(tn_graph *graph, tn_value x, uint32_t count, const int *axes); /* a slice of step -1 */

/* --- order along an axis: NaN is the largest, equal elements keep their order ---------------------------------------------------- */
/* i64; the first; NaN is the extreme. */
TN_API tn_value tn_argmax(tn_graph *graph, tn_value x, int axis, bool keepdims);
TN_API tn_value tn_argmin(tn_graph *graph, tn_value x, int axis, bool keepdims);
/* Running results; exclusive: of the elements before each; reverse: from the end. */
#define TN_BUILD_CUMULATIVE(X) X(cumsum) X(cumprod) X(cummax) X(cummin)
#define X(name) TN_API tn_value tn_##name(tn_graph *graph, tn_value x, int axis, bool exclusive, bool reverse);
TN_BUILD_CUMULATIVE(X)
#undef X
/* The elements in order; where each stood (i64) in *positions, unless that is NULL. */
TN_API tn_value tn_sort(tn_graph *graph, tn_value x, int axis, bool descending, tn_value *positions);
TN_API tn_value tn_top_k(tn_graph *graph, tn_value x, int64_t k, int axis, bool largest, tn_value *positions);

/* --- as long as the data say ------------------------------------------------------------------------------------------------------ */
/* i64 [rank, n]: positions of the elements that are not zero. */
TN_API tn_value tn_nonzero(tn_graph *graph, tn_value x);
/* Slices where a bool vector holds. */
TN_API tn_value tn_compress(tn_graph *graph, tn_value x, tn_value condition, int axis);

/* --- random numbers, made by counting: the same for the same seed and offset, on any machine and any number of threads ----------- */
/* offset: an integer scalar that tells runs apart (a training step), or the null value. Nodes of one graph need different seeds. */
#define TN_BUILD_RANDOM(X) \
    X(random_bits) X(random_uniform) X(random_normal) /* integers; floats in [0, 1); mean 0, deviation 1 */
#define X(name)                                                                                            \
    TN_API tn_value tn_##name(tn_graph *graph, tn_dtype dtype, int rank, const tn_dim *dims, int64_t seed, \
                              tn_value offset);
TN_BUILD_RANDOM(X)
#undef X

/* --- composites --------------------------------------------------------------------------------------------------------------- */
TN_API tn_value tn_relu(tn_graph *graph, tn_value x);
TN_API tn_value tn_gelu(tn_graph *graph, tn_value x); /* exact, by erf */
TN_API tn_value tn_gelu_tanh(tn_graph *graph, tn_value x);
TN_API tn_value tn_softmax(tn_graph *graph, tn_value x, int axis);
TN_API tn_value tn_log_softmax(tn_graph *graph, tn_value x, int axis);
TN_API tn_value tn_silu(tn_graph *graph, tn_value x);
TN_API tn_value tn_hard_swish(tn_graph *graph, tn_value x);
TN_API tn_value tn_mish(tn_graph *graph, tn_value x);
/* Normalisations; scale and bias may be the null value. layer and rms: over the axes from `axis` on, scale and bias broadcast to x.
   The others: x [N, C, ...], scale, bias, mean, variance [C]. */
TN_API tn_value tn_layer_norm(tn_graph *graph, tn_value x, tn_value scale, tn_value bias, int axis, double epsilon);
TN_API tn_value tn_rms_norm(tn_graph *graph, tn_value x, tn_value scale, int axis, double epsilon);
TN_API tn_value tn_group_norm(tn_graph *graph, tn_value x, tn_value scale, tn_value bias, int64_t groups,
                              double epsilon);
TN_API tn_value tn_instance_norm(tn_graph *graph, tn_value x, tn_value scale, tn_value bias, double epsilon);
TN_API tn_value tn_batch_norm(tn_graph *graph, tn_value x, tn_value scale, tn_value bias, tn_value mean,
                              tn_value variance, double epsilon);
/* The loss of each row: -log softmax(logits)[label]. logits [..., C], labels integers [...]. */
TN_API tn_value tn_cross_entropy(tn_graph *graph, tn_value logits, tn_value labels);

/* --- control flow: bodies are callbacks that build ------------------------------------------------------------------------------ */
/* Builds a branch or body: reads `args`, fills `results`. Values of the enclosing region may be read. */
typedef void tn_body(void *ctx, tn_graph *graph, const tn_value *args, tn_value *results);
/* cond: bool scalar. Both branches give `count` results of equal dtypes and ranks. */
TN_API tn_status tn_if(tn_graph *graph, tn_value cond, tn_body *then_body, tn_body *else_body, void *ctx,
                       uint32_t count, tn_value *results);
/* Loops while `cond` (one bool scalar result) holds of the carried values. `carried` types, if not NULL, declare the types of the
   loop values (to allow dimensions that change: give such a dimension as a fresh symbol); otherwise the types on entry: a body
   that returns another shape is refused here, with the value's name, its shape on entry and after one trip. */
TN_API tn_status tn_while(tn_graph *graph, uint32_t count, const tn_value *init, const tn_type *carried, tn_body *cond,
                          tn_body *body, void *ctx, uint32_t stacked, tn_value *results);
/* body(carried..., slices...) -> (carried..., ys...). results: carried finals, then `stacked` ys. */
TN_API tn_status tn_scan(tn_graph *graph, uint32_t count, const tn_value *init, uint32_t scanned, const tn_value *xs,
                         tn_body *body, void *ctx, uint32_t stacked, tn_value *results);
TN_API tn_value tn_print(tn_graph *graph, tn_value x, const char *label); /* answers x, to be used onwards */
TN_API void tn_assert(tn_graph *graph, tn_value cond, const char *message);
/* x, to be used onwards: a run whose data break the rule fails as with a bad input (no optimisation drops it while x is used). `holds`:
   bool, every element must. In the message {i} stands for the index of the first that does not, as in "[2][0]", and {0}, {1}, ... for that
   element of each of `shown`, tensors with the shape of `holds` or one element. */
TN_API tn_value tn_require(tn_graph *graph, tn_value x, tn_value holds, const char *message, uint32_t count,
                           const tn_value *shown);

TN_END_DECLS

#ifndef TN_NO_POSITIONS
#include <tenon/positions.h>
#endif
#endif
