/* Models: loaded graphs, ready for sessions. */
#ifndef TENON_MODEL_H
#define TENON_MODEL_H

#include <tenon/graph.h>

TN_BEGIN_DECLS

/* A loaded model. Immutable; may be used from many threads; sessions hold a reference, so it may be destroyed while they live. */
typedef struct tn_model tn_model;

/* Gives the bytes of external data of a model loaded from memory: `name` is the location in the model (never checked against a
   folder). The bytes must live as long as the model. NULL: not there. */
typedef const void *tn_external_data(void *user, const char *name, size_t *size);

/* A message of the library, or the text of a `print` node. */
typedef void tn_log_callback(void *user, const char *text);

typedef struct tn_model_options {
    size_t size;                /* set by TN_OPTIONS */
    tn_heap *heap;              /* NULL: the default heap */
    uint64_t max_bytes;         /* admission: the model's constants and file may not exceed it; 0: no limit */
    uint64_t max_ops;           /* admission: number of nodes; 0: no limit */
    tn_external_data *external; /* tn_model_load_memory only */
    void *external_user;
    tn_log_callback *log; /* NULL: messages are dropped */
    void *log_user;
    bool notes;            /* the log is also told what the passes did not do and why */
    struct tn_op_set *ops; /* operators of your own (custom.h); must outlive the model. A graph has its own: not for
                              tn_model_from_graph */
} tn_model_options;

/* Loads an ONNX file (.onnx), Tenon's text form (.txt) or binary form (.tenon), told apart by content. `options` may be NULL.
   NULL with the thread's error: TN_ERR_IO, TN_ERR_MODEL, TN_ERR_UNSUPPORTED (all operators that are not supported, at once),
   TN_ERR_LIMIT, TN_ERR_MEMORY. The file stays mapped: it must not be changed while the model lives. */
TN_API tn_model *tn_model_load(const char *path, const tn_model_options *options);
/* The same from memory, which must live as long as the model. */
TN_API tn_model *tn_model_load_memory(const void *bytes, size_t size, const tn_model_options *options);
/* A model of a graph built in C. The graph is frozen; it stays the caller's and must outlive the model. */
TN_API tn_model *tn_model_from_graph(tn_graph *graph, const tn_model_options *options);
TN_API void tn_model_destroy(tn_model *model);

/* The graph as loaded (ONNX nodes for an ONNX file); frozen. */
TN_API const tn_graph *tn_model_graph(const tn_model *model);
/* Inputs and outputs. Names live as long as the model; an input with a default may be left out of a run. Sparse tensors are
   the dense ones that they stand for. */
TN_API uint32_t tn_model_input_count(const tn_model *model);
TN_API const char *tn_model_input_name(const tn_model *model, uint32_t index);
TN_API bool tn_model_input_has_default(const tn_model *model, uint32_t index);
TN_API tn_type tn_model_input_type(const tn_model *model, uint32_t index); /* of tn_model_graph */
TN_API uint32_t tn_model_output_count(const tn_model *model);
TN_API const char *tn_model_output_name(const tn_model *model, uint32_t index);
/* "f32[N, 3, 224, 224]" into text. Returns text. */
TN_API const char *tn_model_describe_input(const tn_model *model, uint32_t index, char *text, size_t size);
TN_API const char *tn_model_describe_output(const tn_model *model, uint32_t index, char *text, size_t size);

TN_END_DECLS
#endif
