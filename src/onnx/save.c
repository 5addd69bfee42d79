/* Saving a graph under a name that says in which form. */
#include "base/os.h"
#include "ir/binary.h"
#include "ir/text.h"
#include "onnx/writer.h"

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

static tn_status save_onnx(const tn_graph *graph, const char *path, const tn_save_options *o) {
    TN_TRY(tn_graph_verify(graph));
    return tn_onnx_write_model(graph, path, o->external_data);
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
