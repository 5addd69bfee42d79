/* Fuzzes the whole way: any bytes are loaded, compiled and run on drawn inputs, by the reference and by plans; what both answer has the
   same shapes and element types. */
#include <stdio.h>
#include <stdlib.h>

#include <tenon/tenon.h>

#include "support/model_runs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_BYTES = 8 << 20, MOST_NODES = 2000 };

static void check_error(tn_status status) {
    if (status != TN_ERR_INTERNAL && *tn_error_message())
        return;
    fprintf(stderr, "%s\n", tn_error_message());
    abort();
}

static bool alike(const tn_object *a, const tn_object *b) {
    if (!a || !b || tn_object_kind(a) != TN_KIND_TENSOR || tn_object_kind(b) != TN_KIND_TENSOR)
        return (a == NULL) == (b == NULL);
    const tn_tensor *x = (const tn_tensor *)a, *y = (const tn_tensor *)b;
    bool same = tn_tensor_dtype(x) == tn_tensor_dtype(y) && tn_tensor_rank(x) == tn_tensor_rank(y);
    for (int i = 0; same && i < tn_tensor_rank(x); i++)
        same = tn_tensor_dims(x)[i] == tn_tensor_dims(y)[i];
    return same;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tn_model *model =
        tn_model_load_memory(data, size, TN_OPTIONS(tn_model_options, .max_bytes = MOST_BYTES, .max_ops = MOST_NODES));
    run_inputs in;
    if (!model) {
        check_error(tn_error_status());
        return 0;
    }
    if (run_inputs_fill(model, 1, 1, NULL, &in)) {
        run_outputs out[3];
        bool ran[3];
        for (int i = 0; i < 3; i++) {
            const tn_session_options *options =
                i == 0 ? TN_OPTIONS(tn_session_options, .backend = TN_BACKEND_REFERENCE, .max_bytes = MOST_BYTES)
                       : TN_OPTIONS(tn_session_options, .level = i == 1 ? TN_LEVEL_0 : TN_LEVEL_2, .threads = 1,
                                    .max_bytes = MOST_BYTES, .guard = i == 1);
            tn_status status = run_model(model, options, &in, &out[i]);
            ran[i] = status == TN_OK;
            if (!ran[i])
                check_error(status);
        }
        for (int i = 1; i < 3; i++)
            for (uint32_t k = 0; ran[0] && ran[i] && k < out[0].count; k++)
                if (!alike(out[0].object[k], out[i].object[k])) {
                    fprintf(stderr, "output %u of plan %d has another form than that of the reference\n", (unsigned)k,
                            i);
                    abort();
                }
        for (int i = 0; i < 3; i++)
            if (ran[i])
                run_outputs_free(&out[i]);
        run_inputs_free(&in);
    }
    tn_model_destroy(model);
    return 0;
}
