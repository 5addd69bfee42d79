/* Running strips: loads, steps, stores. */
#include "kernels/move.h"

#include <math.h>
#include <string.h>

void tn_machine_inside(const tn_resolved_access *a, int axes, int axis, const int64_t *at, int64_t n, int64_t *low,
                       int64_t *high) {
    int64_t lo = 0, hi = n;
    for (int g = 0; g < a->guards; g++) {
        const tn_resolved_guard *q = &a->guard[g];
        int64_t first = q->offset, step = axis >= 0 ? q->coef[axis] : 0;
        for (int i = 0; i < axes; i++)
            first += q->coef[i] * at[i];
        if (step == 0) {
            if (first < 0 || first >= q->extent)
                hi = 0;
            continue;
        }
        /* 0 <= first + step * i < extent, step > 0 */
        int64_t from = first >= 0 ? 0 : (-first + step - 1) / step;
        int64_t to = first >= q->extent ? 0 : (q->extent - first + step - 1) / step;
        lo = from > lo ? from : lo;
        hi = to < hi ? to : hi;
    }
    *low = lo < hi ? lo : 0;
    *high = lo < hi ? hi : 0;
}

/* --- loads and stores -------------------------------------------------------------------------------------------------------------- */

static int64_t stride_of(const tn_resolved_access *a, int axis) {
    return axis >= 0 ? a->stride[axis] : 0;
}

static const void *load_guarded(const tn_strip *s, const tn_resolved_access *a, const tn_strip_block *b,
                                const char *from, tn_strip_type type, char *to) {
    const tn_resolved *r = s->r;
    tn_strip_load_fn *load = s->program->level->load[a->dtype];
    int64_t stride = stride_of(a, b->axis), bytes = tn_strip_bytes(type), low, high, first = 0;
    int axes = r->outer + r->inner;
    for (int64_t row = 0; row < b->rows; row++, to += b->n * bytes) {
        tn_machine_inside(a, axes, b->axis, b->at, b->n, &low, &high);
        if (b->rows == 1 && low == 0 && high == b->n && tn_strip_same(a->dtype) && (stride == 1 || b->n == 1))
            return from;
        if (low > 0 || low == high)
            load(low < high ? low : b->n, &a->fill, 0, to);
        if (low < high) {
            load(high - low, from + low * stride * a->element, stride, to + low * bytes);
            if (high < b->n)
                load(b->n - high, &a->fill, 0, to + high * bytes);
        }
        if (row + 1 < b->rows) {
            from += a->stride[b->tile] * a->element;
            b->at[b->tile]++;
            first++;
        }
    }
    if (first)
        b->at[b->tile] -= first;
    return to - b->rows * b->n * bytes;
}

const void *tn_strip_load(tn_strip *s, int i, const tn_strip_block *b) {
    const tn_resolved_access *a = &s->r->operand[i];
    tn_strip_type type = (tn_strip_type)s->program->type[i];
    const char *from = a->base + tn_machine_offset(a, s->r->outer + s->r->inner, b->at) * a->element;
    char *to = s->buffer + s->program->buffer[i] * s->program->pitch;
    if (a->guards)
        return load_guarded(s, a, b, from, type, to);
    int64_t stride = stride_of(a, b->axis), count = b->n * b->rows, step = b->rows > 1 ? a->stride[b->tile] : 0;
    bool linear = b->rows == 1 || step == stride * b->n;
    if (linear && (stride == 1 || count == 1) && tn_strip_same(a->dtype))
        return from;
    /* broadcast operands stay from strip to strip */
    if (s->loaded[i] == from && s->loaded_n[i] == b->n && s->loaded_rows[i] >= b->rows)
        return to;
    tn_strip_load_fn *run = s->program->level->load[a->dtype];
    if (linear)
        run(count, from, stride, to);
    else if (step == 1 && stride != 0) {
        uint64_t lines[TN_STRIP_LENGTH];
        bool same = tn_strip_same(a->dtype);
        tn_move_of(s->program->level)
            ->transpose[a->element](b->n, b->rows, from, stride, same ? to : (char *)lines, b->n);
        if (!same)
            run(count, lines, 1, to);
    } else
        for (int64_t row = 0; row < b->rows; row++)
            run(b->n, from + row * step * a->element, stride, to + row * b->n * tn_strip_bytes(type));
    s->loaded[i] = from;
    s->loaded_n[i] = b->n;
    s->loaded_rows[i] = b->rows;
    return to;
}

/* Whether an operand is the same number everywhere. */
static bool is_uniform(const tn_resolved *r, const tn_resolved_access *a) {
    int64_t strides = a->guards;
    for (int i = 0; i < r->outer + r->inner; i++)
        strides |= r->extent[i] > 1 ? a->stride[i] : 0;
    return strides == 0;
}

/* What strips of some length need not load again. */
static void load_first(tn_strip *s, int i, const tn_strip_block *b) {
    const tn_resolved_access *a = &s->r->operand[i];
    s->seen |= (uint64_t)1 << i;
    if (b->n * b->rows < 64 || !is_uniform(s->r, a))
        return;
    char *to = s->buffer + s->program->buffer[i] * s->program->pitch;
    s->program->level->load[a->dtype](s->program->length, a->base, 0, to);
    s->reg[i] = to;
    s->standing |= (uint64_t)1 << i;
}

static char *output_at(const tn_strip *s, int i, const tn_strip_block *b) {
    const tn_resolved_access *a = &s->r->output[i];
    return a->base + tn_machine_offset(a, s->r->outer, b->at) * a->element;
}

static bool is_linear(const tn_resolved_access *a, const tn_strip_block *b) {
    return b->rows == 1 || a->stride[b->tile] == stride_of(a, b->axis) * b->n;
}

static void store(const tn_strip *s, int i, const tn_strip_block *b) {
    const tn_resolved_access *a = &s->r->output[i];
    const tn_kernel *k = s->r->kernel;
    tn_strip_store_fn *run = s->program->level->store[a->dtype];
    const char *from = s->reg[k->result[i]];
    int64_t stride = stride_of(a, b->axis), row = b->n * tn_strip_bytes((tn_strip_type)s->program->type[k->result[i]]);
    char *to = output_at(s, i, b);
    if (is_linear(a, b)) {
        run(b->n * b->rows, from, to, stride);
        return;
    }
    for (int64_t j = 0; j < b->rows; j++)
        run(b->n, from + j * row, to + j * a->stride[b->tile] * a->element, stride);
}

/* --- steps without a function of the level's: in 64 bits ------------------------------------------------------------------------------ */

typedef union cells {
    float f[TN_RUN];
    double d[TN_RUN];
    int64_t i[TN_RUN];
    uint64_t u[TN_RUN];
} cells;

static tn_domain domain_of(tn_dtype dtype) {
    if (tn_dtype_is_float(dtype))
        return dtype == TN_F64 ? TN_DOMAIN_F64 : TN_DOMAIN_F32;
    return tn_dtype_is_signed(dtype) ? TN_DOMAIN_I64 : TN_DOMAIN_U64;
}

/* Elements [at, at + n) of a register, as cells of `domain`. */
static void widen(tn_strip_type type, tn_domain domain, const void *reg, int64_t at, int64_t n, cells *to) {
    switch (type) {
    case TN_STRIP_F32:
        for (int64_t i = 0; i < n; i++)
            if (domain == TN_DOMAIN_F64)
                to->d[i] = (double)((const float *)reg)[at + i];
            else
                to->f[i] = ((const float *)reg)[at + i];
        break;
    case TN_STRIP_I32:
        for (int64_t i = 0; i < n; i++)
            to->i[i] = ((const int32_t *)reg)[at + i];
        break;
    case TN_STRIP_B8:
        for (int64_t i = 0; i < n; i++)
            to->u[i] = ((const uint8_t *)reg)[at + i] != 0;
        break;
    default: memcpy(to, (const uint64_t *)reg + at, (size_t)n * 8); break;
    }
}

static void narrow(tn_strip_type type, const cells *from, int64_t at, int64_t n, void *reg) {
    switch (type) {
    case TN_STRIP_F32: memcpy((float *)reg + at, from, (size_t)n * 4); break;
    case TN_STRIP_I32:
        for (int64_t i = 0; i < n; i++)
            ((int32_t *)reg)[at + i] = (int32_t)from->i[i];
        break;
    case TN_STRIP_B8:
        for (int64_t i = 0; i < n; i++)
            ((uint8_t *)reg)[at + i] = (uint8_t)from->u[i];
        break;
    default: memcpy((uint64_t *)reg + at, from, (size_t)n * 8); break;
    }
}

static void plain_step(const tn_scalar_step *s, int64_t count, const void *a, const void *b, void *to) {
    tn_scalar_op op = (tn_scalar_op)s->op;
    tn_dtype from = (tn_dtype)s->from, dtype = (tn_dtype)s->dtype;
    tn_strip_type type = tn_strip_type_of(from);
    bool cast = op == TN_SCALAR_CAST, boolean = tn_scalar_describe(op)->boolean;
    tn_domain domain = cast || op == TN_SCALAR_IS_INF ? domain_of(from) : tn_scalar_domain(op, from);
    cells x, y, z;
    const void *in[2] = {&x, &y};
    for (int64_t at = 0; at < count; at += TN_RUN) {
        int64_t n = count - at < TN_RUN ? count - at : TN_RUN;
        widen(type, domain, a, at, n, &x);
        if (tn_scalar_describe(op)->operands > 1)
            widen(type, domain, b, at, n, &y);
        if (op == TN_SCALAR_IS_INF)
            for (int64_t i = 0; i < n; i++) {
                double v = domain == TN_DOMAIN_F64 ? x.d[i] : (double)x.f[i];
                z.u[i] = isinf(v) && (v > 0 ? s->flags & 1 : s->flags & 2) ? 1 : 0;
            }
        else if (!cast)
            tn_scalar_run(op, domain)(n, in, &z);
        if (!boolean) {
            /* one rounding, to the dtype itself */
            uint64_t stored[TN_RUN];
            tn_run_store(dtype, domain, cast ? &x : &z, n, stored, 0, 1);
            tn_run_load(dtype, domain_of(dtype), stored, 0, 1, n, &z);
        }
        narrow(boolean ? TN_STRIP_B8 : tn_strip_type_of(dtype), &z, at, n, to);
    }
}

/* --- strips ---------------------------------------------------------------------------------------------------------------------------- */

#define FETCH_BYTES (8 << 20) /* of outputs, that are not in the cache when they are written */

void tn_strip_begin(tn_strip *s, const tn_resolved *r) {
    s->r = r;
    s->program = r->kernel->program;
    for (int i = 0; i < r->kernel->operands; i++)
        s->loaded[i] = NULL;
    s->seen = s->standing = 0;
    s->fetches = r->outputs_count * r->output[0].element >= FETCH_BYTES;
    s->apart_at = s->apart_n = s->apart_rows = 0;
    s->apart_axis = s->program->apart ? -1 : -2;
    for (int i = 0; i < r->kernel->operands && s->apart_axis != -2; i++)
        for (int j = 0; j < r->outer && s->program->apart_uses >> i & 1 && s->apart_axis != -2; j++)
            if (r->operand[i].stride[j] && r->extent[j] > 1 && j != s->apart_axis)
                s->apart_axis = s->apart_axis == -1 ? j : -2;
}

/* Whether the codes apart have made what they would for this block; else they are about to. */
static bool have_apart(tn_strip *s, const tn_strip_block *b) {
    if (s->apart_axis == -2 || (s->apart_axis >= 0 && s->apart_axis != b->axis))
        return false;
    int64_t at = s->apart_axis >= 0 ? b->at[b->axis] : 0;
    if (s->apart_at == at && s->apart_n == b->n && s->apart_rows >= b->rows)
        return true;
    s->apart_at = at;
    s->apart_n = b->n;
    s->apart_rows = b->rows;
    return false;
}

void tn_strip_codes(const tn_strip_program *p, tn_strip_part part, int64_t n, const void **reg, char *buffer,
                    int64_t pitch, uint64_t made, void *result) {
    int first = p->first[part], last = p->first[part + 1];
    for (int i = first; i < last; i++) {
        const tn_strip_code *c = &p->code[i];
        if (i - first < 64 && made >> (i - first) & 1)
            continue;
        void *to = result && c->to == p->code[last - 1].to ? result : buffer + p->buffer[c->to] * pitch;
        if (c->run)
            c->run(n, reg[c->a], reg[c->b], c->step->op == TN_SCALAR_CAST ? &c->step->dtype : reg[c->c], to);
        else
            plain_step(c->step, n, reg[c->a], reg[c->b], to);
        reg[c->to] = to;
    }
}

void tn_strip_compute(tn_strip *s, tn_strip_part part, const tn_strip_block *b, void *result) {
    const tn_strip_program *p = s->program;
    for (int i = 0; i < s->r->kernel->operands; i++)
        if ((p->uses[part] & ~s->standing) >> i & 1) {
            if (!(s->seen >> i & 1))
                load_first(s, i, b);
            if (!(s->standing >> i & 1))
                s->reg[i] = tn_strip_load(s, i, b);
        }
    uint64_t made = part == TN_STRIP_AFTER && p->apart && have_apart(s, b) ? p->apart : 0;
    tn_strip_codes(p, part, b->n * b->rows, s->reg, s->buffer, p->pitch, made, result);
}

/* The lines that the last code would wait for. */
static void fetch(const tn_strip *s, const tn_strip_block *b, char *to) {
    int64_t n = b->n * b->rows;
    for (int64_t i = 0; i < n * s->r->output[0].element; i += 64)
        __builtin_prefetch(to + i, 1);
}

void tn_strip_run(tn_strip *s, tn_strip_part part, const tn_strip_block *b, const void *reduced) {
    const tn_kernel *k = s->r->kernel;
    const tn_strip_program *p = s->program;
    if (reduced)
        s->reg[k->operands + k->steps] = reduced;
    bool direct = p->direct && p->first[part] < p->first[part + 1] && is_linear(&s->r->output[0], b) &&
                  (stride_of(&s->r->output[0], b->axis) == 1 || b->n * b->rows == 1);
    char *to = direct ? output_at(s, 0, b) : NULL;
    if (direct && s->fetches && p->first[part + 1] - p->first[part] > 1)
        fetch(s, b, to);
    tn_strip_compute(s, part, b, to);
    for (int i = direct ? 1 : 0; i < k->outputs; i++)
        store(s, i, b);
}

/* --- walks ------------------------------------------------------------------------------------------------------------------------------ */

#define PIECE_WORK (1 << 15) /* steps of elements; less is not worth another thread */
#define PIECES 64
#define BAND 32 /* rows of a crossed block */
/* Crossed blocks beside each other in what is read, before the next along the target's rows: else each line of the source would be the
   only one read of its page, and no processor fetches ahead. */
#define GROUP 16

static int64_t parts(int64_t n, int64_t most) {
    return (n + most - 1) / most;
}

static void run_piece(void *ctx, int64_t piece) {
    tn_strip_walk *w = ctx;
    int64_t first = piece * w->per_piece, end = first + w->per_piece;
    tn_strip_range range = {.w = w, .next = first, .end = end < w->blocks ? end : w->blocks};
    w->piece(w->ctx, &range);
}

void tn_strip_walk_run(tn_strip_walk *w, tn_pool *pool) {
    const tn_resolved *r = w->r;
    if (!r->outputs_count)
        return;
    int64_t extent = w->axis >= 0 ? r->extent[w->axis] : 1, most = w->length;
    int64_t band = w->crossed && r->extent[w->tile] < BAND ? r->extent[w->tile] : BAND;
    if (w->crossed)
        most = most < band ? 1 : most / band;
    else if (w->tile >= 0 && 2 * extent > w->length)
        w->tile = -1;
    w->stretch = parts(extent, parts(extent, most));
    if (w->stretch < extent)
        w->stretch = parts(w->stretch, 16) * 16 < most ? parts(w->stretch, 16) * 16 : most;
    w->stretches = parts(extent, w->stretch);
    w->rows = w->bands = 1;
    if (w->tile >= 0) {
        w->rows = w->crossed ? band : w->length / extent;
        w->bands = parts(r->extent[w->tile], w->rows);
        if (!w->crossed)
            w->rows = parts(r->extent[w->tile], w->bands);
    }
    w->group = w->crossed && w->stretches > 1 ? GROUP : 1;
    w->others = 0;
    w->blocks = w->stretches * w->bands;
    for (int i = 0; i < r->outer; i++)
        if (i != w->axis && i != w->tile) {
            w->order[w->others++] = i;
            w->blocks *= r->extent[i];
        }
    double work = (double)r->outputs_count * w->work / PIECE_WORK;
    int64_t pieces = work < 2 ? 1 : work > PIECES ? PIECES : (int64_t)work;
    w->per_piece = parts(w->blocks, pieces < w->blocks ? pieces : w->blocks);
    tn_pool_run_ends(pool, parts(w->blocks, w->per_piece), run_piece, w);
}

bool tn_strip_range_next(tn_strip_range *q, tn_strip_block *b) {
    const tn_strip_walk *w = q->w;
    const tn_resolved *r = w->r;
    if (q->next == q->end)
        return false;
    int64_t index = q->next, stretch = 0, band = 0;
    if (w->group > 1) {
        int64_t all = w->stretches * w->bands, at = index % all, first = at / (w->group * w->stretches) * w->group,
                beside = w->bands - first < w->group ? w->bands - first : w->group;
        index /= all;
        at -= first * w->stretches;
        stretch = at / beside;
        band = first + at % beside;
    } else if (w->stretches > 1) {
        stretch = index % w->stretches;
        index /= w->stretches;
    }
    if (w->group == 1 && w->bands > 1) {
        band = index % w->bands;
        index /= w->bands;
    }
    for (int i = w->others - 1; i >= 0; i--) {
        int axis = w->order[i];
        q->at[axis] = i ? index % r->extent[axis] : index;
        index /= r->extent[axis];
    }
    for (int i = r->outer; i < r->outer + r->inner; i++)
        q->at[i] = 0;
    *b = (tn_strip_block){.at = q->at, .axis = w->axis, .tile = w->tile, .n = 1, .rows = 1};
    if (w->axis >= 0) {
        q->at[w->axis] = stretch * w->stretch;
        int64_t left = r->extent[w->axis] - q->at[w->axis];
        b->n = left < w->stretch ? left : w->stretch;
    }
    if (w->tile >= 0) {
        q->at[w->tile] = band * w->rows;
        int64_t left = r->extent[w->tile] - q->at[w->tile];
        b->rows = left < w->rows ? left : w->rows;
    }
    q->next++;
    return true;
}
