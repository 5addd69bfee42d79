/* random_mt19937: the numbers that numpy.random.RandomState(seed).random_sample() gives, in order: Matsumoto and Nishimura's MT19937
   seeded with the low 32 bits of the seed, 53 bits of two words each, times 2^-53. Each number depends on all before it, so they are
   made one by one; random_uniform is for all that need not give these. */
#include "ops/ops.h"
#include "ops/support.h"

enum { WORDS = 624, MIDDLE = 397 };

typedef struct twister {
    uint32_t word[WORDS];
    int next;
} twister;

static void seed_twister(twister *t, uint32_t seed) {
    t->word[0] = seed;
    for (uint32_t i = 1; i < WORDS; i++)
        t->word[i] = 1812433253u * (t->word[i - 1] ^ t->word[i - 1] >> 30) + i;
    t->next = WORDS;
}

static void twist(twister *t) {
    for (int i = 0; i < WORDS; i++) {
        uint32_t y = (t->word[i] & 0x80000000u) | (t->word[(i + 1) % WORDS] & 0x7fffffffu);
        t->word[i] = t->word[(i + MIDDLE) % WORDS] ^ y >> 1 ^ (y & 1 ? 0x9908b0dfu : 0);
    }
    t->next = 0;
}

static uint32_t next_word(twister *t) {
    if (t->next == WORDS)
        twist(t);
    uint32_t y = t->word[t->next++];
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680u;
    y ^= y << 15 & 0xefc60000u;
    return y ^ y >> 18;
}

static tn_status infer_twister(tn_infer *c) {
    const tn_dim *shape;
    int rank;
    TN_TRY(tn_infer_attr_dims(c, "shape", -1, true, &shape, &rank));
    return tn_infer_tensor(c, 0, TN_F64, rank, shape);
}

static tn_status eval_twister(tn_eval *e) {
    const tn_dim *shape;
    int rank = (int)tn_attr_dims(e->graph, e->node, "shape", &shape);
    int64_t dims[TN_MAX_RANK];
    twister t;
    TN_TRY(tn_eval_sizes(e, "shape", rank, dims));
    tn_tensor *out = tn_eval_result(e, 0, TN_F64, rank, dims);
    if (out == NULL)
        return tn_error_status();
    seed_twister(&t, (uint32_t)(uint64_t)tn_attr_int(e->graph, e->node, "seed"));
    for (int64_t i = 0; i < out->count; i++) {
        uint32_t a = next_word(&t) >> 5, b = next_word(&t) >> 6;
        ((double *)out->data)[i] = ((double)a * 67108864.0 + (double)b) * 0x1p-53;
    }
    return TN_OK;
}

static const tn_attr_spec attrs[] = {{.name = "shape", .kind = TN_ATTR_DIMS, .required = true},
                                     {.name = "seed", .kind = TN_ATTR_INT, .required = true},
                                     {0}};

static const tn_op rows[] = {
    {.name = "random_mt19937",
     .min_outputs = 1,
     .max_outputs = 1,
     .traits = TN_RANDOM,
     .attrs = attrs,
     .inputs = "",
     .doc = "Random f64, uniform in [0, 1): the stream of numpy's RandomState of a seed.",
     .infer = infer_twister,
     .eval = eval_twister,
     .no_gradient = "random numbers do not depend on an operand"},
};
const tn_op_family tn_family_random_mt = {rows, sizeof rows / sizeof *rows};
