/* Shared by the os_posix_*.c files only. */
#ifndef TN_BASE_OS_POSIX_H
#define TN_BASE_OS_POSIX_H

#include <stddef.h>
#include <sys/stat.h>

/* What an errno means, in words that do not depend on the locale. */
const char *tn_errno_text(int code);
/* "a folder", "a FIFO", ... */
const char *tn_mode_text(mode_t mode);
/* Opens an existing regular file for reading without ever blocking or waking up a device. -1 with the error set. */
int tn_open_regular(const char *path, struct stat *info);
/* Reads at most `size` bytes, fewer only at the end of the file. -1 with errno set. */
long long tn_read_all(int fd, void *bytes, size_t size);

#endif
