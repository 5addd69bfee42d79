#include "lower/packs.h"

#include "base/map.h"
#include "base/pool.h"

typedef struct entry {
    tn_tensor *from; /* held, so that no other constant comes to lie there */
    tn_tensor *made;
    int64_t *number; /* of its form */
    int count;
    bool unfilled;
    uint64_t source, content; /* hashes */
} entry;

struct tn_packs {
    tn_heap *heap;
    tn_mutex *mutex;
    TN_VEC(entry) entry;
    uint32_t settled;               /* entries of earlier plans: the first ones */
    tn_idset by_source, by_content; /* ids: 1 + index; an entry that memory was lacking for is not found, no more */
};

tn_packs *tn_packs_create(tn_heap *heap) {
    tn_packs *p = tn_alloc(heap, sizeof *p);
    if (!p)
        return NULL;
    p->heap = heap;
    p->mutex = tn_mutex_create(heap);
    if (p->mutex)
        return p;
    tn_free(heap, p);
    return NULL;
}

void tn_packs_begin(tn_packs *p) {
    if (!p)
        return;
    tn_mutex_lock(p->mutex);
    p->settled = p->entry.len;
    tn_mutex_unlock(p->mutex);
}

static void drop(tn_packs *p, entry *e) {
    tn_tensor_destroy(e->from);
    tn_tensor_destroy(e->made);
    tn_free(p->heap, e->number);
}

void tn_packs_destroy(tn_packs *p) {
    if (!p)
        return;
    for (uint32_t i = 0; i < p->entry.len; i++)
        drop(p, &p->entry.data[i]);
    tn_vec_free(p->heap, &p->entry);
    tn_idset_free(p->heap, &p->by_source);
    tn_idset_free(p->heap, &p->by_content);
    tn_mutex_destroy(p->heap, p->mutex);
    tn_free(p->heap, p);
}

/* --- finding ----------------------------------------------------------------------------------------------------------------------- */

typedef struct wanted {
    const tn_packs *p;
    const tn_pack_form *form;
    const void *at;        /* of the source */
    const tn_tensor *made; /* of the content */
} wanted;

static bool has_form(const entry *e, const tn_pack_form *f) {
    return e->count == f->count && e->unfilled == f->unfilled &&
           memcmp(e->number, f->number, (size_t)f->count * sizeof *f->number) == 0;
}
static bool has_source(const void *ctx, uint32_t id) {
    const wanted *w = ctx;
    const entry *e = &w->p->entry.data[id - 1];
    return e->from->data == w->at && has_form(e, w->form);
}
static bool has_content(const void *ctx, uint32_t id) {
    const wanted *w = ctx;
    const entry *e = &w->p->entry.data[id - 1];
    size_t bytes = tn_tensor_bytes(w->made);
    return id <= w->p->settled && has_form(e, w->form) && tn_tensor_bytes(e->made) == bytes &&
           memcmp(e->made->data, w->made->data, bytes) == 0;
}

static uint64_t hash_of_form(const tn_pack_form *f) {
    return tn_hash_bytes(f->number, (size_t)f->count * sizeof *f->number, (uint64_t)f->unfilled);
}
static uint64_t hash_of_source(uint64_t form, const void *at) {
    return tn_hash_mix(form, (uint64_t)(uintptr_t)at);
}
/* Of some of the bytes: reading all of them costs as much as packing does. */
static uint64_t hash_of_content(uint64_t form, const tn_tensor *made) {
    enum { PIECES = 32, PIECE = 8 };
    size_t bytes = tn_tensor_bytes(made);
    const char *from = made->data;
    if (bytes <= PIECES * PIECE)
        return tn_hash_mix(form, tn_hash_bytes(from, bytes, 1));
    char some[PIECES * PIECE];
    for (size_t i = 0; i < PIECES; i++)
        memcpy(some + i * PIECE, from + (bytes - PIECE) / (PIECES - 1) * i, PIECE);
    return tn_hash_mix(form, tn_hash_bytes(some, sizeof some, 1));
}

static tn_tensor *found(const tn_packs *p, uint32_t id) {
    return id ? tn_tensor_retain(p->entry.data[id - 1].made) : NULL;
}

tn_tensor *tn_packs_find(tn_packs *p, const tn_tensor *from, const tn_pack_form *form) {
    if (!p || form->count > TN_PACK_NUMBERS)
        return NULL;
    wanted w = {.p = p, .form = form, .at = from->data};
    tn_mutex_lock(p->mutex);
    tn_tensor *made =
        found(p, tn_idset_find(&p->by_source, hash_of_source(hash_of_form(form), from->data), has_source, &w));
    tn_mutex_unlock(p->mutex);
    return made;
}

/* Makes an entry known. */
static bool list(tn_packs *p, uint32_t index) {
    const entry *e = &p->entry.data[index];
    return tn_idset_add(p->heap, &p->by_source, e->source, index + 1) &&
           tn_idset_add(p->heap, &p->by_content, e->content, index + 1);
}

static bool add(tn_packs *p, entry e, const tn_pack_form *form) {
    if (!tn_vec_reserve(p->heap, &p->entry, 1) ||
        !(e.number = tn_alloc_array(p->heap, (size_t)form->count, sizeof *e.number)))
        return false;
    memcpy(e.number, form->number, (size_t)form->count * sizeof *e.number);
    e.count = form->count;
    e.unfilled = form->unfilled;
    tn_tensor_retain(e.from);
    tn_tensor_retain(e.made);
    p->entry.data[p->entry.len++] = e;
    return list(p, p->entry.len - 1);
}

tn_tensor *tn_packs_add(tn_packs *p, tn_tensor *from, const tn_pack_form *form, tn_tensor *made) {
    if (!p || form->count > TN_PACK_NUMBERS)
        return made;
    uint64_t hash = hash_of_form(form);
    entry e = {.from = from, .made = made, .source = hash_of_source(hash, from->data)};
    wanted w = {.p = p, .form = form, .at = from->data, .made = made};
    tn_tensor *equal = NULL;
    tn_mutex_lock(p->mutex);
    e.content = e.source; /* unfilled ones take the same memory */
    if (!form->unfilled) {
        e.content = hash_of_content(hash, made);
        equal = found(p, tn_idset_find(&p->by_content, e.content, has_content, &w));
    }
    bool ok = equal || add(p, e, form);
    tn_mutex_unlock(p->mutex);
    if (!equal && ok)
        return made;
    tn_tensor_destroy(made);
    return equal;
}

tn_status tn_kernel_pack(tn_kernel *k, const tn_kernel_facts *f, const tn_pack_form *form, size_t bytes, float **fill) {
    int64_t count = (int64_t)bytes;
    *fill = NULL;
    k->pack = tn_packs_find(f->packs, f->weights(f->ctx, k->operand[1].slot), form);
    if (!k->pack) {
        if (!(k->pack = tn_tensor_new(f->heap, TN_U8, 1, &count)))
            return TN_ERR_MEMORY;
        *fill = k->pack->data;
    }
    k->packed = k->pack->data;
    k->packed_bytes = bytes;
    return TN_OK;
}

tn_status tn_kernel_packed(tn_kernel *k, const tn_kernel_facts *f, const tn_pack_form *form) {
    tn_tensor *from = (tn_tensor *)(uintptr_t)f->weights(f->ctx, k->operand[1].slot);
    k->pack = tn_packs_add(f->packs, from, form, k->pack);
    k->packed = k->pack ? k->pack->data : NULL;
    return k->pack ? TN_OK : TN_ERR_MEMORY;
}

void tn_packs_sweep(tn_packs *p) {
    if (!p)
        return;
    tn_mutex_lock(p->mutex);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < p->entry.len; i++)
        if (p->entry.data[i].made->object.refs > 1)
            p->entry.data[kept++] = p->entry.data[i];
        else
            drop(p, &p->entry.data[i]);
    if (kept < p->entry.len) {
        p->settled = p->entry.len = kept;
        tn_idset_free(p->heap, &p->by_source);
        tn_idset_free(p->heap, &p->by_content);
        for (uint32_t i = 0; i < kept; i++)
            list(p, i);
    }
    tn_mutex_unlock(p->mutex);
}
