/* All of Tenon's operators in one table, and graphs that use it. */
#include <pthread.h>

#include "ir/graph.h"
#include "ops/ops.h"

/* More than there will be; the table says so when it is not. */
#define MAX_ROWS 256

static const tn_op *rows[MAX_ROWS];
static tn_op_table table = {.rows = rows};
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void fill(void) {
    static const tn_op_family *const families[] = {
        &tn_family_unary,     &tn_family_binary,      &tn_family_compare,        &tn_family_select_cast,
        &tn_family_move,      &tn_family_index,       &tn_family_scatter,        &tn_family_dynamic,
        &tn_family_scan,      &tn_family_sort,        &tn_family_select_data,    &tn_family_window_arg,
        &tn_family_random,    &tn_family_reduce,      &tn_family_window,         &tn_family_contract,
        &tn_family_sequence,  &tn_family_control,     &tn_family_debug,          &tn_family_composite,
        &tn_family_random_mt, &tn_family_string_cast, &tn_family_composite_norm,
    };
    uint32_t count = 0;
    rows[count++] = &tn_op_return;
    for (size_t f = 0; f < sizeof families / sizeof families[0]; f++)
        for (uint32_t i = 0; i < families[f]->count && count < MAX_ROWS; i++)
            rows[count++] = &families[f]->rows[i];
    table.count = count;
}

const tn_op_table *tn_ops_table(void) {
    pthread_once(&once, fill);
    return &table;
}

tn_graph *tn_graph_create(void) {
    return tn_graph_create_in(NULL);
}

tn_graph *tn_graph_create_in(tn_heap *heap) {
    return tn_graph_new(heap, tn_ops_table());
}
