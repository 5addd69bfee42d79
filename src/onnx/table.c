/* The one list of operator families, and finding a row by domain, name and version. */
#include <pthread.h>
#include <string.h>

#include "onnx/host_ops.h"
#include "onnx/op.h"
#include "ops/ops.h"

const char tn_onnx_known[] = "onnx";

/* A build with a part of the operators (cmake/TenonOps.cmake) has lists of its own: `families`, `listed`, `left_out`. */
typedef struct tn_onnx_listed_op {
    const char *domain, *name;
} tn_onnx_listed_op;
#ifdef TENON_OPS_HEADER
#include TENON_OPS_HEADER
#else
static const tn_onnx_listed_op listed[] = {{NULL, NULL}};
static const char *const left_out[] = {NULL};
#endif

#ifndef TN_OPS_PART
#define TN_OPS_PART 0
/* Ends with NULL. */
static const tn_onnx_family *const families[] = {
    &tn_onnx_family_elementwise,
    &tn_onnx_family_activation,
    &tn_onnx_family_shape,
    &tn_onnx_family_move,
    &tn_onnx_family_gather,
    &tn_onnx_family_reduce,
    &tn_onnx_family_conv,
    &tn_onnx_family_pool,
    &tn_onnx_family_norm,
    &tn_onnx_family_resize,
    &tn_onnx_family_einsum,
    &tn_onnx_family_control,
    &tn_onnx_family_if,
    &tn_onnx_family_recurrent,
    &tn_onnx_family_attention,
    &tn_onnx_family_loss,
    &tn_onnx_family_sample,
    &tn_onnx_family_region,
    &tn_onnx_family_signal,
    &tn_onnx_family_state,
    &tn_onnx_family_order,
    &tn_onnx_family_random,
    &tn_onnx_family_sequence,
    &tn_onnx_family_quant,
    &tn_onnx_family_quant_product,
    &tn_onnx_family_string,
    &tn_onnx_family_ml,
    &tn_onnx_family_ml_label,
    &tn_onnx_family_ml_svm,
    &tn_onnx_family_ml_tree,
    &tn_onnx_family_optimizer,
    &tn_onnx_family_image,
    NULL,
};
#endif

/* Host operators that expansions make. Ends with NULL. */
static const tn_op *const hosts[] = {
    &tn_host_lookup,
    &tn_host_zip_map,
    &tn_host_cast_map,
    &tn_host_vectorize_map,
    &tn_host_tree_ensemble,
    &tn_host_couple,
    NULL,
};

/* Newest operator set versions whose operators the rows speak of. */
static const struct {
    const char *domain;
    int newest;
} domains[] = {
    {"", 28}, {"ai.onnx.ml", 5}, {"ai.onnx.preview", 1}, {"ai.onnx.preview.training", 1}, {"com.microsoft", 1},
};

const tn_onnx_family *const *tn_onnx_families(uint32_t *count) {
    *count = (uint32_t)(sizeof families / sizeof *families - 1);
    return families;
}

static const char *plain_domain(const char *domain) {
    return strcmp(domain, "ai.onnx") == 0 ? "" : domain;
}

int tn_onnx_newest(const char *domain) {
    domain = plain_domain(domain);
    for (size_t i = 0; i < sizeof domains / sizeof *domains; i++)
        if (strcmp(domains[i].domain, domain) == 0)
            return domains[i].newest;
    return 0;
}

bool tn_onnx_listed(const tn_onnx_op *row) {
    for (size_t i = 0; listed[i].name; i++)
        if (strcmp(listed[i].name, row->name) == 0 &&
            (strcmp(listed[i].domain, "*") == 0 || strcmp(listed[i].domain, row->domain) == 0))
            return true;
    return !TN_OPS_PART;
}

bool tn_onnx_left_out(const char *domain, const char *name) {
    if (!TN_OPS_PART || !tn_onnx_newest(domain) || tn_onnx_find_any(domain, name))
        return false;
    for (size_t i = 0; left_out[i]; i++)
        if (strcmp(left_out[i], name) == 0)
            return true;
    return false;
}

/* --- the index, built once ------------------------------------------------------------------------------------------------ */

enum { INDEX_ROWS = 1280, INDEX_SLOTS = 2048 }; /* more than there are rows; half full at most */

static struct {
    const tn_op *ops[INDEX_ROWS];         /* one for each name */
    const tn_onnx_op *slots[INDEX_SLOTS]; /* open addressing by domain and name, all rows */
    tn_op_table table;
} onnx_index;
static pthread_once_t index_once = PTHREAD_ONCE_INIT;

static uint32_t slot_of(const char *domain, const char *name) {
    uint32_t h = 2166136261u;
    for (; *domain; domain++)
        h = (h ^ (uint8_t)*domain) * 16777619u;
    h = (h ^ '.') * 16777619u;
    for (; *name; name++)
        h = (h ^ (uint8_t)*name) * 16777619u;
    return (h ^ h >> 15) % INDEX_SLOTS;
}

static void build_index(void) {
    uint32_t rows = 0, names = 0;
    const tn_op_table *own = tn_ops_table();
    while (names < own->count && names < INDEX_ROWS) { /* first: builders look for them all the time */
        onnx_index.ops[names] = own->rows[names];
        names++;
    }
    for (size_t i = 0; hosts[i] && names < INDEX_ROWS; i++)
        onnx_index.ops[names++] = hosts[i];
    for (size_t f = 0; families[f]; f++)
        for (uint32_t i = 0; i < families[f]->count && names < INDEX_ROWS && rows < INDEX_SLOTS / 2; i++, rows++) {
            const tn_onnx_op *row = &families[f]->rows[i];
            bool first = true;
            if (!tn_onnx_listed(row))
                continue;
            uint32_t s = slot_of(row->domain, row->name);
            for (; onnx_index.slots[s]; s = (s + 1) % INDEX_SLOTS)
                if (strcmp(onnx_index.slots[s]->op.name, row->op.name) == 0)
                    first = false;
            onnx_index.slots[s] = row;
            if (first)
                onnx_index.ops[names++] = &row->op;
            if (first && row->host && names < INDEX_ROWS)
                onnx_index.ops[names++] = row->host;
        }
    onnx_index.table = (tn_op_table){.rows = onnx_index.ops, .count = names};
}

const tn_op_table *tn_onnx_table(void) {
    (void)pthread_once(&index_once, build_index);
    return &onnx_index.table;
}

static const tn_onnx_op *find(const char *domain, const char *name, int version) {
    (void)pthread_once(&index_once, build_index);
    domain = plain_domain(domain);
    for (uint32_t s = slot_of(domain, name); onnx_index.slots[s]; s = (s + 1) % INDEX_SLOTS) {
        const tn_onnx_op *row = onnx_index.slots[s];
        if (strcmp(row->name, name) == 0 && strcmp(row->domain, domain) == 0 &&
            (version < 0 || (version >= row->since && (row->until == 0 || version <= row->until))))
            return row;
    }
    return NULL;
}

const tn_onnx_op *tn_onnx_find(const char *domain, const char *name, int version) {
    return version < 0 ? NULL : find(domain, name, version);
}

const tn_onnx_op *tn_onnx_find_any(const char *domain, const char *name) {
    return find(domain, name, -1);
}

tn_status tn_onnx_make_row(tn_graph *graph, const char *name, size_t length, const tn_op **op) {
    *op = NULL;
    if (length <= 5 || memcmp(name, "onnx.", 5) != 0)
        return TN_OK;
    tn_op *row = tn_arena_alloc(&graph->arena, sizeof *row);
    const char *copy = row ? tn_arena_strndup(&graph->arena, name, length) : NULL;
    if (!copy)
        return tn_error_status();
    *row = (tn_op){.name = copy,
                   .dialect = TN_DIALECT_ONNX,
                   .max_inputs = -1,
                   .max_outputs = -1,
                   .regions = -1,
                   .traits = TN_HOST | TN_OPTIONAL_INPUTS | TN_CONTROL | TN_OWNED_ROW,
                   .infer = tn_onnx_infer,
                   .eval = tn_onnx_late_eval};
    *op = row;
    return TN_OK;
}
