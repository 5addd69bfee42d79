/* Linkage, visibility and the conventions shared by all public headers.

   Conventions. Types are opaque; create/destroy come in pairs and destroy accepts NULL. Pointers returned as `const`
   live as long as the object they come from. Nothing is ever printed; nothing exits. Sizes are in bytes, counts in
   elements, dims in elements, strides in elements. */
#ifndef TENON_API_H
#define TENON_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define TN_BEGIN_DECLS extern "C" {
#define TN_END_DECLS }
#else
#define TN_BEGIN_DECLS
#define TN_END_DECLS
#endif

#if defined(__GNUC__)
#define TN_API __attribute__((visibility("default")))
#define TN_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define TN_API
#define TN_PRINTF(fmt, args)
#endif

/* Tensors of a higher rank are refused with TN_ERR_LIMIT. */
#define TN_MAX_RANK 32
/* Regions nested deeper than this are refused with TN_ERR_LIMIT. */
#define TN_MAX_NESTING 128

#define TN_VERSION_MAJOR 0
#define TN_VERSION_MINOR 1
#define TN_VERSION_PATCH 0

TN_BEGIN_DECLS
/* "0.1.0"; lives for ever. */
TN_API const char *tn_version(void);
TN_END_DECLS

/* Fills an options struct: its size first, so that it may grow at the end. TN_OPTIONS(tn_session_options, .threads = 2) */
#ifdef __cplusplus
/* clang-format off */
#define TN_OPTIONS_INIT(T) T{sizeof(T)}
/* clang-format on */
#else
#define TN_OPTIONS(T, ...) (&(const T){.size = sizeof(T), __VA_ARGS__})
#endif

#endif
