/* What is fed to a model: files, literals, made-up values. */
#ifndef TN_CLI_INPUTS_H
#define TN_CLI_INPUTS_H

#include <tenon/session.h>

#include "cli/json.h"
#include "cli/options.h"
#include "ir/tensor.h"

/* What is fed: the inputs of the model in its order, then inner values that --input names. */
typedef struct tn_cli_feeds {
    uint32_t count;
    tn_value *value;    /* of the model's graph */
    tn_object **object; /* NULL: not given */
    tn_graph *typed;    /* the graph with types inferred, once an inner value is fed */
} tn_cli_feeds;
const char *tn_cli_feed_name(const tn_model *model, const tn_cli_feeds *feeds, uint32_t index);
/* Reads what --input asks for; then, with --fill, makes inputs that have no default. TN_ERR_INPUT listing all inputs when one is missing
   (unless inner values are fed or asked for: the run knows what it needs). Free it in any case. */
tn_status tn_cli_read_inputs(const tn_cli_options *options, tn_model *model, tn_cli_feeds *feeds);
void tn_cli_feeds_free(tn_cli_feeds *feeds);
/* The number M of a file called input_M.* (or output_M.*, by `prefix`), or -1. */
int64_t tn_cli_file_index(const char *path, const char *prefix);

/* Concrete sizes of an input's dimensions: from --dim, from the inputs given in objects[] (NULL: none), else `free_size`, or,
   with free_size -1, left at -1. *open: how many are. */
tn_status tn_cli_input_dims(const tn_cli_options *options, const tn_model *model, tn_object *const *objects,
                            tn_type type, int64_t free_size, int64_t dims[TN_MAX_RANK], int *open);

/* An object of a type from JSON: nested lists, numbers, strings, booleans; a sequence as a list, an empty optional as null. */
tn_object *tn_cli_json_object(const tn_graph *graph, tn_type type, const tn_json *json);

typedef enum tn_fill { TN_FILL_RANDOM, TN_FILL_ZEROS, TN_FILL_ONES, TN_FILL_ARANGE } tn_fill;
/* Fills a contiguous tensor. Random values come from Philox4x32-10 with key `seed` and counter (element / 4, stream), and depend on
   nothing else: floats standard normal (Box-Muller), integers and booleans 0 or 1, strings words of three to eight letters. */
tn_status tn_cli_fill(tn_tensor *tensor, tn_fill how, uint64_t seed, uint32_t stream);

#endif
