/* Runs that are measured: they take memory as any other, but kernels compute nothing. */
#include "base/error.h"
#include "ops/ops.h"
#include "runtime/frame.h"

bool tn_frame_reads_garbage(const tn_frame *f, const tn_host_call *h) {
    const tn_plan *p = f->plan;
    if (tn_node_has_trait(p->graph, h->node, TN_SHAPE_ONLY))
        return false;
    for (uint32_t i = 0; i < h->input_count + h->outer_count; i++) {
        uint32_t view = i < h->input_count ? p->view_list.data[h->inputs + i]
                                           : p->view_list.data[h->outer + 2 * (i - h->input_count) + 1];
        if (view != UINT32_MAX && f->garbage[p->view.data[view].slot])
            return true;
    }
    return false;
}

/* Whether a node ends soon whatever its data: no loop until a condition, no call. */
static bool is_bounded(const tn_graph *g, tn_node node) {
    if (tn_node_op(g, node)->code == TN_FLOW_WHILE || tn_node_has_trait(g, node, TN_CALL))
        return false;
    for (uint32_t r = 0; r < tn_node_region_count(g, node); r++)
        for (tn_node n = tn_region_first(g, tn_node_region(g, node, r)); n.id; n = tn_node_next(g, n))
            if (!is_bounded(g, n))
                return false;
    return true;
}

bool tn_frame_may_run(const tn_frame *f, const tn_host_call *h) {
    return is_bounded(f->plan->graph, h->node) || !tn_frame_reads_garbage(f, h);
}

tn_status tn_frame_settle_host(tn_frame *f, const tn_host_call *h, tn_object **out, tn_status status) {
    const tn_plan *p = f->plan;
    const tn_graph *g = p->graph;
    if (status == TN_ERR_MEMORY || status == TN_ERR_CANCELLED)
        return status;
    f->uncounted |= status != TN_OK; /* it refuses such inputs */
    for (uint32_t i = 0; i < h->output_count; i++) {
        uint32_t index = p->slot_list.data[h->outputs + i];
        const tn_slot *s = &p->slot.data[index];
        tn_value v = tn_node_output(g, h->node, i);
        int64_t dim;
        f->garbage[index] = 1;
        if (!tn_value_is_wanted(g, v))
            continue;
        bool open = tn_value_rank(g, v) < 0 || s->dtype == TN_DTYPE_NONE || s->dtype == TN_STRING;
        for (int axis = 0; axis < tn_value_rank(g, v); axis++)
            open |= !tn_dim_eval(&g->dims, &f->env, tn_value_dim(g, v, axis), &dim);
        if (!open && !out[i])
            TN_TRY(tn_frame_prepare_output(f, index, &out[i]));
        if (open || !out[i])
            return tn_fail(TN_ERR_LIMIT, "the memory of what follows is decided by data");
    }
    return TN_OK;
}

bool tn_frame_computes(const tn_frame *f, uint32_t first, uint32_t count) {
    enum { SMALL = 4096 };
    const tn_plan *p = f->plan;
    for (uint32_t i = first; i < first + count; i++) {
        const tn_kernel *k = &p->kernel.data[i];
        for (int j = 0; j < k->operands; j++)
            if (f->garbage[k->operand[j].slot] || k->packed)
                return false;
        for (int j = 0; j < k->outputs; j++) {
            const tn_slot *s = &p->slot.data[k->output[j].slot];
            if (s->kind != TN_SLOT_ARENA || f->size[s->bytes] > SMALL || tn_dtype_is_float((tn_dtype)s->dtype) ||
                tn_dtype_is_complex((tn_dtype)s->dtype))
                return false;
        }
    }
    return true;
}

void tn_frame_note_garbage(tn_frame *f, uint32_t first, uint32_t count) {
    for (uint32_t i = first; i < first + count; i++)
        for (int j = 0; j < f->plan->kernel.data[i].outputs; j++)
            f->garbage[f->plan->kernel.data[i].output[j].slot] = 1;
}
