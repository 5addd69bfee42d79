/* Chains of kernels, together against one after the other, bit for bit: what may run row by row and what may not. A table of small
   programs, each of which another condition of kernels/chain.c keeps apart; and random programs whose accesses shift, reverse, repeat and
   overlap, in memory that is used again as soon as it is dead. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/os.h"
#include "base/pool.h"
#include "kernels/kernels.h"

#define MOST_KERNELS 6
#define MOST_SLOTS 10
#define MOST_SIZES 256
#define ARENA (1 << 19) /* floats */

/* An access: from element `offset` of a slot on, by strides of rows, columns and the reduced axis. The first `lacking` rows read zeros
   instead. */
typedef struct access {
    int slot;
    int64_t offset, stride[3], lacking;
} access;

/* out[i, j] = -in[0][i, j], or in[0][i, j] + in[1][i, j]; summed over the third axis where `extent[2]` is not 0. `twice`: where it
   goes besides; none in slot 0. */
typedef struct step {
    int64_t extent[3];
    access out, in[2];
    int operands;
    access twice;
} step;

/* Where a slot lies, in floats; its life: of the kernels that write and read it. */
typedef struct place {
    int64_t base, size;
    int first, last; /* -1: it has contents before the first kernel; the number of kernels: it is read afterwards */
} place;

typedef struct program {
    place slot[MOST_SLOTS];
    step step[MOST_KERNELS];
    int slots, steps;
} program;

/* --- running a program ----------------------------------------------------------------------------------------------------------------- */

typedef struct build {
    int64_t size[MOST_SIZES];
    uint32_t sizes, strides, accesses;
    tn_size stride[MOST_SIZES];
    tn_access access[4 * MOST_KERNELS];
    tn_guard guard[4 * MOST_KERNELS];
    tn_scalar_step step[MOST_KERNELS];
    uint16_t result[MOST_KERNELS][2];
    tn_kernel kernel[MOST_KERNELS];
} build;

static tn_size size_of(build *b, int64_t value) {
    b->size[b->sizes] = value;
    return b->sizes++;
}

static tn_size *sizes_of(build *b, int n, const int64_t *value) {
    tn_size *list = b->stride + b->strides;
    for (int i = 0; i < n; i++)
        b->stride[b->strides++] = size_of(b, value[i]);
    return list;
}

static tn_access *access_of(build *b, int n, const access *a) {
    b->access[b->accesses] = (tn_access){.slot = (uint32_t)a->slot,
                                         .dtype = TN_F32,
                                         .offset = size_of(b, a->offset),
                                         .stride = sizes_of(b, n, a->stride)};
    if (a->lacking) {
        b->guard[b->accesses] = (tn_guard){.coef = sizes_of(b, n, (int64_t[]){1, 0, 0}),
                                           .offset = size_of(b, -a->lacking),
                                           .extent = size_of(b, INT32_MAX)};
        b->access[b->accesses].guard = &b->guard[b->accesses];
        b->access[b->accesses].guards = 1;
    }
    return &b->access[b->accesses++];
}

static void build_kernel(build *b, const program *p, int i) {
    const step *s = &p->step[i];
    bool sums = s->extent[2] > 0, adds = s->operands == 2;
    tn_kernel *k = &b->kernel[i];
    b->step[i] = (tn_scalar_step){
        .op = adds ? TN_SCALAR_ADD : TN_SCALAR_NEG, .dtype = TN_F32, .from = TN_F32, .a = 0, .b = adds ? 1 : 0};
    b->result[i][0] = b->result[i][1] = (uint16_t)(s->operands + sums);
    *k = (tn_kernel){.kind = sums ? TN_KERNEL_REDUCE : TN_KERNEL_STRIP,
                     .outer = 2,
                     .inner = sums,
                     .operands = (uint8_t)s->operands,
                     .outputs = s->twice.slot ? 2 : 1,
                     .accumulator = TN_F32,
                     .reduced = TN_F32,
                     .combine = sums ? TN_SCALAR_ADD : 0,
                     .steps = 1,
                     .extent = sizes_of(b, 2 + sums, s->extent),
                     .result = b->result[i],
                     .step = &b->step[i]};
    k->operand = access_of(b, 2 + sums, &s->in[0]);
    if (adds)
        access_of(b, 2 + sums, &s->in[1]);
    k->output = access_of(b, 2, &s->out);
    if (s->twice.slot)
        access_of(b, 2, &s->twice);
    const place *out = &p->slot[s->out.slot];
    k->readers =
        (uint8_t)(k->outputs == 1 && out->first == i && out->last > i && out->last < p->steps ? out->last - i : 0);
    k->impl = sums ? &tn_kernel_reduce : &tn_kernel_strip;
    assert_int_equal(k->impl->prepare(k, &(tn_kernel_facts){.isa = tn_cpu_best()}), TN_OK);
}

static void fill(float *memory) {
    static float contents[ARENA];
    uint32_t s = 1;
    for (int64_t i = 0; i < ARENA && contents[ARENA - 1] == 0; i++, s = s * 1664525u + 1013904223u) // NOLINT: made once
        contents[i] = (float)(int32_t)(s | 1) * 0x1p-31f;
    memcpy(memory, contents, sizeof contents);
}

/* Whether every float of the slots that are read afterwards is the same; *together counts what was made but never written. */
static bool compare(const program *p, const float *want, const float *got, int *together) {
    bool same = true;
    for (int i = 0; i < p->slots; i++) {
        const place *s = &p->slot[i];
        bool equal = memcmp(want + s->base, got + s->base, (size_t)s->size * sizeof *want) == 0;
        if (s->last == p->steps)
            same &= equal;
        else if (s->first >= 0)
            *together += !equal;
    }
    return same;
}

/* Whether the chain gives what the kernels one after the other give, on one thread and on three. */
static bool agrees(const program *p, int *together) {
    static build b;
    static float want[ARENA], got[ARENA];
    void *slot[MOST_SLOTS];
    bool same = true;
    b.sizes = b.strides = b.accesses = 0;
    for (int i = 0; i < p->steps; i++)
        build_kernel(&b, p, i);
    tn_kernel_args args = {.slot = slot, .size = b.size};
    for (int i = 0; i < p->slots; i++)
        slot[i] = want + p->slot[i].base;
    fill(want);
    for (int i = 0; i < p->steps; i++) {
        args.kernel = &b.kernel[i];
        assert_int_equal(args.kernel->impl->run(&args), TN_OK);
    }
    for (int i = 0; i < p->slots; i++)
        slot[i] = got + p->slot[i].base;
    args.kernel = b.kernel;
    for (int threads = 1; threads <= 3; threads += 2) {
        args.pool = threads > 1 ? tn_pool_create(NULL, threads) : NULL;
        fill(got);
        assert_int_equal(tn_chain_run(&args, (uint32_t)p->steps), TN_OK);
        same &= compare(p, want, got, together);
        tn_pool_destroy(args.pool);
    }
    for (int i = 0; i < p->steps; i++)
        tn_free(NULL, b.kernel[i].program);
    return same;
}

/* --- programs that a condition keeps apart --------------------------------------------------------------------------------------------- */

#define N 512 /* rows */
#define M 128 /* columns */
#define MADE(s, from, to) \
    { (s), N *M, from, to }

typedef struct apart {
    const char *what;
    program p;
} apart;

/* Slot 0 is read, the last slot is read afterwards; in between is what only the chain reads, a link of it at least. */
#define A(from, first, ...)                                          \
    {                                                                \
        .slot = (from), .offset = (first), .stride = { __VA_ARGS__ } \
    }
#define LACKS(n, from, first, ...) \
    { .slot = (from), .offset = (first), .stride = {__VA_ARGS__}, .lacking = (n) }
#define NEG(rows, columns, sum, to, a) \
    { .extent = {rows, columns, sum}, .out = to, .in = {a}, .operands = 1 }
#define TWICE(rows, columns, sum, to, a, also) \
    { .extent = {rows, columns, sum}, .out = to, .in = {a}, .operands = 1, .twice = also }
#define ADD(rows, columns, sum, to, a, b) \
    { .extent = {rows, columns, sum}, .out = to, .in = {a, b}, .operands = 2 }

static const apart kept_apart[] = {
    {"the next column of a row",
     {.slot = {{0, N *M, -1, 0}, MADE(100000, 0, 1), {200000, N *M, 1, 2}},
      .slots = 3,
      .step = {NEG(N, M, 0, A(1, 0, M, 1), A(0, 0, M, 1)), NEG(N, M - 1, 0, A(2, 0, M, 1), A(1, 1, M, 1))},
      .steps = 2}},
    {"the next row, which comes with the next block",
     {.slot = {{0, N *M, -1, 0}, {100000, (N + 1) * M, -1, 2}, MADE(200000, 1, 2), {300000, N *M, 2, 3}},
      .slots = 4,
      .step = {NEG(N, M, 0, A(1, 0, M, 1), A(0, 0, M, 1)), NEG(N, M, 0, A(2, 0, M, 1), A(1, 0, M, 1)),
               ADD(N, M, 0, A(3, 0, M, 1), A(2, 0, M, 1), A(1, M, M, 1))},
      .steps = 3}},
    {"windows of rows, each from its own on",
     {.slot = {{0, N *M, -1, 0}, {100000, (N + 2) * M, -1, 2}, MADE(200000, 1, 2), {300000, N *M, 2, 3}},
      .slots = 4,
      .step = {NEG(N, M, 0, A(1, 0, M, 1), A(0, 0, M, 1)), NEG(N, M, 0, A(2, 0, M, 1), A(1, 0, M, 1)),
               ADD(N, M, 3, A(3, 0, M, 1), A(2, 0, M, 1, 0), A(1, 0, M, 1, M))},
      .steps = 3}},
    {"columns that run on into the next row",
     {.slot = {{0, N *M, -1, 0}, {100000, (N + 1) * M, -1, 2}, MADE(200000, 1, 2), {300000, N * 2 * M, 2, 3}},
      .slots = 4,
      .step = {NEG(N, M, 0, A(1, 0, M, 1), A(0, 0, M, 1)), NEG(N, M, 0, A(2, 0, M, 1), A(1, 0, M, 1)),
               ADD(N, 2 * M, 0, A(3, 0, 2 * M, 1), A(2, 0, M, 0), A(1, 0, M, 1))},
      .steps = 3}},
    {"rows written from their last column on, read from there on",
     {.slot = {{0, N *M, -1, 0}, {100000, (N + 1) * M, -1, 1}, MADE(200000, 1, 2), {300000, N *M, 2, 3}},
      .slots = 4,
      .step = {NEG(N, M, 0, A(1, M - 1, M, -1), A(0, 0, M, 1)), NEG(N, M, 0, A(2, 0, M, 1), A(1, M - 1, M, 1)),
               NEG(N, M, 0, A(3, 0, M, 1), A(2, 0, M, 1))},
      .steps = 3}},
    {"windows back over rows whose memory is written again",
     {.slot = {{0, (N + 2) * M, -1, 0}, MADE(100000, 0, 1), {2 * M, N *M, 1, 2}},
      .slots = 3,
      .step = {NEG(N, M, 3, A(1, 0, M, 1), A(0, 2 * M, M, 1, -M)), NEG(N, M, 0, A(2, 0, M, 1), A(1, 0, M, 1))},
      .steps = 2}},
    {"memory written again a row further on",
     {.slot = {{0, N *M, -1, 0}, MADE(100000, 0, 1), {M, N *M, 1, 2}},
      .slots = 3,
      .step = {NEG(N, M, 0, A(1, 0, M, 1), A(0, 0, M, 1)), NEG(N, M, 0, A(2, 0, M, 1), A(1, 0, M, 1))},
      .steps = 2}},
    {"memory written again in longer rows",
     {.slot = {{0, N *M / 2, -1, 0}, MADE(100000, 0, 1), {0, N *M, 1, 2}},
      .slots = 3,
      .step = {NEG(N, M, 0, A(1, 0, M, 1), A(0, 0, M / 2, 0)), NEG(N, M, 0, A(2, 0, M, 1), A(1, 0, M, 1))},
      .steps = 2}},
    {"the end of a slot that is dead, under another output",
     {.slot = {{0, N *M, -1, 0}, {100000, N *M, -1, 1}, MADE(200000, 1, 2), {100000 + N * M - M / 2, N *M / 2, 2, 3}},
      .slots = 4,
      .step = {NEG(N, M, 0, A(1, 0, M, 1), A(0, 0, M, 1)), NEG(N, M / 2, 0, A(2, 0, M / 2, 1), A(1, 0, M, 1)),
               NEG(N, M / 2, 0, A(3, 0, M / 2, 1), A(2, 0, M / 2, 1))},
      .steps = 3}},
    {"columns of what is made",
     {.slot = {{0, M *M * 4, -1, 0}, {100000, M *M * 4, 0, 1}, {200000, M *M * 4, 1, 2}},
      .slots = 3,
      .step = {NEG(2 * M, 2 * M, 0, A(1, 0, 2 * M, 1), A(0, 0, 2 * M, 1)),
               NEG(2 * M, 2 * M, 0, A(2, 0, 2 * M, 1), A(1, 0, 1, 2 * M))},
      .steps = 2}},
    {"rows of zeros before the others",
     {.slot = {{0, N *M, -1, 0}, MADE(100000, 0, 1), {200000, N *M, 1, 2}},
      .slots = 3,
      .step = {NEG(N, M, 0, A(1, 0, M, 1), A(0, 0, M, 1)), NEG(N, M, 0, A(2, 0, M, 1), LACKS(2, 1, 0, M, 1))},
      .steps = 2}},
    {"another number of rows, all of them wanted",
     {.slot =
          {{0, N *M / 2 * 3, -1, 0}, {100000, N *M / 2 * 3, 0, 3}, {200000, N *M / 2 * 3, 1, 2}, {300000, N *M, 2, 3}},
      .slots = 4,
      .step = {NEG(N / 2 * 3, M, 0, A(1, 0, M, 1), A(0, 0, M, 1)), NEG(N / 2 * 3, M, 0, A(2, 0, M, 1), A(1, 0, M, 1)),
               NEG(N, M, 0, A(3, 0, M, 1), A(2, 0, M, 1))},
      .steps = 3}},
    {"two outputs",
     {.slot = {{0, N *M, -1, 0}, MADE(100000, 0, 1), {200000, N *M, 1, 2}, {300000, N *M, 1, 2}},
      .slots = 4,
      .step = {NEG(N, M, 0, A(1, 0, M, 1), A(0, 0, M, 1)), TWICE(N, M, 0, A(2, 0, M, 1), A(1, 0, M, 1), A(3, 0, M, 1))},
      .steps = 2}},
    {"the first row, for all",
     {.slot = {{0, N *M, -1, 0}, MADE(100000, 0, 1), {200000, N *M, 1, 2}},
      .slots = 3,
      .step = {NEG(N, M, 0, A(1, 0, M, 1), A(0, 0, M, 1)), NEG(N, M, 0, A(2, 0, M, 1), A(1, 0, 0, 1))},
      .steps = 2}},
};

static void test_apart(void **state) {
    (void)state;
    int wrong = 0;
    for (size_t i = 0; i < sizeof kept_apart / sizeof *kept_apart; i++) {
        int together = 0;
        if (!agrees(&kept_apart[i].p, &together)) {
            print_error("other bits: %s\n", kept_apart[i].what);
            wrong++;
        }
    }
    assert_int_equal(wrong, 0);
}

/* --- random programs ---------------------------------------------------------------------------------------------------------------------- */

static uint64_t random_state;
static uint32_t draw(uint32_t n) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % n;
}

/* Rows of a slot as it is written; `before` and `after`: rows that it has besides. */
typedef struct layout {
    int64_t rows, columns, pitch, before, after;
    bool reversed;
} layout;

static bool inside(const access *a, const int64_t extent[3], int64_t size) {
    int64_t low = a->offset, high = a->offset;
    for (int i = 0; i < 3; i++)
        *(a->stride[i] < 0 ? &low : &high) += extent[i] > 0 ? a->stride[i] * (extent[i] - 1) : 0;
    return low >= 0 && high < size;
}

static access plain(int slot, const layout *l) {
    int64_t first = l->before * l->pitch;
    return l->reversed ? (access){.slot = slot, .offset = first + l->columns - 1, .stride = {l->pitch, -1, 0}}
                       : (access){.slot = slot, .offset = first, .stride = {l->pitch, 1, 0}};
}

/* Some reading of a slot in an extent. */
static access reading(int slot, const layout *l, int64_t size, const int64_t extent[3]) {
    static const int64_t shift[] = {0, 0, 0, 1, -1, 2};
    access a = plain(slot, l);
    if (extent[2] > 0)
        a.stride[2] = (int64_t[]){l->pitch, -l->pitch, 0, 1, -1, 0}[draw(6)];
    switch (draw(12)) {
    case 0: a.offset += l->pitch * shift[draw(6)]; break;
    case 1: a.offset += shift[draw(6)]; break;
    case 2:
        a = (access){.slot = slot,
                     .offset = a.offset + (extent[0] - 1) * l->pitch,
                     .stride = {-l->pitch, a.stride[1], a.stride[2]}};
        break;
    case 3:
        a = (access){.slot = slot,
                     .offset = a.offset + a.stride[1] * (l->columns - 1),
                     .stride = {l->pitch, -a.stride[1], a.stride[2]}};
        break;
    case 4: a.stride[1] = -a.stride[1]; break;
    case 5: a.stride[0] = 0; break;
    case 6: a = (access){.slot = slot, .offset = 0, .stride = {1, l->pitch, a.stride[2]}}; break;
    case 7:
        if (extent[0] > 2)
            a.lacking = 1 + draw(2);
        break;
    default: break;
    }
    if (!inside(&a, extent, size))
        a.stride[2] = 0;
    if (!inside(&a, extent, size))
        a = plain(slot, l);
    if (!inside(&a, extent, size))
        a.stride[1] = 0;
    return a;
}

static bool live_together(const place *a, const place *b) {
    return a->first <= b->last && b->first <= a->last;
}

static bool same_access(const access *a, const access *b) {
    return a->offset == b->offset && a->lacking == b->lacking && memcmp(a->stride, b->stride, sizeof a->stride) == 0;
}

/* Whether slot i may lie where slot j lies and dies, which one kernel reads element by element as it writes. */
static bool in_place(const program *p, int i, int j) {
    const place *a = &p->slot[i], *b = &p->slot[j];
    if (a->base != b->base || a->size != b->size || a->first < 0 || b->last != a->first)
        return false;
    const step *s = &p->step[a->first];
    for (int k = 0; k < s->operands; k++)
        if (s->in[k].slot == j && (s->extent[2] || !same_access(&s->in[k], &s->out)))
            return false;
    return true;
}

static bool fits(const program *p, int i) {
    const place *a = &p->slot[i];
    if (a->base < 0 || a->base + a->size > ARENA)
        return false;
    for (int j = 0; j < i; j++) {
        const place *b = &p->slot[j];
        if (live_together(a, b) && a->base < b->base + b->size && b->base < a->base + a->size && !in_place(p, i, j))
            return false;
    }
    return true;
}

/* Places slot i: on dead ones, or nearly, where that can be; else behind all. */
static bool put(program *p, int i) {
    place *a = &p->slot[i];
    int64_t end = 0, shift[] = {0, 0, 1, -1, N, -N, 64, -64};
    for (int j = 0; j < i; j++)
        end = p->slot[j].base + p->slot[j].size > end ? p->slot[j].base + p->slot[j].size : end;
    for (int tries = 0; tries < 12 && i > 0; tries++) {
        const place *near = &p->slot[draw((uint32_t)i)];
        a->base = near->base + (draw(3) ? shift[draw(8)] : near->size - (int64_t)draw(200));
        if (fits(p, i))
            return true;
    }
    a->base = end;
    return fits(p, i);
}

static bool random_program(program *p) {
    static const int64_t rows_of[] = {64, 96, 200, 400};
    layout l[MOST_SLOTS];
    int64_t rows = rows_of[draw(4)], columns = 40000 / rows;
    *p = (program){.slots = 2, .steps = 2 + (int)draw(MOST_KERNELS - 1)};
    for (int i = 0; i < 2; i++) {
        l[i] = (layout){.rows = rows, .columns = columns, .pitch = columns, .before = draw(3), .after = draw(3)};
        p->slot[i] = (place){.first = -1, .last = -1};
    }
    for (int i = 0; i < p->steps; i++) {
        step *s = &p->step[i];
        int slot = p->slots++;
        layout *out = &l[slot];
        *out = (layout){.rows = rows, .columns = draw(6) ? columns : columns / 2};
        if (!draw(8) && out->columns % 2 == 0) { /* two for a row of the others */
            out->rows *= 2;
            out->columns /= 2;
        }
        out->pitch = out->columns + (draw(6) ? 0 : 4);
        out->before = draw(4) ? 0 : draw(3);
        out->after = draw(4) ? 0 : draw(3);
        out->reversed = !draw(8);
        bool framed = out->pitch > out->columns || out->before + out->after > 0;
        p->slot[slot] = (place){.first = framed ? -1 : i, .last = draw(4) ? i : p->steps};
        *s = (step){.extent = {out->rows, out->columns, draw(4) ? 0 : 2 + draw(4)}, .operands = 1 + (int)draw(2)};
        s->out = plain(slot, out);
        for (int j = 0; j <= slot; j++)
            p->slot[j].size = (l[j].before + l[j].rows + l[j].after) * l[j].pitch;
        for (int k = 0; k < s->operands; k++) {
            int from = k == 0 && draw(4) ? slot - 1 : (int)draw((uint32_t)slot);
            if (from == 1 && i == 0)
                from = 0;
            s->in[k] = reading(from, &l[from], p->slot[from].size, s->extent);
            if (!inside(&s->in[k], s->extent, p->slot[from].size))
                return false;
            p->slot[from].last = p->slot[from].last > i ? p->slot[from].last : i;
        }
    }
    p->slot[p->slots - 1].last = p->steps;
    for (int i = 0; i < p->slots; i++)
        if (!put(p, i))
            return false;
    return true;
}

static void show_access(const char *before, const access *a) {
    print_error("%s%%%d[%" PRId64 " + %" PRId64 " i + %" PRId64 " j + %" PRId64 " k]", before, a->slot, a->offset,
                a->stride[0], a->stride[1], a->stride[2]);
    if (a->lacking)
        print_error(" from row %" PRId64 " on", a->lacking);
}

static void show(const program *p) {
    for (int i = 0; i < p->slots; i++)
        print_error("%%%d at %" PRId64 ", %" PRId64 " floats, alive %d to %d\n", i, p->slot[i].base, p->slot[i].size,
                    p->slot[i].first, p->slot[i].last);
    for (int i = 0; i < p->steps; i++) {
        const step *s = &p->step[i];
        print_error("%d: [%" PRId64 ", %" PRId64 ", %" PRId64 "]", i, s->extent[0], s->extent[1], s->extent[2]);
        show_access(" ", &s->out);
        for (int k = 0; k < s->operands; k++)
            show_access(k ? " + " : " = ", &s->in[k]);
        print_error("\n");
    }
}

static void test_random(void **state) {
    (void)state;
    const char *given = getenv("TENON_SEED");
    uint64_t first = given ? strtoull(given, NULL, 10) : 1;
    int ran = 0, chained = 0;
    for (uint64_t seed = first; seed < first + (given ? 1 : 400); seed++) {
        program p;
        int together = 0;
        random_state = seed * 0x9E3779B97F4A7C15u;
        if (!random_program(&p))
            continue;
        ran++;
        if (!agrees(&p, &together)) {
            show(&p);
            fail_msg("seed %" PRIu64 ": other bits", seed);
        }
        chained += together > 0;
    }
    print_message("%d programs, %d of them with links that never reached memory\n", ran, chained);
    assert_true(given || (ran > 200 && chained > ran / 8));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_apart), cmocka_unit_test(test_random)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
