/* What a graph consists of, counted. */
#include "cli/contents.h"

#include <stdlib.h>
#include <string.h>

#include "ir/tensor.h"
#include "onnx/model.h"

typedef struct counting {
    const tn_graph *graph;
    tn_contents *out;
    tn_map index; /* op row -> index in ops, plus 1 */
} counting;

/* "onnx.ai.onnx.ml.Scaler" is Scaler of ai.onnx.ml. */
static void name_op(const tn_graph *graph, const char *full, tn_used_op *op) {
    static const char standard[] = "ai.onnx";
    char key[200] = TN_META_OPSET;
    size_t prefix = strlen(key);
    op->version = "";
    if (strncmp(full, "onnx.", 5) != 0) {
        op->domain = "tenon";
        op->domain_length = 5;
        op->name = full;
        return;
    }
    const char *dot = strrchr(full + 5, '.');
    op->name = dot ? dot + 1 : full + 5;
    op->domain = dot ? full + 5 : standard;
    op->domain_length = dot ? (size_t)(dot - full - 5) : sizeof standard - 1;
    if (op->domain_length < sizeof key - prefix) {
        memcpy(key + prefix, op->domain, op->domain_length);
        key[prefix + op->domain_length] = '\0';
        const char *version = tn_graph_metadata(graph, key);
        op->version = version ? version : "";
    }
}

static tn_status count_tensor(counting *c, const tn_tensor *t) {
    if (!t)
        return TN_OK;
    c->out->parameters++;
    c->out->parameter_elements += (uint64_t)t->count;
    c->out->parameter_bytes += tn_tensor_bytes(t);
    return TN_OK;
}

static tn_status count_region(counting *c, tn_region region) {
    const tn_graph *g = c->graph;
    for (tn_node n = tn_region_first(g, region); n.id; n = tn_node_next(g, n)) {
        const tn_op *op = tn_node_op(g, n);
        if (op == &tn_op_return)
            continue;
        tn_tensor *constant = tn_node_output_count(g, n) == 1 ? tn_value_constant(g, tn_node_output(g, n, 0)) : NULL;
        if (constant && strcmp(op->name, "constant") == 0) {
            TN_TRY(count_tensor(c, constant));
            continue;
        }
        uint64_t at = 0, key = (uint64_t)(uintptr_t)op;
        c->out->nodes++;
        if (!tn_map_get(&c->index, key, &at)) {
            tn_used_op used = {0};
            name_op(g, op->name, &used);
            if (!tn_vec_push(NULL, &c->out->ops, used) || !tn_map_put(NULL, &c->index, key, at = c->out->ops.len))
                return TN_ERR_MEMORY;
        }
        c->out->ops.data[at - 1].count++;
        for (uint32_t i = 0; i < tn_node_region_count(g, n); i++)
            TN_TRY(count_region(c, tn_node_region(g, n, i)));
    }
    return TN_OK;
}

static int by_count(const void *a, const void *b) {
    const tn_used_op *x = a, *y = b;
    if (x->count != y->count)
        return x->count < y->count ? 1 : -1;
    int names = strcmp(x->name, y->name);
    size_t shorter = x->domain_length < y->domain_length ? x->domain_length : y->domain_length;
    return names ? names : memcmp(x->domain, y->domain, shorter);
}

tn_status tn_contents_count(const tn_graph *graph, tn_contents *out) {
    counting c = {.graph = graph, .out = out};
    *out = (tn_contents){0};
    tn_status status = count_region(&c, tn_graph_region(graph));
    for (uint32_t f = 0; f < graph->function.len && status == TN_OK; f++)
        status = count_region(&c, tn_graph_function_region(graph, f));
    for (uint32_t i = 0; i < graph->input_default.len && status == TN_OK; i++)
        status = count_tensor(&c, graph->input_default.data[i].tensor);
    if (out->ops.len)
        qsort(out->ops.data, out->ops.len, sizeof *out->ops.data, by_count);
    tn_map_free(NULL, &c.index);
    return status;
}

void tn_contents_free(tn_contents *contents) {
    tn_vec_free(NULL, &contents->ops);
}
