/* Frames: what is made once and kept from run to run. */
#include "runtime/frame.h"

#include "base/error.h"

/* Counts `of[i]` for each segment into the field at `at`, then lists the indices by segment. `of` answers UINT32_MAX for what is in no
   segment. */
typedef uint32_t segment_of(const tn_plan *p, uint32_t index);
typedef struct listing {
    uint32_t *first, *count;
} listing;

static uint32_t of_size(const tn_plan *p, uint32_t i) {
    return p->size_segment.data[i];
}
static uint32_t of_slot(const tn_plan *p, uint32_t i) {
    const tn_slot *s = &p->slot.data[i];
    return s->kind == TN_SLOT_ARENA && !s->fetched ? s->segment : UINT32_MAX;
}
static uint32_t of_fetched(const tn_plan *p, uint32_t i) {
    const tn_slot *s = &p->slot.data[i];
    return s->kind == TN_SLOT_ARENA && s->fetched ? s->segment : UINT32_MAX;
}
static uint32_t of_read(const tn_plan *p, uint32_t i) {
    return p->bind_read.data[i].segment;
}
static uint32_t of_symbol(const tn_plan *p, uint32_t i) {
    return p->symbol_segment.data[i];
}

/* Indices by segment. first(s) is where those of segment s begin; `first` and `count` lie in tn_segment. */
static uint32_t *list_by_segment(tn_frame *f, uint32_t count, segment_of *of, size_t first_at) {
    const tn_plan *p = f->plan;
    uint32_t *list = tn_alloc_array(f->home, count + 1u, sizeof *list), total = 0;
    if (!list)
        return NULL;
#define RANGE(s) ((uint32_t *)(void *)((char *)&f->segment[s] + first_at))
    for (uint32_t i = 0; i < count; i++) {
        uint32_t s = of(p, i);
        if (s <= p->segments)
            RANGE(s)[1]++;
    }
    for (uint32_t s = 0; s <= p->segments; s++) {
        RANGE(s)[0] = total;
        total += RANGE(s)[1];
        RANGE(s)[1] = 0;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t s = of(p, i);
        if (s <= p->segments)
            list[RANGE(s)[0] + RANGE(s)[1]++] = i;
    }
#undef RANGE
    return list;
}

static bool make_lists(tn_frame *f) {
    const tn_plan *p = f->plan;
    f->size_list = list_by_segment(f, p->size.len, of_size, offsetof(tn_segment, size));
    f->slot_list = list_by_segment(f, p->slot.len, of_slot, offsetof(tn_segment, slot));
    f->fetched_list = list_by_segment(f, p->slot.len, of_fetched, offsetof(tn_segment, fetched));
    f->read_list = list_by_segment(f, p->bind_read.len, of_read, offsetof(tn_segment, read));
    f->symbol_list = list_by_segment(f, p->symbol_segment.len, of_symbol, offsetof(tn_segment, symbol));
    if (!f->size_list || !f->slot_list || !f->fetched_list || !f->read_list || !f->symbol_list)
        return false;
    for (uint32_t s = 0; s <= p->segments; s++)
        f->segment[s].placement.order = f->placed_order + f->segment[s].slot;
    return true;
}

/* Which output a slot holds whole: the first, when the same value is several. */
static void note_outputs(tn_frame *f) {
    const tn_plan *p = f->plan;
    for (uint32_t i = 0; i < p->slot.len; i++)
        f->output_of[i] = UINT32_MAX;
    for (uint32_t i = 0; i < p->output_view.len; i++) {
        const tn_view *v = &p->view.data[p->output_view.data[i]];
        if (f->output_of[v->slot] == UINT32_MAX && p->slot.data[v->slot].value.id == v->value.id)
            f->output_of[v->slot] = i;
    }
}

tn_frame *tn_frame_create(const tn_plan *p, tn_heap *heap) {
    tn_frame *f = tn_alloc(heap, sizeof *f);
    if (!f)
        return NULL;
    f->plan = p;
    f->home = heap;
    uint32_t symbols = p->graph->dims.symbol.len, slots = p->slot.len + 1u;
    f->cache = tn_heap_cache_create(heap);
    f->heap = f->cache ? tn_heap_cache_heap(f->cache) : NULL;
    f->size = tn_alloc_array(heap, p->size.len + 1u, sizeof *f->size);
    f->missing = tn_alloc_array(heap, p->size.len + 1u, sizeof *f->missing);
    f->slot = tn_alloc_array(heap, slots, sizeof *f->slot);
    f->trip = tn_alloc_array(heap, 2 * ((size_t)p->loop.len + 1), sizeof *f->trip);
    f->fork = tn_alloc_array(heap, p->fork.len + 1u, sizeof *f->fork);
    f->object = tn_alloc_array(heap, slots, sizeof *f->object);
    f->arena = tn_alloc_array(heap, p->segments + 1u, sizeof *f->arena);
    f->segment = tn_alloc_array(heap, p->segments + 1u, sizeof *f->segment);
    f->placed_order = tn_alloc_array(heap, slots, sizeof *f->placed_order);
    f->output_of = tn_alloc_array(heap, slots, sizeof *f->output_of);
    f->was_value = tn_alloc_array(heap, symbols + 1u, sizeof *f->was_value);
    f->was_bound = tn_alloc_array(heap, symbols + 1u, sizeof *f->was_bound);
    f->armed = tn_alloc(heap, slots);
    f->garbage = tn_alloc(heap, slots);
    f->kept = tn_alloc_array(heap, p->kernel.len + 1u, sizeof *f->kept);
    f->life = tn_alloc_array(heap, slots, sizeof *f->life);
    f->which = tn_alloc_array(heap, slots, sizeof *f->which);
    if (!f->cache || !f->size || !f->missing || !f->slot || !f->trip || !f->fork || !f->object || !f->arena ||
        !f->segment || !f->placed_order || !f->output_of || !f->was_value || !f->was_bound || !f->life || !f->armed ||
        !f->garbage || !f->kept || !f->which || !tn_dim_env_init(&f->env, heap, &p->graph->dims) || !make_lists(f)) {
        tn_frame_destroy(f);
        return NULL;
    }
    if (p->host.len && !(f->host = tn_host_kernels_create(f->home, f->heap, p->isa))) {
        tn_frame_destroy(f);
        return NULL;
    }
    note_outputs(f);
    f->version = 1;
    for (uint32_t i = 0; i < p->slot.len; i++)
        if (p->slot.data[i].kind == TN_SLOT_CONSTANT)
            f->slot[i] = p->slot.data[i].tensor->data;
    return f;
}

void tn_frame_destroy(tn_frame *f) {
    if (!f)
        return;
    for (uint32_t i = 0; f->arena && i <= f->plan->segments; i++)
        tn_free(f->home, f->arena[i].data);
    if (f->kept)
        tn_frame_drop_kept(f);
    tn_host_kernels_destroy(f->host);
    tn_frame_profile_free(f);
    tn_dim_env_free(&f->env);
    void *const blocks[] = {f->size,      f->missing,      f->slot,      f->object,      f->arena, f->segment,
                            f->size_list, f->slot_list,    f->read_list, f->symbol_list, f->life,  f->which,
                            f->was_value, f->placed_order, f->was_bound, f->output_of,   f->armed, f->fetched_list,
                            f->kept,      f->garbage,      f->trip};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        tn_free(f->home, blocks[i]);
    tn_free(f->home, f->fork);
    tn_heap_cache_destroy(f->cache);
    tn_free(f->home, f);
}

tn_frame_memory tn_frame_measure(tn_frame *f) {
    /* between runs, what is live of the cache's heap is what kernels keep */
    tn_frame_memory m = {.cached = tn_heap_cache_held(f->cache) + tn_heap_in_use(f->heap)};
    for (uint32_t i = 0; i <= f->plan->segments; i++)
        m.arena += (size_t)f->arena[i].held;
    return m;
}

void tn_frame_trim(tn_frame *f) {
    for (uint32_t i = 0; i <= f->plan->segments; i++) {
        tn_free(f->home, f->arena[i].data);
        f->arena[i] = (tn_block){0};
    }
    tn_frame_forget(f);
    tn_frame_drop_kept(f);
    tn_host_kernels_trim(f->host);
    tn_heap_cache_trim(f->cache);
}
