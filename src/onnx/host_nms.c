/* non_max_suppression: of boxes that overlap, the one with the highest score. How many remain only the data say, and each choice
   depends on the ones before it. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/vec.h"
#include "onnx/host_ops.h"
#include "ops/infer.h"

/* boxes [batches, boxes, 4], scores [batches, classes, boxes]; then at most how many for each class, the largest overlap, the
   smallest score: one element each, may be absent. */
static tn_status infer_nms(tn_infer *c) {
    tn_operand_type boxes, scores;
    tn_graph *g = c->graph;
    TN_TRY(tn_infer_operand_rank(c, 0, 3, &boxes));
    TN_TRY(tn_infer_operand_rank(c, 1, 3, &scores));
    if (boxes.dtype != TN_F32 || scores.dtype != TN_F32)
        return tn_infer_fail(c, "boxes and scores must be f32, but are %s and %s", tn_dtype_name(boxes.dtype),
                             tn_dtype_name(scores.dtype));
    if (tn_dim_never_equal(g, boxes.dims[0], scores.dims[0]) || tn_dim_never_equal(g, boxes.dims[1], scores.dims[2]) ||
        tn_dim_never_equal(g, boxes.dims[2], tn_dim_const(g, 4)))
        return tn_infer_fail(c, "boxes must be [batches, boxes, 4], scores [batches, classes, boxes]");
    for (uint32_t i = 2; i < tn_node_input_count(g, c->node); i++) {
        tn_value v = tn_node_input(g, c->node, i);
        if (!v.id)
            continue;
        if (tn_value_dtype(g, v) != (i == 2 ? TN_I64 : TN_F32))
            return tn_infer_fail(c, "input %u must be %s, but is %s", (unsigned)i, i == 2 ? "i64" : "f32",
                                 tn_dtype_name(tn_value_dtype(g, v)));
    }
    tn_dim dims[2] = {tn_infer_fresh(c, 0, 0, 0, INT64_MAX), tn_dim_const(g, 3)};
    if (!dims[0].id)
        return tn_error_status();
    return tn_infer_tensor(c, 0, TN_I64, 2, dims);
}

/* Corners along one axis, in order. */
typedef struct span {
    float low, high;
} span;

static void box_spans(const float *box, bool by_center, span *y, span *x) {
    if (by_center) { /* x, y, width, height */
        *x = (span){box[0] - box[2] / 2, box[0] + box[2] / 2};
        *y = (span){box[1] - box[3] / 2, box[1] + box[3] / 2};
    } else { /* y, x of one corner, y, x of the opposite one */
        *y = box[0] < box[2] ? (span){box[0], box[2]} : (span){box[2], box[0]};
        *x = box[1] < box[3] ? (span){box[1], box[3]} : (span){box[3], box[1]};
    }
}

/* Whether the intersection is more than `most` of the union. */
static bool overlap(const float *a, const float *b, bool by_center, float most) {
    span ya, xa, yb, xb;
    box_spans(a, by_center, &ya, &xa);
    box_spans(b, by_center, &yb, &xb);
    float width = fminf(xa.high, xb.high) - fmaxf(xa.low, xb.low),
          height = fminf(ya.high, yb.high) - fmaxf(ya.low, yb.low);
    if (!(width > 0 && height > 0))
        return false;
    float area_a = (xa.high - xa.low) * (ya.high - ya.low), area_b = (xb.high - xb.low) * (yb.high - yb.low);
    float common = width * height, whole = area_a + area_b - common;
    return common > 0 && area_a > 0 && area_b > 0 && whole > 0 && common / whole > most;
}

typedef struct candidate {
    float score;
    int64_t box;
} candidate;

/* Higher scores first, NaN last; of equal ones the box that comes first. */
static int by_score(const void *a, const void *b) {
    const candidate *p = a, *q = b;
    bool p_nan = isnan(p->score), q_nan = isnan(q->score);
    if (p_nan != q_nan)
        return p_nan ? 1 : -1;
    if (p->score > q->score || p->score < q->score)
        return p->score > q->score ? -1 : 1;
    return p->box < q->box ? -1 : p->box > q->box;
}

typedef struct nms {
    int64_t count, most; /* boxes; chosen of one class */
    float overlap, score;
    bool by_center, has_score;
    candidate *candidates;
    TN_VEC(int64_t) chosen;
} nms;

static bool choose_class(nms *n, tn_heap *heap, const float *boxes, const float *scores, int64_t batch, int64_t class) {
    int64_t candidates = 0;
    uint32_t first = n->chosen.len;
    for (int64_t i = 0; i < n->count; i++)
        if (!n->has_score || scores[i] > n->score)
            n->candidates[candidates++] = (candidate){scores[i], i};
    qsort(n->candidates, (size_t)candidates, sizeof *n->candidates, by_score);
    for (int64_t i = 0; i < candidates && (n->chosen.len - first) / 3 < n->most; i++) {
        bool good = true;
        for (uint32_t k = first; k < n->chosen.len && good; k += 3)
            good =
                !overlap(boxes + 4 * n->candidates[i].box, boxes + 4 * n->chosen.data[k + 2], n->by_center, n->overlap);
        if (good && (!tn_vec_push(heap, &n->chosen, batch) || !tn_vec_push(heap, &n->chosen, class) ||
                     !tn_vec_push(heap, &n->chosen, n->candidates[i].box)))
            return false;
    }
    return true;
}

/* The one element of an optional input: a scalar by the text, a list of one in its examples. */
static tn_status one_of(tn_eval *e, uint32_t input, const char *name, tn_tensor **out) {
    *out = input < e->inputs && e->in[input] ? tn_eval_in(e, input) : NULL;
    if (*out && tn_tensor_count(*out) != 1)
        return tn_eval_fail(e, TN_ERR_INPUT, "'%s' has %" PRId64 " elements: it must be one number", name,
                            tn_tensor_count(*out));
    return TN_OK;
}

static tn_status run_nms(tn_eval *e, nms *n, const tn_tensor *boxes, const tn_tensor *scores) {
    int64_t batches = boxes->dims[0], classes = scores->dims[1];
    for (int64_t b = 0; b < batches; b++)
        for (int64_t k = 0; k < classes; k++)
            if (!choose_class(n, e->heap, (const float *)boxes->data + b * n->count * 4,
                              (const float *)scores->data + (b * classes + k) * n->count, b, k))
                return tn_error_status();
    const int64_t dims[2] = {n->chosen.len / 3, 3};
    tn_tensor *out = tn_tensor_create_in(e->heap, TN_I64, 2, dims);
    if (out && n->chosen.len)
        memcpy(out->data, n->chosen.data, n->chosen.len * sizeof *n->chosen.data);
    return tn_eval_set(e, 0, (tn_object *)out);
}

static tn_status eval_nms(tn_eval *e) {
    nms n = {.by_center = tn_attr_int(e->graph, e->node, "center_point_box") != 0};
    tn_tensor *most, *overlap_in, *score, *boxes = tn_eval_in(e, 0), *scores = tn_eval_in(e, 1);
    TN_TRY(one_of(e, 2, "max_output_boxes_per_class", &most));
    TN_TRY(one_of(e, 3, "iou_threshold", &overlap_in));
    TN_TRY(one_of(e, 4, "score_threshold", &score));
    if (boxes->rank != 3 || scores->rank != 3 || boxes->dims[0] != scores->dims[0] ||
        boxes->dims[1] != scores->dims[2] || boxes->dims[2] != 4)
        return tn_eval_fail(e, TN_ERR_INPUT, "boxes must be [batches, boxes, 4], scores [batches, classes, boxes]");
    n.count = boxes->dims[1];
    n.most = most ? tn_tensor_get_i64(most, 0) : 0;
    n.overlap = overlap_in ? (float)tn_tensor_get_f64(overlap_in, 0) : 0;
    if (!(n.overlap >= 0 && n.overlap <= 1))
        return tn_eval_fail(e, TN_ERR_INPUT, "the largest overlap is not in [0, 1]");
    n.has_score = score != NULL;
    n.score = score ? (float)tn_tensor_get_f64(score, 0) : 0;
    boxes = tn_host_readable(e->heap, boxes);
    scores = boxes ? tn_host_readable(e->heap, scores) : NULL;
    n.candidates = scores ? tn_alloc_array(e->heap, (size_t)n.count + 1, sizeof *n.candidates) : NULL;
    tn_status status = n.candidates ? run_nms(e, &n, boxes, scores) : tn_error_status();
    tn_free(e->heap, n.candidates);
    tn_vec_free(e->heap, &n.chosen);
    tn_tensor_destroy(boxes);
    tn_tensor_destroy(scores);
    return status;
}

static const tn_attr_spec nms_attrs[] = {{.name = "center_point_box", .kind = TN_ATTR_INT}, {0}};

const tn_op tn_host_nms = {.name = "non_max_suppression",
                           .dialect = TN_DIALECT_PRIMITIVE,
                           .min_inputs = 2,
                           .max_inputs = 5,
                           .min_outputs = 1,
                           .max_outputs = 1,
                           .traits = TN_HOST | TN_OPTIONAL_INPUTS,
                           .attrs = nms_attrs,
                           .inputs = "boxes, scores, most, overlap, score",
                           .doc =
                               "Of boxes that overlap, those with the highest scores: i64 [n, 3] of batch, class, box.",
                           .infer = infer_nms,
                           .eval = eval_nms,
                           .no_gradient = "which boxes remain does not change smoothly"};
