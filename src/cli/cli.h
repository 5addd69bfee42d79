/* Shared by the subcommands: output, errors, loading with the common options. */
#ifndef TN_CLI_CLI_H
#define TN_CLI_CLI_H

#include <tenon/custom.h>
#include <tenon/session.h>

#include "base/buffer.h"
#include "base/error.h"
#include "cli/options.h"

/* Process exit status of a status, as the table in `tenon --help` says. */
int tn_cli_exit_code(tn_status status);
/* Prints the thread's error on standard error as one block; answers its exit code. */
int tn_cli_report(void);
/* Writes to standard output. TN_ERR_IO when it can't be; `text` may be a failed buffer (TN_ERR_MEMORY). Empties `text`. */
tn_status tn_cli_put(tn_text *text);
/* A line on standard error, "tenon: warning: ...". */
void tn_cli_warn(const char *text);
/* Whether text on standard output (1) or standard error (2) may be coloured; whether it is a terminal. */
bool tn_cli_color(int fd);
bool tn_cli_tty(int fd);
/* A name from a model, made safe for a terminal: as it is, or quoted with escapes. */
void tn_cli_name(tn_text *out, const char *name);

/* An interrupt (Ctrl-C, TERM) ends the process at once, except between these two, when it waits for the second: around
   writing files and running child processes. */
void tn_cli_interrupt_hold(void);
void tn_cli_interrupt_release(void);
bool tn_cli_interrupted(void); /* one is waiting */
void tn_cli_signals_init(void);

/* Loads what --plugin names; before the subcommand runs. */
tn_status tn_cli_plugins_load(tn_cli_options *options);
/* After a failure: the hint says which option moves the limit that was met. */
void tn_cli_say_limit(const tn_cli_options *options);
tn_model *tn_cli_load(const tn_cli_options *options, const char *path);
/* --layout and --reuse. */
tn_status tn_cli_read_plan(const tn_cli_options *options, tn_layout_option *layout, tn_reuse_option *reuse);
/* What a session is made for: to run, to be looked at, to measure runs (see tn_session_options). */
typedef enum tn_cli_use { TN_CLI_COMPUTE, TN_CLI_DESCRIBE, TN_CLI_MEASURE } tn_cli_use;
/* `threads`: when the options say nothing; 0: the library's choice. */
tn_session *tn_cli_session(const tn_cli_options *options, tn_model *model, int threads, tn_cli_use use);
/* After a failure of a command that runs the model `runs` times: when --memory was too small, the error says what is enough. */
void tn_cli_say_needed(const tn_cli_options *options, int threads, uint32_t runs);

tn_status tn_cli_run(const tn_cli_options *options);
tn_status tn_cli_bench(const tn_cli_options *options);
tn_status tn_cli_info(const tn_cli_options *options);
tn_status tn_cli_ops(const tn_cli_options *options);
tn_status tn_cli_optimize(const tn_cli_options *options);
tn_status tn_cli_test(const tn_cli_options *options);
tn_status tn_cli_verify(const tn_cli_options *options);

#endif
