/* The strided walker: visits the elements of several operands of one shape, a row of the innermost dimension at a time. */
#include "ir/tensor.h"

#define MAX_OPERANDS 8

/* The dimensions after merging: at most `rank`, the last is the row. */
typedef struct walk_plan {
    int rank;
    int64_t dims[TN_MAX_RANK];
    int64_t strides[MAX_OPERANDS][TN_MAX_RANK]; /* in elements */
    int64_t rows;
} walk_plan;

/* Whether dimension `outer` of all operands continues where the dimension of size `inner_dim` and the last strides of
   the plan ends, so that the two are one. */
static bool merges(const walk_plan *plan, int at, int64_t inner_dim, int operands, const tn_walk_operand *operand,
                   int inner) {
    for (int k = 0; k < operands; k++) {
        int64_t reach;
        if (__builtin_mul_overflow(operand[k].strides[inner], inner_dim, &reach) || reach != plan->strides[k][at])
            return false;
    }
    return true;
}

static void plan_walk(walk_plan *plan, int rank, const int64_t *dims, int operands, const tn_walk_operand *operand) {
    plan->rank = 0;
    plan->rows = 1;
    for (int i = 0; i < rank; i++) {
        if (dims[i] == 0) {
            plan->rows = 0;
            return;
        }
        if (dims[i] == 1)
            continue;
        int at = plan->rank - 1;
        if (at >= 0 && merges(plan, at, dims[i], operands, operand, i)) {
            plan->dims[at] *= dims[i];
        } else {
            at = plan->rank++;
            plan->dims[at] = dims[i];
        }
        for (int k = 0; k < operands; k++)
            plan->strides[k][at] = operand[k].strides[i];
    }
    if (plan->rank == 0) {
        plan->rank = 1;
        plan->dims[0] = 1;
        for (int k = 0; k < operands; k++)
            plan->strides[k][0] = 1;
    }
    for (int i = 0; i + 1 < plan->rank; i++)
        plan->rows *= plan->dims[i];
}

int64_t tn_walk_rows(int rank, const int64_t *dims, int operands, const tn_walk_operand *operand) {
    walk_plan plan;
    plan_walk(&plan, rank, dims, operands, operand);
    return plan.rows;
}

static void run_rows(const walk_plan *plan, int operands, const tn_walk_operand *operand, int64_t begin, int64_t end,
                     tn_walk_row *row, void *ctx) {
    int outer = plan->rank - 1;
    int64_t index[TN_MAX_RANK], offset[MAX_OPERANDS] = {0}, inner[MAX_OPERANDS] = {0}, rest = begin;
    void *data[MAX_OPERANDS] = {NULL};
    for (int k = 0; k < operands; k++)
        inner[k] = plan->strides[k][outer];
    for (int i = outer - 1; i >= 0; i--) {
        index[i] = rest % plan->dims[i];
        rest /= plan->dims[i];
        for (int k = 0; k < operands; k++)
            offset[k] += index[i] * plan->strides[k][i];
    }
    for (int64_t at = begin; at < end; at++) {
        for (int k = 0; k < operands; k++)
            data[k] = (char *)operand[k].data + offset[k] * (int64_t)operand[k].element;
        row(ctx, plan->dims[outer], data, inner);
        for (int i = outer - 1; i >= 0; i--) {
            if (++index[i] < plan->dims[i]) {
                for (int k = 0; k < operands; k++)
                    offset[k] += plan->strides[k][i];
                break;
            }
            index[i] = 0;
            for (int k = 0; k < operands; k++)
                offset[k] -= (plan->dims[i] - 1) * plan->strides[k][i];
        }
    }
}

void tn_walk_range(int rank, const int64_t *dims, int operands, const tn_walk_operand *operand, int64_t begin,
                   int64_t end, tn_walk_row *row, void *ctx) {
    walk_plan plan;
    plan_walk(&plan, rank, dims, operands, operand);
    if (begin < 0)
        begin = 0;
    if (end > plan.rows)
        end = plan.rows;
    if (begin < end)
        run_rows(&plan, operands, operand, begin, end, row, ctx);
}

void tn_walk(int rank, const int64_t *dims, int operands, const tn_walk_operand *operand, tn_walk_row *row, void *ctx) {
    tn_walk_range(rank, dims, operands, operand, 0, INT64_MAX, row, ctx);
}
