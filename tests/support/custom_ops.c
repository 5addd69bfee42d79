/* Operators of users, and running what uses them: for tests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "support/custom_ops.h"

/* --- operators ---------------------------------------------------------------------------------------------------------------- */

static tn_status affine_infer(tn_custom_call *c) {
    if (tn_custom_input_dtype(c, 0) != TN_F32)
        return tn_custom_unsupported(c, "element type %s", tn_dtype_name(tn_custom_input_dtype(c, 0)));
    if (!tn_custom_graph(c) || tn_custom_input_rank(c, 0) < 0)
        return tn_custom_fail(c, "infer was called too early");
    return tn_custom_set_like(c, 0, 0);
}

/* a * x + b; `user` counts the calls */
tn_status custom_affine_eval(tn_custom_call *c) {
    const tn_tensor *x = tn_custom_input(c, 0);
    if (!tn_tensor_is_contiguous(x) || (uintptr_t)tn_tensor_data(x) % 4)
        return tn_custom_fail(c, "the input is not plain");
    tn_tensor *y = tn_custom_output(c, 0, TN_F32, tn_tensor_rank(x), tn_tensor_dims(x));
    if (!y)
        return tn_error_status();
    if (tn_custom_user(c))
        ++*(int *)tn_custom_user(c);
    for (int64_t i = 0; i < tn_tensor_count(x); i++)
        ((float *)tn_tensor_data(y))[i] =
            (float)tn_custom_float(c, "a") * ((const float *)tn_tensor_data(x))[i] + (float)tn_custom_int(c, "b");
    return TN_OK;
}

static tn_status affine2_eval(tn_custom_call *c) {
    const tn_tensor *x = tn_custom_input(c, 0);
    tn_tensor *y = tn_custom_output(c, 0, TN_F32, tn_tensor_rank(x), tn_tensor_dims(x));
    for (int64_t i = 0; y && i < tn_tensor_count(x); i++)
        tn_tensor_set_f64(y, i, 1000 + tn_tensor_get_f64(x, i));
    return y ? TN_OK : tn_error_status();
}

/* Concatenates the sums of its inputs that are there, and their number: any number of inputs, two outputs. */
static tn_status sums_infer(tn_custom_call *c) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < tn_custom_input_count(c); i++)
        n += tn_custom_has_input(c, i);
    tn_dim size = tn_dim_const(tn_custom_graph(c), n);
    tn_status status = tn_custom_set_tensor(c, 0, TN_F64, 1, &size);
    return status == TN_OK ? tn_custom_set_tensor(c, 1, TN_I64, 0, NULL) : status;
}

static tn_status sums_eval(tn_custom_call *c) {
    double *sums = tn_custom_scratch(c, (tn_custom_input_count(c) + 1u) * sizeof *sums);
    int64_t n = 0;
    if (!sums)
        return tn_error_status();
    for (uint32_t i = 0; i < tn_custom_input_count(c); i++) {
        const tn_tensor *x = tn_custom_input(c, i);
        for (int64_t k = 0; x && k < tn_tensor_count(x); k++)
            sums[n] += tn_tensor_get_f64(x, k);
        n += x != NULL;
    }
    tn_tensor *all = tn_custom_output(c, 0, TN_F64, 1, &n);
    for (int64_t i = 0; all && i < n; i++)
        tn_tensor_set_f64(all, i, sums[i]);
    if (all && tn_custom_output_count(c) > 1) {
        tn_tensor *count = tn_tensor_create_in(tn_custom_heap(c), TN_I64, 0, NULL);
        if (count)
            tn_tensor_set_f64(count, 0, (double)n);
        return tn_custom_set_output(c, 1, count ? tn_tensor_object(count) : NULL);
    }
    return all ? TN_OK : tn_error_status();
}

/* The positive elements: a size that data decides. */
static tn_status positive_infer(tn_custom_call *c) {
    tn_dim size = tn_custom_fresh_dim(c, 0, 0, 0, INT64_MAX);
    return tn_custom_set_tensor(c, 0, tn_custom_input_dtype(c, 0), 1, &size);
}

static tn_status positive_eval(tn_custom_call *c) {
    const tn_tensor *x = tn_custom_input(c, 0);
    int64_t n = 0, at = 0;
    for (int64_t i = 0; i < tn_tensor_count(x); i++)
        n += tn_tensor_get_f64(x, i) > 0;
    tn_tensor *y = tn_custom_output(c, 0, tn_tensor_dtype(x), 1, &n);
    for (int64_t i = 0; y && i < tn_tensor_count(x); i++)
        if (tn_tensor_get_f64(x, i) > 0)
            tn_tensor_set_f64(y, at++, tn_tensor_get_f64(x, i));
    return y ? TN_OK : tn_error_status();
}

/* Strides as given: answers its input itself. */
static tn_status same_eval(tn_custom_call *c) {
    const tn_tensor *x = tn_custom_input(c, 0);
    if (tn_tensor_is_contiguous(x))
        return tn_custom_fail(c, "the input is contiguous");
    return tn_custom_set_output(c, 0, tn_object_retain(tn_custom_object(c, 0)));
}

static tn_status like_infer(tn_custom_call *c) {
    return tn_custom_set_like(c, 0, 0);
}

/* What `how` says, wrongly. */
static tn_status wrong_eval(tn_custom_call *c) {
    const tn_tensor *x = tn_custom_input(c, 0);
    int64_t dims[2] = {tn_tensor_dims(x)[0] + 1, 2};
    if (tn_custom_string_is(c, "how", "dtype"))
        return tn_custom_output(c, 0, TN_F64, 2, tn_tensor_dims(x)) ? TN_OK : tn_error_status();
    if (tn_custom_string_is(c, "how", "shape"))
        return tn_custom_output(c, 0, TN_F32, 2, dims) ? TN_OK : tn_error_status();
    if (tn_custom_string_is(c, "how", "rank"))
        return tn_custom_set_output(c, 0, tn_tensor_object(tn_tensor_create(TN_F32, 0, NULL)));
    if (tn_custom_string_is(c, "how", "mute"))
        return TN_ERR_INPUT;
    if (tn_custom_string_is(c, "how", "swallowed")) {
        (void)tn_custom_fail(c, "something %s", "went wrong");
        (void)tn_custom_output(c, 0, TN_F32, 2, tn_tensor_dims(x));
    }
    if (tn_custom_string_is(c, "how", "index"))
        return tn_custom_output(c, 7, TN_F32, 2, tn_tensor_dims(x)) ? TN_OK : tn_error_status();
    return TN_OK; /* nothing made */
}

static tn_status wrong_infer(tn_custom_call *c) {
    if (tn_custom_string_is(c, "how", "null-dim"))
        return tn_custom_set_tensor(c, 0, TN_F32, 1, &(tn_dim){0});
    if (tn_custom_string_is(c, "how", "no-dtype"))
        return tn_custom_set_tensor(c, 0, (tn_dtype)99, 0, NULL);
    if (tn_custom_string_is(c, "how", "mute-infer"))
        return TN_ERR_LIMIT;
    return tn_custom_set_like(c, 0, 0);
}

static const tn_attribute_spec affine_attributes[] = {{.name = "a", .kind = TN_ATTRIBUTE_FLOAT, .required = true},
                                                      {.name = "b", .kind = TN_ATTRIBUTE_INT, .int_default = 10},
                                                      {0}};
static const tn_attribute_spec wrong_attributes[] = {
    {.name = "how", .kind = TN_ATTRIBUTE_STRING, .string_default = "nothing"}, {0}};
int custom_calls;

tn_op_set *custom_set(tn_heap *heap) {
    const tn_custom_op rows[] = {
        {.domain = "com.example",
         .name = "Affine",
         .min_inputs = 1,
         .max_inputs = 1,
         .attributes = affine_attributes,
         .inputs = "x",
         .infer = affine_infer,
         .eval = custom_affine_eval,
         .user = &custom_calls,
         .until = 4},
        {.domain = "com.example",
         .name = "Affine",
         .min_inputs = 1,
         .max_inputs = 1,
         .attributes = affine_attributes,
         .infer = affine_infer,
         .eval = affine2_eval,
         .since = 5,
         .until = 6},
        {.domain = "ai.onnx",
         .name = "NotInTheStandard",
         .min_inputs = 1,
         .max_inputs = 1,
         .infer = like_infer,
         .eval = affine2_eval},
        {.domain = "my-own.domain",
         .name = "Sums",
         .max_inputs = -1,
         .min_outputs = 1,
         .max_outputs = 2,
         .flags = TN_CUSTOM_OPTIONAL,
         .infer = sums_infer,
         .eval = sums_eval},
        {.domain = "com.example",
         .name = "Positive",
         .min_inputs = 1,
         .max_inputs = 1,
         .infer = positive_infer,
         .eval = positive_eval},
        {.domain = "com.example",
         .name = "Same",
         .min_inputs = 1,
         .max_inputs = 1,
         .flags = TN_CUSTOM_STRIDED,
         .infer = like_infer,
         .eval = same_eval},
        {.domain = "com.example", .name = "Untyped", .min_inputs = 1, .max_inputs = 1, .eval = affine2_eval},
        {.domain = "com.example",
         .name = "Wrong",
         .min_inputs = 1,
         .max_inputs = 1,
         .attributes = wrong_attributes,
         .infer = wrong_infer,
         .eval = wrong_eval},
        {.domain = "com.example",
         .name = "Effect",
         .min_inputs = 1,
         .max_inputs = 1,
         .attributes = affine_attributes,
         .flags = TN_CUSTOM_EFFECT,
         .infer = affine_infer,
         .eval = custom_affine_eval,
         .user = &custom_calls},
    };
    tn_op_set *ops = tn_op_set_create(heap);
    for (size_t i = 0; ops && i < sizeof rows / sizeof *rows; i++) {
        tn_custom_op row = rows[i];
        row.size = sizeof row;
        if (tn_op_set_add(ops, &row) == TN_OK)
            continue;
        tn_op_set_destroy(ops);
        return NULL;
    }
    return ops;
}

/* --- running -------------------------------------------------------------------------------------------------------------------- */

const tn_backend custom_backends[2] = {TN_BACKEND_REFERENCE, TN_BACKEND_CPU};

/* Feeds x f32[2, 2] = 1 2 3 4; the first output as text, or the error. */
tn_status custom_run(tn_model *model, tn_backend backend, char *text, size_t size) {
    tn_session *s =
        model ? tn_session_create(model, TN_OPTIONS(tn_session_options, .backend = backend, .verify = true)) : NULL;
    tn_tensor *x = tn_tensor_from_f32(2, (const int64_t[]){2, 2}, (const float[]){1, 2, 3, 4}), *y = NULL;
    *text = '\0';
    tn_status status = s && x ? tn_session_run(s, 1, (const tn_binding[]){{.name = "x", .tensor = x}}, 1,
                                               (const tn_output[]){{.name = "y", .tensor = &y}})
                              : tn_error_status();
    for (int64_t i = 0; y && i < tn_tensor_count(y); i++)
        snprintf(text + strlen(text), size - strlen(text), "%s%lld", i ? " " : "", (long long)tn_tensor_get_f64(y, i));
    tn_tensor_destroy(x);
    tn_tensor_destroy(y);
    tn_session_destroy(s);
    return status;
}

void custom_expect(tn_model *model, const char *wanted) {
    char text[200];
    if (!model)
        fail_msg("no model: %s", tn_error_message());
    for (int b = 0; b < 2; b++) {
        if (custom_run(model, custom_backends[b], text, sizeof text) != TN_OK)
            fail_msg("back end %d: %s", b, tn_error_message());
        assert_string_equal(text, wanted);
    }
}

void custom_expect_error(tn_status status, tn_status wanted, const char *text) {
    if (status != wanted)
        fail_msg("status %s, not %s: %s", tn_status_name(status), tn_status_name(wanted), tn_error_message());
    if (!strstr(tn_error_message(), text))
        fail_msg("'%s' is not in: %s", text, tn_error_message());
}
