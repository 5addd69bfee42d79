/* Judging results: equal bits first; the reference with moved roundings only where they differ. */
#include "interp/oracle.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/number.h"
#include "ops/scalar.h"
#include "ops/winograd.h"

/* --- equal bits ------------------------------------------------------------------------------------------------------------- */

static bool same_item(tn_dtype dtype, const void *a, const void *b, int64_t i) {
    double x = tn_load_f64(dtype, a, i), y = tn_load_f64(dtype, b, i);
    return (isnan(x) && isnan(y)) || (x == y && signbit(x) == signbit(y));
}

static bool same_shape(const tn_tensor *x, const tn_tensor *y) {
    return x->dtype == y->dtype && x->rank == y->rank &&
           memcmp(x->dims, y->dims, (size_t)x->rank * sizeof *x->dims) == 0;
}

bool tn_object_same_bits(const tn_object *a, const tn_object *b) {
    if (!a || !b)
        return a == b;
    if (a->kind != b->kind)
        return false;
    if (a->kind == TN_KIND_SEQUENCE) {
        size_t n = tn_sequence_length(a);
        bool same = n == tn_sequence_length(b);
        for (size_t i = 0; same && i < n; i++)
            same = tn_object_same_bits(tn_sequence_at(a, i), tn_sequence_at(b, i));
        return same;
    }
    if (a->kind == TN_KIND_OPTIONAL)
        return tn_object_same_bits(tn_optional_get(a), tn_optional_get(b));
    if (a->kind == TN_KIND_MAP)
        return tn_object_same_bits(tn_tensor_object(tn_map_keys(a)), tn_tensor_object(tn_map_keys(b))) &&
               tn_object_same_bits(tn_map_values(a), tn_map_values(b));
    const tn_tensor *x = (const tn_tensor *)a, *y = (const tn_tensor *)b;
    if (!same_shape(x, y))
        return false;
    if (!tn_dtype_is_float((tn_dtype)x->dtype) || !x->contiguous || !y->contiguous)
        return tn_object_equal(a, b);
    if (memcmp(x->data, y->data, tn_tensor_bytes(x)) == 0)
        return true;
    for (int64_t i = 0; i < x->count; i++)
        if (!same_item((tn_dtype)x->dtype, x->data, y->data, i))
            return false;
    return true;
}

/* Elements of contiguous f32 tensors, aligned or not. */
static inline uint32_t f32_bits(const tn_tensor *t, int64_t i) {
    uint32_t bits;
    memcpy(&bits, (const char *)t->data + 4 * i, sizeof bits);
    return bits;
}

static inline double f32_at(const tn_tensor *t, int64_t i) {
    float x;
    memcpy(&x, (const char *)t->data + 4 * i, sizeof x);
    return (double)x;
}

/* --- moved roundings ---------------------------------------------------------------------------------------------------------- */

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

/* Half a unit in the last place of 1: what one rounding may do to a number of magnitude 1. */
static double rounding_unit(tn_dtype dtype) {
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
        ((uint32_t *)out->data)[i] = f32_bits(flat, i) & 0x7fffffffu;
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

static double largest(tn_dtype dtype) {
    switch (dtype) {
    case TN_F64: return 0x1.fffffffffffffp1023;
    case TN_F32: return 0x1.fffffep127;
    case TN_BF16: return 0x1.fep127;
    case TN_F16: return 65504;
    default: return (double)INFINITY;
    }
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
                  .unit = rounding_unit((tn_dtype)t->dtype) * m->scale * (terms ? spread : 1),
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

#define KEPT_BYTES ((size_t)1 << 30)

/* The sums of absolute terms, kept for the next run where the node runs once in each. A new reference. */
static tn_status find_terms(tn_oracle *o, const tn_eval *e, tn_object **terms) {
    bool once =
        o->once == e->graph && (o->anywhere || tn_node_parent(e->graph, e->node).id == tn_graph_region(e->graph).id);
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
        if (!t || rounding_unit((tn_dtype)t->dtype) == 0 || !t->count)
            continue;
        tn_object *terms = NULL;
        if (sums)
            TN_TRY(find_terms(m->oracle, e, &terms));
        tn_tensor *own = tn_tensor_copy(t);
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

/* More runs of the reference; one that fails stays NULL: then rounding decides whether there is a result at all. */
static tn_status run_moved(tn_oracle *o, uint32_t runs, double scale, bool every) {
    if (!o->moved)
        o->moved = tn_alloc_array(o->options.heap, (size_t)TN_ORACLE_MOST * o->count + 1, sizeof(tn_object *));
    if (!o->moved)
        return tn_error_status();
    while (runs-- > 0) {
        mover m = {.state = o->seed + o->runs * 0x632BE59BD9B4E019u, .oracle = o, .scale = scale, .every = every};
        tn_interp_options options = o->options;
        options.adjust = adjust;
        options.adjust_ctx = &m;
        tn_object **out = o->moved + (size_t)o->runs++ * o->count;
        tn_status status = o->run(o->ctx, &options, out);
        for (uint32_t i = 0; i < o->count && status != TN_OK; i++)
            out[i] = NULL;
        if (status == TN_ERR_MEMORY || status == TN_ERR_CANCELLED)
            return status;
    }
    return TN_OK;
}

tn_status tn_oracle_begin(tn_oracle *o) {
    if (o->factor == 0)
        o->factor = TN_ORACLE_FACTOR;
    o->base = tn_alloc_array(o->options.heap, (size_t)o->count + 1, sizeof(tn_object *));
    if (!o->base)
        return tn_error_status();
    tn_status status = o->run(o->ctx, &o->options, o->base);
    for (uint32_t i = 0; i < o->count && status != TN_OK; i++)
        o->base[i] = NULL;
    return status;
}

void tn_oracle_free(tn_oracle *o) {
    for (uint32_t i = 0; o->base && i < o->count; i++)
        tn_object_destroy(o->base[i]);
    for (size_t i = 0; o->moved && i < (size_t)o->runs * o->count; i++)
        tn_object_destroy(o->moved[i]);
    for (uint32_t i = 0; o->terms && i < o->once->node.len; i++)
        tn_object_destroy(o->terms[i]);
    tn_free(o->options.heap, o->terms);
    tn_free(o->options.heap, o->base);
    tn_free(o->options.heap, o->moved);
    o->base = o->moved = o->terms = NULL;
    o->runs = 0;
}

/* --- judging ------------------------------------------------------------------------------------------------------------------------ */

typedef struct judging {
    tn_oracle *oracle;
    uint32_t output;
    bool exact, again; /* again: with stretched runs */
    bool doubtful;     /* not explained by the runs so far */
    tn_difference *d;
    double worst;
    char path[64]; /* "[2]" of an item of a sequence */
} judging;

static void whole(judging *j, const char *format, const char *a, const char *b) {
    j->doubtful = true;
    j->d->elements++;
    j->worst = INFINITY;
    char text[300];
    snprintf(text, sizeof text, format, a, b);
    snprintf(j->d->text, sizeof j->d->text, "%s%s%s", j->path, *j->path ? " " : "", text);
}

static void put_index(tn_text *out, const tn_tensor *t, int64_t i) {
    int64_t index[TN_MAX_RANK];
    for (int k = t->rank - 1; k >= 0; k--) {
        index[k] = i % t->dims[k];
        i /= t->dims[k];
    }
    tn_text_add(out, "[");
    for (int k = 0; k < t->rank; k++)
        tn_text_printf(out, "%s%" PRId64, k ? "," : "", index[k]);
    tn_text_add(out, "]");
}

static void put_element(tn_text *out, const tn_tensor *t, int64_t i) {
    tn_dtype dtype = (tn_dtype)t->dtype;
    if (tn_dtype_is_int(dtype) || dtype == TN_BOOL)
        tn_text_printf(out, "%" PRId64, tn_load_i64(dtype, t->data, i));
    else if (dtype == TN_F32)
        tn_text_f32(out, (float)tn_load_f64(dtype, t->data, i));
    else
        tn_text_f64(out, tn_load_f64(dtype, t->data, i));
}

static void note_element(judging *j, const tn_tensor *want, const tn_tensor *got, int64_t i, double error,
                         double allowed) {
    j->doubtful = true;
    j->d->elements++;
    double badness = allowed > 0 && isfinite(error) ? error / allowed : INFINITY;
    if (j->d->elements > 1 && !(badness > j->worst))
        return;
    j->worst = badness;
    tn_text text;
    tn_text_init(&text, j->oracle->options.heap);
    tn_text_printf(&text, "%s%selement ", j->path, *j->path ? " " : "");
    put_index(&text, want, i);
    tn_text_add(&text, " is ");
    put_element(&text, got, i);
    tn_text_add(&text, " instead of ");
    put_element(&text, want, i);
    char number[TN_NUMBER_TEXT];
    if (j->exact || allowed == 0)
        tn_text_add(&text, ", all bits must be the same");
    else if (isfinite(allowed)) {
        tn_format_f64_digits(allowed, 3, number);
        tn_text_printf(&text, ", rounding explains %s", number);
    }
    snprintf(j->d->text, sizeof j->d->text, "%s", text.failed ? "out of memory" : text.data);
    tn_text_free(&text);
}

/* The item of the k-th moved run that stands where `base`'s item does, or NULL. `path` is a list of indices. */
static const tn_tensor *moved_tensor(const judging *j, uint32_t run, int depth, const size_t *path) {
    const tn_object *o = j->oracle->moved[(size_t)run * j->oracle->count + j->output];
    for (int i = 0; o && i < depth; i++) {
        if (o->kind == TN_KIND_SEQUENCE)
            o = path[i] < tn_sequence_length(o) ? tn_sequence_at(o, path[i]) : NULL;
        else if (o->kind == TN_KIND_OPTIONAL)
            o = tn_optional_get(o);
        else if (o->kind == TN_KIND_MAP)
            o = path[i] ? tn_map_values(o) : tn_tensor_object(tn_map_keys(o));
        else
            o = NULL;
    }
    return o && o->kind == TN_KIND_TENSOR ? (const tn_tensor *)o : NULL;
}

static double rms(const tn_tensor *t) {
    double sum = 0;
    int64_t n = 0;
    for (int64_t i = 0; i < t->count; i++) {
        double x = tn_load_f64((tn_dtype)t->dtype, t->data, i);
        if (isfinite(x)) {
            sum += x * x;
            n++;
        }
    }
    return n ? sqrt(sum / (double)n) : 0;
}

/* How far two elements are apart; integers exactly as far as a double tells. */
static double apart(tn_dtype dtype, const tn_tensor *a, const tn_tensor *b, int64_t i) {
    if (dtype == TN_F32)
        return fabs(f32_at(a, i) - f32_at(b, i));
    if (!tn_dtype_is_int(dtype))
        return fabs(tn_load_f64(dtype, a->data, i) - tn_load_f64(dtype, b->data, i));
    uint64_t x = (uint64_t)tn_load_i64(dtype, a->data, i), y = (uint64_t)tn_load_i64(dtype, b->data, i);
    bool less = dtype == TN_U64 ? x < y : (int64_t)x < (int64_t)y;
    return (double)(less ? y - x : x - y);
}

static void judge_tensor(judging *j, const tn_tensor *want, const tn_tensor *got, int depth, const size_t *path) {
    char a[200], b[200];
    const tn_oracle *o = j->oracle;
    if (!same_shape(want, got)) {
        for (uint32_t r = 0; r < o->runs && !j->exact; r++) {
            const tn_tensor *m = moved_tensor(j, r, depth, path);
            if (!m || !same_shape(m, want))
                return; /* rounding decides how large it is */
        }
        whole(j, "is %s instead of %s", tn_tensor_describe(got, a, sizeof a), tn_tensor_describe(want, b, sizeof b));
        return;
    }
    tn_dtype dtype = (tn_dtype)want->dtype;
    bool number = tn_dtype_is_float(dtype) || tn_dtype_is_int(dtype) || dtype == TN_BOOL;
    if (!number) {
        if (!tn_object_equal((const tn_object *)want, (const tn_object *)got))
            whole(j, "differs: %s%s", tn_tensor_describe(got, a, sizeof a), "");
        return;
    }
    const tn_tensor *moved[TN_ORACLE_MOST] = {NULL};
    uint32_t runs = o->runs;
    for (uint32_t r = 0; r < o->runs && !j->exact; r++) {
        moved[r] = moved_tensor(j, r, depth, path);
        if (!moved[r] || !same_shape(moved[r], want))
            return;
    }
    /* what no moved rounding reaches is exact, whatever moves exact arithmetic too */
    if (runs > TN_ORACLE_RUNS + TN_ORACLE_STRETCHED && !j->exact) {
        bool reached = false;
        for (uint32_t r = 0; r < TN_ORACLE_RUNS + TN_ORACLE_STRETCHED && !reached; r++)
            reached = !tn_object_same_bits((const tn_object *)want, (const tn_object *)moved[r]);
        runs = reached ? runs : TN_ORACLE_RUNS + TN_ORACLE_STRETCHED;
    }
    size_t bytes = (size_t)tn_dtype_bits(dtype) / 8;
    double more = o->tolerance > 0 && tn_dtype_is_float(dtype) && !j->exact ? o->tolerance * rms(want) : 0;
    for (int64_t i = 0; i < want->count; i++) {
        if (bytes && memcmp((char *)want->data + (size_t)i * bytes, (char *)got->data + (size_t)i * bytes, bytes) == 0)
            continue;
        if (same_item(dtype, want->data, got->data, i) &&
            (!tn_dtype_is_int(dtype) || tn_load_i64(dtype, want->data, i) == tn_load_i64(dtype, got->data, i)))
            continue;
        double w = tn_load_f64(dtype, want->data, i), g = tn_load_f64(dtype, got->data, i), allowed = 0,
               error = apart(dtype, want, got, i);
        bool unstable = false;
        for (uint32_t r = 0; r < runs && !j->exact; r++) {
            double m = dtype == TN_F32 ? f32_at(moved[r], i) : tn_load_f64(dtype, moved[r]->data, i);
            double scale = r < TN_ORACLE_RUNS || r >= TN_ORACLE_RUNS + TN_ORACLE_STRETCHED ? o->factor : 1;
            if (dtype == TN_F32 && isfinite(m) && isfinite(w) && w != 0)
                allowed = scale * fabs(m - w) > allowed ? scale * fabs(m - w) : allowed;
            else if (isfinite(w) && (w != 0 || g != 0) ? !isfinite(m)
                                                       : !same_item(dtype, want->data, moved[r]->data, i))
                unstable = true;
            else if (isfinite(w) && scale * apart(dtype, want, moved[r], i) > allowed)
                allowed = scale * apart(dtype, want, moved[r], i);
        }
        if (unstable)
            continue;
        if (isfinite(w) && isfinite(g) && (allowed > 0 || more > 0) && error <= allowed + more)
            continue;
        if (isfinite(w) && isinf(g) && allowed > 0 && fabs(w) + allowed >= largest(dtype) &&
            (w == 0 || !signbit(w) == !signbit(g)))
            continue; /* what rounding explains reaches beyond the largest number */
        note_element(j, want, got, i, error, allowed + more);
    }
}

static void judge_object(judging *j, const tn_object *want, const tn_object *got, int depth, size_t *path) {
    if (tn_object_same_bits(want, got))
        return;
    if (!want || !got || want->kind != got->kind || depth == 8) {
        whole(j, "is of another kind%s%s", "", "");
        return;
    }
    switch ((tn_kind)want->kind) {
    case TN_KIND_TENSOR: {
        tn_tensor *w = tn_tensor_contiguous(j->oracle->options.heap, (tn_tensor *)want),
                  *g = w ? tn_tensor_contiguous(j->oracle->options.heap, (tn_tensor *)got) : NULL;
        if (g)
            judge_tensor(j, w, g, depth, path);
        else
            whole(j, "cannot be compared: %s%s", "out of memory", "");
        tn_tensor_destroy(w);
        tn_tensor_destroy(g);
        return;
    }
    case TN_KIND_SEQUENCE:
        if (tn_sequence_length(want) != tn_sequence_length(got)) {
            char a[24], b[24];
            snprintf(a, sizeof a, "%zu", tn_sequence_length(got));
            snprintf(b, sizeof b, "%zu", tn_sequence_length(want));
            whole(j, "has %s items instead of %s", a, b);
            return;
        }
        for (size_t i = 0; i < tn_sequence_length(want); i++) {
            path[depth] = i;
            snprintf(j->path, sizeof j->path, "item %zu", i);
            judge_object(j, tn_sequence_at(want, i), tn_sequence_at(got, i), depth + 1, path);
        }
        *j->path = 0;
        return;
    case TN_KIND_OPTIONAL:
        path[depth] = 0;
        judge_object(j, tn_optional_get(want), tn_optional_get(got), depth + 1, path);
        return;
    case TN_KIND_MAP:
        path[depth] = 0;
        judge_object(j, tn_tensor_object(tn_map_keys(want)), tn_tensor_object(tn_map_keys(got)), depth + 1, path);
        path[depth] = 1;
        judge_object(j, tn_map_values(want), tn_map_values(got), depth + 1, path);
        return;
    }
}

static void judge_once(judging *j, const tn_object *want, const tn_object *got) {
    size_t path[8];
    j->doubtful = false;
    j->worst = 0;
    *j->path = 0;
    *j->d = (tn_difference){.output = j->output};
    judge_object(j, want, got, 0, path);
}

tn_status tn_oracle_judge(tn_oracle *o, uint32_t output, const tn_object *got, bool exact, bool *right,
                          tn_difference *difference) {
    const tn_object *want = o->base[output];
    *right = true;
    if (tn_object_same_bits(want, got))
        return TN_OK;
    if (!exact && !o->runs)
        TN_TRY(run_moved(o, TN_ORACLE_RUNS, 1, false));
    judging j = {.oracle = o, .output = output, .exact = exact, .d = difference};
    judge_once(&j, want, got);
    if (j.doubtful && !exact && o->runs == TN_ORACLE_RUNS) {
        TN_TRY(run_moved(o, TN_ORACLE_STRETCHED, o->factor, false));
        judge_once(&j, want, got);
    }
    if (j.doubtful && !exact && o->runs == TN_ORACLE_RUNS + TN_ORACLE_STRETCHED) {
        TN_TRY(run_moved(o, TN_ORACLE_EVERY, 1, true));
        judge_once(&j, want, got);
    }
    *right = !j.doubtful;
    return TN_OK;
}
