/* Fuzzes data files: any bytes as any kind of object; what is read is written and read back equal. The first byte picks the kind. */
#include <stdio.h>
#include <stdlib.h>

#include "onnx/tensor_file.h"

#define REQUIRE(condition)                                                                          \
    do {                                                                                            \
        if (!(condition)) {                                                                         \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, tn_error_message()); \
            abort();                                                                                \
        }                                                                                           \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tn_heap *heap = tn_heap_create(NULL);
    REQUIRE(heap);
    if (size) {
        tn_kind kind = (tn_kind)(data[0] % 4);
        /* what is allocated is bounded by the bytes, whatever numbers stand in them; but sparse tensors of few bytes may stand for 64 MiB */
        tn_heap_set_limit(heap, ((size_t)65 << 20) + size * 1024);
        tn_object *object = tn_onnx_read_object(heap, data + 1, size - 1, NULL, kind);
        if (object) {
            tn_heap_set_limit(heap, ((size_t)1 << 20) + tn_heap_in_use(heap) * 8);
            tn_text text;
            tn_text_init(&text, heap);
            REQUIRE(tn_object_kind(object) == kind);
            REQUIRE(tn_onnx_write_object(&text, object, "name") == TN_OK);
            tn_object *again = tn_onnx_read_object(heap, text.data, text.len, NULL, kind);
            REQUIRE(again);
            REQUIRE(tn_object_equal(object, again));
            tn_object_destroy(again);
            tn_object_destroy(object);
            tn_text_free(&text);
        } else {
            REQUIRE(tn_error_status() != TN_OK && tn_error_status() != TN_ERR_INTERNAL &&
                    tn_error_status() != TN_ERR_MEMORY);
        }
    }
    REQUIRE(tn_heap_in_use(heap) == 0);
    tn_heap_destroy(heap);
    return 0;
}
