/* Random programs: choosing, elementwise steps, the whole graph, inputs. */
#include "support/random_graph.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <tenon/build.h>

uint64_t random_next(random_rng *r) { /* splitmix64 */
    uint64_t z = r->state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

int64_t random_below(random_rng *r, int64_t n) {
    return (int64_t)(random_next(r) >> 11) % n;
}

bool random_chance(random_rng *r, int percent) {
    return random_below(r, 100) < percent;
}

/* --- tensors -------------------------------------------------------------------------------------------------------------------- */

static double normal(random_rng *r) {
    double sum = 0;
    for (int i = 0; i < 6; i++)
        sum += (double)(random_next(r) >> 11) * 0x1p-53;
    return (sum - 3) * 1.4;
}

static double corner_float(random_rng *r, tn_dtype dtype) {
    bool wide = dtype == TN_F32 || dtype == TN_BF16;
    double most = dtype == TN_F64   ? 1.7976931348623157e308
                  : dtype == TN_F16 ? 65504
                                    : 3.3895e38,
           least = dtype == TN_F64   ? 5e-324
                   : dtype == TN_F16 ? 6e-8
                   : wide            ? 1.5e-45
                                     : 1;
    const double corners[] = {0,      -0.0, 1,    -1,   0.5, 2,        most,      -most, least,
                              -least, 88.7, -104, 1e-5, 3e4, INFINITY, -INFINITY, NAN};
    return corners[random_below(r, 17)];
}

tn_tensor *random_tensor(random_rng *r, tn_dtype dtype, int rank, const int64_t *dims, int corners) {
    tn_tensor *t = tn_tensor_create(dtype, rank, dims);
    if (!t)
        abort();
    bool small = random_chance(r, 50);
    for (int64_t i = 0; i < t->count; i++) {
        bool corner = corners && random_chance(r, corners);
        if (dtype == TN_STRING) {
            const char *words[] = {"a", "yes", "", "tenon"};
            const char *w = words[random_below(r, 4)];
            if (tn_tensor_set_string(t, i, w, strlen(w)) != TN_OK)
                abort();
        } else if (tn_dtype_is_float(dtype))
            tn_store_f64(dtype, t->data, i, corner ? corner_float(r, dtype) : normal(r));
        else if (dtype == TN_BOOL)
            tn_store_i64(dtype, t->data, i, random_below(r, 2));
        else if (tn_dtype_is_int(dtype))
            tn_store_i64(dtype, t->data, i,
                         corner ? (int64_t)random_next(r) : random_below(r, small ? 3 : 200) - (small ? 0 : 100));
    }
    return t;
}

static const char *const symbol_names[RANDOM_SYMBOLS] = {"A", "B", "C"};

tn_dim random_symbol(random_builder *b, int64_t index) {
    return b->defined[index] ? tn_dim_symbol(b->graph, symbol_names[index]) : tn_dim_const(b->graph, b->size[index]);
}

/* --- choosing ----------------------------------------------------------------------------------------------------------------------- */

static int class_of(tn_dtype d) {
    switch (d) {
    case TN_F16:
    case TN_BF16:
    case TN_F32:
    case TN_F64: return RANDOM_FLOAT;
    case TN_I8:
    case TN_I16:
    case TN_I32:
    case TN_I64:
    case TN_U8:
    case TN_U16:
    case TN_U32:
    case TN_U64: return RANDOM_INT;
    case TN_BOOL: return RANDOM_BOOL;
    default: return 0;
    }
}

bool random_size(const random_builder *b, tn_value v, int axis, int64_t *size) {
    return tn_dim_eval(&b->graph->dims, &b->env, tn_value_dim(b->graph, v, axis), size) && *size >= 0;
}

bool random_is_const(const random_builder *b, tn_value v, int axis, int64_t *size) {
    return tn_dim_is_const(b->graph, tn_value_dim(b->graph, v, axis), size);
}

int64_t random_count(const random_builder *b, tn_value v) {
    int64_t n = 1, size;
    for (int i = 0; i < tn_value_rank(b->graph, v); i++) {
        if (!random_size(b, v, i, &size))
            return INT64_MAX;
        n *= size;
    }
    return n;
}

tn_value random_pick(random_builder *b, int classes, int low, int high) {
    tn_value found = {0};
    int64_t seen = 0;
    bool recent = random_chance(&b->rng, 60);
    uint32_t from = recent && b->pooled > 8 ? b->pooled - 8 : 0;
    for (int round = 0; round < 2 && !found.id; round++, from = 0)
        for (uint32_t i = from; i < b->pooled; i++) {
            tn_value v = b->pool[i];
            int rank = tn_value_rank(b->graph, v);
            if ((class_of(tn_value_dtype(b->graph, v)) & classes) && rank >= low && rank <= high &&
                random_below(&b->rng, ++seen) == 0)
                found = v;
        }
    return found;
}

tn_dtype random_dtype(random_builder *b, int classes) {
    static const tn_dtype floats[] = {TN_F32, TN_F32, TN_F32, TN_F32, TN_F64, TN_F16, TN_BF16};
    static const tn_dtype ints[] = {TN_I64, TN_I64, TN_I32, TN_I32, TN_I8, TN_U8, TN_I16, TN_U16, TN_U32, TN_U64};
    for (;;) {
        int64_t k = random_below(&b->rng, 100);
        if (k < 60 && classes & RANDOM_FLOAT)
            return floats[random_below(&b->rng, 7)];
        if (k >= 60 && k < 90 && classes & RANDOM_INT)
            return ints[random_below(&b->rng, 10)];
        if (k >= 90 && classes & RANDOM_BOOL)
            return TN_BOOL;
    }
}

void random_add(random_builder *b, tn_value v) {
    if (v.id && b->pooled < RANDOM_POOL)
        b->pool[b->pooled++] = v;
}

/* Whether y broadcasts to x's shape, seen from the types alone. */
static bool fits(const random_builder *b, tn_value x, tn_value y) {
    const tn_graph *g = b->graph;
    int rx = tn_value_rank(g, x), ry = tn_value_rank(g, y);
    for (int i = 1; i <= ry; i++) {
        int64_t n;
        if (i > rx)
            return false;
        if (!(tn_dim_is_const(g, tn_value_dim(g, y, -i), &n) && n == 1) &&
            !tn_dim_equal(g, tn_value_dim(g, x, -i), tn_value_dim(g, y, -i)))
            return false;
    }
    return true;
}

tn_value random_partner(random_builder *b, tn_value x) {
    tn_graph *g = b->graph;
    tn_value found = {0};
    int64_t seen = 0;
    int k = (int)random_below(&b->rng, 20);
    if (k == 0)
        return x;
    if (k < 4)
        return tn_scalar_like(g, x,
                              tn_value_dtype(g, x) == TN_BOOL ? (double)random_below(&b->rng, 2)
                              : class_of(tn_value_dtype(g, x)) == RANDOM_INT
                                  ? (double)random_below(&b->rng, 5)
                                  : (double)(random_below(&b->rng, 9) - 4) / 2);
    for (uint32_t i = 0; i < b->pooled; i++) {
        tn_value v = b->pool[i];
        if (v.id != x.id && tn_value_dtype(g, v) == tn_value_dtype(g, x) && tn_value_rank(g, v) >= 0 && fits(b, x, v) &&
            random_below(&b->rng, ++seen) == 0)
            found = v;
    }
    if (found.id)
        return found;
    /* a weight of x's constant trailing axes */
    int64_t dims[TN_MAX_RANK], count = 1;
    int rank = 0, most = tn_value_rank(g, x);
    while (rank < most && random_is_const(b, x, most - 1 - rank, &dims[most - 1 - rank]) &&
           count * dims[most - 1 - rank] <= RANDOM_MOST) {
        count *= dims[most - 1 - rank];
        rank++;
    }
    tn_tensor *t = random_tensor(&b->rng, tn_value_dtype(g, x), rank, dims + most - rank, 0);
    found = tn_constant(g, t);
    tn_tensor_destroy(t);
    return found;
}

/* --- elementwise ---------------------------------------------------------------------------------------------------------------------- */

typedef tn_value unary_function(tn_graph *, tn_value);
typedef tn_value binary_function(tn_graph *, tn_value, tn_value);
#define X(name) (tn_##name),
static unary_function *const unaries[] = {TN_BUILD_UNARY(X)};
static binary_function *const binaries[] = {TN_BUILD_BINARY(X)};
#undef X
/* Classes that each takes, in the order of the lists of build.h. */
static const uint8_t unary_classes[] = {3, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                        1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 4, 2, 1, 1};
static const uint8_t binary_classes[] = {3, 3, 3, 3, 3, 3, 3, 3, 3, 1, 6, 6, 6, 2, 2, 7, 7, 3, 3, 3, 3};
_Static_assert(sizeof unaries / sizeof *unaries == sizeof unary_classes, "a class for each");
_Static_assert(sizeof binaries / sizeof *binaries == sizeof binary_classes, "a class for each");

static void step_unary(random_builder *b) {
    size_t k = (size_t)random_below(&b->rng, (int64_t)sizeof unary_classes);
    tn_value x = random_pick(b, unary_classes[k], 0, 8);
    if (x.id)
        random_add(b, unaries[k](b->graph, x));
}

static void step_binary(random_builder *b) {
    size_t k = (size_t)random_below(&b->rng, (int64_t)sizeof binary_classes);
    if (random_chance(&b->rng, 50))
        k = (size_t)random_below(&b->rng, 4);
    tn_value x = random_pick(b, binary_classes[k], 0, 8);
    if (!x.id)
        return;
    tn_value y = random_partner(b, x);
    bool turn = random_chance(&b->rng, 30);
    random_add(b, binaries[k](b->graph, turn ? y : x, turn ? x : y));
}

static void step_select(random_builder *b) {
    tn_value c = random_pick(b, RANDOM_BOOL, 0, 8), x = random_pick(b, RANDOM_ANY, 0, 8);
    if (!c.id || !x.id)
        return;
    if (!fits(b, x, c)) {
        if (!(class_of(tn_value_dtype(b->graph, x)) & RANDOM_NUMBER))
            return;
        c = tn_less(b->graph, x, random_partner(b, x));
    }
    random_add(b, tn_select(b->graph, c, x, random_partner(b, x)));
}

static void step_cast(random_builder *b) {
    static const tn_dtype odd[] = {TN_F8E4M3FN, TN_F8E5M2, TN_I4, TN_U4};
    tn_value x = random_pick(b, RANDOM_ANY, 0, 8);
    if (!x.id)
        return;
    tn_dtype from = tn_value_dtype(b->graph, x);
    if (random_chance(&b->rng, 6) && from != TN_BOOL)
        random_add(b, tn_cast(b->graph, tn_cast(b->graph, x, odd[random_below(&b->rng, 4)]), from));
    else
        random_add(b, tn_cast(b->graph, x, random_dtype(b, RANDOM_ANY)));
}

static void step_bitcast(random_builder *b) {
    tn_value x = random_pick(b, RANDOM_NUMBER, 0, 8);
    if (!x.id)
        return;
    int bits = tn_dtype_bits(tn_value_dtype(b->graph, x));
    if (tn_dtype_is_float(tn_value_dtype(b->graph, x))) /* a NaN is as good as another, but as an integer it is not */
        x = tn_select(b->graph, tn_is_nan(b->graph, x), tn_scalar_like(b->graph, x, 0), x);
    for (int i = 0; i < 20; i++) {
        tn_dtype to = random_dtype(b, RANDOM_NUMBER);
        if (tn_dtype_bits(to) == bits) {
            random_add(b, tn_bitcast(b->graph, x, to));
            return;
        }
    }
}

static void step_is_inf(random_builder *b) {
    tn_value x = random_pick(b, RANDOM_FLOAT, 0, 8);
    if (x.id)
        random_add(b, tn_is_inf(b->graph, x, random_chance(&b->rng, 60), random_chance(&b->rng, 60)));
}

static void step_composite(random_builder *b) {
    tn_graph *g = b->graph;
    tn_value x = random_pick(b, RANDOM_FLOAT, 1, 5);
    if (!x.id)
        return;
    int rank = tn_value_rank(g, x), axis = (int)random_below(&b->rng, rank);
    switch (random_below(&b->rng, 13)) {
    case 0: random_add(b, tn_relu(g, x)); break;
    case 1: random_add(b, tn_gelu(g, x)); break;
    case 2: random_add(b, tn_gelu_tanh(g, x)); break;
    case 3: random_add(b, tn_softmax(g, x, axis)); break;
    case 4: random_add(b, tn_log_softmax(g, x, axis)); break;
    case 5: random_add(b, tn_silu(g, x)); break;
    case 6: random_add(b, tn_hard_swish(g, x)); break;
    case 7: random_add(b, tn_mish(g, x)); break;
    case 8: random_add(b, tn_layer_norm(g, x, (tn_value){0}, (tn_value){0}, axis, 1e-5)); break;
    case 9: random_add(b, tn_rms_norm(g, x, (tn_value){0}, axis, 1e-5)); break;
    case 10:
    case 11: {
        int64_t c;
        if (rank < 3 || !random_is_const(b, x, 1, &c) || c < 1 || c > 64)
            return;
        tn_value p[4];
        for (int i = 0; i < 4; i++) {
            tn_tensor *t = random_tensor(&b->rng, tn_value_dtype(g, x), 1, &c, 0);
            p[i] = tn_constant(g, t);
            tn_tensor_destroy(t);
        }
        int64_t k = random_below(&b->rng, 3);
        if (k == 0)
            random_add(b, tn_instance_norm(g, x, p[0], p[1], 1e-5));
        else if (k == 1)
            random_add(b, tn_group_norm(g, x, p[0], p[1], c % 2 == 0 ? 2 : 1, 1e-5));
        else
            random_add(b, tn_batch_norm(g, x, p[0], p[1], p[2], tn_abs(g, p[3]), 1e-3));
        break;
    }
    default: {
        int64_t n;
        tn_value labels = random_pick(b, RANDOM_INT, rank - 1, rank - 1);
        if (!labels.id || !random_size(b, x, -1, &n) || n < 1)
            return;
        for (int i = 0; i + 1 < rank; i++)
            if (!tn_dim_equal(g, tn_value_dim(g, labels, i), tn_value_dim(g, x, i)))
                return;
        tn_dtype d = tn_value_dtype(g, labels);
        if (d != TN_I64 && d != TN_I32)
            return;
        random_add(b, tn_cross_entropy(g, x, tn_mod(g, labels, tn_scalar_like(g, labels, (double)n))));
    }
    }
}

void random_step(random_builder *b) {
    int64_t k = random_below(&b->rng, 100);
    if (k < 12)
        step_unary(b);
    else if (k < 30)
        step_binary(b);
    else if (k < 34)
        step_select(b);
    else if (k < 39)
        step_cast(b);
    else if (k < 40)
        step_bitcast(b);
    else if (k < 41)
        step_is_inf(b);
    else if (k < 49)
        step_composite(b);
    else if (k < 66)
        random_step_move(b);
    else if (k < 82)
        random_step_sum(b);
    else if (k < 92)
        random_step_index(b);
    else if (k < 94)
        random_step_attention(b);
    else if (b->depth < 2)
        random_step_control(b);
}

/* --- the whole ------------------------------------------------------------------------------------------------------------------------- */

static void add_inputs(random_builder *b) {
    static const int64_t sizes[] = {1, 1, 2, 2, 3, 3, 4, 4, 5, 7, 8, 8, 16, 17, 0};
    int64_t n = 1 + random_below(&b->rng, 4);
    int64_t shared[4], length = random_chance(&b->rng, 12) ? 200 + random_below(&b->rng, 900) : 0;
    for (int i = 0; i < 4; i++)
        shared[i] = sizes[random_below(&b->rng, random_chance(&b->rng, 20) ? 15 : 14)];
    for (int64_t i = 0; i < n; i++) {
        int rank = random_chance(&b->rng, 8) ? 0 : 1 + (int)random_below(&b->rng, 4);
        tn_shape shape = {.rank = rank};
        int64_t count = 1;
        for (int k = 0; k < rank; k++) {
            int s = (int)random_below(&b->rng, RANDOM_SYMBOLS);
            int64_t size = shared[random_below(&b->rng, 4)];
            bool symbolic = random_chance(&b->rng, 35);
            if (symbolic)
                size = b->size[s];
            if (length && k == rank - 1 && count < 3) {
                size = length;
                symbolic = false;
            } else if (count * size > RANDOM_MOST / 3) {
                size = 1;
                symbolic = false;
            }
            b->defined[s] |= symbolic;
            shape.item[k] = symbolic ? tn_shape_named(symbol_names[s]) : tn_shape_sized(size);
            count *= size;
        }
        char name[16];
        snprintf(name, sizeof name, "x%d", (int)i);
        random_add(b, tn_input(b->graph, name, random_dtype(b, i == 0 ? RANDOM_FLOAT : RANDOM_ANY), shape));
    }
}

static void set_outputs(random_builder *b) {
    char name[16];
    int n = 0;
    int64_t most = 1 + random_below(&b->rng, 10);
    for (uint32_t i = b->pooled; i-- > 0 && n < most;) {
        bool unused = tn_value_use_count(b->graph, b->pool[i]) == 0;
        if (!random_chance(&b->rng, unused ? 80 : 4))
            continue;
        snprintf(name, sizeof name, "y%d", n++);
        tn_set_output(b->graph, name, b->pool[i]);
    }
    if (n == 0 || random_chance(&b->rng, 15)) { /* anything: an input, or one that is an output already */
        snprintf(name, sizeof name, "y%d", n);
        tn_set_output(b->graph, name, b->pool[random_below(&b->rng, b->pooled)]);
    }
}

static tn_graph *build(uint64_t seed, uint64_t skip, int64_t size[RANDOM_SYMBOLS], int *stuck) {
    static const int64_t sizes[] = {0, 1, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33, 64, 130};
    random_builder b = {.graph = tn_graph_create(), .rng = {seed}};
    if (!b.graph)
        abort();
    *stuck = -1;
    for (int i = 0; i < RANDOM_SYMBOLS; i++) {
        size[i] = b.size[i] = sizes[random_below(&b.rng, random_chance(&b.rng, 60) ? 9 : 15)];
        tn_dim_symbol(b.graph, symbol_names[i]);
    }
    if (!tn_dim_env_init(&b.env, NULL, &b.graph->dims))
        abort();
    for (int i = 0; i < RANDOM_SYMBOLS; i++) {
        b.env.value[i] = b.size[i];
        b.env.bound[i] = 1;
    }
    add_inputs(&b);
    int steps = 2 + (int)random_below(&b.rng, random_chance(&b.rng, 70) ? 10 : RANDOM_STEPS - 2);
    for (int i = 0; i < steps && *stuck < 0; i++) {
        b.rng = (random_rng){seed * 0xD1342543DE82EF95u + (uint64_t)i * 0x2545F4914F6CDD1Du};
        if (skip >> i & 1)
            continue;
        uint32_t before = b.pooled;
        random_step(&b);
        if (tn_graph_check(b.graph) != TN_OK)
            *stuck = i;
        /* what is too large stays an ordinary value of the graph, but nothing is made of it */
        while (*stuck < 0 && b.pooled > before && random_count(&b, b.pool[b.pooled - 1]) > RANDOM_MOST &&
               random_count(&b, b.pool[b.pooled - 1]) != INT64_MAX)
            b.pooled--;
    }
    if (*stuck < 0) {
        b.rng = (random_rng){~seed};
        set_outputs(&b);
    }
    tn_dim_env_free(&b.env);
    return b.graph;
}

tn_graph *random_graph_make(uint64_t seed, int64_t size[RANDOM_SYMBOLS]) {
    for (uint64_t skip = 0;;) {
        int stuck;
        tn_graph *g = build(seed, skip, size, &stuck);
        if (stuck < 0)
            return g;
        if (getenv("TENON_RANDOM_VERBOSE"))
            fprintf(stderr, "seed %llu step %d: %s\n", (unsigned long long)seed, stuck, tn_error_message());
        tn_graph_destroy(g);
        skip |= (uint64_t)1 << stuck;
    }
}

void random_graph_inputs(const tn_graph *g, const int64_t size[RANDOM_SYMBOLS], uint64_t seed, tn_object **in) {
    tn_dim_env env;
    random_rng r = {seed ^ 0x5DEECE66Du};
    if (!tn_dim_env_init(&env, NULL, &g->dims))
        abort();
    for (uint32_t i = 0; i < env.count; i++)
        for (int s = 0; s < RANDOM_SYMBOLS; s++)
            if (strcmp(tn_dim_symbol_name(&g->dims, i), symbol_names[s]) == 0) {
                env.value[i] = size[s];
                env.bound[i] = 1;
            }
    int corners = random_chance(&r, 25) ? 15 : 0;
    for (uint32_t i = 0; i < tn_graph_input_count(g); i++) {
        tn_value v = tn_graph_input(g, i);
        int64_t dims[TN_MAX_RANK];
        for (int d = 0; d < tn_value_rank(g, v); d++)
            if (!tn_dim_eval(&g->dims, &env, tn_value_dim(g, v, d), &dims[d]))
                abort();
        in[i] = tn_tensor_object(random_tensor(&r, tn_value_dtype(g, v), tn_value_rank(g, v), dims, corners));
    }
    tn_dim_env_free(&env);
}
