/* Judging results: equal bits first; the reference with moved roundings (oracle_move.c) only where they differ. */

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/number.h"
#include "interp/oracle_move.h"

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
    tn_oracle_forget(o);
    tn_free(o->options.heap, o->base);
    tn_free(o->options.heap, o->moved);
    o->base = o->moved = NULL;
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

static double largest(tn_dtype dtype) {
    switch (dtype) {
    case TN_F64: return 0x1.fffffffffffffp1023;
    case TN_F32: return 0x1.fffffep127;
    case TN_BF16: return 0x1.fep127;
    case TN_F16: return 65504;
    default: return (double)INFINITY;
    }
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
        return fabs(tn_f32_at(a, i) - tn_f32_at(b, i));
    if (!tn_dtype_is_int(dtype))
        return fabs(tn_load_f64(dtype, a->data, i) - tn_load_f64(dtype, b->data, i));
    uint64_t x = (uint64_t)tn_load_i64(dtype, a->data, i), y = (uint64_t)tn_load_i64(dtype, b->data, i);
    bool less = dtype == TN_U64 ? x < y : (int64_t)x < (int64_t)y;
    return (double)(less ? y - x : x - y);
}

/* Whether a run moves exact arithmetic, too. */
static bool moves_every(uint32_t run) {
    return run >= TN_ORACLE_RUNS && run < TN_ORACLE_RUNS + TN_ORACLE_EVERY;
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
    bool reached = o->rewritten; /* what no moved rounding reaches is exact, whatever moves exact arithmetic too */
    for (uint32_t r = 0; r < o->runs && !j->exact; r++) {
        moved[r] = moved_tensor(j, r, depth, path);
        if (!moved[r] || !same_shape(moved[r], want))
            return;
        reached =
            reached || (!moves_every(r) && !tn_object_same_bits((const tn_object *)want, (const tn_object *)moved[r]));
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
        for (uint32_t r = 0; r < o->runs && !j->exact; r++) {
            if (moves_every(r) && !reached)
                continue;
            double m = dtype == TN_F32 ? tn_f32_at(moved[r], i) : tn_load_f64(dtype, moved[r]->data, i);
            double scale = r < TN_ORACLE_RUNS + TN_ORACLE_EVERY ? o->factor : 1;
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
        /* when all roundings move, movements before the last one may have made up for it in each run */
        if (o->runs > TN_ORACLE_RUNS && reached && isfinite(w))
            allowed = fmax(allowed, 2 * tn_oracle_unit(dtype) * fabs(w));
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
        TN_TRY(tn_oracle_run_moved(o, TN_ORACLE_RUNS, 1, false));
    judging j = {.oracle = o, .output = output, .exact = exact, .d = difference};
    judge_once(&j, want, got);
    if (j.doubtful && !exact && o->runs == TN_ORACLE_RUNS) {
        TN_TRY(tn_oracle_run_moved(o, TN_ORACLE_EVERY, 1, true));
        judge_once(&j, want, got);
    }
    if (j.doubtful && !exact && o->runs == TN_ORACLE_RUNS + TN_ORACLE_EVERY) {
        TN_TRY(tn_oracle_run_moved(o, TN_ORACLE_STRETCHED, o->factor, false));
        judge_once(&j, want, got);
    }
    *right = !j.doubtful;
    return TN_OK;
}
