/* Sets of users' operators: rows checked and copied, tables over them, graphs that use them. */
#include "ops/custom.h"

#include <stdio.h>

#include "ir/graph.h"
#include "ir/text.h"
#include "ops/ops.h"

enum { MAX_NAME = 200, MAX_ATTRIBUTES = 256, MAX_ROWS_OF_SET = 4096 };

/* --- sets --------------------------------------------------------------------------------------------------------------------------- */

tn_op_set *tn_op_set_create(tn_heap *heap) {
    tn_op_set *ops = tn_alloc(heap, sizeof *ops);
    if (!ops)
        return NULL;
    ops->heap = heap;
    tn_arena_init(&ops->arena, heap);
    if ((ops->mutex = tn_mutex_create(heap)))
        return ops;
    tn_free(heap, ops);
    return NULL;
}

uint32_t tn_op_set_count(const tn_op_set *ops) {
    return ops ? ops->rows.len : 0;
}

const tn_custom_row *tn_op_set_row(const tn_op_set *ops, uint32_t index) {
    return index < ops->rows.len ? ops->rows.data[index]->extra : NULL;
}

const tn_op_table *tn_op_set_table(tn_op_set *ops, const tn_op_table *base) {
    const tn_op_table *found = NULL;
    tn_mutex_lock(ops->mutex);
    ops->sealed = true;
    for (uint32_t i = 0; i < ops->tables && !found; i++)
        if (ops->table[i].next == base)
            found = &ops->table[i];
    if (!found && ops->tables < sizeof ops->table / sizeof *ops->table) {
        ops->table[ops->tables] = (tn_op_table){.rows = ops->rows.data, .count = ops->rows.len, .next = base};
        found = &ops->table[ops->tables++];
    }
    tn_mutex_unlock(ops->mutex);
    if (!found)
        tn_fail(TN_ERR_INTERNAL, "a set of operators over a third table");
    return found;
}

const tn_custom_row *tn_custom_row_of(const tn_op *op) {
    return op && op->dialect == TN_DIALECT_CUSTOM && op->eval == tn_custom_run_eval ? op->extra : NULL;
}

const tn_op *tn_custom_find(const tn_op_table *table, const char *domain, size_t length, const char *name, int version,
                            bool *other) {
    const tn_op *best = NULL;
    int newest = 0;
    if (!length) {
        domain = "ai.onnx";
        length = strlen(domain);
    }
    for (; table; table = table->next) {
        if (!table->count || !tn_custom_row_of(table->rows[0]))
            continue;
        for (uint32_t i = 0; i < table->count; i++) {
            const tn_custom_row *row = tn_custom_row_of(table->rows[i]);
            if (!row || strcmp(row->name, name) != 0 || strlen(row->domain) != length ||
                memcmp(row->domain, domain, length) != 0)
                continue;
            if (version > 0 ? version >= row->since && version <= row->until : row->since > newest) {
                best = &row->op;
                newest = row->since;
            } else if (other) {
                *other = true;
            }
        }
    }
    return best;
}

/* --- rows ----------------------------------------------------------------------------------------------------------------------------- */

static bool is_word(const char *text, bool domain) {
    size_t n = text ? strlen(text) : 0;
    if (!n || n > MAX_NAME / 2 || (domain && (text[0] == '.' || text[n - 1] == '.')))
        return false;
    for (size_t i = 0; i < n; i++) {
        char c = text[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        bool later = i > 0 && c >= '0' && c <= '9';
        if (!letter && !later && !(domain && i > 0 && (c == '.' || c == '-')))
            return false;
    }
    return true;
}

static tn_status bad_row(const tn_custom_op *o, const char *what) {
    return tn_fail(TN_ERR_USAGE, "operator '%s.%s': %s", o->domain ? o->domain : "", o->name ? o->name : "", what);
}

static tn_status check_row(const tn_custom_op *o) {
    if (!is_word(o->domain, true)) {
        tn_fail(TN_ERR_USAGE, "an operator's domain '%s' is no name", o->domain ? o->domain : "");
        tn_fail_hint("for example com.example: letters, digits, '_', '-', '.'");
        return TN_ERR_USAGE;
    }
    if (!is_word(o->name, false)) {
        tn_fail(TN_ERR_USAGE, "an operator's name '%s' is no name", o->name ? o->name : "");
        tn_fail_hint("letters, digits, '_'");
        return TN_ERR_USAGE;
    }
    if (strcmp(o->domain, "onnx") == 0 || strncmp(o->domain, "onnx.", 5) == 0)
        return bad_row(o, "the domain 'onnx' is taken; the standard's own is 'ai.onnx'");
    if (o->since < 0 || o->until < 0 || (o->until && o->until < o->since))
        return bad_row(o, "its versions are no range");
    if (o->min_inputs < 0 || o->max_inputs < -1 || (o->max_inputs >= 0 && o->max_inputs < o->min_inputs) ||
        o->min_inputs > INT16_MAX || o->max_inputs > INT16_MAX)
        return bad_row(o, "the numbers of inputs are no range");
    if (o->min_outputs < 0 || o->max_outputs < -1 || (o->max_outputs >= 0 && o->max_outputs < o->min_outputs) ||
        o->min_outputs > INT16_MAX || o->max_outputs > INT16_MAX)
        return bad_row(o, "the numbers of outputs are no range");
    if (!o->eval)
        return bad_row(o, "it has no eval");
    if (o->flags >> 5)
        return bad_row(o, "a flag is not known");
    return TN_OK;
}

static tn_status check_overlap(const tn_op_set *ops, const tn_custom_op *o) {
    int since = o->since ? o->since : 1, until = o->until ? o->until : INT32_MAX;
    for (uint32_t i = 0; i < ops->rows.len; i++) {
        const tn_custom_row *r = tn_op_set_row(ops, i);
        if (strcmp(r->domain, o->domain) == 0 && strcmp(r->name, o->name) == 0 && since <= r->until &&
            r->since <= until)
            return bad_row(o, "there is a row for some of these versions already");
    }
    return TN_OK;
}

static const char *copy_text(tn_op_set *ops, const char *text) {
    return text ? tn_arena_strndup(&ops->arena, text, strlen(text)) : NULL;
}

/* The schema in our own form, ended by a NULL name. NULL with the error set. */
static const tn_attr_spec *copy_schema(tn_op_set *ops, const tn_custom_op *o) {
    static const uint8_t kinds[] = {
        [TN_ATTRIBUTE_INT] = TN_ATTR_INT,       [TN_ATTRIBUTE_FLOAT] = TN_ATTR_FLOAT,
        [TN_ATTRIBUTE_STRING] = TN_ATTR_STRING, [TN_ATTRIBUTE_INTS] = TN_ATTR_INTS,
        [TN_ATTRIBUTE_FLOATS] = TN_ATTR_FLOATS, [TN_ATTRIBUTE_STRINGS] = TN_ATTR_STRINGS,
        [TN_ATTRIBUTE_TENSOR] = TN_ATTR_TENSOR,
    };
    uint32_t n = 0;
    while (o->attributes && n <= MAX_ATTRIBUTES && o->attributes[n].name)
        n++;
    tn_attr_spec *specs = n > MAX_ATTRIBUTES ? NULL : tn_arena_alloc(&ops->arena, (n + 1) * sizeof *specs);
    if (n > MAX_ATTRIBUTES)
        bad_row(o, "its list of attributes has no end");
    for (uint32_t i = 0; specs && i < n; i++) {
        const tn_attribute_spec *a = &o->attributes[i];
        bool good = a->kind >= TN_ATTRIBUTE_INT && a->kind <= TN_ATTRIBUTE_TENSOR && *a->name &&
                    strncmp(a->name, "__", 2) != 0 && strlen(a->name) <= MAX_NAME;
        for (uint32_t k = 0; k < i && good; k++)
            good = strcmp(specs[k].name, a->name) != 0;
        if (!good) {
            tn_fail(TN_ERR_USAGE, "operator '%s.%s': attribute '%s' has a bad name or kind, or is there twice",
                    o->domain, o->name, a->name);
            return NULL;
        }
        specs[i] = (tn_attr_spec){.name = copy_text(ops, a->name),
                                  .kind = kinds[a->kind],
                                  .required = a->required,
                                  .i = a->int_default,
                                  .f = a->float_default,
                                  .s = copy_text(ops, a->string_default),
                                  .allowed = copy_text(ops, a->allowed)};
        if (!specs[i].name || (a->string_default && !specs[i].s) || (a->allowed && !specs[i].allowed))
            return NULL;
    }
    return specs;
}

static tn_custom_row *make_row(tn_op_set *ops, const tn_custom_op *o) {
    char full[MAX_NAME + 16];
    int length = o->since > 1 ? snprintf(full, sizeof full, "%s.%s.%d", o->domain, o->name, o->since)
                              : snprintf(full, sizeof full, "%s.%s", o->domain, o->name);
    tn_custom_row *row = tn_arena_alloc(&ops->arena, sizeof *row);
    char *name = row ? tn_arena_strndup(&ops->arena, full, (size_t)length) : NULL;
    const tn_attr_spec *schema = name ? copy_schema(ops, o) : NULL;
    if (!schema || !(row->domain = copy_text(ops, o->domain)) || !(row->name = copy_text(ops, o->name)))
        return NULL;
    bool one = o->min_outputs == 0 && o->max_outputs == 0;
    row->since = o->since ? o->since : 1;
    row->until = o->until ? o->until : INT32_MAX;
    row->flags = o->flags;
    row->infer = o->infer;
    row->eval = o->eval;
    row->user = o->user;
    row->op = (tn_op){.name = name,
                      .dialect = TN_DIALECT_CUSTOM,
                      .min_inputs = (int16_t)o->min_inputs,
                      .max_inputs = (int16_t)o->max_inputs,
                      .min_outputs = one ? 1 : (int16_t)o->min_outputs,
                      .max_outputs = one ? 1 : (int16_t)o->max_outputs,
                      .traits = TN_HOST,
                      .attrs = schema,
                      .inputs = copy_text(ops, o->inputs),
                      .doc = copy_text(ops, o->doc),
                      .infer = tn_custom_run_infer,
                      .eval = tn_custom_run_eval,
                      .lowering = TN_LOWER_HOST,
                      .no_gradient = "the operator is a user's and states no gradient",
                      .extra = row};
    if (o->flags & TN_CUSTOM_EFFECT)
        row->op.traits |= TN_EFFECT;
    if (o->flags & TN_CUSTOM_RANDOM)
        row->op.traits |= TN_RANDOM;
    if (o->flags & TN_CUSTOM_OPTIONAL)
        row->op.traits |= TN_OPTIONAL_INPUTS;
    return (o->inputs && !row->op.inputs) || (o->doc && !row->op.doc) ? NULL : row;
}

tn_status tn_op_set_add(tn_op_set *ops, const tn_custom_op *op) {
    if (!ops || !op)
        return tn_fail(TN_ERR_USAGE, "tn_op_set_add: the %s is NULL", ops ? "operator" : "set");
    if (op->size != sizeof *op) {
        tn_fail(TN_ERR_USAGE, "tn_custom_op: the size is %zu, not %zu", op->size, sizeof *op);
        tn_fail_hint("make it with TN_OPTIONS(tn_custom_op, ...)");
        return TN_ERR_USAGE;
    }
    tn_mutex_lock(ops->mutex);
    bool sealed = ops->sealed;
    tn_mutex_unlock(ops->mutex);
    if (sealed)
        return tn_fail(TN_ERR_USAGE, "a set of operators that is in use takes no more");
    if (ops->rows.len == MAX_ROWS_OF_SET)
        return tn_fail(TN_ERR_LIMIT, "a set of operators holds at most %d", MAX_ROWS_OF_SET);
    TN_TRY(check_row(op));
    TN_TRY(check_overlap(ops, op));
    tn_custom_row *row = make_row(ops, op);
    return row && tn_vec_push(ops->heap, &ops->rows, &row->op) ? TN_OK : tn_error_status();
}

/* --- graphs ------------------------------------------------------------------------------------------------------------------------------ */

tn_graph *tn_graph_create_using(tn_heap *heap, tn_op_set *ops) {
    const tn_op_table *table = ops ? tn_op_set_table(ops, tn_ops_table()) : tn_ops_table();
    return table ? tn_graph_new(heap, table) : NULL;
}

tn_graph *tn_graph_parse_using(tn_heap *heap, tn_op_set *ops, const char *text, size_t length) {
    const tn_op_table *table = ops ? tn_op_set_table(ops, tn_ops_table()) : tn_ops_table();
    return table ? tn_graph_parse_with(heap, table, text, length) : NULL;
}

/* --- building ------------------------------------------------------------------------------------------------------------------------------ */

static const tn_op *find_by_name(const tn_graph *g, const char *op) {
    const char *dot = strrchr(op, '.');
    const tn_op *row = dot ? tn_custom_find(g->ops, op, (size_t)(dot - op), dot + 1, 0, NULL) : NULL;
    if (!row && !tn_custom_row_of(row = tn_op_find(g->ops, op, strlen(op))))
        row = NULL;
    return row;
}

static bool convert(const tn_attribute *a, tn_attr *out) {
    switch (a->kind) {
    case TN_ATTRIBUTE_INT: *out = TN_A_INT(a->name, a->i); return true;
    case TN_ATTRIBUTE_FLOAT: *out = TN_A_FLOAT(a->name, a->f); return true;
    case TN_ATTRIBUTE_STRING: *out = TN_A_STRING(a->name, a->s ? a->s : "", a->s ? strlen(a->s) : 0); return true;
    case TN_ATTRIBUTE_INTS: *out = TN_A_INTS(a->name, a->count, a->ints); return a->ints || !a->count;
    case TN_ATTRIBUTE_FLOATS: *out = TN_A_FLOATS(a->name, a->count, a->floats); return a->floats || !a->count;
    case TN_ATTRIBUTE_STRINGS:
        *out = (tn_attr){.key = a->name, .kind = TN_ATTR_STRINGS, .count = a->count, .as.strings = a->strings};
        return a->strings || !a->count;
    case TN_ATTRIBUTE_TENSOR: *out = TN_A_TENSOR(a->name, a->tensor); return a->tensor != NULL;
    }
    return false;
}

static tn_node add_node(tn_graph *g, const char *op, uint32_t inputs, const tn_value *input, uint32_t attributes,
                        const tn_attribute *attribute, uint32_t outputs) {
    tn_node none = {0};
    if (tn_graph_changeable(g) != TN_OK)
        return none;
    const tn_op *row = op ? find_by_name(g, op) : NULL;
    if (!row) {
        tn_fail(TN_ERR_USAGE, "the graph has no operator '%s'", op ? op : "(null)");
        tn_fail_hint("make the graph with tn_graph_create_using and a set that holds it");
        tn_graph_stick(g);
        return none;
    }
    tn_attr *attrs = attributes > MAX_ATTRIBUTES ? NULL : tn_alloc_array(g->heap, attributes + 1u, sizeof *attrs);
    bool good = attrs != NULL;
    if (good && ((attributes && !attribute) || (inputs && !input))) {
        tn_fail(TN_ERR_USAGE, "%s: the %s are NULL", op, inputs && !input ? "inputs" : "attributes");
        good = false;
    }
    if (attributes > MAX_ATTRIBUTES)
        tn_fail(TN_ERR_USAGE, "%s: %u attributes", op, attributes);
    for (uint32_t i = 0; i < attributes && good; i++)
        if (!attribute[i].name || !convert(&attribute[i], &attrs[i])) {
            tn_fail(TN_ERR_USAGE, "%s: attribute %u has no name, kind or value", op, i);
            good = false;
        }
    tn_node node = none;
    if (good)
        node = tn_graph_add_node(g, &(tn_node_desc){.op = row,
                                                    .input_count = inputs,
                                                    .inputs = input,
                                                    .output_count = outputs,
                                                    .attr_count = attributes,
                                                    .attrs = attrs});
    else
        tn_graph_stick(g);
    tn_free(g->heap, attrs);
    return node;
}

tn_value(tn_custom)(tn_graph *graph, const char *op, uint32_t inputs, const tn_value *input, uint32_t attributes,
                    const tn_attribute *attribute) {
    tn_node node = add_node(graph, op, inputs, input, attributes, attribute, 1);
    return node.id ? tn_node_output(graph, node, 0) : (tn_value){0};
}

tn_status(tn_custom_outputs)(tn_graph *graph, const char *op, uint32_t inputs, const tn_value *input,
                             uint32_t attributes, const tn_attribute *attribute, uint32_t outputs, tn_value *output) {
    if (!outputs || !output) {
        if (tn_graph_changeable(graph) == TN_OK) {
            tn_fail(TN_ERR_USAGE, "tn_custom_outputs: no outputs");
            tn_graph_stick(graph);
        }
        return graph ? tn_graph_check(graph) : tn_error_status();
    }
    tn_node node = add_node(graph, op, inputs, input, attributes, attribute, outputs);
    for (uint32_t i = 0; i < outputs; i++)
        output[i] = node.id ? tn_node_output(graph, node, i) : (tn_value){0};
    return node.id ? TN_OK : tn_graph_check(graph);
}
