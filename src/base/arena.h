/* Bump allocation freed all at once. Blocks are zeroed and aligned to 16. Not thread safe. */
#ifndef TN_BASE_ARENA_H
#define TN_BASE_ARENA_H

#include "base/heap.h"

typedef struct tn_arena_chunk tn_arena_chunk;
typedef struct tn_arena {
    tn_heap *heap;
    tn_arena_chunk *chunks; /* newest first */
    size_t used, capacity;  /* of the newest chunk */
    size_t total;           /* bytes handed out */
} tn_arena;

void tn_arena_init(tn_arena *arena, tn_heap *heap);
void *tn_arena_alloc(tn_arena *arena, size_t size); /* NULL with the error set when out of memory */
void *tn_arena_copy(tn_arena *arena, const void *bytes, size_t size);
char *tn_arena_strndup(tn_arena *arena, const char *text, size_t length);
void tn_arena_free(tn_arena *arena); /* frees all; the arena may be used again */
/* The same for arenas that are filled again and again: a single chunk is kept, what was used of it zeroed. */
void tn_arena_reset(tn_arena *arena);

#endif
