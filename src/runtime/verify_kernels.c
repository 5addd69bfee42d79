/* Checking the plan: each kernel, with the operands it is given in a run, against the nodes it stands for; then the outputs. What
   a kernel reads is what earlier instructions left there, so a kernel is judged by its own work alone. */
#include "runtime/verify.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "ops/ops.h"
#include "runtime/execute.h"

#define MOST_NODES 64

typedef struct watcher {
    const tn_plan *plan;
    const tn_verify_options *o;
    const tn_interp_options *interp;
    tn_verify_result *result;
    tn_heap *heap;
    tn_frame *frame;
    const tn_execute_watch *now;
    uint32_t *view_first, *view_next; /* chains of views by slot; UINT32_MAX ends */
    uint8_t *seen;                    /* by kernel: counted */

    /* the kernel at work */
    bool skip;
    tn_node node[MOST_NODES];
    uint32_t nodes;
    tn_value result_value;
    TN_VEC(tn_value) outer; /* read from outside of the nodes */
    TN_VEC(tn_object *) given;
} watcher;

static void forget(watcher *w) {
    for (uint32_t i = 0; i < w->given.len; i++)
        tn_object_destroy(w->given.data[i]);
    w->given.len = w->outer.len = 0;
}

static uint32_t find_view(const watcher *w, uint32_t slot, tn_value value) {
    uint32_t i = w->view_first[slot];
    while (i != UINT32_MAX && w->plan->view.data[i].value.id != value.id)
        i = w->view_next[i];
    return i;
}

static int by_order(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* The kernel's nodes in order. False: it stands for no whole nodes (copies, parts of concatenations). */
static bool take_nodes(watcher *w, const tn_kernel *k) {
    const tn_graph *g = w->plan->graph;
    uint64_t order[MOST_NODES][2];
    if (k->node_count > MOST_NODES || k->outputs != 1)
        return false;
    for (uint32_t i = 0; i < k->node_count; i++) {
        uint32_t id = w->plan->kernel_node.data[k->nodes + i];
        order[i][0] = g->node.data[id].order;
        order[i][1] = id;
        if (tn_node_region_count(g, (tn_node){id}))
            return false;
    }
    qsort(order, k->node_count, sizeof order[0], by_order);
    w->nodes = 0;
    for (uint32_t i = 0; i < k->node_count; i++)
        if (!i || order[i][1] != order[i - 1][1])
            w->node[w->nodes++].id = (uint32_t)order[i][1];
    for (uint32_t i = 0; i < w->nodes; i++)
        for (uint32_t j = 0; j < tn_node_output_count(g, w->node[i]); j++) {
            tn_value v = tn_node_output(g, w->node[i], j);
            uint32_t view =
                find_view(w, k->output[0].slot, v); /* the slot may be that of a concatenation of which it is a part */
            if (view != UINT32_MAX && w->plan->view.data[view].offset == k->output[0].offset) {
                w->result_value = v;
                return tn_node_op(g, w->node[i])->lowering != TN_LOWER_MOVE ||
                       tn_node_op(g, w->node[i])->code != TN_MOVE_CONCAT; /* that is written by several kernels */
            }
        }
    return false;
}

static bool made_inside(const watcher *w, tn_value v) {
    tn_node from = tn_value_producer(w->plan->graph, v);
    for (uint32_t i = 0; i < w->nodes; i++)
        if (w->node[i].id == from.id)
            return true;
    return false;
}

/* Copies of what the nodes read from outside, before the kernel runs. */
static tn_status take_operands(watcher *w, const tn_kernel *k) {
    const tn_graph *g = w->plan->graph;
    for (uint32_t i = 0; i < w->nodes; i++)
        for (uint32_t j = 0; j < tn_node_input_count(g, w->node[i]); j++) {
            tn_value v = tn_node_input(g, w->node[i], j);
            bool have = !v.id || made_inside(w, v);
            for (uint32_t n = 0; n < w->outer.len && !have; n++)
                have = w->outer.data[n].id == v.id;
            if (have)
                continue;
            tn_object *object = NULL;
            tn_tensor *constant = tn_value_constant(g, v);
            uint32_t view = UINT32_MAX;
            for (int n = 0; n < k->operands && view == UINT32_MAX; n++)
                view = find_view(w, k->operand[n].slot, v);
            if (constant)
                object = tn_object_retain(tn_tensor_object(constant));
            else if (view != UINT32_MAX && (object = w->now->view(w->now->frame, view)) &&
                     object->kind == TN_KIND_TENSOR) {
                tn_tensor *copy = tn_tensor_copy((tn_tensor *)object);
                tn_object_destroy(object);
                object = copy ? tn_tensor_object(copy) : NULL;
            } else if (view == UINT32_MAX) {
                w->skip = true; /* it is no longer there as a value: looked at through another */
                return TN_OK;
            }
            if (!object)
                return tn_error_status();
            if (!tn_vec_push(w->heap, &w->outer, v) || !tn_vec_push(w->heap, &w->given, object)) {
                tn_object_destroy(object);
                return tn_error_status();
            }
        }
    return TN_OK;
}

/* The nodes one after another on the reference. */
static tn_status run_nodes(void *ctx, const tn_interp_options *options, tn_object **out) {
    watcher *w = ctx;
    const tn_graph *g = w->plan->graph;
    uint32_t given = w->outer.len;
    tn_value *values = tn_alloc_array(w->heap, (size_t)given + w->nodes * 4u + 1, sizeof *values);
    tn_object **objects = tn_alloc_array(w->heap, (size_t)given + w->nodes * 4u + 1, sizeof *objects);
    tn_status status = values && objects ? TN_OK : tn_error_status();
    uint32_t n = given;
    out[0] = NULL;
    for (uint32_t i = 0; i < given && status == TN_OK; i++) {
        values[i] = w->outer.data[i];
        objects[i] = w->given.data[i];
    }
    for (uint32_t i = 0; i < w->nodes && status == TN_OK; i++) {
        uint32_t outputs = tn_node_output_count(g, w->node[i]);
        tn_object *results[4] = {NULL};
        if (outputs > 4)
            status = tn_fail(TN_ERR_INTERNAL, "a node of a kernel has %" PRIu32 " outputs", outputs);
        else
            status = tn_interp_run_node(g, options, w->node[i], w->now->env, n, values, objects, results);
        for (uint32_t j = 0; j < outputs && status == TN_OK; j++) {
            values[n] = tn_node_output(g, w->node[i], j);
            objects[n++] = results[j];
        }
    }
    for (uint32_t i = given; i < n && objects; i++) {
        if (status == TN_OK && values[i].id == w->result_value.id && !out[0])
            out[0] = objects[i];
        else
            tn_object_destroy(objects[i]);
    }
    tn_free(w->heap, values);
    tn_free(w->heap, objects);
    return status;
}

void tn_verify_describe(const tn_graph *g, tn_node node, char *text, size_t size) {
    char from[160] = "";
    const char *name = tn_node_name(g, node);
    if (tn_node_origin_count(g, node))
        tn_node_origin(g, node, 0, from, sizeof from);
    snprintf(text, size, "%s%s%.60s%s (node %" PRIu32 "%s%s)", tn_node_op_name(g, node), *name ? " '" : "", name,
             *name ? "'" : "", node.id, *from ? ", from " : "", from);
}

static void say(watcher *w, const tn_kernel *k, const char *what) {
    tn_verify_result *r = w->result;
    r->holds = false;
    r->stage = TN_VERIFY_KERNEL;
    snprintf(r->name, sizeof r->name, "%s", k->impl->name);
    char first[200], last[200];
    tn_verify_describe(w->plan->graph, w->node[0], first, sizeof first);
    tn_verify_describe(w->plan->graph, w->node[w->nodes - 1], last, sizeof last);
    snprintf(r->node, sizeof r->node, "%s%s%s", first, w->nodes > 1 ? " to " : "", w->nodes > 1 ? last : "");
    snprintf(r->what, sizeof r->what, "%s", what);
}

static bool all_exact(const watcher *w) {
    for (uint32_t i = 0; i < w->nodes; i++)
        if (!tn_node_has_trait(w->plan->graph, w->node[i], TN_EXACT | TN_VIEW))
            return false;
    return true;
}

static tn_status check_result(watcher *w, const tn_kernel *k) {
    uint32_t view = find_view(w, k->output[0].slot, w->result_value);
    tn_object *got = view == UINT32_MAX ? NULL : w->now->view(w->now->frame, view);
    if (view == UINT32_MAX) {
        w->skip = true;
        return TN_OK;
    }
    if (!got)
        return tn_error_status();
    tn_oracle oracle = {.run = run_nodes,
                        .ctx = w,
                        .options = *w->interp,
                        .count = 1,
                        .once = w->plan->graph,
                        .anywhere = true,
                        .winograd = w->o->level >= 2,
                        .seed = w->o->seed,
                        .tolerance = w->o->tolerance};
    tn_status status = tn_oracle_begin(&oracle);
    if (status != TN_OK && status != TN_ERR_MEMORY && status != TN_ERR_CANCELLED) {
        char text[1000];
        snprintf(text, sizeof text, "runs, but its nodes fail: %s", tn_error_message());
        say(w, k, text);
        status = TN_OK;
    } else if (status == TN_OK) {
        bool right;
        tn_difference d = {0};
        status = tn_oracle_judge(&oracle, 0, got, all_exact(w), &right, &d);
        if (status == TN_OK && !right)
            say(w, k, d.text);
    }
    tn_oracle_free(&oracle);
    tn_object_destroy(got);
    return status;
}

static tn_status watch(void *ctx, const tn_execute_watch *now) {
    watcher *w = ctx;
    const tn_kernel *k = &w->plan->kernel.data[now->kernel];
    w->now = now;
    if (!w->result->holds)
        return TN_OK;
    if (!now->after) {
        forget(w);
        w->skip = !take_nodes(w, k);
        return w->skip ? TN_OK : take_operands(w, k);
    }
    if (!w->skip)
        TN_TRY(check_result(w, k));
    w->result->kernel_runs += !w->skip;
    w->result->unchecked += w->skip && !w->seen[now->kernel];
    w->seen[now->kernel] = 1;
    return TN_OK;
}

/* --- the whole plan --------------------------------------------------------------------------------------------------------------------- */

typedef struct whole {
    const tn_graph *graph;
    tn_object *const *in; /* by input of the graph */
    tn_heap *heap;
} whole;

static tn_status run_graph(void *ctx, const tn_interp_options *options, tn_object **out) {
    const whole *w = ctx;
    uint32_t inputs = tn_graph_input_count(w->graph), outputs = tn_graph_output_count(w->graph), n = 0;
    tn_value *values = tn_alloc_array(w->heap, (size_t)inputs + outputs + 1, sizeof *values);
    tn_object **given = tn_alloc_array(w->heap, (size_t)inputs + 1, sizeof *given);
    tn_status status = values && given ? TN_OK : tn_error_status();
    for (uint32_t i = 0; i < inputs && status == TN_OK; i++)
        if (w->in[i]) {
            values[n] = tn_graph_input(w->graph, i);
            given[n++] = w->in[i];
        }
    for (uint32_t i = 0; i < outputs && status == TN_OK; i++)
        values[inputs + i] = tn_graph_output(w->graph, i);
    if (status == TN_OK)
        status = tn_interp_run(w->graph, options, n, values, given, outputs, values + inputs, out);
    tn_free(w->heap, values);
    tn_free(w->heap, given);
    return status;
}

static tn_status judge_outputs(const tn_plan *p, const tn_verify_options *o, const tn_interp_options *interp,
                               tn_object *const *in, tn_status ran, const char *error, tn_object *const *got,
                               tn_verify_result *r) {
    const tn_graph *g = p->graph;
    whole w = {g, in, p->heap};
    tn_oracle oracle = {.run = run_graph,
                        .ctx = &w,
                        .options = *interp,
                        .count = tn_graph_output_count(g),
                        .once = g,
                        .winograd = o->level >= 2,
                        .seed = o->seed,
                        .tolerance = o->tolerance};
    tn_status status = tn_oracle_begin(&oracle);
    if (status == TN_ERR_MEMORY || status == TN_ERR_CANCELLED) {
        tn_oracle_free(&oracle);
        return status;
    }
    if ((status == TN_OK) != (ran == TN_OK)) {
        r->holds = false;
        r->stage = TN_VERIFY_PLAN;
        snprintf(r->what, sizeof r->what, "%s: %s",
                 ran == TN_OK ? "runs, but the reference fails" : "fails, but the reference does not",
                 ran == TN_OK ? tn_error_message() : error);
    }
    for (uint32_t i = 0; status == TN_OK && r->holds && i < oracle.count; i++) {
        tn_difference d = {0};
        tn_status judged = tn_oracle_judge(&oracle, i, got[i], false, &r->holds, &d);
        if (judged != TN_OK) {
            tn_oracle_free(&oracle);
            return judged;
        }
        if (r->holds)
            continue;
        r->stage = TN_VERIFY_PLAN;
        snprintf(r->node, sizeof r->node, "output '%s'", tn_graph_output_name(g, i));
        snprintf(r->what, sizeof r->what, "%s", d.text);
    }
    tn_oracle_free(&oracle);
    return TN_OK;
}

static tn_status run_watched(watcher *w, tn_object *const *in, tn_object **out, tn_status *ran, char *error,
                             size_t size) {
    const tn_plan *p = w->plan;
    w->view_first = tn_alloc_array(w->heap, p->slot.len + 1u, sizeof(uint32_t));
    w->view_next = tn_alloc_array(w->heap, p->view.len + 1u, sizeof(uint32_t));
    w->seen = tn_alloc(w->heap, p->kernel.len + 1u);
    if (!w->view_first || !w->view_next || !w->seen)
        return tn_error_status();
    for (uint32_t i = 0; i < p->slot.len; i++)
        w->view_first[i] = UINT32_MAX;
    for (uint32_t i = 0; i < p->view.len; i++) {
        uint32_t slot = p->view.data[i].slot;
        w->view_next[i] = w->view_first[slot];
        w->view_first[slot] = i;
    }
    tn_execute_options o = {.heap = w->heap, .pool = w->interp->pool, .watch = watch, .watch_ctx = w};
    w->frame = tn_frame_create(p, w->heap); /* lives as long as what is seen of it */
    if (!w->frame)
        return tn_error_status();
    *ran = tn_frame_run(w->frame, &o, in, NULL, out);
    if (*ran != TN_OK)
        snprintf(error, size, "%s", tn_error_message());
    return *ran == TN_ERR_MEMORY || *ran == TN_ERR_CANCELLED ? *ran : TN_OK;
}

tn_status tn_verify_plan_run(const tn_plan *plan, const tn_verify_options *o, const tn_interp_options *interp,
                             const tn_verify_sample *sample, bool compare, bool *refused, tn_verify_result *r) {
    watcher w = {.plan = plan, .o = o, .interp = interp, .result = r, .heap = plan->heap};
    uint32_t outputs = tn_graph_output_count(plan->graph);
    tn_object **out = tn_alloc_array(plan->heap, outputs + 1u, sizeof *out);
    char error[1000] = "";
    tn_status ran = TN_OK,
              status = out ? run_watched(&w, sample->in, out, &ran, error, sizeof error) : tn_error_status();
    *refused |= tn_verify_is_refusal(ran);
    forget(&w);
    tn_frame_destroy(w.frame);
    tn_vec_free(w.heap, &w.outer);
    tn_vec_free(w.heap, &w.given);
    tn_free(w.heap, w.view_first);
    tn_free(w.heap, w.view_next);
    tn_free(w.heap, w.seen);
    if (status == TN_OK && r->holds && (compare || ran != TN_OK))
        status = judge_outputs(plan, o, interp, sample->in, ran, error, out, r);
    for (uint32_t i = 0; out && i < outputs; i++)
        tn_object_destroy(out[i]);
    tn_free(plan->heap, out);
    return status;
}
