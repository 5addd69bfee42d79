/* Nodes: adding, linking into regions, use lists, removing. */
#include "ir/graph_internal.h"

#define ORDER_GAP ((uint64_t)1 << 24)

static tn_status return_infer(tn_infer *c) {
    (void)c;
    return TN_OK;
}

const tn_op tn_op_return = {
    .name = "return",
    .dialect = TN_DIALECT_PRIMITIVE,
    .max_inputs = -1,
    .traits = TN_TERMINATOR,
    .inputs = "results...",
    .doc = "Ends a region; its inputs are the region's results.",
    .infer = return_infer,
    .lowering = TN_LOWER_NOTHING,
};

/* --- use lists ------------------------------------------------------------------------------------------------------------- */

void tn_operand_link(tn_graph *g, uint32_t operand, uint32_t value) {
    tn_operand *o = &g->operand.data[operand];
    o->value = value;
    o->previous = o->next = 0;
    if (!value)
        return;
    tn_value_rec *v = &g->value.data[value];
    o->next = v->first_use;
    if (v->first_use)
        g->operand.data[v->first_use].previous = operand;
    v->first_use = operand;
    v->use_count++;
}

void tn_operand_unlink(tn_graph *g, uint32_t operand) {
    tn_operand *o = &g->operand.data[operand];
    if (!o->value)
        return;
    tn_value_rec *v = &g->value.data[o->value];
    if (o->previous)
        g->operand.data[o->previous].next = o->next;
    else
        v->first_use = o->next;
    if (o->next)
        g->operand.data[o->next].previous = o->previous;
    v->use_count--;
    o->value = o->next = o->previous = 0;
}

/* Gives a node a new operand range. */
static tn_status node_set_operands(tn_graph *g, uint32_t node, uint32_t count, const tn_value *values) {
    if (!tn_vec_reserve(g->heap, &g->operand, count))
        return TN_ERR_MEMORY;
    tn_node_rec *n = &g->node.data[node];
    for (uint32_t i = 0; i < n->input_count; i++)
        tn_operand_unlink(g, n->inputs + i);
    n->inputs = g->operand.len;
    n->input_count = count;
    for (uint32_t i = 0; i < count; i++) {
        g->operand.data[g->operand.len++] = (tn_operand){.node = node};
        tn_operand_link(g, n->inputs + i, values[i].id);
    }
    return TN_OK;
}

/* --- places in a region --------------------------------------------------------------------------------------------------------- */

static void region_renumber(tn_graph *g, uint32_t region) {
    uint64_t order = ORDER_GAP;
    for (uint32_t n = g->region.data[region].first; n; n = g->node.data[n].next, order += ORDER_GAP)
        g->node.data[n].order = order;
}

void tn_node_link(tn_graph *g, uint32_t node, uint32_t region, uint32_t before) {
    tn_region_rec *r = &g->region.data[region];
    tn_node_rec *n = &g->node.data[node];
    if (!before && r->last && g->node.data[r->last].op == &tn_op_return && n->op != &tn_op_return)
        before = r->last;
    n->region = region;
    n->next = before;
    n->previous = before ? g->node.data[before].previous : r->last;
    if (n->previous)
        g->node.data[n->previous].next = node;
    else
        r->first = node;
    if (before)
        g->node.data[before].previous = node;
    else
        r->last = node;
    uint64_t low = n->previous ? g->node.data[n->previous].order : 0;
    if (!before || g->node.data[before].op == &tn_op_return) {
        /* the common case: growing at the end; the return moves along */
        n->order = low + ORDER_GAP;
        if (before)
            g->node.data[before].order = n->order + ORDER_GAP;
        return;
    }
    uint64_t high = g->node.data[before].order;
    n->order = low + (high - low) / 2;
    if (n->order == low)
        region_renumber(g, region);
}

void tn_node_unlink(tn_graph *g, uint32_t node) {
    tn_node_rec *n = &g->node.data[node];
    tn_region_rec *r = &g->region.data[n->region];
    if (n->previous)
        g->node.data[n->previous].next = n->next;
    else
        r->first = n->next;
    if (n->next)
        g->node.data[n->next].previous = n->previous;
    else
        r->last = n->previous;
    n->next = n->previous = 0;
}

tn_status tn_node_move_before(tn_graph *g, tn_node node, tn_node before) {
    TN_TRY(tn_graph_changeable(g));
    if (!tn_node_is_alive(g, node) || !tn_node_is_alive(g, before) || node.id == before.id)
        return tn_fail(TN_ERR_USAGE, "moving a node: it or its target is dead, or they are the same");
    tn_node_unlink(g, node.id);
    tn_node_link(g, node.id, g->node.data[before.id].region, before.id);
    /* an insertion point at the moved node stays with it */
    return TN_OK;
}

bool tn_value_visible(const tn_graph *g, tn_value value, tn_node node) {
    if (!tn_value_is_alive(g, value))
        return false;
    const tn_value_rec *v = &g->value.data[value.id];
    uint32_t home = v->producer ? g->node.data[v->producer].region : v->region;
    for (uint32_t at = node.id; at;) {
        const tn_node_rec *n = &g->node.data[at];
        if (n->region == home)
            return !v->producer || g->node.data[v->producer].order < n->order;
        at = g->region.data[n->region].owner;
        if (at && g->node.data[at].op && !(g->node.data[at].op->traits & TN_CONTROL) &&
            g->node.data[at].op->dialect != TN_DIALECT_ONNX)
            return false; /* closed region */
    }
    return false;
}

/* Whether a value may be read by a node put at the insertion point. Regions that have no owner yet may read anything. */
static bool visible_at(const tn_graph *g, tn_value value, uint32_t region, uint32_t before) {
    const tn_value_rec *v = &g->value.data[value.id];
    uint32_t home = v->producer ? g->node.data[v->producer].region : v->region;
    while (region) {
        if (region == home)
            return !before || !v->producer || g->node.data[v->producer].order < g->node.data[before].order;
        uint32_t owner = g->region.data[region].owner;
        if (!owner)
            return region != g->main_region;
        before = owner;
        region = g->node.data[owner].region;
    }
    return false;
}

/* --- regions ---------------------------------------------------------------------------------------------------------------------- */

bool tn_region_is_alive(const tn_graph *g, tn_region r) {
    return r.id && r.id < g->region.len && g->region.data[r.id].alive;
}

tn_region tn_region_create(tn_graph *g) {
    if (g->region.len > 1 && tn_graph_changeable(g) != TN_OK)
        return (tn_region){0};
    if (!tn_vec_push(g->heap, &g->region, (tn_region_rec){.alive = true})) {
        tn_graph_stick(g);
        return (tn_region){0};
    }
    return (tn_region){g->region.len - 1};
}

tn_value tn_region_add_arg(tn_graph *g, tn_region region, tn_type type, const char *name) {
    if (tn_graph_changeable(g) != TN_OK)
        return (tn_value){0};
    if (!tn_region_is_alive(g, region)) {
        tn_fail(TN_ERR_USAGE, "an argument for a region that is null or dead");
        goto stick;
    }
    uint32_t id = name ? tn_strings_add(&g->strings, name, strlen(name)) : 0;
    tn_region_rec *r = &g->region.data[region.id];
    if (id == UINT32_MAX || !tn_vec_reserve(g->heap, &r->args, 1))
        goto stick;
    tn_value_rec v = {
        .type = type.id, .name = id, .region = region.id, .index = r->args.len, .contents_count = -1, .alive = true};
    if (!tn_vec_push(g->heap, &g->value, v))
        goto stick;
    uint32_t value = g->value.len - 1;
    r->args.data[r->args.len++] = value;
    if (tn_graph_note_symbols(g, value) != TN_OK)
        goto stick;
    return (tn_value){value};
stick:
    tn_graph_stick(g);
    return (tn_value){0};
}

tn_status tn_region_remove_arg(tn_graph *g, tn_region region, uint32_t index) {
    TN_TRY(tn_graph_changeable(g));
    if (!tn_region_is_alive(g, region) || index >= g->region.data[region.id].args.len)
        return tn_fail(TN_ERR_USAGE, "removing an argument that does not exist");
    tn_u32_vec *args = &g->region.data[region.id].args;
    uint32_t value = args->data[index];
    if (g->value.data[value].use_count)
        return tn_fail(TN_ERR_USAGE, "removing argument %u of a region: it is still used", index);
    for (uint32_t i = 0; i < g->input_default.len; i++)
        if (g->input_default.data[i].value == value) {
            tn_tensor_destroy(g->input_default.data[i].tensor);
            g->input_default.data[i--] = g->input_default.data[--g->input_default.len];
        }
    g->value.data[value].alive = false;
    args->len--;
    for (uint32_t i = index; i < args->len; i++) {
        args->data[i] = args->data[i + 1];
        g->value.data[args->data[i]].index = i;
    }
    return TN_OK;
}

tn_status tn_node_release_regions(tn_graph *g, tn_node node) {
    TN_TRY(tn_graph_changeable(g));
    if (!tn_node_is_alive(g, node))
        return tn_fail(TN_ERR_USAGE, "taking the regions of a node that is null or dead");
    tn_node_rec *n = &g->node.data[node.id];
    for (uint32_t i = 0; i < n->region_count; i++)
        g->region.data[g->region_list.data[n->regions + i]].owner = 0;
    n->region_count = 0;
    return TN_OK;
}

tn_status tn_region_return(tn_graph *g, tn_region region, uint32_t count, const tn_value *values) {
    if (g->main_region)
        TN_TRY(tn_graph_changeable(g));
    if (!tn_region_is_alive(g, region))
        return tn_fail(TN_ERR_USAGE, "return from a region that is null or dead");
    for (uint32_t i = 0; i < count; i++)
        if (!tn_value_is_alive(g, values[i])) {
            tn_fail(TN_ERR_USAGE, "result %u of a region is null or dead", i);
            tn_graph_stick(g);
            return TN_ERR_USAGE;
        }
    uint32_t last = g->region.data[region.id].last;
    if (!last || g->node.data[last].op != &tn_op_return) {
        if (!tn_vec_push(g->heap, &g->node, ((tn_node_rec){.op = &tn_op_return}))) {
            tn_graph_stick(g);
            return TN_ERR_MEMORY;
        }
        last = g->node.len - 1;
        tn_node_link(g, last, region.id, 0);
    }
    tn_status status = node_set_operands(g, last, count, values);
    if (status != TN_OK)
        tn_graph_stick(g);
    return status;
}

tn_status tn_graph_add_output(tn_graph *g, tn_value value, const char *name) {
    TN_TRY(tn_graph_changeable(g));
    if (!tn_value_is_alive(g, value)) {
        tn_fail(TN_ERR_USAGE, "output '%s' is null or dead", name ? name : "");
        tn_graph_stick(g);
        return TN_ERR_USAGE;
    }
    uint32_t count = tn_graph_output_count(g);
    tn_value *all = tn_alloc_array(g->heap, count + 1, sizeof *all);
    uint32_t id = tn_strings_add(&g->strings, name ? name : "", name ? strlen(name) : 0);
    tn_status status = TN_ERR_MEMORY;
    if (all && id != UINT32_MAX && tn_vec_reserve(g->heap, &g->output_name, 1)) {
        for (uint32_t i = 0; i < count; i++)
            all[i] = tn_graph_output(g, i);
        all[count] = value;
        status = tn_region_return(g, (tn_region){g->main_region}, count + 1, all);
        if (status == TN_OK)
            g->output_name.data[g->output_name.len++] = id;
    }
    tn_free(g->heap, all);
    if (status != TN_OK)
        tn_graph_stick(g);
    return status;
}

/* --- adding ------------------------------------------------------------------------------------------------------------------------- */

static tn_status check_arity(const tn_op *op, const tn_node_desc *d, uint32_t outputs) {
    if ((int)d->input_count < op->min_inputs || (op->max_inputs >= 0 && (int)d->input_count > op->max_inputs)) {
        bool few = (int)d->input_count < op->min_inputs;
        tn_fail(TN_ERR_MODEL, "%s has %u inputs, but takes %s%d", op->name, d->input_count,
                op->max_inputs == op->min_inputs ? ""
                : few                            ? "at least "
                                                 : "at most ",
                few ? op->min_inputs : op->max_inputs);
        if (op->inputs)
            tn_fail_hint("%s(%s)", op->name, op->inputs);
        return TN_ERR_MODEL;
    }
    if ((int)outputs < op->min_outputs || (op->max_outputs >= 0 && (int)outputs > op->max_outputs))
        return tn_fail(TN_ERR_MODEL, "%s has %u outputs, but gives %s%d", op->name, outputs,
                       op->max_outputs == op->min_outputs ? ""
                       : (int)outputs < op->min_outputs   ? "at least "
                                                          : "at most ",
                       (int)outputs < op->min_outputs ? op->min_outputs : op->max_outputs);
    if (op->regions >= 0 && (int)d->region_count != op->regions)
        return tn_fail(TN_ERR_MODEL, "%s has %u regions, but takes %d", op->name, d->region_count, op->regions);
    return TN_OK;
}

static tn_status check_inputs(const tn_graph *g, const tn_op *op, const tn_node_desc *d) {
    for (uint32_t i = 0; i < d->input_count; i++) {
        tn_value v = d->inputs[i];
        if (!v.id) {
            if (!(op->traits & TN_OPTIONAL_INPUTS) && op->dialect != TN_DIALECT_ONNX)
                return tn_fail(TN_ERR_USAGE, "input %u of %s is the null value", i, op->name);
            continue;
        }
        if (!tn_value_is_alive(g, v))
            return tn_fail(TN_ERR_USAGE, "input %u of %s is dead or of another graph", i, op->name);
        if (!visible_at(g, v, g->at_region, g->at_node))
            return tn_fail(TN_ERR_USAGE,
                           "input %u of %s is not defined before this node (or lies in a region it cannot see)", i,
                           op->name);
    }
    for (uint32_t i = 0; i < d->region_count; i++)
        if (!tn_region_is_alive(g, d->regions[i]) || g->region.data[d->regions[i].id].owner ||
            d->regions[i].id == g->main_region)
            return tn_fail(TN_ERR_USAGE, "region %u of %s is null, dead or owned already", i, op->name);
    return TN_OK;
}

/* Output values, operands, regions, attributes of a node whose record is the last one. */
static tn_status node_fill(tn_graph *g, uint32_t id, const tn_node_desc *d, uint32_t outputs) {
    uint32_t name = d->name ? tn_strings_add(&g->strings, d->name, strlen(d->name)) : 0;
    if (name == UINT32_MAX)
        return TN_ERR_MEMORY;
    tn_attr *attrs = NULL;
    if (d->attr_count && !(attrs = tn_attrs_copy(g, d->attr_count, d->attrs)))
        return tn_error_status();
    if (!tn_vec_reserve(g->heap, &g->value, outputs) || !tn_vec_reserve(g->heap, &g->region_list, d->region_count))
        return TN_ERR_MEMORY;
    TN_TRY(node_set_operands(g, id, d->input_count, d->inputs));
    tn_node_rec *n = &g->node.data[id];
    n->name = name;
    n->attrs = attrs;
    n->attr_count = d->attr_count;
    n->outputs = g->value.len;
    n->output_count = outputs;
    for (uint32_t i = 0; i < outputs; i++)
        g->value.data[g->value.len++] = (tn_value_rec){.producer = id, .index = i, .contents_count = -1, .alive = true};
    n->regions = g->region_list.len;
    n->region_count = d->region_count;
    for (uint32_t i = 0; i < d->region_count; i++) {
        g->region_list.data[g->region_list.len++] = d->regions[i].id;
        g->region.data[d->regions[i].id].owner = id;
    }
    return TN_OK;
}

tn_node tn_graph_add_node(tn_graph *g, const tn_node_desc *d) {
    return tn_graph_add_node_typed(g, d, NULL);
}

tn_node tn_graph_add_node_typed(tn_graph *g, const tn_node_desc *d, const tn_type *types) {
    if (tn_graph_changeable(g) != TN_OK)
        return (tn_node){0};
    uint32_t id = 0;
    const tn_op *op = d->op;
    if (!op) {
        tn_fail(TN_ERR_USAGE, "a node without an operator");
        goto stick;
    }
    uint32_t outputs = d->output_count ? d->output_count : (uint32_t)op->min_outputs;
    if (check_arity(op, d, outputs) != TN_OK || tn_attrs_check(op, d->attr_count, d->attrs, op->name) != TN_OK ||
        check_inputs(g, op, d) != TN_OK)
        goto stick;
    tn_node_rec rec = {.op = op, .location = g->at_location, .role = g->at_role};
    if (!tn_vec_push(g->heap, &g->node, rec))
        goto stick;
    id = g->node.len - 1;
    tn_node_link(g, id, g->at_region, g->at_node);
    if (node_fill(g, id, d, outputs) != TN_OK)
        goto stick;
    for (uint32_t i = 0; types && i < outputs; i++) {
        uint32_t value = g->node.data[id].outputs + i;
        g->value.data[value].type = types[i].id;
        if (tn_graph_note_symbols(g, value) != TN_OK)
            goto stick;
    }
    if (!types && tn_node_reinfer(g, (tn_node){id}) != TN_OK)
        goto stick;
    return (tn_node){id};
stick:
    if (id) {
        tn_error_record error;
        tn_error_save(&error);
        for (uint32_t i = 0; i < d->region_count; i++)
            g->region.data[d->regions[i].id].owner = 0; /* still the caller's */
        g->node.data[id].region_count = 0;
        tn_node_kill(g, id);
        tn_error_restore(&error);
    }
    tn_graph_stick(g);
    return (tn_node){0};
}

tn_value tn_graph_add(tn_graph *g, const char *op, uint32_t inputs, const tn_value *input, uint32_t attrs,
                      const tn_attr *attr) {
    if (tn_graph_changeable(g) != TN_OK)
        return (tn_value){0};
    const tn_op *row = tn_op_find(g->ops, op, strlen(op));
    if (!row) {
        tn_fail(TN_ERR_UNSUPPORTED, "not supported: operator '%s'", op);
        tn_graph_stick(g);
        return (tn_value){0};
    }
    tn_node n = tn_graph_add_node(
        g, &(tn_node_desc){.op = row, .input_count = inputs, .inputs = input, .attr_count = attrs, .attrs = attr});
    return n.id ? tn_node_output(g, n, 0) : (tn_value){0};
}

tn_value tn_graph_constant(tn_graph *g, tn_tensor *tensor) {
    if (tn_graph_changeable(g) != TN_OK)
        return (tn_value){0};
    if (!tensor) {
        if (tn_error_status() == TN_OK)
            tn_fail(TN_ERR_USAGE, "a constant without a tensor");
        tn_graph_stick(g);
        return (tn_value){0};
    }
    tn_attr value = TN_A_TENSOR("value", tensor);
    return tn_graph_add(g, "constant", 0, NULL, 1, &value);
}

/* --- changing ----------------------------------------------------------------------------------------------------------------------- */

tn_status tn_node_set_input(tn_graph *g, tn_node node, uint32_t index, tn_value value) {
    TN_TRY(tn_graph_changeable(g));
    if (!tn_node_is_alive(g, node) || index >= g->node.data[node.id].input_count)
        return tn_fail(TN_ERR_USAGE, "setting input %u of a node that is dead or has no such input", index);
    if (value.id && !tn_value_is_alive(g, value))
        return tn_fail(TN_ERR_USAGE, "setting input %u of a node to a dead value", index);
    if (value.id && !tn_value_visible(g, value, node)) {
        tn_fail(TN_ERR_MODEL, "input %u of %s would not be defined before it (a cycle, or a region it cannot see)",
                index, tn_node_op_name(g, node));
        tn_fail_at_node(g, node);
        return TN_ERR_MODEL;
    }
    uint32_t operand = g->node.data[node.id].inputs + index;
    tn_operand_unlink(g, operand);
    tn_operand_link(g, operand, value.id);
    return TN_OK;
}

tn_status tn_value_replace_uses(tn_graph *g, tn_value from, tn_value to) {
    TN_TRY(tn_graph_changeable(g));
    if (!tn_value_is_alive(g, from) || !tn_value_is_alive(g, to))
        return tn_fail(TN_ERR_USAGE, "replacing uses: a value is null or dead");
    if (from.id == to.id)
        return TN_OK;
    if (!tn_type_compatible(g, tn_value_type(g, from), tn_value_type(g, to))) {
        char a[160], b[160];
        return tn_fail(TN_ERR_MODEL, "replacing %s by %s: types differ", tn_value_describe(g, from, a, sizeof a),
                       tn_value_describe(g, to, b, sizeof b));
    }
    for (uint32_t o; (o = g->value.data[from.id].first_use) != 0;) {
        tn_operand_unlink(g, o);
        tn_operand_link(g, o, to.id);
    }
    return TN_OK;
}

void tn_node_kill(tn_graph *g, uint32_t id) {
    tn_node_rec *n = &g->node.data[id];
    if (!n->op)
        return;
    for (uint32_t i = 0; i < n->region_count; i++) {
        uint32_t r = g->region_list.data[n->regions + i];
        for (uint32_t inner = g->region.data[r].last; inner;) {
            uint32_t previous = g->node.data[inner].previous;
            tn_node_kill(g, inner);
            inner = previous;
        }
        for (uint32_t a = 0; a < g->region.data[r].args.len; a++)
            g->value.data[g->region.data[r].args.data[a]].alive = false;
        g->region.data[r].alive = false;
    }
    if (g->at_node == id)
        g->at_node = n->next;
    for (uint32_t i = 0; i < n->input_count; i++)
        tn_operand_unlink(g, n->inputs + i);
    for (uint32_t i = 0; i < n->output_count; i++)
        g->value.data[n->outputs + i].alive = false;
    tn_node_unlink(g, id);
    n->op = NULL;
    n->input_count = 0;
}

tn_status tn_node_remove(tn_graph *g, tn_node node) {
    TN_TRY(tn_graph_changeable(g));
    if (!tn_node_is_alive(g, node))
        return tn_fail(TN_ERR_USAGE, "removing a node that is null or dead");
    const tn_node_rec *n = &g->node.data[node.id];
    if (n->op == &tn_op_return)
        return tn_fail(TN_ERR_USAGE, "a region's return cannot be removed");
    for (uint32_t i = 0; i < n->output_count; i++)
        if (g->value.data[n->outputs + i].use_count) {
            tn_fail(TN_ERR_USAGE, "removing %s: its output %u is still used", n->op->name, i);
            tn_fail_at_node(g, node);
            return TN_ERR_USAGE;
        }
    tn_node_kill(g, node.id);
    return TN_OK;
}

tn_status tn_node_add_control(tn_graph *g, tn_node node, tn_node before) {
    TN_TRY(tn_graph_changeable(g));
    if (!tn_node_is_alive(g, node) || !tn_node_is_alive(g, before))
        return tn_fail(TN_ERR_USAGE, "control input: a node is null or dead");
    if (g->node.data[node.id].region != g->node.data[before.id].region ||
        g->node.data[before.id].order >= g->node.data[node.id].order)
        return tn_fail(TN_ERR_MODEL,
                       "control input: the earlier node must stand before the later one in the same region");
    tn_node_rec *n = &g->node.data[node.id];
    uint32_t count = n->control_count;
    if (!tn_vec_reserve(g->heap, &g->control_list, count + 1))
        return TN_ERR_MEMORY;
    uint32_t first = g->control_list.len;
    for (uint32_t i = 0; i < count; i++)
        g->control_list.data[g->control_list.len++] = g->control_list.data[n->control + i];
    g->control_list.data[g->control_list.len++] = before.id;
    n->control = first;
    n->control_count = count + 1;
    return TN_OK;
}
