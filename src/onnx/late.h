/* What nodes that are expanded at run time became, kept from run to run. */
#ifndef TN_ONNX_LATE_H
#define TN_ONNX_LATE_H

#include "base/buffer.h"
#include "ir/graph.h"

/* Limits of what one cache keeps: forms of one node (the one used longest ago goes), forms in all, and bytes. A form whose key is
   longer than TN_LATE_KEY (contents of inputs stand in it) is not kept. */
enum { TN_LATE_FORMS_OF_NODE = 4, TN_LATE_FORMS = 8192, TN_LATE_KEY = 4096 };
#define TN_LATE_BYTES ((size_t)64 << 20)

/* One node, expanded for inputs of certain types, sizes and small contents. Immutable once kept; shared by reference. */
typedef struct tn_late_form {
    _Atomic int32_t refs;
    tn_heap *heap;
    tn_graph *graph;         /* NULL: it cannot be expanded unless all contents are known */
    TN_VEC(tn_value) inputs; /* arguments of the graph */
    tn_u32_vec fed;          /* and which input of the node each is */
    tn_u32_vec wanted;       /* which output of the node each output of the graph is */
    uint32_t number;         /* of `graph`, among the graphs whose nodes are looked up; 0 is the plan's own */
    /* in the cache */
    uint64_t place; /* graph number and node */
    tn_text key;
    struct tn_late_form *next, *older, *newer;
} tn_late_form;

tn_late_form *tn_late_form_create(tn_heap *heap);
void tn_late_form_release(tn_late_form *form);

/* Forms of the nodes of one compiled graph, for all threads that run it. Thread safe. */
typedef struct tn_late_cache tn_late_cache;
tn_late_cache *tn_late_cache_create(tn_heap *heap);
void tn_late_cache_destroy(tn_late_cache *cache);
/* Where forms that are to be kept must be made. */
tn_heap *tn_late_cache_heap(tn_late_cache *cache);
/* A new reference, or NULL. */
tn_late_form *tn_late_cache_find(tn_late_cache *cache, uint64_t place, const tn_text *key);
/* Keeps a form (its own reference), numbers its graph, and drops others where a limit would be passed. */
void tn_late_cache_put(tn_late_cache *cache, uint64_t place, tn_text *key, tn_late_form *form);
typedef struct tn_late_counts {
    uint64_t found, made; /* since the cache was created */
    size_t forms, bytes;  /* now */
} tn_late_counts;
tn_late_counts tn_late_cache_counts(tn_late_cache *cache);

#endif
