/* Inputs that have a default and are not fed become constants. Their shapes give symbols their values: everywhere. */
#include "passes/pass.h"

static bool is_fed(const tn_pass_context *context, tn_value input) {
    for (uint32_t i = 0; i < context->fed_count; i++)
        if (context->fed[i].id == input.id)
            return true;
    return false;
}

/* The default of an input that is to be bound, or NULL. */
static tn_tensor *wanted(const tn_graph *g, const tn_pass_context *context, tn_value input) {
    return is_fed(context, input) ? NULL : tn_graph_input_default(g, input);
}

static tn_status fail_shape(const tn_graph *g, tn_value input, const tn_tensor *tensor) {
    char a[200], b[200];
    tn_fail(TN_ERR_MODEL, "the default of input '%s' is %s, which does not agree with %s", tn_value_name(g, input),
            tn_tensor_describe(tensor, a, sizeof a), tn_type_describe(g, tn_value_type(g, input), b, sizeof b));
    return TN_ERR_MODEL;
}

/* Finds what the shapes of the defaults say about symbols. */
static tn_status match_shapes(const tn_graph *g, const tn_pass_context *context, tn_dim_env *env) {
    for (int round = 0; round < 2; round++) /* what cannot be decided at first may be later */
        for (uint32_t i = 0; i < tn_graph_input_count(g); i++) {
            tn_value input = tn_graph_input(g, i);
            tn_tensor *t = wanted(g, context, input);
            tn_type type = tn_value_type(g, input);
            int rank = tn_value_rank(g, input);
            if (!t || !type.id)
                continue;
            if (tn_type_kind(g, type) != TN_KIND_TENSOR || tn_type_dtype(g, type) != (tn_dtype)t->dtype ||
                (rank >= 0 && rank != t->rank))
                return fail_shape(g, input, t);
            for (int d = 0; d < rank; d++)
                if (tn_dim_env_match(&g->dims, env, tn_type_dims(g, type)[d], t->dims[d]) == 1)
                    return fail_shape(g, input, t);
        }
    return TN_OK;
}

static tn_status bind_symbols(tn_graph *g, const tn_pass_context *context) {
    tn_dim_env env;
    tn_symbol_map map;
    tn_symbol_map_init(&map, g->heap);
    if (!tn_dim_env_init(&env, g->heap, &g->dims))
        return tn_error_status();
    tn_status status = match_shapes(g, context, &env);
    for (uint32_t i = 0; i < env.count && status == TN_OK; i++) {
        if (!env.bound[i])
            continue;
        tn_dim value = tn_dim_const(g, env.value[i]);
        status = value.id ? tn_symbol_map_add(g, &map, i, value) : tn_graph_check(g);
    }
    if (status == TN_OK)
        status = tn_symbol_map_apply(g, &map);
    tn_symbol_map_free(&map);
    tn_dim_env_free(&env);
    return status;
}

/* Replaces an input by its default. False in *done when its type says less or more than the default's. */
static tn_status bind_input(tn_graph *g, uint32_t index, tn_tensor *tensor, bool *done) {
    tn_value input = tn_graph_input(g, index);
    tn_dim dims[TN_MAX_RANK];
    for (int d = 0; d < tensor->rank; d++)
        dims[d] = tn_dim_const(g, tensor->dims[d]);
    tn_type type = tn_type_tensor(g, (tn_dtype)tensor->dtype, tensor->rank, dims);
    if (!type.id)
        return tn_graph_check(g);
    *done = tn_value_rank(g, input) < 0 || tn_value_type(g, input).id == type.id;
    if (!*done)
        return TN_OK;
    tn_value constant = tn_graph_constant(g, tensor);
    if (!constant.id)
        return tn_graph_check(g);
    TN_TRY(tn_value_set_name(g, constant, tn_value_name(g, input)));
    TN_TRY(tn_value_replace_uses(g, input, constant));
    return tn_region_remove_arg(g, tn_graph_region(g), index);
}

static tn_status run(tn_graph *g, tn_pass_context *context) {
    bool any = false;
    for (uint32_t i = 0; i < tn_graph_input_count(g); i++)
        any = any || wanted(g, context, tn_graph_input(g, i));
    if (!context->bind_defaults || !any)
        return TN_OK;
    TN_TRY(bind_symbols(g, context));
    tn_insertion at = tn_graph_insertion(g);
    tn_graph_insert_before(g, tn_region_first(g, tn_graph_region(g)));
    tn_graph_at_location(g, 0);
    tn_status status = TN_OK;
    for (uint32_t i = tn_graph_input_count(g); i-- > 0 && status == TN_OK;) {
        tn_tensor *t = wanted(g, context, tn_graph_input(g, i));
        bool done = false;
        if (t)
            status = bind_input(g, i, t, &done);
        if (t && status == TN_OK && !done)
            tn_pass_note(context, g, (tn_node){0}, "input '%s' stays an input: its shape is not decided by its default",
                         tn_value_name(g, tn_graph_input(g, i)));
        context->sites += done;
    }
    tn_graph_set_insertion(g, at);
    return status;
}

const tn_pass tn_pass_defaults = {
    .name = "defaults",
    .doc = "Inputs that have a default and are not fed become constants.",
    .effect = TN_BIT_EXACT,
    .keeps = TN_KEEPS_ALL,
    .need = TN_PASS_NEEDED_FIRST,
    .level = 0,
    .run = run,
};
