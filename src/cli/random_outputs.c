/* Which outputs of an ONNX graph depend on a random operator. */
#include <string.h>

#include "cli/test_folder.h"
#include "ir/graph.h"

typedef struct search {
    const tn_graph *graph;
    uint8_t *function; /* 0: not looked at, 1: not random (or being looked at), 2: random */
} search;

static bool is_random_name(const char *op) {
    static const char *const names[] = {"onnx.Bernoulli",     "onnx.Multinomial",      "onnx.RandomNormal",
                                        "onnx.RandomUniform", "onnx.RandomNormalLike", "onnx.RandomUniformLike"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(op, names[i]) == 0)
            return true;
    return false;
}

static bool region_is_random(search *s, tn_region region);

/* Whether a node calls a random function of the model. Overloads of one name are taken together. */
static bool calls_random(search *s, const char *op) {
    if (strncmp(op, "onnx.", 5) != 0)
        return false;
    op += 5;
    for (uint32_t f = 0; f < s->graph->function.len; f++) {
        const char *name = tn_strings_text(&s->graph->strings, s->graph->function.data[f].name);
        if (strncmp(name, "ai.onnx.", 8) == 0)
            name += 8;
        size_t n = strcspn(name, ":");
        if (strlen(op) != n || memcmp(op, name, n) != 0)
            continue;
        if (s->function[f] == 0) {
            s->function[f] = 1;
            s->function[f] = region_is_random(s, tn_graph_function_region(s->graph, f)) ? 2 : 1;
        }
        if (s->function[f] == 2)
            return true;
    }
    return false;
}

static bool node_is_random(search *s, tn_node node) {
    const char *op = tn_node_op_name(s->graph, node);
    if (is_random_name(op) || calls_random(s, op))
        return true;
    for (uint32_t i = 0; i < tn_node_region_count(s->graph, node); i++)
        if (region_is_random(s, tn_node_region(s->graph, node, i)))
            return true;
    return false;
}

static bool region_is_random(search *s, tn_region region) {
    for (tn_node n = tn_region_first(s->graph, region); n.id; n = tn_node_next(s->graph, n))
        if (node_is_random(s, n))
            return true;
    return false;
}

tn_status tn_random_outputs(const tn_graph *graph, bool *random) {
    search s = {.graph = graph, .function = tn_alloc(NULL, (size_t)graph->function.len + 1)};
    bool *reached = tn_alloc(NULL, (size_t)graph->value.len + 1);
    tn_status status = s.function && reached ? TN_OK : TN_ERR_MEMORY;
    for (tn_node n = tn_region_first(graph, tn_graph_region(graph)); status == TN_OK && n.id;
         n = tn_node_next(graph, n)) {
        bool hit = node_is_random(&s, n);
        for (uint32_t i = 0; i < tn_node_input_count(graph, n) && !hit; i++)
            hit = reached[tn_node_input(graph, n, i).id];
        for (uint32_t i = 0; i < tn_node_output_count(graph, n) && hit; i++)
            reached[tn_node_output(graph, n, i).id] = true;
    }
    for (uint32_t i = 0; status == TN_OK && i < tn_graph_output_count(graph); i++)
        random[i] = reached[tn_graph_output(graph, i).id];
    tn_free(NULL, reached);
    tn_free(NULL, s.function);
    return status;
}
