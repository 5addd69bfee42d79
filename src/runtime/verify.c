/* Checked mode: samples of inputs, and the order of checks. */
#include "runtime/verify.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "kernels/kernels.h"
#include "lower/cost.h"
#include "onnx/model.h"

/* --- samples ------------------------------------------------------------------------------------------------------------------------- */

static uint64_t next(uint64_t *state) { /* splitmix64 */
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static double uniform(uint64_t *state) {
    return (double)(next(state) >> 11) * 0x1p-53;
}

/* Values that show what others hide: zeros of both signs, extremes, infinities, NaN. */
static double corner(uint64_t *state, tn_dtype dtype) {
    double most = dtype == TN_F64   ? 0x1.fffffffffffffp1023
                  : dtype == TN_F16 ? 65504
                                    : 0x1.fep127,
           least = dtype == TN_F64   ? 0x1p-1074
                   : dtype == TN_F16 ? 0x1p-24
                                     : 0x1p-149;
    const double values[] = {0,     -0.0,   1,    -1,   0.5,  -2,       most,      -most,
                             least, -least, 88.7, -104, 1e-5, INFINITY, -INFINITY, NAN};
    return values[next(state) % 16];
}

static tn_status fill(tn_tensor *t, uint64_t *state, int corners) {
    tn_dtype d = (tn_dtype)t->dtype;
    for (int64_t i = 0; i < t->count; i++) {
        uint64_t r = next(state);
        if (d == TN_STRING) {
            char text[8];
            size_t n = 3 + r % 6;
            for (size_t k = 0; k < n; k++)
                text[k] = (char)('a' + (r >> (8 + 5 * k)) % 26);
            TN_TRY(tn_tensor_set_string(t, i, text, n));
        } else if (tn_dtype_is_complex(d)) {
            double x = uniform(state) * 2 - 1, y = uniform(state) * 2 - 1;
            if (d == TN_C64)
                memcpy((float *)t->data + 2 * i, (float[2]){(float)x, (float)y}, 8);
            else
                memcpy((double *)t->data + 2 * i, (double[2]){x, y}, 16);
        } else if (tn_dtype_is_float(d)) {
            double x = (uniform(state) + uniform(state) + uniform(state) + uniform(state) - 2) * 1.7;
            tn_store_f64(d, t->data, i, (int)(r % 100) < corners ? corner(state, d) : x);
        } else
            tn_store_i64(d, t->data, i, (int64_t)(r >> 63)); /* safe as an index and as a condition */
    }
    return TN_OK;
}

typedef struct symbols {
    uint8_t *used;
    bool any;
} symbols;

static void note(void *ctx, uint32_t symbol) {
    symbols *s = ctx;
    if (s->used)
        s->used[symbol] = 1;
    s->any = true;
}

static void visit_symbols(const tn_graph *g, symbols *s) {
    for (uint32_t i = 0; i < tn_graph_input_count(g); i++) {
        tn_value v = tn_graph_input(g, i);
        for (int d = 0; d < tn_value_rank(g, v); d++)
            tn_dim_symbols(&g->dims, tn_value_dims(g, v)[d], note, s);
    }
}

static bool sizes_vary(const tn_graph *g) {
    symbols s = {0};
    visit_symbols(g, &s);
    return s.any;
}

/* How many symbols the shapes of inputs have; at least one where memory is short. */
static uint32_t count_symbols(const tn_graph *g, tn_heap *heap) {
    symbols s = {.used = tn_alloc(heap, g->dims.symbol.len + 1u)};
    uint32_t count = 0;
    visit_symbols(g, &s);
    for (uint32_t i = 0; s.used && i < g->dims.symbol.len; i++)
        count += s.used[i];
    tn_free(heap, s.used);
    return count + (s.any && !count);
}

/* Sample 0 has sizes 1, 1 small ones, 2 small ones and corner values, 3 sizes 0; then in turn. */
static int64_t pick_size(uint32_t index, uint64_t *state) {
    static const int64_t sizes[] = {1, 2, 3, 4, 5, 8};
    switch (index % 4) {
    case 0: return index ? 1 + (int64_t)(next(state) % 17) : 1;
    case 3: return index == 3 ? 0 : (int64_t)(next(state) % 2);
    default: return sizes[next(state) % 6];
    }
}

#define MOST_ELEMENTS ((int64_t)1 << 25) /* of all inputs; the reference takes long with more */

typedef struct making {
    const tn_graph *g;
    const tn_dim_env *env;
    tn_heap *heap;
    uint64_t *state;
    int corners, depth;
    int64_t left; /* elements; less than none: there would be too many */
} making;

static tn_status make_tensor(making *m, tn_type type, tn_object **out) {
    const tn_graph *g = m->g;
    int64_t dims[TN_MAX_RANK] = {0};
    int rank = tn_type_rank(g, type);
    bool possible = tn_type_dtype(g, type) != TN_DTYPE_NONE;
    if (rank < 0) /* unranked */
        rank = (int)(next(m->state) % 3), dims[0] = dims[1] = 2;
    else
        for (int d = 0; d < rank && possible; d++)
            possible = tn_dim_eval(&g->dims, m->env, tn_type_dims(g, type)[d], &dims[d]) && dims[d] >= 0;
    int64_t count = 1;
    for (int d = 0; d < rank && possible; d++)
        count = dims[d] && count > MOST_ELEMENTS / dims[d] ? MOST_ELEMENTS + 1 : count * dims[d];
    if (possible)
        m->left -= m->left < 0 ? 0 : count;
    if (!possible || m->left < 0)
        return TN_OK;
    tn_tensor *t = tn_tensor_create_in(m->heap, tn_type_dtype(g, type), rank, dims);
    if (!t)
        return tn_error_status();
    *out = tn_tensor_object(t);
    return fill(t, m->state, m->corners);
}

/* A value of a type: optionals hold something, sequences have two elements. *out NULL: none can be made up. */
static tn_status make_object(making *m, tn_type type, tn_object **out) {
    enum { ITEMS = 2, DEPTH = 8 };
    *out = NULL;
    tn_kind kind = type.id ? tn_type_kind(m->g, type) : TN_KIND_MAP;
    if (kind == TN_KIND_TENSOR)
        return make_tensor(m, type, out);
    if ((kind != TN_KIND_OPTIONAL && kind != TN_KIND_SEQUENCE) || m->depth == DEPTH)
        return TN_OK;
    tn_object *item[ITEMS] = {NULL};
    tn_status status = TN_OK;
    int count = kind == TN_KIND_OPTIONAL ? 1 : ITEMS, made = 0;
    m->depth++;
    for (; made < count && status == TN_OK; made++) {
        status = make_object(m, tn_type_element(m->g, type), &item[made]);
        if (!item[made])
            break;
    }
    m->depth--;
    if (status == TN_OK && made == count) {
        *out =
            kind == TN_KIND_OPTIONAL ? tn_optional_create(m->heap, item[0]) : tn_sequence_create(m->heap, ITEMS, item);
        status = *out ? TN_OK : tn_error_status();
    }
    for (int i = 0; i < ITEMS; i++)
        tn_object_destroy(item[i]);
    return status;
}

tn_status tn_verify_sample_make(tn_verify_sample *sample, tn_heap *heap, const tn_graph *g, const uint8_t *wanted,
                                uint64_t seed, uint32_t index, const tn_verify_sizes *sizes, bool *possible) {
    uint64_t state = seed * 0xD1342543DE82EF95u + index + 1;
    int corners = index % 4 == 2 || (index == 1 && (sizes->few || !sizes_vary(g))) ? 4 : 0;
    tn_dim_env env;
    symbols s = {.used = tn_alloc(heap, g->dims.symbol.len + 1u)};
    uint32_t n = tn_graph_input_count(g);
    *possible = true;
    *sample = (tn_verify_sample){.count = n, .in = tn_alloc_array(heap, n + 1u, sizeof(tn_object *))};
    bool ready = s.used && sample->in && tn_dim_env_init(&env, heap, &g->dims);
    if (!ready) {
        tn_free(heap, s.used);
        return tn_error_status();
    }
    visit_symbols(g, &s);
    size_t used =
        (size_t)snprintf(sample->text, sizeof sample->text, "%s values", corners ? "random and corner" : "random");
    uint32_t symbol = 0;
    for (uint32_t i = 0; i < g->dims.symbol.len; i++) {
        if (!s.used[i])
            continue;
        int64_t low = g->dims.symbol.data[i].low, high = g->dims.symbol.data[i].high, size = pick_size(index, &state);
        bool raised = sizes->raised == UINT32_MAX || (sizes->raised == symbol++) != sizes->others;
        size = size > sizes->most ? sizes->most : size;
        size = raised && size < sizes->least ? sizes->least : size;
        env.value[i] = size < low ? low : size > high ? high : size;
        env.bound[i] = 1;
        if (used < sizeof sample->text - 60)
            used += (size_t)snprintf(sample->text + used, sizeof sample->text - used, ", %.30s=%" PRId64,
                                     tn_dim_symbol_name(&g->dims, i), env.value[i]);
    }
    tn_status status = TN_OK;
    making m = {g, &env, heap, &state, corners, 0, MOST_ELEMENTS};
    for (uint32_t i = 0; i < n && status == TN_OK && *possible && !sample->large; i++) {
        if (!wanted[i])
            continue;
        status = make_object(&m, tn_value_type(g, tn_graph_input(g, i)), &sample->in[i]);
        sample->large = m.left < 0;
        *possible = status != TN_OK || sample->large || sample->in[i] != NULL;
    }
    tn_dim_env_free(&env);
    tn_free(heap, s.used);
    return status;
}

void tn_verify_sample_free(tn_verify_sample *sample, tn_heap *heap) {
    for (uint32_t i = 0; sample->in && i < sample->count; i++)
        tn_object_destroy(sample->in[i]);
    tn_free(heap, sample->in);
    *sample = (tn_verify_sample){0};
}

/* Beyond, sizes are drawn smaller where they may be: the reference runs a sample some ten times. */
#define MOST_OPERATIONS 1e9

/* --- all of it ------------------------------------------------------------------------------------------------------------------------- */

typedef struct checking {
    tn_model *model;
    const tn_verify_options *o;
    tn_verify_result *r;
    tn_heap *heap;
    tn_graph *graph;
    tn_verify_steps *steps;
    tn_plan *plan;
    tn_pool *pool;
    uint32_t samples;
    bool few;        /* samples: each takes long */
    uint8_t *wanted; /* by input of the model: without default */
    bool impossible; /* some input has a type of which no value is made up */
} checking;

static void log_text(void *ctx, const char *text) {
    const tn_model *m = ctx;
    if (m->log)
        m->log(m->log_user, text);
}

static tn_status compile(checking *c) {
    const tn_verify_options *o = c->o;
    const tn_graph *from = c->model->graph;
    c->graph = tn_graph_clone(from, NULL, NULL);
    if (!c->graph)
        return tn_error_status();
    if (o->dims && *o->dims)
        TN_TRY(tn_graph_fix_dims(c->graph, o->dims));
    TN_TRY(tn_onnx_inline_calls(c->graph, c->model->max_ops));
    tn_pass_context p = {.level = o->level,
                         .disable = o->disable,
                         .passes = o->passes,
                         .dump = o->dump,
                         .verify = true,
                         .bind_defaults = true,
                         .evaluate = tn_pass_evaluate,
                         .evaluate_ctx = c->heap,
                         .max_nodes = c->model->max_ops,
                         .rewrites = o->rewrites,
                         .rewrite_count = o->rewrite_count,
                         .log = c->model->notes ? log_text : NULL,
                         .log_ctx = c->model};
    tn_status status = tn_verify_steps_make(&c->steps, c->graph, &p, o);
    tn_pass_context_free(&p);
    TN_TRY(status);
    c->r->passes = tn_verify_steps_count(c->steps, &c->r->changed);
    tn_graph *copy = tn_graph_clone(c->graph, NULL, NULL);
    if (!copy)
        return tn_error_status();
    c->plan = tn_lower(c->heap, copy,
                       &(tn_lower_options){.level = o->level,
                                           .isa = o->isa,
                                           .layout = o->layout,
                                           .reuse = o->reuse,
                                           .kernels = o->kernels ? o->kernels : tn_kernels()});
    if (!c->plan)
        return tn_error_status();
    c->r->kernels = c->plan->kernel.len;
    return TN_OK;
}

/* The sample by input of the plan's graph, found by name. */
static tn_status for_plan(const checking *c, const tn_verify_sample *sample, tn_verify_sample *out) {
    const tn_graph *g = c->plan->graph, *from = c->model->graph;
    *out = (tn_verify_sample){.count = tn_graph_input_count(g)};
    out->in = tn_alloc_array(c->heap, out->count + 1u, sizeof(tn_object *));
    if (!out->in)
        return tn_error_status();
    for (uint32_t i = 0; i < out->count; i++)
        for (uint32_t k = 0; k < sample->count; k++)
            if (sample->in[k] && !out->in[i] &&
                strcmp(tn_value_name(g, tn_graph_input(g, i)), tn_value_name(from, tn_graph_input(from, k))) == 0)
                out->in[i] = tn_object_retain(sample->in[k]);
    return TN_OK;
}

/* What the plan computes for a sample, as far as it is known; at least so much for each element of the inputs. */
static tn_status cost_of(const checking *c, const tn_verify_sample *mapped, double *operations) {
    const tn_graph *g = c->plan->graph;
    tn_dim_env env;
    tn_plan_cost cost = {0};
    if (!tn_dim_env_init(&env, c->heap, &g->dims))
        return tn_error_status();
    for (uint32_t i = 0; i < mapped->count; i++) {
        const tn_tensor *t = mapped->in[i] ? tn_object_tensor(mapped->in[i]) : NULL;
        tn_value v = tn_graph_input(g, i);
        for (int d = 0; t && t->rank == tn_value_rank(g, v) && d < t->rank; d++)
            tn_dim_env_match(&g->dims, &env, tn_value_dim(g, v, d), t->dims[d]);
    }
    tn_status status = tn_plan_cost_of(c->plan, &env, &cost);
    tn_dim_env_free(&env);
    double elements = 0;
    for (uint32_t i = 0; i < mapped->count; i++)
        elements +=
            mapped->in[i] && tn_object_tensor(mapped->in[i]) ? (double)tn_object_tensor(mapped->in[i])->count : 0;
    *operations = cost.operations + 1000 * elements;
    return status;
}

/* One attempt; *refused: the model takes no such inputs. *large: nor is it tried, it takes too long. */
static tn_status try_sample(checking *c, uint32_t index, const tn_verify_sizes *sizes, bool *refused, bool *large) {
    tn_verify_sample sample, mapped = {0};
    bool possible;
    double operations = 0;
    tn_interp_options interp = {.heap = c->heap, .pool = c->pool};
    tn_status status = tn_verify_sample_make(&sample, c->heap, tn_verify_steps_graph(c->steps), c->wanted, c->o->seed,
                                             index, sizes, &possible);
    bool made = status == TN_OK && possible && !sample.large;
    if (made)
        status = for_plan(c, &sample, &mapped);
    if (status == TN_OK && made && large)
        status = cost_of(c, &mapped, &operations);
    if (large)
        *large = sample.large || operations > MOST_OPERATIONS;
    if (status == TN_OK && possible && (sample.large || (large && *large))) {
        *refused |= sample.large; /* without a choice */
        tn_verify_sample_free(&mapped, c->heap);
        tn_verify_sample_free(&sample, c->heap);
        return TN_OK;
    }
    if (status == TN_OK && possible)
        status = tn_verify_steps_run(c->steps, c->o, &interp, &sample, refused, c->r);
    if (status == TN_OK && possible && c->r->holds)
        /* where a sample takes long, the first shows how kernels come together; corner values show each kernel */
        status = tn_verify_plan_run(c->plan, c->o, &interp, &mapped, !c->few || !index, refused, c->r);
    *refused |= !possible;
    c->impossible |= !possible;
    snprintf(c->r->inputs, sizeof c->r->inputs, "%s", sample.text);
    tn_verify_sample_free(&mapped, c->heap);
    tn_verify_sample_free(&sample, c->heap);
    return status;
}

/* With sizes at most so large that the reference does not take long. When that is not possible: `always` tries the smallest. */
static tn_status try_sizes(checking *c, uint32_t index, tn_verify_sizes sizes, bool always, bool *refused) {
    static const int64_t most[] = {INT64_MAX, 4, 2, 1};
    bool large = true;
    for (size_t i = 0; i < sizeof most / sizeof *most && large; i++) {
        bool now = false;
        sizes.most = most[i];
        sizes.few = c->few;
        TN_TRY(try_sample(c, index, &sizes, &now, &large));
        *refused = large ? *refused : now;
    }
    if (!large || !always)
        return TN_OK;
    *refused = false;
    c->few = true;
    if (!c->o->samples && c->samples > 2)
        c->samples = 2;
    return try_sample(c, index, &sizes, refused, NULL);
}

/* Sizes that the model refuses are made larger, each by itself and all: windows want room. */
static tn_status check_sample(checking *c, uint32_t index) {
    static const int64_t least[] = {4, 16, 48, 160, 512, 1024};
    enum { ALONE = 6 };
    const tn_graph *g = tn_verify_steps_graph(c->steps);
    uint32_t count = count_symbols(g, c->heap);
    bool refused = false;
    TN_TRY(try_sizes(c, index, (tn_verify_sizes){.raised = UINT32_MAX}, true, &refused));
    for (size_t i = 0; i < sizeof least / sizeof *least && c->r->holds && refused && count; i++) {
        for (uint32_t k = 0; k < count && k < ALONE && count > 1 && c->r->holds && refused; k++)
            TN_TRY(try_sizes(c, index, (tn_verify_sizes){.least = least[i], .raised = k}, false, &refused));
        for (uint32_t k = 0; k < count && k < ALONE && count > 2 && c->r->holds && refused;
             k++) /* a batch stays small */
            TN_TRY(try_sizes(c, index, (tn_verify_sizes){.least = least[i], .raised = k, .others = true}, false,
                             &refused));
        if (refused && c->r->holds)
            TN_TRY(try_sizes(c, index, (tn_verify_sizes){.least = least[i], .raised = UINT32_MAX}, false, &refused));
    }
    c->r->samples++;
    c->r->refused += refused;
    c->r->sample = index;
    return TN_OK;
}

static tn_status check(checking *c) {
    const tn_graph *g = c->model->graph;
    uint32_t inputs = tn_graph_input_count(g);
    c->wanted = tn_alloc(c->heap, inputs + 1u);
    c->pool = tn_pool_create(c->heap, c->o->threads > 0 ? c->o->threads : tn_cpu_count());
    if (!c->wanted || !c->pool)
        return tn_error_status();
    for (uint32_t i = 0; i < inputs; i++)
        c->wanted[i] = tn_graph_input_default(g, tn_graph_input(g, i)) == NULL;
    TN_TRY(compile(c));
    c->samples = c->o->samples ? c->o->samples : sizes_vary(tn_verify_steps_graph(c->steps)) ? 4 : 2;
    for (uint32_t i = 0; i < c->samples && c->r->holds; i++) { /* they may become fewer */
        if (c->o->progress)
            c->o->progress(c->o->progress_ctx, i, c->samples);
        TN_TRY(check_sample(c, i));
    }
    if (c->r->holds && c->impossible) {
        tn_fail(TN_ERR_UNSUPPORTED, "not supported: making up values for the inputs of this model");
        tn_fail_hint("tensors, and sequences and optionals of them, are made up; no maps");
        return TN_ERR_UNSUPPORTED;
    }
    if (c->r->holds && c->r->refused == c->r->samples && !c->r->regions && !c->r->kernel_runs) {
        tn_fail(TN_ERR_INPUT, "nothing was checked: the model refuses all %" PRIu32 " samples of inputs",
                c->r->samples);
        tn_fail_where("the last: %s", c->r->inputs);
        tn_fail_hint("more --samples, or sizes that it takes: --dim NAME=N");
        return TN_ERR_INPUT;
    }
    return TN_OK;
}

tn_status tn_model_check(tn_model *model, const tn_verify_options *options, tn_verify_result *result) {
    *result = (tn_verify_result){.holds = true};
    checking c = {.model = model, .o = options, .r = result, .heap = model->heap};
    tn_status status = check(&c);
    tn_error_record error;
    tn_error_save(&error);
    tn_verify_steps_free(c.steps);
    tn_plan_destroy(c.plan);
    tn_graph_destroy(c.graph);
    tn_pool_destroy(c.pool);
    tn_free(c.heap, c.wanted);
    return status == TN_OK ? TN_OK : tn_error_restore(&error);
}
