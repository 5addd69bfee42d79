/* Repeated blocks, each once with its count. */
#include "cli/block_list.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "ir/blocks.h"

enum { OPERATORS_SHOWN = 6 };

typedef struct used {
    const char *name;
    uint32_t count, order;
} used;
typedef TN_VEC(used) used_list;

static const char *short_name(const char *op) {
    return strncmp(op, "onnx.", 5) == 0 ? op + 5 : op;
}

static int by_count(const void *a, const void *b) {
    const used *x = a, *y = b;
    return x->count != y->count ? (x->count < y->count ? 1 : -1) : (x->order > y->order) - (x->order < y->order);
}

/* The operators of one block, the most used first. */
static tn_status count_block(const tn_graph *g, const tn_block_run *run, used_list *list) {
    tn_map index = {0};
    tn_status status = TN_OK;
    tn_node n = run->first;
    list->len = 0;
    for (uint32_t i = 0; i < run->nodes && status == TN_OK; i++, n = tn_blocks_next(g, n)) {
        const tn_op *op = tn_node_op(g, n);
        uint64_t at;
        if (list->len && tn_map_get(&index, (uintptr_t)op, &at))
            list->data[at].count++;
        else if (!tn_map_put(NULL, &index, (uintptr_t)op, list->len) ||
                 !tn_vec_push(NULL, list, ((used){short_name(op->name), 1, list->len})))
            status = TN_ERR_MEMORY;
    }
    tn_map_free(NULL, &index);
    if (list->len)
        qsort(list->data, list->len, sizeof *list->data, by_count);
    return status;
}

static void put_block(const tn_graph *g, const tn_block_run *run, uint32_t places, const used_list *list,
                      tn_text *out) {
    tn_text_printf(out, "  %" PRIu32 " x %" PRIu32 " nodes ", run->count, run->nodes);
    if (places > 1)
        tn_text_printf(out, "in %" PRIu32 " places, the first ", places);
    tn_text_printf(out, "from %s", short_name(tn_node_op_name(g, run->first)));
    if (*tn_node_name(g, run->first)) {
        tn_text_add(out, " ");
        tn_cli_name(out, tn_node_name(g, run->first));
    }
    for (uint32_t i = 0; i < list->len && i < OPERATORS_SHOWN; i++) {
        tn_text_printf(out, "%s%" PRIu32 " ", i ? ", " : ": ", list->data[i].count);
        tn_cli_name(out, list->data[i].name);
    }
    tn_text_add(out, list->len > OPERATORS_SHOWN ? ", ...\n" : "\n");
}

static void put_json(const tn_graph *g, const tn_block_run *run, uint32_t places, const used_list *list, tn_text *out) {
    const char *op = short_name(tn_node_op_name(g, run->first)), *name = tn_node_name(g, run->first);
    tn_text_printf(
        out, "{\"count\": %" PRIu32 ", \"nodes\": %" PRIu32 ", \"places\": %" PRIu32 ", \"first\": {\"operator\": ",
        run->count, run->nodes, places);
    tn_text_json(out, op, strlen(op));
    tn_text_add(out, ", \"name\": ");
    tn_text_json(out, name, strlen(name));
    tn_text_add(out, "}, \"operators\": {");
    for (uint32_t i = 0; i < list->len; i++) {
        tn_text_add(out, i ? ", " : "");
        tn_text_json(out, list->data[i].name, strlen(list->data[i].name));
        tn_text_printf(out, ": %" PRIu32, list->data[i].count);
    }
    tn_text_add(out, "}}");
}

/* All runs of equal blocks as one: their number of blocks; how many runs they are. */
static uint32_t gather_kind(tn_block_runs *runs, uint32_t kind) {
    uint32_t places = 1;
    for (uint32_t i = kind + 1; i < runs->len; i++)
        if (runs->data[i].kind == kind) {
            runs->data[kind].count += runs->data[i].count;
            places++;
        }
    return places;
}

static void put(const tn_graph *g, bool json, tn_text *out) {
    tn_block_runs runs = {0};
    used_list list = {0};
    tn_status status = tn_blocks_find(g, tn_graph_region(g), &runs);
    tn_text_add(out, json ? "[" : runs.len ? "repeated blocks:\n" : "");
    for (uint32_t i = 0; i < runs.len && status == TN_OK; i++) {
        if (runs.data[i].kind != i)
            continue; /* shown with the first of its kind */
        uint32_t places = gather_kind(&runs, i);
        status = count_block(g, &runs.data[i], &list);
        if (status == TN_OK && json) {
            tn_text_add(out, i ? ",\n  " : "\n  ");
            put_json(g, &runs.data[i], places, &list, out);
        } else if (status == TN_OK) {
            put_block(g, &runs.data[i], places, &list, out);
        }
    }
    tn_text_add(out, json ? "]" : "");
    tn_vec_free(NULL, &list);
    tn_vec_free(g->heap, &runs);
    out->failed = out->failed || status != TN_OK; /* memory alone can be short */
}

void tn_cli_put_blocks(const tn_graph *graph, tn_text *out) {
    put(graph, false, out);
}

void tn_cli_put_blocks_json(const tn_graph *graph, tn_text *out) {
    put(graph, true, out);
}
