/* Random attentions: scores of queries and keys, something made of each row of them, and a sum of values by it; as exporters spell it and
   otherwise. */
#ifndef TESTS_SUPPORT_RANDOM_ATTENTION_H
#define TESTS_SUPPORT_RANDOM_ATTENTION_H

#include "support/random_graph.h"

typedef struct random_attention {
    tn_value result, weights, scores;
} random_attention;

/* Of `batch` axes; queries [batch..., heads, queries, depth], keys [batch..., heads or fewer, keys, depth], values with `width` in place of
   depth. Masks and the like are constants, or made of positions. */
typedef struct random_attention_sizes {
    int rank; /* of batch axes */
    tn_dim batch[2], heads, queries, keys, depth, width;
    int64_t group;   /* heads that share keys; 1: none do */
    bool known_keys; /* the number of keys is constant: masks may be constants */
    int64_t key_count, query_count;
} random_attention_sizes;

/* Shapes of the operands. */
int random_attention_dims(tn_graph *graph, const random_attention_sizes *sizes, int operand, tn_dim *dims);
random_attention random_attention_make(tn_graph *graph, random_rng *rng, const random_attention_sizes *sizes,
                                       tn_value queries, tn_value keys, tn_value values);

#endif
