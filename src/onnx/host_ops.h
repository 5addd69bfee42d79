/* Operators that run on the host (infer + eval): what ONNX nodes become that have no form in primitives. Those that take the ONNX
   node as it is are the `host` of their row; the others are made by expansions, and listed in table.c. */
#ifndef TN_ONNX_HOST_OPS_H
#define TN_ONNX_HOST_OPS_H

#include "ir/graph.h"

extern const tn_op tn_host_nms;   /* NonMaxSuppression */
extern const tn_op tn_host_regex; /* RegexFullMatch */
extern const tn_op tn_host_tfidf; /* TfIdfVectorizer */
extern const tn_op tn_host_image; /* ImageDecoder */
extern const tn_attr_spec tn_host_regex_attrs[], tn_host_tfidf_attrs[], tn_host_image_attrs[];

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
extern const tn_op tn_host_lookup; /* positions among sorted keys */
extern const tn_op tn_host_zip_map, tn_host_cast_map, tn_host_vectorize_map;
extern const tn_op tn_host_tree_ensemble;
extern const tn_op tn_host_couple; /* probabilities of classes from those of pairs */

/* host_common.c: a contiguous tensor whose elements may be read in place: a new reference. Data of a file starts at any byte. */
tn_tensor *tn_host_readable(tn_heap *heap, tn_tensor *tensor);

#endif
