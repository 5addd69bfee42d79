/* Copies of strided tensors by the kernels, against one element at a time: every size of an element, odd extents, axes in any order, steps,
   reversed and repeated axes, each level, threads; nothing beside the target is touched. And kernels that copy, or read what is transposed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <tenon/build.h>

#include "base/os.h"
#include "base/pool.h"
#include "interp/interp.h"
#include "kernels/kernels.h"
#include "runtime/execute.h"

static uint64_t state = 20270115;
static uint32_t draw(uint32_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % n;
}

static const tn_isa levels[] = {TN_ISA_GENERIC, TN_ISA_AVX2, TN_ISA_AVX512, TN_ISA_NEON};
enum { LEVELS = sizeof levels / sizeof *levels, GUARD = 256 };

/* A view of fresh elements with axes in any order, steps, some reversed, some repeated. */
static tn_tensor *strided(tn_dtype dtype, int rank, const int64_t *dims) {
    int64_t whole[8], strides[8], offset = 0, total = 1;
    int order[8];
    tn_tensor *view, *base;
    bool repeat = draw(8) == 0;
    for (int i = 0; i < rank; i++)
        order[i] = i;
    for (int i = rank - 1; i > 0; i--) {
        int j = (int)draw((uint32_t)i + 1), t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
    for (int i = rank - 1; i >= 0; i--) { /* the memory's axes, the last ones side by side */
        int axis = order[i];
        int64_t step = draw(6) ? 1 : 2;
        whole[axis] = dims[axis] * step + (draw(4) ? 0 : (int64_t)draw(3));
        strides[axis] = total * step;
        total *= whole[axis] ? whole[axis] : 1;
        if (repeat && draw(2))
            strides[axis] = 0;
        else if (draw(10) == 0 && dims[axis] > 0) {
            offset += strides[axis] * (dims[axis] - 1);
            strides[axis] = -strides[axis];
        }
    }
    base = tn_tensor_create(dtype, 1, &total);
    uint8_t *bytes = tn_tensor_data(base);
    for (size_t i = 0; i < tn_tensor_bytes(base); i++)
        bytes[i] = (uint8_t)draw(256);
    view = tn_tensor_view(NULL, base, dtype, rank, dims, strides, offset);
    tn_tensor_destroy(base);
    assert_non_null(view);
    return view;
}

static void check_copy(tn_dtype dtype, int rank, const int64_t *dims, tn_pool *pool) {
    tn_tensor *from = strided(dtype, rank, dims);
    tn_tensor *want = tn_tensor_create(dtype, rank, dims);
    size_t bytes = tn_tensor_bytes(want), element = (size_t)tn_dtype_bits(dtype) / 8;
    int64_t index[8] = {0};
    for (int64_t i = 0; i < want->count; i++) {
        int64_t at = 0;
        for (int k = 0; k < rank; k++)
            at += index[k] * from->strides[k];
        memcpy((char *)want->data + (size_t)i * element, (const char *)from->data + at * (int64_t)element, element);
        for (int k = rank - 1; k >= 0 && ++index[k] == dims[k]; k--)
            index[k] = 0;
    }
    for (int l = 0; l < LEVELS; l++) {
        if (!tn_cpu_has(levels[l]))
            continue;
        char *room = calloc(1, bytes + 2 * GUARD), *data = room + GUARD + 8 * draw(9);
        memset(room, 0x5a, bytes + 2 * GUARD);
        tn_tensor *to = tn_tensor_wrap_in(NULL, dtype, rank, dims, NULL, data);
        assert_int_equal(tn_copy_tensor(to, from, levels[l], pool), TN_OK);
        for (char *p = room; p < room + bytes + 2 * GUARD; p++)
            if ((p < data || p >= data + bytes) && *p != 0x5a)
                fail_msg("%s, rank %d, level %s: byte %d is beside the target", tn_dtype_name(dtype), rank,
                         tn_isa_name(levels[l]), (int)(p - data));
        if (bytes && memcmp(data, want->data, bytes) != 0)
            fail_msg("%s, rank %d, level %s: other elements", tn_dtype_name(dtype), rank, tn_isa_name(levels[l]));
        tn_tensor_destroy(to);
        free(room);
    }
    tn_tensor_destroy(want);
    tn_tensor_destroy(from);
}

static const tn_dtype dtypes[] = {TN_U8, TN_BOOL, TN_F16, TN_I16, TN_F32, TN_U32, TN_F64, TN_I64, TN_C128};
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

static void test_random_strides(void **s) {
    (void)s;
    static const int64_t sizes[] = {0, 1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 130, 300};
    tn_pool *pool = tn_pool_create(NULL, 3);
    for (unsigned round = 0; round < 3000; round++) {
        int rank = 1 + (int)draw(4);
        int64_t dims[4], count = 1;
        for (int i = 0; i < rank; i++) {
            dims[i] = sizes[draw(count > 3000 ? 5 : count > 200 ? 12 : 18)];
            count *= dims[i] ? dims[i] : 1;
        }
        check_copy(dtypes[draw(DTYPES)], rank, dims, draw(2) ? pool : NULL);
    }
    tn_pool_destroy(pool);
}

/* Blocks for many threads, and targets written past the caches, at any multiple of 8 bytes. */
static void test_large(void **s) {
    (void)s;
    static const int64_t shapes[][3] = {
        {1031, 1, 2047}, {3, 1100, 777}, {9, 70000, 4}, {2100000, 1, 1}, {1, 40, 60001}};
    tn_pool *pool = tn_pool_create(NULL, 3);
    for (unsigned i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int j = 0; j < DTYPES - 1; j += 2)
            check_copy(dtypes[j], 3, shapes[i], pool);
    tn_pool_destroy(pool);
}

/* Transposed, then joined with others (a kernel that copies into a part) or computed with (strips of what is transposed): level 0 and 1,
   each level of instructions, against the reference. */
static void test_kernels(void **s) {
    (void)s;
    tn_pool *pool = tn_pool_create(NULL, 3);
    for (unsigned round = 0; round < 160; round++) {
        tn_dtype dtype = dtypes[draw(DTYPES - 1)];
        if (dtype == TN_BOOL || dtype == TN_U32)
            dtype = TN_F32;
        int64_t dims[3] = {1 + draw(70), 1 + draw(150), 1 + draw(9)};
        int perm[3] = {(int)draw(3), 0, 0};
        perm[1] = (perm[0] + 1 + (int)draw(2)) % 3;
        perm[2] = 3 - perm[0] - perm[1];
        tn_graph *g = tn_graph_create();
        tn_value x = tn_input(g, "x", dtype, TN_SHAPE(dims[0], dims[1], dims[2]));
        tn_value t = tn_transpose(g, x, perm), y;
        if (draw(2))
            y = tn_concat(g, (int)draw(3), 3,
                          (const tn_value[]){t, tn_reverse(g, t, 1, (const int[]){(int)draw(3)}), t});
        else
            y = tn_max(g, t, tn_scalar_like(g, t, 3));
        tn_set_output(g, "y", y);
        assert_int_equal(tn_graph_check(g), TN_OK);
        tn_object *in = tn_tensor_object(tn_tensor_create(dtype, 3, dims)), *want = NULL;
        for (int64_t i = 0; i < ((tn_tensor *)in)->count; i++)
            tn_tensor_set_f64((tn_tensor *)in, i, draw(100));
        tn_value gx = tn_graph_input(g, 0), gy = tn_graph_output(g, 0);
        assert_int_equal(tn_interp_run(g, NULL, 1, &gx, &in, 1, &gy, &want), TN_OK);
        for (int l = 0; l < 2 * LEVELS; l++) {
            if (!tn_cpu_has(levels[l / 2]))
                continue;
            tn_lower_options o = {.level = l % 2, .isa = levels[l / 2], .kernels = tn_kernels()};
            tn_plan *p = tn_lower(NULL, tn_graph_clone(g, NULL, NULL), &o);
            tn_object *got = NULL;
            assert_non_null(p);
            assert_int_equal(tn_execute(p, &(tn_execute_options){.pool = draw(2) ? pool : NULL}, &in, &got), TN_OK);
            if (!tn_object_equal(want, got))
                fail_msg("graph %u, %s, level %s: other elements", round, tn_dtype_name(dtype),
                         tn_isa_name(levels[l / 2]));
            tn_object_destroy(got);
            tn_plan_destroy(p);
        }
        tn_object_destroy(want);
        tn_object_destroy(in);
        tn_graph_destroy(g);
    }
    tn_pool_destroy(pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_strides),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
