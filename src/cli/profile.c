#include "cli/profile.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/number.h"
#include "base/os.h"
#include "cli/cli.h"
#include "cli/print.h"

static char *copy_text(const char *text) {
    size_t n = strlen(text) + 1;
    char *to = tn_alloc(NULL, n);
    return to ? memcpy(to, text, n) : NULL;
}

void tn_cli_profile_add(void *user, const tn_profile_event *e) {
    tn_cli_profile *p = user;
    tn_cli_part part = {copy_text(e->name),
                        copy_text(e->operators),
                        copy_text(e->origin),
                        e->kernels,
                        e->start,
                        e->seconds,
                        e->operations,
                        e->bytes};
    p->operations += e->operations;
    p->bytes += e->bytes;
    if (part.name && part.operators && part.origin && tn_vec_push(NULL, &p->part, part))
        return;
    p->failed = true;
    tn_free(NULL, part.name);
    tn_free(NULL, part.operators);
    tn_free(NULL, part.origin);
}

tn_status tn_cli_profile_end(tn_cli_profile *p) {
    return p->failed ? tn_fail(TN_ERR_MEMORY, "out of memory: the profile of a run") : TN_OK;
}

void tn_cli_profile_free(tn_cli_profile *p) {
    for (uint32_t i = 0; i < p->part.len; i++) {
        tn_free(NULL, p->part.data[i].name);
        tn_free(NULL, p->part.data[i].operators);
        tn_free(NULL, p->part.data[i].origin);
    }
    tn_vec_free(NULL, &p->part);
}

/* Parts of one name and the same operators. */
typedef struct line {
    const tn_cli_part *first;
    uint32_t count;
    double seconds, operations, bytes;
} line;

static int by_text(const void *a, const void *b) {
    const tn_cli_part *x = ((const line *)a)->first, *y = ((const line *)b)->first;
    int order = strcmp(x->name, y->name);
    return order ? order : strcmp(x->operators, y->operators);
}

static int by_seconds(const void *a, const void *b) {
    double x = ((const line *)a)->seconds, y = ((const line *)b)->seconds;
    return x != y ? (x < y) - (x > y) : by_text(a, b);
}

/* Lines, longest first, and the seconds of all; NULL and no lines when out of memory. */
static line *make_lines(const tn_cli_profile *p, uint32_t *count, double *seconds) {
    line *lines = tn_alloc_array(NULL, p->part.len + 1u, sizeof *lines);
    *count = 0;
    *seconds = 0;
    for (uint32_t i = 0; lines && i < p->part.len; i++) {
        const tn_cli_part *part = &p->part.data[i];
        lines[i] = (line){part, 1, part->seconds, part->operations, part->bytes};
        *seconds += part->seconds;
    }
    if (!lines || !p->part.len)
        return lines;
    qsort(lines, p->part.len, sizeof *lines, by_text);
    *count = 1;
    for (uint32_t i = 1; i < p->part.len; i++) {
        line *to = &lines[*count - 1];
        if (by_text(to, &lines[i])) {
            lines[(*count)++] = lines[i];
            continue;
        }
        to->count++;
        to->seconds += lines[i].seconds;
        to->operations += lines[i].operations;
        to->bytes += lines[i].bytes;
    }
    qsort(lines, *count, sizeof *lines, by_seconds);
    return lines;
}

static void column(tn_text *out, double value, int width) {
    char number[TN_NUMBER_TEXT];
    tn_format_f64_digits(value, 3, number);
    tn_text_printf(out, "%*s", width, number);
}

void tn_cli_profile_text(const tn_cli_profile *p, tn_text *out) {
    uint32_t count;
    double all;
    line *lines = make_lines(p, &count, &all);
    if (!lines) {
        out->failed = true;
        return;
    }
    tn_text_add(out, "\n        ms       %     GFLOP/s        GB/s   times  what ran, for which operators\n");
    for (uint32_t i = 0; i < count; i++) {
        const line *l = &lines[i];
        column(out, 1e3 * l->seconds, 10);
        column(out, all > 0 ? 100 * l->seconds / all : 0, 8);
        column(out, l->seconds > 0 ? 1e-9 * l->operations / l->seconds : 0, 12);
        column(out, l->seconds > 0 ? 1e-9 * l->bytes / l->seconds : 0, 12);
        tn_text_printf(out, "%8" PRIu32 "  %s: %s\n", l->count, l->first->name, l->first->operators);
    }
    tn_free(NULL, lines);
}

static void add_key(tn_text *out, const char *key, double value) {
    tn_text_printf(out, ", \"%s\": ", key);
    tn_cli_json_f64(out, value);
}

static void add_string(tn_text *out, const char *key, const char *text) {
    tn_text_printf(out, "\"%s\": ", key);
    tn_text_json(out, text, strlen(text));
}

void tn_cli_profile_json(const tn_cli_profile *p, tn_text *out) {
    uint32_t count;
    double all;
    line *lines = make_lines(p, &count, &all);
    if (!lines) {
        out->failed = true;
        return;
    }
    tn_text_add(out, "[");
    for (uint32_t i = 0; i < count; i++) {
        const line *l = &lines[i];
        tn_text_add(out, i ? ",\n  {" : "\n  {");
        add_string(out, "name", l->first->name);
        tn_text_add(out, ", ");
        add_string(out, "operators", l->first->operators);
        tn_text_printf(out, ", \"times\": %" PRIu32, l->count);
        add_key(out, "ms", 1e3 * l->seconds);
        add_key(out, "operations", l->operations);
        add_key(out, "bytes", l->bytes);
        tn_text_add(out, "}");
    }
    tn_text_add(out, "]");
    tn_free(NULL, lines);
}

tn_status tn_cli_profile_write(const tn_cli_profile *p, const char *path, const char *model) {
    tn_text out;
    tn_text_init(&out, NULL);
    tn_text_add(&out, "{\"displayTimeUnit\": \"ms\", \"otherData\": {");
    add_string(&out, "model", model);
    tn_text_add(&out, "},\n\"traceEvents\": [");
    for (uint32_t i = 0; i < p->part.len; i++) {
        const tn_cli_part *part = &p->part.data[i];
        tn_text_add(&out, i ? ",\n{" : "\n{");
        add_string(&out, "name", part->operators);
        tn_text_add(&out, ", ");
        add_string(&out, "cat", part->kernels ? "kernel" : "host");
        tn_text_add(&out, ", \"ph\": \"X\", \"pid\": 1, \"tid\": 1");
        add_key(&out, "ts", 1e6 * part->start);
        add_key(&out, "dur", 1e6 * part->seconds);
        tn_text_add(&out, ", \"args\": {");
        add_string(&out, "nodes", part->origin);
        tn_text_add(&out, ", ");
        add_string(&out, "by", part->name);
        tn_text_printf(&out, ", \"kernels\": %" PRIu32, part->kernels);
        add_key(&out, "operations", part->operations);
        add_key(&out, "bytes", part->bytes);
        tn_text_add(&out, "}}");
    }
    tn_text_add(&out, "\n]}\n");
    tn_cli_interrupt_hold();
    tn_status status = out.failed ? TN_ERR_MEMORY : tn_file_write(path, out.data, out.len);
    tn_cli_interrupt_release();
    tn_text_free(&out);
    return status;
}
