/* What a run of a session computes and moves, by operator. */
#ifndef TN_CLI_COSTS_H
#define TN_CLI_COSTS_H

#include <tenon/session.h>

#include "base/buffer.h"

typedef struct tn_cli_cost {
    const char *name; /* of the operator that a kernel is called after; lives as long as the session */
    uint32_t kernels;
    double operations, bytes;
} tn_cli_cost;

enum { TN_CLI_COST_OPS = 160 };
typedef struct tn_cli_costs {
    tn_cli_cost op[TN_CLI_COST_OPS]; /* the dearest first */
    uint32_t count, unknown, host;   /* kernels of open sizes; host operators */
    double operations, bytes;
    bool free; /* some dimensions of inputs are free: they count as 1 */
} tn_cli_costs;

/* Nothing for the reference back end. */
tn_status tn_cli_costs_find(const tn_session *session, tn_cli_costs *costs);
void tn_cli_costs_text(const tn_cli_costs *costs, tn_text *out);
/* Members of an object, after others. */
void tn_cli_costs_json(const tn_cli_costs *costs, tn_text *out);

#endif
