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

static void print_slot(const tn_plan *p, uint32_t index, tn_text *out) {
    static const char *const kind[] = {"arena", "input", "constant", "object"};
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

static void print_kernel(const tn_plan *p, uint32_t index, tn_text *out) {
    static const char *const kind[] = {"strip", "reduce", "contract"};
    const tn_kernel *k = &p->kernel.data[index];
    tn_text_printf(out, "  call kernel %u: %s by %s over (", index, kind[k->kind], k->impl->name);
    for (int i = 0; i < k->outer + k->inner; i++) {
        tn_text_add(out, i == 0 ? "" : i == k->outer ? "; " : ", ");
        print_size(p, k->extent[i], out);
    }
    tn_text_add(out, ") for");
    for (uint32_t i = 0; i < k->node_count; i++)
        tn_text_printf(out, " %s", tn_node_op_name(p->graph, (tn_node){p->kernel_node.data[k->nodes + i]}));
    tn_text_add(out, "\n");
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

tn_status tn_plan_print(const tn_plan *p, tn_text *out) {
    tn_text_printf(out, "plan: %u instructions, %u kernels, %u host calls, %u slots\n", p->code.len, p->kernel.len,
                   p->host.len, p->slot.len);
    for (uint32_t i = 0; i < p->slot.len; i++)
        print_slot(p, i, out);
    for (uint32_t i = 0; i < p->code.len; i++) {
        const tn_instruction in = p->code.data[i];
        tn_text_printf(out, "%u:", i);
        switch ((tn_instruction_op)in.op) {
        case TN_DO_CALL: print_kernel(p, in.a, out); break;
        case TN_DO_HOST: print_host(p, &p->host.data[in.a], out); break;
        case TN_DO_BIND: tn_text_printf(out, "  bind segment %u\n", in.a); break;
        case TN_DO_CHECK: print_checks(p, in.a, in.b, out); break;
        case TN_DO_BRANCH: tn_text_printf(out, "  branch to %u\n", in.b); break;
        case TN_DO_LOOP: tn_text_printf(out, "  loop to %u\n", in.b); break;
        case TN_DO_END: tn_text_add(out, "  end\n"); break;
        }
    }
    return out->failed ? TN_ERR_MEMORY : TN_OK;
}
