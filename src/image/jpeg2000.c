/* JPEG 2000 by OpenJPEG: files (JP2) and bare code streams; one, three or more components, of which the first three count. */
#include <openjpeg.h>
#include <string.h>

#include "image/image.h"

typedef struct source {
    const uint8_t *bytes;
    size_t size, at;
} source;

static OPJ_SIZE_T take(void *to, OPJ_SIZE_T count, void *user) {
    source *s = user;
    size_t left = s->size - s->at, n = count < left ? count : left;
    if (n == 0)
        return (OPJ_SIZE_T)-1;
    memcpy(to, s->bytes + s->at, n);
    s->at += n;
    return n;
}
static OPJ_OFF_T skip(OPJ_OFF_T count, void *user) {
    source *s = user;
    if (count < 0 || (size_t)count > s->size - s->at)
        return -1;
    s->at += (size_t)count;
    return count;
}
static OPJ_BOOL seek(OPJ_OFF_T to, void *user) {
    source *s = user;
    if (to < 0 || (size_t)to > s->size)
        return OPJ_FALSE;
    s->at = (size_t)to;
    return OPJ_TRUE;
}
static void keep_quiet(const char *text, void *user) {
    (void)text;
    (void)user;
}

/* A sample at a place of the picture, as 8 bits; components may be coarser than the picture. */
static int sample(const opj_image_t *p, uint32_t component, uint32_t y, uint32_t x) {
    const opj_image_comp_t *c = &p->comps[component];
    uint32_t row = y / c->dy, column = x / c->dx;
    row = row < c->h ? row : c->h - 1;
    column = column < c->w ? column : c->w - 1;
    int64_t v = c->data[(size_t)row * c->w + column], most = ((int64_t)1 << c->prec) - 1;
    v += c->sgnd ? (int64_t)1 << (c->prec - 1) : 0;
    v = v < 0 ? 0 : v > most ? most : v;
    return (int)(c->prec == 8 ? v : (v * 255 + most / 2) / most);
}

static uint8_t byte(double v) {
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v + 0.5);
}

static bool usable(const opj_image_t *p) {
    uint32_t n = p->numcomps;
    if (n == 0 || p->x1 <= p->x0 || p->y1 <= p->y0)
        return false;
    for (uint32_t c = 0; c < n && c < 3; c++) {
        const opj_image_comp_t *k = &p->comps[c];
        if (!k->data || k->w == 0 || k->h == 0 || k->dx == 0 || k->dy == 0 || k->prec == 0 || k->prec > 31)
            return false;
    }
    return true;
}

static tn_image_status copy(const opj_image_t *p, tn_image *image) {
    if (!usable(p))
        return TN_IMAGE_BROKEN;
    uint32_t width = p->x1 - p->x0, height = p->y1 - p->y0;
    tn_image_status status = tn_image_size(image, height, width);
    if (status != TN_IMAGE_DONE)
        return status;
    bool luma = p->numcomps >= 3 && p->color_space == OPJ_CLRSPC_SYCC;
    uint8_t *to = image->rgb;
    for (uint32_t y = 0; y < height; y++)
        for (uint32_t x = 0; x < width; x++, to += 3) {
            int v[3];
            for (uint32_t c = 0; c < 3; c++)
                v[c] = sample(p, p->numcomps >= 3 ? c : 0, y, x);
            if (luma) { /* ITU-R BT.601, full range */
                double l = v[0], cb = v[1] - 128, cr = v[2] - 128;
                to[0] = byte(l + 1.402 * cr);
                to[1] = byte(l - 0.344136 * cb - 0.714136 * cr);
                to[2] = byte(l + 1.772 * cb);
            } else {
                for (int c = 0; c < 3; c++)
                    to[c] = (uint8_t)v[c];
            }
        }
    return TN_IMAGE_DONE;
}

static tn_image_status decode(opj_codec_t *codec, opj_stream_t *stream, tn_image *image) {
    opj_image_t *picture = NULL;
    tn_image_status status = TN_IMAGE_BROKEN;
    if (opj_read_header(stream, codec, &picture)) {
        uint64_t width = picture->x1 - picture->x0, height = picture->y1 - picture->y0;
        if (width > TN_IMAGE_MAX_SIDE || height > TN_IMAGE_MAX_SIDE || width * height > TN_IMAGE_MAX_PIXELS)
            status = TN_IMAGE_LARGE;
        else if (opj_decode(codec, stream, picture) && opj_end_decompress(codec, stream))
            status = copy(picture, image);
    }
    opj_image_destroy(picture);
    return status;
}

tn_image_status tn_image_jpeg2000(const uint8_t *bytes, size_t count, tn_image *image) {
    source s = {.bytes = bytes, .size = count};
    opj_dparameters_t parameters;
    opj_set_default_decoder_parameters(&parameters);
    opj_codec_t *codec = opj_create_decompress(bytes[0] ? OPJ_CODEC_J2K : OPJ_CODEC_JP2);
    opj_stream_t *stream = opj_stream_default_create(OPJ_TRUE);
    tn_image_status status = TN_IMAGE_MEMORY;
    if (codec && stream) {
        opj_set_info_handler(codec, keep_quiet, NULL);
        opj_set_warning_handler(codec, keep_quiet, NULL);
        opj_set_error_handler(codec, keep_quiet, NULL);
        opj_stream_set_read_function(stream, take);
        opj_stream_set_skip_function(stream, skip);
        opj_stream_set_seek_function(stream, seek);
        opj_stream_set_user_data(stream, &s, NULL);
        opj_stream_set_user_data_length(stream, count);
        status = opj_setup_decoder(codec, &parameters) ? decode(codec, stream, image) : TN_IMAGE_BROKEN;
    }
    if (stream)
        opj_stream_destroy(stream);
    if (codec)
        opj_destroy_codec(codec);
    return status;
}
