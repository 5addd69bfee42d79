/* Plugins: shared libraries that add operators to a set. */
#include "base/os_library.h"
#include "ops/custom.h"

static tn_status check_version(const tn_library *library, const char *path) {
    const uint32_t *abi = tn_library_data(library, "tn_plugin_abi");
    if (!abi || !tn_library_function(library, "tn_plugin_register")) {
        tn_fail(TN_ERR_INPUT, "'%s' is no plugin: it does not export %s", path,
                abi ? "tn_plugin_register" : "tn_plugin_abi");
        tn_fail_hint("define both with TN_PLUGIN of <tenon/custom.h>");
        return TN_ERR_INPUT;
    }
    if (*abi == TN_PLUGIN_ABI)
        return TN_OK;
    tn_fail(TN_ERR_UNSUPPORTED, "not supported: plugin '%s' has interface version %u, this is version %d", path,
            (unsigned)*abi, TN_PLUGIN_ABI);
    tn_fail_hint("compile it with the headers of tenon %s", tn_version());
    return TN_ERR_UNSUPPORTED;
}

static tn_status register_rows(tn_op_set *ops, const tn_library *library, const char *path) {
    TN_TRY(check_version(library, path));
    tn_status (*add)(tn_op_set *) = (tn_status(*)(tn_op_set *))tn_library_function(library, "tn_plugin_register");
    tn_error_clear();
    tn_status status = add(ops);
    if (status == TN_OK)
        return TN_OK;
    if (tn_error_status() == TN_OK)
        tn_fail(status > TN_OK && status <= TN_ERR_INTERNAL ? status : TN_ERR_FAILED,
                "the plugin failed and does not say why");
    tn_fail_where("plugin %s", path);
    return tn_error_status();
}

tn_status tn_op_set_load(tn_op_set *ops, const char *path) {
    if (!ops || !path)
        return tn_fail(TN_ERR_USAGE, "tn_op_set_load: the %s is NULL", ops ? "path" : "set");
    tn_library *library = tn_library_open(ops->heap, path);
    if (!library)
        return tn_error_status();
    uint32_t rows = ops->rows.len;
    tn_status status = register_rows(ops, library, path);
    if (status == TN_OK && !tn_vec_push(ops->heap, &ops->libraries, library))
        status = tn_error_status();
    if (status == TN_OK)
        return TN_OK;
    ops->rows.len = rows;
    tn_library_close(library);
    return status;
}

void tn_op_set_destroy(tn_op_set *ops) {
    if (!ops)
        return;
    for (uint32_t i = 0; i < ops->libraries.len; i++)
        tn_library_close(ops->libraries.data[i]);
    tn_vec_free(ops->heap, &ops->libraries);
    tn_vec_free(ops->heap, &ops->rows);
    tn_arena_free(&ops->arena);
    tn_mutex_destroy(ops->heap, ops->mutex);
    tn_free(ops->heap, ops);
}
