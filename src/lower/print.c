/* The plan as annotated text: instructions, what lies where. */
#include "lower/plan.h"

static void print_size(const tn_plan *p, tn_size size, tn_text *out) {
    tn_dim_print(&p->graph->dims, p->size.data[size], out);
}

static void print_value(const tn_plan *p, tn_value v, tn_text *out) {
    const char *name = tn_value_name(p->graph, v);
    tn_text_printf(out, "%%%u", v.id);
    if (*name) {
        tn_text_add(out, " ");
        tn_text_quoted(out, name, strlen(name));
    }
}

/* Where arena slots lie, as far as their sizes are known without a binding: by slot. */
typedef struct places {
    tn_lifetime *life; /* of slots of their own memory, by place */
    uint32_t *place;   /* by slot; UINT32_MAX: not known */
} places;

static bool bytes_known(const tn_plan *p, const tn_slot *s, int64_t *bytes) {
    return tn_dim_is_const(p->graph, p->size.data[s->bytes], bytes) && *bytes >= 0;
}

static tn_status place_slots(const tn_plan *p, places *at) {
    for (uint32_t i = 0; i < p->slot.len; i++)
        at->place[i] = UINT32_MAX;
    uint32_t n = 0;
    for (uint32_t segment = 0; segment <= p->segments; segment++) {
        uint32_t first = n;
        bool known = true;
        for (uint32_t i = 0; i < p->slot.len && known; i++) {
            const tn_slot *s = &p->slot.data[i];
            int64_t bytes = 0;
            if (s->kind != TN_SLOT_ARENA || s->segment != segment || s->fetched ||
                !tn_plan_lifetime(p, i, &at->life[n]))
                continue;
            known = bytes_known(p, s, &bytes);
            at->life[n].bytes = (size_t)bytes;
            at->place[i] = n++;
        }
        size_t total;
        if (known) {
            TN_TRY(tn_planner_place(p->heap, n - first, at->life + first, &total));
            continue;
        }
        n = first;
        for (uint32_t i = 0; i < p->slot.len; i++)
            if (p->slot.data[i].kind == TN_SLOT_ARENA && p->slot.data[i].segment == segment)
                at->place[i] = UINT32_MAX;
    }
    return TN_OK;
}

/* Offset, and the slot whose memory it is that was dead last before. */
static void print_place(const tn_plan *p, const places *at, uint32_t index, tn_text *out) {
    if (at->place[index] == UINT32_MAX)
        return;
    const tn_lifetime *a = &at->life[at->place[index]];
    tn_text_printf(out, ", at %zu", a->offset);
    uint32_t before = UINT32_MAX;
    for (uint32_t i = 0; i < p->slot.len; i++) {
        const tn_lifetime *b = at->place[i] == UINT32_MAX ? NULL : &at->life[at->place[i]];
        if (b && p->slot.data[i].segment == p->slot.data[index].segment && b->last < a->first &&
            b->offset < a->offset + a->bytes && a->offset < b->offset + b->bytes &&
            (before == UINT32_MAX || b->last > at->life[at->place[before]].last))
            before = i;
    }
    if (before != UINT32_MAX)
        tn_text_printf(out, ", lies where slot %u was", before);
}

static void print_slot(const tn_plan *p, const places *at, uint32_t index, tn_text *out) {
    static const char *const kind[] = {"arena", "input", "constant", "object", "moving"};
    const tn_slot *s = &p->slot.data[index];
    tn_text_printf(out, "  slot %u: %s %s ", index, kind[s->kind], tn_dtype_name((tn_dtype)s->dtype));
    print_value(p, s->value, out);
    if (s->kind == TN_SLOT_ARENA) {
        tn_text_add(out, ", ");
        print_size(p, s->bytes, out);
        tn_text_printf(out, " bytes, segment %u", s->segment);
    }
    if (s->kind == TN_SLOT_CONSTANT)
        tn_text_printf(out, ", %zu bytes", tn_tensor_bytes(s->tensor));
    tn_text_printf(out, ", live %d..%d%s", s->first, s->last, s->fetched ? ", output" : "");
    if (s->over)
        tn_text_printf(out, ", in place of slot %u", s->over - 1);
    print_place(p, at, index, out);
    tn_text_add(out, "\n");
    for (uint32_t i = 0; i < p->view.len; i++)
        if (p->view.data[i].slot == index && p->view.data[i].value.id != s->value.id) {
            tn_text_add(out, "    alias: ");
            print_value(p, p->view.data[i].value, out);
            tn_text_add(out, "\n");
        }
}

static void print_access(const tn_plan *p, const tn_access *a, int axes, tn_text *out) {
    tn_text_printf(out, "slot %u %s[", a->slot, tn_dtype_name((tn_dtype)a->dtype));
    print_size(p, a->offset, out);
    for (int i = 0; i < axes; i++) {
        tn_text_printf(out, " + i%d*", i);
        print_size(p, a->stride[i], out);
    }
    tn_text_printf(out, "]%s", a->guards ? " guarded" : "");
}

static void print_kernel(const tn_plan *p, const tn_kernel *k, tn_text *out) {
    static const char *const kind[] = {"strip", "reduce", "contract", "attention", "bands"};
    tn_text_printf(out, "%s by %s over (", kind[k->kind], k->impl->name);
    for (int i = 0; i < k->outer + k->inner; i++) {
        tn_text_add(out, i == 0 ? "" : i == k->outer ? "; " : ", ");
        print_size(p, k->extent[i], out);
    }
    tn_text_add(out, ") for");
    for (uint32_t i = 0; i < k->node_count; i++)
        tn_text_printf(out, " %s", tn_node_op_name(p->graph, (tn_node){p->kernel_node.data[k->nodes + i]}));
    tn_text_add(out, "\n");
    for (int i = 0; i < k->parts; i++) {
        tn_text_printf(out, "   part %d: ", i);
        print_kernel(p, &k->part[i], out);
    }
    if (k->parts)
        return;
    for (int i = 0; i < k->operands; i++) {
        tn_text_printf(out, "    r%d = ", i);
        print_access(p, &k->operand[i], k->outer + k->inner, out);
        tn_text_add(out, "\n");
    }
    for (int i = 0; i < k->steps + k->epilogue; i++) {
        const tn_scalar_step *s = &k->step[i];
        const tn_scalar_info *d = tn_scalar_describe((tn_scalar_op)s->op);
        if (i == k->steps)
            tn_text_printf(out, "    r%d = %s in %s\n", k->operands + k->steps,
                           k->kind == TN_KERNEL_CONTRACT ? "sum r0*r1"
                                                         : tn_scalar_describe((tn_scalar_op)k->combine)->name,
                           tn_dtype_name((tn_dtype)k->accumulator));
        tn_text_printf(out, "    r%d = %s(r%u", k->operands + i + (i >= k->steps ? 1 : 0), d->name, s->a);
        if (d->operands > 1)
            tn_text_printf(out, ", r%u", s->b);
        if (d->operands > 2)
            tn_text_printf(out, ", r%u", s->c);
        tn_text_printf(out, ") %s\n", tn_dtype_name((tn_dtype)s->dtype));
    }
    for (int i = 0; i < k->outputs; i++) {
        tn_text_add(out, "    ");
        print_access(p, &k->output[i], k->outer, out);
        tn_text_printf(out, " = r%u\n", k->result[i]);
    }
}

static void print_checks(const tn_plan *p, uint32_t first, uint32_t count, tn_text *out) {
    tn_text_add(out, "  check");
    for (uint32_t i = first; i < first + count; i++) {
        const tn_size_check *c = &p->check.data[i];
        tn_text_add(out, i == first ? " " : ", ");
        print_size(p, c->size, out);
        tn_text_add(out, c->kind == TN_CHECK_SIZE ? " >= 0" : c->kind == TN_CHECK_EQUAL ? " = " : " = 1 or ");
        if (c->kind != TN_CHECK_SIZE)
            print_size(p, c->want, out);
    }
    tn_text_add(out, "\n");
}

static void print_host(const tn_plan *p, const tn_host_call *h, tn_text *out) {
    tn_text_printf(out, "  host %s (", tn_node_op_name(p->graph, h->node));
    for (uint32_t i = 0; i < h->input_count; i++) {
        uint32_t place = p->view_list.data[h->inputs + i];
        tn_text_add(out, i ? ", " : "");
        if (place == UINT32_MAX)
            tn_text_add(out, "-");
        else
            print_value(p, p->view.data[place].value, out);
    }
    tn_text_add(out, ") ->");
    for (uint32_t i = 0; i < h->output_count; i++)
        tn_text_printf(out, " slot %u", p->slot_list.data[h->outputs + i]);
    tn_text_add(out, "\n");
}

static void print_loop(const tn_plan *p, const tn_loop *loop, uint32_t end, tn_text *out) {
    tn_text_add(out, "  enter loop");
    if (loop->counted && loop->limit != UINT32_MAX) {
        tn_text_add(out, " of as many trips as ");
        print_value(p, p->view.data[loop->limit].value, out);
    } else if (loop->counted) {
        tn_text_add(out, " of ");
        print_size(p, loop->trips, out);
        tn_text_add(out, " trips");
    }
    tn_text_printf(out, ", end at %u\n", end);
    for (uint32_t i = loop->first; i < loop->first + loop->count; i++) {
        const tn_moving *m = &p->moving.data[i];
        tn_text_printf(out, "    slot %u: slot %u[", m->slot, m->from);
        print_size(p, m->offset, out);
        if (m->kind == TN_MOVING_ROW) {
            tn_text_add(out, " + trip*");
            print_size(p, m->step, out);
        }
        tn_text_printf(out,
                       m->kind == TN_MOVING_CARRIED ? "], then where slot %u was\n"
                       : m->kind == TN_MOVING_TURNS ? "] and slot %u in turns\n"
                                                    : "]\n",
                       m->other);
    }
}

tn_status tn_plan_print(const tn_plan *p, tn_text *out) {
    tn_text_printf(out, "plan: %u instructions, %u kernels, %u host calls, %u slots\n", p->code.len, p->kernel.len,
                   p->host.len, p->slot.len);
    places at = {tn_alloc_array(p->heap, p->slot.len + 1u, sizeof *at.life),
                 tn_alloc_array(p->heap, p->slot.len + 1u, sizeof *at.place)};
    tn_status status = at.life && at.place ? place_slots(p, &at) : TN_ERR_MEMORY;
    for (uint32_t i = 0; i < p->slot.len && status == TN_OK; i++)
        print_slot(p, &at, i, out);
    tn_free(p->heap, at.life);
    tn_free(p->heap, at.place);
    TN_TRY(status);
    for (uint32_t i = 0; i < p->code.len; i++) {
        const tn_instruction in = p->code.data[i];
        tn_text_printf(out, "%u:", i);
        switch ((tn_instruction_op)in.op) {
        case TN_DO_CALL:
            tn_text_printf(out, "  call kernel %u: ", in.a);
            print_kernel(p, &p->kernel.data[in.a], out);
            break;
        case TN_DO_HOST: print_host(p, &p->host.data[in.a], out); break;
        case TN_DO_BIND: tn_text_printf(out, "  bind segment %u\n", in.a); break;
        case TN_DO_CHECK: print_checks(p, in.a, in.b, out); break;
        case TN_DO_BRANCH: tn_text_printf(out, "  branch to %u\n", in.b); break;
        case TN_DO_ENTER: print_loop(p, &p->loop.data[in.a], in.b, out); break;
        case TN_DO_LOOP: tn_text_printf(out, "  loop to %u\n", in.b); break;
        case TN_DO_FORK: tn_text_printf(out, "  fork of %u parts, to %u\n", p->fork.data[in.a].parts, in.b); break;
        case TN_DO_END: tn_text_add(out, "  end\n"); break;
        }
    }
    return out->failed ? TN_ERR_MEMORY : TN_OK;
}
