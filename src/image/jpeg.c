/* JPEG by libjpeg (libjpeg-turbo): its default transform and its smooth upsampling, which is what the operator's text asks for. */
#include <stdio.h>
#include <jpeglib.h>
#include <setjmp.h>
#include <stdlib.h>

#include "image/image.h"

typedef struct errors {
    struct jpeg_error_mgr base;
    jmp_buf leave;
} errors;

static void leave(j_common_ptr info) {
    longjmp(((errors *)info->err)->leave, 1);
}

static void keep_quiet(j_common_ptr info, int level) {
    (void)info;
    (void)level;
}

/* Inverted CMYK, as Adobe writes it. */
static void from_cmyk(uint8_t *rgb, const uint8_t *cmyk, uint32_t width) {
    for (uint32_t x = 0; x < width; x++)
        for (int c = 0; c < 3; c++)
            rgb[3 * x + (uint32_t)c] = (uint8_t)((cmyk[4 * x + (uint32_t)c] * cmyk[4 * x + 3] + 127) / 255);
}

static tn_image_status decode(struct jpeg_decompress_struct *info, const uint8_t *bytes, size_t count,
                              tn_image *image) {
    jpeg_mem_src(info, bytes, (unsigned long)count);
    if (jpeg_read_header(info, TRUE) != JPEG_HEADER_OK)
        return TN_IMAGE_BROKEN;
    bool four = info->jpeg_color_space == JCS_CMYK || info->jpeg_color_space == JCS_YCCK;
    info->out_color_space = four ? JCS_CMYK : JCS_RGB;
    tn_image_status status = tn_image_size(image, info->image_height, info->image_width);
    if (status != TN_IMAGE_DONE)
        return status;
    jpeg_start_decompress(info);
    uint8_t *line = four ? image->alloc(image->ctx, (size_t)4 * image->width) : NULL;
    if (four && !line)
        return TN_IMAGE_MEMORY;
    while (info->output_scanline < info->output_height) {
        uint8_t *to = image->rgb + (size_t)3 * image->width * info->output_scanline;
        JSAMPROW row = four ? line : to;
        if (jpeg_read_scanlines(info, &row, 1) != 1)
            return TN_IMAGE_BROKEN;
        if (four)
            from_cmyk(to, line, image->width);
    }
    jpeg_finish_decompress(info);
    return info->err->num_warnings ? TN_IMAGE_BROKEN : TN_IMAGE_DONE; /* cut off: the rest would be grey */
}

tn_image_status tn_image_jpeg(const uint8_t *bytes, size_t count, tn_image *image) {
    struct jpeg_decompress_struct info;
    errors e;
    info.err = jpeg_std_error(&e.base);
    e.base.error_exit = leave;
    e.base.emit_message = keep_quiet;
    volatile bool made = false;
    tn_image_status status = TN_IMAGE_BROKEN;
    if (setjmp(e.leave) == 0) {
        jpeg_create_decompress(&info);
        made = true;
        status = decode(&info, bytes, count, image);
    } else {
        status = TN_IMAGE_BROKEN;
    }
    if (made)
        jpeg_destroy_decompress(&info);
    return status;
}
