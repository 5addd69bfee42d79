/* Sparse tensors as values: read as the dense tensors they stand for, from data files too, and written as what they were declared. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <unistd.h>

#include <tenon/passes.h>
#include <tenon/session.h>

#include "base/os.h"
#include "ir/text.h"
#include "support/onnx_bytes.h"

/* --- messages ---------------------------------------------------------------------------------------------------------------------- */

enum { ROWS = 2, COLUMNS = 3 };

static tn_text tensor_bytes(const tn_tensor *t) {
    tn_text bytes = message();
    assert_int_equal(tn_onnx_write_tensor(&bytes, t, "t"), TN_OK);
    return bytes;
}

/* A SparseTensorProto of tensors that are destroyed; NULL: without it. */
static tn_text sparse_of(tn_tensor *values, tn_tensor *indices, int rank, const int64_t *dims) {
    tn_text m = message();
    if (values)
        put_message(&m, 1, tensor_bytes(values));
    if (indices)
        put_message(&m, 2, tensor_bytes(indices));
    for (int i = 0; i < rank; i++)
        tn_wire_put_varint(&m, 3, (uint64_t)dims[i]);
    tn_tensor_destroy(values);
    tn_tensor_destroy(indices);
    return m;
}

static tn_tensor *matrix_of_indices(int64_t rows, int64_t columns, const int64_t *values) {
    tn_tensor *t = tn_tensor_create(TN_I64, 2, (const int64_t[]){rows, columns});
    assert_non_null(t);
    for (int64_t i = 0; i < t->count; i++)
        tn_store_i64(TN_I64, t->data, i, values[i]);
    return t;
}

/* f32[2,3] of two elements: 0 a 0 / 0 0 b. */
static tn_text sparse_pair(float a, float b, bool pairs) {
    return sparse_of(tn_tensor_from_f32(1, (const int64_t[]){2}, (const float[]){a, b}),
                     pairs ? matrix_of_indices(2, 2, (const int64_t[]){0, 1, 1, 2})
                           : tn_tensor_from_i64(2, (const int64_t[]){1, 5}),
                     2, (const int64_t[]){ROWS, COLUMNS});
}

static tn_object *dense_pair(float a, float b) {
    return tn_tensor_object(tn_tensor_from_f32(2, (const int64_t[]){ROWS, COLUMNS}, (const float[]){0, a, 0, 0, 0, b}));
}

/* Reads a message, which is freed. */
static tn_object *try_read(tn_text m, tn_kind kind) {
    tn_object *object = tn_onnx_read_object(NULL, m.data, m.len, NULL, kind);
    tn_text_free(&m);
    return object;
}

static tn_object *must_read(tn_text m, tn_kind kind) {
    tn_object *object = try_read(m, kind);
    if (!object)
        fail_msg("%s", tn_error_message());
    return object;
}

/* Both are destroyed. */
static void must_equal(tn_object *got, tn_object *wanted) {
    assert_true(tn_object_equal(got, wanted));
    tn_object_destroy(got);
    tn_object_destroy(wanted);
}

/* --- data files -------------------------------------------------------------------------------------------------------------------- */

/* Element `at` of a tensor: no zero of any dtype. */
static void put_element(tn_tensor *t, int64_t at) {
    if (t->dtype == TN_STRING)
        assert_int_equal(tn_tensor_set_string(t, at, "a\0b", 3), TN_OK);
    else if (tn_dtype_is_complex((tn_dtype)t->dtype))
        memset((uint8_t *)t->data + (size_t)at * (size_t)tn_dtype_bits((tn_dtype)t->dtype) / 8, 0x40,
               (size_t)tn_dtype_bits((tn_dtype)t->dtype) / 8);
    else
        tn_store_i64((tn_dtype)t->dtype, t->data, at, 1);
}

static void every_dtype_is_read(void **state) {
    (void)state;
    const int64_t two = 2, dims[] = {ROWS, COLUMNS};
    for (int dtype = 1; dtype < TN_DTYPE_COUNT; dtype++)
        for (int form = 0; form < 3; form++) { /* positions, pairs, and not in order */
            tn_tensor *values = tn_tensor_create((tn_dtype)dtype, 1, &two),
                      *wanted = tn_tensor_create((tn_dtype)dtype, 2, dims);
            assert_true(values && wanted);
            for (int64_t i = 0; i < 2; i++) {
                put_element(values, i);
                put_element(wanted, i ? 5 : 1);
            }
            tn_tensor *indices = form == 1
                                     ? matrix_of_indices(2, 2, (const int64_t[]){0, 1, 1, 2})
                                     : tn_tensor_from_i64(2, form ? (const int64_t[]){5, 1} : (const int64_t[]){1, 5});
            must_equal(must_read(sparse_of(values, indices, 2, dims), TN_KIND_TENSOR), tn_tensor_object(wanted));
        }
}

static void no_elements_are_read(void **state) {
    (void)state;
    const int64_t none = 0, dims[] = {ROWS, COLUMNS};
    for (int form = 0; form < 3; form++) {
        tn_tensor *indices = form == 0 ? tn_tensor_from_i64(0, NULL) : form == 1 ? matrix_of_indices(0, 2, NULL) : NULL;
        must_equal(must_read(sparse_of(tn_tensor_create(TN_F32, 1, &none), indices, 2, dims), TN_KIND_TENSOR),
                   dense_pair(0, 0));
    }
}

static void in_sequences_optionals_and_maps(void **state) {
    (void)state;
    tn_object *items[] = {dense_pair(2, 3), dense_pair(4, 5)};
    tn_object *sequence = tn_sequence_create(NULL, 2, items), *optional = tn_optional_create(NULL, items[0]);
    tn_tensor *keys = tn_tensor_from_i64(2, (const int64_t[]){7, 8});
    tn_object *map = tn_map_create(NULL, keys, sequence);
    for (int i = 0; i < 2; i++)
        tn_object_destroy(items[i]);
    tn_tensor_destroy(keys);
    tn_text m = message();
    tn_wire_put_varint(&m, 2, 2); /* SPARSE_TENSOR */
    put_message(&m, 4, sparse_pair(2, 3, false));
    put_message(&m, 4, sparse_pair(4, 5, true));
    tn_text in_map = message();
    tn_wire_put_varint(&in_map, 2, TN_I64);
    tn_wire_put_varint(&in_map, 3, 7);
    tn_wire_put_varint(&in_map, 3, 8);
    tn_wire_put_bytes(&in_map, 5, m.data, m.len);
    must_equal(must_read(m, TN_KIND_SEQUENCE), sequence);
    must_equal(must_read(in_map, TN_KIND_MAP), map);
    m = message();
    tn_wire_put_varint(&m, 2, 2);
    put_message(&m, 4, sparse_pair(2, 3, false));
    must_equal(must_read(m, TN_KIND_OPTIONAL), optional);
    m = message();
    tn_wire_put_varint(&m, 2, 3); /* a sequence of sequences, it says */
    put_message(&m, 4, sparse_pair(2, 3, false));
    assert_null(try_read(m, TN_KIND_SEQUENCE));
    assert_int_equal(tn_error_status(), TN_ERR_MODEL);
}

static tn_tensor *ones(int64_t count) {
    tn_tensor *t = tn_tensor_create(TN_F32, 1, &count);
    assert_non_null(t);
    for (int64_t i = 0; i < count; i++)
        tn_store_f64(TN_F32, t->data, i, 1);
    return t;
}

static void wrong_ones_are_refused(void **state) {
    (void)state;
    const int64_t big = (int64_t)1 << 40, most = INT64_MAX;
    const struct {
        const char *what;
        int64_t values, count, index[4];
        int columns; /* 0: positions; -1: no indices; -2: no values */
        int64_t dims[2];
        tn_status status;
    } list[] = {
        {"position past the end", 1, 1, {6}, 0, {2, 3}, TN_ERR_MODEL},
        {"position before the start", 1, 1, {-1}, 0, {2, 3}, TN_ERR_MODEL},
        {"position of no element", 1, 1, {0}, 0, {0, 3}, TN_ERR_MODEL},
        {"last position", 1, 1, {most}, 0, {2, 3}, TN_ERR_MODEL},
        {"pair past the end", 1, 1, {0, 3}, 2, {2, 3}, TN_ERR_MODEL},
        {"pair before the start", 1, 1, {-1, 0}, 2, {2, 3}, TN_ERR_MODEL},
        {"fewer indices", 2, 1, {1}, 0, {2, 3}, TN_ERR_MODEL},
        {"more indices", 1, 2, {1, 2}, 0, {2, 3}, TN_ERR_MODEL},
        {"fewer pairs", 2, 1, {0, 1}, 2, {2, 3}, TN_ERR_MODEL},
        {"another rank", 1, 1, {0, 1, 2}, 3, {2, 3}, TN_ERR_MODEL},
        {"no indices", 1, 0, {0}, -1, {2, 3}, TN_ERR_MODEL},
        {"no values", 0, 1, {0}, -2, {2, 3}, TN_ERR_MODEL},
        {"a negative dimension", 1, 1, {0}, 0, {-2, 3}, TN_ERR_LIMIT},
        {"too many elements", 1, 1, {0}, 0, {big, big}, TN_ERR_LIMIT},
        {"too many bytes", 1, 1, {0}, 0, {most, 1}, TN_ERR_LIMIT},
        {"too empty", 1, 1, {0}, 0, {big, 3}, TN_ERR_LIMIT},
        {"a little too empty", 1, 1, {0}, 0, {4 << 20, 2}, TN_ERR_LIMIT},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        size_t before = tn_heap_in_use(tn_heap_default());
        tn_tensor *indices = list[i].columns == -1 ? NULL
                             : list[i].columns > 0 ? matrix_of_indices(list[i].count, list[i].columns, list[i].index)
                                                   : tn_tensor_from_i64(list[i].count, list[i].index);
        tn_text m = sparse_of(list[i].columns == -2 ? NULL : ones(list[i].values), indices, 2, list[i].dims);
        tn_object *object = try_read(m, TN_KIND_TENSOR);
        if (object || tn_error_status() != list[i].status)
            fail_msg("%s: %s", list[i].what, object ? "no error" : tn_error_message());
        assert_true(strstr(tn_error_message(), "sparse tensor") || strstr(tn_error_message(), "elements"));
        assert_int_equal(tn_heap_in_use(tn_heap_default()), before);
    }
    const int64_t dims[] = {ROWS, COLUMNS};
    tn_text wrong[] = {sparse_of(ones(1), ones(1), 2, dims), /* indices of f32 */
                       sparse_of(tn_tensor_from_f32(2, (const int64_t[]){1, 1}, (const float[]){1}),
                                 tn_tensor_from_i64(1, (const int64_t[]){1}), 2, dims)};
    for (int i = 0; i < 2; i++) {
        assert_null(try_read(wrong[i], TN_KIND_TENSOR));
        assert_int_equal(tn_error_status(), TN_ERR_MODEL);
    }
    /* each allowed, together not */
    tn_text many = message();
    for (int i = 0; i < 100; i++)
        put_message(&many, 4,
                    sparse_of(ones(1), tn_tensor_from_i64(1, (const int64_t[]){1}), 1, (const int64_t[]){1 << 20}));
    assert_null(try_read(many, TN_KIND_SEQUENCE));
    assert_int_equal(tn_error_status(), TN_ERR_LIMIT);
}

/* Any damage: an answer. */
static void damage_does_no_harm(void **state) {
    (void)state;
    tn_text m = sparse_pair(2, 3, true);
    for (size_t bit = 0; bit < m.len * 8; bit++) {
        m.data[bit / 8] = (char)(m.data[bit / 8] ^ (1 << bit % 8));
        uint8_t *copy = malloc(m.len); /* of exactly this size */
        assert_non_null(copy);
        memcpy(copy, m.data, m.len);
        tn_object *object = tn_onnx_read_object(NULL, copy, m.len, NULL, TN_KIND_TENSOR);
        assert_true(object || (tn_error_status() != TN_OK && tn_error_status() != TN_ERR_INTERNAL));
        tn_object_destroy(object);
        for (size_t n = 0; n < m.len && bit == 0; n++)
            tn_object_destroy(tn_onnx_read_object(NULL, copy, n, NULL, TN_KIND_TENSOR));
        free(copy);
        m.data[bit / 8] = (char)(m.data[bit / 8] ^ (1 << bit % 8));
    }
    tn_text_free(&m);
}

/* --- models ------------------------------------------------------------------------------------------------------------------------ */

/* TypeProto of a sequence (4) or optional (9) of sparse f32[N,3], or of a map (5) from i64 to it. */
static tn_text nested(uint32_t which) {
    tn_text type = message(), body = message();
    if (which == 5)
        tn_wire_put_varint(&body, 1, TN_I64);
    put_message(&body, which == 5 ? 2 : 1, type_bytes(8, TN_F32, "N,3"));
    put_message(&type, which, body);
    return type;
}

static void put_sparse(tn_text *g, uint32_t field, const char *name) {
    put_typed(g, field, name, type_bytes(8, TN_F32, "N,3"));
}

/* A body or branch whose nodes are one operator. */
static tn_text branch(const char *op, const char *input, const char *output) {
    tn_text g = message();
    put_node(&g, op, "", input, output);
    put_text(&g, 2, "b");
    put_sparse(&g, 12, output);
    return g;
}

static tn_text passed(void) {
    tn_text g = message();
    put_sparse(&g, 11, "x");
    put_sparse(&g, 12, "x");
    return g;
}

static tn_text identity(void) {
    tn_text g = message();
    put_sparse(&g, 11, "x");
    put_node(&g, "Identity", "", "x", "m");
    put_node(&g, "Identity", "", "m", "y");
    put_sparse(&g, 13, "m");
    put_sparse(&g, 12, "y");
    return g;
}

static tn_text with_dense(void) {
    tn_text g = message();
    put_sparse(&g, 11, "x");
    put_value(&g, 11, "d", TN_F32, "N,3");
    put_node(&g, "Add", "", "x,d", "y");
    put_value(&g, 12, "y", TN_F32, "N,3");
    return g;
}

static tn_text by_if(void) {
    tn_text g = message(), attrs = message();
    put_sparse(&g, 11, "x");
    put_value(&g, 11, "c", TN_BOOL, "");
    attr_graph(&attrs, "then_branch", branch("Add", "x,x", "t"));
    attr_graph(&attrs, "else_branch", branch("Identity", "x", "e"));
    put_message(&g, 1, node_bytes("If", "", "c", "y", attrs));
    put_sparse(&g, 12, "y");
    return g;
}

static tn_text by_loop(void) {
    tn_text g = message(), attrs = message(), body = message();
    put_value(&body, 11, "i", TN_I64, "");
    put_value(&body, 11, "c", TN_BOOL, "");
    put_sparse(&body, 11, "v");
    put_node(&body, "Identity", "", "c", "more");
    put_node(&body, "Add", "", "v,v", "w");
    put_text(&body, 2, "b");
    put_value(&body, 12, "more", TN_BOOL, "");
    put_sparse(&body, 12, "w");
    put_value(&g, 11, "n", TN_I64, "");
    put_sparse(&g, 11, "x");
    attr_graph(&attrs, "body", body);
    put_message(&g, 1, node_bytes("Loop", "", "n,,x", "y", attrs));
    put_sparse(&g, 12, "y");
    return g;
}

static tn_text of_sequence(void) {
    tn_text g = message();
    put_typed(&g, 11, "s", nested(4));
    put_value(&g, 11, "k", TN_I64, "");
    put_node(&g, "SequenceAt", "", "s,k", "y");
    put_sparse(&g, 12, "y");
    put_typed(&g, 12, "s", nested(4));
    return g;
}

static tn_text of_optional(void) {
    tn_text g = message();
    put_typed(&g, 11, "o", nested(9));
    put_node(&g, "OptionalGetElement", "", "o", "y");
    put_node(&g, "Identity", "", "o", "p");
    put_sparse(&g, 12, "y");
    put_typed(&g, 12, "p", nested(9));
    return g;
}

static tn_text of_map(void) {
    tn_text g = message();
    put_typed(&g, 11, "m", nested(5));
    put_typed(&g, 12, "m", nested(5));
    return g;
}

static tn_text with_default(void) {
    tn_text g = message(), sparse = message();
    put_sparse(&g, 11, "x");
    put_floats(&sparse, 1, "x", 1, (int64_t[]){2}, (float[]){2, 3});
    put_ints(&sparse, 2, "", 2, (int64_t[]){1, 5});
    tn_wire_put_varint(&sparse, 3, ROWS);
    tn_wire_put_varint(&sparse, 3, COLUMNS);
    put_message(&g, 15, sparse);
    put_node(&g, "Abs", "", "x", "y");
    put_sparse(&g, 12, "y");
    return g;
}

static tn_text item(tn_kind kind) {
    tn_text m = message();
    tn_wire_put_varint(&m, 2, kind == TN_KIND_MAP ? TN_I64 : 2);
    if (kind == TN_KIND_MAP) {
        tn_wire_put_varint(&m, 3, 9);
        put_message(&m, 5, item(TN_KIND_SEQUENCE));
    } else {
        put_message(&m, 4, sparse_pair(2, 3, true));
    }
    return m;
}

static tn_object *scalar(tn_dtype dtype, int64_t value) {
    tn_tensor *t = tn_tensor_create(dtype, 0, NULL);
    assert_non_null(t);
    tn_store_i64(dtype, t->data, 0, value);
    return tn_tensor_object(t);
}

static tn_object *read_pair(void) {
    return must_read(sparse_pair(2, 3, false), TN_KIND_TENSOR);
}

static tn_object *read_item(tn_kind kind) {
    return must_read(item(kind), kind);
}

typedef struct sparse_model {
    const char *name, *declared, *text; /* a value and what the metadata say of it */
    tn_text (*build)(void);
    float a, b; /* the first output */
} sparse_model;

static const sparse_model models[] = {
    {"passed", "x", "sparse(f32[N,3])", passed, 2, 3},
    {"identity", "m", "sparse(f32[N,3])", identity, 2, 3},
    {"with a dense one", "x", "sparse(f32[N,3])", with_dense, 4, 6},
    {"if", "y", "sparse(f32[N,3])", by_if, 4, 6},
    {"loop", "y", "sparse(f32[N,3])", by_loop, 16, 24},
    {"sequence", "s", "seq(sparse(f32[N,3]))", of_sequence, 2, 3},
    {"optional", "o", "optional(sparse(f32[N,3]))", of_optional, 2, 3},
    {"map", "m", "map(i64,sparse(f32[N,3]))", of_map, 0, 0},
    {"default", "x", "sparse(f32[N,3])", with_default, 2, 3},
};

static uint32_t feed(tn_text (*build)(void), tn_binding *in) {
    if (build == passed || build == identity) {
        in[0] = (tn_binding){.name = "x", .object = read_pair()};
        return 1;
    }
    if (build == with_dense) {
        in[0] = (tn_binding){.name = "x", .object = read_pair()};
        in[1] = (tn_binding){.name = "d", .object = dense_pair(2, 3)};
        return 2;
    }
    if (build == by_if) {
        in[0] = (tn_binding){.name = "x", .object = read_pair()};
        in[1] = (tn_binding){.name = "c", .object = scalar(TN_BOOL, 1)};
        return 2;
    }
    if (build == by_loop) {
        in[0] = (tn_binding){.name = "x", .object = read_pair()};
        in[1] = (tn_binding){.name = "n", .object = scalar(TN_I64, 3)};
        return 2;
    }
    if (build == of_sequence) {
        in[0] = (tn_binding){.name = "s", .object = read_item(TN_KIND_SEQUENCE)};
        in[1] = (tn_binding){.name = "k", .object = scalar(TN_I64, 0)};
        return 2;
    }
    if (build == of_optional || build == of_map) {
        tn_kind kind = build == of_map ? TN_KIND_MAP : TN_KIND_OPTIONAL;
        in[0] = (tn_binding){.name = kind == TN_KIND_MAP ? "m" : "o", .object = read_item(kind)};
        return 1;
    }
    return 0; /* by default */
}

static void run(const sparse_model *m, const void *bytes, size_t size, const char *how) {
    for (int backend = TN_BACKEND_CPU; backend <= TN_BACKEND_REFERENCE; backend++)
        for (int level = TN_LEVEL_0; level <= TN_LEVEL_2; level++) {
            tn_model *model = tn_model_load_memory(bytes, size, NULL);
            tn_session *session =
                model ? tn_session_create(model, TN_OPTIONS(tn_session_options, .backend = (tn_backend)backend,
                                                            .level = (tn_level)level, .threads = 1))
                      : NULL;
            tn_binding in[2];
            tn_object *out[2] = {NULL, NULL};
            uint32_t n = feed(m->build, in), outputs = model ? tn_model_output_count(model) : 0;
            tn_output wanted[2];
            for (uint32_t i = 0; i < outputs; i++)
                wanted[i] = (tn_output){.name = tn_model_output_name(model, i), .object = &out[i]};
            if (!session || tn_session_run(session, n, in, outputs, wanted) != TN_OK)
                fail_msg("%s, %s: %s", m->name, how, tn_error_message());
            tn_object *first = m->build == of_map ? read_item(TN_KIND_MAP) : dense_pair(m->a, m->b);
            if (!tn_object_equal(out[0], first))
                fail_msg("%s, %s: another result", m->name, how);
            if (outputs > 1)
                assert_true(tn_object_equal(out[1], in[0].object));
            tn_object_destroy(first);
            for (uint32_t i = 0; i < n; i++)
                tn_object_destroy(in[i].object);
            for (uint32_t i = 0; i < outputs; i++)
                tn_object_destroy(out[i]);
            tn_session_destroy(session);
            tn_model_destroy(model);
        }
}

/* What kind of type an input or output (`field`) of the model has, by field numbers: 8, 4 * 16 + 8. */
static int declared_kind(tn_slice type) {
    tn_wire w;
    tn_wire_field f;
    tn_wire_init(&w, type.data, type.size);
    while (tn_wire_next(&w, &f)) {
        uint32_t which = f.key >> 3, inner = which == 5 ? 2 : 1;
        tn_slice body = tn_wire_slice(&f);
        if (which != 4 && which != 5 && which != 9)
            return (int)which;
        tn_wire_init(&w, body.data, body.size);
        while (tn_wire_next(&w, &f))
            if (f.key == TN_WIRE_KEY(inner, TN_WIRE_BYTES))
                return (int)which * 16 + declared_kind(tn_wire_slice(&f));
    }
    return 0;
}

/* The kinds of the types of inputs and outputs, one after the other; sparse initializers after them, as 15. */
static int kinds_of(const void *bytes, size_t size, int kind[8]) {
    tn_slice graph = {0};
    tn_wire w, v;
    tn_wire_field f;
    int count = 0;
    tn_wire_init(&w, bytes, size);
    while (tn_wire_next(&w, &f))
        if (f.key == TN_WIRE_KEY(7, TN_WIRE_BYTES))
            graph = tn_wire_slice(&f);
    for (uint32_t field = 11; field <= 15; field++) {
        tn_wire_init(&w, graph.data, graph.size);
        while (tn_wire_next(&w, &f)) {
            if (f.key != TN_WIRE_KEY(field, TN_WIRE_BYTES) || field == 13)
                continue;
            tn_slice info = tn_wire_slice(&f);
            tn_wire_init(&v, info.data, info.size);
            while (field < 15 && tn_wire_next(&v, &f))
                if (f.key == TN_WIRE_KEY(2, TN_WIRE_BYTES))
                    kind[count] = declared_kind(tn_wire_slice(&f));
            if (field == 15)
                kind[count] = 15;
            assert_true(++count < 8);
        }
    }
    return count;
}

static void written_and_run(void **state) {
    (void)state;
    char path[] = "/tmp/tenon-test-XXXXXX.onnx", key[64];
    int fd = mkstemps(path, 5);
    assert_true(fd >= 0);
    close(fd);
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        const sparse_model *m = &models[i];
        tn_text bytes = model_bytes(17, m->build());
        int wanted[8], got[8], count = kinds_of(bytes.data, bytes.len, wanted);
        run(m, bytes.data, bytes.len, "as it is");
        for (int level = TN_LEVEL_0; level <= TN_LEVEL_2; level++) {
            tn_graph *g = load_bytes(&bytes), *back;
            if (!g)
                fail_msg("%s: %s", m->name, tn_error_message());
            snprintf(key, sizeof key, TN_META_TYPE "%s", m->declared);
            assert_string_equal(tn_graph_metadata(g, key), m->text);
            if (level != TN_LEVEL_0 &&
                tn_graph_optimize(g, TN_OPTIONS(tn_optimize_options, .level = (tn_level)level, .keep_composites = true,
                                                .for_onnx = true)) != TN_OK)
                fail_msg("%s: %s", m->name, tn_error_message());
            if (tn_graph_save(g, path) != TN_OK)
                fail_msg("%s: %s", m->name, tn_error_message());
            size_t size;
            char *written = tn_file_read(NULL, path, &size);
            assert_non_null(written);
            if (kinds_of(written, size, got) != count || memcmp(got, wanted, (size_t)count * sizeof *got) != 0)
                fail_msg("%s, level %d: other types are declared", m->name, level);
            run(m, written, size, "written");
            if (level == TN_LEVEL_0) { /* nothing is lost */
                back = tn_onnx_load_memory(written, size, NULL, NULL, NULL);
                char *before = tn_graph_print(g), *after = tn_graph_print(back);
                assert_string_equal(before, after);
                tn_graph_free_text(g, before);
                tn_graph_free_text(back, after);
                tn_graph_destroy(back);
            }
            tn_free(NULL, written);
            tn_graph_destroy(g);
        }
        tn_text_free(&bytes);
    }
    unlink(path);
}

/* Of each dtype: as it was, there and back. */
static void initializers_of_every_dtype(void **state) {
    (void)state;
    char path[] = "/tmp/tenon-test-XXXXXX.onnx";
    int fd = mkstemps(path, 5);
    assert_true(fd >= 0);
    close(fd);
    const int64_t two = 2, dims[] = {ROWS, COLUMNS};
    for (int dtype = 1; dtype < TN_DTYPE_COUNT; dtype++) {
        tn_tensor *values = tn_tensor_create((tn_dtype)dtype, 1, &two),
                  *wanted = tn_tensor_create((tn_dtype)dtype, 2, dims);
        assert_true(values && wanted);
        for (int64_t i = 0; i < 2; i++) {
            put_element(values, i);
            put_element(wanted, i ? 5 : 1);
        }
        tn_text g = message();
        put_message(&g, 15, sparse_of(values, tn_tensor_from_i64(2, (const int64_t[]){1, 5}), 2, dims));
        put_node(&g, "Identity", "", "t", "y");
        put_typed(&g, 12, "y", type_bytes(8, dtype, "2,3"));
        tn_text bytes = model_bytes(25, g);
        for (int times = 0; times < 2; times++) {
            tn_graph *graph = load_bytes(&bytes);
            if (!graph || tn_graph_save(graph, path) != TN_OK)
                fail_msg("%s: %s", tn_dtype_name((tn_dtype)dtype), tn_error_message());
            tn_tensor *t = tn_value_constant(graph, tn_graph_find_value(graph, "t"));
            assert_true(t && tn_object_equal(tn_tensor_object(t), tn_tensor_object(wanted)));
            tn_graph_destroy(graph);
            size_t size;
            char *written = tn_file_read(NULL, path, &size);
            int kind[8];
            assert_int_equal(kinds_of(written, size, kind), 2);
            assert_true(kind[0] == 8 && kind[1] == 15);
            tn_text_free(&bytes);
            bytes = message();
            tn_text_bytes(&bytes, written, size);
            tn_free(NULL, written);
        }
        tn_text_free(&bytes);
        tn_tensor_destroy(wanted);
    }
    unlink(path);
}

/* A false shape of a sparse value is said, as one of a dense value is. */
static void false_shapes_are_said(void **state) {
    (void)state;
    for (uint32_t field = 1; field <= 8; field += 7) {
        tn_text g = message();
        put_typed(&g, 11, "x", type_bytes(field, TN_F32, "2,3"));
        put_node(&g, "Neg", "", "x", "y");
        put_typed(&g, 12, "y", type_bytes(field, TN_F32, "2,4"));
        tn_text attrs = message(), body;
        for (int i = 0; i < 2; i++) {
            body = message();
            put_node(&body, "Neg", "", "x", "inner");
            put_text(&body, 2, "b");
            put_typed(&body, 12, "inner", type_bytes(field, TN_F32, "2,5"));
            attr_graph(&attrs, i ? "then_branch" : "else_branch", body);
        }
        put_value(&g, 11, "c", TN_BOOL, "");
        put_message(&g, 1, node_bytes("If", "", "c", "z", attrs));
        put_value(&g, 12, "z", TN_F32, NULL);
        tn_text bytes = model_bytes(17, g);
        tn_graph *graph = load_bytes(&bytes);
        assert_non_null(graph);
        assert_int_equal(tn_onnx_expand(graph, 0), TN_OK);
        const char *lines = tn_graph_metadata(graph, TN_META_WARNINGS);
        assert_true(lines && strstr(lines, "f32[2,4]") && strstr(lines, "f32[2,5]"));
        tn_graph_destroy(graph);
        tn_text_free(&bytes);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_dtype_is_read),         cmocka_unit_test(no_elements_are_read),
        cmocka_unit_test(wrong_ones_are_refused),      cmocka_unit_test(in_sequences_optionals_and_maps),
        cmocka_unit_test(damage_does_no_harm),         cmocka_unit_test(written_and_run),
        cmocka_unit_test(initializers_of_every_dtype), cmocka_unit_test(false_shapes_are_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
