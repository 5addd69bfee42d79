/* What rows' eval functions call: replacing an output, sizes of attributes, errors that name the node and what it
   got. */
#include <stdarg.h>
#include <stdio.h>

#include "ir/graph.h"

tn_status tn_eval_set(tn_eval *e, uint32_t i, tn_object *object) {
    if (object == NULL)
        return tn_error_status();
    if (i >= e->outputs) {
        tn_object_destroy(object);
        return tn_fail(TN_ERR_INTERNAL, "output %u of a node of %u", (unsigned)i, (unsigned)e->outputs);
    }
    tn_object_destroy(e->out[i]);
    e->out[i] = object;
    return TN_OK;
}

tn_status tn_eval_dims(const tn_eval *e, const char *attr, uint32_t count, int64_t *values) {
    const tn_dim *dims;
    uint32_t have = tn_attr_dims(e->graph, e->node, attr, &dims);
    if (have != count)
        return tn_eval_fail(e, TN_ERR_MODEL, "attribute '%s' has %u entries where %u are needed", attr, (unsigned)have,
                            (unsigned)count);
    for (uint32_t i = 0; i < count; i++) {
        if (tn_dim_eval(&e->graph->dims, e->env, dims[i], &values[i]))
            continue;
        tn_text text;
        tn_text_init(&text, e->heap);
        const char *rule = tn_dim_explain(&e->graph->dims, e->env, dims[i], &text);
        tn_status status = tn_eval_fail(e, TN_ERR_INPUT, "entry %u of '%s': the size %.600s", (unsigned)i, attr,
                                        text.failed || text.data == NULL ? "of a dimension has no value" : text.data);
        tn_fail_hint("%s", rule);
        tn_text_free(&text);
        return status;
    }
    return TN_OK;
}

tn_status(tn_eval_fail)(const tn_eval *e, tn_status status, const char *format, ...) {
    char what[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    tn_fail(status, "%s: %s", tn_node_op_name(e->graph, e->node), what);
    tn_eval_fail_inputs(e);
    return status;
}

void tn_eval_fail_inputs(const tn_eval *e) {
    tn_fail_at_node(e->graph, e->node);
    for (uint32_t i = 0; i < e->inputs; i++) {
        char shape[256];
        if (e->in[i] == NULL)
            continue;
        if (tn_object_kind(e->in[i]) == TN_KIND_TENSOR)
            tn_fail_where("at run time input %u is %s", (unsigned)i,
                          tn_tensor_describe(tn_eval_in(e, i), shape, sizeof shape));
    }
}
