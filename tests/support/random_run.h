/* Running random programs: the compiled plan against the reference, and making failing ones small. */
#ifndef TESTS_SUPPORT_RANDOM_RUN_H
#define TESTS_SUPPORT_RANDOM_RUN_H

#include "ir/graph.h"

/* Runs the graph on the reference and compiled: -O0 to -O2, every instruction set the CPU has, 1 to 4 threads (`thorough`: all
   counts, else one of them for each). False: why in `text`. */
bool random_holds(const tn_graph *graph, tn_object *const *in, uint64_t seed, bool thorough, char *text, size_t size);
/* Makes a graph that does not hold small, and prints it with its inputs on stderr. */
void random_shrink(const tn_graph *graph, tn_object *const *in, uint64_t seed);
/* Seeds [first, first + count); one failing program in full, others by a line. Answers the number that do not hold. `seconds`: stop
   after so long (0: never); *ran receives how many were run. */
uint64_t random_run(uint64_t first, uint64_t count, bool thorough, double seconds, uint64_t *ran);

#endif
