/* What the expansions share beyond op.h: sizes as values, broadcasting along one axis, windows with their padding. */
#ifndef TN_ONNX_EXPAND_COMMON_H
#define TN_ONNX_EXPAND_COMMON_H

#define TN_NO_POSITIONS
#include <tenon/build.h>

#include "onnx/op.h"

/* Refuses the model unless `cond` holds; the rest is the message that names the rule. */
#define TN_RULE(x, cond, ...)                        \
    do {                                             \
        if (!(cond))                                 \
            return tn_expand_fail((x), __VA_ARGS__); \
    } while (0)
/* Refuses the model unless two sizes are the same. Where that is not known the node waits for the run: for rules that no primitive of the
   expansion would hold to (a product's are). */
#define TN_RULE_SAME(x, a, b, ...)                                            \
    do {                                                                      \
        TN_RULE((x), !tn_dim_never_equal((x)->graph, (a), (b)), __VA_ARGS__); \
        if (!(x)->final && !tn_dim_equal((x)->graph, (a), (b)))               \
            return tn_expand_later((x), "needs the sizes of its inputs");     \
    } while (0)
/* Refuses the model unless axis `axis` of an input has the size `want`. Where that is not known the run is refused unless it has. */
#define TN_RULE_SIZE(x, input, axis, want, ...)                                                                 \
    do {                                                                                                        \
        tn_dim want_ = (want);                                                                                  \
        TN_RULE((x), !tn_dim_never_equal((x)->graph, tn_expand_dim((x), (input), (axis)), want_), __VA_ARGS__); \
        TN_TRY(tn_expand_hold((x), (input), (axis), want_));                                                    \
    } while (0)
/* Answers the builder's sticky error when a value was not built. */
#define TN_BUILT(x, value)                               \
    do {                                                 \
        if ((value).id == 0)                             \
            return tn_expand_set((x), 0, (tn_value){0}); \
    } while (0)
/* Fails when a dimension was not made (overflow). */
#define TN_SIZED(x, dim)                                                                 \
    do {                                                                                 \
        if ((dim).id == 0)                                                               \
            return tn_expand_fail((x), "a size that follows from the shapes overflows"); \
    } while (0)

static inline bool tn_is_float(tn_dtype t) {
    return t == TN_F32 || t == TN_F64 || t == TN_F16 || t == TN_BF16;
}
static inline bool tn_is_signed_int(tn_dtype t) {
    return t == TN_I8 || t == TN_I16 || t == TN_I32 || t == TN_I64;
}
static inline bool tn_is_int(tn_dtype t) {
    return tn_is_signed_int(t) || t == TN_U8 || t == TN_U16 || t == TN_U32 || t == TN_U64;
}
/* What sums and statistics of `t` are computed in: f32 for f16 and bf16, else t. */
static inline tn_dtype tn_wide(tn_dtype t) {
    return t == TN_F16 || t == TN_BF16 ? TN_F32 : t;
}

/* A constant size. */
tn_dim tn_size(tn_expand *x, int64_t value);
/* Bounds of a dimension say that it is at least `low`, at most `high`. */
bool tn_size_at_least(tn_expand *x, tn_dim dim, int64_t low);
bool tn_size_at_most(tn_expand *x, tn_dim dim, int64_t high);
/* Whether a dimension is the constant `value`. */
bool tn_size_is(tn_expand *x, tn_dim dim, int64_t value);
tn_dim tn_size_product(tn_expand *x, int count, const tn_dim *dims);
/* How many elements an input of known rank has. */
tn_dim tn_size_of_input(tn_expand *x, uint32_t input);

/* For callbacks that build a body: makes an error (not TN_EXPAND_LATER) the graph's, which is what callers then find, not that the body
   left results out. */
void tn_expand_stick(tn_expand *x, tn_status status);
/* A copy of a value's dims in the node's scratch memory. NULL with the error set, and sticky in the graph: the value is null, or out of
   memory. */
tn_dim *tn_expand_value_dims(tn_expand *x, tn_value value);
/* A size, which is not negative, as a scalar of `dtype`: a constant, or read at run time from a shape that has it. */
tn_value tn_expand_size_value(tn_expand *x, tn_dim dim, tn_dtype dtype);
/* Holds an axis of an input (tn_expand_hold) to multiples of `by`; to `least` elements or more. */
tn_status tn_expand_hold_multiple(tn_expand *x, uint32_t input, int axis, int64_t by);
tn_status tn_expand_hold_least(tn_expand *x, uint32_t input, int axis, tn_dim least);
/* Rows [n, ...]; where n is 0, one of zeros: something that may be read and not taken. */
tn_value tn_expand_one_row(tn_expand *x, tn_value rows);
/* A size that is `to` if and only if `have` is 1 or `to`: for tn_expand_sure, where the value of size `have` is perhaps not read. */
tn_dim tn_expand_spread(tn_expand *x, tn_dim have, tn_dim to);
/* value itself, of the same sizes; but a run is refused in which axis `axis` is not of size `want`. */
tn_value tn_expand_sure(tn_expand *x, tn_value value, int axis, tn_dim want);
/* Small non-negative sizes as an i64 vector. */
tn_value tn_expand_sizes_value(tn_expand *x, int count, const tn_dim *dims);
/* An input repeated to this shape, with the operator's name for it: each of its sizes is 1 or that of the last axes of the shape. */
tn_status tn_expand_spread_to(tn_expand *x, uint32_t input, const char *name, int rank, const tn_dim *dims,
                              tn_value *out);
/* An input that must hold one element, as a scalar or a list: the operator's name for it. */
tn_status tn_expand_single(tn_expand *x, uint32_t input, const char *name);
/* A list that must hold `size` entries, as such; checked at run time where it is not known to. */
tn_value tn_expand_listed(tn_expand *x, tn_value list, tn_dim size);
/* value [n] as [1, ..., n, ..., 1] of `rank`, n at `axis`. */
tn_value tn_expand_along(tn_expand *x, tn_value value, int rank, int axis);
/* A tensor full of one number. */
tn_value tn_expand_full(tn_expand *x, tn_dtype dtype, double number, int rank, const tn_dim *dims);
/* What fills when nothing is given: 0, false or the empty string, a scalar. */
tn_value tn_expand_zero(tn_expand *x, tn_dtype dtype);
/* The size of the reduced part as a scalar of `dtype`. */
tn_value tn_expand_count(tn_expand *x, tn_value value, int count, const int *axes, tn_dtype dtype);
/* Mean over axes, kept as 1; the sum and the division in the value's own dtype. count 0: the value. */
tn_value tn_expand_mean(tn_expand *x, tn_value value, int count, const int *axes);
/* `value` with the sizes of `like`, of the same rank: what a trip makes of a loop value. Checked at run time where not provable. */
tn_value tn_expand_sized_as(tn_graph *graph, tn_value value, tn_value like);
/* One slice of an axis: sizes and starts of the other axes are whole. */
tn_value tn_expand_slice(tn_expand *x, tn_value value, int axis, tn_dim start, tn_dim size, int64_t step);

/* The elements of a small integer input as sizes, or as constants: TN_OK with their number, or how the expansion ends when they
   are not known (tn_expand_later with `reason`, a literal) or the input cannot be such a list. */
tn_status tn_expand_known_dims(tn_expand *x, uint32_t input, const char *reason, tn_dim values[TN_MAX_RANK],
                               int *count);
tn_status tn_expand_known_ints(tn_expand *x, uint32_t input, const char *reason, int64_t values[TN_MAX_RANK],
                               int *count);
/* Axes from an input or, when that is absent, all of `rank`; made non-negative, none twice. */
tn_status tn_expand_axes_input(tn_expand *x, uint32_t input, int rank, int axes[TN_MAX_RANK], int *count);

/* A node of a row with several outputs, by name. TN_OK, or the graph's error. */
tn_status tn_expand_many(tn_expand *x, const char *op, uint32_t inputs, const tn_value *in, uint32_t attr_count,
                         const tn_attr *attrs, uint32_t outputs, tn_value *out);

/* expand_loop_rows.c: TN_LOOP_ROWS where the type of a stacked result of `body` is not known; result i of it is result i - `ours` of the
   node's own body. Puts it at attr[*count], then counts. */
tn_status tn_expand_loop_rows(tn_expand *x, tn_region body, uint32_t carried, uint32_t ours, tn_attr *attr,
                              uint32_t *count);

/* `value` as a value of `type`: through an ONNX node that is expanded when it runs, whose output is declared so
   (expand_control.c). */
tn_value tn_expand_declared(tn_expand *x, const char *op, tn_value value, tn_type type);
/* A truth value as a bool scalar (expand_if.c). */
tn_status tn_expand_truth(tn_expand *x, tn_value value, tn_value *out);
/* Takes away a region that became no node's (expand_control.c). */
tn_status tn_expand_discard(tn_expand *x, tn_region region);

/* Numbers that must each be from `low` to `high` (scalars of their type), else the run fails and says of which element of `what` that is not so. */
tn_value tn_expand_within(tn_expand *x, tn_value value, tn_value low, tn_value high, const char *what);
/* An input of integers that must each be from 0 to `high` (an i64 scalar), as i64. */
tn_value tn_expand_counted(tn_expand *x, uint32_t input, tn_value high, const char *what);

/* The geometry of windows over the spatial axes of input 0 [N, C, spatial...] (Conv, pooling, ConvTranspose). */
typedef struct tn_windows {
    int spatial;                 /* number of spatial axes */
    int64_t kernel[TN_MAX_RANK]; /* of pooling; of Conv only where it is known, else 0 */
    int64_t stride[TN_MAX_RANK], dilation[TN_MAX_RANK];
    tn_dim in[TN_MAX_RANK];
    tn_dim extent[TN_MAX_RANK]; /* (kernel - 1) * dilation + 1 */
    tn_dim lo[TN_MAX_RANK], hi[TN_MAX_RANK];
    tn_dim more[TN_MAX_RANK]; /* ceil_mode: padding beyond `hi` that completes the last window */
    bool padded[TN_MAX_RANK]; /* lo, hi or more is not provably 0 */
} tn_windows;
/* Reads strides, dilations, pads, auto_pad, kernel_shape and (pooling) ceil_mode. `kernel`: sizes of the kernel as the weights have
   them; NULL: kernel_shape is required. */
tn_status tn_expand_windows(tn_expand *x, tn_windows *w, const tn_dim *kernel, bool has_dilation, bool ceil_mode);
/* One int64 attribute list of exactly `count` entries, each at least `low`; absent: all `absent`. */
tn_status tn_expand_list(tn_expand *x, const char *name, int count, int64_t low, int64_t absent, int64_t *values);

#endif
