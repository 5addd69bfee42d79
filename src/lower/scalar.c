/* Elementwise rows and reductions: steps of kernels. */
#include "lower/lowering.h"

bool tn_lowering_admits(tn_dtype dtype) {
    return (tn_scalar_class(dtype) & (TN_ADMIT_FLOAT | TN_ADMIT_INT | TN_ADMIT_BOOL)) != 0;
}

/* The step of a node, operands aside. False: no kernel computes it. */
static bool step_of(const tn_lowerer *l, tn_node node, tn_scalar_step *step) {
    const tn_graph *g = l->graph;
    const tn_op *op = tn_node_op(g, node);
    uint32_t inputs = tn_node_input_count(g, node);
    tn_dtype to = tn_value_dtype(g, tn_node_output(g, node, 0)),
             from = tn_value_dtype(g, tn_node_input(g, node, inputs - 1));
    if (!tn_lowering_admits(to) || !tn_lowering_admits(from))
        return false;
    *step = (tn_scalar_step){.op = op->code, .dtype = (uint8_t)to, .from = (uint8_t)from};
    switch ((tn_scalar_op)op->code) {
    case TN_SCALAR_SELECT: return true;
    case TN_SCALAR_CAST: step->flags = tn_attr_int(g, node, "saturate"); return true;
    case TN_SCALAR_IS_INF:
        step->flags = (tn_attr_int(g, node, "positive") ? 1 : 0) | (tn_attr_int(g, node, "negative") ? 2 : 0);
        return true;
    case TN_SCALAR_BITCAST: return false;
    default: return tn_scalar_run((tn_scalar_op)op->code, tn_scalar_domain((tn_scalar_op)op->code, from)) != NULL;
    }
}

/* Whether a node is a step: it is computed by kernels, and its inputs have its shape (where that is known only at run time, the row checks). */
static bool is_step(const tn_lowerer *l, tn_node node, tn_scalar_step *step) {
    tn_graph *g = l->graph;
    tn_value y = tn_node_output(g, node, 0);
    if (tn_node_op(g, node)->lowering != TN_LOWER_SCALAR || !tn_lowering_known(l, y) || !step_of(l, node, step))
        return false;
    for (uint32_t i = 0; i < tn_node_input_count(g, node); i++)
        for (int j = 0; j < tn_value_rank(g, y); j++)
            if (!tn_dim_equal(g, tn_value_dim(g, tn_node_input(g, node, i), j), tn_value_dim(g, y, j)))
                return false;
    return true;
}

/* --- values that are read more than once in an epilogue ------------------------------------------------------------------------------------ */

#define TOGETHER_NODES 16 /* between a value and what all of it comes together in */
#define TOGETHER_AHEAD 64 /* nodes of the region that are looked at */

bool tn_lowering_comes_together(const tn_lowerer *l, const tn_draft *d) {
    const tn_graph *g = l->graph;
    if (d->kernel.kind != TN_KERNEL_CONTRACT || tn_value_use_count(g, d->value) < 2 ||
        tn_lowering_is_output(l, d->value))
        return false;
    tn_node last = d->nodes[d->node_count - 1];
    tn_region region = tn_node_parent(g, last);
    tn_value inside[TOGETHER_NODES + 1] = {d->value};
    uint32_t left[TOGETHER_NODES + 1] = {tn_value_use_count(g, d->value)}, count = 1, more = 0;
    for (tn_use u = tn_value_first_use(g, d->value); u.node.id; u = tn_use_next(g, u))
        if (tn_node_parent(g, u.node).id != region.id)
            return false;
    int ahead = 0;
    for (tn_node n = tn_node_next(g, last); n.id && ahead < TOGETHER_AHEAD; n = tn_node_next(g, n), ahead++) {
        if (!l->needed[n.id])
            continue;
        bool reads = false;
        uint32_t outside = 0;
        for (uint32_t i = 0; i < tn_node_input_count(g, n); i++) {
            tn_value x = tn_node_input(g, n, i);
            uint32_t k = 0;
            while (k < count && inside[k].id != x.id)
                k++;
            reads |= k < count;
            outside += k == count;
            if (k < count)
                left[k]--;
        }
        if (tn_node_region_count(g, n)) /* all that is open ends before it */
            return false;
        if (!reads)
            continue;
        tn_scalar_step step;
        if (count > TOGETHER_NODES || !is_step(l, n, &step))
            return false;
        more += outside;
        inside[count] = tn_node_output(g, n, 0);
        left[count] = tn_value_use_count(g, inside[count]);
        uint32_t waiting = 0;
        for (uint32_t k = 0; k < count; k++)
            waiting += left[k] > 0;
        count++;
        if (!waiting) /* all has come together in the output of this node */
            return d->kernel.operands + more <= TN_FUSE_OPERANDS &&
                   (uint32_t)(d->kernel.steps + d->kernel.epilogue) + count + 4 < TN_FUSE_STEPS &&
                   d->node_count + count + 4 < TN_FUSE_STEPS;
        if (waiting >= TN_HELD_MOST || tn_lowering_is_output(l, inside[count - 1]) ||
            tn_value_use_count(g, inside[count - 1]) == 0)
            return false;
    }
    return false;
}

/* The register of a draft's value or of one that it holds, which has a reader less from now on. */
static uint16_t take_value(tn_lowerer *l, tn_draft *d, tn_value x) {
    for (uint32_t i = 0; i < d->held_count; i++) {
        if (d->held[i].id != x.id)
            continue;
        uint16_t result = d->held_result[i];
        if (!--d->held_left[i]) {
            l->draft_of[x.id] = NULL;
            d->held_count--;
            d->held[i] = d->held[d->held_count];
            d->held_result[i] = d->held_result[d->held_count];
            d->held_left[i] = d->held_left[d->held_count];
        }
        return result;
    }
    l->draft_of[x.id] = NULL;
    return d->result;
}

tn_status tn_lower_scalar(tn_lowerer *l, tn_node node) {
    tn_graph *g = l->graph;
    tn_value y = tn_node_output(g, node, 0);
    uint32_t inputs = tn_node_input_count(g, node);
    tn_scalar_step step;
    if (!is_step(l, node, &step))
        return TN_ERR_UNSUPPORTED;
    /* Grow the draft of an input that sums or reduces; else a new one that takes in the others. */
    tn_draft *d = NULL;
    uint16_t reg[3] = {0, 0, 0};
    uint32_t grown = UINT32_MAX;
    bool holds = false;
    for (uint32_t i = 0; i < inputs && !d; i++) {
        tn_draft *part = l->draft_of[tn_node_input(g, node, i).id];
        if (part && (part->kernel.kind != TN_KERNEL_STRIP) &&
            (part->held_count ||
             (part->kernel.epilogue + 4 < TN_FUSE_STEPS && part->kernel.operands + (int)inputs < TN_FUSE_OPERANDS &&
              part->node_count < TN_FUSE_STEPS))) {
            d = part;
            grown = i;
            holds = part->held_count > 0;
            reg[i] = take_value(l, part, tn_node_input(g, node, i));
        }
    }
    if (!d && !(d = tn_lowering_draft(l, y, node, TN_KERNEL_STRIP)))
        return TN_ERR_MEMORY;
    if (grown != UINT32_MAX)
        d->nodes[d->node_count++] = node;
    for (uint32_t i = 0; i < inputs; i++) {
        if (i == grown)
            continue;
        tn_value x = tn_node_input(g, node, i);
        tn_draft *part = l->draft_of[x.id];
        if (part == d) {
            reg[i] = take_value(l, d, x);
            continue;
        }
        /* room is kept for the inputs that follow; a draft that holds values has none but for their readers */
        if (part && !holds && d->kernel.operands + part->kernel.operands + (int)(inputs - i) <= TN_FUSE_OPERANDS &&
            (reg[i] = tn_lowering_merge(l, d, part)) != UINT16_MAX)
            continue;
        uint32_t place = tn_lowering_value(l, x);
        if (place == TN_NO_VIEW)
            return tn_error_status();
        reg[i] = d->kernel.operands;
        TN_TRY(tn_lowering_read(l, d, place));
    }
    step.a = reg[0];
    step.b = reg[1];
    step.c = reg[2];
    d->value = y;
    if ((d->result = tn_lowering_step(d, step)) == UINT16_MAX)
        return tn_fail(TN_ERR_INTERNAL, "lowering: a kernel has too many steps");
    return tn_lowering_close(l, d);
}

/* Accumulators: sums and products of floats are kept in f64, so that their error does not grow with the length. */
static tn_dtype accumulator_of(const tn_graph *g, tn_node node, tn_dtype dtype) {
    tn_dtype asked = (tn_dtype)tn_attr_int(g, node, "acc");
    if (tn_dtype_is_float(dtype))
        return TN_F64;
    return asked != TN_DTYPE_NONE ? asked : dtype;
}

tn_status tn_lower_reduce(tn_lowerer *l, tn_node node) {
    tn_graph *g = l->graph;
    tn_value x = tn_node_input(g, node, 0), y = tn_node_output(g, node, 0);
    tn_dtype dtype = tn_value_dtype(g, x);
    if (!tn_lowering_known(l, y) || !tn_lowering_admits(dtype) || tn_value_dtype(g, y) != dtype)
        return TN_ERR_UNSUPPORTED;
    uint32_t place = tn_lowering_value(l, x);
    tn_draft *d = place == TN_NO_VIEW ? NULL : tn_lowering_draft(l, y, node, TN_KERNEL_REDUCE);
    tn_access *a = d ? tn_lowering_operand(l, d) : NULL;
    if (!a)
        return tn_error_status();
    const tn_view p = l->plan->view.data[place];
    const int64_t *axes;
    uint32_t n = tn_attr_ints(g, node, "axes", &axes);
    bool keep = tn_attr_int(g, node, "keepdims") != 0;
    tn_kernel *k = &d->kernel;
    k->combine = tn_node_op(g, node)->code;
    k->accumulator = (uint8_t)accumulator_of(g, node, dtype);
    a->slot = p.slot;
    a->dtype = (uint8_t)dtype;
    a->offset = p.offset;
    int out = 0;
    for (int i = 0; i < p.rank; i++) {
        bool reduced = false;
        for (uint32_t j = 0; j < n; j++)
            reduced |= axes[j] == i || axes[j] + p.rank == i;
        if (reduced) {
            k->extent[k->outer + k->inner] = p.dim[i];
            a->stride[k->outer + k->inner++] = p.stride[i];
        } else
            a->stride[out] = p.stride[i];
        out += !reduced || keep;
    }
    d->result = TN_REG_REDUCED;
    return tn_lowering_close(l, d);
}
