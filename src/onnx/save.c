/* Saving a graph under a name that says in which form. */
#include <stdio.h>

#include "base/os.h"
#include "ir/binary.h"
#include "ir/text.h"
#include "onnx/contract.h"
#include "onnx/writer.h"
#include "ops/custom.h"

static bool ends_in(const char *path, const char *ending) {
    size_t length = strlen(path), tail = strlen(ending);
    return length > tail && memcmp(path + length - tail, ending, tail) == 0;
}

static tn_status save_text(const tn_graph *graph, const char *path) {
    TN_TRY(tn_graph_verify(graph));
    char *text = tn_graph_print(graph);
    if (!text)
        return tn_error_status();
    tn_status status = tn_file_write(path, text, strlen(text));
    tn_graph_free_text(graph, text);
    return status;
}

/* Whether nodes stand as they were read: no primitives, no composites. */
static bool is_read(const tn_graph *g) {
    for (uint32_t i = 1; i < g->node.len; i++) {
        const tn_op *op = g->node.data[i].op;
        if (op && op->dialect != TN_DIALECT_ONNX && !(op->traits & (TN_CONSTANT | TN_TERMINATOR)))
            return false;
    }
    return true;
}

static tn_status set_number(tn_graph *g, const char *key, int value) {
    char text[16];
    int n = snprintf(text, sizeof text, "%d", value);
    return tn_graph_set_metadata(g, key, text, (size_t)n);
}

static int number_of(const tn_graph *g, const char *key) {
    const char *text = tn_graph_metadata(g, key);
    int value = 0;
    for (; text && *text >= '0' && *text <= '9' && value < 100000; text++)
        value = value * 10 + (*text - '0');
    return value;
}

/* Functions that were inlined are not written. */
static void forget_functions(tn_graph *g) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < g->metadata.len; i++)
        if (strncmp(tn_strings_text(&g->strings, g->metadata.data[i].key), TN_META_FUNCTION,
                    sizeof TN_META_FUNCTION - 1) != 0)
            g->metadata.data[kept++] = g->metadata.data[i];
    g->metadata.len = kept;
}

static bool imports_any(const tn_graph *g) {
    for (uint32_t i = 0; i < g->metadata.len; i++)
        if (strncmp(tn_strings_text(&g->strings, g->metadata.data[i].key), TN_META_OPSET, sizeof TN_META_OPSET - 1) ==
            0)
            return true;
    return false;
}

static const char *import_of(const tn_custom_row *row, char *key, size_t size) {
    snprintf(key, size, TN_META_OPSET "%s", row->domain);
    return key;
}

/* The operator sets of users' operators: what the file had, else the lowest that has all those that there are. */
static tn_status import_custom(tn_graph *g) {
    uint32_t before = g->metadata.len; /* imports from there on are made here */
    char key[300];
    for (uint32_t i = 1; i < g->node.len; i++) {
        const tn_custom_row *row = tn_custom_row_of(g->node.data[i].op);
        if (!row || strcmp(row->domain, "ai.onnx") == 0)
            continue;
        import_of(row, key, sizeof key);
        bool had = false;
        for (uint32_t k = 0; k < before; k++)
            had = had || strcmp(tn_strings_text(&g->strings, g->metadata.data[k].key), key) == 0;
        if (!had && number_of(g, key) < row->since)
            TN_TRY(set_number(g, key, row->since));
    }
    for (uint32_t i = 1; i < g->node.len; i++) {
        const tn_custom_row *row = tn_custom_row_of(g->node.data[i].op);
        if (!row || strcmp(row->domain, "ai.onnx") == 0)
            continue;
        int version = number_of(g, import_of(row, key, sizeof key));
        if (version >= row->since && version <= row->until)
            continue;
        tn_fail(TN_ERR_UNSUPPORTED,
                "not supported: operator %s of version %d beside one of version %d: a model has one operator set of a "
                "domain",
                row->name, row->since, version);
        tn_fail_at_node(g, (tn_node){i});
        return TN_ERR_UNSUPPORTED;
    }
    return TN_OK;
}

/* What is to be written, in a copy: in operators of the asked set. */
static tn_status prepare(tn_graph *g, const tn_save_options *o) {
    bool read = is_read(g);
    int own = number_of(g, TN_META_OPSET "ai.onnx"), wanted = o->opset, ir = number_of(g, TN_META_IR_VERSION);
    if (read && !o->opset && (imports_any(g) || ir))
        return TN_OK;
    if (!own && read)
        own = ir ? 1 : TN_OPSET_DEFAULT;
    if (!read)
        forget_functions(g);
    if (!wanted)
        wanted = read ? own : own > TN_OPSET_DEFAULT ? own : TN_OPSET_DEFAULT;
    if (wanted < 1 || wanted > tn_onnx_newest("")) {
        tn_fail(o->opset < 0 ? TN_ERR_USAGE : TN_ERR_UNSUPPORTED, "not supported: operator set %d of ai.onnx", wanted);
        tn_fail_hint("versions 1 to %d are supported", tn_onnx_newest(""));
        return tn_error_status();
    }
    if (own && own != wanted)
        TN_TRY(tn_onnx_convert(g, own, wanted < TN_CONTRACT_OPSET && !read ? TN_CONTRACT_OPSET : wanted));
    if (!read) {
        TN_TRY(import_custom(g));
        int target = wanted < TN_CONTRACT_OPSET ? TN_CONTRACT_OPSET : wanted;
        TN_TRY(tn_onnx_contract(g, target));
        if (wanted != target)
            TN_TRY(tn_onnx_convert(g, target, wanted));
        if (!tn_graph_metadata(g, TN_META_PRODUCER))
            TN_TRY(tn_graph_set_metadata(g, TN_META_PRODUCER, "tenon", 5));
    }
    if (own != wanted || !tn_graph_metadata(g, TN_META_OPSET "ai.onnx"))
        TN_TRY(set_number(g, TN_META_OPSET "ai.onnx", wanted));
    int least = tn_onnx_ir_of_opset(wanted);
    if ((!read || ir >= 4) && least < 4) /* from there on weights need not be inputs */
        least = 4;
    if (ir < least || (o->opset && own != wanted && ir > least && !g->function.len))
        TN_TRY(set_number(g, TN_META_IR_VERSION, least));
    return TN_OK;
}

static tn_status check_standard(const tn_graph *g) {
    for (uint32_t i = 1; i < g->node.len; i++) {
        const tn_op *op = g->node.data[i].op;
        if (!op || op->dialect != TN_DIALECT_ONNX || op->extra == tn_onnx_known)
            continue;
        tn_fail(TN_ERR_UNSUPPORTED, "not supported: operator %s, which is not of the standard", op->name + 5);
        tn_fail_at_node(g, (tn_node){i});
        tn_fail_hint("without standard-only it is written; calls of functions are inlined from -O1 on");
        return TN_ERR_UNSUPPORTED;
    }
    return TN_OK;
}

static tn_status save_onnx(const tn_graph *graph, const char *path, const tn_save_options *o) {
    TN_TRY(tn_graph_verify(graph));
    tn_graph *copy = tn_graph_clone(graph, NULL, NULL);
    tn_status status = copy ? prepare(copy, o) : tn_error_status();
    if (status == TN_OK && o->standard_only)
        status = check_standard(copy);
    if (status == TN_OK)
        status = tn_onnx_write_model(copy, path, o->external_data, is_read(graph));
    if (status != TN_OK) {
        tn_error_record error;
        tn_error_save(&error);
        tn_graph_destroy(copy);
        return tn_error_restore(&error);
    }
    tn_graph_destroy(copy);
    return TN_OK;
}

tn_status tn_graph_save_as(const tn_graph *graph, const char *path, const tn_save_options *options) {
    tn_save_options o = {.size = sizeof o};
    if (!graph || !path)
        return tn_fail(TN_ERR_USAGE, !graph ? "graph is NULL" : "the path of a file to be written is NULL");
    if (options) { /* fields that the caller's version of the struct lacks stay zero */
        if (options->size < sizeof(size_t))
            return tn_fail(TN_ERR_USAGE, "tn_graph_save_as: options without a size; make them with TN_OPTIONS");
        memcpy(&o, options, options->size < sizeof o ? options->size : sizeof o);
    }
    if (ends_in(path, ".onnx") || tn_path_kind_of(path) == TN_PATH_OTHER)
        return save_onnx(graph, path, &o);
    if (o.opset || o.external_data || o.standard_only)
        return tn_fail(TN_ERR_USAGE, "'%s': operator sets and external data are of files that end in .onnx", path);
    if (ends_in(path, ".tenon"))
        return tn_graph_write_binary(graph, path);
    if (ends_in(path, ".txt"))
        return save_text(graph, path);
    tn_fail(TN_ERR_USAGE, "'%s': the name does not say in which form a graph is to be saved", path);
    tn_fail_hint("end it in .onnx, .tenon (binary) or .txt (text)");
    return TN_ERR_USAGE;
}

tn_status tn_graph_save(const tn_graph *graph, const char *path) {
    return tn_graph_save_as(graph, path, NULL);
}
