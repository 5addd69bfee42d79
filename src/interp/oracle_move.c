/* The reference with moved roundings: see oracle.h. */
#include <math.h>
#include <stdatomic.h>

#include "interp/oracle_move.h"
#include "ops/scalar.h"
#include "ops/winograd.h"

typedef struct mover {
    uint64_t state;
    double scale;
    tn_oracle *oracle;
    bool every; /* exact arithmetic too: its inputs may have moved across what it rounds to */
} mover;

#define STEP 0x9E3779B97F4A7C15u
static uint64_t mix(uint64_t z) { /* splitmix64 */
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

double tn_oracle_unit(tn_dtype dtype) {
    switch (dtype) {
    case TN_F64: return 0x1p-53;
    case TN_F32: return 0x1p-24;
    case TN_F16: return 0x1p-11;
    case TN_BF16: return 0x1p-8;
    default: return 0;
    }
}

/* The neighbour of a finite element; 0 stays. */
static void nudge(tn_dtype dtype, void *data, int64_t i, bool up) {
    int bits = tn_dtype_bits(dtype);
    uint64_t x = 0;
    memcpy(&x, (char *)data + i * (bits / 8), (size_t)bits / 8);
    uint64_t sign = (uint64_t)1 << (bits - 1), magnitude = x & (sign - 1);
    if (magnitude == 0)
        return;
    x = (((x & sign) == 0) == up) ? x + 1 : x - 1;
    memcpy((char *)data + i * (bits / 8), &x, (size_t)bits / 8);
}

static double bounded(double x, int bound);

/* A tensor that holds the absolute values of another. */
static tn_tensor *absolute(tn_heap *heap, tn_tensor *t, int bound) {
    tn_tensor *flat = tn_tensor_contiguous(heap, t);
    tn_tensor *out = flat ? tn_tensor_new(heap, (tn_dtype)t->dtype, t->rank, t->dims) : NULL;
    for (int64_t i = 0; out && bound == 0 && t->dtype == TN_F32 && i < out->count; i++) /* the usual case */
        ((uint32_t *)out->data)[i] = tn_f32_bits(flat, i) & 0x7fffffffu;
    for (int64_t i = 0; out && (bound || t->dtype != TN_F32) && i < out->count; i++)
        tn_store_f64((tn_dtype)t->dtype, out->data, i, bounded(tn_load_f64((tn_dtype)t->dtype, flat->data, i), bound));
    tn_tensor_destroy(flat);
    return out;
}

/* The terms of a convolution by tiles; *out stays NULL where it is none. */
static tn_status winograd_terms(const tn_eval *e, tn_object **out) {
    tn_tensor *like = tn_eval_out(e, 0), *t = tn_tensor_new(e->heap, (tn_dtype)like->dtype, like->rank, like->dims);
    bool done = false;
    tn_status status = t ? tn_winograd_terms(e, t, &done) : tn_error_status();
    if (status == TN_OK && done)
        *out = tn_tensor_object(t);
    else
        tn_tensor_destroy(t);
    return status;
}

/* The sums of absolute terms of a contraction or reduction: itself of absolute values. */
static tn_status sum_terms(const tn_eval *e, int bound, tn_object **out) {
    tn_object *in[3] = {NULL};
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < e->inputs && status == TN_OK; i++) {
        tn_tensor *t = absolute(e->heap, tn_eval_in(e, i), bound);
        in[i] = t ? tn_tensor_object(t) : NULL;
        status = t ? TN_OK : tn_error_status();
    }
    tn_tensor *like = tn_eval_out(e, 0);
    tn_tensor *room = tn_tensor_new(e->heap, (tn_dtype)like->dtype, like->rank, like->dims);
    *out = room ? tn_tensor_object(room) : NULL;
    tn_eval again = *e;
    again.in = in;
    again.out = out;
    if (status == TN_OK)
        status = room ? tn_node_op(e->graph, e->node)->eval(&again) : tn_error_status();
    for (uint32_t i = 0; i < e->inputs; i++)
        tn_object_destroy(in[i]);
    return status;
}

static double least_normal(tn_dtype dtype) {
    return dtype == TN_F64 ? 0x1p-1022 : dtype == TN_F16 ? 0x1p-14 : 0x1p-126;
}

/* A zero that is rounded may have the other sign (sums), or be the smallest number: what underflows, a sum of terms that are themselves so
   small (`size`). */
static void move_zero(tn_dtype dtype, void *data, int64_t i, bool sum, double size, bool up) {
    double x = tn_load_f64(dtype, data, i);
    bool tiny = sum && size > 0 && size < least_normal(dtype);
    if (sum && !tiny)
        tn_store_f64(dtype, data, i, up ? 0.0 : -0.0);
    else if (tiny || up) {
        uint64_t bits = (tiny ? !up : signbit(x)) ? ((uint64_t)1 << (tn_dtype_bits(dtype) - 1)) + 1 : 1;
        memcpy((char *)data + i * (tn_dtype_bits(dtype) / 8), &bits, (size_t)tn_dtype_bits(dtype) / 8);
    }
}

/* The same for ordinary f32 elements, most of what there is; false for others. `unit` has the sign of the way to go. */
static inline bool move_f32(float *p, const float *terms, double unit) {
    float x = *p;
    double size = terms ? (double)*terms : fabs((double)x);
    float y = (float)((double)x + unit * size);
    /* what is not finite is not less; neither size nor x is 0 or out of range then */
    if (!((size > 0) & (size < (double)INFINITY) & (fabsf(x) < INFINITY) & (fabsf(y) < INFINITY) & (y != 0) & (y != x)))
        return false;
    *p = y;
    return true;
}

typedef struct movement {
    uint64_t state; /* of the mover, before */
    tn_tensor *t;
    const tn_tensor *terms; /* the sums of absolute terms of a sum; NULL: no sum */
    double unit;
    bool exact;
} movement;

enum { GROUP = 64, GROUPS = 512 }; /* elements that share a draw; groups of a piece */

static void move_piece(void *ctx, int64_t piece) {
    const movement *v = ctx;
    tn_tensor *t = v->t;
    const tn_tensor *terms = v->terms;
    tn_dtype dtype = (tn_dtype)t->dtype;
    int64_t first = piece * GROUPS * GROUP, left = t->count - first,
            end = first + (left < GROUPS * GROUP ? left : GROUPS * GROUP);
    const double units[2] = {-v->unit, v->unit}; /* to be picked without a jump: nobody can tell which comes next */
    uint64_t bits = 0, state = v->state + (uint64_t)(piece * GROUPS) * STEP;
    for (int64_t i = first; i < end; i++) {
        if (i % GROUP == 0)
            bits = mix(state += STEP);
        bool up = bits >> i % GROUP & 1;
        if (dtype == TN_F32 && move_f32((float *)t->data + i, terms ? (const float *)terms->data + i : NULL, units[up]))
            continue;
        double x = tn_load_f64(dtype, t->data, i), size = terms ? tn_load_f64(dtype, terms->data, i) : fabs(x);
        if (isnan(size) || (isnan(x) && !isinf(size)))
            continue;
        if (isinf(size) && !isinf(x)) { /* terms overflow, so a sum in another order may */
            tn_store_f64(dtype, t->data, i, up ? (double)INFINITY : (double)NAN);
            continue;
        }
        tn_store_f64(dtype, t->data, i, up ? x + v->unit * size : x - v->unit * size);
        if (tn_load_f64(dtype, t->data, i) == 0 && !v->exact)
            move_zero(dtype, t->data, i, terms != NULL, size, up);
        else if (isfinite(x) && tn_load_f64(dtype, t->data, i) == x)
            nudge(dtype, t->data, i, up);
    }
}

static void move_elements(mover *m, tn_pool *pool, tn_tensor *t, const tn_tensor *terms, double spread, bool exact) {
    movement v = {.state = m->state,
                  .t = t,
                  .terms = terms,
                  .unit = tn_oracle_unit((tn_dtype)t->dtype) * m->scale * (terms ? spread : 1),
                  .exact = exact};
    int64_t groups = (t->count + GROUP - 1) / GROUP;
    tn_pool_run(pool, (groups + GROUPS - 1) / GROUPS, move_piece, &v);
    m->state += (uint64_t)groups * STEP;
}

static bool is_product(const tn_eval *e) {
    const tn_op *op = tn_node_op(e->graph, e->node);
    return op->traits & TN_REDUCTION && op->code == TN_SCALAR_MUL;
}

/* A factor as it is, at least 1, or at most 1. */
static double bounded(double x, int bound) {
    x = fabs(x);
    return bound == 0 || isnan(x) ? x : bound > 0 ? (x > 1 ? x : 1) : x < 1 && x > 0 ? x : 1;
}

/* How many terms each element of a sum has, about. */
static double term_count(const tn_eval *e) {
    const tn_tensor *x = tn_eval_in(e, 0), *y = tn_eval_out(e, 0);
    const int64_t *axes;
    uint32_t n = tn_attr_ints(e->graph, e->node, "a_contract", &axes);
    if (e->inputs == 1)
        return y->count && x->count > y->count ? (double)x->count / (double)y->count : 1;
    if (e->inputs == 2 && tn_node_attr(e->graph, e->node, "a_contract")) {
        double count = 1;
        for (uint32_t i = 0; i < n; i++)
            count *= (double)x->dims[axes[i]];
        return count;
    }
    const tn_tensor *w = e->inputs == 2 ? tn_eval_in(e, 1) : x; /* a convolution */
    return w->rank && w->dims[0] ? (double)w->count / (double)w->dims[0] : 1;
}

/* Products in another order may overflow or underflow on the way: infinite where they might. */
static tn_status product_terms(const tn_eval *e, tn_object **out) {
    tn_object *large = NULL, *small = NULL;
    tn_status status = sum_terms(e, 0, out);
    if (status == TN_OK)
        status = sum_terms(e, 1, &large);
    if (status == TN_OK)
        status = sum_terms(e, -1, &small);
    if (status == TN_OK) {
        tn_tensor *t = (tn_tensor *)*out, *l = (tn_tensor *)large, *s = (tn_tensor *)small;
        tn_dtype d = (tn_dtype)t->dtype;
        double least = least_normal(d);
        for (int64_t i = 0; i < t->count; i++)
            if (isinf(tn_load_f64(d, l->data, i)) || tn_load_f64(d, s->data, i) < least)
                tn_store_f64(d, t->data, i, INFINITY);
    }
    tn_object_destroy(large);
    tn_object_destroy(small);
    return status;
}

/* Whether a node runs once in a run. */
static bool runs_once(const tn_oracle *o, const tn_eval *e) {
    return o->once == e->graph && (o->anywhere || tn_node_parent(e->graph, e->node).id == tn_graph_region(e->graph).id);
}

#define KEPT_BYTES ((size_t)1 << 30)

/* The sums of absolute terms, kept for the next run where the node runs once in each. A new reference. */
static tn_status find_terms(tn_oracle *o, const tn_eval *e, tn_object **terms) {
    bool once = runs_once(o, e);
    if (once && !o->terms && !(o->terms = tn_alloc_array(o->options.heap, o->once->node.len + 1u, sizeof(tn_object *))))
        return tn_error_status();
    if (once && o->terms[e->node.id]) {
        *terms = tn_object_retain(o->terms[e->node.id]);
        return TN_OK;
    }
    tn_status status = TN_OK;
    *terms = NULL;
    if (o->winograd)
        status = winograd_terms(e, terms);
    if (status == TN_OK && !*terms)
        status = is_product(e) ? product_terms(e, terms) : sum_terms(e, 0, terms);
    size_t bytes = status == TN_OK ? tn_tensor_bytes((tn_tensor *)*terms) : 0;
    if (status == TN_OK && once && bytes <= KEPT_BYTES - o->terms_bytes) {
        o->terms[e->node.id] = tn_object_retain(*terms);
        o->terms_bytes += bytes;
    }
    return status;
}

/* A contraction, its operands and its result. */
struct tn_oracle_sum {
    tn_object *in[2], *out;
    bool moves; /* it has had other operands */
};

static void forget(struct tn_oracle_sum *sum) {
    tn_object_destroy(sum->in[0]);
    tn_object_destroy(sum->in[1]);
    tn_object_destroy(sum->out);
    *sum = (struct tn_oracle_sum){.moves = sum->moves};
}

static struct tn_oracle_sum *sum_of(tn_oracle *o, const tn_eval *e) {
    if (e->inputs != 2 || e->outputs != 1 || !tn_node_has_trait(e->graph, e->node, TN_CONTRACTION) || !runs_once(o, e))
        return NULL;
    if (!o->sums)
        o->sums = tn_alloc_array(o->options.heap, o->once->node.len + 1u, sizeof *o->sums);
    return o->sums ? &o->sums[e->node.id] : NULL;
}

/* A contraction of what never moves is computed once; only its own rounding is moved. */
static void keep_sum(tn_oracle *o, const tn_eval *e) {
    struct tn_oracle_sum *sum = sum_of(o, e);
    size_t bytes = sum ? tn_tensor_bytes(tn_eval_out(e, 0)) : 0;
    if (!sum || sum->out || sum->moves || bytes > KEPT_BYTES - o->terms_bytes)
        return;
    for (int i = 0; i < 2; i++)
        sum->in[i] = tn_object_retain(e->in[i]);
    sum->out = tn_object_retain(e->out[0]);
    o->terms_bytes += bytes;
}

/* Whether nothing else holds a tensor or its elements. */
static bool is_alone(const tn_tensor *t) {
    return t->contiguous && t->storage && t->storage->owned && atomic_load(&t->object.refs) == 1 &&
           atomic_load(&t->storage->refs) == 1;
}

static tn_status adjust(void *ctx, tn_eval *e);

static tn_status instead(void *ctx, tn_eval *e, bool *done) {
    mover *m = ctx;
    struct tn_oracle_sum *sum = sum_of(m->oracle, e);
    if (!sum || !sum->out)
        return TN_OK;
    *done = sum->in[0] == e->in[0] && sum->in[1] == e->in[1];
    if (!*done) {
        sum->moves = true;
        m->oracle->terms_bytes -= tn_tensor_bytes((tn_tensor *)sum->out);
        forget(sum);
        return TN_OK;
    }
    tn_object_destroy(e->out[0]);
    e->out[0] = tn_object_retain(sum->out);
    return adjust(m, e);
}

static tn_status adjust(void *ctx, tn_eval *e) {
    mover *m = ctx;
    const tn_op *op = tn_node_op(e->graph, e->node);
    bool exact = (op->traits & TN_EXACT) != 0;
    if (op->traits & (TN_VIEW | TN_CONSTANT | TN_CONTROL | TN_CALL | TN_EFFECT) || op->define ||
        (exact && !(m->every && op->traits & TN_ELEMENTWISE)))
        return TN_OK;
    bool sums = op->traits & (TN_CONTRACTION | TN_REDUCTION) && e->inputs <= 3 && e->outputs == 1;
    for (uint32_t i = 0; i < e->outputs; i++) {
        tn_tensor *t = e->out[i] && e->out[i]->kind == TN_KIND_TENSOR ? (tn_tensor *)e->out[i] : NULL;
        if (!t || tn_oracle_unit((tn_dtype)t->dtype) == 0 || !t->count)
            continue;
        tn_object *terms = NULL;
        if (sums)
            TN_TRY(find_terms(m->oracle, e, &terms));
        keep_sum(m->oracle, e);
        tn_tensor *own = is_alone(t) ? tn_tensor_retain(t) : tn_tensor_copy(t);
        if (own) {
            double spread = !sums ? 1 : is_product(e) ? sqrt(term_count(e)) : sqrt(term_count(e)) / 3;
            move_elements(m, e->pool, own, (tn_tensor *)terms, spread > 1 ? spread : 1, exact);
            tn_object_destroy(e->out[i]);
            e->out[i] = tn_tensor_object(own);
        }
        tn_object_destroy(terms);
        if (!own)
            return tn_error_status();
    }
    return TN_OK;
}

tn_status tn_oracle_run_moved(tn_oracle *o, uint32_t runs, double scale, bool every) {
    if (!o->moved)
        o->moved = tn_alloc_array(o->options.heap, (size_t)TN_ORACLE_MOST * o->count + 1, sizeof(tn_object *));
    if (!o->moved)
        return tn_error_status();
    while (runs-- > 0) {
        mover m = {.state = o->seed + o->runs * 0x632BE59BD9B4E019u, .oracle = o, .scale = scale, .every = every};
        tn_interp_options options = o->options;
        options.adjust = adjust;
        options.adjust_ctx = &m;
        options.instead = instead;
        tn_object **out = o->moved + (size_t)o->runs++ * o->count;
        tn_status status = o->run(o->ctx, &options, out);
        for (uint32_t i = 0; i < o->count && status != TN_OK; i++)
            out[i] = NULL;
        if (status == TN_ERR_MEMORY || status == TN_ERR_CANCELLED)
            return status;
    }
    return TN_OK;
}

void tn_oracle_forget(tn_oracle *o) {
    for (uint32_t i = 0; o->terms && i < o->once->node.len; i++)
        tn_object_destroy(o->terms[i]);
    for (uint32_t i = 0; o->sums && i < o->once->node.len; i++)
        forget(&o->sums[i]);
    tn_free(o->options.heap, o->terms);
    tn_free(o->options.heap, o->sums);
    o->terms = NULL;
    o->sums = NULL;
}
