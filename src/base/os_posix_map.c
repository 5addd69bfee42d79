/* Read-only mappings of files, and the rules for files that a model names. */
#define _GNU_SOURCE
#include "base/error.h"
#include "base/os.h"
#include "base/os_posix.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef O_CLOEXEC
#define O_CLOEXEC 0
#endif
#define OPEN_FLAGS (O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

/* What identifies a state of a file. */
typedef struct stamp {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec modified;
} stamp;

struct tn_mapping {
    tn_heap *heap;
    atomic_size_t references;
    void *data; /* NULL for an empty file */
    size_t size;
    stamp stamp;
    char path[];
};

static stamp stamp_of(const struct stat *info) {
#if defined(__APPLE__)
    return (stamp){info->st_dev, info->st_ino, info->st_size, info->st_mtimespec};
#else
    return (stamp){info->st_dev, info->st_ino, info->st_size, info->st_mtim};
#endif
}

static void fail_not_regular(tn_status status, const char *path, mode_t mode) {
    tn_fail(status, "cannot read '%s': it is %s", path, tn_mode_text(mode));
    tn_fail_hint("give the path of a regular file");
}

int tn_open_regular(const char *path, struct stat *info) {
    if (!path || !*path) {
        tn_fail(TN_ERR_USAGE, "an empty path was given where a file is to be read");
        return -1;
    }
    if (stat(path, info) != 0) { /* looked at before it is opened: opening some devices does something */
        tn_fail(TN_ERR_IO, "cannot read '%s': %s", path, tn_errno_text(errno));
        return -1;
    }
    if (!S_ISREG(info->st_mode)) {
        fail_not_regular(TN_ERR_IO, path, info->st_mode);
        return -1;
    }
    int fd;
    do
        fd = open(path, OPEN_FLAGS);
    while (fd < 0 && errno == EINTR);
    if (fd < 0 || fstat(fd, info) != 0) {
        tn_fail(TN_ERR_IO, "cannot read '%s': %s", path, tn_errno_text(errno));
        if (fd >= 0)
            close(fd);
        return -1;
    }
    if (!S_ISREG(info->st_mode)) { /* replaced in between */
        fail_not_regular(TN_ERR_IO, path, info->st_mode);
        close(fd);
        return -1;
    }
    return fd;
}

/* Maps the open file `fd` and closes it. */
static tn_mapping *map_fd(tn_heap *heap, int fd, const struct stat *info, const char *path) {
    size_t path_size = strlen(path) + 1;
    tn_mapping *mapping = NULL;
    if (info->st_size < 0 || (uint64_t)info->st_size > PTRDIFF_MAX)
        tn_fail(TN_ERR_LIMIT, "cannot read '%s': %s", path, tn_errno_text(EOVERFLOW));
    else
        mapping = tn_alloc(heap, sizeof *mapping + path_size);
    if (mapping) {
        mapping->heap = heap;
        mapping->size = (size_t)info->st_size;
        mapping->stamp = stamp_of(info);
        atomic_init(&mapping->references, 1);
        memcpy(mapping->path, path, path_size);
        if (mapping->size) {
            mapping->data = mmap(NULL, mapping->size, PROT_READ, MAP_PRIVATE, fd, 0);
            if (mapping->data == MAP_FAILED) {
                tn_fail(errno == ENOMEM ? TN_ERR_MEMORY : TN_ERR_IO, "cannot map '%s' (%zu bytes): %s", path,
                        mapping->size, tn_errno_text(errno));
                tn_free(heap, mapping);
                mapping = NULL;
            }
        }
    }
    close(fd);
    return mapping;
}

tn_mapping *tn_mapping_open(tn_heap *heap, const char *path) {
    struct stat info;
    int fd = tn_open_regular(path, &info);
    return fd < 0 ? NULL : map_fd(heap, fd, &info, path);
}

/* ---- files that a model names ---- */

#define OUTSIDE_HINT "external data must be a relative path to a regular file inside the model's folder"

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Why the text of a path is refused, or NULL. Backslashes count as separators here: a model may come from Windows. */
static const char *refused_text(const char *path, size_t length) {
    if (length == 0)
        return "it is empty";
    if (memchr(path, '\0', length))
        return "it contains a zero byte";
    if (length >= PATH_MAX)
        return "it is too long";
    if (path[0] == '/' || path[0] == '\\' || (length >= 2 && path[1] == ':' && is_letter(path[0])))
        return "it is an absolute path";
    if (path[length - 1] == '/')
        return "it names a folder";
    for (size_t start = 0, i = 0; i <= length; i++)
        if (i == length || path[i] == '/' || path[i] == '\\') {
            if (i - start == 2 && path[start] == '.' && path[start + 1] == '.')
                return "it goes through '..'";
            start = i + 1;
        }
    return NULL;
}

/* A path cut to a length that leaves room for the rest of a message. */
#define SHOWN 400

static void refuse(const char *path, size_t length, const char *folder, const char *why) {
    size_t shown = 0; /* a zero byte ends what printf shows; the reason names it */
    while (shown < length && shown < SHOWN && path[shown])
        shown++;
    tn_fail(TN_ERR_MODEL, "external data '%.*s' is not allowed: %s", (int)shown, path, why);
    tn_fail_where("folder '%s'", folder);
    tn_fail_hint(OUTSIDE_HINT);
}

static tn_mapping *fail_open(const char *path, const char *folder, int code) {
    tn_fail(TN_ERR_IO, "cannot open external data '%.400s': %s", path, tn_errno_text(code));
    tn_fail_where("folder '%s'", folder);
    tn_fail_hint("the file must stand beside the model as '%.300s'", path);
    return NULL;
}

/* Opens `inside` (components that were resolved: no links, no "..") below the folder `base` without following any link,
   so that nothing exchanged meanwhile leads elsewhere. Refuses all but regular files with one name, before opening. */
static int open_resolved(const char *base, char *inside, const char *relative, const char *folder, struct stat *info) {
    int at = open(base, OPEN_FLAGS | O_DIRECTORY | O_NOFOLLOW);
    for (char *part = inside, *slash; at >= 0; part = slash + 1) {
        slash = strchr(part, '/');
        if (slash)
            *slash = '\0';
        else {
            struct stat seen;
            int fd = -1;
            if (fstatat(at, part, &seen, AT_SYMLINK_NOFOLLOW) != 0) {
                fail_open(relative, folder, errno);
            } else if (!S_ISREG(seen.st_mode)) {
                char why[64];
                snprintf(why, sizeof why, "it is %s", tn_mode_text(seen.st_mode));
                refuse(relative, strlen(relative), folder, why);
            } else if (seen.st_nlink != 1) {
                refuse(relative, strlen(relative), folder,
                       "the file has a hard link, which may be from outside the folder");
            } else if ((fd = openat(at, part, OPEN_FLAGS | O_NOFOLLOW)) < 0) {
                fail_open(relative, folder, errno);
            } else if (fstat(fd, info) != 0 || info->st_ino != seen.st_ino || info->st_dev != seen.st_dev ||
                       !S_ISREG(info->st_mode) || info->st_nlink != 1) {
                refuse(relative, strlen(relative), folder, "it was exchanged while it was opened");
                close(fd);
                fd = -1;
            }
            close(at);
            return fd;
        }
        int next = openat(at, part, OPEN_FLAGS | O_DIRECTORY | O_NOFOLLOW), code = errno;
        close(at);
        at = next;
        errno = code;
    }
    fail_open(relative, folder, errno);
    return -1;
}

tn_mapping *tn_mapping_open_inside(tn_heap *heap, const char *folder, const char *relative, size_t relative_length) {
    char base[PATH_MAX], name[PATH_MAX], joined[PATH_MAX], resolved[PATH_MAX];
    if (!folder || !*folder)
        folder = ".";
    const char *why = refused_text(relative, relative_length);
    if (why) {
        refuse(relative, relative_length, folder, why);
        return NULL;
    }
    memcpy(name, relative, relative_length);
    name[relative_length] = '\0';
    if (!realpath(folder, base))
        return fail_open(name, folder, errno);
    size_t base_length = strcmp(base, "/") == 0 ? 0 : strlen(base);
    if (base_length + 1 + relative_length >= sizeof joined) {
        refuse(relative, relative_length, folder, "with its folder it is too long");
        return NULL;
    }
    memcpy(joined, base, base_length);
    joined[base_length] = '/';
    memcpy(joined + base_length + 1, name, relative_length + 1);
    if (!realpath(joined, resolved))
        return fail_open(name, folder, errno);
    if (strcmp(resolved, base) == 0) {
        refuse(name, relative_length, folder, "it is a folder");
        return NULL;
    }
    if (strncmp(resolved, base, base_length) != 0 || resolved[base_length] != '/') {
        refuse(name, relative_length, folder, "a symbolic link in it leads outside the folder");
        return NULL;
    }
    struct stat info;
    int fd = open_resolved(base, resolved + base_length + 1, name, folder, &info);
    return fd < 0 ? NULL : map_fd(heap, fd, &info, joined);
}

/* ---- use ---- */

void tn_mapping_retain(tn_mapping *mapping) {
    atomic_fetch_add_explicit(&mapping->references, 1, memory_order_relaxed);
}

void tn_mapping_release(tn_mapping *mapping) {
    if (!mapping || atomic_fetch_sub(&mapping->references, 1) != 1)
        return;
    if (mapping->data)
        munmap(mapping->data, mapping->size);
    tn_free(mapping->heap, mapping);
}

const uint8_t *tn_mapping_data(const tn_mapping *mapping) {
    static const uint8_t nothing[1];
    return mapping->data ? mapping->data : nothing;
}

size_t tn_mapping_size(const tn_mapping *mapping) {
    return mapping->size;
}

const char *tn_mapping_path(const tn_mapping *mapping) {
    return mapping->path;
}

void tn_mapping_forget(const tn_mapping *mapping, const void *bytes, size_t size) {
    uintptr_t page = tn_page_size(), begin = (uintptr_t)bytes, end = begin + size;
    uintptr_t first = (uintptr_t)mapping->data, last = first + mapping->size;
    begin = (begin + page - 1) / page * page;
    end = end / page * page;
    if (begin >= first && end <= last && begin < end)
        (void)madvise((void *)begin, end - begin, MADV_DONTNEED); /* read-only and private: nothing is lost */
}

void tn_memory_prefer_large_pages(void *block, size_t size) {
#ifdef MADV_HUGEPAGE
    uintptr_t page = tn_page_size(), begin = ((uintptr_t)block + page - 1) / page * page;
    uintptr_t end = ((uintptr_t)block + size) / page * page;
    if (begin < end)
        (void)madvise((void *)begin, end - begin, MADV_HUGEPAGE);
#else
    (void)block, (void)size;
#endif
}

bool tn_mapping_unchanged(const tn_mapping *mapping) {
    struct stat info;
    if (stat(mapping->path, &info) != 0)
        return true; /* removed: the mapping keeps the file as it was */
    stamp now = stamp_of(&info), then = mapping->stamp;
    if (now.device != then.device || now.inode != then.inode)
        return true; /* another file took its place: likewise */
    return now.size == then.size && now.modified.tv_sec == then.modified.tv_sec &&
           now.modified.tv_nsec == then.modified.tv_nsec;
}
