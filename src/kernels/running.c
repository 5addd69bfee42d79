/* Running sums and products: many lanes beside each other, each in its order; lanes that lie along memory are turned in blocks. Sums and
   products of f32 are formed in f64 and rounded once each, those of integers in the integers that strips hold. */
#include "kernels/host.h"
#include "ops/fold.h"

#define LANES 64
#define STEPS 64 /* of a block that is turned */
#define CHUNK 2048

typedef struct running {
    const tn_strip_level *strips;
    tn_strip_fn *step;   /* acc op x */
    tn_strip_fn *to_f32; /* of the accumulators; NULL: they are stored as they are */
    tn_dtype dtype;
    int64_t element;
    uint64_t identity; /* of the accumulators */
    int64_t acc;       /* bytes of one */
    tn_lanes lanes;
    const char *x;
    char *out;
    bool exclusive, reverse;
} running;

static void begin_lanes(const running *w, int64_t n, void *acc) {
    for (int64_t i = 0; i < n; i++)
        if (w->acc == 8)
            ((uint64_t *)acc)[i] = w->identity;
        else
            ((uint32_t *)acc)[i] = (uint32_t)w->identity;
}

static void put(const running *w, int64_t n, const void *acc, char *to) {
    if (w->to_f32)
        w->to_f32(n, acc, NULL, NULL, to);
    else
        w->strips->store[w->dtype](n, acc, to, 1);
}

/* n lanes beside each other, over `steps` elements that lie `from_step` and `to_step` bytes apart. */
static void run_lanes(const running *w, int64_t n, int64_t steps, const char *x, int64_t from_step, char *to,
                      int64_t to_step, void *acc) {
    uint64_t loaded[CHUNK];
    for (int64_t k = 0; k < steps; k++, x += from_step, to += to_step) {
        const void *v = x;
        if (!tn_strip_same(w->dtype)) {
            w->strips->load[w->dtype](n, x, 1, loaded);
            v = loaded;
        }
        if (w->exclusive)
            put(w, n, acc, to);
        w->step(n, acc, v, NULL, acc);
        if (!w->exclusive)
            put(w, n, acc, to);
    }
}

/* NOLINTNEXTLINE(readability-non-const-parameter): a tn_host_body */
static void beside(const void *ctx, int64_t begin, int64_t end, char *scratch) {
    const running *w = ctx;
    int64_t inner = w->lanes.inner, length = w->lanes.length, line = inner * w->element;
    (void)scratch;
    for (int64_t n; begin < end; begin += n) {
        uint64_t acc[CHUNK];
        n = inner - begin % inner;
        n = n < end - begin ? n : end - begin;
        n = n < CHUNK ? n : CHUNK;
        int64_t first = (begin / inner * length * inner + begin % inner) * w->element;
        int64_t step = w->reverse ? -line : line;
        first += w->reverse ? (length - 1) * line : 0;
        begin_lanes(w, n, acc);
        run_lanes(w, n, length, w->x + first, step, w->out + first, step, acc);
    }
}

static void along(const void *ctx, int64_t begin, int64_t end, char *scratch) {
    const running *w = ctx;
    tn_move_transpose_fn *turn = tn_move_of(w->strips)->transpose[w->element];
    int64_t length = w->lanes.length, line = LANES * w->element;
    char *in = scratch, *made = scratch + STEPS * line;
    for (int64_t n; begin < end; begin += n) {
        uint64_t acc[LANES];
        n = end - begin < LANES ? end - begin : LANES;
        begin_lanes(w, n, acc);
        for (int64_t done = 0; done < length; done += STEPS) {
            int64_t steps = length - done < STEPS ? length - done : STEPS;
            int64_t at = (begin * length + (w->reverse ? length - done - steps : done)) * w->element;
            int64_t back = w->reverse ? (steps - 1) * line : 0;
            turn(n, steps, w->x + at, length, in, LANES);
            run_lanes(w, n, steps, in + back, w->reverse ? -line : line, made + back, w->reverse ? -line : line, acc);
            turn(steps, n, made, LANES, w->out + at, length);
        }
    }
}

/* Whether there are functions for it. */
static bool find_step(running *w, tn_scalar_op op, tn_isa isa) {
    tn_strip_type type = tn_strip_type_of(w->dtype);
    tn_dtype acc = w->dtype;
    w->strips = tn_strip_best(isa);
    w->acc = tn_strip_bytes(type);
    if (op != TN_SCALAR_ADD && op != TN_SCALAR_MUL)
        return false;
    if (w->dtype == TN_F32) {
        w->step = op == TN_SCALAR_ADD ? w->strips->add_wide : w->strips->mul_wide;
        w->to_f32 = w->strips->convert[TN_STRIP_F64][TN_STRIP_F32];
        w->acc = 8;
        acc = TN_F64;
    } else if (w->dtype == TN_F64 || tn_dtype_is_int(w->dtype))
        w->step = w->strips->op[op][type];
    if (!w->step || (w->dtype == TN_F32 && !w->to_f32) || !w->strips->load[w->dtype] || !w->strips->store[w->dtype])
        return false;
    uint64_t identity = 0;
    if (!tn_scalar_identity(op, acc, &identity))
        return false;
    w->identity = identity;
    if (!tn_strip_same(acc))
        w->strips->load[acc](1, &identity, 1, &w->identity);
    return true;
}

tn_status tn_host_running(tn_eval *e, tn_isa isa, bool *done) {
    const tn_tensor *x = tn_eval_in(e, 0);
    running w = {.dtype = (tn_dtype)x->dtype,
                 .element = tn_dtype_bits((tn_dtype)x->dtype) / 8,
                 .lanes = tn_lanes_of(x->rank, x->dims, (int)tn_attr_int(e->graph, e->node, "axis")),
                 .exclusive = tn_attr_int(e->graph, e->node, "exclusive") != 0,
                 .reverse = tn_attr_int(e->graph, e->node, "reverse") != 0};
    int64_t count = w.lanes.outer * w.lanes.inner;
    bool fits;
    if (x->count == 0 || count < 4 || !find_step(&w, (tn_scalar_op)tn_node_op(e->graph, e->node)->code, isa))
        return TN_OK;
    tn_tensor *out = tn_eval_result(e, 0, w.dtype, x->rank, x->dims);
    tn_tensor *flat = out ? tn_host_flat(e, 0, isa, &fits) : NULL;
    if (!flat)
        return out && !fits ? TN_OK : tn_error_status();
    w.x = flat->data;
    w.out = out->data;
    bool turned = w.lanes.inner == 1;
    tn_status status = tn_host_split(e, count, turned ? LANES : TN_HOST_BESIDE, 2.0 * (double)w.lanes.length,
                                     turned ? (size_t)(2 * STEPS * LANES * w.element) : 0, turned ? along : beside, &w);
    tn_tensor_destroy(flat);
    *done = status == TN_OK;
    return status;
}
