/* Pictures to pixels: the contract of the module tenon_image, a shared library of its own that holds the image libraries. The core
   opens it when a picture is decoded for the first time (onnx/host_image.c), and never needs it otherwise. */
#ifndef TN_IMAGE_IMAGE_H
#define TN_IMAGE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TN_IMAGE_DECODE "tenon_image_decode_1" /* the function that the module exports: a tn_image_decode_fn */
#define TN_IMAGE_MAX_SIDE ((uint32_t)1 << 20)
#define TN_IMAGE_MAX_PIXELS ((uint64_t)1 << 28)

typedef enum tn_image_status {
    TN_IMAGE_DONE,
    TN_IMAGE_BROKEN,  /* no picture, a damaged one, or of a kind that the format's library does not read */
    TN_IMAGE_MISSING, /* of a format that this build has no library for: `format` names it */
    TN_IMAGE_LARGE,   /* beyond the limits above */
    TN_IMAGE_MEMORY
} tn_image_status;

typedef struct tn_image {
    uint32_t height, width;
    uint8_t *rgb; /* [height, width, 3], from `alloc` */
    const char *format;
    void *(*alloc)(void *ctx,
                   size_t bytes); /* NULL: no memory. The caller frees what was allocated, whatever the status */
    void *ctx;
} tn_image;

/* Decodes `bytes`; image->alloc and ctx are given, the rest is answered. Alpha is dropped, grey is spread to three channels, 16 bits
   become 8. Any bytes may be given. */
typedef tn_image_status tn_image_decode_fn(const uint8_t *bytes, size_t count, tn_image *image);

/* One format each; the bytes begin as those of the format do. */
tn_image_decode_fn tn_image_bmp, tn_image_pnm, tn_image_jpeg, tn_image_png, tn_image_tiff, tn_image_webp,
    tn_image_jpeg2000;

/* Checks the size and allocates the pixels. */
static inline tn_image_status tn_image_size(tn_image *image, uint64_t height, uint64_t width) {
    if (height == 0 || width == 0)
        return TN_IMAGE_BROKEN;
    if (height > TN_IMAGE_MAX_SIDE || width > TN_IMAGE_MAX_SIDE || height * width > TN_IMAGE_MAX_PIXELS)
        return TN_IMAGE_LARGE;
    image->height = (uint32_t)height;
    image->width = (uint32_t)width;
    image->rgb = image->alloc(image->ctx, (size_t)(height * width * 3));
    return image->rgb ? TN_IMAGE_DONE : TN_IMAGE_MEMORY;
}

#endif
