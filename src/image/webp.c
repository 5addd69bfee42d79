/* WebP by libwebp; the first picture of an animation is not read. */
#include <webp/decode.h>

#include "image/image.h"

tn_image_status tn_image_webp(const uint8_t *bytes, size_t count, tn_image *image) {
    WebPBitstreamFeatures features;
    if (WebPGetFeatures(bytes, count, &features) != VP8_STATUS_OK || features.has_animation)
        return TN_IMAGE_BROKEN;
    tn_image_status status = tn_image_size(image, (uint64_t)features.height, (uint64_t)features.width);
    if (status != TN_IMAGE_DONE)
        return status;
    size_t row = (size_t)3 * image->width;
    return WebPDecodeRGBInto(bytes, count, image->rgb, row * image->height, (int)row) ? TN_IMAGE_DONE : TN_IMAGE_BROKEN;
}
