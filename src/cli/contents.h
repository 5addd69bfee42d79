/* What a graph consists of, counted. */
#ifndef TN_CLI_CONTENTS_H
#define TN_CLI_CONTENTS_H

#include "base/buffer.h"
#include "base/map.h"
#include "ir/graph.h"

/* An operator used: how often, bodies and functions included. */
typedef struct tn_used_op {
    const char *domain; /* "ai.onnx", "com.microsoft", ...; "tenon" for primitives; not NUL-terminated */
    size_t domain_length;
    const char *name;
    const char *version; /* of its domain's operator set; "" unknown */
    uint64_t count;
} tn_used_op;

typedef struct tn_contents {
    TN_VEC(tn_used_op) ops; /* most used first */
    uint64_t nodes;         /* without constants */
    uint64_t parameters, parameter_elements, parameter_bytes;
} tn_contents;

tn_status tn_contents_count(const tn_graph *graph, tn_contents *out);
void tn_contents_free(tn_contents *contents);

#endif
