/* Looking at a graph: nodes, values, uses, origins. */
#include <stdio.h>

#include "ir/graph_internal.h"

/* What a NULL graph, a null handle and one of another graph read as. */
static const tn_region_rec no_region;
static const tn_node_rec no_node;
static const tn_value_rec no_value;
static const char *text_of(const tn_graph *g, uint32_t id) {
    return g ? tn_strings_text(&g->strings, id) : "";
}

tn_region tn_graph_region(const tn_graph *g) {
    return (tn_region){g ? g->main_region : 0};
}
uint32_t tn_graph_input_count(const tn_graph *g) {
    return tn_region_arg_count(g, tn_graph_region(g));
}
tn_value tn_graph_input(const tn_graph *g, uint32_t i) {
    return tn_region_arg(g, tn_graph_region(g), i);
}
uint32_t tn_graph_output_count(const tn_graph *g) {
    return tn_region_result_count(g, tn_graph_region(g));
}
tn_value tn_graph_output(const tn_graph *g, uint32_t i) {
    return tn_region_result(g, tn_graph_region(g), i);
}

const char *tn_graph_output_name(const tn_graph *g, uint32_t i) {
    return g && i < g->output_name.len ? tn_strings_text(&g->strings, g->output_name.data[i]) : "";
}

tn_value tn_graph_find_value(const tn_graph *g, const char *name) {
    uint32_t id = g && name ? tn_strings_find(&g->strings, name, strlen(name)) : 0;
    if (id == UINT32_MAX || !id)
        return (tn_value){0};
    const tn_region_rec *main = &g->region.data[g->main_region];
    for (uint32_t i = 0; i < main->args.len; i++)
        if (g->value.data[main->args.data[i]].name == id)
            return (tn_value){main->args.data[i]};
    for (uint32_t n = main->first; n; n = g->node.data[n].next)
        for (uint32_t i = 0; i < g->node.data[n].output_count; i++)
            if (g->value.data[g->node.data[n].outputs + i].name == id)
                return (tn_value){g->node.data[n].outputs + i};
    return (tn_value){0};
}

/* --- regions -------------------------------------------------------------------------------------------------------------- */

static const tn_region_rec *region_of(const tn_graph *g, tn_region r) {
    return g && r.id < g->region.len ? &g->region.data[r.id] : &no_region;
}
tn_node tn_region_first(const tn_graph *g, tn_region r) {
    return (tn_node){region_of(g, r)->first};
}
tn_node tn_region_last(const tn_graph *g, tn_region r) {
    return (tn_node){region_of(g, r)->last};
}
uint32_t tn_region_arg_count(const tn_graph *g, tn_region r) {
    return region_of(g, r)->args.len;
}

tn_value tn_region_arg(const tn_graph *g, tn_region r, uint32_t i) {
    const tn_region_rec *rec = region_of(g, r);
    return (tn_value){i < rec->args.len ? rec->args.data[i] : 0};
}

static const tn_node_rec *node_of(const tn_graph *g, tn_node n) {
    return g && n.id < g->node.len ? &g->node.data[n.id] : &no_node;
}

static uint32_t return_of(const tn_graph *g, tn_region r) {
    uint32_t last = region_of(g, r)->last;
    return last && g->node.data[last].op == &tn_op_return ? last : 0;
}

uint32_t tn_region_result_count(const tn_graph *g, tn_region r) {
    return node_of(g, (tn_node){return_of(g, r)})->input_count;
}
tn_value tn_region_result(const tn_graph *g, tn_region r, uint32_t i) {
    return tn_node_input(g, (tn_node){return_of(g, r)}, i);
}
tn_node tn_region_owner(const tn_graph *g, tn_region r) {
    return (tn_node){region_of(g, r)->owner};
}

/* --- nodes ------------------------------------------------------------------------------------------------------------------ */

bool tn_node_is_alive(const tn_graph *g, tn_node n) {
    return g && n.id && n.id < g->node.len && g->node.data[n.id].op;
}
tn_node tn_node_next(const tn_graph *g, tn_node n) {
    return (tn_node){node_of(g, n)->next};
}
tn_node tn_node_previous(const tn_graph *g, tn_node n) {
    return (tn_node){node_of(g, n)->previous};
}
const tn_op *tn_node_op(const tn_graph *g, tn_node n) {
    return node_of(g, n)->op;
}
bool tn_node_has_trait(const tn_graph *g, tn_node n, uint32_t trait) {
    const tn_op *op = tn_node_op(g, n);
    return op && (op->traits & trait) != 0;
}
const char *tn_node_op_name(const tn_graph *g, tn_node n) {
    const tn_op *op = tn_node_op(g, n);
    return op ? op->name : "(dead)";
}
uint32_t tn_node_input_count(const tn_graph *g, tn_node n) {
    return node_of(g, n)->input_count;
}
tn_value tn_node_input(const tn_graph *g, tn_node n, uint32_t i) {
    const tn_node_rec *r = node_of(g, n);
    return (tn_value){i < r->input_count ? g->operand.data[r->inputs + i].value : 0};
}
uint32_t tn_node_output_count(const tn_graph *g, tn_node n) {
    return node_of(g, n)->output_count;
}
tn_value tn_node_output(const tn_graph *g, tn_node n, uint32_t i) {
    const tn_node_rec *r = node_of(g, n);
    return (tn_value){i < r->output_count ? r->outputs + i : 0};
}
uint32_t tn_node_region_count(const tn_graph *g, tn_node n) {
    return node_of(g, n)->region_count;
}
tn_region tn_node_region(const tn_graph *g, tn_node n, uint32_t i) {
    const tn_node_rec *r = node_of(g, n);
    return (tn_region){i < r->region_count ? g->region_list.data[r->regions + i] : 0};
}
tn_region tn_node_parent(const tn_graph *g, tn_node n) {
    return (tn_region){node_of(g, n)->region};
}
const char *tn_node_name(const tn_graph *g, tn_node n) {
    return text_of(g, node_of(g, n)->name);
}
tn_role tn_node_role(const tn_graph *g, tn_node n) {
    return (tn_role)node_of(g, n)->role;
}
uint32_t tn_node_location(const tn_graph *g, tn_node n) {
    return node_of(g, n)->location;
}
uint32_t tn_node_control_count(const tn_graph *g, tn_node n) {
    return node_of(g, n)->control_count;
}
tn_node tn_node_control(const tn_graph *g, tn_node n, uint32_t i) {
    const tn_node_rec *r = node_of(g, n);
    return (tn_node){i < r->control_count ? g->control_list.data[r->control + i] : 0};
}

static uint32_t add_name(tn_graph *g, const char *name) {
    return tn_strings_add(&g->strings, name ? name : "", name ? strlen(name) : 0);
}

tn_status tn_node_set_name(tn_graph *g, tn_node n, const char *name) {
    TN_TRY(tn_graph_changeable(g));
    uint32_t id = add_name(g, name);
    if (!tn_node_is_alive(g, n))
        return tn_fail(TN_ERR_USAGE, "naming a node that is null or dead");
    if (id == UINT32_MAX)
        return TN_ERR_MEMORY;
    g->node.data[n.id].name = id;
    return TN_OK;
}

tn_status tn_node_set_role(tn_graph *g, tn_node n, tn_role role) {
    TN_TRY(tn_graph_changeable(g));
    if (!tn_node_is_alive(g, n) || role > TN_ROLE_DEBUG)
        return tn_fail(TN_ERR_USAGE, "setting the role of a node that is null or dead, or an unknown role");
    g->node.data[n.id].role = (uint8_t)role;
    return TN_OK;
}

/* --- values -------------------------------------------------------------------------------------------------------------------- */

static const tn_value_rec *value_of(const tn_graph *g, tn_value v) {
    return g && v.id < g->value.len ? &g->value.data[v.id] : &no_value;
}
bool tn_value_is_alive(const tn_graph *g, tn_value v) {
    return g && v.id && v.id < g->value.len && g->value.data[v.id].alive;
}
tn_type tn_value_type(const tn_graph *g, tn_value v) {
    return (tn_type){value_of(g, v)->type};
}
tn_dtype tn_value_dtype(const tn_graph *g, tn_value v) {
    tn_type t = tn_value_type(g, v);
    return tn_type_kind(g, t) == TN_KIND_TENSOR ? tn_type_dtype(g, t) : TN_DTYPE_NONE;
}
int tn_value_rank(const tn_graph *g, tn_value v) {
    return tn_type_rank(g, tn_value_type(g, v));
}
const tn_dim *tn_value_dims(const tn_graph *g, tn_value v) {
    return tn_type_dims(g, tn_value_type(g, v));
}
tn_dim tn_value_dim(const tn_graph *g, tn_value v, int axis) {
    int rank = tn_value_rank(g, v);
    if (rank < 0 || axis < -rank || axis >= rank)
        return (tn_dim){0};
    return tn_value_dims(g, v)[axis < 0 ? axis + rank : axis];
}
const char *tn_value_name(const tn_graph *g, tn_value v) {
    return text_of(g, value_of(g, v)->name);
}
tn_node tn_value_producer(const tn_graph *g, tn_value v) {
    return (tn_node){value_of(g, v)->producer};
}
uint32_t tn_value_use_count(const tn_graph *g, tn_value v) {
    return value_of(g, v)->use_count;
}

bool tn_value_is_wanted(const tn_graph *g, tn_value v) {
    return value_of(g, v)->use_count > 0 || *tn_value_name(g, v);
}

tn_status tn_value_set_name(tn_graph *g, tn_value v, const char *name) {
    TN_TRY(tn_graph_changeable(g));
    uint32_t id = add_name(g, name);
    if (!tn_value_is_alive(g, v))
        return tn_fail(TN_ERR_USAGE, "naming a value that is null or dead");
    if (id == UINT32_MAX)
        return TN_ERR_MEMORY;
    g->value.data[v.id].name = id;
    return TN_OK;
}

const char *tn_value_describe(const tn_graph *g, tn_value v, char *text, size_t size) {
    char type[160];
    if (!text)
        return "";
    const char *name = tn_value_name(g, v);
    snprintf(text, size, "%%%u%s%.60s%s %s", v.id, *name ? " '" : "", name, *name ? "'" : "",
             tn_type_describe(g, tn_value_type(g, v), type, sizeof type));
    return text;
}

static tn_use use_at(const tn_graph *g, uint32_t operand) {
    if (!operand)
        return (tn_use){0};
    uint32_t node = g->operand.data[operand].node;
    return (tn_use){{node}, operand - g->node.data[node].inputs, operand};
}
tn_use tn_value_first_use(const tn_graph *g, tn_value v) {
    return use_at(g, value_of(g, v)->first_use);
}
tn_use tn_use_next(const tn_graph *g, tn_use u) {
    return use_at(g, g && u.link < g->operand.len ? g->operand.data[u.link].next : 0);
}

int32_t tn_value_contents(const tn_graph *g, tn_value v, const tn_dim **dims) {
    const tn_value_rec *r = value_of(g, v);
    *dims = r->contents_count > 0 ? g->dim_list.data + r->contents : NULL;
    return r->contents_count;
}

tn_tensor *tn_value_constant(const tn_graph *g, tn_value v) {
    tn_node p = tn_value_producer(g, v);
    return p.id && tn_node_has_trait(g, p, TN_CONSTANT) ? tn_attr_tensor(g, p, "value") : NULL;
}

/* --- insertion point and locations ------------------------------------------------------------------------------------------------ */

void tn_graph_insert_before(tn_graph *g, tn_node node) {
    if (tn_node_is_alive(g, node)) {
        g->at_region = g->node.data[node.id].region;
        g->at_node = node.id;
    }
}

void tn_graph_insert_at_end(tn_graph *g, tn_region region) {
    if (g && tn_region_is_alive(g, region)) {
        g->at_region = region.id;
        g->at_node = 0;
    }
}

tn_insertion tn_graph_insertion(const tn_graph *g) {
    return (tn_insertion){g->at_region, g->at_node, g->at_location};
}

void tn_graph_set_insertion(tn_graph *g, tn_insertion at) {
    g->at_region = at.region;
    g->at_node = at.node && g->node.data[at.node].op ? at.node : 0;
    g->at_location = at.location;
}

void tn_graph_at_location(tn_graph *g, uint32_t location) {
    g->at_location = location;
}

typedef struct set_key {
    const tn_graph *g;
    const uint32_t *ids;
    uint32_t count;
    tn_origin origin;
} set_key;

static bool origin_equal(const void *ctx, uint32_t id) {
    const set_key *k = ctx;
    const tn_origin *o = &k->g->origin.data[id];
    return o->what == k->origin.what && o->name == k->origin.name && o->file == k->origin.file &&
           o->line == k->origin.line;
}

static bool set_equal(const void *ctx, uint32_t id) {
    const set_key *k = ctx;
    tn_location_set s = k->g->location.data[id];
    return s.count == k->count && memcmp(k->g->origin_list.data + s.first, k->ids, k->count * sizeof *k->ids) == 0;
}

static uint64_t set_hash(const uint32_t *ids, uint32_t count) {
    return tn_hash_bytes(ids, count * sizeof *ids, 1);
}
static uint64_t origin_hash(tn_origin o) {
    return tn_hash_mix(tn_hash_mix(o.what, o.name), tn_hash_mix(o.file, o.line));
}

/* Origins and locations that a file brought are put into the sets when something is first looked for in them. */
static bool index_locations(tn_graph *g) {
    while (g->origin_set.len + 1 < g->origin.len) {
        uint32_t id = g->origin_set.len + 1;
        if (!tn_idset_add(g->heap, &g->origin_set, origin_hash(g->origin.data[id]), id))
            return false;
    }
    while (g->location_set.len + 1 < g->location.len) {
        uint32_t id = g->location_set.len + 1;
        tn_location_set set = g->location.data[id];
        if (!tn_idset_add(g->heap, &g->location_set, set_hash(g->origin_list.data + set.first, set.count), id))
            return false;
    }
    return true;
}

static uint32_t location_intern(tn_graph *g, const uint32_t *ids, uint32_t count) {
    uint64_t h = set_hash(ids, count);
    set_key key = {.g = g, .ids = ids, .count = count};
    if (!index_locations(g)) {
        tn_graph_stick(g);
        return 0;
    }
    uint32_t id = tn_idset_find(&g->location_set, h, set_equal, &key);
    if (id || !count)
        return id;
    tn_location_set set = {g->origin_list.len, count};
    if (!tn_vec_reserve(g->heap, &g->origin_list, count) || !tn_vec_reserve(g->heap, &g->location, 1) ||
        !tn_idset_add(g->heap, &g->location_set, h, g->location.len)) {
        tn_graph_stick(g);
        return 0;
    }
    for (uint32_t i = 0; i < count; i++)
        g->origin_list.data[g->origin_list.len++] = ids[i];
    g->location.data[g->location.len++] = set;
    return g->location.len - 1;
}

uint32_t tn_location_make(tn_graph *g, const char *what, const char *name, const char *file, uint32_t line) {
    tn_origin o = {add_name(g, what), add_name(g, name), add_name(g, file), line};
    if (o.what == UINT32_MAX || o.name == UINT32_MAX || o.file == UINT32_MAX || !index_locations(g)) {
        tn_graph_stick(g);
        return 0;
    }
    uint64_t h = origin_hash(o);
    set_key key = {.g = g, .origin = o};
    uint32_t id = tn_idset_find(&g->origin_set, h, origin_equal, &key);
    if (!id) {
        if (!tn_vec_reserve(g->heap, &g->origin, 1) || !tn_idset_add(g->heap, &g->origin_set, h, g->origin.len)) {
            tn_graph_stick(g);
            return 0;
        }
        id = g->origin.len;
        g->origin.data[g->origin.len++] = o;
    }
    return location_intern(g, &id, 1);
}

uint32_t tn_location_union(tn_graph *g, uint32_t a, uint32_t b) {
    if (!a || a == b)
        return b;
    if (!b)
        return a;
    uint32_t ids[16], n = 0;
    for (int k = 0; k < 2; k++) {
        tn_location_set s = g->location.data[k ? b : a];
        for (uint32_t i = 0; i < s.count && n < 16; i++) {
            uint32_t o = g->origin_list.data[s.first + i];
            bool seen = false;
            for (uint32_t j = 0; j < n; j++)
                seen |= ids[j] == o;
            if (!seen)
                ids[n++] = o;
        }
    }
    uint32_t id = location_intern(g, ids, n);
    return id ? id : a;
}

tn_graph *tn_at(tn_graph *g, const char *file, int line) {
    if (g && file && !g->stuck && !g->frozen) {
        const char *base = strrchr(file, '/');
        g->at_location = tn_location_make(g, NULL, NULL, base ? base + 1 : file, (uint32_t)line);
    }
    return g;
}

const char *tn_origin_describe(const tn_graph *g, uint32_t origin, char *text, size_t size) {
    const tn_origin *o = &g->origin.data[origin];
    const char *what = tn_strings_text(&g->strings, o->what), *name = tn_strings_text(&g->strings, o->name),
               *file = tn_strings_text(&g->strings, o->file);
    if (o->line)
        snprintf(text, size, "%s:%u", file, o->line);
    else
        snprintf(text, size, "%.80s%s%.100s%s%s%.80s%s", what, *name ? " '" : "", name, *name ? "'" : "",
                 *file ? " (" : "", file, *file ? ")" : "");
    return text;
}

static tn_location_set location_of(const tn_graph *g, tn_node n) {
    return g ? g->location.data[node_of(g, n)->location] : (tn_location_set){0};
}
uint32_t tn_node_origin_count(const tn_graph *g, tn_node n) {
    return location_of(g, n).count;
}

const char *tn_node_origin(const tn_graph *g, tn_node n, uint32_t i, char *text, size_t size) {
    tn_location_set s = location_of(g, n);
    if (!text)
        return "";
    if (i >= s.count) {
        snprintf(text, size, "%s", "");
        return text;
    }
    return tn_origin_describe(g, g->origin_list.data[s.first + i], text, size);
}

void tn_graph_free_map(const tn_graph *g, uint32_t *map) {
    tn_free(g ? g->heap : NULL, map);
}
