/* lookup: the position of each element among sorted keys. With a gather behind it, any mapping of texts or numbers. */
#include <inttypes.h>

#include "onnx/host_ml.h"
#include "ops/plain.h"

/* --- keys ----------------------------------------------------------------------------------------------------------------------- */

tn_status tn_ml_infer_list(tn_infer *c, const char *name, tn_dtype dtype, tn_tensor **list) {
    tn_tensor *t = *list = tn_attr_tensor(c->graph, c->node, name);
    if (!t || t->rank != 1 || !t->contiguous)
        return tn_infer_fail(c, "attribute '%s' must be a list", name);
    if (dtype && t->dtype != dtype)
        return tn_infer_fail(c, "attribute '%s' must be of %s, but is of %s", name, tn_dtype_name(dtype),
                             tn_dtype_name((tn_dtype)t->dtype));
    return TN_OK;
}

static tn_string text_at(const void *data, int64_t index) {
    tn_string s;
    memcpy(&s, (const tn_string *)data + index, sizeof s);
    return s;
}

static bool before(const tn_tensor *keys, int64_t a, int64_t b) {
    if (keys->dtype == TN_STRING) {
        tn_string x = text_at(keys->data, a), y = text_at(keys->data, b);
        return tn_order_strings(&x, &y) < 0;
    }
    return tn_order_key((tn_dtype)keys->dtype, keys->data, a) < tn_order_key((tn_dtype)keys->dtype, keys->data, b);
}

tn_status tn_ml_infer_keys(tn_infer *c, const char *name, tn_tensor **keys) {
    TN_TRY(tn_ml_infer_list(c, name, TN_DTYPE_NONE, keys));
    tn_dtype dtype = (tn_dtype)(*keys)->dtype;
    if (dtype != TN_STRING && (tn_dtype_is_complex(dtype) || tn_dtype_is_subbyte(dtype)))
        return tn_infer_unsupported(c, "keys of %s", tn_dtype_name(dtype));
    for (int64_t i = 1; i < (*keys)->count; i++)
        if (!before(*keys, i - 1, i))
            return tn_infer_fail(c, "attribute '%s' must be strictly ascending: entry %" PRId64 " is not", name, i);
    return TN_OK;
}

/* --- finding ---------------------------------------------------------------------------------------------------------------------- */

tn_status tn_ml_finder_init(tn_ml_finder *f, tn_heap *heap, const tn_tensor *keys, int64_t count) {
    *f = (tn_ml_finder){.keys = keys};
    if (keys->dtype == TN_STRING || count < keys->count / 8)
        return TN_OK;
    f->order = tn_alloc_array(heap, (size_t)keys->count, sizeof *f->order);
    for (int64_t i = 0; f->order && i < keys->count; i++)
        f->order[i] = tn_order_key((tn_dtype)keys->dtype, keys->data, i);
    return f->order ? TN_OK : tn_error_status();
}

void tn_ml_finder_free(tn_ml_finder *f, tn_heap *heap) {
    tn_free(heap, f->order);
    f->order = NULL;
}

static int64_t find_text(const tn_tensor *keys, tn_string s) {
    int64_t low = 0, high = keys->count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        tn_string key = text_at(keys->data, middle);
        int order = tn_order_strings(&key, &s);
        if (order == 0)
            return middle;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

int64_t tn_ml_find(const tn_ml_finder *f, const void *data, int64_t index) {
    const tn_tensor *keys = f->keys;
    tn_dtype dtype = (tn_dtype)keys->dtype;
    if (dtype == TN_STRING)
        return find_text(keys, text_at(data, index));
    uint64_t key = tn_order_key(dtype, data, index);
    int64_t low = 0, n = keys->count;
    while (n > 1) { /* the key, if it is there, is in [low, low + n) */
        int64_t half = n / 2;
        uint64_t at = f->order ? f->order[low + half] : tn_order_key(dtype, keys->data, low + half);
        low += at <= key ? half : 0;
        n -= half;
    }
    if (n == 0)
        return -1;
    return (f->order ? f->order[low] : tn_order_key(dtype, keys->data, low)) == key ? low : -1;
}

/* --- the row ------------------------------------------------------------------------------------------------------------------------ */

static tn_status infer_lookup(tn_infer *c) {
    tn_operand_type in;
    tn_tensor *keys;
    TN_TRY(tn_infer_operand(c, 0, &in));
    TN_TRY(tn_ml_infer_keys(c, "keys", &keys));
    if (keys->dtype != in.dtype)
        return tn_infer_fail(c, "the keys are %s, the input is %s", tn_dtype_name((tn_dtype)keys->dtype),
                             tn_dtype_name(in.dtype));
    return tn_infer_tensor(c, 0, TN_I64, in.rank, in.dims);
}

static tn_status missing_key(tn_eval *e, const tn_tensor *in, int64_t index) {
    if (in->dtype != TN_STRING)
        return tn_eval_fail(e, TN_ERR_INPUT, "element %" PRId64 " is none of the %" PRId64 " keys", index,
                            tn_attr_tensor(e->graph, e->node, "keys")->count);
    tn_string s = text_at(in->data, index);
    return tn_eval_fail(e, TN_ERR_INPUT, "element %" PRId64 ", \"%.*s\", is none of the keys", index,
                        (int)(s.length < 60 ? s.length : 60), s.data ? s.data : "");
}

static tn_status run_lookup(tn_eval *e, tn_tensor *in, tn_tensor *out) {
    const tn_tensor *keys = tn_attr_tensor(e->graph, e->node, "keys");
    bool strict = tn_attr_int(e->graph, e->node, "strict") != 0;
    tn_ml_finder finder;
    TN_TRY(tn_ml_finder_init(&finder, e->heap, keys, in->count));
    tn_status status = TN_OK;
    int64_t *to = out->data;
    for (int64_t i = 0; i < in->count && status == TN_OK; i++) {
        int64_t at = tn_ml_find(&finder, in->data, i);
        if (at < 0 && strict)
            status = missing_key(e, in, i);
        to[i] = at < 0 ? keys->count : at;
    }
    tn_ml_finder_free(&finder, e->heap);
    return status;
}

static tn_status eval_lookup(tn_eval *e) {
    tn_tensor *in = tn_tensor_contiguous(e->heap, tn_eval_in(e, 0));
    tn_tensor *out = in ? tn_eval_result(e, 0, TN_I64, in->rank, in->dims) : NULL;
    tn_status status = out ? run_lookup(e, in, out) : tn_error_status();
    tn_tensor_destroy(in);
    return status;
}

static const tn_attr_spec lookup_attrs[] = {
    {.name = "keys", .kind = TN_ATTR_TENSOR, .required = true}, {.name = "strict", .kind = TN_ATTR_INT}, {0}};

const tn_op tn_host_lookup = {.name = "lookup",
                              .dialect = TN_DIALECT_PRIMITIVE,
                              .min_inputs = 1,
                              .max_inputs = 1,
                              .min_outputs = 1,
                              .max_outputs = 1,
                              .traits = TN_HOST,
                              .attrs = lookup_attrs,
                              .inputs = "x",
                              .doc =
                                  "The position (i64) of each element among sorted keys; their number when it is none "
                                  "of them, an error when strict.",
                              .infer = infer_lookup,
                              .eval = eval_lookup,
                              .no_gradient = "positions do not change smoothly"};
