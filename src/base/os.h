/* Everything that asks the operating system: files, mappings, time, CPUs. Implemented in os_*.c only. */
#ifndef TN_BASE_OS_H
#define TN_BASE_OS_H

#include "base/heap.h"

/* A read-only mapping of a regular file, reference-counted. Refuses folders, FIFOs, devices (TN_ERR_IO), never blocks.
   An empty file maps to size 0 with non-NULL data. */
typedef struct tn_mapping tn_mapping;
tn_mapping *tn_mapping_open(tn_heap *heap, const char *path); /* NULL with the error set */
/* Opens `relative` inside `folder`, for external data of a model: refuses absolute paths, "..", NUL, empty names, and
   anything that a symbolic link or hard link would bring from outside the folder (resolved path must stay inside; link
   count must be 1). TN_ERR_MODEL when the path is not allowed, TN_ERR_IO when it can't be opened. Never opens what it refuses. */
tn_mapping *tn_mapping_open_inside(tn_heap *heap, const char *folder, const char *relative, size_t relative_length);
void tn_mapping_retain(tn_mapping *mapping);
void tn_mapping_release(tn_mapping *mapping);
const uint8_t *tn_mapping_data(const tn_mapping *mapping);
size_t tn_mapping_size(const tn_mapping *mapping);
const char *tn_mapping_path(const tn_mapping *mapping);
/* Whether file size and modification time are still those of when it was mapped. A file that was removed, or replaced by
   another one (as tn_file_write does), is unchanged: the mapping keeps what it mapped. */
bool tn_mapping_unchanged(const tn_mapping *mapping);
/* These bytes are not needed soon: they may leave memory, and come back from the file when they are read again. */
void tn_mapping_forget(const tn_mapping *mapping, const void *bytes, size_t size);

/* Reads a whole regular file into a heap block (*size bytes and a NUL). */
char *tn_file_read(tn_heap *heap, const char *path, size_t *size);
/* Writes through a temporary file in the same folder, fsync-free, then renames: nothing is half-written. Never follows
   an existing link at `path`: replaces it (links of the system's own such as /dev/stdout are followed). A device or FIFO
   at `path` is written to directly, without waiting for a reader. */
tn_status tn_file_write(const char *path, const void *bytes, size_t size);
/* The same in pieces: begin, any number of writes, then commit or abort (abort removes the temporary file). */
typedef struct tn_file_writer tn_file_writer;
tn_file_writer *tn_file_writer_begin(tn_heap *heap, const char *path);
tn_status tn_file_writer_write(tn_file_writer *writer, const void *bytes, size_t size);
/* `size` zero bytes; a hole where the file system has them. */
tn_status tn_file_writer_zeros(tn_file_writer *writer, uint64_t size);
tn_status tn_file_writer_commit(tn_file_writer *writer); /* frees the writer in any case */
void tn_file_writer_abort(tn_file_writer *writer);

typedef enum tn_path_kind { TN_PATH_NONE, TN_PATH_FILE, TN_PATH_FOLDER, TN_PATH_OTHER } tn_path_kind;
tn_path_kind tn_path_kind_of(const char *path);
/* Names in a folder, sorted by bytes, "." and ".." left out. Free each and the array with tn_free. */
tn_status tn_folder_list(tn_heap *heap, const char *path, char ***names, size_t *count);
tn_status tn_folder_make(const char *path); /* with parents; existing is fine */

uint64_t tn_random_seed(void); /* unpredictable bits, for seeding hashes; never for results */
double tn_clock(void);         /* seconds, monotonic */
/* A counter of constant rate that is cheaper to read: the processor's where it has one, else nanoseconds. */
uint64_t tn_ticks(void);
int tn_cpu_count(void); /* CPUs this process may use: affinity and cgroup quota (v1, v2), at least 1 */
/* The same from a given root, for tests with fixture files: reads <root>/sys/fs/cgroup..., <root>/proc/self/cgroup. 0: no quota found. */
int tn_cpu_quota(const char *root);
size_t tn_page_size(void);
/* Asks for large pages where the block is mapped anew: a hundredth of the page faults. A wish: nothing fails. */
void tn_memory_prefer_large_pages(void *block, size_t size);
uint64_t tn_memory_bytes(void); /* of this machine; 0 if unknown */
size_t tn_rss_bytes(void);      /* resident set now; 0 if unknown */
size_t tn_peak_rss_bytes(void);

/* Instruction-set levels, lowest first. */
typedef enum tn_isa {
    TN_ISA_GENERIC,
    TN_ISA_AVX2,
    TN_ISA_AVX512,
    TN_ISA_AVX512_VNNI,
    TN_ISA_NEON,
    TN_ISA_COUNT
} tn_isa;
bool tn_cpu_has(tn_isa isa);
tn_isa tn_cpu_best(void);
const char *tn_isa_name(tn_isa isa);

#endif
