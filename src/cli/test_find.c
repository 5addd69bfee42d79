/* Finding test folders: those with model.onnx, or with a data.json that names a model of a sibling light/. */
#include "cli/test_find.h"

#include <fnmatch.h>
#include <string.h>

#include "base/error.h"
#include "base/os.h"
#include "cli/json.h"

#define MAX_DEPTH 40 /* links may go round in circles */

static char *join(const char *folder, const char *between, const char *name) {
    tn_text path;
    tn_text_init(&path, NULL);
    tn_text_printf(&path, "%s/%s%s", folder, between, name);
    if (!path.failed)
        return path.data;
    tn_text_free(&path);
    return NULL;
}

static bool wanted(const char *folder, const char *filter) {
    if (!filter)
        return true;
    const char *slash = strrchr(folder, '/');
    return fnmatch(filter, strchr(filter, '/') || !slash ? folder : slash + 1, 0) == 0;
}

static tn_status add(const char *folder, char *model, bool light, tn_test_list *tests) {
    tn_test test = {.folder = tn_strdup(NULL, folder), .model = model, .light = light};
    if (test.folder && tn_vec_push(NULL, tests, test))
        return TN_OK;
    tn_free(NULL, test.folder);
    tn_free(NULL, model);
    return TN_ERR_MEMORY;
}

/* The light model that a data.json names: *model NULL when it is not here, *is_test false when the file is none of ours. */
static tn_status find_light(const char *folder, const char *data, char **model, bool *is_test) {
    size_t size;
    char *bytes = tn_file_read(NULL, data, &size);
    if (!bytes)
        return tn_error_status();
    tn_arena arena;
    tn_arena_init(&arena, NULL);
    const tn_json *url = tn_json_get(tn_json_parse(&arena, bytes, size), "url");
    const char *name = url && url->kind == TN_JSON_STRING ? url->text : "";
    name = strrchr(name, '/') ? strrchr(name, '/') + 1 : name;
    size_t length = strlen(name);
    *model = NULL;
    *is_test = length > 5 && strcmp(name + length - 5, ".onnx") == 0;
    static const char *const places[] = {"light/", "../light/", "../../light/"};
    for (size_t i = 0; *is_test && !*model && i < sizeof places / sizeof *places; i++) {
        char *path = join(folder, places[i], name);
        if (path && tn_path_kind_of(path) == TN_PATH_FILE)
            *model = path;
        else
            tn_free(NULL, path);
    }
    tn_arena_free(&arena);
    tn_free(NULL, bytes);
    return TN_OK;
}

static tn_status search(const char *folder, const char *filter, int depth, tn_test_list *tests) {
    char *model = join(folder, "", "model.onnx"), *data = join(folder, "", "data.json");
    tn_status status = model && data ? TN_OK : TN_ERR_MEMORY;
    bool is_test = false;
    if (status == TN_OK && tn_path_kind_of(model) != TN_PATH_NONE) {
        is_test = true;
        if (wanted(folder, filter)) {
            status = add(folder, model, false, tests);
            model = NULL;
        }
    } else if (status == TN_OK && tn_path_kind_of(data) == TN_PATH_FILE) {
        char *light = NULL;
        status = find_light(folder, data, &light, &is_test);
        if (status == TN_OK && is_test && wanted(folder, filter))
            status = add(folder, light, true, tests);
        else
            tn_free(NULL, light);
    }
    tn_free(NULL, model);
    tn_free(NULL, data);
    if (status != TN_OK || is_test || depth == MAX_DEPTH)
        return status;
    char **names;
    size_t count;
    TN_TRY(tn_folder_list(NULL, folder, &names, &count));
    for (size_t i = 0; i < count; i++) {
        char *path = status == TN_OK ? join(folder, "", names[i]) : NULL;
        if (path && tn_path_kind_of(path) == TN_PATH_FOLDER)
            status = search(path, filter, depth + 1, tests);
        tn_free(NULL, path);
        tn_free(NULL, names[i]);
    }
    tn_free(NULL, names);
    return status;
}

tn_status tn_test_find(const char *root, const char *filter, tn_test_list *tests) {
    tn_path_kind kind = tn_path_kind_of(root);
    if (kind == TN_PATH_NONE)
        return tn_fail(TN_ERR_IO, "there is no folder '%s'", root);
    if (kind != TN_PATH_FOLDER) {
        tn_fail(TN_ERR_IO, "'%s' is no folder", root);
        tn_fail_hint("give the folder that holds model.onnx, or one above it");
        return TN_ERR_IO;
    }
    size_t length = strlen(root);
    while (length > 1 && root[length - 1] == '/')
        length--;
    char *folder = tn_strndup(NULL, root, length);
    tn_status status = folder ? search(folder, filter, 0, tests) : TN_ERR_MEMORY;
    tn_free(NULL, folder);
    return status;
}

void tn_test_list_free(tn_test_list *tests) {
    for (uint32_t i = 0; i < tests->len; i++) {
        tn_free(NULL, tests->data[i].folder);
        tn_free(NULL, tests->data[i].model);
    }
    tn_vec_free(NULL, tests);
}
