/* Models of one ONNX node, loaded, expanded and run by the interpreter: for tests of operators. */
#ifndef TESTS_SUPPORT_ONE_NODE_H
#define TESTS_SUPPORT_ONE_NODE_H

#include "interp/interp.h"
#include "support/onnx_bytes.h"

enum { NODE_INPUTS = 10 };

/* How the inputs are given. */
typedef enum node_form {
    NODE_KNOWN,
    NODE_FREE,
    NODE_CONSTANT
} node_form; /* shapes known; unknown; all but input 0 constants */

/* Inputs are "a", "b", ...; in[i] NULL: absent. outputs: "y" or "y,z". Fills out[]; the tensors given stay the caller's. */
static inline tn_status run_one_node(const char *op, int opset, tn_text attrs, node_form form, uint32_t n,
                                     tn_tensor *const *in, const char *outputs, tn_tensor **out) {
    tn_text g = message();
    char names[2 * NODE_INPUTS + 1] = "", shape[200];
    uint32_t fed = 0, m = 0;
    tn_object *objects[NODE_INPUTS], *results[4] = {NULL};
    tn_value values[NODE_INPUTS], wanted[4];
    for (uint32_t i = 0; i < n; i++) {
        char name[2] = {(char)('a' + i), 0};
        if (i)
            strcat(names, ",");
        if (!in[i])
            continue;
        strcat(names, name);
        if (form == NODE_CONSTANT && i > 0) {
            tn_text bytes = message();
            if (tn_onnx_write_tensor(&bytes, in[i], name) != TN_OK)
                abort();
            put_message(&g, 5, bytes);
            continue;
        }
        shape[0] = 0;
        for (int k = 0; k < in[i]->rank; k++)
            snprintf(shape + strlen(shape), sizeof shape - strlen(shape), form == NODE_FREE ? "%s?" : "%s%d",
                     k ? "," : "", (int)in[i]->dims[k]);
        put_value(&g, 11, name, (int)in[i]->dtype, shape);
        objects[fed++] = tn_tensor_object(in[i]);
    }
    put_message(&g, 1, node_bytes(op, "node", names, outputs, attrs));
    for (const char *p = outputs; *p; m++) {
        char name[8] = "";
        size_t length = strcspn(p, ",");
        memcpy(name, p, length);
        put_value(&g, 12, name, 0, NULL);
        p += length + (p[length] == ',');
    }
    tn_text model = model_bytes(opset, g);
    tn_graph *graph = load_bytes(&model);
    tn_text_free(&model);
    tn_status status = graph ? tn_onnx_expand(graph, 0) : tn_error_status();
    if (status == TN_OK)
        status = tn_graph_verify(graph);
    for (uint32_t i = 0; status == TN_OK && i < fed; i++)
        values[i] = tn_graph_input(graph, i);
    for (uint32_t i = 0; status == TN_OK && i < m; i++)
        wanted[i] = tn_graph_output(graph, i);
    if (status == TN_OK)
        status = tn_interp_run(graph, NULL, fed, values, objects, m, wanted, results);
    for (uint32_t i = 0; i < m; i++)
        out[i] = results[i] ? tn_object_tensor(results[i]) : NULL;
    tn_graph_destroy(graph);
    return status;
}

static inline void attr_text(tn_text *attrs, const char *name, const char *value) {
    tn_text a = message();
    put_text(&a, 1, name);
    put_text(&a, 4, value);
    tn_wire_put_varint(&a, 20, 3);
    put_message(attrs, 5, a);
}

static inline void attr_ints(tn_text *attrs, const char *name, uint32_t count, const int64_t *values) {
    tn_text a = message();
    put_text(&a, 1, name);
    for (uint32_t i = 0; i < count; i++)
        tn_wire_put_varint(&a, 8, (uint64_t)values[i]);
    tn_wire_put_varint(&a, 20, 7);
    put_message(attrs, 5, a);
}

static inline void attr_texts(tn_text *attrs, const char *name, uint32_t count, const char *const *values) {
    tn_text a = message();
    put_text(&a, 1, name);
    for (uint32_t i = 0; i < count; i++)
        put_text(&a, 9, values[i]);
    tn_wire_put_varint(&a, 20, 8);
    put_message(attrs, 5, a);
}

static inline tn_tensor *string_tensor(int rank, const int64_t *dims, const char *const *values) {
    tn_tensor *t = tn_tensor_create(TN_STRING, rank, dims);
    for (int64_t i = 0; t && i < t->count; i++)
        if (tn_tensor_set_string(t, i, values[i], strlen(values[i])) != TN_OK)
            abort();
    return t;
}

#endif
