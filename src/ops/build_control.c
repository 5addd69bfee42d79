/* Builder: control flow, with bodies as callbacks that build, and debugging. */
#include <inttypes.h>

#include "ops/builder.h"

/* Builds a region: arguments of `types` (named after the values on entry), `body`'s results returned. Null on failure. */
static tn_region build_region(tn_graph *g, uint32_t args, const tn_type *types, const tn_value *named, tn_body *body,
                              void *ctx, uint32_t count) {
    const tn_region none = {0};
    tn_value *values =
        tn_alloc_array(g->heap, (size_t)args + count + 1, sizeof *values); /* one more than a body may fill */
    if (!values) {
        tn_graph_stick(g);
        return none;
    }
    tn_region region = tn_region_create(g);
    tn_insertion saved = tn_graph_insertion(g);
    for (uint32_t i = 0; region.id && i < args; i++)
        values[i] = tn_region_add_arg(g, region, types[i], named[i].id ? tn_value_name(g, named[i]) : "");
    tn_status status = tn_graph_check(g);
    if (status == TN_OK) {
        tn_graph_insert_at_end(g, region);
        body(ctx, g, values, values + args);
        tn_graph_set_insertion(g, saved);
        status = tn_graph_check(g);
    }
    for (uint32_t i = 0; status == TN_OK && i < count; i++)
        if (!values[args + i].id) {
            tn_build_fail(g, TN_ERR_USAGE, "a body did not fill its result %" PRIu32, i);
            status = TN_ERR_USAGE;
        }
    if (status == TN_OK)
        status = tn_region_return(g, region, count, values + args);
    tn_free(g->heap, values);
    return status == TN_OK ? region : none;
}

/* Adds the node; its outputs, or null values, are the results. */
static tn_status finish(tn_graph *g, const char *row, uint32_t inputs, const tn_value *input, uint32_t attrs,
                        const tn_attr *attr, uint32_t regions, const tn_region *region, uint32_t count,
                        tn_value *results) {
    for (uint32_t i = 0; i < count; i++)
        results[i] = TN_NULL_VALUE;
    for (uint32_t i = 0; i < regions; i++)
        if (!region[i].id)
            return tn_graph_check(g);
    tn_node node = tn_graph_add_node(g, &(tn_node_desc){.op = tn_op_find(g->ops, row, strlen(row)),
                                                        .input_count = inputs,
                                                        .inputs = input,
                                                        .output_count = count,
                                                        .attr_count = attrs,
                                                        .attrs = attr,
                                                        .region_count = regions,
                                                        .regions = region});
    if (!node.id)
        return tn_graph_check(g);
    for (uint32_t i = 0; i < count; i++)
        results[i] = tn_node_output(g, node, i);
    return TN_OK;
}

static bool ready(tn_graph *g, const char *function, bool bodies, uint32_t count, const tn_value *values,
                  uint32_t outputs, const tn_value *results) {
    if (tn_graph_changeable(g) != TN_OK)
        return false;
    if (!bodies || (count && !values) || (outputs && !results)) {
        tn_build_fail(g, TN_ERR_USAGE, "%s: a body or a list is NULL", function);
        return false;
    }
    return tn_build_ready(g, function, count, values);
}

tn_status tn_if(tn_graph *g, tn_value cond, tn_body *then_body, tn_body *else_body, void *ctx, uint32_t count,
                tn_value *results) {
    if (!ready(g, "tn_if", then_body && else_body, 1, &cond, count, results))
        return tn_error_status();
    tn_region regions[2] = {build_region(g, 0, NULL, NULL, then_body, ctx, count), {0}};
    if (regions[0].id)
        regions[1] = build_region(g, 0, NULL, NULL, else_body, ctx, count);
    return finish(g, "if", 1, &cond, 0, NULL, 2, regions, count, results);
}

tn_status tn_while(tn_graph *g, uint32_t count, const tn_value *init, const tn_type *carried, tn_body *cond,
                   tn_body *body, void *ctx, uint32_t stacked, tn_value *results) {
    if (!ready(g, "tn_while", cond && body, count, init, count + stacked, results))
        return tn_error_status();
    tn_type *types = tn_alloc_array(g->heap, count, sizeof *types);
    if (!types) {
        tn_graph_stick(g);
        return tn_error_status();
    }
    for (uint32_t i = 0; i < count; i++)
        types[i] = carried && carried[i].id ? carried[i] : tn_value_type(g, init[i]);
    tn_region regions[2] = {build_region(g, count, types, init, cond, ctx, 1), {0}};
    if (regions[0].id)
        regions[1] = build_region(g, count, types, init, body, ctx, count + stacked);
    tn_free(g->heap, types);
    return finish(g, "while", count, init, 0, NULL, 2, regions, count + stacked, results);
}

tn_status tn_scan(tn_graph *g, uint32_t count, const tn_value *init, uint32_t scanned, const tn_value *xs,
                  tn_body *body, void *ctx, uint32_t stacked, tn_value *results) {
    if (!ready(g, "tn_scan", body != NULL, count, init, count + stacked, results) ||
        !ready(g, "tn_scan", body != NULL, scanned, xs, 0, NULL))
        return tn_error_status();
    uint32_t inputs = count + scanned;
    tn_value *values = tn_alloc_array(g->heap, inputs, sizeof *values);
    tn_type *types = values ? tn_alloc_array(g->heap, inputs, sizeof *types) : NULL;
    tn_status status = types ? TN_OK : tn_error_status();
    if (status != TN_OK)
        tn_graph_stick(g);
    for (uint32_t i = 0; status == TN_OK && i < inputs; i++) {
        values[i] = i < count ? init[i] : xs[i - count];
        types[i] = tn_value_type(g, values[i]);
        if (i < count)
            continue;
        tn_dim dims[TN_MAX_RANK];
        int rank = tn_build_dims(g, values[i], dims);
        if (rank < 1) {
            char text[200];
            status = TN_ERR_USAGE;
            tn_build_fail(g, status, "tn_scan: cannot take slices of %s",
                          tn_value_describe(g, values[i], text, sizeof text));
            break;
        }
        types[i] = tn_type_tensor(g, tn_value_dtype(g, values[i]), rank - 1, dims + 1);
    }
    if (status == TN_OK) {
        tn_region region = build_region(g, inputs, types, values, body, ctx, count + stacked);
        tn_attr attr = TN_A_INT("carried", count);
        status = finish(g, "scan", inputs, values, 1, &attr, 1, &region, count + stacked, results);
    }
    tn_free(g->heap, types);
    tn_free(g->heap, values);
    return status;
}

tn_value tn_print(tn_graph *g, tn_value x, const char *label) {
    if (!tn_build_ready(g, "tn_print", 1, &x))
        return TN_NULL_VALUE;
    tn_attr attr = TN_A_STRING("label", label ? label : "", label ? strlen(label) : 0);
    tn_value y = tn_graph_add(g, "print", 1, &x, 1, &attr);
    if (y.id && tn_node_set_role(g, tn_value_producer(g, y), TN_ROLE_DEBUG) != TN_OK)
        return tn_build_stick(g);
    return y;
}

void tn_assert(tn_graph *g, tn_value cond, const char *message) {
    if (!tn_build_ready(g, "tn_assert", 1, &cond))
        return;
    tn_attr attr = TN_A_STRING("message", message ? message : "", message ? strlen(message) : 0);
    tn_node node = tn_graph_add_node(
        g,
        &(tn_node_desc){
            .op = tn_op_find(g->ops, "assert", 6), .input_count = 1, .inputs = &cond, .attr_count = 1, .attrs = &attr});
    if (node.id && tn_node_set_role(g, node, TN_ROLE_DEBUG) != TN_OK)
        tn_graph_stick(g);
}

tn_value tn_require(tn_graph *g, tn_value x, tn_value holds, const char *message, uint32_t count,
                    const tn_value *shown) {
    enum { MOST = 10 };
    tn_value in[MOST + 2] = {x, holds};
    if (count > MOST) {
        tn_build_fail(g, TN_ERR_USAGE, "tn_require: %u values are shown, at most %d can be", (unsigned)count, MOST);
        return TN_NULL_VALUE;
    }
    if (count && !shown) {
        tn_build_fail(g, TN_ERR_USAGE, "tn_require: the values to show are missing");
        return TN_NULL_VALUE;
    }
    for (uint32_t i = 0; i < count; i++)
        in[2 + i] = shown[i];
    if (!tn_build_ready(g, "tn_require", count + 2, in))
        return TN_NULL_VALUE;
    tn_attr attr = TN_A_STRING("message", message ? message : "", message ? strlen(message) : 0);
    return tn_graph_add(g, "require", count + 2, in, 1, &attr);
}
