/* Fuzzes models: any bytes are loaded, expanded and run on zeros, within limits. */
#include <stdio.h>
#include <stdlib.h>

#include "support/onnx_try.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tn_status status = try_model(data, size, (size_t)8 << 20);
    if (status == TN_ERR_INTERNAL || (status != TN_OK && !*tn_error_what())) {
        fprintf(stderr, "%s\n", tn_error_message());
        abort();
    }
    return 0;
}
