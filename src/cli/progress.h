/* A progress line on standard error: only on a terminal, only after a second of work. */
#ifndef TN_CLI_PROGRESS_H
#define TN_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct tn_progress {
    bool enabled, shown;
    double start, last;
    uint64_t total;
} tn_progress;

void tn_progress_start(tn_progress *progress, uint64_t total, bool enabled);
/* Bar, rate, time left; redrawn ten times a second at most. */
void tn_progress_update(tn_progress *progress, uint64_t done);
/* Removes the line, before other output and at the end. */
void tn_progress_clear(tn_progress *progress);

#endif
