/* Reading the text form: symbols, functions, regions, nodes. */
#include "ir/verify.h"
#include "ir/parse.h"

#define OUT_OF_SCOPE 0

/* --- values and labels -------------------------------------------------------------------------------------------------------- */

/* "%5": its number. */
static bool parse_number_after(tn_parser *p, char mark, const char *what, uint64_t *number) {
    if (!tn_parse_accept(p, mark))
        return tn_parse_expected(p, what);
    return tn_parse_u64_text(p, what, number);
}

/* "%5" as a use, or "_". */
static bool parse_use(tn_parser *p, tn_value *out) {
    if (tn_parse_accept_word(p, "_")) {
        *out = (tn_value){0};
        return true;
    }
    tn_parse_skip(p);
    size_t start = p->at;
    uint64_t number, value = 0;
    if (!parse_number_after(p, '%', "a value (%1) or _", &number))
        return false;
    if (!tn_map_get(&p->values, number, &value))
        return tn_parse_fail(p, start, "%%%llu is not defined before it is used", (unsigned long long)number);
    if (value == OUT_OF_SCOPE)
        return tn_parse_fail(p, start, "%%%llu lies in a region that has ended", (unsigned long long)number);
    *out = (tn_value){(uint32_t)value};
    return true;
}

static bool define_value(tn_parser *p, size_t at, uint64_t number, tn_value value) {
    if (number > INT64_MAX)
        return tn_parse_fail(p, at, "a value's number is too large");
    if (tn_map_get(&p->values, number, NULL))
        return tn_parse_fail(p, at, "%%%llu is defined twice", (unsigned long long)number);
    return tn_map_put(p->g->heap, &p->values, number, value.id) && tn_vec_push(p->g->heap, &p->scope, (int64_t)number);
}

/* Ends the scope of values defined since `mark`. */
static bool leave_scope(tn_parser *p, uint32_t mark) {
    while (p->scope.len > mark)
        if (!tn_map_put(p->g->heap, &p->values, (uint64_t)p->scope.data[--p->scope.len], OUT_OF_SCOPE))
            return false;
    return true;
}

/* What stands after a value's type: "holds [u1, 4]", its elements where they define symbols. */
static bool parse_holds(tn_parser *p, tn_parse_list *dims, bool *given) {
    *given = tn_parse_accept_word(p, "holds");
    if (!*given)
        return true;
    size_t start = p->at;
    if (!tn_parse_dims(p, dims))
        return false;
    return dims->len <= TN_MAX_CONTENTS || tn_parse_fail(p, start, "at most %d elements can be known", TN_MAX_CONTENTS);
}

static bool set_contents(tn_parser *p, size_t at, tn_value value, const tn_parse_list *held) {
    tn_graph *g = p->g;
    tn_dtype dtype = tn_value_dtype(g, value);
    int rank = tn_value_rank(g, value);
    if (tn_type_kind(g, tn_value_type(g, value)) != TN_KIND_TENSOR || (dtype != TN_I64 && dtype != TN_I32) ||
        rank < 0 || rank > 1)
        return tn_parse_fail(p, at, "only an i64 or i32 tensor of rank 0 or 1 holds known elements");
    int64_t size = 1;
    if (rank == 0 ? held->len != 1 : tn_dim_is_const(g, tn_value_dim(g, value, 0), &size) && size != (int64_t)held->len)
        return tn_parse_fail(p, at, "%u known elements do not fit the value's shape", held->len);
    uint32_t first = g->dim_list.len;
    if (!tn_vec_reserve(g->heap, &g->dim_list, held->len) ||
        tn_value_set_type(g, value, tn_value_type(g, value)) != TN_OK) /* makes room for all symbols */
        return false;
    for (uint32_t i = 0; i < held->len; i++) {
        tn_dim dim = ((tn_dim *)held->data)[i];
        const tn_dim_expr *e = &g->dims.expr.data[dim.id];
        g->dim_list.data[g->dim_list.len++] = dim;
        if (e->kind == TN_DIM_SYMBOL && e->symbol < g->symbol_value.len)
            g->symbol_value.data[e->symbol] = value.id;
    }
    g->value.data[value.id].contents = first;
    g->value.data[value.id].contents_count = (int32_t)held->len;
    return true;
}

/* --- regions -------------------------------------------------------------------------------------------------------------------- */

/* "(%1 "x": f32[N], ...)" with "= tensor" for inputs. */
static bool parse_args(tn_parser *p, tn_region region, bool defaults) {
    if (!tn_parse_expect(p, '('))
        return false;
    if (tn_parse_accept(p, ')'))
        return true;
    do {
        const char *name = NULL;
        uint64_t number;
        tn_type type;
        tn_parse_list held = {0};
        bool holds;
        tn_parse_skip(p);
        size_t start = p->at;
        if (!parse_number_after(p, '%', "an argument (%1)", &number) ||
            (tn_parse_peek_string(p) && !tn_parse_name(p, "a name", &name)) || !tn_parse_expect(p, ':') ||
            !tn_parse_type(p, &type) || !parse_holds(p, &held, &holds))
            return false;
        tn_value value = tn_region_add_arg(p->g, region, type, name);
        if (!value.id)
            return tn_parse_failed_at(p, start);
        if (!define_value(p, start, number, value) || (holds && !set_contents(p, start, value, &held)))
            return false;
        if (defaults && tn_parse_accept(p, '=')) {
            tn_tensor *tensor;
            if (!tn_parse_tensor(p, &tensor))
                return false;
            if (tn_graph_set_input_default(p->g, value, tensor) != TN_OK)
                return tn_parse_failed_at(p, start);
        }
    } while (tn_parse_accept(p, ','));
    return tn_parse_accept(p, ')') || tn_parse_expected(p, "',' or ')'");
}

static bool parse_block(tn_parser *p, tn_region region);

/* What is read of a node before it is made. */
typedef struct draft {
    size_t at;
    bool labelled;
    uint64_t label;
    tn_parse_list numbers; /* uint64_t, of outputs */
    tn_parse_list names;   /* const char * or NULL, of outputs */
    tn_parse_list inputs;  /* tn_value */
    tn_parse_list attrs;   /* tn_attr */
    tn_parse_list control; /* tn_node */
    tn_parse_list types;   /* tn_type */
    tn_parse_list held;    /* tn_parse_list, of outputs; data NULL and len 0 where nothing is held */
    tn_parse_list regions; /* tn_region */
    const char *name;
    const tn_op *op;
    uint32_t location;
    uint16_t placement;
    uint8_t role;
} draft;

static bool parse_outputs(tn_parser *p, draft *d) {
    do {
        uint64_t number;
        const char *name = NULL;
        if (!parse_number_after(p, '%', "a value (%1)", &number) ||
            (tn_parse_peek_string(p) && !tn_parse_name(p, "a name", &name)) ||
            !tn_parse_push(p, &d->numbers, &number, sizeof number) || !tn_parse_push(p, &d->names, &name, sizeof name))
            return false;
    } while (tn_parse_accept(p, ','));
    return tn_parse_expect(p, '=');
}

static bool parse_inputs(tn_parser *p, draft *d) {
    if (!tn_parse_expect(p, '('))
        return false;
    if (tn_parse_accept(p, ')'))
        return true;
    do {
        tn_value value;
        if (!parse_use(p, &value) || !tn_parse_push(p, &d->inputs, &value, sizeof value))
            return false;
    } while (tn_parse_accept(p, ','));
    return tn_parse_accept(p, ')') || tn_parse_expected(p, "',' or ')'");
}

static bool parse_attrs(tn_parser *p, draft *d) {
    if (!tn_parse_accept(p, '{') || tn_parse_accept(p, '}'))
        return true;
    do {
        tn_string key;
        tn_attr attr;
        if (!tn_parse_word(p, "an attribute's name", &key) || !tn_parse_expect(p, '=') || !tn_parse_attr(p, &attr))
            return false;
        attr.key = key.data;
        if (!tn_parse_push(p, &d->attrs, &attr, sizeof attr))
            return false;
    } while (tn_parse_accept(p, ','));
    return tn_parse_accept(p, '}') || tn_parse_expected(p, "',' or '}'");
}

static bool parse_control(tn_parser *p, draft *d) {
    if (!tn_parse_accept_word(p, "after"))
        return true;
    if (!tn_parse_expect(p, '('))
        return false;
    do {
        tn_parse_skip(p);
        size_t start = p->at;
        uint64_t label, node;
        if (!parse_number_after(p, '!', "a node's label (!1)", &label))
            return false;
        if (!tn_map_get(&p->labels, label, &node))
            return tn_parse_fail(p, start, "no node !%llu stands before", (unsigned long long)label);
        tn_node before = {(uint32_t)node};
        if (!tn_parse_push(p, &d->control, &before, sizeof before))
            return false;
    } while (tn_parse_accept(p, ','));
    return tn_parse_expect(p, ')');
}

static bool parse_types(tn_parser *p, draft *d) {
    if (d->numbers.len == 0)
        return true;
    if (!tn_parse_expect(p, ':'))
        return false;
    for (uint32_t i = 0; i < d->numbers.len; i++) {
        tn_type type;
        tn_parse_list held = {0};
        bool given;
        if ((i && !tn_parse_expect(p, ',')) || !tn_parse_type(p, &type) || !parse_holds(p, &held, &given))
            return false;
        held.cap = given; /* from here on: whether there is something */
        if (!tn_parse_push(p, &d->types, &type, sizeof type) || !tn_parse_push(p, &d->held, &held, sizeof held))
            return false;
    }
    return true;
}

/* "app.c":12   or   "Conv"("conv1", "model.onnx":3) */
static bool parse_origin(tn_parser *p, draft *d, size_t start) {
    const char *first, *name = "", *file;
    uint64_t line = 0;
    if (!tn_parse_name(p, "a file or what it comes from", &first))
        return false;
    file = first;
    bool long_form = tn_parse_accept(p, '(');
    if (long_form &&
        (!tn_parse_name(p, "a name", &name) || !tn_parse_expect(p, ',') || !tn_parse_name(p, "a file", &file)))
        return false;
    if (p->at < p->length && p->text[p->at] == ':' && tn_parse_accept(p, ':') && !tn_parse_u64_text(p, "a line", &line))
        return false;
    if (line > UINT32_MAX)
        return tn_parse_fail(p, start, "a line number above %u", UINT32_MAX);
    if (long_form && !tn_parse_expect(p, ')'))
        return false;
    uint32_t location = tn_location_make(p->g, long_form ? first : "", name, file, (uint32_t)line);
    uint32_t both = location ? tn_location_union(p->g, d->location, location) : 0;
    if (!both) {
        tn_fail(TN_ERR_MEMORY, "out of memory: a location");
        return tn_parse_failed_at(p, start);
    }
    d->location = both;
    return true;
}

/* Name, role, device, origins. */
static bool parse_tail(tn_parser *p, draft *d) {
    static const char *const role[] = {"forward", "gradient", "optimizer", "statistics", "debug"};
    if (tn_parse_peek_string(p) && !tn_parse_name(p, "a name", &d->name))
        return false;
    if (tn_parse_accept_word(p, "role")) {
        while (d->role < sizeof role / sizeof *role && !tn_parse_accept_word(p, role[d->role]))
            d->role++;
        if (d->role == sizeof role / sizeof *role)
            return tn_parse_expected(p, "forward, gradient, optimizer, statistics or debug");
    }
    if (tn_parse_accept_word(p, "device")) {
        uint64_t device;
        size_t start = p->at;
        if (!tn_parse_u64_text(p, "a device's number", &device))
            return false;
        if (device > UINT16_MAX)
            return tn_parse_fail(p, start, "a device's number is at most %d", UINT16_MAX);
        d->placement = (uint16_t)device;
    }
    for (uint32_t count = 0;; count++) {
        tn_parse_skip(p);
        size_t start = p->at;
        if (!tn_parse_accept(p, '@'))
            return true;
        if (count == 16)
            return tn_parse_fail(p, start, "a node has at most 16 origins");
        if (!parse_origin(p, d, start))
            return false;
    }
}

static bool parse_regions(tn_parser *p, draft *d) {
    for (;;) {
        tn_parse_skip(p);
        size_t start = p->at;
        if (!tn_parse_accept_word(p, "region"))
            return true;
        if (p->depth >= TN_MAX_NESTING) {
            tn_fail(TN_ERR_LIMIT, "regions are nested deeper than %d", TN_MAX_NESTING);
            return tn_parse_failed_at(p, start);
        }
        uint32_t mark = p->scope.len;
        tn_region region = tn_region_create(p->g);
        if (!region.id)
            return tn_parse_failed_at(p, start);
        p->depth++;
        bool ok = tn_parse_push(p, &d->regions, &region, sizeof region) && parse_args(p, region, false) &&
                  parse_block(p, region) && leave_scope(p, mark);
        p->depth--;
        if (!ok)
            return false;
    }
}

/* Types as printed stand, where they do not contradict what infer says. */
static bool settle_types(tn_parser *p, const draft *d, tn_node node) {
    const tn_type *types = d->types.data;
    if (tn_node_reinfer(p->g, node) != TN_OK)
        return tn_parse_failed_at(p, d->at);
    for (uint32_t i = 0; i < d->types.len; i++) {
        tn_value value = tn_node_output(p->g, node, i);
        tn_type inferred = tn_value_type(p->g, value);
        if (!tn_type_compatible(p->g, types[i], inferred)) {
            char written[160], found[160];
            return tn_parse_fail(p, d->at, "output %u of %s is written as %s, but is %s", i, d->op->name,
                                 tn_type_describe(p->g, types[i], written, sizeof written),
                                 tn_type_describe(p->g, inferred, found, sizeof found));
        }
        if (tn_value_set_type(p->g, value, types[i]) != TN_OK)
            return tn_parse_failed_at(p, d->at);
    }
    return true;
}

static bool make_node(tn_parser *p, tn_region region, const draft *d, tn_node *out) {
    tn_graph *g = p->g;
    tn_node_desc desc = {.op = d->op,
                         .name = d->name,
                         .input_count = d->inputs.len,
                         .inputs = d->inputs.data,
                         .output_count = d->numbers.len,
                         .attr_count = d->attrs.len,
                         .attrs = d->attrs.data,
                         .region_count = d->regions.len,
                         .regions = d->regions.data};
    if (d->numbers.len == 0 && d->op->min_outputs > 0)
        return tn_parse_fail(p, d->at, "%s has 0 outputs, but gives at least %d", d->op->name, d->op->min_outputs);
    tn_graph_insert_at_end(g, region);
    *out = tn_graph_add_node_typed(g, &desc, d->types.data);
    if (!out->id)
        return tn_parse_failed_at(p, d->at);
    if (!settle_types(p, d, *out))
        return false;
    for (uint32_t i = 0; i < d->numbers.len; i++) {
        tn_value value = tn_node_output(g, *out, i);
        const char *name = ((const char **)d->names.data)[i];
        const tn_parse_list *held = (const tn_parse_list *)d->held.data + i;
        if (name && tn_value_set_name(g, value, name) != TN_OK)
            return tn_parse_failed_at(p, d->at);
        if ((held->cap && !set_contents(p, d->at, value, held)) ||
            !define_value(p, d->at, ((uint64_t *)d->numbers.data)[i], value))
            return false;
    }
    return true;
}

static bool make_return(tn_parser *p, tn_region region, const draft *d, tn_node *out) {
    if (d->numbers.len || d->attrs.len || d->regions.len)
        return tn_parse_fail(p, d->at, "return has neither outputs nor attributes nor regions");
    for (uint32_t i = 0; i < d->inputs.len; i++)
        if (!((tn_value *)d->inputs.data)[i].id)
            return tn_parse_fail(p, d->at, "result %u of return is absent", i);
    if (tn_region_return(p->g, region, d->inputs.len, d->inputs.data) != TN_OK)
        return tn_parse_failed_at(p, d->at);
    *out = tn_region_last(p->g, region);
    if (d->name && tn_node_set_name(p->g, *out, d->name) != TN_OK)
        return tn_parse_failed_at(p, d->at);
    return true;
}

/* The row of an operator: one of the table, or one made for this text. */
static bool find_op(tn_parser *p, tn_string name, size_t at, const tn_op **op) {
    uint64_t made;
    *op = strcmp(name.data, tn_op_return.name) == 0 ? &tn_op_return : tn_op_find(p->g->ops, name.data, name.length);
    if (*op)
        return true;
    if (p->unknown_op) {
        uint32_t id = tn_strings_add(&p->g->strings, name.data, name.length);
        if (id == UINT32_MAX)
            return false;
        if (tn_map_get(&p->unknown, id, &made)) {
            *op = (const tn_op *)(uintptr_t)made;
            return true;
        }
        if (p->unknown_op(p->g, name.data, name.length, op) != TN_OK)
            return tn_parse_failed_at(p, at);
        if (*op)
            return tn_map_put(p->g->heap, &p->unknown, id, (uintptr_t)*op);
    }
    tn_fail(TN_ERR_UNSUPPORTED, "not supported: operator '%s'", name.data);
    return tn_parse_failed_at(p, at);
}

static bool parse_node(tn_parser *p, tn_region region, bool *returned) {
    draft d = {0};
    tn_string op;
    tn_node node = {0};
    tn_parse_skip(p);
    d.at = p->at;
    if (p->text[p->at] == '!') {
        if (!parse_number_after(p, '!', "a node's label (!1)", &d.label))
            return false;
        if (tn_map_get(&p->labels, d.label, NULL))
            return tn_parse_fail(p, d.at, "label !%llu is given twice", (unsigned long long)d.label);
        d.labelled = true;
        tn_parse_skip(p);
    }
    if (p->at < p->length && p->text[p->at] == '%' && !parse_outputs(p, &d))
        return false;
    tn_parse_skip(p);
    size_t op_at = p->at;
    if (tn_parse_accept_word(p, "op") && !tn_parse_peek_string(p))
        return tn_parse_expected(p, "an operator's name in quotes");
    if (!tn_parse_word(p, "an operator or '}'", &op))
        return false;
    if (!find_op(p, op, op_at, &d.op))
        return false;
    if (!parse_inputs(p, &d) || !parse_attrs(p, &d) || !parse_control(p, &d) || !parse_types(p, &d) ||
        !parse_tail(p, &d) || !parse_regions(p, &d))
        return false;
    *returned = d.op == &tn_op_return;
    if (!(*returned ? make_return(p, region, &d, &node) : make_node(p, region, &d, &node)))
        return false;
    tn_node_rec *rec = &p->g->node.data[node.id];
    rec->location = d.location;
    rec->placement = d.placement;
    rec->role = d.role;
    for (uint32_t i = 0; i < d.control.len; i++)
        if (tn_node_add_control(p->g, node, ((tn_node *)d.control.data)[i]) != TN_OK)
            return tn_parse_failed_at(p, d.at);
    return !d.labelled || tn_map_put(p->g->heap, &p->labels, d.label, node.id);
}

/* "{ nodes }" with a return at the end. */
static bool parse_block(tn_parser *p, tn_region region) {
    bool returned = false;
    if (!tn_parse_expect(p, '{'))
        return false;
    while (!tn_parse_accept(p, '}')) {
        if (p->at >= p->length)
            return tn_parse_expected(p, "an operator or '}'");
        if (returned)
            return tn_parse_expected(p, "'}' after return");
        if (!parse_node(p, region, &returned))
            return false;
    }
    return returned || tn_parse_fail(p, p->at - 1, "the region does not end in return");
}

/* --- the whole ---------------------------------------------------------------------------------------------------------------------- */

static bool parse_version(tn_parser *p) {
    uint64_t version;
    if (!tn_parse_accept_word(p, "tenon"))
        return tn_parse_expected(p, "\"tenon 1\"");
    size_t start = p->at;
    if (!tn_parse_u64_text(p, "the version of the text form", &version))
        return false;
    if (version == TN_TEXT_VERSION)
        return true;
    tn_fail(TN_ERR_UNSUPPORTED, "not supported: version %llu of the text form", (unsigned long long)version);
    tn_fail_hint("this library reads version %d", TN_TEXT_VERSION);
    return tn_parse_failed_at(p, start);
}

static bool parse_metadata(tn_parser *p) {
    const char *key;
    tn_string value;
    tn_parse_skip(p);
    size_t start = p->at;
    if (!tn_parse_name(p, "a key", &key))
        return false;
    if (tn_graph_metadata(p->g, key))
        return tn_parse_fail(p, start, "metadata '%s' is given twice", key);
    if (!tn_parse_expect(p, '=') || !tn_parse_string(p, "a string", &value))
        return false;
    return tn_graph_set_metadata(p->g, key, value.data, value.length) == TN_OK || tn_parse_failed_at(p, start);
}

/* A symbol's bounds are set when all is read: expressions stand as they are written, whatever bounds would simplify. */
typedef struct bounds {
    uint32_t symbol;
    int64_t low, high;
} bounds;

static bool parse_symbol(tn_parser *p, tn_parse_list *all) {
    tn_parse_skip(p);
    size_t start = p->at, used = 0;
    tn_dims *dims = &p->g->dims;
    bounds b = {.symbol = dims->symbol.len};
    tn_dim dim = tn_dim_parse(p->g, p->text + p->at, p->length - p->at, &used);
    if (!dim.id)
        return tn_parse_failed_at(p, start);
    if (dims->symbol.len != b.symbol + 1 || dims->symbol.data[b.symbol].expr != dim.id)
        return tn_parse_fail(p, start, "expected a name that no other symbol has");
    p->at += used;
    if (!tn_parse_expect(p, '[') || !tn_parse_i64_text(p, "the lower bound", &b.low) || !tn_parse_expect(p, ',') ||
        !tn_parse_i64_text(p, "the upper bound", &b.high) || !tn_parse_expect(p, ']'))
        return false;
    bool fresh = tn_parse_accept_word(p, "fresh");
    if (b.low > b.high || (!fresh && b.low < 0))
        return tn_parse_fail(p, start, "the bounds [%lld, %lld] hold no size", (long long)b.low, (long long)b.high);
    tn_dim_sym *symbol = &dims->symbol.data[b.symbol];
    if (symbol->fresh != fresh)
        return tn_parse_fail(
            p, start, fresh ? "fresh symbols are called u1, u2, ..." : "a name of this form belongs to fresh symbols");
    if (fresh) {
        symbol->low = INT64_MIN;
        symbol->high = INT64_MAX;
    }
    return tn_parse_push(p, all, &b, sizeof b);
}

static bool parse_function(tn_parser *p) {
    const char *name;
    tn_parse_skip(p);
    size_t start = p->at;
    uint32_t mark = p->scope.len;
    if (!tn_parse_name(p, "a function's name", &name))
        return false;
    tn_region region = tn_region_create(p->g);
    if (!region.id)
        return tn_parse_failed_at(p, start);
    if (!parse_args(p, region, false) || !parse_block(p, region) || !leave_scope(p, mark))
        return false;
    return tn_graph_add_function(p->g, name, region) != UINT32_MAX || tn_parse_failed_at(p, start);
}

static bool parse_main(tn_parser *p) {
    tn_graph *g = p->g;
    tn_region region = tn_graph_region(g);
    if (!parse_args(p, region, true))
        return false;
    if (!tn_parse_accept(p, '-') || !tn_parse_accept(p, '>'))
        return tn_parse_expected(p, "'->' and the outputs' names");
    if (!tn_parse_expect(p, '('))
        return false;
    size_t start = p->at;
    if (!tn_parse_accept(p, ')')) {
        do {
            const char *name;
            if (!tn_parse_name(p, "an output's name", &name))
                return false;
            uint32_t id = tn_strings_add(&g->strings, name, strlen(name));
            if (id == UINT32_MAX || !tn_vec_push(g->heap, &g->output_name, id))
                return false;
        } while (tn_parse_accept(p, ','));
        if (!tn_parse_accept(p, ')'))
            return tn_parse_expected(p, "',' or ')'");
    }
    if (!parse_block(p, region))
        return false;
    if (tn_graph_output_count(g) != g->output_name.len)
        return tn_parse_fail(p, start, "%u outputs are named, %u are returned", g->output_name.len,
                             tn_graph_output_count(g));
    tn_parse_skip(p);
    return p->at == p->length || tn_parse_expected(p, "the end of the text");
}

static bool parse_text(tn_parser *p) {
    tn_parse_list symbols = {0};
    if (!parse_version(p))
        return false;
    while (tn_parse_accept_word(p, "metadata"))
        if (!parse_metadata(p))
            return false;
    while (tn_parse_accept_word(p, "symbol"))
        if (!parse_symbol(p, &symbols))
            return false;
    while (tn_parse_accept_word(p, "function"))
        if (!parse_function(p))
            return false;
    if (!tn_parse_accept_word(p, "graph"))
        return tn_parse_expected(p, "'metadata', 'symbol', 'function' or 'graph'");
    if (!parse_main(p))
        return false;
    for (uint32_t i = 0; i < symbols.len; i++) {
        const bounds *b = (const bounds *)symbols.data + i;
        p->g->dims.symbol.data[b->symbol].low = b->low;
        p->g->dims.symbol.data[b->symbol].high = b->high;
    }
    tn_graph_insert_at_end(p->g, tn_graph_region(p->g));
    return tn_graph_verify_settle(p->g) == TN_OK;
}

tn_graph *tn_graph_parse_with(tn_heap *heap, const tn_op_table *ops, const char *text, size_t length) {
    return tn_graph_parse_any(heap, ops, NULL, text, length);
}

tn_graph *tn_graph_parse_any(tn_heap *heap, const tn_op_table *ops, tn_unknown_op *unknown_op, const char *text,
                             size_t length) {
    if (!text) {
        tn_fail(TN_ERR_USAGE, "text is NULL");
        return NULL;
    }
    tn_parser p = {.text = text, .length = length, .unknown_op = unknown_op, .g = tn_graph_new(heap, ops)};
    if (!p.g)
        return NULL;
    tn_arena_init(&p.scratch, heap);
    bool ok = parse_text(&p);
    for (uint32_t i = 0; i < p.tensors.len; i++)
        tn_tensor_destroy(p.tensors.data[i]);
    tn_vec_free(heap, &p.tensors);
    tn_vec_free(heap, &p.scope);
    tn_map_free(heap, &p.values);
    tn_map_free(heap, &p.labels);
    tn_map_free(heap, &p.unknown);
    tn_arena_free(&p.scratch);
    if (ok)
        return p.g;
    tn_error_record error;
    tn_error_save(&error);
    tn_graph_destroy(p.g);
    tn_error_restore(&error);
    return NULL;
}
