/* Asking an expansion why a node does not take its inputs: the nodes in question may fail, others are passed over. */
#include "onnx/expander.h"

/* Whether ex->explain names an origin of the node; only its first line, with `first`. */
static bool is_named(const tn_expander *ex, tn_node node, bool first) {
    char line[300] = "from ";
    for (uint32_t i = 0; i < tn_node_origin_count(ex->graph, node); i++) {
        tn_node_origin(ex->graph, node, i, line + 5, sizeof line - 5);
        size_t length = strlen(line);
        for (const char *at = strstr(ex->explain, "from "); at && (at = strstr(at, line)); at += length) {
            bool whole = (at == ex->explain || at[-1] == '\n') && (at[length] == '\n' || !at[length]);
            if (whole && (!first || at == strstr(ex->explain, "from ")))
                return true;
        }
    }
    return false;
}

bool tn_explain_begins(const tn_expander *ex, tn_node node) {
    return ex->explain && is_named(ex, node, true);
}

bool tn_explain_passes_over(tn_expander *ex, tn_node node, tn_status status) {
    if (!ex->explain || (status != TN_ERR_MODEL && status != TN_ERR_USAGE && status != TN_ERR_UNSUPPORTED) ||
        ex->inside || is_named(ex, node, false))
        return false;
    ex->graph->stuck = false;
    tn_error_clear();
    return true;
}

tn_status tn_onnx_explain(tn_graph *graph, const char *nodes) {
    return tn_expander_run(graph, 0, false, nodes);
}
