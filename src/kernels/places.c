/* Places for scratch. */
#include "kernels/machine.h"

enum { MOST = 64 }; /* bits of `taken`; more threads than that take from the heap */

bool tn_places_make(tn_places *p, tn_heap *heap, const tn_pool *pool, int64_t pieces, size_t bytes) {
    int threads = tn_pool_threads(pool);
    p->heap = heap;
    p->bytes = (bytes + 63) & ~(size_t)63;
    p->count = pieces < threads ? (int)pieces : threads > MOST ? MOST : threads;
    p->taken = 0;
    p->base = tn_alloc_aligned(heap, p->bytes * (size_t)p->count + 64, 64);
    return p->base != NULL;
}

void tn_places_free(tn_places *p) {
    tn_free(p->heap, p->base);
    p->base = NULL;
}

char *tn_places_take(tn_places *p) {
    uint64_t taken = atomic_load_explicit(&p->taken, memory_order_relaxed);
    for (int i = 0; i < p->count;) {
        uint64_t bit = (uint64_t)1 << i;
        if (taken & bit)
            i++;
        else if (atomic_compare_exchange_weak_explicit(&p->taken, &taken, taken | bit, memory_order_acquire,
                                                       memory_order_relaxed))
            return p->base + (size_t)i * p->bytes;
        else
            i = 0;
    }
    return tn_alloc_aligned(p->heap, p->bytes, 64);
}

void tn_places_give(tn_places *p, char *place) {
    if (place < p->base || place >= p->base + (size_t)p->count * p->bytes) {
        tn_free(p->heap, place);
        return;
    }
    uint64_t bit = (uint64_t)1 << ((size_t)(place - p->base) / p->bytes);
    atomic_fetch_and_explicit(&p->taken, ~bit, memory_order_release);
}
