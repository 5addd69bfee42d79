/* The verifier's rules about storage: ids, lists, ownership of regions, values, uses. Later rules rely on them. */
#include "ir/verify.h"

/* --- rule 1: every id that is stored names something ------------------------------------------------------------------------------ */

static bool in_range(uint32_t first, uint32_t count, uint32_t length) {
    return first <= length && count <= length - first;
}

static tn_status check_types(const tn_verifier *v) {
    const tn_graph *g = v->g;
    for (uint32_t i = 1; i < g->type.len; i++) {
        const tn_type_rec *t = &g->type.data[i];
        if (t->kind > TN_KIND_MAP || t->dtype >= TN_DTYPE_COUNT || t->rank < -1 || t->rank > TN_MAX_RANK ||
            t->element >= g->type.len || (t->rank > 0 && !in_range(t->dims, (uint32_t)t->rank, g->dim_list.len)))
            return tn_rule_broken(v, TN_RULE_IDS, 0, "type %u is malformed", i);
        for (int k = 0; k < t->rank; k++) {
            uint32_t dim = g->dim_list.data[t->dims + (uint32_t)k].id;
            if (dim == 0 || dim >= g->dims.expr.len)
                return tn_rule_broken(v, TN_RULE_IDS, 0, "dimension %d of type %u is not of this graph", k, i);
        }
    }
    return TN_OK;
}

static tn_status check_node_ids(const tn_verifier *v, uint32_t id) {
    const tn_graph *g = v->g;
    const tn_node_rec *n = &g->node.data[id];
    const char *wrong = NULL;
    if (!in_range(n->inputs, n->input_count, g->operand.len))
        wrong = "inputs";
    else if (!in_range(n->outputs, n->output_count, g->value.len))
        wrong = "outputs";
    else if (!in_range(n->regions, n->region_count, g->region_list.len))
        wrong = "regions";
    else if (!in_range(n->control, n->control_count, g->control_list.len))
        wrong = "control inputs";
    else if (n->region == 0 || n->region >= g->region.len)
        wrong = "region";
    else if (n->next >= g->node.len || n->previous >= g->node.len)
        wrong = "neighbours";
    else if (n->name >= g->strings.text.len || n->location >= g->location.len || n->role > TN_ROLE_DEBUG ||
             (n->attr_count && !n->attrs))
        wrong = "name, location, role or attributes";
    for (uint32_t i = 0; !wrong && i < n->input_count; i++)
        if (g->operand.data[n->inputs + i].value >= g->value.len)
            wrong = "inputs";
    for (uint32_t i = 0; !wrong && i < n->region_count; i++)
        if (g->region_list.data[n->regions + i] == 0 || g->region_list.data[n->regions + i] >= g->region.len)
            wrong = "regions";
    for (uint32_t i = 0; !wrong && i < n->control_count; i++)
        if (g->control_list.data[n->control + i] == 0 || g->control_list.data[n->control + i] >= g->node.len)
            wrong = "control inputs";
    if (wrong) /* describing the node could read what is not there */
        return tn_rule_broken(v, TN_RULE_IDS, 0, "node %u (%s): its %s name nothing of this graph", id, n->op->name,
                              wrong);
    return TN_OK;
}

static tn_status check_ids(const tn_verifier *v) {
    const tn_graph *g = v->g;
    TN_TRY(check_types(v));
    for (uint32_t i = 1; i < g->location.len; i++) {
        const tn_location_set *set = &g->location.data[i];
        if (!in_range(set->first, set->count, g->origin_list.len))
            return tn_rule_broken(v, TN_RULE_IDS, 0, "location %u is malformed", i);
        for (uint32_t k = 0; k < set->count; k++)
            if (g->origin_list.data[set->first + k] >= g->origin.len)
                return tn_rule_broken(v, TN_RULE_IDS, 0, "location %u is malformed", i);
    }
    for (uint32_t i = 1; i < g->region.len; i++) {
        const tn_region_rec *r = &g->region.data[i];
        bool good = r->owner < g->node.len && r->first < g->node.len && r->last < g->node.len;
        for (uint32_t k = 0; r->alive && good && k < r->args.len; k++)
            good = r->args.data[k] != 0 && r->args.data[k] < g->value.len;
        if (r->alive && !good)
            return tn_rule_broken(v, TN_RULE_IDS, 0,
                                  "region %u: its owner, nodes or arguments name nothing of this graph", i);
    }
    for (uint32_t i = 1; i < g->value.len; i++) {
        const tn_value_rec *value = &g->value.data[i];
        if (value->alive &&
            (value->type >= g->type.len || value->name >= g->strings.text.len || value->producer >= g->node.len ||
             value->region >= g->region.len || value->first_use >= g->operand.len ||
             (value->contents_count > 0 &&
              !in_range(value->contents, (uint32_t)value->contents_count, g->dim_list.len))))
            return tn_rule_broken(v, TN_RULE_IDS, 0,
                                  "value %u: its type, name, producer or uses name nothing of this graph", i);
    }
    for (uint32_t i = 1; i < g->node.len; i++)
        if (g->node.data[i].op)
            TN_TRY(check_node_ids(v, i));
    if (g->main_region == 0 || g->main_region >= g->region.len)
        return tn_rule_broken(v, TN_RULE_IDS, 0, "there is no main region");
    for (uint32_t i = 0; i < g->function.len; i++)
        if (g->function.data[i].region == 0 || g->function.data[i].region >= g->region.len ||
            g->function.data[i].name >= g->strings.text.len)
            return tn_rule_broken(v, TN_RULE_IDS, 0, "function %u: its name or region is none of this graph", i);
    for (uint32_t i = 0; i < g->output_name.len; i++)
        if (g->output_name.data[i] >= g->strings.text.len)
            return tn_rule_broken(v, TN_RULE_IDS, 0, "the name of output %u is none of this graph", i);
    return TN_OK;
}

/* --- rules 2 and 3: lists of nodes, ownership of regions ---------------------------------------------------------------------------- */

/* *owners: whether one of the nodes has regions. */
static tn_status check_list(tn_verifier *v, uint32_t region, bool *owners) {
    const tn_graph *g = v->g;
    const tn_region_rec *r = &g->region.data[region];
    uint32_t previous = 0;
    uint64_t order = 0;
    for (uint32_t id = r->first; id; id = g->node.data[id].next) {
        const tn_node_rec *n = &g->node.data[id];
        if (!n->op)
            return tn_rule_broken(v, TN_RULE_LISTS, 0, "a removed node (%u) stands in the list of region %u", id,
                                  region);
        if (v->node_seen[id])
            return tn_rule_broken(v, TN_RULE_LISTS, id, "it stands twice in the lists of nodes");
        v->node_seen[id] = 1;
        if (n->region != region)
            return tn_rule_broken(v, TN_RULE_LISTS, id, "it stands in region %u, but names region %u", region,
                                  n->region);
        if (n->previous != previous)
            return tn_rule_broken(v, TN_RULE_LISTS, id, "its neighbours do not agree");
        if (n->order <= order)
            return tn_rule_broken(v, TN_RULE_LISTS, id, "its order number does not grow");
        *owners |= n->region_count > 0;
        order = n->order;
        previous = id;
    }
    if (r->last != previous)
        return tn_rule_broken(v, TN_RULE_LISTS, 0, "the last node of region %u is not the end of its list", region);
    return TN_OK;
}

static tn_status reach_region(tn_verifier *v, uint32_t region, uint32_t owner, int depth) {
    const tn_graph *g = v->g;
    const tn_region_rec *r = &g->region.data[region];
    if (depth > TN_MAX_NESTING)
        return tn_rule_broken(v, TN_RULE_REGIONS, owner, "regions are nested deeper than %d", TN_MAX_NESTING);
    if (!r->alive)
        return tn_rule_broken(v, TN_RULE_REGIONS, owner, "its region %u is dead", region);
    if (v->region_seen[region])
        return tn_rule_broken(v, TN_RULE_REGIONS, owner, "its region %u is owned twice", region);
    v->region_seen[region] = 1;
    if (r->owner != owner)
        return tn_rule_broken(v, TN_RULE_REGIONS, owner, "region %u names node %u as its owner, not %u", region,
                              r->owner, owner);
    bool owners = false;
    TN_TRY(check_list(v, region, &owners));
    for (uint32_t id = owners ? r->first : 0; id; id = g->node.data[id].next)
        for (uint32_t i = 0; i < g->node.data[id].region_count; i++)
            TN_TRY(reach_region(v, g->region_list.data[g->node.data[id].regions + i], id, depth + 1));
    return TN_OK;
}

static tn_status check_regions(tn_verifier *v) {
    const tn_graph *g = v->g;
    TN_TRY(reach_region(v, g->main_region, 0, 0));
    for (uint32_t i = 0; i < g->function.len; i++)
        TN_TRY(reach_region(v, g->function.data[i].region, 0, 0));
    for (uint32_t i = 1; i < g->region.len; i++)
        if (g->region.data[i].alive && !v->region_seen[i])
            return tn_rule_broken(v, TN_RULE_REGIONS, 0, "region %u belongs to nothing", i);
    for (uint32_t i = 1; i < g->node.len; i++)
        if (g->node.data[i].op && !v->node_seen[i])
            return tn_rule_broken(v, TN_RULE_LISTS, i, "it stands in no region's list");
    return TN_OK;
}

/* --- rules 7, 8 and 9: values and their uses ------------------------------------------------------------------------------------------ */

static tn_status check_values(const tn_verifier *v) {
    const tn_graph *g = v->g;
    uint32_t alive = 0, found = 0;
    for (uint32_t i = 1; i < g->value.len; i++)
        alive += g->value.data[i].alive;
    for (uint32_t id = 1; id < g->node.len; id++) {
        const tn_node_rec *n = &g->node.data[id];
        if (!n->op)
            continue;
        for (uint32_t i = 0; i < n->output_count; i++, found++) {
            const tn_value_rec *value = &g->value.data[n->outputs + i];
            if (!value->alive || value->producer != id || value->index != i || value->region != 0)
                return tn_rule_broken(v, TN_RULE_VALUES, id, "output %u is dead or does not name this node", i);
        }
    }
    for (uint32_t id = 1; id < g->region.len; id++) {
        const tn_region_rec *r = &g->region.data[id];
        if (!r->alive)
            continue;
        for (uint32_t i = 0; i < r->args.len; i++, found++) {
            const tn_value_rec *value = &g->value.data[r->args.data[i]];
            if (!value->alive || value->producer != 0 || value->region != id || value->index != i)
                return tn_rule_broken(v, TN_RULE_VALUES, r->owner,
                                      "argument %u of region %u is dead or does not name it", i, id);
        }
    }
    if (alive != found)
        return tn_rule_broken(v, TN_RULE_VALUES, 0, "%u values are alive, nodes and regions have %u", alive, found);
    return TN_OK;
}

static tn_status check_use_list(const tn_verifier *v, uint32_t value, uint8_t *linked) {
    const tn_graph *g = v->g;
    const tn_value_rec *rec = &g->value.data[value];
    uint32_t count = 0, previous = 0;
    for (uint32_t at = rec->first_use; at; at = g->operand.data[at].next) {
        const tn_operand *o = &g->operand.data[at];
        const tn_node_rec *n = o->node < g->node.len ? &g->node.data[o->node] : NULL;
        if (o->value != value || linked[at] || o->previous != previous || o->next >= g->operand.len || !n || !n->op ||
            at < n->inputs || at - n->inputs >= n->input_count)
            return tn_rule_broken(v, TN_RULE_USES, rec->producer, "the list of uses of value %u is broken at use %u",
                                  value, count);
        linked[at] = 1;
        previous = at;
        count++;
    }
    if (count != rec->use_count)
        return tn_rule_broken(v, TN_RULE_USES, rec->producer, "value %u has %u uses, but counts %u", value, count,
                              rec->use_count);
    return TN_OK;
}

static tn_status check_uses(const tn_verifier *v) {
    const tn_graph *g = v->g;
    uint8_t *linked = tn_alloc(g->heap, g->operand.len);
    tn_status status = linked ? TN_OK : tn_error_status();
    for (uint32_t i = 1; i < g->value.len && status == TN_OK; i++)
        if (g->value.data[i].alive)
            status = check_use_list(v, i, linked);
    for (uint32_t id = 1; id < g->node.len && status == TN_OK; id++) {
        const tn_node_rec *n = &g->node.data[id];
        for (uint32_t i = 0; n->op && i < n->input_count && status == TN_OK; i++) {
            const tn_operand *o = &g->operand.data[n->inputs + i];
            if (o->value && !g->value.data[o->value].alive)
                status = tn_rule_broken(v, TN_RULE_DEAD, id, "input %u is a removed value", i);
            else if (o->node != id || (o->value && !linked[n->inputs + i]))
                status = tn_rule_broken(v, TN_RULE_USES, id, "input %u is missing in its value's list of uses", i);
        }
    }
    tn_free(g->heap, linked);
    return status;
}

tn_status tn_verify_storage(tn_verifier *v) {
    TN_TRY(check_ids(v));
    TN_TRY(check_regions(v));
    TN_TRY(check_values(v));
    return check_uses(v);
}
