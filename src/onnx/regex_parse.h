/* Patterns as trees: what regex_parse.c makes and regex.c compiles. */
#ifndef TN_ONNX_REGEX_PARSE_H
#define TN_ONNX_REGEX_PARSE_H

#include "base/arena.h"

/* A set of characters: ordered, disjoint ranges. */
typedef struct tn_char_range {
    uint32_t low, high;
} tn_char_range;
typedef struct tn_char_set {
    const tn_char_range *ranges;
    uint32_t count;
    bool fold;    /* letters of any case that have the same fold */
    bool negated; /* all others */
} tn_char_set;
bool tn_char_set_has(const tn_char_set *set, uint32_t code);

typedef enum tn_regex_kind {
    TN_REGEX_SET,
    TN_REGEX_ASSERT,
    TN_REGEX_SEQUENCE,
    TN_REGEX_CHOICE,
    TN_REGEX_REPEAT
} tn_regex_kind;
typedef enum tn_regex_place {
    TN_REGEX_TEXT_BEGIN,
    TN_REGEX_TEXT_END,
    TN_REGEX_LINE_BEGIN,
    TN_REGEX_LINE_END,
    TN_REGEX_WORD,
    TN_REGEX_NO_WORD
} tn_regex_place;

typedef struct tn_regex_tree {
    tn_regex_kind kind;
    tn_regex_place place; /* of ASSERT */
    tn_char_set set;
    uint32_t count;                          /* of parts */
    const struct tn_regex_tree *const *part; /* SEQUENCE and CHOICE; REPEAT has one */
    int32_t least, most;                     /* of REPEAT; most -1: any number */
    int32_t repeats;                         /* how often its innermost parts are repeated by number, at most */
} tn_regex_tree;

/* The tree, in the arena; NULL with the error set as tn_regex_compile says. */
const tn_regex_tree *tn_regex_parse(tn_arena *arena, const char *pattern, size_t length);

/* Characters of a Unicode general category ("L", "Lu", "Any"): appended in order by add(ctx, low, high); false: no such category
   or add answered false. */
bool tn_char_category(const char *name, size_t length, bool (*add)(void *ctx, uint32_t low, uint32_t high), void *ctx,
                      bool *known);

#endif
