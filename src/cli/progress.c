/* A progress line on standard error. */
#include "cli/progress.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/os.h"
#include "cli/cli.h"

#define BAR 30

void tn_progress_start(tn_progress *p, uint64_t total, bool enabled) {
    *p = (tn_progress){.enabled = enabled && total > 0 && tn_cli_tty(2), .start = tn_clock(), .total = total};
}

void tn_progress_update(tn_progress *p, uint64_t done) {
    double now = tn_clock(), elapsed = now - p->start;
    if (!p->enabled || elapsed < 1 || now - p->last < 0.1)
        return;
    char bar[BAR + 1];
    for (uint64_t i = 0; i < BAR; i++)
        bar[i] = i * p->total < done * BAR ? '=' : ' ';
    bar[BAR] = '\0';
    uint64_t rate = (uint64_t)((double)done / elapsed);
    uint64_t left = done ? (uint64_t)(elapsed * (double)(p->total - done) / (double)done) : 0;
    fprintf(stderr, "\r\033[K[%s] %" PRIu64 "/%" PRIu64 "  %" PRIu64 "/s  %" PRIu64 ":%02" PRIu64 " left", bar, done,
            p->total, rate, left / 60, left % 60);
    fflush(stderr);
    p->last = now;
    p->shown = true;
}

void tn_progress_clear(tn_progress *p) {
    if (p->shown) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
    }
    p->shown = false;
}
