/* What host operators share. */
#include "onnx/host_ops.h"

tn_tensor *tn_host_readable(tn_heap *heap, tn_tensor *t) {
    size_t align = t->dtype == TN_STRING ? sizeof(void *) : (size_t)tn_dtype_bits((tn_dtype)t->dtype) / 8;
    if (t->contiguous && (align < 2 || (uintptr_t)t->data % (align > 8 ? 8 : align) == 0))
        return tn_tensor_retain(t);
    tn_tensor *copy = tn_tensor_new(heap, (tn_dtype)t->dtype, t->rank, t->dims);
    if (copy && tn_tensor_assign(copy, t) != TN_OK) {
        tn_tensor_destroy(copy);
        copy = NULL;
    }
    return copy;
}
