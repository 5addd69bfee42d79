/* regex_full_match: which strings match a pattern as a whole. */
#include "onnx/host_ops.h"
#include "onnx/op.h"
#include "onnx/regex.h"
#include "ops/elementwise.h"

static tn_status infer_regex(tn_infer *c) {
    tn_operand_type in;
    TN_TRY(tn_infer_operand(c, 0, &in));
    if (in.dtype != TN_STRING)
        return tn_infer_fail(c, "the input is %s, it must be string", tn_dtype_name(in.dtype));
    return tn_infer_tensor(c, 0, TN_BOOL, in.rank, in.dims);
}

static tn_status match_all(tn_eval *e, tn_regex *regex) {
    const tn_tensor *in = tn_eval_in(e, 0);
    tn_tensor *out = tn_eval_result(e, 0, TN_BOOL, in->rank, in->dims);
    if (!out)
        return tn_error_status();
    for (int64_t i = 0; i < in->count; i++) {
        tn_string text;
        TN_TRY(tn_tensor_get_string(in, i, &text));
        ((uint8_t *)out->data)[i] = tn_regex_matches(regex, text.data, text.length);
    }
    return TN_OK;
}

static tn_status eval_regex(tn_eval *e) {
    tn_string pattern = tn_attr_string(e->graph, e->node, "pattern");
    tn_regex *regex = tn_regex_compile(e->heap, pattern.data, pattern.length);
    tn_status status = regex ? match_all(e, regex) : tn_error_status();
    tn_regex_destroy(regex);
    return status;
}

const tn_attr_spec tn_host_regex_attrs[] = {TN_SPEC_NEEDED("pattern", TN_ATTR_STRING), {0}};

const tn_op tn_host_regex = {.name = "regex_full_match",
                             .dialect = TN_DIALECT_PRIMITIVE,
                             .min_inputs = 1,
                             .max_inputs = 1,
                             .min_outputs = 1,
                             .max_outputs = 1,
                             .traits = TN_HOST | TN_EXACT,
                             .attrs = tn_host_regex_attrs,
                             .inputs = "x",
                             .doc = "Whether each string matches a pattern in RE2's syntax as a whole.",
                             .infer = infer_regex,
                             .eval = eval_regex,
                             .no_gradient = "strings are no numbers"};
