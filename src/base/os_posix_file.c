/* Reading and writing files, folders. */
#define _GNU_SOURCE
#include "base/error.h"
#include "base/os.h"
#include "base/os_posix.h"
#include "base/vec.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One call moves at most this much: some systems refuse more than INT_MAX. */
#define LARGEST_MOVE ((size_t)1 << 30)

/* ---- reading ---- */

long long tn_read_all(int fd, void *bytes, size_t size) {
    size_t done = 0;
    while (done < size) {
        size_t want = size - done < LARGEST_MOVE ? size - done : LARGEST_MOVE;
        ssize_t got = read(fd, (char *)bytes + done, want);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        done += (size_t)got;
    }
    return (long long)done;
}

char *tn_file_read(tn_heap *heap, const char *path, size_t *size) {
    struct stat info;
    int fd = tn_open_regular(path, &info);
    if (fd < 0)
        return NULL;
    /* The size is a hint: files of /proc say 0, others may grow meanwhile. */
    size_t room = (size_t)info.st_size + 1, length = 0;
    char *bytes = tn_alloc(heap, room);
    while (bytes) {
        long long got = tn_read_all(fd, bytes + length, room - length);
        if (got < 0) {
            tn_fail(TN_ERR_IO, "cannot read '%s': %s", path, tn_errno_text(errno));
            tn_free(heap, bytes);
            bytes = NULL;
            break;
        }
        length += (size_t)got;
        if (length < room) { /* the end, and room for the NUL */
            bytes[length] = '\0';
            *size = length;
            break;
        }
        room = room < 4096 ? 4096 : room * 2;
        char *grown = tn_realloc(heap, bytes, room);
        if (!grown)
            tn_free(heap, bytes);
        bytes = grown;
    }
    close(fd);
    return bytes;
}

/* ---- writing ---- */

struct tn_file_writer {
    tn_heap *heap;
    int fd;
    int failed;  /* errno of the first failure, 0: none */
    bool direct; /* into the device or pipe itself: no temporary file */
    bool hole;   /* the last bytes are zeros that were not written */
    char *path, *temporary;
};

static tn_status fail_write(const char *path, int code) {
    tn_fail(TN_ERR_IO, "cannot write '%s': %s", path, tn_errno_text(code));
    if (code == ENOSPC || code == EDQUOT)
        tn_fail_hint("make room or write to another folder");
    return TN_ERR_IO;
}

/* Whether `path` stands in a folder of the system's own (/dev, /proc), where links such as /dev/stdout mean what they
   point to and no file can be put in their place. */
static bool is_system_link(const char *path) {
    char folder[PATH_MAX], resolved[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) : 0;
    if (length == 0 || length >= sizeof folder)
        return false;
    memcpy(folder, path, length);
    folder[length] = '\0';
    if (!realpath(folder, resolved))
        return false;
    return strcmp(resolved, "/dev") == 0 || strncmp(resolved, "/dev/fd", 7) == 0 || strncmp(resolved, "/proc/", 6) == 0;
}

/* Opens a device or a pipe, without waiting for a reader. -1 with errno set. */
static int open_direct(const char *path) {
    int fd = open(path, O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) < 0) {
        int code = errno;
        close(fd);
        errno = code;
        return -1;
    }
    return fd;
}

/* Creates a file with a new name in the folder of writer->path; *mode is kept where it is not 0. */
static bool open_temporary(tn_file_writer *writer, mode_t mode) {
    static const char hex[] = "0123456789abcdef";
    const char *slash = strrchr(writer->path, '/');
    size_t folder = slash ? (size_t)(slash - writer->path) + 1 : 0;
    for (int attempt = 0; attempt < 100; attempt++) {
        char *name = writer->temporary + folder;
        memcpy(writer->temporary, writer->path, folder);
        memcpy(name, ".tenon-", 7);
        uint64_t random = tn_random_seed();
        for (int i = 0; i < 16; i++, random >>= 4)
            name[7 + i] = hex[random & 15];
        memcpy(name + 23, ".tmp", 5);
        writer->fd = open(writer->temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (writer->fd >= 0) {
            if (mode && fchmod(writer->fd, mode & 0777) != 0)
                errno = 0; /* a file system without modes: not an error of writing */
            return true;
        }
        if (errno != EEXIST && errno != EINTR)
            return false;
    }
    return false;
}

static void writer_free(tn_file_writer *writer) {
    tn_heap *heap = writer->heap;
    tn_free(heap, writer->path);
    tn_free(heap, writer->temporary);
    tn_free(heap, writer);
}

tn_file_writer *tn_file_writer_begin(tn_heap *heap, const char *path) {
    if (!path || !*path) {
        tn_fail(TN_ERR_USAGE, "an empty path was given where a file is to be written");
        return NULL;
    }
    tn_file_writer *writer = tn_alloc(heap, sizeof *writer);
    if (!writer)
        return NULL;
    writer->heap = heap;
    writer->fd = -1;
    writer->path = tn_strdup(heap, path);
    writer->temporary = writer->path ? tn_alloc(heap, strlen(path) + 32) : NULL;
    if (!writer->temporary) {
        writer_free(writer);
        return NULL;
    }
    struct stat info;
    bool exists = lstat(path, &info) == 0;
    mode_t type = exists ? info.st_mode : S_IFREG;
    bool opened = false;
    if (S_ISDIR(type) || path[strlen(path) - 1] == '/') {
        fail_write(path, EISDIR);
    } else if (S_ISBLK(type) || S_ISSOCK(type)) {
        tn_fail(TN_ERR_IO, "cannot write '%s': it is %s", path, tn_mode_text(type));
    } else if (S_ISREG(type) || (S_ISLNK(type) && !is_system_link(path))) {
        opened = open_temporary(writer, exists && S_ISREG(type) ? info.st_mode : 0);
        if (!opened)
            fail_write(path, errno);
    } else {
        writer->direct = true;
        writer->fd = open_direct(path);
        opened = writer->fd >= 0;
        if (!opened)
            fail_write(path, errno);
    }
    if (!opened) {
        writer_free(writer);
        return NULL;
    }
    return writer;
}

/* write(2) of everything; answers errno. A pipe whose reader has gone must not kill the process. */
static int write_all(int fd, const char *bytes, size_t size, bool direct) {
    sigset_t pipe_set, before, pending;
    bool was_pending = false;
    int code = 0;
    if (direct) {
        sigemptyset(&pipe_set);
        sigaddset(&pipe_set, SIGPIPE);
        was_pending = sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 1;
        pthread_sigmask(SIG_BLOCK, &pipe_set, &before);
    }
    while (size && code == 0) {
        ssize_t put = write(fd, bytes, size < LARGEST_MOVE ? size : LARGEST_MOVE);
        if (put > 0) {
            bytes += put;
            size -= (size_t)put;
        } else if (put == 0) {
            code = EIO;
        } else if (errno != EINTR) {
            code = errno;
        }
    }
    if (direct) {
        int signal_number;
        if (code == EPIPE && !was_pending && sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 1)
            sigwait(&pipe_set, &signal_number);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    return code;
}

tn_status tn_file_writer_write(tn_file_writer *writer, const void *bytes, size_t size) {
    if (!writer->failed)
        writer->failed = write_all(writer->fd, bytes, size, writer->direct);
    writer->hole = writer->hole && size == 0;
    return writer->failed ? fail_write(writer->path, writer->failed) : TN_OK;
}

tn_status tn_file_writer_zeros(tn_file_writer *writer, uint64_t size) {
    static const char zeros[4096];
    if (!writer->direct && !writer->failed && size && size <= INT64_MAX) {
        writer->hole = lseek(writer->fd, (off_t)size, SEEK_CUR) >= 0;
        if (writer->hole)
            return TN_OK;
    }
    while (size && !writer->failed) {
        size_t piece = size < sizeof zeros ? (size_t)size : sizeof zeros;
        tn_file_writer_write(writer, zeros, piece);
        size -= piece;
    }
    return writer->failed ? fail_write(writer->path, writer->failed) : TN_OK;
}

tn_status tn_file_writer_commit(tn_file_writer *writer) {
    int code = writer->failed;
    off_t end = writer->hole && code == 0 ? lseek(writer->fd, 0, SEEK_CUR) : 0;
    if (end < 0 || (end > 0 && ftruncate(writer->fd, end) != 0))
        code = errno;
    if (close(writer->fd) != 0 && code == 0 && errno != EINTR)
        code = errno;
    if (code == 0 && !writer->direct && rename(writer->temporary, writer->path) != 0)
        code = errno;
    if (code && !writer->direct)
        unlink(writer->temporary);
    tn_status status = code ? fail_write(writer->path, code) : TN_OK;
    writer_free(writer);
    return status;
}

void tn_file_writer_abort(tn_file_writer *writer) {
    if (!writer)
        return;
    close(writer->fd);
    if (!writer->direct)
        unlink(writer->temporary);
    writer_free(writer);
}

tn_status tn_file_write(const char *path, const void *bytes, size_t size) {
    tn_file_writer *writer = tn_file_writer_begin(NULL, path);
    if (!writer)
        return tn_error_status();
    tn_file_writer_write(writer, bytes, size); /* a failure stays with the writer */
    return tn_file_writer_commit(writer);
}

/* ---- folders ---- */

tn_path_kind tn_path_kind_of(const char *path) {
    struct stat info;
    if (!path || stat(path, &info) != 0)
        return TN_PATH_NONE;
    return S_ISREG(info.st_mode) ? TN_PATH_FILE : S_ISDIR(info.st_mode) ? TN_PATH_FOLDER : TN_PATH_OTHER;
}

static int by_bytes(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

tn_status tn_folder_list(tn_heap *heap, const char *path, char ***names, size_t *count) {
    TN_VEC(char *) list = {0};
    DIR *folder = opendir(path);
    if (!folder)
        return tn_fail(TN_ERR_IO, "cannot list '%s': %s", path, tn_errno_text(errno));
    bool memory = tn_vec_reserve(heap, &list, 1); /* an empty folder also gives an array to free */
    int code = 0;
    while (memory) {
        errno = 0;
        const struct dirent *entry = readdir(folder);
        if (!entry) {
            code = errno;
            break;
        }
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        char *name = tn_vec_reserve(heap, &list, 1) ? tn_strdup(heap, entry->d_name) : NULL;
        if (name)
            list.data[list.len++] = name;
        else
            memory = false;
    }
    closedir(folder);
    if (!memory || code) {
        for (uint32_t i = 0; i < list.len; i++)
            tn_free(heap, list.data[i]);
        tn_vec_free(heap, &list);
        return memory ? tn_fail(TN_ERR_IO, "cannot list '%s': %s", path, tn_errno_text(code)) : tn_error_status();
    }
    qsort(list.data, list.len, sizeof *list.data, by_bytes);
    *names = list.data;
    *count = list.len;
    return TN_OK;
}

tn_status tn_folder_make(const char *path) {
    char part[PATH_MAX];
    size_t length = path ? strlen(path) : 0;
    if (length == 0)
        return tn_fail(TN_ERR_USAGE, "an empty path was given where a folder is to be made");
    if (length >= sizeof part)
        return tn_fail(TN_ERR_IO, "cannot make the folder '%.400s...': %s", path, tn_errno_text(ENAMETOOLONG));
    for (size_t end = 1; end <= length; end++) {
        if (end < length && path[end] != '/')
            continue;
        memcpy(part, path, end);
        part[end] = '\0';
        int code = mkdir(part, 0777) == 0 ? 0 : errno;
        if (!code || tn_path_kind_of(part) == TN_PATH_FOLDER)
            continue;
        tn_path_kind kind = tn_path_kind_of(part);
        if (kind == TN_PATH_NONE) {
            tn_fail(TN_ERR_IO, "cannot make the folder '%s': %s", part, tn_errno_text(code));
            tn_fail_hint("a folder can be made where you may write");
            return TN_ERR_IO;
        }
        tn_fail(TN_ERR_IO, "'%s' is %s, and a folder is needed there", part,
                kind == TN_PATH_FILE ? "a file" : "a device or another special file");
        if (end < length)
            tn_fail_where("to make the folder '%s'", path);
        tn_fail_hint("give the path of a folder, or of one that can be made");
        return TN_ERR_IO;
    }
    return TN_OK;
}
