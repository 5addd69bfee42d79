/* Bump allocation in chunks that double in size. */
#include "base/arena.h"

#include "base/error.h"

#include <string.h>

struct tn_arena_chunk {
    tn_arena_chunk *next;
    size_t capacity;
    /* capacity bytes follow */
};
_Static_assert(sizeof(tn_arena_chunk) % 16 == 0, "the bytes after a chunk's head are aligned to 16");

#ifndef FIRST_CHUNK /* tests of failing allocations want each block to be one */
#define FIRST_CHUNK ((size_t)4096)
#define LARGEST_CHUNK ((size_t)1 << 20)
#endif
#define LARGE_COPY ((size_t)64 << 10) /* bytes from which a copy is not zeroed first */

void tn_arena_init(tn_arena *arena, tn_heap *heap) {
    *arena = (tn_arena){.heap = heap};
}

/* `zero` false: the caller fills all of it. */
static tn_arena_chunk *chunk_new(tn_arena *arena, size_t capacity, bool zero) {
    size_t size = sizeof(tn_arena_chunk) + capacity;
    tn_arena_chunk *chunk = zero ? tn_alloc(arena->heap, size) : tn_alloc_aligned(arena->heap, size, 16);
    if (chunk)
        *chunk = (tn_arena_chunk){.capacity = capacity};
    return chunk;
}

/* A chunk for one block, behind the newest, whose rest stays in use. */
static void *own_chunk(tn_arena *arena, size_t need, bool zero) {
    tn_arena_chunk *own = chunk_new(arena, need, zero);
    if (!own)
        return NULL;
    own->next = arena->chunks->next;
    arena->chunks->next = own;
    return own + 1;
}

void *tn_arena_alloc(tn_arena *arena, size_t size) {
    if (size > SIZE_MAX / 2) {
        tn_fail(TN_ERR_MEMORY, "out of memory: %zu bytes asked for", size);
        return NULL;
    }
    size_t need = size ? (size + 15) & ~(size_t)15 : 16;
    if (need > arena->capacity - arena->used) {
        size_t capacity = arena->capacity ? arena->capacity * 2 : FIRST_CHUNK - sizeof(tn_arena_chunk);
        if (capacity > LARGEST_CHUNK)
            capacity = LARGEST_CHUNK;
        if (need > capacity / 4 && arena->chunks) {
            void *own = own_chunk(arena, need, true);
            arena->total += own ? size : 0;
            return own;
        }
        tn_arena_chunk *chunk = chunk_new(arena, need > capacity ? need : capacity, true);
        if (!chunk)
            return NULL;
        chunk->next = arena->chunks;
        arena->chunks = chunk;
        arena->capacity = chunk->capacity;
        arena->used = 0;
    }
    void *block = (char *)(arena->chunks + 1) + arena->used;
    arena->used += need;
    arena->total += size;
    return block;
}

void *tn_arena_copy(tn_arena *arena, const void *bytes, size_t size) {
    if (size >= LARGE_COPY && size <= SIZE_MAX / 2 && (arena->chunks || tn_arena_alloc(arena, 1))) {
        void *own = own_chunk(arena, size, false);
        if (!own)
            return NULL;
        arena->total += size;
        return memcpy(own, bytes, size);
    }
    void *copy = tn_arena_alloc(arena, size);
    if (copy && size)
        memcpy(copy, bytes, size);
    return copy;
}

char *tn_arena_strndup(tn_arena *arena, const char *text, size_t length) {
    char *copy = tn_arena_alloc(arena, length < SIZE_MAX ? length + 1 : length);
    if (copy && length)
        memcpy(copy, text, length);
    return copy; /* blocks are zeroed: the NUL is there */
}

void tn_arena_free(tn_arena *arena) {
    for (tn_arena_chunk *chunk = arena->chunks, *next; chunk; chunk = next) {
        next = chunk->next;
        tn_free(arena->heap, chunk);
    }
    tn_arena_init(arena, arena->heap);
}

void tn_arena_reset(tn_arena *arena) {
    if (!arena->chunks)
        return;
    if (arena->chunks->next) {
        tn_arena_free(arena);
        return;
    }
    memset(arena->chunks + 1, 0, arena->used);
    arena->used = 0;
    arena->total = 0;
}
