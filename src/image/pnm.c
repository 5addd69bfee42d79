/* The portable formats of Netpbm: PBM, PGM, PPM (plain and raw) and PAM. */
#include <string.h>

#include "image/image.h"

typedef struct pnm {
    const uint8_t *at, *end;
    uint32_t width, height, depth, most; /* depth: samples of a pixel */
} pnm;

static bool is_space(uint8_t c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static void skip(pnm *p) {
    while (p->at < p->end && (is_space(*p->at) || *p->at == '#')) {
        if (*p->at == '#')
            while (p->at < p->end && *p->at != '\n' && *p->at != '\r')
                p->at++;
        else
            p->at++;
    }
}

static bool number(pnm *p, uint32_t *value) {
    skip(p);
    uint64_t v = 0;
    const uint8_t *start = p->at;
    for (; p->at < p->end && *p->at >= '0' && *p->at <= '9'; p->at++)
        if ((v = v * 10 + (uint64_t)(*p->at - '0')) > UINT32_MAX)
            return false;
    *value = (uint32_t)v;
    return p->at > start;
}

/* Lines "KEY value" up to ENDHDR. */
static bool pam_header(pnm *p) {
    for (;;) {
        skip(p);
        const uint8_t *word = p->at;
        while (p->at < p->end && !is_space(*p->at))
            p->at++;
        size_t n = (size_t)(p->at - word);
        struct {
            const char *key;
            uint32_t *value;
        } keys[] = {{"WIDTH", &p->width}, {"HEIGHT", &p->height}, {"DEPTH", &p->depth}, {"MAXVAL", &p->most}};
        bool known = false;
        if (n == 6 && memcmp(word, "ENDHDR", 6) == 0)
            return true;
        for (size_t i = 0; i < 4; i++)
            if (n == strlen(keys[i].key) && memcmp(word, keys[i].key, n) == 0) {
                known = true;
                if (!number(p, keys[i].value))
                    return false;
            }
        if (n == 0)
            return false;
        while (!known && p->at < p->end && *p->at != '\n') /* TUPLTYPE */
            p->at++;
    }
}

/* The next sample of a plain file; bits may stand without spaces. */
static bool plain(pnm *p, bool bits, uint32_t *value) {
    if (!bits)
        return number(p, value);
    skip(p);
    if (p->at == p->end || (*p->at != '0' && *p->at != '1'))
        return false;
    *value = (uint32_t)(*p->at++ - '0');
    return true;
}

static uint8_t scaled(const pnm *p, uint32_t v) {
    return (uint8_t)(p->most == 255 ? v : ((uint64_t)(v < p->most ? v : p->most) * 255 + p->most / 2) / p->most);
}

tn_image_status tn_image_pnm(const uint8_t *bytes, size_t count, tn_image *image) {
    pnm p = {.at = bytes + 2, .end = bytes + count, .depth = 1, .most = 1};
    int kind = bytes[1] - '0';
    bool bits = kind == 1 || kind == 4;
    if (kind == 7 ? !pam_header(&p)
                  : !number(&p, &p.width) || !number(&p, &p.height) || (!bits && !number(&p, &p.most)))
        return TN_IMAGE_BROKEN;
    if (kind == 3 || kind == 6)
        p.depth = 3;
    if (p.most == 0 || p.most > 65535 || p.depth == 0 || p.depth > 4)
        return TN_IMAGE_BROKEN;
    if (kind > 3) { /* one space before what is raw */
        if (p.at == p.end || !is_space(*p.at))
            return TN_IMAGE_BROKEN;
        p.at++;
        uint64_t wide = p.most > 255 ? 2 : 1, row = bits ? ((uint64_t)p.width + 7) / 8 : p.width * wide * p.depth;
        if (row && p.height > (uint64_t)(p.end - p.at) / row)
            return TN_IMAGE_BROKEN;
    }
    tn_image_status status = tn_image_size(image, p.height, p.width);
    if (status != TN_IMAGE_DONE)
        return status;
    uint8_t *to = image->rgb;
    for (uint32_t y = 0; y < p.height; y++) {
        for (uint32_t x = 0; x < p.width; x++, to += 3) {
            uint32_t v[4] = {0};
            for (uint32_t c = 0; c < p.depth; c++) {
                if (kind <= 3) {
                    if (!plain(&p, bits, &v[c]))
                        return TN_IMAGE_BROKEN;
                } else if (bits) {
                    v[c] = p.at[x / 8] >> (7 - x % 8) & 1;
                } else {
                    v[c] = *p.at++;
                    if (p.most > 255)
                        v[c] = v[c] << 8 | *p.at++;
                }
            }
            for (uint32_t c = 0; c < 3; c++) /* one or two samples: grey, and alpha after it */
                to[c] = bits ? (v[0] ? 0 : 255) : scaled(&p, v[p.depth >= 3 ? c : 0]);
        }
        if (kind == 4)
            p.at += (p.width + 7) / 8;
    }
    return TN_IMAGE_DONE;
}
