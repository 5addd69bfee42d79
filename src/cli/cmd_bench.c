/* tenon bench: how long a model takes, and what share of the machine it uses. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/os.h"
#include "cli/cli.h"
#include "cli/inputs.h"
#include "cli/print.h"
#include "cli/profile.h"
#include "cli/progress.h"
#include "kernels/calibrate.h"

typedef struct bench {
    const tn_cli_options *options;
    tn_heap *heap; /* of the model and what is made of it: its peak is not that of the lists below */
    tn_model *model;
    tn_session *session;
    tn_cli_feeds feeds;
    tn_binding *binding;
    tn_output *output;
    tn_object **result;
    uint32_t inputs, outputs;
    TN_VEC(double) time; /* seconds of each run */
    tn_cli_profile profile;
    double create, first;  /* seconds */
    double plain, watched; /* of the fastest run without and with a profile, in turns; 0: not measured */
    uint64_t predicted;    /* bytes of the heap at most, said before the first run; 0: sizes are open */
    tn_session_report plan;
    tn_memory memory;
    double seconds, warmup; /* as asked for */
    double peak, copy;      /* operations, bytes a second */
    int threads;
    tn_isa isa;
} bench;

static void drop_results(bench *b) {
    for (uint32_t i = 0; i < b->outputs; i++) {
        tn_object_destroy(b->result[i]);
        b->result[i] = NULL;
    }
}

static tn_status run_once(bench *b, const tn_run_options *how, double *seconds) {
    drop_results(b);
    double start = tn_clock();
    tn_status status = tn_session_run_with(b->session, b->inputs, b->binding, b->outputs, b->output, how);
    *seconds = tn_clock() - start;
    return status;
}

static tn_status prepare(bench *b) {
    const tn_cli_options *o = b->options;
    tn_cli_options filled = *o;
    if (!o->heap) {
        if (!(filled.heap = b->heap = tn_heap_create(NULL)))
            return tn_error_status();
        tn_heap_set_limit(b->heap, o->max_bytes && o->max_bytes < SIZE_MAX ? (size_t)o->max_bytes : SIZE_MAX);
    }
    double start = tn_clock();
    if (!(b->model = tn_cli_load(&filled, o->args.data[0])) ||
        !(b->session = tn_cli_session(&filled, b->model, b->threads, TN_CLI_COMPUTE)))
        return tn_error_status();
    b->create = tn_clock() - start;
    char formula[8];
    if (tn_session_peak(b->session, &b->predicted, formula, sizeof formula) == TN_OK && b->predicted)
        b->predicted += tn_heap_in_use(filled.heap);
    filled.fill = o->fill ? o->fill : "random";
    TN_TRY(tn_cli_read_inputs(&filled, b->model, &b->feeds));
    b->outputs = tn_model_output_count(b->model);
    b->binding = tn_alloc_array(NULL, b->feeds.count + 1u, sizeof *b->binding);
    b->output = tn_alloc_array(NULL, b->outputs + 1u, sizeof *b->output);
    b->result = tn_alloc_array(NULL, b->outputs + 1u, sizeof *b->result);
    if (!b->binding || !b->output || !b->result)
        return TN_ERR_MEMORY;
    for (uint32_t i = 0; i < b->feeds.count; i++)
        if (b->feeds.object[i])
            b->binding[b->inputs++] =
                (tn_binding){.name = tn_cli_feed_name(b->model, &b->feeds, i), .object = b->feeds.object[i]};
    for (uint32_t i = 0; i < b->outputs; i++)
        b->output[i] = (tn_output){.name = tn_model_output_name(b->model, i), .object = &b->result[i]};
    return TN_OK;
}

/* The machine's own rates stand beside those of the model: measured before, and after. */
static void calibrate(bench *b, tn_pool *pool) {
    b->peak = fmax(b->peak, tn_calibrate_operations(b->isa, pool, 20));
    b->copy = fmax(b->copy, tn_calibrate_copy(pool, 16 << 20, 4));
}

/* A number of at least 0 from an option; `value` stays where it is not given. */
static tn_status read_number(const char *option, const char *text, double most, double *value) {
    size_t used;
    if (!text)
        return TN_OK;
    if (!tn_parse_f64(text, strlen(text), value, &used) || text[used] || !(*value >= 0 && *value <= most))
        return tn_fail(TN_ERR_USAGE, "--%s: '%s' is no number from 0 to %d", option, text, (int)most);
    return TN_OK;
}

static void drop_event(void *user, const tn_profile_event *event) {
    (void)user;
    (void)event;
}

/* What looking costs: runs with and without a profile in turns, for a tenth of the time. */
static tn_status measure_profile(bench *b) {
    const tn_run_options watched = {.size = sizeof watched, .profile = drop_event};
    double end = tn_clock() + fmin(b->seconds, 10) / 10, seconds;
    b->plain = b->watched = INFINITY;
    for (int i = 0; i < 5 || (tn_clock() < end && i < 10000); i++) {
        TN_TRY(run_once(b, NULL, &seconds));
        b->plain = fmin(b->plain, seconds);
        TN_TRY(run_once(b, &watched, &seconds));
        b->watched = fmin(b->watched, seconds);
    }
    return TN_OK;
}

static tn_status measure(bench *b) {
    const tn_cli_options *o = b->options;
    double seconds, budget = b->seconds, one;
    TN_TRY(run_once(b, NULL, &b->first));
    const tn_run_options profiled = {
        .size = sizeof profiled, .profile = tn_cli_profile_add, .profile_user = &b->profile};
    TN_TRY(run_once(b, &profiled, &one));
    TN_TRY(tn_cli_profile_end(&b->profile));
    for (int i = 0; i < (int)b->warmup; i++)
        TN_TRY(run_once(b, NULL, &seconds));
    tn_progress bar;
    tn_progress_start(&bar, (uint64_t)(budget * 1000) + 1, !o->quiet && !o->json);
    double start = tn_clock(), now = start;
    tn_status status = TN_OK;
    while (status == TN_OK && (now - start < budget || b->time.len == 0) && b->time.len < 50000000) {
        status = run_once(b, NULL, &seconds);
        if (status == TN_OK && !tn_vec_push(NULL, &b->time, seconds))
            status = TN_ERR_MEMORY;
        now = tn_clock();
        tn_progress_update(&bar, (uint64_t)((now - start) * 1000));
    }
    tn_progress_clear(&bar);
    return status == TN_OK && b->options->per_op ? measure_profile(b) : status;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The time that a share of the runs stays below: the nearest rank. */
static double quantile(const bench *b, double share) {
    size_t rank = (size_t)ceil(share * (double)b->time.len);
    return b->time.data[rank ? rank - 1 : 0];
}

/* What a run works at side by side: the first dimension of the first input of rank 2 and more. */
static double items(const bench *b) {
    for (uint32_t i = 0; i < b->inputs; i++) {
        const tn_tensor *t = tn_object_tensor(b->binding[i].object);
        if (t && tn_tensor_rank(t) > 1)
            return (double)tn_tensor_dims(t)[0];
    }
    return 1;
}

typedef struct figures {
    double median, least, p90, p99, items, gflops, of_peak, of_bandwidth, fusion, reuse;
} figures;

static figures judge(const bench *b) {
    figures f = {
        .median = quantile(b, 0.5), .least = b->time.data[0], .p90 = quantile(b, 0.9), .p99 = quantile(b, 0.99)};
    f.items = items(b) / f.median;
    f.gflops = b->profile.operations / f.median * 1e-9;
    f.of_peak = b->peak > 0 ? 1e11 * f.gflops / b->peak : 0;
    f.of_bandwidth = b->copy > 0 ? 100 * b->profile.bytes / f.median / b->copy : 0;
    f.fusion = b->plan.operators ? (double)b->plan.fused_operators / b->plan.operators : 0;
    f.reuse = b->memory.peak ? (double)b->plan.arena_bytes / (double)b->memory.peak : 0;
    return f;
}

/* Seconds that a profile adds to a part; what the machine's noise takes off is not counted. */
static double profile_cost(const bench *b) {
    return b->profile.part.len ? fmax(0, b->watched - b->plain) / b->profile.part.len : 0;
}

static void add_number(tn_text *out, const char *key, double value) {
    tn_text_printf(out, ",\n \"%s\": ", key);
    tn_cli_json_f64(out, value);
}

static void print_json(const bench *b, const figures *f, tn_text *out) {
    const char *name = b->options->args.data[0];
    tn_text_add(out, "{\"model\": ");
    tn_text_json(out, name, strlen(name));
    const struct {
        const char *key;
        double value;
    } times[] = {{"median_ms", 1e3 * f->median},
                 {"min_ms", 1e3 * f->least},
                 {"p90_ms", 1e3 * f->p90},
                 {"p99_ms", 1e3 * f->p99},
                 {"items_per_s", f->items},
                 {"create_ms", 1e3 * b->create},
                 {"first_ms", 1e3 * b->first},
                 {"bytes_moved", b->profile.bytes},
                 {"fusion_rate", f->fusion},
                 {"memory_reuse", f->reuse},
                 {"gflops", f->gflops},
                 {"percent_of_peak", f->of_peak},
                 {"percent_of_bandwidth", f->of_bandwidth},
                 {"peak_gflops", 1e-9 * b->peak},
                 {"copy_gb_per_s", 1e-9 * b->copy}};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        add_number(out, times[i].key, times[i].value);
    tn_text_printf(out,
                   ",\n \"runs\": %" PRIu32 ", \"kernels\": %" PRIu32 ", \"host_calls\": %" PRIu32
                   ",\n \"peak_rss_bytes\": %zu, \"arena_bytes\": %" PRIu64 ", \"weight_bytes\": %" PRIu64
                   ", \"peak_bytes\": %zu,\n \"threads\": %d, \"isa\": \"%s\", \"predicted_peak_bytes\": ",
                   b->time.len, b->plan.kernels, b->plan.host_calls, tn_peak_rss_bytes(), b->plan.arena_bytes,
                   b->plan.weight_bytes, b->memory.peak, b->threads, tn_isa_name(b->isa));
    if (b->predicted)
        tn_text_printf(out, "%" PRIu64, b->predicted);
    else
        tn_text_add(out, "null");
    if (b->options->per_op) {
        tn_text_add(out, ",\n \"per_op\": ");
        tn_cli_profile_json(&b->profile, out);
        add_number(out, "profile_ns_per_part", 1e9 * profile_cost(b));
    }
    tn_text_add(out, "}\n");
}

static void put(tn_text *out, const char *before, double value, const char *after) {
    char number[TN_NUMBER_TEXT];
    tn_format_f64_digits(value, 4, number);
    tn_text_printf(out, "%s%s%s", before, number, after);
}

static void print_text(const bench *b, const figures *f, tn_text *out) {
    put(out, "median ", 1e3 * f->median, " ms");
    put(out, "  min ", 1e3 * f->least, "");
    put(out, "  p90 ", 1e3 * f->p90, "");
    put(out, "  p99 ", 1e3 * f->p99, "");
    tn_text_printf(out, "  of %" PRIu32 " runs, %d thread%s, %s\n", b->time.len, b->threads, b->threads > 1 ? "s" : "",
                   tn_isa_name(b->isa));
    if (b->options->quiet)
        return;
    put(out, "", f->items, " items/s");
    put(out, ", ", f->gflops, " GFLOP/s");
    put(out, " (", f->of_peak, " % of the ");
    put(out, "", 1e-9 * b->peak, " measured)");
    put(out, ", ", 1e-9 * b->profile.bytes / f->median, " GB/s");
    put(out, " (", f->of_bandwidth, " % of a copy's)\n");
    put(out, "start: create ", 1e3 * b->create, " ms");
    put(out, ", first run ", 1e3 * b->first, " ms\n");
    tn_text_printf(out, "plan: %" PRIu32 " kernels, %" PRIu32 " host calls", b->plan.kernels, b->plan.host_calls);
    put(out, ", ", 100 * f->fusion, " % of the operators in fused kernels\n");
    put(out, "memory: arena ", 1e-6 * (double)b->plan.arena_bytes, " MB");
    put(out, ", weights ", 1e-6 * (double)b->plan.weight_bytes, " MB");
    put(out, ", heap peak ", 1e-6 * (double)b->memory.peak, " MB");
    if (b->predicted)
        put(out, " (predicted ", 1e-6 * (double)b->predicted, ")");
    put(out, ", resident peak ", 1e-6 * (double)tn_peak_rss_bytes(), " MB\n");
    if (b->options->per_op) {
        tn_cli_profile_text(&b->profile, out);
        put(out, "profiling: a run of ", 1e3 * b->plain, " ms");
        put(out, " takes ", 1e3 * b->watched, " ms");
        put(out, ", ", 1e9 * profile_cost(b), " ns more a part\n");
    }
}

static tn_status bench_all(bench *b) {
    const tn_cli_options *o = b->options;
    b->threads = o->threads ? (int)o->threads : tn_cpu_count();
    b->isa = tn_cpu_best();
    for (int i = 0; o->isa && i < TN_ISA_COUNT; i++)
        if (!strcmp(o->isa, tn_isa_name((tn_isa)i)))
            b->isa = (tn_isa)i; /* the session refuses what the CPU has not */
    if (o->backend && !strcmp(o->backend, "ref") && (o->profile || o->per_op)) {
        tn_fail(TN_ERR_USAGE, "--%s: the reference has no kernels to tell of", o->profile ? "profile" : "per-op");
        tn_fail_hint("leave out --backend ref");
        return TN_ERR_USAGE;
    }
    b->seconds = b->warmup = 3;
    TN_TRY(read_number("seconds", o->seconds, 1e6, &b->seconds));
    TN_TRY(read_number("warmup", o->warmup, 1e6, &b->warmup));
    TN_TRY(prepare(b));
    tn_pool *pool = tn_pool_create(NULL, b->threads);
    if (!pool)
        return tn_error_status();
    calibrate(b, pool);
    tn_status status = measure(b);
    if (status == TN_OK)
        calibrate(b, pool);
    tn_pool_destroy(pool);
    TN_TRY(status);
    TN_TRY(tn_session_describe(b->session, &b->plan));
    TN_TRY(tn_memory_report(b->session, &b->memory));
    if (o->profile)
        TN_TRY(tn_cli_profile_write(&b->profile, o->profile, o->args.data[0]));
    qsort(b->time.data, b->time.len, sizeof *b->time.data, by_size);
    figures f = judge(b);
    tn_text out;
    tn_text_init(&out, NULL);
    if (o->json)
        print_json(b, &f, &out);
    else
        print_text(b, &f, &out);
    status = tn_cli_put(&out);
    tn_text_free(&out);
    return status;
}

tn_status tn_cli_bench(const tn_cli_options *options) {
    bench b = {.options = options};
    tn_status status = bench_all(&b);
    if (b.result)
        drop_results(&b);
    tn_free(NULL, b.result);
    tn_free(NULL, b.output);
    tn_free(NULL, b.binding);
    tn_vec_free(NULL, &b.time);
    tn_cli_profile_free(&b.profile);
    tn_cli_feeds_free(&b.feeds);
    tn_session_destroy(b.session);
    tn_model_destroy(b.model);
    tn_error_record error;
    tn_error_save(&error);
    tn_heap_destroy(b.heap);
    if (status == TN_OK)
        return TN_OK;
    tn_error_restore(&error);
    tn_cli_options filled = *options;
    filled.fill = options->fill ? options->fill : "random";
    tn_cli_say_needed(&filled, b.threads, 2);
    return tn_error_status();
}
