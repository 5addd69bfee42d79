/* The table of options, and what is made of it: parsing, help, suggestions. */
#include "cli/options.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/error.h"
#include "base/number.h"

typedef enum option_kind {
    KIND_FLAG,
    KIND_TEXT,
    KIND_CHOICE, /* one of `choices` */
    KIND_COUNT,  /* an integer of at least 1 */
    KIND_U64,
    KIND_SIZE,   /* bytes */
    KIND_LIST,   /* may be given more than once */
    KIND_DIM,    /* a list of NAME=N */
    KIND_PLANNED /* not built yet */
} option_kind;

typedef struct option_row {
    const char *name;  /* without the dashes */
    const char *value; /* how help names the value; NULL: none */
    option_kind kind;
    uint32_t commands;
    size_t offset;       /* in tn_cli_options */
    const char *choices; /* "a|b" */
    const char *help;
} option_row;

#define AT(field) offsetof(tn_cli_options, field)

static const option_row option_table[] = {
    {"input", "[NAME=]FILE", KIND_LIST, TN_CLI_RUN | TN_CLI_BENCH, AT(inputs), NULL,
     ".npy .npz .pb .bin .json, or a literal: NAME=[1,2,3], NAME=0.5; input_M.* feeds input M; an inner value, too"},
    {"fetch", "NAME", KIND_LIST, TN_CLI_RUN, AT(fetch), NULL,
     "instead of the outputs: this output or inner value, and only what it needs; may be given more than once"},
    {"tap", "NAME", KIND_LIST, TN_CLI_RUN, AT(tap), NULL,
     "show this value, too: outputs and kernels are those of a run without it; may be given more than once"},
    {"fill", "HOW", KIND_CHOICE, TN_CLI_RUN | TN_CLI_BENCH, AT(fill), "random|zeros|ones|arange",
     "values of the inputs left out: random, zeros, ones or arange"},
    {"output-dir", "DIR", KIND_TEXT, TN_CLI_RUN, AT(output_dir), NULL, "write the outputs into this folder"},
    {"format", "npy|pb", KIND_CHOICE, TN_CLI_RUN, AT(format), "npy|pb",
     "what is written: NAME.npy (default) or output_M.pb"},
    {"ops", "FILE", KIND_TEXT, TN_CLI_INFO, AT(ops), NULL, "write the list of operators used to this file"},
    {"o", "OUT", KIND_TEXT, TN_CLI_OPTIMIZE, AT(output), NULL, "the file that is written: .onnx, .tenon or .txt"},
    {"opset", "N", KIND_COUNT, TN_CLI_OPTIMIZE, AT(opset), NULL,
     "version of the standard operators; a step that would lose something is refused"},
    {"standard-only", NULL, KIND_FLAG, TN_CLI_OPTIMIZE, AT(standard), NULL,
     "refuse operators that are not the standard's, and functions"},
    {"external-data", NULL, KIND_FLAG, TN_CLI_OPTIMIZE, AT(external), NULL,
     "put tensors of 1 KiB and more into OUT.data"},
    {"explain", NULL, KIND_FLAG, TN_CLI_OPTIMIZE, AT(explain), NULL, "say what was not done, and why"},
    {"lock", "FILE", KIND_PLANNED, TN_CLI_OPTIMIZE, 0, NULL, NULL},
    {"markdown", NULL, KIND_FLAG, TN_CLI_OPS, AT(markdown), NULL, "print a page of documentation"},
    {"filter", "GLOB", KIND_TEXT, TN_CLI_TEST, AT(filter), NULL,
     "only folders whose name (or path, when it holds a /) matches"},
    {"jobs", "N", KIND_COUNT, TN_CLI_TEST, AT(jobs), NULL, "folders tested at a time; default: one for each CPU"},
    {"timeout", "SECONDS", KIND_COUNT, TN_CLI_TEST, AT(timeout), NULL,
     "a folder that takes longer has failed; default: 300"},
    {"limits", NULL, KIND_FLAG, TN_CLI_TEST, AT(limits), NULL,
     "judge max_ms and max_rss_mb of case.json, too (one job unless --jobs)"},
    {"seconds", "S", KIND_TEXT, TN_CLI_BENCH, AT(seconds), NULL, "time of all runs that are measured; default: 3"},
    {"warmup", "N", KIND_TEXT, TN_CLI_BENCH, AT(warmup), NULL, "runs before them; default: 3"},
    {"per-op", NULL, KIND_FLAG, TN_CLI_BENCH, AT(per_op), NULL, "list what each kind of operator took"},
    {"profile", "TRACE.json", KIND_TEXT, TN_CLI_BENCH, AT(profile), NULL,
     "write one run as a trace in Chrome's format, naming the model's nodes"},
    {"samples", "N", KIND_COUNT, TN_CLI_VERIFY, AT(samples), NULL,
     "sets of inputs; default: 4, or 2 when all sizes are fixed"},
    {"tolerance", "T", KIND_TEXT, TN_CLI_VERIFY, AT(tolerance), NULL,
     "also right: off by this share of the rms of a value; default: 0"},
    {"threads", "N", KIND_COUNT, (uint32_t)TN_CLI_ALL, AT(threads), NULL,
     "worker threads; default: the CPUs this process may use"},
    {"O", NULL, KIND_CHOICE, (uint32_t)TN_CLI_ALL, AT(level), "0|1|2|3",
     "optimisation: 0 none, 1 exact, 2 default; 3 does what 2 does, it has no search yet"},
    {"backend", "ref|cpu", KIND_CHOICE, (uint32_t)TN_CLI_ALL, AT(backend), "ref|cpu",
     "the reference interpreter, or the compiled plan (default)"},
    {"isa", "LEVEL", KIND_TEXT, (uint32_t)TN_CLI_ALL, AT(isa), NULL,
     "instruction-set level not above the CPU's: generic, avx2, avx512, ..."},
    {"dim", "NAME=N", KIND_DIM, (uint32_t)TN_CLI_ALL, AT(dims), NULL, "bind a symbolic dimension"},
    {"memory", "SIZE", KIND_SIZE, (uint32_t)TN_CLI_ALL, AT(memory), NULL,
     "hard limit on what is allocated for the model: constants that are copied, plans, runs (64MiB, 1.5G)"},
    {"max-bytes", "SIZE", KIND_SIZE, (uint32_t)TN_CLI_ALL, AT(max_bytes), NULL,
     "take no more memory than this, mapped files aside; refuse larger models (64MiB, 1.5G)"},
    {"max-ops", "N", KIND_COUNT, (uint32_t)TN_CLI_ALL, AT(max_ops), NULL, "refuse models of more nodes"},
    {"disable", "PASS", KIND_TEXT, (uint32_t)TN_CLI_ALL, AT(disable), NULL, "leave out passes: names with commas"},
    {"passes", "LIST", KIND_TEXT, (uint32_t)TN_CLI_ALL, AT(passes), NULL, "run these passes instead of the level's"},
    {"dump", "DIR", KIND_TEXT, (uint32_t)TN_CLI_ALL, AT(dump), NULL,
     "write the graph after each pass that changed it, and the plan"},
    {"layout", "HOW", KIND_CHOICE, (uint32_t)TN_CLI_ALL, AT(layout), "auto|nchw|nhwc|blocked",
     "how values between kernels lie: auto, nchw, nhwc; blocked is not supported"},
    {"reuse", "HOW", KIND_CHOICE, (uint32_t)TN_CLI_ALL, AT(reuse), "none|inplace|full",
     "what memory of values is used again: none, where one is written over in place, all that are dead"},
    {"plugin", "FILE", KIND_LIST, (uint32_t)TN_CLI_ALL, AT(plugins), NULL,
     "load operators of your own from a shared library; may be given more than once"},
    {"seed", "N", KIND_U64, (uint32_t)TN_CLI_ALL, AT(seed), NULL, "seed of made-up inputs; default: 0"},
    {"json", NULL, KIND_FLAG, (uint32_t)TN_CLI_ALL, AT(json), NULL, "print one JSON document on standard output"},
    {"quiet", NULL, KIND_FLAG, (uint32_t)TN_CLI_ALL, AT(quiet), NULL, "print less"},
    {"verbose", NULL, KIND_FLAG, (uint32_t)TN_CLI_ALL, AT(verbose), NULL,
     "print more: times, memory, what passes did not do and why"},
    {"help", NULL, KIND_FLAG, (uint32_t)TN_CLI_ALL, AT(help), NULL, "this text"},
    {"version", NULL, KIND_FLAG, 0, AT(version), NULL, "version, build, CPU features"},
};
#define OPTION_COUNT (sizeof option_table / sizeof *option_table)

/* ---- suggestions ---- */

/* Changes (insert, delete, replace, swap of neighbours) that turn a into b; texts longer than 63 are far from all. */
static uint32_t distance(const char *a, const char *b) {
    size_t n = strlen(a), m = strlen(b);
    uint32_t row[3][64];
    if (n > 63 || m > 63)
        return 64;
    for (size_t j = 0; j <= m; j++)
        row[0][j] = (uint32_t)j;
    for (size_t i = 1; i <= n; i++) {
        uint32_t *now = row[i % 3], *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];
        now[0] = (uint32_t)i;
        for (size_t j = 1; j <= m; j++) {
            uint32_t best = last[j - 1] + (a[i - 1] != b[j - 1]);
            if (last[j] + 1 < best)
                best = last[j] + 1;
            if (now[j - 1] + 1 < best)
                best = now[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            now[j] = best;
        }
    }
    return row[n % 3][m];
}

const char *tn_cli_nearest(const char *text, uint32_t count, const char *(*name_of)(const void *ctx, uint32_t i),
                           const void *ctx) {
    const char *nearest = NULL;
    uint32_t least = (uint32_t)(strlen(text) / 3 > 2 ? strlen(text) / 3 : 2) + 1;
    for (uint32_t i = 0; i < count; i++) {
        const char *name = name_of(ctx, i);
        if (!name)
            continue;
        uint32_t d = distance(text, name);
        if (strlen(text) >= 2 && strncmp(text, name, strlen(text)) == 0)
            d = 1; /* a beginning */
        if (d < least && d < strlen(name)) {
            least = d;
            nearest = name;
        }
    }
    return nearest;
}

static const char *command_name(const void *ctx, uint32_t i) {
    (void)ctx;
    return tn_cli_commands[i].run ? tn_cli_commands[i].name : NULL;
}

static const char *option_name(const void *ctx, uint32_t i) {
    const tn_cli_command *command = ctx;
    const option_row *o = &option_table[i];
    bool there = command ? (o->commands & command->bit) != 0 : o->kind == KIND_FLAG && strcmp(o->name, "json") != 0;
    return there && o->kind != KIND_PLANNED && o->name[1] ? o->name : NULL;
}

static uint32_t command_count(void) {
    uint32_t n = 0;
    while (tn_cli_commands[n].name)
        n++;
    return n;
}

/* ---- parsing ---- */

static const option_row *find_option(const char *name, size_t length) {
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (strlen(option_table[i].name) == length && memcmp(option_table[i].name, name, length) == 0)
            return &option_table[i];
    return NULL;
}

static tn_status unknown_option(const char *text, const char *name, const tn_cli_command *command) {
    tn_fail(TN_ERR_USAGE, "unknown option '%s'", text);
    const char *nearest = tn_cli_nearest(name, (uint32_t)OPTION_COUNT, option_name, command);
    if (nearest)
        tn_fail_hint("did you mean --%s?", nearest);
    else if (command)
        tn_fail_hint("see 'tenon %s --help'", command->name);
    else
        tn_fail_hint("see 'tenon --help'");
    return TN_ERR_USAGE;
}

static bool is_choice(const char *choices, const char *text) {
    size_t length = strlen(text);
    for (const char *c = choices; *c;) {
        size_t n = strcspn(c, "|");
        if (n == length && memcmp(c, text, n) == 0)
            return true;
        c += n + (c[n] == '|');
    }
    return false;
}

static bool parse_u64(const char *text, uint64_t *value) {
    size_t used, length = strlen(text);
    return tn_parse_u64(text, length, value, &used) && used == length;
}

static tn_status set_option(tn_cli_options *out, const option_row *o, const char *text) {
    void *field = (char *)out + o->offset;
    const char *dash = o->name[1] ? "--" : "-";
    switch (o->kind) {
    case KIND_FLAG: *(bool *)field = true; return TN_OK;
    case KIND_TEXT:
        if (!*text)
            return tn_fail(TN_ERR_USAGE, "--%s: the value is empty", o->name);
        *(const char **)field = text;
        return TN_OK;
    case KIND_CHOICE:
        if (!is_choice(o->choices, text)) {
            tn_fail(TN_ERR_USAGE, "%s%s: '%s' is not one of %s", dash, o->name, text, o->choices);
            if (o->name[0] == 'O')
                tn_fail_hint("write -O0, -O1, -O2 or -O3");
            return TN_ERR_USAGE;
        }
        *(const char **)field = text;
        return TN_OK;
    case KIND_COUNT:
    case KIND_U64:
        if (!parse_u64(text, field) ||
            (o->kind == KIND_COUNT && (*(uint64_t *)field < 1 || *(uint64_t *)field > INT32_MAX)))
            return tn_fail(TN_ERR_USAGE, "--%s: '%s' is no number from %s", o->name, text,
                           o->kind == KIND_COUNT ? "1 to 2147483647" : "0 to 18446744073709551615");
        return TN_OK;
    case KIND_SIZE:
        if (!tn_parse_size(text, field) || *(uint64_t *)field == 0) {
            tn_fail(TN_ERR_USAGE, "--%s: '%s' is no size", o->name, text);
            tn_fail_hint("sizes are written 4096, 64MiB, 1.5G");
            return TN_ERR_USAGE;
        }
        return TN_OK;
    case KIND_DIM: {
        const char *equals = strrchr(text, '=');
        uint64_t n;
        if (!equals || equals == text || !parse_u64(equals + 1, &n) || n > INT64_MAX) {
            tn_fail(TN_ERR_USAGE, "--%s: '%s' is not NAME=N", o->name, text);
            tn_fail_hint("for example --dim batch=8");
            return TN_ERR_USAGE;
        }
        tn_cli_list *list = field;
        if (!tn_vec_reserve(NULL, list, 2))
            return TN_ERR_MEMORY;
        list->data[list->len++] = text;
        list->data[list->len] = NULL;
        return TN_OK;
    }
    case KIND_LIST: return tn_vec_push(NULL, (tn_cli_list *)field, text) ? TN_OK : TN_ERR_MEMORY;
    case KIND_PLANNED: break;
    }
    return tn_fail(TN_ERR_UNSUPPORTED, "--%s is not supported yet", o->name);
}

/* The option of argv[*at], its value included; *at moves to the last argument read. */
static tn_status parse_option(int argc, char **argv, int *at, tn_cli_options *out) {
    const char *arg = argv[*at];
    if (strcmp(arg, "-h") == 0) {
        out->help = true;
        return TN_OK;
    }
    if (arg[1] == 'O') {
        if (!out->command)
            return unknown_option(arg, arg + 1, NULL);
        if (!arg[2]) {
            const char *next = *at + 1 < argc ? argv[*at + 1] : "";
            bool level = next[0] >= '0' && next[0] <= '3' && !next[1];
            tn_fail(TN_ERR_USAGE, "-O needs a level, without a space before it");
            tn_fail_hint(level ? "write -O%s" : "write -O0, -O1, -O2 or -O3", next);
            return TN_ERR_USAGE;
        }
        return set_option(out, find_option("O", 1), arg + 2);
    }
    if (strcmp(arg, "-o") == 0 && out->command && out->command->bit & TN_CLI_OPTIMIZE) {
        if (*at + 1 >= argc) {
            tn_fail(TN_ERR_USAGE, "-o needs a value");
            tn_fail_hint("-o OUT.onnx");
            return TN_ERR_USAGE;
        }
        return set_option(out, find_option("o", 1), argv[++*at]);
    }
    if (arg[1] != '-')
        return unknown_option(arg, arg + 1, out->command);
    const char *name = arg + 2, *equals = strchr(name, '=');
    size_t length = equals ? (size_t)(equals - name) : strlen(name);
    const option_row *o = length > 1 ? find_option(name, length) : NULL;
    if (!o) {
        char word[64];
        size_t n = length < sizeof word - 1 ? length : sizeof word - 1;
        memcpy(word, name, n);
        word[n] = '\0';
        return unknown_option(arg, word, out->command);
    }
    if (o->kind == KIND_PLANNED && (!out->command || (o->commands & out->command->bit)))
        return tn_fail(TN_ERR_UNSUPPORTED, "--%s is not supported yet", o->name);
    bool always = strcmp(o->name, "version") == 0 || strcmp(o->name, "help") == 0;
    if (!always && !out->command) {
        tn_fail(TN_ERR_USAGE, "--%s stands before the subcommand", o->name);
        tn_fail_hint("options follow the subcommand: tenon run MODEL --%s", o->name);
        return TN_ERR_USAGE;
    }
    if (!always && !(o->commands & out->command->bit)) {
        tn_fail(TN_ERR_USAGE, "'tenon %s' has no option --%s", out->command->name, o->name);
        for (const tn_cli_command *c = tn_cli_commands; c->name; c++)
            if (o->commands & c->bit)
                tn_fail_hint("it belongs to 'tenon %s'", c->name);
        return TN_ERR_USAGE;
    }
    const char *value = equals ? equals + 1 : NULL;
    if (o->kind == KIND_FLAG && value)
        return tn_fail(TN_ERR_USAGE, "--%s takes no value", o->name);
    if (o->kind != KIND_FLAG && !value) {
        if (*at + 1 >= argc || strncmp(argv[*at + 1], "--", 2) == 0) {
            tn_fail(TN_ERR_USAGE, "--%s needs a value", o->name);
            tn_fail_hint("--%s %s", o->name, o->value);
            return TN_ERR_USAGE;
        }
        value = argv[++*at];
    }
    return set_option(out, o, value);
}

static tn_status find_command(const char *word, tn_cli_options *out) {
    for (const tn_cli_command *c = tn_cli_commands; c->name; c++)
        if (strcmp(c->name, word) == 0) {
            out->command = c;
            return c->run ? TN_OK : tn_fail(TN_ERR_UNSUPPORTED, "'tenon %s' is not supported yet", word);
        }
    tn_fail(TN_ERR_USAGE, "unknown subcommand '%s'", word);
    const char *nearest = tn_cli_nearest(word, command_count(), command_name, NULL);
    if (nearest)
        tn_fail_hint("did you mean 'tenon %s'?", nearest);
    else
        tn_fail_hint("see 'tenon --help'");
    return TN_ERR_USAGE;
}

tn_status tn_cli_parse(int argc, char **argv, tn_cli_options *out) {
    *out = (tn_cli_options){0};
    bool options = true;
    for (int i = 1; i < argc; i++) {
        if (options && strcmp(argv[i], "--") == 0)
            options = false;
        else if (options && argv[i][0] == '-' && argv[i][1])
            TN_TRY(parse_option(argc, argv, &i, out));
        else if (!out->command)
            TN_TRY(find_command(argv[i], out));
        else if (!tn_vec_push(NULL, &out->args, argv[i]))
            return TN_ERR_MEMORY;
    }
    if (out->help || out->version)
        return TN_OK;
    if (!out->command) {
        tn_fail(TN_ERR_USAGE, "a subcommand is missing");
        tn_fail_hint("see 'tenon --help'");
        return TN_ERR_USAGE;
    }
    if (out->args.len < out->command->min_args) {
        tn_fail(TN_ERR_USAGE, "'tenon %s' needs %s", out->command->name,
                out->command->max_args == 1 ? "a model" : "a folder");
        tn_fail_hint("tenon %s %s", out->command->name, out->command->synopsis);
        return TN_ERR_USAGE;
    }
    if (out->args.len > out->command->max_args) {
        tn_fail(TN_ERR_USAGE, "'%s' is one argument too many", out->args.data[out->command->max_args]);
        tn_fail_hint("tenon %s %s", out->command->name, out->command->synopsis);
        return TN_ERR_USAGE;
    }
    return TN_OK;
}

void tn_cli_options_free(tn_cli_options *options) {
    tn_vec_free(NULL, &options->args);
    tn_vec_free(NULL, &options->dims);
    tn_vec_free(NULL, &options->inputs);
    tn_vec_free(NULL, &options->fetch);
    tn_vec_free(NULL, &options->tap);
    tn_vec_free(NULL, &options->plugins);
}

/* ---- help ---- */

bool tn_cli_option_at(uint32_t i, tn_cli_option *out) {
    for (size_t at = 0; at < OPTION_COUNT; at++) {
        const option_row *o = &option_table[at];
        if (o->kind == KIND_PLANNED || i--)
            continue;
        *out = (tn_cli_option){.dashes = o->name[1] ? "--" : "-",
                               .name = o->name,
                               .value = o->value,
                               .choices = o->choices,
                               .help = o->help,
                               .commands = o->commands};
        out->many = o->kind == KIND_LIST || o->kind == KIND_DIM;
        out->file = o->value && (strstr(o->value, "FILE") || strstr(o->value, "OUT") || strstr(o->value, ".json"));
        out->folder = o->value && strcmp(o->value, "DIR") == 0;
        return true;
    }
    return false;
}

static void help_option(const option_row *o, tn_text *out) {
    char left[64];
    size_t n = 0;
    const char *parts[] = {o->name[1] ? "--" : "-", o->name, o->name[0] == 'O' ? "0 ... -O3" : "", o->value ? " " : "",
                           o->value ? o->value : ""};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        for (const char *c = parts[i]; *c && n < sizeof left - 1; c++)
            left[n++] = *c;
    left[n] = '\0';
    tn_text_printf(out, "  %-24s %s\n", left, o->help);
}

void tn_cli_help(const tn_cli_command *command, tn_text *out) {
    if (!command) {
        tn_text_add(
            out, "Tenon: a compiler and runtime for computation graphs.\n\nUsage: tenon SUBCOMMAND ...\n\nExamples:\n");
        for (const tn_cli_command *c = tn_cli_commands; c->name; c++)
            if (c->run)
                tn_text_printf(out, "  %s\n      %s\n", c->examples[0], c->examples[1]);
        tn_text_add(out, "\nSubcommands:\n");
        for (const tn_cli_command *c = tn_cli_commands; c->name; c++)
            if (c->run)
                tn_text_printf(out, "  %-10s %s\n", c->name, c->summary);
        tn_text_add(out,
                    "\n'tenon SUBCOMMAND --help' shows its examples and options; 'tenon --version' what this is.\n"
                    "\nExit status: 0 done, 1 the answer is no, 2 wrong usage, 3 bad model or input, 4 not supported,\n"
                    "5 a limit (memory, size, time), 6 cannot read or write.\n");
        return;
    }
    tn_text_printf(out, "tenon %s: %s.\n\nExamples:\n", command->name, command->summary);
    for (int i = 0; i < 6; i += 2)
        tn_text_printf(out, "  %s\n      %s\n", command->examples[i], command->examples[i + 1]);
    tn_text_printf(out, "\nUsage: tenon %s %s\n", command->name, command->synopsis);
    if (command->notes)
        tn_text_printf(out, "\n%s\n", command->notes);
    tn_text_add(out, "\nOptions:\n");
    for (int common = 0; common < 2; common++) {
        for (size_t i = 0; i < OPTION_COUNT; i++) {
            const option_row *o = &option_table[i];
            bool all = o->commands == (uint32_t)TN_CLI_ALL;
            if (o->kind != KIND_PLANNED && (o->commands & command->bit) && all == (common == 1))
                help_option(o, out);
        }
    }
}
