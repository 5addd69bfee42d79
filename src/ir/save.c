/* Saving a graph under a name that says in which form. */
#include "base/os.h"
#include "ir/binary.h"
#include "ir/text.h"

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

tn_status tn_graph_save(const tn_graph *graph, const char *path) {
    if (!graph || !path)
        return tn_fail(TN_ERR_USAGE, !graph ? "graph is NULL" : "the path of a file to be written is NULL");
    if (ends_in(path, ".tenon"))
        return tn_graph_write_binary(graph, path);
    if (ends_in(path, ".txt"))
        return save_text(graph, path);
    tn_fail(TN_ERR_USAGE, "'%s': the name does not say in which form a graph is to be saved", path);
    tn_fail_hint("end it in .tenon (binary) or .txt (text)");
    return TN_ERR_USAGE;
}
