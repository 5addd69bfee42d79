/* Nodes of ONNX as text, with what is fed and what they must give: the form of tests/onnx/versions.txt, written by
   tests/nightly/meaning/versions.py.

     case NAME[:DOMAIN] VERSION OPSET       in NAME TYPE TENSOR          const NAME TENSOR
     node OP[:DOMAIN] INPUTS OUTPUTS ATTRIBUTE...                        graph NAME ... end (a body: in, const, node, out)
     out NAME VALUE [~ABSOLUTE,RELATIVE]    form NAME TENSOR (its element type and shape alone)

   TENSOR: f32[2,2],1,2,3,4; strings with %xx for what is no letter or digit, "%" an empty one. VALUE: a tensor, (VALUE;VALUE), none.
   TYPE: f32[2,N,?], f32, seq(...), opt(...), -. ATTRIBUTE: name:K=..., K of f i s F I S T (tensor), g (body), P (type), Z (sparse). */
#ifndef TESTS_SUPPORT_NODE_TEXT_H
#define TESTS_SUPPORT_NODE_TEXT_H

#include <tenon/tensor.h>

#include "base/buffer.h"

enum { NODE_TEXT_MOST = 24 };

typedef struct node_text_value {
    char name[32];
    const char *type;  /* `in`: its text; of a constant NULL */
    tn_object *object; /* `out`: NULL is an empty optional */
    bool form;
    double absolute, relative;
} node_text_value;

typedef struct node_text {
    char op[64], domain[64];
    int version, opset, line;
    tn_text graph;                                           /* a GraphProto, but for its inputs and initializers */
    node_text_value in[NODE_TEXT_MOST], out[NODE_TEXT_MOST]; /* constants are among `in` */
    uint32_t ins, outs;
} node_text;

typedef struct node_text_reader {
    const char *at;
    int line;
} node_text_reader;

/* The next case; false at the end. Fails the test at what it cannot read. */
bool node_text_next(node_text_reader *reader, node_text *row);
void node_text_free(node_text *row);
/* Bytes of the model, whose inputs have the element types that they have now. */
tn_text node_text_model(const node_text *row);
/* Whether `got` is the value; else `why` says what differs. */
bool node_text_is(const node_text_value *want, tn_object *got, char *why, size_t size);

#endif
