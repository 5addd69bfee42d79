/* Replaces every ReLU of a network by GELU, with a rewrite of our own, and prints the graph before and after. */
#include <stdio.h>
#include <tenon/tenon.h>

static tn_graph *build_network(void) {
    static const float w1[] = {1, -1, 2, 0, 1, 1}, w2[] = {2, 1};
    tn_tensor *weights1 = tn_tensor_from_f32(2, (const int64_t[]){3, 2}, w1);
    tn_tensor *weights2 = tn_tensor_from_f32(2, (const int64_t[]){2, 1}, w2);
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("batch", 3));
    tn_value hidden = tn_relu(g, tn_matmul(g, x, tn_variable(g, "w1", weights1)));
    tn_set_output(g, "y", tn_relu(g, tn_matmul(g, hidden, tn_variable(g, "w2", weights2))));
    tn_tensor_destroy(weights1);
    tn_tensor_destroy(weights2);
    return g;
}

/* The rewrite: builds what a node of its root is replaced by. */
static tn_status relu_to_gelu(tn_rewriter *r, tn_node n) {
    tn_graph *g = tn_rewriter_graph(r);
    return tn_rewrite_replace(r, n, tn_gelu(g, tn_node_input(g, n, 0)));
}

static const tn_rewrite rewrites[] = {
    {.name = "relu-to-gelu", .root = "relu", .apply = relu_to_gelu, .effect = TN_VALUE_CHANGING}};

static void print(tn_graph *g, const char *title) {
    char *text = tn_graph_print(g);
    printf("%s:\n%s\n", title, text ? text : tn_error_message());
    tn_graph_free_text(g, text);
}

int main(void) {
    tn_graph *g = build_network();
    print(g, "before");
    uint64_t replaced = 0;
    bool ok = tn_rewrite_apply(g, 1, rewrites, &replaced) == TN_OK;
    print(g, "after");
    ok = ok && tn_graph_verify(g) == TN_OK && replaced == 2;
    /* tn_graph_optimize takes the same list, and runs it among its own passes */
    ok = ok && tn_graph_optimize(g, TN_OPTIONS(tn_optimize_options, .rewrites = rewrites, .rewrite_count = 1)) == TN_OK;
    if (!ok)
        fprintf(stderr, "%s\n", tn_error_message());
    tn_graph_destroy(g);
    return ok ? 0 : 1;
}
