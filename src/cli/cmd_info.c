/* tenon info: what is inside a model, and whether it will load. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "base/os.h"
#include "cli/block_list.h"
#include "cli/cli.h"
#include "cli/contents.h"
#include "cli/costs.h"
#include "cli/print.h"
#include "onnx/model.h"

#define FINDINGS_SHOWN 10

/* Something that was found; texts of the graph, or parts of `error`. */
typedef struct finding {
    const char *severity; /* "error", "warning" */
    const char *text;
    size_t length;
} finding;

typedef struct inspection {
    const tn_cli_options *options;
    tn_model *model;
    tn_session *session;
    const tn_graph *graph;
    tn_status status; /* of loading; the error is in `error` */
    tn_error_record error;
    TN_VEC(finding) findings;
    tn_contents contents;
    tn_text unsupported; /* a line for each operator */
    uint32_t unsupported_count;
    uint64_t peak_bytes;
    bool peak_known;
    tn_cli_costs costs;
    char peak[600]; /* of activations: a number, or a formula; "": unknown, or longer than anyone reads */
} inspection;

static tn_status add_finding(inspection *f, const char *severity, const char *text, size_t length) {
    for (uint32_t i = 0; i < f->findings.len; i++)
        if (f->findings.data[i].length == length && memcmp(f->findings.data[i].text, text, length) == 0)
            return TN_OK;
    return tn_vec_push(NULL, &f->findings, ((finding){severity, text, length})) ? TN_OK : TN_ERR_MEMORY;
}

static tn_status add_warnings(inspection *f, const tn_graph *graph) {
    const char *lines = graph ? tn_graph_metadata(graph, TN_META_WARNINGS) : NULL;
    while (lines && *lines) {
        size_t n = strcspn(lines, "\n");
        if (n)
            TN_TRY(add_finding(f, "warning", lines, n));
        lines += n + (lines[n] == '\n');
    }
    return TN_OK;
}

static tn_status list_unsupported(inspection *f) {
    tn_graph *copy = tn_graph_clone(f->graph, NULL, NULL);
    tn_status status =
        copy ? tn_onnx_list_unsupported(copy, &f->unsupported, &f->unsupported_count) : tn_error_status();
    tn_graph_destroy(copy);
    return status;
}

static tn_status inspect(inspection *f) {
    f->model = tn_cli_load(f->options, f->options->args.data[0]);
    f->graph = tn_model_graph(f->model);
    if (f->model)
        f->session = tn_cli_session(f->options, f->model, 0, TN_CLI_DESCRIBE);
    if (!f->session) {
        tn_error_save(&f->error);
        f->status = f->error.status;
        TN_TRY(add_finding(f, "error", f->error.what, strlen(f->error.what)));
    }
    TN_TRY(add_warnings(f, f->graph));
    if (f->session)
        TN_TRY(add_warnings(f, tn_session_graph(f->session)));
    if (!f->graph)
        return TN_OK;
    TN_TRY(tn_contents_count(f->graph, &f->contents));
    if (f->session && tn_session_peak(f->session, &f->peak_bytes, f->peak, sizeof f->peak) == TN_OK)
        f->peak_known = strspn(f->peak, "0123456789") == strlen(f->peak);
    if (f->session)
        TN_TRY(tn_cli_costs_find(f->session, &f->costs));
    /* a model that is wrong in another way may have no list: that error has been said */
    if (f->status == TN_ERR_UNSUPPORTED && list_unsupported(f) != TN_OK)
        f->unsupported_count = 0;
    return TN_OK;
}

/* The type of an input or output: as the passes inferred it, with the sizes that are bound, else as read; *graph: whose type it is. Null:
   unknown. */
static tn_type type_of(const inspection *f, bool output, uint32_t i, const tn_graph **graph) {
    const tn_graph *after = f->session ? tn_session_graph(f->session) : NULL;
    tn_value value = output ? tn_graph_output(f->graph, i) : (tn_value){0}, found = {0};
    if (after && output && i < tn_graph_output_count(after))
        found = tn_graph_output(after, i);
    for (uint32_t k = 0; after && !output && k < tn_graph_input_count(after); k++) /* those without use are gone */
        if (strcmp(tn_value_name(after, tn_graph_input(after, k)), tn_model_input_name(f->model, i)) == 0)
            found = tn_graph_input(after, k);
    *graph = after;
    if (found.id && tn_value_type(after, found).id)
        return tn_value_type(after, found);
    *graph = f->graph;
    return output ? tn_value_type(f->graph, value) : tn_model_input_type(f->model, i);
}

static void note_fresh(void *ctx, uint32_t symbol) {
    const tn_dims **dims = ctx;
    if (*dims && (*dims)->symbol.data[symbol].fresh)
        *dims = NULL;
}

/* What the file declares of an input or output of the model, where that is kept, or NULL. */
static const char *declaration(const inspection *f, bool output, uint32_t i) {
    const char *name = output ? tn_model_output_name(f->model, i) : tn_model_input_name(f->model, i);
    tn_text key;
    tn_text_init(&key, NULL);
    tn_text_printf(&key, TN_META_TYPE "%s", name);
    const char *text = key.failed ? NULL : tn_graph_metadata(f->graph, key.data);
    tn_text_free(&key);
    return text;
}

/* Whether an input or output is, or holds, a sparse tensor in the file. */
static bool is_sparse(const inspection *f, bool output, uint32_t i) {
    const char *text = declaration(f, output, i), *found = text ? strstr(text, TN_SPARSE_TYPE) : NULL;
    return found && found < text + strcspn(text, "["); /* not the name of a dimension */
}

/* What the file declares of an output whose shape inference does not know; NULL: it does, or nothing is declared. Nobody has checked it. */
static const char *declared(const inspection *f, uint32_t output, const tn_graph *g, tn_type type) {
    const tn_dims *known = &g->dims;
    if (type.id && tn_type_kind(g, type) != TN_KIND_TENSOR)
        return NULL;
    int rank = type.id ? tn_type_rank(g, type) : -1;
    for (int k = 0; k < rank; k++)
        tn_dim_symbols(&g->dims, tn_type_dims(g, type)[k], note_fresh, &known);
    if (rank >= 0 && known)
        return NULL;
    return declaration(f, true, output);
}

/* ---- text ---- */

static void put_bytes(tn_text *out, uint64_t bytes) {
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    int unit = 0;
    for (; value >= 1024 && unit < 4; unit++)
        value /= 1024;
    char number[TN_NUMBER_TEXT];
    tn_format_f64_digits(value, 4, number);
    tn_text_printf(out, "%s %s", number, units[unit]);
}

static void put_findings(const inspection *f, tn_text *out) {
    bool color = tn_cli_color(1);
    for (uint32_t i = 0; i < f->findings.len; i++) {
        const finding *x = &f->findings.data[i];
        if (i == FINDINGS_SHOWN && f->findings.len > FINDINGS_SHOWN + 1 && !f->options->verbose) {
            tn_text_printf(out, "and %" PRIu32 " more (--verbose shows them)\n", f->findings.len - i);
            break;
        }
        bool error = strcmp(x->severity, "error") == 0;
        if (error && tn_cli_tty(1) && tn_cli_tty(2))
            continue; /* it ends the command, and is seen there */
        tn_text_printf(out, "%s%s%s: ", color ? error ? "\033[1;31m" : "\033[1;33m" : "", x->severity,
                       color ? "\033[0m" : "");
        tn_text_bytes(out, x->text, x->length);
        tn_text_add(out, "\n");
    }
}

static void put_metadata(const inspection *f, tn_text *out) {
    static const char *const keys[][2] = {{TN_META_PRODUCER, "producer"},
                                          {TN_META_PRODUCER_VERSION, "producer version"},
                                          {TN_META_IR_VERSION, "IR version"},
                                          {TN_META_GRAPH_NAME, "graph"}};
    const tn_graph *g = f->graph;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *value = tn_graph_metadata(g, keys[i][0]);
        if (!value || !*value)
            continue;
        tn_text_printf(out, "%s: ", keys[i][1]);
        tn_cli_name(out, value);
        tn_text_add(out, "\n");
    }
    size_t prefix = strlen(TN_META_OPSET);
    bool first = true;
    for (uint32_t i = 0; i < g->metadata.len; i++) {
        const char *key = tn_strings_text(&g->strings, g->metadata.data[i].key);
        if (strncmp(key, TN_META_OPSET, prefix) != 0)
            continue;
        tn_text_add(out, first ? "operator sets: " : ", ");
        tn_cli_name(out, key + prefix);
        tn_text_printf(out, " %s", tn_strings_text(&g->strings, g->metadata.data[i].value));
        first = false;
    }
    tn_text_add(out, first ? "" : "\n");
}

static void put_values(const inspection *f, tn_text *out) {
    char text[400];
    tn_text_add(out, "inputs:\n");
    for (uint32_t i = 0; i < tn_model_input_count(f->model); i++) {
        const tn_graph *g;
        tn_type type = type_of(f, false, i, &g);
        tn_text_add(out, "  ");
        tn_cli_name(out, tn_model_input_name(f->model, i));
        tn_text_printf(out, "  %s%s%s\n", tn_type_describe(g, type, text, sizeof text),
                       is_sparse(f, false, i) ? "  (sparse)" : "",
                       tn_model_input_has_default(f->model, i) ? "  (has a default)" : "");
    }
    tn_text_add(out, "outputs:\n");
    for (uint32_t i = 0; i < tn_model_output_count(f->model); i++) {
        tn_text_add(out, "  ");
        tn_cli_name(out, tn_model_output_name(f->model, i));
        const tn_graph *g;
        tn_type type = type_of(f, true, i, &g);
        const char *said = declared(f, i, g, type);
        tn_text_printf(out, "  %s%s%s%s%s\n", tn_type_describe(g, type, text, sizeof text), said ? "  (declared " : "",
                       said ? said : "", said ? ")" : "", is_sparse(f, true, i) ? "  (sparse)" : "");
    }
}

static void put_op(const tn_used_op *op, tn_text *out) {
    if (op->domain_length != 7 || memcmp(op->domain, "ai.onnx", 7) != 0) {
        tn_text_bytes(out, op->domain, op->domain_length);
        tn_text_add(out, ".");
    }
    tn_cli_name(out, op->name);
}

static void put_text(const inspection *f, tn_text *out) {
    put_findings(f, out);
    if (!f->graph)
        return;
    put_metadata(f, out);
    put_values(f, out);
    tn_text_printf(out, "parameters: %" PRIu64 " in %" PRIu64 " tensors, ", f->contents.parameter_elements,
                   f->contents.parameters);
    put_bytes(out, f->contents.parameter_bytes);
    tn_text_printf(out, "\nnodes: %" PRIu64 "\n", f->contents.nodes);
    for (uint32_t i = 0; i < f->contents.ops.len; i++) {
        tn_text_printf(out, "  %6" PRIu64 " ", f->contents.ops.data[i].count);
        put_op(&f->contents.ops.data[i], out);
        tn_text_add(out, "\n");
    }
    tn_cli_put_blocks(f->graph, out);
    if (f->graph->function.len)
        tn_text_printf(out, "functions of the model: %" PRIu32 "\n", f->graph->function.len);
    if (f->unsupported_count) {
        tn_text_add(out, "not supported:\n");
        const char *line = f->unsupported.data;
        for (size_t n; *line; line += n + (line[n] == '\n')) {
            n = strcspn(line, "\n");
            tn_text_add(out, "  ");
            tn_text_bytes(out, line, n);
            tn_text_add(out, "\n");
        }
    }
    tn_session_report report;
    if (f->session && tn_session_describe(f->session, &report) == TN_OK) {
        tn_text_printf(out, "after the passes: %" PRIu32 " nodes", report.nodes);
        if (report.kernels)
            tn_text_printf(out, ", %" PRIu32 " kernels", report.kernels);
        if (f->peak[0])
            tn_text_printf(out, "\nactivations: at most %s bytes at once", f->peak);
        else if (report.kernels)
            tn_text_add(out, "\nactivations: a long formula; a number with sizes bound by --dim");
        tn_text_add(out, "\n");
    }
    if (f->session)
        tn_cli_costs_text(&f->costs, out);
    tn_text_add(out, f->session ? "it will load\n" : "it will not load\n");
}

/* ---- JSON ---- */

static void put_string(tn_text *out, const char *key, const char *value) {
    tn_text_printf(out, "\"%s\": ", key);
    if (value)
        tn_text_json(out, value, strlen(value));
    else
        tn_text_add(out, "null");
    tn_text_add(out, ", ");
}

static void put_json_type(const tn_graph *g, tn_type type, tn_text *out) {
    static const char *const kinds[] = {"tensor", "sequence", "optional", "map"};
    char text[400];
    put_string(out, "type", tn_type_describe(g, type, text, sizeof text));
    tn_text_printf(out, "\"kind\": \"%s\"", type.id ? kinds[tn_type_kind(g, type)] : "unknown");
    if (!type.id || tn_type_kind(g, type) != TN_KIND_TENSOR)
        return;
    tn_text_printf(out, ", \"dtype\": \"%s\", \"shape\": ", tn_dtype_name(tn_type_dtype(g, type)));
    int rank = tn_type_rank(g, type);
    if (rank < 0) {
        tn_text_add(out, "null");
        return;
    }
    tn_text_add(out, "[");
    for (int k = 0; k < rank; k++) {
        int64_t size;
        tn_text_add(out, k ? ", " : "");
        if (tn_dim_is_const(g, tn_type_dims(g, type)[k], &size)) {
            tn_text_printf(out, "%" PRId64, size);
            continue;
        }
        tn_text dim;
        tn_text_init(&dim, NULL);
        tn_dim_print(&g->dims, tn_type_dims(g, type)[k], &dim);
        tn_text_json(out, dim.data ? dim.data : "?", dim.data ? dim.len : 1);
        tn_text_free(&dim);
    }
    tn_text_add(out, "]");
}

static void put_json_values(const inspection *f, tn_text *out) {
    for (int outputs = 0; outputs < 2; outputs++) {
        uint32_t n = outputs ? tn_model_output_count(f->model) : tn_model_input_count(f->model);
        tn_text_printf(out, ",\n \"%s\": [", outputs ? "outputs" : "inputs");
        for (uint32_t i = 0; i < n; i++) {
            tn_text_add(out, i ? ",\n  {" : "\n  {");
            put_string(out, "name", outputs ? tn_model_output_name(f->model, i) : tn_model_input_name(f->model, i));
            const tn_graph *g = f->graph;
            tn_type type = type_of(f, outputs, i, &g);
            const char *said = outputs ? declared(f, i, g, type) : NULL;
            put_json_type(g, type, out);
            if (said) {
                tn_text_add(out, ", \"declared\": ");
                tn_text_json(out, said, strlen(said));
            }
            if (is_sparse(f, outputs, i))
                tn_text_add(out, ", \"sparse\": true");
            if (!outputs)
                tn_text_printf(out, ", \"has_default\": %s",
                               tn_model_input_has_default(f->model, i) ? "true" : "false");
            tn_text_add(out, "}");
        }
        tn_text_add(out, "]");
    }
}

static void put_json_opsets(const tn_graph *g, tn_text *out) {
    size_t prefix = strlen(TN_META_OPSET);
    bool first = true;
    tn_text_add(out, "\"opsets\": {");
    for (uint32_t i = 0; i < g->metadata.len; i++) {
        const char *key = tn_strings_text(&g->strings, g->metadata.data[i].key);
        if (strncmp(key, TN_META_OPSET, prefix) != 0)
            continue;
        tn_text_add(out, first ? "" : ", ");
        tn_text_json(out, key + prefix, strlen(key + prefix));
        tn_text_printf(out, ": %s", tn_strings_text(&g->strings, g->metadata.data[i].value));
        first = false;
    }
    tn_text_add(out, "}");
}

static void put_json_graph(const inspection *f, tn_text *out) {
    const tn_graph *g = f->graph;
    tn_text_add(out, ",\n ");
    put_string(out, "producer", tn_graph_metadata(g, TN_META_PRODUCER));
    put_string(out, "producer_version", tn_graph_metadata(g, TN_META_PRODUCER_VERSION));
    put_string(out, "graph", tn_graph_metadata(g, TN_META_GRAPH_NAME));
    const char *ir_version = tn_graph_metadata(g, TN_META_IR_VERSION);
    tn_text_printf(out, "\"ir_version\": %s, ", ir_version && *ir_version ? ir_version : "null");
    put_json_opsets(g, out);
    put_json_values(f, out);
    tn_text_printf(out,
                   ",\n \"parameters\": {\"tensors\": %" PRIu64 ", \"elements\": %" PRIu64 ", \"bytes\": %" PRIu64
                   "},\n \"nodes\": %" PRIu64 ", \"functions\": %" PRIu32 ",\n \"operators\": [",
                   f->contents.parameters, f->contents.parameter_elements, f->contents.parameter_bytes,
                   f->contents.nodes, g->function.len);
    for (uint32_t i = 0; i < f->contents.ops.len; i++) {
        const tn_used_op *op = &f->contents.ops.data[i];
        tn_text_add(out, i ? ",\n  {\"domain\": " : "\n  {\"domain\": ");
        tn_text_json(out, op->domain, op->domain_length);
        tn_text_add(out, ", ");
        put_string(out, "name", op->name);
        tn_text_printf(out, "\"version\": %s, \"count\": %" PRIu64 "}", *op->version ? op->version : "null", op->count);
    }
    tn_text_add(out, "],\n \"blocks\": ");
    tn_cli_put_blocks_json(g, out);
    tn_text_add(out, ",\n \"not_supported\": [");
    const char *line = f->unsupported_count ? f->unsupported.data : "";
    for (size_t n; *line; line += n + (line[n] == '\n')) {
        n = strcspn(line, "\n");
        tn_text_add(out, line == f->unsupported.data ? "" : ", ");
        tn_text_json(out, line, n);
    }
    tn_text_add(out, "]");
    tn_session_report report;
    if (f->session && tn_session_describe(f->session, &report) == TN_OK)
        tn_text_printf(out, ",\n \"nodes_after\": %" PRIu32 ", \"kernels\": %" PRIu32, report.nodes, report.kernels);
    if (f->peak[0]) {
        tn_text_add(out, ",\n \"peak_activation_bytes\": ");
        if (f->peak_known)
            tn_text_printf(out, "%" PRIu64, f->peak_bytes);
        else
            tn_text_json(out, f->peak, strlen(f->peak));
    }
    if (f->session)
        tn_cli_costs_json(&f->costs, out);
}

static void put_json(const inspection *f, tn_text *out) {
    tn_text_add(out, "{");
    put_string(out, "model", f->options->args.data[0]);
    tn_text_printf(out, "\"loads\": %s,\n \"findings\": [", f->session ? "true" : "false");
    for (uint32_t i = 0; i < f->findings.len; i++) {
        const finding *x = &f->findings.data[i];
        bool error = strcmp(x->severity, "error") == 0;
        tn_text_add(out, i ? ",\n  {" : "\n  {");
        put_string(out, "severity", x->severity);
        if (error) {
            put_string(out, "where", f->error.where);
            put_string(out, "hint", f->error.hint);
        }
        tn_text_add(out, "\"message\": ");
        tn_text_json(out, x->text, x->length);
        tn_text_add(out, "}");
    }
    tn_text_add(out, "]");
    if (f->graph)
        put_json_graph(f, out);
    tn_text_add(out, "}\n");
}

/* ---- --ops ---- */

/* A line "domain;version;operator" for each operator used. */
static tn_status write_ops(const inspection *f) {
    tn_text lines;
    tn_text_init(&lines, NULL);
    for (uint32_t i = 0; i < f->contents.ops.len; i++) {
        const tn_used_op *op = &f->contents.ops.data[i];
        tn_text_bytes(&lines, op->domain, op->domain_length);
        tn_text_printf(&lines, ";%s;%s\n", op->version, op->name);
    }
    tn_cli_interrupt_hold();
    tn_status status =
        lines.failed ? TN_ERR_MEMORY : tn_file_write(f->options->ops, lines.data ? lines.data : "", lines.len);
    tn_cli_interrupt_release();
    tn_text_free(&lines);
    return status;
}

tn_status tn_cli_info(const tn_cli_options *options) {
    inspection f = {.options = options};
    tn_text_init(&f.unsupported, NULL);
    tn_text out;
    tn_text_init(&out, NULL);
    tn_status status = inspect(&f);
    if (status == TN_OK && options->ops && f.graph)
        status = write_ops(&f);
    if (status == TN_OK && options->json)
        put_json(&f, &out);
    else if (status == TN_OK && !options->quiet)
        put_text(&f, &out);
    if (status == TN_OK)
        status = tn_cli_put(&out);
    if (status == TN_OK && f.status != TN_OK)
        status = tn_error_restore(&f.error);
    tn_text_free(&out);
    tn_text_free(&f.unsupported);
    tn_vec_free(NULL, &f.findings);
    tn_contents_free(&f.contents);
    tn_session_destroy(f.session);
    tn_model_destroy(f.model);
    return status;
}
