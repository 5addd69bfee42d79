/* What the parts of one run took: kept, listed by operator, written as a trace. */
#ifndef TN_CLI_PROFILE_H
#define TN_CLI_PROFILE_H

#include <tenon/session.h>

#include "base/buffer.h"
#include "base/vec.h"

typedef struct tn_cli_part {
    char *name, *operators, *origin;
    uint32_t kernels;
    double start, seconds, operations, bytes;
} tn_cli_part;

/* All zero: empty. */
typedef struct tn_cli_profile {
    TN_VEC(tn_cli_part) part; /* in the order of the run */
    double operations, bytes; /* of all */
    bool failed;
} tn_cli_profile;

/* For tn_run_options.profile, `user` the profile. */
void tn_cli_profile_add(void *user, const tn_profile_event *event);
/* TN_ERR_MEMORY if a part could not be kept. */
tn_status tn_cli_profile_end(tn_cli_profile *profile);
void tn_cli_profile_free(tn_cli_profile *profile);

/* By what ran for which operators, longest first: as lines, as a JSON array. */
void tn_cli_profile_text(const tn_cli_profile *profile, tn_text *out);
void tn_cli_profile_json(const tn_cli_profile *profile, tn_text *out);
/* Writes Chrome's trace format (chrome://tracing, Perfetto): one event for each part, naming the model's nodes. */
tn_status tn_cli_profile_write(const tn_cli_profile *profile, const char *path, const char *model);

#endif
