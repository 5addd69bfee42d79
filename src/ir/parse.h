/* The parser of the text form, between its files: reading words, and pieces of the grammar. */
#ifndef TN_IR_PARSE_H
#define TN_IR_PARSE_H

#include "ir/text.h"

typedef struct tn_parser {
    const char *text;
    size_t length, at;
    tn_graph *g;
    tn_unknown_op *unknown_op;
    tn_map unknown;              /* string id of an operator that `unknown_op` made -> its row */
    tn_arena scratch;            /* decoded strings and lists; lives as long as the parser */
    tn_map values;               /* %number -> value id; 0: out of scope */
    tn_map labels;               /* !number -> node id */
    tn_i64_vec scope;            /* numbers of values, in the order of their definition */
    TN_VEC(tn_tensor *) tensors; /* made by parsing, released with the parser */
    uint32_t depth;              /* of regions */
} tn_parser;

/* A list that grows in the scratch arena. */
typedef struct tn_parse_list {
    void *data;
    uint32_t len, cap;
} tn_parse_list;
bool tn_parse_push(tn_parser *p, tn_parse_list *list, const void *item, size_t size);

/* Every function that reads answers false with the error set; the error names line and column. */
bool tn_parse_expected(tn_parser *p, const char *what); /* always false: "expected WHAT, found ..." */
bool tn_parse_fail(tn_parser *p, size_t at, const char *format, ...) TN_PRINTF(3, 4); /* always false */
bool tn_parse_failed_at(tn_parser *p, size_t at); /* always false: adds the place to the current error */
#ifdef __clang_analyzer__                         /* it sees one file at a time */
#define tn_parse_expected(...) ((tn_parse_expected)(__VA_ARGS__), false)
#define tn_parse_fail(...) ((tn_parse_fail)(__VA_ARGS__), false)
#define tn_parse_failed_at(...) ((tn_parse_failed_at)(__VA_ARGS__), false)
#endif
void tn_parse_skip(tn_parser *p);           /* white space and # comments */
bool tn_parse_accept(tn_parser *p, char c); /* skips, then takes `c` if it is there; no error */
bool tn_parse_expect(tn_parser *p, char c);
bool tn_parse_accept_word(tn_parser *p, const char *word);            /* no error */
bool tn_parse_word(tn_parser *p, const char *what, tn_string *out);   /* identifier or quoted */
bool tn_parse_string(tn_parser *p, const char *what, tn_string *out); /* quoted; NUL follows its bytes */
bool tn_parse_name(tn_parser *p, const char *what, const char **out); /* quoted, without NULs */
bool tn_parse_peek_string(tn_parser *p);
/* An integer after `mark` (0: none), which must be there. */
bool tn_parse_u64_text(tn_parser *p, const char *what, uint64_t *out);
bool tn_parse_i64_text(tn_parser *p, const char *what, int64_t *out);
/* The characters of a number, or of true, false, inf, nan, bits(0x...); empty when there are none. */
tn_string tn_parse_number_token(tn_parser *p);

bool tn_parse_dim(tn_parser *p, tn_dim *out);
bool tn_parse_dims(tn_parser *p, tn_parse_list *dims); /* "[N, 4]", of tn_dim */
bool tn_parse_dtype(tn_parser *p, tn_dtype *out);
bool tn_parse_type(tn_parser *p, tn_type *out);
bool tn_parse_tensor(tn_parser *p, tn_tensor **out); /* borrowed from the parser */
bool tn_parse_attr(tn_parser *p, tn_attr *out);      /* the value: everything but `key` */

#endif
