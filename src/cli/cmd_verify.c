/* tenon verify: checks every optimisation on a model. */
#include <inttypes.h>
#include <string.h>

#include "base/number.h"
#include "base/os.h"
#include "cli/cli.h"
#include "cli/progress.h"
#include "runtime/verify.h"

static const char *stage_name(tn_verify_stage stage) {
    return stage == TN_VERIFY_PASS ? "pass" : stage == TN_VERIFY_KERNEL ? "kernel" : "plan";
}

static void progress(void *ctx, uint32_t done, uint32_t total) {
    (void)total;
    tn_progress_update(ctx, done);
}

static tn_status read_options(const tn_cli_options *o, tn_verify_options *v, tn_text *dims) {
    *v = (tn_verify_options){.samples = (uint32_t)o->samples,
                             .seed = o->seed,
                             .level = o->level ? o->level[0] - '0' : 2,
                             .isa = tn_cpu_best(),
                             .threads = (int)o->threads,
                             .disable = o->disable,
                             .passes = o->passes,
                             .dump = o->dump};
    if (o->tolerance) {
        size_t used;
        if (!tn_parse_f64(o->tolerance, strlen(o->tolerance), &v->tolerance, &used) || o->tolerance[used] ||
            !(v->tolerance >= 0 && v->tolerance < 1)) {
            tn_fail(TN_ERR_USAGE, "--tolerance: '%s' is no number from 0 to 1", o->tolerance);
            tn_fail_hint("it is a share of the rms of a value: --tolerance 1e-4");
            return TN_ERR_USAGE;
        }
    }
    int isa = (int)v->isa;
    for (isa = o->isa ? 0 : isa; o->isa && isa < TN_ISA_COUNT && strcmp(o->isa, tn_isa_name((tn_isa)isa)) != 0;)
        isa++;
    if (isa == TN_ISA_COUNT)
        return tn_fail(TN_ERR_USAGE, "unknown instruction set '%s'", o->isa);
    if (!tn_cpu_has((tn_isa)isa)) {
        tn_fail(TN_ERR_USAGE, "this CPU has no %s", o->isa);
        tn_fail_hint("its best level is %s", tn_isa_name(tn_cpu_best()));
        return TN_ERR_USAGE;
    }
    v->isa = (tn_isa)isa;
    TN_TRY(tn_cli_read_plan(o, &v->layout, &v->reuse));
    for (uint32_t i = 0; i < o->dims.len; i++)
        tn_text_printf(dims, "%s%s", i ? "," : "", o->dims.data[i]);
    v->dims = dims->data;
    return dims->failed ? TN_ERR_MEMORY : TN_OK;
}

static void print_json(tn_text *out, const char *model, const tn_verify_result *r, double seconds) {
    tn_text_add(out, "{\"model\": ");
    tn_text_json(out, model, strlen(model));
    tn_text_printf(out,
                   ", \"holds\": %s,\n \"passes\": %" PRIu32 ", \"passes_changed\": %" PRIu32
                   ", \"values_compared\": %" PRIu32 ", \"kernels\": %" PRIu32 ", \"kernel_runs\": %" PRIu32
                   ", \"kernels_not_attributed\": %" PRIu32 ", \"samples\": %" PRIu32 ", \"samples_refused\": %" PRIu32
                   ", \"seconds\": ",
                   r->holds ? "true" : "false", r->passes, r->changed, r->regions, r->kernels, r->kernel_runs,
                   r->unchecked, r->samples, r->refused);
    tn_text_f64(out, seconds);
    if (!r->holds) {
        tn_text_printf(out, ",\n \"difference\": {\"stage\": \"%s\", \"name\": ", stage_name(r->stage));
        tn_text_json(out, r->name, strlen(r->name));
        const char *const keys[] = {"where", "what", "inputs"}, *const texts[] = {r->node, r->what, r->inputs};
        for (int i = 0; i < 3; i++) {
            tn_text_printf(out, ", \"%s\": ", keys[i]);
            tn_text_json(out, texts[i], strlen(texts[i]));
        }
        tn_text_printf(out, ", \"sample\": %" PRIu32 "}", r->sample);
    }
    tn_text_add(out, "}\n");
}

static void print_text(tn_text *out, const tn_verify_result *r, double seconds) {
    char number[TN_NUMBER_TEXT];
    tn_format_f64_digits(seconds, 3, number);
    tn_text_printf(out,
                   "%s: %" PRIu32 " passes (%" PRIu32 " changed the graph, %" PRIu32 " values compared), %" PRIu32
                   " kernels (%" PRIu32 " runs compared), %" PRIu32 " samples, %s s\n",
                   r->holds ? "holds" : "does not hold", r->passes, r->changed, r->regions, r->kernels, r->kernel_runs,
                   r->samples, number);
    if (r->refused)
        tn_text_printf(out, "%" PRIu32 " of the samples say nothing about the passes: the model refuses such inputs\n",
                       r->refused);
}

tn_status tn_cli_verify(const tn_cli_options *options) {
    tn_verify_options v;
    tn_verify_result r;
    tn_text dims, out;
    tn_text_init(&dims, NULL);
    tn_text_init(&out, NULL);
    tn_progress bar;
    tn_model *model = NULL;
    double start = tn_clock();
    tn_status status = read_options(options, &v, &dims);
    if (status == TN_OK && !(model = tn_cli_load(options, options->args.data[0])))
        status = tn_error_status();
    if (status == TN_OK) {
        tn_progress_start(&bar, options->samples ? options->samples : 4, !options->quiet && !options->json);
        v.progress = progress;
        v.progress_ctx = &bar;
        status = tn_model_check(model, &v, &r);
        tn_progress_clear(&bar);
    }
    if (status == TN_OK && options->json)
        print_json(&out, options->args.data[0], &r, tn_clock() - start);
    else if (status == TN_OK && (!options->quiet || !r.holds))
        print_text(&out, &r, tn_clock() - start);
    if (status == TN_OK)
        status = tn_cli_put(&out);
    if (status == TN_OK && !r.holds) {
        status = tn_fail(TN_ERR_FAILED, "%s%s%s: %s", stage_name(r.stage), *r.name ? " " : "", r.name, r.what);
        tn_fail_where("%s", r.node);
        tn_fail_where("sample %" PRIu32 ": %s", r.sample, r.inputs);
        tn_fail_hint("the same again: --seed %" PRIu64 " --samples %" PRIu32, options->seed, r.sample + 1);
    }
    tn_model_destroy(model);
    tn_text_free(&dims);
    tn_text_free(&out);
    return status;
}
