/* Lists of pass names as users write them: taking them apart, checking them, suggesting what was meant. */
#include "passes/names.h"

#include <stdio.h>

#define LONGEST 64

bool tn_name_next(const char **list, const char **name, size_t *length) {
    const char *p = *list;
    while (p && (*p == ',' || *p == ' ' || *p == '\t'))
        p++;
    if (!p || !*p) {
        *list = p;
        return false;
    }
    *name = p;
    while (*p && *p != ',')
        p++;
    *list = p;
    while (p > *name && (p[-1] == ' ' || p[-1] == '\t'))
        p--;
    *length = (size_t)(p - *name);
    return true;
}

bool tn_name_listed(const char *list, const char *name) {
    const char *item;
    size_t length;
    while (tn_name_next(&list, &item, &length))
        if (strlen(name) == length && memcmp(item, name, length) == 0)
            return true;
    return false;
}

uint32_t tn_name_distance(const char *a, size_t a_length, const char *b, size_t b_length) {
    if (a_length > LONGEST || b_length > LONGEST)
        return UINT32_MAX;
    uint32_t row[LONGEST + 1];
    for (uint32_t j = 0; j <= b_length; j++)
        row[j] = j;
    for (uint32_t i = 1; i <= a_length; i++) {
        uint32_t diagonal = row[0];
        row[0] = i;
        for (uint32_t j = 1; j <= b_length; j++) {
            uint32_t best = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            if (diagonal + 1 < best)
                best = diagonal + 1;
            row[j] = best;
        }
    }
    return row[b_length];
}

const char *tn_name_nearest(const tn_pass_context *context, bool rewrites, const char *name, size_t length) {
    uint32_t passes, best = (uint32_t)(length < 4 ? 1 : length / 3 + 1) + 1; /* more steps than that are not near */
    const tn_pass *const *pipeline = tn_pipeline(&passes);
    const char *nearest = NULL;
    for (uint32_t i = 0; i < passes + (rewrites ? context->rewrite_count : 0); i++) {
        const char *known = i < passes ? pipeline[i]->name : context->rewrites[i - passes].name;
        uint32_t distance = known ? tn_name_distance(name, length, known, strlen(known)) : UINT32_MAX;
        if (distance < best) {
            best = distance;
            nearest = known;
        }
    }
    return nearest;
}

/* Whether a name is one of the user's rewrites. */
static bool is_rewrite(const tn_pass_context *context, const char *name, size_t length) {
    for (uint32_t i = 0; i < context->rewrite_count; i++) {
        const char *known = context->rewrites[i].name;
        if (known && strlen(known) == length && memcmp(known, name, length) == 0)
            return true;
    }
    return false;
}

static tn_status fail_unknown(const tn_pass_context *context, const char *option, bool rewrites, const char *name,
                              size_t length) {
    int shown = length > 100 ? 100 : (int)length;
    tn_fail(TN_ERR_USAGE, "%s: there is no pass '%.*s'", option, shown, name);
    const char *nearest = tn_name_nearest(context, rewrites, name, length), *known;
    char all[400] = "";
    size_t used = 0;
    for (uint32_t i = 0; (known = tn_pass_name(i)) && used + strlen(known) + 3 < sizeof all; i++)
        used += (size_t)snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "", known);
    if (nearest)
        tn_fail_hint("did you mean '%s'? The passes are %s", nearest, all);
    else
        tn_fail_hint("the passes are %s; see docs/passes.md", all);
    return TN_ERR_USAGE;
}

tn_status tn_passes_check_names(const tn_pass_context *context) {
    const char *list = context->disable, *name;
    size_t length;
    while (tn_name_next(&list, &name, &length)) {
        const tn_pass *pass = tn_pass_find(name, length);
        if (!pass && !is_rewrite(context, name, length))
            return fail_unknown(context, "disable", true, name, length);
        if (pass && pass->need != TN_PASS_FREE) {
            tn_fail(TN_ERR_USAGE, "disable: pass '%s' cannot be left out", pass->name);
            tn_fail_hint("what runs graphs relies on it");
            return TN_ERR_USAGE;
        }
    }
    list = context->passes;
    while (tn_name_next(&list, &name, &length))
        if (!tn_pass_find(name, length))
            return fail_unknown(context, "passes", false, name, length);
    return TN_OK;
}
