/* Output, errors, signals and loading, as all subcommands do it. */
#define _GNU_SOURCE
#include "cli/cli.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "base/utf8.h"

int tn_cli_exit_code(tn_status status) {
    switch (status) {
    case TN_OK: return 0;
    case TN_ERR_USAGE: return 2;
    case TN_ERR_MODEL:
    case TN_ERR_INPUT: return 3;
    case TN_ERR_UNSUPPORTED: return 4;
    case TN_ERR_LIMIT:
    case TN_ERR_MEMORY:
    case TN_ERR_CANCELLED: return 5;
    case TN_ERR_IO: return 6;
    case TN_ERR_FAILED:
    case TN_ERR_INTERNAL: break;
    }
    return 1;
}

static bool write_all(int fd, const char *bytes, size_t count) {
    while (count) {
        ssize_t n = write(fd, bytes, count);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        bytes += n;
        count -= (size_t)n;
    }
    return true;
}

static void put_error(const char *label, const char *color, const char *text) {
    bool colors = tn_cli_color(2);
    const char *parts[] = {colors ? color : "", "tenon: ", label, colors ? "\033[0m" : "", text, "\n"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!write_all(2, parts[i], strlen(parts[i])))
            return;
}

int tn_cli_report(void) {
    put_error("error: ", "\033[1;31m", tn_error_message());
    return tn_cli_exit_code(tn_error_status());
}

void tn_cli_warn(const char *text) {
    put_error("warning: ", "\033[1;33m", text);
}

tn_status tn_cli_put(tn_text *text) {
    if (text->failed)
        return TN_ERR_MEMORY;
    bool done = write_all(1, text->data ? text->data : "", text->len);
    text->len = 0;
    if (done)
        return TN_OK;
    int code = errno;
    tn_fail(TN_ERR_IO, "cannot write to standard output: %s",
            code == ENOSPC  ? "no space left on the device"
            : code == EBADF ? "it is closed"
            : code == EIO   ? "the device failed"
                            : "the system refused");
    return TN_ERR_IO;
}

bool tn_cli_tty(int fd) {
    return isatty(fd) == 1;
}

bool tn_cli_color(int fd) {
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    return tn_cli_tty(fd) && !(no && *no) && !(term && strcmp(term, "dumb") == 0);
}

void tn_cli_name(tn_text *out, const char *name) {
    size_t length = strlen(name);
    bool plain = length > 0;
    for (size_t i = 0; plain && i < length;) {
        uint32_t code = 0;
        size_t n = tn_utf8_next(name + i, length - i, &code);
        /* control characters, blanks, and what turns the direction of text around */
        plain = n > 0 && code > 0x20 && code != 0x7f && !(code >= 0x80 && code < 0xa0) &&
                !(code >= 0x200b && code <= 0x200f) && !(code >= 0x2028 && code <= 0x202e) &&
                !(code >= 0x2066 && code <= 0x2069) && code != '"';
        i += n;
    }
    if (plain)
        tn_text_add(out, name);
    else
        tn_text_quoted(out, name, length);
}

/* ---- signals ---- */

static atomic_int held;
static atomic_int waiting; /* the signal that arrived meanwhile */

static void die(int signal_number) {
    struct sigaction action = {.sa_handler = SIG_DFL};
    sigaction(signal_number, &action, NULL);
    raise(signal_number);
}

static void on_interrupt(int signal_number) {
    if (atomic_load(&held))
        atomic_store(&waiting, signal_number);
    else
        die(signal_number);
}

void tn_cli_signals_init(void) {
    struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = 0}; /* no SA_RESTART: waiting calls wake up */
    struct sigaction plain = {.sa_handler = SIG_DFL};
    sigaction(SIGPIPE, &plain, NULL); /* a reader that went away ends the command quietly */
    struct sigaction ignored = {.sa_handler = SIG_IGN};
    sigaction(SIGXFSZ, &ignored, NULL); /* a file above the limit is an error of write(), which is reported */
    int signals[] = {SIGINT, SIGTERM, SIGHUP};
    for (int i = 0; i < 3; i++) {
        struct sigaction before;
        if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(signals[i], &action, NULL);
    }
}

void tn_cli_interrupt_hold(void) {
    atomic_fetch_add(&held, 1);
}

void tn_cli_interrupt_release(void) {
    if (atomic_fetch_sub(&held, 1) == 1 && atomic_load(&waiting))
        die(atomic_load(&waiting));
}

bool tn_cli_interrupted(void) {
    return atomic_load(&waiting) != 0;
}

/* ---- loading ---- */

static void on_log(void *user, const char *text) {
    const tn_cli_options *options = user;
    if (options->quiet)
        return;
    write_all(2, text, strlen(text));
    if (!*text || text[strlen(text) - 1] != '\n')
        write_all(2, "\n", 1);
}

tn_status tn_cli_plugins_load(tn_cli_options *options) {
    if (options->plugins.len && !(options->op_set = tn_op_set_create(NULL)))
        return tn_error_status();
    for (uint32_t i = 0; i < options->plugins.len; i++)
        TN_TRY(tn_op_set_load(options->op_set, options->plugins.data[i]));
    return TN_OK;
}

void tn_cli_say_limit(const tn_cli_options *options) {
    tn_error_record error;
    tn_error_save(&error);
    if (error.status != TN_ERR_LIMIT || strstr(error.hint, "--"))
        return;
    if (options->memory && strstr(error.what, "memory limit")) {
        error.hint[0] = '\0';
        tn_error_restore(&error);
        tn_fail_hint("raise --memory");
        return;
    }
    const char *option = strstr(error.what, "nodes")                         ? "max-ops"
                         : options->max_bytes && strstr(error.what, "bytes") ? "max-bytes"
                                                                             : NULL;
    if (!option)
        return;
    error.hint[0] = '\0';
    tn_error_restore(&error);
    tn_fail_hint("raise --%s if the file is to be trusted", option);
}

tn_model *tn_cli_load(const tn_cli_options *options, const char *path) {
    tn_model *model =
        tn_model_load(path, TN_OPTIONS(tn_model_options, .heap = options->heap, .max_bytes = options->max_bytes,
                                       .max_ops = options->max_ops, .ops = options->op_set, .log = on_log,
                                       .notes = options->verbose, .log_user = (void *)(uintptr_t)options));
    if (!model)
        tn_cli_say_limit(options);
    return model;
}

tn_status tn_cli_read_plan(const tn_cli_options *o, tn_layout_option *layout, tn_reuse_option *reuse) {
    *layout = !o->layout || strcmp(o->layout, "auto") == 0 ? TN_LAYOUT_AUTO
              : strcmp(o->layout, "nchw") == 0             ? TN_LAYOUT_NCHW
                                                           : TN_LAYOUT_NHWC;
    *reuse = !o->reuse || strcmp(o->reuse, "full") == 0 ? TN_REUSE_FULL
             : strcmp(o->reuse, "inplace") == 0         ? TN_REUSE_IN_PLACE
                                                        : TN_REUSE_NONE;
    if (o->layout && strcmp(o->layout, "blocked") == 0) {
        tn_fail(TN_ERR_UNSUPPORTED, "not supported: --layout blocked");
        tn_fail_hint("weights are packed in blocks in any case; values lie as auto, nchw or nhwc says");
        return TN_ERR_UNSUPPORTED;
    }
    return TN_OK;
}

tn_session *tn_cli_session(const tn_cli_options *options, tn_model *model, int threads, tn_cli_use use) {
    tn_backend backend = !options->backend                      ? TN_BACKEND_DEFAULT
                         : strcmp(options->backend, "ref") == 0 ? TN_BACKEND_REFERENCE
                                                                : TN_BACKEND_CPU;
    tn_level level = options->level ? (tn_level)(TN_LEVEL_0 + (options->level[0] - '0')) : TN_LEVEL_DEFAULT;
    tn_layout_option layout;
    tn_reuse_option reuse;
    if (tn_cli_read_plan(options, &layout, &reuse) != TN_OK)
        return NULL;
    tn_session *session =
        tn_session_create(model, TN_OPTIONS(tn_session_options, .backend = backend, .level = level,
                                            .threads = options->threads ? (int)options->threads : threads,
                                            .isa = options->isa, .disable = options->disable, .passes = options->passes,
                                            .dump = options->dump, .dims = options->dims.data, .layout = layout,
                                            .reuse = reuse, .measure = use == TN_CLI_MEASURE,
                                            .describe_only = use == TN_CLI_DESCRIBE, .max_bytes = options->max_bytes));
    if (!session)
        tn_cli_say_limit(options);
    return session;
}
