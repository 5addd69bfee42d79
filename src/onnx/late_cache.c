/* The cache of forms: a table by node, and a list from the newest to the one used longest ago. */
#include <stdatomic.h>
#include <string.h>

#include "base/pool.h"
#include "onnx/late.h"

enum { BUCKETS = 1024 };

struct tn_late_cache {
    tn_heap *parent, *heap; /* what is kept is counted apart */
    tn_mutex *mutex;
    tn_late_form *bucket[BUCKETS];
    tn_late_form *newest, *oldest;
    uint32_t forms, numbers;
    uint64_t found, made;
};

/* --- forms ----------------------------------------------------------------------------------------------------------------------- */

tn_late_form *tn_late_form_create(tn_heap *heap) {
    tn_late_form *f = tn_alloc(heap, sizeof *f);
    if (!f)
        return NULL;
    atomic_init(&f->refs, 1);
    f->heap = heap;
    tn_text_init(&f->key, heap);
    return f;
}

void tn_late_form_release(tn_late_form *f) {
    if (!f || atomic_fetch_sub(&f->refs, 1) != 1)
        return;
    tn_heap *heap = f->heap;
    tn_vec_free(heap, &f->inputs);
    tn_vec_free(heap, &f->fed);
    tn_vec_free(heap, &f->wanted);
    tn_text_free(&f->key);
    tn_graph_destroy(f->graph);
    tn_free(heap, f);
}

/* --- the cache ------------------------------------------------------------------------------------------------------------------- */

/* The cache's heap takes its memory from the heap of the model. A block remembers its place: tn_free needs no size. */
static void *from_parent(void *user, size_t size, size_t align) {
    return tn_alloc_aligned(user, size, align);
}

static void to_parent(void *user, void *block, size_t size, size_t align) {
    (void)size, (void)align;
    tn_free(user, block);
}

tn_late_cache *tn_late_cache_create(tn_heap *heap) {
    tn_late_cache *c = tn_alloc(heap, sizeof *c);
    if (!c)
        return NULL;
    c->parent = heap;
    c->heap = tn_heap_create(&(tn_allocator){.alloc = from_parent, .free = to_parent, .user = heap});
    c->mutex = c->heap ? tn_mutex_create(heap) : NULL;
    if (c->mutex) {
        tn_heap_relay_errors(c->heap);
        return c;
    }
    tn_late_cache_destroy(c);
    return NULL;
}

static void drop(tn_late_cache *c, tn_late_form *f) {
    tn_late_form **at = &c->bucket[f->place % BUCKETS];
    while (*at != f)
        at = &(*at)->next;
    *at = f->next;
    *(f->newer ? &f->newer->older : &c->newest) = f->older;
    *(f->older ? &f->older->newer : &c->oldest) = f->newer;
    f->next = f->newer = f->older = NULL;
    c->forms--;
    tn_late_form_release(f);
}

static void put_first(tn_late_cache *c, tn_late_form *f) {
    f->newer = NULL;
    f->older = c->newest;
    *(c->newest ? &c->newest->newer : &c->oldest) = f;
    c->newest = f;
}

void tn_late_cache_destroy(tn_late_cache *c) {
    if (!c)
        return;
    while (c->oldest)
        drop(c, c->oldest);
    tn_mutex_destroy(c->parent, c->mutex);
    tn_heap_destroy(c->heap);
    tn_free(c->parent, c);
}

tn_heap *tn_late_cache_heap(tn_late_cache *c) {
    return c->heap;
}

static tn_late_form *look_up(tn_late_cache *c, uint64_t place, const tn_text *key) {
    for (tn_late_form *f = c->bucket[place % BUCKETS]; f; f = f->next)
        if (f->place == place && f->key.len == key->len && memcmp(f->key.data, key->data, key->len) == 0)
            return f;
    return NULL;
}

tn_late_form *tn_late_cache_find(tn_late_cache *c, uint64_t place, const tn_text *key) {
    tn_mutex_lock(c->mutex);
    tn_late_form *f = look_up(c, place, key);
    if (f) {
        c->found++;
        atomic_fetch_add(&f->refs, 1);
        if (f != c->newest) {
            f->newer->older = f->older;
            *(f->older ? &f->older->newer : &c->oldest) = f->newer;
            put_first(c, f);
        }
    } else
        c->made++;
    tn_mutex_unlock(c->mutex);
    return f;
}

/* The form of a node that was used longest ago when the node has as many as it may. */
static tn_late_form *surplus(tn_late_cache *c, uint64_t place) {
    uint32_t n = 0;
    for (tn_late_form *f = c->bucket[place % BUCKETS]; f; f = f->next)
        n += f->place == place;
    if (n < TN_LATE_FORMS_OF_NODE)
        return NULL;
    tn_late_form *f = c->oldest;
    while (f->place != place)
        f = f->newer;
    return f;
}

void tn_late_cache_put(tn_late_cache *c, uint64_t place, tn_text *key, tn_late_form *form) {
    tn_mutex_lock(c->mutex);
    form->number = c->numbers == UINT32_MAX ? 0 : ++c->numbers;
    if (form->number && !look_up(c, place, key)) { /* else another thread was first */
        tn_late_form *old = surplus(c, place);
        if (old)
            drop(c, old);
        while (c->oldest && (c->forms >= TN_LATE_FORMS || tn_heap_in_use(c->heap) > TN_LATE_BYTES))
            drop(c, c->oldest);
        if (tn_heap_in_use(c->heap) > TN_LATE_BYTES) { /* of runs that go on, or of this form alone */
            tn_mutex_unlock(c->mutex);
            return;
        }
        form->place = place;
        form->key = *key;
        tn_text_init(key, key->heap);
        form->next = c->bucket[place % BUCKETS];
        c->bucket[place % BUCKETS] = form;
        put_first(c, form);
        atomic_fetch_add(&form->refs, 1);
        c->forms++;
    }
    tn_mutex_unlock(c->mutex);
}

tn_late_counts tn_late_cache_counts(tn_late_cache *c) {
    if (!c)
        return (tn_late_counts){0};
    tn_mutex_lock(c->mutex);
    tn_late_counts n = {c->found, c->made, c->forms, tn_heap_in_use(c->heap)};
    tn_mutex_unlock(c->mutex);
    return n;
}
