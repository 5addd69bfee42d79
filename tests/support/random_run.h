/* Running random programs: the compiled plan against the reference, and making failing ones small. */
#ifndef TESTS_SUPPORT_RANDOM_RUN_H
#define TESTS_SUPPORT_RANDOM_RUN_H

#include "ir/graph.h"

#define RANDOM_OBJECTS 64 /* inputs, and outputs, of one graph at most */

typedef enum random_kind {
    RANDOM_HOLDS,
    RANDOM_NO_MODEL,   /* not a good graph */
    RANDOM_PLAN_FAILS, /* where the reference runs */
    RANDOM_PLAN_RUNS,  /* where the reference fails */
    RANDOM_DIFFERS,    /* an output, from the reference's */
    RANDOM_OTHER_BITS  /* on another number of threads */
} random_kind;

typedef struct random_failure {
    random_kind kind;
    tn_status status; /* of RANDOM_NO_MODEL and RANDOM_PLAN_FAILS, with the first line of the error; else TN_OK */
    char what[1024];
    char text[5000]; /* how it was run, and what came of it */
    bool refused;    /* the reference fails */
} random_failure;

typedef struct random_options {
    uint64_t seed;
    bool
        thorough; /* all thread counts and instruction sets, and the verifier after every pass; else one of them for each level */
    bool
        unread; /* a plan above -O0 may run where the reference fails: passes saw that no result depends on what does */
    /* For tests of what comes after a failure: changes what a plan of `graph` gave, or says that it failed. NULL: nothing does. */
    tn_status (*fault)(void *ctx, const tn_graph *graph, tn_object **out);
    void *ctx;
} random_options;

/* Runs the graph on the reference and compiled: -O0 to -O2, every instruction set the CPU has, 1 to 4 threads. False: why in
   `failure`. */
bool random_holds(const tn_graph *graph, tn_object *const *in, const random_options *options, random_failure *failure);
/* A smaller graph that fails in the same way as this one that does not hold, its inputs in small_in[RANDOM_OBJECTS], how in
   `failure`; one that holds is copied. Destroy all of them. */
tn_graph *random_shrink(const tn_graph *graph, tn_object *const *in, const random_options *options,
                        tn_object **small_in, random_failure *failure);
/* The same, on stderr. */
void random_print_small(const tn_graph *graph, tn_object *const *in, const random_options *options);
/* Seeds [first, first + count); one failing program in full, others by a line. Answers the number that do not hold. `seconds`: stop
   after so long (0: never); *ran receives how many were run. */
uint64_t random_run(uint64_t first, uint64_t count, bool thorough, double seconds, uint64_t *ran);

#endif
