/* Inferred shapes against what a run shows: every value that a graph computes is looked at while the interpreter runs it, and compared
   with its inferred type by means of its own. A number must be the size; an expression of the inputs' symbols must have the size as its
   value; a symbol that data decide takes the size of the value that defines it, and holds for every other. The same for known
   contents. */
#ifndef TESTS_SUPPORT_SHAPE_CHECKS_H
#define TESTS_SUPPORT_SHAPE_CHECKS_H

#include "ir/graph.h"

typedef struct shape_tally {
    uint64_t values;      /* looked at, inputs too */
    uint64_t numbers;     /* dimensions that are numbers, and right */
    uint64_t expressions; /* expressions that have the right value */
    uint64_t contents;    /* known contents of integer values, and right */
    uint64_t data;        /* sizes that data decide: they define their symbol */
    uint64_t undecided;   /* expressions whose symbols nothing seen defines */
    uint64_t unknown;     /* values of unknown type or rank */
    uint32_t wrong;
    char first[1000]; /* the first that is wrong, in words */
} shape_tally;

/* Runs all outputs of the graph from in[] fed with objects, and adds what is seen to the tally. A false shape counts there; the status
   is the run's. */
tn_status shapes_run(const tn_graph *graph, uint32_t n, const tn_value *in, tn_object *const *objects,
                     shape_tally *tally);

/* What inference does not know of the values of the main region and its bodies. */
typedef struct shape_gaps {
    uint32_t values;
    uint32_t ranks;   /* values whose type or rank is not known */
    uint32_t dims;    /* dimensions that hold a symbol that no input defines */
    uint32_t symbols; /* such symbols, once each */
    uint32_t late;    /* nodes that are expanded when they run */
} shape_gaps;
/* `tell`: prints the nodes that such ranks and symbols come from. */
shape_gaps shapes_unknown(const tn_graph *graph, bool tell);

#endif
