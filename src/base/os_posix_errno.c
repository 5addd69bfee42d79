/* Names for what the system answers; strerror depends on the locale and may allocate. */
#define _GNU_SOURCE
#include "base/os_posix.h"

#include <errno.h>

const char *tn_errno_text(int code) {
    switch (code) {
    case ENOENT: return "no such file or folder";
    case EACCES: return "permission denied";
    case EPERM: return "not permitted";
    case EISDIR: return "it is a folder";
    case ENOTDIR: return "a part of the path is not a folder";
    case EEXIST: return "it exists already";
    case ELOOP: return "too many symbolic links";
    case ENAMETOOLONG: return "the name is too long";
    case ENOSPC: return "no space left on the device";
    case EDQUOT: return "the disk quota is used up";
    case EFBIG: return "the file is too large";
    case EROFS: return "the file system is read-only";
    case EMFILE: return "this process has too many files open";
    case ENFILE: return "the system has too many files open";
    case ENOMEM: return "out of memory";
    case EIO: return "the device failed";
    case EPIPE: return "the reader has gone";
    case ENXIO: return "nobody is at the other end";
    case EINVAL: return "invalid argument";
    case EAGAIN: return "it is not ready";
    case EBUSY: return "it is busy";
    case ETXTBSY: return "it is being executed";
    case ENOTEMPTY: return "the folder is not empty";
    case EXDEV: return "it is on another file system";
    case EOVERFLOW: return "the file is too large for this system";
    case ENODEV: return "it cannot be mapped";
    case ENOTSUP: return "the file system does not support it";
    case ESTALE: return "the network file has gone";
    case ETIMEDOUT: return "timed out";
    default: return "the system refused";
    }
}

const char *tn_mode_text(mode_t mode) {
    return S_ISREG(mode)    ? "a regular file"
           : S_ISDIR(mode)  ? "a folder"
           : S_ISFIFO(mode) ? "a FIFO"
           : S_ISCHR(mode)  ? "a character device"
           : S_ISBLK(mode)  ? "a block device"
           : S_ISSOCK(mode) ? "a socket"
           : S_ISLNK(mode)  ? "a symbolic link"
                            : "a special file";
}
