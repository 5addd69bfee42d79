/* decode_image: an encoded picture as pixels. The module tenon_image holds the libraries of the formats; it is opened when a picture
   is decoded, so that who decodes none neither links nor loads them. */
#include <string.h>

#include "base/os_library.h"
#include "base/vec.h"
#include "image/image.h"
#include "onnx/host_ops.h"
#include "onnx/op.h"
#include "ops/elementwise.h"

/* Where the module may lie, from the folder of the library or the program: in the build, beside the library, beside the program. */
static const char *const places[] = {"modules", "tenon", TENON_MODULES_FROM_BIN};
#define MODULE "tenon_image.so"

static bool is_grey(const tn_graph *g, tn_node node) {
    tn_string format = tn_attr_string(g, node, "pixel_format");
    return format.length == 9 && memcmp(format.data, "Grayscale", 9) == 0;
}

static tn_status infer_image(tn_infer *c) {
    tn_operand_type in;
    TN_TRY(tn_infer_operand_rank(c, 0, 1, &in));
    if (in.dtype != TN_U8)
        return tn_infer_fail(c, "the encoded picture is %s, it must be u8", tn_dtype_name(in.dtype));
    tn_dim dims[3] = {tn_infer_fresh(c, 0, 0, 0, TN_IMAGE_MAX_SIDE), tn_infer_fresh(c, 0, 1, 0, TN_IMAGE_MAX_SIDE),
                      tn_dim_const(c->graph, is_grey(c->graph, c->node) ? 1 : 3)};
    if (!dims[0].id || !dims[1].id)
        return tn_error_status();
    return tn_infer_tensor(c, 0, TN_U8, 3, dims);
}

/* What the decoder allocated. */
typedef struct taken {
    tn_heap *heap;
    TN_VEC(void *) blocks;
} taken;

static void *take(void *ctx, size_t bytes) {
    taken *t = ctx;
    void *block = tn_alloc(t->heap, bytes);
    if (block && tn_vec_push(t->heap, &t->blocks, block))
        return block;
    tn_free(t->heap, block);
    return NULL;
}

/* The module, from the first of the places that has it. */
static tn_library *open_module(tn_heap *heap) {
    tn_library *library = NULL;
    char *own = tn_library_own_folder(heap);
    for (size_t i = 0; own && !library && i <= sizeof places / sizeof *places; i++) {
        tn_text path;
        tn_text_init(&path, heap);
        if (i < sizeof places / sizeof *places)
            tn_text_printf(&path, "%s/%s/" MODULE, own, places[i]);
        else
            tn_text_add(&path, TENON_MODULES "/" MODULE);
        if (!path.failed)
            library = tn_library_open(heap, path.data);
        tn_text_free(&path);
    }
    tn_free(heap, own);
    return library;
}

static tn_status decode(tn_eval *e, const tn_tensor *in, tn_image *image) {
    tn_library *module = open_module(e->heap);
    tn_image_decode_fn *function = NULL;
    if (!module && tn_error_status() == TN_ERR_MEMORY)
        return TN_ERR_MEMORY;
    if (module)
        function = (tn_image_decode_fn *)tn_library_function(module, TN_IMAGE_DECODE);
    if (!function) {
        tn_library_close(module);
        tn_eval_fail(e, TN_ERR_UNSUPPORTED, "not supported: pictures: there is no module " MODULE);
        tn_fail_hint("it is built where an image library is found, and installed beside the library");
        return TN_ERR_UNSUPPORTED;
    }
    tn_image_status status = function(in->data, (size_t)in->count, image);
    tn_status result = TN_OK;
    if (status == TN_IMAGE_MISSING)
        result = tn_eval_fail(e, TN_ERR_UNSUPPORTED, "not supported: %s pictures: this build has no library for them",
                              image->format);
    else if (status == TN_IMAGE_LARGE)
        result = tn_eval_fail(e, TN_ERR_LIMIT, "the picture has more than 2^28 pixels, or 2^20 on a side");
    else if (status == TN_IMAGE_MEMORY)
        result = tn_error_status() == TN_OK ? TN_ERR_MEMORY : tn_error_status();
    else if (status == TN_IMAGE_BROKEN)
        image->height = image->width = 0; /* the text: what cannot be decoded is an empty matrix */
    tn_library_close(module);
    return result;
}

/* Grey as ITU-R BT.601 has it, in 16 bits after the point: 0.299, 0.587, 0.114. */
static uint8_t grey(const uint8_t *p) {
    return (uint8_t)((p[0] * 19595u + p[1] * 38470u + p[2] * 7471u + 0x8000u) >> 16);
}

static tn_status convert(tn_eval *e, const tn_image *image) {
    tn_string format = tn_attr_string(e->graph, e->node, "pixel_format");
    bool one = is_grey(e->graph, e->node), swapped = format.length == 3 && format.data[0] == 'B';
    int64_t dims[3] = {image->height, image->width, one ? 1 : 3}, pixels = dims[0] * dims[1];
    tn_tensor *out = tn_eval_result(e, 0, TN_U8, 3, dims);
    if (!out)
        return tn_error_status();
    uint8_t *to = out->data;
    const uint8_t *from = image->rgb;
    for (int64_t i = 0; i < pixels; i++, from += 3) {
        if (one) {
            to[i] = grey(from);
        } else {
            to[3 * i] = from[swapped ? 2 : 0];
            to[3 * i + 1] = from[1];
            to[3 * i + 2] = from[swapped ? 0 : 2];
        }
    }
    return TN_OK;
}

static tn_status eval_image(tn_eval *e) {
    tn_tensor *in = tn_host_readable(e->heap, tn_eval_in(e, 0));
    if (!in)
        return tn_error_status();
    taken t = {.heap = e->heap};
    tn_image image = {.alloc = take, .ctx = &t};
    tn_status status = decode(e, in, &image);
    if (status == TN_OK)
        status = convert(e, &image);
    for (size_t i = 0; i < t.blocks.len; i++)
        tn_free(e->heap, t.blocks.data[i]);
    tn_vec_free(e->heap, &t.blocks);
    tn_tensor_destroy(in);
    return status;
}

const tn_attr_spec tn_host_image_attrs[] = {TN_SPEC_STRING("pixel_format", "RGB", "RGB|BGR|Grayscale"), {0}};

const tn_op tn_host_image = {.name = "decode_image",
                             .dialect = TN_DIALECT_PRIMITIVE,
                             .min_inputs = 1,
                             .max_inputs = 1,
                             .min_outputs = 1,
                             .max_outputs = 1,
                             .traits = TN_HOST | TN_EXACT,
                             .attrs = tn_host_image_attrs,
                             .inputs = "x",
                             .doc = "An encoded picture as u8 [height, width, channels]; what is none as an empty one.",
                             .infer = infer_image,
                             .eval = eval_image,
                             .no_gradient = "bytes of a file are no numbers"};
