/* Setting the per-thread error message (fixed thread-local buffers: reporting never allocates).

   Formats take integers and strings only ("%d", "%s", "%zu", PRId64): printf's floats depend on the locale; use
   tn_format_f64 from number.h. What the user gave may be hostile: control characters and invalid UTF-8 in %s arguments
   are shown escaped when the message is read. */
#ifndef TN_BASE_ERROR_H
#define TN_BASE_ERROR_H

#include <tenon/status.h>

/* Starts a new error: sets status and `what`, clears where and hint. Returns `status` so callers can `return tn_fail(...)`. */
tn_status tn_fail(tn_status status, const char *format, ...) TN_PRINTF(2, 3);
/* Adds a line to `where` of the current error (outermost last). */
void tn_fail_where(const char *format, ...) TN_PRINTF(1, 2);
/* Sets the hint of the current error if it has none yet: what would be right. */
void tn_fail_hint(const char *format, ...) TN_PRINTF(1, 2);

/* A saved copy of the thread's error, for sticky errors of objects. ~4 KB, fixed size. */
typedef struct tn_error_record {
    tn_status status;
    char what[1024], where[2048], hint[512];
} tn_error_record;
void tn_error_save(tn_error_record *out);
tn_status tn_error_restore(const tn_error_record *record); /* makes it this thread's error again; returns its status */

#ifdef __clang_analyzer__
/* The analyser sees one file at a time: it has to be told that a failure's status is never TN_OK. */
static inline tn_status tn_not_ok(tn_status status) {
    return status != TN_OK ? status : TN_ERR_INTERNAL;
}
#define tn_error_status() tn_not_ok((tn_error_status)())
#define tn_fail(...) tn_not_ok((tn_fail)(__VA_ARGS__))
#endif

#define TN_TRY(expr)                       \
    do {                                   \
        tn_status tn_try_status_ = (expr); \
        if (tn_try_status_ != TN_OK)       \
            return tn_try_status_;         \
    } while (0)

#endif
