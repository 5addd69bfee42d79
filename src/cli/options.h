/* The command line: one table of subcommands and one of options; parsing, help and suggestions come from them alone. */
#ifndef TN_CLI_OPTIONS_H
#define TN_CLI_OPTIONS_H

#include "base/buffer.h"
#include "base/vec.h"

typedef TN_VEC(const char *) tn_cli_list; /* texts of argv */

struct tn_cli_command;

/* What was asked for. Texts belong to argv; NULL and 0 where not given unless said otherwise. */
typedef struct tn_cli_options {
    const struct tn_cli_command *command;
    tn_cli_list args; /* what is no option: models, folders */
    tn_cli_list dims; /* NAME=N; ended by a NULL that is not counted */
    tn_cli_list inputs, fetch, tap;
    tn_cli_list plugins;
    uint64_t memory;
    tn_heap *heap; /* of models and what is made of them, with that limit; NULL: the default heap. Made by main */
    struct tn_op_set *op_set; /* the operators of the plugins; NULL: none. Made by tn_cli_plugins_load */
    const char *level;        /* "0" to "3" */
    const char *layout, *reuse;
    const char *backend, *isa, *disable, *passes, *dump;
    const char *fill, *output_dir, *format, *filter, *ops, *tolerance;
    const char *output; /* -o */
    const char *seconds, *warmup, *profile;
    uint64_t opset;
    uint64_t threads, jobs, samples, timeout, seed, max_bytes, max_ops;
    bool standard, external, explain, per_op;
    bool json, markdown, quiet, verbose, limits, help, version;
} tn_cli_options;

typedef tn_status tn_cli_main(const tn_cli_options *options);

typedef struct tn_cli_command {
    const char *name;
    uint32_t bit;            /* in tn_cli_option.commands */
    const char *synopsis;    /* "MODEL [option]..." */
    const char *summary;     /* a few words */
    const char *examples[6]; /* three pairs: a command line, what it does */
    const char *notes;       /* after the examples; may be NULL */
    tn_cli_main *run;        /* NULL: not supported yet */
    uint32_t min_args, max_args;
} tn_cli_command;

/* All subcommands, ended by a NULL name (commands.c). */
extern const tn_cli_command tn_cli_commands[];

enum {
    TN_CLI_RUN = 1,
    TN_CLI_INFO = 2,
    TN_CLI_TEST = 4,
    TN_CLI_OPTIMIZE = 8,
    TN_CLI_VERIFY = 16,
    TN_CLI_BENCH = 32,
    TN_CLI_OPS = 1 << 10,
    TN_CLI_ALL = ~0
};

/* Reads argv. TN_ERR_USAGE, or TN_ERR_UNSUPPORTED for what is not built yet. Free with tn_cli_options_free in any case. */
tn_status tn_cli_parse(int argc, char **argv, tn_cli_options *out);
void tn_cli_options_free(tn_cli_options *options);
/* One option as pages about the command show it. */
typedef struct tn_cli_option {
    const char *dashes, *name; /* "--" "input", "-" "o", "-" "O" */
    const char
        *value; /* how the value is named; NULL: there is none, or it is one of `choices` right after the flag (-O) */
    const char *choices; /* "a|b", or NULL */
    const char *help;
    uint32_t commands;
    bool file, folder, many; /* what the value is; whether it may be given more than once */
} tn_cli_option;
/* Option i of those that are there; false: there are no more. */
bool tn_cli_option_at(uint32_t i, tn_cli_option *out);
/* The help text of the whole command (NULL) or of a subcommand. */
void tn_cli_help(const tn_cli_command *command, tn_text *out);
/* Of `count` names, `name_of(ctx, i)`, the one nearest to a misspelt text, or NULL when none is near. */
const char *tn_cli_nearest(const char *text, uint32_t count, const char *(*name_of)(const void *ctx, uint32_t i),
                           const void *ctx);

#endif
