/* BMP as Windows defines it (BITMAPCOREHEADER, BITMAPINFOHEADER and later): 1, 4, 8, 16, 24 and 32 bits, RLE4, RLE8, bit fields. */
#include <string.h>

#include "image/image.h"

enum { RGB = 0, RLE8 = 1, RLE4 = 2, FIELDS = 3, ALPHA_FIELDS = 6 };

typedef struct bmp {
    const uint8_t *bytes;
    size_t count, pixels; /* where pixels begin */
    uint32_t width, height, bits, compression, colors;
    bool top_down;
    uint8_t palette[256][3];
    uint32_t mask[3]; /* red, green, blue */
} bmp;

static uint32_t get(const uint8_t *p, int bytes) {
    uint32_t v = 0;
    for (int i = 0; i < bytes; i++)
        v |= (uint32_t)p[i] << 8 * i;
    return v;
}

static bool read_header(bmp *b) {
    if (b->count < 26)
        return false;
    const uint8_t *p = b->bytes;
    uint32_t header = get(p + 14, 4);
    size_t entry = header == 12 ? 3 : 4, table;
    b->pixels = get(p + 10, 4);
    if (header == 12) {
        b->width = get(p + 18, 2);
        b->height = get(p + 20, 2);
        b->bits = get(p + 24, 2);
    } else {
        if (header < 40 || b->count < 54 || header > b->count - 14)
            return false;
        b->width = get(p + 18, 4);
        b->height = get(p + 22, 4);
        b->top_down = b->height >> 31;
        if (b->top_down)
            b->height = 0 - b->height;
        b->bits = get(p + 28, 2);
        b->compression = get(p + 30, 4);
        b->colors = get(p + 46, 4);
    }
    table = 14 + (size_t)header;
    static const uint32_t five[3] = {0x7C00, 0x3E0, 0x1F}, eight[3] = {0xFF0000, 0xFF00, 0xFF};
    memcpy(b->mask, b->bits == 16 ? five : eight, sizeof b->mask);
    if (b->compression == FIELDS || b->compression == ALPHA_FIELDS) {
        if (b->count < 66)
            return false;
        for (int i = 0; i < 3; i++)
            b->mask[i] = get(p + 54 + 4 * i, 4);
        if (header == 40)
            table += b->compression == FIELDS ? 12 : 16;
    }
    if (b->bits <= 8) {
        uint32_t most = 1u << b->bits;
        if (b->colors == 0 || b->colors > most)
            b->colors = most;
        for (uint32_t i = 0; i < b->colors && table + (i + 1) * entry <= b->count; i++)
            for (int c = 0; c < 3; c++)
                b->palette[i][c] = p[table + i * entry + 2 - (size_t)c];
    }
    bool runs = b->compression == RLE8 || b->compression == RLE4;
    if (runs && (b->top_down || b->bits != (b->compression == RLE8 ? 8u : 4u)))
        return false;
    if (!runs && b->compression != RGB && (b->bits != 16 && b->bits != 32))
        return false;
    return (b->compression <= FIELDS || b->compression == ALPHA_FIELDS) && b->pixels <= b->count &&
           (b->bits == 1 || b->bits == 4 || b->bits == 8 || b->bits == 16 || b->bits == 24 || b->bits == 32);
}

static uint8_t *row_of(const bmp *b, tn_image *image, uint32_t row) {
    return image->rgb + (size_t)(b->top_down ? row : b->height - 1 - row) * b->width * 3;
}

/* A field of a pixel, widened or cut to 8 bits. */
static uint8_t field(uint32_t pixel, uint32_t mask) {
    if (!mask)
        return 0;
    uint32_t low = (uint32_t)__builtin_ctz(mask), most = mask >> low;
    return (uint8_t)(((uint64_t)((pixel & mask) >> low) * 255 + most / 2) / most);
}

static bool read_rows(const bmp *b, tn_image *image) {
    size_t stride = (((size_t)b->width * b->bits + 31) / 32) * 4;
    if (stride > (b->count - b->pixels) / b->height)
        return false;
    for (uint32_t y = 0; y < b->height; y++) {
        const uint8_t *from = b->bytes + b->pixels + stride * y;
        uint8_t *to = row_of(b, image, y);
        for (uint32_t x = 0; x < b->width; x++, to += 3) {
            if (b->bits <= 8) {
                uint32_t at = x * b->bits, index = from[at / 8] >> (8 - b->bits - at % 8) & ((1u << b->bits) - 1);
                memcpy(to, b->palette[index], 3);
            } else if (b->bits == 24) {
                for (int c = 0; c < 3; c++)
                    to[c] = from[3 * (size_t)x + 2 - (size_t)c];
            } else {
                uint32_t pixel = get(from + (size_t)x * (b->bits / 8), (int)b->bits / 8);
                for (int c = 0; c < 3; c++)
                    to[c] = field(pixel, b->mask[c]);
            }
        }
    }
    return true;
}

/* Runs of one or two colours, and pixels as they are; what is skipped stays the first colour. */
static bool read_runs(const bmp *b, tn_image *image) {
    const uint8_t *p = b->bytes + b->pixels, *end = b->bytes + b->count;
    bool nibbles = b->compression == RLE4;
    uint32_t x = 0, y = 0;
    for (size_t i = 0; i < (size_t)b->width * b->height; i++)
        memcpy(image->rgb + 3 * i, b->palette[0], 3);
    while (end - p >= 2) {
        uint32_t n = p[0], what = p[1], literal = 0;
        p += 2;
        if (n == 0 && what == 1)
            return true;
        if (n == 0 && what == 0) {
            x = 0;
            y++;
            continue;
        }
        if (n == 0 && what == 2) {
            if (end - p < 2)
                return false;
            x += p[0];
            y += p[1];
            p += 2;
            continue;
        }
        if (n == 0) {
            literal = 1;
            n = what;
            if ((size_t)(end - p) < (nibbles ? (n + 1) / 2 : n))
                return false;
        }
        for (uint32_t i = 0; i < n; i++, x++) {
            uint32_t byte = literal ? p[nibbles ? i / 2 : i] : what;
            uint32_t index = !nibbles ? byte : i % 2 ? byte & 15 : byte >> 4;
            if (x < b->width && y < b->height)
                memcpy(row_of(b, image, y) + 3 * (size_t)x, b->palette[index], 3);
        }
        if (literal) {
            size_t used = nibbles ? (n + 1) / 2 : n;
            used += used % 2;
            if ((size_t)(end - p) < used)
                return false;
            p += used;
        }
    }
    return true; /* cut off behind the last run, as many files are */
}

tn_image_status tn_image_bmp(const uint8_t *bytes, size_t count, tn_image *image) {
    bmp b = {.bytes = bytes, .count = count};
    if (!read_header(&b))
        return TN_IMAGE_BROKEN;
    tn_image_status status = tn_image_size(image, b.height, b.width);
    if (status != TN_IMAGE_DONE)
        return status;
    bool runs = b.compression == RLE8 || b.compression == RLE4;
    return (runs ? read_runs(&b, image) : read_rows(&b, image)) ? TN_IMAGE_DONE : TN_IMAGE_BROKEN;
}
