/* Shared by the expansions of ai.onnx.ml: lists as constants, labels of classes, what is done to scores in the end. */
#ifndef TN_ONNX_EXPAND_ML_H
#define TN_ONNX_EXPAND_ML_H

#include "onnx/expand_common.h"

#define TN_ML "ai.onnx.ml"

typedef enum tn_ml_post {
    TN_ML_NONE,
    TN_ML_SOFTMAX,
    TN_ML_LOGISTIC,
    TN_ML_SOFTMAX_ZERO,
    TN_ML_PROBIT
} tn_ml_post; /* the numbers of TreeEnsemble */
#define TN_ML_POSTS "NONE|SOFTMAX|LOGISTIC|SOFTMAX_ZERO|PROBIT"

/* A constant with a copy of the values, f32 or f64. Null: the graph's error. */
tn_value tn_ml_constant(tn_expand *x, tn_dtype dtype, int rank, const int64_t *dims, const float *values);
/* Takes over a tensor that must not change any more; NULL is an error that is set. */
tn_value tn_ml_tensor(tn_expand *x, tn_tensor *tensor);
/* A list of texts, or of int64 numbers, as a tensor [count]. NULL with the error set. */
tn_tensor *tn_ml_strings(tn_expand *x, uint32_t count, const tn_string *strings);
tn_tensor *tn_ml_ints(tn_expand *x, uint32_t count, const int64_t *ints);

/* Input 0, of which the element type is checked, as numbers that can be computed with: f64 stays, all else becomes f32. */
tn_status tn_ml_numbers(tn_expand *x, tn_value *out);
/* The same as rows [N, F]; a vector is one row. */
tn_status tn_ml_rows(tn_expand *x, tn_value *out);

/* Class labels from one of two attributes. */
typedef struct tn_ml_labels {
    uint32_t count; /* 0: neither attribute is given */
    bool strings;
    tn_value values; /* [count]; null when count is 0 */
} tn_ml_labels;
tn_status tn_ml_read_labels(tn_expand *x, const char *ints, const char *strings, tn_ml_labels *out);
/* Labels at the positions `index` (i64 [N]). */
tn_value tn_ml_pick(tn_expand *x, const tn_ml_labels *labels, tn_value index);
/* labels[1] where `second` (bool [N]) holds, else labels[0]. With one label of integers: 1 and 0; one label of text: that. */
tn_value tn_ml_pick_second(tn_expand *x, const tn_ml_labels *labels, tn_value second);

tn_ml_post tn_ml_read_post(tn_expand *x);
/* scores [N, E], floats. Null: the graph's error. */
tn_value tn_ml_transform(tn_expand *x, tn_ml_post post, tn_value scores);
/* The scores [N, 2] of two classes from that of the second one, [N, 1]. probability: 1 - score is the first one's. */
tn_value tn_ml_two_scores(tn_expand *x, tn_ml_post post, tn_value score, bool probability);

#endif
