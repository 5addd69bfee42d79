/* tenon optimize: rewrite a model and write it back. */
#include <inttypes.h>
#include <string.h>
#include <tenon/passes.h>

#include "base/number.h"
#include "base/os.h"
#include "cli/cli.h"
#include "cli/json.h"
#include "cli/print.h"
#include "onnx/model.h"
#include "passes/pass.h"

typedef TN_VEC(tn_pass_report) report_list;

typedef struct optimizing {
    const tn_cli_options *options;
    tn_model *model;
    tn_graph *graph;
    report_list reports;
    tn_text notes; /* near misses, a line each */
    uint32_t nodes_before, nodes_after;
    uint64_t bytes_before, bytes_after; /* of constants */
    double load_s, pass_s, save_s;
    bool failed;
} optimizing;

static void on_report(void *user, const tn_pass_report *report) {
    optimizing *o = user;
    if (!tn_vec_push(NULL, &o->reports, *report))
        o->failed = true;
    o->pass_s += report->seconds;
}

static void on_note(void *user, const char *text) {
    optimizing *o = user;
    tn_text_add(&o->notes, text);
    if (*text && text[strlen(text) - 1] != '\n')
        tn_text_add(&o->notes, "\n");
}

static uint64_t constant_bytes(const tn_graph *g) {
    uint64_t bytes = 0;
    for (uint32_t i = 1; i < g->node.len; i++) {
        const tn_tensor *t = g->node.data[i].op && g->node.data[i].op->traits & TN_CONSTANT
                                 ? tn_attr_tensor(g, (tn_node){i}, "value")
                                 : NULL;
        bytes += t ? tn_tensor_bytes(t) : 0;
    }
    for (uint32_t i = 0; i < g->input_default.len; i++)
        bytes += tn_tensor_bytes(g->input_default.data[i].tensor);
    return bytes;
}

static tn_status fix_dims(optimizing *o) {
    const tn_cli_options *options = o->options;
    tn_text text;
    tn_text_init(&text, NULL);
    for (uint32_t i = 0; i < options->dims.len; i++)
        tn_text_printf(&text, "%s%s", i ? "," : "", options->dims.data[i]);
    tn_status status = text.failed ? TN_ERR_MEMORY : text.len ? tn_graph_fix_dims(o->graph, text.data) : TN_OK;
    tn_text_free(&text);
    return status;
}

/* Before IR version 4 every initializer had to be listed as an input: there, those inputs are the weights. */
static bool defaults_are_weights(const tn_graph *g) {
    const char *text = tn_graph_metadata(g, TN_META_IR_VERSION);
    int64_t version = 0;
    size_t used;
    return text && tn_parse_i64(text, strlen(text), &version, &used) && version < 4;
}

static tn_status drop_weight_inputs(tn_graph *g) {
    for (uint32_t i = tn_graph_input_count(g); i-- > 0;) {
        tn_value input = tn_graph_input(g, i);
        if (tn_graph_input_default(g, input) && tn_value_use_count(g, input) == 0)
            TN_TRY(tn_region_remove_arg(g, tn_graph_region(g), i));
    }
    return tn_graph_set_metadata(g, TN_META_IR_VERSION, "4", 1);
}

static bool is_onnx(const char *path) {
    size_t n = strlen(path);
    return (n < 6 || strcmp(path + n - 6, ".tenon") != 0) && (n < 4 || strcmp(path + n - 4, ".txt") != 0);
}

static tn_status optimize(optimizing *o) {
    const tn_cli_options *options = o->options;
    bool weights = defaults_are_weights(o->graph), as_written = options->level && options->level[0] == '0';
    TN_TRY(fix_dims(o));
    if (as_written && !options->passes)
        return TN_OK;
    TN_TRY(tn_graph_optimize(
        o->graph,
        TN_OPTIONS(tn_optimize_options,
                   .level = options->level ? (tn_level)(TN_LEVEL_0 + (options->level[0] - '0')) : TN_LEVEL_DEFAULT,
                   .disable = options->disable, .passes = options->passes, .dump = options->dump,
                   .bind_defaults = weights, .keep_composites = true, .for_onnx = is_onnx(options->output),
                   .log = on_note, .log_user = o, .report = on_report, .report_user = o)));
    if (weights)
        TN_TRY(drop_weight_inputs(o->graph));
    return o->failed ? TN_ERR_MEMORY : TN_OK;
}

/* ---- what was done ---- */

static void put_ms(tn_text *out, double seconds) {
    char number[TN_NUMBER_TEXT];
    tn_format_f64_digits(1e3 * seconds, 3, number);
    tn_text_printf(out, "%10s ms", number);
}

static void print_text(const optimizing *o, tn_text *out) {
    if (o->reports.len)
        tn_text_printf(out, "%-20s %8s  %16s %13s\n", "pass", "sites", "nodes", "time");
    for (uint32_t i = 0; i < o->reports.len; i++) {
        const tn_pass_report *r = &o->reports.data[i];
        tn_text_printf(out, "%-20s %8" PRIu64 "  %6" PRIu32 " -> %6" PRIu32, r->name, r->sites, r->nodes_before,
                       r->nodes_after);
        put_ms(out, r->seconds);
        tn_text_add(out, "\n");
    }
    tn_text_printf(out, "nodes %" PRIu32 " -> %" PRIu32 ", constants %" PRIu64 " -> %" PRIu64 " bytes\n",
                   o->nodes_before, o->nodes_after, o->bytes_before, o->bytes_after);
    tn_text_add(out, "time: load");
    put_ms(out, o->load_s);
    tn_text_add(out, ", passes");
    put_ms(out, o->pass_s);
    tn_text_add(out, ", save");
    put_ms(out, o->save_s);
    tn_text_printf(out, "\nwritten to %s\n", o->options->output);
    if (o->options->explain && o->notes.len)
        tn_text_printf(out, "\nnot done, and why:\n%s", o->notes.data);
}

static void print_json(const optimizing *o, tn_text *out) {
    const char *model = o->options->args.data[0], *output = o->options->output;
    tn_text_add(out, "{\"model\": ");
    tn_text_json(out, model, strlen(model));
    tn_text_add(out, ", \"output\": ");
    tn_text_json(out, output, strlen(output));
    tn_text_add(out, ",\n \"passes\": [");
    for (uint32_t i = 0; i < o->reports.len; i++) {
        const tn_pass_report *r = &o->reports.data[i];
        tn_text_printf(out,
                       "%s\n  {\"name\": \"%s\", \"sites\": %" PRIu64 ", \"nodes_before\": %" PRIu32
                       ", \"nodes_after\": %" PRIu32 ", \"ms\": ",
                       i ? "," : "", r->name, r->sites, r->nodes_before, r->nodes_after);
        tn_cli_json_f64(out, 1e3 * r->seconds);
        tn_text_add(out, "}");
    }
    tn_text_printf(out,
                   "],\n \"nodes_before\": %" PRIu32 ", \"nodes_after\": %" PRIu32
                   ", \"constant_bytes_before\": %" PRIu64 ", \"constant_bytes_after\": %" PRIu64 ",\n ",
                   o->nodes_before, o->nodes_after, o->bytes_before, o->bytes_after);
    const double times[] = {o->load_s, o->pass_s, o->save_s};
    const char *const names[] = {"load_ms", "passes_ms", "save_ms"};
    for (int i = 0; i < 3; i++) {
        tn_text_printf(out, "\"%s\": ", names[i]);
        tn_cli_json_f64(out, 1e3 * times[i]);
        tn_text_add(out, ", ");
    }
    tn_text_printf(out, "\"peak_rss_bytes\": %zu", tn_peak_rss_bytes());
    if (o->options->explain) {
        tn_text_add(out, ",\n \"notes\": ");
        tn_text_json(out, o->notes.data ? o->notes.data : "", o->notes.len);
    }
    tn_text_add(out, "}\n");
}

static tn_status save(optimizing *o) {
    double start = tn_clock();
    tn_cli_interrupt_hold();
    tn_status status =
        tn_graph_save_as(o->graph, o->options->output,
                         TN_OPTIONS(tn_save_options, .opset = (int)o->options->opset,
                                    .external_data = o->options->external, .standard_only = o->options->standard));
    tn_cli_interrupt_release();
    o->save_s = tn_clock() - start;
    return status;
}

static tn_status run(optimizing *o) {
    double start = tn_clock();
    o->model = tn_cli_load(o->options, o->options->args.data[0]);
    if (!o->model)
        return tn_error_status();
    o->load_s = tn_clock() - start;
    if (!(o->graph = tn_graph_clone(tn_model_graph(o->model), NULL, NULL)))
        return tn_error_status();
    o->nodes_before = tn_graph_count_nodes(o->graph);
    o->bytes_before = constant_bytes(o->graph);
    TN_TRY(optimize(o));
    o->nodes_after = tn_graph_count_nodes(o->graph);
    o->bytes_after = constant_bytes(o->graph);
    TN_TRY(save(o));
    if (o->options->quiet)
        return TN_OK;
    tn_text out;
    tn_text_init(&out, NULL);
    if (o->options->json)
        print_json(o, &out);
    else
        print_text(o, &out);
    tn_status status = tn_cli_put(&out);
    tn_text_free(&out);
    return status;
}

tn_status tn_cli_optimize(const tn_cli_options *options) {
    if (!options->output) {
        tn_fail(TN_ERR_USAGE, "'tenon optimize' needs the file to be written");
        tn_fail_hint("tenon optimize MODEL -o OUT.onnx");
        return TN_ERR_USAGE;
    }
    optimizing o = {.options = options};
    tn_text_init(&o.notes, NULL);
    tn_status status = run(&o);
    tn_graph_destroy(o.graph);
    tn_model_destroy(o.model);
    tn_vec_free(NULL, &o.reports);
    tn_text_free(&o.notes);
    return status;
}
