/* tenon run: feeds a model, prints or writes what comes out. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "base/os.h"
#include "cli/cli.h"
#include "cli/inputs.h"
#include "cli/npy.h"
#include "cli/print.h"
#include "onnx/tensor_file.h"

typedef struct running {
    const tn_cli_options *options;
    tn_model *model;
    tn_session *session;
    tn_cli_feeds in;
    uint32_t outputs;
    const char **name; /* of what is asked for */
    tn_object **out;
    char **files; /* where each output was written; NULL: nowhere */
    double load_ms, create_ms, run_ms;
} running;

/* Outputs from `first` to `end`. */
static tn_status run_session(running *r, uint32_t first, uint32_t end) {
    tn_binding *bindings = tn_alloc_array(NULL, r->in.count + 1u, sizeof *bindings);
    tn_output *outputs = tn_alloc_array(NULL, (size_t)r->outputs + 1, sizeof *outputs);
    tn_status status = bindings && outputs ? TN_OK : TN_ERR_MEMORY;
    if (status == TN_OK) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < r->in.count; i++)
            if (r->in.object[i])
                bindings[n++] = (tn_binding){.name = tn_cli_feed_name(r->model, &r->in, i), .object = r->in.object[i]};
        for (uint32_t i = first; i < end; i++)
            outputs[i - first] = (tn_output){.name = r->name[i], .object = &r->out[i]};
        status = tn_session_run(r->session, n, bindings, end - first, outputs);
    }
    tn_free(NULL, bindings);
    tn_free(NULL, outputs);
    return status;
}

/* Whether a name of a model can be a file's: no folder, no control character, nothing hidden, not too long. */
static bool is_file_name(const char *name) {
    size_t n = strlen(name);
    if (n == 0 || n > 200 || *name == '.' || *name == '-')
        return false;
    for (size_t i = 0; i < n; i++)
        if (name[i] == '/' || name[i] == '\\' || (unsigned char)name[i] < 0x20 || name[i] == 0x7f)
            return false;
    return true;
}

/* By output: whether its file has its name. It has not where that is no file's name, or another's, or the number of one that has none. */
static bool *own_names(const running *r, bool pb) {
    bool *good = tn_alloc_array(NULL, r->outputs + 1u, sizeof *good);
    for (uint32_t i = 0; i < r->outputs && good; i++) {
        good[i] = !pb && is_file_name(r->name[i]);
        for (uint32_t k = 0; k < r->outputs && good[i]; k++)
            good[i] = k == i || strcmp(r->name[i], r->name[k]) != 0;
    }
    for (bool changed = true; changed && good;) {
        changed = false;
        for (uint32_t k = 0; k < r->outputs; k++) {
            char number[32];
            snprintf(number, sizeof number, "output_%" PRIu32, k);
            for (uint32_t i = 0; i < r->outputs && !good[k]; i++)
                if (good[i] && strcmp(r->name[i], number) == 0) {
                    good[i] = false;
                    changed = true;
                }
        }
    }
    return good;
}

static tn_status name_files(running *r, bool pb) {
    bool *good = own_names(r, pb);
    if (!good)
        return TN_ERR_MEMORY;
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < r->outputs && status == TN_OK; i++) {
        const char *name = r->name[i];
        tn_text path;
        tn_text_init(&path, NULL);
        if (good[i])
            tn_text_printf(&path, "%s/%s.npy", r->options->output_dir, name);
        else
            tn_text_printf(&path, "%s/output_%" PRIu32 ".%s", r->options->output_dir, i, pb ? "pb" : "npy");
        if (path.failed) {
            tn_text_free(&path);
            status = TN_ERR_MEMORY;
            break;
        }
        r->files[i] = path.data;
        if (!pb && tn_object_kind(r->out[i]) != TN_KIND_TENSOR) {
            status = tn_fail(TN_ERR_UNSUPPORTED, "output '%s' is no tensor: .npy files hold tensors alone", name);
            tn_fail_hint("write it with --format pb");
        }
    }
    tn_free(NULL, good);
    return status;
}

static tn_status write_pb(const char *path, const tn_object *object, const char *name) {
    tn_text bytes;
    tn_text_init(&bytes, NULL);
    tn_status status = tn_onnx_write_object(&bytes, object, name);
    if (status == TN_OK && bytes.failed)
        status = TN_ERR_MEMORY;
    if (status == TN_OK)
        status = tn_file_write(path, bytes.data ? bytes.data : "", bytes.len);
    tn_text_free(&bytes);
    return status;
}

static tn_status write_outputs(running *r) {
    bool pb = r->options->format && strcmp(r->options->format, "pb") == 0;
    TN_TRY(name_files(r, pb));
    TN_TRY(tn_folder_make(r->options->output_dir));
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < r->outputs && status == TN_OK; i++) {
        tn_cli_interrupt_hold();
        status = pb ? write_pb(r->files[i], r->out[i], r->name[i])
                    : tn_npy_write_file(r->files[i], tn_object_tensor(r->out[i]));
        tn_cli_interrupt_release();
        if (status != TN_OK)
            tn_fail_where("output '%s'", r->name[i]);
    }
    return status;
}

static void put_ms(tn_text *out, const char *label, double ms) {
    char number[TN_NUMBER_TEXT];
    tn_format_f64_digits(ms, 4, number);
    tn_text_printf(out, "%s%s ms", label, number);
}

static void put_json_ms(tn_text *out, const char *key, double ms) {
    tn_text_printf(out, "\"%s\": ", key);
    tn_cli_json_f64(out, ms);
    tn_text_add(out, ", ");
}

static void print_json(const running *r, tn_text *out) {
    tn_text_add(out, "{\"model\": ");
    tn_text_json(out, r->options->args.data[0], strlen(r->options->args.data[0]));
    tn_text_add(out, ",\n \"outputs\": [");
    for (uint32_t i = 0; i < r->outputs; i++) {
        tn_text_add(out, i ? ",\n  " : "\n  ");
        tn_cli_print_json(out, r->name[i], r->files[i], r->out[i]);
    }
    tn_text_add(out, "],\n ");
    put_json_ms(out, "load_ms", r->load_ms);
    put_json_ms(out, "create_ms", r->create_ms);
    put_json_ms(out, "run_ms", r->run_ms);
    tn_text_printf(out, "\"heap_peak_bytes\": %zu, \"peak_rss_bytes\": %zu}\n", tn_heap_peak(tn_heap_default()),
                   tn_peak_rss_bytes());
}

static void print_text(const running *r, tn_text *out) {
    for (uint32_t i = 0; i < r->outputs && !r->options->quiet; i++) {
        tn_cli_print_object(out, r->name[i], r->out[i]);
        if (r->files[i])
            tn_text_printf(out, "  written to %s\n", r->files[i]);
    }
    if (!r->options->verbose)
        return;
    put_ms(out, "time: load ", r->load_ms);
    put_ms(out, ", create ", r->create_ms);
    put_ms(out, ", run ", r->run_ms);
    tn_session_report report;
    tn_text_printf(out, "\nmemory: heap peak %zu bytes, resident peak %zu bytes\n", tn_heap_peak(tn_heap_default()),
                   tn_peak_rss_bytes());
    if (tn_session_describe(r->session, &report) == TN_OK)
        tn_text_printf(
            out, "plan: %" PRIu32 " nodes, %" PRIu32 " kernels, weights %" PRIu64 " bytes, arena %" PRIu64 " bytes\n",
            report.nodes, report.kernels, report.weight_bytes, report.arena_bytes);
}

static tn_status run_all(running *r) {
    double start = tn_clock();
    const char *folder = r->options->output_dir;
    if (folder && tn_path_kind_of(folder) != TN_PATH_NONE) /* said before the model is run */
        TN_TRY(tn_folder_make(folder));
    r->model = tn_cli_load(r->options, r->options->args.data[0]);
    if (!r->model)
        return tn_error_status();
    r->load_ms = 1e3 * (tn_clock() - start);
    const tn_cli_list *fetch = &r->options->fetch;
    const tn_cli_list *tap = &r->options->tap;
    uint32_t asked = fetch->len ? fetch->len : tn_model_output_count(r->model), outputs = asked + tap->len;
    r->name = tn_alloc_array(NULL, outputs + 1u, sizeof *r->name);
    r->out = tn_alloc_array(NULL, outputs + 1u, sizeof(tn_object *));
    r->files = tn_alloc_array(NULL, outputs + 1u, sizeof(char *));
    if (!r->name || !r->out || !r->files)
        return TN_ERR_MEMORY;
    r->outputs = outputs;
    for (uint32_t i = 0; i < asked; i++)
        r->name[i] = fetch->len ? fetch->data[i] : tn_model_output_name(r->model, i);
    for (uint32_t i = asked; i < outputs; i++)
        r->name[i] = tap->data[i - asked];
    TN_TRY(tn_cli_read_inputs(r->options, r->model, &r->in));
    start = tn_clock();
    r->session = tn_cli_session(r->options, r->model, 0, TN_CLI_COMPUTE);
    if (!r->session)
        return tn_error_status();
    r->create_ms = 1e3 * (tn_clock() - start);
    start = tn_clock();
    TN_TRY(run_session(r, 0, asked));
    r->run_ms = 1e3 * (tn_clock() - start);
    /* by a plan of their own: a value inside of a kernel is computed once more, and what was run is what runs without them */
    if (tap->len)
        TN_TRY(run_session(r, asked, outputs));
    if (r->options->output_dir)
        TN_TRY(write_outputs(r));
    tn_text text;
    tn_text_init(&text, NULL);
    if (r->options->json)
        print_json(r, &text);
    else
        print_text(r, &text);
    tn_status status = tn_cli_put(&text);
    tn_text_free(&text);
    return status;
}

tn_status tn_cli_run(const tn_cli_options *options) {
    if (options->format && !options->output_dir) {
        tn_fail(TN_ERR_USAGE, "--format says how files are written, but there is no --output-dir");
        return TN_ERR_USAGE;
    }
    running r = {.options = options};
    tn_status status = run_all(&r);
    tn_cli_feeds_free(&r.in);
    for (uint32_t i = 0; r.out && i < r.outputs; i++)
        tn_object_destroy(r.out[i]);
    for (uint32_t i = 0; r.files && i < r.outputs; i++)
        tn_free(NULL, r.files[i]);
    tn_free(NULL, r.name);
    tn_free(NULL, r.out);
    tn_free(NULL, r.files);
    tn_session_destroy(r.session);
    tn_model_destroy(r.model);
    if (status != TN_OK)
        tn_cli_say_needed(options, 0, 1);
    return status;
}
