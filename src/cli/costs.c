/* What a run computes and moves, by operator, for `info`. */
#include "cli/costs.h"

#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "lower/cost.h"
#include "runtime/session.h"

/* The node that a kernel is called after: its contraction or reduction, else its last. */
static const char *op_of(const tn_plan *p, const tn_kernel *k) {
    for (uint32_t i = 0; i < k->node_count; i++) {
        tn_node n = {p->kernel_node.data[k->nodes + i]};
        if (tn_node_has_trait(p->graph, n, TN_CONTRACTION | TN_REDUCTION))
            return tn_node_op_name(p->graph, n);
    }
    return k->node_count ? tn_node_op_name(p->graph, (tn_node){p->kernel_node.data[k->nodes + k->node_count - 1]})
                         : "copy";
}

typedef struct adding {
    tn_cli_costs *costs;
    const tn_plan *plan;
} adding;

static void add(void *ctx, const tn_kernel *k, const tn_kernel_cost *cost) {
    adding *a = ctx;
    tn_cli_costs *c = a->costs;
    const char *op = op_of(a->plan, k);
    uint32_t i = 0;
    while (i < c->count && strcmp(c->op[i].name, op) != 0)
        i++;
    if (i == TN_CLI_COST_OPS)
        i--; /* there are fewer kinds that lower to kernels */
    if (i == c->count)
        c->op[c->count++].name = op;
    c->op[i].kernels++;
    c->op[i].operations += cost->operations;
    c->op[i].bytes += cost->bytes;
    c->operations += cost->operations;
    c->bytes += cost->bytes;
}

static int by_cost(const void *a, const void *b) {
    const tn_cli_cost *x = a, *y = b;
    return x->operations != y->operations ? (x->operations < y->operations ? 1 : -1) : x->bytes < y->bytes ? 1 : -1;
}

tn_status tn_cli_costs_find(const tn_session *s, tn_cli_costs *c) {
    const tn_plan *p = s->whole.compiled->plan;
    *c = (tn_cli_costs){0};
    if (!p)
        return TN_OK;
    tn_dim_env env;
    const tn_graph *g = p->graph;
    if (!tn_dim_env_init(&env, NULL, &g->dims))
        return tn_error_status();
    for (uint32_t i = 0; i < tn_graph_input_count(g); i++) {
        tn_value v = tn_graph_input(g, i);
        for (int d = 0; d < tn_value_rank(g, v); d++) {
            int64_t n;
            c->free = c->free || !tn_dim_is_const(g, tn_value_dim(g, v, d), &n);
            tn_dim_env_match(&g->dims, &env, tn_value_dim(g, v, d), 1);
        }
    }
    adding a = {c, p};
    tn_status status = tn_plan_visit_costs(p, &env, add, &a, &c->unknown);
    tn_dim_env_free(&env);
    qsort(c->op, c->count, sizeof *c->op, by_cost);
    c->host = p->host.len;
    return status;
}

static void put(tn_text *out, double x) {
    char number[TN_NUMBER_TEXT];
    tn_format_f64_digits(x, 4, number);
    tn_text_add(out, number);
}

void tn_cli_costs_text(const tn_cli_costs *c, tn_text *out) {
    if (!c->count)
        return;
    tn_text_add(out, "a run computes ");
    put(out, 1e-6 * c->operations);
    tn_text_add(out, " MFLOP and moves ");
    put(out, 1e-6 * c->bytes);
    tn_text_printf(out, " MB%s%s:\n", c->free ? ", with free dimensions 1 (--dim binds them)" : "",
                   c->unknown || c->host ? ", what data decides and host operators not counted" : "");
    for (uint32_t i = 0; i < c->count && i < 12; i++) {
        tn_text_printf(out, "  %-14s ", c->op[i].name);
        put(out, 1e-6 * c->op[i].operations);
        tn_text_add(out, " MFLOP, ");
        put(out, 1e-6 * c->op[i].bytes);
        tn_text_printf(out, " MB in %u kernel%s\n", c->op[i].kernels, c->op[i].kernels == 1 ? "" : "s");
    }
}

void tn_cli_costs_json(const tn_cli_costs *c, tn_text *out) {
    tn_text_add(out, ",\n \"flops\": ");
    tn_text_f64(out, c->operations);
    tn_text_add(out, ", \"bytes_moved\": ");
    tn_text_f64(out, c->bytes);
    tn_text_printf(out, ", \"free_dimensions_are_1\": %s, \"costs\": [", c->free ? "true" : "false");
    for (uint32_t i = 0; i < c->count; i++) {
        tn_text_printf(out, "%s{\"op\": \"%s\", \"kernels\": %u, \"flops\": ", i ? ",\n  " : "", c->op[i].name,
                       c->op[i].kernels);
        tn_text_f64(out, c->op[i].operations);
        tn_text_add(out, ", \"bytes\": ");
        tn_text_f64(out, c->op[i].bytes);
        tn_text_add(out, "}");
    }
    tn_text_add(out, "]");
}
