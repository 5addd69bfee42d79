/* A kernel's steps as calls of one level's functions on registers. */
#include "kernels/machine.h"

#include <string.h>

const tn_strip_level *tn_strip_best(tn_isa isa) {
    switch (isa) {
#if defined(TN_HAVE_ISA_AVX512)
    case TN_ISA_AVX512:
    case TN_ISA_AVX512_VNNI: return &tn_strip_avx512;
    case TN_ISA_AVX2: return &tn_strip_avx2;
#elif defined(TN_HAVE_ISA_NEON)
    case TN_ISA_NEON: return &tn_strip_neon;
#endif
    default: return &tn_strip_generic;
    }
}

static tn_strip_fn *function_of(const tn_strip_level *level, const tn_scalar_step *s) {
    tn_scalar_op op = (tn_scalar_op)s->op;
    tn_dtype from = (tn_dtype)s->from, to = (tn_dtype)s->dtype;
    tn_strip_type a = tn_strip_type_of(from), type = tn_strip_type_of(to);
    switch (op) {
    case TN_SCALAR_NONE: return level->convert[type][type];
    case TN_SCALAR_SELECT: return level->op[op][type];
    case TN_SCALAR_CAST:
        /* rounded once: not by way of f32 */
        if ((from == TN_F64 && (to == TN_F16 || to == TN_BF16)) ||
            (to == TN_BF16 && (from == TN_I32 || a == TN_STRIP_I64 || a == TN_STRIP_U64)))
            return NULL;
        return level->convert[a][type];
    case TN_SCALAR_IS_INF: return s->flags == 3 ? level->op[op][a] : NULL;
    default: return level->op[op][a];
    }
}

/* Whether a result of `op` can lie between the values of its dtype, or beyond them. */
static bool needs_rounding(const tn_scalar_step *s) {
    bool is_float = tn_dtype_is_float((tn_dtype)s->dtype);
    switch ((tn_scalar_op)s->op) {
    case TN_SCALAR_NONE:
    case TN_SCALAR_SELECT:
    case TN_SCALAR_MIN:
    case TN_SCALAR_MAX:
    case TN_SCALAR_AND:
    case TN_SCALAR_OR:
    case TN_SCALAR_XOR:
    case TN_SCALAR_SHR:
    case TN_SCALAR_SIGN: return false;
    case TN_SCALAR_NEG:
    case TN_SCALAR_ABS: return !is_float;
    default: return !tn_scalar_describe((tn_scalar_op)s->op)->boolean;
    }
}

static void use(const tn_kernel *k, tn_strip_program *p, tn_strip_part part, uint16_t reg) {
    if (reg < k->operands)
        p->uses[part] |= (uint64_t)1 << reg;
}

static void add_step(const tn_kernel *k, tn_strip_program *p, tn_strip_part part, uint32_t j, uint16_t to,
                     uint16_t *count) {
    const tn_scalar_step *s = &k->step[j];
    uint8_t operands = s->op == TN_SCALAR_NONE ? 1 : tn_scalar_describe((tn_scalar_op)s->op)->operands;
    tn_strip_code c = {.run = function_of(p->level, s), .step = s, .a = s->a, .b = s->a, .c = s->a, .to = to};
    use(k, p, part, s->a);
    if (operands > 1)
        use(k, p, part, c.b = s->b);
    if (operands > 2)
        use(k, p, part, c.c = s->c);
    bool boolean = tn_scalar_describe((tn_scalar_op)s->op)->boolean;
    p->type[to] = (uint8_t)(boolean ? TN_STRIP_B8 : tn_strip_type_of((tn_dtype)s->dtype));
    p->code[(*count)++] = c;
    if (c.run && p->level->round[s->dtype] && needs_rounding(s))
        p->code[(*count)++] =
            (tn_strip_code){.run = p->level->round[s->dtype], .step = s, .a = to, .b = to, .c = to, .to = to};
}

/* --- codes together ---------------------------------------------------------------------------------------------------------------------- */

/* TN_STRIP_MUL, TN_STRIP_ADD, or -1. */
static int kind_of(const tn_strip_program *p, const tn_strip_code *c) {
    return c->step->dtype != TN_F32                              ? -1
           : c->run == p->level->op[TN_SCALAR_MUL][TN_STRIP_F32] ? TN_STRIP_MUL
           : c->run == p->level->op[TN_SCALAR_ADD][TN_STRIP_F32] ? TN_STRIP_ADD
                                                                 : -1;
}

/* The only code that reads the result of code i, or -1: none, several, one that reads it twice, or it is stored. */
static int reader_of(const tn_kernel *k, const tn_strip_program *p, int i, int end) {
    uint16_t to = p->code[i].to;
    int reader = -1;
    for (int j = 0; j < k->outputs; j++)
        if (k->result[j] == to)
            return -1;
    for (int j = i + 1; j < end; j++) {
        const tn_strip_code *c = &p->code[j];
        if (c->a != to && c->b != to && c->c != to)
            continue;
        if (reader >= 0)
            return -1;
        reader = j;
    }
    return reader;
}

static void remove_code(tn_strip_program *p, int i, int end) {
    memmove(&p->code[i], &p->code[i + 1], (size_t)(end - i - 1) * sizeof *p->code);
}

/* Products of F32 with what is made of them: fewer passes over strips. The bits are those of the steps. Codes of the part
   [first, end) before; the new end is the answer. */
static int join_codes(const tn_kernel *k, tn_strip_program *p, int first, int end) {
    for (int i = first; i < end; i++) {
        int kind = kind_of(p, &p->code[i]), j = kind != TN_STRIP_MUL ? -1 : reader_of(k, p, i, end);
        if (j < 0)
            continue;
        tn_strip_code c = p->code[i], *d = &p->code[j];
        tn_strip_fn *scaled = d->step->dtype == TN_F32 ? p->level->scaled[d->step->op] : NULL;
        if (scaled && d->run == p->level->op[d->step->op][TN_STRIP_F32]) { /* f(a * b) + c */
            int l = reader_of(k, p, j, end);
            const tn_strip_code *e = l < 0 ? NULL : &p->code[l];
            if (e && kind_of(p, e) == TN_STRIP_ADD && (e->a == d->to) != (e->b == d->to)) {
                c.run = scaled;
                c.c = e->a == d->to ? e->b : e->a;
                c.to = e->to;
                c.step = e->step;
                p->code[l] = c;
                remove_code(p, j, end--);
                remove_code(p, i, end--);
                i--;
            }
            continue;
        }
        int then = kind_of(p, d);
        if (then < 0 || (d->a == c.to) == (d->b == c.to))
            continue;
        c.run = p->level->pair[then];
        c.c = d->a == c.to ? d->b : d->a;
        c.to = d->to;
        c.step = d->step;
        p->code[j] = c;
        remove_code(p, i, end--);
        i--;
    }
    return end;
}

/* Finds the codes after a contraction that need nothing of it: what they make of a few numbers for each column is kept from row to row. */
static void set_apart(const tn_kernel *k, tn_strip_program *p) {
    bool apart[TN_MACHINE_REGISTERS] = {false};
    uint64_t uses[TN_MACHINE_REGISTERS] = {0};
    for (uint32_t i = 0; i < k->operands; i++) {
        apart[i] = !k->operand[i].guards;
        uses[i] = (uint64_t)1 << i;
    }
    int first = p->first[1], last = p->first[2] - 1; /* the last code makes the result */
    for (int i = first; i < last && i - first < 64; i++) {
        const tn_strip_code *c = &p->code[i];
        if (!apart[c->a] || !apart[c->b] || !apart[c->c])
            continue;
        apart[c->to] = true;
        uses[c->to] = uses[c->a] | uses[c->b] | uses[c->c];
        p->apart |= (uint64_t)1 << (i - first);
        p->apart_uses |= uses[c->to];
    }
}

/* Gives buffers to registers; one is used again after the last code that reads it. */
static void assign_buffers(const tn_kernel *k, tn_strip_program *p, uint32_t registers) {
    uint16_t last[TN_MACHINE_REGISTERS] = {0}, owner[TN_MACHINE_REGISTERS] = {0};
    uint16_t codes = p->first[2];
    for (uint16_t i = 0; i < codes; i++) {
        const tn_strip_code *c = &p->code[i];
        last[c->a] = last[c->b] = last[c->c] = last[c->to] = i;
    }
    for (int i = 0; i < k->outputs; i++)
        last[k->result[i]] = UINT16_MAX;
    bool alone[TN_MACHINE_REGISTERS] = {
        false}; /* kept from block to block: in a buffer that no other register ever has */
    for (uint16_t i = p->first[1]; i < codes && i - p->first[1] < 64; i++)
        if (p->apart >> (i - p->first[1]) & 1) {
            alone[p->code[i].to] = true;
            last[p->code[i].to] = UINT16_MAX;
        }
    bool given[TN_MACHINE_REGISTERS] = {false};
    for (uint32_t i = 0; i < registers && i < k->operands; i++)
        if ((p->uses[0] | p->uses[1]) >> i & 1) {
            owner[p->buffers] = (uint16_t)i;
            last[i] = UINT16_MAX;
            p->buffer[i] = (uint8_t)p->buffers++;
        }
    for (uint16_t i = 0; i < codes; i++) {
        uint16_t to = p->code[i].to, b = alone[to] ? p->buffers : 0;
        if (given[to])
            continue;
        while (b < p->buffers && last[owner[b]] >= i)
            b++;
        if (b == p->buffers)
            p->buffers++;
        owner[b] = to;
        p->buffer[to] = (uint8_t)b;
        given[to] = true;
    }
}

static void measure(tn_strip_program *p, uint32_t registers) {
    int64_t widest = 4, length = TN_STRIP_LENGTH, buffers = p->buffers ? p->buffers : 1;
    for (uint32_t i = 0; i < registers; i++)
        widest = tn_strip_bytes((tn_strip_type)p->type[i]) > widest ? 8 : widest;
    /* not all buffers begin at the same lines of the cache */
    while (buffers * (length * widest + 64) > TN_STRIP_SCRATCH)
        length /= 2;
    p->length = length;
    p->pitch = length * widest + 64;
}

tn_status tn_strip_prepare(tn_kernel *k, const tn_kernel_facts *facts) {
    uint32_t steps = (uint32_t)k->steps + k->epilogue, registers = k->operands + steps + 1;
    tn_strip_program *p = tn_alloc(facts->heap, sizeof *p + 2 * steps * sizeof *p->code);
    if (!p)
        return TN_ERR_MEMORY;
    k->program = p;
    p->level = tn_strip_best(facts->isa);
    for (int i = 0; i < k->operands; i++)
        p->type[i] = (uint8_t)tn_strip_type_of((tn_dtype)k->operand[i].dtype);
    p->type[k->operands + k->steps] = (uint8_t)tn_strip_type_of((tn_dtype)k->reduced);
    uint16_t count = 0;
    for (uint32_t j = 0; j < steps; j++) {
        bool after = j >= k->steps;
        if (j == k->steps)
            p->first[1] = count;
        add_step(k, p, after ? TN_STRIP_AFTER : TN_STRIP_BEFORE, j, (uint16_t)(k->operands + j + after), &count);
    }
    if (!k->epilogue)
        p->first[1] = count;
    p->first[2] = count;
    if (count) {
        int after = p->first[2] - p->first[1], end = join_codes(k, p, 0, p->first[1]);
        memmove(&p->code[end], &p->code[p->first[1]], (size_t)after * sizeof *p->code);
        p->first[1] = (uint16_t)end;
        p->first[2] = count = (uint16_t)join_codes(k, p, end, end + after);
    }
    /* what is stored or combined as it was loaded */
    tn_strip_part last = k->kind == TN_KERNEL_STRIP ? TN_STRIP_BEFORE : TN_STRIP_AFTER;
    for (int i = 0; i < k->outputs; i++)
        use(k, p, last, k->result[i]);
    if (k->kind == TN_KERNEL_REDUCE && !k->steps)
        use(k, p, TN_STRIP_BEFORE, 0);
    if (k->kind == TN_KERNEL_CONTRACT) { /* the factors; loaded by the contraction itself */
        use(k, p, TN_STRIP_BEFORE, 0);
        use(k, p, TN_STRIP_BEFORE, 1);
    }
    if (k->kind == TN_KERNEL_CONTRACT)
        set_apart(k, p);
    assign_buffers(k, p, registers);
    measure(p, registers);
    p->direct = count > 0 && k->outputs == 1 && p->code[count - 1].to == k->result[0] &&
                tn_strip_same((tn_dtype)k->output[0].dtype);
    return TN_OK;
}
