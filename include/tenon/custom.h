/* Operators of your own: a set of rows, each with a name, a schema and two callbacks, used by graphs built in C, by models
   that name them in any domain, and by every back end (compiled plans call them on the host).

       static tn_status infer(tn_custom_call *c) { return tn_custom_set_like(c, 0, 0); }
       static tn_status eval(tn_custom_call *c) {
           const tn_tensor *x = tn_custom_input(c, 0);
           tn_tensor *y = tn_custom_output(c, 0, tn_tensor_dtype(x), tn_tensor_rank(x), tn_tensor_dims(x));
           ...
       }
       tn_op_set *ops = tn_op_set_create(NULL);
       tn_op_set_add(ops, TN_OPTIONS(tn_custom_op, .domain = "com.example", .name = "Swish", .min_inputs = 1,
                                     .max_inputs = 1, .infer = infer, .eval = eval));
       tn_model *model = tn_model_load("model.onnx", TN_OPTIONS(tn_model_options, .ops = ops));

   A shared library of operators (a plugin) is made with TN_PLUGIN below and loaded with tn_op_set_load. */
#ifndef TENON_CUSTOM_H
#define TENON_CUSTOM_H

#include <tenon/graph.h>

TN_BEGIN_DECLS

/* --- attributes --------------------------------------------------------------------------------------------------------- */

typedef enum tn_attribute_kind {
    TN_ATTRIBUTE_INT = 1,
    TN_ATTRIBUTE_FLOAT,
    TN_ATTRIBUTE_STRING,
    TN_ATTRIBUTE_INTS,
    TN_ATTRIBUTE_FLOATS,
    TN_ATTRIBUTE_STRINGS,
    TN_ATTRIBUTE_TENSOR
} tn_attribute_kind;

/* One attribute that an operator admits. An optional one that a node lacks reads as its default; lists read as empty. */
typedef struct tn_attribute_spec {
    const char *name; /* NULL ends a list of these */
    tn_attribute_kind kind;
    bool required;
    int64_t int_default;
    double float_default;
    const char *string_default;
    const char *allowed; /* strings: "constant|reflect|edge"; NULL: any */
} tn_attribute_spec;

/* An attribute given to a node; which field holds the value follows from `kind`. */
typedef struct tn_attribute {
    const char *name;
    tn_attribute_kind kind;
    uint32_t count; /* of lists */
    int64_t i;
    double f;
    const char *s; /* NUL-terminated */
    const int64_t *ints;
    const float *floats;
    const tn_string *strings;
    tn_tensor *tensor;
} tn_attribute;
#ifndef __cplusplus
#define TN_SET_INT(key, value) ((tn_attribute){.name = (key), .kind = TN_ATTRIBUTE_INT, .i = (value)})
#define TN_SET_FLOAT(key, value) ((tn_attribute){.name = (key), .kind = TN_ATTRIBUTE_FLOAT, .f = (value)})
#define TN_SET_STRING(key, text) ((tn_attribute){.name = (key), .kind = TN_ATTRIBUTE_STRING, .s = (text)})
#define TN_SET_INTS(key, n, values) \
    ((tn_attribute){.name = (key), .kind = TN_ATTRIBUTE_INTS, .count = (uint32_t)(n), .ints = (values)})
#define TN_SET_FLOATS(key, n, values) \
    ((tn_attribute){.name = (key), .kind = TN_ATTRIBUTE_FLOATS, .count = (uint32_t)(n), .floats = (values)})
#define TN_SET_STRINGS(key, n, values) \
    ((tn_attribute){.name = (key), .kind = TN_ATTRIBUTE_STRINGS, .count = (uint32_t)(n), .strings = (values)})
#define TN_SET_TENSOR(key, value) ((tn_attribute){.name = (key), .kind = TN_ATTRIBUTE_TENSOR, .tensor = (value)})
#endif

/* --- the row -------------------------------------------------------------------------------------------------------------- */

/* What infer and eval work with; only valid during the call. */
typedef struct tn_custom_call tn_custom_call;
/* Answers TN_OK, or what tn_custom_fail answers (or the status of another call that failed). */
typedef tn_status tn_custom_function(tn_custom_call *call);

enum {
    TN_CUSTOM_EFFECT = 1 << 0,   /* has a side effect: never removed, merged or reordered with other effects */
    TN_CUSTOM_RANDOM = 1 << 1,   /* two equal nodes need not give the same */
    TN_CUSTOM_OPTIONAL = 1 << 2, /* inputs may be absent (tn_custom_input answers NULL) */
    TN_CUSTOM_UNRANKED = 1 << 3, /* infer is called though the dtype or rank of an input is not known */
    TN_CUSTOM_STRIDED = 1 << 4   /* eval takes inputs of any strides and alignment; without it they are contiguous */
};

typedef struct tn_custom_op {
    size_t size;        /* set by TN_OPTIONS */
    const char *domain; /* "com.example"; letters, digits, '_', '-', '.'. "ai.onnx" is the standard's own */
    const char *name;   /* "Swish"; letters, digits, '_' */
    int since, until;   /* versions of the domain's operator set that it covers; 0: from the first, to the newest */
    int min_inputs, max_inputs;          /* max -1: any number */
    int min_outputs, max_outputs;        /* both 0: one output */
    const tn_attribute_spec *attributes; /* ended by a NULL name; NULL: none */
    const char *inputs;                  /* names for messages, "x, scale"; may be NULL */
    const char *doc;                     /* one line; may be NULL */
    uint32_t flags;                      /* TN_CUSTOM_ */
    /* States the types of the outputs. Called whenever a graph that holds the node is built, read or checked, perhaps from
       several threads. NULL: types are known only when the operator has run. */
    tn_custom_function *infer;
    /* Computes the outputs. Called from any thread, from several at once. */
    tn_custom_function *eval;
    void *user; /* for the callbacks, see tn_custom_user */
} tn_custom_op;

/* --- sets of operators ------------------------------------------------------------------------------------------------------ */

/* A set must outlive every graph, model and session that was made with it. Once one was made, nothing can be added. */
typedef struct tn_op_set tn_op_set;
TN_API tn_op_set *tn_op_set_create(tn_heap *heap); /* NULL with the error set */
TN_API void tn_op_set_destroy(tn_op_set *ops);
/* Adds a row; everything is copied but `user`. TN_ERR_USAGE: a bad name, arity or schema, no eval, or versions that overlap
   those of another row of the same domain and name. An operator that Tenon has itself is refused when a model is loaded. */
TN_API tn_status tn_op_set_add(tn_op_set *ops, const tn_custom_op *op);
/* Loads a plugin: a shared library that was made with TN_PLUGIN. It stays loaded until the set is destroyed. The plugin's
   calls of tn_ functions must find this library: link to the shared libtenon, or export its symbols from the program.
   TN_ERR_IO: there is no such file; TN_ERR_INPUT: it is no plugin, or cannot be loaded; TN_ERR_UNSUPPORTED: made for another
   version. What a plugin that fails had added is taken away again. */
TN_API tn_status tn_op_set_load(tn_op_set *ops, const char *path);
TN_API uint32_t tn_op_set_count(const tn_op_set *ops);

/* Graphs with Tenon's operators and those of `ops`: an empty one, and one from its text form. */
TN_API tn_graph *tn_graph_create_using(tn_heap *heap, tn_op_set *ops);
TN_API tn_graph *tn_graph_parse_using(tn_heap *heap, tn_op_set *ops, const char *text, size_t length);

/* A node of the newest version of "domain.Name" (or of an older one, by "domain.Name.SINCE"), with one output or with several. */
TN_API tn_value tn_custom(tn_graph *graph, const char *op, uint32_t inputs, const tn_value *input, uint32_t attributes,
                          const tn_attribute *attribute);
TN_API tn_status tn_custom_outputs(tn_graph *graph, const char *op, uint32_t inputs, const tn_value *input,
                                   uint32_t attributes, const tn_attribute *attribute, uint32_t outputs,
                                   tn_value *output);

/* --- in both callbacks -------------------------------------------------------------------------------------------------------- */

TN_API void *tn_custom_user(const tn_custom_call *call);
TN_API uint32_t tn_custom_input_count(const tn_custom_call *call);
TN_API uint32_t tn_custom_output_count(const tn_custom_call *call);
TN_API bool tn_custom_has_input(const tn_custom_call *call, uint32_t index);
/* TN_DTYPE_NONE: absent, no tensor or not known. In eval, those of the tensor that is there. */
TN_API tn_dtype tn_custom_input_dtype(const tn_custom_call *call, uint32_t index);
TN_API int tn_custom_input_rank(const tn_custom_call *call, uint32_t index); /* -1 likewise */
/* Input `index` as a tensor: in eval what was computed (NULL: absent, or no tensor); in infer the value of a constant, NULL for
   all others. Borrowed. */
TN_API const tn_tensor *tn_custom_input(const tn_custom_call *call, uint32_t index);
/* Attributes; a name that the schema lacks reads as 0 or empty. Pointers are valid during the call. */
TN_API bool tn_custom_has_attribute(const tn_custom_call *call, const char *name);
TN_API int64_t tn_custom_int(const tn_custom_call *call, const char *name);
TN_API double tn_custom_float(const tn_custom_call *call, const char *name);
TN_API tn_string tn_custom_string(const tn_custom_call *call, const char *name);
TN_API bool tn_custom_string_is(const tn_custom_call *call, const char *name, const char *text);
TN_API uint32_t tn_custom_ints(const tn_custom_call *call, const char *name, const int64_t **values);
TN_API uint32_t tn_custom_floats(const tn_custom_call *call, const char *name, const float **values);
TN_API uint32_t tn_custom_strings(const tn_custom_call *call, const char *name, const tn_string **values);
TN_API const tn_tensor *tn_custom_tensor(const tn_custom_call *call, const char *name); /* NULL: absent */
/* Fails; the message gets the operator, the node, its origin and its inputs added. In infer TN_ERR_MODEL, in eval TN_ERR_INPUT;
   the other form is TN_ERR_UNSUPPORTED. */
TN_API tn_status tn_custom_fail(tn_custom_call *call, const char *format, ...) TN_PRINTF(2, 3);
TN_API tn_status tn_custom_unsupported(tn_custom_call *call, const char *format, ...) TN_PRINTF(2, 3);

/* --- in infer --------------------------------------------------------------------------------------------------------------------- */

/* The graph, for arithmetic on dimensions (tn_dim_add and so on). NULL in eval. */
TN_API tn_graph *tn_custom_graph(const tn_custom_call *call);
TN_API tn_type tn_custom_input_type(const tn_custom_call *call, uint32_t index); /* id 0: not known */
/* Negative: from the end; null: no such. */
TN_API tn_dim tn_custom_input_dim(const tn_custom_call *call, uint32_t index, int axis);
/* The elements of a small integer input as far as they are known: their number, or -1 (not known, or more than `max`). */
TN_API int tn_custom_known(const tn_custom_call *call, uint32_t index, tn_dim *dims, int max);
/* A size that only data decides. */
TN_API tn_dim tn_custom_fresh_dim(tn_custom_call *call, uint32_t output, int axis, int64_t low, int64_t high);
/* States the type of an output: a tensor, the type of an input, any type. An output left out is of unknown type. */
TN_API tn_status tn_custom_set_tensor(tn_custom_call *call, uint32_t output, tn_dtype dtype, int rank,
                                      const tn_dim *dims);
TN_API tn_status tn_custom_set_like(tn_custom_call *call, uint32_t output, uint32_t input);
TN_API tn_status tn_custom_set_type(tn_custom_call *call, uint32_t output, tn_type type);

/* --- in eval ----------------------------------------------------------------------------------------------------------------------- */

/* Any kind of input; borrowed; NULL: absent. */
TN_API tn_object *tn_custom_object(const tn_custom_call *call, uint32_t index);
/* The tensor of an output, contiguous, of this dtype and shape, its contents not set: write them. NULL with the error set:
   answer tn_error_status(). It must be what infer said. */
TN_API tn_tensor *tn_custom_output(tn_custom_call *call, uint32_t output, tn_dtype dtype, int rank,
                                   const int64_t *dims);
/* Hands over an output of any kind instead (the reference is taken over in any case; NULL: an error already set). */
TN_API tn_status tn_custom_set_output(tn_custom_call *call, uint32_t output, tn_object *object);
/* Zeroed memory until eval ends, counted with the run's. NULL with the error set. */
TN_API void *tn_custom_scratch(tn_custom_call *call, size_t size);
/* The run's heap, for tensors made here. */
TN_API tn_heap *tn_custom_heap(const tn_custom_call *call);

/* --- plugins ------------------------------------------------------------------------------------------------------------------------- */

/* Changes whenever a plugin must be compiled anew. */
#define TN_PLUGIN_ABI 1
/* Defines what a plugin exports; the body adds rows to `set` and answers TN_OK or what failed:
       TN_PLUGIN(set) { return tn_op_set_add(set, TN_OPTIONS(tn_custom_op, ...)); } */
#ifdef __cplusplus
#define TN_PLUGIN_EXTERN extern "C"
#else
#define TN_PLUGIN_EXTERN extern
#endif
#define TN_PLUGIN(set)                                                    \
    TN_PLUGIN_EXTERN TN_API const uint32_t tn_plugin_abi;                 \
    const uint32_t tn_plugin_abi = TN_PLUGIN_ABI;                         \
    TN_PLUGIN_EXTERN TN_API tn_status tn_plugin_register(tn_op_set *set); \
    tn_status tn_plugin_register(tn_op_set *set)

TN_END_DECLS

#ifndef TN_NO_POSITIONS
#define TN_HERE(graph) tn_at((graph), __FILE__, __LINE__) /* as in positions.h */
#define tn_custom(g, ...) (tn_custom)(TN_HERE(g), __VA_ARGS__)
#define tn_custom_outputs(g, ...) (tn_custom_outputs)(TN_HERE(g), __VA_ARGS__)
#endif
#endif
