/* Writes the manual page or the bash completion of the command from its tables: pages man|completion FILE. The build runs it. */
#include <stdio.h>
#include <string.h>

#include <tenon/api.h>

#include "base/error.h"
#include "cli/options.h"

/* --- manual page ------------------------------------------------------------------------------------------------- */

/* Text for roff: no line begins a request, dashes stay dashes, line breaks stay. */
static void roff(tn_text *out, const char *text) {
    bool start = true;
    for (; *text; text++) {
        if (start && (*text == '.' || *text == '\''))
            tn_text_add(out, "\\&");
        start = *text == '\n';
        if (*text == '-')
            tn_text_add(out, "\\-");
        else if (*text == '\\')
            tn_text_add(out, "\\e");
        else
            tn_text_bytes(out, text, 1);
    }
}

static void roff_line(tn_text *out, const char *request, const char *text) {
    tn_text_add(out, request);
    roff(out, text);
    tn_text_add(out, "\n");
}

static void man_option(tn_text *out, const tn_cli_option *o) {
    tn_text_add(out, ".TP\n\\fB");
    roff(out, o->dashes);
    roff(out, o->name);
    tn_text_add(out, "\\fR");
    if (!o->value && o->choices) { /* -O0 ... */
        tn_text_add(out, "\\fI");
        roff(out, o->choices);
        tn_text_add(out, "\\fR");
    }
    if (o->value) {
        tn_text_add(out, " \\fI");
        roff(out, o->value);
        tn_text_add(out, "\\fR");
    }
    tn_text_add(out, "\n");
    roff_line(out, "", o->help);
}

/* Options of one subcommand alone, or (NULL) those of all. */
static void man_options(tn_text *out, const tn_cli_command *command) {
    tn_cli_option o;
    for (uint32_t i = 0; tn_cli_option_at(i, &o); i++) {
        bool all = o.commands == (uint32_t)TN_CLI_ALL || o.commands == 0;
        if (command ? !all && (o.commands & command->bit) != 0 : all)
            man_option(out, &o);
    }
}

static void man(tn_text *out) {
    tn_text_printf(out, ".TH TENON 1 \"\" \"tenon %s\"\n", tn_version());
    tn_text_add(out, ".SH NAME\ntenon \\- a compiler and runtime for computation graphs\n.SH SYNOPSIS\n");
    for (const tn_cli_command *c = tn_cli_commands; c->name; c++)
        if (c->run) {
            tn_text_printf(out, ".B tenon %s\n", c->name);
            roff_line(out, "", c->synopsis);
            tn_text_add(out, ".br\n");
        }
    tn_text_add(out, ".SH SUBCOMMANDS\n");
    for (const tn_cli_command *c = tn_cli_commands; c->name; c++) {
        if (!c->run)
            continue;
        tn_text_printf(out, ".SS tenon %s\n", c->name);
        tn_text_printf(out, "%c", c->summary[0] >= 'a' && c->summary[0] <= 'z' ? c->summary[0] - 32 : c->summary[0]);
        roff(out, c->summary + 1);
        tn_text_add(out, ".\n");
        if (c->notes)
            roff_line(out, ".PP\n", c->notes);
        man_options(out, c);
        for (int i = 0; i < 6; i += 2) {
            roff_line(out, ".PP\n.RS\n.nf\n", c->examples[i]);
            tn_text_add(out, ".fi\n.RE\n");
            roff_line(out, "", c->examples[i + 1]);
        }
    }
    tn_text_add(out, ".SH OPTIONS OF ALL SUBCOMMANDS\n");
    man_options(out, NULL);
    tn_text_add(out, ".SH EXIT STATUS\n");
    static const char *const status[] = {"done",
                                         "the answer is no",
                                         "wrong usage",
                                         "bad model or input",
                                         "not supported",
                                         "a limit: memory, size, time",
                                         "cannot read or write"};
    for (size_t i = 0; i < sizeof status / sizeof *status; i++)
        tn_text_printf(out, ".TP\n%zu\n%s\n", i, status[i]);
}

/* --- bash completion --------------------------------------------------------------------------------------------- */

static void words(tn_text *out, const char *choices, const char *before) {
    for (const char *c = choices; *c;) {
        size_t n = strcspn(c, "|");
        tn_text_printf(out, " %s", before);
        tn_text_bytes(out, c, n);
        c += n + (c[n] == '|');
    }
}

/* A case arm for what follows options that take a value. */
static void value_arms(tn_text *out) {
    tn_cli_option o;
    for (uint32_t i = 0; tn_cli_option_at(i, &o); i++) {
        if (!o.value)
            continue;
        tn_text_printf(out, "    %s%s) ", o.dashes, o.name);
        if (o.choices) {
            tn_text_add(out, "COMPREPLY=($(compgen -W '");
            words(out, o.choices, "");
            tn_text_add(out, "' -- \"$word\"))");
        } else {
            tn_text_add(out, o.file     ? "COMPREPLY=($(compgen -f -- \"$word\"))"
                             : o.folder ? "COMPREPLY=($(compgen -d -- \"$word\"))"
                                        : ":");
        }
        tn_text_add(out, "; return ;;\n");
    }
}

static void completion(tn_text *out) {
    tn_text_add(out, "# bash completion of tenon\n_tenon() {\n"
                     "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} options\n"
                     "  COMPREPLY=()\n"
                     "  if [ \"$COMP_CWORD\" = 1 ]; then\n    COMPREPLY=($(compgen -W '");
    for (const tn_cli_command *c = tn_cli_commands; c->name; c++)
        if (c->run)
            tn_text_printf(out, " %s", c->name);
    tn_text_add(out, " --help --version' -- \"$word\"))\n    return\n  fi\n  case $before in\n");
    value_arms(out);
    tn_text_add(out, "  esac\n  case ${COMP_WORDS[1]} in\n");
    for (const tn_cli_command *c = tn_cli_commands; c->name; c++) {
        tn_cli_option o;
        if (!c->run)
            continue;
        tn_text_printf(out, "    %s) options='", c->name);
        for (uint32_t i = 0; tn_cli_option_at(i, &o); i++) {
            if (!(o.commands & c->bit))
                continue;
            if (!o.value && o.choices)
                words(out, o.choices, "-O");
            else
                tn_text_printf(out, " %s%s", o.dashes, o.name);
        }
        tn_text_add(out, "' ;;\n");
    }
    tn_text_add(out, "  esac\n  case $word in\n    -*) COMPREPLY=($(compgen -W \"$options\" -- \"$word\")) ;;\n"
                     "    *) COMPREPLY=($(compgen -f -- \"$word\")) ;;\n  esac\n}\n"
                     "complete -o filenames -o bashdefault -F _tenon tenon\n");
}

int main(int argc, char **argv) {
    tn_text out;
    tn_text_init(&out, NULL);
    if (argc != 3 || (strcmp(argv[1], "man") != 0 && strcmp(argv[1], "completion") != 0)) {
        fprintf(stderr, "usage: %s man|completion FILE\n", argv[0]);
        return 2;
    }
    if (argv[1][0] == 'm')
        man(&out);
    else
        completion(&out);
    FILE *file = out.failed ? NULL : fopen(argv[2], "w");
    bool done = file && fwrite(out.data, 1, out.len, file) == out.len;
    done = file && fclose(file) == 0 && done;
    tn_text_free(&out);
    if (!done)
        fprintf(stderr, "cannot write '%s'\n", argv[2]);
    return done ? 0 : 1;
}
