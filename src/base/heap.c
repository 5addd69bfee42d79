/* The counting heap: counts, limits and fails on demand, over the C library's allocator or a user's. */
#include "base/heap.h"

#include "base/error.h"
#include "base/os.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct tn_heap {
    tn_allocator allocator; /* alloc NULL: the C library's */
    atomic_size_t in_use, peak, limit;
    atomic_uint_fast64_t allocations;
    atomic_uint_fast64_t fail_countdown; /* 0: off; 1: the next fails */
    atomic_bool fail_after;
    bool relays; /* the allocator sets the error */
};

/* Stands right before each block. The allocator's own block starts `padding(align)` bytes before it. */
typedef struct header {
    size_t size;
    uint32_t align;
    uint32_t tag; /* of the heap: freeing through another one is a bug that an assertion shows */
} header;

#define LEAST_ALIGN 16u
#define LARGE ((size_t)8 << 20) /* bytes of a block from which page faults are what filling it costs */
_Static_assert(sizeof(header) == LEAST_ALIGN, "blocks follow their header at the least alignment");

static tn_heap default_heap;

tn_heap *tn_heap_default(void) {
    return &default_heap;
}

static tn_heap *heap_of(tn_heap *heap) {
    return heap ? heap : &default_heap;
}

static uint32_t tag_of(const tn_heap *heap) {
    uintptr_t address = (uintptr_t)heap;
    return (uint32_t)(address >> 4) ^ (uint32_t)(address >> 36) ^ 0x7e401u;
}

static header *header_of(void *block) {
    return (header *)(void *)((char *)block - sizeof(header));
}

/* The C library's: `align` is at least 16. */
static void *libc_alloc(size_t size, size_t align, bool zero) {
    void *block = NULL;
    if (align <= LEAST_ALIGN)
        block = zero ? calloc(1, size) : malloc(size);
    else if (posix_memalign(&block, align, size) != 0)
        return NULL;
    if (block && size >= LARGE)
        tn_memory_prefer_large_pages(block, size);
    if (block && zero && align > LEAST_ALIGN)
        memset(block, 0, size);
    return block;
}

static void *raw_alloc(const tn_allocator *allocator, size_t size, size_t align, bool zero) {
    if (!allocator->alloc)
        return libc_alloc(size, align, zero);
    void *block = allocator->alloc(allocator->user, size, align);
    if (block && zero)
        memset(block, 0, size);
    return block;
}

static void raw_free(const tn_allocator *allocator, void *block, size_t size, size_t align) {
    if (!allocator->alloc)
        free(block);
    else if (allocator->free)
        allocator->free(allocator->user, block, size, align);
}

/* Bytes asked from the allocator for a block: the header (in at least one alignment) and at least one byte, so that
   the block's address lies inside it. */
static size_t raw_size(size_t size, size_t align) {
    return align + (size ? size : 1);
}

tn_heap *tn_heap_create(const tn_allocator *allocator) {
    static const tn_allocator libc;
    if (!allocator)
        allocator = &libc;
    else if (!allocator->alloc || !allocator->free) {
        tn_fail(TN_ERR_USAGE, "an allocator without alloc or free was given to tn_heap_create");
        return NULL;
    }
    tn_heap *heap = raw_alloc(allocator, sizeof *heap, LEAST_ALIGN, true);
    if (!heap) {
        tn_fail(TN_ERR_MEMORY, "out of memory: %zu bytes asked for", sizeof *heap);
        return NULL;
    }
    heap->allocator = *allocator;
    return heap;
}

void tn_heap_relay_errors(tn_heap *heap) {
    heap->relays = true;
}

void tn_heap_destroy(tn_heap *heap) {
    if (!heap || heap == &default_heap)
        return;
    tn_allocator allocator = heap->allocator;
    raw_free(&allocator, heap, sizeof *heap, LEAST_ALIGN);
}

static const tn_heap *const_heap_of(const tn_heap *heap) {
    return heap ? heap : &default_heap;
}

size_t tn_heap_in_use(const tn_heap *heap) {
    return atomic_load(&const_heap_of(heap)->in_use);
}

size_t tn_heap_peak(const tn_heap *heap) {
    return atomic_load(&const_heap_of(heap)->peak);
}

uint64_t tn_heap_allocations(const tn_heap *heap) {
    return atomic_load(&const_heap_of(heap)->allocations);
}

void tn_heap_reset_peak(tn_heap *heap) {
    heap = heap_of(heap);
    atomic_store(&heap->peak, atomic_load(&heap->in_use));
}

void tn_heap_set_limit(tn_heap *heap, size_t bytes) {
    atomic_store(&heap_of(heap)->limit, bytes);
}

size_t tn_heap_limit(const tn_heap *heap) {
    return atomic_load(&const_heap_of(heap)->limit);
}

void tn_heap_fail_at(tn_heap *heap, uint64_t n, bool and_after) {
    heap = heap_of(heap);
    atomic_store(&heap->fail_countdown, 0);
    atomic_store(&heap->fail_after, and_after);
    atomic_store(&heap->fail_countdown, n);
}

/* Counts one allocation towards tn_heap_fail_at; true when it is to fail. */
static bool fails_on_demand(tn_heap *heap) {
    uint_fast64_t left = atomic_load_explicit(&heap->fail_countdown, memory_order_relaxed);
    while (left != 0) {
        bool fail = left == 1;
        uint_fast64_t next = fail && atomic_load(&heap->fail_after) ? 1 : left - 1;
        if (next == left || atomic_compare_exchange_weak(&heap->fail_countdown, &left, next))
            return fail;
    }
    return false;
}

/* Adds `size` to the live bytes unless that passes the limit; *now gets the sum. */
static bool charge(tn_heap *heap, size_t size, size_t *now) {
    size_t used = atomic_load_explicit(&heap->in_use, memory_order_relaxed);
    do {
        size_t limit = atomic_load_explicit(&heap->limit, memory_order_relaxed);
        *now = used + size; /* cannot wrap: live bytes and size are below PTRDIFF_MAX each */
        if (limit && *now > limit) {
            tn_fail(TN_ERR_LIMIT,
                    "at least %zu bytes are needed, the memory limit is %zu (%zu are in use, %zu more asked for)", *now,
                    limit, used, size);
            return false;
        }
    } while (!atomic_compare_exchange_weak(&heap->in_use, &used, *now));
    return true;
}

static void raise_peak(tn_heap *heap, size_t now) {
    size_t peak = atomic_load_explicit(&heap->peak, memory_order_relaxed);
    while (peak < now && !atomic_compare_exchange_weak(&heap->peak, &peak, now)) {
    }
}

static void *allocate(tn_heap *heap, size_t size, size_t align, bool zero) {
    heap = heap_of(heap);
    size_t now;
    if (size > PTRDIFF_MAX - 8192 || fails_on_demand(heap)) {
        tn_fail(TN_ERR_MEMORY, "out of memory: %zu bytes asked for", size);
        return NULL;
    }
    if (!charge(heap, size, &now))
        return NULL;
    char *raw = raw_alloc(&heap->allocator, raw_size(size, align), align, zero);
    if (!raw) {
        atomic_fetch_sub(&heap->in_use, size);
        if (!heap->relays)
            tn_fail(TN_ERR_MEMORY, "out of memory: %zu bytes asked for", size);
        return NULL;
    }
    raise_peak(heap, now);
    atomic_fetch_add_explicit(&heap->allocations, 1, memory_order_relaxed);
    void *block = raw + align;
    *header_of(block) = (header){.size = size, .align = (uint32_t)align, .tag = tag_of(heap)};
    return block;
}

void *tn_alloc(tn_heap *heap, size_t size) {
    return allocate(heap, size, LEAST_ALIGN, true);
}

void *tn_alloc_array(tn_heap *heap, size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        tn_fail(TN_ERR_LIMIT, "too large: %zu elements of %zu bytes", count, size);
        return NULL;
    }
    return tn_alloc(heap, bytes);
}

void *tn_alloc_aligned(tn_heap *heap, size_t size, size_t align) {
    assert(align != 0 && (align & (align - 1)) == 0 && align <= 4096);
    return allocate(heap, size, align < LEAST_ALIGN ? LEAST_ALIGN : align, false);
}

void *tn_realloc(tn_heap *heap, void *block, size_t new_size) {
    if (!block)
        return tn_alloc(heap, new_size);
    size_t old_size = header_of(block)->size, kept = old_size < new_size ? old_size : new_size;
    /* A new block rather than the C library's realloc: live bytes and peak are then the same with any allocator. */
    char *grown = allocate(heap, new_size, header_of(block)->align, false);
    if (!grown)
        return NULL;
    memcpy(grown, block, kept);
    memset(grown + kept, 0, new_size - kept);
    tn_free(heap, block);
    return grown;
}

void tn_free(tn_heap *heap, void *block) {
    if (!block)
        return;
    heap = heap_of(heap);
    header *head = header_of(block);
    size_t size = head->size, align = head->align;
    assert(head->tag == tag_of(heap) && "a block is freed through the heap it came from, once");
    head->tag = 0;
    atomic_fetch_sub(&heap->in_use, size);
    raw_free(&heap->allocator, (char *)block - align, raw_size(size, align), align);
}

char *tn_strdup(tn_heap *heap, const char *text) {
    return tn_strndup(heap, text, strlen(text));
}

char *tn_strndup(tn_heap *heap, const char *text, size_t length) {
    if (length == SIZE_MAX) {
        tn_fail(TN_ERR_LIMIT, "too large: a text of %zu bytes", length);
        return NULL;
    }
    char *copy = allocate(heap, length + 1, LEAST_ALIGN, false);
    if (!copy)
        return NULL;
    if (length)
        memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}
