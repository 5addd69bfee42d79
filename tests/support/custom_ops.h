/* Operators of users, and running what uses them: for tests. Domain com.example has Affine (a * x + b; another one for versions 5
   and 6), Positive, Same, Untyped, Wrong (what attribute `how` says), Effect; my-own.domain has Sums; ai.onnx NotInTheStandard. */
#ifndef TESTS_SUPPORT_CUSTOM_OPS_H
#define TESTS_SUPPORT_CUSTOM_OPS_H

#include <tenon/custom.h>
#include <tenon/session.h>

extern const tn_backend custom_backends[2];
extern int custom_calls; /* of Affine (versions to 4) and Effect */
tn_status custom_affine_eval(tn_custom_call *c);

tn_op_set *custom_set(tn_heap *heap);
/* Feeds x f32[2, 2] = 1 2 3 4; output y as text, or the error. */
tn_status custom_run(tn_model *model, tn_backend backend, char *text, size_t size);
/* The same text on both back ends, or the test fails. */
void custom_expect(tn_model *model, const char *wanted);
/* The status, and the thread's error says `text`. */
void custom_expect_error(tn_status status, tn_status wanted, const char *text);

#endif
