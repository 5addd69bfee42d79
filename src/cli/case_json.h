/* How a test folder is to be judged: its case.json, or the defaults. */
#ifndef TN_CLI_CASE_JSON_H
#define TN_CLI_CASE_JSON_H

#include "cli/json.h"

typedef struct tn_case {
    tn_arena arena;
    bool present; /* there is a case.json */
    bool expect_error;
    double rtol, atol;
    double max_ms, max_rss_mb;                  /* 0: no limit */
    const tn_json *shape_only, *error_mentions; /* arrays, or NULL */
} tn_case;

/* Reads folder/`name` (case.json, or a data.json, which has rtol and atol alone). A file that is not there leaves the defaults of
   the ONNX suite. Free in any case. */
tn_status tn_case_read(const char *folder, const char *name, tn_case *out);
void tn_case_free(tn_case *c);
bool tn_case_shape_only(const tn_case *c, uint32_t output);
/* The first of error_mentions that the message lacks, or NULL. */
const char *tn_case_not_mentioned(const tn_case *c, const char *message);

#endif
