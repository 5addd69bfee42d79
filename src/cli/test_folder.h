/* One test folder: a model, its data sets, the verdict. */
#ifndef TN_CLI_TEST_FOLDER_H
#define TN_CLI_TEST_FOLDER_H

#include "base/buffer.h"
#include "cli/options.h"

typedef enum tn_test_outcome { TN_TEST_PASSED, TN_TEST_FAILED, TN_TEST_SKIPPED } tn_test_outcome;

typedef struct tn_test {
    char *folder;
    char *model; /* path */
    bool light;  /* judged by data.json and the output beside the model */
} tn_test;

typedef struct tn_test_result {
    tn_test_outcome outcome;
    bool unsupported;      /* failed for want of support */
    bool random;           /* some outputs were judged by shape and dtype: they are random */
    uint32_t data_sets;    /* judged */
    double ms, rss_growth; /* load and all runs; bytes */
} tn_test_result;

/* Runs it all in this process; `why` receives the reason of a failure, on one line. */
void tn_test_folder(const tn_cli_options *options, const tn_test *test, int threads, tn_test_result *result,
                    tn_text *why);

/* random_outputs.c: sets random[i] (by output of the graph) where a random operator of the graph reaches output i. */
struct tn_graph;
tn_status tn_random_outputs(const struct tn_graph *graph, bool *random);

#endif
