/* Allocation from a counting heap. A NULL heap means the default heap. */
#ifndef TN_BASE_HEAP_H
#define TN_BASE_HEAP_H

#include <tenon/memory.h>

/* Zeroed block aligned to 16. size 0 answers a unique non-NULL block. On failure NULL, with TN_ERR_MEMORY (or
   TN_ERR_LIMIT past the heap's limit) set as the thread's error. */
void *tn_alloc(tn_heap *heap, size_t size);
/* As tn_alloc for count * size bytes; a product that overflows fails with TN_ERR_LIMIT. */
void *tn_alloc_array(tn_heap *heap, size_t count, size_t size);
/* Not zeroed, aligned to `align` (a power of two, at most 4096). */
void *tn_alloc_aligned(tn_heap *heap, size_t size, size_t align);
/* Grows or shrinks a block of tn_alloc/tn_alloc_array; new bytes are zero. On failure NULL and `block` stays valid. */
void *tn_realloc(tn_heap *heap, void *block, size_t new_size);
/* Frees a block of any of the above; NULL is fine. `heap` must be the one it came from. */
void tn_free(tn_heap *heap, void *block);
/* For a heap whose allocator takes from another heap: a failure keeps that one's error. */
void tn_heap_relay_errors(tn_heap *heap);
/* 0: none. */
size_t tn_heap_limit(const tn_heap *heap);
/* Byte counts that never come from malloc (mappings are not counted; packed arenas are). */
char *tn_strdup(tn_heap *heap, const char *text);
char *tn_strndup(tn_heap *heap, const char *text, size_t length); /* NUL is added; text may hold NULs */

#endif
