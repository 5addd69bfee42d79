/* The cases of each family of rows, for tests/ops/test_edges.c. */
#ifndef TESTS_SUPPORT_EDGES_H
#define TESTS_SUPPORT_EDGES_H

#include "support/op_harness.h"

void edges_elementwise(op_harness *h, const tn_op *op); /* unary, binary, compare */
void edges_select_cast(op_harness *h, const tn_op *op);

#endif
