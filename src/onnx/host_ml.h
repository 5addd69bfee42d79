/* Shared by the host operators of ai.onnx.ml: finding elements among sorted keys. */
#ifndef TN_ONNX_HOST_ML_H
#define TN_ONNX_HOST_ML_H

#include "onnx/host_ops.h"
#include "ops/infer.h"

/* The attribute `name` as a contiguous tensor of rank 1; `dtype` NONE: any. */
tn_status tn_ml_infer_list(tn_infer *c, const char *name, tn_dtype dtype, tn_tensor **list);
/* The same, strictly ascending: numbers as tn_order_key orders them, texts by bytes. */
tn_status tn_ml_infer_keys(tn_infer *c, const char *name, tn_tensor **keys);

/* Finds elements of the keys' dtype. `order`: the keys as numbers that compare as they do, made when many are to be found. */
typedef struct tn_ml_finder {
    const tn_tensor *keys;
    uint64_t *order;
} tn_ml_finder;
/* `count`: how many will be looked for. */
tn_status tn_ml_finder_init(tn_ml_finder *f, tn_heap *heap, const tn_tensor *keys, int64_t count);
void tn_ml_finder_free(tn_ml_finder *f, tn_heap *heap);
/* The position of element `index` of a contiguous tensor among the keys, or -1. */
int64_t tn_ml_find(const tn_ml_finder *f, const void *data, int64_t index);

#endif
