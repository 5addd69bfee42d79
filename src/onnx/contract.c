/* The driver of the way out, and what its rows share. */
#define TN_NO_POSITIONS
#include "onnx/contract.h"

#include <inttypes.h>
#include <stdio.h>
#include <tenon/build.h>

#include "onnx/model.h"
#include "ops/custom.h"

/* --- building ------------------------------------------------------------------------------------------------------------------------ */

tn_type tn_c_type(const tn_contract *c, uint32_t output) {
    return tn_value_type(c->g, tn_node_output(c->g, c->node, output));
}

tn_type tn_c_like(const tn_contract *c, tn_value value, tn_dtype dtype) {
    int rank = tn_value_rank(c->g, value);
    tn_dim dims[TN_MAX_RANK];
    for (int i = 0; i < rank; i++)
        dims[i] = tn_value_dim(c->g, value, i);
    return tn_type_tensor(c->g, dtype, rank, dims);
}

tn_value tn_c_emit(tn_contract *c, const char *op, uint32_t inputs, const tn_value *in, uint32_t attrs,
                   const tn_attr *attr, tn_type type) {
    const tn_onnx_op *row = tn_onnx_find_any("", op);
    if (tn_graph_check(c->g) != TN_OK)
        return (tn_value){0};
    if (!row) {
        tn_fail(TN_ERR_UNSUPPORTED, "not supported in this build: operator %s", op);
        tn_graph_stick(c->g);
        return (tn_value){0};
    }
    tn_node n = tn_graph_add_node_typed(
        c->g,
        &(tn_node_desc){
            .op = &row->op, .input_count = inputs, .inputs = in, .output_count = 1, .attr_count = attrs, .attrs = attr},
        &type);
    return n.id ? tn_node_output(c->g, n, 0) : (tn_value){0};
}

tn_status tn_c_emit_many(tn_contract *c, const char *op, uint32_t inputs, const tn_value *in, uint32_t attrs,
                         const tn_attr *attr, uint32_t outputs, tn_value *out) {
    const tn_onnx_op *row = tn_onnx_find_any("", op);
    tn_type types[16] = {{0}};
    if (!row || outputs > 16)
        return tn_c_unsupported(c, "its operator is not in this build");
    for (uint32_t i = 0; i < outputs && i < tn_node_output_count(c->g, c->node); i++)
        types[i] = tn_c_type(c, i);
    tn_node n = tn_graph_add_node_typed(c->g,
                                        &(tn_node_desc){.op = &row->op,
                                                        .input_count = inputs,
                                                        .inputs = in,
                                                        .output_count = outputs,
                                                        .attr_count = attrs,
                                                        .attrs = attr},
                                        types);
    for (uint32_t i = 0; n.id && i < outputs; i++)
        out[i] = tn_node_output(c->g, n, i);
    return n.id ? TN_OK : tn_graph_check(c->g);
}

tn_value tn_c_one(tn_contract *c, const char *op, tn_value a, tn_type type) {
    return tn_c_emit(c, op, 1, &a, 0, NULL, type);
}

tn_value tn_c_two(tn_contract *c, const char *op, tn_value a, tn_value b, tn_type type) {
    return tn_c_emit(c, op, 2, (tn_value[]){a, b}, 0, NULL, type);
}

tn_value tn_c_cast(tn_contract *c, tn_value a, tn_dtype to) {
    if (tn_value_dtype(c->g, a) == to)
        return a;
    return tn_c_emit(c, "Cast", 1, &a, 1, &TN_A_INT("to", to), tn_c_like(c, a, to));
}

tn_value tn_c_i64s(tn_contract *c, uint32_t count, const int64_t *values) {
    return tn_constant_i64(c->g, 1, count, values);
}

tn_status tn_c_set(tn_contract *c, uint32_t output, tn_value value) {
    if (!value.id)
        return tn_graph_check(c->g);
    c->out[output] = value;
    return TN_OK;
}

tn_status(tn_c_unsupported)(tn_contract *c, const char *why) {
    tn_fail(TN_ERR_UNSUPPORTED, "not supported: operator %s in ONNX: %s", tn_node_op_name(c->g, c->node), why);
    tn_fail_at_node(c->g, c->node);
    return TN_ERR_UNSUPPORTED;
}

/* --- sizes ---------------------------------------------------------------------------------------------------------------------------- */

static int axis_with(const tn_graph *g, tn_value value, tn_dim dim) {
    int rank = value.id ? tn_value_rank(g, value) : -1;
    for (int i = 0; i < rank; i++)
        if (tn_value_dim(g, value, i).id == dim.id)
            return i;
    return -1;
}

/* A value that is there before the node and has the size, nearest first; *axis says where. */
static tn_value find_size(const tn_contract *c, tn_dim dim, int *axis) {
    const tn_graph *g = c->g;
    for (uint32_t i = 0; i < tn_node_input_count(g, c->node); i++)
        if ((*axis = axis_with(g, tn_c_in(c, i), dim)) >= 0)
            return tn_c_in(c, i);
    for (uint32_t i = 0; i < tn_graph_input_count(g); i++)
        if ((*axis = axis_with(g, tn_graph_input(g, i), dim)) >= 0)
            return tn_graph_input(g, i);
    for (tn_node n = c->node; n.id;) {
        tn_region region = tn_node_parent(g, n);
        for (uint32_t i = 0; i < tn_region_arg_count(g, region); i++)
            if ((*axis = axis_with(g, tn_region_arg(g, region, i), dim)) >= 0)
                return tn_region_arg(g, region, i);
        for (tn_node p = tn_node_previous(g, n); p.id; p = tn_node_previous(g, p))
            for (uint32_t i = 0; i < tn_node_output_count(g, p); i++)
                if ((*axis = axis_with(g, tn_node_output(g, p, i), dim)) >= 0)
                    return tn_node_output(g, p, i);
        n = tn_region_owner(g, region);
    }
    return (tn_value){0};
}

/* A value of which an element is known to be the size. */
static tn_value find_element(const tn_contract *c, tn_dim dim, int32_t *at) {
    const tn_graph *g = c->g;
    for (tn_node n = c->node; n.id; n = tn_region_owner(g, tn_node_parent(g, n)))
        for (tn_node p = tn_node_previous(g, n); p.id; p = tn_node_previous(g, p))
            for (uint32_t i = 0; i < tn_node_output_count(g, p); i++) {
                const tn_dim *dims;
                int32_t count = tn_value_contents(g, tn_node_output(g, p, i), &dims);
                for (*at = 0; *at < count; ++*at)
                    if (dims[*at].id == dim.id)
                        return tn_node_output(g, p, i);
            }
    return (tn_value){0};
}

static tn_value size_value(tn_contract *c, tn_dim dim, int depth);

/* A sum or product of sizes, term by term. */
static tn_value folded(tn_contract *c, const char *op, int64_t first, int64_t neutral, uint32_t count,
                       const uint32_t *args, int depth) {
    tn_value sum = first == neutral && count ? (tn_value){0} : tn_c_i64s(c, 1, &first);
    for (uint32_t i = 0; i < count; i++) {
        tn_value term = size_value(c, (tn_dim){args[i]}, depth + 1);
        if (!term.id)
            return term;
        sum = sum.id ? tn_c_two(c, op, sum, term, tn_value_type(c->g, term)) : term;
    }
    return sum;
}

static tn_value two_sizes(tn_contract *c, const tn_dim_expr *e, tn_value a, tn_value b) {
    tn_type type = tn_value_type(c->g, a);
    switch ((tn_dim_kind)e->kind) {
    case TN_DIM_MIN: return tn_c_two(c, "Min", a, b, type);
    case TN_DIM_MAX: return tn_c_two(c, "Max", a, b, type);
    case TN_DIM_MOD: return tn_c_two(c, "Mod", a, b, type);
    case TN_DIM_FLOORDIV: /* exact in whole numbers: (a - a mod b) / b */
        return tn_c_two(c, "Div", tn_c_two(c, "Sub", a, tn_c_two(c, "Mod", a, b, type), type), b, type);
    case TN_DIM_CEILDIV: {
        tn_value less = tn_c_two(c, "Sub", tn_c_two(c, "Add", a, b, type), tn_c_i64s(c, 1, (int64_t[]){1}), type);
        return tn_c_two(c, "Div", tn_c_two(c, "Sub", less, tn_c_two(c, "Mod", less, b, type), type), b, type);
    }
    case TN_DIM_BROADCAST: {
        tn_value one = tn_c_two(c, "Equal", a, tn_c_i64s(c, 1, (int64_t[]){1}), tn_c_like(c, a, TN_BOOL));
        return tn_c_emit(c, "Where", 3, (tn_value[]){one, b, a}, 0, NULL, type);
    }
    default: return (tn_value){0};
    }
}

/* One size as i64[1]. */
static tn_value size_value(tn_contract *c, tn_dim dim, int depth) {
    tn_graph *g = c->g;
    int64_t known;
    int axis;
    int32_t at;
    if (tn_dim_is_const(g, dim, &known))
        return tn_c_i64s(c, 1, &known);
    tn_dim one = tn_dim_const(g, 1);
    tn_type type = tn_type_tensor(g, TN_I64, 1, &one);
    tn_value from = find_size(c, dim, &axis);
    if (from.id)
        return tn_c_emit(c, "Shape", 1, &from, 2, (tn_attr[]){TN_A_INT("start", axis), TN_A_INT("end", axis + 1)},
                         type);
    if ((from = find_element(c, dim, &at)).id) {
        tn_value list =
            tn_c_emit(c, "Reshape", 2, (tn_value[]){from, tn_c_i64s(c, 1, (int64_t[]){-1})}, 0, NULL, (tn_type){0});
        tn_value index = tn_c_i64s(c, 1, (int64_t[]){at});
        tn_value element = tn_c_emit(c, "Gather", 2, (tn_value[]){list, index}, 0, NULL, type);
        return tn_c_emit(c, "Cast", 1, &element, 1, &TN_A_INT("to", TN_I64), type);
    }
    tn_dim_expr e = g->dims.expr.data[dim.id];
    const uint32_t *args = g->dims.arg.data + e.args;
    uint32_t copy[64];
    if (e.kind == TN_DIM_SYMBOL || e.nargs > 64 || depth > 32) {
        tn_c_unsupported(c, "a size of it is nowhere to be read");
        tn_graph_stick(g);
        return (tn_value){0};
    }
    memcpy(copy, args, e.nargs * sizeof *args);
    if (e.kind == TN_DIM_ADD || e.kind == TN_DIM_MUL)
        return folded(c, e.kind == TN_DIM_ADD ? "Add" : "Mul", e.constant, e.kind == TN_DIM_MUL, e.nargs, copy, depth);
    tn_value made = e.nargs ? size_value(c, (tn_dim){copy[0]}, depth + 1) : (tn_value){0};
    for (uint32_t i = 1; i < e.nargs && made.id; i++) {
        tn_value next = size_value(c, (tn_dim){copy[i]}, depth + 1);
        made = next.id ? two_sizes(c, &e, made, next) : next;
    }
    return made;
}

tn_value tn_c_dims(tn_contract *c, uint32_t count, const tn_dim *given) {
    int64_t values[TN_MAX_RANK];
    tn_dim dims[TN_MAX_RANK];
    tn_value parts[TN_MAX_RANK];
    bool known = true;
    memcpy(dims, given, count * sizeof *dims);
    for (uint32_t i = 0; i < count; i++)
        known = tn_dim_is_const(c->g, dims[i], &values[i]) && known;
    if (known)
        return tn_c_i64s(c, count, values);
    for (uint32_t i = 0; i < count; i++)
        if (!(parts[i] = size_value(c, dims[i], 0)).id)
            return parts[i];
    tn_dim length = tn_dim_const(c->g, count);
    return count == 1 ? parts[0]
                      : tn_c_emit(c, "Concat", count, parts, 1, &TN_A_INT("axis", 0),
                                  tn_type_tensor(c->g, TN_I64, 1, &length));
}

/* --- the driver --------------------------------------------------------------------------------------------------------------------- */

const tn_contract_row *tn_contract_find(const char *primitive) {
    static const tn_contract_row *const tables[] = {tn_contract_scalar, tn_contract_move, tn_contract_reduce,
                                                    tn_contract_other};
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const tn_contract_row *row = tables[t]; row->primitive; row++)
            if (strcmp(row->primitive, primitive) == 0)
                return row;
    return NULL;
}

static tn_status contract_region(tn_contract *c, tn_region region, int depth);

/* The ONNX row that runs as this host operator, or NULL. */
static const tn_onnx_op *row_of_host(const tn_op *host) {
    uint32_t count;
    const tn_onnx_family *const *families = tn_onnx_families(&count);
    for (uint32_t f = 0; f < count; f++)
        for (uint32_t i = 0; i < families[f]->count; i++)
            if (families[f]->rows[i].host == host)
                return &families[f]->rows[i];
    return NULL;
}

/* A host operator takes its ONNX node as it is: the same inputs, outputs and attributes. So does an operator of a user. */
static tn_status as_it_stands(tn_contract *c, const tn_op *op) {
    tn_graph *g = c->g;
    uint32_t inputs = tn_node_input_count(g, c->node), outputs = tn_node_output_count(g, c->node),
             attrs = tn_node_attr_count(g, c->node);
    tn_value *in = tn_alloc_array(g->heap, inputs + 1u, sizeof *in);
    tn_type *types = tn_alloc_array(g->heap, outputs + 1u, sizeof *types);
    tn_attr *list = tn_alloc_array(g->heap, attrs + 1u, sizeof *list);
    tn_status status = in && types && list ? TN_OK : TN_ERR_MEMORY;
    for (uint32_t i = 0; status == TN_OK && i < inputs; i++)
        in[i] = tn_c_in(c, i);
    for (uint32_t i = 0; status == TN_OK && i < outputs; i++)
        types[i] = tn_c_type(c, i);
    for (uint32_t i = 0; status == TN_OK && i < attrs; i++) {
        list[i] = *tn_node_attr_at(g, c->node, i);
        list[i].key = tn_strings_text(&g->strings, list[i].name);
    }
    if (status == TN_OK) {
        tn_node n = tn_graph_add_node_typed(g,
                                            &(tn_node_desc){.op = op,
                                                            .name = tn_node_name(g, c->node),
                                                            .input_count = inputs,
                                                            .inputs = in,
                                                            .output_count = outputs,
                                                            .attr_count = attrs,
                                                            .attrs = list},
                                            types);
        status = n.id ? TN_OK : tn_graph_check(g);
        for (uint32_t i = 0; n.id && i < outputs; i++)
            c->out[i] = tn_node_output(g, n, i);
    }
    tn_free(g->heap, in);
    tn_free(g->heap, types);
    tn_free(g->heap, list);
    return status;
}

/* An operator of a user: a node of its domain, which whoever reads the file must know. */
static tn_status from_custom(tn_contract *c, const tn_custom_row *row) {
    char name[600];
    const tn_op *op;
    int n = snprintf(name, sizeof name, "onnx.%s%s%s", strcmp(row->domain, "ai.onnx") ? row->domain : "",
                     strcmp(row->domain, "ai.onnx") ? "." : "", row->name);
    TN_TRY(tn_onnx_make_row(c->g, name, (size_t)n, &op));
    ((tn_op *)(uintptr_t)op)->traits |= row->op.traits & TN_EFFECT; /* stays, though nobody reads its results */
    return as_it_stands(c, op);
}

tn_status tn_c_define(tn_contract *c, const tn_value *inputs) {
    const tn_op *op = tn_node_op(c->g, c->node);
    c->defined = true;
    tn_status status = op->define(c->g, c->node, inputs, c->out);
    return status == TN_OK ? tn_graph_check(c->g) : status;
}

/* A composite by its definition, a call by what it calls. */
static tn_status define(tn_contract *c, const tn_op *op) {
    tn_graph *g = c->g;
    uint32_t inputs = tn_node_input_count(g, c->node);
    tn_value *in = tn_alloc_array(g->heap, inputs + 1u, sizeof *in);
    if (!in)
        return tn_error_status();
    for (uint32_t i = 0; i < inputs; i++)
        in[i] = tn_c_in(c, i);
    tn_status status;
    if (op->traits & TN_CALL) {
        tn_region callee = tn_graph_function_region(g, (uint32_t)tn_attr_int(g, c->node, "callee"));
        c->defined = true;
        status = tn_region_copy(g, g, callee, inputs, in, tn_node_output_count(g, c->node), c->out, NULL, NULL);
    } else {
        status = tn_c_define(c, in);
    }
    tn_free(g->heap, in);
    return status == TN_OK ? tn_graph_check(g) : status;
}

static tn_status take_over(tn_contract *c) {
    tn_graph *g = c->g;
    for (uint32_t i = 0; i < tn_node_output_count(g, c->node); i++) {
        tn_value old = tn_node_output(g, c->node, i);
        if (!c->out[i].id) {
            if (tn_value_use_count(g, old))
                return tn_c_unsupported(c, "an output of it");
            continue;
        }
        if (*tn_value_name(g, old) &&
            (!*tn_value_name(g, c->out[i]) || tn_node_region_count(g, tn_value_producer(g, c->out[i]))))
            TN_TRY(tn_value_set_name(g, c->out[i], tn_value_name(g, old)));
        TN_TRY(tn_value_replace_uses(g, old, c->out[i]));
    }
    return tn_node_remove(g, c->node);
}

static tn_status contract_node(tn_contract *c, tn_node *next, int depth) {
    tn_graph *g = c->g;
    const tn_op *op = tn_node_op(g, c->node);
    tn_node node = c->node, before = tn_node_previous(g, node);
    for (uint32_t i = 0; i < tn_node_region_count(g, node); i++)
        TN_TRY(contract_region(c, tn_node_region(g, node, i), depth + 1));
    c->node = node;
    if (op->dialect == TN_DIALECT_ONNX || op->traits & (TN_TERMINATOR | TN_CONSTANT))
        return TN_OK;
    uint32_t outputs = tn_node_output_count(g, node);
    tn_value *out = tn_alloc_array(g->heap, outputs + 1u, sizeof *out);
    if (!out)
        return tn_error_status();
    c->out = out;
    const tn_custom_row *custom = tn_custom_row_of(op);
    const tn_contract_row *row = custom ? NULL : tn_contract_find(op->name);
    const tn_onnx_op *host = row || custom ? NULL : row_of_host(op);
    c->defined = false;
    tn_graph_insert_before(g, node);
    tn_graph_at_location(g, tn_node_location(g, node));
    tn_status status = TN_OK;
    if (row)
        status = row->run(c);
    else if (host)
        status = as_it_stands(c, &host->op);
    else if (custom)
        status = from_custom(c, custom);
    else if ((op->dialect == TN_DIALECT_COMPOSITE && op->define) || op->traits & TN_CALL)
        status = define(c, op);
    else
        status = tn_c_unsupported(c, "there is none");
    if (status == TN_OK)
        status = tn_graph_check(g);
    if (status == TN_OK)
        status = take_over(c);
    tn_free(g->heap, out);
    if (status == TN_OK && c->defined)
        *next = before.id ? tn_node_next(g, before) : tn_region_first(g, tn_node_parent(g, *next));
    return status;
}

static tn_status contract_region(tn_contract *c, tn_region region, int depth) {
    if (depth > TN_MAX_NESTING)
        return tn_fail(TN_ERR_LIMIT, "regions are nested deeper than %d", TN_MAX_NESTING);
    for (tn_node n = tn_region_first(c->g, region), next; n.id; n = next) {
        next = tn_node_next(c->g, n);
        c->node = n;
        TN_TRY(contract_node(c, &next, depth));
    }
    return TN_OK;
}

/* Nodes whose results nobody reads any more: sizes and repeated values that operators do not need. Last ones first. */
static tn_status sweep(tn_graph *g, tn_region region, int depth) {
    for (tn_node n = tn_region_last(g, region), before; n.id; n = before) {
        before = tn_node_previous(g, n);
        const tn_op *op = tn_node_op(g, n);
        bool used = op->traits & (TN_TERMINATOR | TN_EFFECT);
        for (uint32_t i = 0; i < tn_node_output_count(g, n) && !used; i++)
            used = tn_value_use_count(g, tn_node_output(g, n, i)) > 0;
        for (uint32_t i = 0; i < tn_node_region_count(g, n) && used && depth < TN_MAX_NESTING; i++)
            TN_TRY(sweep(g, tn_node_region(g, n, i), depth + 1));
        if (!used)
            TN_TRY(tn_node_remove(g, n));
    }
    return TN_OK;
}

tn_status tn_onnx_contract(tn_graph *graph, int opset) {
    tn_contract c = {.g = graph, .opset = opset};
    tn_insertion at = tn_graph_insertion(graph);
    tn_status status = contract_region(&c, tn_graph_region(graph), 0);
    if (status == TN_OK)
        status = sweep(graph, tn_graph_region(graph), 0);
    if (status == TN_OK)
        tn_graph_set_insertion(graph, at);
    tn_map_free(graph->heap, &c.spread);
    return status;
}
