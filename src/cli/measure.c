/* After a limit on memory was met: what the command needs, found by a run that takes memory but computes nothing. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/os.h"
#include "cli/cli.h"
#include "cli/inputs.h"

typedef struct measuring {
    const tn_cli_options *options; /* with a heap of their own */
    tn_model *model;
    tn_session *session;
    tn_cli_feeds feeds;
    tn_binding *binding;
    tn_output *output;
    tn_object **result;
    uint32_t outputs;
    uint64_t needed;
    bool all; /* of what is needed */
} measuring;

/* In the order of `run` and `bench`. TN_ERR_LIMIT with the largest values, and the session measured: it went well. */
static tn_status measure(measuring *m, int threads, uint32_t runs) {
    const tn_cli_options *o = m->options;
    if (!(m->model = tn_cli_load(o, o->args.data[0])))
        return tn_error_status();
    TN_TRY(tn_cli_read_inputs(o, m->model, &m->feeds));
    if (!(m->session = tn_cli_session(o, m->model, threads, TN_CLI_MEASURE)))
        return tn_error_status();
    uint64_t bytes;
    char formula[8];
    if (runs > 1) /* as bench does */
        tn_session_peak(m->session, &bytes, formula, sizeof formula);
    const tn_cli_list *fetch = &o->fetch;
    m->outputs = fetch->len ? fetch->len : tn_model_output_count(m->model);
    m->binding = tn_alloc_array(NULL, m->feeds.count + 1u, sizeof *m->binding);
    m->output = tn_alloc_array(NULL, m->outputs + 1u, sizeof *m->output);
    m->result = tn_alloc_array(NULL, m->outputs + 1u, sizeof *m->result);
    if (!m->binding || !m->output || !m->result)
        return TN_ERR_MEMORY;
    uint32_t inputs = 0;
    for (uint32_t i = 0; i < m->feeds.count; i++)
        if (m->feeds.object[i])
            m->binding[inputs++] =
                (tn_binding){.name = tn_cli_feed_name(m->model, &m->feeds, i), .object = m->feeds.object[i]};
    for (uint32_t i = 0; i < m->outputs; i++)
        m->output[i] = (tn_output){.name = fetch->len ? fetch->data[i] : tn_model_output_name(m->model, i),
                                   .object = &m->result[i]};
    tn_status status = TN_ERR_LIMIT;
    m->all = true;
    for (uint32_t i = 0; i < runs && m->all; i++) {
        if (i) /* it is not what the run before needed for its message */
            tn_heap_reset_peak(o->heap);
        status = tn_session_run(m->session, inputs, m->binding, m->outputs, m->output);
        m->all = tn_session_measured(m->session, &bytes);
        m->needed = bytes > m->needed ? bytes : m->needed;
    }
    return status;
}

void tn_cli_say_needed(const tn_cli_options *options, int threads, uint32_t runs) {
    tn_error_record first, last;
    tn_error_save(&first);
    if (first.status != TN_ERR_LIMIT || !options->memory || !strstr(first.what, "memory limit"))
        return;
    tn_cli_options free = *options;
    free.quiet = true;
    free.verbose = false;
    free.dump = NULL;
    free.heap = tn_heap_create(NULL);
    if (!free.heap) {
        tn_error_restore(&first);
        return;
    }
    tn_heap_set_limit(free.heap, tn_memory_bytes());
    measuring m = {.options = &free};
    tn_status status = measure(&m, threads, runs);
    tn_error_save(&last);
    tn_cli_feeds_free(&m.feeds);
    tn_free(NULL, m.binding);
    tn_free(NULL, m.output);
    tn_free(NULL, m.result);
    tn_session_destroy(m.session);
    tn_model_destroy(m.model);
    tn_heap_destroy(free.heap);
    if (status != TN_ERR_LIMIT || !strstr(last.where, "the largest") || m.needed <= options->memory) {
        tn_error_restore(&first);
        return;
    }
    snprintf(last.what, sizeof last.what, "%s%" PRIu64 " bytes are needed, the memory limit is %" PRIu64,
             m.all ? "" : "at least ", m.needed, options->memory);
    snprintf(last.hint, sizeof last.hint,
             m.all ? "--memory %" PRIu64 : "raise --memory above %" PRIu64 ": data decides how far", m.needed);
    tn_error_restore(&last);
}
