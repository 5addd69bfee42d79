/* Models, inputs and runs for the acceptance tests. */
#include <tenon/tenon.h>

#include "support/model_runs.h"

#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/os.h"
#include "ir/dim.h"
#include "ir/graph.h"
#include "ir/tensor.h"
#include "onnx/tensor_file.h"

static void die(const char *what) {
    fprintf(stderr, "%s: %s\n", what, tn_error_message());
    abort();
}

bool run_full(void) {
    const char *full = getenv("TENON_FULL");
    return full && *full && *full != '0';
}

static const char *shared_root(void) {
    const char *root = getenv("TENON_SHARED");
    return root && *root ? root : TENON_SHARED_DIR;
}

const char *shared_path(const char *name, char *text, size_t size) {
    snprintf(text, size, "%s/%s", shared_root(), name);
    if (tn_path_kind_of(text) != TN_PATH_NONE)
        return text;
    printf("skipped: there is no %s\n", text);
    return NULL;
}

char **shared_models(const char *folder) {
    char path[4096], **names = NULL, **kept = NULL;
    size_t count = 0, n = 0;
    if (shared_path(folder, path, sizeof path) && tn_folder_list(NULL, path, &names, &count) != TN_OK)
        die(path);
    if (!(kept = calloc(count + 1, sizeof *kept)))
        abort();
    for (size_t i = 0; i < count; i++) {
        char model[8192];
        snprintf(model, sizeof model, "%s/%s/model.onnx", path, names[i]);
        if (tn_path_kind_of(model) == TN_PATH_FILE)
            kept[n++] = strdup(names[i]);
        tn_free(NULL, names[i]);
    }
    tn_free(NULL, names);
    return kept;
}

void shared_free_names(char **names) {
    for (char **name = names; *name; name++)
        free(*name);
    free(names);
}

/* --- inputs ---------------------------------------------------------------------------------------------------------------------- */

void run_inputs_free(run_inputs *in) {
    for (uint32_t i = 0; i < in->count; i++) {
        tn_tensor_destroy(in->binding[i].tensor);
        tn_object_destroy(in->binding[i].object);
    }
    in->count = 0;
}

bool run_inputs_read(const tn_model *model, const char *folder, int set, run_inputs *in) {
    char path[4096];
    in->count = 0;
    snprintf(path, sizeof path, "%s/test_data_set_%d", folder, set);
    if (tn_path_kind_of(path) != TN_PATH_FOLDER)
        return false;
    const tn_graph *g = tn_model_graph(model);
    for (uint32_t i = 0; i < tn_model_input_count(model) && in->count < RUN_MAX; i++) {
        snprintf(path, sizeof path, "%s/test_data_set_%d/input_%" PRIu32 ".pb", folder, set, i);
        if (tn_path_kind_of(path) == TN_PATH_NONE)
            continue;
        tn_object *object = tn_onnx_read_object_file(NULL, path, tn_type_kind(g, tn_model_input_type(model, i)));
        if (!object)
            die(path);
        in->binding[in->count++] = (tn_binding){tn_model_input_name(model, i), NULL, object};
    }
    return true;
}

static int64_t size_named(const char *dims, const char *name, int64_t otherwise) {
    size_t length = strlen(name);
    for (const char *at = dims; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, name, length) == 0 && at[length] == '=')
            return strtoll(at + length + 1, NULL, 10);
    return otherwise;
}

static double draw(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) * 0x1p-53;
}

bool run_inputs_fill(const tn_model *model, uint64_t seed, int64_t free_size, const char *dims, run_inputs *in) {
    const tn_graph *g = tn_model_graph(model);
    in->count = 0;
    for (uint32_t i = 0; i < tn_model_input_count(model) && in->count < RUN_MAX; i++) {
        tn_type type = tn_model_input_type(model, i);
        int rank = tn_type_rank(g, type);
        if (tn_model_input_has_default(model, i))
            continue;
        if (tn_type_kind(g, type) != TN_KIND_TENSOR || rank < 0) {
            run_inputs_free(in);
            return false;
        }
        int64_t size[TN_MAX_RANK];
        for (int d = 0; d < rank; d++) {
            tn_dim dim = tn_type_dims(g, type)[d];
            if (!tn_dim_is_const(g, dim, &size[d])) {
                tn_text name;
                tn_text_init(&name, NULL);
                tn_dim_print(&g->dims, dim, &name);
                size[d] = size_named(dims, name.data, free_size);
                tn_text_free(&name);
            }
        }
        tn_dtype dtype = tn_type_dtype(g, type);
        tn_tensor *t = tn_tensor_create(dtype, rank, size);
        if (!t)
            die("input");
        uint64_t state = seed * 1000003u + i;
        draw(&state);
        for (int64_t k = 0; k < tn_tensor_count(t); k++) {
            double x = draw(&state);
            if (dtype == TN_STRING)
                tn_tensor_set_string(t, k, x < 0.5 ? "a" : "bc", x < 0.5 ? 1 : 2);
            else
                tn_tensor_set_f64(t, k, tn_dtype_is_float(dtype) ? 2 * x - 1 : x < 0.5);
        }
        in->binding[in->count++] = (tn_binding){tn_model_input_name(model, i), t, NULL};
    }
    return true;
}

/* --- runs ------------------------------------------------------------------------------------------------------------------------ */

tn_status run_session(tn_session *session, const tn_model *model, const run_inputs *in, run_outputs *out) {
    tn_output wanted[RUN_MAX];
    out->count = tn_model_output_count(model);
    if (out->count > RUN_MAX)
        die("too many outputs");
    for (uint32_t i = 0; i < out->count; i++) {
        out->object[i] = NULL;
        wanted[i] = (tn_output){tn_model_output_name(model, i), NULL, &out->object[i]};
    }
    tn_status status = tn_session_run(session, in->count, in->binding, out->count, wanted);
    for (uint32_t i = 0; i < out->count && status != TN_OK; i++)
        if (out->object[i])
            die("a failed run left an output");
    if (status != TN_OK)
        out->count = 0;
    return status;
}

tn_status run_model(tn_model *model, const tn_session_options *options, const run_inputs *in, run_outputs *out) {
    out->count = 0;
    tn_session *session = tn_session_create(model, options);
    if (!session)
        return tn_error_status();
    tn_status status = run_session(session, model, in, out);
    tn_session_destroy(session);
    return status;
}

void run_outputs_free(run_outputs *out) {
    for (uint32_t i = 0; i < out->count; i++)
        tn_object_destroy(out->object[i]);
    out->count = 0;
}

static bool bits_equal(tn_dtype dtype, const void *a, const void *b, int64_t i) {
    size_t size = (size_t)tn_dtype_bits(dtype) / 8;
    if (size && memcmp((const char *)a + (size_t)i * size, (const char *)b + (size_t)i * size, size) == 0)
        return true;
    double x = tn_load_f64(dtype, a, i), y = tn_load_f64(dtype, b, i);
    if (tn_dtype_is_float(dtype) && isnan(x) && isnan(y))
        return true;
    return !size && x == y && signbit(x) == signbit(y); /* elements of less than a byte: by value */
}

static bool close_enough(tn_dtype dtype, const void *want, const void *got, int64_t i, double rtol, double atol) {
    if (!tn_dtype_is_float(dtype))
        return bits_equal(dtype, want, got, i);
    double x = tn_load_f64(dtype, want, i), y = tn_load_f64(dtype, got, i);
    return x == y || (isnan(x) && isnan(y)) || fabs(x - y) <= atol + rtol * fabs(x);
}

/* rtol < 0: bits. */
static bool compare(const char *what, uint32_t index, const tn_object *a, const tn_object *b, double rtol,
                    double atol) {
    const tn_tensor *s = (const tn_tensor *)a, *t = (const tn_tensor *)b;
    bool tensors = a && b && a->kind == TN_KIND_TENSOR && b->kind == TN_KIND_TENSOR;
    if (!a || !b || a->kind != b->kind) {
        fprintf(stderr, "%s: output %" PRIu32 ": kinds differ\n", what, index);
        return false;
    }
    if (!tensors && a->kind == TN_KIND_SEQUENCE) {
        bool ok = tn_sequence_length(a) == tn_sequence_length(b);
        for (size_t i = 0; ok && i < tn_sequence_length(a); i++)
            ok = compare(what, index, tn_sequence_at(a, i), tn_sequence_at(b, i), rtol, atol);
        return ok;
    }
    if (!tensors && a->kind == TN_KIND_MAP) {
        tn_tensor *keys = tn_map_keys(a), *others = tn_map_keys(b);
        return tn_object_equal((tn_object *)keys, (tn_object *)others) &&
               compare(what, index, tn_map_values(a), tn_map_values(b), rtol, atol);
    }
    if (!tensors || s->dtype == TN_STRING || tn_dtype_is_complex((tn_dtype)s->dtype)) {
        bool equal = tn_object_equal(a, b);
        if (!equal)
            fprintf(stderr, "%s: output %" PRIu32 " differs\n", what, index);
        return equal;
    }
    char x[200], y[200];
    bool same = s->dtype == t->dtype && s->rank == t->rank;
    for (int i = 0; same && i < s->rank; i++)
        same = s->dims[i] == t->dims[i];
    if (!same) {
        fprintf(stderr, "%s: output %" PRIu32 ": %s and %s\n", what, index, tn_tensor_describe(s, x, sizeof x),
                tn_tensor_describe(t, y, sizeof y));
        return false;
    }
    tn_dtype dtype = (tn_dtype)s->dtype;
    for (int64_t i = 0; i < s->count; i++)
        if (rtol < 0 ? !bits_equal(dtype, s->data, t->data, i)
                     : !close_enough(dtype, s->data, t->data, i, rtol, atol)) {
            fprintf(stderr, "%s: output %" PRIu32 " %s, element %" PRId64 ": %.9g and %.9g\n", what, index,
                    tn_tensor_describe(s, x, sizeof x), i, tn_tensor_get_f64(s, i), tn_tensor_get_f64(t, i));
            return false;
        }
    return true;
}

static bool compare_all(const char *what, const run_outputs *a, const run_outputs *b, double rtol, double atol) {
    if (a->count != b->count) {
        fprintf(stderr, "%s: %" PRIu32 " and %" PRIu32 " outputs\n", what, a->count, b->count);
        return false;
    }
    bool ok = true;
    for (uint32_t i = 0; ok && i < a->count; i++)
        ok = compare(what, i, a->object[i], b->object[i], rtol, atol);
    return ok;
}

bool run_outputs_equal(const char *what, const run_outputs *a, const run_outputs *b) {
    return compare_all(what, a, b, -1, 0);
}

bool run_outputs_close(const char *what, const run_outputs *want, const run_outputs *got, double rtol, double atol) {
    return compare_all(what, want, got, rtol, atol);
}

/* --- ONNX files ------------------------------------------------------------------------------------------------------------------ */

void onnx_put_message(tn_text *out, uint32_t field, const tn_text *message) {
    tn_wire_put_bytes(out, field, message->data ? message->data : "", message->len);
}

static void put_string(tn_text *out, uint32_t field, const char *text) {
    tn_wire_put_bytes(out, field, text, strlen(text));
}

void onnx_put_node(tn_text *graph, const char *op, uint32_t inputs, const char *const *input, const char *output) {
    tn_text node;
    tn_text_init(&node, graph->heap);
    for (uint32_t i = 0; i < inputs; i++)
        put_string(&node, 1, input[i]);
    put_string(&node, 2, output);
    put_string(&node, 4, op);
    onnx_put_message(graph, 1, &node);
    tn_text_free(&node);
}

void onnx_put_value(tn_text *graph, uint32_t field, const char *name, int rank, const int64_t *dims) {
    tn_text shape, dim, tensor, type, value;
    tn_text *all[] = {&shape, &dim, &tensor, &type, &value};
    for (size_t i = 0; i < 5; i++)
        tn_text_init(all[i], graph->heap);
    for (int i = 0; i < rank; i++) {
        dim.len = 0;
        if (dims[i] < 0)
            put_string(&dim, 2, "N");
        else
            tn_wire_put_varint(&dim, 1, (uint64_t)dims[i]);
        onnx_put_message(&shape, 1, &dim);
    }
    tn_wire_put_varint(&tensor, 1, TN_F32);
    onnx_put_message(&tensor, 2, &shape);
    onnx_put_message(&type, 1, &tensor);
    put_string(&value, 1, name);
    onnx_put_message(&value, 2, &type);
    onnx_put_message(graph, field, &value);
    for (size_t i = 0; i < 5; i++)
        tn_text_free(all[i]);
}

/* A varint that stands alone. */
static void put_raw_varint(tn_text *out, uint64_t value) {
    char bytes[10];
    size_t n = 0;
    do {
        bytes[n] = (char)(value & 127);
        value >>= 7;
        bytes[n++] |= value ? (char)128 : 0;
    } while (value);
    tn_text_bytes(out, bytes, n);
}

bool onnx_write_big(const char *path, int64_t rows, int64_t cols) {
    uint64_t bytes = (uint64_t)rows * (uint64_t)cols * 4;
    tn_text graph, tensor, opset, file;
    tn_text *all[] = {&graph, &tensor, &opset, &file};
    for (size_t i = 0; i < 4; i++)
        tn_text_init(all[i], NULL);
    put_string(&graph, 2, "big");
    onnx_put_node(&graph, "Add", 2, (const char *[]){"x", "w"}, "y");
    onnx_put_node(&graph, "MatMul", 2, (const char *[]){"v", "w"}, "z");
    onnx_put_value(&graph, 11, "x", 2, (const int64_t[]){1, 1});
    onnx_put_value(&graph, 11, "v", 2, (const int64_t[]){1, rows});
    onnx_put_value(&graph, 12, "y", 2, (const int64_t[]){rows, cols});
    onnx_put_value(&graph, 12, "z", 2, (const int64_t[]){1, cols});
    tn_wire_put_varint(&tensor, 1, (uint64_t)rows);
    tn_wire_put_varint(&tensor, 1, (uint64_t)cols);
    tn_wire_put_varint(&tensor, 2, TN_F32);
    put_string(&tensor, 8, "w");
    put_raw_varint(&tensor, 9 << 3 | 2);
    put_raw_varint(&tensor, bytes);
    put_raw_varint(&graph, 5 << 3 | 2);
    put_raw_varint(&graph, tensor.len + bytes);
    tn_text_bytes(&graph, tensor.data, tensor.len);
    tn_wire_put_varint(&opset, 2, 17);
    tn_wire_put_varint(&file, 1, 8);
    onnx_put_message(&file, 8, &opset);
    put_raw_varint(&file, 7 << 3 | 2);
    put_raw_varint(&file, graph.len + bytes);
    tn_text_bytes(&file, graph.data, graph.len);
    FILE *out = fopen(path, "wb");
    bool ok = out && fwrite(file.data, 1, file.len, out) == file.len && fflush(out) == 0 &&
              ftruncate(fileno(out), (off_t)(file.len + bytes)) == 0;
    if (out)
        fclose(out);
    for (size_t i = 0; i < 4; i++)
        tn_text_free(all[i]);
    return ok;
}

/* --- the command ----------------------------------------------------------------------------------------------------------------- */

void scratch_template(const char *name, char *text, size_t size) {
    const char *build = getenv("TENON_BUILD");
    snprintf(text, size, "%s/%s-XXXXXX", build && *build ? build : "/tmp", name);
}

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

int command_run(const char *const *arguments, long *kb, double *ms) {
    const char *command = getenv("TENON");
    char *argv[32] = {(char *)"tenon"};
    for (size_t i = 0; i < 30 && arguments[i]; i++)
        argv[i + 1] = (char *)arguments[i];
    double start = now_ms();
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        int nowhere = open("/dev/null", O_RDWR);
        dup2(nowhere, 0);
        dup2(nowhere, 1);
        execv(command && *command ? command : TENON_BINARY, argv);
        _exit(127);
    }
    struct rusage usage;
    int status = 0;
    if (child < 0 || wait4(child, &status, 0, &usage) != child)
        die("cannot run the command");
    *ms = now_ms() - start;
    *kb = usage.ru_maxrss;
#ifdef __APPLE__
    *kb /= 1024;
#endif
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
