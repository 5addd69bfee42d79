/* Reshapes of strided tensors: the same elements as of a contiguous copy, seen in place where the strides allow it; and what a limit
   of bytes counts: storage, not the elements that a view stands for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/run_graph.h"
#include <tenon/build.h>

static uint64_t state = 20260101;
static int64_t draw(int64_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((state >> 33) % (uint64_t)n);
}

/* Splits `count` into at most 5 sizes, some of them 1. */
static int random_dims(int64_t count, int64_t *dims) {
    int rank = 0;
    while (rank < 4 && (count > 1 || draw(3) == 0)) {
        int64_t f = 1 + draw(6);
        while (count % f)
            f--;
        dims[rank++] = f;
        count /= f;
    }
    if (count > 1 || rank == 0)
        dims[rank++] = count;
    return rank;
}

/* Views (permuted, reversed, stepped, broadcast) in random new shapes. */
static void test_elements(void **s) {
    (void)s;
    print_message("seed %llu\n", (unsigned long long)state);
    for (int trial = 0; trial < 400; trial++) {
        tn_tensor *base = tn_tensor_create(TN_I32, 1, RUN_DIMS(4096));
        for (int64_t i = 0; i < 4096; i++)
            tn_tensor_set_f64(base, i, (double)i);
        int64_t dims[5], strides[5], next = 1, offset = 0, to[6];
        int rank = 1 + (int)draw(4);
        for (int i = rank - 1; i >= 0; i--) { /* row-major with gaps, sometimes reversed or repeated */
            dims[i] = 1 + draw(4);
            strides[i] = next;
            next *= dims[i];
            int64_t kind = draw(6);
            if (kind == 0)
                strides[i] = 0;
            else if (kind == 1)
                next += draw(3);
            else if (kind == 2) {
                offset += strides[i] * (dims[i] - 1);
                strides[i] = -strides[i];
            }
        }
        for (int i = rank - 1; i > 0 && draw(2); i--) {
            int k = (int)draw(i + 1);
            int64_t d = dims[i], st = strides[i];
            dims[i] = dims[k], strides[i] = strides[k];
            dims[k] = d, strides[k] = st;
        }
        int64_t count = 1;
        for (int i = 0; i < rank; i++)
            count *= dims[i];
        int to_rank = random_dims(count, to);
        tn_tensor *view = tn_tensor_view(NULL, base, TN_I32, rank, dims, strides, offset), *flat = tn_tensor_copy(view);
        assert_non_null(view);
        tn_graph *g = tn_graph_create();
        tn_shape in = {.rank = rank}, shape = {.rank = to_rank};
        for (int i = 0; i < rank; i++)
            in.item[i].size = dims[i];
        for (int i = 0; i < to_rank; i++)
            shape.item[i].size = to[i];
        tn_set_output(g, "y", tn_reshape(g, tn_input(g, "x", TN_I32, in), shape));
        tn_tensor *got = NULL;
        if (run_graph(g, NULL, &view, &got) != TN_OK)
            fail_msg("trial %d: %s", trial, tn_error_message());
        assert_int_equal(tn_tensor_rank(got), to_rank);
        for (int64_t i = 0; i < count; i++)
            if (tn_tensor_get_i64(got, i) != tn_tensor_get_i64(flat, i))
                fail_msg("trial %d: element %d is %d, not %d", trial, (int)i, (int)tn_tensor_get_i64(got, i),
                         (int)tn_tensor_get_i64(flat, i));
        tn_tensor_destroy(got);
        tn_graph_destroy(g);
        tn_tensor_destroy(view);
        tn_tensor_destroy(flat);
        tn_tensor_destroy(base);
    }
}

static tn_status run_text(const char *text, size_t limit, tn_heap *heap, tn_tensor **out) {
    tn_graph *g = tn_graph_parse(NULL, text, strlen(text));
    if (!g)
        fail_msg("%s", tn_error_message());
    tn_tensor *x = make_scalar(TN_F32, 3);
    tn_interp_options o = {.heap = heap, .max_bytes = limit};
    tn_status status = run_graph(g, &o, &x, out);
    tn_tensor_destroy(x);
    tn_graph_destroy(g);
    return status;
}

/* One number broadcast to 2^33 elements takes 4 bytes: no limit is passed by views of it, and a copy of it is refused before it is
   made. */
static void test_storage_counts(void **s) {
    (void)s;
    static const struct {
        const char *what, *text;
        tn_status status;
    } cases[] = {
        {"a slice",
         "tenon 1\ngraph (%1 \"x\": f32[]) -> (\"y\") {\n"
         "  %2 = broadcast(%1) {shape = dims [8589934592]} : f32[8589934592]\n"
         "  %3 = slice(%2) {start = dims [5], size = dims [2], step = [1]} : f32[2]\n  return(%3)\n}\n",
         TN_OK},
        {"a reshape",
         "tenon 1\ngraph (%1 \"x\": f32[]) -> (\"y\") {\n"
         "  %2 = broadcast(%1) {shape = dims [8589934592]} : f32[8589934592]\n"
         "  %3 = reshape(%2) {shape = dims [65536, 131072]} : f32[65536, 131072]\n"
         "  %4 = transpose(%3) {perm = [1, 0]} : f32[131072, 65536]\n"
         "  %5 = reshape(%4) {shape = dims [2, 65536, 65536]} : f32[2, 65536, 65536]\n"
         "  %6 = slice(%5) {start = dims [1, 5, 5], size = dims [1, 1, 2], step = [1, 1, 1]} : f32[1, 1, 2]\n  "
         "return(%6)\n}\n",
         TN_OK},
        {"a result",
         "tenon 1\ngraph (%1 \"x\": f32[]) -> (\"y\") {\n"
         "  %2 = broadcast(%1) {shape = dims [8589934592]} : f32[8589934592]\n  return(%2)\n}\n",
         TN_ERR_LIMIT},
        {"a copy",
         "tenon 1\ngraph (%1 \"x\": f32[]) -> (\"y\") {\n"
         "  %2 = broadcast(%1) {shape = dims [8589934592]} : f32[8589934592]\n"
         "  %3 = argmax(%2) {axis = 0} : i64[]\n  return(%3)\n}\n",
         TN_ERR_LIMIT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tn_heap *heap = tn_heap_create(NULL);
        tn_tensor *y = NULL;
        tn_error_clear();
        tn_status status = run_text(cases[i].text, 1 << 20, heap, &y);
        if (status != cases[i].status)
            fail_msg("%s: status %d: %s", cases[i].what, (int)status, tn_error_message());
        assert_true(tn_heap_peak(heap) < 1 << 16);
        if (y)
            assert_true(tn_tensor_get_f64(y, 0) == 3 && tn_tensor_get_f64(y, 1) == 3);
        tn_tensor_destroy(y);
        assert_int_equal(tn_heap_in_use(heap), 0);
        tn_heap_destroy(heap);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_elements), cmocka_unit_test(test_storage_counts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
