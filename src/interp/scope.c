/* One run of the main region or of a function: its values by slot, its symbols, and how objects fit types. */
#include "interp/internal.h"

#include <inttypes.h>
#include <stdio.h>

tn_status tn_interp_scope_init(tn_interp_scope *s, tn_interp_plan *plan, tn_region root) {
    *s = (tn_interp_scope){.plan = plan, .slots = plan->slots[root.id]};
    s->value = tn_alloc_array(plan->heap, (size_t)s->slots + 1, sizeof(tn_object *));
    if (!s->value || !tn_dim_env_init(&s->env, plan->heap, &plan->graph->dims)) {
        tn_free(plan->heap, s->value);
        s->plan = NULL;
        return tn_error_status();
    }
    return TN_OK;
}

void tn_interp_scope_free(tn_interp_scope *s) {
    if (!s->plan)
        return;
    for (uint32_t i = 1; i <= s->slots; i++)
        tn_object_destroy(s->value[i]);
    tn_free(s->plan->heap, s->value);
    tn_dim_env_free(&s->env);
    tn_vec_free(s->plan->heap, &s->trail);
    s->plan = NULL;
}

void tn_interp_scope_undo(tn_interp_scope *s, uint32_t mark) {
    while (s->trail.len > mark)
        s->env.bound[s->trail.data[--s->trail.len]] = 0;
}

typedef struct trail_visit {
    tn_interp_scope *scope;
    bool failed;
} trail_visit;

static void visit_unbound(void *ctx, uint32_t symbol) {
    trail_visit *v = ctx;
    if (!v->scope->env.bound[symbol] && !tn_vec_push(v->scope->plan->heap, &v->scope->trail, symbol))
        v->failed = true;
}

/* Makes a dim equal a number: 0 fine, 1 contradiction, 2 cannot be decided, -1 out of memory. What it binds is on the trail. */
static int bind(tn_interp_scope *s, tn_dim dim, int64_t value) {
    const tn_dims *dims = &s->plan->graph->dims;
    const tn_dim_expr *expr = &dims->expr.data[dim.id];
    if (expr->kind == TN_DIM_CONST)
        return expr->constant != value;
    trail_visit v = {.scope = s};
    tn_dim_symbols(dims, dim, visit_unbound, &v);
    return v.failed ? -1 : tn_dim_env_match(dims, &s->env, dim, value);
}

static bool misfits(tn_interp_scope *s, tn_interp_mismatch *m, tn_interp_misfit what, int axis, tn_dim dim,
                    int64_t actual) {
    int fit = bind(s, dim, actual);
    if (fit == 0 || fit == 2)
        return false;
    *m = (tn_interp_mismatch){.what = fit < 0 ? TN_MISFIT_FAILED : what, .axis = axis, .actual = actual, .dim = dim};
    m->has_expected = tn_dim_eval(&s->plan->graph->dims, &s->env, dim, &m->expected);
    return true;
}

tn_interp_mismatch tn_interp_fit(tn_interp_scope *s, tn_value value, const tn_object *object) {
    const tn_graph *g = s->plan->graph;
    tn_type type = tn_value_type(g, value);
    tn_interp_mismatch m = {.what = TN_FITS};
    if (!type.id)
        return m;
    if (tn_type_kind(g, type) != tn_object_kind(object)) {
        m.what = TN_MISFIT_KIND;
        return m;
    }
    if (object->kind != TN_KIND_TENSOR)
        return m;
    const tn_tensor *t = (const tn_tensor *)object;
    tn_dtype dtype = tn_type_dtype(g, type);
    int rank = tn_type_rank(g, type);
    if (dtype != TN_DTYPE_NONE && dtype != t->dtype)
        m.what = TN_MISFIT_DTYPE;
    else if (rank >= 0 && rank != t->rank)
        m.what = TN_MISFIT_RANK;
    if (m.what != TN_FITS)
        return m;
    const tn_dim *dims = rank > 0 ? tn_type_dims(g, type) : NULL;
    for (int i = 0; i < rank; i++)
        if (misfits(s, &m, TN_MISFIT_DIM, i, dims[i], t->dims[i]))
            return m;
    const tn_dim *contents;
    int32_t known = tn_value_contents(g, value, &contents);
    if (known < 0 || t->rank > 1 || (t->dtype != TN_I64 && t->dtype != TN_I32))
        return m;
    if (known != t->count) {
        m = (tn_interp_mismatch){.what = TN_MISFIT_DIM, .actual = t->count, .expected = known, .has_expected = true};
        return m;
    }
    for (int32_t i = 0; i < known; i++)
        if (misfits(s, &m, TN_MISFIT_CONTENTS, i, contents[i], tn_tensor_get_i64(t, i)))
            return m;
    return m;
}

const char *tn_interp_label(const tn_graph *g, tn_value value, char *text, size_t size) {
    const char *name = tn_value_name(g, value);
    if (*name)
        snprintf(text, size, "'%s'", name);
    else
        snprintf(text, size, "%%%" PRIu32, value.id);
    return text;
}

static const char *describe_object(const tn_object *object, char *text, size_t size) {
    static const char *const kinds[] = {"tensor", "sequence", "optional", "map"};
    if (object->kind == TN_KIND_TENSOR)
        return tn_tensor_describe((const tn_tensor *)object, text, size);
    return kinds[object->kind];
}

tn_status tn_interp_fail_fit(const tn_interp_scope *s, tn_status status, const char *who, tn_value value,
                             const tn_object *object, const tn_interp_mismatch *m) {
    if (m->what == TN_MISFIT_FAILED)
        return tn_error_status();
    const tn_graph *g = s->plan->graph;
    char label[200], want[200], have[200], expected[200] = "";
    tn_interp_label(g, value, label, sizeof label);
    tn_type_describe(g, tn_value_type(g, value), want, sizeof want);
    describe_object(object, have, sizeof have);
    if (m->dim.id) {
        tn_text text;
        tn_text_init(&text, s->plan->heap);
        tn_dim_print(&g->dims, m->dim, &text);
        const char *shown = text.data ? text.data : "?";
        int64_t low, high;
        tn_dim_bounds(g, m->dim, &low, &high);
        if (!m->has_expected && (m->actual < low || m->actual > high))
            snprintf(expected, sizeof expected, "%s %s %" PRId64, shown, m->actual < low ? "at least" : "at most",
                     m->actual < low ? low : high);
        else if (!m->has_expected)
            snprintf(expected, sizeof expected, "%s", shown);
        else if (g->dims.expr.data[m->dim.id].kind == TN_DIM_CONST)
            snprintf(expected, sizeof expected, "%" PRId64, m->expected);
        else
            snprintf(expected, sizeof expected, "%s = %" PRId64, shown, m->expected);
        tn_text_free(&text);
    } else if (m->has_expected) {
        snprintf(expected, sizeof expected, "%" PRId64, m->expected);
    }
    switch (m->what) {
    case TN_MISFIT_DIM:
        tn_fail(status, "%s %s: dimension %d is %" PRId64 ", expected %s", who, label, m->axis, m->actual, expected);
        break;
    case TN_MISFIT_CONTENTS:
        tn_fail(status, "%s %s: element %d is %" PRId64 ", expected %s", who, label, m->axis, m->actual, expected);
        break;
    case TN_MISFIT_DTYPE:
        tn_fail(status, "%s %s: dtype is %s, expected %s", who, label,
                tn_dtype_name((tn_dtype)((const tn_tensor *)object)->dtype),
                tn_dtype_name(tn_type_dtype(g, tn_value_type(g, value))));
        break;
    case TN_MISFIT_RANK:
        tn_fail(status, "%s %s: rank is %d, expected %d", who, label, ((const tn_tensor *)object)->rank,
                tn_type_rank(g, tn_value_type(g, value)));
        break;
    default: tn_fail(status, "%s %s is %s, expected %s", who, label, have, want);
    }
    tn_fail_hint("expected %s, got %s", want, have);
    return status;
}
