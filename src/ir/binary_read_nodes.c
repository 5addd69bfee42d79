/* Reading the binary form: values, regions and nodes, and what the graph shows to the outside. Links are made here; whether they
   make sense is for the verifier. */
#include "ir/binary_read.h"

#define HEAD 11 /* words before a node's lists */

/* A value's place is claimed once, by an argument or an output. */
static tn_status claim(tn_binary_reader *r, tn_section kind, uint32_t record, uint32_t first, uint32_t count,
                       uint32_t producer, uint32_t region) {
    tn_graph *g = r->g;
    if (count && (first == 0 || first >= g->value.len || count > g->value.len - first))
        return tn_reader_fail(kind, record, "values %u of %u are none of section 'VALU'", first, count);
    for (uint32_t i = 0; i < count; i++) {
        tn_value_rec *v = &g->value.data[first + i];
        if (v->producer || v->region)
            return tn_reader_fail(kind, record, "value %u is defined twice", first + i);
        v->producer = producer;
        v->region = region;
        v->index = i;
    }
    return TN_OK;
}

static tn_status read_values(tn_binary_reader *r) {
    tn_graph *g = r->g;
    tn_cursor c = tn_reader_cursor(r, TN_SECTION_VALUES);
    uint32_t count = tn_reader_count(r, TN_SECTION_VALUES);
    if (!tn_vec_reserve(r->heap, &g->value, count))
        return tn_error_status();
    for (uint32_t i = 1; i <= count; i++) {
        uint32_t type = tn_cursor_u32(&c), name = tn_cursor_u32(&c);
        if (type > tn_reader_count(r, TN_SECTION_TYPES) || name > tn_reader_count(r, TN_SECTION_STRINGS))
            return tn_reader_fail(TN_SECTION_VALUES, i, "its type or name is not there");
        g->value.data[g->value.len++] =
            (tn_value_rec){.type = r->type[type].id, .name = name, .contents_count = -1, .alive = true};
    }
    return tn_reader_end(&c, TN_SECTION_VALUES);
}

static tn_status read_regions(tn_binary_reader *r) {
    tn_graph *g = r->g;
    tn_cursor c = tn_reader_cursor(r, TN_SECTION_REGIONS);
    uint32_t count = tn_reader_count(r, TN_SECTION_REGIONS);
    if (!count)
        return tn_fail(TN_ERR_MODEL, "section 'REGN' is empty: there is no main region");
    /* the empty graph's main region is region 1; its return is taken out */
    g->node.len = 1;
    g->region.data[1].first = g->region.data[1].last = 0;
    if (!tn_vec_reserve(r->heap, &g->region, count))
        return tn_error_status();
    for (uint32_t i = 1; i <= count; i++) {
        uint32_t first = tn_cursor_u32(&c), args = tn_cursor_u32(&c);
        if (i > 1)
            g->region.data[g->region.len++] = (tn_region_rec){.alive = true};
        TN_TRY(claim(r, TN_SECTION_REGIONS, i, first, args, 0, i));
        tn_u32_vec *list = &g->region.data[i].args;
        if (!tn_vec_reserve(r->heap, list, args))
            return tn_error_status();
        for (uint32_t k = 0; k < args; k++)
            list->data[list->len++] = first + k;
    }
    return tn_reader_end(&c, TN_SECTION_REGIONS);
}

/* --- attributes ------------------------------------------------------------------------------------------------------------- */

/* `count` elements of `size` bytes, copied into the graph. */
static tn_status read_array(tn_binary_reader *r, tn_cursor *c, uint32_t count, size_t size, const void **to) {
    const uint8_t *bytes = tn_cursor_bytes(c, count * size);
    if (!bytes)
        return TN_OK; /* the section's end sees it */
    *to = tn_arena_copy(&r->g->arena, bytes, count * size);
    return *to ? TN_OK : tn_error_status();
}

static tn_status read_text(tn_binary_reader *r, tn_cursor *c, tn_string *out) {
    uint32_t length = tn_cursor_u32(c);
    const char *bytes = (const char *)tn_cursor_bytes(c, length);
    if (!bytes)
        return TN_OK;
    *out = (tn_string){tn_arena_strndup(&r->g->arena, bytes, length), length};
    return out->data ? TN_OK : tn_error_status();
}

static tn_status read_texts(tn_binary_reader *r, tn_cursor *c, tn_attr *a) {
    if (a->count > tn_cursor_left(c) / 4) {
        c->bad = true;
        return TN_OK;
    }
    tn_string *texts = tn_arena_alloc(&r->g->arena, a->count * sizeof *texts);
    if (!texts)
        return tn_error_status();
    a->as.strings = texts;
    for (uint32_t i = 0; i < a->count && !c->bad; i++)
        TN_TRY(read_text(r, c, &texts[i]));
    return TN_OK;
}

static tn_status read_dim_list(tn_binary_reader *r, tn_cursor *c, tn_attr *a, uint32_t node) {
    const uint8_t *numbers = tn_cursor_bytes(c, a->count * sizeof(uint32_t));
    if (!numbers)
        return TN_OK;
    tn_dim *dims = tn_arena_alloc(&r->g->arena, a->count * sizeof *dims);
    if (!dims)
        return tn_error_status();
    a->as.dims = dims;
    for (uint32_t i = 0; i < a->count; i++) {
        uint32_t dim;
        memcpy(&dim, numbers + i * sizeof dim, sizeof dim);
        if (!dim || dim > tn_reader_count(r, TN_SECTION_DIMS))
            return tn_reader_fail(TN_SECTION_NODES, node, "attribute '%s': a dimension that is not there", a->key);
        dims[i] = r->dim[dim];
    }
    return TN_OK;
}

static tn_status read_attr(tn_binary_reader *r, tn_cursor *c, tn_attr *a, uint32_t node) {
    tn_graph *g = r->g;
    uint32_t key = tn_cursor_u32(c), kind = tn_cursor_u32(c), number;
    if (!key || key > tn_reader_count(r, TN_SECTION_STRINGS) || kind == TN_ATTR_NONE || kind > TN_ATTR_FUNCTION)
        return tn_reader_fail(TN_SECTION_NODES, node, "an attribute without a name, or of a kind that does not exist");
    a->name = key;
    a->key = tn_strings_text(&g->strings, a->name);
    a->kind = (uint8_t)kind;
    if (kind == TN_ATTR_INTS || kind == TN_ATTR_FLOATS || kind == TN_ATTR_STRINGS || kind == TN_ATTR_DIMS)
        a->count = tn_cursor_u32(c);
    switch ((tn_attr_kind)kind) {
    case TN_ATTR_NONE: break;
    case TN_ATTR_INT:
    case TN_ATTR_DTYPE:
    case TN_ATTR_FUNCTION: a->as.i = (int64_t)tn_cursor_u64(c); break;
    case TN_ATTR_FLOAT: {
        uint64_t bits = tn_cursor_u64(c);
        memcpy(&a->as.f, &bits, sizeof a->as.f);
        break;
    }
    case TN_ATTR_STRING: return read_text(r, c, &a->as.s);
    case TN_ATTR_INTS: return read_array(r, c, a->count, sizeof(int64_t), (const void **)&a->as.ints);
    case TN_ATTR_FLOATS: return read_array(r, c, a->count, sizeof(float), (const void **)&a->as.floats);
    case TN_ATTR_STRINGS: return read_texts(r, c, a);
    case TN_ATTR_DIMS: return read_dim_list(r, c, a, node);
    case TN_ATTR_TENSOR:
        number = tn_cursor_u32(c);
        if (!number || number > tn_reader_count(r, TN_SECTION_TENSORS))
            return tn_reader_fail(TN_SECTION_NODES, node, "attribute '%s': a tensor that is not there", a->key);
        if (!tn_vec_push(r->heap, &g->tensors, r->tensor[number]))
            return tn_error_status();
        a->as.tensor = tn_tensor_retain(r->tensor[number]);
        break;
    case TN_ATTR_TYPE:
        number = tn_cursor_u32(c);
        if (number > tn_reader_count(r, TN_SECTION_TYPES))
            return tn_reader_fail(TN_SECTION_NODES, node, "attribute '%s': a type that is not there", a->key);
        a->as.type = r->type[number];
        break;
    }
    return TN_OK;
}

static tn_status read_attrs(tn_binary_reader *r, tn_cursor *c, uint32_t node, uint32_t count) {
    if (count > tn_cursor_left(c) / 8)
        return tn_reader_fail(TN_SECTION_NODES, node, "more attributes than are there");
    tn_attr *attrs = count ? tn_arena_alloc(&r->g->arena, count * sizeof *attrs) : NULL;
    if (count && !attrs)
        return tn_error_status();
    for (uint32_t i = 0; i < count && !c->bad; i++)
        TN_TRY(read_attr(r, c, &attrs[i], node));
    r->g->node.data[node].attrs = attrs;
    r->g->node.data[node].attr_count = count;
    return TN_OK;
}

/* --- nodes -------------------------------------------------------------------------------------------------------------------- */

static tn_status read_lists(tn_binary_reader *r, tn_cursor *c, uint32_t node, const uint32_t head[HEAD]) {
    tn_graph *g = r->g;
    uint32_t inputs = head[7], regions = head[8], control = head[9];
    if ((uint64_t)inputs + regions + control > tn_cursor_left(c) / 4)
        return tn_reader_fail(TN_SECTION_NODES, node, "more inputs, regions or control inputs than are there");
    if (!tn_vec_reserve(r->heap, &g->operand, inputs) || !tn_vec_reserve(r->heap, &g->region_list, regions) ||
        !tn_vec_reserve(r->heap, &g->control_list, control))
        return tn_error_status();
    tn_node_rec *n = &g->node.data[node];
    n->inputs = g->operand.len;
    n->regions = g->region_list.len;
    n->control = g->control_list.len;
    for (uint32_t i = 0; i < inputs; i++) {
        uint32_t value = tn_cursor_u32(c);
        if (value >= g->value.len)
            return tn_reader_fail(TN_SECTION_NODES, node, "input %u is none of section 'VALU'", i);
        g->operand.data[g->operand.len++] = (tn_operand){.node = node};
        tn_operand_link(g, g->operand.len - 1, value);
        n->input_count++;
    }
    for (uint32_t i = 0; i < regions; i++) {
        uint32_t region = tn_cursor_u32(c);
        if (!region || region >= g->region.len || g->region.data[region].owner)
            return tn_reader_fail(TN_SECTION_NODES, node, "its region %u is not there, or another node's", region);
        g->region.data[region].owner = node;
        g->region_list.data[g->region_list.len++] = region;
        n->region_count++;
    }
    for (uint32_t i = 0; i < control; i++) {
        uint32_t before = tn_cursor_u32(c);
        if (!before || before >= node)
            return tn_reader_fail(TN_SECTION_NODES, node, "its control input %u does not stand before it", before);
        g->control_list.data[g->control_list.len++] = before;
        n->control_count++;
    }
    return TN_OK;
}

static tn_status read_node(tn_binary_reader *r, tn_cursor *c, uint32_t node) {
    tn_graph *g = r->g;
    uint32_t head[HEAD];
    const uint8_t *bytes = tn_cursor_bytes(c, sizeof head);
    if (!bytes)
        return TN_OK; /* the section's end sees it */
    memcpy(head, bytes, sizeof head);
    if (head[0] >= tn_reader_count(r, TN_SECTION_OPS) || head[1] > tn_reader_count(r, TN_SECTION_STRINGS) ||
        head[2] > tn_reader_count(r, TN_SECTION_LOCATIONS) || !head[3] || head[3] >= g->region.len ||
        (head[4] & 0xffff) > TN_ROLE_DEBUG)
        return tn_reader_fail(TN_SECTION_NODES, node, "its operator, name, location, region or role is not there");
    uint32_t last = g->region.data[head[3]].last;
    if (last && g->node.data[last].op == &tn_op_return)
        return tn_reader_fail(TN_SECTION_NODES, node, "it stands behind the end of its region");
    g->node.data[g->node.len++] = (tn_node_rec){.op = r->op[head[0]],
                                                .name = head[1],
                                                .location = head[2],
                                                .role = (uint8_t)head[4],
                                                .placement = (uint16_t)(head[4] >> 16),
                                                .outputs = head[6] ? head[5] : 0};
    tn_node_link(g, node, head[3], 0);
    TN_TRY(claim(r, TN_SECTION_NODES, node, head[5], head[6], node, 0));
    g->node.data[node].output_count = head[6];
    TN_TRY(read_lists(r, c, node, head));
    return read_attrs(r, c, node, head[10]);
}

static tn_status read_nodes(tn_binary_reader *r) {
    tn_graph *g = r->g;
    tn_cursor c = tn_reader_cursor(r, TN_SECTION_NODES);
    uint32_t count = tn_reader_count(r, TN_SECTION_NODES);
    if (!tn_vec_reserve(r->heap, &g->node, count))
        return tn_error_status();
    for (uint32_t node = 1; node <= count && !c.bad; node++)
        TN_TRY(read_node(r, &c, node));
    TN_TRY(tn_reader_end(&c, TN_SECTION_NODES));
    for (uint32_t i = 1; i < g->value.len; i++)
        if (!g->value.data[i].producer && !g->value.data[i].region)
            return tn_reader_fail(TN_SECTION_VALUES, i, "it is no argument and no output of a node");
    return TN_OK;
}

/* --- the graph's face --------------------------------------------------------------------------------------------------------- */

static tn_status read_functions(tn_binary_reader *r) {
    tn_graph *g = r->g;
    tn_cursor c = tn_reader_cursor(r, TN_SECTION_FUNCTIONS);
    uint32_t count = tn_reader_count(r, TN_SECTION_FUNCTIONS);
    if (!tn_vec_reserve(r->heap, &g->function, count))
        return tn_error_status();
    for (uint32_t i = 0; i < count; i++) {
        uint32_t name = tn_cursor_u32(&c), region = tn_cursor_u32(&c);
        if (!name || name > tn_reader_count(r, TN_SECTION_STRINGS) || region < 2 || region >= g->region.len)
            return tn_reader_fail(TN_SECTION_FUNCTIONS, i, "a function without a name or a region of its own");
        g->function.data[g->function.len++] = (tn_function){name, region};
    }
    return tn_reader_end(&c, TN_SECTION_FUNCTIONS);
}

static tn_status read_output_names(tn_binary_reader *r) {
    tn_graph *g = r->g;
    tn_cursor c = tn_reader_cursor(r, TN_SECTION_OUTPUTS);
    uint32_t count = tn_reader_count(r, TN_SECTION_OUTPUTS);
    if (!tn_vec_reserve(r->heap, &g->output_name, count))
        return tn_error_status();
    for (uint32_t i = 0; i < count; i++) {
        uint32_t name = tn_cursor_u32(&c);
        if (name > tn_reader_count(r, TN_SECTION_STRINGS))
            return tn_reader_fail(TN_SECTION_OUTPUTS, i, "a name that section 'STRS' has not");
        g->output_name.data[g->output_name.len++] = name;
    }
    return tn_reader_end(&c, TN_SECTION_OUTPUTS);
}

/* `seen` has a byte for each value. */
static tn_status read_default_list(tn_binary_reader *r, uint8_t *seen) {
    tn_graph *g = r->g;
    tn_cursor c = tn_reader_cursor(r, TN_SECTION_DEFAULTS);
    for (uint32_t i = 0; i < tn_reader_count(r, TN_SECTION_DEFAULTS); i++) {
        uint32_t value = tn_cursor_u32(&c), tensor = tn_cursor_u32(&c);
        if (!value || value >= g->value.len || g->value.data[value].region != g->main_region || seen[value] ||
            !tensor || tensor > tn_reader_count(r, TN_SECTION_TENSORS))
            return tn_reader_fail(TN_SECTION_DEFAULTS, i, "no input, or one that has a default already, or no tensor");
        seen[value] = 1;
        if (!tn_vec_push(r->heap, &g->input_default, ((tn_input_default){value, r->tensor[tensor]})))
            return tn_error_status();
        tn_tensor_retain(r->tensor[tensor]);
    }
    return tn_reader_end(&c, TN_SECTION_DEFAULTS);
}

/* `seen` has a byte for each string of the graph before values are added, which nobody looks for. */
static tn_status read_metadata_list(tn_binary_reader *r, uint8_t *seen) {
    tn_graph *g = r->g;
    tn_cursor c = tn_reader_cursor(r, TN_SECTION_METADATA);
    for (uint32_t i = 0; i < tn_reader_count(r, TN_SECTION_METADATA); i++) {
        uint32_t key = tn_cursor_u32(&c), length = tn_cursor_u32(&c);
        const char *text = (const char *)tn_cursor_bytes(&c, length);
        if (!text)
            break;
        if (key > tn_reader_count(r, TN_SECTION_STRINGS) || seen[key])
            return tn_reader_fail(TN_SECTION_METADATA, i, "its key is not there, or given twice");
        seen[key] = 1;
        uint32_t value = tn_strings_append(&g->strings, text, length);
        if (value == UINT32_MAX || !tn_vec_push(r->heap, &g->metadata, ((tn_metadata){key, value})))
            return tn_error_status();
    }
    return tn_reader_end(&c, TN_SECTION_METADATA);
}

static tn_status with_seen(tn_binary_reader *r, size_t size, tn_status (*read)(tn_binary_reader *r, uint8_t *seen)) {
    uint8_t *seen = tn_alloc(r->heap, size);
    tn_status status = seen ? read(r, seen) : tn_error_status();
    tn_free(r->heap, seen);
    return status;
}

/* --- symbols that values define ------------------------------------------------------------------------------------------------- */

static tn_status hold(tn_binary_reader *r, tn_cursor *c, uint32_t record) {
    tn_graph *g = r->g;
    uint32_t value = tn_cursor_u32(c), count = tn_cursor_u32(c);
    tn_dim dims[TN_MAX_CONTENTS];
    if (!value || value >= g->value.len || g->value.data[value].contents_count >= 0 || count > TN_MAX_CONTENTS)
        return tn_reader_fail(TN_SECTION_HELD, record, "no value, or one that was there before, or too many elements");
    tn_dtype dtype = tn_value_dtype(g, (tn_value){value});
    int rank = tn_value_rank(g, (tn_value){value});
    int64_t size = count;
    if ((dtype != TN_I64 && dtype != TN_I32) || rank < 0 || rank > 1 ||
        (rank == 0 ? count != 1 : tn_dim_is_const(g, tn_value_dims(g, (tn_value){value})[0], &size) && size != count))
        return tn_reader_fail(TN_SECTION_HELD, record, "%u known elements do not fit the value's type", count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t dim = tn_cursor_u32(c);
        if (!dim || dim > tn_reader_count(r, TN_SECTION_DIMS))
            return tn_reader_fail(TN_SECTION_HELD, record, "an element that section 'DIMS' has not");
        dims[i] = r->dim[dim];
        const tn_dim_expr *e = &g->dims.expr.data[dims[i].id];
        if (e->kind == TN_DIM_SYMBOL)
            g->symbol_value.data[e->symbol] = value;
    }
    uint32_t first = tn_dim_list_add(g, count, dims);
    if (first == UINT32_MAX)
        return tn_error_status();
    g->value.data[value].contents = first;
    g->value.data[value].contents_count = (int32_t)count;
    return TN_OK;
}

static tn_status read_held(tn_binary_reader *r) {
    tn_cursor c = tn_reader_cursor(r, TN_SECTION_HELD);
    if (tn_reader_count(r, TN_SECTION_SYMBOLS))
        for (uint32_t i = 1; i < r->g->value.len; i++)
            TN_TRY(tn_graph_note_symbols(r->g, i));
    for (uint32_t i = 0; i < tn_reader_count(r, TN_SECTION_HELD) && !c.bad; i++)
        TN_TRY(hold(r, &c, i));
    return tn_reader_end(&c, TN_SECTION_HELD);
}

tn_status tn_reader_structure(tn_binary_reader *r) {
    TN_TRY(read_values(r));
    TN_TRY(read_regions(r));
    TN_TRY(read_nodes(r));
    TN_TRY(read_functions(r));
    TN_TRY(read_output_names(r));
    TN_TRY(with_seen(r, r->g->value.len, read_default_list));
    TN_TRY(with_seen(r, r->g->strings.text.len, read_metadata_list));
    return read_held(r);
}
