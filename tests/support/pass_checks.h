/* For tests of passes: random inputs that fit a graph, and whether two graphs compute the same bits. */
#ifndef TESTS_SUPPORT_PASS_CHECKS_H
#define TESTS_SUPPORT_PASS_CHECKS_H

#include "passes/pass.h"

#define PASS_MAX 16 /* inputs and outputs of graphs in these tests */

/* A context with the interpreter to fold with and the verifier between passes. */
tn_pass_context pass_context(int level, const char *passes);
/* Runs the listed passes, nothing else. Fails the test with the message unless TN_OK. */
void pass_run(tn_graph *graph, int level, const char *passes);
/* Fills in[] with random objects (tensors; edge values among them) that fit the graph's inputs; sizes of symbols from `seed`. */
void pass_inputs(const tn_graph *graph, uint64_t seed, tn_object **in);
/* Runs all outputs of a graph. in[i] fit its inputs by name of `like`. */
tn_status pass_outputs(const tn_graph *graph, const tn_graph *like, tn_object *const *in, tn_object **out);
/* Same kind, dtype, shape and bits; NaN equals NaN. */
bool pass_same(const tn_object *a, const tn_object *b);
/* Both graphs give the same for `rounds` random inputs of `after` (`before` may have more, with defaults); says which output is not, and the seed. */
bool pass_equal(const tn_graph *before, const tn_graph *after, int rounds);
void pass_release(uint32_t count, tn_object **objects);

#endif
