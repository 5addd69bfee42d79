/* Models of the shared test data and models written on the spot, with inputs for them, through the public API: for the acceptance
   tests. Functions without a status fail the test when they can't do what they say. */
#ifndef TESTS_SUPPORT_MODEL_RUNS_H
#define TESTS_SUPPORT_MODEL_RUNS_H

#include <tenon/session.h>

#include "base/buffer.h"

/* The longer form of a test: set TENON_FULL=1 (the nightly tests do). */
bool run_full(void);
/* "<shared>/<name>" into text, or NULL when there is no such file; then says that it is skipped. */
const char *shared_path(const char *name, char *text, size_t size);
/* Names of the folders in <shared>/<folder> that hold model.onnx, NULL-ended; free with shared_free_names. Empty without data. */
char **shared_models(const char *folder);
void shared_free_names(char **names);

#define RUN_MAX 128
/* What is fed to one run, owned. */
typedef struct run_inputs {
    uint32_t count;
    tn_binding binding[RUN_MAX];
} run_inputs;
/* The inputs of <folder>/test_data_set_<set>; false when there is none. */
bool run_inputs_read(const tn_model *model, const char *folder, int set, run_inputs *in);
/* Inputs without default, filled from `seed`: floats in [-1, 1], integers and bools 0 or 1, strings short; free dimensions take
   `free_size`, those named in `dims` ("N=3,T=4"; NULL) theirs. False when an input is not a tensor of known rank. */
bool run_inputs_fill(const tn_model *model, uint64_t seed, int64_t free_size, const char *dims, run_inputs *in);
void run_inputs_free(run_inputs *in);

typedef struct run_outputs {
    uint32_t count;
    tn_object *object[RUN_MAX];
} run_outputs;
/* Runs all outputs of the model. On failure there is nothing to free. */
tn_status run_session(tn_session *session, const tn_model *model, const run_inputs *in, run_outputs *out);
/* Creates a session, runs, destroys it. */
tn_status run_model(tn_model *model, const tn_session_options *options, const run_inputs *in, run_outputs *out);
void run_outputs_free(run_outputs *out);
/* The same bits in all outputs (a NaN equals any NaN); else false with a line on stderr that begins with `what`. */
bool run_outputs_equal(const char *what, const run_outputs *a, const run_outputs *b);
/* Floats within atol + rtol * |want|, all else equal; else false with a line on stderr. */
bool run_outputs_close(const char *what, const run_outputs *want, const run_outputs *got, double rtol, double atol);

/* Small graphs of every kind of node, for tests that want some; NULL past the end. Each call builds anew, on `heap`. The graph may
   carry a sticky error when memory ran out. */
tn_graph *small_graph(tn_heap *heap, uint32_t index, const char **name);

/* --- ONNX files written by hand ----------------------------------------------------------------------------------------------- */

/* Appends a message field, a NodeProto of one output without attributes, a ValueInfoProto of f32 (dim < 0: the symbol "N"). */
void onnx_put_message(tn_text *out, uint32_t field, const tn_text *message);
void onnx_put_node(tn_text *graph, const char *op, uint32_t inputs, const char *const *input, const char *output);
void onnx_put_value(tn_text *graph, uint32_t field, const char *name, int rank, const int64_t *dims);
/* Runs the command with arguments (ended by NULL, the first is the subcommand), its output dropped: its exit status, -1 when it did not
   exit; *kb, the most memory that was resident, and *ms, how long it took. */
int command_run(const char *const *arguments, long *kb, double *ms);
/* Where big files may lie: the build folder, or /tmp. mkstemp's template of "<there>/<name>-XXXXXX". */
void scratch_template(const char *name, char *text, size_t size);

/* A model file: y = x[1, 1] + w, z = v[1, rows] * w (matrices), where w is f32[rows, cols], raw data of zeros inside the file, which is sparse. False: no space. */
bool onnx_write_big(const char *path, int64_t rows, int64_t cols);

#endif
