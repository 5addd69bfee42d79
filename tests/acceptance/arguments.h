/* Calls every public function with wrong arguments: values of each parameter type, good ones first. arguments.awk makes the
   calls from the public headers and includes this file; a type that has no values here does not compile. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tenon/tenon.h>

#define MANY 64 /* entries of every array that is given */

/* Good objects of each kind, made anew for every call. */
typedef struct fixture {
    tn_graph *g, *frozen, *stuck, *empty;
    tn_heap *heap;
    tn_op_set *ops;
    const void *list; /* a place for a list that is answered */
    tn_value x, condition, index, dead, inner;
    tn_node add, gone, choice;
    tn_region body;
    tn_tensor *tensor, *strings, *scalar;
    tn_object *sequence, *optional, *map;
    tn_graph *graph_of_model;
    tn_model *model;
    tn_session *session;
    tn_tensor *result;
    tn_tensor **place;
    tn_object *object;
    int64_t sizes[MANY];
    int ints[MANY];
    tn_dim dims[MANY];
    tn_value values[MANY];
    tn_type types[MANY];
    tn_object *objects[MANY];
    uint32_t *map_of[1];
    uint32_t fewest; /* of the counts given: a body has that many results at least */
    char text[256];
    _Alignas(16) unsigned char bytes[4096];
} fixture;

typedef struct function {
    const char *name;
    bool (*call)(fixture *f, const int *pick);
    int parameters;
    int values[16]; /* how many there are; the first entry is not used */
} function;

static void branch(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    fixture *f = ctx;
    (void)args;
    f->inner = tn_neg(g, f->x);
    if (f->fewest)
        results[0] = f->inner;
}

static fixture *make_fixture(void) {
    fixture *f = calloc(1, sizeof *f);
    f->fewest = 1;
    f->heap = tn_heap_create(NULL);
    f->ops = tn_op_set_create(NULL);
    tn_graph *g = f->g = tn_graph_create();
    f->x = tn_input(g, "x", TN_F32, TN_SHAPE("N", 4));
    f->condition = tn_input(g, "c", TN_BOOL, TN_SCALAR);
    f->index = tn_input(g, "i", TN_I64, TN_SHAPE(2));
    tn_value sum = tn_add(g, f->x, f->x), result;
    f->add = tn_value_producer(g, sum);
    f->dead = tn_exp(g, f->x);
    f->gone = tn_value_producer(g, f->dead);
    tn_node_remove(g, f->gone);
    tn_if(g, f->condition, branch, branch, f, 1, &result);
    f->choice = tn_value_producer(g, result);
    f->body = tn_node_region(g, f->choice, 0);
    tn_set_output(g, "y", result);
    if (tn_graph_check(g) != TN_OK)
        abort();
    f->frozen = tn_graph_clone(g, NULL, NULL);
    tn_graph_freeze(f->frozen);
    f->stuck = tn_graph_create();
    tn_neg(f->stuck, (tn_value){0});
    f->empty = tn_graph_create();
    f->tensor = tn_tensor_create(TN_F32, 2, (const int64_t[]){2, 4});
    f->strings = tn_tensor_create(TN_STRING, 1, (const int64_t[]){2});
    f->scalar = tn_tensor_create(TN_I64, 0, NULL);
    f->objects[0] = tn_tensor_object(f->tensor);
    for (int i = 0; i < MANY; i++) {
        f->sizes[i] = 2;
        f->ints[i] = i & 1;
        f->dims[i] = tn_dim_const(g, 2);
        f->values[i] = f->x;
        f->types[i] = tn_value_type(g, f->x);
        f->objects[i] = f->objects[0];
    }
    f->sequence = tn_sequence_create(NULL, 2, f->objects);
    f->optional = tn_optional_create(NULL, NULL);
    f->map = tn_map_create(NULL, f->strings, tn_tensor_object(f->tensor));
    tn_error_clear();
    return f;
}

static tn_session *session_of(fixture *f) {
    if (!f->session) {
        tn_graph *g = f->graph_of_model = tn_graph_create();
        tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("N", 4));
        tn_set_output(g, "y", tn_relu(g, x));
        f->model = tn_model_from_graph(g, NULL);
        f->session = tn_session_create(f->model, TN_OPTIONS(tn_session_options, .threads = 1));
        if (!f->session)
            abort();
    }
    return f->session;
}

/* --- values of each type ------------------------------------------------------------------------------------------------------- */

#define VALUES(key, type, ...)                         \
    static inline type pick_##key(fixture *f, int i) { \
        (void)f;                                       \
        type v[] = {__VA_ARGS__};                      \
        return v[i];                                   \
    }
/* The counts are constants because tables hold them. */
enum {
    N_tn_graph_p = 5,
    N_tn_value = 7,
    N_tn_node = 6,
    N_tn_region = 4,
    N_tn_dim = 4,
    N_tn_type = 4,
    N_tn_dtype = 9,
    N_int = 8,
    N_int64_t = 6,
    N_uint32_t = 5,
    N_uint64_t = 3,
    N_count = 4,
    N_size_t = 4,
    N_bool = 2,
    N_double = 4,
    N_char_p = 3,
    N_text = 5,
    N_int64_t_p = 6,
    N_int_p = 4,
    N_tn_dim_p = 4,
    N_tn_value_p = 5,
    N_tn_type_p = 3,
    N_tn_tensor_p = 4,
    N_tn_object_p = 6,
    N_tn_object_p_p = 3,
    N_void_p = 2,
    N_tn_body_p = 3,
    N_tn_shape = 7,
    N_tn_heap_p = 2,
    N_tn_allocator_p = 3,
    N_tn_model_options_p = 4,
    N_tn_session_options_p = 12,
    N_tn_optimize_options_p = 8,
    N_tn_save_options_p = 6,
    N_tn_model_p = 2,
    N_tn_session_p = 2,
    N_tn_binding_p = 7,
    N_tn_output_p = 6,
    N_tn_session_report_p = 2,
    N_tn_memory_p = 2,
    N_tn_cancel_p = 2,
    N_tn_run_options_p = 4,
    N_tn_rewriter_p = 1,
    N_tn_rewrite_p = 4,
    N_uint64_t_p = 2,
    N_uint32_t_p_p = 2,
    N_size_t_p = 2,
    N_tn_string_p = 2,
    N_tn_use = 4,
    N_tn_role = 4,
    N_float_p = 2,
    N_tn_status = 4,
    N_nothing = 1,
    N_graph_to_destroy = 2,
    N_context = 1,
    N_tn_op_set_p = 2,
    N_tn_custom_op_p = 5,
    N_tn_attribute_p = 4,
    N_tn_custom_call_p = 1,
    N_int64_t_p_p = 2,
    N_float_p_p = 2,
    N_tn_string_p_p = 2,
    N_format = 2
};

VALUES(tn_graph_p, tn_graph *, f->g, NULL, f->frozen, f->stuck, f->empty)
VALUES(graph_to_destroy, tn_graph *, tn_graph_create(), NULL)
VALUES(tn_value, tn_value, f->x, {0}, {UINT32_MAX}, f->dead, f->inner, f->condition, f->index)
VALUES(tn_node, tn_node, f->add, {0}, {UINT32_MAX}, f->gone, tn_region_last(f->g, tn_graph_region(f->g)), f->choice)
VALUES(tn_region, tn_region, tn_graph_region(f->g), {0}, {UINT32_MAX}, f->body)
VALUES(tn_dim, tn_dim, tn_dim_const(f->g, 3), {0}, {UINT32_MAX}, tn_dim_symbol(f->g, "N"))
VALUES(tn_type, tn_type, tn_value_type(f->g, f->x), {0}, {UINT32_MAX},
       tn_type_sequence(f->g, tn_value_type(f->g, f->x)))
VALUES(tn_dtype, tn_dtype, TN_F32, TN_DTYPE_NONE, TN_DTYPE_COUNT, (tn_dtype)-1, (tn_dtype)INT_MAX, TN_STRING, TN_I4,
       TN_BOOL, TN_C64)
VALUES(int, int, 0, 1, 2, -1, 33, INT_MAX, INT_MIN, -3)
VALUES(int64_t, int64_t, 1, 0, -1, INT64_MAX, INT64_MIN, 1000)
VALUES(uint32_t, uint32_t, 0, 1, 7, UINT32_MAX, UINT32_MAX / 2)
VALUES(uint64_t, uint64_t, 0, 1, UINT64_MAX)
static inline uint32_t pick_count(fixture *f, int i) {
    const uint32_t v[] = {1, 0, 2, MANY};
    f->fewest = v[i] < f->fewest ? v[i] : f->fewest;
    return v[i];
}
VALUES(size_t, size_t, 0, 1, SIZE_MAX, SIZE_MAX / 2)
VALUES(bool, bool, false, true)
VALUES(double, double, 0.5, NAN, INFINITY, -1e300)
VALUES(int_p, int *, f->ints, NULL, memset(f->text, 0x7f, sizeof f->text) ? (int *)(void *)f->bytes : NULL,
       memset(f->bytes, 0x7f, 512))
VALUES(int64_t_p, int64_t *, f->sizes, NULL, (int64_t *)(void *)f->bytes, memset(f->bytes + 512, 0xff, 512),
       memset(f->bytes + 1024, 0x7f, 512), memset(f->bytes + 1536, 0x01, 512))
VALUES(tn_dim_p, tn_dim *, f->dims, NULL, (tn_dim *)(void *)f->bytes, memset(f->bytes + 512, 0xff, 512))
VALUES(tn_value_p, tn_value *, f->values, NULL, (tn_value *)(void *)f->bytes, memset(f->bytes + 512, 0xff, 512),
       &f->dead)
VALUES(tn_type_p, tn_type *, f->types, NULL, (tn_type *)(void *)f->bytes)
VALUES(tn_tensor_p, tn_tensor *, f->tensor, NULL, f->strings, f->scalar)
VALUES(tn_object_p, tn_object *, tn_tensor_object(f->tensor), NULL, f->sequence, f->optional, f->map,
       tn_tensor_object(f->strings))
VALUES(tn_object_p_p, tn_object **, f->objects, NULL, (tn_object **)(void *)f->bytes)
VALUES(void_p, void *, f->bytes, NULL)
VALUES(float_p, float *, (float *)(void *)f->bytes, NULL)
VALUES(tn_heap_p, tn_heap *, f->heap, NULL)
VALUES(tn_model_p, tn_model *, (session_of(f), f->model), NULL)
VALUES(tn_session_p, tn_session *, session_of(f), NULL)
VALUES(tn_session_report_p, tn_session_report *, (tn_session_report *)(void *)f->bytes, NULL)
VALUES(tn_memory_p, tn_memory *, (tn_memory *)(void *)f->bytes, NULL)
VALUES(tn_cancel_p, tn_cancel *, tn_cancel_create(), NULL) /* one for each call, which may destroy it */
VALUES(tn_rewriter_p, tn_rewriter *, NULL)
VALUES(uint64_t_p, uint64_t *, (uint64_t *)(void *)f->bytes, NULL)
VALUES(uint32_t_p_p, uint32_t **, f->map_of, NULL)
VALUES(size_t_p, size_t *, (size_t *)(void *)f->bytes, NULL)
VALUES(tn_string_p, tn_string *, (tn_string *)(void *)f->bytes, NULL)
VALUES(tn_use, tn_use, tn_value_first_use(f->g, f->x), {{0}, 0, 0}, {{UINT32_MAX}, UINT32_MAX, UINT32_MAX},
       {f->gone, 3, 1})
VALUES(tn_role, tn_role, TN_ROLE_FORWARD, (tn_role)99, (tn_role)-1, TN_ROLE_DEBUG)
VALUES(tn_status, tn_status, TN_OK, TN_ERR_MEMORY, (tn_status)99, (tn_status)-1)
VALUES(tn_op_set_p, tn_op_set *, f->ops, NULL)
VALUES(tn_custom_call_p, tn_custom_call *, NULL)
VALUES(int64_t_p_p, const int64_t **, (const int64_t **)&f->list, NULL)
VALUES(float_p_p, const float **, (const float **)&f->list, NULL)
VALUES(tn_string_p_p, const tn_string **, (const tn_string **)&f->list, NULL)
VALUES(format, const char *, "plain", NULL)
VALUES(nothing, void *, NULL)
VALUES(context, void *, f)

/* Texts that are read, and buffers that are written: both are `char *` once const is gone. */
static inline char *pick_char_p(fixture *f, int i) {
    char *v[] = {f->text, NULL, strcpy(f->text, "a %s%n, \"N\"=x")};
    return v[i];
}

VALUES(tn_shape, tn_shape, TN_SHAPE(2, 2), TN_SCALAR, TN_UNRANKED, TN_SHAPE(-1, -1), TN_SHAPE(INT64_MAX, INT64_MAX),
       {.rank = 9}, {.rank = -7})

static void leave_null(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)ctx, (void)g, (void)args, (void)results;
}

static inline tn_body *pick_tn_body_p(fixture *f, int i) {
    tn_body *v[] = {branch, NULL, leave_null};
    (void)f;
    return v[i];
}

static void *no_memory(void *user, size_t size, size_t align) {
    (void)user, (void)size, (void)align;
    return NULL;
}

static void no_free(void *user, void *block, size_t size, size_t align) {
    (void)user, (void)block, (void)size, (void)align;
}

static inline const tn_allocator *pick_tn_allocator_p(fixture *f, int i) {
    static const tn_allocator half = {.alloc = no_memory}, full = {.alloc = no_memory, .free = no_free};
    const tn_allocator *v[] = {NULL, &half, &full};
    (void)f;
    return v[i];
}

static inline const tn_model_options *pick_tn_model_options_p(fixture *f, int i) {
    static const tn_model_options v[] = {
        {.size = sizeof *v}, {.size = 0}, {.size = sizeof *v, .max_bytes = 1, .max_ops = 1}};
    (void)f;
    return i < 3 ? &v[i] : NULL;
}

static inline const tn_run_options *pick_tn_run_options_p(fixture *f, int i) {
    static const char *const donated[] = {"nothing-like-that", NULL};
    static const tn_run_options v[] = {{.size = sizeof *v}, {.size = 3}, {.size = sizeof *v, .donate = donated}};
    (void)f;
    return i < 3 ? &v[i] : NULL;
}

static inline const tn_session_options *pick_tn_session_options_p(fixture *f, int i) {
    static const char *const no_dim[] = {"M=3", NULL}, *const no_size[] = {"N", "N=-1", NULL};
    static const tn_session_options v[] = {{.size = sizeof *v, .threads = 1},
                                           {.size = 3},
                                           {.size = sizeof *v, .threads = -5},
                                           {.size = sizeof *v, .threads = INT_MAX},
                                           {.size = sizeof *v, .isa = "abacus"},
                                           {.size = sizeof *v, .disable = "nothing-like-that"},
                                           {.size = sizeof *v, .passes = "nothing-like-that"},
                                           {.size = sizeof *v, .dims = no_dim},
                                           {.size = sizeof *v, .dims = no_size},
                                           {.size = sizeof *v, .backend = (tn_backend)77},
                                           {.size = sizeof *v, .level = (tn_level)99}};
    (void)f;
    return i < 11 ? &v[i] : NULL;
}

static inline const tn_optimize_options *pick_tn_optimize_options_p(fixture *f, int i) {
    static const tn_optimize_options v[] = {{.size = sizeof *v},
                                            {.size = 0},
                                            {.size = sizeof *v, .level = (tn_level)99},
                                            {.size = sizeof *v, .disable = "nothing-like-that"},
                                            {.size = sizeof *v, .passes = "nothing-like-that"},
                                            {.size = sizeof *v, .rewrite_count = 2},
                                            {.size = sizeof *v, .dump = "/nowhere/at/all"}};
    (void)f;
    return i < 7 ? &v[i] : NULL;
}

static inline const tn_save_options *pick_tn_save_options_p(fixture *f, int i) {
    static const tn_save_options v[] = {{.size = sizeof *v},
                                        {.size = 0},
                                        {.size = sizeof *v, .opset = -1},
                                        {.size = sizeof *v, .opset = 99},
                                        {.size = sizeof *v, .external_data = true, .standard_only = true}};
    (void)f;
    return i < 5 ? &v[i] : NULL;
}

static tn_status fails_silently(tn_rewriter *r, tn_node n) {
    return tn_rewrite_replace(r, n, (tn_value){0});
}

static inline const tn_rewrite *pick_tn_rewrite_p(fixture *f, int i) {
    static const tn_rewrite v[3][MANY] = {{{.name = "a", .root = "add", .apply = fails_silently}},
                                          {{.name = NULL}},
                                          {{.name = "b", .root = "no operator", .apply = fails_silently}}};
    (void)f;
    return i < 3 ? v[i] : NULL;
}

static tn_status does_nothing(tn_custom_call *call) {
    (void)call;
    return TN_OK;
}

static inline const tn_custom_op *pick_tn_custom_op_p(fixture *f, int i) {
    static const tn_custom_op v[] = {
        {.size = sizeof *v, .domain = "d", .name = "A", .eval = does_nothing},
        {.size = 1},
        {.size = sizeof *v},
        {.size = sizeof *v, .domain = "d", .name = "B", .max_inputs = -7, .eval = does_nothing}};
    (void)f;
    return i < 4 ? &v[i] : NULL;
}

static inline const tn_attribute *pick_tn_attribute_p(fixture *f, int i) {
    static const tn_attribute v[3][MANY] = {{{.name = "a", .kind = TN_ATTRIBUTE_INT}},
                                            {{.name = "a", .kind = TN_ATTRIBUTE_TENSOR}},
                                            {{.name = NULL, .kind = (tn_attribute_kind)99}}};
    (void)f;
    return i < 3 ? v[i] : NULL;
}

static inline const tn_binding *pick_tn_binding_p(fixture *f, int i) {
    tn_binding *v = (tn_binding *)(void *)f->bytes;
    for (int k = 0; k < MANY && k < 100; k++)
        v[k] = (tn_binding){"x", f->tensor, NULL};
    switch (i) {
    case 1: return NULL;
    case 2: v[0].name = NULL; break;
    case 3: v[0].name = "nobody"; break;
    case 4: v[0].tensor = NULL; break;
    case 5: v[0].tensor = f->strings; break;
    case 6: v[0] = (tn_binding){"x", NULL, f->sequence}; break;
    }
    return v;
}

static inline const tn_output *pick_tn_output_p(fixture *f, int i) {
    tn_output *v = (tn_output *)(void *)(f->bytes + 2048);
    f->place = i == 5 ? &f->strings : &f->result;
    for (int k = 0; k < MANY; k++)
        v[k] = (tn_output){"y", f->place, NULL};
    switch (i) {
    case 1: return NULL;
    case 2: v[0].name = NULL; break;
    case 3: v[0].name = "nobody"; break;
    case 4: v[0].tensor = NULL; break;
    }
    return v;
}

/* --- what must hold after a call -------------------------------------------------------------------------------------------------- */

static bool say(const char *what) {
    printf("   %s; error: %s\n", what, tn_error_message());
    return false;
}

static bool judge_void(fixture *f) {
    tn_heap_set_limit(NULL, 0);
    tn_heap_fail_at(NULL, 0, false);
    if (tn_graph_check(f->stuck) == TN_OK)
        return say("a graph lost its error");
    if (!tn_graph_is_frozen(f->frozen) || tn_graph_verify(f->frozen) != TN_OK)
        return say("a frozen graph has changed");
    tn_error_clear();
    return true;
}

/* An answer that says "failed" left an error; a graph without one is sound. */
static bool judge(fixture *f, bool failed) {
    if (failed && (tn_error_status() == TN_OK || !*tn_error_what()))
        return say("it failed without an error");
    return judge_void(f);
}

static bool judge_tn_status(fixture *f, const char *name, bool constant, tn_status status) {
    (void)constant;
    if (strcmp(name, "tn_error_status") != 0 && status != TN_OK && (status != tn_error_status() || !*tn_error_what()))
        return say("the status is not that of the error");
    return judge_void(f);
}

/* Functions that make something answer NULL with an error; those that look may just answer NULL. */
static bool makes(const char *name) {
    static const char *const words[] = {"create", "wrap", "from_", "_load", "clone", "parse", "_copy", "_print"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(name, words[i]) && strcmp(name, "tn_dtype_from_name") != 0)
            return true;
    return false;
}

static bool judge_pointer(fixture *f, const char *name, const void *result) {
    return judge(f, !result && makes(name));
}
static bool judge_id(fixture *f, const char *name, bool constant, uint32_t id) {
    static const char *const look[] = {"tn_model_input_type", "tn_type_element", "tn_type_tensor"};
    for (size_t i = 0; i < 3; i++)
        constant |= strcmp(name, look[i]) == 0;
    return judge(f, !id && !constant);
}

#define JUDGE_POINTER(key, type)                                                               \
    static inline bool judge_##key(fixture *f, const char *name, bool constant, type result) { \
        (void)constant;                                                                        \
        return judge_pointer(f, name, result);                                                 \
    }
#define JUDGE_HANDLE(type)                                                                      \
    static inline bool judge_##type(fixture *f, const char *name, bool constant, type result) { \
        return judge_id(f, name, constant, result.id);                                          \
    }
#define JUDGE_NUMBER(key, type)                                                                \
    static inline bool judge_##key(fixture *f, const char *name, bool constant, type result) { \
        (void)constant, (void)result, (void)name;                                              \
        return judge_void(f);                                                                  \
    }
JUDGE_POINTER(tn_heap_p, tn_heap *)
JUDGE_POINTER(tn_tensor_p, const tn_tensor *)
JUDGE_POINTER(tn_op_set_p, tn_op_set *)
JUDGE_POINTER(tn_object_p, tn_object *)
JUDGE_POINTER(tn_graph_p, const tn_graph *)
JUDGE_POINTER(tn_model_p, tn_model *)
JUDGE_POINTER(tn_session_p, tn_session *)
JUDGE_POINTER(tn_cancel_p, tn_cancel *)
JUDGE_POINTER(int64_t_p, const int64_t *)
JUDGE_POINTER(tn_dim_p, const tn_dim *)
JUDGE_POINTER(void_p, void *)
/* Texts are never NULL, but where the argument was the buffer, or an index runs to the end. */
static inline bool judge_char_p(fixture *f, const char *name, bool constant, const char *result) {
    (void)constant;
    if (!result && !strstr(name, "describe") && !strstr(name, "origin") && strncmp(name, "tn_pass_", 8) != 0 &&
        !makes(name))
        return say("a text is NULL");
    return judge_pointer(f, name, result);
}
JUDGE_HANDLE(tn_value)
JUDGE_HANDLE(tn_node)
JUDGE_HANDLE(tn_region)
JUDGE_HANDLE(tn_dim)
JUDGE_HANDLE(tn_type)
JUDGE_NUMBER(tn_dtype, tn_dtype)
JUDGE_NUMBER(tn_kind, tn_kind)
JUDGE_NUMBER(tn_role, tn_role)
JUDGE_NUMBER(tn_use, tn_use)
JUDGE_NUMBER(tn_string, tn_string)
JUDGE_NUMBER(int, int)
JUDGE_NUMBER(int64_t, int64_t)
JUDGE_NUMBER(uint32_t, uint32_t)
JUDGE_NUMBER(uint64_t, uint64_t)
JUDGE_NUMBER(size_t, size_t)
JUDGE_NUMBER(bool, bool)
JUDGE_NUMBER(double, double)

/* --- running ----------------------------------------------------------------------------------------------------------------------- */

typedef struct progress {
    int pick[16];
    unsigned calls;
} progress;

static bool try(const function *fn, const int *pick, progress *now) {
    memcpy(now->pick, pick, sizeof now->pick);
    now->calls++;
    return fn->call(make_fixture(), pick);
}

/* All good; each parameter wrong in each way; then many at once. */
static bool all_tries(const function *fn, int random, progress *now) {
    int pick[16] = {0};
    bool ok = try(fn, pick, now);
    for (int i = 0; i < fn->parameters && ok; i++) {
        for (int k = 1; k < fn->values[i + 1] && ok; k++) {
            pick[i] = k;
            ok = try(fn, pick, now);
        }
        pick[i] = ok ? 0 : pick[i];
    }
    unsigned state = 1;
    for (int round = 0; round < random && fn->parameters > 1 && ok; round++) {
        for (int i = 0; i < fn->parameters; i++)
            pick[i] = (int)((state = state * 1664525u + 1013904223u) >> 8) % fn->values[i + 1];
        ok = try(fn, pick, now);
    }
    return ok;
}

static int run_all(size_t count, const function *functions, int random) {
    progress *now = mmap(NULL, sizeof *now, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    unsigned calls = 0;
    int failures = 0;
    for (size_t i = 0; i < count; i++) {
        now->calls = 0;
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            alarm(60);
            bool ok = all_tries(&functions[i], random, now);
            fflush(stdout);
            _exit(ok ? 0 : 1);
        }
        int status = 0;
        waitpid(child, &status, 0);
        calls += now->calls;
        if (status == 0)
            continue;
        failures++;
        printf("%s: %s %d at values", functions[i].name, WIFSIGNALED(status) ? "signal" : "exit",
               WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        for (int k = 0; k < functions[i].parameters; k++)
            printf(" %d", now->pick[k]);
        printf("\n");
    }
    printf("%zu functions, %u calls, %d failures\n", count, calls, failures);
    return failures ? 1 : 0;
}
