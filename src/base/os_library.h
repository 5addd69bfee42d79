/* Shared libraries loaded at run time. */
#ifndef TN_BASE_OS_LIBRARY_H
#define TN_BASE_OS_LIBRARY_H

#include "base/heap.h"

typedef struct tn_library tn_library;
/* Loads a file, its symbols visible to nobody else. NULL with the error set: TN_ERR_IO when there is no such file, TN_ERR_INPUT
   with the system's reason when it is no library, or lacks what it needs. Never searches: a path without '/' is one in the
   working folder. */
tn_library *tn_library_open(tn_heap *heap, const char *path);
void tn_library_close(tn_library *library);
/* The address of data or of a function (which the caller converts); NULL: it exports no such name. */
void *tn_library_data(const tn_library *library, const char *name);
typedef void tn_library_code(void);
tn_library_code *tn_library_function(const tn_library *library, const char *name);

/* The folder of the file, program or shared library, that this code runs from. An allocated text; NULL with the error set. */
char *tn_library_own_folder(tn_heap *heap);

#endif
