/* couple: the probabilities of k classes from those of all pairs, by the iteration of Wu, Lin and Weng (2004) as LIBSVM does it. */
#include <inttypes.h>
#include <math.h>

#include "onnx/host_ml.h"
#include "ops/plain.h"

enum { MAX_CLASSES = 4096 }; /* a k x k matrix is made */

/* r [N, k (k - 1) / 2]: the probability of class i against class j, i < j, pairs in order. */
static tn_status infer_couple(tn_infer *c) {
    tn_operand_type r;
    tn_graph *g = c->graph;
    int64_t k = tn_attr_int(g, c->node, "classes");
    TN_TRY(tn_infer_operand_rank(c, 0, 2, &r));
    if (r.dtype != TN_F32)
        return tn_infer_fail(c, "the input must be f32, but is %s", tn_dtype_name(r.dtype));
    if (k < 2 || k > MAX_CLASSES)
        return tn_infer_unsupported(c, "%" PRId64 " classes (2 to %d are)", k, MAX_CLASSES);
    if (tn_dim_never_equal(g, r.dims[1], tn_dim_const(g, k * (k - 1) / 2)))
        return tn_infer_fail(c, "%" PRId64 " classes have %" PRId64 " pairs, the input has another number", k,
                             k * (k - 1) / 2);
    const tn_dim dims[2] = {r.dims[0], tn_dim_const(g, k)};
    return tn_infer_tensor(c, 0, TN_F32, 2, dims);
}

/* q: k x k for scratch, qp: k. */
static void couple(int64_t k, const float *pairs, float *p, float *q, float *qp) {
    /* r(i, j) of i < j is a pair's probability, r(j, i) the rest of 1 */
    float *r = q + k * k;
    for (int64_t i = 0, at = 0; i < k; i++)
        for (int64_t j = i + 1; j < k; j++, at++) {
            r[i * k + j] = pairs[at];
            r[j * k + i] = 1 - pairs[at];
        }
    for (int64_t t = 0; t < k; t++) {
        p[t] = 1.0f / (float)k;
        q[t * k + t] = 0;
        for (int64_t j = 0; j < k; j++)
            if (j != t) {
                q[t * k + t] += r[j * k + t] * r[j * k + t];
                q[t * k + j] = j < t ? q[j * k + t] : -r[j * k + t] * r[t * k + j];
            }
    }
    float epsilon = 0.005f / (float)k;
    for (int64_t round = 0; round < (k > 100 ? k : 100); round++) {
        float pqp = 0, most = 0;
        for (int64_t t = 0; t < k; t++) {
            qp[t] = 0;
            for (int64_t j = 0; j < k; j++)
                qp[t] += q[t * k + j] * p[j];
            pqp += p[t] * qp[t];
        }
        for (int64_t t = 0; t < k; t++)
            most = fmaxf(most, fabsf(qp[t] - pqp));
        if (most < epsilon)
            break;
        for (int64_t t = 0; t < k; t++) {
            float d = (-qp[t] + pqp) / q[t * k + t];
            p[t] += d;
            pqp = (pqp + d * (d * q[t * k + t] + 2 * qp[t])) / (1 + d) / (1 + d);
            for (int64_t j = 0; j < k; j++) {
                qp[j] = (qp[j] + d * q[t * k + j]) / (1 + d);
                p[j] /= 1 + d;
            }
        }
    }
}

static tn_status eval_couple(tn_eval *e) {
    int64_t k = tn_attr_int(e->graph, e->node, "classes"), pairs = k * (k - 1) / 2;
    tn_tensor *r = tn_host_readable(e->heap, tn_eval_in(e, 0));
    if (!r)
        return tn_error_status();
    const int64_t dims[2] = {r->dims[0], k};
    tn_status status =
        r->dims[1] == pairs ? TN_OK : tn_eval_fail(e, TN_ERR_INPUT, "%" PRId64 " pairs are needed", pairs);
    tn_tensor *out = status == TN_OK ? tn_eval_result(e, 0, TN_F32, 2, dims) : NULL;
    float *scratch = out ? tn_alloc_array(e->heap, (size_t)(2 * k * k + k), sizeof *scratch) : NULL;
    for (int64_t i = 0; scratch && i < dims[0]; i++)
        couple(k, (const float *)r->data + i * pairs, (float *)out->data + i * k, scratch, scratch + 2 * k * k);
    if (status == TN_OK && !scratch)
        status = tn_error_status();
    tn_free(e->heap, scratch);
    tn_tensor_destroy(r);
    return status;
}

static const tn_attr_spec couple_attrs[] = {{.name = "classes", .kind = TN_ATTR_INT, .required = true}, {0}};

const tn_op tn_host_couple = {.name = "couple",
                              .dialect = TN_DIALECT_PRIMITIVE,
                              .min_inputs = 1,
                              .max_inputs = 1,
                              .min_outputs = 1,
                              .max_outputs = 1,
                              .traits = TN_HOST,
                              .attrs = couple_attrs,
                              .inputs = "pairs",
                              .doc = "Probabilities of classes [N, k] from those of all pairs [N, k (k - 1) / 2].",
                              .infer = infer_couple,
                              .eval = eval_couple,
                              .no_gradient = "it is an iteration that stops when the data say"};
