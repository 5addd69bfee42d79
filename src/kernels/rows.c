/* Rows: a chain as a list of calls, each over one whole row; what a row needs stays in L1. No bit differs from that of the kernels one
   after the other: steps are the same functions, and a reduction's lanes count from the row's first element there too. */
#include "kernels/rows.h"

#include <string.h>

#define SHORTEST 64              /* elements: below, kernels that take many rows at once are better */
#define SCRATCH_BYTES (96 << 10) /* at most */

static const tn_rows_level *best_level(const tn_strip_level *strips) {
#if defined(TN_HAVE_ISA_AVX512)
    if (strips == &tn_strip_avx512)
        return &tn_rows_avx512;
    if (strips == &tn_strip_avx2)
        return &tn_rows_avx2;
#elif defined(TN_HAVE_ISA_NEON)
    if (strips == &tn_strip_neon)
        return &tn_rows_neon;
#endif
    (void)strips;
    return &tn_rows_generic;
}

#define NONE UINT16_MAX /* no place: this chain is not of rows, or too long */

typedef struct maker {
    tn_rows *p;
    const tn_rows_link *link;
    int count;
    int64_t rows;
    uint16_t made[TN_CHAIN_MOST]; /* where links' internal outputs are */
} maker;

static uint16_t add_place(maker *m, tn_rows_place place) {
    if (m->p->places == TN_ROWS_PLACES)
        return NONE;
    m->p->place[m->p->places] = place;
    return (uint16_t)m->p->places++;
}
static uint16_t add_scratch(maker *m, bool wide, bool lasting, int64_t element) {
    return add_place(
        m, (tn_rows_place){.wide = wide, .lasting = lasting, .bytes = (size_t)(wide ? m->p->length * element : 8)});
}

static bool add_code(maker *m, bool once, tn_rows_code code) {
    int *count = once ? &m->p->onces : &m->p->codes;
    if (*count == TN_ROWS_CODES)
        return false;
    (once ? m->p->once : m->p->code)[(*count)++] = code;
    return true;
}

/* What an access walks in a row: one element (0), `length` side by side (1), or neither (-1). */
static int form_of(const maker *m, const tn_rows_link *l, const tn_resolved_access *a, int axes) {
    int64_t walked = 1;
    bool still = true;
    for (int i = axes - 1; i >= 0; i--)
        still &= (i ? l->r.extent[i] : l->times) == 1 || a->stride[i] == 0;
    if (still)
        return 0;
    for (int i = axes - 1; i >= 0; i--) {
        int64_t extent = i ? l->r.extent[i] : l->times;
        if (extent > 1 && a->stride[i] != walked)
            return -1;
        walked *= extent;
    }
    return walked == m->p->length ? 1 : -1;
}

/* The place of link j's operand k as a register: a row of them, or one. */
static uint16_t operand_place(maker *m, int j, int k, bool wide) {
    const tn_rows_link *l = &m->link[j];
    const tn_resolved_access *a = &l->r.operand[k];
    tn_strip_type type = tn_strip_type_of(a->dtype);
    const tn_strip_level *level = l->r.kernel->program->level;
    int form = form_of(m, l, a, l->r.outer + l->r.inner);
    uint16_t from = NONE;
    bool registers = tn_strip_same(a->dtype);
    for (int i = 0; i < j; i++)
        if (m->link[i].internal && l->r.kernel->operand[k].slot == m->link[i].r.kernel->output[0].slot) {
            from = m->made[i];
            registers = true;
        }
    int64_t step = a->stride[0] * l->times * a->element;
    if (form < 0 || (form && !wide) || (from != NONE && m->p->place[from].wide != (form != 0)))
        return NONE;
    if (from == NONE)
        from = add_place(
            m, (tn_rows_place){
                   .base = a->base, .step = step, .wide = form != 0, .link = (uint8_t)j, .operand = (uint8_t)k});
    bool spread = wide && !form;
    if (from == NONE || (registers && !spread))
        return from;
    bool once = m->p->place[from].base && step == 0;
    tn_dtype dtype = !registers                  ? a->dtype
                     : tn_strip_bytes(type) == 1 ? TN_BOOL
                     : tn_strip_bytes(type) == 4 ? TN_F32
                                                 : TN_F64;
    uint16_t to = add_scratch(m, wide, once, tn_strip_bytes(type));
    tn_rows_code c = {.op = TN_ROWS_LOAD,
                      .dtype = (uint8_t)dtype,
                      .a = from,
                      .b = from,
                      .c = from,
                      .d = NONE,
                      .to = to,
                      .n = wide ? m->p->length : 1,
                      .stride = form,
                      .load = level->load[dtype]};
    return to != NONE && add_code(m, once, c) ? to : NONE;
}

/* The codes of a part, its operands first. `reg`: places of registers. */
static bool add_part(maker *m, int j, tn_strip_part part, bool wide, uint16_t *reg) {
    const tn_rows_link *l = &m->link[j];
    const tn_kernel *k = l->r.kernel;
    const tn_strip_program *p = k->program;
    int last = p->first[part + 1];
    for (int i = 0; i < k->operands; i++)
        if (p->uses[part] >> i & 1 && (reg[i] = operand_place(m, j, i, wide)) == NONE)
            return false;
    for (int i = p->first[part]; i < last; i++) {
        const tn_strip_code *c = &p->code[i];
        /* codes that round work in place */
        uint16_t to = c->to == c->a ? reg[c->to] : add_scratch(m, wide, false, 8);
        if (!c->run || to == NONE)
            return false;
        m->p->place[to].bytes = wide ? (size_t)(m->p->length * tn_strip_bytes((tn_strip_type)p->type[c->to])) : 8;
        if (!add_code(m, false,
                      (tn_rows_code){.op = TN_ROWS_STEP,
                                     .dtype = c->step->dtype,
                                     .a = reg[c->a],
                                     .b = reg[c->b],
                                     .c = reg[c->c],
                                     .d = NONE,
                                     .to = to,
                                     .n = wide ? m->p->length : 1,
                                     .immediate = c->step->op == TN_SCALAR_CAST ? &c->step->dtype : NULL,
                                     .run = c->run}))
            return false;
        reg[c->to] = to;
    }
    return true;
}

static bool add_fold(maker *m, int j, uint16_t *reg) {
    const tn_resolved *r = &m->link[j].r;
    tn_reduction *q = &m->p->fold[m->p->folds++];
    tn_reduction_make(q, r);
    uint16_t to = add_scratch(m, false, false, 8);
    reg[r->kernel->operands + r->kernel->steps] = to;
    return to != NONE && add_code(m, false,
                                  (tn_rows_code){.op = TN_ROWS_FOLD,
                                                 .a = reg[q->summand],
                                                 .b = reg[q->summand],
                                                 .c = reg[q->summand],
                                                 .d = NONE,
                                                 .to = to,
                                                 .n = m->p->length,
                                                 .fold = q});
}

/* Puts a link's result where it belongs. */
static bool add_result(maker *m, int j, bool wide, uint16_t result) {
    const tn_rows_link *l = &m->link[j];
    const tn_resolved_access *a = &l->r.output[0];
    tn_rows *p = m->p;
    if (form_of(m, l, a, l->r.outer) != (wide ? 1 : 0))
        return false;
    m->made[j] = result;
    if (l->internal && !p->place[result].base)
        return true;
    if (l->internal) { /* what it was read from may be written again */
        tn_strip_type type = tn_strip_type_of(a->dtype);
        m->made[j] = add_scratch(m, wide, false, tn_strip_bytes(type));
        return m->made[j] != NONE && add_code(m, false,
                                              (tn_rows_code){.op = TN_ROWS_STEP,
                                                             .a = result,
                                                             .b = result,
                                                             .c = result,
                                                             .d = NONE,
                                                             .to = m->made[j],
                                                             .n = wide ? p->length : 1,
                                                             .run = l->r.kernel->program->level->convert[type][type]});
    }
    uint16_t to = add_place(m, (tn_rows_place){.base = a->base, .step = l->row, .wide = wide});
    if (to == NONE)
        return false;
    tn_rows_code *last = p->codes ? &p->code[p->codes - 1] : NULL;
    if (tn_strip_same(a->dtype) && last && last->op == TN_ROWS_STEP && last->to == result && !p->place[result].base &&
        last->a != result) {
        last->to = to;
        return true;
    }
    return add_code(m, false,
                    (tn_rows_code){.op = TN_ROWS_STORE,
                                   .dtype = (uint8_t)a->dtype,
                                   .a = result,
                                   .b = result,
                                   .c = result,
                                   .d = NONE,
                                   .to = to,
                                   .n = wide ? p->length : 1,
                                   .store = l->r.kernel->program->level->store[a->dtype]});
}

static bool add_link(maker *m, int j) {
    const tn_rows_link *l = &m->link[j];
    const tn_resolved *r = &l->r;
    bool reduces = r->kernel->kind == TN_KERNEL_REDUCE;
    int64_t outputs = r->outputs_count / m->rows;
    bool wide = reduces ? r->inner_count == m->p->length : outputs == m->p->length;
    uint16_t reg[TN_MACHINE_REGISTERS];
    if ((reduces && (!wide || outputs != 1)) || (!wide && outputs != 1))
        return false;
    memset(reg, 0xff, sizeof reg);
    if (!add_part(m, j, TN_STRIP_BEFORE, wide, reg) ||
        (reduces && (!add_fold(m, j, reg) || !add_part(m, j, TN_STRIP_AFTER, false, reg))))
        return false;
    return add_result(m, j, wide && !reduces, reg[r->kernel->result[0]]);
}

/* --- steps together ---------------------------------------------------------------------------------------------------------------------- */

static int uses_of(const tn_rows *p, uint16_t place) {
    int n = 0;
    for (int i = 0; i < p->codes; i++) {
        const tn_rows_code *c = &p->code[i];
        n += (c->a == place) + (c->b == place && c->b != c->a) + (c->c == place && c->c != c->a && c->c != c->b) +
             (c->d == place);
    }
    return n;
}

static bool is_step(const tn_rows *p, int i, const tn_strip_level *level, tn_scalar_op op) {
    return i < p->codes && p->code[i].op == TN_ROWS_STEP && p->code[i].run == level->op[op][TN_STRIP_F32] &&
           p->code[i].dtype == TN_F32 && p->code[i].n == p->length;
}
static bool is_sum(const tn_rows *p, int i, uint16_t of) {
    return i < p->codes && p->code[i].op == TN_ROWS_FOLD && p->code[i].fold->combine == TN_SCALAR_ADD &&
           p->code[i].fold->in == TN_STRIP_F32 && p->code[i].a == of;
}
/* Whether a place is read once, in scratch. */
static bool is_passing(const tn_rows *p, uint16_t place) {
    return !p->place[place].base && uses_of(p, place) == 1;
}

/* Replaces codes [i, i + n) by one. */
static void replace(tn_rows *p, int i, int n, tn_rows_code code) {
    p->code[i] = code;
    memmove(&p->code[i + 1], &p->code[i + n], (size_t)(p->codes - i - n) * sizeof code);
    p->codes -= n - 1;
}

static void join_steps(tn_rows *p, int i, const tn_strip_level *level) {
    const tn_rows_code *c = &p->code[i];
    if (c->op != TN_ROWS_LOAD || c->dtype != TN_F32 || c->stride || !is_passing(p, c->to))
        return;
    const tn_rows_code *s = c + 1;
    if (is_step(p, i + 1, level, TN_SCALAR_DIV) && s->b == c->to && s->a != c->to) {
        replace(
            p, i, 2,
            (tn_rows_code){.op = TN_ROWS_DIVIDE, .a = s->a, .b = c->a, .c = s->a, .d = NONE, .to = s->to, .n = c->n});
        return;
    }
    if (is_step(p, i + 1, level, TN_SCALAR_SUB) && s->b == c->to && s->a != c->to) {
        tn_rows_code all = {.op = TN_ROWS_EXP_SUM, .a = s->a, .b = c->a, .n = c->n, .d = NONE};
        if (is_step(p, i + 2, level, TN_SCALAR_EXP) && s[1].a == s->to && is_passing(p, s->to) &&
            is_sum(p, i + 3, s[1].to)) {
            all.c = s[1].to;
            all.to = s[2].to;
            all.fold = s[2].fold;
            replace(p, i, 4, all);
        } else if (is_step(p, i + 2, level, TN_SCALAR_MUL) && s[1].a == s->to && s[1].b == s->to &&
                   is_passing(p, s[1].to) && is_sum(p, i + 3, s[1].to)) {
            all.op = TN_ROWS_SQUARE_SUM;
            all.c = s->to;
            all.to = s[2].to;
            all.fold = s[2].fold;
            replace(p, i, 4, all);
        }
        return;
    }
    /* products are the same either way round */
    tn_strip_fn *run = i + 1 < p->codes && s->op == TN_ROWS_STEP && s->n == p->length ? s->run : NULL;
    bool scaled = run == level->pair[TN_STRIP_MUL] && s->c != c->to;
    if (!run || s->dtype != TN_F32 || !(scaled || run == level->op[TN_SCALAR_MUL][TN_STRIP_F32]) ||
        (s->a == c->to) == (s->b == c->to))
        return;
    tn_rows_code all = {.op = TN_ROWS_SCALE_SHIFT,
                        .a = s->a == c->to ? s->b : s->a,
                        .b = c->a,
                        .c = scaled ? s->c : NONE,
                        .d = NONE,
                        .to = s->to,
                        .n = c->n};
    const tn_rows_code *t = s + 1;
    bool shifted =
        scaled && is_step(p, i + 2, level, TN_SCALAR_ADD) && is_passing(p, s->to) && (t->a == s->to) != (t->b == s->to);
    if (shifted) {
        all.d = t->a == s->to ? t->b : t->a;
        all.to = t->to;
    }
    replace(p, i, shifted ? 3 : 2, all);
}

static bool same_place(const tn_rows *p, uint16_t x, uint16_t y) {
    const tn_rows_place *a = &p->place[x], *b = &p->place[y];
    return x == y || (a->base && a->base == b->base && a->step == b->step && a->wide == b->wide);
}

/* The greatest, exponentials with their sum, and the division by it. */
static bool is_softmax(const tn_rows *p, int i, const tn_strip_level *level) {
    if (i + 3 > p->codes || p->code[i].op != TN_ROWS_FOLD || p->code[i + 1].op != TN_ROWS_EXP_SUM)
        return false;
    const tn_rows_code *most = &p->code[i], *sum = most + 1, *last = sum + 1;
    if (most->fold->combine != TN_SCALAR_MAX || most->fold->in != TN_STRIP_F32 || most->n != p->length ||
        !same_place(p, sum->a, most->a) || sum->b != most->to || !is_passing(p, most->to) || p->place[sum->c].base ||
        uses_of(p, sum->c) != 2 || !is_passing(p, sum->to))
        return false;
    uint16_t by = sum->to;
    if (last->op == TN_ROWS_STEP && last->n == 1 && last->run == level->op[TN_SCALAR_RECIPROCAL][TN_STRIP_F32] &&
        last->dtype == TN_F32 && last->a == by && is_passing(p, last->to) && i + 4 <= p->codes) {
        by = last->to;
        last++;
        if (last->op != TN_ROWS_SCALE_SHIFT || last->c != NONE || last->d != NONE)
            return false;
    } else if (last->op != TN_ROWS_DIVIDE)
        return false;
    return last->a == sum->c && last->b == by;
}

/* Puts one code before those of a softmax; how many codes these are. */
static int join_softmax(tn_rows *p, int i, const tn_strip_level *level) {
    if (p->codes == TN_ROWS_CODES || !is_softmax(p, i, level))
        return 0;
    int count = p->code[i + 2].op == TN_ROWS_DIVIDE ? 3 : 4;
    uint16_t from = p->code[i].a, to = p->code[i + count - 1].to;
    memmove(&p->code[i + 1], &p->code[i], (size_t)(p->codes - i) * sizeof p->code[i]);
    p->code[i] = (tn_rows_code){
        .op = TN_ROWS_SOFTMAX, .a = from, .b = from, .c = NONE, .d = NONE, .to = to, .n = p->length, .stride = count};
    p->codes++;
    return count;
}

/* --- scratch ------------------------------------------------------------------------------------------------------------------------------ */

/* Gives scratch to a place: the first free room that is large enough. */
static void assign(tn_rows *p, uint16_t place, const int *last, int now) {
    tn_rows_place *x = &p->place[place];
    if (x->base || x->offset)
        return;
    /* not all rows begin at the same lines of the cache */
    size_t bytes = (x->bytes + 127) & ~(size_t)63, at = 64;
    for (bool moved = true; moved;) {
        moved = false;
        for (int i = 0; i < p->places; i++) {
            const tn_rows_place *y = &p->place[i];
            size_t end = y->offset + ((y->bytes + 127) & ~(size_t)63);
            if (y->base || !y->offset || last[i] < now || at >= end || y->offset >= at + bytes)
                continue;
            at = end;
            moved = true;
        }
    }
    x->offset = at;
    p->scratch = at + bytes > p->scratch ? at + bytes : p->scratch;
}

static void note_use(int *last, const tn_rows_code *c, int now) {
    const uint16_t at[] = {c->a, c->b, c->c, c->d, c->to};
    for (size_t i = 0; i < sizeof at / sizeof *at; i++)
        if (at[i] != NONE)
            last[at[i]] = now;
}

static void assign_all(tn_rows *p) {
    int last[TN_ROWS_PLACES] = {0};
    for (int i = 0; i < p->codes; i++)
        note_use(last, &p->code[i], i);
    for (int i = 0; i < p->places; i++)
        if (p->place[i].lasting) {
            last[i] = p->codes;
            assign(p, (uint16_t)i, last, 0);
        }
    for (int i = 0; i < p->codes; i++) {
        if (p->code[i].op == TN_ROWS_EXP_SUM || p->code[i].op == TN_ROWS_SQUARE_SUM)
            assign(p, p->code[i].c, last, i);
        assign(p, p->code[i].to, last, i);
    }
}

/* Whether rows are nothing but a softmax: a call takes many of them. */
static bool is_bulk(const tn_rows *p) {
    return p->codes && p->code[0].op == TN_ROWS_SOFTMAX && p->codes == 1 + p->code[0].stride &&
           p->place[p->code[0].a].base && p->place[p->code[0].to].base;
}

static void find_moving(tn_rows *p) {
    p->movings = 0;
    for (int i = 0; i < p->places; i++)
        if (p->place[i].base && p->place[i].step)
            p->moving[p->movings++] = (uint16_t)i;
    p->read = p->written = NONE;
    for (int i = 0; i < p->codes; i++) {
        const tn_rows_place *a = &p->place[p->code[i].a], *to = &p->place[p->code[i].to];
        if (a->base && a->wide && a->step > 0 && p->read == NONE)
            p->read = p->code[i].a;
        if (to->base && to->wide && to->step > 0)
            p->written = p->code[i].to;
    }
}

/* Elements of a row. */
static int64_t length_of(const tn_rows_link *link, int count, int64_t rows) {
    int64_t most = 1;
    for (int j = 0; j < count; j++) {
        int64_t n = link[j].r.outputs_count / rows * link[j].r.inner_count;
        most = n > most ? n : most;
    }
    return most;
}

bool tn_rows_make_any(tn_rows *p, const tn_rows_link *link, int count, int64_t rows) {
    maker m = {.p = p, .link = link, .count = count, .rows = rows};
    const tn_strip_level *level = link[0].r.kernel->program->level;
    p->level = best_level(level);
    p->onces = p->codes = p->places = p->folds = 0;
    p->scratch = 64;
    p->length = length_of(link, count, rows);
    for (int j = 0; j < count; j++)
        if (!add_link(&m, j))
            return false;
    for (int i = 0; i < p->codes; i++)
        join_steps(p, i, level);
    for (int i = 0; i < p->codes; i++)
        i += join_softmax(p, i, level);
    find_moving(p);
    assign_all(p);
    return true;
}

bool tn_rows_make(tn_rows *p, const tn_rows_link *link, int count, int64_t rows) {
    return length_of(link, count, rows) <= SCRATCH_BYTES / 8 && tn_rows_make_any(p, link, count, rows) &&
           (p->length >= SHORTEST || is_bulk(p)) && p->scratch <= SCRATCH_BYTES;
}

/* --- running ------------------------------------------------------------------------------------------------------------------------------- */

static float scalar_at(const char *at) {
    float x;
    memcpy(&x, at, sizeof x);
    return x;
}

static int64_t softmax_rows(const tn_rows *p, const tn_rows_code *c, char *const *at, int64_t rows) {
    bool divides = c->stride == 3;
    return p->level->softmax(rows, c->n, at[c->a], p->place[c->a].step, at[c->to], p->place[c->to].step, divides);
}

static void run_code(const tn_rows *p, const tn_rows_code *c, char *const *at, const tn_rows_ahead *ahead) {
    const float *a = (const float *)(const void *)at[c->a];
    const float *third = c->c == NONE ? NULL : (const float *)(const void *)at[c->c];
    float *to = (float *)(void *)at[c->to];
    switch ((tn_rows_op)c->op) {
    case TN_ROWS_STEP: c->run(c->n, a, at[c->b], c->immediate ? c->immediate : third, to); break;
    case TN_ROWS_LOAD: c->load(c->n, a, c->stride, to); break;
    case TN_ROWS_STORE: c->store(c->n, a, to, 1); break;
    case TN_ROWS_FOLD: tn_reduction_row(c->fold, c->n, a, to); break;
    case TN_ROWS_EXP_SUM:
    case TN_ROWS_SQUARE_SUM: {
        tn_reduction_lanes lanes;
        tn_reduction_begin(c->fold, &lanes);
        (c->op == TN_ROWS_EXP_SUM ? p->level->exp_sum : p->level->square_sum)(
            c->n, a, scalar_at(at[c->b]), (float *)(void *)at[c->c], &lanes.sums, ahead);
        if (tn_reduction_end(c->fold, &lanes, to))
            break;
        tn_reduction_begin(c->fold, &lanes);
        if (c->op == TN_ROWS_EXP_SUM)
            c->fold->level->fold_wide(c->n, third, 0, &lanes);
        else
            p->level->wide_squares(c->n, third, &lanes.sums);
        tn_reduction_end(c->fold, &lanes, to);
        break;
    }
    case TN_ROWS_SCALE_SHIFT:
        p->level->scale_shift(c->n, a, scalar_at(at[c->b]), third,
                              c->d == NONE ? NULL : (const float *)(const void *)at[c->d], to);
        break;
    case TN_ROWS_DIVIDE: p->level->divide(c->n, a, scalar_at(at[c->b]), to); break;
    case TN_ROWS_SOFTMAX: break;
    }
}

static void run_rows(const tn_rows *p, int64_t first, int64_t end, char *const *start) {
    char *at[TN_ROWS_PLACES];
    tn_rows_ahead ahead = {0};
    memcpy(at, start, (size_t)p->places * sizeof *at);
    for (int i = 0; i < p->onces; i++)
        run_code(p, &p->once[i], at, &ahead);
    bool bulk = is_bulk(p);
    for (int64_t row = first; row < end; row++) {
        if (bulk) {
            int64_t done = softmax_rows(p, p->code, at, end - row);
            for (int i = 0; i < p->movings; i++)
                at[p->moving[i]] += done * p->place[p->moving[i]].step;
            row += done;
            if (row == end)
                break;
        }
        ahead.read = row + 1 < end && p->read != NONE ? at[p->read] + p->place[p->read].step : NULL;
        ahead.write = p->written != NONE ? at[p->written] : NULL;
        for (int i = 0; i < p->codes; i++)
            if (p->code[i].op != TN_ROWS_SOFTMAX)
                run_code(p, &p->code[i], at, &ahead);
            else if (!bulk && softmax_rows(p, &p->code[i], at, 1))
                i += (int)p->code[i].stride;
        for (int i = 0; i < p->movings; i++)
            at[p->moving[i]] += p->place[p->moving[i]].step;
    }
}

void tn_rows_run_apart(const tn_rows *p, int64_t first, int64_t end, char *scratch, char *block, const int64_t *shift) {
    char *at[TN_ROWS_PLACES];
    for (int i = 0; i < p->places; i++)
        at[i] = p->place[i].apart  ? block
                : p->place[i].base ? p->place[i].base + first * p->place[i].step + (shift ? shift[i] : 0)
                                   : scratch + p->place[i].offset;
    run_rows(p, first, end, at);
}

void tn_rows_run(const tn_rows *p, int64_t first, int64_t end, char *scratch) {
    tn_rows_run_apart(p, first, end, scratch, NULL, NULL);
}
