/* The counting heap: every byte the library allocates goes through one. */
#ifndef TENON_MEMORY_H
#define TENON_MEMORY_H

#include <tenon/status.h>

TN_BEGIN_DECLS

/* A user's allocator. `alloc` answers NULL when out of memory; `align` is a power of two; `free` gets the size and
   alignment of the call that allocated. Both may be called from several threads at once. */
typedef struct tn_allocator {
    void *(*alloc)(void *user, size_t size, size_t align);
    void (*free)(void *user, void *block, size_t size, size_t align);
    void *user;
} tn_allocator;

/* A heap counts what it hands out and can be limited. It must outlive every object created with it.
   Thread safe. Functions that take a `tn_heap *` accept NULL for the default heap of the process. */
typedef struct tn_heap tn_heap;

/* A new heap over `allocator` (copied; NULL: the C library's). NULL when out of memory. */
TN_API tn_heap *tn_heap_create(const tn_allocator *allocator);
TN_API void tn_heap_destroy(tn_heap *heap);
/* The heap used where none is given. Never NULL. */
TN_API tn_heap *tn_heap_default(void);

/* Live bytes as asked for (without bookkeeping), their highest value so far, and the number of allocations made. */
TN_API size_t tn_heap_in_use(const tn_heap *heap);
TN_API size_t tn_heap_peak(const tn_heap *heap);
TN_API uint64_t tn_heap_allocations(const tn_heap *heap);
/* Sets the peak to the bytes in use now. */
TN_API void tn_heap_reset_peak(tn_heap *heap);
/* An allocation that would bring the live bytes above `bytes` fails. 0: no limit. */
TN_API void tn_heap_set_limit(tn_heap *heap, size_t bytes);
/* Testing aid: the n-th allocation from now (1 = the next) and, if `and_after`, all later ones fail. 0 switches it off. */
TN_API void tn_heap_fail_at(tn_heap *heap, uint64_t n, bool and_after);

TN_END_DECLS
#endif
