/* LSTM, GRU, RNN: the inputs' products with W are taken for all steps at once; a scan over the steps does the rest. f16 and bf16
   are computed in f32. Gates are in the order of the weights: LSTM i o f c, GRU z r h. */
#include <inttypes.h>

#include "onnx/expand_common.h"

typedef enum act_kind {
    ACT_RELU,
    ACT_TANH,
    ACT_SIGMOID,
    ACT_AFFINE,
    ACT_LEAKY,
    ACT_THRESHOLDED,
    ACT_SCALED_TANH,
    ACT_HARD_SIGMOID,
    ACT_ELU,
    ACT_SOFTSIGN,
    ACT_SOFTPLUS
} act_kind;

typedef struct activation {
    act_kind kind;
    double alpha, beta;
} activation;

typedef enum cell_kind { CELL_RNN, CELL_GRU, CELL_LSTM } cell_kind;
static const int gates_of[] = {1, 3, 4};

/* One direction, as the body of the scan sees it. */
typedef struct cell {
    tn_expand *x;
    cell_kind kind;
    tn_dim hidden;
    tn_value r;           /* [gates * hidden, hidden] */
    tn_value hidden_bias; /* [1, hidden]: GRU's Rbh when it is applied before the reset; else null */
    tn_value peephole[3]; /* [1, hidden] of i, o, f; or null */
    tn_value lengths;     /* i64 [batch, 1], or null */
    activation act[3];
    bool clipped, coupled, linear_before;
    double clip;
} cell;

typedef struct layer {
    cell_kind kind;
    int directions;
    bool batch_first;
    tn_dtype dtype, wide;
    tn_dim steps, batch, input, hidden;
    tn_value x; /* [steps, batch, input] */
    uint32_t peephole_input, cell_input;
} layer;

/* --- activations ---------------------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    act_kind kind;
    uint8_t params; /* 1: alpha, 2: alpha and beta */
    double alpha, beta;
} act_table[] = {
    {"relu", ACT_RELU, 0, 0, 0},
    {"tanh", ACT_TANH, 0, 0, 0},
    {"sigmoid", ACT_SIGMOID, 0, 0, 0},
    {"affine", ACT_AFFINE, 2, 1, 0},
    {"leakyrelu", ACT_LEAKY, 1, 0.01f, 0},
    {"thresholdedrelu", ACT_THRESHOLDED, 1, 1, 0},
    {"scaledtanh", ACT_SCALED_TANH, 2, 1, 1},
    {"hardsigmoid", ACT_HARD_SIGMOID, 2, 0.2f, 0.5},
    {"elu", ACT_ELU, 1, 1, 0},
    {"softsign", ACT_SOFTSIGN, 0, 0, 0},
    {"softplus", ACT_SOFTPLUS, 0, 0, 0},
};

static bool same_name(tn_string s, const char *name) {
    if (s.length != strlen(name))
        return false;
    for (size_t i = 0; i < s.length; i++) {
        char c = s.data[i];
        if ((c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c) != name[i])
            return false;
    }
    return true;
}

/* The activations of all directions. alpha and beta are taken in order by those that have them. */
static tn_status read_activations(tn_expand *x, int directions, int each, const char *const *usual, activation *out) {
    const tn_string *names;
    const float *alpha, *beta;
    uint32_t n = tn_expand_strings(x, "activations", &names), a = 0, b = 0;
    uint32_t alphas = tn_expand_floats(x, "activation_alpha", &alpha),
             betas = tn_expand_floats(x, "activation_beta", &beta);
    TN_RULE(x, n == 0 || n == (uint32_t)(directions * each), "there are %u activations, but there must be %d",
            (unsigned)n, directions * each);
    for (int i = 0; i < directions * each; i++) {
        const char *plain = usual[i % each];
        tn_string name = n ? names[i] : (tn_string){plain, strlen(plain)};
        size_t k = 0, count = sizeof act_table / sizeof *act_table;
        while (k < count && !same_name(name, act_table[k].name))
            k++;
        TN_RULE(x, k < count, "there is no activation '%.*s'", (int)(name.length < 40 ? name.length : 40), name.data);
        out[i] = (activation){act_table[k].kind, act_table[k].alpha, act_table[k].beta};
        if (act_table[k].params >= 1 && a < alphas)
            out[i].alpha = (double)alpha[a++];
        if (act_table[k].params >= 2 && b < betas)
            out[i].beta = (double)beta[b++];
    }
    return TN_OK;
}

static tn_value apply(const cell *c, const activation *act, tn_value v) {
    tn_graph *g = c->x->graph;
    if (!v.id)
        return v;
    tn_value zero = tn_scalar_like(g, v, 0), one = tn_scalar_like(g, v, 1);
    tn_value alpha = tn_scalar_like(g, v, act->alpha), beta = tn_scalar_like(g, v, act->beta);
    if (c->clipped)
        v = tn_min(g, tn_max(g, v, tn_scalar_like(g, v, -c->clip)), tn_scalar_like(g, v, c->clip));
    switch (act->kind) {
    case ACT_RELU: return tn_relu(g, v);
    case ACT_TANH: return tn_tanh(g, v);
    case ACT_SIGMOID: return tn_sigmoid(g, v);
    case ACT_AFFINE: return tn_add(g, tn_mul(g, v, alpha), beta);
    case ACT_LEAKY: return tn_select(g, tn_greater_equal(g, v, zero), v, tn_mul(g, v, alpha));
    case ACT_THRESHOLDED: return tn_select(g, tn_greater_equal(g, v, alpha), v, zero);
    case ACT_SCALED_TANH: return tn_mul(g, alpha, tn_tanh(g, tn_mul(g, v, beta)));
    case ACT_HARD_SIGMOID: return tn_min(g, tn_max(g, tn_add(g, tn_mul(g, v, alpha), beta), zero), one);
    case ACT_ELU: return tn_select(g, tn_greater_equal(g, v, zero), v, tn_mul(g, alpha, tn_expm1(g, v)));
    case ACT_SOFTSIGN: return tn_div(g, v, tn_add(g, tn_abs(g, v), one));
    case ACT_SOFTPLUS: return tn_add(g, tn_max(g, v, zero), tn_log1p(g, tn_exp(g, tn_neg(g, tn_abs(g, v)))));
    }
    return v;
}

/* --- one step ------------------------------------------------------------------------------------------------------------------- */

/* Gates first..first + count - 1 along `axis`. */
static tn_value gate(const cell *c, tn_value v, int axis, int first, int count) {
    tn_graph *g = c->x->graph;
    tn_dim start = tn_dim_mul(g, tn_size(c->x, first), c->hidden),
           size = tn_dim_mul(g, tn_size(c->x, count), c->hidden);
    return tn_expand_slice(c->x, v, axis, start, size, 1);
}

/* h [batch, hidden] times rows of r transposed. */
static tn_value recur(const cell *c, tn_value h, tn_value r) {
    static const int64_t one[1] = {1};
    return tn_dot(c->x->graph, h, r, 0, NULL, NULL, 1, one, one);
}

static tn_value peep(const cell *c, int which, tn_value gate_sum, tn_value state) {
    tn_graph *g = c->x->graph;
    return c->peephole[which].id ? tn_add(g, gate_sum, tn_mul(g, c->peephole[which], state)) : gate_sum;
}

static void step_rnn(const cell *c, const tn_value *args, tn_value *h) {
    *h = apply(c, &c->act[0], tn_add(c->x->graph, args[1], recur(c, args[0], c->r)));
}

static void step_gru(const cell *c, const tn_value *args, tn_value *h) {
    tn_graph *g = c->x->graph;
    tn_value before = args[0], in = args[1], sum, candidate;
    if (c->linear_before) {
        tn_value all = recur(c, before, c->r);
        sum = tn_add(g, gate(c, in, 1, 0, 2), gate(c, all, 1, 0, 2));
        candidate = gate(c, all, 1, 2, 1);
        if (c->hidden_bias.id)
            candidate = tn_add(g, candidate, c->hidden_bias);
    } else {
        sum = tn_add(g, gate(c, in, 1, 0, 2), recur(c, before, gate(c, c->r, 0, 0, 2)));
        candidate = (tn_value){0};
    }
    tn_value z = apply(c, &c->act[0], gate(c, sum, 1, 0, 1)), r = apply(c, &c->act[0], gate(c, sum, 1, 1, 1));
    candidate = c->linear_before ? tn_mul(g, r, candidate) : recur(c, tn_mul(g, r, before), gate(c, c->r, 0, 2, 1));
    candidate = apply(c, &c->act[1], tn_add(g, gate(c, in, 1, 2, 1), candidate));
    if (!z.id)
        return;
    *h = tn_add(g, tn_mul(g, tn_sub(g, tn_scalar_like(g, z, 1), z), candidate), tn_mul(g, z, before));
}

static void step_lstm(const cell *c, const tn_value *args, tn_value *h, tn_value *state) {
    tn_graph *g = c->x->graph;
    tn_value sum = tn_add(g, args[2], recur(c, args[0], c->r)), before = args[1];
    tn_value in = apply(c, &c->act[0], peep(c, 0, gate(c, sum, 1, 0, 1), before));
    if (!in.id)
        return;
    tn_value forget = c->coupled ? tn_sub(g, tn_scalar_like(g, in, 1), in)
                                 : apply(c, &c->act[0], peep(c, 2, gate(c, sum, 1, 2, 1), before));
    tn_value fresh = apply(c, &c->act[1], gate(c, sum, 1, 3, 1));
    *state = tn_add(g, tn_mul(g, forget, before), tn_mul(g, in, fresh));
    tn_value out = apply(c, &c->act[0], peep(c, 1, gate(c, sum, 1, 1, 1), *state));
    cell whole = *c; /* the clip is of the gates' sums, as runtimes read the standard: the state is not clipped */
    whole.clipped = false;
    *h = tn_mul(g, out, apply(&whole, &c->act[2], *state));
}

/* (h, [state], products, [step]) -> (h, [state], y): past the end of a sequence the state stays and y is 0. */
static void step(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    const cell *c = ctx;
    int carried = c->kind == CELL_LSTM ? 2 : 1;
    tn_value now[2] = {{0}, {0}};
    if (c->kind == CELL_LSTM)
        step_lstm(c, args, &now[0], &now[1]);
    else if (c->kind == CELL_GRU)
        step_gru(c, args, &now[0]);
    else
        step_rnn(c, args, &now[0]);
    results[carried] = now[0];
    if (c->lengths.id && now[0].id) {
        tn_value live = tn_less(g, args[carried + 1], c->lengths);
        results[carried] = tn_select(g, live, now[0], tn_scalar_like(g, now[0], 0));
        for (int i = 0; i < carried; i++)
            now[i] = tn_select(g, live, now[i], args[i]);
    }
    for (int i = 0; i < carried; i++)
        results[i] = tn_expand_sized_as(g, now[i], args[i]);
}

/* --- one direction --------------------------------------------------------------------------------------------------------------- */

/* Row `d` of input `input` [directions, ...], in the wide dtype; null when absent. */
static tn_value part(tn_expand *x, const layer *l, uint32_t input, int d) {
    if (!tn_expand_has(x, input))
        return (tn_value){0};
    static const int first[1] = {0};
    /* B holds twice what W and R have, P three vectors; sizes that are not known yet are checked when it runs */
    int rank = input <= 2 ? 3 : 2;
    tn_graph *g = x->graph;
    tn_dim gates = tn_dim_mul(g, tn_size(x, gates_of[l->kind]), l->hidden), rows = gates;
    if (input == 3)
        rows = tn_dim_mul(g, tn_size(x, 2), gates);
    else if (input > 3)
        rows = tn_dim_mul(g, tn_size(x, 3), l->hidden);
    tn_dim dims[3] = {tn_size(x, l->directions), rows, input == 1 ? l->input : l->hidden};
    tn_value v = tn_slice_axis(g, tn_reshape_dims(g, tn_expand_input(x, input), rank, dims), 0, d, 1);
    return tn_cast(x->graph, tn_squeeze(x->graph, v, 1, first), l->wide);
}

/* The initial state [batch, hidden]. */
static tn_value initial(tn_expand *x, const layer *l, uint32_t input, int d) {
    tn_graph *g = x->graph;
    const tn_dim dims[2] = {l->batch, l->hidden};
    if (!tn_expand_has(x, input))
        return tn_expand_full(x, l->wide, 0, 2, dims);
    int axis = l->batch_first ? 1 : 0;
    tn_value v = tn_slice_axis(g, tn_expand_input(x, input), axis, d, 1);
    return tn_cast(g, tn_squeeze(g, v, 1, &axis), l->wide);
}

static tn_value flip(tn_expand *x, const layer *l, tn_value v) {
    tn_dim last = tn_dim_sub(x->graph, l->steps, tn_size(x, 1));
    return tn_expand_slice(x, v, 0, last, l->steps, -1);
}

/* results: y [steps, batch, hidden], h, [state]. */
static tn_status run_direction(tn_expand *x, const layer *l, cell *c, int d, bool reverse, tn_value results[3]) {
    tn_graph *g = x->graph;
    int gates = gates_of[l->kind], carried = l->kind == CELL_LSTM ? 2 : 1;
    static const int64_t two[1] = {2}, one[1] = {1};
    c->r = part(x, l, 2, d);
    tn_value in = tn_dot(g, l->x, part(x, l, 1, d), 0, NULL, NULL, 1, two, one), bias = part(x, l, 3, d);
    if (bias.id) {
        tn_value w = gate(c, bias, 0, 0, gates), r = gate(c, bias, 0, gates, gates);
        if (c->linear_before) {
            c->hidden_bias = tn_expand_along(x, gate(c, r, 0, 2, 1), 2, 1);
            tn_value both[2] = {tn_add(g, gate(c, w, 0, 0, 2), gate(c, r, 0, 0, 2)), gate(c, w, 0, 2, 1)};
            in = tn_add(g, in, tn_concat(g, 0, 2, both));
        } else {
            in = tn_add(g, in, tn_add(g, w, r));
        }
    }
    tn_value peepholes = l->peephole_input ? part(x, l, l->peephole_input, d) : (tn_value){0};
    for (int i = 0; i < 3 && peepholes.id; i++)
        c->peephole[i] = tn_expand_along(x, gate(c, peepholes, 0, i, 1), 2, 1);
    tn_value scanned[2] = {in, c->lengths}, init[2] = {initial(x, l, 5, d), {0}};
    if (carried == 2)
        init[1] = initial(x, l, l->cell_input, d);
    if (c->lengths.id)
        scanned[1] = tn_iota(g, TN_I64, 1, &l->steps, 0);
    for (int i = 0; i < 2 && reverse; i++)
        if (scanned[i].id)
            scanned[i] = flip(x, l, scanned[i]);
    tn_value out[3];
    TN_TRY(tn_scan(g, (uint32_t)carried, init, c->lengths.id ? 2 : 1, scanned, step, c, 1, out));
    results[0] = reverse ? flip(x, l, out[carried]) : out[carried];
    results[1] = out[0];
    results[2] = carried == 2 ? out[1] : (tn_value){0};
    return TN_OK;
}

/* --- the layer ------------------------------------------------------------------------------------------------------------------- */

/* The loop that carries states holds to their shape; for the others the node waits for what is not known. */
static tn_status shape_is(tn_expand *x, uint32_t input, const char *name, int rank, const tn_dim *dims) {
    bool state = rank == 3 && input >= 5;
    if (!tn_expand_has(x, input))
        return TN_OK;
    TN_RULE(x, tn_expand_rank(x, input) == rank, "'%s' has rank %d, it must be %d", name, tn_expand_rank(x, input),
            rank);
    for (int i = 0; i < rank; i++)
        if (state)
            TN_RULE(x, !tn_dim_never_equal(x->graph, tn_expand_dim(x, input, i), dims[i]),
                    "'%s' has the wrong size on axis %d", name, i);
        else
            TN_RULE_SAME(x, tn_expand_dim(x, input, i), dims[i], "'%s' has the wrong size on axis %d", name, i);
    return TN_OK;
}

static tn_status check_shapes(tn_expand *x, const layer *l) {
    tn_graph *g = x->graph;
    int gates = gates_of[l->kind];
    tn_dim d = tn_size(x, l->directions), h = l->hidden, all = tn_dim_mul(g, tn_size(x, gates), h);
    TN_SIZED(x, all);
    tn_dim w[3] = {d, all, l->input}, r[3] = {d, all, h}, b[2] = {d, tn_dim_mul(g, tn_size(x, 2), all)};
    tn_dim state[3] = {d, l->batch, h}, p[2] = {d, tn_dim_mul(g, tn_size(x, 3), h)};
    if (l->batch_first) {
        state[0] = l->batch;
        state[1] = d;
    }
    TN_TRY(shape_is(x, 1, "W", 3, w));
    TN_TRY(shape_is(x, 2, "R", 3, r));
    TN_TRY(shape_is(x, 3, "B", 2, b));
    TN_TRY(shape_is(x, 4, "sequence_lens", 1, &l->batch));
    TN_TRY(shape_is(x, 5, "initial_h", 3, state));
    if (l->cell_input)
        TN_TRY(shape_is(x, l->cell_input, "initial_c", 3, state));
    if (l->peephole_input)
        TN_TRY(shape_is(x, l->peephole_input, "P", 2, p));
    return TN_OK;
}

/* parts[d] [...] stacked along a new axis, in the dtype of the outputs. */
static tn_value stack(tn_expand *x, const layer *l, int axis, const tn_value *parts) {
    tn_value wide[2];
    for (int d = 0; d < l->directions; d++)
        wide[d] = tn_expand_dims(x->graph, parts[d], 1, &axis);
    tn_value v = l->directions == 1 ? wide[0] : tn_concat(x->graph, axis, 2, wide);
    return tn_cast(x->graph, v, l->dtype);
}

static tn_status expand_layer(tn_expand *x, cell_kind kind, int each, const char *const *usual) {
    tn_graph *g = x->graph;
    layer l = {.kind = kind,
               .directions = tn_expand_string_is(x, "direction", "bidirectional") ? 2 : 1,
               .batch_first = tn_expand_int(x, "layout") != 0,
               .dtype = tn_expand_dtype(x, 0)};
    if (kind == CELL_LSTM) {
        l.cell_input = 6;
        l.peephole_input = 7;
    }
    static const char *const names[] = {"X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P"};
    l.wide = tn_wide(l.dtype);
    TN_RULE(x, tn_is_float(l.dtype), "the input is %s: it must be of a floating point type", tn_dtype_name(l.dtype));
    for (uint32_t i = 1; i < x->inputs; i++)
        TN_RULE(x, !tn_expand_has(x, i) || i == 4 || tn_expand_dtype(x, i) == l.dtype, "'%s' is %s, but X is %s",
                names[i], tn_dtype_name(tn_expand_dtype(x, i)), tn_dtype_name(l.dtype));
    TN_RULE(x, tn_expand_rank(x, 0) == 3, "'X' has rank %d, it must be 3", tn_expand_rank(x, 0));
    TN_RULE(x, tn_expand_rank(x, 2) == 3, "'R' has rank %d, it must be 3", tn_expand_rank(x, 2));
    l.steps = tn_expand_dim(x, 0, l.batch_first ? 1 : 0);
    l.batch = tn_expand_dim(x, 0, l.batch_first ? 0 : 1);
    l.input = tn_expand_dim(x, 0, 2);
    l.hidden = tn_expand_dim(x, 2, 2);
    if (tn_expand_has_attr(x, "hidden_size")) {
        TN_RULE(x, tn_expand_int(x, "hidden_size") > 0, "attribute 'hidden_size' is %" PRId64,
                tn_expand_int(x, "hidden_size"));
        TN_RULE(x, tn_expand_int(x, "hidden_size") <= INT64_MAX / (2 * gates_of[l.kind]),
                "attribute 'hidden_size' is %" PRId64 ": 'W' would have more rows than can be counted",
                tn_expand_int(x, "hidden_size"));
        tn_dim given = tn_size(x, tn_expand_int(x, "hidden_size"));
        TN_RULE(x, !tn_dim_never_equal(g, given, l.hidden), "attribute 'hidden_size' disagrees with the shape of R");
        l.hidden = given;
    }
    TN_TRY(check_shapes(x, &l));
    activation acts[6];
    TN_TRY(read_activations(x, l.directions, each, usual, acts));
    cell base = {.x = x,
                 .kind = kind,
                 .hidden = l.hidden,
                 .clipped = tn_expand_has_attr(x, "clip"),
                 .clip = tn_expand_float(x, "clip"),
                 .coupled = tn_expand_int(x, "input_forget") != 0,
                 .linear_before = tn_expand_int(x, "linear_before_reset") != 0};
    if (base.clipped)
        TN_RULE(x, base.clip >= 0, "attribute 'clip' is negative");
    static const int swap[3] = {1, 0, 2}, second = 1;
    l.x = tn_cast(g, tn_expand_input(x, 0), l.wide);
    if (l.batch_first)
        l.x = tn_transpose(g, l.x, swap);
    if (tn_expand_has(x, 4)) {
        tn_value lengths =
            tn_expand_counted(x, 4, tn_expand_size_value(x, tn_value_dim(g, l.x, 0), TN_I64), "sequence_lens");
        base.lengths = tn_expand_dims(g, lengths, 1, &second);
        TN_BUILT(x, base.lengths);
    }
    tn_value parts[3][2];
    for (int d = 0; d < l.directions; d++) {
        cell c = base;
        tn_value out[3];
        for (int i = 0; i < each; i++)
            c.act[i] = acts[d * each + i];
        TN_TRY(run_direction(x, &l, &c, d, d == 1 || tn_expand_string_is(x, "direction", "reverse"), out));
        for (int i = 0; i < 3; i++)
            parts[i][d] = out[i];
    }
    if (tn_expand_wants(x, 0)) {
        static const int batched[4] = {2, 0, 1, 3};
        tn_value y = stack(x, &l, 1, parts[0]);
        TN_TRY(tn_expand_set(x, 0, l.batch_first ? tn_transpose(g, y, batched) : y));
    }
    for (uint32_t i = 1; i < (kind == CELL_LSTM ? 3u : 2u); i++)
        if (tn_expand_wants(x, i))
            TN_TRY(tn_expand_set(x, i, stack(x, &l, l.batch_first ? 1 : 0, parts[i])));
    return TN_OK;
}

static tn_status expand_lstm(tn_expand *x) {
    static const char *const usual[] = {"sigmoid", "tanh", "tanh"};
    return expand_layer(x, CELL_LSTM, 3, usual);
}
static tn_status expand_gru(tn_expand *x) {
    static const char *const usual[] = {"sigmoid", "tanh"};
    return expand_layer(x, CELL_GRU, 2, usual);
}
static tn_status expand_rnn(tn_expand *x) {
    static const char *const usual[] = {"tanh"};
    return expand_layer(x, CELL_RNN, 1, usual);
}

/* --- rows -------------------------------------------------------------------------------------------------------------------------- */

#define COMMON                                                                                             \
    TN_SPEC_STRINGS("activations"), TN_SPEC_FLOATS("activation_alpha"), TN_SPEC_FLOATS("activation_beta"), \
        TN_SPEC_FLOAT("clip", 0), TN_SPEC_STRING("direction", "forward", "forward|reverse|bidirectional"), \
        TN_SPEC_INT("hidden_size", 0), TN_SPEC_BOOL("layout", 0)
static const tn_attr_spec lstm_attrs[] = {COMMON, TN_SPEC_BOOL("input_forget", 0), {0}};
static const tn_attr_spec gru_attrs[] = {COMMON, TN_SPEC_BOOL("linear_before_reset", 0), {0}};
static const tn_attr_spec rnn_attrs[] = {COMMON, {0}};

static const tn_onnx_op rows[] = {
    TN_ONNX("LSTM", .since = 1, .inputs = {3, 8}, .outputs = {0, 3}, .attrs = lstm_attrs, .expand = expand_lstm),
    TN_ONNX("GRU", .since = 1, .inputs = {3, 6}, .outputs = {0, 2}, .attrs = gru_attrs, .expand = expand_gru),
    TN_ONNX("RNN", .since = 1, .inputs = {3, 6}, .outputs = {0, 2}, .attrs = rnn_attrs, .expand = expand_rnn),
};

const tn_onnx_family tn_onnx_family_recurrent = {rows, sizeof rows / sizeof *rows};
