/* Free blocks in lists by size: eight lists for each doubling. */
#include "base/heap_cache.h"

#include <string.h>

#include "base/error.h"
#include "base/pool.h"

#if defined(__SANITIZE_ADDRESS__)
#define POISONS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define POISONS 1
#endif
#endif
#ifdef POISONS
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(block, size) ((void)(block), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(block, size) ((void)(block), (void)(size))
#endif

#define ALIGN ((size_t)64)
#define CLASSES 256u              /* from 64 bytes to 2^38 */
#define LARGEST ((size_t)1 << 38) /* and beyond: not kept */
#define SMALL ((size_t)64 << 10)  /* below: sizes are those of the classes */

/* Stands right before each block, in ALIGN bytes of its own. */
typedef struct head {
    struct head *next; /* in its list, while it is free */
    size_t size;       /* of the block */
} head;

struct tn_heap_cache {
    tn_heap *parent, *heap;
    tn_mutex *mutex;
    size_t live, held;  /* bytes of blocks */
    size_t asked, most; /* bytes asked for and live; the most so far */
    size_t refused;
    bool poison, tight;
    uint64_t filled[CLASSES / 64];
    head *list[CLASSES];
};

/* The class of the largest size that is not above this one. */
static uint32_t class_of(size_t size) {
    uint32_t log = 63 - (uint32_t)__builtin_clzll(size);
    return (log - 6) * 8 + ((uint32_t)(size >> (log - 3)) & 7);
}

static size_t rounded(size_t size) {
    size = (size + ALIGN - 1) & ~(ALIGN - 1);
    if (size >= SMALL)
        return size;
    uint32_t log = 63 - (uint32_t)__builtin_clzll(size);
    size_t step = (size_t)1 << (log - 3);
    step = step < ALIGN ? ALIGN : step;
    return (size + step - 1) & ~(step - 1);
}

static void *block_of(head *h) {
    return (char *)h + ALIGN;
}

static void unlink_first(tn_heap_cache *c, uint32_t class, head **at) {
    head *h = *at;
    *at = h->next;
    c->held -= h->size;
    if (!c->list[class])
        c->filled[class / 64] &= ~((uint64_t)1 << class % 64);
}

/* A free block of at least `size` bytes (no more, if `exact`), in this many classes from the smallest that may have one; or NULL. */
static head *take(tn_heap_cache *c, size_t size, uint32_t classes, bool exact) {
    uint32_t first = class_of(size);
    for (uint32_t class = first; class < CLASSES && class < first + classes; class ++) {
        if (!(c->filled[class / 64] >> class % 64 & 1))
            continue;
        for (head **at = &c->list[class]; *at; at = &(*at)->next)
            if (exact ? (*at)->size == size : (*at)->size >= size) {
                head *h = *at;
                unlink_first(c, class, at);
                return h;
            }
    }
    return NULL;
}

/* Gives free blocks back, large ones first, until at most `held` bytes are kept. */
static void shrink(tn_heap_cache *c, size_t held) {
    for (uint32_t class = CLASSES; class -- > 0 && c->held > held;)
        while (c->list[class] && c->held > held) {
            head *h = c->list[class];
            unlink_first(c, class, &c->list[class]);
            ASAN_UNPOISON_MEMORY_REGION(block_of(h), h->size);
            tn_free(c->parent, h);
        }
}

static void *cache_alloc(void *user, size_t size, size_t align) {
    tn_heap_cache *c = user;
    if (align > ALIGN || size >= LARGEST)
        return tn_alloc_aligned(c->parent, size, align);
    size = rounded(size);
    tn_mutex_lock(c->mutex);
    c->asked += size;
    c->most = c->asked > c->most ? c->asked : c->most;
    size_t room = c->most + c->most / 8;
    bool exact = tn_heap_limit(c->parent) != 0;
    head *h = take(c, size, exact ? 1 : 8, exact); /* less than twice as large */
    if (!h && !exact && c->live + c->held + size > room)
        h = take(c, size, CLASSES, false);
    if (!h) {
        shrink(c, room > c->live + size ? room - c->live - size : 0);
        h = tn_alloc_aligned(c->parent, ALIGN + size, ALIGN);
        if (!h && c->held && tn_error_status() == TN_ERR_LIMIT) {
            shrink(c, 0);
            h = tn_alloc_aligned(c->parent, ALIGN + size, ALIGN);
        }
        if (h)
            h->size = size;
        else if (tn_error_status() == TN_ERR_LIMIT)
            c->refused = tn_heap_in_use(c->parent) + ALIGN + size;
    }
    if (h) {
        c->live += h->size;
        ASAN_UNPOISON_MEMORY_REGION(block_of(h), h->size);
    } else
        c->asked -= size;
    tn_mutex_unlock(c->mutex);
    if (h && c->poison)
        memset(block_of(h), TN_POISON, h->size);
    return h ? block_of(h) : NULL;
}

static void cache_free(void *user, void *block, size_t size, size_t align) {
    tn_heap_cache *c = user;
    if (align > ALIGN || size >= LARGEST) {
        tn_free(c->parent, block);
        return;
    }
    head *h = (head *)(void *)((char *)block - ALIGN);
    ASAN_POISON_MEMORY_REGION(block, h->size);
    tn_mutex_lock(c->mutex);
    c->asked -= rounded(size);
    uint32_t class = class_of(h->size);
    h->next = c->list[class];
    c->list[class] = h;
    c->filled[class / 64] |= (uint64_t)1 << class % 64;
    c->live -= h->size;
    c->held += h->size;
    if (c->tight)
        shrink(c, 0);
    tn_mutex_unlock(c->mutex);
}

tn_heap_cache *tn_heap_cache_create(tn_heap *parent) {
    tn_heap_cache *c = tn_alloc(parent, sizeof *c);
    if (!c)
        return NULL;
    c->parent = parent;
    c->mutex = tn_mutex_create(parent);
    const tn_allocator allocator = {.alloc = cache_alloc, .free = cache_free, .user = c};
    c->heap = c->mutex ? tn_heap_create(&allocator) : NULL;
    if (c->heap) {
        tn_heap_relay_errors(c->heap);
        return c;
    }
    tn_heap_cache_destroy(c);
    return NULL;
}

void tn_heap_cache_destroy(tn_heap_cache *c) {
    if (!c)
        return;
    tn_heap_destroy(c->heap);
    shrink(c, 0);
    tn_mutex_destroy(c->parent, c->mutex);
    tn_free(c->parent, c);
}

size_t tn_heap_cache_refused(tn_heap_cache *c) {
    tn_mutex_lock(c->mutex);
    size_t refused = c->refused;
    c->refused = 0;
    tn_mutex_unlock(c->mutex);
    return refused;
}

void tn_heap_cache_yield(tn_heap_cache *c, uint64_t bytes) {
    size_t limit = tn_heap_limit(c->parent), used = tn_heap_in_use(c->parent);
    if (!limit || (used <= limit && bytes <= limit - used))
        return;
    tn_mutex_lock(c->mutex);
    shrink(c, 0);
    tn_mutex_unlock(c->mutex);
}

void tn_heap_cache_tighten(tn_heap_cache *c) {
    c->tight = true;
}

void tn_heap_cache_poison(tn_heap_cache *c, bool on) {
    c->poison = on;
}

tn_heap *tn_heap_cache_heap(tn_heap_cache *c) {
    return c->heap;
}

size_t tn_heap_cache_held(tn_heap_cache *c) {
    tn_mutex_lock(c->mutex);
    size_t held = c->held;
    tn_mutex_unlock(c->mutex);
    return held;
}

void tn_heap_cache_trim(tn_heap_cache *c) {
    tn_mutex_lock(c->mutex);
    shrink(c, 0);
    c->most = c->asked;
    tn_mutex_unlock(c->mutex);
}
