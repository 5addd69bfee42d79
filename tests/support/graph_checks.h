/* What must hold of every sound graph, for tests that build some anyway. */
#ifndef TN_TESTS_GRAPH_CHECKS_H
#define TN_TESTS_GRAPH_CHECKS_H

#include "ir/graph.h"

/* Fails the test unless the graph verifies, prints, parses back to an equal graph that prints the same text, and its clone and what
   its binary form reads as do. */
void check_graph(const tn_graph *graph);

#endif
