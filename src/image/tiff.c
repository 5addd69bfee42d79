/* TIFF by libtiff, from memory; the first picture of a file. */
#include <stdlib.h>
#include <string.h>
#include <tiffio.h>

#include "image/image.h"

typedef struct file {
    const uint8_t *bytes;
    uint64_t size, at;
} file;

static tmsize_t read_some(thandle_t handle, void *to, tmsize_t count) {
    file *f = handle;
    uint64_t left = f->at < f->size ? f->size - f->at : 0;
    size_t n = (uint64_t)count < left ? (size_t)count : (size_t)left;
    memcpy(to, f->bytes + (n ? f->at : 0), n);
    f->at += n;
    return (tmsize_t)n;
}
static tmsize_t write_none(thandle_t handle, void *from, tmsize_t count) {
    (void)handle;
    (void)from;
    (void)count;
    return 0;
}
static toff_t seek(thandle_t handle, toff_t offset, int whence) {
    file *f = handle;
    f->at = whence == SEEK_SET ? offset : whence == SEEK_CUR ? f->at + offset : f->size + offset;
    return f->at;
}
static int close_none(thandle_t handle) {
    (void)handle;
    return 0;
}
static toff_t size_of(thandle_t handle) {
    return ((file *)handle)->size;
}
#if TIFFLIB_VERSION >= 20221213
static int keep_quiet(TIFF *tiff, void *user, const char *module, const char *format, va_list args) {
    (void)tiff;
    (void)user;
    (void)module;
    (void)format;
    (void)args;
    return 1; /* told to nobody else */
}

static TIFF *open_file(file *f) {
    TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
    if (!options)
        return NULL;
    TIFFOpenOptionsSetErrorHandlerExtR(options, keep_quiet, NULL);
    TIFFOpenOptionsSetWarningHandlerExtR(options, keep_quiet, NULL);
    TIFF *tiff =
        TIFFClientOpenExt("picture", "rm", f, read_some, write_none, seek, close_none, size_of, NULL, NULL, options);
    TIFFOpenOptionsFree(options);
    return tiff;
}
#else /* its complaints go where the process has them go */
static TIFF *open_file(file *f) {
    return TIFFClientOpen("picture", "rm", f, read_some, write_none, seek, close_none, size_of, NULL, NULL);
}
#endif

static tn_image_status decode(TIFF *tiff, tn_image *image) {
    uint32_t width = 0, height = 0;
    char why[1024];
    if (!TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &width) || !TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &height) ||
        !TIFFRGBAImageOK(tiff, why))
        return TN_IMAGE_BROKEN;
    tn_image_status status = tn_image_size(image, height, width);
    if (status != TN_IMAGE_DONE)
        return status;
    size_t pixels = (size_t)width * height;
    uint32_t *raster = image->alloc(image->ctx, pixels * sizeof *raster);
    if (!raster)
        return TN_IMAGE_MEMORY;
    if (!TIFFReadRGBAImageOriented(tiff, width, height, raster, ORIENTATION_TOPLEFT, 1))
        return TN_IMAGE_BROKEN;
    for (size_t i = 0; i < pixels; i++) {
        image->rgb[3 * i] = (uint8_t)TIFFGetR(raster[i]);
        image->rgb[3 * i + 1] = (uint8_t)TIFFGetG(raster[i]);
        image->rgb[3 * i + 2] = (uint8_t)TIFFGetB(raster[i]);
    }
    return TN_IMAGE_DONE;
}

tn_image_status tn_image_tiff(const uint8_t *bytes, size_t count, tn_image *image) {
    file f = {.bytes = bytes, .size = count};
    TIFF *tiff = open_file(&f);
    tn_image_status status = tiff ? decode(tiff, image) : TN_IMAGE_BROKEN;
    if (tiff)
        TIFFClose(tiff);
    return status;
}
