/* Replaces every ReLU of a network by GELU and prints the graph before and
 * after. */
#include <stdio.h>
#include <string.h>
#include <tenon/tenon.h>

static tn_graph *build_network(void) {
  static const float w1[] = {1, -1, 2, 0, 1, 1}, w2[] = {2, 1};
  tn_tensor *weights1 = tn_tensor_from_f32(2, (const int64_t[]){3, 2}, w1);
  tn_tensor *weights2 = tn_tensor_from_f32(2, (const int64_t[]){2, 1}, w2);
  tn_graph *g = tn_graph_create();
  tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("batch", 3));
  tn_value hidden = tn_relu(g, tn_matmul(g, x, tn_variable(g, "w1", weights1)));
  tn_set_output(
      g, "y", tn_relu(g, tn_matmul(g, hidden, tn_variable(g, "w2", weights2))));
  tn_tensor_destroy(weights1);
  tn_tensor_destroy(weights2);
  return g;
}

/* The rewrite. Answers how many nodes it replaced. */
static int relu_to_gelu(tn_graph *g) {
  int replaced = 0;
  tn_node next;
  for (tn_node n = tn_region_first(g, tn_graph_region(g)); n.id; n = next) {
    next = tn_node_next(g, n);
    if (strcmp(tn_node_op_name(g, n), "relu") != 0)
      continue;
    tn_graph_insert_before(g, n);
    tn_value gelu = tn_gelu(g, tn_node_input(g, n, 0));
    tn_value_replace_uses(g, tn_node_output(g, n, 0), gelu);
    tn_node_remove(g, n);
    replaced++;
  }
  return replaced;
}

static void print(tn_graph *g, const char *title) {
  char *text = tn_graph_print(g);
  printf("%s:\n%s\n", title, text ? text : tn_error_message());
  tn_graph_free_text(g, text);
}

int main(void) {
  tn_graph *g = build_network();
  print(g, "before");
  int replaced = relu_to_gelu(g);
  print(g, "after");
  bool ok = tn_graph_check(g) == TN_OK && tn_graph_verify(g) == TN_OK &&
            replaced == 2;
  if (!ok)
    fprintf(stderr, "%s\n", tn_error_message());
  tn_graph_destroy(g);
  return ok ? 0 : 1;
}
