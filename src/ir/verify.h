/* The verifier, between its files. Each rule is stated in docs/verifier.md; the numbers never change their meaning. */
#ifndef TN_IR_VERIFY_H
#define TN_IR_VERIFY_H

#include "ir/graph_internal.h"

enum {
    TN_RULE_IDS = 1,
    TN_RULE_LISTS = 2,
    TN_RULE_REGIONS = 3,
    TN_RULE_RETURN = 4,
    TN_RULE_ARITY = 5,
    TN_RULE_ATTRIBUTES = 6,
    TN_RULE_VALUES = 7,
    TN_RULE_USES = 8,
    TN_RULE_DEAD = 9,
    TN_RULE_ORDER = 10,
    TN_RULE_CLOSED = 11,
    TN_RULE_FUNCTIONS = 12,
    TN_RULE_TYPES = 13,
    TN_RULE_SYMBOLS = 14,
    TN_RULE_NAMES = 15,
    TN_RULE_CONTROL = 16,
    TN_RULE_CONSTANTS = 17,
    TN_RULE_DEFAULTS = 18
};

#define TN_SERIAL_ENDED ((uint32_t)1 << 31) /* in a serial: the value's region has ended */

typedef struct tn_verifier {
    const tn_graph *g;
    uint8_t *region_seen;   /* by region id: 1 reached */
    uint8_t *node_seen;     /* by node id: 1 reached in its region's list */
    uint32_t *serial;       /* by value id: when it became visible, from 1; 0: not yet */
    uint32_t *symbol_depth; /* by symbol: how many definitions of it are in scope */
    uint8_t *dim_good;      /* by dimension: 1 when all its symbols are known to be in scope */
    uint32_t serials;       /* handed out */
    bool out_of_memory;
    tn_u32_vec symbols; /* defined in scope, to be undone */
    tn_u32_vec dims;    /* good, to be undone */
    tn_u32_vec values;  /* visible, to be ended */
    tn_arena scratch;   /* of infer */
} tn_verifier;

/* "rule 7: ..." with the node as `where` (0: none). Returns TN_ERR_MODEL. */
tn_status tn_rule_broken(const tn_verifier *v, int rule, uint32_t node, const char *format, ...) TN_PRINTF(4, 5);

/* Verifies a graph that was read and that only its reader knows yet, and lets infer work on the graph itself: types stand as they are,
   and what infer knows of the elements of values becomes known. What is stated must hold whatever the data are (rules 13 and 14): no run finds out that it was false. */
tn_status tn_graph_verify_settle(tn_graph *graph);

tn_status tn_verify_storage(tn_verifier *v);   /* rules 1, 2, 3, 7, 8, 9: what everything else relies on */
tn_status tn_verify_nodes(tn_verifier *v);     /* rules 4, 5, 6, 17 */
tn_status tn_verify_functions(tn_verifier *v); /* rule 12 */
tn_status tn_verify_scopes(tn_verifier *v);    /* rules 10, 11, 14, 16 */

#endif
