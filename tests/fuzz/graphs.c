/* Whether graphs hold: `graphs-driver SEED FOLDER SEED FOLDER ...`. Each folder has model.onnx and test_data_set_0; each runs in a process of its own, on
   the reference and compiled at every level. What does not hold is told of, cut down. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tenon/tenon.h>

#include "support/model_runs.h"
#include "support/random_run.h"

enum { HOLDS = 0, REFUSED = 20, FAILS = 21, SECONDS = 300 }; /* what a process exits with: sanitizers take 1 */

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
    random_options options = {.seed = seed};
    random_failure failure;
    bool ok = random_holds(tn_model_graph(model), objects, &options, &failure);
    if (!ok) {
        fprintf(stderr, "%s: %s\n", folder, failure.text);
        options.thorough = true;
        random_print_small(tn_model_graph(model), objects, &options);
    }
    int result = !ok ? FAILS : failure.refused ? REFUSED : HOLDS;
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
