/* Objects other than tensors: sequences, optionals, maps; and equality of all. */
#include <inttypes.h>
#include <stdatomic.h>

#include "ir/tensor.h"

/* A sequence (its items), an optional (0 or 1 items) or a map (keys, values). */
typedef struct container {
    tn_object object;
    size_t count;
    struct container *next; /* in the list of those being destroyed */
    tn_object *items[];
} container;

tn_kind tn_object_kind(const tn_object *object) {
    return object != NULL ? (tn_kind)object->kind : TN_KIND_TENSOR;
}

tn_object *tn_object_retain(tn_object *object) {
    if (object != NULL)
        atomic_fetch_add_explicit(&object->refs, 1, memory_order_relaxed);
    return object;
}

/* Containers nest as deep as the user likes: destroyed by a list, not by recursion. */
void tn_object_destroy(tn_object *object) {
    container *dead = NULL;
    do {
        if (object != NULL && object->kind == TN_KIND_TENSOR) {
            tn_tensor_destroy((tn_tensor *)object);
        } else if (object != NULL && atomic_fetch_sub_explicit(&object->refs, 1, memory_order_acq_rel) == 1) {
            ((container *)object)->next = dead;
            dead = (container *)object;
        }
        while (dead != NULL && dead->count == 0) {
            container *next = dead->next;
            tn_free(dead->object.heap, dead);
            dead = next;
        }
        object = dead != NULL ? dead->items[--dead->count] : NULL;
    } while (object != NULL);
}

tn_object *tn_tensor_object(tn_tensor *tensor) {
    return (tn_object *)tensor;
}

tn_tensor *tn_object_tensor(tn_object *object) {
    return object != NULL && object->kind == TN_KIND_TENSOR ? (tn_tensor *)object : NULL;
}

static tn_object *container_create(tn_heap *heap, tn_kind kind, size_t count, tn_object *const *items) {
    size_t bytes;
    if (__builtin_mul_overflow(count, sizeof items[0], &bytes) ||
        __builtin_add_overflow(bytes, sizeof(container), &bytes)) {
        tn_fail(TN_ERR_LIMIT, "a sequence of %zu items does not fit in memory", count);
        return NULL;
    }
    for (size_t i = 0; i < count; i++)
        if (items == NULL || items[i] == NULL) {
            tn_fail(TN_ERR_USAGE, "item %zu of %zu is NULL", i, count);
            return NULL;
        }
    container *made = tn_alloc(heap, bytes);
    if (made == NULL)
        return NULL;
    atomic_init(&made->object.refs, 1);
    made->object.kind = (uint8_t)kind;
    made->object.heap = heap;
    made->count = count;
    for (size_t i = 0; i < count; i++)
        made->items[i] = tn_object_retain(items[i]);
    return &made->object;
}

/* The container behind `object` if it is of that kind, else NULL with the error set. */
static const container *container_of(const tn_object *object, tn_kind kind) {
    static const char *const names[] = {"tensor", "sequence", "optional", "map"};
    if (object != NULL && object->kind == kind)
        return (const container *)object;
    tn_fail(TN_ERR_USAGE, "a %s is wanted, not %s%s", names[kind], object == NULL ? "" : "a ",
            object == NULL ? "NULL" : names[object->kind]);
    return NULL;
}

tn_object *tn_sequence_create(tn_heap *heap, size_t count, tn_object *const *items) {
    return container_create(heap, TN_KIND_SEQUENCE, count, items);
}

size_t tn_sequence_length(const tn_object *sequence) {
    const container *c = container_of(sequence, TN_KIND_SEQUENCE);
    return c == NULL ? 0 : c->count;
}

tn_object *tn_sequence_at(const tn_object *sequence, size_t index) {
    const container *c = container_of(sequence, TN_KIND_SEQUENCE);
    if (c == NULL)
        return NULL;
    if (index >= c->count) {
        tn_fail(TN_ERR_USAGE, "item %zu of a sequence of %zu", index, c->count);
        return NULL;
    }
    return c->items[index];
}

tn_object *tn_optional_create(tn_heap *heap, tn_object *object) {
    return container_create(heap, TN_KIND_OPTIONAL, object != NULL, &object);
}

tn_object *tn_optional_get(const tn_object *optional) {
    const container *c = container_of(optional, TN_KIND_OPTIONAL);
    return c == NULL || c->count == 0 ? NULL : c->items[0];
}

tn_object *tn_map_create(tn_heap *heap, tn_tensor *keys, tn_object *values) {
    int64_t rows = -1;
    if (keys == NULL || values == NULL) {
        tn_fail(TN_ERR_USAGE, "a map needs keys and values");
        return NULL;
    }
    if (keys->rank != 1 || !(keys->dtype == TN_STRING || tn_dtype_is_int((tn_dtype)keys->dtype))) {
        tn_fail(TN_ERR_USAGE, "keys of a map are a 1-D tensor of integers or strings");
        return NULL;
    }
    if (values->kind == TN_KIND_TENSOR && ((tn_tensor *)values)->rank > 0)
        rows = ((tn_tensor *)values)->dims[0];
    else if (values->kind == TN_KIND_SEQUENCE)
        rows = (int64_t)((container *)values)->count;
    if (rows != keys->count) {
        tn_fail(TN_ERR_USAGE, "values of a map are a tensor of as many rows as keys (%" PRId64 "), or a sequence",
                keys->count);
        return NULL;
    }
    tn_object *const items[2] = {&keys->object, values};
    return container_create(heap, TN_KIND_MAP, 2, items);
}

tn_tensor *tn_map_keys(const tn_object *map) {
    const container *c = container_of(map, TN_KIND_MAP);
    return c == NULL ? NULL : (tn_tensor *)c->items[0];
}

tn_object *tn_map_values(const tn_object *map) {
    const container *c = container_of(map, TN_KIND_MAP);
    return c == NULL ? NULL : c->items[1];
}

typedef struct comparison {
    size_t size; /* bytes of an element; 0: strings */
    bool equal;
} comparison;

static void compare_row(void *ctx, int64_t n, void *const *data, const int64_t *strides) {
    comparison *c = ctx;
    size_t size = c->size > 0 ? c->size : sizeof(tn_string);
    for (int64_t i = 0; i < n && c->equal; i++) {
        const char *a = (const char *)data[0] + i * strides[0] * (int64_t)size;
        const char *b = (const char *)data[1] + i * strides[1] * (int64_t)size;
        if (c->size > 0) {
            c->equal = memcmp(a, b, size) == 0;
        } else {
            tn_string x, y;
            memcpy(&x, a, sizeof x);
            memcpy(&y, b, sizeof y);
            c->equal = x.length == y.length && (x.length == 0 || memcmp(x.data, y.data, x.length) == 0);
        }
    }
}

static bool tensors_equal(const tn_tensor *a, const tn_tensor *b) {
    if (a->dtype != b->dtype || a->rank != b->rank || memcmp(a->dims, b->dims, a->rank * sizeof a->dims[0]) != 0)
        return false;
    if (a->count == 0)
        return true;
    if (tn_dtype_is_subbyte((tn_dtype)a->dtype)) { /* contiguous; unused bits of the last byte may differ */
        size_t bits = (size_t)a->count % 8 * (size_t)tn_dtype_bits((tn_dtype)a->dtype) % 8;
        size_t whole = tn_tensor_bytes(a) - (bits != 0);
        unsigned mask = (1u << bits) - 1;
        const uint8_t *x = a->data, *y = b->data;
        return memcmp(x, y, whole) == 0 && (bits == 0 || (x[whole] & mask) == (y[whole] & mask));
    }
    if (a->dtype != TN_STRING && a->contiguous && b->contiguous)
        return memcmp(a->data, b->data, tn_tensor_bytes(a)) == 0;
    size_t size = (size_t)tn_dtype_bits((tn_dtype)a->dtype) / 8;
    comparison c = {a->dtype == TN_STRING ? 0 : size, true};
    const tn_walk_operand operands[2] = {{a->data, a->strides, size}, {b->data, b->strides, size}};
    tn_walk(a->rank, a->dims, 2, operands, compare_row, &c);
    return c.equal;
}

bool tn_object_equal(const tn_object *a, const tn_object *b) {
    if (a == b)
        return true;
    if (a == NULL || b == NULL || a->kind != b->kind)
        return false;
    if (a->kind == TN_KIND_TENSOR)
        return tensors_equal((const tn_tensor *)a, (const tn_tensor *)b);
    const container *x = (const container *)a, *y = (const container *)b;
    if (x->count != y->count)
        return false;
    for (size_t i = 0; i < x->count; i++)
        if (!tn_object_equal(x->items[i], y->items[i]))
            return false;
    return true;
}

#define MOST_NESTED 256

/* Whether any part of an object lies on a heap. */
static bool lies_on(const tn_object *object, const tn_heap *heap, int depth) {
    if (object->heap == heap)
        return true;
    if (object->kind == TN_KIND_TENSOR) {
        const tn_storage *storage = ((const tn_tensor *)object)->storage;
        return storage != NULL && storage->heap == heap;
    }
    const container *c = (const container *)object;
    for (size_t i = 0; i < c->count; i++)
        if (depth == MOST_NESTED || lies_on(c->items[i], heap, depth + 1))
            return true;
    return false;
}

static tn_object *move(tn_object *object, const tn_heap *from, tn_heap *to, int depth) {
    if (!lies_on(object, from, 0))
        return tn_object_retain(object);
    if (object->kind == TN_KIND_TENSOR)
        return (tn_object *)tn_tensor_copy_in(to, (tn_tensor *)object);
    if (depth == MOST_NESTED) {
        tn_fail(TN_ERR_LIMIT, "sequences and optionals are nested deeper than %d", MOST_NESTED);
        return NULL;
    }
    container *c = (container *)object;
    tn_object *made = container_create(to, (tn_kind)object->kind, c->count, c->items);
    for (size_t i = 0; made && i < c->count; i++) {
        tn_object *item = move(c->items[i], from, to, depth + 1);
        if (!item) {
            tn_object_destroy(made);
            return NULL;
        }
        tn_object_destroy(((container *)made)->items[i]);
        ((container *)made)->items[i] = item;
    }
    return made;
}

tn_object *tn_object_move(tn_object *object, const tn_heap *from, tn_heap *to) {
    return object ? move(object, from, to, 0) : NULL;
}
