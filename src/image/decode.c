/* What the module exports: the format by its first bytes, then its decoder. */
#include "image/image.h"

#include <string.h>

typedef struct format {
    const char *name;
    const char *magic;
    uint8_t length, at;
    tn_image_decode_fn *decode; /* NULL: built without its library */
} format;

#ifdef TN_HAVE_JPEG
#define JPEG tn_image_jpeg
#else
#define JPEG NULL
#endif
#ifdef TN_HAVE_PNG
#define PNG tn_image_png
#else
#define PNG NULL
#endif
#ifdef TN_HAVE_TIFF
#define TIFF tn_image_tiff
#else
#define TIFF NULL
#endif
#ifdef TN_HAVE_WEBP
#define WEBP tn_image_webp
#else
#define WEBP NULL
#endif
#ifdef TN_HAVE_JPEG2000
#define JPEG2000 tn_image_jpeg2000
#else
#define JPEG2000 NULL
#endif

static const format formats[] = {
    {"BMP", "BM", 2, 0, tn_image_bmp},
    {"JPEG", "\xFF\xD8\xFF", 3, 0, JPEG},
    {"PNG", "\x89PNG\r\n\x1A\n", 8, 0, PNG},
    {"TIFF", "II*\0", 4, 0, TIFF},
    {"TIFF", "MM\0*", 4, 0, TIFF},
    {"TIFF", "II+\0", 4, 0, TIFF}, /* BigTIFF */
    {"TIFF", "MM\0+", 4, 0, TIFF},
    {"WebP", "WEBP", 4, 8, WEBP},
    {"JPEG 2000", "\0\0\0\x0CjP  \r\n\x87\n", 12, 0, JPEG2000},
    {"JPEG 2000", "\xFF\x4F\xFF\x51", 4, 0, JPEG2000}, /* a bare code stream */
};

extern tn_image_decode_fn tenon_image_decode_1;

tn_image_status tenon_image_decode_1(const uint8_t *bytes, size_t count, tn_image *image) {
    image->height = image->width = 0;
    image->rgb = NULL;
    image->format = NULL;
    if (count >= 2 && bytes[0] == 'P' && bytes[1] >= '1' && bytes[1] <= '7') {
        image->format = "PNM";
        return tn_image_pnm(bytes, count, image);
    }
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        const format *f = &formats[i];
        if (count < (size_t)f->at + f->length || memcmp(bytes + f->at, f->magic, f->length) != 0)
            continue;
        image->format = f->name;
        return f->decode ? f->decode(bytes, count, image) : TN_IMAGE_MISSING;
    }
    return TN_IMAGE_BROKEN;
}
