/* Values for people and for programs. */
#ifndef TN_CLI_PRINT_H
#define TN_CLI_PRINT_H

#include "base/buffer.h"
#include "ir/tensor.h"

/* One element as text: "1.5", "[1+2i]", "\"word\"". */
void tn_cli_print_element(tn_text *out, const tn_tensor *tensor, int64_t index);
/* "name  f32[2,3]  min -1  max 2  mean 0.5" and a line of the first values; sequences item by item. */
void tn_cli_print_object(tn_text *out, const char *name, const tn_object *object);
/* A JSON object with the same: kind, dtype, shape, min, max, mean, and the first values in row-major order ("values", at most
   1024; "truncated" says when there are more). NaN and infinities are strings. `name`, `file` may be NULL. */
void tn_cli_print_json(tn_text *out, const char *name, const char *file, const tn_object *object);
/* A number in JSON. */
void tn_cli_json_f64(tn_text *out, double value);
/* "[2,3]" */
void tn_cli_print_dims(tn_text *out, int rank, const int64_t *dims);

#endif
