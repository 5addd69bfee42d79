/* Random numbers by counting: random_bits, random_uniform, random_normal.

   Block b of a node is Philox4x32-10 (Salmon et al., 2011) of the counter (b low, b high, offset low, offset high) and
   the key (seed low, seed high): four 32-bit words w0..w3. Element i (row-major) is made of

     random_bits     up to 32 bits: the low bits of w[i mod 4] of block i / 4; 64 bits: w[2j] + 2^32 w[2j+1] of block
                     i / 2, j = i mod 2
     random_uniform  the high bits of such a number, as many as the significand has, times 2^-bits: in [0, 1)
     random_normal   sqrt(-2 log u) cos(2 pi v): of 64 bits, u = (the high 53 bits of w0 + 2^32 w1, plus 1) 2^-53 and
                     v = the high 53 bits of w2 + 2^32 w3, 2^-53, of block i; narrower, u = (w[2j] + 1) 2^-32 and
                     v = w[2j+1] 2^-32 of block i / 2; computed in double, rounded once

   So any element can be made alone, and the numbers do not depend on threads, sizes or the machine. The offset, an
   optional input, tells runs apart: a training step gives its number. */
#include <inttypes.h>
#include <math.h>

#include "ops/ops.h"
#include "ops/plain.h"

typedef struct philox {
    uint32_t key[2], offset[2];
} philox;

static void philox_block(const philox *p, uint64_t block, uint32_t w[4]) {
    uint32_t c[4] = {(uint32_t)block, (uint32_t)(block >> 32), p->offset[0], p->offset[1]};
    uint32_t k0 = p->key[0], k1 = p->key[1];
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xD2511F53u * c[0], b = (uint64_t)0xCD9E8D57u * c[2];
        uint32_t next[4] = {(uint32_t)(b >> 32) ^ c[1] ^ k0, (uint32_t)b, (uint32_t)(a >> 32) ^ c[3] ^ k1, (uint32_t)a};
        memcpy(c, next, sizeof c);
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    memcpy(w, c, sizeof c);
}

/* --- infer -------------------------------------------------------------------------------------------------------- */

typedef enum kind { BITS, UNIFORM, NORMAL } kind;

static kind kind_of(const tn_graph *g, tn_node node) {
    return (kind)tn_node_op(g, node)->code;
}

static tn_status infer_random(tn_infer *c) {
    const tn_dim *shape;
    int rank;
    int64_t dtype = tn_attr_int(c->graph, c->node, "dtype");
    TN_TRY(tn_infer_attr_dims(c, "shape", -1, true, &shape, &rank));
    uint8_t admits = kind_of(c->graph, c->node) == BITS ? TN_ADMIT_INT : TN_ADMIT_FLOAT;
    if (dtype <= 0 || dtype >= TN_DTYPE_COUNT || !(tn_scalar_class((tn_dtype)dtype) & admits))
        return tn_infer_fail(c, "dtype is %s, it must be %s",
                             dtype > 0 && dtype < TN_DTYPE_COUNT ? tn_dtype_name((tn_dtype)dtype) : "none",
                             admits == TN_ADMIT_INT ? "an integer" : "a float");
    if (tn_node_input_count(c->graph, c->node) > 0 && tn_node_input(c->graph, c->node, 0).id != 0) {
        tn_operand_type offset;
        TN_TRY(tn_infer_operand_rank(c, 0, 0, &offset));
        if (offset.dtype != TN_I64 && offset.dtype != TN_I32 && offset.dtype != TN_U64 && offset.dtype != TN_U32)
            return tn_infer_fail(c, "the offset is %s, it must be an integer of 32 or 64 bits",
                                 tn_dtype_name(offset.dtype));
    }
    return tn_infer_tensor(c, 0, (tn_dtype)dtype, rank, shape);
}

/* --- eval --------------------------------------------------------------------------------------------------------- */

typedef struct random_work {
    philox p;
    tn_tensor *out;
    kind kind;
    int bits; /* of an element */
} random_work;

static uint64_t word_64(const uint32_t w[4], int64_t j) {
    return w[2 * j] | (uint64_t)w[2 * j + 1] << 32;
}

static double normal(double u, double v) {
    return sqrt(-2 * log(u)) * cos(6.283185307179586476925286766559 * v);
}

static int digits_of(tn_dtype dtype) {
    switch (dtype) {
    case TN_F64: return 53;
    case TN_F32: return 24;
    case TN_F16: return 11;
    default: return 8;
    }
}

static void make_elements(void *ctx, int64_t begin, int64_t end) {
    const random_work *r = ctx;
    tn_dtype dtype = (tn_dtype)r->out->dtype;
    bool wide = r->bits == 64;
    int64_t each = r->kind == NORMAL ? (wide ? 1 : 2) : wide ? 2 : 4, have = -1;
    uint32_t w[4] = {0};
    for (int64_t i = begin; i < end; i++) {
        int64_t j = i % each;
        if (i / each != have)
            philox_block(&r->p, (uint64_t)(have = i / each), w);
        if (r->kind == BITS) {
            tn_store_i64(dtype, r->out->data, i, (int64_t)(wide ? word_64(w, j) : w[j]));
        } else if (r->kind == UNIFORM) {
            int digits = digits_of(dtype);
            double high = wide ? (double)(word_64(w, j) >> (64 - digits)) : (double)(w[j] >> (32 - digits));
            tn_store_f64(dtype, r->out->data, i, ldexp(high, -digits));
        } else if (wide) {
            tn_store_f64(
                dtype, r->out->data, i,
                normal((double)((word_64(w, 0) >> 11) + 1) * 0x1p-53, (double)(word_64(w, 1) >> 11) * 0x1p-53));
        } else {
            tn_store_f64(dtype, r->out->data, i,
                         normal(((double)w[2 * j] + 1) * 0x1p-32, (double)w[2 * j + 1] * 0x1p-32));
        }
    }
}

static tn_status eval_random(tn_eval *e) {
    const tn_dim *shape;
    int rank = (int)tn_attr_dims(e->graph, e->node, "shape", &shape);
    tn_dtype dtype = (tn_dtype)tn_attr_int(e->graph, e->node, "dtype");
    uint64_t seed = (uint64_t)tn_attr_int(e->graph, e->node, "seed"), offset = 0;
    int64_t dims[TN_MAX_RANK];
    TN_TRY(tn_eval_sizes(e, "shape", rank, dims));
    if (e->inputs > 0 && e->in[0] != NULL) {
        const tn_tensor *given = tn_eval_in(e, 0);
        offset = (uint64_t)tn_load_i64((tn_dtype)given->dtype, given->data, 0);
    }
    tn_tensor *out = tn_eval_result(e, 0, dtype, rank, dims);
    if (out == NULL)
        return tn_error_status();
    random_work work = {.p = {{(uint32_t)seed, (uint32_t)(seed >> 32)}, {(uint32_t)offset, (uint32_t)(offset >> 32)}},
                        .out = out,
                        .kind = kind_of(e->graph, e->node),
                        .bits = tn_dtype_bits(dtype)};
    tn_range_split(e->pool, out->count, 4, make_elements, &work);
    return TN_OK;
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

static const tn_attr_spec attrs[] = {{.name = "shape", .kind = TN_ATTR_DIMS, .required = true},
                                     {.name = "dtype", .kind = TN_ATTR_DTYPE, .required = true},
                                     {.name = "seed", .kind = TN_ATTR_INT, .required = true},
                                     {0}};

#define ROW(row, KIND, text)                                                                       \
    {                                                                                              \
        .name = row, .min_inputs = 0, .max_inputs = 1, .min_outputs = 1, .max_outputs = 1,         \
        .traits = TN_RANDOM | TN_OPTIONAL_INPUTS, .attrs = attrs, .inputs = "offset", .doc = text, \
        .infer = infer_random, .eval = eval_random, .code = KIND,                                  \
        .no_gradient = "random numbers do not depend on an operand"                                \
    }

static const tn_op rows[] = {
    ROW("random_bits", BITS,
        "Random integers over the whole range of their dtype, by Philox4x32-10 of seed and offset."),
    ROW("random_uniform", UNIFORM, "Random floats, uniform in [0, 1), by Philox4x32-10 of seed and offset."),
    ROW("random_normal", NORMAL,
        "Random floats, normal with mean 0 and deviation 1, by Philox4x32-10 of seed and "
        "offset and the Box-Muller transform."),
};
const tn_op_family tn_family_random = {rows, sizeof rows / sizeof *rows};
