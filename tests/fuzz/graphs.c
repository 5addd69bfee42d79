/* Whether graphs hold: `graphs-driver SEED FOLDER SEED FOLDER ...`. Each folder has model.onnx and test_data_set_0; each runs in a process of its own, on
   the reference and compiled at every level. What does not hold is told of, cut down. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tenon/tenon.h>

#include "interp/interp.h"
#include "onnx/model.h"
#include "support/model_runs.h"
#include "support/random_run.h"

enum {
    HOLDS = 0,
    REFUSED = 20,
    FAILS = 21,
    SECONDS = 300,
    MOST_BYTES = 256 << 20
}; /* what a process exits with: sanitizers take 1 */

/* What is refused before it runs has no result in a run that knows all sizes and computes every value either. */
static bool refused_rightly(const char *folder, const tn_graph *g, tn_object *const *in) {
    char text[2000];
    uint32_t n = tn_graph_input_count(g), m = 0, room = 0;
    tn_region main_region = tn_graph_region(g);
    snprintf(text, sizeof text, "%s", tn_error_message());
    bool ok = tn_error_status() != TN_ERR_INTERNAL;
    for (tn_node node = tn_region_first(g, main_region); node.id; node = tn_node_next(g, node))
        room += tn_node_output_count(g, node);
    tn_value values[RUN_MAX], *wanted = malloc((room + 1) * sizeof *wanted);
    tn_object **out = calloc(room + 1, sizeof *out);
    if (!wanted || !out)
        abort();
    for (uint32_t i = 0; i < n; i++)
        values[i] = tn_graph_input(g, i);
    for (tn_node node = tn_region_first(g, main_region); node.id; node = tn_node_next(g, node))
        for (uint32_t i = 0; i < tn_node_output_count(g, node); i++)
            wanted[m++] = tn_node_output(g, node, i);
    if (tn_interp_run(g, &(tn_interp_options){.max_bytes = MOST_BYTES}, n, values, in, m, wanted, out) == TN_OK)
        ok = false;
    for (uint32_t i = 0; i < m; i++)
        tn_object_destroy(out[i]);
    free(wanted);
    free(out);
    if (!ok)
        fprintf(stderr, "%s: refused before it runs, but a run answers: %s\n", folder, text);
    return ok;
}

static int run_folder(const char *folder, uint64_t seed) {
    char path[4096];
    snprintf(path, sizeof path, "%s/model.onnx", folder);
    tn_model *model = tn_model_load(path, NULL);
    if (!model) {
        if (tn_error_status() != TN_ERR_INTERNAL && *tn_error_message())
            return REFUSED;
        fprintf(stderr, "%s: %s\n", folder, tn_error_message());
        return FAILS;
    }
    run_inputs in;
    tn_object *objects[RUN_MAX];
    if (!run_inputs_read(model, folder, 0, &in) || in.count != tn_model_input_count(model)) {
        fprintf(stderr, "%s: not all inputs are there\n", folder);
        return FAILS;
    }
    for (uint32_t i = 0; i < in.count; i++)
        objects[i] = in.binding[i].object;
    /* as both back ends have it: an operator may be expanded otherwise where more is known of sizes */
    tn_graph *graph = tn_graph_clone(tn_model_graph(model), NULL, NULL);
    int result = graph ? HOLDS : FAILS;
    if (graph && tn_onnx_expand(graph, 0) != TN_OK)
        result = refused_rightly(folder, tn_model_graph(model), objects) ? REFUSED : FAILS;
    random_options options = {.seed = seed, .unread = true};
    random_failure failure;
    if (result == HOLDS && !random_holds(graph, objects, &options, &failure)) {
        result = FAILS;
        fprintf(stderr, "%s: %s\n", folder, failure.text);
        options.thorough = true;
        random_print_small(graph, objects, &options);
    }
    if (result == HOLDS && failure.refused)
        result = REFUSED;
    tn_graph_destroy(graph);
    run_inputs_free(&in);
    tn_model_destroy(model);
    return result;
}

int main(int argc, char **argv) {
    int hold = 0, refused = 0, fail = 0;
    for (int i = 2; i < argc; i += 2) {
        pid_t child = fork();
        if (child < 0)
            return 2;
        if (child == 0) {
#ifndef __SANITIZE_ADDRESS__
            struct rlimit limit = {(rlim_t)4 << 30, (rlim_t)4 << 30};
            if (setrlimit(RLIMIT_AS, &limit) != 0)
                return 2;
#endif
            alarm(SECONDS);
            exit(run_folder(argv[i], strtoull(argv[i - 1], NULL, 10)));
        }
        int status;
        while (waitpid(child, &status, 0) < 0 && errno == EINTR)
            continue;
        bool exited = WIFEXITED(status);
        if (!exited && WTERMSIG(status) == SIGALRM)
            fprintf(stderr, "%s: no answer in %d s\n", argv[i], SECONDS);
        else if (!exited)
            fprintf(stderr, "%s: signal %d\n", argv[i], WTERMSIG(status));
        else if (WEXITSTATUS(status) != HOLDS && WEXITSTATUS(status) != REFUSED && WEXITSTATUS(status) != FAILS)
            fprintf(stderr, "%s: exit %d\n", argv[i], WEXITSTATUS(status));
        hold += exited && WEXITSTATUS(status) == HOLDS;
        refused += exited && WEXITSTATUS(status) == REFUSED;
        fail += !exited || (WEXITSTATUS(status) != HOLDS && WEXITSTATUS(status) != REFUSED);
    }
    printf("%d hold, %d are refused by all, %d fail\n", hold, refused, fail);
    return fail != 0;
}
