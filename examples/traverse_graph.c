/* Walks over a graph: every node with what it reads and gives, bodies included, then nodes by operator, the uses of a value and the
   longest chain of operators. */
#include <stdio.h>
#include <string.h>
#include <tenon/tenon.h>

enum { MOST = 256 };

static void one_more(void *ctx, tn_graph *g, const tn_value *in, tn_value *out) {
    (void)ctx;
    out[0] = tn_add(g, in[0], tn_scalar_like(g, in[0], 1));
    out[1] = tn_tanh(g, in[1]);
}

static void below_ten(void *ctx, tn_graph *g, const tn_value *in, tn_value *out) {
    (void)ctx;
    out[0] = tn_less(g, in[0], tn_scalar_like(g, in[0], 10));
}

static tn_graph *build(void) {
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("rows", 4));
    tn_value shared = tn_exp(g, x), loop[2];
    tn_value sum = tn_add(g, shared, tn_relu(g, tn_neg(g, shared)));
    tn_while(g, 2, (const tn_value[]){tn_scalar(g, TN_I64, 0), sum}, NULL, below_ten, one_more, NULL, 0, loop);
    tn_set_output(g, "trips", loop[0]);
    tn_set_output(g, "y", tn_softmax(g, loop[1], -1));
    tn_value_set_name(g, shared, "shared");
    return g;
}

/* Prints the nodes of a region in order, those of bodies inside; counts them by operator. */
static void visit(const tn_graph *g, tn_region region, int depth, const char *names[MOST], int counts[MOST]) {
    char text[128];
    for (tn_node n = tn_region_first(g, region); n.id; n = tn_node_next(g, n)) {
        const char *op = tn_node_op_name(g, n);
        printf("%*s%s", 2 * depth, "", op);
        for (uint32_t i = 0; i < tn_node_input_count(g, n); i++)
            printf("%s %s", i ? "," : "", tn_value_describe(g, tn_node_input(g, n, i), text, sizeof text));
        for (uint32_t i = 0; i < tn_node_output_count(g, n); i++)
            printf("%s %s", i ? "," : " ->", tn_value_describe(g, tn_node_output(g, n, i), text, sizeof text));
        if (tn_node_origin_count(g, n))
            printf("   (%s)", tn_node_origin(g, n, 0, text, sizeof text));
        printf("\n");
        for (uint32_t i = 0; i < tn_node_region_count(g, n); i++)
            visit(g, tn_node_region(g, n, i), depth + 1, names, counts);
        int k = 0;
        while (k < MOST - 1 && names[k] && strcmp(names[k], op) != 0)
            k++;
        names[k] = op;
        counts[k]++;
    }
}

/* Operators on the longest way from an input to this value, through the main region. */
static int chain(const tn_graph *g, tn_value v) {
    int longest = 0;
    tn_node n = tn_value_producer(g, v);
    for (uint32_t i = 0; i < tn_node_input_count(g, n); i++) {
        int length = chain(g, tn_node_input(g, n, i));
        longest = length > longest ? length : longest;
    }
    return n.id ? longest + 1 : 0;
}

int main(void) {
    tn_graph *g = build();
    if (tn_graph_check(g) != TN_OK) {
        fprintf(stderr, "%s\n", tn_error_message());
        tn_graph_destroy(g);
        return 1;
    }
    const char *names[MOST] = {NULL};
    int counts[MOST] = {0};
    visit(g, tn_graph_region(g), 0, names, counts);

    printf("\nnodes by operator:\n");
    for (int k = 0; names[k]; k++)
        printf("  %-10s %d\n", names[k], counts[k]);

    tn_value shared = tn_graph_find_value(g, "shared");
    printf("\n'shared' is read by:");
    for (tn_use u = tn_value_first_use(g, shared); u.node.id; u = tn_use_next(g, u))
        printf(" %s", tn_node_op_name(g, u.node));
    printf("\nlongest chain of operators: %d\n", chain(g, tn_graph_output(g, 1)));
    bool ok = tn_value_use_count(g, shared) == 2 && chain(g, tn_graph_output(g, 1)) == 6;
    tn_graph_destroy(g);
    return ok ? 0 : 1;
}
