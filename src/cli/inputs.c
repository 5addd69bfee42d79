/* --input and --fill: which input is meant, and where its value comes from. */
#include "cli/inputs.h"

#include <inttypes.h>

#include "base/number.h"
#include "cli/npy.h"
#include "ir/graph.h"
#include "onnx/tensor_file.h"
#include "runtime/model.h"

/* ---- shapes ---- */

/* Fixes the symbol called `name`, if the graph has it. */
static void bind_name(const tn_dims *dims, tn_dim_env *env, const char *name, size_t length, int64_t value) {
    for (uint32_t s = 0; s < env->count; s++) {
        const char *symbol = tn_dim_symbol_name(dims, s);
        if (!dims->symbol.data[s].fresh && strlen(symbol) == length && memcmp(symbol, name, length) == 0) {
            env->value[s] = value;
            env->bound[s] = 1;
        }
    }
}

/* Symbols that the inputs given so far decide; contradictions are left to the session, which explains them. */
static void bind_given(const tn_model *model, tn_dim_env *env, tn_object *const *objects) {
    const tn_graph *g = tn_model_graph(model);
    for (uint32_t i = 0; i < tn_model_input_count(model); i++) {
        const tn_tensor *t = objects[i] ? tn_object_tensor(objects[i]) : NULL;
        tn_type type = tn_model_input_type(model, i);
        if (!t || !type.id || tn_type_kind(g, type) != TN_KIND_TENSOR || tn_type_rank(g, type) != t->rank)
            continue;
        for (int k = 0; k < t->rank; k++)
            tn_dim_env_match(&g->dims, env, tn_type_dims(g, type)[k], t->dims[k]);
    }
}

tn_status tn_cli_input_dims(const tn_cli_options *options, const tn_model *model, tn_object *const *objects,
                            tn_type type, int64_t free_size, int64_t dims[TN_MAX_RANK], int *open) {
    const tn_graph *g = tn_model_graph(model);
    tn_dim_env env;
    if (!tn_dim_env_init(&env, NULL, &g->dims))
        return TN_ERR_MEMORY;
    for (uint32_t i = 0; i < options->dims.len; i++) {
        const char *text = options->dims.data[i], *equals = strrchr(text, '=');
        int64_t value = 0;
        size_t used;
        tn_parse_i64(equals + 1, strlen(equals + 1), &value, &used);
        bind_name(&g->dims, &env, text, (size_t)(equals - text), value);
    }
    if (objects)
        bind_given(model, &env, objects);
    for (uint32_t s = 0; free_size >= 0 && s < env.count; s++)
        if (!env.bound[s]) {
            const tn_dim_sym *symbol = &g->dims.symbol.data[s];
            env.value[s] = symbol->low > free_size ? symbol->low : free_size;
            env.bound[s] = 1;
        }
    *open = 0;
    for (int k = 0; k < tn_type_rank(g, type); k++)
        if (!tn_dim_eval(&g->dims, &env, tn_type_dims(g, type)[k], &dims[k])) {
            dims[k] = -1;
            ++*open;
        }
    tn_dim_env_free(&env);
    return TN_OK;
}

/* ---- values ---- */

static tn_object *object_of(tn_tensor *t) {
    return t ? tn_tensor_object(t) : NULL;
}

/* Raw elements; one dimension that nothing else decides follows from the size. */
static tn_object *read_bin(const tn_cli_options *options, const tn_model *model, tn_object *const *objects,
                           tn_type type, tn_mapping *mapping) {
    const tn_graph *g = tn_model_graph(model);
    tn_dtype d = type.id && tn_type_kind(g, type) == TN_KIND_TENSOR ? tn_type_dtype(g, type) : TN_DTYPE_NONE;
    int rank = type.id ? tn_type_rank(g, type) : -1, open = 0;
    int64_t dims[TN_MAX_RANK];
    if (rank < 0 || d == TN_DTYPE_NONE || d == TN_STRING) {
        tn_fail(TN_ERR_UNSUPPORTED, "not supported: raw bytes for an input whose type or rank the model leaves open");
        tn_fail_hint("give it as .npy or .pb");
        return NULL;
    }
    if (tn_cli_input_dims(options, model, objects, type, -1, dims, &open) != TN_OK)
        return NULL;
    int64_t count = 1;
    size_t size = tn_mapping_size(mapping), bytes = 0;
    bool fits = open <= 1;
    for (int k = 0; k < rank && fits; k++)
        fits = dims[k] < 0 || tn_mul_i64(count, dims[k], &count);
    if (fits && open == 1) {
        int64_t found = count > 0 ? (int64_t)(size * 8 / (uint64_t)tn_dtype_bits(d)) / count : 0;
        for (int k = 0; k < rank; k++)
            dims[k] = dims[k] < 0 ? found : dims[k];
        count *= found;
    }
    if (!fits || tn_dtype_bytes(d, count, &bytes) != TN_OK || bytes != size) {
        char text[200];
        tn_fail(TN_ERR_INPUT, "%zu bytes do not fit %s", size, tn_type_describe(g, type, text, sizeof text));
        tn_fail_hint(open > 1 ? "bind its free dimensions with --dim NAME=N" : "the file must hold the elements alone");
        return NULL;
    }
    return object_of(tn_tensor_mapped(NULL, d, rank, dims, mapping, tn_mapping_data(mapping)));
}

static tn_object *read_json(const tn_graph *g, tn_type type, const char *bytes, size_t size) {
    tn_arena arena;
    tn_arena_init(&arena, NULL);
    const tn_json *json = tn_json_parse(&arena, bytes, size);
    tn_object *object = json ? tn_cli_json_object(g, type, json) : NULL;
    tn_arena_free(&arena);
    return object;
}

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static const char *extension(const char *path) {
    const char *dot = strrchr(base_name(path), '.');
    return dot ? dot : "";
}

static tn_object *read_file(const tn_cli_options *options, const tn_model *model, tn_object *const *objects,
                            const tn_graph *g, tn_type type, const char *path) {
    tn_kind kind = type.id ? tn_type_kind(g, type) : TN_KIND_TENSOR;
    tn_dtype wanted = type.id && kind == TN_KIND_TENSOR ? tn_type_dtype(g, type) : TN_DTYPE_NONE;
    const char *ext = extension(path);
    tn_mapping *mapping = tn_mapping_open(NULL, path);
    if (!mapping)
        return NULL;
    const void *bytes = tn_mapping_data(mapping);
    size_t size = tn_mapping_size(mapping);
    tn_object *object = NULL;
    if (strcmp(ext, ".npy") == 0) {
        object = object_of(tn_npy_read(NULL, bytes, size, mapping, wanted));
    } else if (strcmp(ext, ".npz") == 0) {
        tn_npz_entry *entries;
        uint32_t count;
        if (tn_npz_list(NULL, bytes, size, &entries, &count) == TN_OK) {
            if (count == 1)
                object = object_of(tn_npy_read(NULL, entries[0].bytes, entries[0].size, mapping, wanted));
            else
                tn_fail(TN_ERR_INPUT, "the .npz file holds %" PRIu32 " arrays, not one", count);
            tn_free(NULL, entries);
        }
    } else if (strcmp(ext, ".pb") == 0) {
        object = tn_onnx_read_object(NULL, bytes, size, mapping, kind);
    } else if (strcmp(ext, ".json") == 0) {
        object = read_json(g, type, bytes, size);
    } else if (strcmp(ext, ".bin") == 0 && g != tn_model_graph(model)) {
        tn_fail(TN_ERR_UNSUPPORTED, "not supported: raw bytes for an inner value");
        tn_fail_hint("give it as .npy or .pb");
    } else if (strcmp(ext, ".bin") == 0) {
        object = read_bin(options, model, objects, type, mapping);
    } else {
        tn_fail(TN_ERR_USAGE, "'%s': not known what kind of file it is", path);
        tn_fail_hint("name it .npy, .npz, .pb, .bin or .json");
    }
    tn_mapping_release(mapping);
    if (!object)
        tn_fail_where("file %s", path);
    return object;
}

/* ---- which input ---- */

int64_t tn_cli_file_index(const char *path, const char *prefix) {
    const char *name = base_name(path);
    size_t n = strlen(prefix), used = 0;
    int64_t index;
    if (strncmp(name, prefix, n) != 0 || name[n] < '0' || name[n] > '9' ||
        !tn_parse_i64(name + n, strspn(name + n, "0123456789"), &index, &used) || name[n + used] != '.')
        return -1;
    return index;
}

static void list_inputs(const tn_model *model) {
    char text[200];
    for (uint32_t i = 0; i < tn_model_input_count(model); i++)
        tn_fail_where("input %" PRIu32 ": '%s' %s%s", i, tn_model_input_name(model, i),
                      tn_model_describe_input(model, i, text, sizeof text),
                      tn_model_input_has_default(model, i) ? " (has a default)" : "");
}

const char *tn_cli_feed_name(const tn_model *model, const tn_cli_feeds *feeds, uint32_t i) {
    return tn_value_name(tn_model_graph(model), feeds->value[i]);
}

/* The type of what is fed, and the graph that it is of. */
static tn_type feed_type(const tn_model *model, const tn_cli_feeds *feeds, uint32_t i, const tn_graph **graph) {
    tn_type type = tn_value_type(tn_model_graph(model), feeds->value[i]);
    tn_value inferred =
        type.id || !feeds->typed ? (tn_value){0} : tn_graph_find_value(feeds->typed, tn_cli_feed_name(model, feeds, i));
    *graph = inferred.id ? feeds->typed : tn_model_graph(model);
    return inferred.id ? tn_value_type(feeds->typed, inferred) : type;
}

static void say_feed(const tn_model *model, const tn_cli_feeds *feeds, uint32_t i) {
    char text[200];
    const tn_graph *g;
    tn_type type = feed_type(model, feeds, i, &g);
    tn_fail_where("%s '%s' %s", i < tn_model_input_count(model) ? "input" : "inner value",
                  tn_cli_feed_name(model, feeds, i), tn_type_describe(g, type, text, sizeof text));
}

/* The input or inner value of a name; the latter joins the feeds. False with no error set: there is none. */
static bool find_feed(tn_model *model, tn_cli_feeds *feeds, const char *name, size_t length, uint32_t *index) {
    tn_error_clear();
    for (uint32_t i = 0; i < feeds->count; i++) {
        const char *n = tn_cli_feed_name(model, feeds, i);
        if (strlen(n) == length && memcmp(n, name, length) == 0) {
            *index = i;
            return true;
        }
    }
    char *text = tn_strndup(NULL, name, length);
    tn_value v = text && length ? tn_graph_find_value(tn_model_graph(model), text) : (tn_value){0};
    tn_free(NULL, text);
    if (!v.id)
        return false;
    if (!feeds->typed && !tn_value_type(tn_model_graph(model), v).id && !(feeds->typed = tn_model_infer(model)))
        return false;
    tn_value *value = tn_realloc(NULL, feeds->value, (feeds->count + 1u) * sizeof *value);
    feeds->value = value ? value : feeds->value;
    tn_object **object = value ? tn_realloc(NULL, feeds->object, (feeds->count + 1u) * sizeof(tn_object *)) : NULL;
    feeds->object = object ? object : feeds->object;
    if (!object)
        return false;
    feeds->value[feeds->count] = v;
    *index = feeds->count++;
    return true;
}

static const char *input_name(const void *ctx, uint32_t i) {
    return tn_model_input_name(ctx, i);
}

/* After find_feed found nothing. */
static tn_status unknown_input(const tn_model *model, const char *name, size_t length) {
    char text[128];
    size_t n = length < sizeof text - 1 ? length : sizeof text - 1;
    memcpy(text, name, n);
    text[n] = '\0';
    if (tn_error_status() != TN_OK)
        return tn_error_status();
    tn_fail(TN_ERR_INPUT, "the model has no input '%s', nor an inner value of that name", text);
    list_inputs(model);
    const char *nearest = tn_cli_nearest(text, tn_model_input_count(model), input_name, model);
    if (nearest)
        tn_fail_hint("did you mean '%s'?", nearest);
    return TN_ERR_INPUT;
}

static bool is_literal(const char *text) {
    return *text && (strchr("[\"+-.0123456789", *text) || strcmp(text, "true") == 0 || strcmp(text, "false") == 0 ||
                     strcmp(text, "null") == 0 || strcmp(text, "nan") == 0 || strcmp(text, "NaN") == 0 ||
                     strcmp(text, "inf") == 0 || strcmp(text, "Infinity") == 0);
}

static bool is_file_name(const char *text) {
    static const char *const known[] = {".npy", ".npz", ".pb", ".bin", ".json"};
    bool file = tn_path_kind_of(text) != TN_PATH_NONE;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        file |= strcmp(extension(text), known[i]) == 0;
    return file;
}

/* "an/input_0.pb", "x=file.npy", "x=[1,2]" taken apart. */
typedef struct source {
    bool named;
    uint32_t input;
    const char *value; /* file or literal */
} source;

static tn_status take_apart(tn_model *model, tn_cli_feeds *feeds, const char *text, source *out) {
    *out = (source){.value = text};
    if (tn_path_kind_of(text) == TN_PATH_FILE)
        return TN_OK;
    for (const char *e = text + strlen(text); e-- > text;)
        if (*e == '=' && find_feed(model, feeds, text, (size_t)(e - text), &out->input)) {
            out->named = true;
            out->value = e + 1;
            return TN_OK;
        }
    const char *e = strchr(text, '=');
    return e && *text != '[' && *text != '"' ? unknown_input(model, text, (size_t)(e - text)) : TN_OK;
}

static tn_status put_value(const tn_cli_options *options, tn_model *model, tn_cli_feeds *feeds, uint32_t input,
                           const char *value) {
    if (feeds->object[input])
        return tn_fail(TN_ERR_USAGE, "input '%s' is given twice", tn_cli_feed_name(model, feeds, input));
    const tn_graph *g;
    tn_type type = feed_type(model, feeds, input, &g);
    if (is_literal(value) && !is_file_name(value))
        feeds->object[input] = read_json(g, type, value, strlen(value));
    else
        feeds->object[input] = read_file(options, model, feeds->object, g, type, value);
    if (feeds->object[input])
        return TN_OK;
    say_feed(model, feeds, input);
    return tn_error_status();
}

/* All arrays of an .npz, by name. */
static tn_status put_npz(tn_model *model, tn_cli_feeds *feeds, const char *path) {
    tn_mapping *mapping = tn_mapping_open(NULL, path);
    if (!mapping)
        return tn_error_status();
    tn_npz_entry *entries;
    uint32_t count, input = 0;
    tn_status status = tn_npz_list(NULL, tn_mapping_data(mapping), tn_mapping_size(mapping), &entries, &count);
    for (uint32_t i = 0; i < count && status == TN_OK; i++) {
        const tn_npz_entry *e = &entries[i];
        if (!find_feed(model, feeds, e->name, e->name_length, &input)) {
            status = unknown_input(model, e->name, e->name_length);
        } else if (feeds->object[input]) {
            status = tn_fail(TN_ERR_USAGE, "input '%s' is given twice", tn_cli_feed_name(model, feeds, input));
        } else {
            const tn_graph *g;
            tn_type type = feed_type(model, feeds, input, &g);
            tn_dtype wanted =
                type.id && tn_type_kind(g, type) == TN_KIND_TENSOR ? tn_type_dtype(g, type) : TN_DTYPE_NONE;
            feeds->object[input] = object_of(tn_npy_read(NULL, e->bytes, e->size, mapping, wanted));
            if (!feeds->object[input]) {
                tn_fail_where("array '%s'", tn_cli_feed_name(model, feeds, input));
                status = tn_error_status();
            }
        }
    }
    if (status != TN_OK)
        tn_fail_where("file %s", path);
    tn_free(NULL, entries);
    tn_mapping_release(mapping);
    return status;
}

static tn_status put_given(const tn_cli_options *options, tn_model *model, tn_cli_feeds *feeds) {
    uint32_t n = tn_model_input_count(model);
    tn_cli_list in_order = {0};
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < options->inputs.len && status == TN_OK; i++) {
        source s;
        status = take_apart(model, feeds, options->inputs.data[i], &s);
        if (status != TN_OK)
            break;
        int64_t index = s.named ? -1 : tn_cli_file_index(s.value, "input_");
        if (s.named) {
            status = put_value(options, model, feeds, s.input, s.value);
        } else if (index >= 0 && index < n) {
            status = put_value(options, model, feeds, (uint32_t)index, s.value);
        } else if (index >= 0) {
            status =
                tn_fail(TN_ERR_INPUT, "'%s' feeds input %" PRId64 ", but the model has %" PRIu32, s.value, index, n);
            list_inputs(model);
        } else if (strcmp(extension(s.value), ".npz") == 0) {
            status = put_npz(model, feeds, s.value);
        } else if (!tn_vec_push(NULL, &in_order, s.value)) {
            status = TN_ERR_MEMORY;
        }
    }
    for (uint32_t i = 0, next = 0; i < in_order.len && status == TN_OK; i++) {
        while (next < n && (feeds->object[next] || tn_model_input_has_default(model, next)))
            next++;
        if (next < n) {
            status = put_value(options, model, feeds, next, in_order.data[i]);
        } else {
            status = tn_fail(TN_ERR_INPUT, "'%s' is one input too many", in_order.data[i]);
            list_inputs(model);
        }
    }
    tn_vec_free(NULL, &in_order);
    return status;
}

/* ---- made-up values ---- */

/* Refuses values that are larger than what is allowed, or than any memory here; *made: bytes so far. */
static tn_status admit(const tn_cli_options *options, tn_dtype d, int rank, const int64_t *dims, uint64_t *made) {
    int64_t count;
    size_t bytes;
    uint64_t memory = tn_memory_bytes();
    TN_TRY(tn_dims_count(rank, dims, &count));
    TN_TRY(tn_dtype_bytes(d, count, &bytes));
    *made = bytes > UINT64_MAX - *made ? UINT64_MAX : *made + bytes;
    if (options->max_bytes && *made > options->max_bytes) {
        tn_fail(TN_ERR_LIMIT, "inputs of %" PRIu64 " bytes would be made, the limit is %" PRIu64, *made,
                options->max_bytes);
        tn_fail_hint("raise --max-bytes, or bind smaller dimensions with --dim");
        return TN_ERR_LIMIT;
    }
    if (memory && *made > memory) {
        tn_fail(TN_ERR_LIMIT, "inputs of %" PRIu64 " bytes would be made, this machine has %" PRIu64, *made, memory);
        tn_fail_hint("bind smaller dimensions with --dim, or give a file");
        return TN_ERR_LIMIT;
    }
    return TN_OK;
}

static tn_object *make(const tn_cli_options *options, const tn_model *model, tn_object *const *objects, tn_type type,
                       tn_fill how, uint32_t stream, uint64_t *made) {
    const tn_graph *g = tn_model_graph(model);
    tn_kind kind = type.id ? tn_type_kind(g, type) : TN_KIND_TENSOR;
    if (kind == TN_KIND_SEQUENCE || kind == TN_KIND_OPTIONAL) {
        tn_object *item = make(options, model, objects, tn_type_element(g, type), how, stream, made);
        tn_object *outer = !item                      ? NULL
                           : kind == TN_KIND_SEQUENCE ? tn_sequence_create(NULL, 1, &item)
                                                      : tn_optional_create(NULL, item);
        tn_object_destroy(item);
        return outer;
    }
    tn_dtype d = type.id ? tn_type_dtype(g, type) : TN_DTYPE_NONE;
    if (kind == TN_KIND_MAP || d == TN_DTYPE_NONE) {
        tn_fail(TN_ERR_UNSUPPORTED, "not supported: --fill for %s", kind == TN_KIND_MAP ? "maps" : "an unknown type");
        return NULL;
    }
    int64_t dims[TN_MAX_RANK];
    int rank = tn_type_rank(g, type), open;
    if (tn_cli_input_dims(options, model, objects, type, 1, dims, &open) != TN_OK)
        return NULL;
    if (open) {
        tn_fail(TN_ERR_INPUT, "its shape has no value with these dimensions");
        return NULL;
    }
    rank = rank < 0 ? 0 : rank;
    tn_tensor *t = admit(options, d, rank, dims, made) == TN_OK ? tn_tensor_create(d, rank, dims) : NULL;
    if (t && tn_cli_fill(t, how, options->seed, stream) != TN_OK) {
        tn_tensor_destroy(t);
        return NULL;
    }
    return object_of(t);
}

tn_status tn_cli_read_inputs(const tn_cli_options *options, tn_model *model, tn_cli_feeds *feeds) {
    uint32_t n = tn_model_input_count(model), missing = UINT32_MAX;
    uint64_t made = 0;
    *feeds = (tn_cli_feeds){.value = tn_alloc_array(NULL, n + 1u, sizeof *feeds->value),
                            .object = tn_alloc_array(NULL, n + 1u, sizeof(tn_object *))};
    if (!feeds->value || !feeds->object)
        return TN_ERR_MEMORY;
    feeds->count = n;
    for (uint32_t i = 0; i < n; i++)
        feeds->value[i] = tn_graph_input(tn_model_graph(model), i);
    TN_TRY(put_given(options, model, feeds));
    for (uint32_t i = 0; i < n; i++) {
        if (feeds->object[i] || tn_model_input_has_default(model, i))
            continue;
        if (!options->fill) {
            missing = missing == UINT32_MAX ? i : missing;
            continue;
        }
        tn_fill how = strcmp(options->fill, "random") == 0  ? TN_FILL_RANDOM
                      : strcmp(options->fill, "zeros") == 0 ? TN_FILL_ZEROS
                      : strcmp(options->fill, "ones") == 0  ? TN_FILL_ONES
                                                            : TN_FILL_ARANGE;
        feeds->object[i] = make(options, model, feeds->object, tn_model_input_type(model, i), how, i, &made);
        if (!feeds->object[i]) {
            say_feed(model, feeds, i);
            return tn_error_status();
        }
    }
    if (missing == UINT32_MAX || feeds->count > n || options->fetch.len)
        return TN_OK;
    tn_fail(TN_ERR_INPUT, "input '%s' is not given", tn_model_input_name(model, missing));
    list_inputs(model);
    tn_fail_hint("give it with --input NAME=FILE, or make values with --fill random");
    return TN_ERR_INPUT;
}

void tn_cli_feeds_free(tn_cli_feeds *feeds) {
    for (uint32_t i = 0; feeds->object && i < feeds->count; i++)
        tn_object_destroy(feeds->object[i]);
    tn_graph_destroy(feeds->typed);
    tn_free(NULL, feeds->value);
    tn_free(NULL, feeds->object);
    *feeds = (tn_cli_feeds){0};
}
