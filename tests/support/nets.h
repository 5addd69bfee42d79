/* Small networks built in C, with fixed or symbolic sizes: for tests of running. */
#ifndef TESTS_SUPPORT_NETS_H
#define TESTS_SUPPORT_NETS_H

#include <tenon/tenon.h>

typedef enum net_kind {
    NET_MLP,         /* x [N, 32] */
    NET_CNN,         /* x [N, 3, T, T] */
    NET_INVERTED,    /* x [N, 8, T, T]: channels are expanded, convolved each by itself, projected */
    NET_TRANSFORMER, /* x [N, T, 32]: a block of 4 heads */
    NET_BRANCH,      /* x [N, T]: if the sum is above 0 */
    NET_LOOP,        /* x [N, T]: a while of 5 trips */
    NET_SCAN,        /* x [N, T]: a scan over N */
    NET_KINDS
} net_kind;

extern const char *const net_names[NET_KINDS];
/* Sizes below 0 are the symbols "N" and "T". One output, y. Fails the test when the graph has an error. */
tn_graph *net_build(tn_heap *heap, net_kind kind, int64_t n, int64_t t);
/* x for such sizes, the same for the same seed. */
tn_tensor *net_input(net_kind kind, int64_t n, int64_t t, uint64_t seed);

#endif
