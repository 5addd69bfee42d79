/* Rows of operators that take the ONNX node as it is and run on the host. */
#ifndef TN_ONNX_HOST_OPS_H
#define TN_ONNX_HOST_OPS_H

#include "ir/graph.h"

extern const tn_op tn_host_nms;   /* NonMaxSuppression */
extern const tn_op tn_host_regex; /* RegexFullMatch */
extern const tn_op tn_host_tfidf; /* TfIdfVectorizer */
extern const tn_attr_spec tn_host_regex_attrs[], tn_host_tfidf_attrs[];

/* Attributes that are lists of texts or numbers: the count; 0 when absent. */
static inline uint32_t tn_host_strings(const tn_graph *graph, tn_node node, const char *name, const tn_string **list) {
    const tn_attr *a = tn_node_attr(graph, node, name);
    *list = a && a->kind == TN_ATTR_STRINGS ? a->as.strings : NULL;
    return *list ? a->count : 0;
}
static inline uint32_t tn_host_floats(const tn_graph *graph, tn_node node, const char *name, const float **list) {
    const tn_attr *a = tn_node_attr(graph, node, name);
    *list = a && a->kind == TN_ATTR_FLOATS ? a->as.floats : NULL;
    return *list ? a->count : 0;
}

#endif
