/* Rows of behaviour of reading, writing and quantised models (docs/testing.md): K5, L1, L2, L7, T4, Q1, Q2, Q9. */
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include <tenon/session.h>

#include "base/os.h"
#include "support/model_runs.h"
#include "support/onnx_bytes.h"

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})

static char folder[64];
static const char *in_folder(const char *name) {
    static char text[8][128];
    static int next;
    next = (next + 1) % 8;
    snprintf(text[next], sizeof text[next], "%s/%s", folder, name);
    return text[next];
}
static int make_folder(void **state) {
    (void)state;
    strcpy(folder, "/tmp/tenon-rows-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}
static int remove_folder(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

#define COMMAND(...) command((const char *const[]){__VA_ARGS__, NULL})
static long command(const char *const *arguments) {
    long kb;
    double ms;
    int code = command_run(arguments, &kb, &ms);
    if (code != 0)
        fail_msg("tenon %s %s: exit status %d", arguments[0], arguments[1], code);
    return kb;
}

static void write_model(const char *path, tn_text graph) {
    tn_text m = model_bytes(17, graph);
    assert_int_equal(tn_file_write(path, m.data, m.len), TN_OK);
    tn_text_free(&m);
}

static off_t size_of(const char *path) {
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    return info.st_size;
}

static void same_bytes(const char *a, const char *b) {
    size_t n, m;
    char *x = tn_file_read(NULL, a, &n), *y = tn_file_read(NULL, b, &m);
    assert_true(x && y && n == m && memcmp(x, y, n) == 0);
    tn_free(NULL, x);
    tn_free(NULL, y);
}

/* --- K5: what optimize writes, every command reads ---------------------------------------------------------------------------------------- */

static void test_k5_saved_files(void **state) {
    (void)state;
    static const char *const forms[] = {"k5.onnx", "k5.tenon", "k5.txt"}, *const levels[] = {"-O0", "-O1"};
    const char *model = TENON_SOURCE_DIR "/examples/data/mnist-cnn.onnx";
    COMMAND("run", model, "--fill", "random", "-O1", "--output-dir", in_folder("wanted"), "--quiet");
    for (size_t f = 0; f < 3; f++)
        for (size_t l = 0; l < 2; l++) {
            const char *saved = in_folder(forms[f]), *again = in_folder(f == 0 ? "again.onnx" : "again.tenon");
            COMMAND("optimize", model, "-o", saved, levels[l], "--quiet");
            COMMAND("info", saved);
            COMMAND("verify", saved, "--samples", "1", "--quiet");
            COMMAND("run", saved, "--fill", "random", "-O1", "--output-dir", in_folder("got"), "--quiet");
            same_bytes(in_folder("wanted/Plus214_Output_0.npy"), in_folder("got/Plus214_Output_0.npy"));
            COMMAND("optimize", saved, "-o", again, "--quiet");
            COMMAND("run", again, "--fill", "random", "-O1", "--output-dir", in_folder("got"), "--quiet");
            same_bytes(in_folder("wanted/Plus214_Output_0.npy"), in_folder("got/Plus214_Output_0.npy"));
        }
    COMMAND("optimize", model, "-o", in_folder("standard.onnx"), "-O1", "--standard-only", "--quiet");
    COMMAND("info", in_folder("standard.onnx"));
}

/* --- L1, L2: a weight of 2.1 GB in a file of zeros beside the model ----------------------------------------------------------------------- */

enum { WEIGHT = 525 * 1000 * 1000 };

static bool write_large(const char *path, const char *data) {
    char number[24];
    tn_text g = message(), w = message();
    const char *entries[][2] = {{"location", "zeros"}, {"length", number}};
    snprintf(number, sizeof number, "%lld", (long long)WEIGHT * 4);
    tn_wire_put_varint(&w, 1, WEIGHT);
    tn_wire_put_varint(&w, 2, TN_F32);
    put_text(&w, 8, "w");
    for (int i = 0; i < 2; i++) {
        tn_text e = message();
        put_text(&e, 1, entries[i][0]);
        put_text(&e, 2, entries[i][1]);
        put_message(&w, 13, e);
    }
    tn_wire_put_varint(&w, 14, 1);
    put_message(&g, 5, w);
    put_floats(&g, 5, "a", 1, DIMS(2), (const float[]){1.5F, 0.1F});
    put_floats(&g, 5, "b", 1, DIMS(2), (const float[]){0.2F, 3});
    put_value(&g, 11, "i", TN_I64, "2");
    put_node(&g, "Mul", "folded", "a,b", "ab");
    put_node(&g, "Gather", "some", "w,i", "v");
    put_node(&g, "Add", "end", "v,ab", "y");
    put_value(&g, 12, "y", TN_F32, "2");
    write_model(path, g);
    int fd = open(data, O_CREAT | O_WRONLY, 0600);
    bool there =
        fd >= 0 && ftruncate(fd, (off_t)WEIGHT * 4) == 0 && pwrite(fd, "\0\0\x80\x3f", 4, ((off_t)WEIGHT - 1) * 4) == 4;
    close(fd);
    return there;
}

static void test_l1_l2_large_weights(void **state) {
    (void)state;
    const char *sanitize = getenv("TENON_SANITIZE"), *emulator = getenv("TENON_EMULATED");
    bool measured = !(sanitize && *sanitize) && !(emulator && *emulator);
    if (!write_large(in_folder("large.onnx"), in_folder("zeros"))) {
        print_message("no sparse file of 2.1 GB: skipped\n");
        skip();
    }
    char model[128], saved[128], input[40];
    snprintf(model, sizeof model, "%s", in_folder("large.onnx"));
    snprintf(input, sizeof input, "i=[3,%d]", WEIGHT - 1);
    long info = COMMAND("info", model);
    COMMAND("run", model, "--input", input, "--output-dir", in_folder("wanted"), "--quiet");
    for (int level = 0; level < 2; level++) { /* with folding, and without */
        snprintf(saved, sizeof saved, "%s", in_folder(level ? "folded.onnx" : "copied.onnx"));
        long kb = COMMAND("optimize", model, "-o", saved, level ? "-O1" : "-O0", "--quiet");
        assert_true(!measured || kb < 200 << 10);
        assert_true(size_of(saved) < 4096); /* no message holds the weight */
        assert_true(!measured || COMMAND("info", saved) < 200 << 10);
        COMMAND("run", saved, "--input", input, "--output-dir", in_folder("got"), "--quiet");
        same_bytes(in_folder("wanted/y.npy"), in_folder("got/y.npy"));
    }
    print_message("info of 2.1 GB: %ld kB\n", info);
    assert_true(!measured || info < 200 << 10);
}

/* --- L7, T4: what is large is not folded ----------------------------------------------------------------------------------------------------- */

static void test_l7_generators(void **state) {
    (void)state;
    static const char *const forms[] = {"l7.onnx", "l7.tenon"};
    tn_text g = message(), attrs = message();
    put_value(&g, 11, "x", TN_F32, "1,4096");
    put_ints(&g, 5, "shape", 2, DIMS(4096, 4096));
    put_floats(&attrs, 5, "", 1, DIMS(1), (const float[]){0.5F});
    tn_text value = message();
    put_text(&value, 1, "value");
    tn_text_bytes(&value, attrs.data, attrs.len);
    tn_wire_put_varint(&value, 20, 4);
    tn_text list = message();
    put_message(&list, 5, value);
    tn_text_free(&attrs);
    put_message(&g, 1, node_bytes("ConstantOfShape", "fill", "shape", "c", list));
    put_node(&g, "Add", "sum", "c,x", "y");
    put_value(&g, 12, "y", TN_F32, "4096,4096");
    write_model(in_folder("l7-as-is.onnx"), g);
    for (size_t i = 0; i < 2; i++) {
        COMMAND("optimize", in_folder("l7-as-is.onnx"), "-o", in_folder(forms[i]), i ? "-O2" : "-O1", "--quiet");
        assert_true(size_of(in_folder(forms[i])) < size_of(in_folder("l7-as-is.onnx")) + 4096);
    }
}

static char said[8192];
static void keep_log(void *ctx, const char *text) {
    (void)ctx;
    size_t n = strlen(said);
    snprintf(said + n, sizeof said - n, "%s\n", text);
}

static void test_t4_budget(void **state) {
    (void)state;
    enum { MANY = 125 * 1000 * 1000 };
    tn_text g = message();
    for (int i = 0; i < 3; i++) { /* Range takes scalars */
        static const char *const names[] = {"from", "to", "step"};
        tn_tensor *t = tn_tensor_create(TN_I64, 0, NULL);
        tn_text bytes = message();
        tn_tensor_set_f64(t, 0, i == 0 ? 0 : i == 1 ? MANY : 1);
        assert_int_equal(tn_onnx_write_tensor(&bytes, t, names[i]), TN_OK);
        put_message(&g, 5, bytes);
        tn_tensor_destroy(t);
    }
    put_value(&g, 11, "x", TN_I64, "1");
    put_node(&g, "Range", "many", "from,to,step", "r");
    put_node(&g, "Mul", "square", "r,r", "s");
    put_node(&g, "Gather", "some", "s,x", "y");
    put_value(&g, 12, "y", TN_I64, "1");
    tn_text m = model_bytes(17, g);
    said[0] = 0;
    size_t before = tn_rss_bytes();
    double start = tn_clock();
    tn_model *model = tn_model_load_memory(m.data, m.len, TN_OPTIONS(tn_model_options, .log = keep_log, .notes = true));
    tn_session *s = model ? tn_session_create(model, TN_OPTIONS(tn_session_options, .threads = 1)) : NULL;
    double took = tn_clock() - start;
    if (!s)
        fail_msg("%s", tn_error_message());
    size_t more = tn_rss_bytes() > before ? tn_rss_bytes() - before : 0;
    print_message("T4: %d ms, %d kB; said: %s\n", (int)(took * 1e3), (int)(more / 1000), said);
    assert_true(took < 1); /* a thousandth of it, where nothing is computed */
    assert_true(more < 100 << 20);
    assert_non_null(strstr(said, "cap"));
    tn_session_destroy(s);
    tn_model_destroy(model);
    tn_text_free(&m);
}

/* --- Q1, Q2, Q9: quantised ------------------------------------------------------------------------------------------------------------------- */

static uint64_t seed = 88172645463325252u;
static int64_t draw(int64_t low, int64_t high) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return low + (int64_t)(seed % (uint64_t)(high - low + 1));
}

static const char *const levels[] = {"generic", "avx2", "avx512", "neon"};

/* Outputs of all ways to run a model; the first is the reference's. False: this level is not the processor's. */
static bool one_way(tn_model *model, int way, const tn_binding *in, uint32_t inputs, tn_tensor **y) {
    tn_session_options o = {.size = sizeof o, .threads = 1};
    if (way == 0)
        o.backend = TN_BACKEND_REFERENCE;
    else if (way < 3)
        o.level = way == 1 ? TN_LEVEL_0 : TN_LEVEL_1;
    else
        o.isa = levels[way - 3];
    tn_session *s = tn_session_create(model, &o);
    if (!s && o.isa)
        return false;
    *y = NULL;
    if (!s || tn_session_run(s, inputs, in, 1, &(tn_output){.name = "y", .tensor = y}) != TN_OK)
        fail_msg("%s", tn_error_message());
    tn_session_destroy(s);
    return true;
}
enum { WAYS = 7 };

/* x and w of u8, y of u8; scales are powers of two, so that floats are exact and ties are many: what is fused equals the float graph. */
static tn_text qdq_graph(const char *op) {
    tn_text g = message();
    put_value(&g, 11, "x", TN_U8, "2,3,6,6");
    put_value(&g, 11, "w", TN_U8, strcmp(op, "Conv") == 0 ? "4,3,3,3" : strcmp(op, "MatMul") == 0 ? "6,5" : "3,6,6");
    put_floats(&g, 5, "sx", 0, NULL, (const float[]){0.25F});
    put_floats(&g, 5, "sw", 0, NULL, (const float[]){0.5F});
    put_floats(&g, 5, "sy", 0, NULL, (const float[]){strcmp(op, "Add") == 0 ? 0.5F : 16});
    static const char *const points[] = {"zx", "zw", "zy"};
    for (int i = 0; i < 3; i++) {
        tn_tensor *t = tn_tensor_create(TN_U8, 0, NULL);
        tn_text bytes = message();
        tn_tensor_set_f64(t, 0, 125 + i);
        assert_int_equal(tn_onnx_write_tensor(&bytes, t, points[i]), TN_OK);
        put_message(&g, 5, bytes);
        tn_tensor_destroy(t);
    }
    put_node(&g, "DequantizeLinear", "dx", "x,sx,zx", "fx");
    put_node(&g, "DequantizeLinear", "dw", "w,sw,zw", "fw");
    put_node(&g, op, "op", "fx,fw", "fy");
    put_node(&g, "Relu", "relu", "fy", "ry");
    put_node(&g, "QuantizeLinear", "q", "ry,sy,zy", "y");
    put_value(&g, 12, "y", TN_U8, "?,?,?,?");
    return g;
}

static tn_tensor *bytes_of(tn_dtype dtype, int rank, const int64_t *dims, int64_t low, int64_t high) {
    tn_tensor *t = tn_tensor_create(dtype, rank, dims);
    for (int64_t i = 0; i < tn_tensor_count(t); i++)
        tn_tensor_set_f64(t, i, (double)(draw(0, 3) ? draw(low, high) : draw(0, 1) ? low : high));
    return t;
}

static void test_q1_ties(void **state) {
    (void)state;
    static const char *const ops[] = {"Add", "Mul", "MatMul", "Conv"};
    for (size_t k = 0; k < 4; k++)
        for (int time = 0; time < 5; time++) {
            tn_text m = model_bytes(17, qdq_graph(ops[k]));
            tn_model *model = tn_model_load_memory(m.data, m.len, NULL);
            tn_tensor *x = bytes_of(TN_U8, 4, DIMS(2, 3, 6, 6), 0, 255), *want = NULL,
                      *w = k == 3   ? bytes_of(TN_U8, 4, DIMS(4, 3, 3, 3), 0, 255)
                           : k == 2 ? bytes_of(TN_U8, 2, DIMS(6, 5), 0, 255)
                                    : bytes_of(TN_U8, 3, DIMS(3, 6, 6), 0, 255);
            const tn_binding in[] = {{.name = "x", .tensor = x}, {.name = "w", .tensor = w}};
            for (int way = 0; way < WAYS; way++) {
                tn_tensor *y;
                if (!one_way(model, way, in, 2, &y))
                    continue;
                if (want && memcmp(tn_tensor_data(y), tn_tensor_data(want), tn_tensor_bytes(want)) != 0)
                    fail_msg("%s between integers: way %d is not the float graph", ops[k], way);
                if (want)
                    tn_tensor_destroy(y);
                else
                    want = y;
            }
            tn_tensor_destroy(want);
            tn_tensor_destroy(x);
            tn_tensor_destroy(w);
            tn_model_destroy(model);
            tn_text_free(&m);
        }
}

static void test_q2_products(void **state) {
    (void)state;
    static const int64_t summed[] = {1, 7, 64, 333, 1025};
    for (int types = 0; types < 4; types++)
        for (size_t k = 0; k < 5; k++) {
            tn_dtype p = types & 1 ? TN_I8 : TN_U8, q = types & 2 ? TN_I8 : TN_U8;
            int64_t n = summed[k], rows = 5, columns = 19;
            tn_text g = message();
            put_value(&g, 11, "a", (int)p, "?,?");
            put_value(&g, 11, "b", (int)q, "?,?");
            put_node(&g, "MatMulInteger", "product", "a,b", "y");
            put_value(&g, 12, "y", TN_I32, "?,?");
            tn_text m = model_bytes(17, g);
            tn_model *model = tn_model_load_memory(m.data, m.len, NULL);
            tn_tensor *a = bytes_of(p, 2, DIMS(rows, n), p == TN_I8 ? -128 : 0, p == TN_I8 ? 127 : 255),
                      *b = bytes_of(q, 2, DIMS(n, columns), q == TN_I8 ? -128 : 0, q == TN_I8 ? 127 : 255);
            const tn_binding in[] = {{.name = "a", .tensor = a}, {.name = "b", .tensor = b}};
            for (int way = 0; way < WAYS; way++) {
                tn_tensor *y;
                if (!one_way(model, way, in, 2, &y))
                    continue;
                for (int64_t i = 0; i < rows * columns; i++) {
                    int64_t sum = 0;
                    for (int64_t s = 0; s < n; s++)
                        sum += (int64_t)tn_tensor_get_f64(a, i / columns * n + s) *
                               (int64_t)tn_tensor_get_f64(b, s * columns + i % columns);
                    if ((int64_t)tn_tensor_get_f64(y, i) != sum)
                        fail_msg("way %d, %d summed: element %d is %d, not %d", way, (int)n, (int)i,
                                 (int)tn_tensor_get_f64(y, i), (int)sum);
                }
                tn_tensor_destroy(y);
            }
            tn_tensor_destroy(a);
            tn_tensor_destroy(b);
            tn_model_destroy(model);
            tn_text_free(&m);
        }
}

/* Networks of quantised layers: the plan against the float graph node by node, in steps of the output. docs/testing.md has the bound. */
static void test_q9_networks(void **state) {
    (void)state;
    static const struct {
        const char *name;
        double step;
    } nets[] = {{"models/kws-qdq", 1.0 / 128}, {"models/qtdnn", 0}};
    for (size_t k = 0; k < 2; k++) {
        char path[4096], file[4200];
        if (!shared_path(nets[k].name, path, sizeof path))
            continue;
        snprintf(file, sizeof file, "%s/model.onnx", path);
        tn_model *model = tn_model_load(file, NULL);
        run_inputs in;
        for (int set = 0; model && run_inputs_read(model, path, set, &in); set++) {
            run_outputs out[2];
            for (int way = 0; way < 2; way++)
                if (run_model(model,
                              TN_OPTIONS(tn_session_options, .backend = way ? TN_BACKEND_CPU : TN_BACKEND_REFERENCE,
                                         .threads = 1),
                              &in, &out[way]) != TN_OK)
                    fail_msg("%s", tn_error_message());
            double most = 0, least = HUGE_VAL;
            const tn_tensor *a = (const tn_tensor *)out[0].object[0], *b = (const tn_tensor *)out[1].object[0];
            for (int64_t i = 0; i < tn_tensor_count(a); i++) { /* the step: what the closest values differ by */
                for (int64_t j = 0; j < i && nets[k].step == 0; j++) {
                    double d = fabs(tn_tensor_get_f64(a, i) - tn_tensor_get_f64(a, j));
                    least = d > 0 && d < least ? d : least;
                }
                double d = fabs(tn_tensor_get_f64(a, i) - tn_tensor_get_f64(b, i));
                most = d > most ? d : most;
            }
            double steps = most / (nets[k].step > 0 ? nets[k].step : least);
            print_message("%s, set %d: at most %d hundredths of a step apart\n", nets[k].name, set, (int)(100 * steps));
            assert_true(steps <= 1.01);
            for (int way = 0; way < 2; way++)
                run_outputs_free(&out[way]);
            run_inputs_free(&in);
        }
        tn_model_destroy(model);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_k5_saved_files), cmocka_unit_test(test_l1_l2_large_weights),
        cmocka_unit_test(test_l7_generators),  cmocka_unit_test(test_t4_budget),
        cmocka_unit_test(test_q1_ties),        cmocka_unit_test(test_q2_products),
        cmocka_unit_test(test_q9_networks)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
