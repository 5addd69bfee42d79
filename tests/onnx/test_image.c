/* ImageDecoder: the formats that need no library to their last pixel, pictures of all formats cut off and damaged, and what is no
   picture. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <tenon/model.h>
#include <tenon/session.h>

#include "base/os.h"
#include "onnx/tensor_file.h"
#include "support/one_node.h"

typedef struct decoder {
    tn_model *model;
    tn_session *session;
} decoder;

static decoder decoder_of(const char *format) {
    tn_text g = message(), attrs = message();
    attr_text(&attrs, "pixel_format", format);
    put_message(&g, 1, node_bytes("ImageDecoder", "d", "x", "y", attrs));
    put_value(&g, 11, "x", TN_U8, "N");
    put_value(&g, 12, "y", TN_U8, NULL);
    tn_text bytes = model_bytes(20, g);
    decoder d = {.model = tn_model_load_memory(bytes.data, bytes.len, NULL)};
    if (!d.model)
        fail_msg("%s", tn_error_message());
    d.session = tn_session_create(d.model, NULL);
    assert_non_null(d.session);
    tn_text_free(&bytes);
    return d;
}

static void decoder_end(decoder *d) {
    tn_session_destroy(d->session);
    tn_model_destroy(d->model);
}

/* The pixels, or NULL with the status. */
static tn_object *decode(const decoder *d, const void *bytes, size_t count, tn_status *status) {
    int64_t n = (int64_t)count;
    tn_tensor *x = tn_tensor_create(TN_U8, 1, &n);
    assert_non_null(x);
    memcpy(tn_tensor_data(x), bytes, count);
    tn_object *y = NULL;
    *status = tn_session_run(d->session, 1, &(tn_binding){.name = "x", .tensor = x}, 1,
                             &(tn_output){.name = "y", .object = &y});
    tn_tensor_destroy(x);
    return y;
}

static void expect_pixels(const char *format, const void *bytes, size_t count, int64_t height, int64_t width,
                          const uint8_t *pixels) {
    decoder d = decoder_of(format);
    tn_status status;
    tn_object *object = decode(&d, bytes, count, &status);
    if (status != TN_OK)
        fail_msg("%s", tn_error_message());
    const tn_tensor *y = tn_object_tensor(object);
    int64_t channels = strcmp(format, "Grayscale") == 0 ? 1 : 3;
    assert_int_equal(tn_tensor_dims(y)[0], height);
    assert_int_equal(tn_tensor_dims(y)[1], width);
    assert_int_equal(tn_tensor_dims(y)[2], channels);
    assert_memory_equal(tn_tensor_data(y), pixels, (size_t)(height * width * channels));
    tn_object_destroy(object);
    decoder_end(&d);
}
#define PIXELS(...) ((const uint8_t[]){__VA_ARGS__})
#define TEXT(s) (s), sizeof(s) - 1

static void test_pnm(void **state) {
    (void)state;
    expect_pixels("RGB", TEXT("P3 # two\n2 1\n255\n1 2 3  4 5 6"), 1, 2, PIXELS(1, 2, 3, 4, 5, 6));
    expect_pixels("BGR", TEXT("P6\n2 1\n255\n\1\2\3\4\5\6"), 1, 2, PIXELS(3, 2, 1, 6, 5, 4));
    expect_pixels("RGB", TEXT("P2 1 2 3 0 3"), 2, 1, PIXELS(0, 0, 0, 255, 255, 255));
    expect_pixels("Grayscale", TEXT("P5 1 1 65535 \x80\x00"), 1, 1, PIXELS(128));
    expect_pixels("Grayscale", TEXT("P1 3 1 010"), 1, 3, PIXELS(255, 0, 255));
    expect_pixels("Grayscale", TEXT("P4 3 1 \x40"), 1, 3, PIXELS(255, 0, 255));
    expect_pixels("RGB", TEXT("P7\nWIDTH 1\nHEIGHT 1\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\n\7\10\11\0"), 1,
                  1, PIXELS(7, 8, 9));
}

/* File and information headers; `offset` of the pixels. */
static size_t bmp_header(uint8_t *to, uint32_t offset, int32_t width, int32_t height, uint32_t bits, uint32_t how) {
    const uint32_t fields[] = {40, (uint32_t)width, (uint32_t)height, 1 | bits << 16, how, 0, 0, 0, 0, 0};
    memcpy(to, "BM\0\0\0\0\0\0\0\0", 10);
    memcpy(to + 10, &offset, 4);
    memcpy(to + 14, fields, sizeof fields);
    return 54;
}

static void test_bmp(void **state) {
    (void)state;
    uint8_t b[256];
    size_t n = bmp_header(b, 54, 1, 2, 24, 0); /* bottom row first, blue first, rows of 4 bytes */
    memcpy(b + n, "\1\2\3\0\4\5\6\0", 8);
    expect_pixels("RGB", b, n + 8, 2, 1, PIXELS(6, 5, 4, 3, 2, 1));
    n = bmp_header(b, 54, 1, -2, 24, 0); /* top row first */
    memcpy(b + n, "\1\2\3\0\4\5\6\0", 8);
    expect_pixels("BGR", b, n + 8, 2, 1, PIXELS(1, 2, 3, 4, 5, 6));
    n = bmp_header(b, 54, 1, 1, 16, 0); /* five bits each */
    memcpy(b + n, "\x1F\x7C\0\0", 4);
    expect_pixels("RGB", b, n + 4, 1, 1, PIXELS(255, 0, 255));
    n = bmp_header(b, 54 + 8, 3, 1, 1, 0); /* a bit each, by a palette of two */
    memcpy(b + n, "\0\0\xFF\0\x7\x8\x9\0\x40\0\0\0", 12);
    expect_pixels("RGB", b, n + 12, 1, 3, PIXELS(255, 0, 0, 9, 8, 7, 255, 0, 0));
    n = bmp_header(b, 54 + 1024, 4, 2, 8, 1); /* runs: two of colour 1, end of line, three pixels as they are, end */
    uint8_t runs[54 + 1024 + 16] = {0};
    memcpy(runs, b, n);
    memcpy(runs + 54 + 4, "\3\2\1\0", 4);
    memcpy(runs + 54 + 1024, "\2\1\0\0\0\3\0\1\1\0\0\1", 12);
    expect_pixels("RGB", runs, 54 + 1024 + 12, 2, 4,
                  PIXELS(0, 0, 0, 1, 2, 3, 1, 2, 3, 0, 0, 0, 1, 2, 3, 1, 2, 3, 0, 0, 0, 0, 0, 0));
}

/* The text: what cannot be decoded is an empty matrix. Nothing worse, whatever the bytes. */
static void expect_some(const decoder *d, const uint8_t *bytes, size_t count, const char *what, size_t at) {
    tn_status status;
    tn_object *object = decode(d, bytes, count, &status);
    if (status != TN_OK && status != TN_ERR_LIMIT && status != TN_ERR_UNSUPPORTED)
        fail_msg("%s %zu: %s", what, at, tn_error_message());
    if (object) {
        const int64_t *dims = tn_tensor_dims(tn_object_tensor(object));
        assert_true(dims[2] == 3 && (dims[0] == 0) == (dims[1] == 0));
    }
    tn_object_destroy(object);
}

static void test_damaged(void **state) {
    (void)state;
    static const char *const names[] = {"bmp_rgb", "jpeg2k_rgb", "jpeg_rgb", "png_rgb",
                                        "pnm_rgb", "tiff_rgb",   "webp_rgb"};
    decoder d = decoder_of("RGB");
    expect_some(&d, (const uint8_t *)"", 0, "nothing", 0);
    expect_some(&d, (const uint8_t *)"P", 1, "nothing", 1);
    expect_some(&d, (const uint8_t *)"P6 1048576 1048576 255 x", 24, "huge", 0);
    unsigned seen = 0;
    uint64_t random = 1;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/onnx-suite/node/test_image_decoder_decode_%s/test_data_set_0/input_0.pb",
                 TENON_SHARED_DIR, names[i]);
        tn_object *object =
            tn_path_kind_of(path) == TN_PATH_FILE ? tn_onnx_read_object_file(NULL, path, TN_KIND_TENSOR) : NULL;
        if (!object)
            continue;
        seen++;
        const tn_tensor *t = tn_object_tensor(object);
        size_t count = (size_t)tn_tensor_count(t);
        uint8_t *bytes = malloc(count);
        assert_non_null(bytes);
        memcpy(bytes, tn_tensor_data(t), count);
        for (size_t cut = 0; cut < count; cut += 1 + count / 60)
            expect_some(&d, bytes, cut, names[i], cut);
        for (int flip = 0; flip < 60; flip++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            size_t at = (size_t)(random >> 33) % (flip < 30 ? 64 : count);
            uint8_t was = bytes[at];
            bytes[at] ^= (uint8_t)(1 + (random >> 20) % 255);
            expect_some(&d, bytes, count, names[i], at);
            bytes[at] = was;
        }
        free(bytes);
        tn_object_destroy(object);
    }
    decoder_end(&d);
    print_message("%u formats of the standard's suite\n", seen);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pnm), cmocka_unit_test(test_bmp),
                                       cmocka_unit_test(test_damaged)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
