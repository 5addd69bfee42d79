/* Recognising well-formed UTF-8. */
#include "base/utf8.h"

size_t tn_utf8_next(const char *bytes, size_t count, uint32_t *code) {
    if (count == 0)
        return 0;
    const uint8_t *b = (const uint8_t *)bytes;
    uint32_t c = b[0], least;
    size_t length;
    if (c < 0x80) {
        if (code)
            *code = c;
        return 1;
    }
    if (c >= 0xC2 && c <= 0xDF)
        length = 2, c &= 0x1F, least = 0x80;
    else if (c >= 0xE0 && c <= 0xEF)
        length = 3, c &= 0x0F, least = 0x800;
    else if (c >= 0xF0 && c <= 0xF4)
        length = 4, c &= 0x07, least = 0x10000;
    else
        return 0;
    if (count < length)
        return 0;
    for (size_t i = 1; i < length; i++) {
        if ((b[i] & 0xC0) != 0x80)
            return 0;
        c = c << 6 | (b[i] & 0x3Fu);
    }
    if (c < least || c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF))
        return 0;
    if (code)
        *code = c;
    return length;
}
