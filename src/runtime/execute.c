/* The executor: binds sizes, places slots, runs instructions. */
#include "runtime/execute.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "interp/interp.h"

typedef struct frame {
    const tn_plan *plan;
    const tn_execute_options *options;
    tn_heap *heap;
    tn_dim_env env;
    int64_t *size;      /* by tn_size */
    void **slot;        /* by slot: base address */
    tn_object **object; /* by slot: retained; inputs, objects, fetched tensors */
    void **arena;       /* by segment */
    uint64_t bytes;
} frame;

static const char *label(const tn_graph *g, tn_value v, char *text, size_t size) {
    return tn_value_describe(g, v, text, size);
}

/* --- inputs ------------------------------------------------------------------------------------------------------------------------ */

static tn_status bad_input(const frame *f, tn_value v, const tn_object *object, const char *what) {
    char expected[200], got[200] = "no tensor";
    if (tn_object_kind(object) == TN_KIND_TENSOR)
        tn_tensor_describe((const tn_tensor *)object, got, sizeof got);
    const tn_graph *g = f->plan->graph;
    tn_fail(TN_ERR_INPUT, "input '%s': %s is wrong", tn_value_name(g, v), what);
    tn_fail_where("given %s", got);
    tn_fail_hint("expected %s", tn_type_describe(g, tn_value_type(g, v), expected, sizeof expected));
    return TN_ERR_INPUT;
}

/* What kernels read: contiguous and aligned to its elements. */
static tn_tensor *readable(tn_tensor *t) {
    size_t element = (size_t)tn_dtype_bits((tn_dtype)t->dtype) / 8;
    if (t->contiguous && (element < 2 || (uintptr_t)t->data % (element > 8 ? 8 : element) == 0))
        return tn_tensor_retain(t);
    return tn_tensor_copy(t);
}

static tn_status take_input(frame *f, uint32_t index, tn_object *object) {
    const tn_plan *p = f->plan;
    const tn_graph *g = p->graph;
    tn_value v = tn_graph_input(g, index);
    const tn_view *view = &p->view.data[p->input_view.data[index]];
    if (!object) {
        if (!tn_value_use_count(g, v))
            return TN_OK; /* nobody reads it */
        char text[200];
        tn_fail(TN_ERR_INPUT, "input '%s' is not given", tn_value_name(g, v));
        for (uint32_t i = 0; i < tn_graph_input_count(g) && i < 12; i++)
            tn_fail_where("input %" PRIu32 ": %s", i, label(g, tn_graph_input(g, i), text, sizeof text));
        tn_fail_hint("give every input that has no default");
        return TN_ERR_INPUT;
    }
    tn_type type = tn_value_type(g, v);
    if (type.id && tn_object_kind(object) != tn_type_kind(g, type))
        return bad_input(f, v, object, "its kind");
    if (tn_object_kind(object) != TN_KIND_TENSOR) {
        f->object[view->slot] = tn_object_retain(object);
        return TN_OK;
    }
    tn_tensor *t = (tn_tensor *)object;
    if (type.id && tn_type_dtype(g, type) != TN_DTYPE_NONE && tn_type_dtype(g, type) != (tn_dtype)t->dtype)
        return bad_input(f, v, object, "its element type");
    if (tn_type_rank(g, type) >= 0 && tn_type_rank(g, type) != t->rank)
        return bad_input(f, v, object, "its rank");
    t = readable(t);
    if (!t)
        return TN_ERR_MEMORY;
    f->object[view->slot] = (tn_object *)t;
    f->slot[view->slot] = t->data;
    return TN_OK;
}

/* --- binding ------------------------------------------------------------------------------------------------------------------------- */

static tn_status read_dims(frame *f, const tn_bind_read *r) {
    const tn_graph *g = f->plan->graph;
    const tn_slot *slot = &f->plan->slot.data[r->slot];
    const tn_object *object = f->object[r->slot];
    if (!object && slot->kind == TN_SLOT_INPUT)
        return TN_OK; /* not read */
    const tn_tensor *t = (const tn_tensor *)object;
    char text[200];
    if (!t || t->object.kind != TN_KIND_TENSOR || t->rank != tn_value_rank(g, r->value))
        return tn_fail(TN_ERR_INTERNAL, "inferred rank is false: %s", label(g, r->value, text, sizeof text));
    for (int i = 0; i < t->rank; i++) {
        tn_dim dim = tn_value_dim(g, r->value, i);
        int m = tn_dim_env_match(&g->dims, &f->env, dim, t->dims[i]);
        if (m != 1)
            continue; /* bound, or decided by another dimension */
        int64_t expected = 0;
        bool known = tn_dim_eval(&g->dims, &f->env, dim, &expected);
        bool input = slot->kind == TN_SLOT_INPUT;
        char want[40] = "another size";
        if (known)
            snprintf(want, sizeof want, "%" PRId64, expected);
        tn_fail(input ? TN_ERR_INPUT : TN_ERR_INTERNAL, "%s '%s': dimension %d is %" PRId64 ", expected %s",
                input ? "input" : "inferred shape is false: value", tn_value_name(g, r->value), i, t->dims[i], want);
        tn_fail_hint("the shape is %s", label(g, r->value, text, sizeof text));
        return tn_error_status();
    }
    return TN_OK;
}

static tn_status evaluate_sizes(frame *f, uint32_t segment) {
    const tn_plan *p = f->plan;
    for (uint32_t i = 0; i < p->size.len; i++) {
        if (p->size_segment.data[i] != segment || tn_dim_eval(&p->graph->dims, &f->env, p->size.data[i], &f->size[i]))
            continue;
        tn_text text;
        tn_text_init(&text, f->heap);
        tn_dim_print(&p->graph->dims, p->size.data[i], &text);
        tn_fail(TN_ERR_INPUT, "these input sizes do not fit the model: %.200s has no value",
                text.data ? text.data : "a dimension");
        tn_fail_hint("sizes that broadcast must be equal or 1; every free dimension of the inputs must be given");
        tn_text_free(&text);
        return TN_ERR_INPUT;
    }
    return TN_OK;
}

static tn_status charge(frame *f, uint64_t bytes) {
    f->bytes += bytes;
    if (!f->options->max_bytes || f->bytes <= f->options->max_bytes)
        return TN_OK;
    tn_fail(TN_ERR_LIMIT, "this run needs %" PRIu64 " bytes, the limit is %" PRIu64, f->bytes, f->options->max_bytes);
    return TN_ERR_LIMIT;
}

static tn_status fetched_slot(frame *f, uint32_t index) {
    const tn_slot *s = &f->plan->slot.data[index];
    const tn_graph *g = f->plan->graph;
    int64_t dims[TN_MAX_RANK];
    int rank = tn_value_rank(g, s->value);
    for (int i = 0; i < rank; i++) {
        if (!tn_dim_eval(&g->dims, &f->env, tn_value_dim(g, s->value, i), &dims[i]))
            return tn_fail(TN_ERR_INTERNAL, "a size of an output is not known when it is placed");
        if (dims[i] < 0)
            return TN_OK; /* the check before its node ends the run */
    }
    TN_TRY(charge(f, (uint64_t)f->size[s->bytes]));
    tn_tensor *t = tn_tensor_new(f->heap, (tn_dtype)s->dtype, rank, dims);
    if (!t)
        return TN_ERR_MEMORY;
    f->object[index] = (tn_object *)t;
    f->slot[index] = t->data;
    return TN_OK;
}

static tn_status place_slots(frame *f, uint32_t segment) {
    const tn_plan *p = f->plan;
    tn_lifetime *life = tn_alloc_array(f->heap, p->slot.len + 1, sizeof *life);
    uint32_t *which = tn_alloc_array(f->heap, p->slot.len + 1, sizeof *which), n = 0;
    tn_status status = life && which ? TN_OK : TN_ERR_MEMORY;
    for (uint32_t i = 0; i < p->slot.len && status == TN_OK; i++) {
        const tn_slot *s = &p->slot.data[i];
        if (s->kind != TN_SLOT_ARENA || s->segment != segment)
            continue;
        if (s->fetched)
            status = fetched_slot(f, i);
        else {
            /* negative: a check comes before its first use, or it lies in a branch that is not taken */
            int64_t bytes = f->size[s->bytes] < 0 ? 0 : f->size[s->bytes];
            life[n] = (tn_lifetime){.first = s->first, .last = s->last, .bytes = (size_t)bytes};
            which[n++] = i;
        }
    }
    size_t total = 0;
    if (status == TN_OK)
        status = tn_planner_place(f->heap, n, life, &total);
    if (status == TN_OK)
        status = charge(f, total);
    if (status == TN_OK) {
        f->arena[segment] = tn_alloc_aligned(f->heap, total + TN_PLAN_ALIGN, TN_PLAN_ALIGN);
        status = f->arena[segment] ? TN_OK : TN_ERR_MEMORY;
    }
    for (uint32_t i = 0; i < n && status == TN_OK; i++)
        f->slot[which[i]] = (char *)f->arena[segment] + life[i].offset;
    tn_free(f->heap, life);
    tn_free(f->heap, which);
    return status;
}

static tn_status bind(frame *f, uint32_t segment) {
    /* on a later trip of a loop the sizes of its segments are found anew */
    for (uint32_t i = 0; segment && i < f->plan->symbol_segment.len; i++)
        if (f->plan->symbol_segment.data[i] == segment)
            f->env.bound[i] = 0;
    tn_free(f->heap, f->arena[segment]);
    f->arena[segment] = NULL;
    for (uint32_t i = 0; i < f->plan->bind_read.len; i++)
        if (f->plan->bind_read.data[i].segment == segment)
            TN_TRY(read_dims(f, &f->plan->bind_read.data[i]));
    TN_TRY(evaluate_sizes(f, segment));
    return place_slots(f, segment);
}

/* --- host instructions ------------------------------------------------------------------------------------------------------------------ */

/* A place as an object: the host object itself, or a view of the slot. A new reference. */
static tn_object *view_object(frame *f, uint32_t index) {
    const tn_plan *p = f->plan;
    const tn_view *view = &p->view.data[index];
    const tn_slot *s = &p->slot.data[view->slot];
    tn_object *object = f->object[view->slot];
    if (s->value.id == view->value.id && object && object->kind != TN_KIND_TENSOR)
        return tn_object_retain(object);
    if (view->object || s->dtype == TN_STRING || tn_dtype_is_subbyte((tn_dtype)s->dtype))
        return object ? tn_object_retain(object) : s->tensor ? tn_object_retain((tn_object *)s->tensor) : NULL;
    int64_t dims[TN_MAX_RANK], strides[TN_MAX_RANK], offset = f->size[view->offset];
    for (int i = 0; i < view->rank; i++) {
        dims[i] = f->size[view->dim[i]];
        strides[i] = f->size[view->stride[i]];
    }
    const tn_tensor *base = object ? (const tn_tensor *)object : s->tensor;
    tn_dtype dtype = tn_value_dtype(p->graph, view->value);
    if (base)
        return (tn_object *)tn_tensor_view(f->heap, base, dtype, view->rank, dims, strides, offset);
    char *data = (char *)f->slot[view->slot] + offset * (tn_dtype_bits(dtype) / 8);
    return (tn_object *)tn_tensor_wrap_strided(dtype, view->rank, dims, strides, data);
}

/* Gives the result of a host instruction to its slot. */
static tn_status give(frame *f, uint32_t index, tn_object *object) {
    const tn_slot *s = &f->plan->slot.data[index];
    char text[200];
    if (!object)
        return tn_fail(TN_ERR_INTERNAL, "a host instruction gave no %s",
                       label(f->plan->graph, s->value, text, sizeof text));
    if (s->kind == TN_SLOT_ARENA) {
        tn_tensor *t = (tn_tensor *)object;
        size_t bytes = (size_t)f->size[s->bytes];
        if (t->object.kind != TN_KIND_TENSOR || t->dtype != s->dtype || tn_tensor_bytes(t) != bytes)
            return tn_fail(TN_ERR_INTERNAL, "inferred shape is false: %s",
                           label(f->plan->graph, s->value, text, sizeof text));
        if (t->data == f->slot[index] || !bytes)
            return TN_OK;
        tn_tensor *flat = tn_tensor_contiguous(f->heap, t);
        if (!flat)
            return TN_ERR_MEMORY;
        memcpy(f->slot[index], flat->data, bytes);
        tn_tensor_destroy(flat);
        return TN_OK;
    }
    tn_object *kept =
        object->kind == TN_KIND_TENSOR ? (tn_object *)readable((tn_tensor *)object) : tn_object_retain(object);
    if (!kept)
        return TN_ERR_MEMORY;
    tn_object_destroy(f->object[index]);
    f->object[index] = kept;
    f->slot[index] = kept->kind == TN_KIND_TENSOR ? ((tn_tensor *)kept)->data : NULL;
    return TN_OK;
}

static tn_status prepare_output(frame *f, uint32_t slot, tn_object **out) {
    const tn_slot *s = &f->plan->slot.data[slot];
    const tn_graph *g = f->plan->graph;
    if (s->kind != TN_SLOT_ARENA && (tn_value_rank(g, s->value) < 0 || s->dtype == TN_DTYPE_NONE))
        return TN_OK;
    int64_t dims[TN_MAX_RANK];
    int rank = tn_value_rank(g, s->value);
    for (int i = 0; i < rank; i++)
        if (!tn_dim_eval(&g->dims, &f->env, tn_value_dim(g, s->value, i), &dims[i]))
            return TN_OK; /* only data decides: eval makes it */
    *out = (tn_object *)(s->kind == TN_SLOT_ARENA ? tn_tensor_wrap((tn_dtype)s->dtype, rank, dims, f->slot[slot])
                                                  : tn_tensor_new(f->heap, (tn_dtype)s->dtype, rank, dims));
    return *out ? TN_OK : TN_ERR_MEMORY;
}

static tn_status run_row(frame *f, const tn_host_call *h, tn_object **in, tn_object **out) {
    const tn_plan *p = f->plan;
    const tn_op *op = tn_node_op(p->graph, h->node);
    if (!(op->traits & (TN_VIEW | TN_CONSTANT | TN_EFFECT)))
        for (uint32_t i = 0; i < h->output_count; i++)
            TN_TRY(prepare_output(f, p->slot_list.data[h->outputs + i], &out[i]));
    tn_eval e = {.graph = p->graph,
                 .node = h->node,
                 .inputs = h->input_count,
                 .outputs = h->output_count,
                 .in = in,
                 .out = out,
                 .heap = f->heap,
                 .pool = f->options->pool,
                 .env = &f->env,
                 .log = f->options->log,
                 .log_ctx = f->options->log_ctx,
                 .late = f->options->late};
    return op->eval(&e);
}

static tn_status run_regions(frame *f, const tn_host_call *h, tn_object **in, tn_object **out) {
    const tn_plan *p = f->plan;
    uint32_t n = 0, most = h->input_count + h->outer_count;
    tn_value *values = tn_alloc_array(f->heap, most + 1u, sizeof *values);
    tn_object **objects = tn_alloc_array(f->heap, most + 1u, sizeof *objects);
    tn_status status = values && objects ? TN_OK : TN_ERR_MEMORY;
    for (uint32_t i = 0; i < h->input_count && status == TN_OK; i++) {
        tn_value v = tn_node_input(p->graph, h->node, i);
        bool again = !v.id;
        for (uint32_t j = 0; j < n; j++)
            again |= values[j].id == v.id;
        if (again)
            continue;
        values[n] = v;
        objects[n++] = tn_object_retain(in[i]);
    }
    for (uint32_t i = 0; i < h->outer_count && status == TN_OK; i++) {
        tn_value v = {p->view_list.data[h->outer + 2 * i]};
        bool again = false;
        for (uint32_t j = 0; j < n; j++)
            again |= values[j].id == v.id;
        if (again)
            continue;
        values[n] = v;
        objects[n] = view_object(f, p->view_list.data[h->outer + 2 * i + 1]);
        status = objects[n++] ? TN_OK : tn_error_status();
    }
    tn_interp_options o = {.heap = f->heap,
                           .pool = f->options->pool,
                           .log = f->options->log,
                           .log_ctx = f->options->log_ctx,
                           .late = f->options->late};
    if (status == TN_OK)
        status = tn_interp_run_node(p->graph, &o, h->node, &f->env, n, values, objects, out);
    for (uint32_t i = 0; i < n; i++)
        tn_object_destroy(objects[i]);
    tn_free(f->heap, values);
    tn_free(f->heap, objects);
    return status;
}

static tn_status run_host(frame *f, const tn_host_call *h) {
    const tn_plan *p = f->plan;
    tn_object **objects = tn_alloc_array(f->heap, (size_t)h->input_count + h->output_count + 1, sizeof *objects);
    if (!objects)
        return TN_ERR_MEMORY;
    tn_object **in = objects, **out = objects + h->input_count;
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < h->input_count && status == TN_OK; i++) {
        uint32_t view = p->view_list.data[h->inputs + i];
        if (view != UINT32_MAX && !(in[i] = view_object(f, view)))
            status = tn_error_status();
    }
    const tn_op *op = tn_node_op(p->graph, h->node);
    bool plain = op->eval && tn_node_region_count(p->graph, h->node) == 0 && !(op->traits & TN_CALL);
    if (status == TN_OK)
        status = plain ? run_row(f, h, in, out) : run_regions(f, h, in, out);
    for (uint32_t i = 0; i < h->output_count && status == TN_OK; i++)
        if (out[i] || tn_value_is_wanted(p->graph, tn_node_output(p->graph, h->node, i)))
            status = give(f, p->slot_list.data[h->outputs + i], out[i]);
    for (uint32_t i = 0; i < h->input_count + h->output_count; i++)
        tn_object_destroy(objects[i]);
    tn_free(f->heap, objects);
    return status;
}

/* --- the run -------------------------------------------------------------------------------------------------------------------------------- */

static bool condition(const frame *f, uint32_t index) {
    const tn_view *v = &f->plan->view.data[index];
    return ((const uint8_t *)f->slot[v->slot])[f->size[v->offset]] != 0;
}

/* The sizes of a node's inputs, as `where` lines. */
static void say_inputs(const frame *f, tn_node node) {
    const tn_graph *g = f->plan->graph;
    for (uint32_t k = 0; k < tn_node_input_count(g, node); k++) {
        tn_value v = tn_node_input(g, node, k);
        tn_text shape;
        tn_text_init(&shape, f->heap);
        tn_text_add(&shape, "[");
        for (int axis = 0; v.id && axis < tn_value_rank(g, v); axis++) {
            int64_t n;
            tn_text_add(&shape, axis ? "," : "");
            if (tn_dim_eval(&g->dims, &f->env, tn_value_dim(g, v, axis), &n))
                tn_text_printf(&shape, "%" PRId64, n);
            else
                tn_text_add(&shape, "?");
        }
        tn_text_add(&shape, "]");
        if (v.id && tn_value_rank(g, v) >= 0 && !shape.failed)
            tn_fail_where("at run time input %" PRIu32 " is %s%s", k, tn_dtype_name(tn_value_dtype(g, v)), shape.data);
        tn_text_free(&shape);
    }
}

static tn_status check_sizes(const frame *f, uint32_t first, uint32_t count) {
    const tn_graph *g = f->plan->graph;
    for (uint32_t i = first; i < first + count; i++) {
        const tn_size_check *c = &f->plan->check.data[i];
        const char *op = tn_node_op_name(g, c->node);
        int64_t size = f->size[c->size];
        if (c->kind == TN_CHECK_NEGATIVE ? size >= 0
                                         : size == f->size[c->want] || (c->kind == TN_CHECK_BROADCAST && size == 1))
            continue;
        if (c->kind == TN_CHECK_NEGATIVE)
            tn_fail(TN_ERR_INPUT, "%s: dimension %d of output %d is %" PRId64, op, c->axis, c->value, size);
        else if (c->kind == TN_CHECK_EQUAL)
            tn_fail(TN_ERR_INPUT, "%s: axis %d of input %d has %" PRId64 " elements, needed are %" PRId64, op, c->axis,
                    c->value, size, f->size[c->want]);
        else
            tn_fail(TN_ERR_INPUT,
                    "%s: axis %d of input %d has %" PRId64 " elements, which cannot be broadcast to %" PRId64, op,
                    c->axis, c->value, size, f->size[c->want]);
        tn_fail_at_node(g, c->node);
        say_inputs(f, c->node);
        if (c->kind == TN_CHECK_NEGATIVE)
            tn_fail_hint("inputs of these sizes are too small for this model");
        return TN_ERR_INPUT;
    }
    return TN_OK;
}

static tn_status run_code(frame *f) {
    const tn_plan *p = f->plan;
    for (uint32_t pc = 0; pc < p->code.len; pc++) {
        const tn_instruction in = p->code.data[pc];
        switch ((tn_instruction_op)in.op) {
        case TN_DO_CALL: {
            const tn_kernel *k = &p->kernel.data[in.a];
            tn_kernel_args args = {
                .kernel = k, .slot = f->slot, .size = f->size, .pool = f->options->pool, .heap = f->heap};
            TN_TRY(k->impl->run(&args));
            break;
        }
        case TN_DO_HOST: TN_TRY(run_host(f, &p->host.data[in.a])); break;
        case TN_DO_BIND: TN_TRY(bind(f, in.a)); break;
        case TN_DO_CHECK: TN_TRY(check_sizes(f, in.a, in.b)); break;
        case TN_DO_BRANCH:
            if (in.a == UINT32_MAX || !condition(f, in.a))
                pc = in.b - 1;
            break;
        case TN_DO_LOOP: pc = in.b - 1; break;
        case TN_DO_END: return TN_OK;
        }
    }
    return TN_OK;
}

static tn_status take_output(frame *f, uint32_t index, tn_object **out) {
    const tn_plan *p = f->plan;
    const tn_view *view = &p->view.data[p->output_view.data[index]];
    const tn_slot *s = &p->slot.data[view->slot];
    /* a tensor of its own, made for this run, is handed over as it is; the first time */
    tn_object *object = f->object[view->slot];
    bool whole = object && s->value.id == view->value.id && s->kind != TN_SLOT_INPUT;
    if (whole && (s->kind == TN_SLOT_ARENA || object->kind != TN_KIND_TENSOR)) {
        for (uint32_t i = 0; i < index; i++)
            whole &= p->view.data[p->output_view.data[i]].slot != view->slot;
        if (whole) {
            *out = tn_object_retain(object);
            return TN_OK;
        }
    }
    tn_object *seen = view_object(f, p->output_view.data[index]);
    if (!seen)
        return tn_error_status();
    if (seen->kind != TN_KIND_TENSOR)
        *out = tn_object_retain(seen);
    else
        *out = (tn_object *)tn_tensor_copy((tn_tensor *)seen);
    tn_object_destroy(seen);
    return *out ? TN_OK : TN_ERR_MEMORY;
}

static tn_status run(frame *f, tn_object *const *in, tn_object **out) {
    const tn_plan *p = f->plan;
    f->size = tn_alloc_array(f->heap, p->size.len + 1, sizeof *f->size);
    f->slot = tn_alloc_array(f->heap, p->slot.len + 1, sizeof *f->slot);
    f->object = tn_alloc_array(f->heap, p->slot.len + 1, sizeof *f->object);
    f->arena = tn_alloc_array(f->heap, p->segments + 1, sizeof *f->arena);
    if (!f->size || !f->slot || !f->object || !f->arena || !tn_dim_env_init(&f->env, f->heap, &p->graph->dims))
        return TN_ERR_MEMORY;
    for (uint32_t i = 0; i < p->slot.len; i++)
        if (p->slot.data[i].kind == TN_SLOT_CONSTANT)
            f->slot[i] = p->slot.data[i].tensor->data;
    for (uint32_t i = 0; i < p->input_view.len; i++)
        TN_TRY(take_input(f, i, in[i]));
    TN_TRY(run_code(f));
    for (uint32_t i = 0; i < p->output_view.len; i++)
        TN_TRY(take_output(f, i, &out[i]));
    return TN_OK;
}

tn_status tn_execute(const tn_plan *plan, const tn_execute_options *options, tn_object *const *in, tn_object **out) {
    frame f = {.plan = plan, .options = options, .heap = options->heap};
    for (uint32_t i = 0; i < plan->output_view.len; i++)
        out[i] = NULL;
    tn_status status = run(&f, in, out);
    for (uint32_t i = 0; i < plan->output_view.len && status != TN_OK; i++) {
        tn_object_destroy(out[i]);
        out[i] = NULL;
    }
    for (uint32_t i = 0; f.object && i < plan->slot.len; i++)
        tn_object_destroy(f.object[i]);
    for (uint32_t i = 0; f.arena && i <= plan->segments; i++)
        tn_free(f.heap, f.arena[i]);
    if (options->arena_bytes)
        *options->arena_bytes = f.bytes;
    tn_dim_env_free(&f.env);
    tn_free(f.heap, f.size);
    tn_free(f.heap, f.slot);
    tn_free(f.heap, f.object);
    tn_free(f.heap, f.arena);
    return status;
}
