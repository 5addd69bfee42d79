/* One test folder: loads the model, runs its data sets in order in one session, judges. */
#include "cli/test_folder.h"

#include <inttypes.h>
#include <string.h>

#include "base/number.h"
#include "cli/case_json.h"
#include "cli/cli.h"
#include "cli/inputs.h"
#include "cli/judge.h"
#include "onnx/tensor_file.h"

typedef struct state {
    const tn_cli_options *options;
    const tn_test *test;
    tn_case rule;
    tn_model *model;
    tn_session *session;
    uint32_t inputs, outputs;
    tn_object **in, **out; /* of the data set being run */
    bool *random;          /* by output; folders without case.json */
    tn_test_result *result;
    tn_text *why;
} state;

/* A verdict "no": the thread's error is TN_ERR_FAILED without text, the reason is in `why`. */
static tn_status differs(void) {
    return tn_fail(TN_ERR_FAILED, "it differs");
}

static tn_kind kind_of(const state *s, tn_type type) {
    return type.id ? tn_type_kind(tn_model_graph(s->model), type) : TN_KIND_TENSOR;
}

static void clear(const state *s) {
    for (uint32_t i = 0; s->in && i < s->inputs; i++) {
        tn_object_destroy(s->in[i]);
        s->in[i] = NULL;
    }
    for (uint32_t i = 0; s->out && i < s->outputs; i++) {
        tn_object_destroy(s->out[i]);
        s->out[i] = NULL;
    }
}

static tn_status prepare(state *s, int threads) {
    double start = tn_clock();
    s->model = tn_cli_load(s->options, s->test->model);
    if (s->model)
        s->session = tn_cli_session(s->options, s->model, threads, TN_CLI_COMPUTE);
    s->result->ms += 1e3 * (tn_clock() - start);
    if (!s->session)
        return tn_error_status();
    s->inputs = tn_model_input_count(s->model);
    s->outputs = tn_model_output_count(s->model);
    s->in = tn_alloc_array(NULL, (size_t)s->inputs + 1, sizeof *s->in);
    s->out = tn_alloc_array(NULL, (size_t)s->outputs + 1, sizeof *s->out);
    s->random = tn_alloc_array(NULL, (size_t)s->outputs + 1, sizeof *s->random);
    if (!s->in || !s->out || !s->random)
        return TN_ERR_MEMORY;
    return s->rule.present && !s->test->light ? TN_OK : tn_random_outputs(tn_model_graph(s->model), s->random);
}

static tn_status run(state *s) {
    tn_binding *bindings = tn_alloc_array(NULL, (size_t)s->inputs + 1, sizeof *bindings);
    tn_output *outputs = tn_alloc_array(NULL, (size_t)s->outputs + 1, sizeof *outputs);
    tn_status status = bindings && outputs ? TN_OK : TN_ERR_MEMORY;
    if (status == TN_OK) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < s->inputs; i++)
            if (s->in[i])
                bindings[n++] = (tn_binding){.name = tn_model_input_name(s->model, i), .object = s->in[i]};
        for (uint32_t i = 0; i < s->outputs; i++)
            outputs[i] = (tn_output){.name = tn_model_output_name(s->model, i), .object = &s->out[i]};
        double start = tn_clock();
        status = tn_session_run(s->session, n, bindings, s->outputs, outputs);
        s->result->ms += 1e3 * (tn_clock() - start);
    }
    tn_free(NULL, bindings);
    tn_free(NULL, outputs);
    return status;
}

/* Compares one output with a file; `label` stands before the reason. */
static tn_status judge_file(state *s, uint32_t output, const char *path, const char *label) {
    tn_value value = tn_graph_output(tn_model_graph(s->model), output);
    tn_type type = tn_value_type(tn_model_graph(s->model), value);
    const tn_object *got = s->out[output];
    tn_object *want = tn_onnx_read_object_file(NULL, path, type.id ? kind_of(s, type) : tn_object_kind(got));
    if (!want)
        return tn_error_status();
    bool random = s->random[output];
    tn_judge rule = {s->rule.rtol, s->rule.atol, random || tn_case_shape_only(&s->rule, output)};
    tn_text reason;
    tn_text_init(&reason, NULL);
    s->result->random |= random;
    bool same = tn_judge_objects(&rule, want, got, &reason);
    if (!same) {
        tn_text_printf(s->why, "%s output %" PRIu32 " ", label, output);
        tn_cli_name(s->why, tn_model_output_name(s->model, output));
        tn_text_printf(s->why, " %s", reason.data ? reason.data : "out of memory");
    }
    tn_text_free(&reason);
    tn_object_destroy(want);
    return same ? TN_OK : differs();
}

static tn_status wrong_count(state *s, const char *label, size_t wanted) {
    tn_text_printf(s->why, "%s %zu outputs are expected, the model has %" PRIu32, label, wanted, s->outputs);
    return differs();
}

/* ---- data sets ---- */

static void free_names(char **names, size_t count) {
    for (size_t i = 0; names && i < count; i++)
        tn_free(NULL, names[i]);
    tn_free(NULL, names);
}

static tn_status read_input(state *s, const char *folder, const char *name) {
    int64_t index = tn_cli_file_index(name, "input_");
    tn_text path;
    tn_text_init(&path, NULL);
    tn_text_printf(&path, "%s/%s", folder, name);
    tn_status status = path.failed ? TN_ERR_MEMORY : TN_OK;
    if (status == TN_OK && index >= s->inputs)
        status =
            tn_fail(TN_ERR_INPUT, "%s feeds input %" PRId64 ", but the model has %" PRIu32, name, index, s->inputs);
    else if (status == TN_OK && !s->in[index]) {
        s->in[index] =
            tn_onnx_read_object_file(NULL, path.data, kind_of(s, tn_model_input_type(s->model, (uint32_t)index)));
        status = s->in[index] ? TN_OK : tn_error_status();
    }
    tn_text_free(&path);
    return status;
}

static tn_status judge_outputs(state *s, const char *folder, const char *label, char **names, size_t count) {
    size_t expected = 0;
    for (size_t i = 0; i < count; i++)
        expected += tn_cli_file_index(names[i], "output_") >= 0;
    if (expected != s->outputs)
        return wrong_count(s, label, expected);
    tn_status status = TN_OK;
    for (size_t i = 0; i < count && status == TN_OK; i++) {
        int64_t index = tn_cli_file_index(names[i], "output_");
        if (index < 0)
            continue;
        if (index >= s->outputs)
            return wrong_count(s, label, (size_t)index + 1);
        tn_text path;
        tn_text_init(&path, NULL);
        tn_text_printf(&path, "%s/%s", folder, names[i]);
        status = path.failed ? TN_ERR_MEMORY : judge_file(s, (uint32_t)index, path.data, label);
        tn_text_free(&path);
    }
    return status;
}

static tn_status run_data_set(state *s, const char *label) {
    char **names = NULL;
    size_t count = 0;
    tn_text folder;
    tn_text_init(&folder, NULL);
    tn_text_printf(&folder, "%s/%s", s->test->folder, label);
    tn_status status = folder.failed ? TN_ERR_MEMORY : tn_folder_list(NULL, folder.data, &names, &count);
    for (size_t i = 0; i < count && status == TN_OK; i++)
        if (tn_cli_file_index(names[i], "input_") >= 0)
            status = read_input(s, folder.data, names[i]);
    if (status == TN_OK)
        status = run(s);
    if (status == TN_OK && !s->rule.expect_error)
        status = judge_outputs(s, folder.data, label, names, count);
    if (status != TN_OK && status != TN_ERR_FAILED)
        tn_fail_where("%s", label);
    clear(s);
    free_names(names, count);
    tn_text_free(&folder);
    s->result->data_sets++;
    return status;
}

/* The number of "test_data_set_N", or -1. */
static int64_t data_set_number(const char *name) {
    static const char prefix[] = "test_data_set_";
    int64_t number;
    size_t n = sizeof prefix - 1, used;
    if (strncmp(name, prefix, n) != 0 || name[n] < '0' || name[n] > '9' ||
        !tn_parse_i64(name + n, strlen(name + n), &number, &used) || name[n + used])
        return -1;
    return number;
}

static tn_status run_data_sets(state *s) {
    char **names;
    size_t count;
    TN_TRY(tn_folder_list(NULL, s->test->folder, &names, &count));
    tn_status status = TN_OK;
    for (int64_t last = -1; status == TN_OK;) { /* by number: set 10 follows set 9 */
        size_t next = count;
        int64_t least = INT64_MAX;
        for (size_t i = 0; i < count; i++) {
            int64_t number = data_set_number(names[i]);
            if (number > last && number < least) {
                least = number;
                next = i;
            }
        }
        if (next == count)
            break;
        last = least;
        status = run_data_set(s, names[next]);
    }
    free_names(names, count);
    return status;
}

/* ---- light models: input arange(n) / n, output beside the model ---- */

static tn_status make_light_inputs(state *s) {
    const tn_graph *g = tn_model_graph(s->model);
    for (uint32_t i = 0; i < s->inputs; i++) {
        tn_type type = tn_model_input_type(s->model, i);
        int64_t dims[TN_MAX_RANK];
        int open;
        if (tn_model_input_has_default(s->model, i))
            continue;
        if (kind_of(s, type) != TN_KIND_TENSOR || tn_type_rank(g, type) < 0)
            return tn_fail(TN_ERR_UNSUPPORTED, "not supported: a light model whose input has no shape");
        TN_TRY(tn_cli_input_dims(s->options, s->model, NULL, type, 1, dims, &open));
        tn_tensor *t = tn_tensor_create(tn_type_dtype(g, type), tn_type_rank(g, type), dims);
        if (!t)
            return tn_error_status();
        for (int64_t k = 0; k < t->count; k++)
            tn_store_f64((tn_dtype)t->dtype, t->data, k, (double)k / (double)t->count);
        s->in[i] = tn_tensor_object(t);
    }
    return TN_OK;
}

static tn_status run_light(state *s) {
    tn_status status = make_light_inputs(s);
    if (status == TN_OK)
        status = run(s);
    size_t stem = strlen(s->test->model) - strlen(".onnx");
    uint32_t expected = 0;
    tn_text path;
    tn_text_init(&path, NULL);
    for (; status == TN_OK; expected++) {
        path.len = 0;
        tn_text_bytes(&path, s->test->model, stem);
        tn_text_printf(&path, "_output_%" PRIu32 ".pb", expected);
        if (path.failed)
            status = TN_ERR_MEMORY;
        else if (tn_path_kind_of(path.data) == TN_PATH_NONE)
            break;
        else
            status = expected < s->outputs ? judge_file(s, expected, path.data, "light")
                                           : wrong_count(s, "light", expected + 1);
    }
    if (status == TN_OK && expected != s->outputs)
        status = wrong_count(s, "light", expected);
    tn_text_free(&path);
    clear(s);
    s->result->data_sets++;
    return status;
}

/* ---- the verdict ---- */

/* The thread's error on one line. */
static void put_error(tn_text *out) {
    tn_text_add(out, tn_error_what());
    const char *where = tn_error_where();
    for (const char *line = where; *line;) {
        size_t n = strcspn(line, "\n");
        tn_text_add(out, line == where ? " (" : "; ");
        tn_text_bytes(out, line, n);
        line += n + (line[n] == '\n');
    }
    tn_text_add(out, *where ? ")" : "");
}

static tn_status judge_error(state *s, tn_status status) {
    if (status == TN_OK) {
        tn_text_add(s->why, "an error was expected, but everything ran");
        return differs();
    }
    int code = tn_cli_exit_code(status);
    if (code < 3 || code > 6) {
        tn_text_printf(s->why, "an error of the model or input was expected, got '%s': ", tn_status_name(status));
        put_error(s->why);
        return differs();
    }
    const char *missing = tn_case_not_mentioned(&s->rule, tn_error_message());
    if (!missing)
        return TN_OK;
    tn_text_printf(s->why, "the error does not mention '%s': ", missing);
    put_error(s->why);
    return differs();
}

static tn_status judge_limits(state *s) {
    double growth_mb = s->result->rss_growth / 1e6;
    if (s->rule.max_ms > 0 && s->result->ms > s->rule.max_ms) {
        tn_text_printf(s->why, "it took %" PRId64 " ms, more than %" PRId64, (int64_t)s->result->ms,
                       (int64_t)s->rule.max_ms);
        return differs();
    }
    if (s->rule.max_rss_mb > 0 && growth_mb > s->rule.max_rss_mb) {
        tn_text_printf(s->why, "resident memory grew by %" PRId64 " MB, more than %" PRId64, (int64_t)growth_mb,
                       (int64_t)s->rule.max_rss_mb);
        return differs();
    }
    return TN_OK;
}

void tn_test_folder(const tn_cli_options *options, const tn_test *test, int threads, tn_test_result *result,
                    tn_text *why) {
    tn_cli_options quiet = *options;
    quiet.quiet = true; /* what models print is no part of the report */
    state s = {.options = &quiet, .test = test, .result = result, .why = why};
    size_t before = tn_rss_bytes();
    *result = (tn_test_result){.outcome = TN_TEST_FAILED};
    tn_status status = tn_case_read(test->folder, test->light ? "data.json" : "case.json", &s.rule);
    if (status == TN_OK) {
        status = prepare(&s, threads);
        if (status == TN_OK)
            status = test->light ? run_light(&s) : run_data_sets(&s);
        size_t peak = tn_peak_rss_bytes();
        result->rss_growth = peak > before ? (double)(peak - before) : 0;
        if (s.rule.expect_error)
            status = judge_error(&s, status);
        if (status == TN_OK && options->limits)
            status = judge_limits(&s);
    }
    if (status == TN_OK)
        result->outcome = TN_TEST_PASSED;
    else if (!why->len)
        put_error(why);
    result->unsupported = status == TN_ERR_UNSUPPORTED;
    clear(&s);
    tn_free(NULL, s.in);
    tn_free(NULL, s.out);
    tn_free(NULL, s.random);
    tn_session_destroy(s.session);
    tn_model_destroy(s.model);
    tn_case_free(&s.rule);
}
