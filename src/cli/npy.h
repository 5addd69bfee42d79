/* NumPy's files: .npy (read and written) and .npz (read). */
#ifndef TN_CLI_NPY_H
#define TN_CLI_NPY_H

#include "base/buffer.h"
#include "ir/tensor.h"

/* The array of an .npy file in memory. `wanted` is the dtype the model expects: raw bytes ('V2', 'V1') are taken for it, and small
   integers for its sub-byte kind; any other dtype is taken as it is (TN_DTYPE_NONE: nothing is expected). `mapping`: that the
   bytes lie in, kept by the tensor; NULL: the data is copied. NULL with the error set (TN_ERR_INPUT, TN_ERR_UNSUPPORTED). */
tn_tensor *tn_npy_read(tn_heap *heap, const void *bytes, size_t size, tn_mapping *mapping, tn_dtype wanted);
/* Writes a tensor to a file; f16 and up as NumPy's own types, bf16 and 8-bit floats as raw bytes ('V2', 'V1'), sub-byte integers
   widened to 8 bits, strings as 'U'. */
tn_status tn_npy_write_file(const char *path, tn_tensor *tensor);

/* One array of an .npz: its name without ".npy", and its bytes. */
typedef struct tn_npz_entry {
    const char *name; /* not NUL-terminated */
    size_t name_length;
    const uint8_t *bytes;
    size_t size;
} tn_npz_entry;
/* All entries, in an array to be freed with tn_free. They point into `bytes`. */
tn_status tn_npz_list(tn_heap *heap, const void *bytes, size_t size, tn_npz_entry **entries, uint32_t *count);

#endif
