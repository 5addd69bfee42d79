/* Status codes and the per-thread error message. */
#ifndef TENON_STATUS_H
#define TENON_STATUS_H

#include <tenon/api.h>

TN_BEGIN_DECLS

/* What a call answers. Every function that can fail returns one of these or a null handle / NULL pointer;
   the message of the last failure of the calling thread is then available below. */
typedef enum tn_status {
    TN_OK = 0,
    TN_ERR_FAILED,      /* the answer is no: an assert node failed, outputs differ */
    TN_ERR_USAGE,       /* a wrong call: NULL, bad option, calls out of order, changing a frozen graph */
    TN_ERR_MODEL,       /* the model (graph, file) is malformed */
    TN_ERR_INPUT,       /* data fed at run time is wrong: missing, dtype, rank, size, index out of range */
    TN_ERR_UNSUPPORTED, /* well formed, but not supported: X (op, node, version) */
    TN_ERR_LIMIT,       /* a stated limit (bytes, operations, nesting, size) would be exceeded */
    TN_ERR_MEMORY,      /* the allocator answered NULL */
    TN_ERR_IO,          /* cannot read or write */
    TN_ERR_CANCELLED,   /* a cancel token was set, or the session was destroyed during the run */
    TN_ERR_INTERNAL     /* an invariant of Tenon is broken: a bug, please report */
} tn_status;

/* Short lower-case name of a status ("ok", "bad model"); never NULL. */
TN_API const char *tn_status_name(tn_status status);

/* The last error of this thread, as one block: "what\n  where: ...\n  hint: ...". Empty string when there was none.
   Owned by the library, valid until the next failing call on this thread. Never allocates. */
TN_API const char *tn_error_message(void);
/* Its parts; each may be the empty string. `where` may hold several lines. */
TN_API const char *tn_error_what(void);
TN_API const char *tn_error_where(void);
TN_API const char *tn_error_hint(void);
/* Its status (TN_OK when there was none), and forgetting it. */
TN_API tn_status tn_error_status(void);
TN_API void tn_error_clear(void);

TN_END_DECLS
#endif
