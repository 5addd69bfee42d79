/* A heap that keeps what is freed for the next allocation: what a run takes and gives back costs the heap behind it nothing from the
   second run on. */
#ifndef TN_BASE_HEAP_CACHE_H
#define TN_BASE_HEAP_CACHE_H

#include "base/heap.h"

/* Where what is live and what is held would be more than nine eighths of the most that was ever asked for at once, since it was last
   trimmed, larger blocks serve for small ones, and blocks that are too small go. While the heap behind has a limit, a block serves for
   its own size alone: then what is live is the least that it can be, and what is held goes where there is no room. Thread safe. */
typedef struct tn_heap_cache tn_heap_cache;
tn_heap_cache *tn_heap_cache_create(tn_heap *parent);
/* Everything allocated from its heap must have been freed. NULL is fine. */
void tn_heap_cache_destroy(tn_heap_cache *cache);
/* The heap to allocate from. Lives as long as the cache. */
tn_heap *tn_heap_cache_heap(tn_heap_cache *cache);
/* Bytes held for later. */
size_t tn_heap_cache_held(tn_heap_cache *cache);
/* Gives them back. */
void tn_heap_cache_trim(tn_heap_cache *cache);

/* Bytes that the parent would hold, had its limit not refused the last allocation that it did refuse, on whatever thread; 0: none since
   this was last asked. */
size_t tn_heap_cache_refused(tn_heap_cache *cache);
/* Makes room in the parent for `bytes` more, if its limit leaves none. */
void tn_heap_cache_yield(tn_heap_cache *cache, uint64_t bytes);
/* Nothing is held from now on: the parent's peak is then the least limit under which the same would succeed. */
void tn_heap_cache_tighten(tn_heap_cache *cache);
/* Testing aid: what it gives out, unless zeroed, is filled with TN_POISON. */
void tn_heap_cache_poison(tn_heap_cache *cache, bool on);
#define TN_POISON 0xfb /* floats of it are large and negative in every width, integers too */

#endif
