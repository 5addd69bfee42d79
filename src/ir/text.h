/* The text form of a graph: canonical, complete, readable. docs/text.md describes the grammar. */
#ifndef TN_IR_TEXT_H
#define TN_IR_TEXT_H

#include "base/buffer.h"
#include "ir/graph.h"

#define TN_TEXT_VERSION 1
/* Constants of more elements are written as base64 of their bytes. */
#define TN_TEXT_LITERAL 64

/* A graph with the rows of `ops` from its text form. NULL with an error that names line and column. */
tn_graph *tn_graph_parse_with(tn_heap *heap, const tn_op_table *ops, const char *text, size_t length);
/* Gives the row of an operator that is not among `ops`, made in the graph's arena; *op NULL: there is none. */
typedef tn_status tn_unknown_op(tn_graph *graph, const char *name, size_t length, const tn_op **op);
/* The same; `unknown_op` NULL: operators that are not among `ops` are refused. */
tn_graph *tn_graph_parse_any(tn_heap *heap, const tn_op_table *ops, tn_unknown_op *unknown_op, const char *text,
                             size_t length);
/* Structural equality: the same regions of the same operators with the same inputs, types, attributes (in any order), names,
   roles, origins, symbols and metadata. Ids do not matter. False, with the difference as the thread's error, when not. */
bool tn_graph_equal(const tn_graph *a, const tn_graph *b);

/* Pieces of the text form: "f32[N, 4]", "f32[*]", "seq(f32[])", "?"; one attribute's value; a tensor "i64[2] [1, 2]". */
void tn_type_print(const tn_graph *graph, tn_type type, tn_text *out);
void tn_attr_print(const tn_graph *graph, const tn_attr *attr, tn_text *out);
void tn_tensor_print(const tn_tensor *tensor, tn_text *out);
/* One numeric element as a literal that reads back to the same bits. */
void tn_element_print(tn_dtype dtype, const void *data, int64_t index, tn_text *out);
/* Reads such a literal (all of it) into element `index` of `data`; false when it is none of that dtype. */
bool tn_element_parse(tn_dtype dtype, const char *text, size_t length, void *data, int64_t index);
/* A name as it stands, or `mark` and the name quoted where it is no identifier or a word of the grammar. */
void tn_word_print(const char *text, size_t length, const char *mark, tn_text *out);
/* Characters of identifiers; `first`: the first one. Names of operators and attributes may hold dots after the first. */
bool tn_text_is_word(char c, bool first);

#endif
