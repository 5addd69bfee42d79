/* PNG by libpng. */
#include <png.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "image/image.h"

typedef struct source {
    const uint8_t *at, *end;
} source;

static void take(png_structp png, png_bytep to, png_size_t count) {
    source *s = png_get_io_ptr(png);
    if ((size_t)(s->end - s->at) < count)
        png_error(png, "cut off");
    memcpy(to, s->at, count);
    s->at += count;
}

static void leave(png_structp png, png_const_charp why) {
    (void)why;
    png_longjmp(png, 1);
}

static void keep_quiet(png_structp png, png_const_charp what) {
    (void)png;
    (void)what;
}

static tn_image_status decode(png_structp png, png_infop info, tn_image *image) {
    png_set_user_limits(png, TN_IMAGE_MAX_SIDE, TN_IMAGE_MAX_SIDE);
    png_read_info(png, info);
    tn_image_status status = tn_image_size(image, png_get_image_height(png, info), png_get_image_width(png, info));
    if (status != TN_IMAGE_DONE)
        return status;
    png_set_expand(png);
    png_set_strip_16(png);
    png_set_strip_alpha(png);
    png_set_gray_to_rgb(png);
    int passes = png_set_interlace_handling(png);
    png_read_update_info(png, info);
    if (png_get_rowbytes(png, info) != (size_t)3 * image->width)
        return TN_IMAGE_BROKEN;
    for (int pass = 0; pass < passes; pass++)
        for (uint32_t y = 0; y < image->height; y++)
            png_read_row(png, image->rgb + (size_t)3 * image->width * y, NULL);
    png_read_end(png, NULL);
    return TN_IMAGE_DONE;
}

tn_image_status tn_image_png(const uint8_t *bytes, size_t count, tn_image *image) {
    png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, NULL, leave, keep_quiet);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    tn_image_status status = info ? TN_IMAGE_BROKEN : TN_IMAGE_MEMORY;
    source s = {bytes, bytes + count};
    if (info && setjmp(png_jmpbuf(png)) == 0) {
        png_set_read_fn(png, &s, take);
        status = decode(png, info, image);
    }
    png_destroy_read_struct(&png, &info, NULL);
    return status;
}
