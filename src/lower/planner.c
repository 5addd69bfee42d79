/* The memory planner: greedy by size, or by breadth where that is less, improved by a bounded number of exchanges; all only while the lower
   bound is missed. */
#include "lower/planner.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

typedef struct item {
    size_t bytes, offset;
    int32_t first, last;
    uint32_t index;
} item;

static bool overlap(const item *a, const item *b) {
    return a->first <= b->last && b->first <= a->last;
}

static size_t align_up(size_t n) {
    return (n + TN_PLAN_ALIGN - 1) & ~(size_t)(TN_PLAN_ALIGN - 1);
}

/* Places items in the order given: each at the lowest gap that fits, best fit among the gaps. `sorted` (count entries) holds the
   placed ones by offset. Answers the arena's bytes. */
static size_t place(item *items, const uint32_t *order, uint32_t count, uint32_t *sorted) {
    size_t total = 0;
    uint32_t placed = 0;
    for (uint32_t k = 0; k < count; k++) {
        item *it = &items[order[k]];
        size_t at = 0, best = SIZE_MAX, best_gap = SIZE_MAX;
        for (uint32_t j = 0; j < placed; j++) {
            const item *other = &items[sorted[j]];
            if (!overlap(it, other))
                continue;
            if (other->offset >= at && other->offset - at >= it->bytes && other->offset - at < best_gap) {
                best = at;
                best_gap = other->offset - at;
            }
            size_t end = other->offset + other->bytes;
            at = end > at ? end : at;
        }
        it->offset = best != SIZE_MAX ? best : at;
        if (it->offset + it->bytes > total)
            total = it->offset + it->bytes;
        uint32_t j = placed++;
        while (j > 0 && items[sorted[j - 1]].offset > it->offset) {
            sorted[j] = sorted[j - 1];
            j--;
        }
        sorted[j] = order[k];
    }
    return total;
}

static int by_size(const void *a, const void *b) {
    const item *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    if (x->last - x->first != y->last - y->first)
        return x->last - x->first < y->last - y->first ? 1 : -1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* By breadth: what lives when most is live first, the largest first; then what lives when most of the rest is; and so on. False when out of
   memory. */
static bool order_by_breadth(tn_heap *heap, const item *items, uint32_t count, uint32_t *order) {
    int32_t end = 0;
    for (uint32_t i = 0; i < count; i++)
        end = items[i].last > end ? items[i].last : end;
    size_t *live = tn_alloc_array(heap, (size_t)end + 1, sizeof *live);
    bool *taken = tn_alloc_array(heap, count, sizeof *taken);
    uint32_t n = 0;
    for (uint32_t i = 0; i < count && live && taken; i++)
        for (int32_t t = items[i].first; t <= items[i].last; t++)
            live[t] += items[i].bytes;
    for (bool more = true; n < count && live && taken && more;) {
        int32_t widest = 0;
        for (int32_t t = 1; t <= end; t++)
            widest = live[t] > live[widest] ? t : widest;
        more = live[widest] > 0;
        live[widest] = 0;
        for (uint32_t i = 0; i < count; i++) /* which are sorted by size */
            if (!taken[i] && items[i].first <= widest && widest <= items[i].last) {
                taken[i] = true;
                order[n++] = i;
            }
    }
    for (uint32_t i = 0; i < count && live && taken; i++) /* of no bytes */
        if (!taken[i])
            order[n++] = i;
    tn_free(heap, live);
    tn_free(heap, taken);
    return n == count;
}

size_t tn_planner_bound(tn_heap *heap, uint32_t count, const tn_lifetime *buffers) {
    int32_t end = 0;
    for (uint32_t i = 0; i < count; i++)
        end = buffers[i].last > end ? buffers[i].last : end;
    /* bytes that begin and end at each instruction; 0 with the error set when there is no memory for it */
    int64_t *change = tn_alloc_array(heap, (size_t)end + 2, sizeof *change);
    if (!change)
        return 0;
    for (uint32_t i = 0; i < count; i++) {
        change[buffers[i].first] += (int64_t)align_up(buffers[i].bytes);
        change[buffers[i].last + 1] -= (int64_t)align_up(buffers[i].bytes);
    }
    int64_t live = 0, most = 0;
    for (int32_t t = 0; t <= end; t++) {
        live += change[t];
        most = live > most ? live : most;
    }
    tn_free(heap, change);
    return (size_t)most;
}

/* The sum of all, each aligned; false when it overflows. */
static bool fits_address_space(uint32_t count, const tn_lifetime *buffers) {
    size_t sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (buffers[i].bytes > (size_t)INT64_MAX / 2 || sum > (size_t)INT64_MAX / 2 - align_up(buffers[i].bytes))
            return false;
        sum += align_up(buffers[i].bytes);
    }
    return true;
}

/* Places, and tells the caller where. */
static size_t place_in(item *items, const uint32_t *order, uint32_t count, uint32_t *sorted, tn_lifetime *buffers) {
    size_t total = place(items, order, count, sorted);
    for (uint32_t i = 0; i < count; i++)
        buffers[items[i].index].offset = items[i].offset;
    return total;
}

/* Exchange: a buffer that ends at the top moves to the front of the order; kept when the arena shrinks. Offsets are in `buffers`. */
static size_t exchange(item *items, uint32_t *order, uint32_t *sorted, uint32_t *trial, uint32_t count,
                       tn_lifetime *buffers, size_t best, size_t bound) {
    for (int round = 0; round < 64 && best > bound && count > 2 && count < 5000; round++) {
        uint32_t top = 0;
        for (uint32_t i = 0; i < count; i++)
            if (buffers[items[order[i]].index].offset + items[order[i]].bytes == best)
                top = i;
        if (!top)
            break;
        uint32_t to = (uint32_t)round % top;
        memcpy(trial, order, count * sizeof *order);
        uint32_t moved = trial[top];
        memmove(trial + to + 1, trial + to, (top - to) * sizeof *trial);
        trial[to] = moved;
        size_t size = place(items, trial, count, sorted);
        if (size <= best) { /* a step aside, too: the next may lead on */
            best = size;
            memcpy(order, trial, count * sizeof *order);
            for (uint32_t i = 0; i < count; i++)
                buffers[items[i].index].offset = items[i].offset;
        }
    }
    return best;
}

/* Whether the order of before gives an arena as near to the bound as then; its offsets are in `items`. */
static bool good_again(const tn_placement *p, item *items, uint32_t *sorted, uint32_t count, size_t bound,
                       size_t *total) {
    if (!p->known)
        return false;
    *total = place(items, p->order, count, sorted);
    return *total == bound ||
           (p->total > p->bound && (double)*total / (double)bound <= (double)p->total / (double)p->bound);
}

tn_status tn_planner_place_again(tn_heap *heap, uint32_t count, tn_lifetime *buffers, tn_placement *p, size_t *total) {
    *total = 0;
    if (!count)
        return TN_OK;
    if (!fits_address_space(count, buffers))
        return tn_fail(TN_ERR_LIMIT, "the activations of this run are larger than the address space");
    item *items = tn_alloc_array(heap, count, sizeof *items);
    uint32_t *order = tn_alloc_array(heap, count, 3 * sizeof *order);
    size_t bound = items && order ? tn_planner_bound(heap, count, buffers) : 0, most = 0;
    for (uint32_t i = 0; i < count && items; i++) {
        items[i] = (item){align_up(buffers[i].bytes), 0, buffers[i].first, buffers[i].last, i};
        most = items[i].bytes > most ? items[i].bytes : most;
    }
    if (!items || !order || bound < most) {
        tn_free(heap, items);
        tn_free(heap, order);
        return TN_ERR_MEMORY;
    }
    uint32_t *sorted = order + count, *trial = sorted + count;
    if (!good_again(p, items, sorted, count, bound, total)) {
        qsort(items, count, sizeof *items, by_size);
        for (uint32_t i = 0; i < count; i++)
            order[i] = i;
        *total = place_in(items, order, count, sorted, buffers);
        if (*total > bound && count <= 2000) {
            if (!order_by_breadth(heap, items, count, trial)) {
                tn_free(heap, items);
                tn_free(heap, order);
                return TN_ERR_MEMORY;
            }
            size_t size = place(items, trial, count, sorted);
            if (size < *total) {
                memcpy(order, trial, count * sizeof *order);
                *total = place_in(items, order, count, sorted, buffers);
            }
        }
        *total = exchange(items, order, sorted, trial, count, buffers, *total, bound);
        for (uint32_t i = 0; i < count && p->order; i++)
            p->order[i] = items[order[i]].index;
        p->known = p->order != NULL;
        p->total = *total;
        p->bound = bound;
    } else
        for (uint32_t i = 0; i < count; i++)
            buffers[i].offset = items[i].offset;
    tn_free(heap, items);
    tn_free(heap, order);
    return TN_OK;
}

tn_status tn_planner_place(tn_heap *heap, uint32_t count, tn_lifetime *buffers, size_t *total) {
    tn_placement none = {0};
    return tn_planner_place_again(heap, count, buffers, &none, total);
}
