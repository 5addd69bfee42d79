/* The edge-test harness. */
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/number.h"
#include "base/pool.h"
#include "support/graph_checks.h"
#include "support/op_harness.h"

#define GUARD 64
#define FILL 0xA5

const tn_dtype op_floats[] = {TN_F32, TN_F64, TN_F16, TN_BF16, TN_DTYPE_NONE};
const tn_dtype op_ints[] = {TN_I8, TN_U8, TN_I16, TN_U16, TN_I32, TN_U32, TN_I64, TN_U64, TN_DTYPE_NONE};
const tn_dtype op_numbers[] = {TN_F32, TN_F64, TN_F16, TN_BF16, TN_I8,  TN_U8,   TN_I16,
                               TN_U16, TN_I32, TN_U32, TN_I64,  TN_U64, TN_BOOL, TN_DTYPE_NONE};

/* --- memory that the harness owns --------------------------------------------------------------------------------- */

struct op_block {
    op_block *next;
    tn_tensor *tensor; /* or NULL */
    uint8_t *memory;   /* or NULL: `size` bytes, whose state is known when `copy` is not NULL */
    uint8_t *copy;
    size_t size;
};

static op_block *keep(op_harness *h) {
    op_block *block = calloc(1, sizeof *block);
    assert_non_null(block);
    block->next = h->blocks;
    h->blocks = block;
    return block;
}

static tn_tensor *keep_tensor(op_harness *h, tn_tensor *tensor) {
    if (tensor == NULL)
        fail_msg("no tensor: %s", tn_error_message());
    keep(h)->tensor = tensor;
    return tensor;
}

/* Frees what was made since `mark`. */
static void release(op_harness *h, op_block *mark) {
    while (h->blocks != mark) {
        op_block *block = h->blocks;
        h->blocks = block->next;
        tn_tensor_destroy(block->tensor);
        free(block->memory);
        free(block->copy);
        free(block);
    }
}

void op_harness_begin(op_harness *h) {
    memset(h, 0, sizeof *h);
    const char *seed = getenv("TENON_TEST_SEED");
    h->seed = seed != NULL ? strtoull(seed, NULL, 0) : 20240817;
    h->heap = tn_heap_create(NULL);
    assert_non_null(h->heap);
    h->pool = tn_pool_create(NULL, 4);
    assert_non_null(h->pool);
}

void op_harness_end(op_harness *h) {
    release(h, NULL);
    tn_pool_destroy(h->pool);
    assert_int_equal(tn_heap_in_use(h->heap), 0);
    tn_heap_destroy(h->heap);
}

uint64_t op_random_bits(op_harness *h) {
    h->seed ^= h->seed << 13;
    h->seed ^= h->seed >> 7;
    h->seed ^= h->seed << 17;
    return h->seed * 0x9e3779b97f4a7c15u;
}

/* --- operands ----------------------------------------------------------------------------------------------------- */

tn_tensor *op_tensor(op_harness *h, tn_dtype dtype, int rank, const int64_t *dims) {
    return keep_tensor(h, tn_tensor_create(dtype, rank, dims));
}

tn_tensor *op_values(op_harness *h, tn_dtype dtype, int rank, const int64_t *dims, const double *values) {
    tn_tensor *t = op_tensor(h, dtype, rank, dims);
    for (int64_t i = 0; i < t->count; i++)
        tn_store_f64(dtype, t->data, i, values[i]);
    return t;
}

tn_tensor *op_random(op_harness *h, tn_dtype dtype, int rank, const int64_t *dims, bool small) {
    tn_tensor *t = op_tensor(h, dtype, rank, dims);
    for (int64_t i = 0; i < t->count; i++) {
        uint64_t bits = op_random_bits(h);
        if (tn_dtype_is_float(dtype))
            tn_store_f64(dtype, t->data, i, (double)(bits >> 11) * 0x1p-50 - 4);
        else
            tn_store_i64(dtype, t->data, i,
                         dtype == TN_BOOL ? (int64_t)(bits >> 63)
                         : small          ? (int64_t)(bits >> 60) - 8
                                          : (int64_t)bits);
    }
    return t;
}

tn_tensor *op_edges(op_harness *h, tn_dtype dtype) {
    static const double floats[] = {/* just above the middle of two bf16, f16, f8: a second rounding would show */
                                    0x1.01000001p0,
                                    0x1.00200001p0,
                                    -0x1.10000001p0,

                                    0,
                                    -0.0,
                                    1,
                                    -1,
                                    0.5,
                                    -0.5,
                                    1.5,
                                    2.5,
                                    -2.5,
                                    3,
                                    -7,
                                    7.25,
                                    1e-3,
                                    1e-6,
                                    -1e-6,
                                    3.99,
                                    -3.99,
                                    88.5,
                                    -88.5,
                                    710,
                                    -745,
                                    65504,
                                    65520,
                                    -1e30,
                                    1e30,
                                    1e300,
                                    3.14159,
                                    0x1p-14,
                                    0x1p-24,
                                    0x1p-25,
                                    0x1p-126,
                                    0x1p-149,
                                    5e-324,
                                    448,
                                    -464,
                                    0x1p23,
                                    0x1.8p23,
                                    0x1p52,
                                    0x1p63,
                                    -0x1p63,
                                    0x1p64,
                                    127.5,
                                    200,
                                    255.9,
                                    256,
                                    32768.5,
                                    -129};
    static const int64_t ints[] = {0,
                                   1,
                                   -1,
                                   2,
                                   -2,
                                   3,
                                   -3,
                                   7,
                                   -7,
                                   8,
                                   15,
                                   16,
                                   17,
                                   31,
                                   32,
                                   33,
                                   62,
                                   63,
                                   64,
                                   65,
                                   100,
                                   127,
                                   -128,
                                   255,
                                   32767,
                                   INT32_MAX,
                                   INT32_MIN,
                                   INT64_MAX,
                                   INT64_MIN,
                                   INT64_MAX - 1,
                                   INT64_MIN + 1,
                                   0x123456789abcdef,
                                   0x4040000000000001,
                                   (int64_t)0x8080000000000001};
    if (dtype == TN_BOOL)
        return op_values(h, dtype, 1, (int64_t[]){2}, (double[]){0, 1});
    if (tn_dtype_is_float(dtype)) {
        int64_t n = (int64_t)(sizeof floats / sizeof *floats), total = n + 5;
        tn_tensor *t = op_tensor(h, dtype, 1, &total);
        for (int64_t i = 0; i < n; i++)
            tn_store_f64(dtype, t->data, i, floats[i]);
        const double last[5] = {(double)INFINITY, -(double)INFINITY, (double)NAN, 1.7976931348623157e308,
                                2.2250738585072014e-308};
        for (int64_t i = 0; i < 5; i++)
            tn_store_f64(dtype, t->data, n + i, last[i]);
        return t;
    }
    int64_t n = (int64_t)(sizeof ints / sizeof *ints), total = n + 4;
    tn_tensor *t = op_tensor(h, dtype, 1, &total);
    for (int64_t i = 0; i < n; i++)
        tn_store_i64(dtype, t->data, i, ints[i]);
    int64_t low = tn_dtype_min_i64(dtype), high = (int64_t)tn_dtype_max_u64(dtype);
    const int64_t last[4] = {low, high, low + 1, high - 1};
    for (int64_t i = 0; i < 4; i++)
        tn_store_i64(dtype, t->data, n + i, last[i]);
    return t;
}

tn_tensor *op_expand(op_harness *h, tn_tensor *base, int rank, const int64_t *dims, int axis) {
    int64_t strides[TN_MAX_RANK] = {0};
    if (axis >= 0)
        strides[axis] = 1;
    return keep_tensor(h, tn_tensor_view(NULL, base, (tn_dtype)base->dtype, rank, dims, strides, 0));
}

static int64_t offset_of(const tn_tensor *t, int64_t index) {
    int64_t offset = 0;
    if (t->contiguous)
        return index;
    for (int i = t->rank - 1; i >= 0; i--) {
        offset += index % t->dims[i] * t->strides[i];
        index /= t->dims[i];
    }
    return offset;
}

double op_get(const tn_tensor *t, int64_t index) {
    return tn_load_f64((tn_dtype)t->dtype, t->data, offset_of(t, index));
}

int64_t op_get_i64(const tn_tensor *t, int64_t index) {
    return tn_load_i64((tn_dtype)t->dtype, t->data, offset_of(t, index));
}

/* --- layouts ------------------------------------------------------------------------------------------------------ */

enum { CONTIGUOUS, UNALIGNED, REVERSED, COLUMN_MAJOR, GAPS, MIXED, LAYOUTS };
static const char *const layout_name[LAYOUTS] = {"contiguous",   "unaligned", "reversed",
                                                 "column-major", "with gaps", "mixed"};

/* Guarded memory of `bytes` bytes, `shift` bytes off alignment; every byte is FILL. */
static uint8_t *guarded(op_harness *h, size_t bytes, size_t shift, op_block **block_out) {
    op_block *block = keep(h);
    block->size = bytes + 2 * GUARD + shift;
    block->memory = malloc(block->size);
    assert_non_null(block->memory);
    memset(block->memory, FILL, block->size);
    *block_out = block;
    return block->memory + GUARD + shift;
}

static void remember(op_block *block) {
    block->copy = malloc(block->size);
    assert_non_null(block->copy);
    memcpy(block->copy, block->memory, block->size);
}

/* The same elements laid out otherwise, in guarded memory. */
static tn_tensor *relayout(op_harness *h, const tn_tensor *t, int layout) {
    tn_dtype dtype = (tn_dtype)t->dtype;
    op_block *block;
    if (tn_dtype_is_subbyte(dtype)) {
        size_t bytes = tn_tensor_bytes(t);
        uint8_t *data = guarded(h, bytes, layout != CONTIGUOUS, &block);
        memcpy(data, t->data, bytes);
        remember(block);
        return keep_tensor(h, tn_tensor_wrap(dtype, t->rank, t->dims, data));
    }
    int64_t strides[TN_MAX_RANK], step = layout == GAPS || layout == MIXED ? 3 : 1, low = 0;
    bool columns = layout == COLUMN_MAJOR || layout == MIXED;
    for (int k = 0; k < t->rank; k++) {
        int i = columns ? k : t->rank - 1 - k;
        strides[i] = step;
        step *= t->dims[i] > 0 ? t->dims[i] : 1;
        step += layout == GAPS;
        if (layout == REVERSED || (layout == MIXED && i % 2 == 0)) {
            strides[i] = -strides[i];
            low += t->dims[i] > 0 ? (t->dims[i] - 1) * strides[i] : 0;
        }
    }
    size_t size = (size_t)tn_dtype_bits(dtype) / 8, bytes;
    assert_int_equal(tn_tensor_extent(dtype, t->rank, t->dims, strides, &bytes), TN_OK);
    uint8_t *data = guarded(h, bytes, layout == UNALIGNED || layout == MIXED, &block) - low * (int64_t)size;
    tn_tensor *made = keep_tensor(h, tn_tensor_wrap_strided(dtype, t->rank, t->dims, strides, data));
    for (int64_t i = 0; i < t->count; i++)
        memcpy(data + offset_of(made, i) * (int64_t)size, (const uint8_t *)t->data + offset_of(t, i) * (int64_t)size,
               size);
    remember(block);
    return made;
}

/* --- evaluation --------------------------------------------------------------------------------------------------- */

typedef struct prepared {
    tn_graph *graph;
    tn_node node;
    bool known; /* the result's shape is constants: dims */
    tn_dtype dtype;
    int rank;
    int64_t dims[TN_MAX_RANK];
} prepared;

static tn_status build(const op_case *c, prepared *p) {
    tn_value value[OP_MAX_INPUTS] = {{0}};
    tn_attr attr[OP_MAX_ATTRS];
    tn_dim dims[OP_MAX_ATTRS][TN_MAX_RANK];
    p->graph = tn_graph_new(NULL, tn_ops_table());
    assert_non_null(p->graph);
    for (uint32_t i = 0; i < c->inputs; i++) {
        if (c->in[i] == NULL)
            continue;
        tn_dim shape[TN_MAX_RANK];
        for (int k = 0; k < c->in[i]->rank; k++)
            shape[k] = tn_dim_const(p->graph, c->in[i]->dims[k]);
        char name[16];
        snprintf(name, sizeof name, "in%u", i);
        value[i] = tn_region_add_arg(p->graph, tn_graph_region(p->graph),
                                     tn_type_tensor(p->graph, (tn_dtype)c->in[i]->dtype, c->in[i]->rank, shape), name);
    }
    for (uint32_t i = 0; i < c->attrs; i++) {
        attr[i] = c->attr[i];
        if (attr[i].kind != TN_ATTR_DIMS)
            continue;
        assert_true(attr[i].count <= TN_MAX_RANK);
        for (uint32_t k = 0; k < attr[i].count; k++)
            dims[i][k] = tn_dim_const(p->graph, c->attr[i].as.ints[k]);
        attr[i].as.dims = dims[i];
    }
    p->node = tn_graph_add_node(
        p->graph,
        &(tn_node_desc){.op = c->op, .input_count = c->inputs, .inputs = value, .attr_count = c->attrs, .attrs = attr});
    if (p->node.id == 0) {
        tn_status status = tn_graph_check(p->graph);
        assert_int_not_equal(status, TN_OK);
        return status;
    }
    tn_value out = tn_node_output(p->graph, p->node, c->output);
    assert_int_equal(tn_graph_add_output(p->graph, out, "out"), TN_OK);
    check_graph(p->graph);
    p->dtype = tn_value_dtype(p->graph, out);
    p->rank = tn_value_rank(p->graph, out);
    p->known = p->rank >= 0;
    for (int i = 0; i < p->rank; i++)
        p->known = p->known && tn_dim_is_const(p->graph, tn_value_dim(p->graph, out, i), &p->dims[i]);
    return TN_OK;
}

/* Runs eval. `out`: an output that is there already, or NULL. */
static tn_status evaluate(op_harness *h, const op_case *c, const prepared *p, tn_tensor *const *in, tn_tensor *out,
                          tn_pool *pool, tn_tensor **result) {
    tn_object *inputs[OP_MAX_INPUTS] = {NULL}, *outputs[OP_MAX_OUTPUTS] = {NULL};
    uint32_t output_count = tn_node_output_count(p->graph, p->node);
    tn_dim_env env;
    for (uint32_t i = 0; i < c->inputs; i++)
        inputs[i] = in[i] == NULL ? NULL : tn_tensor_object(in[i]);
    assert_true(output_count <= OP_MAX_OUTPUTS && c->output < output_count);
    outputs[c->output] = out == NULL ? NULL : tn_tensor_object(tn_tensor_retain(out));
    assert_true(tn_dim_env_init(&env, NULL, &p->graph->dims));
    tn_eval e = {.graph = p->graph,
                 .node = p->node,
                 .inputs = c->inputs,
                 .outputs = output_count,
                 .in = inputs,
                 .out = outputs,
                 .heap = h->heap,
                 .pool = pool,
                 .env = &env};
    h->checks++;
    tn_status status = c->op->eval(&e);
    tn_dim_env_free(&env);
    for (uint32_t i = 0; i < output_count; i++) {
        assert_true(status != TN_OK || outputs[i] != NULL);
        if (status == TN_OK && i == c->output)
            continue;
        tn_object_destroy(outputs[i]);
        outputs[i] = NULL;
    }
    *result = (tn_tensor *)outputs[c->output];
    if (status == TN_OK)
        assert_int_equal(tn_object_kind(outputs[c->output]), TN_KIND_TENSOR);
    return status;
}

/* "add(f32[2,3], f32[2,3])" */
static const char *describe(const op_case *c, char *text, size_t size) {
    size_t used = (size_t)snprintf(text, size, "%s(", c->op->name);
    for (uint32_t i = 0; i < c->inputs && used < size; i++) {
        char shape[128];
        used += (size_t)snprintf(text + used, size - used, "%s%s", i > 0 ? ", " : "",
                                 c->in[i] == NULL ? "-" : tn_tensor_describe(c->in[i], shape, sizeof shape));
    }
    if (used < size)
        snprintf(text + used, size - used, ")");
    return text;
}

static void check_shape(const op_case *c, const prepared *p, const tn_tensor *out) {
    bool same = out->dtype == p->dtype && out->rank == p->rank;
    for (int i = 0; same && p->known && i < p->rank; i++)
        same = out->dims[i] == p->dims[i];
    if (!same) {
        char what[512], got[128];
        fail_msg("%s: inferred %s of rank %d, got %s", describe(c, what, sizeof what), tn_dtype_name(p->dtype), p->rank,
                 tn_tensor_describe(out, got, sizeof got));
    }
}

typedef __int128 wide;

/* A float's place among those of its dtype, by magnitude and sign. */
static int64_t ordered_bits(tn_dtype dtype, const void *data, int64_t index) {
    int bits = tn_dtype_bits(dtype);
    int64_t raw = 0;
    memcpy(&raw, (const char *)data + index * (bits / 8), (size_t)bits / 8);
    int64_t magnitude = raw & (int64_t)(((uint64_t)1 << (bits - 1)) - 1);
    return raw >> (bits - 1) & 1 ? -magnitude : magnitude;
}

static bool close_enough(tn_dtype dtype, const tn_tensor *got, const tn_tensor *want, int64_t i, double ulps) {
    double a = tn_load_f64(dtype, got->data, i), b = tn_load_f64(dtype, want->data, i);
    if (!tn_dtype_is_float(dtype))
        return tn_load_i64(dtype, got->data, i) == tn_load_i64(dtype, want->data, i);
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b);
    if (a == b)
        return signbit(a) == signbit(b);
    if (tn_dtype_bits(dtype) >= 16)
        return fabs((double)((wide)ordered_bits(dtype, got->data, i) - ordered_bits(dtype, want->data, i))) <= ulps;
    return false;
}

static void compare_oracle(op_harness *h, const op_case *c, const tn_tensor *got) {
    char what[512], a[TN_NUMBER_TEXT], b[TN_NUMBER_TEXT];
    tn_dtype dtype = (tn_dtype)got->dtype;
    tn_tensor *want = op_tensor(h, dtype, got->rank, got->dims);
    c->oracle(c, want);
    for (int64_t i = 0; i < got->count; i++) {
        if (dtype == TN_STRING) {
            tn_string x, y;
            assert_int_equal(tn_tensor_get_string(got, i, &x), TN_OK);
            assert_int_equal(tn_tensor_get_string(want, i, &y), TN_OK);
            if (x.length != y.length || memcmp(x.data, y.data, x.length) != 0)
                fail_msg("%s: element %" PRId64 " is another string", describe(c, what, sizeof what), i);
            continue;
        }
        if (close_enough(dtype, got, want, i, c->ulps))
            continue;
        tn_format_f64(tn_load_f64(dtype, got->data, i), a);
        tn_format_f64(tn_load_f64(dtype, want->data, i), b);
        char operands[256] = "";
        size_t used = 0;
        for (uint32_t k = 0; k < c->inputs; k++) /* of use for elementwise rows */
            if (c->in[k] != NULL && c->in[k]->count == got->count && c->in[k]->dtype != TN_STRING) {
                char x[TN_NUMBER_TEXT];
                tn_format_f64(op_get(c->in[k], i), x);
                used += (size_t)snprintf(operands + used, sizeof operands - used, " %s", x);
            }
        fail_msg("%s: element %" PRId64 " is %s, the oracle says %s (operands there:%s; seed state %" PRIu64 ")",
                 describe(c, what, sizeof what), i, a, b, operands, h->seed);
    }
}

static void check_same(const op_case *c, const tn_tensor *a, const tn_tensor *b, const char *how) {
    char what[512];
    tn_tensor *flat = tn_tensor_contiguous(NULL, (tn_tensor *)(uintptr_t)a);
    tn_tensor *other = tn_tensor_contiguous(NULL, (tn_tensor *)(uintptr_t)b);
    assert_non_null(flat);
    assert_non_null(other);
    if (!tn_object_equal(tn_tensor_object(flat), tn_tensor_object(other)))
        fail_msg("%s: another result %s", describe(c, what, sizeof what), how);
    tn_tensor_destroy(flat);
    tn_tensor_destroy(other);
}

static void check_blocks(const op_harness *h, const op_block *mark, const op_case *c, const char *how) {
    char what[512];
    for (const op_block *b = h->blocks; b != mark; b = b->next)
        if (b->copy != NULL && memcmp(b->copy, b->memory, b->size) != 0)
            fail_msg("%s wrote into an operand or around it, %s", describe(c, what, sizeof what), how);
}

/* An output that is there already, in guarded memory (strings: plain). */
static tn_tensor *given_output(op_harness *h, const prepared *p, op_block **block) {
    size_t bytes;
    int64_t count;
    *block = NULL;
    if (!p->known || tn_dims_count(p->rank, p->dims, &count) != TN_OK ||
        tn_dtype_bytes(p->dtype, count, &bytes) != TN_OK)
        return NULL;
    if (p->dtype == TN_STRING)
        return op_tensor(h, p->dtype, p->rank, p->dims);
    uint8_t *data = guarded(h, bytes, 0, block);
    return keep_tensor(h, tn_tensor_wrap(p->dtype, p->rank, p->dims, data));
}

static void check_guards(const op_case *c, const op_block *block, const char *how) {
    char what[512];
    if (block == NULL)
        return;
    for (size_t i = 0; i < GUARD; i++)
        if (block->memory[i] != FILL || block->memory[block->size - 1 - i] != FILL)
            fail_msg("%s wrote outside its output, %s", describe(c, what, sizeof what), how);
}

static void must(const op_case *c, tn_status status) {
    char what[512];
    if (status != TN_OK)
        fail_msg("%s: %s", describe(c, what, sizeof what), tn_error_message());
}

void op_check(op_harness *h, const op_case *c) {
    op_block *mark = h->blocks, *block;
    prepared p;
    tn_tensor *first = NULL, *in[OP_MAX_INPUTS] = {NULL};
    must(c, build(c, &p));
    for (int layout = 0; layout < LAYOUTS; layout++) {
        tn_tensor *result;
        op_block *inner = h->blocks;
        for (uint32_t i = 0; i < c->inputs; i++)
            in[i] = c->in[i] == NULL ? NULL : relayout(h, c->in[i], layout);
        tn_tensor *out = given_output(h, &p, &block);
        must(c, evaluate(h, c, &p, in, out, layout % 2 == 1 ? h->pool : NULL, &result));
        check_guards(c, block, layout_name[layout]);
        check_blocks(h, inner, c, layout_name[layout]);
        check_shape(c, &p, result);
        if (layout == CONTIGUOUS) {
            first = keep_tensor(h, tn_tensor_copy(result));
            tn_tensor_destroy(result);
            if (c->oracle != NULL)
                compare_oracle(h, c, first);
            continue;
        }
        check_same(c, result, first, layout_name[layout]);
        tn_tensor_destroy(result);
        release(h, inner);
    }
    /* The operands as they came (stride 0, perhaps), an output made by eval, several threads. */
    tn_tensor *result;
    must(c, evaluate(h, c, &p, c->in, NULL, h->pool, &result));
    check_shape(c, &p, result);
    check_same(c, result, first, "with the operands as they are and an output of its own");
    tn_tensor_destroy(result);
    tn_graph_destroy(p.graph);
    release(h, mark);
}

void op_check_failures(op_harness *h, const op_case *c) {
    prepared p;
    must(c, build(c, &p));
    tn_tensor *first, *result;
    must(c, evaluate(h, c, &p, c->in, NULL, NULL, &first));
    size_t before = tn_heap_in_use(h->heap);
    for (uint64_t n = 1;; n++) {
        char what[512];
        tn_heap_fail_at(h->heap, n, n % 2 == 0);
        tn_status status = evaluate(h, c, &p, c->in, NULL, NULL, &result);
        tn_heap_fail_at(h->heap, 0, false);
        if (status == TN_OK)
            break;
        if (status != TN_ERR_MEMORY)
            fail_msg("%s: allocation %" PRIu64 " failed: %s", describe(c, what, sizeof what), n, tn_error_message());
        if (tn_heap_in_use(h->heap) != before)
            fail_msg("%s leaks when allocation %" PRIu64 " fails", describe(c, what, sizeof what), n);
        assert_true(n < 1000);
    }
    check_same(c, result, first, "after failures");
    tn_tensor_destroy(result);
    tn_tensor_destroy(first);
    tn_graph_destroy(p.graph);
}

tn_status op_try(op_harness *h, const op_case *c, size_t limit, tn_tensor **out) {
    prepared p;
    tn_status status = build(c, &p);
    *out = NULL;
    if (status == TN_OK) {
        tn_heap_set_limit(h->heap, limit == 0 ? 0 : tn_heap_in_use(h->heap) + limit);
        status = evaluate(h, c, &p, c->in, NULL, h->pool, out);
        tn_heap_set_limit(h->heap, 0);
        if (status == TN_OK)
            check_shape(c, &p, *out);
    }
    tn_graph_destroy(p.graph);
    return status;
}

void op_expect(op_harness *h, const op_case *c, size_t limit, tn_status status) {
    char what[512];
    tn_tensor *out;
    tn_status got = op_try(h, c, limit, &out);
    if (got != status)
        fail_msg("%s: '%s' where '%s' was expected: %s", describe(c, what, sizeof what), tn_status_name(got),
                 tn_status_name(status), got == TN_OK ? "" : tn_error_message());
    tn_tensor_destroy(out);
}
