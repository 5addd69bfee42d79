/* Reading JSON: files of inputs, case.json, literals of the command line. */
#ifndef TN_CLI_JSON_H
#define TN_CLI_JSON_H

#include "base/arena.h"

typedef enum tn_json_kind {
    TN_JSON_NULL,
    TN_JSON_BOOL,
    TN_JSON_NUMBER,
    TN_JSON_STRING,
    TN_JSON_ARRAY,
    TN_JSON_OBJECT
} tn_json_kind;

typedef struct tn_json {
    tn_json_kind kind;
    bool boolean;
    const char *text; /* NUMBER: as written (not NUL-terminated); STRING: decoded, NUL-terminated, may hold NULs */
    size_t length;
    size_t count;                 /* of items */
    struct tn_json *items, *next; /* first item of an ARRAY or OBJECT; next item of its parent */
    const char *key;              /* of an OBJECT's item, NUL-terminated */
} tn_json;

/* The document in `bytes`, in the arena; numbers and strings may point into `bytes`. Beyond the standard: NaN, Infinity and
   "inf" as numbers, with a sign. Nested at most 64 deep. NULL with the error set (line and column). */
const tn_json *tn_json_parse(tn_arena *arena, const char *bytes, size_t size);
const tn_json *tn_json_get(const tn_json *object, const char *key); /* NULL: none, or not an object */
/* The value of a NUMBER that is finite; false otherwise. */
bool tn_json_number(const tn_json *json, double *value);

#endif
