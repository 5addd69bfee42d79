/* Why a run was refused, in the words of the operator that the file has. What fails when sizes are known at last is a primitive (a
   reshape, a slice) whose row knows nothing of the operator that it was made for. The operator's rules stand in its expansion; so the
   model is expanded once more, with the shapes and small contents that were fed, to hear what it says of the node. That costs what
   compiling does, and only runs that failed pay for it. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "onnx/model.h"
#include "runtime/session.h"

/* What may be parameters of a node: as in late.c. */
enum { SMALL = 64, SMALL_FLOAT = 16 };

static tn_status feed(tn_graph *g, tn_value input, const tn_tensor *t) {
    tn_dim dims[TN_MAX_RANK];
    for (int i = 0; i < t->rank; i++)
        dims[i] = tn_dim_const(g, t->dims[i]);
    tn_type type = tn_type_tensor(g, (tn_dtype)t->dtype, t->rank, dims);
    TN_TRY(tn_graph_check(g));
    TN_TRY(tn_value_set_type(g, input, type));
    if (t->count > (tn_dtype_is_float((tn_dtype)t->dtype) ? SMALL_FLOAT : SMALL))
        return TN_OK;
    tn_tensor *copy = tn_tensor_create_in(g->heap, (tn_dtype)t->dtype, t->rank, t->dims);
    tn_value value = {0};
    if (copy && tn_tensor_assign(copy, t) == TN_OK)
        value = tn_graph_constant(g, copy);
    tn_tensor_destroy(copy);
    if (!value.id)
        return tn_error_status();
    TN_TRY(tn_value_set_name(g, value, tn_value_name(g, input)));
    return tn_value_replace_uses(g, input, value);
}

/* The model's graph with what was fed. */
static tn_status feed_all(tn_graph *g, uint32_t n, const tn_binding *in) {
    tn_value *fed = tn_alloc_array(g->heap, tn_graph_input_count(g) + 1u, sizeof *fed);
    uint32_t count = 0;
    if (!fed)
        return tn_error_status();
    tn_graph_insert_before(g, tn_region_first(g, tn_graph_region(g)));
    tn_graph_at_location(g, tn_location_make(g, "the run's input", "", "", 0));
    tn_status status = tn_graph_check(g);
    for (uint32_t i = 0; i < tn_graph_input_count(g) && status == TN_OK; i++)
        for (uint32_t k = 0; k < n && status == TN_OK; k++) {
            tn_value v = tn_graph_input(g, i);
            const tn_tensor *t = in[k].tensor ? in[k].tensor : tn_object_tensor(in[k].object);
            if (strcmp(in[k].name, tn_value_name(g, v)) != 0)
                continue;
            fed[count++] = v;
            if (t)
                status = feed(g, v, t);
        }
    if (status == TN_OK)
        status = tn_onnx_use_defaults(g, count, fed);
    tn_free(g->heap, fed);
    return status;
}

static bool has_onnx_nodes(const tn_graph *g) {
    for (tn_node n = tn_region_first(g, tn_graph_region(g)); n.id; n = tn_node_next(g, n))
        if (tn_node_op(g, n)->dialect == TN_DIALECT_ONNX)
            return true;
    return false;
}

/* Whether the primitive that failed is what the operator is called, too: Reshape and reshape. */
static bool same_name(const char *operator, const char * primitive) {
    size_t n = strcspn(operator, ":");
    return strcspn(primitive, ":") == n && strncasecmp(operator, primitive, n) == 0;
}

/* What was said before follows what is said now. */
static void say_both(const tn_error_record *now, const tn_error_record *before) {
    tn_error_record both = *now;
    both.status = TN_ERR_INPUT;
    tn_error_restore(&both);
    tn_fail_where("at run time: %s", before->what);
    tn_error_save(&both);
    snprintf(both.where + strlen(both.where), sizeof both.where - strlen(both.where), "\n%s", before->where);
    if (!*both.hint && same_name(now->what, before->what))
        memcpy(both.hint, before->hint, sizeof both.hint);
    tn_error_restore(&both);
}

/* Nothing is known of the rule: at least the operator is named before the primitive is. */
static void say_operator(const tn_error_record *before) {
    const char *line = strstr(before->where, "from ");
    tn_error_record now = *before;
    if (!line || (line > before->where && line[-1] != '\n'))
        return;
    line += 5;
    size_t length = strcspn(line, "\n"), word = strcspn(line, " '\n");
    for (size_t i = length; i-- > 1 && line[length - 1] == ')';) /* without the file, which `where` has */
        if (line[i - 1] == ' ' && line[i] == '(') {
            length = i - 1;
            break;
        }
    if (length > 300 || strncmp(before->what, line, word) == 0)
        return;
    /* what "require" says are the operator's own words */
    const char *words = strncmp(before->what, "require: ", 9) == 0 ? before->what + 9 : before->what;
    snprintf(now.what, sizeof now.what, "%.*s: %.600s", (int)length, line, words);
    tn_error_restore(&now);
}

void tn_session_say_rule(tn_session *s, uint32_t n, const tn_binding *in) {
    const tn_graph *model = s->model->graph;
    tn_error_record before, now = {.status = TN_OK};
    tn_error_save(&before);
    /* What is too large for this machine may be what no rule allows: any node's, for the largest value need not be the first wrong one. */
    bool large = before.status == TN_ERR_LIMIT || before.status == TN_ERR_MEMORY;
    if (!large && !strstr(before.where, "from "))
        return;
    if (!has_onnx_nodes(model)) { /* expanded before it was saved: the rules are gone, the names are not */
        if (!large)
            say_operator(&before);
        return;
    }
    tn_graph *g = tn_graph_clone(model, NULL, NULL);
    if (g && feed_all(g, n, in) == TN_OK && tn_onnx_explain(g, large ? NULL : before.where) == TN_ERR_MODEL)
        tn_error_save(&now);
    tn_graph_destroy(g);
    tn_error_restore(&before);
    if (now.status != TN_OK && strcmp(now.what, before.what) != 0)
        say_both(&now, &before);
    else if (now.status == TN_OK && !large)
        say_operator(&before);
}
