/* Growable arrays: struct { T *data; uint32_t len, cap; }. Zero-initialised is empty.
   The macros evaluate to false when out of memory (the error is set) and leave the vector unchanged. */
#ifndef TN_BASE_VEC_H
#define TN_BASE_VEC_H

#include "base/heap.h"

#define TN_VEC(T)     \
    struct {          \
        T *data;      \
        uint32_t len; \
        uint32_t cap; \
    }

/* Makes room for `extra` more elements. */
bool tn_vec_reserve_raw(tn_heap *heap, void **data, uint32_t len, uint32_t *cap, uint32_t extra, size_t size);

static inline bool tn_vec_room(tn_heap *heap, void **data, uint32_t len, uint32_t *cap, uint32_t extra, size_t size) {
    return extra <= *cap - len || tn_vec_reserve_raw(heap, data, len, cap, extra, size);
}
#define tn_vec_reserve(heap, v, extra) \
    tn_vec_room((heap), (void **)&(v)->data, (v)->len, &(v)->cap, (extra), sizeof *(v)->data)
#define tn_vec_push(heap, v, item) (tn_vec_reserve((heap), (v), 1) ? ((v)->data[(v)->len++] = (item), true) : false)
#define tn_vec_free(heap, v) (tn_free((heap), (v)->data), (v)->data = NULL, (v)->len = (v)->cap = 0)

typedef TN_VEC(uint32_t) tn_u32_vec;
typedef TN_VEC(int64_t) tn_i64_vec;

#endif
