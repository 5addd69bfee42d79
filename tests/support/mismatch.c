/* Draws of graphs whose sizes need not fit, see mismatch.h. */
#include "support/mismatch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/build.h>
#include <tenon/tenon.h>

#include "ir/tensor.h"
#include "support/model_runs.h"

enum { NAMES = 5, POOL = 48, INPUTS = 4 };

typedef struct drawing {
    uint64_t state;
    tn_graph *g;
    int64_t size[NAMES]; /* of the free dimensions A, B, ... */
    tn_value pool[POOL]; /* f32 values that may be read here; the first INPUTS are inputs */
    uint32_t count;
    int depth;            /* regions that this one lies in */
    int rank;             /* of the result of the branches being built */
    int scanned;          /* arguments of the scan body being built */
    tn_value flag, trips; /* inputs: bool scalars, i64 scalar */
} drawing;

static uint32_t draw(drawing *d, uint32_t n) {
    d->state = d->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(d->state >> 33) % n;
}

static const char *name_of(uint32_t i) {
    static const char *const names[NAMES] = {"A", "B", "C", "D", "E"};
    return names[i];
}

static tn_value pick(drawing *d) { /* later ones more often */
    uint32_t a = draw(d, d->count), b = draw(d, d->count);
    return d->pool[a > b ? a : b];
}

static tn_value pick_rank(drawing *d, int low) {
    for (int tries = 0; tries < 20; tries++) {
        tn_value v = pick(d);
        if (tn_value_rank(d->g, v) >= low)
            return v;
    }
    return (tn_value){0};
}

/* An input, of which all evaluators see the same bits: what asks which element is greatest, or not zero, may else answer of what they round
   apart. */
static tn_value pick_exact(drawing *d) {
    for (int tries = 0; tries < 20; tries++) {
        tn_value v = d->pool[draw(d, INPUTS)];
        if (tn_value_rank(d->g, v) >= 1)
            return v;
    }
    return (tn_value){0};
}

static tn_dim draw_dim(drawing *d) {
    if (draw(d, 4) == 0)
        return tn_dim_const(d->g, draw(d, 5));
    tn_dim dim = tn_dim_symbol(d->g, name_of(draw(d, NAMES)));
    switch (draw(d, 8)) {
    case 0: return tn_dim_add(d->g, dim, tn_dim_const(d->g, 1));
    case 1: return tn_dim_floordiv(d->g, dim, tn_dim_const(d->g, 2));
    case 2: return tn_dim_mul(d->g, dim, tn_dim_symbol(d->g, name_of(draw(d, NAMES))));
    case 3: return tn_dim_floordiv(d->g, dim, tn_dim_symbol(d->g, name_of(draw(d, NAMES))));
    default: return dim;
    }
}

static tn_value draw_input(drawing *d, const char *name, int rank) {
    tn_shape shape = {.rank = rank};
    for (int i = 0; i < rank; i++) {
        if (draw(d, 6) == 0)
            shape.item[i].size = 1 + draw(d, 3);
        else
            shape.item[i].name = name_of(draw(d, NAMES));
    }
    return tn_input(d->g, name, TN_F32, shape);
}

/* --- operators: the null value where none is possible ----------------------------------------------------------------------- */

static tn_value draw_binary(drawing *d) {
    tn_value a = pick(d), b = pick(d);
    switch (draw(d, 5)) {
    case 0: return tn_sub(d->g, a, b);
    case 1: return tn_mul(d->g, a, b);
    case 2: return tn_max(d->g, a, b);
    case 3: return tn_select(d->g, tn_less(d->g, a, b), a, b);
    default: return tn_add(d->g, a, b);
    }
}

static tn_value draw_unary(drawing *d) {
    tn_value x = pick(d);
    switch (draw(d, 4)) {
    case 0: return tn_neg(d->g, x);
    case 1: return tn_tanh(d->g, x);
    case 2: return tn_relu(d->g, x);
    default: return tn_value_rank(d->g, x) > 0 ? tn_softmax(d->g, x, -1) : tn_abs(d->g, x);
    }
}

static tn_value draw_reshape(drawing *d) {
    tn_value x = pick(d);
    tn_dim dims[4];
    int rank = 1 + (int)draw(d, 3);
    if (draw(d, 4) == 0 && tn_value_rank(d->g, x) > 0) { /* there and back */
        dims[0] = draw_dim(d);
        dims[1] = tn_value_dim(d->g, x, 0);
        x = tn_value_rank(d->g, x) == 1 ? tn_reshape_dims(d->g, x, 1, dims) : x;
        return tn_reshape_dims(d->g, x, 1, dims + 1);
    }
    if (draw(d, 2)) { /* one size follows from the others */
        tn_shape shape = {.rank = rank};
        int open = (int)draw(d, (uint32_t)rank);
        for (int i = 0; i < rank; i++) {
            if (i == open)
                shape.item[i].size = -1;
            else if (draw(d, 2))
                shape.item[i].name = name_of(draw(d, NAMES));
            else
                shape.item[i].size = 1 + draw(d, 3);
        }
        return tn_reshape(d->g, x, shape);
    }
    for (int i = 0; i < rank; i++)
        dims[i] = draw_dim(d);
    return tn_reshape_dims(d->g, x, rank, dims);
}

static tn_value draw_movement(drawing *d) {
    tn_graph *g = d->g;
    tn_value x = pick_rank(d, 1), y = pick(d);
    if (!x.id)
        return x;
    int rank = tn_value_rank(g, x), axis = (int)draw(d, (uint32_t)rank);
    tn_dim lo[TN_MAX_RANK], hi[TN_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        lo[i] = tn_dim_const(g, 0);
        hi[i] = tn_value_dim(g, x, i);
    }
    switch (draw(d, 6)) {
    case 0: return tn_transpose(g, x, NULL);
    case 1: /* to the shape of another value */
        for (int i = 0; i < tn_value_rank(g, y); i++)
            hi[i] = tn_value_dim(g, y, i);
        return tn_broadcast(g, x, tn_value_rank(g, y), hi);
    case 2:
        lo[axis] = draw(d, 2) ? draw_dim(d) : tn_dim_const(g, draw(d, 3));
        hi[axis] = draw(d, 2) ? draw_dim(d) : tn_dim_const(g, draw(d, 3));
        if (draw(d, 3))
            return tn_slice(g, x, lo, hi, NULL);
        x = tn_slice(g, x, lo, hi, NULL);
        hi[axis] = draw(d, 2) ? draw_dim(d) : tn_dim_const(g, draw(d, 3));
        lo[axis] = tn_dim_const(g, draw(d, 2));
        return tn_slice(g, x, lo, hi, NULL);
    case 3:
        for (int i = 0; i < rank; i++)
            hi[i] = lo[i];
        lo[axis] = draw(d, 2) ? draw_dim(d) : tn_dim_const(g, draw(d, 3));
        hi[axis] = draw(d, 2) ? tn_dim_sub(g, draw_dim(d), draw_dim(d)) : tn_dim_const(g, draw(d, 3));
        return tn_pad(g, x, tn_scalar(g, TN_F32, 0.5), lo, hi, draw(d, 4) ? "constant" : "edge");
    case 4: return tn_flatten(g, x, axis);
    default: {
        tn_value parts[3] = {x, pick_rank(d, rank), x};
        if (!parts[1].id || tn_value_rank(g, parts[1]) != rank)
            return (tn_value){0};
        return tn_concat(g, axis, 2 + draw(d, 2), parts);
    }
    }
}

/* Padding, now and then: NULL, or sizes that may be negative. */
static const tn_dim *draw_padding(drawing *d, tn_dim *dims, int rank) {
    for (int i = 0; i < rank; i++)
        dims[i] = draw(d, 3)   ? tn_dim_const(d->g, draw(d, 2))
                  : draw(d, 2) ? draw_dim(d)
                               : tn_dim_sub(d->g, draw_dim(d), draw_dim(d));
    return draw(d, 2) ? dims : NULL;
}

static tn_value draw_contraction(drawing *d) {
    tn_graph *g = d->g;
    tn_dim lo[TN_MAX_RANK], hi[TN_MAX_RANK];
    tn_value a = pick_rank(d, 1), b = pick_rank(d, 1);
    if (!a.id || !b.id)
        return (tn_value){0};
    int rank = tn_value_rank(g, a);
    if (draw(d, 3) && rank == tn_value_rank(g, b) && rank >= 3)
        return tn_conv(g, a, b, NULL, NULL, draw(d, 4) ? NULL : (int64_t[]){2, 1, 2, 1, 1, 1},
                       draw_padding(d, lo, rank - 2), draw_padding(d, hi, rank - 2), 1 + (int64_t)draw(d, 2));
    if (draw(d, 3))
        return tn_matmul(g, a, b);
    if (rank > 4)
        return (tn_value){0};
    const int64_t window[4] = {1 + draw(d, 3), 1 + draw(d, 3), 1 + draw(d, 3), 1 + draw(d, 3)};
    const int64_t stride[4] = {1 + draw(d, 2), 1 + draw(d, 2), 1 + draw(d, 2), 1 + draw(d, 2)};
    return tn_window(g, draw(d, 2) ? "max" : "sum", a, window, stride, NULL, draw_padding(d, lo, rank),
                     draw_padding(d, hi, rank));
}

static tn_value draw_reduction(drawing *d) {
    tn_graph *g = d->g;
    tn_value x = pick_rank(d, 1);
    if (!x.id)
        return x;
    int axis = (int)draw(d, (uint32_t)tn_value_rank(g, x));
    switch (draw(d, 4)) {
    case 0: return tn_reduce_mean(g, x, 1, &axis, draw(d, 2));
    case 1: return tn_cumsum(g, x, axis, false, false);
    case 2:
        x = pick_exact(d);
        return x.id ? tn_cast(g, tn_argmax(g, x, axis % tn_value_rank(g, x), draw(d, 2)), TN_F32) : x;
    default: return tn_reduce_sum(g, x, 1, &axis, draw(d, 2));
    }
}

/* Sizes that only data decide, or that are data. */
static tn_value draw_dynamic(drawing *d) {
    tn_graph *g = d->g;
    tn_value x = pick_rank(d, 1), y = pick_rank(d, 1);
    if (!x.id || !y.id)
        return (tn_value){0};
    int axis = (int)draw(d, (uint32_t)tn_value_rank(g, x));
    int64_t at[2] = {(int64_t)draw(d, 5) - 2, draw(d, 2)};
    tn_dim part[TN_MAX_RANK];
    int64_t starts[TN_MAX_RANK];
    switch (draw(d, 6)) {
    case 4:
        for (int i = 0; i < tn_value_rank(g, x); i++) {
            part[i] = draw(d, 2) ? tn_value_dim(g, x, i) : draw_dim(d);
            starts[i] = draw(d, 3);
        }
        return tn_dynamic_slice(g, x, tn_constant_i64(g, 1, tn_value_rank(g, x), starts), part);
    case 5: return tn_layer_norm(g, x, y, (tn_value){0}, axis, 1e-5);
    case 0: return tn_gather(g, x, tn_constant_i64(g, 1, 2, at), axis);
    case 1: x = pick_exact(d); return x.id ? tn_cast(g, tn_nonzero(g, x), TN_F32) : x;
    case 2: return tn_cast(g, tn_shape_of(g, x), TN_F32);
    default:
        y = pick_exact(d);
        return y.id ? tn_compress(g, x, tn_greater(g, tn_reshape(g, y, TN_SHAPE(-1)), tn_scalar(g, TN_F32, 0)), axis)
                    : y;
    }
}

static void draw_nodes(drawing *d, uint32_t count);

static tn_value total(tn_graph *g, tn_value x) {
    return tn_reduce_sum(g, x, TN_ALL_AXES, false);
}

/* A branch: some nodes, then a value of the rank asked for. */
static void branch_body(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    drawing *d = ctx;
    uint32_t count = d->count;
    int rank = d->rank;
    (void)args;
    d->depth++;
    draw_nodes(d, draw(d, 4));
    d->depth--;
    results[0] = (tn_value){0};
    for (uint32_t i = d->count; i-- && !results[0].id;)
        if (rank && tn_value_rank(g, d->pool[i]) == rank)
            results[0] = d->pool[i];
    if (!results[0].id)
        results[0] = total(g, d->pool[d->count - 1]);
    d->count = count;
    d->rank = rank;
}

static tn_value draw_if(drawing *d) {
    tn_value y = {0};
    int rank = tn_value_rank(d->g, pick(d));
    d->rank = draw(d, 2) ? rank : 0;
    tn_if(d->g, draw(d, 2) ? d->flag : tn_not(d->g, d->flag), branch_body, branch_body, d, 1, &y);
    return y;
}

static void loop_condition(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    results[0] = tn_less(g, args[0], ((drawing *)ctx)->trips);
}

static void loop_body(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    drawing *d = ctx;
    uint32_t count = d->count;
    d->depth++;
    if (d->count < POOL)
        d->pool[d->count++] = args[2];
    draw_nodes(d, 1 + draw(d, 3));
    d->depth--;
    results[0] = tn_add(g, args[0], tn_constant_i64(g, 0, 1, (int64_t[]){1}));
    results[1] = tn_add(g, args[1], total(g, d->pool[d->count - 1]));
    results[2] = tn_tanh(g, args[2]);
    d->count = count;
}

static tn_value draw_while(drawing *d) {
    tn_value init[3] = {tn_constant_i64(d->g, 0, 1, (int64_t[]){0}), tn_scalar(d->g, TN_F32, 0.25), pick(d)},
             y[3] = {{0}};
    tn_while(d->g, 3, init, NULL, loop_condition, loop_body, d, 0, y);
    return y[1 + draw(d, 2)];
}

/* A running sum over slices of one or two values, which need not be as many. */
static void scan_body(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    drawing *d = ctx;
    uint32_t count = d->count;
    d->depth++;
    for (int i = 1; i < d->scanned && d->count < POOL; i++)
        d->pool[d->count++] = args[i];
    draw_nodes(d, draw(d, 3));
    d->depth--;
    results[0] = tn_add(g, args[0], total(g, d->pool[d->count - 1]));
    results[1] = d->pool[d->count - 1];
    d->count = count;
}

static tn_value draw_scan(drawing *d) {
    tn_value init = tn_scalar(d->g, TN_F32, 0.5), xs[2] = {pick_rank(d, 1), pick_rank(d, 1)}, y[2] = {{0}};
    uint32_t scanned = 1 + draw(d, 2);
    if (!xs[0].id || !xs[1].id)
        return (tn_value){0};
    int outer = d->scanned;
    d->scanned = 1 + (int)scanned;
    tn_scan(d->g, 1, &init, scanned, xs, scan_body, d, 1, y);
    d->scanned = outer;
    return y[draw(d, 2)];
}

static void draw_nodes(drawing *d, uint32_t count) {
    for (uint32_t i = 0; i < count && d->count < POOL && tn_graph_check(d->g) == TN_OK; i++) {
        tn_value y = {0};
        switch (draw(d, d->depth < 2 ? 17 : 13)) {
        case 0:
        case 1:
        case 2:
        case 3: y = draw_binary(d); break;
        case 4: y = draw_unary(d); break;
        case 5: y = draw_reshape(d); break;
        case 6:
        case 7:
        case 8: y = draw_movement(d); break;
        case 9:
        case 10: y = draw_contraction(d); break;
        case 11: y = draw_reduction(d); break;
        case 12: y = draw_dynamic(d); break;
        case 13:
        case 14: y = draw_if(d); break;
        case 15: y = draw_scan(d); break;
        default: y = draw_while(d);
        }
        if (y.id && tn_value_rank(d->g, y) >= 0 && tn_value_rank(d->g, y) <= 6)
            d->pool[d->count++] = y;
    }
}

/* --- running ----------------------------------------------------------------------------------------------------------------- */

static void feed(drawing *d, run_inputs *in) {
    for (uint32_t i = 0; i < tn_graph_input_count(d->g); i++) {
        tn_value v = tn_graph_input(d->g, i);
        int64_t dims[TN_MAX_RANK];
        int rank = tn_value_rank(d->g, v);
        for (int k = 0; k < rank; k++)
            if (!tn_dim_is_const(d->g, tn_value_dim(d->g, v, k), &dims[k]))
                for (uint32_t n = 0; n < NAMES; n++)
                    if (tn_dim_equal(d->g, tn_value_dim(d->g, v, k), tn_dim_symbol(d->g, name_of(n))))
                        dims[k] = d->size[n];
        tn_tensor *t = tn_tensor_create(tn_value_dtype(d->g, v), rank, dims);
        for (int64_t k = 0; t && k < tn_tensor_count(t); k++)
            tn_tensor_set_f64(t, k, rank || v.id != d->trips.id ? (double)draw(d, 9) / 4 - 1 : (double)draw(d, 3));
        if (t && v.id == d->flag.id)
            tn_tensor_set_f64(t, 0, draw(d, 2));
        in->binding[in->count++] = (tn_binding){.name = tn_value_name(d->g, v), .tensor = t};
    }
}

static bool close_to(const tn_object *want, const tn_object *got) {
    const tn_tensor *a = tn_object_tensor((tn_object *)(uintptr_t)want),
                    *b = tn_object_tensor((tn_object *)(uintptr_t)got);
    if (tn_tensor_dtype(a) != tn_tensor_dtype(b) || tn_tensor_rank(a) != tn_tensor_rank(b))
        return false;
    for (int i = 0; i < tn_tensor_rank(a); i++)
        if (tn_tensor_dims(a)[i] != tn_tensor_dims(b)[i])
            return false;
    double scale = 1;
    for (int64_t i = 0; i < tn_tensor_count(a); i++)
        if (isfinite(tn_tensor_get_f64(a, i)))
            scale = fmax(scale, fabs(tn_tensor_get_f64(a, i)));
    for (int64_t i = 0; i < tn_tensor_count(a); i++) {
        double x = tn_tensor_get_f64(a, i), y = tn_tensor_get_f64(b, i);
        if (!(x == y || (isnan(x) && isnan(y)) || fabs(x - y) <= 1e-4 * scale))
            return false;
    }
    return true;
}

static tn_status run_way(tn_model *model, const run_inputs *in, tn_backend backend, int level, run_outputs *out) {
    return run_model(model,
                     TN_OPTIONS(tn_session_options, .backend = backend, .threads = 1,
                                .level = level < 0 ? TN_LEVEL_DEFAULT : (tn_level)(TN_LEVEL_0 + level)),
                     in, out);
}

/* The plan at `level` against the graph as written and against what the interpreter makes of the same optimised graph: optimisation
   may leave out a node that nobody reads, and with it the node's error; nothing else may differ. */
static bool agrees(tn_model *model, const run_inputs *in, int level, tn_status expected, const run_outputs *want,
                   run_outputs *got, char *why, size_t size) {
    char said[500];
    tn_status status = run_way(model, in, TN_BACKEND_CPU, level, got);
    bool fine = (status == TN_OK) == (expected == TN_OK) && status != TN_ERR_INTERNAL;
    snprintf(said, sizeof said, "%s", status == TN_OK ? "a result" : tn_error_message());
    if (!fine && level > 0 && status == TN_OK) {
        run_outputs optimised = {0};
        fine = run_way(model, in, TN_BACKEND_REFERENCE, level, &optimised) == TN_OK;
        for (uint32_t k = 0; fine && k < got->count; k++)
            fine = close_to(optimised.object[k], got->object[k]);
        run_outputs_free(&optimised);
    } else if (fine && status == TN_OK)
        for (uint32_t k = 0; fine && k < got->count; k++)
            if (!(fine = close_to(want->object[k], got->object[k])))
                snprintf(said, sizeof said, "another output %d", (int)k);
    if (!fine)
        snprintf(why, size, "-O%d: %s\n", level, said);
    return fine;
}

static mismatch_outcome compare(tn_model *model, const run_inputs *in, char *why, size_t size) {
    run_outputs want = {0}, got[3] = {{0}};
    tn_status expected = run_way(model, in, TN_BACKEND_REFERENCE, -1, &want);
    snprintf(why, size, "interpreter: %.500s\n", expected == TN_OK ? "a result" : tn_error_message());
    bool fine = expected != TN_ERR_INTERNAL;
    for (int level = 0; level < 3 && fine; level++)
        fine = agrees(model, in, level, expected, &want, &got[level], why + strlen(why), size - strlen(why));
    for (uint32_t k = 0; fine && k < got[0].count && k < got[1].count; k++)
        if (!(fine = tn_object_equal(got[0].object[k], got[1].object[k])))
            snprintf(why, size, "output %d of -O0 and -O1 differs\n", (int)k);
    run_outputs_free(&want);
    for (int level = 0; level < 3; level++)
        run_outputs_free(&got[level]);
    return !fine ? MISMATCH_DIFFERENT : expected == TN_OK ? MISMATCH_RESULT : MISMATCH_ERROR;
}

mismatch_outcome mismatch_draw(uint64_t seed, char *why, size_t size, char **text) {
    static const int64_t sizes[] = {0, 1, 1, 2, 2, 2, 3, 3, 4, 6};
    drawing d = {.state = seed * 0x9E3779B97F4A7C15u + 1, .g = tn_graph_create()};
    draw(&d, 2);
    int64_t usual = sizes[1 + draw(&d, 9)];
    for (int i = 0; i < NAMES; i++) /* half of the draws: mostly of one size, so that much fits */
        d.size[i] = seed % 2 && draw(&d, 3) ? usual : sizes[draw(&d, 10)];
    d.flag = tn_input(d.g, "flag", TN_BOOL, TN_SCALAR);
    d.trips = tn_input(d.g, "trips", TN_I64, TN_SCALAR);
    static const char *const names[INPUTS] = {"x", "y", "z", "w"};
    int first_rank = 1 + (int)draw(&d, 4);
    for (uint32_t i = 0; i < INPUTS; i++)
        d.pool[d.count++] = draw_input(&d, names[i], draw(&d, 2) ? first_rank : (int)draw(&d, 5));
    draw_nodes(&d, 1 + draw(&d, 6));
    tn_set_output(d.g, "out", d.pool[d.count - 1]);
    if (draw(&d, 3) == 0)
        tn_set_output(d.g, "more", pick(&d));
    mismatch_outcome outcome = MISMATCH_NOT_BUILT;
    if (tn_graph_check(d.g) == TN_OK) {
        run_inputs in = {0};
        feed(&d, &in);
        tn_model *model = tn_model_from_graph(d.g, NULL);
        if (model)
            outcome = compare(model, &in, why, size);
        if (outcome == MISMATCH_DIFFERENT && text) {
            char *printed = tn_graph_print(d.g);
            *text = printed ? strdup(printed) : NULL;
            tn_graph_free_text(d.g, printed);
        }
        tn_model_destroy(model);
        run_inputs_free(&in);
    }
    tn_graph_destroy(d.g);
    return outcome;
}
