/* Shared libraries, by dlopen. */
#define _GNU_SOURCE
#include "base/os_library.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/os.h"

struct tn_library {
    tn_heap *heap;
    void *handle;
};

tn_library *tn_library_open(tn_heap *heap, const char *path) {
    if (tn_path_kind_of(path) != TN_PATH_FILE) {
        tn_fail(TN_ERR_IO, "cannot load '%s': %s", path,
                tn_path_kind_of(path) == TN_PATH_NONE ? "there is no such file" : "it is no file");
        return NULL;
    }
    size_t length = strlen(path);
    char *name = tn_alloc(heap, length + 3);
    tn_library *library = tn_alloc(heap, sizeof *library);
    if (name && library) {
        bool bare = !strchr(path, '/');
        memcpy(name, "./", 2);
        memcpy(name + (bare ? 2 : 0), path, length + 1);
        library->heap = heap;
        library->handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
        if (!library->handle) {
            const char *why = dlerror();
            tn_fail(TN_ERR_INPUT, "cannot load '%s': %s", path, why ? why : "the system does not say why");
        }
    }
    tn_free(heap, name);
    if (library && library->handle)
        return library;
    tn_free(heap, library);
    return NULL;
}

void tn_library_close(tn_library *library) {
    if (!library)
        return;
    dlclose(library->handle);
    tn_free(library->heap, library);
}

void *tn_library_data(const tn_library *library, const char *name) {
    return dlsym(library->handle, name);
}

tn_library_code *tn_library_function(const tn_library *library, const char *name) {
    tn_library_code *code = NULL;
    void *address = dlsym(library->handle, name);
    memcpy(&code, &address, sizeof code); /* POSIX: both have one representation */
    return code;
}

char *tn_library_own_folder(tn_heap *heap) {
    static const char here; /* lies in that file */
    Dl_info info;
    char path[4096] = "";
    ssize_t n = 0;
    bool found = dladdr(&here, &info) && info.dli_fname;
    const char *name = found ? info.dli_fname : "";
    if (!strstr(name, ".so")) /* a program: what it was called by need not be a path */
        n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n > 0) {
        path[n] = 0;
        name = path;
    }
    const char *slash = strrchr(name, '/');
    size_t length = slash ? (size_t)(slash - name) : 1;
    char *folder = tn_alloc(heap, length + 1);
    if (folder)
        memcpy(folder, slash ? name : ".", length);
    return folder;
}
