/* The executor: takes inputs, runs instructions, hands out results. */
#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "base/os.h"
#include "interp/interp.h"
#include "kernels/kernels.h"
#include "runtime/frame.h"

typedef tn_frame frame;

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

/* A contiguous copy, by the kernels. */
static tn_tensor *copy_of(const frame *f, tn_heap *heap, const tn_tensor *t) {
    tn_tensor *copy = tn_tensor_new(heap, (tn_dtype)t->dtype, t->rank, t->dims);
    if (copy && tn_copy_tensor(copy, t, f->plan->isa, f->options->pool) != TN_OK) {
        tn_tensor_destroy(copy);
        return NULL;
    }
    return copy;
}

/* What kernels read: contiguous and aligned to its elements. */
static tn_tensor *readable(const frame *f, tn_tensor *t) {
    size_t element = (size_t)tn_dtype_bits((tn_dtype)t->dtype) / 8;
    if (t->contiguous && (element < 2 || (uintptr_t)t->data % (element > 8 ? 8 : element) == 0))
        return tn_tensor_retain(t);
    return copy_of(f, f->heap, t);
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
    t = readable(f, t);
    if (!t)
        return TN_ERR_MEMORY;
    f->object[view->slot] = (tn_object *)t;
    f->slot[view->slot] = t->data;
    return TN_OK;
}

/* --- host instructions ------------------------------------------------------------------------------------------------------------------ */

/* A place as an object: the host object itself, or a view of the slot. A new reference. */
static tn_object *view_object(const frame *f, uint32_t index) {
    const tn_plan *p = f->plan;
    const tn_view *view = &p->view.data[index];
    const tn_slot *s = &p->slot.data[view->slot];
    tn_object *object = f->object[view->slot];
    if (s->value.id == view->value.id && object && object->kind != TN_KIND_TENSOR)
        return tn_object_retain(object);
    if (view->object || s->dtype == TN_STRING || tn_dtype_is_subbyte((tn_dtype)s->dtype))
        return object ? tn_object_retain(object) : s->tensor ? tn_object_retain((tn_object *)s->tensor) : NULL;
    int64_t dims[TN_MAX_RANK], strides[TN_MAX_RANK], offset = f->size[view->offset];
    bool empty = false;
    for (int i = 0; i < view->rank; i++) {
        if (f->missing[view->dim[i]] && object && s->value.id == view->value.id)
            return tn_object_retain(object); /* it knows its sizes */
        dims[i] = f->size[view->dim[i]];
        strides[i] = f->size[view->stride[i]];
        empty |= dims[i] == 0;
    }
    if (empty) { /* there, sizes that only lead to elements may have no value */
        memset(strides, 0, sizeof strides);
        offset = 0;
    }
    const tn_tensor *base = object ? (const tn_tensor *)object : s->tensor;
    tn_dtype dtype = tn_value_dtype(p->graph, view->value);
    if (base)
        return (tn_object *)tn_tensor_view(f->heap, base, dtype, view->rank, dims, strides, offset);
    char *data = (char *)f->slot[view->slot] + offset * (tn_dtype_bits(dtype) / 8);
    return (tn_object *)tn_tensor_wrap_in(f->heap, dtype, view->rank, dims, strides, data);
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
        size_t bytes = (size_t)f->size[s->bytes]; /* missing: 0 */
        if (t->object.kind != TN_KIND_TENSOR || t->dtype != s->dtype || tn_tensor_bytes(t) != bytes)
            return tn_fail(TN_ERR_INTERNAL, "inferred shape is false: %s",
                           label(f->plan->graph, s->value, text, sizeof text));
        if (t->data == f->slot[index] || !bytes)
            return TN_OK;
        if (tn_dtype_is_subbyte((tn_dtype)t->dtype)) {
            memcpy(f->slot[index], t->data, bytes); /* packed elements have no strides */
            return TN_OK;
        }
        tn_tensor *slot = tn_tensor_wrap_in(f->heap, (tn_dtype)t->dtype, t->rank, t->dims, NULL, f->slot[index]);
        tn_status status = slot ? tn_copy_tensor(slot, t, f->plan->isa, f->options->pool) : tn_error_status();
        tn_tensor_destroy(slot);
        return status;
    }
    tn_object *kept =
        object->kind == TN_KIND_TENSOR ? (tn_object *)readable(f, (tn_tensor *)object) : tn_object_retain(object);
    if (!kept)
        return TN_ERR_MEMORY;
    tn_object_destroy(f->object[index]);
    f->object[index] = kept;
    f->slot[index] = kept->kind == TN_KIND_TENSOR ? ((tn_tensor *)kept)->data : NULL;
    return TN_OK;
}

/* What of the limit is left for what host instructions allocate; 0: no limit. */
static size_t bytes_left(const frame *f) {
    uint64_t limit = f->options->max_bytes;
    return !limit ? 0 : f->bytes < limit ? (size_t)(limit - f->bytes) : 1;
}

tn_status tn_frame_prepare_output(frame *f, uint32_t slot, tn_object **out) {
    const tn_slot *s = &f->plan->slot.data[slot];
    const tn_graph *g = f->plan->graph;
    if (s->kind != TN_SLOT_ARENA && (tn_value_rank(g, s->value) < 0 || s->dtype == TN_DTYPE_NONE))
        return TN_OK;
    int64_t dims[TN_MAX_RANK];
    int rank = tn_value_rank(g, s->value);
    for (int i = 0; i < rank; i++)
        if (!tn_dim_eval(&g->dims, &f->env, tn_value_dim(g, s->value, i), &dims[i]))
            return TN_OK; /* only data decides: eval makes it */
    bool placed = s->kind == TN_SLOT_ARENA && !f->missing[s->bytes];
    if (!placed && f->options->max_bytes) {
        int64_t count;
        size_t bytes;
        TN_TRY(tn_dims_count(rank, dims, &count));
        TN_TRY(tn_dtype_bytes((tn_dtype)s->dtype, count, &bytes));
        if (bytes > bytes_left(f))
            return tn_fail(TN_ERR_LIMIT, "this run needs %" PRIu64 " bytes, the limit is %" PRIu64,
                           f->bytes + (uint64_t)bytes, f->options->max_bytes);
    }
    *out = (tn_object *)(placed ? tn_tensor_wrap_in(f->heap, (tn_dtype)s->dtype, rank, dims, NULL, f->slot[slot])
                                : tn_tensor_new(f->heap, (tn_dtype)s->dtype, rank, dims));
    return *out ? TN_OK : tn_error_status();
}

/* What host instructions lead to is computed as kernels do. */
static tn_status adjust(void *ctx, tn_eval *e) {
    const frame *f = ctx;
    return tn_kernels_adjust((void *)(uintptr_t)f->plan, e);
}

static tn_status instead(void *ctx, tn_eval *e, bool *done) {
    const frame *f = ctx;
    return tn_host_kernels_run(f->host, e, done);
}

static tn_status run_row(frame *f, const tn_host_call *h, tn_object **in, tn_object **out) {
    const tn_plan *p = f->plan;
    const tn_op *op = tn_node_op(p->graph, h->node);
    if (!(op->traits & (TN_VIEW | TN_CONSTANT | TN_EFFECT)))
        for (uint32_t i = 0; i < h->output_count; i++)
            TN_TRY(tn_frame_prepare_output(f, p->slot_list.data[h->outputs + i], &out[i]));
    tn_eval e = {.graph = p->graph,
                 .node = h->node,
                 .inputs = h->input_count,
                 .outputs = h->output_count,
                 .in = in,
                 .out = out,
                 .heap = f->heap,
                 .pool = f->options->pool,
                 .env = &f->env,
                 .max_bytes = bytes_left(f),
                 .log = f->options->log,
                 .log_ctx = f->options->log_ctx,
                 .late = f->options->late,
                 .adjust = adjust,
                 .adjust_ctx = f,
                 .instead = instead};
    bool done;
    TN_TRY(tn_host_kernels_run(f->host, &e, &done));
    if (done)
        return TN_OK;
    TN_TRY(op->eval(&e));
    return adjust(f, &e);
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
                           .max_bytes = bytes_left(f),
                           .log = f->options->log,
                           .log_ctx = f->options->log_ctx,
                           .late = f->options->late,
                           .adjust = adjust,
                           .adjust_ctx = f,
                           .instead = instead,
                           .cancelled = f->options->cancelled,
                           .cancel_ctx = f->options->cancel_ctx};
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
    bool garbage = f->options->measure && tn_frame_reads_garbage(f, h);
    if (f->options->measure)
        tn_pool_idle(f->options->pool, false);
    if (status == TN_OK && garbage && !tn_frame_may_run(f, h))
        status = TN_ERR_FAILED;
    else if (status == TN_OK)
        status = plain ? run_row(f, h, in, out) : run_regions(f, h, in, out);
    if (f->options->measure)
        tn_pool_idle(f->options->pool, true);
    if (garbage)
        status = tn_frame_settle_host(f, h, out, status);
    for (uint32_t i = 0; i < h->output_count && status == TN_OK; i++)
        if (out[i] || tn_value_is_wanted(p->graph, tn_node_output(p->graph, h->node, i)))
            status = give(f, p->slot_list.data[h->outputs + i], out[i]);
    if (status != TN_OK && !*tn_error_where())
        tn_fail_at_node(p->graph, h->node);
    if (status != TN_OK)
        tn_frame_say_enclosing(f, h->node);
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

static tn_object *shown_view(const void *f, uint32_t view) {
    return view_object(f, view);
}

static tn_status show(const frame *f, uint32_t kernel, bool after) {
    if (!f->options->watch)
        return TN_OK;
    const tn_execute_watch w = {.kernel = kernel, .after = after, .env = &f->env, .view = shown_view, .frame = f};
    return f->options->watch(f->options->watch_ctx, &w);
}

tn_status tn_frame_run_code(frame *f, uint32_t from, uint32_t end) {
    const tn_plan *p = f->plan;
    for (uint32_t pc = from; pc < end; pc++) {
        const tn_instruction in = p->code.data[pc];
        if (f->options->cancelled && f->options->cancelled(f->options->cancel_ctx))
            return tn_fail(TN_ERR_CANCELLED, "the run was cancelled");
        if ((f->lacking || f->late) && (in.op == TN_DO_CALL || in.op == TN_DO_HOST || in.op == TN_DO_ENTER)) {
            bool skip;
            TN_TRY(tn_frame_admit(f, &in, &skip));
            if (skip)
                continue;
        }
        uint32_t first = pc;
        if (f->options->guard)
            tn_frame_guard_before(f, pc, pc);
        switch ((tn_instruction_op)in.op) {
        case TN_DO_CALL: {
            const tn_kernel *k = &p->kernel.data[in.a];
            tn_kernel_args args = {.kernel = k,
                                   .slot = f->slot,
                                   .size = f->size,
                                   .pool = f->options->pool,
                                   .heap = f->heap,
                                   .kept = f->kept + in.a,
                                   .backwards = f->backwards};
            f->keeping = true;
            /* else each is admitted, shown or guarded by itself */
            bool together = k->chain && !f->lacking && !f->late && !f->options->watch && !f->options->guard;
            if (f->options->measure && tn_frame_computes(f, in.a, together ? k->chain : 1))
                args.pool = NULL;
            else if (f->options->measure)
                tn_frame_note_garbage(f, in.a, together ? k->chain : 1);
            TN_TRY(show(f, in.a, false));
            tn_status status = together ? tn_chain_run(&args, k->chain) : k->impl->run(&args);
            if (status != TN_OK && !*tn_error_where() && k->node_count)
                tn_fail_at_node(p->graph, (tn_node){p->kernel_node.data[k->nodes]});
            TN_TRY(status);
            TN_TRY(show(f, in.a, true));
            if (f->options->profile)
                TN_TRY(tn_frame_profile_mark(f, pc, together ? k->chain : 1));
            pc += together ? k->chain - 1u : 0;
            break;
        }
        case TN_DO_HOST:
            if (p->code.data[pc + 1].op == TN_DO_BIND) /* of the sizes that its results decide */
                tn_frame_unbind(f, p->code.data[pc + 1].a);
            TN_TRY(run_host(f, &p->host.data[in.a]));
            if (f->options->profile)
                TN_TRY(tn_frame_profile_mark(f, pc, 0));
            break;
        case TN_DO_BIND: TN_TRY(f->options->profile ? tn_frame_profile_bind(f, in.a) : tn_frame_bind(f, in.a)); break;
        case TN_DO_CHECK: TN_TRY(tn_frame_check(f, in.a, in.b)); break;
        case TN_DO_BRANCH:
            if (!f->options->measure && (in.a == UINT32_MAX || !condition(f, in.a))) /* else both, and one trip */
                pc = in.b - 1;
            break;
        case TN_DO_ENTER: pc = tn_frame_enter(f, in.a) ? pc : in.b - 1; break;
        case TN_DO_LOOP: pc = tn_frame_next(f, in.a) ? in.b - 1 : pc; break;
        case TN_DO_FORK: {
            bool done;
            TN_TRY(tn_frame_fork(f, in.a, &done));
            pc = done ? in.b - 1 : pc;
            break;
        }
        case TN_DO_END: return TN_OK;
        }
        if (f->options->guard && in.op != TN_DO_LOOP) /* what lives to the end of a loop is read on the next trip */
            TN_TRY(tn_frame_guard_ran(f, first, in.op == TN_DO_CALL ? pc : first));
    }
    return TN_OK;
}

tn_status tn_frame_fail_output(const frame *f, uint32_t output, const tn_tensor *given, const tn_tensor *result) {
    char a[200], b[200];
    tn_fail(TN_ERR_INPUT, "output '%s': the tensor given for it is %s, the result is %s",
            tn_graph_output_name(f->plan->graph, output), tn_tensor_describe(given, a, sizeof a),
            tn_tensor_describe(result, b, sizeof b));
    tn_fail_hint("give a tensor of the result's type and shape, or NULL to receive a new one");
    return TN_ERR_INPUT;
}

/* Writes a result into the caller's tensor. */
static tn_status write_output(const frame *f, uint32_t index, const tn_object *result) {
    tn_tensor *mine = f->into[index];
    const tn_tensor *t = (const tn_tensor *)result;
    if (result->kind != TN_KIND_TENSOR)
        return tn_fail(TN_ERR_USAGE, "output '%s' is no tensor: ask for an object",
                       tn_graph_output_name(f->plan->graph, index));
    return tn_tensor_accept(mine, (tn_dtype)t->dtype, t->rank, t->dims)
               ? tn_copy_tensor(mine, t, f->plan->isa, f->options->pool)
               : tn_frame_fail_output(f, index, mine, t);
}

static tn_status take_output(frame *f, uint32_t index, tn_object **out) {
    const tn_plan *p = f->plan;
    const tn_view *view = &p->view.data[p->output_view.data[index]];
    const tn_slot *s = &p->slot.data[view->slot];
    tn_tensor *mine = f->into ? f->into[index] : NULL;
    tn_object *object = f->object[view->slot];
    bool whole = object && s->value.id == view->value.id && s->kind != TN_SLOT_INPUT;
    /* a tensor of its own, made for this run, is handed over as it is; the first time */
    if (whole && s->kind == TN_SLOT_ARENA && f->output_of[view->slot] == index &&
        (mine ? object == (tn_object *)mine : object->heap == f->home)) {
        *out = tn_object_retain(object);
        return TN_OK;
    }
    for (int i = 0; i < view->rank && !view->object && !(object && s->value.id == view->value.id); i++)
        if (f->missing[view->dim[i]])
            return tn_frame_fail_size(f, tn_value_producer(p->graph, view->value), view->dim[i]);
    tn_object *seen = view_object(f, p->output_view.data[index]);
    if (!seen)
        return tn_error_status();
    if (seen->kind == TN_KIND_TENSOR)
        tn_heap_cache_yield(f->cache, tn_tensor_bytes((tn_tensor *)seen) + 2 * sizeof(tn_tensor));
    if (f->options->measure && seen->kind == TN_KIND_TENSOR && !mine) {
        const tn_tensor *t = (const tn_tensor *)seen;
        *out = (tn_object *)tn_tensor_new(f->home, (tn_dtype)t->dtype, t->rank, t->dims);
        tn_object_destroy(seen);
        return *out ? TN_OK : tn_error_status();
    }
    if (mine && f->options->apart && f->options->apart[index] >= 0 && seen->kind == TN_KIND_TENSOR) {
        /* other outputs may still be read from what it overwrites */
        *out = (tn_object *)copy_of(f, f->heap, (tn_tensor *)seen);
        tn_object_destroy(seen);
        return *out ? TN_OK : tn_error_status();
    }
    if (mine) {
        tn_status status = write_output(f, index, seen);
        *out = status == TN_OK ? tn_object_retain((tn_object *)mine) : NULL;
        tn_object_destroy(seen);
        return status;
    }
    *out = seen->kind != TN_KIND_TENSOR ? tn_object_move(seen, f->heap, f->home)
                                        : (tn_object *)copy_of(f, f->home, (tn_tensor *)seen);
    tn_object_destroy(seen);
    return *out ? TN_OK : tn_error_status();
}

static tn_status run(frame *f, tn_object *const *in, tn_object **out) {
    const tn_plan *p = f->plan;
    for (uint32_t i = 0; i < p->input_view.len; i++)
        TN_TRY(take_input(f, i, in[i]));
    if (f->options->profile)
        TN_TRY(tn_frame_profile_begin(f));
    tn_status status = tn_frame_run_code(f, 0, p->code.len);
    TN_TRY(f->options->profile ? tn_frame_profile_end(f, status) : status);
    for (uint32_t i = 0; i < p->output_view.len; i++)
        TN_TRY(take_output(f, i, &out[i]));
    for (uint32_t i = 0; i < p->output_view.len; i++) {
        tn_tensor *mine = f->into ? f->into[i] : NULL;
        if (!mine || out[i] == (tn_object *)mine)
            continue;
        TN_TRY(write_output(f, i, out[i]));
        tn_object_destroy(out[i]);
        out[i] = tn_object_retain((tn_object *)mine);
    }
    return TN_OK;
}

static void begin(frame *f) {
    if (f->options->guard != f->guarded) { /* slots lie elsewhere then */
        f->guarded = f->options->guard;
        tn_frame_forget(f);
        for (uint32_t i = 0; i <= f->plan->segments; i++)
            f->segment[i].placement.known = false;
        tn_heap_cache_poison(f->cache, f->guarded);
    }
    f->bytes = 0;
    f->backwards = false;
    if (f->options->measure) {
        memset(f->garbage, 0, f->plan->slot.len);
        f->uncounted = false;
        tn_heap_cache_tighten(f->cache);
    }
    memset(f->armed, 0, f->plan->slot.len);
    for (uint32_t i = 0; i <= f->plan->segments; i++)
        f->arena[i].bytes = 0;
    if (f->env.count)
        memset(f->env.bound, 0, f->env.count);
}

/* Lets go of what the caller may change or free from now on, and of results. */
static void end(frame *f) {
    for (uint32_t i = 0; i < f->plan->slot.len; i++)
        if (f->object[i]) {
            tn_object_destroy(f->object[i]);
            f->object[i] = NULL;
            f->slot[i] = NULL;
        }
    for (uint32_t i = 0; f->late && i < f->plan->slot.len; i++)
        tn_free(f->home, f->late[i].data);
    tn_free(f->home, f->late);
    f->late = NULL;
    f->into = NULL;
    f->options = NULL;
}

/* A kernel ran out of memory, perhaps on another thread: it was the heap's limit. */
static tn_status restate(size_t refused) {
    tn_error_record error;
    tn_error_save(&error);
    error.status = TN_ERR_LIMIT;
    snprintf(error.what, sizeof error.what, "at least %zu bytes are needed, more than the memory limit", refused);
    return tn_error_restore(&error);
}

tn_status tn_frame_run(tn_frame *f, const tn_execute_options *options, tn_object *const *in, tn_tensor *const *into,
                       tn_object **out) {
    uint32_t outputs = f->plan->output_view.len;
    f->options = options;
    f->into = into;
    for (uint32_t i = 0; i < outputs; i++)
        out[i] = NULL;
    begin(f);
    tn_pool_task task = tn_pool_task_begin(options->pool, f->shared);
    tn_status status = run(f, in, out);
    f->shared = tn_pool_task_end(options->pool, task);
    size_t refused = tn_heap_cache_refused(f->cache);
    if (status == TN_ERR_MEMORY && refused)
        status = restate(refused);
    if (options->measure) {
        *options->measured = status == TN_OK && !f->uncounted;
        *options->measured_bytes = tn_heap_peak(f->home);
        status = status == TN_OK ? tn_fail(TN_ERR_LIMIT, "the run was measured alone") : status;
    }
    if (status == TN_ERR_LIMIT)
        tn_frame_say_largest(f);
    for (uint32_t i = 0; i < outputs && status != TN_OK; i++) {
        tn_object_destroy(out[i]);
        out[i] = NULL;
    }
    if (options->arena_bytes)
        *options->arena_bytes = f->bytes;
    end(f);
    return status;
}

tn_status tn_execute(const tn_plan *plan, const tn_execute_options *options, tn_object *const *in, tn_object **out) {
    for (uint32_t i = 0; i < plan->output_view.len; i++)
        out[i] = NULL;
    tn_frame *f = tn_frame_create(plan, options->heap);
    if (!f)
        return tn_error_status();
    tn_status status = tn_frame_run(f, options, in, NULL, out);
    tn_frame_destroy(f);
    return status;
}
