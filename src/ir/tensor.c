/* Tensors: creation, views, sharing, element access, copies, text. */
#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>

#include "ir/tensor.h"

#define DATA_ALIGN 64

static void storage_release(tn_storage *storage) {
    if (storage == NULL || atomic_fetch_sub_explicit(&storage->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (storage->strings) {
        tn_string *texts = storage->data;
        for (size_t i = 0; i < storage->bytes / sizeof(tn_string); i++)
            tn_free(storage->heap, (void *)(uintptr_t)texts[i].data);
    }
    if (storage->owned)
        tn_free(storage->heap, storage->data);
    if (storage->mapping != NULL)
        tn_mapping_release(storage->mapping);
    tn_free(storage->heap, storage);
}

/* A storage with a block of its own; zeroed on request, always for strings. */
static tn_storage *storage_create(tn_heap *heap, tn_dtype dtype, size_t bytes, bool zeroed) {
    tn_storage *storage = tn_alloc(heap, sizeof *storage);
    if (storage == NULL)
        return NULL;
    storage->data = tn_alloc_aligned(heap, bytes > 0 ? bytes : 1, DATA_ALIGN);
    if (storage->data == NULL) {
        tn_free(heap, storage);
        return NULL;
    }
    if (zeroed || dtype == TN_STRING)
        memset(storage->data, 0, bytes > 0 ? bytes : 1);
    atomic_init(&storage->refs, 1);
    storage->heap = heap;
    storage->bytes = bytes;
    storage->owned = true;
    storage->strings = dtype == TN_STRING;
    return storage;
}

/* Row-major strides. A size-0 tensor's strides are never followed, so they may stop growing. */
static void set_row_major(tn_tensor *tensor) {
    int64_t stride = 1;
    for (int i = tensor->rank - 1; i >= 0; i--) {
        int64_t next, dim = tensor->dims[i] > 1 ? tensor->dims[i] : 1;
        tensor->strides[i] = stride;
        stride = __builtin_mul_overflow(stride, dim, &next) ? stride : next;
    }
}

static bool strides_are_contiguous(int rank, const int64_t *dims, const int64_t *strides) {
    int64_t expected = 1;
    for (int i = 0; i < rank; i++)
        if (dims[i] == 0)
            return true;
    for (int i = rank - 1; i >= 0; i--) {
        if (dims[i] == 1)
            continue;
        if (strides[i] != expected)
            return false;
        expected *= dims[i]; /* the product of all is known to fit */
    }
    return true;
}

/* A tensor without data: everything checked, contiguous unless `strides`. */
static tn_tensor *shell_create(tn_heap *heap, tn_dtype dtype, int rank, const int64_t *dims, const int64_t *strides) {
    int64_t count;
    size_t bytes;
    if (tn_dtype_bits(dtype) == 0) {
        tn_fail(TN_ERR_USAGE, "a tensor of no known element type (%d)", (int)dtype);
        return NULL;
    }
    if (rank < 0 || (rank > 0 && dims == NULL)) {
        tn_fail(TN_ERR_USAGE, "a tensor of rank %d%s", rank, rank > 0 ? " without dims" : "");
        return NULL;
    }
    if (rank > TN_MAX_RANK) {
        tn_fail(TN_ERR_LIMIT, "rank %d is above the limit of %d", rank, TN_MAX_RANK);
        return NULL;
    }
    for (int i = 0; i < rank; i++)
        if (dims[i] < 0) {
            tn_fail(TN_ERR_USAGE, "dimension %d of a tensor is negative (%" PRId64 ")", i, dims[i]);
            return NULL;
        }
    if (tn_dims_count(rank, dims, &count) != TN_OK || tn_dtype_bytes(dtype, count, &bytes) != TN_OK ||
        tn_tensor_extent(dtype, rank, dims, strides, &bytes) != TN_OK)
        return NULL;
    tn_tensor *tensor = tn_alloc(heap, sizeof *tensor);
    if (tensor == NULL)
        return NULL;
    atomic_init(&tensor->object.refs, 1);
    tensor->object.kind = TN_KIND_TENSOR;
    tensor->object.heap = heap;
    tensor->dtype = (uint8_t)dtype;
    tensor->rank = (uint8_t)rank;
    tensor->count = count;
    if (rank > 0)
        memcpy(tensor->dims, dims, (size_t)rank * sizeof *dims);
    if (strides == NULL)
        set_row_major(tensor);
    else if (rank > 0)
        memcpy(tensor->strides, strides, (size_t)rank * sizeof *strides);
    tensor->contiguous = strides == NULL || strides_are_contiguous(rank, dims, strides);
    return tensor;
}

static tn_tensor *owning_create(tn_heap *heap, tn_dtype dtype, int rank, const int64_t *dims, bool zeroed) {
    tn_tensor *tensor = shell_create(heap, dtype, rank, dims, NULL);
    if (tensor == NULL)
        return NULL;
    tensor->storage = storage_create(heap, dtype, tn_tensor_bytes(tensor), zeroed);
    if (tensor->storage == NULL) {
        tn_free(heap, tensor);
        return NULL;
    }
    tensor->data = tensor->storage->data;
    return tensor;
}

tn_tensor *tn_tensor_new(tn_heap *heap, tn_dtype dtype, int rank, const int64_t *dims) {
    return owning_create(heap, dtype, rank, dims, false);
}

tn_tensor *tn_tensor_create_in(tn_heap *heap, tn_dtype dtype, int rank, const int64_t *dims) {
    return owning_create(heap, dtype, rank, dims, true);
}

tn_tensor *tn_tensor_create(tn_dtype dtype, int rank, const int64_t *dims) {
    return owning_create(NULL, dtype, rank, dims, true);
}

tn_tensor *tn_tensor_wrap_in(tn_heap *heap, tn_dtype dtype, int rank, const int64_t *dims, const int64_t *strides,
                             void *data) {
    tn_tensor *tensor = shell_create(heap, dtype, rank, dims, strides);
    if (tensor == NULL)
        return NULL;
    if (data == NULL && tensor->count > 0)
        tn_fail(TN_ERR_USAGE, "wrapping %" PRId64 " elements at NULL", tensor->count);
    else if (tn_dtype_is_subbyte(dtype) && !tensor->contiguous)
        tn_fail(TN_ERR_USAGE, "elements of %s are packed and cannot be strided", tn_dtype_name(dtype));
    else {
        tensor->data = data;
        return tensor;
    }
    tn_free(heap, tensor);
    return NULL;
}

tn_tensor *tn_tensor_wrap_strided(tn_dtype dtype, int rank, const int64_t *dims, const int64_t *strides, void *data) {
    return tn_tensor_wrap_in(NULL, dtype, rank, dims, strides, data);
}

tn_tensor *tn_tensor_wrap(tn_dtype dtype, int rank, const int64_t *dims, void *data) {
    return tn_tensor_wrap_strided(dtype, rank, dims, NULL, data);
}

tn_tensor *tn_tensor_wrap_room(tn_dtype dtype, void *data, size_t bytes) {
    size_t element = (size_t)tn_dtype_bits(dtype) / 8;
    if (dtype == TN_STRING || (!data && bytes)) {
        tn_fail(TN_ERR_USAGE, dtype == TN_STRING ? "strings have no room of the caller's" : "room at NULL");
        return NULL;
    }
    if (element > 1 && (uintptr_t)data % (element > 8 ? 8 : element) != 0) {
        tn_fail(TN_ERR_USAGE, "room for elements of %s is not aligned to them", tn_dtype_name(dtype));
        return NULL;
    }
    const int64_t none = 0;
    tn_tensor *tensor = shell_create(NULL, dtype, 1, &none, NULL);
    if (tensor) {
        tensor->data = data;
        tensor->room = bytes > 0 ? bytes : 1; /* nothing but empty tensors fits into 0 bytes, nor into 1 */
    }
    return tensor;
}

bool tn_tensor_accept(tn_tensor *t, tn_dtype dtype, int rank, const int64_t *dims) {
    int64_t count;
    size_t bytes;
    bool same = t->dtype == dtype && t->rank == rank;
    for (int i = 0; same && i < rank; i++)
        same = t->dims[i] == dims[i];
    if (same || !t->room || t->dtype != dtype)
        return same;
    if (tn_dims_count(rank, dims, &count) != TN_OK || tn_dtype_bytes(dtype, count, &bytes) != TN_OK || bytes > t->room)
        return false;
    t->rank = (uint8_t)rank;
    t->count = count;
    for (int i = 0; i < rank; i++)
        t->dims[i] = dims[i];
    set_row_major(t);
    t->contiguous = true;
    return true;
}

void tn_tensor_span(const tn_tensor *t, uintptr_t *low, uintptr_t *high) {
    uintptr_t at = (uintptr_t)t->data;
    *low = *high = at;
    if (t->room) {
        *high = at + t->room;
        return;
    }
    if (t->count == 0)
        return;
    if (t->contiguous) {
        *high = at + tn_tensor_bytes(t);
        return;
    }
    int64_t element = tn_dtype_bits((tn_dtype)t->dtype) / 8, below = 0, above = element;
    for (int i = 0; i < t->rank; i++) {
        int64_t reach = t->strides[i] * (t->dims[i] - 1) * element;
        *(reach < 0 ? &below : &above) += reach;
    }
    *low = at - (uintptr_t)-below;
    *high = at + (uintptr_t)above;
}

tn_tensor *tn_tensor_mapped(tn_heap *heap, tn_dtype dtype, int rank, const int64_t *dims, tn_mapping *mapping,
                            const void *data) {
    if (dtype == TN_STRING) {
        tn_fail(TN_ERR_USAGE, "strings cannot lie in a mapping");
        return NULL;
    }
    tn_tensor *tensor = shell_create(heap, dtype, rank, dims, NULL);
    if (tensor == NULL)
        return NULL;
    tn_storage *storage = tn_alloc(heap, sizeof *storage);
    if (storage == NULL) {
        tn_free(heap, tensor);
        return NULL;
    }
    atomic_init(&storage->refs, 1);
    storage->heap = heap;
    storage->data = (void *)(uintptr_t)data;
    storage->bytes = tn_tensor_bytes(tensor);
    storage->mapping = mapping;
    if (mapping != NULL)
        tn_mapping_retain(mapping);
    tensor->storage = storage;
    tensor->data = storage->data;
    return tensor;
}

tn_tensor *tn_tensor_view(tn_heap *heap, const tn_tensor *base, tn_dtype dtype, int rank, const int64_t *dims,
                          const int64_t *strides, int64_t offset) {
    if ((dtype == TN_STRING) != (base->dtype == TN_STRING)) {
        tn_fail(TN_ERR_USAGE, "strings and %s are no views of each other",
                tn_dtype_name(dtype == TN_STRING ? (tn_dtype)base->dtype : dtype));
        return NULL;
    }
    tn_tensor *view = shell_create(heap, dtype, rank, dims, strides);
    if (view == NULL)
        return NULL;
    if ((tn_dtype_is_subbyte(dtype) && (!view->contiguous || offset != 0)) ||
        (tn_dtype_is_subbyte((tn_dtype)base->dtype) && (!base->contiguous || offset != 0))) {
        tn_fail(TN_ERR_USAGE, "elements of %s are packed and cannot be strided",
                tn_dtype_name(tn_dtype_is_subbyte(dtype) ? dtype : (tn_dtype)base->dtype));
        tn_free(heap, view);
        return NULL;
    }
    if (base->storage != NULL)
        atomic_fetch_add_explicit(&base->storage->refs, 1, memory_order_relaxed);
    view->storage = base->storage;
    view->data = base->data;
    if (offset != 0)
        view->data = (char *)base->data + offset * (tn_dtype_bits((tn_dtype)base->dtype) / 8);
    return view;
}

tn_tensor *tn_tensor_from_i64(int64_t count, const int64_t *values) {
    tn_tensor *tensor = tn_tensor_new(NULL, TN_I64, 1, &count);
    if (tensor != NULL && count > 0 && values == NULL) {
        tn_fail(TN_ERR_USAGE, "the values of a tensor are NULL");
        tn_tensor_destroy(tensor);
        return NULL;
    }
    if (tensor != NULL && count > 0)
        memcpy(tensor->data, values, tn_tensor_bytes(tensor));
    return tensor;
}

tn_tensor *tn_tensor_from_f32(int rank, const int64_t *dims, const float *values) {
    tn_tensor *tensor = tn_tensor_new(NULL, TN_F32, rank, dims);
    if (tensor != NULL && tensor->count > 0 && values == NULL) {
        tn_fail(TN_ERR_USAGE, "the values of a tensor are NULL");
        tn_tensor_destroy(tensor);
        return NULL;
    }
    if (tensor != NULL && tensor->count > 0)
        memcpy(tensor->data, values, tn_tensor_bytes(tensor));
    return tensor;
}

tn_tensor *tn_tensor_retain(tn_tensor *tensor) {
    if (tensor != NULL)
        atomic_fetch_add_explicit(&tensor->object.refs, 1, memory_order_relaxed);
    return tensor;
}

void tn_tensor_destroy(tn_tensor *tensor) {
    if (tensor == NULL || atomic_fetch_sub_explicit(&tensor->object.refs, 1, memory_order_acq_rel) != 1)
        return;
    storage_release(tensor->storage);
    tn_free(tensor->object.heap, tensor);
}

tn_dtype tn_tensor_dtype(const tn_tensor *tensor) {
    return tensor != NULL ? (tn_dtype)tensor->dtype : TN_DTYPE_NONE;
}
int tn_tensor_rank(const tn_tensor *tensor) {
    return tensor != NULL ? tensor->rank : 0;
}
const int64_t *tn_tensor_dims(const tn_tensor *tensor) {
    return tensor != NULL ? tensor->dims : NULL;
}
const int64_t *tn_tensor_strides(const tn_tensor *tensor) {
    return tensor != NULL ? tensor->strides : NULL;
}
int64_t tn_tensor_count(const tn_tensor *tensor) {
    return tensor != NULL ? tensor->count : 0;
}
void *tn_tensor_data(const tn_tensor *tensor) {
    return tensor != NULL ? tensor->data : NULL;
}
bool tn_tensor_is_contiguous(const tn_tensor *tensor) {
    return tensor != NULL && tensor->contiguous;
}

size_t tn_tensor_bytes(const tn_tensor *tensor) {
    if (tensor == NULL)
        return 0;
    size_t bits = (size_t)tn_dtype_bits((tn_dtype)tensor->dtype), count = (size_t)tensor->count;
    if (bits >= 8)
        return count * (bits / 8);
    return count / (8 / bits) + (count % (8 / bits) != 0);
}

/* The element offset of a linear index; false (error set) when it is out of range. */
static bool element_offset(const tn_tensor *tensor, int64_t index, int64_t *offset) {
    if (tensor == NULL) {
        tn_fail(TN_ERR_USAGE, "an element of a tensor that is NULL");
        return false;
    }
    if (index < 0 || index >= tensor->count) {
        tn_fail(TN_ERR_USAGE, "element %" PRId64 " of a tensor of %" PRId64, index, tensor->count);
        return false;
    }
    *offset = index;
    if (tensor->contiguous)
        return true;
    int64_t at = 0;
    for (int i = tensor->rank - 1; i >= 0; i--) {
        at += index % tensor->dims[i] * tensor->strides[i];
        index /= tensor->dims[i];
    }
    *offset = at;
    return true;
}

double tn_tensor_get_f64(const tn_tensor *tensor, int64_t index) {
    int64_t offset;
    return element_offset(tensor, index, &offset) ? tn_load_f64((tn_dtype)tensor->dtype, tensor->data, offset)
                                                  : (double)NAN;
}

int64_t tn_tensor_get_i64(const tn_tensor *tensor, int64_t index) {
    int64_t offset;
    return element_offset(tensor, index, &offset) ? tn_load_i64((tn_dtype)tensor->dtype, tensor->data, offset) : 0;
}

tn_status tn_tensor_set_f64(tn_tensor *tensor, int64_t index, double value) {
    int64_t offset;
    if (!element_offset(tensor, index, &offset))
        return TN_ERR_USAGE;
    if (tensor->dtype == TN_STRING)
        return tn_fail(TN_ERR_USAGE, "a number stored in a tensor of strings");
    tn_store_f64((tn_dtype)tensor->dtype, tensor->data, offset, value);
    return TN_OK;
}

/* Strings of a borrowed array may be unaligned, as all data may. */
static tn_string load_string(const void *data, int64_t offset) {
    tn_string text;
    memcpy(&text, (const char *)data + offset * (int64_t)sizeof text, sizeof text);
    return text;
}

/* Replaces the string at `at` by a copy of `text`; the storage owns both. */
static tn_status replace_string(tn_storage *storage, void *data, int64_t offset, tn_string text) {
    tn_string old = load_string(data, offset), copy = {NULL, text.length};
    if (text.length > 0) {
        copy.data = tn_strndup(storage->heap, text.data, text.length);
        if (copy.data == NULL)
            return tn_error_status();
    }
    memcpy((char *)data + offset * (int64_t)sizeof copy, &copy, sizeof copy);
    tn_free(storage->heap, (void *)(uintptr_t)old.data);
    return TN_OK;
}

static tn_status check_owns_strings(const tn_tensor *tensor) {
    if (tensor->storage == NULL || !tensor->storage->strings)
        return tn_fail(TN_ERR_USAGE, "strings cannot be stored in an array of the caller's");
    return TN_OK;
}

tn_status tn_tensor_get_string(const tn_tensor *tensor, int64_t index, tn_string *out) {
    int64_t offset;
    if (tensor == NULL || out == NULL)
        return tn_fail(TN_ERR_USAGE, "the tensor of a string, or the place for it, is NULL");
    if (tensor->dtype != TN_STRING)
        return tn_fail(TN_ERR_USAGE, "a string asked of a tensor of %s", tn_dtype_name((tn_dtype)tensor->dtype));
    if (!element_offset(tensor, index, &offset))
        return TN_ERR_USAGE;
    *out = load_string(tensor->data, offset);
    if (out->data == NULL)
        out->data = "";
    return TN_OK;
}

tn_status tn_tensor_set_string(tn_tensor *tensor, int64_t index, const char *data, size_t length) {
    int64_t offset;
    if (tensor == NULL)
        return tn_fail(TN_ERR_USAGE, "a string stored in a tensor that is NULL");
    if (tensor->dtype != TN_STRING)
        return tn_fail(TN_ERR_USAGE, "a string stored in a tensor of %s", tn_dtype_name((tn_dtype)tensor->dtype));
    if (data == NULL && length > 0)
        return tn_fail(TN_ERR_USAGE, "a string of %zu bytes at NULL", length);
    if (!element_offset(tensor, index, &offset))
        return TN_ERR_USAGE;
    TN_TRY(check_owns_strings(tensor));
    return replace_string(tensor->storage, tensor->data, offset, (tn_string){data, length});
}

#define COPY_ROW(T)                                                                                       \
    static void copy_row_##T(int64_t n, char *to, int64_t to_step, const char *from, int64_t from_step) { \
        for (int64_t i = 0; i < n; i++)                                                                   \
            memcpy(to + i * to_step, from + i * from_step, sizeof(T));                                    \
    }
typedef struct bytes16 {
    uint64_t half[2];
} bytes16;
COPY_ROW(uint8_t)
COPY_ROW(uint16_t)
COPY_ROW(uint32_t)
COPY_ROW(uint64_t)
COPY_ROW(bytes16)

static void copy_row(void *ctx, int64_t n, void *const *data, const int64_t *strides) {
    int64_t size = (int64_t) * (const size_t *)ctx;
    if (strides[0] == 1 && strides[1] == 1) {
        memmove(data[0], data[1], (size_t)(n * size));
        return;
    }
    int64_t to_step = strides[0] * size, from_step = strides[1] * size;
    switch (size) {
    case 1: copy_row_uint8_t(n, data[0], to_step, data[1], from_step); break;
    case 2: copy_row_uint16_t(n, data[0], to_step, data[1], from_step); break;
    case 4: copy_row_uint32_t(n, data[0], to_step, data[1], from_step); break;
    case 8: copy_row_uint64_t(n, data[0], to_step, data[1], from_step); break;
    default: copy_row_bytes16(n, data[0], to_step, data[1], from_step); break;
    }
}

typedef struct string_copy {
    tn_storage *storage;
    tn_status status;
} string_copy;

static void copy_strings(void *ctx, int64_t n, void *const *data, const int64_t *strides) {
    string_copy *copy = ctx;
    for (int64_t i = 0; i < n && copy->status == TN_OK; i++)
        copy->status = replace_string(copy->storage, data[0], i * strides[0], load_string(data[1], i * strides[1]));
}

tn_status tn_tensor_assign(tn_tensor *to, const tn_tensor *from) {
    if (to->dtype != from->dtype || to->rank != from->rank ||
        memcmp(to->dims, from->dims, to->rank * sizeof *to->dims) != 0) {
        char a[96], b[96];
        return tn_fail(TN_ERR_USAGE, "%s assigned to %s", tn_tensor_describe(from, a, sizeof a),
                       tn_tensor_describe(to, b, sizeof b));
    }
    size_t size = (size_t)tn_dtype_bits((tn_dtype)to->dtype) / 8;
    const tn_walk_operand operands[2] = {{to->data, to->strides, size}, {from->data, from->strides, size}};
    if (to->dtype == TN_STRING) {
        string_copy copy = {to->storage, TN_OK};
        TN_TRY(check_owns_strings(to));
        tn_walk(to->rank, to->dims, 2, operands, copy_strings, &copy);
        return copy.status;
    }
    if (to->count == 0)
        return TN_OK;
    if (to->contiguous && from->contiguous)
        memmove(to->data, from->data, tn_tensor_bytes(to));
    else
        tn_walk(to->rank, to->dims, 2, operands, copy_row, &size);
    return TN_OK;
}

tn_tensor *tn_tensor_copy_in(tn_heap *heap, const tn_tensor *tensor) {
    tn_tensor *copy = tn_tensor_new(heap, (tn_dtype)tensor->dtype, tensor->rank, tensor->dims);
    if (copy != NULL && tn_tensor_assign(copy, tensor) != TN_OK) {
        tn_tensor_destroy(copy);
        return NULL;
    }
    return copy;
}

tn_tensor *tn_tensor_copy(const tn_tensor *tensor) {
    if (tensor == NULL) {
        tn_fail(TN_ERR_USAGE, "the tensor to copy is NULL");
        return NULL;
    }
    return tn_tensor_copy_in(tensor->object.heap, tensor);
}

tn_tensor *tn_tensor_contiguous(tn_heap *heap, tn_tensor *tensor) {
    return tensor->contiguous ? tn_tensor_retain(tensor) : tn_tensor_copy_in(heap, tensor);
}

const char *tn_tensor_describe(const tn_tensor *tensor, char *text, size_t size) {
    char whole[32 + TN_MAX_RANK * 22];
    size_t used = 0;
    if (size == 0)
        return "";
    if (tensor == NULL) {
        snprintf(whole, sizeof whole, "no tensor");
    } else {
        used = (size_t)snprintf(whole, sizeof whole, "%s[", tn_dtype_name((tn_dtype)tensor->dtype));
        for (int i = 0; i < tensor->rank; i++)
            used +=
                (size_t)snprintf(whole + used, sizeof whole - used, "%s%" PRId64, i > 0 ? "," : "", tensor->dims[i]);
        snprintf(whole + used, sizeof whole - used, "]");
    }
    used = strlen(whole);
    if (used < size) {
        memcpy(text, whole, used + 1);
    } else {
        size_t kept = size > 4 ? size - 4 : 0;
        memcpy(text, whole, kept);
        memcpy(text + kept, "...", size - 1 - kept);
        text[size - 1] = '\0';
    }
    return text;
}
