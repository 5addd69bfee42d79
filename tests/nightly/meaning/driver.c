/* Runs a file of models with inputs and writes what came out: `driver ref|cpu CASES RESULTS [SECONDS]`. The cases run in a child
   process; when it dies or takes longer than SECONDS over a case, that case is written as such and a new child takes the rest.

   CASES (little-endian, unaligned): u32 count, then for each case u32 bytes and the model, u32 inputs, and for each input
   u32 bytes and its name, a tensor. A tensor: u32 dtype, u32 rank, i64 dims, u64 bytes and its elements (strings: for each element
   u32 bytes and its text).
   RESULTS: for each case i32 status (-1: died, -2: too long), u32 bytes and the message, u32 outputs, the objects. An object:
   u32 kind, then the tensor; or u32 count and the items of a sequence; or u32 count (0 or 1) and the item of an optional; or the
   keys and values of a map. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <tenon/tenon.h>
#include <unistd.h>

enum { DIED = -1, TOO_LONG = -2, MOST = 256 };
#ifdef __SANITIZE_ADDRESS__ /* everything takes longer */
enum { MOST_BYTES = 32 << 20 };
#else
enum { MOST_BYTES = 256 << 20 };
#endif

static void stop(const char *what) {
    fprintf(stderr, "driver: %s\n", what);
    exit(2);
}

/* --- reading --------------------------------------------------------------------------------------------------------------------- */

static const unsigned char *at, *end;

static const void *take(uint64_t size) {
    if (size > (uint64_t)(end - at))
        stop("the file of cases ends too early");
    const void *block = at;
    at += size;
    return block;
}

static uint32_t take_u32(void) {
    uint32_t v;
    memcpy(&v, take(4), 4);
    return v;
}

static uint64_t take_u64(void) {
    uint64_t v;
    memcpy(&v, take(8), 8);
    return v;
}

static tn_tensor *take_tensor(void) {
    tn_dtype dtype = (tn_dtype)take_u32();
    uint32_t rank = take_u32();
    int64_t dims[TN_MAX_RANK];
    if (rank > TN_MAX_RANK)
        stop("an input has too many dimensions");
    memcpy(dims, take(8 * (uint64_t)rank), 8 * (size_t)rank);
    uint64_t size = take_u64();
    const unsigned char *data = take(size);
    tn_tensor *tensor = tn_tensor_create(dtype, (int)rank, dims);
    if (!tensor)
        stop(tn_error_message());
    if (dtype != TN_STRING) {
        if (size != tn_tensor_bytes(tensor))
            stop("an input has the wrong size");
        memcpy(tn_tensor_data(tensor), data, size);
        return tensor;
    }
    for (int64_t i = 0; i < tn_tensor_count(tensor); i++) {
        uint32_t length;
        memcpy(&length, data, 4);
        if (tn_tensor_set_string(tensor, i, (const char *)data + 4, length) != TN_OK)
            stop(tn_error_message());
        data += 4 + length;
    }
    return tensor;
}

static void skip_case(void) {
    take(take_u32());
    for (uint32_t n = take_u32(); n > 0; n--) {
        take(take_u32());
        take_u32();
        take(8 * (uint64_t)take_u32());
        take(take_u64());
    }
}

/* --- writing --------------------------------------------------------------------------------------------------------------------- */

static FILE *out;

static void put_u32(uint32_t v) {
    fwrite(&v, 4, 1, out);
}

static void put_text(const char *text, size_t size) {
    put_u32((uint32_t)size);
    fwrite(text, 1, size, out);
}

static void put_tensor(const tn_tensor *tensor) {
    put_u32((uint32_t)tn_tensor_dtype(tensor));
    put_u32((uint32_t)tn_tensor_rank(tensor));
    fwrite(tn_tensor_dims(tensor), 8, (size_t)tn_tensor_rank(tensor), out);
    tn_tensor *copy = tn_tensor_copy(tensor);
    if (!copy)
        stop(tn_error_message());
    uint64_t size = tn_tensor_bytes(copy);
    if (tn_tensor_dtype(tensor) != TN_STRING) {
        fwrite(&size, 8, 1, out);
        fwrite(tn_tensor_data(copy), 1, size, out);
    } else {
        tn_string s;
        size = 0;
        for (int64_t i = 0; i < tn_tensor_count(copy); i++)
            if (tn_tensor_get_string(copy, i, &s) == TN_OK)
                size += 4 + s.length;
        fwrite(&size, 8, 1, out);
        for (int64_t i = 0; i < tn_tensor_count(copy); i++)
            if (tn_tensor_get_string(copy, i, &s) == TN_OK)
                put_text(s.data, s.length);
    }
    tn_tensor_destroy(copy);
}

static void put_object(tn_object *object) {
    tn_kind kind = tn_object_kind(object);
    put_u32((uint32_t)kind);
    switch (kind) {
    case TN_KIND_TENSOR: put_tensor(tn_object_tensor(object)); break;
    case TN_KIND_SEQUENCE:
        put_u32((uint32_t)tn_sequence_length(object));
        for (size_t i = 0; i < tn_sequence_length(object); i++)
            put_object(tn_sequence_at(object, i));
        break;
    case TN_KIND_OPTIONAL:
        put_u32(tn_optional_get(object) ? 1 : 0);
        if (tn_optional_get(object))
            put_object(tn_optional_get(object));
        break;
    case TN_KIND_MAP:
        put_tensor(tn_map_keys(object));
        put_object(tn_map_values(object));
        break;
    }
}

static void put_failure(int status, const char *message) {
    put_u32((uint32_t)status);
    put_text(message, strlen(message));
    put_u32(0);
    fflush(out);
}

/* Whether a result is larger than a run may need: one that repeats an element may be told in a few bytes of memory. */
static bool too_large(tn_object *object) {
    if (tn_object_kind(object) != TN_KIND_TENSOR)
        return false;
    return tn_tensor_bytes(tn_object_tensor(object)) > MOST_BYTES;
}

/* --- one case -------------------------------------------------------------------------------------------------------------------- */

static void run_case(tn_backend backend) {
    uint32_t size = take_u32();
    const void *bytes = take(size);
    uint32_t inputs = take_u32();
    if (inputs > MOST)
        stop("too many inputs");
    static char names[MOST][256];
    tn_binding in[MOST];
    for (uint32_t i = 0; i < inputs; i++) {
        uint32_t length = take_u32();
        if (length >= sizeof names[i])
            stop("a name is too long");
        memcpy(names[i], take(length), length);
        names[i][length] = '\0';
        in[i] = (tn_binding){.name = names[i], .tensor = take_tensor()};
    }
    tn_model *model = tn_model_load_memory(bytes, size, NULL);
    tn_session *session = model ? tn_session_create(model, TN_OPTIONS(tn_session_options, .backend = backend,
                                                                      .threads = 1, .max_bytes = MOST_BYTES))
                                : NULL;
    uint32_t outputs = model ? tn_model_output_count(model) : 0;
    tn_output wanted[MOST];
    tn_object *got[MOST] = {0};
    tn_status status = session ? TN_OK : tn_error_status();
    if (outputs > MOST)
        stop("too many outputs");
    for (uint32_t i = 0; i < outputs; i++)
        wanted[i] = (tn_output){.name = tn_model_output_name(model, i), .object = &got[i]};
    if (session)
        status = tn_session_run(session, inputs, in, outputs, wanted);
    bool large = false;
    for (uint32_t i = 0; i < outputs && session && status == TN_OK; i++)
        large = large || too_large(got[i]);
    if (status != TN_OK) {
        put_failure((int)status, tn_error_message());
    } else if (large) {
        put_failure(TN_ERR_LIMIT, "more bytes would be needed for a result than a run may take");
    } else if (!session) {
        put_failure(DIED, "refused without an error");
    } else {
        put_u32(0);
        put_text("", 0);
        put_u32(outputs);
        for (uint32_t i = 0; i < outputs; i++)
            put_object(got[i]);
        fflush(out);
    }
    for (uint32_t i = 0; i < outputs; i++)
        tn_object_destroy(got[i]);
    for (uint32_t i = 0; i < inputs; i++)
        tn_tensor_destroy(in[i].tensor);
    tn_session_destroy(session);
    tn_model_destroy(model);
}

/* What is shared with the child: the case it is at, and how much of the results file is whole. */
typedef struct progress {
    volatile uint32_t done;
    volatile long size;
} progress;

static void run_rest(tn_backend backend, uint32_t count, unsigned seconds, progress *place) {
#ifndef __SANITIZE_ADDRESS__
    struct rlimit limit = {(rlim_t)8 << 30, (rlim_t)8 << 30};
    if (setrlimit(RLIMIT_AS, &limit) != 0)
        stop("cannot limit the memory");
#endif
    for (uint32_t i = 0; i < place->done; i++)
        skip_case();
    while (place->done < count) {
        alarm(seconds);
        run_case(backend);
        place->size = ftell(out);
        place->done++;
    }
    alarm(0);
    tn_error_clear();
    exit(0);
}

int main(int argc, char **argv) {
    if (argc < 4 || (strcmp(argv[1], "ref") != 0 && strcmp(argv[1], "cpu") != 0))
        stop("usage: driver ref|cpu CASES RESULTS [SECONDS]");
    tn_backend backend = strcmp(argv[1], "ref") == 0 ? TN_BACKEND_REFERENCE : TN_BACKEND_CPU;
    unsigned seconds = argc > 4 ? (unsigned)atoi(argv[4]) : 20;
    int file = open(argv[2], O_RDONLY);
    struct stat info;
    if (file < 0 || fstat(file, &info) != 0 || info.st_size < 4)
        stop("cannot read the cases");
    at = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    if (at == MAP_FAILED)
        stop("cannot map the cases");
    end = at + info.st_size;
    uint32_t count = take_u32();
    out = fopen(argv[3], "wb");
    progress *place = mmap(NULL, sizeof *place, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!out || place == MAP_FAILED)
        stop("cannot write the results");
    while (place->done < count) {
        pid_t child = fork();
        if (child < 0)
            stop("cannot fork");
        if (child == 0)
            run_rest(backend, count, seconds, place);
        int status;
        while (waitpid(child, &status, 0) < 0 && errno == EINTR)
            continue;
        fseek(out, 0, SEEK_END);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0) /* a leak found at the end counts as the last case's */
            break;
        if (place->done == count)
            return 3;
        if (ftruncate(fileno(out), place->size) != 0)
            stop("cannot write the results");
        fseek(out, place->size, SEEK_SET);
        bool late = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
        char text[64];
        snprintf(text, sizeof text,
                 late                  ? "no answer in %d s"
                 : WIFSIGNALED(status) ? "signal %d"
                                       : "exit %d",
                 late                  ? (int)seconds
                 : WIFSIGNALED(status) ? WTERMSIG(status)
                                       : WEXITSTATUS(status));
        put_failure(late ? TOO_LONG : DIED, text);
        place->size = ftell(out);
        place->done++;
    }
    return fclose(out) == 0 ? 0 : 2;
}
