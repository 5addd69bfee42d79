/* What no model file alone can show: messages, empty batches, contradicted declarations, integer division by zero, weights of loop
   bodies beside the file, long chains. Each test states the complaint that it answers; docs/testing.md lists them. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/os.h"
#include "support/one_node.h"
#include "support/paths.h"

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})

static void must_say(const char *row, const char *path, const char *word) {
    if (!strstr(tn_error_message(), word))
        fail_msg("%s, %s: no '%s' in: %s", row, path, word, tn_error_message());
}

/* --- E1: the message of a reshape that fails amid fused operators ------------------------------------------------------------- */

static void test_e1_reshape_message(void **s) {
    (void)s;
    static const int64_t shapes[2][2] = {{-1, 7}, {2, 7}};
    for (int k = 0; k < 3; k++) { /* a shape with -1; numbers alone; fed */
        tn_text g = message(), bytes;
        put_value(&g, 11, "x", TN_F32, "N,M");
        if (k < 2)
            put_ints(&g, 5, "shape", 2, shapes[k]);
        else
            put_value(&g, 11, "z", TN_I64, "2");
        put_node(&g, "Relu", "act", "x", "h");
        put_node(&g, "Reshape", "bend", k < 2 ? "h,shape" : "h,z", "r");
        put_node(&g, "Exp", "grow", "r", "y");
        put_value(&g, 12, "y", TN_F32, NULL);
        tn_model *model = path_model(17, g, NULL, &bytes);
        assert_non_null(model);
        tn_tensor *x = tn_tensor_create(TN_F32, 2, DIMS(3, 5)), *z = k < 2 ? NULL : tn_tensor_from_i64(2, shapes[1]),
                  *y;
        for (int p = 0; p < RUN_PATHS; p++) {
            const char *path = run_paths[p].name;
            tn_status status = path_run(model, p, x, z, &y);
            if (status != TN_ERR_INPUT)
                fail_msg("E1, case %d, %s: status %d: %s", k, path, (int)status, tn_error_message());
            assert_null(y);
            must_say("E1", path, "Reshape 'bend'");                /* node and operator as in the file */
            must_say("E1", path, "'h' f32[N, M] from Relu 'act'"); /* the input and who made it */
            must_say("E1", path, "input 0 is f32[3,5]");           /* its dimensions */
            must_say("E1", path, "15 elements, the new shape");    /* the rule */
            must_say("E1", path, "hint: the sizes of the new shape must multiply to 15");
        }
        tn_tensor_destroy(x);
        tn_tensor_destroy(z);
        tn_model_destroy(model);
        tn_text_free(&bytes);
    }
}

/* --- E2: a batch of 0 through Reshape [0, -1, 16, 64] -------------------------------------------------------------------------- */

static void test_e2_empty_batch(void **s) {
    (void)s;
    for (int k = 0; k < 4; k++) { /* the reshape alone or amid others; its shape in the file or fed */
        bool amid = k & 1, fed = k & 2;
        tn_text g = message(), bytes;
        put_value(&g, 11, "x", TN_F32, "N,T,1024");
        if (fed)
            put_value(&g, 11, "z", TN_I64, "4");
        else
            put_ints(&g, 5, "z", 4, DIMS(0, -1, 16, 64));
        if (amid)
            put_node(&g, "Relu", "act", "x", "h");
        put_node(&g, "Reshape", "heads", amid ? "h,z" : "x,z", amid ? "r" : "y");
        if (amid)
            put_node(&g, "Exp", "grow", "r", "y");
        put_value(&g, 12, "y", TN_F32, NULL);
        tn_model *model = path_model(17, g, NULL, &bytes);
        assert_non_null(model);
        tn_tensor *z = fed ? tn_tensor_from_i64(4, DIMS(0, -1, 16, 64)) : NULL, *y;
        for (int64_t n = 0; n < 3; n++)
            for (int p = 0; p < RUN_PATHS; p++) {
                tn_tensor *x = tn_tensor_create(TN_F32, 3, DIMS(n, 5, 1024));
                tn_status status = path_run(model, p, x, z, &y);
                if (status != TN_OK)
                    fail_msg("E2, case %d, %s, batch %d: %s", k, run_paths[p].name, (int)n, tn_error_message());
                assert_int_equal(tn_tensor_rank(y), 4);
                for (int d = 0; d < 4; d++)
                    assert_int_equal(tn_tensor_dims(y)[d], DIMS(n, 5, 16, 64)[d]);
                tn_tensor_destroy(x);
                tn_tensor_destroy(y);
            }
        tn_tensor_destroy(z);
        tn_model_destroy(model);
        tn_text_free(&bytes);
    }
}

/* --- E8: a declared shape or type that inference contradicts -------------------------------------------------------------------- */

static char command_output[1 << 16];

/* Runs the command on a model of these bytes; what it prints is in command_output. Its exit status. */
static int run_command(const char *arguments, const void *bytes, size_t size) {
    char path[] = "/tmp/tenon-test-XXXXXX", line[4096];
    int file = mkstemp(path);
    assert_true(file >= 0 && write(file, bytes, size) == (ssize_t)size);
    close(file);
    snprintf(line, sizeof line, "'%s' %s '%s' 2>&1", TENON_BINARY, arguments, path);
    FILE *pipe = popen(line, "r");
    assert_non_null(pipe);
    size_t n = fread(command_output, 1, sizeof command_output - 1, pipe);
    command_output[n] = 0;
    int status = pclose(pipe);
    unlink(path);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void must_print(const char *row, const char *word, bool wanted) {
    if (!strstr(command_output, word) == wanted)
        fail_msg("%s: %s'%s' in: %s", row, wanted ? "no " : "", word, command_output);
}

static void test_e8_contradicted_declarations(void **s) {
    (void)s;
    static const struct {
        const char *op, *node;
        int dtype;
        const char *shape, *words[2];
    } cases[] = {
        {"Conv", "conv1", TN_F32, "1,1,4,4", {"declared as f32[1,1,4,4]", "is f32[1, 1, 3, 3]"}},
        {"Conv", "conv2", TN_F32, "1,1,3", {"declared as f32[1,1,3]", "is f32[1, 1, 3, 3]"}},
        {"Conv", "conv3", TN_I32, "1,1,3,3", {"declared as i32[1,1,3,3]", "is f32[1, 1, 3, 3]"}},
        {"GlobalMaxPool", "pool", TN_F32, "1,1,1,2", {"declared as f32[1,1,1,2]", "is f32[1, 1, 1, 1]"}},
        {"Shape", "sizes", TN_I64, "5", {"declared as i64[5]", "is i64[4]"}},
        {"Relu", "act", TN_F32, "1,1,5,6", {"declared as f32[1,1,5,6]", "is f32[1, 1, 5, 5]"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int inner = 0; inner < 2; inner++) { /* of the graph's output; of a value inside */
            char origin[80];
            tn_text g = message();
            put_value(&g, 11, "x", TN_F32, "1,1,5,5");
            put_floats(&g, 5, "w", 4, DIMS(1, 1, 3, 3), (const float[9]){1});
            put_node(&g, cases[i].op, cases[i].node, strcmp(cases[i].op, "Conv") == 0 ? "x,w" : "x", inner ? "h" : "y");
            if (inner)
                put_node(&g, "Neg", "last", "h", "y");
            put_value(&g, inner ? 13 : 12, inner ? "h" : "y", cases[i].dtype, cases[i].shape);
            if (inner)
                put_value(&g, 12, "y", 0, NULL);
            tn_text bytes = model_bytes(17, g);
            /* a warning, whatever the node (docs/command.md): the model loads */
            if (run_command("info", bytes.data, bytes.len) != 0)
                fail_msg("E8: does not load: %s", command_output);
            snprintf(origin, sizeof origin, "warning: %s '%s' (", cases[i].op, cases[i].node);
            must_print("E8", origin, true);
            must_print("E8", inner ? "value 'h' is declared" : "value 'y' is declared", true);
            must_print("E8", cases[i].words[0], true);
            must_print("E8", cases[i].words[1], true);
            must_print("E8", "%", false); /* no name of an internal value */
            must_print("E8", "error", false);
            tn_text_free(&bytes);
        }
}

/* A body: x -> Relu 'act' -> h -> Neg 'last' -> o; `at`: of what it declares `dtype` and `shape`, "v", "h" or "o" (else what is so). */
static tn_text declared_body(int owner, const char *at, int dtype, const char *shape) {
    bool loop = owner == 2, given = owner == 2 || owner == 3;
    const char *actual = owner == 3 ? "3" : "2,3";
    tn_text b = message();
    if (loop) { /* one number and one bool: either form is right */
        put_value(&b, 11, "i", TN_I64, "1");
        put_value(&b, 11, "go", TN_BOOL, "1");
        put_node(&b, "Identity", "on", "go", "go_on");
        put_value(&b, 12, "go_on", TN_BOOL, "");
    }
    if (given)
        put_value(&b, 11, "v", *at == 'v' ? dtype : TN_F32, *at == 'v' ? shape : actual);
    put_node(&b, "Relu", "act", given ? "v" : "x", "h");
    put_node(&b, "Neg", "last", "h", "o");
    put_value(&b, 13, "h", *at == 'h' ? dtype : TN_F32, *at == 'h' ? shape : actual);
    put_value(&b, 12, "o", *at == 'o' ? dtype : TN_F32, *at == 'o' ? shape : actual);
    put_text(&b, 2, "body");
    return b;
}

/* A node that has the body: 0, 1 If, 2 Loop, 3 Scan. */
static void put_owner(tn_text *g, int owner, tn_text body, const char *output) {
    static const char *const ops[] = {"If", "If", "Loop", "Scan"}, *const inputs[] = {"c", "c", "n,c,x", "x"};
    tn_text attrs = message();
    if (owner < 2)
        attr_graph(&attrs, owner ? "then_branch" : "else_branch", declared_body(owner, "", 0, NULL));
    attr_graph(&attrs, owner == 0 ? "then_branch" : owner == 1 ? "else_branch" : "body", body);
    if (owner == 3)
        attr_int(&attrs, "num_scan_inputs", 1);
    put_message(g, 1, node_bytes(ops[owner], "own", inputs[owner], output, attrs));
}

static void put_function_call(tn_text *g, tn_text *function) {
    tn_text call = node_bytes("F", "call", "c,n,x", "y", message());
    put_text(&call, 7, "local");
    put_message(g, 1, call);
    *function = message();
    put_text(function, 1, "F");
    put_text(function, 10, "local");
    put_text(function, 4, "c");
    put_text(function, 4, "n");
    put_opset(function, 9, "", 17);
}

/* The same inside the bodies of nodes and of functions, and in bodies inside those. */
static void test_e8_bodies(void **s) {
    (void)s;
    static const char *const bodies[] = {" in then_branch of If 'own'", " in else_branch of If 'own'",
                                         " in body of Loop 'own'", " in body of Scan 'own'", " in function 'local.F'"};
    static const struct {
        int dtype;
        const char *shape, *word;
    } cases[] = {{TN_F32, NULL, NULL},        {TN_F32, "N,M", NULL},           {TN_I64, "2,3", "i64[2,3]"},
                 {TN_F32, "5,5", "f32[5,5]"}, {TN_F32, "2,3,1", "f32[2,3,1]"}, {TN_I64, NULL, "i64[*]"}};
    for (int owner = 0; owner < 5; owner++)
        for (int where = 0; where < 3; where++) /* in the graph, in a function, in the body of a Loop */
            for (const char *at = "vho"; *at; at++)
                for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                    bool scan = owner == 3, flat = scan && !cases[i].word;
                    if ((owner < 2 && *at == 'v') || (owner == 4 && where))
                        continue;
                    const char *shape = flat && cases[i].shape ? "N" : cases[i].shape;
                    char value[80], declared[80];
                    tn_text g = message(), function = message();
                    put_value(&g, 11, "c", TN_BOOL, "");
                    put_value(&g, 11, "n", TN_I64, "");
                    put_value(&g, 11, "x", TN_F32, "2,3");
                    if (owner == 4 || where == 1) {
                        put_function_call(&g, &function);
                        put_text(&function, 4, owner == 4 ? "v" : "x");
                        put_text(&function, 5, owner == 4 ? "o" : "z");
                    }
                    if (owner == 4) {
                        char name[] = {*at, 0};
                        put_message(&function, 7, node_bytes("Relu", "act", "v", "h", message()));
                        put_message(&function, 7, node_bytes("Neg", "last", "h", "o", message()));
                        put_value(&function, 12, name, cases[i].dtype, shape);
                    } else if (where == 1) {
                        tn_text inner = message();
                        put_owner(&inner, owner, declared_body(owner, at, cases[i].dtype, shape), "z");
                        /* a node is field 1 of a graph, field 7 of a function: the same but for that byte */
                        inner.data[0] = (char)(7 << 3 | 2);
                        tn_text_bytes(&function, inner.data, inner.len);
                        tn_text_free(&inner);
                    } else if (where == 2) {
                        tn_text outer = message(), attrs = message();
                        put_value(&outer, 11, "j", TN_I64, "");
                        put_value(&outer, 11, "more", TN_BOOL, "");
                        put_node(&outer, "Identity", "so", "more", "more_so");
                        put_owner(&outer, owner, declared_body(owner, at, cases[i].dtype, shape), "z");
                        put_value(&outer, 12, "more_so", TN_BOOL, "");
                        put_value(&outer, 12, "z", TN_F32, NULL);
                        put_text(&outer, 2, "outer");
                        attr_graph(&attrs, "body", outer);
                        put_message(&g, 1, node_bytes("Loop", "around", "n,c", "y", attrs));
                    } else {
                        put_owner(&g, owner, declared_body(owner, at, cases[i].dtype, shape), "y");
                    }
                    put_value(&g, 12, "y", 0, NULL);
                    tn_text bytes = model_bytes(17, g);
                    if (owner == 4 || where == 1) {
                        put_opset(&bytes, 8, "local", 1);
                        put_message(&bytes, 25, function);
                    } else {
                        tn_text_free(&function);
                    }
                    if (run_command("info", bytes.data, bytes.len) != 0)
                        fail_msg("E8: does not load: %s", command_output);
                    snprintf(value, sizeof value, "value '%c'%s is declared as %s, but is %s\n", *at, bodies[owner],
                             cases[i].word ? cases[i].word : "", scan ? "f32[3]" : "f32[2, 3]");
                    snprintf(declared, sizeof declared, "%s", cases[i].word ? value : "warning:");
                    must_print("E8", declared, cases[i].word != NULL);
                    const char *first = strstr(command_output, "warning:");
                    if (first && strstr(first + 1, "warning:"))
                        fail_msg("E8: more than one warning: %s", command_output);
                    must_print("E8", "error", false);
                    tn_text_free(&bytes);
                }
}

/* What is no contradiction: a loop value that grows is what is declared in one trip alone. */
static void test_e8_loop_value_grows(void **s) {
    (void)s;
    tn_text g = message(), b = message(), attrs = message();
    put_value(&g, 11, "n", TN_I64, "");
    put_value(&g, 11, "x", TN_F32, "2");
    put_value(&b, 11, "i", TN_I64, "");
    put_value(&b, 11, "go", TN_BOOL, "");
    put_value(&b, 11, "v", TN_F32, "4");
    attr_int(&attrs, "axis", 0);
    put_node(&b, "Identity", "on", "go", "go_on");
    put_message(&b, 1, node_bytes("Concat", "grow", "v,x", "o", attrs));
    put_value(&b, 12, "go_on", TN_BOOL, "");
    put_value(&b, 12, "o", TN_F32, "6");
    put_text(&b, 2, "body");
    attrs = message();
    attr_graph(&attrs, "body", b);
    put_message(&g, 1, node_bytes("Loop", "own", "n,,x", "go_on", attrs));
    put_value(&g, 12, "go_on", TN_F32, "N"); /* the body has another value of this name */
    tn_text bytes = model_bytes(17, g);
    assert_int_equal(run_command("info", bytes.data, bytes.len), 0);
    must_print("E8", "warning", false);
    tn_text_free(&bytes);
}

/* --- E9: info says all findings, and whether the model will load ----------------------------------------------------------------- */

static void test_e9_info(void **s) {
    (void)s;
    /* two operators nobody knows and a false declaration: three findings in one pass */
    tn_text g = message();
    put_value(&g, 11, "x", TN_F32, "2,3");
    put_node(&g, "Made", "first", "x", "a");
    put_node(&g, "Relu", "act", "x", "b");
    put_node(&g, "Up", "second", "b", "c");
    put_value(&g, 13, "b", TN_F32, "2,4");
    put_value(&g, 12, "a", TN_F32, "2,3");
    put_value(&g, 12, "c", TN_F32, "2,3");
    tn_text bytes = model_bytes(17, g);
    assert_int_equal(run_command("info --json", bytes.data, bytes.len), 4);
    must_print("E9", "\"loads\": false", true);
    must_print("E9", "\"severity\": \"error\"", true);
    must_print("E9", "Made", true);
    must_print("E9", "'first'", true);
    must_print("E9", "Up", true);
    must_print("E9", "'second'", true);
    tn_text_free(&bytes);

    /* shapes and types of what loads, with its warning; 0 */
    g = message();
    put_value(&g, 11, "x", TN_F32, "N,3");
    put_node(&g, "Relu", "act", "x", "b");
    put_node(&g, "Shape", "sizes", "b", "y");
    put_value(&g, 13, "b", TN_F32, "N,4");
    put_value(&g, 12, "y", 0, NULL);
    bytes = model_bytes(17, g);
    assert_int_equal(run_command("info --json", bytes.data, bytes.len), 0);
    must_print("E9", "\"loads\": true", true);
    must_print("E9", "\"severity\": \"warning\"", true);
    must_print("E9", "\"shape\": [\"N\", 3]", true);
    must_print("E9", "\"i64\"", true);
    tn_text_free(&bytes);
}

/* Exit status 0 exactly for what loads: the shared cases. */
static void test_e9_exit_status(void **s) {
    (void)s;
    char **names, path[4096], line[9000];
    size_t count, tried = 0, loads = 0;
    const char *full = getenv("TENON_FULL");
    size_t step = full && *full == '1' ? 1 : 6;
    if (tn_folder_list(NULL, TENON_SHARED_DIR "/cases", &names, &count) != TN_OK) {
        print_message("skipped: no shared cases\n");
        skip();
    }
    for (size_t i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/cases/%s/model.onnx", TENON_SHARED_DIR, names[i]);
        if (i % step == 0 && tn_path_kind_of(path) == TN_PATH_FILE) {
            tn_model *model = tn_model_load(path, NULL);
            tn_session *session = model ? tn_session_create(model, NULL) : NULL;
            snprintf(line, sizeof line, "'%s' info --quiet '%s' >/dev/null 2>&1", TENON_BINARY, path);
            int status = system(line);
            if (!WIFEXITED(status) || (WEXITSTATUS(status) == 0) != (session != NULL))
                fail_msg("E9: %s: exit status %d of a model that %s", names[i], status,
                         session ? "loads" : "does not load");
            loads += session != NULL;
            tried++;
            tn_session_destroy(session);
            tn_model_destroy(model);
        }
        tn_free(NULL, names[i]);
    }
    tn_free(NULL, names);
    print_message("%zu models, %zu load\n", tried, loads);
}

/* --- L8: loop bodies that own weights of one name, beside the file ------------------------------------------------------------- */

static void put_entry(tn_text *tensor, const char *key, const char *value) {
    tn_text e = message();
    put_text(&e, 1, key);
    put_text(&e, 2, value);
    put_message(tensor, 13, e);
}

/* A loop body v := v * w, its w of two floats in weights.bin at `offset`. */
static tn_text scaling_body(const char *offset) {
    tn_text g = message(), w = message();
    put_text(&g, 2, "body");
    put_value(&g, 11, "trip", TN_I64, "");
    put_value(&g, 11, "go", TN_BOOL, "");
    put_value(&g, 11, "v", TN_F32, "2");
    tn_wire_put_varint(&w, 1, 2);
    tn_wire_put_varint(&w, 2, TN_F32);
    put_text(&w, 8, "w");
    put_entry(&w, "location", "weights.bin");
    put_entry(&w, "offset", offset);
    put_entry(&w, "length", "8");
    tn_wire_put_varint(&w, 14, 1);
    put_message(&g, 5, w);
    put_node(&g, "Identity", "on", "go", "go_on");
    put_node(&g, "Mul", "scale", "v,w", "v_out");
    put_value(&g, 12, "go_on", TN_BOOL, "");
    put_value(&g, 12, "v_out", TN_F32, "2");
    return g;
}

static void check_scaled(const char *what, tn_model *model) {
    if (!model)
        fail_msg("L8: %s: %s", what, tn_error_message());
    tn_tensor *x = tn_tensor_from_f32(1, DIMS(2), (const float[]){1, 3}), *y;
    for (int p = 0; p < RUN_PATHS; p++) {
        if (path_run(model, p, x, NULL, &y) != TN_OK)
            fail_msg("L8: %s, %s: %s", what, run_paths[p].name, tn_error_message());
        /* twice by (2, 5), then three times by (10, -1) */
        if (tn_tensor_get_f64(y, 0) != 4000 || tn_tensor_get_f64(y, 1) != -75)
            fail_msg("L8: %s, %s: wrong values", what, run_paths[p].name);
        tn_tensor_destroy(y);
    }
    tn_tensor_destroy(x);
}

static void test_l8_weights_of_loop_bodies(void **s) {
    (void)s;
    char folder[] = "/tmp/tenon-test-XXXXXX", path[64], data[64], saved[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/model.onnx", folder);
    snprintf(data, sizeof data, "%s/weights.bin", folder);
    snprintf(saved, sizeof saved, "%s/model.tenon", folder);
    static const float weights[] = {2, 5, 10, -1};
    tn_text g = message(), attrs = message();
    put_value(&g, 11, "x", TN_F32, "2");
    put_ints(&g, 5, "two", 1, DIMS(2));
    put_ints(&g, 5, "three", 1, DIMS(3));
    attr_graph(&attrs, "body", scaling_body("0"));
    put_message(&g, 1, node_bytes("Loop", "first", "two,,x", "h", attrs));
    attrs = message();
    attr_graph(&attrs, "body", scaling_body("8"));
    put_message(&g, 1, node_bytes("Loop", "second", "three,,h", "y", attrs));
    put_value(&g, 12, "y", TN_F32, "2");
    tn_text bytes = model_bytes(17, g);
    assert_int_equal(tn_file_write(path, bytes.data, bytes.len), TN_OK);
    assert_int_equal(tn_file_write(data, weights, sizeof weights), TN_OK);
    tn_model *model = tn_model_load(path, NULL);
    check_scaled("as written", model);
    assert_int_equal(tn_graph_save(tn_model_graph(model), saved), TN_OK);
    tn_model *again = tn_model_load(saved, NULL);
    check_scaled("saved and loaded", again);
    tn_model_destroy(again);
    tn_model_destroy(model);
    tn_text_free(&bytes);
    unlink(path);
    unlink(data);
    unlink(saved);
    rmdir(folder);
}

/* --- S2: whole numbers divided by zeros ------------------------------------------------------------------------------------------ */

static double lowest(tn_dtype d) {
    static const double at[] = {
        [TN_I8] = -128, [TN_I16] = -32768, [TN_I32] = -2147483648.0, [TN_I64] = -9223372036854775808.0};
    return d == TN_I8 || d == TN_I16 || d == TN_I32 || d == TN_I64 ? at[d] : 0;
}

/* 0 Div, 1 Mod, 2 Mod with fmod: what the table of operators documents. */
static int64_t quotient(int what, tn_dtype d, int64_t a, int64_t b) {
    if (b == 0)
        return what == 0 ? 0 : a;
    if (b == -1 && (double)a == lowest(d))
        return what == 0 ? a : 0;
    if (what == 0)
        return a / b;
    int64_t rest = a % b;
    return what == 1 && rest && (rest < 0) != (b < 0) ? rest + b : rest;
}

static void test_s2_division_by_zero(void **s) {
    (void)s;
    static const tn_dtype dtypes[] = {TN_I8, TN_I16, TN_I32, TN_I64, TN_U8, TN_U16, TN_U32, TN_U64};
    enum { N = 12 };
    for (size_t t = 0; t < sizeof dtypes / sizeof *dtypes; t++) {
        tn_dtype d = dtypes[t];
        bool sign = lowest(d) != 0;
        /* whole rows of zeros too, so that vectors of them meet the same */
        const double a[N] = {7, 0, sign ? -7 : 9, sign ? lowest(d) : 100, 1, 5, 6, 7, 8, 9, 10, 11},
                     b[N] = {0, 0, 0, sign ? -1 : 0, 0, sign ? -3 : 3, 4, 0, 0, 0, 0, 2};
        for (int what = 0; what < 3; what++)
            for (int fed = 0; fed < 4; fed++) { /* bit 0: a is fed; bit 1: b is */
                tn_text g = message(), attrs = message(), bytes;
                tn_tensor *in[2] = {tn_tensor_create(d, 1, DIMS(N)), tn_tensor_create(d, 1, DIMS(N))}, *y;
                for (int i = 0; i < N; i++) {
                    tn_tensor_set_f64(in[0], i, a[i]);
                    tn_tensor_set_f64(in[1], i, b[i]);
                }
                for (int i = 0; i < 2; i++) {
                    const char *name = i ? "z" : "x";
                    if (fed >> i & 1) {
                        put_value(&g, 11, name, d, "N");
                        continue;
                    }
                    tn_text tensor = message();
                    assert_int_equal(tn_onnx_write_tensor(&tensor, in[i], name), TN_OK);
                    put_message(&g, 5, tensor);
                }
                if (what == 2)
                    attr_int(&attrs, "fmod", 1);
                put_message(&g, 1, node_bytes(what ? "Mod" : "Div", "share", "x,z", "y", attrs));
                put_value(&g, 12, "y", d, NULL);
                tn_model *model = path_model(14, g, NULL, &bytes);
                assert_non_null(model);
                for (int p = 0; p < RUN_PATHS; p++) {
                    tn_session *session = tn_session_create(model, &run_paths[p].options);
                    assert_non_null(session);
                    tn_binding binding[2];
                    uint32_t n = 0;
                    for (int i = 0; i < 2; i++)
                        if (fed >> i & 1)
                            binding[n++] = (tn_binding){.name = i ? "z" : "x", .tensor = in[i]};
                    y = NULL;
                    if (tn_session_run(session, n, binding, 1, &(tn_output){.name = "y", .tensor = &y}) != TN_OK)
                        fail_msg("S2: %s: %s", run_paths[p].name, tn_error_message());
                    for (int i = 0; i < N; i++) {
                        int64_t want = quotient(what, d, (int64_t)a[i], (int64_t)b[i]), got = tn_tensor_get_i64(y, i);
                        if (got != want)
                            fail_msg("S2: %s, %s, %s, fed %d: %" PRId64 " and %" PRId64 " give %" PRId64
                                     ", not %" PRId64,
                                     run_paths[p].name, tn_dtype_name(d),
                                     what == 0   ? "Div"
                                     : what == 1 ? "Mod"
                                                 : "Mod fmod",
                                     fed, (int64_t)a[i], (int64_t)b[i], got, want);
                    }
                    tn_tensor_destroy(y);
                    tn_session_destroy(session);
                }
                tn_model_destroy(model);
                tn_text_free(&bytes);
                tn_tensor_destroy(in[0]);
                tn_tensor_destroy(in[1]);
            }
    }
}

/* --- T1: long chains -------------------------------------------------------------------------------------------------------------- */

/* Loading costs the same for each node, however long the chain: in allocations and bytes (tests/timing/test_load.c: in time). */
static void test_t1_chains(void **s) {
    (void)s;
    static const int lengths[] = {5000, 10000, 20000, 100000};
    double allocations[4], peak[4];
    for (int i = 0; i < 4; i++) {
        tn_text bytes = chain_bytes(lengths[i]);
        tn_heap *heap = tn_heap_create(NULL);
        tn_model *model = tn_model_load_memory(bytes.data, bytes.len, TN_OPTIONS(tn_model_options, .heap = heap));
        if (!model)
            fail_msg("T1: %d nodes: %s", lengths[i], tn_error_message());
        const tn_graph *g = tn_model_graph(model);
        int nodes = 0;
        for (tn_node n = tn_region_first(g, tn_graph_region(g)); n.id; n = tn_node_next(g, n), nodes++)
            if (tn_node_input_count(g, n) != 1)
                fail_msg("T1: node %d is no link of the chain", nodes);
        assert_int_equal(nodes, lengths[i] + 1); /* and the return */
        allocations[i] = (double)tn_heap_allocations(heap) / lengths[i];
        peak[i] = (double)tn_heap_peak(heap) / lengths[i];
        print_message("%d nodes: %d bytes and %d/1000 allocations a node\n", lengths[i], (int)peak[i],
                      (int)(1000 * allocations[i]));
        tn_model_destroy(model);
        assert_int_equal(tn_heap_in_use(heap), 0);
        tn_heap_destroy(heap);
        tn_text_free(&bytes);
    }
    assert_true(allocations[3] <= 1.5 * allocations[0]);
    assert_true(peak[3] <= 1.5 * peak[0]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_e1_reshape_message),
                                       cmocka_unit_test(test_e2_empty_batch),
                                       cmocka_unit_test(test_e8_contradicted_declarations),
                                       cmocka_unit_test(test_e8_bodies),
                                       cmocka_unit_test(test_e8_loop_value_grows),
                                       cmocka_unit_test(test_e9_info),
                                       cmocka_unit_test(test_e9_exit_status),
                                       cmocka_unit_test(test_l8_weights_of_loop_bodies),
                                       cmocka_unit_test(test_s2_division_by_zero),
                                       cmocka_unit_test(test_t1_chains)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
