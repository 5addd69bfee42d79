/* Runs a model in turns with others, for bench/compare: a process of its own for each system.

       bench_worker MODEL THREADS OUTPUTS [NAME DTYPE RANK DIM... FILE]...

   Inputs are raw elements in files; the outputs of the first run are written to OUTPUTS/0.bin, 1.bin, ... Lines on standard output:
   one of JSON when the first run is done, then one for each line N on standard input: the seconds of N runs. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tenon/tenon.h>

#include "base/os.h"

enum { MOST = 64 };

static int fail(const char *what) {
    fprintf(stderr, "bench_worker: %s\n%s\n", what, tn_error_message());
    return 1;
}

static tn_dtype dtype_of(const char *name) {
    for (int d = 1; d < TN_DTYPE_COUNT; d++)
        if (!strcmp(tn_dtype_name((tn_dtype)d), name))
            return (tn_dtype)d;
    return TN_DTYPE_NONE;
}

/* Reads one input's words; the number of words, 0 on failure. */
static int read_input(int words, char **word, tn_binding *in) {
    tn_dtype dtype = words > 2 ? dtype_of(word[1]) : TN_DTYPE_NONE;
    int rank = words > 2 ? atoi(word[2]) : -1;
    if (dtype == TN_DTYPE_NONE || rank < 0 || rank > 8 || words < 4 + rank)
        return 0;
    int64_t dims[8];
    for (int i = 0; i < rank; i++)
        dims[i] = atoll(word[3 + i]);
    tn_tensor *t = tn_tensor_create(dtype, rank, dims);
    FILE *f = t ? fopen(word[3 + rank], "rb") : NULL;
    size_t bytes = f ? tn_tensor_bytes(t) : 0;
    bool ok = f && fread(tn_tensor_data(t), 1, bytes, f) == bytes;
    if (f)
        fclose(f);
    *in = (tn_binding){word[0], t, NULL};
    return ok ? 4 + rank : 0;
}

static bool write_output(const char *folder, int index, const tn_tensor *t) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%d.bin", folder, index);
    return tn_file_write(path, tn_tensor_data(t), tn_tensor_bytes(t)) == TN_OK;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    if (argc < 4)
        return fail("usage: bench_worker MODEL THREADS OUTPUTS [NAME DTYPE RANK DIM... FILE]...");
    tn_binding in[MOST];
    uint32_t inputs = 0;
    for (int i = 4; i < argc && inputs < MOST; inputs++) {
        int words = read_input(argc - i, argv + i, &in[inputs]);
        if (!words)
            return fail("an input cannot be read");
        i += words;
    }
    size_t before = tn_rss_bytes();
    double start = tn_clock();
    tn_model *model = tn_model_load(argv[1], NULL);
    tn_session *session =
        model ? tn_session_create(model, TN_OPTIONS(tn_session_options, .threads = atoi(argv[2]))) : NULL;
    if (!session)
        return fail(argv[1]);
    double created = tn_clock();
    uint32_t outputs = tn_model_output_count(model);
    tn_object *result[MOST] = {NULL};
    tn_output out[MOST];
    if (outputs > MOST)
        return fail("too many outputs");
    for (uint32_t i = 0; i < outputs; i++)
        out[i] = (tn_output){tn_model_output_name(model, i), NULL, &result[i]};
    if (tn_session_run(session, inputs, in, outputs, out) != TN_OK)
        return fail("the first run");
    double first = tn_clock();
    printf("{\"create_ms\": %.4f, \"first_ms\": %.4f, \"rss_bytes\": %zu, \"outputs\": [", (created - start) * 1e3,
           (first - created) * 1e3, tn_rss_bytes() - before);
    for (uint32_t i = 0; i < outputs; i++) {
        const tn_tensor *t = tn_object_tensor(result[i]);
        if (!t || !write_output(argv[3], (int)i, t))
            return fail("an output is no tensor, or cannot be written");
        printf("%s{\"dtype\": \"%s\", \"dims\": [", i ? ", " : "", tn_dtype_name(tn_tensor_dtype(t)));
        for (int d = 0; d < tn_tensor_rank(t); d++)
            printf("%s%" PRId64, d ? ", " : "", tn_tensor_dims(t)[d]);
        printf("]}");
    }
    printf("]}\n");
    fflush(stdout);
    for (char line[64]; fgets(line, sizeof line, stdin);) {
        int runs = atoi(line);
        double *time = runs > 0 ? calloc((size_t)runs, sizeof *time) : NULL;
        if (!time)
            return fail("a line that is no number of runs");
        for (int r = 0; r < runs; r++) {
            for (uint32_t i = 0; i < outputs; i++) {
                tn_object_destroy(result[i]);
                result[i] = NULL;
            }
            start = tn_clock();
            if (tn_session_run(session, inputs, in, outputs, out) != TN_OK)
                return fail("a later run");
            time[r] = tn_clock() - start;
        }
        qsort(time, (size_t)runs, sizeof *time, by_size);
        printf("{\"median_ms\": %.6f, \"min_ms\": %.6f, \"rss_bytes\": %zu}\n", time[runs / 2] * 1e3, time[0] * 1e3,
               tn_rss_bytes() - before);
        fflush(stdout);
        free(time);
    }
    for (uint32_t i = 0; i < outputs; i++)
        tn_object_destroy(result[i]);
    for (uint32_t i = 0; i < inputs; i++)
        tn_tensor_destroy(in[i].tensor);
    tn_session_destroy(session);
    tn_model_destroy(model);
    return 0;
}
