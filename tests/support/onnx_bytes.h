/* Writing small ONNX models as bytes: for tests of reading them. Messages are tn_text buffers; fields are added in any order. */
#ifndef TESTS_SUPPORT_ONNX_BYTES_H
#define TESTS_SUPPORT_ONNX_BYTES_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "onnx/model.h"
#include "onnx/tensor_file.h"
#include "onnx/wire.h"

static inline tn_text message(void) {
    tn_text m;
    tn_text_init(&m, NULL);
    return m;
}

static inline void put_text(tn_text *m, uint32_t field, const char *text) {
    tn_wire_put_bytes(m, field, text, strlen(text));
}

/* `inner` as a field; inner is freed. */
static inline void put_message(tn_text *m, uint32_t field, tn_text inner) {
    tn_wire_put_bytes(m, field, inner.data ? inner.data : "", inner.len);
    tn_text_free(&inner);
}

/* TypeProto of a tensor (field 1), or of a sparse one (field 8). `shape`: "N,3,?"; NULL: no shape. */
static inline tn_text type_bytes(uint32_t field, int dtype, const char *shape) {
    tn_text type = message(), tensor = message(), dims = message();
    tn_wire_put_varint(&tensor, 1, (uint64_t)dtype);
    for (const char *p = shape; p && *p;) {
        size_t n = strcspn(p, ",");
        tn_text dim = message();
        if (*p == '-' || (*p >= '0' && *p <= '9'))
            tn_wire_put_varint(&dim, 1, (uint64_t)strtoll(p, NULL, 10));
        else if (*p != '?')
            tn_wire_put_bytes(&dim, 2, p, n);
        put_message(&dims, 1, dim);
        p += n + (p[n] == ',');
    }
    if (shape)
        put_message(&tensor, 2, dims);
    else
        tn_text_free(&dims);
    put_message(&type, field, tensor);
    return type;
}

/* ValueInfoProto into a graph's field 11 (input), 12 (output) or 13; `type` is freed. */
static inline void put_typed(tn_text *graph, uint32_t field, const char *name, tn_text type) {
    tn_text info = message();
    put_text(&info, 1, name);
    put_message(&info, 2, type);
    put_message(graph, field, info);
}

/* The same of a tensor; dtype 0: no type. */
static inline void put_value(tn_text *graph, uint32_t field, const char *name, int dtype, const char *shape) {
    tn_text info = message();
    put_text(&info, 1, name);
    if (dtype)
        put_message(&info, 2, type_bytes(1, dtype, shape));
    put_message(graph, field, info);
}

/* NodeProto: inputs and outputs "a,b" (an empty name between commas is an absent one), attributes in `attrs` (freed). */
static inline tn_text node_bytes(const char *op, const char *name, const char *inputs, const char *outputs,
                                 tn_text attrs) {
    tn_text node = message();
    const char *lists[] = {inputs, outputs};
    for (uint32_t f = 0; f < 2; f++)
        for (const char *p = lists[f]; *p;) {
            size_t n = strcspn(p, ",");
            tn_wire_put_bytes(&node, f + 1, p, n);
            p += n + (p[n] == ',');
            if (!*p && p[-1] == ',') /* one more, without a name */
                tn_wire_put_bytes(&node, f + 1, p, 0);
        }
    put_text(&node, 3, name);
    put_text(&node, 4, op);
    tn_text_bytes(&node, attrs.data ? attrs.data : "", attrs.len);
    tn_text_free(&attrs);
    return node;
}

static inline void put_node(tn_text *graph, const char *op, const char *name, const char *inputs, const char *outputs) {
    put_message(graph, 1, node_bytes(op, name, inputs, outputs, message()));
}

/* AttributeProtos, as field 5 of a node's attribute list. */
static inline void attr_int(tn_text *attrs, const char *name, int64_t value) {
    tn_text a = message();
    put_text(&a, 1, name);
    tn_wire_put_varint(&a, 3, (uint64_t)value);
    tn_wire_put_varint(&a, 20, 2);
    put_message(attrs, 5, a);
}

static inline void attr_float(tn_text *attrs, const char *name, float value) {
    tn_text a = message();
    uint32_t bits;
    memcpy(&bits, &value, 4);
    put_text(&a, 1, name);
    tn_text_bytes(&a, "\x15", 1); /* field 2, 32 bits */
    tn_text_bytes(&a, (const char *)&bits, 4);
    tn_wire_put_varint(&a, 20, 1);
    put_message(attrs, 5, a);
}

/* A node of a domain; `attrs` is freed. */
static inline void put_node_of(tn_text *graph, const char *domain, const char *op, const char *inputs,
                               const char *outputs, tn_text attrs) {
    tn_text node = node_bytes(op, "the node", inputs, outputs, attrs);
    put_text(&node, 7, domain);
    put_message(graph, 1, node);
}

static inline void attr_graph(tn_text *attrs, const char *name, tn_text graph) {
    tn_text a = message();
    put_text(&a, 1, name);
    put_message(&a, 6, graph);
    tn_wire_put_varint(&a, 20, 5);
    put_message(attrs, 5, a);
}

static inline void attr_ref(tn_text *attrs, const char *name, const char *of, int type) {
    tn_text a = message();
    put_text(&a, 1, name);
    tn_wire_put_varint(&a, 20, (uint64_t)type);
    put_text(&a, 21, of);
    put_message(attrs, 5, a);
}

/* A tensor of f32 as an initializer (field 5) or whatever `field` is. */
static inline void put_floats(tn_text *graph, uint32_t field, const char *name, int rank, const int64_t *dims,
                              const float *values) {
    tn_tensor *t = tn_tensor_from_f32(rank, dims, values);
    tn_text bytes = message();
    if (!t || tn_onnx_write_tensor(&bytes, t, name) != TN_OK)
        abort();
    tn_tensor_destroy(t);
    put_message(graph, field, bytes);
}

static inline void put_ints(tn_text *graph, uint32_t field, const char *name, int64_t count, const int64_t *values) {
    tn_tensor *t = tn_tensor_from_i64(count, values);
    tn_text bytes = message();
    if (!t || tn_onnx_write_tensor(&bytes, t, name) != TN_OK)
        abort();
    tn_tensor_destroy(t);
    put_message(graph, field, bytes);
}

static inline void put_opset(tn_text *model, uint32_t field, const char *domain, int64_t version) {
    tn_text id = message();
    put_text(&id, 1, domain);
    tn_wire_put_varint(&id, 2, (uint64_t)version);
    put_message(model, field, id);
}

/* A ModelProto of IR version 10 and one operator set; `graph` is freed. Add functions (field 25) and more opsets (8) to it. */
static inline tn_text model_bytes(int opset, tn_text graph) {
    tn_text model = message();
    tn_wire_put_varint(&model, 1, 10);
    put_text(&model, 2, "a test");
    put_text(&graph, 2, "g");
    put_message(&model, 7, graph);
    put_opset(&model, 8, "", opset);
    return model;
}

static inline tn_graph *load_bytes(const tn_text *model) {
    return tn_onnx_load_memory(model->data, model->len, NULL, NULL, NULL);
}

/* A model of `nodes` elementwise operators, each of the one before. */
static inline tn_text chain_bytes(int nodes) {
    static const char *const ops[] = {"Sin", "Neg", "Abs", "Relu", "Exp"};
    char from[24], to[24], name[24];
    tn_text g = message();
    put_value(&g, 11, "v0", TN_F32, "4");
    for (int i = 0; i < nodes; i++) {
        snprintf(from, sizeof from, "v%d", i);
        snprintf(to, sizeof to, "v%d", i + 1);
        snprintf(name, sizeof name, "n%d", i);
        put_node(&g, ops[i * 7 % 5], name, from, to);
    }
    put_value(&g, 12, to, TN_F32, "4");
    return model_bytes(17, g);
}

#endif
